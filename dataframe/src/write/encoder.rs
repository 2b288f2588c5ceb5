//! One file of a format, and several of them as one.

use super::arrow_file::ArrowFile;
use super::options::{Compression, FileFormat, FileSpec, TextForm};
use super::{csv, dictionaries};
use arrow::array::{Array, MutableArrayData, RecordBatch, make_array};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileReader;
use datafusion::common::Result as EngineResult;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::bloom_filter::Sbbf;
use datafusion::parquet::column::writer::ColumnCloseResult;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::parquet::file::writer::SerializedFileWriter;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use prost::bytes::Bytes;
use std::fs::File;
use std::io::{BufReader, BufWriter, IntoInnerError, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is being written.
pub(super) enum Encoder {
    Arrow(ArrowFile),
    Parquet(ArrowWriter<File>),
    Text(TextFile),
}

impl Encoder {
    /// Begins a file for these rows and later ones, without writing them; a text has a header if it is told
    /// so.
    pub(super) fn begin(
        file: File,
        rows: &RecordBatch,
        spec: &FileSpec,
        header: bool,
    ) -> EngineResult<Encoder> {
        let schema = rows.schema_ref();
        Ok(match spec.format {
            FileFormat::Arrow => Encoder::Arrow(ArrowFile::begin(file, schema, spec)?),
            FileFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(codec(spec.compression)?)
                    .set_max_row_group_row_count(Some(spec.row_group_rows));
                let properties = dictionaries::choose(properties, rows)?.build();
                Encoder::Parquet(ArrowWriter::try_new(file, Arc::clone(schema), Some(properties))?)
            }
            FileFormat::Csv | FileFormat::Json => Encoder::Text(TextFile::begin(file, schema, spec, header)?),
        })
    }

    /// Appends rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        match self {
            Encoder::Arrow(writer) => writer.write(&emptied(batch)?),
            Encoder::Parquet(writer) => Ok(writer.write(batch)?),
            Encoder::Text(text) => text.write(batch),
        }
    }

    /// Bytes in memory that are not in the file yet.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Encoder::Parquet(writer) => writer.memory_size(),
            Encoder::Arrow(_) | Encoder::Text(_) => 0,
        }
    }

    /// Puts into the file what is in memory.
    pub(super) fn flush(&mut self) -> EngineResult<()> {
        match self {
            Encoder::Parquet(writer) => Ok(writer.flush()?),
            Encoder::Arrow(_) | Encoder::Text(_) => Ok(()),
        }
    }

    /// Ends the file, and brings it to the disk if it stays. Gives the number of its bytes.
    pub(super) async fn finish(self, stays: bool) -> EngineResult<u64> {
        let file = match self {
            Encoder::Arrow(writer) => writer.finish()?,
            Encoder::Parquet(writer) => writer.into_inner()?,
            Encoder::Text(text) => text.finish().await?,
        };
        if stays {
            file.sync_all()?;
        }
        Ok(file.metadata()?.len())
    }
}

/// The rows without what steps may have left under missing values, which is nobody's business.
fn emptied(batch: &RecordBatch) -> EngineResult<RecordBatch> {
    let columns = batch.columns().iter().map(|array| {
        let Some(nulls) = array.nulls().filter(|nulls| 0 < nulls.null_count()) else {
            return Ok(Arc::clone(array));
        };
        let data = array.to_data();
        let mut copy = MutableArrayData::new(vec![&data], true, array.len());
        let mut end = 0;
        for (from, to) in nulls.valid_slices() {
            copy.try_extend_nulls(from - end)?;
            copy.try_extend(0, from, to)?;
            end = to;
        }
        copy.try_extend_nulls(array.len() - end)?;
        Ok(make_array(copy.freeze()))
    });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect::<EngineResult<_>>()?)?)
}

fn codec(compression: Compression) -> EngineResult<Codec> {
    Ok(match compression {
        Compression::Gzip => Codec::GZIP(GzipLevel::default()),
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Zstd => Codec::ZSTD(ZstdLevel::try_new(1)?),
    })
}

/// A text that is being written: CSV, or JSON with an object a line.
pub(super) struct TextFile {
    file: File,
    form: Option<TextForm>,
    schema: SchemaRef,
    /// Whether the header is still to be written.
    header: bool,
    buffer: Vec<u8>,
    compressor: Option<Compressor>,
}

impl TextFile {
    fn begin(file: File, schema: &SchemaRef, spec: &FileSpec, header: bool) -> EngineResult<TextFile> {
        let form = (spec.format == FileFormat::Csv).then(|| spec.text.clone());
        let header = header && form.as_ref().is_some_and(|form| form.header);
        let variant = match spec.compression {
            Compression::Gzip => Some(CompressionTypeVariant::GZIP),
            Compression::Zstd => Some(CompressionTypeVariant::ZSTD),
            _ => None,
        };
        let compressor = variant.map(Compressor::new).transpose()?;
        Ok(TextFile { file, form, schema: Arc::clone(schema), header, buffer: Vec::new(), compressor })
    }

    fn write(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        match &self.form {
            Some(form) => csv::write(&mut self.buffer, batch, form, self.header)?,
            None => write_json(&mut self.buffer, batch)?,
        }
        self.header = false;
        self.pass_on(BUFFER_BYTES)
    }

