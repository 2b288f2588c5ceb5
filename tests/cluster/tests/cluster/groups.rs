//! E7, E8, E10: placement groups over several nodes.

use std::collections::BTreeSet;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Bundle, LocalCluster, NodeId, PlacementGroup, Strategy, observe, placement_group};
use tharsis_cluster_tests::{SOON, Scenario, await_that, driver, scenarios, small_cluster, small_node};
use tharsis_protos::listing::{Listing, Table};

pub const ALL: &[Scenario] = scenarios![
    e7_a_group_waits_for_a_fourth_node,
    e8_only_the_bundle_of_a_lost_node_moves,
    e10_a_group_is_removed_from_another_node,
    a_group_ends_with_the_node_that_made_it,
    e_a_detached_group_outlives_its_driver,
    e_the_names_of_a_namespace_are_its_own,
];

/// Waits until nothing is in use, by what each node says of itself.
fn await_all_free(cluster: &LocalCluster, indices: &[usize]) {
    await_that("everything is free", || {
        indices.iter().all(|index| {
            let mine = cluster.report(*index).unwrap().nodes.remove(0);
            mine.free == mine.total
        })
    });
}

/// The groups that a node has made.
fn groups_of(cluster: &LocalCluster, index: usize) -> Table {
    observe::list(cluster.socket(index).unwrap(), Listing::Groups).unwrap()
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
    let mut cluster = small_cluster(3, 1.0);
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
    cluster.add(small_node(1.0)).unwrap();
    let nodes = group.ready().get_timeout(SOON).unwrap().0;
    let distinct: BTreeSet<_> = nodes.iter().flatten().collect();
    assert_eq!(distinct.len(), 4, "{nodes:?}");
    assert_eq!(Some(inside.get_timeout(SOON).unwrap()), nodes[3]);
    drop(group);
    await_all_free(&cluster, &[0, 1, 2, 3]);
}

fn e8_only_the_bundle_of_a_lost_node_moves() {
    let mut cluster = small_cluster(4, 1.0);
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
    let cluster = small_cluster(3, 1.0);
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
    let mut cluster = small_cluster(3, 1.0);
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

fn e_a_detached_group_outlives_its_driver() {
    let mut cluster = small_cluster(3, 1.0);
    {
        let runtime = driver(&cluster, 0);
        let _entered = runtime.enter();
        let gang = placement_group(one_each(2)).strategy(Strategy::StrictSpread).detached(true);
        gang.create_named("gang").unwrap().ready().get_timeout(SOON).unwrap();
        let left = placement_group(one_each(1)).create_named("left").unwrap();
        left.ready().get_timeout(SOON).unwrap();
    }
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    await_that("the other one has ended with its driver", || {
        PlacementGroup::find("left").is_err_and(|error| error.kind() == FailureKind::GroupNotFound)
    });
    let listed = groups_of(&cluster, 0);
    assert_eq!(listed.rows.len(), 1, "{listed:?}");
    let cell = |name: &str| listed.rows[0][listed.column(name).unwrap()].to_string();
    assert_eq!(["name", "state", "detached", "placed"].map(cell), ["gang", "placed", "yes", "2"]);
    let gang = PlacementGroup::find("gang").unwrap();
    let run = |index| node::options().bundle(&gang, index).remote().get_timeout(SOON).unwrap();
    let before = [run(0), run(1)];
    assert_ne!(before[0], before[1]);
    // Its bundles are placed again without the driver that made it.
    let lost = (1..3).find(|at| before.contains(&cluster.node(*at).unwrap())).unwrap();
    let gone = cluster.node(lost).unwrap();
    cluster.kill(lost);
    await_that("the bundle has another node", || {
        gang.nodes().unwrap().iter().all(|node| node.is_some_and(|node| node != gone))
    });
    let after = [run(0), run(1)];
    assert!(after[0] != after[1] && !after.contains(&gone), "{before:?} became {after:?}");
    // Another driver on another node removes it.
    let kept = 3 - lost;
    let elsewhere = driver(&cluster, kept);
    {
        let _entered = elsewhere.enter();
        PlacementGroup::find("gang").unwrap().remove().unwrap();
        await_that("its name is free", || PlacementGroup::find("gang").is_err());
        let again = placement_group(one_each(1)).create_named("gang").unwrap();
        again.ready().get_timeout(SOON).unwrap();
    }
    drop(gang);
    await_all_free(&cluster, &[0, kept]);
    await_that("no group is left", || groups_of(&cluster, 0).rows.is_empty());
}

fn e_the_names_of_a_namespace_are_its_own() {
    let cluster = small_cluster(2, 1.0);
    let at = |index: usize, namespace: &str| {
        let socket = cluster.socket(index).unwrap().display().to_string();
        tharsis::init().address(socket).namespace(namespace).start_local().unwrap()
    };
    let (blue, red) = (at(0, "blue"), at(1, "red"));
    let made = {
        let _entered = blue.enter();
        placement_group(one_each(1)).create_named("gang").unwrap()
    };
    {
        let _entered = red.enter();
        let error = PlacementGroup::find("gang").unwrap_err();
        assert_eq!(error.kind(), FailureKind::GroupNotFound, "{error}");
        let own = placement_group(one_each(1)).create_named("gang").unwrap();
        own.ready().get_timeout(SOON).unwrap();
        assert_ne!(own, made);
    }
    let other = at(1, "blue");
    let _entered = other.enter();
    assert_eq!(PlacementGroup::find("gang").unwrap(), made);
}
