//! Placement groups of a ledger among nodes that grant, refuse, are late and die.

use crate::event::{Member, Value};
use crate::owner::{Effect, GroupStage, Owner, Submission};
use crate::place::View;
use crate::{MS, Now};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tharsis_types::{
    BundleNodes, ClientId, Failure, FailureKind, FunctionId, GroupSpec, JobId, JobQuota, LeaseId, NodeId,
    ObjectId, Placement, Resources, Strategy, TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const DRIVER: ClientId = ClientId(1);

/// A ledger, and the nodes of its cluster as far as bundles go.
struct World {
    owner: Owner,
    view: View,
    now: Now,
    nodes: BTreeMap<NodeId, Holder>,
    next: u64,
}

/// A node that holds bundles. Messages in each direction keep their order.
#[derive(Default)]
struct Holder {
    total: Resources,
    held: BTreeMap<LeaseId, Resources>,
    waiting: Vec<(LeaseId, Resources)>,
    inbox: VecDeque<Effect>,
    outbox: VecDeque<(LeaseId, bool)>,
}

impl Holder {
    fn fits(&self, demand: &Resources) -> bool {
        let mut free = self.total.clone();
        self.held.values().for_each(|taken| assert!(free.take(taken), "a node holds more than it has"));
        free.fits(demand)
    }

    /// Acts on one message of the ledger.
    fn act(&mut self, refuses: bool) {
        match self.inbox.pop_front() {
            Some(Effect::RequestLease { lease, class, wait, .. }) => {
                let demand = class.resources.clone();
                if self.fits(&demand) && !refuses {
                    self.held.insert(lease, demand);
                    self.outbox.push_back((lease, true));
                } else if wait && !refuses {
                    self.waiting.push((lease, demand));
                } else {
                    self.outbox.push_back((lease, false));
                }
            }
            Some(Effect::ReturnLease { lease, .. }) => {
                self.held.remove(&lease);
                self.waiting.retain(|(waiting, _)| *waiting != lease);
            }
            _ => {}
        }
        for (lease, demand) in std::mem::take(&mut self.waiting) {
            if self.fits(&demand) {
                self.held.insert(lease, demand);
                self.outbox.push_back((lease, true));
            } else {
                self.waiting.push((lease, demand));
            }
        }
    }
}

fn cpus(count: f64) -> Resources {
    Resources::cpus(count).unwrap()
}

fn member(node: NodeId, resources: Resources) -> Member {
    Member { node, resources, labels: Vec::new() }
}

impl World {
    /// A cluster of nodes with these CPUs; the first is the one of the ledger.
    fn new(all: &[f64]) -> Self {
        let mut world = Self {
            owner: Owner::new(ME, 0),
            view: View::new(member(ME, cpus(all[0])), usize::MAX),
            now: 0,
            nodes: BTreeMap::from([(ME, Holder { total: cpus(all[0]), ..Holder::default() })]),
            next: 1,
        };
        all[1..].iter().for_each(|count| world.join(*count));
        world
    }

    /// The job of the groups has a quota.
    fn set_quota(&mut self, quota: &str) {
        let terms = JobQuota { home: ME, quota: quota.parse().unwrap() };
        self.owner.set_quota(JobId(1), Some(&Arc::new(terms)));
    }

    fn join(&mut self, count: f64) {
        let node = NodeId(self.nodes.len() as u64 + self.next * 100);
        self.next += 1;
        self.nodes.insert(node, Holder { total: cpus(count), ..Holder::default() });
        self.owner.node_joined(node);
        self.owner.members_changed();
        self.view.joined(Arc::new(member(node, cpus(count))));
    }

    fn die(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.view.left(node);
        self.change(|owner, now, out| owner.node_gone(now, node, out));
    }

    fn change(&mut self, change: impl FnOnce(&mut Owner, Now, &mut Vec<Effect>)) {
        let mut out = Vec::new();
        change(&mut self.owner, self.now, &mut out);
        self.send(out);
    }

    fn send(&mut self, out: Vec<Effect>) {
        for effect in out {
            if let Effect::RequestLease { to, .. } | Effect::ReturnLease { to, .. } = &effect
                && let Some(node) = self.nodes.get_mut(to)
            {
                node.inbox.push_back(effect);
            }
        }
    }

    fn create(&mut self, strategy: Strategy, bundles: &[f64], patience_ms: u64) -> ObjectId {
        let bundles = bundles.iter().map(|count| cpus(*count)).collect();
        self.submit(GroupSpec { bundles, strategy, patience_ms }, false)
    }

    fn create_detached(&mut self, bundles: &[f64], patience_ms: u64) -> ObjectId {
        let bundles = bundles.iter().map(|count| cpus(*count)).collect();
        self.submit(GroupSpec { bundles, strategy: Strategy::Spread, patience_ms }, true)
    }

    fn submit(&mut self, spec: GroupSpec, detached: bool) -> ObjectId {
        self.next += 1;
        let placement = Placement::Reserve(spec);
        let class = TaskClass { placement, detached, ..TaskClass::new(JobId(1), FunctionId(1), "group") };
        let number = self.next as u32;
        self.owner.define_class(DRIVER, number, &Arc::new(class));
        let task = TaskId::root(JobId(1)).child(self.next);
        let args = TaskArgs::default();
        let tokens = [self.next].into_iter().collect();
        let submission = Submission {
            client: DRIVER,
            parent: None,
            depth: 0,
            deadline: None,
            class: number,
            task,
            tokens,
            args,
        };
        self.change(|owner, _, out| owner.submit(submission, out));
        self.round();
        ObjectId::output(task, 0)
    }

    fn round(&mut self) {
        let (now, view) = (self.now, &mut self.view);
        let mut out = Vec::new();
        self.owner.schedule(now, view, &mut out);
        self.send(out);
        self.owner.check(std::iter::empty());
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms * MS;
        self.owner.tell_time(self.now);
        self.change(|owner, now, out| owner.expire(now, out));
        self.round();
    }

    /// One node acts on one message; one of its answers arrives.
    fn deliver(&mut self, node: NodeId, refuses: bool) {
        let Some(holder) = self.nodes.get_mut(&node) else { return };
        holder.act(refuses);
        let answer = holder.outbox.pop_front();
        let mut free = holder.total.clone();
        holder.held.values().for_each(|taken| assert!(free.take(taken)));
        let Some((lease, is_granted)) = answer else { return };
        let now = self.now;
        if is_granted {
            self.change(|owner, _, out| owner.lease_granted(now, lease, node, out))
        } else {
            self.view.denied(now, node, free);
            self.change(|owner, _, out| owner.lease_denied(lease, out));
        }
        self.round();
    }

    /// Delivers all messages, and lets time pass for what is tried again.
    fn run_dry(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.deliver_all();
            self.pass(10);
        }
        self.deliver_all();
    }

    fn deliver_all(&mut self) {
        let is_busy = |holder: &Holder| !holder.inbox.is_empty() || !holder.outbox.is_empty();
        while let Some(node) = self.nodes.iter().find(|(_, holder)| is_busy(holder)).map(|(node, _)| *node) {
            self.deliver(node, false);
        }
    }

    /// The nodes of a group that is published.
    fn nodes_of(&self, group: ObjectId) -> Option<Vec<Option<NodeId>>> {
        match self.owner.value_ref(group)? {
            Value::Inline(bytes) => Some(BundleNodes::from_bytes(bytes).unwrap().0),
            other => panic!("{group} is {other:?}"),
        }
    }

    fn failure_of(&self, group: ObjectId) -> Option<FailureKind> {
        match self.owner.value_ref(group)? {
            Value::Failed(failure) => Some(failure.kind),
            _ => None,
        }
    }

    fn held_count(&self) -> usize {
        self.nodes.values().map(|holder| holder.held.len() + holder.waiting.len()).sum()
    }

    /// CPUs that nodes hold, or were asked to hold.
    fn asked_cpus(&self) -> f64 {
        let asked = self.nodes.values().flat_map(|holder| {
            let coming = holder.inbox.iter().filter_map(|effect| match effect {
                Effect::RequestLease { class, .. } => Some(class.resources.cpu),
                _ => None,
            });
            let there = holder.held.values().chain(holder.waiting.iter().map(|(_, demand)| demand));
            coming.chain(there.map(|demand| demand.cpu))
        });
        asked.sum::<u64>() as f64 / Resources::UNIT as f64
    }

    /// The stages of all groups, as lists show them.
    fn stages(&self) -> Vec<(GroupStage, bool)> {
        self.owner.group_items().iter().map(|group| (group.stage, group.is_detached)).collect()
    }

    /// The driver is gone, and its job lives on.
    fn driver_gone(&mut self) {
        self.change(|owner, _, out| owner.client_gone(DRIVER, out));
        self.round();
    }

    fn remove(&mut self, group: ObjectId) {
        self.change(|owner, _, out| owner.cancel(group, true, false, out));
        self.round();
    }
}

