//! Messages between nodes, to and from their form on the wire.
//!
//! Everything from another node is checked here, field by field. A packet that does not say whose it is ends
//! its stream. A message that cannot be read does not: the link would repeat it for ever, and nothing of any
//! job would pass behind it. It is taken, its sender hears why (`unreadable.rs`), and the field is
//! named. Nothing here panics, whatever arrives.

use super::classes::{PATH_BYTES_MAX, cut, resources, task_class, wire_class, wire_resources};
use super::names::{bytes_of, object, reference, task, task_bytes, wire_ref};
use super::read_messages::{wire_reply, wire_request};
use super::unreadable::About;
use super::wire::{self, message::Kind, output, state, task_done};
use super::{PACKET_MESSAGES_MAX, drain_messages, quota_messages, read_messages};
use crate::message::{BadMessage, job_id, name, node_id, required, text};
use prost::Message as _;
use prost::bytes::Bytes;
use std::sync::Arc;
use tharsis_types::failure::{Executed, LINKS_READ_MAX, Origin, UserError};
use tharsis_types::limits::{
    DEPENDENCIES_MAX, INLINE_ARGS_BYTES_MAX, INLINE_BYTES_MAX, JOB_WEIGHT_DEFAULT, JOB_WEIGHT_MAX, MIB,
    RETURNS_MAX,
};
use tharsis_types::peer::{
    ActorSnapshot, DoneOutcome, DoneValue, Message, Packet, PushedDependency, PushedTask, RemoteState,
};
use tharsis_types::task::Output;
use tharsis_types::{
    Attempt, Dependency, Failure, FailureKind, LeaseId, NodeId, ObjectId, RefId, SmallBytes, TaskClass,
    TaskId,
};

/// A packet is split when its messages are longer than this together.
const SPLIT_BYTES: usize = 4 * MIB;

/// A packet as it arrives, with its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The sender.
    pub from: NodeId,
    /// The node it is meant for.
    pub to: NodeId,
    /// Its contents.
    pub packet: Packet,
    /// The fault of the first message that cannot be read.
    pub fault: Option<BadMessage>,
}

/// The first packet of a stream: who calls whom.
#[must_use]
pub fn hello(from: NodeId, to: NodeId) -> wire::Packet {
    wire::Packet { from_node: from.0, to_node: to.0, ..wire::Packet::default() }
}

/// A packet for the wire; in several parts if it is long.
#[must_use]
pub fn encode(from: NodeId, to: NodeId, packet: &Packet) -> Vec<wire::Packet> {
    let begin = |first| {
        let Packet { acknowledged, asks, lacks, .. } = *packet;
        Part {
            packet: wire::Packet { first, acknowledged, asks, lacks, ..hello(from, to) },
            classes: Vec::new(),
            bytes: 0,
        }
    };
    let mut done = Vec::new();
    let mut part = begin(packet.first);
    for (message, number) in packet.messages.iter().zip(packet.first..) {
        if SPLIT_BYTES < part.bytes {
            done.push(part.packet);
            part = begin(number);
        }
        part.add(message);
    }
    done.push(part.packet);
    done
}

/// A packet from the wire.
///
/// # Errors
/// [`BadMessage`] names the field that is not what it should be, of the packet itself.
pub fn decode(packet: wire::Packet) -> Result<Received, BadMessage> {
    let count = packet.messages.len();
    if PACKET_MESSAGES_MAX < count {
        return Err(BadMessage::too_many("messages", count, PACKET_MESSAGES_MAX, "messages"));
    }
    let (from, to) = (node_id("from_node", packet.from_node)?, node_id("to_node", packet.to_node)?);
    if packet.first.checked_add(count as u64).is_none() {
        return Err(BadMessage::invalid(
            "first",
            format!("{} leaves no numbers for {count} messages", packet.first),
        ));
    }
    let classes = packet.classes.into_iter().map(|c| task_class(c).map(Arc::new)).collect::<Vec<_>>();
    let mut fault = None;
    let read = |m: wire::Message| {
        let about = About::of(&m);
        message(m, &classes).unwrap_or_else(|bad| {
            let bad = bad.within("messages");
            let instead = about.instead(&bad);
            fault.get_or_insert(bad);
            instead
        })
    };
    let messages = packet.messages.into_iter().map(read).collect();
    let wire::Packet { first, acknowledged, asks, lacks, .. } = packet;
    let packet = Packet { first, acknowledged, asks, lacks, messages };
    Ok(Received { from, to, packet, fault })
}

