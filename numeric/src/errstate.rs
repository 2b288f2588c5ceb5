//! What becomes of warnings: NumPy's `errstate` for a whole computation.
//!
//! Warnings of a computation are in its [`Metrics`](tharsis_graph::Metrics), wherever it ran.

use crate::error::{Error, Result};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{Condition, Warning, Warnings};

/// What a condition leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Ignore,
    /// An error.
    Raise,
    /// A warning beside the results.
    #[default]
    Warn,
}

/// What each condition leads to; all of them to warnings by default, as in NumPy.
///
/// ```
/// use tharsis_numeric::errstate::{ErrState, Reaction};
/// use tharsis_numeric::{LocalExecutor, ones, zeros};
///
/// let quotient = (ones(&[3])? / &zeros(&[3])?)?;
/// let (_, metrics) = tharsis_numeric::execute(&[&quotient], &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(ErrState::default().apply(&metrics.warnings)?, ["divide by zero encountered in divide"]);
/// let strict = ErrState { divide: Reaction::Raise, ..ErrState::default() };
/// assert_eq!(strict.apply(&metrics.warnings).unwrap_err().class(), "FloatingPointError");
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrState {
    /// A finite number divided by zero, and what amounts to it.
    pub divide: Reaction,
    /// A result that is no number, of arguments that are.
    pub invalid: Reaction,
    /// A finite result beyond the largest number.
    pub over: Reaction,
}

impl ErrState {
    /// The same for all conditions.
    #[must_use]
    pub fn all(reaction: Reaction) -> ErrState {
        ErrState { divide: reaction, invalid: reaction, over: reaction }
    }

    /// The texts of what is warned of.
    ///
    /// # Errors
    /// `FloatingPointError` for the first that is to be raised.
    #[track_caller]
    pub fn apply(&self, warnings: &Warnings) -> Result<Vec<String>> {
        if let Some(raised) = warnings.iter().find(|warning| self.of(warning) == Reaction::Raise) {
            return Err(Error::here(GraphError::FloatingPoint(raised.to_string())));
        }
        let warned = warnings.iter().filter(|warning| self.of(warning) == Reaction::Warn);
        Ok(warned.map(Warning::to_string).collect())
    }

    fn of(&self, warning: &Warning) -> Reaction {
        match warning.condition {
            Condition::DivideByZero => self.divide,
            Condition::Invalid => self.invalid,
            Condition::Overflow => self.over,
        }
    }
}
