//! E7, E8, E10: placement groups over several nodes.
//!
//! The program is its own node and worker, so it brings its own `main`. Each trial starts a cluster of its
//! own, one after the other: the machines this runs on are small.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{
    Bundle, LocalCluster, LocalNode, NodeId, PlacementGroup, Resources, SpillChoice, Strategy,
    placement_group,
};
use tharsis_cluster_tests::{Scenario, driver, run};

/// Bytes of each store.
const STORE_BYTES: u64 = 64 << 20;
/// Time limit, in seconds, of anything that should happen soon.
const SOON: f64 = 60.0;
/// Long enough for a busy machine, short enough to wait for in a test.
const LEASE_TTL: Duration = Duration::from_secs(3);

const ALL: &[Scenario] = &[
    ("e7_a_group_waits_for_a_fourth_node", e7_a_group_waits_for_a_fourth_node),
    ("e8_only_the_bundle_of_a_lost_node_moves", e8_only_the_bundle_of_a_lost_node_moves),
    ("e10_a_group_is_removed_from_another_node", e10_a_group_is_removed_from_another_node),
    ("a_group_ends_with_the_node_that_made_it", a_group_ends_with_the_node_that_made_it),
];

#[tharsis::main]
fn main() -> ExitCode {
    run(ALL)
}

fn one_cpu() -> LocalNode {
    LocalNode {
        resources: Resources::cpus(1.0).unwrap(),
        labels: Vec::new(),
        store_bytes: STORE_BYTES,
        spill: SpillChoice::default(),
    }
}

