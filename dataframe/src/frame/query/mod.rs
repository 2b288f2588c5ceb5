//! Expressions in texts: pandas' `query` and `eval`. A text is parsed by a grammar of expressions and turned
//! into methods of series; nothing in it runs code.

mod call;
mod grammar;
mod token;

use super::{DataFrame, Frame, FrameOperand, named};
use crate::error::{Error, Result};
use crate::frame::series::{Operand, Operator, Series};
use crate::value::Value;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, lit};
use grammar::{Compare, Form, Node, statement};
use std::sync::Arc;

/// A value in an expression: what its names stand for, and what it gives.
#[derive(Clone, Debug)]
pub enum Term {
    /// A whole frame, whose columns are its members.
    Frame(DataFrame),
    /// Several values, for `in`.
    List(Vec<Value>),
    /// A column, or what is computed of columns.
    Series(Series),
    /// One value.
    Value(Value),
}

impl From<&DataFrame> for Term {
    fn from(frame: &DataFrame) -> Term {
        Term::Frame(frame.clone())
    }
}

impl From<&Series> for Term {
    fn from(series: &Series) -> Term {
        Term::Series(series.clone())
    }
}

impl From<Vec<Value>> for Term {
    fn from(values: Vec<Value>) -> Term {
        Term::List(values)
    }
}

impl<T: Into<Value>> From<T> for Term {
    fn from(value: T) -> Term {
        Term::Value(value.into())
    }
}

/// The meaning of names in an expression.
struct Scope<'a> {
    /// The frame whose columns are names, if there is one.
    frame: Option<&'a DataFrame>,
    /// Values of the caller: with `@` beside a frame, else by name.
    given: &'a [(&'a str, Term)],
}

impl DataFrame {
    /// The rows for which an expression over columns holds: `"price < 3 and city in ['Oslo', 'Rome']"`.
    ///
    /// It has Python's operators (`and`, `or`, `not` and `&`, `|`, `~`; comparisons in chains; `in`;
    /// arithmetic), names in backticks, `index` and the names of the index's levels, methods such as
    /// `isna()`, `str.startswith("a")`, `dt.year` and `mean()`, and functions such as `sqrt`. A text that is
    /// no expression is a `SyntaxError` with its place.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 5, 9].into())]);
    /// assert_eq!(frame.query("2 < n <= 9").len()?, 2);
    /// assert_eq!(frame.query("n >").check().unwrap_err().class(), "SyntaxError");
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn query(&self, text: &str) -> DataFrame {
        self.query_with(text, &[])
    }

    /// As [`DataFrame::query`], with values that the text names with `@`: `"n > @least"`.
    #[track_caller]
    pub fn query_with(&self, text: &str, given: &[(&str, Term)]) -> DataFrame {
        let condition = statement_of(text).and_then(|statement| match statement.target {
            Some(_) => Err(Error::Value("cannot assign without a target object".to_owned())),
            None => Scope { frame: Some(self), given }.series(&statement.value),
        });
        match condition {
            Ok(condition) => self.filter(&condition),
            Err(error) => self.then(|_| Err(error)),
        }
    }

    /// The frame with columns set by assignments, one a line: `"total = price * count"`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2].into())]);
    /// let frame = frame.eval("square = n ** 2\nrest = square % 3");
    /// assert_eq!(frame.col("rest").values::<i64>()?, [Some(1), Some(1)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn eval(&self, text: &str) -> DataFrame {
        self.eval_with(text, &[])
    }

    /// As [`DataFrame::eval`], with values that the text names with `@`.
    #[track_caller]
    pub fn eval_with(&self, text: &str, given: &[(&str, Term)]) -> DataFrame {
        let mut made = self.clone();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let assigned = statement_of(line).and_then(|statement| match statement.target {
                Some(target) => Ok((target, Scope { frame: Some(&made), given }.evaluate(&statement.value)?)),
                None => Err(Error::Value(
                    "Multi-line expressions are only valid if all expressions contain an assignment"
                        .to_owned(),
                )),
            });
            made = match assigned {
                Ok((target, Term::Series(series))) => made.assign(&target, series),
                Ok((target, Term::Value(value))) => made.assign(&target, value),
                Ok(_) => made.then(|_| Err(Error::Type("a column is a series or one value".to_owned()))),
                Err(error) => made.then(|_| Err(error)),
            };
        }
        made
    }

    /// The value of an expression over columns, for each row.
    #[track_caller]
    pub fn eval_series(&self, text: &str, given: &[(&str, Term)]) -> Series {
        let made = statement_of(text).and_then(|statement| match statement.target {
            Some(_) => Err(Error::Value("an assignment gives a frame; see `eval`".to_owned())),
            None => Scope { frame: Some(self), given }.series(&statement.value),
        });
        match made {
            Ok(series) => series,
            Err(error) => Series::new(Err(error), None),
        }
    }
}

