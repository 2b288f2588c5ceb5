//! Rows of a series: chosen, sorted, numbered, as those of a frame with one column.

use super::Series;
use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame, Index, Reduce, Sort};
use crate::value::Value;

impl Series {
    /// A series changed as a frame of one column, which keeps its name.
    #[doc(hidden)]
    #[track_caller]
    pub fn through(&self, step: impl FnOnce(&DataFrame, &str) -> DataFrame) -> Series {
        let label = self.label();
        step(&self.to_frame(), &label).col(&label).named(self.name().map(str::to_owned))
    }
}

macro_rules! through {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*);)*) => {
        impl Series {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self $(, $arg: $type)*) -> Series {
                self.through(|frame, _| frame.$name($($arg),*))
            }
            )*
        }
    };
}

through!(
    /// The first values, in their order.
    head(rows: usize);
    /// The last values, in their order.
    tail(rows: usize);
    /// The values at these positions: from the first to before the second.
    slice(from: usize, to: usize);
    /// The value at a position, as [`DataFrame::iloc`].
    iloc(position: i64);
    /// The values at these positions, as [`DataFrame::iloc_each`].
    iloc_each(positions: impl IntoIterator<Item = i64>);
    /// Every so many values, as [`DataFrame::iloc_step`].
    iloc_step(from: Option<i64>, to: Option<i64>, step: i64);
    /// The values with a label, as [`DataFrame::loc`].
    loc(label: impl Into<Value>);
    /// The values with labels in the first levels of the index, as [`DataFrame::loc_levels`].
    loc_levels(labels: impl IntoIterator<Item = Value>);
    /// The values from one label to another, as [`DataFrame::loc_between`].
    loc_between(from: Option<Value>, to: Option<Value>);
    /// The values with a label in one level of the index, as [`DataFrame::xs`].
    xs(label: impl Into<Value>, level: &str);
    /// The values whose labels lie between two, both included, in an index that grows.
    truncate(before: Option<Value>, after: Option<Value>);
    /// The values by the labels of the index.
    sort_index(sort: Sort);
    /// The first of equal values, with its label.
    drop_duplicates();
    /// Some values in an order that looks random: the same ones for the same seed.
    sample(rows: usize, seed: u64);
    /// The values between two times of the day, as [`DataFrame::between_time`].
    between_time(start: &str, end: &str);
    /// The values at a time of the day, as [`DataFrame::at_time`].
    at_time(time: &str);
    /// The values with names for the levels of the index, as [`DataFrame::rename_axis`].
    rename_axis(names: impl IntoIterator<Item = Option<String>>);
    /// The values with two levels of the index in each other's place.
    swaplevel(first: usize, second: usize);
    /// The values with the levels of the index in this order, by place.
    reorder_levels(order: impl IntoIterator<Item = usize>);
    /// The values without one level of the index, by place.
    droplevel(level: usize);
);

macro_rules! through_labels {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Series {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> Series {
                self.through(|frame, _| frame.$name(labels))
            }
            )*
        }
    };
}

through_labels!(
    /// The values with each of these labels, as [`DataFrame::loc_each`].
    loc_each;
    /// The values with these labels in this order, as [`DataFrame::reindex`].
    reindex;
    /// The values without those that have one of these labels, as [`DataFrame::drop_rows`].
    drop_rows;
    /// As [`Series::drop_rows`], but labels that no row has are passed over.
    drop_rows_if_there;
    /// The same values with these labels, by position, as [`DataFrame::set_axis`].
    set_axis;
);

impl Series {
    /// The values in their order, equal ones in that of their rows.
    #[track_caller]
    pub fn sort_values(&self, sort: Sort) -> Series {
        self.through(|frame, label| frame.sort_values([label], sort))
    }

    /// A value for each element of lists, with the label of the list's row.
    #[track_caller]
    pub fn explode(&self) -> Series {
        self.through(|frame, label| frame.explode(label))
    }

