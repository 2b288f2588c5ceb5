//! Sorting of elements that lie in many chunks: each chunk is sorted and cut at the same places into runs,
//! and all runs of one bucket are merged.

use crate::chunk::Chunk;
use crate::element::Element;
use crate::error::KernelError;
use crate::lines::{sort_elements, sorted_positions};
use crate::order::{Direction, Ordered, Wide};
use crate::with_element;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A place between two buckets. Elements with smaller keys come before it, and of those with its own key the
/// ones at smaller positions: so elements that are all equal fall into many buckets too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Splitter {
    pub key: Wide,
    pub position: u64,
}

/// The sort of elements of many chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortMap {
    /// The order.
    pub direction: Direction,
    /// Whether the positions of the elements are wanted too.
    pub with_positions: bool,
    /// The position of each chunk's first element.
    pub starts: Vec<u64>,
    /// The places between buckets, in order: one less than there are buckets.
    pub splitters: Vec<Splitter>,
}

/// Words of a sample: both halves of its key, and its place in the chunk.
pub const SAMPLE_WORDS: usize = 3;

impl SortMap {
    /// Whether an element comes before a place between buckets.
    fn is_before(&self, key: Wide, position: u64, splitter: &Splitter) -> bool {
        self.direction.compare(&key, &splitter.key).then(position.cmp(&splitter.position)) == Ordering::Less
    }

    /// The number of buckets.
    fn buckets(&self) -> usize {
        self.splitters.len() + 1
    }

    fn start(&self, args: &[Chunk]) -> Result<u64, KernelError> {
        let number = args[1].to_vec::<i64>()?.first().copied().unwrap_or(0);
        let start = self.starts.get(number as usize).copied();
        start.ok_or_else(|| KernelError::Malformed(format!("chunk {number} of {}", self.starts.len())))
    }

    /// See [`Exchange::Runs`](super::Exchange::Runs).
    pub(super) fn runs(&self, args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
        let start = self.start(args)?;
        with_element!(args[0].dtype(), T => self.runs_of::<T>(args[0].to_vec::<T>()?, start))
    }

    fn runs_of<T: Ordered>(&self, mut elements: Vec<T>, start: u64) -> Result<Vec<Chunk>, KernelError> {
        if self.with_positions {
            let pairs = sorted_positions(&elements, self.direction);
            let ends = self.ends(pairs.len(), |at| (pairs[at].0.into(), start + pairs[at].1));
            let sorted: Vec<T> = pairs.iter().map(|&(_, position)| elements[position as usize]).collect();
            let positions: Vec<i64> = pairs.iter().map(|&(_, position)| (start + position) as i64).collect();
            let mut made = cut(&sorted, &ends)?;
            made.extend(cut(&positions, &ends)?);
            return Ok(made);
        }
        // Without positions, equal elements cannot be told apart but for the signs of zeros and the bits of
        // NaN. They still have to be dealt to the buckets that were counted for them.
        let counts = self.counts_of(&elements, start);
        sort_elements(&mut elements, self.direction);
        let ends: Vec<usize> = counts
            .iter()
            .scan(0, |end, &count| {
                *end += count as usize;
                Some(*end)
            })
            .collect();
        cut(&elements, &ends)
    }

    /// The end of each run among elements that are sorted.
    fn ends(&self, len: usize, element: impl Fn(usize) -> (Wide, u64)) -> Vec<usize> {
        let mut ends = Vec::with_capacity(self.buckets());
        for splitter in &self.splitters {
            let (mut low, mut high) = (ends.last().copied().unwrap_or(0), len);
            while low < high {
                let middle = (low + high) / 2;
                let (key, position) = element(middle);
                if self.is_before(key, position, splitter) { low = middle + 1 } else { high = middle }
            }
            ends.push(low);
        }
        ends.push(len);
        ends
    }

