//! The chunk plan, the input of executors.
//!
//! A plan is a list of [`Stage`]s over [`TensorSpec`]s. A stage is a template: one kernel, one grid, and maps
//! from a task's place in the grid to the parts of tensors that it reads. Task `i` of a stage is the pair
//! (stage, i); nothing is stored per task, so a plan of a million chunks is a few hundred bytes.
//! [`crate::task`] finds the inputs of a task and runs it.

use crate::foreign::ForeignName;
use crate::tiling::{AxisTiling, Tiling};
use serde::{Deserialize, Serialize};
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::exchange::Exchange;
use tharsis_kernels::{DType, Program};

/// The index of a tensor in its plan.
pub type TensorId = usize;

/// One task: a stage and an index into its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TaskId {
    pub stage: u32,
    pub index: u32,
}

/// One chunk: a tensor and an index into its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ChunkId {
    pub tensor: u32,
    pub index: u32,
}

/// All stages of a computation, in terms of chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All tensors that exist as chunks at some time.
    pub tensors: Vec<TensorSpec>,
    /// The stages; each reads only tensors of the ones before it, or resident ones.
    pub stages: Vec<Stage>,
    /// The tensors asked for.
    pub results: Vec<TensorId>,
    /// The tensors whose chunks are handed over with the plan.
    pub resident: Vec<TensorId>,
    /// The functions that stages call; `None` for those that other processes cannot find.
    pub foreign: Vec<Option<ForeignName>>,
    /// Ranges of stages whose tasks start in the order of the stages, where one depth-first would have them
    /// wait for each other.
    pub in_order: Vec<(usize, usize)>,
}

/// A tensor that exists as chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TensorSpec {
    pub dtype: DType,
    pub tiling: Tiling,
}

/// A template of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Name of the operator that the stage was made for.
    pub label: String,
    /// Kernel of a task.
    pub kernel: Kernel,
    /// One task per chunk of this grid.
    pub grid: Tiling,
    /// Operands of the kernel.
    pub operands: Vec<Operand>,
    /// The tensors whose chunks a task makes.
    pub outputs: Vec<StageOutput>,
}

/// A fused program over parts of tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Operand {
    pub program: Program,
    /// Inputs of the program, by number.
    pub inputs: Vec<Input>,
    /// Axes along which the domain is not the task's part of the grid.
    pub along: Vec<(usize, Along)>,
}

/// The part of an axis that an operand covers, where it is not the task's part of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Along {
    /// One element, whose place is the number of the task's chunk along the axis.
    Chunk,
    /// All of this number of elements.
    Whole(usize),
    /// The task's part with its neighbours, as far as there are any: of an axis of `len` elements.
    Halo { before: usize, after: usize, len: usize },
}

/// A tensor that a stage fills, wholly or in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageOutput {
    /// The tensor.
    pub tensor: TensorId,
    /// Added to the grid coordinates of a task: several stages may fill one tensor.
    pub offset: Vec<usize>,
}

/// Kernel of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kernel {
    /// The values of the only operand's program.
    Fused,
    /// The elements of a tensor in C order, in the shape of the domain.
    Reshape {
        /// The tensor.
        tensor: TensorId,
    },
    /// The matrix product (.., m, k) x (.., k, n) over a grid of (.., m, n).
    Product(Product),
    /// A function of whole chunks, each yielded by an operand over the task's part of the domain.
    Whole(ChunkFunction),
    /// A function whose tasks make pieces for tasks of a later stage, or read pieces.
    Exchange {
        /// The function.
        function: Exchange,
        /// The pieces that a task reads.
        reads: Vec<Pieces>,
        /// Whether a task makes a row of pieces of each output: task `i` makes pieces `i n` to `i n + n - 1`
        /// of those that the stage has `n` times as many of as tasks.
        splits: bool,
    },
    /// A function that the plan does not contain, of chunks that each operand yields over the task's part of
    /// the domain.
    Foreign {
        /// Its number in `Plan::foreign`.
        function: usize,
        /// Its effect, for people.
        what: String,
        /// The most bytes that it holds beside its arguments and its result.
        scratch_bytes: u64,
    },
}

