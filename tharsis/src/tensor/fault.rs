//! Errors of tasks on their way through the engine, as a [`Fault`].

use crate::error_class::class_named;
use serde::{Deserialize, Serialize};
use tharsis_graph::{EngineFailure, Error};
use tharsis_kernels::{DType, KernelError};

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
    #[error("index {index} is out of bounds for axis {axis} with size {extent}")]
    Index { index: i64, axis: usize, extent: usize },
    #[error("axis {axis} is out of bounds for array of dimension {rank}")]
    Axis { axis: i64, rank: usize },
    #[error("{0}")]
    Indices(String),
    #[error("{0}")]
    Type(String),
    #[error("{0}")]
    Overflow(String),
    #[error("{0}")]
    FloatingPoint(String),
    #[error("{0}")]
    ZeroDivision(String),
    #[error("{needed_bytes} bytes of memory are needed, {limit_bytes} are allowed")]
    Memory { needed_bytes: u64, limit_bytes: u64 },
    #[error("{what} has {feature}, which is unsupported")]
    Unsupported { what: String, feature: String },
    #[error("{what} holds pickled objects")]
    ObjectArray { what: String },
    #[error("{what} has a member {member:?}, which leads out of it")]
    PathTraversal { what: String, member: String },
    #[error("the computation was cancelled")]
    Cancelled,
    #[error("the program did not end within the time allowed")]
    Timeout,
    #[error("{0}")]
    NotImplemented(String),
    #[error("{0}")]
    Internal(String),
    /// Of the engine, or of frames.
    #[error("{text}")]
    Failed { class: String, text: String },
}

/// The text of an error of another process.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Told(String);

// No arm takes all others: a new error must be given its class here too.
impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Kernel(kernel) => kernel.into(),
            Error::Value(text) => Fault::Value(text),
            // Their facts have names that live as long as the program; the text has all of them.
            ref text @ (Error::RepeatedAxis { .. }
            | Error::Broadcast { .. }
            | Error::Shape { .. }
            | Error::UnknownSize { .. }
            | Error::TooManyTasks { .. }) => Fault::Value(text.to_string()),
            ref text @ Error::Mask { .. } => Fault::Indices(text.to_string()),
            Error::Axis { axis, rank } => Fault::Axis { axis, rank },
            Error::Index { index, axis, extent } => Fault::Index { index, axis, extent },
            Error::Indices(text) => Fault::Indices(text),
            Error::Type(text) => Fault::Type(text),
            Error::Overflow(text) => Fault::Overflow(text),
            Error::FloatingPoint(text) => Fault::FloatingPoint(text),
            Error::ZeroDivision(text) => Fault::ZeroDivision(text),
            Error::Memory { needed_bytes, limit_bytes } => Fault::Memory { needed_bytes, limit_bytes },
            Error::Corrupt { what, reason } => Fault::Corrupt { what, reason },
            Error::Declared { function, declared, dtype, found, found_dtype } => {
                Fault::Declared { function, declared, dtype, found, found_dtype }
            }
            Error::Function { function, reason } => Fault::Function { function, reason },
            Error::File { path, reason } => Fault::File { path, reason },
            Error::ObjectArray { what } => Fault::ObjectArray { what },
            Error::Unsupported { what, feature } => Fault::Unsupported { what, feature },
            Error::PathTraversal { what, member } => Fault::PathTraversal { what, member },
            Error::Cancelled => Fault::Cancelled,
            Error::Timeout => Fault::Timeout,
            Error::NotImplemented(text) => Fault::NotImplemented(text),
            ref failed @ Error::Engine(ref failure) => {
                Fault::Failed { class: failed.class().to_owned(), text: failure.to_string() }
            }
            Error::Internal(text) => Fault::Internal(text),
        }
    }
}

