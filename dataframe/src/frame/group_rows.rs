//! Groups of rows: what is computed of a group for each of its rows, and the rows that are kept.

use super::aggregate::Aggregate;
use super::group::{GroupBy, Key, first_where};
use super::window::{Over, Step, from_end, in_order, over_window, rows, window};
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::stage::row_number::Numbering;
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::functions_window::rank::dense_rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, SortExpr, lit};
use std::sync::Arc;

/// Columns by label.
type Labelled = Vec<(String, Expr)>;

impl GroupBy {
    /// The frame with its keys, or the error that either carries.
    pub(super) fn parts(&self) -> Result<(&Arc<Frame>, &[Key])> {
        let frame = self.frame.frame()?;
        let keys = self.keys.as_ref().map_err(|error| (**error).clone())?;
        Ok((frame, keys))
    }

    /// Rows of equal keys as a window.
    fn over(keys: &[Key]) -> Over {
        Over { keys: keys.iter().map(|key| named(&key.column)).collect() }
    }

    /// Whether a row belongs to a group, if there are rows that do not.
    pub(super) fn in_group(&self, keys: &[Key]) -> Option<Expr> {
        let present = keys.iter().map(|key| named(&key.column).is_not_null()).reduce(Expr::and);
        present.filter(|_| self.dropna)
    }

    /// A value where the row belongs to a group, else missing.
    fn masked(&self, keys: &[Key], value: Expr) -> Result<Expr> {
        Ok(match self.in_group(keys) {
            Some(present) => when(present, value).end()?,
            None => value,
        })
    }

    /// Labels and expressions of a step in the columns that are no keys.
    fn steps(&self, step: &Step) -> Result<(&Arc<Frame>, Labelled)> {
        let (frame, keys) = self.parts()?;
        let mut columns = Vec::new();
        for column in self.chosen.as_ref().unwrap_or(&frame.columns) {
            frame.check(column)?;
            let dtype = frame.dtype(column)?;
            let is_key = keys.iter().any(|key| key.column == *column);
            if self.chosen.is_some() || (!is_key && step.fits(&dtype)) {
                let stepped = Self::over(keys).step(step, named(column), &dtype)?;
                columns.push((column.clone(), self.masked(keys, stepped)?));
            }
        }
        Ok((frame, columns))
    }

    /// A step over the rows of each group, in all rows of the frame.
    #[track_caller]
    pub(crate) fn window_step(&self, step: &Step) -> DataFrame {
        let stepped = self.steps(step);
        DataFrame::new(stepped.and_then(|(frame, columns)| frame.project(columns)))
    }

    /// A step over the rows of each group. Rows come by group, with the keys as first levels of the index, or
    /// as first columns without [`GroupBy::as_index`].
    #[track_caller]
    pub(crate) fn window_step_by_group(&self, step: &Step) -> DataFrame {
        let made = self.steps(step).and_then(|(frame, columns)| self.ordered_by_group(frame, columns));
        DataFrame::new(made)
    }

    /// An expression over the rows of each group for each column that it is made for; rows come by group.
    #[track_caller]
    pub(super) fn step_by_group(
        &self,
        step: impl Fn(&Frame, &[Expr], &str, &DataType) -> Result<Option<Expr>>,
    ) -> DataFrame {
        let made = self.columns_but_keys().and_then(|columns| {
            let (frame, keys) = self.parts()?;
            let over: Vec<Expr> = keys.iter().map(|key| named(&key.column)).collect();
            let mut made = Vec::new();
            for column in columns {
                frame.check(&column)?;
                if let Some(expr) = step(frame, &over, &column, &frame.dtype(&column)?)? {
                    made.push((column, expr));
                }
            }
            self.ordered_by_group(frame, made)
        });
        DataFrame::new(made)
    }

