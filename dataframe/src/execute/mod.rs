//! Executors: what runs the tasks of stages. Here, threads of this process; elsewhere, a cluster.

mod local;
mod rows;

pub use local::LocalExecutor;

use crate::engine::{Settings, block_on, physical};
use crate::error::{Error, Result};
use crate::stage::{KeptPart, PARTITIONS_MAX, Resident, Stages, partitions};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The threads and the memory of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks that can run at a time.
    pub threads: usize,
    /// Bytes that operators and rows between stages may take.
    pub memory_bytes: u64,
}

/// Runs the tasks of a plan.
pub trait Executor: Send + Sync {
    /// Threads and memory; plans are made for them.
    fn limits(&self) -> Limits;

    /// Runs all stages; gives the rows that the last one made.
    ///
    /// # Errors
    /// Errors of tasks; memory that does not suffice.
    fn execute(&self, stages: &Stages) -> Result<Outcome>;
}

/// The result of a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The rows, in parts in the order of rows.
    pub parts: Vec<Arc<dyn KeptPart>>,
    /// Time, rows and bytes of its run.
    pub metrics: Metrics,
}

/// Time, rows and bytes of the run of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// By stage.
    pub stages: Vec<StageMetrics>,
    /// From start to end.
    pub elapsed: Duration,
    /// Attempts beyond the first of each task.
    pub retries: u64,
}

/// Time, rows and bytes of the tasks of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageMetrics {
    /// Number of tasks that ran.
    pub tasks: usize,
    /// Rows of all outputs.
    pub rows: usize,
    /// Bytes of all outputs.
    pub bytes: usize,
    /// Time in tasks, all threads together.
    pub busy: Duration,
    /// Time of the slowest task.
    pub slowest: Duration,
}

impl StageMetrics {
    /// Counts one more task that has ended.
    pub fn add(&mut self, rows: usize, bytes: usize, busy: Duration) {
        self.tasks += 1;
        self.rows += rows;
        self.bytes += bytes;
        self.busy += busy;
        self.slowest = self.slowest.max(busy);
    }
}

/// Source of an executor for the current thread.
pub type Offer = fn() -> Option<Arc<dyn Executor>>;

static OFFER: OnceLock<Offer> = OnceLock::new();

/// Sets the source that [`default_executor`] asks first. The task engine does so once; later calls are
/// ignored.
pub fn offer_executor(offer: Offer) {
    let _first_wins = OFFER.set(offer);
}

/// The executor of programs that name none: that of the task engine if it runs, else one with all cores of
/// this machine and half of its memory.
///
/// ```
/// assert!(0 < tharsis_dataframe::default_executor().limits().threads);
/// ```
#[must_use]
pub fn default_executor() -> Arc<dyn Executor> {
    static LOCAL: OnceLock<Arc<LocalExecutor>> = OnceLock::new();
    let offered = OFFER.get().and_then(|offer| offer());
    offered.unwrap_or_else(|| {
        let local = LOCAL.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
            Arc::new(LocalExecutor::sized(threads, memory_bytes() / 2))
        });
        Arc::clone(local) as Arc<dyn Executor>
    })
}

/// Bytes of memory of this machine; 4 GiB if that is unknown.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(4 << 30, |kib| kib << 10)
}

/// Partitions of the next attempt at a plan that took more memory than it may, as a factor.
const MORE_PARTITIONS: usize = 4;

/// Plans and runs; gives the rows as a table.
///
/// The plan is for the sizes that are known before it runs. If they were wrong, a task fails for lack of
/// memory; then the plan is made anew for more partitions, and at last with joins that can spill. Likewise
/// if a file cannot be read by several tasks.
pub(crate) fn execute(plan: &LogicalPlan, executor: &dyn Executor) -> Result<(Resident, Metrics)> {
    execute_as(plan, executor, |plan| plan, false)
}

/// As [`execute`], with operators above the plan that this adds.
pub(crate) fn execute_under(
    plan: &LogicalPlan,
    executor: &dyn Executor,
    above: impl Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Result<(Resident, Metrics)> {
    execute_as(plan, executor, above, false)
}

/// As [`execute`], with as few batches in each part as the executor can make.
pub(crate) fn execute_in_one_batch(plan: &LogicalPlan, executor: &dyn Executor) -> Result<Resident> {
    Ok(execute_as(plan, executor, |plan| plan, true)?.0)
}

fn execute_as(
    plan: &LogicalPlan,
    executor: &dyn Executor,
    above: impl Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
    in_one_batch: bool,
) -> Result<(Resident, Metrics)> {
    let query = Query { plan, above: &above, limits: executor.limits() };
    let mut planned = query.planned()?;
    let outcome = loop {
        planned.stages.in_one_batch = in_one_batch;
        match executor.execute(&planned.stages) {
            Err(Error::Uncut { .. }) if !planned.settings.whole_files => {
                planned = query.planned_under(Settings { whole_files: true, ..planned.settings })?;
            }
            Err(Error::Memory(text)) => planned = query.smaller(planned.settings, text)?,
            outcome => break outcome?,
        }
    };
    let schema = planned.stages.stages.last().map(|stage| stage.fragment.schema());
    let schema = schema.ok_or_else(|| Error::Internal("a plan without stages".to_owned()))?;
    Ok((Resident { schema, parts: outcome.parts }, outcome.metrics))
}

/// The stages of a plan for an executor.
pub(crate) fn plan_stages(plan: &LogicalPlan, executor: &dyn Executor) -> Result<Stages> {
    Ok(Query { plan, above: &|plan| plan, limits: executor.limits() }.planned()?.stages)
}

/// A plan that is to run, and the memory for it.
struct Query<'a> {
    plan: &'a LogicalPlan,
    /// Adds operators above the physical plan.
    above: &'a dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
    limits: Limits,
}

/// Stages, and the settings that they were made under.
struct Planned {
    stages: Stages,
    settings: Settings,
}

impl Query<'_> {
    /// The stages for as many partitions as the inputs ask for.
    fn planned(&self) -> Result<Planned> {
        let first = Settings { partitions: self.limits.threads, ..Settings::default() };
        let physical = block_on(physical(self.plan, first))?;
        let settings = Settings {
            partitions: partitions(&physical, self.limits.threads, self.limits.memory_bytes)?,
            ..first
        };
        match settings == first {
            true => self.cut(physical, settings),
            false => self.planned_under(settings),
        }
    }

    fn planned_under(&self, settings: Settings) -> Result<Planned> {
        self.cut(block_on(physical(self.plan, settings))?, settings)
    }

    fn cut(&self, physical: Arc<dyn ExecutionPlan>, settings: Settings) -> Result<Planned> {
        let stages = Stages::of((self.above)(physical), settings.partitions)?;
        Ok(Planned { stages, settings })
    }

    /// The stages with smaller tasks than those of these settings; the error if there are none.
    fn smaller(&self, mut settings: Settings, error: String) -> Result<Planned> {
        let most = PARTITIONS_MAX.max(self.limits.threads);
        match settings.joins_spill {
            _ if settings.partitions < most => {
                settings.partitions = most.min(settings.partitions * MORE_PARTITIONS);
            }
            false => settings.joins_spill = true,
            true => return Err(Error::Memory(error)),
        }
        self.planned_under(settings)
    }
}
