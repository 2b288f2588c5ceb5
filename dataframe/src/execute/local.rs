//! The executor on threads of this process.

use super::left::leave;
use super::rows::{Budget, GrowingRows, Rows};
use super::threads::Threads;
use super::{Executor, Limits, Outcome, Parts, memory_bytes};
use crate::engine::{Environment, task_context};
use crate::error::{Error, Result};
use crate::metrics::{Metrics, StageMetrics, TaskMetrics};
use crate::stage::{
    Demand, KeptPart, Needs, PartBatches, Piece, PieceSource, Stages, TaskInputs, TaskRows, batches_or_error,
    fragment_of_task, run,
};
use arrow::array::RecordBatch;
use futures::TryFutureExt;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tharsis_cancel::RunEnds;
use tokio::task::{JoinError, JoinSet};

/// Most bytes that are set aside for batches on their way between operators, buffers of files, and what the
/// allocator keeps. Chosen when outputs of running tasks were not counted: it may be more than is needed.
const UNCOUNTED_BYTES_MAX: u64 = 512 << 20;

/// Time in which tasks that are given up come to their next batch, mostly.
const END_TIME: Duration = Duration::from_millis(50);

/// Runs tasks on threads of this process. Rows between stages are passed without a copy.
#[derive(Debug)]
pub struct LocalExecutor {
    limits: Limits,
    /// Room for rows between stages, and for tables that were computed.
    budget: Arc<Budget>,
    threads: Kept,
    environment: OnceLock<Result<Environment>>,
    spill_dirs: Vec<PathBuf>,
    deadline: Option<Instant>,
}

/// The threads of an executor, from its first run on. Those that a cancelled run has left tasks on are let
/// go, so that the next run has all of its own.
type Kept = Arc<Mutex<Option<Arc<Threads>>>>;

impl LocalExecutor {
    /// An executor with this many threads. A part of these bytes is set aside for what is not counted, such
    /// as batches on their way between operators. Operators may take half of the rest before they spill, rows
    /// between stages and tables that were computed the other half before they wait in files.
    #[must_use]
    pub fn sized(threads: usize, memory_bytes: u64) -> LocalExecutor {
        let counted_bytes = memory_bytes - (memory_bytes / 4).min(UNCOUNTED_BYTES_MAX);
        let limits = Limits { threads: threads.max(1), memory_bytes: (counted_bytes / 2).max(1) };
        let budget = Budget::new(counted_bytes / 2);
        let (threads, environment) = (Kept::default(), OnceLock::new());
        LocalExecutor { limits, budget, threads, environment, spill_dirs: Vec::new(), deadline: None }
    }

    /// Has operators and rows spill to files in these folders, which are made if they are not there; without
    /// any, to that of the system for temporary files.
    #[must_use]
    pub fn spill_dirs(self, folders: Vec<PathBuf>) -> LocalExecutor {
        LocalExecutor { spill_dirs: folders, environment: OnceLock::new(), ..self }
    }

    /// Gives up all plans at this moment, also those that run then. Their tasks end at their next batch.
    #[must_use]
    pub fn until(self, deadline: Instant) -> LocalExecutor {
        LocalExecutor { deadline: Some(deadline), ..self }
    }

    fn threads(&self) -> Result<Arc<Threads>> {
        let mut kept = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = &*kept {
            return Ok(Arc::clone(threads));
        }
        let made = Threads::new(self.limits.threads).map(Arc::new);
        let made = made.map_err(|error| Error::Internal(format!("no threads: {error}")))?;
        Ok(Arc::clone(kept.insert(made)))
    }

    fn environment(&self) -> Result<&Environment> {
        let environment = self
            .environment
            .get_or_init(|| Environment::new(self.limits.memory_bytes, self.spill_dirs.clone()));
        environment.as_ref().map_err(Clone::clone)
    }
}

impl Default for LocalExecutor {
    /// An executor with all cores of this machine and half of its memory, or of what its control group
    /// allows.
    fn default() -> LocalExecutor {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        LocalExecutor::sized(threads, memory_bytes() / 2)
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
        let ends = RunEnds::of(self.deadline);
        ends.check()?;
        let environment = self.environment()?.clone();
        let mut run =
            LocalRun::new(stages.clone(), self.threads()?, environment, Arc::clone(&self.budget), ahead);
        run.kept = Arc::clone(&self.threads);
        run.ends = ends;
        Ok(run)
    }
}

