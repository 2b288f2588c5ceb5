//! Copies of one object that were reached and could not be read.
//!
//! Each holder has its own tries. One that has used them up is no holder of the object any more, however
//! often its owner names it, but for a while later: its copy may be new. A holder that is not reached keeps
//! its tries.

use super::{Effect, Pulls, RunName};
use crate::journal::Fact;
use crate::{MS, Now};
use tharsis_types::{NodeId, ObjectId};

/// Maximum number of failed transfers of one object from one holder.
pub(super) const TRIES_PER_HOLDER: usize = 3;

/// For so long a holder is not believed that has used up its tries.
const DISBELIEF: Now = 8_000 * MS;

/// Failed transfers of one object.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Number of all of them.
    pub(super) count: usize,
    /// Their holders, once for each.
    holders: Vec<NodeId>,
    /// Holders that have used up their tries, and until when they are not believed.
    spent: Vec<(NodeId, Now)>,
}

impl Failures {
    /// Counts a failure; true if the holder has used up its tries.
    fn add(&mut self, holder: NodeId, now: Now) -> bool {
        self.count += 1;
        self.holders.push(holder);
        let is_spent = TRIES_PER_HOLDER <= self.holders.iter().filter(|h| **h == holder).count();
        if is_spent {
            self.forget(holder);
            self.spent.push((holder, now + DISBELIEF));
        }
        is_spent
    }

    /// Whether a node that is named as a holder is to be tried.
    pub(super) fn believes(&self, holder: NodeId, now: Now) -> bool {
        self.spent.iter().all(|(node, until)| *node != holder || *until <= now)
    }

    /// A node has lost its copy: if it gets another one, that has all its tries.
    pub(super) fn forget(&mut self, holder: NodeId) {
        self.holders.retain(|h| *h != holder);
        self.spent.retain(|(node, _)| *node != holder);
    }
}

impl<R: RunName> Pulls<R> {
    /// A transfer failed, as its source has no such object or does not send what it is: tries the next
    /// holder, or ends the bundles that need the object if none is left.
    pub fn failed(
        &mut self,
        object: ObjectId,
        from: NodeId,
        cause: String,
        room_bytes: u64,
        out: &mut Vec<Effect<R>>,
    ) {
        let source = self.source_of(object, from);
        self.set_running(object, None);
        self.note(object, Fact::PullFailed(from));
        self.reached(source);
        let now = self.journal.now();
        let Some(pull) = self.pulls.get_mut(&object) else { return };
        pull.broke_off(source, cause);
        if pull.failures.add(source, now) {
            pull.holders.retain(|holder| *holder != source);
        }
        if pull.holders.is_empty() || pull.needed_by.is_empty() {
            self.give_up(object, out);
        }
        self.advance(room_bytes, out);
    }

    /// Whether a bundle needs the object.
    #[must_use]
    pub fn is_needed(&self, object: ObjectId) -> bool {
        self.pulls.get(&object).is_some_and(|pull| !pull.needed_by.is_empty())
    }

    /// The holder that a transfer counts for: it may have sent us on to a reader of its own.
    pub(super) fn source_of(&self, object: ObjectId, from: NodeId) -> NodeId {
        self.pulls.get(&object).and_then(|pull| pull.running).unwrap_or(from)
    }
}
