//! Sums and variances of windows from which rows leave again, without the errors that leaving makes: after a
//! very large value has gone, the small ones are as exact as before.

use super::moments::MovingSums;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_sliding_sum` of floats: null without values.
pub(crate) fn sliding_sum() -> Arc<AggregateUDF> {
    static SUM: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(SUM.get_or_init(|| function(Kind::Sum)))
}

/// The aggregate `tharsis_sliding_var` of floats, of a sample: null with less than two values. It keeps the
/// values of the window.
pub(crate) fn sliding_var() -> Arc<AggregateUDF> {
    static VAR: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(VAR.get_or_init(|| function(Kind::Var)))
}

/// The aggregate `tharsis_sliding_skew` of floats: null with less than three values.
pub(crate) fn sliding_skew() -> Arc<AggregateUDF> {
    static SKEW: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(SKEW.get_or_init(|| function(Kind::Skew)))
}

/// The aggregate `tharsis_sliding_kurt` of floats: null with less than four values.
pub(crate) fn sliding_kurt() -> Arc<AggregateUDF> {
    static KURT: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(KURT.get_or_init(|| function(Kind::Kurt)))
}

/// The aggregates that need the values of a window in their order: its first, its last, the number of its
/// distinct ones, and the place of the last row's value among all.
pub(crate) fn sliding_first() -> Arc<AggregateUDF> {
    static FIRST: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(FIRST.get_or_init(|| function(Kind::First)))
}

/// See [`sliding_first`].
pub(crate) fn sliding_last() -> Arc<AggregateUDF> {
    static LAST: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(LAST.get_or_init(|| function(Kind::Last)))
}

/// See [`sliding_first`].
pub(crate) fn sliding_nunique() -> Arc<AggregateUDF> {
    static NUNIQUE: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(NUNIQUE.get_or_init(|| function(Kind::Nunique)))
}

/// The rank of the last row's value, equal ones with the lowest of their ranks; null where it has none.
pub(crate) fn sliding_rank_min() -> Arc<AggregateUDF> {
    static RANK: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(RANK.get_or_init(|| function(Kind::RankMin)))
}

/// As [`sliding_rank_min`], equal ones with the highest of their ranks.
pub(crate) fn sliding_rank_max() -> Arc<AggregateUDF> {
    static RANK: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(RANK.get_or_init(|| function(Kind::RankMax)))
}

fn function(kind: Kind) -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
    Arc::new(AggregateUDF::from(Sliding { kind, signature }))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Kind {
    #[default]
    Sum,
    Var,
    Skew,
    Kurt,
    First,
    Last,
    Nunique,
    RankMin,
    RankMax,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sliding {
    kind: Kind,
    signature: Signature,
}

impl AggregateUDFImpl for Sliding {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sum => "tharsis_sliding_sum",
            Kind::Var => "tharsis_sliding_var",
            Kind::Skew => "tharsis_sliding_skew",
            Kind::Kurt => "tharsis_sliding_kurt",
            Kind::First => "tharsis_sliding_first",
            Kind::Last => "tharsis_sliding_last",
            Kind::Nunique => "tharsis_sliding_nunique",
            Kind::RankMin => "tharsis_sliding_rank_min",
            Kind::RankMax => "tharsis_sliding_rank_max",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match self.kind {
            Kind::Sum => Box::new(Sum::default()),
            Kind::First | Kind::Last | Kind::Nunique | Kind::RankMin | Kind::RankMax => {
                Box::new(InOrder { kind: self.kind, ..InOrder::default() })
            }
            kind => Box::new(Values { kind, ..Values::default() }),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}_state", args.name), DataType::Float64, true))])
    }
}

/// A sum with what rounding has cut off it, and the number of infinite values of each sign.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) count: i64,
    sum: f64,
    rest: f64,
    infinite: [i64; 2],
}

impl Sum {
    /// Adds a value, or takes it out again: a sign of 1 or of -1.
    pub(super) fn add(&mut self, value: f64, sign: f64) {
        self.count += sign as i64;
        if value.is_infinite() {
            self.infinite[usize::from(value > 0.0)] += sign as i64;
            return;
        }
        let value = value * sign;
        let sum = self.sum + value;
        self.rest +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    /// Whether the sum of the finite values is in the range of floats. Once it has left that, it does not
    /// come back by taking values out.
    pub(super) fn is_finite(&self) -> bool {
        (self.sum + self.rest).is_finite()
    }

    /// The sum; none without values, and where infinities cancel each other.
    pub(super) fn value(&self) -> Option<f64> {
        let value = match self.infinite {
            [0, 0] => self.sum + self.rest,
            [_, 0] => f64::NEG_INFINITY,
            [0, _] => f64::INFINITY,
            _ => return None,
        };
        (self.count > 0).then_some(value)
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values[0].as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.add(value, 1.0));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values[0].as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.add(value, -1.0));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.value()))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The values of a window, and their sums.
#[derive(Debug, Default)]
pub(super) struct Values {
    kind: Kind,
    values: VecDeque<f64>,
    sums: MovingSums,
}

impl Values {
    /// The number of values, and the sum of squares of their distances from the mean.
    pub(super) fn spread(&self) -> (f64, f64) {
        let squares = self.sums.squares().unwrap_or_else(|| squares_of(self.values.iter().copied()));
        (self.values.len() as f64, squares)
    }

    fn variance(&self) -> Option<f64> {
        let (count, squares) = self.spread();
        (count > 1.0).then_some(squares / (count - 1.0))
    }
}

/// The sum of squares of the distances of values from their mean, which is found first.
pub(super) fn squares_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    let mean = sum / count;
    values.map(|value| (value - mean) * (value - mean)).sum()
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.values.push_back(value);
            self.sums.push(value);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in values[0].as_primitive::<Float64Type>().iter().flatten() {
            if self.values.pop_front().is_some() {
                self.sums.pop();
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("variances of windows have no parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(match self.kind {
            Kind::Skew => self.sums.skewness(),
            // As pandas has it for windows.
            Kind::Kurt if self.values.len() >= 4 && self.sums.is_constant() => Some(-3.0),
            Kind::Kurt => self.sums.kurtosis(),
            _ => self.variance(),
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("variances of windows have no parts")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>() + self.sums.size()
    }
}

/// The values of a window in the order of rows, and sorted.
#[derive(Debug, Default)]
struct InOrder {
    kind: Kind,
    rows: VecDeque<f64>,
    sorted: Vec<f64>,
    /// The number of each value, by its bits.
    counts: HashMap<u64, usize>,
    /// The value of the last row, which may have none.
    last: Option<f64>,
}

impl InOrder {
    /// The places in the sorted values before and behind those that equal one.
    fn places(&self, value: f64) -> (usize, usize) {
        let before = self.sorted.partition_point(|other| other.total_cmp(&value).is_lt());
        let until = self.sorted.partition_point(|other| other.total_cmp(&value).is_le());
        (before, until)
    }

    /// Whether the sorted values are needed.
    fn sorts(&self) -> bool {
        matches!(self.kind, Kind::RankMin | Kind::RankMax)
    }
}

impl Accumulator for InOrder {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>() {
            self.last = value;
            let Some(value) = value else { continue };
            if self.sorts() {
                let place = self.places(value).1;
                self.sorted.insert(place, value);
            }
            if self.kind == Kind::Nunique {
                *self.counts.entry(bits(value)).or_default() += 1;
            }
            self.rows.push_back(value);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.rows.pop_front();
            let (place, until) = self.places(value);
            if self.sorts() && place < until {
                self.sorted.remove(place);
            }
            if let Entry::Occupied(mut counted) = self.counts.entry(bits(value)) {
                *counted.get_mut() -= 1;
                if *counted.get() == 0 {
                    counted.remove();
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("values of windows have no parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let ranked =
            |place: fn((usize, usize)) -> usize| self.last.map(|last| place(self.places(last)) as f64);
        Ok(ScalarValue::Float64(match self.kind {
            Kind::First => self.rows.front().copied(),
            Kind::Last => self.rows.back().copied(),
            Kind::RankMin => ranked(|(before, _)| before + 1),
            Kind::RankMax => ranked(|(_, until)| until),
            _ => Some(self.counts.len() as f64),
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("values of windows have no parts")
    }

    fn size(&self) -> usize {
        let counts = self.counts.capacity() * size_of::<(u64, usize)>();
        size_of_val(self) + (self.rows.capacity() + self.sorted.capacity()) * size_of::<f64>() + counts
    }
}

/// The bits of a value. Both zeros are one value.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}
