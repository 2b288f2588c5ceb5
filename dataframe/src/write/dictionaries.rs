//! Choice of the columns of a Parquet file that have no dictionary.
//!
//! A dictionary of numbers that hardly repeat costs a look-up for each value, and is given up when it is
//! full.

use arrow::array::{Array, RecordBatch};
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::parquet::file::properties::WriterPropertiesBuilder;
use datafusion::parquet::schema::types::ColumnPath;
use std::collections::HashSet;

/// Rows that are looked at, at most and at least.
const SAMPLE_ROWS: usize = 8192;
const SAMPLE_ROWS_MIN: usize = 1024;
const SEED: u64 = 0;

/// The properties of a file that begins with these rows.
pub(super) fn choose(
    mut properties: WriterPropertiesBuilder,
    rows: &RecordBatch,
) -> Result<WriterPropertiesBuilder> {
    let sample = rows.slice(0, rows.num_rows().min(SAMPLE_ROWS));
    if sample.num_rows() < SAMPLE_ROWS_MIN {
        return Ok(properties);
    }
    for (field, column) in rows.schema().fields().iter().zip(sample.columns()) {
        if field.data_type().is_primitive() && !repeats(column)? {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    Ok(properties)
}

/// Whether most values are equal to another one of the sample.
fn repeats(column: &dyn Array) -> Result<bool> {
    let mut hashes = vec![0; column.len()];
    create_hashes([column], &RandomState::with_seed(SEED), &mut hashes)?;
    let distinct: HashSet<u64> = hashes.into_iter().collect();
    Ok(distinct.len() <= column.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
    use datafusion::parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    #[test]
    fn numbers_that_hardly_repeat_have_no_dictionary() {
        let rows = |count: i64| {
            let distinct: ArrayRef = Arc::new(Float64Array::from_iter_values((0..count).map(|n| n as f64)));
            let repeated: ArrayRef = Arc::new(Int64Array::from_iter_values((0..count).map(|n| n % 9)));
            let texts: ArrayRef = Arc::new((0..count).map(|n| Some(n.to_string())).collect::<StringArray>());
            RecordBatch::try_from_iter([("d", distinct), ("r", repeated), ("t", texts)]).expect("rows")
        };
        let have = |count| {
            let chosen = choose(WriterProperties::builder(), &rows(count)).expect("a choice").build();
            ["d", "r", "t"].map(|name| chosen.dictionary_enabled(&ColumnPath::from(name)))
        };
        assert_eq!(have(10_000), [false, true, true]);
        // Too few rows to tell.
        assert_eq!(have(100), [true, true, true]);
    }
}
