//! The executor whose tasks are remote calls.

use super::drive::Drive;
use crate::runtime::Runtime;
use std::sync::Arc;
use std::time::Instant;
use tharsis_cancel::RunEnds;
use tharsis_dataframe::{Executor, Limits, Outcome, Parts, Result, Stages};
use tharsis_protos::report::{NodeRow, Report};
use tharsis_remote::{Client, Options, current};

/// Runs plans as remote tasks: on the threads of an embedded runtime, on worker processes, on the nodes of a
/// cluster.
///
/// Each partition of a stage is a call. Its rows are objects in the store, which may be spilled; a call
/// starts when the objects that it reads are there, so a stage does not wait for the end of the one before.
/// Rows are freed when the last call that reads them has ended, and made again if they are lost.
#[derive(Clone)]
pub struct RemoteExecutor {
    pub(super) client: Client,
    report: Arc<dyn Fn() -> tharsis_remote::Result<Report> + Send + Sync>,
    memory_bytes: Option<u64>,
    partitions: Option<usize>,
    options: Options,
    deadline: Option<Instant>,
}

impl RemoteExecutor {
    /// An executor on a runtime, with all its CPUs and half of its node's store.
    #[must_use]
    pub fn new(runtime: &Runtime) -> RemoteExecutor {
        RemoteExecutor {
            client: runtime.client().clone(),
            report: runtime.reporter(),
            memory_bytes: None,
            partitions: None,
            options: Options::default(),
            deadline: None,
        }
    }

    /// Gives up all plans at this moment, also those that run then; their calls are stopped.
    #[must_use]
    pub fn until(mut self, deadline: Instant) -> RemoteExecutor {
        self.deadline = Some(deadline);
        self
    }

    /// Bytes that the operators of all tasks may take at a time before they spill.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> RemoteExecutor {
        self.memory_bytes = Some(bytes.max(1));
        self
    }

    /// Partitions that plans are made for; as many as there are CPUs by default.
    #[must_use]
    pub fn partitions(mut self, count: usize) -> RemoteExecutor {
        self.partitions = Some(count.max(1));
        self
    }

    /// Options of each remote call: its CPUs, retries, placement. The number of results must not be set.
    #[must_use]
    pub fn options(mut self, options: Options) -> RemoteExecutor {
        self.options = options;
        self
    }
}

impl Executor for RemoteExecutor {
    fn limits(&self) -> Limits {
        // If the node does not answer, the first call fails with a better error.
        let report = (self.report)().unwrap_or_default();
        let cpus: f64 = report.nodes.iter().map(NodeRow::cpus).sum();
        let threads = self.partitions.unwrap_or((cpus as usize).max(1));
        let memory_bytes = self.memory_bytes.unwrap_or(report.store.capacity_bytes / STORE_SHARE).max(1);
        Limits { threads, memory_bytes }
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome> {
        let _binding = current::bind(self.client.clone());
        let started = Instant::now();
        let mut outcome = self.drive(stages).run()?;
        outcome.metrics.elapsed = started.elapsed();
        Ok(outcome)
    }

    fn start(&self, stages: &Stages) -> Result<Parts> {
        // Those that run while one is taken, and as many that wait to be taken.
        let ahead = 2 * self.limits().threads;
        let (client, mut drive) = (self.client.clone(), self.drive(stages).ahead(ahead));
        Ok(Box::new(std::iter::from_fn(move || {
            let _binding = current::bind(client.clone());
            drive.next_part().transpose()
        })))
    }
}

impl RemoteExecutor {
    fn drive(&self, stages: &Stages) -> Drive {
        let limits = self.limits();
        let share = (limits.memory_bytes / limits.threads as u64).max(TASK_BYTES_MIN);
        Drive::new(&self.client, self.options.clone(), stages, share).until(RunEnds::of(self.deadline))
    }
}

impl std::fmt::Debug for RemoteExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "frame::RemoteExecutor({:?})", self.client)
    }
}

/// Least memory of a task's operators: a sort reserves 10 MB for its merge before it has a row.
const TASK_BYTES_MIN: u64 = 32 << 20;
/// Part of the store that operators may take, as a divisor.
const STORE_SHARE: u64 = 2;
