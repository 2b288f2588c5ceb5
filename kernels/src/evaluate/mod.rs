//! Runs a fused [`Program`] over one chunk, block by block, so that values between steps stay in the
//! first-level cache.
//!
//! [`Compiled`] is made once per program: it gives every value a register (a block of memory reused as soon
//! as the value is dead) and picks the block length. [`Compiled::run`] then makes one pass over the domain.
//! Inputs that lie in C order are read where they are; others are gathered into registers.
//!
//! A step runs in the first of these ways that supports it. The last column is its speed relative to a
//! hand-written loop with the same results, measured on two cores with AVX-512:
//!
//! | way | takes | worth |
//! |---|---|---|
//! | `chain` | one source, one or two cheap maps with constants, stored, added up, or added up in pairs; float64 | `((x + 1) * 2).sum()` 0.8 of the loop by hand; as a group 0.7 |
//! | `group` and `tiles` | sums, differences, products, quotients, roots, extremes, exponentials and casts of floats, in any order, with their sources and the fold behind them | `sqrt((x + 1) * 3 - y).sum()` 0.7; step by step 0.5 |
//! | `steps` | everything | a load and a store per element and step |
//!
//! `peephole` has one more rewrite, for comparisons of square roots. Its use is counting points in a circle.

mod chain;
mod group;
mod grouped;
mod peephole;
mod registers;
mod sources;
mod steps;
mod tiles;

pub use registers::Scratch;

use crate::chunk::{Buffer, Chunk};
use crate::cpu;
use crate::dtype::DType;
use crate::error::KernelError;
use crate::fold::{Fold, Folder, block_sum};
use crate::layout::Layout;
use crate::program::{IndexForm, IndexMap, Output, Program, StepOp, ValueId};
use crate::raised::{Function, Warnings, note_raised, watched};
use crate::stream::Stream;
use crate::ufunc::{Arg, Operand};
use crate::with_element;
use group::Group;
use grouped::Grouped;
use registers::{Allocation, allocate};
use std::hint::black_box;
use std::ops::Range;

/// Place of a task in the whole tensor.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Global coordinates of the first element.
    pub origin: &'a [usize],
    /// Elements along each axis of the domain.
    pub extents: &'a [usize],
}

/// A program with its registers.
#[derive(Clone, Debug)]
pub struct Compiled {
    program: Program,
    allocation: Allocation,
    use_count: Vec<usize>,
    /// Functions of the index that only chains use.
    is_inside_chain: Vec<bool>,
    groups: Vec<Group>,
}

/// Location of the elements of a value while a block is computed.
enum Source {
    /// In a register.
    Register(usize),
    /// In an input in C order, from this element on, with `width` elements per element of the domain.
    Direct { chunk: Chunk, width: usize },
    /// The same everywhere.
    Const(crate::scalar::Scalar),
    /// Not stored: its only user computes it.
    Inside,
}

/// Method by which the value of a leaf gets into its register.
enum Leaf {
    None,
    Gather { chunk: Chunk, layout: Layout },
    Index { map: IndexMap, layout: Layout },
}

struct Bound {
    sources: Vec<Source>,
    leaves: Vec<Leaf>,
}

enum Sink {
    Store {
        value: ValueId,
        dtype: DType,
        data: Buffer,
        stream: Option<Stream>,
    },
    /// A chain's values, written with stores that bypass the cache.
    ChainStore {
        chain: ValueId,
        data: Buffer,
        stream: Stream,
    },
    Fold {
        args: Vec<ValueId>,
        folder: Folder,
    },
    /// The total of a chain's values, which are not stored.
    ChainSum {
        chain: ValueId,
        folder: Folder,
    },
}

impl Compiled {
    /// Checks the program and assigns registers.
    ///
    /// # Errors
    /// `Malformed` if the program contradicts itself.
    pub fn new(program: Program) -> Result<Compiled, KernelError> {
        program.check()?;
        let program = peephole::rewrite(program);
        program.check()?;
        let groups = group::find(&program);
        let allocation = allocate(&program, &groups);
        let use_count = peephole::uses(&program);
        let mut chained = vec![0; program.steps.len()];
        for step in &program.steps {
            if let StepOp::Chain { source, .. } = step.op {
                chained[source] += 1;
            }
        }
        let is_inside = |(i, step): (usize, &crate::program::Step)| {
            let is_source =
                matches!(step.op, StepOp::Index { map, .. } if chain::IndexSource::of(map).is_some());
            is_source && chained[i] == use_count[i]
        };
        let is_inside_chain = program.steps.iter().enumerate().map(is_inside).collect();
        Ok(Compiled { program, allocation, use_count, is_inside_chain, groups })
    }

    /// The program that this evaluates.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Bytes of registers while the program runs, the memory of a thread beside inputs and outputs.
    pub fn scratch_bytes(&self) -> usize {
        self.allocation.register_bytes.iter().sum()
    }

