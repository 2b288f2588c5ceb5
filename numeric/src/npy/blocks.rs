//! Parts of files as chunks: the functions by which tasks read and write them.

use super::header::header_bytes;
use crate::storage::{self, Parts, Stretch};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;
use tharsis_graph::{Error as GraphError, Foreign, ForeignName};
use tharsis_kernels::{Buffer, Chunk, DType, Place};

/// The elements of a file, in C order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elements {
    pub(super) path: PathBuf,
    /// Offset of the first element, in bytes.
    pub(super) start: u64,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// Whether the bytes of each number are in reverse order.
    pub(super) swapped: bool,
}

/// Location of a member in its archive, with the length and checksum of its inflated bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) inflated_len: u64,
    pub(super) crc: u32,
}

/// Reads the elements at the place of a chunk.
#[derive(Debug)]
pub(super) struct Reading(pub(super) Elements);

/// Reads the elements out of a compressed member of an archive.
#[derive(Debug)]
pub(super) struct Inflating {
    pub(super) elements: Elements,
    pub(super) entry: Entry,
}

/// Writes a chunk to its place, and returns the number of its bytes.
#[derive(Debug)]
pub(super) struct Writing(pub(super) Elements);

/// Writes a part of a file that takes whole parts only. The chunks are those of the elements along one axis.
#[derive(Debug)]
pub(super) struct Uploading {
    pub(super) elements: Elements,
    pub(super) parts: Parts,
}

const READING: &str = "npy-read";
const INFLATING: &str = "npz-inflate";
const WRITING: &str = "npy-write";
const UPLOADING: &str = "npy-upload";
/// Stretches that are read or written by one call.
const BATCH_COUNT: usize = 1 << 14;

impl Foreign for Reading {
    fn name(&self) -> Option<ForeignName> {
        self.0.name(READING)
    }

    fn describe(&self) -> String {
        format!("read {}", self.0.path.display())
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> Result<Chunk, GraphError> {
        let path = &self.0.path;
        let file = storage::of(path)?;
        self.0.chunk(place, |to| {
            self.0.for_each_batch(place, |stretches| file.read_stretches(path, stretches, to))
        })
    }
}

impl Foreign for Inflating {
    fn name(&self) -> Option<ForeignName> {
        let mut name = self.elements.to_json()?;
        let Entry { start, len, inflated_len, crc } = self.entry;
        name["deflated"] = json!([start, len, inflated_len, crc]);
        Some(ForeignName { kind: INFLATING.to_owned(), name: name.to_string() })
    }

    fn describe(&self) -> String {
        format!("inflate {}", self.elements.path.display())
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> Result<Chunk, GraphError> {
        self.elements.chunk(place, |to| self.entry.read(&self.elements, place, to))
    }
}

impl Foreign for Writing {
    fn name(&self) -> Option<ForeignName> {
        self.0.name(WRITING)
    }

    fn describe(&self) -> String {
        format!("write {}", self.0.path.display())
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, GraphError> {
        let Elements { path, dtype, .. } = &self.0;
        let file = storage::of(path)?;
        let chunk = args[0].to_contiguous()?;
        let start = chunk.offset() * dtype.size_bytes();
        let from = &chunk.buffer().bytes()[start..start + chunk.len_bytes()];
        self.0.for_each_batch(place, |stretches| file.write_stretches(path, stretches, from))?;
        Ok(Chunk::from_elements(&vec![1; place.extents.len()], &[from.len() as i64])?)
    }
}

impl Foreign for Uploading {
    fn name(&self) -> Option<ForeignName> {
        let mut name = self.elements.to_json()?;
        let Parts { count, bytes, id } = &self.parts;
        name["parts"] = json!([count, bytes, id]);
        Some(ForeignName { kind: UPLOADING.to_owned(), name: name.to_string() })
    }

