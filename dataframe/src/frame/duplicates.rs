//! Rows that are equal in some columns: found, or all but one of them dropped.

use super::clean::named_column;
use super::{DataFrame, Frame, Index, OrderKey, named};
use crate::error::Result;
use crate::frame::series::Series;
use crate::stage::row_number::Numbering;
use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::{count, first_value, last_value, max, min};
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// The row that stays of rows that are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first one.
    #[default]
    First,
    /// The last one.
    Last,
    /// None of them: only rows without an equal one stay. pandas calls it `False`.
    Neither,
}

/// The hidden column of the number of equal rows.
const EQUALS: &str = "__tharsis_equals";

impl Frame {
    /// One of the rows that are equal in these columns, or none of them, in their order.
    fn one_of_each(&self, labels: &[&str], keep: Keep) -> Result<Frame> {
        if labels.is_empty() {
            return Ok(self.clone());
        }
        let frame = self.with_order()?;
        let order = frame.sort_exprs();
        let is_key = |column: &String| labels.contains(&column.as_str());
        let hidden = frame.key_columns().into_iter().filter(|column| !frame.columns.contains(column));
        let columns: Vec<String> = frame.columns.iter().cloned().chain(hidden).collect();
        let keys: Vec<Expr> = columns.iter().filter(|column| is_key(column)).map(|key| named(key)).collect();
        let internal = |column: &String| format!("__tharsis_agg_{column}");
        let kept = |column: &String| match keep {
            Keep::First | Keep::Neither => first_value(named(column), order.clone()),
            Keep::Last => last_value(named(column), order.clone()),
        };
        let others = columns.iter().filter(|column| !is_key(column));
        let mut exprs: Vec<Expr> = others.map(|column| kept(column).alias(internal(column))).collect();
        let alone = (keep == Keep::Neither).then(|| count(lit(1_i64)).alias(EQUALS));
        exprs.extend(alone.clone());
        let labelled = columns.iter().map(|column| {
            if is_key(column) { named(column) } else { named(&internal(column)).alias(column) }
        });
        let mut plan = frame.builder().aggregate(keys, exprs)?;
        if alone.is_some() {
            plan = plan.filter(named(EQUALS).eq(lit(1_i64)))?;
        }
        let plan = plan.project(labelled.collect::<Vec<_>>())?.build()?;
        Ok(Frame { plan, ..frame })
    }

    /// Whether each row is equal in these columns to the one that stays, but is not that one.
    fn others_of_each(&self, labels: &[&str], keep: Keep) -> Result<(Frame, Expr)> {
        // The same numbers in both uses: planning moves no filter below exact ones.
        let (frame, row) = self.numbered("row", Numbering::Exact)?;
        let frame = Frame { order: vec![OrderKey::growing(&row)], ..frame };
        let stays = frame.fresh("stays");
        let keys: Vec<Expr> = labels.iter().map(|label| named(label)).collect();
        let kept = match keep {
            Keep::First | Keep::Neither => min(named(&row)),
            Keep::Last => max(named(&row)),
        };
        let exprs = vec![kept.alias(&stays), count(lit(1_i64)).alias(EQUALS)];
        let mut kept = frame.builder().aggregate(keys, exprs)?;
        if keep == Keep::Neither {
            kept = kept.filter(named(EQUALS).eq(lit(1_i64)))?;
        }
        let kept = kept.project(vec![named(&stays)])?.build()?;
        let on = (vec![named_column(&row)], vec![named_column(&stays)]);
        let plan = frame.builder().join(kept, JoinType::Left, on, None)?.build()?;
        Ok((Frame { plan, ..frame }, named(&stays).is_null()))
    }
}

impl DataFrame {
    /// The first of the rows that are equal in all columns.
    #[track_caller]
    pub fn drop_duplicates(&self) -> DataFrame {
        let labels = self.columns().unwrap_or_default();
        self.drop_duplicates_in(labels.iter().map(String::as_str))
    }

