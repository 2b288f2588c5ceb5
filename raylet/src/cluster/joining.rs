//! The first calls of a node to the control store: which it knows, who was shut out, and its own entry. A
//! head begins one.

use super::addresses::own_address;
use super::{CALL_DEADLINE, ClusterOptions, JOIN_PATIENCE, PATIENCE, Role, refused};
use crate::logs::unix_ms;
use std::net::TcpListener;
use std::time::Duration;
use tharsis_gcs::{
    BackendChoice, ClientOptions, Control, ControlClient, ControlOptions, KnownStores, StoreError,
};
use tharsis_protos::CallError;
use tharsis_protos::connection::{Credentials, Gate};
use tharsis_protos::control::{NodeInfo, Registered};
use tharsis_protos::revoked::Revoked;
use tharsis_types::{Failure, FailureKind, NodeId};

/// The longest time that a node takes to become a member, or to begin a cluster: a certificate from a slow
/// head, then its first calls. Whoever starts a node waits for as long.
pub const JOIN_TIME_MAX: Duration = Duration::from_secs(90);
/// Clocks that differ by more are spoken of; nothing depends on them.
const CLOCK_SKEW_MS_MAX: u64 = 5_000;

/// The control stores that a node knows before it has heard of others.
pub(super) fn known_stores(role: &Role, listener: &TcpListener) -> Result<KnownStores, Failure> {
    Ok(match role {
        Role::Head { .. } => KnownStores::new([own_address(listener)?.to_string()]),
        Role::Member { heads } => KnownStores::new(heads.iter().cloned()),
    })
}

/// A client of the control store.
pub(super) fn client_of(stores: KnownStores, own: &Credentials) -> Result<ControlClient, Failure> {
    let limits = ClientOptions { call_deadline: CALL_DEADLINE, patience: PATIENCE };
    ControlClient::new(stores, own, limits).map_err(|e| refused("the cluster's address", &e))
}

/// The machines that were shut out, which a member hears before its first caller: nobody has its address yet.
pub(super) async fn heard_revoked(client: &ControlClient, gate: &Gate) -> Result<Revoked, Failure> {
    let info = match client.with_patience(JOIN_PATIENCE).cluster_info().await {
        // Somebody took the call, and is slow.
        Err(CallError::Deadline { .. }) => client.with_patience(PATIENCE).cluster_info().await,
        answered => answered,
    };
    let place = client.address();
    let info = info.map_err(|e| refused(&format!("cannot join the cluster at {place}"), &e))?;
    gate.revoked().hear(info.revoked);
    Ok(gate.revoked().clone())
}

/// Makes the node a member.
pub(super) async fn register(client: &ControlClient, info: &NodeInfo) -> Result<Registered, Failure> {
    let registered = client.with_patience(PATIENCE).register_node(info, unix_ms()).await;
    let place = client.address();
    let registered = registered.map_err(|e| refused(&format!("cannot join the cluster at {place}"), &e))?;
    if CLOCK_SKEW_MS_MAX < registered.clock_skew_ms.unsigned_abs() {
        let skew_s = registered.clock_skew_ms as f64 / 1e3;
        tracing::warn!(skew_s, "the clocks of this machine and of the control store differ");
    }
    Ok(registered)
}

/// Kind of failure if a control store cannot begin: its file is the wrong one, or has no room, or its etcd is
/// away.
#[must_use]
pub fn kind_of_beginning(error: &StoreError) -> FailureKind {
    match error {
        StoreError::ForeignOwner { .. } | StoreError::InUse { .. } => FailureKind::InUse,
        StoreError::Io { is_full: true, .. }
        | StoreError::NoSpace { .. }
        | StoreError::OutOfSpace { .. }
        | StoreError::TooMany { .. } => FailureKind::ResourceExhausted,
        StoreError::Format { .. } | StoreError::LaterTables { .. } => FailureKind::VersionMismatch,
        StoreError::ClusterMismatch { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Io { is_full: false, .. } => FailureKind::InvalidArgument,
        StoreError::Closed
        | StoreError::Connect { .. }
        | StoreError::Contention { .. }
        | StoreError::Deadline { .. }
        | StoreError::DuplicateKey { .. }
        | StoreError::KeyLength { .. }
        | StoreError::LeaseNotFound { .. }
        | StoreError::LeaseTtl { .. }
        | StoreError::Unavailable { .. }
        | StoreError::ValueLength { .. } => FailureKind::Disconnected,
    }
}

/// The control store of a head.
pub(super) async fn begin_if_head(
    me: NodeId,
    options: &ClusterOptions,
    address: &str,
) -> Result<Option<Control>, Failure> {
    let Role::Head { store, lease_ttl_ms } = &options.role else { return Ok(None) };
    let owner = if store.is_shared() { options.security.owner()? } else { None };
    let lease_ttl = Duration::from_millis(*lease_ttl_ms);
    begin(me, store, ControlOptions { lease_ttl, cluster: None, owner }, address).await.map(Some)
}

/// A control store in the process of the node `me`.
async fn begin(
    me: NodeId,
    store: &BackendChoice,
    options: ControlOptions,
    address: &str,
) -> Result<Control, Failure> {
    let failed =
        |error: StoreError| Failure::new(kind_of_beginning(&error), format!("control store: {error}"));
    let backend = store.open().await.map_err(failed)?;
    let control = Control::start(backend, options).await.map_err(failed)?;
    control.announce(address.to_owned(), Some(me)).await.map_err(failed)?;
    Ok(control)
}
