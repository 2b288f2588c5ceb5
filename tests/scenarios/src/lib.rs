//! Runner of scenarios: each on every way to run a program, with a deadline, leaving nothing behind.
//!
//! A *scenario* is a function of a [`Mode`]. It starts its own [`Session`]s, so scenarios run side by side.
//! The trial that runs it fails when it panics, and when it takes longer than [`TRIAL_WAIT`]: a hang is a
//! failure.

#![forbid(unsafe_code)]

pub mod mounted;
pub mod processes;
pub mod restarts;

use libtest_mimic::Arguments;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tharsis::{Init, Runtime, SpillChoice, SpillFolder, init};
use tharsis_protos::inventory::Inventory;
use tharsis_protos::report::{Report, StoreRow};
use tharsis_trials::{message, trial_of};

/// Longest time of a trial. `THARSIS_TRIAL_SECONDS` gives long runs more.
pub const TRIAL_WAIT: Duration = Duration::from_secs(60);
/// Longest time of anything that should happen soon.
pub const SOON: Duration = Duration::from_secs(10);
/// Bytes of a store unless the scenario says otherwise.
const STORE_BYTES: u64 = 64 << 20;
/// Bytes that a session may spill.
const SPILL_BYTES: u64 = 4 << 30;

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Node and workers are threads of the program.
    Embedded,
    /// The node is a process, and so is each worker.
    Processes,
}

/// A behaviour, and where it must hold.
pub struct Scenario {
    /// Letter and number of the behaviour, and its short name.
    pub name: &'static str,
    /// The scenario itself; a panic is a failure.
    pub run: fn(Mode),
    /// Ways to run a program where it makes sense.
    pub modes: &'static [Mode],
}

/// Lists functions as scenarios: `scenarios![Embedded: a, b; Processes: c; Both: d]`.
#[macro_export]
macro_rules! scenarios {
    ($($modes:ident: $($name:ident),* $(,)?);* $(;)?) => {
        &[$($($crate::Scenario { name: stringify!($name), run: $name, modes: $crate::modes::$modes }),*),*]
    };
}

/// Names for the macro.
pub mod modes {
    use super::Mode;

    /// On every way to run a program.
    #[expect(non_upper_case_globals, reason = "the macro writes it like a variant")]
    pub const Both: &[Mode] = &[Mode::Embedded, Mode::Processes];
    /// Within one process only.
    #[expect(non_upper_case_globals, reason = "the macro writes it like a variant")]
    pub const Embedded: &[Mode] = &[Mode::Embedded];
    /// On worker processes only.
    #[expect(non_upper_case_globals, reason = "the macro writes it like a variant")]
    pub const Processes: &[Mode] = &[Mode::Processes];
}

/// Runs the scenarios that the command line names, and looks for what they left behind.
pub fn run(scenarios: &[&'static [Scenario]]) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = scenarios.iter().copied().flatten().flat_map(|scenario| {
        scenario.modes.iter().map(|mode| {
            let name = format!("{}::{}", mode.name(), scenario.name);
            let (run, mode) = (scenario.run, *mode);
            trial_of(name, move || attempt(run, mode))
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let left = left_behind();
    left.iter().for_each(|thing| println!("LEFT BEHIND {thing}"));
    let _removed = fs::remove_dir_all(scratch());
    if left.is_empty() && !arguments.list {
        conclusion.exit_code()
    } else if arguments.list {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a scenario on a thread of its own; what is wrong with it if it panics or does not end.
fn attempt(run: fn(Mode), mode: Mode) -> Result<(), String> {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        // Dropped by a panic as well.
        let _done = done;
        run(mode);
    });
    let seconds = tharsis_trials::given_number("THARSIS_TRIAL_SECONDS");
    let limit = seconds.map_or(TRIAL_WAIT, Duration::from_secs);
    let outcome: Result<(), RecvTimeoutError> = ended.recv_timeout(limit);
    if outcome == Err(RecvTimeoutError::Timeout) {
        return Err(format!("it still runs after {} s", limit.as_secs()));
    }
    thread.join().map_err(|panic| message(&*panic))
}

impl Mode {
    /// The first part of a trial's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Processes => "processes",
        }
    }

    /// Starts a session with this many CPUs.
    #[must_use]
    pub fn start(self, cpus: usize) -> Session {
        self.start_with(cpus, |init| init)
    }

    /// Starts a session with this many CPUs and settings of its own.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_with(self, cpus: usize, change: impl FnOnce(Init) -> Init) -> Session {
        self.start_spilling(cpus, |init, spill| change(init.spill(spill)))
    }

    /// The same, also with other settings for the spill folder that a session has.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_spilling(self, cpus: usize, change: impl FnOnce(Init, SpillChoice) -> Init) -> Session {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = scratch().join(format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&folder).expect("a folder for the session");
        let init = init().num_cpus(cpus as f64).store_bytes(STORE_BYTES).scratch(&folder);
        let init = match self {
            Self::Embedded => init,
            Self::Processes => init.workers(cpus),
        };
        let runtime =
            change(init, spill_to(&folder.join("spill"))).start_local().expect("the session starts");
        let mut session = Session { runtime: Some(runtime), folder, node: None };
        if self == Self::Processes {
            session.node = Some(session.report().pid);
        }
        session
    }
}

