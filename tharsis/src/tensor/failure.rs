//! Failures of the engine as errors of tensors, which keep the engine's own failure.

use super::fault::told;
use crate::object::NotGiven;
use tharsis_graph::{EngineFailure, Error};
use tharsis_remote::FailureKind;

/// The graph's error for a value that was not given.
pub(super) fn not_given(reason: NotGiven) -> Error {
    match reason {
        NotGiven::Ended(ended) => ended.into(),
        NotGiven::Failed(error) => from_engine(error),
    }
}

/// The error of a task of frames, whose rows are chunks, that an error of the engine carries.
#[cfg(feature = "dataframe")]
fn told_by_frames(error: &tharsis_remote::Error) -> Option<Error> {
    crate::frame::fault::told(error).map(crate::between::errors::to_tensors)
}

#[cfg(not(feature = "dataframe"))]
fn told_by_frames(_: &tharsis_remote::Error) -> Option<Error> {
    None
}

/// The graph's error for one of the engine: the fault of a task, else the engine's failure.
pub(super) fn from_engine(error: tharsis_remote::Error) -> Error {
    match told(&error).or_else(|| told_by_frames(&error)) {
        Some(error) => error,
        None => {
            Error::Engine(EngineFailure::new(class_of(error.failure().root().kind), error.failure().clone()))
        }
    }
}

/// The exception class that a NumPy user would see for a failure.
fn class_of(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::ObjectTooLarge
        | FailureKind::OutOfMemory
        | FailureKind::ResourceExhausted
        | FailureKind::StoreFull => "MemoryError",
        FailureKind::GetTimeout | FailureKind::TimedOut => "Timeout",
        FailureKind::InvalidArgument => "ValueError",
        FailureKind::DataCorrupt => "DataCorrupt",
        FailureKind::Internal => "Internal",
        FailureKind::NodeDied
        | FailureKind::ObjectLost
        | FailureKind::Panicked
        | FailureKind::WorkerCrashed => "Crash",
        _ => "RuntimeError",
    }
}
