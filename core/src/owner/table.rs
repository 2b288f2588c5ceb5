//! The entries of a ledger, found by place, by id, and by the name their maker gave them.
//!
//! A queue of a million tasks is far larger than any cache, so what finds an entry is kept small: the index holds
//! places only (ids stand in the entries), and a client that speaks of what it made itself, which is nearly always,
//! is answered from a list by its token, which it counts from zero.

use super::Object;
use crate::slab::Slab;
use hashbrown::HashTable;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, ObjectId, TaskId};

/// Tokens that a client may leave out; a list never grows by more for one entry, whatever a client says.
const TOKEN_GAP_MAX: usize = 1024;
/// Pages given back at a time: so few that nobody waits for it.
pub(super) const TRIM_PAGES: usize = 64;
/// Below this an index keeps its memory.
const INDEX_KEPT: usize = 4096;

/// The entries of one node's ledger.
#[derive(Debug, Default)]
pub(super) struct Objects {
    entries: Slab<Object>,
    index: HashTable<u32>,
    /// Places of what each client made, by the number in its token.
    made: IdMap<ClientId, Vec<u32>>,
}

impl Objects {
    pub(super) fn get(&self, place: u32) -> Option<&Object> {
        self.entries.get(place)
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Object> {
        self.entries.get_mut(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Object)> {
        self.entries.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Place of an object.
    pub(super) fn find(&self, id: &ObjectId) -> Option<u32> {
        let is_it = |place: &u32| self.entries.get(*place).is_some_and(|o| o.id == *id);
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

    /// Place of an object that a client names by its token.
    pub(super) fn find_named(&self, client: ClientId, token: u64, id: &ObjectId) -> Option<u32> {
        let named = self.made.get(&client).and_then(|places| places.get(number(token)).copied());
        let is_it = |place: &u32| self.entries.get(*place).is_some_and(|o| o.id == *id);
        named.filter(is_it).or_else(|| self.find(id))
    }

    /// Adds an entry, whose id is new.
    pub(super) fn insert(&mut self, object: Object) -> u32 {
        let (id, maker, token) = (object.id, object.maker, object.token);
        let place = self.entries.insert(object);
        let entries = &self.entries;
        self.index.insert_unique(hash(&id), place, |p| entries.get(*p).map_or(0, |o| hash(&o.id)));
        if let Some(client) = maker {
            let places = self.made.entry(client).or_default();
            let number = number(token);
            if number < places.len() {
                places[number] = place;
            } else if number <= places.len() + TOKEN_GAP_MAX {
                places.resize(number, u32::MAX);
                places.push(place);
            }
        }
        place
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, place: u32) -> Option<Object> {
        let object = self.entries.remove(place)?;
        if let Ok(indexed) = self.index.find_entry(hash(&object.id), |p| *p == place) {
            indexed.remove();
        }
        Some(object)
    }

    /// Gives back some of the memory of entries that are gone; true if there is more of it.
    pub(super) fn trim(&mut self) -> bool {
        if self.is_index_loose() {
            let entries = &self.entries;
            let twice = self.index.len() * 2;
            self.index.shrink_to(twice, |p| entries.get(*p).map_or(0, |o| hash(&o.id)));
        }
        self.entries.trim(TRIM_PAGES)
    }

    /// Whether [`Objects::trim`] would give anything back.
    pub(super) fn is_loose(&self) -> bool {
        self.entries.has_spare() || self.is_index_loose()
    }

    fn is_index_loose(&self) -> bool {
        INDEX_KEPT < self.index.capacity() && self.index.len() < self.index.capacity() / 8
    }

    /// Forgets the names that a client gave.
    pub(super) fn client_gone(&mut self, client: ClientId) {
        self.made.remove(&client);
    }

    /// Asserts that every entry is found by its id, and nothing else is.
    pub(super) fn check(&self) {
        assert_eq!(self.index.len(), self.entries.len(), "an object without an id, or an id without one");
        for (place, object) in self.iter() {
            assert_eq!(self.find(&object.id), Some(place), "{} is filed wrongly", object.id);
        }
    }
}

/// The index takes the place of an entry from the low bits and its tag from the seven highest ones. What is submitted
/// in a row stands in a row, on the same cache lines: siblings and outputs of a task have neighbouring places (but
/// different tags), families of siblings lie anywhere.
fn hash(id: &ObjectId) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    const PLACE: u64 = (1 << 57) - 1;
    let (mixed, sibling) = (id.task.mixed(), u64::from(id.task.sibling()));
    // The sibling is in the highest byte, which this multiplication carries nowhere else.
    let family = mixed.wrapping_mul(MIX) << 8 >> 16;
    let within = sibling + u64::from(id.index);
    let place = family * u64::from(TaskId::SIBLINGS) + within;
    let tag = (mixed << 8) ^ (within << 57);
    (place & PLACE) | (tag & !PLACE)
}

/// A token counts slots of the client in its low half, and uses of a slot in its high one.
fn number(token: u64) -> usize {
    token as u32 as usize
}
