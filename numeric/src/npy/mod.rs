//! NumPy's `.npy` files, on local disks and in object stores: read and written by blocks, so that a file may
//! be many times larger than the memory; and `.npz` archives of them, which are only read, on local disks.

mod archive;
mod blocks;
mod header;

pub use archive::{INFLATED_BYTES_MAX, MEMBERS_MAX, RATIO_BYTES_MIN, RATIO_MAX, load_npz, open_npz};
pub(crate) use blocks::find;
pub use header::HEADER_BYTES_MAX;

use crate::error::{Blame, Error, Result};
use crate::run::{execute, settle};
use crate::storage::{self, Border};
use crate::tensor::{Tensor, carry};
use blocks::{Elements, Entry, Inflating, Reading, Uploading, Writing};
use header::{Header, header_bytes};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tharsis_graph::ops::{Sink, Source};
use tharsis_graph::{Chunks, Error as GraphError, Executor, Foreign};
use tharsis_kernels::{Chunk, DType, Element, with_element};

/// A `.npy` file, or one in an archive, whose header was read and checked.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, npy};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.npy");
/// npy::save(&path, &arange(1_000_000), &LocalExecutor::sized(2, 4 << 20))?;
/// let file = npy::open(&path)?;
/// assert_eq!((file.shape(), file.extra_bytes()), (&[1_000_000][..], 0));
/// // The file has 8 MB, the program may use 4.
/// let sum = file.tensor().sum(..).fetch_on::<i64>(&LocalExecutor::sized(2, 4 << 20))?;
/// assert_eq!(sum.first(), Some(&499_999_500_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NpyFile {
    path: PathBuf,
    header: Header,
    start: u64,
    extra_bytes: u64,
    /// Its location in the archive at `path`, if it is compressed there.
    deflated: Option<Entry>,
}

impl NpyFile {
    /// Extent of each axis.
    ///
    /// ```
    /// use tharsis_numeric::{LocalExecutor, arange, npy};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.npy");
    /// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(npy::open(&path)?.shape(), [3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// The type of the elements.
    ///
    /// ```
    /// use tharsis_numeric::{DType, LocalExecutor, arange, npy};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.npy");
    /// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(npy::open(&path)?.dtype(), DType::I64);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.header.dtype
    }

    /// Number of bytes behind the elements, which are not read.
    ///
    /// ```
    /// use tharsis_numeric::{LocalExecutor, arange, npy};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.npy");
    /// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(npy::open(&path)?.extra_bytes(), 0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn extra_bytes(&self) -> u64 {
        self.extra_bytes
    }

    /// A tensor over the elements. They are read in blocks when it is computed, by the process that runs the
    /// task: on several nodes, each must find the file under this path.
    ///
    /// ```
    /// use tharsis_numeric::{LocalExecutor, arange, npy};
    /// let folder = tempfile::tempdir().expect("a folder");
    /// let path = folder.path().join("x.npy");
    /// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
    /// assert_eq!(npy::open(&path)?.tensor().sum(..).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape has more axes than arrays may have.
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        let Header { dtype, swapped, fortran_order, ref shape } = self.header;
        let mut shape = shape.clone();
        if fortran_order {
            shape.reverse();
        }
        let elements =
            Elements { path: self.path.clone(), start: self.start, dtype, shape: shape.clone(), swapped };
        let function: Arc<dyn Foreign> = match self.deflated {
            Some(entry) => Arc::new(Inflating { elements, entry }),
            None => Arc::new(Reading(elements)),
        };
        let tensor = Tensor::apply(Source { function, shape, dtype, cut: None }, &[]);
        if fortran_order { tensor.t() } else { tensor }
    }
}

/// The header of NumPy's `load`: reads and checks the header of a `.npy` file. With the feature
/// `object-storage` the path may be a URL that begins with `s3://`, `http://` or `https://`.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, npy};
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("x.npy");
/// assert_eq!(npy::open(&path).unwrap_err().class(), "OSError");
/// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(npy::open(&path)?.shape(), [3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `OSError` if the file cannot be read, `DataCorrupt` if it is malformed, `ObjectArray` for pickled objects,
/// which are never unpickled; `NotImplemented` for URLs in a build without the feature.
#[track_caller]
pub fn open(path: impl AsRef<Path>) -> Result<NpyFile> {
    open_file(path.as_ref()).blame()
}

/// NumPy's `load(.., mmap_mode='r')`: a tensor over the elements of a `.npy` file, which is read in blocks
/// when the tensor is computed.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, npy};
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("x.npy");
/// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(npy::load(&path).to_vec::<i64>()?, [0, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`open`].
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Tensor {
    carry!(open_file(path.as_ref())).tensor()
}

