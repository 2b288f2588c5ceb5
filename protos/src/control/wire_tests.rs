//! Tests of the conversion of control messages: what survives the wire, and what is refused by name.

use super::*;
use crate::generated::control as wire;
use crate::message::{BadMessage, Problem};
use proptest::prelude::*;
use prost::Message as _;
use tharsis_types::limits::RESOURCE_MEMORY_MAX;

fn resources() -> Resources {
    Resources { cpu: 20_000, gpu: 5_000, memory: 1 << 30, custom: BTreeMap::from([("tpu".to_owned(), 7)]) }
}

fn node(id: u64) -> NodeInfo {
    NodeInfo {
        id: NodeId(id),
        listen: "127.0.0.1:7000".to_owned(),
        host: "host".to_owned(),
        local_socket: "/run/node.sock".to_owned(),
        resources: resources(),
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
    }
}

fn job_request() -> JobRequest {
    JobRequest {
        name: "job".to_owned(),
        namespace: "lab".to_owned(),
        code_unit: Some(CodeUnitId([7; 32])),
        driver_node: NodeId(4),
        entrypoint: "/bin/app --flag".to_owned(),
        request: [9; 16],
        terms: Some(JobTerms { weight: 300, quota: Some("cpus=1.5,memory=2GB,licences=3".parse().unwrap()) }),
    }
}

fn job() -> JobInfo {
    JobInfo {
        id: JobId(3),
        name: "job".to_owned(),
        namespace: "lab".to_owned(),
        code_unit: None,
        driver_node: NodeId(4),
        entrypoint: "/bin/app".to_owned(),
        started_unix_ms: 12,
        end: Some(JobEnd { succeeded: true, message: "done".to_owned(), ended_unix_ms: 13 }),
        terms: job_request().terms,
    }
}

/// Encodes a message and decodes the bytes again.
fn sent<M: prost::Message + Default>(message: M) -> M {
    M::decode(&message.encode_to_vec()[..]).unwrap()
}

/// The field that a damaged node is refused for.
fn refused_node(damage: impl FnOnce(&mut wire::Node)) -> BadMessage {
    let mut message = wire::Node::from(node(1));
    damage(&mut message);
    NodeInfo::try_from(message).unwrap_err()
}

/// As [`refused_node`], for a job.
fn refused_job(damage: impl FnOnce(&mut wire::Job)) -> BadMessage {
    let mut message = wire::Job::from(job());
    damage(&mut message);
    JobInfo::try_from(message).unwrap_err()
}

/// As [`refused_node`], for the request of a new job.
fn refused_request(damage: impl FnOnce(&mut wire::RegisterJobRequest)) -> BadMessage {
    let mut message = wire::RegisterJobRequest::from(job_request());
    damage(&mut message);
    JobRequest::try_from(message).unwrap_err()
}

#[test]
fn a_node_survives_the_wire() {
    assert_eq!(NodeInfo::try_from(sent(wire::Node::from(node(1)))), Ok(node(1)));
}

#[test]
fn a_job_survives_the_wire_with_and_without_an_end() {
    assert_eq!(JobInfo::try_from(sent(wire::Job::from(job()))), Ok(job()));
    for terms in [Some(JobTerms { weight: 1, quota: None }), None] {
        let runs = JobInfo { end: None, code_unit: Some(CodeUnitId([1; 32])), terms, ..job() };
        assert_eq!(JobInfo::try_from(sent(wire::Job::from(runs.clone()))), Ok(runs));
    }
}

#[test]
fn the_request_of_a_job_survives_the_wire() {
    let request = sent(wire::RegisterJobRequest::from(job_request()));
    assert_eq!(JobRequest::try_from(request), Ok(job_request()));
}

#[test]
fn every_change_of_the_membership_survives_the_wire() {
    let changes = [
        NodeChange::Joined(node(1)),
        NodeChange::Left { node: NodeId(2), reason: LeftReason::Expired },
        NodeChange::Left { node: NodeId(2), reason: LeftReason::Unregistered("told to".to_owned()) },
        NodeChange::Listed(vec![node(1), node(2)]),
        NodeChange::Revoked(vec![MachineId(1), MachineId(u64::MAX)]),
        NodeChange::Stores(vec!["10.0.0.1:6379".to_owned()]),
    ];
    for (revision, change) in (1..).zip(changes) {
        let event = NodeEvent { revision, change };
        assert_eq!(NodeEvent::try_from(sent(wire::NodeEvent::from(event.clone()))), Ok(event));
    }
}

