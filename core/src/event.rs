//! The events of a node, and the actions that it asks for. Both lists are closed.

use crate::lease::ProcessNumber;
use crate::memory::MemoryReading;
use crate::pull::Interrupted;
use std::sync::Arc;
use tharsis_types::peer::{DoneValue, Message, Packet};
use tharsis_types::task::Outcome;
use tharsis_types::{
    ClientId, Extent, Failure, GraphPart, JobId, JobTerms, NodeId, ObjectId, Quota, RefId, Resources,
    SmallBytes, TaskArgs, TaskClass, TaskId,
};

/// The value of an object, once it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The object has no value.
    Failed(Arc<Failure>),
    /// The encoded value itself.
    Inline(SmallBytes),
    /// In the arena of one or more nodes.
    Stored {
        /// Bytes.
        len: u64,
    },
}

impl Value {
    /// Bytes of it in the arena of each node that has it.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        match self {
            Self::Stored { len } => *len,
            Self::Failed(_) | Self::Inline(_) => 0,
        }
    }
}

/// An output as its worker returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputValue {
    /// In the record.
    Inline(SmallBytes),
    /// In a region of the arena granted to the worker.
    Written(Extent),
}

impl From<OutputValue> for DoneValue {
    fn from(value: OutputValue) -> Self {
        match value {
            OutputValue::Inline(bytes) => Self::Inline(bytes),
            OutputValue::Written(extent) => Self::Stored { len: extent.len },
        }
    }
}

/// The outcome of an attempt on this node.
pub type TaskOutcome = Outcome<OutputValue>;

/// Parts of a client that outlive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Its memory: its process still reads mapped values or writes to regions.
    Memory,
    /// Nothing.
    Nothing,
    /// Its thread, which cannot be killed: it still computes, and keeps its memory.
    Thread,
}

/// A node of the cluster as the control store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub node: NodeId,
    /// Its total resources.
    pub resources: Resources,
    /// Its labels.
    pub labels: Vec<(String, String)>,
}

impl Member {
    /// Whether it runs anything for other nodes. Those of drivers and heads without resources do not, also
    /// what takes none: it would be somebody else's program beside what is theirs.
    #[must_use]
    pub fn serves_others(&self) -> bool {
        self.resources != Resources::default()
    }
}

