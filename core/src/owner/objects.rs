//! Values, references, loans, freeing.

use super::{Effect, Links, Object, Owner};
use crate::event::Value;
use crate::peer::{Message, RemoteState};
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, RefId};

/// How long an object outlives the node that lent it on: those who borrowed it there register with its owner.
const REBORROW_GRACE: Now = 2_000 * MS;
/// Answers of an object's owner that may name only copies that cannot be read: news of those that went may be on their way.
const LOSSES_MAX: u8 = 8;

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

    pub(super) fn is_held_by(&self, client: ClientId) -> bool {
        let linked =
            |l: &Links| l.holders.contains_key(&client) || l.fetchers.iter().any(|(c, _)| *c == client);
        self.maker == Some(client) || self.links.as_deref().is_some_and(linked)
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

    fn owner(&self) -> Option<NodeId> {
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
    pub fn entry(&self, slot: u32) -> Option<(ObjectId, Option<&Value>)> {
        self.objects.get(slot).map(|o| (o.id, o.value.as_ref()))
    }

    /// Nodes with a copy of a stored object.
    #[must_use]
    pub fn copies(&self, object: ObjectId) -> &[NodeId] {
        let links = self.objects.by_id(&object).and_then(|o| o.links.as_ref());
        links.map_or(&[], |l| &l.copies)
    }

    /// A node is there after all, if it was given up because news of it were late.
    pub fn node_joined(&mut self, node: NodeId) {
        self.gone.remove(&node);
    }

    /// Whether a node has died.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
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
    pub fn reference(&self, slot: u32) -> Option<RefId> {
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
                object.links().fetchers.push((client, token));
                slot.into_iter().for_each(|slot| self.ask_for(slot, out));
            }
        }
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
                self.remake(slot, cause, out);
            }
            Some(_) if is_answered && links.losses <= LOSSES_MAX => self.ask_owner(Some(slot), out),
            Some(_) => {
                let text = because(format!("no copy of object {object} is left"), cause);
                self.lose(slot, Failure::new(FailureKind::ObjectLost, text), out);
            }
        }
    }

    /// An object will have no value any more: everyone who waits for it hears why.
    pub(super) fn lose(&mut self, slot: u32, failure: Failure, out: &mut Vec<Effect>) {
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

    /// Whether an object's value is still to come.
    #[must_use]
    pub fn is_awaited(&self, object: ObjectId) -> bool {
        self.objects.by_id(&object).is_some_and(|o| o.value.is_none())
    }

    /// Somebody wants the value of an entry without one: it is made again if nobody makes it, or its owner is asked.
    pub(super) fn ask_for(&mut self, slot: u32, out: &mut Vec<Effect>) {
        let Some(object) = self.objects.get(slot) else { return };
        if object.owner().is_some() {
            self.ask_owner(Some(slot), out);
        } else if object.producer.is_none() {
            self.remake(slot, None, out);
        }
    }

    /// Loans come back.
    pub fn loans_returned(&mut self, from: NodeId, object: ObjectId, count: u32, out: &mut Vec<Effect>) {
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

    /// A node is gone: its copies, its loans, what it owned and what it lent.
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
            let lender_died = links.lenders.remove(&node).is_some();
            let (owner, copies_left) = (links.owner, links.copies.len());
            // What can be made again is, when somebody wants it.
            let is_last = had_copy && copies_left == 0 && matches!(object.value, Some(Value::Stored { .. }));
            let lost = is_last && !object.has_recipe();
            if lost || (owner == Some(node) && object.value.is_none()) {
                self.lost(object_id(&self.objects, slot), None, out);
            } else if let Some(owner) = owner.filter(|o| lender_died && *o != node) {
                self.reborrow(slot, owner, out);
            }
            self.free_if_unused(slot, out);
        }
    }

    /// Finds an entry, or makes a proxy for a reference of another node.
    pub(super) fn find_or_proxy(&mut self, reference: RefId, out: &mut Vec<Effect>) -> Option<u32> {
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
    ) -> Vec<u32> {
        nested.iter().filter_map(|reference| self.adopt(*reference, lender, out)).collect()
    }

    /// Takes one reference and counts a use of it.
    pub(crate) fn adopt(
        &mut self,
        reference: RefId,
        lender: Option<NodeId>,
        out: &mut Vec<Effect>,
    ) -> Option<u32> {
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
                    object.links().lenders.insert(lender, 1);
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
    pub(super) fn lend(&mut self, slot: u32, to: NodeId) -> Option<RefId> {
        let reference = self.reference(slot)?;
        let object = self.objects.get_mut(slot)?;
        *object.links().borrowers.entry(to).or_default() += 1;
        Some(reference)
    }

    /// Lends references that stand in outputs of a run for another node. They come back with the owners that the ledger
    /// knows: for the client, what it submitted is of this node, also where it ran before for another.
    pub fn lend_references(&mut self, nested: &[RefId], to: NodeId) -> Vec<RefId> {
        let lend = |reference: &RefId| self.objects.find(&reference.object).and_then(|slot| self.lend(slot, to));
        nested.iter().filter_map(lend).collect()
    }

    /// Counts down one use.
    pub(crate) fn unuse(&mut self, slot: u32, out: &mut Vec<Effect>) {
        if let Some(object) = self.objects.get_mut(slot) {
            object.uses -= 1;
        }
        self.free_if_unused(slot, out);
    }

    /// What another node is told of an entry; references inside are lent to it.
    pub(super) fn remote_state(&mut self, slot: u32, to: NodeId) -> (RemoteState, Vec<RefId>) {
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

    /// Sets the value of an entry and tells everyone who waits; frees it if nobody does.
    pub(super) fn fill(
        &mut self,
        slot: u32,
        value: Value,
        copy: Option<NodeId>,
        inside: Vec<u32>,
        out: &mut Vec<Effect>,
    ) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        let stored = matches!(value, Value::Stored { .. });
        object.producer = None;
        let known = matches!(object.value, Some(Value::Inline(_) | Value::Stored { .. }));
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
            let copies = &mut object.links().copies;
            if !copies.contains(&node) {
                copies.push(node);
            }
        }
        if object.is_used() {
            self.tell(slot, out);
        }
        self.free_if_unused(slot, out);
    }

    /// Frees an entry nobody refers to, and what only it referred to.
    pub(super) fn free_if_unused(&mut self, slot: u32, out: &mut Vec<Effect>) {
        let mut doomed: smallvec::SmallVec<[u32; 4]> = smallvec::smallvec![slot];
        while let Some(slot) = doomed.pop() {
            let Some(object) = self.objects.get(slot).filter(|o| !o.is_used()) else { continue };
            if object.origin().needed_by > 0 {
                doomed.extend(self.release_bytes(slot, out));
                continue;
            }
            let Some(object) = self.objects.remove(slot) else { continue };
            let Some(links) = object.links else { continue };
            let id = object.id;
            if let Some(recipe) = links.origin.recipe() {
                doomed.extend(self.output_gone(id, slot, recipe));
            }
            if links.owner.is_some_and(|owner| self.gone.contains(&owner)) {
                out.push(Effect::DropCopy { holder: self.me, object: id });
            }
            if links.owner.is_none() {
                out.extend(
                    links.copies.iter().map(|holder| Effect::DropCopy { holder: *holder, object: id }),
                );
            }
            for (to, count) in links.lenders {
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

    /// Makes an entry this node's own: its task runs again here.
    pub(super) fn take_over(&mut self, slot: u32, out: &mut Vec<Effect>) {
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
            let lenders = std::mem::take(&mut links.lenders);
            let give_back =
                |(to, count)| Effect::Send { to, message: Message::BorrowReleased { object: id, count } };
            out.extend(lenders.into_iter().map(give_back));
            if !local && matches!(object.value, Some(Value::Stored { .. })) {
                object.value = None;
            }
        }
    }

    /// Ends loans to nodes whose lender died long enough ago.
    pub(super) fn end_grace(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some((_, object)) = self.grace.front().copied().filter(|(until, _)| *until <= now) {
            self.grace.pop_front();
            self.loans_returned(self.me, object, 1, out);
        }
    }

    /// A proxy whose owner is gone, without a value.
    fn is_orphan(&self, slot: u32) -> bool {
        let Some(object) = self.objects.get(slot) else { return false };
        let valued = matches!(object.value, Some(Value::Inline(_) | Value::Stored { .. }));
        object.owner().is_some_and(|owner| self.gone.contains(&owner)) && !valued
    }

    /// A proxy that came after its owner had died, and whose value nobody can tell, is lost.
    pub(super) fn lose_orphan(&mut self, slot: u32, out: &mut Vec<Effect>) {
        let valueless = self.objects.get(slot).is_some_and(|o| o.value.is_none());
        if valueless && self.is_orphan(slot) {
            self.lost(object_id(&self.objects, slot), None, out);
        }
    }

    fn change_owner(&mut self, slot: u32, owner: NodeId, lender: NodeId) {
        let Some(object) = self.objects.get_mut(slot) else { return };
        object.value = None;
        let links = object.links();
        links.owner = Some(owner);
        links.asked = false;
        *links.lenders.entry(lender).or_default() += 1;
    }

    /// Asks the owner of a proxy what it is, once.
    pub(super) fn ask_owner(&mut self, slot: Option<u32>, out: &mut Vec<Effect>) {
        let Some(object) = slot.and_then(|s| self.objects.get_mut(s)) else { return };
        let id = object.id;
        let Some(links) = object.links.as_mut() else { return };
        if let Some(to) = links.owner.filter(|_| !links.asked) {
            links.asked = true;
            out.push(Effect::Send { to, message: Message::ObjectLocate { object: id } });
        }
    }

    fn insert_proxy(&mut self, reference: RefId) -> u32 {
        let mut object = Object::new(reference.object);
        object.links().owner = Some(reference.owner);
        self.objects.insert(object)
    }

    /// Registers with the owner itself, where no lender did it for us.
    fn reborrow(&mut self, slot: u32, owner: NodeId, out: &mut Vec<Effect>) {
        let Some(reference) = self.reference(slot) else { return };
        if let Some(object) = self.objects.get_mut(slot) {
            *object.links().lenders.entry(owner).or_default() += 1;
        }
        out.push(Effect::Send { to: owner, message: Message::BorrowAdded { reference } });
    }

    /// Everyone who waits for a value hears that it is there.
    fn tell(&mut self, slot: u32, out: &mut Vec<Effect>) {
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

    fn answer(&mut self, slot: u32, to: NodeId, out: &mut Vec<Effect>) {
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

fn object_id(objects: &super::table::Objects, slot: u32) -> ObjectId {
    let none = ObjectId::from_bytes([0; ObjectId::LEN]);
    objects.get(slot).map_or(none, |o| o.id)
}
