//! Texts of readings that the clock of a zone leaves out or shows twice. The cast of the library fails for
//! them; they get the moment that they stand for.

use super::rows::ticks_of_reading;
use super::text_function::{Step, text_function};
use arrow::array::temporal_conversions::as_datetime;
use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::TimestampNanosecondType;
use datafusion::logical_expr::{Expr, ScalarUDF, lit};
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
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| text_function(ZONED_TEXTS, Step::OfZone(zoned_text)));
    Arc::clone(&FUNCTION)
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
