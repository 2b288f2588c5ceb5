//! Entries: their values, the references of clients, freeing.

use super::{Effect, Links, Object, Owner};
use crate::event::Value;
use crate::peer::Message;
use crate::slab::Slot;
use tharsis_types::{ClientId, FailureKind, NodeId, ObjectId, RefId};

impl Object {
    pub(super) fn new(id: ObjectId) -> Self {
        Self { id, maker: None, token: 0, uses: 0, producer: None, value: None, links: None }
    }

    pub(super) fn links(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }

    pub(super) fn is_used(&self) -> bool {
        let linked = |l: &Links| !l.holders.is_empty() || !l.borrowers.is_empty();
        self.maker.is_some()
            || self.uses > 0
            || self.producer.is_some()
            || self.links.as_deref().is_some_and(linked)
    }

    /// Whether there is a value that can be read.
    pub(super) fn has_bytes(&self) -> bool {
        matches!(self.value, Some(Value::Inline(_) | Value::Stored { .. })) && !self.is_gone()
    }

    pub(super) fn is_held_by(&self, client: ClientId) -> bool {
        let linked =
            |l: &Links| l.holders.contains_key(&client) || l.fetchers.iter().any(|(c, _)| *c == client);
        self.maker == Some(client) || self.links.as_deref().is_some_and(linked)
    }

    /// Clients that refer to it or wait for its value.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let links = self.links.as_deref();
        let holders = links.into_iter().flat_map(|l| l.holders.keys().copied());
        let fetchers = links.into_iter().flat_map(|l| l.fetchers.iter().map(|(client, _)| *client));
        self.maker.into_iter().chain(holders).chain(fetchers)
    }

    pub(super) fn forget_client(&mut self, client: ClientId) {
        if self.maker == Some(client) {
            self.maker = None;
        }
        if let Some(links) = self.links.as_mut() {
            links.holders.remove(&client);
            links.fetchers.retain(|(c, _)| *c != client);
        }
    }

    /// The node that has it, if that is another one.
    pub(super) fn owner(&self) -> Option<NodeId> {
        self.links.as_ref()?.owner
    }
}

impl Owner {
    /// The value of an object, if there is one.
    #[must_use]
    pub fn value_ref(&self, object: ObjectId) -> Option<&Value> {
        self.objects.by_id(&object)?.value.as_ref()
    }

    /// The same for a client that names it by its token.
    #[must_use]
    pub fn value_named(&self, client: ClientId, token: u64, object: ObjectId) -> Option<&Value> {
        self.objects.get(self.objects.find_named(client, token, &object)?)?.value.as_ref()
    }

    /// Value of an entry by its place in the ledger.
    #[must_use]
    pub fn entry(&self, slot: Slot<Object>) -> Option<(ObjectId, Option<&Value>)> {
        self.objects.get(slot).map(|o| (o.id, o.value.as_ref()))
    }

    /// Whether an object is this node's own, finished or not.
    #[must_use]
    pub fn owns(&self, object: ObjectId) -> bool {
        self.objects.by_id(&object).is_some_and(|o| o.owner().is_none())
    }

    /// The full name of an object's reference.
    #[must_use]
    pub fn reference_of(&self, object: ObjectId) -> Option<RefId> {
        self.reference(self.objects.find(&object)?)
    }

    /// The full name of an entry's reference.
    #[must_use]
    pub fn reference(&self, slot: Slot<Object>) -> Option<RefId> {
        let object = self.objects.get(slot)?;
        Some(RefId { object: object.id, owner: object.owner().unwrap_or(self.me) })
    }

