//! Threads of an executor on this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Handle, Runtime};

/// The threads of an executor, which may outlive it.
#[derive(Debug)]
pub(super) struct Threads {
    pub(super) count: usize,
    pub(super) counts: Arc<Counts>,
    runtime: Option<Runtime>,
}

/// Counts of threads that can be read after these were let go.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Threads that have not ended.
    alive: AtomicUsize,
    /// Tasks at the moment when the threads were let go.
    tasks: AtomicUsize,
}

impl Threads {
    pub(super) fn new(count: usize) -> std::io::Result<Threads> {
        let counts = Arc::new(Counts::default());
        let (started, ended) = (Arc::clone(&counts), Arc::clone(&counts));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(count).thread_name("tharsis-frame").enable_all();
        builder.on_thread_start(move || {
            started.alive.fetch_add(1, Ordering::Relaxed);
        });
        builder.on_thread_stop(move || {
            ended.alive.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(Threads { count, counts, runtime: Some(builder.build()?) })
    }

    /// The place where tasks are started; `None` while the threads are let go.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// Number of tasks that have not ended.
    pub(super) fn tasks(&self) -> usize {
        self.handle().map_or(0, |handle| handle.metrics().num_alive_tasks())
    }
}

impl Counts {
    /// Number of tasks that have not ended since the threads were let go: each has one of those that are
    /// left.
    pub(super) fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Acquire).min(self.alive())
    }

    /// Number of threads that have not ended.
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.counts.tasks.store(self.tasks(), Ordering::Release);
        if let Some(runtime) = self.runtime.take() {
            // This may be a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}