    fn ordered_by_group(&self, frame: &Frame, columns: Labelled) -> Result<Frame> {
        let (_, keys) = self.parts()?;
        let indexed = frame.with_order()?.with_index()?;
        let level = |key: &Key| Level { column: key.column.clone(), name: Some(key.label.clone()) };
        let indexed_by = indexed.index.clone();
        let index = keys.iter().map(level).chain(indexed_by.clone()).collect();
        let (mut by_group, order) = self.group_order(&Frame { index, ..indexed }, keys)?;
        by_group.order = order.into_iter().chain(by_group.order).collect();
        if let Some(present) = self.in_group(keys) {
            by_group.plan = by_group.builder().filter(present)?.build()?;
        }
        if self.as_index {
            return by_group.project(columns);
        }
        by_group.index = indexed_by;
        let labels = keys.iter().map(|key| (key.label.clone(), named(&key.column)));
        by_group.project(labels.chain(columns).collect())
    }

    /// The columns that give groups their order: the keys, or the place of the first row of each group, which
    /// the frame has then.
    pub(super) fn group_order(&self, frame: &Frame, keys: &[Key]) -> Result<(Frame, Vec<OrderKey>)> {
        if self.sort {
            return Ok((frame.clone(), keys.iter().map(|key| OrderKey::growing(&key.column)).collect()));
        }
        let (numbered, row) = frame.numbered("first", Numbering::Exact)?;
        let over: Vec<Expr> = keys.iter().map(|key| named(&key.column)).collect();
        let first = over_window(min(named(&row)), &over, Vec::new(), rows(None, None))?;
        let (placed, exprs) = numbered.lifted(vec![first])?;
        let names = exprs.iter().filter_map(|expr| match expr {
            Expr::Column(column) => Some(OrderKey::growing(&column.name)),
            _ => None,
        });
        let order = names.collect();
        Ok((placed, order))
    }

    /// A series over the rows of the frame, with no name.
    #[track_caller]
    fn row_series(&self, made: impl FnOnce(&Frame, &[Key]) -> Result<Expr>) -> Series {
        let made = self.parts().and_then(|(frame, keys)| {
            let expr = self.masked(keys, made(frame, keys)?)?;
            Ok((Arc::clone(frame), expr))
        });
        Series::new(made, None)
    }

    /// The position of each row in its group, from 0.
    #[track_caller]
    pub fn cumcount(&self) -> Series {
        self.row_series(|_, keys| Ok(cast(Self::over(keys).position(), DataType::Int64) - lit(1_i64)))
    }

    /// The number of each row's group, from 0, in the order of groups.
    #[track_caller]
    pub fn ngroup(&self) -> Series {
        self.row_series(|_, keys| {
            let over = Self::over(keys);
            let order: Vec<SortExpr> = if self.sort {
                // Rows of no group come last: they have no number.
                let absent = over.keys.iter().filter(|_| self.dropna);
                let absent = absent.map(|key| key.clone().is_null().sort(true, false));
                absent.chain(over.keys.iter().map(|key| key.clone().sort(true, false))).collect()
            } else {
                let position = Over::default().position();
                let first = window(min_udaf(), vec![position], &over.keys, Vec::new(), rows(None, None));
                let grouped = self.masked(keys, first)?;
                vec![grouped.sort(true, false)]
            };
            let number = window(dense_rank_udwf(), Vec::new(), &[], order, rows(None, Some(0)));
            Ok(cast(number, DataType::Int64) - lit(1_i64))
        })
    }

    /// The rows for which a condition on their place in the group holds.
    #[track_caller]
    fn keep(&self, place: SortExpr, condition: impl FnOnce(Expr) -> Expr) -> DataFrame {
        let made = self.parts().and_then(|(frame, keys)| {
            let over = Self::over(keys);
            let place = window(row_number_udwf(), Vec::new(), &over.keys, vec![place], rows(None, Some(0)));
            let kept = condition(cast(place, DataType::Int64));
            let kept = match self.in_group(keys) {
                Some(present) => present.and(kept),
                None => kept,
            };
            let (frame, exprs) = frame.with_index()?.lifted(vec![kept])?;
            let mut plan = frame.builder();
            for expr in exprs {
                plan = plan.filter(expr)?;
            }
            self.shown(Frame { plan: plan.build()?, ..frame })
        });
        DataFrame::new(made)
    }

