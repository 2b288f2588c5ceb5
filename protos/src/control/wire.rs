//! Conversions between the values of this module and the generated messages. Incoming ones are checked.

use super::*;
use crate::generated::control as wire;
use crate::message::{self, BadMessage};
use crate::revoked::REVOKED_MAX;
use crate::submission;
use tharsis_types::BadQuota;
use tharsis_types::limits::{JOB_WEIGHT_MAX, QUOTA_BYTES_MAX};

impl From<ProtocolVersion> for wire::ProtocolVersion {
    fn from(version: ProtocolVersion) -> Self {
        Self { major: version.major, minor: version.minor }
    }
}

impl From<wire::ProtocolVersion> for ProtocolVersion {
    fn from(version: wire::ProtocolVersion) -> Self {
        Self { major: version.major, minor: version.minor }
    }
}

impl From<TablesState> for wire::TablesState {
    fn from(state: TablesState) -> Self {
        let (incarnation, incarnation_id) = state.incarnation;
        Self { revision: state.revision, incarnation, incarnation_id }
    }
}

impl From<wire::TablesState> for TablesState {
    fn from(state: wire::TablesState) -> Self {
        Self { incarnation: (state.incarnation, state.incarnation_id), revision: state.revision }
    }
}

impl From<Resources> for wire::Resources {
    fn from(set: Resources) -> Self {
        Self { cpu_units: set.cpu, gpu_units: set.gpu, memory_bytes: set.memory, custom_units: set.custom }
    }
}

impl From<NodeInfo> for wire::Node {
    fn from(node: NodeInfo) -> Self {
        Self {
            node_id: node.id.0,
            listen_address: node.listen,
            host_id: node.host,
            local_socket: node.local_socket,
            resources: Some(node.resources.into()),
            labels: node.labels,
        }
    }
}

impl TryFrom<wire::Node> for NodeInfo {
    type Error = BadMessage;

    fn try_from(node: wire::Node) -> Result<Self, BadMessage> {
        let size_bytes = prost::Message::encoded_len(&node);
        if size_bytes > NODE_BYTES_MAX {
            return Err(BadMessage::too_many("node", size_bytes, NODE_BYTES_MAX, "bytes"));
        }
        Ok(Self {
            id: message::node_id("node_id", node.node_id)?,
            listen: message::node_address("listen_address", node.listen_address)?,
            host: message::name("host_id", node.host_id)?,
            local_socket: message::name("local_socket", node.local_socket)?,
            resources: resources("resources", node.resources)?,
            labels: labels(node.labels)?,
        })
    }
}

impl From<NodeEvent> for wire::NodeEvent {
    fn from(event: NodeEvent) -> Self {
        use wire::node_event::Event;
        let change = match event.change {
            NodeChange::Joined(node) => Event::Joined(node.into()),
            NodeChange::Left { node, reason } => Event::Left(left(node, reason)),
            NodeChange::Listed(nodes) => Event::Listed(wire::NodeList { members: to_wire(nodes) }),
            NodeChange::Revoked(machines) => {
                let machines = machines.into_iter().map(|machine| machine.0).collect();
                Event::Revoked(wire::MachineList { machines })
            }
            NodeChange::Stores(addresses) => Event::Stores(wire::StoreList { addresses }),
        };
        Self { revision: event.revision, event: Some(change) }
    }
}

impl TryFrom<wire::NodeEvent> for NodeEvent {
    type Error = BadMessage;

