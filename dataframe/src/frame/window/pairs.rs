//! Covariances and correlations of two series over windows.

use super::span::Span;
use super::{Ewm, Over, Rolling};
use crate::error::Result;
use crate::frame::JoinKind;
use crate::frame::aggregate::Aggregate;
use crate::frame::series::Series;
use crate::functions::arithmetic::present;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::sqrt;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// Both values, as floats, where both are there.
fn pair(left: &Expr, right: &Expr) -> Result<(Expr, Expr)> {
    let float = |expr: &Expr| cast(expr.clone(), DataType::Float64);
    let both = |own: &Expr, other: &Expr| when(other.clone().is_not_null(), float(own)).end();
    Ok((both(left, right)?, both(right, left)?))
}

/// The covariance of a window's pairs, of two variances: that of the sums and that of the differences.
fn covariance(span: Span, left: &Expr, right: &Expr) -> Result<Expr> {
    let variance = |values: Expr| Over::default().rolling(span, Aggregate::Var, values);
    let (sums, differences) = (left.clone() + right.clone(), left.clone() - right.clone());
    Ok((variance(sums)? - variance(differences)?) / lit(4.0))
}

fn correlation(covariance: Expr, left: Expr, right: Expr) -> Result<Expr> {
    let spread = sqrt(left.clone()) * sqrt(right.clone());
    let some = left.gt(lit(0.0)).and(right.gt(lit(0.0)));
    Ok(present(when(some, covariance / spread).end()?))
}

/// A measure of two series over the rows of both.
#[track_caller]
fn of_pairs(own: &Series, other: &Series, measure: impl FnOnce(&Expr, &Expr) -> Result<Expr>) -> Series {
    let (left, right) = own.align(other, JoinKind::Outer);
    let made = left.parts().and_then(|(frame, left)| {
        let (left, right) = pair(left, right.parts()?.1)?;
        Ok((Arc::clone(frame), measure(&left, &right)?))
    });
    Series::new(made, own.name().filter(|name| other.name() == Some(name)).map(str::to_owned))
}

impl Rolling<Series> {
    /// The covariance with another series in each window, over the rows in which both have a value.
    #[track_caller]
    pub fn cov(&self, other: &Series) -> Series {
        of_pairs(&self.of, other, |left, right| {
            self.span.check()?;
            covariance(self.span, left, right)
        })
    }

    /// The correlation with another series in each window, over the rows in which both have a value.
    #[track_caller]
    pub fn corr(&self, other: &Series) -> Series {
        of_pairs(&self.of, other, |left, right| {
            self.span.check()?;
            let variance = |values: &Expr| Over::default().rolling(self.span, Aggregate::Var, values.clone());
            correlation(covariance(self.span, left, right)?, variance(left)?, variance(right)?)
        })
    }
}

impl Ewm<Series> {
    /// The weighted covariance with another series, over the rows so far in which both have a value.
    #[track_caller]
    pub fn cov(&self, other: &Series) -> Series {
        of_pairs(&self.of, other, |left, right| self.faded(left, right, self.bias))
    }

    /// The weighted correlation with another series, over the rows so far in which both have a value.
    #[track_caller]
    pub fn corr(&self, other: &Series) -> Series {
        of_pairs(&self.of, other, |left, right| {
            let both = self.faded(left, right, true)?;
            correlation(both, self.faded(left, left, true)?, self.faded(right, right, true)?)
        })
    }

    fn faded(&self, left: &Expr, right: &Expr, bias: bool) -> Result<Expr> {
        Ok(Over::default().ewm_cov(left.clone(), right.clone(), self.fading()?, bias))
    }
}
