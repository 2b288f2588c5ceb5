//! Executors: what runs the tasks of stages. Here, threads of this process; elsewhere, a cluster.

mod left;
mod local;
mod rows;
mod stream;
mod threads;

pub use left::tasks_left_behind;
pub use local::LocalExecutor;
pub(crate) use stream::Streamed;

use crate::engine::{Settings, block_on, block_on_deep, task_options, unless_cancelled};
use crate::error::{Error, FileFault, Result};
use crate::metrics::Metrics;
use crate::planning::{is_deep, physical, physical_in};
use crate::progress::Progress;
use crate::stage::{KeptPart, PARTITIONS_MAX, Resident, Stages, partitions};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

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

    /// Starts all stages; gives the parts of the last one in the order of rows, each as soon as it is made.
    /// No task starts after the parts are dropped.
    ///
    /// # Errors
    /// As [`Executor::execute`]; those of tasks come in the place of parts.
    fn start(&self, stages: &Stages) -> Result<Parts> {
        Ok(Box::new(self.execute(stages)?.parts.into_iter().map(Ok)))
    }
}

/// Parts of a result, one after the other.
pub type Parts = Box<dyn Iterator<Item = Result<Arc<dyn KeptPart>>> + Send>;

/// The result of a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The rows, in parts in the order of rows.
    pub parts: Vec<Arc<dyn KeptPart>>,
    /// Time, rows and bytes of its run.
    pub metrics: Metrics,
}

/// Source of an executor for the current thread.
pub type Offer = fn() -> Option<Arc<dyn Executor>>;

static OFFER: OnceLock<Offer> = OnceLock::new();

/// Sets the source that [`default_executor`] asks, in the whole process. The task engine does so once; later
/// calls are ignored.
pub fn offer_executor(offer: Offer) {
    let _first_wins = OFFER.set(offer);
}

thread_local! {
    static BOUND: RefCell<Option<Arc<dyn Executor>>> = const { RefCell::new(None) };
}

/// Has [`default_executor`] give this executor on this thread, until the binding is dropped. It is that of
/// one program among others, so it goes before the one that is offered to the process.
pub fn bind(executor: Arc<dyn Executor>) -> Binding {
    Binding(BOUND.replace(Some(executor)))
}

/// An executor of the current thread, and the one that it had before.
#[must_use = "the executor is bound until this is dropped"]
pub struct Binding(Option<Arc<dyn Executor>>);

impl Drop for Binding {
    fn drop(&mut self) {
        BOUND.set(self.0.take());
    }
}

/// The executor of programs that name none: that of the task engine if it runs, else one with all cores of
/// this machine and half of its memory, or of what its control group allows.
///
/// ```
/// assert!(0 < tharsis_dataframe::default_executor().limits().threads);
/// ```
#[must_use]
pub fn default_executor() -> Arc<dyn Executor> {
    static LOCAL: OnceLock<Arc<LocalExecutor>> = OnceLock::new();
    if let Some(bound) = BOUND.with_borrow(Clone::clone) {
        return bound;
    }
    let offered = OFFER.get().and_then(|offer| offer());
    offered.unwrap_or_else(|| {
        let local = LOCAL.get_or_init(Arc::default);
        Arc::clone(local) as Arc<dyn Executor>
    })
}

/// Bytes of memory that this process may use: those of the machine, or of its control group; 4 GiB if neither
/// is known.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let of_machine = kib.map_or(4 << 30, |kib| kib << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group_limits(&groups);
    let limits = limits.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.fold(of_machine, u64::min)
}

/// Files with the limits of the control groups of a process and of those around them, of both versions.
/// Within a container the group is the root of what can be seen.
fn group_limits(groups: &str) -> impl Iterator<Item = PathBuf> {
    let ways = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => Some(("/sys/fs/cgroup", group, "memory.max")),
            list if list.split(',').any(|name| name == "memory") => {
                Some(("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
            }
            _ => None,
        }
    });
    ways.flat_map(|(root, group, file)| {
        let group = Path::new(group.trim_start_matches('/'));
        group.ancestors().map(move |group| Path::new(root).join(group).join(file)).collect::<Vec<_>>()
    })
}

/// Most runs of a plan after the first because rows between its stages were lost.
const LOSSES_MAX: u32 = 3;