/// The events of a node.
#[derive(Clone, Debug)]
pub enum Event {
    /// The actor of a worker has ended by itself: the worker starts none of its runs any more.
    ActorEnded {
        /// The worker.
        client: ClientId,
    },
    /// A client waits for values and lends its slot; it will not start the runs it hands back.
    Blocked {
        /// The worker.
        client: ClientId,
        /// Runs handed back.
        returned: Vec<u32>,
    },
    /// The blocks of a range of the annex were returned to the disk: the range is free.
    BlocksFreed(Extent),
    /// A client cancels the task of a reference.
    CancelRequested {
        /// An output of the task.
        reference: RefId,
        /// Whether to kill the worker that runs it.
        force: bool,
        /// Whether to cancel the tasks that it submitted as well.
        recursive: bool,
    },
    /// The actor of a worker is to continue from a snapshot when it is started again.
    CheckpointWanted {
        /// The worker.
        client: ClientId,
        /// Echoed in the answer.
        request: u32,
        /// The snapshot.
        value: OutputValue,
        /// References inside it.
        nested: Vec<RefId>,
    },
    /// A client defined a class of tasks.
    ClassDefined {
        /// The client.
        client: ClientId,
        /// Its number within the client.
        class: u32,
        /// The class, or the reason for its refusal.
        definition: Result<Arc<TaskClass>, Arc<Failure>>,
    },
    /// A client is gone or cut off: its records do not count any more. The event may be repeated when less of
    /// the client remains.
    ClientGone {
        /// The client.
        client: ClientId,
        /// Parts of it that remain.
        remains: Remains,
        /// The reason, with the tail of its log.
        failure: Arc<Failure>,
    },
    /// A copy on disk turned out to be unreadable.
    CopyLost {
        /// The object.
        object: ObjectId,
    },
    /// The node is to leave without loss: it takes no new work, and ends with [`Operation::Leave`].
    DrainWanted {
        /// Nanoseconds after which it leaves, whatever is left.
        within: crate::Now,
    },
    /// The node of the driver of a job, as the control store says; `None` if it does not know the job so far.
    DriverFound {
        /// The job.
        job: JobId,
        /// The node of its driver.
        driver: Option<NodeId>,
        /// The terms that this one gave, if its release notes them.
        terms: Option<JobTerms>,
    },
    /// A driver connected.
    DriverJoined {
        /// The driver.
        client: ClientId,
        /// Its job.
        job: JobId,
        /// Weight of the job when jobs share a node.
        weight: u32,
        /// The most that the job may hold at once.
        quota: Option<Quota>,
    },
    /// A client wants a value sent to it.
    Fetch {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        reference: RefId,
    },
    /// A run ended.
    Finished {
        /// The worker.
        client: ClientId,
        /// The run.
        run: u32,
        /// Time spent in the function, in nanoseconds.
        run_ns: u64,
        /// The outcome of the run.
        outcome: TaskOutcome,
    },
    /// A worker hands back runs that it has not started.
    GivenBack {
        /// The worker.
        client: ClientId,
        /// Number of the question that it answers; 0 if nobody asked, or of one without a number.
        question: u32,
        /// The runs.
        returned: Vec<u32>,
    },
    /// A client submits the next part of a graph.
    GraphSubmitted {
        /// The client.
        client: ClientId,
        /// The run that submits it, if the worker says so: it runs several at the same time.
        run: Option<u32>,
        /// The id from which those of its tasks are derived.
        graph: TaskId,
        /// The part.
        part: Box<GraphPart>,
    },
    /// A client found a reference inside a value.
    Held {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        reference: RefId,
    },
    /// A worker keeps an argument of its run mapped after the run; the event comes before the run ends.
    Kept {
        /// The worker.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        reference: RefId,
    },
    /// A client asks for the locations of a value.
    LocationsWanted {
        /// The client.
        client: ClientId,
        /// Echoed in the answer.
        request: u32,
        /// The value.
        reference: RefId,
    },
    /// The node has reached nobody for a while, or reaches somebody again.
    IsolationChanged {
        /// Whether it reaches nobody.
        is_isolated: bool,
    },
    /// A job ended because the node of its driver left.
    JobEnded {
        /// The job.
        job: JobId,
    },
    /// A node joined the cluster.
    MemberJoined(Arc<Member>),
    /// A node left the cluster or died.
    MemberLeft {
        /// The node that left.
        node: NodeId,
    },
    /// The memory of the node was read.
    MemoryRead(MemoryReading),
    /// A packet came from another node.
    PacketReceived {
        /// The sender.
        from: NodeId,
        /// Its packet.
        packet: Packet,
    },
    /// As many submitted programs as that run here now: a node that drains waits for them.
    ProgramsRun {
        /// Their number.
        count: u64,
    },
    /// An object arrived from another node and is verified.
    PullDone {
        /// The object.
        object: ObjectId,
    },
    /// A transfer failed: its source has no such object, or does not send what it is.
    PullFailed {
        /// The object.
        object: ObjectId,
        /// The node it was read from.
        from: NodeId,
        /// Bytes from the start that arrived and are verified.
        done_bytes: u64,
        /// The reason for the failure.
        cause: String,
    },
    /// A transfer was interrupted, or its source was not reached.
    PullInterrupted(Interrupted),
    /// This node has no memory to receive an object; its copies elsewhere are unaffected.
    PullRefused {
        /// The object.
        object: ObjectId,
        /// The reason for the failure.
        cause: String,
    },
    /// A client put a value.
    Put {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// Id of the object.
        object: ObjectId,
        /// The value.
        value: OutputValue,
        /// References inside it.
        nested: Vec<RefId>,
        /// `file:line` of the call, or empty.
        site: Box<str>,
    },
    /// A client will not write to a region any more.
    RegionRetired {
        /// The client.
        client: ClientId,
        /// The region.
        region: Extent,
    },
    /// A client asks for a writable region.
    RegionWanted {
        /// The client.
        client: ClientId,
        /// Echoed in the answer.
        request: u32,
        /// Bytes.
        bytes: u64,
    },
    /// A client wants the worker of an actor killed, and the actor started again if it may be.
    RestartRequested {
        /// The actor.
        reference: RefId,
    },
    /// A client dropped a reference.
    Released {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        reference: RefId,
    },
    /// A copy was written to disk, or could not be.
    Spilled {
        /// The object.
        object: ObjectId,
        /// The reason if it was not written.
        refusal: Option<String>,
        /// Nanoseconds that the write took, without its time in the queue.
        write_ns: u64,
    },
    /// A client calls a function.
    Submitted {
        /// The client.
        client: ClientId,
        /// The run that calls, if the worker says so: it runs several at the same time.
        run: Option<u32>,
        /// The client's number of the class.
        class: u32,
        /// Id of the task.
        task: TaskId,
        /// Its names for the outputs.
        tokens: Tokens,
        /// The arguments.
        args: TaskArgs,
    },
    /// Time passed.
    Tick,
    /// A client has its values and wants its slot back.
    Unblocked {
        /// The worker.
        client: ClientId,
    },
    /// A client unmapped a value; its reference stays.
    Unmapped {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        object: ObjectId,
    },
    /// A worker that was started is ready for tasks.
    WorkerReady {
        /// Number of the start.
        start: u64,
        /// The worker.
        client: ClientId,
    },
    /// A worker could not be started.
    WorkerStartFailed {
        /// Number of the start.
        start: u64,
        /// The reason for the failure.
        failure: Arc<Failure>,
    },
}

/// Names of a task's outputs in the client that submitted it; nearly always one.
pub type Tokens = smallvec::SmallVec<[u64; 1]>;

/// An effect of the machine on the world outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Carry out an operation outside the machine.
    Do(Operation),
    /// Write a record into the ring of a client.
    Tell {
        /// The client.
        client: ClientId,
        /// The record.
        record: Record,
    },
}

