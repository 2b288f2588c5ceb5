//! Numbers by the intervals that they lie in.

use super::Series;
use super::elementwise::check_numbers;
use crate::error::{Error, Result};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};

/// The interval of each number as a text like `(0.0, 1.5]`, or its label; missing outside of all. An interval
/// is without its lower bound. pandas gives categories, which print alike.
///
/// ```
/// use tharsis_dataframe::{Series, cut};
/// let ages = Series::from_values("age", vec![4, 30, 70]);
/// let groups = cut(&ages, &[0.0, 18.0, 65.0], Some(&["child", "adult"]));
/// assert_eq!(groups.values::<String>()?, [Some("child".to_owned()), Some("adult".to_owned()), None]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn cut(series: &Series, bounds: &[f64], labels: Option<&[&str]>) -> Series {
    binned(series, bounds, labels, false)
}

/// The interval of each number between quantiles: `count` intervals with about as many numbers each, as
/// texts or labels. It computes the quantiles at once, which runs the plan.
#[track_caller]
#[must_use]
pub fn qcut(series: &Series, count: usize, labels: Option<&[&str]>) -> Series {
    let bounds = (0..=count).map(|at| {
        let quantile = series.quantile(at as f64 / count.max(1) as f64)?;
        quantile.as_f64().ok_or_else(|| Error::Value("no numbers to take quantiles of".to_owned()))
    });
    match bounds.collect::<Result<Vec<f64>>>() {
        Ok(bounds) => binned(series, &bounds, labels, true),
        Err(error) => Series::new(Err(error), series.name.clone()),
    }
}

#[track_caller]
fn binned(series: &Series, bounds: &[f64], labels: Option<&[&str]>, lowest: bool) -> Series {
    let dtype = series.dtype();
    series.map_expr(|expr| {
        check_numbers(&dtype?, "cut")?;
        if bounds.len() < 2 || bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::Value("bin edges must be unique and grow".to_owned()));
        }
        if labels.is_some_and(|labels| labels.len() + 1 != bounds.len()) {
            return Err(Error::Value("there must be one label less than bin edges".to_owned()));
        }
        let label = |at: usize| match labels {
            Some(labels) => labels[at].to_owned(),
            // The lowest interval has its bound, which pandas writes as one just below.
            None if at == 0 && lowest => format!("({:?}, {:?}]", below(bounds[0]), shown(bounds[1])),
            None => format!("({:?}, {:?}]", shown(bounds[at]), shown(bounds[at + 1])),
        };
        let inside = |at: usize| -> Expr {
            let above = match at == 0 && lowest {
                true => expr.clone().gt_eq(lit(bounds[at])),
                false => expr.clone().gt(lit(bounds[at])),
            };
            above.and(expr.clone().lt_eq(lit(bounds[at + 1])))
        };
        let mut cases = when(inside(0), lit(label(0)));
        for at in 1..bounds.len() - 1 {
            cases.when(inside(at), lit(label(at)));
        }
        Ok(cases.otherwise(lit(ScalarValue::Utf8(None)))?)
    })
}

/// A bound with three decimals.
fn shown(bound: f64) -> f64 {
    (bound * 1_000.0).round_ties_even() / 1_000.0
}

fn below(bound: f64) -> f64 {
    shown(bound - 0.001)
}
