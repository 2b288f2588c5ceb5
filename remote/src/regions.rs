//! Memory in which this client writes large values: regions of the arena, granted by the node.
//!
//! Small objects are carved from the front of the current region, so that a put takes no round trip; the next
//! region is requested when half of the current one is used. An object of more than a quarter of a region
//! gets its own region of exactly its size. In a series of equal objects, the region of the next one is
//! requested while one is written; it is then usually the memory of the object before, still in the caches. A
//! region is retired, and its unsealed parts are free again, when the last writer in it is done *and has
//! reported*: each [`Written`] holds its region until its record is sent.
//!
//! A writer that knows the size of a buffer in advance takes a [`Place`] and computes the bytes there.
//! Encoding a value with this buffer then writes the rest of the frame in front of it, and does not copy the
//! buffer.
//!
//! Regions start small and grow with use, so that a worker that returns one large value does not hold
//! sixteen mebibytes for the rest of its life.

use crate::answers::Answers;
use crate::error::{Error, Result, decode_failure};
use crate::link::Link;
use crate::pump::Reader;
use crate::uses::Use;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tharsis_object_store::carve::Carver;
use tharsis_object_store::{StoreError, WriteSlot, copy_large};
use tharsis_protos::records::FromClient;
use tharsis_types::limits::{MIB, OBJECT_ALIGN};
use tharsis_types::payload::FrameLayout;
use tharsis_types::{Extent, Failure, FailureKind};

/// First region of a client.
const REGION_BYTES_MIN: u64 = MIB as u64;
/// Regions grow up to this.
const REGION_BYTES_MAX: u64 = 16 * MIB as u64;
/// Up to this size, and up to a share of the store, a region for another object of the same size is requested
/// ahead.
const SPARE_BYTES_MAX: u64 = 4 * MIB as u64;
/// The whole store has room for at least this number of such objects.
const SPARES_MIN: u64 = 64;
/// The store's memory has room for at least this number of regions of the largest size.
const REGIONS_MIN: u64 = 32;
/// Bytes kept free before a place for the other parts of its frame.
const HEAD_ROOM_BYTES: usize = 512;
/// Large objects begin at multiples of this.
const PAGE_BYTES: u64 = 4096;

/// Regions of one client.
#[derive(Default)]
pub(crate) struct Regions {
    writing: Mutex<Writing>,
    /// Living places, by the address of their first byte.
    places: Arc<Places>,
    answers: Answers<std::result::Result<Extent, Failure>>,
}

type Places = Mutex<HashMap<usize, Taken>>;

#[derive(Default)]
struct Writing {
    current: Option<(Arc<Region>, Carver)>,
    /// The request for the region after the current one.
    ahead: Option<u32>,
    grown_bytes: u64,
    /// A requested region for one object: its length and the number of the request.
    spare: Option<(u64, u32)>,
    /// Length of the last object that had its own region.
    last_len: u64,
}

/// A granted region; dropping it retires it.
pub(crate) struct Region {
    link: Weak<Link>,
    extent: Extent,
    _use: Use,
}

/// Room in the arena for one buffer of a value to be stored. It takes a round trip to the node, so it is
/// meant for large buffers.
///
/// The bytes are stored in place if the whole place becomes the only buffer of the value; otherwise they are
/// copied like any others. The place and all its readers must be dropped before the task that stores the
/// value ends.
pub struct Place {
    slot: WriteSlot,
    places: Arc<Places>,
    /// Keeps the region from being retired before the place is dropped.
    _region: Arc<Region>,
}

/// Position of a place.
struct Taken {
    /// Offset of the frame, which begins [`HEAD_ROOM_BYTES`] before the buffer.
    offset: u64,
    len: usize,
    region: Weak<Region>,
}

impl AsRef<[u8]> for Place {
    fn as_ref(&self) -> &[u8] {
        &self.slot
    }
}

impl AsMut<[u8]> for Place {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.slot
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(&self.slot.as_ptr().addr());
    }
}

/// A complete frame in the arena.
pub(crate) struct Written {
    pub(crate) extent: Extent,
    /// Keeps the region from being retired before the frame was reported.
    _region: Arc<Region>,
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(link) = self.link.upgrade() else { return };
        // It was granted, and no slot is left in it, so this cannot fail.
        let _ = link.arena.retire(self.extent.offset, self.extent.len);
        let _ = link.send(&FromClient::RegionRetired { region: self.extent });
    }
}

impl Regions {
    /// Stores the node's answer to a request; returns the region if the request was abandoned.
    pub(crate) fn answer(&self, request: u32, region: Extent, failure: &[u8]) -> Option<Extent> {
        let answer = if region.len == 0 { Err(decode_failure(failure)) } else { Ok(region) };
        self.answers.give(request, answer)?.ok()
    }

    /// Drops the current region of a lost client: only regions with writers stay in use.
    pub(crate) fn leave_current(&self) {
        // A thread that has the lock waits for a region, or is just losing the client: it notices the loss
        // too, and the region goes with the client.
        let current = self.writing.try_lock().and_then(|mut writing| writing.current.take());
        drop(current);
    }

