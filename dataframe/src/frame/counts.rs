//! Counts of values, and the most frequent ones.

use super::aggregate::Aggregate;
use super::group::{GroupBy, Key};
use super::window::{Over, Step};
use super::{DataFrame, Frame, Level, OrderKey, Sort, named};
use crate::error::Result;
use crate::frame::series::Series;
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr_fn::cast;

/// Options of counts of values: as parts of the whole, in which order, with missing values or without.
///
/// ```
/// use tharsis_dataframe::{Counts, Series};
/// let city = Series::from_values("city", vec!["Oslo", "Rome", "Oslo"]);
/// let parts = city.value_counts_with(Counts::default().normalize());
/// assert_eq!(parts.columns()?, ["proportion"]);
/// assert_eq!(parts.index().to_list::<String>()?, [Some("Oslo".to_owned()), Some("Rome".to_owned())]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    normalize: bool,
    sort: bool,
    ascending: bool,
    dropna: bool,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { normalize: false, sort: true, ascending: false, dropna: true }
    }
}

impl Counts {
    /// Counts as parts of their sum, in a column `proportion`.
    pub fn normalize(self) -> Counts {
        Counts { normalize: true, ..self }
    }

    /// Counts in the order in which the values come, if false.
    pub fn sort(self, sort: bool) -> Counts {
        Counts { sort, ..self }
    }

    /// The smallest count first.
    pub fn ascending(self) -> Counts {
        Counts { ascending: true, ..self }
    }

    /// Missing values are counted too, if false.
    pub fn dropna(self, dropna: bool) -> Counts {
        Counts { dropna, ..self }
    }

    /// The label of the column of counts.
    pub(crate) fn label(self) -> &'static str {
        if self.normalize { "proportion" } else { "count" }
    }
}

impl Series {
    /// The number of rows with each value, the most frequent first, with the values as index; among equals,
    /// the value that came first, and of categories the smallest one.
    #[track_caller]
    pub fn value_counts(&self) -> DataFrame {
        self.value_counts_with(Counts::default())
    }

    /// As [`Series::value_counts`], with options.
    #[track_caller]
    pub fn value_counts_with(&self, counts: Counts) -> DataFrame {
        let label = self.label();
        let counted = self.to_frame().value_counts_with([label.as_str()], counts);
        if !matches!(self.dtype(), Ok(DataType::Dictionary(..))) {
            return counted;
        }
        counted.then(|frame| {
            let mut order = frame.order.clone();
            let by_value = frame.index.iter().map(|level| OrderKey::growing(&level.column));
            let behind_counts = usize::from(counts.sort).min(order.len());
            order.splice(behind_counts..behind_counts, by_value);
            Ok(Frame { order, ..frame.clone() })
        })
    }

    /// The most frequent values, from the smallest to the largest.
    #[track_caller]
    pub fn mode(&self) -> Series {
        self.mode_with(true)
    }

    /// As [`Series::mode`]; a missing value is one of the values if they are not dropped.
    #[track_caller]
    pub fn mode_with(&self, dropna: bool) -> Series {
        let label = self.label();
        // A label of its own, whatever the series is called.
        let count = if label == "size" { "count" } else { "size" };
        let counted = self.to_frame().groupby([label.as_str()]).dropna(dropna).size().then(|frame| {
            let values = frame.index.iter().map(|level| (label.clone(), named(&level.column)));
            let frame = frame.project(values.chain([(count.to_owned(), named("size"))]).collect())?;
            Ok(Frame { index: Vec::new(), ..frame })
        });
        let largest = counted.col(count).window_step(&Step::Whole(Aggregate::Max));
        let mut found = counted.filter(&counted.col(count).eq(largest));
        // As pandas sorts them: a missing time is less than all others, and so is what has no category.
        let is_first = |dtype: DataType| {
            matches!(dtype, DataType::Timestamp(..) | DataType::Duration(_) | DataType::Dictionary(..))
        };
        if !dropna && self.dtype().is_ok_and(is_first) {
            found = found.sort_values([label.as_str()], Sort::ascending().missing_first());
        }
        found.reset_index(true).col(&label).named(self.name().map(str::to_owned))
    }
}

