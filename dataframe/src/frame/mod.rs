//! The lazy frame: a plan, labels, an index, and the order of rows.

mod aggregate;
mod align;
mod batches;
mod beside;
mod clean;
mod combine;
mod compare;
mod computation;
mod counts;
mod day_times;
mod display;
mod dummies;
mod duplicates;
mod extremes;
mod functions;
mod group;
mod group_functions;
mod group_pairs;
mod group_rest;
mod group_rows;
mod index;
mod index_sets;
mod index_steps;
mod inspect;
mod label_source;
mod labels;
mod levels;
mod matrix;
mod names;
mod near;
mod operators;
mod order;
mod pivot;
mod positions;
mod query;
mod records;
mod reduce;
mod reducing;
mod reduction;
mod resample;
mod reshape;
mod select;
pub(crate) mod series;
mod shared;
mod source;
mod summary;
mod time_labels;
mod values;
mod wide;
mod window;
mod writing;
mod zones;

pub use aggregate::Aggregate;
pub use batches::Batches;
pub use beside::Join;
pub use clean::dtype_named;
pub(crate) use clean::named_column;
pub use combine::{JoinKind, Merge};
pub use compare::Compare;
pub use computation::{Computation, Computed};
pub use counts::Counts;
pub use dummies::Dummies;
pub use duplicates::Keep;
pub use extremes::Ties;
pub use group::{GroupBy, GroupKey};
pub use group_functions::Transform;
pub use index::Index;
pub use levels::{ResetIndex, SetIndex};
pub use matrix::Correlation;
pub use near::{AsOf, Nearest};
pub use operators::FrameOperand;
pub use order::Sort;
pub use pivot::crosstab;
pub use query::{Term, eval};
pub use records::Squeezed;
pub use reducing::{Interpolation, Reduce};
pub use reduction::Reduction;
pub use resample::{Fill, Resample};
pub use reshape::Melt;
pub use window::{
    Ends, Ewm, FillLimit, LimitArea, LimitDirection, NaOption, Rank, RankMethod, Rolling, SpanRolling,
};
#[cfg(feature = "sqlite")]
pub(crate) use writing::written;

use crate::error::{Error, Result};
use crate::execute::{Executor, default_executor, execute, plan_stages};
use crate::explain::Explanation;
use crate::frame::series::Series;
use crate::functions::arithmetic::present;
use crate::metrics::Metrics;
use crate::scanned::ScannedTable;
use crate::stage::row_number::{Numbering, RowNumber};
use crate::stage::{Resident, ResidentTable, Stages};
use crate::table::Table;
use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::expr_rewriter::normalize_sorts;
use datafusion::logical_expr::logical_plan::Sort as LogicalSort;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

/// A table with labelled columns, an index, and rows in an order, as in pandas. It is lazy: methods build a
/// plan, and nothing is read or computed before the rows are asked for ([`DataFrame::collect`],
/// [`DataFrame::head`], writing a file).
///
/// Methods give frames, not results. A mistake (a label that does not exist, a type that does not fit) is
/// carried with the place in the program, to the call that asks for rows.
///
/// ```
/// use tharsis_dataframe::{DataFrame, lit};
/// let sales = DataFrame::from_columns([
///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
///     ("sold", vec![3, 5, 4].into()),
/// ]);
/// let by_city = sales.filter(&sales.col("sold").gt(3)).groupby(["city"]).sum();
/// assert_eq!(by_city.collect()?.column::<i64>("sold")?, [Some(4), Some(5)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "it is lazy: nothing is computed until values are asked for"]
#[derive(Clone, Debug)]
pub struct DataFrame {
    state: std::result::Result<Arc<Frame>, Arc<Error>>,
}