#[test]
fn e7_when_the_third_of_four_bundles_is_refused_nothing_stays_reserved() {
    let mut world = World::new(&[1.0; 4]);
    let group = world.create(Strategy::StrictSpread, &[1.0; 4], 1_000);
    let asked: Vec<_> = world.nodes.keys().copied().collect();
    for (index, node) in asked.iter().enumerate().take(3) {
        world.deliver(*node, index == 2);
        assert_eq!(world.nodes_of(group), None, "a part of a group is published");
    }
    world.deliver_all();
    assert_eq!(world.held_count(), 0, "a part of a group stays reserved");
    // It is tried again, and the refusal is not for ever.
    world.run_dry(200);
    let mut nodes: Vec<_> = world.nodes_of(group).unwrap().into_iter().flatten().collect();
    nodes.sort_unstable();
    assert_eq!(nodes, asked);
    world.remove(group);
    world.deliver_all();
    assert_eq!((world.held_count(), world.failure_of(group)), (0, Some(FailureKind::GroupRemoved)));
}

/// As a node does that cannot read the request.
#[test]
fn e7_a_bundle_that_fails_as_a_worker_would_ends_the_attempt() {
    let mut world = World::new(&[1.0; 2]);
    let group = world.create(Strategy::StrictSpread, &[1.0; 2], 10_000);
    let failed = world.nodes.keys().copied().find(|node| *node != ME).unwrap();
    let request = world.nodes.get_mut(&failed).unwrap().inbox.pop_front();
    let Some(Effect::RequestLease { lease, .. }) = request else { panic!("{request:?}") };
    let failure = Arc::new(Failure::new(FailureKind::InvalidArgument, "it cannot be read"));
    world.change(|owner, now, out| owner.lease_failed(now, lease, &failure, out));
    world.round();
    world.deliver_all();
    assert_eq!((world.nodes_of(group), world.held_count()), (None, 0), "the other bundle goes back");
    world.run_dry(200);
    assert_eq!(world.nodes_of(group).map(|nodes| nodes.len()), Some(2), "it is tried again");
}

