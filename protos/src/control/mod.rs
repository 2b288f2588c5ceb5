//! The control store as seen over the wire: its values, the trait that a server implements, the stub that
//! calls it.
//!
//! Nothing here is sent per task or per object. Calls are safe to send twice: registering a node again
//! answers the same, a job is named by a request id, puts and deletes settle on the same state.

mod call;
mod service;
mod wire;
#[cfg(test)]
mod wire_tests;

pub use call::{NodeEvents, Stub};
pub use service::{EventStream, Service, routes};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
pub use tharsis_identity::MachineId;
use tharsis_types::limits::{KIB, MESSAGE_BYTES_MAX, MIB};
use tharsis_types::{CodeUnitId, JobId, JobTerms, NodeId, Resources};

/// The version of the protocol that this build speaks.
pub const PROTOCOL: ProtocolVersion = ProtocolVersion { major: 2, minor: 1 };

/// Nodes of one cluster.
pub const NODES_MAX: usize = 1024;
/// Nodes of one machine of a cluster with certificates.
pub const NODES_PER_MACHINE_MAX: usize = 64;
/// Of the nodes of such a cluster, those without resources: drivers'.
pub const DRIVERS_MAX: usize = NODES_MAX / 2;
/// Control stores of one cluster.
pub const STORES_MAX: usize = 16;
/// Bytes of all that one node says of itself.
pub const NODE_BYTES_MAX: usize = 12 * KIB;
const _: () =
    assert!(NODES_MAX * NODE_BYTES_MAX < MESSAGE_BYTES_MAX, "a list of all nodes fits into one message");
/// Labels of one node.
pub const LABELS_MAX: usize = 64;
/// Bytes of a reason, an entry point, a quota or the last words of a job.
pub const TEXT_BYTES_MAX: usize = 4 * KIB;
/// Entries of one page of a list.
pub const PAGE_ENTRIES_MAX: usize = 1000;
const _: () = assert!(
    PAGE_ENTRIES_MAX * 4 * TEXT_BYTES_MAX < MESSAGE_BYTES_MAX,
    "a page of jobs fits into one message"
);
/// Bytes of a key in the key-value table.
pub const KEY_BYTES_MAX: usize = KIB;
/// Bytes of a value in the key-value table: what etcd takes in one request, with room for the rest of it.
pub const VALUE_BYTES_MAX: usize = MIB;

/// Namespaces of the key-value table that begin so are not for users, except for
/// [`submission::NAMESPACE`](crate::submission::NAMESPACE), which nodes write.
pub const RESERVED_NAMESPACES: &str = "tharsis.";

/// A version of the protocol: another major is refused, another minor is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolVersion {
    /// Changes when old and new cannot talk.
    pub major: u32,
    /// Changes when something was added.
    pub minor: u32,
}

/// Identity of a cluster: made once, when its first control store starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub [u8; 16]);

/// Identity and release of a control store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The cluster.
    pub cluster: ClusterId,
    /// The protocol of the server.
    pub protocol: ProtocolVersion,
    /// Release of the server, for people.
    pub version: String,
    /// Addresses of all control stores of the cluster.
    pub stores: Vec<String>,
    /// Machines that were shut out.
    pub revoked: Vec<MachineId>,
}

/// Description of a node that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The node.
    pub id: NodeId,
    /// `host:port` of its one port.
    pub listen: String,
    /// Boot id of its machine: nodes of one host share it.
    pub host: String,
    /// Path of the socket for drivers and workers on that machine.
    pub local_socket: String,
    /// Its total resources.
    pub resources: Resources,
    /// Labels that placement may ask for by name.
    pub labels: BTreeMap<String, String>,
}

/// All members as of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The members, by id.
    pub nodes: Vec<NodeInfo>,
    /// Revision that the list shows; a watch goes on from the one after it.
    pub revision: u64,
}

/// The answer to a node that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The node must be heard of more often than this.
    pub lease_ttl: Duration,
    /// The server's clock less the node's, in ms; only to be shown.
    pub clock_skew_ms: i64,
    /// Addresses of all control stores of the cluster.
    pub stores: Vec<String>,
}

