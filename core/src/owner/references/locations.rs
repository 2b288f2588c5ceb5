//! Requests of other nodes for the state of objects, the replies, and copies that cannot be read.
//!
//! Objects are named by id here, because other nodes and the store do so: an entry may have been freed while
//! the message was under way.

use super::{Object, References};
use crate::event::Value;
use crate::journal::{About, Entry, Fact};
use crate::owner::Effect;
use crate::slab::Slot;
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::peer::{Message, RemoteState};
use tharsis_types::{Failure, FailureKind, NodeId, ObjectId, RefId};

/// Maximum number of answers of an owner that name only unreadable copies: the news that these are gone may
/// still be on its way to the owner.
const LOSSES_MAX: u8 = 8;

/// Before an owner is asked for the second time; it doubles each time. The last answer comes after more than
/// two seconds: a connection that broke is there again.
const LOSS_PAUSE: Now = 20 * MS;

/// The outcome for an object whose known copies cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owner) enum Lost {
    /// It is this node's own: it is computed again, or its readers fail.
    Own,
    /// Its owner was asked for readable copies.
    Asked,
    /// No node knows a readable copy.
    ForGood,
}

impl References {
    /// Another node asks for the state of an object. It is answered now, or when there is a value. In the
    /// latter case, returns the entry: the caller must ask for the value.
    pub(in crate::owner) fn locate(
        &mut self,
        from: NodeId,
        object: ObjectId,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        let Some(slot) = self.objects.find(&object) else {
            let message = Message::ObjectState { object, state: RemoteState::Freed, nested: Vec::new() };
            out.push(Effect::Send { to: from, message });
            return None;
        };
        self.clear_gone(slot);
        let entry = &mut self.objects[slot];
        if entry.value.is_some() {
            self.answer(slot, from, out);
            return None;
        }
        entry.links().askers.insert(from);
        Some(slot)
    }

    /// Whether an object is that of another node, as far as this one knows.
    pub(in crate::owner) fn is_owned_by(&self, object: &ObjectId, node: NodeId) -> bool {
        self.objects.find(object).is_some_and(|slot| self.objects[slot].owner() == Some(node))
    }

    /// The owner of an object told its state. Returns the value to set if the object is a proxy here without
    /// a value.
    pub(in crate::owner) fn located(
        &mut self,
        from: NodeId,
        object: ObjectId,
        state: RemoteState,
    ) -> Option<(Slot<Object>, Value)> {
        let slot = self.objects.find(&object)?;
        let entry = &mut self.objects[slot];
        if entry.owner() != Some(from) {
            return None;
        }
        let (value, copies) = value_told(from, object, state);
        let links = entry.links();
        (links.asked, links.copies) = (false, copies);
        if entry.is_gone() && !matches!(value, Value::Stored { .. }) {
            // The object was computed again, and its value is not in a store this time.
            entry.value = None;
        }
        entry.value.is_none().then_some((slot, value))
    }

    /// A node has got a copy of an object, or has lost it.
    pub(in crate::owner) fn copy_changed(
        &mut self,
        holder: NodeId,
        object: ObjectId,
        exists: bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.objects.by_id_mut(&object) else {
            if exists {
                out.push(Effect::DropCopy { holder, object });
            }
            return;
        };
        let fact = if exists { Fact::CopyAdded(holder) } else { Fact::CopyGone(holder) };
        self.journal.note(About::Object(object), fact);
        let owner = entry.owner();
        let links = entry.links();
        let first = links.copies.first().copied();
        if exists {
            links.losses = 0;
        } else {
            links.copies.retain(|c| *c != holder);
        }
        if exists && !links.copies.contains(&holder) {
            links.copies.push(holder);
        }
        entry.keep_first(first, out);
        if let Some(owner) = owner.filter(|_| holder == self.me) {
            let message =
                if exists { Message::HolderAdded { object } } else { Message::HolderRemoved { object } };
            out.push(Effect::Send { to: owner, message });
        }
    }

