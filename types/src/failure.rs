//! The one error vocabulary: the failures that can come back instead of a value.
//!
//! A [`Failure`] is itself a value: it is stored under the ids of the outputs it replaces, travels like them
//! and is read by their readers. It says what happened ([`FailureKind`]), where ([`Origin`]), why
//! ([`Failure::behind`]) and what to do next ([`FailureKind::advice`]).
//!
//! A failure that passes through a thousand tasks would be a thousand deep, and whoever decodes, prints or
//! drops it would go as deep on its stack. So a chain of causes has [`LINKS_MAX`] links at most, by whatever
//! door it came: only [`Failure::because`] makes it longer, and it leaves out the middle. As bytes a chain is
//! a flat list.

mod bytes;

use crate::resources::BadResource;
use crate::text::Shown;
use crate::{Attempt, NodeId, TaskId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Failures of one chain, from the last one to its root. Of a longer chain the middle is left out: the first
/// failures say where it was seen, the last ones why it came to be.
pub const LINKS_MAX: usize = 16;
/// Failures of one chain that are read. Ours are shorter.
pub const LINKS_READ_MAX: usize = 64;

/// The cause of a failure. Each kind has a stable code and one line of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureKind {
    /// The actor has ended, or was never there: no call of it will run any more.
    ActorDied,
    /// No actor that lives has this name.
    ActorNotFound,
    /// The worker of the actor is gone, and the actor is started again.
    ActorUnavailable,
    /// The task was cancelled before it ended.
    Cancelled,
    /// Bytes do not decode or do not match their checksum.
    DataCorrupt,
    /// An argument's task failed, so this one never ran.
    DependencyFailed,
    /// The connection to the node is gone.
    Disconnected,
    /// The worker's program has no such function.
    FunctionNotFound,
    /// `get` or `wait` ran out of time; the task goes on.
    GetTimeout,
    /// No placement group that lives has this name.
    GroupNotFound,
    /// The placement group was removed, or has ended with its driver.
    GroupRemoved,
    /// No node can ever satisfy the request as the cluster stands.
    Infeasible,
    /// A defect of Tharsis itself.
    Internal,
    /// An address, a socket or a file belongs to another process.
    InUse,
    /// An argument or option is outside its bounds.
    InvalidArgument,
    /// A reference of another cluster or session, or one that was made outside the task protocol.
    InvalidReference,
    /// All copies are gone, and how to make the value was forgotten to save memory.
    LineageEvicted,
    /// An actor or a placement group that lives has the name.
    NameTaken,
    /// The node a task ran on is gone.
    NodeDied,
    /// The node a task must run on does not exist.
    NodeNotFound,
    /// Every reference was dropped before this read.
    ObjectFreed,
    /// All copies of an object are gone and it cannot be made again.
    ObjectLost,
    /// The value is larger than the store.
    ObjectTooLarge,
    /// The store is full, and so are the disks that it spills to.
    OutOfDisk,
    /// The memory guard ended the task.
    OutOfMemory,
    /// The function panicked.
    Panicked,
    /// The machine, or a limit on this process, has less than was asked for.
    ResourceExhausted,
    /// All copies are gone, and the task that makes the value may not run again.
    RetriesExhausted,
    /// The function returned another number of values than its options say.
    ReturnsMismatch,
    /// The runtime was shut down.
    Shutdown,
    /// No room in the object store within the time allowed.
    StoreFull,
    /// The task ran longer than its timeout.
    TimedOut,
    /// The caller has as many unfinished calls of the actor as its `max_pending_calls` allows.
    TooManyPendingCalls,
    /// The function returned an error value.
    UserError,
    /// Driver and worker have different versions of the function.
    VersionMismatch,
    /// The worker process ended while it ran the task.
    WorkerCrashed,
    /// No worker process could be started.
    WorkerStartFailed,
}

