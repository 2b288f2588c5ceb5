//! Quantiles that summaries show: exact ones of few values, and about those of many.
//!
//! The digest of many values has a bound. It says little of five of them, between which it would put
//! quantiles that they do not have.

use super::quantile::{LINEAR, part_of, quantile_of};
use arrow::array::{ArrayRef, AsArray, Float64Builder, ListBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::approx_percentile_cont::{
    ApproxPercentileAccumulator, ApproxPercentileCont,
};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::{Arc, OnceLock};

/// The aggregate `tharsis_about_quantile` of float64 values and a literal part from 0 to 1; null without
/// values.
pub(super) fn about_quantile() -> Arc<AggregateUDF> {
    static QUANTILE: OnceLock<Arc<AggregateUDF>> = OnceLock::new();
    let quantile = || {
        let types = vec![DataType::Float64, DataType::Float64];
        let signature = Signature::exact(types, Volatility::Immutable);
        Arc::new(AggregateUDF::from(AboutQuantile { signature }))
    };
    Arc::clone(QUANTILE.get_or_init(quantile))
}

/// Values that are kept as they are, at most.
const FEW: usize = 1000;

#[derive(Debug, PartialEq, Eq, Hash)]
struct AboutQuantile {
    signature: Signature,
}

impl AggregateUDFImpl for AboutQuantile {
    fn name(&self) -> &'static str {
        "tharsis_about_quantile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(About::new(part_of(&args)?)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true)));
        let mut fields = vec![Arc::new(Field::new(format!("{}_few", args.name), values, true))];
        fields.extend(ApproxPercentileCont::new().state_fields(args)?);
        Ok(fields)
    }
}

#[derive(Debug)]
struct About {
    /// All values, as long as they are few.
    few: Option<Vec<f64>>,
    /// The digest of all values, however many.
    many: ApproxPercentileAccumulator,
    part: f64,
}

impl About {
    fn new(part: f64) -> About {
        About { few: Some(Vec::new()), many: ApproxPercentileAccumulator::new(part, DataType::Float64), part }
    }

    fn keep(&mut self, values: &ArrayRef) {
        let Some(few) = &mut self.few else { return };
        few.extend(values.as_primitive::<Float64Type>().iter().flatten());
        if FEW < few.len() {
            self.few = None;
        }
    }
}

impl Accumulator for About {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.keep(&columns[0]);
        self.many.update_batch(&columns[..1])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter() {
            match list {
                Some(values) => self.keep(&values),
                None => self.few = None,
            }
        }
        self.many.merge_batch(&states[1..])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &mut self.few {
            Some(few) => Ok(ScalarValue::Float64(quantile_of(few, self.part, LINEAR))),
            None => self.many.evaluate(),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut few = ListBuilder::new(Float64Builder::new());
        if let Some(values) = &self.few {
            few.values().append_slice(values);
        }
        few.append(self.few.is_some());
        let few: ArrayRef = Arc::new(few.finish());
        let mut state = vec![ScalarValue::try_from_array(&few, 0)?];
        state.extend(self.many.state()?);
        Ok(state)
    }

    fn size(&self) -> usize {
        let few = self.few.as_ref().map_or(0, Vec::capacity);
        size_of_val(self) + self.many.size() + size_of::<f64>() * few
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    fn of(values: Vec<f64>) -> About {
        let mut about = About::new(0.25);
        about.update_batch(&[Arc::new(Float64Array::from(values)) as ArrayRef]).unwrap();
        about
    }

    fn merged(parts: &mut [About]) -> About {
        let mut all = About::new(0.25);
        for part in parts {
            let state = part.state().unwrap();
            let state: Vec<ArrayRef> = state.iter().map(|value| value.to_array().unwrap()).collect();
            all.merge_batch(&state).unwrap();
        }
        all
    }

    #[test]
    fn quantiles_of_few_values_are_exact() {
        let mut few = merged(&mut [of(vec![7.0, -2.0, 3.0]), of(vec![]), of(vec![4.0, 1.0])]);
        assert_eq!(few.evaluate().unwrap(), ScalarValue::from(1.0));
        assert_eq!(merged(&mut [of(vec![])]).evaluate().unwrap(), ScalarValue::Float64(None));
    }

    #[test]
    fn quantiles_of_many_values_are_about_these() {
        let many: Vec<f64> = (0..4000).map(f64::from).collect();
        for mut about in [of(many.clone()), merged(&mut [of(vec![3.0]), of(many), of(vec![4.0])])] {
            let ScalarValue::Float64(Some(found)) = about.evaluate().unwrap() else { panic!("no value") };
            assert!((900.0..1100.0).contains(&found), "{found}");
        }
    }
}