#[test]
fn an_event_without_a_change_is_refused() {
    let empty = wire::NodeEvent { revision: 1, event: None };
    assert_eq!(NodeEvent::try_from(empty), Err(BadMessage::missing("event")));
}

#[test]
fn an_event_names_the_field_of_the_node_inside_it() {
    let joined = wire::Node { node_id: 0, ..node(1).into() };
    let event = wire::NodeEvent { revision: 1, event: Some(wire::node_event::Event::Joined(joined)) };
    assert_eq!(NodeEvent::try_from(event), Err(BadMessage::missing("joined.node_id")));
    let listed = wire::NodeList { members: vec![wire::Node { node_id: 0, ..node(1).into() }] };
    let event = wire::NodeEvent { revision: 1, event: Some(wire::node_event::Event::Listed(listed)) };
    assert_eq!(NodeEvent::try_from(event), Err(BadMessage::missing("members.node_id")));
}

#[test]
fn a_node_that_left_has_an_id_and_a_reason() {
    let left = |left| wire::NodeEvent { revision: 1, event: Some(wire::node_event::Event::Left(left)) };
    let nobody =
        wire::NodeLeft { node_id: 0, reason: Some(wire::node_left::Reason::Unregistered(String::new())) };
    assert_eq!(NodeEvent::try_from(left(nobody)), Err(BadMessage::missing("left.node_id")));
    let unexplained = wire::NodeLeft { node_id: 1, reason: None };
    assert_eq!(NodeEvent::try_from(left(unexplained)), Err(BadMessage::missing("left.reason")));
}

#[test]
fn a_node_without_an_id_is_refused() {
    assert_eq!(refused_node(|node| node.node_id = 0), BadMessage::missing("node_id"));
}

#[test]
fn a_node_without_resources_is_refused() {
    assert_eq!(refused_node(|node| node.resources = None), BadMessage::missing("resources"));
}

#[test]
fn a_node_has_plain_names_and_labels() {
    assert_eq!(refused_node(|node| node.host_id = "a\0b".to_owned()).field, "host_id");
    assert_eq!(refused_node(|node| node.local_socket = "a\nb".to_owned()).field, "local_socket");
    let bad = refused_node(|node| drop(node.labels.insert("a\tb".to_owned(), String::new())));
    assert_eq!(bad.field, "labels");
    let bad = refused_node(|node| drop(node.labels.insert("a".to_owned(), "\x1b[2J".to_owned())));
    assert_eq!(bad.field, "labels");
}

#[test]
fn the_labels_of_a_node_are_counted() {
    let labels = (0..=LABELS_MAX).map(|n| (format!("l{n}"), String::new()));
    let bad = refused_node(|node| node.labels = labels.collect());
    assert_eq!(bad, BadMessage::too_many("labels", LABELS_MAX + 1, LABELS_MAX, "labels"));
}

#[test]
fn a_node_is_refused_for_its_size_before_its_fields_are_read() {
    let bad = refused_node(|node| node.host_id = "x".repeat(NODE_BYTES_MAX));
    assert!(matches!(bad.problem, Problem::TooMany { limit: NODE_BYTES_MAX, .. }), "{bad}");
    assert_eq!(bad.field, "node");
}

#[test]
fn a_list_of_nodes_is_counted() {
    let members = vec![wire::Node::from(node(1)); NODES_MAX + 1];
    assert_eq!(wire_nodes(members), Err(BadMessage::too_many("members", NODES_MAX + 1, NODES_MAX, "nodes")));
}

fn wire_nodes(members: Vec<wire::Node>) -> Result<Vec<NodeInfo>, BadMessage> {
    super::wire::nodes(members)
}

#[test]
fn a_job_without_an_id_or_a_driver_is_refused() {
    assert_eq!(refused_job(|job| job.job_id = 0), BadMessage::missing("job_id"));
    assert_eq!(refused_job(|job| job.driver_node = 0), BadMessage::missing("driver_node"));
}

#[test]
fn the_code_unit_of_a_job_has_its_length_or_is_none() {
    let bad = refused_job(|job| job.code_unit = Bytes::from_static(&[1; 31]));
    assert_eq!(bad.problem, Problem::Length { found_bytes: 31, wanted_bytes: 32 });
}

