//! The interface that the tables need from a store: transactions, watches from a revision, leases.
//!
//! The terms are etcd's, because etcd is the store that several machines can share; the embedded store has
//! the same semantics. A *revision* counts the transactions that changed something. A key's *version* counts
//! the writes to it since it was made, from 1. A *lease* must be renewed before it expires; when it expires,
//! the keys written under it are deleted.
//!
//! Functions return boxed futures, so that one service and one conformance suite are compiled once, for
//! `Arc<dyn Backend>`. The cost of the box is negligible beside a commit. Refused: a type parameter through
//! every layer, which would compile the service once per back end, and an enum of back ends, which would
//! close the set.

use crate::error::StoreError;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tharsis_protos::control::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use tharsis_types::limits::NAME_BYTES_MAX;

/// Largest key in bytes: a key of the key-value table, with its namespace and table in front.
pub const STORE_KEY_BYTES_MAX: usize = KEY_BYTES_MAX + NAME_BYTES_MAX + 64;
/// Largest value in bytes.
pub const STORE_VALUE_BYTES_MAX: usize = VALUE_BYTES_MAX;
/// Most comparisons, and most operations per branch, of one transaction: etcd's own limit.
pub const TXN_PARTS_MAX: usize = 128;
/// Most entries of one range.
pub const RANGE_ENTRIES_MAX: usize = 2048;
/// The shortest lease; a shorter one would run out between two keep-alives of a busy machine.
pub const LEASE_TTL_MIN: Duration = Duration::from_millis(100);
/// The longest lease.
pub const LEASE_TTL_MAX: Duration = Duration::from_secs(24 * 3600);

/// A pending answer. Dropping it ends the wait, but does not cancel the operation.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Changes under a prefix, one item per revision. Items are pulled, so a slow watcher delays nothing: if the
/// history has moved past it, it is told to list again. Ends after an error, after [`WatchItem::Compacted`],
/// and when the back end is closed.
pub type Watch = BoxStream<'static, Result<WatchItem, StoreError>>;

/// A lease of a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StoreLease(pub u64);

/// A store of keys and values with revisions, watches and leases.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Evaluates the comparisons, then carries out one branch atomically.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was changed, unless the error says that this is unknown.
    fn txn(&self, txn: Txn) -> Answer<'_, TxnResult>;

    /// Changes of keys that begin with `prefix`, from `from_revision` (at least 1) on.
    ///
    /// # Errors
    /// [`StoreError`] if the watch cannot be set up. Later errors come as items.
    fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch>;

    /// A new lease, and its actual length (never shorter than requested).
    ///
    /// # Errors
    /// [`StoreError::LeaseTtl`] and others.
    fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)>;

    /// Renews a lease for its full length.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`] and others.
    fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()>;

    /// Ends a lease at once and deletes its keys.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`] and others.
    fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()>;

    /// Ends watches, joins background tasks, and closes files. Afterwards every call returns
    /// [`StoreError::Closed`].
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Storage location of the keys, for messages to users.
    fn place(&self) -> String;
}

/// Comparisons and two branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// The first branch is taken if all of these hold.
    pub compare: Vec<Compare>,
    /// Operations if all hold.
    pub success: Vec<Op>,
    /// Operations if one does not hold.
    pub failure: Vec<Op>,
}

/// A condition on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key does not exist.
    Absent(Vec<u8>),
    /// The key exists and has this value.
    Value(Vec<u8>, Vec<u8>),
    /// The key exists and has this version.
    Version(Vec<u8>, u64),
}

/// One operation of a transaction. Operations see the effects of earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Removes a key, if it exists.
    Delete(Vec<u8>),
    /// Reads a key.
    Get(Vec<u8>),
    /// Writes a key, under the given lease; without one, the key leaves its earlier lease.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// The lease.
        lease: Option<StoreLease>,
    },
    /// Reads keys in order.
    Range(Range),
}

/// Keys that begin with a prefix, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The prefix of the keys.
    pub prefix: Vec<u8>,
    /// Only those after this key.
    pub after: Option<Vec<u8>>,
    /// Most entries to return, up to [`RANGE_ENTRIES_MAX`].
    pub limit: usize,
    /// Whether to leave the values out.
    pub keys_only: bool,
}

/// The result of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnResult {
    /// Whether all comparisons held.
    pub succeeded: bool,
    /// The store's revision after the transaction.
    pub revision: u64,
    /// One response per operation of the branch that was taken.
    pub responses: Vec<Response>,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The result of a delete.
    Deleted {
        /// Whether the key existed.
        existed: bool,
    },
    /// The result of a get.
    Found(Option<KeyValue>),
    /// The result of a put.
    Put,
    /// The result of a range.
    Range {
        /// The entries found, in order.
        entries: Vec<KeyValue>,
        /// Whether the limit cut it short.
        more: bool,
    },
}

