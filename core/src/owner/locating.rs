//! What an object is and where its copies lie, between nodes: questions, answers, and what becomes of it when
//! no copy can be read.

use super::objects::object_id;
use super::{Effect, Object, Owner};
use crate::event::Value;
use crate::peer::{Message, RemoteState};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, NodeId, ObjectId, RefId};

/// Answers of an object's owner that may name only copies that cannot be read: news of those that went may be
/// on their way.
const LOSSES_MAX: u8 = 8;

impl Owner {
    /// Nodes with a copy of a stored object.
    #[must_use]
    pub fn copies(&self, object: ObjectId) -> &[NodeId] {
        let links = self.objects.by_id(&object).and_then(|o| o.links.as_ref());
        links.map_or(&[], |l| &l.copies)
    }

    /// Another node asks what an object is.
    pub fn locate(&mut self, from: NodeId, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find(&object) else {
            let message = Message::ObjectState { object, state: RemoteState::Freed, nested: Vec::new() };
            out.push(Effect::Send { to: from, message });
            return;
        };
        let Some(entry) = self.objects.get_mut(slot) else { return };
        if entry.is_gone() {
            entry.value = None;
        }
        if entry.value.is_none() {
            entry.links().askers.insert(from);
            self.ask_for(slot, out);
            return;
        }
        self.answer(slot, from, out);
    }

    /// The owner of a proxy told what it is.
    pub fn located(
        &mut self,
        from: NodeId,
        object: ObjectId,
        state: RemoteState,
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) {
        let inside = self.adopt_nested(nested, Some(from), out);
        let slot = self.objects.find(&object);
        let proxy = slot.filter(|s| self.objects.get(*s).is_some_and(|o| o.owner().is_some()));
        let Some(slot) = proxy else {
            inside.into_iter().for_each(|s| self.unuse(s, out));
            return;
        };
        let (value, copies) = match state {
            RemoteState::Failed(failure) => (Value::Failed(failure), Vec::new()),
            RemoteState::Inline(bytes) => (Value::Inline(bytes), Vec::new()),
            RemoteState::Stored { len, holders } => (Value::Stored { len }, holders),
            RemoteState::Freed => {
                let text = format!("object {object} was freed by its owner, node {from}");
                (Value::Failed(Arc::new(Failure::new(FailureKind::ObjectFreed, text))), Vec::new())
            }
        };
        if let Some(entry) = self.objects.get_mut(slot) {
            let links = entry.links();
            // Only the owner knows of all copies; who lends a reference on may have heard of others long ago.
            let is_owner = links.owner == Some(from);
            links.asked &= !is_owner;
            if is_owner || links.copies.is_empty() {
                links.copies = copies;
            }
            if is_owner && entry.is_gone() && !matches!(value, Value::Stored { .. }) {
                // It was made again, and is not in a store this time.
                entry.value = None;
            }
            if entry.value.is_some() {
                inside.into_iter().for_each(|s| self.unuse(s, out));
                return;
            }
        }
        self.fill(slot, value, None, inside, out);
    }

    /// A copy of an object exists on a node now, or does not any more.
    pub fn copy_changed(&mut self, holder: NodeId, object: ObjectId, exists: bool, out: &mut Vec<Effect>) {
        let Some(entry) = self.objects.by_id_mut(&object) else {
            if exists {
                out.push(Effect::DropCopy { holder, object });
            }
            return;
        };
        let owner = entry.owner();
        let links = entry.links();
        links.copies.retain(|c| *c != holder);
        if exists {
            links.copies.push(holder);
            links.losses = 0;
        }
        if let Some(owner) = owner.filter(|_| holder == self.me) {
            let message =
                if exists { Message::HolderAdded { object } } else { Message::HolderRemoved { object } };
            out.push(Effect::Send { to: owner, message });
        }
    }

    /// No copy of an object can be read: it is made again, or its owner asked, or its readers fail.
    pub fn lost(&mut self, object: ObjectId, cause: Option<&str>, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find(&object) else { return };
        let Some(entry) = self.objects.get_mut(slot) else { return };
        let owner = entry.owner();
        let is_answered = owner.is_some_and(|owner| !self.gone.contains(&owner));
        entry.value = None;
        let links = entry.links();
        let copies = std::mem::take(&mut links.copies);
        // What others than the owner said of it does not count while its answer is on its way.
        links.losses = links.losses.saturating_add(u8::from(!links.asked));
        match owner {
            None => {
                out.extend(copies.into_iter().map(|holder| Effect::DropCopy { holder, object }));
                self.recompute(slot, cause, out);
            }
            Some(_) if is_answered && links.losses <= LOSSES_MAX => self.ask_owner(Some(slot), out),
            Some(_) => {
                let text = because(format!("no copy of object {object} is left"), cause);
                self.lose(slot, Failure::new(FailureKind::ObjectLost, text), out);
            }
        }
    }

