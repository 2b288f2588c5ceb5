//! `init()`: the settings of a program's runtime.

use std::path::PathBuf;
use std::time::Duration;
use tharsis_raylet::SpillChoice;
use tharsis_types::limits::{JOB_WEIGHT_MAX, NAME_BYTES_MAX};
use tharsis_types::resources::{check_name, cpu_units, units};
use tharsis_types::{BadQuota, BadResource, Quota, Resources};

/// Settings of a program's runtime; made by [`init`], used by [`Init::start`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Init {
    pub(crate) address: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) identity_dir: Option<PathBuf>,
    pub(crate) cpu_units: Option<u64>,
    pub(crate) gpu_units: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) custom: Vec<(String, u64)>,
    pub(crate) store_bytes: Option<u64>,
    pub(crate) spill: Option<SpillChoice>,
    pub(crate) spill_dirs: Vec<PathBuf>,
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) memory_soft_limit_bytes: u64,
    pub(crate) min_free_bytes: u64,
    pub(crate) lineage_bytes: Option<usize>,
    pub(crate) queued_tasks_max: Option<usize>,
    pub(crate) worker_start_timeout: Option<Duration>,
    pub(crate) namespace: Option<String>,
    pub(crate) job_name: Option<String>,
    pub(crate) job_weight: Option<u32>,
    pub(crate) job_quota: Option<Quota>,
    pub(crate) worker_count: Option<usize>,
    pub(crate) scratch: Option<PathBuf>,
    /// The first invalid setting.
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
    /// Uses the node or cluster at this address instead of running embedded: `auto` for the node on this
    /// machine, the path of a node's socket, or `HOST:PORT` of a cluster's head. `auto` is the socket in the
    /// variable `THARSIS_SOCKET` if it is set, as it is for programs that `tharsis job submit` runs.
    ///
    /// With `HOST:PORT` the program joins the cluster from any machine: a node without resources starts
    /// beside it, and ends with it. Other nodes must be able to connect to this machine. The first time it
    /// needs a token.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// The token with which this machine joins the cluster at [`Init::address`] for the first time; by
    /// default the value of the variable `THARSIS_TOKEN`. It is made by `tharsis token create --role driver`
    /// on the head.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The folder with this user's identities in clusters, for [`Init::address`]; by default one in the
    /// user's data folder, the same as that of `tharsis start`.
    pub fn identity_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.identity_dir = Some(folder.into());
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

    /// Memory in bytes that tasks may request; by default the memory limit without the store.
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

    /// Directories to which the node spills objects that its store has no room for; by default a folder of
    /// this user on the machine's disk.
    #[must_use]
    pub fn spill(mut self, spill: SpillChoice) -> Self {
        self.spill = Some(spill);
        self
    }

    /// A directory to which the node spills objects that its store has no room for, up to four fifths of its
    /// free space. Call it once for each; [`Init::spill`] has all options.
    pub fn spill_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spill_dirs.push(directory.into());
        self
    }

    /// Bytes that the node and its workers may use, the object store included; by default most of the
    /// machine's memory.
    ///
    /// When they are used up, the node kills workers before the kernel kills any process: first the worker of
    /// the newest task that has retries. Such a task runs again without using up a retry. This works only
    /// with [`Init::workers`]: tasks in threads of the program cannot be killed alone.
    pub fn memory_limit_bytes(mut self, bytes: u64) -> Self {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// Use of the memory that [`Init::memory_limit_bytes`] bounds from which nothing new is started while
    /// tasks run, since their ends may free memory; 0, the default, for no such limit. After five seconds
    /// something is started nevertheless: a running task may wait for it.
    pub fn memory_soft_limit_bytes(mut self, bytes: u64) -> Self {
        self.memory_soft_limit_bytes = bytes;
        self
    }

    /// Bytes of the machine's memory that are left to others, none by default: the node acts as if the
    /// machine had so much less.
    pub fn min_free_memory_bytes(mut self, bytes: u64) -> Self {
        self.min_free_bytes = bytes;
        self
    }

    /// Bytes of the calls of finished tasks that the node may keep, so that a lost value can be recomputed;
    /// 256 MiB by default. Above this limit the oldest calls are dropped. With 0 no value can be recomputed.
    #[must_use]
    pub fn lineage_bytes(mut self, bytes: usize) -> Self {
        self.lineage_bytes = Some(bytes);
        self
    }

    /// Unfinished tasks that the program may have at the node; 8 million by default. Living actors and
    /// placement groups are among them. Beyond this limit `remote` waits until there are fewer; other threads
    /// go on, to `put` or to `cancel`. Calls that tasks make never wait, as the tasks that they wait for may
    /// be behind them, but they count.
    #[must_use]
    pub fn queued_tasks_max(mut self, tasks: usize) -> Self {
        self.queued_tasks_max = Some(tasks.max(1));
        self
    }

    /// Longest time from the start of a worker process until it connects; 30 s by default. Then it is killed,
    /// and the task that it was started for has failed an attempt. It applies only with [`Init::workers`].
    #[must_use]
    pub fn worker_start_timeout(mut self, timeout: Duration) -> Self {
        self.worker_start_timeout = Some(timeout);
        self
    }

    /// The namespace in which names are looked up.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        self.check_length("namespace", &namespace);
        self.namespace = Some(namespace);
        self
    }

    /// Weight of the job where jobs compete for a node, from 1 to 10 000; 100 by default. Jobs share each
    /// node in proportion to their weights: beside a job of weight 100, one of 300 gets three quarters. Other
    /// jobs may use the unused part of a share; a running task is never stopped for it.
    pub fn job_weight(mut self, weight: u32) -> Self {
        if !(1..=JOB_WEIGHT_MAX).contains(&weight) {
            self.problem.get_or_insert(format!("job_weight {weight}: it must be from 1 to {JOB_WEIGHT_MAX}"));
        }
        self.job_weight = Some(weight);
        self
    }

    /// The most that tasks, actors and placement groups of the job hold at once in the whole cluster, such as
    /// `cpus=4,memory=2GB`; a custom resource goes by its name. What is not named has no bound. Further tasks
    /// wait; one that needs more by itself fails with `Infeasible`.
    ///
    /// If the program was submitted with `tharsis job submit --quota`, both quotas hold.
    pub fn job_quota(mut self, quota: &str) -> Self {
        match quota.parse() {
            Ok(quota) => self.job_quota = Some(quota),
            Err(bad) => drop(self.problem.get_or_insert(BadQuota::to_string(&bad))),
        }
        self
    }

    /// A name of the job, for people; by default that of the program in `tharsis job submit`.
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

    /// Resources of the embedded node, if the machine has `cpus` and tasks may request `memory_bytes`.
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
