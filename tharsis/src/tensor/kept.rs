//! Results that stay in the store: another job of this client reads them there, and they are fetched only
//! when their elements are accessed.

use super::fault::from_engine;
use super::task::BatchOutput;
use std::sync::Arc;
use tharsis_graph::{Error, KeptChunk};
use tharsis_kernels::Chunk;
use tharsis_remote::{Client, ObjectRef};

/// An object with one chunk; the reference keeps it.
pub(super) struct InStore {
    object: ObjectRef<BatchOutput>,
    client: Client,
}

impl InStore {
    pub(super) fn new(object: ObjectRef<BatchOutput>, client: &Client) -> InStore {
        InStore { object, client: client.clone() }
    }

    /// The object, if this client can pass it on.
    pub(super) fn object(&self, client: &Client) -> Option<&ObjectRef<BatchOutput>> {
        is_same(&self.client, client).then_some(&self.object)
    }
}

impl KeptChunk for InStore {
    fn fetch(&self) -> Result<Arc<Chunk>, Error> {
        Ok(Arc::new(self.object.get().map_err(from_engine)?.into_single()?))
    }
}

/// Whether both are the same connection: node and client id identify it.
pub(super) fn is_same(one: &Client, other: &Client) -> bool {
    (one.node(), one.id()) == (other.node(), other.id())
}
