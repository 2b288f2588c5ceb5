//! Frames on nodes and workers: functions of the program, cancellations, streams of rows, tensors, blocks
//! beyond the store, and nodes that die.
//!
//! The program is its own node and worker, so it brings its own `main`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blocks;
mod cancels;
mod functions;
mod losses;
mod place;
mod streams;
mod tensors;

use libtest_mimic::Trial;
use place::everywhere;
use std::process::ExitCode;
use tharsis_trials::{run_in_turn, trial};

#[tharsis::main]
fn main() -> ExitCode {
    let functions =
        [&functions::rows::TESTS[..], &functions::groups::TESTS, &functions::faults::TESTS].concat();
    // Blocks come first: they measure this process, which keeps memory of the tests before them.
    let trials = [
        each("blocks", &blocks::TESTS),
        each("losses", &losses::TESTS),
        everywhere("cancels", &cancels::TESTS),
        everywhere("functions", &functions),
        everywhere("streams", &streams::TESTS),
        everywhere("tensors", &tensors::TESTS),
    ];
    // One after the other: a program has one runtime at a time.
    run_in_turn(trials.into_iter().flatten().collect())
}

/// Tests that start what they need.
fn each(module: &str, tests: &[(&'static str, fn())]) -> Vec<Trial> {
    tests.iter().map(|&(name, test)| trial(format!("{module}::{name}"), test)).collect()
}
