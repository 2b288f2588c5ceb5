//! Errors of the graph, in NumPy's vocabulary.

use crate::extent::UNKNOWN;
use std::fmt;
use std::sync::Arc;
use tharsis_cancel::Ended;
use tharsis_kernels::{DType, KernelError};

/// Why an expression cannot be built, planned or run. Variants carry the facts; [`Error::class`] names the
/// exception that a NumPy user would see.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// Axis out of range.
    #[error("axis {axis} is out of bounds for array of dimension {rank}")]
    Axis { axis: i64, rank: usize },
    /// The same axis given twice.
    #[error("repeated axis {axis}")]
    RepeatedAxis { axis: i64 },
    /// Operands that do not broadcast; `axis` counts from the end of the shapes.
    #[error("{function}: operands could not be broadcast together with shapes {} (dimension {axis} from the last clashes)", join_shapes(.shapes))]
    Broadcast { function: &'static str, shapes: Vec<Vec<usize>>, axis: usize },
    /// Operands whose shapes do not fit the operation.
    #[error("{function}: shapes {} do not fit: {reason}", join_shapes(.shapes))]
    Shape { function: &'static str, shapes: Vec<Vec<usize>>, reason: String },
    /// A function that gave another shape or dtype than it was declared to give.
    #[error("{function} was declared to give {dtype} of shape {}, it gave {found_dtype} of shape {}", shape_text(.declared), shape_text(.found))]
    Declared { function: String, declared: Vec<usize>, dtype: DType, found: Vec<usize>, found_dtype: DType },
    /// A user's function failed.
    #[error("{function} failed: {reason}")]
    Function { function: String, reason: String },
    /// An operation that needs a size that is known only after a run.
    #[error("{function} needs to know the size of an array of shape {}, which only running tells: call compute_chunk_sizes() first", shape_text(.shape))]
    UnknownSize { function: &'static str, shape: Vec<usize> },
    /// A mask that does not fit the axis that it selects from.
    #[error("boolean index did not match indexed array: the array has shape {}, the mask {}", shape_text(.shape), shape_text(.mask))]
    Mask { shape: Vec<usize>, mask: Vec<usize> },
    /// An index beyond its axis.
    #[error("index {index} is out of bounds for axis {axis} with size {extent}")]
    Index { index: i64, axis: usize, extent: usize },
    /// An index expression that does not fit the array.
    #[error("{0}")]
    Indices(String),
    /// A value for which NumPy raises `ValueError`.
    #[error("{0}")]
    Value(String),
    /// A dtype for which NumPy raises `TypeError`.
    #[error("{0}")]
    Type(String),
    /// A floating-point warning, where the caller asked for an error.
    #[error("{0}")]
    FloatingPoint(String),
    /// A division for which NumPy raises `ZeroDivisionError`.
    #[error("{0}")]
    ZeroDivision(String),
    /// A number that does not fit its dtype.
    #[error("{0}")]
    Overflow(String),
    /// An error of the kernels.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No plan of this program fits the memory limit.
    #[error(
        "the program needs {needed_bytes} bytes of memory, {limit_bytes} are allowed; allow at least {needed_bytes}"
    )]
    Memory { needed_bytes: u64, limit_bytes: u64 },
    /// More tasks than a plan may have.
    #[error("the plan would have {tasks} tasks, the limit is {limit}; use larger chunks")]
    TooManyTasks { tasks: u64, limit: u64 },
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    /// The bytes of a file or message are malformed.
    #[error("{what} is corrupt: {reason}")]
    Corrupt { what: String, reason: String },
    /// A file of pickled objects, which are never unpickled.
    #[error("{what} holds pickled objects (ObjectArray), which are never unpickled")]
    ObjectArray { what: String },
    /// A file in a valid format that this library does not support.
    #[error("{what} has {feature}, which is unsupported")]
    Unsupported { what: String, feature: String },
    /// A name in an archive that points outside the folder into which it is unpacked.
    #[error("{what} has a member {member:?}, which leads out of it (PathTraversal)")]
    PathTraversal { what: String, member: String },
    /// A handle of the program was cancelled.
    #[error("the computation was cancelled")]
    Cancelled,
    /// The deadline has passed.
    #[error("the program did not end within the time allowed")]
    Timeout,
    /// The executor of the tasks failed, not the computation in them.
    #[error(transparent)]
    Engine(EngineFailure),
    /// The operation or option does not exist yet.
    #[error("{0} is not implemented")]
    NotImplemented(String),
    /// A defect of this library.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A failure of the engine behind an executor, with that engine's own error.
#[derive(Clone, Debug)]
pub struct EngineFailure {
    class: &'static str,
    cause: Arc<dyn std::error::Error + Send + Sync>,
}

impl EngineFailure {
    /// A failure whose exception class in NumPy is `class`.
    pub fn new(class: &'static str, cause: impl std::error::Error + Send + Sync + 'static) -> EngineFailure {
        EngineFailure { class, cause: Arc::new(cause) }
    }

    /// The engine's own error, to be downcast.
    pub fn cause(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.cause
    }
}

impl PartialEq for EngineFailure {
    fn eq(&self, other: &EngineFailure) -> bool {
        self.class == other.class && self.cause.to_string() == other.cause.to_string()
    }
}

impl fmt::Display for EngineFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for EngineFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Error {
        match ended {
            Ended::Cancelled => Error::Cancelled,
            Ended::TimedOut => Error::Timeout,
        }
    }
}

