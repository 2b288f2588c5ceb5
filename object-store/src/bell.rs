//! Bells: a process sleeps until another has news for it.
//!
//! Two words in shared memory. `sleepers` counts the threads that are asleep or about to be; `rings` changes
//! with each ring that found a sleeper, and is what the kernel compares before it lets a thread sleep.
//!
//! ```text
//! ringer                                  waiter
//! 1. make the condition true              a. sleepers += 1
//! 2. fence (SeqCst)                       b. remember rings
//! 3. if sleepers == 0: done               c. fence (SeqCst)
//! 4. rings += 1; futex wake all           d. if the condition is true: go to f
//!                                         e. futex wait while rings is as remembered; go to b
//!                                         f. sleepers -= 1
//! ```
//! **No wake-up is lost.** Of the two fences one comes first. If the ringer's (2) does, the waiter's check
//! (d) sees the condition. If the waiter's (c) does, the ringer (3) sees the sleeper and changes `rings` (4):
//! either before (b), and then (b), an acquire load, makes the condition visible to (d); or after, and then
//! the kernel refuses to sleep or the wake reaches the sleeper.
//!
//! **Death is harmless.** A ringer changes nothing that another ringer relies on, so one that is killed
//! between 3 and 4 costs only its own wake-up, never a later one. (The refused design: a flag that the first
//! ringer clears to save later ringers the system call; a death right after the clearing silences the bell.)
//! All waiters of one bell belong to one process, so a `sleepers` left too high belongs to a bell that nobody
//! listens to any more.
//!
//! If no thread sleeps, a ring costs a fence and a load. The waiter spins before it sleeps, in bursts with
//! `sched_yield` in between, so that more spinning threads than cores take turns instead of using up each
//! other's time slices.
//!
//! A [`BellBoard`] adds a bit per client, so that one thread that serves thousands of rings visits only those
//! with news. The order matters here too: a client publishes, then sets its bit, then the summary bit, then
//! rings; the server takes the summary, then the word, then reads the rings. A client that finds its bit set
//! does not set it again: the fence makes its record visible before the server that takes the bit reads the
//! ring.

#![allow(unsafe_code)]

use crate::error::StoreError;
use crate::segment::Segment;
use crate::sync::{AtomicU32, AtomicU64, FutexWord, Ordering, fence, spin_loop, yield_now};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_types::limits::CLIENTS_MAX;

/// Bytes of a segment that a [`Bell`] takes.
pub const BELL_BYTES: usize = 64;
/// Bytes of a segment that a [`BellBoard`] takes.
pub const BELL_BOARD_BYTES: usize = 128 + WORD_COUNT * 8;

const PLACE_ALIGN: usize = 64;
const WORD_COUNT: usize = CLIENTS_MAX / 64;
const _: () = assert!(CLIENTS_MAX == 64 * 64, "one summary word covers all clients");

/// Checks of the condition between two yields. A pause instruction takes some 50 ns, so this is about a
/// microsecond.
const BURST_COUNT: u32 = 16;
/// Deadlines further away are shortened to this.
const DEADLINE_MAX: Duration = Duration::from_secs(1 << 30);

/// Time for which a waiter spins before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinPolicy {
    /// Microseconds of spinning; 0 sleeps at once.
    pub spin_us: u32,
    /// Bursts between two calls of `sched_yield`; 0 never yields, 1 is right when parties outnumber cores.
    pub bursts_per_yield: u32,
}

impl SpinPolicy {
    /// Sleeps at once.
    pub const SLEEP: SpinPolicy = SpinPolicy { spin_us: 0, bursts_per_yield: 1 };
    /// Spins for about the cost of two wake-ups, yielding: the right choice in a closed loop.
    pub const BRIEF: SpinPolicy = SpinPolicy { spin_us: 20, bursts_per_yield: 1 };
}

#[repr(C)]
struct BellWords {
    rings: FutexWord,
    sleepers: AtomicU32,
}

