//! HDF5 files as the library that reads them sees them: its requests become those of a [`Storage`], its
//! errors those of the graph.

use crate::storage::{self, Border, Storage, Stored, corrupt, missing};
use hdf5_reader::error::{Error as ReaderError, Result as Answer};
use hdf5_reader::{
    BlockCacheStorage, Datatype, H5Type, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem, Storage as Bytes,
    StorageBuffer,
};
use std::path::PathBuf;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{Chunk, DType, Element, Place};

/// The most bytes of a chunk: a task holds one as a whole.
pub const CHUNK_BYTES_MAX: usize = 1 << 31;
/// The most bytes of the header of a dataset or a group.
pub const HEADER_BYTES_MAX: usize = 1 << 20;

/// A dataset in a file.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    pub(super) dataset: String,
}

/// Facts about a dataset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dataset {
    pub(super) shape: Vec<usize>,
    pub(super) chunks: Option<Vec<usize>>,
    pub(super) dtype: DType,
}

/// The bytes of a file. Metadata are in many small pieces, so blocks of them are kept.
struct File {
    whole: Arc<Whole>,
    blocks: BlockCacheStorage,
}

/// The bytes of a file, each time asked for.
struct Whole {
    path: PathBuf,
    place: &'static dyn Storage,
    size: u64,
}

/// Bytes of a block of metadata.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of metadata that are kept: 2 MiB.
const BLOCKS_MAX: usize = 32;
/// Bytes of all blocks that are kept.
pub(super) const BLOCKS_BYTES: u64 = (BLOCKS_MAX * BLOCK_BYTES) as u64;

impl Location {
    /// Reads what is known about the dataset.
    pub(super) fn describe(&self) -> Stored<Dataset> {
        let dataset = self.open(0)?;
        let extent = |extent: u64| usize::try_from(extent).unwrap_or(usize::MAX);
        let shape: Vec<usize> = dataset.shape().iter().copied().map(extent).collect();
        let dtype = self.dtype(&dataset)?;
        let chunks: Option<Vec<usize>> =
            dataset.chunks().map(|chunks| chunks.into_iter().map(|chunk| chunk as usize).collect());
        if let Some(chunks) = &chunks {
            let bytes = chunks.iter().try_fold(dtype.size_bytes(), |bytes, &chunk| bytes.checked_mul(chunk));
            let fits = bytes.is_some_and(|bytes| 0 < bytes && bytes <= CHUNK_BYTES_MAX);
            if !fits || chunks.len() != shape.len() {
                return Err(corrupt(&self.path, format!("chunks of {chunks:?} of a dataset of {shape:?}")));
            }
        }
        Ok(Dataset { shape, chunks, dtype })
    }

    /// Reads the elements at a place.
    pub(super) fn read(&self, dtype: DType, place: Place<'_>) -> Stored<Chunk> {
        match dtype {
            DType::I8 => self.read_as::<i8>(place),
            DType::I16 => self.read_as::<i16>(place),
            DType::I32 => self.read_as::<i32>(place),
            DType::I64 => self.read_as::<i64>(place),
            DType::U8 => self.read_as::<u8>(place),
            DType::U16 => self.read_as::<u16>(place),
            DType::U32 => self.read_as::<u32>(place),
            DType::U64 => self.read_as::<u64>(place),
            DType::F32 => self.read_as::<f32>(place),
            DType::F64 => self.read_as::<f64>(place),
            other => Err(GraphError::Internal(format!("a dataset of {other}"))),
        }
    }

    fn read_as<T: H5Type + Element>(&self, place: Place<'_>) -> Stored<Chunk> {
        let count: usize = place.extents.iter().product();
        let dataset = self.open(count * size_of::<T>())?;
        let axes = place.origin.iter().zip(place.extents);
        let selections = axes
            .map(|(&start, &len)| SliceInfoElem::Slice {
                start: start as u64,
                end: (start + len) as u64,
                step: 1,
            })
            .collect();
        if self.dtype(&dataset)? != T::DTYPE || dataset.shape().len() != place.extents.len() {
            return Err(corrupt(&self.path, format!("{} has become another dataset", self.dataset)));
        }
        let found = dataset.read_slice::<T>(&SliceInfo { selections }).map_err(|error| self.failed(error))?;
        let (elements, _) = found.into_raw_vec_and_offset();
        if elements.len() != count {
            return Err(corrupt(&self.path, format!("{} elements instead of {count}", elements.len())));
        }
        Ok(Chunk::from_elements(place.extents, &elements)?)
    }

    /// The dataset, of which at most this number of bytes will be read at a time.
    fn open(&self, bytes_max: usize) -> Stored<hdf5_reader::Dataset> {
        let place = storage::of(&self.path)?;
        let found = place.read_border(&self.path, Border::First, 1)?;
        let (_, size) = found.ok_or_else(|| missing(&self.path))?;
        let whole = Arc::new(Whole { path: self.path.clone(), place, size });
        let blocks = BlockCacheStorage::new(Arc::clone(&whole) as _, BLOCK_BYTES, BLOCKS_MAX);
        // Links to other files are not followed: nobody resolves them.
        let options = OpenOptions {
            chunk_cache_bytes: 0,
            max_chunk_bytes: CHUNK_BYTES_MAX,
            max_read_bytes: bytes_max,
            max_object_header_bytes: HEADER_BYTES_MAX,
            ..OpenOptions::default()
        };
        let file = Hdf5File::from_storage_with_options(Arc::new(File { whole, blocks }), options);
        let dataset = file.and_then(|file| file.dataset(&self.dataset));
        dataset.map_err(|error| self.failed(error))
    }

