//! Memory that clients write to: regions, and the objects that they carve out of them.
//!
//! The threads of a client write to one region at once and may finish in any order. So a gap between sealed
//! objects may still be written to. Unsealed ranges of a region become free only when the region is retired
//! or its client is gone.

use super::annex::Annex;
use super::{Extents, Store, Stored, rounded};
use std::collections::BTreeMap;
use tharsis_types::{ClientId, Extent, Failure, FailureKind, ObjectId};

/// A range that a client may write to.
#[derive(Debug)]
pub(super) struct Region {
    extent: Extent,
    /// Ranges that do not belong to an object yet, by offset; none is empty. Most regions have one or
    /// two.
    unsealed: Vec<Extent>,
}

impl Store {
    /// Grants a client a region to write to. Objects that were evicted for it are appended to `evicted`.
    ///
    /// # Errors
    /// `ObjectTooLarge` if it can never fit, `StoreFull` if it does not fit now.
    pub fn grant(
        &mut self,
        client: ClientId,
        bytes: u64,
        evicted: &mut Vec<ObjectId>,
    ) -> Result<Extent, Failure> {
        let free = self.extents.capacity_bytes() - self.extents.used_bytes();
        if free + self.evictable_bytes < bytes + self.reserve_beside(bytes)
            && bytes <= self.extents.capacity_bytes()
        {
            return Err(self.full(bytes));
        }
        let extent = self.allocate(bytes, Extents::take_pages, evicted)?;
        self.regions.entry(client).or_default().push(Region { extent, unsealed: vec![extent] });
        Ok(extent)
    }

    /// Bytes of the memory that clients were granted and have not sealed.
    #[must_use]
    pub fn granted(&self) -> BTreeMap<ClientId, u64> {
        let of_client = |regions: &Vec<Region>| {
            let unsealed =
                regions.iter().flat_map(Region::unsealed).filter(|range| !self.annex.holds(*range));
            unsealed.map(|range| range.len).sum::<u64>()
        };
        let all = self.regions.iter().map(|(client, regions)| (*client, of_client(regions)));
        all.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// A client has completed an object in one of its regions; returns the location of the object.
    ///
    /// The location is another one if a complete copy is here already, because the task ran before. Then that
    /// copy counts, and the new bytes are freed with their region, unless [`Store::keep_double`] keeps them.
    /// A freed copy does not count, even if it is still held.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is not a free part of one of the client's regions.
    pub fn seal(&mut self, client: ClientId, object: ObjectId, extent: Extent) -> Result<Extent, Failure> {
        if let Some(stored) = self.objects.get_mut(&object).filter(|s| s.sealed && !s.doomed) {
            stored.primary = true;
            let extent = stored.extent;
            self.rest(object);
            return Ok(extent);
        }
        self.carve(client, extent)?;
        self.replace_freed(object);
        let (pins, number) = (self.earlier_pins(object), self.next_number());
        let stored = Stored { extent, primary: true, sealed: true, doomed: false, pins, age: 0, number };
        let receiving = self.objects.insert(object, stored).map(|stored| stored.extent);
        self.disk.discard(object);
        self.rest(object);
        self.superseded.extend(receiving.map(|into| (object, into)));
        Ok(extent)
    }

    /// Keeps the bytes that a client wrote and still reads although the object was already here, until
    /// [`Store::drop_double`]. A range that is not an unsealed part of the client's regions is ignored.
    pub fn keep_double(&mut self, client: ClientId, token: u64, extent: Extent) {
        if self.carve(client, extent).is_ok() {
            self.drop_double(client, token);
            self.doubles.insert((client, token), extent);
        }
    }

    /// Frees the bytes of [`Store::keep_double`], if there are any.
    pub fn drop_double(&mut self, client: ClientId, token: u64) {
        if let Some(extent) = self.doubles.remove(&(client, token)) {
            self.give(self.span(extent));
        }
    }

    /// Takes a range out of a client's region.
    fn carve(&mut self, client: ClientId, extent: Extent) -> Result<(), Failure> {
        let taken = self.span(extent);
        let may_begin = !self.annex.holds(extent) || Annex::is_aligned(extent);
        let regions =
            self.regions.get_mut(&client).filter(|_| may_begin && taken.offset.is_multiple_of(rounded(1)));
        if regions.is_some_and(|all| all.iter_mut().any(|region| region.carve(taken))) {
            return Ok(());
        }
        let text =
            format!("range {}+{} is not in a region of client {}", extent.offset, extent.len, client.0);
        Err(Failure::new(FailureKind::InvalidArgument, text))
    }

    /// A client is done with a region; its unsealed ranges are free again.
    pub fn retire(&mut self, client: ClientId, extent: Extent) {
        let Some(regions) = self.regions.get_mut(&client) else { return };
        if let Some(at) = regions.iter().position(|r| r.extent == extent) {
            // The oldest of this range: if there is a newer one, no byte of the older is left to be given.
            let region = regions.remove(at);
            if regions.is_empty() {
                self.regions.remove(&client);
            }
            region.unsealed.into_iter().for_each(|range| self.give(range));
        }
    }
}

impl Region {
    /// Ranges that do not belong to an object yet.
    pub(super) fn unsealed(&self) -> impl Iterator<Item = Extent> {
        self.unsealed.iter().copied()
    }

    /// Takes a range out of the unsealed ones; false if not all of it is unsealed.
    fn carve(&mut self, taken: Extent) -> bool {
        let behind = self.unsealed.partition_point(|range| range.offset <= taken.offset);
        let Some(at) = behind.checked_sub(1) else { return false };
        let range = &mut self.unsealed[at];
        let range_end = range.offset + range.len;
        let Some(end) = taken.offset.checked_add(taken.len).filter(|end| *end <= range_end) else {
            return false;
        };
        let before = Extent { offset: range.offset, len: taken.offset - range.offset };
        let after = Extent { offset: end, len: range_end - end };
        match (before.len, after.len) {
            (0, 0) => drop(self.unsealed.remove(at)),
            (0, _) => *range = after,
            (_, 0) => *range = before,
            _ => {
                *range = before;
                self.unsealed.insert(behind, after);
            }
        }
        true
    }

    pub(super) fn check(&self) {
        let mut end = self.extent.offset;
        for range in &self.unsealed {
            assert!(end <= range.offset && range.len > 0, "ranges of a region overlap: {:?}", self.unsealed);
            end = range.offset + range.len;
        }
        assert!(end <= self.extent.offset + self.extent.len, "{:?} leaves {:?}", self.unsealed, self.extent);
    }
}
