//! Processes that several workers share: each worker is a thread.
//!
//! A shared process is started like that of a single worker. It connects once by itself, and is told over
//! that connection which workers to begin: each of these connects like a worker with a process of its own.
//! It ends with that connection, which the node closes when its last worker is gone.
//!
//! While a process ends, another one may begin under its number: what belongs to a process is what has its
//! process id too.
//!
//! A thread cannot be killed. A worker that is killed is cut off from the node, and goes on until its user
//! code returns; when no other workers are left, the process is killed.

use super::output::{self, Tail};
use super::{
    Arrivals, SHARED_PROCESS, Shared, Worker, Workers, cannot_start, check_program, command, crashed,
    ends_within, kill_family, kill_group, offer_worker, report_end, see_end, spawn_patiently, was_silent,
};
use crate::executable::Executable;
use crate::inbox::Input;
use crate::port::FunctionTable;
use crate::registry::lock;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tharsis_core::Event;
use tharsis_core::lease::ProcessNumber;
use tharsis_types::{Failure, FailureKind, JobId};

/// Starts that a process was not told of yet, at most.
const UNTOLD_MAX: usize = 1024;

/// A process that several workers share.
pub(super) struct SharedProcess {
    /// Tells it which workers to begin. Its end ends the process.
    starts: SyncSender<u64>,
    /// The other end, until the process has connected.
    told: Option<Receiver<u64>>,
    program: Option<Executable>,
    pid: Option<u32>,
    /// Functions of its program, once it has connected.
    functions: Option<FunctionTable>,
    tail: Arc<Tail>,
}

impl SharedProcess {
    /// Whether it has not connected yet.
    pub(super) fn is_silent(&self) -> bool {
        self.told.is_some()
    }
}

impl Workers {
    /// Numbers of the workers of a process.
    fn members(&self, process: ProcessNumber, pid: Option<u32>) -> Vec<u64> {
        let is_its = |worker: &Worker| worker.process == Some(process) && worker.pid == pid;
        let members = self.table.iter().filter(|(_, worker)| is_its(worker));
        members.map(|(start, _)| *start).collect()
    }

    /// Ends a process if it has no workers but killed ones.
    pub(super) fn end_if_idle(&mut self, process: ProcessNumber) {
        let is_used = |worker: &Worker| worker.process == Some(process) && worker.reason.is_none();
        if self.table.values().any(is_used) {
            return;
        }
        let Some(ended) = self.shared.remove(&process) else { return };
        if !self.members(process, ended.pid).is_empty() {
            ended.pid.into_iter().for_each(kill_family);
        }
    }

    /// Whether a process ends with a worker that is killed, which has its reason: because it has no others,
    /// or because only its end frees memory.
    pub(super) fn ends_with(&mut self, process: ProcessNumber, pid: Option<u32>, reason: &Failure) -> bool {
        let members = self.table.values_mut();
        let members = members.filter(|worker| worker.process == Some(process) && worker.pid == pid);
        let mut others: Vec<_> = members.filter(|worker| worker.reason.is_none()).collect();
        if reason.kind == FailureKind::OutOfMemory {
            let text = "the process that it shared with another worker was killed";
            let crash = Failure::new(FailureKind::WorkerCrashed, text).because(reason.clone());
            others.drain(..).for_each(|worker| worker.reason = Some(crash.clone()));
        }
        others.is_empty()
    }
}

impl Arrivals {
    /// A shared process has connected; returns the workers that it is to begin.
    ///
    /// # Errors
    /// `InvalidArgument` if this node did not start it, or if it runs another program than the one that was
    /// started.
    pub fn begin(
        &self,
        process: ProcessNumber,
        pid: u32,
        functions: FunctionTable,
    ) -> Result<Receiver<u64>, Failure> {
        let mut workers = self.settled();
        let started = workers.shared.get_mut(&process).filter(|started| started.pid == Some(pid));
        let told = started.and_then(|started| {
            started.functions = Some(functions);
            Some((started.told.take()?, started.program.clone()?))
        });
        let Some((told, program)) = told else {
            let text = format!("process {pid} was not started by this node for several workers");
            return Err(Failure::new(FailureKind::InvalidArgument, text));
        };
        check_program(&program, pid)?;
        Ok(told)
    }

