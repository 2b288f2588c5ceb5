//! Jobs that share several nodes: each gets its part of the slots.
//!
//! The program is its own node and worker, so it brings its own `main`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, LocalNode, Resources, Runtime, SpillChoice};
use tharsis_cluster_tests::{Scenario, driver, run};

const ALL: &[Scenario] = &[(
    "e11_drivers_of_two_nodes_share_both_in_every_window",
    e11_drivers_of_two_nodes_share_both_in_every_window,
)];

/// Tasks of each driver, which are more than can run while it is looked.
const TASK_COUNT: usize = 10_000;
/// Time until both have their workers, which is not looked at.
const WARM: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(2);
const WINDOW_COUNT: u32 = 2;

#[tharsis::main]
fn main() -> ExitCode {
    run(ALL)
}

#[remote]
fn sleeps(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

fn node() -> LocalNode {
    LocalNode {
        resources: Resources::cpus(2.0).unwrap(),
        labels: Vec::new(),
        store_bytes: 64 << 20,
        spill: SpillChoice::default(),
    }
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
    let mut cluster = LocalCluster::empty();
    cluster.add(node()).unwrap();
    cluster.add(node()).unwrap();
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
