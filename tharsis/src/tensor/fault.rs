//! Errors between tasks and engine: an error of a task is sent as a [`Fault`], a failure of the engine
//! becomes an [`EngineFailure`] that keeps the engine's own failure.

use serde::{Deserialize, Serialize};
use tharsis_graph::{EngineFailure, Error};
use tharsis_kernels::{DType, KernelError};
use tharsis_remote::FailureKind;

/// Error of a task in encoded form. Errors that can only be defects keep just their text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Value(String),
    #[error("{0}")]
    Singular(String),
    #[error("{needed_bytes} bytes could not be allocated")]
    NoMemory { needed_bytes: usize },
    #[error("{what} is corrupt: {reason}")]
    Corrupt { what: String, reason: String },
    #[error("{function} was declared to give other chunks")]
    Declared { function: String, declared: Vec<usize>, dtype: DType, found: Vec<usize>, found_dtype: DType },
    #[error("{function} failed: {reason}")]
    Function { function: String, reason: String },
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    #[error("{0}")]
    NotImplemented(String),
    #[error("{0}")]
    Internal(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Kernel(kernel) => kernel.into(),
            Error::Value(text) => Fault::Value(text),
            Error::Corrupt { what, reason } => Fault::Corrupt { what, reason },
            Error::Declared { function, declared, dtype, found, found_dtype } => {
                Fault::Declared { function, declared, dtype, found, found_dtype }
            }
            Error::Function { function, reason } => Fault::Function { function, reason },
            Error::File { path, reason } => Fault::File { path, reason },
            other => Fault::Internal(other.to_string()),
        }
    }
}

impl From<KernelError> for Fault {
    fn from(error: KernelError) -> Fault {
        match error {
            KernelError::Value(text) => Fault::Value(text),
            KernelError::Singular(text) => Fault::Singular(text),
            KernelError::NoMemory { needed_bytes } => Fault::NoMemory { needed_bytes },
            absent @ KernelError::NotBuilt(_) => Fault::NotImplemented(absent.to_string()),
            other => Fault::Internal(other.to_string()),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Value(text) => Error::Kernel(KernelError::Value(text)),
            Fault::Singular(text) => Error::Kernel(KernelError::Singular(text)),
            Fault::NoMemory { needed_bytes } => Error::Kernel(KernelError::NoMemory { needed_bytes }),
            Fault::Corrupt { what, reason } => Error::Corrupt { what, reason },
            Fault::Declared { function, declared, dtype, found, found_dtype } => {
                Error::Declared { function, declared, dtype, found, found_dtype }
            }
            Fault::Function { function, reason } => Error::Function { function, reason },
            Fault::File { path, reason } => Error::File { path, reason },
            Fault::NotImplemented(text) => Error::NotImplemented(text),
            Fault::Internal(text) => Error::Internal(text),
        }
    }
}

/// The graph's error for one of the engine: the fault of a task, else the engine's failure.
pub(super) fn from_engine(error: tharsis_remote::Error) -> Error {
    match error.downcast::<Fault>() {
        Some(fault) => fault.into(),
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

/// The error of tensors for one of frames.
#[cfg(feature = "dataframe")]
pub(super) fn from_frames(error: tharsis_dataframe::Error) -> Error {
    match error {
        tharsis_dataframe::Error::Type(text) => Error::Type(text),
        other => Error::Value(other.to_string()),
    }
}
