//! JSON as tables of statements.
//!
//! The library would read them by a reader of its own, which rounds whole numbers that have no sign, cuts
//! fractions, and finds types in the first thousand lines. Here they are read as frames read them.

use super::options::{INFER_BYTES_DEFAULT, MAX_LINE_DEFAULT};
use crate::engine_future::EngineFuture;
use crate::scan::{
    Bad, Charset, Columns, Compression, Encoding, JsonForm, Text, TextForm, TextKind, TextSource,
    is_compressed, sample,
};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::config::JsonOptions;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{GetExt, Result as EngineResult, Statistics, internal_err, not_impl_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The form of JSON.
pub(super) fn form(form: JsonForm, compression: Compression) -> TextForm {
    let encoding = Encoding { charset: Charset::Utf8, bad: Bad::Error };
    TextForm { kind: TextKind::Json(form), encoding, compression, max_line: MAX_LINE_DEFAULT }
}

/// Makes the format that `STORED AS JSON` names.
#[derive(Debug, Default)]
pub(crate) struct JsonLinesFactory {
    library: JsonFormatFactory,
}

impl GetExt for JsonLinesFactory {
    fn get_ext(&self) -> String {
        self.library.get_ext()
    }
}

impl FileFormatFactory for JsonLinesFactory {
    fn create(
        &self,
        session: &dyn Session,
        options: &HashMap<String, String>,
    ) -> EngineResult<Arc<dyn FileFormat>> {
        let format = self.library.create(session, options)?;
        let Some(format) = format.downcast_ref::<JsonFormat>() else {
            return internal_err!("another format in the place of JSON");
        };
        if !format.is_newline_delimited() {
            // Lines are written, and a file shows by itself that it is an array.
            return not_impl_err!(
                "a file of JSON that is one array is not supported with NEWLINE_DELIMITED: lines of objects are \
                 written, and arrays are read without the option"
            );
        }
        Ok(Arc::new(JsonLines::new(format.options().clone())))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(JsonLines::new(JsonOptions::default()))
    }
}

/// Files of JSON, which the library writes as lines.
#[derive(Debug)]
struct JsonLines {
    library: JsonFormat,
    /// Whether the columns were found in the files, and not declared.
    found: AtomicBool,
    /// Whether one of the files is an array.
    is_array: AtomicBool,
}

impl JsonLines {
    fn new(options: JsonOptions) -> JsonLines {
        JsonLines {
            library: JsonFormat::default().with_options(options),
            found: AtomicBool::new(false),
            is_array: AtomicBool::new(false),
        }
    }

    fn form(&self, columns: Columns) -> Arc<TextForm> {
        let compression = match self.library.options().compression {
            CompressionTypeVariant::GZIP => Compression::Gzip,
            CompressionTypeVariant::BZIP2 => Compression::Bzip2,
            CompressionTypeVariant::XZ => Compression::Xz,
            CompressionTypeVariant::ZSTD => Compression::Zstd,
            CompressionTypeVariant::UNCOMPRESSED => Compression::ByName,
        };
        let is_array = self.is_array.load(Ordering::Relaxed);
        Arc::new(form(JsonForm { columns, is_array }, compression))
    }

    async fn columns(&self, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> EngineResult<SchemaRef> {
        let form = self.form(Columns::Found);
        let text = |file: &ObjectMeta| Text {
            store: Arc::clone(store),
            location: file.location.clone(),
            path: format!("/{}", file.location),
            bytes: file.size,
            range: None,
            form: Arc::clone(&form),
        };
        let texts: Vec<Text> = files.iter().map(text).collect();
        let place = texts.first().map_or_else(String::new, |text| text.path.clone());
        let rows = self.library.options().schema_infer_max_rec;
        let (found, is_array) = sample::of_json(&place, texts, INFER_BYTES_DEFAULT, rows).await?;
        self.is_array.store(is_array, Ordering::Relaxed);
        self.found.store(true, Ordering::Relaxed);
        Ok(found)
    }

    fn planned(scan: FileScanConfig) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let Some(source) = scan.file_source().downcast_ref::<TextSource>() else {
            return internal_err!("a scan of JSON lines of another source");
        };
        let is_whole = |group: &FileGroup| {
            group.iter().any(|file| is_compressed(file.object_meta.location.as_ref(), source.form()))
        };
        let is_whole = scan.file_groups.iter().any(is_whole);
        let source: Arc<dyn FileSource> = Arc::new(source.in_parts(!is_whole));
        let scan = FileScanConfigBuilder::from(scan).with_source(source).build();
        Ok(DataSourceExec::from_data_source(scan))
    }
}

impl FileFormat for JsonLines {
    fn get_ext(&self) -> String {
        self.library.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> EngineResult<String> {
        self.library.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.library.compression_type()
    }

    fn infer_schema<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _: &'life1 dyn Session,
        store: &'life2 Arc<dyn ObjectStore>,
        files: &'life3 [ObjectMeta],
    ) -> EngineFuture<'async_trait, SchemaRef>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.columns(store, files))
    }

    fn infer_stats<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        session: &'life1 dyn Session,
        store: &'life2 Arc<dyn ObjectStore>,
        columns: SchemaRef,
        file: &'life3 ObjectMeta,
    ) -> EngineFuture<'async_trait, Statistics>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        self.library.infer_stats(session, store, columns, file)
    }

    fn create_physical_plan<'life0, 'life1, 'async_trait>(
        &'life0 self,
        _: &'life1 dyn Session,
        scan: FileScanConfig,
    ) -> EngineFuture<'async_trait, Arc<dyn ExecutionPlan>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(std::future::ready(JsonLines::planned(scan)))
    }

    fn create_writer_physical_plan<'life0, 'life1, 'async_trait>(
        &'life0 self,
        input: Arc<dyn ExecutionPlan>,
        session: &'life1 dyn Session,
        files: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> EngineFuture<'async_trait, Arc<dyn ExecutionPlan>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        self.library.create_writer_physical_plan(input, session, files, order)
    }

    fn file_source(&self, columns: TableSchema) -> Arc<dyn FileSource> {
        let origin = if self.found.load(Ordering::Relaxed) { Columns::Found } else { Columns::Declared };
        Arc::new(TextSource::new(columns, self.form(origin), false))
    }
}
