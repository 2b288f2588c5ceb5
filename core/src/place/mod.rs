//! Choice of the node on which a task runs.
//!
//! The rule for tasks without a placement: the local node until its fullest resource is half used, then the
//! least used node (the local one on a tie). Tasks without GPUs avoid nodes with GPUs while others have room.
//! The free resources of other nodes are those that they reported, less those asked of them since.
//!
//! In a small cluster every node hears the load of every other one, and all of them are compared. In a large
//! one a node hears few loads (`loads`), and a decision costs the same however many nodes there are: it
//! compares the local node and `DRAWS` others that are drawn, of those that could run the task at all
//! (`members`). The best of a few is nearly as good as the best of all, and nodes that decide at the same
//! time do not all choose the same one. If none of these has room, up to `LOOKS_MAX` more are looked at,
//! each decision going on where the last one ended. Nobody is asked while it looks.

mod draining;
mod groups;
mod loads;
mod members;

use crate::event::Member;
use crate::{MS, Now};
use loads::Loads;
use members::{Able, Members, wastes_gpus};
use std::sync::Arc;
use tharsis_types::task::LabelSelector;
use tharsis_types::{Failure, FailureKind, NodeId, Placement, Resources};

pub use groups::GroupPlan;
pub use loads::Load;
pub use members::matches;

/// The local node is filled up to this level before other nodes are considered, in 1/1000.
const PACK_PERMILLE: u64 = 500;
/// Nodes that a decision in a large cluster compares, beside the local one.
const DRAWS: usize = 4;
/// Maximum number of nodes that a decision in a large cluster looks at if none of those drawn has room.
const LOOKS_MAX: usize = 256;
/// Decisions of a large cluster that found no room are made again after this time.
const LOOK_AGAIN: Now = 50 * MS;

/// Maximum number of nodes that the reason for a task that fits nowhere names.
const NODES_NAMED_MAX: usize = 8;

/// One node's knowledge of the cluster.
#[derive(Debug)]
pub struct View {
    me: NodeId,
    members: Members,
    loads: Loads,
    /// Most nodes of a cluster in which all are compared.
    small_max: usize,
    /// Number of nodes drawn so far: the next draw follows from it.
    drawn: u64,
    /// The place at which the last look for room ended.
    looked_to: usize,
    /// When to look for room again, after a look that found none.
    look_again_at: Now,
}

/// The node to ask for a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// The node, which should have room now.
    Now(NodeId),
    /// The node, to wait there until it has room.
    Wait(NodeId),
    /// No node of the present cluster; the reason is for people. A node that joins may change this.
    Nowhere(String),
    /// No node, ever: the task fails.
    Never(Box<Failure>),
}

/// Wishes for a choice beside the demand and the placement; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// The node that has most of the arguments, if there are enough of them.
    pub near: Option<NodeId>,
    /// Nodes that are left out.
    pub left_out: &'a [NodeId],
    /// The occasion.
    pub turn: Turn,
}

impl From<Option<NodeId>> for Wishes<'_> {
    fn from(near: Option<NodeId>) -> Self {
        Self { near, ..Self::default() }
    }
}

/// The occasion of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// The task waits nowhere.
    #[default]
    First,
    /// The task waits at nodes that are left out, and another may have room sooner. In a large cluster such
    /// questions go to nodes of which nothing is known only as long as enough guesses are left for work that
    /// waits nowhere.
    Second,
}

/// A demand that is to be placed now, and the nodes that are left out.
#[derive(Clone, Copy)]
struct Wish<'a> {
    now: Now,
    demand: &'a Resources,
    left_out: &'a [NodeId],
    /// Whether the local node is filled to a level first.
    packs: bool,
    /// Whether the local node may run it although it drains.
    stays: bool,
    turn: Turn,
}

impl View {
    /// A cluster of one; clusters of at most `small_max` nodes are small.
    #[must_use]
    pub fn new(me: Member, small_max: usize) -> Self {
        Self {
            me: me.node,
            members: Members::new(Arc::new(me)),
            loads: Loads::default(),
            small_max,
            drawn: 0,
            looked_to: 0,
            look_again_at: 0,
        }
    }

    /// Notes that a node joined.
    pub fn joined(&mut self, member: Arc<Member>) {
        self.members.add(member);
    }

    /// Notes that a node left the cluster.
    pub fn left(&mut self, node: NodeId) {
        self.members.remove(node);
        self.loads.left(node);
    }