#[test]
fn e7_a_group_waits_for_a_node_that_joins() {
    let mut world = World::new(&[2.0; 3]);
    let group = world.create(Strategy::StrictSpread, &[1.0; 4], 60_000);
    world.run_dry(500);
    assert_eq!((world.nodes_of(group), world.held_count()), (None, 0));
    let pending = world.owner.pending();
    assert!(pending[0].reason.contains("only 3 nodes"), "{pending:?}");
    world.join(1.0);
    world.round();
    world.run_dry(50);
    assert_eq!(world.nodes_of(group).unwrap().len(), 4);
    assert!(world.owner.pending().is_empty());
}

#[test]
fn a_group_that_never_fits_fails_after_its_time() {
    let mut world = World::new(&[1.0, 1.0]);
    let group = world.create(Strategy::Pack, &[2.0], 300);
    world.run_dry(290);
    assert_eq!((world.owner.value_ref(group), world.owner.pending().len()), (None, 1));
    world.run_dry(20);
    assert_eq!(world.failure_of(group), Some(FailureKind::Infeasible));
    assert_eq!((world.held_count(), world.owner.pending().len()), (0, 0));
}

#[test]
fn e8_only_the_bundle_of_a_lost_node_moves() {
    let mut world = World::new(&[1.0; 4]);
    let group = world.create(Strategy::StrictSpread, &[1.0; 3], 1_000);
    world.run_dry(10);
    let before = world.nodes_of(group).unwrap();
    let lost = before.iter().flatten().copied().find(|node| *node != ME).unwrap();
    world.die(lost);
    let meanwhile = world.nodes_of(group).unwrap();
    assert_eq!(meanwhile.iter().filter(|node| node.is_none()).count(), 1, "the others stay known");
    world.round();
    world.run_dry(50);
    let after = world.nodes_of(group).unwrap();
    let moved: Vec<_> = (0..3).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!(moved.len(), 1);
    assert_eq!(before[moved[0]], Some(lost));
    assert!(after[moved[0]].is_some() && !before.contains(&after[moved[0]]));
}

