//! The examples are right wherever their tasks run: on threads, on worker processes, on two nodes.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

/// An example's program, which cargo builds beside its tests.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(example)
}

#[track_caller]
fn assert_right(example: &str, options: &[&str]) {
    let output = Command::new(program(example)).args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{options:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("the same as a plain loop"), "{said}");
}

#[test]
fn packages_are_counted_on_threads() {
    assert_right("packages", &[]);
}

#[test]
fn packages_are_counted_on_worker_processes() {
    assert_right("packages", &["--workers", "2"]);
}

#[test]
fn packages_are_counted_on_two_nodes() {
    assert_right("packages", &["--nodes", "2", "--explain"]);
}

#[test]
fn words_are_counted_by_functions_on_threads() {
    assert_right("functions", &["--explain"]);
}

#[test]
fn words_are_counted_by_functions_on_worker_processes() {
    assert_right("functions", &["--workers", "2"]);
}

#[test]
fn words_are_counted_by_functions_on_two_nodes() {
    assert_right("functions", &["--nodes", "2"]);
}
