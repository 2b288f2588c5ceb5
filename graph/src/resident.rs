//! Tensors whose chunks exist.

use crate::error::Error;
use crate::tiling::Tiling;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tharsis_kernels::{Chunk, DType};

/// A tensor that was computed. Two are the same only if they are the same chunks.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Resident {
    pub dtype: DType,
    pub tiling: Tiling,
    pub chunks: Arc<Vec<ResidentChunk>>,
}

/// A chunk that exists.
#[derive(Clone)]
pub enum ResidentChunk {
    /// In the memory of this process.
    Here(Arc<Chunk>),
    /// Handle of the executor that made it. Jobs of this executor read it there.
    Kept(Arc<dyn KeptChunk>),
}

/// Handle of a chunk that an executor keeps until the handle is dropped. An executor recognizes its own
/// handles by their type.
pub trait KeptChunk: Any + Send + Sync {
    /// Brings the chunk to this process.
    ///
    /// # Errors
    /// Errors of the executor, if the chunk is lost or the executor has ended.
    fn fetch(&self) -> Result<Arc<Chunk>, Error>;
}

impl ResidentChunk {
    /// The chunk, brought to this process if it is elsewhere.
    ///
    /// # Errors
    /// As [`KeptChunk::fetch`].
    pub fn fetch(&self) -> Result<Arc<Chunk>, Error> {
        match self {
            ResidentChunk::Here(chunk) => Ok(chunk.clone()),
            ResidentChunk::Kept(kept) => kept.fetch(),
        }
    }

    /// The executor's handle, if it is of this type.
    pub fn kept<T: KeptChunk>(&self) -> Option<&T> {
        match self {
            ResidentChunk::Here(_) => None,
            ResidentChunk::Kept(kept) => (&**kept as &dyn Any).downcast_ref(),
        }
    }
}

impl fmt::Debug for ResidentChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResidentChunk::Here(chunk) => write!(f, "Here({:?})", chunk.shape()),
            ResidentChunk::Kept(kept) => write!(f, "Kept({:p})", Arc::as_ptr(kept)),
        }
    }
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resident({:p})", Arc::as_ptr(&self.chunks))
    }
}
