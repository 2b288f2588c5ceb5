//! Zarr arrays, version 3, on local disks and in object stores: read and written by blocks, so that an array
//! may be many times larger than the memory.
//!
//! The part of the format that is read: regular chunk grids; the data types that are dtypes here; the codecs
//! `bytes`, `gzip`, `zstd`, `crc32c` and `sharding_indexed`; both chunk key encodings; all fill values.
//! Anything else is refused by its name.

mod blocks;
mod codec;
mod coding;
mod grid;
mod metadata;
mod shard;
mod sharding;

pub(crate) use blocks::find;
pub use codec::Compression;
pub use metadata::{CHUNK_BYTES_MAX, METADATA_BYTES_MAX};
pub use sharding::SHARD_CHUNKS_MAX;

use crate::error::{Blame, Error, Result};
use crate::run::{execute, settle};
use crate::storage;
use crate::tensor::{Tensor, carry};
use blocks::{Location, PART_BYTES, Reading, Writing};
use metadata::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tharsis_graph::ops::{Sink, Source};
use tharsis_graph::{Chunks, Error as GraphError, Executor};
use tharsis_kernels::DType;

/// A Zarr array, whose metadata were read and checked.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, zarr};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.zarr");
/// // The array has 128 MB, the program may use a third of that.
/// let executor = LocalExecutor::sized(2, 42_000_000);
/// let options = zarr::Options { chunks: Some(vec![100_000]), ..zarr::Options::default() };
/// zarr::save(&path, &arange(16_000_000), &options, &executor)?;
/// let array = zarr::open(&path)?;
/// assert_eq!(array.shape(), [16_000_000]);
/// let sum = array.tensor().sum(..).fetch_on::<i64>(&executor)?;
/// assert_eq!(sum.first(), Some(&127_999_992_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ZarrArray {
    folder: PathBuf,
    metadata: Metadata,
}

/// Options of writing an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Extents of a chunk; those of a part of some megabytes if there are none.
    pub chunks: Option<Vec<usize>>,
    /// Extents of a shard, multiples of those of a chunk, which are then needed: a file has a shard, each
    /// chunk in it can be read by itself. `None` if each chunk has a file of its own.
    pub shards: Option<Vec<usize>>,
    /// Compression of each chunk.
    pub compression: Compression,
    /// Whether each chunk has a checksum.
    pub checksum: bool,
}

impl ZarrArray {
    /// Extent of each axis.
    ///
    /// ```
    /// # use tharsis_numeric::{LocalExecutor, arange, zarr};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.zarr");
    /// zarr::save(&path, &arange(3), &zarr::Options::default(), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(zarr::open(&path)?.shape(), [3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.metadata.shape
    }

    /// Extents of a chunk; those at the ends of axes may lie partly beyond.
    ///
    /// ```
    /// # use tharsis_numeric::{LocalExecutor, arange, zarr};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.zarr");
    /// let options = zarr::Options { chunks: Some(vec![2]), ..zarr::Options::default() };
    /// zarr::save(&path, &arange(3), &options, &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(zarr::open(&path)?.chunks(), [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn chunks(&self) -> &[usize] {
        &self.metadata.chunks
    }

    /// Extents of a shard, if a file has many chunks.
    ///
    /// ```
    /// # use tharsis_numeric::{LocalExecutor, arange, zarr};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.zarr");
    /// let options =
    ///     zarr::Options { chunks: Some(vec![2]), shards: Some(vec![8]), ..zarr::Options::default() };
    /// zarr::save(&path, &arange(30), &options, &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(zarr::open(&path)?.shards(), Some(&[8][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn shards(&self) -> Option<&[usize]> {
        self.metadata.sharding.as_ref().map(|sharding| sharding.extents.as_slice())
    }

    /// The type of the elements.
    ///
    /// ```
    /// # use tharsis_numeric::{DType, LocalExecutor, arange, zarr};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.zarr");
    /// zarr::save(&path, &arange(3), &zarr::Options::default(), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(zarr::open(&path)?.dtype(), DType::I64);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    /// A tensor over the elements. Each task reads whole chunks, when it is computed, in the process that
    /// runs it: on several nodes, each must find the array under this path. Chunks that are not there have
    /// the fill value.
    ///
    /// ```
    /// # use tharsis_numeric::{LocalExecutor, arange, zarr};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.zarr");
    /// zarr::save(&path, &arange(3), &zarr::Options::default(), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(zarr::open(&path)?.tensor().sum(..).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape has more axes than arrays may have. When it runs: `DataCorrupt` for chunks
    /// that are cut off, too long or damaged, `OSError` if they cannot be read.
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        let Metadata { shape, chunks, sharding, dtype, .. } = &self.metadata;
        let location = Location { folder: self.folder.clone(), metadata: self.metadata.clone() };
        let size_bytes = dtype.size_bytes();
        let cut = Some(match sharding.as_ref().map(|sharding| &sharding.extents) {
            None => together(shape, chunks, size_bytes),
            // Each task reads the index of each shard that it touches, so it should touch few.
            Some(shard) => match together(shard, chunks, size_bytes) {
                part if part == *shard => together(shape, shard, size_bytes),
                part => part,
            },
        });
        let function = Arc::new(Reading(location));
        Tensor::apply(Source { function, shape: shape.clone(), dtype: *dtype, cut }, &[])
    }
}

