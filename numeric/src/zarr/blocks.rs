//! Chunks of Zarr arrays as parts of tensors: the functions by which tasks read and write them.

use super::codec::{encode, stored_max};
use super::grid::Grid;
use super::metadata::Metadata;
use super::shard::{self, Builder, Shard};
use crate::storage::{self, corrupt, file_error};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;
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

/// Writes a chunk or a shard, and returns the number of its bytes.
#[derive(Debug)]
pub(super) struct Writing(pub(super) Location);

const READING: &str = "zarr-read";
const WRITING: &str = "zarr-write";
/// Bytes of the part of an array that a task reads or writes.
pub(super) const PART_BYTES: usize = 4 << 20;
/// The most files that a task asks for at a time.
const FILES_AT_ONCE: usize = 16;

impl Foreign for Reading {
    fn name(&self) -> Option<ForeignName> {
        self.0.name(READING)
    }

    fn describe(&self) -> String {
        format!("read {}", self.0.folder.display())
    }

    fn scratch_bytes(&self) -> u64 {
        let metadata = &self.0.metadata;
        let stored = stored_max(&metadata.codecs, metadata.chunk_bytes() as u64);
        let held = match &metadata.sharding {
            None => stored * self.0.files_at_once() as u64,
            Some(sharding) => shard::held_bytes(sharding.chunk_count(&metadata.chunks), stored),
        };
        // A chunk that is decoded is there before and behind each codec.
        held + 2 * stored
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> Result<Chunk, GraphError> {
        let Metadata { dtype, fill, sharding, .. } = &self.0.metadata;
        let bytes = place.extents.iter().product::<usize>() * dtype.size_bytes();
        let mut data = Buffer::for_overwrite(bytes);
        let to = &mut data.elements_mut::<u8>()[..bytes];
        let (files, chunks) = self.0.grids();
        let mut put = |coordinates: &[usize], chunk: Option<&[u8]>| match chunk {
            Some(chunk) => chunks.each_line(place, coordinates, |of_chunk, of_place| {
                to[of_place].copy_from_slice(&chunk[of_chunk]);
            }),
            None => chunks.each_line(place, coordinates, |_, of_place| {
                to[of_place].chunks_exact_mut(fill.len()).for_each(|to| to.copy_from_slice(fill));
            }),
        };
        let touched = files.touched(place);
        match sharding {
            None => self.0.read(&touched, &mut put)?,
            Some(_) => {
                for file in touched {
                    let (origin, extents) = files.common(place, &file);
                    let wanted = chunks.touched(Place { origin: &origin, extents: &extents });
                    self.0.read_of_shard(&file, wanted, &mut put)?;
                }
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

    fn scratch_bytes(&self) -> u64 {
        let metadata = &self.0.metadata;
        let stored = stored_max(&metadata.codecs, metadata.chunk_bytes() as u64);
        let chunks = metadata.sharding.as_ref().map_or(0, |shards| shards.chunk_count(&metadata.chunks));
        // Encoded bytes grow by doubling; those of a shard are put together.
        metadata.chunk_bytes() as u64 + 4 * stored + 2 * stored * chunks as u64
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, GraphError> {
        let metadata = &self.0.metadata;
        let chunk = args[0].to_contiguous()?;
        let start = chunk.offset() * metadata.dtype.size_bytes();
        let from = &chunk.buffer().bytes()[start..start + chunk.len_bytes()];
        let (files, _) = self.0.grids();
        for file in files.touched(place) {
            let path = metadata.chunk_path(&self.0.folder, &file);
            let stored = match &metadata.sharding {
                None => self.0.encoded(place, &file, from).transpose(),
                Some(_) => self.0.encoded_shard(place, &file, from),
            };
            if let Some(stored) = stored.map_err(|error| file_error(&path, &error))? {
                storage::of(&path)?.write(&path, stored)?;
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
        let json = json!({"folder": folder, "metadata": self.metadata.to_json(), "fill": self.metadata.fill});
        Some(ForeignName { kind: kind.to_owned(), name: json.to_string() })
    }

    /// The grid of the files and that of the chunks: one and the same, unless a file has many chunks.
    fn grids(&self) -> (Grid<'_>, Grid<'_>) {
        let size = self.metadata.dtype.size_bytes();
        let grid = |extents| Grid { extents, size };
        (grid(self.metadata.file_extents()), grid(&self.metadata.chunks))
    }

    /// The number of files that are read together: as many as make up a part, which the bounds of memory of a
    /// task count.
    fn files_at_once(&self) -> usize {
        (PART_BYTES / self.metadata.chunk_bytes()).clamp(1, FILES_AT_ONCE)
    }

    /// Gives chunks that have files of their own to `put`, decoded; `None` for those that are not there.
    fn read(
        &self,
        wanted: &[Vec<usize>],
        put: &mut impl FnMut(&[usize], Option<&[u8]>),
    ) -> Result<(), GraphError> {
        let metadata = &self.metadata;
        let bytes_max = stored_max(&metadata.codecs, metadata.chunk_bytes() as u64);
        for batch in wanted.chunks(self.files_at_once()) {
            let paths: Vec<_> = batch.iter().map(|file| metadata.chunk_path(&self.folder, file)).collect();
            let found = storage::of(&self.folder)?.read_several(&paths, bytes_max)?;
            for ((coordinates, path), stored) in batch.iter().zip(&paths).zip(found) {
                let chunk = stored.map(|stored| metadata.decode(stored)).transpose();
                put(coordinates, chunk.map_err(|error| corrupt(path, error.to_string()))?.as_deref());
            }
        }
        Ok(())
    }

    /// Gives the wanted chunks of a shard to `put`, decoded; `None` for those that are not there.
    fn read_of_shard(
        &self,
        file: &[usize],
        wanted: Vec<Vec<usize>>,
        put: &mut impl FnMut(&[usize], Option<&[u8]>),
    ) -> Result<(), GraphError> {
        let path = self.metadata.chunk_path(&self.folder, file);
        match Shard::open(&path, &self.metadata)? {
            Some(shard) => shard.read(wanted, put),
            None => {
                wanted.iter().for_each(|coordinates| put(coordinates, None));
                Ok(())
            }
        }
    }

    /// The encoded bytes of a chunk; `None` if all elements have the fill value, as those beyond the array
    /// have.
    fn encoded(
        &self,
        place: Place<'_>,
        coordinates: &[usize],
        from: &[u8],
    ) -> Option<std::io::Result<Vec<u8>>> {
        let (_, chunks) = self.grids();
        let mut bytes = vec![0; self.metadata.chunk_bytes()];
        chunks.each_line(place, coordinates, |of_chunk, of_place| {
            bytes[of_chunk].copy_from_slice(&from[of_place]);
        });
        bytes.iter().any(|&byte| byte != 0).then(|| encode(&self.metadata.codecs, bytes))
    }

    /// The bytes of a shard; `None` if all of its chunks have nothing but the fill value.
    fn encoded_shard(
        &self,
        place: Place<'_>,
        file: &[usize],
        from: &[u8],
    ) -> std::io::Result<Option<Vec<u8>>> {
        let (files, chunks) = self.grids();
        let (origin, extents) = files.common(place, file);
        let mut builder = Builder::new(&self.metadata);
        for coordinates in chunks.touched(Place { origin: &origin, extents: &extents }) {
            if let Some(bytes) = self.encoded(place, &coordinates, from) {
                builder.push(&coordinates, &bytes?);
            }
        }
        Ok(builder.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn functions_are_found_by_the_names_they_give() {
        let options = Options { shards: Some(vec![4, 6]), checksum: true, ..Options::default() };
        let mut metadata = Metadata::new(DType::C64, &[5, 0], &[2, 3], &options).unwrap();
        metadata.fill = vec![1, 2, 3, 4, 5, 6, 7, 8];
        let reading = Reading(Location { folder: PathBuf::from("s3://b/x \"y\".zarr"), metadata });
        let found = find(&reading.name().unwrap()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{reading:?}"), "all of it travels");
        assert!(find(&ForeignName { kind: WRITING.to_owned(), name: "{}".to_owned() }).is_none());
    }
}