impl BellWords {
    #[inline]
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.rings.value().fetch_add(1, Ordering::Release);
        self.rings.wake_all();
    }

    fn wait(&self, spin: SpinPolicy, deadline: Option<Duration>, mut ready: impl FnMut() -> bool) -> bool {
        if ready() {
            return true;
        }
        let started = Instant::now();
        let deadline = deadline.map(|d| started + d.min(DEADLINE_MAX));
        if spin_until(started, spin, deadline, &mut ready) {
            return true;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let is_ready = self.sleep_until(deadline, &mut ready);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        is_ready
    }

    fn sleep_until(&self, deadline: Option<Instant>, ready: &mut impl FnMut() -> bool) -> bool {
        loop {
            let rings = self.rings.value().load(Ordering::Acquire);
            fence(Ordering::SeqCst);
            if ready() {
                return true;
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            self.rings.wait(rings, left);
        }
    }
}

fn spin_until(
    started: Instant,
    spin: SpinPolicy,
    deadline: Option<Instant>,
    ready: &mut impl FnMut() -> bool,
) -> bool {
    let mut spin_end = started + Duration::from_micros(u64::from(spin.spin_us));
    if let Some(deadline) = deadline {
        spin_end = spin_end.min(deadline);
    }
    let mut bursts = 0;
    while Instant::now() < spin_end {
        for _ in 0..BURST_COUNT {
            if ready() {
                return true;
            }
            spin_loop();
        }
        bursts += 1;
        if bursts == spin.bursts_per_yield {
            bursts = 0;
            yield_now();
        }
    }
    false
}

/// Two words on which threads sleep until another party rings.
#[derive(Clone)]
pub struct Bell {
    words: NonNull<BellWords>,
    /// Keeps the mapping.
    _segment: Arc<Segment>,
}

// SAFETY: the words are atomics in a mapping that `_segment` keeps.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// The bell at `offset` of a segment, a multiple of 64. Zero bytes are a bell that nobody waits for.
    ///
    /// # Errors
    /// `OutOfBounds` or `Misaligned` if it does not fit there.
    pub fn at(segment: &Arc<Segment>, offset: usize) -> Result<Bell, StoreError> {
        let words = segment.place(offset, BELL_BYTES, PLACE_ALIGN)?.cast();
        Ok(Bell { words, _segment: Arc::clone(segment) })
    }

    /// Makes the waiters check their condition again. Make it true first.
    #[inline]
    pub fn ring(&self) {
        self.words().ring();
    }

    /// Waits until `ready` returns true, or until `deadline` has passed since the call; returns the last
    /// result of `ready`.
    ///
    /// Several threads of one process may wait; each ring wakes all of them.
    pub fn wait(&self, spin: SpinPolicy, deadline: Option<Duration>, ready: impl FnMut() -> bool) -> bool {
        self.words().wait(spin, deadline, ready)
    }

    #[inline]
    fn words(&self) -> &BellWords {
        // SAFETY: in bounds and aligned (checked by `at`), mapped while `self` lives, made of atomics.
        unsafe { self.words.as_ref() }
    }
}

#[repr(C)]
struct BoardWords {
    bell: BellWords,
    _gap: [u8; 56],
    summary: AtomicU64,
    _gap_too: [u8; 56],
    marks: [AtomicU64; WORD_COUNT],
}
#[cfg(not(models))]
const _: () = assert!(size_of::<BoardWords>() == BELL_BOARD_BYTES, "the layout is part of the protocol");
#[cfg(not(models))]
const _: () = assert!(size_of::<BellWords>() <= BELL_BYTES, "a bell fits its place");

/// A bell with a mark per client, for a server of many rings.
#[derive(Clone)]
pub struct BellBoard {
    words: NonNull<BoardWords>,
    /// Keeps the mapping.
    _segment: Arc<Segment>,
}

// SAFETY: the words are atomics in a mapping that `_segment` keeps.
unsafe impl Send for BellBoard {}
// SAFETY: as above.
unsafe impl Sync for BellBoard {}

impl BellBoard {
    /// The board at `offset` of a segment, a multiple of 64. Zero bytes are an empty board.
    ///
    /// # Errors
    /// `OutOfBounds` or `Misaligned` if it does not fit there.
    pub fn at(segment: &Arc<Segment>, offset: usize) -> Result<BellBoard, StoreError> {
        let words = segment.place(offset, BELL_BOARD_BYTES, PLACE_ALIGN)?.cast();
        Ok(BellBoard { words, _segment: Arc::clone(segment) })
    }

    /// Marks that client `index` has news, and wakes the server if it sleeps. Publish the news first.
    ///
    /// An index of [`CLIENTS_MAX`] or more only rings.
    #[inline]
    pub fn mark_and_ring(&self, index: usize) {
        let words = self.words();
        if let Some(word) = words.marks.get(index / 64) {
            mark(word, &words.summary, index);
        }
        words.bell.ring();
    }

    /// Wakes the server without a mark, for news that does not come through a ring.
    pub fn ring(&self) {
        self.words().bell.ring();
    }

