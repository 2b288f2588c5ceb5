//! Executors: what runs the tasks of stages. Here, threads of this process; elsewhere, a cluster.

use crate::engine::{Environment, task_context};
use crate::error::{Error, Result};
use crate::stage::{KeptPart, LocalPart, Needs, Piece, PieceSource, Resident, Stages, TaskInputs, run};
use arrow::array::RecordBatch;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

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

/// Runs tasks on threads of this process. Rows between stages are passed without a copy.
#[derive(Debug)]
pub struct LocalExecutor {
    limits: Limits,
    runtime: OnceLock<std::io::Result<Runtime>>,
    environment: OnceLock<Result<Environment>>,
}

impl LocalExecutor {
    /// An executor with this many threads, whose operators take at most this many bytes before they spill.
    #[must_use]
    pub fn sized(threads: usize, memory_bytes: u64) -> LocalExecutor {
        let limits = Limits { threads: threads.max(1), memory_bytes: memory_bytes.max(1) };
        LocalExecutor { limits, runtime: OnceLock::new(), environment: OnceLock::new() }
    }

    fn runtime(&self) -> Result<&Runtime> {
        let build = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(self.limits.threads)
                .thread_name("tharsis-frame")
                .enable_all()
                .build()
        };
        let runtime = self.runtime.get_or_init(build);
        runtime.as_ref().map_err(|error| Error::Internal(format!("no threads: {error}")))
    }

    fn environment(&self) -> Result<&Environment> {
        let environment =
            self.environment.get_or_init(|| Environment::new(self.limits.memory_bytes, Vec::new()));
        environment.as_ref().map_err(Clone::clone)
    }
}

impl Executor for LocalExecutor {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome> {
        let started = Instant::now();
        let (runtime, environment) = (self.runtime()?, self.environment()?);
        let mut run = LocalRun::new(stages, environment, self.limits.threads);
        let spawned = run.drive(runtime);
        spawned?;
        let mut outcome = run.outcome();
        outcome.metrics.elapsed = started.elapsed();
        Ok(outcome)
    }
}

/// The tasks of a plan, run by one executor.
struct LocalRun<'a> {
    stages: &'a Stages,
    environment: &'a Environment,
    threads: usize,
    /// Tasks that have not started, in order of stages.
    pending: VecDeque<(usize, usize, Needs)>,
    pieces: HashMap<Piece, Vec<RecordBatch>>,
    /// Tasks that still read a piece.
    readers: HashMap<Piece, usize>,
    /// Rows of each task of each stage; `None` while it has not ended.
    rows: Vec<Vec<Option<usize>>>,
    metrics: Metrics,
}

/// The outputs of a task that has ended.
struct TaskEnd {
    stage: usize,
    task: usize,
    outputs: Vec<Vec<RecordBatch>>,
    busy: Duration,
}