/// A class of a packet, or why it cannot be read.
type ReadClass = Result<Arc<TaskClass>, BadMessage>;

/// A packet in the making.
struct Part {
    packet: wire::Packet,
    /// Classes in the packet's table, by the place in memory of their only copy here.
    classes: Vec<*const TaskClass>,
    bytes: usize,
}

impl Part {
    fn add(&mut self, message: &Message) {
        let kind = self.kind(message);
        let message = wire::Message { kind };
        self.bytes += message.encoded_len();
        self.packet.messages.push(message);
    }

    fn class(&mut self, class: &Arc<TaskClass>) -> u32 {
        let place = Arc::as_ptr(class);
        let known = self.classes.iter().position(|known| *known == place);
        let index = known.unwrap_or_else(|| {
            let class = wire_class(class);
            self.bytes += class.encoded_len();
            self.packet.classes.push(class);
            self.classes.push(place);
            self.classes.len() - 1
        });
        index as u32
    }

    fn push(&mut self, lease: LeaseId, task: &PushedTask) -> Kind {
        Kind::TaskPush(wire::TaskPush {
            lease: lease.0,
            task: task_bytes(&task.task),
            attempt: task.attempt,
            class: self.class(&task.class),
            payload: Bytes::copy_from_slice(&task.payload),
            dependencies: task.dependencies.iter().map(wire_dependency).collect(),
            nested: wire_refs(&task.nested),
            name: task.name.as_deref().unwrap_or_default().to_owned(),
        })
    }

    /// None for what is made where messages arrive, and never sent on.
    fn kind(&mut self, message: &Message) -> Option<Kind> {
        Some(match message {
            Message::ActorAttach { lease, actor } => wire_attach(*lease, actor),
            Message::ActorCheckpoint(offered) => wire_snapshot(offered),
            Message::ActorCheckpointed { object, refusal } => wire_answer(object, refusal.as_deref()),
            Message::ActorRestart { actor } => wire_restart(actor),
            Message::BorrowAdded { reference } => {
                Kind::BorrowAdded(wire::BorrowAdded { reference: Some(wire_ref(reference)) })
            }
            Message::BorrowReleased { object, count } => {
                Kind::BorrowReleased(wire::BorrowReleased { object: bytes_of(object), count: *count })
            }
            Message::CopiesUnreadable { object } => {
                Kind::CopiesUnreadable(wire::CopiesUnreadable { object: bytes_of(object) })
            }
            Message::Drain(message) => Kind::Drain(drain_messages::to_wire(message)),
            Message::HolderAdded { object } => {
                Kind::HolderAdded(wire::HolderAdded { object: bytes_of(object) })
            }
            Message::HolderRemoved { object } => {
                Kind::HolderRemoved(wire::HolderRemoved { object: bytes_of(object) })
            }
            Message::JobEnded { job } => Kind::JobEnded(wire::JobEnded { job: job.0 }),
            Message::LeaseDenied { lease, free } => {
                Kind::LeaseDenied(wire::LeaseDenied { lease: lease.0, free: Some(wire_resources(free)) })
            }
            Message::LeaseFailed { lease, failure } => {
                Kind::LeaseFailed(wire::LeaseFailed { lease: lease.0, failure: Some(wire_failure(failure)) })
            }
            Message::LeaseGranted { lease } => Kind::LeaseGranted(wire::LeaseGranted { lease: lease.0 }),
            Message::LeaseRecall { lease } => Kind::LeaseRecall(wire::LeaseRecall { lease: lease.0 }),
            Message::LeaseRaise { lease, urgency } => {
                Kind::LeaseRaise(wire::LeaseRaise { lease: lease.0, urgency: *urgency })
            }
            Message::LeaseRequest { lease, class, wait, urgency, weight, quota } => {
                let class = self.class(class);
                quota_messages::lease_request(*lease, class, (*wait, *urgency, *weight), quota.as_deref())
            }
            Message::LeaseReturned { lease } => Kind::LeaseReturned(wire::LeaseReturned { lease: lease.0 }),
            Message::LeaseRevoked { lease } => Kind::LeaseRevoked(wire::LeaseRevoked { lease: lease.0 }),
            Message::LoadReport { free, waiting } => {
                Kind::LoadReport(wire::LoadReport { free: Some(wire_resources(free)), waiting: *waiting })
            }
            Message::Quota(message) => quota_messages::to_wire(message),
            Message::ReadEnded { object } => Kind::ReadEnded(wire::ReadEnded { object: bytes_of(object) }),
            Message::ReadReply { object, turn } => wire_reply(object, *turn),
            Message::ReadRequest { object, sent, failed_at } => wire_request(object, *sent, *failed_at),
            Message::ObjectFree { object } => Kind::ObjectFree(wire::ObjectFree { object: bytes_of(object) }),
            Message::ObjectLocate { object } => {
                Kind::ObjectLocate(wire::ObjectLocate { object: bytes_of(object) })
            }
            Message::ObjectState { object, state, nested } => wire_object_state(object, state, nested),
            Message::TaskCancel { task, force, recursive } => wire_cancel(task, *force, *recursive),
            Message::TaskDone { lease, task, attempt, run_ns, outcome } => Kind::TaskDone(wire::TaskDone {
                lease: lease.0,
                task: task_bytes(task),
                attempt: *attempt,
                run_ns: *run_ns,
                outcome: Some(wire_outcome(outcome)),
            }),
            Message::TaskGiveBack { lease, tasks, started } => wire_give_back(*lease, tasks, *started),
            Message::TaskPush { lease, task } => self.push(*lease, task),
            Message::TaskStealBack { lease } => Kind::TaskStealBack(wire::TaskStealBack { lease: lease.0 }),
            Message::Unreadable { .. } => return None,
        })
    }
}

