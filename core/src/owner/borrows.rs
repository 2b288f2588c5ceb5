//! References that travel between nodes: borrows, proxies, owners that die or change.

use super::objects::object_id;
use super::{Effect, Object, Owner};
use crate::event::Value;
use crate::peer::Message;
use crate::slab::Slot;
use crate::{MS, Now};
use tharsis_types::{NodeId, ObjectId, RefId};

/// How long an object outlives the node that lent it on: those who borrowed it there register with its owner.
const REBORROW_GRACE: Now = 2_000 * MS;

impl Owner {
    /// A node is there after all, if it was given up because news of it were late.
    pub fn node_joined(&mut self, node: NodeId) {
        self.gone.remove(&node);
    }

    /// Whether a node has died.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
    }

    /// Another node gives back references that were lent to it.
    pub fn borrows_returned(&mut self, from: NodeId, object: ObjectId, count: u32, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find(&object) else { return };
        let Some(borrowers) = self.objects.get_mut(slot).map(|o| &mut o.links().borrowers) else { return };
        if let Some(lent) = borrowers.get_mut(&from) {
            *lent = lent.saturating_sub(count);
            if *lent == 0 {
                borrowers.remove(&from);
            }
        }
        self.free_if_unused(slot, out);
    }

    /// A node uses an object that nobody lent to it.
    pub fn borrowed(&mut self, from: NodeId, reference: RefId) {
        if let Some(object) = self.objects.by_id_mut(&reference.object) {
            *object.links().borrowers.entry(from).or_default() += 1;
        }
    }

    /// A node is gone: its copies, its borrows, what it owned and what it lent.
    pub(super) fn objects_of_dead_node(&mut self, now: Now, node: NodeId, out: &mut Vec<Effect>) {
        self.gone.insert(node);
        let touched: Vec<_> =
            self.objects.iter().filter(|(_, o)| o.links.is_some()).map(|(slot, _)| slot).collect();
        for slot in touched {
            let Some(object) = self.objects.get_mut(slot) else { continue };
            let id = object.id;
            let Some(links) = object.links.as_mut() else { continue };
            if links.borrowers.remove(&node).is_some() {
                // Whoever it lent to in turn registers with the owner anew: give them time.
                *links.borrowers.entry(self.me).or_default() += 1;
                self.grace.push_back((now + REBORROW_GRACE, id));
            }
            links.askers.remove(&node);
            let had_copy = links.copies.contains(&node);
            links.copies.retain(|c| *c != node);
            let lender_died = links.borrowed_from.remove(&node).is_some();
            let (owner, copies_left) = (links.owner, links.copies.len());
            let is_only_here = had_copy && links.owner.is_none() && *links.copies == [self.me];
            // What can be made again is, when somebody wants it.
            let is_last = had_copy && copies_left == 0 && matches!(object.value, Some(Value::Stored { .. }));
            let lost = is_last && !object.has_lineage();
            if is_only_here {
                out.push(Effect::CopyIsValue { object: id });
            }
            if lost || (owner == Some(node) && object.value.is_none()) {
                self.lost(object_id(&self.objects, slot), None, out);
            } else if let Some(owner) = owner.filter(|o| lender_died && *o != node) {
                self.reborrow(slot, owner, out);
            }
            self.free_if_unused(slot, out);
        }
    }

    /// Finds an entry, or makes a proxy for a reference of another node.
    pub(super) fn find_or_proxy(&mut self, reference: RefId, out: &mut Vec<Effect>) -> Option<Slot<Object>> {
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

    /// Takes references that stand inside a value; those that came from another node were lent by it.
    pub(super) fn adopt_nested(
        &mut self,
        nested: &[RefId],
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Vec<Slot<Object>> {
        nested.iter().filter_map(|reference| self.adopt(*reference, lender, out)).collect()
    }

    /// Takes one reference and counts a use of it.
    pub(crate) fn adopt(
        &mut self,
        reference: RefId,
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        let slot = match (self.objects.find(&reference.object), lender) {
            (Some(slot), None) => slot,
            (None, None) => self.find_or_proxy(reference, out)?,
            (Some(slot), Some(lender)) if self.is_orphan(slot) && !self.gone.contains(&reference.owner) => {
                // Its task ran again elsewhere: follow the new owner.
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
                if let Some(object) = self.objects.get_mut(slot) {
                    object.links().borrowed_from.insert(lender, 1);
                }
                slot
            }
        };
        if let Some(object) = self.objects.get_mut(slot) {
            object.uses += 1;
        }
        Some(slot)
    }

    /// Registers a node as borrower of an entry that is shipped to it.
    pub(super) fn lend(&mut self, slot: Slot<Object>, to: NodeId) -> Option<RefId> {
        let reference = self.reference(slot)?;
        let object = self.objects.get_mut(slot)?;
        *object.links().borrowers.entry(to).or_default() += 1;
        Some(reference)
    }

    /// Lends references that stand in outputs of a run for another node. They come back with the owners that
    /// the ledger knows: for the client, what it submitted is of this node, also where it ran before for
    /// another.
    pub fn lend_references(&mut self, nested: &[RefId], to: NodeId) -> Vec<RefId> {
        let lend =
            |reference: &RefId| self.objects.find(&reference.object).and_then(|slot| self.lend(slot, to));
        nested.iter().filter_map(lend).collect()
    }

    /// Makes an entry this node's own: its task runs again here.
    pub(super) fn take_over(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        let id = object.id;
        if matches!(object.value, Some(Value::Failed(_))) {
            object.value = None;
        }
        let links = object.links();
        if links.owner.take().is_some() {
            let local = links.copies.contains(&self.me);
            links.copies.clear();
            if local {
                links.copies.push(self.me);
            } else {
                // What is here of a run for an owner that died, if anything is.
                out.push(Effect::DropCopy { holder: self.me, object: id });
            }
            links.asked = false;
            let borrowed_from = std::mem::take(&mut links.borrowed_from);
            let give_back =
                |(to, count)| Effect::Send { to, message: Message::BorrowReleased { object: id, count } };
            out.extend(borrowed_from.into_iter().map(give_back));
            if !local && matches!(object.value, Some(Value::Stored { .. })) {
                object.value = None;
            }
        }
    }

    /// Ends borrows of nodes whose lender died long enough ago.
    pub(super) fn end_grace(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some((_, object)) = self.grace.front().copied().filter(|(until, _)| *until <= now) {
            self.grace.pop_front();
            self.borrows_returned(self.me, object, 1, out);
        }
    }

    /// A proxy whose owner is gone, without a value.
    pub(super) fn is_orphan(&self, slot: Slot<Object>) -> bool {
        let Some(object) = self.objects.get(slot) else { return false };
        let valued = matches!(object.value, Some(Value::Inline(_) | Value::Stored { .. }));
        object.owner().is_some_and(|owner| self.gone.contains(&owner)) && !valued
    }

    fn change_owner(&mut self, slot: Slot<Object>, owner: NodeId, lender: NodeId) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        object.value = None;
        let links = object.links();
        links.owner = Some(owner);
        links.asked = false;
        *links.borrowed_from.entry(lender).or_default() += 1;
    }

    fn insert_proxy(&mut self, reference: RefId) -> Slot<Object> {
        let mut object = Object::new(reference.object);
        object.links().owner = Some(reference.owner);
        self.objects.insert(object)
    }

    /// Registers with the owner itself, where no lender did it for us.
    fn reborrow(&mut self, slot: Slot<Object>, owner: NodeId, out: &mut Vec<Effect>) {
        let Some(reference) = self.reference(slot) else { return };
        if let Some(object) = self.objects.get_mut(slot) {
            *object.links().borrowed_from.entry(owner).or_default() += 1;
        }
        out.push(Effect::Send { to: owner, message: Message::BorrowAdded { reference } });
    }
}
