//! The behaviours of several nodes, each a process on this machine.
//!
//! The program is its own node and worker, so it brings its own `main`. Each trial starts a cluster of its
//! own. A name on the command line filters: `cargo test -p tharsis-cluster-tests -- etcd::`.

#![forbid(unsafe_code)]

mod actors;
mod bytes;
mod deaths;
mod drain;
mod etcd;
mod graphs;
mod groups;
mod identities;
mod large;
mod losses;
mod nodes;
mod programs;
mod shares;
mod streams;
mod tensors;

use std::process::ExitCode;

#[tharsis::main]
fn main() -> ExitCode {
    if let Some(outcome) = programs::run_as_driver() {
        return outcome;
    }
    // First those that take longest.
    tharsis_cluster_tests::run(&[
        etcd::ALL,
        identities::ALL,
        nodes::ALL,
        programs::ALL,
        losses::ALL,
        actors::ALL,
        groups::ALL,
        drain::ALL,
        large::ALL,
        tensors::ALL,
        streams::ALL,
        graphs::ALL,
        shares::ALL,
        deaths::ALL,
    ])
}