#[test]
fn the_text_of_a_job_is_bounded() {
    let bad = refused_job(|job| job.entrypoint = "x".repeat(TEXT_BYTES_MAX + 1));
    assert_eq!(bad, BadMessage::too_many("entrypoint", TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX, "bytes"));
    let at_limit = wire::Job { entrypoint: "x".repeat(TEXT_BYTES_MAX), ..job().into() };
    assert!(JobInfo::try_from(at_limit).is_ok());
}

#[test]
fn the_request_of_a_job_has_an_id_of_its_own() {
    let bad = refused_request(|request| request.request_id = Bytes::new());
    assert_eq!(bad.problem, Problem::Length { found_bytes: 0, wanted_bytes: 16 });
}

#[test]
fn the_request_of_a_job_has_plain_names() {
    assert_eq!(refused_request(|request| request.name = "a\nb".to_owned()).field, "name");
    assert_eq!(refused_request(|request| request.namespace = "\x7f".to_owned()).field, "namespace");
}

#[test]
fn the_request_of_a_job_has_a_quota_that_can_be_read() {
    let refused = |quota: String| refused_request(|request| request.quota = quota);
    assert_eq!(refused("cpus=many".to_owned()).field, "quota");
    let long = refused("x".repeat(TEXT_BYTES_MAX + 1));
    assert_eq!(long, BadMessage::too_many("quota", TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX, "bytes"));
}

#[test]
fn the_request_of_a_job_names_the_node_of_its_driver() {
    assert_eq!(refused_request(|request| request.driver_node = 0), BadMessage::missing("driver_node"));
}

#[test]
fn keys_are_there_and_short() {
    let key = |bytes: usize| super::wire::key("lab".to_owned(), Bytes::from(vec![1; bytes]));
    assert_eq!(key(0), Err(BadMessage::missing("key")));
    assert!(key(1).is_ok() && key(KEY_BYTES_MAX).is_ok());
    assert_eq!(
        key(KEY_BYTES_MAX + 1),
        Err(BadMessage::too_many("key", KEY_BYTES_MAX + 1, KEY_BYTES_MAX, "bytes"))
    );
}

#[test]
fn namespaces_of_users_are_not_ours_and_have_no_slash() {
    let namespace = |name: &str| super::wire::namespace(name.to_owned());
    assert_eq!(namespace("lab"), Ok("lab".to_owned()));
    assert_eq!(namespace(""), Err(BadMessage::missing("namespace")));
    for bad in ["a/b", "tharsis.jobs", "a\nb"] {
        assert_eq!(namespace(bad).unwrap_err().field, "namespace", "{bad:?}");
    }
}

#[test]
fn values_are_bounded() {
    let value = |bytes| super::wire::bounded("value", Bytes::from(vec![0; bytes]), VALUE_BYTES_MAX);
    assert_eq!(value(VALUE_BYTES_MAX).map(|value| value.len()), Ok(VALUE_BYTES_MAX));
    assert!(value(VALUE_BYTES_MAX + 1).is_err());
}

#[test]
fn one_major_version_speaks_with_itself() {
    let of = |major, minor| ProtocolVersion { major, minor };
    assert!(of(1, 0).speaks_with(&of(1, 9)));
    assert!(!of(1, 0).speaks_with(&of(2, 0)));
    let version = sent(wire::ProtocolVersion::from(of(3, 4)));
    assert_eq!(ProtocolVersion::from(version).to_string(), "3.4");
}

#[test]
fn a_cluster_shows_its_id_in_hexadecimal_digits() {
    assert_eq!(ClusterId([0xA5; 16]).to_string(), "a5".repeat(16));
}

proptest! {
    #[test]
    fn amounts_survive_the_wire(cpu in 0..1_000_000_u64, gpu in 0..1_000_000_u64, memory in 0..=RESOURCE_MEMORY_MAX) {
        let resources = Resources { cpu, gpu, memory, ..Resources::default() };
        let node = NodeInfo { resources, ..node(1) };
        prop_assert_eq!(NodeInfo::try_from(sent(wire::Node::from(node.clone()))), Ok(node));
    }

    #[test]
    fn damaged_events_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at: usize) {
        let mut event = wire::NodeEvent::from(NodeEvent {
            revision: 1,
            change: NodeChange::Listed(vec![node(1)]),
        })
        .encode_to_vec();
        let at = at % event.len();
        event.splice(at.., bytes);
        // A message that is still one is converted, or refused with the name of a field.
        if let Ok(message) = wire::NodeEvent::decode(&event[..])
            && let Err(bad) = NodeEvent::try_from(message)
        {
            prop_assert!(!bad.field.is_empty());
        }
    }
}
