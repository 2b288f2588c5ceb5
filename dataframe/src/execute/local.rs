//! The executor on threads of this process.

use super::rows::{Budget, Rows};
use super::{Executor, Limits, Outcome, Parts};
use crate::engine::{Environment, task_context};
use crate::error::{Error, Result};
use crate::metrics::{Metrics, StageMetrics, TaskMetrics};
use crate::stage::{Demand, KeptPart, LocalPart, Needs, Piece, PieceSource, Stages, TaskInputs, run};
use futures::TryFutureExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Runs tasks on threads of this process. Rows between stages are passed without a copy.
#[derive(Debug)]
pub struct LocalExecutor {
    limits: Limits,
    /// Room for rows between stages, and for tables that were computed.
    budget: Arc<Budget>,
    runtime: OnceLock<std::io::Result<Arc<Threads>>>,
    environment: OnceLock<Result<Environment>>,
}

impl LocalExecutor {
    /// An executor with this many threads. Operators may take half of these bytes before they spill, rows
    /// between stages and tables that were computed the other half before they wait in files.
    #[must_use]
    pub fn sized(threads: usize, memory_bytes: u64) -> LocalExecutor {
        let limits = Limits { threads: threads.max(1), memory_bytes: (memory_bytes / 2).max(1) };
        let budget = Budget::new(memory_bytes / 2);
        LocalExecutor { limits, budget, runtime: OnceLock::new(), environment: OnceLock::new() }
    }

    fn threads(&self) -> Result<Arc<Threads>> {
        let made = self.runtime.get_or_init(|| Threads::new(self.limits.threads).map(Arc::new));
        made.as_ref().map(Arc::clone).map_err(|error| Error::Internal(format!("no threads: {error}")))
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
        let mut run = self.run(stages, usize::MAX)?;
        let mut parts = Vec::new();
        while let Some(part) = run.next_part()? {
            parts.push(part);
        }
        let mut metrics = run.metrics;
        metrics.elapsed = started.elapsed();
        Ok(Outcome { parts, metrics })
    }

    fn start(&self, stages: &Stages) -> Result<Parts> {
        // Those that run while one is taken, and as many that wait to be taken.
        let mut run = self.run(stages, 2 * self.limits.threads)?;
        Ok(Box::new(std::iter::from_fn(move || run.next_part().transpose())))
    }
}

impl LocalExecutor {
    /// The tasks of a plan, of which this many may have made a part that was not taken.
    fn run(&self, stages: &Stages, ahead: usize) -> Result<LocalRun> {
        let environment = self.environment()?.clone();
        Ok(LocalRun::new(stages.clone(), self.threads()?, environment, Arc::clone(&self.budget), ahead))
    }
}

/// The threads of an executor, which may outlive it.
#[derive(Debug)]
struct Threads {
    count: usize,
    runtime: Option<Runtime>,
}

