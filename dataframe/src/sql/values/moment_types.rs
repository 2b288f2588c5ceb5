//! Types of moments, and those that days and readings of a clock have beside them.

use crate::error::{Error, Result};
use crate::functions::zoned_times::zoned_times;
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Cast, Expr};
use std::sync::Arc;

pub(in crate::sql) fn is_day(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Date32 | DataType::Date64)
}

/// Whether values of a type are days, moments or readings of a clock with its day.
pub(in crate::sql) fn is_time(dtype: &DataType) -> bool {
    is_day(dtype) || matches!(dtype, DataType::Timestamp(..))
}

pub(in crate::sql) fn is_moment(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Timestamp(_, Some(_)))
}

/// The type of moments: one of them, or that of the elements of lists.
pub(in crate::sql) fn moments_of(dtype: &DataType) -> Option<&DataType> {
    match dtype {
        DataType::List(field) | DataType::LargeList(field) => moments_of(field.data_type()),
        dtype => is_moment(dtype).then_some(dtype),
    }
}

/// A type with moments in the place of days; `None` if it has no days.
fn with_moments(dtype: &DataType, moments: &DataType) -> Option<DataType> {
    match dtype {
        DataType::List(field) => {
            let elements = with_moments(field.data_type(), moments)?;
            Some(DataType::List(Arc::new(field.as_ref().clone().with_data_type(elements))))
        }
        DataType::LargeList(field) => {
            let elements = with_moments(field.data_type(), moments)?;
            Some(DataType::LargeList(Arc::new(field.as_ref().clone().with_data_type(elements))))
        }
        dtype => is_day(dtype).then(|| moments.clone()),
    }
}

/// The type of moments for times without a zone, which are readings of its clock: in the finer one of both
/// units. `None` for values of another type, and if the library does the same.
pub(in crate::sql) fn as_moments(dtype: &DataType, moments: &DataType) -> Option<DataType> {
    match (dtype, moments) {
        (DataType::Timestamp(own, None), DataType::Timestamp(unit, Some(zone))) if has_own_clock(zone) => {
            Some(DataType::Timestamp(*own.max(unit), Some(Arc::clone(zone))))
        }
        _ => None,
    }
}

/// The type that days, and readings of a clock, have beside moments; `None` for other types.
pub(in crate::sql) fn beside(dtype: Option<&DataType>, moments: Option<&DataType>) -> Option<DataType> {
    let (dtype, moments) = (dtype?, moments?);
    with_moments(dtype, moments).or_else(|| as_moments(dtype, moments))
}

/// Whether the clock of a zone is another one than that of Greenwich. The cast of the library fails for
/// readings that a clock leaves out or shows twice, and its rules compare readings with moments as if all
/// clocks were that of Greenwich.
pub(in crate::sql) fn has_own_clock(zone: &str) -> bool {
    !matches!(zone, "UTC" | "+00:00")
}

/// Refuses whole numbers beside days, as other databases do: the library takes them for numbers of days.
pub(in crate::sql) fn check_days<'a>(types: impl Iterator<Item = &'a DataType> + Clone) -> Result<()> {
    if types.clone().any(is_day) && types.clone().any(DataType::is_integer) {
        let text = "whole numbers beside days, in a comparison, CASE, UNION or the like: write a day, date '2024-12-31', \
                    or a number, extract(year from day)";
        return Err(Error::Value(text.to_owned()));
    }
    Ok(())
}

/// Casts days, readings of a clock, or lists of days. A midnight that the clock of a zone leaves out or shows
/// twice is the first moment of the day; the cast of the library fails.
pub(in crate::sql) fn cast(value: &mut Expr, to: DataType) {
    let given = std::mem::take(value);
    *value = match &to {
        DataType::Timestamp(unit, Some(zone)) if has_own_clock(zone) => {
            zoned_times(given, *unit, zone, false)
        }
        _ => Expr::Cast(Cast::new(Box::new(given), to)),
    };
}
