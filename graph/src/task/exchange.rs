//! Tables of pieces: tensors of which each task of one stage makes a row, and each task of a later one reads
//! a column. Piece `j` of task `i` is chunk `i n + j`, where `n` is the number of columns.

use super::Chunks;
use crate::error::Error;
use crate::plan::{ChunkId, Kernel, Plan, Stage, TensorId, TensorSpec};
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

/// The pieces of a table that task `index` of `count` reads.
pub(super) fn column(
    plan: &Plan,
    table: TensorId,
    count: usize,
    index: usize,
) -> impl Iterator<Item = ChunkId> + use<> {
    let pieces = plan.tensors[table].tiling.count();
    assert_eq!(pieces % count, 0, "a table of {pieces} pieces for {count} tasks");
    (index..pieces).step_by(count).map(move |piece| ChunkId { tensor: table as u32, index: piece as u32 })
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
pub(super) fn column_bytes_max(plan: &Plan, tables: &[TensorId], count: usize) -> u64 {
    let of_column = |index: usize| {
        let of_table = |&table: &TensorId| {
            let pieces = column(plan, table, count, index);
            pieces.map(|id| plan.tensors[table].chunk_bytes(id.index as usize)).sum::<u64>()
        };
        tables.iter().map(of_table).sum::<u64>()
    };
    if tables.is_empty() { 0 } else { (0..count).map(of_column).max().unwrap_or(0) }
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
        let columns = |index| column(&plan, 0, 3, index).map(|id| id.index).collect::<Vec<_>>();
        assert_eq!([columns(0), columns(1), columns(2)], [[0, 3], [1, 4], [2, 5]]);
    }

    #[test]
    fn bytes_are_those_of_the_largest_column() {
        let plan = table();
        // 16 bytes a row, in whole cache lines.
        assert_eq!(column_bytes_max(&plan, &[0], 3), 20 * 16);
        assert_eq!(column_bytes_max(&plan, &[0, 0], 3), 2 * 20 * 16);
        assert_eq!(column_bytes_max(&plan, &[], 3), 0);
    }
}
