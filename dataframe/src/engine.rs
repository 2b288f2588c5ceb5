//! The settings under which plans are optimised and run, the same in every process.

use crate::engine_future::EngineFuture;
use crate::error::{Error, Result};
use crate::stage::applied::{Applied, AppliedExec};
use crate::stage::row_number::{RowNumber, RowNumberExec};
use arrow::compute::SortOptions;
use datafusion::catalog::Session;
use datafusion::common::Result as EngineResult;
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryLimit};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use std::collections::HashMap;
use std::future::{Future, ready};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tharsis_cancel::RunEnds;

/// Part of the memory that each sort sets aside, as a divisor.
const SORT_RESERVE_SHARE: usize = 32;
/// Bytes of rows, and of as much again for their sorted copy, that are cheaper to sort at once than to merge.
const SORT_AT_ONCE_BYTES: usize = 64 << 20;

/// Memory and disk that operators of one process may use.
#[derive(Clone, Debug)]
pub struct Environment(Arc<RuntimeEnv>);

impl Environment {
    /// At most this many bytes in operators that can spill, and spill files in these folders, or in the
    /// system's folder for temporary files if there are none.
    ///
    /// # Errors
    /// A folder cannot be used.
    pub fn new(memory_bytes: u64, spill_folders: Vec<PathBuf>) -> Result<Environment> {
        let mode = if spill_folders.is_empty() {
            DiskManagerMode::OsTmpDirectory
        } else {
            DiskManagerMode::Directories(spill_folders)
        };
        // All environments of the process share the knowledge of files that were read.
        let environment = RuntimeEnvBuilder::from_runtime_env(&Environment::unlimited().0)
            .with_memory_pool(Arc::new(FairSpillPool::new(memory_bytes as usize)))
            .with_disk_manager_builder(spill_files(mode))
            .build_arc()?;
        Ok(Environment(environment))
    }

    /// Bytes that a sort sets aside for the merge of what it has spilled: it fails if it does not get them.
    fn sort_reserve(&self) -> usize {
        match self.0.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / SORT_RESERVE_SHARE,
            _ => usize::MAX,
        }
    }

    /// Bytes that a sort may use to sort its rows at once, without a merge of sorted batches.
    fn sort_at_once(&self) -> usize {
        match self.0.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => SORT_AT_ONCE_BYTES.min(bytes / SORT_RESERVE_SHARE),
            _ => SORT_AT_ONCE_BYTES,
        }
    }

    /// A file for rows that have no room in memory; it is removed when it is dropped.
    pub(crate) fn spill_file(&self, purpose: &str) -> Result<SpillFile> {
        Ok(self.0.disk_manager.create_tmp_file(purpose)?)
    }

    /// The environment of a process that sets no limit.
    fn unlimited() -> Environment {
        static UNLIMITED: OnceLock<Environment> = OnceLock::new();
        UNLIMITED.get_or_init(|| Environment(Arc::new(without_listings()))).clone()
    }
}

/// Spill files without a bound of their own: the library's one of 100 GiB for all tasks of a process would be
/// told as a lack of memory. A disk that is full says so.
fn spill_files(mode: DiskManagerMode) -> DiskManagerBuilder {
    DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(u64::MAX)
}

/// An environment that looks at folders whenever a table is planned. The library keeps what it saw first for
/// ever, and files that came or went since would be left out or missed.
fn without_listings() -> RuntimeEnv {
    let caches = CacheManagerConfig::default().with_list_files_cache_limit(0);
    let built = RuntimeEnvBuilder::new()
        .with_cache_manager(caches)
        .with_disk_manager_builder(spill_files(DiskManagerMode::OsTmpDirectory))
        .build();
    // It fails for folders of spill files only, which are those of the system here.
    built.unwrap_or_default()
}

/// A file that is removed when it is dropped.
pub(crate) type SpillFile = Arc<dyn datafusion::execution::SpillFile>;

/// The choices that a plan is made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Partitions of a scan and of an exchange.
    pub(crate) partitions: usize,
    /// Whether joins sort both sides, which may spill, and do not keep one side in memory.
    pub(crate) joins_spill: bool,
    /// Whether scans below aggregates have as many partitions as others.
    pub(crate) small_scans: bool,
    /// Whether a file is read by one partition only.
    pub(crate) whole_files: bool,
    /// Number of earlier runs whose rows were lost.
    pub(crate) losses: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { partitions: 1, joins_spill: false, small_scans: false, whole_files: false, losses: 0 }
    }
}

impl Settings {
    /// Sets what the plan is made under, for a user who may have chosen the safer ones already.
    pub(crate) fn choose(self, options: &mut ConfigOptions) {
        options.execution.target_partitions = self.partitions.max(1);
        options.optimizer.prefer_hash_join &= !self.joins_spill;
        options.optimizer.repartition_file_scans &= !self.whole_files;
    }
}

/// The settings of frames.
pub(crate) fn config(settings: Settings) -> SessionConfig {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    pin(options);
    settings.choose(options);
    config
}