    /// Functions of the process that a worker shares; none if it has one of its own.
    pub fn functions_of(&self, start: u64) -> Option<FunctionTable> {
        let workers = lock(&self.0.workers);
        let process = workers.table.get(&start)?.process?;
        workers.shared.get(&process)?.functions.clone()
    }
}

/// Starts a worker in a shared process, which begins unless it is there.
///
/// The devices that the process sees are those of the node: its workers have different ones, which each is
/// told.
pub(super) fn start(shared: &Arc<Shared>, start: u64, worker: Worker, number: ProcessNumber) {
    begin(shared, start, Worker { process: Some(number), ..worker }, number);
}

fn begin(shared: &Arc<Shared>, start: u64, mut worker: Worker, number: ProcessNumber) {
    let mut workers = lock(&shared.workers);
    let job = worker.job;
    if let Some(process) = workers.shared.get(&number) {
        if process.starts.try_send(start).is_err() {
            drop(workers);
            return fail(shared, start, "its process does not take up new workers");
        }
        (worker.pid, worker.tail) = (process.pid, Arc::clone(&process.tail));
        workers.table.insert(start, worker);
        return;
    }
    let (starts, told) = sync_channel(UNTOLD_MAX);
    // It has room for its first.
    let _room = starts.try_send(start);
    let (tail, told) = (Arc::clone(&worker.tail), Some(told));
    let process = SharedProcess { starts, told, program: None, pid: None, functions: None, tail };
    workers.shared.insert(number, process);
    workers.table.insert(start, worker);
    drop(workers);
    let keeper = std::thread::Builder::new().name(format!("keeper-p{}", number.0));
    let kept = Arc::clone(shared);
    if let Err(cause) = keeper.spawn(move || keep(&kept, number, job)) {
        let failure =
            Failure::new(FailureKind::WorkerStartFailed, format!("no thread for a process: {cause}"));
        all_ended(shared, number, &failure);
    }
}

/// Reports that a worker did not start.
pub(super) fn fail(shared: &Shared, start: u64, problem: &str) {
    let failure = Arc::new(Failure::new(FailureKind::WorkerStartFailed, problem));
    shared.inbox.put(Input::Event(Event::WorkerStartFailed { start, failure }));
}

/// The life of a shared process, from its start to the report of its end.
fn keep(shared: &Arc<Shared>, number: ProcessNumber, job: JobId) {
    let program = (shared.starting.find_program)(job);
    let mut child = match program.and_then(|program| spawn(shared, program, number, job)) {
        Ok(child) => child,
        Err(failure) => return all_ended(shared, number, &failure),
    };
    while !ends_within(child.id(), shared.starting.timeout) {
        end_silent(shared, number, child.id());
    }
    see_end(&child);
    // Until its workers are gone from the table, whoever ends one of them kills its process group: the id
    // must not belong to another process by then.
    let ended = take_ended(shared, number, Some(child.id()));
    let status = child.wait();
    report_ended(shared, number, ended, &crashed(child.id(), status.ok()));
}

/// Reports that a process could not be started, for each of its workers.
fn all_ended(shared: &Arc<Shared>, number: ProcessNumber, failure: &Failure) {
    let ended = take_ended(shared, number, None);
    report_ended(shared, number, ended, failure);
}

/// The workers of a process that has ended, with the numbers of their starts.
struct Ended {
    /// Those that begin in the next process.
    moved: Vec<(u64, Worker)>,
    /// Those that have ended with it.
    ended: Vec<(u64, Worker)>,
}

