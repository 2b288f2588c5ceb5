//! A segment file and its device: the only file of this module that reads and writes.
//!
//! I/O is direct if the file system supports it (it doubles the speed of a disk and leaves the page cache to
//! others), else buffered. A probe per directory finds out which, and the alignment of memory that it needs.

use super::header::ALIGN;
use crate::huge_pages::{huge_pages_available, private_huge_pages_available};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Number of tries of a failing read.
const READ_TRIES: u32 = 3;

/// Features of a directory's device, and its rate limit.
pub(crate) struct Device {
    direct: bool,
    /// Whether requests from buffers can be larger than from the arena, because only private memory has huge
    /// pages.
    buffers_pay: bool,
    memory_align: usize,
    pacer: Option<Mutex<Pacer>>,
    faults: Option<Arc<dyn Faults>>,
}

/// The smallest unit of direct I/O. A buffer of the pool would do as well, but would stay in the allocator: 6
/// MB of an idle node.
#[repr(align(4096))]
struct AlignedPage([u8; ALIGN]);

const _: () = assert!(align_of::<AlignedPage>() == ALIGN, "a page is aligned to less than direct I/O needs");

/// Injected errors of operations, for faults that no test machine can produce on demand.
pub(crate) trait Faults: Send + Sync {
    /// The error that this operation is to fail with.
    fn before(&self, operation: Operation, offset: u64) -> Option<io::Error>;
}

/// An operation on a segment file, or the start of a thread for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Sync,
    Thread,
    Write,
}

/// One segment file. It stays open as long as it has readers, even when its name is gone.
pub(crate) struct SegmentFile {
    file: File,
    name: String,
    path: PathBuf,
    device: Arc<Device>,
    is_freed_at_end: AtomicBool,
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if *self.is_freed_at_end.get_mut() {
            // A child process that was forked meanwhile has the file open as well, and would keep its space.
            let _ = rustix::fs::ftruncate(&self.file, 0);
        }
    }
}

impl Device {
    /// Finds out the features of files of `dir`, with a temporary file.
    pub(crate) fn probe(
        dir: BorrowedFd<'_>,
        bytes_per_s_max: Option<u64>,
        faults: Option<Arc<dyn Faults>>,
    ) -> io::Result<Device> {
        let pacer = bytes_per_s_max.map(|bytes_per_s| Mutex::new(Pacer::new(bytes_per_s)));
        let mut device = Device { direct: false, buffers_pay: false, memory_align: 1, pacer, faults };
        match open_new(dir, "probe", true) {
            Ok(file) => {
                rustix::fs::unlinkat(dir, "probe", AtFlags::empty())?;
                let page = Box::new(AlignedPage([0; ALIGN]));
                // A full disk tells nothing about direct writes; the directory is then used without them.
                if file.write_at(&page.0, 0).is_ok_and(|len| len == ALIGN) {
                    device.direct = true;
                    device.buffers_pay = private_huge_pages_available() && !huge_pages_available();
                    device.memory_align = memory_align(&file);
                }
            }
            // A file system that refuses direct access may still have made the file.
            Err(Errno::INVAL) => {
                let _ = rustix::fs::unlinkat(dir, "probe", AtFlags::empty());
            }
            Err(cause) => return Err(cause.into()),
        }
        Ok(device)
    }

    /// Whether I/O bypasses the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether whole blocks can and should be read and written directly in this memory, without a buffer.
    pub(crate) fn takes(&self, memory: &[u8]) -> bool {
        !self.buffers_pay
            && memory.as_ptr().addr().is_multiple_of(self.memory_align)
            && memory.len().is_multiple_of(ALIGN)
    }

    /// The injected error of an operation, if there is one.
    pub(crate) fn fault(&self, operation: Operation, offset: u64) -> io::Result<()> {
        self.faults.as_ref().and_then(|faults| faults.before(operation, offset)).map_or(Ok(()), Err)
    }

    fn pace(&self, bytes: usize) {
        let Some(pacer) = &self.pacer else { return };
        let wait = pacer.lock().unwrap_or_else(PoisonError::into_inner).delay(Instant::now(), bytes);
        thread::sleep(wait);
    }
}