fn cluster(count: usize) -> LocalCluster {
    let mut cluster = LocalCluster::empty().lease_ttl(LEASE_TTL);
    for _ in 0..count {
        cluster.add(one_cpu()).unwrap();
    }
    cluster
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs_f64(SOON);
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within {SOON} s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until nothing is in use, by what each node says of itself.
fn await_all_free(cluster: &LocalCluster, indices: &[usize]) {
    await_that("everything is free", || {
        indices.iter().all(|index| {
            let mine = cluster.report(*index).unwrap().nodes.remove(0);
            mine.free == mine.total
        })
    });
}

fn one_each(count: usize) -> Vec<Bundle> {
    (0..count).map(|_| Bundle::new().num_cpus(1.0)).collect()
}

#[remote]
fn node() -> Result<NodeId, Error> {
    Ok(context()?.node())
}

#[remote(max_retries = 0)]
fn sleep_long() {
    std::thread::sleep(Duration::from_secs(600));
}

#[remote(num_cpus = 0)]
fn remove(group: PlacementGroup) -> Result<(), Error> {
    group.remove()
}

/// Makes a group that outlives this task.
#[remote(num_cpus = 0)]
fn make_group() -> Result<PlacementGroup, Error> {
    let group = placement_group(one_each(2)).strategy(Strategy::StrictSpread).create()?;
    group.ready().get()?;
    Ok(group)
}

struct Place {
    calls: u32,
}

#[actor]
impl Place {
    fn new() -> Self {
        Self { calls: 0 }
    }

    fn call(&mut self) -> Result<(NodeId, u32), Error> {
        self.calls += 1;
        Ok((context()?.node(), self.calls))
    }
}

fn e7_a_group_waits_for_a_fourth_node() {
    let mut cluster = cluster(3);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let patience = Duration::from_secs(600);
    let group = placement_group(one_each(4)).strategy(Strategy::StrictSpread).infeasible_after(patience);
    let group = group.create().unwrap();
    let inside = node::options().bundle(&group, 3).remote();
    await_that("the reason is listed", || {
        let pending = cluster.report(0).unwrap().pending;
        pending.iter().any(|row| row.reason.contains("only 3 nodes"))
    });
    assert_eq!(group.ready().get_timeout(0.5).unwrap_err().kind(), FailureKind::GetTimeout);
    await_all_free(&cluster, &[0, 1, 2]);
    cluster.add(one_cpu()).unwrap();
    let nodes = group.ready().get_timeout(SOON).unwrap().0;
    let distinct: BTreeSet<_> = nodes.iter().flatten().collect();
    assert_eq!(distinct.len(), 4, "{nodes:?}");
    assert_eq!(Some(inside.get_timeout(SOON).unwrap()), nodes[3]);
    drop(group);
    await_all_free(&cluster, &[0, 1, 2, 3]);
}

fn e8_only_the_bundle_of_a_lost_node_moves() {
    let mut cluster = cluster(4);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let group = placement_group(one_each(3)).strategy(Strategy::StrictSpread).create().unwrap();
    let before = group.ready().get_timeout(SOON).unwrap().0;
    let actor = |index| Place::options().num_cpus(1.0).max_restarts(-1).bundle(&group, index).remote();
    let actors: Vec<_> = (0..3).map(actor).collect();
    for (actor, node) in actors.iter().zip(&before) {
        assert_eq!(Some(actor.call().get_timeout(SOON).unwrap().0), *node);
    }
    let home = cluster.node(0);
    let (lost, at) =
        (1..4).find_map(|at| Some((before.iter().position(|n| *n == cluster.node(at))?, at))).unwrap();
    assert_ne!(before[lost], home);
    cluster.kill(at);
    await_that("the bundle has another node", || {
        group.nodes().unwrap().iter().all(|node| node.is_some() && *node != before[lost])
    });
    let after = group.nodes().unwrap();
    for index in 0..3 {
        assert_eq!(before[index] == after[index], index != lost, "{before:?} became {after:?}");
    }
    let mut restarted = None;
    await_that("the actor is started again", || {
        restarted = actors[lost].call().get_timeout(SOON).ok();
        restarted.is_some()
    });
    assert_eq!(restarted.map(|(node, _)| node), after[lost]);
    for index in (0..3).filter(|index| *index != lost) {
        let (node, calls) = actors[index].call().get_timeout(SOON).unwrap();
        assert_eq!((Some(node), calls), (before[index], 2), "the others have not moved");
    }
    assert_eq!(
        Some(node::options().num_cpus(0.0).bundle(&group, lost as u32).remote().get().unwrap()),
        after[lost]
    );
}

fn e10_a_group_is_removed_from_another_node() {
    let cluster = cluster(3);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let group = placement_group(one_each(3)).strategy(Strategy::StrictSpread).create().unwrap();
    group.ready().get_timeout(SOON).unwrap();
    // One of two runs in each bundle, the other one waits.
    let inside = |n: u32| sleep_long::options().bundle(&group, n % 3).remote();
    let tasks: Vec<_> = (0..6).map(inside).collect();
    await_that("three run", || {
        let running = |index| cluster.report(index).unwrap().running_count;
        (0..3).map(running).sum::<usize>() == 3
    });
    let elsewhere = cluster.node(2).unwrap();
    remove::options().node(elsewhere, false).remote(group.clone()).get_timeout(SOON).unwrap();
    for task in &tasks {
        let error = task.get_timeout(SOON).unwrap_err();
        assert_eq!(error.kind(), FailureKind::GroupRemoved, "{error}");
    }
    await_all_free(&cluster, &[0, 1, 2]);
}

fn a_group_ends_with_the_node_that_made_it() {
    let mut cluster = cluster(3);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let maker = cluster.node(1).unwrap();
    let group = make_group::options().node(maker, false).remote().get_timeout(SOON).unwrap();
    let index = group.ready().get().unwrap().0.iter().position(|node| *node != Some(maker)).unwrap() as u32;
    let ran = node::options().bundle(&group, index).remote().get_timeout(SOON).unwrap();
    assert_ne!(ran, maker);
    cluster.kill(1);
    await_that("tasks inside fail", || {
        let inside = node::options().bundle(&group, index).max_retries(0).remote();
        inside.get_timeout(SOON).is_err_and(|error| error.kind() == FailureKind::GroupRemoved)
    });
    await_all_free(&cluster, &[0, 2]);
}
