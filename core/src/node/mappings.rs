//! Mappings: the values that clients keep mapped, and the requests to unmap them.
//!
//! A mapped value is pinned in the store once for every time that its client was told its location; the
//! client unmaps it as often. A client keeps a value mapped after its last use until it is asked. When room
//! is short, clients are asked to unmap values and, if that is not enough, to retire regions that they do not
//! write to. Requests are remembered and not repeated; once a second all of them are forgotten.

use super::Node;
use crate::event::{Action, Record};
use crate::store::Store;
use crate::{MS, Now};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::hash::{IdMap, IdSet};
use tharsis_types::{ClientId, Extent, ObjectId, RefId};

/// Interval at which clients are asked for mapped values while somebody waits.
const UNMAP_EVERY: Now = 5 * MS;
/// Interval after which clients are asked again for values and regions that they kept.
const ASK_AGAIN_AFTER: Now = 1_000 * MS;

/// Values that clients have mapped.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// References whose value the client has mapped, and how often it was told the location: it unmaps as
    /// often.
    mapped: BTreeMap<(ClientId, u64, ObjectId), u32>,
    /// Those of them that the client was asked to unmap.
    values_asked: BTreeSet<(ClientId, u64)>,
    /// Clients that were asked for their regions.
    regions_asked: IdSet<ClientId>,
    /// When clients were last asked to unmap values, in memory and in the annex.
    asked_at: [Now; 2],
    /// When the remembered requests were last forgotten.
    all_asked_at: Now,
}

impl Mappings {
    /// A client was told the location of a value.
    fn add(&mut self, client: ClientId, token: u64, object: ObjectId) {
        *self.mapped.entry((client, token, object)).or_default() += 1;
    }

    /// A client unmaps a value once; false if it does not have it mapped.
    fn remove_one(&mut self, client: ClientId, token: u64, object: ObjectId) -> bool {
        self.values_asked.remove(&(client, token));
        let Entry::Occupied(mut count) = self.mapped.entry((client, token, object)) else { return false };
        assert!(0 < *count.get(), "client {} has nothing mapped for {token}", client.0);
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
        true
    }

    /// A client unmaps a value for good; returns how often it had it mapped.
    fn remove_all(&mut self, client: ClientId, token: u64, object: ObjectId) -> u32 {
        self.values_asked.remove(&(client, token));
        self.mapped.remove(&(client, token, object)).unwrap_or(0)
    }

    /// A client retired a region: it may be asked for the others again.
    pub(super) fn region_retired(&mut self, client: ClientId) {
        self.regions_asked.remove(&client);
    }

    /// A client is gone; the store drops its pins.
    pub(super) fn client_gone(&mut self, client: ClientId) {
        self.regions_asked.remove(&client);
        let first = (client, 0, ObjectId::from_bytes([0; ObjectId::LEN]));
        let mapped = self.mapped.range(first..).map(|(key, _)| *key).take_while(|(of, ..)| *of == client);
        for (client, token, object) in mapped.collect::<Vec<_>>() {
            self.remove_all(client, token, object);
        }
    }

    /// Asks clients to unmap values, in memory or in the annex, until enough bytes are asked for. Returns the
    /// bytes that are still short when every value was asked for; `None` if nothing is short, or if it is too
    /// early to ask.
    pub(super) fn ask_for_values(
        &mut self,
        now: Now,
        bytes: u64,
        in_annex: bool,
        store: &Store,
        out: &mut Vec<Action>,
    ) -> Option<u64> {
        let asked_at = &mut self.asked_at[usize::from(in_annex)];
        if bytes == 0 || now < *asked_at + UNMAP_EVERY {
            return None;
        }
        assert!(*asked_at <= now, "clients were asked in the future");
        *asked_at = now;
        if self.all_asked_at + ASK_AGAIN_AFTER <= now {
            self.all_asked_at = now;
            self.values_asked.clear();
            self.regions_asked.clear();
        }
        let mut asked_bytes = 0;
        for &(client, token, object) in self.mapped.keys() {
            if bytes <= asked_bytes {
                return None;
            }
            if store.is_in_annex(object) == in_annex && self.values_asked.insert((client, token)) {
                out.push(Record::Unmap { token }.to(client));
                asked_bytes += store.find(object).map_or(0, |extent| extent.len);
            }
        }
        Some(bytes.saturating_sub(asked_bytes))
    }

