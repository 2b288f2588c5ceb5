//! The entries of a ledger, found by slot, by id, and by the name that their maker gave them.
//!
//! A queue of a million tasks is far larger than any cache, so the index is kept small: it holds only slots
//! (the ids stand in the entries). A client nearly always names an object that it made itself. Such an object
//! is found in a list by its token, which the client counts from zero.

use super::Object;
use crate::slab::{Slab, Slot};
use hashbrown::HashTable;
use std::ops::{Index, IndexMut};
use tharsis_types::hash::{IdMap, IdSet};
use tharsis_types::{ClientId, ObjectId, TaskId};

/// Number of tokens that a client may skip: no entry makes a list grow by more, whatever the client sends.
const TOKEN_GAP_MAX: usize = 1024;
/// Up to this capacity an index keeps its memory.
const INDEX_KEPT: usize = 4096;

/// The entries of one node's ledger.
#[derive(Debug, Default)]
pub(super) struct Objects {
    entries: Slab<Object>,
    index: HashTable<Slot<Object>>,
    /// Slots of the objects that each client made, by the number in the token.
    made: IdMap<ClientId, Vec<Option<Slot<Object>>>>,
    /// Slots of the objects to which each client refers and that `made` does not name. Some may be of entries
    /// that are gone, or that the client has released; no entry to which it refers is missing.
    others: IdMap<ClientId, IdSet<Slot<Object>>>,
}

impl Index<Slot<Object>> for Objects {
    type Output = Object;

    fn index(&self, slot: Slot<Object>) -> &Object {
        &self.entries[slot]
    }
}

impl IndexMut<Slot<Object>> for Objects {
    fn index_mut(&mut self, slot: Slot<Object>) -> &mut Object {
        &mut self.entries[slot]
    }
}

impl Objects {
    pub(super) fn get(&self, slot: Slot<Object>) -> Option<&Object> {
        self.entries.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: Slot<Object>) -> Option<&mut Object> {
        self.entries.get_mut(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot<Object>, &Object)> {
        self.entries.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Slot of an object.
    pub(super) fn find(&self, id: &ObjectId) -> Option<Slot<Object>> {
        let is_it = |slot: &Slot<Object>| self.entries[*slot].id == *id;
        self.index.find(hash(id), is_it).copied()
    }

    /// The entry of an object.
    pub(super) fn by_id(&self, id: &ObjectId) -> Option<&Object> {
        self.get(self.find(id)?)
    }

    /// The entry of an object.
    pub(super) fn by_id_mut(&mut self, id: &ObjectId) -> Option<&mut Object> {
        self.get_mut(self.find(id)?)
    }

    /// Slot of an object that a client names by its token.
    pub(super) fn find_named(&self, client: ClientId, token: u64, id: &ObjectId) -> Option<Slot<Object>> {
        let named = self.made.get(&client).and_then(|slots| *slots.get(number(token))?);
        let is_it = |slot: &Slot<Object>| self.entries.get(*slot).is_some_and(|o| o.id == *id);
        named.filter(is_it).or_else(|| self.find(id))
    }

    /// Adds an entry, whose id is new.
    pub(super) fn insert(&mut self, object: Object) -> Slot<Object> {
        let (id, maker, token) = (object.id, object.maker, object.token);
        debug_assert!(self.find(&id).is_none(), "{id} is entered twice");
        let slot = self.entries.insert(object);
        let entries = &self.entries;
        self.index.insert_unique(hash(&id), slot, |p| hash(&entries[*p].id));
        if let Some(client) = maker {
            let slots = self.made.entry(client).or_default();
            let number = number(token);
            let unnamed = if number < slots.len() {
                slots[number].replace(slot)
            } else if number <= slots.len() + TOKEN_GAP_MAX {
                slots.resize(number, None);
                slots.push(Some(slot));
                None
            } else {
                Some(slot)
            };
            // A client that keeps to the protocol has released the object that had the number before.
            if let Some(unnamed) = unnamed
                && entries.get(unnamed).is_some_and(|o| o.maker == Some(client))
            {
                self.others.entry(client).or_default().insert(unnamed);
            }
        }
        slot
    }

    /// A client has released an object that it made.
    pub(super) fn unname(&mut self, client: ClientId, token: u64, slot: Slot<Object>) {
        let named = self.made.get_mut(&client).and_then(|slots| slots.get_mut(number(token)));
        if let Some(named) = named.filter(|named| **named == Some(slot)) {
            *named = None;
        }
    }

    /// A client refers to an entry other than by the name that it gave as its maker.
    pub(super) fn refers(&mut self, client: ClientId, slot: Slot<Object>) {
        self.others.entry(client).or_default().insert(slot);
    }

    /// A client may have released the last of its references to an entry.
    pub(super) fn let_go(&mut self, client: ClientId, slot: Slot<Object>) {
        let holds = self.entries.get(slot).is_some_and(|o| o.is_held_by(client));
        if !holds && let Some(slots) = self.others.get_mut(&client) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.others.remove(&client);
            }
        }
    }

    /// Takes all entries to which a client that is gone refers.
    pub(super) fn take_held_by(&mut self, client: ClientId) -> Vec<Slot<Object>> {
        let made = self.made.remove(&client).unwrap_or_default();
        let others = self.others.remove(&client).unwrap_or_default();
        let mut held: Vec<Slot<Object>> = made.into_iter().flatten().chain(others).collect();
        held.retain(|slot| self.entries.get(*slot).is_some_and(|o| o.is_held_by(client)));
        // Sort into the order of slots, as a walk of the whole ledger would give; a slot can be named twice.
        held.sort_unstable();
        held.dedup();
        held
    }

