//! Draining: a node that is to leave takes no new work, lets its runs end, and has the copies that lie here
//! moved to other nodes. It leaves when nothing of the cluster is left here, or when its deadline has passed.
//!
//! | state | where | leaves by |
//! |---|---|---|
//! | serving | `until` is none | `begin` |
//! | draining | `until` is set | `over`: nothing is left, or the deadline has passed |
//! | over | `is_over` | never: the caller ends the node |
//!
//! A node that drains is kept by:
//! - runs, and leases of its workers: their owners give them back when what runs has ended
//! - submitted programs: they may be between two drivers, or have none
//! - drivers, and unfinished tasks of its own ledger: a job lives on the node of its driver
//! - entries of its ledger: objects that it owns, and references that other nodes have from it
//! - copies of other nodes' objects: their owners have them moved ([`super::moves`])
//! - messages that are not acknowledged: reports of ended tasks among them
//!
//! The rest at the deadline is treated like that of a node that died.

use super::Node;
use crate::event::{Action, Operation};
use crate::lease;
use crate::{MS, Now};
use std::collections::{BTreeMap, VecDeque};
use tharsis_types::ObjectId;
use tharsis_types::peer::{DrainMessage, Message};

/// Interval at which a node that drains looks at the copies that are left.
const LOOK_EVERY: Now = 20 * MS;
/// Copies whose owners have been told a moment ago and that are still here, at most.
const TOLD_MAX: usize = 256;
/// A copy that is still here after this long gives its place to the next one: the node that was to keep it
/// may have left, or none has room for it. Its turn comes again.
const TELL_AGAIN_AFTER: Now = 1_000 * MS;

/// The drain of this node.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// The deadline; none while the node serves.
    until: Option<Now>,
    /// The node may end.
    is_over: bool,
    /// Nothing was left when that was decided.
    is_clean: bool,
    look_at: Now,
    /// Copies whose owners were told: their bytes, and when that was.
    told: BTreeMap<ObjectId, (u64, Now)>,
    /// Copies that were still here when they gave up their places, and their bytes: they may be moved all the
    /// same, and count then.
    offered: BTreeMap<ObjectId, u64>,
    /// Copies whose turn to be told of is still to come. When all have had theirs, they are collected anew.
    turns: VecDeque<ObjectId>,
    moved_count: u64,
    moved_bytes: u64,
    /// Submitted programs that run here.
    programs: u64,
}

/// Progress of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainState {
    /// Nanoseconds until the deadline.
    pub remaining: Now,
    /// Whether the node leaves now.
    pub is_over: bool,
    /// Whether nothing of the cluster was left here when that was decided.
    pub is_clean: bool,
    /// Runs that have not ended.
    pub runs: u64,
    /// Leases of its workers.
    pub leases: u64,
    /// Jobs whose drivers are connected.
    pub jobs: u64,
    /// Submitted programs that run here.
    pub programs: u64,
    /// Unfinished tasks that it owns.
    pub tasks: u64,
    /// Objects that it owns or that others know through it.
    pub objects: u64,
    /// Copies of other nodes' objects.
    pub copies: u64,
    /// The part of these copies that was put by a call: no task can make it again.
    pub put_copies: u64,
    /// Bytes of the copies.
    pub copy_bytes: u64,
    /// Messages that are not acknowledged.
    pub messages: u64,
    /// Copies that other nodes keep now, or that nobody needed any more.
    pub moved: u64,
    /// Bytes of these.
    pub moved_bytes: u64,
}

impl DrainState {
    /// Whether nothing is left that keeps the node.
    fn is_done(&self) -> bool {
        let work = self.runs + self.leases + self.jobs + self.programs + self.tasks;
        work + self.objects + self.copies + self.messages == 0
    }
}

impl Drain {
    fn begin(&mut self, now: Now, within: Now) {
        assert!(self.until.is_none(), "a node drains twice");
        self.until = Some(now.saturating_add(within));
        self.look_at = now;
    }

    /// Whether the node takes no new work any more.
    pub(super) fn is_draining(&self) -> bool {
        self.until.is_some()
    }

