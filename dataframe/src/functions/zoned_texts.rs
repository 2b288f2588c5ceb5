//! Texts of readings that the clock of a zone leaves out or shows twice. The cast of the library fails for
//! them; they get the moment that they stand for.

use super::on_arrays::on_arrays;
use super::rows::ticks_of_reading;
use arrow::array::temporal_conversions::as_datetime;
use arrow::array::timezone::Tz;
use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, TimestampNanosecondType};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::sync::{Arc, LazyLock};

/// The name of the function.
pub(crate) const ZONED_TEXTS: &str = "tharsis_zoned_texts";

const PER_SECOND: i64 = 1_000_000_000;

/// The moment of a text as a text with the zone of Greenwich: in a gap the end of the gap, and of two moments
/// with one reading the earlier one. `None` for a text that the library reads, or that is no such reading.
pub(crate) fn zoned_text(text: &str, clock: Tz) -> Option<String> {
    // Most texts are of one moment.
    if string_to_datetime(&clock, text).is_ok() {
        return None;
    }
    let greenwich: Tz = "+00:00".parse().ok()?;
    let reading = string_to_datetime(&greenwich, text).ok()?.timestamp_nanos_opt()?;
    let time = ticks_of_reading(reading, PER_SECOND, clock)?;
    Some(format!("{}Z", as_datetime::<TimestampNanosecondType>(time)?))
}

/// Texts of which each stands for one moment of a zone.
pub(crate) fn zoned_texts(texts: Expr, zone: &Arc<str>) -> Expr {
    function().call(vec![texts, lit(zone.as_ref())])
}

/// The function, of which a process has one.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(ZonedTexts { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ZonedTexts {
    signature: Signature,
}

impl ScalarUDFImpl for ZonedTexts {
    fn name(&self) -> &str {
        ZONED_TEXTS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [_, _] => Ok(types.to_vec()),
            _ => plan_err!("{} takes texts and a zone", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [texts, _] => Ok(texts.clone()),
            _ => plan_err!("{} takes texts and a zone", self.name()),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // The zone is one constant, also beside no rows.
        let Some(ColumnarValue::Scalar(zone)) = args.args.pop() else {
            return plan_err!("{} takes texts and a zone", self.name());
        };
        on_arrays(args, |arrays| {
            let [given] = arrays else { return plan_err!("{} takes texts and a zone", self.name()) };
            let clock: Tz = zone.try_as_str().flatten().unwrap_or_default().parse()?;
            let texts = cast(given, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            let made: Vec<Option<String>> =
                texts.iter().map(|text| text.and_then(|text| zoned_text(text, clock))).collect();
            if made.iter().all(Option::is_none) {
                return Ok(Arc::clone(given));
            }
            let all = made.into_iter().zip(texts);
            let all = all.map(|(made, text)| made.or_else(|| text.map(str::to_owned)));
            Ok(cast(&all.collect::<StringArray>(), given.data_type())?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::zoned_text;

    #[test]
    fn texts_that_the_clock_leaves_out_or_shows_twice_get_their_first_moment() {
        let berlin = "Europe/Berlin".parse().expect("a zone");
        for (text, expected) in [
            ("2024-10-27 02:30:00", "2024-10-27 00:30:00Z"),
            ("2024-10-27T02:30:00.5", "2024-10-27 00:30:00.500Z"),
            ("2024-03-31 02:30:00.5", "2024-03-31 01:00:00Z"),
        ] {
            assert_eq!(zoned_text(text, berlin).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "2024-10-27 03:00:00",
            "2024-10-27 02:30:00+02:00",
            "2024-10-27 02:30:00Z",
            "2024-10-27 02:30:00 Europe/Berlin",
            "2024-10-27",
            "x",
        ] {
            assert_eq!(zoned_text(text, berlin), None, "{text}");
        }
        let azores = "Atlantic/Azores".parse().expect("a zone");
        assert_eq!(zoned_text("2024-03-31", azores).as_deref(), Some("2024-03-31 01:00:00Z"));
    }
}
