//! Snapshots from which the actors of this ledger continue when they are started again.
//!
//! The worker of an actor sends a snapshot, and its node passes it on to the owner of the actor. The owner
//! makes it an object of its own ledger and the last argument of the constructor, in place of the one before,
//! which is freed. So a constructor that runs again waits for the snapshot, reads it and fails with it like
//! with any argument.
//!
//! A snapshot must outlive the node of its actor. One that lies in the arena of another node is read first,
//! and counts when a copy is here; until then the one before counts. A snapshot of an attempt that is over is
//! refused: another one may have continued from the one before.
//!
//! | state of a snapshot | place | enters by | leaves by |
//! |---|---|---|---|
//! | being read | `coming`, which uses it | `take_snapshot` | `snapshot_read` |
//! | counts | an argument of the constructor | `continue_from` | `continue_from`, the end of the constructor |

use super::{Effect, Object, Owner, Task};
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::DoneValue;
use tharsis_types::task::Output;
use tharsis_types::{Attempt, Failure, FailureKind, LeaseId, NodeId, ObjectId, TaskId};

/// The actor that offers a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// The node on which it lives.
    pub(crate) from: NodeId,
    /// The lease under which it was constructed.
    pub(crate) lease: LeaseId,
    /// The task that constructed it.
    pub(crate) actor: TaskId,
    /// The attempt.
    pub(crate) attempt: Attempt,
}

/// The outcome for a snapshot that was offered.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The actor continues from it.
    Counts,
    /// It must be read first: its bytes are on the node of the actor.
    Comes(u64),
    /// The actor does not continue from it.
    Refused(Arc<Failure>),
}

/// Snapshots that are read here.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    coming: IdMap<ObjectId, (Slot<Object>, Offered)>,
}

impl Checkpoints {
    pub(super) fn len(&self) -> usize {
        self.coming.len()
    }

    /// Snapshots that are used until they are here.
    pub(super) fn uses(&self) -> impl Iterator<Item = Slot<Object>> {
        self.coming.values().map(|(slot, _)| *slot)
    }
}

impl Owner {
    /// An actor offers a snapshot.
    pub(crate) fn take_snapshot(
        &mut self,
        offered: Offered,
        object: ObjectId,
        snapshot: Output<DoneValue>,
        out: &mut Vec<Effect>,
    ) -> Taken {
        let constructor = self.constructor_of(offered);
        let Some(constructor) = constructor.filter(|_| self.references.find(&object).is_none()) else {
            self.drop_value(object, offered.from, &snapshot, out);
            return Taken::Refused(outdated());
        };
        let Output { value, nested } = snapshot;
        let lender = (offered.from != self.me).then_some(offered.from);
        let inside = self.references.adopt_nested(&nested, lender, out);
        let slot = self.references.insert_output(object);
        self.references.add_use(slot);
        let (value, coming) = match value {
            DoneValue::Inline(bytes) => (Value::Inline(bytes), None),
            DoneValue::Stored { len } => (Value::Stored { len }, lender.map(|_| len)),
        };
        self.fill(slot, value, Some(offered.from), inside, out);
        let site = format!("checkpoint of {}", self.name_of(constructor));
        self.put_at(object, site.into());
        match coming {
            None => {
                self.continue_from(constructor, slot, out);
                Taken::Counts
            }
            Some(len) => {
                self.checkpoints.coming.insert(object, (slot, offered));
                Taken::Comes(len)
            }
        }
    }

    /// A snapshot that was to be read is here, or cannot be read. Returns the node that offered it and the
    /// reason if the actor does not continue from it; `None` if the object is no such snapshot.
    pub(crate) fn snapshot_read(
        &mut self,
        object: ObjectId,
        is_here: bool,
        out: &mut Vec<Effect>,
    ) -> Option<(NodeId, Option<Arc<Failure>>)> {
        let (slot, offered) = self.checkpoints.coming.remove(&object)?;
        let refusal = match self.constructor_of(offered) {
            Some(constructor) if is_here => {
                self.continue_from(constructor, slot, out);
                if self.copies(object).contains(&self.me) {
                    // The copy there may be large, and would go with the node.
                    self.copy_changed(offered.from, object, false, out);
                    out.push(Effect::DropCopy { holder: offered.from, object });
                }
                None
            }
            Some(_) => Some(not_kept()),
            None => Some(outdated()),
        };
        if refusal.is_some() {
            self.unuse(slot, out);
        }
        Some((offered.from, refusal))
    }

    /// The constructor of the actor that offers a snapshot, if it lives.
    fn constructor_of(&self, offered: Offered) -> Option<Slot<Task>> {
        let Offered { lease, actor, attempt, .. } = offered;
        let constructor = self.actors.constructor(self.references.find(&ObjectId::output(actor, 0))?)?;
        self.tasks.is_sent(constructor, actor, lease, attempt).then_some(constructor)
    }

    /// A living actor continues from this snapshot if it is started again; the use of it is that of its
    /// constructor from now on. A small snapshot may have overtaken a large one that was taken before it.
    fn continue_from(&mut self, constructor: Slot<Task>, snapshot: Slot<Object>, out: &mut Vec<Effect>) {
        let reference = self.references.reference(snapshot);
        let is_later = |known: &ObjectId| {
            known.task == reference.object.task && is_after(known.index, reference.object.index)
        };
        if self.tasks[constructor].snapshot().is_some_and(|known| is_later(&known)) {
            return self.unuse(snapshot, out);
        }
        if let Some(before) = self.tasks.set_snapshot(constructor, reference, snapshot) {
            self.unuse(before, out);
        }
    }

    /// Asserts that snapshots which are not here are being read, and that only constructors take any.
    pub fn check_checkpoints(&self, is_read: impl Fn(ObjectId) -> bool) {
        let coming = self.checkpoints.coming.keys();
        coming.for_each(|object| assert!(is_read(*object), "nobody reads the snapshot {object}"));
        for (slot, task) in self.tasks.iter() {
            let is_actor = self.classes.get(task.class()).is_none() || self.is_constructor(slot);
            assert!(task.snapshot().is_none() || is_actor, "{} continues from a snapshot", task.id());
        }
    }
}

/// Whether the number of a snapshot was drawn after another one of the same worker. The numbers start again
/// at 2^31, and few of them are under way at a time, so the shorter way around is the right one.
fn is_after(number: u32, other: u32) -> bool {
    let ahead = number.wrapping_sub(other) % ObjectId::PUT_BASE;
    0 < ahead && ahead < ObjectId::PUT_BASE / 2
}

fn outdated() -> Arc<Failure> {
    let text = "the snapshot came too late: the actor has ended, or was started again elsewhere";
    Arc::new(Failure::new(FailureKind::ActorDied, text))
}

fn not_kept() -> Arc<Failure> {
    let text = "the node that owns the actor could not read the snapshot, or has no room for it";
    Arc::new(Failure::new(FailureKind::StoreFull, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_snapshots_keep_their_order_where_they_start_again() {
        let at = |n: u32| ObjectId::PUT_BASE | n;
        let last = ObjectId::PUT_BASE - 1;
        for (earlier, later) in [(1, 2), (1, 1000), (last, 0), (last - 5, 7)] {
            assert!(is_after(at(later), at(earlier)), "{later} comes after {earlier}");
            assert!(!is_after(at(earlier), at(later)) && !is_after(at(later), at(later)));
        }
    }
}