/// Reads and checks the metadata of an array: the file `zarr.json` in its folder. With the feature
/// `object-storage` the path may be a URL that begins with `s3://`, `http://` or `https://`.
///
/// ```
/// # use tharsis_numeric::zarr;
/// assert_eq!(zarr::open("no such folder").unwrap_err().class(), "OSError");
/// ```
///
/// # Errors
/// `OSError` if it cannot be read, `DataCorrupt` if it is malformed or has chunks of more than
/// [`CHUNK_BYTES_MAX`], `ValueError` for other data types, codecs, grids and versions; `NotImplemented` for
/// URLs in a build without the feature.
#[track_caller]
pub fn open(path: impl AsRef<Path>) -> Result<ZarrArray> {
    open_array(path.as_ref()).blame()
}

/// A tensor over an array, whose chunks are read when it is computed.
///
/// ```
/// # use tharsis_numeric::{LocalExecutor, arange, zarr};
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("x.zarr");
/// zarr::save(&path, &arange(3), &zarr::Options::default(), &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(zarr::load(&path).to_vec::<i64>()?, [0, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`open`] and [`ZarrArray::tensor`].
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Tensor {
    carry!(open_array(path.as_ref())).tensor()
}

/// Computes a tensor and writes it as an array of any dtype, little endian, with the fill value 0. Each task
/// writes a chunk or a shard, so the tensor is never in memory as a whole; chunks of zeros are left out. The
/// folder appears under its name when the array is complete and on the disk. With the feature
/// `object-storage` the path may begin with `s3://`; readers find the array when its metadata are there,
/// which are written last. Of several programs that save to one path, one succeeds, and the others leave its
/// array alone; an object `tharsis-writes-this` keeps others away, also after a program that was killed, and
/// after a failure that left tasks behind, which may still write: remove the folder then.
///
/// ```
/// # use tharsis_numeric::{LocalExecutor, arange, zarr};
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("x.zarr");
/// let compression = zarr::Compression::Zstd { level: 3 };
/// let options = zarr::Options { compression, checksum: true, ..zarr::Options::default() };
/// zarr::save(&path, &arange(3), &options, &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(zarr::load(&path).to_vec::<i64>()?, [0, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`execute`]; `ValueError` for chunks or shards that do not fit; `OSError` if the folder is there
/// already, is written by another program, or cannot be written; `NotImplemented` for web servers, and for
/// all URLs in a build without the feature.
#[track_caller]
pub fn save(
    path: impl AsRef<Path>,
    tensor: &Tensor,
    options: &Options,
    executor: &dyn Executor,
) -> Result<()> {
    let (tensors, _) = settle(&[tensor], executor)?;
    let tensor = tensors.first().unwrap_or(tensor);
    let (dtype, shape) = (tensor.dtype()?, tensor.shape()?.to_vec());
    let chunks = match (&options.chunks, &options.shards) {
        (Some(chunks), _) => chunks.clone(),
        (None, None) => part_of_whole(&shape, dtype.size_bytes()),
        (None, Some(_)) => {
            return Err(Error::here(GraphError::Value("shards need the extents of their chunks".to_owned())));
        }
    };
    let metadata = Metadata::new(dtype, &shape, &chunks, options).blame()?;
    let path = &storage::absolute(path.as_ref()).blame()?;
    let place = storage::of(path).blame()?;
    let begun = place.begin_folder(path).blame()?;
    let location = Location { folder: begun.folder.clone(), metadata: metadata.clone() };
    let extents = Chunks::PerAxis(metadata.file_extents().to_vec());
    let cut = if shape.is_empty() { tensor.clone() } else { tensor.rechunk(extents) };
    let sink = Tensor::lazily(Sink { function: Arc::new(Writing(location)) }, &[&cut]);
    let computed = execute(&[&sink], executor);
    let are_over = computed.as_ref().err().is_none_or(|error| !executor.leaves_tasks(error.cause()));
    let written = computed.and_then(|_| {
        // Last, since an array is there when its metadata are.
        let text = metadata.to_json().to_string();
        place.finish_folder(&begun, path, METADATA_FILE, text.into_bytes()).blame()
    });
    if written.is_err() {
        place.abandon_folder(&begun, &[CHUNKS_FOLDER, METADATA_FILE], are_over);
    }
    written
}

