//! Room in the arena: the transfers and clients that wait for it, for how long, and for how many bytes.
//!
//! Transfers and restores come before clients that want to write: they end waits, writers begin new ones.
//! Clients are served in the order in which they asked. A waiter that waits too long gets a typed failure
//! that names the largest holders. Each copy that the disk takes prolongs the wait, but not for ever: a
//! waiter is refused as well when [`PATIENCE`] times the timeout has passed and twice the bytes of the store
//! were written while others got the room.
//!
//! A value larger than the memory of the arena waits for its annex, a file on disk. That is a separate queue,
//! and nothing in memory is evicted for it.
//!
//! | waiter | where | enters by | leaves by |
//! |---|---|---|---|
//! | a client that wants a region | `waiters` | `wait` | `take_waiters`, `client_gone` |
//! | a transfer or restore | `stalled` | `stall` | `take_stalled` |
//!
//! Each round takes all of them out, lets them try, and puts back those that still find no room.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | the waiters for room |
//! | `disk.rs` | speed and refusals of the disk |
//!
//! The rules for making and granting room: [`super::making_room`].

mod disk;

use crate::Now;
use crate::journal::{About, Entry, Fact, Journal};
use crate::store::Store;
use disk::Disk;
use std::collections::VecDeque;
use tharsis_types::{ClientId, NodeId, ObjectId};

/// Multiple of the timeout up to which the wait is prolonged once the disk has taken enough.
const PATIENCE: Now = 6;

/// Queues of waiters for room in the arena or its annex.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes of the arena's memory.
    store_bytes: u64,
    /// The time for which a waiter waits while the disk takes nothing.
    create_timeout: Now,
    disk: Disk,
    /// Transfers that wait for room in the store.
    stalled: Vec<StalledPull>,
    /// Clients that wait for room in the store, first come first served.
    waiters: VecDeque<RoomWaiter>,
    journal: Journal,
}

/// A client that waits for a region to write to.
#[derive(Debug)]
pub(super) struct RoomWaiter {
    pub(super) client: ClientId,
    pub(super) request: u32,
    pub(super) bytes: u64,
    pub(super) patience: Patience,
}

/// A transfer or restore that waits for room.
#[derive(Debug)]
pub(super) struct StalledPull {
    pub(super) object: ObjectId,
    pub(super) len: u64,
    pub(super) from: NodeId,
    pub(super) patience: Patience,
}

/// The time for which a waiter waits for room. Each copy that the disk takes prolongs it, until the time is
/// up and the disk has taken as much as can be in the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) until: Now,
    until_max: Now,
    taken_bytes_max: u64,
}

impl Patience {
    fn prolong(&mut self, until: Now, taken_bytes: u64) {
        if taken_bytes <= self.taken_bytes_max {
            self.until = until;
        } else {
            self.until = self.until.max(until.min(self.until_max));
        }
    }
}

