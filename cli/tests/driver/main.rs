//! The `tharsis` command at nodes that work for a driver, which is this program.
//!
//! Nodes start drivers again as workers, and tests start them as programs of jobs, so the program brings its
//! own `main`. A name on the command line filters: `cargo test -p tharsis-cli --test driver logs::`.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "output of tasks is what some tests look at")]

/// Lists functions as behaviours.
macro_rules! behaviours {
    ($($name:ident),* $(,)?) => {
        &[$((concat!(module_path!(), "::", stringify!($name)), $name as fn())),*]
    };
}

#[path = "../home/mod.rs"]
mod home;

mod job;
mod lists;
mod logs;
mod machines;
mod memory;
mod metrics;
mod slurm;
mod timeline;
mod why;

use std::process::ExitCode;
use tharsis_trials::{Trial, run_beside, trial};

/// Trials side by side: most of their time they wait for processes.
const THREADS: usize = 3;

/// A behaviour: its module and its function, and the function, which panics if the behaviour is not there.
type Behaviour = (&'static str, fn());

#[tharsis::main]
fn main() -> ExitCode {
    let program = machines::run_as_program().or_else(job::run_as_program).or_else(slurm::run_as_program);
    if let Some(status) = program {
        return status;
    }
    let has_machines = machines::is_possible();
    if !has_machines {
        tharsis_trials::not_run("network namespaces cannot be made: the tests with machines are left out");
    }
    let of_machines = |all: &[Behaviour]| {
        all.iter().map(|behaviour| of(behaviour).with_ignored_flag(!has_machines)).collect()
    };
    let mut beside: Vec<Trial> = of_machines(machines::ALL);
    let shared =
        [job::ALL, lists::ALL, logs::ALL, memory::ALL, metrics::ALL, slurm::ALL, timeline::ALL, why::ALL];
    for all in shared {
        beside.extend(all.iter().map(of));
    }
    let mut alone: Vec<Trial> = of_machines(machines::ALONE);
    alone.extend(logs::ALONE.iter().map(of));
    run_beside(THREADS, beside, alone)
}

fn of((name, run): &Behaviour) -> Trial {
    // Without the name of the program.
    trial(name.split_once("::").map_or(*name, |(_, name)| name), *run)
}
