//! Exchanges: stages whose tasks make pieces for all tasks of a later stage.

use super::{ExprId, Lowering, View};
use crate::error::Error;
use crate::plan::{Along, AxisMap, Kernel, Operand, Pieces, StageOutput, TensorId, TensorSpec};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::DType;
use tharsis_kernels::exchange::Exchange;
use tharsis_kernels::program::IndexMap;

/// A stage of an exchange.
#[derive(Debug)]
pub struct ExchangeStage {
    /// The kernel.
    pub function: Exchange,
    /// One task per chunk of this grid.
    pub grid: Tiling,
    /// Arguments of the kernel.
    pub operands: Vec<Operand>,
    /// The pieces that each task reads.
    pub reads: Vec<Pieces>,
    /// The tensors that the stage fills.
    pub outputs: Vec<TensorId>,
    /// Whether the outputs are tables, of which each task makes a row.
    pub splits: bool,
}

impl Lowering<'_> {
    /// A table of pieces of these numbers of rows, a row of pieces behind the other; rows have the extents
    /// `rest`.
    pub fn add_table(&mut self, dtype: DType, lengths: &[usize], rest: &[usize]) -> TensorId {
        let mut axes = vec![AxisTiling::from_lengths(lengths)];
        axes.extend(rest.iter().map(|&extent| AxisTiling::whole(extent)));
        self.add_tensor(TensorSpec { dtype, tiling: Tiling { axes } })
    }

    /// Of each table a column of pieces for each task of a grid.
    pub fn columns(&self, tables: &[TensorId], grid: &Tiling) -> Vec<Pieces> {
        let pieces =
            |&table: &TensorId| Pieces::column(table, grid.count(), self.tensor(table).tiling.count());
        tables.iter().map(pieces).collect()
    }

    /// Adds a stage of an exchange.
    pub fn add_exchange(&mut self, stage: ExchangeStage) {
        let ExchangeStage { function, grid, operands, reads, outputs, splits } = stage;
        let offset = vec![0; grid.axes.len()];
        let outputs =
            outputs.into_iter().map(|tensor| StageOutput { tensor, offset: offset.clone() }).collect();
        self.add_kernel(Kernel::Exchange { function, reads, splits }, grid, operands, outputs);
    }

    /// The cut of the first axis of an expression for an exchange of rows of `row_bytes`, for each of which a
    /// task needs `task_bytes`: as it is cut already, or with fewer chunks if pieces would be too small to be
    /// worth storing, or more if chunks would be too large for a task.
    pub fn exchange_rows(&self, expr: ExprId, row_bytes: u64, task_bytes: u64) -> AxisTiling {
        let cut = self.tile(&[expr], true).axes[0].clone();
        let (count, row_bytes) = (cut.count(), row_bytes.max(1));
        let rows_max = self.task_rows_max(task_bytes.max(row_bytes));
        if rows_max < cut.longest() as u64 {
            return AxisTiling::balanced(cut.len(), rows_max as usize);
        }
        if count <= CHUNKS_MIN {
            return cut;
        }
        // With n chunks there are n * n pieces.
        let total = (cut.len() as u64).saturating_mul(row_bytes);
        let worthwhile = ((total as f64 * PIECE_BYTES as f64).sqrt() as u64).max(total / CHUNKS_MAX);
        let each_has_work = (cut.len() / (TASKS_MIN_PER_THREAD * self.limits.threads)) as u64;
        let rows = (worthwhile / row_bytes).min(each_has_work).clamp(1, rows_max);
        let mut merged: Vec<usize> = Vec::new();
        for length in (0..count).map(|piece| cut.piece(piece).1) {
            match merged.last_mut() {
                Some(last) if (*last + length) as u64 <= rows => *last += length,
                _ => merged.push(length),
            }
        }
        AxisTiling::from_lengths(&merged)
    }

    /// Most rows of a task that needs so many bytes for each.
    pub fn task_rows_max(&self, row_bytes: u64) -> u64 {
        let share = self.limits.memory_bytes / (TASKS_PER_THREAD * self.limits.threads as u64);
        (share / self.limits.shrink / row_bytes.max(1)).max(1)
    }

    /// An operand that yields the number of a task along the first axis of a grid, one int64.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn operand_chunk_number(&mut self, grid: &Tiling) -> Result<Operand, Error> {
        let shape = vec![grid.axes[0].count()];
        let numbers = self.index(&shape, IndexMap::Position);
        let mut wide = shape;
        wide.extend(grid.axes[1..].iter().map(AxisTiling::count));
        let view = View { shape: wide, axes: vec![AxisMap::identity(0)] };
        let numbers = self.view(numbers, &view);
        self.operand_along(numbers, (0..grid.axes.len()).map(|axis| (axis, Along::Chunk)).collect())
    }

    /// An operand over the first axis of a grid alone: `expr` has one axis, and a task gets its part of it,
    /// with extent 1 along the other axes.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn operand_of_rows(&mut self, expr: ExprId, grid: &Tiling) -> Result<Operand, Error> {
        let mut shape = self.expr(expr).shape.clone();
        shape.extend(grid.axes[1..].iter().map(AxisTiling::count));
        let wide = self.view(expr, &View { shape, axes: vec![AxisMap::identity(0)] });
        self.operand_along(wide, (1..grid.axes.len()).map(|axis| (axis, Along::Chunk)).collect())
    }
}

/// Up to this number of chunks an exchange takes them as they are.
const CHUNKS_MIN: usize = 64;
/// More chunks than this would need too many pieces.
const CHUNKS_MAX: u64 = 2048;
/// Bytes that a piece should have at least.
const PIECE_BYTES: u64 = 512 << 10;
/// Chunks are not merged into fewer than these for each thread.
const TASKS_MIN_PER_THREAD: usize = 4;
/// Tasks per thread that the bound of a plan counts: one that runs, and one that was started ahead.
const TASKS_PER_THREAD: u64 = 2;
