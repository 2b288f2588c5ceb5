//! Arithmetic of whole numbers in SQL, which ends with an error where the result has no room. The library's
//! wraps, as pandas' does: a sum of distances would be negative.
//!
//! Each function is called in a plan what its operator is called: labels of columns, and references to them,
//! are made of these texts.

use super::on_arrays::on_arrays;
use crate::error::Error;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::compute::kernels::numeric::{add, mul, neg, sub};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, BinaryExpr, ColumnarValue, EmitTo, Expr, GroupsAccumulator,
    Operator, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowFunctionDefinition,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

/// An operator whose result may have no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Plus,
    Minus,
    Times,
    Negate,
}

const ACTS: [Act; 4] = [Act::Plus, Act::Minus, Act::Times, Act::Negate];

impl Act {
    fn of(operator: Operator) -> Option<Act> {
        match operator {
            Operator::Plus => Some(Act::Plus),
            Operator::Minus => Some(Act::Minus),
            Operator::Multiply => Some(Act::Times),
            _ => None,
        }
    }

    /// The operator between two operands; `None` for the one before its only operand.
    fn operator(self) -> Option<Operator> {
        match self {
            Act::Plus => Some(Operator::Plus),
            Act::Minus => Some(Operator::Minus),
            Act::Times => Some(Operator::Multiply),
            Act::Negate => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Act::Plus => "tharsis_checked_add",
            Act::Minus => "tharsis_checked_sub",
            Act::Times => "tharsis_checked_mul",
            Act::Negate => "tharsis_checked_neg",
        }
    }

    fn function(self) -> Arc<ScalarUDF> {
        static FUNCTIONS: [OnceLock<Arc<ScalarUDF>>; ACTS.len()] = [const { OnceLock::new() }; ACTS.len()];
        let made = || {
            let signature = Signature::user_defined(Volatility::Immutable);
            Arc::new(ScalarUDF::from(Checked { act: self, signature }))
        };
        match FUNCTIONS.get(self as usize) {
            Some(function) => Arc::clone(function.get_or_init(made)),
            None => made(),
        }
    }
}

/// The functions, for the registry of a session.
pub(super) fn functions() -> [Arc<ScalarUDF>; ACTS.len()] {
    ACTS.map(Act::function)
}

/// A sum, a difference or a product that is made in whole numbers, and checked; `None` for any other
/// operator, and for operands that meet in another type: the library takes `uint64` and `int64` to decimals.
pub(crate) fn checked(binary: &BinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    // A parameter without a value has no type, and nothing overflows with a missing operand.
    let act = Act::of(binary.op).filter(|_| !left.is_null() && !right.is_null())?;
    let (left, right) = met(left, binary.op, right).ok()?;
    (left.is_integer() && left == right)
        .then(|| act.function().call(vec![(*binary.left).clone(), (*binary.right).clone()]))
}

/// A negative of a signed whole number that is checked: the least one has none. `None` for other types.
pub(crate) fn checked_negative(value: &Expr, dtype: &DataType) -> Option<Expr> {
    dtype.is_signed_integer().then(|| Act::Negate.function().call(vec![value.clone()]))
}

/// The types in which the library computes with operands of these types.
fn met(left: &DataType, operator: Operator, right: &DataType) -> Result<(DataType, DataType)> {
    BinaryTypeCoercer::new(left, &operator, right).get_input_types()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    act: Act,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.act.name()
    }

    /// The operator between the names of the operands. The library asks for the name of each part of an
    /// expression again and again: the names of a chain of operators are put together once.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let (mut act, mut args, mut behind) = (self.act, args, Vec::new());
        let first = loop {
            match (act.operator(), args) {
                (Some(operator), [left, right]) => {
                    behind.push(format!(" {operator} {}", right.schema_name()));
                    match called(left) {
                        Some((inner, operands)) => (act, args) = (inner, operands),
                        None => break left.schema_name().to_string(),
                    }
                }
                (None, [value]) => break format!("(- {})", value.schema_name()),
                _ => return plan_err!("{} of {} arguments", act.name(), args.len()),
            }
        };
        Ok(behind.iter().rev().fold(first, |name, part| name + part))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.act.operator(), types) {
            (Some(operator), [left, right]) => {
                let (left, right) = met(left, operator, right)?;
                Ok(vec![left, right])
            }
            (None, [value]) => Ok(vec![value.clone()]),
            _ => plan_err!("{} of {} arguments", self.name(), types.len()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn is_strict(&self) -> bool {
        true
    }

    /// Any number of the type. Without a type, the library takes a sort by `abs` of a result for none.
    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(&inputs.first().map_or(DataType::Null, |input| input.data_type()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| {
            let made = match (self.act, arrays) {
                (Act::Plus, [left, right]) => add(left, right),
                (Act::Minus, [left, right]) => sub(left, right),
                (Act::Times, [left, right]) => mul(left, right),
                (Act::Negate, [value]) => neg(value),
                _ => return Err(exec_datafusion_err!("{} of {} arguments", self.name(), arrays.len())),
            };
            let made = made.map_err(|error| {
                // Numbers of rows and ranks are unsigned: their differences may be below zero.
                let is_unsigned = arrays.iter().any(|array| array.data_type().is_unsigned_integer());
                let hint = if is_unsigned { "; cast to bigint" } else { "" };
                match Error::from(error) {
                    Error::Overflow(text) => Error::Overflow(format!("{text}{hint}")),
                    other => other,
                }
            })?;
            Ok(made)
        })
    }
}

/// The operator and the operands of a call of these functions.
fn called(expr: &Expr) -> Option<(Act, &[Expr])> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let act = ACTS.into_iter().find(|act| act.name() == call.func.name())?;
    Some((act, &call.args))
}

