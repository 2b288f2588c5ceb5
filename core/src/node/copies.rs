//! Copies of objects in this node's store: the other nodes that own them, and when they are dropped.
//!
//! A copy stays while the ledger of this node or another owner counts on it. There is nearly always one
//! owner. If a task ran again for another owner and found its output here, both count on the copy.
//!
//! | event | consequence for the copy |
//! |---|---|
//! | it arrives, or a run makes it for another node | [`CopyOwners::add`]: the other owner counts on it |
//! | one of its owners frees it | [`CopyOwners::remove`]: it is freed with the last owner that counts on it |
//! | one of its owners dies | it is freed as well, unless a reference here names that owner |
//! | it is evicted, or the disk loses it | [`CopyOwners::take`]: its owners are told |

use super::Node;
use crate::event::{Action, Operation, Value};
use crate::owner;
use smallvec::SmallVec;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::Message;
use tharsis_types::{NodeId, ObjectId, RefId};

/// Owners of one copy.
type Owners = SmallVec<[NodeId; 1]>;

/// Other nodes that own objects of which a copy is here.
#[derive(Debug, Default)]
pub(super) struct CopyOwners {
    owners: IdMap<ObjectId, Owners>,
}

impl CopyOwners {
    /// Notes that another node owns a copy here.
    pub(super) fn add(&mut self, object: ObjectId, owner: NodeId) {
        let owners = self.owners.entry(object).or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }

    /// Removes an owner of a copy, if it is listed; true if no other owner is left.
    fn remove(&mut self, object: ObjectId, owner: NodeId) -> bool {
        let Some(owners) = self.owners.get_mut(&object) else { return true };
        owners.retain(|o| *o != owner);
        let is_last = owners.is_empty();
        if is_last {
            self.owners.remove(&object);
        }
        is_last
    }

    /// Forgets the owners of a copy that is gone; returns them.
    fn take(&mut self, object: ObjectId) -> Owners {
        self.owners.remove(&object).unwrap_or_default()
    }

    /// Other nodes that count on the copy.
    pub(super) fn of(&self, object: ObjectId) -> &[NodeId] {
        self.owners.get(&object).map_or(&[], |owners| owners)
    }

    /// Objects of which a copy is here and that other nodes own.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.owners.keys().copied()
    }

    /// Whether another node counts on a copy here.
    pub(super) fn has(&self, object: ObjectId) -> bool {
        self.owners.contains_key(&object)
    }

    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Objects of which a copy is here and that a node owns.
    fn owned_by(&self, owner: NodeId) -> Vec<ObjectId> {
        let all = self.owners.iter();
        all.filter(|(_, owners)| owners.contains(&owner)).map(|(object, _)| *object).collect()
    }

    /// Asserts that only other nodes are listed, each once.
    pub(super) fn check(&self, me: NodeId) {
        for (object, owners) in &self.owners {
            assert!(!owners.is_empty(), "the copy of {object} is listed for nobody");
            assert!(!owners.contains(&me), "the ledger here says itself what it counts on: {object}");
            let once = |owner: &NodeId| owners.iter().filter(|o| *o == owner).count() == 1;
            assert!(owners.iter().all(once), "an owner of {object} is listed twice");
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 1] {
        [("copies of other nodes' objects", self.owners.len())]
    }
}

impl Node {
    /// Number of the copy of an object that another node would read here. A result may be made again with
    /// other bytes: whoever has read a part of it goes on if the number is the same. Numbers begin at 1.
    #[must_use]
    pub fn copy_number(&self, object: ObjectId) -> Option<u64> {
        self.store.copy_number(object)
    }

    /// Number of copies of own objects that this node has given up so far as none could be read, and the last
    /// of them, the latest first; for tests and the simulator.
    pub fn copies_given_up(&self) -> (u64, impl Iterator<Item = (ObjectId, NodeId)>) {
        self.owner.copies_given_up()
    }
}

/// Copies that come.
impl Node {
    pub(super) fn pull_done(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        self.store.received(object, true);
        self.transfer_ended(object, true, out);
        if !self.store.is_spilled(object) {
            self.copy_arrived(object);
        }
        for run in self.pulls.runs_that_need(object) {
            self.pin_argument(run, object);
        }
        self.pull_change(out, |pulls, room, effects| pulls.arrived(object, room, effects));
    }

    /// A copy of an object is here that was not here before.
    fn copy_arrived(&mut self, object: ObjectId) {
        self.owner.copy_changed(self.id, object, true, &mut self.effects);
        if let Some(RefId { owner, .. }) = self.owner.reference_of(object)
            && owner != self.id
        {
            self.copy_owners.add(object, owner);
        }
    }

    /// A node says that it has a copy, or has none any more. Whoever waits for the object here may read a new
    /// one. Only the owner is told of new ones: of the objects of others, those have copies that their owners
    /// name.
    pub(super) fn copy_told(&mut self, holder: NodeId, object: ObjectId, exists: bool) {
        let owner = self.owner.reference_of(object).map(|reference| reference.owner);
        if exists && owner.is_some_and(|owner| owner != self.id) {
            return;
        }
        self.owner.copy_changed(holder, object, exists, &mut self.effects);
        if exists && holder != self.id {
            self.pulls.copy_added(object, holder);
        } else if !exists && self.owner.owns(object) {
            self.pulls.copy_gone(object, holder);
            self.moves.copy_goes(object, holder);
        }
    }

