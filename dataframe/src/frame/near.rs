//! Joins on more than equal keys: on the nearest key, or on any condition.

use super::combine::{Merge, Side};
use super::window::{rows, window};
use super::{DataFrame, Frame, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::{Series, for_filter, truth};
use crate::functions::{last_present, next_present};
use crate::value::Value;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit};
use std::sync::Arc;

/// The row of the right frame that belongs to a row of the left one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// The last one whose key is not greater.
    Backward,
    /// The first one whose key is not less.
    Forward,
    /// The one whose key has the least distance; of two, that before.
    Either,
}

/// Options of [`DataFrame::merge_asof`]: the key, keys that must be equal, direction, tolerance.
#[must_use]
#[derive(Clone, Debug)]
pub struct AsOf {
    on: (String, String),
    by: Vec<String>,
    nearest: Nearest,
    tolerance: Option<Value>,
    exact: bool,
    suffixes: (String, String),
}

impl AsOf {
    /// By the nearest key in a column that both frames have.
    pub fn on(label: &str) -> AsOf {
        AsOf::on_pair(label, label)
    }

    /// By the nearest key: a column of the left frame and one of the right frame.
    pub fn on_pair(left: &str, right: &str) -> AsOf {
        AsOf {
            on: (left.to_owned(), right.to_owned()),
            by: Vec::new(),
            nearest: Nearest::Backward,
            tolerance: None,
            exact: true,
            suffixes: ("_x".to_owned(), "_y".to_owned()),
        }
    }

    /// Columns of both frames that must be equal.
    pub fn by<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> AsOf {
        AsOf { by: labels.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The direction in which the nearest key is sought; backward by default.
    pub fn nearest(self, nearest: Nearest) -> AsOf {
        AsOf { nearest, ..self }
    }

    /// The largest distance of keys: a number, or a text like `10min` for times.
    pub fn tolerance(self, distance: impl Into<Value>) -> AsOf {
        AsOf { tolerance: Some(distance.into()), ..self }
    }

    /// Whether equal keys belong together, as is the default.
    pub fn allow_exact_matches(self, exact: bool) -> AsOf {
        AsOf { exact, ..self }
    }

    /// Endings of labels that both frames have; `_x` and `_y` by default.
    pub fn suffixes(self, left: &str, right: &str) -> AsOf {
        AsOf { suffixes: (left.to_owned(), right.to_owned()), ..self }
    }

    /// The largest distance, as a number of the unit in which keys of a type are compared.
    fn distance(&self, key: &DataType) -> Result<Option<Expr>> {
        let Some(tolerance) = &self.tolerance else { return Ok(None) };
        let own = tolerance.dtype();
        let of_time = matches!(own, DataType::Duration(_)) || tolerance.as_str().is_some();
        if of_time != key.is_temporal() {
            return Err(Error::Value(format!("a tolerance of {own} is none for keys of {key}")));
        }
        Ok(Some(match (tolerance.as_str(), own) {
            (Some(text), _) => lit(super::resample::duration(text)?),
            (None, DataType::Duration(_)) => {
                let nanoseconds = tolerance.0.cast_to(&DataType::Duration(TimeUnit::Nanosecond))?;
                lit(nanoseconds.cast_to(&DataType::Int64)?)
            }
            (None, _) => lit(tolerance.0.clone()),
        }))
    }
}

/// The rows of both frames below each other.
struct Stacked<'a> {
    asof: &'a AsOf,
    plan: LogicalPlan,
    left: Side,
    /// The row of the right frame as one value.
    row: DataType,
    /// The type of the left frame's keys.
    key: DataType,
}

const KEY: &str = "__tharsis_asof_key";
const BY: &str = "__tharsis_asof_by";
const IS_LEFT: &str = "__tharsis_asof_left";
const ROW: &str = "__tharsis_asof_row";
const PLACE: &str = "__tharsis_asof_place";

/// Keys as numbers, so that they have distances.
fn comparable(key: Expr, dtype: &DataType) -> Result<Expr> {
    let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
    match dtype {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            Ok(cast(cast(key, nanoseconds), DataType::Int64))
        }
        DataType::Duration(_) => {
            Ok(cast(cast(key, DataType::Duration(TimeUnit::Nanosecond)), DataType::Int64))
        }
        DataType::UInt64 => Err(Error::NotImplemented("nearest keys of uint64".to_owned())),
        _ if dtype.is_integer() => Ok(cast(key, DataType::Int64)),
        _ if dtype.is_floating() => Ok(cast(key, DataType::Float64)),
        other => Err(Error::Value(format!("a key of type {other} has no nearest one"))),
    }
}

