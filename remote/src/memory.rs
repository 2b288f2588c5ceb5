//! Bytes of the arena, kept in place as long as they have readers.
//!
//! The node does not move or free bytes that it has pinned for this client. There are two pins. The bytes of
//! a reference stay until it is released, so a mapping holds the handle. The bytes of a task's arguments stay
//! until the task ends. If a mapping outlives the task (kept in a static, sent to a thread), the worker keeps
//! the bytes under its own reference just before it reports the end (see [`ArgumentPin::prolong`]).

use crate::error::{Error, Result};
use crate::handles::{Connection, View};
use crate::uses::Use;
use std::sync::{Arc, OnceLock};
use tharsis_object_store::ArenaSlice;
use tharsis_types::{Extent, RefId};

/// Sealed bytes of an object.
#[derive(Clone)]
pub(crate) struct Mapped {
    bytes: ArenaSlice,
    /// Owner that keeps the bytes in place: a handle, or an [`ArgumentPin`].
    _pin: Arc<dyn Send + Sync>,
}

/// The pin of one argument of a running task.
pub(crate) struct ArgumentPin {
    reference: RefId,
    /// A use of the node's memory: the bytes stay until it is dropped, even if the worker is given up.
    in_use: OnceLock<Use>,
    /// A view of the bytes for as long as any mapping lives: a node that is short of memory does not get them
    /// back.
    prolonged: OnceLock<View>,
}

impl Mapped {
    /// Maps an extent that the node named.
    pub(crate) fn new(connection: &Connection, extent: Extent, pin: Arc<dyn Send + Sync>) -> Result<Self> {
        let bytes = connection
            .link
            .arena
            .slice(extent.offset, extent.len)
            .map_err(|error| Error::corrupt(format!("an object cannot be mapped: {error}")))?;
        Ok(Self { bytes, _pin: pin })
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ArgumentPin {
    pub(crate) fn new(reference: RefId) -> Arc<Self> {
        Arc::new(Self { reference, in_use: OnceLock::new(), prolonged: OnceLock::new() })
    }

    /// Maps the bytes.
    pub(crate) fn map(self: &Arc<Self>, connection: &Arc<Connection>, extent: Extent) -> Result<Mapped> {
        let in_use = connection.link.uses.begin().ok_or_else(|| connection.link.loss())?;
        let _ = self.in_use.set(in_use);
        Mapped::new(connection, extent, Arc::clone(self) as _)
    }

    /// Keeps the bytes under a separate reference if they have readers besides the worker.
    ///
    /// To be called after the function has ended and before its end is reported: the node handles records in
    /// order, so the new pin exists before the old one is dropped.
    pub(crate) fn prolong(self: &Arc<Self>, connection: &Arc<Connection>, extent: Extent) {
        if Arc::strong_count(self) > 1
            && let Some(view) = connection.keep(self.reference, extent)
        {
            let _ = self.prolonged.set(view);
        }
    }
}
