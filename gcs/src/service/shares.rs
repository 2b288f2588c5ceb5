//! Shares of callers in the table of values: no machine can fill it for the others.
//!
//! | limit | of |
//! |---|---|
//! | [`CALLER_BYTES_MAX`] | what one machine has written, or one node where there are no certificates |
//! | `EmbeddedLimits::values_bytes_max` | all values together; the rest is for members, leases and jobs |
//! | [`JOBS_PER_NODE_MAX`] | jobs of one driver's node that run |
//!
//! A control store remembers who wrote what it wrote itself, since its start: a caller that goes from one
//! control store to the next has a share at each. What others have removed meanwhile is found when a share
//! is used up, and at most once in [`LOOK_AGAIN`]; and each [`SWEEP_EVERY`], so that what is remembered does
//! not grow with values that others remove.

use super::{Shared, refusal};
use crate::error::StoreError;
use crate::tables;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tharsis_protos::caller::Who;
use tharsis_protos::control::MachineId;
use tharsis_protos::{Refusal, RefusalCode};
use tharsis_types::NodeId;
use tharsis_types::limits::MIB;
use tokio::time::Instant;

/// Bytes of the values that one caller has written, with their keys.
pub(super) const CALLER_BYTES_MAX: usize = 64 * MIB;
/// Jobs of one node that run.
pub(super) const JOBS_PER_NODE_MAX: usize = 1024;
/// Approximate bytes of an entry beside its key and value.
const ENTRY_BYTES: usize = 128;
/// Between two looks for values that are gone.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Between two such looks while values are written, also if no share is used up.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// One that has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    Machine(MachineId),
    Node(NodeId),
    /// A command on this machine.
    Unnamed,
}

/// The values that were written here, and by whom.
#[derive(Debug, Default)]
pub(super) struct Written {
    keys: HashMap<Vec<u8>, (Writer, usize)>,
    bytes: HashMap<Writer, usize>,
    looked_at: Option<Instant>,
    /// Of the last sweep, or of the first value.
    swept_at: Option<Instant>,
}

impl Writer {
    pub(super) fn of(who: Who) -> Writer {
        match (who.machine(), who.node()) {
            (Some(machine), _) => Writer::Machine(machine),
            (None, Some(node)) => Writer::Node(node),
            (None, None) => Writer::Unnamed,
        }
    }
}

impl Written {
    /// Counts a value that is about to be written; false if it would pass the share of its writer.
    pub(super) fn begin(&mut self, writer: Writer, key: &[u8], value_bytes: usize) -> bool {
        let size = key.len() + value_bytes + ENTRY_BYTES;
        let replaced = self.keys.get(key).filter(|(by, _)| *by == writer).map_or(0, |(_, bytes)| *bytes);
        let used = self.bytes.entry(writer).or_default();
        // One that takes less room than before is always fine.
        let is_fine = size <= replaced || *used + size - replaced <= CALLER_BYTES_MAX;
        if is_fine {
            *used += size;
        }
        is_fine
    }

    /// A value that [`Written::begin`] counted was written, or was not.
    pub(super) fn end(&mut self, writer: Writer, key: Vec<u8>, value_bytes: usize, is_written: bool) {
        let size = key.len() + value_bytes + ENTRY_BYTES;
        if !is_written {
            return self.give_back(writer, size);
        }
        if let Some((before, bytes)) = self.keys.insert(key, (writer, size)) {
            self.give_back(before, bytes);
        }
    }

    /// A value is gone.
    pub(super) fn removed(&mut self, key: &[u8]) {
        if let Some((writer, bytes)) = self.keys.remove(key) {
            self.give_back(writer, bytes);
        }
    }

    fn give_back(&mut self, writer: Writer, bytes: usize) {
        if let Some(used) = self.bytes.get_mut(&writer) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.bytes.remove(&writer);
            }
        }
    }

    /// Whether it is time to look for values that others removed.
    fn may_look(&mut self, now: Instant) -> bool {
        let may = self.looked_at.is_none_or(|at| LOOK_AGAIN <= now.saturating_duration_since(at));
        if may {
            self.looked_at = Some(now);
        }
        may
    }

    /// Whether it is time for a sweep.
    fn may_sweep(&mut self, now: Instant) -> bool {
        let since = *self.swept_at.get_or_insert(now);
        let may = SWEEP_EVERY <= now.saturating_duration_since(since);
        if may {
            self.swept_at = Some(now);
        }
        may
    }

    /// Forgets the values that are not among those there.
    fn keep(&mut self, there: &HashSet<Vec<u8>>) {
        let gone: Vec<Vec<u8>> = self.keys.keys().filter(|key| !there.contains(*key)).cloned().collect();
        gone.iter().for_each(|key| self.removed(key));
    }
}

