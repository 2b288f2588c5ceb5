//! Rows of two frames that have equal labels in the index, side by side.

use super::combine::{Side, joined};
use super::{DataFrame, Frame, JoinKind, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::{Operand, Series};
use crate::promotion::{never_meet, unified};
use crate::stage::row_number::Numbering;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};
use std::sync::Arc;

/// The rows of two frames over one plan.
pub(super) struct Paired {
    /// Plan, index and order; it has no labels.
    pub(super) frame: Frame,
    /// Labels of the left frame, with the columns of the plan.
    left: Vec<(String, String)>,
    right: Vec<(String, String)>,
    orders: [Vec<OrderKey>; 2],
}

impl Paired {
    /// The order of the left frame's rows, then of the rows of the right one that it lacks.
    pub(super) fn in_turn(&self) -> Vec<OrderKey> {
        let last = |key: &OrderKey| OrderKey { nulls_first: false, ..key.clone() };
        self.orders.iter().flatten().map(last).collect()
    }

    fn of(side: &[(String, String)], label: &str) -> Option<Expr> {
        side.iter().find(|(own, _)| own == label).map(|(_, name)| named(name))
    }

    /// The left frame's column with this label.
    pub(super) fn left(&self, label: &str) -> Option<Expr> {
        Paired::of(&self.left, label)
    }

    /// The right frame's column with this label.
    pub(super) fn right(&self, label: &str) -> Option<Expr> {
        Paired::of(&self.right, label)
    }

    /// The left frame's column with a label that it has.
    pub(super) fn left_of(&self, label: &str) -> Result<Expr> {
        self.left(label).ok_or_else(|| Error::Internal(format!("a lost column {label:?}")))
    }

    /// The right frame's column with a label that it has.
    pub(super) fn right_of(&self, label: &str) -> Result<Expr> {
        self.right(label).ok_or_else(|| Error::Internal(format!("a lost column {label:?}")))
    }

    /// The columns of one side with these labels; missing ones where it has none, of the other side's type.
    fn side(&self, of_left: bool, labels: &[String]) -> Result<Frame> {
        let columns = labels.iter().map(|label| {
            let (own, other) = if of_left {
                (self.left(label), self.right(label))
            } else {
                (self.right(label), self.left(label))
            };
            let expr = match own {
                Some(expr) => expr,
                None => missing_like(&self.frame, other.as_ref())?,
            };
            Ok((label.clone(), expr))
        });
        self.frame.project(columns.collect::<Result<_>>()?)
    }
}

/// A missing value of the type of a column, or a float.
pub(super) fn missing_like(frame: &Frame, column: Option<&Expr>) -> Result<Expr> {
    let dtype = match column {
        Some(Expr::Column(column)) => frame.dtype(&column.name)?,
        _ => DataType::Float64,
    };
    Ok(cast(lit(ScalarValue::Null), dtype))
}

/// The labels of both, sorted if they differ.
pub(super) fn united(left: &[String], right: &[String]) -> Vec<String> {
    if left == right {
        return left.to_vec();
    }
    let mut all: Vec<String> = left.iter().chain(right).cloned().collect();
    all.sort();
    all.dedup();
    all
}

impl Frame {
    /// The rows of both frames by their labels: one by one if both have equal labels in the same order, else
    /// as [`Frame::paired_by_labels`]. It looks at the labels at once, which runs the plans of both indices.
    pub(super) fn paired(&self, other: &Frame, kind: JoinType) -> Result<Paired> {
        let positions = self.index.is_empty() && other.index.is_empty();
        if positions || self.is_same(other) || !self.has_labels_of(other)? {
            return self.paired_by_labels(other, kind);
        }
        let (left, levels) = self.by_position()?;
        let (right, others) = other.by_position()?;
        let mut paired = left.paired_by_labels(&right, JoinType::Left)?;
        let shared = |(mine, others): (Level, Level)| {
            let (_, column) = paired.left.iter().find(|(label, _)| *label == mine.column)?;
            let name = mine.name.clone().filter(|_| mine.name == others.name || kind == JoinType::Left);
            Some(Level { column: column.clone(), name })
        };
        paired.frame.index = levels.into_iter().zip(others).filter_map(shared).collect();
        Ok(paired)
    }