    /// Returns regions to a node that is short of room: those requested ahead and the current one. A region
    /// is retired when the last writer in it has reported.
    pub(crate) fn retire_unused(&self, link: &Link) {
        // A thread that has the lock waits for a region, so there is none to return.
        let Some(mut writing) = self.writing.try_lock() else { return };
        let asked = [writing.ahead.take(), writing.spare.take().map(|(_, request)| request)];
        let current = writing.current.take();
        writing.grown_bytes = 0;
        drop(writing);
        drop(current);
        asked.into_iter().flatten().for_each(|request| self.give_up(link, request));
    }

    /// Gives up a requested region: it is returned, now or when it is granted.
    fn give_up(&self, link: &Link, request: u32) {
        if let Some(Ok(region)) = self.answers.abandon(request) {
            let _ = link.send(&FromClient::RegionRetired { region });
        }
    }
}

/// Writing.
impl Regions {
    /// Writes a frame into the arena.
    ///
    /// # Errors
    /// `StoreFull` or `ObjectTooLarge` from the node, or the loss of the connection.
    pub(crate) fn write_frame(
        &self,
        link: &Arc<Link>,
        in_band: &[u8],
        buffers: &[Bytes],
        layout: &FrameLayout,
    ) -> Result<Written> {
        if let [buffer] = buffers
            && let Some(written) = self.write_around(link, in_band, buffer, layout)?
        {
            return Ok(written);
        }
        let len = layout.total_len() as u64;
        let (region, offset) = self.allocate(link, len)?;
        let mut slot = link.arena.write(offset, len).map_err(|error| Error::internal(error.to_string()))?;
        fill(&mut slot, in_band, buffers, layout)?;
        Ok(Written { extent: Extent { offset, len }, _region: region })
    }

    /// Writes the parts of a frame in front of a buffer in a place; `None` if the buffer is not in a place.
    fn write_around(
        &self,
        link: &Link,
        in_band: &[u8],
        buffer: &[u8],
        layout: &FrameLayout,
    ) -> Result<Option<Written>> {
        let found = {
            let places = self.places.lock();
            let taken = places.get(&buffer.as_ptr().addr()).filter(|taken| taken.len == buffer.len());
            taken.and_then(|taken| Some((taken.offset, taken.region.upgrade()?)))
        };
        let Some((offset, region)) = found else { return Ok(None) };
        let Some(layout) = layout.clone().with_buffer_at(HEAD_ROOM_BYTES) else { return Ok(None) };
        let slot = link.arena.write(offset, HEAD_ROOM_BYTES as u64);
        let mut slot = slot.map_err(|error| Error::internal(error.to_string()))?;
        let (head, len) = (layout.head(), in_band.len());
        slot.fill(0);
        slot[..head.len()].copy_from_slice(&head);
        slot[head.len()..head.len() + len].copy_from_slice(in_band);
        let extent = Extent { offset, len: layout.total_len() as u64 };
        Ok(Some(Written { extent, _region: region }))
    }

    /// Takes a place for a buffer of this many bytes.
    pub(crate) fn take_place(&self, link: &Arc<Link>, bytes: usize) -> Result<Place> {
        let (room, len) = (HEAD_ROOM_BYTES as u64, bytes as u64);
        // It gets its own region: in a shared one, objects behind it could only be stored after it.
        let region = self.own_region(link, room.saturating_add(len), self.writing.lock())?;
        let (arena, offset) = (&link.arena, region.extent.offset);
        arena.make_pages(offset, room + len).map_err(no_pages)?;
        let slot = arena.write(offset + room, len).map_err(|error| Error::internal(error.to_string()))?;
        let taken = Taken { offset, len: bytes, region: Arc::downgrade(&region) };
        self.places.lock().insert(slot.as_ptr().addr(), taken);
        Ok(Place { slot, places: Arc::clone(&self.places), _region: region })
    }

    fn allocate(&self, link: &Arc<Link>, len: u64) -> Result<(Arc<Region>, u64)> {
        let taken = self.carve(link, len);
        if link.is_lost() {
            // The client was lost meanwhile, while this thread held the lock that `leave_current` needs.
            self.leave_current();
            return Err(link.loss());
        }
        taken
    }

