//! Choice of the node on which a task runs.
//!
//! The rule for tasks without a placement: the local node until its fullest resource is half used, then the
//! least used node (the local one on a tie). Tasks without GPUs avoid nodes with GPUs while others have room.
//! The free resources of other nodes are those that they reported, less those asked of them since.

use crate::event::Member;
use crate::{MS, Now};
use std::collections::BTreeMap;
use tharsis_types::task::{LabelSelector, LabelTerm};
use tharsis_types::{Failure, FailureKind, NodeId, Placement, Resources};

/// The local node is filled up to this level before other nodes are considered, in 1/1000.
const PACK_PERMILLE: u64 = 500;
/// A node that denied a lease is not asked again for this long, unless it reports.
const DENIED_FOR: Now = 50 * MS;

/// One node's knowledge of the cluster.
#[derive(Debug)]
pub struct View {
    me: NodeId,
    nodes: BTreeMap<NodeId, Seen>,
}

#[derive(Debug)]
struct Seen {
    member: Member,
    load: Load,
    denied_until: Now,
}

/// Load of a node as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Unused resources.
    pub free: Resources,
    /// Lease requests that wait there.
    pub waiting: u32,
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

impl View {
    /// A cluster of one.
    #[must_use]
    pub fn new(me: Member) -> Self {
        let load = Load { free: me.resources.clone(), waiting: 0 };
        Self { me: me.node, nodes: BTreeMap::from([(me.node, Seen { member: me, load, denied_until: 0 })]) }
    }

    /// Notes that a node joined.
    pub fn joined(&mut self, member: Member) {
        let load = Load { free: member.resources.clone(), waiting: 0 };
        self.nodes.insert(member.node, Seen { member, load, denied_until: 0 });
    }

