//! The executor on threads of this process.

use super::rows::{Budget, Rows};
use super::{Executor, Limits, Metrics, Outcome, StageMetrics};
use crate::engine::{Environment, task_context};
use crate::error::{Error, Result};
use crate::stage::{KeptPart, LocalPart, Needs, Piece, PieceSource, Stages, TaskInputs, run};
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
    runtime: OnceLock<std::io::Result<Runtime>>,
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
        let mut run = LocalRun::new(stages, environment, &self.budget, self.limits.threads);
        run.drive(runtime)?;
        let mut outcome = run.outcome();
        outcome.metrics.elapsed = started.elapsed();
        Ok(outcome)
    }
}

/// The tasks of a plan, run by one executor.
struct LocalRun<'a> {
    stages: &'a Stages,
    environment: &'a Environment,
    budget: &'a Arc<Budget>,
    threads: usize,
    /// Tasks that have not started, in order of stages.
    pending: VecDeque<(usize, usize, Needs)>,
    pieces: HashMap<Piece, Rows>,
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
    outputs: Vec<Rows>,
    busy: Duration,
}

impl<'a> LocalRun<'a> {
    fn new(
        stages: &'a Stages,
        environment: &'a Environment,
        budget: &'a Arc<Budget>,
        threads: usize,
    ) -> LocalRun<'a> {
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
        LocalRun {
            stages,
            environment,
            budget,
            threads,
            pending,
            pieces: HashMap::new(),
            readers,
            rows,
            metrics,
        }
    }

    fn drive(&mut self, runtime: &Runtime) -> Result<()> {
        let mut running = JoinSet::new();
        while !self.pending.is_empty() || !running.is_empty() {
            while running.len() < self.threads
                && let Some(at) = self.pending.iter().position(|(_, _, needs)| self.is_ready(needs))
                && let Some((stage, task, needs)) = self.pending.remove(at)
            {
                let work = self.work(stage, task, needs);
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
    ) -> impl Future<Output = Result<TaskEnd>> + Send + use<> {
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
        for counted in needs.counts {
            inputs.insert_rows(counted, self.rows[counted].iter().flatten().copied().collect());
        }
        let environment = self.environment.clone();
        let budget = Arc::clone(self.budget);
        let fragment = Arc::clone(&self.stages.stages[stage].fragment);
        let output = self.stages.stages[stage].output.clone();
        async move {
            let started = Instant::now();
            for (piece, part) in parts {
                inputs.insert(piece, part.fetch()?);
            }
            let context = task_context(Some(&environment), Arc::new(inputs));
            let outputs = run(&fragment, task, &output, context).await?;
            let keep = |batches| Rows::keep(batches, &budget, &environment);
            let outputs = outputs.into_iter().map(keep).collect::<Result<Vec<_>>>()?;
            Ok(TaskEnd { stage, task, outputs, busy: started.elapsed() })
        }
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
        self.metrics.stages[end.stage].add(rows, bytes, end.busy);
        let source = PieceSource::Stage(end.stage);
        for (output, part) in end.outputs.into_iter().enumerate() {
            self.pieces.insert(Piece { source, task: end.task, output }, part);
        }
    }

    fn outcome(mut self) -> Outcome {
        let last = self.stages.stages.len() - 1;
        let source = PieceSource::Stage(last);
        let parts = (0..self.stages.stages[last].tasks)
            .map(|task| self.take(Piece { source, task, output: 0 }))
            .collect();
        Outcome { parts, metrics: self.metrics }
    }
}
