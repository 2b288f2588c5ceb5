//! A large cluster: connections are made when they are needed, loads are told to few, nodes die.
//!
//! The nodes are told that no cluster is small, so a few of them behave as thousands would.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, LocalNode, NodeId, get_all};
use tharsis_cluster_tests::{Scenario, driver, scenarios, small_node};

/// Nodes of these clusters, of which most are nobody's neighbours.
const NODES: usize = 6;
/// Bytes of each store.
const STORE_BYTES: u64 = 16 << 20;
/// Far above every expected time.
const SOON: Duration = Duration::from_secs(60);
/// The death of a node is known long before its lease runs out, which takes ten seconds.
const DEATH_KNOWN: Duration = Duration::from_secs(5);

pub const ALL: &[Scenario] = scenarios![
    tasks_run_everywhere_and_read_each_others_values,
    a_death_is_known_to_nodes_without_a_connection,
    neighbours_that_die_together_are_missed,
    a_task_finds_the_one_node_that_it_fits,
];

fn node(cpus: f64) -> LocalNode {
    LocalNode { store_bytes: STORE_BYTES, ..small_node(cpus) }
}

fn cluster() -> LocalCluster {
    let mut cluster = LocalCluster::empty().small_cluster_max(0);
    cluster.add_all(vec![node(1.0); NODES]).unwrap();
    cluster
}

#[remote(max_retries = 5)]
fn place_of(number: u64, ms: u64) -> (NodeId, u64) {
    std::thread::sleep(Duration::from_millis(ms));
    (context().unwrap().node(), number * number)
}

#[remote]
fn made(seed: u8) -> Blob {
    Blob::from(vec![seed; 1 << 20])
}

#[remote]
fn sum_of(values: Values<Blob>) -> u64 {
    values.into_iter().map(|blob| blob.iter().map(|byte| u64::from(*byte)).sum::<u64>()).sum()
}

fn tasks_run_everywhere_and_read_each_others_values() {
    let cluster = cluster();
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    let at = |index: usize| cluster.node(index % NODES).unwrap();
    let call = |n: u64| place_of::options().node(at(n as usize), false).remote(n, 1);
    let calls: Vec<_> = (0..60).map(call).collect();
    let answers = get_all(&calls, Some(SOON.into())).unwrap();
    assert!((0..).zip(&answers).all(|(number, (_, square))| *square == number * number));
    let nodes: BTreeSet<_> = answers.iter().map(|(node, _)| *node).collect();
    assert_eq!(nodes.len(), NODES);
    let blobs: Vec<_> = (1..=12).map(|n| made::options().node(at(n), false).remote(n as u8)).collect();
    let sums: Vec<_> = (0..NODES).map(|n| sum_of::options().node(at(n), false).remote(&blobs)).collect();
    let right = (1..=12_u64).sum::<u64>() << 20;
    assert_eq!(get_all(&sums, Some(SOON.into())).unwrap(), [right; NODES]);
    drop(entered);
}

fn a_death_is_known_to_nodes_without_a_connection() {
    let mut cluster = cluster();
    for (index, left) in [(3, NODES - 1), (1, NODES - 2)] {
        let killed = Instant::now();
        cluster.kill(index);
        cluster.await_count(left, SOON).unwrap();
        assert!(killed.elapsed() < DEATH_KNOWN, "{:?}", killed.elapsed());
    }
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    assert_eq!(place_of::remote(7, 0).get().unwrap().1, 49);
    drop(entered);
}

/// All but the first node die at the same moment: nobody is left who had a connection to most of them.
fn neighbours_that_die_together_are_missed() {
    let mut cluster = cluster();
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    let calls: Vec<_> = (0..60).map(|number| place_of::options().spread().remote(number, 20)).collect();
    let killed = Instant::now();
    (1..NODES).for_each(|index| cluster.kill(index));
    cluster.await_count(1, SOON).unwrap();
    assert!(killed.elapsed() < 2 * DEATH_KNOWN, "{:?}", killed.elapsed());
    let answers = get_all(&calls, Some(SOON.into())).unwrap();
    assert!((0..).zip(&answers).all(|(number, (_, square))| *square == number * number));
    drop(entered);
}

fn a_task_finds_the_one_node_that_it_fits() {
    let mut cluster = cluster();
    let large = cluster.add(node(3.0)).unwrap();
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    let calls: Vec<_> = (0..4).map(|number| place_of::options().num_cpus(3.0).remote(number, 50)).collect();
    let answers = get_all(&calls, Some(SOON.into())).unwrap();
    assert!(answers.iter().all(|(node, _)| Some(*node) == cluster.node(large)), "{answers:?}");
    drop(entered);
}