    /// Takes all marks and calls `visit` with the index of each; returns their number.
    ///
    /// Read the client's ring inside or after `visit`, not before.
    pub fn take_marked(&self, mut visit: impl FnMut(usize)) -> usize {
        let words = self.words();
        let mut count = 0;
        for word_index in Bits(take(&words.summary)) {
            for bit in Bits(take(&words.marks[word_index])) {
                count += 1;
                visit(word_index * 64 + bit);
            }
        }
        count
    }

    /// Waits until a client has left a mark or `ready` returns true; false once `deadline` has passed since
    /// the call.
    pub fn wait(
        &self,
        spin: SpinPolicy,
        deadline: Option<Duration>,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let words = self.words();
        words.bell.wait(spin, deadline, || words.summary.load(Ordering::Acquire) != 0 || ready())
    }

    /// Clears the mark of a client, before its index is given to another.
    pub fn clear(&self, index: usize) {
        if let Some(word) = self.words().marks.get(index / 64) {
            word.fetch_and(!(1 << (index % 64)), Ordering::AcqRel);
        }
    }

    #[inline]
    fn words(&self) -> &BoardWords {
        // SAFETY: in bounds and aligned (checked by `at`), mapped while `self` lives, made of atomics.
        unsafe { self.words.as_ref() }
    }
}

#[inline]
fn mark(word: &AtomicU64, summary: &AtomicU64, index: usize) {
    let bit = 1 << (index % 64);
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Release);
        summary.fetch_or(1 << (index / 64 % 64), Ordering::Release);
    }
}

fn take(word: &AtomicU64) -> u64 {
    let taken = word.swap(0, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    taken
}

/// Indices of the bits that are set, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    fn segment() -> Arc<Segment> {
        Arc::new(Segment::anonymous(4096).unwrap())
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let bell = Bell::at(&segment(), 64).unwrap();
        for spin in [SpinPolicy::SLEEP, SpinPolicy::BRIEF] {
            let started = Instant::now();
            assert!(!bell.wait(spin, Some(Duration::from_millis(20)), || false));
            assert!(Duration::from_millis(20) <= started.elapsed());
        }
        assert!(bell.wait(SpinPolicy::SLEEP, None, || true));
        assert!(!bell.wait(SpinPolicy::SLEEP, Some(Duration::ZERO), || false));
        assert!(bell.wait(SpinPolicy::SLEEP, Some(Duration::MAX), || true));
    }

    #[test]
    fn no_ring_is_lost_in_a_long_exchange() {
        let segment = segment();
        let (there, back) = (Bell::at(&segment, 0).unwrap(), Bell::at(&segment, 64).unwrap());
        let turn = Arc::new(AtomicUsize::new(0));
        let peer = {
            let (there, back, turn) = (there.clone(), back.clone(), Arc::clone(&turn));
            thread::spawn(move || {
                for i in 0..5_000 {
                    let spin = if i % 2 == 0 { SpinPolicy::SLEEP } else { SpinPolicy::BRIEF };
                    let limit = Some(Duration::from_secs(20));
                    assert!(there.wait(spin, limit, || turn.load(Ordering::Acquire) == 2 * i + 1));
                    turn.store(2 * i + 2, Ordering::Release);
                    back.ring();
                }
            })
        };
        for i in 0..5_000 {
            turn.store(2 * i + 1, Ordering::Release);
            there.ring();
            let limit = Some(Duration::from_secs(20));
            assert!(back.wait(SpinPolicy::SLEEP, limit, || turn.load(Ordering::Acquire) == 2 * i + 2));
        }
        peer.join().unwrap();
    }

    #[test]
    fn one_ring_wakes_all_waiters() {
        let bell = Bell::at(&segment(), 0).unwrap();
        let flag = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let (bell, flag) = (bell.clone(), Arc::clone(&flag));
                thread::spawn(move || {
                    bell.wait(SpinPolicy::SLEEP, Some(Duration::from_secs(20)), || {
                        flag.load(Ordering::Acquire) == 1
                    })
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(20));
        flag.store(1, Ordering::Release);
        bell.ring();
        assert!(waiters.into_iter().all(|w| w.join().unwrap()));
    }

    #[test]
    fn the_board_reports_each_marked_client_once() {
        let board = BellBoard::at(&segment(), 0).unwrap();
        let mut seen = Vec::new();
        for index in [4095, 0, 63, 64, 64, 2000, CLIENTS_MAX, usize::MAX] {
            board.mark_and_ring(index);
        }
        board.clear(2000);
        assert!(board.wait(SpinPolicy::SLEEP, None, || false));
        assert_eq!(board.take_marked(|index| seen.push(index)), 4);
        assert_eq!(seen, [0, 63, 64, 4095]);
        assert_eq!(board.take_marked(|_| unreachable!()), 0);
        assert!(!board.wait(SpinPolicy::SLEEP, Some(Duration::ZERO), || false));
    }

    #[test]
    fn many_markers_never_lose_news() {
        let board = BellBoard::at(&segment(), 0).unwrap();
        let news: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let markers: Vec<_> = (0..3)
            .map(|index| {
                let (board, news) = (board.clone(), Arc::clone(&news));
                thread::spawn(move || {
                    for _ in 0..20_000 {
                        news[index].fetch_add(1, Ordering::Release);
                        board.mark_and_ring(index);
                    }
                })
            })
            .collect();
        let mut taken = 0;
        while taken < 60_000 {
            assert!(board.wait(SpinPolicy::SLEEP, Some(Duration::from_secs(20)), || false), "{taken}");
            board.take_marked(|index| taken += news[index].swap(0, Ordering::Acquire));
        }
        markers.into_iter().for_each(|m| m.join().unwrap());
    }
}

