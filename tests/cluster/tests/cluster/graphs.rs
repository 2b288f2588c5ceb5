//! Graphs of tasks over two nodes: where their tasks run, what a list shows, and the loss of a node.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{LocalCluster, NodeId, observe};
use tharsis_cluster_tests::{SOON, Scenario, await_that, driver, scenarios, small_cluster};
use tharsis_protos::listing::Listing;

pub const ALL: &[Scenario] = scenarios![
    a_graph_runs_on_both_nodes,
    a_list_counts_the_tasks_of_a_graph,
    a_graph_survives_the_loss_of_a_node,
];

/// Tasks of a layer.
const WIDTH: u64 = 16;
/// Layers of a graph.
const LAYERS: u64 = 6;

/// A value, and the nodes on which it was computed.
type Traced = (u64, BTreeSet<NodeId>);

/// Adds the two values before it, and takes long enough for one node not to do all.
#[remote]
fn add(a: Traced, b: Traced, more: u64) -> Result<Traced, Error> {
    std::thread::sleep(Duration::from_millis(20));
    let mut nodes = &a.1 | &b.1;
    nodes.insert(context()?.node());
    Ok((a.0.wrapping_mul(3) ^ b.0.wrapping_add(more), nodes))
}

#[remote]
fn seed(x: u64) -> Traced {
    (x, BTreeSet::new())
}

#[remote]
fn all(values: Values<Traced>) -> Traced {
    let nodes = values.iter().flat_map(|value| value.1.iter().copied()).collect();
    (values.iter().fold(0, |sum, value| sum.wrapping_mul(31).wrapping_add(value.0)), nodes)
}

/// Waits for a gate.
#[remote]
fn after(gate: String, x: u64) -> u64 {
    while !Path::new(&gate).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    x
}

#[remote]
fn sum(values: Values<u64>) -> u64 {
    values.iter().sum()
}

/// The other value that a task of a layer takes.
fn partner(layer: u64, at: u64) -> usize {
    ((at * 7 + layer * 5 + 1) % WIDTH) as usize
}

/// Layers in which each task takes two values of the layer before; one task takes all of the last.
fn layers() -> ObjectRef<Traced> {
    let mut graph = TaskGraph::new();
    let mut row: Vec<_> = (0..WIDTH).map(|x| seed::add_to(&mut graph, x)).collect();
    for layer in 0..LAYERS {
        let next = |at: u64| {
            let (a, b) = (row[at as usize], row[partner(layer, at)]);
            add::add_to(&mut graph, a, b, layer)
        };
        row = (0..WIDTH).map(next).collect();
    }
    let whole = all::add_to(&mut graph, &row);
    graph.submit(whole).unwrap()
}

/// The value of [`layers`].
fn evaluated() -> u64 {
    let mut row: Vec<u64> = (0..WIDTH).collect();
    for layer in 0..LAYERS {
        let next = |at: u64| {
            let (a, b) = (row[at as usize], row[partner(layer, at)]);
            a.wrapping_mul(3) ^ b.wrapping_add(layer)
        };
        row = (0..WIDTH).map(next).collect();
    }
    row.iter().fold(0, |sum, value| sum.wrapping_mul(31).wrapping_add(*value))
}

/// Has the other node fetch the program and start a worker: without one, the first node may do all meanwhile.
fn warm_up(cluster: &LocalCluster) {
    let there = cluster.node(1).unwrap();
    assert_eq!(seed::options().node(there, false).remote(7).get_timeout(SOON).unwrap().0, 7);
}

/// A column of the first graph of a node, if it has one.
fn column(cluster: &LocalCluster, name: &str) -> Option<String> {
    let table = observe::list(cluster.socket(0).unwrap(), Listing::Graphs).unwrap();
    let column = table.column(name).unwrap();
    table.rows.first().map(|row| row[column].to_string())
}

fn a_graph_runs_on_both_nodes() {
    let cluster = small_cluster(2, 1.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    warm_up(&cluster);
    let (value, nodes) = layers().get_timeout(SOON).unwrap();
    assert_eq!(value, evaluated());
    let both = BTreeSet::from([cluster.node(0).unwrap(), cluster.node(1).unwrap()]);
    assert_eq!(nodes, both, "tasks run where there is room");
    await_that("the graph is over", || column(&cluster, "state").is_none());
}

fn a_list_counts_the_tasks_of_a_graph() {
    let cluster = small_cluster(2, 1.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate").display().to_string();
    let mut graph = TaskGraph::new();
    let first: Vec<_> = (0..4_u64).map(|x| after::add_to(&mut graph, gate.clone(), x)).collect();
    let sums: Vec<_> = (0..3).map(|_| sum::add_to(&mut graph, &first)).collect();
    let whole = sum::add_to(&mut graph, &sums);
    let whole = graph.submit(whole).unwrap();
    let counts = ["state", "steps", "waiting", "started", "ended", "failed"];
    await_that("all parts have come", || column(&cluster, "state").as_deref() == Some("running"));
    let listed = counts.map(|name| column(&cluster, name).unwrap());
    assert_eq!(listed, ["running", "8", "4", "4", "0", "0"]);
    let jobs = observe::list(cluster.socket(0).unwrap(), Listing::Jobs).unwrap();
    let tasks = jobs.rows[0][jobs.column("tasks").unwrap()].to_string();
    assert_eq!(tasks, "8", "those that wait are tasks of the job");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(whole.get_timeout(SOON).unwrap(), 18);
    await_that("the graph is over", || column(&cluster, "state").is_none());
}

fn a_graph_survives_the_loss_of_a_node() {
    let mut cluster = small_cluster(2, 1.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    warm_up(&cluster);
    let whole = layers();
    await_that("the other node runs tasks", || 0 < cluster.report(1).unwrap().running_count);
    cluster.kill(1);
    assert_eq!(whole.get_timeout(SOON).unwrap().0, evaluated());
    await_that("the graph is over", || column(&cluster, "state").is_none());
}