impl Error {
    /// The exception that a NumPy user would see.
    pub fn class(&self) -> &'static str {
        match self {
            Error::Axis { .. } => "AxisError",
            Error::RepeatedAxis { .. } | Error::Broadcast { .. } | Error::Shape { .. } | Error::Value(_) => {
                "ValueError"
            }
            Error::TooManyTasks { .. } | Error::Declared { .. } => "ValueError",
            Error::Function { .. } => "RuntimeError",
            Error::UnknownSize { .. } => "ValueError",
            Error::Index { .. } | Error::Indices(_) | Error::Mask { .. } => "IndexError",
            Error::Type(_) => "TypeError",
            Error::Overflow(_) => "OverflowError",
            Error::ZeroDivision(_) => "ZeroDivisionError",
            Error::FloatingPoint(_) => "FloatingPointError",
            Error::Memory { .. } => "MemoryError",
            Error::File { .. } => "OSError",
            Error::Unsupported { .. } => "ValueError",
            Error::Corrupt { .. } => "DataCorrupt",
            Error::ObjectArray { .. } => "ObjectArray",
            Error::PathTraversal { .. } => "PathTraversal",
            Error::Cancelled => "Cancelled",
            Error::Timeout => "Timeout",
            Error::Engine(failure) => failure.class,
            Error::NotImplemented(_) => "NotImplemented",
            Error::Internal(_) => "Internal",
            Error::Kernel(kernel) => match kernel {
                KernelError::NoLoop { .. } | KernelError::WrongDType { .. } => "TypeError",
                KernelError::Value(_) => "ValueError",
                KernelError::ZeroDivision(_) => "ZeroDivisionError",
                KernelError::Index { .. } => "IndexError",
                KernelError::Singular(_) => "LinAlgError",
                KernelError::NoMemory { .. } => "MemoryError",
                KernelError::NotBuilt(_) => "NotImplemented",
                KernelError::OutOfBounds { .. } | KernelError::Malformed(_) => "Internal",
            },
        }
    }
}

fn join_shapes(shapes: &[Vec<usize>]) -> String {
    shapes.iter().map(|shape| shape_text(shape)).collect::<Vec<_>>().join(" ")
}

