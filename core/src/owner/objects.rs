//! Events of objects: clients put and drop them, other nodes ask and tell, values come and are lost.
//!
//! [`super::references`] owns the entries; this file carries a change of one on to tasks and other entries: a
//! value wakes the tasks that wait for it, an entry without a reference is freed, a lost object is computed
//! again.

use super::references::{Holders, Lost, MadeBy, Release, Unused};
use super::{Effect, Object, Owner, Task};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::collections::VecDeque;
use std::sync::Arc;
use tharsis_types::hash::IdSet;
use tharsis_types::peer::{Message, RemoteState};
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, RefId};

/// Waiting tasks to wake, each with an argument whose value has come.
///
/// They are woken one after the other, even those whose argument fails because another one fails. So a chain
/// of dependent tasks of any length takes no stack.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    queue: VecDeque<(Slot<Task>, Slot<Object>)>,
    is_running: bool,
}

impl Wakes {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Asserts that no wake is left between two events.
    pub(super) fn check(&self) {
        assert!(self.queue.is_empty(), "tasks have their arguments and sleep");
        assert!(!self.is_running, "nobody wakes tasks any more");
    }

    /// Holds wakes back until [`Owner::wake`] is called with the returned guard.
    pub(super) fn hold(&mut self) -> Held {
        Held { was_running: std::mem::replace(&mut self.is_running, true) }
    }
}

/// A guard that holds wakes back; an outer caller may hold them back too.
#[derive(Debug)]
#[must_use]
pub(super) struct Held {
    was_running: bool,
}

/// The ledger's knowledge.
impl Owner {
    /// The value of an object, if there is one.
    #[must_use]
    pub fn value_ref(&self, object: ObjectId) -> Option<&Value> {
        self.references.by_id(&object)?.value()
    }

    /// Whether an object has failed, or is not known.
    #[must_use]
    pub fn is_over(&self, object: ObjectId) -> bool {
        let known = self.references.by_id(&object);
        known.is_none_or(|object| matches!(object.value(), Some(Value::Failed(_))))
    }

    /// The value of an object that a client names by its token.
    #[must_use]
    pub fn value_named(&self, client: ClientId, token: u64, object: ObjectId) -> Option<&Value> {
        self.references[self.references.find_named(client, token, &object)?].value()
    }

    /// Whether a client names an object by its token.
    #[must_use]
    pub fn has_named(&self, client: ClientId, token: u64, object: ObjectId) -> bool {
        self.references.find_named(client, token, &object).is_some()
    }

    /// An entry that a task or a run uses: its object and value.
    #[must_use]
    pub fn entry(&self, slot: Slot<Object>) -> (ObjectId, Option<&Value>) {
        let object = &self.references[slot];
        (object.id(), object.value())
    }

    /// Whether this node owns an object, with or without a value.
    #[must_use]
    pub fn owns(&self, object: ObjectId) -> bool {
        self.references.by_id(&object).is_some_and(|o| o.owner().is_none())
    }

    /// The full name of an object's reference.
    #[must_use]
    pub fn reference_of(&self, object: ObjectId) -> Option<RefId> {
        Some(self.references.reference(self.references.find(&object)?))
    }

    /// Every object in the ledger, with its owner.
    pub fn references(&self) -> impl Iterator<Item = RefId> {
        self.references.iter().map(|(slot, _)| self.references.reference(slot))
    }

    /// Whether an object has no value yet.
    #[must_use]
    pub fn is_awaited(&self, object: ObjectId) -> bool {
        self.references.by_id(&object).is_some_and(|o| o.value().is_none())
    }

    /// Number of copies of own objects that were given up so far as none could be read, though their nodes
    /// are members, and the last of them, the latest first.
    pub fn copies_given_up(&self) -> (u64, impl Iterator<Item = (ObjectId, NodeId)>) {
        self.references.given_up()
    }

    /// Nodes with a copy of a stored object.
    #[must_use]
    pub fn copies(&self, object: ObjectId) -> &[NodeId] {
        self.references.by_id(&object).map_or(&[], Object::copies)
    }

    /// References to an object, for people who ask why it is still there; `None` if the ledger does not know
    /// it.
    #[must_use]
    pub fn holders(&self, object: ObjectId) -> Option<Holders> {
        let entry = self.references.by_id(&object)?;
        Some(Holders { made_by: self.made_by(entry), ..self.references.holders(entry) })
    }