/// The chunks of one tensor that a task reads by their numbers: of task `t`, `count` chunks that are `step`
/// apart, from `first + t / across * down + t % across * right` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Pieces {
    pub tensor: TensorId,
    pub across: usize,
    pub first: usize,
    pub down: usize,
    pub right: usize,
    pub step: usize,
    pub count: usize,
}

impl Pieces {
    /// A column of a table of pieces, of which there is one for each of `tasks` tasks.
    pub fn column(tensor: TensorId, tasks: usize, pieces: usize) -> Pieces {
        assert_eq!(pieces % tasks, 0, "a table of {pieces} pieces for {tasks} tasks");
        Pieces { tensor, across: tasks, first: 0, down: 0, right: 1, step: tasks, count: pieces / tasks }
    }

    /// The one piece that has the number of the task plus `first`.
    pub fn own(tensor: TensorId, first: usize) -> Pieces {
        Pieces { tensor, across: 1, first, down: 1, right: 0, step: 1, count: 1 }
    }
}

/// A matrix product in pieces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Product {
    /// Cut of the axis that is summed over.
    pub depth: AxisTiling,
    /// Whether each task does one piece of the depth, which is then the first axis of the grid; else a task
    /// does all pieces.
    pub split: bool,
    /// Whether the left factor is the transpose of the right one, which is then the only operand.
    pub gram: bool,
    pub dtype: DType,
}

/// A part of a tensor, as a function of the task's part of the domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The tensor that is read.
    pub tensor: TensorId,
    /// One per axis of the tensor.
    pub axes: Vec<AxisMap>,
    /// Extents of the axes behind those of the domain; every task reads these axes whole.
    pub trailing: Vec<usize>,
}

/// The coordinate along one axis of a tensor: `start + step * index[axis]`, or `start` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AxisMap {
    pub start: usize,
    pub step: i64,
    pub axis: Option<usize>,
}

impl AxisMap {
    /// The axis as it is.
    pub fn identity(axis: usize) -> AxisMap {
        AxisMap { start: 0, step: 1, axis: Some(axis) }
    }
}

impl TensorSpec {
    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        crate::shape::element_count(&self.tiling.shape()).saturating_mul(self.dtype.size_bytes() as u64)
    }

    /// Bytes of the largest chunk, rounded up to whole cache lines as buffers are.
    pub fn chunk_bytes_max(&self) -> u64 {
        self.lines_bytes(self.tiling.largest())
    }

    /// Bytes of a chunk, rounded up as [`TensorSpec::chunk_bytes_max`]. Exact where pieces are of any length;
    /// of equal ones all count as the largest.
    pub fn chunk_bytes(&self, index: usize) -> u64 {
        if self.tiling.axes.iter().all(|axis| matches!(axis, AxisTiling::Even { .. })) {
            self.chunk_bytes_max()
        } else {
            self.lines_bytes(self.tiling.chunk_elements(index))
        }
    }

    fn lines_bytes(&self, elements: u64) -> u64 {
        (elements * self.dtype.size_bytes() as u64).div_ceil(64) * 64
    }
}

impl Plan {
    /// Tasks of all stages.
    pub fn task_count(&self) -> u64 {
        self.stages.iter().map(|stage| stage.grid.count() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_takes_whole_cache_lines_and_a_tensor_its_elements() {
        let spec = |shape: &[usize], chunk: usize| {
            let axes = shape.iter().map(|&len| AxisTiling::Even { len, chunk }).collect();
            TensorSpec { dtype: DType::F64, tiling: Tiling { axes } }
        };
        let bytes = |spec: TensorSpec| (spec.bytes(), spec.chunk_bytes_max());
        assert_eq!(bytes(spec(&[], 1)), (8, 64));
        assert_eq!(bytes(spec(&[0], 4)), (0, 0));
        assert_eq!(bytes(spec(&[20], 8)), (160, 64));
        assert_eq!(bytes(spec(&[20], 9)), (160, 128));
        assert_eq!(bytes(spec(&[5, 7], 3)), (280, 128));
    }
}
