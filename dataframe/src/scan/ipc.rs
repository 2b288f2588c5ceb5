//! Files of Arrow's IPC: with a footer, or streams of messages.
//!
//! The library's decoder believes the lengths in a file and takes as much memory as they say, so they are
//! checked here before it sees them: against the size of the file, and against each other.

use super::storage::from_store;
use crate::error::{Error, FileFault, Result};
use crate::scan::shown;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Block, Message, MessageHeader, MetadataVersion, RecordBatch as BatchHeader};
use arrow::ipc::{root_as_footer, root_as_message};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as EngineResult, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use prost::bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// The columns of a file.
pub(crate) async fn ipc_columns(
    store: &Arc<dyn ObjectStore>,
    location: &Path,
    path: &str,
    bytes: u64,
) -> Result<SchemaRef> {
    let file = File { store: Arc::clone(store), location: location.clone(), path: path.to_owned(), bytes };
    Ok(file.contents().await?.schema().clone())
}

/// Files of Arrow's IPC.
#[derive(Clone, Debug)]
pub(crate) struct IpcSource {
    table_schema: TableSchema,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
}

impl IpcSource {
    /// All columns of files.
    pub(crate) fn new(table_schema: TableSchema) -> IpcSource {
        IpcSource {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl FileSource for IpcSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        _: usize,
    ) -> EngineResult<Arc<dyn FileOpener>> {
        let place = scan.object_store_url.as_str().to_owned();
        let opener = IpcOpener { store, place, columns: self.projection.file_indices.clone() };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.table_schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, _: usize) -> Arc<dyn FileSource> {
        // A batch has the rows that its file gives it.
        Arc::new(self.clone())
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> EngineResult<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(IpcSource { projection, ..self.clone() })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "arrow"
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), visit)
    }
}

struct IpcOpener {
    store: Arc<dyn ObjectStore>,
    place: String,
    columns: Vec<usize>,
}

impl FileOpener for IpcOpener {
    fn open(&self, file: PartitionedFile) -> EngineResult<FileOpenFuture> {
        let range = match &file.range {
            None => 0..u64::MAX,
            Some(range) => match (u64::try_from(range.start), u64::try_from(range.end)) {
                (Ok(start), Ok(end)) => start..end,
                _ => return internal_err!("a range of bytes that is negative"),
            },
        };
        let opened = File {
            store: Arc::clone(&self.store),
            path: shown(&self.place, &file.object_meta.location),
            location: file.object_meta.location,
            bytes: file.object_meta.size,
        };
        let columns = self.columns.clone();
        let rows = async move {
            let reader = Reader::open(opened, columns, range).await?;
            Ok(futures::stream::try_unfold(reader, Reader::next).map_err(Into::into).boxed())
        };
        Ok(rows.boxed())
    }
}

#[derive(Clone)]
struct File {
    store: Arc<dyn ObjectStore>,
    location: Path,
    path: String,
    bytes: u64,
}

/// The messages of a file, as far as they are known without reading all of it.
enum Contents {
    /// A footer tells where they are.
    Listed { schema: SchemaRef, version: MetadataVersion, dictionaries: Vec<Block>, batches: Vec<Block> },
    /// They follow each other from a position on.
    Stream { schema: SchemaRef, version: MetadataVersion, from: u64 },
}

impl Contents {
    fn schema(&self) -> &SchemaRef {
        match self {
            Contents::Listed { schema, .. } | Contents::Stream { schema, .. } => schema,
        }
    }
}

impl File {
    fn corrupt(&self, reason: impl std::fmt::Display) -> Error {
        Error::file(&self.path, FileFault::Corrupt, reason)
    }