    fn made_by(&self, entry: &Object) -> Option<MadeBy> {
        if let Some(site) = entry.put_at() {
            return Some(MadeBy { name: "put".to_owned(), call_site: site.to_owned(), run_ns: 0 });
        }
        let slot = entry.origin().lineage_task().or(entry.producer())?;
        let (task, class) = (&self.tasks[slot], self.class_of(slot));
        Some(MadeBy {
            name: self.name_of(slot).to_owned(),
            call_site: class.call_site.clone(),
            run_ns: task.run_ns(),
        })
    }
}

/// Operations of clients.
impl Owner {
    /// A client put a value. False if the object exists already: a task that runs again puts the same objects
    /// again.
    pub fn put(
        &mut self,
        client: ClientId,
        token: u64,
        id: ObjectId,
        value: Value,
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) -> bool {
        if let Some(slot) = self.references.find(&id) {
            self.held(client, RefId { object: id, owner: self.me }, out);
            if self.references[slot].owner().is_some() && !matches!(value, Value::Failed(_)) {
                // The task ran before on another node, which owns the objects that it put there. Now this
                // node owns it.
                self.references.take_over(slot, out);
                let inside = self.references.adopt_nested(nested, None, out);
                self.fill(slot, value, Some(self.me), inside, out);
            }
            return false;
        }
        let slot = self.references.insert_made(id, client, token);
        let inside = self.references.adopt_nested(nested, None, out);
        self.fill(slot, value, Some(self.me), inside, out);
        true
    }

    /// Notes the call that put a value.
    pub fn put_at(&mut self, object: ObjectId, site: Box<str>) {
        self.references.put_at(object, site);
    }

    /// A client found a reference inside a value.
    pub fn held(&mut self, client: ClientId, reference: RefId, out: &mut Vec<Effect>) {
        self.references.held(client, reference, out);
    }

    /// A client dropped a reference.
    pub fn released(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Effect>) {
        if let Some(slot) = self.references.released(client, token, object) {
            self.free_if_unused(slot, out);
        }
    }

    /// A client wants a value sent as soon as there is one. If the object was freed, the client is told at
    /// once.
    pub fn fetch(&mut self, client: ClientId, token: u64, reference: RefId, out: &mut Vec<Effect>) {
        let object = reference.object;
        let slot = self.references.find_named(client, token, &object);
        slot.into_iter().for_each(|slot| self.lose_orphan(slot, out));
        // Tasks that failed with it may have held the last references to it, if the client has none.
        let Some(slot) = slot.filter(|slot| self.references.get(*slot).is_some()) else {
            out.push(Effect::Deliver { client, token, object });
            return;
        };
        if self.references.fetch(client, token, slot, out) {
            self.ask_for(slot, out);
        }
    }

    /// A client is gone: drops its classes and its references.
    pub fn client_gone(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        self.classes.forget_client(client);
        self.graphs_of_gone(client, out);
        for slot in self.references.take_held_by(client) {
            self.references.forget_client(slot, client);
            self.free_if_unused(slot, out);
        }
    }
}

/// Reports of other nodes and of the store.
impl Owner {
    /// Another node asks for the state of an object.
    pub fn locate(&mut self, from: NodeId, object: ObjectId, out: &mut Vec<Effect>) {
        if let Some(slot) = self.references.locate(from, object, out) {
            self.ask_for(slot, out);
        }
    }

    /// Another node told the state of an object, as its owner. Of another one it is not taken: whatever it
    /// lent with its message goes back.
    pub fn owner_told(
        &mut self,
        from: NodeId,
        object: ObjectId,
        state: RemoteState,
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) {
        if !self.references.is_owned_by(&object, from) {
            return decline(from, nested, out);
        }
        let inside = self.references.adopt_nested(nested, Some(from), out);
        match self.references.located(from, object, state) {
            Some((slot, value)) => {
                let is_lost = matches!(&value, Value::Failed(failure) if failure.is_loss());
                self.fill(slot, value, None, inside, out);
                if is_lost {
                    self.lose_around(&[object].into_iter().collect(), out);
                }
            }
            None => inside.into_iter().for_each(|slot| self.unuse(slot, out)),
        }
    }

    /// Whether what a node tells of an object is hearsay: another one owns it, whose word is not here.
    #[must_use]
    pub fn is_hearsay(&self, slot: Slot<Object>, from: NodeId) -> bool {
        let object = &self.references[slot];
        object.owner().is_some_and(|owner| owner != from) && !object.is_there()
    }

