//! First words between a client and its node, over the node's Unix socket.
//!
//! The client sends one [`Hello`], a driver with an open descriptor of its program, so that the node starts
//! the very bytes that the driver runs and not what lies at their path by then. The node answers with one
//! [`Answer`] and, if it is a welcome, passes the file descriptor of the arena along; the client then says
//! with an empty frame that it has mapped everything. Afterwards the socket carries nothing; its end tells
//! each side that the other one is gone.

use crate::inventory::{Inventory, SITE_BYTES_MAX, SITES_MAX};
use crate::listing::{Listing, Table};
use crate::report::{Report, Story};
use serde::{Deserialize, Serialize};
use tharsis_types::limits::CLIENTS_MAX;
use tharsis_types::{ClientId, Failure, FunctionId, JobId, NodeId, ObjectId, TaskId};

/// Changes whenever records or handshakes change.
pub const PROTOCOL_VERSION: u32 = 6;
/// First bytes of every hello; anything else is cut off.
pub const HELLO_MAGIC: [u8; 8] = *b"THARSIS\x02";
/// Bytes of a handshake frame at most (a table of functions is the largest part).
pub const HELLO_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(
    2 * (SITES_MAX * (2 * SITE_BYTES_MAX + 4) + CLIENTS_MAX * 32) < HELLO_BYTES_MAX,
    "the names of an inventory leave room for its objects"
);

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Must be [`HELLO_MAGIC`].
    pub magic: [u8; 8],
    /// Must be [`PROTOCOL_VERSION`].
    pub version: u32,
    /// Process of the client.
    pub pid: u32,
    /// What it is.
    pub role: Role,
    /// The remote functions its program has.
    pub functions: Vec<FunctionEntry>,
}

/// What a client is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Runs the user's `main`.
    Driver {
        /// Name of the job; may be empty.
        job_name: String,
        /// Namespace of names.
        namespace: String,
        /// Where the program was found, for people. The program itself comes as a descriptor with the hello.
        executable: String,
        /// How much of a node the job gets beside others.
        weight: u32,
    },
    /// Asks one question and leaves.
    Observer(Question),
    /// Runs tasks; started by the node with this number.
    Worker {
        /// Number of the start.
        start: u64,
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

/// What the node answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Come in.
    Welcome(Welcome),
    /// What an observer asked for.
    Report(Box<Report>),
    /// Go away, and why.
    Refused(Failure),
    // Behind the others: a client of another version must be able to read why it is refused.
    /// What lies in the store.
    Inventory(Box<Inventory>),
    /// What the node knows of a task or an object.
    Story(Box<Story>),
    /// A list of what the node has.
    Table(Box<Table>),
}

/// What a client needs to work with its node.
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
}

/// What an observer asks of a node; answered by [`Answer::Report`] if nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// What lies in your store? Answered by [`Answer::Inventory`].
    Memory,
    /// How are you?
    Status,
    /// End yourself, and your workers.
    Stop,
    /// What does it wait for, and what happened to it? Answered by [`Answer::Story`].
    Why(Subject),
    /// What do you have? Answered by [`Answer::Table`].
    List(Listing),
}

/// What an observer asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A value, by its id.
    Object(ObjectId),
    /// A call, by its id.
    Task(TaskId),
}
