//! One task of a plan: its inputs and its run. Pure functions of the plan, the task and the chunks.

mod exchange;
mod region;
mod reshape;

use crate::error::Error;
use crate::foreign::Foreign;
use crate::plan::{Along, ChunkId, Kernel, Operand, Plan, Product, Stage, StageOutput, TaskId, TensorSpec};
use crate::tiling::{AxisTiling, Tiling};
use region::{Region, fills, in_own_memory, read};
use std::sync::Arc;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::exchange::Exchange;
use tharsis_kernels::factor::Factor;
use tharsis_kernels::product::Accumulator;
use tharsis_kernels::program::{Output, StepOp};
use tharsis_kernels::site::Site;
use tharsis_kernels::{Chunk, Compiled, Place, Scratch, poison};

/// A plan with its programs compiled: made once per plan and process.
#[derive(Debug)]
pub struct Runnable {
    plan: Arc<Plan>,
    stages: Vec<Vec<Compiled>>,
    foreign: Vec<Arc<dyn Foreign>>,
    /// Upper bound on the bytes that a task of each stage makes.
    made_bytes: Vec<u64>,
}

/// The chunks that a task reads, as executors hand them over.
pub type Chunks<'a> = &'a [(ChunkId, Arc<Chunk>)];

impl Runnable {
    /// Compiles all programs of a plan; `foreign` are the functions that it names, in the order of
    /// `plan.foreign`.
    ///
    /// # Errors
    /// `Kernel` if a program is malformed, `Internal` if functions are missing.
    pub fn new(plan: Arc<Plan>, foreign: Vec<Arc<dyn Foreign>>) -> Result<Runnable, Error> {
        if plan.foreign.len() != foreign.len() {
            let (named, given) = (plan.foreign.len(), foreign.len());
            return Err(Error::Internal(format!("the plan names {named} functions, {given} are given")));
        }
        let compile = |operand: &Operand| Compiled::new(operand.program.clone());
        let of_stage = |stage: &crate::plan::Stage| stage.operands.iter().map(compile).collect();
        let stages = plan.stages.iter().map(of_stage).collect::<Result<_, _>>()?;
        let stages: Vec<Vec<Compiled>> = stages;
        let inside = |stage: &Stage| stage.outputs.iter().all(|output| output.tensor < plan.tensors.len());
        assert!(plan.stages.iter().all(inside), "a stage makes a tensor that the plan does not have");
        let made_bytes = plan.stages.iter().map(|stage| exchange::made_bytes(&plan, stage)).collect();
        Ok(Runnable { plan, stages, foreign, made_bytes })
    }

    /// The plan that the task belongs to.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Upper bound on the bytes that a task of this stage needs beside inputs and outputs.
    pub fn scratch_bytes(&self, stage: usize) -> u64 {
        let Stage { kernel, grid, operands, .. } = &self.plan.stages[stage];
        let registers: usize = self.stages[stage].iter().map(Compiled::scratch_bytes).sum();
        let mut bytes = registers as u64;
        let largest = |axes: &[AxisTiling]| axes.iter().map(|axis| axis.longest() as u64).product::<u64>();
        match kernel {
            Kernel::Fused => {
                bytes += operands
                    .iter()
                    .map(|operand| region::copied_bytes_max(&self.plan, grid, operand))
                    .sum::<u64>()
            }
            Kernel::Reshape { .. } => {}
            Kernel::Whole(function) => {
                bytes += operands.iter().map(|operand| 2 * evaluated_bytes(grid, operand)).sum::<u64>();
                bytes += worked_bytes(function, grid, operands);
            }
            Kernel::Exchange { function, reads, .. } => {
                let given: u64 = operands.iter().map(|operand| evaluated_bytes(grid, operand)).sum();
                let read = exchange::read_bytes_max(&self.plan, reads, grid.count());
                bytes += 2 * given + function.scratch_bytes(largest(&grid.axes), given + read);
                if let (Exchange::Sparse(function) | Exchange::CountSparse(function), [rows, columns]) =
                    (function, grid.axes.as_slice())
                {
                    bytes += function.scratch_bytes(rows.longest(), columns.longest());
                }
            }
            Kernel::Foreign { scratch_bytes, .. } => {
                // A function gets copies of its inputs, and its result is copied once more.
                let of_operand = |operand: &Operand| 2 * largest(&grid.axes) * program_element_bytes(operand);
                bytes += operands.iter().map(of_operand).sum::<u64>() + self.output_bytes(stage);
                bytes += scratch_bytes;
            }
            Kernel::Product(product) => {
                let split = usize::from(product.split);
                let rank = grid.axes.len();
                assert!(2 + split <= rank, "a product over {rank} axes");
                let (rows, columns) =
                    (grid.axes[rank - 2].longest() as u64, grid.axes[rank - 1].longest() as u64);
                let batch = largest(&grid.axes[split..rank - 2]);
                // A tile as computed, and a copy of it in the order in which the product reads it.
                let tiles = (rows + columns) * product.depth.longest() as u64;
                bytes += 2 * batch * tiles * product.dtype.size_bytes() as u64;
            }
        }
        bytes
    }

