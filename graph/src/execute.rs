//! The interface of executors, and the one that runs plans on threads of this process.

use crate::chunk_table::ChunkTable;
use crate::error::Error;
use crate::lower::{Limits, Lowered, lower};
use crate::node::{NodeRef, distinct_nodes};
use crate::ops::{Resident, ResidentChunk};
use crate::plan::{ChunkId, TaskId};
use crate::schedule::{Schedule, schedule};
use crate::task::Runnable;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{JoinHandle, Scope};
use std::time::{Duration, Instant};
use tharsis_cancel::RunEnds;
use tharsis_kernels::pages::InUse;
use tharsis_kernels::{Chunk, Scratch, Warnings};

/// Input of an executor: the plan, its order and memory bound, and the chunks that exist.
#[derive(Debug)]
pub struct Job {
    /// The plan, compiled.
    pub runnable: Arc<Runnable>,
    /// The order of its tasks.
    pub schedule: Schedule,
    /// The chunks of each resident tensor, in the order of `plan.resident`.
    pub resident: Vec<Arc<Vec<ResidentChunk>>>,
    /// Progress of the job, noted by the executor.
    pub progress: Progress,
}

/// Progress of a job, readable from other threads. Clones refer to the same job.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Tasks that have run.
    pub fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that `tasks` more tasks have run.
    pub fn add(&self, tasks: u64) {
        self.0.fetch_add(tasks, Ordering::Relaxed);
    }
}

/// Results of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results, in the order asked for, as chunks.
    pub results: Vec<Resident>,
    /// Time and memory that it took.
    pub metrics: Metrics,
}

/// Time and memory that a job took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Tasks run.
    pub tasks: u64,
    /// The memory bound computed before running.
    pub bound_bytes: u64,
    /// Peak bytes of chunks and registers.
    pub peak_bytes: u64,
    /// Time from plan to results.
    pub elapsed: Duration,
    /// Attempts beyond the first of each task, or of each batch of them.
    pub retries: u64,
    /// Time and tasks per stage of the plan.
    pub stages: Vec<StageMetrics>,
    /// Warnings that NumPy would give, once per function and condition.
    pub warnings: Warnings,
}

/// Time and memory that one stage took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct StageMetrics {
    pub tasks: u64,
    pub busy: Duration,
    pub slowest: Duration,
    /// Attempts beyond the first, of its tasks or of batches that contain some of them.
    pub retries: u64,
}

/// Runs chunk plans. The task engine implements it by submitting each task as a remote call;
/// [`LocalExecutor`] runs them here.
pub trait Executor: Send + Sync {
    /// Limits on plans for this executor.
    fn limits(&self) -> Limits;

    /// Upper bound on the bytes of chunks and registers while this job runs.
    ///
    /// # Errors
    /// `Memory` if the limits are too small for it.
    fn bound_bytes(&self, job: &Job) -> Result<u64, Error> {
        Ok(job.schedule.bound_bytes)
    }

    /// Text about the order in which tasks start, the limits that delay them, and their homes.
    ///
    /// # Errors
    /// As [`Executor::bound_bytes`].
    fn order(&self, job: &Job) -> Result<String, Error> {
        let window = job.schedule.window;
        Ok(format!("depth-first; at most {window} tasks start ahead of one that waits, sources too"))
    }

    /// Runs all tasks of a job and hands back the chunks of its results.
    ///
    /// # Errors
    /// The first error of a task; no task is started after it.
    fn execute(&self, job: Job) -> Result<Outcome, Error>;

    /// Whether tasks of a job that failed with this error may still run, and may yet write what they were to
    /// write.
    fn leaves_tasks(&self, _: &Error) -> bool {
        true
    }
}

