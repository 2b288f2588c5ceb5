//! Reading of the inbound ring by one thread at a time, and waking of the other waiting threads.
//!
//! One ring has all records from the node, and a value must reach the waiting thread without a detour. So
//! there is no fixed reader. **A waiting thread leads**: a thread in `get` or `wait` takes the inbox (a mutex
//! around the consumer), polls it, spins and then sleeps on the bell, and dispatches every record it finds,
//! for itself and for others. A thread that finds the inbox taken *follows*: it registers itself with the
//! handle that it waits for (or in the list of `bystanders`) and in the list of `followers`, and parks.
//!
//! When no thread waits, records still come: logs, cancellations, values for `await`. A background thread,
//! the *pump*, takes the inbox then. Its wake-ups must not slow down a closed loop of submit and get, and a
//! burst of values must not wake it once per value. Therefore it *naps* (a plain timed park, not on the bell,
//! so that the node pays for no wake-up) for as long as leaders are active or records keep coming, and
//! *listens* (asleep on the bell) otherwise. A nap delays records that only the pump would read by at most
//! [`NAP`]; an asynchronous wait ends the nap and keeps the pump from napping. When one leader leads for many
//! consecutive naps (a worker without work, a driver in a long `get`), the pump *rests* until that leader
//! leaves and wakes it, so that an idle process takes no CPU time.
//!
//! No wake-up is lost:
//!
//! * A leader that leaves unlocks, then reads `followers` and wakes one, which becomes the leader. A
//!   follower adds itself to the list, then tries the lock once more. Both have a fence in between, so one
//!   of them sees the other.
//! * A follower's condition changes in a dispatch, which wakes its waiters. The follower registered itself
//!   before its last check of the condition, under the lock of the handle.
//! * A leader returns with unread records in the ring only if its own condition holds; the pump, if it
//!   listens, was woken by the bell for them, and otherwise reads them when its nap ends.
//! * Loss of the connection fails every handle, wakes all listed threads and rings the client's own bell.
//!
//! Code that runs inside a dispatch never waits: its records are deferred (see `link.rs`).
//!
//! Any thread may call [`wait`] and [`drain`]; [`Inbound`]'s own methods never block and may be called inside
//! a dispatch. Only the pump's thread runs `run`, and it keeps no strong reference while it sleeps.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tharsis_object_store::{Bell, Consumer, SpinPolicy};
use tharsis_types::{Failure, FailureKind};

/// Length of a nap of the pump, while others read or records keep coming.
pub(crate) const NAP: Duration = Duration::from_millis(1);
/// Number of naps under one leader after which the pump rests.
const LED_NAPS_MAX: u32 = 5;
/// Interval at which a resting or listening pump checks whether its client still exists.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Spinning of a leader: as long as a few wake-ups take, with yields to other spinning threads.
const LEAD: SpinPolicy = SpinPolicy { spin_us: 50, bursts_per_yield: 1 };
/// Read bytes after which the node is told that there is room again, as a part of the ring.
const TELL_ROOM_PART: usize = 8;

/// The receiving side of a connection.
pub(crate) struct Inbound {
    inbox: Mutex<Inbox>,
    bell: Bell,
    /// Changes whenever a thread begins to lead.
    epoch: AtomicU32,
    follower_count: AtomicUsize,
    followers: Mutex<Vec<Thread>>,
    /// Threads to wake at events without a handle.
    bystanders: Mutex<Vec<Thread>>,
    async_waiters: AtomicUsize,
    pump: OnceLock<Thread>,
    is_napping: AtomicBool,
    is_resting: AtomicBool,
}

struct Inbox {
    consumer: Consumer,
    untold_bytes: usize,
}

impl Inbound {
    pub(crate) fn new(consumer: Consumer, bell: Bell) -> Self {
        Self {
            inbox: Mutex::new(Inbox { consumer, untold_bytes: 0 }),
            bell,
            epoch: AtomicU32::new(0),
            follower_count: AtomicUsize::new(0),
            followers: Mutex::default(),
            bystanders: Mutex::default(),
            async_waiters: AtomicUsize::new(0),
            pump: OnceLock::new(),
            is_napping: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
        }
    }

    fn wake_pump(&self) {
        if let Some(pump) = self.pump.get() {
            pump.unpark();
        }
    }

    /// Wakes all threads that wait for an event without a handle.
    pub(crate) fn wake_bystanders(&self) {
        for thread in std::mem::take(&mut *self.bystanders.lock()) {
            thread.unpark();
        }
    }

    /// Wakes all threads that wait while another one reads: each looks at its condition again.
    fn wake_followers(&self) {
        for thread in self.followers.lock().iter() {
            thread.unpark();
        }
    }

    /// Registers the current thread for the next event without a handle.
    pub(crate) fn stand_by(&self) {
        self.bystanders.lock().push(thread::current());
    }

