//! The executor whose tasks are remote calls.

use super::drive::{Drive, DriveOptions};
use crate::runtime::Runtime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tharsis_cancel::RunEnds;
use tharsis_graph::batch::{BatchLimits, Batches};
use tharsis_graph::explain::bytes_text;
use tharsis_graph::{Error, Executor, Job, Limits, Outcome};
use tharsis_protos::report::{NodeRow, Report};
use tharsis_remote::{Client, NodeId, Options, Result, current};

/// Runs plans as remote tasks: on the threads of an embedded runtime, on worker processes, on the nodes of a
/// cluster.
///
/// A plan is put into the store once. Its tasks are submitted in the order of the plan, small ones in
/// batches, and their chunks stay in the store; a chunk is freed when the last task that reads it has ended.
/// Batches are submitted only while the memory bound has room for them.
///
/// # Memory
/// Chunks and registers never take more than the bound that [`explain`](super::explain) reports. Without
/// [`RemoteExecutor::memory_bytes`], tasks that run take at most half of the store, and chunks that none of
/// them uses may lie on the disks that the store spills to.
///
/// # Distributed
/// A task runs where the engine places it: near the driver while there is room, then on the least used node,
/// or on the node of its chunks. Large chunks of results stay there until the last tensor over them is
/// dropped. Another job on the same runtime reads them in place; access to their elements fetches them to the
/// driver.
#[derive(Clone)]
pub struct RemoteExecutor {
    pub(super) client: Client,
    report: Arc<dyn Fn() -> Result<Report> + Send + Sync>,
    memory_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    batch_tasks: usize,
    deadline: Option<Instant>,
    options: Options,
    /// Whether tasks of a failed job, of this executor or a clone, may still run and call functions.
    leaves_tasks: Arc<AtomicBool>,
}

impl RemoteExecutor {
    /// An executor on a runtime, with all its CPUs, half of its node's store, and the disks that the store
    /// spills to.
    #[must_use]
    pub fn new(runtime: &Runtime) -> RemoteExecutor {
        RemoteExecutor {
            client: runtime.client().clone(),
            report: runtime.reporter(),
            memory_bytes: None,
            stored_bytes: None,
            batch_tasks: BATCH_TASKS_MAX,
            deadline: None,
            options: Options::default(),
            leaves_tasks: Arc::default(),
        }
    }

    /// Bytes that chunks and registers may take, all workers together. None of them is on a disk unless
    /// [`RemoteExecutor::stored_bytes`] allows more.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> RemoteExecutor {
        self.memory_bytes = Some(bytes.max(1));
        self
    }

    /// Bytes that all chunks may take, those on disks as well. What is more than the memory of running tasks
    /// is spilled if the store has no room for it.
    #[must_use]
    pub fn stored_bytes(mut self, bytes: u64) -> RemoteExecutor {
        self.stored_bytes = Some(bytes.max(1));
        self
    }

    /// Starts no task after this time; a job that has not ended then fails with `Timeout`.
    #[must_use]
    pub fn until(mut self, deadline: Instant) -> RemoteExecutor {
        self.deadline = Some(deadline);
        self
    }

    /// Options of each remote call: its CPUs, retries, placement. The number of results must not be set.
    #[must_use]
    pub fn options(mut self, options: Options) -> RemoteExecutor {
        self.options = options;
        self
    }

    /// Puts at most this number of tasks into one remote call; 1 makes each task a call.
    #[must_use]
    pub fn batch_tasks(mut self, count: usize) -> RemoteExecutor {
        self.batch_tasks = count.clamp(1, BATCH_TASKS_MAX);
        self
    }

    /// The ids of all nodes.
    fn nodes(&self) -> Vec<u64> {
        let mut nodes: Vec<u64> =
            (self.report)().unwrap_or_default().nodes.iter().map(|node| node.node).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The nodes to which homes are assigned in turn, each as often as it has CPUs. Empty if there is only
    /// one node, or if the options have a placement.
    fn home_slots(&self) -> Vec<NodeId> {
        let nodes = (self.report)().unwrap_or_default().nodes;
        if nodes.len() < 2 || self.options.is_placed() {
            return Vec::new();
        }
        let cpus = |node: &NodeRow| node.cpus() as usize;
        let most = nodes.iter().map(cpus).max().unwrap_or(0);
        let in_turn = |turn: usize| nodes.iter().filter(move |node| turn < cpus(node));
        (0..most).flat_map(in_turn).map(|node| NodeId(node.node)).collect()
    }

    /// The tasks of a job in batches, within the limits of this executor.
    fn batches(&self, job: &Job, limits: Limits) -> std::result::Result<Batches, Error> {
        let cost: f64 =
            job.schedule.order.iter().map(|task| job.runnable.task_cost(task.stage as usize)).sum();
        let share = cost / (BATCHES_PER_THREAD * limits.threads) as f64;
        let limits_of = |tasks| BatchLimits { cost: share.min(BATCH_COST), tasks, bytes: BATCH_BYTES_MAX };
        let batches = Batches::new(&job.runnable, &job.schedule, limits_of(self.batch_tasks))?;
        if check_bytes(&batches, limits).is_ok() {
            return Ok(batches);
        }
        // Single tasks need the least memory.
        let batches = Batches::new(&job.runnable, &job.schedule, limits_of(1))?;
        check_bytes(&batches, limits)?;
        Ok(batches)
    }
}