    /// A client put a value. False if the object exists already (a task that runs again puts the same again).
    pub fn put(
        &mut self,
        client: ClientId,
        token: u64,
        id: ObjectId,
        value: Value,
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) -> bool {
        if let Some(slot) = self.objects.find(&id) {
            self.held(client, token, RefId { object: id, owner: self.me }, out);
            if self.objects.get(slot).is_some_and(|o| o.owner().is_some())
                && !matches!(value, Value::Failed(_))
            {
                // The task ran before on another node, which owns what it put there; this one is ours.
                self.take_over(slot, out);
                let inside = self.adopt_nested(nested, None, out);
                self.fill(slot, value, Some(self.me), inside, out);
            }
            return false;
        }
        let mut object = Object::new(id);
        object.maker = Some(client);
        object.token = token;
        let slot = self.objects.insert(object);
        let inside = self.adopt_nested(nested, None, out);
        self.fill(slot, value, Some(self.me), inside, out);
        true
    }

    /// Notes which call put a value.
    pub fn put_at(&mut self, object: ObjectId, site: Box<str>) {
        if !site.is_empty()
            && let Some(entry) = self.objects.by_id_mut(&object)
        {
            entry.links().put_at = Some(site);
        }
    }

    /// A client found a reference inside a value.
    pub fn held(&mut self, client: ClientId, _token: u64, reference: RefId, out: &mut Vec<Effect>) {
        if let Some(slot) = self.find_or_proxy(reference, out)
            && let Some(object) = self.objects.get_mut(slot)
        {
            *object.links().holders.entry(client).or_default() += 1;
            self.objects.refers(client, slot);
        }
    }

    /// A client dropped a reference.
    pub fn released(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(slot) = self.objects.find_named(client, token, &object) else { return };
        let Some(entry) = self.objects.get_mut(slot) else { return };
        let made = entry.maker == Some(client) && entry.token == token;
        if made {
            entry.maker = None;
        }
        if let Some(links) = entry.links.as_mut() {
            links.fetchers.retain(|waiting| *waiting != (client, token));
            if let Some(count) = links.holders.get_mut(&client).filter(|_| !made) {
                *count -= 1;
                if *count == 0 {
                    links.holders.remove(&client);
                }
            }
        }
        match made {
            true => self.objects.unname(client, token, slot),
            false => self.objects.let_go(client, slot),
        }
        self.free_if_unused(slot, out);
    }

    /// A client wants a value sent as soon as there is one.
    pub fn fetch(&mut self, client: ClientId, token: u64, reference: RefId, out: &mut Vec<Effect>) {
        let slot = self.objects.find_named(client, token, &reference.object);
        slot.into_iter().for_each(|slot| self.lose_orphan(slot, out));
        let Some(object) = slot.and_then(|s| self.objects.get_mut(s)) else {
            out.push(Effect::Deliver { client, token, object: reference.object });
            return;
        };
        match &object.value {
            Some(Value::Stored { .. }) => out.push(Effect::Serve { client, token, object: object.id }),
            Some(_) => out.push(Effect::Deliver { client, token, object: object.id }),
            None => {
                let is_maker = object.maker == Some(client) && object.token == token;
                object.links().fetchers.push((client, token));
                slot.into_iter().for_each(|slot| {
                    if !is_maker {
                        self.objects.refers(client, slot);
                    }
                    self.ask_for(slot, out);
                });
            }
        }
    }

    /// Whether an object's value is still to come.
    #[must_use]
    pub fn is_awaited(&self, object: ObjectId) -> bool {
        self.objects.by_id(&object).is_some_and(|o| o.value.is_none())
    }

    /// Counts down one use.
    pub(crate) fn unuse(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        if let Some(object) = self.objects.get_mut(slot) {
            object.uses -= 1;
        }
        self.free_if_unused(slot, out);
    }