/// NumPy's `save`: computes a tensor and writes it as a `.npy` file, version 1, C order, little endian; any
/// dtype but bfloat16. Each task writes its block, so that the tensor is never in memory as a whole; the file
/// gets its name when it is complete. With the feature `object-storage` the path may begin with `s3://`: each
/// task then holds a part of 5 MiB, or of a ten thousandth of the file if that is more.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, npy};
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("x.npy");
/// npy::save(&path, &arange(3), &LocalExecutor::sized(2, 1 << 20))?;
/// assert_eq!(npy::load(&path).to_vec::<i64>()?, [0, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`execute`], and `OSError` if the file cannot be written; `NotImplemented` for web
/// servers, and for all URLs in a build without the feature.
#[track_caller]
pub fn save(path: impl AsRef<Path>, tensor: &Tensor, executor: &dyn Executor) -> Result<()> {
    if tensor.dtype()? == DType::BF16 {
        return Err(Error::here(GraphError::Type("bfloat16 has no .npy form".to_owned())));
    }
    let (tensors, _) = settle(&[tensor], executor)?;
    let tensor = tensors.first().unwrap_or(tensor);
    let path = &storage::absolute(path.as_ref()).blame()?;
    let place = storage::of(path).blame()?;
    let (dtype, shape, bytes) = (tensor.dtype()?, tensor.shape()?.to_vec(), tensor.nbytes()?);
    let header = header_bytes(dtype, &shape);
    if bytes == 0 {
        return place.write(path, header).blame();
    }
    let start = header.len() as u64;
    let begun = place.begin_file(path, &header, bytes).blame()?;
    let elements = Elements { path: begun.path.clone(), start, dtype, shape, swapped: false };
    let sink = match begun.parts.clone() {
        None => Tensor::lazily(Sink { function: Arc::new(Writing(elements)) }, &[tensor]),
        Some(parts) => {
            let count = bytes as usize / dtype.size_bytes();
            let part = parts.bytes as usize / dtype.size_bytes();
            let flat = tensor.reshape(&[count as i64]).rechunk(Chunks::PerAxis(vec![part]));
            Tensor::lazily(Sink { function: Arc::new(Uploading { elements, parts }) }, &[&flat])
        }
    };
    let written = execute(&[&sink], executor).and_then(|_| place.finish_file(&begun, path).blame());
    if written.is_err() {
        place.abandon_file(&begun);
    }
    written
}

fn open_file(path: &Path) -> std::result::Result<NpyFile, GraphError> {
    let path = storage::absolute(path)?;
    let found = storage::of(&path)?.read_border(&path, Border::First, HEADER_READ_BYTES)?;
    let (first, file_bytes) = found.ok_or_else(|| storage::missing(&path))?;
    let (header, start) = Header::read(&mut first.as_slice()).map_err(|refusal| refusal.of_file(&path))?;
    let extra_bytes = fit(&path, &header, file_bytes.saturating_sub(start))?;
    Ok(NpyFile { path, header, start, extra_bytes, deflated: None })
}

/// Bytes of the longest header, and of what is before it.
const HEADER_READ_BYTES: u64 = HEADER_BYTES_MAX as u64 + 12;

/// Number of bytes behind the elements, if `found` bytes follow the header.
fn fit(path: &Path, header: &Header, found: u64) -> std::result::Result<u64, GraphError> {
    let expected = header.data_bytes();
    if let Some(extra) = expected.and_then(|expected| found.checked_sub(expected)) {
        return Ok(extra);
    }
    let expected = expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
    let Header { shape, dtype, .. } = header;
    let reason = format!("shape {shape:?} of {dtype} needs {expected} bytes, the file has {found} bytes");
    Err(GraphError::Corrupt { what: path.display().to_string(), reason })
}

/// Writes a chunk as a complete file.
pub(crate) fn write(path: &Path, chunk: &Chunk) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(File::create(path)?);
    file.write_all(&header_bytes(chunk.dtype(), chunk.shape()))?;
    with_element!(chunk.dtype(), T => write_elements::<T>(&mut file, chunk))?;
    file.flush()
}

fn write_elements<T: Element>(file: &mut impl Write, chunk: &Chunk) -> std::io::Result<()> {
    let elements = chunk.to_vec::<T>().map_err(std::io::Error::other)?;
    file.write_all(bytemuck::cast_slice(&elements))
}
