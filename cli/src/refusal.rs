//! Exit statuses of the command, and their errors: 2 for wrong input, 3 for a malformed token, 4 if no node
//! or control store answers, 5 if a socket, port or file is taken, 6 if a resource is too small, 130 after
//! Ctrl-C, 1 otherwise.

use crate::settings;
use std::path::PathBuf;
use tharsis::{Error, process};
use tharsis_identity::IdentityError;
use tharsis_protos::join::JoinError;
use tharsis_raylet::cluster::kind_of_beginning;

/// The status for wrong input: typed, set or written in a file.
pub const WRONG_INPUT: u8 = 2;
/// The status if a token is not one.
const MALFORMED_TOKEN: u8 = 3;
/// The status if no server answers, or a server of another kind does.
pub const NO_ANSWER: u8 = 4;
/// The status if another process has the socket, port or file.
pub const TAKEN: u8 = 5;

/// The status if the machine has too little of a resource.
pub const EXHAUSTED: u8 = 6;

/// The status of a command that Ctrl-C ended, as shells tell it.
#[cfg(feature = "frames")]
pub const INTERRUPTED: u8 = 130;
/// The status of a script of statements whose reader went away before the last one, as shells tell it of a
/// program that writes on.
#[cfg(feature = "frames")]
pub const UNREAD: u8 = 141;

