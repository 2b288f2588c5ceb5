//! Rows that stay in the store: another plan of this client reads them there.

use super::fault::from_engine;
#[cfg(feature = "tensor")]
use crate::between::convert::Form;
use crate::object::TaskOutput;
use arrow_array::RecordBatch;
#[cfg(feature = "tensor")]
use tharsis_dataframe::Error;
use tharsis_dataframe::{KeptPart, Result};
use tharsis_remote::{Client, ObjectRef};

/// An object with rows; the reference keeps it.
pub(crate) struct InStore {
    object: ObjectRef<TaskOutput>,
    client: Client,
    rows: usize,
    bytes: usize,
}

impl InStore {
    pub(super) fn new(object: ObjectRef<TaskOutput>, client: &Client, rows: usize, bytes: usize) -> InStore {
        InStore { object, client: client.clone(), rows, bytes }
    }

    /// The object, and the client that can pass it on.
    #[cfg(feature = "tensor")]
    pub(crate) fn source(&self) -> (ObjectRef<TaskOutput>, Client) {
        (self.object.clone(), self.client.clone())
    }

    /// The object, if this client can pass it on.
    pub(crate) fn object(&self, client: &Client) -> Option<&ObjectRef<TaskOutput>> {
        is_same(&self.client, client).then_some(&self.object)
    }
}

impl KeptPart for InStore {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        self.object.get().map_err(from_engine)?.into_rows()
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rows of a tensor: an object with a chunk, which its readers read in place.
#[cfg(feature = "tensor")]
pub(crate) struct ChunkInStore {
    pub(crate) object: ObjectRef<TaskOutput>,
    pub(crate) client: Client,
    pub(crate) form: Form,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

#[cfg(feature = "tensor")]
impl KeptPart for ChunkInStore {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        let object = self.object.get().map_err(from_engine)?;
        let chunk = object.into_single().map_err(|error| Error::Internal(error.to_string()))?;
        Ok(vec![self.form.rows(&chunk)?])
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(feature = "tensor")]
impl std::fmt::Debug for ChunkInStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkInStore({:?}, {} rows)", self.object.id(), self.rows)
    }
}

impl std::fmt::Debug for InStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InStore({:?}, {} rows)", self.object.id(), self.rows)
    }
}

/// Whether both are the same connection: node and client id identify it.
pub(crate) fn is_same(one: &Client, other: &Client) -> bool {
    (one.node(), one.id()) == (other.node(), other.id())
}