impl Room {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of an object that had no room.
    pub(super) fn past(&self, object: ObjectId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Object(object))
    }

    /// Notes that a transfer that starts now has no room, if so.
    pub(super) fn note_stalled(&mut self, object: ObjectId) {
        if self.is_stalled(object) {
            self.journal.note(About::Object(object), Fact::RoomAwaited);
        }
    }

    /// Whether a transfer of an object waits for its place.
    pub(super) fn is_stalled(&self, object: ObjectId) -> bool {
        self.stalled.iter().any(|pull| pull.object == object)
    }

    /// Empty queues for a store of this size.
    pub(super) fn new(store_bytes: u64, create_timeout: Now) -> Self {
        let (stalled, waiters) = (Vec::new(), VecDeque::new());
        let (disk, journal) = (Disk::default(), Journal::default());
        Self { store_bytes, create_timeout, disk, stalled, waiters, journal }
    }

    /// The patience of a waiter that asks for room now.
    pub(super) fn patience(&self, now: Now) -> Patience {
        Patience {
            until: now + self.create_timeout,
            until_max: now + PATIENCE * self.create_timeout,
            taken_bytes_max: self.disk.taken_bytes.saturating_add(2 * self.store_bytes),
        }
    }

    /// Whether a client already waits for the same memory: it is served before.
    pub(super) fn has_queue(&self, for_annex: bool, store: &Store) -> bool {
        self.waiters.iter().any(|waiter| store.is_for_annex(waiter.bytes) == for_annex)
    }

    /// A client waits for a region.
    pub(super) fn wait(&mut self, waiter: RoomWaiter) {
        self.waiters.push_back(waiter);
    }

    /// A transfer waits for its place.
    pub(super) fn stall(&mut self, pull: StalledPull) {
        let is_first = self.stalled.iter().all(|stalled| stalled.object != pull.object);
        assert!(is_first, "{} waits for room twice", pull.object);
        self.stalled.push(pull);
    }

    /// Takes out all clients that wait, to try again in order.
    pub(super) fn take_waiters(&mut self) -> VecDeque<RoomWaiter> {
        std::mem::take(&mut self.waiters)
    }

    /// Takes out all transfers that wait, to try again in order.
    pub(super) fn take_stalled(&mut self) -> Vec<StalledPull> {
        std::mem::take(&mut self.stalled)
    }

    /// A client is gone.
    pub(super) fn client_gone(&mut self, client: ClientId) {
        self.waiters.retain(|waiter| waiter.client != client);
    }

    /// A copy of `len` bytes was written to disk, however slowly: the waits for room in memory are prolonged.
    pub(super) fn disk_took(&mut self, now: Now, write_ns: u64, len: u64, store: &Store) {
        let (until, taken_bytes) = (now + self.create_timeout, self.disk.taken_bytes);
        let waiters = self.waiters.iter_mut().map(|waiter| (waiter.bytes, &mut waiter.patience));
        let all = waiters.chain(self.stalled.iter_mut().map(|pull| (pull.len, &mut pull.patience)));
        assert!(len <= self.store_bytes, "a copy on disk was longer than the memory");
        let in_memory = all.filter(|(bytes, _)| !store.is_for_annex(*bytes));
        in_memory.for_each(|(_, patience)| patience.prolong(until, taken_bytes));
        self.disk.took(write_ns, len);
    }

    /// The disk did not take a copy: the disk is left alone for a while.
    pub(super) fn disk_refused(&mut self, now: Now, refusal: String) {
        self.disk.refused(now, refusal);
    }

    /// The disk's reason for refusing the last copy, if it refused it.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.disk.refusal.as_deref()
    }

    /// Whether copies may be written to disk now.
    pub(super) fn takes_spills(&self, now: Now) -> bool {
        self.disk.paused_until <= now
    }

    /// Whether a value that took `run_ns` to make is better computed again than written to disk and read
    /// back.
    pub(super) fn prefers_remake(&self, run_ns: u64, len: u64) -> bool {
        self.disk.prefers_remake(run_ns, len)
    }

    /// Bytes of memory that are waited for: all of them up to half of the store, but at least the first.
    pub(super) fn waiting_bytes(&self, store: &Store) -> u64 {
        let in_memory = |bytes: &u64| !store.is_for_annex(*bytes);
        let mut pulls = self.stalled.iter().map(|p| p.len).filter(in_memory);
        let mut waiters = self.waiters.iter().map(|w| w.bytes).filter(in_memory);
        let all: u64 = pulls.clone().chain(waiters.clone()).sum();
        let with_reserve = |bytes| bytes + store.reserve_beside(bytes);
        let first = pulls.next().or_else(|| waiters.next().map(with_reserve)).unwrap_or(0);
        all.min(self.store_bytes / 2).max(first.min(self.store_bytes))
    }

    /// Bytes of the annex that are waited for.
    pub(super) fn waiting_bytes_in_annex(&self, store: &Store) -> u64 {
        let all = self.stalled.iter().map(|p| p.len).chain(self.waiters.iter().map(|w| w.bytes));
        all.filter(|bytes| store.is_for_annex(*bytes)).sum()
    }

    /// When the patience of a waiter ends, or more can be done for the waiters: clients can be asked again at
    /// `ask_next_at`.
    pub(super) fn next_timeout(&self, now: Now, ask_next_at: Now) -> Option<Now> {
        let deadlines = self.waiters.iter().map(|waiter| waiter.patience.until);
        let deadline = deadlines.chain(self.stalled.iter().map(|pull| pull.patience.until)).min()?;
        let again = self.disk.paused_until.max(ask_next_at);
        Some(if now < again { deadline.min(again) } else { deadline })
    }

    /// Asserts that every transfer that waits for room was started; `is_running` says which were.
    pub(super) fn check(&self, is_running: impl Fn(ObjectId) -> bool) {
        for pull in &self.stalled {
            assert!(is_running(pull.object), "{} waits for room and is not wanted", pull.object);
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [
            ("clients that wait for room", self.waiters.len()),
            ("transfers that wait for room", self.stalled.len()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_when_the_time_is_up_and_the_disk_has_taken_enough() {
        let fresh = Patience { until: 10, until_max: 60, taken_bytes_max: 100 };
        let after = |until, taken_bytes| {
            let mut patience = fresh;
            patience.prolong(until, taken_bytes);
            patience.until
        };
        assert_eq!(after(40, 101), 40, "others get the room, and there is time");
        assert_eq!(after(90, 100), 90, "a slow disk");
        assert_eq!(after(90, 101), 60);
    }

    #[test]
    fn a_slow_disk_prolongs_the_wait_for_memory() {
        let (store, mut room) = (Store::new(1 << 20), Room::new(1 << 20, 10));
        let waiter = RoomWaiter { client: ClientId(1), request: 0, bytes: 4096, patience: room.patience(0) };
        assert!(!room.has_queue(false, &store));
        room.wait(waiter);
        assert!(room.has_queue(false, &store) && !room.has_queue(true, &store));
        assert_eq!((room.next_timeout(0, 0), room.next_timeout(0, 4)), (Some(10), Some(4)));
        room.disk_took(5, 1, 4096, &store);
        assert_eq!(room.next_timeout(5, 0), Some(15));
        room.client_gone(ClientId(1));
        assert_eq!((room.next_timeout(5, 0), room.waiting_bytes(&store)), (None, 0));
    }

    #[test]
    #[should_panic(expected = "waits for room twice")]
    fn a_transfer_waits_once() {
        let mut room = Room::new(1 << 20, 10);
        let object = ObjectId::put(tharsis_types::TaskId::root(tharsis_types::JobId(1)), 0);
        for _ in 0..2 {
            let patience = room.patience(0);
            room.stall(StalledPull { object, len: 1, from: NodeId(1), patience });
        }
    }
}
