//! Functions of single numbers under NumPy's names, and values put in place of others.

use super::Series;
use super::mapped::{is_held, mapped};
use crate::error::{Error, Result};
use crate::functions::arithmetic::{clip, present};
use crate::functions::rows::{ROUND, call};
use crate::promotion::{OutOfRange, as_type, of_exprs};
use crate::value::{Value, is_text};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn as functions;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// A number rounded to decimals, halves to even ones. Integers stay integers.
pub(crate) fn rounded(expr: Expr, dtype: &DataType, decimals: i32) -> Result<Expr> {
    check_numbers(dtype, "round")?;
    if *dtype == DataType::Boolean || (!dtype.is_floating() && decimals >= 0) {
        return Ok(expr);
    }
    let float = cast(expr, DataType::Float64);
    Ok(cast(call(ROUND, vec![float, lit(i64::from(decimals))])?, dtype.clone()))
}

/// Refuses what are no numbers or truth values.
pub(crate) fn check_numbers(dtype: &DataType, what: &str) -> Result<()> {
    if dtype.is_numeric() || matches!(dtype, DataType::Boolean | DataType::Null) {
        Ok(())
    } else {
        Err(Error::Type(format!("{what} is not made for values of type {dtype}")))
    }
}

/// Whether a value can be one of a type: truth values, numbers and others are apart.
fn is_of_kind(value: &Value, dtype: &DataType) -> bool {
    let dtype = if let DataType::Dictionary(_, values) = dtype { values } else { dtype };
    let own = value.dtype();
    value.is_missing()
        || *dtype == DataType::Null
        || (own.is_numeric(), own == DataType::Boolean) == (dtype.is_numeric(), *dtype == DataType::Boolean)
}

/// The value moved into bounds; a missing bound is none.
pub(crate) fn clipped(expr: Expr, dtype: &DataType, lower: &Value, upper: &Value) -> Result<Expr> {
    if *dtype == DataType::Boolean {
        let (low, high) = (lower.as_f64(), upper.as_f64());
        // Truth values are 0 and 1, so that these bounds move none.
        if low.is_none_or(|low| low <= 0.0) && high.is_none_or(|high| 1.0 <= high) {
            return Ok(expr);
        }
    }
    let bounds = [lower, upper].map(|bound| (lit(bound.0.clone()), bound.dtype()));
    // A bound that is no number of the column's type widens it.
    let mut common = dtype.clone();
    for (bound, of) in bounds.iter().filter(|(_, of)| *of != DataType::Null) {
        match of_exprs((&expr, &common), (bound, of), OutOfRange::Widens)? {
            Some(wider) => common = wider,
            // Texts, and times, of the column's own form.
            None if common == *of || (is_text(&common) && is_text(of)) => {}
            None if common.is_temporal() && of.is_temporal() => {}
            // Decimals stay what they are if they have the bound, which a float has only nearly.
            None if common.is_numeric() && of.is_numeric() => {
                if !is_held(bound, &common) {
                    common = DataType::Float64;
                }
            }
            None => return Err(Error::Type(format!("values of {dtype} and {of} have no order"))),
        }
    }
    let [low, high] = bounds.map(|(bound, of)| as_type(bound, &of, &common));
    Ok(match (lower.is_missing(), upper.is_missing()) {
        (true, true) => expr,
        _ => clip(as_type(expr, dtype, &common), low, high),
    })
}

/// A source of a value for each value: pairs of them, or a function of the program.
pub trait Mapping {
    /// The series of the values that it gives.
    fn over(self, series: &Series) -> Series;
}

impl<I: IntoIterator<Item = (K, V)>, K: Into<Value>, V: Into<Value>> Mapping for I {
    #[track_caller]
    fn over(self, series: &Series) -> Series {
        let pairs = self.into_iter().map(|(from, to)| (from.into(), to.into()));
        let dtype = series.dtype().unwrap_or(DataType::Null);
        let pairs: Vec<(Value, Value)> = pairs.filter(|(from, _)| is_of_kind(from, &dtype)).collect();
        // Missing values without a type would fit into no file.
        let missing = if pairs.is_empty() { ScalarValue::Float64(None) } else { ScalarValue::Null };
        series.map_expr(|expr| mapped(&expr, &pairs, (lit(missing), &DataType::Null)))
    }
}

