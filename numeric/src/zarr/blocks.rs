//! Chunks of Zarr arrays as parts of tensors: the functions by which tasks read and write them.

use super::codec::{decode, encode, stored_max};
use super::metadata::{Metadata, file_error};
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::{Error as GraphError, Foreign, ForeignName};
use tharsis_kernels::{Buffer, Chunk, DType, Place};

/// An array in a folder.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) folder: PathBuf,
    pub(super) metadata: Metadata,
}

/// Reads the chunks that are at a place.
#[derive(Debug)]
pub(super) struct Reading(pub(super) Location);

/// Writes a chunk, and returns the number of its bytes.
#[derive(Debug)]
pub(super) struct Writing(pub(super) Location);

const READING: &str = "zarr-read";
const WRITING: &str = "zarr-write";

impl Foreign for Reading {
    fn name(&self) -> Option<ForeignName> {
        self.0.name(READING)
    }

    fn describe(&self) -> String {
        format!("read {}", self.0.folder.display())
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> Result<Chunk, GraphError> {
        let Metadata { dtype, fill, .. } = &self.0.metadata;
        let bytes = place.extents.iter().product::<usize>() * dtype.size_bytes();
        let mut data = Buffer::for_overwrite(bytes);
        let to = &mut data.elements_mut::<u8>()[..bytes];
        for coordinates in self.0.touched(place) {
            match self.0.read(&coordinates)? {
                Some(chunk) => self.0.each_line(place, &coordinates, |of_chunk, of_place| {
                    to[of_place].copy_from_slice(&chunk[of_chunk]);
                }),
                None => self.0.each_line(place, &coordinates, |_, of_place| {
                    to[of_place].chunks_exact_mut(fill.len()).for_each(|to| to.copy_from_slice(fill));
                }),
            }
        }
        if *dtype == DType::Bool {
            // Kernels rely on 0 and 1.
            to.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(Chunk::contiguous(*dtype, place.extents, data)?)
    }
}

impl Foreign for Writing {
    fn name(&self) -> Option<ForeignName> {
        self.0.name(WRITING)
    }

    fn describe(&self) -> String {
        format!("write {}", self.0.folder.display())
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, GraphError> {
        let metadata = &self.0.metadata;
        let chunk = args[0].to_contiguous()?;
        let start = chunk.offset() * metadata.dtype.size_bytes();
        let from = &chunk.buffer().bytes()[start..start + chunk.len_bytes()];
        for coordinates in self.0.touched(place) {
            let mut bytes = vec![0; metadata.chunk_bytes()];
            self.0.each_line(place, &coordinates, |of_chunk, of_place| {
                bytes[of_chunk].copy_from_slice(&from[of_place]);
            });
            if bytes.iter().any(|&byte| byte != 0) {
                self.0.write(&coordinates, bytes)?;
            }
        }
        Ok(Chunk::from_elements(&vec![1; place.extents.len()], &[from.len() as i64])?)
    }
}

/// The function of this file that a plan names.
pub(crate) fn find(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    let location = || {
        let json: Json = serde_json::from_str(&name.name).ok()?;
        let folder = PathBuf::from(json["folder"].as_str()?);
        let mut metadata = Metadata::parse(&json["metadata"]).ok()?;
        metadata.swapped = json["swapped"].as_bool()?;
        metadata.fill = serde_json::from_value(json["fill"].clone()).ok()?;
        (metadata.fill.len() == metadata.dtype.size_bytes()).then_some(Location { folder, metadata })
    };
    match name.kind.as_str() {
        READING => Some(Arc::new(Reading(location()?))),
        WRITING => Some(Arc::new(Writing(location()?))),
        _ => None,
    }
}

impl Location {
    fn name(&self, kind: &str) -> Option<ForeignName> {
        // A path that is not UTF-8 cannot be sent to other processes.
        let folder = self.folder.to_str()?;
        let Metadata { swapped, fill, .. } = &self.metadata;
        let json = json!({
            "folder": folder, "metadata": self.metadata.to_json(), "swapped": swapped, "fill": fill
        });
        Some(ForeignName { kind: kind.to_owned(), name: json.to_string() })
    }

    /// Coordinates of the chunks at a place.
    fn touched(&self, place: Place<'_>) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new()];
        for (axis, &chunk) in self.metadata.chunks.iter().enumerate() {
            let (start, len) = (place.origin[axis], place.extents[axis]);
            let range = if len == 0 { 0..0 } else { start / chunk..(start + len - 1) / chunk + 1 };
            found = found
                .into_iter()
                .flat_map(|lead: Vec<usize>| range.clone().map(move |at| [lead.as_slice(), &[at]].concat()))
                .collect();
        }
        found
    }

    /// Visits the lines along the last axis that a chunk and a place have in common: the range of bytes of
    /// each in the chunk and in the place.
    fn each_line(
        &self,
        place: Place<'_>,
        coordinates: &[usize],
        mut visit: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>),
    ) {
        let size = self.metadata.dtype.size_bytes();
        let chunks = &self.metadata.chunks;
        // The part in common, from where to where in the array.
        let common: Vec<(usize, usize)> = (0..chunks.len())
            .map(|axis| {
                let start = coordinates[axis] * chunks[axis];
                let end = (start + chunks[axis]).min(place.origin[axis] + place.extents[axis]);
                (start.max(place.origin[axis]), end)
            })
            .collect();
        let Some((&(first, end), lead)) = common.split_last() else { return visit(0..size, 0..size) };
        let rows: usize = lead.iter().map(|(start, end)| end - start).product();
        for row in 0..rows {
            let (mut left, mut index) = (row, vec![0; lead.len()]);
            for (axis, (start, end)) in lead.iter().enumerate().rev() {
                index[axis] = start + left % (end - start);
                left /= end - start;
            }
            index.push(first);
            let of_chunk = |axis: usize| (index[axis] - coordinates[axis] * chunks[axis], chunks[axis]);
            let of_place = |axis: usize| (index[axis] - place.origin[axis], place.extents[axis]);
            let offset = |of: &dyn Fn(usize) -> (usize, usize)| {
                (0..chunks.len()).map(of).fold(0, |offset, (at, extent)| offset * extent + at) * size
            };
            let (from, to, len) = (offset(&of_chunk), offset(&of_place), (end - first) * size);
            visit(from..from + len, to..to + len);
        }
    }

    /// The decoded bytes of a chunk; `None` if it is not there.
    fn read(&self, coordinates: &[usize]) -> Result<Option<Vec<u8>>, GraphError> {
        let metadata = &self.metadata;
        let path = metadata.chunk_path(&self.folder, coordinates);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error(&path, &error)),
        };
        let corrupt = |reason: String| GraphError::Corrupt { what: path.display().to_string(), reason };
        let expected = metadata.chunk_bytes() as u64;
        let most = stored_max(&metadata.codecs, expected);
        let mut stored = Vec::new();
        file.take(most + 1).read_to_end(&mut stored).map_err(|error| file_error(&path, &error))?;
        if most < stored.len() as u64 {
            return Err(corrupt(format!("more than {most} bytes for a chunk of {expected}")));
        }
        let mut bytes =
            decode(&metadata.codecs, stored, expected).map_err(|error| corrupt(error.to_string()))?;
        if metadata.swapped {
            // A complex number is two numbers.
            let width = metadata.dtype.real_part().size_bytes();
            bytes.chunks_exact_mut(width).for_each(|number| number.reverse());
        }
        Ok(Some(bytes))
    }

    /// Writes a chunk, whose file has its name when it is complete.
    fn write(&self, coordinates: &[usize], bytes: Vec<u8>) -> Result<(), GraphError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = self.metadata.chunk_path(&self.folder, coordinates);
        let failed = |error: IoError| file_error(&path, &error);
        let stored = encode(&self.metadata.codecs, bytes).map_err(failed)?;
        let partial =
            path.with_extension(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let written = std::fs::write(&partial, stored).and_then(|()| std::fs::rename(&partial, &path));
        written.map_err(|error| {
            // A partial file that cannot be removed goes with the folder of the array.
            let _gone = std::fs::remove_file(&partial);
            failed(error)
        })
    }
}