/// Whether keys can be compared: pandas takes equal types only, and here times and durations may differ in
/// unit.
fn are_of_kind(left: &DataType, right: &DataType) -> bool {
    let is_date = |dtype: &DataType| matches!(dtype, DataType::Date32 | DataType::Date64);
    match (left, right) {
        (DataType::Timestamp(_, zone), DataType::Timestamp(_, other)) => zone.is_some() == other.is_some(),
        (DataType::Duration(_), DataType::Duration(_)) => true,
        (one, DataType::Timestamp(_, None)) | (DataType::Timestamp(_, None), one) if is_date(one) => true,
        (one, other) if is_date(one) && is_date(other) => true,
        _ => {
            (left.is_integer() && right.is_integer())
                || (left.is_floating() && right.is_floating())
                || left == right
        }
    }
}

fn by_name(at: usize) -> String {
    format!("{BY}_{at}")
}

impl<'a> Stacked<'a> {
    fn new(left: &Frame, right: &Frame, asof: &'a AsOf) -> Result<Stacked<'a>> {
        left.check(&asof.on.0)?;
        right.check(&asof.on.1)?;
        asof.by.iter().try_for_each(|label| left.check(label).and_then(|()| right.check(label)))?;
        let (left_key, right_key) = (left.dtype(&asof.on.0)?, right.dtype(&asof.on.1)?);
        if !are_of_kind(&left_key, &right_key) {
            let text = "must be the same type";
            return Err(Error::Value(format!("incompatible merge keys {left_key} and {right_key}, {text}")));
        }
        let (right, place) = right.with_row()?;
        let side = Side::new(left, "__tharsis_l_")?;
        let key = comparable(named(&side.name(&asof.on.0)), &left_key)?;
        let right_key = comparable(named(&asof.on.1), &right_key)?;
        let mut fields = vec![lit("key"), right_key.clone()];
        for (at, column) in right.columns.iter().enumerate() {
            fields.extend([lit(format!("c{at}")), named(column)]);
        }
        let row = named_struct(fields);
        let dtype = row.get_type(right.plan.schema())?;
        let missing = |dtype: &DataType| -> Result<Expr> { Ok(lit(ScalarValue::try_from(dtype)?)) };
        let (mut upper, mut lower): (Vec<Expr>, Vec<Expr>) = (Vec::new(), Vec::new());
        for field in side.plan.schema().fields() {
            upper.push(named(field.name()));
            lower.push(missing(field.data_type())?.alias(field.name()));
        }
        for (at, label) in asof.by.iter().enumerate() {
            upper.push(named(&side.name(label)).alias(by_name(at)));
            lower.push(named(label).alias(by_name(at)));
        }
        upper.extend([key.alias(KEY), lit(true).alias(IS_LEFT), missing(&dtype)?.alias(ROW)]);
        upper.push(missing(&DataType::Int64)?.alias(PLACE));
        lower.extend([right_key.clone().alias(KEY), lit(false).alias(IS_LEFT), row.alias(ROW)]);
        lower.push(named(&place).alias(PLACE));
        let lower = right.builder().filter(right_key.is_not_null())?.project(lower)?.build()?;
        let plan = LogicalPlanBuilder::from(side.plan.clone()).project(upper)?.union(lower)?.build()?;
        Ok(Stacked { asof, plan, left: side, row: dtype, key: left_key })
    }

    /// The nearest row in one direction.
    fn found(&self, forward: bool) -> Expr {
        let keys: Vec<Expr> = (0..self.asof.by.len()).map(|at| named(&by_name(at))).collect();
        // Of equal keys, the row that the other one may find comes first.
        let left_last = forward != self.asof.exact;
        let order = vec![
            named(KEY).sort(true, false),
            named(IS_LEFT).sort(left_last, false),
            named(PLACE).sort(true, false),
        ];
        let fun = if forward { next_present() } else { last_present() };
        window(fun, vec![named(ROW)], &keys, order, rows(None, Some(0)))
    }

    /// Distance of a row's key from that of the row that was found.
    fn distance(&self, found: &Expr, forward: bool) -> Expr {
        let key = get_field(found.clone(), "key");
        if forward { key - named(KEY) } else { named(KEY) - key }
    }

    /// The row that belongs to each row of the left frame.
    fn nearest(&self) -> Result<Expr> {
        let tolerance = self.asof.distance(&self.key)?;
        let missing = lit(ScalarValue::try_from(&self.row)?);
        let near = |forward: bool| -> Result<Expr> {
            let found = self.found(forward);
            let mut fits = named(KEY).is_not_null();
            if let Some(tolerance) = &tolerance {
                fits = fits.and(self.distance(&found, forward).lt_eq(tolerance.clone()));
            }
            Ok(when(fits, found).otherwise(missing.clone())?)
        };
        let (backward, forward) = match self.asof.nearest {
            Nearest::Backward => return near(false),
            Nearest::Forward => return near(true),
            Nearest::Either => (near(false)?, near(true)?),
        };
        let closer = self.distance(&self.found(true), true).lt(self.distance(&self.found(false), false));
        let use_forward = backward.clone().is_null().or(closer.and(forward.clone().is_not_null()));
        Ok(when(use_forward, forward).otherwise(backward)?)
    }

    fn frame(&self, right: &Frame) -> Result<Frame> {
        let order: Vec<OrderKey> = self.left.order.clone();
        let stacked = Frame { plan: self.plan.clone(), columns: Vec::new(), index: Vec::new(), order };
        let (lifted, exprs) = stacked.lifted(vec![self.nearest()?])?;
        let found = lifted.fresh("found");
        let kept = self.left.plan.schema().fields().iter().map(|field| named(field.name()));
        let exprs: Vec<Expr> = kept.chain(exprs.into_iter().map(|expr| expr.alias(&found))).collect();
        let plan = lifted.builder().filter(named(IS_LEFT))?.project(exprs)?.build()?;
        let shared = |label: &String| {
            self.asof.by.contains(label) || (self.asof.on.0 == self.asof.on.1 && *label == self.asof.on.0)
        };
        let both = |label: &String| self.left.has(label) && right.columns.contains(label) && !shared(label);
        let mut columns = Vec::new();
        for (label, name) in &self.left.columns {
            let suffix = if both(label) { &*self.asof.suffixes.0 } else { "" };
            columns.push((format!("{label}{suffix}"), named(name)));
        }
        for (at, label) in right.columns.iter().enumerate().filter(|(_, label)| !shared(label)) {
            let suffix = if both(label) { &*self.asof.suffixes.1 } else { "" };
            // A field of a missing row may hold what the row had before it was left out.
            let field = get_field(named(&found), format!("c{at}"));
            columns.push((format!("{label}{suffix}"), when(named(&found).is_not_null(), field).end()?));
        }
        Frame { plan, ..stacked }.project(columns)
    }
}

impl Frame {
    /// Each row with the row of another frame that has the nearest key.
    pub(super) fn nearest_rows(&self, right: &Frame, asof: &AsOf) -> Result<Frame> {
        Stacked::new(self, right, asof)?.frame(right)
    }
}

impl DataFrame {
    /// Each row with the row of another frame that has the nearest key. Neither frame need be sorted; rows
    /// keep the order of the left one. Without columns that must be equal, one task finds all.
    ///
    /// ```
    /// use tharsis_dataframe::{AsOf, DataFrame};
    /// let trades = DataFrame::from_columns([("at", vec![3, 9].into())]);
    /// let quotes = DataFrame::from_columns([
    ///     ("at", vec![1, 2, 8].into()),
    ///     ("bid", vec![10, 20, 80].into()),
    /// ]);
    /// let priced = trades.merge_asof(&quotes, AsOf::on("at"));
    /// assert_eq!(priced.col("bid").values::<i64>()?, [Some(20), Some(80)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn merge_asof(&self, right: &DataFrame, asof: AsOf) -> DataFrame {
        self.then(|left| left.nearest_rows(right.frame()?, &asof))
    }

    /// The pairs of rows of two frames for which a condition on the columns of both holds. Columns that both
    /// frames have end in `_x` and `_y` in the frame that the condition is made from.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let bids = DataFrame::from_columns([("bid", vec![5, 7].into())]);
    /// let asks = DataFrame::from_columns([("ask", vec![6, 8].into())]);
    /// let deals = bids.merge_where(&asks, |both| both.col("bid").ge(&both.col("ask")));
    /// assert_eq!(deals.col("bid").values::<i64>()?, [Some(7)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn merge_where(&self, right: &DataFrame, condition: impl FnOnce(&DataFrame) -> Series) -> DataFrame {
        let both = self.merge(right, Merge::cross());
        let condition = condition(&both);
        both.then(|frame| {
            let (of, expr) = condition.parts()?;
            if !Arc::ptr_eq(of, both.frame()?) {
                let text = "a condition of columns that are not of the frame it was made from";
                return Err(Error::Value(text.to_owned()));
            }
            truth(&expr.get_type(frame.plan.schema())?)?;
            let plan = frame.builder().filter(for_filter(expr.clone()))?.build()?;
            Ok(Frame { plan, ..frame.clone() })
        })
    }
}
