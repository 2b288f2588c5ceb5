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

#![allow(unsafe_code)]

use crate::error::StoreError;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
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
        // A fork from now on lays pages over the mapping, or over the hole.
        let withheld = Withheld(free_place());
        withheld.0.len.store(bytes.next_multiple_of(rustix::param::page_size()), Relaxed);
        withheld.0.base.store(base.as_ptr().expose_provenance(), Release);
        // SAFETY: the caller has just made this mapping, and the advice leaves it as it is in this process.
        let advised = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontFork) };
        advised.map(|()| withheld).map_err(|cause| failed(cause.into()))
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
        let (base, len) = (range.base.load(Acquire), range.len.load(Relaxed));
        if base != 0 {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
            let pages = ptr::with_exposed_provenance_mut(base);
            // SAFETY: in the fork only the owner of this range has these addresses, and it may not touch what
            // is there. Nothing has been mapped since the fork began.
            let _laid = unsafe { mmap_anonymous(pages, len, ProtFlags::empty(), flags) };
        }
        at = range.next.load(Relaxed);
    }
}

/// Whether a fork of this process can read what is mapped here.
///
/// # Panics
/// If other memory of the fork may lie there.
#[cfg(all(test, not(models)))]
pub(crate) fn is_inherited(base: NonNull<u8>, bytes: usize) -> bool {
    use rustix::io::Errno;
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
    use rustix::mm::munmap;

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