    fn describe(&self) -> String {
        format!("write {}", self.elements.path.display())
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, GraphError> {
        let Elements { path, dtype, shape, .. } = &self.elements;
        let chunk = args[0].to_contiguous()?;
        let start = chunk.offset() * dtype.size_bytes();
        let from = &chunk.buffer().bytes()[start..start + chunk.len_bytes()];
        let [origin] = place.origin else {
            return Err(GraphError::Internal("a part of a file has one axis".to_owned()));
        };
        let number = (origin * dtype.size_bytes()) as u64 / self.parts.bytes;
        let mut bytes = if number == 0 { header_bytes(*dtype, shape) } else { Vec::new() };
        bytes.extend_from_slice(from);
        storage::of(path)?.write_part(path, &self.parts, number as usize, bytes)?;
        Ok(Chunk::from_elements(&[1], &[from.len() as i64])?)
    }
}

/// The function of this file that a plan names.
pub(crate) fn find(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    let json: Json = serde_json::from_str(&name.name).ok()?;
    let elements = Elements::parse(&json)?;
    match name.kind.as_str() {
        READING => Some(Arc::new(Reading(elements))),
        INFLATING => {
            let (start, len, inflated_len, crc) = serde_json::from_value(json["deflated"].clone()).ok()?;
            Some(Arc::new(Inflating { elements, entry: Entry { start, len, inflated_len, crc } }))
        }
        WRITING => Some(Arc::new(Writing(elements))),
        UPLOADING => {
            let (count, bytes, id) = serde_json::from_value(json["parts"].clone()).ok()?;
            Some(Arc::new(Uploading { elements, parts: Parts { count, bytes, id } }))
        }
        _ => None,
    }
}

impl Elements {
    fn name(&self, kind: &str) -> Option<ForeignName> {
        Some(ForeignName { kind: kind.to_owned(), name: self.to_json()?.to_string() })
    }

    fn to_json(&self) -> Option<Json> {
        let Elements { path, start, dtype, shape, swapped } = self;
        // A path that is not UTF-8 cannot be sent to other processes.
        let path = path.to_str()?;
        Some(json!({"path": path, "start": start, "dtype": dtype.name(), "shape": shape, "swapped": swapped}))
    }

    fn parse(name: &Json) -> Option<Elements> {
        let extents = name["shape"].as_array()?.iter();
        Some(Elements {
            path: PathBuf::from(name["path"].as_str()?),
            start: name["start"].as_u64()?,
            dtype: name["dtype"].as_str()?.parse().ok()?,
            shape: extents.map(|extent| Some(extent.as_u64()? as usize)).collect::<Option<_>>()?,
            swapped: name["swapped"].as_bool()?,
        })
    }

    /// Offset of the end of the elements, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.start
            + self.shape.iter().map(|&extent| extent as u64).product::<u64>() * self.dtype.size_bytes() as u64
    }

    /// The chunk at a place; `read` fills in its bytes.
    fn chunk(
        &self,
        place: Place<'_>,
        read: impl FnOnce(&mut [u8]) -> Result<(), GraphError>,
    ) -> Result<Chunk, GraphError> {
        let bytes = place.extents.iter().product::<usize>() * self.dtype.size_bytes();
        let mut data = Buffer::zeroed(bytes);
        let to = &mut data.elements_mut::<u8>()[..bytes];
        read(to)?;
        self.normalize(to);
        Ok(Chunk::contiguous(self.dtype, place.extents, data)?)
    }

    /// Visits the ranges of the file that a place consists of, many at a time.
    fn for_each_batch(
        &self,
        place: Place<'_>,
        mut visit: impl FnMut(&[Stretch]) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        let mut batch = Vec::new();
        self.for_each_stretch(place, |at, range| {
            batch.push((at, range));
            if batch.len() == BATCH_COUNT {
                visit(&batch)?;
                batch.clear();
            }
            Ok::<(), GraphError>(())
        })?;
        visit(&batch)
    }

