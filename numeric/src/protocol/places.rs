//! Executors for programs that ask for worker processes or nodes.

use super::Failure;
use std::time::Instant;
use tharsis_graph::Executor;

/// The place that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct PlaceRequest {
    /// Number of nodes; one is a node with worker processes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    pub memory_bytes: u64,
    /// Time after which no task may start.
    pub deadline: Option<Instant>,
}

/// Source of executors with worker processes and nodes.
pub trait Places: Sync {
    /// An executor on worker processes.
    ///
    /// # Errors
    /// `NotImplemented` if there are none.
    fn executor(&self, request: &PlaceRequest) -> Result<Box<dyn Executor>, Failure>;
}

/// This process alone, without worker processes.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Places for Here {
    fn executor(&self, _: &PlaceRequest) -> Result<Box<dyn Executor>, Failure> {
        Err(Failure::missing("worker processes are not implemented here: tharsis eval has them"))
    }
}
