//! NumPy's `.npz` files: zip archives with a `.npy` file for each array.
//!
//! A stored (uncompressed) member is a range of the archive and is read by blocks, like a file; its checksum
//! is not compared, since it covers the whole member. A compressed member can only be read from its
//! beginning: each task inflates and drops the bytes before its block, so that it needs memory for its block
//! only.

use super::blocks::{Elements, Entry};
use super::header::Header;
use super::{NpyFile, fit};
use crate::error::{Blame, Result};
use crate::storage::{self, corrupt, file_error};
use crate::tensor::Tensor;
use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ErrorKind as ZipErrorKind, RECOMMENDED_BUFFER_SIZE, ZipArchive};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Error as IoError, ErrorKind, Read, Seek, SeekFrom, sink};
use std::path::{Component, Path};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::Place;

/// Bytes to which all compressed members together may inflate.
pub const INFLATED_BYTES_MAX: u64 = 64 << 30;
/// Upper bound on the compression ratio of a member larger than [`RATIO_BYTES_MIN`]. Zeros reach 1000.
pub const RATIO_MAX: u64 = 200;
/// Members up to this size may have any ratio.
pub const RATIO_BYTES_MIN: u64 = 64 << 20;
/// Upper bound on the members of an archive.
pub const MEMBERS_MAX: u64 = 1 << 16;

/// An entry of the archive's directory.
struct Member {
    name: String,
    is_stored: bool,
    at: Entry,
}

/// The headers of NumPy's `load` of a `.npz` file: reads and checks its directory and the headers of its
/// arrays, which are given by name.
///
/// ```
/// use tharsis_numeric::npy;
/// let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stored.npz");
/// let files = npy::open_npz(&path)?;
/// assert!(files.values().all(|file| file.extra_bytes() == 0));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `OSError` if the file cannot be read, `DataCorrupt` if it is malformed or would inflate beyond
/// [`INFLATED_BYTES_MAX`] or [`RATIO_MAX`], `PathTraversal` for a member whose name points outside the
/// archive, `NotImplemented` for other compressions and encrypted members, `ObjectArray` for pickled objects,
/// which are never unpickled.
#[track_caller]
pub fn open_npz(path: &Path) -> Result<BTreeMap<String, NpyFile>> {
    open_archive(path).blame()
}

/// NumPy's `load` of a `.npz` file: tensors over its arrays, by name; they are read when they are computed.
///
/// ```
/// use tharsis_numeric::npy;
/// let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stored.npz");
/// for tensor in npy::load_npz(&path)?.values() {
///     tensor.execute()?;
/// }
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`open_npz`].
#[track_caller]
pub fn load_npz(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let mut tensors = BTreeMap::new();
    for (name, file) in open_archive(path).blame()? {
        tensors.insert(name, file.tensor());
    }
    Ok(tensors)
}

fn open_archive(path: &Path) -> std::result::Result<BTreeMap<String, NpyFile>, GraphError> {
    let path = storage::on_disk(path)?;
    let members = directory(&path)?;
    check_sizes(&members).map_err(|reason| corrupt(&path, reason))?;
    let mut files = BTreeMap::new();
    for member in members {
        let file = open_member(&path, &member)?;
        if files.insert(member.name.clone(), file).is_some() {
            return Err(corrupt(&path, format!("two arrays are called {}", member.name)));
        }
    }
    Ok(files)
}

/// The members in the archive's directory.
fn directory(path: &Path) -> std::result::Result<Vec<Member>, GraphError> {
    let failed = |error| zip_error(path, error);
    let file = File::open(path).map_err(|error| file_error(path, &error))?;
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(failed)?;
    let (declared, mut members) = (archive.entries_hint(), Vec::new());
    if MEMBERS_MAX < declared {
        return Err(corrupt(path, format!("{declared} members, the limit is {MEMBERS_MAX}")));
    }
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(failed)? {
        let name = array_name(path, entry.file_path().as_bytes())?;
        let method = entry.compression_method();
        let is_stored = method == CompressionMethod::STORE;
        if !(is_stored || method == CompressionMethod::DEFLATE) || entry.flags().is_encrypted() {
            return Err(GraphError::NotImplemented(format!("an archive whose member {name} is {method:?}")));
        }
        let found = archive.get_entry(entry.wayfinder()).map_err(failed)?;
        let (start, end) = found.compressed_data_range();
        let inflated_len = entry.uncompressed_size_hint();
        let at = Entry { start, len: end.saturating_sub(start), inflated_len, crc: entry.crc32() };
        if is_stored && at.len != inflated_len {
            return Err(corrupt(path, format!("{name}: {} bytes are stored as {inflated_len}", at.len)));
        }
        members.push(Member { name, is_stored, at });
    }
    if members.len() as u64 != declared {
        return Err(corrupt(path, format!("{} members of {declared} are in its directory", members.len())));
    }
    Ok(members)
}

