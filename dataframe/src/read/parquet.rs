//! Footers of Parquet files, checked before the library believes them.

use crate::error::{Error, FileFault, Result};
use crate::scan::{from_store, named_async};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::parquet::basic::SortOrder;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use datafusion::parquet::file::statistics::{Statistics, ValueStatistics};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::sync::Arc;

/// Checks the end of a file, which says how long its footer is.
pub(super) async fn check_end(store: &Arc<dyn ObjectStore>, path: &str, meta: &ObjectMeta) -> Result<()> {
    let corrupt = |reason: String| Err(Error::file(path, FileFault::Corrupt, reason));
    let Some(end) = meta.size.checked_sub(END_BYTES).filter(|end| MAGIC.len() as u64 <= *end) else {
        return corrupt(format!("a file of {} bytes has no footer", meta.size));
    };
    let bytes = store.get_range(&meta.location, end..meta.size).await;
    let bytes = bytes.map_err(|error| from_store(path, &error))?;
    let (length, magic) = bytes.split_at(4);
    if magic == b"PARE" {
        return Err(Error::file(path, FileFault::Unsupported, "its footer is encrypted"));
    }
    if magic != MAGIC {
        return corrupt("this is no Parquet: it does not end with the mark of that format".to_owned());
    }
    let length = length.iter().rev().fold(0, |length, byte| (length << 8) | u64::from(*byte));
    if length <= end - MAGIC.len() as u64 {
        Ok(())
    } else {
        corrupt(format!("its footer would have {length} bytes"))
    }
}

/// Checks the footer of a file; gives whether its statistics can be true.
pub(super) async fn check_footer(
    session: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    path: &str,
    meta: &ObjectMeta,
) -> Result<bool> {
    let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(&**store, meta)
        .with_file_metadata_cache(Some(cache))
        .with_page_index_policy(Some(PageIndexPolicy::Skip));
    let metadata = named_async(path, footer.fetch_metadata()).await?;
    let mut labels = std::collections::HashSet::new();
    let fields = metadata.file_metadata().schema_descr().root_schema().get_fields();
    if let Some(twice) = fields.iter().find(|field| !labels.insert(field.name())) {
        let reason = format!("it has two columns {:?}", twice.name());
        return Err(Error::file(path, FileFault::Unsupported, reason));
    }
    match fault(&metadata, meta.size) {
        Some(reason) => Err(Error::file(path, FileFault::Corrupt, reason)),
        None => Ok(!metadata.row_groups().iter().flat_map(|group| group.columns()).any(is_reversed)),
    }
}

/// The format of Parquet. Times of 96 bits, as Hive, Impala and Spark write them, are read in microseconds,
/// which have all years up to 9999: nanoseconds end in 2262, and what is beyond would be another time.
pub(super) fn format() -> ParquetFormat {
    ParquetFormat::default().with_coerce_int96(Some("us".to_owned()))
}

/// A format whose statistics leave out nothing.
pub(super) fn without_pruning() -> ParquetFormat {
    let mut options = format().options().clone();
    options.global.pruning = false;
    options.global.enable_page_index = false;
    ParquetFormat::default().with_options(options)
}

/// The reason why a footer cannot be that of a file of this size: places outside of it, counts that differ.
fn fault(metadata: &ParquetMetaData, size: u64) -> Option<String> {
    for group in metadata.row_groups() {
        if group.num_rows() < 0 {
            return Some(format!("a row group with {} rows", group.num_rows()));
        }
        for column in group.columns() {
            let label = column.column_path().string();
            let begin = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let places = [
                (Some(begin), Some(column.compressed_size())),
                (Some(column.data_page_offset()), Some(0)),
                (column.column_index_offset(), column.column_index_length().map(i64::from)),
                (column.offset_index_offset(), column.offset_index_length().map(i64::from)),
                (column.bloom_filter_offset(), column.bloom_filter_length().map(i64::from)),
            ];
            if !places.into_iter().all(|(offset, length)| is_within(offset, length, size)) {
                return Some(format!("column {label:?} would lie outside of the file"));
            }
            let is_flat = column.column_descr().max_rep_level() == 0;
            if column.num_values() < 0 || (is_flat && column.num_values() != group.num_rows()) {
                let (values, rows) = (column.num_values(), group.num_rows());
                return Some(format!("column {label:?} has {values} values for {rows} rows"));
            }
        }
    }
    None
}

fn is_within(offset: Option<i64>, length: Option<i64>, size: u64) -> bool {
    let Some(offset) = offset else { return true };
    let (offset, length) = (u64::try_from(offset).ok(), u64::try_from(length.unwrap_or(0)).ok());
    let end = offset.zip(length).and_then(|(offset, length)| offset.checked_add(length));
    end.is_some_and(|end| end <= size)
}

/// Whether the statistics of a column say that its least value is above its greatest.
fn is_reversed(column: &ColumnChunkMetaData) -> bool {
    let order = column.column_descr().sort_order();
    match column.statistics() {
        Some(Statistics::Boolean(values)) => reversed(values),
        Some(Statistics::Int32(values)) if order == SortOrder::SIGNED => reversed(values),
        Some(Statistics::Int64(values)) if order == SortOrder::SIGNED => reversed(values),
        Some(Statistics::Float(values)) => reversed(values),
        Some(Statistics::Double(values)) => reversed(values),
        Some(Statistics::ByteArray(values)) if order == SortOrder::UNSIGNED => {
            let (least, most) = (values.min_opt(), values.max_opt());
            least.zip(most).is_some_and(|(least, most)| most.data() < least.data())
        }
        _ => false,
    }
}

fn reversed<T: PartialOrd>(values: &ValueStatistics<T>) -> bool {
    values.min_opt().zip(values.max_opt()).is_some_and(|(least, most)| most < least)
}

const MAGIC: &[u8] = b"PAR1";
/// Bytes after the footer: its length, and the mark.
const END_BYTES: u64 = 8;
