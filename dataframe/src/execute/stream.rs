//! Results whose rows are taken while later ones are made.
//!
//! A plan may have to begin anew: with smaller tasks, with files that are not cut, or because rows were lost.
//! Rows that were given before are then made again and left out, if they are the same; otherwise the stream
//! ends with an error. So every row is given once, and what is given is the result of one run.
//!
//! A part is read batch by batch, so that one of any size takes little memory here. If its rows are lost
//! meanwhile, the executor may have made it again: it is opened once more before the plan begins anew.

use super::{Executor, LOSSES_MAX, Parts, Planned, Query};
use crate::error::{Error, Result};
use crate::stage::{KeptPart, PartBatches};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// The rows of a plan's result, in their order.
pub(crate) struct Streamed {
    plan: LogicalPlan,
    executor: Arc<dyn Executor>,
    planned: Planned,
    parts: Parts,
    /// The part that is read, and the rows of it that were not read yet.
    part: Option<Opened>,
    batches: PartBatches<'static>,
    /// The rows that were given, in all runs, and those that this run has made.
    given: Digest,
    made: Digest,
    /// The reason why the plan began anew.
    restart: Option<Error>,
}

/// A part that is read.
struct Opened {
    part: Arc<dyn KeptPart>,
    /// The rows before it.
    before: Digest,
    /// Number of times that its rows were lost.
    losses: u32,
}

impl Streamed {
    /// Starts a plan.
    pub(crate) fn new(plan: LogicalPlan, executor: Arc<dyn Executor>) -> Result<Streamed> {
        let planned = query(&plan, &*executor).planned()?;
        let parts = executor.start(&planned.stages)?;
        Ok(Streamed {
            plan,
            executor,
            planned,
            parts,
            part: None,
            batches: Box::new(std::iter::empty()),
            given: Digest::default(),
            made: Digest::default(),
            restart: None,
        })
    }

    /// Names and types of the columns.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        self.planned.schema()
    }

    /// The next rows.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.batches.next() {
                Some(Ok(batch)) => match self.new_rows(batch)? {
                    Some(rows) => return Ok(Some(rows)),
                    None => continue,
                },
                Some(Err(error)) => {
                    self.open_anew(error)?;
                    continue;
                }
                None => {}
            }
            match self.parts.next() {
                Some(Ok(part)) => self.open(Opened { part, before: self.made, losses: 0 })?,
                Some(Err(error)) => self.begin_anew(error)?,
                None if self.made.rows < self.given.rows => return Err(self.changed()),
                None => return Ok(None),
            }
        }
    }

    /// Opens a part, of which no row was made in this run.
    fn open(&mut self, opened: Opened) -> Result<()> {
        self.made = opened.before;
        match opened.part.batches() {
            Ok(batches) => {
                self.batches = batches;
                self.part = Some(opened);
                Ok(())
            }
            Err(error) => self.begin_anew(error),
        }
    }

    /// Opens the part again whose rows could not be read, if they may have been made again meanwhile.
    fn open_anew(&mut self, error: Error) -> Result<()> {
        match self.part.take() {
            Some(part) if matches!(error, Error::Lost(_)) && part.losses < LOSSES_MAX => {
                self.restart = Some(error);
                self.open(Opened { losses: part.losses + 1, ..part })
            }
            _ => self.begin_anew(error),
        }
    }

    /// The rows of a batch that were not given before.
    fn new_rows(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let again = batch.num_rows().min(self.given.rows - self.made.rows);
        let new = batch.slice(again, batch.num_rows() - again);
        if 0 < again {
            self.made.add(&batch.slice(0, again))?;
            if self.made.rows == self.given.rows && self.made != self.given {
                return Err(self.changed());
            }
        }
        if new.num_rows() == 0 {
            return Ok(None);
        }
        self.made.add(&new)?;
        self.given = self.made;
        Ok(Some(new))
    }

    /// Starts the plan that is tried after an error; gives the error if there is none.
    fn begin_anew(&mut self, error: Error) -> Result<()> {
        self.planned = query(&self.plan, &*self.executor).after(self.planned.settings, error.clone())?;
        self.parts = self.executor.start(&self.planned.stages)?;
        (self.part, self.batches) = (None, Box::new(std::iter::empty()));
        self.made = Digest::default();
        self.restart = Some(error);
        Ok(())
    }

    fn changed(&self) -> Error {
        let cause = self.restart.clone().unwrap_or_else(|| Error::Internal("rows are missing".to_owned()));
        Error::Stream { rows: self.given.rows, cause: Arc::new(cause) }
    }
}

fn query<'a>(plan: &'a LogicalPlan, executor: &dyn Executor) -> Query<'a> {
    Query::new(plan, executor, &|plan| plan)
}

/// Number and hash of rows in their order; the borders of batches do not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest {
    rows: usize,
    hash: u64,
}

impl Digest {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut hashes = vec![0; batch.num_rows()];
        create_hashes(batch.columns(), &RandomState::with_seed(SEED), &mut hashes)?;
        self.rows += batch.num_rows();
        self.hash = hashes.iter().fold(self.hash, |sum, hash| sum.wrapping_mul(FACTOR).wrapping_add(*hash));
        Ok(())
    }
}

/// Any number: the hash of rows is compared within one process.
const SEED: u64 = 0x7468_6172_7369_7321;
/// An odd number without a pattern: the hash of a row depends on its position.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
