//! Arithmetic of whole numbers in SQL, which ends with an error where the result has no room. The library's
//! wraps, as pandas' does: a sum of distances would be negative.
//!
//! Each function is called in a plan what its operator is called: labels of columns, and references to them,
//! are made of these texts.

use crate::error::Error;
use crate::promotion::of_numbers;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, BinaryExpr, ColumnarValue, EmitTo, Expr, GroupsAccumulator,
    Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

/// An operator whose result may have no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Plus,
    Minus,
    Times,
}

const ACTS: [Act; 3] = [Act::Plus, Act::Minus, Act::Times];

impl Act {
    fn of(operator: Operator) -> Option<Act> {
        match operator {
            Operator::Plus => Some(Act::Plus),
            Operator::Minus => Some(Act::Minus),
            Operator::Multiply => Some(Act::Times),
            _ => None,
        }
    }

    fn operator(self) -> Operator {
        match self {
            Act::Plus => Operator::Plus,
            Act::Minus => Operator::Minus,
            Act::Times => Operator::Multiply,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Act::Plus => "tharsis_checked_add",
            Act::Minus => "tharsis_checked_sub",
            Act::Times => "tharsis_checked_mul",
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

/// A sum, a difference or a product of signed whole numbers that is checked; `None` for any other operator.
pub(crate) fn checked(binary: &BinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    let act = Act::of(binary.op).filter(|_| left.is_signed_integer() && right.is_signed_integer())?;
    Some(act.function().call(vec![(*binary.left).clone(), (*binary.right).clone()]))
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

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("{} takes two arguments", self.name()) };
        let call = Expr::BinaryExpr(BinaryExpr::new(
            Box::new(left.clone()),
            self.act.operator(),
            Box::new(right.clone()),
        ));
        Ok(with_operators(call)?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [left, right] => match of_numbers(left, right) {
                Some(common) => Ok(vec![common; 2]),
                None => plan_err!("{} of {left} and {right}", self.name()),
            },
            _ => plan_err!("{} takes two arguments", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|argument| argument.into_array(rows));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let [left, right] = arrays.as_slice() else {
            return Err(exec_datafusion_err!("{} of {} arguments", self.name(), arrays.len()));
        };
        let made = match self.act {
            Act::Plus => add(left, right),
            Act::Minus => sub(left, right),
            Act::Times => mul(left, right),
        };
        let made = made.map_err(|error| Error::Value(format!("out of range: {error}")))?;
        Ok(if scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)
        } else {
            ColumnarValue::Array(made)
        })
    }
}

/// The expression with operators in the place of these functions, as users know it.
fn with_operators(expr: Expr) -> Result<Expr> {
    let plain = expr.transform_up(|part| {
        let Expr::ScalarFunction(call) = &part else { return Ok(Transformed::no(part)) };
        let act = ACTS.into_iter().find(|act| act.name() == call.func.name());
        let (Some(act), [left, right]) = (act, call.args.as_slice()) else {
            return Ok(Transformed::no(part));
        };
        let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, act.operator(), right))))
    })?;
    Ok(plain.data)
}

/// The checked sum in the place of one of signed whole numbers; `None` for any other aggregate.
pub(crate) fn checked_sum(call: &AggregateFunction, dtype: &DataType) -> Option<Expr> {
    let is_sum = call.func.name() == sum_udaf().name() && !call.params.distinct;
    (is_sum && dtype.is_signed_integer())
        .then(|| Expr::AggregateFunction(AggregateFunction { func: sum(), params: call.params.clone() }))
}

/// The aggregate, for the registry of a session.
pub(super) fn sum() -> Arc<AggregateUDF> {
    static SUM: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    let made = || {
        let signature = Signature::exact(vec![DataType::Int64], Volatility::Immutable);
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

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Total(None)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}_sum", args.name), WIDE, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Totals::default()))
    }
}

/// A total as a value of the result.
fn narrow(total: i128) -> Result<i64> {
    let narrow = i64::try_from(total);
    narrow.map_err(|_| {
        Error::Value(format!("out of range: the sum {total} is no int64; cast to decimal")).into()
    })
}

/// The sum of values; `None` before the first one.
#[derive(Debug)]
struct Total(Option<i128>);

impl Total {
    fn add(&mut self, values: impl Iterator<Item = i128>) {
        for value in values {
            self.0 = Some(self.0.unwrap_or(0).wrapping_add(value));
        }
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values[0].as_primitive::<Int64Type>().iter().flatten().map(i128::from));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(states[0].as_primitive::<Decimal128Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(self.0.map(narrow).transpose()?))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.0, 38, 0)])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sums of groups; `None` for those without values.
#[derive(Debug, Default)]
struct Totals(Vec<Option<i128>>);

impl Totals {
    fn add(
        &mut self,
        values: impl Iterator<Item = Option<i128>>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) {
        self.0.resize(count, None);
        for (row, (value, group)) in values.zip(groups).enumerate() {
            let is_taken = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, is_taken) {
                let total = &mut self.0[*group];
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
        let values = values[0].as_primitive::<Int64Type>();
        self.add(values.iter().map(|value| value.map(i128::from)), groups, filter, count);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.0);
        let totals = totals.into_iter().map(|total| total.map(narrow).transpose());
        Ok(Arc::new(totals.collect::<Result<Int64Array>>()?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = Decimal128Array::from_iter(emit_to.take_needed(&mut self.0));
        Ok(vec![Arc::new(totals.with_data_type(WIDE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.add(states[0].as_primitive::<Decimal128Type>().iter(), groups, None, count);
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = cast(&values[0], &WIDE)?;
        let Some(filter) = filter else { return Ok(vec![values]) };
        let taken = arrow::compute::prep_null_mask_filter(filter);
        let left_out = arrow::compute::not(&taken)?;
        Ok(vec![arrow::compute::nullif(&values, &left_out)?])
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<Option<i128>>()
    }
}