    /// Computes all outputs for the chunk at `place`. A fold yields one chunk per component.
    ///
    /// # Errors
    /// `Malformed` if an input's shape is not that of the domain and its trailing axes; `Value` where a
    /// function refuses a value.
    ///
    /// # Memory
    /// The outputs, and [`Compiled::scratch_bytes`] in `scratch`.
    pub fn run(
        &self,
        place: Place<'_>,
        inputs: &[Chunk],
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        let rows: usize = place.extents.iter().product();
        let mut bound = self.bind(place, inputs)?;
        let mut sinks = self.sinks(place, rows, scratch)?;
        for sink in &sinks {
            if let Sink::ChainSum { chain, .. } | Sink::ChainStore { chain, .. } = sink {
                bound.sources[*chain] = Source::Inside;
            }
        }
        scratch.reserve(&self.allocation.register_bytes);
        let in_registers = bound.sources.iter().any(|source| matches!(source, Source::Register(_)));
        let block_rows = if in_registers { self.allocation.block_rows } else { BLOCK_ROWS_WITHOUT_REGISTERS };
        let mut grouped = Grouped::new(self, &bound, &sinks, rows);
        let mut start = 0;
        while start < rows {
            let end = (start + block_rows).min(rows);
            grouped.begin_block();
            for step in 0..self.program.steps.len() {
                if !grouped.run(self, step, &bound, start..end, &mut sinks, scratch)? {
                    self.run_step(step, &bound, start, end, scratch)?;
                }
            }
            for (output, sink) in sinks.iter_mut().enumerate() {
                if grouped.has_fed(output) {
                    continue;
                }
                let mut warnings = scratch.take_warnings();
                self.feed(sink, &bound, scratch, start..end, &mut warnings);
                scratch.warnings = warnings;
            }
            start = end;
        }
        finish(sinks, place)
    }

    fn bind(&self, place: Place<'_>, inputs: &[Chunk]) -> Result<Bound, KernelError> {
        let mut bound = Bound { sources: Vec::new(), leaves: Vec::new() };
        for (i, step) in self.program.steps.iter().enumerate() {
            let extents = || [place.extents, step.trailing.as_slice()].concat();
            let register = Source::Register(self.allocation.register[i]);
            let (source, leaf) = match &step.op {
                StepOp::Const(scalar) if !self.allocation.is_output[i] => {
                    (Source::Const(*scalar), Leaf::None)
                }
                StepOp::Load { input } => {
                    let chunk =
                        inputs.get(*input).filter(|c| c.shape() == extents() && c.dtype() == step.dtype);
                    let chunk =
                        chunk.ok_or_else(|| self.bad_input(*input, inputs, &extents(), step.dtype))?.clone();
                    let layout = chunk.layout();
                    match layout.single_run() {
                        Some(run) if run.stride == 1 || run.len == 1 => {
                            (Source::Direct { chunk, width: step.width() }, Leaf::None)
                        }
                        _ => (register, Leaf::Gather { chunk, layout }),
                    }
                }
                StepOp::Index { index, map } => {
                    let inside = self.is_inside_chain[i];
                    let register = if inside { Source::Inside } else { register };
                    (register, Leaf::Index { map: *map, layout: index_layout(index, place, &extents()) })
                }
                _ => (register, Leaf::None),
            };
            bound.sources.push(source);
            bound.leaves.push(leaf);
        }
        Ok(bound)
    }

    fn bad_input(&self, input: usize, inputs: &[Chunk], extents: &[usize], dtype: DType) -> KernelError {
        let found = inputs.get(input).map(|chunk| (chunk.shape().to_vec(), chunk.dtype()));
        KernelError::Malformed(format!("input {input} is {found:?}, the task needs {extents:?} of {dtype}"))
    }

    fn sinks(&self, place: Place<'_>, rows: usize, scratch: &mut Scratch) -> Result<Vec<Sink>, KernelError> {
        let mut sink = |output: &Output| match output {
            Output::Store(value) => {
                let dtype = self.program.steps[*value].dtype;
                let bytes = rows * dtype.size_bytes();
                let data = scratch.result(bytes);
                Ok(match Stream::for_bytes(bytes) {
                    Some(stream) if self.is_own_chain(*value) => {
                        Sink::ChainStore { chain: *value, data, stream }
                    }
                    stream => Sink::Store { value: *value, dtype, data, stream },
                })
            }
            Output::Fold { fold, args, axes } => {
                let dtype = self.program.steps[args[0]].dtype;
                let folder = Folder::new(*fold, dtype, place.extents, axes)?;
                if *fold == Fold::Sum && folder.is_total() && self.is_own_chain(args[0]) {
                    return Ok(Sink::ChainSum { chain: args[0], folder });
                }
                Ok(Sink::Fold { args: args.clone(), folder })
            }
        };
        self.program.outputs.iter().map(&mut sink).collect()
    }

    /// Whether a value is a chain with one output as its only user, which then computes it.
    fn is_own_chain(&self, value: ValueId) -> bool {
        matches!(self.program.steps[value].op, StepOp::Chain { pairs: false, .. })
            && self.use_count[value] == 1
    }
}

/// Rows of a block if no registers are used: then blocks need not fit the cache, and only bound the rounding
/// errors of sums.
const BLOCK_ROWS_WITHOUT_REGISTERS: usize = 8192;