    /// Asks clients, in this order, for regions that they do not write to, until enough bytes are asked for.
    pub(super) fn ask_for_regions(&mut self, bytes: u64, granted: &[(ClientId, u64)], out: &mut Vec<Action>) {
        let mut asked_bytes = 0;
        for &(client, granted_bytes) in granted {
            if bytes <= asked_bytes {
                return;
            }
            if self.regions_asked.insert(client) {
                out.push(Record::RetireRegions.to(client));
                asked_bytes += granted_bytes;
            }
        }
    }

    /// When clients that were asked lately can be asked for more.
    pub(super) fn ask_next_at(&self) -> Now {
        self.asked_at[0].max(self.asked_at[1]) + UNMAP_EVERY
    }

    /// Clients by the bytes that they have mapped, most first.
    pub(super) fn largest(&self, store: &Store) -> Vec<(u64, ClientId)> {
        let mut bytes_of: BTreeMap<ClientId, u64> = BTreeMap::new();
        for (client, _, object) in self.mapped.keys() {
            *bytes_of.entry(*client).or_default() += store.find(*object).map_or(0, |extent| extent.len);
        }
        let mut largest: Vec<_> = bytes_of.into_iter().map(|(client, bytes)| (bytes, client)).collect();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        largest
    }

    /// Asserts that every mapping is a pin in the store.
    pub(super) fn check(&self, store: &Store) {
        let mut counts: IdMap<ObjectId, BTreeMap<ClientId, u32>> = IdMap::default();
        for ((client, token, object), count) in &self.mapped {
            assert!(0 < *count, "client {} has nothing mapped for {token}", client.0);
            *counts.entry(*object).or_default().entry(*client).or_default() += count;
        }
        let pins = store.pins_by_object();
        for (object, clients) in counts {
            for (client, count) in clients {
                let pinned = pins.get(&object).and_then(|all| all.iter().find(|(c, _)| *c == client));
                let pinned = pinned.map_or(0, |(_, count)| *count);
                assert!(count <= pinned, "client {} maps {object} {count} times of {pinned}", client.0);
            }
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 3] {
        [
            ("mapped values", self.mapped.len()),
            ("mapped values that were asked for", self.values_asked.len()),
            ("clients that were asked for their regions", self.regions_asked.len()),
        ]
    }
}

impl Node {
    /// Maps a local object for a reference of a client. A value that is already mapped is counted once more,
    /// because an unmap of it may be on its way.
    pub(super) fn map(&mut self, client: ClientId, token: u64, object: ObjectId) -> Option<Extent> {
        let extent = self.store.pin(client, object)?;
        self.mappings.add(client, token, object);
        Some(extent)
    }

    /// A worker keeps an argument mapped after its run: the argument stays pinned, even if no other reference
    /// is left.
    pub(super) fn kept(&mut self, client: ClientId, token: u64, reference: RefId) {
        self.owner.held(client, reference, &mut self.effects);
        if self.store.pin_again(client, reference.object) {
            self.mappings.add(client, token, reference.object);
        }
    }

    /// A client unmaps a value; its reference stays.
    pub(super) fn unmapped(&mut self, client: ClientId, token: u64, object: ObjectId) {
        self.store.drop_double(client, token);
        if self.mappings.remove_one(client, token, object) {
            self.unpin_mapped(client, object);
        }
    }

    /// Unmaps everything that was mapped for a reference that a client dropped.
    pub(super) fn unmap_all(&mut self, client: ClientId, token: u64, object: ObjectId) {
        self.store.drop_double(client, token);
        for _ in 0..self.mappings.remove_all(client, token, object) {
            self.unpin_mapped(client, object);
        }
    }

    fn unpin_mapped(&mut self, client: ClientId, object: ObjectId) {
        let was_pinned = self.store.unpin(client, object);
        assert!(was_pinned, "client {} had {object} mapped and not pinned", client.0);
    }
}