    /// Passes the text on if there are so many bytes of it.
    fn pass_on(&mut self, least_bytes: usize) -> EngineResult<()> {
        if self.buffer.len() < least_bytes {
            return Ok(());
        }
        match &mut self.compressor {
            None => {
                self.file.write_all(&self.buffer)?;
                self.buffer.clear();
            }
            Some(compressor) => {
                let text = std::mem::take(&mut self.buffer);
                compressor.push(text, &mut self.file)?;
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> EngineResult<File> {
        if self.header {
            self.write(&RecordBatch::new_empty(Arc::clone(&self.schema)))?;
        }
        self.pass_on(1)?;
        if let Some(compressor) = self.compressor.take() {
            compressor.finish(&mut self.file).await?;
        }
        Ok(self.file)
    }
}

/// Compresses a text as it is pushed. The library has a stream that pulls; what it can give is taken after
/// each push.
struct Compressor {
    text: UnboundedSender<EngineResult<Bytes>>,
    compressed: BoxStream<'static, EngineResult<Bytes>>,
}

impl Compressor {
    fn new(variant: CompressionTypeVariant) -> EngineResult<Compressor> {
        let (text, pushed) = unbounded();
        let compressed = FileCompressionType::from(variant).convert_to_compress_stream(pushed.boxed())?;
        Ok(Compressor { text, compressed })
    }

    fn push(&mut self, text: Vec<u8>, file: &mut File) -> EngineResult<()> {
        // It fails if the stream has ended, which gives its error below.
        let _ended = self.text.unbounded_send(Ok(text.into()));
        while let Some(Some(bytes)) = self.compressed.next().now_or_never() {
            file.write_all(&bytes?)?;
        }
        Ok(())
    }

    async fn finish(mut self, file: &mut File) -> EngineResult<()> {
        self.text.close_channel();
        while let Some(bytes) = self.compressed.next().await {
            file.write_all(&bytes?)?;
        }
        Ok(())
    }
}

fn write_json(buffer: &mut Vec<u8>, batch: &RecordBatch) -> EngineResult<()> {
    let builder = arrow::json::WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, arrow::json::writer::LineDelimited>(buffer);
    writer.write(batch)?;
    Ok(writer.finish()?)
}

/// Puts files together as one.
pub(super) fn join(spec: &FileSpec, parts: &[PathBuf], made: &Path) -> EngineResult<()> {
    match spec.format {
        FileFormat::Csv | FileFormat::Json => {
            // Compressed texts may follow each other too.
            let mut whole = File::create(made)?;
            for part in parts {
                std::io::copy(&mut File::open(part)?, &mut whole)?;
            }
            Ok(())
        }
        FileFormat::Arrow => join_arrow(spec, parts, made),
        FileFormat::Parquet => join_parquet(parts, made),
    }
}

fn join_arrow(spec: &FileSpec, parts: &[PathBuf], made: &Path) -> EngineResult<()> {
    let mut writer = None;
    for part in parts {
        let reader = FileReader::try_new_buffered(File::open(part)?, None)?;
        let schema = reader.schema();
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(ArrowFile::begin(File::create(made)?, &schema, spec)?),
        };
        for batch in reader {
            writer.write(&batch?)?;
        }
    }
    writer.map_or(Ok(()), |writer| writer.finish().map(|_| ()))
}

/// Copies the encoded columns of all row groups; only their places change.
fn join_parquet(parts: &[PathBuf], made: &Path) -> EngineResult<()> {
    let mut writer = None;
    for part in parts {
        let file = File::open(part)?;
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => {
                let about = metadata.file_metadata();
                let properties = WriterProperties::builder()
                    .set_key_value_metadata(about.key_value_metadata().cloned())
                    .build();
                let schema = about.schema_descr().root_schema_ptr();
                let made = BufWriter::with_capacity(COPIED_BYTES, File::create(made)?);
                none.insert(SerializedFileWriter::new(made, schema, Arc::new(properties))?)
            }
        };
        append_row_groups(writer, &file, &metadata)?;
    }
    if let Some(writer) = writer {
        writer.into_inner()?.into_inner().map_err(IntoInnerError::into_error)?;
    }
    Ok(())
}

/// Reads a part in large pieces. The library copies 8 kB at a time, and each copy would be two calls to the
/// system.
struct LargeReads<'a>(&'a File);

impl Length for LargeReads<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for LargeReads<'_> {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<File>> {
        let mut file = self.0.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::with_capacity(COPIED_BYTES, file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.0.get_bytes(start, length)
    }
}

fn append_row_groups(
    writer: &mut SerializedFileWriter<BufWriter<File>>,
    file: &File,
    metadata: &ParquetMetaData,
) -> EngineResult<()> {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let mut copy = writer.next_row_group()?;
        for (at, column) in group.columns().iter().enumerate() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(column, file)?,
                column_index: metadata.column_index().and_then(|index| index.get(number)?.get(at)).cloned(),
                offset_index: metadata.offset_index().and_then(|index| index.get(number)?.get(at)).cloned(),
            };
            copy.append_column(&LargeReads(file), close)?;
        }
        copy.close()?;
    }
    Ok(())
}

/// Bytes of encoded columns that are copied at a time.
const COPIED_BYTES: usize = 1 << 20;
/// Bytes of text that are passed on together.
const BUFFER_BYTES: usize = 256 << 10;
