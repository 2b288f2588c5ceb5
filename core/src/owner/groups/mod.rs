//! Placement groups of this node's ledger: their bundles are planned, reserved, published, and placed again
//! when a node is lost.
//!
//! A group is an object of the ledger: the output of the call that made it. The call never runs. While the
//! group lives it stays *waiting*, and the value of the object says where the bundles are
//! ([`tharsis_types::BundleNodes`]). A task inside takes the object as its first argument, so it waits for
//! the group, keeps it alive, and fails if there is none; and whoever drops the last reference removes it.
//!
//! A bundle is held by a lease without a worker (`lease/bundles.rs`), so the link and the tables of leases
//! make requests and answers exactly-once. An *attempt* asks for all bundles that have no node. When all are
//! held they are *placed*, and only then anybody hears of them. If one is refused, the attempt gives back
//! what it has and another one is made later, so nothing stays reserved.
//!
//! | state of a bundle | means | leaves by |
//! |---|---|---|
//! | empty | it has no node | `request` |
//! | asked | a node was asked to hold it | `granted`, `abort` |
//! | held | a node holds it, the attempt is not over | `settle`, `abort` |
//! | placed | published | `lost`, `recalled`, `node_gone` |
//!
//! The leases of an attempt that waits at nodes without room are given up after a while: two groups that
//! each have what the other one waits for would wait for ever. Where a quota bounds the job, groups of one
//! ledger do not come to that: one that does not fit beside the others asks for nothing (`held.rs`).

mod check;
mod held;
mod known;
mod shown;
#[cfg(test)]
mod tests;

pub(super) use known::{KnownGroups, Nodes};
pub use shown::GroupStage;
pub(super) use shown::Shown;

use super::jobs::Detached;
use super::{Effect, Object, Task};
use crate::place::{GroupPlan, View};
use crate::slab::Slot;
use crate::{MS, Now};
use held::Held;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{
    BundleNodes, FunctionId, GroupSpec, JobId, LeaseId, NodeId, Placement, Quota, Resources, TaskClass,
    TaskId,
};

/// Time after which an attempt that was refused is made again, at first; it doubles with each one.
const TRY_AGAIN_AFTER: Now = 10 * MS;
/// The longest time between two attempts.
const TRY_AGAIN_MAX: Now = 1_000 * MS;
/// The time for which an attempt waits for room at first; it doubles with each one.
const WAIT_FOR: Now = 1_000 * MS;
/// Doublings of these times.
const DOUBLINGS_MAX: u32 = 6;
/// Doublings of the time of an attempt that has room at all nodes, and waits for parts of a quota only.
/// Another ledger's group may hold what this one lacks, and the other way round, and the job stands still
/// meanwhile.
const QUOTA_DOUBLINGS_MAX: u32 = 2;
/// Of attempts that wait for parts of a quota, one in so many has its full time, after the first ones.
///
/// A ledger does not know what has the parts that it lacks. If tasks do, waiting is right: these end one by
/// one. If a group of another ledger does, whose attempt lacks what this one has, each waits for the other,
/// and the shorter both wait the better. So most attempts are short, and the long ones of two groups come at
/// different times ([`Group::quota_doublings`]). A group that needs the parts of several tasks, which end
/// further apart than a short attempt lasts, waits for its next long one, some 20 s (four attempts of 4 s,
/// and the pauses between them); groups in each other's way cost the job a long attempt, 64 s at most.
///
/// The node of the job's driver, which gives out the parts, could tell the two apart. It would have to know
/// what attempts hold at each node: a number that changes with each grant of a bundle, so a message more for
/// each, and one back to all who wait. A wrong guess is seldom and costs seconds.
const LONG_EVERY: u32 = 4;

/// The placement groups of a ledger, and those that its tasks use.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: IdMap<Slot<Object>, Group>,
    /// Those that outlive their drivers, by job.
    detached_of: Detached,
    /// Leases that hold bundles, were asked for them, or end because their node drains.
    held: Held,
    /// Groups to plan, in the order in which they were made.
    dirty: BTreeSet<(u64, Slot<Object>)>,
    /// The number of the last group.
    last_number: u64,
    /// Groups for which something is due at a time.
    timers: BTreeSet<(Now, Slot<Object>)>,
    /// The groups of tasks of this ledger.
    pub(super) known: KnownGroups,
    now: Now,
}

