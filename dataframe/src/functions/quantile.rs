//! Quantiles of values, between neighbours. The library's `percentile_cont` rounds how far a quantile lies
//! between two values to six decimals.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, ListBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, TypeSignature,
    Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_quantile` of float64 values, a literal part from 0 to 1 and, if a quantile between
/// two values is not between them by its distance to each, the number of an interpolation; null without
/// values.
pub(crate) fn quantile() -> Arc<AggregateUDF> {
    static QUANTILE: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    let quantile = || {
        let plain = vec![DataType::Float64, DataType::Float64];
        let other = vec![DataType::Float64, DataType::Float64, DataType::Int64];
        let kinds = vec![TypeSignature::Exact(plain), TypeSignature::Exact(other)];
        let signature = Signature::one_of(kinds, Volatility::Immutable);
        Arc::new(AggregateUDF::from(Quantile { signature }))
    };
    Arc::clone(QUANTILE.get_or_init(quantile))
}

/// Numbers of interpolations, in the order of their names.
pub(super) const LINEAR: i64 = 0;
const LOWER: i64 = 1;
const HIGHER: i64 = 2;
const NEAREST: i64 = 3;

/// The value below which a part of the others lies.
pub(super) fn quantile_of(values: &mut [f64], part: f64, interpolation: i64) -> Option<f64> {
    let place = part * values.len().checked_sub(1)? as f64;
    let (_, low, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let low = *low;
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    Some(between(low, high, place, interpolation))
}

/// The value at a place between two that follow each other.
pub(super) fn between(low: f64, high: f64, place: f64, interpolation: i64) -> f64 {
    // Two equal infinities have no distance.
    if low == high || place.fract() == 0.0 {
        return low;
    }
    match interpolation {
        LINEAR => low + (high - low) * place.fract(),
        LOWER => low,
        HIGHER => high,
        NEAREST => {
            if place.round_ties_even() <= place {
                low
            } else {
                high
            }
        }
        _ => low + (high - low) * 0.5,
    }
}

/// The part of the values that lies below a quantile, the second argument of a call.
pub(super) fn part_of(args: &AccumulatorArgs) -> Result<f64> {
    let literal = args.exprs.get(1).and_then(|expr| expr.downcast_ref::<Literal>());
    match literal.map(Literal::value) {
        Some(ScalarValue::Float64(Some(part))) if (0.0..=1.0).contains(part) => Ok(*part),
        other => Err(exec_datafusion_err!("a quantile lies between 0 and 1, not at {other:?}")),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    signature: Signature,
}

/// The literals of a call.
#[derive(Clone, Copy, Debug)]
struct Place {
    part: f64,
    interpolation: i64,
}

impl Place {
    fn of(args: &AccumulatorArgs) -> Result<Place> {
        let literal = args.exprs.get(2).and_then(|expr| expr.downcast_ref::<Literal>());
        let interpolation = match literal.map(Literal::value) {
            Some(ScalarValue::Int64(Some(number))) => *number,
            _ => LINEAR,
        };
        Ok(Place { part: part_of(args)?, interpolation })
    }

    fn find(self, values: &mut [f64]) -> Option<f64> {
        quantile_of(values, self.part, self.interpolation)
    }
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &'static str {
        "tharsis_quantile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OfAll { values: Vec::new(), place: Place::of(&args)? }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(OfGroups { values: Vec::new(), place: Place::of(&args)? }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true)));
        Ok(vec![Arc::new(Field::new(format!("{}_values", args.name), values, true))])
    }
}

/// A list for each of these.
fn lists<'a>(values: impl Iterator<Item = &'a [f64]>) -> ArrayRef {
    let mut lists = ListBuilder::new(Float64Builder::new());
    for list in values {
        lists.values().append_slice(list);
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// The values of all rows, or of those of a window.
#[derive(Debug)]
struct OfAll {
    values: Vec<f64>,
    place: Place,
}

impl Accumulator for OfAll {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.values.extend(columns[0].as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for left in columns[0].as_primitive::<Float64Type>().iter().flatten() {
            if let Some(at) = self.values.iter().position(|value| value.to_bits() == left.to_bits()) {
                self.values.swap_remove(at);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.values.extend(list.as_primitive::<Float64Type>().iter().flatten());
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.place.find(&mut self.values)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&lists(std::iter::once(self.values.as_slice())), 0)?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + size_of::<f64>() * self.values.capacity()
    }
}

/// The values of each group.
#[derive(Debug)]
struct OfGroups {
    values: Vec<Vec<f64>>,
    place: Place,
}

impl GroupsAccumulator for OfGroups {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) -> Result<()> {
        self.values.resize_with(group_count, Vec::new);
        let values = columns[0].as_primitive::<Float64Type>();
        for (row, (value, group)) in values.iter().zip(groups).enumerate() {
            if let Some(value) = value.filter(|_| passes(filter, row)) {
                self.values[*group].push(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], group_count: usize) -> Result<()> {
        self.values.resize_with(group_count, Vec::new);
        for (list, group) in states[0].as_list::<i32>().iter().zip(groups) {
            if let Some(list) = list {
                self.values[*group].extend(list.as_primitive::<Float64Type>().iter().flatten());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        let mut groups = emitted.take_needed(&mut self.values);
        let place = self.place;
        Ok(Arc::new(groups.iter_mut().map(|values| place.find(values)).collect::<Float64Array>()))
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emitted.take_needed(&mut self.values);
        Ok(vec![lists(groups.iter().map(Vec::as_slice))])
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = columns[0].as_primitive::<Float64Type>();
        let there = |row: usize| usize::from(values.is_valid(row) && passes(filter, row));
        Ok(vec![lists((0..values.len()).map(|row| &values.values()[row..row + there(row)]))])
    }

    fn size(&self) -> usize {
        let values: usize = self.values.iter().map(Vec::capacity).sum();
        size_of::<f64>() * values + size_of::<Vec<f64>>() * self.values.capacity()
    }
}

/// Whether a filter keeps a row.
fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Place = Place { part: 0.0, interpolation: LINEAR };
    const MIDDLE: Place = Place { part: 0.5, interpolation: LINEAR };

    #[test]
    fn a_quantile_lies_between_neighbours() {
        let thirds = quantile_of(&mut [3.0e9, 0.0], 1.0 / 3.0, LINEAR);
        assert_eq!(thirds, Some(1.0e9));
        assert_eq!(quantile_of(&mut [5.0, 1.0, 3.0], 0.5, LINEAR), Some(3.0));
        assert_eq!(quantile_of(&mut [5.0, 1.0, 3.0], 1.0, LINEAR), Some(5.0));
        assert_eq!(quantile_of(&mut [f64::INFINITY, f64::INFINITY], 0.5, LINEAR), Some(f64::INFINITY));
        assert_eq!(quantile_of(&mut [], 0.5, LINEAR), None);
    }

    #[test]
    fn values_that_leave_a_window_are_forgotten_once() {
        let array = |values: &[f64]| -> Vec<ArrayRef> { vec![Arc::new(Float64Array::from(values.to_vec()))] };
        let mut window = OfAll { values: Vec::new(), place: START };
        window.update_batch(&array(&[1.0, 1.0, 2.0])).unwrap();
        window.retract_batch(&array(&[1.0])).unwrap();
        assert_eq!(window.evaluate().unwrap(), ScalarValue::from(1.0));
        window.retract_batch(&array(&[1.0])).unwrap();
        assert_eq!(window.evaluate().unwrap(), ScalarValue::from(2.0));
    }

    #[test]
    fn states_of_groups_are_merged() {
        let values: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(vec![Some(1.0), None, Some(5.0)]))];
        let mut first = OfGroups { values: Vec::new(), place: MIDDLE };
        first.update_batch(&values, &[0, 0, 1], None, 2).unwrap();
        let single = first.convert_to_state(&values, None).unwrap();
        let state = first.state(EmitTo::All).unwrap();
        let mut all = OfGroups { values: Vec::new(), place: MIDDLE };
        all.merge_batch(&state, &[1, 0], 2).unwrap();
        all.merge_batch(&single, &[0, 0, 0], 2).unwrap();
        let found = all.evaluate(EmitTo::All).unwrap();
        assert_eq!(found.as_primitive::<Float64Type>().values(), &[5.0, 1.0]);
    }
}