    /// A node keeps its copy of an own object as if it had made it: the others may go.
    pub(in crate::owner) fn copy_kept(&mut self, holder: NodeId, object: ObjectId) {
        if let Some(entry) = self.objects.by_id_mut(&object).filter(|entry| entry.owner().is_none()) {
            let copies = &mut entry.links().copies;
            copies.retain(|c| *c != holder);
            copies.insert(0, holder);
        }
    }

    /// No copy of an object can be read: clears its value, and asks its owner if that is another node.
    pub(in crate::owner) fn lose_copies(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) -> Lost {
        let entry = &mut self.objects[slot];
        let (object, owner) = (entry.id, entry.owner());
        entry.value = None;
        self.journal.note(About::Object(object), Fact::CopiesLost);
        let links = entry.links();
        let copies = std::mem::take(&mut links.copies);
        // A loss does not count while the answer of the owner is on its way: another node named those copies.
        links.losses = links.losses.saturating_add(u8::from(!links.asked));
        let (losses, was_asked) = (links.losses, links.asked);
        match owner {
            None => {
                self.given_up += copies.len() as u64;
                for holder in copies {
                    self.journal.note(About::Object(object), Fact::CopyGivenUp(holder));
                    out.push(Effect::DropCopy { holder, object });
                }
                Lost::Own
            }
            Some(owner) if losses <= LOSSES_MAX && !self.gone.contains(&owner) => {
                match losses.checked_sub(2).filter(|_| !was_asked) {
                    None => self.ask_owner(slot, out),
                    Some(doubled) => {
                        self.objects[slot].links().asked = true;
                        self.questions.insert((self.now + (LOSS_PAUSE << doubled), object));
                    }
                }
                Lost::Asked
            }
            Some(_) => Lost::ForGood,
        }
    }

    /// Number of copies of own objects that were given up so far, and the last of them, the latest first.
    pub(in crate::owner) fn given_up(&self) -> (u64, impl Iterator<Item = (ObjectId, NodeId)>) {
        let copy = |entry: Entry| match (entry.about, entry.fact) {
            (About::Object(object), Fact::CopyGivenUp(holder)) => Some((object, holder)),
            _ => None,
        };
        (self.given_up, self.journal.latest_rare().filter_map(copy))
    }

    /// The copies of another node's object that are known here cannot be read: its owner is asked for others.
    pub(in crate::owner) fn ask_anew(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find(&object) else { return };
        if let Some(links) = self.objects[slot].links.as_mut() {
            links.asked = false;
        }
        self.ask_owner(slot, out);
    }

    /// Asks the owners whose turn it is after a pause.
    pub(in crate::owner) fn ask_after_pauses(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(question) = self.questions.first().copied().filter(|(at, _)| *at <= now) {
            self.questions.remove(&question);
            let Some(slot) = self.objects.find(&question.1) else { continue };
            let object = &mut self.objects[slot];
            if object.value.is_none() {
                object.links().asked = false;
                self.ask_owner(slot, out);
            }
        }
    }

    /// Asks the owner of a proxy for its state, once.
    pub(in crate::owner) fn ask_owner(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &mut self.objects[slot];
        let id = object.id;
        let Some(links) = object.links.as_mut() else { return };
        if let Some(to) = links.owner.filter(|_| !links.asked) {
            links.asked = true;
            self.journal.note(About::Object(id), Fact::OwnerAsked(to));
            out.push(Effect::Send { to, message: Message::ObjectLocate { object: id } });
        }
    }

