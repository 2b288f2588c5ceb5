//! The node's end of the arena: the file behind all object bytes.
//!
//! The arena is a memfd: it has no name that could leak, dies with its last user, and is sealed against shrinking
//! and growing, so that no process can make another one's mapping fault. Clients receive the descriptor over the
//! local socket and map it with [`ArenaMap::from_fd`].
//!
//! A page exists once it was touched; whoever writes makes it ([`ArenaMap::make_pages`]). Pages of freed ranges are warm
//! and are better used again; [`Arena::punch`] gives them back to the system when the node needs memory more than
//! speed.
//!
//! Huge pages are used where the machine grants them to shared memory on advice; where not, nothing is different
//! but speed.

use crate::error::{StoreError, check_range};
use crate::map::{ArenaMap, PLACE};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// Sizes of arenas are rounded up to this: one huge page.
pub const ARENA_UNIT_BYTES: u64 = 2 << 20;
/// Largest arena: a process maps it twice, and has 2^47 bytes of addresses.
pub const ARENA_BYTES_MAX: u64 = 1 << 45;

const SHMEM_HUGE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
const PRIVATE_HUGE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The memory that object bytes live in.
pub struct Arena {
    fd: OwnedFd,
    map: Arc<ArenaMap>,
}

impl Arena {
    /// Makes an arena of `bytes`, rounded up to [`ARENA_UNIT_BYTES`]; no page of it exists yet.
    ///
    /// # Errors
    /// `BadSize` if it is empty or too large, `System` if the system has no such files or no address space.
    pub fn create(bytes: u64) -> Result<Arena, StoreError> {
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
        let map = Arc::new(ArenaMap::whole(&fd, len)?);
        Ok(Arena { fd, map })
    }

    /// Gives the whole pages of a range back to the system; their contents become zeros.
    ///
    /// Only for ranges that nobody reads or writes.
    ///
    /// # Errors
    /// `OutOfBounds`, or `System` if the system refuses.
    pub fn punch(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        check_range(PLACE, self.len(), offset, len)?;
        let page_bytes = self.map.page_bytes();
        let start = offset.next_multiple_of(page_bytes);
        let end = (offset + len) / page_bytes * page_bytes;
        if end <= start {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.map.forget_pages(start, end);
        loop {
            match fallocate(&self.fd, flags, start, end - start) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(cause) => return Err(StoreError::system("give pages of the arena back", cause)),
            }
        }
    }

    /// The descriptor to send to clients.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The node's own mapping, writable throughout; an embedded program uses it as its client mapping too.
    pub fn map(&self) -> &Arc<ArenaMap> {
        &self.map
    }

    /// Bytes of the arena.
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    /// Never true: an empty arena cannot be made.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

/// Whether the machine gives huge pages to shared memory, at least on advice.
pub fn huge_pages_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE
        .get_or_init(|| is_in_mode(SHMEM_HUGE_FILE, &["[always]", "[within_size]", "[advise]", "[force]"]))
}

/// Whether the machine gives huge pages to a process's own memory, at least on advice.
pub(crate) fn private_huge_pages_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| is_in_mode(PRIVATE_HUGE_FILE, &["[always]", "[madvise]"]))
}

fn is_in_mode(file: &str, modes: &[&str]) -> bool {
    fs::read_to_string(file).is_ok_and(|text| modes.iter().any(|mode| text.contains(mode)))
}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
