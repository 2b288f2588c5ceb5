//! Sparse matrices in tiles: three tensors of one axis, in which each tile is a chunk.
//!
//! A matrix of I by J tiles has the ends of rows, (rows of all tiles and one more of each), the columns and
//! the values (stored elements). The chunks of a tile have one number, in C order of the grid, so a task
//! finds the tiles that it reads by their numbers ([`Pieces`]). Columns and values may have been made by
//! element-wise steps or lie in other chunks: they are cut as the columns of the tiles are before they are
//! read.

use crate::error::Error;
use crate::lower::{ExchangeStage, ExprId, Lowering, Shared};
use crate::node::{Meta, Operator};
use crate::ops::Resident;
use crate::plan::{Along, Pieces, TensorId, TensorSpec};
use crate::shape::{UNKNOWN, element_count};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::DType;
use tharsis_kernels::exchange::Exchange;
use tharsis_kernels::sparse::Sparse;

/// A function of sparse matrices, and the cuts of what it makes and reads.
#[derive(Clone, Debug)]
pub struct SparseCall {
    /// The function.
    pub function: Sparse,
    /// Cut of the rows of the result.
    pub rows: AxisTiling,
    /// Cut of its columns.
    pub columns: AxisTiling,
    /// Tiles down and across of each sparse argument.
    pub grids: Vec<[usize; 2]>,
    /// The first tile that a function of some rows reads; of sorted keys the number for each tile.
    pub from: From,
}

/// The parts of its argument that a function reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// All of them.
    All,
    /// Tiles from this one on.
    Tile(usize),
    /// Sorted keys: as many for each tile.
    Keys(Vec<usize>),
}

/// One of the tensors that a function of sparse matrices makes: for sparse results the ends of rows, the
/// columns and the values.
///
/// Inputs are the three tensors of each sparse argument, or keys and values, and then a dense one.
#[derive(Clone, Debug)]
pub struct SparsePart {
    call: Arc<SparseCall>,
    part: usize,
    counts: Option<Arc<Vec<usize>>>,
}

impl SparsePart {
    /// The result `part`, of which it is not known yet how much it stores.
    pub fn new(call: Arc<SparseCall>, part: usize) -> SparsePart {
        SparsePart { call, part, counts: None }
    }
}

impl SparseCall {
    /// Whether the elements that the result stores must be counted first.
    fn is_counted(&self) -> bool {
        !self.is_dense() && !matches!(self.function, Sparse::Transpose | Sparse::Coordinates)
    }

    fn is_dense(&self) -> bool {
        matches!(self.function, Sparse::ToDense | Sparse::DenseProduct { .. })
    }

    fn grid(&self) -> Tiling {
        Tiling { axes: vec![self.rows.clone(), self.columns.clone()] }
    }

    /// Length of the ends of rows of each tile.
    fn ends(&self) -> Vec<usize> {
        let rows = (0..self.rows.count()).map(|tile| self.rows.piece(tile).1 + 1);
        rows.flat_map(|ends| std::iter::repeat_n(ends, self.columns.count())).collect()
    }

    /// The dtype of the values of the first argument.
    fn values_dtype(&self, inputs: &[&Meta]) -> Result<DType, Error> {
        let at = match self.function {
            Sparse::Random { .. } => return Ok(DType::F64),
            Sparse::FromDense => 0,
            Sparse::Assemble { .. } => 1,
            _ => 2,
        };
        let found = inputs.get(at).map(|input| input.dtype);
        found.ok_or_else(|| Error::Internal("a sparse function without its argument".to_owned()))
    }

    /// The dtypes of the tensors that it makes.
    fn made(&self, values: DType) -> Vec<DType> {
        match self.function {
            Sparse::ToDense | Sparse::DenseProduct { .. } => vec![values],
            Sparse::Coordinates => vec![DType::I64, DType::I64],
            Sparse::Align { .. } => vec![DType::U32, DType::U32, values, values],
            _ => vec![DType::U32, DType::U32, values],
        }
    }