/// The layout of an index form over the task's part of the domain.
fn index_layout(index: &IndexForm, place: Place<'_>, extents: &[usize]) -> Layout {
    let origin = place.origin.iter().zip(&index.strides);
    let base = origin.fold(index.offset, |sum, (&at, &stride)| sum + at as i64 * stride);
    Layout::new(extents, &index.strides, base)
}

/// The block of `value` for the rows from `start` on, as an argument.
fn operand<'a>(bound: &'a Bound, scratch: &'a Scratch, value: ValueId, start: usize) -> Operand<'a> {
    match &bound.sources[value] {
        Source::Register(register) => Operand::Block(scratch.register(*register), 0),
        Source::Direct { chunk, width } => Operand::Block(chunk.buffer(), chunk.offset() + start * width),
        Source::Const(scalar) => Operand::One(*scalar),
        // Never read: the chain that uses this value computes it.
        Source::Inside => Operand::One(crate::scalar::Scalar::Bool(false)),
    }
}

impl Compiled {
    fn feed(
        &self,
        sink: &mut Sink,
        bound: &Bound,
        scratch: &Scratch,
        Range { start, end }: Range<usize>,
        warnings: &mut Warnings,
    ) {
        let chain_of = |chain: ValueId| match self.program.steps[chain].op {
            StepOp::Chain { source, map, .. } => Some((map, chain_input(bound, scratch, source, start))),
            _ => None,
        };
        cpu::clear_raised();
        match sink {
            Sink::Store { value, dtype, data, stream } => {
                let from = operand(bound, scratch, *value, start);
                with_element!(*dtype, T => copy_block::<T>(from, data, stream, start, end));
            }
            Sink::ChainStore { chain, data, stream } => {
                let Some((map, input)) = chain_of(*chain) else { return };
                let out = &mut data.elements_mut::<f64>()[start..end];
                chain::store_around(map, input, start, end, out, stream);
                chain::attribute(cpu::raised(), map, input, start..end, false, warnings);
            }
            Sink::Fold { args, folder } => {
                let mut operands = [Operand::One(crate::scalar::Scalar::Bool(false)); 3];
                for (slot, &arg) in operands.iter_mut().zip(args.iter()) {
                    *slot = operand(bound, scratch, arg, start);
                }
                folder.feed(&operands, start, end);
                let met = folder.met(cpu::raised(), operands[0], end - start);
                note_raised(met, Function::Reduce, warnings);
            }
            Sink::ChainSum { chain, folder } => {
                let Some((map, input)) = chain_of(*chain) else { return };
                let total = chain::sum(map, input, start, end);
                let raised = cpu::raised();
                if raised.any() {
                    chain::attribute(raised, map, input, start..end, false, warnings);
                    let mut values = Buffer::for_overwrite((end - start) * size_of::<f64>());
                    chain::store(map, input, false, start, end, &mut values);
                    watched(Function::Reduce, warnings, || {
                        black_box(block_sum(&values.elements::<f64>()[..end - start]))
                    });
                }
                cpu::clear_raised();
                folder.add_total(total);
                let met = folder.met(cpu::raised(), Operand::One(total.into()), 1);
                note_raised(met, Function::Reduce, warnings);
            }
        }
    }
}

/// Source of a chain over `source`, for the rows from `start` on.
fn chain_input<'a>(
    bound: &'a Bound,
    scratch: &'a Scratch,
    source: ValueId,
    start: usize,
) -> chain::ChainInput<'a> {
    if let Leaf::Index { map, layout } = &bound.leaves[source]
        && let Some(source) = chain::IndexSource::of(*map)
    {
        return chain::ChainInput::Index { source, layout };
    }
    chain::ChainInput::Block(operand(bound, scratch, source, start))
}

fn copy_block<T: crate::element::Element>(
    from: Operand<'_>,
    to: &mut Buffer,
    stream: &mut Option<Stream>,
    start: usize,
    end: usize,
) {
    let to = &mut to.elements_mut::<T>()[start..end];
    match (from.arg::<T>(end - start), stream) {
        (Arg::Block(block), Some(stream)) => {
            stream.copy(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(block));
        }
        (Arg::Block(block), None) => to.copy_from_slice(block),
        (Arg::One(value), _) => to.fill(value),
    }
}

fn finish(sinks: Vec<Sink>, place: Place<'_>) -> Result<Vec<Chunk>, KernelError> {
    let mut chunks = Vec::with_capacity(sinks.len());
    for sink in sinks {
        // The stream must end before the stored values are read.
        match sink {
            Sink::Store { dtype, data, stream, .. } => {
                drop(stream);
                chunks.push(Chunk::contiguous(dtype, place.extents, data)?);
            }
            Sink::ChainStore { data, stream, .. } => {
                drop(stream);
                chunks.push(Chunk::contiguous(DType::F64, place.extents, data)?);
            }
            Sink::Fold { folder, .. } | Sink::ChainSum { folder, .. } => chunks.extend(folder.finish()?),
        }
    }
    Ok(chunks)
}
