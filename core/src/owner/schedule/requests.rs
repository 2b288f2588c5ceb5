//! Requests for leases: their number, their nodes, and the idle leases that make way for them.

use super::leases::Request;
use super::{LeaseUse, Schedule, Shape, leases};
use crate::journal::Fact;
use crate::owner::Effect;
use crate::owner::groups::KnownGroups;
use crate::owner::tasks::Tasks;
use crate::place::{Choice, Turn, View, Wishes};
use crate::slab::Slot;
use crate::{MS, Now};
use std::cmp::Reverse;
use tharsis_types::limits::CLIENTS_MAX;
use tharsis_types::{Failure, LeaseId, NodeId, Placement, Resources};

/// Maximum number of requests for leases of one shape under way at a time.
pub(super) const REQUESTS_MAX: usize = 16;
/// Maximum number of leases of a shape that needs no resources, besides those whose tasks wait for others or
/// take long: what these wait for may be in the queue.
const FREE_LEASES_MAX: usize = 64;
/// A task takes long, as to [`FREE_LEASES_MAX`], after this time.
const FREE_LONG_AFTER: Now = 100 * MS;
/// Maximum number of leases of a shape that needs no resources. Each has a worker, and a node has room for
/// [`CLIENTS_MAX`].
const FREE_WORKERS_MAX: usize = CLIENTS_MAX / 2;

/// Maximum number of these leases whose tasks do not wait for others: more would be processes without end,
/// and nothing waits for them.
const FREE_RUNNING_MAX: usize = 256;

/// The leases that a shape asks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// None.
    Nothing,
    /// One for a task that has none.
    Lease,
    /// One at another node for a task whose request waits at a node without room.
    Elsewhere,
}

