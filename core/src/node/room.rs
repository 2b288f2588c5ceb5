//! Room in the arena: who waits for it, and how it is made.
//!
//! Transfers and restores come before clients that want to write: they end waits, writers begin new ones.
//! Clients are served in the order in which they asked. Room is made by evicting what exists elsewhere or on
//! disk, then by dropping or writing to disk the oldest unpinned copies, whichever costs less time, then by
//! asking clients to let go of values that they keep mapped and do not look at, and where that is not enough
//! to retire regions that they do not write to: those first that wait themselves. What waits too long gets a
//! typed failure that names the largest holders. As long as the disk takes what is in the way, it waits on,
//! but not for ever: when a minute has passed, and twice the store was written and the room went to others,
//! it is refused as well.
//!
//! What is larger than the memory of the arena waits for its annex, a file on disk: that is another queue,
//! and nothing that lies in memory goes for it.

use super::Node;
use crate::event::{Action, Extent};
use crate::pull::{Pulls, Purpose};
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, RefId};

/// Whoever waits for room waits at most so many times as long as the disk gives it to others.
const PATIENCE: Now = 6;
/// How long the disk is left alone after it refused a copy.
const SPILL_PAUSE: Now = 500 * MS;
/// How often clients are asked for mapped values while somebody waits.
const UNMAP_EVERY: Now = 5 * MS;
/// What a thousand bytes to the disk are taken to cost before any were written: a gigabyte a second.
const NS_PER_KB: u64 = 1_000;
/// Writes that say how fast the disk is. Until there were so many, the assumption above stands for the
/// others.
const WRITES_REMEMBERED: usize = 7;
/// What took longer to make is not dropped, however slow the disk is.
const REMAKE_NS_MAX: u64 = 1_000 * MS;
/// A value that a client was asked for and kept is asked for again after this long.
const ASK_AGAIN_AFTER: Now = 1_000 * MS;
/// Holders that a refusal names.
const HOLDERS_NAMED: usize = 5;

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

/// How long something waits for room: while the disk takes what is in the way it waits on, until the time is
/// up and the disk has taken as much as can be in the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    until: Now,
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

/// How the disk takes what is spilled.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Not to be tried again before.
    paused_until: Now,
    /// What it said when it last refused.
    refusal: Option<String>,
    /// When clients were last asked to let go of mapped values, in memory and in the annex.
    asked_at: [Now; 2],
    /// When all of them could be asked anew.
    all_asked_at: Now,
    /// Time that a thousand bytes took to the disk, in nanoseconds: the last few writes, oldest first.
    ns_per_kb: VecDeque<u64>,
    /// What it has taken in all.
    taken_bytes: u64,
}

impl Disk {
    /// A copy was written: what it took says how fast the disk is.
    fn took(&mut self, write_ns: u64, len: u64) {
        self.taken_bytes = self.taken_bytes.saturating_add(len);
        if write_ns == 0 || len == 0 {
            return;
        }
        if self.ns_per_kb.len() == WRITES_REMEMBERED {
            self.ns_per_kb.pop_front();
        }
        self.ns_per_kb.push_back(write_ns.saturating_mul(1000) / len);
    }

    /// Time to write so many bytes and to read them back. The median of the last writes counts: one that
    /// stalled says nothing of the next.
    fn round_trip_ns(&self, len: u64) -> u64 {
        let missing = WRITES_REMEMBERED - self.ns_per_kb.len();
        let mut all: Vec<u64> = self.ns_per_kb.iter().copied().collect();
        all.resize(all.len() + missing, NS_PER_KB);
        all.sort_unstable();
        let median = all[WRITES_REMEMBERED / 2];
        median.saturating_mul(2).saturating_mul(len) / 1000
    }