#[derive(Debug)]
struct Group {
    /// The call that made it.
    task: Slot<Task>,
    id: TaskId,
    job: JobId,
    /// Its number among all groups of the ledger.
    number: u64,
    spec: GroupSpec,
    /// Whether it counts as a use of itself: it needs no handles, and outlives its driver.
    is_detached: bool,
    seats: Vec<Seat>,
    /// Leases of bundles on nodes that drain: they end there with what runs inside.
    leaving: BTreeMap<LeaseId, NodeId>,
    /// Attempts since the last one that succeeded.
    tries: u32,
    state: State,
    /// Its time in `timers`.
    timer: Option<Now>,
}

/// One bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Empty,
    Asked(NodeId, LeaseId),
    Held(NodeId, LeaseId),
    Placed(NodeId, LeaseId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// It is to be planned.
    Planned,
    /// Other groups of its job hold what the quota allows.
    Behind,
    /// All bundles are placed.
    Whole,
    /// An attempt is under way. One that waits for room is given up then.
    Asking(Option<Now>),
    /// Another attempt is made then.
    Again(Now),
    /// The cluster cannot hold it, since then, for this reason.
    Impossible(Now, String),
}

/// A group that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// The call that made it.
    pub(super) task: Slot<Task>,
    /// Whether it counted as a use of itself.
    pub(super) was_detached: bool,
}

/// The meaning of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// Nobody waits for the lease any more, or it is none of a bundle.
    Stale,
    /// Others of the attempt are missing.
    Waits,
    /// All bundles are placed.
    Whole(Slot<Object>),
}

impl Seat {
    fn place(self) -> Option<(NodeId, LeaseId)> {
        match self {
            Self::Empty => None,
            Self::Asked(node, lease) | Self::Held(node, lease) | Self::Placed(node, lease) => {
                Some((node, lease))
            }
        }
    }

    fn placed_at(self) -> Option<NodeId> {
        match self {
            Self::Placed(node, _) => Some(node),
            _ => None,
        }
    }

    fn is_of_attempt(self) -> bool {
        matches!(self, Self::Asked(..) | Self::Held(..))
    }
}

/// Groups that come and go.
impl Groups {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.now = now;
        self.known.tell_time(now);
    }

    /// A call asks for a group; `output` is its object.
    pub(super) fn enter(
        &mut self,
        output: Slot<Object>,
        (task, id): (Slot<Task>, TaskId),
        spec: &GroupSpec,
        is_detached: bool,
    ) {
        self.last_number += 1;
        let group = Group {
            task,
            id,
            job: id.job(),
            number: self.last_number,
            seats: vec![Seat::Empty; spec.bundles.len()],
            spec: spec.clone(),
            is_detached,
            leaving: BTreeMap::new(),
            tries: 0,
            state: State::Planned,
            timer: None,
        };
        let before = self.all.insert(output, group);
        assert!(before.is_none(), "{id} makes two groups");
        self.dirty.insert((self.last_number, output));
        if is_detached {
            self.detached_of.enter(id.job());
        }
    }

    /// Whether there is no group, made or used.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.known.len() == 0
    }

    /// The job of a group, and what it asks for.
    pub(super) fn demand(&self, group: Slot<Object>) -> Option<(JobId, &GroupSpec)> {
        self.all.get(&group).map(|group| (group.job, &group.spec))
    }

    /// The call that made a group.
    pub(super) fn task(&self, group: Slot<Object>) -> Option<Slot<Task>> {
        self.all.get(&group).map(|group| group.task)
    }

    /// A group is removed: all its leases go back.
    pub(super) fn ends(&mut self, group: Slot<Object>, out: &mut Vec<Effect>) -> Option<Gone> {
        let gone = self.all.remove(&group)?;
        if gone.is_detached {
            self.detached_of.leave(gone.job);
        }
        self.dirty.remove(&(gone.number, group));
        self.held.stand_no_more(group);
        if let Some(at) = gone.timer {
            self.timers.remove(&(at, group));
        }
        let seats = gone.seats.iter().filter_map(|seat| seat.place());
        for (to, lease) in seats.chain(gone.leaving.iter().map(|(lease, node)| (*node, *lease))) {
            self.held.leave(lease);
            out.push(Effect::ReturnLease { to, lease });
        }
        Some(Gone { task: gone.task, was_detached: gone.is_detached })
    }

    /// Whether a group of a job lives on without its driver.
    pub(super) fn has_detached(&self, job: JobId) -> bool {
        self.detached_of.has(job)
    }

    /// Whether a job has lost the last group that outlives its driver, since this was asked last.
    pub(super) fn take_undetached(&mut self) -> bool {
        self.detached_of.take_last_left()
    }

    /// Groups that need no handles: each counts as a use.
    pub(super) fn without_handles(&self) -> impl Iterator<Item = Slot<Object>> {
        self.all.iter().filter(|(_, group)| group.is_detached).map(|(slot, _)| *slot)
    }

    /// The nodes of the bundles of a group.
    pub(super) fn nodes(&self, group: Slot<Object>) -> BundleNodes {
        let seats = self.all.get(&group).into_iter().flat_map(|group| &group.seats);
        BundleNodes(seats.map(|seat| seat.placed_at()).collect())
    }
}