/// Turns expressions into a job: lowers, compiles and orders them, within the limits.
///
/// If the bound exceeds the memory allowed, chunks are made smaller and the plan is made again.
///
/// # Errors
/// `Memory`, with the number of bytes that would be enough, if no plan fits.
pub fn plan(roots: &[NodeRef], limits: Limits) -> Result<Job, Error> {
    let (mut refused, limit_bytes) = match plan_within(roots, limits) {
        Err(Error::Memory { needed_bytes, limit_bytes }) => (needed_bytes, limit_bytes),
        other => return other,
    };
    // Both limits grow: a plan that exceeds one of them may exceed the other one too.
    let with =
        |bytes: u64| Limits { memory_bytes: bytes, stored_bytes: limits.stored_bytes.max(bytes), ..limits };
    // With more memory chunks are larger, so what one plan needs need not be enough to make another.
    while let Err(Error::Memory { needed_bytes, .. }) = plan_within(roots, with(refused)) {
        refused = needed_bytes.max(refused.saturating_add(refused / NEEDED_STEP));
    }
    Err(Error::Memory { needed_bytes: refused, limit_bytes })
}

fn plan_within(roots: &[NodeRef], limits: Limits) -> Result<Job, Error> {
    let results = result_bytes(roots);
    if limits.stored_bytes < results {
        // Smaller chunks cannot help. A plan with enough memory tells the number of bytes needed.
        let needed_bytes = plan_once(roots, limits.within(results.saturating_mul(2)))?.schedule.bound_bytes;
        return Err(Error::Memory { needed_bytes, limit_bytes: limits.stored_bytes });
    }
    let mut least: Option<Excess> = None;
    for attempt in 0..REPLANS_MAX {
        let job = plan_once(roots, Limits { shrink: limits.shrink << (2 * attempt), ..limits })?;
        let excess = Excess::of(&job.schedule, limits);
        if excess.bytes() == 0 {
            return Ok(job);
        }
        if least.is_some_and(|least| least.bytes() <= excess.bytes()) {
            break;
        }
        least = Some(excess);
    }
    let least = least.ok_or_else(|| Error::Internal("no plan was tried".to_owned()))?;
    Err(Error::Memory { needed_bytes: least.needed_bytes, limit_bytes: least.limit_bytes })
}

/// The limit that a plan exceeds most, and the bytes that it needs of it.
#[derive(Clone, Copy, Debug)]
struct Excess {
    needed_bytes: u64,
    limit_bytes: u64,
}

impl Excess {
    fn of(schedule: &Schedule, limits: Limits) -> Excess {
        let running = Excess { needed_bytes: schedule.running_bytes, limit_bytes: limits.memory_bytes };
        let stored = Excess { needed_bytes: schedule.bound_bytes, limit_bytes: limits.stored_bytes };
        if stored.bytes() < running.bytes() { running } else { stored }
    }

    fn bytes(self) -> u64 {
        self.needed_bytes.saturating_sub(self.limit_bytes)
    }
}

fn plan_once(roots: &[NodeRef], limits: Limits) -> Result<Job, Error> {
    let Lowered { plan, resident, foreign } = lower(roots, &limits)?;
    let runnable = Arc::new(Runnable::new(plan, foreign)?);
    let schedule = schedule(&runnable, &limits)?;
    assert_eq!(resident.len(), runnable.plan().resident.len(), "a resident tensor without its chunks");
    assert!(schedule.least_bytes <= schedule.bound_bytes, "a plan needs more than its bound");
    Ok(Job { runnable, schedule, resident, progress: Progress::default() })
}

/// Bytes of the results that are not resident yet. Equal results are one tensor.
fn result_bytes(roots: &[NodeRef]) -> u64 {
    let (nodes, _, mut roots) = distinct_nodes(roots);
    roots.sort_unstable();
    roots.dedup();
    let made = roots.iter().map(|&root| &nodes[root]).filter(|root| root.op().resident().is_none());
    made.map(|root| root.meta().bytes()).fold(0, u64::saturating_add)
}

const REPLANS_MAX: usize = 6;
/// A number of bytes that did not do is raised by at least this part of it.
const NEEDED_STEP: u64 = 16;

/// Runs plans on a fixed number of threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor {
    limits: Limits,
    deadline: Option<Instant>,
}

impl LocalExecutor {
    /// An executor with `threads` threads and `memory` bytes for chunks and registers.
    ///
    /// # Errors
    /// `Value` for zero threads or a memory limit of zero.
    pub fn new(threads: usize, memory_bytes: u64) -> Result<LocalExecutor, Error> {
        if threads == 0 || memory_bytes == 0 {
            return Err(Error::Value("an executor needs at least one thread and some memory".to_owned()));
        }
        Ok(LocalExecutor::sized(threads, memory_bytes))
    }

