//! Functions of references: `get` of many, `locations`, `cancel`.

use crate::error::Result;
use crate::reference::ObjectRef;
use crate::settle::{Timeout, decode_now, settle};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tharsis_protos::records::FromClient;
use tharsis_types::NodeId;

/// Waits for several values and reads them, in order.
///
/// # Errors
/// The first failure in order; `GetTimeout` and `InvalidArgument` as for [`ObjectRef::get_timeout`].
pub fn get_all<T: DeserializeOwned>(references: &[ObjectRef<T>], timeout: Option<Timeout>) -> Result<Vec<T>> {
    let handles: Vec<_> = references.iter().map(|reference| Arc::clone(reference.handle())).collect();
    settle(&handles, timeout)?;
    handles.iter().map(|handle| decode_now(handle)).collect()
}

/// The nodes that hold the value, as far as this client's node knows: none while there is no value, the owner
/// for a value small enough to stay with it, otherwise those with a copy in their store. A node knows all
/// copies of objects that it owns; for borrowed objects, those that the owner reported last.
///
/// # Errors
/// The loss of the connection.
pub fn locations<T>(reference: &ObjectRef<T>) -> Result<Vec<NodeId>> {
    let Some(connection) = reference.handle().connection() else { return Ok(Vec::new()) };
    let (link, answers) = (&connection.link, &connection.table.locations);
    let request = answers.expect();
    link.send(&FromClient::Locate { request, reference: reference.id() })?;
    answers.take(link, request)
}

/// Stops the task behind a reference.
///
/// A waiting task is removed, a running one is told (see [`crate::Context::is_cancelled`]) or, with `force`,
/// its worker is killed; `recursive` does the same to the tasks it submitted. If one that is told waits for a
/// value, in `get`, `wait` or `.await`, the wait ends with `Cancelled`, and so does each later one. A task
/// that has ended is left alone.
///
/// # Errors
/// The loss of the connection.
pub fn cancel<T>(reference: &ObjectRef<T>, force: bool, recursive: bool) -> Result<()> {
    match reference.handle().connection() {
        Some(connection) => {
            connection.link.send(&FromClient::Cancel { reference: reference.id(), force, recursive })
        }
        None => Ok(()),
    }
}
