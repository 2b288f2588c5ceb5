//! The control store as a service: the tables over a back end, membership by lease, and changes for watchers.
//!
//! A node is a member while it has a record, and it keeps the record by renewing a lease (`judge.rs` decides
//! when a node without a lease is dead, `suspects.rs` and `silence.rs` when one with a lease is). Watchers
//! learn from the removal of the record that the node is gone. So several servers over one etcd agree without
//! talking to each other; `stores.rs` tells members the addresses of all of them.
//!
//! A watcher gets one list and then changes only. The renewals of leases are not among them, so an idle
//! cluster of n nodes costs n calls per second, and no events. (The refused design: loads in the renewals,
//! passed on to all watchers, n * n events per second that nobody needs. Nodes tell their loads to a few
//! others instead.)

mod calls;
mod follow;
mod hang;
mod holders;
mod judge;
mod lineage;
mod machines;
mod owned;
mod reach;
mod shares;
mod silence;
mod stores;
mod suspects;
mod watch;
mod watchers;
mod writable;

use crate::backend::{Backend, StoreLease, check_ttl};
use crate::error::StoreError;
use crate::tables::{self, Lineage, Owner};
use holders::Holders;
use owned::Owned;
use parking_lot::Mutex;
use reach::Reach;
use shares::Written;
use silence::Silences;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stores::Listing;
use tharsis_protos::connection::{Gate, Signer};
use tharsis_protos::control::ClusterId;
use tharsis_protos::knock::Knocker;
use tharsis_protos::revoked::Revoked;
use tharsis_protos::{Refusal, RefusalCode, control};
use tharsis_types::NodeId;
use tonic::service::Routes;
use watchers::Watchers;
use writable::Noted;

pub use silence::renewal_pace;

/// Time limit of one call; longer than the time limits of the back ends.
const CALL_DEADLINE: Duration = Duration::from_secs(10);
/// Number of tries of a transaction that conflicts with others.
const ATTEMPTS_MAX: usize = 64;

/// Options of a control store.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// A node that does not renew its lease for this long has left.
    pub lease_ttl: Duration,
    /// The expected cluster. `None` accepts the cluster that owns the key space, or makes a new one.
    pub cluster: Option<ClusterId>,
    /// The owner of the key space from the first control store on. `None` accepts each.
    pub owner: Option<Owner>,
}

/// A running control store. Cheap to clone; clones share one store.
#[derive(Clone, Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn Backend>,
    /// The same, for what its last write said.
    noted: Arc<Noted>,
    cluster: ClusterId,
    lease_ttl: Duration,
    /// Leases of members known to this server, to save a read per keep-alive.
    leases: Mutex<HashMap<NodeId, StoreLease>>,
    /// Members that are being probed.
    suspects: Mutex<HashSet<NodeId>>,
    /// The member that this control store is part of.
    own_node: OnceLock<NodeId>,
    /// Members whose addresses led to them from here.
    reach: Arc<Mutex<Reach>>,
    /// Knocks at them, as soon as this control store has an identity.
    knocker: OnceLock<Knocker>,
    /// When members were last heard of.
    silences: Mutex<Silences>,
    /// Addresses of all control stores.
    stores: tokio::sync::watch::Sender<Listing>,
    /// The lease of this control store's own address, once that is written.
    own_lease: Mutex<Option<StoreLease>>,
    watchers: Arc<Mutex<Watchers>>,
    /// The machines of nodes.
    owned: Mutex<Owned>,
    /// The code units of nodes.
    holders: Mutex<Holders>,
    /// The values that were written here.
    written: Mutex<Written>,
    /// The incarnations of the tables, as last read.
    lineage: Mutex<Lineage>,
    /// The machines that were shut out.
    revoked: Revoked,
    /// The authority on this machine, if the port of this control store signs.
    signer: OnceLock<Signer>,
    stopping: tokio::sync::watch::Sender<bool>,
}

impl Default for ControlOptions {
    fn default() -> Self {
        Self { lease_ttl: Duration::from_secs(10), cluster: None, owner: None }
    }
}

impl Control {
    /// Starts a control store on a key space.
    ///
    /// # Errors
    /// [`StoreError::ClusterMismatch`] and [`StoreError::ForeignOwner`] if it belongs to another cluster than
    /// in the options, [`StoreError::LaterTables`], and errors of the back end.
    pub async fn start(backend: Arc<dyn Backend>, options: ControlOptions) -> Result<Self, StoreError> {
        check_ttl(options.lease_ttl)?;
        let noted = Arc::new(Noted::new(backend));
        let backend: Arc<dyn Backend> = noted.clone();
        let format = tables::read_format(&backend.txn(tables::note_format()).await?)?;
        if tables::FORMAT < format {
            let (place, wanted) = (backend.place(), tables::FORMAT);
            return Err(StoreError::LaterTables { place, found: format, wanted });
        }
        if format < tables::FORMAT {
            backend.txn(tables::raise_format(format)).await?;
        }
        let wanted = options.cluster.unwrap_or_else(new_cluster);
        let found = tables::owner(&backend.txn(tables::claim(wanted)).await?)?.unwrap_or(wanted);
        if options.cluster.is_some() && found != wanted {
            return Err(StoreError::ClusterMismatch {
                place: backend.place(),
                expected: wanted.to_string(),
                found: found.to_string(),
            });
        }
        if let Some(owner) = options.owner {
            claim_for(&*backend, owner).await?;
        }
        let shared = Shared {
            backend,
            noted,
            cluster: found,
            lease_ttl: options.lease_ttl,
            leases: Mutex::default(),
            suspects: Mutex::default(),
            own_node: OnceLock::new(),
            reach: Arc::default(),
            knocker: OnceLock::new(),
            silences: Mutex::new(Silences::new(options.lease_ttl)),
            stores: tokio::sync::watch::Sender::default(),
            own_lease: Mutex::default(),
            watchers: Arc::default(),
            owned: Mutex::default(),
            holders: Mutex::default(),
            written: Mutex::default(),
            lineage: Mutex::default(),
            revoked: Revoked::unheard(),
            signer: OnceLock::new(),
            stopping: tokio::sync::watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        shared.begin_incarnation(false).await?;
        shared.read_machines().await?;
        tokio::spawn(machines::follow_machines(Arc::downgrade(&shared)));
        tokio::spawn(judge::judge(Arc::downgrade(&shared), options.lease_ttl));
        tokio::spawn(hang::watch_silences(Arc::downgrade(&shared)));
        tokio::spawn(stores::follow_list(Arc::downgrade(&shared)));
        Ok(Self { shared })
    }

    /// The id of the cluster that the store serves.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.shared.cluster
    }

