//! A process's mapping of the arena: readable everywhere, writable in granted ranges.
//!
//! The arena is mapped twice. All reads go through a read-only mapping, so a holder of an old address can
//! damage nothing. The writable mapping is reached only through a [`WriteSlot`]. A slot is given out only
//! within ranges that the node granted (in the node's own process, and so in an embedded program, anywhere).
//! The refused alternative is one mapping whose protection follows the grants. It would cost more than the
//! copy itself: a change of protection of a gigabyte takes 20 to 30 ms each way, and then its page tables
//! must be filled again, 100 ms.
//!
//! *Access.* Bytes are written by the holder of a [`WriteSlot`] before they are sealed, and read by anyone
//! after; the layers above give a range to a new writer only when it has no readers left. This module checks
//! all that one process can check: bounds, grants, that two slots never overlap, and that nothing is read
//! through this map while a slot covers it. It cannot check other processes. If one breaks the rule, a reader
//! gets wrong bytes, which checksums find, and never an address outside the arena.
//!
//! *Pages.* The file is sealed against shrinking (checked on opening), so an address in bounds always has a
//! file page behind it, or gets one. A thread that is about to write many bytes makes the pages first
//! ([`ArenaMap::make_pages`]). This is three times as fast as one fault per page, and exhaustion is an error
//! instead of SIGBUS. A map remembers the pages it made; they stay when a range is granted again. If the node
//! gave them back to the system meanwhile, writing only takes faults again.
//!
//! *Forks* of the process keep the mapping to read, and do not get the one to write: what they write would be
//! in objects of their parent.
//!
//! *The annex*, where there is one, is mapped right behind the memory, so that an offset is an address in
//! both. No range is in both. It is a file on disk and cannot be sealed; instead, it is never shrunk, and
//! only processes of this node have it open. The blocks of a range are allocated before it is granted.

#![allow(unsafe_code)]

use crate::annex::{AnnexFile, Blocks, no_space};
use crate::error::{NoSpace, StoreError, check_range};
use crate::forks::Withheld;
use crate::grants::Grants;
use crate::huge_pages::{ARENA_UNIT_BYTES, huge_pages_available};
use crate::ranges::RangeSet;
use rustix::fs::{FallocateFlags, SealFlags, SeekFrom, fallocate, fcntl_get_seals, fstat};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of pages made per system call: few enough that signals do not restart it forever.
const STEP_BYTES: u64 = 64 << 20;
const PLACE: &str = "the object arena";

/// Two mappings of a whole arena: one to read, one to write.
pub struct ArenaMap {
    fd: OwnedFd,
    annex: Option<OwnedFd>,
    /// Allocates blocks of the annex. `None` in a client, which is granted ranges that already have blocks.
    blocks: Option<Arc<Blocks>>,
    to_read: NonNull<u8>,
    to_write: NonNull<u8>,
    /// Bytes of memory; the annex is mapped behind them.
    memory_len: u64,
    len: u64,
    page_bytes: u64,
    /// Ranges that may be written; `None` if all of it.
    grants: Option<Mutex<Grants>>,
    /// Ranges whose pages this map made.
    made: Mutex<RangeSet>,
    /// Ranges under a live slot.
    slots: Mutex<RangeSet>,
    /// Number of live slots; lets a reader skip the lock when there are none.
    slot_count: AtomicUsize,
    /// Of the mapping to write, which it ends before.
    withheld: Option<Withheld>,
}

