//! Mappings that forks of this process do not get.
//!
//! Without a mapping (`MADV_DONTFORK`) a fork has a hole in its place, and the memory that it asks for next
//! may lie there: a write through an address that it has from its parent would then change its own heap, and
//! the end of the mapping's owner would take that away. So the C library calls a handler in each fork, before
//! anything else runs there, which lays pages over the ranges that nobody can touch. A fork by a bare system
//! call has holes; the standard library and all others that fork go through the C library.
//!
//! The handler runs where other threads may have held any lock, so it takes none and allocates nothing: the
//! ranges stand in a list that is never shortened, whose places are used again.
//!
//! Handlers of other libraries run before it, and what they map may lie in a hole. That is theirs: pages are
//! laid around it.

#![allow(unsafe_code)]

use crate::error::StoreError;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap_anonymous, msync, munmap};
use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

/// A mapping that forks do not get, for as long as this lives: it ends before the mapping does.
#[derive(Debug)]
pub(crate) struct Withheld(&'static Range);

/// A place of the list.
#[derive(Debug)]
struct Range {
    is_taken: AtomicBool,
    /// First byte; 0 while there is no range, or not yet.
    base: AtomicUsize,
    len: AtomicUsize,
    /// The place behind this one; fixed once this one is in the list.
    next: AtomicPtr<Range>,
}

static FIRST: AtomicPtr<Range> = AtomicPtr::new(ptr::null_mut());

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    /// POSIX: handlers before a fork, and after it in the parent and in the fork.
    fn pthread_atfork(before: Option<Handler>, parent: Option<Handler>, fork: Option<Handler>) -> c_int;
}

impl Withheld {
    /// Withholds whole pages of a mapping that the caller has just made.
    pub(crate) fn new(base: NonNull<u8>, bytes: usize) -> Result<Withheld, StoreError> {
        static INSTALLED: OnceLock<c_int> = OnceLock::new();
        let failed = |cause| StoreError::system("keep shared memory from forks", cause);
        // SAFETY: the handler does what one may do in a fork of a process with threads.
        let refused = *INSTALLED.get_or_init(|| unsafe { pthread_atfork(None, None, Some(lay_pages)) });
        if refused != 0 {
            return Err(failed(io::Error::from_raw_os_error(refused)));
        }
        // SAFETY: the caller has just made this mapping, and the advice leaves it as it is in this process.
        let advised = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontFork) };
        advised.map_err(|cause| failed(cause.into()))?;
        // A fork from now on lays pages into the hole. In an earlier one nobody has these addresses: the
        // caller is the only one, and its thread is not there.
        let withheld = Withheld(free_place());
        withheld.0.len.store(bytes.next_multiple_of(rustix::param::page_size()), Relaxed);
        withheld.0.base.store(base.as_ptr().expose_provenance(), Release);
        Ok(withheld)
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        // In this order: a fork never finds the range of the next one that has the place.
        self.0.base.store(0, Release);
        self.0.is_taken.store(false, Release);
    }
}

/// A place that nobody else has.
fn free_place() -> &'static Range {
    let mut at = FIRST.load(Acquire);
    // SAFETY: places of the list are never freed.
    while let Some(range) = unsafe { at.as_ref() } {
        if range.is_taken.compare_exchange(false, true, AcqRel, Relaxed).is_ok() {
            return range;
        }
        at = range.next.load(Relaxed);
    }
    let range: &'static Range = Box::leak(Box::new(Range {
        is_taken: AtomicBool::new(true),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let new = ptr::from_ref(range).cast_mut();
    let mut first = FIRST.load(Acquire);
    loop {
        range.next.store(first, Relaxed);
        match FIRST.compare_exchange_weak(first, new, AcqRel, Acquire) {
            Ok(_) => return range,
            Err(other) => first = other,
        }
    }
}

/// Runs in a fork.
unsafe extern "C" fn lay_pages() {
    let mut at = FIRST.load(Acquire);
    // SAFETY: places of the list are never freed.
    while let Some(range) = unsafe { at.as_ref() } {
        // A fork of this fork gets the pages that lie here from now on.
        let (base, len) = (range.base.swap(0, AcqRel), range.len.load(Relaxed));
        if base != 0 {
            lay(base, len);
        }
        at = range.next.load(Relaxed);
    }
}

/// Lays pages that nobody can touch over what is not mapped of some whole pages.
///
/// Each half is tried by itself where something is mapped, unless all of it is. So the steps grow with the
/// number of mappings and with the logarithm of the length, and so does the stack.
fn lay(base: usize, len: usize) {
    match lay_all(base, len) {
        Err(Errno::EXIST) if !is_mapped(base, len) => {
            let page = rustix::param::page_size();
            let half = (len / 2).next_multiple_of(page);
            if half < len {
                lay(base, half);
                lay(base + half, len - half);
            }
        }
        // Without memory for another mapping there are holes, as after a fork by a bare system call.
        Ok(()) | Err(_) => {}
    }
}

/// Lays pages if nothing is mapped there; `EXIST` if something is.
fn lay_all(base: usize, len: usize) -> rustix::io::Result<()> {
    let wanted = ptr::with_exposed_provenance_mut(base);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE;
    // SAFETY: it replaces no mapping. In the fork only the owner of this range has these addresses.
    let laid = unsafe { mmap_anonymous(wanted, len, ProtFlags::empty(), flags) }?;
    if laid == wanted {
        return Ok(());
    }
    // A kernel before 4.17 takes the address for a hint.
    // SAFETY: just made, and nothing points into it.
    let _gone = unsafe { munmap(laid, len) };
    Err(Errno::EXIST)
}

