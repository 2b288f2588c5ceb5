//! The bucket of an element among those between places in an order.

use crate::cpu::{Kernel, dispatch};
use crate::order::{Direction, Key, Ordered, Wide};
use serde::{Deserialize, Serialize};

/// A place between two buckets. Elements with smaller keys come before it, and of those with its own key the
/// ones at smaller positions: so elements that are all equal fall into many buckets too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Splitter {
    pub key: Wide,
    pub position: u64,
}

/// Finds the bucket of an element by a table over equal parts of all keys. Keys ascend here in the direction
/// of the sort.
pub(super) struct Buckets<K> {
    keys: Vec<K>,
    positions: Vec<u64>,
    parts: Parts,
    /// The number of splitters with smaller prefixes than each part begins with.
    before: Vec<u32>,
    /// The bucket of each part in which no splitter lies, and [`CUT`] for the others.
    wholes: Vec<u32>,
}

/// Equal parts of a range of prefixes in which all splitters lie. What is outside is of the first part or of
/// the last one.
#[derive(Clone, Copy)]
struct Parts {
    direction: Direction,
    low: u64,
    high: u64,
    shift: u32,
}

impl Parts {
    #[inline(always)]
    fn of(self, prefix: u64) -> usize {
        ((prefix.clamp(self.low, self.high) - self.low) >> self.shift) as usize
    }
}

/// Stands for the bucket of a part in which a splitter lies.
const CUT: u32 = u32::MAX;

impl<K: Key> Buckets<K> {
    /// The buckets between splitters, which are in order.
    pub(super) fn new(direction: Direction, splitters: &[Splitter]) -> Buckets<K> {
        let key = |splitter: &Splitter| direction.ascending(K::narrowed(splitter.key));
        let keys: Vec<K> = splitters.iter().map(key).collect();
        let end = |key: Option<&K>| key.map_or(0, |key| key.prefix());
        let (first, last) = (end(keys.first()), end(keys.last()));
        // As wide as the other buckets, if those at both ends are like them.
        let margin = (last - first) / (keys.len() as u64).saturating_sub(1).max(1);
        let (low, high) = (first.saturating_sub(margin), last.saturating_add(margin));
        let count = (PARTS_PER_BUCKET * keys.len() as u64).clamp(1, PARTS_MAX);
        let shift = ((high - low) / count).max(1).ilog2();
        let parts = Parts { direction, low, high, shift };
        let begin = |part: u64| keys.partition_point(|key| key.prefix() - low < part << shift) as u32;
        let mut before: Vec<u32> = (0..=(high - low) >> shift).map(begin).collect();
        before.push(keys.len() as u32);
        let whole = |ends: &[u32]| if ends[0] == ends[1] { ends[0] } else { CUT };
        let wholes = before.windows(2).map(whole).collect();
        let positions = splitters.iter().map(|splitter| splitter.position).collect();
        Buckets { keys, positions, parts, before, wholes }
    }

    /// Calls `visit` with the bucket of each element, the element and its position, one after the other.
    #[inline(always)]
    pub(super) fn each<T: Ordered<Key = K>>(
        &self,
        elements: &[T],
        start: u64,
        mut visit: impl FnMut(usize, T, u64),
    ) {
        let mut parts = [0; AT_ONCE];
        for (elements, start) in elements.chunks(AT_ONCE).zip((start..).step_by(AT_ONCE)) {
            dispatch(FindParts { of: self.parts, elements, parts: &mut parts });
            for ((&x, &part), position) in elements.iter().zip(&parts).zip(start..) {
                let part = part as usize;
                let bucket = match self.wholes[part] {
                    CUT => self.find(part, self.parts.direction.ascending(x.key()), position),
                    bucket => bucket as usize,
                };
                visit(bucket, x, position);
            }
        }
    }

    /// The number of places that do not come behind an element of a part.
    fn find(&self, part: usize, key: K, position: u64) -> usize {
        let (first, last) = (self.before[part] as usize, self.before[part + 1] as usize);
        let mut bucket = first + self.keys[first..last].partition_point(|splitter| *splitter < key);
        if self.keys.get(bucket) == Some(&key) {
            let alike = self.keys[bucket..].partition_point(|splitter| *splitter == key);
            let positions = &self.positions[bucket..bucket + alike];
            bucket += positions.partition_point(|&from| from <= position);
        }
        bucket
    }
}

/// Finds the part of each element. Without branches, so that it runs in vectors.
struct FindParts<'a, T> {
    of: Parts,
    elements: &'a [T],
    parts: &'a mut [u32; AT_ONCE],
}

impl<T: Ordered> Kernel for FindParts<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (part, x) in self.parts.iter_mut().zip(self.elements) {
            *part = self.of.of(self.of.direction.ascending(x.key()).prefix()) as u32;
        }
    }
}

/// Parts of the table of buckets for each of these: most elements need no search.
const PARTS_PER_BUCKET: u64 = 1 << 9;
/// A larger table would not stay in the first-level cache.
const PARTS_MAX: u64 = 1 << 12;
/// Elements whose parts are found before the first of them is used.
const AT_ONCE: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_equal_places_between_buckets_are_dealt_by_position() {
        let splitters = [(-5, 9), (3, 2), (3, 5), (3, 7), (i64::MAX, 1)];
        let splitters: Vec<Splitter> =
            splitters.map(|(x, position): (i64, u64)| Splitter { key: x.key().into(), position }).to_vec();
        let buckets = Buckets::<u64>::new(Direction::Ascending, &splitters);
        for x in [i64::MIN, -6, -5, -4, 2, 3, 4, 1 << 40, i64::MAX] {
            for position in 0..12 {
                let before =
                    |splitter: &&Splitter| (splitter.key, splitter.position) <= (x.key().into(), position);
                let expected = splitters.iter().filter(before).count();
                let mut found = Vec::new();
                buckets.each(&[x], position, |bucket, x, position| found.push((bucket, x, position)));
                assert_eq!(found, [(expected, x, position)]);
            }
        }
    }
}