/// The tasks of a plan, run by one executor.
struct LocalRun {
    stages: Stages,
    threads: Arc<Threads>,
    /// The threads for other runs of the executor.
    kept: Kept,
    environment: Environment,
    budget: Arc<Budget>,
    demand: Demand,
    /// Calls that have not started, in order of stages.
    pending: VecDeque<(Call, Needs)>,
    running: JoinSet<CallResult>,
    /// Of tasks that several calls do, what these have made.
    parted: HashMap<(usize, usize), Vec<Option<Vec<Rows>>>>,
    /// The rows of each piece, one after the other.
    pieces: HashMap<Piece, Vec<Rows>>,
    /// Calls that still read a piece.
    readers: HashMap<Piece, usize>,
    /// Rows of each task of each stage; `None` while it has not ended.
    rows: Vec<Vec<Option<usize>>>,
    /// Tasks of the last stage that have failed while rows before theirs may still be taken.
    failed: HashMap<usize, Error>,
    /// Number of parts of the result that were taken, and of those that may wait for it.
    taken: usize,
    ahead: usize,
    ends: RunEnds,
    metrics: Metrics,
}

/// A task, or a part of its rows.
#[derive(Clone, Copy)]
struct Call {
    stage: usize,
    task: usize,
    /// Its number among the calls that do the task.
    part: usize,
}

/// The outputs of a call, or its error.
type CallResult = std::result::Result<CallEnd, (Call, Error)>;