    fn try_from(event: wire::NodeEvent) -> Result<Self, BadMessage> {
        use wire::node_event::Event;
        let change = match message::required("event", event.event)? {
            Event::Joined(node) => {
                NodeChange::Joined(node.try_into().map_err(|e: BadMessage| e.within("joined"))?)
            }
            Event::Left(left) => NodeChange::Left {
                node: message::node_id("left.node_id", left.node_id)?,
                reason: match message::required("left.reason", left.reason)? {
                    wire::node_left::Reason::Expired(_) => LeftReason::Expired,
                    wire::node_left::Reason::Unregistered(reason) => LeftReason::Unregistered(reason),
                },
            },
            Event::Listed(list) => NodeChange::Listed(nodes(list.members)?),
            Event::Revoked(list) => NodeChange::Revoked(machines("revoked", list.machines)?),
            Event::Stores(list) => NodeChange::Stores(stores(list.addresses)?),
        };
        Ok(Self { revision: event.revision, change })
    }
}

impl From<JobInfo> for wire::Job {
    fn from(job: JobInfo) -> Self {
        Self {
            job_id: job.id.0,
            name: job.name,
            namespace: job.namespace,
            code_unit: hash(job.code_unit),
            driver_node: job.driver_node.0,
            entrypoint: job.entrypoint,
            started_unix_ms: job.started_unix_ms,
            end: job.end.map(|end| wire::JobEnd {
                succeeded: end.succeeded,
                message: end.message,
                ended_unix_ms: end.ended_unix_ms,
            }),
            weight: job.terms.as_ref().map_or(0, |terms| terms.weight),
            quota: quota_text(job.terms.as_ref()),
        }
    }
}

impl TryFrom<wire::Job> for JobInfo {
    type Error = BadMessage;

    fn try_from(job: wire::Job) -> Result<Self, BadMessage> {
        Ok(Self {
            id: message::job_id("job_id", job.job_id)?,
            name: message::name("name", job.name)?,
            namespace: message::name("namespace", job.namespace)?,
            code_unit: message::code_unit("code_unit", &job.code_unit)?,
            driver_node: message::node_id("driver_node", job.driver_node)?,
            entrypoint: message::text("entrypoint", job.entrypoint, TEXT_BYTES_MAX)?,
            started_unix_ms: job.started_unix_ms,
            end: job.end.map(|end| JobEnd {
                succeeded: end.succeeded,
                message: end.message,
                ended_unix_ms: end.ended_unix_ms,
            }),
            terms: terms(job.weight, job.quota)?,
        })
    }
}

impl From<JobRequest> for wire::RegisterJobRequest {
    fn from(job: JobRequest) -> Self {
        Self {
            name: job.name,
            namespace: job.namespace,
            code_unit: hash(job.code_unit),
            driver_node: job.driver_node.0,
            entrypoint: job.entrypoint,
            protocol: Some(PROTOCOL.into()),
            request_id: Bytes::copy_from_slice(&job.request),
            weight: job.terms.as_ref().map_or(0, |terms| terms.weight),
            quota: quota_text(job.terms.as_ref()),
        }
    }
}

impl TryFrom<wire::RegisterJobRequest> for JobRequest {
    type Error = BadMessage;

    fn try_from(job: wire::RegisterJobRequest) -> Result<Self, BadMessage> {
        Ok(Self {
            name: message::name("name", job.name)?,
            namespace: message::name("namespace", job.namespace)?,
            code_unit: message::code_unit("code_unit", &job.code_unit)?,
            driver_node: message::node_id("driver_node", job.driver_node)?,
            entrypoint: message::text("entrypoint", job.entrypoint, TEXT_BYTES_MAX)?,
            request: message::fixed("request_id", &job.request_id)?,
            terms: terms(job.weight, job.quota)?,
        })
    }
}

fn quota_text(terms: Option<&JobTerms>) -> String {
    let quota = terms.and_then(|terms| terms.quota.as_ref());
    quota.map(ToString::to_string).unwrap_or_default()
}

/// The terms of a job; none without a weight.
fn terms(weight: u32, quota: String) -> Result<Option<JobTerms>, BadMessage> {
    let text = message::text("quota", quota, QUOTA_BYTES_MAX)?;
    let bad = |bad: BadQuota| BadMessage::invalid("quota", bad);
    let quota = if text.is_empty() { None } else { Some(text.parse().map_err(bad)?) };
    Ok((0 < weight).then_some(JobTerms { weight: weight.min(JOB_WEIGHT_MAX), quota }))
}

