//! The ends of programs: what is left of a driver that is killed, interrupted, or that exits without a word.
//!
//! The driver is this program again; which one it should be is in its environment.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, await_within, processes, scenarios, scratch};

pub const ALL: &[Scenario] = scenarios![
    Both:
        driver_killed,
        driver_interrupted,
        driver_interrupted_at_a_terminal,
        driver_exits_without_shutdown,
        shutdown_leaves_nothing;
    Processes:
        a_node_that_must_be_killed_leaves_nothing,
        task_output_is_escaped;
];

/// Name of the driver that this process should be.
const PROGRAM: &str = "THARSIS_SCENARIO_PROGRAM";
/// Its folder.
const FOLDER: &str = "THARSIS_SCENARIO_FOLDER";
/// Longest time from an interrupt to the end of the last process. The best of a few: other tests share the
/// CPUs.
const INTERRUPTED_MAX: Duration = Duration::from_secs(1);
/// Drivers that are interrupted.
const INTERRUPTED_COUNT: usize = 3;

#[remote]
fn spins() -> u32 {
    loop {
        std::hint::spin_loop();
    }
}

/// Starts a process of its own and waits for it.
#[remote]
fn starts_another() -> i32 {
    Command::new("sleep").arg("1000").status().unwrap().code().unwrap_or(-1)
}

#[remote]
fn prints() -> u32 {
    println!("red \u{1b}[31mtext\u{7}");
    eprintln!("to stderr");
    7
}

/// Runs this process as the driver that the environment names, if it names one.
pub fn run_as_driver() -> Option<ExitCode> {
    let program = std::env::var(PROGRAM).ok()?;
    let (mode, program) = program.split_once(' ')?;
    let init = init().num_cpus(2.0).store_bytes(64 << 20).scratch(std::env::var(FOLDER).ok()?);
    let init = if mode == Mode::Processes.name() { init.workers(2) } else { init };
    let runtime = init.start().unwrap();
    if program == "prints" {
        assert_eq!(prints::remote().get().unwrap(), 7);
        // Output of workers comes on another way than their results.
        std::thread::sleep(Duration::from_millis(300));
        return Some(ExitCode::SUCCESS);
    }
    let value = put(&Blob::from(vec![1; 10_000_000])).unwrap();
    let (spins, other) = (spins::remote(), starts_another::remote());
    runtime_is_busy(&runtime);
    println!("ready");
    match program {
        "exits" => {
            let _line = std::io::stdin().read_line(&mut String::new());
            std::process::exit(5)
        }
        _ => drop((spins.get(), other.get(), value)),
    }
    Some(ExitCode::FAILURE)
}

/// Waits until both tasks run.
fn runtime_is_busy(runtime: &tharsis::Runtime) {
    await_within(Duration::from_secs(20), "both tasks run", || runtime.report().unwrap().running_count == 2);
    await_within(Duration::from_secs(20), "the other process runs", || {
        processes::descendants(std::process::id()).iter().any(|pid| processes::name(*pid) == "sleep")
    });
}

/// A driver with its node, its workers and what they started, all busy.
struct Driver {
    child: Child,
    folder: String,
    pids: Vec<u32>,
}