/// The state of a frame without errors.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Gives all columns below, by unqualified names.
    pub(crate) plan: LogicalPlan,
    /// The labels, which are the names in the plan.
    pub(crate) columns: Vec<String>,
    /// The levels of the index; empty if it is the position of each row.
    pub(crate) index: Vec<Level>,
    /// The sort that gives the rows their order; empty if the plan gives them in order.
    pub(crate) order: Vec<OrderKey>,
}

/// One level of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Its column in the plan.
    pub(crate) column: String,
    /// The name that users see.
    pub(crate) name: Option<String>,
}

/// A column of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderKey {
    pub(crate) column: String,
    pub(crate) ascending: bool,
    pub(crate) nulls_first: bool,
}

impl OrderKey {
    /// A key that grows with the order.
    pub(crate) fn growing(column: &str) -> OrderKey {
        OrderKey { column: column.to_owned(), ascending: true, nulls_first: false }
    }
}

/// A reference to a column by its exact name.
pub(crate) fn named(column: &str) -> Expr {
    Expr::Column(Column::new_unqualified(column))
}

/// Beginning of the names of columns that users do not see.
pub(crate) const HIDDEN: &str = "__tharsis_";

impl Frame {
    /// A frame over a plan whose rows are in order: all its columns, and an index of positions.
    pub(crate) fn of_plan(plan: LogicalPlan) -> Result<Frame> {
        Frame::of_columns(plan, |column, _| column)
    }

    /// As [`Frame::of_plan`], for rows that no frame made: files and queries have two zeros, and floats that
    /// are no number, where frames have one zero, and missing values.
    pub(crate) fn of_foreign_rows(plan: LogicalPlan) -> Result<Frame> {
        Frame::of_columns(plan, |column, dtype| if dtype.is_floating() { present(column) } else { column })
    }

    fn of_columns(plan: LogicalPlan, value: impl Fn(Expr, &DataType) -> Expr) -> Result<Frame> {
        let columns: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        let plain = plan.schema().iter().map(|(table, field)| {
            let column = Expr::Column(Column::new(table.cloned(), field.name()));
            value(column, field.data_type()).alias(field.name())
        });
        let plain: Vec<Expr> = plain.collect();
        let plan = LogicalPlanBuilder::from(plan).project(plain)?.build()?;
        Ok(Frame { plan, columns, index: Vec::new(), order: Vec::new() })
    }

    /// A frame over rows that exist.
    pub(crate) fn of_table(table: Resident) -> Result<Frame> {
        let labels: Vec<&String> = table.schema.fields().iter().map(|field| field.name()).collect();
        check_different(&labels)?;
        let source = ResidentTable::new(table).source();
        Frame::of_plan(LogicalPlanBuilder::scan("frame", source, None)?.build()?)
    }

    pub(crate) fn builder(&self) -> LogicalPlanBuilder {
        LogicalPlanBuilder::from(self.plan.clone())
    }

    /// The error for a label that does not exist.
    pub(crate) fn check(&self, label: &str) -> Result<()> {
        if self.columns.iter().any(|column| column == label) {
            Ok(())
        } else {
            Err(Error::Key { label: label.to_owned(), known: self.columns.clone() })
        }
    }

    /// A frame with the same rows, whose columns are these expressions.
    pub(crate) fn project(&self, columns: Vec<(String, Expr)>) -> Result<Frame> {
        let labels: Vec<String> = columns.iter().map(|(label, _)| label.clone()).collect();
        check_different(&labels)?;
        let (lifted, exprs) = self.lifted(columns.into_iter().map(|(_, expr)| expr).collect())?;
        lifted.project_plain(labels, exprs)
    }