impl Executor for RemoteExecutor {
    fn limits(&self) -> Limits {
        // If the node does not answer, the first call fails with a better error.
        let report = (self.report)().unwrap_or_default();
        let cpus: f64 = report.nodes.iter().map(NodeRow::cpus).sum();
        let store_bytes = report.store.capacity_bytes / STORE_SHARE;
        let memory_bytes = self.memory_bytes.unwrap_or(store_bytes).max(1);
        let on_disk_bytes = if self.memory_bytes.is_some() { 0 } else { report.spill_quota_bytes };
        let stored_bytes = self.stored_bytes.unwrap_or(memory_bytes.saturating_add(on_disk_bytes));
        Limits {
            stored_bytes: stored_bytes.max(memory_bytes),
            chunk_bytes_max: CHUNK_BYTES_MAX,
            reads_in_place: false,
            ..Limits::new((cpus as usize).max(1), memory_bytes)
        }
    }

    fn bound_bytes(&self, job: &Job) -> std::result::Result<u64, Error> {
        let limits = self.limits();
        Ok(bound(&self.batches(job, limits)?, limits))
    }

    fn order(&self, job: &Job) -> std::result::Result<String, Error> {
        let limits = self.limits();
        let batches = self.batches(job, limits)?;
        let mut held = format!(
            "depth-first in {} batches; one is held back while what is under way would take more than {}",
            batches.len(),
            bytes_text(bound(&batches, limits))
        );
        if let Some(bytes) = memory_beside_disks(&batches, limits) {
            held += &format!(
                ", or what tasks use more than {} of it; the rest may be spilled",
                bytes_text(bytes)
            );
        }
        let ((sources, homes), slots) = (batches.source_count(), self.home_slots());
        Ok(match slots.len() {
            0 => held,
            cpus => format!(
                "{held}; {sources} batches of sources have {homes} homes on {cpus} CPUs of several nodes"
            ),
        })
    }

