//! The bytes of a text, block by block: from where it is, decompressed, in the encoding that readers want.

use super::form::{Compression, TextForm, TextKind};
use crate::error::{Error, FileFault, Result};
use crate::scan::storage::{cause, from_store};
use datafusion::common::DataFusionError;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore};
use prost::bytes::Bytes;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use tharsis_text_scan::encoding::Decoder;
use tharsis_text_scan::json_array::{ArrayLines, Fault};

/// The blocks of a file.
pub(super) struct Blocks {
    path: String,
    is_compressed: bool,
    bytes: Bytes_,
    decoder: Decoder,
    /// Of JSON from its begin, which may be an array.
    array: Option<ArrayLines>,
    /// The end of a block within a character.
    rest: Vec<u8>,
    /// Bytes that were read, after decompression.
    position: u64,
    ended: bool,
}

enum Bytes_ {
    /// A local file: reading it blocks for as long as a switch to another thread would take.
    Read(Box<dyn Read + Send>),
    Stream(BoxStream<'static, datafusion::common::Result<Bytes>>),
}

/// Whether a path is that of a compressed text of a form.
pub(crate) fn is_compressed(path: &str, form: &TextForm) -> bool {
    compression(path, form).is_compressed()
}

fn compression(path: &str, form: &TextForm) -> FileCompressionType {
    let end = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let variant = match (form.compression, end.as_deref()) {
        (Compression::Gzip, _) | (Compression::ByName, Some("gz")) => CompressionTypeVariant::GZIP,
        (Compression::Bzip2, _) | (Compression::ByName, Some("bz2")) => CompressionTypeVariant::BZIP2,
        (Compression::Xz, _) | (Compression::ByName, Some("xz")) => CompressionTypeVariant::XZ,
        (Compression::Zstd, _) | (Compression::ByName, Some("zst")) => CompressionTypeVariant::ZSTD,
        (Compression::ByName, _) => CompressionTypeVariant::UNCOMPRESSED,
    };
    FileCompressionType::from(variant)
}

impl Blocks {
    /// The bytes of a file in a range, or all of them.
    pub(super) async fn open(
        store: &dyn ObjectStore,
        location: &Path,
        path: &str,
        range: Option<Range<u64>>,
        form: &TextForm,
    ) -> Result<Blocks> {
        let position = range.as_ref().map_or(0, |range| range.start);
        let options = GetOptions { range: range.clone().map(GetRange::Bounded), ..GetOptions::default() };
        let found = store.get_opts(location, options).await.map_err(|error| from_store(path, &error))?;
        let compression = compression(path, form);
        let is_compressed = compression.is_compressed();
        let failed = |error: DataFusionError| of_reader(path, is_compressed, &error);
        let bytes = match found.payload {
            GetResultPayload::File(mut file, _) => {
                file.seek(SeekFrom::Start(found.range.start)).map_err(|error| Error::io(path, &error))?;
                let length = found.range.end - found.range.start;
                let bytes = compression
                    .convert_read(std::io::BufReader::with_capacity(BLOCK_BYTES, file.take(length)));
                Bytes_::Read(bytes.map_err(failed)?)
            }
            GetResultPayload::Stream(stream) => {
                let stream = stream.map_err(DataFusionError::from).boxed();
                Bytes_::Stream(compression.convert_stream(stream).map_err(failed)?)
            }
        };
        let (path, decoder) = (path.to_owned(), Decoder::new(form.encoding));
        let may_be_array = position == 0 && matches!(&form.kind, TextKind::Json(_));
        let array = may_be_array.then(ArrayLines::new);
        Ok(Blocks { path, is_compressed, bytes, decoder, array, rest: Vec::new(), position, ended: false })
    }

    /// Whether the file is one array of JSON, whose objects are lines here.
    pub(super) fn is_array(&self) -> bool {
        self.array.as_ref().is_some_and(ArrayLines::is_array)
    }

    /// Appends the next block; gives whether there was one.
    pub(super) async fn next(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let before = text.len();
        let begin = self.position - self.rest.len() as u64;
        text.append(&mut self.rest);
        let from = text.len();
        match &mut self.bytes {
            Bytes_::Read(bytes) => {
                text.reserve(BLOCK_BYTES);
                let read = bytes.take(BLOCK_BYTES as u64).read_to_end(text);
                read.map_err(|error| of_io(&self.path, self.is_compressed, &error))?;
            }
            Bytes_::Stream(stream) => {
                while text.len() - before < BLOCK_BYTES {
                    let next = stream.try_next().await;
                    match next.map_err(|error| of_reader(&self.path, self.is_compressed, &error))? {
                        Some(bytes) => text.extend_from_slice(&bytes),
                        None => break,
                    }
                }
            }
        }
        self.ended = text.len() == from;
        self.position += (text.len() - from) as u64;
        // Nearly all blocks are as readers want them.
        if !self.decoder.is_utf8() || std::str::from_utf8(&text[before..]).is_err() {
            let block = text.split_off(before);
            let decoded = self.decoder.decode(&block, self.ended, text);
            let done = decoded.map_err(|error| {
                let reason = format!("{} in position {}", error.reason, begin + error.at as u64);
                Error::file(&self.path, FileFault::Encoding, reason)
            })?;
            self.rest = block[done..].to_vec();
        }
        if let Some(array) = &mut self.array {
            let corrupt = |fault: Fault| Error::file(&self.path, FileFault::Corrupt, fault);
            array.rewrite(&mut text[before..]).map_err(corrupt)?;
            if self.ended {
                array.check_end().map_err(corrupt)?;
            }
        }
        Ok(!self.ended)
    }
}

/// The error of a reader or a decompressor.
fn of_reader(path: &str, is_compressed: bool, error: &DataFusionError) -> Error {
    match error {
        DataFusionError::IoError(error) => of_io(path, is_compressed, error),
        DataFusionError::ObjectStore(error) => from_store(path, error),
        other => Error::file(path, cause(other).unwrap_or(FileFault::Corrupt), other.strip_backtrace()),
    }
}

/// A decompressor reports broken data as any kind of error of the system.
fn of_io(path: &str, is_compressed: bool, error: &std::io::Error) -> Error {
    let fault = if is_compressed && error.raw_os_error().is_none() {
        error.get_ref().and_then(|inner| cause(inner)).unwrap_or(FileFault::Corrupt)
    } else {
        FileFault::of_io(error)
    };
    Error::file(path, if fault == FileFault::Failed { FileFault::Corrupt } else { fault }, error)
}

/// Bytes of a block, before decompression of a stream and after that of a file.
const BLOCK_BYTES: usize = 1 << 20;