/// Kills what is left of the group of a process that has ended, and takes its workers out of the table.
fn take_ended(shared: &Shared, number: ProcessNumber, pid: Option<u32>) -> Ended {
    let mut workers = lock(&shared.workers);
    pid.into_iter().for_each(kill_group);
    let is_it = workers.shared.get(&number).is_some_and(|process| process.pid == pid);
    let process = if is_it { workers.shared.remove(&number) } else { None };
    let had_connected = !workers.stopping && process.is_some_and(|process| !process.is_silent());
    let starts = workers.members(number, pid);
    let removed = starts.into_iter().filter_map(|start| Some((start, workers.table.remove(&start)?)));
    // The end of the process has nothing to do with a worker that had not begun.
    let may_move = |worker: &Worker| had_connected && worker.client.is_none() && worker.reason.is_none();
    let (moved, ended) = removed.partition(|(_, worker)| may_move(worker) && !worker.is_moved);
    Ended { moved, ended }
}

/// Begins workers that had not begun in another process, and reports the end of the others.
fn report_ended(shared: &Arc<Shared>, number: ProcessNumber, ended: Ended, crashed: &Failure) {
    let Ended { moved, ended } = ended;
    shared.changed.notify_all();
    for (start, worker) in moved {
        let new = Worker::new(worker.job, worker.gpus);
        let worker = Worker { process: worker.process, is_moved: true, ..new };
        begin(shared, start, worker, number);
    }
    let tail = ended.first().map(|(_, worker)| worker.tail.last_output()).unwrap_or_default();
    ended.into_iter().for_each(|(start, worker)| report_end(shared, start, worker, crashed, tail.clone()));
}

/// Kills a process that has not connected in time, and gives up workers that have not.
fn end_silent(shared: &Shared, number: ProcessNumber, pid: u32) {
    let timeout = shared.starting.timeout;
    let mut workers = lock(&shared.workers);
    let is_silent = |process: &SharedProcess| process.pid == Some(pid) && process.is_silent();
    if workers.shared.get(&number).is_some_and(is_silent) {
        let is_its = |worker: &&mut Worker| worker.process == Some(number) && worker.pid == Some(pid);
        for worker in workers.table.values_mut().filter(is_its) {
            worker.reason.get_or_insert_with(|| was_silent(pid, timeout));
        }
        return kill_family(pid);
    }
    for start in workers.members(number, Some(pid)) {
        let is_late = |worker: &Worker| worker.client.is_none() && timeout <= worker.asked.elapsed();
        if workers.table.get(&start).is_some_and(is_late) {
            workers.table.remove(&start);
            fail(shared, start, &format!("a worker in process {pid} did not connect within {timeout:?}"));
        }
    }
    workers.end_if_idle(number);
}

/// Starts a process, and notes its id. The table is not locked meanwhile: a start may take long.
fn spawn(
    shared: &Arc<Shared>,
    program: Executable,
    number: ProcessNumber,
    job: JobId,
) -> Result<Child, Failure> {
    let mut command = command(&shared.starting, &program, format!("{SHARED_PROCESS}{}", number.0));
    let child = spawn_patiently(&mut command);
    let mut workers = lock(&shared.workers);
    let mut child = child.map_err(|cause| cannot_start(&program, &cause))?;
    let pid = child.id();
    let mut tail = Arc::default();
    if let Some(process) = workers.shared.get_mut(&number) {
        (process.pid, process.program) = (Some(pid), Some(program));
        tail = Arc::clone(&process.tail);
    }
    let is_its = |worker: &&mut Worker| worker.process == Some(number) && worker.pid.is_none();
    workers.table.values_mut().filter(is_its).for_each(|worker| worker.pid = Some(pid));
    if workers.stopping {
        kill_group(pid);
    }
    drop(workers);
    shared.changed.notify_all();
    offer_worker(pid);
    output::follow(shared, &tail, &mut child, job);
    Ok(child)
}
