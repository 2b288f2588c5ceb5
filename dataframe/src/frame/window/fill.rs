//! Missing values of which only some are filled: by their distance from the values beside them.

use super::Over;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// The sides of a value on which missing ones are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitDirection {
    /// Before it.
    Backward,
    /// On both sides.
    Both,
    /// Behind it.
    Forward,
}

/// The missing values that are filled, by the values around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitArea {
    /// Those between two values.
    Inside,
    /// Those before the first value or behind the last one.
    Outside,
}

/// The missing values that are filled: all behind a value by default.
///
/// ```
/// use tharsis_dataframe::{FillLimit, LimitArea, LimitDirection, Series};
/// let n = Series::from_values("n", vec![None, Some(1.0), None, None, Some(4.0)]);
/// let one = FillLimit::rows(1);
/// assert_eq!(n.ffill_limited(one).values::<f64>()?, [None, Some(1.0), Some(1.0), None, Some(4.0)]);
/// let both = one.direction(LimitDirection::Both);
/// assert_eq!(n.interpolate_limited(both).values::<f64>()?, [1.0, 1.0, 2.0, 3.0, 4.0].map(Some));
/// let outside = n.bfill_limited(one.area(LimitArea::Outside));
/// assert_eq!(outside.values::<f64>()?, [Some(1.0), Some(1.0), None, None, Some(4.0)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLimit {
    rows: Option<usize>,
    direction: LimitDirection,
    area: Option<LimitArea>,
}

impl Default for FillLimit {
    fn default() -> FillLimit {
        FillLimit { rows: None, direction: LimitDirection::Forward, area: None }
    }
}

impl FillLimit {
    /// At most this many missing values next to each value.
    pub fn rows(rows: usize) -> FillLimit {
        FillLimit { rows: Some(rows), ..FillLimit::default() }
    }

    /// Missing values on these sides of a value; behind it by default.
    pub fn direction(self, direction: LimitDirection) -> FillLimit {
        FillLimit { direction, ..self }
    }

    /// Missing values in this area only.
    pub fn area(self, area: LimitArea) -> FillLimit {
        FillLimit { area: Some(area), ..self }
    }
}

/// The values around each row.
struct Around {
    before: Expr,
    after: Expr,
    /// The number of the row, and those of the rows of both values; all as floats.
    at: Expr,
    from: Expr,
    to: Expr,
}

impl Around {
    fn of(over: &Over, value: &Expr) -> Result<Around> {
        let at = cast(over.position(), DataType::Float64);
        let at_value = when(value.clone().is_not_null(), at.clone()).end()?;
        let (before, after) = (over.last(value.clone()), over.next(value.clone()));
        let (from, to) = (over.last(at_value.clone()), over.next(at_value));
        Ok(Around { before, after, at, from, to })
    }

    /// Whether a missing value is filled.
    fn allowed(&self, limit: FillLimit) -> Result<Expr> {
        if limit.rows == Some(0) {
            return Err(Error::Value("Limit must be greater than 0".to_owned()));
        }
        let near = |there: &Expr, distance: Expr| match limit.rows {
            None => there.clone().is_not_null(),
            Some(rows) => there.clone().is_not_null().and(distance.lt_eq(lit(rows as f64))),
        };
        let behind = near(&self.from, self.at.clone() - self.from.clone());
        let ahead = near(&self.to, self.to.clone() - self.at.clone());
        let sides = match limit.direction {
            LimitDirection::Backward => ahead,
            LimitDirection::Both => behind.or(ahead),
            LimitDirection::Forward => behind,
        };
        let inside = self.from.clone().is_not_null().and(self.to.clone().is_not_null());
        Ok(match limit.area {
            None => sides,
            Some(LimitArea::Inside) => sides.and(inside),
            Some(LimitArea::Outside) => sides.and(inside.is_not_true()),
        })
    }
}

impl Over {
    /// The values, and where they are missing the nearest one in the direction of the limit.
    pub(super) fn filled(&self, value: Expr, limit: FillLimit) -> Result<Expr> {
        let backward = limit.direction == LimitDirection::Backward;
        if limit.rows.is_none() && limit.area.is_none() {
            return Ok(if backward { self.next(value) } else { self.last(value) });
        }
        let around = Around::of(self, &value)?;
        let allowed = around.allowed(limit)?;
        let fill = if backward { around.after } else { around.before };
        Ok(when(value.clone().is_null().and(allowed), fill).otherwise(value)?)
    }

    /// Values on a line between their neighbours; beyond the outermost ones, these.
    pub(super) fn interpolated(&self, value: Expr, limit: FillLimit) -> Result<Expr> {
        let around = Around::of(self, &value)?;
        let allowed = around.allowed(limit)?;
        let Around { before, after, at, from, to } = around;
        let slope = (after.clone() - before.clone()) / (to - from.clone());
        let line = before.clone() + slope * (at - from);
        let fill = coalesce(vec![line, before, after]);
        Ok(when(value.clone().is_null().and(allowed), fill).otherwise(value)?)
    }
}