    /// The pieces that a task reads of each tensor of argument `at`, whose tensors are these.
    fn reads(&self, at: usize, tensors: &[TensorId]) -> Vec<Pieces> {
        let across = self.columns.count();
        let [down, right] = self.grids[at];
        let of = |&tensor: &TensorId| match (&self.function, &self.from) {
            (Sparse::Transpose, _) => Pieces { tensor, across, first: 0, down: 1, right, step: 1, count: 1 },
            (Sparse::Product { .. } | Sparse::DenseProduct { .. }, _) if at == 0 => {
                Pieces { tensor, across, first: 0, down: right, right: 0, step: 1, count: right }
            }
            (Sparse::Product { .. }, _) => {
                Pieces { tensor, across, first: 0, down: 0, right: 1, step: right, count: down }
            }
            (_, From::Tile(first)) => Pieces::own(tensor, *first),
            _ => Pieces::own(tensor, 0),
        };
        tensors.iter().map(of).collect()
    }

    /// The pieces that a task reads, and the number of elements of each tile of the first argument.
    fn arguments(
        &self,
        lowering: &mut Lowering<'_>,
        inputs: &[ExprId],
        with_values: bool,
    ) -> Result<(Vec<Pieces>, Vec<usize>), Error> {
        if let From::Keys(lengths) = &self.from {
            let cut = AxisTiling::from_lengths(lengths);
            let wanted = if with_values { 2 } else { 1 };
            let tensors = inputs.iter().take(wanted).map(|&input| lowering.store_cut(input, &cut));
            let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
            return Ok((self.own(&tensors), lengths.clone()));
        }
        let (mut reads, mut sizes) = (Vec::new(), Vec::new());
        for (at, [down, across]) in self.grids.iter().enumerate() {
            let &[ends, columns, values] = &inputs[3 * at..3 * at + 3] else { continue };
            let (ends, columns) = (lowering.store(ends)?, lowering.store(columns)?);
            let cut = lowering.tensor(columns).tiling.axes[0].clone();
            let tiles = [ends, columns].map(|tensor| lowering.tensor(tensor).tiling.count());
            if tiles != [down * across; 2] {
                return Err(Error::Internal(format!(
                    "{tiles:?} chunks of a matrix of {down} by {across} tiles"
                )));
            }
            let mut tensors = vec![ends, columns];
            if with_values {
                tensors.push(lowering.store_cut(values, &cut)?);
            }
            reads.extend(self.reads(at, &tensors));
            if at == 0 {
                sizes = (0..cut.count()).map(|tile| cut.piece(tile).1).collect();
            }
        }
        Ok((reads, sizes))
    }

    fn own(&self, tensors: &[TensorId]) -> Vec<Pieces> {
        tensors.iter().map(|&tensor| Pieces::own(tensor, 0)).collect()
    }

    /// The tensors of a sparse result with tiles of these numbers of elements, or of the dense one.
    fn add_made(&self, lowering: &mut Lowering<'_>, dtypes: &[DType], stored: &[usize]) -> Vec<TensorId> {
        let stored = AxisTiling::from_lengths(stored);
        let tiling = |at: usize| match (&self.function, at) {
            _ if self.is_dense() => self.grid(),
            (Sparse::Coordinates, _) => Tiling { axes: vec![stored.clone()] },
            (_, 0) => Tiling { axes: vec![AxisTiling::from_lengths(&self.ends())] },
            _ => Tiling { axes: vec![stored.clone()] },
        };
        let specs = dtypes.iter().enumerate().map(|(at, &dtype)| TensorSpec { dtype, tiling: tiling(at) });
        specs.map(|spec| lowering.add_tensor(spec)).collect()
    }

    /// A dense argument: a part of the matrix for `FromDense`, the rows that are summed over for a product.
    fn operands(
        &self,
        lowering: &mut Lowering<'_>,
        inputs: &[ExprId],
    ) -> Result<Vec<crate::plan::Operand>, Error> {
        Ok(match self.function {
            Sparse::FromDense => vec![lowering.operand(inputs[0])?],
            Sparse::DenseProduct { .. } => {
                let depth = lowering.expr(inputs[3]).shape[0];
                let x = self.put_together(lowering, inputs[3])?;
                vec![lowering.operand_along(x, vec![(0, Along::Whole(depth))])?]
            }
            _ => Vec::new(),
        })
    }