    fn project_plain(&self, labels: Vec<String>, exprs: Vec<Expr>) -> Result<Frame> {
        let (plan, exprs) = shared::apart(&self.plan, exprs)?;
        // A hidden column whose visible namesake changes or goes is kept under a name of its own.
        let mut kept = self.clone();
        let mut given: Vec<String> = Vec::new();
        let mut exprs: Vec<Expr> =
            exprs.into_iter().zip(&labels).map(|(expr, label)| expr.alias(label)).collect();
        for column in self.key_columns() {
            let unchanged = exprs.contains(&named(&column).alias(&column));
            if unchanged {
                continue;
            }
            let name =
                if labels.contains(&column) { self.fresh_beside(&column, &given) } else { column.clone() };
            given.push(name.clone());
            exprs.push(named(&column).alias(&name));
            kept.rename_key(&column, &name);
        }
        kept.plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        kept.columns = labels;
        Ok(kept)
    }

    /// The columns that index and order need, each once.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        let index = self.index.iter().map(|level| &level.column);
        for column in index.chain(self.order.iter().map(|key| &key.column)) {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        columns
    }

    fn rename_key(&mut self, from: &str, to: &str) {
        self.index
            .iter_mut()
            .filter(|level| level.column == from)
            .for_each(|level| level.column = to.to_owned());
        self.order.iter_mut().filter(|key| key.column == from).for_each(|key| key.column = to.to_owned());
    }

    /// A name for a hidden column that the plan does not have yet.
    pub(crate) fn fresh(&self, what: &str) -> String {
        self.fresh_beside(what, &[])
    }

    /// As [`Frame::fresh`], and not one of these.
    fn fresh_beside(&self, what: &str, given: &[String]) -> String {
        let what = what.trim_start_matches(HIDDEN).trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let taken = |name: &str| self.plan.schema().fields().iter().any(|field| field.name() == name);
        let mut number = 0;
        loop {
            let name = format!("{HIDDEN}{what}_{number}");
            if !taken(&name) && !given.contains(&name) {
                return name;
            }
            number += 1;
        }
    }

    /// The same frame, whose rows have a number in a hidden column, in their order.
    pub(crate) fn numbered(&self, what: &str, numbering: Numbering) -> Result<(Frame, String)> {
        let column = self.fresh(what);
        let order = if numbering == Numbering::Exact { self.sort_exprs() } else { Vec::new() };
        let plan = RowNumber::plan(self.plan.clone(), &column, numbering, order)?;
        Ok((Frame { plan, ..self.clone() }, column))
    }

    /// The same frame with a hidden column that alone gives the order of its rows.
    pub(crate) fn with_row(&self) -> Result<(Frame, String)> {
        let numbering = if self.order.is_empty() { Numbering::Key } else { Numbering::Exact };
        let (frame, column) = self.numbered("row", numbering)?;
        Ok((Frame { order: vec![OrderKey::growing(&column)], ..frame }, column))
    }

    /// The same frame with columns that give the order of its rows, also if the plan is in order.
    pub(crate) fn with_order(&self) -> Result<Frame> {
        if !self.order.is_empty() {
            return Ok(self.clone());
        }
        let (frame, column) = self.numbered("order", Numbering::Key)?;
        Ok(Frame { order: vec![OrderKey::growing(&column)], ..frame })
    }

    /// The same frame with its positions as a column of the index, if it has no other index.
    pub(crate) fn with_index(&self) -> Result<Frame> {
        if !self.index.is_empty() {
            return Ok(self.clone());
        }
        let (frame, column) = self.numbered("index", Numbering::Exact)?;
        Ok(Frame { index: vec![Level { column, name: None }], ..frame })
    }

    /// The same frame with a plan that gives the rows in order, for a limit or as the last step: planning
    /// drops a sort below anything else.
    fn sorted(&self) -> Result<Frame> {
        if self.order.is_empty() {
            return Ok(self.clone());
        }
        // Not by the library's builder: it looks for a key among the columns below a projection first. There
        // a replaced column still has its former values, which are kept under a hidden name.
        let expr = normalize_sorts(self.sort_exprs(), &self.plan)?;
        let plan = LogicalPlan::Sort(LogicalSort { expr, input: Arc::new(self.plan.clone()), fetch: None });
        Ok(Frame { plan, order: Vec::new(), ..self.clone() })
    }

