//! Runs the tests of a program that brings its own `main`, one after the other.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// Runs tests by their names; a program has one runtime at a time.
pub fn run(tests: &[(&str, fn())]) -> ExitCode {
    let trial = |&(name, test): &(&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit_code()
}
