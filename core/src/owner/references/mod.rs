//! References: the objects of the ledger, the references to them, their values and the locations of their
//! copies.
//!
//! This machine owns the entries. It knows tasks only by their slots: the task that makes an object, the
//! tasks that wait for it, and the kept task that could compute it again. The caller changes the tasks:
//! methods that concern a task return its slot, and methods that may leave an entry without a reference
//! return the entry's slot, for [`super::Owner::free_if_unused`].
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | entries: uses, values, freeing, lineage data |
//! | `object.rs` | one entry and its fields |
//! | `dependents.rs` | tasks that wait for an entry |
//! | `clients.rs` | references of clients |
//! | `borrows.rs` | references that are sent between nodes, nodes that die |
//! | `locations.rs` | state and copies of an object, between nodes |
//! | `table.rs` | lookup of an entry by id or by name |

mod borrows;
mod clients;
mod dependents;
mod locations;
mod object;
mod table;

pub use clients::{Holders, MadeBy};
pub(super) use locations::Lost;
pub(crate) use locations::value_told;
pub use object::Object;
pub(super) use object::{Origin, Unkept};

use super::{Effect, Task};
use crate::Now;
use crate::event::Value;
use crate::journal::{About, Entry, Fact, Journal};
use crate::slab::Slot;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Index;
use table::Objects;
use tharsis_types::hash::{IdMap, IdSet};
use tharsis_types::{NodeId, ObjectId, RefId};

/// Entries that may have lost their last reference.
pub(super) type Unused = SmallVec<[Slot<Object>; 4]>;

/// Objects and the references to them.
#[derive(Debug)]
pub(super) struct References {
    me: NodeId,
    objects: Objects,
    /// Nodes that are gone.
    gone: IdSet<NodeId>,
    /// Objects that are kept for a moment because a node that lent them on died: its borrowers register anew.
    grace: VecDeque<(Now, ObjectId)>,
    /// Objects of other nodes whose owners are asked for them after a pause, by the time of the question.
    questions: BTreeSet<(Now, ObjectId)>,
    /// Number of copies of own objects that were given up so far.
    given_up: u64,
    now: Now,
    journal: Journal,
}

/// The outcome for an entry that may have lost its last reference.
#[derive(Debug)]
pub(super) enum Release {
    /// Something refers to it, or it was freed before.
    Stays,
    /// Only lineage needs it: its bytes may go.
    OnlyLineage,
    /// It was removed from the table.
    Freed(Object),
}

impl Index<Slot<Object>> for References {
    type Output = Object;

    fn index(&self, slot: Slot<Object>) -> &Object {
        &self.objects[slot]
    }
}

impl References {
    pub(super) fn new(me: NodeId) -> Self {
        Self {
            me,
            objects: Objects::default(),
            gone: IdSet::default(),
            grace: VecDeque::new(),
            questions: BTreeSet::new(),
            given_up: 0,
            now: 0,
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.now = now;
        self.journal.tell_time(now);
    }

    /// The remembered history of an object.
    pub(super) fn past(&self, object: ObjectId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Object(object))
    }

    /// An entry that may have been freed.
    pub(super) fn get(&self, slot: Slot<Object>) -> Option<&Object> {
        self.objects.get(slot)
    }

    pub(super) fn find(&self, id: &ObjectId) -> Option<Slot<Object>> {
        self.objects.find(id)
    }

