//! The objects that tasks of tensors and frames store. It is one type for both, so that each reads what the
//! other made.

#[cfg(feature = "dataframe")]
use crate::frame::report::Report as StageReport;
#[cfg(feature = "arrays")]
use crate::tensor::report::Report as BatchReport;
#[cfg(feature = "arrays")]
use crate::tensor::stored::Bundle;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use tharsis_cancel::{Ended, RunEnds};
#[cfg(feature = "dataframe")]
use tharsis_remote::Batch;
use tharsis_remote::{Error, FailureKind, ObjectRef};

/// The reason for which a value is not given.
pub(crate) enum NotGiven {
    /// The run that waits for it was given up.
    Ended(Ended),
    /// The engine has none.
    Failed(Error),
}

/// Waits for a value until the run is given up.
pub(crate) fn wait_for<T: DeserializeOwned>(object: &ObjectRef<T>, ends: &RunEnds) -> Result<T, NotGiven> {
    while let Some(pause) = ends.pause() {
        ends.check().map_err(NotGiven::Ended)?;
        let over = Instant::now() + pause;
        match object.get_timeout(pause) {
            // One that comes at once is the failure of a task.
            Err(error) if error.kind() == FailureKind::GetTimeout && over <= Instant::now() => {}
            given => return given.map_err(NotGiven::Failed),
        }
    }
    object.get().map_err(NotGiven::Failed)
}

/// A result of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum TaskOutput {
    /// The cost of a batch of tasks of tensors.
    #[cfg(feature = "arrays")]
    BatchReport(BatchReport),
    /// Rows of frames, in objects of their own.
    #[cfg(feature = "dataframe")]
    Blocks(Blocks),
    /// Chunks of tensors.
    #[cfg(feature = "arrays")]
    Chunks(Bundle),
    /// Rows of frames.
    #[cfg(feature = "dataframe")]
    Rows(Vec<Batch>),
    /// The cost of a task of frames.
    #[cfg(feature = "dataframe")]
    StageReport(StageReport),
}

/// The rows of an output in blocks.
#[cfg(feature = "dataframe")]
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Blocks {
    pub(crate) blocks: Vec<Block>,
    /// Makes the list too large to be kept with its owner.
    pub(crate) padding: Vec<u8>,
}

/// An object with some of the rows of an output.
#[cfg(feature = "dataframe")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) object: ObjectRef<TaskOutput>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl TaskOutput {
    /// Its kind in words, for errors.
    fn what(&self) -> &'static str {
        match self {
            #[cfg(feature = "arrays")]
            TaskOutput::BatchReport(_) => "a report",
            #[cfg(feature = "dataframe")]
            TaskOutput::Blocks(_) => "blocks of rows",
            #[cfg(feature = "arrays")]
            TaskOutput::Chunks(_) => "chunks",
            #[cfg(feature = "dataframe")]
            TaskOutput::Rows(_) => "rows",
            #[cfg(feature = "dataframe")]
            TaskOutput::StageReport(_) => "a report",
        }
    }
}

#[cfg(feature = "arrays")]
mod of_tensors {
    use super::TaskOutput;
    use tharsis_graph::Error;
    use tharsis_kernels::Chunk;

    impl TaskOutput {
        /// The only chunk of an object.
        pub(crate) fn into_single(self) -> Result<Chunk, Error> {
            let TaskOutput::Chunks(bundle) = self else {
                return Err(Error::Internal(format!("{} were given for a chunk", self.what())));
            };
            match <[_; 1]>::try_from(bundle) {
                Ok([(_, stored)]) => Ok(stored.into_chunk()?),
                Err(bundle) => Err(Error::Internal(format!("{} chunks were given for one", bundle.len()))),
            }
        }
    }
}

#[cfg(feature = "dataframe")]
mod of_frames {
    use super::{Batch, StageReport, TaskOutput};
    use arrow_array::RecordBatch;
    use tharsis_dataframe::Error;

    impl TaskOutput {
        /// Batches as an object.
        pub(crate) fn of_rows(batches: Vec<RecordBatch>) -> TaskOutput {
            TaskOutput::Rows(batches.into_iter().map(Batch::from).collect())
        }

        /// The batches of an object; their columns stay in the store.
        pub(crate) fn into_rows(self) -> Result<Vec<RecordBatch>, Error> {
            match self {
                TaskOutput::Blocks(blocks) => {
                    let rows = blocks.into_parts().into_iter().map(|part| part.fetch());
                    Ok(rows.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
                }
                TaskOutput::Rows(batches) => Ok(batches.into_iter().map(Batch::into_inner).collect()),
                other => Err(Error::Internal(format!("{} were given for rows", other.what()))),
            }
        }

        /// The report of a call.
        pub(crate) fn into_report(self) -> Result<StageReport, Error> {
            match self {
                TaskOutput::StageReport(report) => Ok(report),
                other => Err(Error::Internal(format!("{} were given for a report", other.what()))),
            }
        }
    }
}
