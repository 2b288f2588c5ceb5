//! The places in which files of arrays are. This is the only part of the crate that knows whether a path
//! names a file on a disk or an object in a store: [`of`] looks at the path, and all else calls a
//! [`Storage`].
//!
//! A path travels to tasks as it is, and each process opens the place by itself, with the credentials of its
//! own environment.

mod disk;
#[cfg(feature = "object-storage")]
mod object;
#[cfg(feature = "object-storage")]
mod remote;
#[cfg(feature = "object-storage")]
mod upload;

use disk::Disk;
use std::fs::File;
use std::io::{Error as IoError, Read};
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

/// A file that is being written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unfinished {
    pub(crate) path: PathBuf,
    /// The parts that it is written in; `None` if tasks may write anywhere in it.
    pub(crate) parts: Option<Parts>,
}

/// The parts in which a file must be written, each as a whole. The first one has the head of the file too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) count: usize,
    /// Bytes of each but the last, without the head: a multiple of the size of any element.
    pub(crate) bytes: u64,
    /// Name of what was begun, in the words of the place.
    pub(crate) id: String,
}

/// A folder that is being written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Begun {
    /// The folder in which files are written until all are there.
    pub(crate) folder: PathBuf,
    /// The words by which the place knows who writes it; none are needed if the folder has a name of its own.
    claim: String,
}

/// A kind of place.
pub(crate) trait Storage: Send + Sync {
    /// All bytes of a file; `None` if there is no such file. A file of more than `bytes_max` is corrupt.
    fn read(&self, path: &Path, bytes_max: u64) -> Stored<Option<Vec<u8>>>;

    /// [`Storage::read`] of several files, at once where that helps. The caller sees to it that they are few
    /// and small enough to be in memory together.
    fn read_several(&self, paths: &[PathBuf], bytes_max: u64) -> Stored<Vec<Option<Vec<u8>>>>;

    /// The bytes at an end of a file, fewer if the file has fewer, and the size of the file; `None` if there
    /// is no such file.
    fn read_border(&self, path: &Path, border: Border, bytes: u64) -> Stored<Option<(Vec<u8>, u64)>>;

    /// Reads ranges of a file, which are given from first to last. A file that ends before one of them has
    /// become shorter since its size was asked for.
    fn read_stretches(&self, path: &Path, stretches: &[Stretch], to: &mut [u8]) -> Stored<()>;

    /// Writes a file. It is there whole or not at all.
    fn write(&self, path: &Path, bytes: Vec<u8>) -> Stored<()>;

    /// Begins a file with this head and so many bytes behind it. Tasks write them.
    fn begin_file(&self, path: &Path, head: &[u8], bytes: u64) -> Stored<Unfinished>;

    /// Writes ranges of a file that may be written anywhere.
    fn write_stretches(&self, path: &Path, stretches: &[Stretch], from: &[u8]) -> Stored<()>;

    /// Writes a part of a file that must be written in parts. It may be written again, with the same bytes.
    fn write_part(&self, path: &Path, parts: &Parts, number: usize, bytes: Vec<u8>) -> Stored<()>;

    /// Gives a begun file its name, when all of it is written.
    fn finish_file(&self, begun: &Unfinished, path: &Path) -> Stored<()>;

    /// Removes a begun file. What cannot be removed stays: the error that led here is the one to report.
    fn abandon_file(&self, begun: &Unfinished);

    /// Begins a folder, in which no one else writes. Refuses one that exists already or that another one
    /// writes.
    fn begin_folder(&self, path: &Path) -> Stored<Begun>;

    /// Adds the file by which readers know that all others are there, and gives a begun folder its name.
    fn finish_folder(&self, begun: &Begun, path: &Path, last: &str, bytes: Vec<u8>) -> Stored<()>;