/// Tasks for each thread that read files for partial aggregates.
const SCANS_PER_THREAD: usize = 2;

/// Partitions of the next attempt at a plan that took more memory than it may, as a factor.
const MORE_PARTITIONS: usize = 4;

/// Plans and runs; gives the rows as a table.
///
/// The plan is for the sizes that are known before it runs. If they were wrong, a task fails for lack of
/// memory; then the plan is made anew for more partitions, and at last with joins that can spill. Likewise
/// if a file cannot be read by several tasks, or has changed since it was listed. If rows between stages are
/// lost, the same plan runs again.
pub(crate) fn execute(plan: &LogicalPlan, executor: &dyn Executor) -> Result<(Resident, Metrics)> {
    let (rows, metrics, _) = run(&Query::new(plan, executor, &|plan| plan), executor, |_| ())?;
    Ok((rows, metrics))
}

/// As [`execute`], in the session of a user, with its progress.
pub(crate) fn execute_in(
    session: &SessionState,
    plan: &LogicalPlan,
    executor: &dyn Executor,
    progress: Option<&Progress>,
) -> Result<(Resident, Metrics)> {
    let query = Query::new(plan, executor, &|plan| plan).in_session(session);
    let (rows, metrics, _) = run(&query, executor, |stages| note(stages, progress))?;
    Ok((rows, metrics))
}

/// As [`execute`], with operators above the plan that this adds.
pub(crate) fn execute_under(
    plan: &LogicalPlan,
    executor: &dyn Executor,
    above: impl Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Result<(Resident, Metrics)> {
    let (rows, metrics, _) = run(&Query::new(plan, executor, &above), executor, |_| ())?;
    Ok((rows, metrics))
}

/// As [`execute`], with as few batches in each part as the executor can make.
pub(crate) fn execute_in_one_batch(plan: &LogicalPlan, executor: &dyn Executor) -> Result<Resident> {
    let query = Query::new(plan, executor, &|plan| plan);
    Ok(run(&query, executor, |stages| stages.in_one_batch = true)?.0)
}

/// As [`execute`], with its progress, and the plan that ran.
pub(crate) fn execute_watched(
    plan: &LogicalPlan,
    executor: &dyn Executor,
    progress: &Progress,
) -> Result<(Resident, Metrics, Stages)> {
    run(&Query::new(plan, executor, &|plan| plan), executor, |stages| note(stages, Some(progress)))
}

/// Has a run noted in these counts.
fn note(stages: &mut Stages, progress: Option<&Progress>) {
    if let Some(progress) = progress {
        progress.begin(stages.tasks());
        stages.progress = progress.clone();
    }
}

/// Runs a plan whose stages are prepared by a step.
fn run(
    query: &Query<'_>,
    executor: &dyn Executor,
    prepare: impl Fn(&mut Stages),
) -> Result<(Resident, Metrics, Stages)> {
    let mut planned = query.planned()?;
    let mut outcome = loop {
        prepare(&mut planned.stages);
        match executor.execute(&planned.stages) {
            Ok(outcome) => break outcome,
            Err(error) => planned = query.after(planned.settings, error)?,
        }
    };
    outcome.metrics.retries += u64::from(planned.settings.losses);
    let rows = Resident { schema: planned.schema()?, parts: outcome.parts };
    Ok((rows, outcome.metrics, planned.stages))
}

/// The stages of a plan for an executor.
pub(crate) fn plan_stages(plan: &LogicalPlan, executor: &dyn Executor) -> Result<Stages> {
    Ok(Query::new(plan, executor, &|plan| plan).planned()?.stages)
}

/// As [`plan_stages`], in the session of a user.
pub(crate) fn plan_stages_in(
    session: &SessionState,
    plan: &LogicalPlan,
    executor: &dyn Executor,
) -> Result<Stages> {
    Ok(Query::new(plan, executor, &|plan| plan).in_session(session).planned()?.stages)
}

/// A plan that is to run, and the memory for it.
struct Query<'a> {
    plan: &'a LogicalPlan,
    /// Adds operators above the physical plan.
    above: &'a dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
    limits: Limits,
    /// The session of a user, whose options hold.
    session: Option<&'a SessionState>,
}

/// Stages, and the settings that they were made under.
struct Planned {
    stages: Stages,
    settings: Settings,
}

