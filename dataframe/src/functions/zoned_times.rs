//! Times at which the clock of a zone shows readings: in a gap the end of the gap, and of two times with one
//! reading the earlier one. A cast of the library fails for both.

use super::rows::{per_second, ticks_of_reading};
use super::try_pair::TryPair;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::{Expr, ScalarUDF, expr_fn, lit};
use std::sync::{Arc, LazyLock};

/// Times of a zone, counted in a unit, at which its clock shows readings: days, or times without a zone.
/// Those that no calendar has are errors, or missing.
pub(crate) fn zoned_times(readings: Expr, unit: TimeUnit, zone: &Arc<str>, or_missing: bool) -> Expr {
    let [or_error, or_null] = functions();
    let without_zone = DataType::Timestamp(unit, None);
    let ticks = if or_missing {
        or_null.call(vec![expr_fn::try_cast(readings, without_zone), lit(zone.as_ref())])
    } else {
        or_error.call(vec![expr_fn::cast(readings, without_zone), lit(zone.as_ref())])
    };
    expr_fn::cast(ticks, DataType::Timestamp(unit, Some(Arc::clone(zone))))
}

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| PAIR.functions());
    FUNCTIONS.clone()
}

/// The number of the time, in the unit of the reading, since 1970.
static PAIR: TryPair = TryPair {
    names: ["tharsis_time_of_reading", "tharsis_try_time_of_reading"],
    takes: "times without a zone, and a zone",
    gives: |types| match types {
        [DataType::Timestamp(_, None), _] => Some(DataType::Int64),
        _ => None,
    },
    step: |reading, unit, clock| ticks_of_reading(reading, per_second(unit), clock),
    refused: |reading, zone| format!("no time of zone {zone} has the reading {reading}"),
};