/// Attempts.
impl Groups {
    /// Whether there is a group to plan.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.held.has_relieved()
    }

    /// The next group to plan.
    pub(super) fn next_dirty(&mut self) -> Option<Slot<Object>> {
        self.dirty.extend(self.held.take_relieved());
        self.dirty.pop_first().map(|(_, group)| group)
    }

    /// The members of the cluster have changed: groups without nodes are planned again.
    pub(super) fn members_changed(&mut self) {
        let is_idle = |group: &Group| matches!(group.state, State::Again(_) | State::Impossible(..));
        let idle = self.all.iter().filter(|(_, group)| is_idle(group));
        self.dirty.extend(idle.map(|(slot, group)| (group.number, *slot)));
    }

    /// Plans a group that has bundles without nodes, and asks for them. If its job has a quota, nodes that
    /// have room may wait for a part of that, so an attempt has its time.
    pub(super) fn plan(
        &mut self,
        slot: Slot<Object>,
        view: &mut View,
        quota: Option<&Quota>,
        mut name: impl FnMut() -> LeaseId,
        out: &mut Vec<Effect>,
    ) {
        let now = self.now;
        let Some(group) = self.all.get_mut(&slot) else { return };
        let lacks = self.held.lacks((group.job, quota), group.missing());
        let stays_behind = group.state == State::Behind && lacks.is_some();
        if stays_behind || matches!(group.state, State::Whole | State::Asking(_)) {
            return;
        }
        self.held.stand_no_more(slot);
        let placed: Vec<_> = group.seats.iter().map(|seat| seat.placed_at()).collect();
        let (nodes, doublings) = match (view.plan_group(now, &group.spec, &placed), lacks) {
            (GroupPlan::Now(_) | GroupPlan::Wait(_), Some(lacks)) => {
                group.state = State::Behind;
                self.held.stand_behind(slot, group.job, group.number, lacks);
                return self.set_timer(slot);
            }
            (GroupPlan::Now(nodes), None) => (nodes, quota.map(|_| group.quota_doublings())),
            (GroupPlan::Wait(nodes), None) => (nodes, Some(DOUBLINGS_MAX)),
            (GroupPlan::Never(reason), _) => {
                let since = if let State::Impossible(since, _) = group.state { since } else { now };
                group.state = State::Impossible(since, reason);
                return self.set_timer(slot);
            }
            (GroupPlan::Unclear, _) => {
                group.state = State::Again(now + TRY_AGAIN_MAX);
                return self.set_timer(slot);
            }
        };
        group.state = State::Asking(doublings.map(|most| now + (WAIT_FOR << group.tries.min(most))));
        let empty = group.seats.iter_mut().enumerate().filter(|(_, seat)| **seat == Seat::Empty);
        for ((index, seat), node) in empty.zip(nodes) {
            let (lease, class) = (name(), bundle_class(group.job, group.id, index, &group.spec));
            *seat = Seat::Asked(node, lease);
            view.asked(now, node, &class.resources);
            let urgency = class.priority;
            self.held.enter(lease, slot, (group.job, quota), &class.resources);
            out.push(Effect::RequestLease { to: node, lease, class, wait: doublings.is_some(), urgency });
        }
        self.set_timer(slot);
    }

    /// A node holds a bundle.
    pub(super) fn granted(&mut self, lease: LeaseId) -> Grant {
        let Some(slot) = self.held.group(lease) else { return Grant::Stale };
        let Some(group) = self.all.get_mut(&slot) else { return Grant::Stale };
        for seat in &mut group.seats {
            if let Seat::Asked(node, asked) = *seat
                && asked == lease
            {
                *seat = Seat::Held(node, lease);
            }
        }
        let is_whole = group.settle();
        self.set_timer(slot);
        if is_whole { Grant::Whole(slot) } else { Grant::Waits }
    }

    /// A node does not hold a bundle: the attempt is over. False if the lease is none of an attempt.
    pub(super) fn refused(&mut self, lease: LeaseId, out: &mut Vec<Effect>) -> bool {
        let Some(slot) = self.held.leave(lease) else { return false };
        let Some(group) = self.all.get_mut(&slot) else { return false };
        group.leaving.remove(&lease);
        let is_its = |seat: &&mut Seat| seat.is_of_attempt() && seat.place().is_some_and(|(_, l)| l == lease);
        let Some(seat) = group.seats.iter_mut().find(is_its) else { return true };
        *seat = Seat::Empty;
        self.give_up(slot, out);
        true
    }

    /// Ends the attempt of a group; another one is made later.
    fn give_up(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        self.abort(slot, out);
        let now = self.now;
        let Some(group) = self.all.get_mut(&slot) else { return };
        let pause = (TRY_AGAIN_AFTER << group.tries.min(DOUBLINGS_MAX)).min(TRY_AGAIN_MAX);
        group.tries += 1;
        // Groups that are in each other's way try again at different times.
        group.state = State::Again(now + pause + group.id.mixed() % pause);
        self.set_timer(slot);
    }

    /// Notes when something is due for a group.
    fn set_timer(&mut self, slot: Slot<Object>) {
        let Some(group) = self.all.get_mut(&slot) else { return };
        let timer = group.next_timeout();
        let before = std::mem::replace(&mut group.timer, timer);
        if before != timer {
            before.into_iter().for_each(|at| assert!(self.timers.remove(&(at, slot)), "a time is lost"));
            self.timers.extend(timer.map(|at| (at, slot)));
        }
    }

    /// Gives back all that an attempt has asked for.
    fn abort(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(group) = self.all.get_mut(&slot) else { return };
        for seat in group.seats.iter_mut().filter(|seat| seat.is_of_attempt()) {
            if let Some((to, lease)) = seat.place() {
                self.held.leave(lease);
                out.push(Effect::ReturnLease { to, lease });
            }
            *seat = Seat::Empty;
        }
    }

    /// Whether a lease holds a bundle, or was asked for one, on another node than `node`.
    pub(super) fn is_leased_elsewhere(&self, lease: LeaseId, node: NodeId) -> bool {
        let Some(group) = self.held.group(lease).and_then(|slot| self.all.get(&slot)) else { return false };
        let seats = group.seats.iter().filter_map(|seat| seat.place());
        let leaving = group.leaving.iter().map(|(lease, node)| (*node, *lease));
        seats.chain(leaving).any(|(at, held)| held == lease && at != node)
    }
}