    /// Whether the tables can be written: whether the last write to them was carried out. While it was not,
    /// no node joins, no job begins, and no node is declared dead.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.shared.noted.is_writable()
    }

    /// The gate of a port of this control store's process, with what the control stores of the cluster know
    /// of its machines: those that were shut out, and whose each node is. If it signs, what its authority
    /// notes holds for all of them from now on.
    #[must_use]
    pub fn guard(&self, gate: Gate) -> Gate {
        let gate = gate.knowing(&self.shared.revoked);
        let _the_first = self.shared.knocker.set(gate.knocker());
        let Some(signer) = gate.signer() else { return gate };
        if self.shared.signer.set(signer.clone()).is_ok() {
            tokio::spawn(machines::keep_rows(Arc::downgrade(&self.shared)));
        }
        gate.with_owners(self.shared.clone())
    }

    /// Adds the service to the routes of a port, so that a node can serve it beside its own.
    #[must_use]
    pub fn mount(&self, routes: Routes) -> Routes {
        control::routes(routes, self.shared.clone())
    }

    /// Tells members, and other control stores over the same tables, that this one is reached at `address`
    /// (`host:port`), until it stops, and whether it is part of a node.
    ///
    /// # Errors
    /// Errors of the back end.
    pub async fn announce(&self, address: String, head: Option<NodeId>) -> Result<(), StoreError> {
        if let Some(head) = head {
            let _the_same = self.shared.own_node.set(head);
        }
        self.shared.announce(address, head).await
    }

    /// Ends all watches, so that a server that waits for its last stream can stop.
    pub fn end_watches(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Ends all watches and closes the back end. Members stay members until their leases run out.
    pub async fn stop(&self) {
        self.end_watches();
        self.shared.withdraw().await;
        self.shared.backend.close().await;
    }
}

/// Claims the key space for its owner.
async fn claim_for(backend: &dyn Backend, owner: Owner) -> Result<(), StoreError> {
    let mut found = tables::claimed(&backend.txn(tables::claim_for(owner, None)).await?);
    if let Some(before) = found.take_if(|found| owner.follows(found)) {
        found = tables::claimed(&backend.txn(tables::claim_for(owner, Some(before))).await?);
    }
    let own = owner.value();
    let Some(found) = found.filter(|found| *found != own) else { return Ok(()) };
    let (expected, found) = (tables::owner_text(&own), tables::owner_text(&found));
    Err(StoreError::ForeignOwner { place: backend.place(), expected, found })
}

/// The time shown to users, in ms since 1970; no decision depends on it.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn new_cluster() -> ClusterId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&new_id().to_le_bytes());
    id[8..].copy_from_slice(&new_id().to_le_bytes());
    ClusterId(id)
}

/// A new id. It must be unique, not secret: the keys of the standard hasher are random numbers of the system.
fn new_id() -> u64 {
    RandomState::new().hash_one((unix_ms(), std::process::id()))
}

fn refusal(error: StoreError) -> Refusal {
    let code = match &error {
        StoreError::Closed | StoreError::Contention { .. } | StoreError::Unavailable { .. } => {
            RefusalCode::Unavailable
        }
        StoreError::Deadline { .. } => RefusalCode::DeadlineExceeded,
        StoreError::DuplicateKey { .. } | StoreError::KeyLength { .. } | StoreError::LeaseTtl { .. } => {
            RefusalCode::InvalidArgument
        }
        StoreError::LeaseNotFound { .. } => RefusalCode::NotFound,
        StoreError::Io { is_full: true, .. }
        | StoreError::NoSpace { .. }
        | StoreError::OutOfSpace { .. }
        | StoreError::TooMany { .. }
        | StoreError::ValueLength { .. } => RefusalCode::ResourceExhausted,
        StoreError::ClusterMismatch { .. }
        | StoreError::Connect { .. }
        | StoreError::Corrupt { .. }
        | StoreError::ForeignOwner { .. }
        | StoreError::Format { .. }
        | StoreError::InUse { .. }
        | StoreError::Io { is_full: false, .. }
        | StoreError::LaterTables { .. } => RefusalCode::Internal,
    };
    Refusal::new(code, error.to_string())
}
