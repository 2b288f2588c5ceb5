//! Contents of a node's store for people: object by object, and who keeps each.
//!
//! Part of the handshake of the local socket. Its length is bounded: a limit on objects, on holders of
//! each, on call sites, and on each text; what is left out is counted.

use crate::report::StoreRow;
use serde::{Deserialize, Serialize};

/// Objects that an inventory lists at most: the largest.
pub const OBJECTS_MAX: usize = 10_000;
/// Holders of each kind that it names for an object at most.
pub const NAMED_MAX: usize = 8;
/// Call sites that it names at most.
pub const SITES_MAX: usize = 2_000;
/// Bytes of a name or place of a call site at most.
pub const SITE_BYTES_MAX: usize = 256;

/// Contents of a node's store. Bytes in use are those of all objects in the arena, of all grants and
/// `superseded_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// The node that answers.
    #[serde(with = "crate::hexadecimal")]
    pub node: u64,
    /// Its process.
    pub pid: u32,
    /// The store as a whole.
    pub store: StoreRow,
    /// Bytes of the arena that nobody uses.
    pub free_bytes: u64,
    /// Bytes of the arena that are still being received although the object was written here meanwhile.
    pub superseded_bytes: u64,
    /// Connected clients, and what each was granted.
    pub clients: Vec<ClientRow>,
    /// Calls that made objects.
    pub sites: Vec<SiteRow>,
    /// The largest objects, largest first.
    pub objects: Vec<ObjectRow>,
    /// Objects that are not listed: how many,
    pub other_count: usize,
    /// their bytes in the arena,
    pub other_arena_bytes: u64,
    /// and on disk.
    pub other_disk_bytes: u64,
}

/// A client of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRow {
    /// Its number.
    pub client: u32,
    /// Kind of client.
    pub kind: ClientKind,
    /// Its process.
    pub pid: u32,
    /// Its job.
    pub job: u32,
    /// Bytes of the arena that were granted to it and that it has not used yet.
    pub granted_bytes: u64,
}

/// Kind of client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientKind {
    /// Runs the user's `main`.
    Driver,
    /// It is gone, or is none: the node itself sends an object to another one.
    #[default]
    Node,
    /// Runs tasks.
    Worker,
}

/// A call that made objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SiteRow {
    /// Name of the task.
    pub name: String,
    /// `file:line` of the call.
    pub call_site: String,
}

/// An object in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Its id, in hexadecimal digits.
    pub object: String,
    /// The job whose task made it or put it.
    pub job: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of the arena that it takes.
    pub arena_bytes: u64,
    /// Bytes that it takes on disk, spilled or in the file for values larger than the store.
    pub disk_bytes: u64,
    /// Stage of its life.
    pub place: PlaceRow,
    /// Whether it is a copy of what another node has as well.
    pub is_secondary: bool,
    /// Whether it was put, not returned.
    pub is_put: bool,
    /// Clients that have it mapped, and how often.
    pub pins: Vec<(u32, u32)>,
    /// Clients that refer to it, and how often.
    pub clients: Vec<(u32, u32)>,
    /// Nodes that borrowed it, and how often.
    #[serde(with = "crate::hexadecimal::counted")]
    pub borrowers: Vec<(u64, u32)>,
    /// Clients and nodes that are not named for want of room.
    pub unnamed_count: usize,
    /// Unfinished tasks and other values that need it.
    pub uses: u32,
    /// Finished tasks whose results could be made again with it.
    pub lineage: u32,
    /// The node that answers for it, if that is another one.
    #[serde(with = "crate::hexadecimal::option")]
    pub owner: Option<u64>,
    /// Site that made it, among [`Inventory::sites`]; none if it was put or that is not remembered.
    pub site: Option<u32>,
    /// Time it took to make, in nanoseconds, if that is remembered.
    pub made_in_ns: Option<u64>,
}

/// Stage of the life of an object of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceRow {
    /// In memory, until those that map it let go of it: nobody refers to it.
    Freed,
    /// In memory.
    #[default]
    Memory,
    /// In memory and on disk.
    MemoryAndDisk,
    /// On disk alone.
    Disk,
    /// On disk, in the file for values larger than the store, and mapped from there.
    File,
    /// On its way into memory.
    Receiving,
    /// In memory, being written to disk.
    Writing,
}

impl Inventory {
    /// Leaves the smallest objects out until the encoding is no longer than `bytes_max`; answers the encoding
    /// that `encode` makes.
    pub fn fit(&mut self, bytes_max: usize, encode: impl Fn(&Self) -> Vec<u8>) -> Vec<u8> {
        loop {
            let encoded = encode(self);
            if encoded.len() <= bytes_max || self.objects.is_empty() {
                return encoded;
            }
            for row in self.objects.split_off(self.objects.len() / 2) {
                self.other_count += 1;
                self.other_arena_bytes += row.arena_bytes;
                self.other_disk_bytes += row.disk_bytes;
            }
        }
    }

    /// Bytes of the arena that objects take, those included that are not listed.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.objects.iter().map(|row| row.arena_bytes).sum::<u64>() + self.other_arena_bytes
    }

    /// Bytes of the arena that clients were granted and have not used yet.
    #[must_use]
    pub fn granted_bytes(&self) -> u64 {
        self.clients.iter().map(|row| row.granted_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(objects: u64) -> Inventory {
        let row = |n| ObjectRow { arena_bytes: n, disk_bytes: 2 * n, ..ObjectRow::default() };
        Inventory { objects: (1..=objects).rev().map(row).collect(), ..Inventory::default() }
    }

    #[test]
    fn an_inventory_that_fits_is_sent_as_it_is() {
        let mut all = inventory(10);
        let encoded = all.fit(10, |inventory| vec![0; inventory.objects.len()]);
        assert_eq!((encoded.len(), all), (10, inventory(10)));
    }

    #[test]
    fn the_smallest_objects_are_left_out_and_counted() {
        let mut all = inventory(10);
        let bytes = all.object_bytes();
        let encoded = all.fit(3, |inventory| vec![0; inventory.objects.len()]);
        assert!(encoded.len() <= 3);
        assert_eq!(all.objects.len() + all.other_count, 10);
        assert_eq!(all.objects.first().map(|row| row.arena_bytes), Some(10), "the largest stay");
        assert_eq!(all.object_bytes(), bytes);
        assert_eq!(all.other_disk_bytes, 2 * all.other_arena_bytes);
    }

    #[test]
    fn an_inventory_without_objects_is_sent_whatever_its_length() {
        let mut none = inventory(0);
        assert_eq!(none.fit(1, |_| vec![0; 9]).len(), 9);
    }

    #[test]
    fn what_clients_were_granted_is_added_up() {
        let client = |granted_bytes| ClientRow { granted_bytes, ..ClientRow::default() };
        let inventory = Inventory { clients: vec![client(3), client(4)], ..Inventory::default() };
        assert_eq!(inventory.granted_bytes(), 7);
    }
}
