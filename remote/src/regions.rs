//! Memory in which this client writes large values: regions of the arena that the node granted to it.
//!
//! Small objects are carved one after the other from the current region, so that a put takes no round trip;
//! the next region is asked for when half of the current one is used. An object of more than a quarter of a
//! region gets one of its own, exactly as large as it is; in a row of equal ones the region of the next is
//! asked for while the last is written, and is then most often the one before that, still in the caches. A
//! region is retired, and what was not sealed in it is free again, when the last writer in it is done *and
//! has reported*: each [`Written`] holds its region until its record is sent.
//!
//! A writer that knows how large a buffer will be before there are its bytes takes a [`Place`] and makes them
//! there: encoding a value that has this buffer then writes the rest of the frame before it, and copies
//! nothing.
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
/// Objects up to this, and up to a share of the store, have the region of their next like asked for.
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
    /// Places that are not dropped yet, by the address of their first byte.
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
    /// A region of its own for an object of this length, asked for.
    spare: Option<(u64, u32)>,
    /// Length of the last object with a region of its own.
    last_len: u64,
}

/// A granted region; dropping it retires it.
pub(crate) struct Region {
    link: Weak<Link>,
    extent: Extent,
    _use: Use,
}

/// Room in the arena for one buffer of a value to be stored. It takes a round trip to the node, so it is for
/// large ones.
///
/// The bytes are stored where they are if they become the only buffer of the value, whole; otherwise they are
/// copied like any others. It is to be dropped, with all that looks at it, before the task that stores the
/// value ends.
pub struct Place {
    slot: WriteSlot,
    places: Arc<Places>,
    /// Not to be retired before the place is dropped.
    _region: Arc<Region>,
}

/// Position of a place.
struct Taken {
    /// Of the frame, which begins [`HEAD_ROOM_BYTES`] before the buffer.
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

/// A frame that lies in the arena, complete.
pub(crate) struct Written {
    pub(crate) extent: Extent,
    /// Not to be retired before the frame was reported.
    _region: Arc<Region>,
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(link) = self.link.upgrade() else { return };
        // It was granted, and no slot is left in it: nothing can go wrong.
        let _ = link.arena.retire(self.extent.offset, self.extent.len);
        let _ = link.send(&FromClient::RegionRetired { region: self.extent });
    }
}

impl Regions {
    /// Takes in the node's answer to a request; gives back a region that nobody wants any more.
    pub(crate) fn answer(&self, request: u32, region: Extent, failure: &[u8]) -> Option<Extent> {
        let answer = if region.len == 0 { Err(decode_failure(failure)) } else { Ok(region) };
        self.answers.give(request, answer)?.ok()
    }

    /// The client is lost: only what is being written is still in use.
    pub(crate) fn leave_current(&self) {
        // Whoever has the lock asks the node for a region, or loses the client just now: it is told of the
        // loss as well, and the region goes with the client.
        let current = self.writing.try_lock().and_then(|mut writing| writing.current.take());
        drop(current);
    }

    /// The node is short of room: what was asked for ahead and the current region go back. A region goes when
    /// the last writer in it has reported.
    pub(crate) fn retire_unused(&self, link: &Link) {
        // Whoever has the lock waits for a region, and has none to give.
        let Some(mut writing) = self.writing.try_lock() else { return };
        let asked = [writing.ahead.take(), writing.spare.take().map(|(_, request)| request)];
        let current = writing.current.take();
        writing.grown_bytes = 0;
        drop(writing);
        drop(current);
        asked.into_iter().flatten().for_each(|request| self.give_up(link, request));
    }

    /// Nobody wants a region any more that was asked for: it goes back, now or when it is granted.
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
    /// `StoreFull` or `ObjectTooLarge` as the node says, or the loss of the connection.
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

    /// Writes what comes before a buffer that lies in a place; `None` if it lies elsewhere.
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
        // In a region that others share it would have to be stored before what is written behind it.
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
            // Lost meanwhile, and then whoever lost it could not leave the region to its writers.
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
            // It could be in the way of the region that this thread now waits for.
            let spare = writing.spare.take();
            spare.into_iter().for_each(|(_, request)| self.give_up(link, request));
            let region = match writing.ahead.take().map(|request| self.take_region(link, request)) {
                Some(Ok(region)) => region,
                Some(Err(_)) => {
                    // It may have waited too long for room, and been larger than it need be.
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
            // Of another row: it is retired, if it was granted.
            let _other = self.take_region(link, other);
        }
        match self.take_region(link, request) {
            // A region that was asked for ahead may have waited too long for room.
            Err(_) if spare.is_some_and(|(bytes, _)| bytes == len) => {
                self.take_region(link, self.request_region(link, len)?)
            }
            taken => taken,
        }
    }

    fn grow(&self, link: &Link, writing: &mut Writing) -> u64 {
        // A share of the memory, so that many clients can write: a small store grants small regions.
        let share = link.arena.memory_len() / REGIONS_MIN;
        let max = REGION_BYTES_MAX.min(share).max(REGION_BYTES_MIN);
        writing.grown_bytes = (writing.grown_bytes * 2).clamp(REGION_BYTES_MIN, max);
        writing.grown_bytes
    }

    /// Asks for the next region once half of this one is used.
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

/// Alignment of an object: from a mebibyte on at a page, as the node itself places them, so that disks can
/// be written around the page cache. Regions begin at a page.
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
