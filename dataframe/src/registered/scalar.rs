//! Functions of rows and values as expressions.

use super::call::{Call, SentCall};
use super::prepared::Columns;
use crate::error::FunctionFault;
use arrow::array::{Array, ArrayRef, AsArray, new_empty_array, new_null_array};
use arrow::compute::concat;
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
    /// Whether it is called once for each list of a column, and gives one value for it.
    of_lists: bool,
    returns: DataType,
    signature: Signature,
}

/// Such a function on its way to another process, without the type that it returns.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentFunction {
    call: SentCall,
    labels: Vec<String>,
    of_lists: bool,
}

impl CalledFunction {
    /// A function of columns with these labels.
    pub(crate) fn new(call: Call, labels: Vec<String>, returns: DataType) -> CalledFunction {
        let signature = if labels.is_empty() {
            Signature::nullary(Volatility::Immutable)
        } else {
            Signature::any(labels.len(), Volatility::Immutable)
        };
        // Plans tell expressions apart by this text, so it differs between arguments.
        let name = format!("{}[{:x}]", call.name(), call.arguments_hash());
        CalledFunction { name, call, labels, of_lists: false, returns, signature }
    }

    /// A function of the values of each list in a column with this label.
    pub(crate) fn over_lists(call: Call, label: String, returns: DataType) -> CalledFunction {
        let function = CalledFunction::new(call, vec![label], returns);
        CalledFunction { name: format!("{}[..]", function.name), of_lists: true, ..function }
    }

    /// The value that it gives for each list: the last one of several.
    fn on_lists(&self, lists: &ArrayRef) -> crate::Result<ArrayRef> {
        let lists = lists.as_list_opt::<i32>().ok_or_else(|| {
            self.call.error(FunctionFault::Types(format!("no lists but {}", lists.data_type())))
        })?;
        let mut made = vec![new_empty_array(&self.returns)];
        for values in lists.iter() {
            made.push(match values.filter(|values| !values.is_empty()) {
                None => new_null_array(&self.returns, 1),
                Some(values) => {
                    let columns = Columns::new(&self.labels, std::slice::from_ref(&values), values.len());
                    self.call.on_columns_typed(&columns, &self.returns)?.slice(values.len() - 1, 1)
                }
            });
        }
        let made: Vec<&dyn Array> = made.iter().map(|value| &**value).collect();
        Ok(concat(&made)?)
    }

    /// The function as it was sent.
    ///
    /// # Errors
    /// As [`SentCall::received`].
    pub(crate) fn received(sent: SentFunction, returns: DataType) -> crate::Result<CalledFunction> {
        let SentFunction { call, labels, of_lists } = sent;
        let call = call.received()?;
        Ok(match (of_lists, &labels[..]) {
            (true, [label]) => CalledFunction::over_lists(call, label.clone(), returns),
            _ => CalledFunction::new(call, labels, returns),
        })
    }

    /// The function for another process, and the type that it returns.
    pub(crate) fn sent(&self) -> (SentFunction, &DataType) {
        let labels = self.labels.clone();
        (SentFunction { call: self.call.sent(), labels, of_lists: self.of_lists }, &self.returns)
    }

    /// Its call with these expressions.
    pub(crate) fn expr(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::from(self).call(args)
    }
}

impl PartialEq for CalledFunction {
    fn eq(&self, other: &CalledFunction) -> bool {
        let same = self.call == other.call && self.labels == other.labels;
        same && self.of_lists == other.of_lists && self.returns == other.returns
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
        let made = match (self.of_lists, &arrays[..]) {
            (true, [lists]) => self.on_lists(lists),
            _ => self.call.on_columns_typed(&Columns::new(&self.labels, &arrays, rows), &self.returns),
        };
        Ok(ColumnarValue::Array(
            made.map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?,
        ))
    }
}
