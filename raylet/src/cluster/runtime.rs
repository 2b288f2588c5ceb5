//! The runtime of a node on which asynchronous things happen, and how other threads use it.
//!
//! Links, the control store and its clients need little time: one thread is enough unless a node says
//! otherwise (`network_threads`), and a node without a cluster has none.

use std::future::Future;
use std::sync::mpsc::sync_channel;
use tharsis_types::{Failure, FailureKind};
use tokio::runtime::Handle;

/// Starts tasks from any thread.
#[derive(Clone)]
pub struct Tasks(Handle);

impl Tasks {
    /// Of the runtime that is running this.
    #[must_use]
    pub fn current() -> Self {
        Self(Handle::current())
    }

    /// Starts a task that nobody waits for; it ends with the runtime at the latest.
    pub fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        let _ends_by_itself = self.0.spawn(task);
    }

    /// Starts work that takes long, on a thread of its own. The threads of the runtime are for names.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start_blocking(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let _ends_by_itself = std::thread::Builder::new().name("network-work".into()).spawn(work)?;
        Ok(())
    }

    /// Runs a task and waits for its answer. Not for the runtime's own thread.
    ///
    /// # Errors
    /// `Shutdown` if the runtime ends first.
    pub fn ask<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, answer) = sync_channel(1);
        self.start(async move {
            let _gone = reply.send(task.await);
        });
        answer.recv().map_err(|_| Failure::new(FailureKind::Shutdown, "the node stops"))
    }
}