    /// Bytes of a range that lies within the file.
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = self.store.get_range(&self.location, range).await;
        read.map_err(|error| from_store(&self.path, &error))
    }

    async fn contents(&self) -> Result<Contents> {
        if self.bytes == 0 {
            return Err(self.corrupt("the file is empty"));
        }
        let head = self.read(0..self.bytes.min(MAGIC.len() as u64)).await?;
        if head == MAGIC { self.listed().await } else { self.stream().await }
    }

    /// The contents of a file with a footer.
    async fn listed(&self) -> Result<Contents> {
        let Some(end) = self.bytes.checked_sub(TRAILER_BYTES).filter(|end| MAGIC.len() as u64 <= *end) else {
            return Err(self.corrupt("it is too short for a footer"));
        };
        let trailer = self.read(end..self.bytes).await?;
        let (length, magic) = trailer.split_at(4);
        if magic != MAGIC {
            return Err(self.corrupt("this is no Arrow: it does not end with the mark of that format"));
        }
        let length = i32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        let begin = u64::try_from(length)
            .ok()
            .filter(|length| 0 < *length)
            .and_then(|length| end.checked_sub(length));
        let Some(begin) = begin else {
            return Err(self.corrupt(format!("its footer would have {length} bytes")));
        };
        let bytes = self.read(begin..end).await?;
        let footer = root_as_footer(&bytes).map_err(|error| self.corrupt(format!("its footer: {error}")))?;
        let schema = footer.schema().ok_or_else(|| self.corrupt("its footer has no schema"))?;
        let schema = self.columns(schema)?;
        let blocks = |blocks: Vec<Block>| {
            if blocks.iter().all(|block| is_within(block, begin)) {
                Ok(blocks)
            } else {
                Err(self.corrupt("its footer names blocks that lie outside of it"))
            }
        };
        Ok(Contents::Listed {
            schema,
            version: footer.version(),
            dictionaries: blocks(footer.dictionaries().iter().flatten().copied().collect())?,
            batches: blocks(footer.recordBatches().iter().flatten().copied().collect())?,
        })
    }

    /// The contents of a stream, which begins with its schema.
    async fn stream(&self) -> Result<Contents> {
        let Some((bytes, block)) = self.message(0).await? else {
            return Err(self.corrupt("it has no schema"));
        };
        let message = self.parsed(&bytes)?;
        let schema =
            message.header_as_schema().ok_or_else(|| self.corrupt("it does not begin with a schema"))?;
        let from = (block.metaDataLength() as u64) + block.bodyLength() as u64;
        Ok(Contents::Stream { schema: self.columns(schema)?, version: message.version(), from })
    }

    fn columns(&self, schema: arrow::ipc::Schema<'_>) -> Result<SchemaRef> {
        let count = schema.fields().map_or(0, |fields| fields.len());
        if COLUMNS_MAX < count {
            let reason = format!("it has {count} columns, at most {COLUMNS_MAX} are read");
            return Err(Error::file(&self.path, FileFault::TooLarge, reason));
        }
        // The library panics on types that nobody should write.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fb_to_schema(schema)));
        made.map(Arc::new).map_err(|_| self.corrupt("its schema has a type that does not exist"))
    }

    /// The message at a position of a stream, and its size; `None` at the end.
    async fn message(&self, at: u64) -> Result<Option<(Bytes, Block)>> {
        let left = self.bytes - at;
        if left == 0 {
            return Ok(None);
        }
        let short = || self.corrupt("it ends in the middle of a message");
        let head = self.read(at..at + left.min(8)).await?;
        let word = |from: usize| Some(i32::from_le_bytes(head.get(from..from + 4)?.try_into().ok()?));
        let (prefix, length) = match word(0).ok_or_else(short)? {
            -1 => (8, word(4).ok_or_else(short)?),
            length => (4, length),
        };
        if length == 0 {
            return Ok(None);
        }
        let metadata = u64::try_from(length).ok().and_then(|length| length.checked_add(prefix));
        let metadata = metadata.filter(|metadata| *metadata <= left).ok_or_else(short)?;
        let bytes = self.read(at..at + metadata).await?;
        let body = self.parsed(&bytes)?.bodyLength();
        match u64::try_from(body).ok().and_then(|body| body.checked_add(metadata)).filter(|all| *all <= left)
        {
            None => Err(short()),
            Some(all) => {
                let bytes = self.read(at..at + all).await?;
                Ok(Some((bytes, Block::new(at as i64, metadata as i32, body))))
            }
        }
    }

    fn parsed<'a>(&self, bytes: &'a [u8]) -> Result<Message<'a>> {
        let metadata = match bytes.get(..4) {
            Some([255, 255, 255, 255]) => bytes.get(8..),
            _ => bytes.get(4..),
        };
        let metadata = metadata.ok_or_else(|| self.corrupt("a message without its length"))?;
        root_as_message(metadata).map_err(|error| self.corrupt(format!("a message: {error}")))
    }

    /// Checks the lengths in a message before the library believes them.
    fn check(&self, bytes: &[u8], block: &Block) -> Result<()> {
        let message = self.parsed(&bytes[..(block.metaDataLength() as usize).min(bytes.len())])?;
        let body = bytes.get(block.metaDataLength() as usize..).unwrap_or_default();
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => {
                message.header_as_dictionary_batch().and_then(|batch| batch.data())
            }
            _ => return Ok(()),
        };
        let batch = batch.ok_or_else(|| self.corrupt("a batch without a description"))?;
        let counts = batch.nodes().into_iter().flatten().flat_map(|node| [node.length(), node.null_count()]);
        if counts.chain([batch.length()]).any(|count| count < 0) {
            return Err(self.corrupt("a batch with a negative number of rows"));
        }
        self.check_buffers(&batch, body)
    }

    fn check_buffers(&self, batch: &BatchHeader<'_>, body: &[u8]) -> Result<()> {
        let mut whole: u64 = 0;
        for buffer in batch.buffers().into_iter().flatten() {
            let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
            let range = range.and_then(|(offset, length)| Some(offset..offset.checked_add(length)?));
            let Some(bytes) = range.and_then(|range| body.get(range)) else {
                return Err(self.corrupt("a batch has a buffer that lies outside of it"));
            };
            if batch.compression().is_none() || bytes.is_empty() {
                continue;
            }
            let Some(length) =
                bytes.get(..8).and_then(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?)))
            else {
                return Err(self.corrupt("a compressed buffer has no length"));
            };
            let most = (bytes.len() as u64).saturating_mul(COMPRESSION_MOST).min(BUFFER_BYTES_MAX);
            whole = whole.saturating_add(length.max(0) as u64);
            if length < -1 || (0 < length && most < length as u64) || BATCH_BYTES_MAX < whole {
                let reason = format!("{} compressed bytes would be {length} bytes", bytes.len());
                return Err(self.corrupt(reason));
            }
        }
        Ok(())
    }
}

