//! A process's view of the arena: one mapping, readable everywhere, writable where granted.
//!
//! A client maps the whole arena once, read-only. The node grants it page-aligned ranges, which become writable in
//! this client alone; when a range is retired it is read-only again, so a write through an old address faults
//! in the client that made the mistake and nowhere else. In the node's own process (and so in an embedded program)
//! the mapping is writable throughout and grants are not needed.
//!
//! *Who may touch what.* Bytes are written by the holder of a [`WriteSlot`] before they are sealed, and read
//! by anyone after; the layers above give a range to a new writer only when nobody reads it any more. This module
//! checks what one process can check: bounds, grants, that two slots never overlap and that nothing is read
//! through this map while a slot covers it. What it cannot see is another process that breaks the rule; a reader then gets
//! wrong bytes, which checksums find, and never an address outside the arena.
//!
//! *Faults.* The file is sealed against shrinking (checked on opening), so an address in bounds always has a file page
//! behind it; the node allocates pages before it grants them.

#![allow(unsafe_code)]

use crate::error::{StoreError, check_range};
use crate::ranges::RangeSet;
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect, munmap};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ranges from this size on get their page tables filled when they are granted: about 19 GB/s against 2 GB/s of
/// faulting in page by page; below it the system call costs more than the faults.
pub const POPULATE_BYTES_MIN: u64 = 1 << 20;

/// One mapping of a whole arena.
pub struct ArenaMap {
    base: NonNull<u8>,
    len: u64,
    page_bytes: u64,
    writable: Writable,
    /// Ranges under a live slot.
    slots: Mutex<RangeSet>,
    /// Number of live slots; lets a reader skip the lock when there are none.
    slot_count: AtomicUsize,
}

enum Writable {
    Granted(Mutex<RangeSet>),
    Whole,
}

// SAFETY: plain memory, valid from any thread while the value lives; who may touch which bytes is argued in the header.
unsafe impl Send for ArenaMap {}
// SAFETY: as above.
unsafe impl Sync for ArenaMap {}

impl ArenaMap {
    /// Maps the arena behind a file descriptor received from the node; nothing is writable yet.
    ///
    /// # Errors
    /// `Mismatch` unless the file has exactly `len` bytes and is sealed against shrinking, `System` if it
    /// cannot be mapped.
    pub fn from_fd(fd: impl AsFd, len: u64) -> Result<ArenaMap, StoreError> {
        let seals = fcntl_get_seals(&fd).map_err(|e| StoreError::system("read the arena's seals", e))?;
        if !seals.contains(SealFlags::SHRINK) {
            let (found, expected) = (u64::from(seals.bits()), u64::from(SealFlags::SHRINK.bits()));
            return Err(StoreError::Mismatch { what: "the seals of an arena", found, expected });
        }
        let found = fstat(&fd).map_err(|e| StoreError::system("read the arena's size", e))?.st_size as u64;
        if found != len || len == 0 {
            return Err(StoreError::Mismatch { what: "the size of an arena", found, expected: len });
        }
        ArenaMap::map(fd, len, ProtFlags::READ, Writable::Granted(Mutex::default()))
    }

    /// Maps the arena that this process made, writable throughout.
    pub(crate) fn whole(fd: impl AsFd, len: u64) -> Result<ArenaMap, StoreError> {
        ArenaMap::map(fd, len, ProtFlags::READ | ProtFlags::WRITE, Writable::Whole)
    }

    fn map(fd: impl AsFd, len: u64, flags: ProtFlags, writable: Writable) -> Result<ArenaMap, StoreError> {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of this process.
        let base = unsafe { mmap(ptr::null_mut(), len as usize, flags, MapFlags::SHARED, fd, 0) }
            .map_err(|cause| StoreError::system("map the arena", cause))?;
        let Some(base) = NonNull::new(base.cast::<u8>()) else {
            return Err(StoreError::system("map the arena", std::io::Error::other("mapped at address 0")));
        };
        let map = ArenaMap {
            base,
            len,
            page_bytes: rustix::param::page_size() as u64,
            writable,
            slots: Mutex::default(),
            slot_count: AtomicUsize::new(0),
        };
        if crate::arena::huge_pages_available() {
            // Advice only: without it the pages are small.
            let _ = map.advise(0, len, Advice::LinuxHugepage);
        }
        Ok(map)
    }

    /// Makes a page-aligned range writable for this client.
    ///
    /// # Errors
    /// `OutOfBounds`, `Misaligned`, or `System` if the system refuses.
    pub fn grant(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check_pages(offset, len)?;
        let Writable::Granted(grants) = &self.writable else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        self.protect(offset, len, MprotectFlags::READ | MprotectFlags::WRITE)?;
        if POPULATE_BYTES_MIN <= len {
            // A kernel without it leaves the page tables to be filled fault by fault.
            let _ = self.advise(offset, len, Advice::LinuxPopulateWrite);
        }
        lock(grants).insert(offset, offset + len);
        Ok(())
    }

    /// Makes a page-aligned range read-only again.
    ///
    /// # Errors
    /// `WriteUnderway` if a slot of this process still covers some of it, and as [`ArenaMap::grant`].
    pub fn retire(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check_pages(offset, len)?;
        let Writable::Granted(grants) = &self.writable else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        let mut grants = lock(grants);
        if lock(&self.slots).overlaps(offset, offset + len) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        grants.remove(offset, offset + len);
        self.protect(offset, len, MprotectFlags::READ)
    }

