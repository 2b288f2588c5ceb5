//! Worker processes and nodes for programs that ask for them. They are started with the first such program,
//! and kept for programs that ask for the same.

use std::sync::{Mutex, PoisonError};
use tharsis::tensor::{Executor, RemoteExecutor};
use tharsis::{LocalCluster, Runtime};
use tharsis_numeric::protocol::{Failure, PlaceRequest, Places};

/// The runtime that was started last.
#[derive(Default)]
pub struct Started(Mutex<Option<Place>>);

struct Place {
    nodes: usize,
    workers: usize,
    memory_bytes: u64,
    // Dropped first: the driver before the nodes.
    runtime: Runtime,
    _cluster: Option<LocalCluster>,
}

/// Size of a store as a multiple of the memory for chunks: the rest is for regions of clients and copies in
/// transfer.
const STORE_SHARES: u64 = 2;
/// A store below this has no room for the regions of its clients.
const STORE_BYTES_MIN: u64 = 64 << 20;

impl Places for Started {
    fn executor(&self, request: &PlaceRequest) -> Result<Box<dyn Executor>, Failure> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match started.take().filter(|place| place.is_for(request)) {
            Some(place) => place,
            None => Place::start(request)
                .map_err(|error| Failure { class: "RuntimeError".to_owned(), message: error.to_string() })?,
        };
        let executor = RemoteExecutor::new(&place.runtime).memory_bytes(request.memory_bytes);
        *started = Some(place);
        Ok(match request.deadline {
            Some(deadline) => Box::new(executor.until(deadline)),
            None => Box::new(executor),
        })
    }
}

impl Place {
    fn is_for(&self, request: &PlaceRequest) -> bool {
        (self.nodes, self.workers, self.memory_bytes)
            == (request.nodes, request.workers, request.memory_bytes)
    }

    fn start(request: &PlaceRequest) -> tharsis::Result<Place> {
        let PlaceRequest { nodes, workers, memory_bytes, .. } = *request;
        let store_bytes = memory_bytes.saturating_mul(STORE_SHARES).max(STORE_BYTES_MIN);
        let cpus = workers as f64;
        if nodes == 1 {
            let init = tharsis::init().num_cpus(cpus).workers(workers).store_bytes(store_bytes);
            return Ok(Place { nodes, workers, memory_bytes, runtime: init.start_local()?, _cluster: None });
        }
        let cluster = LocalCluster::start(nodes, cpus, store_bytes / nodes as u64)?;
        let socket = cluster.socket(0).map(|socket| socket.display().to_string());
        let runtime = tharsis::init().address(socket.unwrap_or_default()).start()?;
        Ok(Place { nodes, workers, memory_bytes, runtime, _cluster: Some(cluster) })
    }
}
