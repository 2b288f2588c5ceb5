//! A node that serves many jobs: none of them makes it grow, whatever its driver does.
//!
//! `THARSIS_JOBS=10000 THARSIS_TRIAL_SECONDS=3000` runs the plateau with that number of jobs in each of three
//! rounds, and a hundred tasks in each job.

use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::processes::{self, signal};
use tharsis_scenarios::{Mode, Scenario, Session, await_file, await_within, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        a_driver_whose_calls_wait_can_put_and_cancel,
        calls_of_a_driver_wait_while_its_job_has_too_many_tasks;
    Processes:
        a_stopped_driver_does_not_make_its_node_grow,
        a_node_is_after_many_jobs_what_it_was;
];

/// The socket of the node whose driver this process is.
const SOCKET: &str = "THARSIS_TEST_SERVICE_SOCKET";
/// The file that its first task waits for.
const GATE: &str = "THARSIS_TEST_SERVICE_GATE";
/// Most memory of a call. Each job says another number, so each has classes and shapes of its own.
const CALL_MEMORY_BYTES: u64 = 64 << 20;
/// Calls of the driver that is stopped, and bytes of each result.
const CALLS: usize = 30_000;
const RESULT_BYTES: usize = 3_000;

#[remote]
fn pause(us: u64) -> u64 {
    std::thread::sleep(Duration::from_micros(us));
    us
}

#[remote]
fn gate(path: String) -> usize {
    await_file(&path);
    path.len()
}

#[remote]
fn text(len: usize) -> String {
    "x".repeat(len)
}

#[remote]
fn double(n: u64) -> u64 {
    2 * n
}

/// A driver that calls faster than its tasks run has no more of them at the node than it may have.
fn calls_of_a_driver_wait_while_its_job_has_too_many_tasks(mode: Mode) {
    let session = mode.start_with(1, |init| init.queued_tasks_max(500));
    let most = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let _entered = session.enter();
            let all: Vec<_> = (0..6_000).map(|_| pause::remote(100)).collect();
            let values = get_all(&all, Some(50.0.into())).unwrap();
            assert!(values.len() == 6_000 && values.iter().all(|us| *us == 100));
        });
        let mut most = 0;
        while !caller.is_finished() {
            most = most.max(session.report().task_count);
            std::thread::sleep(Duration::from_millis(5));
        }
        caller.join().unwrap();
        most
    });
    // A visit to a ring takes up to 1024 records.
    assert!((500..=1_600).contains(&most), "{most} tasks at once");
    session.await_quiet();
}

/// Calls wait where they are made, and not before all else that the driver sends.
fn a_driver_whose_calls_wait_can_put_and_cancel(mode: Mode) {
    let session = mode.start_with(1, |init| init.queued_tasks_max(100));
    let path = session.path("gate");
    let made = Mutex::new(Vec::new());
    let take = || std::mem::take(&mut *made.lock().unwrap());
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let _entered = session.enter();
            for _ in 0..CALLS {
                let call = gate::remote(path.clone());
                made.lock().unwrap().push(call);
            }
        });
        let _entered = session.enter();
        let mut before = 0;
        await_within(Duration::from_secs(30), "calls wait", || {
            std::thread::sleep(Duration::from_millis(200));
            let is_the_same = before == made.lock().unwrap().len();
            before = made.lock().unwrap().len();
            is_the_same && 0 < before
        });
        assert!(before < CALLS / 2, "{before} calls do not wait");
        let value = put(&vec![7_u8; 100_000]).unwrap();
        assert_eq!(value.get_timeout(30.0).unwrap().len(), 100_000);
        drop(value);
        await_within(Duration::from_secs(60), "all calls are made as others are cancelled", || {
            take().iter().for_each(|call| cancel(call, false, false).unwrap());
            caller.is_finished()
        });
    });
    open_gate(&path);
    drop(take());
    session.await_quiet();
}