impl Schedule {
    /// Asks for as many leases as a shape needs. Returns an error if none can ever be granted.
    pub(super) fn request_leases(
        &mut self,
        now: Now,
        shape_index: Slot<Shape>,
        tasks: &Tasks,
        groups: &KnownGroups,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> Result<(), Box<Failure>> {
        if let Some(failure) = self.shape_beyond_quota(shape_index) {
            let nodes: Vec<_> = self.shapes[shape_index].near.keys().copied().collect();
            nodes.into_iter().for_each(|node| self.shapes[shape_index].forget_near(node, tasks));
            return Err(Box::new(failure));
        }
        self.raise_requests(shape_index, out);
        let near: Vec<_> = self.shapes[shape_index].near.iter().map(|(n, q)| (*n, q.len())).collect();
        for (node, count) in near {
            if !self.request_near(now, shape_index, node, count, view, out) {
                self.shapes[shape_index].forget_near(node, tasks);
            }
        }
        loop {
            match self.need(now, shape_index, view) {
                Need::Nothing => return Ok(()),
                Need::Lease => {}
                Need::Elsewhere if self.request_elsewhere(now, shape_index, view, out) => continue,
                Need::Elsewhere => return Ok(()),
            }
            if self.is_crowded(now, shape_index) {
                return Ok(());
            }
            let shape = &self.shapes[shape_index];
            if !self.has_quota_left(shape_index) {
                let job = shape.key.job;
                if self.return_idle_of(job, out)
                    || self.all_wait(now, shape_index, view)
                        && self.request_elsewhere(now, shape_index, view, out)
                {
                    continue;
                }
                return Ok(());
            }
            let (demand, placement) = (shape.key.resources.clone(), shape.key.placement.clone());
            let mut choice = match placement {
                Placement::Group { group, bundle } => {
                    let choice = self.choose_inside(shape_index, group, bundle, groups, view);
                    self.unless_paused(now, shape_index, choice)
                }
                _ => self.choose(now, shape_index, view, None),
            };
            let is_anywhere = matches!(placement, Placement::Default | Placement::Spread);
            if is_anywhere && matches!(choice, Choice::Wait(_)) && self.return_idle(None, &demand, view, out)
            {
                choice = self.choose(now, shape_index, view, None);
            }
            if !self.follow(shape_index, choice, now, view, out)? {
                return Ok(());
            }
        }
    }

    /// The next need of a shape. A request that has its resources, and whose worker starts, is as good as
    /// granted.
    fn need(&self, now: Now, shape_index: Slot<Shape>, view: &View) -> Need {
        let (requested, waiting) = self.count_requests(now, shape_index, view);
        let wanted = self.shapes[shape_index].queue.len().min(REQUESTS_MAX);
        if requested < wanted {
            Need::Lease
        } else if requested - waiting < wanted {
            Need::Elsewhere
        } else {
            Need::Nothing
        }
    }

    /// Whether all requests of a shape wait at nodes without room. Where the quota allows no further one, it
    /// still allows one in their place: it is what they wait for that is short, not the quota.
    fn all_wait(&self, now: Now, shape_index: Slot<Shape>, view: &View) -> bool {
        let (requested, waiting) = self.count_requests(now, shape_index, view);
        requested == waiting
    }

    /// The number of requests of a shape that are not granted, and of those among them that wait at nodes
    /// without room.
    fn count_requests(&self, now: Now, shape_index: Slot<Shape>, view: &View) -> (usize, usize) {
        let (mut requested, mut waiting) = (0, 0);
        for used in self.requested(shape_index) {
            requested += 1;
            waiting += usize::from(used.waits() && (used.is_old(now) || view.has_waiting(used.node)));
        }
        (requested, waiting)
    }

    /// Asks another node for a lease than those at which requests of the shape wait, if one should have room.
    /// The first grant counts: the requests that wait then go back with the rest of the need.
    fn request_elsewhere(
        &mut self,
        now: Now,
        shape_index: Slot<Shape>,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> bool {
        let key = &self.shapes[shape_index].key;
        let mut left_out = self.refusals.left_out(now, key.job);
        let waiting = self.requested(shape_index).filter(|used| used.waits()).map(|used| used.node);
        left_out.extend(waiting);
        // Without a choice a task stays at a node that drains; here others have been asked.
        left_out.extend(view.is_draining(self.me).then_some(self.me));
        if self.shapes[shape_index].is_inside() || !self.fits_quota_instead(shape_index) {
            return false;
        }
        let wishes = Wishes { left_out: &left_out, turn: Turn::Second, ..Wishes::default() };
        let choice = view.choose(now, &key.resources, &key.placement, wishes);
        let Choice::Now(node) = choice else { return false };
        self.request(shape_index, node, node == self.me, now, view, out);
        true
    }

    /// Whether a shape without resources has as many leases as it may have for now. It has more as tasks
    /// take long or wait for others.
    pub(super) fn is_crowded(&mut self, now: Now, shape_index: Slot<Shape>) -> bool {
        let shape = &self.shapes[shape_index];
        // Every actor has a worker of its own, for as long as it lives.
        let is_bounded = shape.key.resources == Resources::default() && !shape.key.constructs;
        if !is_bounded || shape.leases.len() < FREE_LEASES_MAX {
            return false;
        }
        let running = shape.leases.iter().filter(|id| !self.leases[id].paused).count();
        let reason = if FREE_WORKERS_MAX <= shape.leases.len() {
            format!("{FREE_WORKERS_MAX} workers have tasks that need no resources, which is the limit")
        } else if FREE_RUNNING_MAX <= running {
            format!("{FREE_RUNNING_MAX} tasks that need no resources run, which is the limit")
        } else {
            let leases = shape.leases.iter().map(|id| &self.leases[id]);
            let counted = leases.filter_map(|used| used.long_from(now, FREE_LONG_AFTER));
            let (count, next) = counted.fold((0, None), |(count, next): (_, Option<Now>), at| {
                // A lease that is not granted counts, and its grant is an event: no time is waited for.
                let next = if now < at { Some(next.map_or(at, |next| next.min(at))) } else { next };
                (count + 1, next)
            });
            if count < FREE_LEASES_MAX {
                return false;
            }
            self.look_at_crowded = self.look_at_crowded.into_iter().chain(next).min();
            format!("{FREE_LEASES_MAX} workers with tasks that need no resources are asked for or busy")
        };
        self.shapes[shape_index].stuck = Some(reason);
        true
    }

    /// Asks for leases on the node that has the arguments. False if there is none there: the tasks go to the
    /// common queue. Idle leases of this owner's other tasks count as room.
    fn request_near(
        &mut self,
        now: Now,
        shape_index: Slot<Shape>,
        node: NodeId,
        count: usize,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> bool {
        let at_node =
            |id: &LeaseId| Some(&self.leases[id]).filter(|l| l.node == node && !l.recalled && !l.paused);
        let shape = &self.shapes[shape_index];
        let there = shape.leases.iter().filter_map(at_node);
        let is_there = there.clone().next().is_some();
        // A lease that has a task does not count: that task may wait for a task of this queue.
        let mut have = there.filter(|used| used.in_flight.is_empty()).count();
        let demand = shape.key.resources.clone();
        while have < count.min(REQUESTS_MAX)
            && self.has_quota_left(shape_index)
            && !self.is_crowded(now, shape_index)
        {
            let mut choice = self.choose(now, shape_index, view, Some(node));
            if choice != Choice::Now(node) && self.return_idle(Some(node), &demand, view, out) {
                choice = self.choose(now, shape_index, view, Some(node));
            }
            if choice != Choice::Now(node) {
                break;
            }
            self.request(shape_index, node, node == self.me, now, view, out);
            have += 1;
        }
        have > 0 || is_there
    }

    /// Gives back an idle lease that no queue needs, on `node` or on any, if that makes room for `demand`.
    fn return_idle(
        &mut self,
        node: Option<NodeId>,
        demand: &Resources,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> bool {
        let is_idle = |used: &LeaseUse| {
            let shape = &self.shapes[used.shape];
            node.is_none_or(|node| used.node == node)
                && used.is_granted()
                && used.in_flight.is_empty()
                && !shape.has_for(used.node)
                && view.has_room_without(used.node, demand, &shape.key.resources)
        };
        let Some(lease) = self.timers.outside().find(|id| is_idle(&self.leases[id])) else { return false };
        let used = &self.leases[&lease];
        view.gave_back(used.node, &self.shapes[used.shape].key.resources);
        self.give_back(lease, out);
        true
    }

    /// Gives back idle leases of a shape that has no task for them, where that makes room for a request of
    /// another one. A lease outlives the last task of its shape for a while, since the next call is often on
    /// its way; but calls that differ in an amount of a resource are a shape each, and each would wait until
    /// the node asks the lease of the one before back.
    pub(super) fn make_way(&mut self, now: Now, slot: Slot<Shape>, view: &mut View, out: &mut Vec<Effect>) {
        let shape = &self.shapes[slot];
        if self.waits.is_empty() || shape.is_inside() {
            return;
        }
        let taken = shape.key.resources.clone();
        let is_idle = |id: &LeaseId| {
            let used = &self.leases[id];
            used.is_granted() && used.in_flight.is_empty() && !shape.has_for(used.node)
        };
        for lease in shape.leases.iter().copied().filter(is_idle).collect::<Vec<_>>() {
            let node = self.leases[&lease].node;
            let Some((request, demand)) = self.helped(slot, node, &taken, view) else { continue };
            self.waits_no_more(request);
            view.gave_back(node, &taken);
            view.asked(now, node, &demand);
            self.give_back(lease, out);
        }
    }

    /// A request of another shape that waits at a node and has room there only if `taken` comes back.
    fn helped(
        &self,
        slot: Slot<Shape>,
        node: NodeId,
        taken: &Resources,
        view: &View,
    ) -> Option<(LeaseId, Resources)> {
        self.waits.first(node).find_map(|lease| {
            let of = self.leases[&lease].shape;
            let other = &self.shapes[of];
            let demand = &other.key.resources;
            let has_room = |taken: &Resources| view.has_room_without(node, demand, taken);
            let is_helped = of != slot && !other.is_inside() && !has_room(&Resources::default());
            (is_helped && has_room(taken)).then(|| (lease, demand.clone()))
        })
    }

    /// A request is about to be answered, raised or given back, or a lease has made way for it.
    pub(super) fn waits_no_more(&mut self, lease: LeaseId) {
        if let Some(LeaseUse { node, request: Some(request), .. }) = self.leases.get(&lease) {
            self.waits.remove(*node, request.urgency, lease);
        }
    }

    /// The node to ask for a lease of a shape. Nodes on which workers of its job do not start are left out
    /// while there are others.
    fn choose(&self, now: Now, shape_index: Slot<Shape>, view: &mut View, near: Option<NodeId>) -> Choice {
        let key = &self.shapes[shape_index].key;
        if self.refusals.left_out(now, key.job).is_empty() {
            // No node is paused either.
            return view.choose(now, &key.resources, &key.placement, near);
        }
        if let Some(others) = self.choose_elsewhere(now, shape_index, view, near) {
            return others;
        }
        if self.has_granted(shape_index) {
            // Those that it has will do for a while.
            return Choice::Nowhere("no further worker is started for now".to_owned());
        }
        let choice = view.choose(now, &key.resources, &key.placement, near);
        self.unless_paused(now, shape_index, choice)
    }

    /// A choice, unless a worker of the job did not start on its node a moment ago.
    fn unless_paused(&self, now: Now, shape_index: Slot<Shape>, choice: Choice) -> Choice {
        let (Choice::Now(node) | Choice::Wait(node)) = choice else { return choice };
        let pause = self.refusals.pause(now, self.shapes[shape_index].key.job, node);
        pause.map_or(choice, Choice::Nowhere)
    }

    /// The node to ask for a lease of a shape, besides those on which workers of its job do not start.
    pub(super) fn choose_elsewhere(
        &self,
        now: Now,
        shape_index: Slot<Shape>,
        view: &mut View,
        near: Option<NodeId>,
    ) -> Option<Choice> {
        let key = &self.shapes[shape_index].key;
        let left_out = self.refusals.left_out(now, key.job);
        let wishes = Wishes { near, left_out: &left_out, ..Wishes::default() };
        let others = view.choose(now, &key.resources, &key.placement, wishes);
        matches!(others, Choice::Now(_) | Choice::Wait(_)).then_some(others)
    }

    /// Acts on a choice of node; false if no further request makes sense now, an error if none ever does.
    fn follow(
        &mut self,
        shape_index: Slot<Shape>,
        choice: Choice,
        now: Now,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> Result<bool, Box<Failure>> {
        let (node, wait) = match choice {
            Choice::Now(node) => (node, node == self.me),
            Choice::Wait(node) => {
                if self.requested(shape_index).any(|l| l.node == node) {
                    return Ok(false);
                }
                (node, true)
            }
            Choice::Nowhere(reason) => {
                self.shapes[shape_index].stuck = Some(reason);
                return Ok(false);
            }
            Choice::Never(failure) => return Err(failure),
        };
        self.request(shape_index, node, wait, now, view, out);
        Ok(true)
    }

    /// Asks a node for a lease.
    pub(super) fn request(
        &mut self,
        shape_index: Slot<Shape>,
        node: NodeId,
        wait: bool,
        now: Now,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) {
        let lease = self.name_lease();
        let urgency = self.shapes[shape_index].urgency_at(self.requested(shape_index).count());
        let has_quota = self.quota(self.shapes[shape_index].key.job).is_some();
        let shape = &mut self.shapes[shape_index];
        shape.stuck = None;
        if !shape.is_inside() {
            view.asked(now, node, &shape.key.resources);
        }
        shape.leases.push(lease);
        let request = Request { waits: wait, has_quota, urgency };
        if wait {
            self.waits.add(node, urgency, lease);
        }
        let mut used = LeaseUse::new(node, (shape_index, shape.is_inside()), request, now);
        self.timers.set(lease, &mut used);
        let old = self.leases.insert(lease, used);
        assert!(old.is_none(), "two leases have one name");
        self.abroad += usize::from(node != self.me);
        out.push(Effect::RequestLease { to: node, lease, class: shape.sample.clone(), wait, urgency });
        self.note(shape_index, Fact::LeaseAsked(node));
    }

    /// Raises requests where tasks have come that are more urgent than those that requests were
    /// made for.
    fn raise_requests(&mut self, shape_index: Slot<Shape>, out: &mut Vec<Effect>) {
        let shape = &self.shapes[shape_index];
        if !shape.is_ranked() {
            return;
        }
        let requests = shape.leases.iter().filter_map(|id| Some((*id, self.leases[id].request?)));
        let waiting = requests.filter(|(_, request)| request.waits);
        let mut waiting: Vec<_> = waiting.map(|(id, request)| (Reverse(request.urgency), id)).collect();
        waiting.sort_unstable();
        let wanted = shape.urgencies(waiting.len());
        for ((Reverse(asked), lease), urgency) in waiting.into_iter().zip(wanted) {
            if asked < urgency {
                self.waits_no_more(lease);
                let used = leases::used_mut(&mut self.leases, lease);
                used.request = used.request.map(|request| Request { urgency, ..request });
                self.waits.add(used.node, urgency, lease);
                out.push(Effect::RaiseLease { to: used.node, lease, urgency });
            }
        }
    }

    /// The name of a new lease.
    pub(in crate::owner) fn name_lease(&mut self) -> LeaseId {
        self.next_lease += 1;
        LeaseId(self.next_lease)
    }

    pub(super) fn requested(&self, shape_index: Slot<Shape>) -> impl Iterator<Item = &LeaseUse> {
        self.shapes[shape_index].leases.iter().map(|id| &self.leases[id]).filter(|l| !l.is_granted())
    }
}
