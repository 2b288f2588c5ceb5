//! Objects with a copy on disk, and those on their way there.
//!
//! A copy on disk counts as the copy of the node: the ledgers of the cluster know that the node has the
//! object, not where it has it. A copy that is being written stays in the arena until the disk has it.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use tharsis_types::ObjectId;
use tharsis_types::hash::IdMap;

/// Copies on disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    copies: IdMap<ObjectId, OnDisk>,
    there_bytes: u64,
    /// Number of copies on disk by length.
    there_lens: BTreeMap<u64, usize>,
    /// Copies that are there, in the order in which they were given to the disk.
    places: BTreeMap<u64, ObjectId>,
    next_place: u64,
    writing_bytes: u64,
    /// Copies that are not needed any more and still on disk.
    discarded: Vec<ObjectId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnDisk {
    len: u64,
    state: State,
    place: u64,
    /// Number of the copy that was written.
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    There,
}

impl Disk {
    /// A copy with a number is being written.
    pub(super) fn begin(&mut self, object: ObjectId, len: u64, number: u64) {
        if let Entry::Vacant(vacant) = self.copies.entry(object) {
            vacant.insert(OnDisk { len, state: State::Writing, place: self.next_place, number });
            self.next_place += 1;
            self.writing_bytes += len;
        }
    }

    /// A write ended; false if no such copy was being written.
    pub(super) fn written(&mut self, object: ObjectId, complete: bool) -> bool {
        let Entry::Occupied(mut entry) = self.copies.entry(object) else { return false };
        if entry.get().state != State::Writing {
            return false;
        }
        let len = entry.get().len;
        self.writing_bytes -= len;
        if complete {
            entry.get_mut().state = State::There;
            self.there_bytes += len;
            *self.there_lens.entry(len).or_default() += 1;
            self.places.insert(entry.get().place, object);
        } else {
            entry.remove();
        }
        true
    }

    /// A copy that is on disk is not needed any more.
    pub(super) fn discard(&mut self, object: ObjectId) {
        if self.forget(object) {
            self.discarded.push(object);
        }
    }

    /// The disk has lost a copy that was there; false if it had none.
    pub(super) fn forget(&mut self, object: ObjectId) -> bool {
        let Some(len) = self.len_of(object) else { return false };
        if let Some(copy) = self.copies.remove(&object) {
            self.places.remove(&copy.place);
        }
        self.there_bytes -= len;
        if let Some(count) = self.there_lens.get_mut(&len) {
            *count -= 1;
            if *count == 0 {
                self.there_lens.remove(&len);
            }
        }
        true
    }

    /// Length of the longest copy that is there; 0 if none is.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.there_lens.last_key_value().map_or(0, |(len, _)| *len)
    }

    /// Length of a copy that is there.
    pub(super) fn len_of(&self, object: ObjectId) -> Option<u64> {
        self.copies.get(&object).filter(|copy| copy.state == State::There).map(|copy| copy.len)
    }

    /// Number of a copy that is there.
    pub(super) fn number_of(&self, object: ObjectId) -> Option<u64> {
        self.copies.get(&object).filter(|copy| copy.state == State::There).map(|copy| copy.number)
    }

    /// Position of a copy in the order in which copies were given to the disk.
    pub(super) fn place(&self, object: ObjectId) -> Option<u64> {
        self.copies.get(&object).filter(|copy| copy.state == State::There).map(|copy| copy.place)
    }

    /// The nearest place before `place` that has a copy on disk.
    pub(super) fn place_before(&self, place: u64) -> Option<u64> {
        self.places.range(..place).next_back().map(|(place, _)| *place)
    }

    /// Copies that are on disk behind a place.
    pub(super) fn behind(&self, place: u64) -> impl Iterator<Item = ObjectId> {
        self.places.range(place.saturating_add(1)..).map(|(_, object)| *object)
    }

    pub(super) fn is_there(&self, object: ObjectId) -> bool {
        self.len_of(object).is_some()
    }

    pub(super) fn is_writing(&self, object: ObjectId) -> bool {
        self.copies.get(&object).is_some_and(|copy| copy.state == State::Writing)
    }

    pub(super) fn take_discarded(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.discarded)
    }

    pub(super) fn there_count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn there_bytes(&self) -> u64 {
        self.there_bytes
    }

    pub(super) fn writing_bytes(&self) -> u64 {
        self.writing_bytes
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.copies.keys().copied()
    }

    pub(super) fn check(&self) {
        let sum = |state| self.copies.values().filter(|c| c.state == state).map(|c| c.len).sum::<u64>();
        assert_eq!(sum(State::There), self.there_bytes, "bytes on disk");
        let places: Vec<_> = self.places.iter().map(|(place, object)| (Some(*place), *object)).collect();
        assert!(places.iter().all(|(place, object)| self.place(*object) == *place), "places on disk");
        assert_eq!(places.len(), self.there_count(), "copies with a place on disk");
        assert_eq!(sum(State::Writing), self.writing_bytes, "bytes on their way to disk");
        let by_len: u64 = self.there_lens.iter().map(|(len, count)| len * *count as u64).sum();
        assert_eq!(by_len, self.there_bytes, "lengths of copies on disk");
    }
}