    /// Removes an entry.
    pub(super) fn take(&mut self, slot: Slot<Object>) -> Object {
        let object = self.entries.take(slot);
        let indexed = self.index.find_entry(hash(&object.id), |p| *p == slot);
        assert!(indexed.is_ok(), "{} is not in the index", object.id);
        if let Ok(indexed) = indexed {
            indexed.remove();
        }
        object
    }

    /// Gives back some memory of entries that are gone; true if there is more.
    pub(super) fn trim(&mut self) -> bool {
        if self.is_index_loose() {
            let entries = &self.entries;
            let twice = self.index.len() * 2;
            self.index.shrink_to(twice, |p| hash(&entries[*p].id));
        }
        self.entries.trim(crate::owner::TRIM_PAGES)
    }

    /// Whether [`Objects::trim`] would give anything back.
    pub(super) fn is_loose(&self) -> bool {
        self.entries.has_spare() || self.is_index_loose()
    }

    fn is_index_loose(&self) -> bool {
        INDEX_KEPT < self.index.capacity() && self.index.len() < self.index.capacity() / 8
    }

    /// Asserts that every entry is found by its id, and nothing else is.
    pub(super) fn check(&self) {
        assert_eq!(self.index.len(), self.entries.len(), "an object without an id, or an id without one");
        for (slot, object) in self.iter() {
            assert_eq!(self.find(&object.id), Some(slot), "{} is filed wrongly", object.id);
            for client in object.clients() {
                assert!(self.names(client, slot), "{} is not found when client {} goes", object.id, client.0);
            }
        }
    }

    fn names(&self, client: ClientId, slot: Slot<Object>) -> bool {
        let is_other = self.others.get(&client).is_some_and(|slots| slots.contains(&slot));
        let token = self.get(slot).filter(|o| o.maker == Some(client)).map(|o| o.token);
        let named = token.and_then(|token| self.made.get(&client)?.get(number(token)));
        is_other || named == Some(&Some(slot))
    }
}

/// The index takes the place of an entry from the low bits and its tag from the seven highest ones. Tasks
/// that are submitted one after the other stand side by side, on the same cache lines: siblings and outputs
/// of a task have neighbouring places (but different tags), families of siblings lie anywhere.
fn hash(id: &ObjectId) -> u64 {
    const PLACE: u64 = (1 << 57) - 1;
    let within = u64::from(id.task.sibling()) + u64::from(id.index);
    let place = u64::from(id.task.family()) * u64::from(TaskId::SIBLINGS) + within;
    let tag = id.task.content() ^ (within << 57);
    (place & PLACE) | (tag & !PLACE)
}

/// A token counts slots of the client in its low half, and uses of a slot in its high one.
fn number(token: u64) -> usize {
    token as u32 as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_types, reason = "the test measures time")]

    use crate::event::Value;
    use crate::owner::Owner;
    use std::time::{Duration, Instant};
    use tharsis_types::{ClientId, JobId, NodeId, ObjectId, RefId, TaskId};

    const DRIVER: ClientId = ClientId(1);
    const WORKER: ClientId = ClientId(2);

    /// A ledger in which a driver has put some objects.
    fn ledger(count: u32) -> Owner {
        let mut owner = Owner::new(NodeId(1), 0);
        let mut out = Vec::new();
        for n in 0..count {
            let value = Value::Inline(b"value".as_slice().into());
            owner.put(DRIVER, n.into(), object(n), value, &[], &mut out);
        }
        owner
    }

    fn object(n: u32) -> ObjectId {
        ObjectId::put(TaskId::root(JobId(1)), n)
    }

    fn hold(owner: &mut Owner, client: ClientId, n: u32) {
        owner.held(client, RefId { object: object(n), owner: NodeId(1) }, &mut Vec::new());
    }

    #[test]
    fn a_client_that_goes_lets_go_of_all_that_it_refers_to() {
        let mut owner = ledger(4);
        hold(&mut owner, WORKER, 0);
        hold(&mut owner, WORKER, 1);
        hold(&mut owner, WORKER, 1);
        let mut out = Vec::new();
        owner.released(DRIVER, 0, object(0), &mut out);
        owner.released(DRIVER, 1, object(1), &mut out);
        owner.released(WORKER, 9, object(1), &mut out);
        owner.check(std::iter::empty());
        assert_eq!(owner.counts().0, 4);
        owner.client_gone(WORKER, &mut out);
        owner.check(std::iter::empty());
        assert_eq!(owner.counts().0, 2, "the driver has two left");
        owner.client_gone(DRIVER, &mut out);
        assert_eq!(owner.counts().0, 0);
    }

    #[test]
    fn names_beyond_the_list_and_names_used_twice_are_let_go_too() {
        let mut owner = ledger(1);
        let mut out = Vec::new();
        for (n, token) in [(1, 1 << 20), (2, 0)] {
            let value = Value::Inline(b"value".as_slice().into());
            owner.put(DRIVER, token, object(n), value, &[], &mut out);
        }
        owner.check(std::iter::empty());
        owner.client_gone(DRIVER, &mut out);
        assert_eq!(owner.counts().0, 0);
    }

    #[test]
    fn a_client_that_goes_costs_what_it_holds_and_not_what_the_ledger_has() {
        let time = |count: u32| -> Duration {
            let mut owner = ledger(count);
            let times = (0..50).map(|_| {
                (0..10).for_each(|n| hold(&mut owner, WORKER, n));
                let begin = Instant::now();
                owner.client_gone(WORKER, &mut Vec::new());
                begin.elapsed()
            });
            times.min().unwrap()
        };
        let (small, large) = (time(100), time(200_000));
        // A walk would take two thousand times as long.
        assert!(large < small * 50, "{large:?} beside {small:?}");
    }
}
