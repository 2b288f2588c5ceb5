//! Journals: the last transitions of each machine, for people who ask what happened to something.
//!
//! A machine that owns a state notes its transitions: the time, the subject and the fact. An entry is a plain
//! copy of 48 bytes in a ring, so noting one takes a few nanoseconds and no allocation. Text is made when
//! somebody asks ([`crate::Node::story`]).
//!
//! A ring is short: a flood of tasks overwrites it within milliseconds. Ordinary facts and rare ones
//! therefore have separate rings ([`Fact::is_ordinary`]), so a failure of one task is not overwritten by a
//! thousand tasks that succeed. For a task that takes the shortest way (without arguments, queued once and
//! sent once, with a small value) only the end is noted: the task itself knows how long it has been in its
//! present state.

use crate::Now;
use std::fmt;
use tharsis_types::{ClientId, JobId, LeaseId, NodeId, ObjectId, TaskId};

/// Entries of a ring.
const ENTRIES_MAX: usize = 512;

/// The subject of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A lease of a worker here, by the node that asked for it.
    Lease(NodeId, LeaseId),
    /// A value.
    Object(ObjectId),
    /// Another node.
    Peer(NodeId),
    /// Tasks of one shape, by their job and the number of the shape.
    Shape(JobId, u32),
    /// A call.
    Task(TaskId),
}

/// The transition that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A task was sent and goes back into its queue.
    BackInQueue,
    /// A client cancelled a task that was already sent.
    CancelWanted,
    /// A node has a copy of an object.
    CopyAdded(NodeId),
    /// The copy of a node is given up, as none can be read: it is freed there.
    CopyGivenUp(NodeId),
    /// A node has no copy of an object any more.
    CopyGone(NodeId),
    /// No copy of an object can be read.
    CopiesLost,
    /// A lease has a worker.
    Employed(ClientId),
    /// A task ended, and its outputs have their values.
    Ended,
    /// A task ended while it stood in a queue.
    EndedInQueue,
    /// A copy was evicted to make room in the store.
    Evicted,
    /// An object has a failure instead of a value.
    Failed,
    /// A task is not kept any more: its outputs cannot be computed again.
    Forgotten,
    /// Nothing refers to an object any more.
    Freed,
    /// A peer joined.
    Joined,
    /// A task ended, and is kept so that its outputs can be computed again.
    Kept,
    /// A node was asked for a lease.
    LeaseAsked(NodeId),
    /// A node has no room for a lease.
    LeaseDenied(NodeId),
    /// A lease ended.
    LeaseEnded,
    /// A node started no worker for a lease.
    LeaseFailed(NodeId),
    /// A node granted a lease.
    LeaseGranted(NodeId),
    /// A node wants a lease back.
    LeaseRecalled(NodeId),
    /// A request for a lease waits for resources.
    LeaseWaits,
    /// A peer is gone.
    Left,
    /// The owner of an object was asked for its state.
    OwnerAsked(NodeId),
    /// An object that another node owned is now owned by this node: its task runs again here.
    OwnerBefore(NodeId),
    /// A task waits for this number of milliseconds before it is tried again.
    Paused(u64),
    /// A lease has its resources, and waits for its worker.
    Placed,
    /// An object was read into the store.
    PullArrived,
    /// An object could not be read from a node.
    PullFailed(NodeId),
    /// An object cannot be read from any node.
    PullGivenUp,
    /// An object is read into the store, from another node or from the disk of this one.
    PullStarted(NodeId),
    /// An object that is not here is needed.
    PullWanted,
    /// A task was queued.
    Queued,
    /// A node was asked for permission to read an object from it.
    ReadAsked(NodeId),
    /// An object is read from a node.
    ReadBegun(NodeId),
    /// A transfer waits for room in the store.
    RoomAwaited,
    /// The worker of a run is killed because of it.
    RunDoomed(ClientId),
    /// A run ended.
    RunEnded(ClientId),
    /// A run was sent to its worker.
    RunSent(ClientId),
    /// This number of arguments of a run is not on this node.
    RunWaits(u32),
    /// A kept task runs again, as this attempt, to compute lost values.
    RunsAgain(u32),
    /// A task was sent under a lease.
    Sent(LeaseId),
    /// A copy is being written to disk.
    SpillBegun,
    /// A copy was not written to disk.
    SpillFailed,
    /// A copy was written to disk.
    Spilled,
    /// An object has a value of this many bytes in a store.
    Stored(u64),
    /// A task is tried again, as this attempt.
    TriedAgain(u32),
    /// A task waits for this number of arguments.
    Waits(u32),
    /// A task came back, and waits for this number of arguments that are computed again.
    WaitsAgain(u32),
}

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time of the transition.
    pub at: Now,
    /// Subject of the transition.
    pub about: About,
    /// The transition that it records.
    pub fact: Fact,
}

