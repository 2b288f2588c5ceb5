//! A file of Arrow's IPC that is being written.
//!
//! A column of categories has a dictionary in each batch, and batches of different tasks have different ones.
//! A file has one dictionary for each column, which later batches may only make longer. So the values of all
//! batches so far are kept, and the codes of a batch are those of its values among them.

use super::options::{Compression, FileSpec};
use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array, make_array, new_empty_array,
};
use arrow::compute::{CastOptions, cast_with_options, concat, take};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result as EngineResult;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, IntoInnerError};
use std::sync::Arc;

/// A file that takes batches of one schema.
pub(super) struct ArrowFile {
    writer: FileWriter<BufWriter<File>>,
    /// Of each column with a dictionary, its values so far.
    dictionaries: Vec<Option<Dictionary>>,
}

impl ArrowFile {
    /// Begins a file, without rows.
    pub(super) fn begin(file: File, schema: &SchemaRef, spec: &FileSpec) -> EngineResult<ArrowFile> {
        let compression = match spec.compression {
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd => Some(CompressionType::ZSTD),
            _ => None,
        };
        let options = IpcWriteOptions::default()
            .try_with_compression(compression)?
            .with_dictionary_handling(DictionaryHandling::Delta);
        let writer = FileWriter::try_new_with_options(BufWriter::new(file), schema, options)?;
        let dictionaries = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Dictionary(codes, values) => Dictionary::new(codes, values).map(Some),
            _ => Ok(None),
        });
        Ok(ArrowFile { writer, dictionaries: dictionaries.collect::<EngineResult<_>>()? })
    }

    /// Appends rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        if self.dictionaries.iter().all(Option::is_none) {
            return Ok(self.writer.write(batch)?);
        }
        let columns = batch.columns().iter().zip(&mut self.dictionaries);
        let columns = columns.map(|(column, dictionary)| match dictionary {
            Some(dictionary) => dictionary.coded(column),
            None => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<EngineResult<Vec<_>>>()?;
        Ok(self.writer.write(&RecordBatch::try_new(batch.schema(), columns)?)?)
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> EngineResult<File> {
        self.writer.finish()?;
        Ok(self.writer.into_inner()?.into_inner().map_err(IntoInnerError::into_error)?)
    }
}

/// The values of a column so far.
struct Dictionary {
    /// The type of codes.
    dtype: DataType,
    values: ArrayRef,
    /// The code of each value, by its bytes.
    codes: HashMap<Box<[u8]>, i64>,
    converter: RowConverter,
}

impl Dictionary {
    fn new(codes: &DataType, values: &DataType) -> EngineResult<Dictionary> {
        Ok(Dictionary {
            dtype: codes.clone(),
            values: new_empty_array(values),
            codes: HashMap::new(),
            converter: RowConverter::new(vec![SortField::new(values.clone())])?,
        })
    }

    /// The rows of a column with the codes of this dictionary, which has all their values then.
    fn coded(&mut self, column: &ArrayRef) -> EngineResult<ArrayRef> {
        let own = column.as_any_dictionary();
        let rows = self.converter.convert_columns(&[Arc::clone(own.values())])?;
        let (mut new, mut codes) = (Vec::new(), Vec::with_capacity(rows.num_rows()));
        for (at, row) in rows.iter().enumerate() {
            let next = self.codes.len() as i64;
            let code = *self.codes.entry(row.as_ref().into()).or_insert_with(|| {
                new.push(at as u64);
                next
            });
            codes.push(code);
        }
        if !new.is_empty() {
            let new = take(own.values(), &UInt64Array::from(new), None)?;
            self.values = concat(&[&self.values, &new])?;
        }
        let own_codes = cast_with_options(own.keys(), &DataType::Int64, &STRICT)?;
        let codes = take(&Int64Array::from(codes), &own_codes, None)?;
        let codes = cast_with_options(&codes, &self.dtype, &STRICT)?;
        let data = codes.to_data().into_builder().data_type(column.data_type().clone());
        Ok(make_array(data.child_data(vec![self.values.to_data()]).build()?))
    }
}

/// More values than the type of codes can tell apart are an error.
const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: arrow::util::display::FormatOptions::new() };
