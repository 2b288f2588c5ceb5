//! Errors between tasks and driver.

use crate::object::NotGiven;
use serde::{Deserialize, Serialize};
use tharsis_dataframe::{Error, FileFault, FunctionFault};
use tharsis_remote::FailureKind;
use tharsis_remote::generated::{Probe, TypedError};

/// Error of a task in encoded form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Value(String),
    #[error("{0}")]
    Type(String),
    #[error("{0}")]
    Memory(String),
    #[error("{path}: {reason}")]
    File { path: String, fault: FileFault, reason: String },
    #[error("the computation was cancelled")]
    Cancelled,
    #[error("{0}")]
    NotImplemented(String),
    #[error("{0}")]
    Overflow(String),
    #[error("{0}")]
    ZeroDivision(String),
    #[error("{function}: {fault} (called at {place})")]
    Function { function: String, place: String, fault: FunctionFault },
    #[error("{0}")]
    Internal(String),
    #[error("{path}")]
    Uncut { path: String },
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Type(text) => Fault::Type(text),
            Error::Memory(text) => Fault::Memory(text),
            Error::File { path, fault, reason } => Fault::File { path, fault, reason },
            Error::Cancelled => Fault::Cancelled,
            Error::NotImplemented(text) => Fault::NotImplemented(text),
            Error::Overflow(text) => Fault::Overflow(text),
            Error::ZeroDivision(text) => Fault::ZeroDivision(text),
            Error::Function { function, place, fault } => Fault::Function { function, place, fault },
            Error::Internal(text) => Fault::Internal(text),
            Error::Uncut { path } => Fault::Uncut { path },
            Error::Task { text, .. } => Fault::Internal(text),
            other => Fault::Value(other.to_string()),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Value(text) => Error::Value(text),
            Fault::Type(text) => Error::Type(text),
            Fault::Memory(text) => Error::Memory(text),
            Fault::File { path, fault, reason } => Error::File { path, fault, reason },
            Fault::Cancelled => Error::Cancelled,
            Fault::NotImplemented(text) => Error::NotImplemented(text),
            Fault::Overflow(text) => Error::Overflow(text),
            Fault::ZeroDivision(text) => Error::ZeroDivision(text),
            Fault::Function { function, place, fault } => Error::Function { function, place, fault },
            Fault::Internal(text) => Error::Internal(text),
            Fault::Uncut { path } => Error::Uncut { path },
        }
    }
}

/// The error of frames for a value that was not given.
pub(super) fn not_given(reason: NotGiven) -> Error {
    match reason {
        NotGiven::Ended(ended) => ended.into(),
        NotGiven::Failed(error) => from_engine(error),
    }
}

/// The error of frames for one of the engine: the fault of a task, else the engine's failure.
pub(super) fn from_engine(error: tharsis_remote::Error) -> Error {
    match error.downcast::<Fault>() {
        Some(fault) => fault.into(),
        None => {
            let (kind, text) = (error.failure().root().kind, error.failure().to_string());
            match kind {
                FailureKind::LineageEvicted | FailureKind::ObjectLost => Error::Lost(text),
                kind => Error::Task { class: class_of(kind), text },
            }
        }
    }
}

/// The engine's error for one of a task: a loss stays one, any other error becomes a fault.
pub(super) fn into_engine(error: Error) -> tharsis_remote::Error {
    match error {
        Error::Lost(text) => tharsis_remote::Error::new(FailureKind::ObjectLost, text),
        other => Probe(&Fault::from(other)).to_failure().into(),
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
