//! The form in which times become texts.

use super::Series;
use crate::error::Result;
use crate::functions::rows::{LENGTH_TEXT, call};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// Forms from days to nanoseconds.
const FORMS: [&str; 5] = [
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S%.3f",
    "%Y-%m-%d %H:%M:%S%.6f",
    "%Y-%m-%d %H:%M:%S%.9f",
];

impl Series {
    /// The form of all times of a series, as pandas writes them: as fine as the finest of them needs, days if
    /// all are midnights. It is computed at once, which runs the plan.
    pub(crate) fn time_form(&self) -> Result<String> {
        let DataType::Timestamp(unit, zone) = self.dtype()? else { return Ok(FORMS[0].to_owned()) };
        let finest =
            self.map_expr(|time| fineness(cast(time, DataType::Int64), unit)).max()?.as_i64().unwrap_or(0);
        let finest = finest.max(i64::from(zone.is_some()));
        let form = FORMS.get(finest as usize).copied().unwrap_or(FORMS[0]);
        Ok(if zone.is_some() { format!("{form}%:z") } else { form.to_owned() })
    }

    /// The form of all durations of a series, as pandas writes them: as fine as the finest of them needs,
    /// days if all are whole days. It is computed at once, which runs the plan.
    pub(crate) fn length_form(&self) -> Result<i64> {
        let DataType::Duration(unit) = self.dtype()? else { return Ok(0) };
        let finest = self.map_expr(|length| fineness(cast(length, DataType::Int64), unit)).max()?;
        Ok(finest.as_i64().unwrap_or(0))
    }
}

/// Texts of durations in a form of [`Series::length_form`].
pub(crate) fn text_of_lengths(lengths: Expr, form: i64) -> Result<Expr> {
    call(LENGTH_TEXT, vec![lengths, lit(form)])
}

/// The place of the coarsest form that tells a time whole.
fn fineness(ticks: Expr, unit: TimeUnit) -> Result<Expr> {
    let per_second: i64 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let is_multiple = |of: i64| (ticks.clone() % lit(of.max(1))).eq(lit(0_i64));
    Ok(when(ticks.clone().is_null(), lit(0_i64))
        .when(is_multiple(86_400 * per_second), lit(0_i64))
        .when(is_multiple(per_second), lit(1_i64))
        .when(is_multiple(per_second / 1_000), lit(2_i64))
        .when(is_multiple(per_second / 1_000_000), lit(3_i64))
        .otherwise(lit(4_i64))?)
}
