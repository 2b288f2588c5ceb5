//! Sorting of elements that lie in many chunks: those of each chunk are dealt to buckets between the same
//! places, and each bucket is sorted.

use super::buckets::{Buckets, Splitter};
use super::pieces::Pieces;
use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;
use crate::evaluate::Scratch;
use crate::order::{Direction, Ordered, Wide, in_order, join, sort_elements, sort_pieces};
use crate::site::Site;
use crate::with_element;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

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
    /// Bytes that a task needs for each byte of its bucket, beside the pieces.
    pub const fn scratch_share(with_positions: bool) -> u64 {
        if with_positions {
            // For an element and its position, 9 bytes or more, these in one piece, and twice a key and a
            // place, 16 bytes.
            5
        } else {
            // Of elements that are all zeros or NaN a copy each for those that keys do not tell apart, and as
            // much again to sort.
            2
        }
    }

    fn start(&self, args: &[Chunk]) -> Result<u64, KernelError> {
        let number = args[1].to_vec::<i64>()?.first().copied().unwrap_or(0);
        let start = self.starts.get(number as usize).copied();
        start.ok_or_else(|| KernelError::Malformed(format!("chunk {number} of {}", self.starts.len())))
    }

    /// See [`Exchange::Deal`](super::Exchange::Deal).
    pub(super) fn deal(&self, args: &[Chunk], scratch: &mut Scratch) -> Result<Vec<Chunk>, KernelError> {
        let start = self.start(args)?;
        with_element!(args[0].dtype(), T => self.dealt::<T>(&args[0].elements::<T>()?, start, scratch))
    }

    fn dealt<T: Ordered>(
        &self,
        elements: &[T],
        start: u64,
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        let buckets = Buckets::<T::Key>::new(self.direction, &self.splitters);
        let mut counts = vec![0; self.splitters.len() + 1];
        // A bucket is found once, but where there are more than these numbers can tell apart.
        let mut memory = Buffer::for_overwrite(elements.len() * size_of::<u16>());
        let found = &mut memory.elements_mut::<u16>()[..elements.len()];
        let mut places = found.iter_mut();
        buckets.each(elements, start, |bucket, _, _| {
            counts[bucket] += 1;
            put(&mut places, bucket as u16);
        });
        let mut pieces = Pieces::<T>::new(&counts, 1, scratch);
        let mut ends = pieces.ends();
        let mut positions = self.with_positions.then(|| Pieces::<i64>::new(&counts, 1, scratch));
        let mut ends_of_positions = positions.as_mut().map(Pieces::ends);
        let mut deal = |bucket: usize, x, position| {
            put(&mut ends[bucket], x);
            if let Some(ends) = &mut ends_of_positions {
                put(&mut ends[bucket], position as i64);
            }
        };
        if counts.len() <= 1 + usize::from(u16::MAX) {
            let known = elements.iter().zip(&*found).zip(start..);
            known.for_each(|((&x, &bucket), position)| deal(usize::from(bucket), x, position));
        } else {
            buckets.each(elements, start, deal);
        }
        let mut made = pieces.finish(&counts, &[])?;
        if let Some(positions) = positions {
            made.extend(positions.finish(&counts, &[])?);
        }
        Ok(made)
    }

    /// The number of elements in each bucket.
    fn counts_of<T: Ordered>(&self, elements: &[T], start: u64) -> Vec<usize> {
        let mut counts = vec![0; self.splitters.len() + 1];
        Buckets::<T::Key>::new(self.direction, &self.splitters)
            .each(elements, start, |bucket, _, _| counts[bucket] += 1);
        counts
    }

    /// See [`Measure::CountDealt`](super::Measure::CountDealt).
    pub(super) fn count(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let start = self.start(args)?;
        let counts = with_element!(args[0].dtype(), T => {
            self.counts_of::<T>(&args[0].elements::<T>()?, start)
        });
        let counts = counts.into_iter().map(|count| count as i64);
        let row: Vec<i64> = std::iter::once(args[0].len() as i64).chain(counts).collect();
        Chunk::from_elements(&[1, row.len()], &row)
    }

    /// See [`Exchange::Pick`](super::Exchange::Pick).
    pub(super) fn pick(&self, args: &[Chunk], wanted: &[bool]) -> Result<Vec<Chunk>, KernelError> {
        if wanted.len() != self.splitters.len() + 1 {
            return Err(KernelError::Malformed(format!("{} wishes for other buckets", wanted.len())));
        }
        let start = self.start(args)?;
        with_element!(args[0].dtype(), T => self.picked::<T>(&args[0].elements::<T>()?, start, wanted))
    }

    /// Few elements are wanted, so they are not counted before they are taken.
    fn picked<T: Ordered>(
        &self,
        elements: &[T],
        start: u64,
        wanted: &[bool],
    ) -> Result<Vec<Chunk>, KernelError> {
        let buckets = Buckets::<T::Key>::new(self.direction, &self.splitters);
        let mut found: Vec<Vec<T>> = vec![Vec::new(); wanted.len()];
        buckets.each(elements, start, |bucket, x, _| {
            if wanted[bucket] {
                found[bucket].push(x);
            }
        });
        let kept = found.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        kept.map(|(found, _)| Chunk::from_elements(&[found.len()], found)).collect()
    }

    /// See [`Exchange::Sort`](super::Exchange::Sort).
    pub(super) fn sort(
        &self,
        tables: &[Vec<Chunk>],
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        let Some(first) = tables[0].first() else {
            return Err(KernelError::Malformed("a bucket of no chunk".to_owned()));
        };
        with_element!(first.dtype(), T => self.sorted::<T>(tables, scratch))
    }

    /// Equal elements come in the order of their positions, so a stable sort keeps that order.
    fn sorted<T: Ordered>(
        &self,
        tables: &[Vec<Chunk>],
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        if !self.with_positions {
            let pieces = tables[0].iter().map(Chunk::elements::<T>).collect::<Result<Vec<_>, _>>()?;
            let pieces: Vec<&[T]> = pieces.iter().map(|piece| &**piece).collect();
            let len = pieces.iter().map(|piece| piece.len()).sum();
            let mut memory = scratch.result(len * size_of::<T>());
            sort_pieces(&pieces, &mut memory.elements_mut::<T>()[..len], self.direction);
            return Ok(vec![Chunk::contiguous(T::DTYPE, &[len], memory)?]);
        }
        let (elements, len) = joined::<T>(&tables[0])?;
        let elements = &elements.elements::<T>()[..len];
        let (positions, count) = joined::<i64>(&tables[1])?;
        let positions = &positions.elements::<i64>()[..count];
        if count != len {
            return Err(KernelError::Malformed(format!("{count} positions of {len} elements")));
        }
        let mut made = [size_of::<T>(), size_of::<i64>()].map(|bytes| scratch.result(len * bytes));
        let [sorted, places] = &mut made;
        let mut to = sorted.elements_mut::<T>().iter_mut().zip(places.elements_mut::<i64>());
        in_order(elements, self.direction, |place| {
            if let Some((x, position)) = to.next() {
                (*x, *position) = (elements[place], positions[place]);
            }
        });
        let [sorted, places] = made;
        Ok(vec![Chunk::contiguous(T::DTYPE, &[len], sorted)?, Chunk::contiguous(DType::I64, &[len], places)?])
    }
}