const _: () = assert!(size_of::<Entry>() == 48);

/// The last transitions of one machine.
#[derive(Debug, Default)]
pub struct Journal {
    now: Now,
    ordinary: Ring,
    rare: Ring,
}

/// The last entries, the oldest at `next` once it is full.
#[derive(Default)]
struct Ring {
    entries: Vec<Entry>,
    next: usize,
}

impl Journal {
    /// Sets the time at which the entries that follow happen.
    pub fn tell_time(&mut self, now: Now) {
        self.now = now;
    }

    /// The time that was set last.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Notes a fact about a subject at the present time.
    #[inline]
    pub fn note(&mut self, about: About, fact: Fact) {
        let entry = Entry { at: self.now, about, fact };
        let ring = if fact.is_ordinary() { &mut self.ordinary } else { &mut self.rare };
        ring.push(entry);
    }

    /// The rare facts that are remembered, the latest first.
    pub fn latest_rare(&self) -> impl Iterator<Item = Entry> {
        self.rare.iter().rev()
    }

    /// The remembered history of one subject: ordinary facts, then rare ones, each oldest first.
    pub fn about(&self, about: About) -> impl Iterator<Item = Entry> {
        self.ordinary.iter().chain(self.rare.iter()).filter(move |entry| entry.about == about)
    }
}

impl Ring {
    #[inline]
    fn push(&mut self, entry: Entry) {
        match self.entries.get_mut(self.next) {
            Some(oldest) => *oldest = entry,
            None => self.grow(entry),
        }
        self.next = (self.next + 1) % ENTRIES_MAX;
    }