    /// An object will have no value any more: everyone who waits for it hears why.
    pub(super) fn lose(&mut self, slot: Slot<Object>, failure: Failure, out: &mut Vec<Effect>) {
        if let Some(entry) = self.objects.get_mut(slot) {
            entry.value = Some(Value::Failed(Arc::new(failure)));
            self.tell(slot, out);
        }
    }

    /// The copies of another node's object that are known here cannot be read: its owner knows which can.
    pub fn ask_anew(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find(&object) else { return };
        if let Some(links) = self.objects.get_mut(slot).and_then(|o| o.links.as_mut()) {
            links.asked = false;
        }
        self.ask_owner(Some(slot), out);
    }

    /// Somebody wants the value of an entry without one: it is made again if nobody makes it, or its owner is
    /// asked.
    pub(super) fn ask_for(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(object) = self.objects.get(slot) else { return };
        if object.owner().is_some() {
            self.ask_owner(Some(slot), out);
        } else if object.producer.is_none() {
            self.recompute(slot, None, out);
        }
    }

    /// What another node is told of an entry; references inside are lent to it.
    pub(super) fn remote_state(&mut self, slot: Slot<Object>, to: NodeId) -> (RemoteState, Vec<RefId>) {
        let Some(object) = self.objects.get(slot) else { return (RemoteState::Freed, Vec::new()) };
        let links = object.links.as_deref();
        let state = match &object.value {
            Some(Value::Failed(failure)) => RemoteState::Failed(failure.clone()),
            Some(Value::Inline(bytes)) => RemoteState::Inline(bytes.clone()),
            Some(Value::Stored { len }) => RemoteState::Stored {
                len: *len,
                holders: links.map(|l| l.copies.clone()).unwrap_or_default(),
            },
            None => RemoteState::Freed,
        };
        let inside = links.map(|l| l.nested.clone()).unwrap_or_default();
        let nested = inside.into_iter().filter_map(|s| self.lend(s, to)).collect();
        (state, nested)
    }

    /// A proxy that came after its owner had died, and whose value nobody can tell, is lost.
    pub(super) fn lose_orphan(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let valueless = self.objects.get(slot).is_some_and(|o| o.value.is_none());
        if valueless && self.is_orphan(slot) {
            self.lost(object_id(&self.objects, slot), None, out);
        }
    }

    /// Asks the owner of a proxy what it is, once.
    pub(super) fn ask_owner(&mut self, slot: Option<Slot<Object>>, out: &mut Vec<Effect>) {
        let Some(object) = slot.and_then(|s| self.objects.get_mut(s)) else { return };
        let id = object.id;
        let Some(links) = object.links.as_mut() else { return };
        if let Some(to) = links.owner.filter(|_| !links.asked) {
            links.asked = true;
            out.push(Effect::Send { to, message: Message::ObjectLocate { object: id } });
        }
    }

    pub(super) fn answer(&mut self, slot: Slot<Object>, to: NodeId, out: &mut Vec<Effect>) {
        let object = object_id(&self.objects, slot);
        let (state, nested) = self.remote_state(slot, to);
        out.push(Effect::Send { to, message: Message::ObjectState { object, state, nested } });
    }
}

/// What happened, and why if that is known.
pub(crate) fn because(text: String, cause: Option<&str>) -> String {
    match cause {
        Some(cause) => format!("{text}: {cause}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    #[test]
    fn what_is_made_again_need_not_be_stored_again() {
        let (me, owner, lender) = (NodeId(1), NodeId(2), NodeId(3));
        let object = ObjectId::output(TaskId::root(JobId(1)), 0);
        let mut ledger = Owner::new(me, 0);
        let mut out = Vec::new();
        ledger.adopt(RefId { object, owner }, Some(lender), &mut out);
        let stored = |holders| RemoteState::Stored { len: 8, holders };
        let inline = || RemoteState::Inline([7].as_slice().into());
        ledger.located(lender, object, stored(vec![lender]), &[], &mut out);
        ledger.located(lender, object, inline(), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Stored { len: 8 }), "only the owner knows");
        ledger.ask_anew(object, &mut out);
        ledger.located(owner, object, inline(), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Inline([7].as_slice().into())));
        ledger.located(owner, object, stored(vec![owner]), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Inline([7].as_slice().into())), "it is here");
    }
}