/// Puts an element at the next place.
#[inline(always)]
fn put<T>(places: &mut std::slice::IterMut<'_, T>, x: T) {
    if let Some(place) = places.next() {
        *place = x;
    }
}

/// See [`Exchange::Ranked`](super::Exchange::Ranked). The task's part of the result tells which places are
/// its.
pub(super) fn ranked(
    site: Site<'_>,
    direction: Direction,
    ranks: &[u64],
    tables: &[Vec<Chunk>],
) -> Result<Vec<Chunk>, KernelError> {
    let malformed = || KernelError::Malformed("a place that a bucket does not have".to_owned());
    let (first, count) = (site.place.origin[0], site.place.extents[0]);
    let ranks = ranks.get(first..first + count).ok_or_else(malformed)?;
    let dtype = tables[0].first().ok_or_else(malformed)?.dtype();
    with_element!(dtype, T => {
        let (mut memory, len) = joined::<T>(&tables[0])?;
        let elements = &mut memory.elements_mut::<T>()[..len];
        sort_elements(elements, direction);
        let chosen = ranks.iter().map(|&rank| elements.get(rank as usize).copied().ok_or_else(malformed));
        let chosen = chosen.collect::<Result<Vec<T>, _>>()?;
        Ok(vec![Chunk::from_elements(&[count], &chosen)?])
    })
}

/// The elements of all pieces, one piece behind the other, and their number.
fn joined<T: Element>(pieces: &[Chunk]) -> Result<(Buffer, usize), KernelError> {
    let pieces = pieces.iter().map(Chunk::elements::<T>).collect::<Result<Vec<_>, _>>()?;
    let len = pieces.iter().map(|piece| piece.len()).sum();
    let mut memory = Buffer::for_overwrite(len * size_of::<T>());
    join(pieces.iter().map(|piece| &**piece), &mut memory.elements_mut::<T>()[..len]);
    Ok((memory, len))
}

