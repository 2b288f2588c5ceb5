//! Chunks as values of the store: written once, read in place.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tharsis_graph::plan::ChunkId;
use tharsis_kernels::{Buffer, Chunk, DType, KernelError, LentBytes};
use tharsis_remote::{Blob, Place};

/// From this size on, a chunk is computed in place in the store.
const PLACE_BYTES_MIN: usize = 256 << 10;

/// A chunk in C order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    dtype: DType,
    shape: Vec<usize>,
    data: Blob,
}

/// Chunks that are stored in one object.
pub(crate) type Bundle = Vec<(ChunkId, Stored)>;

impl Stored {
    /// A chunk to be stored; copied here only if it is not in C order.
    pub(super) fn new(chunk: &Chunk) -> Result<Stored, KernelError> {
        let chunk = chunk.to_contiguous()?;
        let start = chunk.offset() * chunk.dtype().size_bytes();
        let len = chunk.len_bytes();
        let bytes = match len {
            0 => Bytes::new(),
            _ => Bytes::from_owner(Lent(chunk.buffer().clone())).slice(start..start + len),
        };
        Ok(Stored { dtype: chunk.dtype(), shape: chunk.shape().to_vec(), data: Blob::from(bytes) })
    }

    /// The chunk over the stored bytes, without a copy.
    ///
    /// # Errors
    /// `OutOfBounds` if there are too few bytes for the shape.
    pub(crate) fn into_chunk(self) -> Result<Chunk, KernelError> {
        let Stored { dtype, shape, data } = self;
        let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent));
        let wanted = count.and_then(|count| count.checked_mul(dtype.size_bytes()));
        if wanted != Some(data.len()) {
            return Err(KernelError::OutOfBounds { shape, capacity: data.len() / dtype.size_bytes() });
        }
        Chunk::contiguous(dtype, &shape, Buffer::shared(Arc::new(data.into_bytes())))
    }
}

/// A place in the store for a result, lent to the kernel that computes it.
struct Lease(Place);

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl AsMut<[u8]> for Lease {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut()
    }
}

impl LentBytes for Lease {}

/// Memory in the store for a chunk of a given size, which is then stored without a copy. `None` if there is
/// none: then the chunk is computed elsewhere, and storing it reports the error. Also `None` for small
/// chunks, for which it does not pay.
pub(super) fn place(bytes: usize) -> Option<Buffer> {
    if bytes < PLACE_BYTES_MIN {
        return None;
    }
    Buffer::lent(Box::new(Lease(Place::take(bytes).ok()?)))
}

/// The memory of a chunk, lent to the store while it is written.
struct Lent(Arc<Buffer>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_stored_in_c_order() {
        let chunk = Chunk::from_elements(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let stored = Stored::new(&chunk.transposed().unwrap()).unwrap();
        let bytes = postcard::to_allocvec(&stored).unwrap();
        let back = postcard::from_bytes::<Stored>(&bytes).unwrap().into_chunk().unwrap();
        assert_eq!(
            (back.shape(), back.as_slice::<f64>().unwrap()),
            (&[3, 2][..], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0][..])
        );
    }

    #[test]
    fn a_shape_that_does_not_fit_its_bytes_is_refused() {
        for shape in [vec![3], vec![usize::MAX, 8], vec![1, 1]] {
            let stored = Stored { dtype: DType::F64, shape, data: Blob::from(vec![0; 16]) };
            assert!(stored.into_chunk().is_err());
        }
    }
}