impl Planned {
    /// Names and types of the columns of the result.
    fn schema(&self) -> Result<SchemaRef> {
        self.stages.schema().ok_or_else(|| Error::Internal("a plan without stages".to_owned()))
    }
}

impl<'a> Query<'a> {
    fn new(
        plan: &'a LogicalPlan,
        executor: &dyn Executor,
        above: &'a dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
    ) -> Query<'a> {
        Query { plan, above, limits: executor.limits(), session: None }
    }

    /// The same query with the options of a session, of which the partitions count as threads.
    fn in_session(self, session: &'a SessionState) -> Query<'a> {
        let threads = session.config().target_partitions().max(1);
        Query { limits: Limits { threads, ..self.limits }, session: Some(session), ..self }
    }

    fn physical(&self, settings: Settings) -> Result<Arc<dyn ExecutionPlan>> {
        let (session, plan) = (self.session, self.plan);
        let made = async move {
            match session {
                Some(session) => physical_in(session, plan, settings).await,
                None => physical(plan, settings).await,
            }
        };
        let made = unless_cancelled(made);
        if is_deep(plan) { block_on_deep(made) } else { block_on(made) }
    }

    /// The stages for as many partitions as the inputs ask for.
    fn planned(&self) -> Result<Planned> {
        let first = Settings { partitions: self.limits.threads, ..Settings::default() };
        let physical = self.physical(first)?;
        let settings = Settings {
            partitions: partitions(&physical, self.limits.threads, self.limits.memory_bytes)?,
            ..first
        };
        if settings == first { self.cut(physical, settings) } else { self.planned_under(settings) }
    }

    fn planned_under(&self, settings: Settings) -> Result<Planned> {
        self.cut(self.physical(settings)?, settings)
    }

    fn cut(&self, physical: Arc<dyn ExecutionPlan>, settings: Settings) -> Result<Planned> {
        let scans = if settings.small_scans { usize::MAX } else { SCANS_PER_THREAD * self.limits.threads };
        let mut stages = Stages::of((self.above)(physical), settings.partitions, scans)?;
        if let Some(session) = self.session {
            stages = stages.with_options(&task_options(session));
        }
        Ok(Planned { stages, settings })
    }

    /// The stages to run after those of these settings have failed; the error if there are none.
    fn after(&self, settings: Settings, error: Error) -> Result<Planned> {
        match error {
            Error::Uncut { .. } if !settings.whole_files => {
                self.planned_under(Settings { whole_files: true, ..settings })
            }
            Error::Memory(text) => self.smaller(Settings { small_scans: true, ..settings }, text),
            Error::Lost(_) | Error::File { fault: FileFault::Changed, .. }
                if settings.losses < LOSSES_MAX =>
            {
                self.planned_under(Settings { losses: settings.losses + 1, ..settings })
            }
            error => Err(error),
        }
    }

    /// The stages with smaller tasks than those of these settings; the error if there are none.
    fn smaller(&self, mut settings: Settings, error: String) -> Result<Planned> {
        let most = PARTITIONS_MAX.max(self.limits.threads);
        if settings.partitions < most {
            settings.partitions = most.min(settings.partitions * MORE_PARTITIONS);
        } else if settings.joins_spill {
            return Err(Error::Memory(error));
        } else {
            settings.joins_spill = true;
        }
        self.planned_under(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_control_groups_are_looked_for_up_to_the_root() {
        let found =
            |groups: &str| group_limits(groups).map(|path| path.display().to_string()).collect::<Vec<_>>();
        let second = found("0::/kubepods/pod7\n");
        let expected = ["/kubepods/pod7", "/kubepods", ""].map(|at| format!("/sys/fs/cgroup{at}/memory.max"));
        assert_eq!(second, expected);
        let first = found("12:cpu,cpuacct:/a\n4:memory:/\n");
        assert_eq!(first, ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
        assert!(memory_bytes() > 0);
    }

    #[test]
    fn a_bound_executor_is_the_default_one_until_it_is_let_go() {
        let bound: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(3, 1 << 20));
        let binding = bind(Arc::clone(&bound));
        assert!(Arc::ptr_eq(&default_executor(), &bound));
        drop(binding);
        assert!(!Arc::ptr_eq(&default_executor(), &bound));
    }
}
