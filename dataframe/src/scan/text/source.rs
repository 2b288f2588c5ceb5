//! Texts as a source of the library's scans.

use super::form::TextForm;
use super::reader::{Reader, Wanted};
use super::records::Text;
use crate::scan::shown;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use std::fmt;
use std::sync::Arc;

/// Files of CSV or JSON.
#[derive(Clone, Debug)]
pub(crate) struct TextSource {
    form: Arc<TextForm>,
    /// Whether files may be cut between partitions.
    cut: bool,
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl TextSource {
    /// All columns of texts of a form, which may be cut if their form allows it.
    pub(crate) fn new(table_schema: TableSchema, form: Arc<TextForm>, cut: bool) -> TextSource {
        TextSource {
            projection: SplitProjection::unprojected(&table_schema),
            cut: cut && form.can_be_cut(),
            form,
            table_schema,
            batch_rows: BATCH_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same texts, which may be cut if their form allows it.
    pub(crate) fn in_parts(&self, cut: bool) -> TextSource {
        TextSource { cut: cut && self.form.can_be_cut(), ..self.clone() }
    }

    pub(crate) fn form(&self) -> &TextForm {
        &self.form
    }
}

impl FileSource for TextSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener =
            TextOpener { source: self.clone(), place: scan.object_store_url.as_str().to_owned(), store };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.table_schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        Arc::new(TextSource { batch_rows, ..self.clone() })
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(TextSource { projection, ..self.clone() })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "text"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.cut { "" } else { ", whole files" };
        write!(f, ", {}{cut}", self.form)
    }

    fn supports_repartitioning(&self) -> bool {
        self.cut
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), visit)
    }
}

struct TextOpener {
    source: TextSource,
    place: String,
    store: Arc<dyn ObjectStore>,
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let range = match &file.range {
            None => None,
            Some(range) => match (u64::try_from(range.start), u64::try_from(range.end)) {
                (Ok(start), Ok(end)) => Some(start..end),
                _ => return internal_err!("a range of bytes that is negative"),
            },
        };
        let text = Text {
            store: Arc::clone(&self.store),
            path: shown(&self.place, &file.object_meta.location),
            location: file.object_meta.location,
            bytes: file.object_meta.size,
            range,
            form: Arc::clone(&self.source.form),
        };
        let wanted = Wanted {
            schema: Arc::clone(self.source.table_schema.file_schema()),
            projection: self.source.projection.file_indices.clone(),
            batch_rows: self.source.batch_rows,
        };
        let rows = async move {
            let reader = Reader::open(text, &wanted).await?;
            Ok(futures::stream::try_unfold(reader, Reader::next).map_err(Into::into).boxed())
        };
        Ok(rows.boxed())
    }
}

/// Rows of a batch if nobody says how many.
const BATCH_ROWS: usize = 8192;