    /// A node has got a copy of an object, or has lost it.
    pub fn copy_changed(&mut self, holder: NodeId, object: ObjectId, exists: bool, out: &mut Vec<Effect>) {
        self.references.copy_changed(holder, object, exists, out);
    }

    /// A node keeps its copy of an own object until that is freed.
    pub fn copy_kept(&mut self, holder: NodeId, object: ObjectId) {
        self.references.copy_kept(holder, object);
    }

    /// The copies of another node's object that are known here cannot be read: its owner is asked for others.
    pub fn ask_anew(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        self.references.ask_anew(object, out);
    }

    /// The owner of another node's object is asked for its state, unless it is being asked: it may know of
    /// copies that this node does not know of.
    pub fn ask_for_copies(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        if let Some(slot) = self.references.find(&object) {
            self.references.ask_owner(slot, out);
        }
    }

    /// The owner of another node's object is asked for its state, unless that is known here or under way. If
    /// it is gone, the object is lost.
    pub fn ask_if_awaited(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(slot) = self.references.find(&object) else { return };
        self.lose_orphan(slot, out);
        if self.references.get(slot).is_some_and(|object| object.value().is_none()) {
            self.references.ask_owner(slot, out);
        }
    }

    /// The last bytes of an object were dropped to make room.
    pub fn dropped(&mut self, object: ObjectId) {
        self.references.dropped(object);
    }

    /// Takes a reference that another node sent and counts a use of it; `None` if this node owned the object
    /// and has freed it.
    pub(crate) fn adopt(
        &mut self,
        reference: RefId,
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        self.references.adopt(reference, lender, out)
    }

    /// Lends references inside the outputs of a run to the node that it ran for; returns them with the owners
    /// that the ledger knows.
    pub fn lend_references(&mut self, nested: &[RefId], to: NodeId) -> Vec<RefId> {
        self.references.lend_references(nested, to)
    }

    /// Counts a node as borrower of an object that no other node lent to it.
    pub fn borrowed(&mut self, from: NodeId, reference: RefId) {
        self.references.borrowed(from, reference);
    }

    /// Another node gives back references that it borrowed.
    pub fn borrows_returned(&mut self, from: NodeId, object: ObjectId, count: u32, out: &mut Vec<Effect>) {
        if let Some(slot) = self.references.borrows_returned(from, object, count) {
            self.free_if_unused(slot, out);
        }
    }

    /// Ends borrows of nodes whose lender died long enough ago.
    pub(super) fn end_grace(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(object) = self.references.next_grace_over(now) {
            self.borrows_returned(self.me, object, 1, out);
        }
    }

    /// A node has joined. If it was given up because the news came late, it is not dead after all.
    pub fn node_joined(&mut self, node: NodeId) {
        self.references.node_joined(node);
    }

    /// Whether a node has died.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.references.is_gone_node(node)
    }

    /// A node is gone: forgets its copies and borrows, the objects that it owned and the references that it
    /// lent.
    pub(super) fn objects_of_dead_node(&mut self, now: Now, node: NodeId, out: &mut Vec<Effect>) {
        self.references.node_gone(node);
        let mut lost = IdSet::default();
        for slot in self.references.linked() {
            // Losing one of them may have freed others, and their slots may be those of new outputs.
            let Some(id) = self.references.get(slot).map(Object::id) else { continue };
            if self.references.forget_node(slot, node, now, out) {
                self.lose_known_copies(id, None, out);
                lost.insert(id);
            }
            self.free_if_unused(slot, out);
        }
        self.lose_around(&lost, out);
    }
}

/// Values that come, are lost and are freed.
impl Owner {
    /// Counts down one use.
    pub(crate) fn unuse(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        self.references.drop_use(slot);
        self.free_if_unused(slot, out);
    }

    /// Sets the value of an entry and tells everyone who waits for it; frees the entry if nothing refers to
    /// it.
    pub(super) fn fill(
        &mut self,
        slot: Slot<Object>,
        value: Value,
        copy: Option<NodeId>,
        inside: Vec<Slot<Object>>,
        out: &mut Vec<Effect>,
    ) {
        let stored = matches!(value, Value::Stored { .. });
        let (counts, outdated) = self.references.set_value(slot, value, inside);
        if !outdated.is_empty() {
            outdated.into_iter().for_each(|inner| self.unuse(inner, out));
            // Values that refer to each other in a circle may have freed this entry together with the
            // outdated ones.
            if self.references.get(slot).is_none() {
                return;
            }
        }
        if let Some(node) = copy.filter(|_| stored) {
            self.references.copy_made(slot, node, counts, out);
        }
        if self.references[slot].is_used() {
            self.tell(slot, out);
        }
        self.free_if_unused(slot, out);
    }

