//! Drives a plan: submits the calls of all stages in order, and lets go of rows after their last reader.
//!
//! Nothing here waits for a stage: a call names the objects that it reads, and the engine starts it when they
//! are there.

use super::fault::from_engine;
use super::kept::InStore;
#[cfg(feature = "tensor")]
use super::kept::{ChunkInStore, is_same};
use super::report::Report;
use super::task::{self, Work};
#[cfg(feature = "tensor")]
use crate::between::convert::Form;
use crate::object::TaskOutput;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tharsis_dataframe::{
    Error, KeptPart, Metrics, Needs, Outcome, Piece, PieceSource, Result, StageMetrics, Stages,
};
use tharsis_remote::{Blob, Client, ObjectRef, Options, cancel, put};

/// A plan that is run.
pub(super) struct Drive<'a> {
    client: &'a Client,
    options: Options,
    stages: &'a Stages,
    memory_bytes: u64,
    /// Rows that calls are yet to read.
    rows: HashMap<Piece, ObjectRef<TaskOutput>>,
    /// Calls that are yet to be submitted and read a piece.
    readers: HashMap<Piece, usize>,
    /// The report of each task of each stage.
    reports: Vec<Vec<ObjectRef<TaskOutput>>>,
    /// Whether everything has ended, so that nothing is to be cancelled.
    ended: bool,
}

impl<'a> Drive<'a> {
    /// A run of these stages; each call's operators may take this many bytes.
    pub(super) fn new(
        client: &'a Client,
        options: Options,
        stages: &'a Stages,
        memory_bytes: u64,
    ) -> Result<Drive<'a>> {
        let mut readers: HashMap<Piece, usize> = HashMap::new();
        for stage in 0..stages.count() {
            for task in 0..stages.tasks_of(stage) {
                stages.needs_of(stage, task).pieces.iter().for_each(|piece| {
                    *readers.entry(*piece).or_default() += 1;
                });
            }
        }
        let (rows, reports) = (HashMap::new(), Vec::new());
        Ok(Drive { client, options, stages, memory_bytes, rows, readers, reports, ended: false })
    }

    /// Runs all stages.
    pub(super) fn run(mut self) -> Result<Outcome> {
        for stage in 0..self.stages.count() {
            self.submit_stage(stage)?;
        }
        let mut metrics = Metrics::default();
        let mut last = Vec::new();
        for reports in &self.reports {
            let mut stage = StageMetrics::default();
            last.clear();
            for report in reports {
                let report = read(report)?;
                stage.add(report.rows(), report.bytes(), Duration::from_nanos(report.busy_ns));
                metrics.retries += u64::from(report.attempt);
                last.push(report);
            }
            metrics.stages.push(stage);
        }
        self.ended = true;
        Ok(Outcome { parts: self.result(&last)?, metrics })
    }

    fn submit_stage(&mut self, stage: usize) -> Result<()> {
        let bytes = put(&Blob::from(self.stages.encode(stage)?)).map_err(from_engine)?;
        let returns = 1 + self.stages.outputs_of(stage);
        let mut reports = Vec::new();
        for task in 0..self.stages.tasks_of(stage) {
            let needs = self.stages.needs_of(stage, task);
            let inputs = self.inputs(&needs)?;
            let work = Work {
                whole: self.stages.in_one_batch() && stage + 1 == self.stages.count(),
                #[cfg(feature = "tensor")]
                formed: self.formed(&needs),
                ..task::work(task, &needs, |stage| self.stages.tasks_of(stage), self.memory_bytes)
            };
            let options = self.options.clone().num_returns(returns as u32);
            let mut made = task::call(options, &bytes, &work, &inputs).into_iter();
            reports.push(made.next().ok_or_else(|| Error::Internal("a call gave no report".to_owned()))?);
            let source = PieceSource::Stage(stage);
            for (output, object) in made.enumerate() {
                self.rows.insert(Piece { source, task, output }, object);
            }
        }
        self.reports.push(reports);
        Ok(())
    }

    /// The objects that a call reads: its pieces, then the reports that it counts rows by.
    fn inputs(&mut self, needs: &Needs) -> Result<Vec<ObjectRef<TaskOutput>>> {
        let mut inputs = Vec::with_capacity(needs.pieces.len());
        for piece in &needs.pieces {
            inputs.push(self.object(*piece)?);
        }
        for &stage in &needs.counts {
            inputs.extend(self.reports[stage].iter().cloned());
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
        let left = self.readers.get_mut(&piece).map_or(0, |readers| {
            *readers -= 1;
            *readers
        });
        match left {
            0 => self.rows.remove(&piece),
            _ => self.rows.insert(piece, object.clone()),
        };
        Ok(object)
    }

    /// A part of a resident table, put into the store unless it is there.
    fn given(&self, table: usize, part: usize) -> Result<ObjectRef<TaskOutput>> {
        let part = &self.stages.tables()[table].parts[part];
        #[cfg(feature = "tensor")]
        if let Some(chunk) = self.chunk(part) {
            return Ok(chunk.object.clone());
        }
        let kept = (part.as_ref() as &dyn std::any::Any).downcast_ref::<InStore>();
        if let Some(object) = kept.and_then(|kept| kept.object(self.client)) {
            return Ok(object.clone());
        }
        put(&TaskOutput::of_rows(part.fetch()?)).map_err(from_engine)
    }

    /// A part that is a chunk of a tensor in the store of this client.
    #[cfg(feature = "tensor")]
    fn chunk<'p>(&self, part: &'p Arc<dyn KeptPart>) -> Option<&'p ChunkInStore> {
        let chunk = (part.as_ref() as &dyn std::any::Any).downcast_ref::<ChunkInStore>();
        chunk.filter(|chunk| is_same(&chunk.client, self.client))
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

    /// The outputs of the last stage, whose rows stay in the store.
    fn result(&mut self, reports: &[Report]) -> Result<Vec<Arc<dyn KeptPart>>> {
        let source = PieceSource::Stage(self.stages.count() - 1);
        let mut parts: Vec<Arc<dyn KeptPart>> = Vec::new();
        for (task, report) in reports.iter().enumerate() {
            let object = self.rows.remove(&Piece { source, task, output: 0 });
            let object = object.ok_or_else(|| Error::Internal("a result was let go".to_owned()))?;
            parts.push(Arc::new(InStore::new(object, self.client, report.rows(), report.bytes())));
        }
        Ok(parts)
    }
}

fn read(report: &ObjectRef<TaskOutput>) -> Result<Report> {
    report.get().map_err(from_engine)?.into_report()
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        for report in self.reports.iter().flatten() {
            // Calls are left only after a failure. One that cannot be stopped ends by itself, and its rows
            // are freed.
            let _ignored = cancel(report, false, false);
        }
    }
}
