//! Rows that stay in the store: another plan of this client reads them there.

use super::fault::from_engine;
use super::task::TaskOutput;
use arrow_array::RecordBatch;
use tharsis_dataframe::{KeptPart, Result};
use tharsis_remote::{Client, ObjectRef};

/// An object with rows; the reference keeps it.
pub(super) struct InStore {
    object: ObjectRef<TaskOutput>,
    client: Client,
    rows: usize,
    bytes: usize,
}

impl InStore {
    pub(super) fn new(object: ObjectRef<TaskOutput>, client: &Client, rows: usize, bytes: usize) -> InStore {
        InStore { object, client: client.clone(), rows, bytes }
    }

    /// The object, if this client can pass it on.
    pub(super) fn object(&self, client: &Client) -> Option<&ObjectRef<TaskOutput>> {
        is_same(&self.client, client).then_some(&self.object)
    }
}

impl KeptPart for InStore {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        self.object.get().map_err(from_engine)?.into_rows().map_err(Into::into)
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl std::fmt::Debug for InStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InStore({:?}, {} rows)", self.object.id(), self.rows)
    }
}

/// Whether both are the same connection: node and client id identify it.
pub(super) fn is_same(one: &Client, other: &Client) -> bool {
    (one.node(), one.id()) == (other.node(), other.id())
}