    /// Some of the rows, in their order.
    pub(crate) fn limited(&self, skip: usize, rows: usize) -> Result<Frame> {
        let plan = LogicalPlanBuilder::from(self.sorted()?.plan).limit(skip, Some(rows))?.build()?;
        Ok(Frame { plan, ..self.clone() })
    }

    /// The order as expressions. Each column stands once: the library's first values panic at a second one.
    pub(crate) fn sort_exprs(&self) -> Vec<SortExpr> {
        let mut known = HashSet::new();
        let keys = self.order.iter().filter(|key| known.insert(&key.column));
        keys.map(|key| named(&key.column).sort(key.ascending, key.nulls_first)).collect()
    }

    /// The values of a column from small to large, or from large to small, and equal ones in the order of
    /// their rows; each column once, too.
    pub(crate) fn by_value(&self, column: &str, smallest: bool) -> Vec<SortExpr> {
        let rest = self.order.iter().filter(|key| key.column != column).cloned();
        let rest = Frame { order: rest.collect(), ..self.clone() };
        std::iter::once(named(column).sort(smallest, false)).chain(rest.sort_exprs()).collect()
    }

    /// A plan that gives the columns of the index, if it is not of positions, then those of the frame, all
    /// rows in order.
    pub(crate) fn output(&self) -> Result<LogicalPlan> {
        let sorted = self.sorted()?;
        let index = sorted.index.iter().map(|level| level.column.clone());
        let columns: Vec<String> = index.chain(sorted.columns.iter().cloned()).collect();
        let mut exprs: Vec<Expr> = Vec::new();
        for column in columns {
            let name = if exprs.contains(&named(&column)) { sorted.fresh(&column) } else { column.clone() };
            exprs.push(if name == column { named(&column) } else { named(&column).alias(name) });
        }
        Ok(LogicalPlanBuilder::from(sorted.plan).project(exprs)?.build()?)
    }

    /// The same frame over the rows of its output.
    fn computed(&self, rows: Resident) -> Result<Frame> {
        let levels = self.index.iter().zip(rows.schema.fields());
        let levels =
            levels.map(|(level, field)| Level { column: field.name().clone(), name: level.name.clone() });
        let index = levels.collect();
        Ok(Frame { index, columns: self.columns.clone(), ..Frame::of_table(rows)? })
    }

    /// The type of a column.
    pub(crate) fn dtype(&self, column: &str) -> Result<DataType> {
        Ok(self.plan.schema().field_with_unqualified_name(column)?.data_type().clone())
    }
}

impl DataFrame {
    /// A frame of a state, or of the first error on the way to it.
    #[track_caller]
    pub(crate) fn new(state: Result<Frame>) -> DataFrame {
        let place = Location::caller();
        let state = state.and_then(|frame| {
            shared::check(&frame.plan)?;
            Ok(frame)
        });
        let state = state.map(Arc::new).map_err(|error| match error {
            placed @ Error::At { .. } => Arc::new(placed),
            error => Arc::new(Error::At { error: Arc::new(error), file: place.file(), line: place.line() }),
        });
        DataFrame { state }
    }

    /// The state, or the error that the frame carries.
    pub(crate) fn frame(&self) -> Result<&Arc<Frame>> {
        self.state.as_ref().map_err(|error| (**error).clone())
    }

    /// A frame made of this one, or its error.
    #[track_caller]
    pub(crate) fn then(&self, step: impl FnOnce(&Frame) -> Result<Frame>) -> DataFrame {
        match &self.state {
            Ok(frame) => DataFrame::new(step(frame)),
            Err(error) => DataFrame { state: Err(Arc::clone(error)) },
        }
    }

