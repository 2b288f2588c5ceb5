//! Memory that batches in flight use: the objects that they read, each counted once, and their own memory
//! while they run. Batches that wait for a CPU have only their objects, so these can come to memory while
//! others run.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The objects in use, and the bytes of batches beside them.
#[derive(Debug)]
pub(super) struct InUse<K> {
    objects: HashMap<K, Object>,
    object_bytes: u64,
    /// The number of batches that take these bytes beside their objects while they run.
    own_bytes: BTreeMap<u64, usize>,
    /// Batches that can run at a time.
    running_max: usize,
}

#[derive(Debug)]
struct Object {
    /// Batches that use it.
    users: u32,
    bytes: u64,
}

/// The objects of one batch, and its bytes beside them.
#[derive(Debug)]
pub(super) struct Use<K> {
    objects: Vec<K>,
    own_bytes: u64,
}

impl<K: Copy + Eq + Hash> InUse<K> {
    pub(super) fn new(running_max: usize) -> InUse<K> {
        InUse { objects: HashMap::new(), object_bytes: 0, own_bytes: BTreeMap::new(), running_max }
    }

    /// Upper bound on the bytes in use together with these objects and the bytes that a batch takes beside
    /// them: whichever batches run.
    pub(super) fn bytes_with(&self, objects: &[(K, u64)], own_bytes: u64) -> u64 {
        let new = objects.iter().filter(|(key, _)| !self.objects.contains_key(key));
        let larger = self.own_bytes.range(own_bytes..).rev();
        let smaller = self.own_bytes.range(..own_bytes).rev();
        let each = |(&bytes, &count): (&u64, &usize)| std::iter::repeat_n(bytes, count);
        let own = larger.flat_map(each).chain([own_bytes]).chain(smaller.flat_map(each));
        self.object_bytes + new.map(|(_, bytes)| bytes).sum::<u64>() + own.take(self.running_max).sum::<u64>()
    }

    /// A batch begins to use these objects, each named once.
    pub(super) fn begin(&mut self, objects: &[(K, u64)], own_bytes: u64) -> Use<K> {
        for &(key, bytes) in objects {
            let object = self.objects.entry(key).or_insert_with(|| {
                self.object_bytes += bytes;
                Object { users: 0, bytes }
            });
            object.users += 1;
        }
        *self.own_bytes.entry(own_bytes).or_default() += 1;
        Use { objects: objects.iter().map(|(key, _)| *key).collect(), own_bytes }
    }

    /// A batch has ended.
    pub(super) fn end(&mut self, of: Use<K>) {
        for key in of.objects {
            let Some(object) = self.objects.get_mut(&key) else { continue };
            object.users -= 1;
            if object.users == 0 {
                assert!(object.bytes <= self.object_bytes, "an object in use was not counted");
                self.object_bytes -= object.bytes;
                self.objects.remove(&key);
            }
        }
        if let Some(count) = self.own_bytes.get_mut(&of.own_bytes) {
            *count -= 1;
            if *count == 0 {
                self.own_bytes.remove(&of.own_bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_counts_once_until_its_last_user_ends() {
        let mut in_use = InUse::new(2);
        let first = in_use.begin(&[('a', 10), ('b', 20)], 1);
        assert_eq!(in_use.bytes_with(&[('a', 10), ('c', 40)], 2), 31 + 40 + 2);
        let second = in_use.begin(&[('a', 10), ('c', 40)], 2);
        assert_eq!(in_use.bytes_with(&[], 0), 73);
        in_use.end(first);
        assert_eq!(in_use.bytes_with(&[], 0), 52);
        in_use.end(second);
        assert_eq!((in_use.bytes_with(&[], 0), in_use.objects.len()), (0, 0));
    }

    #[test]
    fn batches_that_wait_take_nothing_beside_their_objects() {
        let mut in_use = InUse::new(2);
        let uses = [5, 100, 30, 100].map(|own_bytes| in_use.begin(&[(own_bytes, 1)], own_bytes));
        // Of four batches two run, perhaps the largest; two of them read the same object.
        assert_eq!(in_use.bytes_with(&[], 0), 3 + 200);
        assert_eq!(in_use.bytes_with(&[(7, 1)], 300), 4 + 400);
        let [small, large, middle, other] = uses;
        in_use.end(large);
        assert_eq!(in_use.bytes_with(&[], 0), 3 + 130);
        in_use.end(other);
        assert_eq!(in_use.bytes_with(&[], 0), 2 + 35);
        assert_eq!(in_use.bytes_with(&[], 10), 2 + 40);
        [small, middle].into_iter().for_each(|of| in_use.end(of));
        assert_eq!(in_use.bytes_with(&[], 0), 0);
    }
}
