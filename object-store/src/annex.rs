//! The annex: a file on disk behind values that are larger than the memory of the arena.
//!
//! The file is in a spill directory and has no name from the start (or loses its name as soon as it is open).
//! It is sparse: its length is its capacity, and it has blocks only for the bytes in use. It is freed when
//! the last process that has it open ends, for any reason.
//!
//! A file on disk cannot be sealed, and a store to a page without a disk block ends the process with SIGBUS.
//! So blocks are allocated before a range is granted, and freed when the range is free again.
//! `AnnexFile::create` checks whether the file system can do that. The blocks count against the quota of
//! the directory, together with its other files.

use crate::error::{NoSpace, StoreError};
use crate::ranges::RangeSet;
use crate::transfer::ReadAt;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstatvfs, ftruncate, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest annex: it is mapped twice.
pub const ANNEX_BYTES_MAX: u64 = 1 << 40;
/// The length of an annex is a multiple of this.
pub const ANNEX_UNIT_BYTES: u64 = 2 << 20;
/// Bytes allocated per system call: few enough that signals do not restart it forever.
const STEP_BYTES: u64 = 64 << 20;
/// Number of bytes with which the features of the file system are probed.
const PROBE_BYTES: u64 = 4096;
const PLACE: &str = "the file for values larger than the store";
/// Temporary name of the file, on file systems that cannot make files without a name.
const NAME: &str = "annex";

/// The quota that the blocks of an annex count against.
pub(crate) trait Quota: Send + Sync {
    /// Adds the given number of bytes to the count.
    fn take(&self, bytes: u64) -> Result<(), NoSpace>;

    /// Subtracts bytes that were returned to the disk.
    fn give(&self, bytes: u64);

    /// Frees space of the directory that is no longer needed, and returns whether there was any.
    fn make_room(&self) -> bool;
}

/// A sparse file without a name.
pub struct AnnexFile {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) len: u64,
}

/// The file, and its ranges that have blocks.
pub(crate) struct Blocks {
    fd: OwnedFd,
    quota: Box<dyn Quota>,
    /// Ranges that count against the quota: all that have blocks, or are about to.
    counted: Mutex<RangeSet>,
}

impl AnnexFile {
    /// Makes an annex in a directory, of at most `quota_bytes` and at most the free space of the file system.
    /// `quota` counts its blocks.
    ///
    /// # Errors
    /// `BadSize` if there is no room for an annex, `System` if the file system has no sparse files, or cannot
    /// allocate blocks before a write and free them.
    pub(crate) fn create(
        dir: BorrowedFd<'_>,
        quota_bytes: u64,
        quota: Box<dyn Quota>,
    ) -> Result<AnnexFile, StoreError> {
        let system = fstatvfs(dir).map_err(|cause| StoreError::system("look at the file system", cause))?;
        let file_bytes_max = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        let all = system.f_blocks.saturating_mul(system.f_frsize);
        let bytes = quota_bytes.min(all).min(file_bytes_max).min(ANNEX_BYTES_MAX);
        let len = bytes / ANNEX_UNIT_BYTES * ANNEX_UNIT_BYTES;
        assert!(len <= quota_bytes, "an annex above its quota");
        if len == 0 {
            let (min_bytes, max_bytes) = (ANNEX_UNIT_BYTES, ANNEX_BYTES_MAX);
            return Err(StoreError::BadSize { what: "an annex", bytes, min_bytes, max_bytes });
        }
        let fd = open_nameless(dir).map_err(|cause| StoreError::system("make the annex", cause))?;
        ftruncate(&fd, len).map_err(|cause| StoreError::system("size the annex", cause))?;
        match allocate(fd.as_fd(), 0, PROBE_BYTES) {
            // A full disk may have room later.
            Ok(()) | Err(StoreError::NoSpace(_)) => {}
            Err(error) => return Err(error),
        }
        punch(fd.as_fd(), 0, PROBE_BYTES).map_err(|cause| StoreError::system("free blocks", cause))?;
        Ok(AnnexFile { blocks: Arc::new(Blocks { fd, quota, counted: Mutex::default() }), len })
    }

    /// Capacity in bytes of all segments together.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never true: an empty one cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A range of an annex, read from the file instead of through a mapping. So a disk error is returned as an
/// error instead of a SIGBUS.
pub struct AnnexReader {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl ReadAt for AnnexReader {
    fn total_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        assert!(offset + target.len() as u64 <= self.len, "a value is read past its end");
        let mut at = self.offset + offset;
        let mut rest = target;
        while !rest.is_empty() {
            match rustix::io::pread(self.blocks.fd(), &mut *rest, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    assert!(count <= rest.len(), "more was read than there is room for");
                    at += count as u64;
                    rest = &mut rest[count..];
                }
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }
}

impl Blocks {
    /// The file.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Allocates the missing blocks of a range. After an error the range may have some blocks, and counts
    /// against the quota until it is [given back](Blocks::punch).
    ///
    /// # Errors
    /// `NoSpace` if the quota, the disk or the user's quota of the disk is full; `System` for other reasons.
    pub(crate) fn allocate(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.count(offset, offset + len)?;
        match allocate(self.fd(), offset, len) {
            Err(StoreError::NoSpace(_)) if self.quota.make_room() => allocate(self.fd(), offset, len),
            outcome => outcome,
        }
    }

    /// Frees the whole blocks of a range; their contents become zeros.
    pub(crate) fn punch(&self, offset: u64, len: u64) -> rustix::io::Result<()> {
        punch(self.fd(), offset, len)?;
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = counted.bytes_within(offset, offset + len);
        counted.remove(offset, offset + len);
        assert!(!counted.overlaps(offset, offset + len), "blocks that are given back still count");
        self.quota.give(bytes);
        Ok(())
    }

    /// Counts the bytes of a range that are not counted yet. The lock is held meanwhile, so that no two
    /// threads count the same bytes.
    fn count(&self, start: u64, end: u64) -> Result<(), NoSpace> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(start <= end, "range {start}..{end} is reversed");
        let counted_bytes = counted.bytes_within(start, end);
        assert!(counted_bytes <= end - start, "a range counts more bytes than it has");
        let bytes = end - start - counted_bytes;
        if 0 < bytes {
            self.quota.take(bytes)?;
            counted.insert(start, end);
        }
        Ok(())
    }
}

fn open_nameless(dir: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(dir, ".", flags | OFlags::TMPFILE, mode) {
        // File systems and kernels without such files return these errors.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        outcome => return outcome,
    }
    let fd = openat(dir, NAME, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
    unlinkat(dir, NAME, AtFlags::empty())?;
    Ok(fd)
}

fn allocate(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), StoreError> {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let step_bytes = STEP_BYTES.min(end - at);
        match fallocate(fd, FallocateFlags::empty(), at, step_bytes) {
            Ok(()) => at += step_bytes,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::NOSPC | Errno::DQUOT) => return Err(no_space(fd, end - at)),
            Err(cause) => return Err(StoreError::system("make blocks for a large value", cause)),
        }
    }
    Ok(())
}

/// Frees whole pages or blocks of a file; their contents become zeros.
pub(crate) fn punch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> rustix::io::Result<()> {
    loop {
        match fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len) {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// The error of a full disk.
pub(crate) fn no_space(fd: BorrowedFd<'_>, needed_bytes: u64) -> StoreError {
    let free = fstatvfs(fd).map_or(0, |system| system.f_bavail.saturating_mul(system.f_frsize));
    NoSpace { needed_bytes, available_bytes: free, place: PLACE }.into()
}
