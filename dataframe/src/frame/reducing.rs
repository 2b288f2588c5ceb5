//! Options of reductions: missing values, how many values there must be, degrees of freedom, and the place of
//! a quantile between two values.

use super::aggregate::{Aggregate, as_duration, numbered, truth};
use super::{Frame, named};
use crate::error::{Error, Result};
use crate::functions::arithmetic::present;
use crate::functions::{rows, whole};
use crate::promotion::{as_type, common_type};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{coalesce, greatest, least, sqrt};
use datafusion::functions_aggregate::expr_fn as functions;
use datafusion::functions_aggregate::string_agg::string_agg;
use datafusion::functions_nested::expr_fn::{array_distinct, array_length, make_array};
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprFunctionExt, SortExpr, lit};
use std::collections::BTreeMap;

/// The value of a quantile that lies between two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Between them, by its distance to each.
    #[default]
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// The nearer one; in the middle, the one at an even place.
    Nearest,
    /// The mean of both.
    Midpoint,
}

/// A reduction of values to one: an aggregate, and its options.
///
/// ```
/// use tharsis_dataframe::{Aggregate, Reduce, Series};
/// let n = Series::from_values("n", vec![Some(1.0), None, Some(3.0)]);
/// assert_eq!(n.agg(Reduce::by(Aggregate::Var).ddof(0))?.as_f64(), Some(1.0));
/// assert!(n.agg(Reduce::by(Aggregate::Sum).skipna(false))?.is_missing());
/// assert!(n.agg(Reduce::by(Aggregate::Sum).min_count(3))?.is_missing());
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduce {
    pub(super) aggregate: Aggregate,
    skipna: bool,
    min_count: usize,
    ddof: usize,
    interpolation: Interpolation,
}

impl From<Aggregate> for Reduce {
    fn from(aggregate: Aggregate) -> Reduce {
        Reduce::by(aggregate)
    }
}

impl Reduce {
    /// An aggregate of the values that are there.
    pub fn by(aggregate: Aggregate) -> Reduce {
        Reduce { aggregate, skipna: true, min_count: 0, ddof: 1, interpolation: Interpolation::Linear }
    }

    /// A missing value makes the result missing, if false; it counts as a distinct value and is true.
    pub fn skipna(self, skipna: bool) -> Reduce {
        Reduce { skipna, ..self }
    }

    /// The result is missing with fewer values than these.
    pub fn min_count(self, min_count: usize) -> Reduce {
        Reduce { min_count, ..self }
    }

    /// Degrees of freedom that variances, deviations and standard errors are without: 1 for samples.
    pub fn ddof(self, ddof: usize) -> Reduce {
        Reduce { ddof, ..self }
    }

    /// The value of a quantile that lies between two values.
    pub fn interpolation(self, interpolation: Interpolation) -> Reduce {
        Reduce { interpolation, ..self }
    }

    /// The aggregate without its options.
    #[must_use]
    pub fn aggregate(self) -> Aggregate {
        self.aggregate
    }

    /// The expression over rows, whose order is given.
    pub(crate) fn expr(self, value: Expr, dtype: &DataType, order: &[SortExpr]) -> Result<Expr> {
        // A sum of durations is one of its own, which ends with an error where it has no room.
        if self.aggregate != Aggregate::Sum && self.aggregate.measures(dtype) {
            let found = self.expr(cast(value, DataType::Int64), &DataType::Int64, order)?;
            return Ok(as_duration(found, dtype));
        }
        let count = || functions::count(value.clone());
        let some_missing = || count().lt(functions::count(lit(1_i64)));
        let found = match self.aggregate {
            Aggregate::Std | Aggregate::Var | Aggregate::Sem if self.ddof != 1 => {
                // The check of types is that of the aggregate with its own degrees of freedom.
                self.aggregate.expr(value.clone(), dtype, order)?;
                self.deviation(&value)?
            }
            Aggregate::Quantile(part) if self.interpolation != Interpolation::Linear => {
                self.aggregate.expr(value.clone(), dtype, order)?;
                let number = lit(self.interpolation as i64);
                let found = crate::functions::quantile().call(vec![float(value.clone()), lit(part), number]);
                // One of the values is what they are: a truth value.
                let own = *dtype == DataType::Boolean && self.interpolation != Interpolation::Midpoint;
                if own { cast(found, DataType::Boolean) } else { found }
            }
            Aggregate::Sum if crate::value::is_text(dtype) => joined(value.clone(), order)?,
            aggregate => aggregate.expr(value.clone(), dtype, order)?,
        };
        let found = match (self.skipna, self.aggregate) {
            (true, _) | (_, Aggregate::Count | Aggregate::Size | Aggregate::All) => found,
            (_, Aggregate::Any) => found.or(some_missing()),
            (_, Aggregate::Nunique) => found + cast(some_missing(), DataType::Int64),
            _ => when(Expr::Not(Box::new(some_missing())), found).end()?,
        };
        match self.min_count {
            0 => Ok(found),
            least => Ok(when(count().gt_eq(lit(least as i64)), found).end()?),
        }
    }

    /// Variance, deviation or standard error with these degrees of freedom.
    fn deviation(self, value: &Expr) -> Result<Expr> {
        let count = float(functions::count(value.clone()));
        let free = count.clone() - lit(self.ddof as f64);
        let squares = functions::var_pop(float(value.clone())) * count.clone();
        let variance = when(free.clone().gt(lit(0.0)), squares / free).end()?;
        Ok(match self.aggregate {
            Aggregate::Std => sqrt(variance),
            Aggregate::Sem => sqrt(variance) / sqrt(count),
            _ => variance,
        })
    }

