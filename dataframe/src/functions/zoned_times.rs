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
pub(crate) fn zoned_times(readings: Expr, unit: TimeUnit, zone: &Arc<str>) -> Expr {
    let readings = expr_fn::cast(readings, DataType::Timestamp(unit, None));
    let ticks = function().call(vec![readings, lit(zone.as_ref())]);
    expr_fn::cast(ticks, DataType::Timestamp(unit, Some(Arc::clone(zone))))
}

/// The function, of which a process has one.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made = || {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(TimeOfReading { signature }))
    };
    Arc::clone(FUNCTION.get_or_init(made))
}

/// The number of the time, in the unit of the reading, since 1970.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeOfReading {
    signature: Signature,
}

impl ScalarUDFImpl for TimeOfReading {
    fn name(&self) -> &str {
        "tharsis_time_of_reading"
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
            let times = readings.as_primitive::<Int64Type>().iter();
            let times = times.map(|reading| reading.map(time).transpose());
            let times: Int64Array = times.collect::<std::result::Result<_, Error>>()?;
            let times: ArrayRef = Arc::new(times);
            Ok(times)
        })
    }
}