    /// Whether a node is part of the cluster.
    #[must_use]
    pub fn knows(&self, node: NodeId) -> bool {
        self.members.get(node).is_some()
    }

    /// Whether the cluster is so small that every node deals with every other one.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.members.len() <= self.small_max
    }

    /// All nodes, and their loads as far as they are known: the others count as unused.
    pub fn members(&self) -> impl Iterator<Item = (&Member, Load)> {
        self.members.iter().map(|member| (member, self.load(member)))
    }

    /// The other nodes of the cluster.
    pub fn others(&self) -> impl Iterator<Item = NodeId> {
        self.members.iter().map(|member| member.node).filter(|n| *n != self.me)
    }

    /// A node reported its load.
    pub fn reported(&mut self, now: Now, node: NodeId, load: Load) {
        if self.knows(node) {
            self.loads.reported(now, node, load);
        }
    }

    /// A node had no room.
    pub fn denied(&mut self, now: Now, node: NodeId, free: Resources) {
        if self.knows(node) {
            self.loads.denied(now, node, free);
        }
    }

    /// Resources were asked of a node: it has less free until its next report.
    pub fn asked(&mut self, now: Now, node: NodeId, demand: &Resources) {
        if let Some(member) = self.members.get(node) {
            self.loads.asked(now, node, demand, &member.resources);
        }
    }

    /// Resources that were asked of a node are given back.
    pub fn gave_back(&mut self, node: NodeId, taken: &Resources) {
        self.loads.gave_back(node, taken);
    }

    /// Whether a node would have room for `demand` if `taken` were given back.
    #[must_use]
    pub fn has_room_without(&self, node: NodeId, demand: &Resources, taken: &Resources) -> bool {
        self.members.get(node).is_some_and(|member| {
            let mut free = self.load(member).free;
            free.give(taken);
            free.fits(demand)
        })
    }

    /// Whether requests for leases wait at a node, as far as is known.
    #[must_use]
    pub fn has_waiting(&self, node: NodeId) -> bool {
        self.loads.of(node).is_some_and(|load| 0 < load.waiting)
    }

    /// When another decision may come out differently: a node that denied a lease may be asked again, or more
    /// nodes can be looked at.
    #[must_use]
    pub fn next_timeout(&self, now: Now) -> Option<Now> {
        let look_again = Some(self.look_again_at).filter(|at| now < *at);
        self.loads.next_timeout(now).into_iter().chain(look_again).min()
    }

    /// The node to ask for a lease. Nodes that drain are left out; if this node drains and no other one can
    /// run the task, it stays here. The wishes may be the node that is [near](Wishes::near) alone.
    #[must_use]
    pub fn choose<'a>(
        &mut self,
        now: Now,
        demand: &Resources,
        placement: &Placement,
        wishes: impl Into<Wishes<'a>>,
    ) -> Choice {
        let Wishes { near, left_out, turn } = wishes.into();
        let packs = !matches!(placement, Placement::Spread);
        let wish = Wish { now, demand, left_out, packs, stays: false, turn };
        match self.choose_for(wish, placement, near) {
            Choice::Nowhere(_) if self.is_draining(self.me) && !left_out.contains(&self.me) => {
                self.choose_for(Wish { stays: true, ..wish }, placement, near)
            }
            choice => choice,
        }
    }

    fn choose_for(&mut self, wish: Wish<'_>, placement: &Placement, near: Option<NodeId>) -> Choice {
        match placement {
            Placement::Node { node, .. } if wish.left_out.contains(node) => {
                Choice::Nowhere(format!("node {node} is left out"))
            }
            Placement::Node { node, soft } => self.choose_node(wish, *node, *soft),
            Placement::Labels(selectors) => self.choose_labelled(wish, selectors),
            Placement::Spread => self.choose_among(wish, None),
            // Bundles are planned together, and their groups know where they are: neither asks here.
            Placement::Reserve(_) | Placement::Bundle { .. } | Placement::Group { .. } => {
                Choice::Nowhere("it belongs to a placement group".to_owned())
            }
            Placement::Default => {
                if let Some(node) = near {
                    self.forget_old(wish, node);
                    if self.has_room(wish, node) {
                        return Choice::Now(node);
                    }
                }
                self.choose_among(wish, None)
            }
        }
    }

    fn choose_node(&mut self, wish: Wish<'_>, node: NodeId, soft: bool) -> Choice {
        let demand = wish.demand;
        let fits = self.members.get(node).map(|member| member.resources.fits(demand));
        match (fits, soft) {
            // A soft placement falls back to other nodes if the node is gone or drains, not if it is busy.
            (Some(true), _) if self.takes_work(wish, node) => Choice::Wait(node),
            (_, true) => self.choose_among(wish, None),
            (Some(true), false) if self.is_draining(node) => Choice::Nowhere(format!("node {node} drains")),
            (Some(true), false) => {
                Choice::Nowhere(format!("node {node} has no resources: it runs nothing for others"))
            }
            (Some(false), false) => Choice::Nowhere(format!("node {node} does not have {demand}")),
            (None, false) => {
                let text =
                    format!("node {node} is not part of the cluster, and the task may run nowhere else");
                Choice::Never(Box::new(Failure::new(FailureKind::NodeNotFound, text)))
            }
        }
    }

    fn choose_labelled(&mut self, wish: Wish<'_>, selectors: &[LabelSelector]) -> Choice {
        let mut reason = Choice::Nowhere("no label selector was given".to_owned());
        for selector in selectors {
            let choice = self.choose_among(wish, Some(selector));
            match choice {
                Choice::Nowhere(_) => reason = choice,
                found => return found,
            }
        }
        reason
    }

    /// The choice among all nodes with labels, or among all.
    fn choose_among(&mut self, wish: Wish<'_>, labels: Option<&LabelSelector>) -> Choice {
        let able = self.members.able(wish.demand, labels);
        let local = self.is_able_here(wish, labels);
        if wish.packs && local && self.packs_here(wish) {
            return Choice::Now(self.me);
        }
        let found = if self.is_small() {
            let all = able.nodes.iter().filter(|node| self.has_room(wish, **node));
            all.min_by_key(|node| self.order(wish, **node)).copied()
        } else {
            self.draw(wish, &able, local).or_else(|| self.look_around(wish, &able))
        };
        if let Some(node) = found {
            return Choice::Now(node);
        }
        if local {
            return Choice::Wait(self.me);
        }
        match self.where_to_wait(wish, &able) {
            Some(node) => Choice::Wait(node),
            None => Choice::Nowhere(self.why_nowhere(wish, labels)),
        }
    }

    /// Whether the local node is one of those that could run it.
    fn is_able_here(&self, wish: Wish<'_>, labels: Option<&LabelSelector>) -> bool {
        let Some(member) = self.members.get(self.me) else { return false };
        !wish.left_out.contains(&self.me)
            && self.takes_work(wish, self.me)
            && member.resources.fits(wish.demand)
            && labels.is_none_or(|labels| matches(labels, &member.labels))
    }

    /// Whether the local node is so little used that nobody else is considered.
    fn packs_here(&self, wish: Wish<'_>) -> bool {
        let Some(member) = self.members.get(self.me) else { return false };
        let mut free = self.load(member).free;
        free.take(wish.demand)
            && !wastes_gpus(wish.demand, member)
            && free.used_permille(&member.resources) <= PACK_PERMILLE
    }

    /// The order in which nodes that have room are taken: those that are used least come first.
    fn order(&self, wish: Wish<'_>, node: NodeId) -> (bool, u64, bool, NodeId) {
        let Some(member) = self.members.get(node) else { return (true, u64::MAX, true, node) };
        let mut free = self.load(member).free;
        let _fits = free.take(wish.demand);
        let used = free.used_permille(&member.resources);
        (wastes_gpus(wish.demand, member), used, node != self.me, node)
    }

    /// The best of a few nodes that are drawn, and of the local one.
    fn draw(&mut self, wish: Wish<'_>, able: &Able, local: bool) -> Option<NodeId> {
        let mut best = None;
        let drawn: [Option<NodeId>; DRAWS] = std::array::from_fn(|_| self.draw_one(able));
        for node in drawn.into_iter().flatten().chain(local.then_some(self.me)) {
            self.forget_old(wish, node);
            if self.has_room(wish, node) {
                let order = self.order(wish, node);
                best = Some(best.map_or(order, |best| order.min(best)));
            }
        }
        best.map(|(.., node)| node)
    }

    /// A node on which nothing is wasted, while there are such, or any.
    fn draw_one(&mut self, able: &Able) -> Option<NodeId> {
        let count = if 0 < able.thrifty_count { able.thrifty_count } else { able.nodes.len() };
        self.drawn += 1;
        let index = mixed(self.me.0, self.drawn).checked_rem(count as u64)?;
        able.nodes.get(index as usize).copied()
    }

    /// The next node with room, in the order of the table, from where the last look ended.
    fn look_around(&mut self, wish: Wish<'_>, able: &Able) -> Option<NodeId> {
        let count = able.nodes.len();
        let mut second_best = None;
        for _ in 0..count.min(LOOKS_MAX) {
            self.looked_to = (self.looked_to + 1) % count;
            let node = able.nodes[self.looked_to];
            self.forget_old(wish, node);
            if self.has_room(wish, node) {
                if self.looked_to < able.thrifty_count {
                    return Some(node);
                }
                second_best.get_or_insert(node);
            }
        }
        if second_best.is_none() && 0 < count {
            self.look_again_at = wish.now + LOOK_AGAIN;
        }
        second_best
    }

    /// The node at which least is known to wait. In a large cluster it is one of a part of the nodes, a
    /// different part for each node that decides, but always the same one: a task waits at one place.
    fn where_to_wait(&self, wish: Wish<'_>, able: &Able) -> Option<NodeId> {
        let count = able.nodes.len();
        let from = (mixed(self.me.0, 0) % count.max(1) as u64) as usize;
        let part = (0..count.min(LOOKS_MAX)).map(|step| able.nodes[(from + step) % count]);
        let order = |node: &NodeId| {
            let waiting = self.loads.of(*node).map_or(0, |load| load.waiting);
            (waiting, if self.is_small() { node.0 } else { mixed(self.me.0, node.0) })
        };
        part.filter(|node| !wish.left_out.contains(node)).min_by_key(order)
    }

    fn why_nowhere(&self, wish: Wish<'_>, labels: Option<&LabelSelector>) -> String {
        let is_asked_for = |member: &&Member| {
            !wish.left_out.contains(&member.node)
                && self.takes_work(wish, member.node)
                && labels.is_none_or(|labels| matches(labels, &member.labels))
        };
        let mut all = self.members.iter().filter(is_asked_for).peekable();
        if all.peek().is_none() {
            let drain = self.members.iter().any(|member| self.is_draining(member.node));
            let reason =
                if drain { "all nodes that it may run on drain" } else { "no node has the labels asked for" };
            return reason.to_owned();
        }
        let lacks: Vec<_> = all
            .filter_map(|member| Some((member.node, member.resources.lacking(wish.demand)?)))
            .map(|(node, (name, need, have))| {
                let unit = if name == "memory" { 1.0 } else { Resources::UNIT as f64 };
                format!("node {node} has {} of {} {name}", have as f64 / unit, need as f64 / unit)
            })
            .take(NODES_NAMED_MAX)
            .collect();
        format!("no node can ever run it: {}", lacks.join("; "))
    }

    /// Whether a node should have room now.
    fn has_room(&self, wish: Wish<'_>, node: NodeId) -> bool {
        if wish.left_out.contains(&node)
            || !self.takes_work(wish, node)
            || self.loads.is_denied(wish.now, node)
        {
            return false;
        }
        match self.loads.of(node) {
            Some(load) => load.free.fits(wish.demand),
            None => {
                let fits = |member: &Arc<Member>| member.resources.fits(wish.demand);
                (self.is_small() || self.loads.may_guess(wish.now, wish.turn))
                    && self.members.get(node).is_some_and(fits)
            }
        }
    }

    /// Whether a node takes new work of this one. The local one may be allowed to although it drains.
    fn takes_work(&self, wish: Wish<'_>, node: NodeId) -> bool {
        let serves = node == self.me || self.members.get(node).is_some_and(|member| member.serves_others());
        serves && (!self.is_draining(node) || wish.stays && node == self.me)
    }

    /// In a large cluster the load of another node may be too old to be believed.
    fn forget_old(&mut self, wish: Wish<'_>, node: NodeId) {
        if node != self.me && !self.is_small() {
            self.loads.forget_old(wish.now, node);
        }
    }

    /// The load of a member; one of which nothing is known counts as unused.
    fn load(&self, member: &Member) -> Load {
        let unused = || Load { free: member.resources.clone(), waiting: 0 };
        self.loads.of(member.node).cloned().unwrap_or_else(unused)
    }

    /// Asserts the relations between its tables.
    pub fn check(&self) {
        self.loads.check();
        assert!(self.knows(self.me), "a node is not a member of its own cluster");
    }
}

/// A number that depends on two others in no visible way.
fn mixed(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