    /// A dense argument that every task reads whole along its first axis, in chunks that it reads in place:
    /// each task would put it together otherwise. It stays as it is where it is large.
    fn put_together(&self, lowering: &mut Lowering<'_>, x: ExprId) -> Result<ExprId, Error> {
        let (shape, dtype) = (lowering.expr(x).shape.clone(), lowering.expr(x).dtype);
        let bytes = element_count(&shape).saturating_mul(dtype.size_bytes() as u64);
        let limits = lowering.limits;
        if limits.memory_bytes / IN_PLACE_SHARE / limits.shrink < bytes {
            return Ok(x);
        }
        // Elements that must be computed are computed by many tasks before.
        let stored = lowering.store(x)?;
        let x = lowering.load(stored);
        if lowering.tensor(stored).tiling.axes[0].count() == 1 {
            return Ok(x);
        }
        let tiling = Tiling { axes: vec![AxisTiling::whole(shape[0]), self.columns.clone()] };
        let tensor = lowering.add_tensor(TensorSpec { dtype, tiling: tiling.clone() });
        lowering.fill_tensor(x, tiling, tensor, vec![])?;
        Ok(lowering.load(tensor))
    }

    /// The cut of the columns of a product with a dense matrix: a task has some of its columns whole.
    fn cut_for_memory(&self, lowering: &Lowering<'_>, inputs: &[ExprId]) -> SparseCall {
        let mut cut = self.clone();
        if let (Sparse::DenseProduct { .. }, Some(&x)) = (&self.function, inputs.get(3)) {
            let x = lowering.expr(x);
            let column = (x.shape[0].max(1) * x.dtype.size_bytes()) as u64;
            let limits = lowering.limits;
            let share = limits.memory_bytes / (MEMORY_SHARES * limits.threads as u64) / limits.shrink;
            let columns = (share.min(limits.chunk_bytes_max * DENSE_CHUNKS) / column).max(1);
            cut.columns = AxisTiling::balanced(self.columns.len(), columns as usize);
        }
        cut
    }

    /// The tensors that it makes.
    fn lower(
        &self,
        lowering: &mut Lowering<'_>,
        inputs: &[ExprId],
        values: DType,
        counts: Option<&[usize]>,
    ) -> Result<Vec<TensorId>, Error> {
        let call = self.cut_for_memory(lowering, inputs);
        let (reads, sizes) = call.arguments(lowering, inputs, true)?;
        let stored = match (counts, &call.function) {
            (Some(counts), _) => counts.to_vec(),
            (None, Sparse::Transpose) => {
                let [_, across] = call.grids[0];
                (0..sizes.len())
                    .map(|task| sizes[task % call.columns.count() * across + task / call.columns.count()])
                    .collect()
            }
            (None, _) => sizes,
        };
        let outputs = call.add_made(lowering, &call.made(values), &stored);
        let operands = call.operands(lowering, inputs)?;
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Sparse(call.function.clone()),
            grid: call.grid(),
            operands,
            reads,
            outputs: outputs.clone(),
            splits: false,
        });
        Ok(outputs)
    }
}

/// A dense part may take this share of a thread's part of the memory.
const MEMORY_SHARES: u64 = 8;
/// A dense part may be larger than other chunks: with fewer columns in each, tasks read the elements of the
/// sparse matrix more often.
const DENSE_CHUNKS: u64 = 4;
/// A dense argument that is put together may take this share of the memory.
const IN_PLACE_SHARE: u64 = 16;