    /// The labels of the columns, in their order.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn columns(&self) -> Result<Vec<String>> {
        Ok(self.frame()?.columns.clone())
    }

    /// Label and type of each column, in their order.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn dtypes(&self) -> Result<Vec<(String, DataType)>> {
        let frame = self.frame()?;
        frame.columns.iter().map(|column| Ok((column.clone(), frame.dtype(column)?))).collect()
    }

    /// The names of the levels of the index; none has a name if it is of positions.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn index_names(&self) -> Result<Vec<Option<String>>> {
        let frame = self.frame()?;
        if frame.index.is_empty() {
            Ok(vec![None])
        } else {
            Ok(frame.index.iter().map(|level| level.name.clone()).collect())
        }
    }

    /// Nothing, or the error that the frame carries.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("price", vec![1.5].into())]);
    /// assert_eq!(frame.select(["prise"]).check().unwrap_err().class(), "KeyError");
    /// ```
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn check(&self) -> Result<()> {
        self.frame().map(|_| ())
    }

    /// One column.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2].into())]);
    /// assert_eq!(frame.col("n").sum()?.as_i64(), Some(3));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn col(&self, label: &str) -> Series {
        let made = self.frame().and_then(|frame| {
            frame.check(label)?;
            Ok((Arc::clone(frame), named(label)))
        });
        Series::new(made, Some(label.to_owned()))
    }

    /// All rows, in memory.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn collect(&self) -> Result<Table> {
        self.collect_on(&*default_executor())
    }

    /// All rows, computed by an executor.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn collect_on(&self, executor: &dyn Executor) -> Result<Table> {
        Ok(self.collect_with_metrics(executor)?.0)
    }

    /// All rows, and what it took to compute them.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn collect_with_metrics(&self, executor: &dyn Executor) -> Result<(Table, Metrics)> {
        let frame = self.frame()?;
        let (resident, metrics) = execute(&frame.output()?, executor)?;
        let names = frame.index.iter().map(|level| level.name.clone()).collect();
        Ok((Table::new(&resident.schema, &resident.fetch()?, names)?, metrics))
    }

    /// The same frame, computed: its rows stay where they were made, and later steps read them.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    #[track_caller]
    pub fn execute(&self) -> Result<DataFrame> {
        self.execute_on(&*default_executor())
    }

    /// The same frame, computed by an executor.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    #[track_caller]
    pub fn execute_on(&self, executor: &dyn Executor) -> Result<DataFrame> {
        let frame = self.frame()?;
        let (resident, _) = execute(&frame.output()?, executor)?;
        Ok(DataFrame::new(frame.computed(resident)))
    }

    /// The stages of the plan: what runs where, and which rows are exchanged. Nothing runs;
    /// [`Computation`] tells what a run took.
    ///
    /// # Errors
    /// The error that the frame carries, or that of planning.
    pub fn explain(&self) -> Result<Explanation> {
        self.explain_on(&*default_executor())
    }

    /// The stages of the plan for an executor.
    ///
    /// # Errors
    /// As [`DataFrame::explain`].
    pub fn explain_on(&self, executor: &dyn Executor) -> Result<Explanation> {
        Ok(Explanation::new(&self.stages(executor)?))
    }

    /// The stages of the plan for an executor, as it runs them.
    ///
    /// # Errors
    /// The error that the frame carries, or that of planning.
    #[doc(hidden)]
    pub fn stages(&self, executor: &dyn Executor) -> Result<Stages> {
        plan_stages(&self.frame()?.output()?, executor)
    }
}
/// Refuses columns of one label, which pandas has: steps find a column by its label here.
pub(crate) fn check_different<L: Eq + std::hash::Hash + std::fmt::Debug>(labels: &[L]) -> Result<()> {
    let mut known = std::collections::HashSet::new();
    match labels.iter().find(|label| !known.insert(*label)) {
        Some(label) => Err(Error::NotImplemented(format!(
            "two columns would have the label {label:?}, which is not supported"
        ))),
        None => Ok(()),
    }
}
