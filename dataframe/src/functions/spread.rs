//! Cells of a row at their places in a wide table: one list for each row, and columns that are its elements.
//! A condition for each column would look at all rows once for each column.

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, ListArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::sync::{Arc, OnceLock};

/// Lists of places and cells as lists with so many values, missing ones where a place has no cell.
pub(crate) fn spread(cells: Expr, places: usize) -> Expr {
    Step::Spread.function().call(vec![cells, lit(places as i64)])
}

/// The value at a place of such lists.
pub(crate) fn at_place(lists: Expr, place: usize) -> Expr {
    Step::At.function().call(vec![lists, lit(place as i64)])
}

/// The functions, for the registry of a session.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Step::Spread.function(), Step::At.function()]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Spread,
    At,
}

impl Step {
    /// Its function, of which a process has one.
    fn function(self) -> Arc<ScalarUDF> {
        static FUNCTIONS: [OnceLock<Arc<ScalarUDF>>; 2] = [const { OnceLock::new() }; 2];
        let made = || {
            let signature = Signature::any(2, Volatility::Immutable);
            Arc::new(ScalarUDF::from(Places { step: self, signature }))
        };
        match FUNCTIONS.get(self as usize) {
            Some(function) => Arc::clone(function.get_or_init(made)),
            None => made(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Places {
    step: Step,
    signature: Signature,
}

impl ScalarUDFImpl for Places {
    fn name(&self) -> &'static str {
        match self.step {
            Step::Spread => "tharsis_spread",
            Step::At => "tharsis_at_place",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let Some(DataType::List(field)) = types.first() else {
            return plan_err!("{} takes lists", self.name());
        };
        match (self.step, field.data_type()) {
            (Step::At, value) => Ok(value.clone()),
            (Step::Spread, DataType::Struct(fields)) if fields.len() == 2 => {
                Ok(DataType::List(Arc::new(Field::new_list_field(fields[1].data_type().clone(), true))))
            }
            _ => plan_err!("{} takes lists of places and cells", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((lists, ColumnarValue::Scalar(ScalarValue::Int64(Some(number))))) =
            args.args.first().zip(args.args.get(1))
        else {
            return exec_err!("{} takes lists and a number", self.name());
        };
        let lists = lists.to_array(args.number_rows)?;
        let lists = lists.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| exec_datafusion_err!("{} takes lists", self.name()))?;
        let number =
            usize::try_from(*number).map_err(|_| exec_datafusion_err!("a place below the first one"))?;
        Ok(ColumnarValue::Array(match self.step {
            Step::Spread => spread_lists(lists, number)?,
            Step::At => elements(lists, number)?,
        }))
    }
}

fn spread_lists(lists: &ListArray, places: usize) -> Result<ArrayRef> {
    let cells = lists.values().as_struct();
    let (at, cells) = (cells.column(0).as_primitive::<Int64Type>(), cells.column(1));
    let Some(values) = lists.len().checked_mul(places).filter(|values| i32::try_from(*values).is_ok()) else {
        return exec_err!("{} rows of {places} columns at a time", lists.len());
    };
    let mut taken: Vec<u32> = vec![0; values];
    let mut known = BooleanBufferBuilder::new(values);
    known.append_n(values, false);
    for (row, ends) in lists.offsets().windows(2).enumerate().filter(|(row, _)| lists.is_valid(*row)) {
        for cell in ends[0] as usize..ends[1] as usize {
            let place = at.value(cell) as usize;
            if at.is_null(cell) || places <= place {
                return exec_err!("a cell at place {place} of {places}");
            }
            taken[row * places + place] = cell as u32;
            known.set_bit(row * places + place, true);
        }
    }
    let known = NullBuffer::new(known.finish());
    let taken = UInt32Array::new(ScalarBuffer::from(taken), Some(known));
    let dense = take(cells, &taken, None)?;
    let field = Arc::new(Field::new_list_field(dense.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(places, lists.len()));
    Ok(Arc::new(ListArray::try_new(field, offsets, dense, None)?))
}

fn elements(lists: &ListArray, place: usize) -> Result<ArrayRef> {
    let element = |ends: &[i32]| {
        let (from, to) = (ends[0] as usize, ends[1] as usize);
        (from + place < to).then_some((from + place) as u32)
    };
    let taken: UInt32Array = lists.offsets().windows(2).map(element).collect();
    Ok(take(lists.values(), &taken, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray, StructArray};
    use arrow::datatypes::Fields;

    #[test]
    fn cells_stand_at_their_places() {
        let fields = Fields::from(vec![
            Field::new("place", DataType::Int64, true),
            Field::new("cell", DataType::Utf8, true),
        ]);
        let places: ArrayRef = Arc::new(Int64Array::from(vec![2, 0, 1]));
        let cells: ArrayRef = Arc::new(StringArray::from(vec![Some("c"), None, Some("b")]));
        let cells = StructArray::new(fields.clone(), vec![places, cells], None);
        let field = Arc::new(Field::new_list_field(DataType::Struct(fields), true));
        let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
        let lists = ListArray::new(field, offsets, Arc::new(cells), None);
        let dense = spread_lists(&lists, 3).unwrap();
        let dense = dense.as_list::<i32>();
        let column = |place| {
            let column = elements(dense, place).unwrap();
            column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(column(0), [None, None, None]);
        assert_eq!(column(1), [None, None, Some("b".to_owned())]);
        assert_eq!(column(2), [Some("c".to_owned()), None, None]);
        // A part of an array.
        let part = elements(&dense.slice(1, 2), 1).unwrap();
        assert_eq!(part.as_string::<i32>().value(1), "b");
        assert!(spread_lists(&lists, 2).is_err());
        assert!(spread_lists(&lists, 1 << 31).is_err());
    }
}
