//! The embedded store as plain data: keys, leases and a bounded history, without a clock, a lock or a file.
//!
//! A change is first *planned*, which leaves the key space as it is, then written to the file, if any, and
//! only then *applied*. So readers and watchers only see changes that are on disk, and a failed commit leaves
//! nothing behind.

use crate::backend::{
    Compare, KeyValue, Op, Range, Response, StoreLease, Txn, TxnResult, WatchEvent, check_ttl,
};
use crate::error::StoreError;
use crate::tables::VALUES;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;
use tharsis_types::limits::MIB;
use tokio::time::Instant;

/// Approximate bytes of an entry beside its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// Limits of an embedded store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedLimits {
    /// Bytes of all keys and values; they are all in memory.
    pub bytes_max: usize,
    /// Bytes of the keys and values of users: the rest is for members, leases and jobs.
    pub values_bytes_max: usize,
    /// Changes kept for watchers.
    pub history_events_max: usize,
    /// Bytes of these changes.
    pub history_bytes_max: usize,
    /// Most leases at a time.
    pub leases_max: usize,
}

/// Keys, leases, history.
#[derive(Debug)]
pub(crate) struct KeySpace {
    limits: EmbeddedLimits,
    entries: BTreeMap<Vec<u8>, Entry>,
    used_bytes: usize,
    /// Of these, bytes of values of users.
    values_bytes: usize,
    revision: u64,
    leases: BTreeMap<u64, Lease>,
    next_lease: u64,
    history: History,
    /// When the clock was last read, see [`KeySpace::look_at_clock`].
    looked_at: Instant,
}

/// If the clock was not read for this long, the process was stopped, or had no processor.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// Interval at which the clock must be read, so that a pause can be told from an idle store.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The value and bookkeeping stored under a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) version: u64,
    pub(crate) revision: u64,
    pub(crate) lease: Option<StoreLease>,
}

/// A planned change: to be written to the file, then passed to [`KeySpace::apply`].
#[derive(Debug, Default)]
pub(crate) struct Commit {
    /// The revision after the change; the present one if no key changes.
    pub(crate) revision: u64,
    /// Changed keys with their new entries; `None` for deleted ones.
    pub(crate) keys: BTreeMap<Vec<u8>, Option<Entry>>,
    /// Changed leases with their length; `None` for those that end.
    pub(crate) leases: Vec<(u64, Option<Duration>)>,
    /// The next lease to be granted.
    pub(crate) next_lease: u64,
}

/// The next step of a watcher at some revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next changes under its prefix, with their revision.
    Changed(u64, Vec<WatchEvent>),
    /// The changes up to this revision are gone.
    Compacted(u64),
    /// No changes yet; continue from this revision.
    Wait(u64),
}

#[derive(Debug)]
struct Lease {
    ttl: Duration,
    expires: Instant,
    keys: BTreeSet<Vec<u8>>,
}

/// The last changes, one entry per revision without gaps; the newest is the present revision.
#[derive(Debug, Default)]
struct History {
    changes: VecDeque<Vec<WatchEvent>>,
    events: usize,
    bytes: usize,
    compacted: u64,
}

impl Commit {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.leases.is_empty()
    }
}

impl Default for EmbeddedLimits {
    fn default() -> Self {
        Self {
            bytes_max: 256 * MIB,
            values_bytes_max: 192 * MIB,
            history_events_max: 16_384,
            history_bytes_max: 32 * MIB,
            leases_max: 4096,
        }
    }
}

impl KeySpace {
    /// A key space read from a file. Leases restart with their full length; the history starts here.
    pub(crate) fn restored(
        limits: EmbeddedLimits,
        entries: BTreeMap<Vec<u8>, Entry>,
        leases: BTreeMap<u64, Duration>,
        counters: (u64, u64),
        now: Instant,
    ) -> Self {
        let (revision, next_lease) = counters;
        let mut leases: BTreeMap<u64, Lease> = leases
            .into_iter()
            .map(|(id, ttl)| (id, Lease { ttl, expires: now + ttl, keys: BTreeSet::new() }))
            .collect();
        for (key, entry) in &entries {
            if let Some(lease) = entry.lease.and_then(|lease| leases.get_mut(&lease.0)) {
                lease.keys.insert(key.clone());
            }
        }
        let used_bytes = entries.iter().map(|(key, entry)| size(key, entry)).sum();
        let values = entries.iter().filter(|(key, _)| is_value(key));
        let values_bytes = values.map(|(key, entry)| size(key, entry)).sum();
        let history = History { compacted: revision, ..History::default() };
        let looked_at = now;
        Self { limits, entries, used_bytes, values_bytes, revision, leases, next_lease, history, looked_at }
    }

