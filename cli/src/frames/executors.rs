//! Executors of programs over frames, on the runtimes that programs over tensors use too.

use crate::commands::{Size, Started};
use std::sync::Arc;
use tharsis::frame;
use tharsis_frame_programs::{Failure, PlaceRequest, Places};

impl Places for Started {
    fn executor(&self, request: &PlaceRequest) -> Result<Arc<dyn frame::Executor>, Failure> {
        let PlaceRequest { nodes, workers, memory_bytes, deadline } = *request;
        let executor = self.on(Size { nodes, workers, memory_bytes }, frame::RemoteExecutor::new);
        let executor = executor
            .map_err(|error| Failure { class: "RuntimeError".to_owned(), message: error.to_string() })?
            .memory_bytes(memory_bytes);
        Ok(match deadline {
            Some(deadline) => Arc::new(executor.until(deadline)),
            None => Arc::new(executor),
        })
    }
}
