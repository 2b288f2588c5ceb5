//! The interface for other executors: stages as bytes, and the tasks of a stage that came as bytes.

use super::codec;
use super::cut::{Stage, Stages};
use super::part::Resident;
use super::piece::Needs;
use super::task::{OutputRows, TaskInputs, TaskRows, run};
use super::volatile::is_volatile;
use crate::engine::{Environment, block_on, task_context, unless_cancelled};
use crate::error::Result;
use crate::progress::Progress;
use std::sync::Arc;

impl Stages {
    /// Number of stages. The last one makes the result.
    #[must_use]
    pub fn count(&self) -> usize {
        self.stages.len()
    }

    /// Number of tasks of a stage.
    #[must_use]
    pub fn tasks_of(&self, stage: usize) -> usize {
        self.stages[stage].tasks
    }

    /// Number of outputs of each task of a stage.
    #[must_use]
    pub fn outputs_of(&self, stage: usize) -> usize {
        self.stages[stage].output.count()
    }

    /// Tables that the tasks read, by their numbers in pieces.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Resident>] {
        &self.tables
    }

    /// Whether each task of the last stage should give its rows in one batch, for readers that want columns
    /// in one piece.
    #[must_use]
    pub fn in_one_batch(&self) -> bool {
        self.in_one_batch
    }

    /// The counts of its run, for its executor to note tasks in.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The inputs of a task.
    #[must_use]
    pub fn needs_of(&self, stage: usize, task: usize) -> Needs {
        self.needs(stage, task)
    }

    /// A stage as bytes, for [`Fragment::decode`].
    ///
    /// # Errors
    /// `NotImplemented` for an operator that cannot travel.
    pub fn encode(&self, stage: usize) -> Result<Vec<u8>> {
        codec::encode(&self.stages[stage])
    }

    /// Names and types of the columns of the result.
    #[must_use]
    pub fn schema(&self) -> Option<arrow::datatypes::SchemaRef> {
        self.stages.last().map(|stage| stage.fragment.schema())
    }
}

/// A stage that came as bytes.
#[derive(Debug)]
pub struct Fragment(Stage);

impl Fragment {
    /// Decodes a stage.
    ///
    /// # Errors
    /// `Internal` for bytes that are no stage of this version.
    pub fn decode(bytes: &[u8]) -> Result<Fragment> {
        Ok(Fragment(codec::decode(bytes)?))
    }

    /// Whether its rows are others each time that it runs, as those of `random()` are. A task of it that runs
    /// again for rows that were lost would give others than those that were read before.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        is_volatile(&self.0.fragment)
    }

    /// Runs one task. A fragment can run once, since operators of some kinds share state between tasks.
    ///
    /// # Errors
    /// The error of the task: values that cannot be computed, files that cannot be read, memory.
    pub fn run(self, task: usize, inputs: TaskInputs, environment: Option<&Environment>) -> Result<TaskRows> {
        self.run_into(task, inputs, environment, |_| Vec::new())
    }

    /// As [`Fragment::run`], with a place for the rows of each output, by its number.
    ///
    /// # Errors
    /// As [`Fragment::run`], and those of the places.
    pub fn run_into<Rows>(
        self,
        task: usize,
        inputs: TaskInputs,
        environment: Option<&Environment>,
        place: impl Fn(usize) -> Rows + Send,
    ) -> Result<TaskRows<Rows::Kept>>
    where
        Rows: OutputRows<Kept: Send> + Send,
    {
        let context = task_context(environment, Arc::new(inputs), &self.0.options)?;
        block_on(unless_cancelled(run(&self.0.fragment, task, &self.0.output, context, place)))
    }
}
