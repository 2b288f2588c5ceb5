//! Datasets of HDF5 files, read by blocks, so that a dataset may be many times larger than the memory. Files
//! are on local disks or, with the feature `object-storage`, in object stores.
//!
//! The part of the format that is read: contiguous, compact and chunked datasets of integers, `float32` and
//! `float64` in any byte order, with the filters deflate, shuffle and fletcher32. Other types are refused by
//! their names, and filters that the reader does not have; links lead to no other files.

mod file;

use crate::error::{Blame, Result};
use crate::storage;
use crate::tensor::{Tensor, carry};
use crate::zarr::{part_of_whole, together};
use file::{Dataset, Location};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tharsis_graph::ops::Source;
use tharsis_graph::{Error as GraphError, Foreign, ForeignName};
use tharsis_kernels::{Chunk, DType, Place};

pub use file::{CHUNK_BYTES_MAX, HEADER_BYTES_MAX};

/// A dataset, whose metadata were read and checked.
///
/// ```
/// use tharsis_numeric::hdf5;
///
/// let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
/// let dataset = hdf5::open(&path, "group/chunked")?;
/// assert_eq!((dataset.shape(), dataset.chunks()), (&[5, 7][..], Some(&[2, 3][..])));
/// assert_eq!(dataset.tensor().sum(..).item()?.to_f64(), 148.75);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hdf5Dataset {
    location: Location,
    dataset: Dataset,
}

impl Hdf5Dataset {
    /// Extent of each axis.
    ///
    /// ```
    /// # use tharsis_numeric::hdf5;
    /// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
    /// assert_eq!(hdf5::open(&path, "contiguous")?.shape(), [5, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.dataset.shape
    }

    /// Extents of a chunk, if the dataset has chunks.
    ///
    /// ```
    /// # use tharsis_numeric::hdf5;
    /// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
    /// assert_eq!(hdf5::open(&path, "contiguous")?.chunks(), None);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn chunks(&self) -> Option<&[usize]> {
        self.dataset.chunks.as_deref()
    }

    /// The type of the elements.
    ///
    /// ```
    /// # use tharsis_numeric::{DType, hdf5};
    /// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
    /// assert_eq!(hdf5::open(&path, "group/chunked")?.dtype(), DType::F32);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.dataset.dtype
    }

    /// A tensor over the elements. Each task opens the file, in the process that runs it, and reads the
    /// chunks or the range that it needs.
    ///
    /// ```
    /// # use tharsis_numeric::hdf5;
    /// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
    /// assert_eq!(hdf5::open(&path, "contiguous")?.tensor().max(..).item()?.to_f64(), 8.5);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape has more axes than arrays may have. When it runs: `DataCorrupt` for chunks
    /// that are damaged, `OSError` if they cannot be read, `ValueError` for filters that are not known.
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        let Dataset { shape, chunks, dtype } = &self.dataset;
        let cut = Some(match chunks {
            None => part_of_whole(shape, dtype.size_bytes()),
            Some(chunks) => together(shape, chunks, dtype.size_bytes()),
        });
        let chunk_bytes =
            chunks.as_ref().map_or(0, |chunks| chunks.iter().product::<usize>() * dtype.size_bytes());
        let location = self.location.clone();
        let function = Arc::new(Reading { location, dtype: *dtype, chunk_bytes: chunk_bytes as u64 });
        Tensor::apply(Source { function, shape: shape.clone(), dtype: *dtype, cut }, &[])
    }
}

/// Reads and checks the metadata of a dataset in an HDF5 file; its name may lead through groups, as `a/b/c`.
///
/// ```
/// # use tharsis_numeric::hdf5;
/// assert_eq!(hdf5::open("no such file", "x").unwrap_err().class(), "OSError");
/// ```
///
/// # Errors
/// `OSError` if the file cannot be read or has no such dataset, `DataCorrupt` if it is malformed or has
/// chunks of more than [`CHUNK_BYTES_MAX`], `ValueError` for types that are not read.
#[track_caller]
pub fn open(path: impl AsRef<Path>, dataset: &str) -> Result<Hdf5Dataset> {
    open_dataset(path.as_ref(), dataset).blame()
}

/// A tensor over a dataset, which is read when it is computed.
///
/// ```
/// # use tharsis_numeric::hdf5;
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5/earliest.h5");
/// assert_eq!(hdf5::load(&path, "partial").to_vec::<i16>()?, [-1, -1, 5, 6, -1, -1, -1, -1, -1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`open`] and [`Hdf5Dataset::tensor`].
#[track_caller]
pub fn load(path: impl AsRef<Path>, dataset: &str) -> Tensor {
    carry!(open_dataset(path.as_ref(), dataset)).tensor()
}

fn open_dataset(path: &Path, dataset: &str) -> std::result::Result<Hdf5Dataset, GraphError> {
    let location = Location { path: storage::absolute(path)?, dataset: dataset.to_owned() };
    let dataset = location.describe()?;
    Ok(Hdf5Dataset { location, dataset })
}

/// Reads the elements at the place of a chunk.
#[derive(Debug)]
struct Reading {
    location: Location,
    dtype: DType,
    /// Bytes of a chunk; 0 for a dataset in one piece.
    chunk_bytes: u64,
}

const READING: &str = "hdf5-read";

impl Foreign for Reading {
    fn name(&self) -> Option<ForeignName> {
        let Location { path, dataset } = &self.location;
        // A path that is not UTF-8 cannot be sent to other processes.
        let json = json!({"path": path.to_str()?, "dataset": dataset, "dtype": self.dtype.name(),
            "chunk_bytes": self.chunk_bytes});
        Some(ForeignName { kind: READING.to_owned(), name: json.to_string() })
    }

    fn describe(&self) -> String {
        format!("read {} of {}", self.location.dataset, self.location.path.display())
    }

    fn scratch_bytes(&self) -> u64 {
        // A chunk as it is stored and behind each of two filters, and the blocks of metadata.
        4 * self.chunk_bytes + file::BLOCKS_BYTES
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> std::result::Result<Chunk, GraphError> {
        self.location.read(self.dtype, place)
    }
}

/// The function of this file that a plan names.
pub(crate) fn find(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    if name.kind != READING {
        return None;
    }
    let json: Json = serde_json::from_str(&name.name).ok()?;
    let (path, dataset) = (PathBuf::from(json["path"].as_str()?), json["dataset"].as_str()?.to_owned());
    let dtype = json["dtype"].as_str()?.parse().ok()?;
    let chunk_bytes = json["chunk_bytes"].as_u64()?;
    Some(Arc::new(Reading { location: Location { path, dataset }, dtype, chunk_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_the_names_they_give() {
        let location = Location { path: PathBuf::from("s3://b/x.h5"), dataset: "a/\"b\"".to_owned() };
        let reading = Reading { location, dtype: DType::I16, chunk_bytes: 24 };
        let found = find(&reading.name().unwrap()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{reading:?}"), "all of it travels");
        assert!(find(&ForeignName { kind: READING.to_owned(), name: "{}".to_owned() }).is_none());
    }
}
