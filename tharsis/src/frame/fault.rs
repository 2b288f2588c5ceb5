//! Errors of tasks on their way to the driver.

use crate::error_class::class_named;
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
    /// One of a kind that readers know by its class.
    #[error("{text}")]
    Failed { class: String, text: String },
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
            Error::Value(text) => Fault::Value(text),
            other if matches!(other.root(), Error::Cancelled) => Fault::Cancelled,
            other => Fault::Failed { class: other.class().to_owned(), text: other.to_string() },
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
            Fault::Failed { class, text } => Error::Task { class: class_named(&class), text },
        }
    }
}

/// The error of a task of frames that an error of the engine carries, if there is one.
pub(crate) fn told(error: &tharsis_remote::Error) -> Option<Error> {
    error.downcast::<Fault>().map(Error::from)
}

/// The engine's error for one of a task: a loss stays one, any other error becomes a fault.
pub(crate) fn into_engine(error: Error) -> tharsis_remote::Error {
    match error {
        Error::Lost(text) => tharsis_remote::Error::new(FailureKind::ObjectLost, text),
        other => Probe(&Fault::from(other)).to_failure().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_tasks_keep_their_class_and_their_text() {
        for error in crate::error_class::tests::of_frames() {
            let fault = Fault::from(error.clone());
            let sent: Fault = serde_json::from_str(&serde_json::to_string(&fault).unwrap()).unwrap();
            let back = Error::from(sent);
            assert_eq!(back.class(), error.class(), "{error}");
            if !matches!(error.root(), Error::Cancelled) {
                assert_eq!(back.to_string(), error.to_string());
            }
        }
    }
}
