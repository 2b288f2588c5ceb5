//! Worker processes: the job's program, started in worker mode, its output read, its end noticed.
//!
//! Each worker has a keeper thread that starts it and waits for its end. The worker's parent-death signal is
//! bound to the keeper, so the keeper lives as long as the worker. A worker leads a process group of its own;
//! the group is killed with it, so nothing that a task started is left behind. Several workers may share a
//! process (`shared.rs`).

mod output;
mod shared;
#[cfg(test)]
mod tests;

use crate::descriptors::{self, LIMIT_VARIABLE};
use crate::executable::Executable;
use crate::gpus::{GPUS_VARIABLE, GpuNames};
use crate::inbox::{Inbox, Input, Room};
use crate::logbook::LogBook;
use crate::pressure::{Children, Roster, ancestry, offer_worker};
use crate::readiness;
use crate::registry::lock;
use output::Tail;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, waitid,
};
use shared::SharedProcess;
use std::collections::HashMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_core::event::Remains;
use tharsis_core::lease::ProcessNumber;
use tharsis_types::failure::Origin;
use tharsis_types::{ClientId, Failure, FailureKind, JobId};

/// Environment variable with the node's socket; its presence makes a program a worker.
pub const WORKER_SOCKET: &str = "THARSIS_WORKER_SOCKET";
/// Environment variable with the number of the start, or with [`SHARED_PROCESS`].
pub const WORKER_START: &str = "THARSIS_WORKER_START";
/// Environment variable with the node's spill directories, as `PATH` has its directories: for temporary
/// files of a worker's libraries.
pub const WORKER_SCRATCH: &str = "THARSIS_WORKER_SCRATCH";
/// Beginning of [`WORKER_START`] for a process that several workers share; its number follows.
pub const SHARED_PROCESS: &str = "process ";
/// The longest time to wait for the process ids of workers that are being started.
const SETTLE_WAIT: Duration = Duration::from_secs(2);
/// The time for which a node that stops waits for the ends of its workers.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// Bytes of output that wait for the loop.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// The longest time to wait for a program file that is busy because it was just written.
const BUSY_FILE_WAIT: Duration = Duration::from_secs(1);

/// Finds the program of a job on this node, fetching it if need be. May take a while; called on keeper
/// threads.
pub type FindProgram = Arc<dyn Fn(JobId) -> Result<Executable, Failure> + Send + Sync>;

/// Starts and kills workers. Its calls return at once; outcomes come through the inbox.
pub trait Workforce: Send {
    /// Starts a worker of a job, in the shared process with this number, which begins unless it is there. It
    /// is told that it may use these GPUs.
    fn start(&self, start: u64, job: JobId, process: Option<ProcessNumber>, gpus: Vec<u32>);
    /// Ends a worker now; `reason` is reported as the cause of its death.
    fn kill(&self, client: ClientId, reason: &Failure);
    /// Ends all workers.
    fn stop(&self);
}

/// Settings for the start of worker processes.
pub struct Starting {
    /// The node's socket.
    pub socket: PathBuf,
    /// Finds their program.
    pub find_program: FindProgram,
    /// The longest time that one may take until it says hello; then it is killed.
    pub timeout: Duration,
    /// Keeps their output.
    pub log: Arc<LogBook>,
    /// The node's spill directories, for temporary files.
    pub scratch: Vec<PathBuf>,
    /// Names of the node's GPUs.
    pub gpus: GpuNames,
}

/// The worker processes of a node.
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    inbox: Arc<Inbox>,
    starting: Starting,
    /// For output of all workers that the loop has not passed on.
    output_room: Room,
    workers: Mutex<Workers>,
    /// Notified when a worker has a process, or has ended.
    changed: Condvar,
}

#[derive(Default)]
struct Workers {
    table: HashMap<u64, Worker>,
    shared: HashMap<ProcessNumber, SharedProcess>,
    stopping: bool,
}

