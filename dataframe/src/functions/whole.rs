//! Window functions that see all rows of a partition at once: covariances with weights that fade, and
//! aggregates over spans of time.

use super::moments::MovingSums;
use super::named::Named;
use super::quantile::LINEAR;
use super::ranks::Ranks;
use super::sliding::{Sum, squares_of};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use std::collections::{BTreeSet, VecDeque};
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
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(WindowUDF::from(Whole { run: Named { name, part: run }, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    run: Named<Run>,
    signature: Signature,
}

impl WindowUDFImpl for Whole {
    fn name(&self) -> &str {
        self.run.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator(self.run.part)))
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
    let (mut start, mut equal) = (0, 0);
    let mut moving = Moving::new(values, aggregate);
    let results = (0..times.len()).map(|row| {
        let from = times[row].saturating_sub(length);
        while start < row && (times[start] < from || (!left_in && times[start] == from)) {
            start += 1;
        }
        if times[equal] != times[row] {
            equal = row;
        }
        let end = if right_in { row + 1 } else { equal };
        moving.move_to(start.min(end), end);
        match aggregate {
            COUNT => (end.saturating_sub(start) as i64 >= least).then_some(moving.sum.count as f64),
            _ if moving.sum.count < least => None,
            _ => moving.value(part),
        }
    });
    Ok(results.collect())
}

/// A window whose begin and end move forward over values, each of which comes once and leaves once.
struct Moving<'a> {
    values: &'a PrimitiveArray<Float64Type>,
    aggregate: i64,
    from: usize,
    to: usize,
    sum: Sum,
    /// Rows that may be the answer: for the smallest and the largest value, those without a better one behind
    /// them.
    kept: VecDeque<usize>,
    /// Sums for variances and shapes; places for quantiles and numbers of different values.
    moments: Option<MovingSums>,
    ranks: Option<Ranks>,
}

impl<'a> Moving<'a> {
    fn new(values: &'a PrimitiveArray<Float64Type>, aggregate: i64) -> Moving<'a> {
        let has_moments = matches!(aggregate, STD | VAR | SEM | SKEW | KURT);
        let has_ranks = matches!(aggregate, QUANTILE | NUNIQUE);
        Moving {
            values,
            aggregate,
            from: 0,
            to: 0,
            sum: Sum::default(),
            kept: VecDeque::new(),
            moments: has_moments.then(MovingSums::default),
            ranks: has_ranks.then(|| Ranks::new(values)),
        }
    }
}

impl Moving<'_> {
    fn move_to(&mut self, from: usize, to: usize) {
        for row in (self.to..to).filter(|row| self.values.is_valid(*row)) {
            let value = self.values.value(row);
            self.sum.add(value, 1.0);
            let is_over = |other: f64| match self.aggregate {
                MIN => value <= other,
                MAX => other <= value,
                _ => false,
            };
            while self.kept.back().is_some_and(|row| is_over(self.values.value(*row))) {
                self.kept.pop_back();
            }
            if matches!(self.aggregate, MIN | MAX | FIRST | LAST) {
                self.kept.push_back(row);
            }
            if let Some(moments) = &mut self.moments {
                moments.push(value);
            }
            if let Some(ranks) = &mut self.ranks {
                ranks.push(row);
            }
        }
        for row in (self.from..from).filter(|row| self.values.is_valid(*row)) {
            self.sum.add(self.values.value(row), -1.0);
            if self.kept.front() == Some(&row) {
                self.kept.pop_front();
            }
            if let Some(moments) = &mut self.moments {
                moments.pop();
            }
            if let Some(ranks) = &mut self.ranks {
                ranks.pop(row);
            }
        }
        (self.from, self.to) = (from, to);
        if !self.sum.is_finite() {
            let mut sum = Sum::default();
            self.inside().into_iter().for_each(|value| sum.add(value, 1.0));
            self.sum = sum;
        }
    }

    /// The sum; that of values beyond the range of floats is infinite.
    fn total(&self) -> Option<f64> {
        self.sum.value().map(|sum| if sum.is_nan() { self.inside().iter().sum() } else { sum })
    }

    /// The aggregate; a part for quantiles.
    fn value(&self, part: f64) -> Option<f64> {
        let of = |row: Option<&usize>| row.map(|row| self.values.value(*row));
        match self.aggregate {
            SUM => Some(self.total().unwrap_or(0.0)),
            MEAN => self.total().map(|sum| sum / self.sum.count as f64),
            STD => self.variance().map(f64::sqrt),
            VAR => self.variance(),
            SEM => self.variance().map(|variance| (variance / self.sum.count as f64).sqrt()),
            SKEW => self.moments.as_ref()?.skewness(),
            KURT => self.moments.as_ref()?.kurtosis(),
            QUANTILE => self.ranks.as_ref()?.quantile(part, LINEAR),
            NUNIQUE => Some(self.ranks.as_ref()?.distinct() as f64),
            LAST => of(self.kept.back()),
            _ => of(self.kept.front()),
        }
    }

    /// The variance of a sample.
    fn variance(&self) -> Option<f64> {
        let squares = self.moments.as_ref()?.squares();
        let squares = squares.unwrap_or_else(|| squares_of(self.inside().into_iter()));
        (1 < self.sum.count).then(|| squares / (self.sum.count - 1) as f64)
    }