    pub(super) fn by_id(&self, id: &ObjectId) -> Option<&Object> {
        self.objects.by_id(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot<Object>, &Object)> {
        self.objects.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The full name of an entry's reference.
    pub(super) fn reference(&self, slot: Slot<Object>) -> RefId {
        let object = &self.objects[slot];
        RefId { object: object.id, owner: object.owner().unwrap_or(self.me) }
    }

    /// Whether an entry has a value or will get one.
    pub(super) fn is_live(&self, object: &Object) -> bool {
        let answered = object.owner().is_some_and(|owner| !self.gone.contains(&owner));
        let is_over = object.is_lost() || object.origin().unneeded;
        !is_over && (object.value.is_some() || object.producer.is_some() || answered)
    }

    /// Adds an entry for an output that only its task refers to.
    pub(super) fn insert_output(&mut self, id: ObjectId) -> Slot<Object> {
        self.objects.insert(Object::new(id))
    }

    /// Notes the task that will make an object.
    pub(super) fn set_producer(&mut self, slot: Slot<Object>, task: Slot<Task>) {
        let object = &mut self.objects[slot];
        assert_eq!(object.producer, None, "{} is made by two tasks", object.id);
        object.producer = Some(task);
    }

    /// Counts one use.
    pub(super) fn add_use(&mut self, slot: Slot<Object>) {
        self.objects[slot].uses += 1;
    }

    /// Counts down one use.
    pub(super) fn drop_use(&mut self, slot: Slot<Object>) {
        let object = &mut self.objects[slot];
        assert!(0 < object.uses, "{} is used less often than never", object.id);
        object.uses -= 1;
    }

    /// Notes that a task waits for a value, once for each argument.
    pub(super) fn add_dependent(&mut self, slot: Slot<Object>, task: Slot<Task>) {
        let object = &mut self.objects[slot];
        assert!(object.value.is_none(), "a task waits for {}, which has a value", object.id);
        object.links().dependents.push(task);
    }

    /// Notes that a task does not wait for a value any more.
    pub(super) fn remove_dependent(&mut self, slot: Slot<Object>, task: Slot<Task>) {
        if let Some(links) = self.objects[slot].links.as_mut() {
            links.dependents.remove(task);
        }
    }

    /// Drops a value whose bytes are on no node, so that the next value can be awaited.
    pub(super) fn clear_gone(&mut self, slot: Slot<Object>) {
        let object = &mut self.objects[slot];
        if object.is_gone() {
            object.value = None;
        }
    }

    /// Drops the value of an actor that is constructed again by a task.
    pub(super) fn await_again(&mut self, slot: Slot<Object>, task: Slot<Task>) {
        self.objects[slot].value = None;
        self.set_producer(slot, task);
    }

    /// Drops what is known of the value of another node's object.
    pub(super) fn forget_value(&mut self, slot: Slot<Object>) {
        let object = &mut self.objects[slot];
        assert!(object.owner().is_some(), "{} is this node's own and is forgotten", object.id);
        object.value = None;
    }

    /// Sets the value of an entry whose task has ended. A value that can be read stays: the task ran again
    /// only for another output. Returns whether the new value was set, and the entries inside the value that
    /// does not count, which are used once less.
    pub(super) fn set_value(
        &mut self,
        slot: Slot<Object>,
        value: Value,
        inside: Vec<Slot<Object>>,
    ) -> (bool, Vec<Slot<Object>>) {
        let object = &mut self.objects[slot];
        object.producer = None;
        if object.has_bytes() {
            return (false, inside);
        }
        match &value {
            Value::Inline(_) => {}
            Value::Stored { len } => self.journal.note(About::Object(object.id), Fact::Stored(*len)),
            Value::Failed(_) => self.journal.note(About::Object(object.id), Fact::Failed),
        }
        object.value = Some(value);
        if object.links.is_none() && inside.is_empty() {
            return (true, inside);
        }
        (true, std::mem::replace(&mut object.links().nested, inside))
    }

    /// A run left a copy on a node; `counts` tells whether its value is the one that counts.
    pub(super) fn copy_made(
        &mut self,
        slot: Slot<Object>,
        node: NodeId,
        counts: bool,
        out: &mut Vec<Effect>,
    ) {
        let object = &mut self.objects[slot];
        let id = object.id;
        let copies = &mut object.links().copies;
        if !copies.contains(&node) {
            if counts {
                copies.insert(0, node)
            } else {
                // The bytes of this run were not compared with those that are there.
                out.push(Effect::DropCopy { holder: node, object: id })
            }
        }
    }

    /// Sets the failure of an entry that will not get a value any more.
    pub(super) fn set_failed(&mut self, slot: Slot<Object>, value: Value) {
        let object = &mut self.objects[slot];
        self.journal.note(About::Object(object.id), Fact::Failed);
        object.value = Some(value);
    }

    /// Sets the failure of a placement group that was removed because only lineage refers to it.
    pub(super) fn set_unneeded(&mut self, slot: Slot<Object>, value: Value) {
        self.set_failed(slot, value);
        self.objects[slot].links().origin.unneeded = true;
    }

    /// Tells all clients and nodes that wait for a value that it has come; returns the tasks that waited.
    pub(super) fn tell(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) -> Vec<Slot<Task>> {
        let object = &mut self.objects[slot];
        let id = object.id;
        assert!(object.value.is_some(), "{id} is announced without a value");
        let stored = matches!(object.value, Some(Value::Stored { .. }));
        // A client that put the value has it already. A client that submitted the task is told without
        // asking.
        let waits =
            |client| object.links.as_ref().is_some_and(|l| l.fetchers.contains(&(client, object.token)));
        if let Some(client) = object.maker.filter(|client| !id.is_put() && !waits(*client)) {
            out.push(Effect::Deliver { client, token: object.token, object: id });
        }
        let Some(links) = object.links.as_mut() else { return Vec::new() };
        for (client, token) in links.fetchers.drain(..) {
            out.push(if stored {
                Effect::Serve { client, token, object: id }
            } else {
                Effect::Deliver { client, token, object: id }
            });
        }
        let askers = std::mem::take(&mut links.askers);
        let dependents = links.dependents.take();
        askers.into_iter().for_each(|node| self.answer(slot, node, out));
        dependents
    }

    /// Removes an entry from the table if nothing refers to it. It may have been freed before.
    pub(super) fn take_unused(&mut self, slot: Slot<Object>) -> Release {
        match self.objects.get(slot) {
            None => Release::Stays,
            Some(object) if object.is_used() => Release::Stays,
            Some(object) if object.origin().needed_by > 0 => Release::OnlyLineage,
            Some(_) => Release::Freed(self.objects.take(slot)),
        }
    }

    /// Drops the copies of a freed object, gives its borrows back, and counts down the uses of the objects
    /// inside it, which are appended to `unused`.
    pub(super) fn close(&mut self, object: Object, unused: &mut Unused, out: &mut Vec<Effect>) {
        let (id, Some(mut links)) = (object.id, object.links) else { return };
        if matches!(object.value, Some(Value::Stored { .. })) {
            self.journal.note(About::Object(id), Fact::Freed);
        }
        assert!(links.dependents.is_empty(), "{id} is freed while tasks wait for it");
        if links.owner.is_some_and(|owner| self.gone.contains(&owner)) {
            out.push(Effect::DropCopy { holder: self.me, object: id });
        }
        if links.owner.is_none() {
            out.extend(links.copies.iter().map(|holder| Effect::DropCopy { holder: *holder, object: id }));
        }
        links.give_back(id, out);
        for inner in links.nested {
            self.drop_use(inner);
            unused.push(inner);
        }
    }

    /// Drops the bytes of an object that only lineage needs, if it can be computed again; returns the objects
    /// inside it.
    pub(super) fn release_bytes(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) -> Vec<Slot<Object>> {
        let object = &mut self.objects[slot];
        assert!(!object.is_used(), "{} is used and its bytes are to go", object.id);
        if !object.has_lineage() || !matches!(object.value, Some(Value::Stored { .. })) {
            return Vec::new();
        }
        let id = object.id;
        object.value = None;
        let links = object.links();
        links.origin.dropped = true;
        let copies = std::mem::take(&mut links.copies);
        out.extend(copies.into_iter().map(|holder| Effect::DropCopy { holder, object: id }));
        let nested = std::mem::take(&mut links.nested);
        nested.iter().for_each(|inner| self.drop_use(*inner));
        nested
    }

    /// Own values in stores that contain a reference to one of these objects, if it will not get a value any
    /// more, and that can be computed again.
    pub(super) fn around_lost(&self, lost: &IdSet<ObjectId>) -> Vec<Slot<Object>> {
        if !lost.iter().any(|id| self.by_id(id).is_some_and(Object::is_lost)) {
            return Vec::new();
        }
        let is_lost = |inner: &Slot<Object>| {
            let inner = &self.objects[*inner];
            inner.is_lost() && lost.contains(&inner.id)
        };
        let may_go =
            |object: &Object| !object.copies().is_empty() && object.owner().is_none() && object.has_lineage();
        let around = self.objects.iter().filter(|(_, object)| {
            !object.nested().is_empty() && may_go(object) && object.nested().iter().any(is_lost)
        });
        around.map(|(slot, _)| slot).collect()
    }

    /// Drops all copies of an own value, which is computed again when somebody wants it.
    pub(super) fn drop_copies(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let entry = &mut self.objects[slot];
        let object = entry.id;
        self.journal.note(About::Object(object), Fact::CopiesLost);
        let copies = std::mem::take(&mut entry.links().copies);
        out.extend(copies.into_iter().map(|holder| Effect::DropCopy { holder, object }));
    }

    /// The last bytes of an object were dropped to make room.
    pub(super) fn dropped(&mut self, object: ObjectId) {
        if let Some(entry) = self.objects.by_id_mut(&object) {
            let origin = &mut entry.links().origin;
            (origin.dropped, origin.was_dropped) = (true, true);
        }
    }

    /// Counts one more kept task that takes this object as argument.
    pub(super) fn add_need(&mut self, slot: Slot<Object>) {
        self.objects[slot].links().origin.needed_by += 1;
    }

    /// Counts one kept task less that takes this object as argument.
    pub(super) fn drop_need(&mut self, slot: Slot<Object>) {
        let object = &mut self.objects[slot];
        let id = object.id;
        let origin = &mut object.links().origin;
        assert!(0 < origin.needed_by, "{id} is needed less often than never");
        origin.needed_by -= 1;
    }

    /// Notes the kept task of an output; returns another task that was kept for it before.
    pub(super) fn set_lineage_task(&mut self, slot: Slot<Object>, task: Slot<Task>) -> Option<Slot<Task>> {
        let origin = &mut self.objects[slot].links().origin;
        let old = origin.lineage_task.replace(task);
        (origin.dropped, origin.unkept) = (false, None);
        old.filter(|old| *old != task)
    }

    /// Notes that the task of an output is not kept any more, if it was, and the reason if there is one to
    /// tell.
    pub(super) fn forget_lineage_task(&mut self, slot: Slot<Object>, task: Slot<Task>, why: Option<Unkept>) {
        let object = &mut self.objects[slot];
        if object.origin().lineage_task == Some(task) {
            let origin = &mut object.links().origin;
            origin.lineage_task = None;
            origin.unkept = why.or(origin.unkept);
        }
    }

    /// When the next grace period ends, for [`References::next_grace_over`], or an owner is to be asked, for
    /// [`References::ask_after_pauses`].
    pub(super) fn next_timeout(&self) -> Option<Now> {
        let times = [self.grace.front(), self.questions.first()];
        times.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Gives back some memory of entries that are gone; true if there is more.
    pub(super) fn trim(&mut self) -> bool {
        self.objects.trim()
    }

    /// Whether [`References::trim`] would give anything back.
    pub(super) fn is_loose(&self) -> bool {
        self.objects.is_loose()
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 3] {
        [
            ("objects", self.len()),
            ("objects in grace", self.grace.len()),
            ("questions to owners", self.questions.len()),
        ]
    }

    /// Asserts that every entry is found, that its counts match its users, and that no entry lives without a
    /// reference. `uses` are those of unfinished tasks and of runs for other nodes, `needs` those of kept
    /// tasks.
    pub(super) fn check(&self, mut uses: IdMap<Slot<Object>, u32>, mut needs: IdMap<Slot<Object>, u32>) {
        self.objects.check();
        for nested in self.objects.iter().flat_map(|(_, object)| object.nested()) {
            *uses.entry(*nested).or_default() += 1;
        }
        for (slot, object) in self.objects.iter() {
            let (id, origin) = (object.id, object.origin());
            assert_eq!(object.uses, uses.remove(&slot).unwrap_or(0), "{id} uses miscounted");
            assert_eq!(origin.needed_by, needs.remove(&slot).unwrap_or(0), "{id} lineage miscounted");
            assert!(object.is_used() || origin.needed_by > 0, "{id} lives without a reference");
            if let Some(links) = object.links.as_deref() {
                object.check_links(links);
            }
        }
        assert!(self.grace.iter().map(|(until, _)| until).is_sorted(), "a later grace ends earlier");
        assert!(!self.gone.contains(&self.me), "this node believes that it is gone itself");
        assert!(uses.is_empty(), "a freed object is needed");
        assert!(needs.is_empty(), "a freed object is needed by lineage");
    }
}

impl Object {
    fn check_links(&self, links: &object::Links) {
        let id = self.id;
        assert!(links.holders.values().all(|count| 0 < *count), "{id} is held no times");
        assert!(links.borrowers.values().all(|count| 0 < *count), "{id} is borrowed no times");
        assert!(links.borrowed_from.values().all(|count| 0 < *count), "{id} was borrowed no times");
        assert!(self.value.is_none() || links.dependents.is_empty(), "tasks wait for {id}, which is there");
        if links.owner.is_none() {
            let was_proxy = links.former_owner.is_some();
            assert!(was_proxy || links.borrowed_from.is_empty(), "{id} is this node's own and borrowed");
            assert!(!links.asked, "the owner of {id} was asked, which is this node");
        }
    }
}