    /// Whether a value that took so long to make is better made again than written to disk and read back.
    /// Never one that took seconds: whoever reads it would wait that long for it.
    fn prefers_remake(&self, run_ns: u64, len: u64) -> bool {
        run_ns < REMAKE_NS_MAX && run_ns < self.round_trip_ns(len)
    }
}

impl Node {
    /// A client asks for a region.
    pub(super) fn region_wanted(
        &mut self,
        now: Now,
        client: ClientId,
        request: u32,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let waiter = RoomWaiter { client, request, bytes, patience: self.patience(now) };
        let is_for_annex = self.store.is_for_annex(bytes);
        let is_behind = self.room_waiters.iter().any(|w| self.store.is_for_annex(w.bytes) == is_for_annex);
        if is_behind || !self.try_grant(now, &waiter, out) {
            self.room_waiters.push_back(waiter);
        }
    }

    /// A client is done with a region.
    pub(super) fn region_retired(&mut self, client: ClientId, region: Extent) {
        self.regions_asked.remove(&client);
        self.store.retire(client, region);
    }

    /// Those who wait for room try again, in order; then room is made for whoever still waits.
    pub(super) fn retry_for_room(&mut self, now: Now, out: &mut Vec<Action>) {
        for pull in std::mem::take(&mut self.stalled_pulls) {
            self.start_pull(pull, out);
        }
        let mut is_full = [false; 2];
        for waiter in std::mem::take(&mut self.room_waiters) {
            let place = usize::from(self.store.is_for_annex(waiter.bytes));
            if is_full[place] || !self.try_grant(now, &waiter, out) {
                is_full[place] = true;
                self.room_waiters.push_back(waiter);
            }
        }
        self.make_room(now, out);
        self.make_room_in_annex(now, out);
        for object in self.store.take_discarded() {
            self.forget_ahead(object, out);
            out.push(Action::Discard(object));
        }
        out.extend(self.store.take_unneeded().into_iter().map(Action::FreeBlocks));
    }

    /// When [`Node::retry_for_room`] has something to do.
    pub(super) fn room_timeout(&self) -> Option<Now> {
        let deadlines = self.room_waiters.iter().map(|w| w.patience.until);
        let deadline = deadlines.chain(self.stalled_pulls.iter().map(|p| p.patience.until)).min()?;
        let again =
            self.disk.paused_until.max(self.disk.asked_at[0].max(self.disk.asked_at[1]) + UNMAP_EVERY);
        Some(if self.now < again { deadline.min(again) } else { deadline })
    }

    /// Starts a transfer or restore, or lets it wait for room until its time is over.
    pub(super) fn start_pull(&mut self, pull: StalledPull, out: &mut Vec<Action>) {
        let StalledPull { object, len, from, patience } = pull;
        if self.store.revive(object) {
            // Written here meanwhile, or never quite gone.
            return self.pull_done(object, out);
        }
        if let Some((into, done_bytes)) = self.transfers.take_begun(object) {
            return self.begin_transfer(object, from, into, done_bytes, out);
        }
        let mut evicted = Vec::new();
        let received = self.store.receive(object, len, &mut evicted);
        self.evicted(&evicted);
        match received {
            Ok(into) if from == self.id => out.push(Action::Restore { object, into }),
            Ok(into) => self.begin_transfer(object, from, into, 0, out),
            Err(failure)
                if failure.kind == FailureKind::StoreFull
                    && self.now < patience.until
                    && !self.pulls.is_only_ahead(object) =>
            {
                self.stalled_pulls.push(pull)
            }
            Err(failure) => {
                let failure = self.explained(failure, len);
                self.pull_refused(object, &Arc::new(failure), out);
            }
        }
    }

    /// A copy was written to disk, or could not be.
    pub(super) fn spilled(&mut self, now: Now, object: ObjectId, refusal: Option<String>, write_ns: u64) {
        self.store.spilled(object, refusal.is_none());
        if refusal.is_some() {
            self.disk.paused_until = now + SPILL_PAUSE;
        } else {
            self.wait_on(now + self.config.create_timeout);
            self.disk.took(write_ns, self.store.spilled_len(object).unwrap_or(0));
        }
        self.disk.refusal = refusal;
    }

