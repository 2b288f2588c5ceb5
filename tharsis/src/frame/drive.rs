//! Drives a plan: submits the calls of all stages in order, and lets go of rows after their last reader.
//!
//! Nothing here waits for a stage: a call names the objects that it reads, and the engine starts it when they
//! are there. Calls that make the result may be held back until the parts before theirs were taken.

use super::fault::from_engine;
use super::kept::InStore;
#[cfg(feature = "tensor")]
use super::kept::{ChunkInStore, is_same};
use super::report::Report;
use super::task::{self, Work};
#[cfg(feature = "tensor")]
use crate::between::convert::Form;
use crate::object::TaskOutput;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tharsis_dataframe::{
    Demand, Error, KeptPart, Metrics, Needs, Outcome, Piece, PieceSource, Result, StageMetrics, Stages,
};
use tharsis_remote::{Blob, Client, ObjectRef, Options, cancel, current, put};

/// A plan that is run.
pub(super) struct Drive {
    client: Client,
    options: Options,
    stages: Stages,
    memory_bytes: u64,
    demand: Demand,
    /// Each stage as bytes, once one of its tasks was submitted.
    encoded: Vec<Option<ObjectRef<Blob>>>,
    /// Rows that calls are yet to read.
    rows: HashMap<Piece, ObjectRef<TaskOutput>>,
    /// Calls that are yet to be submitted and read a piece.
    readers: HashMap<Piece, usize>,
    /// The report of each task of each stage that was submitted.
    reports: Vec<Vec<Option<ObjectRef<TaskOutput>>>>,
    /// Number of parts of the result that were taken, and of those that may be made before they are.
    taken: usize,
    ahead: usize,
    /// Calls that make later parts of the result.
    held: VecDeque<(usize, Needs)>,
    /// Whether everything has ended, so that nothing is to be cancelled.
    ended: bool,
}

impl Drive {
    /// A run of these stages; each call's operators may take this many bytes.
    pub(super) fn new(client: &Client, options: Options, stages: &Stages, memory_bytes: u64) -> Drive {
        let mut readers: HashMap<Piece, usize> = HashMap::new();
        let mut reports = Vec::new();
        for stage in 0..stages.count() {
            for task in 0..stages.tasks_of(stage) {
                stages.needs_of(stage, task).pieces.iter().for_each(|piece| {
                    *readers.entry(*piece).or_default() += 1;
                });
            }
            reports.push(vec![None; stages.tasks_of(stage)]);
        }
        Drive {
            client: client.clone(),
            options,
            memory_bytes,
            demand: Demand::new(stages),
            encoded: vec![None; stages.count()],
            stages: stages.clone(),
            rows: HashMap::new(),
            readers,
            reports,
            taken: 0,
            ahead: usize::MAX,
            held: VecDeque::new(),
            ended: false,
        }
    }

    /// The same run, which makes so many parts before they are taken.
    pub(super) fn ahead(mut self, parts: usize) -> Drive {
        self.ahead = parts;
        self
    }

    /// Runs all stages.
    pub(super) fn run(mut self) -> Result<Outcome> {
        self.submit_all()?;
        let mut metrics = Metrics::default();
        for reports in &self.reports {
            let mut stage = StageMetrics::default();
            for report in reports.iter().flatten() {
                let report = read(report)?;
                self.stages.progress().add(report.metrics());
                stage.add(report.metrics());
            }
            metrics.retries += stage.retries;
            metrics.stages.push(stage);
        }
        let mut parts = Vec::new();
        while let Some(part) = self.next_part()? {
            parts.push(part);
        }
        Ok(Outcome { parts, metrics })
    }

    /// The next part of the result, whose rows stay in the store; `None` after the last one.
    pub(super) fn next_part(&mut self) -> Result<Option<Arc<dyn KeptPart>>> {
        let (last, task) = (self.last(), self.taken);
        if task == self.stages.tasks_of(last) {
            self.ended = true;
            return Ok(None);
        }
        self.submit_all()?;
        let report = read(self.report(last, task)?)?;
        let object = self.rows.remove(&Piece { source: PieceSource::Stage(last), task, output: 0 });
        let object = object.ok_or_else(|| Error::Internal("a result was let go".to_owned()))?;
        self.taken += 1;
        // While this one is used, others are made.
        self.submit_all()?;
        Ok(Some(Arc::new(InStore::new(object, &self.client, report.rows(), report.bytes()))))
    }

    fn last(&self) -> usize {
        self.stages.count() - 1
    }

    /// Submits all calls that are not held back, and waits for those that tell which others are needed.
    fn submit_all(&mut self) -> Result<()> {
        loop {
            while let Some((stage, task, needs)) = self.demand.take() {
                match stage == self.last() {
                    true => self.held.push_back((task, needs)),
                    false => self.submit(stage, task, &needs)?,
                }
            }
            let end = self.taken.saturating_add(self.ahead);
            while let Some((task, needs)) = self.held.pop_front_if(|(task, _)| *task < end) {
                self.submit(self.last(), task, &needs)?;
            }
            let Some((stage, task)) = self.demand.awaited() else { return Ok(()) };
            let rows = read(self.report(stage, task)?)?.rows();
            let skipped = self.demand.ended(stage, task, rows);
            self.stages.progress().skip(skipped.len());
            for (stage, task) in skipped {
                self.stages.needs_of(stage, task).pieces.iter().for_each(|piece| self.release(piece));
            }
        }
    }