/// Spilling to one folder.
#[must_use]
pub fn spill_to(folder: &Path) -> SpillChoice {
    let folder = SpillFolder { path: folder.to_owned(), quota_bytes: SPILL_BYTES };
    SpillChoice { folders: vec![folder], ..SpillChoice::default() }
}

/// A runtime of one scenario.
pub struct Session {
    runtime: Option<Runtime>,
    folder: PathBuf,
    /// The node's process if it is not this one.
    node: Option<u32>,
}

impl Session {
    /// Makes it the current thread's.
    pub fn enter(&self) -> tharsis::Entered<'_> {
        self.runtime().enter()
    }

    /// The runtime.
    ///
    /// # Panics
    /// Never before it is dropped.
    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it lives as long as the session")
    }

    /// A path in the session's own folder.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Files with spilled values.
    #[must_use]
    pub fn spill_files(&self) -> Vec<PathBuf> {
        files_below(&self.folder.join("spill"))
    }

    /// State of its node.
    ///
    /// # Panics
    /// If the node does not answer.
    #[must_use]
    pub fn report(&self) -> Report {
        self.runtime().report().expect("the node answers")
    }

    /// Contents of its store, and who keeps them.
    ///
    /// # Panics
    /// If the node is no process, or does not answer.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let socket = self.runtime().socket().expect("a node process");
        tharsis::observe::memory(socket).expect("the node answers")
    }

    /// Use of its store.
    #[must_use]
    pub fn store(&self) -> StoreRow {
        self.report().store
    }

    /// Waits until the node's report is as `is_so` says.
    ///
    /// # Panics
    /// If it is not soon.
    #[track_caller]
    pub fn await_report(&self, what: &str, is_so: impl Fn(&Report) -> bool) -> Report {
        let until = Instant::now() + SOON;
        loop {
            let report = self.report();
            if is_so(&report) {
                return report;
            }
            assert!(Instant::now() < until, "{what}: not so after {} s: {report:#?}", SOON.as_secs());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the store has this many objects.
    ///
    /// # Panics
    /// If it has not soon.
    #[track_caller]
    pub fn await_objects(&self, count: usize) {
        self.await_report(&format!("{count} objects in the store"), |r| r.store.object_count == count);
    }

    /// Waits until nothing is in use: no task, no object, no reference, no resource.
    ///
    /// # Panics
    /// If something still is.
    #[track_caller]
    pub fn await_quiet(&self) {
        self.await_report("nothing is in use", |r| {
            (r.task_count, r.running_count, r.object_count, r.store.object_count) == (0, 0, 0, 0)
                && (r.store.spilled_count, r.store.annex_used_bytes) == (0, 0)
                && r.nodes[0].free == r.nodes[0].total
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.runtime.take());
        let _removed = fs::remove_dir_all(&self.folder);
        // Now, as the process id may soon be another node's.
        segments_of_ended().extend(self.node.iter().flat_map(|pid| processes::segments(*pid)));
    }
}

/// Files in a folder and in those below it.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(_) => files.push(entry.path()),
            // It went meanwhile.
            Err(_) => {}
        }
    }
    files
}

/// Waits until something is so.
///
/// # Panics
/// If it is not within `limit`.
#[track_caller]
pub fn await_within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not so after {} ms", limit.as_millis());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Adds a line to a file that counts how often something happened, in any process.
///
/// # Panics
/// If the file cannot be written.
pub fn mark(path: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file opens");
    // One write call, so lines of several processes do not mix.
    file.write_all(b"x\n").expect("the line is written");
}

/// Number of times something was marked.
#[must_use]
pub fn marks(path: &str) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Waits, in a task, until the scenario makes this file.
///
/// # Panics
/// If it never does.
pub fn await_file(path: &str) {
    let until = Instant::now() + TRIAL_WAIT;
    while !Path::new(path).exists() {
        assert!(Instant::now() < until, "{path} is not made");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Makes a file that tasks wait for.
///
/// # Panics
/// If it cannot be made.
pub fn open_gate(path: &str) {
    fs::write(path, b"").expect("the file is written");
}

/// The folder of this run.
#[must_use]
pub fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("tharsis-scenarios-{}", std::process::id()))
}

/// Segments that nodes of sessions had left when these ended.
fn segments_of_ended() -> std::sync::MutexGuard<'static, Vec<String>> {
    static SEGMENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    SEGMENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes, segments and files of this run that are still there.
fn left_behind() -> Vec<String> {
    let mut left: Vec<_> =
        processes::children(std::process::id()).iter().map(|p| format!("process {p}")).collect();
    let mut segments = processes::segments(std::process::id());
    // Those of killed nodes go when another node starts.
    segments.extend(segments_of_ended().iter().filter(|name| processes::has_segment(name)).cloned());
    left.extend(segments.into_iter().map(|name| format!("segment {name}")));
    let folders = fs::read_dir(scratch()).into_iter().flatten().flatten();
    left.extend(folders.map(|entry| format!("folder {}", entry.path().display())));
    left
}