/// Settings without which a plan cannot be cut into tasks, whatever users say.
pub(crate) fn pin(options: &mut ConfigOptions) {
    // An exchange costs a copy of the rows; the engine spreads tasks over threads.
    options.optimizer.enable_round_robin_repartition = false;
    // Its children would have to be partitioned by the same hash when they are read from other stages too.
    options.optimizer.prefer_existing_union = true;
    // These are filters that one operator fills while another runs; ours run in different processes.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // A join in its place takes a subquery that gives several rows, and cannot stand for all expressions.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = true;
    // Operators that have no form as bytes.
    options.optimizer.enable_piecewise_merge_join = false;
    options.optimizer.enable_window_topn = false;
    answer_all_queries(options);
    // The first value of values that are all there may be missing for the physical plan only.
    options.execution.skip_physical_aggregate_schema_check = true;
    // An idle partition would read files of its siblings, each of which runs as a task of its own: a task
    // would read them all, and rows would lose their order.
    options.execution.enable_file_stream_work_stealing = false;
}

/// Names and values of options that tasks run with, where they differ from those of frames.
pub(crate) type TaskOptions = Vec<(String, String)>;

/// The options for tasks of a user's session.
pub(crate) fn task_options(session: &SessionState) -> TaskOptions {
    let usual = config(Settings::default());
    let usual: HashMap<String, Option<String>> =
        usual.options().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let of_tasks = |key: &str| key.starts_with("datafusion.execution.") && !key.ends_with("partitions");
    let mut config = session.config().clone();
    pin(config.options_mut());
    let entries = config.options().entries().into_iter().filter(|entry| of_tasks(&entry.key));
    let differ = entries.filter(|entry| usual.get(&entry.key) != Some(&entry.value));
    differ.map(|entry| (entry.key, entry.value.unwrap_or_default())).collect()
}

/// A session to plan with.
pub(crate) fn session(settings: Settings) -> SessionState {
    built(parts(config(settings)))
}

/// Settings without which some queries have other rows, or none. Plans that are only shown have them, too.
pub(crate) fn answer_all_queries(options: &mut ConfigOptions) {
    // `SELECT * FROM (SELECT .. ORDER BY x) LIMIT 2` has the first rows by `x`, as in other databases.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // The rule moves `s.x` into the projection that names the columns of a table, `t.s AS s`, and adds the
    // column `t.s` there: a second `s`, which no plan may have.
    options.optimizer.enable_leaf_expression_pushdown = false;
}

/// The parts of a session but for its functions, which come when it is built.
pub(crate) fn parts(config: SessionConfig) -> SessionStateBuilder {
    let rules = crate::stage::outer_joins::rules(crate::stage::repeated_projections::rules());
    let rules = crate::stage::null_joins::rules(rules);
    let rules = crate::stage::whole_aggregates::rules(rules);
    let mut rules = crate::stage::random_filters::rules(rules);
    // Before the rules that make joins of subqueries.
    rules.insert(0, crate::stage::not_in::rule());
    rules.insert(0, crate::stage::asked_values::rule());
    SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(Environment::unlimited().0)
        .with_query_planner(Arc::new(Planner))
        .with_physical_optimizer_rules(crate::stage::limited_windows::rules())
        .with_optimizer_rules(rules)
        .with_optimizer_rule(crate::stage::filtered_windows::rule())
        .with_optimizer_rule(crate::stage::unread_numbers::rule())
}

/// The session of its parts.
pub(crate) fn built(parts: SessionStateBuilder) -> SessionState {
    let mut session = parts.build();
    // A registry that takes functions refuses none.
    let _registered = crate::functions::register(&mut session);
    session
}

/// The context of one task, with its inputs as an extension, and the options that differ from the usual ones.
pub(crate) fn task_context<T: Send + Sync + 'static>(
    environment: Option<&Environment>,
    inputs: Arc<T>,
    options: &TaskOptions,
) -> Result<Arc<TaskContext>> {
    static FUNCTIONS: OnceLock<Arc<TaskContext>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| session(Settings::default()).task_ctx());
    let mut config = functions.session_config().clone().with_extension(inputs);
    let mut scalar = functions.scalar_functions().clone();
    for (key, value) in options {
        config.options_mut().set(key, value)?;
    }
    if !options.is_empty() {
        // Some functions keep options that they were made with.
        for function in scalar.values_mut() {
            if let Some(updated) = function.inner().with_updated_config(config.options()) {
                *function = Arc::new(updated);
            }
        }
    }
    let environment = environment.cloned().unwrap_or_else(Environment::unlimited);
    let execution = &mut config.options_mut().execution;
    execution.sort_spill_reservation_bytes =
        environment.sort_reserve().min(execution.sort_spill_reservation_bytes);
    execution.sort_in_place_threshold_bytes =
        environment.sort_at_once().max(execution.sort_in_place_threshold_bytes);
    let context = TaskContext::new(
        None,
        String::new(),
        config,
        scalar,
        functions.higher_order_functions().clone(),
        functions.aggregate_functions().clone(),
        functions.window_functions().clone(),
        environment.0,
    );
    Ok(Arc::new(context))
}

/// Plans nodes of this crate beside those of the library.
#[derive(Debug)]
struct Planner;