    /// Wakes all waiting threads, since the connection is gone.
    pub(crate) fn wake_all(&self) {
        self.wake_bystanders();
        self.wake_followers();
        self.wake_pump();
        self.bell.ring();
    }

    /// Notes an asynchronous wait, during which the pump must not nap.
    pub(crate) fn enter_async(&self) {
        self.async_waiters.fetch_add(1, Ordering::SeqCst);
        if self.is_napping.load(Ordering::SeqCst) {
            self.wake_pump();
        }
    }

    pub(crate) fn leave_async(&self) {
        self.async_waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// To be called after the inbox was unlocked. Wakes a follower to lead if no thread leads, and the pump
    /// if it rests, or naps while a future waits.
    fn pass_on(&self) {
        fence(Ordering::SeqCst);
        if self.follower_count.load(Ordering::Relaxed) > 0
            && !self.inbox.is_locked()
            && let Some(thread) = self.followers.lock().first()
        {
            thread.unpark();
        }
        let is_awaited =
            self.async_waiters.load(Ordering::Relaxed) > 0 && self.is_napping.load(Ordering::Relaxed);
        if is_awaited || self.is_resting.load(Ordering::Relaxed) {
            self.wake_pump();
        }
    }

    fn follow(&self, subscribe: &mut dyn FnMut() -> bool, deadline: Option<Instant>) {
        let me = thread::current();
        let id = me.id();
        self.followers.lock().push(me);
        self.follower_count.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !subscribe() && self.inbox.is_locked() {
            match deadline {
                None => thread::park(),
                Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
            }
        }
        let mut followers = self.followers.lock();
        if let Some(at) = followers.iter().position(|thread| thread.id() == id) {
            followers.remove(at);
            self.follower_count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The connection whose inbound ring is read.
pub(crate) trait Reader: Send + Sync + 'static {
    /// Its receiving side.
    fn inbound(&self) -> &Inbound;

    /// Handles one record. An error means that the record is invalid or that the node ended the connection.
    fn dispatch(&self, record: &[u8]) -> Result<(), Failure>;

    /// Ends the connection with a reason; the first reason counts.
    fn lose(&self, failure: Failure);

    /// Whether the connection has ended.
    fn is_lost(&self) -> bool;

    /// Wakes the node, which has room to write.
    fn ring_node(&self);

    /// Whether records wait to be sent by a thread that may wait for room.
    fn has_deferred(&self) -> bool;

    /// Sends these records, as far as there is room and no other thread is sending.
    fn send_deferred(&self);
}

/// A condition that a thread waits for.
pub(crate) struct Condition<'a> {
    /// Whether it holds.
    pub(crate) is_met: &'a mut dyn FnMut() -> bool,
    /// Registers the current thread with the event that will make it hold; returns whether it holds already.
    pub(crate) subscribe: &'a mut dyn FnMut() -> bool,
}

/// Waits for a condition, as leader or as follower. False if the deadline passed or the connection was lost
/// first.
pub(crate) fn wait<R: Reader>(reader: &R, condition: &mut Condition<'_>, deadline: Option<Instant>) -> bool {
    let inbound = reader.inbound();
    loop {
        if (condition.is_met)() {
            return true;
        }
        if reader.is_lost() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return false;
        }
        match inbound.inbox.try_lock() {
            Some(mut inbox) => {
                inbound.epoch.fetch_add(1, Ordering::Relaxed);
                lead(reader, &mut inbox, condition.is_met, deadline);
                drop(inbox);
            }
            None => inbound.follow(condition.subscribe, deadline),
        }
        reader.send_deferred();
        inbound.pass_on();
    }
}

/// Reads available records, unless another thread reads; for a thread that must not let the inbound ring fill
/// up.
pub(crate) fn drain<R: Reader>(reader: &R) {
    if let Some(mut inbox) = reader.inbound().inbox.try_lock() {
        receive(reader, &mut inbox, &mut || false);
        drop(inbox);
        reader.inbound().pass_on();
    }
}

fn lead<R: Reader>(
    reader: &R,
    inbox: &mut Inbox,
    is_met: &mut dyn FnMut() -> bool,
    deadline: Option<Instant>,
) {
    // The previous leader may have made the condition true.
    if is_met() {
        return;
    }
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    reader.inbound().bell.wait(LEAD, left, || {
        let count = receive(reader, inbox, is_met);
        // Done before this thread may sleep: a deferred answer must not wait for the next record.
        reader.send_deferred();
        if reader.has_deferred() {
            reader.inbound().wake_pump();
        }
        reader.is_lost() || (count > 0 && is_met())
    });
}

/// Dispatches records until there are none or `is_enough`; returns their number.
fn receive<R: Reader>(reader: &R, inbox: &mut Inbox, is_enough: &mut dyn FnMut() -> bool) -> usize {
    let mut count = 0;
    let outcome = loop {
        match inbox.consumer.peek() {
            Ok(None) => break Ok(()),
            Ok(Some(record)) => {
                inbox.untold_bytes += record.len();
                if let Err(failure) = reader.dispatch(record) {
                    break Err(failure);
                }
            }
            Err(corrupt) => break Err(Failure::new(FailureKind::DataCorrupt, corrupt.to_string())),
        }
        inbox.consumer.advance();
        count += 1;
        if inbox.untold_bytes >= inbox.consumer.capacity_bytes() / TELL_ROOM_PART {
            inbox.untold_bytes = 0;
            inbox.consumer.release();
            reader.ring_node();
        }
        if is_enough() {
            break Ok(());
        }
    };
    if let Err(failure) = outcome {
        reader.lose(failure);
    }
    count
}

/// Starts the background reader; it ends when the client is lost or gone.
pub(crate) fn start<R: Reader>(reader: &Arc<R>) -> std::io::Result<()> {
    let weak = Arc::downgrade(reader);
    let bell = reader.inbound().bell.clone();
    let pump = thread::Builder::new()
        .name("tharsis-pump".to_owned())
        .stack_size(256 << 10)
        .spawn(move || run(&weak, &bell))?;
    let _ = reader.inbound().pump.set(pump.thread().clone());
    Ok(())
}

/// Result of a turn of the pump.
enum Finding {
    /// Records keep coming, or others read.
    Busy,
    /// Another thread leads and has led since the last turn.
    Led,
    /// No thread reads and there is nothing to read.
    Quiet,
}

fn run<R: Reader>(reader: &Weak<R>, bell: &Bell) {
    let (mut epoch, mut led_naps) = (0, 0);
    loop {
        let finding = {
            let Some(reader) = reader.upgrade() else { return };
            if reader.is_lost() {
                return;
            }
            let finding = read_once(&*reader, &mut epoch);
            reader.send_deferred();
            finding
        };
        led_naps = if matches!(finding, Finding::Led) { led_naps + 1 } else { 0 };
        match finding {
            Finding::Quiet => listen(reader, bell),
            Finding::Led if led_naps > LED_NAPS_MAX => rest(reader, epoch),
            Finding::Busy | Finding::Led => nap(reader),
        }
    }
}

/// Reads the ring once.
fn read_once<R: Reader>(reader: &R, epoch: &mut u32) -> Finding {
    let inbound = reader.inbound();
    let was_led = inbound.epoch.load(Ordering::Relaxed) != *epoch;
    *epoch = inbound.epoch.load(Ordering::Relaxed);
    let Some(mut inbox) = inbound.inbox.try_lock() else {
        return if was_led { Finding::Busy } else { Finding::Led };
    };
    let count = receive(reader, &mut inbox, &mut || false);
    drop(inbox);
    inbound.pass_on();
    let is_awaited = inbound.async_waiters.load(Ordering::SeqCst) > 0;
    let is_busy = !is_awaited && (was_led || count > 0);
    if is_busy || reader.has_deferred() { Finding::Busy } else { Finding::Quiet }
}

/// Sleeps for the length of a nap.
fn nap<R: Reader>(reader: &Weak<R>) {
    let set = |is_napping| {
        if let Some(reader) = reader.upgrade() {
            reader.inbound().is_napping.store(is_napping, Ordering::SeqCst);
        }
    };
    set(true);
    thread::park_timeout(NAP);
    set(false);
}

/// Sleeps until the leader leaves. The leader reads `is_resting` after it unlocked; this thread checks the
/// lock after it set `is_resting`. Each has a fence in between, so one of them sees the other.
fn rest<R: Reader>(reader: &Weak<R>, epoch: u32) {
    let is_led = reader.upgrade().is_some_and(|reader| {
        let inbound = reader.inbound();
        inbound.is_resting.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_same = inbound.epoch.load(Ordering::Relaxed) == epoch && inbound.inbox.is_locked();
        is_same && !reader.is_lost() && !reader.has_deferred()
    });
    if is_led {
        thread::park_timeout(LOOK_AROUND);
    }
    if let Some(reader) = reader.upgrade() {
        reader.inbound().is_resting.store(false, Ordering::SeqCst);
    }
}

/// Sleeps on the bell until there is something to read or another thread reads.
fn listen<R: Reader>(reader: &Weak<R>, bell: &Bell) {
    bell.wait(SpinPolicy::BRIEF, Some(LOOK_AROUND), || match reader.upgrade() {
        None => true,
        Some(reader) => {
            reader.is_lost()
                || reader.has_deferred()
                || reader.inbound().inbox.try_lock().is_none_or(|mut inbox| inbox.consumer.has_news())
        }
    });
}