/// The answer to a node that renewed its lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Whether the node is a member. If not, the others have been told, and it must not act on what it held.
    pub known: bool,
    /// Addresses of all control stores of the cluster.
    pub stores: Vec<String>,
    /// State of the tables, or of a moment ago; none from a control store before 2.1.
    pub tables: Option<TablesState>,
    /// Whether the tables were restored to an earlier state than the one that the node had seen, or lost.
    pub is_restored: bool,
}

/// A state that the tables were in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablesState {
    /// Number and id of the last incarnation of the tables that had begun.
    pub incarnation: (u64, u64),
    /// The revision.
    pub revision: u64,
}

/// One change of the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The revision after which this holds.
    pub revision: u64,
    /// The change.
    pub change: NodeChange,
}

/// Change of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// A node joined.
    Joined(NodeInfo),
    /// A node is gone.
    Left {
        /// Which.
        node: NodeId,
        /// Why.
        reason: LeftReason,
    },
    /// All members: whoever is not among them has left.
    Listed(Vec<NodeInfo>),
    /// All machines that were shut out.
    Revoked(Vec<MachineId>),
    /// Addresses of all control stores.
    Stores(Vec<String>),
}

/// Why a node is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftReason {
    /// It was not heard of for the length of its lease.
    Expired,
    /// It took its leave and said why.
    Unregistered(String),
}

/// Description of a job by its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// Name of the job; may be empty.
    pub name: String,
    /// Namespace of the names in it.
    pub namespace: String,
    /// The program that nodes fetch and start as worker; none for the stock one.
    pub code_unit: Option<CodeUnitId>,
    /// The node that the driver is connected to.
    pub driver_node: NodeId,
    /// The command line, for people.
    pub entrypoint: String,
    /// Random: the same request sent twice makes one job.
    pub request: [u8; 16],
    /// Its share and its bounds; none from a node of a release that does not say them.
    pub terms: Option<JobTerms>,
}

/// A job that runs or ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInfo {
    /// The job.
    pub id: JobId,
    /// Its name; may be empty.
    pub name: String,
    /// Namespace of the names in it.
    pub namespace: String,
    /// The program, if it is not the stock one.
    pub code_unit: Option<CodeUnitId>,
    /// The node that its driver is connected to.
    pub driver_node: NodeId,
    /// The command line, for people.
    pub entrypoint: String,
    /// When it was registered, by the server's clock.
    pub started_unix_ms: u64,
    /// End of the job; none while it runs.
    pub end: Option<JobEnd>,
    /// As in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<JobTerms>,
}

/// End of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Whether its driver was content.
    pub succeeded: bool,
    /// Its last words.
    pub message: String,
    /// When, by the server's clock.
    pub ended_unix_ms: u64,
}

/// Some jobs, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobInfo>,
    /// Whether there are more after the last one.
    pub more: bool,
}

/// The program of a job that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgram {
    /// Its code unit; `None` until the driver's node has reported it.
    pub unit: Option<CodeUnitId>,
    /// The node of the job's driver. The job ends when this node leaves.
    pub driver_node: NodeId,
}

/// Places where a code unit can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeUnit {
    /// Its length.
    pub size_bytes: u64,
    /// Members that hold it, by id; never empty.
    pub holders: Vec<NodeId>,
}

/// Namespace of the values that are names of actors.
pub const ACTORS_NAMESPACE: &str = "tharsis.actors";
/// Namespace of the values that are names of placement groups.
pub const GROUPS_NAMESPACE: &str = "tharsis.groups";

/// Condition of a write to the table of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutIf {
    /// None.
    Always,
    /// The key has no value.
    Absent,
    /// The key has this value.
    Value(Bytes),
}

/// Some keys, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<Bytes>,
    /// Whether there are more after the last one.
    pub more: bool,
}

impl ProtocolVersion {
    /// Whether builds with this version and `other` can talk.
    #[must_use]
    pub fn speaks_with(&self, other: &Self) -> bool {
        self.major == other.major
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({self})")
    }
}

impl fmt::Display for LeftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => write!(f, "its lease ran out"),
            Self::Unregistered(reason) => write!(f, "{reason}"),
        }
    }
}