    /// Removes a begun folder, and nothing that others wrote: in a shared place, what has one of these names
    /// or is in a folder of that name. Unless its tasks are over, others are kept away from where they may
    /// still write. What cannot be removed stays: the error that led here is the one to report.
    fn abandon_folder(&self, begun: &Begun, names: &[&str], are_over: bool);
}

/// The place of a path.
pub(crate) fn of(path: &Path) -> Stored<&'static dyn Storage> {
    match scheme(path) {
        None => Ok(&Disk),
        Some(scheme @ ("s3" | "s3a" | "http" | "https")) => remote(scheme),
        Some(scheme) => {
            let reason = format!("{scheme}:// is no place for arrays; there are s3, http, https and file");
            Err(GraphError::File { path: path.display().to_string(), reason })
        }
    }
}

#[cfg(feature = "object-storage")]
fn remote(_: &str) -> Stored<&'static dyn Storage> {
    Ok(&remote::Remote)
}

#[cfg(not(feature = "object-storage"))]
fn remote(scheme: &str) -> Stored<&'static dyn Storage> {
    Err(without_object_stores(scheme))
}

/// The error of a build without object stores. Tests of a build with them see it, too.
#[cfg(any(test, not(feature = "object-storage")))]
fn without_object_stores(scheme: &str) -> GraphError {
    GraphError::NotImplemented(format!("{scheme}:// without the feature object-storage of this crate"))
}

/// The path as it travels to tasks: absolute, or a URL. A URL of a file is the path in it.
pub(crate) fn absolute(path: &Path) -> Stored<PathBuf> {
    let path = match (scheme(path), path.to_str()) {
        (None, _) => path,
        (Some("file"), Some(url)) => match url.strip_prefix("file://") {
            Some(path) if path.starts_with('/') => Path::new(path),
            _ => return Err(file_error(path, &IoError::other("no absolute path is behind file://"))),
        },
        _ => return Ok(path.to_owned()),
    };
    std::path::absolute(path).map_err(|error| file_error(path, &error))
}

/// The path of a file that must be on a disk.
pub(crate) fn on_disk(path: &Path) -> Stored<PathBuf> {
    let path = absolute(path)?;
    match scheme(&path) {
        None => Ok(path),
        Some(scheme) => Err(GraphError::NotImplemented(format!("reading archives at {scheme}://"))),
    }
}

/// The word before `://` in a URL.
fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (!scheme.is_empty() && scheme.bytes().all(is_scheme)).then_some(scheme)
}

/// All bytes of a file that must be there.
pub(crate) fn read_existing(path: &Path, bytes_max: u64) -> Stored<Vec<u8>> {
    of(path)?.read(path, bytes_max)?.ok_or_else(|| missing(path))
}

/// A word that no other process has ever drawn, on this machine or another: process numbers come again with
/// each start of a container.
fn unique() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_urls_or_on_disks() {
        let of_path = |path: &str| absolute(path.as_ref()).map(|path| path.display().to_string());
        assert_eq!(of_path("/a/b.npy").unwrap(), "/a/b.npy");
        assert_eq!(of_path("file:///a/b.npy").unwrap(), "/a/b.npy");
        assert_eq!(of_path("s3://a/b.npy").unwrap(), "s3://a/b.npy");
        assert!(of_path("b.npy").unwrap().ends_with("/b.npy") && of_path("b.npy").unwrap().starts_with('/'));
        assert_eq!(of_path("file://host/b.npy").unwrap_err().class(), "OSError");
        assert!(of_path("/a://b").unwrap().starts_with('/'), "a folder may have such a name");
        assert_eq!(of("ftp://a/b".as_ref()).err().unwrap().class(), "OSError");
        assert_eq!(on_disk("s3://a/b.npz".as_ref()).unwrap_err().class(), "NotImplemented");
    }

    #[test]
    fn a_build_without_object_stores_names_the_feature() {
        let error = without_object_stores("s3");
        assert_eq!(error.class(), "NotImplemented");
        assert!(error.to_string().contains("object-storage"), "{error}");
    }
}
