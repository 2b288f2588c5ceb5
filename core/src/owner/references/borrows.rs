//! References that are sent between nodes: borrows, proxies, owners that die or change.
//!
//! A node that sends a reference counts the receiver as a borrower first; the receiver gives the borrow back
//! to the node that it came from. Messages of other nodes are from outside: a node may give back borrows that
//! were already given back for it when it was thought dead, and may name objects that are freed.

use super::object::Links;
use super::{Object, References};
use crate::event::Value;
use crate::journal::{About, Fact};
use crate::owner::Effect;
use crate::slab::Slot;
use crate::{MS, Now};
use tharsis_types::peer::Message;
use tharsis_types::{NodeId, ObjectId, RefId};

/// The time for which an object outlives a node that lent it on: its borrowers register with the owner
/// meanwhile.
const REBORROW_GRACE: Now = 2_000 * MS;

impl Links {
    /// Gives back all that was borrowed.
    pub(super) fn give_back(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        for (to, count) in std::mem::take(&mut self.borrowed_from) {
            out.push(Effect::Send { to, message: Message::BorrowReleased { object, count } });
        }
    }
}

impl References {
    /// A node has joined. If it was given up because the news came late, it is not dead after all.
    pub(in crate::owner) fn node_joined(&mut self, node: NodeId) {
        self.gone.remove(&node);
    }

    /// Notes that a node has died; [`References::forget_node`] changes the entries.
    pub(in crate::owner) fn node_gone(&mut self, node: NodeId) {
        self.gone.insert(node);
    }

    /// Whether a node has died.
    pub(in crate::owner) fn is_gone_node(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
    }

    /// Another node gives back what it borrowed; returns the entry if there is one.
    pub(in crate::owner) fn borrows_returned(
        &mut self,
        from: NodeId,
        object: ObjectId,
        count: u32,
    ) -> Option<Slot<Object>> {
        let slot = self.objects.find(&object)?;
        let borrowers = &mut self.objects[slot].links().borrowers;
        if let Some(lent) = borrowers.get_mut(&from) {
            // A node that was thought dead gives back borrows that do not count any more, beside those that
            // it made since.
            *lent = lent.saturating_sub(count);
            if *lent == 0 {
                borrowers.remove(&from);
            }
        }
        Some(slot)
    }

    /// Counts a node as borrower of an object that no other node lent to it; the object may have been freed.
    pub(in crate::owner) fn borrowed(&mut self, from: NodeId, reference: RefId) {
        if let Some(object) = self.objects.by_id_mut(&reference.object) {
            *object.links().borrowers.entry(from).or_default() += 1;
        }
    }

    /// Entries that may be linked with another node.
    pub(in crate::owner) fn linked(&self) -> Vec<Slot<Object>> {
        self.objects.iter().filter(|(_, o)| o.links.is_some()).map(|(slot, _)| slot).collect()
    }

    /// Removes a dead node from an entry: its copy, its borrows, and its part as owner or lender. Returns
    /// whether the object is lost.
    pub(in crate::owner) fn forget_node(
        &mut self,
        slot: Slot<Object>,
        node: NodeId,
        now: Now,
        out: &mut Vec<Effect>,
    ) -> bool {
        let object = &mut self.objects[slot];
        let (id, has_lineage) = (object.id, object.has_lineage());
        let Some(links) = object.links.as_mut() else { return false };
        if links.borrowers.remove(&node).is_some() {
            // The nodes that it lent the reference to register with the owner anew: give them time.
            *links.borrowers.entry(self.me).or_default() += 1;
            self.grace.push_back((now + REBORROW_GRACE, id));
        }
        links.askers.remove(&node);
        let (had_copy, first) = (links.copies.contains(&node), links.copies.first().copied());
        links.copies.retain(|c| *c != node);
        let lender_died = links.borrowed_from.remove(&node).is_some();
        if links.former_owner == Some(node) {
            links.give_back(id, out);
        }
        let owner = links.owner;
        // A value that can be computed again is computed when somebody wants it.
        let is_last =
            had_copy && links.copies.is_empty() && matches!(object.value, Some(Value::Stored { .. }));
        let is_lost = (is_last && !has_lineage) || (owner == Some(node) && object.value.is_none());
        object.keep_first(first, out);
        if !is_lost && let Some(owner) = owner.filter(|o| lender_died && *o != node) {
            self.reborrow(slot, owner, out);
        }
        is_lost
    }

    /// The next object whose grace period is over: the period counts as one borrow of this node.
    pub(in crate::owner) fn next_grace_over(&mut self, now: Now) -> Option<ObjectId> {
        self.grace.pop_front_if(|(until, _)| *until <= now).map(|(_, object)| object)
    }

    /// Finds an entry, or makes a proxy for a reference of another node.
    pub(in crate::owner) fn find_or_proxy(
        &mut self,
        reference: RefId,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        if let Some(slot) = self.objects.find(&reference.object) {
            return Some(slot);
        }
        if reference.owner == self.me {
            return None;
        }
        let slot = self.insert_proxy(reference);
        self.reborrow(slot, reference.owner, out);
        Some(slot)
    }

