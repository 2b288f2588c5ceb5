//! Messages between nodes.
//!
//! One rule covers references that travel: **the sender of a reference registers the receiver as a borrower
//! first, and the receiver gives the borrow back to that sender**. So borrows form a tree. Links keep order,
//! so no release can overtake a registration.

use crate::task::{Outcome, Output};
use crate::{
    Attempt, Dependency, Failure, JobId, JobQuota, LeaseId, NodeId, ObjectId, RefId, Resources, SmallBytes,
    TaskClass, TaskId,
};
use std::sync::Arc;

/// A unit of exchange between two nodes; the link between them numbers its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Number of the first message in the packet; without messages, of the next one.
    pub first: u64,
    /// All messages below this one arrived.
    pub acknowledged: u64,
    /// Whether the sender wants to know what has arrived.
    pub asks: bool,
    /// Whether messages are known to be lost: a later one arrived, and not the first that is not
    /// acknowledged.
    pub lacks: bool,
    /// The messages.
    pub messages: Vec<Message>,
}

impl Packet {
    /// A packet of messages.
    #[must_use]
    pub fn new(first: u64, acknowledged: u64, messages: Vec<Message>) -> Self {
        Self { first, acknowledged, asks: false, lacks: false, messages }
    }
}

/// The state of an object as another node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteState {
    /// There is no value.
    Failed(Arc<Failure>),
    /// The owner does not know it: every reference was dropped, or it never existed.
    Freed,
    /// The encoded value itself.
    Inline(SmallBytes),
    /// In the arenas of these nodes.
    Stored {
        /// Bytes.
        len: u64,
        /// The nodes that have a copy.
        holders: Vec<NodeId>,
    },
}

/// A by-reference argument of a pushed task, with all that is needed to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedDependency {
    /// The parameter and the object that it reads.
    pub dependency: Dependency,
    /// Its value.
    pub state: RemoteState,
    /// References inside the value; lent to the receiver.
    pub nested: Vec<RefId>,
}

/// A task on its way to the node that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedTask {
    /// Id of the task.
    pub task: TaskId,
    /// Number of the attempt, from 0.
    pub attempt: Attempt,
    /// Its class.
    pub class: Arc<TaskClass>,
    /// Arguments by value.
    pub payload: SmallBytes,
    /// Arguments by reference.
    pub dependencies: Vec<PushedDependency>,
    /// References inside the payload; lent to the receiver.
    pub nested: Vec<RefId>,
    /// The name of this call, if it has one of its own.
    pub name: Option<Arc<str>>,
}

/// A snapshot of an actor, on its way to the node that owns the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorSnapshot {
    /// The lease of the receiver under which the actor was constructed.
    pub lease: LeaseId,
    /// The task that constructed it.
    pub actor: TaskId,
    /// The attempt.
    pub attempt: Attempt,
    /// The id of the snapshot, which the receiver is to own.
    pub object: ObjectId,
    /// Its bytes lie here or in the sender's arena; references are lent to the receiver.
    pub snapshot: Output<DoneValue>,
}

