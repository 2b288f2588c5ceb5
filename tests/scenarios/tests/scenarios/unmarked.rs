//! Programs without `#[tharsis::main]`, and starts where none is possible: refused with the remedy, before a
//! process starts.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, SOON, Scenario, await_within, processes, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Embedded:
        limited_addresses_leave_room_for_a_store,
        unmarked_program_runs_embedded,
        unmarked_program_starts_no_node;
    Processes:
        unmarked_program_connects_to_no_node,
        worker_that_drives_is_refused;
    Both:
        task_starts_no_runtime;
];

/// The program in a folder of its own, with what it should do.
struct Unmarked {
    folder: PathBuf,
}

/// Files and processes that it left.
struct Ended {
    success: bool,
    errors: String,
    process_count: usize,
}

impl Unmarked {
    fn new(mode: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("unmarked-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // On the disk of the program, so that it is a link: what was just written may be too busy to be
        // started.
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("tickets")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_unmarked"), folder.join("unmarked")).unwrap();
        fs::write(folder.join("mode"), mode).unwrap();
        Self { folder }
    }

    fn run(&self, variables: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(self.folder.join("unmarked"));
        command.envs(variables.iter().copied());
        self.end_of(command)
    }

    /// Runs it with a limit on its bytes of addresses.
    fn run_within(&self, address_bytes: u64) -> Ended {
        let mut command = Command::new("sh");
        let line = format!("ulimit -v {} && exec \"$0\"", address_bytes >> 10);
        command.args(["-c", &line]).arg(self.folder.join("unmarked"));
        self.end_of(command)
    }

    /// Runs it as a group of its own, which does not outlive it nor this call.
    fn end_of(&self, mut command: Command) -> Ended {
        command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + SOON * 3;
        let mut has_ended = || child.try_wait().unwrap().is_some();
        while !has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended_itself = has_ended();
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        let _gone = kill_process_group(group, Signal::KILL);
        let output = child.wait_with_output().unwrap();
        assert!(ended_itself, "it still runs: {}", String::from_utf8_lossy(&output.stderr));
        Ended {
            success: output.status.success(),
            errors: String::from_utf8(output.stderr).unwrap(),
            process_count: fs::read_dir(self.folder.join("tickets")).unwrap().count(),
        }
    }
}

impl Drop for Unmarked {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

impl Ended {
    fn assert_refused_alone(&self) {
        assert!(!self.success);
        for part in ["InvalidArgument", "#[tharsis::main]", "tharsis::process::enter"] {
            assert!(self.errors.contains(part), "{part} missing in: {}", self.errors);
        }
        assert_eq!(self.process_count, 1, "no other process starts: {}", self.errors);
    }
}

/// It needs no other process.
fn unmarked_program_runs_embedded(_: Mode) {
    let ended = Unmarked::new("embedded").run(&[]);
    assert!(ended.success && ended.process_count == 1, "{}", ended.errors);
}

/// A limit on addresses makes the store smaller; one that was asked for and does not fit is refused with the
/// size that does.
fn limited_addresses_leave_room_for_a_store(_: Mode) {
    const ADDRESS_BYTES: u64 = 1_000_000 << 10;
    let ended = Unmarked::new("embedded").run_within(ADDRESS_BYTES);
    assert!(ended.success, "{}", ended.errors);
    let ended = Unmarked::new("store 600000000").run_within(ADDRESS_BYTES);
    assert!(!ended.success);
    for part in ["ResourceExhausted", "store_bytes", "600000000", "ulimit -v", "there is room for one of"] {
        assert!(ended.errors.contains(part), "{part} missing in: {}", ended.errors);
    }
    let said = ended.errors.split("room for one of ").nth(1).unwrap();
    let fits: u64 = said.split(' ').next().unwrap().parse().unwrap();
    // Little less: what is free differs from run to run.
    let ended = Unmarked::new(&format!("store {}", fits - (64 << 20))).run_within(ADDRESS_BYTES);
    assert!(ended.success, "{}", ended.errors);
}

fn unmarked_program_starts_no_node(_: Mode) {
    for mode in ["workers", "cluster"] {
        Unmarked::new(mode).run(&[]).assert_refused_alone();
    }
    // A process that it starts as a node or a worker would be a driver, in whatever way it wants to run.
    for variable in ["THARSIS_NODE", "THARSIS_WORKER_SOCKET"] {
        for mode in ["embedded", "workers", "cluster"] {
            let ended = Unmarked::new(mode).run(&[(variable, "{}")]);
            ended.assert_refused_alone();
            assert!(ended.errors.contains(variable), "{}", ended.errors);
        }
    }
}

fn unmarked_program_connects_to_no_node(mode: Mode) {
    let session = mode.start(2);
    let socket = session.runtime().socket().unwrap().display().to_string();
    Unmarked::new(&format!("address {socket}")).run(&[]).assert_refused_alone();
    assert_eq!(session.report().driver_count, 1, "this driver");
}

/// A worker that comes back as a driver has no workers started: its node ends it, and the task fails with the
/// reason.
fn worker_that_drives_is_refused(mode: Mode) {
    let session = mode.start(2);
    let node = session.report().pid;
    let socket = session.runtime().socket().unwrap().display().to_string();
    let ended = Unmarked::new(&format!("relaunched {socket}")).run(&[]);
    assert!(!ended.success);
    for part in ["WorkerStartFailed", "connected as a driver", "#[tharsis::main]"] {
        assert!(ended.errors.contains(part), "{part} missing in: {}", ended.errors);
    }
    // The driver, and for each start a process and what that started: three starts for its task, after which
    // the node is left out, and one of a worker that is started ahead.
    assert!(ended.process_count <= 9, "{} processes", ended.process_count);
    await_within(SOON, "its workers are gone", || {
        processes::descendants(node).iter().all(|pid| processes::name(*pid) != "unmarked")
    });
}

#[remote]
fn starts_a_runtime(local: bool) -> String {
    let init = init().num_cpus(1.0).store_bytes(16 << 20);
    let started = if local { init.start_local() } else { init.start() };
    started.err().map_or_else(|| "it started".to_owned(), |error| error.to_string())
}

#[remote]
fn one() -> u32 {
    1
}

fn task_starts_no_runtime(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    for local in [false, true] {
        let said = starts_a_runtime::remote(local).get().unwrap();
        assert!(said.contains("InvalidArgument") && said.contains("a task cannot start a runtime"), "{said}");
        assert_eq!(one::remote().get().unwrap(), 1, "the runtime is as it was");
    }
}