fn lease_request(m: wire::LeaseRequest, classes: &[ReadClass]) -> Result<Message, BadMessage> {
    Ok(Message::LeaseRequest {
        lease: LeaseId(m.lease),
        class: class_at("lease_request.class", m.class, classes)?,
        wait: m.wait,
        urgency: m.urgency,
        weight: if m.weight == 0 { JOB_WEIGHT_DEFAULT } else { m.weight.min(JOB_WEIGHT_MAX) },
        quota: m.quota.map(|quota| quota_messages::quota("lease_request.quota", quota)).transpose()?,
    })
}

fn message(message: wire::Message, classes: &[ReadClass]) -> Result<Message, BadMessage> {
    Ok(match required("kind", message.kind)? {
        Kind::ActorAttach(m) => attach(&m).map_err(|bad| bad.within("actor_attach"))?,
        Kind::ActorCheckpoint(m) => snapshot(m).map_err(|bad| bad.within("actor_checkpoint"))?,
        Kind::ActorCheckpointed(m) => answer(m).map_err(|bad| bad.within("actor_checkpointed"))?,
        Kind::ActorRestart(m) => Message::ActorRestart { actor: task("actor_restart.actor", &m.actor)? },
        Kind::BorrowAdded(m) => {
            Message::BorrowAdded { reference: reference("borrow_added.reference", m.reference)? }
        }
        Kind::BorrowReleased(m) => {
            Message::BorrowReleased { object: object("borrow_released.object", &m.object)?, count: m.count }
        }
        Kind::CopiesUnreadable(m) => {
            Message::CopiesUnreadable { object: object("copies_unreadable.object", &m.object)? }
        }
        Kind::Drain(m) => Message::Drain(drain_messages::from_wire(m).map_err(|bad| bad.within("drain"))?),
        Kind::HolderAdded(m) => Message::HolderAdded { object: object("holder_added.object", &m.object)? },
        Kind::HolderRemoved(m) => {
            Message::HolderRemoved { object: object("holder_removed.object", &m.object)? }
        }
        Kind::JobEnded(m) => Message::JobEnded { job: job_id("job_ended.job", m.job)? },
        Kind::LeaseDenied(m) => {
            Message::LeaseDenied { lease: LeaseId(m.lease), free: resources("lease_denied.free", m.free)? }
        }
        Kind::LeaseFailed(m) => Message::LeaseFailed {
            lease: LeaseId(m.lease),
            failure: Arc::new(failure("lease_failed.failure", m.failure)?),
        },
        Kind::LeaseGranted(m) => Message::LeaseGranted { lease: LeaseId(m.lease) },
        Kind::LeaseRecall(m) => Message::LeaseRecall { lease: LeaseId(m.lease) },
        Kind::LeaseRaise(m) => Message::LeaseRaise { lease: LeaseId(m.lease), urgency: m.urgency },
        Kind::LeaseRequest(m) => lease_request(m, classes)?,
        Kind::LeaseReturned(m) => Message::LeaseReturned { lease: LeaseId(m.lease) },
        Kind::LeaseRevoked(m) => Message::LeaseRevoked { lease: LeaseId(m.lease) },
        Kind::LoadReport(m) => {
            Message::LoadReport { free: resources("load_report.free", m.free)?, waiting: m.waiting }
        }
        Kind::ObjectFree(m) => Message::ObjectFree { object: object("object_free.object", &m.object)? },
        Kind::ObjectLocate(m) => Message::ObjectLocate { object: object("object_locate.object", &m.object)? },
        Kind::ObjectState(m) => Message::ObjectState {
            object: object("object_state.object", &m.object)?,
            state: remote_state("object_state.state", m.state)?,
            nested: references("object_state.nested", m.nested)?,
        },
        Kind::QuotaGranted(m) => Message::Quota(quota_messages::granted(m)?),
        Kind::QuotaRecalled(m) => Message::Quota(quota_messages::recalled(m)?),
        Kind::QuotaReturned(m) => Message::Quota(quota_messages::returned(m)?),
        Kind::QuotaWanted(m) => Message::Quota(quota_messages::wanted(m)?),
        Kind::ReadEnded(m) => Message::ReadEnded { object: object("read_ended.object", &m.object)? },
        Kind::ReadReply(m) => read_messages::reply(&m)?,
        Kind::ReadRequest(m) => read_messages::request(&m)?,
        Kind::TaskCancel(m) => cancel(&m).map_err(|bad| bad.within("task_cancel"))?,
        Kind::TaskDone(m) => done(m).map_err(|bad| bad.within("task_done"))?,
        Kind::TaskGiveBack(m) => give_back(m)?,
        Kind::TaskPush(m) => push(m, classes).map_err(|bad| bad.within("task_push"))?,
        Kind::TaskStealBack(m) => Message::TaskStealBack { lease: LeaseId(m.lease) },
    })
}