    /// A task that ran again wrote a value that the ledger already has. If that value is stored, this is
    /// another copy; otherwise it is freed.
    pub(super) fn keep_or_free(&mut self, object: ObjectId) {
        match self.owner.value_ref(object) {
            Some(Value::Stored { .. }) => self.owner.copy_changed(self.id, object, true, &mut self.effects),
            _ => self.store.free(object),
        }
    }
}

/// Copies that go.
impl Node {
    /// The disk has lost a copy, spilled or in the annex.
    pub(super) fn copy_lost(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        if self.store.find(object).is_some() && self.store.is_in_annex(object) {
            // Those that have it mapped keep what they can read.
            self.copy_gone(object);
            return self.store.free(object);
        }
        // It may have been freed while it was read.
        if !self.store.is_spilled(object) {
            return;
        }
        out.push(Action::Do(Operation::Discard(object)));
        self.pulls.copy_gone(object, self.id);
        if self.store.spill_lost(object) {
            self.copy_gone(object);
        }
    }

    /// Notes that copies were evicted to make room.
    pub(super) fn evicted(&mut self, objects: &[ObjectId]) {
        for object in objects {
            self.copy_gone(*object);
        }
    }

    /// No copy of an object is here any more.
    pub(super) fn copy_gone(&mut self, object: ObjectId) {
        self.owner.copy_changed(self.id, object, false, &mut self.effects);
        self.moves.copy_goes(object, self.id);
        for to in self.copy_owners.take(object) {
            self.effects.push(owner::Effect::Send { to, message: Message::HolderRemoved { object } });
        }
    }

    /// Drops a copy that the ledger of this node does not need any more, unless the ledger counts on it again
    /// meanwhile. If a task ran again under another owner and found its output here, that owner counts on the
    /// copy too, and it stays.
    pub(super) fn drop_own_copy(&mut self, object: ObjectId) {
        let is_claimed = self.copy_owners.of(object).iter().any(|owner| self.view.knows(*owner));
        if !is_claimed && !self.counts_on_copy(object) {
            self.copy_owners.take(object);
            self.store.free(object);
        }
    }

    /// Another owner does not need a copy any more. The copy stays while the remaining owners or the ledger
    /// of this node count on it.
    pub(super) fn drop_lent_copy(&mut self, object: ObjectId, owner: NodeId) {
        let is_last = self.copy_owners.remove(object, owner);
        if is_last && !self.counts_on_copy(object) {
            self.store.free(object);
        }
    }

    /// Drops a copy of an earlier run that was for other owners than `owner`. Only they protect the objects
    /// inside that value, and two runs need not have put the same ones there. They are told that the copy is
    /// gone, as if it had been evicted.
    pub(super) fn give_up_copy_of_others(&mut self, object: ObjectId, owner: NodeId) {
        let others = self.copy_owners.of(object);
        let is_own = owner == self.id && self.counts_on_copy(object);
        if !others.is_empty() && !others.contains(&owner) && !is_own {
            self.copy_gone(object);
            self.store.free(object);
        }
    }

    /// Drops the copies of a dead owner's objects. A copy stays if a reference here names that owner, or if
    /// somebody else counts on it. A reference that names a node which had the object made again is to the
    /// value of that run: its owner does not know this copy, and would never free it.
    pub(super) fn drop_orphaned_copies(&mut self, owner: NodeId) {
        for object in self.copy_owners.owned_by(owner) {
            if self.owner.reference_of(object).is_none_or(|reference| reference.owner != owner) {
                self.drop_lent_copy(object, owner);
            }
        }
    }

    /// Whether the ledger of this node owns an object and lists the copy here.
    fn counts_on_copy(&self, object: ObjectId) -> bool {
        self.owner.owns(object) && self.owner.copies(object).contains(&self.id)
    }

    /// Nodes that have a copy of an object that is not in the arena here: this node if it is on disk, then
    /// others.
    pub(super) fn holders(&self, object: ObjectId) -> Vec<NodeId> {
        let here = self.store.is_spilled(object).then_some(self.id);
        let others = self.owner.copies(object).iter().copied();
        here.into_iter().chain(others.filter(|n| *n != self.id && self.view.knows(*n))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    #[test]
    fn a_copy_goes_with_the_last_of_its_owners() {
        let object = ObjectId::put(TaskId::root(JobId(1)), 0);
        let [first, second] = [NodeId(1), NodeId(2)];
        let mut copies = CopyOwners::default();
        assert!(copies.remove(object, first), "nobody else counts on it");
        [first, second, first].into_iter().for_each(|owner| copies.add(object, owner));
        copies.check(NodeId(3));
        assert_eq!(copies.owned_by(second), [object]);
        assert!(!copies.remove(object, first) && copies.remove(object, second));
        copies.add(object, first);
        assert_eq!(copies.take(object)[..], [first]);
        assert!(copies.leftovers().iter().all(|(_, count)| *count == 0));
    }
}
