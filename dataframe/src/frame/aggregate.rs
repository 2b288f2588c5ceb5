//! Aggregates: functions of the values of a group, as expressions.

use crate::error::{Error, Result};
use crate::functions::arithmetic::present;
use crate::functions::whole;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn as functions;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprFunctionExt, SortExpr, lit};

/// A function of the values of a group. Missing values are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// The sum; 0 without values.
    Sum,
    /// The arithmetic mean.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The number of values that are there.
    Count,
    /// The number of rows, with those that miss the value.
    Size,
    /// The number of distinct values.
    Nunique,
    /// The first value that is there.
    First,
    /// The last value that is there.
    Last,
    /// The standard deviation of a sample.
    Std,
    /// The variance of a sample.
    Var,
    /// The standard error of the mean.
    Sem,
    /// The middle value.
    Median,
    /// The value below which this part of the values lies, between neighbours if need be.
    Quantile(f64),
    /// Whether any value is true.
    Any,
    /// Whether all values are true.
    All,
    /// The product; 1 without values.
    Prod,
    /// The skewness of a sample.
    Skew,
    /// The excess kurtosis of a sample.
    Kurt,
}

impl Aggregate {
    /// The aggregate with a pandas name.
    ///
    /// # Errors
    /// `ValueError` for a name that is none.
    pub fn named(name: &str) -> Result<Aggregate> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, aggregate)| *aggregate).ok_or_else(|| {
            let near = crate::error::nearest(name, NAMES.iter().map(|(known, _)| *known));
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            Error::Value(format!("no aggregate {name:?}{hint}"))
        })
    }

    /// The name that pandas gives it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let found =
            NAMES.iter().find(|(_, known)| std::mem::discriminant(known) == std::mem::discriminant(self));
        found.map_or("quantile", |(name, _)| name)
    }

    /// Whether it is made for values of a type.
    pub(crate) fn fits(self, dtype: &DataType) -> bool {
        self.fits_plain(dtype) || self.measures(dtype)
    }

    /// Whether these are durations that it is a measure of: that of their numbers of units, as a duration.
    pub(crate) fn measures(self, dtype: &DataType) -> bool {
        let is_length = matches!(
            self,
            Aggregate::Sum
                | Aggregate::Mean
                | Aggregate::Std
                | Aggregate::Sem
                | Aggregate::Median
                | Aggregate::Quantile(_)
        );
        is_length && matches!(dtype, DataType::Duration(_))
    }

    /// As [`Aggregate::fits`], for all values and not for groups of them: pandas has standard errors of
    /// durations for groups only.
    pub(crate) fn fits_whole(self, dtype: &DataType) -> bool {
        self.fits_plain(dtype) || (self != Aggregate::Sem && self.measures(dtype))
    }

    /// As [`Aggregate::fits`], for results that share one type: measures of durations and of numbers do not.
    pub(crate) fn fits_plain(self, dtype: &DataType) -> bool {
        match self {
            Aggregate::Sum
            | Aggregate::Mean
            | Aggregate::Std
            | Aggregate::Var
            | Aggregate::Sem
            | Aggregate::Median
            | Aggregate::Prod
            | Aggregate::Skew
            | Aggregate::Kurt
            | Aggregate::Quantile(_) => dtype.is_numeric() || *dtype == DataType::Boolean,
            Aggregate::Any | Aggregate::All => {
                dtype.is_numeric() || *dtype == DataType::Boolean || crate::value::is_text(dtype)
            }
            _ => true,
        }
    }

    /// The expression that computes it. `order` gives the order of rows.
    pub(crate) fn expr(self, value: Expr, dtype: &DataType, order: &[SortExpr]) -> Result<Expr> {
        if !self.fits(dtype) {
            let name = self.name();
            return Err(Error::Type(format!("{name} is not made for values of type {dtype}")));
        }
        if self == Aggregate::Sum && self.measures(dtype) {
            let zero = cast(lit(0_i64), dtype.clone());
            return Ok(coalesce(vec![crate::functions::checked::sum().call(vec![value]), zero]));
        }
        if self.measures(dtype) {
            let found = self.expr(cast(value, DataType::Int64), &DataType::Int64, order)?;
            return Ok(as_duration(found, dtype));
        }
        let float = |expr: Expr| cast(expr, DataType::Float64);
        let number = |expr: Expr| match dtype {
            DataType::Boolean => cast(expr, DataType::Int64),
            _ => expr,
        };
        let is_true = |expr: Expr| truth(expr, dtype);
        // Infinities can cancel each other, and what is no number is missing.
        let checked = |expr: Expr| if dtype.is_floating() { present(expr) } else { expr };
        Ok(match self {
            Aggregate::Sum => checked(sum(number(value), dtype)?),
            Aggregate::Mean => checked(functions::avg(float(value))),
            Aggregate::Min => functions::min(value),
            Aggregate::Max => functions::max(value),
            Aggregate::Count => functions::count(value),
            Aggregate::Size => functions::count(lit(1_i64)),
            Aggregate::Nunique => functions::count_distinct(value),
            Aggregate::First => in_order(functions::first_value(value, Vec::new()), order)?,
            Aggregate::Last => in_order(functions::last_value(value, Vec::new()), order)?,
            Aggregate::Std => checked(functions::stddev(float(value))),
            Aggregate::Var => checked(functions::var_sample(float(value))),
            Aggregate::Sem => {
                let count = cast(functions::count(value.clone()), DataType::Float64);
                checked(functions::stddev(float(value)) / datafusion::functions::expr_fn::sqrt(count))
            }
            Aggregate::Median => checked(functions::median(float(value))),
            Aggregate::Quantile(part) => checked(quantile(float(value), part)?),
            Aggregate::Any => coalesce(vec![functions::bool_or(is_true(value)), lit(false)]),
            Aggregate::All => coalesce(vec![functions::bool_and(is_true(value)), lit(true)]),
            Aggregate::Prod if dtype.is_floating() => present(product(float(value), lit(1.0))),
            Aggregate::Prod => product(cast(value, DataType::Int64), lit(1_i64)),
            Aggregate::Skew => checked(crate::functions::skewness().call(vec![float(value)])),
            Aggregate::Kurt => checked(crate::functions::kurtosis().call(vec![float(value)])),
        })
    }
}