/// See [`Measure::Sample`](super::Measure::Sample). One element is taken from each of `count` parts of equal
/// length, at a place that depends on the number of the part and on a secret of the process: so no pattern in
/// the elements escapes, not even one that is made to. What is sorted does not depend on the samples.
pub(super) fn sample(x: &Chunk, count: usize, buckets: usize) -> Result<Chunk, KernelError> {
    with_element!(x.dtype(), T => sample_of::<T>(&x.elements::<T>()?, count, buckets, secret()))
}

/// A random word of this process.
fn secret() -> u64 {
    static SECRET: OnceLock<u64> = OnceLock::new();
    *SECRET.get_or_init(|| RandomState::new().build_hasher().finish())
}

fn sample_of<T: Ordered>(
    elements: &[T],
    count: usize,
    buckets: usize,
    secret: u64,
) -> Result<Chunk, KernelError> {
    let len = elements.len();
    let count = count.min(len);
    let mut words = vec![len as u64, buckets as u64, 0];
    for part in 0..count {
        let (start, end) = (part * len / count, (part + 1) * len / count);
        let at = start + (mixed(secret ^ part as u64) % (end - start) as u64) as usize;
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
    use crate::exchange::placed::run_placed;
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
            let counts = Measure::CountDealt(map.clone()).run(&args).unwrap().to_vec::<i64>().unwrap();
            let dealt = run_placed(&Exchange::Deal(map.clone()), &args, &[]).unwrap();
            let lengths: Vec<i64> = dealt.iter().take(3).map(|piece| piece.len() as i64).collect();
            assert_eq!(counts[1..], lengths, "counted {counts:?}");
            made.push(dealt);
        }
        let tables = if map.with_positions { 2 } else { 1 };
        let mut out = vec![Vec::new(); tables];
        for bucket in 0..3 {
            let column = |table: usize| made.iter().map(|dealt| dealt[3 * table + bucket].clone()).collect();
            let columns: Vec<Vec<Chunk>> = (0..tables).map(column).collect();
            let sorted = run_placed(&Exchange::Sort(map.clone()), &[], &columns).unwrap();
            out.iter_mut().zip(sorted).for_each(|(out, made)| out.extend(made.to_vec::<i64>().unwrap()));
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

    /// Sorts chunks of so many elements, which are mixed, few of them far from the others.
    fn sort_in_buckets(direction: Direction, with_positions: bool, place_count: usize) {
        const LEN: usize = 5000;
        let number = |at: usize| {
            let mixed = mixed(at as u64);
            match mixed % 100 {
                0 => f64::NAN,
                1 => -0.0,
                2 => 0.0,
                3 => f64::from_bits(mixed),
                _ => (mixed >> 40) as f64,
            }
        };
        let all: Vec<f64> = (0..3 * LEN).map(number).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|&a, &b| direction.compare(&all[a].key(), &all[b].key()));
        let places = (1..=place_count).map(|place| order[place * all.len() / (place_count + 1)]);
        let splitter = |at: usize| Splitter { key: all[at].key().into(), position: at as u64 };
        let starts = (0..3).map(|chunk| (chunk * LEN) as u64).collect();
        let map = SortMap { direction, with_positions, starts, splitters: places.map(splitter).collect() };
        let deal = |(number, elements): (i64, &[f64])| {
            let args = [chunk(elements), chunk(&[number])];
            run_placed(&Exchange::Deal(map.clone()), &args, &[]).unwrap()
        };
        let dealt: Vec<Vec<Chunk>> = (0..).zip(all.chunks(LEN)).map(deal).collect();
        let (mut elements, mut positions) = (Vec::new(), Vec::new());
        for bucket in 0..=place_count {
            let column = |at: usize| dealt.iter().map(|pieces| pieces[at].clone()).collect();
            let mut tables: Vec<Vec<Chunk>> = vec![column(bucket)];
            tables.extend(with_positions.then(|| column(place_count + 1 + bucket)));
            let made = run_placed(&Exchange::Sort(map.clone()), &[], &tables).unwrap();
            elements.extend(made[0].to_vec::<f64>().unwrap());
            positions.extend(made.iter().skip(1).flat_map(|made| made.to_vec::<i64>().unwrap()));
        }
        let bits = |x: f64| x.to_bits();
        let expected = order.iter().map(|&at| bits(all[at]));
        assert!(elements.into_iter().map(bits).eq(expected), "{direction:?}, {place_count} places");
        if with_positions {
            assert!(positions.into_iter().eq(order.into_iter().map(|at| at as i64)), "{direction:?}");
        }
    }

    #[test]
    fn many_elements_are_sorted_to_the_bit() {
        for direction in [Direction::Ascending, Direction::Descending] {
            for place_count in [0, 1, 2, 3, 40] {
                sort_in_buckets(direction, false, place_count);
                sort_in_buckets(direction, true, place_count);
            }
        }
    }

    #[test]
    fn elements_at_places_of_the_order_are_those_of_a_sort_without_the_other_buckets() {
        use crate::evaluate::Place;
        let chunks: [&[i64]; 2] = [&[5, 1, 9, 1], &[7, 1, 2, 9]];
        let map = map(Direction::Ascending, false, &[(1, 3), (7, 4)]);
        // In order: 1 | 1 1 2 5 | 7 9 9; of the last two buckets the places 1 and 3, and 0.
        let pick = Exchange::Pick { map, wanted: vec![false, true, true] };
        let picked = |(number, elements): (i64, &&[i64])| {
            run_placed(&pick, &[chunk(elements), chunk(&[number])], &[]).unwrap()
        };
        let made: Vec<Vec<Chunk>> = (0..).zip(&chunks).map(picked).collect();
        let ranked = Exchange::Ranked { direction: Direction::Ascending, ranks: vec![1, 3, 0] };
        let at = |bucket: usize, origin: usize, count: usize| {
            let site = Site { place: Place { origin: &[origin], extents: &[count] }, stored: 0 };
            let column = made.iter().map(|pieces| pieces[bucket].clone()).collect();
            ranked.run(site, &[], &[column], &mut Scratch::new()).unwrap()[0].to_vec::<i64>().unwrap()
        };
        assert_eq!((at(0, 0, 2), at(1, 2, 1)), (vec![1, 5], vec![7]));
    }

    #[test]
    fn equal_elements_fall_into_several_buckets() {
        let map = map(Direction::Ascending, false, &[(3, 2), (3, 5)]);
        let dealt = run_placed(&Exchange::Deal(map), &[chunk(&[3i64; 4]), chunk(&[0i64])], &[]).unwrap();
        assert_eq!(dealt.iter().map(Chunk::len).collect::<Vec<_>>(), [2, 2, 0]);
    }

    #[test]
    fn elements_are_dealt_to_more_buckets_than_two_bytes_can_number() {
        const BUCKETS: i64 = 70_000;
        let splitters: Vec<(i64, u64)> = (1..BUCKETS).map(|at| (at, 0)).collect();
        let elements = [BUCKETS - 1, 3, 65_536, 65_535, 0, 3, 65_537];
        let deal = Exchange::Deal(map(Direction::Ascending, true, &splitters));
        let dealt = run_placed(&deal, &[chunk(&elements), chunk(&[0i64])], &[]).unwrap();
        let (dealt, positions) = dealt.split_at(BUCKETS as usize);
        for (bucket, (piece, positions)) in (0..).zip(dealt.iter().zip(positions)) {
            let at = |&(_, x): &(i64, i64)| x == bucket;
            let expected: Vec<(i64, i64)> = (0..).zip(elements).filter(at).collect();
            let found = positions.to_vec::<i64>().unwrap().into_iter().zip(piece.to_vec::<i64>().unwrap());
            assert!(found.eq(expected), "bucket {bucket}");
        }
    }

    #[test]
    fn elements_that_are_made_for_the_places_of_samples_are_not_all_that_is_taken() {
        let (count, length) = (100u64, 1000);
        let found = |of: u64, by: u64| {
            let mut elements = vec![7i64; count as usize * length];
            for part in 0..count {
                let at = part as usize * length + (mixed(of ^ part) % length as u64) as usize;
                elements[at] = -1;
            }
            let words = sample_of(&elements, count as usize, 4, by).unwrap().to_vec::<u64>().unwrap();
            words[SAMPLE_WORDS..].chunks(SAMPLE_WORDS).filter(|row| elements[row[2] as usize] == -1).count()
        };
        assert_eq!(found(5, 5), 100, "who knows the secret chooses the samples");
        assert!(found(0, secret()) < 10);
    }

    #[test]
    fn samples_come_from_all_parts_of_a_chunk() {
        let x = chunk(&(0..1000).collect::<Vec<i32>>());
        let words = Measure::Sample { count: 10, buckets: 7 }.run(&[x]).unwrap().to_vec::<u64>().unwrap();
        assert_eq!((words.len(), words[0]), (33, 1000));
        for (part, sample) in words[3..].chunks(3).enumerate() {
            assert_eq!(sample[2] / 100, part as u64);
            assert_eq!(sample[1], u64::from((sample[2] as i32).key()));
        }
        let few = Measure::Sample { count: 10, buckets: 7 }.run(&[chunk(&[2.0, 1.0])]).unwrap();
        assert_eq!(few.shape(), [3, 3]);
    }
}