    fn execute(&self, job: Job) -> std::result::Result<Outcome, Error> {
        let _binding = current::bind(self.client.clone());
        let started = Instant::now();
        check_functions(&job)?;
        let limits = self.limits();
        let batches = self.batches(&job, limits)?;
        let options = DriveOptions {
            client: self.client.clone(),
            call: self.options.clone(),
            ends: RunEnds::of(self.deadline),
            home_slots: self.home_slots(),
            bound_bytes: bound(&batches, limits),
            in_use_bytes: memory_beside_disks(&batches, limits).unwrap_or(u64::MAX),
            running_max: if self.options.takes_cpus() { limits.threads } else { usize::MAX },
            threads: limits.threads,
        };
        let mut drive = Drive::new(options, &job, &batches)?;
        if job.runnable.plan().foreign.is_empty() {
            // Its tasks make chunks, and nothing else.
            return timed(drive.run(), started);
        }
        let nodes = self.nodes();
        let outcome = drive.run();
        // A node that was given up may still run what others ran again.
        if outcome.is_err() && !(drive.stop() && !nodes.is_empty() && nodes == self.nodes()) {
            self.leaves_tasks.store(true, Ordering::SeqCst);
        }
        timed(outcome, started)
    }

    /// Once tasks of a job may have been left, they may be for as long as this executor is there, whatever
    /// the error of another job.
    fn leaves_tasks(&self, _: &Error) -> bool {
        self.leaves_tasks.load(Ordering::SeqCst)
    }
}

/// The outcome with the time that the job took.
fn timed(
    outcome: std::result::Result<Outcome, Error>,
    started: Instant,
) -> std::result::Result<Outcome, Error> {
    let mut outcome = outcome?;
    outcome.metrics.elapsed = started.elapsed();
    Ok(outcome)
}

impl std::fmt::Debug for RemoteExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteExecutor({:?})", self.client)
    }
}

/// Upper bound on the bytes while these batches are driven: live chunks between batches, and batches in
/// flight.
fn bound(batches: &Batches, limits: Limits) -> u64 {
    let room = batches.largest_bytes * LARGE_FLIGHTS_PER_THREAD * limits.threads as u64;
    (batches.live_bytes + room).min(limits.stored_bytes)
}

/// The bytes that tasks may use at a time, if the bound on all chunks is above it.
fn memory_beside_disks(batches: &Batches, limits: Limits) -> Option<u64> {
    (limits.memory_bytes < bound(batches, limits)).then_some(limits.memory_bytes)
}

/// Refuses batches that cannot run within the limits even one after the other.
fn check_bytes(batches: &Batches, limits: Limits) -> std::result::Result<(), Error> {
    let check = |needed_bytes, limit_bytes| {
        if needed_bytes <= limit_bytes { Ok(()) } else { Err(Error::Memory { needed_bytes, limit_bytes }) }
    };
    check(batches.live_bytes + batches.largest_bytes, limits.stored_bytes)?;
    check(batches.running_bytes, limits.memory_bytes)
}

/// Refuses functions that workers cannot find.
fn check_functions(job: &Job) -> std::result::Result<(), Error> {
    if job.runnable.plan().foreign.iter().all(Option::is_some) {
        Ok(())
    } else {
        Err(Error::Type(
            "map_chunk: a closure is in this process only; give workers a remote function with map_remote, or \
             run the program on a LocalExecutor"
                .to_owned(),
        ))
    }
}

/// Part of the store that chunks may take, as a divisor. The rest is for regions of clients and copies in
/// transfer.
const STORE_SHARE: u64 = 2;
/// Most chunks are computed in place in the store, with stores that bypass the cache from some mebibytes on;
/// smaller ones would need more calls.
const CHUNK_BYTES_MAX: u64 = 6 << 20;
/// Cost that a batch should have, in units of about a fifth of a nanosecond: 0.2 ms, some hundred times the
/// cost of submitting it.
const BATCH_COST: f64 = 1e6;
/// Large batches in flight per thread for which the bound has room, if the limit allows it.
const LARGE_FLIGHTS_PER_THREAD: u64 = 4;
/// Batches per thread: enough that the threads finish at about the same time.
const BATCHES_PER_THREAD: usize = 8;
const BATCH_TASKS_MAX: usize = 256;
const BATCH_BYTES_MAX: u64 = 1 << 20;
