//! Window functions: the nearest value that is there, and exponentially weighted means.
//!
//! The library can leave out missing values in windows, but plans lose that wish when they are sent.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use std::sync::{Arc, OnceLock};

/// The window function `tharsis_last_present`: the value of a row, or of the last one before that has one.
pub(crate) fn last_present() -> Arc<WindowUDF> {
    static LAST: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(LAST.get_or_init(|| function(Kind::LastPresent)))
}

/// The window function `tharsis_next_present`: the value of a row, or of the next one that has one.
pub(crate) fn next_present() -> Arc<WindowUDF> {
    static NEXT: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(NEXT.get_or_init(|| function(Kind::NextPresent)))
}

/// The window function `tharsis_ewm_mean` of values, the weight of a new value, whether weights are
/// adjusted, the number of values from which there is a mean, and whether missing values make no others
/// older.
pub(crate) fn ewm_mean() -> Arc<WindowUDF> {
    static MEAN: OnceLock<Arc<WindowUDF>> = OnceLock::new();
    Arc::clone(MEAN.get_or_init(|| function(Kind::EwmMean)))
}

fn function(kind: Kind) -> Arc<WindowUDF> {
    let signature = match kind {
        Kind::EwmMean => Signature::exact(
            vec![
                DataType::Float64,
                DataType::Float64,
                DataType::Boolean,
                DataType::Float64,
                DataType::Boolean,
            ],
            Volatility::Immutable,
        ),
        _ => Signature::any(1, Volatility::Immutable),
    };
    Arc::new(WindowUDF::from(Function { kind, signature }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    LastPresent,
    NextPresent,
    EwmMean,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    kind: Kind,
    signature: Signature,
}

impl WindowUDFImpl for Function {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::LastPresent => "tharsis_last_present",
            Kind::NextPresent => "tharsis_next_present",
            Kind::EwmMean => "tharsis_ewm_mean",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator(self.kind)))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = args.get_input_field(0);
        let field = field.ok_or_else(|| exec_datafusion_err!("{} without values", self.name()))?;
        Ok(Arc::new(Field::new(args.name(), field.data_type().clone(), true)))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        match self.kind {
            Kind::NextPresent => LimitEffect::Unknown,
            _ => LimitEffect::None,
        }
    }
}

#[derive(Debug)]
struct Evaluator(Kind);

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        match self.0 {
            Kind::LastPresent => Ok(take(&values[0], &nearest(&values[0], 0..rows as u64), None)?),
            Kind::NextPresent => {
                let backwards = nearest(&values[0], (0..rows as u64).rev());
                let rows: UInt64Array = backwards.iter().rev().collect();
                Ok(take(&values[0], &rows, None)?)
            }
            Kind::EwmMean => Ok(Arc::new(means(values))),
        }
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn uses_window_frame(&self) -> bool {
        false
    }
}

/// For each row in turn, the last row so far that has a value.
fn nearest(values: &ArrayRef, rows: impl Iterator<Item = u64>) -> UInt64Array {
    let mut last = None;
    let rows = rows.map(|row| {
        if values.is_valid(row as usize) {
            last = Some(row);
        }
        last
    });
    rows.collect()
}

/// Exponentially weighted means. A missing value has no weight itself, but makes those before it older unless
/// it is ignored.
fn means(arguments: &[ArrayRef]) -> Float64Array {
    let values = arguments[0].as_primitive::<Float64Type>();
    if values.is_empty() {
        return Float64Array::from(Vec::<f64>::new());
    }
    let alpha = arguments[1].as_primitive::<Float64Type>().value(0);
    let adjust = arguments[2].as_boolean().value(0);
    let min_periods = arguments[3].as_primitive::<Float64Type>().value(0).max(1.0);
    let ignore_na = arguments[4].as_boolean().value(0);
    let new_weight = if adjust { 1.0 } else { alpha };
    let (mut mean, mut old_weight, mut seen) = (None, 1.0, 0.0);
    let means = values.iter().map(|value| {
        seen += f64::from(u8::from(value.is_some()));
        mean = match (mean, value) {
            (None, value) => value,
            (Some(mean), None) => {
                if !ignore_na {
                    old_weight *= 1.0 - alpha;
                }
                Some(mean)
            }
            (Some(mean), Some(value)) => {
                old_weight *= 1.0 - alpha;
                let next = if mean == value {
                    mean
                } else {
                    (old_weight * mean + new_weight * value) / (old_weight + new_weight)
                };
                old_weight = if adjust { old_weight + new_weight } else { 1.0 };
                Some(next)
            }
        };
        mean.filter(|_| seen >= min_periods)
    });
    means.collect()
}
