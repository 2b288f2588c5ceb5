//! Rows that stay in the store: another plan of this client reads them there.

use super::blocks;
use super::failure::not_given;
#[cfg(feature = "arrays")]
use crate::between::{convert::Form, errors::to_frames};
use crate::object::{TaskOutput, wait_for};
use crate::remote;
use arrow_array::RecordBatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tharsis_cancel::RunEnds;
use tharsis_dataframe::{Error, KeptPart, PartBatches, Result};
use tharsis_remote::{Client, ObjectRef, current};

/// An object with rows; the reference keeps it.
pub(crate) struct InStore {
    object: ObjectRef<TaskOutput>,
    client: Client,
    rows: usize,
    bytes: usize,
    /// Whether the list of blocks that this client has read names one that was lost.
    is_outdated: Arc<AtomicBool>,
}

impl InStore {
    pub(super) fn new(object: ObjectRef<TaskOutput>, client: &Client, rows: usize, bytes: usize) -> InStore {
        InStore { object, client: client.clone(), rows, bytes, is_outdated: Arc::default() }
    }

    /// The value. A client reads a value once, so a list that was made again comes by way of a task.
    fn value(&self) -> Result<TaskOutput> {
        if !self.is_outdated.load(Ordering::Relaxed) {
            return wait_for(&self.object, &RunEnds::of(None)).map_err(not_given);
        }
        let _binding = current::bind(self.client.clone());
        let passed = pass_on::options().num_cpus(0.0).remote(&self.object);
        wait_for(&passed, &RunEnds::of(None)).map_err(not_given)
    }

    /// The object, and the client that can pass it on.
    #[cfg(feature = "arrays")]
    pub(crate) fn source(&self) -> (ObjectRef<TaskOutput>, Client) {
        (self.object.clone(), self.client.clone())
    }

    /// The object, if this client can pass it on.
    pub(crate) fn object(&self, client: &Client) -> Option<&ObjectRef<TaskOutput>> {
        is_same(&self.client, client).then_some(&self.object)
    }
}

/// Gives what it is given.
#[remote]
fn pass_on(value: TaskOutput) -> TaskOutput {
    value
}

impl KeptPart for InStore {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        match self.value()?.into_rows() {
            Err(Error::Lost(_)) => {
                self.is_outdated.store(true, Ordering::Relaxed);
                self.value()?.into_rows()
            }
            read => read,
        }
    }

    fn batches(&self) -> Result<PartBatches<'static>> {
        let is_outdated = Arc::clone(&self.is_outdated);
        Ok(Box::new(blocks::batches(self.value()?.into_parts()?).inspect(move |batch| {
            if matches!(batch, Err(Error::Lost(_))) {
                is_outdated.store(true, Ordering::Relaxed);
            }
        })))
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rows of a tensor: an object with a chunk, which its readers read in place.
#[cfg(feature = "arrays")]
pub(crate) struct ChunkInStore {
    pub(crate) object: ObjectRef<TaskOutput>,
    pub(crate) client: Client,
    pub(crate) form: Form,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

#[cfg(feature = "arrays")]
impl KeptPart for ChunkInStore {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        let object = wait_for(&self.object, &RunEnds::of(None)).map_err(not_given)?;
        let chunk = object.into_single().map_err(|error| to_frames(&error, error.to_string()))?;
        Ok(vec![self.form.rows(&chunk)?])
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(feature = "arrays")]
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
