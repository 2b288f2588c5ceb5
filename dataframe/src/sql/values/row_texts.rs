//! Rows as texts, as runners of SQL logic tests want them.

use crate::error::Result;
use crate::table::Table;
use crate::value::Value;
use arrow::array::{Array, ArrayRef};
use arrow::util::display::array_value_to_string;

/// The rows of a table as texts.
pub(in crate::sql) fn texts(table: &Table) -> Result<Vec<Vec<String>>> {
    let columns = table.batch().columns();
    let row = |row: usize| columns.iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>();
    (0..table.len()).map(row).collect()
}

fn text(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("NULL".to_owned());
    }
    let value = Value::from_array(column, row)?;
    let dtype = column.data_type();
    Ok(match value.as_f64() {
        Some(float) if dtype.is_floating() => float.to_string(),
        _ => {
            let text = array_value_to_string(column, row)?;
            if dtype.is_temporal() {
                text.replacen('T', " ", 1)
            } else if text.is_empty() {
                "(empty)".to_owned()
            } else {
                text
            }
        }
    })
}
