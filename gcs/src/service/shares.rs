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
//!
//! Names of actors and placement groups are values that their nodes remove when what has them ends. A node
//! that is killed cannot: each control store removes those that it wrote for nodes which are no members any
//! more.
//!
//! A write whose outcome is not known, because its caller has gone or the back end did not answer, counts as
//! carried out until a look shows that it was not. It may not have been, so what is known of the key from
//! before stays known too: the name of another node may still be there.

use super::{Shared, refusal};
use crate::backend::{Compare, KeyValue, Op, Txn};
use crate::error::StoreError;
use crate::tables;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, HashSet};
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
/// Unanswered claims of one name by one writer that are remembered, the last ones: all are looked at with the
/// next one.
const CLAIMS_MAX: usize = 16;
/// Names of a node that has left which are removed at a time: whoever does it has nodes to judge meanwhile.
const NAMES_AT_A_TIME: usize = 64;
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
    /// The values that each key may have: the last one that is known to have been written, and later ones of
    /// which that is not known, in order. Never empty.
    keys: HashMap<Vec<u8>, Vec<Value>>,
    /// Nodes that have written names.
    naming: BTreeSet<NodeId>,
    bytes: HashMap<Writer, usize>,
    /// Writes so far that were carried out, or may have been.
    ended: u64,
    looked_at: Option<Instant>,
    /// Of the last sweep, or of the first value.
    swept_at: Option<Instant>,
}

/// A value that was written, or may have been.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    writer: Writer,
    bytes: usize,
    made: Made,
    /// If it is a name, the node that has it.
    named_by: Option<NodeId>,
    /// Its number among the writes, in the order in which they were answered or given up.
    ended: u64,
}

/// The outcome of a write that was carried out, or may have been.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Made {
    /// The revision that it made.
    Revision(u64),
    /// It was not answered: the record that is there if it was carried out. A record names one object, so no
    /// other write has it.
    Record(Bytes),
    /// It was not answered, and is no name.
    Unknown,
}

/// A write that was carried out, or may have been.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Done {
    /// The node that asked for it.
    node: Option<NodeId>,
    made: Made,
    /// Writes that had ended before it began: what they left there, if anything, it has replaced.
    after: u64,
}

impl Made {
    /// Whether an entry is what the write has left there.
    fn is_of(&self, entry: &KeyValue) -> bool {
        match self {
            Made::Revision(revision) => entry.revision == *revision,
            Made::Record(record) => entry.value[..] == record[..],
            Made::Unknown => false,
        }
    }
}

impl Value {
    /// The place of the claim that need not be remembered beside this one: the same one, or the oldest of too
    /// many.
    fn claimed_before(&self, there: &[Value]) -> Option<usize> {
        let is_answered = |known: &Value| matches!(known.made, Made::Revision(_));
        let is_own = |known: &Value| known.writer == self.writer && !is_answered(known);
        let is_same = |known: &Value| known.named_by == self.named_by && known.made == self.made;
        let same = there.iter().position(|known| is_own(known) && is_same(known));
        let are_many = || CLAIMS_MAX <= there.iter().filter(|known| is_own(known)).count();
        same.or_else(|| there.iter().position(is_own).filter(|_| are_many()))
    }

    /// Whether it was answered, and made a later revision.
    fn is_later(&self, revision: u64) -> bool {
        matches!(self.made, Made::Revision(own) if revision < own)
    }

    /// Whether it was answered, and made an earlier revision.
    fn is_earlier(&self, revision: u64) -> bool {
        matches!(self.made, Made::Revision(own) if own <= revision)
    }

    /// Takes over the bytes of another value if these are more.
    fn exchange_if_larger(&mut self, other: &mut Value) {
        if self.bytes < other.bytes {
            std::mem::swap(&mut self.bytes, &mut other.bytes);
        }
    }
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
    fn begin(&mut self, writer: Writer, key: &[u8], value_bytes: usize) -> bool {
        let size = key.len() + value_bytes + ENTRY_BYTES;
        let mut own = self.keys.get(key).into_iter().flatten().filter(|value| value.writer == writer);
        // Of several values of which each may be there, none is sure to be replaced.
        let replaced = match (own.next(), own.next()) {
            (Some(only), None) => only.bytes,
            _ => 0,
        };
        let used = self.bytes.entry(writer).or_default();
        // One that takes less room than before is always fine.
        let is_fine = size <= replaced || *used + size - replaced <= CALLER_BYTES_MAX;
        if is_fine {
            *used += size;
        }
        is_fine
    }

    /// A value that [`Written::begin`] counted was written, or was not.
    fn end(&mut self, writer: Writer, key: Vec<u8>, value_bytes: usize, done: Option<Done>) {
        let bytes = key.len() + value_bytes + ENTRY_BYTES;
        let Some(Done { node, made, after }) = done else { return self.give_back(writer, bytes) };
        let named_by = node.filter(|_| tables::is_name(&key));
        self.naming.extend(named_by);
        self.ended += 1;
        let mut value = Value { writer, bytes, made, named_by, ended: self.ended };
        let there = self.keys.entry(key).or_default();
        let replaced = match value.made {
            // Answers of two writes at the same time come in any order.
            Made::Revision(own) => {
                let is_replaced = there.iter().any(|known| after < known.ended && known.is_later(own));
                let mut gone = take_all(there, |known| known.ended <= after || known.is_earlier(own));
                if is_replaced {
                    gone.push(value);
                    return self.all_gone(gone);
                }
                gone
            }
            Made::Record(_) => value.claimed_before(there).map(|at| there.remove(at)).into_iter().collect(),
            Made::Unknown => {
                let mut own = take_all(there, |known| known.writer == writer);
                // One of them is there: the largest counts.
                own.iter_mut().for_each(|known| value.exchange_if_larger(known));
                own
            }
        };
        there.push(value);
        self.all_gone(replaced);
    }

