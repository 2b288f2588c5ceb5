//! The arguments of one call, taken by position or by name.

use super::Failure;
use super::context::Context;
use super::value::{Groups, Value};
use std::collections::HashMap;
use tharsis_dataframe::{DataFrame, Operand, Series};
use tharsis_programs::unknown_option;

/// The arguments of one call. Those that the operation does not take are refused as not implemented.
pub(super) struct Args<'a> {
    positional: Vec<Option<Value>>,
    keywords: Vec<(String, Value)>,
    pub(super) context: &'a Context,
}

impl<'a> Args<'a> {
    pub(super) fn new(
        positional: Vec<Value>,
        keywords: Vec<(String, Value)>,
        context: &'a Context,
    ) -> Args<'a> {
        Args { positional: positional.into_iter().map(Some).collect(), keywords, context }
    }

    /// Takes the argument at a position, or else by name.
    pub(super) fn take(&mut self, position: usize, name: &str) -> Option<Value> {
        self.take_tuple(position, name).map(Value::untupled)
    }

    /// As [`Args::take`], with tuples apart from lists.
    pub(super) fn take_tuple(&mut self, position: usize, name: &str) -> Option<Value> {
        let positional = self.positional.get_mut(position).and_then(Option::take);
        positional.or_else(|| {
            let at = self.keywords.iter().position(|(keyword, _)| keyword == name)?;
            Some(self.keywords.remove(at).1)
        })
    }

    /// Takes an argument by name; `None` counts as not given.
    pub(super) fn named(&mut self, name: &str) -> Option<Value> {
        self.given(usize::MAX, name)
    }

    /// Takes an argument; `None` counts as not given.
    pub(super) fn given(&mut self, position: usize, name: &str) -> Option<Value> {
        self.take(position, name).filter(|value| !matches!(value, Value::None))
    }

    pub(super) fn need(&mut self, position: usize, name: &str) -> Result<Value, Failure> {
        self.take(position, name).ok_or_else(|| Failure::kind(format!("missing required argument: '{name}'")))
    }

    pub(super) fn frame(&mut self) -> Result<DataFrame, Failure> {
        self.need(0, "self")?.frame()
    }

    /// A frame, or a series as a frame of one column.
    pub(super) fn columns(&mut self) -> Result<DataFrame, Failure> {
        match self.need(0, "self")? {
            Value::Series(series) => Ok(series.to_frame()),
            other => other.frame(),
        }
    }

    pub(super) fn series(&mut self) -> Result<Series, Failure> {
        self.need(0, "self")?.series()
    }

    pub(super) fn index(&mut self) -> Result<tharsis_dataframe::Index, Failure> {
        self.need(0, "self")?.index()
    }

    /// A number as a float.
    pub(super) fn float(&mut self, position: usize, name: &str) -> Result<Option<f64>, Failure> {
        let given = self.given(position, name).map(Value::scalar).transpose()?;
        let float = |value: tharsis_dataframe::Value| {
            value.as_f64().ok_or_else(|| Failure::kind(format!("{name}: expected a number, found {value}")))
        };
        given.map(float).transpose()
    }

    /// A number that is not negative.
    pub(super) fn count(&mut self, position: usize, name: &str, default: usize) -> Result<usize, Failure> {
        match self.given(position, name) {
            None => Ok(default),
            Some(value) => {
                usize::try_from(value.integer()?).map_err(|_| Failure::value(format!("{name} must be >= 0")))
            }
        }
    }

    pub(super) fn groups(&mut self) -> Result<Box<Groups>, Failure> {
        match self.need(0, "self")? {
            Value::Groups(groups) => Ok(groups),
            other => Err(Failure::kind(format!("expected groups, found {}", other.kind()))),
        }
    }

    pub(super) fn flag(&mut self, position: usize, name: &str, default: bool) -> Result<bool, Failure> {
        self.given(position, name).map_or(Ok(default), |value| value.flag())
    }

    /// Refuses another value of a flag than the one that is implemented.
    pub(super) fn only(&mut self, position: usize, name: &str, value: bool) -> Result<(), Failure> {
        if self.flag(position, name, value)? == value {
            Ok(())
        } else {
            Err(Failure::missing(format!("{name}={} is not implemented", !value)))
        }
    }

    /// A text that must be one of these; the first is the default.
    pub(super) fn choice(
        &mut self,
        position: usize,
        name: &str,
        choices: &'static [&'static str],
    ) -> Result<&'static str, Failure> {
        let Some(found) = self.given(position, name) else {
            return Ok(choices.first().copied().unwrap_or(""));
        };
        let text = found.text()?;
        let known = choices.iter().find(|choice| **choice == text).copied();
        known.ok_or_else(|| Failure::value(format!("{name}: {text:?}; there are {}", choices.join(", "))))
    }

    pub(super) fn texts(&mut self, position: usize, name: &str) -> Result<Option<Vec<String>>, Failure> {
        self.given(position, name).map(|value| value.texts()).transpose()
    }

    pub(super) fn integer(&mut self, position: usize, name: &str, default: i64) -> Result<i64, Failure> {
        self.given(position, name).map_or(Ok(default), |value| value.integer())
    }

    /// All keywords that are left, in their order.
    pub(super) fn rest(&mut self) -> Vec<(String, Value)> {
        let rest = std::mem::take(&mut self.keywords).into_iter();
        rest.map(|(name, value)| (name, value.untupled())).collect()
    }

    /// Refuses an axis other than that of rows, which is the default, or of columns.
    pub(super) fn axis(&mut self, position: usize) -> Result<bool, Failure> {
        match self.given(position, "axis") {
            None => Ok(false),
            Some(axis) => match (axis.integer(), axis.text().as_deref()) {
                (Ok(0), _) | (_, Ok("index" | "rows")) => Ok(false),
                (Ok(1), _) | (_, Ok("columns")) => Ok(true),
                _ => Err(Failure::value("No axis of this name; there are 0 and 1")),
            },
        }
    }

    /// As [`Args::axis`], with another default.
    pub(super) fn axis_or(&mut self, position: usize, default: bool) -> Result<bool, Failure> {
        let axis = self.given(position, "axis");
        match axis {
            None => Ok(default),
            Some(axis) => {
                self.keywords.push(("axis".to_owned(), axis));
                self.axis(usize::MAX)
            }
        }
    }

    /// Refuses the axis of columns.
    pub(super) fn rows_only(&mut self, position: usize) -> Result<(), Failure> {
        if self.axis(position)? { Err(Failure::missing("axis=1 is not implemented")) } else { Ok(()) }
    }

    /// Refuses arguments that the operation has not taken.
    pub(super) fn finish(self, name: &str, signature: &str) -> Result<(), Failure> {
        if let Some(at) = self.positional.iter().position(Option::is_some) {
            let text = format!("the option argument {at} is not implemented; {name} takes {signature}");
            return Err(Failure::missing(text));
        }
        match self.keywords.into_iter().find(|(_, value)| !matches!(value, Value::None)) {
            Some((option, _)) => Err(unknown_option(name, signature, &option).into()),
            None => Ok(()),
        }
    }
}

/// Pairs of texts of a dictionary.
pub(super) fn text_pairs(value: &Value) -> Result<Vec<(String, String)>, Failure> {
    pairs(value, Value::text)
}

/// Keys of a dictionary with their values, read as something.
pub(super) fn pairs<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, Failure>,
) -> Result<Vec<(String, T)>, Failure> {
    match value {
        Value::Dict(entries) => entries.iter().map(|(key, value)| Ok((key.text()?, read(value)?))).collect(),
        other => Err(Failure::kind(format!("expected a dictionary, found {}", other.kind()))),
    }
}

/// Borrowed texts, as methods of frames take them.
pub(super) fn strs(texts: &[String]) -> impl Iterator<Item = &str> {
    texts.iter().map(String::as_str)
}

/// Values of names in a program.
pub(super) type Names = HashMap<String, Value>;

/// A series, or one value for all rows.
pub(super) fn operand(value: Value) -> Result<Operand, Failure> {
    match value {
        Value::Series(series) => Ok(Operand::Series(series)),
        Value::List(_) => Err(Failure::missing("a list as an operand is not implemented")),
        other => Ok(Operand::Value(other.scalar()?)),
    }
}
