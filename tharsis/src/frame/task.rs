//! Body of a remote call: one task of a stage, on rows in the store.

use super::fault::into_engine;
use super::gathered::{self, Bounds, Gathered, Made};
use super::report::Report;
#[cfg(feature = "arrays")]
use crate::between::{convert::Form, errors::to_frames};
use crate::object::TaskOutput;
use crate::part::WORKER_SCRATCH_VARIABLE;
use crate::remote;
use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use std::panic::Location;
use std::time::Instant;
use tharsis_cancel::Cancel;
use tharsis_dataframe::{Environment, Error, Fragment, Piece, Result, TaskInputs, TaskRows};
use tharsis_remote::generated::{Call, Remote};
use tharsis_remote::{Blob, ObjectRef, Options, Returns, Values, context};

/// The part of a stage that one call does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    /// The number of the task.
    pub(super) task: usize,
    /// Pieces in the first objects that the call reads, in their order.
    pub(super) pieces: Vec<Piece>,
    /// Pieces that stand for no rows.
    pub(super) skipped: Vec<Piece>,
    /// Of some pieces, the first row that is wanted, and the one after the last.
    pub(super) slices: Vec<(Piece, usize, usize)>,
    /// Stages of the reports in the objects after these, and how many there are for each task.
    pub(super) counts: Vec<(usize, Vec<usize>)>,
    /// Bytes that operators may take before they spill.
    pub(super) memory_bytes: u64,
    /// Bytes of an output that is one object.
    pub(super) single_bytes: u64,
    /// Whether the rows of each output are one batch.
    pub(super) whole: bool,
    /// Pieces that are chunks of tensors: their position, and the form of their rows.
    #[cfg(feature = "arrays")]
    pub(super) formed: Vec<(usize, Form)>,
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
) -> tharsis_remote::Result<Returns<TaskOutput>> {
    outputs(&stage, work, inputs).map(Returns).map_err(into_engine)
}

/// The report of a task, and its outputs.
fn outputs(stage: &Blob, work: Work, inputs: Values<TaskOutput>) -> Result<Vec<TaskOutput>> {
    let started = Instant::now();
    let environment = environment(work.memory_bytes)?;
    let (task, whole) = (work.task, work.whole);
    let bounds = if whole { Bounds::none() } else { Bounds::new(work.memory_bytes, work.single_bytes) };
    let gathered = Gathered::new(bounds)?;
    let inputs = task_inputs(work, inputs)?;
    let fragment = Fragment::decode(stage)?;
    let attempt = context().map_or(0, |context| context.attempt());
    if 0 < attempt && fragment.is_volatile() {
        let text = "a task whose rows are others in each run has to run again, and others may have read them";
        return Err(Error::Lost(text.to_owned()));
    }
    let place = |number| gathered.place(number);
    let told = context().ok();
    // A task that is cancelled ends at its next batch.
    let cancel = Cancel::when(move || told.as_ref().is_some_and(|context| context.is_cancelled()));
    let ran = cancel.run(|| fragment.run_into(task, inputs, Some(&environment), place));
    let TaskRows { outputs, spilled_bytes } = ran?;
    let mut made = gathered.end(outputs.len())?;
    if whole {
        made = made.into_iter().map(in_one_batch).collect::<Result<_>>()?;
    }
    let has_blocks = made.iter().any(|made| matches!(made.output, TaskOutput::Blocks(_)));
    let report = Report {
        attempt,
        outputs: made.iter().map(|made| made.size).collect(),
        spilled_bytes,
        busy_ns: started.elapsed().as_nanos() as u64,
        run: (has_blocks || 0 < attempt).then(gathered::mark).transpose()?,
    };
    let rows = made.into_iter().map(|made| made.output);
    Ok([TaskOutput::StageReport(report)].into_iter().chain(rows).collect())
}

fn task_inputs(work: Work, given: Values<TaskOutput>) -> Result<TaskInputs> {
    let mut given = given.into_iter();
    let mut next = || given.next().ok_or_else(|| Error::Internal("fewer objects than pieces".to_owned()));
    let mut inputs = TaskInputs::default();
    work.skipped.into_iter().for_each(|piece| inputs.insert(piece, Vec::new()));
    #[cfg(feature = "arrays")]
    let mut formed = work.formed.into_iter().peekable();
    for (place, piece) in work.pieces.into_iter().enumerate() {
        let object = next()?;
        #[cfg(feature = "arrays")]
        if let Some((_, form)) = formed.next_if(|(at, _)| *at == place) {
            let chunk = object.into_single().map_err(|error| to_frames(&error, error.to_string()))?;
            inputs.insert(piece, vec![form.rows(&chunk)?]);
            continue;
        }
        let _ = place;
        object.into_parts()?.into_iter().for_each(|part| inputs.insert_part(piece, part));
    }
    work.slices.into_iter().for_each(|(piece, start, end)| inputs.slice(piece, start, end));
    for (stage, tasks) in work.counts {
        let mut rows = Vec::with_capacity(tasks.len());
        for calls in tasks {
            let mut made = 0;
            for _ in 0..calls {
                made += next()?.into_report()?.rows();
            }
            rows.push(made);
        }
        inputs.insert_rows(stage, rows);
    }
    Ok(inputs)
}

/// The rows of an output below each other.
fn in_one_batch(made: Made) -> Result<Made> {
    let mut batches = made.output.into_rows()?;
    if 1 < batches.len()
        && let Some(schema) = batches.first().map(RecordBatch::schema)
    {
        batches = vec![tharsis_dataframe::arrow::compute::concat_batches(&schema, &batches)?];
    }
    let size = |batch: &RecordBatch| (batch.num_rows(), batch.get_array_memory_size());
    let size = batches.first().map_or((0, 0), size);
    Ok(Made { output: TaskOutput::of_rows(batches), size })
}

/// The environment of a task with this share of memory, whose spill files are in the node's spill
/// directories.
fn environment(memory_bytes: u64) -> Result<Environment> {
    let folders = std::env::var_os(WORKER_SCRATCH_VARIABLE).unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|folder| folder.is_dir()).collect();
    Environment::new(memory_bytes, folders)
}