/// A message from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// An actor that lives on the sender wants to continue from this snapshot when it is started again. The
    /// answer is `ActorCheckpointed`.
    ActorCheckpoint(Box<ActorSnapshot>),
    /// Answer to [`Message::ActorCheckpoint`].
    ActorCheckpointed {
        /// The snapshot.
        object: ObjectId,
        /// The reason if the receiver's actor would not continue from it.
        refusal: Option<Arc<Failure>>,
    },
    /// The sender calls an actor that lives on the receiver: its calls come under this lease. The answer is
    /// `LeaseGranted`, or `LeaseRevoked` if the actor does not live there.
    ActorAttach {
        /// Named by the sender.
        lease: LeaseId,
        /// The task that constructed the actor.
        actor: TaskId,
    },
    /// Kill the worker of an actor, which is started again if it may be. It comes to the owner of the actor
    /// from a client of another node, and from the owner to the node of the worker.
    ActorRestart {
        /// The task that constructed the actor.
        actor: TaskId,
    },
    /// The sender uses an object of the receiver that nobody lent to it (its lender died).
    BorrowAdded {
        /// The object.
        reference: RefId,
    },
    /// The sender gives borrows back.
    BorrowReleased {
        /// The object.
        object: ObjectId,
        /// Number of borrows given back.
        count: u32,
    },
    /// None of the copies that the receiver named to the sender could be read, or their nodes are not reached
    /// from there. The task for which it was needed comes back next, and runs elsewhere if it can.
    CopiesUnreadable {
        /// The object.
        object: ObjectId,
    },
    /// Part of the departure of a node that drains.
    Drain(DrainMessage),
    /// The sender has a copy of the receiver's object now.
    HolderAdded {
        /// The object.
        object: ObjectId,
    },
    /// The sender has no copy any more.
    HolderRemoved {
        /// The object.
        object: ObjectId,
    },
    /// A driver is gone; its workers are not needed.
    JobEnded {
        /// The job.
        job: JobId,
    },
    /// There is no room for the lease now.
    LeaseDenied {
        /// The lease.
        lease: LeaseId,
        /// Resources that are free.
        free: Resources,
    },
    /// No worker can be started for the lease.
    LeaseFailed {
        /// The lease.
        lease: LeaseId,
        /// Why.
        failure: Arc<Failure>,
    },
    /// A worker is the receiver's until the lease ends.
    LeaseGranted {
        /// The lease.
        lease: LeaseId,
    },
    /// Others wait for the lease; return it when what runs has ended.
    LeaseRecall {
        /// The lease.
        lease: LeaseId,
    },
    /// If the request for a lease still waits, it is more urgent now.
    LeaseRaise {
        /// The lease.
        lease: LeaseId,
        /// As in the request.
        urgency: i32,
    },
    /// The sender wants a worker.
    LeaseRequest {
        /// Named by the sender; the same request sent twice has the same id.
        lease: LeaseId,
        /// The class of the tasks that will run.
        class: Arc<TaskClass>,
        /// Whether to queue the request when there is no room.
        wait: bool,
        /// Of requests that wait, those of higher urgency are served first.
        urgency: i32,
        /// Weight of the job when it shares a node with other jobs.
        weight: u32,
        /// The quota of the job.
        quota: Option<Arc<JobQuota>>,
    },
    /// The sender needs the lease no more.
    LeaseReturned {
        /// The lease.
        lease: LeaseId,
    },
    /// The worker is gone or was taken away; what it ran was reported before.
    LeaseRevoked {
        /// The lease.
        lease: LeaseId,
    },
    /// The load of the sender.
    LoadReport {
        /// Unused resources.
        free: Resources,
        /// Waiting lease requests.
        waiting: u32,
    },
    /// The object is gone; drop the copy.
    ObjectFree {
        /// The object.
        object: ObjectId,
    },
    /// Tell me about your object as soon as there is something to tell.
    ObjectLocate {
        /// The object.
        object: ObjectId,
    },
    /// Answer to [`Message::ObjectLocate`].
    ObjectState {
        /// The object.
        object: ObjectId,
        /// The state of the object.
        state: RemoteState,
        /// References inside it; lent to the receiver.
        nested: Vec<RefId>,
    },
    /// About the quota of a job.
    Quota(QuotaMessage),
    /// The sender reads no more what it asked for.
    ReadEnded {
        /// The object.
        object: ObjectId,
    },
    /// Answer to [`Message::ReadRequest`].
    ReadReply {
        /// The object.
        object: ObjectId,
        /// When the receiver may read, or where.
        turn: Turn,
    },
    /// The sender wants to read a large object that the receiver has, or will have soon.
    ReadRequest {
        /// The object.
        object: ObjectId,
        /// Another node named the receiver.
        sent: bool,
        /// The node that the receiver had named, which could not be used.
        failed_at: Option<NodeId>,
    },
    /// Stop a task.
    TaskCancel {
        /// The task.
        task: TaskId,
        /// Whether to kill its worker.
        force: bool,
        /// Whether to stop the tasks that it submitted as well.
        recursive: bool,
    },
    /// An attempt ended.
    TaskDone {
        /// The lease it ran under.
        lease: LeaseId,
        /// The task.
        task: TaskId,
        /// Number of the attempt, from 0.
        attempt: Attempt,
        /// Time in the function.
        run_ns: u64,
        /// The outcome. Written outputs lie in the sender's arena; references are lent to the receiver.
        outcome: Box<DoneOutcome>,
    },
    /// Tasks that were pushed come back.
    TaskGiveBack {
        /// The lease.
        lease: LeaseId,
        /// The tasks and attempts.
        tasks: Vec<(TaskId, Attempt)>,
        /// Whether they had been started: then they run again as another attempt, without being charged for
        /// it.
        started: bool,
    },
    /// Give back tasks that have not started.
    TaskStealBack {
        /// The lease.
        lease: LeaseId,
    },
    /// A task to run under a lease.
    TaskPush {
        /// The lease.
        lease: LeaseId,
        /// The task.
        task: Box<PushedTask>,
    },
    /// Arrived, and cannot be read. It counts as taken: the sender would only repeat it, before all that it
    /// has to say after it.
    Unreadable {
        /// The refusal that the sender hears, if it waits for an answer.
        answer: Option<Box<Message>>,
    },
}

