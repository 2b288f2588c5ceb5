//! The disk side of the store: separate threads write objects to spill directories and read them back.
//!
//! The machine decides which objects are written and read; outcomes come through the inbox. Reads come before
//! writes, because somebody waits for each of them. An object that cannot be read back is reported lost;
//! other copies or lineage replace it.

use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use serde::{Deserialize, Serialize};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_object_store::Arena;
use tharsis_object_store::spill::{SpillError, SpillOptions, SpillPlace, SpillSet};
use tharsis_object_store::transfer::ReadAt;
use tharsis_types::limits::MIB;
use tharsis_types::{Extent, Failure, FailureKind, NodeId, ObjectId};

/// Maximum number of threads that write and read: enough to keep a fast disk's queue filled while one of them
/// computes checksums.
const THREADS_MAX: usize = 3;
/// Threads without work end after this long.
const IDLE_MAX: Duration = Duration::from_secs(2);
/// Space of removed objects is reclaimed after this long without work, because that takes disk time.
const TIDY_AFTER: Duration = Duration::from_millis(100);
/// A read that fails for another reason than bad bytes is tried this often.
const READ_TRIES: u32 = 3;
/// Maximum bytes that one compaction moves, so that a read never waits long for it.
const COMPACTED_BYTES_MAX: u64 = 64 * MIB as u64;

/// A spill directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillFolder {
    /// Path of the directory; made if it is not there.
    pub path: PathBuf,
    /// Bytes that it may use.
    pub quota_bytes: u64,
}

/// The spill directories of a node, and the conditions for spilling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillChoice {
    /// The directories; none means that nothing is spilled.
    pub folders: Vec<SpillFolder>,
    /// Copies are spilled when the only copies of objects take more than this percentage of the store.
    pub high_water_percent: u8,
    /// Spilling goes on until the only copies of objects take no more than this percentage of the store.
    pub low_water_percent: u8,
    /// Whether to compress where that pays.
    pub may_compress: bool,
    /// Bytes per second that each directory may move at most; none means as fast as its device.
    pub bytes_per_s_max: Option<u64>,
}

impl Default for SpillChoice {
    /// Nothing is spilled.
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            high_water_percent: 80,
            low_water_percent: 70,
            may_compress: true,
            bytes_per_s_max: None,
        }
    }
}

impl SpillChoice {
    /// The paths of the directories.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.path.clone()).collect()
    }
}

/// The spill directories of a node and the threads that work on them.
pub struct Spill {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    set: SpillSet,
    node: NodeId,
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    queue: Mutex<Queue>,
    work: Condvar,
    stopping: AtomicBool,
    /// Whether space of removed objects may be reclaimed.
    is_loose: AtomicBool,
}

#[derive(Default)]
struct Queue {
    reads: VecDeque<(ObjectId, Extent)>,
    others: VecDeque<Job>,
    /// Objects whose removal is queued or under way: a new value with the same id is written after that.
    discarding: HashSet<ObjectId>,
    thread_count: usize,
    idle_count: usize,
}

enum Job {
    Discard(ObjectId),
    Read(ObjectId, Extent),
    Write(ObjectId, Extent),
}

impl Spill {
    /// Opens the directories of a node; `None` if there are none.
    ///
    /// # Errors
    /// `InvalidArgument` with the directory and the problem.
    pub fn open(choice: &SpillChoice) -> Result<Option<SpillSet>, Failure> {
        if choice.folders.is_empty() {
            return Ok(None);
        }
        let place = |f: &SpillFolder| SpillPlace { path: f.path.clone(), quota_bytes: f.quota_bytes };
        let places: Vec<_> = choice.folders.iter().map(place).collect();
        let mut options = SpillOptions::default();
        (options.may_compress, options.bytes_per_s_max) = (choice.may_compress, choice.bytes_per_s_max);
        let set = SpillSet::open(&places, &options)
            .map_err(|error| Failure::new(FailureKind::InvalidArgument, error.to_string()))?;
        Ok(Some(set))
    }