/// A worker between its start and its end.
struct Worker {
    job: JobId,
    /// The GPUs that it may use, by number.
    gpus: Vec<u32>,
    /// The program of its process; none if it shares that, which says what it runs by itself.
    program: Option<Executable>,
    /// The process that it shares, if it does.
    process: Option<ProcessNumber>,
    asked: Instant,
    /// Whether the shared process in which it was to begin has ended before, and it begins in the next one.
    is_moved: bool,
    /// None until it has been started. Its process is not reaped before the worker is gone from the table, so
    /// the process id, which is also that of its group, belongs to no other process.
    pid: Option<u32>,
    client: Option<ClientId>,
    /// The reason why it was killed, if it was.
    reason: Option<Failure>,
    tail: Arc<Tail>,
}

impl Worker {
    fn new(job: JobId, gpus: Vec<u32>) -> Self {
        Self {
            job,
            gpus,
            program: None,
            process: None,
            asked: Instant::now(),
            is_moved: false,
            pid: None,
            client: None,
            reason: None,
            tail: Arc::default(),
        }
    }
}

/// The state of a worker that has closed its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Its process is killed, and its keeper reports the end.
    Killed,
    /// Its keeper has reported the end, or does so soon.
    Reported,
    /// It was a thread, which has ended.
    Thread,
}

impl Processes {
    /// A table without workers; `inbox` gets their ends.
    #[must_use]
    pub fn new(inbox: Arc<Inbox>, starting: Starting) -> Self {
        let (workers, changed, output_room) = (Mutex::default(), Condvar::new(), Room::new(OUTPUT_BYTES_MAX));
        Self { shared: Arc::new(Shared { inbox, starting, output_room, workers, changed }) }
    }

    /// The part that the local socket uses when workers connect.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(Arc::clone(&self.shared))
    }

    /// A function that lists the connected workers.
    #[must_use]
    pub fn roster(&self) -> Roster {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || {
            lock(&shared.workers).table.values().filter_map(|w| Some((w.client?, w.pid?))).collect()
        })
    }
}

/// Matches clients with the starts of workers.
#[derive(Clone)]
pub struct Arrivals(Arc<Shared>);

impl Arrivals {
    /// A worker said hello; returns its job.
    ///
    /// # Errors
    /// `InvalidArgument` if this node did not start it, or if it runs another program than the one that was
    /// started.
    pub fn arrived(&self, start: u64, pid: u32, client: ClientId) -> Result<JobId, Failure> {
        let mut workers = self.settled();
        let started = workers.table.get_mut(&start).filter(|w| w.pid == Some(pid) && w.client.is_none());
        let Some(worker) = started else {
            let text = format!(
                "process {pid} was not started by this node as worker {start}; a program that a task \
                 starts must not inherit {WORKER_SOCKET}"
            );
            return Err(Failure::new(FailureKind::InvalidArgument, text));
        };
        if let Some(program) = &worker.program {
            check_program(program, pid)?;
        }
        worker.client = Some(client);
        Ok(worker.job)
    }

    /// Names of the GPUs that a worker may use; none for a client that is no worker.
    #[must_use]
    pub fn gpus_of(&self, client: ClientId) -> Vec<String> {
        let workers = lock(&self.0.workers);
        let worker = workers.table.values().find(|worker| worker.client == Some(client));
        worker.map(|worker| self.0.starting.gpus.names(&worker.gpus)).unwrap_or_default()
    }