fn wire_cancel(task: &TaskId, force: bool, recursive: bool) -> Kind {
    Kind::TaskCancel(wire::TaskCancel { task: task_bytes(task), force, recursive })
}

fn cancel(m: &wire::TaskCancel) -> Result<Message, BadMessage> {
    Ok(Message::TaskCancel { task: task("task", &m.task)?, force: m.force, recursive: m.recursive })
}

fn wire_restart(actor: &TaskId) -> Kind {
    Kind::ActorRestart(wire::ActorRestart { actor: task_bytes(actor) })
}

fn attach(m: &wire::ActorAttach) -> Result<Message, BadMessage> {
    Ok(Message::ActorAttach { lease: LeaseId(m.lease), actor: task("actor", &m.actor)? })
}

fn snapshot(m: wire::ActorCheckpoint) -> Result<Message, BadMessage> {
    let snapshot = done_output(required("snapshot", m.snapshot)?).map_err(|bad| bad.within("snapshot"))?;
    let (actor, object) = (task("actor", &m.actor)?, object("object", &m.object)?);
    let offered = ActorSnapshot { lease: LeaseId(m.lease), actor, attempt: m.attempt, object, snapshot };
    Ok(Message::ActorCheckpoint(Box::new(offered)))
}

fn answer(m: wire::ActorCheckpointed) -> Result<Message, BadMessage> {
    let refusal = m.refusal.map(|m| failure("refusal", Some(m)).map(Arc::new)).transpose()?;
    Ok(Message::ActorCheckpointed { object: object("object", &m.object)?, refusal })
}

