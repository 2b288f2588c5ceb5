//! Tables of pieces: tensors of which each task of one stage makes a row, and each task of a later one reads
//! a column. Piece `j` of task `i` is chunk `i n + j`, where `n` is the number of columns.

use super::Chunks;
use crate::error::Error;
use crate::plan::{ChunkId, Kernel, Pieces, Plan, Stage, TensorSpec};
use crate::tiling::Tiling;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tharsis_kernels::Chunk;

/// The pieces of a table that a task makes.
pub(super) fn row(spec: &TensorSpec, grid: &Tiling, task: u32) -> Range<u32> {
    let width = (spec.tiling.count() / grid.count()) as u32;
    task * width..(task + 1) * width
}

/// The pieces that task `task` reads of one tensor.
pub(super) fn read(pieces: Pieces, task: usize) -> impl Iterator<Item = ChunkId> {
    let Pieces { tensor, across, first, down, right, step, count } = pieces;
    let start = first + task / across * down + task % across * right;
    (0..count).map(move |at| ChunkId { tensor: tensor as u32, index: (start + at * step) as u32 })
}

/// The pieces of these names, among the chunks that a task was given.
pub(super) fn pieces(ids: impl Iterator<Item = ChunkId>, chunks: Chunks<'_>) -> Result<Vec<Chunk>, Error> {
    let given: HashMap<ChunkId, &Arc<Chunk>> = chunks.iter().map(|(id, chunk)| (*id, chunk)).collect();
    let find = |id: ChunkId| {
        let found = given.get(&id).map(|chunk| Chunk::clone(chunk));
        found.ok_or_else(|| Error::Internal(format!("piece {id:?} is missing")))
    };
    ids.map(find).collect()
}

/// Upper bound on the bytes that a task of a stage makes.
pub(super) fn made_bytes(plan: &Plan, stage: &Stage) -> u64 {
    let of_row = |spec: &TensorSpec, task: u32| {
        row(spec, &stage.grid, task).map(|piece| spec.chunk_bytes(piece as usize)).sum::<u64>()
    };
    let specs = || stage.outputs.iter().map(|output| &plan.tensors[output.tensor]);
    match stage.kernel {
        Kernel::Exchange { splits: true, .. } => {
            let of_task = |task: u32| specs().map(|spec| of_row(spec, task)).sum();
            (0..stage.grid.count() as u32).map(of_task).max().unwrap_or(0)
        }
        _ => specs().map(TensorSpec::chunk_bytes_max).sum(),
    }
}

/// Upper bound on the bytes of the pieces that a task of a stage of `count` tasks reads.
pub(super) fn read_bytes_max(plan: &Plan, reads: &[Pieces], count: usize) -> u64 {
    let of_task = |task: usize| {
        let of_tensor = |&pieces: &Pieces| {
            let spec = &plan.tensors[pieces.tensor];
            read(pieces, task).map(|id| spec.chunk_bytes(id.index as usize)).sum::<u64>()
        };
        reads.iter().map(of_tensor).sum::<u64>()
    };
    if reads.is_empty() { 0 } else { (0..count).map(of_task).max().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiling::AxisTiling;
    use tharsis_kernels::DType;

    /// Two rows of three pieces.
    fn table() -> Plan {
        let tiling =
            Tiling { axes: vec![AxisTiling::from_lengths(&[1, 0, 20, 3, 4, 0]), AxisTiling::whole(2)] };
        Plan { tensors: vec![TensorSpec { dtype: DType::F64, tiling }], ..Plan::default() }
    }

    #[test]
    fn rows_and_columns_meet_in_each_piece_once() {
        let plan = table();
        let grid = Tiling::whole(&[2]);
        assert_eq!(row(&plan.tensors[0], &grid, 0), 0..6);
        let two = Tiling { axes: vec![AxisTiling::Even { len: 2, chunk: 1 }] };
        assert_eq!(row(&plan.tensors[0], &two, 1), 3..6);
        let pieces = Pieces::column(0, 3, 6);
        let columns = |index| read(pieces, index).map(|id| id.index).collect::<Vec<_>>();
        assert_eq!([columns(0), columns(1), columns(2)], [[0, 3], [1, 4], [2, 5]]);
    }

    #[test]
    fn a_task_of_a_grid_reads_a_row_a_column_or_one_piece() {
        // Two by three tasks; a row of the table on the left has four pieces.
        let read = |pieces, task| read(pieces, task).map(|id| id.index).collect::<Vec<_>>();
        let row = Pieces { tensor: 0, across: 3, first: 0, down: 4, right: 0, step: 1, count: 4 };
        assert_eq!([read(row, 2), read(row, 3)], [[0, 1, 2, 3], [4, 5, 6, 7]]);
        let column = Pieces { tensor: 0, across: 3, first: 0, down: 0, right: 1, step: 3, count: 2 };
        assert_eq!([read(column, 1), read(column, 5)], [[1, 4], [2, 5]]);
        assert_eq!(read(Pieces::own(0, 7), 2), [9]);
    }

    #[test]
    fn bytes_are_those_of_the_largest_column() {
        let plan = table();
        // 16 bytes a row, in whole cache lines.
        let column = Pieces::column(0, 3, 6);
        assert_eq!(read_bytes_max(&plan, &[column], 3), 20 * 16);
        assert_eq!(read_bytes_max(&plan, &[column, column], 3), 2 * 20 * 16);
        assert_eq!(read_bytes_max(&plan, &[], 3), 0);
    }
}