impl FailureKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 37] = [
        Self::ActorDied,
        Self::ActorNotFound,
        Self::ActorUnavailable,
        Self::Cancelled,
        Self::DataCorrupt,
        Self::DependencyFailed,
        Self::Disconnected,
        Self::FunctionNotFound,
        Self::GetTimeout,
        Self::GroupNotFound,
        Self::GroupRemoved,
        Self::Infeasible,
        Self::Internal,
        Self::InUse,
        Self::InvalidArgument,
        Self::InvalidReference,
        Self::LineageEvicted,
        Self::NameTaken,
        Self::NodeDied,
        Self::NodeNotFound,
        Self::ObjectFreed,
        Self::ObjectLost,
        Self::ObjectTooLarge,
        Self::OutOfDisk,
        Self::OutOfMemory,
        Self::Panicked,
        Self::ResourceExhausted,
        Self::RetriesExhausted,
        Self::ReturnsMismatch,
        Self::Shutdown,
        Self::StoreFull,
        Self::TimedOut,
        Self::TooManyPendingCalls,
        Self::UserError,
        Self::VersionMismatch,
        Self::WorkerCrashed,
        Self::WorkerStartFailed,
    ];

    /// Advice on the next step, in one line.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::ActorDied => "create the actor again; the cause below says how it ended",
            Self::ActorNotFound => {
                "create it with `create` or `get_or_create`, or correct the name or the namespace"
            }
            Self::ActorUnavailable => {
                "call again if the method may run twice; the actor is being started again"
            }
            Self::Cancelled => "submit the task again if its result is still needed",
            Self::DataCorrupt => {
                "check the versions of both programs, then the memory and disks of the node named"
            }
            Self::DependencyFailed => {
                "mend the cause named below; the arguments of this task were never computed"
            }
            Self::Disconnected => "check that the node still runs: `tharsis status`",
            Self::FunctionNotFound => {
                "link the crate that defines the function into the program that runs it"
            }
            Self::GetTimeout => "wait longer, or ask `tharsis status` what the task waits for",
            Self::GroupNotFound => {
                "make it with `create_named` or `get_or_create`, or correct the name or the namespace"
            }
            Self::GroupRemoved => "make another placement group, and keep it while its tasks run",
            Self::Infeasible => "lower the request, or add a node that has the resource named",
            Self::Internal => "this is a defect of Tharsis: please report it with the text above",
            Self::InUse => "choose another one, or stop the process that has it",
            Self::InvalidArgument => "correct what is named above",
            Self::InvalidReference => "use references only in the session that made them",
            Self::LineageEvicted => {
                "give the node more memory for lineage, or keep fewer intermediate values"
            }
            Self::NameTaken => {
                "choose another name, take what has it with `find` or `get_or_create`, or end that"
            }
            Self::NodeDied => "allow retries, or look at the node's log",
            Self::NodeNotFound => {
                "choose a node that `tharsis status` lists, or make the placement a soft one"
            }
            Self::ObjectFreed => "keep a clone of the reference for as long as the value is read",
            Self::ObjectLost => "allow retries, so that lost values can be computed again",
            Self::ObjectTooLarge => "split the value, or start the node with a larger store",
            Self::OutOfDisk => {
                "free space in the spill directories named, or start the node with more of them"
            }
            Self::OutOfMemory => {
                "lower the task's use of memory, say what it needs with `memory_bytes`, or raise the memory limit of the node"
            }
            Self::Panicked => "mend the function; the place of the panic is named above",
            Self::ResourceExhausted => "ask for less, or raise the limit named above",
            Self::RetriesExhausted => "allow more retries, and find out why values are lost so often",
            Self::ReturnsMismatch => "make the function return as many values as `num_returns` says",
            Self::Shutdown => "start a new runtime with `init`",
            Self::StoreFull => "drop references that are not needed, or start the node with a larger store",
            Self::TimedOut => "raise the task's timeout, or make the task smaller",
            Self::TooManyPendingCalls => "wait for some of the calls before making more of them",
            Self::UserError => "the function itself reported this error",
            Self::VersionMismatch => "build driver and workers from the same source",
            Self::WorkerCrashed => {
                "look at the worker's last output below; allow retries if crashes are expected"
            }
            Self::WorkerStartFailed => "look at the node's log for the reason",
        }
    }

    /// Whether another attempt can succeed where this one failed through no fault of the function.
    ///
    /// Not [`Self::OutOfMemory`]: a node that is short of memory runs the task again by itself, without using
    /// up retries, and says so only when it will not.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Self::NodeDied | Self::WorkerCrashed | Self::WorkerStartFailed)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// An error value of a user's function, with its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserError {
    /// `std::any::type_name` of the error.
    pub type_name: String,
    /// The encoded error value; empty if the type cannot be encoded.
    pub payload: Vec<u8>,
}