impl Threads {
    fn new(count: usize) -> std::io::Result<Threads> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(count).thread_name("tharsis-frame").enable_all().build()?;
        Ok(Threads { count, runtime: Some(runtime) })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // This may be a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

/// The tasks of a plan, run by one executor.
struct LocalRun {
    stages: Stages,
    threads: Arc<Threads>,
    environment: Environment,
    budget: Arc<Budget>,
    demand: Demand,
    /// Tasks that have not started, in order of stages.
    pending: VecDeque<(usize, usize, Needs)>,
    running: JoinSet<TaskResult>,
    pieces: HashMap<Piece, Rows>,
    /// Tasks that still read a piece.
    readers: HashMap<Piece, usize>,
    /// Rows of each task of each stage; `None` while it has not ended.
    rows: Vec<Vec<Option<usize>>>,
    /// Tasks of the last stage that have failed while rows before theirs may still be taken.
    failed: HashMap<usize, Error>,
    /// Number of parts of the result that were taken, and of those that may wait for it.
    taken: usize,
    ahead: usize,
    metrics: Metrics,
}

/// The outputs of a task, or its stage, its number and its error.
type TaskResult = std::result::Result<TaskEnd, (usize, usize, Error)>;

/// The outputs of a task that has ended.
struct TaskEnd {
    stage: usize,
    task: usize,
    outputs: Vec<Rows>,
    spilled_bytes: usize,
    busy: Duration,
}

impl LocalRun {
    fn new(
        stages: Stages,
        threads: Arc<Threads>,
        environment: Environment,
        budget: Arc<Budget>,
        ahead: usize,
    ) -> LocalRun {
        let mut readers = HashMap::new();
        for (number, stage) in stages.stages.iter().enumerate() {
            for task in 0..stage.tasks {
                let needs = stages.needs(number, task);
                needs.pieces.iter().for_each(|piece| *readers.entry(*piece).or_default() += 1);
            }
        }
        let rows = stages.stages.iter().map(|stage| vec![None; stage.tasks]).collect();
        let metrics =
            Metrics { stages: vec![StageMetrics::default(); stages.stages.len()], ..Metrics::default() };
        LocalRun {
            demand: Demand::new(&stages),
            stages,
            threads,
            environment,
            budget,
            pending: VecDeque::new(),
            running: JoinSet::new(),
            pieces: HashMap::new(),
            readers,
            rows,
            failed: HashMap::new(),
            taken: 0,
            ahead,
            metrics,
        }
    }

    fn last(&self) -> usize {
        self.stages.stages.len() - 1
    }

    /// The next part of the result, when it is made; `None` after the last one.
    fn next_part(&mut self) -> Result<Option<Arc<dyn KeptPart>>> {
        let last = self.last();
        if self.taken == self.stages.stages[last].tasks {
            return Ok(None);
        }
        self.start_ready()?;
        while self.rows[last][self.taken].is_none() {
            if let Some(error) = self.failed.remove(&self.taken) {
                return Err(error);
            }
            let running = &mut self.running;
            let ended = crate::engine::block_on(async { Ok(running.join_next().await) })?;
            match ended {
                Some(Ok(Ok(end))) => self.end(end),
                Some(Ok(Err((stage, task, error)))) => self.fail(stage, task, error)?,
                Some(Err(error)) => return Err(Error::Internal(format!("a task panicked: {error}"))),
                None => return Err(Error::Internal("no task is ready".to_owned())),
            }
            self.start_ready()?;
        }
        let part = self.take(Piece { source: PieceSource::Stage(last), task: self.taken, output: 0 });
        self.taken += 1;
        // While this one is used, others run.
        self.start_ready()?;
        Ok(Some(part))
    }

    /// Notes a task that has failed: the error comes in the place of its rows if they are taken one after the
    /// other, else at once.
    fn fail(&mut self, stage: usize, task: usize, error: Error) -> Result<()> {
        if stage != self.last() || self.ahead == usize::MAX {
            return Err(error);
        }
        self.failed.insert(task, error);
        Ok(())
    }

    /// Starts tasks whose inputs are there, on threads that are free.
    fn start_ready(&mut self) -> Result<()> {
        let runtime = self.threads.runtime.as_ref().map(Runtime::handle).cloned();
        let runtime = runtime.ok_or_else(|| Error::Internal("the threads have ended".to_owned()))?;
        while let Some(task) = self.demand.take() {
            self.pending.push_back(task);
        }
        // Nothing is taken after an error.
        let held = self.failed.keys().copied().fold(self.taken.saturating_add(self.ahead), usize::min);
        while self.running.len() < self.threads.count
            && let Some(at) = self.pending.iter().position(|(stage, task, needs)| {
                (*stage != self.last() || *task < held) && self.is_ready(needs)
            })
            && let Some((stage, task, needs)) = self.pending.remove(at)
        {
            let work = self.work(stage, task, needs);
            self.running.spawn_on(work, &runtime);
        }
        Ok(())
    }

