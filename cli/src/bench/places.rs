//! The places where tasks of tensors and frames run: threads, or remote tasks; and the memory that all their
//! processes take.

use super::memory;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tharsis::tensor::{Executor, LocalExecutor, RemoteExecutor};
use tharsis::{LocalCluster, Runtime};

/// Executor of the tasks of a tensor or a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Threads of this process.
    #[default]
    Threads,
    /// Remote tasks on an embedded runtime.
    Embedded,
    /// Remote tasks on two nodes of a cluster on this machine, which share its CPUs and the memory.
    Nodes,
    /// Remote tasks on worker processes.
    Workers,
}

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

/// Interval at which memory is read if the system keeps no maximum.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Reading walks all page tables and delays threads that make pages meanwhile, so it takes at most this part
/// of the time, as a divisor.
const LOOK_SHARE: u32 = 20;

impl Place {
    /// Suffix to the name of a bench.
    pub fn suffix(self) -> &'static str {
        match self {
            Place::Threads => "",
            Place::Embedded => " --on embedded",
            Place::Nodes => " --on nodes",
            Place::Workers => " --on workers",
        }
    }

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

/// Runs `f`, whose tasks run at this place, and returns the peak of memory of all processes.
pub fn peak_bytes<T>(place: Place, f: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    crate::allocator::give_back();
    if place == Place::Threads {
        memory::reset_peak()?;
        let value = f()?;
        return Ok((value, memory::peak_bytes()?));
    }
    let (most, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let value = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                most.fetch_max(family_bytes(), Ordering::Relaxed);
                std::thread::sleep(LOOK_EVERY.max(LOOK_SHARE * begun.elapsed()));
            }
        });
        let value = f();
        is_done.store(true, Ordering::Relaxed);
        value
    })?;
    Ok((value, most.into_inner()))
}

/// Memory of this process and its descendants, with shared pages counted once.
pub fn family_bytes() -> u64 {
    let all = memory::family(std::process::id());
    // A process that has ended meanwhile counts as zero.
    all.into_iter().filter_map(|pid| memory::pss_bytes(pid).ok()).sum()
}