/// The place of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the task.
    pub task_name: String,
    /// Id of the task.
    pub task: Option<TaskId>,
    /// `file:line` of the call that submitted it.
    pub call_site: String,
    /// The node it ran on.
    pub node: Option<NodeId>,
    /// The process it ran in.
    pub pid: Option<u32>,
    /// Number of the attempt.
    pub attempt: Attempt,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The facts, in one line.
    pub message: String,
    /// The place of the failure.
    pub origin: Option<Box<Origin>>,
    /// The last output of a worker that died.
    pub log_tail: String,
    /// The user's error value, for [`FailureKind::UserError`].
    pub user: Option<UserError>,
    /// Whether the method ran, for a call of an actor.
    pub executed: Option<Executed>,
    /// The failure behind this one.
    cause: Option<Box<Failure>>,
    /// Number of failures between this one and its cause.
    left_out: u32,
}

/// Whether the method of a failed call of an actor ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Executed {
    /// It was never started.
    No,
    /// It may have been started, and may have had effects.
    Unknown,
    /// It ran, and failed itself.
    Yes,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "no",
            Self::Unknown => "unknown",
            Self::Yes => "yes",
        })
    }
}

impl Failure {
    /// A failure of a kind, with the facts.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let (message, log_tail) = (message.into(), String::new());
        Self { kind, message, origin: None, log_tail, user: None, executed: None, cause: None, left_out: 0 }
    }

    /// Adds where it happened, unless that is known already.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin.get_or_insert_with(|| Box::new(origin));
        self
    }

    /// Adds the last output of the worker.
    #[must_use]
    pub fn with_log_tail(mut self, tail: impl Into<String>) -> Self {
        self.log_tail = tail.into();
        self
    }

    /// Adds whether the method of the actor ran.
    #[must_use]
    pub fn with_executed(mut self, executed: Executed) -> Self {
        self.executed = Some(executed);
        self
    }

    /// Adds the failure behind this one. Of a chain that becomes longer than [`LINKS_MAX`] the middle is left
    /// out.
    #[must_use]
    pub fn because(mut self, cause: Self) -> Self {
        let links = 1 + cause.links().count();
        self.cause = Some(Box::new(cause));
        let mut last_of_head = &mut self;
        for _ in 1..LINKS_MAX / 2 {
            match last_of_head.cause {
                Some(ref mut next) => last_of_head = next,
                None => break,
            }
        }
        for _ in LINKS_MAX..links {
            last_of_head.leave_out_next();
        }
        self
    }

    /// Failures as one chain, the outermost first; none without any.
    pub fn chain(failures: impl DoubleEndedIterator<Item = Self>) -> Option<Self> {
        failures.rev().reduce(|behind, failure| failure.because(behind))
    }

    /// The failure behind this one.
    #[must_use]
    pub fn behind(&self) -> Option<&Self> {
        self.cause.as_deref()
    }

    /// Number of failures between this one and [`Failure::behind`] that were left out.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Notes that failures between this one and its cause were left out.
    #[must_use]
    pub fn with_left_out(mut self, count: u32) -> Self {
        self.left_out = count;
        self
    }

    /// The same without what is behind it.
    #[must_use]
    pub fn without_cause(mut self) -> Self {
        self.cause = None;
        self.left_out = 0;
        self
    }

    /// This failure and those behind it.
    pub fn links(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |link| link.behind())
    }

    /// Whether it says that all copies of an object are gone.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.kind == FailureKind::ObjectLost
    }

    /// The failure at the end of the chain of causes.
    #[must_use]
    pub fn root(&self) -> &Self {
        self.links().last().unwrap_or(self)
    }

    fn leave_out_next(&mut self) {
        if let Some(next) = self.cause.take() {
            self.left_out = self.left_out.saturating_add(next.left_out).saturating_add(1);
            self.cause = next.cause;
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind)?;
        // The message of a panic may be any text.
        for (number, line) in self.message.lines().enumerate() {
            let head = if number == 0 { "" } else { "\n    | " };
            write!(f, "{head}{}", Shown(line))?;
        }
        if let Some(origin) = &self.origin {
            write!(f, "\n  task {}", origin.task_name)?;
            if let Some(task) = origin.task {
                write!(f, " ({task})")?;
            }
            write!(f, ", attempt {}", origin.attempt)?;
            if !origin.call_site.is_empty() {
                write!(f, ", submitted at {}", origin.call_site)?;
            }
            if let Some(node) = origin.node {
                write!(f, ", on node {node}")?;
            }
            if let Some(pid) = origin.pid {
                write!(f, ", in process {pid}")?;
            }
        }
        if let Some(executed) = self.executed {
            write!(f, "\n  executed: {executed}")?;
        }
        if !self.log_tail.is_empty() {
            write!(f, "\n  last output of the worker:")?;
            for line in self.log_tail.lines() {
                write!(f, "\n    | {}", Shown(line))?;
            }
        }
        if let Some(cause) = &self.cause {
            if 0 < self.left_out {
                write!(f, "\n  ... {} more failures, left out", self.left_out)?;
            }
            write!(f, "\n  caused by: {cause}")
        } else {
            write!(f, "\n  what to do: {}", self.kind.advice())
        }
    }
}