#[test]
fn a_detached_group_needs_no_handle_and_ends_when_it_is_removed() {
    let mut world = World::new(&[1.0; 3]);
    let group = world.create_detached(&[1.0, 1.0], 1_000);
    let other = world.create(Strategy::Pack, &[1.0], 1_000);
    world.run_dry(100);
    world.driver_gone();
    assert_eq!(world.stages(), [(GroupStage::Placed, true)], "the other one is gone");
    assert!(world.owner.has_detached(JobId(1)) && world.owner.value_ref(other).is_none());
    let before = world.nodes_of(group).unwrap();
    let lost = before.iter().flatten().copied().find(|node| *node != ME).unwrap();
    world.die(lost);
    world.run_dry(100);
    let after = world.nodes_of(group).unwrap();
    assert!(after.iter().all(|node| node.is_some_and(|node| node != lost)), "{after:?}");
    world.remove(group);
    world.run_dry(100);
    assert!(!world.owner.has_detached(JobId(1)) && world.owner.value_ref(group).is_none());
    assert_eq!((world.stages(), world.held_count()), (vec![], 0));
}

#[test]
fn a_detached_group_that_never_fits_ends_after_its_time() {
    let mut world = World::new(&[1.0; 2]);
    let group = world.create_detached(&[8.0], 500);
    world.driver_gone();
    assert_eq!(world.stages(), [(GroupStage::Infeasible, true)]);
    world.run_dry(600);
    assert!(!world.owner.has_detached(JobId(1)) && world.owner.value_ref(group).is_none());
}

#[test]
fn groups_that_need_each_others_nodes_are_all_placed_in_the_end() {
    let mut world = World::new(&[1.0, 1.0]);
    let first = world.create(Strategy::StrictSpread, &[1.0; 2], 1_000);
    let second = world.create(Strategy::StrictSpread, &[1.0; 2], 1_000);
    // Each gets one of the two nodes: the nodes take the requests in opposite order.
    let nodes: Vec<_> = world.nodes.keys().copied().collect();
    world.nodes.get_mut(&nodes[1]).unwrap().inbox.make_contiguous().reverse();
    world.run_dry(100);
    let placed = |world: &World, group| world.nodes_of(group).is_some();
    for _ in 0..100 {
        if placed(&world, first) || placed(&world, second) {
            break;
        }
        world.run_dry(100);
    }
    let (done, other) = if placed(&world, first) { (first, second) } else { (second, first) };
    assert!(placed(&world, done) && !placed(&world, other), "one has both nodes");
    world.remove(done);
    world.run_dry(60_000);
    assert!(placed(&world, other));
}

#[test]
fn groups_that_do_not_fit_a_quota_together_ask_for_nothing_until_they_do() {
    let mut world = World::new(&[4.0; 3]);
    world.set_quota("cpus=3");
    let [first, second, third] = [(); 3].map(|()| world.create(Strategy::StrictSpread, &[1.0; 2], 1_000));
    let small = world.create(Strategy::Pack, &[1.0], 1_000);
    let placed = |world: &World, all: &[ObjectId]| {
        all.iter().map(|group| world.nodes_of(*group).is_some()).collect::<Vec<_>>()
    };
    let all = [first, second, third, small];
    for _ in 0..50 {
        assert!(world.asked_cpus() <= 3.0, "more is asked for than the quota allows");
        world.run_dry(100);
        assert_eq!(placed(&world, &all), [true, false, false, true], "the small one passes");
    }
    let reasons: Vec<_> = world.owner.pending().into_iter().map(|pending| pending.reason).collect();
    assert!(reasons.len() == 2 && reasons.iter().all(|reason| reason.contains("quota")), "{reasons:?}");
    world.remove(small);
    world.run_dry(20);
    assert_eq!(placed(&world, &[first, second, third]), [true, false, false], "one CPU is not enough");
    world.remove(first);
    world.run_dry(20);
    assert_eq!(placed(&world, &[second, third]), [true, false], "the older one is first");
    // One that is removed while it stands behind others leaves nothing.
    world.remove(third);
    world.remove(second);
    world.run_dry(20);
    assert_eq!((world.asked_cpus(), world.owner.groups.is_empty()), (0.0, true));
}

