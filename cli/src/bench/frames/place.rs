//! Executors of benches over frames: threads, or remote tasks.

use crate::bench::bounded::Folder;
use crate::bench::executors::{NODES, driver};
use crate::bench::places::peak_bytes;
use crate::bench::{Options, Place};
use anyhow::Result;
use procfs::Current;
use std::path::Path;
use tharsis::frame::{Executor, LocalExecutor, RemoteExecutor};
use tharsis::{LocalCluster, LocalNode, Resources, Runtime, SpillChoice, SpillFolder};

/// An executor with its runtime, and the limits that were asked for.
pub struct Setup {
    executor: Box<dyn Executor>,
    place: Place,
    threads: usize,
    memory_bytes: u64,
    // Dropped first: the driver before the nodes.
    _runtime: Option<Runtime>,
    _cluster: Option<LocalCluster>,
    /// The folder that the store spills to; removed after the runtime has ended.
    folder: Folder,
}

impl Setup {
    /// Starts the executor that the options name, with a thread or worker for each CPU. Of the memory, half
    /// is for operators and half for the store, which may spill this many bytes; threads share all of it.
    pub fn start(options: &Options, spilled_bytes: u64) -> Result<Setup> {
        let threads = std::thread::available_parallelism()?.get();
        let memory_bytes = match options.memory {
            Some(bytes) => bytes,
            None => procfs::Meminfo::current()?.mem_total / 2,
        };
        let folder = Folder::new(spilled_bytes)?;
        let init = || {
            let init = tharsis::init().num_cpus(threads as f64).store_bytes(memory_bytes / 2);
            init.spill(folder.spill())
        };
        let mut cluster = None;
        let runtime = match options.on {
            Place::Threads => None,
            Place::Embedded => Some(init().start_local()?),
            Place::Nodes => Some(driver(cluster.insert(nodes(threads, memory_bytes / 2, folder.path())?))?),
            Place::Workers => Some(init().workers(threads).start_local()?),
        };
        let executor: Box<dyn Executor> = match &runtime {
            None => Box::new(LocalExecutor::sized(threads, memory_bytes)),
            Some(runtime) => Box::new(RemoteExecutor::new(runtime).memory_bytes(memory_bytes / 2)),
        };
        Ok(Setup {
            executor,
            place: options.on,
            threads,
            memory_bytes,
            _runtime: runtime,
            _cluster: cluster,
            folder,
        })
    }

    /// The executor of the tasks.
    pub fn executor(&self) -> &dyn Executor {
        &*self.executor
    }

    /// The number of threads, or of workers.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Memory for operators and rows together.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The folder to which the store spills.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `f`; gives the peak of memory of all processes beside its result.
    pub fn peak_bytes<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
        peak_bytes(self.place, f)
    }
}

/// Nodes that share CPUs and bytes of store, each with a folder of its own to spill to.
fn nodes(threads: usize, store_bytes: u64, folder: &Path) -> Result<LocalCluster> {
    let resources = Resources::cpus(threads as f64 / NODES as f64)?;
    let node = |number: usize| {
        let spill = SpillFolder { path: folder.join(format!("spill-{number}")), quota_bytes: u64::MAX };
        LocalNode {
            resources: resources.clone(),
            labels: Vec::new(),
            store_bytes: store_bytes / NODES as u64,
            spill: SpillChoice { folders: vec![spill], ..SpillChoice::default() },
        }
    };
    Ok(LocalCluster::start_nodes((0..NODES).map(node).collect())?)
}