    /// How long whoever asks for room now waits for it.
    pub(super) fn patience(&self, now: Now) -> Patience {
        let timeout = self.config.create_timeout;
        Patience {
            until: now + timeout,
            until_max: now + PATIENCE * timeout,
            taken_bytes_max: self.disk.taken_bytes.saturating_add(2 * self.config.store_bytes),
        }
    }

    /// The disk is at work, however slow it is: whoever waits for room in memory goes on to wait.
    fn wait_on(&mut self, until: Now) {
        let creates = self.room_waiters.iter_mut().map(|waiter| (waiter.bytes, &mut waiter.patience));
        let all = creates.chain(self.stalled_pulls.iter_mut().map(|pull| (pull.len, &mut pull.patience)));
        let in_memory = all.filter(|(bytes, _)| !self.store.is_for_annex(*bytes));
        in_memory.for_each(|(_, patience)| patience.prolong(until, self.disk.taken_bytes));
    }

    /// A client lets go of a value that it had mapped; its reference stays.
    pub(super) fn unmapped(&mut self, client: ClientId, token: u64, object: ObjectId) {
        self.unmap_asked.remove(&(client, token));
        self.store.drop_double(client, token);
        let Entry::Occupied(mut mapped) = self.mapped.entry((client, token, object)) else { return };
        *mapped.get_mut() -= 1;
        if *mapped.get() == 0 {
            mapped.remove();
        }
        self.store.unpin(client, object);
    }

    /// A reference of a client is gone, and with it all that was mapped for it.
    pub(super) fn unmap_all(&mut self, client: ClientId, token: u64, object: ObjectId) {
        self.unmap_asked.remove(&(client, token));
        self.store.drop_double(client, token);
        for _ in 0..self.mapped.remove(&(client, token, object)).unwrap_or(0) {
            self.store.unpin(client, object);
        }
    }

    /// Maps a local object for a reference of a client, once more if it has it mapped: what it lets go of may
    /// be on its way.
    pub(super) fn map(&mut self, client: ClientId, token: u64, object: ObjectId) -> Option<Extent> {
        let extent = self.store.pin(client, object)?;
        *self.mapped.entry((client, token, object)).or_default() += 1;
        Some(extent)
    }

    /// A worker goes on looking at an argument: it has it pinned, even if nobody else refers to it any more.
    pub(super) fn kept(&mut self, client: ClientId, token: u64, reference: RefId) {
        self.owner.held(client, reference, &mut self.effects);
        if self.store.pin_again(client, reference.object) {
            *self.mapped.entry((client, token, reference.object)).or_default() += 1;
        }
    }

    /// Has copies written to disk for whoever waits, and above the high-water mark until the low one is
    /// reached. What clients keep mapped and nobody looks at counts as soon as they have let go of it.
    fn make_room(&mut self, now: Now, out: &mut Vec<Action>) {
        let waiting = self.waiting_bytes();
        let is_high = self.config.high_water_bytes < self.store.settled_bytes();
        if waiting == 0 && !is_high {
            return;
        }
        let low_water = if is_high { self.config.low_water_bytes } else { u64::MAX };
        let can_spill = self.config.can_spill && self.disk.paused_until <= now;
        while !self.store.will_have_room(waiting) || low_water < self.store.settled_bytes() {
            let Some((object, len)) = self.store.victim() else { break };
            if self.owner.recompute_ns(object).is_some_and(|ns| self.disk.prefers_remake(ns, len)) {
                self.drop_copy(object);
            } else if can_spill {
                let Some(extent) = self.store.begin_spill(object) else { break };
                out.push(Action::Spill { object, extent });
            } else {
                break;
            }
        }
        let above = self.store.settled_bytes().saturating_sub(low_water);
        let short = if self.store.will_have_room(waiting) { above } else { waiting.max(above) };
        self.ask_to_unmap(now, short, false, out);
    }

