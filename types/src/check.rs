//! The one check of a task class.
//!
//! A class passes from a driver's options to its node and from there to others, each of which believes
//! nobody. If two of them asked for different things, a class that one side takes would be refused by the
//! next one, behind a link that repeats what was not taken. So all of them ask here.

use crate::limits::{NAME_BYTES_MAX, RETURNS_MAX};
use crate::task::{LabelTerm, Role};
use crate::{BadResource, NodeId, Placement, RetryOn, TaskClass};

/// Bytes of all texts of a placement, or of a list of error types.
pub const LIST_BYTES_MAX: usize = 64 << 10;

/// An option of a class that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {fault}")]
pub struct BadOption {
    /// The option, as its setter is called.
    pub option: &'static str,
    /// Its fault.
    pub fault: Fault,
}

/// The fault of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A constructor with more results than its actor.
    #[error("{0} for the constructor of an actor")]
    ConstructorReturns(u32),
    /// A name that would act on a terminal.
    #[error("{0:?} has control characters")]
    Control(String),
    /// Text that is longer than what is sent around.
    #[error("{bytes} bytes, the limit is {limit}")]
    Long {
        /// Bytes found.
        bytes: usize,
        /// Most bytes allowed.
        limit: usize,
    },
    /// An amount or a name of a resource that is outside the limits.
    #[error("{0}")]
    Resource(BadResource),
    /// Fewer than "without end".
    #[error("{0} is less than -1, without end")]
    Retries(i32),
    /// No results, or too many.
    #[error("{0} is not from 1 to {RETURNS_MAX}")]
    Returns(u32),
    /// An id that nothing has.
    #[error("there is none with the number 0")]
    Zero,
}

impl Fault {
    fn of(self, option: &'static str) -> BadOption {
        BadOption { option, fault: self }
    }
}

impl TaskClass {
    /// Checks a class that came from outside: a driver, a node, the options of a call.
    ///
    /// # Errors
    /// [`BadOption`] names the first option that is not what it should be.
    pub fn check(&self) -> Result<(), BadOption> {
        if self.job.0 == 0 {
            return Err(Fault::Zero.of("job"));
        }
        check_returns(self.returns)?;
        if self.role == Role::Constructor && self.returns != 1 {
            return Err(Fault::ConstructorReturns(self.returns).of("num_returns"));
        }
        if self.max_retries < -1 {
            return Err(Fault::Retries(self.max_retries).of("max_retries"));
        }
        check_name(&self.name)?;
        self.resources.check().map_err(|bad| Fault::Resource(bad).of("resources"))?;
        check_retry_on(&self.retry_on)?;
        check_placement(&self.placement)
    }
}

/// Checks the number of results of a call.
///
/// # Errors
/// [`Fault::Returns`].
pub fn check_returns(count: u32) -> Result<(), BadOption> {
    if (1..=RETURNS_MAX).contains(&count) { Ok(()) } else { Err(Fault::Returns(count).of("num_returns")) }
}

/// Checks a name for people: short, and without characters that act on a terminal.
///
/// # Errors
/// [`Fault::Long`] or [`Fault::Control`].
pub fn check_name(name: &str) -> Result<(), BadOption> {
    if NAME_BYTES_MAX < name.len() {
        return Err(Fault::Long { bytes: name.len(), limit: NAME_BYTES_MAX }.of("name"));
    }
    if name.chars().any(char::is_control) {
        return Err(Fault::Control(name.to_owned()).of("name"));
    }
    Ok(())
}

/// Checks the types of errors that are retried.
///
/// # Errors
/// [`Fault::Long`].
pub fn check_retry_on(retry_on: &RetryOn) -> Result<(), BadOption> {
    match retry_on {
        RetryOn::Nothing | RetryOn::Everything => Ok(()),
        RetryOn::Types(types) => check_list("retry_on", types.iter().map(String::len)),
    }
}

/// Checks where a call runs.
///
/// # Errors
/// [`Fault::Zero`] or [`Fault::Long`].
pub fn check_placement(placement: &Placement) -> Result<(), BadOption> {
    match placement {
        Placement::Node { node: NodeId(0), .. } => Err(Fault::Zero.of("node")),
        Placement::Labels(selectors) => {
            check_list("labels", selectors.iter().map(|terms| terms.iter().map(term_bytes).sum()))
        }
        _ => Ok(()),
    }
}

fn term_bytes(term: &LabelTerm) -> usize {
    match term {
        LabelTerm::In(key, values) | LabelTerm::NotIn(key, values) => {
            key.len() + values.iter().map(|value| ITEM_BYTES + value.len()).sum::<usize>()
        }
        LabelTerm::Exists(key) | LabelTerm::DoesNotExist(key) => key.len(),
    }
}

fn check_list(option: &'static str, lengths: impl Iterator<Item = usize>) -> Result<(), BadOption> {
    let bytes = lengths.map(|len| ITEM_BYTES + len).sum();
    let limit = LIST_BYTES_MAX;
    if bytes <= limit { Ok(()) } else { Err(Fault::Long { bytes, limit }.of(option)) }
}

/// Bytes that an item of a list takes beside its text, about.
const ITEM_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionId, JobId};

    fn class(change: impl FnOnce(&mut TaskClass)) -> TaskClass {
        let mut class = TaskClass::new(JobId(7), FunctionId(1), "f");
        change(&mut class);
        class
    }

    #[test]
    fn options_that_no_node_takes_are_named() {
        let long = || vec!["x".repeat(LIST_BYTES_MAX)];
        let labels = |values| Placement::Labels(vec![vec![LabelTerm::In("a".into(), values)]]);
        let cases = [
            (class(|c| c.job = JobId(0)), "job"),
            (class(|c| c.returns = 0), "num_returns"),
            (class(|c| c.returns = RETURNS_MAX + 1), "num_returns"),
            (class(|c| (c.role, c.returns) = (Role::Constructor, 2)), "num_returns"),
            (class(|c| c.max_retries = -2), "max_retries"),
            (class(|c| c.name = "a\tb".into()), "name"),
            (class(|c| c.name = "a line\n".into()), "name"),
            (class(|c| c.name = "x".repeat(NAME_BYTES_MAX + 1)), "name"),
            (class(|c| c.resources.cpu = u64::MAX), "resources"),
            (class(|c| _ = c.resources.custom.insert("a b".into(), 1)), "resources"),
            (class(|c| c.retry_on = RetryOn::Types(long())), "retry_on"),
            (class(|c| c.placement = labels(long())), "labels"),
            (class(|c| c.placement = labels(vec![String::new(); LIST_BYTES_MAX])), "labels"),
            (class(|c| c.placement = Placement::Node { node: NodeId(0), soft: true }), "node"),
        ];
        for (class, option) in cases {
            let bad = class.check().unwrap_err().to_string();
            assert!(bad.starts_with(&format!("{option}: ")), "{bad}");
        }
        assert_eq!(class(|_| ()).check(), Ok(()));
    }
}
