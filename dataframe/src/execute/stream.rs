//! Results whose rows are taken while later ones are made.
//!
//! A plan may have to begin anew: with smaller tasks, or with files that are not cut. Rows that were given
//! before are then made again and left out, if they are the same; otherwise the stream ends with an error. So
//! every row is given once, and what is given is the result of one run.

use super::{Executor, Parts, Planned, Query};
use crate::error::{Error, Result};
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
    /// The rest of the last part.
    batches: std::vec::IntoIter<RecordBatch>,
    /// The rows that were given, in all runs, and those that this run has made.
    given: Digest,
    made: Digest,
    /// The reason why the plan began anew.
    restart: Option<Error>,
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
            batches: Vec::new().into_iter(),
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
            if let Some(batch) = self.batches.next() {
                match self.new_rows(batch)? {
                    Some(rows) => return Ok(Some(rows)),
                    None => continue,
                }
            }
            match self.parts.next().map(|part| part?.fetch()) {
                Some(Ok(batches)) => self.batches = batches.into_iter(),
                Some(Err(error)) => self.begin_anew(error)?,
                None if self.made.rows < self.given.rows => return Err(self.changed()),
                None => return Ok(None),
            }
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