#[cfg(models)]
#[cfg(test)]
mod loom_tests {
    use super::*;
    use crate::positions::{ConsumerPositions, Line, PositionWords, ProducerPositions};
    use loom::thread;

    fn words() -> BellWords {
        BellWords { rings: FutexWord::new(), sleepers: AtomicU32::new(0) }
    }

    /// A lost wake-up is a deadlock, which loom reports.
    #[test]
    fn loom_no_wake_up_is_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = loom::sync::Arc::new((words(), AtomicU32::new(0)));
            let ringers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = loom::sync::Arc::clone(&shared);
                    thread::spawn(move || {
                        shared.1.fetch_add(1, Ordering::Relaxed);
                        shared.0.ring();
                    })
                })
                .collect();
            let (bell, count) = (&shared.0, &shared.1);
            bell.sleepers.fetch_add(1, Ordering::SeqCst);
            assert!(bell.sleep_until(None, &mut || count.load(Ordering::Relaxed) == 2));
            bell.sleepers.fetch_sub(1, Ordering::SeqCst);
            ringers.into_iter().for_each(|r| r.join().unwrap());
        });
    }

    fn sleep(bell: &BellWords, mut ready: impl FnMut() -> bool) {
        bell.sleepers.fetch_add(1, Ordering::SeqCst);
        assert!(bell.sleep_until(None, &mut ready));
        bell.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// A ring with room for one record and a bell for each side, as a client and its node use them. A side
    /// that sleeps forever is a deadlock, which loom reports.
    #[test]
    fn loom_a_full_ring_and_an_empty_one_wake_their_sides() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let line = || Line(AtomicU64::new(0));
            let positions = PositionWords { published: line(), consumed: line() };
            // The positions, the bell for room, the bell for news.
            let shared = loom::sync::Arc::new((positions, words(), words()));
            let producer = {
                let shared = loom::sync::Arc::clone(&shared);
                thread::spawn(move || {
                    let (words, room, news) = &*shared;
                    let mut positions = ProducerPositions::attach(words, 8).unwrap();
                    for _ in 0..2 {
                        sleep(room, || positions.has_room(words, 8).unwrap());
                        positions.stage(8);
                        positions.publish(words);
                        news.ring();
                    }
                })
            };
            let (words, room, news) = &*shared;
            let mut positions = ConsumerPositions::attach(words, 8).unwrap();
            for _ in 0..2 {
                sleep(news, || positions.readable(words).unwrap() == 8);
                positions.advance(8);
                positions.release(words);
                room.ring();
            }
            producer.join().unwrap();
        });
    }

    /// The server takes a mark, then reads; the client publishes, then marks: no news is left without a mark.
    #[test]
    fn loom_a_mark_found_set_still_covers_the_news() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = loom::sync::Arc::new((AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)));
            let client = {
                let shared = loom::sync::Arc::clone(&shared);
                thread::spawn(move || {
                    for count in 1..=2 {
                        shared.2.store(count, Ordering::Release);
                        mark(&shared.0, &shared.1, 5);
                    }
                })
            };
            let look = || {
                if take(&shared.1) != 0 && take(&shared.0) != 0 {
                    return shared.2.load(Ordering::Acquire);
                }
                0
            };
            let seen = look();
            client.join().unwrap();
            let later = look();
            assert_eq!(seen.max(later), 2, "news left behind: {seen}, {later}");
        });
    }
}