    /// Fills the ring for the first time. A ring without entries takes no memory.
    #[cold]
    fn grow(&mut self, entry: Entry) {
        if self.entries.is_empty() {
            self.entries.reserve_exact(ENTRIES_MAX);
        }
        self.entries.push(entry);
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> {
        let (newer, older) = self.entries.split_at(self.next.min(self.entries.len()));
        older.iter().chain(newer).copied()
    }
}

/// Without the entries, which are no state of a machine: stories have them.
impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Fact {
    /// Whether it happens to most tasks and objects.
    #[inline]
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::BackInQueue
                | Self::CopyAdded(_)
                | Self::Ended
                | Self::Forgotten
                | Self::Freed
                | Self::Kept
                | Self::PullArrived
                | Self::PullStarted(_)
                | Self::PullWanted
                | Self::Queued
                | Self::RunEnded(_)
                | Self::RunSent(_)
                | Self::RunWaits(_)
                | Self::Sent(_)
                | Self::Stored(_)
                | Self::Waits(_)
        )
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackInQueue => write!(f, "came back and was queued again"),
            Self::CancelWanted => write!(f, "a client cancelled it where it was sent"),
            Self::CopyAdded(node) => write!(f, "node {node} has a copy"),
            Self::CopyGivenUp(node) => write!(f, "the copy of node {node} is given up"),
            Self::CopyGone(node) => write!(f, "node {node} has no copy any more"),
            Self::CopiesLost => write!(f, "no copy can be read"),
            Self::Employed(client) => write!(f, "the lease has worker {}", client.0),
            Self::Ended => write!(f, "ended"),
            Self::EndedInQueue => write!(f, "ended in its queue"),
            Self::Evicted => write!(f, "left the store to make room"),
            Self::Failed => write!(f, "failed"),
            Self::Forgotten => write!(f, "is not kept any more"),
            Self::Freed => write!(f, "freed: nothing refers to it"),
            Self::Joined => write!(f, "joined"),
            Self::Kept => write!(f, "ended, and is kept to compute its outputs again"),
            Self::LeaseAsked(node) => write!(f, "asked node {node} for a lease"),
            Self::LeaseDenied(node) => write!(f, "node {node} denied a lease"),
            Self::LeaseEnded => write!(f, "the lease ended"),
            Self::LeaseFailed(node) => write!(f, "node {node} started no worker"),
            Self::LeaseGranted(node) => write!(f, "node {node} granted a lease"),
            Self::LeaseRecalled(node) => write!(f, "node {node} wants a lease back"),
            Self::LeaseWaits => write!(f, "the request for a lease waits for resources"),
            Self::Left => write!(f, "left"),
            Self::OwnerAsked(node) => write!(f, "asked its owner, node {node}, what it is"),
            Self::OwnerBefore(node) => {
                write!(f, "was of node {node} and is of this one: its task runs again")
            }
            Self::Paused(ms) => write!(f, "waits {ms} ms before it is tried again"),
            Self::Placed => write!(f, "the lease has its resources and waits for a worker"),
            Self::PullArrived => write!(f, "arrived in the store"),
            Self::PullFailed(node) => write!(f, "was not read from node {node}"),
            Self::PullGivenUp => write!(f, "cannot be read from any node"),
            Self::PullStarted(node) => write!(f, "to be read from node {node}"),
            Self::PullWanted => write!(f, "needed here"),
            Self::Queued => write!(f, "queued"),
            Self::ReadAsked(node) => write!(f, "asked node {node} to send it"),
            Self::ReadBegun(node) => write!(f, "being read from node {node}"),
            Self::RoomAwaited => write!(f, "has no room in the store"),
            Self::RunDoomed(client) => write!(f, "worker {} is killed because of it", client.0),
            Self::RunEnded(client) => write!(f, "over at worker {}", client.0),
            Self::RunSent(client) => write!(f, "at worker {}", client.0),
            Self::RunWaits(count) => write!(f, "arguments that are not on this node: {count}"),
            Self::RunsAgain(attempt) => write!(f, "runs again for lost values, attempt {attempt}"),
            Self::Sent(lease) => write!(f, "sent under lease {}", lease.0),
            Self::SpillBegun => write!(f, "being written to disk"),
            Self::SpillFailed => write!(f, "the disk did not take it"),
            Self::Spilled => write!(f, "on disk"),
            Self::Stored(bytes) => write!(f, "has a value of {bytes} bytes"),
            Self::TriedAgain(attempt) => write!(f, "is tried again, attempt {attempt}"),
            Self::Waits(count) => write!(f, "waits for arguments: {count}"),
            Self::WaitsAgain(count) => write!(f, "came back, as arguments are computed again: {count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(n: u64) -> About {
        About::Task(TaskId::root(JobId(1)).child(n))
    }

    #[test]
    fn the_oldest_entries_go_and_what_seldom_happens_outlives_what_always_does() {
        let mut journal = Journal::default();
        journal.tell_time(7);
        journal.note(task(0), Fact::Queued);
        journal.note(task(0), Fact::TriedAgain(1));
        for n in 0..2 * ENTRIES_MAX as u64 {
            journal.tell_time(8 + n);
            journal.note(task(1 + n % 2), Fact::Queued);
        }
        let of = |n| journal.about(task(n)).map(|entry| (entry.at, entry.fact)).collect::<Vec<_>>();
        assert_eq!(of(0), [(7, Fact::TriedAgain(1))]);
        let newer = of(2);
        assert_eq!(newer.len(), ENTRIES_MAX / 2);
        assert!(newer.iter().map(|(at, _)| at).is_sorted(), "the oldest first");
        assert_eq!(newer.last(), Some(&(7 + 2 * ENTRIES_MAX as u64, Fact::Queued)));
        assert_eq!(journal.ordinary.entries.capacity(), ENTRIES_MAX, "it never grows");
    }
}
