//! What clients write: regions, and the objects that they carve out of them from front to back.

use super::annex::Annex;
use super::{Extents, Store, Stored, rounded};
use crate::event::Extent;
use tharsis_types::{ClientId, Failure, FailureKind, ObjectId};

/// A range that a client may write to.
#[derive(Debug)]
pub(super) struct Region {
    extent: Extent,
    /// Everything below belongs to objects or was given back.
    carved_to: u64,
}

impl Store {
    /// Grants a client a region to write to. Objects that had to go are appended to `evicted`.
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
        let carved_to = extent.offset;
        self.regions.entry(client).or_default().push(Region { extent, carved_to });
        Ok(extent)
    }

    /// A client has completed an object in one of its regions; answers where the object lies.
    ///
    /// That is elsewhere if a complete copy is here already, because its task ran before: then that one counts, and what was
    /// written anew goes with its region, unless [`Store::keep_double`] keeps it.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is not a free part of one of the client's regions.
    pub fn seal(&mut self, client: ClientId, object: ObjectId, extent: Extent) -> Result<Extent, Failure> {
        let receiving = match self.objects.get_mut(&object) {
            Some(stored) if stored.sealed => {
                (stored.doomed, stored.primary) = (false, true);
                let extent = stored.extent;
                self.rest(object);
                return Ok(extent);
            }
            Some(stored) => Some(stored.extent),
            None => None,
        };
        self.carve(client, extent)?;
        let stored = Stored { extent, primary: true, sealed: true, doomed: false, pins: 0, age: 0 };
        self.objects.insert(object, stored);
        self.disk.discard(object);
        self.rest(object);
        self.superseded.extend(receiving.map(|into| (object, into)));
        Ok(extent)
    }

    /// A client wrote what is here already, and looks at what it wrote: that stays until [`Store::drop_double`]. A range
    /// that is not a free part of its regions is not the client's to keep.
    pub fn keep_double(&mut self, client: ClientId, token: u64, extent: Extent) {
        if self.carve(client, extent).is_ok() {
            self.drop_double(client, token);
            self.doubles.insert((client, token), extent);
        }
    }

    /// A client lets go of what it wrote although it was here already, if it did.
    pub fn drop_double(&mut self, client: ClientId, token: u64) {
        if let Some(extent) = self.doubles.remove(&(client, token)) {
            self.give(self.span(extent));
        }
    }

    /// Takes a range out of a client's region; what was skipped before it is free.
    fn carve(&mut self, client: ClientId, extent: Extent) -> Result<(), Failure> {
        let taken = self.span(extent);
        let may_begin = !self.annex.holds(extent) || Annex::is_aligned(extent);
        let regions = self.regions.get_mut(&client).filter(|_| may_begin);
        let region = regions.and_then(|all| all.iter_mut().find(|r| r.has_room_for(taken)));
        let Some(region) = region else {
            let text =
                format!("range {}+{} is not in a region of client {}", extent.offset, extent.len, client.0);
            return Err(Failure::new(FailureKind::InvalidArgument, text));
        };
        let gap = Extent { offset: region.carved_to, len: taken.offset - region.carved_to };
        region.carved_to = taken.offset + taken.len;
        self.give(gap);
        Ok(())
    }

    /// A client is done with a region; what it did not use is free again.
    pub fn retire(&mut self, client: ClientId, extent: Extent) {
        let Some(regions) = self.regions.get_mut(&client) else { return };
        if let Some(at) = regions.iter().position(|r| r.extent == extent) {
            let rest = regions.swap_remove(at).rest();
            if regions.is_empty() {
                self.regions.remove(&client);
            }
            self.give(rest);
        }
    }
}

impl Region {
    pub(super) fn rest(&self) -> Extent {
        Extent { offset: self.carved_to, len: self.extent.offset + self.extent.len - self.carved_to }
    }

    fn has_room_for(&self, taken: Extent) -> bool {
        let end = taken.offset.checked_add(taken.len);
        taken.offset.is_multiple_of(rounded(1))
            && self.carved_to <= taken.offset
            && end.is_some_and(|end| end <= self.extent.offset + self.extent.len)
    }
}
