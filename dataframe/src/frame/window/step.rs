//! The steps that go through rows in their order: shifts, running sums, filled values, ranks.

use super::fill::{FillLimit, LimitDirection};
use super::over::Over;
use super::span::{Span, finite};
use super::{in_order, over_window, rows, window};
use crate::error::{Error, Result};
use crate::frame::DataFrame;
use crate::frame::aggregate::Aggregate;
use crate::frame::group::GroupBy;
use crate::frame::series::Series;
use crate::functions::arithmetic::present;
use crate::functions::{
    ewm_cov, ewm_mean, ewm_sum, product, sliding_first, sliding_kurt, sliding_last, sliding_nunique,
    sliding_rank_max, sliding_rank_min, sliding_skew, sliding_sum, sliding_var,
};
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::{coalesce, sqrt};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, WindowFunctionDefinition, lit};

/// The rank of values that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankMethod {
    /// The mean of their ranks.
    Average,
    /// The lowest of their ranks.
    Min,
    /// The highest of their ranks.
    Max,
    /// Ranks in the order of rows.
    First,
    /// Like the lowest, but the next value has the next rank.
    Dense,
}

/// The ranks of missing values, which are equal to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaOption {
    /// The highest ranks, in either direction.
    Bottom,
    /// None: they stay missing.
    Keep,
    /// The lowest ranks, in either direction.
    Top,
}

/// Options of a rank: the method, the direction, whether ranks are parts of the whole, the ranks of missing
/// values.
///
/// ```
/// use tharsis_dataframe::{Rank, RankMethod, Series};
/// let points = Series::from_values("points", vec![7, 9, 7]);
/// let places = points.rank(Rank::by(RankMethod::Min).descending());
/// assert_eq!(places.values::<f64>()?, [Some(2.0), Some(1.0), Some(2.0)]);
/// assert_eq!(points.cumsum().values::<i64>()?, [Some(7), Some(16), Some(23)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    method: RankMethod,
    ascending: bool,
    pct: bool,
    na_option: NaOption,
}

impl Default for Rank {
    fn default() -> Rank {
        Rank { method: RankMethod::Average, ascending: true, pct: false, na_option: NaOption::Keep }
    }
}

impl Rank {
    /// Ranks by this method, from the smallest value.
    pub fn by(method: RankMethod) -> Rank {
        Rank { method, ..Rank::default() }
    }

    /// From the largest value to the smallest.
    pub fn descending(self) -> Rank {
        Rank { ascending: false, ..self }
    }

    /// Ranks as parts of the highest rank.
    pub fn pct(self) -> Rank {
        Rank { pct: true, ..self }
    }

    /// The ranks of missing values, which have none by default.
    pub fn na_option(self, na_option: NaOption) -> Rank {
        Rank { na_option, ..self }
    }
}

/// Weights that fade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fading {
    pub(super) alpha: f64,
    pub(super) adjust: bool,
    pub(super) min_periods: usize,
    pub(super) ignore_na: bool,
}

/// A step through rows in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Shift(i64),
    Diff(i64),
    PctChange(i64),
    /// The sum so far; as for the other running aggregates, whether missing values are left out.
    CumSum(bool),
    CumProd(bool),
    CumMin(bool),
    CumMax(bool),
    Ffill(FillLimit),
    Bfill(FillLimit),
    Interpolate(FillLimit),
    Rank(Rank),
    Rolling(Span, Aggregate),
    RollingRank(Span, Rank),
    EwmMean(Fading),
    /// The variance with weights that fade, or its root.
    EwmVar {
        fading: Fading,
        bias: bool,
        root: bool,
    },
    /// The sum with weights that fade.
    EwmSum(Fading),
    /// An aggregate of all rows, in each row.
    Whole(Aggregate),
}

impl Step {
    /// Whether it is made for values of a type.
    pub(crate) fn fits(&self, dtype: &DataType) -> bool {
        let number = dtype.is_numeric() || *dtype == DataType::Boolean;
        match self {
            Step::Shift(_) | Step::CumMin(_) | Step::CumMax(_) | Step::Rank(_) => true,
            Step::Ffill(_) | Step::Bfill(_) => true,
            Step::CumSum(_) => number || matches!(dtype, DataType::Duration(_)),
            Step::Diff(_) => number || dtype.is_temporal(),
            Step::Whole(aggregate) => aggregate.fits(dtype),
            _ => number,
        }
    }
}

