//! Errors of the store.

use std::path::PathBuf;
use std::time::Duration;

/// Error of an operation of a back end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The back end was closed.
    #[error("the store is closed")]
    Closed,
    /// The key space belongs to another cluster.
    #[error(
        "the key space at {place} belongs to cluster {found}, not to {expected}: use another name or place"
    )]
    ClusterMismatch {
        /// Place of the key space.
        place: String,
        /// The cluster that was expected.
        expected: String,
        /// The cluster that owns it.
        found: String,
    },
    /// None of the servers can be used.
    #[error("cannot use the store at {}: {cause}", endpoints.join(", "))]
    Connect {
        /// The servers that were tried.
        endpoints: Vec<String>,
        /// The error of each of them.
        cause: String,
    },
    /// Other writers changed the same keys in every attempt.
    #[error("{what}: given up after {attempts} attempts, others changed the same keys each time")]
    Contention {
        /// The action that failed.
        what: &'static str,
        /// Number of attempts made.
        attempts: usize,
    },
    /// A stored value cannot be read.
    #[error("stored {what} is damaged: {problem}")]
    Corrupt {
        /// A key or part of the file.
        what: String,
        /// The fault that was found.
        problem: String,
    },
    /// The back end did not answer in time; the operation may have been carried out.
    #[error("{what}: no answer of the store within {} ms", deadline.as_millis())]
    Deadline {
        /// The action that failed.
        what: &'static str,
        /// Longest wait for the answer.
        deadline: Duration,
    },
    /// A transaction writes one key twice.
    #[error("key {key:?} is written twice in one transaction")]
    DuplicateKey {
        /// The key, as text.
        key: String,
    },
    /// The key space belongs to a cluster whose members trust somebody else.
    #[error(
        "the key space at {place} is that of a cluster with another owner ({found}, this one is of {expected}): give \
         this cluster a name of its own with --cluster, or copy the authority's folder to this machine. If that \
         owner is gone for good, remove the note of it: etcdctl del /tharsis/NAME/meta/owner"
    )]
    ForeignOwner {
        /// Place of the key space.
        place: String,
        /// The owner of this control store.
        expected: String,
        /// The owner that was found.
        found: String,
    },
    /// The file has the format of another version of this store.
    #[error("{} has format {found}, this release reads format {wanted}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        wanted: u64,
    },
    /// Another process has the file open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written. Earlier commits are still in it.
    #[error("{}: {}{cause}", path.display(), if *is_full { "its file system has no room: " } else { "" })]
    Io {
        /// The file.
        path: PathBuf,
        /// Whether there is no room for it.
        is_full: bool,
        /// Why.
        cause: String,
    },
    /// A key is empty or too long.
    #[error("a key has {len_bytes} bytes, it must have 1 to {limit_bytes}")]
    KeyLength {
        /// Its length.
        len_bytes: usize,
        /// The largest allowed length.
        limit_bytes: usize,
    },
    /// The tables were written by a later release, which this one does not understand.
    #[error(
        "the tables at {place} are of a later release (version {found}, this one knows {wanted}): use that one"
    )]
    LaterTables {
        /// Place of the key space.
        place: String,
        /// Their version.
        found: u64,
        /// The latest that is known here.
        wanted: u64,
    },
    /// There is no such lease, or it has ended.
    #[error("lease {lease:x} does not exist or has run out")]
    LeaseNotFound {
        /// The lease.
        lease: u64,
    },
    /// A lease would be too short or too long.
    #[error("a lease of {} ms was asked for, it must be {} to {} ms", ttl.as_millis(), min.as_millis(), max.as_millis())]
    LeaseTtl {
        /// The time to live that was requested.
        ttl: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// The store is full.
    #[error("the store is full: {needed_bytes} bytes are needed, the limit is {limit_bytes}")]
    NoSpace {
        /// Bytes with the change.
        needed_bytes: usize,
        /// Most bytes allowed.
        limit_bytes: usize,
    },
    /// etcd refuses writes until an operator makes room.
    #[error(
        "{what}: etcd is out of space: {cause}; compact its history, defragment every member, then disarm the alarm \
         (etcdctl compact, defrag, alarm disarm), or raise --quota-backend-bytes"
    )]
    OutOfSpace {
        /// The action that failed.
        what: &'static str,
        /// The message of etcd.
        cause: String,
    },
    /// More items than the limit.
    #[error("{count} {what}, the limit is {limit}")]
    TooMany {
        /// Kind of the items.
        what: &'static str,
        /// Number of items found.
        count: usize,
        /// Largest number of items allowed.
        limit: usize,
    },
    /// The back end cannot be reached now; the same operation may succeed later.
    #[error("{what}: the store is not available: {cause}")]
    Unavailable {
        /// The action that failed.
        what: &'static str,
        /// Why.
        cause: String,
    },
    /// A value is too large.
    #[error("a value has {len_bytes} bytes, the limit is {limit_bytes}")]
    ValueLength {
        /// Its length.
        len_bytes: usize,
        /// The largest allowed length.
        limit_bytes: usize,
    },
}

impl StoreError {
    /// Whether the same operation may succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Deadline { .. } | Self::Contention { .. })
    }

    /// Whether the disk under the file has no room.
    pub(crate) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { is_full: true, .. })
    }
}

#[cfg(any(feature = "etcd", feature = "file"))]
/// An error with all its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