    /// Whether the labels are those of another frame, in the same order. If the plans do not show that both
    /// have their labels from one place, both indices are computed and compared.
    pub(super) fn has_labels_of(&self, other: &Frame) -> Result<bool> {
        let levels = self.index.len().max(1);
        if levels != other.index.len().max(1) || !self.labels_meet(other)? {
            return Ok(false);
        }
        if self.shares_labels(other)? {
            return Ok(true);
        }
        let name = |side: &str, at: usize| format!("__tharsis_{side}_{at}");
        let labels = |frame: &Frame, side: &str| -> Result<LogicalPlan> {
            let (frame, place) = frame.with_index()?.numbered("place", Numbering::Exact)?;
            let columns = frame.index.iter().map(|level| level.column.as_str()).chain([place.as_str()]);
            let columns = columns.enumerate().map(|(at, column)| named(column).alias(name(side, at)));
            Ok(frame.builder().project(columns.collect::<Vec<_>>())?.build()?)
        };
        let keys = |side: &str| -> Vec<String> { (0..=levels).map(|at| name(side, at)).collect() };
        let plan = joined(labels(self, "l")?, labels(other, "r")?, JoinType::Full, (keys("l"), keys("r")))?;
        // Places are never missing: a row without a partner is one in which either is.
        let alone = named(&name("l", levels)).is_null().or(named(&name("r", levels)).is_null());
        let alone = DataFrame::new(Frame::of_plan(plan.filter(alone)?.limit(0, Some(1))?.build()?));
        alone.is_empty()
    }

    /// Whether the labels of each level can be equal to those of another frame.
    fn labels_meet(&self, other: &Frame) -> Result<bool> {
        let (left, right) = (self.with_index()?, other.with_index()?);
        let mut levels = left.index.iter().zip(&right.index);
        levels.try_fold(true, |meet, (mine, others)| {
            Ok(meet && !never_meet(&left.dtype(&mine.column)?, &right.dtype(&others.column)?))
        })
    }

    /// The rows of both frames by equal labels of the index. A row with a label that the other frame lacks
    /// stays if the kind of join keeps it; rows of both are sorted by their labels then.
    pub(super) fn paired_by_labels(&self, other: &Frame, kind: JoinType) -> Result<Paired> {
        let plain =
            |frame: &Frame| frame.columns.iter().map(|label| (label.clone(), label.clone())).collect();
        if self.is_same(other) {
            let (left, right) = (plain(self), plain(other));
            let frame = self.with_order()?;
            let orders = [frame.order.clone(), Vec::new()];
            return Ok(Paired { frame: Frame { columns: Vec::new(), ..frame }, left, right, orders });
        }
        if kind == JoinType::Right {
            let Paired { frame, left, right, orders: [of_left, of_right] } =
                other.paired_by_labels(self, JoinType::Left)?;
            return Ok(Paired { frame, left: right, right: left, orders: [of_right, of_left] });
        }
        if self.index.len().max(1) != other.index.len().max(1) {
            return Err(Error::Value("cannot align indices of different depth".to_owned()));
        }
        let positions = self.index.is_empty();
        let left = Side::new(&self.with_index()?, "__tharsis_l_")?;
        let right = Side::new(&other.with_index()?, "__tharsis_r_")?;
        let keys = |side: &Side| -> Vec<_> { side.index.iter().map(|level| level.column.clone()).collect() };
        let plan = joined(left.plan.clone(), right.plan.clone(), kind, (keys(&left), keys(&right)))?;
        let both = left.plan.schema().fields().iter().chain(right.plan.schema().fields());
        let mut exprs: Vec<Expr> = both.map(|field| named(field.name())).collect();
        let (mut index, mut order) = (Vec::new(), left.order.clone());
        for (at, (mine, others)) in left.index.iter().zip(&right.index).enumerate() {
            let column = format!("__tharsis_aligned_{at}");
            let label = match kind {
                JoinType::Full => {
                    let (mine, others) = unified(plan.schema(), named(&mine.column), named(&others.column))?;
                    coalesce(vec![mine, others])
                }
                _ => named(&mine.column),
            };
            exprs.push(label.alias(&column));
            let name = mine.name.clone().filter(|_| mine.name == others.name || kind == JoinType::Left);
            index.push(Level { column, name });
        }
        if kind == JoinType::Full {
            let sorted = index.iter().map(|level| OrderKey::growing(&level.column));
            order = sorted.chain(order).chain(right.order.iter().cloned()).collect();
        } else {
            order.extend(right.order.iter().cloned());
        }
        let plan = plan.project(exprs)?.build()?;
        // Positions stay positions if no row comes from the other side only, or twice: see `align_rows`.
        let index = if positions && kind == JoinType::Left { Vec::new() } else { index };
        let frame = Frame { plan, columns: Vec::new(), index, order };
        let orders = [left.order, right.order];
        Ok(Paired { frame, left: left.columns, right: right.columns, orders })
    }