impl Series {
    /// A value for each value: of pairs, the second one for the first, and missing where no pair has the
    /// value; or what a function of the program gives. A function whose parameter is no `Option` is not
    /// called for missing values, which stay missing.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let size = Series::from_values("size", vec!["S", "L", "?"]).map([("S", 1), ("L", 3)]);
    /// assert_eq!(size.values::<i64>()?, [Some(1), Some(3), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn map(&self, mapping: impl Mapping) -> Series {
        mapping.over(self)
    }

    /// The second value of each pair in place of the first; other values stay.
    #[track_caller]
    pub fn replace<K: Into<Value>, V: Into<Value>>(&self, pairs: impl IntoIterator<Item = (K, V)>) -> Series {
        let dtype = self.dtype().unwrap_or(DataType::Null);
        let pairs = pairs.into_iter().map(|(from, to)| (from.into(), to.into()));
        let pairs: Vec<(Value, Value)> = pairs.filter(|(from, _)| is_of_kind(from, &dtype)).collect();
        self.map_expr(|expr| mapped(&expr, &pairs, (expr.clone(), &dtype)))
    }

    /// Values below the first bound or above the second one moved to it; [`Value::missing`] is no bound.
    #[track_caller]
    pub fn clip(&self, lower: impl Into<Value>, upper: impl Into<Value>) -> Series {
        let (lower, upper) = (lower.into(), upper.into());
        let dtype = self.dtype();
        self.map_expr(|expr| clipped(expr, &dtype?, &lower, &upper))
    }

    /// 1, 0 or -1, with the sign of each number.
    #[track_caller]
    pub fn sign(&self) -> Series {
        let dtype = self.dtype();
        self.map_expr(|expr| {
            let dtype = dtype?;
            check_numbers(&dtype, "sign")?;
            let zero = || cast(lit(0_i64), dtype.clone());
            let sign = when(expr.clone().gt(zero()), lit(1_i64))
                .when(expr.clone().lt(zero()), lit(-1_i64))
                .when(expr.eq(zero()), lit(0_i64))
                .end()?;
            Ok(cast(sign, dtype))
        })
    }

    /// A function of floats; where its result is not a number, it is missing.
    #[track_caller]
    fn float(&self, name: &str, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        let dtype = self.dtype();
        self.map_expr(|expr| {
            check_numbers(&dtype?, name)?;
            Ok(present(step(cast(expr, DataType::Float64))?))
        })
    }

    /// A function that leaves integers alone.
    #[track_caller]
    fn to_whole(&self, name: &str, step: fn(Expr) -> Expr) -> Series {
        match self.dtype() {
            Ok(dtype) if dtype.is_integer() => self.clone(),
            _ => self.float(name, |expr| Ok(step(expr))),
        }
    }

    /// The largest integer that is not above each number.
    #[track_caller]
    pub fn floor(&self) -> Series {
        self.to_whole("floor", functions::floor)
    }

    /// The smallest integer that is not below each number.
    #[track_caller]
    pub fn ceil(&self) -> Series {
        self.to_whole("ceil", functions::ceil)
    }

    /// Each number without its decimals.
    #[track_caller]
    pub fn trunc(&self) -> Series {
        self.to_whole("trunc", |expr| functions::trunc(vec![expr]))
    }

    /// Each number times itself, with the same type.
    #[track_caller]
    pub fn square(&self) -> Series {
        self * self
    }
}

/// The value where a condition on it holds, missing elsewhere: functions fail outside their domain.
fn within(expr: Expr, domain: fn(Expr) -> Expr) -> Result<Expr> {
    Ok(when(domain(expr.clone()), expr).end()?)
}

fn not_negative(expr: Expr) -> Result<Expr> {
    within(expr, |expr| expr.gt_eq(lit(0.0)))
}

/// The logarithm of one more than a number, exact for small numbers too.
fn log1p(expr: Expr) -> Result<Expr> {
    let expr = within(expr, |expr| expr.gt_eq(lit(-1.0)))?;
    let more = expr.clone() + lit(1.0);
    let exact = functions::ln(more.clone()) * (expr.clone() / (more.clone() - lit(1.0)));
    let infinite = more.clone().eq(lit(f64::INFINITY));
    Ok(when(more.eq(lit(1.0)).or(infinite), expr).otherwise(exact)?)
}

/// One less than a power of e, exact for small numbers too.
fn expm1(expr: Expr) -> Result<Expr> {
    let power = functions::exp(expr.clone());
    let less = power.clone() - lit(1.0);
    let exact = less.clone() * (expr.clone() / functions::ln(power.clone()));
    let far = expr.clone().gt(lit(1.0)).or(expr.clone().lt(lit(-1.0)));
    Ok(when(power.eq(lit(1.0)), expr).when(far, less).otherwise(exact)?)
}

macro_rules! float_functions {
    ($($(#[$doc:meta])* $name:ident $step:expr),*) => {
        impl Series {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Series {
                self.float(stringify!($name), $step)
            })*
        }
    };
}

float_functions!(
    /// The square root; missing for negative numbers.
    sqrt |expr| Ok(functions::sqrt(not_negative(expr)?)),
    /// The cube root of each number.
    cbrt |expr| Ok(functions::cbrt(expr)),
    /// The power of e with each number.
    exp |expr| Ok(functions::exp(expr)),
    /// One less than the power of e, exact near 0.
    expm1 expm1,
    /// The natural logarithm; missing for negative numbers.
    log |expr| Ok(functions::ln(not_negative(expr)?)),
    /// The logarithm to base 2; missing for negative numbers.
    log2 |expr| Ok(functions::log2(not_negative(expr)?)),
    /// The logarithm to base 10; missing for negative numbers.
    log10 |expr| Ok(functions::log10(not_negative(expr)?)),
    /// The natural logarithm of one more, exact near 0.
    log1p log1p,
    /// One divided by each number.
    reciprocal |expr| Ok(lit(1.0) / expr),
    /// The sine of each angle.
    sin |expr| Ok(functions::sin(expr)),
    /// The cosine of each angle.
    cos |expr| Ok(functions::cos(expr)),
    /// The tangent of each angle.
    tan |expr| Ok(functions::tan(expr)),
    /// The angle with each sine; missing outside -1 to 1.
    arcsin |expr| Ok(functions::asin(within(expr, |expr| expr.between(lit(-1.0), lit(1.0)))?)),
    /// The angle with each cosine; missing outside -1 to 1.
    arccos |expr| Ok(functions::acos(within(expr, |expr| expr.between(lit(-1.0), lit(1.0)))?)),
    /// The angle with each tangent.
    arctan |expr| Ok(functions::atan(expr)),
    /// The hyperbolic sine of each number.
    sinh |expr| Ok(functions::sinh(expr)),
    /// The hyperbolic cosine of each number.
    cosh |expr| Ok(functions::cosh(expr)),
    /// The hyperbolic tangent of each number.
    tanh |expr| Ok(functions::tanh(expr)),
    /// Each angle in degrees, from radians.
    degrees |expr| Ok(functions::degrees(expr)),
    /// Each angle in radians, from degrees.
    radians |expr| Ok(functions::radians(expr))
);
