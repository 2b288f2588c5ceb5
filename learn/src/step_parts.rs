//! Parts of a transformer of several: their columns, and what is done with these.

use crate::base::{Estimator, Transform};
use crate::checks::refused;
use crate::params::{Params, Setting};
use crate::step::Step;
use std::ops::{Range, RangeFull};
use tharsis_numeric::Result;

const DROP: &str = "drop";
const PASSTHROUGH: &str = "passthrough";

/// The columns that a part of a [`ColumnTransformer`](crate::compose::ColumnTransformer) reads, in their
/// order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Columns {
    /// All of them.
    All,
    /// At these places; negative ones count from the last one back.
    At(Vec<i64>),
    /// Python's `start:stop:step`.
    Slice {
        /// The first one. Default: the first column, or the last one if the step is negative.
        start: Option<i64>,
        /// The one before which to stop.
        stop: Option<i64>,
        /// Distance from each column to the next.
        step: i64,
    },
    /// Those for which this is true; (d,).
    Mask(Vec<bool>),
    /// Those with these names, of features whose names are known.
    Named(Vec<String>),
}

impl From<RangeFull> for Columns {
    fn from(_: RangeFull) -> Columns {
        Columns::All
    }
}

impl From<Range<i64>> for Columns {
    fn from(range: Range<i64>) -> Columns {
        Columns::At(range.collect())
    }
}

impl<const N: usize> From<[i64; N]> for Columns {
    fn from(places: [i64; N]) -> Columns {
        Columns::At(places.to_vec())
    }
}

impl<const N: usize> From<[bool; N]> for Columns {
    fn from(mask: [bool; N]) -> Columns {
        Columns::Mask(mask.to_vec())
    }
}

impl<const N: usize> From<[&str; N]> for Columns {
    fn from(names: [&str; N]) -> Columns {
        Columns::Named(names.iter().map(|&name| name.to_owned()).collect())
    }
}

impl Columns {
    /// The places of the columns among so many.
    #[track_caller]
    pub(crate) fn places(&self, columns: usize, names: &[String]) -> Result<Vec<usize>> {
        match self {
            Columns::All => Ok((0..columns).collect()),
            Columns::At(places) => {
                let at = |&place: &i64| {
                    let place = if place < 0 { place.checked_add(columns as i64)? } else { place };
                    usize::try_from(place).ok().filter(|&place| place < columns)
                };
                let found: Option<Vec<usize>> = places.iter().map(at).collect();
                match found {
                    Some(found) => Ok(found),
                    None => {
                        let last = columns as i64 - 1;
                        Err(refused(format!("all features must be in [0, {last}] or [-{columns}, 0]")))
                    }
                }
            }
            &Columns::Slice { step: 0, .. } => Err(refused("slice step cannot be zero")),
            &Columns::Slice { start, stop, step } => Ok(slice(start, stop, step, columns)),
            Columns::Mask(mask) if mask.len() == columns => {
                Ok((0..columns).filter(|&column| mask[column]).collect())
            }
            Columns::Mask(mask) => {
                Err(refused(format!("a mask of {} columns for {columns} features", mask.len())))
            }
            Columns::Named(_) if names.is_empty() => {
                Err(refused("Specifying the columns using strings is only supported for dataframes."))
            }
            Columns::Named(chosen) => {
                let mut found = Vec::with_capacity(chosen.len());
                for name in chosen {
                    match names.iter().position(|known| known == name) {
                        Some(place) => found.push(place),
                        None => {
                            let text = format!("A given column is not a column of the dataframe: '{name}'");
                            return Err(refused(text));
                        }
                    }
                }
                Ok(found)
            }
        }
    }
}

/// The places of a slice of so many columns. Ends beyond them are those of the columns.
fn slice(start: Option<i64>, stop: Option<i64>, step: i64, columns: usize) -> Vec<usize> {
    let count = columns as i64;
    let (first, last) = if step < 0 { (-1, count - 1) } else { (0, count) };
    let place = |end: i64| (if end < 0 { end.saturating_add(count) } else { end }).clamp(first, last);
    let (begin, end) = if step < 0 { (last, first) } else { (first, last) };
    let (mut at, stop) = (start.map_or(begin, place), stop.map_or(end, place));
    let mut places = Vec::new();
    while if step < 0 { stop < at } else { at < stop } {
        places.push(at as usize);
        at = at.saturating_add(step);
    }
    places
}

/// The use of some columns.
#[derive(Clone)]
pub(crate) enum Use {
    /// They are left out.
    Drop,
    /// They are results as they are.
    Passthrough,
    Map(Box<dyn Step>),
}

impl Use {
    pub(crate) fn of<E>(estimator: E) -> Use
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Transform + Send + Sync + 'static,
    {
        Use::Map(Box::new(estimator))
    }

