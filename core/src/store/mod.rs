//! Layout of the arena: objects, granted regions, pins, copies that may go.
//!
//! A client asks for a *region*, carves objects out of it and seals each when it is complete, in any order.
//! Until then, no other client can see the object. A *primary* copy stays until its owner frees it. A
//! *secondary* copy came from another node and may be evicted when no client has it pinned. Pins belong to
//! clients and end with them.
//!
//! A primary copy without pins may be written to disk, and is then evicted like a secondary one: it can be
//! read back. A copy in the arena is in one of four states: *held* (pinned, being written to disk, or not
//! complete), *evictable*, *spillable*, or *doomed* (freed, and gone with its last pin).
//!
//! | file | concern |
//! |---|---|
//! | `regions.rs` | regions that clients write to, and the objects that are sealed in them |
//! | `replaced.rs` | freed copies that are still held, of objects that were made again |
//! | `room.rs` | the fill of the arena, and eviction |
//! | `extents.rs` | free ranges |
//! | `annex.rs` | objects larger than the arena's memory, in a file on disk, if there is one |
//! | `disk.rs` | copies on disk, and the order in which they were written |
//! | `contents.rs` | the contents of the store, for people |

mod annex;
mod contents;
mod disk;
mod extents;
mod regions;
mod replaced;
mod room;

pub use contents::{Content, Phase, Unowned};
pub use extents::{Extents, NotInUse, rounded};
pub use room::Usage;

use crate::Now;
use crate::journal::{About, Entry, Fact, Journal};
use annex::Annex;
use disk::Disk;
use regions::Region;
use replaced::Replaced;
use std::collections::BTreeMap;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, Extent, Failure, ObjectId};

/// The objects in one node's arena.
#[derive(Debug)]
pub struct Store {
    extents: Extents,
    objects: IdMap<ObjectId, Stored>,
    regions: IdMap<ClientId, Vec<Region>>,
    pins: IdMap<ClientId, IdMap<ObjectId, u32>>,
    /// Copies without pins that exist elsewhere or on disk, oldest first.
    evictable: BTreeMap<u64, ObjectId>,
    evictable_bytes: u64,
    /// Primary copies without pins that are only here, oldest first.
    spillable: BTreeMap<u64, ObjectId>,
    spillable_bytes: u64,
    disk: Disk,
    annex: Annex,
    /// Places of copies still being received of objects that were written here meanwhile.
    superseded: IdMap<ObjectId, Extent>,
    /// Freed copies that are still held, of objects that have a newer copy.
    replaced: IdMap<ObjectId, Vec<Replaced>>,
    /// Values that clients wrote and still read although the object was already here, by the client's name
    /// for its reference.
    doubles: BTreeMap<(ClientId, u64), Extent>,
    clock: u64,
    journal: Journal,
}

#[derive(Debug)]
struct Stored {
    extent: Extent,
    primary: bool,
    /// Complete and readable; false while it is being received.
    sealed: bool,
    /// Freed by its owner; goes with the last pin.
    doomed: bool,
    pins: u32,
    /// Place in `evictable` or `spillable`; 0 while it is held, and for a primary copy in the annex.
    age: u64,
    /// Number of the copy: see [`Store::copy_number`].
    number: u64,
}

