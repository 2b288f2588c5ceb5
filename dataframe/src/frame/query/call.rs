//! Functions and methods that expressions may call, by their names.

use super::grammar::{Form, Node};
use super::{Scope, Term};
use crate::error::{Error, Result};
use crate::frame::Aggregate;
use crate::frame::series::{Series, Times};
use crate::frame::window::Step;
use crate::value::Value;

impl Scope<'_> {
    /// A column of a frame, or a part of times that is written without brackets.
    pub(super) fn member(&self, of: &Node, name: &str) -> Result<Term> {
        if let Form::Member(series, accessor) = &of.form
            && accessor == "dt"
        {
            return Ok(Term::Series(part_of_time(&self.series(series)?.dt(), name)?));
        }
        match self.evaluate(of)? {
            Term::Frame(frame) => Ok(Term::Series(frame.col(name))),
            _ => Err(Error::Syntax {
                at: of.at,
                reason: format!("{name:?} is no member that can be read here"),
            }),
        }
    }

    /// A call of a function of numbers, or of a method.
    pub(super) fn call(&self, of: &Node, arguments: &[Node]) -> Result<Term> {
        match &of.form {
            Form::Name(name) => {
                let [argument] = arguments else {
                    let reason = format!("{name} takes one argument, {} are given", arguments.len());
                    return Err(Error::Syntax { at: of.at, reason });
                };
                function(name, &self.series(argument)?).map(Term::Series)
            }
            Form::Member(owner, name) => match &owner.form {
                Form::Member(series, accessor) if accessor == "str" => {
                    let texts = self.series(series)?.str();
                    let arguments =
                        arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
                    of_texts(&texts, name, &arguments).map(Term::Series)
                }
                _ => self.method(&self.series(owner)?, name, arguments).map(Term::Series),
            },
            _ => Err(Error::Syntax { at: of.at, reason: "only a function or a method is called".to_owned() }),
        }
    }

    fn method(&self, series: &Series, name: &str, arguments: &[Node]) -> Result<Series> {
        let argument = |at: usize| match arguments.get(at) {
            Some(node) => self.evaluate(node),
            None => Err(Error::Type(format!("{name}: argument {at} is missing"))),
        };
        let value = |at: usize| match argument(at)? {
            Term::Value(value) => Ok(value),
            _ => Err(Error::Type(format!("{name}: argument {at} is no single value"))),
        };
        Ok(match name {
            "isna" | "isnull" => series.isna(),
            "notna" | "notnull" => series.notna(),
            "abs" => series.abs(),
            "isin" => match argument(0)? {
                Term::List(values) => series.isin(values),
                _ => return Err(Error::Type("isin takes a list".to_owned())),
            },
            "between" => series.between(value(0)?, value(1)?),
            "fillna" => series.fillna(value(0)?),
            "round" => {
                let decimals = if arguments.is_empty() { 0 } else { value(0)?.as_i64().unwrap_or(0) };
                series.round(i32::try_from(decimals).unwrap_or(0))
            }
            "shift" => series.shift(if arguments.is_empty() { 1 } else { value(0)?.as_i64().unwrap_or(1) }),
            "duplicated" => series.duplicated(),
            // An aggregate of all rows, in each row.
            other => match Aggregate::named(other) {
                Ok(aggregate) if arguments.is_empty() => series.window_step(&Step::Whole(aggregate)),
                _ => return Err(Error::Name(other.to_owned())),
            },
        })
    }
}

fn function(name: &str, series: &Series) -> Result<Series> {
    Ok(match name {
        "abs" => series.abs(),
        "arccos" => series.arccos(),
        "arcsin" => series.arcsin(),
        "arctan" => series.arctan(),
        "ceil" => series.ceil(),
        "cos" => series.cos(),
        "cosh" => series.cosh(),
        "exp" => series.exp(),
        "expm1" => series.expm1(),
        "floor" => series.floor(),
        "log" => series.log(),
        "log10" => series.log10(),
        "log1p" => series.log1p(),
        "sin" => series.sin(),
        "sinh" => series.sinh(),
        "sqrt" => series.sqrt(),
        "tan" => series.tan(),
        "tanh" => series.tanh(),
        other => return Err(Error::Name(other.to_owned())),
    })
}

fn part_of_time(times: &Times, name: &str) -> Result<Series> {
    Ok(match name {
        "year" => times.year(),
        "month" => times.month(),
        "day" => times.day(),
        "hour" => times.hour(),
        "minute" => times.minute(),
        "second" => times.second(),
        "quarter" => times.quarter(),
        "dayofweek" | "weekday" | "day_of_week" => times.dayofweek(),
        "dayofyear" | "day_of_year" => times.dayofyear(),
        "date" => times.date(),
        other => return Err(Error::Name(format!("dt.{other}"))),
    })
}

fn of_texts(texts: &crate::frame::series::Texts, name: &str, arguments: &[Value]) -> Result<Series> {
    let text = || match arguments.first().and_then(Value::as_str) {
        Some(text) => Ok(text),
        None => Err(Error::Type(format!("str.{name} takes a text"))),
    };
    Ok(match name {
        "contains" => texts.contains(text()?),
        "endswith" => texts.endswith(text()?),
        "fullmatch" => texts.fullmatch(text()?),
        "match" => texts.match_(text()?),
        "startswith" => texts.startswith(text()?),
        "len" => texts.len(),
        "lower" => texts.lower(),
        "strip" => texts.strip(None),
        "title" => texts.title(),
        "upper" => texts.upper(),
        other => return Err(Error::Name(format!("str.{other}"))),
    })
}
