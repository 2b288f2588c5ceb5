//! Skewness and kurtosis of samples, as pandas corrects them for bias.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_skew`: null with less than three values.
pub(crate) fn skewness() -> Arc<AggregateUDF> {
    static SKEWNESS: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(SKEWNESS.get_or_init(|| function(Shape::Skewness)))
}

/// The aggregate `tharsis_kurt`: null with less than four values.
pub(crate) fn kurtosis() -> Arc<AggregateUDF> {
    static KURTOSIS: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(KURTOSIS.get_or_init(|| function(Shape::Kurtosis)))
}

fn function(shape: Shape) -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
    Arc::new(AggregateUDF::from(ShapeOf { shape, signature }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Skewness,
    Kurtosis,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ShapeOf {
    shape: Shape,
    signature: Signature,
}

/// The parts of a state.
const STATE: [&str; 5] = ["count", "mean", "m2", "m3", "m4"];

impl AggregateUDFImpl for ShapeOf {
    fn name(&self) -> &'static str {
        match self.shape {
            Shape::Skewness => "tharsis_skew",
            Shape::Kurtosis => "tharsis_kurt",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Moments { shape: self.shape, sums: Sums::default() }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |part| Arc::new(Field::new(format!("{}_{part}", args.name), DataType::Float64, false));
        Ok(STATE.into_iter().map(field).collect())
    }
}

/// Number of values, their mean, and the sums of powers of their distances from it.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

impl Sums {
    fn of(value: f64) -> Sums {
        Sums { count: 1.0, mean: value, ..Sums::default() }
    }

    /// The sums of both sets of values.
    fn with(self, other: Sums) -> Sums {
        if self.count == 0.0 || other.count == 0.0 {
            return if self.count == 0.0 { other } else { self };
        }
        let (a, b) = (self.count, other.count);
        let count = a + b;
        let distance = other.mean - self.mean;
        let part = distance / count;
        let square = distance * part * a * b;
        Sums {
            count,
            mean: self.mean + part * b,
            m2: self.m2 + other.m2 + square,
            m3: self.m3 + other.m3 + square * part * (a - b) + 3.0 * part * (a * other.m2 - b * self.m2),
            m4: self.m4
                + other.m4
                + square * part * part * (a * a - a * b + b * b)
                + 6.0 * part * part * (a * a * other.m2 + b * b * self.m2)
                + 4.0 * part * (a * other.m3 - b * self.m3),
        }
    }

    fn skewness(self) -> Option<f64> {
        let n = self.count;
        let spread = self.m2.powf(1.5);
        let skewness = n * (n - 1.0).sqrt() / (n - 2.0) * self.m3 / spread;
        (n >= 3.0 && self.m2 != 0.0).then_some(skewness)
    }

    fn kurtosis(self) -> Option<f64> {
        let n = self.count;
        let pairs = (n - 2.0) * (n - 3.0);
        let kurtosis = n * (n + 1.0) * (n - 1.0) * self.m4 / (pairs * self.m2 * self.m2)
            - 3.0 * (n - 1.0) * (n - 1.0) / pairs;
        (n >= 4.0 && self.m2 != 0.0).then_some(kurtosis)
    }
}

/// The sums of a window that moves. Each value comes once and leaves once, in the same order, and nothing is
/// ever taken out of a sum, which would leave the errors of large values behind: the older values have the
/// sums from each of them on, which are made when all newer ones have become old.
#[derive(Debug, Default)]
pub(super) struct MovingSums {
    /// Sums from each of the older values on; those of all of them are the last.
    older: Vec<Sums>,
    newer: Vec<f64>,
    /// The sums of the newer values.
    sums: Sums,
}

/// The square of means against that of distances up to which a mean is exact enough: its error shows in
/// the twelfth digit of a variance.
const MEAN_MAX: f64 = 4e6;

impl MovingSums {
    pub(super) fn push(&mut self, value: f64) {
        self.newer.push(value);
        self.sums = self.sums.with(Sums::of(value));
    }

    /// Takes out the oldest value.
    pub(super) fn pop(&mut self) {
        if self.older.is_empty() {
            for value in self.newer.drain(..).rev() {
                let behind = self.older.last().copied().unwrap_or_default();
                self.older.push(Sums::of(value).with(behind));
            }
            self.sums = Sums::default();
        }
        self.older.pop();
    }

    fn all(&self) -> Sums {
        self.older.last().copied().unwrap_or_default().with(self.sums)
    }

    /// Whether all values are the same.
    pub(super) fn is_constant(&self) -> bool {
        self.all().m2 == 0.0
    }

    /// The sum of squares of distances from the mean; none where the mean is so large that its rounding
    /// shows.
    pub(super) fn squares(&self) -> Option<f64> {
        let Sums { count, mean, m2, .. } = self.all();
        (m2 == 0.0 || mean * mean * count <= MEAN_MAX * m2).then_some(m2)
    }

    pub(super) fn skewness(&self) -> Option<f64> {
        self.all().skewness()
    }

    pub(super) fn kurtosis(&self) -> Option<f64> {
        self.all().kurtosis()
    }

    pub(super) fn size(&self) -> usize {
        self.older.capacity() * size_of::<Sums>() + self.newer.capacity() * size_of::<f64>()
    }
}

/// The skewness of values: missing with less than three.
pub(super) fn skewness_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.fold(Sums::default(), |sums, value| sums.with(Sums::of(value))).skewness()
}

/// The excess kurtosis of values: missing with less than four.
pub(super) fn kurtosis_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.fold(Sums::default(), |sums, value| sums.with(Sums::of(value))).kurtosis()
}

#[derive(Debug)]
struct Moments {
    shape: Shape,
    sums: Sums,
}

impl Accumulator for Moments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        self.sums = values.iter().flatten().fold(self.sums, |sums, value| sums.with(Sums::of(value)));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let part = |at: usize, row: usize| states[at].as_primitive::<Float64Type>().value(row);
        for row in 0..states[0].len() {
            let [count, mean, m2, m3, m4] = std::array::from_fn(|at| part(at, row));
            self.sums = self.sums.with(Sums { count, mean, m2, m3, m4 });
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(match self.shape {
            Shape::Skewness => self.sums.skewness(),
            Shape::Kurtosis => self.sums.kurtosis(),
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Sums { count, mean, m2, m3, m4 } = self.sums;
        Ok([count, mean, m2, m3, m4].into_iter().map(ScalarValue::from).collect())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
