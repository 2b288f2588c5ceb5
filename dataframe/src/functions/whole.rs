//! Window functions that see all rows of a partition at once: covariances with weights that fade, and
//! aggregates over spans of time.

use super::quantile::LINEAR;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The function of a partition's columns.
type Run = fn(&[ArrayRef]) -> Result<Float64Array>;

/// The window function `tharsis_ewm_cov` of two columns: alpha, whether weights are adjusted, the number of
/// pairs from which there is a value, whether it is biased, whether missing pairs make no others older.
pub(crate) fn ewm_cov() -> Arc<WindowUDF> {
    static COV: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(COV.get_or_init(|| function("tharsis_ewm_cov", covariances)))
}

/// The window function `tharsis_ewm_sum` of a column: alpha, the number of values from which there is one,
/// and whether missing values make no others older.
pub(crate) fn ewm_sum() -> Arc<WindowUDF> {
    static SUM: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(SUM.get_or_init(|| function("tharsis_ewm_sum", faded_sums)))
}

/// The window function `tharsis_span` of times as numbers and values: the length of the span, which of its
/// ends belong to it, the number of values from which there is a result, the number of the aggregate, and a
/// part for quantiles.
pub(crate) fn over_span() -> Arc<WindowUDF> {
    static SPAN: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(SPAN.get_or_init(|| function("tharsis_span", over_spans)))
}

fn function(name: &'static str, run: Run) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::from(Whole { name, run, signature: Signature::variadic_any(Volatility::Immutable) }))
}

#[derive(Debug)]
struct Whole {
    name: &'static str,
    run: Run,
    signature: Signature,
}

impl PartialEq for Whole {
    fn eq(&self, other: &Whole) -> bool {
        self.name == other.name
    }
}

impl Eq for Whole {}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl WindowUDFImpl for Whole {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator(self.run)))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Float64, true)))
    }
}

#[derive(Debug)]
struct Evaluator(Run);

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], _: usize) -> Result<ArrayRef> {
        Ok(Arc::new((self.0)(values)?))
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn uses_window_frame(&self) -> bool {
        false
    }
}

/// The columns and constants of a call.
struct Arguments<'a>(&'a [ArrayRef]);

impl Arguments<'_> {
    fn get(&self, at: usize) -> Result<&ArrayRef> {
        self.0.get(at).ok_or_else(|| exec_datafusion_err!("a window function without argument {at}"))
    }

    fn floats(&self, at: usize) -> Result<&PrimitiveArray<Float64Type>> {
        let array = self.get(at)?.as_primitive_opt::<Float64Type>();
        array.ok_or_else(|| exec_datafusion_err!("argument {at} of a window function is no float"))
    }

    fn wholes(&self, at: usize) -> Result<&PrimitiveArray<Int64Type>> {
        let array = self.get(at)?.as_primitive_opt::<Int64Type>();
        array.ok_or_else(|| exec_datafusion_err!("argument {at} of a window function is no integer"))
    }

    fn flag(&self, at: usize) -> Result<bool> {
        let array = self.get(at)?.as_boolean_opt();
        Ok(array.ok_or_else(|| exec_datafusion_err!("argument {at} is no truth value"))?.value(0))
    }
}

/// Covariance of pairs so far, with weights that fade: the state is that of pandas, so that results agree to
/// the last bits.
struct Faded {
    mean: (f64, f64),
    cov: f64,
    sum_weight: f64,
    sum_square: f64,
    old_weight: f64,
}

impl Faded {
    /// Takes a pair, or the lack of one.
    fn step(&mut self, pair: Option<(f64, f64)>, alpha: f64, adjust: bool) {
        let fade = 1.0 - alpha;
        let new_weight = if adjust { 1.0 } else { alpha };
        self.sum_weight *= fade;
        self.sum_square *= fade * fade;
        self.old_weight *= fade;
        let Some((x, y)) = pair else { return };
        let old = self.mean;
        let total = self.old_weight + new_weight;
        let mean = |old: f64, new: f64| {
            if old == new { old } else { (self.old_weight * old + new_weight * new) / total }
        };
        let new = (mean(old.0, x), mean(old.1, y));
        let moved = self.cov + (old.0 - new.0) * (old.1 - new.1);
        self.cov = (self.old_weight * moved + new_weight * ((x - new.0) * (y - new.1))) / total;
        self.mean = new;
        self.sum_weight += new_weight;
        self.sum_square += new_weight * new_weight;
        self.old_weight += new_weight;
        if !adjust {
            self.sum_weight /= self.old_weight;
            self.sum_square /= self.old_weight * self.old_weight;
            self.old_weight = 1.0;
        }
    }

    fn value(&self, bias: bool) -> Option<f64> {
        if bias {
            return Some(self.cov);
        }
        let square = self.sum_weight * self.sum_weight;
        let rest = square - self.sum_square;
        (rest > 0.0).then(|| square / rest * self.cov)
    }
}