    /// Both frames' rows by equal labels of the index; the labels of either that the other lacks are kept,
    /// with missing values. If both have an index of positions, rows are matched by position.
    pub(crate) fn align(&self, left: &Expr, other: &Frame, right: &Expr) -> Result<(Frame, Expr, Expr)> {
        let own = self.project(vec![("left".to_owned(), left.clone())])?;
        let (frame, [left], right) = own.align_columns(["left"], other, right)?;
        Ok((frame, left, right))
    }

    /// As [`Frame::align`], for columns of this frame.
    pub(crate) fn align_columns<const N: usize>(
        &self,
        labels: [&str; N],
        other: &Frame,
        right: &Expr,
    ) -> Result<(Frame, [Expr; N], Expr)> {
        let other = other.project(vec![("right".to_owned(), right.clone())])?;
        let paired = self.paired(&other, JoinType::Full)?;
        let own = labels.map(|label| paired.left(label));
        let lost = || Error::Internal("a lost column".to_owned());
        let own: Vec<Expr> = own.into_iter().collect::<Option<_>>().ok_or_else(lost)?;
        let own = <[Expr; N]>::try_from(own).map_err(|_| lost())?;
        let right = paired.right_of("right")?;
        Ok((paired.frame, own, right))
    }

    /// The rows of this frame with the values of another one that have the same label; missing where it has
    /// none.
    pub(crate) fn align_rows(&self, other: &Frame, right: &Expr) -> Result<(Frame, Expr)> {
        let label = self.fresh("right");
        let other = other.project(vec![("right".to_owned(), right.clone())])?;
        let paired = self.paired(&other, JoinType::Left)?;
        let mut columns: Vec<(String, Expr)> = Vec::new();
        for own in &self.columns {
            columns.extend(paired.left(own).map(|expr| (own.clone(), expr)));
        }
        columns.extend(paired.right("right").map(|expr| (label.clone(), expr)));
        let frame = paired.frame.project(columns)?;
        Ok((Frame { columns: self.columns.clone(), ..frame }, named(&label)))
    }
}

/// The join that keeps these rows.
pub(super) fn join_type(kind: JoinKind) -> Result<JoinType> {
    match kind {
        JoinKind::Inner => Ok(JoinType::Inner),
        JoinKind::Left => Ok(JoinType::Left),
        JoinKind::Right => Ok(JoinType::Right),
        JoinKind::Outer => Ok(JoinType::Full),
        other => Err(Error::Value(format!("frames are not aligned by {other:?}"))),
    }
}