impl Store {
    /// An empty arena without an annex.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self::with_annex(capacity_bytes, 0)
    }

    /// An empty arena with an annex of the given size.
    #[must_use]
    pub fn with_annex(capacity_bytes: u64, annex_bytes: u64) -> Self {
        Self {
            extents: Extents::new(capacity_bytes),
            objects: IdMap::default(),
            regions: IdMap::default(),
            pins: IdMap::default(),
            evictable: BTreeMap::new(),
            evictable_bytes: 0,
            spillable: BTreeMap::new(),
            spillable_bytes: 0,
            disk: Disk::default(),
            annex: Annex::new(capacity_bytes, annex_bytes),
            superseded: IdMap::default(),
            replaced: IdMap::default(),
            doubles: BTreeMap::new(),
            clock: 0,
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the changes that follow happen.
    pub fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of copies of an object here.
    pub fn past(&self, object: ObjectId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Object(object))
    }

    /// Makes room for a copy that is about to be received.
    ///
    /// # Errors
    /// As [`Store::grant`].
    pub fn receive(
        &mut self,
        object: ObjectId,
        len: u64,
        evicted: &mut Vec<ObjectId>,
    ) -> Result<Extent, Failure> {
        let taken = self.allocate(len, Extents::take, evicted)?;
        let extent = Extent { offset: taken.offset, len };
        let primary = self.disk.is_there(object);
        self.replace_freed(object);
        let (pins, number) = (self.earlier_pins(object), self.next_number());
        let stored = Stored { extent, primary, sealed: false, doomed: false, pins, age: 0, number };
        let old = self.objects.insert(object, stored);
        assert!(old.is_none(), "{object} is received and here already");
        Ok(extent)
    }

    /// The receipt of a copy from another node or from disk has ended, `complete` or not.
    pub fn received(&mut self, object: ObjectId, complete: bool) {
        if let Some(extent) = self.superseded.remove(&object) {
            self.give(self.span(extent));
            return;
        }
        let Some(stored) = self.objects.get_mut(&object).filter(|s| !s.sealed) else { return };
        stored.sealed = true;
        if complete && !stored.doomed {
            self.rest(object);
        } else {
            self.drop_object(object);
        }
    }

    /// Place of a copy that is being received and was not freed meanwhile.
    #[must_use]
    pub fn receiving(&self, object: ObjectId) -> Option<Extent> {
        self.objects.get(&object).filter(|s| !s.sealed && !s.doomed).map(|s| s.extent)
    }

    /// Whether a copy is on disk.
    #[must_use]
    pub fn is_spilled(&self, object: ObjectId) -> bool {
        self.disk.is_there(object)
    }

    /// Length of a copy on disk.
    #[must_use]
    pub fn spilled_len(&self, object: ObjectId) -> Option<u64> {
        self.disk.len_of(object)
    }

    /// Position of a copy in the order in which copies were given to the disk, if it is there.
    #[must_use]
    pub fn place_on_disk(&self, object: ObjectId) -> Option<u64> {
        self.disk.place(object)
    }

    /// The nearest place before `place` that has a copy on disk.
    #[must_use]
    pub fn place_before(&self, place: u64) -> Option<u64> {
        self.disk.place_before(place)
    }

    /// Copies that are on disk behind a place, and their lengths.
    pub fn behind_on_disk(&self, place: u64) -> impl Iterator<Item = (ObjectId, u64)> {
        self.disk.behind(place).filter_map(|object| Some((object, self.disk.len_of(object)?)))
    }

    /// Whether anything of an object is in the arena, complete or not.
    #[must_use]
    pub fn holds(&self, object: ObjectId) -> bool {
        self.objects.contains_key(&object)
    }

    /// The copy that is next to be written to disk or dropped to make room.
    #[must_use]
    pub fn victim(&self) -> Option<(ObjectId, u64)> {
        let (_, object) = self.spillable.first_key_value()?;
        Some((*object, self.objects.get(object)?.extent.len))
    }

    /// A copy is to be written to disk: it stays where it is until [`Store::spilled`].
    pub fn begin_spill(&mut self, object: ObjectId) -> Option<Extent> {
        let stored = self.objects.get(&object).filter(|s| s.primary && s.pins == 0 && s.sealed)?;
        let (extent, number) = (stored.extent, stored.number);
        self.hold(object);
        self.disk.begin(object, extent.len, number);
        self.journal.note(About::Object(object), Fact::SpillBegun);
        Some(extent)
    }

    /// A copy was written to disk, or could not be.
    pub fn spilled(&mut self, object: ObjectId, complete: bool) {
        if !self.disk.written(object, complete) {
            return;
        }
        let fact = if complete { Fact::Spilled } else { Fact::SpillFailed };
        self.journal.note(About::Object(object), fact);
        if self.replaced_written(object) {
            // The bytes on disk are those of the copy that was freed.
            self.disk.discard(object);
            return self.rest(object);
        }
        match self.objects.get(&object) {
            Some(stored) if stored.doomed && stored.pins == 0 => self.drop_object(object),
            Some(stored) if !stored.doomed => return self.rest(object),
            _ => {}
        }
        self.disk.discard(object);
    }

    /// The disk has lost a copy; false if there is another in the arena.
    pub fn spill_lost(&mut self, object: ObjectId) -> bool {
        let resident = self.objects.get(&object).is_some_and(|s| s.sealed);
        if self.disk.forget(object) && resident {
            self.rest(object);
        }
        !resident
    }

    /// Makes a secondary copy a primary one: all others are gone.
    pub fn promote(&mut self, object: ObjectId) {
        let secondary = self.objects.get_mut(&object).filter(|stored| !stored.primary && !stored.doomed);
        if let Some(stored) = secondary {
            stored.primary = true;
            self.rest(object);
        }
    }

    /// Drops a primary copy that can be made again.
    pub fn drop_primary(&mut self, object: ObjectId) {
        if self.objects.get(&object).is_some_and(|s| s.pins == 0 && s.age > 0) {
            self.journal.note(About::Object(object), Fact::Evicted);
            self.drop_object(object);
        }
    }

    /// Takes the copies on disk that are not needed any more.
    pub fn take_discarded(&mut self) -> Vec<ObjectId> {
        self.disk.take_discarded()
    }

    /// Takes the ranges of the annex whose blocks are to be returned to the disk; each is free after
    /// [`Store::blocks_freed`].
    pub fn take_unneeded(&mut self) -> Vec<Extent> {
        self.annex.take_unneeded()
    }

    /// The blocks of such a range were returned to the disk.
    pub fn blocks_freed(&mut self, extent: Extent) {
        self.annex.blocks_freed(extent);
    }

    /// Whether an object of this size would lie in the annex.
    #[must_use]
    pub fn is_for_annex(&self, bytes: u64) -> bool {
        self.extents.capacity_bytes() < bytes && self.annex.capacity_bytes() > 0
    }

    /// Whether an object lies in the annex, or is on its way there.
    #[must_use]
    pub fn is_in_annex(&self, object: ObjectId) -> bool {
        self.objects.get(&object).is_some_and(|stored| self.annex.holds(stored.extent))
    }

    /// The location of an object, if a copy is here and complete.
    #[must_use]
    pub fn find(&self, object: ObjectId) -> Option<Extent> {
        self.objects.get(&object).filter(|s| s.sealed && !s.doomed).map(|s| s.extent)
    }

    /// Number of the copy that another node would read, in the arena or on disk: copies with one number have
    /// the same bytes, and no other copy here has or had it. Those that are read back get a new one.
    #[must_use]
    pub fn copy_number(&self, object: ObjectId) -> Option<u64> {
        let stored = self.objects.get(&object).filter(|s| s.sealed && !s.doomed);
        stored.map(|s| s.number).or_else(|| self.disk.number_of(object))
    }

    /// The location of an object that a client has pinned, even if it was freed meanwhile, and is being
    /// received anew.
    #[must_use]
    pub fn find_pinned(&self, client: ClientId, object: ObjectId) -> Option<Extent> {
        self.pins.get(&client)?.get(&object)?;
        let stored = self.objects.get(&object).filter(|stored| stored.sealed).map(|stored| stored.extent);
        stored.or_else(|| self.replaced_for(client, object))
    }

    /// Pins an object for a client, so that it stays in place.
    pub fn pin(&mut self, client: ClientId, object: ObjectId) -> Option<Extent> {
        let stored = self.objects.get_mut(&object).filter(|s| s.sealed && !s.doomed)?;
        stored.pins += 1;
        let extent = stored.extent;
        self.hold(object);
        *self.pins.entry(client).or_default().entry(object).or_default() += 1;
        Some(extent)
    }

    /// Pins an object once more for a client that has it pinned, even if it was freed meanwhile; false if the
    /// client has no pin of it.
    pub fn pin_again(&mut self, client: ClientId, object: ObjectId) -> bool {
        let count = self.pins.get_mut(&client).and_then(|pins| pins.get_mut(&object));
        let Some(count) = count else { return false };
        *count += 1;
        // The client may read a replaced copy while the new copy is not here.
        if let Some(stored) = self.objects.get_mut(&object) {
            stored.pins += 1;
        }
        true
    }

    /// Removes one pin of a client; false if it had none.
    pub fn unpin(&mut self, client: ClientId, object: ObjectId) -> bool {
        let Some(pins) = self.pins.get_mut(&client) else { return false };
        let Some(count) = pins.get_mut(&object) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            pins.remove(&object);
        }
        if pins.is_empty() {
            self.pins.remove(&client);
        }
        self.unpin_times(object, 1);
        if is_last {
            self.reader_left(client, object);
        }
        true
    }

    /// The owner freed the object: drops its copy now, or when nothing holds it any more.
    pub fn free(&mut self, object: ObjectId) {
        self.disk.discard(object);
        let is_writing = self.is_copy_writing(object);
        let Some(stored) = self.objects.get_mut(&object) else { return };
        stored.doomed = true;
        let is_held = stored.pins > 0 || !stored.sealed || is_writing;
        self.hold(object);
        if !is_held {
            self.drop_object(object);
        }
    }

    /// A client is gone: drops its pins and all bytes that it had not sealed.
    pub fn client_gone(&mut self, client: ClientId) {
        for region in self.regions.remove(&client).unwrap_or_default() {
            region.unsealed().for_each(|range| self.give(range));
        }
        let doubles = self.doubles.range((client, 0)..=(client, u64::MAX)).map(|((_, token), _)| *token);
        for token in doubles.collect::<Vec<_>>() {
            self.drop_double(client, token);
        }
        for (object, count) in self.pins.remove(&client).unwrap_or_default() {
            self.unpin_times(object, count);
            self.reader_left(client, object);
        }
    }

    /// Asserts that the tables and the arena agree (invariant 5).
    pub fn check(&self) {
        for in_annex in [false, true] {
            let sum = |all: &mut dyn Iterator<Item = Extent>| -> u64 {
                all.filter(|e| self.annex.holds(*e) == in_annex).map(|e| e.len).sum()
            };
            let objects = sum(&mut self.objects.values().map(|s| self.span(s.extent)));
            let regions = sum(&mut self.regions.values().flatten().flat_map(Region::unsealed));
            let superseded = self.superseded_extents().chain(self.doubles.values().copied());
            let superseded = sum(&mut superseded.map(|e| self.span(e)));
            let used = if in_annex {
                self.annex.used_bytes() - self.annex.leaving_bytes()
            } else {
                self.extents.used_bytes()
            };
            assert_eq!(used, objects + regions + superseded, "arena bytes without an owner, or with two");
        }
        let pins = self.pins.values().flatten().filter(|(object, _)| self.objects.contains_key(object));
        let pinned: u32 = pins.map(|(_, count)| *count).sum();
        assert_eq!(
            pinned,
            self.objects.values().map(|s| s.pins).sum::<u32>(),
            "pins of clients and objects differ"
        );
        self.check_replaced();
        self.regions.values().flatten().for_each(Region::check);
        self.check_queues();
        self.disk.check();
        for object in self.disk.objects().filter(|o| self.disk.is_writing(*o)) {
            let is_here = self.objects.contains_key(&object) || self.replaced.contains_key(&object);
            assert!(is_here, "{object} is written to disk and not there");
        }
    }

    fn check_queues(&self) {
        let (in_annex, annex_bytes) = self.annex.evictable();
        let queue = |queue: &BTreeMap<u64, ObjectId>| queue.iter().map(|(a, o)| (*a, *o)).collect();
        let queues: [(Vec<_>, u64, bool, bool); 3] = [
            (queue(&self.evictable), self.evictable_bytes, true, false),
            (queue(&self.spillable), self.spillable_bytes, false, false),
            (in_annex.collect(), annex_bytes, true, true),
        ];
        for (queue, bytes, may_go, in_annex) in queues {
            let mut sum = 0;
            for (age, object) in queue {
                let stored = self.objects.get(&object);
                assert!(stored.is_some(), "{object} is queued and not there");
                let Some(stored) = stored else { continue };
                let elsewhere = !stored.primary || self.disk.is_there(object);
                let is_free = stored.pins == 0 && stored.sealed && !stored.doomed;
                assert!(stored.age == age && is_free && !self.disk.is_writing(object), "{object} is held");
                assert_eq!(elsewhere, may_go, "{object} is in the wrong queue");
                assert_eq!(self.annex.holds(stored.extent), in_annex, "{object} is in the wrong queue");
                sum += self.span(stored.extent).len;
            }
            assert_eq!(sum, bytes, "bytes of a queue");
        }
    }

    /// Places of copies that do not count any more: still being received, or freed and still held.
    fn superseded_extents(&self) -> impl Iterator<Item = Extent> {
        let replaced = self.replaced.values().flatten().map(|old| old.extent);
        self.superseded.values().copied().chain(replaced)
    }

    fn next_number(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The whole range that an object takes.
    fn span(&self, extent: Extent) -> Extent {
        let len = if self.annex.holds(extent) { Annex::rounded(extent.len) } else { rounded(extent.len) };
        Extent { offset: extent.offset, len }
    }

    fn unpin_times(&mut self, object: ObjectId, times: u32) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        assert!(times <= stored.pins, "{object} is pinned less often than never");
        stored.pins -= times;
        let (is_sealed, is_doomed) = (stored.sealed, stored.doomed);
        if stored.pins > 0 {
            return;
        }
        if is_doomed {
            if !is_sealed || self.is_copy_writing(object) {
            } else {
                self.drop_object(object)
            }
        } else {
            self.rest(object)
        }
    }

    /// Queues a copy that nothing holds to be evicted or spilled, as the youngest.
    fn rest(&mut self, object: ObjectId) {
        self.hold(object);
        if self.disk.is_writing(object) {
            return;
        }
        let elsewhere = self.disk.is_there(object);
        let Some(stored) = self.objects.get_mut(&object).filter(|s| s.pins == 0 && s.sealed && !s.doomed)
        else {
            return;
        };
        let in_annex = self.annex.holds(stored.extent);
        if in_annex && stored.primary {
            return;
        }
        self.clock += 1;
        stored.age = self.clock;
        let (extent, is_primary) = (stored.extent, stored.primary);
        if in_annex {
            return self.annex.rest(self.clock, object, self.span(extent).len);
        }
        let bytes = rounded(extent.len);
        if elsewhere || !is_primary {
            self.evictable.insert(self.clock, object);
            self.evictable_bytes += bytes;
        } else {
            self.spillable.insert(self.clock, object);
            self.spillable_bytes += bytes;
        }
    }

    /// Takes a copy out of these queues: it stays in place.
    fn hold(&mut self, object: ObjectId) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        let (age, extent) = (std::mem::take(&mut stored.age), stored.extent);
        self.leave_queue(age, extent);
    }

    fn leave_queue(&mut self, age: u64, extent: Extent) {
        if age == 0 {
            return;
        }
        let bytes = self.span(extent).len;
        if self.annex.holds(extent) {
            return self.annex.hold(age, bytes);
        }
        if self.evictable.remove(&age).is_some() {
            self.evictable_bytes -= bytes;
        } else if self.spillable.remove(&age).is_some() {
            self.spillable_bytes -= bytes;
        }
    }

    fn drop_object(&mut self, object: ObjectId) {
        if let Some(stored) = self.objects.remove(&object) {
            self.leave_queue(stored.age, stored.extent);
            self.give(self.span(stored.extent));
        }
    }

    fn give(&mut self, extent: Extent) {
        if extent.len > 0 && self.annex.holds(extent) {
            self.annex.give(extent);
        } else if extent.len > 0 {
            let given = self.extents.give(extent);
            debug_assert!(given.is_ok(), "{given:?}");
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
