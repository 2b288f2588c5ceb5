//! Handling of floating-point warnings: NumPy's `errstate` for a whole computation.
//!
//! Warnings of a computation are in its [`Metrics`](tharsis_graph::Metrics), wherever it ran. A guard of the
//! thread decides on them: [`errstate`]. Without a guard they are issued as in Python: on standard error with
//! the line that computed, each text once per line.

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{Condition, Warning, Warnings};

/// Reaction to a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// The condition is ignored.
    Ignore,
    /// An error.
    Raise,
    /// A warning beside the results.
    #[default]
    Warn,
}

/// Reaction to each condition; all are warnings by default, as in NumPy.
///
/// ```
/// use tharsis_numeric::errstate::{ErrState, Reaction};
/// use tharsis_numeric::{LocalExecutor, ones, zeros};
///
/// let quotient = ones(&[3]) / zeros(&[3]);
/// let (_, metrics) = tharsis_numeric::execute(&[&quotient], &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(ErrState::default().apply(&metrics.warnings)?, ["divide by zero encountered in divide"]);
/// let strict = ErrState { divide: Reaction::Raise, ..ErrState::default() };
/// assert_eq!(strict.apply(&metrics.warnings).unwrap_err().class(), "FloatingPointError");
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrState {
    /// A division of a finite number by zero, or another exact infinity such as `log(0)`.
    pub divide: Reaction,
    /// A NaN result of arguments that are not NaN.
    pub invalid: Reaction,
    /// A result that is too large for its dtype.
    pub over: Reaction,
}

thread_local! {
    /// The guards of this thread, innermost last, each with its collected warnings.
    static GUARDS: RefCell<Vec<(ErrState, Vec<String>)>> = const { RefCell::new(Vec::new()) };
}

/// Decides on the warnings of this thread's computations until it is dropped.
#[derive(Debug)]
#[must_use = "the state is that from before once this is dropped"]
pub struct Guard {
    // The state is the thread's, and so is the guard.
    thread: PhantomData<*const ()>,
}

/// NumPy's `with np.errstate(..)`: until the guard is dropped, computations of this thread raise or collect
/// warnings according to `state`, each warning once per computation. Guards must be dropped in reverse order.
///
/// ```
/// use tharsis_numeric::errstate::{ErrState, errstate};
/// use tharsis_numeric::{ones, zeros};
///
/// let guard = errstate(ErrState::default());
/// (ones(&[3]) / zeros(&[3])).fetch::<f64>()?;
/// assert_eq!(guard.take(), ["divide by zero encountered in divide"]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn errstate(state: ErrState) -> Guard {
    GUARDS.with_borrow_mut(|guards| guards.push((state, Vec::new())));
    Guard { thread: PhantomData }
}

impl Guard {
    /// Warnings since the last call, while this was the innermost guard.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::errstate::{ErrState, errstate};
    /// let guard = errstate(ErrState::default());
    /// array([-1.0]).sqrt().to_vec::<f64>()?;
    /// assert_eq!(guard.take(), ["invalid value encountered in sqrt"]);
    /// assert!(guard.take().is_empty());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
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

/// File, line and text of a warning.
type Issued = (&'static str, u32, String);

/// Warnings issued so far, so that a loop does not issue them again.
static ISSUED: Mutex<BTreeSet<Issued>> = Mutex::new(BTreeSet::new());

/// Issues warnings for the line that computes.
#[track_caller]
fn issue(warnings: &Warnings) {
    let line = Location::caller();
    for warning in warnings {
        let text = warning.to_string();
        let mut issued = ISSUED.lock().unwrap_or_else(PoisonError::into_inner);
        if issued.insert((line.file(), line.line(), text.clone())) {
            // A closed standard error is no reason to fail.
            let (file, line) = (line.file(), line.line());
            let _written = writeln!(std::io::stderr(), "{file}:{line}: RuntimeWarning: {text}");
        }
    }
}

/// Passes the warnings of a computation to the innermost guard of this thread, or to standard error.
#[track_caller]
pub(crate) fn tell(warnings: &Warnings) -> Result<()> {
    let Some(state) = GUARDS.with_borrow(|guards| guards.last().map(|(state, _)| *state)) else {
        issue(warnings);
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
    /// NumPy's `errstate(all=..)`: the same for all conditions.
    ///
    /// ```
    /// use tharsis_numeric::{ErrState, Reaction};
    /// assert_eq!(ErrState::all(Reaction::Warn), ErrState::default());
    /// ```
    #[must_use]
    pub fn all(reaction: Reaction) -> ErrState {
        ErrState { divide: reaction, invalid: reaction, over: reaction }
    }

    /// The texts of the warnings that are to be collected.
    ///
    /// ```
    /// use tharsis_numeric::{ErrState, Reaction};
    /// use tharsis_numeric::{LocalExecutor, array, execute};
    /// let local = LocalExecutor::sized(2, 1 << 20);
    /// let (_, metrics) = execute(&[&array([0.0]).log()], &local)?;
    /// assert!(ErrState::all(Reaction::Ignore).apply(&metrics.warnings)?.is_empty());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `FloatingPointError` for the first warning that is to be raised.
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
