//! Functions of the program over the rows of frames.

use super::{DataFrame, Frame, HIDDEN, Level, named};
use crate::error::{FunctionFault, Result};
use crate::frame::series::{Mapping, Series};
use crate::registered::{
    Call, CalledFunction, ChunkParameter, ChunkResult, Function, OverChunk, OverColumn, OverPair, OverRow,
    OverValue,
};
use crate::stage::applied::{Applied, Made, OrderColumn, Passing, Spec, Unit, empty, made_of};
use crate::table::Table;
use arrow::array::{RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::panic::Location;
use std::sync::Arc;

impl DataFrame {
    /// The rows that a function of the program gives for each chunk: consecutive rows, as many as the engine
    /// finds good, never none. A table that it gets has the levels of the index, unless that is of positions;
    /// those of the table that it gives are the index of the result.
    ///
    /// It must give the same for the same chunk: it may be called again, anywhere. Rows that have been
    /// sorted, joined or grouped are put in order first, by one task.
    ///
    /// # Errors
    /// When it runs: `Function` if it fails, panics, or gives other columns than declared or found.
    #[track_caller]
    pub fn map_chunk(&self, function: Function<OverChunk>) -> DataFrame {
        let place = Location::caller();
        self.then(|frame| {
            let call = function.call_from(place)?;
            let given = frame.given(&[], &frame.columns, call.takes_index(0), &frame.order_columns())?;
            given.applied(Unit::Chunk, Passing::Nothing, vec![call])
        })
    }

    /// The rows that a function of the program gives for each pair of a chunk of this frame and one of
    /// another, in the order of the chunks of this frame, then of the other.
    ///
    /// All rows of the other frame are in the memory of each task.
    ///
    /// # Errors
    /// As [`DataFrame::map_chunk`].
    #[track_caller]
    pub fn cartesian_chunk(&self, other: &DataFrame, function: Function<OverPair>) -> DataFrame {
        let place = Location::caller();
        self.then(|frame| {
            let other = other.frame()?;
            let call = function.call_from(place)?;
            let input = |frame: &Frame, at| {
                frame.given(&[], &frame.columns, call.takes_index(at), &frame.order_columns())
            };
            let (first, second) = (input(frame, 0)?, input(other, 1)?);
            let made = made_of(std::slice::from_ref(&call), vec![first.empty(), second.empty()])?;
            // Both have the same number of passed columns: none come out.
            first.beside(second)?.operator(Unit::Pair, Passing::Nothing, vec![call.clone()], &made)
        })
    }

    /// The value that a function of the program gives for each row.
    ///
    /// # Errors
    /// When it runs: `Function` if it fails or panics.
    #[track_caller]
    pub fn apply(&self, function: Function<OverRow>) -> Series {
        let place = Location::caller();
        let made = self.frame().and_then(|frame| {
            let call = function.call_from(place)?;
            let args = frame.columns.iter().map(|column| named(column)).collect();
            Ok((Arc::clone(frame), called(call, frame.columns.clone(), args)?))
        });
        Series::new(made, None)
    }

    /// Each column replaced by what a function of the program gives for its values. It is called with many
    /// rows at a time, and each value that it gives must depend on the one at the same place alone.
    ///
    /// # Errors
    /// When it runs: `Function` if it fails, panics, or gives fewer values or other types than it should.
    #[track_caller]
    pub fn transform(&self, function: Function<OverColumn>) -> DataFrame {
        let place = Location::caller();
        self.then(|frame| {
            let call = function.call_from(place)?;
            let columns = frame.columns.iter().map(|column| {
                let returns = column_type(&call, &frame.dtype(column)?)?;
                let function = CalledFunction::new(call.clone(), vec![column.clone()], returns);
                Ok((column.clone(), function.expr(vec![named(column)])))
            });
            frame.project(columns.collect::<Result<_>>()?)
        })
    }
}

impl Series {
    /// The value that a function of the program gives for each value.
    #[track_caller]
    pub(crate) fn map_function(&self, function: &Function<OverValue>) -> Series {
        let place = Location::caller();
        let label = self.label();
        self.map_expr(|expr| called(function.call_from(place)?, vec![label], vec![expr]))
    }

    /// The results of a function of the program for the values: as [`DataFrame::transform`] for one column.
    ///
    /// # Errors
    /// As [`DataFrame::transform`].
    #[track_caller]
    pub fn transform(&self, function: Function<OverColumn>) -> Series {
        let place = Location::caller();
        let (label, dtype) = (self.label(), self.dtype());
        self.map_expr(|expr| {
            let call = function.call_from(place)?;
            let returns = column_type(&call, &dtype?)?;
            Ok(CalledFunction::new(call, vec![label], returns).expr(vec![expr]))
        })
    }
}

/// A call for each row as an expression.
fn called(call: Call, labels: Vec<String>, args: Vec<Expr>) -> Result<Expr> {
    let returns = call.returns();
    let returns = returns.ok_or_else(|| {
        call.error(FunctionFault::Types("its result type does not tell the type of values".to_owned()))
    })?;
    Ok(CalledFunction::new(call, labels, returns).expr(args))
}

/// The type that a function of columns gives for values of a type.
pub(super) fn column_type(call: &Call, dtype: &DataType) -> Result<DataType> {
    match call.declared().and_then(|fields| fields.first()) {
        Some(field) => Ok(field.data_type().clone()),
        None => Ok(call.on_column(&new_empty_array(dtype))?.data_type().clone()),
    }
}

/// Rows as functions get them.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) plans: Vec<LogicalPlan>,
    pub(super) spec: Spec,
    /// The levels and columns of the first input.
    pub(super) schema: SchemaRef,
    pub(super) keys: Fields,
    pub(super) passed: Fields,
}

