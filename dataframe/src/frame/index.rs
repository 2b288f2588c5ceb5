//! The labels of rows as a value of its own: pandas' `Index`, with one level or several.

use super::labels::{is_of, no_row};
use super::{DataFrame, Frame, Level, Sort, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::table::Table;
use crate::value::{Column, Value};
use arrow::datatypes::DataType;
use std::sync::Arc;

/// The labels of a frame's rows, in their order; lazy like the frame.
///
/// ```
/// use tharsis_dataframe::{DataFrame, Index};
/// let frame = DataFrame::from_columns([("k", vec!["b", "a"].into())]).set_index(["k"]);
/// assert!(frame.index().is_unique()?);
/// let both = frame.index().union(&Index::from_values("k", vec!["c"]));
/// assert_eq!(both.to_list::<String>()?, ["a", "b", "c"].map(|label| Some(label.to_owned())));
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "it is lazy: nothing is computed until values are asked for"]
#[derive(Clone, Debug)]
pub struct Index {
    /// A column for each level, and an index of positions.
    pub(super) levels: DataFrame,
    pub(super) names: Vec<Option<String>>,
}

/// The label of a level's column.
fn column(level: usize) -> String {
    level.to_string()
}

impl DataFrame {
    /// The labels of the rows; their positions if there are no others.
    #[track_caller]
    pub fn index(&self) -> Index {
        let names = self.index_names().unwrap_or_else(|_| vec![None]);
        let levels = self.then(|frame| {
            let frame = frame.with_index()?;
            let levels = frame.index.iter().enumerate();
            let columns = levels.map(|(at, level)| (column(at), named(&level.column))).collect();
            Frame { index: Vec::new(), ..frame.clone() }.project(columns)
        });
        Index { levels, names }
    }
}

impl Series {
    /// The labels of the values; their positions if there are no others.
    #[track_caller]
    pub fn index(&self) -> Index {
        self.to_frame().index()
    }
}

impl Index {
    /// An index of one level with these labels.
    #[track_caller]
    pub fn from_values(name: &str, labels: impl Into<Column>) -> Index {
        let levels = DataFrame::from_columns([("0", labels.into())]);
        Index { levels, names: vec![Some(name.to_owned())] }
    }

    /// The values of a series as labels.
    #[track_caller]
    pub fn of_series(series: &Series) -> Index {
        let levels = series.rename("0").to_frame().reset_index(true);
        Index { levels, names: vec![series.name().map(str::to_owned)] }
    }