pub(super) fn nodes(members: Vec<wire::Node>) -> Result<Vec<NodeInfo>, BadMessage> {
    if members.len() > NODES_MAX {
        return Err(BadMessage::too_many("members", members.len(), NODES_MAX, "nodes"));
    }
    members.into_iter().map(NodeInfo::try_from).collect::<Result<_, _>>().map_err(|bad| bad.within("members"))
}

/// Addresses of control stores.
pub(super) fn stores(stores: Vec<String>) -> Result<Vec<String>, BadMessage> {
    if stores.len() > STORES_MAX {
        return Err(BadMessage::too_many("stores", stores.len(), STORES_MAX, "addresses"));
    }
    stores.into_iter().map(|store| message::address("stores", store)).collect()
}

/// Machines that were shut out.
pub(super) fn machines(field: &str, machines: Vec<u64>) -> Result<Vec<MachineId>, BadMessage> {
    if machines.len() > REVOKED_MAX {
        return Err(BadMessage::too_many(field, machines.len(), REVOKED_MAX, "machines"));
    }
    Ok(machines.into_iter().map(MachineId).collect())
}

pub(super) fn to_wire<A, B: From<A>>(values: Vec<A>) -> Vec<B> {
    values.into_iter().map(B::from).collect()
}

pub(super) fn hash(code_unit: Option<CodeUnitId>) -> Bytes {
    code_unit.map(|unit| Bytes::copy_from_slice(&unit.0)).unwrap_or_default()
}

/// A namespace and a key of the key-value table.
pub(super) fn key(namespace: String, key: Bytes) -> Result<(String, Bytes), BadMessage> {
    if key.is_empty() {
        return Err(BadMessage::missing("key"));
    }
    Ok((self::namespace(namespace)?, bounded("key", key, KEY_BYTES_MAX)?))
}

pub(super) fn namespace(namespace: String) -> Result<String, BadMessage> {
    if namespace.is_empty() {
        return Err(BadMessage::missing("namespace"));
    }
    if namespace.contains('/') {
        return Err(BadMessage::invalid("namespace", "has a slash"));
    }
    let is_known = [submission::NAMESPACE, ACTORS_NAMESPACE, GROUPS_NAMESPACE].contains(&namespace.as_str());
    if namespace.starts_with(RESERVED_NAMESPACES) && !is_known {
        return Err(BadMessage::invalid(
            "namespace",
            format!("begins with {RESERVED_NAMESPACES}, which is reserved"),
        ));
    }
    message::name("namespace", namespace)
}

pub(super) fn bounded(field: &str, bytes: Bytes, limit: usize) -> Result<Bytes, BadMessage> {
    if bytes.len() <= limit {
        Ok(bytes)
    } else {
        Err(BadMessage::too_many(field, bytes.len(), limit, "bytes"))
    }
}

fn left(node: NodeId, reason: LeftReason) -> wire::NodeLeft {
    let reason = match reason {
        LeftReason::Expired => wire::node_left::Reason::Expired(wire::Expired {}),
        LeftReason::Unregistered(reason) => wire::node_left::Reason::Unregistered(reason),
    };
    wire::NodeLeft { node_id: node.0, reason: Some(reason) }
}

fn resources(field: &str, set: Option<wire::Resources>) -> Result<Resources, BadMessage> {
    let set = message::required(field, set)?;
    message::amounts(field, set.cpu_units, set.gpu_units, set.memory_bytes, set.custom_units)
}

fn labels(labels: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, BadMessage> {
    if labels.len() > LABELS_MAX {
        return Err(BadMessage::too_many("labels", labels.len(), LABELS_MAX, "labels"));
    }
    labels
        .into_iter()
        .map(|(name, value)| Ok((message::name("labels", name)?, message::name("labels", value)?)))
        .collect()
}