impl Series {
    /// Whether the expression has one value for all rows: it is of constants and of aggregates of all rows.
    ///
    /// # Errors
    /// The error that the series carries.
    #[doc(hidden)]
    pub fn is_one_value(&self) -> Result<bool> {
        let (_, expr) = self.parts()?;
        let mut one = true;
        expr.apply(|part| match part {
            Expr::WindowFunction(window)
                if window.params.partition_by.is_empty() && window.params.order_by.is_empty() =>
            {
                Ok(TreeNodeRecursion::Jump)
            }
            Expr::Column(_) => {
                one = false;
                Ok(TreeNodeRecursion::Stop)
            }
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
        Ok(one)
    }
}

/// The value of an expression over named frames and series: `"t.a + u.b"`.
///
/// ```
/// use tharsis_dataframe::{DataFrame, Term, eval};
/// let frame = DataFrame::from_columns([("a", vec![1, 2].into())]);
/// let Term::Series(sums) = eval("t.a + 1", &[("t", (&frame).into())])? else { panic!("a series") };
/// assert_eq!(sums.values::<i64>()?, [Some(2), Some(3)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
///
/// # Errors
/// `SyntaxError` with its place for a text that is no expression, or the error of an operation.
pub fn eval(text: &str, names: &[(&str, Term)]) -> Result<Term> {
    let statement = statement_of(text)?;
    match statement.target {
        Some(_) => Err(Error::Value("cannot assign without a target object".to_owned())),
        None => Scope { frame: None, given: names }.evaluate(&statement.value),
    }
}

fn statement_of(text: &str) -> Result<grammar::Statement> {
    if text.trim().is_empty() {
        Err(Error::Value("expr cannot be an empty string".to_owned()))
    } else {
        statement(text)
    }
}

impl Scope<'_> {
    /// The value of a part as a series over the frame.
    fn series(&self, node: &Node) -> Result<Series> {
        match self.evaluate(node)? {
            Term::Series(series) => {
                series.parts()?;
                Ok(series)
            }
            Term::Value(value) => self.constant(value),
            Term::Frame(_) | Term::List(_) => {
                Err(Error::Type("a series or one value is needed here".to_owned()))
            }
        }
    }

    /// One value in each row of the frame.
    fn constant(&self, value: Value) -> Result<Series> {
        let frame = match self.frame {
            Some(frame) => Arc::clone(frame.frame()?),
            None => {
                let one = DataFrame::from_columns([("0", vec![0_i64].into())]);
                Arc::clone(one.frame()?)
            }
        };
        Ok(Series::new(Ok((frame, lit(value.0))), None))
    }

    fn evaluate(&self, node: &Node) -> Result<Term> {
        Ok(match &node.form {
            Form::Value(value) => Term::Value(value.clone()),
            Form::Name(name) => self.name(name)?,
            Form::Given(name) => self.given(name).ok_or_else(|| Error::Name(format!("@{name}")))?,
            Form::List(parts) => {
                Term::List(parts.iter().map(|part| self.value(part)).collect::<Result<_>>()?)
            }
            Form::Minus(inner) => self.negated(self.evaluate(inner)?)?,
            Form::Not(inner) => match self.evaluate(inner)? {
                Term::Frame(frame) => Term::Frame(!&frame),
                Term::Series(series) => Term::Series(!&series),
                Term::Value(value) => Term::Series(!&self.constant(value)?),
                Term::List(_) => return Err(Error::Type("a list has no opposite".to_owned())),
            },
            Form::Chain(first, others) => {
                let first = self.evaluate(first)?;
                others.iter().try_fold(first, |left, (operator, right)| {
                    self.operate(*operator, left, self.evaluate(right)?)
                })?
            }
            Form::Comparison(first, others) => self.compared(first, others)?,
            Form::Member(of, name) => self.member(of, name)?,
            Form::Call(of, arguments) => self.call(of, arguments)?,
        })
    }

    /// One value: a literal, or a name that stands for one.
    fn value(&self, node: &Node) -> Result<Value> {
        match self.evaluate(node)? {
            Term::Value(value) => Ok(value),
            _ => Err(Error::Syntax { at: node.at, reason: "expected one value".to_owned() }),
        }
    }

    fn given(&self, name: &str) -> Option<Term> {
        self.given.iter().find(|(known, _)| *known == name).map(|(_, term)| term.clone())
    }

    fn name(&self, name: &str) -> Result<Term> {
        let Some(frame) = self.frame else {
            return self.given(name).ok_or_else(|| Error::Name(name.to_owned()));
        };
        let state = frame.frame()?;
        if state.check(name).is_ok() {
            return Ok(Term::Series(frame.col(name)));
        }
        let level = state.index.iter().position(|level| level.name.as_deref() == Some(name));
        let level = level.or_else(|| match name {
            "index" => Some(0),
            _ => name.strip_prefix("ilevel_")?.parse().ok(),
        });
        match level {
            Some(level) => Ok(Term::Series(Scope::level(state, level)?)),
            None => Err(Error::Name(name.to_owned())),
        }
    }

    /// A level of the index as a series over the frame's rows.
    fn level(frame: &Arc<Frame>, level: usize) -> Result<Series> {
        let indexed = frame.with_index()?;
        let found = indexed.index.get(level).map(|level| named(&level.column));
        let found = found.ok_or_else(|| Error::Index(format!("level {level} of the index")))?;
        Ok(Series::new(Ok((Arc::new(indexed), found)), None))
    }

    fn negated(&self, term: Term) -> Result<Term> {
        Ok(match term {
            Term::Frame(frame) => Term::Frame(-&frame),
            Term::Series(series) => Term::Series(-&series),
            Term::Value(value) => {
                match (value.as_i64().filter(|_| value.dtype().is_integer()), value.as_f64()) {
                    (Some(whole), _) => Term::Value(Value::from(-whole)),
                    (None, Some(float)) => Term::Value(Value::from(-float)),
                    _ => return Err(Error::Type(format!("bad operand type for unary -: {}", value.dtype()))),
                }
            }
            Term::List(_) => return Err(Error::Type("bad operand type for unary -: a list".to_owned())),
        })
    }

    fn operate(&self, operator: Operator, left: Term, right: Term) -> Result<Term> {
        let list = || Error::Type("a list is no operand of this operator".to_owned());
        let other = |term: Term| {
            Ok(match term {
                Term::Frame(frame) => FrameOperand::Frame(frame),
                Term::Series(series) => FrameOperand::Series(series),
                Term::Value(value) => FrameOperand::Value(value),
                Term::List(_) => return Err(list()),
            })
        };
        let operand = |term: Term| {
            Ok(match term {
                Term::Series(series) => Operand::Series(series),
                Term::Value(value) => Operand::Value(value),
                Term::Frame(_) | Term::List(_) => return Err(list()),
            })
        };
        Ok(match (left, right) {
            (Term::Frame(frame), right) => Term::Frame(frame.operate(operator, other(right)?)),
            (left, Term::Frame(frame)) => Term::Frame(frame.operate_reversed(operator, other(left)?)),
            (Term::List(_), _) => return Err(list()),
            (Term::Series(series), right) => Term::Series(series.operate(operator, operand(right)?)),
            (Term::Value(left), Term::Series(right)) => {
                Term::Series(right.filled_with(left).operate(operator, &right))
            }
            (Term::Value(left), right) => {
                Term::Series(self.constant(left)?.operate(operator, operand(right)?))
            }
        })
    }

    /// Comparisons in a chain, each of which must hold.
    fn compared(&self, first: &Node, others: &[(Compare, Node)]) -> Result<Term> {
        let mut left = self.evaluate(first)?;
        let mut all: Option<Term> = None;
        for (compare, right) in others {
            let right = self.evaluate(right)?;
            let holds = self.compare(*compare, left, right.clone())?;
            all = Some(match all {
                None => holds,
                Some(before) => self.operate(Operator::And, before, holds)?,
            });
            left = right;
        }
        all.ok_or_else(|| Error::Internal("a comparison with nothing".to_owned()))
    }

    fn compare(&self, compare: Compare, left: Term, right: Term) -> Result<Term> {
        let (among, opposite) = match (compare, &right) {
            (Compare::By(Operator::Eq), Term::List(_)) | (Compare::In, _) => (true, false),
            (Compare::By(Operator::Ne), Term::List(_)) | (Compare::NotIn, _) => (true, true),
            (Compare::By(operator), _) => return self.operate(operator, left, right),
        };
        debug_assert!(among);
        let values = match right {
            Term::List(values) => values,
            Term::Series(series) => super::Index::of_series(&series).unique().values()?,
            Term::Value(value) => vec![value],
            Term::Frame(_) => return Err(Error::Type("a frame has no elements".to_owned())),
        };
        let found = match left {
            Term::Series(series) => series.isin(values),
            Term::Value(value) => self.constant(Value::from(values.contains(&value)))?,
            Term::Frame(frame) => return Ok(Term::Frame(frame.isin(values))),
            Term::List(_) => return Err(Error::Type("a list is no element".to_owned())),
        };
        Ok(Term::Series(if opposite { !&found } else { found }))
    }
}
