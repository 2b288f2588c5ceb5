//! Memory of large chunks: pages of the system, huge ones if available, which are reused by the next chunk of
//! the same size.
//!
//! The first touch of a fresh page costs many times as much as writing it (measured: 4 GB in 0.6 s fresh and
//! huge, in 0.9 s fresh and small, in 0.08 s reused), and the system clears pages before it hands them out
//! again. So the pages of a dropped chunk stay here, as they are, for `KEEP`, and are then returned to the
//! system: a job of many seconds may want pages in one of its stages that another one gave back long before,
//! so it is `KEEP_MAX` while a job runs ([`InUse`]) or pages are taken. The pool never takes more memory
//! than chunks took before: before fresh pages are mapped, as many unused ones of other sizes are released.

use memmap2::{Advice, MmapMut};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Writable memory with the contents that its last user left.
pub(crate) struct Pages {
    /// `None` only during drop.
    map: Option<MmapMut>,
    len: usize,
}

/// From this size on, memory comes from this pool and not from the allocator.
pub(crate) const PAGES_BYTES_MIN: usize = 512 << 10;
/// Time for which unused pages stay: long enough for a loop over jobs to reuse them, short enough that a
/// program that goes on to something else does not keep them.
const KEEP: Duration = Duration::from_secs(1);
/// Time for which pages stay unused while others are wanted.
const KEEP_MAX: Duration = Duration::from_secs(5);

static POOL: Mutex<Pool> = Mutex::new(Pool::new());

/// Unused pages, and the rule by which they stay and go. It has no clock and no thread of its own.
struct Pool {
    /// Unused pages by their size, the oldest of each first.
    free: BTreeMap<usize, Vec<(Instant, MmapMut)>>,
    /// When pages were wanted last.
    used: Option<Instant>,
    /// Jobs that run.
    jobs: usize,
    /// A thread runs [`keep`].
    has_keeper: bool,
}

/// A job that runs: while there is one, unused pages stay for the stages that come.
#[derive(Debug)]
pub struct InUse(());