/// A shape as NumPy prints it: `(3,)`, `(2,4)`; unknown extents as `?`.
pub fn shape_text(shape: &[usize]) -> String {
    let text = |&extent: &usize| if extent == UNKNOWN { "?".to_owned() } else { extent.to_string() };
    let inner = shape.iter().map(text).collect::<Vec<_>>().join(",");
    if shape.len() == 1 { format!("({inner},)") } else { format!("({inner})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_printed_as_numpy_prints_them() {
        assert_eq!([shape_text(&[]), shape_text(&[3]), shape_text(&[2, UNKNOWN])], ["()", "(3,)", "(2,?)"]);
        assert_eq!(join_shapes(&[vec![1], vec![2, 3]]), "(1,) (2,3)");
    }

    /// Errors as they are met most, each with the text and the class that NumPy has for it.
    #[test]
    fn errors_name_the_function_and_the_shapes_and_have_the_class_of_numpy() {
        let shapes = vec![vec![4, 3], vec![2]];
        let reason = "odd".to_owned();
        let (f, what) = (|| "f".to_owned(), || "a.npy".to_owned());
        let expected = [
            (Error::Axis { axis: -3, rank: 2 }, "axis -3 is out of bounds", "AxisError"),
            (Error::RepeatedAxis { axis: 1 }, "repeated axis 1", "ValueError"),
            (
                Error::Broadcast { function: "add", shapes: shapes.clone(), axis: 1 },
                "add: operands could not be broadcast together with shapes (4,3) (2,)",
                "ValueError",
            ),
            (Error::Shape { function: "matmul", shapes, reason }, "matmul: shapes (4,3) (2,)", "ValueError"),
            (
                Error::Declared {
                    function: f(),
                    declared: vec![2],
                    dtype: DType::F64,
                    found: vec![],
                    found_dtype: DType::I64,
                },
                "f was declared to give float64 of shape (2,), it gave int64 of shape ()",
                "ValueError",
            ),
            (Error::Function { function: f(), reason: f() }, "f failed: f", "RuntimeError"),
            (
                Error::UnknownSize { function: "sort", shape: vec![UNKNOWN, 2] },
                "an array of shape (?,2)",
                "ValueError",
            ),
            (Error::Mask { shape: vec![5], mask: vec![6] }, "shape (5,), the mask (6,)", "IndexError"),
            (
                Error::Index { index: 7, axis: 1, extent: 3 },
                "index 7 is out of bounds for axis 1",
                "IndexError",
            ),
            (
                Error::Memory { needed_bytes: 900, limit_bytes: 64 },
                "needs 900 bytes of memory, 64 are allowed; allow at least 900",
                "MemoryError",
            ),
            (Error::TooManyTasks { tasks: 12, limit: 10 }, "12 tasks, the limit is 10", "ValueError"),
            (Error::File { path: what(), reason: f() }, "a.npy: f", "OSError"),
            (Error::Corrupt { what: what(), reason: f() }, "a.npy is corrupt: f", "DataCorrupt"),
            (Error::Unsupported { what: what(), feature: f() }, "a.npy has f", "ValueError"),
            (Error::ObjectArray { what: what() }, "never unpickled", "ObjectArray"),
            (Error::PathTraversal { what: what(), member: f() }, "member \"f\"", "PathTraversal"),
            (Error::Cancelled, "was cancelled", "Cancelled"),
            (Error::Timeout, "within the time allowed", "Timeout"),
            (Error::Internal(f()), "internal error: f", "Internal"),
            (KernelError::Singular(f()).into(), "f", "LinAlgError"),
            (KernelError::NoMemory { needed_bytes: 9 }.into(), "9 bytes", "MemoryError"),
        ];
        for (error, text, class) in expected {
            assert!(error.to_string().contains(text), "{error} does not say {text}");
            assert_eq!(error.class(), class, "{error}");
        }
    }

    #[test]
    fn a_failure_of_the_engine_keeps_its_cause_and_class() {
        let failure = |class, axis| EngineFailure::new(class, Error::RepeatedAxis { axis });
        let error = Error::Engine(failure("NodeDied", 1));
        assert_eq!((error.class(), error.to_string().as_str()), ("NodeDied", "repeated axis 1"));
        assert_eq!(error, Error::Engine(failure("NodeDied", 1)));
        assert_ne!(error, Error::Engine(failure("NodeDied", 2)));
        assert_ne!(error, Error::Engine(failure("Timeout", 1)));
        let Error::Engine(failure) = error else { panic!("another error") };
        assert_eq!(failure.cause().downcast_ref(), Some(&Error::RepeatedAxis { axis: 1 }));
    }
}
