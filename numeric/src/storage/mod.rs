//! The places in which files of arrays are. This is the only part of the crate that knows whether a path
//! names a file on a disk or an object in a store: [`of`] looks at the path, and all else calls a
//! [`Storage`].
//!
//! A path travels to tasks as it is, and each process opens the place by itself, with the credentials of its
//! own environment.

mod disk;

use disk::Disk;
use std::io::Error as IoError;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;

/// The result of asking a place for something.
pub(crate) type Stored<T> = Result<T, GraphError>;

/// A range of a file: its offset there, and where its bytes belong in a buffer.
pub(crate) type Stretch = (u64, Range<usize>);

/// An end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    First,
    Last,
}

/// A kind of place.
pub(crate) trait Storage: Send + Sync {
    /// All bytes of a file; `None` if there is no such file. A file of more than `bytes_max` is corrupt.
    fn read(&self, path: &Path, bytes_max: u64) -> Stored<Option<Vec<u8>>>;

    /// The bytes at an end of a file, fewer if the file has fewer, and the size of the file; `None` if there
    /// is no such file.
    fn read_border(&self, path: &Path, border: Border, bytes: u64) -> Stored<Option<(Vec<u8>, u64)>>;

    /// Reads ranges of a file, which are given from first to last. A file that ends before one of them has
    /// become shorter since its size was asked for.
    fn read_stretches(&self, path: &Path, stretches: &[Stretch], to: &mut [u8]) -> Stored<()>;

    /// Writes a file. It is there whole or not at all.
    fn write(&self, path: &Path, bytes: Vec<u8>) -> Stored<()>;

    /// The folder in which files are written until all are there. Refuses one that exists already.
    fn begin_folder(&self, path: &Path) -> Stored<PathBuf>;

    /// Gives a begun folder its name.
    fn finish_folder(&self, begun: &Path, path: &Path) -> Stored<()>;

    /// Removes a begun folder. What cannot be removed stays: the error that led here is the one to report.
    fn abandon_folder(&self, begun: &Path);
}

/// The place of a path.
pub(crate) fn of(_: &Path) -> Stored<&'static dyn Storage> {
    Ok(&Disk)
}

/// The path as it travels to tasks: absolute, or a URL.
pub(crate) fn absolute(path: &Path) -> Stored<PathBuf> {
    std::path::absolute(path).map_err(|error| file_error(path, &error))
}

/// All bytes of a file that must be there.
pub(crate) fn read_existing(path: &Path, bytes_max: u64) -> Stored<Vec<u8>> {
    of(path)?.read(path, bytes_max)?.ok_or_else(|| missing(path))
}

/// The error for a file that is not there.
pub(crate) fn missing(path: &Path) -> GraphError {
    GraphError::File { path: path.display().to_string(), reason: "no such file".to_owned() }
}

/// The error for a file that the system cannot read or write.
pub(crate) fn file_error(path: &Path, error: &IoError) -> GraphError {
    GraphError::File { path: path.display().to_string(), reason: error.to_string() }
}

/// The error for bytes that are not what they should be.
pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> GraphError {
    GraphError::Corrupt { what: path.display().to_string(), reason: reason.into() }
}

fn too_long(path: &Path, bytes_max: u64) -> GraphError {
    corrupt(path, format!("more than {bytes_max} bytes"))
}

fn shortened(path: &Path) -> GraphError {
    corrupt(path, "the file has become shorter")
}