    /// Refuses a driver if its process is a worker that has not said hello, or was started by one, and ends
    /// that worker. Such a worker runs the program's `main` instead of working, and the workers of its new
    /// job would do the same, without end.
    ///
    /// # Errors
    /// `WorkerStartFailed` with the remedy. Tasks that waited for the worker fail with it as well.
    pub fn check_driver(&self, pid: u32) -> Result<(), Failure> {
        let family = ancestry(pid);
        let mut workers = self.settled();
        let workers = &mut *workers;
        let is_silent = |worker: &Worker| match worker.process {
            Some(number) => workers.shared.get(&number).is_some_and(SharedProcess::is_silent),
            None => worker.client.is_none(),
        };
        let silent = |worker: &mut Worker| match worker.pid {
            Some(pid) if is_silent(worker) && family.contains(&pid) => Some(pid),
            _ => None,
        };
        let found = workers.table.values_mut().find_map(|worker| silent(worker).map(|pid| (pid, worker)));
        let Some((worker_pid, worker)) = found else { return Ok(()) };
        let text = format!(
            "worker process {worker_pid} connected as a driver: its program must come to `tharsis::process::enter`, \
             which `#[tharsis::main]` calls, with the environment it was started with"
        );
        let failure = Failure::new(FailureKind::WorkerStartFailed, text);
        worker.reason.get_or_insert_with(|| failure.clone());
        kill_family(worker_pid);
        Err(failure)
    }

    /// A worker that had said hello could not be connected: it counts as never started. Its process is killed
    /// if it has one of its own. A thread ends as it is refused, and the workers beside it go on.
    pub fn refused(&self, client: ClientId, failure: &Failure) {
        let mut workers = lock(&self.0.workers);
        let workers = &mut *workers;
        let found = workers.table.iter_mut().find(|(_, worker)| worker.client == Some(client));
        let Some((start, worker)) = found else { return };
        let (start, process) = (*start, worker.process);
        worker.client = None;
        match process {
            Some(process) => {
                workers.table.remove(&start);
                workers.end_if_idle(process);
                shared::fail(&self.0, start, &failure.message);
            }
            None => worker.pid.into_iter().for_each(kill_group),
        }
    }

    /// A worker closed its socket. Its process group is killed, unless the worker was a thread that has said
    /// so (`is_orderly`).
    #[must_use]
    pub fn left(&self, client: ClientId, is_orderly: bool) -> Departure {
        let mut workers = lock(&self.0.workers);
        let found = workers.table.iter().find(|(_, worker)| worker.client == Some(client));
        let Some((start, process, pid)) = found.map(|(start, w)| (*start, w.process, w.pid)) else {
            return Departure::Reported;
        };
        match process.filter(|_| is_orderly) {
            Some(process) => {
                workers.table.remove(&start);
                workers.end_if_idle(process);
                Departure::Thread
            }
            None => {
                pid.into_iter().for_each(kill_group);
                Departure::Killed
            }
        }
    }