impl std::error::Error for Failure {}

impl From<BadResource> for Failure {
    fn from(bad: BadResource) -> Self {
        Self::new(FailureKind::InvalidArgument, bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_place_cause_and_advice_and_escapes_output() {
        let root = Failure::new(FailureKind::UserError, "no such file").at(Origin {
            task_name: "load".into(),
            call_site: "main.rs:7".into(),
            attempt: 2,
            ..Origin::default()
        });
        let failure = Failure::new(FailureKind::DependencyFailed, "argument 0 of `sum` failed")
            .with_log_tail("\u{1b}[31mred: thread 'main'")
            .because(root);
        let text = failure.to_string();
        for part in
            ["DependencyFailed", "argument 0", "caused by: UserError", "main.rs:7", "attempt 2", "what to do"]
        {
            assert!(text.contains(part), "{part} missing in {text}");
        }
        assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}[31mred: thread 'main'"), "{text}");
        let panic = Failure::new(FailureKind::Panicked, "\u{1b}[31m\"red\"\nWorkerCrashed: no").to_string();
        assert!(panic.starts_with("Panicked: \\u{1b}[31m\"red\"\n    | WorkerCrashed: no\n"), "{panic}");
        assert_eq!(failure.root().kind, FailureKind::UserError);
    }

    fn nested(depth: usize) -> Failure {
        let link = |n: usize| Failure::new(FailureKind::UserError, n.to_string());
        (1..depth).fold(link(0), |cause, n| link(n).because(cause))
    }

    #[test]
    fn a_chain_of_any_length_keeps_its_ends_and_counts_the_rest() {
        for depth in [1, 2, LINKS_MAX - 1, LINKS_MAX, LINKS_MAX + 1, LINKS_READ_MAX + 1, 10_000] {
            let failure = nested(depth);
            let count = failure.links().count();
            assert_eq!(count, depth.min(LINKS_MAX));
            let left_out: u32 = failure.links().map(Failure::left_out).sum();
            assert_eq!(count + left_out as usize, depth);
            assert_eq!(
                (failure.message.clone(), failure.root().message.as_str()),
                ((depth - 1).to_string(), "0")
            );
        }
        let failure = nested(100);
        let messages: Vec<_> = failure.links().map(|link| link.message.as_str()).collect();
        assert_eq!(messages[..8], ["99", "98", "97", "96", "95", "94", "93", "92"]);
        assert_eq!(messages[8..], ["7", "6", "5", "4", "3", "2", "1", "0"]);
        assert!(
            failure.to_string().contains("\n  ... 84 more failures, left out\n  caused by: UserError: 7")
        );
    }

    /// A record of a hostile worker: a few bytes a link, and more links than any stack has room for.
    #[test]
    fn bytes_of_a_long_chain_are_refused_and_those_of_ours_are_read() {
        let failure = nested(100);
        let bytes = postcard::to_stdvec(&failure).unwrap();
        assert_eq!(postcard::from_bytes::<Failure>(&bytes), Ok(failure));
        let link = postcard::to_stdvec(&nested(1)).unwrap()[1..].to_vec();
        for (count, is_read) in
            [(0, false), (LINKS_READ_MAX, true), (LINKS_READ_MAX + 1, false), (1 << 20, false)]
        {
            let mut bytes = postcard::to_stdvec(&count).unwrap();
            (0..count).for_each(|_| bytes.extend_from_slice(&link));
            let read = postcard::from_bytes::<Failure>(&bytes);
            assert_eq!(read.is_ok(), is_read, "{count}");
            assert!(read.is_err() || read.unwrap().links().count() == LINKS_MAX);
        }
    }

    #[test]
    fn every_kind_is_listed_once() {
        let mut names: Vec<_> = FailureKind::ALL.iter().map(ToString::to_string).collect();
        names.dedup();
        assert_eq!(names.len(), FailureKind::ALL.len());
    }
}