    /// Works on opened directories; threads start when there is work.
    #[must_use]
    pub fn new(set: SpillSet, node: NodeId, arena: &Arc<Arena>, inbox: &Arc<Inbox>) -> Self {
        let shared = Shared {
            set,
            node,
            arena: Arc::clone(arena),
            inbox: Arc::clone(inbox),
            queue: Mutex::default(),
            work: Condvar::new(),
            stopping: AtomicBool::new(false),
            is_loose: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// Bytes that its directories may use.
    #[must_use]
    pub fn quota_bytes(&self) -> u64 {
        self.shared.set.quota_bytes()
    }

    /// Writes an object to disk.
    pub fn write(&self, object: ObjectId, extent: Extent) {
        self.put(Job::Write(object, extent));
    }

    /// Reads an object from disk into a range of the arena.
    pub fn read(&self, object: ObjectId, into: Extent) {
        self.put(Job::Read(object, into));
    }

    /// Removes an object from disk.
    pub fn discard(&self, object: ObjectId) {
        self.put(Job::Discard(object));
    }

    /// Reads an object piece by piece, for another node.
    #[must_use]
    pub fn reader(&self, object: ObjectId, len: u64) -> Box<dyn ReadAt> {
        Box::new(Reader { shared: Arc::clone(&self.shared), object, len })
    }

    /// Ends the threads; jobs that have not begun are dropped.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.work.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _joined = thread.join();
        }
    }

    fn put(&self, job: Job) {
        let mut queue = lock(&self.shared.queue);
        match job {
            Job::Read(object, into) => queue.reads.push_back((object, into)),
            Job::Discard(object) => {
                queue.discarding.insert(object);
                queue.others.push_back(job);
            }
            Job::Write(..) => queue.others.push_back(job),
        }
        let needs_thread = queue.idle_count < queue.len() && queue.thread_count < THREADS_MAX;
        queue.thread_count += usize::from(needs_thread);
        drop(queue);
        self.shared.work.notify_one();
        if needs_thread {
            self.start_thread();
        }
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        match std::thread::Builder::new().name("spill".into()).spawn(move || shared.run()) {
            Ok(thread) => {
                let mut threads = lock(&self.threads);
                threads.retain(|t| !t.is_finished());
                threads.push(thread);
            }
            Err(cause) => self.shared.thread_refused(&cause),
        }
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.reads.len() + self.others.len()
    }

    fn pop(&mut self) -> Option<Job> {
        if let Some((object, into)) = self.reads.pop_front() {
            return Some(Job::Read(object, into));
        }
        let waits = |job: &Job| matches!(job, Job::Write(object, _) if self.discarding.contains(object));
        let at = self.others.iter().position(|job| !waits(job))?;
        self.others.remove(at)
    }
}

impl Shared {
    fn run(&self) {
        while let Some(job) = self.next_job() {
            match job {
                Job::Discard(object) => self.discard(object),
                Job::Read(object, into) => self.read(object, into),
                Job::Write(object, extent) => self.write(object, extent),
            }
        }
    }

