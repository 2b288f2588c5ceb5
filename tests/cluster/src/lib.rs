//! Shared parts of the programs that test several nodes. The behaviours are in `tests/`: a program of
//! nodes brings its own `main`.

// All of it is test code.
#![allow(clippy::unwrap_used)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tharsis::{LocalCluster, LocalNode, Resources, Runtime, SpillChoice, init};

/// Bytes of the store of a small node.
const STORE_BYTES: u64 = 64 << 20;
/// Time limit, in seconds, of anything that should happen soon.
pub const SOON: f64 = 60.0;
/// Lease of a small cluster's members: long enough for a busy machine, short enough to wait for in a test.
const LEASE_TTL: Duration = Duration::from_secs(3);

/// A behaviour: its name, and the function that panics if it does not hold.
pub type Scenario = (&'static str, fn());

/// Runs what the command line names, one after the other unless it says otherwise: the machines this runs on
/// are small.
pub fn run(all: &'static [Scenario]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let trials = all.iter().map(|(name, scenario)| Trial::test(*name, move || run_one(*scenario)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A node with so many CPUs and a small store.
///
/// # Panics
/// If there is no such number of CPUs.
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
///
/// # Panics
/// If a node does not start.
#[must_use]
pub fn small_cluster(count: usize, cpus: f64) -> LocalCluster {
    let mut cluster = LocalCluster::empty().lease_ttl(LEASE_TTL);
    for _ in 0..count {
        cluster.add(small_node(cpus)).unwrap();
    }
    cluster
}

/// Waits until something holds.
///
/// # Panics
/// If that takes longer than [`SOON`].
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs_f64(SOON);
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within {SOON} s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A driver at a node.
///
/// # Panics
/// If there is no such node, or it does not answer.
pub fn driver(cluster: &LocalCluster, index: usize) -> Runtime {
    let socket = cluster.socket(index).unwrap().display().to_string();
    init().address(socket).start_local().unwrap()
}

/// On a thread of its own, so that what it left in thread-local places goes with it.
fn run_one(scenario: fn()) -> Result<(), Failed> {
    std::thread::spawn(scenario).join().map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default().into()
    })
}
