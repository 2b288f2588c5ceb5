//! Functions of rows and values as expressions.

use super::call::{Call, SentCall};
use super::prepared::Columns;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A function of the program that is called with the values of each row.
#[derive(Debug)]
pub(crate) struct CalledFunction {
    name: String,
    call: Call,
    labels: Vec<String>,
    returns: DataType,
    signature: Signature,
}

/// Such a function on its way to another process, without the type that it returns.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentFunction {
    call: SentCall,
    labels: Vec<String>,
}

impl CalledFunction {
    /// A function of columns with these labels.
    pub(crate) fn new(call: Call, labels: Vec<String>, returns: DataType) -> CalledFunction {
        let signature = match labels.is_empty() {
            true => Signature::nullary(Volatility::Immutable),
            false => Signature::any(labels.len(), Volatility::Immutable),
        };
        // Plans tell expressions apart by this text, so it differs between arguments.
        let name = format!("{}[{:x}]", call.name(), call.arguments_hash());
        CalledFunction { name, call, labels, returns, signature }
    }

    /// The function as it was sent.
    ///
    /// # Errors
    /// As [`SentCall::received`].
    pub(crate) fn received(sent: SentFunction, returns: DataType) -> crate::Result<CalledFunction> {
        Ok(CalledFunction::new(sent.call.received()?, sent.labels, returns))
    }

    /// The function for another process, and the type that it returns.
    pub(crate) fn sent(&self) -> (SentFunction, &DataType) {
        (SentFunction { call: self.call.sent(), labels: self.labels.clone() }, &self.returns)
    }

    /// Its call with these expressions.
    pub(crate) fn expr(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::from(self).call(args)
    }
}

impl PartialEq for CalledFunction {
    fn eq(&self, other: &CalledFunction) -> bool {
        self.call == other.call && self.labels == other.labels && self.returns == other.returns
    }
}

impl Eq for CalledFunction {}

impl Hash for CalledFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.call.hash(state);
        self.labels.hash(state);
    }
}

impl ScalarUDFImpl for CalledFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let columns = Columns::new(&self.labels, &arrays, rows);
        let made = self.call.on_columns_typed(&columns, &self.returns);
        Ok(ColumnarValue::Array(
            made.map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?,
        ))
    }
}
