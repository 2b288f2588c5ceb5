//! The rows with the largest or the smallest values of columns.

use super::{DataFrame, Frame, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{count, last_value};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

/// The rows that come of those with equal values, where not all of them fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The first ones.
    #[default]
    First,
    /// The last ones, the last of all first.
    Last,
    /// All of them, so that there may be more rows than were asked for.
    All,
}

/// The name of a column in the row that stands at the border.
fn at_border(border: &str, column: &str) -> String {
    format!("__tharsis_{border}_{column}")
}

/// The name of the number of rows up to a border. No column has it at a border.
fn rows_at(border: &str) -> String {
    format!("__tharsis_rows_at_{border}")
}

/// Whether a row has the same value as the one at a border; two missing ones are the same. No distinctness:
/// planning makes keys of joins of it, under which missing values are not the same.
fn same(border: &str, key: &OrderKey) -> Expr {
    let (own, other) = (named(&key.column), named(&at_border(border, &key.column)));
    coalesce(vec![own.clone().eq(other.clone()), own.is_null().and(other.is_null())])
}

/// Whether a row comes before the one at a border by the first key that differs, or has the same keys.
fn up_to(border: &str, keys: &[OrderKey]) -> Expr {
    let Some((key, rest)) = keys.split_first() else { return lit(true) };
    let (own, other) = (named(&key.column), named(&at_border(border, &key.column)));
    let less = if key.ascending { own.clone().lt(other.clone()) } else { own.clone().gt(other.clone()) };
    let before = if key.nulls_first {
        less.or(own.is_null().and(other.is_not_null()))
    } else {
        less.or(own.is_not_null().and(other.is_null()))
    };
    before.or(same(border, key).and(up_to(border, rest)))
}

/// A choice of rows by the values of columns.
struct Extremes {
    rows: usize,
    ties: Ties,
    /// The columns, from the first row to the last.
    values: Vec<OrderKey>,
}

impl Extremes {
    /// One row: the values of the last of so many rows, by these keys, and the number of rows. Numbers of
    /// rows are no values: a filter that planning moves below them changes them in one use of a plan alone.
    fn border(&self, frame: &Frame, name: &str, order: &[OrderKey], rows: usize) -> Result<LogicalPlan> {
        let sorted = Frame { order: order.to_vec(), ..frame.clone() };
        let first = sorted.limited(0, rows)?;
        let last = |key: &OrderKey| {
            last_value(named(&key.column), sorted.sort_exprs()).alias(at_border(name, &key.column))
        };
        let mut exprs: Vec<Expr> = self.values.iter().map(last).collect();
        exprs.push(count(lit(1_i64)).alias(rows_at(name)));
        Ok(first.builder().aggregate(Vec::<Expr>::new(), exprs)?.build()?)
    }

    /// The keys of the order in hidden columns that have values only where a condition holds; they turn the
    /// order of these rows.
    fn turned(frame: &Frame, condition: &Expr) -> Result<(Frame, Vec<OrderKey>)> {
        let (mut frame, mut turned) = (frame.clone(), Vec::new());
        for key in frame.order.clone() {
            let there = when(condition.clone(), named(&key.column)).end()?;
            let (with, column) = frame.with_hidden("turned", there)?;
            turned.push(OrderKey { column, ascending: !key.ascending, nulls_first: !key.nulls_first });
            frame = with;
        }
        Ok((frame, turned))
    }

    /// Whether a row has the value that is missing at the border, in a column before the last one. pandas
    /// takes all such rows: a missing value equals no other, so that later columns do not choose among them.
    fn missing_at_border(&self) -> Option<Expr> {
        let before_last = self.values.len().checked_sub(1)?;
        let missing = (0..before_last).map(|at| {
            let equal = self.values[..=at].iter().map(|key| same("border", key)).reduce(Expr::and);
            equal.unwrap_or(lit(true)).and(named(&self.values[at].column).is_null())
        });
        missing.reduce(Expr::or)
    }

    /// Whether a row is among those of which only some fit, as they differ from the border in the last column
    /// alone.
    fn among_last(&self) -> Expr {
        let before_last = self.values.split_last().map_or(&[][..], |(_, rest)| rest);
        let more = named(&rows_at("beyond")).gt(lit(self.rows as i64));
        before_last.iter().fold(more, |among, key| {
            among.and(same("border", key)).and(same("beyond", key)).and(named(&key.column).is_not_null())
        })
    }

    /// The rows with those at the borders beside them, by these keys.
    fn chosen(&self, frame: &Frame, keys: &[OrderKey]) -> Result<LogicalPlan> {
        let bordered = |rows: &Frame| -> Result<LogicalPlanBuilder> {
            let plan = rows.builder().cross_join(self.border(frame, "border", keys, self.rows)?)?;
            match self.ties {
                Ties::Last => {
                    Ok(plan.cross_join(self.border(frame, "beyond", keys, self.rows.saturating_add(1))?)?)
                }
                _ => Ok(plan),
            }
        };
        let missing = self.missing_at_border();
        if self.ties == Ties::All {
            let up_to = up_to("border", &self.values);
            let kept = missing.map_or(up_to.clone(), |missing| up_to.or(missing));
            return Ok(bordered(frame)?.filter(kept)?.build()?);
        }
        let first = bordered(&Frame { order: keys.to_vec(), ..frame.clone() }.limited(0, self.rows)?)?;
        Ok(match missing {
            None => first.build()?,
            Some(missing) => {
                let others = bordered(frame)?.filter(missing.clone())?.build()?;
                first.filter(Expr::Not(Box::new(missing)))?.union(others)?.build()?
            }
        })
    }

