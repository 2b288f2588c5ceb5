//! Errors with the place in the program that caused them. Tensors carry them.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use tharsis_graph::error::shape_text;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::KernelError;
use tharsis_types::{Failure, FailureKind};

/// Kind of an error, and the place where the expression was built.
///
/// ```
/// use tharsis_numeric::{arange, ones};
///
/// let error = (ones(&[2, 3]) + arange(4)).sqrt().check().unwrap_err();
/// assert_eq!(error.class(), "ValueError");
/// assert_eq!(error.location().file(), file!());
/// assert_eq!((&error.operands()[0].shape[..], &error.operands()[1].shape[..]), (&[2, 3][..], &[4][..]));
/// ```
#[derive(Clone)]
pub struct Error {
    facts: Arc<Facts>,
}

/// Errors are cloned with the tensors that carry them.
struct Facts {
    cause: GraphError,
    location: &'static Location<'static>,
    operands: Vec<Meta>,
}

/// The result of running an expression, or of asking for its shape or dtype.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `cause`, blamed on the caller.
    ///
    /// ```
    /// let error = tharsis_numeric::Error::here(tharsis_graph::Error::Value("no such shape".to_owned()));
    /// assert_eq!((error.class(), error.location().line()), ("ValueError", line!() - 1));
    /// ```
    #[track_caller]
    pub fn here(cause: impl Into<GraphError>) -> Error {
        Error::new(cause.into(), Location::caller(), Vec::new())
    }

    fn new(cause: GraphError, location: &'static Location<'static>, operands: Vec<Meta>) -> Error {
        Error { facts: Arc::new(Facts { cause, location, operands }) }
    }

    /// Kind of error in the expression.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let error = ones(&[2]).sum(1).check().unwrap_err();
    /// assert!(matches!(error.cause(), tharsis_graph::Error::Axis { axis: 1, rank: 1 }));
    /// ```
    pub fn cause(&self) -> &GraphError {
        &self.facts.cause
    }

    /// The exception that a NumPy user would see.
    ///
    /// ```
    /// use tharsis_numeric::{index, ones};
    /// assert_eq!(ones(&[2]).get(&index![5]).check().unwrap_err().class(), "IndexError");
    /// ```
    pub fn class(&self) -> &'static str {
        self.facts.cause.class()
    }

    /// Place in the program where the expression was built or run.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let error = ones(&[2]).sum(1).check().unwrap_err();
    /// assert_eq!(error.location().line(), line!() - 1);
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.facts.location
    }

    /// Shape and dtype of each operand of an operation that was refused when it was built.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let error = ones(&[2]).sum(1).check().unwrap_err();
    /// assert_eq!(error.operands()[0].shape, [2]);
    /// ```
    pub fn operands(&self) -> &[Meta] {
        &self.facts.operands
    }
}

impl fmt::Display for Error {
    /// The cause, the place, and the operands where the cause does not name their shapes itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { cause, location, operands } = &*self.facts;
        write!(f, "{cause} (at {}:{}", location.file(), location.line())?;
        for (i, Meta { shape, dtype }) in operands.iter().enumerate() {
            write!(f, "{} {dtype} {}", if i == 0 { ", of" } else { " and" }, shape_text(shape))?;
        }
        write!(f, ")")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { cause, location, operands } = &*self.facts;
        let mut fields = f.debug_struct("Error");
        fields.field("cause", cause).field("location", location).field("operands", operands).finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.facts.cause)
    }
}

/// The error as a failure of the task engine, so that one error type serves tasks and tensors. A failure of
/// the engine is returned unchanged; for other errors the message begins with the class.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if let GraphError::Engine(engine) = error.cause()
            && let Some(failure) = engine.cause().downcast_ref::<Failure>()
        {
            return failure.clone();
        }
        let kind = match error.class() {
            "Cancelled" => FailureKind::Cancelled,
            "DataCorrupt" | "ObjectArray" | "PathTraversal" => FailureKind::DataCorrupt,
            "Internal" => FailureKind::Internal,
            "MemoryError" => FailureKind::ResourceExhausted,
            "RuntimeError" => FailureKind::UserError,
            "Timeout" => FailureKind::TimedOut,
            _ => FailureKind::InvalidArgument,
        };
        Failure::new(kind, format!("{}: {error}", error.class()))
    }
}

/// Why an operation cannot be built: a new reason, or the error that an operand carries.
pub(crate) trait Refusal {
    /// As an error of an operation at `location` on `operands`; an error that has a place keeps it.
    fn blamed(self, location: &'static Location<'static>, operands: Vec<Meta>) -> Error;
}

impl Refusal for Error {
    fn blamed(self, _: &'static Location<'static>, _: Vec<Meta>) -> Error {
        self
    }
}

impl Refusal for GraphError {
    fn blamed(self, location: &'static Location<'static>, operands: Vec<Meta>) -> Error {
        Error::new(self, location, operands)
    }
}

impl Refusal for KernelError {
    fn blamed(self, location: &'static Location<'static>, operands: Vec<Meta>) -> Error {
        GraphError::from(self).blamed(location, operands)
    }
}

/// Blames an error of the graph on the caller's caller.
pub(crate) trait Blame<T> {
    fn blame(self) -> Result<T>;
}

impl<T, E: Refusal> Blame<T> for std::result::Result<T, E> {
    #[track_caller]
    fn blame(self) -> Result<T> {
        match self {
            Ok(value) => Ok(value),
            Err(cause) => Err(cause.blamed(Location::caller(), Vec::new())),
        }
    }
}