impl Operator for SparsePart {
    fn name(&self) -> &'static str {
        match self.call.function {
            Sparse::FromDense => "to_sparse",
            Sparse::Assemble { .. } => "from_coo",
            Sparse::Random { .. } => "sparse_random",
            Sparse::Align { .. } => "align",
            Sparse::Transpose => "sparse_transpose",
            Sparse::Product { .. } | Sparse::DenseProduct { .. } => "sparse_matmul",
            Sparse::Prune => "prune",
            Sparse::Rows { .. } => "sparse_rows",
            Sparse::ToDense => "to_dense",
            Sparse::Coordinates => "to_coo",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let call = &self.call;
        let dtypes = call.made(call.values_dtype(inputs)?);
        let Some(&dtype) = dtypes.get(self.part) else {
            return Err(Error::Internal(format!("{} has no result {}", self.name(), self.part)));
        };
        if call.is_dense() {
            return Ok(Meta { shape: vec![call.rows.len(), call.columns.len()], dtype });
        }
        let len = match (&call.function, self.part, &self.counts) {
            (Sparse::Coordinates, _, _) => inputs[1].shape[0],
            (_, 0, _) => call.ends().iter().sum(),
            (Sparse::Transpose, _, _) => inputs[1].shape[0],
            (_, _, Some(counts)) => counts.iter().sum(),
            (_, _, None) => UNKNOWN,
        };
        Ok(Meta { shape: vec![len], dtype })
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        let is_needed = self.counts.is_none() && self.call.is_counted();
        is_needed.then(|| Arc::new(CountStored(self.call.clone())) as Arc<dyn Operator>)
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        let mut counts = Vec::new();
        for chunk in measures.chunks.iter() {
            counts.extend(chunk.fetch()?.to_vec::<i64>()?.into_iter().map(|count| count as usize));
        }
        if let Some(&large) = counts.iter().find(|&&count| TILE_ELEMENTS_MAX < count) {
            let text = format!(
                "a tile would store {large} elements, more than {TILE_ELEMENTS_MAX}: cut the matrix smaller"
            );
            return Err(Error::Value(text));
        }
        Ok(Arc::new(SparsePart { counts: Some(Arc::new(counts)), ..self.clone() }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let key = format!("{:?} {inputs:?}", self.call);
        let shared = match lowering.take_shared(&key) {
            Some(shared) => shared,
            None => {
                let metas: Vec<Meta> = inputs
                    .iter()
                    .map(|&input| {
                        let expr = lowering.expr(input);
                        Meta { shape: expr.shape.clone(), dtype: expr.dtype }
                    })
                    .collect();
                let values = self.call.values_dtype(&metas.iter().collect::<Vec<_>>())?;
                let counts = self.counts.as_deref().map(Vec::as_slice);
                if counts.is_none() && self.call.is_counted() {
                    return Err(Error::Internal("the size of a sparse matrix is not known".to_owned()));
                }
                Shared::Tensors(self.call.lower(lowering, inputs, values, counts)?)
            }
        };
        let made = match &shared {
            Shared::Tensors(tensors) => tensors.get(self.part).copied(),
            Shared::Stage { .. } => None,
        };
        lowering.share(key, shared);
        match made {
            Some(tensor) => Ok(lowering.load(tensor)),
            None => Err(Error::Internal(format!("{} has no result {}", self.name(), self.part))),
        }
    }
}

/// Ends of rows are uint32.
pub const TILE_ELEMENTS_MAX: usize = u32::MAX as usize;

/// The number of elements that each tile of a result stores: (tiles,) of int64.
#[derive(Clone, Debug)]
struct CountStored(Arc<SparseCall>);

impl Operator for CountStored {
    fn name(&self) -> &'static str {
        "count of sparse elements"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![self.0.grid().count()], dtype: DType::I64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let (reads, _) = self.0.arguments(lowering, inputs, self.0.function.counts_values())?;
        let grid = self.0.grid();
        let counts = AxisTiling::Even { len: grid.count(), chunk: 1 };
        let tensor =
            lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling: Tiling { axes: vec![counts] } });
        let operands = self.0.operands(lowering, inputs)?;
        lowering.add_exchange(ExchangeStage {
            function: Exchange::CountSparse(self.0.function.clone()),
            grid,
            operands,
            reads,
            outputs: vec![tensor],
            splits: false,
        });
        Ok(lowering.load(tensor))
    }
}
