//! The node's end of the arena: the file behind all object bytes.
//!
//! The arena is a memfd: it has no name that could leak, dies with its last user, and is sealed against
//! shrinking and growing, so that no process can make another one's mapping fault. Clients receive the
//! descriptor over the local socket and map it with [`ArenaMap::from_fd`].
//!
//! A page exists once it was touched; the writer makes it ([`ArenaMap::make_pages`]). Pages of freed ranges
//! exist already, so reusing them is faster; [`Arena::punch`] returns them to the system when the node needs
//! memory more than speed.
//!
//! Values that are larger than this memory lie in the *annex*, a file on disk ([`crate::annex`]) that is
//! mapped behind it: an offset from [`Arena::len`] on means the annex.
//!
//! Huge pages are used if the machine grants them to shared memory on advice. Without them the arena is only
//! slower.

use crate::annex::{self, AnnexFile, AnnexReader, Blocks};
use crate::error::StoreError;
pub use crate::huge_pages::ARENA_UNIT_BYTES;
use crate::map::ArenaMap;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Largest arena: a process maps it twice, and has 2^47 bytes of addresses.
pub const ARENA_BYTES_MAX: u64 = 1 << 45;

/// The memory for object bytes.
pub struct Arena {
    fd: OwnedFd,
    annex: Option<Arc<Blocks>>,
    map: Arc<ArenaMap>,
}

impl Arena {
    /// Makes an arena of `bytes`, rounded up to [`ARENA_UNIT_BYTES`], without an annex; no page of it exists
    /// yet.
    ///
    /// # Errors
    /// `BadSize` if it is empty or too large, `System` if the system has no memfds or no address space.
    pub fn create(bytes: u64) -> Result<Arena, StoreError> {
        Arena::with_annex(bytes, None)
    }

    /// As [`Arena::create`], with an annex behind the memory.
    ///
    /// # Errors
    /// As [`Arena::create`].
    pub fn with_annex(bytes: u64, annex: Option<AnnexFile>) -> Result<Arena, StoreError> {
        if bytes == 0 || ARENA_BYTES_MAX < bytes {
            let (min_bytes, max_bytes) = (1, ARENA_BYTES_MAX);
            return Err(StoreError::BadSize { what: "an arena", bytes, min_bytes, max_bytes });
        }
        let len = bytes.next_multiple_of(ARENA_UNIT_BYTES);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("tharsis-arena", flags)
            .map_err(|cause| StoreError::system("make the arena", cause))?;
        ftruncate(&fd, len).map_err(|cause| StoreError::system("size the arena", cause))?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|cause| StoreError::system("seal the arena", cause))?;
        let map = Arc::new(ArenaMap::whole(&fd, len, annex.as_ref())?);
        assert!(len <= map.len(), "an arena is mapped in part");
        Ok(Arena { fd, annex: annex.map(|file| file.blocks), map })
    }

    /// Returns the whole pages of a range to the system; their contents become zeros.
    ///
    /// Only for ranges that nobody reads or writes.
    ///
    /// # Errors
    /// `OutOfBounds`, or `System` if the system refuses.
    pub fn punch(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.map.check(offset, len)?;
        let page_bytes = self.map.page_bytes();
        let start = offset.next_multiple_of(page_bytes);
        let end = (offset + len) / page_bytes * page_bytes;
        if end <= start {
            return Ok(());
        }
        assert!(offset <= start && end <= offset + len, "pages are given back that were not asked for");
        self.map.forget_pages(start, end);
        let punched = match self.in_annex(start) {
            Some((blocks, at)) => blocks.punch(at, end - start),
            None => annex::punch(self.fd(), start, end - start),
        };
        punched.map_err(|cause| StoreError::system("give pages of the arena back", cause))
    }

    /// Allocates the blocks of a range of the annex; the range must not be granted before. Does nothing for a
    /// range in memory.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full or its quota reached, `System` if it refuses for another reason,
    /// `OutOfBounds`.
    pub fn allocate(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.map.check(offset, len)?;
        self.in_annex(offset).map_or(Ok(()), |(blocks, at)| blocks.allocate(at, len))
    }

    /// The file that contains an arena offset, and the offset in that file.
    pub fn file_at(&self, offset: u64) -> (BorrowedFd<'_>, u64) {
        self.in_annex(offset).map_or((self.fd(), offset), |(blocks, at)| (blocks.fd(), at))
    }

    /// A reader of a range that is in the annex; `None` for memory. Through the map, a disk error would end
    /// the node.
    pub fn disk_reader(&self, offset: u64, len: u64) -> Option<AnnexReader> {
        self.map.check(offset, len).ok()?;
        let (blocks, offset) = self.in_annex(offset)?;
        Some(AnnexReader { blocks: Arc::clone(blocks), offset, len })
    }

    /// The annex, and the offset in it, if an arena offset is in the annex.
    fn in_annex(&self, offset: u64) -> Option<(&Arc<Blocks>, u64)> {
        let at = offset.checked_sub(self.len())?;
        self.annex.as_ref().map(|blocks| (blocks, at))
    }

    /// The descriptor to send to clients.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The descriptor of the annex, for clients too.
    pub fn annex_fd(&self) -> Option<BorrowedFd<'_>> {
        self.annex.as_ref().map(|blocks| blocks.fd())
    }

    /// The node's own mapping, writable throughout; an embedded program uses it as its client mapping too.
    pub fn map(&self) -> &Arc<ArenaMap> {
        &self.map
    }

    /// Bytes of the memory, without the annex.
    pub fn len(&self) -> u64 {
        self.map.memory_len()
    }

    /// Bytes of the annex; 0 without one.
    pub fn annex_len(&self) -> u64 {
        self.map.len() - self.map.memory_len()
    }

    /// Never true: an empty arena cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(not(models))]
#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