impl Frame {
    /// The columns that the order of the rows needs.
    pub(super) fn order_columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for key in &self.order {
            if !columns.contains(&key.column) {
                columns.push(key.column.clone());
            }
        }
        columns
    }

    /// These columns for functions: keys of groups, the index if it is wanted, the columns, and those that
    /// are passed.
    pub(super) fn given(
        &self,
        keys: &[String],
        columns: &[String],
        indexed: bool,
        passed: &[String],
    ) -> Result<Given> {
        let levels: &[Level] = if indexed { &self.index } else { &[] };
        let hidden = |what: &str, at: usize| format!("{HIDDEN}{what}_{at}");
        let mut exprs = Vec::new();
        exprs.extend(keys.iter().enumerate().map(|(at, key)| named(key).alias(hidden("key", at))));
        let of_levels = levels.iter().enumerate();
        exprs.extend(of_levels.map(|(at, level)| named(&level.column).alias(hidden("level", at))));
        exprs.extend(columns.iter().map(|column| named(column)));
        exprs.extend(passed.iter().enumerate().map(|(at, column)| named(column).alias(hidden("pass", at))));
        let plan = self.builder().project(exprs)?.build()?;
        let first_passed = keys.len() + levels.len() + columns.len();
        let order = self.order.iter().filter_map(|key| {
            let at = passed.iter().position(|column| *column == key.column)?;
            let column = first_passed + at;
            Some(OrderColumn { column, ascending: key.ascending, nulls_first: key.nulls_first })
        });
        let spec = Spec {
            unit: Unit::Chunk,
            keys: keys.len(),
            passed: passed.len(),
            passing: Passing::Nothing,
            levels: vec![levels.iter().map(|level| level.name.clone()).collect()],
            order: vec![order.collect()],
            made_levels: Vec::new(),
            made: 0,
            by_column: false,
            skips_missing: false,
            positions: false,
        };
        let fields = plan.schema().fields();
        let schema = Arc::new(Schema::new(fields[keys.len()..first_passed].to_vec()));
        let (keys, passed) = (fields[..keys.len()].into(), fields[first_passed..].into());
        Ok(Given { plans: vec![plan], spec, schema, keys, passed })
    }
}

impl Given {
    /// No rows, as functions get them.
    pub(super) fn empty(&self) -> Table {
        let levels = self.spec.levels.first().cloned().unwrap_or_default();
        empty(Arc::clone(&self.schema), levels)
    }

    /// The type of each column that functions get.
    pub(super) fn fields(&self) -> &Fields {
        self.schema.fields()
    }

    /// Two inputs of one operator.
    fn beside(mut self, mut other: Given) -> Result<Given> {
        let passed = self.spec.passed.max(other.spec.passed);
        for given in [&mut self, &mut other] {
            given.pad(passed)?;
        }
        self.plans.append(&mut other.plans);
        self.spec.levels.append(&mut other.spec.levels);
        self.spec.order.append(&mut other.spec.order);
        Ok(self)
    }

    /// Adds columns without a use until so many are passed.
    fn pad(&mut self, passed: usize) -> Result<()> {
        let Some(plan) = self.plans.pop() else { return Ok(()) };
        let mut exprs: Vec<Expr> = plan.schema().fields().iter().map(|field| named(field.name())).collect();
        for at in self.spec.passed..passed {
            exprs.push(lit(0_i64).alias(format!("{HIDDEN}pass_{at}")));
        }
        self.plans.push(LogicalPlanBuilder::from(plan).project(exprs)?.build()?);
        self.spec.passed = passed;
        Ok(())
    }

