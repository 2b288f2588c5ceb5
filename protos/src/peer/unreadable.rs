//! Stand-ins for messages that cannot be read.
//!
//! Somebody may wait for it: its sender for a lease, the end of a task or the state of an object; this node
//! for the answer that it is. What names the thing is read apart from the rest, so that whoever waits hears a
//! failure.

use super::names::{object, task};
use super::wire::{self, message::Kind};
use crate::message::BadMessage;
use std::sync::Arc;
use tharsis_types::peer::{DoneOutcome, Message, RemoteState, Turn};
use tharsis_types::{Attempt, Failure, FailureKind, LeaseId, ObjectId, Resources, TaskId};

/// The thing that a message is about, of what can be read without the rest.
#[derive(Clone, Copy)]
pub(super) enum About {
    /// An attachment that the sender asks for.
    Attach(LeaseId),
    /// A snapshot that the sender's actor waits with.
    Checkpoint(ObjectId),
    /// The answer to one.
    Checkpointed(ObjectId),
    /// The end of a task.
    Done(LeaseId, TaskId, Attempt),
    /// A lease that the sender asks for.
    Lease(LeaseId),
    /// A lease that the sender has no room for.
    LeaseDenied(LeaseId),
    /// A lease for which the sender has no worker.
    LeaseFailed(LeaseId),
    /// An object that the sender asks about.
    Locate(ObjectId),
    /// Nobody waits, or it cannot be said for what.
    Nothing,
    /// A task that the receiver is to run.
    Push(LeaseId, TaskId, Attempt),
    /// A large object that the sender wants to read.
    Read(ObjectId),
    /// The answer to that.
    ReadReply(ObjectId),
    /// The state of an object.
    State(ObjectId),
}

impl About {
    /// The thing that a message is about.
    pub(super) fn of(message: &wire::Message) -> Self {
        let about =
            |bytes: &[u8], of: fn(ObjectId) -> Self| object("object", bytes).map_or(Self::Nothing, of);
        let run = |lease, id: &[u8], attempt, of: fn(LeaseId, TaskId, Attempt) -> Self| {
            task("task", id).map_or(Self::Nothing, |task| of(LeaseId(lease), task, attempt))
        };
        match &message.kind {
            Some(Kind::ActorAttach(m)) => Self::Attach(LeaseId(m.lease)),
            Some(Kind::ActorCheckpoint(m)) => about(&m.object, Self::Checkpoint),
            Some(Kind::ActorCheckpointed(m)) => about(&m.object, Self::Checkpointed),
            Some(Kind::LeaseDenied(m)) => Self::LeaseDenied(LeaseId(m.lease)),
            Some(Kind::LeaseFailed(m)) => Self::LeaseFailed(LeaseId(m.lease)),
            Some(Kind::LeaseRequest(m)) => Self::Lease(LeaseId(m.lease)),
            Some(Kind::ObjectLocate(m)) => about(&m.object, Self::Locate),
            Some(Kind::ObjectState(m)) => about(&m.object, Self::State),
            Some(Kind::ReadReply(m)) => about(&m.object, Self::ReadReply),
            Some(Kind::ReadRequest(m)) => about(&m.object, Self::Read),
            Some(Kind::TaskDone(m)) => run(m.lease, &m.task, m.attempt, Self::Done),
            Some(Kind::TaskPush(m)) => run(m.lease, &m.task, m.attempt, Self::Push),
            _ => Self::Nothing,
        }
    }

    /// The stand-in for the message, which has this fault.
    pub(super) fn instead(self, bad: &BadMessage) -> Message {
        let failure = || {
            let text = format!("a message between nodes cannot be read: {bad}");
            Arc::new(Failure::new(FailureKind::InvalidArgument, text))
        };
        let ended = |lease, task, attempt| {
            let outcome = DoneOutcome::Failed { error_type: String::new(), failure: failure() };
            Message::TaskDone { lease, task, attempt, run_ns: 0, outcome: Box::new(outcome) }
        };
        let refused = |object| Message::ActorCheckpointed { object, refusal: Some(failure()) };
        let state = |object| {
            let (state, nested) = (RemoteState::Failed(failure()), Vec::new());
            Message::ObjectState { object, state, nested }
        };
        let never = |object| Message::ReadReply { object, turn: Turn::Never };
        let no_lease = |lease| Message::LeaseFailed { lease, failure: failure() };
        let answer = match self {
            Self::Attach(lease) => Message::LeaseRevoked { lease },
            Self::Checkpoint(object) => refused(object),
            Self::Lease(lease) => no_lease(lease),
            Self::Locate(object) => state(object),
            Self::Push(lease, task, attempt) => ended(lease, task, attempt),
            Self::Read(object) => never(object),
            Self::Checkpointed(object) => return refused(object),
            Self::Done(lease, task, attempt) => return ended(lease, task, attempt),
            Self::LeaseDenied(lease) => return Message::LeaseDenied { lease, free: Resources::default() },
            Self::LeaseFailed(lease) => return no_lease(lease),
            Self::ReadReply(object) => return never(object),
            Self::State(object) => return state(object),
            Self::Nothing => return Message::Unreadable { answer: None },
        };
        Message::Unreadable { answer: Some(Box::new(answer)) }
    }
}
