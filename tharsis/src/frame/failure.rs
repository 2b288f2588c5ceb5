//! Failures of the engine as errors of frames.

use super::fault::told;
use crate::object::NotGiven;
use tharsis_dataframe::Error;
use tharsis_remote::FailureKind;

/// The error of frames for a value that was not given.
pub(super) fn not_given(reason: NotGiven) -> Error {
    match reason {
        NotGiven::Ended(ended) => ended.into(),
        NotGiven::Failed(error) => from_engine(error),
    }
}

/// The error of a task of tensors, whose chunks are rows, that an error of the engine carries.
#[cfg(feature = "arrays")]
fn told_by_tensors(error: &tharsis_remote::Error) -> Option<Error> {
    let told = crate::tensor::fault::told(error)?;
    Some(crate::between::errors::to_frames(&told, told.to_string()))
}

#[cfg(not(feature = "arrays"))]
fn told_by_tensors(_: &tharsis_remote::Error) -> Option<Error> {
    None
}

/// The error of frames for one of the engine: the fault of a task, else the engine's failure.
pub(crate) fn from_engine(error: tharsis_remote::Error) -> Error {
    match told(&error).or_else(|| told_by_tensors(&error)) {
        Some(error) => error,
        None => {
            let (kind, text) = (error.failure().root().kind, error.failure().to_string());
            match kind {
                FailureKind::LineageEvicted | FailureKind::ObjectLost => Error::Lost(text),
                kind => Error::Task { class: class_of(kind), text },
            }
        }
    }
}

/// The exception class that a pandas user would see for a failure.
fn class_of(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::ObjectTooLarge
        | FailureKind::OutOfMemory
        | FailureKind::ResourceExhausted
        | FailureKind::StoreFull => "MemoryError",
        FailureKind::GetTimeout | FailureKind::TimedOut => "Timeout",
        FailureKind::NodeDied | FailureKind::Panicked | FailureKind::WorkerCrashed => "Crash",
        _ => "RuntimeError",
    }
}