/// The checked sum in the place of one of whole numbers or durations; `None` for any other aggregate.
pub(crate) fn checked_sum(call: &AggregateFunction, dtype: &DataType) -> Option<Expr> {
    (is_sum(&call.func) && is_counted(dtype))
        .then(|| Expr::AggregateFunction(AggregateFunction { func: sum(), params: call.params.clone() }))
}

/// The checked sum of a window in the place of one of whole numbers or durations; `None` for any other
/// function.
pub(crate) fn checked_window(call: &WindowFunction, dtype: &DataType) -> Option<Expr> {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else { return None };
    (is_sum(function) && is_counted(dtype)).then(|| {
        let fun = WindowFunctionDefinition::AggregateUDF(sum());
        Expr::WindowFunction(Box::new(WindowFunction { fun, params: call.params.clone() }))
    })
}

/// Whether values are numbers of units.
fn is_counted(dtype: &DataType) -> bool {
    dtype.is_integer() || matches!(dtype, DataType::Duration(_))
}

fn is_sum(function: &AggregateUDF) -> bool {
    function.name() == sum_udaf().name()
}

/// The sum of whole numbers or of durations that ends with an error where it has no room.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    static SUM: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    let made = || {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::from(CheckedSum { signature }))
    };
    Arc::clone(SUM.get_or_init(made))
}

/// The type of sums that are not complete: those of some rows may be larger than that of all.
const WIDE: DataType = DataType::Decimal128(38, 0);

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    signature: Signature,
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &'static str {
        "tharsis_checked_sum"
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        sum_udaf().schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        sum_udaf().human_display(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        sum_udaf().display_name(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        sum_udaf().window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        sum_udaf().window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [dtype] if dtype.is_unsigned_integer() => Ok(vec![DataType::UInt64]),
            [dtype] if dtype.is_signed_integer() => Ok(vec![DataType::Int64]),
            [dtype @ DataType::Duration(_)] => Ok(vec![dtype.clone()]),
            _ => plan_err!("{} of {types:?}", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let dtype = args.return_field.data_type().clone();
        if args.is_distinct {
            return Ok(Box::new(DistinctTotal { counts: HashMap::new(), total: 0, dtype }));
        }
        Ok(Box::new(Total { total: 0, count: 0, dtype }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}_sum", args.name);
        let field = if args.is_distinct {
            Field::new_list(name, Field::new_list_field(WIDE, true), false)
        } else {
            Field::new(name, WIDE, true)
        };
        Ok(vec![Arc::new(field)])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Totals { totals: Vec::new(), dtype: args.return_field.data_type().clone() }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn no_room(total: i128, dtype: &DataType) -> DataFusionError {
    if matches!(dtype, DataType::Duration(_)) {
        return Error::Value(format!("overflow in timedelta operation: the sum {total} is no {dtype}"))
            .into();
    }
    Error::Overflow(format!("out of range: the sum {total} is no {dtype}; cast to decimal")).into()
}

/// A total as a value of the result.
fn narrow(total: Option<i128>, dtype: &DataType) -> Result<ScalarValue> {
    let Some(total) = total else { return ScalarValue::try_from(dtype) };
    if *dtype == DataType::UInt64 {
        return u64::try_from(total).map(ScalarValue::from).map_err(|_| no_room(total, dtype));
    }
    let whole = i64::try_from(total).map_err(|_| no_room(total, dtype))?;
    ScalarValue::from(whole).cast_to(dtype)
}

/// Durations as their numbers of units; other values as they are.
fn units(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Duration(_) => Ok(cast(values, &DataType::Int64)?),
        _ => Ok(Arc::clone(values)),
    }
}

/// The sum and the number of the values of an argument that are there, or of the sums of a state.
fn total_of(values: &ArrayRef) -> (i128, usize) {
    let total = match values.data_type() {
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>().iter().flatten();
            values.map(i128::from).fold(0, i128::wrapping_add)
        }
        DataType::UInt64 => {
            let values = values.as_primitive::<UInt64Type>().iter().flatten();
            values.map(i128::from).fold(0, i128::wrapping_add)
        }
        _ => values.as_primitive::<Decimal128Type>().iter().flatten().fold(0, i128::wrapping_add),
    };
    (total, values.len() - values.null_count())
}

/// The values of an argument that are there, or of a state of different ones.
fn present(values: &ArrayRef) -> Box<dyn Iterator<Item = i128> + '_> {
    match values.data_type() {
        DataType::Int64 => Box::new(values.as_primitive::<Int64Type>().iter().flatten().map(i128::from)),
        DataType::UInt64 => Box::new(values.as_primitive::<UInt64Type>().iter().flatten().map(i128::from)),
        _ => Box::new(values.as_primitive::<Decimal128Type>().iter().flatten()),
    }
}

/// The sum of values, which may leave it again: windows slide.
#[derive(Debug)]
struct Total {
    total: i128,
    /// Number of values; the sum of none is missing.
    count: usize,
    dtype: DataType,
}

impl Total {
    fn sum(&self) -> Option<i128> {
        (0 < self.count).then_some(self.total)
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (total, count) = total_of(&units(&values[0])?);
        self.total = self.total.wrapping_add(total);
        self.count += count;
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (total, count) = total_of(&units(&values[0])?);
        self.total = self.total.wrapping_sub(total);
        self.count = self.count.saturating_sub(count);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        narrow(self.sum(), &self.dtype)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.sum(), 38, 0)])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of different values, which may leave it again: windows slide.
