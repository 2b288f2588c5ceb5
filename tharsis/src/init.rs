//! `init()`: what a program wants to run on.

use std::path::PathBuf;
use std::time::Duration;
use tharsis_raylet::SpillChoice;
use tharsis_types::limits::{JOB_WEIGHT_MAX, NAME_BYTES_MAX};
use tharsis_types::resources::{check_name, cpu_units, units};
use tharsis_types::{BadResource, Resources};

/// Settings of a program's runtime; made by [`init`], used by [`Init::start`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Init {
    pub(crate) address: Option<String>,
    pub(crate) cpu_units: Option<u64>,
    pub(crate) gpu_units: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) custom: Vec<(String, u64)>,
    pub(crate) store_bytes: Option<u64>,
    pub(crate) spill: Option<SpillChoice>,
    pub(crate) spill_dirs: Vec<PathBuf>,
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) lineage_bytes: Option<usize>,
    pub(crate) queued_tasks_max: Option<usize>,
    pub(crate) worker_start_timeout: Option<Duration>,
    pub(crate) namespace: Option<String>,
    pub(crate) job_name: Option<String>,
    pub(crate) job_weight: Option<u32>,
    pub(crate) worker_count: Option<usize>,
    pub(crate) scratch: Option<PathBuf>,
    /// The first thing that was wrong.
    pub(crate) problem: Option<String>,
}

/// Prepares a runtime: embedded in this process unless [`Init::address`] says otherwise.
///
/// ```no_run
/// let runtime = tharsis::init().num_cpus(2.0).store_bytes(1 << 30).start()?;
/// # Ok::<(), tharsis::Error>(())
/// ```
#[must_use = "nothing starts before `start` is called"]
pub fn init() -> Init {
    Init::default()
}

impl Init {
    /// Uses the node or cluster at this address instead of running embedded: `HOST:PORT`, the path of a
    /// node's socket, or `auto` for the node that runs on this machine.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// CPUs of the embedded node; by default those of the machine.
    pub fn num_cpus(mut self, cpus: f64) -> Self {
        self.cpu_units = self.checked(cpu_units("num_cpus", cpus));
        self
    }

    /// GPUs of the embedded node, 0 by default.
    pub fn num_gpus(mut self, gpus: f64) -> Self {
        self.gpu_units = self.units("num_gpus", gpus);
        self
    }

    /// Memory in bytes that tasks may ask for; by default what the memory limit leaves beside the store.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// An amount of a custom resource of the embedded node. Call it once for each.
    pub fn resource(mut self, name: &str, amount: f64) -> Self {
        if let Err(bad) = check_name(name) {
            self.problem.get_or_insert(bad.to_string());
        } else if let Some(units) = self.units(name, amount) {
            self.custom.push((name.to_owned(), units));
        }
        self
    }

    /// Bytes of the embedded node's object store; by default a share of the machine's memory.
    pub fn store_bytes(mut self, bytes: u64) -> Self {
        self.store_bytes = Some(bytes);
        self
    }

    /// Directory where the node spills objects that its store has no room for; a folder of this user on the
    /// machine's disk if nothing is said.
    #[must_use]
    pub fn spill(mut self, spill: SpillChoice) -> Self {
        self.spill = Some(spill);
        self
    }

    /// A directory that the node spills objects to when its store has no room for them: up to four fifths of
    /// what is free there. Call it once for each; [`Init::spill`] says more.
    pub fn spill_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spill_dirs.push(directory.into());
        self
    }

    /// Bytes that the node and its workers may use, the object store included; by default most of the
    /// machine's memory.
    ///
    /// When they are used up, the node ends workers before the kernel ends anything: the newest task that
    /// has retries first, which then runs again without using them up. Of effect with [`Init::workers`] only:
    /// tasks in threads of the program cannot be ended without it.
    pub fn memory_limit_bytes(mut self, bytes: u64) -> Self {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// Bytes that the node may keep of how finished tasks were called, so that a value that is lost can be
    /// made again; 256 MiB if nothing is said. Above them the oldest are forgotten. With 0 nothing is made
    /// again.
    #[must_use]
    pub fn lineage_bytes(mut self, bytes: usize) -> Self {
        self.lineage_bytes = Some(bytes);
        self
    }

    /// Unfinished tasks that the program may have at the node; 8 million if nothing is said. Beyond them
    /// `remote` waits until there are fewer, and with it whatever the program says after it, a `cancel` too.
    /// Calls that tasks make are not counted: whoever they wait for may be behind them.
    #[must_use]
    pub fn queued_tasks_max(mut self, tasks: usize) -> Self {
        self.queued_tasks_max = Some(tasks.max(1));
        self
    }

    /// The longest time that a worker process may take from its start until it connects; 30 s if nothing is
    /// said. It is killed then, and the task that it was started for has failed an attempt. Of effect with
    /// [`Init::workers`] only.
    #[must_use]
    pub fn worker_start_timeout(mut self, timeout: Duration) -> Self {
        self.worker_start_timeout = Some(timeout);
        self
    }

    /// The namespace that names are looked up in.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        self.check_length("namespace", &namespace);
        self.namespace = Some(namespace);
        self
    }

    /// Share of a node that the job gets where others want it too, from 1 to 10 000; 100 if nothing is said.
    /// Jobs share each node in proportion to their weights: beside one of 100, a job of 300 has three
    /// quarters of it. What a job leaves unused others may have; a task that runs is never stopped for it.
    pub fn job_weight(mut self, weight: u32) -> Self {
        if !(1..=JOB_WEIGHT_MAX).contains(&weight) {
            self.problem.get_or_insert(format!("job_weight {weight}: it must be from 1 to {JOB_WEIGHT_MAX}"));
        }
        self.job_weight = Some(weight);
        self
    }

    /// A name of the job, for people.
    pub fn job_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.check_length("job_name", &name);
        self.job_name = Some(name);
        self
    }

    /// Runs tasks in this many worker processes instead of threads of this process. The program's `main` must
    /// carry `#[tharsis::main]`.
    pub fn workers(mut self, process_count: usize) -> Self {
        self.worker_count = Some(process_count);
        self
    }

    /// The folder for sockets and logs; by default one of the user's own.
    pub fn scratch(mut self, folder: impl Into<PathBuf>) -> Self {
        self.scratch = Some(folder.into());
        self
    }

    /// Options of the embedded node, where the machine has `cpus` and tasks may ask for `memory_bytes`.
    pub(crate) fn resources(&self, cpus: usize, memory_bytes: u64) -> Resources {
        Resources {
            cpu: self.cpu_units.unwrap_or(cpus as u64 * Resources::UNIT),
            gpu: self.gpu_units.unwrap_or(0),
            memory: self.memory_bytes.unwrap_or(memory_bytes),
            custom: self.custom.iter().cloned().collect(),
        }
    }

    fn units(&mut self, name: &str, amount: f64) -> Option<u64> {
        self.checked(units(name, amount))
    }

    fn checked(&mut self, units: std::result::Result<u64, BadResource>) -> Option<u64> {
        match units {
            Ok(units) => Some(units),
            Err(bad) => {
                self.problem.get_or_insert(bad.to_string());
                None
            }
        }
    }

    fn check_length(&mut self, what: &str, name: &str) {
        let len = name.len();
        if len > NAME_BYTES_MAX {
            self.problem.get_or_insert(format!("{what} has {len} bytes, allowed are {NAME_BYTES_MAX}"));
        }
    }
}