    /// The expression over the columns of one row.
    pub(super) fn across(self, frame: &Frame, columns: &[String]) -> Result<Expr> {
        let typed = columns.iter().map(|column| Ok((named(column), frame.dtype(column)?)));
        let typed: Vec<(Expr, DataType)> = typed.collect::<Result<_>>()?;
        let fits = |dtype: &DataType| self.aggregate.fits_plain(dtype);
        if let Some((_, dtype)) = typed.iter().find(|(_, dtype)| !fits(dtype)) {
            return Err(Error::Type(format!(
                "{} is not made for values of type {dtype}",
                self.aggregate.name()
            )));
        }
        let missing = || any_of(typed.iter().map(|(value, _)| value.clone().is_null()));
        let count = sum_of(typed.iter().map(|(value, _)| cast(value.clone().is_not_null(), DataType::Int64)));
        let found = match self.aggregate {
            Aggregate::Count => return Ok(count),
            Aggregate::Size => return Ok(lit(columns.len() as i64)),
            Aggregate::Nunique => distinct(&typed) + self.one_for_missing(missing()),
            Aggregate::Any => any_of(
                typed
                    .iter()
                    .map(|(value, dtype)| coalesce(vec![truth(value.clone(), dtype), lit(!self.skipna)])),
            ),
            Aggregate::All => {
                let parts =
                    typed.iter().map(|(value, dtype)| coalesce(vec![truth(value.clone(), dtype), lit(true)]));
                parts.reduce(Expr::and).unwrap_or_else(|| lit(true))
            }
            _ => self.measured(&typed)?,
        };
        let found = match (self.skipna, self.aggregate) {
            (true, _) | (_, Aggregate::Any | Aggregate::All | Aggregate::Nunique) => found,
            _ => when(Expr::Not(Box::new(missing())), found).end()?,
        };
        match self.min_count {
            0 => Ok(found),
            least => Ok(when(count.gt_eq(lit(least as i64)), found).end()?),
        }
    }

    fn one_for_missing(self, missing: Expr) -> Expr {
        if self.skipna { lit(0_i64) } else { cast(missing, DataType::Int64) }
    }

    /// A measure of the values of a row that share one type.
    fn measured(self, typed: &[(Expr, DataType)]) -> Result<Expr> {
        let common = if typed.is_empty() {
            let value = match self.aggregate {
                Aggregate::Sum => Some(0.0),
                Aggregate::Prod => Some(1.0),
                _ => None,
            };
            return Ok(lit(ScalarValue::Float64(value)));
        } else {
            common_type(&typed.iter().map(|(_, dtype)| number(dtype)).collect::<Vec<_>>())?
        };
        let whole = common.is_integer();
        // Sums and products of narrow integers are wide, as in NumPy.
        let common = match self.aggregate {
            Aggregate::Sum | Aggregate::Prod if common.is_unsigned_integer() => DataType::UInt64,
            Aggregate::Sum | Aggregate::Prod if whole => DataType::Int64,
            _ => common,
        };
        let plain = |number: i64| as_type(lit(number), &DataType::Int64, &common);
        let values = typed.iter().map(|(value, _)| cast(value.clone(), common.clone()));
        Ok(match self.aggregate {
            Aggregate::Min => least(values.collect()),
            Aggregate::Max => greatest(values.collect()),
            Aggregate::Sum if whole => sum_of(values.map(|value| coalesce(vec![value, plain(0)]))),
            Aggregate::Prod => {
                let one = plain(1);
                let values = values.map(|value| coalesce(vec![value, one.clone()]));
                let product = values.reduce(|left, right| left * right).unwrap_or(lit(1.0));
                if common.is_floating() { present(product) } else { product }
            }
            aggregate => {
                let (number, part) = numbered(aggregate)?;
                let options = [lit(number), lit(part), lit(self.ddof as f64), lit(self.interpolation as i64)];
                let list = make_array(values.map(float).collect());
                let args = std::iter::once(list).chain(options).collect();
                present(rows::call(whole::ACROSS, args)?)
            }
        })
    }
}

/// Texts one behind the other.
fn joined(value: Expr, order: &[SortExpr]) -> Result<Expr> {
    let all = string_agg(cast(value, DataType::Utf8), lit("")).order_by(order.to_vec()).build()?;
    Ok(coalesce(vec![all, lit("")]))
}

fn float(value: Expr) -> Expr {
    cast(value, DataType::Float64)
}

/// The type of values as numbers: truth values among numbers are 0 and 1.
fn number(dtype: &DataType) -> DataType {
    if *dtype == DataType::Boolean { DataType::Int64 } else { dtype.clone() }
}

fn any_of(parts: impl Iterator<Item = Expr>) -> Expr {
    parts.reduce(Expr::or).unwrap_or_else(|| lit(false))
}

fn sum_of(parts: impl Iterator<Item = Expr>) -> Expr {
    parts.reduce(|left, right| left + right).unwrap_or_else(|| lit(0_i64))
}

/// The number of distinct values of a row that are there. Values of different kinds are never equal.
fn distinct(typed: &[(Expr, DataType)]) -> Expr {
    let mut kinds: BTreeMap<String, Vec<Expr>> = BTreeMap::new();
    for (value, dtype) in typed {
        let to = match dtype {
            dtype if dtype.is_numeric() || *dtype == DataType::Boolean => DataType::Float64,
            dtype if crate::value::is_text(dtype) => DataType::Utf8,
            other => other.clone(),
        };
        kinds.entry(to.to_string()).or_default().push(cast(value.clone(), to));
    }
    sum_of(kinds.into_values().map(|values| {
        let missing = any_of(values.iter().map(|value| value.clone().is_null()));
        let all = array_length(array_distinct(make_array(values)));
        cast(all, DataType::Int64) - cast(missing, DataType::Int64)
    }))
}
