//! Columns as levels of the index, and levels of the index as columns.

use super::{DataFrame, Frame, Level, named};
use crate::error::{Error, Result};

/// Options of [`DataFrame::set_index_with`]: whether the columns stay, and whether the former levels do.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetIndex {
    keep: bool,
    append: bool,
}

impl SetIndex {
    /// The columns move into the index, in place of the former levels.
    pub fn new() -> SetIndex {
        SetIndex::default()
    }

    /// The columns stay columns too, if true; pandas' `drop=False`.
    pub fn keep(self, keep: bool) -> SetIndex {
        SetIndex { keep, ..self }
    }

    /// The columns become levels behind the former ones, if true.
    pub fn append(self, append: bool) -> SetIndex {
        SetIndex { append, ..self }
    }
}

/// Options of [`DataFrame::reset_index_with`]: which levels, the labels of their columns, whether they are
/// left out.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResetIndex {
    levels: Option<Vec<usize>>,
    names: Vec<String>,
    drop: bool,
}

impl ResetIndex {
    /// All levels, under their names.
    pub fn new() -> ResetIndex {
        ResetIndex::default()
    }

    /// Only these levels, by place.
    pub fn levels(self, levels: impl IntoIterator<Item = usize>) -> ResetIndex {
        ResetIndex { levels: Some(levels.into_iter().collect()), ..self }
    }

    /// A label for the column of each level of the index, by its place.
    pub fn names<'a>(self, names: impl IntoIterator<Item = &'a str>) -> ResetIndex {
        ResetIndex { names: names.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The levels become no columns, if true.
    pub fn drop(self, drop: bool) -> ResetIndex {
        ResetIndex { drop, ..self }
    }

    /// Whether the levels become no columns.
    pub(crate) fn drops(&self) -> bool {
        self.drop
    }

    fn takes(&self, level: usize) -> bool {
        self.levels.as_ref().is_none_or(|levels| levels.contains(&level))
    }
}

impl DataFrame {
    /// Columns as the index, in place of the one there was.
    #[track_caller]
    pub fn set_index<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.set_index_with(labels, SetIndex::new())
    }

    /// The same rows with columns as further levels of the index.
    #[track_caller]
    pub fn append_index<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.set_index_with(labels, SetIndex::new().append(true))
    }

    /// As [`DataFrame::set_index`], with options.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, SetIndex};
    /// let frame = DataFrame::from_columns([("k", vec![1, 2].into()), ("n", vec![3, 4].into())]);
    /// let both = frame.set_index_with(["k"], SetIndex::new().keep(true));
    /// assert_eq!(both.columns()?, ["k", "n"]);
    /// assert_eq!(both.index_names()?, [Some("k".to_owned())]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn set_index_with<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        options: SetIndex,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            let mut frame = if options.append { frame.with_index()? } else { frame.clone() };
            if !options.append {
                frame.index.clear();
            }
            if options.keep {
                // A column that stays may change: the level is another one.
                for label in &labels {
                    let (wide, column) = frame.with_hidden("level", named(label))?;
                    frame = wide;
                    frame.index.push(Level { column, name: Some((*label).to_owned()) });
                }
                return Ok(frame);
            }
            let level = |label: &&str| Level { column: (*label).to_owned(), name: Some((*label).to_owned()) };
            frame.index.extend(labels.iter().map(level));
            frame.columns.retain(|column| !labels.contains(&column.as_str()));
            Ok(frame)
        })
    }

    /// An index of positions; the levels of the former one become the first columns, unless they are dropped.
    #[track_caller]
    pub fn reset_index(&self, drop: bool) -> DataFrame {
        self.reset_index_with(&ResetIndex::new().drop(drop))
    }

    /// As [`DataFrame::reset_index`], with options. Levels that are not chosen stay the index.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, ResetIndex};
    /// let frame = DataFrame::from_columns([("k", vec![1, 2].into()), ("n", vec![3, 4].into())]);
    /// let frame = frame.set_index(["k", "n"]).reset_index_with(&ResetIndex::new().levels([1]));
    /// assert_eq!(frame.columns()?, ["n"]);
    /// assert_eq!(frame.index_names()?, [Some("k".to_owned())]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn reset_index_with(&self, options: &ResetIndex) -> DataFrame {
        self.then(|frame| {
            let levels = frame.index.len().max(1);
            if let Some(strange) = options.levels.iter().flatten().find(|level| levels <= **level) {
                return Err(Error::Index(format!("level {strange} of {levels} levels")));
            }
            let all = (0..levels).all(|level| options.takes(level));
            match (options.drop, all) {
                (true, true) => Ok(Frame { index: Vec::new(), ..frame.clone() }),
                _ => frame.with_index()?.levels_as_columns(options),
            }
        })
    }
}

impl Frame {
    /// The levels of the index as the first columns; an index of positions.
    pub(crate) fn index_as_columns(&self) -> Result<Frame> {
        self.levels_as_columns(&ResetIndex::new())
    }

    /// The label of the column that a level becomes.
    fn label_of(&self, at: usize, level: &Level, options: &ResetIndex) -> Result<String> {
        let single = self.index.len() == 1;
        let is_free = |label: &str| !self.columns.iter().any(|column| column == label);
        Ok(match (options.names.get(at), &level.name) {
            (Some(name), _) => name.clone(),
            (None, _) if !options.names.is_empty() => {
                return Err(Error::Index(format!("{} names, but none for level {at}", options.names.len())));
            }
            (None, Some(name)) => name.clone(),
            (None, None) if single && is_free("index") => "index".to_owned(),
            (None, None) => format!("level_{at}"),
        })
    }

    fn levels_as_columns(&self, options: &ResetIndex) -> Result<Frame> {
        let (mut columns, mut index) = (Vec::new(), Vec::new());
        for (at, level) in self.index.iter().enumerate() {
            if !options.takes(at) {
                index.push(level.clone());
            } else if !options.drop {
                let label = self.label_of(at, level, options)?;
                if self.columns.contains(&label) {
                    return Err(Error::Value(format!("cannot insert {label:?}: the frame has this column")));
                }
                columns.push((label, named(&level.column)));
            }
        }
        columns.extend(self.columns.iter().map(|column| (column.clone(), named(column))));
        Frame { index, ..self.clone() }.project(columns)
    }
}