    fn of(&self, frame: &Frame) -> Result<Frame> {
        let mut frame = frame.with_index()?.with_order()?;
        frame.order.retain(|key| !self.values.iter().any(|value| value.column == key.column));
        let in_order = [self.values.clone(), frame.order.clone()].concat();
        if self.rows == 0 || (self.ties == Ties::First && self.values.len() == 1) {
            return Frame { order: in_order, ..frame }.limited(0, self.rows);
        }
        let last_value = self.values.last().map_or(lit(false), |key| named(&key.column).is_not_null());
        let (wide, keys) = match self.ties {
            Ties::First | Ties::All => (frame.clone(), in_order),
            Ties::Last => {
                let (wide, turned) = Extremes::turned(&frame, &last_value)?;
                (wide, [self.values.clone(), turned, frame.order.clone()].concat())
            }
        };
        let mut found = Frame { plan: self.chosen(&wide, &keys)?, ..wide };
        let mut order = self.values.clone();
        if self.ties == Ties::Last {
            let (turned, keys) = Extremes::turned(&found, &self.among_last().and(last_value))?;
            order.extend(keys);
            found = turned;
        }
        order.extend(frame.order);
        let columns = frame.columns.iter().map(|column| (column.clone(), named(column)));
        Frame { order, ..found }.project(columns.collect())
    }
}

impl DataFrame {
    /// The rows with the largest values of a column, the largest first; of equal ones the first. Further
    /// columns choose among rows that are equal in those before.
    #[track_caller]
    pub fn nlargest<'a>(&self, rows: usize, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.nlargest_with(rows, labels, Ties::First)
    }

    /// As [`DataFrame::nlargest`], with a choice among rows with equal values.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Ties};
    /// let frame = DataFrame::from_columns([("k", vec!["a", "b", "c"].into()), ("n", vec![1, 2, 1].into())]);
    /// let all = frame.nlargest_with(2, ["n"], Ties::All);
    /// assert_eq!(all.col("n").values::<i64>()?, [Some(2), Some(1), Some(1)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn nlargest_with<'a>(
        &self,
        rows: usize,
        labels: impl IntoIterator<Item = &'a str>,
        ties: Ties,
    ) -> DataFrame {
        self.extreme(rows, labels.into_iter().collect(), ties, false)
    }

    /// The rows with the smallest values of a column, the smallest first, as [`DataFrame::nlargest`].
    #[track_caller]
    pub fn nsmallest<'a>(&self, rows: usize, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.nsmallest_with(rows, labels, Ties::First)
    }

    /// As [`DataFrame::nsmallest`], with a choice among rows with equal values.
    #[track_caller]
    pub fn nsmallest_with<'a>(
        &self,
        rows: usize,
        labels: impl IntoIterator<Item = &'a str>,
        ties: Ties,
    ) -> DataFrame {
        self.extreme(rows, labels.into_iter().collect(), ties, true)
    }

    #[track_caller]
    fn extreme(&self, rows: usize, labels: Vec<&str>, ties: Ties, ascending: bool) -> DataFrame {
        self.then(|frame| {
            for label in &labels {
                frame.check(label)?;
                let dtype = frame.dtype(label)?;
                if crate::value::is_text(&dtype) {
                    return Err(Error::Type(format!("column {label:?} of {dtype} has no largest values")));
                }
            }
            if labels.is_empty() {
                return frame.with_index()?.limited(0, 0);
            }
            let key = |label: &&str| OrderKey { ascending, ..OrderKey::growing(label) };
            Extremes { rows, ties, values: labels.iter().map(key).collect() }.of(frame)
        })
    }
}

impl Series {
    /// The largest values, the largest first; of equal ones the first.
    #[track_caller]
    pub fn nlargest(&self, rows: usize) -> Series {
        self.nlargest_with(rows, Ties::First)
    }

    /// As [`Series::nlargest`], with a choice among equal values.
    #[track_caller]
    pub fn nlargest_with(&self, rows: usize, ties: Ties) -> Series {
        self.through(|frame, label| frame.nlargest_with(rows, [label], ties))
    }

    /// The smallest values, the smallest first; of equal ones the first.
    #[track_caller]
    pub fn nsmallest(&self, rows: usize) -> Series {
        self.nsmallest_with(rows, Ties::First)
    }

    /// As [`Series::nsmallest`], with a choice among equal values.
    #[track_caller]
    pub fn nsmallest_with(&self, rows: usize, ties: Ties) -> Series {
        self.through(|frame, label| frame.nsmallest_with(rows, [label], ties))
    }
}