fn wire_give_back(lease: LeaseId, tasks: &[(TaskId, Attempt)], started: bool) -> Kind {
    let each = tasks.iter().map(|(task, attempt)| (task_bytes(task), *attempt));
    let tasks = each.map(|(task, attempt)| wire::TaskAttempt { task, attempt }).collect();
    Kind::TaskGiveBack(wire::TaskGiveBack { lease: lease.0, tasks, started })
}

fn give_back(m: wire::TaskGiveBack) -> Result<Message, BadMessage> {
    let each = m.tasks.into_iter().map(|t| Ok((task("task_give_back.tasks.task", &t.task)?, t.attempt)));
    let tasks = each.collect::<Result<_, BadMessage>>()?;
    Ok(Message::TaskGiveBack { lease: LeaseId(m.lease), tasks, started: m.started })
}

fn push(m: wire::TaskPush, classes: &[ReadClass]) -> Result<Message, BadMessage> {
    if DEPENDENCIES_MAX < m.dependencies.len() {
        return Err(BadMessage::too_many(
            "dependencies",
            m.dependencies.len(),
            DEPENDENCIES_MAX,
            "dependencies",
        ));
    }
    let dependencies = m.dependencies.into_iter().map(dependency).collect::<Result<Vec<_>, _>>();
    let task = PushedTask {
        task: task("task", &m.task)?,
        attempt: m.attempt,
        class: class_at("class", m.class, classes)?,
        payload: inline("payload", &m.payload, INLINE_ARGS_BYTES_MAX)?,
        dependencies: dependencies.map_err(|bad| bad.within("dependencies"))?,
        nested: references("nested", m.nested)?,
        name: if m.name.is_empty() { None } else { Some(name("name", m.name)?.into()) },
    };
    Ok(Message::TaskPush { lease: LeaseId(m.lease), task: Box::new(task) })
}

fn dependency(m: wire::PushedDependency) -> Result<PushedDependency, BadMessage> {
    let parameter = u16::try_from(m.parameter).map_err(|_| {
        BadMessage::invalid("parameter", format!("{} is more than {}", m.parameter, u16::MAX))
    })?;
    Ok(PushedDependency {
        dependency: Dependency { reference: reference("reference", m.reference)?, parameter },
        state: remote_state("state", m.state)?,
        nested: references("nested", m.nested)?,
    })
}

fn done(m: wire::TaskDone) -> Result<Message, BadMessage> {
    let outcome = match required("outcome", m.outcome)? {
        task_done::Outcome::Returned(outputs) => {
            if RETURNS_MAX as usize <= outputs.outputs.len().saturating_sub(1) {
                return Err(BadMessage::too_many(
                    "returned",
                    outputs.outputs.len(),
                    RETURNS_MAX as usize,
                    "outputs",
                ));
            }
            let outputs = outputs.outputs.into_iter().map(done_output).collect::<Result<_, _>>();
            DoneOutcome::Returned(outputs.map_err(|bad: BadMessage| bad.within("returned"))?)
        }
        task_done::Outcome::Failed(failed) => DoneOutcome::Failed {
            error_type: text("failed.error_type", failed.error_type, PATH_BYTES_MAX)?,
            failure: Arc::new(failure("failed.failure", failed.failure)?),
        },
    };
    let (lease, task) = (LeaseId(m.lease), task("task", &m.task)?);
    Ok(Message::TaskDone { lease, task, attempt: m.attempt, run_ns: m.run_ns, outcome: Box::new(outcome) })
}

fn done_output(m: wire::Output) -> Result<Output<DoneValue>, BadMessage> {
    let value = match required("value", m.value)? {
        output::Value::Inline(bytes) => DoneValue::Inline(inline("inline", &bytes, INLINE_BYTES_MAX)?),
        output::Value::StoredBytes(len) => DoneValue::Stored { len },
    };
    Ok(Output { value, nested: references("nested", m.nested)? })
}

