//! Objects that batches in flight read, each counted once.

use std::collections::HashMap;
use std::hash::Hash;

/// The objects in use, and the bytes of batches beside them.
#[derive(Debug)]
pub(super) struct InUse<K> {
    objects: HashMap<K, Object>,
    bytes: u64,
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
    pub(super) fn new() -> InUse<K> {
        InUse { objects: HashMap::new(), bytes: 0 }
    }

    /// Bytes that would be in use together with these objects and the bytes that a batch takes beside them.
    pub(super) fn bytes_with(&self, objects: &[(K, u64)], own_bytes: u64) -> u64 {
        let new = objects.iter().filter(|(key, _)| !self.objects.contains_key(key));
        self.bytes + own_bytes + new.map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// A batch begins to use these objects, each named once.
    pub(super) fn begin(&mut self, objects: &[(K, u64)], own_bytes: u64) -> Use<K> {
        self.bytes = self.bytes_with(objects, own_bytes);
        for &(key, bytes) in objects {
            self.objects.entry(key).or_insert(Object { users: 0, bytes }).users += 1;
        }
        Use { objects: objects.iter().map(|(key, _)| *key).collect(), own_bytes }
    }

    /// A batch has ended.
    pub(super) fn end(&mut self, of: Use<K>) {
        let mut left = of.own_bytes;
        for key in of.objects {
            let Some(object) = self.objects.get_mut(&key) else { continue };
            object.users -= 1;
            if object.users == 0 {
                left += object.bytes;
                self.objects.remove(&key);
            }
        }
        assert!(left <= self.bytes, "a batch lets go of {left} bytes, and {} are in use", self.bytes);
        self.bytes -= left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_counts_once_until_its_last_user_ends() {
        let mut in_use = InUse::new();
        let first = in_use.begin(&[('a', 10), ('b', 20)], 1);
        assert_eq!(in_use.bytes_with(&[('a', 10), ('c', 40)], 2), 31 + 40 + 2);
        let second = in_use.begin(&[('a', 10), ('c', 40)], 2);
        assert_eq!(in_use.bytes, 73);
        in_use.end(first);
        assert_eq!(in_use.bytes, 52);
        in_use.end(second);
        assert_eq!((in_use.bytes, in_use.objects.len()), (0, 0));
    }
}
