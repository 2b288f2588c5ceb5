//! Functions of the program give the same wherever they run: on threads, embedded, on worker processes, on
//! two nodes.
//!
//! The program is its own node and worker, so it brings its own `main`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faults;
mod groups;
#[path = "../place/mod.rs"]
mod place;
mod rows;

use std::process::ExitCode;

#[tharsis::main]
fn main() -> ExitCode {
    place::run_everywhere(&[&rows::TESTS[..], &groups::TESTS[..], &faults::TESTS[..]].concat())
}
