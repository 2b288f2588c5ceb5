//! State that several threads of a node must agree on: places on the board, client ids, jobs.

use crate::executable::Executable;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tharsis_protos::handshake::FunctionEntry;
use tharsis_types::limits::CLIENTS_MAX;
use tharsis_types::{ClientId, JobId};

/// Places on the board, client ids and jobs of one node.
pub struct Registry {
    next_client: AtomicU32,
    next_job: AtomicU32,
    indexes: Mutex<Indexes>,
    jobs: Mutex<HashMap<JobId, Job>>,
}

/// A job that has workers here.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its program.
    pub executable: Executable,
    /// Its name; may be empty.
    pub name: String,
    /// Namespace of its names.
    pub namespace: String,
    /// Functions of the program.
    pub functions: Vec<FunctionEntry>,
}

struct Indexes {
    next: usize,
    free: Vec<usize>,
}

impl Registry {
    /// An empty registry. Client 0 is reserved for transfers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next_client: AtomicU32::new(1),
            next_job: AtomicU32::new(1),
            indexes: Mutex::new(Indexes { next: 0, free: Vec::new() }),
            jobs: Mutex::new(HashMap::new()),
        }
    }

    /// A client id that was never used.
    pub fn new_client(&self) -> ClientId {
        ClientId(self.next_client.fetch_add(1, Ordering::Relaxed))
    }

    /// A job id that this node has not used; for nodes without a control store.
    pub fn new_job(&self) -> JobId {
        JobId(self.next_job.fetch_add(1, Ordering::Relaxed))
    }

    /// A free place on the board, if there is one.
    pub fn take_index(&self) -> Option<usize> {
        let mut indexes = lock(&self.indexes);
        indexes.free.pop().or_else(|| {
            let next = indexes.next;
            (next < CLIENTS_MAX).then(|| {
                indexes.next += 1;
                next
            })
        })
    }

    /// Gives a place back.
    pub fn release_index(&self, index: usize) {
        lock(&self.indexes).free.push(index);
    }

    /// Notes a job, with its program and its functions.
    pub fn add_job(&self, id: JobId, job: Job) {
        lock(&self.jobs).insert(id, job);
    }

    /// A job, if its program is on this node.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<Job> {
        lock(&self.jobs).get(&id).cloned()
    }

    /// Forgets a job that has ended; whether its driver was connected to this node.
    pub fn remove_job(&self, id: JobId) -> bool {
        lock(&self.jobs).remove(&id).is_some()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock: the data is plain and still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
