//! The columns that functions give, found before they run.

use crate::error::{Error, FunctionFault, Result};
use crate::registered::Call;
use crate::table::Table;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use std::collections::HashSet;
use std::sync::Arc;

/// The columns of a result.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Names of the levels of its index.
    pub(crate) levels: Vec<Option<String>>,
    /// The levels, then the columns.
    pub(crate) fields: Fields,
}

/// The columns that functions give, each called with the result of the one before. Those that do not declare
/// them are called without rows.
pub(crate) fn made_of(calls: &[Call], mut given: Vec<Table>) -> Result<Made> {
    for call in calls {
        let made = match call.declared() {
            Some(fields) => Table::from(RecordBatch::new_empty(Arc::new(Schema::new(fields.clone())))),
            None => call.on_tables(given).map_err(with_hint)?,
        };
        given = vec![made];
    }
    let made = given.pop().unwrap_or_default();
    let levels = made.index_names().to_vec();
    let fields: Fields = made.batch().schema().fields().iter().map(|field| plain(field)).collect();
    if let Some(label) = repeated(&fields[levels.len()..]) {
        let text = format!("two of the columns that it gives have the label {label:?}");
        return Err(match calls.last() {
            Some(call) => call.error(FunctionFault::Types(text)),
            None => Error::Value(text),
        });
    }
    Ok(Made { levels, fields })
}

/// The field alone, without what other libraries keep beside it.
fn plain(field: &Field) -> Field {
    Field::new(field.name(), field.data_type().clone(), true)
}

fn repeated(fields: &[Arc<Field>]) -> Option<&str> {
    let mut seen = HashSet::new();
    fields.iter().map(|field| field.name().as_str()).find(|label| !seen.insert(*label))
}

/// The error with what helps.
fn with_hint(error: Error) -> Error {
    let hint = "; it was called without rows to find the columns of its result: let it take none, or declare \
                the columns with `returns`";
    match error {
        Error::Function { function, place, fault: FunctionFault::Failed(text) } => {
            Error::Function { function, place, fault: FunctionFault::Failed(format!("{text}{hint}")) }
        }
        Error::Function { function, place, fault: FunctionFault::Panicked(text) } => {
            Error::Function { function, place, fault: FunctionFault::Panicked(format!("{text}{hint}")) }
        }
        other => other,
    }
}

/// A table without rows, of these columns, the first of which are levels of an index.
pub(crate) fn empty(schema: SchemaRef, levels: Vec<Option<String>>) -> Table {
    Table::of_batch(RecordBatch::new_empty(schema), levels)
}