impl Shared {
    /// Counts a value that is about to be written.
    pub(super) async fn begin_value(
        &self,
        writer: Writer,
        key: &[u8],
        value_bytes: usize,
    ) -> Result<(), Refusal> {
        let may_sweep = self.written.lock().may_sweep(Instant::now());
        if may_sweep {
            match self.value_keys().await {
                Ok(there) => self.written.lock().keep(&there),
                Err(error) => tracing::debug!(%error, "values that are gone are forgotten in an hour"),
            }
        }
        if self.written.lock().begin(writer, key, value_bytes) {
            return Ok(());
        }
        let may_look = self.written.lock().may_look(Instant::now());
        if may_look {
            let there = self.value_keys().await.map_err(refusal)?;
            self.written.lock().keep(&there);
            if self.written.lock().begin(writer, key, value_bytes) {
                return Ok(());
            }
        }
        let reason = format!(
            "what this machine has written takes {CALLER_BYTES_MAX} bytes of the control store, its share: \
             remove values, or put large ones into objects"
        );
        Err(Refusal::new(RefusalCode::ResourceExhausted, reason))
    }

    async fn value_keys(&self) -> Result<HashSet<Vec<u8>>, StoreError> {
        let (mut there, mut after) = (HashSet::new(), None);
        loop {
            let result = self.backend.txn(tables::value_keys(after)).await?;
            let (entries, more) = tables::ranged(&result, 0);
            there.extend(entries.iter().map(|entry| entry.key.clone()));
            after = entries.last().map(|entry| entry.key.clone());
            if !more {
                return Ok(there);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = CALLER_BYTES_MAX / 2;
    const A: Writer = Writer::Machine(MachineId(1));
    const B: Writer = Writer::Node(NodeId(2));

    fn write(written: &mut Written, writer: Writer, key: &str, bytes: usize) -> bool {
        let is_fine = written.begin(writer, key.as_bytes(), bytes);
        if is_fine {
            written.end(writer, key.into(), bytes, true);
        }
        is_fine
    }

    #[test]
    fn a_caller_has_its_share_whatever_others_write() {
        let mut written = Written::default();
        assert!(write(&mut written, A, "1", HALF));
        assert!(!write(&mut written, A, "2", HALF), "keys and entries count as well");
        assert!(write(&mut written, A, "1", HALF), "what is replaced makes room");
        assert!(write(&mut written, B, "2", HALF));
        // The one who wrote last has it.
        assert!(write(&mut written, B, "1", 10));
        assert!(write(&mut written, A, "3", HALF));
        written.removed(b"3");
        assert_eq!((written.bytes.get(&A), written.keys.len()), (None, 2));
    }

    #[test]
    fn writes_under_way_count_and_those_that_fail_do_not() {
        let mut written = Written::default();
        assert!(written.begin(A, b"1", HALF));
        assert!(!written.begin(A, b"2", HALF), "the first may be written yet");
        written.end(A, b"1".to_vec(), HALF, false);
        assert!(write(&mut written, A, "2", HALF));
        assert_eq!(written.keys.len(), 1);
    }

    #[test]
    fn a_smaller_value_is_taken_in_a_share_that_is_used_up() {
        let mut written = Written::default();
        assert!(write(&mut written, A, "1", CALLER_BYTES_MAX - ENTRY_BYTES - 1));
        assert!(!write(&mut written, A, "2", 0));
        assert!(write(&mut written, A, "1", 7));
        assert!(write(&mut written, A, "2", 0));
    }

    #[test]
    fn what_others_removed_is_forgotten() {
        let mut written = Written::default();
        assert!(write(&mut written, A, "1", HALF) && write(&mut written, B, "2", HALF));
        written.keep(&HashSet::from([b"2".to_vec()]));
        assert_eq!((written.bytes.get(&A), written.keys.len()), (None, 1));
        let now = Instant::now();
        assert_eq!([now, now, now + LOOK_AGAIN].map(|at| written.may_look(at)), [true, false, true]);
        // The first value begins the hour.
        let times = [now, now + SWEEP_EVERY / 2, now + SWEEP_EVERY, now + SWEEP_EVERY];
        assert_eq!(times.map(|at| written.may_sweep(at)), [false, false, true, false]);
    }
}