    /// In the annex only copies of what other nodes have can make room, as soon as nobody keeps them mapped.
    fn make_room_in_annex(&mut self, now: Now, out: &mut Vec<Action>) {
        let pulls = self.stalled_pulls.iter().map(|p| p.len);
        let all = pulls.chain(self.room_waiters.iter().map(|w| w.bytes));
        let bytes = all.filter(|bytes| self.store.is_for_annex(*bytes)).sum();
        self.ask_to_unmap(now, bytes, true, out);
    }

    /// Drops a copy that is cheaper to make again than to write and read back.
    fn drop_copy(&mut self, object: ObjectId) {
        self.store.drop_primary(object);
        self.owner.dropped(object);
        self.copy_gone(object);
    }

    /// Bytes that somebody waits for: all at once, as far as they fit together.
    fn waiting_bytes(&self) -> u64 {
        let in_memory = |bytes: &u64| !self.store.is_for_annex(*bytes);
        let mut pulls = self.stalled_pulls.iter().map(|p| p.len).filter(in_memory);
        let mut waiters = self.room_waiters.iter().map(|w| w.bytes).filter(in_memory);
        let all: u64 = pulls.clone().chain(waiters.clone()).sum();
        let with_reserve = |bytes| bytes + self.store.reserve_beside(bytes);
        let first = pulls.next().or_else(|| waiters.next().map(with_reserve)).unwrap_or(0);
        all.min(self.config.store_bytes / 2).max(first.min(self.config.store_bytes))
    }

    /// Asks clients for values that they keep mapped, in memory or in the annex: what only they keep in
    /// place, as much as is needed.
    fn ask_to_unmap(&mut self, now: Now, bytes: u64, in_annex: bool, out: &mut Vec<Action>) {
        let asked_at = &mut self.disk.asked_at[usize::from(in_annex)];
        if bytes == 0 || now < *asked_at + UNMAP_EVERY {
            return;
        }
        *asked_at = now;
        if self.disk.all_asked_at + ASK_AGAIN_AFTER <= now {
            self.disk.all_asked_at = now;
            self.unmap_asked.clear();
            self.regions_asked.clear();
        }
        let mut asked_bytes = 0;
        for &(client, token, object) in self.mapped.keys() {
            if bytes <= asked_bytes {
                return;
            }
            if self.store.is_in_annex(object) == in_annex && self.unmap_asked.insert((client, token)) {
                out.push(Action::Unmap { client, token });
                asked_bytes += self.store.find(object).map_or(0, |extent| extent.len);
            }
        }
        if !in_annex {
            self.ask_for_regions(bytes.saturating_sub(asked_bytes), out);
        }
    }

    /// Asks clients for regions that they do not write to, as much as is needed: first those that wait, which
    /// may be for whoever has no room.
    fn ask_for_regions(&mut self, bytes: u64, out: &mut Vec<Action>) {
        let works =
            |client: &ClientId| self.leases.lease_of(*client).is_some() && !self.leases.is_blocked(*client);
        let mut granted: Vec<_> = self.store.granted().into_iter().collect();
        granted.sort_by_key(|(client, _)| works(client));
        let mut asked_bytes = 0;
        for (client, granted_bytes) in granted {
            if bytes <= asked_bytes {
                break;
            }
            if self.regions_asked.insert(client) {
                out.push(Action::RetireRegions { client });
                asked_bytes += granted_bytes;
            }
        }
    }

