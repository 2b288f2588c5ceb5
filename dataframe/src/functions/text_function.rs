//! Functions of one text that give a text of its type: an adapter around what is done to a text.

use super::on_arrays::on_arrays;
use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The text in the place of another one; `None` for one that stays as it is.
type Step = fn(&str) -> Result<Option<String>>;

/// A step as a function that plans name.
pub(super) fn text_function(name: &'static str, step: Step) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(TextFunction { name, step, signature }))
}

#[derive(Debug)]
struct TextFunction {
    name: &'static str,
    step: Step,
    signature: Signature,
}

impl PartialEq for TextFunction {
    fn eq(&self, other: &TextFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [text] => Ok(vec![text.clone()]),
            _ => plan_err!("{} takes an argument", self.name),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| {
            let [given] = arrays else {
                return plan_err!("{} takes an argument", self.name);
            };
            let texts = cast(given, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            let made = texts.iter().map(|text| text.map_or(Ok(None), self.step));
            let made = made.collect::<Result<Vec<Option<String>>>>()?;
            if made.iter().all(Option::is_none) {
                return Ok(Arc::clone(given));
            }
            let all = made.into_iter().zip(texts);
            let all = all.map(|(made, text)| made.or_else(|| text.map(str::to_owned)));
            Ok(cast(&all.collect::<StringArray>(), given.data_type())?)
        })
    }
}