    /// An empty key space.
    pub(crate) fn empty(limits: EmbeddedLimits, now: Instant) -> Self {
        Self::restored(limits, BTreeMap::new(), BTreeMap::new(), (1, 1), now)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The writes that turn a file that holds `found` into one that holds this. The last write to it may
    /// have failed after it reached the disk; `None` if the file differs by more: another process wrote it,
    /// or it is another file.
    pub(crate) fn difference(&self, found: &KeySpace) -> Option<Commit> {
        if found.revision != self.revision && found.revision != self.revision + 1 {
            return None;
        }
        let mut commit = self.nothing();
        let gone = found.entries.keys().filter(|key| !self.entries.contains_key(*key));
        commit.keys.extend(gone.map(|key| (key.clone(), None)));
        let changed = self.entries.iter().filter(|(key, entry)| found.entries.get(*key) != Some(*entry));
        commit.keys.extend(changed.map(|(key, entry)| (key.clone(), Some(entry.clone()))));
        let ended = found.leases.keys().filter(|id| !self.leases.contains_key(*id));
        commit.leases.extend(ended.map(|id| (*id, None)));
        let other =
            self.leases.iter().filter(|(id, lease)| found.leases.get(*id).map(|l| l.ttl) != Some(lease.ttl));
        commit.leases.extend(other.map(|(id, lease)| (*id, Some(lease.ttl))));
        Some(commit)
    }

    /// Plans a transaction: returns its commit and its result.
    pub(crate) fn plan(&self, txn: &Txn) -> Result<(Commit, TxnResult), StoreError> {
        txn.check()?;
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        let mut commit = self.nothing();
        let mut responses = Vec::new();
        for op in if succeeded { &txn.success } else { &txn.failure } {
            responses.push(self.perform(op, &mut commit)?);
        }
        if !commit.keys.is_empty() {
            commit.revision += 1;
        }
        self.check_space(&commit)?;
        let result = TxnResult { succeeded, revision: commit.revision, responses };
        Ok((commit, result))
    }

    /// Plans a new lease.
    pub(crate) fn plan_grant(&self, ttl: Duration) -> Result<(Commit, StoreLease), StoreError> {
        check_ttl(ttl)?;
        let count = self.leases.len() + 1;
        if count > self.limits.leases_max {
            return Err(StoreError::TooMany { what: "leases", count, limit: self.limits.leases_max });
        }
        let lease = self.next_lease;
        let commit = Commit { leases: vec![(lease, Some(ttl))], next_lease: lease + 1, ..self.nothing() };
        Ok((commit, StoreLease(lease)))
    }

    /// Plans the end of a lease.
    pub(crate) fn plan_revoke(&self, lease: StoreLease) -> Result<Commit, StoreError> {
        if !self.leases.contains_key(&lease.0) {
            return Err(StoreError::LeaseNotFound { lease: lease.0 });
        }
        Ok(self.end_of([lease.0]))
    }

    /// Notes the time. While the process was stopped no lease could be renewed, so that time does not count.
    pub(crate) fn look_at_clock(&mut self, now: Instant) {
        let paused = now.saturating_duration_since(self.looked_at);
        self.looked_at = self.looked_at.max(now);
        if PAUSE_MIN <= paused {
            tracing::warn!(?paused, "the control store did not run: leases end later by this time");
            self.leases.values_mut().for_each(|lease| lease.expires += paused);
        }
    }

    /// Plans the end of all leases that have expired by `now`.
    pub(crate) fn plan_expiry(&self, now: Instant) -> Commit {
        let ended = self.leases.iter().filter(|(_, lease)| lease.expires <= now).map(|(id, _)| *id);
        self.end_of(ended)
    }

    /// When the next lease expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.leases.values().map(|lease| lease.expires).min()
    }

    /// Renews a lease. The renewal is not written: all leases restart after a restart of the store. An
    /// expired lease is not renewed, because its end may be on its way to the disk.
    pub(crate) fn keep_alive(&mut self, lease: StoreLease, now: Instant) -> Result<(), StoreError> {
        self.look_at_clock(now);
        match self.leases.get_mut(&lease.0) {
            Some(found) if now < found.expires => {
                found.expires = now + found.ttl;
                Ok(())
            }
            _ => Err(StoreError::LeaseNotFound { lease: lease.0 }),
        }
    }