    /// As [`Series::reindex`], with a value for labels that no row has.
    #[track_caller]
    pub fn reindex_filled<T: Into<Value>>(
        &self,
        labels: impl IntoIterator<Item = T>,
        fill: impl Into<Value>,
    ) -> Series {
        self.through(|frame, _| frame.reindex_filled(labels, fill))
    }

    /// The values with the labels of another series, in its order.
    #[track_caller]
    pub fn reindex_like(&self, other: &Series) -> Series {
        let others = other.rename(&self.label()).to_frame();
        self.through(|frame, _| frame.reindex_like(&others))
    }

    /// The values with an index of positions; the former labels are left out.
    #[track_caller]
    pub fn drop_index(&self) -> Series {
        self.through(|frame, _| frame.reset_index(true))
    }

    /// A frame of the labels and the values, with an index of positions.
    #[track_caller]
    pub fn reset_index(&self) -> DataFrame {
        self.to_frame().reset_index(false)
    }

    /// The last level of the index as columns.
    #[track_caller]
    pub fn unstack(&self) -> DataFrame {
        self.to_frame().unstack()
    }

    /// Groups of values with equal keys: series, or names of levels of the index.
    #[track_caller]
    pub fn groupby<K: Into<crate::frame::GroupKey>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> crate::frame::GroupBy {
        self.to_frame().groupby(keys).select([self.label().as_str()])
    }

    /// The value of the row with a label, as [`DataFrame::at`].
    ///
    /// # Errors
    /// As [`DataFrame::at`].
    pub fn at(&self, label: impl Into<Value>) -> Result<Value> {
        self.to_frame().at(label, &self.label())
    }

    /// The value at a position, as [`DataFrame::iat`].
    ///
    /// # Errors
    /// As [`DataFrame::iat`].
    pub fn iat(&self, position: i64) -> Result<Value> {
        self.to_frame().iat(position, 0)
    }

    /// The only value; `ValueError` if there is another number of them.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `ValueError`.
    pub fn item(&self) -> Result<Value> {
        let table = self.head(2).rename("0").collect()?;
        match table.len() {
            1 => table.value(0, "0"),
            _ => Err(Error::Value("can only convert an array of size 1 to a Python scalar".to_owned())),
        }
    }

    /// Each label with its value. It runs the plan; the index must have one level.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `NotImplemented` for several levels.
    pub fn items(&self) -> Result<Vec<(Value, Value)>> {
        let table = self.rename("0").to_frame().collect()?;
        let pairs = table.rows().map(|row| {
            let mut labels = row.labels()?;
            match (labels.pop(), labels.is_empty()) {
                (Some(label), true) => Ok((label, row.get("0")?)),
                _ => Err(Error::NotImplemented("labels of several levels as one value".to_owned())),
            }
        });
        pairs.collect()
    }

