//! Functions of several references: `get` of many, `wait`, `locations`, `cancel`.

use crate::error::{Error, Result};
use crate::handles::State;
use crate::reference::ObjectRef;
use crate::settle::{Timeout, decode_now, settle, wait_for_count};
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::sync::Arc;
use tharsis_protos::records::FromClient;
use tharsis_types::NodeId;

/// References that are ready, and the others.
pub type Parted<T> = (Vec<ObjectRef<T>>, Vec<ObjectRef<T>>);

/// Options of [`wait`]; `Wait::default()` waits for one reference, without a timeout, and starts to fetch
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Number of references that must be ready.
    pub num_returns: usize,
    /// Longest time to wait.
    pub timeout: Option<Timeout>,
    /// Whether to start fetching the bytes of ready references.
    pub fetch: bool,
}

impl Default for Wait {
    fn default() -> Self {
        Self { num_returns: 1, timeout: None, fetch: true }
    }
}

/// Waits for several values and reads them, in order.
///
/// # Errors
/// The first failure in order; `GetTimeout` and `InvalidArgument` as for [`ObjectRef::get_timeout`].
pub fn get_all<T: DeserializeOwned>(references: &[ObjectRef<T>], timeout: Option<Timeout>) -> Result<Vec<T>> {
    let handles: Vec<_> = references.iter().map(|reference| Arc::clone(reference.handle())).collect();
    settle(&handles, timeout)?;
    handles.iter().map(|handle| decode_now(handle)).collect()
}

/// Waits until some references are ready, and splits them into ready and not ready, both in the given order.
///
/// A reference is ready when its task has ended, with a value or without. At most `num_returns` are reported
/// ready.
///
/// # Errors
/// `InvalidArgument` for a reference given twice, for more `num_returns` than references, for a bad timeout;
/// the loss of the connection. A timeout is no error: fewer references are ready then.
pub fn wait<T>(references: &[ObjectRef<T>], options: Wait) -> Result<Parted<T>> {
    if options.num_returns > references.len() {
        let (wanted, given) = (options.num_returns, references.len());
        return Err(Error::argument(format!("num_returns is {wanted}, with {given} references")));
    }
    let mut seen = HashSet::with_capacity(references.len());
    if let Some(twice) = references.iter().find(|reference| !seen.insert(reference.id())) {
        return Err(Error::argument(format!("{twice:?} is given twice")));
    }
    let handles: Vec<_> = references.iter().map(|reference| Arc::clone(reference.handle())).collect();
    wait_for_count(&handles, options.num_returns, options.timeout)?;
    let mut ready = Vec::with_capacity(options.num_returns);
    let mut rest = Vec::with_capacity(references.len() - options.num_returns);
    for reference in references {
        if ready.len() < options.num_returns && reference.handle().look(State::is_ready) {
            if options.fetch {
                reference.handle().fetch_if_ready();
            }
            ready.push(reference.clone());
        } else {
            rest.push(reference.clone());
        }
    }
    Ok((ready, rest))
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
/// its worker is killed; `recursive` does the same to the tasks it submitted. A task that has ended is left
/// alone.
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