    /// Reply to another node about an entry; references inside are lent to it.
    pub(in crate::owner) fn remote_state(
        &mut self,
        slot: Slot<Object>,
        to: NodeId,
    ) -> (RemoteState, Vec<RefId>) {
        let object = &self.objects[slot];
        let state = match &object.value {
            Some(Value::Failed(failure)) => RemoteState::Failed(failure.clone()),
            Some(Value::Inline(bytes)) => RemoteState::Inline(bytes.clone()),
            Some(Value::Stored { len }) => {
                RemoteState::Stored { len: *len, holders: object.copies().to_vec() }
            }
            None => RemoteState::Freed,
        };
        let inside = object.nested().to_vec();
        let nested = inside.into_iter().map(|s| self.lend(s, to)).collect();
        (state, nested)
    }

    pub(super) fn answer(&mut self, slot: Slot<Object>, to: NodeId, out: &mut Vec<Effect>) {
        let object = self.objects[slot].id;
        let (state, nested) = self.remote_state(slot, to);
        out.push(Effect::Send { to, message: Message::ObjectState { object, state, nested } });
    }
}

impl Object {
    /// The first copy of an own object stays until it is freed, and the others may be evicted. A node whose
    /// copy has become the first may only have read it, so it is told.
    pub(super) fn keep_first(&self, before: Option<NodeId>, out: &mut Vec<Effect>) {
        let is_new = |first: &NodeId| self.owner().is_none() && before != Some(*first);
        let first = self.copies().first().copied().filter(is_new);
        if let (Some(holder), Some(Value::Stored { len })) = (first, &self.value) {
            out.push(Effect::CopyIsValue { holder, object: self.id, len: *len });
        }
    }
}

