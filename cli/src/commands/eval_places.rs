//! Worker processes and nodes for programs that ask for them. They are started with the first such program,
//! and kept for programs that ask for the same.

use std::sync::{Mutex, PoisonError};
use tharsis::tensor::{Executor, RemoteExecutor};
use tharsis::{LocalCluster, Runtime};
use tharsis_numeric::protocol::{Failure, PlaceRequest, Places};

/// The runtime that was started last.
#[derive(Default)]
pub struct Started(Mutex<Option<Place>>);

/// Size of what a program runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Nodes of a cluster of this machine.
    pub nodes: usize,
    /// Worker processes in all.
    pub workers: usize,
    /// Memory for chunks.
    pub memory_bytes: u64,
}

struct Place {
    size: Size,
    // Dropped first: the driver before the nodes.
    runtime: Runtime,
    _cluster: Option<LocalCluster>,
}

/// Size of a store as a multiple of the memory for chunks: the rest is for regions of clients and copies in
/// transfer.
const STORE_SHARES: u64 = 2;
/// A store below this has no room for the regions of its clients.
const STORE_BYTES_MIN: u64 = 64 << 20;

impl Started {
    /// Something made on the runtime of a size, which is started unless it runs already.
    ///
    /// # Errors
    /// If the runtime does not start.
    pub fn on<T>(&self, size: Size, make: impl FnOnce(&Runtime) -> T) -> tharsis::Result<T> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match started.take().filter(|place| place.size == size) {
            Some(place) => place,
            None => Place::start(size)?,
        };
        let made = make(&place.runtime);
        *started = Some(place);
        Ok(made)
    }
}

impl Places for Started {
    fn executor(&self, request: &PlaceRequest) -> Result<Box<dyn Executor>, Failure> {
        let PlaceRequest { nodes, workers, memory_bytes, .. } = *request;
        let executor = self.on(Size { nodes, workers, memory_bytes }, RemoteExecutor::new);
        let executor = executor
            .map_err(|error| Failure { class: "RuntimeError".to_owned(), message: error.to_string() })?
            .memory_bytes(memory_bytes);
        Ok(match request.deadline {
            Some(deadline) => Box::new(executor.until(deadline)),
            None => Box::new(executor),
        })
    }
}

impl Place {
    fn start(size: Size) -> tharsis::Result<Place> {
        let Size { nodes, workers, memory_bytes } = size;
        let store_bytes = memory_bytes.saturating_mul(STORE_SHARES).max(STORE_BYTES_MIN);
        let cpus = workers as f64;
        if nodes == 1 {
            let init = tharsis::init().num_cpus(cpus).workers(workers).store_bytes(store_bytes);
            return Ok(Place { size, runtime: init.start_local()?, _cluster: None });
        }
        let cluster = LocalCluster::start(nodes, cpus, store_bytes / nodes as u64)?;
        let socket = cluster.socket(0).map(|socket| socket.display().to_string());
        let runtime = tharsis::init().address(socket.unwrap_or_default()).start()?;
        Ok(Place { size, runtime, _cluster: Some(cluster) })
    }
}
