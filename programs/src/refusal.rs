//! Calls that are refused.

use std::fmt;

/// Reason why a call is refused: the exception that Python raises, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The name of the exception's class; `NotImplemented` for what does not exist here.
    pub class: &'static str,
    /// The text of the exception.
    pub message: String,
}

impl Refusal {
    /// A call whose arguments do not bind: `TypeError`.
    #[must_use]
    pub fn binding(message: String) -> Refusal {
        Refusal { class: "TypeError", message }
    }

    /// An argument that a parameter does not take: `ValueError`.
    #[must_use]
    pub fn value(message: String) -> Refusal {
        Refusal { class: "ValueError", message }
    }

    /// An argument that is right in Python and does not exist here.
    #[must_use]
    pub fn missing(message: String) -> Refusal {
        Refusal { class: "NotImplemented", message }
    }

    /// A row that reads a parameter which it does not have: a defect of the row.
    #[must_use]
    pub fn defect(message: String) -> Refusal {
        Refusal { class: "Internal", message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Refusal {}
