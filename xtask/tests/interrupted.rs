//! A run of the tests that is interrupted or killed leaves no process and no folder behind.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Whether a process runs.
fn is_alive(process: &str) -> bool {
    let account = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    account.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}

#[test]
fn the_watcher_ends_what_a_run_leaves_when_its_pipe_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    std::fs::create_dir_all(scratch.join("7")).unwrap();
    let run = format!("{}.interrupted", std::process::id());
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["watch", &run, "--scratch"])
        .arg(&scratch)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The second one leaves the group of the first; the third belongs to nobody's run.
    let started = |mark: String| {
        let mut job = Command::new("sh");
        job.args(["-c", "setsid sleep 600 & sleep 600 & echo $!; wait"]);
        let mut job = std::os::unix::process::CommandExt::process_group(&mut job, 0)
            .env("XTASK_TEST_JOB", mark)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut sleeper = String::new();
        BufReader::new(job.stdout.take().unwrap()).read_line(&mut sleeper).unwrap();
        (job, sleeper.trim().to_owned())
    };
    let (mut job, sleeper) = started(format!("{run}.0."));
    let (mut other, of_other) = started("1.another.0.".to_owned());
    assert!(is_alive(&sleeper) && is_alive(&of_other));
    drop(watcher.stdin.take());
    assert!(watcher.wait().unwrap().success());
    assert!(!job.wait().unwrap().success() && !is_alive(&sleeper));
    assert!(is_alive(&of_other), "another run goes on");
    assert!(!scratch.exists());
    let of_run = |mark: &str| {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
        let mark = format!("XTASK_TEST_JOB={mark}");
        environments.filter(|found| String::from_utf8_lossy(found).contains(&mark)).count()
    };
    assert_eq!(of_run(&run), 0, "not one that has left its group either");
    // A run with the id of the other one.
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_xtask"));
    watcher.args(["watch", "1.another", "--scratch"]).arg(&scratch).stdin(Stdio::null());
    assert!(watcher.status().unwrap().success());
    other.wait().unwrap();
    assert!(!is_alive(&of_other));
}