fn remote_state(field: &str, state: Option<wire::State>) -> Result<RemoteState, BadMessage> {
    let kind = required(field, state)?.kind;
    let within = |bad: BadMessage| bad.within(field);
    Ok(match required("kind", kind).map_err(within)? {
        state::Kind::Failed(m) => RemoteState::Failed(Arc::new(failure("failed", Some(m)).map_err(within)?)),
        state::Kind::Freed(wire::Freed {}) => RemoteState::Freed,
        state::Kind::Inline(bytes) => {
            RemoteState::Inline(inline("inline", &bytes, INLINE_BYTES_MAX).map_err(within)?)
        }
        state::Kind::Stored(m) => {
            let holders = m.holders.into_iter().map(|holder| node_id("stored.holders", holder));
            let holders = holders.collect::<Result<_, _>>().map_err(within)?;
            RemoteState::Stored { len: m.len_bytes, holders }
        }
    })
}

fn failure(field: &str, failure: Option<wire::Failure>) -> Result<Failure, BadMessage> {
    let links = required(field, failure)?.links;
    if LINKS_READ_MAX < links.len() {
        return Err(BadMessage::too_many(field, links.len(), LINKS_READ_MAX, "failures"));
    }
    let links = links.into_iter().map(failure_link).collect::<Result<Vec<_>, _>>();
    let links = links.map_err(|bad| bad.within(field))?;
    required(&format!("{field}.links"), Failure::chain(links.into_iter()))
}

fn failure_link(m: wire::FailureLink) -> Result<Failure, BadMessage> {
    let known = FailureKind::ALL.into_iter().find(|kind| kind.to_string() == m.kind);
    // A kind that only a newer node has is still a failure, with its message.
    let kind = known.unwrap_or(FailureKind::Internal);
    let origin = m.origin.map(|o| {
        let task = if o.task.is_empty() { None } else { Some(task("origin.task", &o.task)?) };
        Ok(Box::new(Origin {
            task_name: o.task_name,
            task,
            call_site: o.call_site,
            node: (o.node != 0).then_some(NodeId(o.node)),
            pid: (o.pid != 0).then_some(o.pid),
            attempt: o.attempt,
        }))
    });
    let user = m.user.map(|user| UserError { type_name: user.type_name, payload: user.payload.into() });
    let mut failure = Failure::new(kind, m.message).with_left_out(m.left_out);
    failure.origin = origin.transpose()?;
    failure.log_tail = m.log_tail;
    failure.user = user;
    failure.executed = match wire::Executed::try_from(m.executed) {
        Ok(wire::Executed::Unspecified) => None,
        Ok(wire::Executed::No) => Some(Executed::No),
        Ok(wire::Executed::Yes) => Some(Executed::Yes),
        // A newer node may say something else; the failure still counts.
        Ok(wire::Executed::Unknown) | Err(_) => Some(Executed::Unknown),
    };
    Ok(failure)
}

fn class_at(field: &str, index: u32, classes: &[ReadClass]) -> Result<Arc<TaskClass>, BadMessage> {
    match classes.get(index as usize) {
        Some(Ok(class)) => Ok(class.clone()),
        Some(Err(bad)) => Err(bad.clone().within(field)),
        None => Err(BadMessage::invalid(field, format!("class {index} of {} in the packet", classes.len()))),
    }
}

fn references(field: &str, references: Vec<wire::Ref>) -> Result<Vec<RefId>, BadMessage> {
    references.into_iter().map(|r| reference(field, Some(r))).collect()
}

fn inline(field: &str, bytes: &Bytes, limit: usize) -> Result<SmallBytes, BadMessage> {
    if limit < bytes.len() {
        return Err(BadMessage::too_many(field, bytes.len(), limit, "bytes"));
    }
    Ok(SmallBytes::from(bytes.as_ref()))
}

fn wire_dependency(dependency: &PushedDependency) -> wire::PushedDependency {
    wire::PushedDependency {
        reference: Some(wire_ref(&dependency.dependency.reference)),
        parameter: u32::from(dependency.dependency.parameter),
        state: Some(wire_state(&dependency.state)),
        nested: wire_refs(&dependency.nested),
    }
}