/// As if tasks of its job held the rest of the quota, and one of them ended now and then.
#[test]
fn a_group_gathers_parts_of_a_quota_that_come_slowly() {
    const SLOW: Now = 15_000 * MS;
    let mut world = World::new(&[1.0; 2]);
    world.set_quota("cpus=2");
    let group = world.create(Strategy::StrictSpread, &[1.0; 2], 1_000);
    let slow = *world.nodes.keys().find(|node| **node != ME).unwrap();
    let mut asked_at = None;
    for _ in 0..4_000 {
        world.deliver(ME, false);
        match world.nodes[&slow].inbox.len() {
            0 => asked_at = None,
            1 if world.now < *asked_at.get_or_insert(world.now) + SLOW => {}
            _ => world.deliver(slow, false),
        }
        if world.nodes_of(group).is_some() {
            return;
        }
        world.pass(100);
    }
    panic!("the group is given up again and again");
}

#[test]
fn a_bundle_that_is_lost_finds_room_in_the_quota_again() {
    let mut world = World::new(&[4.0; 3]);
    world.set_quota("cpus=2");
    let group = world.create(Strategy::StrictSpread, &[1.0; 2], 1_000);
    let behind = world.create(Strategy::Pack, &[1.0], 1_000);
    world.run_dry(20);
    let before = world.nodes_of(group).unwrap();
    world.die(before.iter().flatten().copied().find(|node| *node != ME).unwrap());
    world.round();
    world.run_dry(50);
    let whole = |nodes: Option<Vec<Option<NodeId>>>| nodes.is_some_and(|nodes| !nodes.contains(&None));
    assert!(whole(world.nodes_of(group)), "the older group comes first");
    assert_eq!(world.nodes_of(behind), None);
    world.remove(group);
    world.run_dry(20);
    assert!(whole(world.nodes_of(behind)));
}

/// Numbers without a visible rule, the same for each seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// A step that may happen to a cluster at any time.
fn act_at_random(world: &mut World, groups: &mut Vec<ObjectId>, random: &mut Random) {
    let all: Vec<_> = world.nodes.keys().copied().collect();
    let node = all[random.below(all.len())];
    match random.below(40) {
        0..=1 if groups.len() < 6 => {
            let strategies = [Strategy::Pack, Strategy::Spread, Strategy::StrictPack, Strategy::StrictSpread];
            let strategy = strategies[random.below(4)];
            let bundles: Vec<_> = (0..=random.below(3)).map(|_| 1.0 + random.below(2) as f64).collect();
            groups.push(world.create(strategy, &bundles, 5_000));
        }
        2 if !groups.is_empty() => {
            let group = groups.swap_remove(random.below(groups.len()));
            world.remove(group);
        }
        3 if node != ME && 2 < all.len() => world.die(node),
        4 if all.len() < 5 => world.join(1.0 + random.below(3) as f64),
        5..=9 => world.pass(random.below(40) as u64),
        10 => world.deliver(node, true),
        _ => world.deliver(node, false),
    }
    world.round();
}

/// Each bundle of which the ledger tells is held by the node that it names.
fn assert_published_is_held(world: &World, groups: &[ObjectId]) {
    let mut told: BTreeMap<NodeId, usize> = BTreeMap::new();
    for group in groups {
        let Some(Value::Inline(bytes)) = world.owner.value_ref(*group) else { continue };
        for node in BundleNodes::from_bytes(bytes).unwrap().0.into_iter().flatten() {
            *told.entry(node).or_default() += 1;
        }
    }
    for (node, count) in told {
        assert!(count <= world.nodes[&node].held.len(), "node {node} holds less than is said");
    }
}

#[test]
fn whatever_happens_no_bundle_is_left_behind() {
    for seed in 1..=60_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut world = World::new(&[2.0, 2.0, 1.0]);
        if seed % 2 == 0 {
            world.set_quota("cpus=4");
        }
        let mut groups = Vec::new();
        for _ in 0..400 {
            act_at_random(&mut world, &mut groups, &mut random);
            assert_published_is_held(&world, &groups);
        }
        std::mem::take(&mut groups).into_iter().for_each(|group| world.remove(group));
        world.run_dry(100);
        assert_eq!(world.held_count(), 0, "seed {seed}: bundles are left");
        let left: Vec<_> = world.owner.groups.leftovers().into_iter().filter(|(_, n)| *n > 0).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
    }
}