impl From<KernelError> for Fault {
    fn from(error: KernelError) -> Fault {
        match error {
            KernelError::Value(text) => Fault::Value(text),
            KernelError::Singular(text) => Fault::Singular(text),
            KernelError::ZeroDivision(text) => Fault::ZeroDivision(text),
            KernelError::Index { index, axis, extent } => Fault::Index { index, axis, extent },
            KernelError::NoMemory { needed_bytes } => Fault::NoMemory { needed_bytes },
            ref text @ (KernelError::NoLoop { .. } | KernelError::WrongDType { .. }) => {
                Fault::Type(text.to_string())
            }
            ref text @ KernelError::NotBuilt(_) => Fault::NotImplemented(text.to_string()),
            ref text @ (KernelError::OutOfBounds { .. } | KernelError::Malformed(_)) => {
                Fault::Internal(text.to_string())
            }
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Value(text) => Error::Kernel(KernelError::Value(text)),
            Fault::Singular(text) => Error::Kernel(KernelError::Singular(text)),
            Fault::NoMemory { needed_bytes } => Error::Kernel(KernelError::NoMemory { needed_bytes }),
            Fault::Index { index, axis, extent } => Error::Index { index, axis, extent },
            Fault::Axis { axis, rank } => Error::Axis { axis, rank },
            Fault::Indices(text) => Error::Indices(text),
            Fault::Type(text) => Error::Type(text),
            Fault::Overflow(text) => Error::Overflow(text),
            Fault::FloatingPoint(text) => Error::FloatingPoint(text),
            Fault::ZeroDivision(text) => Error::ZeroDivision(text),
            Fault::Memory { needed_bytes, limit_bytes } => Error::Memory { needed_bytes, limit_bytes },
            Fault::Corrupt { what, reason } => Error::Corrupt { what, reason },
            Fault::Declared { function, declared, dtype, found, found_dtype } => {
                Error::Declared { function, declared, dtype, found, found_dtype }
            }
            Fault::Function { function, reason } => Error::Function { function, reason },
            Fault::File { path, reason } => Error::File { path, reason },
            Fault::ObjectArray { what } => Error::ObjectArray { what },
            Fault::Unsupported { what, feature } => Error::Unsupported { what, feature },
            Fault::PathTraversal { what, member } => Error::PathTraversal { what, member },
            Fault::Cancelled => Error::Cancelled,
            Fault::Timeout => Error::Timeout,
            Fault::NotImplemented(text) => Error::NotImplemented(text),
            Fault::Internal(text) => Error::Internal(text),
            Fault::Failed { class, text } => {
                Error::Engine(EngineFailure::new(class_named(&class), Told(text)))
            }
        }
    }
}

/// The error of a task of tensors that an error of the engine carries, if there is one.
pub(crate) fn told(error: &tharsis_remote::Error) -> Option<Error> {
    error.downcast::<Fault>().map(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "dataframe")]
    use tharsis_remote::generated::{Probe, TypedError};

    /// An error of each kind.
    fn errors() -> Vec<Error> {
        let text = || "some text".to_owned();
        let (what, shapes, function) = (text(), vec![vec![2], vec![3]], "f");
        vec![
            Error::Axis { axis: 3, rank: 2 },
            Error::RepeatedAxis { axis: 1 },
            Error::Broadcast { function, shapes: shapes.clone(), axis: 0 },
            Error::Shape { function, shapes, reason: text() },
            Error::UnknownSize { function, shape: vec![2] },
            Error::Mask { shape: vec![2], mask: vec![3] },
            Error::Index { index: 12, axis: 0, extent: 10 },
            Error::Indices(text()),
            Error::Value(text()),
            Error::Type(text()),
            Error::FloatingPoint(text()),
            Error::ZeroDivision(text()),
            Error::Overflow(text()),
            Error::Memory { needed_bytes: 9, limit_bytes: 8 },
            Error::TooManyTasks { tasks: 9, limit: 8 },
            Error::File { path: text(), reason: text() },
            Error::Corrupt { what: text(), reason: text() },
            Error::ObjectArray { what: text() },
            Error::Unsupported { what: text(), feature: text() },
            Error::PathTraversal { what, member: text() },
            Error::Cancelled,
            Error::Timeout,
            Error::NotImplemented(text()),
            Error::Internal(text()),
            KernelError::NoLoop { function, dtypes: vec![DType::F16] }.into(),
            KernelError::WrongDType { expected: DType::F16, found: DType::F64 }.into(),
            KernelError::Value(text()).into(),
            KernelError::ZeroDivision(text()).into(),
            KernelError::Index { index: 12, axis: 0, extent: 10 }.into(),
            KernelError::Singular(text()).into(),
            KernelError::NoMemory { needed_bytes: 9 }.into(),
            Error::Engine(EngineFailure::new("Crash", Told(text()))),
        ]
    }

    /// The error as another process has it.
    fn received(error: Error) -> Error {
        let fault = Fault::from(error);
        let sent: Fault = serde_json::from_str(&serde_json::to_string(&fault).unwrap()).unwrap();
        sent.into()
    }

    #[test]
    fn errors_of_tasks_keep_their_class_and_their_text() {
        for error in errors() {
            let back = received(error.clone());
            assert_eq!((back.class(), back.to_string()), (error.class(), error.to_string()));
        }
    }

    #[cfg(feature = "dataframe")]
    #[test]
    fn errors_of_frames_keep_their_class_on_the_way_to_tensors() {
        for error in crate::error_class::tests::of_frames() {
            let back = received(crate::between::errors::to_tensors(error.clone()));
            assert_eq!(back.class(), error.class(), "{error}");
            let of_task =
                crate::tensor::failure::from_engine(crate::frame::fault::into_engine(error.clone()));
            assert_eq!(of_task.class(), error.class(), "{error}");
        }
    }

    #[cfg(feature = "dataframe")]
    #[test]
    fn errors_of_tensors_keep_their_class_and_their_text_in_frames() {
        for error in errors() {
            let made = crate::between::errors::to_frames(&error, error.to_string());
            assert_eq!((made.class(), made.to_string()), (error.class(), error.to_string()));
            let sent = Probe(&Fault::from(error.clone())).to_failure();
            let of_task = crate::frame::failure::from_engine(sent.into());
            assert_eq!((of_task.class(), of_task.to_string()), (error.class(), error.to_string()));
        }
    }
}
