//! The example is right wherever its tasks run: on threads, on worker processes, on two nodes.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

/// The example's program, which cargo builds beside its tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/packages")
}

#[track_caller]
fn assert_right(options: &[&str]) {
    let output = Command::new(program()).args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{options:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("the same as a plain loop"), "{said}");
}

#[test]
fn packages_are_counted_on_threads() {
    assert_right(&[]);
}

#[test]
fn packages_are_counted_on_worker_processes() {
    assert_right(&["--workers", "2"]);
}

#[test]
fn packages_are_counted_on_two_nodes() {
    assert_right(&["--nodes", "2", "--explain"]);
}