impl SegmentFile {
    /// Makes a file of this name, which must not exist.
    pub(crate) fn create(
        dir: BorrowedFd<'_>,
        name: String,
        path: PathBuf,
        device: &Arc<Device>,
    ) -> io::Result<SegmentFile> {
        let file = open_new(dir, &name, device.direct)?;
        let device = Arc::clone(device);
        Ok(SegmentFile { file, name, path, device, is_freed_at_end: AtomicBool::new(false) })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Whether the file's name, or the directory around it, was removed.
    pub(crate) fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Writes the concatenation of `parts`.
    pub(crate) fn write_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        let wanted_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = &mut slices[..];
        let mut at = offset;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            self.device.fault(Operation::Write, at)?;
            let mut written = match rustix::io::pwritev(&self.file, rest, at) {
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(cause) => return Err(cause.into()),
            };
            self.device.pace(written);
            if self.device.direct {
                // The next write must be aligned again, so bytes behind the last whole page are written
                // twice.
                written -= written % ALIGN;
            }
            if written == 0 {
                // The disk took a part of a page: it is full. The next write would report that, if it were
                // aligned.
                return Err(Errno::NOSPC.into());
            }
            at += written as u64;
            IoSlice::advance_slices(&mut rest, written);
        }
        assert_eq!(at - offset, wanted_bytes, "a write has ended before its end");
        Ok(())
    }

    /// Fills `parts` in order and returns the number of bytes read.
    pub(crate) fn read_at(&self, parts: &mut [&mut [u8]], offset: u64) -> io::Result<u64> {
        let wanted_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut slices: Vec<IoSliceMut<'_>> = parts.iter_mut().map(|part| IoSliceMut::new(part)).collect();
        let mut rest = &mut slices[..];
        let mut at = offset;
        let mut tries = 0;
        IoSliceMut::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let read = self.device.fault(Operation::Read, at);
            let read = read.and_then(|()| match rustix::io::preadv(&self.file, rest, at) {
                Err(Errno::INTR) => Ok(None),
                read => Ok(Some(read?)),
            });
            match read {
                Ok(Some(0)) => break,
                Ok(Some(len)) => {
                    self.device.pace(len);
                    at += len as u64;
                    if self.device.direct && !len.is_multiple_of(ALIGN) {
                        // Only the end of a file cuts a direct read short of a page.
                        break;
                    }
                    IoSliceMut::advance_slices(&mut rest, len);
                }
                Ok(None) => {}
                Err(cause) => {
                    tries += 1;
                    if READ_TRIES <= tries {
                        return Err(cause);
                    }
                }
            }
        }
        assert!(at - offset <= wanted_bytes, "more was read than there is room for");
        Ok(at - offset)
    }

    /// Forces a buffered write to disk, so that an error shows while the object is still in memory, and frees
    /// the page cache.
    pub(crate) fn settle(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if self.device.direct {
            return Ok(());
        }
        self.device.fault(Operation::Sync, offset)?;
        rustix::fs::fdatasync(&self.file)?;
        let _ = rustix::fs::fadvise(
            &self.file,
            offset,
            std::num::NonZeroU64::new(bytes),
            rustix::fs::Advice::DontNeed,
        );
        Ok(())
    }

    /// Frees the space of the file, whose name is gone, with its last reader of this process.
    pub(crate) fn free_at_end(&self) {
        self.is_freed_at_end.store(true, Ordering::Relaxed);
    }

    /// Removes a failed write from the end of the file.
    pub(crate) fn truncate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.file, len)?)
    }

    /// Frees the space of a range.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, bytes)?)
    }
}

/// Keeps a device below a rate: every transfer waits until the earlier ones would be done at this rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    bytes_per_s: u64,
    free_at: Option<Instant>,
}

impl Pacer {
    pub(crate) fn new(bytes_per_s: u64) -> Pacer {
        Pacer { bytes_per_s: bytes_per_s.max(1), free_at: None }
    }

    /// Time that the caller has to wait after it moved `bytes` until `now`.
    pub(crate) fn delay(&mut self, now: Instant, bytes: usize) -> Duration {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        // A pause does not earn a burst.
        let start = self.free_at.map_or(now, |free_at| free_at.max(now));
        self.free_at = Some(start + cost);
        (start + cost).saturating_duration_since(now)
    }
}

fn open_new(dir: BorrowedFd<'_>, name: &str, direct: bool) -> Result<File, Errno> {
    // EXCL and NOFOLLOW: never open a file, device or link that another process put there.
    let mut flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    flags.set(OFlags::DIRECT, direct);
    rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Alignment of memory that direct access needs. The arena aligns objects to 64 bytes, which many devices
/// accept.
fn memory_align(file: &File) -> usize {
    let statx = rustix::fs::statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match statx {
        Ok(statx) if statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            match statx.stx_dio_mem_align as usize {
                0 => ALIGN,
                align => align.min(ALIGN),
            }
        }
        _ => ALIGN,
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pacer_spreads_transfers_and_gives_no_burst_after_a_pause() {
        let mut pacer = Pacer::new(1000);
        let start = Instant::now();
        assert_eq!(pacer.delay(start, 500), Duration::from_millis(500));
        assert_eq!(pacer.delay(start, 500), Duration::from_secs(1));
        assert_eq!(pacer.delay(start + Duration::from_secs(9), 100), Duration::from_millis(100));
    }
}
