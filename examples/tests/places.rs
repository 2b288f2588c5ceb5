//! Programs run embedded, on worker processes and on two nodes.

// Helpers of tests panic on failure, like tests.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Runs an example in each place. It ends with an error if its result is not that of a plain loop.
fn run_everywhere(example: &str, size: &str) {
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    for place in [&[][..], &["--workers", "2"], &["--nodes", "2"]] {
        // `cargo test` builds the examples, `cargo test --test places` does not.
        let ran = Command::new(folder.join(example)).args(["--size", size]).args(place).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{example} {place:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn actors_fit_a_model_together() {
    run_everywhere("parameter_server", "2e4");
}

#[test]
fn a_service_answers_and_refuses() {
    run_everywhere("web_service", "1e3");
}

#[test]
fn a_pipeline_goes_on_after_the_loss_of_its_reader() {
    run_everywhere("stream_pipeline", "2e6");
}