    /// As [`LocalExecutor::new`], with at least one thread and at least one byte.
    pub fn sized(threads: usize, memory_bytes: u64) -> LocalExecutor {
        LocalExecutor { limits: Limits::new(threads.max(1), memory_bytes.max(1)), deadline: None }
    }

    /// An executor with the limits of another one: it makes the same plans, and so the same results to the
    /// bit. All chunks lie in memory, also where the limits have a disk for them.
    pub fn within(limits: Limits) -> LocalExecutor {
        LocalExecutor { limits, deadline: None }
    }

    /// The same executor, which fails with `Timeout` at this time. Tasks that run then are left behind: they
    /// end by themselves, and what they make is dropped.
    pub fn until(self, deadline: Instant) -> LocalExecutor {
        LocalExecutor { deadline: Some(deadline), ..self }
    }
}

impl Executor for LocalExecutor {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn execute(&self, job: Job) -> Result<Outcome, Error> {
        let started = Instant::now();
        let _pages = InUse::begin();
        let ends = RunEnds::of(self.deadline);
        ends.check()?;
        let shared = Shared::new(job, self.limits.threads, ends)?;
        if shared.ends.may_come() {
            return Arc::new(shared).work_until_ended(started);
        }
        std::thread::scope(|scope| shared.work_in(scope));
        shared.outcome(started.elapsed())
    }

    fn leaves_tasks(&self, error: &Error) -> bool {
        match error {
            Error::Cancelled => true,
            Error::Timeout => self.deadline.is_some(),
            _ => false,
        }
    }
}

struct Shared {
    job: Job,
    /// Threads of the executor, also those that have no task.
    threads: usize,
    ends: RunEnds,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Position of the first task not started.
    next: usize,
    /// Tasks from `next` on that have started.
    ahead: std::collections::VecDeque<bool>,
    running: usize,
    /// Threads that take tasks, or are about to. No more begin when there are as many as the executor has.
    begun: usize,
    /// Threads that outlive the call if it gives the job up.
    workers: Vec<JoinHandle<()>>,
    chunks: HashMap<ChunkId, Arc<Chunk>>,
    readers: ChunkTable<u32>,
    failed: Option<Error>,
    /// Whether nobody waits for the tasks that run.
    is_left: bool,
    live_bytes: u64,
    metrics: Metrics,
}

/// Tasks that run and are left behind.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Number of tasks of this process that still run although their jobs were given up. Each has a thread, and
/// memory that the bounds of other jobs do not count.
pub fn tasks_left_behind() -> usize {
    LEFT.load(Ordering::Relaxed)
}

impl State {
    /// Counts a task that runs as ended.
    fn end_task(&mut self) {
        assert!(0 < self.running, "a task ends that was not begun");
        self.running -= 1;
        if self.is_left {
            LEFT.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Leaves the tasks that run behind.
    fn leave(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.is_left = true;
        LEFT.fetch_add(self.running, Ordering::Relaxed);
    }
}

/// Stops the other threads when a task panics, since its outputs will never arrive.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.failed.get_or_insert(Error::Internal("a task panicked".to_owned()));
        state.end_task();
        drop(state);
        self.0.changed.notify_all();
    }
}

/// A task with what it reads, and the number of threads that it may use.
struct Ready {
    task: TaskId,
    inputs: Vec<(ChunkId, Arc<Chunk>)>,
    threads: usize,
}