    /// The use that a word tells.
    fn of_word(value: &Setting) -> Option<Use> {
        match value {
            Setting::Text(word) if word == DROP => Some(Use::Drop),
            Setting::Text(word) if word == PASSTHROUGH => Some(Use::Passthrough),
            _ => None,
        }
    }
}

/// A part of a transformer of several.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) of: Use,
    pub(crate) columns: Columns,
    pub(crate) weight: f64,
}

/// The parts, one behind the other.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) all: Vec<Part>,
    /// Factors of results by the names of parts, which may be added later.
    weights: Vec<(String, f64)>,
}

/// The use of columns that no part of a [`ColumnTransformer`](crate::compose::ColumnTransformer) reads. They
/// are the last columns of the result.
#[must_use]
#[derive(Clone)]
pub struct Remainder(pub(crate) Use);

impl Remainder {
    /// They are left out.
    pub fn drop() -> Remainder {
        Remainder(Use::Drop)
    }

    /// They stay as they are.
    pub fn passthrough() -> Remainder {
        Remainder(Use::Passthrough)
    }

    /// A transformer maps them.
    pub fn of<E>(estimator: E) -> Remainder
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Transform + Send + Sync + 'static,
    {
        Remainder(Use::of(estimator))
    }
}

/// Checks the names of parts.
#[track_caller]
pub(crate) fn check_names(names: &[&str]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() || names[..at].contains(name) {
            return Err(refused(format!("Names provided are not unique: {names:?}")));
        }
        if name.contains("__") {
            return Err(refused(format!("Estimator names must not contain __: got [{name:?}]")));
        }
    }
    Ok(())
}

impl Parts {
    pub(crate) fn add(&mut self, name: &str, of: Use, columns: Columns) {
        let given = self.weights.iter().rev().find(|(given, _)| given == name);
        let weight = given.map_or(1.0, |(_, weight)| *weight);
        self.all.push(Part { name: name.to_owned(), of, columns, weight });
    }

    pub(crate) fn weigh(&mut self, name: &str, weight: f64) {
        self.all.iter_mut().filter(|part| part.name == name).for_each(|part| part.weight = weight);
        self.weights.push((name.to_owned(), weight));
    }

    /// A name that has a weight, and that no part has.
    pub(crate) fn unknown_weight(&self) -> Option<&str> {
        let names = self.names();
        self.weights.iter().map(|(name, _)| name.as_str()).find(|name| !names.contains(name))
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.all.iter().map(|part| part.name.as_str()).collect()
    }

    /// Parameters of the parts, behind their names.
    pub(crate) fn params(&self) -> Vec<(String, Setting)> {
        self.all.iter().flat_map(|part| params_of(&part.name, &part.of)).collect()
    }

    /// Changes a parameter of a part, or its use; whether there is such a part.
    #[track_caller]
    pub(crate) fn set(&mut self, name: &str, value: &Setting) -> Result<bool> {
        let own = name.split_once("__").map_or(name, |(own, _)| own);
        match self.all.iter_mut().find(|part| part.name == own) {
            Some(part) => set_use(&mut part.of, name, value),
            None => Ok(false),
        }
    }
}

/// Parameters of a use of columns, behind its name.
pub(crate) fn params_of(name: &str, of: &Use) -> Vec<(String, Setting)> {
    match of {
        Use::Drop => vec![(name.to_owned(), DROP.into())],
        Use::Passthrough => vec![(name.to_owned(), PASSTHROUGH.into())],
        Use::Map(step) => {
            let params = step.params().params().into_iter();
            params.map(|(param, value)| (format!("{name}__{param}"), value)).collect()
        }
    }
}

/// Changes a use, or a parameter of its transformer; whether it is either.
#[track_caller]
pub(crate) fn set_use(of: &mut Use, name: &str, value: &Setting) -> Result<bool> {
    match (name.split_once("__"), Use::of_word(value), of) {
        (Some((_, param)), _, Use::Map(step)) => step.params_mut().set(param, value).map(|()| true),
        (None, Some(word), of) => {
            *of = word;
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        for (start, stop, step, expected) in [
            (None, None, 1, &[0, 1, 2, 3][..]),
            (Some(1), Some(3), 1, &[1, 2]),
            (Some(-2), None, 1, &[2, 3]),
            (Some(-9), Some(9), 3, &[0, 3]),
            (None, None, -1, &[3, 2, 1, 0]),
            (Some(9), Some(0), -2, &[3, 1]),
            (Some(2), Some(1), 1, &[]),
            (Some(i64::MIN), Some(i64::MAX), i64::MAX, &[0]),
        ] {
            let found = Columns::Slice { start, stop, step }.places(4, &[]).unwrap();
            assert_eq!(found, expected, "{start:?}:{stop:?}:{step}");
        }
        assert!(Columns::Slice { start: None, stop: None, step: 0 }.places(4, &[]).is_err());
    }
}