/// Whether a block that a footer names lies before the footer.
fn is_within(block: &Block, end: u64) -> bool {
    let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
    let parts = parts.map(|part| u64::try_from(part).ok());
    let sum = parts.into_iter().try_fold(0_u64, |sum, part| sum.checked_add(part?));
    sum.is_some_and(|sum| sum <= end) && 8 <= block.metaDataLength()
}

/// The batches of a file that is read.
struct Reader {
    file: File,
    decoder: FileDecoder,
    left: Left,
}

/// The rest that is to be read.
enum Left {
    Blocks(std::vec::IntoIter<Block>),
    From(u64),
}

impl Reader {
    /// The batches that begin in a range of bytes; of a stream all, if it is the first range.
    async fn open(file: File, columns: Vec<usize>, range: Range<u64>) -> Result<Reader> {
        let (schema, version, dictionaries, left) = match file.contents().await? {
            Contents::Listed { schema, version, dictionaries, batches } => {
                let wanted = batches.into_iter().filter(|block| range.contains(&(block.offset() as u64)));
                let wanted: Vec<Block> = wanted.collect();
                (schema, version, dictionaries, Left::Blocks(wanted.into_iter()))
            }
            Contents::Stream { schema, version, from } => {
                let from = if range.start == 0 { from } else { file.bytes };
                (schema, version, Vec::new(), Left::From(from))
            }
        };
        if columns.iter().any(|column| schema.fields().len() <= *column) {
            return Err(file.corrupt("it has fewer columns than before"));
        }
        let decoder = FileDecoder::new(schema, version).with_projection(columns);
        let mut reader = Reader { file, decoder, left };
        for block in dictionaries {
            let bytes = reader.block(&block).await?;
            let read = reader.decoder.read_dictionary(&block, &Buffer::from(bytes));
            read.map_err(|error| reader.file.corrupt(error))?;
        }
        Ok(reader)
    }

    async fn block(&self, block: &Block) -> Result<Bytes> {
        let begin = block.offset() as u64;
        let end = begin + block.metaDataLength() as u64 + block.bodyLength() as u64;
        let bytes = self.file.read(begin..end).await?;
        self.file.check(&bytes, block)?;
        Ok(bytes)
    }

    /// The next batch.
    async fn next(mut self) -> Result<Option<(RecordBatch, Reader)>> {
        loop {
            let (bytes, block) = match &mut self.left {
                Left::Blocks(blocks) => {
                    let Some(block) = blocks.next() else { return Ok(None) };
                    (self.block(&block).await?, block)
                }
                Left::From(at) => {
                    let at = *at;
                    let Some((bytes, block)) = self.file.message(at).await? else { return Ok(None) };
                    self.file.check(&bytes, &block)?;
                    self.left = Left::From(at + bytes.len() as u64);
                    (bytes, block)
                }
            };
            let is_dictionary = self.file.parsed(&bytes)?.header_type() == MessageHeader::DictionaryBatch;
            let bytes = Buffer::from(bytes);
            let failed = |error: arrow::error::ArrowError| match error {
                arrow::error::ArrowError::NotYetImplemented(text) => {
                    Error::file(&self.file.path, FileFault::Unsupported, text)
                }
                error => self.file.corrupt(error),
            };
            if is_dictionary {
                self.decoder.read_dictionary(&block, &bytes).map_err(failed)?;
            } else if let Some(batch) = self.decoder.read_record_batch(&block, &bytes).map_err(failed)? {
                return Ok(Some((batch, self)));
            }
        }
    }
}

const MAGIC: &[u8] = b"ARROW1";
/// Bytes at the end of a file with a footer: its length, and the mark.
const TRAILER_BYTES: u64 = 10;
const COLUMNS_MAX: usize = 100_000;
/// Bytes that a compressed byte can stand for, at most.
const COMPRESSION_MOST: u64 = 1 << 15;
/// Bytes of a decompressed buffer, at most.
const BUFFER_BYTES_MAX: u64 = 2 << 30;
/// Bytes of the decompressed buffers of a batch, at most.
const BATCH_BYTES_MAX: u64 = 4 << 30;