impl InUse {
    /// Until this is dropped, a job runs.
    pub fn begin() -> InUse {
        lock().begin();
        InUse(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        lock().end(Instant::now());
    }
}

impl Pages {
    /// Pages for a number of bytes; `None` if the system gives none.
    pub(crate) fn take(len: usize) -> Option<Pages> {
        let room = size_class(len);
        let (used, too_many) = lock().take(room, Instant::now());
        // Unmapping takes long, so it is not done under the lock.
        drop(too_many);
        let map = match used {
            Some(map) => map,
            None => fresh(room)?,
        };
        Some(Pages { map: Some(map), len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().map_or(&[], |map| &map[..self.len])
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().map_or(&mut [], |map| &mut map[..self.len])
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(map) = self.map.take() {
            let mut pool = lock();
            if !pool.has_keeper {
                pool.has_keeper = std::thread::Builder::new().name("pages".to_owned()).spawn(keep).is_ok();
            }
            // Without a thread that releases them, the pages would stay forever.
            if pool.has_keeper {
                pool.put(map, Instant::now());
            }
        }
    }
}

impl Pool {
    const fn new() -> Pool {
        Pool { free: BTreeMap::new(), used: None, jobs: 0, has_keeper: false }
    }

    fn begin(&mut self) {
        self.jobs += 1;
    }

    fn end(&mut self, now: Instant) {
        self.jobs -= 1;
        self.used = Some(now);
    }

    /// Unused pages of this size, or else those that must be released before fresh ones are mapped.
    fn take(&mut self, room: usize, now: Instant) -> (Option<MmapMut>, Vec<MmapMut>) {
        let mut too_many = Vec::new();
        self.used = Some(now);
        if let Some((_, map)) = self.free.get_mut(&room).and_then(Vec::pop) {
            return (Some(map), too_many);
        }
        let mut gone = 0;
        while gone < room
            && let Some(mut entry) = self.free.last_entry()
        {
            match entry.get_mut().pop() {
                Some((_, map)) => {
                    gone += map.len();
                    too_many.push(map);
                }
                None => drop(entry.remove()),
            }
        }
        (None, too_many)
    }

    fn put(&mut self, map: MmapMut, now: Instant) {
        self.free.entry(map.len()).or_default().push((now, map));
    }

    /// Takes out the pages that were unused for [`KEEP`], or for longer if a job runs.
    fn take_old(&mut self, now: Instant) -> Vec<(Instant, MmapMut)> {
        let mut old = Vec::new();
        let is_in_use =
            0 < self.jobs || self.used.is_some_and(|used| now.saturating_duration_since(used) < KEEP);
        let keep = if is_in_use { KEEP_MAX } else { KEEP };
        for free in self.free.values_mut() {
            let count = free.partition_point(|(since, _)| keep <= now.saturating_duration_since(*since));
            old.extend(free.drain(..count));
        }
        self.free.retain(|_, free| !free.is_empty());
        old
    }
}

/// Releases old unused pages until there are none.
fn keep() {
    loop {
        std::thread::sleep(KEEP / 4);
        let (old, goes_on) = {
            let mut pool = lock();
            let old = pool.take_old(Instant::now());
            pool.has_keeper = !pool.free.is_empty();
            (old, pool.has_keeper)
        };
        drop(old);
        if !goes_on {
            return;
        }
    }
}

/// Rounds up to eighths of a power of two, so that chunks of about the same size reuse each other's pages.
fn size_class(len: usize) -> usize {
    let step = (len.next_power_of_two() / 16).max(PAGE_BYTES);
    len.max(1).next_multiple_of(step)
}

const PAGE_BYTES: usize = 4096;

fn fresh(room: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(room).ok()?;
    // Only advice: if it fails, the pages are small.
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    Some(map)
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64 << 10;

    fn unused(pool: &Pool) -> usize {
        pool.free.values().map(Vec::len).sum()
    }

    /// A pool with one unused piece of memory, and where it lies.
    fn with_pages(now: Instant) -> (Pool, *const u8) {
        let (mut pool, map) = (Pool::new(), fresh(ROOM).unwrap());
        let place = map.as_ptr();
        pool.put(map, now);
        (pool, place)
    }

    #[test]
    fn pages_are_used_again_as_they_were_left() {
        let now = Instant::now();
        let (mut pool, mut map) = (Pool::new(), fresh(ROOM).unwrap());
        map[7] = 9;
        let place = map.as_ptr();
        pool.put(map, now);
        let (again, too_many) = pool.take(ROOM, now);
        let again = again.unwrap();
        assert_eq!((again.as_ptr(), again[7], too_many.len(), unused(&pool)), (place, 9, 0, 0));
    }

    #[test]
    fn pages_go_when_nobody_wants_them() {
        let now = Instant::now();
        let (mut pool, _) = with_pages(now);
        assert!(pool.take_old(now + KEEP / 2).is_empty());
        assert_eq!(pool.take_old(now + KEEP).len(), 1);
        assert!(pool.free.is_empty());
    }

    #[test]
    fn pages_stay_while_a_job_runs_but_not_for_ever() {
        let now = Instant::now();
        let (mut pool, place) = with_pages(now);
        pool.begin();
        assert!(pool.take_old(now + KEEP_MAX / 2).is_empty());
        let (map, _) = pool.take(ROOM, now + KEEP_MAX / 2);
        assert_eq!(map.as_ref().map(|map| map.as_ptr()), Some(place));
        pool.put(map.unwrap(), now + KEEP_MAX / 2);
        assert_eq!(pool.take_old(now + KEEP_MAX / 2 + KEEP_MAX).len(), 1);
    }

    #[test]
    fn pages_stay_a_little_after_a_job_for_the_next() {
        let now = Instant::now();
        let (mut pool, _) = with_pages(now);
        pool.begin();
        pool.end(now + 2 * KEEP);
        assert!(pool.take_old(now + 2 * KEEP + KEEP / 2).is_empty());
        assert_eq!(pool.take_old(now + 3 * KEEP).len(), 1);
    }

    #[test]
    fn unused_pages_of_other_sizes_go_before_fresh_ones_are_mapped() {
        let now = Instant::now();
        let (mut pool, _) = with_pages(now);
        pool.put(fresh(4 * ROOM).unwrap(), now);
        let (map, too_many) = pool.take(2 * ROOM, now);
        assert!(map.is_none());
        assert_eq!(too_many.iter().map(|map| map.len()).collect::<Vec<_>>(), [4 * ROOM]);
        assert_eq!(unused(&pool), 1);
    }

    #[test]
    fn a_thread_returns_what_chunks_left() {
        // A size whose class no other test has.
        let len = 777 << 12;
        drop(Pages::take(len).unwrap());
        let deadline = Instant::now() + 60 * KEEP;
        while lock().free.contains_key(&size_class(len)) {
            assert!(Instant::now() < deadline, "they stay for ever");
            std::thread::sleep(KEEP / 10);
        }
    }

    #[test]
    fn sizes_fall_into_few_classes() {
        for len in [1, 4096, PAGES_BYTES_MIN, 1_000_000, 32 << 20, (32 << 20) + 1] {
            let room = size_class(len);
            assert!(
                len <= room && room <= len + len / 8 + PAGE_BYTES && room.is_multiple_of(PAGE_BYTES),
                "{len}"
            );
        }
    }
}