impl<'a> LocalRun<'a> {
    fn new(stages: &'a Stages, environment: &'a Environment, threads: usize) -> LocalRun<'a> {
        let mut pending = VecDeque::new();
        let mut readers = HashMap::new();
        for (number, stage) in stages.stages.iter().enumerate() {
            for task in 0..stage.tasks {
                let needs = stages.needs(number, task);
                needs.pieces.iter().for_each(|piece| *readers.entry(*piece).or_default() += 1);
                pending.push_back((number, task, needs));
            }
        }
        let rows = stages.stages.iter().map(|stage| vec![None; stage.tasks]).collect();
        let metrics =
            Metrics { stages: vec![StageMetrics::default(); stages.stages.len()], ..Metrics::default() };
        LocalRun { stages, environment, threads, pending, pieces: HashMap::new(), readers, rows, metrics }
    }

    fn drive(&mut self, runtime: &Runtime) -> Result<()> {
        let mut running = JoinSet::new();
        while !self.pending.is_empty() || !running.is_empty() {
            while running.len() < self.threads
                && let Some(at) = self.pending.iter().position(|(_, _, needs)| self.is_ready(needs))
                && let Some((stage, task, needs)) = self.pending.remove(at)
            {
                let work = self.work(stage, task, needs)?;
                running.spawn_on(work, runtime.handle());
            }
            let ended = crate::engine::block_on(async { Ok(running.join_next().await) })?;
            match ended {
                Some(Ok(end)) => self.end(end?),
                Some(Err(error)) => return Err(Error::Internal(format!("a task panicked: {error}"))),
                None => return Err(Error::Internal("no task is ready".to_owned())),
            }
        }
        Ok(())
    }

    fn is_ready(&self, needs: &Needs) -> bool {
        let made = |piece: &Piece| match piece.source {
            PieceSource::Given(_) => true,
            PieceSource::Stage(stage) => self.rows[stage][piece.task].is_some(),
        };
        needs.pieces.iter().all(made)
            && needs.counts.iter().all(|&stage| self.rows[stage].iter().all(Option::is_some))
    }

    /// The future of a task, with its inputs.
    fn work(
        &mut self,
        stage: usize,
        task: usize,
        needs: Needs,
    ) -> Result<impl Future<Output = Result<TaskEnd>> + Send + use<>> {
        let mut inputs = TaskInputs::default();
        for piece in needs.pieces {
            let batches = match piece.source {
                PieceSource::Given(table) => self.stages.tables[table].parts[piece.task].fetch()?,
                PieceSource::Stage(_) => self.take(piece),
            };
            inputs.insert(piece, batches);
        }
        for counted in needs.counts {
            inputs.insert_rows(counted, self.rows[counted].iter().flatten().copied().collect());
        }
        let context = task_context(Some(self.environment), Arc::new(inputs));
        let fragment = Arc::clone(&self.stages.stages[stage].fragment);
        let output = self.stages.stages[stage].output.clone();
        Ok(async move {
            let started = Instant::now();
            let outputs = run(&fragment, task, &output, context).await?;
            Ok(TaskEnd { stage, task, outputs, busy: started.elapsed() })
        })
    }

    /// A piece for one of its readers; the last one takes it.
    fn take(&mut self, piece: Piece) -> Vec<RecordBatch> {
        let left = self.readers.get_mut(&piece).map_or(0, |readers| {
            *readers -= 1;
            *readers
        });
        match left {
            0 => self.pieces.remove(&piece),
            _ => self.pieces.get(&piece).cloned(),
        }
        .unwrap_or_default()
    }

    fn end(&mut self, end: TaskEnd) {
        let parts: Vec<LocalPart> = end.outputs.into_iter().map(LocalPart).collect();
        let rows = parts.iter().map(KeptPart::rows).sum();
        let bytes = parts.iter().map(KeptPart::bytes).sum();
        self.rows[end.stage][end.task] = Some(rows);
        self.metrics.stages[end.stage].add(rows, bytes, end.busy);
        let source = PieceSource::Stage(end.stage);
        for (output, part) in parts.into_iter().enumerate() {
            let piece = Piece { source, task: end.task, output };
            self.pieces.insert(piece, part.0);
        }
    }

    fn outcome(mut self) -> Outcome {
        let last = self.stages.stages.len() - 1;
        let parts = (0..self.stages.stages[last].tasks).map(|task| {
            let piece = Piece { source: PieceSource::Stage(last), task, output: 0 };
            Arc::new(LocalPart(self.pieces.remove(&piece).unwrap_or_default())) as Arc<dyn KeptPart>
        });
        Outcome { parts: parts.collect(), metrics: self.metrics }
    }
}

/// Plans and runs; gives the rows as a table.
pub(crate) fn execute(
    plan: &datafusion::logical_expr::LogicalPlan,
    executor: &dyn Executor,
) -> Result<(Resident, Metrics)> {
    let stages = plan_stages(plan, executor)?;
    let schema = stages.stages.last().map(|stage| stage.fragment.schema());
    let schema = schema.ok_or_else(|| Error::Internal("a plan without stages".to_owned()))?;
    let outcome = executor.execute(&stages)?;
    Ok((Resident { schema, parts: outcome.parts }, outcome.metrics))
}

/// The stages of a plan for an executor.
pub(crate) fn plan_stages(
    plan: &datafusion::logical_expr::LogicalPlan,
    executor: &dyn Executor,
) -> Result<Stages> {
    let threads = executor.limits().threads;
    let physical = crate::engine::block_on(crate::engine::physical(plan, threads))?;
    Stages::of(physical)
}