impl Over {
    /// The expression of a step over values of a type.
    pub(crate) fn step(&self, step: &Step, value: Expr, dtype: &DataType) -> Result<Expr> {
        if !step.fits(dtype) {
            return Err(Error::Type(format!("this window is not made for values of type {dtype}")));
        }
        let number = |value: Expr| signed(value, dtype);
        Ok(match *step {
            Step::Shift(by) => self.shift(value, by),
            Step::Diff(by) => self.difference(value, dtype, by),
            Step::PctChange(by) => {
                let value = cast(value, DataType::Float64);
                present(value.clone() / self.shift(value, by) - lit(1.0))
            }
            Step::CumSum(skipna) if matches!(dtype, DataType::Duration(_)) => {
                self.running(crate::functions::checked::sum(), value, skipna)?
            }
            Step::CumSum(skipna) if *dtype == DataType::UInt64 => self.running(sum_udaf(), value, skipna)?,
            Step::CumSum(skipna) => checked(self.running(sum_udaf(), number(value), skipna)?, dtype),
            Step::CumProd(skipna) => checked(self.running(product(), number(value), skipna)?, dtype),
            Step::CumMin(skipna) => self.running(min_udaf(), value, skipna)?,
            Step::CumMax(skipna) => self.running(max_udaf(), value, skipna)?,
            Step::Ffill(limit) => self.filled(value, limit.direction(LimitDirection::Forward))?,
            Step::Bfill(limit) => self.filled(value, limit.direction(LimitDirection::Backward))?,
            // Truth values of which some are missing are no truth values in pandas.
            Step::Interpolate(_) if *dtype == DataType::Boolean => value,
            Step::Interpolate(limit) => self.interpolated(cast(value, DataType::Float64), limit)?,
            // One zero: the other one is equal to it, but comes before it in a sort.
            Step::Rank(rank) if dtype.is_floating() => self.rank(rank, value + lit(0.0))?,
            Step::Rank(rank) => self.rank(rank, value)?,
            Step::Rolling(span, aggregate) => self.rolling(span, aggregate, value)?,
            Step::RollingRank(span, rank) => self.rolling_rank(span, rank, value)?,
            Step::EwmMean(fading) => {
                let value = finite(value)?;
                let least = lit(fading.min_periods as f64);
                let args = vec![value, lit(fading.alpha), lit(fading.adjust), least, lit(fading.ignore_na)];
                self.running_call(ewm_mean(), args)
            }
            Step::EwmVar { fading, bias, root } => {
                let value = finite(value)?;
                let var = self.ewm_cov(value.clone(), value, fading, bias);
                if root { sqrt(var) } else { var }
            }
            Step::EwmSum(fading) => {
                let value = finite(value)?;
                let least = lit(fading.min_periods as i64);
                self.running_call(ewm_sum(), vec![value, lit(fading.alpha), least, lit(fading.ignore_na)])
            }
            Step::Whole(aggregate) => self.whole(aggregate, value, dtype)?,
        })
    }

    /// The difference to the value of this many rows before.
    fn difference(&self, value: Expr, dtype: &DataType, by: i64) -> Expr {
        let value = match dtype {
            // Differences of unsigned numbers have a sign, and no type of integers has both.
            DataType::UInt64 => cast(value, DataType::Float64),
            _ => signed(value, dtype),
        };
        checked(value.clone() - self.shift(value, by), dtype)
    }

    /// A covariance with weights that fade.
    pub(super) fn ewm_cov(&self, left: Expr, right: Expr, fading: Fading, bias: bool) -> Expr {
        let Fading { alpha, adjust, min_periods, ignore_na } = fading;
        let least = lit(min_periods as i64);
        let args = vec![left, right, lit(alpha), lit(adjust), least, lit(bias), lit(ignore_na)];
        self.running_call(ewm_cov(), args)
    }

    pub(crate) fn shift(&self, value: Expr, by: i64) -> Expr {
        let missing = lit(datafusion::common::ScalarValue::Null);
        // Not a negative lag: the planner takes each lag for one that needs no row behind.
        match by {
            0.. => self.running_call(lag_udwf(), vec![value, lit(by), missing]),
            _ => self.running_call(lead_udwf(), vec![value, lit(by.saturating_neg()), missing]),
        }
    }

    /// An aggregate of the values so far; missing where the value is, and behind such a row too unless
    /// missing values are left out.
    fn running(&self, fun: impl Into<WindowFunctionDefinition>, value: Expr, skipna: bool) -> Result<Expr> {
        let running = self.running_call(fun, vec![value.clone()]);
        let there = if skipna {
            value.is_not_null()
        } else {
            let present = self.running_call(count_udaf(), vec![value]);
            cast(present, DataType::UInt64).eq(self.position())
        };
        Ok(when(there, running).end()?)
    }