fn covariances(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let arguments = Arguments(arguments);
    let (left, right) = (arguments.floats(0)?, arguments.floats(1)?);
    if left.is_empty() {
        return Ok(Float64Array::from(Vec::<f64>::new()));
    }
    let (alpha, adjust) = (arguments.floats(2)?.value(0), arguments.flag(3)?);
    let (least, bias) = (arguments.wholes(4)?.value(0).max(1), arguments.flag(5)?);
    let ignore_na = arguments.flag(6)?;
    let mut state: Option<Faded> = None;
    let mut seen = 0;
    let values = left.iter().zip(right.iter()).map(|(left, right)| {
        let pair = left.zip(right);
        seen += i64::from(pair.is_some());
        match (&mut state, pair) {
            (Some(_), None) if ignore_na => {}
            (Some(state), pair) => state.step(pair, alpha, adjust),
            (None, Some(mean)) => {
                state = Some(Faded { mean, cov: 0.0, sum_weight: 1.0, sum_square: 1.0, old_weight: 1.0 });
            }
            (None, None) => {}
        }
        state.as_ref().filter(|_| seen >= least).and_then(|state| state.value(bias))
    });
    Ok(values.collect())
}

fn faded_sums(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let arguments = Arguments(arguments);
    let values = arguments.floats(0)?;
    if values.is_empty() {
        return Ok(Float64Array::from(Vec::<f64>::new()));
    }
    let (alpha, least) = (arguments.floats(1)?.value(0), arguments.wholes(2)?.value(0).max(1));
    let ignore_na = arguments.flag(3)?;
    let (mut sum, mut seen) = (None, 0);
    let sums = values.iter().map(|value| {
        seen += i64::from(value.is_some());
        sum = match (sum, value) {
            (None, value) => value,
            (Some(sum), None) if ignore_na => Some(sum),
            (Some(sum), value) => Some((1.0 - alpha) * sum + value.unwrap_or(0.0)),
        };
        sum.filter(|_| seen >= least)
    });
    Ok(sums.collect())
}

fn over_spans(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let arguments = Arguments(arguments);
    let (times, values) = (arguments.wholes(0)?, arguments.floats(1)?);
    if times.is_empty() {
        return Ok(Float64Array::from(Vec::<f64>::new()));
    }
    let (length, ends) = (arguments.wholes(2)?.value(0), arguments.wholes(3)?.value(0));
    let (least, aggregate) = (arguments.wholes(4)?.value(0), arguments.wholes(5)?.value(0));
    let part = arguments.floats(6)?.value(0);
    if times.null_count() > 0 || times.values().windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(exec_datafusion_err!("index values must be monotonic: times of windows must not fall"));
    }
    let (left_in, right_in) = (ends & 1 != 0, ends & 2 != 0);
    let times = times.values();
    let mut start = 0;
    let results = (0..times.len()).map(|row| {
        let from = times[row].saturating_sub(length);
        while start < row && (times[start] < from || (!left_in && times[start] == from)) {
            start += 1;
        }
        let end = if right_in {
            row + 1
        } else {
            row - times[..row].iter().rev().take_while(|time| **time == times[row]).count()
        };
        let inside = (start.min(end)..end).filter(|row| values.is_valid(*row)).map(|row| values.value(row));
        let inside: Vec<f64> = inside.collect();
        match aggregate {
            COUNT => (end.saturating_sub(start) as i64 >= least).then_some(inside.len() as f64),
            _ if (inside.len() as i64) < least => None,
            _ => of_values(Measure { aggregate, part, ddof: 1.0, interpolation: LINEAR }, inside),
        }
    });
    Ok(results.collect())
}

/// Numbers of aggregates, as calls name them.
pub(crate) const SUM: i64 = 0;
pub(crate) const MEAN: i64 = 1;
pub(crate) const MIN: i64 = 2;
pub(crate) const MAX: i64 = 3;
pub(crate) const COUNT: i64 = 4;
pub(crate) const STD: i64 = 5;
pub(crate) const VAR: i64 = 6;
pub(crate) const SEM: i64 = 7;
pub(crate) const SKEW: i64 = 8;
pub(crate) const KURT: i64 = 9;
pub(crate) const QUANTILE: i64 = 10;
pub(crate) const NUNIQUE: i64 = 11;
pub(crate) const FIRST: i64 = 12;
pub(crate) const LAST: i64 = 13;

/// The row function of a list of floats: the number of the aggregate, a part for quantiles, degrees of
/// freedom that variances are without, and the number of an interpolation.
pub(crate) const ACROSS: &str = "tharsis_across";

/// An aggregate by its number, and its options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) aggregate: i64,
    pub(crate) part: f64,
    pub(crate) ddof: f64,
    pub(crate) interpolation: i64,
}

/// A measure of values.
pub(crate) fn of_values(measure: Measure, mut values: Vec<f64>) -> Option<f64> {
    let Measure { aggregate, part, ddof, interpolation } = measure;
    let count = values.len() as f64;
    let variance = || {
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (count > ddof && count > 0.0).then(|| squares / (count - ddof))
    };
    match aggregate {
        SUM => Some(values.iter().sum()),
        MEAN => (count > 0.0).then(|| values.iter().sum::<f64>() / count),
        MIN => values.into_iter().reduce(f64::min),
        MAX => values.into_iter().reduce(f64::max),
        STD => variance().map(f64::sqrt),
        VAR => variance(),
        SEM => variance().map(|variance| (variance / count).sqrt()),
        SKEW => super::skewness_of(values.into_iter()),
        KURT => super::kurtosis_of(values.into_iter()),
        QUANTILE => super::quantile::quantile_of(&mut values, part, interpolation),
        NUNIQUE => Some(values.iter().map(|value| value.to_bits()).collect::<BTreeSet<_>>().len() as f64),
        FIRST => values.first().copied(),
        _ => values.last().copied(),
    }
}
