//! Whether the tables can be written now: what the last write said.
//!
//! Reads and renewals of leases go on while a disk or an etcd is full, so nothing else shows that no node
//! joins, no job begins, and nobody is declared dead.

use crate::backend::{Answer, Backend, Op, StoreLease, Txn, TxnResult, Watch};
use crate::error::StoreError;
use crate::tables::VALUES;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A back end, and what its last write said.
#[derive(Debug)]
pub(super) struct Noted {
    inner: Arc<dyn Backend>,
    /// The tables have no room for what was to be put. Leases are granted all the same.
    is_full: AtomicBool,
    /// The last write failed for another reason.
    fails: AtomicBool,
    /// The highest revision that was shown.
    revision: AtomicU64,
    /// A later answer showed a lower one.
    went_back: AtomicBool,
}

/// Kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Lease,
    Put,
}

impl Noted {
    pub(super) fn new(inner: Arc<dyn Backend>) -> Noted {
        Noted {
            inner,
            is_full: AtomicBool::new(false),
            fails: AtomicBool::new(false),
            revision: AtomicU64::new(0),
            went_back: AtomicBool::new(false),
        }
    }

    /// Whether the revision went back: the back end was restored to an earlier state meanwhile.
    pub(super) fn went_back(&self) -> bool {
        self.went_back.load(Ordering::Relaxed)
    }

    /// All are told that the revision went back.
    pub(super) fn went_on(&self) {
        self.went_back.store(false, Ordering::Relaxed);
    }

    /// Compares the revision of an answer with the highest one that was shown before the request was made.
    fn note_revision(&self, before: u64, revision: u64) {
        // An answer without a revision says nothing.
        if before <= revision || revision == 0 {
            self.revision.fetch_max(revision, Ordering::Relaxed);
        } else {
            self.revision.store(revision, Ordering::Relaxed);
            self.went_back.store(true, Ordering::Relaxed);
        }
    }

    async fn carry_out(&self, txn: Txn) -> Result<TxnResult, StoreError> {
        let before = self.revision.load(Ordering::Relaxed);
        let result = self.inner.txn(txn).await?;
        self.note_revision(before, result.revision);
        Ok(result)
    }

    /// Whether the last write was carried out, or refused for a reason of its own.
    pub(super) fn is_writable(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed) && !self.fails()
    }

    /// Whether the last write failed, and not because there was no room for it. That it is over shows in any
    /// write; that there is room again shows in the next put alone.
    pub(super) fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    fn note<T>(&self, write: Write, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        let before = self.is_writable();
        let is_without_room = matches!(outcome, Err(StoreError::NoSpace { .. }));
        let fails = outcome.as_ref().is_err_and(ends_writes) && !is_without_room;
        self.fails.store(fails, Ordering::Relaxed);
        if is_without_room || write == Write::Put && outcome.is_ok() {
            self.is_full.store(is_without_room, Ordering::Relaxed);
        }
        if self.is_writable() != before {
            match &outcome {
                Err(error) => tracing::error!(%error, "the tables of the cluster cannot be written"),
                Ok(_) => tracing::warn!("the tables of the cluster can be written again"),
            }
        }
        outcome
    }
}

/// Whether an error says that others would fail as well.
fn ends_writes(error: &StoreError) -> bool {
    match error {
        StoreError::Connect { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Deadline { .. }
        | StoreError::Io { .. }
        | StoreError::NoSpace { .. }
        | StoreError::OutOfSpace { .. }
        | StoreError::Unavailable { .. } => true,
        StoreError::Closed
        | StoreError::ClusterMismatch { .. }
        | StoreError::Contention { .. }
        | StoreError::DuplicateKey { .. }
        | StoreError::ForeignOwner { .. }
        | StoreError::Format { .. }
        | StoreError::InUse { .. }
        | StoreError::KeyLength { .. }
        | StoreError::LaterTables { .. }
        | StoreError::LeaseNotFound { .. }
        | StoreError::LeaseTtl { .. }
        | StoreError::TooMany { .. }
        | StoreError::ValueLength { .. } => false,
    }
}

impl Backend for Noted {
    fn txn(&self, txn: Txn) -> Answer<'_, TxnResult> {
        // A full store still deletes.
        let mut puts = txn.success.iter().filter_map(|op| match op {
            Op::Put { key, .. } => Some(key.starts_with(VALUES.as_bytes())),
            _ => None,
        });
        let Some(is_value) = puts.next() else { return Box::pin(self.carry_out(txn)) };
        Box::pin(async move {
            match self.carry_out(txn).await {
                // Nothing was to be written, as it turned out.
                Ok(result) if !result.succeeded => Ok(result),
                // The values of users have a limit of their own.
                Err(error @ StoreError::NoSpace { .. }) if is_value => Err(error),
                other => self.note(Write::Put, other),
            }
        })
    }

    fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch> {
        self.inner.watch(prefix, from_revision)
    }

    fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)> {
        Box::pin(async move { self.note(Write::Lease, self.inner.lease_grant(ttl).await) })
    }

    fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()> {
        self.inner.lease_keep_alive(lease)
    }

    fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()> {
        // A full store still takes it.
        self.inner.lease_revoke(lease)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Compare;
    use crate::embedded::Embedded;
    use crate::keyspace::EmbeddedLimits;
    use crate::tables;

    #[tokio::test]
    async fn a_store_that_takes_no_write_says_so_until_it_takes_one() {
        let limits = EmbeddedLimits { bytes_max: 400, ..EmbeddedLimits::default() };
        let noted = Noted::new(Arc::new(Embedded::memory(limits)));
        let put = |key: &'static str| Txn::always(vec![Op::put(key, vec![0; 100])]);
        noted.txn(put("a")).await.unwrap();
        assert!(noted.is_writable());
        noted.txn(put("b")).await.unwrap_err();
        assert!(!noted.is_writable());
        // A read, and a write that is not made after all, say nothing of what could be written.
        noted.txn(tables::get(b"a".to_vec())).await.unwrap();
        let absent = Compare::Absent(b"a".to_vec());
        assert!(!noted.txn(put("a").when(absent)).await.unwrap().succeeded);
        // There is room for a lease all the same.
        noted.lease_grant(Duration::from_secs(10)).await.unwrap();
        assert!(!noted.is_writable() && !noted.fails());
        noted.txn(Txn::always(vec![Op::Delete(b"a".to_vec())])).await.unwrap();
        assert!(!noted.is_writable());
        noted.txn(put("b")).await.unwrap();
        assert!(noted.is_writable());
        // A failure that is over with the next write of any kind.
        let cause = StoreError::Unavailable { what: "a test", cause: String::new() };
        noted.note::<()>(Write::Put, Err(cause)).unwrap_err();
        assert!(!noted.is_writable() && noted.fails());
        noted.lease_grant(Duration::from_secs(10)).await.unwrap();
        assert!(noted.is_writable());
        // A refusal of one write alone.
        noted.lease_grant(Duration::ZERO).await.unwrap_err();
        assert!(noted.is_writable());
    }
}