/// Runs this process as the driver of a node that another process started, if the environment says so.
pub fn run_as_driver() -> Option<ExitCode> {
    let socket = std::env::var(SOCKET).ok()?;
    let runtime = init().address(&*socket).start().unwrap();
    let gate = gate::remote(std::env::var(GATE).ok()?);
    let all: Vec<_> = (0..CALLS).map(|_| text::remote(RESULT_BYTES)).collect();
    await_within(Duration::from_secs(20), "all calls are taken", || {
        runtime.report().unwrap().task_count == CALLS + 1
    });
    println!("ready");
    let _line = std::io::stdin().read_line(&mut String::new());
    let right =
        gate.get().is_ok() && all.iter().all(|text| text.get().is_ok_and(|text| text.len() == RESULT_BYTES));
    Some(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn start_driver(socket: &Path, gate: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(SOCKET, socket).env(GATE, gate).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Results for a driver that reads nothing stay in the ledger, once, and are told when it goes on.
fn a_stopped_driver_does_not_make_its_node_grow(mode: Mode) {
    let session = mode.start(1);
    let node = session.report().pid;
    let before = processes::resident_bytes(node);
    let gate = session.path("gate");
    let mut driver = start_driver(session.runtime().socket().unwrap(), &gate);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(driver.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    signal(driver.id(), Signal::STOP);
    open_gate(&gate);
    await_within(Duration::from_secs(40), "all tasks end", || session.report().task_count == 0);
    let results = (CALLS * RESULT_BYTES) as u64;
    let grown = processes::resident_bytes(node).saturating_sub(before);
    signal(driver.id(), Signal::CONT);
    drop(driver.stdin.take());
    assert!(driver.wait().unwrap().success());
    // The ledger's entries, and what waits in front of the ring.
    assert!(grown < results * 3 / 2, "{grown} bytes for {results} bytes of results");
    session.await_quiet();
}

/// Use by a node process of everything that could be left by a job.
#[derive(Debug, PartialEq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    files: usize,
    segments: usize,
}

fn holdings(session: &Session) -> Holdings {
    let node = session.report().pid;
    let count = |folder: String| std::fs::read_dir(folder).map_or(0, Iterator::count);
    Holdings {
        descriptors: count(format!("/proc/{node}/fd")),
        threads: count(format!("/proc/{node}/task")),
        files: tharsis_scenarios::files_below(session.runtime().socket().unwrap().parent().unwrap()).len(),
        segments: processes::segments(node).len(),
    }
}

/// One job of another driver: its own classes, a value, a hundred tasks.
fn run_job(socket: &str, number: u64) {
    let runtime = init().address(socket).start_local().unwrap();
    let _entered = runtime.enter();
    let value = put(&number).unwrap();
    let all: Vec<_> =
        (0..99).map(|_| double::options().memory_bytes(CALL_MEMORY_BYTES + number).remote(&value)).collect();
    let values = get_all(&all, Some(30.0.into())).unwrap();
    assert!(values.iter().all(|n| *n == 2 * number), "job {number}");
}

/// After the second and third round of jobs a node holds what it held after the first. One job that leaves
/// something would do; `THARSIS_JOBS` are more, after which its memory counts too.
fn a_node_is_after_many_jobs_what_it_was(mode: Mode) {
    let jobs = tharsis_trials::given_number("THARSIS_JOBS").unwrap_or_else(|| tharsis_trials::cases(20, 60));
    let session = mode.start(2);
    let socket = session.runtime().socket().unwrap().display().to_string();
    let mut rounds: Vec<(Holdings, u64)> = Vec::new();
    for round in 0..3 {
        (0..jobs).for_each(|number| run_job(&socket, 1_000 * (round * jobs + number)));
        session.await_quiet();
        session.await_report("the workers have left", |r| r.worker_count <= 1 && r.driver_count == 1);
        // Memory of what is gone is given back after a second.
        std::thread::sleep(Duration::from_secs(3));
        if let Some((first, _)) = rounds.first() {
            // Threads and descriptors of the last worker go a moment after it.
            await_within(Duration::from_secs(20), "it holds what it held", || holdings(&session) == *first);
        }
        rounds.push((holdings(&session), processes::resident_bytes(session.report().pid)));
    }
    println!("{jobs} jobs a round: {rounds:?}");
    let memory = rounds[0].1;
    for (_, bytes) in &rounds[1..] {
        // Of few jobs, memory says little: the first round is that of a node that has just begun.
        assert!(
            jobs < 500 || *bytes <= memory + memory / 50,
            "{bytes} bytes, {memory} after the first round"
        );
    }
}