    fn is_ready(&self, needs: &Needs) -> bool {
        let made = |piece: &Piece| match piece.source {
            PieceSource::Given(_) => true,
            PieceSource::Stage(stage) => self.rows[stage][piece.task].is_some(),
        };
        needs.pieces.iter().all(made)
            && needs
                .counts
                .iter()
                .all(|&(stage, tasks)| self.rows[stage][..tasks].iter().all(Option::is_some))
    }

    /// The future of a task, with its inputs.
    fn work(
        &mut self,
        stage: usize,
        task: usize,
        needs: Needs,
    ) -> impl Future<Output = TaskResult> + Send + use<> {
        let parts: Vec<(Piece, Arc<dyn KeptPart>)> = needs
            .pieces
            .into_iter()
            .map(|piece| match piece.source {
                PieceSource::Given(table) => {
                    (piece, Arc::clone(&self.stages.tables[table].parts[piece.task]))
                }
                PieceSource::Stage(_) => (piece, self.take(piece)),
            })
            .collect();
        let mut inputs = TaskInputs::default();
        needs.skipped.into_iter().for_each(|piece| inputs.insert(piece, Vec::new()));
        for (counted, tasks) in needs.counts {
            inputs.insert_rows(counted, self.rows[counted][..tasks].iter().flatten().copied().collect());
        }
        let environment = self.environment.clone();
        let budget = Arc::clone(&self.budget);
        let fragment = Arc::clone(&self.stages.stages[stage].fragment);
        let output = self.stages.stages[stage].output.clone();
        let ran = async move {
            let started = Instant::now();
            for (piece, part) in parts {
                inputs.insert(piece, part.fetch()?);
            }
            let context = task_context(Some(&environment), Arc::new(inputs));
            let made = run(&fragment, task, &output, context).await?;
            let keep = |batches| Rows::keep(batches, &budget, &environment);
            let outputs = made.outputs.into_iter().map(keep).collect::<Result<Vec<_>>>()?;
            let (spilled_bytes, busy) = (made.spilled_bytes, started.elapsed());
            Ok(TaskEnd { stage, task, outputs, spilled_bytes, busy })
        };
        ran.map_err(move |error| (stage, task, error))
    }

    /// A piece for one of its readers; the last one takes it.
    fn take(&mut self, piece: Piece) -> Arc<dyn KeptPart> {
        let left = self.readers.get_mut(&piece).map_or(0, |readers| {
            *readers -= 1;
            *readers
        });
        let rows = match left {
            0 => self.pieces.remove(&piece),
            _ => self.pieces.get(&piece).cloned(),
        };
        rows.map_or_else(|| Arc::new(LocalPart::default()) as _, |rows| Arc::new(rows) as _)
    }

    fn end(&mut self, end: TaskEnd) {
        let rows = end.outputs.iter().map(KeptPart::rows).sum();
        let bytes = end.outputs.iter().map(KeptPart::bytes).sum();
        self.rows[end.stage][end.task] = Some(rows);
        // Rows that wait in a file are spilled too.
        let spilled_bytes = end.spilled_bytes + end.outputs.iter().map(Rows::file_bytes).sum::<usize>();
        let task = TaskMetrics { rows, bytes, spilled_bytes, busy: end.busy, retries: 0 };
        self.metrics.stages[end.stage].add(task);
        self.stages.progress.add(task);
        let source = PieceSource::Stage(end.stage);
        for (output, part) in end.outputs.into_iter().enumerate() {
            self.pieces.insert(Piece { source, task: end.task, output }, part);
        }
        let skipped = self.demand.ended(end.stage, end.task, rows);
        self.stages.progress.skip(skipped.len());
        for (stage, task) in skipped {
            for piece in self.stages.needs(stage, task).pieces {
                self.take(piece);
            }
        }
    }
}