    /// Notes that a node left the cluster.
    pub fn left(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// Whether a node is part of the cluster.
    #[must_use]
    pub fn knows(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// All nodes and their load.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &Load)> {
        self.nodes.values().map(|s| (&s.member, &s.load))
    }

    /// The other nodes of the cluster.
    pub fn others(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.keys().copied().filter(|n| *n != self.me)
    }

    /// A node reported its load.
    pub fn reported(&mut self, node: NodeId, load: Load) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.load = load;
            seen.denied_until = 0;
        }
    }

    /// A node had no room.
    pub fn denied(&mut self, now: Now, node: NodeId, free: Resources) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.load.free = free;
            seen.denied_until = now + DENIED_FOR;
        }
    }

    /// Resources were asked of a node: it has less free until its next report.
    pub fn asked(&mut self, node: NodeId, demand: &Resources) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            let _fits = seen.load.free.take(demand);
        }
    }

    /// Resources that were asked of a node are given back.
    pub fn gave_back(&mut self, node: NodeId, taken: &Resources) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.load.free.give(taken);
            seen.denied_until = 0;
        }
    }

    /// Whether a node would have room for `demand` if `taken` were given back.
    #[must_use]
    pub fn has_room_without(&self, node: NodeId, demand: &Resources, taken: &Resources) -> bool {
        self.nodes.get(&node).is_some_and(|seen| {
            let mut free = seen.load.free.clone();
            free.give(taken);
            free.fits(demand)
        })
    }

    /// When a node that denied a lease may be asked again.
    #[must_use]
    pub fn next_timeout(&self, now: Now) -> Option<Now> {
        self.nodes.values().map(|s| s.denied_until).filter(|at| *at > now).min()
    }

    /// The node to ask for a lease; `near` is the node that has most of the arguments, if there are enough of
    /// them.
    #[must_use]
    pub fn choose(
        &self,
        now: Now,
        demand: &Resources,
        placement: &Placement,
        near: Option<NodeId>,
    ) -> Choice {
        self.choose_besides(now, demand, placement, near, &[])
    }

    /// As [`View::choose`], with some nodes left out.
    #[must_use]
    pub fn choose_besides(
        &self,
        now: Now,
        demand: &Resources,
        placement: &Placement,
        near: Option<NodeId>,
        left_out: &[NodeId],
    ) -> Choice {
        let is_in = |node: &NodeId| !left_out.contains(node);
        let anywhere = |m: &Member| is_in(&m.node);
        match placement {
            Placement::Node { node, .. } if left_out.contains(node) => {
                Choice::Nowhere(format!("node {node} is left out"))
            }
            Placement::Node { node, soft } => self.choose_node(now, demand, *node, *soft),
            Placement::Labels(selectors) => self.choose_labelled(now, demand, selectors, anywhere),
            Placement::Spread => self.choose_among(now, demand, anywhere, false),
            Placement::Default => {
                if let Some(node) = near.filter(|n| is_in(n) && self.has_room(now, *n, demand)) {
                    return Choice::Now(node);
                }
                self.choose_among(now, demand, anywhere, true)
            }
        }
    }

    fn choose_node(&self, now: Now, demand: &Resources, node: NodeId, soft: bool) -> Choice {
        let fits = self.nodes.get(&node).map(|seen| seen.member.resources.fits(demand));
        match (fits, soft) {
            // A soft placement falls back to other nodes when the node is gone, not when it is busy.
            (Some(true), _) => Choice::Wait(node),
            (_, true) => self.choose_among(now, demand, |_| true, true),
            (Some(false), false) => Choice::Nowhere(format!("node {node} does not have {demand}")),
            (None, false) => {
                let text =
                    format!("node {node} is not part of the cluster, and the task may run nowhere else");
                Choice::Never(Box::new(Failure::new(FailureKind::NodeNotFound, text)))
            }
        }
    }

    fn choose_labelled(
        &self,
        now: Now,
        demand: &Resources,
        selectors: &[LabelSelector],
        allowed: impl Fn(&Member) -> bool,
    ) -> Choice {
        let mut reason = Choice::Nowhere("no label selector was given".to_owned());
        for selector in selectors {
            let choice = self.choose_among(now, demand, |m| allowed(m) && matches(selector, &m.labels), true);
            match choice {
                Choice::Nowhere(_) => reason = choice,
                found => return found,
            }
        }
        reason
    }

    fn choose_among(
        &self,
        now: Now,
        demand: &Resources,
        allowed: impl Fn(&Member) -> bool,
        pack: bool,
    ) -> Choice {
        let able: Vec<_> =
            self.nodes.values().filter(|s| allowed(&s.member) && s.member.resources.fits(demand)).collect();
        if able.is_empty() {
            return Choice::Nowhere(self.why_nowhere(demand, allowed));
        }
        let wastes_gpus = |s: &Seen| demand.gpu == 0 && s.member.resources.gpu > 0;
        let after = |s: &Seen| {
            let mut free = s.load.free.clone();
            let _fits = free.take(demand);
            free.used_permille(&s.member.resources)
        };
        let local = able.iter().find(|s| s.member.node == self.me);
        let roomy = able.iter().filter(|s| s.load.free.fits(demand) && s.denied_until <= now);
        if pack
            && let Some(local) = local
            && local.load.free.fits(demand)
            && !wastes_gpus(local)
            && after(local) <= PACK_PERMILLE
        {
            return Choice::Now(self.me);
        }
        let order = |s: &&&Seen| (wastes_gpus(s), after(s), s.member.node != self.me, s.member.node);
        if let Some(best) = roomy.min_by_key(order) {
            return Choice::Now(best.member.node);
        }
        let wait = local.or_else(|| able.iter().min_by_key(|s| (s.load.waiting, s.member.node)));
        wait.map_or_else(|| Choice::Nowhere("no node".to_owned()), |s| Choice::Wait(s.member.node))
    }

    fn why_nowhere(&self, demand: &Resources, allowed: impl Fn(&Member) -> bool) -> String {
        let mut all = self.nodes.values().filter(|s| allowed(&s.member)).peekable();
        if all.peek().is_none() {
            return "no node has the labels asked for".to_owned();
        }
        let lacks: Vec<_> = all
            .filter_map(|s| Some((s.member.node, s.member.resources.lacking(demand)?)))
            .map(|(node, (name, need, have))| {
                let unit = if name == "memory" { 1.0 } else { Resources::UNIT as f64 };
                format!("node {node} has {} of {} {name}", have as f64 / unit, need as f64 / unit)
            })
            .collect();
        format!("no node can ever run it: {}", lacks.join("; "))
    }

    fn has_room(&self, now: Now, node: NodeId, demand: &Resources) -> bool {
        self.nodes.get(&node).is_some_and(|s| s.load.free.fits(demand) && s.denied_until <= now)
    }
}

