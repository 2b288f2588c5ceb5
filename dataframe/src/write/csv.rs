//! Rows as lines of CSV, as pandas writes them.

use super::options::{TextForm, WriteOptions};
use crate::error::{Error, Result};
use crate::length_text::{LengthForm, length_texts};
use crate::table::Table;
use crate::value::without_nan;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::json::writer::{EncoderOptions, make_encoder};
use std::io::Write;
use std::sync::Arc;

impl Table {
    /// Writes all rows as CSV with a line of labels, as [`DataFrame::to_csv`](crate::DataFrame::to_csv) does,
    /// with the form of CSV that the options have.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, WriteOptions};
    /// let city = vec!["Oslo", "Rome"];
    /// let sales = DataFrame::from_columns([("city", city.into()), ("sold", vec![3, 5].into())]);
    /// let mut text = Vec::new();
    /// sales.collect()?.write_csv(&mut text, &WriteOptions::new().sep(b';'))?;
    /// assert_eq!(text, b"city;sold\nOslo;3\nRome;5\n");
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for an option that is one of files, and for a column that has no texts; errors of the
    /// writer.
    pub fn write_csv(&self, to: impl Write, options: &WriteOptions) -> Result<()> {
        let WriteOptions { compression, row_group_rows, partition_cols, index, text } = options;
        let is_of_files = compression.is_some() || row_group_rows.is_some() || !partition_cols.is_empty();
        if is_of_files || index.is_some() {
            return Err(Error::Value(
                "rows as CSV have the options of its form, and none of files".to_owned(),
            ));
        }
        write(to, self.batch(), text, text.header)
    }
}

/// Writes rows, after a line of labels if it is told so.
pub(super) fn write(to: impl Write, rows: &RecordBatch, form: &TextForm, header: bool) -> Result<()> {
    let rows = as_pandas(rows)?;
    let mut writer = arrow::csv::WriterBuilder::new()
        .with_header(header)
        .with_delimiter(form.sep)
        .with_quote(form.quote)
        .with_null(form.na_rep.clone())
        .with_date_format("%Y-%m-%d".to_owned())
        .with_datetime_format(DATE_TIME.to_owned())
        .with_timestamp_format(DATE_TIME.to_owned())
        .with_timestamp_tz_format(format!("{DATE_TIME}%:z"))
        .build(to);
    Ok(writer.write(&rows)?)
}

/// The rows as pandas would write them: truth values begin with capitals, durations have days, a float that
/// is no number is missing. Lists and objects are texts of JSON, which says where their texts end.
fn as_pandas(batch: &RecordBatch) -> Result<RecordBatch> {
    let batch = without_nan(batch)?;
    let schema = batch.schema();
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let array: ArrayRef = match field.data_type() {
            DataType::Boolean => {
                let text = |value| if value { "True" } else { "False" };
                let texts = array.as_boolean().iter().map(|value| value.map(text));
                Arc::new(StringArray::from_iter(texts))
            }
            DataType::Duration(_) => Arc::new(StringArray::from(length_texts(array, LengthForm::Own)?)),
            dtype if dtype.is_nested() => Arc::new(texts_of_json(field, array)?),
            _ => Arc::clone(array),
        };
        fields.push(Field::new(field.name(), array.data_type().clone(), true));
        columns.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Lists and objects as texts of JSON.
fn texts_of_json(field: &FieldRef, array: &ArrayRef) -> Result<StringArray> {
    let unwritten =
        |reason: String| Error::Type(format!("column {:?} cannot be written as CSV: {reason}", field.name()));
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder =
        make_encoder(field, array.as_ref(), &options).map_err(|error| unwritten(error.to_string()))?;
    let mut texts = StringBuilder::new();
    let mut text = Vec::new();
    for row in 0..array.len() {
        if encoder.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        texts.append_value(std::str::from_utf8(&text).map_err(|error| unwritten(error.to_string()))?);
    }
    Ok(texts.finish())
}

/// Times as pandas writes them.
pub(crate) const DATE_TIME: &str = "%Y-%m-%d %H:%M:%S%.f";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlSession;

    #[test]
    fn lists_and_objects_are_texts_of_json() {
        let rows = SqlSession::default().frame(
            "select * from (values
               (1, make_array('a', null, 'b,\"c'), named_struct('x', 1, 'y', 'ü')),
               (2, null, null)) as t(n, l, s) order by n",
        );
        let mut text = Vec::new();
        rows.collect().unwrap().write_csv(&mut text, &WriteOptions::new()).unwrap();
        let wanted =
            "n,l,s\n1,\"[\"\"a\"\",null,\"\"b,\\\"\"c\"\"]\",\"{\"\"x\"\":1,\"\"y\"\":\"\"ü\"\"}\"\n2,,\n";
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }

    #[test]
    fn options_of_files_are_refused() {
        let table = Table::default();
        for options in [
            WriteOptions::new().index(true),
            WriteOptions::new().row_group_size(5),
            WriteOptions::new().partition_cols(["a"]),
        ] {
            assert_eq!(table.write_csv(Vec::new(), &options).unwrap_err().class(), "ValueError");
        }
    }
}
