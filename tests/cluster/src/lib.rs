//! Shared parts of the programs that test several nodes. The behaviours are in `tests/`: a program of
//! nodes brings its own `main`.

// All of it is test code.
#![allow(clippy::unwrap_used)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use tharsis::{LocalCluster, Runtime, init};

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
