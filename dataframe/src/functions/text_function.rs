//! Functions of texts that give texts of their type: an adapter around what is done to a text.

use super::named::Named;
use super::on_arrays::{on_arrays, zone_behind};
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The text in the place of another one; `None` for one that stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Of a text alone.
    Plain(fn(&str) -> Result<Option<String>>),
    /// Of a text and the clock of the zone that is the second argument.
    OfZone(fn(&str, Tz) -> Option<String>),
}

/// A step as a function that plans name.
pub(super) fn text_function(name: &'static str, step: Step) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(TextFunction { step: Named { name, part: step }, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction {
    step: Named<Step>,
    signature: Signature,
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.step.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.step.part, types) {
            (Step::Plain(_), [_]) | (Step::OfZone(_), [_, _]) => Ok(types.to_vec()),
            (Step::Plain(_), _) => plan_err!("{} takes an argument", self.name()),
            (Step::OfZone(_), _) => plan_err!("{} takes texts and a zone", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.step.part {
            Step::Plain(step) => on_arrays(args, |arrays| self.texts(arrays, step)),
            Step::OfZone(step) => {
                let clock: Tz = zone_behind(&mut args, self.name())?.parse()?;
                on_arrays(args, |arrays| self.texts(arrays, |text| Ok(step(text, clock))))
            }
        }
    }
}

impl TextFunction {
    fn texts(&self, arrays: &[ArrayRef], step: impl Fn(&str) -> Result<Option<String>>) -> Result<ArrayRef> {
        let [given] = arrays else { return plan_err!("{} takes one array", self.name()) };
        let texts = cast(given, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let made = texts.iter().map(|text| text.map_or(Ok(None), &step));
        let made = made.collect::<Result<Vec<Option<String>>>>()?;
        if made.iter().all(Option::is_none) {
            return Ok(Arc::clone(given));
        }
        let all = made.into_iter().zip(texts);
        let all = all.map(|(made, text)| made.or_else(|| text.map(str::to_owned)));
        Ok(cast(&all.collect::<StringArray>(), given.data_type())?)
    }
}