    fn carve(&self, link: &Arc<Link>, len: u64) -> Result<(Arc<Region>, u64)> {
        let mut writing = self.writing.lock();
        let region_bytes = writing.grown_bytes.max(REGION_BYTES_MIN);
        if len > region_bytes / 4 && len > REGION_BYTES_MIN / 4 {
            let region = self.own_region(link, len, writing)?;
            let offset = region.extent.offset;
            return Ok((region, offset));
        }
        loop {
            if let Some((region, carver)) = &mut writing.current
                && let Some(begin) = carver.take(len, alignment(len))
            {
                let (region, offset) = (Arc::clone(region), region.extent.offset + begin);
                self.look_ahead(link, &mut writing)?;
                return Ok((region, offset));
            }
            writing.current = None;
            // The spare region could take the room of the region that this thread now waits for.
            let spare = writing.spare.take();
            spare.into_iter().for_each(|(_, request)| self.give_up(link, request));
            let region = match writing.ahead.take().map(|request| self.take_region(link, request)) {
                Some(Ok(region)) => region,
                Some(Err(_)) => {
                    // The request may have waited too long for room, because it was larger than necessary.
                    writing.grown_bytes = REGION_BYTES_MIN;
                    self.take_region(link, self.request_region(link, REGION_BYTES_MIN.max(len))?)?
                }
                None => self.take_region(link, self.request_region(link, self.grow(link, &mut writing))?)?,
            };
            link.arena.make_pages(region.extent.offset, region.extent.len).map_err(no_pages)?;
            let carver = Carver::new(region.extent.len);
            writing.current = Some((region, carver));
        }
    }

    /// A region for one object; the copy makes its pages.
    fn own_region(
        &self,
        link: &Arc<Link>,
        len: u64,
        mut writing: MutexGuard<'_, Writing>,
    ) -> Result<Arc<Region>> {
        let is_row = std::mem::replace(&mut writing.last_len, len) == len;
        let spare = match writing.spare {
            Some((bytes, _)) if bytes != len && !is_row => None,
            _ => writing.spare.take(),
        };
        let request = match spare {
            Some((bytes, request)) if bytes == len => request,
            _ => self.request_region(link, len)?,
        };
        let has_room = len <= SPARE_BYTES_MAX.min(link.arena.len() / SPARES_MIN);
        if is_row && has_room && writing.spare.is_none() {
            writing.spare = Some((len, self.request_region(link, len)?));
        }
        drop(writing);
        if let Some((bytes, other)) = spare
            && bytes != len
        {
            // A spare of another size: it is retired, if it was granted.
            let _other = self.take_region(link, other);
        }
        match self.take_region(link, request) {
            // A region requested ahead may have waited too long for room.
            Err(_) if spare.is_some_and(|(bytes, _)| bytes == len) => {
                self.take_region(link, self.request_region(link, len)?)
            }
            taken => taken,
        }
    }

    fn grow(&self, link: &Link, writing: &mut Writing) -> u64 {
        // A share of the memory, so that many clients can write: in a small store, regions are small.
        let share = link.arena.memory_len() / REGIONS_MIN;
        let max = REGION_BYTES_MAX.min(share).max(REGION_BYTES_MIN);
        writing.grown_bytes = (writing.grown_bytes * 2).clamp(REGION_BYTES_MIN, max);
        writing.grown_bytes
    }

    /// Requests the next region once half of this one is used.
    fn look_ahead(&self, link: &Link, writing: &mut Writing) -> Result<()> {
        let is_half_used = writing.current.as_ref().is_some_and(|(_, carver)| carver.is_half_used());
        if is_half_used && writing.ahead.is_none() {
            let bytes = self.grow(link, writing);
            writing.ahead = Some(self.request_region(link, bytes)?);
        }
        Ok(())
    }

    fn request_region(&self, link: &Link, bytes: u64) -> Result<u32> {
        let request = self.answers.expect();
        link.send(&FromClient::RegionWanted { request, bytes })?;
        Ok(request)
    }

    fn take_region(&self, link: &Arc<Link>, request: u32) -> Result<Arc<Region>> {
        let extent = self.answers.take(link, request)??;
        let in_use = link.uses.begin().ok_or_else(|| link.loss())?;
        link.arena
            .grant(extent.offset, extent.len)
            .map_err(|error| Error::internal(format!("a granted region is not valid: {error}")))?;
        Ok(Arc::new(Region { link: Arc::downgrade(link), extent, _use: in_use }))
    }
}

/// Alignment of an object: from a mebibyte on, a page, as for objects that the node places, so that they can
/// be written to disk without the page cache. Regions begin at a page.
fn alignment(len: u64) -> u64 {
    if len < MIB as u64 { OBJECT_ALIGN as u64 } else { PAGE_BYTES }
}

/// Writes head, in-band bytes and buffers to their places, in one pass.
fn fill(slot: &mut WriteSlot, in_band: &[u8], buffers: &[Bytes], layout: &FrameLayout) -> Result<()> {
    const PADDING: [u8; OBJECT_ALIGN] = [0; OBJECT_ALIGN];
    let head = layout.head();
    let mut parts: Vec<&[u8]> = vec![&head, in_band];
    let mut at = head.len() + in_band.len();
    for (offset, buffer) in layout.buffer_offsets().zip(buffers) {
        parts.push(&PADDING[..offset - at]);
        parts.push(buffer);
        at = offset + buffer.len();
    }
    copy_large(slot, &parts).map_err(no_pages)
}

fn no_pages(error: StoreError) -> Error {
    match error {
        StoreError::NoSpace(_) => Error::new(FailureKind::StoreFull, error.to_string()),
        error => Error::internal(error.to_string()),
    }
}