/// Bundles that are lost.
impl Groups {
    /// A node drains, and wants the lease of a bundle back when what runs inside has ended. Returns the group
    /// if others knew the bundle.
    pub(super) fn recalled(&mut self, lease: LeaseId, out: &mut Vec<Effect>) -> Option<Slot<Object>> {
        let slot = self.held.group(lease)?;
        let group = self.all.get_mut(&slot)?;
        let seat = group.seats.iter().position(|seat| seat.place().is_some_and(|(_, l)| l == lease))?;
        match group.seats[seat] {
            Seat::Placed(node, _) => {
                group.leaving.insert(lease, node);
                self.vacate(slot, seat, out);
                Some(slot)
            }
            _ => {
                self.give_up(slot, out);
                None
            }
        }
    }

    /// The lease of a bundle is gone. Returns the group if others knew the bundle; `Err` if the lease is none
    /// of a bundle.
    pub(super) fn lost(
        &mut self,
        lease: LeaseId,
        out: &mut Vec<Effect>,
    ) -> Result<Option<Slot<Object>>, LeaseId> {
        let slot = self.held.leave(lease).ok_or(lease)?;
        let Some(group) = self.all.get_mut(&slot) else { return Ok(None) };
        group.leaving.remove(&lease);
        let is_its = |seat: &Seat| seat.place().is_some_and(|(_, l)| l == lease);
        let Some(seat) = group.seats.iter().position(is_its) else { return Ok(None) };
        let was_placed = group.seats[seat].placed_at().is_some();
        self.vacate(slot, seat, out);
        Ok(was_placed.then_some(slot))
    }

