//! Rows taken from a tensor of many chunks, or put into it, at positions that are elements of other tensors.
//!
//! The positions that each chunk of them has in each chunk of rows are counted first. Then the positions are
//! dealt to the chunks that hold the rows, these give the rows, and each chunk of positions puts them in
//! order: each row travels once. If there is one chunk of rows, each task takes from it.
//!
//! If tasks read chunks in place, as threads of one process do, nothing needs to travel: nothing is
//! counted then, and a task for each chunk of positions takes its rows from all chunks of them.

use crate::error::Error;
use crate::lower::{ExchangeStage, ExprId, ExprKind, Lowering};
use crate::node::{Meta, Operator};
use crate::ops::{Resident, Take};
use crate::plan::{Kernel, Pieces, StageOutput, TensorId, TensorSpec};
use crate::shape::{UNKNOWN, agree, element_count};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::exchange::{Exchange, Measure, RowMap};
use tharsis_kernels::{DType, Scalar};

/// The rows of the first tensor (n, ..) at the positions in the second, (k,) of int64: (k, ..).
#[derive(Clone, Debug)]
pub struct Gather {
    rows: Rows,
}

/// The first tensor (n, ..), with the rows of the third one (k, ..) put at the positions in the second, (k,)
/// of int64: of equal positions the last one counts.
#[derive(Clone, Debug)]
pub struct Scatter {
    rows: Rows,
}

/// Facts about positions.
#[derive(Clone, Debug, Default)]
struct Rows {
    /// The axis that rows were on, for errors.
    axis: usize,
    known: Option<Arc<Requests>>,
}

/// The cut of the positions and of the rows, and the number of positions of each chunk in each chunk of rows;
/// no ends of chunks where rows are read in place.
#[derive(Clone, Debug, Default)]
struct Requests {
    lengths: Vec<usize>,
    ends: Vec<u64>,
    counts: Vec<usize>,
}

impl Gather {
    /// Rows at positions that are not counted yet; errors say that they are on `axis`.
    pub fn new(axis: usize) -> Gather {
        Gather { rows: Rows { axis, known: None } }
    }
}

impl Scatter {
    /// Rows at positions that are not counted yet; errors say that they are on `axis`.
    pub fn new(axis: usize) -> Scatter {
        Scatter { rows: Rows { axis, known: None } }
    }
}

impl Rows {
    fn measure(&self, takes: bool) -> Option<Arc<dyn Operator>> {
        let measure = CountRequests { axis: self.axis, takes };
        self.known.is_none().then(|| Arc::new(measure) as Arc<dyn Operator>)
    }

    fn measured(&self, measures: &Resident) -> Result<Rows, Error> {
        let mut known = Requests::default();
        for chunk in measures.chunks.iter() {
            let words = chunk.fetch()?.to_vec::<i64>()?;
            let [length, chunks, rest @ ..] = words.as_slice() else {
                return Err(Error::Internal("a count of positions without a head".to_owned()));
            };
            let (ends, counts) = rest.split_at(*chunks as usize);
            known.lengths.push(*length as usize);
            known.ends = ends.iter().map(|&end| end as u64).collect();
            known.counts.extend(counts.iter().map(|&count| count as usize));
        }
        Ok(Rows { axis: self.axis, known: Some(Arc::new(known)) })
    }

    fn known(&self) -> Result<(Arc<Requests>, RowMap), Error> {
        let known = self.known.clone();
        let known = known.ok_or_else(|| Error::Internal("positions were not counted".to_owned()))?;
        let map = RowMap { axis: self.axis, ends: known.ends.clone() };
        Ok((known, map))
    }
}

/// Refuses positions that are not of int64 and one axis.
fn check(x: &Meta, positions: &Meta) -> Result<usize, Error> {
    match positions.shape[..] {
        [count] if positions.dtype == DType::I64 && !x.shape.is_empty() => Ok(count),
        _ => Err(Error::Internal("positions of rows are int64 along one axis".to_owned())),
    }
}

