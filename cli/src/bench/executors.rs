//! Executors of tensors at the places of a bench.

use super::places::{Place, peak_bytes};
use anyhow::{Context, Result};
use tharsis::tensor::{Executor, LocalExecutor, RemoteExecutor};
use tharsis::{LocalCluster, Runtime};

/// Number of nodes of a cluster on this machine.
pub const NODES: usize = 2;

/// An executor with its runtime.
pub struct Started {
    pub executor: Box<dyn Executor>,
    place: Place,
    // Dropped first: the driver before the nodes.
    _runtime: Option<Runtime>,
    _cluster: Option<LocalCluster>,
}

impl Place {
    /// Starts it with a number of threads or workers, and bytes of memory for chunks.
    pub fn start(self, threads: usize, memory_bytes: u64) -> Result<Started> {
        let init = || tharsis::init().num_cpus(threads as f64).store_bytes(2 * memory_bytes);
        let mut cluster = None;
        let runtime = match self {
            Place::Threads => None,
            Place::Embedded => Some(init().start_local()?),
            Place::Nodes => {
                let node_bytes = 2 * memory_bytes / NODES as u64;
                let cpus = threads as f64 / NODES as f64;
                Some(driver(cluster.insert(LocalCluster::start(NODES, cpus, node_bytes)?))?)
            }
            Place::Workers => Some(init().workers(threads).start_local()?),
        };
        let executor: Box<dyn Executor> = match &runtime {
            None => Box::new(LocalExecutor::sized(threads, memory_bytes)),
            Some(runtime) => Box::new(RemoteExecutor::new(runtime).memory_bytes(memory_bytes)),
        };
        Ok(Started { executor, place: self, _runtime: runtime, _cluster: cluster })
    }
}

/// A driver of the first node of a cluster.
pub fn driver(cluster: &LocalCluster) -> Result<Runtime> {
    let socket = cluster.socket(0).context("a cluster without nodes")?;
    Ok(tharsis::init().address(socket.display().to_string()).start()?)
}

impl Started {
    /// Runs `f` and returns the peak of memory of all processes.
    pub fn peak_bytes<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
        peak_bytes(self.place, f)
    }
}
