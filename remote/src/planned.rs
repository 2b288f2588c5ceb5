//! Future results of the tasks of a graph that is being built: arguments of later tasks, and what is kept.

use std::fmt;
use std::marker::PhantomData;

/// The future result of a task of a [`TaskGraph`](crate::TaskGraph): an argument of later tasks of the
/// graph, and what [`submit`](crate::TaskGraph::submit) is told to keep.
pub struct Planned<T> {
    pub(crate) result: PlannedResult,
    value: PhantomData<fn() -> T>,
}

/// One of several results, before it has its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedResult {
    pub(crate) graph: u64,
    pub(crate) step: u32,
    pub(crate) index: u32,
}

/// An argument that is the result of a task of a graph.
#[derive(Clone, Copy)]
pub(crate) struct PlannedArgument {
    pub(crate) result: PlannedResult,
    pub(crate) parameter: u16,
}

impl PlannedResult {
    /// Gives it its type.
    #[must_use]
    pub fn typed<T>(self) -> Planned<T> {
        Planned { result: self, value: PhantomData }
    }
}

impl<T> Clone for Planned<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Planned<T> {}

impl<T> fmt::Debug for Planned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlannedResult { graph, step, index } = self.result;
        write!(f, "Planned<{}>(result {index} of task {step} of graph {graph})", std::any::type_name::<T>())
    }
}
