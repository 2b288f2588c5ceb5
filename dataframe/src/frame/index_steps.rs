//! Labels by position, levels of an index, and places of labels of another one.

use super::{DataFrame, Index, JoinKind, Merge, RankMethod, Sort};
use crate::error::{Error, Result};
use crate::execute::Executor;
use crate::frame::resample::duration;
use crate::frame::series::{Operand, Series};
use crate::frame::window::Rank;
use crate::value::{Column, Value};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::lit;
use std::ops::Range;

impl Index {
    /// The position of the smallest label; `ValueError` without labels.
    ///
    /// # Errors
    /// The error that the index carries, one of its run, or `ValueError`.
    pub fn argmin(&self) -> Result<usize> {
        self.single().argmin()
    }

    /// The position of the largest label; `ValueError` without labels.
    ///
    /// # Errors
    /// The error that the index carries, one of its run, or `ValueError`.
    pub fn argmax(&self) -> Result<usize> {
        self.single().argmax()
    }

    /// The positions that sort the labels; missing ones come last.
    ///
    /// ```
    /// use tharsis_dataframe::Index;
    /// let index = Index::from_values("k", vec![3, 1, 2]);
    /// assert_eq!(index.argsort().values::<i64>()?, [1, 2, 0].map(Some));
    /// assert_eq!(index.take([2, -1]).to_list::<i64>()?, [2, 2].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn argsort(&self) -> Series {
        let columns = self.columns();
        let sorted = self.levels.sort_values(columns.iter().map(String::as_str), Sort::ascending());
        sorted.index().to_series().drop_index()
    }

    /// The labels at these positions, from the end if negative; `IndexError` if there is none, which is
    /// looked at at once.
    #[track_caller]
    pub fn take(&self, positions: impl IntoIterator<Item = i64>) -> Index {
        self.over(self.levels.iloc_each(positions))
    }

    /// The labels without those at these positions, from the end if negative; `IndexError` if there is none,
    /// which is looked at at once.
    #[track_caller]
    pub fn delete(&self, positions: impl IntoIterator<Item = i64>) -> Index {
        let places = self.len().and_then(|rows| {
            let places = positions.into_iter().map(|position| place(position, rows, rows));
            Ok(places.collect::<Result<Vec<_>>>()?.into_iter().map(|place| place as i64).collect::<Vec<_>>())
        });
        self.over(match places {
            Ok(places) if places.is_empty() => self.levels.clone(),
            Ok(places) => self.levels.drop_rows(places),
            Err(error) => self.levels.then(|_| Err(error)),
        })
    }

    /// The labels with one more before a position, from the end if negative; `IndexError` if there is none,
    /// which is looked at at once. The label must be of their type.
    ///
    /// ```
    /// use tharsis_dataframe::Index;
    /// let index = Index::from_values("k", vec!["a", "c"]).insert(1, "b");
    /// assert_eq!(index.to_list::<String>()?, ["a", "b", "c"].map(|label| Some(label.to_owned())));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn insert(&self, position: i64, label: impl Into<Value>) -> Index {
        let label = label.into();
        let inserted = self.len().and_then(|rows| {
            let dtype = self.single().dtype()?;
            let at = place(position, rows, rows + 1)?;
            if !super::labels::is_of(&label, &dtype) {
                return Err(Error::Type(format!("{label} is no label of {dtype}")));
            }
            let array = super::labels::array_of(&[label], &dtype)?;
            let one = DataFrame::from_columns([("0", Column::from_arrow(array))]);
            Ok(DataFrame::concat([&self.levels.slice(0, at), &one, &self.levels.slice(at, rows)], true))
        });
        self.over(inserted.unwrap_or_else(|error| self.levels.then(|_| Err(error))))
    }

    /// Each label this many times.
    #[track_caller]
    pub fn repeat(&self, times: usize) -> Index {
        self.over(self.levels.repeated("0", times))
    }

    /// The labels where a condition over positions holds, and another one elsewhere; pandas' `where`.
    #[track_caller]
    pub fn keep_where(&self, condition: &Series, other: impl Into<Operand>) -> Index {
        let kept = self.single().keep_where(&condition.drop_index(), other);
        self.over(kept.rename("0").to_frame())
    }

    /// Another label where a condition over positions holds.
    #[track_caller]
    pub fn putmask(&self, condition: &Series, other: impl Into<Operand>) -> Index {
        let kept = self.single().mask(&condition.drop_index(), other);
        self.over(kept.rename("0").to_frame())
    }

    /// The labels rounded to this many decimals, halves to even ones.
    #[track_caller]
    pub fn round(&self, decimals: i32) -> Index {
        self.changed(|label| label.round(decimals))
    }

    /// The labels moved by some times a length of time, such as `D` or `15min`; `TypeError` for labels that
    /// are no times.
    ///
    /// ```
    /// use tharsis_dataframe::{Index, date_range};
    /// let days = Index::of_series(&date_range("2024-01-31", 1, "D")).shift(2, "12h");
    /// assert_eq!(days.to_series().dt().month().values::<i64>()?, [Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn shift(&self, periods: i64, length: &str) -> Index {
        let dtype = self.dtype();
        self.changed(|label| {
            label.map_expr(|label| {
                let dtype = dtype?;
                if !matches!(dtype, DataType::Timestamp(..) | DataType::Duration(_)) {
                    return Err(Error::Type(format!("labels of {dtype} are not moved in time")));
                }
                let moved = duration(length)?.checked_mul(periods);
                let moved = moved.ok_or_else(|| Error::Value(format!("{periods} times {length:?}")))?;
                let by = IntervalMonthDayNano::new(0, 0, moved);
                let by = match dtype {
                    DataType::Duration(_) => ScalarValue::DurationNanosecond(Some(moved)),
                    _ => ScalarValue::IntervalMonthDayNano(Some(by)),
                };
                Ok(label + lit(by))
            })
        })
    }

    /// The position at which a label would keep sorted labels sorted, as [`Series::searchsorted`].
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn searchsorted(&self, label: impl Into<Value>, behind: bool) -> Result<usize> {
        self.single().searchsorted(label, behind)
    }

    /// The positions of the labels from one to another, both included. In an index that grows or falls they
    /// need not be there; else each must be there once, or `KeyError`.
    ///
    /// # Errors
    /// The error that the index carries, one of its run, `KeyError` or `ValueError`.
    pub fn slice_indexer(&self, from: Option<Value>, to: Option<Value>) -> Result<Range<usize>> {
        let rows = self.len()?;
        if self.is_monotonic_increasing()? {
            let start = from.map_or(Ok(0), |from| self.searchsorted(from, false))?;
            return Ok(start..to.map_or(Ok(rows), |to| self.searchsorted(to, true))?);
        }
        if self.is_monotonic_decreasing()? {
            let level = self.single();
            let count = |which: Series| -> Result<usize> { Ok(which.sum()?.as_i64().unwrap_or(0) as usize) };
            let start = from.map_or(Ok(0), |from| count(level.gt(from)))?;
            return Ok(start..to.map_or(Ok(rows), |to| count(level.ge(to)))?);
        }
        let start = from.map_or(Ok(0), |from| self.get_loc(from))?;
        let behind = |to: Value| -> Result<usize> { Ok(self.get_loc(to)? + 1) };
        Ok(start..to.map_or(Ok(rows), behind)?)
    }

    /// The labels of a join with another index: of this one with `Left`, of the other one with `Right`, of
    /// both with `Inner`, of either with `Outer`, which sorts them. A label that stands several times in both
    /// stands for each pair.
    ///
    /// ```
    /// use tharsis_dataframe::{Index, JoinKind};
    /// let (a, b) = (Index::from_values("k", vec![3, 1, 2]), Index::from_values("k", vec![2, 5, 3]));
    /// assert_eq!(a.join(&b, JoinKind::Inner).to_list::<i64>()?, [3, 2].map(Some));
    /// assert_eq!(a.join(&b, JoinKind::Outer).to_list::<i64>()?, [1, 2, 3, 5].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn join(&self, other: &Index, kind: JoinKind) -> Index {
        let joined = self.both(other, |own, others| own.merge(others, self.on_all().how(kind)));
        match kind {
            JoinKind::Left => Index { names: self.names.clone(), ..joined },
            JoinKind::Right => Index { names: other.names.clone(), ..joined },
            _ => joined,
        }
    }

    /// The position in this index of each label of another one, -1 where it is not there. `ValueError` if a
    /// label of this index stands twice, which is looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::Index;
    /// let index = Index::from_values("k", vec!["a", "b"]);
    /// let places = index.get_indexer(&Index::from_values("k", vec!["b", "z"]));
    /// assert_eq!(places.values::<i64>()?, [1, -1].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn get_indexer(&self, labels: &Index) -> Series {
        let columns = self.columns();
        let on = Merge::on(columns.iter().map(String::as_str)).how(JoinKind::Left);
        let places = self.levels.reset_index(false);
        let found = match self.is_unique() {
            Ok(true) => labels.levels.merge(&places, on),
            Ok(false) => {
                let text = "cannot reindex on an axis with duplicate labels";
                self.levels.then(|_| Err(Error::Value(text.to_owned())))
            }
            Err(error) => self.levels.then(|_| Err(error)),
        };
        found.col("index").fillna(-1).named(None)
    }

    /// The labels of another index, and the position of each in this one, as [`Index::get_indexer`].
    #[track_caller]
    pub fn reindex(&self, labels: &Index) -> (Index, Series) {
        (labels.clone(), self.get_indexer(labels))
    }

    /// Whether both have equal labels in the same order, and the same names.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn identical(&self, other: &Index) -> Result<bool> {
        Ok(self.names == other.names && self.equals(other)?)
    }

    /// The levels at these places, in this order.
    fn chosen_levels(&self, places: &[usize]) -> Index {
        let labels: Vec<String> = places.iter().map(usize::to_string).collect();
        let chosen = self.levels.select(labels.iter().map(String::as_str));
        let numbers: Vec<String> = (0..places.len()).map(|at| at.to_string()).collect();
        let levels = chosen.rename(labels.iter().map(String::as_str).zip(numbers.iter().map(String::as_str)));
        let names = places.iter().map(|place| self.names.get(*place).cloned().flatten()).collect();
        Index { levels, names }
    }

    /// The labels without one level, by its place; `ValueError` if it is the only one.
    #[track_caller]
    pub fn droplevel(&self, level: usize) -> Index {
        let kept: Vec<usize> = (0..self.names.len()).filter(|at| *at != level).collect();
        match (kept.is_empty(), level < self.names.len()) {
            (false, true) => self.chosen_levels(&kept),
            (only, _) => {
                let levels = self.names.len();
                let error = if only {
                    Error::Value("at least one level must be left".to_owned())
                } else {
                    Error::Index(format!("level {level} of {levels}"))
                };
                Index { levels: self.levels.then(|_| Err(error)), ..self.clone() }
            }
        }
    }

    /// The labels with two levels in each other's place.
    ///
    /// ```
    /// use tharsis_dataframe::{Index, Series};
    /// let (a, b) = (Series::from_values("a", vec![1]), Series::from_values("b", vec![2]));
    /// let swapped = Index::from_levels([&a, &b]).swaplevel(0, 1);
    /// assert_eq!(swapped.names(), [Some("b".to_owned()), Some("a".to_owned())]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn swaplevel(&self, first: usize, second: usize) -> Index {
        let levels = self.names.len();
        if levels <= first.max(second) {
            let error = Error::Index(format!("levels {first} and {second} of {levels}"));
            return Index { levels: self.levels.then(|_| Err(error)), ..self.clone() };
        }
        let mut places: Vec<usize> = (0..levels).collect();
        places.swap(first, second);
        self.chosen_levels(&places)
    }

    /// The distinct labels of each level that are there, from small to large. It runs the plan.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn levels(&self) -> Result<Vec<Vec<Value>>> {
        let level = |at| self.get_level_values(at).dropna().unique().sort_values(Sort::ascending()).values();
        (0..self.names.len()).map(level).collect()
    }

    /// For each level, the position of each label among those of [`Index::levels`], -1 for a missing one.
    #[track_caller]
    #[must_use]
    pub fn codes(&self) -> Vec<Series> {
        let ranks = Rank::by(RankMethod::Dense);
        let codes = self.columns().into_iter().map(|column| {
            let code = self.levels.col(&column).rank(ranks) - 1;
            code.fillna(-1).astype(DataType::Int64).named(None)
        });
        codes.collect()
    }

    /// The number of axes: one.
    #[must_use]
    pub fn ndim(&self) -> usize {
        1
    }

    /// The same labels, computed: they stay where they were made, and later steps read them.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    #[track_caller]
    pub fn execute(&self) -> Result<Index> {
        Ok(Index { levels: self.levels.execute()?, names: self.names.clone() })
    }

    /// As [`Index::execute`], computed by an executor.
    ///
    /// # Errors
    /// As [`Index::execute`].
    #[track_caller]
    pub fn execute_on(&self, executor: &dyn Executor) -> Result<Index> {
        Ok(Index { levels: self.levels.execute_on(executor)?, names: self.names.clone() })
    }
}

/// The place of a position among rows, from their end if it is negative; `IndexError` if there is none.
fn place(position: i64, rows: usize, bound: usize) -> Result<usize> {
    let at = if position < 0 { position + rows as i64 } else { position };
    let at = usize::try_from(at).ok().filter(|at| *at < bound);
    at.ok_or_else(|| Error::Index(format!("index {position} is out of bounds for axis 0 with size {rows}")))
}