    fn rank(&self, rank: Rank, value: Expr) -> Result<Expr> {
        let float = |expr: Expr| cast(expr, DataType::Float64);
        let keep = rank.na_option == NaOption::Keep;
        let sorted = value.clone().sort(rank.ascending, rank.na_option == NaOption::Top);
        let ranked = |fun: WindowFunctionDefinition| {
            let frame = rows(None, Some(0));
            float(window(fun, Vec::new(), &self.keys, vec![sorted.clone()], frame))
        };
        let counted = |keys: &[Expr]| {
            let counted = if keep { value.clone() } else { lit(1_i64) };
            float(window(count_udaf(), vec![counted], keys, Vec::new(), rows(None, None)))
        };
        let equals: Vec<Expr> = self.keys.iter().cloned().chain([value.clone()]).collect();
        let lowest = ranked(rank_udwf().into());
        let ranks = match rank.method {
            RankMethod::Min => lowest,
            RankMethod::Max => lowest + counted(&equals) - lit(1.0),
            RankMethod::Average => lowest + (counted(&equals) - lit(1.0)) / lit(2.0),
            RankMethod::Dense => ranked(dense_rank_udwf().into()),
            RankMethod::First => {
                let order = vec![sorted, in_order()];
                let frame = rows(None, Some(0));
                float(window(row_number_udwf(), Vec::new(), &self.keys, order, frame))
            }
        };
        let ranks = if keep { when(value.clone().is_not_null(), ranks).end()? } else { ranks };
        let highest = match (rank.pct, rank.method) {
            (false, _) => return Ok(ranks),
            (true, RankMethod::Dense) => {
                window(max_udaf(), vec![ranks.clone()], &self.keys, Vec::new(), rows(None, None))
            }
            (true, _) => counted(&self.keys),
        };
        Ok(ranks / highest)
    }

    pub(super) fn rolling(&self, span: Span, aggregate: Aggregate, value: Expr) -> Result<Expr> {
        span.check()?;
        // An infinite value is one of the values, though no aggregate of them takes it.
        let value = match aggregate {
            Aggregate::Count if !span.is_empty() => cast(value, DataType::Float64),
            _ => span.values(value)?,
        };
        let over = |aggregate: Aggregate| {
            let expr = aggregate.expr(value.clone(), &DataType::Float64, &[])?;
            over_window(expr, &self.keys, vec![in_order()], span.frame())
        };
        let own = |fun: WindowFunctionDefinition| {
            window(fun, vec![value.clone()], &self.keys, vec![in_order()], span.frame())
        };
        let count = over(Aggregate::Count)?;
        let rolled = match aggregate {
            Aggregate::Sum => coalesce(vec![own(sliding_sum().into()), lit(0.0)]),
            Aggregate::Mean => own(sliding_sum().into()) / cast(count.clone(), DataType::Float64),
            Aggregate::Var if span.is_short() => own(sliding_var().into()),
            Aggregate::Std if span.is_short() => sqrt(own(sliding_var().into())),
            Aggregate::Sem => {
                let deviation =
                    if span.is_short() { sqrt(own(sliding_var().into())) } else { over(Aggregate::Std)? };
                deviation / sqrt(cast(count.clone(), DataType::Float64))
            }
            Aggregate::First => own(sliding_first().into()),
            Aggregate::Last => own(sliding_last().into()),
            Aggregate::Nunique => coalesce(vec![own(sliding_nunique().into()), lit(0.0)]),
            Aggregate::Skew if span.moves() => own(sliding_skew().into()),
            Aggregate::Kurt if span.moves() => own(sliding_kurt().into()),
            _ => cast(over(aggregate)?, DataType::Float64),
        };
        let enough = match aggregate {
            // The rows of the window count, not those with a value.
            Aggregate::Count if !span.is_empty() => over(Aggregate::Size)?,
            _ => count,
        };
        Ok(when(enough.gt_eq(lit(span.least() as i64)), rolled).end()?)
    }

    /// The rank of each row's value among those of its window.
    fn rolling_rank(&self, span: Span, rank: Rank, value: Expr) -> Result<Expr> {
        span.check()?;
        let value = span.values(value)?;
        let sign = if rank.ascending { 1.0 } else { -1.0 };
        let own = |fun: WindowFunctionDefinition| {
            window(
                fun,
                vec![value.clone() * lit(sign) + lit(0.0)],
                &self.keys,
                vec![in_order()],
                span.frame(),
            )
        };
        let (lowest, highest) = (own(sliding_rank_min().into()), own(sliding_rank_max().into()));
        let ranks = match rank.method {
            RankMethod::Min => lowest,
            RankMethod::Max => highest,
            RankMethod::Average => (lowest + highest) / lit(2.0),
            other => return Err(Error::Value(format!("ranks of windows are not made by {other:?}"))),
        };
        let count = over_window(
            Aggregate::Count.expr(value, &DataType::Float64, &[])?,
            &self.keys,
            vec![in_order()],
            span.frame(),
        )?;
        let ranks = if rank.pct { ranks / cast(count.clone(), DataType::Float64) } else { ranks };
        Ok(when(count.gt_eq(lit(span.least() as i64)), ranks).end()?)
    }

