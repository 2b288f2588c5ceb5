//! Rules for making room in the arena and for granting it.
//!
//! Room is made in steps. First, copies that exist elsewhere or on disk are evicted. Then the oldest unpinned
//! copies are dropped or written to disk, whichever costs less time. Then clients are asked to unmap values
//! that they do not read. If that is not enough, clients are asked to retire regions that they do not write
//! to: first those that wait themselves.

use super::Node;
use super::room::{RoomWaiter, StalledPull};
use super::transfers::Part;
use crate::Now;
use crate::event::{Action, Operation, Record};
use std::sync::Arc;
use tharsis_types::{ClientId, Extent, Failure, FailureKind, NodeId, ObjectId};

/// Maximum number of holders that a refusal names.
const HOLDERS_NAMED: usize = 5;

/// Regions that clients write to.
impl Node {
    /// A client asks for a region.
    pub(super) fn region_wanted(
        &mut self,
        client: ClientId,
        request: u32,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let now = self.now;
        let waiter = RoomWaiter { client, request, bytes, patience: self.room.patience(now) };
        let for_annex = self.store.is_for_annex(bytes);
        if self.room.has_queue(for_annex, &self.store) || !self.try_grant(now, &waiter, out) {
            self.room.wait(waiter);
        }
    }

    /// A client is done with a region.
    pub(super) fn region_retired(&mut self, client: ClientId, region: Extent) {
        self.mappings.region_retired(client);
        self.store.retire(client, region);
    }

    /// Grants or refuses a region; false if the client should wait.
    fn try_grant(&mut self, now: Now, waiter: &RoomWaiter, out: &mut Vec<Action>) -> bool {
        let mut evicted = Vec::new();
        let granted = self.store.grant(waiter.client, waiter.bytes, &mut evicted);
        let is_enough = granted.as_ref().map_or(true, |region| waiter.bytes <= region.len);
        assert!(is_enough, "client {} is granted less than it asked for", waiter.client.0);
        self.evicted(&evicted);
        let wait =
            matches!(&granted, Err(f) if f.kind == FailureKind::StoreFull) && now < waiter.patience.until;
        if !wait {
            let region = granted.map_err(|failure| Arc::new(self.explained(failure, waiter.bytes)));
            out.push(Record::Region { request: waiter.request, region }.to(waiter.client));
        }
        !wait
    }

    /// The failure for a full store, with the refusal of the disk and the largest holders.
    fn explained(&self, mut failure: Failure, bytes: u64) -> Failure {
        if failure.kind != FailureKind::StoreFull {
            return failure;
        }
        if self.store.is_for_annex(bytes) {
            failure.kind = FailureKind::OutOfDisk;
            return failure;
        }
        if let Some(refusal) = self.room.refusal() {
            failure.kind = FailureKind::OutOfDisk;
            failure.message = format!("{}; spilling was refused: {refusal}", failure.message);
        }
        let holders = self.mappings.largest(&self.store).into_iter();
        for (index, (bytes, client)) in holders.take(HOLDERS_NAMED).enumerate() {
            let lead = if index == 0 { "; mapped by" } else { "," };
            failure.message += &format!("{lead} client {} {bytes} bytes", client.0);
        }
        failure
    }
}

/// Places for objects that are read into the store.
impl Node {
    /// Begins a transfer or restore that is wanted now.
    pub(super) fn begin_pull(&mut self, object: ObjectId, len: u64, from: NodeId, out: &mut Vec<Action>) {
        let patience = self.room.patience(self.now);
        self.start_pull(StalledPull { object, len, from, patience }, out);
        self.room.note_stalled(object);
    }

    /// Starts a transfer or restore, or lets it wait for room until its time is over.
    fn start_pull(&mut self, pull: StalledPull, out: &mut Vec<Action>) {
        let StalledPull { object, len, from, patience } = pull;
        if self.store.find(object).is_some() {
            // The object was written here meanwhile.
            return self.pull_done(object, out);
        }
        if let Some((into, part)) = self.transfers.take_begun(object) {
            return self.begin_transfer(object, from, into, part, out);
        }
        let mut evicted = Vec::new();
        let received = self.store.receive(object, len, &mut evicted);
        assert!(!evicted.contains(&object), "{object} makes room for itself");
        self.evicted(&evicted);
        match received {
            Ok(into) if from == self.id => out.push(Action::Do(Operation::Restore { object, into })),
            Ok(into) => self.begin_transfer(object, from, into, Part::default(), out),
            Err(failure)
                if failure.kind == FailureKind::StoreFull
                    && self.now < patience.until
                    && !self.pulls.is_only_ahead(object) =>
            {
                self.room.stall(pull)
            }
            Err(failure) => {
                let failure = self.explained(failure, len);
                self.pull_refused(object, &Arc::new(failure), out);
            }
        }
    }
}