    /// Frees an entry if nothing refers to it, and the entries that only it referred to. It may have been
    /// freed before.
    pub(super) fn free_if_unused(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let mut unused: Unused = smallvec::smallvec![slot];
        while let Some(slot) = unused.pop() {
            match self.references.take_unused(slot) {
                Release::Stays => {}
                Release::OnlyLineage => {
                    self.group_unneeded(slot, out);
                    unused.extend(self.references.release_bytes(slot, out));
                }
                Release::Freed(object) => {
                    self.actor_freed(slot, &mut unused, out);
                    self.group_freed(slot, out);
                    if let Some(task) = object.origin().lineage_task() {
                        unused.extend(self.output_gone(slot, task));
                    }
                    self.references.close(object, &mut unused, out);
                }
            }
        }
    }

    /// Tells everyone who waits for a value that it has come.
    fn tell(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let dependents = self.references.tell(slot, out);
        self.actor_told(slot, out);
        self.group_told(slot);
        if dependents.is_empty() {
            return;
        }
        self.wakes.queue.extend(dependents.into_iter().map(|task| (task, slot)));
        let held = self.wakes.hold();
        self.wake(held, out);
    }

    /// Wakes tasks whose arguments have their values, unless an outer caller does.
    pub(super) fn wake(&mut self, held: Held, out: &mut Vec<Effect>) {
        if held.was_running {
            return;
        }
        while let Some((task, object)) = self.wakes.queue.pop_front() {
            self.input_ready(task, object, out);
        }
        self.wakes.is_running = false;
    }

    /// The value of an entry that has none is wanted: its owner is asked, or it is computed again if no task
    /// makes it.
    pub(super) fn ask_for(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &self.references[slot];
        if object.owner().is_some() {
            self.references.ask_owner(slot, out);
        } else if object.producer().is_none() {
            self.recompute(slot, None, out);
        }
    }

    /// No copy of an object can be read: it is computed again, or its owner asked, or its readers fail.
    pub fn lost(&mut self, object: ObjectId, cause: Option<&str>, out: &mut Vec<Effect>) {
        self.lose_known_copies(object, cause, out);
        self.lose_around(&[object].into_iter().collect(), out);
    }

    /// As [`Owner::lost`], but values that contain the object stay.
    fn lose_known_copies(&mut self, object: ObjectId, cause: Option<&str>, out: &mut Vec<Effect>) {
        let Some(slot) = self.references.find(&object) else { return };
        match self.references.lose_copies(slot, out) {
            Lost::Own => self.recompute(slot, cause, out),
            Lost::Asked => {}
            Lost::ForGood => {
                let text = because(format!("no copy of object {object} is left"), cause);
                self.lose(slot, Failure::new(FailureKind::ObjectLost, text), out);
            }
        }
    }

    /// A stored value with a reference to an object that has just been lost is lost with it if it can be
    /// computed again: another run of its task puts the object inside anew. Who reads the value next has it
    /// computed.
    fn lose_around(&mut self, lost: &IdSet<ObjectId>, out: &mut Vec<Effect>) {
        for slot in self.references.around_lost(lost) {
            self.references.drop_copies(slot, out);
        }
    }

    /// An object will not get a value any more: everyone who waits for it gets the failure.
    pub(super) fn lose(&mut self, slot: Slot<Object>, failure: Failure, out: &mut Vec<Effect>) {
        self.references.set_failed(slot, Value::Failed(Arc::new(failure)));
        self.tell(slot, out);
    }

    /// Loses a proxy that came after its owner had died, and whose value nobody knows.
    pub(super) fn lose_orphan(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &self.references[slot];
        if object.value().is_none() && self.references.is_orphan(slot) {
            self.lost(object.id(), None, out);
        }
    }
}

/// Gives back references that a node lent with a message of which nothing is taken.
pub(crate) fn decline(from: NodeId, lent: &[RefId], out: &mut Vec<Effect>) {
    for reference in lent {
        let message = Message::BorrowReleased { object: reference.object, count: 1 };
        out.push(Effect::Send { to: from, message });
    }
}

/// The text of a failure, with its cause if that is known.
pub(crate) fn because(text: String, cause: Option<&str>) -> String {
    match cause {
        Some(cause) => format!("{text}: {cause}"),
        None => text,
    }
}