/// The value that a node tells of an object, and the nodes with a copy.
pub(crate) fn value_told(from: NodeId, object: ObjectId, state: RemoteState) -> (Value, Vec<NodeId>) {
    match state {
        RemoteState::Failed(failure) => (Value::Failed(failure), Vec::new()),
        RemoteState::Inline(bytes) => (Value::Inline(bytes), Vec::new()),
        RemoteState::Stored { len, holders } => (Value::Stored { len }, holders),
        RemoteState::Freed => {
            let text = format!("object {object} was freed by its owner, node {from}");
            (Value::Failed(Arc::new(Failure::new(FailureKind::ObjectFreed, text))), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LOSSES_MAX;
    use crate::MS;
    use crate::event::Value;
    use crate::owner::{Effect, Owner};
    use tharsis_types::peer::{Message, RemoteState};
    use tharsis_types::{ClientId, JobId, NodeId, ObjectId, RefId, TaskId};

    #[test]
    fn what_is_made_again_need_not_be_stored_again() {
        let (me, owner, lender) = (NodeId(1), NodeId(2), NodeId(3));
        let object = ObjectId::output(TaskId::root(JobId(1)), 0);
        let mut ledger = Owner::new(me, 0);
        let mut out = Vec::new();
        ledger.adopt(RefId { object, owner }, Some(lender), &mut out);
        let stored = |holders| RemoteState::Stored { len: 8, holders };
        let inline = || RemoteState::Inline([7].as_slice().into());
        ledger.owner_told(lender, object, inline(), &[], &mut out);
        assert_eq!(ledger.value_ref(object), None, "only the owner knows");
        ledger.owner_told(owner, object, stored(vec![lender]), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Stored { len: 8 }));
        ledger.copy_changed(lender, object, false, &mut out);
        ledger.ask_anew(object, &mut out);
        ledger.owner_told(owner, object, inline(), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Inline([7].as_slice().into())));
        ledger.owner_told(owner, object, stored(vec![owner]), &[], &mut out);
        assert_eq!(ledger.value_ref(object), Some(&Value::Inline([7].as_slice().into())), "it is here");
    }

    /// The holder has lost its copy, and the owner names it until that news has come.
    #[test]
    fn an_owner_that_names_only_unreadable_copies_is_asked_again_after_a_pause() {
        let (me, owner, holder) = (NodeId(1), NodeId(2), NodeId(3));
        let object = ObjectId::output(TaskId::root(JobId(1)), 0);
        let question = Effect::Send { to: owner, message: Message::ObjectLocate { object } };
        let mut ledger = Owner::new(me, 0);
        let (mut out, mut now) = (Vec::new(), 0);
        ledger.adopt(RefId { object, owner }, Some(owner), &mut out);
        let lose = |ledger: &mut Owner| {
            let (state, mut out) = (RemoteState::Stored { len: 8, holders: vec![holder] }, Vec::new());
            ledger.owner_told(owner, object, state, &[], &mut out);
            out.clear();
            ledger.lost(object, None, &mut out);
            out
        };
        assert!(lose(&mut ledger).contains(&question), "at once");
        for _ in 1..LOSSES_MAX {
            let mut out = lose(&mut ledger);
            ledger.ask_if_awaited(object, &mut out);
            assert!(!out.contains(&question), "others wait as well");
            while !out.contains(&question) {
                now = ledger.next_timeout().unwrap();
                ledger.tell_time(now);
                ledger.expire(now, &mut out);
            }
        }
        assert!((2_000 * MS..4_000 * MS).contains(&now), "{} ms", now / MS);
        assert_eq!(ledger.value_ref(object), None);
        lose(&mut ledger);
        assert!(matches!(ledger.value_ref(object), Some(Value::Failed(_))), "not for ever");
        assert_eq!(ledger.leftovers().find(|(name, _)| *name == "questions to owners").unwrap().1, 0);
    }

    /// Each way in which the first copy goes, and one that was only read becomes the first.
    #[test]
    fn a_copy_that_becomes_the_first_is_kept() {
        let [me, second, third] = [1, 2, 3].map(NodeId);
        let object = ObjectId::put(TaskId::root(JobId(1)), 0);
        let (mut ledger, mut out) = (Owner::new(me, 0), Vec::new());
        ledger.put(ClientId(1), 1, object, Value::Stored { len: 8 }, &[], &mut out);
        let changed = |ledger: &mut Owner, holder, exists| {
            let mut out = Vec::new();
            ledger.copy_changed(holder, object, exists, &mut out);
            out
        };
        let kept = |holder| Effect::CopyIsValue { holder, object, len: 8 };
        assert_eq!(changed(&mut ledger, second, true), []);
        assert_eq!(changed(&mut ledger, third, true), []);
        assert_eq!(changed(&mut ledger, me, false), [kept(second)], "the disk has lost it");
        assert_eq!(changed(&mut ledger, second, true), [], "it is the first already");
        out.clear();
        ledger.objects_of_dead_node(0, second, &mut out);
        assert!(out.contains(&kept(third)), "its node has died: {out:?}");
        assert_eq!(changed(&mut ledger, me, true), []);
        ledger.copy_kept(me, object);
        assert_eq!(changed(&mut ledger, third, false), [], "another node keeps it instead");
        assert_eq!(changed(&mut ledger, me, false), [], "none is left");
        assert_eq!(changed(&mut ledger, third, true), [kept(third)], "the news of it is late");
        out.clear();
        ledger.lost(object, None, &mut out);
        assert!(out.contains(&Effect::DropCopy { holder: third, object }), "{out:?}");
        let (count, latest) = ledger.copies_given_up();
        assert_eq!((count, latest.collect::<Vec<_>>()), (1, vec![(object, third)]));
        // The value of another node's object is here when this one takes that over.
        let taken = ObjectId::put(TaskId::root(JobId(1)), 1);
        ledger.adopt(RefId { object: taken, owner: third }, Some(third), &mut out);
        let state = RemoteState::Stored { len: 8, holders: vec![third] };
        ledger.owner_told(third, taken, state, &[], &mut out);
        ledger.copy_changed(me, taken, true, &mut out);
        out.clear();
        assert!(!ledger.put(ClientId(1), 2, taken, Value::Stored { len: 8 }, &[], &mut out));
        assert!(out.contains(&Effect::CopyIsValue { holder: me, object: taken, len: 8 }), "{out:?}");
    }
}