/// Making room.
impl Node {
    /// Lets all waiters for room try again, in order; then makes room for those that still wait.
    pub(super) fn retry_for_room(&mut self, now: Now, out: &mut Vec<Action>) {
        for pull in self.room.take_stalled() {
            self.start_pull(pull, out);
        }
        let mut is_full = [false; 2];
        for waiter in self.room.take_waiters() {
            let place = usize::from(self.store.is_for_annex(waiter.bytes));
            if is_full[place] || !self.try_grant(now, &waiter, out) {
                is_full[place] = true;
                self.room.wait(waiter);
            }
        }
        self.make_room(now, out);
        // In the annex, only copies that other nodes have as well can make room, as soon as nobody keeps them
        // mapped.
        let bytes = self.room.waiting_bytes_in_annex(&self.store);
        self.mappings.ask_for_values(now, bytes, true, &self.store, out);
        for object in self.store.take_discarded() {
            self.forget_ahead(object, out);
            out.push(Action::Do(Operation::Discard(object)));
        }
        out.extend(
            self.store.take_unneeded().into_iter().map(|range| Action::Do(Operation::FreeBlocks(range))),
        );
    }

    /// Writes copies to disk for waiters, and above the high-water mark until the low-water mark is reached.
    /// Values that clients keep mapped count as soon as they are unmapped.
    fn make_room(&mut self, now: Now, out: &mut Vec<Action>) {
        let waiting = self.room.waiting_bytes(&self.store);
        let is_high = self.config.high_water_bytes < self.store.settled_bytes();
        if waiting == 0 && !is_high {
            return;
        }
        let low_water = if is_high { self.config.low_water_bytes } else { u64::MAX };
        let can_spill = self.config.can_spill && self.room.takes_spills(now);
        while !self.store.will_have_room(waiting) || low_water < self.store.settled_bytes() {
            let Some((object, len)) = self.store.victim() else { break };
            if self.owner.recompute_ns(object).is_some_and(|ns| self.room.prefers_remake(ns, len)) {
                self.drop_copy(object);
            } else if can_spill {
                let Some(extent) = self.store.begin_spill(object) else { break };
                out.push(Action::Do(Operation::Spill { object, extent }));
            } else {
                break;
            }
        }
        let above = self.store.settled_bytes().saturating_sub(low_water);
        let short = if self.store.will_have_room(waiting) { above } else { waiting.max(above) };
        if let Some(bytes) = self.mappings.ask_for_values(now, short, false, &self.store, out) {
            self.ask_for_regions(bytes, out);
        }
    }

    /// Drops a copy that is cheaper to make again than to write and read back.
    fn drop_copy(&mut self, object: ObjectId) {
        self.store.drop_primary(object);
        self.owner.dropped(object);
        self.copy_gone(object);
    }

    /// Asks clients for regions, first those that wait: they may wait for the very client that has no room.
    fn ask_for_regions(&mut self, bytes: u64, out: &mut Vec<Action>) {
        let works =
            |client: &ClientId| self.leases.lease_of(*client).is_some() && !self.leases.is_blocked(*client);
        let mut granted: Vec<_> = self.store.granted().into_iter().collect();
        granted.sort_by_key(|(client, _)| works(client));
        self.mappings.ask_for_regions(bytes, &granted, out);
    }

    /// A copy was written to disk, or could not be.
    pub(super) fn spilled(&mut self, now: Now, object: ObjectId, refusal: Option<String>, write_ns: u64) {
        self.store.spilled(object, refusal.is_none());
        match refusal {
            Some(refusal) => self.room.disk_refused(now, refusal),
            None => {
                // A copy that was freed meanwhile is not on disk.
                let len = self.store.spilled_len(object).unwrap_or(0);
                self.room.disk_took(now, write_ns, len, &self.store);
            }
        }
    }
}