    /// The next job; none after a while without jobs. When all threads are idle, one of them compacts the
    /// directories.
    fn next_job(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if self.stopping.load(Ordering::Acquire) {
                break;
            }
            if let Some(job) = queue.pop() {
                return Some(job);
            }
            let is_loose = self.is_loose.load(Ordering::Relaxed);
            let wait = if is_loose { TIDY_AFTER } else { IDLE_MAX };
            queue.idle_count += 1;
            let (back, waited) = self.work.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner);
            queue = back;
            let is_quiet = waited.timed_out() && queue.len() == 0;
            let is_alone = queue.idle_count == queue.thread_count;
            queue.idle_count -= 1;
            if is_quiet && is_loose && is_alone && self.is_loose.swap(false, Ordering::Relaxed) {
                drop(queue);
                self.compact();
                queue = lock(&self.queue);
            } else if is_quiet && !is_loose {
                break;
            }
        }
        queue.thread_count -= 1;
        None
    }

    fn discard(&self, object: ObjectId) {
        self.set.remove(&object.to_bytes());
        self.is_loose.store(true, Ordering::Relaxed);
        lock(&self.queue).discarding.remove(&object);
    }

    fn compact(&self) {
        if let Err(error) = self.set.compact(COMPACTED_BYTES_MAX) {
            tracing::warn!(%error, "a spill directory cannot be compacted");
        }
    }

    fn write(&self, object: ObjectId, extent: Extent) {
        let started = Instant::now();
        let slice = self.arena.map().slice(extent.offset, extent.len).map_err(|e| e.to_string());
        let written = slice.and_then(|bytes| {
            self.set.write(&object.to_bytes(), &[&bytes]).map_err(|error| error.to_string())
        });
        let refusal = written.err();
        if let Some(cause) = &refusal {
            tracing::warn!(%object, cause, "an object cannot be spilled and stays in memory");
        }
        let write_ns = started.elapsed().as_nanos() as u64;
        self.inbox.put(Input::Event(Event::Spilled { object, refusal, write_ns }));
    }

    fn read(&self, object: ObjectId, into: Extent) {
        let pages = self.arena.map().make_pages(into.offset, into.len);
        let event = match pages.is_ok().then(|| self.read_into(object, into)) {
            None => {
                let cause = pages.err().map(|error| error.to_string()).unwrap_or_default();
                tracing::warn!(%object, cause, "no memory to read a spilled object into");
                Event::PullRefused { object, cause }
            }
            Some(Ok(())) => Event::PullDone { object },
            Some(Err(cause)) => {
                tracing::warn!(%object, cause, "a spilled object cannot be read back");
                Event::PullFailed { object, from: self.node, done_bytes: 0, cause }
            }
        };
        self.inbox.put(Input::Event(event));
    }

    fn read_into(&self, object: ObjectId, into: Extent) -> Result<(), String> {
        let map = self.arena.map();
        let mut slot = map.write(into.offset, into.len).map_err(|e| e.to_string())?;
        self.read_range(object, 0, &mut slot).map_err(|e| e.to_string())
    }

    fn read_range(&self, object: ObjectId, offset: u64, target: &mut [u8]) -> Result<(), SpillError> {
        let mut tries = 1;
        loop {
            match self.set.read_into(&object.to_bytes(), offset, target) {
                Err(error) if !error.is_lost() && tries < READ_TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// A thread could not be started: if there are no others, all queued jobs fail.
    fn thread_refused(&self, cause: &io::Error) {
        let mut queue = lock(&self.queue);
        queue.thread_count -= 1;
        if queue.thread_count > 0 {
            return;
        }
        let cause = format!("no thread for the disk: {cause}");
        while let Some(job) = queue.pop() {
            let event = match job {
                Job::Discard(object) => {
                    queue.discarding.remove(&object);
                    continue;
                }
                Job::Read(object, _) => Event::PullRefused { object, cause: cause.clone() },
                Job::Write(object, _) => Event::Spilled { object, refusal: Some(cause.clone()), write_ns: 0 },
            };
            self.inbox.put(Input::Event(event));
        }
    }
}

/// A spilled object that another node reads.
struct Reader {
    shared: Arc<Shared>,
    object: ObjectId,
    len: u64,
}

impl ReadAt for Reader {
    fn total_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        let read = self.shared.read_range(self.object, offset, target);
        // The same as of a copy that cannot be read back here.
        if let Err(cause) = &read {
            tracing::warn!(object = %self.object, %cause, "a spilled object cannot be read for another node");
            self.shared.inbox.put(Input::Event(Event::CopyLost { object: self.object }));
        }
        read.map_err(io::Error::other)
    }
}