const NAMES: [(&str, Aggregate); 19] = [
    ("sum", Aggregate::Sum),
    ("mean", Aggregate::Mean),
    ("min", Aggregate::Min),
    ("max", Aggregate::Max),
    ("count", Aggregate::Count),
    ("size", Aggregate::Size),
    ("nunique", Aggregate::Nunique),
    ("first", Aggregate::First),
    ("last", Aggregate::Last),
    ("std", Aggregate::Std),
    ("var", Aggregate::Var),
    ("sem", Aggregate::Sem),
    ("median", Aggregate::Median),
    ("quantile", Aggregate::Quantile(0.5)),
    ("any", Aggregate::Any),
    ("all", Aggregate::All),
    ("prod", Aggregate::Prod),
    ("skew", Aggregate::Skew),
    ("kurt", Aggregate::Kurt),
];

/// A number of units as a duration; parts of a unit are cut off, as in pandas.
pub(super) fn as_duration(units: Expr, dtype: &DataType) -> Expr {
    cast(cast(units, DataType::Int64), dtype.clone())
}

/// A product that is one without values.
fn product(value: Expr, one: Expr) -> Expr {
    coalesce(vec![crate::functions::product().call(vec![value]), one])
}

/// A sum that is zero without values. Beside a zero of another type the sum would have a third one.
fn sum(value: Expr, dtype: &DataType) -> Result<Expr> {
    let wide = match dtype {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
        decimal if decimal.is_decimal() => sum_udaf().return_type(std::slice::from_ref(decimal))?,
        _ if dtype.is_unsigned_integer() => DataType::UInt64,
        _ => DataType::Int64,
    };
    let zero = lit(ScalarValue::new_zero(&wide)?);
    Ok(coalesce(vec![functions::sum(value), zero]))
}

fn in_order(call: Expr, order: &[SortExpr]) -> Result<Expr> {
    Ok(call
        .order_by(order.to_vec())
        .null_treatment(datafusion::logical_expr::expr::NullTreatment::IgnoreNulls)
        .build()?)
}

fn quantile(value: Expr, part: f64) -> Result<Expr> {
    if (0.0..=1.0).contains(&part) {
        Ok(crate::functions::quantile().call(vec![value, lit(part)]))
    } else {
        Err(Error::Value(format!("a quantile lies between 0 and 1, not at {part}")))
    }
}

/// Whether a value is true: one that is not zero, or not empty.
pub(super) fn truth(value: Expr, dtype: &DataType) -> Expr {
    match dtype {
        DataType::Boolean => value,
        dtype if crate::value::is_text(dtype) => value.not_eq(lit("")),
        _ => value.not_eq(cast(lit(0_i64), dtype.clone())),
    }
}

/// The number of an aggregate in a call, and the part of a quantile.
pub(super) fn numbered(how: Aggregate) -> Result<(i64, f64)> {
    let number = match how {
        Aggregate::Sum => whole::SUM,
        Aggregate::Mean => whole::MEAN,
        Aggregate::Min => whole::MIN,
        Aggregate::Max => whole::MAX,
        Aggregate::Count => whole::COUNT,
        Aggregate::Std => whole::STD,
        Aggregate::Var => whole::VAR,
        Aggregate::Sem => whole::SEM,
        Aggregate::Skew => whole::SKEW,
        Aggregate::Kurt => whole::KURT,
        Aggregate::Nunique => whole::NUNIQUE,
        Aggregate::First => whole::FIRST,
        Aggregate::Last => whole::LAST,
        Aggregate::Median => return Ok((whole::QUANTILE, 0.5)),
        Aggregate::Quantile(part) => return Ok((whole::QUANTILE, part)),
        other => return Err(Error::NotImplemented(format!("{} of a window", other.name()))),
    };
    Ok((number, 0.0))
}