/// The outputs of a call that has ended.
struct CallEnd {
    call: Call,
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
            kept: Kept::default(),
            environment,
            budget,
            pending: VecDeque::new(),
            running: JoinSet::new(),
            parted: HashMap::new(),
            pieces: HashMap::new(),
            readers,
            rows,
            failed: HashMap::new(),
            taken: 0,
            ahead,
            ends: RunEnds::default(),
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
            match self.next_end()? {
                Some(Ok(Ok(end))) => self.end(end),
                Some(Ok(Err((call, error)))) => self.fail(call, error)?,
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

    /// The end of a task, once one ends; `None` if none runs.
    fn next_end(&mut self) -> Result<Option<std::result::Result<CallResult, JoinError>>> {
        let (running, ends) = (&mut self.running, &self.ends);
        let ended = crate::engine::block_on(async {
            while let Some(pause) = ends.pause() {
                if let Err(ended) = ends.check() {
                    running.abort_all();
                    let all = async { while running.join_next().await.is_some() {} };
                    // Tasks that end later are left behind.
                    let _late = tokio::time::timeout(END_TIME, all).await;
                    return Err(ended.into());
                }
                if let Ok(ended) = tokio::time::timeout(pause, running.join_next()).await {
                    return Ok(ended);
                }
            }
            Ok(running.join_next().await)
        });
        if ended.is_err() {
            leave(&self.threads);
            self.give_up_threads();
        }
        ended
    }

    /// Has other runs of the executor use other threads, if tasks of this one still have some of its own.
    fn give_up_threads(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if 0 < self.threads.tasks() && kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &self.threads)) {
            *kept = None;
        }
    }

    /// Notes a task that has failed: the error comes in the place of its rows if they are taken one after the
    /// other, else at once.
    fn fail(&mut self, call: Call, error: Error) -> Result<()> {
        if call.stage != self.last() || self.ahead == usize::MAX {
            return Err(error);
        }
        self.failed.insert(call.task, error);
        Ok(())
    }

    /// Starts tasks whose inputs are there, on threads that are free.
    fn start_ready(&mut self) -> Result<()> {
        let runtime = self.threads.handle().cloned();
        let runtime = runtime.ok_or_else(|| Error::Internal("the threads have ended".to_owned()))?;
        while let Some((stage, task, calls)) = self.demand.take() {
            self.add(stage, task, calls);
        }
        // Nothing is taken after an error.
        let held = self.failed.keys().copied().fold(self.taken.saturating_add(self.ahead), usize::min);
        while self.running.len() < self.threads.count
            && let Some(at) = self.pending.iter().position(|(call, needs)| {
                (call.stage != self.last() || call.task < held) && self.is_ready(needs)
            })
            && let Some((call, needs)) = self.pending.remove(at)
        {
            let work = self.work(call, needs);
            self.running.spawn_on(work, &runtime);
        }
        Ok(())
    }

    /// Adds the calls that do a task.
    fn add(&mut self, stage: usize, task: usize, calls: Vec<Needs>) {
        if calls.len() != 1 {
            let pieces = calls.iter().flat_map(|needs| &needs.pieces);
            pieces.for_each(|piece| *self.readers.entry(*piece).or_default() += 1);
            for piece in self.stages.needs(stage, task).pieces {
                self.take(piece);
            }
        }
        if calls.is_empty() {
            self.stages.progress.skip(1);
            return self.end_task(stage, task, Vec::new());
        }
        if 1 < calls.len() {
            self.parted.insert((stage, task), vec![None; calls.len()]);
            self.stages.progress.more(calls.len() - 1);
        }
        for (part, needs) in calls.into_iter().enumerate() {
            self.pending.push_back((Call { stage, task, part }, needs));
        }
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

    /// The future of a call, with its inputs.
    fn work(&mut self, call: Call, needs: Needs) -> impl Future<Output = CallResult> + Send + use<> {
        let Call { stage, task, .. } = call;
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
        let fragment = fragment_of_task(&self.stages.stages[stage]);
        let output = self.stages.stages[stage].output.clone();
        let options = self.stages.stages[stage].options.clone();
        let ran = async move {
            let started = Instant::now();
            parts.into_iter().for_each(|(piece, part)| inputs.insert_part(piece, part));
            needs.slices.into_iter().for_each(|(piece, start, end)| inputs.slice(piece, start, end));
            let context = task_context(Some(&environment), Arc::new(inputs), &options)?;
            let place = |_| GrowingRows::new(&budget, &environment);
            let TaskRows { outputs, spilled_bytes } = run(&fragment?, task, &output, context, place).await?;
            Ok(CallEnd { call, outputs, spilled_bytes, busy: started.elapsed() })
        };
        ran.map_err(move |error| (call, error))
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
        Arc::new(Chain(rows.unwrap_or_default()))
    }

    fn end(&mut self, end: CallEnd) {
        let rows = end.outputs.iter().map(KeptPart::rows).sum();
        let bytes = end.outputs.iter().map(KeptPart::bytes).sum();
        // Rows that wait in a file are spilled too.
        let spilled_bytes = end.spilled_bytes + end.outputs.iter().map(Rows::file_bytes).sum::<usize>();
        let task = TaskMetrics { rows, bytes, spilled_bytes, busy: end.busy, retries: 0 };
        let Call { stage, task: number, part } = end.call;
        self.metrics.stages[stage].add(task);
        self.stages.progress.add(task);
        let Some(parts) = self.parted.get_mut(&(stage, number)) else {
            return self.end_task(stage, number, vec![end.outputs]);
        };
        parts[part] = Some(end.outputs);
        if parts.iter().all(Option::is_some) {
            let parts = self.parted.remove(&(stage, number)).into_iter().flatten().flatten().collect();
            self.end_task(stage, number, parts);
        }
    }

    /// Notes a task of whose calls these are the outputs.
    fn end_task(&mut self, stage: usize, task: usize, calls: Vec<Vec<Rows>>) {
        let mut sizes = vec![(0, 0); self.stages.stages[stage].output.count()];
        let source = PieceSource::Stage(stage);
        for outputs in calls {
            for (output, rows) in outputs.into_iter().enumerate() {
                sizes[output].0 += rows.rows();
                sizes[output].1 += rows.bytes();
                self.pieces.entry(Piece { source, task, output }).or_default().push(rows);
            }
        }
        self.rows[stage][task] = Some(sizes.iter().map(|(rows, _)| rows).sum());
        let skipped = self.demand.ended(stage, task, &sizes);
        self.stages.progress.skip(skipped.len());
        for (stage, task) in skipped {
            for piece in self.stages.needs(stage, task).pieces {
                self.take(piece);
            }
        }
    }
}

/// Rows one after the other.
#[derive(Debug)]
struct Chain(Vec<Rows>);

impl KeptPart for Chain {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        let batches = self.0.iter().map(Rows::fetch).collect::<Result<Vec<_>>>()?;
        Ok(batches.into_iter().flatten().collect())
    }

    fn batches(&self) -> Result<PartBatches<'static>> {
        Ok(Box::new(self.0.clone().into_iter().flat_map(|rows| batches_or_error(rows.batches()))))
    }

    fn rows(&self) -> usize {
        self.0.iter().map(Rows::rows).sum()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(Rows::bytes).sum()
    }
}