    /// Sets the value of an entry and tells everyone who waits; frees it if nobody does.
    pub(super) fn fill(
        &mut self,
        slot: Slot<Object>,
        value: Value,
        copy: Option<NodeId>,
        inside: Vec<Slot<Object>>,
        out: &mut Vec<Effect>,
    ) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        let stored = matches!(value, Value::Stored { .. });
        object.producer = None;
        let known = object.has_bytes();
        if known {
            // Another output of the task had to be made again; this one is there.
            inside.into_iter().for_each(|s| self.unuse(s, out));
        } else {
            object.value = Some(value);
            let is_linked = object.links.is_some() || !inside.is_empty();
            // What an earlier value that is lost referred to, if this is not the first.
            let outdated =
                if is_linked { std::mem::replace(&mut object.links().nested, inside) } else { inside };
            outdated.into_iter().for_each(|s| self.unuse(s, out));
        }
        let Some(object) = self.objects.get_mut(slot) else { return };
        if let Some(node) = copy.filter(|_| stored) {
            let id = object.id;
            let copies = &mut object.links().copies;
            if !copies.contains(&node) {
                match known {
                    // Nobody has compared the bytes of this run with those that are there.
                    true => out.push(Effect::DropCopy { holder: node, object: id }),
                    false => copies.push(node),
                }
            }
        }
        if object.is_used() {
            self.tell(slot, out);
        }
        self.free_if_unused(slot, out);
    }

    /// Frees an entry nobody refers to, and what only it referred to.
    pub(super) fn free_if_unused(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let mut doomed: smallvec::SmallVec<[Slot<Object>; 4]> = smallvec::smallvec![slot];
        while let Some(slot) = doomed.pop() {
            let Some(object) = self.objects.get(slot).filter(|o| !o.is_used()) else { continue };
            if object.origin().needed_by > 0 {
                doomed.extend(self.release_bytes(slot, out));
                continue;
            }
            let Some(object) = self.objects.remove(slot) else { continue };
            let Some(links) = object.links else { continue };
            let id = object.id;
            if let Some(lineage_task) = links.origin.lineage_task() {
                doomed.extend(self.output_gone(id, slot, lineage_task));
            }
            if links.owner.is_some_and(|owner| self.gone.contains(&owner)) {
                out.push(Effect::DropCopy { holder: self.me, object: id });
            }
            if links.owner.is_none() {
                out.extend(
                    links.copies.iter().map(|holder| Effect::DropCopy { holder: *holder, object: id }),
                );
            }
            for (to, count) in links.borrowed_from {
                out.push(Effect::Send { to, message: Message::BorrowReleased { object: id, count } });
            }
            for inner in links.nested {
                if let Some(object) = self.objects.get_mut(inner) {
                    object.uses -= 1;
                    doomed.push(inner);
                }
            }
        }
    }

    /// Whether an entry has a value or will get one.
    pub(super) fn is_live(&self, object: &Object) -> bool {
        let answered = object.owner().is_some_and(|owner| !self.gone.contains(&owner));
        let lost = matches!(&object.value, Some(Value::Failed(f)) if f.kind == FailureKind::ObjectLost);
        !lost && (object.value.is_some() || object.producer.is_some() || answered)
    }

    /// Everyone who waits for a value hears that it is there.
    pub(super) fn tell(&mut self, slot: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        let id = object.id;
        let stored = matches!(object.value, Some(Value::Stored { .. }));
        // A maker that put the value has it; one that submitted the task is told without being asked.
        let waits =
            |client| object.links.as_ref().is_some_and(|l| l.fetchers.contains(&(client, object.token)));
        if let Some(client) = object.maker.filter(|client| !id.is_put() && !waits(*client)) {
            out.push(Effect::Deliver { client, token: object.token, object: id });
        }
        let Some(links) = object.links.as_mut() else { return };
        for (client, token) in links.fetchers.drain(..) {
            out.push(match stored {
                true => Effect::Serve { client, token, object: id },
                false => Effect::Deliver { client, token, object: id },
            });
        }
        let askers = std::mem::take(&mut links.askers);
        let dependents = std::mem::take(&mut links.dependents);
        askers.into_iter().for_each(|node| self.answer(slot, node, out));
        self.woken.extend(dependents.into_iter().map(|task| (task, slot)));
        if !self.waking {
            self.waking = true;
            while let Some((task, object)) = self.woken.pop_front() {
                self.input_ready(task, object, out);
            }
            self.waking = false;
        }
    }
}

pub(super) fn object_id(objects: &super::table::Objects, slot: Slot<Object>) -> ObjectId {
    let none = ObjectId::from_bytes([0; ObjectId::LEN]);
    objects.get(slot).map_or(none, |o| o.id)
}