    /// Grants or refuses a region; false if the client should wait.
    fn try_grant(&mut self, now: Now, waiter: &RoomWaiter, out: &mut Vec<Action>) -> bool {
        let mut evicted = Vec::new();
        let granted = self.store.grant(waiter.client, waiter.bytes, &mut evicted);
        self.evicted(&evicted);
        let wait =
            matches!(&granted, Err(f) if f.kind == FailureKind::StoreFull) && now < waiter.patience.until;
        if !wait {
            let region = granted.map_err(|failure| Arc::new(self.explained(failure, waiter.bytes)));
            out.push(Action::GrantRegion { client: waiter.client, request: waiter.request, region });
        }
        !wait
    }

    /// A full store, with what the disk said and who has most of it.
    fn explained(&self, mut failure: Failure, bytes: u64) -> Failure {
        if failure.kind != FailureKind::StoreFull {
            return failure;
        }
        if self.store.is_for_annex(bytes) {
            failure.kind = FailureKind::OutOfDisk;
            return failure;
        }
        if let Some(refusal) = &self.disk.refusal {
            failure.kind = FailureKind::OutOfDisk;
            failure.message = format!("{}; spilling was refused: {refusal}", failure.message);
        }
        let mut bytes_of: BTreeMap<ClientId, u64> = BTreeMap::new();
        for (client, _, object) in self.mapped.keys() {
            *bytes_of.entry(*client).or_default() += self.store.find(*object).map_or(0, |extent| extent.len);
        }
        let mut holders: Vec<_> = bytes_of.into_iter().map(|(client, bytes)| (bytes, client)).collect();
        holders.sort_unstable_by(|a, b| b.cmp(a));
        for (index, (bytes, client)) in holders.into_iter().take(HOLDERS_NAMED).enumerate() {
            let lead = if index == 0 { "; mapped by" } else { "," };
            failure.message += &format!("{lead} client {} {bytes} bytes", client.0);
        }
        failure
    }

    /// An object cannot come here for want of room: those who wait for it get the failure, the object stays.
    pub(super) fn pull_refused(&mut self, object: ObjectId, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        for purpose in self.pulls.refused(object) {
            match purpose {
                Purpose::Ahead(_) => {}
                Purpose::Arguments(run) => {
                    self.arguments_refused(Slot::from_number(run), failure.clone(), out)
                }
                Purpose::Read(client, token) => {
                    let client = ClientId(client);
                    self.reads.remove(&(client, token));
                    self.refusals.insert((client, token), crate::Value::Failed(failure.clone()));
                    out.push(Action::Deliver { client, token, object, extent: None });
                }
            }
        }
        self.pull_change(out, Pulls::resume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time to write so many bytes at a gigabyte a second.
    const WRITE_NS: u64 = 64_000_000;
    const LEN: u64 = 64_000_000;

    #[test]
    fn one_stalled_write_does_not_make_the_disk_slow() {
        let mut disk = Disk::default();
        assert_eq!(disk.round_trip_ns(LEN), 2 * WRITE_NS);
        disk.took(10_000 * MS, LEN);
        assert_eq!(disk.round_trip_ns(LEN), 2 * WRITE_NS, "a stall at the start");
        (0..20).for_each(|_| disk.took(2 * WRITE_NS, LEN));
        disk.took(10_000 * MS, LEN);
        assert_eq!(disk.round_trip_ns(LEN), 4 * WRITE_NS, "a stall later");
        (0..WRITES_REMEMBERED).for_each(|_| disk.took(10 * WRITE_NS, LEN));
        assert_eq!(disk.round_trip_ns(LEN), 20 * WRITE_NS, "a disk that is slow");
    }

    #[test]
    fn what_took_seconds_to_make_is_never_dropped() {
        let mut disk = Disk::default();
        (0..WRITES_REMEMBERED).for_each(|_| disk.took(20_000 * MS, LEN));
        assert!(disk.prefers_remake(500 * MS, LEN));
        for run_ns in [1_000 * MS, 5_000 * MS, 3_600_000 * MS] {
            assert!(!disk.prefers_remake(run_ns, LEN), "{run_ns} ns");
        }
    }

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
}