// SAFETY: plain memory, valid from any thread while the value lives; the header argues the rules of access.
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
        ArenaMap::from_fds(fd, len, None)
    }

    /// As [`ArenaMap::from_fd`], with an annex of the given number of bytes behind the memory.
    ///
    /// # Errors
    /// As [`ArenaMap::from_fd`].
    pub fn from_fds(
        fd: impl AsFd,
        len: u64,
        annex: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<ArenaMap, StoreError> {
        let seals = fcntl_get_seals(&fd).map_err(|e| StoreError::system("read the arena's seals", e))?;
        if !seals.contains(SealFlags::SHRINK) {
            let (found, expected) = (u64::from(seals.bits()), u64::from(SealFlags::SHRINK.bits()));
            return Err(StoreError::Mismatch { what: "the seals of an arena", found, expected });
        }
        check_size(fd.as_fd(), len, "the size of an arena")?;
        if let Some((fd, len)) = annex {
            check_size(fd, len, "the size of an annex")?;
        }
        ArenaMap::map(fd.as_fd(), len, annex, Some(Mutex::default()))
    }

    /// Maps the arena that this process made, writable throughout.
    pub(crate) fn whole(fd: impl AsFd, len: u64, annex: Option<&AnnexFile>) -> Result<ArenaMap, StoreError> {
        let mut map = ArenaMap::map(fd.as_fd(), len, annex.map(|file| (file.blocks.fd(), file.len)), None)?;
        map.blocks = annex.map(|file| Arc::clone(&file.blocks));
        Ok(map)
    }

    fn map(
        fd: BorrowedFd<'_>,
        memory_len: u64,
        annex: Option<(BorrowedFd<'_>, u64)>,
        grants: Option<Mutex<Grants>>,
    ) -> Result<ArenaMap, StoreError> {
        let keep = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|e| StoreError::system("keep the arena open", e))
        };
        let parts: Vec<_> = std::iter::once((fd, memory_len)).chain(annex).collect();
        let (fd, annex) = (keep(fd)?, annex.map(|(fd, _)| keep(fd)).transpose()?);
        let len = parts.iter().map(|(_, len)| len).sum();
        let to_read = map_parts(&parts, ProtFlags::READ)?;
        let to_write = map_parts(&parts, ProtFlags::READ | ProtFlags::WRITE).inspect_err(|_| {
            // SAFETY: made above, and nothing points into it yet.
            unsafe { unmap(to_read, len) };
        })?;
        assert!(memory_len <= len, "a map is shorter than its memory");
        // They may go on reading values.
        let withheld = Withheld::new(to_write, len as usize).inspect_err(|_| {
            // SAFETY: made above, and nothing points into them yet.
            unsafe {
                unmap(to_read, len);
                unmap(to_write, len);
            }
        })?;
        let map = ArenaMap {
            fd,
            annex,
            blocks: None,
            to_read,
            to_write,
            memory_len,
            len,
            page_bytes: rustix::param::page_size() as u64,
            grants,
            made: Mutex::default(),
            slots: Mutex::default(),
            slot_count: AtomicUsize::new(0),
            withheld: Some(withheld),
        };
        if huge_pages_available() {
            // Only advice: if it fails, the pages are small.
            let _ = map.advise(map.to_read, 0, memory_len, Advice::LinuxHugepage);
            let _ = map.advise(map.to_write, 0, memory_len, Advice::LinuxHugepage);
        }
        Ok(map)
    }

    /// Lets this client write to a page-aligned range.
    ///
    /// # Errors
    /// `OutOfBounds`, `Misaligned`.
    pub fn grant(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check_pages(offset, len)?;
        if let Some(grants) = &self.grants {
            lock(grants).insert(offset, offset + len);
        }
        Ok(())
    }

    /// Ends a grant, or a part of it. Bytes that another grant has as well stay writable.
    ///
    /// # Errors
    /// `WriteUnderway` if a slot of this process covers bytes that would not be writable any more, and as
    /// [`ArenaMap::grant`].
    pub fn retire(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check_pages(offset, len)?;
        let Some(grants) = &self.grants else { return Ok(()) };
        let mut grants = lock(grants);
        let slots = lock(&self.slots);
        if grants.lost(offset, offset + len).iter().any(|(start, end)| slots.overlaps(start, end)) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        grants.remove(offset, offset + len);
        Ok(())
    }

    /// Makes the pages of a range that is about to be written, unless this map has made them before.
    ///
    /// # Errors
    /// [`NoSpace`] if the system has no more memory, or the disk no more blocks for the annex; `OutOfBounds`.
    pub fn make_pages(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check(offset, len)?;
        let end = (offset + len).next_multiple_of(self.page_bytes).min(self.len);
        let mut at = offset - offset % self.page_bytes;
        if lock(&self.made).contains(at, end) {
            return Ok(());
        }
        if let Some(blocks) = self.blocks.as_ref().filter(|_| self.memory_len <= at) {
            blocks.allocate(at - self.memory_len, end - at)?;
        }
        while at < end {
            let step_bytes = STEP_BYTES.min(end - at);
            match self.make_step(at, step_bytes) {
                Ok(()) => {
                    lock(&self.made).insert(at, at + step_bytes);
                    at += step_bytes;
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FAULT) if self.memory_len <= at => {
                    return Err(no_space(self.file_at(at).0, end - at));
                }
                Err(Errno::NOSPC | Errno::NOMEM | Errno::FAULT) => {
                    let available_bytes = available_memory_bytes();
                    return Err(NoSpace { needed_bytes: end - at, available_bytes, place: PLACE }.into());
                }
                Err(cause) => return Err(StoreError::system("make pages of the arena", cause)),
            }
        }
        assert_eq!(at, end, "pages were made past the range");
        Ok(())
    }

    /// Notes that the pages of a range were returned to the system.
    pub(crate) fn forget_pages(&self, start: u64, end: u64) {
        lock(&self.made).remove(start, end);
    }

    /// The bytes of a sealed range.
    ///
    /// # Errors
    /// `OutOfBounds`, or `WriteUnderway` if a slot of this process covers some of it.
    pub fn read(&self, offset: u64, len: u64) -> Result<&[u8], StoreError> {
        self.check(offset, len)?;
        if self.slot_count.load(Ordering::Acquire) != 0 && lock(&self.slots).overlaps(offset, offset + len) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        // SAFETY: in bounds of the mapping; bytes outside live slots are not written (see the header).
        Ok(unsafe { std::slice::from_raw_parts(self.to_read.as_ptr().add(offset as usize), len as usize) })
    }

    /// The bytes of a sealed range; the slice keeps the mapping.
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
        self.check(offset, len)?;
        let end = offset + len;
        let grants = self.grants.as_ref().map(lock);
        if grants.as_ref().is_some_and(|g| !g.contains(offset, end)) {
            return Err(StoreError::NotGranted { offset, len });
        }
        // The lock of the grants is held, so that `retire` sees the slot, or `write` sees that the grant has
        // ended.
        let mut slots = lock(&self.slots);
        if slots.overlaps(offset, end) {
            return Err(StoreError::WriteUnderway { offset, len });
        }
        slots.insert(offset, end);
        self.slot_count.fetch_add(1, Ordering::AcqRel);
        Ok(WriteSlot { map: Arc::clone(self), offset, len })
    }

    /// Bytes of the arena, the annex included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the arena that are memory.
    pub fn memory_len(&self) -> u64 {
        self.memory_len
    }

    /// Never true: an empty arena cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of a page. Granted ranges are multiples of it.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Checks that a range is inside the memory, or inside the annex.
    pub(crate) fn check(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        let limit_bytes = if offset < self.memory_len { self.memory_len } else { self.len };
        check_range(PLACE, limit_bytes, offset, len)
    }

    /// The file that contains an arena offset, and the offset in that file.
    fn file_at(&self, offset: u64) -> (BorrowedFd<'_>, u64) {
        match &self.annex {
            Some(annex) if self.memory_len <= offset => (annex.as_fd(), offset - self.memory_len),
            _ => (self.fd.as_fd(), offset),
        }
    }

    fn check_pages(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.check(offset, len)?;
        if !(offset | len).is_multiple_of(self.page_bytes) {
            return Err(StoreError::Misaligned { offset, len, align: self.page_bytes });
        }
        Ok(())
    }

    /// Whether a range of the memory has pages already, judged by its first and its last page.
    fn is_written(&self, start: u64, end: u64) -> bool {
        let is_written = |page| rustix::fs::seek(&self.fd, SeekFrom::Data(page)) == Ok(page);
        assert!(start + self.page_bytes <= end, "{start}..{end} is less than a page");
        is_written(start) && is_written(end - self.page_bytes)
    }

    /// Makes the pages of the file first (`fallocate` clears them fastest; huge ones come only through a
    /// mapping), then fills the page tables. Blocks of the annex exist already.
    ///
    /// A range that another process has written has pages already. Mapping them for reading takes a third of
    /// the time: the kernel also maps the neighbouring pages, and in a shared mapping of memory this gives
    /// write access too. A page that is missing all the same is made on this way too, only more slowly.
    fn make_step(&self, offset: u64, len: u64) -> rustix::io::Result<()> {
        let (fd, at) = self.file_at(offset);
        let is_memory = offset < self.memory_len;
        let is_written = is_memory && self.is_written(offset, offset + len);
        if is_memory && !is_written && !huge_pages_available() {
            fallocate(fd, FallocateFlags::empty(), at, len)?;
        }
        let advice = if is_written { Advice::LinuxPopulateRead } else { Advice::LinuxPopulateWrite };
        match self.advise(self.to_write, offset, len, advice) {
            // On a kernel without this advice, the page tables are filled fault by fault.
            Err(Errno::INVAL | Errno::NOSYS) => fallocate(fd, FallocateFlags::empty(), at, len),
            outcome => outcome,
        }
    }

    fn advise(&self, base: NonNull<u8>, offset: u64, len: u64, advice: Advice) -> rustix::io::Result<()> {
        debug_assert!(
            matches!(advice, Advice::LinuxHugepage | Advice::LinuxPopulateRead | Advice::LinuxPopulateWrite),
            "only advice that leaves the contents alone"
        );
        assert!(base == self.to_read || base == self.to_write, "advice is for one of our mappings");
        assert!(offset + len <= self.len, "advice for {len} bytes at {offset} of {}", self.len);
        // SAFETY: within our own mapping; none of these advices changes the contents.
        unsafe { madvise(base.as_ptr().add(offset as usize).cast(), len as usize, advice) }
    }
}