impl Planner {
    /// The plan by the library's planner, which asks this one about nodes that it does not know.
    fn plan<'a>(plan: &'a LogicalPlan, session: &'a dyn Session) -> EngineFuture<'a, Arc<dyn ExecutionPlan>> {
        Box::pin(async move {
            let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planner)]);
            planner.create_physical_plan(plan, session).await
        })
    }

    /// The plan of a node of this crate; `None` for any other.
    fn plan_node(
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(applied) = node.as_any().downcast_ref::<Applied>() {
            return Ok(Some(Arc::new(AppliedExec::new(inputs.to_vec(), applied.apply()))));
        }
        let (Some(node), [input], [logical]) =
            (node.as_any().downcast_ref::<RowNumber>(), inputs, logical_inputs)
        else {
            return Ok(None);
        };
        let order = node.order.iter().map(|key| {
            let expr = planner.create_physical_expr(&key.expr, logical.schema(), session, context)?;
            let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
            Ok(PhysicalSortExpr { expr, options })
        });
        let order = LexOrdering::new(order.collect::<EngineResult<Vec<_>>>()?);
        let plan = RowNumberExec::new(Arc::clone(input), node.column.clone(), node.numbering, None, order);
        Ok(Some(Arc::new(plan)))
    }
}

impl QueryPlanner for Planner {
    fn create_physical_plan<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        plan: &'life1 LogicalPlan,
        session: &'life2 dyn Session,
    ) -> EngineFuture<'async_trait, Arc<dyn ExecutionPlan>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        Planner::plan(plan, session)
    }
}

impl ExtensionPlanner for Planner {
    fn plan_extension<'life0, 'life1, 'life2, 'life3, 'life4, 'life5, 'life6, 'life7, 'async_trait>(
        &'life0 self,
        planner: &'life1 dyn PhysicalPlanner,
        node: &'life2 dyn UserDefinedLogicalNode,
        logical_inputs: &'life3 [&'life4 LogicalPlan],
        inputs: &'life5 [Arc<dyn ExecutionPlan>],
        session: &'life6 dyn Session,
        context: &'life7 PhysicalPlanningContext,
    ) -> EngineFuture<'async_trait, Option<Arc<dyn ExecutionPlan>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        'life4: 'async_trait,
        'life5: 'async_trait,
        'life6: 'async_trait,
        'life7: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(ready(Planner::plan_node(planner, node, logical_inputs, inputs, session, context)))
    }
}

/// Runs a future to its end on this thread. Within another runtime it runs on a thread of its own, since
/// runtimes do not nest.
pub(crate) fn block_on<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return std::thread::scope(|scope| {
            let thread = scope.spawn(|| on_own_runtime(future));
            thread.join().unwrap_or_else(|_| Err(Error::Internal("a task panicked".to_owned())))
        });
    }
    on_own_runtime(future)
}

/// A step that ends with an error when the program is cancelled, if it waits then. It is for steps that
/// change nothing: the rest of the step is not done.
pub(crate) fn unless_cancelled<T>(step: impl Future<Output = Result<T>>) -> impl Future<Output = Result<T>> {
    // Taken here: the step may run on another thread.
    let ends = RunEnds::of(None);
    async move {
        let mut step = std::pin::pin!(step);
        while let Some(pause) = ends.pause() {
            ends.check()?;
            if let Ok(done) = tokio::time::timeout(pause, step.as_mut()).await {
                return done;
            }
        }
        step.await
    }
}

/// The stack of a thread that plans: the library goes through plans and expressions by recursion, and takes
/// some kilobytes for each level, or hundreds of them where it is not optimised. What is not touched takes no
/// memory.
const PLANNING_STACK_BYTES: usize = if cfg!(debug_assertions) { 1 << 30 } else { 256 << 20 };

/// As [`block_on`], on a thread with a large stack.
pub(crate) fn block_on_deep<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    on_deep_stack(|| on_own_runtime(future))
}

/// Runs a step that goes through a plan by recursion, on a thread with a large stack.
pub(crate) fn on_deep_stack<T: Send>(step: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PLANNING_STACK_BYTES);
        let thread = thread.spawn_scoped(scope, step);
        let thread = thread.map_err(|error| Error::Internal(format!("no thread to plan: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(Error::Internal("planning panicked".to_owned())))
    })
}

fn on_own_runtime<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    thread_local! {
        static RUNTIME: std::io::Result<tokio::runtime::Runtime> =
            tokio::runtime::Builder::new_current_thread().enable_all().build();
    }
    RUNTIME.with(|runtime| match runtime {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => Err(Error::Internal(format!("no runtime for a task: {error}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_bytes_have_no_bound_of_the_library() {
        let folder = std::env::temp_dir();
        for environment in [
            Environment::unlimited(),
            Environment::new(1 << 30, Vec::new()).unwrap(),
            Environment::new(1 << 30, vec![folder]).unwrap(),
        ] {
            let shown = format!("{:?}", environment.0.disk_manager);
            assert!(shown.contains(&format!("max_temp_directory_size: {}", u64::MAX)), "{shown}");
        }
    }
}
