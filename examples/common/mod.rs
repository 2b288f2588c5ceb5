//! Common parts of the tensor examples: executors, and the memory that they take.
//!
//! Options: `--size N`, `--workers N` (worker processes instead of threads), `--nodes N` (so many nodes on
//! this machine, a CPU each), `--address auto` (the node that runs on this machine), `--memory BYTES`,
//! `--explain` (print the plan before and after).

// They talk to people.
#![allow(clippy::print_stdout)]

mod processes;

use std::sync::atomic::{AtomicU64, Ordering};
use tharsis::tensor::{Computation, Computed, RemoteExecutor, Tensor};
use tharsis::{LocalCluster, Runtime, init};

/// Result of an example.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Options of the command line.
pub struct Options {
    /// Amount of work.
    pub size: usize,
    /// Memory for it, if that was said.
    pub memory_bytes: Option<u64>,
    /// Whether to show the plan.
    pub explain: bool,
    workers: Option<usize>,
    nodes: usize,
    address: Option<String>,
}

/// Executor of tensors, for as long as it lives.
pub struct Place {
    /// Executor of the plans.
    pub executor: RemoteExecutor,
    // Dropped first: the driver before the nodes.
    _runtime: Runtime,
    _cluster: Option<LocalCluster>,
}

/// Bytes of the store of each node of `--nodes`.
const STORE_BYTES: u64 = 1 << 30;

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// Fault of the option.
    pub fn from_args(size: usize) -> Outcome<Options> {
        Options::parse(std::env::args().skip(1), size)
    }

    /// Reads arguments, where an example has options of its own beside these.
    ///
    /// # Errors
    /// Fault of the option.
    pub fn parse(args: impl IntoIterator<Item = String>, size: usize) -> Outcome<Options> {
        let mut options =
            Options { size, memory_bytes: None, explain: false, workers: None, nodes: 0, address: None };
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            if flag == "--explain" {
                options.explain = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--size" => options.size = value.parse::<f64>()? as usize,
                "--memory" => options.memory_bytes = Some(value.parse::<f64>()? as u64),
                "--workers" => options.workers = Some(value.parse()?),
                "--nodes" => options.nodes = value.parse()?,
                "--address" => options.address = Some(value),
                _ => return Err(format!("unknown option {flag}").into()),
            }
        }
        Ok(options)
    }

    /// Whether workers are processes, which may end by themselves.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        self.workers.is_some() || self.nodes > 0 || self.address.is_some()
    }

    /// Starts what was asked for; the rest of an example is the same everywhere.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn start(&self) -> Outcome<Place> {
        let cluster = self.cluster()?;
        let address = match &cluster {
            Some(cluster) => cluster.socket(0).map(|socket| socket.display().to_string()),
            None => self.address.clone(),
        };
        let init = match self.workers {
            Some(count) => init().workers(count),
            None => init(),
        };
        let runtime = match address {
            Some(address) => init.address(address).start()?,
            None => init.start()?,
        };
        let executor = RemoteExecutor::new(&runtime);
        let executor = match self.memory_bytes {
            Some(bytes) => executor.memory_bytes(bytes),
            None => executor,
        };
        Ok(Place { executor, _runtime: runtime, _cluster: cluster })
    }

    fn cluster(&self) -> Outcome<Option<LocalCluster>> {
        if self.nodes == 0 {
            return Ok(None);
        }
        Ok(Some(LocalCluster::start(self.nodes, 1.0, STORE_BYTES)?))
    }

    /// Computes a tensor of one element with a progress bar; prints plan, time and memory beside it.
    ///
    /// # Errors
    /// Why it cannot be computed.
    pub fn compute(&self, place: &Place, tensor: &Tensor, label: &str) -> Outcome<f64> {
        let memory = AtomicU64::new(0);
        let sample = |_, _| {
            memory.fetch_max(memory_bytes(), Ordering::Relaxed);
        };
        let tensors = [tensor];
        let computation = Computation::of(&tensors).on(&place.executor).bar(label).watched(sample);
        let Computed { tensors, metrics, explanation, .. } = computation.run()?;
        if self.explain {
            println!("{explanation}\n");
        }
        let mib = memory.into_inner() >> 20;
        println!("seconds       {:.3}", metrics.elapsed.as_secs_f64());
        println!(
            "peak memory   {mib} MiB in all processes; chunks at most {} MiB",
            metrics.bound_bytes >> 20
        );
        let value = tensors.first().ok_or("no result")?.item()?;
        Ok(value.to_f64())
    }
}

/// Memory of this process and of all that it started: their own pages, and their shares of those they share.
fn memory_bytes() -> u64 {
    processes::family().into_iter().filter_map(|pid| processes::bytes_of(pid, "smaps_rollup", "Pss")).sum()
}
