//! A run of the tests that is interrupted or killed leaves no process and no folder behind.

use crate::workspace::Workspace;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
    // Another run of this test has another one.
    let another = format!("{}.another", std::process::id());
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
    let (mut other, of_other) = started(format!("{another}.0."));
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
    watcher.args(["watch", &another, "--scratch"]).arg(&scratch).stdin(Stdio::null());
    assert!(watcher.status().unwrap().success());
    other.wait().unwrap();
    assert!(!is_alive(&of_other));
}

/// A test that starts a sleeper in another group, and sleeps itself.
const SLEEP: &str = r#"#![allow(clippy::zombie_processes)]

#[test]
fn sleeps() {
    let sleeper = std::process::Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
    std::fs::write("started.new", format!("{}\n{}\n", std::process::id(), sleeper.id())).unwrap();
    std::fs::rename("started.new", "started").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}
"#;

/// Waits for something that must come.
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..60_000 {
        if let Some(found) = found() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not come: {what}");
}

#[test]
fn a_run_that_is_interrupted_takes_its_programs_along_and_lets_the_next_one_in() {
    let workspace = Workspace::new(&[("slow", &[("tests/sleep.rs", SLEEP)])]);
    let said = ["first", "second"].map(|name| workspace.path(name));
    let mark = workspace.path("slow/started");
    let mut first = workspace.start(&["slow"], &said[0]);
    let of_first = started(&mut first, &said[0], &mark);
    let mut second = workspace.start(&["slow"], &said[1]);
    let waits = format!("waiting for the run of process {} ", first.id());
    until(&waits, || fs::read_to_string(&said[1]).ok()?.contains(&waits).then_some(()));
    end(&mut first, "INT", &of_first);
    let of_second = started(&mut second, &said[1], &mark);
    end(&mut second, "KILL", &of_second);
}

/// The test and its sleeper of a run, when they are there.
fn started(run: &mut Child, said: &Path, mark: &Path) -> Vec<String> {
    let both = until("a test that sleeps", || {
        if let Some(status) = run.try_wait().unwrap() {
            panic!("{status}: {}", fs::read_to_string(said).unwrap());
        }
        fs::read_to_string(mark).ok()
    });
    fs::remove_file(mark).unwrap();
    let both: Vec<String> = both.lines().map(str::to_owned).collect();
    assert!(both.len() == 2 && both.iter().all(|process| is_alive(process)), "{both:?}");
    both
}

/// Ends a run by a signal; then its processes end.
fn end(run: &mut Child, signal: &str, processes: &[String]) {
    let told = Command::new("kill").arg(format!("-{signal}")).arg(run.id().to_string()).status();
    assert!(told.unwrap().success() && !run.wait().unwrap().success());
    until("their end", || (!processes.iter().any(|process| is_alive(process))).then_some(()));
}