    /// When the copies are to be looked at, or the deadline passes.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        let until = self.until.filter(|_| !self.is_over)?;
        Some(until.min(self.look_at))
    }

    /// Notes that copies are not here any more: `is_here` says which are.
    fn forget_moved(&mut self, is_here: impl Fn(ObjectId) -> bool) {
        self.told.retain(|object, (bytes, _)| {
            let stays = is_here(*object);
            self.moved_count += u64::from(!stays);
            self.moved_bytes += if stays { 0 } else { *bytes };
            stays
        });
    }

    /// As [`Drain::forget_moved`], of the copies without a place. There may be as many as copies.
    fn forget_offered(&mut self, is_here: impl Fn(ObjectId) -> bool) {
        self.offered.retain(|object, bytes| {
            let stays = is_here(*object);
            self.moved_count += u64::from(!stays);
            self.moved_bytes += if stays { 0 } else { *bytes };
            stays
        });
    }

    /// Takes their places from copies that have had them for long.
    fn end_places(&mut self, now: Now) {
        self.told.retain(|object, (bytes, at)| {
            let stays = now < *at + TELL_AGAIN_AFTER;
            if !stays {
                self.offered.insert(*object, *bytes);
            }
            stays
        });
    }

    /// The copy whose turn it is; none if there is no place for one.
    fn next_turn(&mut self) -> Option<ObjectId> {
        if TOLD_MAX <= self.told.len() {
            return None;
        }
        while let Some(object) = self.turns.pop_front() {
            if !self.told.contains_key(&object) {
                return Some(object);
            }
        }
        None
    }

    /// Notes that the owners of a copy are told now.
    fn tell(&mut self, now: Now, object: ObjectId, bytes: u64) {
        self.offered.remove(&object);
        self.told.insert(object, (bytes, now));
    }

    /// Asserts that the bounds are kept.
    pub(super) fn check(&self) {
        assert!(self.told.len() <= TOLD_MAX, "more owners are told than may be");
        assert!(self.until.is_some() || !self.is_over, "a node leaves that did not drain");
    }
}

