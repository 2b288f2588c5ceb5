//! Indices put together as sets, and aggregates of labels.

use super::{Aggregate, DataFrame, Index, JoinKind, Merge, Sort};
use crate::error::{Error, Result};
use crate::value::Value;

/// The column that counts the rows of each label.
const NTH: &str = "__tharsis_nth";

impl Index {
    /// The labels of this index, then those of another one.
    #[track_caller]
    pub fn append(&self, other: &Index) -> Index {
        self.both(other, |own, others| DataFrame::concat([own, others], true))
    }

    /// The labels that either index has, sorted: each as often as in the index that has it most often. One of
    /// both as it is if they are equal or the other one is empty, which is looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::Index;
    /// let (own, other) = (Index::from_values("k", vec![3, 3, 1]), Index::from_values("k", vec![3, 5]));
    /// assert_eq!(own.union(&other).to_list::<i64>()?, [1, 3, 3, 5].map(Some));
    /// let none = Index::from_values("k", Vec::<i64>::new());
    /// assert_eq!(own.union(&none).to_list::<i64>()?, [3, 3, 1].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn union(&self, other: &Index) -> Index {
        let columns = self.columns();
        // The second row of a label meets the second one of the other index.
        let counted =
            |levels: &DataFrame| levels.assign(NTH, levels.groupby(&columns).dropna(false).cumcount());
        self.both(other, |own, others| {
            match self.equals(other).and_then(|equal| Ok((equal || other.is_empty()?, self.is_empty()?))) {
                Ok((true, _)) => return own.clone(),
                Ok((false, true)) => return others.clone(),
                Ok((false, false)) => {}
                Err(error) => return DataFrame::new(Err(error)),
            }
            let all = DataFrame::concat([&counted(own), &counted(others)], true).drop_duplicates();
            let columns = columns.iter().map(String::as_str);
            all.sort_values(columns.clone(), Sort::ascending()).select(columns)
        })
    }

    /// The labels that both have, each once, in the order of this one.
    #[track_caller]
    pub fn intersection(&self, other: &Index) -> Index {
        self.both(other, |own, others| own.merge(others, self.on_all().how(JoinKind::Semi))).unique()
    }

    /// The labels that the other one lacks, each once, sorted.
    #[track_caller]
    pub fn difference(&self, other: &Index) -> Index {
        let left = self.both(other, |own, others| own.merge(others, self.on_all().how(JoinKind::Anti)));
        Index { names: self.names.clone(), ..left.unique().sort_values(Sort::ascending()) }
    }

    /// The labels that exactly one of both has, each once, sorted.
    #[track_caller]
    pub fn symmetric_difference(&self, other: &Index) -> Index {
        self.difference(other).union(&other.difference(self))
    }

    pub(super) fn on_all(&self) -> Merge {
        let columns = self.columns();
        Merge::on(columns.iter().map(String::as_str))
    }

    /// An index made of this one and another one; a level keeps a name that it has in both.
    #[track_caller]
    pub(super) fn both(
        &self,
        other: &Index,
        step: impl FnOnce(&DataFrame, &DataFrame) -> DataFrame,
    ) -> Index {
        let levels = if self.names.len() == other.names.len() {
            step(&self.levels, &other.levels)
        } else {
            let text = "indices with different numbers of levels";
            DataFrame::new(Err(Error::Value(text.to_owned())))
        };
        let names = self.names.iter().zip(&other.names);
        let names = names.map(|(own, other)| own.clone().filter(|_| own == other)).collect();
        Index { levels: levels.reset_index(true), names }
    }

    /// The number of rows with each label, the most frequent first, with the labels as index.
    #[track_caller]
    pub fn value_counts(&self) -> DataFrame {
        self.single().value_counts()
    }

    /// One aggregate of the labels.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn agg(&self, aggregate: Aggregate) -> Result<Value> {
        self.single().agg(aggregate)
    }

    /// The smallest label that is there.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn min(&self) -> Result<Value> {
        self.agg(Aggregate::Min)
    }

    /// The largest label that is there.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn max(&self) -> Result<Value> {
        self.agg(Aggregate::Max)
    }

    /// The number of distinct labels that are there.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn nunique(&self) -> Result<usize> {
        Ok(self.agg(Aggregate::Nunique)?.as_i64().unwrap_or(0) as usize)
    }

    /// Whether any label is true, or not zero.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn any(&self) -> Result<bool> {
        Ok(self.agg(Aggregate::Any)?.as_bool() == Some(true))
    }

    /// Whether all labels are true, or not zero.
    ///
    /// # Errors
    /// As [`Series::agg`](crate::Series::agg).
    pub fn all(&self) -> Result<bool> {
        Ok(self.agg(Aggregate::All)?.as_bool() == Some(true))
    }

    /// The bytes of the labels in memory. It runs the plan.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn memory_usage(&self) -> Result<usize> {
        Ok(self.collect()?.batch().columns().iter().map(|array| array.get_array_memory_size()).sum())
    }
}
