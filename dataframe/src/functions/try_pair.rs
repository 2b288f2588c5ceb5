//! Functions of times, and their twins that have missing values where they fail: an adapter around what is
//! done to a time.

use super::named::Named;
use super::on_arrays::{on_arrays, zone_behind};
use super::rows::per_second;
use crate::error::Error;
use arrow::array::timezone::Tz;
use arrow::array::{Array, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// A function of times and its twin. They take times of a zone, or times without one and the zone as a
/// constant.
#[derive(Debug)]
pub(super) struct TryPair {
    /// The name of the function that fails, and of the one that has missing values.
    pub(super) names: [&'static str; 2],
    /// The arguments, as errors tell them.
    pub(super) takes: &'static str,
    /// The type of what is made of arguments of these types; `None` if they are not taken.
    pub(super) gives: fn(&[DataType]) -> Option<DataType>,
    /// The number in the place of a time, in its unit, by the clock of the zone; `None` if there is none.
    pub(super) step: fn(i64, TimeUnit, Tz) -> Option<i64>,
    /// The error for a time without one, which names the time and the zone.
    pub(super) refused: fn(i64, &str) -> String,
}

impl TryPair {
    /// The function that fails, and the one that has missing values.
    pub(super) fn functions(&'static self) -> [Arc<ScalarUDF>; 2] {
        let [or_error, or_missing] = self.names;
        [(or_error, false), (or_missing, true)].map(|(name, or_missing)| {
            let signature = Signature::user_defined(Volatility::Immutable);
            let pair = Named { name, part: self };
            Arc::new(ScalarUDF::from(OfPair { pair, or_missing, signature }))
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfPair {
    pair: Named<&'static TryPair>,
    or_missing: bool,
    signature: Signature,
}

impl ScalarUDFImpl for OfPair {
    fn name(&self) -> &str {
        self.pair.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(types).map(|_| types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.pair.part.gives)(types) {
            Some(dtype) => Ok(dtype),
            None => plan_err!("{} takes {}", self.name(), self.pair.part.takes),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let TryPair { takes, step, refused, .. } = self.pair.part;
        let made_type = args.return_type().clone();
        let constant = if args.args.len() < 2 { None } else { Some(zone_behind(&mut args, self.name())?) };
        on_arrays(args, |arrays| {
            let [given] = arrays else { return plan_err!("{} takes {takes}", self.name()) };
            let DataType::Timestamp(unit, own) = given.data_type() else {
                return plan_err!("{} takes {takes}", self.name());
            };
            let zone = constant.as_deref().or(own.as_deref()).unwrap_or_default();
            let (unit, clock): (TimeUnit, Tz) = (*unit, zone.parse()?);
            let times = cast(given, &DataType::Int64)?;
            let times = times.as_primitive::<Int64Type>().iter();
            let made: Int64Array = if self.or_missing {
                times.map(|time| step(time?, unit, clock)).collect()
            } else {
                let of_time = |time: i64| {
                    let text = || format!("{}, in 1/{} s", refused(time, zone), per_second(unit));
                    step(time, unit, clock).ok_or_else(|| Error::Value(text()))
                };
                let made = times.map(|time| time.map(of_time).transpose());
                made.collect::<std::result::Result<_, Error>>()?
            };
            Ok(cast(&made, &made_type)?)
        })
    }
}