    /// Whether no value is less than the one before, and none is missing.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn is_monotonic_increasing(&self) -> Result<bool> {
        Index::of_series(self).is_monotonic_increasing()
    }

    /// Whether no value is greater than the one before, and none is missing.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn is_monotonic_decreasing(&self) -> Result<bool> {
        Index::of_series(self).is_monotonic_decreasing()
    }

    /// Whether each value stands once.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn is_unique(&self) -> Result<bool> {
        Index::of_series(self).is_unique()
    }

    /// Whether a value is missing.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn hasnans(&self) -> Result<bool> {
        Ok(self.isna().any()?.as_bool() == Some(true))
    }

    /// The position of the smallest value; `ValueError` without values.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `ValueError`.
    pub fn argmin(&self) -> Result<usize> {
        position(&self.drop_index().idxmin()?)
    }

    /// The position of the largest value; `ValueError` without values.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `ValueError`.
    pub fn argmax(&self) -> Result<usize> {
        position(&self.drop_index().idxmax()?)
    }

    /// The positions that sort the values; missing ones come last.
    #[track_caller]
    pub fn argsort(&self) -> Series {
        let sorted = self.drop_index().sort_values(Sort::ascending());
        let places = sorted.index().to_series().drop_index();
        self.through(|frame, label| {
            frame.then(|frame| {
                let (by_place, index) = frame.by_position()?;
                let made = DataFrame::new(Ok(by_place)).assign(label, &places);
                Ok(Frame { index, columns: frame.columns.clone(), ..(**made.frame()?).clone() })
            })
        })
    }

    /// The position at which a value would keep sorted values sorted: the first one, or the one behind
    /// equals.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn searchsorted(&self, value: impl Into<Value>, behind: bool) -> Result<usize> {
        let value = value.into();
        let less = if behind { self.le(value) } else { self.lt(value) };
        Ok(less.sum()?.as_i64().unwrap_or(0) as usize)
    }

    /// The label of the first value that is there; missing if there is none.
    ///
    /// # Errors
    /// As [`DataFrame::first_valid_index`].
    pub fn first_valid_index(&self) -> Result<Value> {
        self.to_frame().first_valid_index()
    }

    /// The label of the last value that is there; missing if there is none.
    ///
    /// # Errors
    /// As [`DataFrame::first_valid_index`].
    pub fn last_valid_index(&self) -> Result<Value> {
        self.to_frame().last_valid_index()
    }

    /// The last value that is there at a label or before it, in an index that grows; missing if there is
    /// none.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `ValueError` for an index that does not grow.
    pub fn asof(&self, label: impl Into<Value>) -> Result<Value> {
        let before = self.dropna().truncate(None, Some(label.into())).tail(1).rename("0").collect()?;
        if before.is_empty() { Ok(Value::missing()) } else { before.value(0, "0") }
    }

    /// Count, mean, deviation, smallest and largest value and quartiles of numbers, as
    /// [`DataFrame::describe`].
    #[track_caller]
    pub fn describe(&self) -> DataFrame {
        self.to_frame().describe()
    }

    /// Several aggregates of the values: a row for each, with its name as index.
    #[track_caller]
    pub fn agg_rows<R: Into<Reduce>>(&self, aggregates: impl IntoIterator<Item = R>) -> Series {
        self.through(|frame, _| frame.agg_rows(aggregates))
    }

    /// Each value this many times, with its label.
    #[track_caller]
    pub fn repeat(&self, times: usize) -> Series {
        self.through(|frame, label| frame.repeated(label, times))
    }

    /// The quotient rounded down and the remainder, as Python's `divmod`.
    #[track_caller]
    pub fn divmod(&self, other: impl Into<super::Operand>) -> (Series, Series) {
        let other = other.into();
        (self.floordiv(other.clone()), self % other)
    }

    /// Whether another series has equal values and labels, in the same order. It runs both plans.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn equals(&self, other: &Series) -> Result<bool> {
        self.rename("0").to_frame().equals(&other.rename("0").to_frame())
    }

    /// The bytes of the values in memory, without those of the labels. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn memory_usage(&self) -> Result<usize> {
        Ok(self.rename("0").collect()?.array("0")?.get_array_memory_size())
    }

    /// The same values with a text before each label, which becomes a text.
    #[track_caller]
    pub fn add_prefix(&self, prefix: &str) -> Series {
        self.through(|frame, _| frame.prefixed_rows(prefix, ""))
    }

    /// The same values with a text behind each label, which becomes a text.
    #[track_caller]
    pub fn add_suffix(&self, suffix: &str) -> Series {
        self.through(|frame, _| frame.prefixed_rows("", suffix))
    }
}

fn position(label: &Value) -> Result<usize> {
    label
        .as_i64()
        .and_then(|position| usize::try_from(position).ok())
        .ok_or_else(|| Error::Value("attempt to get argmin or argmax of an empty sequence".to_owned()))
}