    /// Visits the ranges of the file that a place consists of, from first to last: the offset of each in the
    /// file, and its range in the bytes of the chunk.
    pub(super) fn for_each_stretch<E>(
        &self,
        place: Place<'_>,
        mut visit: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let width = self.dtype.size_bytes();
        if place.extents.contains(&0) {
            return Ok(());
        }
        // Behind the last axis that is cut, elements are contiguous in both.
        let cut =
            (0..self.shape.len()).rev().find(|&axis| place.extents[axis] != self.shape[axis]).unwrap_or(0);
        let inner: usize = self.shape.iter().skip(cut + 1).product();
        let len = place.extents.get(cut).copied().unwrap_or(1) * inner * width;
        let rows: usize = place.extents.iter().take(cut).product();
        for row in 0..rows {
            let (mut left, mut stride, mut at) = (row, inner as u64, 0u64);
            for axis in (0..=cut).rev().filter(|&axis| axis < self.shape.len()) {
                let mut index = place.origin[axis];
                if axis < cut {
                    index += left % place.extents[axis];
                    left /= place.extents[axis];
                }
                at += index as u64 * stride;
                stride *= self.shape[axis] as u64;
            }
            visit(self.start + at * width as u64, row * len..(row + 1) * len)?;
        }
        Ok(())
    }

    /// Converts the bytes of a file into those of a chunk.
    fn normalize(&self, bytes: &mut [u8]) {
        if self.swapped {
            // A complex number is two numbers.
            let width = self.dtype.real_part().size_bytes();
            bytes.chunks_exact_mut(width).for_each(|number| number.reverse());
        }
        if self.dtype == DType::Bool {
            // Kernels rely on 0 and 1; for NumPy, any other byte is true too.
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_found_in_the_file() {
        let shape = vec![3, 4, 5];
        let elements =
            Elements { path: PathBuf::new(), start: 128, dtype: DType::I16, shape, swapped: false };
        let stretches = |origin: [usize; 3], extents: [usize; 3]| {
            let mut found = Vec::new();
            let place = Place { origin: &origin, extents: &extents };
            let keep = |at, range| {
                found.push((at, range));
                Ok::<(), ()>(())
            };
            elements.for_each_stretch(place, keep).unwrap();
            found
        };
        assert_eq!(stretches([0, 0, 0], [3, 4, 5]), [(128, 0..120)]);
        assert_eq!(stretches([1, 0, 0], [2, 4, 5]), [(168, 0..80)]);
        assert_eq!(stretches([0, 1, 0], [2, 2, 5]), [(138, 0..20), (178, 20..40)]);
        assert_eq!(stretches([2, 1, 3], [1, 2, 2]), [(128 + 2 * 48, 0..4), (128 + 2 * 53, 4..8)]);
        assert!(stretches([0, 0, 0], [0, 4, 5]).is_empty());
    }

    #[test]
    fn functions_are_found_by_the_names_they_give() {
        let path = PathBuf::from("/a \"b\".npy");
        let elements = Elements { path, start: 64, dtype: DType::C64, shape: vec![2, 0], swapped: true };
        let name = elements.name(READING).unwrap();
        assert_eq!(Elements::parse(&serde_json::from_str(&name.name).unwrap()), Some(elements));
        assert!(find(&name).is_some());
        let elements = Elements::parse(&serde_json::from_str(&name.name).unwrap()).unwrap();
        let entry = Entry { start: 1, len: 2, inflated_len: 3, crc: 4 };
        let inflating = Inflating { elements, entry };
        let found = find(&inflating.name().unwrap()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{inflating:?}"), "all of it travels");
        let elements = Elements::parse(&serde_json::from_str(&name.name).unwrap()).unwrap();
        let parts = Parts { count: 3, bytes: 5 << 20, id: "\"an id\"".to_owned() };
        let uploading = Uploading { elements, parts };
        let found = find(&uploading.name().unwrap()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{uploading:?}"), "all of it travels");
        assert!(find(&ForeignName { kind: READING.to_owned(), name: "{}".to_owned() }).is_none());
    }
}