    /// Takes references inside a value; if the value came from another node, that node lent them.
    pub(in crate::owner) fn adopt_nested(
        &mut self,
        nested: &[RefId],
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Vec<Slot<Object>> {
        nested.iter().filter_map(|reference| self.adopt(*reference, lender, out)).collect()
    }

    /// Takes one reference and counts a use of it.
    pub(in crate::owner) fn adopt(
        &mut self,
        reference: RefId,
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        let slot = match (self.objects.find(&reference.object), lender) {
            (Some(slot), None) => slot,
            (None, None) => self.find_or_proxy(reference, out)?,
            (Some(slot), Some(lender)) if self.is_orphan(slot) && !self.gone.contains(&reference.owner) => {
                // Its task ran again on another node: follow the new owner.
                self.change_owner(slot, reference.owner, lender);
                slot
            }
            (Some(slot), Some(lender)) => {
                let object = reference.object;
                out.push(Effect::Send { to: lender, message: Message::BorrowReleased { object, count: 1 } });
                slot
            }
            (None, Some(lender)) if reference.owner == self.me => {
                let object = reference.object;
                out.push(Effect::Send { to: lender, message: Message::BorrowReleased { object, count: 1 } });
                return None;
            }
            (None, Some(lender)) => {
                let slot = self.insert_proxy(reference);
                self.objects[slot].links().borrowed_from.insert(lender, 1);
                slot
            }
        };
        self.add_use(slot);
        Some(slot)
    }

    /// Counts a node as borrower of an entry whose reference is sent to it.
    pub(in crate::owner) fn lend(&mut self, slot: Slot<Object>, to: NodeId) -> RefId {
        let reference = self.reference(slot);
        *self.objects[slot].links().borrowers.entry(to).or_default() += 1;
        reference
    }

    /// Lends references inside the outputs of a run to the node that it ran for. The returned references have
    /// the owners that the ledger knows: a client takes this node for the owner of everything that it
    /// submitted, even if the task ran before for another owner. References that the client does not hold may
    /// have been freed.
    pub(in crate::owner) fn lend_references(&mut self, nested: &[RefId], to: NodeId) -> Vec<RefId> {
        let lend = |reference: &RefId| Some(self.lend(self.objects.find(&reference.object)?, to));
        nested.iter().filter_map(lend).collect()
    }

    /// Makes an entry this node's own: its task runs again here.
    ///
    /// Borrowed references stay borrowed as long as the entry lives. Values of the earlier run name the
    /// former owner, and their readers, here or on nodes to which this one lent the reference, ask that
    /// owner.
    pub(in crate::owner) fn take_over(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &mut self.objects[slot];
        let id = object.id;
        if matches!(object.value, Some(Value::Failed(_))) {
            object.value = None;
        }
        let links = object.links();
        links.origin.unneeded = false;
        if let Some(owner) = links.owner.take() {
            links.former_owner = Some(owner);
            self.journal.note(About::Object(id), Fact::OwnerBefore(owner));
            let local = links.copies.contains(&self.me);
            links.copies.clear();
            if local {
                links.copies.push(self.me);
            } else {
                // A run for an owner that died may have left a copy here.
                out.push(Effect::DropCopy { holder: self.me, object: id });
            }
            links.asked = false;
            if self.gone.contains(&owner) {
                links.give_back(id, out);
            }
            if !local && matches!(object.value, Some(Value::Stored { .. })) {
                object.value = None;
            }
            object.keep_first(None, out);
        }
    }

    /// Whether an entry is a proxy without a value whose owner is gone.
    pub(in crate::owner) fn is_orphan(&self, slot: Slot<Object>) -> bool {
        let object = &self.objects[slot];
        let valued = matches!(object.value, Some(Value::Inline(_) | Value::Stored { .. }));
        object.owner().is_some_and(|owner| self.gone.contains(&owner)) && !valued
    }

    fn change_owner(&mut self, slot: Slot<Object>, owner: NodeId, lender: NodeId) {
        let object = &mut self.objects[slot];
        object.value = None;
        let links = object.links();
        links.owner = Some(owner);
        links.asked = false;
        *links.borrowed_from.entry(lender).or_default() += 1;
    }

    fn insert_proxy(&mut self, reference: RefId) -> Slot<Object> {
        assert_ne!(reference.owner, self.me, "a proxy stands for this node's own object");
        let mut object = Object::new(reference.object);
        object.links().owner = Some(reference.owner);
        self.objects.insert(object)
    }

    /// Registers this node with the owner itself, because no lender did it.
    fn reborrow(&mut self, slot: Slot<Object>, owner: NodeId, out: &mut Vec<Effect>) {
        let reference = self.reference(slot);
        *self.objects[slot].links().borrowed_from.entry(owner).or_default() += 1;
        out.push(Effect::Send { to: owner, message: Message::BorrowAdded { reference } });
    }
}