    /// Upper bound on the bytes of the chunks that a task of this stage makes.
    pub fn output_bytes(&self, stage: usize) -> u64 {
        self.made_bytes[stage]
    }

    /// Whether tasks of this stage can write their results to memory that the executor offers.
    pub fn takes_places(&self, stage: usize) -> bool {
        let Stage { kernel, operands, .. } = &self.plan.stages[stage];
        let stores = |operand: &Operand| {
            operand.program.outputs.iter().all(|output| matches!(output, Output::Store(_)))
        };
        match kernel {
            Kernel::Fused => operands.iter().all(stores),
            Kernel::Product(_) => true,
            Kernel::Exchange { function, .. } => function.takes_places(),
            Kernel::Foreign { .. } | Kernel::Reshape { .. } | Kernel::Whole(_) => false,
        }
    }

    /// Whether tasks of this stage use several threads if they are granted.
    pub fn takes_threads(&self, stage: usize) -> bool {
        matches!(&self.plan.stages[stage].kernel, Kernel::Whole(function) if function.takes_threads())
    }

    /// Exact bytes of a chunk.
    pub fn exact_chunk_bytes(&self, chunk: ChunkId) -> usize {
        let TensorSpec { dtype, tiling } = &self.plan.tensors[chunk.tensor as usize];
        tiling.chunk_elements(chunk.index as usize) as usize * dtype.size_bytes()
    }

    /// Upper bound on the bytes of a chunk.
    pub fn chunk_bytes(&self, chunk: ChunkId) -> u64 {
        self.plan.tensors[chunk.tensor as usize].chunk_bytes(chunk.index as usize)
    }

    /// Cost of a task of this stage, estimated for the largest one, in units of about a fifth of a
    /// nanosecond.
    pub fn task_cost(&self, stage: usize) -> f64 {
        let Stage { kernel, grid, operands, .. } = &self.plan.stages[stage];
        let elements = grid.largest() as f64;
        let computed: f64 = operands.iter().map(|operand| operand.program.cost().max(1.0)).sum();
        match kernel {
            Kernel::Fused => elements * computed,
            Kernel::Reshape { .. } => elements * RESHAPE_COST,
            Kernel::Product(product) => {
                let depth = if product.split { product.depth.longest() } else { product.depth.len() };
                elements * depth as f64 * MULTIPLY_ADD_COST
            }
            Kernel::Whole(_) | Kernel::Exchange { .. } => elements * (computed + WHOLE_COST),
            Kernel::Foreign { .. } => FOREIGN_COST + elements * (computed + WHOLE_COST),
        }
    }

