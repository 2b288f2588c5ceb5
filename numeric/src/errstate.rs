//! What becomes of warnings: NumPy's `errstate` for a whole computation.
//!
//! Warnings of a computation are in its [`Metrics`](tharsis_graph::Metrics), wherever it ran. Where these are
//! not at hand, as with [`Tensor::fetch`](crate::Tensor::fetch), a guard says what becomes of them:
//! [`errstate`].

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::marker::PhantomData;
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

thread_local! {
    /// The guards of this thread, innermost last, with what they were told.
    static GUARDS: RefCell<Vec<(ErrState, Vec<String>)>> = const { RefCell::new(Vec::new()) };
}

/// Decides on the warnings of this thread's computations until it is dropped.
#[derive(Debug)]
#[must_use = "the state is that from before once this is dropped"]
pub struct Guard {
    // The state is the thread's, and so is the guard.
    thread: PhantomData<*const ()>,
}

/// NumPy's `with np.errstate(..)`: until the guard is dropped, what this thread computes raises or collects
/// warnings as `state` says, each once per computation. Without a guard they are in the metrics alone. Guards
/// end in the reverse of the order in which they began.
///
/// ```
/// use tharsis_numeric::errstate::{ErrState, errstate};
/// use tharsis_numeric::{ones, zeros};
///
/// let guard = errstate(ErrState::default());
/// (ones(&[3])? / &zeros(&[3])?)?.fetch::<f64>()?;
/// assert_eq!(guard.take(), ["divide by zero encountered in divide"]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn errstate(state: ErrState) -> Guard {
    GUARDS.with_borrow_mut(|guards| guards.push((state, Vec::new())));
    Guard { thread: PhantomData }
}

impl Guard {
    /// What was warned of since the last call, while this was the innermost guard.
    pub fn take(&self) -> Vec<String> {
        GUARDS
            .with_borrow_mut(|guards| guards.last_mut().map(|(_, told)| std::mem::take(told)))
            .unwrap_or_default()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.with_borrow_mut(Vec::pop);
    }
}

/// Tells the innermost guard of this thread, if there is one, what a computation met.
#[track_caller]
pub(crate) fn tell(warnings: &Warnings) -> Result<()> {
    let Some(state) = GUARDS.with_borrow(|guards| guards.last().map(|(state, _)| *state)) else {
        return Ok(());
    };
    let mut texts = state.apply(warnings)?;
    GUARDS.with_borrow_mut(|guards| {
        if let Some((_, told)) = guards.last_mut() {
            told.append(&mut texts);
        }
    });
    Ok(())
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