impl Operator for Gather {
    fn name(&self) -> &'static str {
        "take"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let count = check(inputs[0], inputs[1])?;
        Ok(Meta { shape: [&[count], &inputs[0].shape[1..]].concat(), dtype: inputs[0].dtype })
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        self.rows.measure(true)
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        Ok(Arc::new(Gather { rows: self.rows.measured(measures)? }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let (known, map) = self.rows.known()?;
        if known.ends.is_empty() {
            return self.in_place(lowering, out, inputs);
        }
        if known.ends.len() == 1 {
            return Take { axis: 0 }.lower(lowering, out, inputs);
        }
        let (chunks, parts) = (known.ends.len(), known.lengths.len());
        let requests = lowering.add_table(DType::I64, &known.counts, &[]);
        deal(lowering, Exchange::Requests(map.clone()), &known, &inputs[1..], vec![requests])?;
        let column = |chunk: usize| known.counts.iter().skip(chunk).step_by(chunks).copied();
        let lengths: Vec<usize> = (0..chunks).flat_map(column).collect();
        let rest = &out.shape[1..];
        let answers = lowering.add_table(out.dtype, &lengths, rest);
        let operand = lowering.operand(inputs[0])?;
        let grid = row_grid(&known, rest);
        let reads = lowering.columns(&[requests], &grid);
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Answers,
            grid,
            operands: vec![operand],
            reads,
            outputs: vec![answers],
            splits: true,
        });
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&known.lengths)] };
        let mut tiling = grid.clone();
        tiling.axes.extend(rest.iter().map(|&extent| AxisTiling::whole(extent)));
        assert_eq!(tiling.count(), parts, "a task for each chunk of positions");
        let made = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
        let operand = lowering.operand(inputs[1])?;
        let reads = lowering.columns(&[answers], &grid);
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Arrange(map),
            grid,
            operands: vec![operand],
            reads,
            outputs: vec![made],
            splits: false,
        });
        Ok(lowering.load(made))
    }
}

impl Gather {
    /// A task for each chunk of positions, which reads all chunks of rows.
    fn in_place(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let mut x = inputs[0];
        if !is_in_rows(lowering, x) {
            let rank = lowering.expr(x).shape.len();
            x = (1..rank).fold(x, |x, axis| lowering.whole_along(x, axis));
        }
        let rows = lowering.store(x)?;
        let cut = &lowering.tensor(rows).tiling.axes[0];
        let map = RowMap { axis: self.rows.axis, ends: ends(cut) };
        let count = cut.count();
        let rest = &out.shape[1..];
        let row_bytes = element_count(rest) * out.dtype.size_bytes() as u64;
        let grid = Tiling { axes: vec![lowering.exchange_rows(inputs[1], row_bytes, task_bytes(row_bytes))] };
        let mut tiling = grid.clone();
        tiling.axes.extend(rest.iter().map(|&extent| AxisTiling::whole(extent)));
        let made = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
        let operands = vec![lowering.operand(inputs[1])?];
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Gather(map),
            grid,
            operands,
            reads: vec![Pieces { tensor: rows, across: 1, first: 0, down: 0, right: 0, step: 1, count }],
            outputs: vec![made],
            splits: false,
        });
        Ok(lowering.load(made))
    }
}

/// Whether an expression is a stored tensor in chunks of whole rows.
fn is_in_rows(lowering: &Lowering<'_>, x: ExprId) -> bool {
    let stored = lowering.stored_as_is(x).map(|tensor| &lowering.tensor(tensor).tiling);
    stored.is_some_and(|tiling| tiling.axes[1..].iter().all(|axis| axis.count() == 1))
}

/// Whether tasks may read all rows where they lie: those that exist already, or that would take a small part
/// of the memory.
fn may_read_in_place(lowering: &Lowering<'_>, x: ExprId) -> bool {
    let limits = lowering.limits;
    let exists = is_in_rows(lowering, x)
        && lowering.stored_as_is(x).is_some_and(|tensor| lowering.is_resident(tensor));
    let of = lowering.expr(x);
    let bytes = element_count(&of.shape).saturating_mul(of.dtype.size_bytes() as u64);
    limits.reads_in_place && (exists || bytes <= limits.memory_bytes / IN_PLACE_SHARE / limits.shrink)
}

/// Rows that are made to be read in place take this part of the memory at most: the bound of a plan counts
/// them once for each task that may run.
const IN_PLACE_SHARE: u64 = 16;

/// Bytes that a task needs for each row that it takes or puts: with its position, as evaluated and twice
/// more, as a piece, and in the result.
fn task_bytes(row_bytes: u64) -> u64 {
    10 * (row_bytes + DType::I64.size_bytes() as u64)
}

/// The end of each chunk of rows.
fn ends(cut: &AxisTiling) -> Vec<u64> {
    let end = |piece: usize| {
        let (start, len) = cut.piece(piece);
        (start + len) as u64
    };
    (0..cut.count()).map(end).collect()
}

