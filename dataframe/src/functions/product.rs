//! The product of values.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_product`: of integers an int64, else a float64; null without values.
pub(crate) fn product() -> Arc<AggregateUDF> {
    static PRODUCT: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    let product = || {
        let signature = Signature::uniform(1, TYPES.to_vec(), Volatility::Immutable);
        Arc::new(AggregateUDF::from(Product { signature }))
    };
    Arc::clone(PRODUCT.get_or_init(product))
}

/// Types whose values are multiplied; others are changed to one of them.
const TYPES: [DataType; 2] = [DataType::Int64, DataType::Float64];

#[derive(Debug, PartialEq, Eq, Hash)]
struct Product {
    signature: Signature,
}

impl AggregateUDFImpl for Product {
    fn name(&self) -> &'static str {
        "tharsis_product"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [DataType::Float64] => DataType::Float64,
            _ => DataType::Int64,
        })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match args.return_type() {
            DataType::Float64 => Box::new(Floats(None)),
            _ => Box::new(Integers(None)),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = Field::new(format!("{}_product", args.name), args.return_type().clone(), true);
        Ok(vec![Arc::new(field)])
    }
}

#[derive(Debug)]
struct Integers(Option<i64>);

#[derive(Debug)]
struct Floats(Option<f64>);

macro_rules! accumulator {
    ($name:ident $arrow:ty, $scalar:ident, $multiply:expr) => {
        impl Accumulator for $name {
            fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
                let values = cast(&values[0], &DataType::$scalar)?;
                let product = values.as_primitive::<$arrow>().iter().flatten().reduce($multiply);
                if let Some(product) = product {
                    self.0 = Some(self.0.map_or(product, |before| $multiply(before, product)));
                }
                Ok(())
            }

            fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
                self.update_batch(states)
            }

            fn evaluate(&mut self) -> Result<ScalarValue> {
                Ok(ScalarValue::$scalar(self.0))
            }

            fn state(&mut self) -> Result<Vec<ScalarValue>> {
                Ok(vec![self.evaluate()?])
            }

            fn size(&self) -> usize {
                size_of_val(self)
            }
        }
    };
}

accumulator!(Integers Int64Type, Int64, i64::wrapping_mul);
// With one zero, as all floats of frames.
accumulator!(Floats Float64Type, Float64, |left: f64, right: f64| left * right + 0.0);