/// Maps files at consecutive addresses, chosen by the kernel and suitable for huge pages.
fn map_parts(parts: &[(BorrowedFd<'_>, u64)], flags: ProtFlags) -> Result<NonNull<u8>, StoreError> {
    let failed = |cause: Errno| StoreError::system("map the arena", cause);
    if let [(fd, len)] = parts {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of this process.
        let base = unsafe { mmap(ptr::null_mut(), *len as usize, flags, MapFlags::SHARED, fd, 0) };
        return not_null(base.map_err(failed)?);
    }
    let len: u64 = parts.iter().map(|(_, len)| len).sum();
    let base = reserve(len).map_err(failed)?;
    let mut at = base;
    for (fd, part_len) in parts {
        // SAFETY: replaces a part of the addresses reserved above, which nothing points into and nothing else
        // uses.
        let mapped =
            unsafe { mmap(at.cast(), *part_len as usize, flags, MapFlags::SHARED | MapFlags::FIXED, fd, 0) };
        if let Err(cause) = mapped {
            // SAFETY: reserved above, and nothing points into it.
            let _ = unsafe { munmap(base.cast(), len as usize) };
            return Err(failed(cause));
        }
        at = at.wrapping_add(*part_len as usize);
    }
    not_null(base.cast())
}

/// Reserves an address range of this many bytes, aligned so that a huge page can begin there.
fn reserve(len: u64) -> rustix::io::Result<*mut u8> {
    let unit = ARENA_UNIT_BYTES as usize;
    let (len, all) = (len as usize, len as usize + unit);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: as for every fresh mapping at an address of the kernel's choice; this one has no memory behind
    // it.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), all, ProtFlags::empty(), flags) }?.cast::<u8>();
    let head = start.addr().next_multiple_of(unit) - start.addr();
    let base = start.wrapping_add(head);
    // SAFETY: both ends of the range that was just reserved, which nothing points into. A length of zero
    // fails without harm.
    unsafe {
        let _ = munmap(start.cast(), head);
        let _ = munmap(base.wrapping_add(len).cast(), unit - head);
    }
    Ok(base)
}

fn not_null(base: *mut std::ffi::c_void) -> Result<NonNull<u8>, StoreError> {
    NonNull::new(base.cast::<u8>())
        .ok_or_else(|| StoreError::system("map the arena", std::io::Error::other("mapped at address 0")))
}

fn check_size(fd: BorrowedFd<'_>, expected: u64, what: &'static str) -> Result<(), StoreError> {
    let found = fstat(fd).map_err(|e| StoreError::system("read the arena's size", e))?.st_size as u64;
    if found == expected && 0 < found { Ok(()) } else { Err(StoreError::Mismatch { what, found, expected }) }
}

/// # Safety
/// `base` is a mapping of `len` bytes that nothing points into any more.
unsafe fn unmap(base: NonNull<u8>, len: u64) {
    // SAFETY: as the caller promises. It fails only if there is no mapping.
    let _ = unsafe { munmap(base.as_ptr().cast(), len as usize) };
}

/// Asks for huge pages behind memory of this process; contents stay the same. If there are none, the pages
/// stay small.
pub(crate) fn prefer_huge_pages(memory: &mut [u8]) {
    let page_bytes = rustix::param::page_size();
    let start = memory.as_ptr().align_offset(page_bytes).min(memory.len());
    let len = (memory.len() - start) / page_bytes * page_bytes;
    let Some(pages) = memory.get_mut(start..start + len).filter(|pages| !pages.is_empty()) else { return };
    // SAFETY: whole pages within memory that is borrowed here; the advice does not change their contents.
    let _ = unsafe { madvise(pages.as_mut_ptr().cast(), pages.len(), Advice::LinuxHugepage) };
}

/// Free memory as the system reports it. Used only in a message.
fn available_memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.freeram as u64).saturating_mul(u64::from(info.mem_unit))
}

