//! Reads the memory of the node and its workers, and tells the loop when there is something to decide.
//!
//! A separate thread reads a handful of small files in `/proc` and of control groups: every half second while
//! there is room, up to fifty times a second near a limit, and every two seconds while there are no workers.
//! The loop is told of a reading only if it has news, so an idle node stays idle. `core` decides what to do.
//! Processes that a worker started count with it.
//!
//! Only workers that are processes can be measured and killed; an embedded node has no watch.

mod gauges;
mod processes;

use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use gauges::Machine;
pub(crate) use processes::{Children, ancestry};
use rustix::fs::fstat;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_core::memory::{MemoryGauge, MemoryReading, WorkerMemory};
use tharsis_object_store::Arena;
use tharsis_types::ClientId;

/// OOM score of a worker: the kernel kills it before anything else of the user.
const WORKER_OOM_SCORE: i32 = 800;
/// OOM score of a node: the kernel kills it last, because all its objects are lost with it.
const NODE_OOM_SCORE: i32 = -500;
/// Unit of the size of a file on disk or in memory, as the system counts it.
const FILE_BLOCK_BYTES: u64 = 512;

/// Lists the present workers, with their processes.
pub type Roster = Arc<dyn Fn() -> Vec<(ClientId, u32)> + Send + Sync>;

/// The thread that reads the memory.
pub struct MemoryWatch {
    requests: Arc<LookRequests>,
    thread: Option<JoinHandle<()>>,
}

/// Limits of a node's memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Bytes that the node and its workers may use; 0 for no limit but the machine's.
    pub limit_bytes: u64,
    /// Use of these from which nothing new is started; 0 if there is no such limit.
    pub soft_limit_bytes: u64,
    /// Bytes of the machine's memory that are left to others.
    pub min_free_bytes: u64,
}

/// The subjects of the thread's measurements.
pub struct Watched {
    /// The limits that count.
    pub limits: MemoryLimits,
    /// The store: its pages are shared, so they count once.
    pub arena: Arc<Arena>,
    /// The workers.
    pub roster: Roster,
    /// Channel to the loop.
    pub inbox: Arc<Inbox>,
}

#[derive(Default)]
struct LookRequests {
    state: Mutex<LookRequest>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct LookRequest {
    /// The time by which a reading is wanted, even without news.
    by: Option<Instant>,
    stops: bool,
}

/// Memory of the machine, or of the container if that is less, in bytes; none if the system does not say.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    Machine::find().bytes()
}

/// Memory that is free in the machine or the container, whichever has less, in bytes.
#[must_use]
pub fn free_bytes() -> u64 {
    Machine::find().gauge().headroom_bytes()
}

/// Makes this process the last one of its user that the kernel kills for memory, if permitted.
pub fn protect_node() {
    match processes::set_oom_score("self", NODE_OOM_SCORE) {
        Ok(()) => {}
        Err(error) => tracing::debug!(%error, "the node is protected like any process"),
    }
}

/// Makes a worker the first that the kernel kills for memory.
pub fn offer_worker(pid: u32) {
    if let Err(error) = processes::set_oom_score(&pid.to_string(), WORKER_OOM_SCORE) {
        tracing::debug!(%error, pid, "the worker is protected like any process");
    }
}

/// Takes the node's protection from a program that it starts.
pub fn unprotect_program(pid: u32) {
    if let Err(error) = processes::set_oom_score(&pid.to_string(), 0) {
        tracing::debug!(%error, pid, "the program is protected like the node");
    }
}

impl MemoryWatch {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(watched: Watched) -> std::io::Result<MemoryWatch> {
        let requests = Arc::new(LookRequests::default());
        let told = Arc::clone(&requests);
        let thread = std::thread::Builder::new().name("memory".into()).stack_size(256 << 10);
        let thread = Some(thread.spawn(move || watch(&watched, &told))?);
        Ok(MemoryWatch { requests, thread })
    }

    /// Asks for a reading within this time.
    pub fn look_within(&self, within: Duration) {
        let by = Instant::now() + within;
        let mut request = lock(&self.requests.state);
        request.by = Some(request.by.map_or(by, |earlier| earlier.min(by)));
        self.requests.changed.notify_one();
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        lock(&self.requests.state).stops = true;
        self.requests.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn watch(watched: &Watched, requests: &LookRequests) {
    let machine = Machine::find();
    let mut told = MemoryReading::default();
    let mut is_wanted = false;
    loop {
        let reading = look(watched, &machine);
        let next = Instant::now() + Duration::from_millis(reading.next_look_ms());
        if is_wanted || reading.is_news(&told) {
            told.clone_from(&reading);
            watched.inbox.put(Input::Event(Event::MemoryRead(reading)));
        }
        match requests.wait_until(next) {
            Some(wanted) => is_wanted = wanted,
            None => return,
        }
    }
}

/// Reads the workers before the limits: the memory of a worker that is not listed any more is not counted in
/// the limits either.
fn look(watched: &Watched, machine: &Machine) -> MemoryReading {
    let mut workers = of_workers(&(watched.roster)());
    workers.sort_by_key(|worker| worker.client);
    let process_bytes = processes::own_bytes("self").unwrap_or(0);
    let store_bytes = fstat(watched.arena.fd())
        .map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * FILE_BLOCK_BYTES);
    let of_workers: u64 = workers.iter().map(|worker| worker.bytes).sum();
    let used_bytes = store_bytes + process_bytes + of_workers;
    let node = MemoryGauge { used_bytes, limit_bytes: watched.limits.limit_bytes };
    let machine = machine.gauge().without(watched.limits.min_free_bytes);
    let soft_limit_bytes = watched.limits.soft_limit_bytes;
    MemoryReading { node, machine, soft_limit_bytes, store_bytes, process_bytes, workers }
}

/// Memory of the workers that are there. Workers that share a process have equal parts of its memory.
fn of_workers(roster: &[(ClientId, u32)]) -> Vec<WorkerMemory> {
    let children = Children::look();
    let mut of_process = HashMap::<u32, Vec<ClientId>>::new();
    roster.iter().for_each(|(client, pid)| of_process.entry(*pid).or_default().push(*client));
    let parts = |(pid, clients): (u32, Vec<ClientId>)| {
        let bytes = processes::family_bytes(pid, &children)? / clients.len() as u64;
        Some(clients.into_iter().map(move |client| WorkerMemory { client, pid, bytes }))
    };
    of_process.into_iter().filter_map(parts).flatten().collect()
}

impl LookRequests {
    /// Waits for a request or until `next`; true if it was a request, `None` if the watch ends.
    fn wait_until(&self, next: Instant) -> Option<bool> {
        let mut request = lock(&self.state);
        loop {
            if request.stops {
                return None;
            }
            let at = request.by.map_or(next, |by| by.min(next));
            let Some(left) = at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Some(request.by.take_if(|by| *by <= at).is_some());
            };
            request = self.changed.wait_timeout(request, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