    /// A node is gone. Returns the groups of which others knew bundles there.
    pub(super) fn node_gone(&mut self, node: NodeId, out: &mut Vec<Effect>) -> Vec<Slot<Object>> {
        let mut changed = Vec::new();
        for slot in self.in_order() {
            let Some(group) = self.all.get_mut(&slot) else { continue };
            let held = &mut self.held;
            group.leaving.retain(|lease, at| {
                let stays = *at != node;
                if !stays {
                    held.leave(*lease);
                }
                stays
            });
            let is_there = |seat: &Seat| seat.place().is_some_and(|(at, _)| at == node);
            let there: Vec<_> = (0..group.seats.len()).filter(|at| is_there(&group.seats[*at])).collect();
            if there.iter().any(|at| group.seats[*at].placed_at().is_some()) {
                changed.push(slot);
            }
            for seat in there {
                if let Some((_, lease)) = self.all.get(&slot).and_then(|group| group.seats[seat].place()) {
                    self.held.leave(lease);
                }
                self.vacate(slot, seat, out);
            }
        }
        self.members_changed();
        changed
    }

    /// A bundle has no node any more. If an attempt is under way it is over, and the next one is for this
    /// bundle too.
    fn vacate(&mut self, slot: Slot<Object>, seat: usize, out: &mut Vec<Effect>) {
        if let Some(group) = self.all.get_mut(&slot) {
            group.seats[seat] = Seat::Empty;
        }
        self.abort(slot, out);
        if let Some(group) = self.all.get_mut(&slot) {
            self.held.stand_no_more(slot);
            group.state = State::Planned;
            self.dirty.insert((group.number, slot));
        }
        self.set_timer(slot);
    }

    fn in_order(&self) -> Vec<Slot<Object>> {
        let mut slots: Vec<_> = self.all.keys().copied().collect();
        slots.sort_unstable();
        slots
    }
}

/// Time.
impl Groups {
    /// When [`Groups::expire`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        let groups = self.timers.first().map(|(at, _)| *at);
        groups.into_iter().chain(self.known.next_timeout()).min()
    }

    /// Goes on with attempts whose time has come. Returns the groups that no node could hold for as long as
    /// they were ready to wait, with the reasons.
    pub(super) fn expire(&mut self, now: Now, out: &mut Vec<Effect>) -> Vec<(Slot<Object>, String)> {
        let mut over = Vec::new();
        let due: Vec<_> =
            self.timers.iter().take_while(|(at, _)| *at <= now).map(|(_, slot)| *slot).collect();
        for slot in due {
            let Some(group) = self.all.get_mut(&slot) else { continue };
            match &group.state {
                State::Planned | State::Behind | State::Whole => {}
                State::Asking(_) => self.give_up(slot, out),
                State::Again(_) => {
                    group.state = State::Planned;
                    self.dirty.insert((group.number, slot));
                    self.set_timer(slot);
                }
                State::Impossible(_, reason) => over.push((slot, reason.clone())),
            }
        }
        over
    }
}

impl Group {
    /// Its bundles without nodes.
    fn missing(&self) -> impl Iterator<Item = &Resources> {
        let empty = self.seats.iter().zip(&self.spec.bundles).filter(|(seat, _)| **seat == Seat::Empty);
        empty.map(|(_, bundle)| bundle)
    }

    /// Doublings of the time of an attempt that waits for parts of a quota. Groups that are in each other's
    /// way have their long attempts at different times.
    fn quota_doublings(&self) -> u32 {
        let turn = self.id.mixed() % u64::from(LONG_EVERY);
        let is_long = LONG_EVERY <= self.tries && u64::from(self.tries % LONG_EVERY) == turn;
        if is_long { DOUBLINGS_MAX } else { QUOTA_DOUBLINGS_MAX }
    }

    /// If all bundles are held, they are placed.
    fn settle(&mut self) -> bool {
        if !self.seats.iter().all(|seat| matches!(seat, Seat::Held(..) | Seat::Placed(..))) {
            return false;
        }
        for seat in &mut self.seats {
            if let Seat::Held(node, lease) = *seat {
                *seat = Seat::Placed(node, lease);
            }
        }
        let was_whole = self.state == State::Whole;
        (self.state, self.tries) = (State::Whole, 0);
        !was_whole
    }

    fn next_timeout(&self) -> Option<Now> {
        match self.state {
            State::Planned | State::Behind | State::Whole | State::Asking(None) => None,
            State::Asking(Some(at)) | State::Again(at) => Some(at),
            State::Impossible(since, _) => {
                Some(since.saturating_add(self.spec.patience_ms.saturating_mul(MS)))
            }
        }
    }
}

/// The class of the lease that holds a bundle.
fn bundle_class(job: JobId, group: TaskId, index: usize, spec: &GroupSpec) -> Arc<TaskClass> {
    Arc::new(TaskClass {
        resources: spec.bundles[index].clone(),
        placement: Placement::Bundle { group, index: index as u32 },
        ..TaskClass::new(job, FunctionId(0), "placement group")
    })
}