/// A message about parts of a job's quota: between the node of its driver, the home, and a node that lends
/// resources to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaMessage {
    /// The home gives a part.
    Granted {
        /// The job.
        job: JobId,
        /// The part.
        amount: Resources,
    },
    /// The home wants a part for others.
    Recalled {
        /// The job.
        job: JobId,
        /// The part.
        amount: Resources,
        /// Whether to ask leases back, idle ones first.
        in_use: bool,
        /// Whether it is for requests at the receiver: it does not go back.
        keep: bool,
    },
    /// The lender returns a part.
    Returned {
        /// The job.
        job: JobId,
        /// The part.
        amount: Resources,
    },
    /// The lender lacks this part, or nothing, instead of what it said last.
    Wanted {
        /// The job.
        job: JobId,
        /// The part.
        amount: Resources,
    },
}

/// A message about a node that drains, and the copies that others keep instead of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainMessage {
    /// The sender drains: it takes no new work, and leaves soon.
    Begun,
    /// The sender has a copy of the receiver's object and keeps it: it is not evicted.
    CopyKept {
        /// The object.
        object: ObjectId,
    },
    /// The sender drains, and has a copy of the receiver's object.
    CopyLeaving {
        /// The object.
        object: ObjectId,
    },
    /// Keep a copy of an object, and read it if it is not there.
    CopyMove {
        /// The object.
        reference: RefId,
        /// Bytes.
        len: u64,
        /// The node to read it from: one that drains, or the owner.
        from: NodeId,
        /// Nodes to pass the message on to if the receiver has no room, in this order.
        others: Vec<NodeId>,
    },
}

/// The outcome of an attempt as it looks from another node.
pub type DoneOutcome = Outcome<DoneValue>;

/// The place of an output, as another node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoneValue {
    /// Here.
    Inline(SmallBytes),
    /// In the sender's arena.
    Stored {
        /// Bytes.
        len: u64,
    },
}

/// The answer to a node that wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Read.
    Now,
    /// Ask that node.
    At(NodeId),
    /// There is nothing to read here.
    Never,
}

impl Message {
    /// The lease of the receiver that this is about, if it is about one: only the node that it was asked of
    /// may say so.
    #[must_use]
    pub fn lease_of_receiver(&self) -> Option<LeaseId> {
        match self {
            Self::ActorCheckpoint(offered) => Some(offered.lease),
            Self::LeaseDenied { lease, .. }
            | Self::LeaseFailed { lease, .. }
            | Self::LeaseGranted { lease }
            | Self::LeaseRecall { lease }
            | Self::LeaseRevoked { lease }
            | Self::TaskDone { lease, .. }
            | Self::TaskGiveBack { lease, .. } => Some(*lease),
            Self::ActorAttach { .. }
            | Self::ActorCheckpointed { .. }
            | Self::ActorRestart { .. }
            | Self::BorrowAdded { .. }
            | Self::BorrowReleased { .. }
            | Self::CopiesUnreadable { .. }
            | Self::Drain(_)
            | Self::HolderAdded { .. }
            | Self::HolderRemoved { .. }
            | Self::JobEnded { .. }
            | Self::LeaseRaise { .. }
            | Self::LeaseRequest { .. }
            | Self::LeaseReturned { .. }
            | Self::LoadReport { .. }
            | Self::ObjectFree { .. }
            | Self::ObjectLocate { .. }
            | Self::ObjectState { .. }
            | Self::Quota(_)
            | Self::ReadEnded { .. }
            | Self::ReadReply { .. }
            | Self::ReadRequest { .. }
            | Self::TaskCancel { .. }
            | Self::TaskPush { .. }
            | Self::TaskStealBack { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}