    /// The number of elements in each bucket.
    fn counts_of<T: Ordered>(&self, elements: &[T], start: u64) -> Vec<i64> {
        let mut counts = vec![0; self.buckets()];
        for (x, position) in elements.iter().zip(start..) {
            let key: Wide = x.key().into();
            let bucket = self.splitters.partition_point(|splitter| !self.is_before(key, position, splitter));
            counts[bucket] += 1;
        }
        counts
    }

    /// See [`Measure::CountRuns`](super::Measure::CountRuns).
    pub(super) fn count(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let start = self.start(args)?;
        let counts = with_element!(args[0].dtype(), T => self.counts_of::<T>(&args[0].to_vec::<T>()?, start));
        let row: Vec<i64> = std::iter::once(args[0].len() as i64).chain(counts).collect();
        Chunk::from_elements(&[1, row.len()], &row)
    }

    /// See [`Exchange::Merge`](super::Exchange::Merge).
    pub(super) fn merge(&self, tables: &[Vec<Chunk>]) -> Result<Vec<Chunk>, KernelError> {
        let Some(first) = tables[0].first() else {
            return Err(KernelError::Malformed("runs of nothing".to_owned()));
        };
        with_element!(first.dtype(), T => self.merge_of::<T>(tables))
    }

    fn merge_of<T: Ordered>(&self, tables: &[Vec<Chunk>]) -> Result<Vec<Chunk>, KernelError> {
        let mut elements: Vec<T> = joined(&tables[0])?;
        let shape = [elements.len()];
        if !self.with_positions {
            // A stable sort finds the runs, and merges them.
            sort_elements(&mut elements, self.direction);
            return Ok(vec![Chunk::from_elements(&shape, &elements)?]);
        }
        let positions: Vec<i64> = joined(&tables[1])?;
        // The runs come in the order of their positions, so a stable sort keeps that of equal elements.
        let mut order: Vec<(T::Key, u32)> = elements.iter().map(|x| x.key()).zip(0..).collect();
        order.sort_by(|a, b| self.direction.compare(&a.0, &b.0));
        let sorted: Vec<T> = order.iter().map(|&(_, at)| elements[at as usize]).collect();
        let positions: Vec<i64> = order.iter().map(|&(_, at)| positions[at as usize]).collect();
        Ok(vec![Chunk::from_elements(&shape, &sorted)?, Chunk::from_elements(&shape, &positions)?])
    }
}

/// The elements of all pieces, one piece behind the other.
pub(super) fn joined<T: Element>(pieces: &[Chunk]) -> Result<Vec<T>, KernelError> {
    let mut elements = Vec::with_capacity(pieces.iter().map(Chunk::len).sum());
    for piece in pieces {
        match piece.as_slice::<T>() {
            Some(slice) => elements.extend_from_slice(slice),
            None => elements.extend(piece.to_vec::<T>()?),
        }
    }
    Ok(elements)
}

/// Pieces of elements that end at `ends`.
fn cut<T: Element>(elements: &[T], ends: &[usize]) -> Result<Vec<Chunk>, KernelError> {
    let mut start = 0;
    let piece = |&end: &usize| {
        let piece = &elements[std::mem::replace(&mut start, end)..end];
        Chunk::from_elements(&[piece.len()], piece)
    };
    ends.iter().map(piece).collect()
}

/// See [`Measure::Sample`](super::Measure::Sample). One element is taken from each of `count` parts of equal
/// length, at a place that depends on the number of the part: so no pattern in the elements escapes.
pub(super) fn sample(x: &Chunk, count: usize) -> Result<Chunk, KernelError> {
    with_element!(x.dtype(), T => sample_of::<T>(&x.to_vec::<T>()?, count))
}

fn sample_of<T: Ordered>(elements: &[T], count: usize) -> Result<Chunk, KernelError> {
    let len = elements.len();
    let count = count.min(len);
    let mut words = vec![len as u64, 0, 0];
    for part in 0..count {
        let (start, end) = (part * len / count, (part + 1) * len / count);
        let at = start + (mixed(part as u64) % (end - start) as u64) as usize;
        let key: Wide = elements[at].key().into();
        words.extend([key.high, key.low, at as u64]);
    }
    Chunk::from_elements(&[1 + count, SAMPLE_WORDS], &words)
}