#[derive(Debug)]
struct DistinctTotal {
    /// The values, and the number of rows that have each.
    counts: HashMap<i128, usize>,
    total: i128,
    dtype: DataType,
}

impl DistinctTotal {
    fn add(&mut self, value: i128) {
        let count = self.counts.entry(value).or_default();
        *count += 1;
        if *count == 1 {
            self.total = self.total.wrapping_add(value);
        }
    }

    fn remove(&mut self, value: i128) {
        let Entry::Occupied(mut entry) = self.counts.entry(value) else { return };
        if *entry.get() == 1 {
            entry.remove();
            self.total = self.total.wrapping_sub(value);
        } else {
            *entry.get_mut() -= 1;
        }
    }
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        present(&units(&values[0])?).for_each(|value| self.add(value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            present(&values).for_each(|value| self.add(value));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        present(&units(&values[0])?).for_each(|value| self.remove(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        narrow((!self.counts.is_empty()).then_some(self.total), &self.dtype)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.counts.keys().map(|value| ScalarValue::Decimal128(Some(*value), 38, 0));
        let values: Vec<ScalarValue> = values.collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&values, &WIDE, true))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i128, usize)>()
    }
}

/// The sums of groups; `None` for those without values.
#[derive(Debug)]
struct Totals {
    totals: Vec<Option<i128>>,
    dtype: DataType,
}

impl Totals {
    fn add(
        &mut self,
        values: impl Iterator<Item = Option<i128>>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) {
        self.totals.resize(count, None);
        for (row, (value, group)) in values.zip(groups).enumerate() {
            let is_taken = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, is_taken) {
                let total = &mut self.totals[*group];
                *total = Some(total.unwrap_or(0).wrapping_add(value));
            }
        }
    }
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        if self.dtype == DataType::UInt64 {
            let values = values[0].as_primitive::<UInt64Type>();
            self.add(values.iter().map(|value| value.map(i128::from)), groups, filter, count);
        } else {
            let values = units(&values[0])?;
            let values = values.as_primitive::<Int64Type>();
            self.add(values.iter().map(|value| value.map(i128::from)), groups, filter, count);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let dtype = &self.dtype;
        let totals = emit_to.take_needed(&mut self.totals).into_iter();
        if *dtype == DataType::UInt64 {
            let narrow = |total: i128| u64::try_from(total).map_err(|_| no_room(total, dtype));
            let totals = totals.map(|total| total.map(narrow).transpose());
            return Ok(Arc::new(totals.collect::<Result<UInt64Array>>()?));
        }
        let narrow = |total: i128| i64::try_from(total).map_err(|_| no_room(total, dtype));
        let totals = totals.map(|total| total.map(narrow).transpose());
        let totals: ArrayRef = Arc::new(totals.collect::<Result<Int64Array>>()?);
        Ok(if totals.data_type() == dtype { totals } else { cast(&totals, dtype)? })
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = Decimal128Array::from_iter(emit_to.take_needed(&mut self.totals));
        Ok(vec![Arc::new(totals.with_data_type(WIDE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.add(states[0].as_primitive::<Decimal128Type>().iter(), groups, None, count);
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = cast(&units(&values[0])?, &WIDE)?;
        let Some(filter) = filter else { return Ok(vec![values]) };
        let taken = arrow::compute::prep_null_mask_filter(filter);
        let left_out = arrow::compute::not(&taken)?;
        Ok(vec![arrow::compute::nullif(&values, &left_out)?])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Option<i128>>()
    }
}
