//! The call that drains a node, on the caller's side, and its progress on the wire.

use super::{Called, Credentials, DrainRow, PeerClient, Status, wire};
use crate::call::{CallError, chain};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::time::Duration;
use tharsis_types::NodeId;
use tonic::transport::Endpoint;

/// The name of the call in errors.
const CALL: &str = "drain";

/// Progress of a drain; ends when the node has left, or with the reason why the call broke.
pub type DrainStream = BoxStream<'static, Result<DrainRow, CallError>>;

/// Has the node at `address` (`host:port`) leave without loss `within` a time.
///
/// # Errors
/// [`CallError`] if it is not reached within `deadline`, or refuses.
pub async fn drain(
    address: String,
    node: NodeId,
    own: &Credentials,
    within: Duration,
    deadline: Duration,
) -> Result<DrainStream, CallError> {
    let endpoint = match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.connect_timeout(deadline),
        Err(error) => return Err(CallError::Unreachable { call: CALL, address, cause: chain(&error) }),
    };
    let mut client = PeerClient::new(own.channel(&endpoint, &address, Called::Node(node.0)));
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    let asked = client.drain(wire::DrainRequest { node: node.0, within_ms });
    let named = move |address: &str, status: &Status| CallError::from_status(CALL, address, status);
    match tokio::time::timeout(deadline, asked).await {
        Ok(Ok(answer)) => {
            let rows = answer.into_inner();
            Ok(rows.map(move |row| row.map(Into::into).map_err(|status| named(&address, &status))).boxed())
        }
        Ok(Err(status)) => Err(named(&address, &status)),
        Err(_) => Err(CallError::Deadline { call: CALL, address, deadline }),
    }
}

impl From<DrainRow> for wire::DrainProgress {
    fn from(row: DrainRow) -> Self {
        let DrainRow { remaining_ms, is_over, is_clean, runs, leases, jobs, tasks, .. } = row;
        let DrainRow { objects, copies, put_copies, copy_bytes, messages, moved, .. } = row;
        let DrainRow { moved_bytes, programs, .. } = row;
        Self {
            remaining_ms,
            is_over,
            is_clean,
            runs,
            leases,
            jobs,
            tasks,
            objects,
            copies,
            put_copies,
            copy_bytes,
            messages,
            moved,
            moved_bytes,
            programs,
        }
    }
}

impl From<wire::DrainProgress> for DrainRow {
    fn from(row: wire::DrainProgress) -> Self {
        let wire::DrainProgress { remaining_ms, is_over, is_clean, runs, leases, jobs, tasks, .. } = row;
        let wire::DrainProgress { objects, copies, put_copies, copy_bytes, messages, .. } = row;
        let wire::DrainProgress { moved, moved_bytes, programs, .. } = row;
        Self {
            remaining_ms,
            is_over,
            is_clean,
            runs,
            leases,
            jobs,
            tasks,
            objects,
            copies,
            put_copies,
            copy_bytes,
            messages,
            moved,
            moved_bytes,
            programs,
        }
    }
}
