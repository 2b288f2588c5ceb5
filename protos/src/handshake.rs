//! First words between a client and its node, over the node's Unix socket.
//!
//! The client sends one [`Hello`], a driver with an open descriptor of its program, so that the node starts
//! the very bytes that the driver runs and not what lies at their path by then. The node answers with one
//! [`Answer`] and, if it is a welcome, passes the file descriptor of the arena along; the client then says
//! with an empty frame that it has mapped everything. Afterwards the socket carries nothing; its end tells
//! each side that the other one is gone.

use crate::inventory::{Inventory, SITE_BYTES_MAX, SITES_MAX};
use crate::listing::{Listing, Table};
use crate::logs::{LogLine, LogQuery};
use crate::report::{DrainRow, Report, Story};
use crate::runs::{RunBatch, RunQuery};
use serde::{Deserialize, Serialize};
use tharsis_types::limits::CLIENTS_MAX;
use tharsis_types::{ClientId, Failure, FunctionId, JobId, NodeId, ObjectId, Quota, TaskId};

/// Changes whenever records or handshakes change.
pub const PROTOCOL_VERSION: u32 = 18;
/// First bytes of every hello; anything else is cut off.
pub const HELLO_MAGIC: [u8; 8] = *b"THARSIS\x02";
/// Bytes of a handshake frame at most (a table of functions is the largest part).
pub const HELLO_BYTES_MAX: usize = 4 << 20;
/// Names of one answer at most.
pub const NAMES_PAGE_MAX: usize = 256;
/// Bytes of records from which on an answer gets no more names.
pub const NAMES_PAGE_BYTES: usize = 1 << 20;

const _: () = assert!(
    2 * (SITES_MAX * (2 * SITE_BYTES_MAX + 4) + CLIENTS_MAX * 32) < HELLO_BYTES_MAX,
    "the names of an inventory leave room for its objects"
);

/// First message of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Must be [`HELLO_MAGIC`].
    pub magic: [u8; 8],
    /// Must be [`PROTOCOL_VERSION`].
    pub version: u32,
    /// Process of the client.
    pub pid: u32,
    /// Kind of client.
    pub role: Role,
    /// The remote functions its program has.
    pub functions: Vec<FunctionEntry>,
}

/// Kind of client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Runs the user's `main`.
    Driver {
        /// Name of the job; may be empty.
        job_name: String,
        /// Namespace of names.
        namespace: String,
        /// Path at which the program was found, for people. The program itself comes as a descriptor with the
        /// hello.
        executable: String,
        /// Share of a node that the job gets beside others.
        weight: u32,
        /// The most that the job may hold at once in the cluster.
        quota: Option<Quota>,
    },
    /// Asks one question and leaves.
    Observer(Question),
    /// Runs tasks; started by the node with this number.
    Worker {
        /// Number of the start.
        start: u64,
    },
    /// Has several workers; started by the node with this number. Answered by one [`Answer::Begin`] after the
    /// other, until it has none left.
    SharedProcess {
        /// Number of the process.
        number: u64,
    },
}

/// One remote function of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FunctionEntry {
    /// Its id.
    pub id: FunctionId,
    /// Hash of its argument and result types.
    pub signature: u64,
    /// Its path.
    pub name: String,
}

/// Answer of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Come in.
    Welcome(Welcome),
    /// Report that an observer asked for.
    Report(Box<Report>),
    /// Go away, and why.
    Refused(Failure),
    // Behind the others: a client of another version must be able to read why it is refused.
    /// Contents of the store.
    Inventory(Box<Inventory>),
    /// History of a task or an object as the node knows it.
    Story(Box<Story>),
    /// A list of what the node has.
    Table(Box<Table>),
    /// Progress of a drain; others follow until it is over.
    Draining(Box<DrainRow>),
    /// Output of workers; more follows.
    Lines(Vec<LogLine>),
    /// All output that was asked for has been told.
    LinesEnd,
    /// Answer about a name.
    Named(Named),
    /// Begin the worker with this number.
    Begin(u64),
    /// Runs of tasks; more follow, unless it says that it is the last one.
    Runs(RunBatch),
}

/// Everything a client needs to work with its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The client's number; also its place on the bell board.
    pub client: ClientId,
    /// The node.
    pub node: NodeId,
    /// The job it works for.
    pub job: JobId,
    /// Name of the shared segment with both rings and the client's bell.
    pub ring_segment: String,
    /// Name of the shared segment with the node's bell board.
    pub board_segment: String,
    /// Bit of this client on the board.
    pub board_index: u32,
    /// Bytes of the arena's memory.
    pub arena_bytes: u64,
    /// Bytes of the annex behind it; its descriptor comes with an empty frame, unless these are none.
    pub annex_bytes: u64,
    /// For a worker: names of the GPUs that it may use.
    pub gpus: Vec<String>,
}

/// Question of an observer to a node; answered by [`Answer::Report`] if nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Contents of the store, answered by [`Answer::Inventory`].
    Memory,
    /// State of the node and of the cluster as it sees it.
    Status,
    /// End yourself, and your workers.
    Stop,
    /// History of one task or object and what it waits for, answered by [`Answer::Story`].
    Why(Subject),
    /// One list of the node, answered by [`Answer::Table`].
    List(Listing),
    /// Leave without loss within this time, in ms; answered by one [`Answer::Draining`] after the other.
    Drain {
        /// The node leaves after this time, whatever is left.
        within_ms: u64,
    },
    /// Output of the workers, answered by one [`Answer::Lines`] after the other, and [`Answer::LinesEnd`] at
    /// last. Some are empty: whoever hears no more is noticed by that.
    Logs(LogQuery),
    /// Find, claim or list names of actors or placement groups, answered by [`Answer::Named`].
    Name(NameQuestion),
    /// Runs of tasks that the node remembers, answered by one [`Answer::Runs`] after the other.
    Runs(RunQuery),
}

/// Question about the name of an actor or a placement group, in the namespace of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameQuestion {
    /// The job.
    pub job: JobId,
    /// The kind of its owner.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// Look for it, claim it, or list all.
    pub act: NameAct,
}

/// Kind of the owner of a name. Names of one kind do not collide with those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NameKind {
    /// An actor.
    Actor,
    /// A placement group.
    Group,
}

/// Use of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameAct {
    /// Look for it.
    Find,
    /// Keep a record under it.
    Claim {
        /// The record, which clients read.
        record: Vec<u8>,
        /// The object that it names, of this node. When that has ended the name is free.
        object: ObjectId,
        /// The record that is replaced, that of one which has ended; none if the name is not in use.
        over: Option<Vec<u8>>,
    },
    /// Tell the names there are, in the namespace of the job or in all; answered by [`Named::Page`].
    List {
        /// Whether those of all namespaces are wanted.
        is_of_all: bool,
        /// Tell those after this one, the last of the page before; none for the first page.
        after: Option<NameKey>,
    },
}

/// A name, and the namespace in which it has a meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NameKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Answer about a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Named {
    /// The record under it; after a claim, that of another.
    Is(Vec<u8>),
    /// The record of the claim is under it.
    Claimed,
    /// There is none.
    Missing {
        /// The most similar name in the namespace.
        nearest: Option<String>,
    },
    /// Names in order, those of what has ended among them.
    Page {
        /// The names and their records.
        names: Vec<(NameKey, Vec<u8>)>,
        /// Whether others follow.
        more: bool,
    },
}

/// Subject of an observer's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A value, by its id.
    Object(ObjectId),
    /// A call, by its id.
    Task(TaskId),
}
