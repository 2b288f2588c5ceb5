//! Files as a table that the planner reads.

use super::parquet::check_footer;
use super::places::{Found, Place};
use super::prune;
use crate::engine_future::EngineFuture;
use crate::error::{Error, FileFault, Result};
use crate::scan::{IpcSource, Listings, TextForm, TextSource, is_compressed, named_async, store};
use crate::scanned::{Scan, ScannedTable};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue, Statistics, project_schema};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::{expr_applicable_for_cols, filter_partitioned_file};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use std::sync::Arc;

/// Files of one format. They are listed again whenever a plan that reads the table is made, once for all its
/// scans.
#[derive(Debug)]
pub(super) struct FileTable {
    place: Place,
    format: Format,
    /// The columns in the files, then those of their folders.
    columns: TableSchema,
}

/// The format of files.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// One that the library reads.
    Binary(Arc<dyn FileFormat>),
    Text(Arc<TextForm>),
    Ipc,
}

impl FileTable {
    /// A table of files whose columns are known; some of them were found, to tell the columns of folders.
    pub(super) fn new(place: Place, format: Format, schema: SchemaRef, found: &[Found]) -> Result<FileTable> {
        let folders = folder_columns(&place, found)?;
        for field in &folders {
            if schema.column_with_name(field.name()).is_some() {
                let reason = format!("column {:?} is in the files and in the names of folders", field.name());
                return Err(Error::file(&place.text, FileFault::Mismatch, reason));
            }
        }
        let columns = TableSchema::builder(schema).with_table_partition_cols(folders).build();
        Ok(FileTable { place, format, columns })
    }

    /// The names of columns of folders.
    fn folder_labels(&self) -> Vec<&str> {
        self.columns.table_partition_cols().iter().map(|field| field.name().as_str()).collect()
    }

    /// The files that some filters on columns of folders leave, with what is known of them.
    async fn files(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        filters: &[Expr],
    ) -> EngineResult<Vec<PartitionedFile>> {
        let folders = self.columns.table_partition_cols();
        let fields = folders.iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
        let schema = DFSchema::from_unqualified_fields(fields.into(), Default::default())?;
        let mut files = Vec::new();
        let listings = session.config().get_extension::<Listings>();
        for found in self.place.files(&**store, listings.as_deref()).await? {
            let values = self.values(&found)?;
            let file = PartitionedFile::new_from_meta(found.meta).with_partition_values(values);
            files.extend(filter_partitioned_file(file, filters, &schema)?);
        }
        let known = files.into_iter().map(|file| async {
            let statistics = self.statistics(session, store, &file).await?;
            EngineResult::Ok(file.with_statistics(Arc::new(statistics)))
        });
        futures::stream::iter(known).buffered(FILES_AT_ONCE).try_collect().await
    }

    /// The values of a file's folders, as their columns have them.
    fn values(&self, found: &Found) -> Result<Vec<ScalarValue>> {
        let folders = self.columns.table_partition_cols();
        let same = found.values.iter().map(|(label, _)| label).eq(folders.iter().map(|field| field.name()));
        let path = self.place.shown(&found.meta.location);
        if !same {
            return Err(Error::file(
                &path,
                FileFault::Mismatch,
                "its folders differ from those of the others",
            ));
        }
        let value = |((_, text), field): (&(String, Option<String>), &FieldRef)| match text {
            None => Ok(ScalarValue::try_from(field.data_type())?),
            Some(text) => {
                let value = ScalarValue::try_from_string(text.clone(), field.data_type());
                value.map_err(|error| Error::file(&path, FileFault::Mismatch, error.strip_backtrace()))
            }
        };
        found.values.iter().zip(folders.iter()).map(value).collect()
    }

    /// Statistics of a file that are known without its rows.
    async fn statistics(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        file: &PartitionedFile,
    ) -> EngineResult<Statistics> {
        let schema = self.columns.file_schema();
        let meta = &file.object_meta;
        match &self.format {
            Format::Binary(format) if session.config().collect_statistics() => {
                let path = self.place.shown(&meta.location);
                let parquet = (**format).downcast_ref::<ParquetFormat>();
                // The file may have changed since its columns were read.
                if let Some(parquet) = parquet
                    && !(check_footer(session, store, &path, meta).await? && parquet.enable_pruning())
                {
                    return Ok(Statistics::new_unknown(schema));
                }
                let found = format.infer_stats(session, store, Arc::clone(schema), meta);
                Ok(named_async(&path, found).await?)
            }
            Format::Binary(_) => Ok(Statistics::new_unknown(schema)),
            Format::Ipc | Format::Text(_) => {
                let bytes = Precision::Inexact(meta.size as usize);
                Ok(Statistics { total_byte_size: bytes, ..Statistics::new_unknown(schema) })
            }
        }
    }