impl DataFrame {
    /// The most frequent values of each column, from the smallest to the largest; columns with fewer of them
    /// have missing values at the end.
    #[track_caller]
    pub fn mode(&self) -> DataFrame {
        self.mode_with(true)
    }

    /// As [`DataFrame::mode`]; a missing value is one of the values if they are not dropped.
    #[track_caller]
    pub fn mode_with(&self, dropna: bool) -> DataFrame {
        let labels = self.columns().unwrap_or_default();
        let mode = |label: &String| self.col(label).mode_with(dropna).to_frame();
        let modes: Vec<DataFrame> = labels.iter().map(mode).collect();
        if modes.is_empty() {
            self.clone()
        } else {
            DataFrame::concat_columns(&modes, super::JoinKind::Outer).reset_index(true)
        }
    }

    /// The number of rows with each combination of values in these columns, the most frequent first, with the
    /// values as index and the numbers in a column `count`; among equals, the combination that came first.
    /// Rows with a missing value are left out.
    #[track_caller]
    pub fn value_counts<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.value_counts_with(labels, Counts::default())
    }

    /// As [`DataFrame::value_counts`], with options.
    #[track_caller]
    pub fn value_counts_with<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        counts: Counts,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            let keys =
                labels.iter().map(|label| Key { label: (*label).to_owned(), column: (*label).to_owned() });
            counted(frame.clone(), &[], keys.collect(), &GroupBy::of_keys(self.clone(), Vec::new()), counts)
        })
    }
}

impl GroupBy {
    /// The number of rows of each group with each value that is there of the chosen columns, or of all but
    /// the keys: the most frequent first in each group. Keys and values are the index, the numbers a column
    /// `count`.
    #[track_caller]
    pub fn value_counts(&self) -> DataFrame {
        self.value_counts_with(Counts::default())
    }

    /// As [`GroupBy::value_counts`], with options. Proportions are parts of each group.
    #[track_caller]
    pub fn value_counts_with(&self, counts: Counts) -> DataFrame {
        DataFrame::new(self.columns_but_keys().and_then(|columns| {
            let (frame, keys) = self.parts()?;
            let is_key = |column: &String| keys.iter().any(|key| key.column == *column);
            let values = columns.into_iter().filter(|column| !is_key(column));
            let values = values.map(|column| Key { label: column.clone(), column }).collect();
            let found = counted((**frame).clone(), keys, values, self, counts)?;
            if self.as_index { Ok(found) } else { found.index_as_columns() }
        }))
    }
}

/// The counts of combinations of keys and values, those of each key together if groups are sorted.
fn counted(
    mut frame: Frame,
    keys: &[Key],
    values: Vec<Key>,
    groups: &GroupBy,
    counts: Counts,
) -> Result<Frame> {
    let dropped = keys.iter().filter(|_| groups.dropna).chain(values.iter().filter(|_| counts.dropna));
    for key in dropped {
        frame.plan = frame.builder().filter(named(&key.column).is_not_null())?.build()?;
    }
    let all = keys.iter().cloned().chain(values).collect();
    let sizes = GroupBy::of_keys(DataFrame::new(Ok(frame)), all).dropna(false).sort(false).size();
    let sizes = sizes.rename([("size", "count")]);
    let sizes = sizes.frame()?;
    let of_key = |level: &Level| OrderKey::growing(&level.column);
    let by_key = sizes.index.iter().take(keys.len()).map(of_key).filter(|_| groups.sort);
    let by_count = OrderKey { ascending: counts.ascending, ..OrderKey::growing("count") };
    let by_count = Some(by_count).filter(|_| counts.sort);
    let order = by_key.chain(by_count).chain(sizes.order.iter().cloned()).collect();
    let sorted = Frame { order, ..(**sizes).clone() };
    if !counts.normalize {
        return Ok(sorted);
    }
    let over: Vec<Expr> = sorted.index.iter().take(keys.len()).map(|level| named(&level.column)).collect();
    let total = Over { keys: over }.step(&Step::Whole(Aggregate::Sum), named("count"), &DataType::Int64)?;
    let part = cast(named("count"), DataType::Float64) / cast(total, DataType::Float64);
    sorted.project(vec![(counts.label().to_owned(), part)])
}