impl Operator for Scatter {
    fn name(&self) -> &'static str {
        "setitem"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let [x, positions, values] = [inputs[0], inputs[1], inputs[2]];
        let count = check(x, positions)?;
        let fits = values.shape.len() == x.shape.len()
            && agree(values.shape[0], count)
            && values.shape[1..].iter().zip(&x.shape[1..]).all(|(&a, &b)| agree(a, b));
        if !fits || values.dtype != x.dtype {
            let shapes = vec![x.shape.clone(), values.shape.clone()];
            let reason = "a row is needed for each position".to_owned();
            return Err(Error::Shape { function: "setitem", shapes, reason });
        }
        Ok(x.clone())
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        self.rows.measure(false)
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        Ok(Arc::new(Scatter { rows: self.rows.measured(measures)? }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let (known, map) = self.rows.known()?;
        let rest = &out.shape[1..];
        let positions = lowering.add_table(DType::I64, &known.counts, &[]);
        let values = lowering.add_table(out.dtype, &known.counts, rest);
        let tables = vec![positions, values];
        deal(lowering, Exchange::Updates(map), &known, &inputs[1..], tables.clone())?;
        let grid = row_grid(&known, rest);
        let made = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: grid.clone() });
        let operand = lowering.operand(inputs[0])?;
        let reads = lowering.columns(&tables, &grid);
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Update,
            grid,
            operands: vec![operand],
            reads,
            outputs: vec![made],
            splits: false,
        });
        Ok(lowering.load(made))
    }
}

/// The cut of the rows.
fn row_grid(known: &Requests, rest: &[usize]) -> Tiling {
    let bounds = std::iter::once(0).chain(known.ends.iter().map(|&end| end as usize)).collect();
    let mut axes = vec![AxisTiling::Bounds(bounds)];
    axes.extend(rest.iter().map(|&extent| AxisTiling::whole(extent)));
    Tiling { axes }
}

/// A stage that deals positions, and perhaps rows, to the chunks of rows.
fn deal(
    lowering: &mut Lowering<'_>,
    function: Exchange,
    known: &Requests,
    inputs: &[ExprId],
    tables: Vec<TensorId>,
) -> Result<(), Error> {
    let widest = inputs.iter().copied().max_by_key(|&input| lowering.expr(input).shape.len());
    let mut axes = vec![AxisTiling::from_lengths(&known.lengths)];
    let rest = widest.map_or(Vec::new(), |widest| lowering.expr(widest).shape[1..].to_vec());
    axes.extend(rest.into_iter().map(AxisTiling::whole));
    let grid = Tiling { axes };
    let mut operands = Vec::with_capacity(inputs.len());
    for &input in inputs {
        operands.push(match lowering.expr(input).shape.len() {
            1 => lowering.operand_of_rows(input, &grid)?,
            _ => lowering.operand(input)?,
        });
    }
    let stage = ExchangeStage { function, grid, operands, reads: vec![], outputs: tables, splits: true };
    lowering.add_exchange(stage);
    Ok(())
}

/// The number of positions of each chunk in each chunk of rows; a row of zeros if rows are read in place.
#[derive(Clone, Copy, Debug)]
struct CountRequests {
    axis: usize,
    /// Whether nothing is counted if rows can be read in place.
    takes: bool,
}

impl Operator for CountRequests {
    fn name(&self) -> &'static str {
        "count of take"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![UNKNOWN, UNKNOWN], dtype: DType::I64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        if self.takes && may_read_in_place(lowering, inputs[0]) {
            return Ok(lowering.add(&[1, 2], DType::I64, ExprKind::Const(Scalar::Int(0))));
        }
        let x = lowering.expr(inputs[0]);
        let row_bytes = element_count(&x.shape[1..]) * x.dtype.size_bytes() as u64;
        let ends = ends(&lowering.exchange_rows(inputs[0], row_bytes, task_bytes(row_bytes)));
        let width = 2 + 2 * ends.len();
        let rows = lowering.exchange_rows(inputs[1], row_bytes, task_bytes(row_bytes));
        let tiling =
            Tiling { axes: vec![AxisTiling::Even { len: rows.count(), chunk: 1 }, AxisTiling::whole(width)] };
        let operands = vec![lowering.operand(inputs[1])?];
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling });
        let map = RowMap { axis: self.axis, ends };
        let kernel = Kernel::Whole(ChunkFunction::Measure(Measure::CountRequests(map)));
        let grid = Tiling { axes: vec![rows] };
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset: vec![0] }]);
        Ok(lowering.load(tensor))
    }
}
