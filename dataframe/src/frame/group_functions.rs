//! Functions of the program over groups of rows.

use super::aggregate::Aggregate;
use super::functions::{Given, POSITION, column_type};
use super::group::{GroupBy, Key};
use super::reduction::Reduction;
use super::window::Step;
use super::{DataFrame, Frame, HIDDEN, Level, OrderKey};
use crate::error::Result;
use crate::registered::{Function, OverChunk, OverColumn};
use crate::stage::applied::{Made, Passing, Unit, made_of};
use arrow::datatypes::Field;
use datafusion::logical_expr::LogicalPlan;
use std::panic::Location;

/// The source of a value for each row of a group.
#[derive(Clone, Debug)]
pub enum Transform {
    /// The aggregate of the group, in each of its rows.
    Aggregate(Aggregate),
    /// A function of the program, which gets the values of a column in a group, all at once, and gives as
    /// many, or one for all.
    Function(Function<OverColumn>),
}

impl From<Aggregate> for Transform {
    fn from(aggregate: Aggregate) -> Transform {
        Transform::Aggregate(aggregate)
    }
}

impl From<Function<OverColumn>> for Transform {
    fn from(function: Function<OverColumn>) -> Transform {
        Transform::Function(function)
    }
}

impl GroupBy {
    /// The rows that a function of the program gives for each group, with the keys as first levels of the
    /// index. It gets the columns that are no keys, or the chosen ones. A function that gives a single value
    /// makes a row of it, with a column `0`.
    ///
    /// # Errors
    /// When it runs: `Function` if it fails, panics, or gives other columns than declared or found.
    #[track_caller]
    pub fn apply(&self, function: Function<OverChunk>) -> DataFrame {
        let place = Location::caller();
        let made = self.check().and_then(|()| {
            let (frame, keys) = self.parts()?;
            let call = function.call_from(place)?;
            let frame = self.present(&frame.with_order()?, keys)?;
            let columns = self.columns_but_keys()?;
            let given = frame.given(&names(keys), &columns, call.takes_index(0), &frame.order_columns())?;
            let made = made_of(std::slice::from_ref(&call), vec![given.empty()])?;
            let plan = given.plan(Unit::Group, Passing::First, vec![call], &made)?;
            self.by_group(plan, &frame, keys, &made)
        });
        DataFrame::new(made)
    }

    /// A value for each row of each group, for the columns that are no keys: an aggregate of the group, or
    /// what a function of the program gives. An aggregate leaves out the columns that it is not made for.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let sales = DataFrame::from_columns([
    ///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
    ///     ("sold", vec![3, 5, 4].into()),
    /// ]);
    /// let totals = sales.groupby(["city"]).transform(Aggregate::Sum);
    /// assert_eq!(totals.col("sold").values::<i64>()?, [Some(7), Some(5), Some(7)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it runs: `Function` if a function fails, panics, or gives other numbers of values.
    #[track_caller]
    pub fn transform(&self, how: impl Into<Transform>) -> DataFrame {
        let place = Location::caller();
        match how.into() {
            Transform::Aggregate(aggregate) => self.window_step(&Step::Whole(aggregate)),
            Transform::Function(function) => DataFrame::new(self.transformed(&function, place)),
        }
    }

    fn transformed(&self, function: &Function<OverColumn>, place: &Location<'_>) -> Result<Frame> {
        let columns = self.columns_but_keys()?;
        let (frame, keys) = self.parts()?;
        let call = function.call_from(place)?;
        let frame = frame.with_order()?;
        let passed = frame.key_columns();
        let given = frame.given(&names(keys), &columns, false, &passed)?;
        let fields = given.fields().iter().map(|field| {
            let dtype = column_type(&call, field.data_type())?;
            Ok(Field::new(field.name(), dtype, true))
        });
        let made = Made { levels: Vec::new(), fields: fields.collect::<Result<_>>()? };
        let plan = given.by_column(self.dropna).plan(Unit::Group, Passing::Each, vec![call], &made)?;
        let name = |column: &String| {
            let at = passed.iter().position(|passed| passed == column);
            format!("{HIDDEN}pass_{}", at.unwrap_or_default())
        };
        let index = frame.index.iter().map(|level| Level { column: name(&level.column), ..level.clone() });
        let order = frame.order.iter().map(|key| OrderKey { column: name(&key.column), ..key.clone() });
        Ok(Frame { plan, columns, index: index.collect(), order: order.collect() })
    }

    /// Each group reduced by functions of the program, with the keys as first levels of the index.
    ///
    /// # Errors
    /// As [`GroupBy::apply`].
    #[track_caller]
    pub fn reduce(&self, reduction: &Reduction) -> DataFrame {
        let place = Location::caller();
        let made = self.check().and_then(|()| {
            let (frame, keys) = self.parts()?;
            let calls = reduction.calls(place)?;
            let frame = self.present(&frame.with_order()?, keys)?;
            let columns = self.columns_but_keys()?;
            let indexed = calls.takes_index();
            let given = frame.given(&names(keys), &columns, indexed, &frame.order_columns())?;
            let found = calls.found(given.empty())?;
            let partial = given.partial(Unit::ChunkGroup, calls.partial(), &found.state)?;
            let plan = partial.plan(Unit::Group, Passing::First, calls.last(), &found.result)?;
            self.by_group(plan, &frame, keys, &found.result)
        });
        DataFrame::new(made)
    }

    /// The rows that belong to a group.
    fn present(&self, frame: &Frame, keys: &[Key]) -> Result<Frame> {
        match self.in_group(keys) {
            Some(present) => Ok(Frame { plan: frame.builder().filter(present)?.build()?, ..frame.clone() }),
            None => Ok(frame.clone()),
        }
    }

    /// The results of functions for the groups of a frame, in order, under the labels of the keys.
    fn by_group(&self, plan: LogicalPlan, frame: &Frame, keys: &[Key], made: &Made) -> Result<Frame> {
        let key_name = |at: usize| format!("{HIDDEN}key_{at}");
        let mut order: Vec<OrderKey> = if self.sort {
            (0..keys.len()).map(|at| OrderKey::growing(&key_name(at))).collect()
        } else {
            // The first row of each group.
            let passed = frame.order_columns();
            let at = |key: &OrderKey| passed.iter().position(|column| *column == key.column);
            let name = |key: &OrderKey| format!("{HIDDEN}pass_{}", at(key).unwrap_or_default());
            frame.order.iter().map(|key| OrderKey { column: name(key), ..key.clone() }).collect()
        };
        order.push(OrderKey::growing(POSITION));
        let keys = keys.iter().enumerate();
        let mut index: Vec<Level> =
            keys.map(|(at, key)| Level { column: key_name(at), name: Some(key.label.clone()) }).collect();
        index.extend(made.index());
        let frame = Frame { plan, columns: made.labels(), index, order };
        if self.as_index { Ok(frame) } else { frame.index_as_columns() }
    }
}

fn names(keys: &[Key]) -> Vec<String> {
    keys.iter().map(|key| key.column.clone()).collect()
}

impl Given {
    /// Each column for itself; rows without a key are left alone if they belong to no group.
    fn by_column(mut self, skips_missing: bool) -> Given {
        self.spec.by_column = true;
        self.spec.skips_missing = skips_missing;
        self
    }
}