    /// Applies a planned change.
    pub(crate) fn apply(&mut self, commit: Commit, now: Instant) {
        debug_assert!(commit.revision >= self.revision && commit.revision <= self.revision + 1);
        for (id, ttl) in commit.leases {
            match ttl {
                Some(ttl) => {
                    self.leases.insert(id, Lease { ttl, expires: now + ttl, keys: BTreeSet::new() });
                }
                None => {
                    self.leases.remove(&id);
                }
            }
        }
        self.next_lease = commit.next_lease;
        if commit.keys.is_empty() {
            return;
        }
        self.revision = commit.revision;
        let mut events = Vec::with_capacity(commit.keys.len());
        for (key, entry) in commit.keys {
            events.push(self.replace(key, entry));
        }
        self.history.push(events);
        self.history.trim(self.revision, &self.limits);
    }

    /// The next step for a watcher of `prefix` that has seen everything before `from`.
    pub(crate) fn next_change(&self, prefix: &[u8], from: u64) -> Next {
        if from <= self.history.compacted {
            return Next::Compacted(self.history.compacted);
        }
        for revision in from..=self.revision {
            let index = usize::try_from(revision - self.history.compacted - 1).unwrap_or(usize::MAX);
            let changes = self.history.changes.get(index).map(Vec::as_slice).unwrap_or_default();
            let events: Vec<WatchEvent> =
                changes.iter().filter(|event| event.key().starts_with(prefix)).cloned().collect();
            if !events.is_empty() {
                return Next::Changed(revision, events);
            }
        }
        Next::Wait(from.max(self.revision + 1))
    }

    /// Drops the changes up to and including a revision from the history.
    pub(crate) fn compact(&mut self, at: u64) {
        self.history.forget(at.min(self.revision));
    }

    fn nothing(&self) -> Commit {
        Commit { revision: self.revision, next_lease: self.next_lease, ..Commit::default() }
    }

    fn end_of(&self, leases: impl IntoIterator<Item = u64>) -> Commit {
        let mut commit = self.nothing();
        for id in leases {
            let keys = self.leases.get(&id).map(|lease| lease.keys.iter().cloned());
            commit.keys.extend(keys.into_iter().flatten().map(|key| (key, None)));
            commit.leases.push((id, None));
        }
        commit.revision += u64::from(!commit.keys.is_empty());
        commit
    }

    fn holds(&self, compare: &Compare) -> bool {
        match compare {
            Compare::Absent(key) => !self.entries.contains_key(key),
            Compare::Value(key, value) => self.entries.get(key).is_some_and(|entry| entry.value == *value),
            Compare::Version(key, version) => {
                self.entries.get(key).is_some_and(|entry| entry.version == *version)
            }
        }
    }

    fn perform(&self, op: &Op, commit: &mut Commit) -> Result<Response, StoreError> {
        Ok(match op {
            Op::Delete(key) => {
                let existed = self.seen(key, commit).is_some();
                if existed {
                    commit.keys.insert(key.clone(), None);
                }
                Response::Deleted { existed }
            }
            Op::Get(key) => Response::Found(self.seen(key, commit).map(|entry| entry.shown(key, false))),
            Op::Put { key, value, lease } => {
                if let Some(lease) = lease.filter(|lease| !self.leases.contains_key(&lease.0)) {
                    return Err(StoreError::LeaseNotFound { lease: lease.0 });
                }
                let version = self.seen(key, commit).map_or(1, |entry| entry.version + 1);
                let entry =
                    Entry { value: value.clone(), version, revision: self.revision + 1, lease: *lease };
                commit.keys.insert(key.clone(), Some(entry));
                Response::Put
            }
            Op::Range(range) => self.range(range, commit),
        })
    }

