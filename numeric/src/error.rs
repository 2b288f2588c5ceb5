//! Errors with the place in the program that caused them.

use std::fmt;
use std::panic::Location;
use tharsis_graph::Error as GraphError;

/// What went wrong, and where the expression was built.
#[derive(Clone, Debug)]
pub struct Error {
    cause: Box<GraphError>,
    location: &'static Location<'static>,
}

/// The result of building or running an expression.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `cause`, blamed on the caller.
    #[track_caller]
    pub fn here(cause: impl Into<GraphError>) -> Error {
        Error { cause: Box::new(cause.into()), location: Location::caller() }
    }

    /// What went wrong in the expression.
    pub fn cause(&self) -> &GraphError {
        &self.cause
    }

    /// The exception that a NumPy user would see.
    pub fn class(&self) -> &'static str {
        self.cause.class()
    }

    /// Where the program asked for it.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {}:{})", self.cause, self.location.file(), self.location.line())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}

/// Blames an error of the graph on the caller's caller.
pub(crate) trait Blame<T> {
    fn blame(self) -> Result<T>;
}

impl<T, E: Into<GraphError>> Blame<T> for std::result::Result<T, E> {
    #[track_caller]
    fn blame(self) -> Result<T> {
        match self {
            Ok(value) => Ok(value),
            Err(cause) => Err(Error::here(cause)),
        }
    }
}
