//! Body of a remote call: one task of a stage, on rows in the store.

use super::fault::Fault;
use crate::part::WORKER_SCRATCH_VARIABLE;
use crate::remote;
use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use std::panic::Location;
use std::time::Instant;
use tharsis_dataframe::{Environment, Fragment, Needs, Piece, TaskInputs};
use tharsis_remote::generated::{Call, Remote};
use tharsis_remote::{Batch, Blob, ObjectRef, Options, Returns, Values, context};

/// The part of a stage that one call does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    /// The number of the task.
    pub(super) task: usize,
    /// Pieces in the first objects that the call reads, in their order.
    pub(super) pieces: Vec<Piece>,
    /// Stages of the reports in the objects after these, and their numbers of tasks.
    pub(super) counts: Vec<(usize, usize)>,
    /// Bytes that operators may take before they spill.
    pub(super) memory_bytes: u64,
}

/// Results of a call: first the report, then the outputs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum TaskOutput {
    Rows(Vec<Batch>),
    Report(Report),
}

/// Time, rows and bytes of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// The number of the attempt; the first is 0.
    pub(super) attempt: u32,
    /// Rows and bytes of each output.
    pub(super) outputs: Vec<(usize, usize)>,
    pub(super) busy_ns: u64,
}

impl Report {
    /// Rows of all outputs.
    pub(super) fn rows(&self) -> usize {
        self.outputs.iter().map(|(rows, _)| rows).sum()
    }

    /// Bytes of all outputs.
    pub(super) fn bytes(&self) -> usize {
        self.outputs.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl TaskOutput {
    /// Batches as an object.
    pub(super) fn of_rows(batches: Vec<RecordBatch>) -> TaskOutput {
        TaskOutput::Rows(batches.into_iter().map(Batch::from).collect())
    }

    /// The batches of an object; their columns stay in the store.
    pub(super) fn into_rows(self) -> Result<Vec<RecordBatch>, Fault> {
        match self {
            TaskOutput::Rows(batches) => Ok(batches.into_iter().map(Batch::into_inner).collect()),
            TaskOutput::Report(_) => Err(Fault::Internal("a report was given for rows".to_owned())),
        }
    }

    /// The report of a call.
    pub(super) fn into_report(self) -> Result<Report, Fault> {
        match self {
            TaskOutput::Report(report) => Ok(report),
            TaskOutput::Rows(_) => Err(Fault::Internal("rows were given for a report".to_owned())),
        }
    }
}

/// Submits a task with these options, which include the number of returned objects.
pub(super) fn call(
    options: Options,
    stage: &ObjectRef<Blob>,
    work: &Work,
    inputs: &[ObjectRef<TaskOutput>],
) -> Vec<ObjectRef<TaskOutput>> {
    let call = Call {
        definition: <run_task as Remote>::DEFINITION,
        options: Some(options),
        site: Location::caller(),
        arguments: &mut |arguments| {
            arguments.push::<Blob, _>(0, stage)?;
            arguments.push::<Work, _>(1, work.clone())?;
            arguments.push::<Values<TaskOutput>, _>(2, inputs)
        },
    };
    call.many()
}

/// Runs one task of a stage.
#[remote]
pub(super) fn run_task(
    stage: Blob,
    work: Work,
    inputs: Values<TaskOutput>,
) -> Result<Returns<TaskOutput>, Fault> {
    let started = Instant::now();
    let environment = environment(work.memory_bytes)?;
    let task = work.task;
    let inputs = task_inputs(work, inputs)?;
    let outputs = Fragment::decode(&stage)?.run(task, inputs, Some(&environment))?;
    let size = |batches: &Vec<RecordBatch>| {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        (rows, batches.iter().map(RecordBatch::get_array_memory_size).sum())
    };
    let report = Report {
        attempt: context().map_or(0, |context| context.attempt()),
        outputs: outputs.iter().map(size).collect(),
        busy_ns: started.elapsed().as_nanos() as u64,
    };
    let rows = outputs.into_iter().map(TaskOutput::of_rows);
    Ok(Returns([TaskOutput::Report(report)].into_iter().chain(rows).collect()))
}

fn task_inputs(work: Work, given: Values<TaskOutput>) -> Result<TaskInputs, Fault> {
    let mut given = given.into_iter();
    let mut next = || given.next().ok_or_else(|| Fault::Internal("fewer objects than pieces".to_owned()));
    let mut inputs = TaskInputs::default();
    for piece in work.pieces {
        inputs.insert(piece, next()?.into_rows()?);
    }
    for (stage, tasks) in work.counts {
        let rows = (0..tasks).map(|_| Ok(next()?.into_report()?.rows())).collect::<Result<_, Fault>>()?;
        inputs.insert_rows(stage, rows);
    }
    Ok(inputs)
}

/// The environment of a task with this share of memory, whose spill files are in the node's spill directories.
fn environment(memory_bytes: u64) -> Result<Environment, Fault> {
    let folders = std::env::var_os(WORKER_SCRATCH_VARIABLE).unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|folder| folder.is_dir()).collect();
    Ok(Environment::new(memory_bytes, folders)?)
}

/// The inputs of a task, for its call.
pub(super) fn work(task: usize, needs: &Needs, tasks_of: impl Fn(usize) -> usize, memory_bytes: u64) -> Work {
    let counts = needs.counts.iter().map(|&stage| (stage, tasks_of(stage))).collect();
    Work { task, pieces: needs.pieces.clone(), counts, memory_bytes }
}
