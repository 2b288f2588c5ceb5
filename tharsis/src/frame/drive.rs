//! Drives a plan: submits the calls of all stages in order, and lets go of rows after their last reader.
//!
//! Nothing here waits for a stage: a call names the objects that it reads, and the engine starts it when they
//! are there. Calls that make the result may be held back until the parts before theirs were taken.

use super::failure::{from_engine, not_given};
use super::gathered;
use super::kept::InStore;
#[cfg(feature = "arrays")]
use super::kept::{ChunkInStore, is_same};
use super::report::Report;
use super::task::{self, Work};
#[cfg(feature = "arrays")]
use crate::between::convert::Form;
use crate::object::{NotGiven, TaskOutput, wait_for};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tharsis_cancel::RunEnds;
use tharsis_dataframe::{
    Demand, Error, KeptPart, Metrics, Needs, Outcome, Piece, PieceSource, Result, StageMetrics, Stages,
};
use tharsis_remote::{Blob, Client, FailureKind, ObjectRef, Options, cancel, current, put};

/// A plan that is run.
pub(super) struct Drive {
    client: Client,
    options: Options,
    stages: Stages,
    memory_bytes: u64,
    demand: Demand,
    /// Each stage as bytes, once one of its tasks was submitted.
    encoded: Vec<Option<ObjectRef<Blob>>>,
    /// Rows that calls are yet to read: of a task that several calls do, one object after the other.
    rows: HashMap<Piece, Vec<ObjectRef<TaskOutput>>>,
    /// Calls that are yet to be submitted and read a piece.
    readers: HashMap<Piece, usize>,
    /// The reports of the calls that do each task of each stage, once these were submitted.
    reports: Vec<Vec<Option<Vec<ObjectRef<TaskOutput>>>>>,
    /// Number of tasks of the last stage whose parts were taken, and of those that may run before they are.
    taken: usize,
    ahead: usize,
    /// Parts of the result that its last task has made, and that were not taken.
    parts: VecDeque<Arc<dyn KeptPart>>,
    /// Tasks of the last stage that are not to run yet, with the inputs of their calls.
    held: VecDeque<(usize, Vec<Needs>)>,
    /// Whether everything has ended, so that nothing is to be cancelled.
    ended: bool,
    ends: RunEnds,
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
            parts: VecDeque::new(),
            held: VecDeque::new(),
            ended: false,
            ends: RunEnds::default(),
        }
    }

    /// The same run, given up at these ends.
    pub(super) fn until(mut self, ends: RunEnds) -> Drive {
        self.ends = ends;
        self
    }

    /// The time until the deadline, if there is one.
    fn time_left(&self) -> Result<Option<Duration>> {
        self.ends.check()?;
        Ok(self.ends.left())
    }

    /// The same run, so many of whose last tasks run before their parts are taken.
    pub(super) fn ahead(mut self, tasks: usize) -> Drive {
        self.ahead = tasks;
        self
    }

    /// Runs all stages.
    pub(super) fn run(mut self) -> Result<Outcome> {
        self.submit_all()?;
        let mut metrics = Metrics::default();
        for reports in &self.reports {
            let mut stage = StageMetrics::default();
            for report in reports.iter().flatten().flatten() {
                let report = self.read(report)?;
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
        while self.parts.is_empty() {
            let (last, task) = (self.last(), self.taken);
            if task == self.stages.tasks_of(last) {
                self.ended = true;
                return Ok(None);
            }
            self.submit_all()?;
            let objects = self.rows.remove(&Piece { source: PieceSource::Stage(last), task, output: 0 });
            let objects = objects.ok_or_else(|| Error::Internal("a result was let go".to_owned()))?;
            for (report, object) in self.reports(last, task)?.into_iter().zip(objects) {
                let part = InStore::new(object, &self.client, report.rows(), report.bytes());
                self.parts.push_back(Arc::new(part));
            }
            self.taken += 1;
            // While this one is used, others are made.
            self.submit_all()?;
        }
        Ok(self.parts.pop_front())
    }

    fn last(&self) -> usize {
        self.stages.count() - 1
    }

    /// Submits all calls that are not held back, and waits for those that tell which others are needed.
    fn submit_all(&mut self) -> Result<()> {
        loop {
            while let Some((stage, task, calls)) = self.demand.take() {
                self.count_reads(stage, task, &calls);
                if stage == self.last() {
                    self.held.push_back((task, calls))
                } else {
                    self.submit(stage, task, &calls)?
                }
            }
            let end = self.taken.saturating_add(self.ahead);
            while let Some((task, calls)) = self.held.pop_front_if(|(task, _)| *task < end) {
                self.submit(self.last(), task, &calls)?;
            }
            let Some((stage, task)) = self.demand.awaited() else { return Ok(()) };
            let mut sizes = vec![(0, 0); self.stages.outputs_of(stage)];
            for report in self.reports(stage, task)? {
                for (sum, (rows, bytes)) in sizes.iter_mut().zip(report.outputs) {
                    *sum = (sum.0 + rows, sum.1 + bytes);
                }
            }
            self.note_ended(stage, task, &sizes);
        }
    }

    /// Notes the rows and bytes of each output of a task, which may tell of others that they need not run.
    fn note_ended(&mut self, stage: usize, task: usize, sizes: &[(usize, usize)]) {
        let skipped = self.demand.ended(stage, task, sizes);
        self.stages.progress().skip(skipped.len());
        for (stage, task) in skipped {
            self.stages.needs_of(stage, task).pieces.iter().for_each(|piece| self.release(piece));
        }
    }

    /// The reports of the calls that do a task, once these have ended.
    fn reports(&self, stage: usize, task: usize) -> Result<Vec<Report>> {
        self.submitted(stage, task)?.iter().map(|report| self.read(report)).collect()
    }

    /// Waits for a report until the run is given up.
    fn read(&self, report: &ObjectRef<TaskOutput>) -> Result<Report> {
        let given = wait_for(report, &self.ends).map_err(|reason| match reason {
            // The time of the call was that until the deadline.
            NotGiven::Failed(error)
                if error.kind() == FailureKind::TimedOut && self.ends.deadline().is_some() =>
            {
                Error::timeout()
            }
            reason => not_given(reason),
        });
        given?.into_report()
    }

    fn submitted(&self, stage: usize, task: usize) -> Result<&[ObjectRef<TaskOutput>]> {
        let reports = self.reports[stage][task].as_deref();
        reports.ok_or_else(|| Error::Internal(format!("task {task} of stage {stage} was not submitted")))
    }

    /// Counts the reads of calls that do a task, if these are not one call.
    fn count_reads(&mut self, stage: usize, task: usize, calls: &[Needs]) {
        match calls.len() {
            0 => self.stages.progress().skip(1),
            1 => return,
            calls => self.stages.progress().more(calls - 1),
        }
        let pieces = calls.iter().flat_map(|needs| &needs.pieces);
        pieces.for_each(|piece| *self.readers.entry(*piece).or_default() += 1);
        self.stages.needs_of(stage, task).pieces.iter().for_each(|piece| self.release(piece));
    }

    fn submit(&mut self, stage: usize, task: usize, calls: &[Needs]) -> Result<()> {
        self.reports[stage][task] = Some(Vec::new());
        let source = PieceSource::Stage(stage);
        for output in 0..self.stages.outputs_of(stage) {
            self.rows.insert(Piece { source, task, output }, Vec::new());
        }
        if calls.is_empty() {
            self.note_ended(stage, task, &vec![(0, 0); self.stages.outputs_of(stage)]);
        }
        calls.iter().try_for_each(|needs| self.submit_call(stage, task, needs))
    }

    fn submit_call(&mut self, stage: usize, task: usize, needs: &Needs) -> Result<()> {
        let bytes = match &self.encoded[stage] {
            Some(bytes) => bytes.clone(),
            None => put(&Blob::from(self.stages.encode(stage)?)).map_err(from_engine)?,
        };
        let mut work = Work {
            task,
            pieces: Vec::new(),
            skipped: needs.skipped.clone(),
            slices: needs.slices.clone(),
            counts: Vec::new(),
            memory_bytes: self.memory_bytes,
            single_bytes: gathered::single_bytes(self.memory_bytes, self.makers(stage)),
            whole: self.stages.in_one_batch() && stage == self.last(),
            #[cfg(feature = "arrays")]
            formed: Vec::new(),
        };
        let inputs = self.inputs(needs, &mut work)?;
        let mut options = self.options.clone().num_returns(1 + self.stages.outputs_of(stage) as u32);
        // A call that runs is only told that it is cancelled, and may go on for a while.
        if let Some(left) = self.time_left()? {
            options = options.timeout(left);
        }
        let mut made = task::call(options, &bytes, &work, &inputs).into_iter();
        let report = made.next().ok_or_else(|| Error::Internal("a call gave no report".to_owned()))?;
        self.reports[stage][task].get_or_insert_default().push(report);
        self.encoded[stage] = Some(bytes);
        let source = PieceSource::Stage(stage);
        for (output, object) in made.enumerate() {
            self.rows.entry(Piece { source, task, output }).or_default().push(object);
        }
        Ok(())
    }

    /// The number of tasks of a stage whose outputs one reader may have. Those of the last stage are read one
    /// by one.
    fn makers(&self, stage: usize) -> usize {
        if stage == self.last() { 1 } else { self.stages.tasks_of(stage) }
    }

    /// The objects that a call reads, and what its work says of them: those of its pieces, which come first,
    /// then the reports that it counts rows by, as many as there are for each task.
    fn inputs(&mut self, needs: &Needs, work: &mut Work) -> Result<Vec<ObjectRef<TaskOutput>>> {
        let mut inputs = Vec::with_capacity(needs.pieces.len());
        for piece in &needs.pieces {
            #[cfg(feature = "arrays")]
            if let Some(form) = self.form(piece) {
                work.formed.push((inputs.len(), form));
            }
            let objects = self.objects(*piece)?;
            if objects.is_empty() {
                work.skipped.push(*piece)
            } else {
                work.pieces.extend(objects.iter().map(|_| *piece))
            }
            inputs.extend(objects);
        }
        for &(stage, tasks) in &needs.counts {
            let mut calls = Vec::with_capacity(tasks);
            for task in 0..tasks {
                let reports = self.submitted(stage, task)?;
                calls.push(reports.len());
                inputs.extend(reports.iter().cloned());
            }
            work.counts.push((stage, calls));
        }
        Ok(inputs)
    }

    /// The objects of a piece for one of its readers.
    fn objects(&mut self, piece: Piece) -> Result<Vec<ObjectRef<TaskOutput>>> {
        let objects = match (self.rows.get(&piece), piece.source) {
            (Some(objects), _) => objects.clone(),
            (None, PieceSource::Given(table)) => vec![self.given(table, piece.task)?],
            (None, PieceSource::Stage(_)) => return Err(Error::Internal(format!("{piece:?} was let go"))),
        };
        self.rows.insert(piece, objects.clone());
        self.release(&piece);
        Ok(objects)
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
        #[cfg(feature = "arrays")]
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
    #[cfg(feature = "arrays")]
    fn chunk<'p>(&self, part: &'p Arc<dyn KeptPart>) -> Option<&'p ChunkInStore> {
        let chunk = (part.as_ref() as &dyn std::any::Any).downcast_ref::<ChunkInStore>();
        chunk.filter(|chunk| is_same(&chunk.client, &self.client))
    }

    /// The form of the rows of a piece that is a chunk of a tensor.
    #[cfg(feature = "arrays")]
    fn form(&self, piece: &Piece) -> Option<Form> {
        let PieceSource::Given(table) = piece.source else { return None };
        self.chunk(&self.stages.tables()[table].parts[piece.task]).map(|chunk| chunk.form.clone())
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _binding = current::bind(self.client.clone());
        for report in self.reports.iter().flatten().flatten().flatten() {
            // Calls are left after a failure, or if not all parts were taken. One that cannot be stopped ends
            // by itself, and its rows are freed.
            let _ignored = cancel(report, false, false);
        }
    }
}