fn open_array(path: &Path) -> std::result::Result<ZarrArray, GraphError> {
    let folder = storage::absolute(path)?;
    let metadata = Metadata::read(&folder.join(METADATA_FILE))?;
    Ok(ZarrArray { folder, metadata })
}

/// Extents of a part of some megabytes, in whole chunks: longer along the last axes first.
pub(crate) fn together(shape: &[usize], chunks: &[usize], size_bytes: usize) -> Vec<usize> {
    extents_of_part(shape, chunks, size_bytes, PART_CHUNKS_MAX)
}

/// As [`together`], where there are no chunks that a task would have to list.
pub(crate) fn part_of_whole(shape: &[usize], size_bytes: usize) -> Vec<usize> {
    extents_of_part(shape, &vec![1; shape.len()], size_bytes, usize::MAX)
}

fn extents_of_part(shape: &[usize], chunks: &[usize], size_bytes: usize, chunks_max: usize) -> Vec<usize> {
    let (mut part, mut count) = (chunks.to_vec(), 1);
    let mut elements: usize = chunks.iter().product::<usize>().max(1);
    for axis in (0..shape.len()).rev() {
        let room = (PART_BYTES / size_bytes / elements).min(chunks_max / count).max(1);
        let wanted = shape[axis].div_ceil(chunks[axis]).max(1);
        let times = room.min(wanted);
        part[axis] = chunks[axis] * times;
        elements = elements.saturating_mul(times);
        count *= times;
        if times < wanted {
            break;
        }
    }
    part
}

/// The most chunks of a part: a task has the coordinates of all of them.
const PART_CHUNKS_MAX: usize = 4096;
const METADATA_FILE: &str = "zarr.json";
/// The folder of chunks that are written, or the only one.
const CHUNKS_FOLDER: &str = "c";

#[cfg(test)]
mod tests {
    use super::{part_of_whole, together};

    #[test]
    fn parts_of_what_has_no_chunks_have_some_megabytes() {
        assert_eq!(part_of_whole(&[1 << 30], 8), [1 << 19]);
        assert_eq!(part_of_whole(&[10_000, 1_000], 8), [524, 1_000]);
        assert_eq!(part_of_whole(&[], 8), [0; 0]);
    }

    #[test]
    fn chunks_are_read_together_along_the_last_axes_first() {
        assert_eq!(together(&[10, 10], &[5, 3], 8), [10, 12]);
        assert_eq!(together(&[10_000, 1_000], &[100, 100], 8), [500, 1_000]);
        assert_eq!(together(&[1 << 30], &[1 << 20], 8), [1 << 20], "a chunk is read whole");
        assert_eq!(together(&[0, 4], &[2, 4], 8), [2, 4]);
        assert_eq!(together(&[], &[], 8), [0; 0]);
        assert_eq!(together(&[1 << 40], &[1], 1), [4096], "tiny chunks are few at a time");
        assert_eq!(together(&[1 << 20, 1000], &[1, 1], 1), [4, 1000]);
    }
}