    /// Fills the page tables for a range about to be read; worth it for large ranges only.
    ///
    /// # Errors
    /// `OutOfBounds`. That a kernel cannot do it is no error.
    pub fn populate_read(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        check_range("the arena", self.len, offset, len)?;
        if POPULATE_BYTES_MIN <= len {
            let start = offset - offset % self.page_bytes;
            let _ = self.advise(start, offset + len - start, Advice::LinuxPopulateRead);
        }
        Ok(())
    }

    /// The bytes of a sealed range.
    ///
    /// # Errors
    /// `OutOfBounds`, or `WriteUnderway` if a slot of this process covers some of it.
    pub fn read(&self, offset: u64, len: u64) -> Result<&[u8], StoreError> {
        check_range("the arena", self.len, offset, len)?;
        if self.slot_count.load(Ordering::Acquire) != 0 && lock(&self.slots).overlaps(offset, offset + len) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        // SAFETY: in bounds of the mapping; bytes outside live slots are not written (see the header).
        Ok(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset as usize), len as usize) })
    }

    /// The bytes of a sealed range, together with the mapping they lie in.
    ///
    /// # Errors
    /// As [`ArenaMap::read`].
    pub fn slice(self: &Arc<Self>, offset: u64, len: u64) -> Result<ArenaSlice, StoreError> {
        self.read(offset, len)?;
        Ok(ArenaSlice { map: Arc::clone(self), offset, len })
    }

    /// Exclusive access to a granted range, until the slot is dropped.
    ///
    /// # Errors
    /// `OutOfBounds`, `NotGranted`, or `WriteUnderway` if another slot covers some of it.
    pub fn write(self: &Arc<Self>, offset: u64, len: u64) -> Result<WriteSlot, StoreError> {
        check_range("the arena", self.len, offset, len)?;
        let end = offset + len;
        let grants = match &self.writable {
            Writable::Whole => None,
            Writable::Granted(grants) => Some(lock(grants)),
        };
        if grants.as_ref().is_some_and(|g| !g.contains(offset, end)) {
            return Err(StoreError::NotGranted { offset, len });
        }
        // Still under the lock of the grants, so that `retire` sees the slot or the slot sees it retired.
        let mut slots = lock(&self.slots);
        if slots.overlaps(offset, end) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        slots.insert(offset, end);
        self.slot_count.fetch_add(1, Ordering::AcqRel);
        Ok(WriteSlot { map: Arc::clone(self), offset, len })
    }

    /// Bytes of the arena.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never true: an empty arena cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of a page: ranges are granted in multiples of it.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn check_pages(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        check_range("the arena", self.len, offset, len)?;
        if !(offset | len).is_multiple_of(self.page_bytes) {
            return Err(StoreError::Misaligned { offset, len, align: self.page_bytes });
        }
        Ok(())
    }

    fn protect(&self, offset: u64, len: u64, flags: MprotectFlags) -> Result<(), StoreError> {
        // SAFETY: whole pages of our own mapping (checked by the caller); readable before and after, so no
        // reference to them becomes invalid, and no slot covers what turns read-only.
        unsafe { mprotect(self.base.as_ptr().add(offset as usize).cast(), len as usize, flags) }
            .map_err(|cause| StoreError::system("change the protection of a range", cause))
    }

    pub(crate) fn advise(&self, offset: u64, len: u64, advice: Advice) -> rustix::io::Result<()> {
        debug_assert!(
            matches!(advice, Advice::LinuxHugepage | Advice::LinuxPopulateRead | Advice::LinuxPopulateWrite),
            "only advice that leaves the contents alone"
        );
        // SAFETY: within our own mapping; none of these changes what the memory holds.
        unsafe { madvise(self.base.as_ptr().add(offset as usize).cast(), len as usize, advice) }
    }
}

impl Drop for ArenaMap {
    fn drop(&mut self) {
        // SAFETY: this value mapped exactly these bytes; slots and slices hold an `Arc` of it and borrowed reads its
        // lifetime, so nothing points into them any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len as usize) };
    }
}

/// Sealed bytes of the arena, kept mapped.
#[derive(Clone)]
pub struct ArenaSlice {
    map: Arc<ArenaMap>,
    offset: u64,
    len: u64,
}

impl ArenaSlice {
    /// Where the bytes lie in the arena.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Deref for ArenaSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: bounds were checked when the slice was made and a mapping never shrinks; the bytes are sealed, and the
        // layer above gives them to no writer while it holds the slice.
        unsafe {
            std::slice::from_raw_parts(self.map.base.as_ptr().add(self.offset as usize), self.len as usize)
        }
    }
}

impl AsRef<[u8]> for ArenaSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Exclusive access to bytes of the arena that are not sealed yet.
pub struct WriteSlot {
    map: Arc<ArenaMap>,
    offset: u64,
    len: u64,
}

impl WriteSlot {
    /// Where the bytes lie in the arena.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Deref for WriteSlot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: bounds were checked when the slot was made; `slots` keeps other slots and reads away.
        unsafe {
            std::slice::from_raw_parts(self.map.base.as_ptr().add(self.offset as usize), self.len as usize)
        }
    }
}

impl DerefMut for WriteSlot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the range is writable: granted, and not to be retired while the slot lives.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.map.base.as_ptr().add(self.offset as usize),
                self.len as usize,
            )
        }
    }
}

impl Drop for WriteSlot {
    fn drop(&mut self) {
        lock(&self.map.slots).remove(self.offset, self.offset + self.len);
        self.map.slot_count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The sets stay sound whatever their holder did, so a poisoned lock is taken as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