    /// The entry of a key as the operations so far leave it.
    fn seen<'a>(&'a self, key: &[u8], commit: &'a Commit) -> Option<&'a Entry> {
        match commit.keys.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.entries.get(key),
        }
    }

    fn range(&self, range: &Range, commit: &Commit) -> Response {
        let start = match &range.after {
            Some(after) if range.prefix <= *after => Bound::Excluded(after.clone()),
            _ => Bound::Included(range.prefix.clone()),
        };
        let bounds = (start, Bound::Unbounded);
        let within = |key: &&Vec<u8>| key.starts_with(&range.prefix);
        // One key beyond the limit tells whether there are more. Keys deleted by this transaction must not
        // use up the limit.
        let enough = range.limit + 1 + commit.keys.len();
        let stored = self.entries.range(bounds.clone()).map(|(key, _)| key).take_while(within).take(enough);
        let changed = commit.keys.range(bounds).map(|(key, _)| key).take_while(within);
        let keys: BTreeSet<&Vec<u8>> = stored.chain(changed).collect();
        let mut found = keys.into_iter().filter_map(|key| Some((key, self.seen(key, commit)?)));
        let entries =
            found.by_ref().take(range.limit).map(|(key, entry)| entry.shown(key, range.keys_only)).collect();
        Response::Range { entries, more: found.next().is_some() }
    }

    fn check_space(&self, commit: &Commit) -> Result<(), StoreError> {
        let all = (self.used_bytes, self.limits.bytes_max);
        let values = (self.values_bytes, self.limits.values_bytes_max);
        self.check_room(commit, |_| true, all).and_then(|()| self.check_room(commit, is_value, values))
    }

    /// Refuses a change that adds to the keys in question above their limit.
    fn check_room(
        &self,
        commit: &Commit,
        counts: impl Fn(&[u8]) -> bool,
        (used_bytes, limit_bytes): (usize, usize),
    ) -> Result<(), StoreError> {
        let mut added = 0;
        let mut freed = 0;
        for (key, entry) in commit.keys.iter().filter(|(key, _)| counts(key)) {
            added += entry.as_ref().map_or(0, |entry| size(key, entry));
            freed += self.entries.get(key).map_or(0, |entry| size(key, entry));
        }
        let needed_bytes = used_bytes + added - freed;
        // A transaction that frees space is always allowed.
        if needed_bytes <= limit_bytes || added <= freed {
            return Ok(());
        }
        Err(StoreError::NoSpace { needed_bytes, limit_bytes })
    }

    fn replace(&mut self, key: Vec<u8>, entry: Option<Entry>) -> WatchEvent {
        if let Some(lease) = entry.as_ref().and_then(|entry| entry.lease)
            && let Some(lease) = self.leases.get_mut(&lease.0)
        {
            lease.keys.insert(key.clone());
        }
        let new_lease = entry.as_ref().and_then(|entry| entry.lease);
        let added = entry.as_ref().map_or(0, |entry| size(&key, entry));
        let is_value = is_value(&key);
        self.used_bytes += added;
        self.values_bytes += if is_value { added } else { 0 };
        let event = match &entry {
            Some(entry) => WatchEvent::Put(entry.shown(&key, false)),
            None => WatchEvent::Deleted(key.clone()),
        };
        let old = match entry {
            Some(entry) => self.entries.insert(key.clone(), entry),
            None => self.entries.remove(&key),
        };
        if let Some(old) = old {
            let freed = size(&key, &old);
            self.used_bytes -= freed;
            self.values_bytes -= if is_value { freed } else { 0 };
            if old.lease != new_lease
                && let Some(lease) = old.lease.and_then(|lease| self.leases.get_mut(&lease.0))
            {
                lease.keys.remove(&key);
            }
        }
        event
    }
}

impl Entry {
    fn shown(&self, key: &[u8], keys_only: bool) -> KeyValue {
        let value = if keys_only { Vec::new() } else { self.value.clone() };
        KeyValue {
            key: key.to_vec(),
            value,
            version: self.version,
            revision: self.revision,
            lease: self.lease,
        }
    }
}

impl History {
    fn push(&mut self, events: Vec<WatchEvent>) {
        self.events += events.len();
        self.bytes += events.iter().map(event_size).sum::<usize>();
        self.changes.push_back(events);
    }

    fn trim(&mut self, revision: u64, limits: &EmbeddedLimits) {
        while self.events > limits.history_events_max || self.bytes > limits.history_bytes_max {
            let oldest = self.compacted + 1;
            self.forget(oldest);
        }
        debug_assert_eq!(self.compacted + self.changes.len() as u64, revision);
    }

    fn forget(&mut self, at: u64) {
        while self.compacted < at
            && let Some(events) = self.changes.pop_front()
        {
            self.events -= events.len();
            self.bytes -= events.iter().map(event_size).sum::<usize>();
            self.compacted += 1;
        }
    }
}

fn size(key: &[u8], entry: &Entry) -> usize {
    key.len() + entry.value.len() + ENTRY_OVERHEAD_BYTES
}

fn is_value(key: &[u8]) -> bool {
    key.starts_with(VALUES.as_bytes())
}

fn event_size(event: &WatchEvent) -> usize {
    let value_bytes = match event {
        WatchEvent::Deleted(_) => 0,
        WatchEvent::Put(entry) => entry.value.len(),
    };
    event.key().len() + value_bytes + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
#[path = "keyspace_tests.rs"]
mod tests;
