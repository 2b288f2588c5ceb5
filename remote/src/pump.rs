//! Reception: who reads the inbound ring, and how the others learn what was in it.
//!
//! One ring brings everything the node has to say, and a value must reach the thread that waits for it with
//! no detour. So there is no fixed reader. **Whoever waits, leads**: a thread in `get` or `wait` takes the
//! inbox (a mutex around the consumer), polls it, spins and then sleeps on the bell, and dispatches every
//! record it finds, for itself and for others. A thread that finds the inbox taken *follows*: it leaves
//! itself with what it waits for (a handle, or the list of `bystanders`) and in the list of `followers`, and
//! parks.
//!
//! When nobody waits, records still come: logs, cancellations, values for `await`. A background thread, the
//! *pump*, takes the inbox then. Its wake-up must not stand in the way of a closed loop of submit and get,
//! and a burst of values must not wake it once per value. Therefore it *naps* (a plain timed park, not on the
//! bell, so that the node pays for no wake-up) for as long as leaders are active or records keep coming, and
//! *listens* (asleep on the bell) otherwise. A nap delays what only the pump would read by at most [`NAP`];
//! whoever awaits asynchronously ends the nap and keeps the pump from napping. When one leader leads for many
//! naps on end (a worker without work, a driver in a long `get`), the pump *rests* until that leader leaves
//! and wakes it, so that an idle process is idle.
//!
//! No wake-up is lost:
//! * A leader that leaves unlocks, then looks at `followers` and wakes one, which leads on. A follower enters
//!   itself in the list, then tries the lock once more. Both have a fence in between, so one of them sees the
//!   other.
//! * A follower's condition changes in a dispatch, which wakes what waits for it; the follower left itself
//!   there before it looked at the condition for the last time, under the lock of what it waits for.
//! * A leader returns with unread records in the ring only if its own condition holds; the pump, if it
//!   listens, was woken by the bell for them, and otherwise reads them when its nap ends.
//! * Loss of the connection fails every handle, wakes everybody listed and rings the client's own bell.
//!
//! Code that runs inside a dispatch never waits: what it sends is put off (see [`crate::client`]).

use crate::client::{Client, Core};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tharsis_object_store::{Bell, Consumer, SpinPolicy};
use tharsis_types::limits::RING_BYTES;
use tharsis_types::{Failure, FailureKind};

/// How long the pump looks away while others read or records keep coming.
pub(crate) const NAP: Duration = Duration::from_millis(1);
/// So many naps under one leader, and the pump rests.
const LED_NAPS_MAX: u32 = 5;
/// Even a resting or listening pump looks whether its client is still there.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// How a leader waits: some wake-ups long, in turns with whoever else spins.
const LEAD: SpinPolicy = SpinPolicy { spin_us: 50, bursts_per_yield: 1 };
/// After this many bytes the node is told that there is room again.
const TELL_ROOM_BYTES: usize = RING_BYTES / 8;

/// The receiving side of a client.
pub(crate) struct Reception {
    inbox: Mutex<Inbox>,
    bell: Bell,
    /// Changes whenever a thread leads.
    epoch: AtomicU32,
    follower_count: AtomicUsize,
    followers: Mutex<Vec<Thread>>,
    /// Threads to wake at events that belong to no handle.
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

impl Reception {
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

    /// Wakes everybody who waits for an event that belongs to no handle.
    pub(crate) fn wake_bystanders(&self) {
        for thread in std::mem::take(&mut *self.bystanders.lock()) {
            thread.unpark();
        }
    }

    /// Has the current thread woken at the next event that belongs to no handle.
    pub(crate) fn stand_by(&self) {
        self.bystanders.lock().push(thread::current());
    }

    /// Wakes everybody: the connection is gone.
    pub(crate) fn wake_all(&self) {
        self.wake_bystanders();
        for thread in self.followers.lock().iter() {
            thread.unpark();
        }
        self.wake_pump();
        self.bell.ring();
    }

    /// Someone awaits asynchronously: the pump must not nap.
    pub(crate) fn enter_async(&self) {
        self.async_waiters.fetch_add(1, Ordering::SeqCst);
        if self.is_napping.load(Ordering::SeqCst) {
            self.wake_pump();
        }
    }

    pub(crate) fn leave_async(&self) {
        self.async_waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// To be called after the inbox was left: wakes one follower to lead on if nobody leads, and a resting
    /// pump.
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

/// What a thread waits for.
pub(crate) struct Wish<'a> {
    /// Whether it has come true.
    pub(crate) is_true: &'a mut dyn FnMut() -> bool,
    /// Leaves the current thread with whoever will make it true; says whether it is true already.
    pub(crate) subscribe: &'a mut dyn FnMut() -> bool,
}

impl Core {
    /// Waits for a wish, as leader or as follower. False if the deadline passed or the connection was lost
    /// first.
    pub(crate) fn wait(&self, wish: &mut Wish<'_>, deadline: Option<Instant>) -> bool {
        let reception = &self.reception;
        loop {
            if (wish.is_true)() {
                return true;
            }
            if self.is_lost() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return false;
            }
            match reception.inbox.try_lock() {
                Some(mut inbox) => {
                    reception.epoch.fetch_add(1, Ordering::Relaxed);
                    self.lead(&mut inbox, wish.is_true, deadline);
                    drop(inbox);
                }
                None => reception.follow(wish.subscribe, deadline),
            }
            self.send_deferred();
            reception.pass_on();
        }
    }

