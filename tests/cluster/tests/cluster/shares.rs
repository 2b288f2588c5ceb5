//! Jobs that share several nodes: each gets its part of the slots, and no more than its quota.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, Runtime, init};
use tharsis_cluster_tests::{SOON, Scenario, await_that, driver, scenarios, small_cluster, small_node};

pub const ALL: &[Scenario] = scenarios![
    a_quota_holds_over_all_nodes,
    a_quota_survives_the_loss_of_a_node;
    alone:
        e11_drivers_of_two_nodes_share_both_in_every_window,
];

/// Tasks of each driver, which are more than can run while it is looked.
const TASK_COUNT: usize = 10_000;
/// Time until both have their workers, which is not looked at.
const WARM: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(2);
const WINDOW_COUNT: u32 = 2;

#[remote]
fn sleeps(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

/// Queues the tasks of a driver, and counts those that end in each window.
fn ended_in_windows(runtime: &Runtime, start: &Barrier) -> Vec<usize> {
    let _entered = runtime.enter();
    // The program is fetched and its workers are started before.
    let warm: Vec<_> = (0..16).map(|_| sleeps::options().spread().remote(20)).collect();
    get_all(&warm, Some(90.0.into())).unwrap();
    start.wait();
    let tasks: Vec<_> = (0..TASK_COUNT).map(|_| sleeps::remote(2)).collect();
    let ended = |tasks: &[ObjectRef<u64>]| tasks.iter().filter(|task| task.is_ready()).count();
    let mut at = Instant::now() + WARM;
    let mut counts = Vec::new();
    for _ in 0..=WINDOW_COUNT {
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        counts.push(ended(&tasks));
        at += WINDOW;
    }
    assert!(counts.last().unwrap() < &TASK_COUNT, "{counts:?}: there is work until the end");
    counts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn e11_drivers_of_two_nodes_share_both_in_every_window() {
    // Under this load a short lease might run out.
    let mut cluster = LocalCluster::empty();
    cluster.add_all(vec![small_node(2.0); 2]).unwrap();
    let drivers = [driver(&cluster, 0), driver(&cluster, 1)];
    let start = Barrier::new(2);
    let counts = std::thread::scope(|scope| {
        let [first, second] = &drivers;
        let first = scope.spawn(|| ended_in_windows(first, &start));
        let second = scope.spawn(|| ended_in_windows(second, &start));
        [first.join().unwrap(), second.join().unwrap()]
    });
    for (window, (mine, theirs)) in counts[0].iter().zip(&counts[1]).enumerate() {
        let share = *mine as f64 / (mine + theirs) as f64;
        assert!((0.4..=0.6).contains(&share), "window {window}: {mine} and {theirs} tasks");
    }
}

/// Holds its CPU until the gate is open.
#[remote(max_retries = 3)]
fn hold(gate: String) -> u32 {
    while !Path::new(&gate).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    7
}

/// Calls of a task, which its node owns.
#[remote(num_cpus = 0)]
fn hold_many(gate: String, count: usize) -> Result<Vec<u32>, Error> {
    let tasks: Vec<_> = (0..count).map(|_| hold::options().spread().remote(gate.clone())).collect();
    get_all(&tasks, None)
}

/// CPUs in use on nodes, by what each says of itself.
fn used_cpus(cluster: &LocalCluster, indices: &[usize]) -> f64 {
    let used = |index: &usize| {
        let mine = cluster.report(*index).unwrap().nodes.remove(0);
        let free: f64 = mine.free.split(" CPU").next().and_then(|free| free.parse().ok()).unwrap_or(0.0);
        mine.cpus() - free
    };
    indices.iter().map(used).sum()
}

fn with_quota(cluster: &LocalCluster, quota: &str) -> Runtime {
    let socket = cluster.socket(0).unwrap().display().to_string();
    init().address(socket).job_quota(quota).start_local().unwrap()
}

/// Tasks of the driver and of a task on another node, which owns them, are counted together.
fn a_quota_holds_over_all_nodes() {
    let cluster = small_cluster(2, 3.0);
    let runtime = with_quota(&cluster, "cpus=4");
    let _entered = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate").display().to_string();
    let mine: Vec<_> = (0..8).map(|_| hold::options().spread().remote(gate.clone())).collect();
    let there = cluster.node(1).unwrap();
    let others = hold_many::options().node(there, false).remote(gate.clone(), 8);
    await_that("as many run as may", || used_cpus(&cluster, &[0, 1]) == 4.0);
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let used = used_cpus(&cluster, &[0, 1]);
        assert!(used <= 4.0, "the job holds {used} CPUs");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A job without a quota has the rest.
    {
        let other = driver(&cluster, 1);
        let _entered = other.enter();
        assert_eq!(sleeps::remote(1).get_timeout(SOON).unwrap(), 1);
    }
    std::fs::write(&gate, "").unwrap();
    assert_eq!(get_all(&mine, Some(SOON.into())).unwrap(), [7; 8]);
    assert_eq!(others.get_timeout(SOON).unwrap(), [7; 8]);
    await_that("everything is free", || used_cpus(&cluster, &[0, 1]) == 0.0);
}

fn a_quota_survives_the_loss_of_a_node() {
    let mut cluster = small_cluster(3, 1.0);
    let runtime = with_quota(&cluster, "cpus=2");
    let _entered = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate").display().to_string();
    let tasks: Vec<_> = (0..4).map(|_| hold::options().spread().remote(gate.clone())).collect();
    await_that("two run", || used_cpus(&cluster, &[0, 1, 2]) == 2.0);
    let lost = (1..3).find(|index| 0.0 < used_cpus(&cluster, &[*index])).unwrap();
    cluster.kill(lost);
    let left = [0, 3 - lost];
    await_that("two run on the others", || used_cpus(&cluster, &left) == 2.0);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(get_all(&tasks, Some(SOON.into())).unwrap(), [7; 4]);
}