fn wire_attach(lease: LeaseId, actor: &TaskId) -> Kind {
    Kind::ActorAttach(wire::ActorAttach { lease: lease.0, actor: task_bytes(actor) })
}

fn wire_snapshot(offered: &ActorSnapshot) -> Kind {
    Kind::ActorCheckpoint(wire::ActorCheckpoint {
        lease: offered.lease.0,
        actor: task_bytes(&offered.actor),
        attempt: offered.attempt,
        object: bytes_of(&offered.object),
        snapshot: Some(wire_output(&offered.snapshot)),
    })
}

fn wire_answer(object: &ObjectId, refusal: Option<&Failure>) -> Kind {
    let refusal = refusal.map(wire_failure);
    Kind::ActorCheckpointed(wire::ActorCheckpointed { object: bytes_of(object), refusal })
}

fn wire_object_state(object: &ObjectId, state: &RemoteState, nested: &[RefId]) -> Kind {
    let (object, state) = (bytes_of(object), Some(wire_state(state)));
    Kind::ObjectState(wire::ObjectState { object, state, nested: wire_refs(nested) })
}

fn wire_outcome(outcome: &DoneOutcome) -> task_done::Outcome {
    match outcome {
        DoneOutcome::Returned(outputs) => {
            let outputs = outputs.iter().map(wire_output).collect();
            task_done::Outcome::Returned(wire::Outputs { outputs })
        }
        DoneOutcome::Failed { error_type, failure } => task_done::Outcome::Failed(wire::TaskFailed {
            error_type: cut(error_type),
            failure: Some(wire_failure(failure)),
        }),
    }
}

fn wire_output(output: &Output<DoneValue>) -> wire::Output {
    let value = match &output.value {
        DoneValue::Inline(bytes) => output::Value::Inline(Bytes::copy_from_slice(bytes)),
        DoneValue::Stored { len } => output::Value::StoredBytes(*len),
    };
    wire::Output { value: Some(value), nested: wire_refs(&output.nested) }
}

fn wire_state(state: &RemoteState) -> wire::State {
    let kind = match state {
        RemoteState::Failed(failure) => state::Kind::Failed(wire_failure(failure)),
        RemoteState::Freed => state::Kind::Freed(wire::Freed {}),
        RemoteState::Inline(bytes) => state::Kind::Inline(Bytes::copy_from_slice(bytes)),
        RemoteState::Stored { len, holders } => {
            let holders = holders.iter().map(|node| node.0).collect();
            state::Kind::Stored(wire::Stored { len_bytes: *len, holders })
        }
    };
    wire::State { kind: Some(kind) }
}

fn wire_failure(failure: &Failure) -> wire::Failure {
    wire::Failure { links: failure.links().map(wire_failure_link).collect() }
}

fn wire_failure_link(failure: &Failure) -> wire::FailureLink {
    let origin = failure.origin.as_deref().map(|origin| wire::Origin {
        task_name: origin.task_name.clone(),
        task: origin.task.map_or_else(Bytes::new, |task| task_bytes(&task)),
        call_site: origin.call_site.clone(),
        node: origin.node.map_or(0, |node| node.0),
        pid: origin.pid.unwrap_or(0),
        attempt: origin.attempt,
    });
    let user = failure.user.as_ref().map(|user| wire::UserError {
        type_name: user.type_name.clone(),
        payload: Bytes::copy_from_slice(&user.payload),
    });
    let (kind, message, log_tail) =
        (failure.kind.to_string(), failure.message.clone(), failure.log_tail.clone());
    let executed = match failure.executed {
        None => wire::Executed::Unspecified,
        Some(Executed::No) => wire::Executed::No,
        Some(Executed::Unknown) => wire::Executed::Unknown,
        Some(Executed::Yes) => wire::Executed::Yes,
    };
    let (executed, left_out) = (executed.into(), failure.left_out());
    wire::FailureLink { kind, message, origin, log_tail, user, executed, left_out }
}

fn wire_refs(references: &[RefId]) -> Vec<wire::Ref> {
    references.iter().map(wire_ref).collect()
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