/// Whether all of a range is mapped.
fn is_mapped(base: usize, len: usize) -> bool {
    // SAFETY: this only asks: it writes nothing, and fails if something is not mapped.
    unsafe { msync(ptr::with_exposed_provenance_mut(base), len, MsyncFlags::ASYNC) }.is_ok()
}

/// Whether a fork of this process can read what is mapped here.
///
/// # Panics
/// If other memory of the fork may lie there.
#[cfg(all(test, not(models)))]
pub(crate) fn is_inherited(base: NonNull<u8>, bytes: usize) -> bool {
    use std::os::unix::process::CommandExt;
    /// More pages than fit into any hole of these tests.
    const PAGES: usize = 4_096;
    let at = base.as_ptr().expose_provenance();
    let pipe = io::pipe();
    assert!(pipe.is_ok(), "{pipe:?}");
    let Ok((_reader, writer)) = pipe else { return true };
    let look = move || {
        for _ in 0..PAGES {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: a fresh mapping aliases nothing.
            let page = unsafe { mmap_anonymous(ptr::null_mut(), 1, ProtFlags::empty(), flags) }?;
            if (at..at + bytes).contains(&page.expose_provenance()) {
                return Err(Errno::EXIST.into());
            }
        }
        // SAFETY: only the system reads it, which says so if it cannot.
        let byte = unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(at), 1) };
        rustix::io::write(&writer, byte).map(drop).map_err(io::Error::from)
    };
    let mut command = std::process::Command::new("true");
    // SAFETY: the fork makes system calls alone before it becomes another program.
    unsafe { command.pre_exec(look) };
    match command.status() {
        Ok(_) => true,
        Err(cause) => {
            assert_eq!(cause.raw_os_error(), Some(Errno::FAULT.raw_os_error()), "{cause}");
            false
        }
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// A mapping of some pages, and its place in the list.
    fn mapped(pages: usize) -> (NonNull<u8>, usize, Withheld) {
        let bytes = pages * rustix::param::page_size();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping aliases nothing.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) }.unwrap();
        let base = NonNull::new(base.cast()).unwrap();
        (base, bytes, Withheld::new(base, bytes).unwrap())
    }

    #[test]
    fn other_memory_of_a_fork_does_not_lie_where_its_parent_has_a_mapping() {
        for pages in [1, 2, 64] {
            let (base, bytes, withheld) = mapped(pages);
            assert!(!is_inherited(base, bytes), "{pages} pages");
            drop(withheld);
            // SAFETY: made above, and nothing points into it.
            unsafe { munmap(base.as_ptr().cast(), bytes) }.unwrap();
        }
        let other = vec![0_u8; 3 * 4096];
        let page = NonNull::from(&other[other.as_ptr().align_offset(4096)]);
        assert!(is_inherited(page, 4096), "other memory is");
    }

    /// A page of another handler, which a fork finds in the hole of 64 pages before ours runs.
    #[test]
    fn pages_are_laid_around_what_another_handler_has_mapped() {
        const PAGES: usize = 64;
        let page = rustix::param::page_size();
        let (base, bytes, withheld) = mapped(PAGES);
        let at = base.as_ptr().expose_provenance();
        let range = withheld.0;
        for foreign in [0, 1, 17, PAGES - 1] {
            let other = at + foreign * page;
            let (reader, writer) = io::pipe().unwrap();
            let look = move || {
                // SAFETY: the pages that our handler has laid in this fork, which nothing points into.
                unsafe { munmap(ptr::with_exposed_provenance_mut(at), bytes) }?;
                let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
                let (wanted, read_write) =
                    (ptr::with_exposed_provenance_mut(other), ProtFlags::READ | ProtFlags::WRITE);
                // SAFETY: nothing is mapped there.
                let mapped = unsafe { mmap_anonymous(wanted, page, read_write, flags) }?;
                // SAFETY: mapped just now.
                unsafe { mapped.cast::<u8>().write(7) };
                range.base.store(at, Release);
                // SAFETY: it may run in a fork.
                unsafe { lay_pages() };
                for number in 0..PAGES {
                    // SAFETY: only the system reads it, which says so if it cannot.
                    let there = unsafe {
                        std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(at + number * page), 1)
                    };
                    let is_right = match rustix::io::write(&writer, there) {
                        Ok(_) if number == foreign => {
                            let mut byte = [0];
                            rustix::io::read(&reader, &mut byte)?;
                            byte == [7]
                        }
                        Err(Errno::FAULT) => number != foreign && is_mapped(at + number * page, page),
                        _ => false,
                    };
                    if !is_right {
                        return Err(io::Error::from_raw_os_error(Errno::ILSEQ.raw_os_error()));
                    }
                }
                Ok(())
            };
            let mut command = Command::new("true");
            // SAFETY: the fork makes system calls alone before it becomes another program.
            unsafe { command.pre_exec(look) };
            assert!(command.status().unwrap().success(), "page {foreign}");
        }
        drop(withheld);
        // SAFETY: made above, and nothing points into it.
        unsafe { munmap(base.as_ptr().cast(), bytes) }.unwrap();
    }

    #[test]
    fn places_are_used_again_and_threads_have_different_ones() {
        let all = || {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| scope.spawn(|| (0..16).map(|_| Withheld(free_place())).collect::<Vec<_>>()))
                    .collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let places = |of: &[Withheld]| {
            of.iter().map(|one| ptr::from_ref(one.0).addr()).collect::<std::collections::BTreeSet<_>>()
        };
        let mut known = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let held = all();
            assert_eq!(places(&held).len(), 8 * 16, "one place for each");
            known.extend(places(&held));
        }
        assert!(known.len() < 3 * 8 * 16, "{} places", known.len());
    }
}