    /// Nodes that have written names here.
    pub(super) fn naming_nodes(&self) -> Vec<NodeId> {
        self.naming.iter().copied().collect()
    }

    /// Some of the names that a node was the last to write here, or may have been.
    fn names_of(&self, node: NodeId) -> Vec<(Vec<u8>, Value)> {
        let all = self.keys.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let of_node = all.filter(|(_, value)| value.named_by == Some(node));
        of_node.map(|(key, value)| (key.clone(), value.clone())).take(NAMES_AT_A_TIME).collect()
    }

    /// A value is gone.
    pub(super) fn removed(&mut self, key: &[u8]) {
        let values = self.keys.remove(key).unwrap_or_default();
        self.all_gone(values);
    }

    /// Gives back the bytes of values that are not there any more.
    fn all_gone(&mut self, values: Vec<Value>) {
        values.into_iter().for_each(|value| self.give_back(value.writer, value.bytes));
    }

    /// One of the values that a key may have is not there.
    fn refuted(&mut self, key: &[u8], value: &Value) {
        let Some(values) = self.keys.get_mut(key) else { return };
        let Some(at) = values.iter().position(|known| known == value) else { return };
        values.remove(at);
        if values.is_empty() {
            self.keys.remove(key);
        }
        self.give_back(value.writer, value.bytes);
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

/// A value that was counted and is being written. Its caller may go before that is done.
#[derive(Debug)]
pub(super) struct Counted<'a> {
    written: &'a Mutex<Written>,
    writer: Writer,
    node: Option<NodeId>,
    /// None once its outcome is counted.
    key: Option<Vec<u8>>,
    value: Bytes,
    /// Writes that had ended before it began.
    after: u64,
}

impl Counted<'_> {
    /// The value was written and made this revision, or it certainly was not.
    pub(super) fn end(mut self, revision: Option<u64>) {
        self.count(revision.map(Made::Revision));
    }

    fn count(&mut self, made: Option<Made>) {
        let Some(key) = self.key.take() else { return };
        let done = made.map(|made| Done { node: self.node, made, after: self.after });
        self.written.lock().end(self.writer, key, self.value.len(), done);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let is_name = self.key.as_ref().is_some_and(|key| tables::is_name(key));
        let made = if is_name { Made::Record(self.value.clone()) } else { Made::Unknown };
        self.count(Some(made));
    }
}

impl Shared {
    /// Counts a value that is about to be written.
    pub(super) async fn begin_value(
        &self,
        who: Who,
        key: &[u8],
        value: &Bytes,
    ) -> Result<Counted<'_>, Refusal> {
        let (writer, node) = (Writer::of(who), who.node());
        let counted = || {
            let (key, value, after) = (Some(key.to_vec()), value.clone(), self.written.lock().ended);
            Counted { written: &self.written, writer, node, key, value, after }
        };
        let may_sweep = self.written.lock().may_sweep(Instant::now());
        if may_sweep {
            match self.value_keys().await {
                Ok(there) => self.written.lock().keep(&there),
                Err(error) => tracing::debug!(%error, "values that are gone are forgotten in an hour"),
            }
        }
        if self.written.lock().begin(writer, key, value.len()) {
            return Ok(counted());
        }
        let may_look = self.written.lock().may_look(Instant::now());
        if may_look {
            let there = self.value_keys().await.map_err(refusal)?;
            self.written.lock().keep(&there);
            if self.written.lock().begin(writer, key, value.len()) {
                return Ok(counted());
            }
        }
        let reason = format!(
            "what this machine has written takes {CALLER_BYTES_MAX} bytes of the control store, its share: \
             remove values, or put large ones into objects"
        );
        Err(Refusal::new(RefusalCode::ResourceExhausted, reason))
    }

    /// Removes names that a node has written which is no member any more, the next [`NAMES_AT_A_TIME`]. One
    /// that another control store gave to another node meanwhile was written since, and stays.
    pub(super) async fn forget_names_of(&self, node: NodeId) -> Result<(), StoreError> {
        let names = self.written.lock().names_of(node);
        let are_all = names.len() < NAMES_AT_A_TIME;
        for (key, value) in names {
            let found = self.backend.txn(tables::get(key.clone())).await?;
            let is_its = |entry: &&KeyValue| value.made.is_of(entry);
            if let Some(entry) = tables::found(&found, 0).filter(is_its) {
                let unchanged = Compare::Value(key.clone(), entry.value.clone());
                self.backend.txn(Txn::always(vec![Op::Delete(key.clone())]).when(unchanged)).await?;
            }
            // It is gone, or another control store counts it; one that was written here since stays counted.
            self.written.lock().refuted(&key, &value);
        }
        if are_all {
            self.written.lock().naming.remove(&node);
        }
        Ok(())
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

fn take_all(from: &mut Vec<Value>, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    from.extract_if(.., |value| is_wanted(value)).collect()
}

#[cfg(test)]
mod tests;
