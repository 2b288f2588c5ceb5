//! Freed copies that are still held, of objects that have been made again meanwhile.
//!
//! A freed copy stays in place while a client reads it or it is being written to disk. If its task runs again
//! in that time, the new value under the same id may contain other references, and references inside the
//! freed copy may name objects that are gone. So the freed copy never counts again: the new copy replaces it
//! here, and its range is freed when its last reader and the write to disk have ended.
//!
//! Pins name an object, not a copy of it. A client that had the replaced copy pinned holds that copy, and the
//! new one as well, until it has removed all its pins of the object.

use super::Store;
use tharsis_types::{ClientId, Extent, ObjectId};

/// A freed copy whose object has a newer copy.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) extent: Extent,
    /// Clients that had it pinned when it was replaced.
    readers: Vec<ClientId>,
    /// It is being written to disk.
    is_writing: bool,
}

impl Store {
    /// Moves a freed copy of an object aside, if there is one, so that a new one can take its place.
    pub(super) fn replace_freed(&mut self, object: ObjectId) {
        let Some(freed) = self.objects.get(&object).filter(|stored| stored.doomed && stored.sealed) else {
            return;
        };
        assert_eq!(freed.age, 0, "a freed copy of {object} waits to make room");
        let (extent, is_writing) = (freed.extent, self.is_copy_writing(object));
        let has_pinned = |client: &ClientId| self.pins[client].contains_key(&object);
        let readers: Vec<_> = self.pins.keys().copied().filter(has_pinned).collect();
        assert!(is_writing || !readers.is_empty(), "a freed copy of {object} is kept for nobody");
        self.objects.remove(&object);
        self.replaced.entry(object).or_default().push(Replaced { extent, readers, is_writing });
    }

    /// Number of pins with which a new copy of an object begins: those of readers of a replaced one.
    pub(super) fn earlier_pins(&self, object: ObjectId) -> u32 {
        if !self.replaced.contains_key(&object) {
            return 0;
        }
        self.pins.values().filter_map(|pins| pins.get(&object)).sum()
    }

    /// The latest of the replaced copies of an object that a client holds.
    pub(super) fn replaced_for(&self, client: ClientId, object: ObjectId) -> Option<Extent> {
        let held = self.replaced.get(&object)?.iter().rfind(|old| old.readers.contains(&client));
        held.map(|old| old.extent)
    }

    /// Whether the present copy of an object is being written to disk, not one that it replaced.
    pub(super) fn is_copy_writing(&self, object: ObjectId) -> bool {
        let replaced = self.replaced.get(&object);
        self.disk.is_writing(object) && !replaced.is_some_and(|all| all.iter().any(|old| old.is_writing))
    }

    /// A write to disk has ended; true if the copy has been replaced meanwhile.
    pub(super) fn replaced_written(&mut self, object: ObjectId) -> bool {
        let all = self.replaced.get_mut(&object);
        let Some(old) = all.and_then(|all| all.iter_mut().find(|old| old.is_writing)) else { return false };
        old.is_writing = false;
        self.free_replaced(object);
        true
    }

    /// A client has none of its pins of an object any more.
    pub(super) fn reader_left(&mut self, client: ClientId, object: ObjectId) {
        if let Some(all) = self.replaced.get_mut(&object) {
            all.iter_mut().for_each(|old| old.readers.retain(|reader| *reader != client));
            self.free_replaced(object);
        }
    }

    fn free_replaced(&mut self, object: ObjectId) {
        let Some(all) = self.replaced.get_mut(&object) else { return };
        let free: Vec<_> = all.extract_if(.., |old| old.readers.is_empty() && !old.is_writing).collect();
        if all.is_empty() {
            self.replaced.remove(&object);
        }
        free.into_iter().for_each(|old| self.give(self.span(old.extent)));
    }

    /// Asserts that something holds each replaced copy, and that each pin of an object without a present copy
    /// has a replaced one.
    pub(super) fn check_replaced(&self) {
        for (object, all) in &self.replaced {
            assert!(!all.is_empty(), "an empty list of replaced copies of {object} is kept");
            let writing = all.iter().filter(|old| old.is_writing).count();
            assert!(writing <= usize::from(self.disk.is_writing(*object)), "{object} is not being written");
            for old in all {
                assert!(old.is_writing || !old.readers.is_empty(), "{object} is kept for nobody");
                let has_pinned = |reader| self.pins.get(reader).is_some_and(|p| p.contains_key(object));
                assert!(old.readers.iter().all(has_pinned), "a reader of {object} has it not pinned");
            }
        }
        for (client, pins) in &self.pins {
            for object in pins.keys().filter(|object| !self.objects.contains_key(object)) {
                let mut old = self.replaced.get(object).into_iter().flatten();
                assert!(old.any(|old| old.readers.contains(client)), "{object} is pinned and not here");
            }
        }
    }
}