/// The name of an array. It never becomes a path here, but other programs unpack such files.
fn array_name(path: &Path, member: &[u8]) -> std::result::Result<String, GraphError> {
    let name =
        std::str::from_utf8(member).map_err(|bad| corrupt(path, format!("the name of a member: {bad}")))?;
    let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || name.is_empty() || name.contains(['\\', '\0']) {
        return Err(GraphError::PathTraversal { what: path.display().to_string(), member: name.to_owned() });
    }
    Ok(name.strip_suffix(".npy").unwrap_or(name).to_owned())
}

/// Refuses archives that inflate to far more than their size, by their ratio or by members that share bytes.
fn check_sizes(members: &[Member]) -> std::result::Result<(), String> {
    let mut inflated_bytes = 0u64;
    for Member { name, at, .. } in members.iter().filter(|member| !member.is_stored) {
        inflated_bytes = inflated_bytes.saturating_add(at.inflated_len);
        if RATIO_BYTES_MIN < at.inflated_len && at.len.saturating_mul(RATIO_MAX) < at.inflated_len {
            let Entry { len, inflated_len, .. } = at;
            return Err(format!(
                "{name}: {len} bytes for {inflated_len}, the limit is {RATIO_MAX} times as many"
            ));
        }
    }
    if INFLATED_BYTES_MAX < inflated_bytes {
        return Err(format!("{inflated_bytes} bytes when inflated, the limit is {INFLATED_BYTES_MAX}"));
    }
    let mut ranges: Vec<_> =
        members.iter().map(|Member { at, .. }| (at.start, at.start.saturating_add(at.len))).collect();
    ranges.sort_unstable();
    match ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        Some(pair) => Err(format!("two members share the bytes from {}", pair[1].0)),
        None => Ok(()),
    }
}

fn open_member(path: &Path, member: &Member) -> std::result::Result<NpyFile, GraphError> {
    let what = path.join(&member.name);
    let mut bytes = member.at.inflated(path, member.is_stored)?;
    let (header, start) = Header::read(&mut bytes).map_err(|refusal| refusal.of_file(&what))?;
    let extra_bytes = fit(&what, &header, member.at.inflated_len.saturating_sub(start))?;
    let (path, at) = (path.to_owned(), member.at);
    Ok(if member.is_stored {
        NpyFile { path, header, start: at.start + start, extra_bytes, deflated: None }
    } else {
        NpyFile { path, header, start, extra_bytes, deflated: Some(at) }
    })
}

impl Entry {
    /// A reader of the inflated bytes of the member, from the first.
    fn inflated(&self, path: &Path, is_stored: bool) -> std::result::Result<Box<dyn Read>, GraphError> {
        let failed = |error: IoError| file_error(path, &error);
        let mut file = File::open(path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.start)).map_err(failed)?;
        let bytes = BufReader::new(file).take(self.len);
        Ok(if is_stored { Box::new(bytes) } else { Box::new(DeflateDecoder::new(bytes)) })
    }

    /// Reads the elements at a place.
    pub(super) fn read(
        &self,
        elements: &Elements,
        place: Place<'_>,
        to: &mut [u8],
    ) -> std::result::Result<(), GraphError> {
        let path = &elements.path;
        let mut bytes = CrcReader::new(self.inflated(path, false)?);
        let mut at = 0;
        let read = elements.for_each_stretch(place, |from, range| {
            std::io::copy(&mut bytes.by_ref().take(from - at), &mut sink())?;
            at = from + range.len() as u64;
            bytes.read_exact(&mut to[range])
        });
        // The task that reads the last element reads on to the end, since the checksum covers the whole
        // member.
        let is_last = elements.end() <= at;
        let left = if is_last { self.inflated_len.saturating_sub(at) } else { 0 };
        let read = read.and_then(|()| std::io::copy(&mut bytes.by_ref().take(left), &mut sink()));
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                corrupt(path, format!("a member does not inflate: {error}"))
            }
            _ => file_error(path, &error),
        })?;
        let (found, expected) = (bytes.crc().sum(), self.crc);
        if is_last && found != expected {
            return Err(corrupt(path, format!("a member's checksum is {found:08x}, not {expected:08x}")));
        }
        Ok(())
    }
}

fn zip_error(path: &Path, error: rawzip::Error) -> GraphError {
    match error.into_kind() {
        ZipErrorKind::IO(error) if error.kind() != ErrorKind::UnexpectedEof => file_error(path, &error),
        kind => corrupt(path, format!("as an archive: {}", rawzip::Error::from(kind))),
    }
}