/// Errors that end the command with a specific status.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The port is taken.
    #[error("AddressInUse: port {port} is in use{}; use another --port, or 0 for a free one", by(*holder))]
    AddressInUse {
        /// The port.
        port: u16,
        /// The process that listens there, if it belongs to this user.
        holder: Option<u32>,
    },
    /// A running node has the socket.
    #[error(
        "AlreadyRunning: a node of this user runs already, process {pid}, socket {}; stop it, or use another --socket",
        socket.display()
    )]
    AlreadyRunning {
        /// Its process.
        pid: u32,
        /// Its socket.
        socket: PathBuf,
    },
    /// A bench has no such flag.
    #[error("{flag}: the bench {bench} has no such flag")]
    BenchFlag {
        /// The flag.
        flag: &'static str,
        /// The bench.
        bench: &'static str,
    },
    /// A bench has no such size.
    #[error("--size: {problem}")]
    BenchSize {
        /// The fault that was found.
        problem: String,
    },
    /// A statement that cannot be answered.
    #[cfg(feature = "frames")]
    #[error("{at}{}: {cause}{shown}", cause.class())]
    Query {
        /// The place of the mistake, or of the statement if there are several.
        at: String,
        /// The mistake in it or in its rows, the file that cannot be read, or the failure of its run.
        cause: Box<tharsis::frame::Error>,
        /// The line of the mistake, and a mark below it.
        shown: String,
    },
    /// Ctrl-C ended the computation.
    #[cfg(feature = "frames")]
    #[error("interrupted")]
    Interrupted,
    /// A form of rows that the place of the output cannot show.
    #[cfg(feature = "frames")]
    #[error("--format arrow: a terminal cannot show it; write it to a file or a pipe")]
    ArrowOnTerminal,
    /// A file whose ending says another format than an option.
    #[cfg(feature = "frames")]
    #[error("-o {path}: {problem}")]
    TwoFormats {
        /// The file.
        path: String,
        /// The reason.
        problem: &'static str,
    },
    /// Statements with which nothing can be done.
    #[cfg(feature = "frames")]
    #[error("the statements: {problem}")]
    Statements {
        /// The reason.
        problem: &'static str,
    },
    /// A file of statements that cannot be read.
    #[cfg(feature = "frames")]
    #[error("{path}: {cause}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason, as the file system gave it.
        cause: std::io::Error,
    },
    /// The command was built without frames.
    #[cfg_attr(feature = "frames", expect(dead_code, reason = "made by a build without frames"))]
    #[error(
        "this command was built without frames; build it with the feature frames, which is on by default"
    )]
    NoFrames,
    /// The command was built without tensors.
    #[cfg_attr(feature = "tensors", expect(dead_code, reason = "made by a build without tensors"))]
    #[error(
        "this command was built without tensors; build it with the feature tensors, which is on by default"
    )]
    NoTensors,
    /// More GPUs than there are.
    #[error("--num-gpus {asked}: this machine has {found}; use --allow-fake-resources to offer more")]
    FakeGpus {
        /// The number of GPUs asked for.
        asked: f64,
        /// The amount that was found.
        found: String,
    },
    /// A node on this machine would not run, or not as it was asked to.
    #[error("{failed} of {all} checks failed: see above")]
    ChecksFailed {
        /// Checks that failed.
        failed: usize,
        /// All checks.
        all: usize,
    },
    /// A node that joins has no control store of its own.
    #[error("{flag} is for heads and control stores, it cannot be used with --address")]
    NotForMembers {
        /// The flag.
        flag: String,
    },
    /// The cluster is another user's, or has another secret.
    #[error(
        "NotAdmitted: {address}: {cause}; on the head's machine start as the user of the head, or name the file with the \
         cluster's secret with --secret-file; on others join with --token, from `tharsis token create` on the head"
    )]
    NotAdmitted {
        /// Where.
        address: String,
        /// The side that refused, and its reason.
        cause: String,
    },
    /// The head did not admit this machine.
    #[error("NotJoined: {address}: {cause}")]
    NotJoined {
        /// Where.
        address: String,
        /// Its reason.
        #[source]
        cause: JoinError,
    },
    /// A token without a cluster to join.
    #[error("--token is for joining a cluster; name its --address")]
    TokenAlone,
    /// The authority does not know the token, machine or node.
    #[error("Unknown: the authority knows no {what} {id:016x}; `tharsis token list` shows those there are")]
    NotIssued {
        /// Token, machine or node.
        what: &'static str,
        /// Its number.
        id: u64,
    },
    /// A list has no such column.
    #[error("{list} have no column {column:?}; they have {columns}")]
    NoColumn {
        /// The list.
        list: &'static str,
        /// The column that was asked for.
        column: String,
        /// The columns of the list.
        columns: String,
    },
    /// No row of a list ever has such a state.
    #[error("{list} have no state {state:?}; they have {states}{meant}")]
    NoState {
        /// The list.
        list: &'static str,
        /// The state that was asked for.
        state: String,
        /// The states of the list.
        states: String,
        /// The one that was probably meant.
        meant: String,
    },
    /// A submitted program did not succeed.
    #[error("{name:?} {how}")]
    ProgramFailed {
        /// Its name.
        name: String,
        /// Its end, in words.
        how: String,
        /// The status to end with: its own, or 128 and its signal.
        status: u8,
    },
    /// A node does not run a program that was submitted to it.
    #[error("{cause}")]
    NotSubmitted {
        /// Its reason.
        cause: String,
        /// The status to end with.
        status: u8,
    },
    /// The cluster knows no such program.
    #[error("UnknownProgram: no program {name:?} was submitted; `tharsis job list` shows those there are")]
    UnknownProgram {
        /// The name.
        name: String,
    },
    /// A program ran on a node that is gone.
    #[error("NodeGone: node {node}, which ran {name:?}, is gone; its output is on that machine")]
    NodeGone {
        /// The program.
        name: String,
        /// The node.
        node: String,
    },
    /// The node has no control store.
    #[error(
        "NoCluster: the node at {socket} is alone; jobs need one that `tharsis start --head` begins a cluster with"
    )]
    NoCluster {
        /// Its socket.
        socket: String,
    },
    /// The cluster has no such node.
    #[error("UnknownNode: the cluster has no node {node:016x}; `tharsis nodes` shows those there are")]
    UnknownNode {
        /// The node.
        node: u64,
    },
    /// The node does not drain.
    #[error("{cause}")]
    NotDrained {
        /// Its reason.
        cause: String,
    },
    /// Only a node of this machine can be drained by its socket.
    #[error("--address: name the NODE to drain as well")]
    DrainWhom,
    /// No node answers.
    #[error("{cause}; name its --socket, or start one with `tharsis start --head`")]
    NoNode {
        /// The address, and the reason why no node answered there.
        cause: String,
    },
    /// The folder cannot be read.
    #[cfg(feature = "tensors")]
    #[error("no programs at {}: {cause}; name a folder, or give them on standard input", folder.display())]
    NoPrograms {
        /// Where.
        folder: PathBuf,
        /// Why.
        cause: String,
    },
    /// There is no such bench.
    #[error("unknown bench {asked:?}; there are: all, {known}")]
    NoSuchBench {
        /// The name that was asked for.
        asked: String,
        /// The known benches.
        known: String,
    },
    /// No server answers at the address.
    #[error("no control store answers at {address}: {cause}; check --address, and that the head runs")]
    NothingAnswers {
        /// Where.
        address: String,
        /// Why.
        cause: String,
    },
    /// The node process ended; its last words.
    #[error("the node did not start:\n{cause}")]
    NodeEnded {
        /// The text of its message.
        cause: String,
        /// Its status.
        status: u8,
    },
    /// The machine has too little of a resource.
    #[error("ResourceExhausted: {cause}")]
    ResourceExhausted {
        /// The amount asked for, and the amount available.
        cause: String,
    },
    /// The node knows nothing of a task or an object.
    #[error(
        "Unknown: node {node:016x} knows nothing of {id}: it ended long ago or was freed, or it is another node's; ask \
         the node on which it was submitted or put, with --socket"
    )]
    Unknown {
        /// The node.
        node: u64,
        /// The task or object.
        id: String,
    },
    /// A server of another kind or release answers at the address.
    #[error("ProtocolMismatch: what answers at {address} is not a control store of this release: {cause}")]
    ProtocolMismatch {
        /// Where.
        address: String,
        /// The text of its message.
        cause: String,
    },
}