impl Node {
    /// Whether this node takes no new work any more.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drain.is_draining()
    }

    /// Progress of the drain; none while the node serves.
    #[must_use]
    pub fn drain_state(&self) -> Option<DrainState> {
        let until = self.drain.until?;
        let bytes = self.copy_owners.objects().filter_map(|object| self.copy_len(object)).sum();
        let put = self.copy_owners.objects().filter(ObjectId::is_put).count() as u64;
        let left = DrainState { copy_bytes: bytes, put_copies: put, ..self.drain_counts() };
        let Drain { is_over, is_clean, .. } = self.drain;
        Some(DrainState { remaining: until.saturating_sub(self.now), is_over, is_clean, ..left })
    }

    /// The counts of [`Node::drain_state`] that cost nothing to know.
    fn drain_counts(&self) -> DrainState {
        let (objects, tasks) = self.owner.counts();
        DrainState {
            runs: self.runs.len() as u64,
            leases: self.leases.lease_count() as u64,
            jobs: self.clients.driver_count() as u64,
            programs: self.drain.programs,
            tasks: tasks as u64,
            objects: objects as u64,
            copies: self.copy_owners.len() as u64,
            messages: self.peers.unacknowledged() as u64,
            moved: self.drain.moved_count,
            moved_bytes: self.drain.moved_bytes,
            ..DrainState::default()
        }
    }

    /// Submitted programs began or ended.
    pub(super) fn programs_run(&mut self, count: u64) {
        self.drain.programs = count;
    }

    /// Begins to drain: tells the other nodes, gives back what has not started, and asks the leases back.
    pub(super) fn begin_drain(&mut self, now: Now, within: Now, out: &mut Vec<Action>) {
        if self.drain.is_draining() {
            return;
        }
        self.drain.begin(now, within);
        for node in self.view.others().collect::<Vec<_>>() {
            self.send(node, Message::Drain(DrainMessage::Begun));
        }
        self.view.drains(self.id);
        self.owner.members_changed();
        self.owner.dirty_all();
        let me = self.id;
        self.lease_change(out, |leases, effects: &mut Vec<lease::Effect>| leases.drain(me, effects));
        let leased: Vec<_> = self.leases.workers().map(|(client, _)| client).collect();
        for client in leased {
            self.unstarted_given_back(client, out);
        }
    }

    /// Goes on with the drain: has copies moved, and leaves when nothing is left or the time is over.
    pub(super) fn go_on_draining(&mut self, now: Now, out: &mut Vec<Action>) {
        let Some(until) = self.drain.until.filter(|_| !self.drain.is_over) else { return };
        let owners = &self.copy_owners;
        self.drain.forget_moved(|object| owners.has(object));
        let is_clean = self.drain_counts().is_done();
        if until <= now || is_clean {
            self.drain.forget_offered(|object| owners.has(object));
            (self.drain.is_over, self.drain.is_clean) = (true, is_clean);
            return out.push(Action::Do(Operation::Leave));
        }
        if now < self.drain.look_at {
            return;
        }
        self.drain.look_at = now + LOOK_EVERY;
        self.drain.end_places(now);
        if self.drain.turns.is_empty() {
            // All of them are looked at here anyway.
            self.drain.forget_offered(|object| owners.has(object));
            let mut objects: Vec<_> = self.copy_owners.objects().collect();
            objects.sort_unstable();
            self.drain.turns = objects.into();
        }
        while let Some(object) = self.drain.next_turn() {
            // It may be on its way here, or gone.
            let Some(bytes) = self.copy_len(object).filter(|_| self.copy_owners.has(object)) else {
                continue;
            };
            self.drain.tell(now, object, bytes);
            for owner in self.copy_owners.of(object).to_vec() {
                self.send(owner, Message::Drain(DrainMessage::CopyLeaving { object }));
            }
        }
    }

    /// Bytes of a complete copy here, in the arena or on disk.
    pub(super) fn copy_len(&self, object: ObjectId) -> Option<u64> {
        self.store.find(object).map(|extent| extent.len).or_else(|| self.store.spilled_len(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    fn object(n: u32) -> ObjectId {
        ObjectId::put(TaskId::root(JobId(1)), n)
    }

    /// One look at copies of which the first `len` are there; returns those whose owners are told.
    fn look(drain: &mut Drain, now: Now, len: u32) -> Vec<ObjectId> {
        drain.end_places(now);
        if drain.turns.is_empty() {
            drain.turns = (0..len).map(object).collect();
        }
        let mut told = Vec::new();
        while let Some(object) = drain.next_turn() {
            drain.tell(now, object, 10);
            told.push(object);
        }
        drain.check();
        told
    }

    #[test]
    fn owners_are_told_again_of_copies_that_stay_and_the_others_count_as_moved() {
        let mut drain = Drain::default();
        drain.begin(10 * MS, 1_000 * MS);
        assert_eq!(look(&mut drain, 10 * MS, 2), [object(0), object(1)]);
        assert_eq!(look(&mut drain, 11 * MS, 2), [], "not twice at once");
        drain.forget_moved(|there| there == object(0));
        assert_eq!((drain.moved_count, drain.moved_bytes), (1, 10));
        assert_eq!(look(&mut drain, 10 * MS + TELL_AGAIN_AFTER, 1), [object(0)]);
    }

    /// The node that was to keep it was slow.
    #[test]
    fn a_copy_that_is_moved_after_it_gave_up_its_place_counts_once() {
        let mut drain = Drain::default();
        drain.begin(0, 60_000 * MS);
        assert_eq!(look(&mut drain, 0, 2), [object(0), object(1)]);
        drain.end_places(TELL_AGAIN_AFTER);
        assert!(drain.told.is_empty());
        drain.forget_moved(|_| false);
        drain.forget_offered(|there| there == object(0));
        assert_eq!((drain.moved_count, drain.moved_bytes), (1, 10));
        assert_eq!(look(&mut drain, TELL_AGAIN_AFTER, 1), [object(0)]);
        drain.forget_moved(|_| false);
        drain.forget_offered(|_| false);
        assert_eq!((drain.moved_count, drain.moved_bytes), (2, 20));
    }

    #[test]
    fn a_bounded_number_of_owners_is_told_at_a_time() {
        let mut drain = Drain::default();
        drain.begin(0, 1_000 * MS);
        assert_eq!(look(&mut drain, 0, 2 * TOLD_MAX as u32).len(), TOLD_MAX);
        assert_eq!(look(&mut drain, LOOK_EVERY, 2 * TOLD_MAX as u32), []);
    }

    /// Nobody has room for the first ones: the others can be moved all the same.
    #[test]
    fn copies_that_stay_keep_no_others_from_their_turn() {
        let mut drain = Drain::default();
        drain.begin(0, 60_000 * MS);
        let len = 3 * TOLD_MAX as u32 + 7;
        let told: Vec<_> =
            (0..5).flat_map(|second| look(&mut drain, second * TELL_AGAIN_AFTER, len)).collect();
        assert_eq!(told[..len as usize], (0..len).map(object).collect::<Vec<_>>());
        assert_eq!(told[len as usize], object(0), "then the first ones again");
    }

    #[test]
    fn a_node_that_drains_looks_again_and_ends_by_its_deadline() {
        let mut drain = Drain::default();
        assert_eq!(drain.next_timeout(), None);
        drain.begin(5, 100);
        assert_eq!(drain.next_timeout(), Some(5));
        drain.look_at = 5 + LOOK_EVERY;
        assert_eq!(drain.next_timeout(), Some(105));
        drain.is_over = true;
        assert_eq!(drain.next_timeout(), None);
    }
}