    /// An index of several levels, each a series over the same rows.
    #[track_caller]
    pub fn from_levels<'a>(levels: impl IntoIterator<Item = &'a Series>) -> Index {
        let mut made: Option<DataFrame> = None;
        let mut names = Vec::new();
        for (at, level) in levels.into_iter().enumerate() {
            names.push(level.name().map(str::to_owned));
            made = Some(match made {
                None => level.rename(&column(0)).to_frame(),
                Some(frame) => frame.assign(&column(at), level),
            });
        }
        let none = || DataFrame::new(Err(Error::Value("an index has at least one level".to_owned())));
        Index { levels: made.unwrap_or_else(none).reset_index(true), names }
    }

    /// The same names over other rows.
    pub(super) fn over(&self, levels: DataFrame) -> Index {
        Index { levels: levels.reset_index(true), names: self.names.clone() }
    }

    /// The only level, as a series of positions.
    #[track_caller]
    pub(super) fn single(&self) -> Series {
        match self.names.len() {
            1 => self.levels.col("0").named(self.names[0].clone()),
            levels => {
                let error = Error::NotImplemented(format!("this is made for one level, not for {levels}"));
                Series::new(Err(error), None)
            }
        }
    }

    /// Labels of all levels, as those of columns.
    pub(super) fn columns(&self) -> Vec<String> {
        (0..self.names.len()).map(column).collect()
    }

    /// The name of the first level, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.names.first().and_then(Option::as_deref)
    }

    /// The names of all levels.
    #[must_use]
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// The number of levels; always at least one.
    #[must_use]
    pub fn nlevels(&self) -> usize {
        self.names.len()
    }

    /// The same labels under another name.
    pub fn rename(&self, name: &str) -> Index {
        Index { names: vec![Some(name.to_owned()); self.names.len().min(1)], ..self.clone() }
    }

    /// The same labels with names for all levels.
    #[track_caller]
    pub fn set_names(&self, names: impl IntoIterator<Item = Option<String>>) -> Index {
        let names: Vec<Option<String>> = names.into_iter().collect();
        if names.len() == self.names.len() {
            Index { names, ..self.clone() }
        } else {
            let text = format!("{} names for {} levels", names.len(), self.names.len());
            let levels = self.levels.then(|_| Err(Error::Value(text)));
            Index { levels, ..self.clone() }
        }
    }

    /// One level, by its place, as an index of its own.
    #[track_caller]
    pub fn get_level_values(&self, level: usize) -> Index {
        let name = self.names.get(level).cloned().flatten();
        let levels = self.levels.select([column(level).as_str()]).rename([(column(level).as_str(), "0")]);
        Index { levels, names: vec![name] }
    }

    /// The type of the labels of the first level.
    ///
    /// # Errors
    /// The error that the index carries.
    pub fn dtype(&self) -> Result<DataType> {
        self.levels.col("0").dtype()
    }

    /// The kind of the labels: `integer`, `floating`, `string`, `boolean`, `datetime64`, `timedelta64`,
    /// `date`.
    ///
    /// # Errors
    /// The error that the index carries.
    pub fn inferred_type(&self) -> Result<&'static str> {
        if self.names.len() > 1 {
            return Ok("mixed");
        }
        Ok(match self.dtype()? {
            DataType::Boolean => "boolean",
            DataType::Timestamp(..) => "datetime64",
            DataType::Duration(_) => "timedelta64",
            DataType::Date32 | DataType::Date64 => "date",
            dtype if dtype.is_integer() => "integer",
            dtype if dtype.is_floating() => "floating",
            DataType::Dictionary(..) => "categorical",
            DataType::Null => "empty",
            _ => "string",
        })
    }

    /// Number of labels.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn len(&self) -> Result<usize> {
        self.levels.len()
    }

    /// Whether there is no label.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn is_empty(&self) -> Result<bool> {
        self.levels.is_empty()
    }

    /// The labels as a table, a column for each level.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn collect(&self) -> Result<Table> {
        self.levels.collect()
    }

    /// The labels of one level, each as a value.
    ///
    /// # Errors
    /// The error that the index carries, one of its run, or `NotImplemented` for several levels.
    pub fn values(&self) -> Result<Vec<Value>> {
        let table = self.single().rename("0").collect()?;
        (0..table.len()).map(|row| table.value(row, "0")).collect()
    }

    /// The labels of one level, `None` where they are missing.
    ///
    /// # Errors
    /// As [`Index::values`]; `TypeError` for labels of another type.
    pub fn to_list<T: crate::value::Native>(&self) -> Result<Vec<Option<T>>> {
        self.single().rename("0").values()
    }

    /// The labels as a series whose index they are too.
    #[track_caller]
    pub fn to_series(&self) -> Series {
        let series = self.single();
        let name = series.name().map(str::to_owned);
        let made = series.parts().and_then(|(frame, expr)| {
            let frame = frame.project(vec![("0".to_owned(), expr.clone())])?;
            let index = vec![Level { column: "0".to_owned(), name: name.clone() }];
            Ok((Arc::new(Frame { index, ..frame }), named("0")))
        });
        Series::new(made, name)
    }

    /// The levels as columns, with an index of positions. A level without a name is called by its place.
    #[track_caller]
    pub fn to_frame(&self) -> DataFrame {
        let columns = self.columns();
        let labels = self.names.iter().zip(&columns).map(|(name, column)| name.as_ref().unwrap_or(column));
        self.levels.rename(columns.iter().map(String::as_str).zip(labels.map(String::as_str)))
    }

    /// Whether each label stands once.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn is_unique(&self) -> Result<bool> {
        let columns = self.columns();
        let sizes = self.levels.groupby(&columns).dropna(false).size().col("size");
        Ok(sizes.max()?.as_i64().unwrap_or(0) <= 1)
    }

    /// Whether a label stands several times.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn has_duplicates(&self) -> Result<bool> {
        Ok(!self.is_unique()?)
    }

    /// Whether a label is missing.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn hasnans(&self) -> Result<bool> {
        Ok(self.single().isna().any()?.as_bool() == Some(true))
    }

    /// Whether no label is less than the one before, and none is missing.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn is_monotonic_increasing(&self) -> Result<bool> {
        self.is_monotonic(true)
    }

    /// Whether no label is greater than the one before, and none is missing.
    ///
    /// # Errors
    /// The error that the index carries, or one of its run.
    pub fn is_monotonic_decreasing(&self) -> Result<bool> {
        self.is_monotonic(false)
    }

    fn is_monotonic(&self, increasing: bool) -> Result<bool> {
        let mut wrong: Option<Series> = None;
        for at in self.columns().iter().rev() {
            let level = self.levels.col(at);
            let before = level.shift(1);
            let here = if increasing { before.gt(&level) } else { before.lt(&level) };
            let here = here | level.isna();
            wrong = Some(match wrong {
                None => here,
                Some(deeper) => here | (before.eq(&level) & deeper),
            });
        }
        let wrong = wrong.map(|wrong| wrong.any()).transpose()?;
        Ok(wrong.is_none_or(|wrong| wrong.as_bool() != Some(true)))
    }

    /// The position of a label; `KeyError` if it is not there, `ValueError` if it stands several times.
    ///
    /// # Errors
    /// The error that the index carries, one of its run, `KeyError` or `ValueError`.
    pub fn get_loc(&self, label: impl Into<Value>) -> Result<usize> {
        let label = label.into();
        let found = self.positions_of(&label)?;
        match found[..] {
            [] => Err(no_row(&[label])),
            [place] => Ok(place),
            _ => Err(Error::Value(format!("{} labels are {label}", found.len()))),
        }
    }

    /// The positions of a label.
    fn positions_of(&self, label: &Value) -> Result<Vec<usize>> {
        let level = self.single();
        if !is_of(label, &level.dtype()?) {
            return Ok(Vec::new());
        }
        let is = if label.is_missing() { level.isna() } else { level.eq(label.clone()) };
        let places = self.levels.filter(&is).index().to_list::<i64>()?;
        Ok(places.into_iter().flatten().map(|place| place as usize).collect())
    }

    /// Those of these labels that the index lacks.
    pub(super) fn lacking(&self, labels: &[Value]) -> Result<Vec<Value>> {
        let dtype = self.dtype()?;
        let level = self.single();
        let known = self.levels.filter(&level.isin(labels.iter().cloned())).drop_duplicates();
        let known = known.col("0").rename("0").collect()?;
        let known = (0..known.len()).map(|row| known.value(row, "0")).collect::<Result<Vec<_>>>()?;
        let is_known = |label: &&Value| {
            // A number between two whole labels is none of them.
            let held = is_of(label, &dtype).then(|| label.0.cast_to(&dtype).ok()).flatten();
            held.is_some_and(|label| known.iter().any(|known| known.0 == label))
        };
        Ok(labels.iter().filter(|label| !is_known(label)).cloned().collect())
    }

    /// Whether each label is one of these.
    #[track_caller]
    pub fn isin<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> Series {
        self.single().isin(labels).named(None)
    }

    /// The labels for which a condition over positions holds.
    #[track_caller]
    pub fn filter(&self, condition: &Series) -> Index {
        self.over(self.levels.filter_by_position(condition))
    }

    /// Whether each label is missing.
    #[track_caller]
    pub fn isna(&self) -> Series {
        self.single().isna().named(None)
    }

    /// Whether each label is there.
    #[track_caller]
    pub fn notna(&self) -> Series {
        self.single().notna().named(None)
    }

    /// The labels that are there.
    #[track_caller]
    pub fn dropna(&self) -> Index {
        self.over(self.levels.dropna())
    }

    /// The labels, and a value where they are missing.
    #[track_caller]
    pub fn fillna(&self, value: impl Into<Value>) -> Index {
        self.over(self.levels.fillna(value))
    }

    /// The labels with another type.
    #[track_caller]
    pub fn astype(&self, dtype: DataType) -> Index {
        self.changed(|label| label.astype(dtype))
    }

    /// The second value of each pair for the first; missing where no pair has the label.
    #[track_caller]
    pub fn map<K: Into<Value>, V: Into<Value>>(&self, pairs: impl IntoIterator<Item = (K, V)>) -> Index {
        self.changed(|label| label.map(pairs))
    }

    #[track_caller]
    pub(super) fn changed(&self, step: impl FnOnce(&Series) -> Series) -> Index {
        let changed = step(&self.single()).rename("0").to_frame();
        Index { levels: changed, names: self.names.clone() }
    }

    /// The labels without these; `KeyError` if one is not there, which is looked for at once.
    #[track_caller]
    pub fn drop<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> Index {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        let lacking = self.lacking(&labels);
        let kept = self.levels.filter(&!&self.isin(labels));
        self.over(kept.then(|frame| match lacking? {
            lacking if lacking.is_empty() => Ok(frame.clone()),
            lacking => Err(no_row(&lacking)),
        }))
    }

    /// The labels from small to large, or as the options say.
    #[track_caller]
    pub fn sort_values(&self, sort: Sort) -> Index {
        let columns = self.columns();
        self.over(self.levels.sort_values(columns.iter().map(String::as_str), sort))
    }

    /// Whether both have equal labels in the same order.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn equals(&self, other: &Index) -> Result<bool> {
        if self.names.len() != other.names.len() {
            return Ok(false);
        }
        Ok(self.collect()?.batch().columns() == other.collect()?.batch().columns())
    }
}