    /// Reads what is there, if nobody else does; for a thread that must not let the inbound ring fill up.
    pub(crate) fn drain(&self) {
        if let Some(mut inbox) = self.reception.inbox.try_lock() {
            self.receive(&mut inbox, &mut || false);
            drop(inbox);
            self.reception.pass_on();
        }
    }

    fn lead(&self, inbox: &mut Inbox, is_true: &mut dyn FnMut() -> bool, deadline: Option<Instant>) {
        // The leader before us may have made it true.
        if is_true() {
            return;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.reception.bell.wait(LEAD, left, || {
            let count = self.receive(inbox, is_true);
            // Before this thread may sleep: an answer that was put off must not wait for the next record.
            self.send_deferred();
            if self.has_deferred() {
                self.reception.wake_pump();
            }
            self.is_lost() || (count > 0 && is_true())
        });
    }

    /// Dispatches records until there are none or `is_enough`; says how many there were.
    fn receive(&self, inbox: &mut Inbox, is_enough: &mut dyn FnMut() -> bool) -> usize {
        let mut count = 0;
        let outcome = loop {
            match inbox.consumer.peek() {
                Ok(None) => break Ok(()),
                Ok(Some(record)) => {
                    inbox.untold_bytes += record.len();
                    if let Err(failure) = self.dispatch(record) {
                        break Err(failure);
                    }
                }
                Err(corrupt) => break Err(Failure::new(FailureKind::DataCorrupt, corrupt.to_string())),
            }
            inbox.consumer.advance();
            count += 1;
            if inbox.untold_bytes >= TELL_ROOM_BYTES {
                inbox.untold_bytes = 0;
                inbox.consumer.release();
                self.ring_node();
            }
            if is_enough() {
                break Ok(());
            }
        };
        if let Err(failure) = outcome {
            self.lose(failure);
        }
        count
    }
}

/// Starts the background reader; it ends when the client is lost or gone.
pub(crate) fn start(client: &Client) -> std::io::Result<()> {
    let core = client.downgrade();
    let bell = client.core().reception.bell.clone();
    let pump = thread::Builder::new()
        .name("tharsis-pump".to_owned())
        .stack_size(256 << 10)
        .spawn(move || run(&core, &bell))?;
    let _ = client.core().reception.pump.set(pump.thread().clone());
    Ok(())
}

/// What the pump found.
enum Finding {
    /// Records keep coming, or others read.
    Busy,
    /// Another thread leads and has led since the last look.
    Led,
    /// Nobody reads and there is nothing to read.
    Quiet,
}

fn run(core: &Weak<Core>, bell: &Bell) {
    let (mut epoch, mut led_naps) = (0, 0);
    loop {
        let finding = {
            let Some(core) = core.upgrade() else { return };
            if core.is_lost() {
                return;
            }
            let finding = read_once(&core, &mut epoch);
            core.send_deferred();
            finding
        };
        led_naps = if matches!(finding, Finding::Led) { led_naps + 1 } else { 0 };
        match finding {
            Finding::Quiet => listen(core, bell),
            Finding::Led if led_naps > LED_NAPS_MAX => rest(core, epoch),
            Finding::Busy | Finding::Led => nap(core),
        }
    }
}

/// Reads the ring once.
fn read_once(core: &Core, epoch: &mut u32) -> Finding {
    let reception = &core.reception;
    let was_led = reception.epoch.load(Ordering::Relaxed) != *epoch;
    *epoch = reception.epoch.load(Ordering::Relaxed);
    let Some(mut inbox) = reception.inbox.try_lock() else {
        return if was_led { Finding::Busy } else { Finding::Led };
    };
    let count = core.receive(&mut inbox, &mut || false);
    drop(inbox);
    reception.pass_on();
    let is_awaited = reception.async_waiters.load(Ordering::SeqCst) > 0;
    let is_busy = !is_awaited && (was_led || count > 0);
    if is_busy || core.has_deferred() { Finding::Busy } else { Finding::Quiet }
}

/// Looks away for a moment.
fn nap(core: &Weak<Core>) {
    let set = |is_napping| {
        if let Some(core) = core.upgrade() {
            core.reception.is_napping.store(is_napping, Ordering::SeqCst);
        }
    };
    set(true);
    thread::park_timeout(NAP);
    set(false);
}

/// Sleeps until the leader leaves. It looks at `is_resting` after it unlocked, this thread at the lock after
/// it set `is_resting`, each with a fence in between: one of them sees the other.
fn rest(core: &Weak<Core>, epoch: u32) {
    let is_led = core.upgrade().is_some_and(|core| {
        let reception = &core.reception;
        reception.is_resting.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_same = reception.epoch.load(Ordering::Relaxed) == epoch && reception.inbox.is_locked();
        is_same && !core.is_lost() && !core.has_deferred()
    });
    if is_led {
        thread::park_timeout(LOOK_AROUND);
    }
    if let Some(core) = core.upgrade() {
        core.reception.is_resting.store(false, Ordering::SeqCst);
    }
}

/// Sleeps on the bell until there is something to read or someone else reads.
fn listen(core: &Weak<Core>, bell: &Bell) {
    bell.wait(SpinPolicy::BRIEF, Some(LOOK_AROUND), || match core.upgrade() {
        None => true,
        Some(core) => {
            core.is_lost()
                || core.has_deferred()
                || core.reception.inbox.try_lock().is_none_or(|mut inbox| inbox.consumer.has_news())
        }
    });
}
