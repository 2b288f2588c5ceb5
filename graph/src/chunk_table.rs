//! A value for each chunk of a plan, side by side in one allocation.

use crate::plan::{ChunkId, Plan, TensorId};
use std::ops::{Index, IndexMut, Range};

/// A value for each chunk of a plan, by chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkTable<T> {
    /// The place of each tensor's first chunk, and the end of the last tensor's.
    starts: Vec<usize>,
    values: Vec<T>,
}

impl<T: Clone> ChunkTable<T> {
    /// The same value for each chunk.
    pub fn new(plan: &Plan, value: T) -> ChunkTable<T> {
        let mut starts = Vec::with_capacity(plan.tensors.len() + 1);
        let mut end = 0;
        starts.push(end);
        for tensor in &plan.tensors {
            end += tensor.tiling.count();
            starts.push(end);
        }
        ChunkTable { starts, values: vec![value; end] }
    }
}

impl<T> ChunkTable<T> {
    /// The values of a tensor's chunks, in their order.
    pub fn of_tensor(&self, tensor: TensorId) -> &[T] {
        &self.values[self.range(tensor)]
    }

    /// The values of a tensor's chunks, mutable.
    pub fn of_tensor_mut(&mut self, tensor: TensorId) -> &mut [T] {
        let range = self.range(tensor);
        &mut self.values[range]
    }

    /// The values of all chunks, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    fn range(&self, tensor: TensorId) -> Range<usize> {
        self.starts[tensor]..self.starts[tensor + 1]
    }

    fn place(&self, chunk: ChunkId) -> usize {
        let range = self.range(chunk.tensor as usize);
        let place = range.start + chunk.index as usize;
        assert!(place < range.end, "{chunk:?} is beyond the last chunk of its tensor");
        place
    }
}

impl<T> Index<ChunkId> for ChunkTable<T> {
    type Output = T;

    fn index(&self, chunk: ChunkId) -> &T {
        &self.values[self.place(chunk)]
    }
}

impl<T> IndexMut<ChunkId> for ChunkTable<T> {
    fn index_mut(&mut self, chunk: ChunkId) -> &mut T {
        let place = self.place(chunk);
        &mut self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::TensorSpec;
    use crate::tiling::Tiling;
    use tharsis_kernels::DType;

    fn plan(chunks: &[usize]) -> Plan {
        let tensor = |&count: &usize| TensorSpec {
            dtype: DType::F64,
            tiling: Tiling { axes: vec![crate::tiling::AxisTiling::balanced(count, 1)] },
        };
        Plan { tensors: chunks.iter().map(tensor).collect(), ..Plan::default() }
    }

    #[test]
    fn every_chunk_has_a_place_of_its_own() {
        let mut table = ChunkTable::new(&plan(&[3, 1, 4]), 0);
        let mut next = 1;
        for (tensor, count) in [(0, 3), (1, 1), (2, 4)] {
            for index in 0..count {
                table[ChunkId { tensor, index }] += next;
                next += 1;
            }
        }
        assert_eq!(
            [table.of_tensor(0), table.of_tensor(1), table.of_tensor(2)].concat(),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        table.of_tensor_mut(1)[0] = 9;
        assert_eq!(table[ChunkId { tensor: 1, index: 0 }], 9);
        assert_eq!(table.values_mut().count(), 8);
    }

    #[test]
    #[should_panic(expected = "beyond the last chunk")]
    fn a_chunk_beyond_its_tensor_is_not_one_of_the_next() {
        let table = ChunkTable::new(&plan(&[3, 1]), 0);
        let _none = table[ChunkId { tensor: 0, index: 3 }];
    }
}
