//! Shared parts of the behaviours of several nodes, which are in `tests/cluster`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};
use tharsis::{LocalCluster, LocalNode, Resources, Runtime, SpillChoice, init};
use tharsis_trials::{Trial, run_beside, trial};

/// Bytes of the store of a small node.
const STORE_BYTES: u64 = 64 << 20;
/// Time limit, in seconds, of anything that should happen soon: far above what a busy machine needs.
pub const SOON: f64 = 90.0;
/// Lease of a cluster's members: long enough for a busy machine, short enough to wait for in a test.
pub const LEASE_TTL: Duration = Duration::from_secs(3);
/// Trials side by side, unless the command line says otherwise: most of their time they wait for a lease, a
/// process or a sleep.
const THREADS: usize = 3;

/// A behaviour.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its module and its function.
    pub name: &'static str,
    /// The function, which panics if the behaviour is not there.
    pub run: fn(),
    /// Whether it measures times or shares that other trials would change.
    pub is_alone: bool,
}

/// Lists functions as scenarios: `scenarios![a, b; alone: c]`.
#[macro_export]
macro_rules! scenarios {
    ($($name:ident),* $(,)? $(; alone: $($alone:ident),* $(,)?)?) => {
        &[
            $($crate::scenarios!(@ $name, false),)*
            $($($crate::scenarios!(@ $alone, true),)*)?
        ]
    };
    (@ $name:ident, $is_alone:literal) => {
        $crate::Scenario {
            name: concat!(module_path!(), "::", stringify!($name)),
            run: $name,
            is_alone: $is_alone,
        }
    };
}

/// Runs what the command line names: some trials at a time, and then those that must be alone.
#[must_use]
pub fn run(all: &[&'static [Scenario]]) -> ExitCode {
    let (alone, beside): (Vec<_>, Vec<_>) =
        all.iter().copied().flatten().copied().partition(|scenario| scenario.is_alone);
    let trials = |scenarios: Vec<Scenario>| scenarios.into_iter().map(trial_of).collect();
    run_beside(THREADS, trials(beside), trials(alone))
}

fn trial_of(scenario: Scenario) -> Trial {
    // Without the name of the program.
    let name = scenario.name.split_once("::").map_or(scenario.name, |(_, name)| name);
    trial(name, scenario.run)
}

/// A node with so many CPUs and a small store.
#[must_use]
pub fn small_node(cpus: f64) -> LocalNode {
    LocalNode {
        resources: Resources::cpus(cpus).unwrap(),
        labels: Vec::new(),
        store_bytes: STORE_BYTES,
        spill: SpillChoice::default(),
    }
}

/// A cluster of so many small nodes.
#[must_use]
pub fn small_cluster(count: usize, cpus: f64) -> LocalCluster {
    cluster_of(vec![small_node(cpus); count])
}

/// A cluster of these nodes.
#[must_use]
pub fn cluster_of(nodes: Vec<LocalNode>) -> LocalCluster {
    let mut cluster = LocalCluster::empty().lease_ttl(LEASE_TTL);
    for node in nodes {
        cluster.add(node).unwrap();
    }
    cluster
}

/// Waits until something holds.
#[track_caller]
pub fn await_that(what: &str, holds: impl FnMut() -> bool) {
    await_within(Duration::from_secs_f64(SOON), what, holds);
}

/// Waits until something holds, which must be within a time; returns how long it took.
#[track_caller]
pub fn await_within(within: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < within, "{what}: not within {within:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    begin.elapsed()
}

/// A driver at a node.
pub fn driver(cluster: &LocalCluster, index: usize) -> Runtime {
    let socket = cluster.socket(index).unwrap().display().to_string();
    init().address(socket).start_local().unwrap()
}