    /// Appends the chunks that a task reads, each once, in the order that [`Runnable::run`] expects.
    pub fn inputs(&self, task: TaskId, chunks: &mut Vec<ChunkId>) {
        let stage = &self.plan.stages[task.stage as usize];
        let region = Region::of(&stage.grid, task.index as usize);
        let first = chunks.len();
        let mut enter = |id: ChunkId| {
            if !chunks[first..].contains(&id) {
                chunks.push(id);
            }
        };
        match &stage.kernel {
            Kernel::Fused | Kernel::Whole(_) | Kernel::Foreign { .. } | Kernel::Exchange { .. } => {
                for operand in &stage.operands {
                    region::touched(
                        &self.plan,
                        operand,
                        &region.of_operand(&stage.grid, operand),
                        &mut enter,
                    );
                }
                if let Kernel::Exchange { reads, .. } = &stage.kernel {
                    let pieces = reads.iter().flat_map(|&pieces| exchange::read(pieces, task.index as usize));
                    let mut tensors: Vec<usize> = reads.iter().map(|pieces| pieces.tensor).collect();
                    tensors.extend(stage.operands.iter().flat_map(|of| &of.inputs).map(|input| input.tensor));
                    tensors.sort_unstable();
                    if tensors.windows(2).all(|pair| pair[0] != pair[1]) {
                        // A piece is in one table, once, and no operand reads it.
                        chunks.extend(pieces);
                    } else {
                        pieces.for_each(enter);
                    }
                }
            }
            Kernel::Reshape { tensor } => reshape::touched(&self.plan, *tensor, stage, &region, &mut enter),
            Kernel::Product(product) => {
                for piece in pieces(product, &region) {
                    let [left, right] = factor_regions(product, &region, piece);
                    for (operand, region) in stage.operands.iter().rev().zip([&right, &left]) {
                        region::touched(&self.plan, operand, region, &mut enter);
                    }
                }
            }
        }
    }

