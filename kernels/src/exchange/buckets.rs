//! The bucket of an element among those between places in an order.

use crate::order::{Digits, Direction, Key, Ordered, Wide};
use serde::{Deserialize, Serialize};

/// A place between two buckets. Elements with smaller keys come before it, and of those with its own key the
/// ones at smaller positions: so elements that are all equal fall into many buckets too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Splitter {
    pub key: Wide,
    pub position: u64,
}

/// Finds the bucket of an element by a table over parts of all keys. Keys ascend here in the direction of the
/// sort.
pub(super) struct Buckets<K> {
    keys: Vec<K>,
    positions: Vec<u64>,
    parts: Digits,
    /// The number of splitters in the parts before each part, and before the end.
    before: Vec<u32>,
    /// The bucket of each part in which no splitter lies, and [`CUT`] for the others.
    wholes: Vec<u32>,
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
        let parts = Digits::new(direction, low, high, ((high - low) / count).max(1).ilog2());
        let mut before = vec![0; 1 + parts.count()];
        keys.iter().for_each(|key| before[1 + parts.of(key.prefix())] += 1);
        let mut total = 0;
        for count in &mut before {
            total += *count;
            *count = total;
        }
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
        let mut rest = elements.iter().zip(start..);
        self.parts.each(elements, |part, key| {
            if let Some((&x, position)) = rest.next() {
                let bucket = match self.wholes[part] {
                    CUT => self.find(part, key, position),
                    bucket => bucket as usize,
                };
                visit(bucket, x, position);
            }
        });
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

/// Parts of the table of buckets for each of these: most elements need no search.
const PARTS_PER_BUCKET: u64 = 1 << 9;
/// The table has up to twice as many parts, and stays in the second-level cache: with a smaller one, that of
/// the first level, more elements need a search, which takes longer than a look into the second level.
const PARTS_MAX: u64 = 1 << 14;

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
