//! Results that stay in the store: another job of this client reads them there, and they are fetched only
//! when their elements are accessed.

use super::failure::not_given;
#[cfg(feature = "dataframe")]
use crate::between::convert::View;
#[cfg(feature = "dataframe")]
use crate::between::errors::to_tensors;
use crate::object::{TaskOutput, wait_for};
use std::sync::Arc;
use tharsis_cancel::RunEnds;
use tharsis_graph::{Error, KeptChunk};
use tharsis_kernels::Chunk;
use tharsis_remote::{Client, ObjectRef};

/// An object with one chunk; the reference keeps it.
pub(crate) struct InStore {
    object: ObjectRef<TaskOutput>,
    client: Client,
}

impl InStore {
    pub(super) fn new(object: ObjectRef<TaskOutput>, client: &Client) -> InStore {
        InStore { object, client: client.clone() }
    }

    /// The object, and the client that can pass it on.
    #[cfg(feature = "dataframe")]
    pub(crate) fn source(&self) -> (ObjectRef<TaskOutput>, Client) {
        (self.object.clone(), self.client.clone())
    }

    /// The object, if this client can pass it on.
    pub(crate) fn object(&self, client: &Client) -> Option<&ObjectRef<TaskOutput>> {
        is_same(&self.client, client).then_some(&self.object)
    }
}

impl KeptChunk for InStore {
    fn fetch(&self) -> Result<Arc<Chunk>, Error> {
        let object = wait_for(&self.object, &RunEnds::of(None)).map_err(not_given)?;
        Ok(Arc::new(object.into_single()?))
    }
}

/// Whether both are the same connection: node and client id identify it.
pub(super) fn is_same(one: &Client, other: &Client) -> bool {
    (one.node(), one.id()) == (other.node(), other.id())
}

/// Rows of a column of a frame, as a chunk: an object of rows, which its readers read in place.
#[cfg(feature = "dataframe")]
pub(crate) struct ColumnInStore {
    pub(crate) object: ObjectRef<TaskOutput>,
    pub(crate) client: Client,
    pub(crate) view: View,
}

#[cfg(feature = "dataframe")]
impl KeptChunk for ColumnInStore {
    fn fetch(&self) -> Result<Arc<Chunk>, Error> {
        let object = wait_for(&self.object, &RunEnds::of(None)).map_err(not_given)?;
        Ok(Arc::new(self.view.chunk_in(object).map_err(to_tensors)?))
    }
}