    /// The table, once the process ids of all workers are known: a process that was just started may connect
    /// before its keeper has noted its id.
    fn settled(&self) -> MutexGuard<'_, Workers> {
        let workers = lock(&self.0.workers);
        let unknown = |workers: &mut Workers| workers.table.values().any(|w| w.pid.is_none());
        let waited = self.0.changed.wait_timeout_while(workers, SETTLE_WAIT, unknown);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Workforce for Processes {
    fn start(&self, start: u64, job: JobId, process: Option<ProcessNumber>, gpus: Vec<u32>) {
        if let Some(process) = process {
            return shared::start(&self.shared, start, Worker::new(job, gpus), process);
        }
        let shared = Arc::clone(&self.shared);
        let keeper = std::thread::Builder::new().name(format!("keeper-{start}"));
        let spawned = keeper.spawn(move || keep(&shared, start, job, gpus));
        if let Err(cause) = spawned {
            let failure =
                Failure::new(FailureKind::WorkerStartFailed, format!("no thread for a worker: {cause}"));
            self.shared
                .inbox
                .put(Input::Event(Event::WorkerStartFailed { start, failure: Arc::new(failure) }));
        }
    }

    fn kill(&self, client: ClientId, reason: &Failure) {
        let mut workers = lock(&self.shared.workers);
        if let Some(worker) = workers.table.values_mut().find(|w| w.client == Some(client)) {
            worker.reason.get_or_insert_with(|| reason.clone());
            let (pid, process) = (worker.pid, worker.process);
            match process {
                Some(process) if !workers.ends_with(process, pid, reason) => {
                    let (remains, failure) = (Remains::Thread, Arc::new(reason.clone()));
                    let event = Event::ClientGone { client, remains, failure };
                    self.shared.inbox.put(Input::Event(event));
                }
                _ => pid.into_iter().for_each(kill_family),
            }
        }
    }

    fn stop(&self) {
        let mut workers = lock(&self.shared.workers);
        // A worker that is being started is killed by its keeper.
        workers.stopping = true;
        workers.table.values().filter_map(|w| w.pid).for_each(kill_group);
        let still = |workers: &mut Workers| !workers.table.is_empty();
        let _ended = self.shared.changed.wait_timeout_while(workers, STOP_WAIT, still);
    }
}

/// The life of one worker, from its start to the report of its end.
fn keep(shared: &Arc<Shared>, start: u64, job: JobId, gpus: Vec<u32>) {
    let program = (shared.starting.find_program)(job);
    let started = program.and_then(|program| spawn(shared, program, start, Worker::new(job, gpus)));
    let mut child = match started {
        Ok(child) => child,
        Err(failure) => {
            shared.inbox.put(Input::Event(Event::WorkerStartFailed { start, failure: Arc::new(failure) }));
            return;
        }
    };
    let worker = await_end(shared, start, &child);
    let status = child.wait();
    shared.changed.notify_all();
    let Some(worker) = worker else { return };
    let tail = worker.tail.last_output();
    report_end(shared, start, worker, &crashed(child.id(), status.ok()), tail);
}

/// Reports that the process of a worker has ended, for the reason why it was killed, if it was.
fn report_end(shared: &Shared, start: u64, worker: Worker, crashed: &Failure, tail: String) {
    let reason = worker.reason.unwrap_or_else(|| crashed.clone());
    let failure = reason.with_log_tail(tail).at(Origin { pid: worker.pid, ..Origin::default() });
    let failure = Arc::new(failure);
    if let Some(client) = worker.client {
        let failure = Arc::clone(&failure);
        shared.inbox.put(Input::Event(Event::ClientGone { client, remains: Remains::Nothing, failure }));
    }
    // This has no effect unless the worker ended before the loop knew it as a client.
    shared.inbox.put(Input::Event(Event::WorkerStartFailed { start, failure }));
}

/// Waits for the end of a process; false if it still runs after the given time.
fn ends_within(pid: u32, time: Duration) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Without a pidfd, the end is awaited without a limit; nothing else is lost.
    let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return true };
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return true };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Ok(0) => return false,
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return true,
        }
    }
}

/// Kills a worker that has not said hello in time.
fn end_silent(shared: &Shared, start: u64) {
    let mut workers = lock(&shared.workers);
    let Some(worker) = workers.table.get_mut(&start).filter(|w| w.client.is_none()) else { return };
    let Some(pid) = worker.pid else { return };
    worker.reason.get_or_insert_with(|| was_silent(pid, shared.starting.timeout));
    kill_family(pid);
}

fn was_silent(pid: u32, timeout: Duration) -> Failure {
    let text = format!(
        "worker process {pid} did not connect to its node within {timeout:?}; if the program needs longer to get to its \
         main function, raise worker_start_timeout"
    );
    Failure::new(FailureKind::WorkerStartFailed, text)
}

/// Refuses a process that runs another program than the one that was started.
fn check_program(program: &Executable, pid: u32) -> Result<(), Failure> {
    if program.is_not_of(pid) {
        let text = format!("process {pid} runs another program than its job, {program}");
        return Err(Failure::new(FailureKind::InvalidArgument, text));
    }
    Ok(())
}

/// Waits until a worker has ended, and kills the rest of its group before its process id can be used again.
fn await_end(shared: &Shared, start: u64, child: &std::process::Child) -> Option<Worker> {
    if !ends_within(child.id(), shared.starting.timeout) {
        end_silent(shared, start);
    }
    see_end(child);
    let mut workers = lock(&shared.workers);
    kill_group(child.id());
    workers.table.remove(&start)
}