    fn whole(&self, aggregate: Aggregate, value: Expr, dtype: &DataType) -> Result<Expr> {
        let order = match aggregate {
            Aggregate::First | Aggregate::Last => vec![in_order()],
            _ => Vec::new(),
        };
        over_window(aggregate.expr(value, dtype, &[])?, &self.keys, order, rows(None, None))
    }
}

/// Truth values and unsigned numbers as whole numbers with a sign.
fn signed(value: Expr, dtype: &DataType) -> Expr {
    match dtype {
        DataType::Boolean => cast(value, DataType::Int64),
        _ if dtype.is_unsigned_integer() => cast(value, DataType::Int64),
        _ => value,
    }
}

/// A result that is missing where it is no number: infinities can cancel each other.
fn checked(result: Expr, dtype: &DataType) -> Expr {
    if dtype.is_floating() { present(result) } else { result }
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty)?) $step:expr;)*) => {
        steps!(@of Series, Series; $($(#[$doc])* $name($($arg: $type)?) $step;)*);
        steps!(@of DataFrame, DataFrame; $($(#[$doc])* $name($($arg: $type)?) $step;)*);
        steps!(@of GroupBy, DataFrame; $($(#[$doc])* $name($($arg: $type)?) $step;)*);
    };
    (@of $from:ident, $to:ident; $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty)?) $step:expr;)*) => {
        impl $from {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self $(, $arg: $type)?) -> $to {
                self.window_step(&$step)
            })*
        }
    };
}

steps!(
    /// The values of this many rows before, or after if it is negative; missing where there is no such row.
    shift(by: i64) Step::Shift(by);
    /// The difference to the value of this many rows before.
    diff(by: i64) Step::Diff(by);
    /// The change from the value of this many rows before, as a part of it.
    pct_change(by: i64) Step::PctChange(by);
    /// The sum of the values so far; missing values stay and add nothing.
    cumsum() Step::CumSum(true);
    /// The product of the values so far; missing values stay and change nothing.
    cumprod() Step::CumProd(true);
    /// The smallest value so far; missing values stay.
    cummin() Step::CumMin(true);
    /// The largest value so far; missing values stay.
    cummax() Step::CumMax(true);
    /// The values, and where they are missing the last one before.
    ffill() Step::Ffill(FillLimit::default());
    /// The values, and where they are missing the next one.
    bfill() Step::Bfill(FillLimit::default());
    /// The values, and where they are missing those on a line between their neighbours, by position. Behind
    /// the last value it is repeated; before the first one they stay missing.
    interpolate() Step::Interpolate(FillLimit::default());
    /// As [`Series::cumsum`]; unless missing values are left out, all from the first one on are missing.
    cumsum_skipna(skipna: bool) Step::CumSum(skipna);
    /// As [`Series::cumprod`]; unless missing values are left out, all from the first one on are missing.
    cumprod_skipna(skipna: bool) Step::CumProd(skipna);
    /// As [`Series::cummin`]; unless missing values are left out, all from the first one on are missing.
    cummin_skipna(skipna: bool) Step::CumMin(skipna);
    /// As [`Series::cummax`]; unless missing values are left out, all from the first one on are missing.
    cummax_skipna(skipna: bool) Step::CumMax(skipna);
    /// As [`Series::ffill`], for some of the missing values only; `ValueError` for a limit of no rows. The
    /// direction of the limit does not count.
    ffill_limited(limit: FillLimit) Step::Ffill(limit);
    /// As [`Series::bfill`], for some of the missing values only; `ValueError` for a limit of no rows. The
    /// direction of the limit does not count.
    bfill_limited(limit: FillLimit) Step::Bfill(limit);
    /// As [`Series::interpolate`], for some of the missing values only; `ValueError` for a limit of no rows.
    /// Before the first value it is repeated if the direction allows.
    interpolate_limited(limit: FillLimit) Step::Interpolate(limit);
    /// The place of each value among all, from 1; missing values have none.
    rank(options: Rank) Step::Rank(options);
);
