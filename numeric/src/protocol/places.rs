//! Executors of programs that ask for more than threads of this process.

use super::Failure;
use std::time::Instant;
use tharsis_graph::Executor;

/// The place that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct PlaceRequest {
    /// One node with worker processes, or a number of nodes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    pub memory_bytes: u64,
    /// After this no task is to start.
    pub deadline: Option<Instant>,
}

/// Whoever has worker processes and nodes.
pub trait Places: Sync {
    /// An executor on worker processes.
    ///
    /// # Errors
    /// `NotImplemented` where there are none.
    fn executor(&self, request: &PlaceRequest) -> Result<Box<dyn Executor>, Failure>;
}

/// This process alone: all that this crate knows of.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Places for Here {
    fn executor(&self, _: &PlaceRequest) -> Result<Box<dyn Executor>, Failure> {
        Err(Failure::missing("worker processes are not implemented here: tharsis eval has them"))
    }
}
