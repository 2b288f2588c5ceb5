//! The values of each window as a list, for functions of the program.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_window_values` of floats: a list of all values of a window, missing ones too, in
/// the order of rows.
pub(crate) fn window_values() -> Arc<AggregateUDF> {
    static VALUES: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    Arc::clone(VALUES.get_or_init(|| {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
        Arc::new(AggregateUDF::from(WindowValues { signature }))
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowValues {
    signature: Signature,
}

impl AggregateUDFImpl for WindowValues {
    fn name(&self) -> &'static str {
        "tharsis_window_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true))))
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Values::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}_state", args.name), self.return_type(&[])?, true))])
    }
}

#[derive(Debug, Default)]
struct Values(VecDeque<Option<f64>>);

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.extend(values[0].as_primitive::<Float64Type>());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.drain(..values[0].len().min(self.0.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("values of windows have no parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values: Vec<ScalarValue> = self.0.iter().map(|value| ScalarValue::Float64(*value)).collect();
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("values of windows have no parts")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.capacity() * size_of::<Option<f64>>()
    }
}