/// Waits until a process has ended, and leaves it unreaped: its id belongs to no other process.
fn see_end(child: &std::process::Child) {
    let ended = i32::try_from(child.id()).ok().and_then(Pid::from_raw).map(|pid| {
        loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(Errno::INTR) => {}
                outcome => break outcome,
            }
        }
    });
    if !matches!(ended, Some(Ok(_))) {
        tracing::warn!(pid = child.id(), ?ended, "the end of a worker is not seen");
    }
}

/// Enters a worker, starts its process, and notes its process id. The table is not locked meanwhile: a start
/// may take long.
fn spawn(
    shared: &Arc<Shared>,
    program: Executable,
    start: u64,
    worker: Worker,
) -> Result<std::process::Child, Failure> {
    let mut command = command(&shared.starting, &program, start.to_string());
    if let Some(visible) = shared.starting.gpus.visible(&worker.gpus) {
        command.env(GPUS_VARIABLE, visible);
    }
    let (job, tail) = (worker.job, Arc::clone(&worker.tail));
    let worker = Worker { program: Some(program.clone()), ..worker };
    lock(&shared.workers).table.insert(start, worker);
    let child = spawn_patiently(&mut command);
    let mut workers = lock(&shared.workers);
    let mut child = child.map_err(|cause| {
        workers.table.remove(&start);
        shared.changed.notify_all();
        cannot_start(&program, &cause)
    })?;
    let pid = child.id();
    if let Some(worker) = workers.table.get_mut(&start) {
        worker.pid = Some(pid);
    }
    if workers.stopping {
        kill_group(pid);
    }
    drop(workers);
    shared.changed.notify_all();
    offer_worker(pid);
    output::follow(shared, &tail, &mut child, job);
    Ok(child)
}

/// The command that starts a program as a worker process.
fn command(starting: &Starting, program: &Executable, start: String) -> Command {
    let mut command = Command::new(program.start_path());
    command
        .arg0(program.path())
        .env(WORKER_SOCKET, &starting.socket)
        .env(WORKER_START, start)
        .env(LIMIT_VARIABLE, descriptors::for_children())
        // A path with a separator cannot be in a list; the system's folder serves then.
        .env(WORKER_SCRATCH, std::env::join_paths(&starting.scratch).unwrap_or_default())
        .env_remove(readiness::SOCKET_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

fn cannot_start(program: &Executable, cause: &std::io::Error) -> Failure {
    let hint = match cause.kind() {
        // A program of another node lies beside the socket of this one.
        std::io::ErrorKind::PermissionDenied => {
            "; a file system that is mounted with noexec runs no programs"
        }
        _ => "",
    };
    Failure::new(FailureKind::WorkerStartFailed, format!("cannot start {program}: {cause}{hint}"))
}

/// Starts a program that may just have been written: a process that was forked meanwhile holds the file open
/// for writing until its exec.
fn spawn_patiently(command: &mut Command) -> std::io::Result<std::process::Child> {
    let until = Instant::now() + BUSY_FILE_WAIT;
    loop {
        match command.spawn() {
            Err(cause)
                if cause.kind() == std::io::ErrorKind::ExecutableFileBusy && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

fn crashed(pid: u32, status: Option<ExitStatus>) -> Failure {
    let how = match status {
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}{}", signal_name(signal)),
            (None, Some(code)) => format!("exited with status {code}"),
            (None, None) => "ended".to_owned(),
        },
        None => "ended, and nobody knows how".to_owned(),
    };
    Failure::new(FailureKind::WorkerCrashed, format!("worker process {pid} {how}"))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Kills a process, its group, and descendants that have left the group: they may have the memory for which
/// it is killed.
fn kill_family(pid: u32) {
    let descendants = Children::look().descendants(pid);
    kill_group(pid);
    let to_pid = |pid| i32::try_from(pid).ok().and_then(Pid::from_raw);
    for pid in descendants.into_iter().filter_map(|(child, _)| to_pid(child)) {
        // It may be gone already.
        let _gone = kill_process(pid, Signal::KILL);
    }
}

fn kill_group(pid: u32) {
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _gone = kill_process_group(group, Signal::KILL);
    }
}