impl DataFrame {
    /// Both frames with the same rows and columns: those of either with `Outer`, of both with `Inner`, of one
    /// with `Left` or `Right`. Values that a frame lacks are missing.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, JoinKind};
    /// let a = DataFrame::from_columns([("x", vec![1, 2].into())]);
    /// let b = DataFrame::from_columns([("y", vec![3].into())]);
    /// let (a, b) = a.align(&b, JoinKind::Outer);
    /// assert_eq!(a.columns()?, b.columns()?);
    /// assert_eq!(b.col("y").values::<i64>()?, [Some(3), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn align(&self, other: &DataFrame, kind: JoinKind) -> (DataFrame, DataFrame) {
        self.aligned_with(other, kind, |left, right| {
            let labels = match kind {
                JoinKind::Left => left.columns.clone(),
                JoinKind::Right => right.columns.clone(),
                JoinKind::Inner => {
                    let shared = left.columns.iter().filter(|label| right.columns.contains(label));
                    shared.cloned().collect()
                }
                _ => united(&left.columns, &right.columns),
            };
            (labels.clone(), labels)
        })
    }

    /// Both frames with the same rows, as [`DataFrame::align`], and each with its own columns.
    #[track_caller]
    pub fn align_rows(&self, other: &DataFrame, kind: JoinKind) -> (DataFrame, DataFrame) {
        self.aligned_with(other, kind, |left, right| (left.columns.clone(), right.columns.clone()))
    }

    #[track_caller]
    fn aligned_with(
        &self,
        other: &DataFrame,
        kind: JoinKind,
        labels: impl FnOnce(&Frame, &Frame) -> (Vec<String>, Vec<String>),
    ) -> (DataFrame, DataFrame) {
        let aligned = self.frame().and_then(|left| {
            let right = other.frame()?;
            let (of_left, of_right) = labels(left, right);
            let paired = left.paired(right, join_type(kind)?)?;
            Ok((paired.side(true, &of_left)?, paired.side(false, &of_right)?))
        });
        match aligned {
            Ok((left, right)) => (DataFrame::new(Ok(left)), DataFrame::new(Ok(right))),
            Err(error) => (DataFrame::new(Err(error.clone())), DataFrame::new(Err(error))),
        }
    }
}

impl Series {
    /// Both series over the same rows: those of either with `Outer`, of both with `Inner`, of one with `Left`
    /// or `Right`. Values that a series lacks are missing.
    #[track_caller]
    pub fn align(&self, other: &Series, kind: JoinKind) -> (Series, Series) {
        let aligned = self.to_frame().frame().and_then(|left| {
            let right = other.to_frame();
            let paired = left.paired(right.frame()?, join_type(kind)?)?;
            let lost = || Error::Internal("a lost column".to_owned());
            let values = (paired.left(&self.label()), paired.right(&other.label()));
            Ok((Arc::new(paired.frame), values.0.ok_or_else(lost)?, values.1.ok_or_else(lost)?))
        });
        let (own, others) = (self.name().map(str::to_owned), other.name().map(str::to_owned));
        match aligned {
            Ok((frame, left, right)) => {
                (Series::new(Ok((Arc::clone(&frame), left)), own), Series::new(Ok((frame, right)), others))
            }
            Err(error) => (Series::new(Err(error.clone()), own), Series::new(Err(error), others)),
        }
    }

    /// Both sides of an operator over the same rows, with a value where exactly one of them is missing; then
    /// `a + b` is pandas' `a.add(b, fill_value=..)`.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let a = Series::from_values("n", vec![Some(1), None, None]);
    /// let b = Series::from_values("n", vec![None, Some(5), None]);
    /// let (a, b) = a.align_filled(&b, 0);
    /// assert_eq!((a + b).values::<i64>()?, [Some(1), Some(5), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn align_filled(&self, other: impl Into<Operand>, fill: impl Into<Value>) -> (Series, Series) {
        let (other, fill) = (other.into(), fill.into());
        let names = match &other {
            Operand::Series(other) => (self.name().map(str::to_owned), other.name().map(str::to_owned)),
            Operand::Value(_) => (self.name().map(str::to_owned), self.name().map(str::to_owned)),
        };
        let (left, right) = match self.aligned(&other) {
            Ok((frame, left, right)) => match filled_pair(frame.plan.schema(), left, right, &fill) {
                Ok((left, right)) => (Ok((Arc::clone(&frame), left)), Ok((frame, right))),
                Err(error) => (Err(error.clone()), Err(error)),
            },
            Err(error) => (Err(error.clone()), Err(error)),
        };
        (Series::new(left, names.0), Series::new(right, names.1))
    }
}

/// Both values, with a fill where exactly one is missing.
pub(super) fn filled_pair(
    schema: &datafusion::common::DFSchema,
    left: Expr,
    right: Expr,
    fill: &Value,
) -> Result<(Expr, Expr)> {
    let filled = |own: &Expr, other: &Expr| -> Result<Expr> {
        let (own, fill) = unified(schema, own.clone(), lit(fill.0.clone()))?;
        let fill = datafusion::logical_expr::expr_fn::when(other.clone().is_not_null(), fill).end()?;
        Ok(coalesce(vec![own, fill]))
    };
    Ok((filled(&left, &right)?, filled(&right, &left)?))
}