    /// The values of the window.
    fn inside(&self) -> Vec<f64> {
        let rows = (self.from..self.to).filter(|row| self.values.is_valid(*row));
        rows.map(|row| self.values.value(row)).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;

    /// The aggregates of the spans before each row.
    fn spans(
        times: &[i64],
        values: &[Option<f64>],
        length: i64,
        ends: i64,
        aggregate: i64,
    ) -> Vec<Option<f64>> {
        let whole = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let arguments: [ArrayRef; 7] = [
            Arc::new(Int64Array::from(times.to_vec())),
            Arc::new(Float64Array::from(values.to_vec())),
            whole(length),
            whole(ends),
            whole(0),
            whole(aggregate),
            Arc::new(Float64Array::from(vec![0.5])),
        ];
        over_spans(&arguments).expect("times that do not fall").iter().collect()
    }

    #[test]
    fn windows_that_move_have_the_aggregates_of_their_values() {
        let times = [0, 1, 1, 3, 4, 4, 4, 9, 10, 11, 11, 30];
        let values = [3.0, 1.0, f64::NAN, 2.0, 2.0, -5.0, 7.0, 0.5, f64::NAN, 4.0, -1.0, 6.0];
        let values = values.map(|value| (!value.is_nan()).then_some(value));
        for (ends, aggregate, length) in (0..4).flat_map(|ends| {
            let lengths = [1, 3, 100].into_iter();
            lengths.flat_map(move |length| {
                (0..14).filter(|how| *how != COUNT).map(move |how| (ends, how, length))
            })
        }) {
            let found = spans(&times, &values, length, ends, aggregate);
            for (row, found) in found.into_iter().enumerate() {
                let is_inside = |other: usize| {
                    let before = times[row] - times[other];
                    let left = before < length || (ends & 1 != 0 && before == length);
                    // Rows at the same time as this one come up to it, or not at all.
                    left && other <= row && (ends & 2 != 0 || 0 < before)
                };
                let inside =
                    (0..times.len()).filter(|other| is_inside(*other)).filter_map(|other| values[other]);
                let measure = Measure { aggregate, part: 0.5, ddof: 1.0, interpolation: LINEAR };
                let expected = of_values(measure, inside.collect());
                let is_near = match (found, expected) {
                    (Some(found), Some(expected)) => {
                        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
                    }
                    (found, expected) => found == expected,
                };
                let place = format!("row {row}, ends {ends}, length {length}, aggregate {aggregate}");
                assert!(is_near, "{place}: {found:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn a_sum_that_was_beyond_the_floats_comes_back() {
        let times: Vec<i64> = (0..5).collect();
        let values = [1e308, 1e308, 1.0, 1.0, 1.0].map(Some);
        let expected = [1e308, f64::INFINITY, 1e308, 2.0, 2.0].map(Some);
        assert_eq!(spans(&times, &values, 2, 2, SUM), expected);
    }

    #[test]
    fn a_span_over_many_rows_takes_each_of_them_once() {
        let times: Vec<i64> = (0..300_000).collect();
        let values: Vec<Option<f64>> = times.iter().map(|time| Some(*time as f64)).collect();
        for (aggregate, last) in [
            (SUM, 44_999_850_000.0),
            (MAX, 299_999.0),
            (MIN, 0.0),
            (FIRST, 0.0),
            (QUANTILE, 149_999.5),
            (NUNIQUE, 300_000.0),
        ] {
            assert_eq!(spans(&times, &values, i64::MAX, 2, aggregate).last(), Some(&Some(last)));
        }
        // 300 000 windows of up to 150 000 values each.
        for aggregate in [STD, SKEW, KURT, QUANTILE, NUNIQUE] {
            let found = spans(&times, &values, 150_000, 2, aggregate);
            let measure = Measure { aggregate, part: 0.5, ddof: 1.0, interpolation: LINEAR };
            let inside = values[150_000..].iter().flatten().copied();
            let (found, expected) = (found[299_999].expect("a value"), of_values(measure, inside.collect()));
            let expected = expected.expect("a value");
            assert!(
                (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                "{aggregate}: {found} {expected}"
            );
        }
    }

    #[test]
    fn a_large_first_value_leaves_nothing_behind() {
        let times: Vec<i64> = (0..40).collect();
        for first in [1e16, 1e300] {
            let value = |time: i64| if time == 0 { first } else { [1.0, 2.0, 4.0][time as usize % 3] };
            let values: Vec<Option<f64>> = times.iter().map(|time| Some(value(*time))).collect();
            for (aggregate, wanted) in [(VAR, 7.0 / 3.0), (SKEW, 0.935_219_529_582_824_4)] {
                let found = spans(&times, &values, 3, 2, aggregate)[39].expect("three values");
                assert!((found - wanted).abs() < 1e-12, "{first}: {found}");
            }
        }
    }

    #[test]
    fn variances_of_values_far_from_zero_are_exact() {
        let times: Vec<i64> = (0..40).collect();
        for offset in [0.0, 1e9] {
            let value = |time: i64| if time < 20 { 0.0 } else { offset + [1.0, 2.0, 4.0][time as usize % 3] };
            let values: Vec<Option<f64>> = times.iter().map(|time| Some(value(*time))).collect();
            let found = spans(&times, &values, 3, 2, VAR)[39].expect("a variance");
            assert!((found - 7.0 / 3.0).abs() < 1e-12, "{offset}: {found}");
        }
    }
}