    /// The first of the rows that are equal in these columns.
    #[track_caller]
    pub fn drop_duplicates_in<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.drop_duplicates_but(labels, Keep::First)
    }

    /// The rows without those that are equal in these columns to another one, but for the one that stays.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Keep};
    /// let frame = DataFrame::from_columns([("k", vec![1, 2, 1].into()), ("n", vec![3, 4, 5].into())]);
    /// let last = frame.drop_duplicates_but(["k"], Keep::Last);
    /// assert_eq!(last.col("n").values::<i64>()?, [Some(4), Some(5)]);
    /// let alone = frame.drop_duplicates_but(["k"], Keep::Neither);
    /// assert_eq!(alone.col("n").values::<i64>()?, [Some(4)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn drop_duplicates_but<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        keep: Keep,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            frame.with_index()?.one_of_each(&labels, keep)
        })
    }

    /// Whether each row equals an earlier one in all columns.
    #[track_caller]
    pub fn duplicated(&self) -> Series {
        let labels = self.columns().unwrap_or_default();
        self.duplicated_in(labels.iter().map(String::as_str))
    }

    /// Whether each row equals an earlier one in these columns.
    #[track_caller]
    pub fn duplicated_in<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> Series {
        self.duplicated_but(labels, Keep::First)
    }

    /// Whether [`DataFrame::drop_duplicates_but`] drops each row.
    ///
    /// ```
    /// use tharsis_dataframe::{Keep, Series};
    /// let n = Series::from_values("n", vec![1, 2, 1]);
    /// assert_eq!(n.duplicated_but(Keep::Last).values::<bool>()?, [true, false, false].map(Some));
    /// assert_eq!(n.duplicated_but(Keep::Neither).values::<bool>()?, [true, false, true].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn duplicated_but<'a>(&self, labels: impl IntoIterator<Item = &'a str>, keep: Keep) -> Series {
        let labels: Vec<&str> = labels.into_iter().collect();
        let made = self.frame().and_then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            let (frame, dropped) = frame.others_of_each(&labels, keep)?;
            Ok((Arc::new(frame), dropped))
        });
        Series::new(made, None)
    }
}

impl Series {
    /// The values without those that are equal to another one, as [`DataFrame::drop_duplicates_but`].
    #[track_caller]
    pub fn drop_duplicates_but(&self, keep: Keep) -> Series {
        self.through(|frame, label| frame.drop_duplicates_but([label], keep))
    }

    /// Whether each value equals an earlier one.
    #[track_caller]
    pub fn duplicated(&self) -> Series {
        self.duplicated_but(Keep::First)
    }

    /// Whether [`Series::drop_duplicates_but`] drops each value.
    #[track_caller]
    pub fn duplicated_but(&self, keep: Keep) -> Series {
        let label = self.label();
        self.to_frame().duplicated_but([label.as_str()], keep).named(self.name().map(str::to_owned))
    }

    /// The distinct values, in the order of their first rows.
    #[track_caller]
    pub fn unique(&self) -> Series {
        let label = self.label();
        self.to_frame().reset_index(true).drop_duplicates().reset_index(true).col(&label)
    }
}

impl Index {
    /// The distinct labels, in the order of their first rows.
    #[track_caller]
    pub fn unique(&self) -> Index {
        self.drop_duplicates_but(Keep::First)
    }

    /// The distinct labels, as [`Index::unique`].
    #[track_caller]
    pub fn drop_duplicates(&self) -> Index {
        self.unique()
    }

    /// The labels without those that are equal to another one, as [`DataFrame::drop_duplicates_but`].
    #[track_caller]
    pub fn drop_duplicates_but(&self, keep: Keep) -> Index {
        let columns = self.columns();
        self.over(self.levels.drop_duplicates_but(columns.iter().map(String::as_str), keep))
    }

    /// Whether each label equals an earlier one.
    #[track_caller]
    pub fn duplicated(&self) -> Series {
        self.duplicated_but(Keep::First)
    }

    /// Whether [`Index::drop_duplicates_but`] drops each label.
    #[track_caller]
    pub fn duplicated_but(&self, keep: Keep) -> Series {
        let columns = self.columns();
        self.levels.duplicated_but(columns.iter().map(String::as_str), keep)
    }
}