/// Whether labels satisfy all terms of a selector.
#[must_use]
pub fn matches(selector: &[LabelTerm], labels: &[(String, String)]) -> bool {
    let value = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    selector.iter().all(|term| match term {
        LabelTerm::In(key, values) => value(key).is_some_and(|v| values.contains(v)),
        LabelTerm::NotIn(key, values) => value(key).is_none_or(|v| !values.contains(v)),
        LabelTerm::Exists(key) => value(key).is_some(),
        LabelTerm::DoesNotExist(key) => value(key).is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(n: u64, cpus: f64, gpus: u64, labels: &[(&str, &str)]) -> Member {
        let resources = Resources { gpu: gpus * Resources::UNIT, ..Resources::cpus(cpus).unwrap() };
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Member { node: NodeId(n), resources, labels }
    }

    fn three() -> View {
        let mut view = View::new(member(1, 4.0, 0, &[("zone", "a")]));
        view.joined(member(2, 4.0, 0, &[("zone", "b")]));
        view.joined(member(3, 4.0, 1, &[("zone", "b"), ("ssd", "")]));
        view
    }

    fn one_cpu() -> Resources {
        Resources::cpus(1.0).unwrap()
    }

    #[test]
    fn e2_the_local_node_is_half_filled_then_the_least_used_is_taken_and_gpus_are_avoided() {
        let mut view = three();
        let mut taken = Vec::new();
        for _ in 0..12 {
            let Choice::Now(node) = view.choose(0, &one_cpu(), &Placement::Default, None) else { break };
            view.asked(node, &one_cpu());
            taken.push(node.0);
        }
        assert_eq!(taken, [1, 1, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3]);
        assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, None), Choice::Wait(NodeId(1)));
    }

    #[test]
    fn e1_the_node_with_the_arguments_is_taken_while_it_has_room() {
        let mut view = three();
        let near = Some(NodeId(2));
        for _ in 0..4 {
            assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, near), Choice::Now(NodeId(2)));
            view.asked(NodeId(2), &one_cpu());
        }
        assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, near), Choice::Now(NodeId(1)));
    }

    #[test]
    fn e3_affinity_and_labels() {
        let view = three();
        let gone = NodeId(9);
        let hard = view.choose(0, &one_cpu(), &Placement::Node { node: gone, soft: false }, None);
        assert!(matches!(hard, Choice::Never(f) if f.kind == FailureKind::NodeNotFound));
        let soft = view.choose(0, &one_cpu(), &Placement::Node { node: gone, soft: true }, None);
        assert_eq!(soft, Choice::Now(NodeId(1)));
        let zone_b = LabelTerm::In("zone".into(), vec!["b".into()]);
        let no_ssd = LabelTerm::DoesNotExist("ssd".into());
        let none = vec![LabelTerm::Exists("tape".into())];
        let list = Placement::Labels(vec![none.clone(), vec![zone_b, no_ssd]]);
        assert_eq!(view.choose(0, &one_cpu(), &list, None), Choice::Now(NodeId(2)));
        let nowhere = view.choose(0, &one_cpu(), &Placement::Labels(vec![none]), None);
        assert_eq!(nowhere, Choice::Nowhere("no node has the labels asked for".into()));
    }

    #[test]
    fn a_node_that_denied_is_left_alone_for_a_while() {
        let mut view = three();
        view.denied(0, NodeId(2), Resources::cpus(4.0).unwrap());
        let spread = |view: &View, now| view.choose(now, &one_cpu(), &Placement::Spread, None);
        view.asked(NodeId(1), &one_cpu());
        assert_eq!(spread(&view, 0), Choice::Now(NodeId(1)));
        assert_eq!(spread(&view, DENIED_FOR), Choice::Now(NodeId(2)));
    }
}