    fn report(&self, stage: usize, task: usize) -> Result<&ObjectRef<TaskOutput>> {
        let report = self.reports[stage][task].as_ref();
        report.ok_or_else(|| Error::Internal(format!("task {task} of stage {stage} was not submitted")))
    }

    fn submit(&mut self, stage: usize, task: usize, needs: &Needs) -> Result<()> {
        let bytes = match &self.encoded[stage] {
            Some(bytes) => bytes.clone(),
            None => put(&Blob::from(self.stages.encode(stage)?)).map_err(from_engine)?,
        };
        let inputs = self.inputs(needs)?;
        let work = Work {
            whole: self.stages.in_one_batch() && stage + 1 == self.stages.count(),
            #[cfg(feature = "tensor")]
            formed: self.formed(needs),
            ..task::work(task, needs, self.memory_bytes)
        };
        let options = self.options.clone().num_returns(1 + self.stages.outputs_of(stage) as u32);
        let mut made = task::call(options, &bytes, &work, &inputs).into_iter();
        let report = made.next().ok_or_else(|| Error::Internal("a call gave no report".to_owned()))?;
        self.reports[stage][task] = Some(report);
        self.encoded[stage] = Some(bytes);
        let source = PieceSource::Stage(stage);
        for (output, object) in made.enumerate() {
            self.rows.insert(Piece { source, task, output }, object);
        }
        Ok(())
    }

    /// The objects that a call reads: its pieces, then the reports that it counts rows by.
    fn inputs(&mut self, needs: &Needs) -> Result<Vec<ObjectRef<TaskOutput>>> {
        let mut inputs = Vec::with_capacity(needs.pieces.len());
        for piece in &needs.pieces {
            inputs.push(self.object(*piece)?);
        }
        for &(stage, tasks) in &needs.counts {
            for task in 0..tasks {
                inputs.push(self.report(stage, task)?.clone());
            }
        }
        Ok(inputs)
    }

    /// The object of a piece for one of its readers.
    fn object(&mut self, piece: Piece) -> Result<ObjectRef<TaskOutput>> {
        let object = match (self.rows.get(&piece), piece.source) {
            (Some(object), _) => object.clone(),
            (None, PieceSource::Given(table)) => self.given(table, piece.task)?,
            (None, PieceSource::Stage(_)) => return Err(Error::Internal(format!("{piece:?} was let go"))),
        };
        self.rows.insert(piece, object.clone());
        self.release(&piece);
        Ok(object)
    }

    /// Counts one read of a piece, and lets go of it after the last one.
    fn release(&mut self, piece: &Piece) {
        let left = self.readers.get_mut(piece).map_or(0, |readers| {
            *readers -= 1;
            *readers
        });
        if left == 0 {
            self.rows.remove(piece);
        }
    }

    /// A part of a resident table, put into the store unless it is there.
    fn given(&self, table: usize, part: usize) -> Result<ObjectRef<TaskOutput>> {
        let part = &self.stages.tables()[table].parts[part];
        #[cfg(feature = "tensor")]
        if let Some(chunk) = self.chunk(part) {
            return Ok(chunk.object.clone());
        }
        let kept = (part.as_ref() as &dyn std::any::Any).downcast_ref::<InStore>();
        if let Some(object) = kept.and_then(|kept| kept.object(&self.client)) {
            return Ok(object.clone());
        }
        put(&TaskOutput::of_rows(part.fetch()?)).map_err(from_engine)
    }

    /// A part that is a chunk of a tensor in the store of this client.
    #[cfg(feature = "tensor")]
    fn chunk<'p>(&self, part: &'p Arc<dyn KeptPart>) -> Option<&'p ChunkInStore> {
        let chunk = (part.as_ref() as &dyn std::any::Any).downcast_ref::<ChunkInStore>();
        chunk.filter(|chunk| is_same(&chunk.client, &self.client))
    }

    /// Those pieces that are chunks of tensors.
    #[cfg(feature = "tensor")]
    fn formed(&self, needs: &Needs) -> Vec<(usize, Form)> {
        let formed = needs.pieces.iter().enumerate().filter_map(|(at, piece)| {
            let PieceSource::Given(table) = piece.source else { return None };
            let chunk = self.chunk(&self.stages.tables()[table].parts[piece.task])?;
            Some((at, chunk.form.clone()))
        });
        formed.collect()
    }
}

fn read(report: &ObjectRef<TaskOutput>) -> Result<Report> {
    report.get().map_err(from_engine)?.into_report()
}

impl Drop for Drive {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _binding = current::bind(self.client.clone());
        for report in self.reports.iter().flatten().flatten() {
            // Calls are left after a failure, or if not all parts were taken. One that cannot be stopped ends
            // by itself, and its rows are freed.
            let _ignored = cancel(report, false, false);
        }
    }
}