    /// A frame of what functions give, with the columns found by calling them without rows.
    pub(super) fn applied(self, unit: Unit, passing: Passing, calls: Vec<Call>) -> Result<Frame> {
        let made = made_of(&calls, vec![self.empty()])?;
        self.operator(unit, passing, calls, &made)
    }

    /// A frame of what functions give.
    pub(super) fn operator(
        self,
        unit: Unit,
        passing: Passing,
        calls: Vec<Call>,
        made: &Made,
    ) -> Result<Frame> {
        let plan = self.plan(unit, passing, calls, made)?;
        Ok(Frame { plan, columns: made.labels(), index: made.index(), order: Vec::new() })
    }

    /// A plan of what functions give, with the keys first and what is passed last.
    pub(super) fn plan(
        self,
        unit: Unit,
        passing: Passing,
        calls: Vec<Call>,
        made: &Made,
    ) -> Result<LogicalPlan> {
        let level = |at: usize, field: &Field| field.clone().with_name(format!("{HIDDEN}level_{at}"));
        let mut fields: Vec<Arc<Field>> = self.keys.iter().cloned().collect();
        for (at, field) in made.fields.iter().enumerate() {
            fields.push(if at < made.levels.len() { Arc::new(level(at, field)) } else { Arc::clone(field) });
        }
        if passing != Passing::Nothing {
            fields.extend(self.passed.iter().cloned());
        }
        let positions = unit == Unit::Group && passing == Passing::First;
        if positions {
            fields.push(Arc::new(Field::new(POSITION, DataType::Int64, false)));
        }
        let spec = Spec {
            unit,
            passing,
            made_levels: made.levels.clone(),
            made: made.fields.len(),
            positions,
            ..self.spec
        };
        Ok(Applied::plan(self.plans, spec, calls, Schema::new(fields))?)
    }
}

impl Made {
    /// The labels of the columns.
    pub(super) fn labels(&self) -> Vec<String> {
        self.fields.iter().skip(self.levels.len()).map(|field| field.name().clone()).collect()
    }

    /// The levels of the index, by their names in a plan.
    pub(super) fn index(&self) -> Vec<Level> {
        let levels = self.levels.iter().enumerate();
        let level = |(at, name): (usize, &Option<String>)| Level {
            column: format!("{HIDDEN}level_{at}"),
            name: name.clone(),
        };
        levels.map(level).collect()
    }
}

/// The column with the position of a row among those that one call gave.
pub(super) const POSITION: &str = "__tharsis_position";

/// Steps of frames within functions of the program are computed by the task that called them.
impl ChunkParameter for DataFrame {
    const INDEXED: bool = true;

    fn from_table(table: Table) -> Result<DataFrame> {
        let frame = table.to_frame();
        frame.check()?;
        Ok(frame)
    }
}

impl ChunkResult for DataFrame {
    fn into_table(self) -> std::result::Result<Table, FunctionFault> {
        self.collect().map_err(|error| FunctionFault::Failed(error.to_string()))
    }
}

impl Table {
    /// A frame of these rows.
    #[track_caller]
    pub fn to_frame(&self) -> DataFrame {
        let names = self.index_names().to_vec();
        let columns = self.columns();
        let frame = match with_hidden_levels(self.batch(), names.len()) {
            Ok(batch) => DataFrame::from_batches(batch.schema(), vec![batch]),
            Err(error) => DataFrame::new(Err(error)),
        };
        frame.then(|frame| {
            let index = frame.columns.iter().zip(names);
            let index = index.map(|(column, name)| Level { column: column.clone(), name }).collect();
            Ok(Frame { index, columns, ..frame.clone() })
        })
    }
}

/// The batch with names for its first columns that no label has.
fn with_hidden_levels(batch: &RecordBatch, levels: usize) -> Result<RecordBatch> {
    let name = |at: usize, field: &Field| {
        if at < levels { format!("{HIDDEN}level_{at}") } else { field.name().clone() }
    };
    let schema = batch.schema();
    let fields = schema.fields().iter().enumerate();
    let fields = fields.map(|(at, field)| Field::new(name(at, field), field.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema), batch.columns().to_vec(), &options)?)
}

impl Mapping for Function<OverValue> {
    #[track_caller]
    fn over(self, series: &Series) -> Series {
        series.map_function(&self)
    }
}