    /// The chunks that a task makes.
    pub fn outputs(&self, task: TaskId) -> impl Iterator<Item = ChunkId> + '_ {
        let stage = &self.plan.stages[task.stage as usize];
        stage.outputs.iter().flat_map(move |output| {
            let spec = &self.plan.tensors[output.tensor];
            let made = match stage.kernel {
                Kernel::Exchange { splits: true, .. } => exchange::row(spec, &stage.grid, task.index),
                _ => {
                    let index = output_index(&stage.grid, spec, output, task.index as usize);
                    index..index + 1
                }
            };
            made.map(|index| ChunkId { tensor: output.tensor as u32, index })
        })
    }

    /// Runs a task on the chunks that [`Runnable::inputs`] names.
    ///
    /// Debug builds run it twice, with different contents in the memory that it is to overwrite.
    ///
    /// # Errors
    /// Errors of the kernels; in debug builds `Internal` if an element was not written, or depends on one
    /// that was not.
    pub fn run(&self, task: TaskId, chunks: Chunks<'_>, scratch: &mut Scratch) -> Result<Vec<Chunk>, Error> {
        let made = self.compute(task, chunks, scratch)?;
        let stage = &self.plan.stages[task.stage as usize];
        // A user's function may have side effects, and uses none of our memory.
        if cfg!(debug_assertions) && !matches!(stage.kernel, Kernel::Foreign { .. }) {
            let again = poison::with_other(|| self.compute(task, chunks, &mut Scratch::new()))?;
            if let Some(place) = first_difference(&made, &again)? {
                let task = format!("task {} of {}", task.index, stage.label);
                return Err(Error::Internal(format!(
                    "{task} left {place} unwritten, or read what nobody wrote"
                )));
            }
        }
        Ok(made)
    }

    fn compute(&self, task: TaskId, chunks: Chunks<'_>, scratch: &mut Scratch) -> Result<Vec<Chunk>, Error> {
        let stage = &self.plan.stages[task.stage as usize];
        let region = Region::of(&stage.grid, task.index as usize);
        match &stage.kernel {
            Kernel::Fused => self.operand(task.stage, 0, &region, chunks, scratch),
            Kernel::Reshape { tensor } => {
                Ok(vec![reshape::gather(&self.plan, *tensor, stage, &region, chunks)?])
            }
            Kernel::Product(product) => {
                Ok(vec![self.product(task.stage, product, &region, chunks, scratch)?])
            }
            Kernel::Whole(function) => {
                let args = match self.parts(function, &stage.operands, &region, chunks)? {
                    Some(parts) => parts,
                    None => self.operands(task, &region, chunks, scratch)?,
                };
                let threads = scratch.threads();
                let made = match function {
                    ChunkFunction::Scan { .. } => scratch.watch_scan(|| function.run(&args, threads))?,
                    _ => function.run(&args, threads)?,
                };
                self.check_declared(task, &stage.label, &made)?;
                Ok(made)
            }
            Kernel::Exchange { function, reads, .. } => {
                let args = self.operands(task, &region, chunks, scratch)?;
                let index = task.index as usize;
                let tables =
                    reads.iter().map(|&table| exchange::pieces(exchange::read(table, index), chunks));
                let tables = tables.collect::<Result<Vec<_>, Error>>()?;
                let place = Place { origin: &region.origin, extents: &region.extents };
                let site = Site { place, stored: self.stored_elements(task) };
                let made = function.run(site, &args, &tables, scratch)?;
                self.check_declared(task, &stage.label, &made)?;
                Ok(made)
            }
            Kernel::Foreign { function, what, .. } => {
                let args = self.operands(task, &region, chunks, scratch)?;
                let place = Place { origin: &region.origin, extents: &region.extents };
                let made = vec![in_own_memory(self.foreign[*function].run(place, &args)?)?];
                self.check_declared(task, what, &made)?;
                Ok(made)
            }
        }
    }

    /// Elements that a task of a function of sparse matrices stores: all outputs but the first have as many.
    fn stored_elements(&self, task: TaskId) -> usize {
        let last = self.outputs(task).last();
        last.map_or(0, |id| {
            self.plan.tensors[id.tensor as usize].tiling.chunk_elements(id.index as usize) as usize
        })
    }

    /// The argument of a function that takes it in parts, if it lies in chunks as it is: nothing is put
    /// together then.
    fn parts(
        &self,
        function: &ChunkFunction,
        operands: &[Operand],
        region: &Region,
        chunks: Chunks<'_>,
    ) -> Result<Option<Vec<Chunk>>, Error> {
        match (function.parts_along(), operands) {
            (Some(axis), [operand]) if is_load(operand) && operand.along.is_empty() => {
                region::parts_along(&self.plan, &operand.inputs[0], region, axis, chunks)
            }
            _ => Ok(None),
        }
    }

    /// Values of all operands of a stage over a region.
    fn operands(
        &self,
        task: TaskId,
        region: &Region,
        chunks: Chunks<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, Error> {
        let stage = &self.plan.stages[task.stage as usize];
        // The result of a function of a crate above is moved out of the memory of its inputs.
        let in_part = matches!(stage.kernel, Kernel::Foreign { .. });
        let mut args = Vec::with_capacity(stage.operands.len());
        for (index, operand) in stage.operands.iter().enumerate() {
            let region = region.of_operand(&stage.grid, operand);
            match self.stored(operand, &region, chunks, in_part)? {
                Some(chunk) => args.push(chunk),
                None => args.extend(self.operand(task.stage, index, &region, chunks, scratch)?),
            }
        }
        Ok(args)
    }

    /// The values of an operand that lie in a chunk as they are, and fill it unless they may lie `in_part` of
    /// it, or that are put together from several chunks: to run its program would copy them once more.
    fn stored(
        &self,
        operand: &Operand,
        region: &Region,
        chunks: Chunks<'_>,
        in_part: bool,
    ) -> Result<Option<Chunk>, Error> {
        let [input] = operand.inputs.as_slice() else { return Ok(None) };
        if !is_load(operand) {
            return Ok(None);
        }
        let is_one = region::is_one_chunk(&self.plan, input, region);
        let rank = region.extents.len() + input.trailing.len();
        let is_in_order =
            input.axes.len() == rank && input.axes.iter().enumerate().all(|(at, map)| map.axis == Some(at));
        if !is_one && !is_in_order {
            return Ok(None);
        }
        let chunk = read(&self.plan, input, region, chunks)?;
        if !is_one {
            return Ok(chunk.is_contiguous().then_some(chunk));
        }
        Ok(((in_part || fills(&chunk)) && chunk.is_contiguous()).then_some(chunk))
    }

    /// Refuses chunks of another shape or dtype than the plan declares.
    fn check_declared(&self, task: TaskId, what: &str, made: &[Chunk]) -> Result<(), Error> {
        let mut made = made.iter();
        for id in self.outputs(task) {
            let spec = &self.plan.tensors[id.tensor as usize];
            let Some(made) = made.next() else {
                return Err(Error::Internal(format!("{what} made fewer chunks than it was to make")));
            };
            let (mut origin, mut declared) = (Vec::new(), Vec::new());
            spec.tiling.chunk(id.index as usize, &mut origin, &mut declared);
            if made.shape() != declared || made.dtype() != spec.dtype {
                return Err(Error::Declared {
                    function: what.to_owned(),
                    declared,
                    dtype: spec.dtype,
                    found: made.shape().to_vec(),
                    found_dtype: made.dtype(),
                });
            }
        }
        Ok(())
    }

    /// Values of an operand's program over a region.
    fn operand(
        &self,
        stage: u32,
        operand: usize,
        region: &Region,
        chunks: Chunks<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, Error> {
        let inputs = &self.plan.stages[stage as usize].operands[operand].inputs;
        let inputs = inputs
            .iter()
            .map(|input| read(&self.plan, input, region, chunks))
            .collect::<Result<Vec<_>, _>>()?;
        let compiled = &self.stages[stage as usize][operand];
        let place = Place { origin: &region.origin, extents: &region.extents };
        Ok(compiled.run(place, &inputs, scratch)?)
    }

    /// One factor of a product: a view if it is stored in this form, else computed.
    fn factor(
        &self,
        stage: u32,
        operand: usize,
        region: &Region,
        chunks: Chunks<'_>,
        scratch: &mut Scratch,
    ) -> Result<Chunk, Error> {
        let load = &self.plan.stages[stage as usize].operands[operand];
        if is_load(load) {
            return read(&self.plan, &load.inputs[0], region, chunks);
        }
        let made = self.operand(stage, operand, region, chunks, scratch)?;
        made.into_iter().next().ok_or_else(|| Error::Internal("an operand without a value".to_owned()))
    }

    fn product(
        &self,
        stage: u32,
        product: &Product,
        region: &Region,
        chunks: Chunks<'_>,
        scratch: &mut Scratch,
    ) -> Result<Chunk, Error> {
        // Allocated before the factors are computed: these would take the memory offered for the product.
        let mut sum =
            Accumulator::with_memory(product.dtype, &region.extents, |bytes| scratch.result(bytes))?;
        for piece in pieces(product, region) {
            let [left, right] = factor_regions(product, region, piece);
            if product.gram {
                let right = self.factor(stage, 0, &right, chunks, scratch)?;
                sum.add_gram(&right)?;
            } else {
                let left = self.factor(stage, 0, &left, chunks, scratch)?;
                let right = self.factor(stage, 1, &right, chunks, scratch)?;
                sum.add(&left, &right)?;
            }
        }
        Ok(sum.finish()?)
    }
}

/// Costs of one element, in units of about a fifth of a nanosecond: moved, multiplied and added, and in
/// functions of whole chunks, of which factorisations take the longest.
const RESHAPE_COST: f64 = 4.0;
const MULTIPLY_ADD_COST: f64 = 0.2;
const WHOLE_COST: f64 = 50.0;
/// The cost of a user's function is unknown: high enough that each call is a batch of its own.
const FOREIGN_COST: f64 = 1e6;

/// Whether the values of an operand are those of its input.
fn is_load(operand: &Operand) -> bool {
    let Operand { program, .. } = operand;
    let [step] = program.steps.as_slice() else { return false };
    program.outputs == [Output::Store(0)] && matches!(step.op, StepOp::Load { .. })
}

fn program_element_bytes(operand: &Operand) -> u64 {
    operand.program.steps.iter().map(|step| step.dtype.size_bytes() as u64).max().unwrap_or(0)
}

/// Upper bound on the bytes that a function of matrices or lines needs beside its arguments.
fn worked_bytes(function: &ChunkFunction, grid: &Tiling, operands: &[Operand]) -> u64 {
    if let ChunkFunction::Fourier(fourier) = function {
        return fourier.scratch_bytes();
    }
    if let ChunkFunction::Cosine(cosine) = function {
        return cosine.scratch_bytes();
    }
    if let ChunkFunction::Tile(tile) = function {
        return tile.scratch_bytes(operands.iter().map(|operand| evaluated_bytes(grid, operand)).sum());
    }
    let [.., rows, columns] = grid.axes.as_slice() else { return 0 };
    let factor = match function {
        ChunkFunction::Factor(factor) => Some(*factor),
        ChunkFunction::BasisRows => Some(Factor::QrQ),
        _ => None,
    };
    if let Some(factor) = factor {
        return factor.scratch_bytes(rows.longest(), columns.longest());
    }
    let ChunkFunction::Linear { function, .. } = function else { return 0 };
    let matrix = [rows.len(), columns.len()];
    let lead: u64 = grid.axes[..grid.axes.len() - 2].iter().map(|axis| axis.longest() as u64).product();
    let right = operands.get(1).and_then(|operand| operand.along.first());
    let right_columns = match right {
        Some((_, Along::Whole(columns))) => *columns,
        _ => 0,
    };
    let size = operands.first().map_or(0, program_element_bytes);
    let made = function.results(matrix, right_columns, tharsis_kernels::DType::C128);
    let made = made.iter().map(|(shape, _)| crate::shape::element_count(shape)).sum::<u64>() * size;
    function.scratch_bytes(matrix, right_columns, size as usize) + lead * made
}

/// Upper bound on the bytes of the values that an operand's program goes through in a task.
fn evaluated_bytes(grid: &Tiling, operand: &Operand) -> u64 {
    region::elements_max(grid, operand) * program_element_bytes(operand)
}

/// The pieces of the depth that a task does: first element and length of each.
fn pieces(product: &Product, region: &Region) -> Vec<(usize, usize)> {
    if product.split {
        vec![product.depth.piece(region.origin[0])]
    } else {
        (0..product.depth.count()).map(|index| product.depth.piece(index)).collect()
    }
}

/// The parts of the two factors, (.., m, k) and (.., k, n), for one piece of the depth.
fn factor_regions(product: &Product, region: &Region, (start, len): (usize, usize)) -> [Region; 2] {
    let split = usize::from(product.split);
    let tile = Region { origin: region.origin[split..].to_vec(), extents: region.extents[split..].to_vec() };
    let rank = tile.origin.len();
    assert!(2 <= rank, "a product of less than matrices");
    let with_depth = |axis: usize| {
        let mut factor = tile.clone();
        (factor.origin[axis], factor.extents[axis]) = (start, len);
        factor
    };
    [with_depth(rank - 1), with_depth(rank - 2)]
}

/// Places at which chunks that were made twice differ, in words.
fn first_difference(made: &[Chunk], again: &[Chunk]) -> Result<Option<String>, Error> {
    assert_eq!(made.len(), again.len(), "a task makes another number of chunks when it runs again");
    for (output, (made, again)) in made.iter().zip(again).enumerate() {
        let (made, again) = (made.to_contiguous()?, again.to_contiguous()?);
        let size = made.dtype().size_bytes();
        let bytes = |chunk: &Chunk| {
            let start = chunk.offset() * size;
            start..start + chunk.len_bytes()
        };
        let (bytes, other) = (&made.buffer().bytes()[bytes(&made)], &again.buffer().bytes()[bytes(&again)]);
        // Whole blocks are compared in one step, also where the compiler does not vectorise loops.
        if bytes == other {
            continue;
        }
        if let Some(at) = bytes.iter().zip(other).position(|(made, again)| made != again) {
            let (element, shape) = (at / size, made.shape());
            return Ok(Some(format!("element {element} of output {output}, a chunk of {shape:?}")));
        }
    }
    Ok(None)
}

fn output_index(grid: &Tiling, spec: &TensorSpec, output: &StageOutput, mut index: usize) -> u32 {
    if output.offset.iter().all(|&offset| offset == 0) && spec.tiling.count() == grid.count() {
        return index as u32;
    }
    let mut coordinates = vec![0; grid.axes.len()];
    for axis in (0..grid.axes.len()).rev() {
        let count = grid.axes[axis].count();
        coordinates[axis] = index % count + output.offset[axis];
        index /= count;
    }
    assert_eq!(index, 0, "a task outside of its grid");
    spec.tiling.number(&coordinates) as u32
}

#[cfg(test)]
#[cfg(debug_assertions)]
mod tests {
    use super::*;
    use tharsis_kernels::{Buffer, DType};

    /// Three elements of which the first `written` are written.
    fn chunk(written: usize) -> Chunk {
        let mut data = Buffer::for_overwrite(3);
        data.elements_mut::<u8>()[..written].fill(199);
        Chunk::contiguous(DType::U8, &[3], data).unwrap()
    }

    #[test]
    fn an_element_that_nobody_writes_is_found_whatever_the_others_hold() {
        let twice = |written| ([chunk(3), chunk(written)], poison::with_other(|| [chunk(3), chunk(written)]));
        let (made, again) = twice(3);
        assert_eq!(first_difference(&made, &again).unwrap(), None);
        let (made, again) = twice(2);
        let found = first_difference(&made, &again).unwrap();
        assert_eq!(found.as_deref(), Some("element 2 of output 1, a chunk of [3]"));
    }
}