fn by(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

/// The status for an error of a query: a mistake of the user, or a failure of the machine.
#[cfg(feature = "frames")]
fn status_of_query(class: &str) -> u8 {
    match class {
        "MemoryError" => EXHAUSTED,
        "ConnectionError" | "Crash" | "OSError" | "RuntimeError" | "Timeout" | "TimeoutError" => {
            process::FAILED
        }
        _ => WRONG_INPUT,
    }
}

/// The status that an error ends the command with.
pub fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<settings::Error>() {
        return WRONG_INPUT;
    }
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return match refusal {
            Refusal::AddressInUse { .. } | Refusal::AlreadyRunning { .. } => TAKEN,
            Refusal::BenchFlag { .. }
            | Refusal::BenchSize { .. }
            | Refusal::FakeGpus { .. }
            | Refusal::NoColumn { .. }
            | Refusal::NoState { .. }
            | Refusal::NoSuchBench { .. }
            | Refusal::NotForMembers { .. }
            | Refusal::NotIssued { .. }
            | Refusal::DrainWhom
            | Refusal::NoCluster { .. }
            | Refusal::NoFrames
            | Refusal::NoTensors
            | Refusal::UnknownProgram { .. }
            | Refusal::UnknownNode { .. }
            | Refusal::TokenAlone => WRONG_INPUT,
            #[cfg(feature = "tensors")]
            Refusal::NoPrograms { .. } => WRONG_INPUT,
            #[cfg(feature = "frames")]
            Refusal::Query { cause, .. } => status_of_query(cause.class()),
            #[cfg(feature = "frames")]
            Refusal::Interrupted => INTERRUPTED,
            #[cfg(feature = "frames")]
            Refusal::ArrowOnTerminal
            | Refusal::Statements { .. }
            | Refusal::TwoFormats { .. }
            | Refusal::Unreadable { .. } => WRONG_INPUT,
            Refusal::NoNode { .. }
            | Refusal::NodeGone { .. }
            | Refusal::NotAdmitted { .. }
            | Refusal::NotJoined { .. }
            | Refusal::NothingAnswers { .. }
            | Refusal::ProtocolMismatch { .. } => NO_ANSWER,
            Refusal::NodeEnded { status, .. }
            | Refusal::NotSubmitted { status, .. }
            | Refusal::ProgramFailed { status, .. } => *status,
            Refusal::ResourceExhausted { .. } => EXHAUSTED,
            Refusal::ChecksFailed { .. } | Refusal::NotDrained { .. } | Refusal::Unknown { .. } => {
                process::FAILED
            }
        };
    }
    if let Some(error) = error.downcast_ref::<IdentityError>() {
        return match error {
            IdentityError::MalformedToken(_) => MALFORMED_TOKEN,
            IdentityError::NoIdentity(_) => NO_ANSWER,
            IdentityError::NoAuthority(_)
            | IdentityError::NotReplacing
            | IdentityError::OwnMachine
            | IdentityError::Overlap { .. }
            | IdentityError::Replacing => WRONG_INPUT,
            _ => process::FAILED,
        };
    }
    if let Some(error) = error.downcast_ref::<tharsis_gcs::StoreError>() {
        return process::status_of(kind_of_beginning(error));
    }
    error.downcast_ref::<Error>().map_or(process::FAILED, |error| process::status_of(error.kind()))
}