    /// A frame with the chosen columns only, if some were chosen.
    pub(super) fn shown(&self, frame: Frame) -> Result<Frame> {
        let Some(chosen) = &self.chosen else { return Ok(frame) };
        chosen.iter().try_for_each(|label| frame.check(label))?;
        frame.project(chosen.iter().map(|label| (label.clone(), named(label))).collect())
    }

    /// The first rows of each group, in the order of the frame.
    #[track_caller]
    pub fn head(&self, rows: usize) -> DataFrame {
        self.keep(in_order(), |place| place.lt_eq(lit(rows as i64)))
    }

    /// The last rows of each group, in the order of the frame.
    #[track_caller]
    pub fn tail(&self, rows: usize) -> DataFrame {
        self.keep(from_end(), |place| place.lt_eq(lit(rows as i64)))
    }

    /// The rows of each group but its last ones, in the order of the frame; pandas' `head` of a negative
    /// number.
    #[track_caller]
    pub fn head_but(&self, rows: usize) -> DataFrame {
        self.keep(from_end(), |place| place.gt(lit(rows as i64)))
    }

    /// The rows of each group but its first ones, in the order of the frame; pandas' `tail` of a negative
    /// number.
    #[track_caller]
    pub fn tail_but(&self, rows: usize) -> DataFrame {
        self.keep(in_order(), |place| place.gt(lit(rows as i64)))
    }

    /// The row of each group at a position from 0, or from the end if it is negative.
    #[track_caller]
    pub fn nth(&self, position: i64) -> DataFrame {
        match position {
            0.. => self.keep(in_order(), |place| place.eq(lit(position + 1))),
            _ => self.keep(from_end(), |place| place.eq(lit(-position))),
        }
    }

    /// The rows of the groups for which a condition on an aggregate of a column holds.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let sales = DataFrame::from_columns([
    ///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
    ///     ("sold", vec![3, 5, 4].into()),
    /// ]);
    /// let large = sales.groupby(["city"]).filter_groups("sold", Aggregate::Sum, |total| total.gt(6));
    /// assert_eq!(large.col("sold").values::<i64>()?, [Some(3), Some(4)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn filter_groups(
        &self,
        label: &str,
        aggregate: Aggregate,
        condition: impl FnOnce(&Series) -> Series,
    ) -> DataFrame {
        let totals = self.row_series(|frame, keys| {
            let is_key = keys.iter().any(|key| key.column == label);
            if !is_key {
                frame.check(label)?;
            }
            Self::over(keys).step(&Step::Whole(aggregate), named(label), &frame.dtype(label)?)
        });
        let kept = match self.parts().map(|(_, keys)| self.in_group(keys)) {
            Ok(Some(present)) => condition(&totals).map_expr(|kept| Ok(present.and(kept))),
            _ => condition(&totals),
        };
        self.frame.filter(&kept).then(|frame| self.shown(frame.clone()))
    }

    /// The result of a function of these groups, for chains of calls.
    #[must_use]
    pub fn pipe<T>(&self, step: impl FnOnce(&GroupBy) -> T) -> T {
        step(self)
    }

    /// The label of the index where each column has its smallest value, by group.
    #[track_caller]
    pub fn idxmin(&self) -> DataFrame {
        self.label_of(true)
    }

    /// The label of the index where each column has its largest value, by group.
    #[track_caller]
    pub fn idxmax(&self) -> DataFrame {
        self.label_of(false)
    }

    #[track_caller]
    fn label_of(&self, smallest: bool) -> DataFrame {
        let made = self.parts().and_then(|(frame, keys)| {
            let frame = frame.with_index()?;
            let [level] = &frame.index[..] else {
                return Err(Error::NotImplemented("labels of an index with several levels".to_owned()));
            };
            let label = level.column.clone();
            let frame = frame.with_order()?;
            let mut labels = Vec::new();
            for column in self.chosen.as_ref().unwrap_or(&frame.columns) {
                frame.check(column)?;
                if self.chosen.is_some() || !keys.iter().any(|key| key.column == *column) {
                    let order = frame.by_value(column, smallest);
                    labels.push((column.clone(), first_where(named(&label), named(column), order)?));
                }
            }
            self.aggregate_exprs(&frame, keys, labels)
        });
        DataFrame::new(made)
    }
}
