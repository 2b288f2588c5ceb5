//! Times of 96 bits in files of Parquet, which have more years than times of 64 bits. The library wraps those
//! for which there is no room, and they would be times that nobody has written.
//!
//! Such a column is read twice, the first time in milliseconds, for which there is always room.

use crate::error::{Error, FileFault};
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, TimeUnit, TimestampMillisecondType};
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::Int96Coercer;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::execution::TaskContext;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use datafusion::parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use datafusion::parquet::basic::Type;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::parquet::schema::types::ColumnDescPtr;
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use prost::bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Refuses a file with times of 96 bits for which the columns of a scan have no room.
pub(super) async fn check(
    scan: &FileScanConfig,
    file: &PartitionedFile,
    path: &str,
    store: &Arc<dyn ObjectStore>,
    context: &TaskContext,
) -> Result<()> {
    let source = scan.file_source();
    if source.downcast_ref::<ParquetSource>().is_none() {
        return Ok(());
    }
    let ends = ends(scan, &**source);
    if ends.is_empty() {
        return Ok(());
    }
    let cache = context.runtime_env().cache_manager.get_file_metadata_cache();
    let metadata = DFParquetMetadata::new(&**store, &file.object_meta)
        .with_file_metadata_cache(Some(cache))
        .with_page_index_policy(Some(PageIndexPolicy::Skip))
        .fetch_metadata()
        .await?;
    let end_of = |label: &str| ends.iter().find(|(known, _)| known == label).map(|(_, end)| *end);
    let schema = metadata.file_metadata().schema_descr();
    let is_old = |column: &ColumnDescPtr| {
        let label = column.path().parts().first();
        column.physical_type() == Type::INT96 && label.is_some_and(|label| end_of(label).is_some())
    };
    let columns = schema.columns().iter().enumerate();
    let old: Vec<usize> = columns.filter(|(_, column)| is_old(column)).map(|(at, _)| at).collect();
    if old.is_empty() {
        return Ok(());
    }
    let arrow = parquet_to_arrow_schema(schema, metadata.file_metadata().key_value_metadata())?;
    let wide = Int96Coercer::new(schema, &arrow, &TimeUnit::Millisecond).coerce().unwrap_or(arrow);
    let options = ArrowReaderOptions::new().with_schema(Arc::new(wide));
    let location = file.object_meta.location.clone();
    let reader = Stored { store: Arc::clone(store), location, metadata: Arc::clone(&metadata) };
    let known = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options)?;
    let mut rows = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, known)
        .with_projection(ProjectionMask::leaves(schema, old))
        .with_row_groups(row_groups(&metadata, file))
        .build()?;
    while let Some(batch) = rows.try_next().await? {
        for (field, values) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            if end_of(field.name()).is_some_and(|end| is_beyond(values, end)) {
                let reason =
                    format!("column {:?} has a time in a year for which its type has no room", field.name());
                return Err(Error::file(path, FileFault::Corrupt, reason).into());
            }
        }
    }
    Ok(())
}

/// A file in a store, whose footer is known.
struct Stored {
    store: Arc<dyn ObjectStore>,
    location: Path,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for Stored {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let bytes = self.store.get_range(&self.location, range);
        bytes.map(|bytes| bytes.map_err(|error| ParquetError::External(Box::new(error)))).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        std::future::ready(Ok(Arc::clone(&self.metadata))).boxed()
    }
}

/// The labels of columns that a scan reads and that have times, with the milliseconds before and after 1970
/// at which these end.
fn ends(scan: &FileScanConfig, source: &dyn FileSource) -> Vec<(String, u64)> {
    let fields = scan.file_schema().fields();
    let read = source.projection().map_or_else(|| (0..fields.len()).collect(), |read| read.column_indices());
    let fields = read.into_iter().filter_map(|at| fields.get(at));
    fields.filter_map(|field| Some((field.name().clone(), end(field.data_type())?))).collect()
}

/// The milliseconds at which the times of a type end, if it has some of the units of old times.
fn end(dtype: &DataType) -> Option<u64> {
    match dtype {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(i64::MAX as u64 / 1_000_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Some(i64::MAX as u64 / 1_000),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            end(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().filter_map(|field| end(field.data_type())).min(),
        _ => None,
    }
}

/// The row groups that begin in the part of a file that is read, as the library chooses them.
fn row_groups(metadata: &ParquetMetaData, file: &PartitionedFile) -> Vec<usize> {
    let groups = metadata.row_groups().iter().enumerate();
    let read = groups.filter(|(_, group)| match (&file.range, group.columns().first()) {
        (Some(range), Some(first)) => {
            range.contains(first.dictionary_page_offset().unwrap_or_else(|| first.data_page_offset()))
        }
        _ => true,
    });
    read.map(|(at, _)| at).collect()
}

/// Whether one of some times in milliseconds, or of those within other values, is at an end or beyond.
fn is_beyond(values: &ArrayRef, end: u64) -> bool {
    match values.data_type() {
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let times = values.as_primitive::<TimestampMillisecondType>();
            times.iter().flatten().any(|time| end <= time.unsigned_abs())
        }
        DataType::List(_) => is_beyond(values.as_list::<i32>().values(), end),
        DataType::LargeList(_) => is_beyond(values.as_list::<i64>().values(), end),
        DataType::Map(..) => values.as_map().entries().columns().iter().any(|values| is_beyond(values, end)),
        DataType::Struct(_) => values.as_struct().columns().iter().any(|values| is_beyond(values, end)),
        _ => false,
    }
}