impl Shared {
    fn new(job: Job, threads: usize, ends: RunEnds) -> Result<Shared, Error> {
        let plan = job.runnable.plan();
        let mut chunks = HashMap::new();
        for (&tensor, resident) in plan.resident.iter().zip(&job.resident) {
            let ids = (0..).map(|index| ChunkId { tensor: tensor as u32, index });
            for (id, chunk) in ids.zip(resident.iter()) {
                chunks.insert(id, chunk.fetch()?);
            }
        }
        let metrics = Metrics {
            bound_bytes: job.schedule.bound_bytes,
            stages: vec![StageMetrics::default(); plan.stages.len()],
            ..Metrics::default()
        };
        let state = State {
            next: 0,
            ahead: Default::default(),
            running: 0,
            begun: 1,
            workers: Vec::new(),
            chunks,
            readers: job.schedule.readers.clone(),
            failed: None,
            is_left: false,
            live_bytes: 0,
            metrics,
        };
        Ok(Shared { job, threads, ends, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Works on this thread and on others of a scope.
    fn work_in<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        self.work(&|| {
            let other = std::thread::Builder::new().spawn_scoped(scope, move || self.work_in(scope));
            other.is_ok()
        });
    }

    /// Works on threads of their own, which this one waits for until the job is given up and not longer: a
    /// task may take any time.
    fn work_until_ended(self: Arc<Shared>, started: Instant) -> Result<Outcome, Error> {
        let (works, all_ended) = channel::<()>();
        if let Err(error) = begin_worker(&self, works) {
            return Err(Error::Internal(format!("no thread for tasks: {error}")));
        }
        let pause = || self.ends.pause().unwrap_or(Duration::MAX);
        while all_ended.recv_timeout(pause()) == Err(RecvTimeoutError::Timeout) {
            if let Err(ended) = self.ends.check() {
                self.lock().leave(ended.into());
                self.changed.notify_all();
                return Err(ended.into());
            }
        }
        let workers = std::mem::take(&mut self.lock().workers);
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
        match Arc::into_inner(self) {
            Some(shared) => shared.outcome(started.elapsed()),
            None => Err(Error::Internal("a thread has ended and still works".to_owned())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while holding the lock has ended the scope with its panic; others may still
        // finish.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes tasks until there are none left. Has `begin` make a further thread when there is a task for it:
    /// a chain of tasks needs none, and a job of small tasks takes less time than a thread to begin and end.
    /// If `begin` says that it made none, the threads that are there do all.
    fn work(&self, begin: &dyn Fn() -> bool) {
        let mut scratch = Scratch::new();
        let mut state = self.lock();
        loop {
            if state.failed.is_some() || state.next == self.job.schedule.order.len() {
                return;
            }
            if let Err(ended) = self.ends.check() {
                state.failed = Some(ended.into());
                self.changed.notify_all();
                return;
            }
            let Some(ready) = self.take(&mut state) else {
                state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let begins = state.begun < self.threads && self.startable(&state).is_some();
            state.begun += usize::from(begins);
            drop(state);
            let guard = EndOnPanic(self);
            if begins && !begin() {
                self.lock().begun = self.threads;
            }
            let started = Instant::now();
            scratch.grant_threads(ready.threads);
            let result = self.job.runnable.run(ready.task, &ready.inputs, &mut scratch);
            std::mem::forget(guard);
            let busy = started.elapsed();
            state = self.lock();
            state.metrics.warnings.append(&mut scratch.take_warnings());
            self.done(&mut state, ready, result, busy);
        }
    }

    /// Starts the first task in order that may start and whose inputs exist.
    fn take(&self, state: &mut State) -> Option<Ready> {
        let Schedule { order, window, .. } = &self.job.schedule;
        let (ahead, mut ready) = self.startable(state)?;
        if state.ahead.len() <= ahead {
            state.ahead.resize(ahead + 1, false);
        }
        state.ahead[ahead] = true;
        debug_assert!(state.ahead.len() <= *window + 1, "a task starts further ahead than it may");
        while state.ahead.front() == Some(&true) {
            state.ahead.pop_front();
            state.next += 1;
        }
        state.running += 1;
        assert!(state.next <= order.len(), "a task is taken behind the last one");
        state.live_bytes += self.running_bytes(ready.task);
        state.metrics.peak_bytes = state.metrics.peak_bytes.max(state.live_bytes);
        ready.threads = self.granted(state, ready.task);
        Some(ready)
    }

    /// The first task in order that may start and whose inputs exist, and how far it is ahead of the first
    /// one that has not started.
    fn startable(&self, state: &State) -> Option<(usize, Ready)> {
        let Schedule { order, window, .. } = &self.job.schedule;
        for ahead in 0..=*window {
            let task = *order.get(state.next + ahead)?;
            if state.ahead.get(ahead).copied().unwrap_or(false) {
                continue;
            }
            let mut ids = Vec::new();
            self.job.runnable.inputs(task, &mut ids);
            let found = ids.into_iter().map(|id| state.chunks.get(&id).map(|chunk| (id, chunk.clone())));
            if let Some(inputs) = found.collect() {
                return Some((ahead, Ready { task, inputs, threads: 1 }));
            }
        }
        None
    }

    /// Threads for a task that has just started: all, if no other task runs or can start before it ends.
    fn granted(&self, state: &State, task: TaskId) -> usize {
        let asks = 1 < self.threads && self.job.runnable.takes_threads(task.stage as usize);
        if asks && state.running == 1 && self.startable(state).is_none() { self.threads } else { 1 }
    }

    /// Bytes that a task takes while it runs, beside chunks that exist.
    fn running_bytes(&self, task: TaskId) -> u64 {
        let (runnable, stage) = (&self.job.runnable, task.stage as usize);
        runnable.output_bytes(stage) + runnable.scratch_bytes(stage)
    }

    fn done(&self, state: &mut State, ready: Ready, result: Result<Vec<Chunk>, Error>, busy: Duration) {
        let task_bytes = self.running_bytes(ready.task);
        assert!(task_bytes <= state.live_bytes, "a task ends with more memory than there is");
        state.end_task();
        state.live_bytes -= task_bytes;
        state.metrics.tasks += 1;
        self.job.progress.add(1);
        let stage = &mut state.metrics.stages[ready.task.stage as usize];
        stage.tasks += 1;
        stage.busy += busy;
        stage.slowest = stage.slowest.max(busy);
        match result {
            Ok(chunks) => {
                for (id, chunk) in self.job.runnable.outputs(ready.task).zip(chunks) {
                    if state.readers[id] != 0 {
                        state.live_bytes += chunk.buffer().len_bytes() as u64;
                        let before = state.chunks.insert(id, Arc::new(chunk));
                        assert!(before.is_none(), "{id:?} is made twice");
                    }
                }
                for (id, _) in &ready.inputs {
                    self.release(state, *id);
                }
            }
            Err(error) => state.failed = Some(state.failed.take().unwrap_or(error)),
        }
        state.metrics.peak_bytes = state.metrics.peak_bytes.max(state.live_bytes);
        self.changed.notify_all();
    }

    fn release(&self, state: &mut State, id: ChunkId) {
        let left = &mut state.readers[id];
        assert!(0 < *left, "{id:?} is read more often than was counted");
        *left -= 1;
        if *left == 0
            && let Some(chunk) = state.chunks.remove(&id)
        {
            state.live_bytes -= chunk.buffer().len_bytes() as u64;
        }
    }

    fn outcome(self, elapsed: Duration) -> Result<Outcome, Error> {
        let plan = self.job.runnable.plan().clone();
        let mut state = self.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(error) = state.failed {
            return Err(error);
        }
        assert_eq!(state.running, 0, "a task runs after all threads have ended");
        assert_eq!(state.next, self.job.schedule.order.len(), "a task was left out");
        assert!(state.ahead.is_empty(), "a task was started beyond the last one");
        state.metrics.elapsed = elapsed;
        let gather = |&tensor: &usize| {
            let spec = &plan.tensors[tensor];
            let ids =
                (0..spec.tiling.count()).map(|index| ChunkId { tensor: tensor as u32, index: index as u32 });
            let chunks = ids.map(|id| Some(ResidentChunk::Here(state.chunks.get(&id)?.clone())));
            let chunks: Option<Vec<ResidentChunk>> = chunks.collect();
            let chunks =
                chunks.ok_or_else(|| Error::Internal(format!("a chunk of result {tensor} was not made")))?;
            Ok(Resident { dtype: spec.dtype, tiling: spec.tiling.clone(), chunks: Arc::new(chunks) })
        };
        let results = plan.results.iter().map(gather).collect::<Result<_, Error>>()?;
        Ok(Outcome { results, metrics: state.metrics })
    }
}

/// Begins a thread that takes tasks and outlives the call that gives the job up. It holds `works` while it
/// works.
fn begin_worker(shared: &Arc<Shared>, works: Sender<()>) -> std::io::Result<()> {
    let own = Arc::clone(shared);
    let worker = std::thread::Builder::new().spawn(move || {
        own.work(&|| begin_worker(&own, works.clone()).is_ok());
        // Behind the last use of what is shared, which the waiting thread takes apart.
        drop(own);
        drop(works);
    })?;
    shared.lock().workers.push(worker);
    Ok(())
}
