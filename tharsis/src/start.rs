//! From an [`Init`] to a running job: embedded, on a new node with worker processes, or on a running node.

use crate::init::Init;
use crate::part::{ProgramPlace, Restartable, check_may_start, restartable};
use crate::process::NodeProcess;
use crate::runtime::{Guest, Runtime, Started};
use crate::{embedded, join, machine, observe, spill_dirs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tharsis_protos::handshake::{Question, Role};
use tharsis_protos::submission::{NAME_VARIABLE, QUOTA_VARIABLE};
use tharsis_raylet::{NodeOptions, SpillChoice};
use tharsis_remote::{Client, Error, FailureKind, Result, connect};
use tharsis_types::limits::{JOB_WEIGHT_DEFAULT, QUEUED_TASKS_MAX, SMALL_CLUSTER_MAX};
use tharsis_types::{BadQuota, Quota};

/// Whatever computes on the runtime of a thread by itself.
const GUESTS: &[Guest] = &[
    #[cfg(feature = "arrays")]
    Guest { enter: crate::tensor::enter, leave: crate::tensor::leave },
    #[cfg(feature = "dataframe")]
    Guest { enter: crate::frame::enter, leave: crate::frame::leave },
];

impl Init {
    /// Starts the runtime, for all threads of the program, until the returned value is dropped. There is one
    /// at a time.
    ///
    /// # Errors
    /// `InvalidArgument` for a setting out of bounds, inside a task, where the program has a runtime already,
    /// and without `#[tharsis::main]` unless it is embedded; `Disconnected` if no node answers at the
    /// address, `ResourceExhausted` if the machine, or a limit on this process, has no room for the store.
    pub fn start(self) -> Result<Runtime> {
        let place = ProgramPlace::take()?;
        self.checked_start().map(|started| Runtime::new(started, Some(place), GUESTS))
    }

    /// Starts a runtime that only threads use that [`Runtime::enter`] it. For programs, and tests, with
    /// several runtimes.
    ///
    /// # Errors
    /// As [`Init::start`], but any number may run at a time.
    pub fn start_local(self) -> Result<Runtime> {
        self.checked_start().map(|started| Runtime::new(started, None, GUESTS))
    }

    fn checked_start(self) -> Result<Started> {
        match self.problem {
            Some(problem) => Err(Error::new(FailureKind::InvalidArgument, problem)),
            None => start(&self),
        }
    }
}

/// Starts what `init` describes.
fn start(init: &Init) -> Result<Started> {
    check_may_start()?;
    match (init.address.as_deref(), init.worker_count) {
        (Some(address), _) => start_at(init, address),
        (None, Some(_)) => start_node(init),
        (None, None) => start_embedded(init),
    }
}

fn start_embedded(init: &Init) -> Result<Started> {
    let (client, node) = embedded::start(options(init)?, quota(init)?)?;
    let node = Arc::new(node);
    let asked = Arc::clone(&node);
    let report = Box::new(move || Ok(asked.report()?));
    let listed = Arc::clone(&node);
    let list = Box::new(move |listing| Ok(listed.list(listing)?));
    Ok(Started { client, socket: None, report, list, stop: Box::new(move || node.stop()) })
}

/// Starts a node process that ends with this one, and connects to it.
fn start_node(init: &Init) -> Result<Started> {
    let restartable = restartable()?;
    let node = NodeProcess::start(&options(init)?, init.scratch.as_deref(), restartable)?;
    let client = connect_driver(init, node.socket(), restartable)?;
    let socket = node.socket().to_owned();
    Ok(started(client, socket, Box::new(move || drop(node))))
}

/// Connects to a running node on this machine, or joins the cluster at `HOST:PORT`.
fn start_at(init: &Init, address: &str) -> Result<Started> {
    let restartable = restartable()?;
    if machine::is_remote(address) && !join::is_own_node(address) {
        let node = join::start_node(init, options(init)?, address, restartable)?;
        let client = connect_driver(init, node.socket(), restartable)?;
        let socket = node.socket().to_owned();
        return Ok(started(client, socket, Box::new(move || drop(node))));
    }
    let socket = machine::find_socket(address)?;
    let client = connect_driver(init, &socket, restartable)?;
    Ok(started(client, socket, Box::new(|| {})))
}

/// A runtime whose node is another process.
fn started(client: Client, socket: PathBuf, stop: Box<dyn FnOnce() + Send + Sync>) -> Started {
    let (asked, listed) = (socket.clone(), socket.clone());
    let report = Box::new(move || observe::ask(&asked, Question::Status));
    let list = Box::new(move |listing| observe::list(&listed, listing));
    Started { client, socket: Some(socket), report, list, stop }
}

/// Connects as a driver: from now on the node starts this program as its workers.
fn connect_driver(init: &Init, socket: &Path, _: Restartable) -> Result<Client> {
    let executable = std::env::current_exe();
    let executable: PathBuf = executable.map_err(|cause| {
        Error::new(FailureKind::Internal, format!("cannot tell this program's own path: {cause}"))
    })?;
    let submitted_as = || std::env::var(NAME_VARIABLE).ok();
    let role = Role::Driver {
        job_name: init.job_name.clone().or_else(submitted_as).unwrap_or_default(),
        weight: init.job_weight.unwrap_or(JOB_WEIGHT_DEFAULT),
        quota: quota(init)?,
        namespace: init.namespace.clone().unwrap_or_default(),
        executable: executable.display().to_string(),
    };
    connect(socket, role, None)
}

/// The quota of the job: what both the program and whoever submitted it allow.
fn quota(init: &Init) -> Result<Option<Quota>> {
    let Some(text) = std::env::var(QUOTA_VARIABLE).ok().filter(|text| !text.is_empty()) else {
        return Ok(init.job_quota.clone());
    };
    let submitted: Quota = text.parse().map_err(|bad: BadQuota| {
        Error::new(FailureKind::InvalidArgument, format!("{QUOTA_VARIABLE}: {bad}"))
    })?;
    Ok(Some(init.job_quota.as_ref().map_or_else(|| submitted.clone(), |own| own.and(&submitted))))
}

fn options(init: &Init) -> Result<NodeOptions> {
    let memory_bytes = machine::memory_bytes();
    let cpus = init.worker_count.unwrap_or_else(machine::cpu_count);
    let store_bytes = init.store_bytes.unwrap_or_else(|| {
        // A share of the memory that may be used.
        let usable_bytes = init.memory_limit_bytes.map_or(memory_bytes, |limit| limit.min(memory_bytes));
        machine::default_store_bytes(usable_bytes)
    });
    machine::check_store_bytes(store_bytes, memory_bytes)?;
    let memory_limit_bytes = init.memory_limit_bytes.unwrap_or_else(|| {
        // An explicit store size must not be refused because of a default limit.
        machine::default_memory_limit_bytes(memory_bytes).max(store_bytes)
    });
    machine::check_memory_limit(memory_limit_bytes, store_bytes, memory_bytes)?;
    Ok(NodeOptions {
        resources: init.resources(cpus, memory_limit_bytes - store_bytes),
        labels: Vec::new(),
        store_bytes,
        spill: spill(init)?,
        memory_limit_bytes,
        memory_soft_limit_bytes: init.memory_soft_limit_bytes,
        min_free_bytes: init.min_free_bytes,
        lineage_bytes: init.lineage_bytes.unwrap_or(machine::LINEAGE_BYTES),
        queued_tasks_max: init.queued_tasks_max.unwrap_or(QUEUED_TASKS_MAX),
        small_cluster_max: SMALL_CLUSTER_MAX,
        worker_start_timeout: init.worker_start_timeout.unwrap_or(machine::WORKER_START_TIMEOUT),
    })
}

/// The spill directories of the node: those that were set, or the default.
fn spill(init: &Init) -> Result<SpillChoice> {
    let mut choice = match &init.spill {
        Some(said) => said.clone(),
        None if init.spill_dirs.is_empty() => spill_dirs::default_choice(),
        None => SpillChoice::default(),
    };
    for directory in &init.spill_dirs {
        choice.folders.push(spill_dirs::folder(directory, None)?);
    }
    spill_dirs::check_water(&choice).map(|()| choice)
}