/// A key with its value and metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// The value; empty if only keys were asked for.
    pub value: Vec<u8>,
    /// Writes since the key was made, from 1.
    pub version: u64,
    /// The revision of the last write.
    pub revision: u64,
    /// The lease of the key.
    pub lease: Option<StoreLease>,
}

/// An item that a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// All changes under the prefix that one revision made.
    Changed {
        /// The revision.
        revision: u64,
        /// The changes.
        events: Vec<WatchEvent>,
    },
    /// The changes from the wanted revision on are gone. List again and watch from the new revision.
    Compacted {
        /// Changes up to and with this revision are gone.
        at: u64,
    },
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key was removed, or its lease ran out.
    Deleted(Vec<u8>),
    /// The key was written.
    Put(KeyValue),
}

impl Txn {
    /// A transaction that carries out `ops` unconditionally.
    #[must_use]
    pub fn always(ops: Vec<Op>) -> Self {
        Self { success: ops, ..Self::default() }
    }

    /// Adds a comparison that must hold for the transaction to be carried out.
    #[must_use]
    pub fn when(mut self, compare: Compare) -> Self {
        self.compare.push(compare);
        self
    }

    /// Adds an operation for when a comparison does not hold.
    #[must_use]
    pub fn otherwise(mut self, op: Op) -> Self {
        self.failure.push(op);
        self
    }

    /// Whether neither branch changes anything.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.success.iter().chain(&self.failure).all(|op| matches!(op, Op::Get(_) | Op::Range(_)))
    }

    /// Whether it is within the limits that all back ends share.
    ///
    /// # Errors
    /// [`StoreError`] that says which limit.
    pub fn check(&self) -> Result<(), StoreError> {
        for parts in [self.compare.len(), self.success.len(), self.failure.len()] {
            if parts > TXN_PARTS_MAX {
                let what = "parts of one transaction";
                return Err(StoreError::TooMany { what, count: parts, limit: TXN_PARTS_MAX });
            }
        }
        self.compare.iter().try_for_each(|compare| check_key(compare.key()))?;
        check_branch(&self.success)?;
        check_branch(&self.failure)
    }
}

impl Compare {
    /// The key of the condition.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Absent(key) | Self::Value(key, _) | Self::Version(key, _) => key,
        }
    }
}

impl Op {
    /// Writes a key under no lease.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self::Put { key: key.into(), value: value.into(), lease: None }
    }

    /// Reads all keys that begin with `prefix`, at most [`RANGE_ENTRIES_MAX`].
    pub fn range(prefix: impl Into<Vec<u8>>) -> Self {
        Self::Range(Range { prefix: prefix.into(), after: None, limit: RANGE_ENTRIES_MAX, keys_only: false })
    }
}

#[cfg(feature = "etcd")]
impl Op {
    pub(crate) fn lease(&self) -> Option<StoreLease> {
        match self {
            Self::Put { lease, .. } => *lease,
            Self::Delete(_) | Self::Get(_) | Self::Range(_) => None,
        }
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Self::Get(_) | Self::Range(_))
    }
}

impl WatchEvent {
    /// The key that changed.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Deleted(key) => key,
            Self::Put(entry) => &entry.key,
        }
    }
}

/// Whether a lease may have this length.
///
/// # Errors
/// [`StoreError::LeaseTtl`].
pub fn check_ttl(ttl: Duration) -> Result<(), StoreError> {
    if (LEASE_TTL_MIN..=LEASE_TTL_MAX).contains(&ttl) {
        return Ok(());
    }
    Err(StoreError::LeaseTtl { ttl, min: LEASE_TTL_MIN, max: LEASE_TTL_MAX })
}

fn check_branch(ops: &[Op]) -> Result<(), StoreError> {
    let mut written = BTreeSet::new();
    for op in ops {
        match op {
            Op::Get(key) => check_key(key)?,
            Op::Range(range) => check_range(range)?,
            Op::Delete(key) | Op::Put { key, .. } => {
                check_key(key)?;
                if !written.insert(key) {
                    return Err(StoreError::DuplicateKey { key: String::from_utf8_lossy(key).into_owned() });
                }
            }
        }
        if let Op::Put { value, .. } = op
            && value.len() > STORE_VALUE_BYTES_MAX
        {
            return Err(StoreError::ValueLength {
                len_bytes: value.len(),
                limit_bytes: STORE_VALUE_BYTES_MAX,
            });
        }
    }
    Ok(())
}

fn check_key(key: &[u8]) -> Result<(), StoreError> {
    if (1..=STORE_KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    Err(StoreError::KeyLength { len_bytes: key.len(), limit_bytes: STORE_KEY_BYTES_MAX })
}

fn check_range(range: &Range) -> Result<(), StoreError> {
    if range.limit <= RANGE_ENTRIES_MAX {
        return Ok(());
    }
    Err(StoreError::TooMany { what: "entries of one range", count: range.limit, limit: RANGE_ENTRIES_MAX })
}