impl Driver {
    fn start(mode: Mode, program: &str) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = scratch().join(format!("driver{number}")).display().to_string();
        // A shell has what it starts in the background ignore interrupts, which goes down to children of
        // children.
        let child = Command::new("env")
            .arg("--default-signal=INT")
            .arg(std::env::current_exe().unwrap())
            .env(PROGRAM, format!("{} {program}", mode.name()))
            .env(FOLDER, &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child, folder, pids: Vec::new() }
    }

    /// Waits until its tasks run, and notes who belongs to it.
    fn await_ready(&mut self, mode: Mode) {
        let mut line = String::new();
        let output = self.child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{}", self.errors());
        self.pids = processes::descendants(self.child.id());
        let least = if mode == Mode::Processes { 4 } else { 1 };
        assert!(self.pids.len() >= least, "node, workers and their child: {:?}", self.pids);
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let _ended = self.child.wait();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Asserts that nothing of it is left after a while. What an embedded program's tasks started is its own.
    #[track_caller]
    fn assert_gone(&mut self, mode: Mode, limit: Duration) {
        let mut all = self.pids.clone();
        all.push(self.child.id());
        let _status = self.child.wait().unwrap();
        let until = Instant::now() + limit;
        let named = |pid: &u32| format!("process {pid} {}", processes::name(*pid));
        let left = || -> Vec<String> {
            let ours = all.iter().filter(|pid| mode == Mode::Processes || processes::name(**pid) != "sleep");
            let running = ours.filter(|pid| processes::runs(**pid)).map(named);
            let segments = all.iter().flat_map(|pid| processes::segments(*pid));
            let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
            running.chain(segments).chain(files.map(|f| f.path().display().to_string())).collect()
        };
        while !left().is_empty() {
            assert!(Instant::now() < until, "left after {limit:?}: {:?}", left());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
        let sleeps = self.pids.iter().filter(|pid| processes::name(**pid) == "sleep");
        sleeps.for_each(|pid| processes::signal(*pid, Signal::KILL));
        let _removed = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}

/// SIGKILL: within five seconds no process, segment or file is left.
fn driver_killed(mode: Mode) {
    let mut driver = Driver::start(mode, "waits");
    driver.await_ready(mode);
    processes::signal(driver.child.id(), Signal::KILL);
    driver.assert_gone(mode, Duration::from_secs(5));
}

/// SIGINT to a driver that waits: it ends soon, and so does the rest.
fn driver_interrupted(mode: Mode) {
    assert_ends_soon(mode, |driver| processes::signal(driver.child.id(), Signal::INT));
}

/// Ctrl-C reaches every process of the terminal's foreground group.
fn driver_interrupted_at_a_terminal(mode: Mode) {
    assert_ends_soon(mode, |driver| {
        let group = Pid::from_raw(i32::try_from(driver.child.id()).unwrap()).unwrap();
        kill_process_group(group, Signal::INT).unwrap();
    });
}

/// A driver that waits ends soon after an interrupt, and so does the rest.
fn assert_ends_soon(mode: Mode, interrupt: impl Fn(&Driver)) {
    let took = (0..INTERRUPTED_COUNT).map(|_| {
        let mut driver = Driver::start(mode, "waits");
        driver.await_ready(mode);
        let started = Instant::now();
        interrupt(&driver);
        driver.assert_gone(mode, Duration::from_secs(5));
        started.elapsed()
    });
    let best = took.min().unwrap();
    assert!(best < INTERRUPTED_MAX, "{best:?}");
}

/// `exit()` in the middle of `main`.
fn driver_exits_without_shutdown(mode: Mode) {
    let mut driver = Driver::start(mode, "exits");
    driver.await_ready(mode);
    drop(driver.child.stdin.take());
    driver.assert_gone(mode, Duration::from_secs(5));
}

/// An orderly end takes everything along, busy tasks and all.
fn shutdown_leaves_nothing(mode: Mode) {
    let session = mode.start(2);
    let before = match mode {
        Mode::Processes => vec![session.report().pid],
        Mode::Embedded => Vec::new(),
    };
    let (gate, waiting) = {
        let _entered = session.enter();
        let gate = session.path("gate");
        (gate.clone(), waits_for::remote(gate))
    };
    session.await_report("it runs", |r| r.running_count == 1);
    let pids: Vec<_> =
        before.iter().flat_map(|pid| processes::descendants(*pid)).chain(before.clone()).collect();
    let started = Instant::now();
    drop(session);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(waiting.get().unwrap_err().kind(), FailureKind::Shutdown);
    assert!(pids.iter().all(|pid| !processes::runs(*pid)), "{pids:?}");
    assert!(pids.iter().all(|pid| processes::segments(*pid).is_empty()));
    assert!(!Path::new(&gate).parent().unwrap().exists());
}

/// A node that cannot end in time, here because it is stopped, is killed, and its shared memory is removed.
fn a_node_that_must_be_killed_leaves_nothing(mode: Mode) {
    let session = mode.start(1);
    let node = session.report().pid;
    assert!(!processes::segments(node).is_empty());
    processes::signal(node, Signal::STOP);
    drop(session);
    assert!(!processes::runs(node));
    assert_eq!(processes::segments(node), Vec::<String>::new());
}

#[remote]
fn waits_for(gate: String) -> u32 {
    // A thread that goes on for long after its runtime would be left behind.
    for _ in 0..1_000 {
        if Path::new(&gate).exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    1
}

/// Output of a task reaches the driver's output, with a prefix, and no terminal obeys it.
fn task_output_is_escaped(mode: Mode) {
    let mut driver = Driver::start(mode, "prints");
    let (mut output, mut errors) = (String::new(), String::new());
    driver.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    driver.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(driver.child.wait().unwrap().success(), "{errors}");
    assert!(output.starts_with("(worker ") && output.contains(r"red \u{1b}[31mtext\u{7}"), "{output:?}");
    assert!(errors.starts_with("(worker ") && errors.contains("to stderr"), "{errors:?}");
}
