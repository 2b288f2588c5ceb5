//! Contents of the arena and the disk, object by object, for people who ask where their memory went.

use super::{Store, Stored};
use std::collections::BTreeMap;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, ObjectId};

/// One object of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The id of the object.
    pub object: ObjectId,
    /// Its bytes.
    pub len: u64,
    /// Bytes of the arena's memory that it takes; 0 if it is on disk alone.
    pub arena_bytes: u64,
    /// Bytes of the annex that it takes.
    pub annex_bytes: u64,
    /// Bytes that it takes on disk.
    pub disk_bytes: u64,
    /// Stage of its life.
    pub phase: Phase,
    /// Whether it came from another node, which has it as well.
    pub is_secondary: bool,
}

/// Stages of the life of an object in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is freed, and stays until no client has it pinned.
    Doomed,
    /// It is on disk alone.
    OnDisk,
    /// It is on its way here, from another node or from disk.
    Receiving,
    /// It is there.
    There,
    /// It is there, and on disk too.
    ThereAndOnDisk,
    /// It is there and is being written to disk.
    Writing,
}

/// Bytes in use that belong to no object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unowned {
    /// Bytes of the arena's memory that are granted to clients and not sealed yet, or that a client wrote
    /// again.
    pub granted: BTreeMap<ClientId, u64>,
    /// Bytes of copies that do not count any more: still being received although the object was written here
    /// meanwhile, or freed and still held although the object was made again meanwhile.
    pub superseded_bytes: u64,
    /// Bytes of the annex of both kinds, and of ranges on their way back to the disk.
    pub annex_bytes: u64,
}

impl Store {
    /// All objects that lie in the arena or on disk, in no order.
    pub fn contents(&self) -> impl Iterator<Item = Content> {
        let in_arena = self.objects.iter().map(|(object, stored)| self.content_of(*object, stored));
        let on_disk = self.disk.objects().filter(|object| !self.objects.contains_key(object));
        in_arena.chain(on_disk.map(|object| {
            let len = self.disk.len_of(object).unwrap_or(0);
            let phase = Phase::OnDisk;
            let (arena_bytes, annex_bytes, is_secondary) = (0, 0, false);
            Content { object, len, arena_bytes, annex_bytes, disk_bytes: len, phase, is_secondary }
        }))
    }

    /// Bytes in use that belong to no object. Together with the bytes of all objects, they are all bytes in
    /// use.
    #[must_use]
    pub fn unowned(&self) -> Unowned {
        let mut unowned = Unowned { annex_bytes: self.annex.leaving_bytes(), ..Unowned::default() };
        for (client, regions) in &self.regions {
            for rest in regions.iter().flat_map(super::Region::unsealed) {
                if self.annex.holds(rest) {
                    unowned.annex_bytes += rest.len
                } else {
                    *unowned.granted.entry(*client).or_default() += rest.len
                }
            }
        }
        for ((client, _), extent) in &self.doubles {
            if self.annex.holds(*extent) {
                unowned.annex_bytes += self.span(*extent).len
            } else {
                *unowned.granted.entry(*client).or_default() += self.span(*extent).len
            }
        }
        for extent in self.superseded_extents() {
            if self.annex.holds(extent) {
                unowned.annex_bytes += self.span(extent).len
            } else {
                unowned.superseded_bytes += self.span(extent).len
            }
        }
        unowned
    }

    /// Number of pins of each object by client.
    #[must_use]
    pub fn pins_by_object(&self) -> IdMap<ObjectId, Vec<(ClientId, u32)>> {
        let mut by_object: IdMap<ObjectId, Vec<(ClientId, u32)>> = IdMap::default();
        for (client, pins) in &self.pins {
            for (object, count) in pins {
                by_object.entry(*object).or_default().push((*client, *count));
            }
        }
        by_object
    }

    /// State of the copy of an object here, in words; `None` without one.
    #[must_use]
    pub fn describe(&self, object: ObjectId) -> Option<String> {
        let Some(stored) = self.objects.get(&object) else {
            return self.disk.len_of(object).map(|len| format!("on disk here, {len} bytes"));
        };
        let content = self.content_of(object, stored);
        let phase = match content.phase {
            Phase::Doomed => "freed, and mapped by somebody",
            Phase::OnDisk => "on disk here",
            Phase::Receiving => "being received",
            Phase::There => "in the store here",
            Phase::ThereAndOnDisk => "in the store here and on disk",
            Phase::Writing => "in the store here and being written to disk",
        };
        let copy = if content.is_secondary { ", a copy of what another node has" } else { "" };
        Some(format!("{phase}, {} bytes{copy}, pinned {} times", content.len, stored.pins))
    }

    fn content_of(&self, object: ObjectId, stored: &Stored) -> Content {
        let disk_bytes = self.disk.len_of(object).unwrap_or(0);
        let phase = match stored {
            Stored { sealed: false, .. } => Phase::Receiving,
            Stored { doomed: true, .. } => Phase::Doomed,
            _ if self.disk.is_writing(object) => Phase::Writing,
            _ if self.disk.is_there(object) => Phase::ThereAndOnDisk,
            _ => Phase::There,
        };
        let (len, bytes) = (stored.extent.len, self.span(stored.extent).len);
        let (arena_bytes, annex_bytes) =
            if self.annex.holds(stored.extent) { (0, bytes) } else { (bytes, 0) };
        Content { object, len, arena_bytes, annex_bytes, disk_bytes, phase, is_secondary: !stored.primary }
    }
}
