//! Reductions made of functions of the program.

use super::functions::Given;
use super::{DataFrame, Frame};
use crate::error::{Error, FunctionFault, Result};
use crate::frame::series::Series;
use crate::registered::{Call, Function, OverChunk};
use crate::stage::applied::{Made, Passing, Spec, Unit, empty, made_of};
use crate::table::Table;
use crate::value::Value;
use arrow::datatypes::Schema;
use std::panic::Location;
use std::sync::Arc;

/// A reduction of the rows of a frame, or of each group, by functions of the program.
///
/// `pre` makes a state of the rows of each chunk, `agg` makes one state of several below each other, in any
/// grouping, and `post` makes the result of the last state. Without `pre` the rows themselves are states,
/// without `post` the last state is the result. A state is a table of any form, without an index, and should
/// be small: the last step has those of all chunks in memory. `agg` is called with no rows if there are none.
#[must_use]
#[derive(Clone, Debug)]
pub struct Reduction {
    pre: Option<Function<OverChunk>>,
    agg: Function<OverChunk>,
    post: Option<Function<OverChunk>>,
}

impl Reduction {
    /// A reduction that makes one state of several by this function.
    pub fn new(agg: Function<OverChunk>) -> Reduction {
        Reduction { pre: None, agg, post: None }
    }

    /// Makes states of rows by this function.
    pub fn pre(self, pre: Function<OverChunk>) -> Reduction {
        Reduction { pre: Some(pre), ..self }
    }

    /// Makes the result of the last state by this function.
    pub fn post(self, post: Function<OverChunk>) -> Reduction {
        Reduction { post: Some(post), ..self }
    }

    pub(super) fn calls(&self, place: &Location<'_>) -> Result<Calls> {
        let optional = |function: &Option<Function<OverChunk>>| {
            function.as_ref().map(|function| function.call_from(place)).transpose()
        };
        Ok(Calls { pre: optional(&self.pre)?, agg: self.agg.call_from(place)?, post: optional(&self.post)? })
    }
}

/// The calls of a reduction.
#[derive(Debug)]
pub(super) struct Calls {
    pre: Option<Call>,
    agg: Call,
    post: Option<Call>,
}

/// The columns of a state and of the result.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) state: Made,
    pub(super) result: Made,
}

impl Calls {
    /// The calls that make a state of rows.
    pub(super) fn partial(&self) -> Vec<Call> {
        self.pre.iter().chain([&self.agg]).cloned().collect()
    }

    /// The calls that make the result of states.
    pub(super) fn last(&self) -> Vec<Call> {
        [&self.agg].into_iter().chain(&self.post).cloned().collect()
    }

    /// Whether the first call takes the levels of an index.
    pub(super) fn takes_index(&self) -> bool {
        self.pre.as_ref().unwrap_or(&self.agg).takes_index(0)
    }

    /// The columns of states and of the result, found with no rows.
    pub(super) fn found(&self, rows: Table) -> Result<Found> {
        let state = made_of(&self.partial(), vec![rows])?;
        let empty = empty(Arc::new(Schema::new(state.fields.clone())), state.levels.clone());
        let again = made_of(std::slice::from_ref(&self.agg), vec![empty.clone()])?;
        if again.fields != state.fields || !state.levels.is_empty() {
            let text = format!(
                "it must give states like those that it is given: without an index, with the columns {:?}; it \
                 gives {:?}",
                state.labels(),
                again.labels()
            );
            return Err(self.agg.error(FunctionFault::Types(text)));
        }
        Ok(Found { state, result: made_of(&self.last(), vec![empty])? })
    }
}

impl Given {
    /// States as the input of the last step.
    pub(super) fn partial(self, unit: Unit, calls: Vec<Call>, state: &Made) -> Result<Given> {
        let passing = if self.keys.is_empty() { Passing::Nothing } else { Passing::First };
        let fields = state.fields.len();
        let (keys, passed, spec) = (self.keys.clone(), self.passed.clone(), self.spec.clone());
        let before = self.fields().len();
        let plan = self.plan(unit, passing, calls, state)?;
        let mut order = spec.order.clone();
        for key in order.iter_mut().flatten() {
            key.column = key.column + fields - before;
        }
        let schema = Arc::new(Schema::new(state.fields.clone()));
        let spec = Spec { levels: vec![Vec::new()], order, ..spec };
        Ok(Given { plans: vec![plan], spec, schema, keys, passed })
    }
}

impl DataFrame {
    /// The rows reduced by functions of the program. The order in which they get rows is that of the frame,
    /// unless it has been sorted, joined or grouped.
    ///
    /// # Errors
    /// When it runs: `Function` if one fails, panics, or gives other columns than declared or found.
    #[track_caller]
    pub fn reduce(&self, reduction: &Reduction) -> DataFrame {
        let place = Location::caller();
        self.then(|frame| {
            let calls = reduction.calls(place)?;
            let given = frame.given(&[], &frame.columns, calls.takes_index(), &[])?;
            let found = calls.found(given.empty())?;
            let partial = given.partial(Unit::Chunk, calls.partial(), &found.state)?;
            let plan = partial.plan(Unit::Whole, Passing::Nothing, calls.last(), &found.result)?;
            let (columns, index) = (found.result.labels(), found.result.index());
            Ok(Frame { plan, columns, index, order: Vec::new() })
        })
    }
}

impl Series {
    /// The value to which functions of the program reduce the values, in a frame of this one column.
    ///
    /// # Errors
    /// As [`DataFrame::reduce`]; `ValueError` if the result is not one row of one column.
    #[track_caller]
    pub fn reduce(&self, reduction: &Reduction) -> Result<Value> {
        let table = self.to_frame().reduce(reduction).collect()?;
        match (table.len(), &table.columns()[..]) {
            (1, [label]) => table.value(0, label),
            (rows, labels) => Err(Error::Value(format!(
                "a reduction to one value gave {rows} rows of the columns {labels:?}"
            ))),
        }
    }
}