    /// The plan of a scan of the files that filters on folders leave.
    async fn planned(&self, scan: Scan<'_>) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let Scan { session, projection, filters, limit } = scan;
        let store = store(session.runtime_env(), &self.place.store)?;
        let labels = self.folder_labels();
        let (of_folders, of_rows): (Vec<Expr>, Vec<Expr>) =
            filters.iter().cloned().partition(|filter| is_of_folders(&labels, filter));
        let mut files = self.files(session, &store, &of_folders).await?;
        if of_rows.is_empty() {
            enough(&mut files, limit);
        }
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema(), projection)?)));
        }
        let schema = Schema::clone(self.columns.table_schema());
        let of = |files: &[PartitionedFile]| {
            Statistics::try_merge_iter(files.iter().filter_map(|file| file.statistics.as_deref()), &schema)
        };
        let statistics = of(&files)?;
        let source = self.source(&files, prune::wider(&of_rows), session)?;
        // The files stay in their order, which is that of a list.
        let size = files.len().div_ceil(session.config().target_partitions().max(1));
        let groups: Vec<FileGroup> = files
            .chunks(size)
            .map(|files| {
                let group = FileGroup::new(files.to_vec());
                let statistics = of(group.files())?;
                Ok(group.with_statistics(Arc::new(statistics)))
            })
            .collect::<EngineResult<_>>()?;
        let scan = FileScanConfigBuilder::new(self.place.store.clone(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        match &self.format {
            Format::Binary(format) => format.create_physical_plan(session, scan).await,
            Format::Ipc | Format::Text(_) => Ok(DataSourceExec::from_data_source(scan)),
        }
    }

    /// The reader of the files, which may leave out rows for which a condition does not hold.
    fn source(
        &self,
        files: &[PartitionedFile],
        kept: Option<Expr>,
        session: &dyn Session,
    ) -> EngineResult<Arc<dyn FileSource>> {
        Ok(match &self.format {
            Format::Binary(format) => {
                let source = format.file_source(self.columns.clone());
                match (source.downcast_ref::<ParquetSource>(), kept) {
                    (Some(parquet), Some(kept)) => {
                        let schema = DFSchema::try_from(Arc::clone(self.columns.table_schema()))?;
                        Arc::new(parquet.with_predicate(session.create_physical_expr(kept, &schema)?))
                    }
                    _ => source,
                }
            }
            Format::Ipc => Arc::new(IpcSource::new(self.columns.clone())),
            Format::Text(form) => {
                let is_whole =
                    |file: &PartitionedFile| is_compressed(file.object_meta.location.as_ref(), form);
                let cut = !files.iter().any(is_whole);
                Arc::new(TextSource::new(self.columns.clone(), Arc::clone(form), cut))
            }
        })
    }
}

/// The columns that folders give: whole numbers if all their values are some, else texts.
fn folder_columns(place: &Place, found: &[Found]) -> Result<Vec<FieldRef>> {
    let Some(first) = found.first() else { return Ok(Vec::new()) };
    let mut columns = Vec::new();
    for (at, (label, _)) in first.values.iter().enumerate() {
        if first.values[..at].iter().any(|(before, _)| before == label) {
            let reason = format!("two folders give values for {label:?}");
            return Err(Error::file(&place.shown(&first.meta.location), FileFault::Mismatch, reason));
        }
        let values = || found.iter().filter_map(|file| file.values.get(at)?.1.as_deref());
        let whole = values().all(|text| text.parse::<i64>().is_ok()) && values().next().is_some();
        let dtype = if whole { DataType::Int64 } else { DataType::Utf8 };
        columns.push(Arc::new(Field::new(label, dtype, true)));
    }
    Ok(columns)
}

impl ScannedTable for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.table_schema())
    }

    fn scan<'a>(&'a self, scan: Scan<'a>) -> EngineFuture<'a, Arc<dyn ExecutionPlan>> {
        Box::pin(self.planned(scan))
    }

    fn pushed_filters(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        let labels = self.folder_labels();
        let pushed = |filter: &&Expr| {
            if is_of_folders(&labels, filter) {
                TableProviderFilterPushDown::Exact
            } else {
                TableProviderFilterPushDown::Inexact
            }
        };
        filters.iter().map(pushed).collect()
    }
}

/// Whether the names of folders decide a filter.
fn is_of_folders(labels: &[&str], filter: &Expr) -> bool {
    !labels.is_empty() && expr_applicable_for_cols(labels, filter)
}

/// Leaves out the files after those that have as many rows as are wanted.
fn enough(files: &mut Vec<PartitionedFile>, limit: Option<usize>) {
    let Some(limit) = limit else { return };
    let mut rows = 0;
    let last = files.iter().position(|file| {
        match file.statistics.as_ref().map(|statistics| &statistics.num_rows) {
            Some(Precision::Exact(count)) => rows += count,
            // Nobody knows how many: all files after this one may be needed.
            _ => rows = usize::MIN,
        }
        limit <= rows
    });
    if let Some(last) = last {
        files.truncate(last + 1);
    }
}

/// Files whose footers are read at a time.
const FILES_AT_ONCE: usize = 32;