/// A number whose bits all depend on all bits of another (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Exchange, Measure};

    fn chunk<T: Element>(elements: &[T]) -> Chunk {
        Chunk::from_elements(&[elements.len()], elements).unwrap()
    }

    fn map(direction: Direction, with_positions: bool, splitters: &[(i64, u64)]) -> SortMap {
        let splitter = |&(x, position): &(i64, u64)| Splitter { key: x.key().into(), position };
        SortMap {
            direction,
            with_positions,
            starts: vec![0, 4],
            splitters: splitters.iter().map(splitter).collect(),
        }
    }

    /// Sorts two chunks of four elements by way of three buckets.
    fn sorted(map: &SortMap, chunks: [&[i64]; 2]) -> Vec<Vec<i64>> {
        let mut made: Vec<Vec<Chunk>> = Vec::new();
        for (number, elements) in (0i64..).zip(chunks) {
            let args = [chunk(elements), chunk(&[number])];
            let counts = Measure::CountRuns(map.clone()).run(&args).unwrap().to_vec::<i64>().unwrap();
            let runs = Exchange::Runs(map.clone()).run(&args, &[]).unwrap();
            let lengths: Vec<i64> = runs.iter().take(3).map(|run| run.len() as i64).collect();
            assert_eq!(counts[1..], lengths, "counted {counts:?}");
            made.push(runs);
        }
        let tables = if map.with_positions { 2 } else { 1 };
        let mut out = vec![Vec::new(); tables];
        for bucket in 0..3 {
            let column = |table: usize| made.iter().map(|runs| runs[3 * table + bucket].clone()).collect();
            let columns: Vec<Vec<Chunk>> = (0..tables).map(column).collect();
            let merged = Exchange::Merge(map.clone()).run(&[], &columns).unwrap();
            out.iter_mut().zip(merged).for_each(|(out, made)| out.extend(made.to_vec::<i64>().unwrap()));
        }
        out
    }

    #[test]
    fn elements_of_two_chunks_are_sorted_by_way_of_buckets() {
        let chunks: [&[i64]; 2] = [&[5, 1, 9, 1], &[7, 1, 2, 9]];
        let up = map(Direction::Ascending, true, &[(1, 3), (7, 4)]);
        let expected = [vec![1, 1, 1, 2, 5, 7, 9, 9], vec![1, 3, 5, 6, 0, 4, 2, 7]];
        assert_eq!(sorted(&up, chunks), expected);
        assert_eq!(sorted(&SortMap { with_positions: false, ..up }, chunks)[0], expected[0]);
        let down = map(Direction::Descending, true, &[(7, 4), (1, 3)]);
        assert_eq!(sorted(&down, chunks), [vec![9, 9, 7, 5, 2, 1, 1, 1], vec![2, 7, 4, 0, 6, 1, 3, 5]]);
    }

    #[test]
    fn equal_elements_fall_into_several_buckets() {
        let map = map(Direction::Ascending, false, &[(3, 2), (3, 5)]);
        let runs = Exchange::Runs(map).run(&[chunk(&[3i64; 4]), chunk(&[0i64])], &[]).unwrap();
        assert_eq!(runs.iter().map(Chunk::len).collect::<Vec<_>>(), [2, 2, 0]);
    }

    #[test]
    fn samples_come_from_all_parts_of_a_chunk() {
        let x = chunk(&(0..1000).collect::<Vec<i32>>());
        let words = Measure::Sample { count: 10 }.run(&[x]).unwrap().to_vec::<u64>().unwrap();
        assert_eq!((words.len(), words[0]), (33, 1000));
        for (part, sample) in words[3..].chunks(3).enumerate() {
            assert_eq!(sample[2] / 100, part as u64);
            assert_eq!(sample[1], u64::from((sample[2] as i32).key()));
        }
        let few = Measure::Sample { count: 10 }.run(&[chunk(&[2.0, 1.0])]).unwrap();
        assert_eq!(few.shape(), [3, 3]);
    }
}
