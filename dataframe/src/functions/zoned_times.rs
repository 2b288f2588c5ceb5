//! Times at which the clock of a zone shows readings: in a gap the end of the gap, and of two times with one
//! reading the earlier one. A cast of the library fails for both.

use super::on_arrays::on_arrays;
use super::rows::{per_second, ticks_of_reading};
use crate::error::Error;
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, expr_fn, lit,
};
use std::sync::{Arc, OnceLock};

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
    static FUNCTIONS: OnceLock<[Arc<ScalarUDF>; 2]> = OnceLock::new();
    let made = |or_missing| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(TimeOfReading { signature, or_missing }))
    };
    FUNCTIONS.get_or_init(|| [made(false), made(true)]).clone()
}

/// The number of the time, in the unit of the reading, since 1970.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeOfReading {
    signature: Signature,
    or_missing: bool,
}

impl ScalarUDFImpl for TimeOfReading {
    fn name(&self) -> &str {
        if self.or_missing { "tharsis_try_time_of_reading" } else { "tharsis_time_of_reading" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Timestamp(_, None), _] => Ok(types.to_vec()),
            _ => plan_err!("{} takes times without a zone, and a zone", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // The zone is one constant, also beside no rows.
        let Some(ColumnarValue::Scalar(zone)) = args.args.pop() else {
            return plan_err!("{} takes readings and a zone", self.name());
        };
        on_arrays(args, |arrays| {
            let [value] = arrays else { return plan_err!("{} takes readings and a zone", self.name()) };
            let DataType::Timestamp(unit, None) = value.data_type() else {
                return plan_err!("{} takes times without a zone", self.name());
            };
            let zone = zone.try_as_str().flatten().unwrap_or_default();
            let (clock, per_second): (Tz, i64) = (zone.parse()?, per_second(*unit));
            let readings = cast(value, &DataType::Int64)?;
            let time = |reading: i64| {
                let text =
                    || format!("no time of zone {zone} has the reading {reading}, in 1/{per_second} s");
                ticks_of_reading(reading, per_second, clock).ok_or_else(|| Error::Value(text()))
            };
            let readings = readings.as_primitive::<Int64Type>().iter();
            let times: Int64Array = if self.or_missing {
                readings.map(|reading| ticks_of_reading(reading?, per_second, clock)).collect()
            } else {
                let times = readings.map(|reading| reading.map(time).transpose());
                times.collect::<std::result::Result<_, Error>>()?
            };
            let times: ArrayRef = Arc::new(times);
            Ok(times)
        })
    }
}