impl Drop for ArenaMap {
    fn drop(&mut self) {
        self.withheld = None;
        // SAFETY: this value mapped exactly these bytes; slots and slices hold an `Arc` of it and borrowed
        // reads its lifetime, so nothing points into them any more.
        unsafe {
            unmap(self.to_read, self.len);
            unmap(self.to_write, self.len);
        }
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
    /// Offset of the bytes in the arena.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Deref for ArenaSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: bounds were checked when the slice was made and a mapping never shrinks; the bytes are
        // sealed, and the layer above gives them to no writer while it holds the slice.
        unsafe {
            std::slice::from_raw_parts(self.map.to_read.as_ptr().add(self.offset as usize), self.len as usize)
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
    /// Offset of the bytes in the arena.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The map it lies in.
    pub fn map(&self) -> &Arc<ArenaMap> {
        &self.map
    }
}

impl Deref for WriteSlot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: bounds were checked when the slot was made; `slots` excludes other slots and reads.
        unsafe {
            std::slice::from_raw_parts(
                self.map.to_write.as_ptr().add(self.offset as usize),
                self.len as usize,
            )
        }
    }
}

impl DerefMut for WriteSlot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this mapping is writable.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.map.to_write.as_ptr().add(self.offset as usize),
                self.len as usize,
            )
        }
    }
}

#[cfg(all(test, not(models)))]
impl ArenaMap {
    /// Whether forks of this process have the mapping to read, and the one to write.
    pub(crate) fn is_inherited(&self) -> (bool, bool) {
        let of = |base| crate::forks::is_inherited(base, self.len as usize);
        (of(self.to_read), of(self.to_write))
    }
}

impl Drop for WriteSlot {
    fn drop(&mut self) {
        lock(&self.map.slots).remove(self.offset, self.offset + self.len);
        let slots = self.map.slot_count.fetch_sub(1, Ordering::AcqRel);
        assert!(0 < slots, "a slot ends that was not counted");
    }
}

/// The sets are consistent even after a panic of the holder, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