/// An operation outside the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Find out whether a job has ended, as another node says. Ends with [`Event::JobEnded`] if that is the
    /// node of its driver, or if the control store says the same; otherwise with nothing.
    ConfirmEnd {
        /// The job.
        job: JobId,
        /// The node that says so.
        from: NodeId,
    },
    /// Remove a copy from disk.
    Discard(ObjectId),
    /// Ask the control store for the node of the driver of a job; ends with [`Event::DriverFound`].
    FindDriver {
        /// The job.
        job: JobId,
        /// The node that has said its terms.
        from: NodeId,
    },
    /// Give the blocks of a range of the annex back to the disk; ends with [`Event::BlocksFreed`].
    FreeBlocks(Extent),
    /// Drop everything that is kept for a job that has ended.
    ForgetJob {
        /// The job.
        job: JobId,
    },
    /// Kill a worker.
    KillWorker {
        /// The worker.
        client: ClientId,
        /// The reason for the kill.
        reason: Arc<Failure>,
    },
    /// End the node: it has drained, as far as its time allowed.
    Leave,
    /// The tables returned memory of finished tasks to the allocator.
    MemoryFreed,
    /// Read an object from another node into the arena.
    Pull {
        /// The object.
        object: ObjectId,
        /// The location to read it from.
        from: NodeId,
        /// The location to write it to.
        into: Extent,
        /// Bytes from the start that are there already.
        done_bytes: u64,
        /// Number of the copy of these bytes at that node. If it has another one now, or if this is 0, a
        /// result is read from the start: it may have been made twice, with different bytes.
        copy: u64,
    },
    /// Read the memory of the workers within this time, and report it even if nothing changed.
    ReadMemory {
        /// Milliseconds; 0 for at once.
        within_ms: u64,
    },
    /// The pages of a range can be given back to the system.
    Reclaim(Extent),
    /// Read a copy from disk into the arena; ends like a pull from this node.
    Restore {
        /// The object.
        object: ObjectId,
        /// The location to write it to.
        into: Extent,
    },
    /// Send a packet to another node; may get lost.
    Send {
        /// The receiver.
        to: NodeId,
        /// The packet.
        packet: Packet,
    },
    /// Ask the control store whether a node is a member, as this node was told of it and has not seen it
    /// join. Ends with [`Event::MemberLeft`] if the answer is that it is none; without an answer, with
    /// nothing.
    FindMember(NodeId),
    /// Write a copy to disk; ends with [`Event::Spilled`].
    Spill {
        /// The object.
        object: ObjectId,
        /// Its location.
        extent: Extent,
    },
    /// Start a worker for a job.
    StartWorker {
        /// Number of the start.
        start: u64,
        /// The job.
        job: JobId,
        /// The process that it shares with others, which begins with the first of them; none if it has one
        /// of its own.
        process: Option<ProcessNumber>,
        /// The GPUs that it may use, by number: those of the lease that it is for.
        gpus: Vec<u32>,
    },
}

/// A record for a client. It names runs and objects of the node; their bytes are read from the node when it
/// is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Stop a run at its next check.
    CancelRun {
        /// The run.
        run: u32,
    },
    /// The owner of an actor keeps its snapshot, or does not.
    CheckpointEnded {
        /// The client's request.
        request: u32,
        /// The reason if it does not.
        refusal: Option<Arc<Failure>>,
    },
    /// The locations of a value: read them with [`crate::Node::locations`].
    Locations {
        /// The client's request.
        request: u32,
        /// The value.
        reference: RefId,
    },
    /// A region that is granted or refused. A region in the annex has no blocks yet: it is granted when the
    /// disk has allocated them. If the disk is full, the client is refused, and the region ends like one that
    /// the client retired.
    Region {
        /// The client's request.
        request: u32,
        /// The region, or the reason for the refusal.
        region: Result<Extent, Arc<Failure>>,
    },
    /// The client may go on after it was blocked.
    Resumed,
    /// Give back regions that nothing writes to: room is short.
    RetireRegions,
    /// Start a run: read it with [`crate::Node::run`].
    Run {
        /// The run.
        run: u32,
    },
    /// Give back runs that have not started.
    StealBack {
        /// Maximum number of runs to give back.
        count: u32,
        /// Number that the answer repeats; 0 if it does not matter which question it answers.
        question: u32,
    },
    /// End: the worker is not needed any more.
    Stop,
    /// Unmap a value as soon as nothing in the client reads its bytes.
    Unmap {
        /// The client's name for the reference.
        token: u64,
    },
    /// The state of a reference: read it with [`crate::Node::value`].
    Value {
        /// The client's name for the reference.
        token: u64,
        /// The object.
        object: ObjectId,
        /// Its location in the arena, if it is pinned for the client.
        extent: Option<Extent>,
    },
}

impl Record {
    /// The action that sends the record to a client.
    #[must_use]
    pub fn to(self, client: ClientId) -> Action {
        Action::Tell { client, record: self }
    }
}

/// A message for another node, before the link has numbered it.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The receiver.
    pub to: NodeId,
    /// The message.
    pub message: Message,
}