    fn dtype(&self, dataset: &hdf5_reader::Dataset) -> Stored<DType> {
        let datatype = dataset.dtype();
        let found = match datatype {
            Datatype::FixedPoint { size: 1, signed: true, .. } => Some(DType::I8),
            Datatype::FixedPoint { size: 2, signed: true, .. } => Some(DType::I16),
            Datatype::FixedPoint { size: 4, signed: true, .. } => Some(DType::I32),
            Datatype::FixedPoint { size: 8, signed: true, .. } => Some(DType::I64),
            Datatype::FixedPoint { size: 1, signed: false, .. } => Some(DType::U8),
            Datatype::FixedPoint { size: 2, signed: false, .. } => Some(DType::U16),
            Datatype::FixedPoint { size: 4, signed: false, .. } => Some(DType::U32),
            Datatype::FixedPoint { size: 8, signed: false, .. } => Some(DType::U64),
            Datatype::FloatingPoint { size: 4, .. } => Some(DType::F32),
            Datatype::FloatingPoint { size: 8, .. } => Some(DType::F64),
            _ => None,
        };
        let dtype = found.ok_or_else(|| self.unsupported(&format!("the data type {}", kind(datatype))))?;
        let message = dataset.raw_datatype().map_err(|error| self.failed(error))?;
        if !is_native(dtype, &message) {
            return Err(
                self.unsupported(&format!("the data type {}, with its bits elsewhere", kind(datatype)))
            );
        }
        Ok(dtype)
    }

    fn failed(&self, error: ReaderError) -> GraphError {
        match error {
            ReaderError::Context { source, .. } => self.failed(*source),
            ReaderError::Io(error) => match error.downcast::<GraphError>() {
                Ok(error) => error,
                Err(error) => storage::file_error(&self.path, &error),
            },
            error @ (ReaderError::DatasetNotFound(_) | ReaderError::GroupNotFound(_)) => {
                GraphError::File { path: self.path.display().to_string(), reason: error.to_string() }
            }
            error @ (ReaderError::UnsupportedFilter(_)
            | ReaderError::UnsupportedEncoding(_)
            | ReaderError::UnsupportedLinkType(_)) => self.unsupported(&error.to_string()),
            error => corrupt(&self.path, error.to_string()),
        }
    }

    fn unsupported(&self, feature: &str) -> GraphError {
        let what = format!("{} in {}", self.dataset, self.path.display());
        GraphError::Unsupported { what, feature: feature.to_owned() }
    }
}

/// Whether a message on a data type puts bits where the machine has them: all bits of an integer, and the
/// fields of IEEE 754 for a float. The reader takes sizes alone. (HDF5 File Format Specification 3.0,
/// IV.A.2.d.)
fn is_native(dtype: DType, message: &[u8]) -> bool {
    let Some((head, fields)) = message.split_at_checked(8) else { return false };
    // Offset of the first bit and number of bits.
    let [low, high] = (8 * dtype.size_bytes() as u16).to_le_bytes();
    if !fields.starts_with(&[0, 0, low, high]) {
        return false;
    }
    // Place of the sign; place and bits of the exponent and of the mantissa; bias of the exponent.
    let (sign, places, bias) = match dtype {
        DType::F32 => (31, [23, 8, 0, 23], 127u32),
        DType::F64 => (63, [52, 11, 0, 52], 1023),
        _ => return true,
    };
    let is_ieee = head[1] & (VAX_ORDER | NORMALIZATION) == FIRST_BIT_IMPLIED && head[2] == sign;
    is_ieee && fields[4..].starts_with(&[places, bias.to_le_bytes()].concat())
}

/// Flag of floats whose bytes are in the order of a VAX.
const VAX_ORDER: u8 = 0x40;
/// Bits that tell how a mantissa begins.
const NORMALIZATION: u8 = 0x30;
/// The first bit of a mantissa is 1, and not stored.
const FIRST_BIT_IMPLIED: u8 = 0x20;

/// The word for a type that is not read.
fn kind(datatype: &Datatype) -> String {
    match datatype {
        Datatype::FixedPoint { size, .. } => format!("integer of {size} bytes"),
        Datatype::FloatingPoint { size, .. } => format!("float of {size} bytes"),
        Datatype::String { .. } | Datatype::VarLen { .. } => "text".to_owned(),
        Datatype::Compound { .. } => "compound".to_owned(),
        Datatype::Enum { .. } => "enumeration".to_owned(),
        Datatype::Array { .. } => "array".to_owned(),
        _ => "bytes without a meaning".to_owned(),
    }
}

impl Bytes for File {
    fn len(&self) -> u64 {
        self.whole.size
    }

    fn read_range(&self, offset: u64, len: usize) -> Answer<StorageBuffer> {
        if len < BLOCK_BYTES {
            self.blocks.read_range(offset, len)
        } else {
            self.whole.read_range(offset, len)
        }
    }
}

impl Bytes for Whole {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_range(&self, offset: u64, len: usize) -> Answer<StorageBuffer> {
        let is_inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.size);
        if !is_inside || CHUNK_BYTES_MAX < len {
            return Err(ReaderError::OffsetOutOfBounds(offset));
        }
        let mut bytes = vec![0; len];
        let read = self.place.read_stretches(&self.path, &[(offset, 0..len)], &mut bytes);
        read.map_err(std::io::Error::other)?;
        Ok(StorageBuffer::from_vec(bytes))
    }
}
