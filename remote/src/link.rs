//! The link to a node: sending of records, and the state of the connection.
//!
//! Records of all threads go through one producer under a short lock, so their order is the order of the
//! pushes: a reference is released after whatever was sent with it, a class is defined before it is used. A
//! full ring is back-pressure: the sender pauses, and reads the inbound ring meanwhile, so that two full
//! rings never wait for each other.
//!
//! Code that must not wait for room defers its records ([`Deferred`]): code that runs inside a dispatch (a
//! waker, the drop of a handle) or holds the lock of a handle. Deferred records keep their place in the
//! order: they are pushed before any later record.
//!
//! The link knows nothing of handles or regions, and of tasks only that a thread may have one. Its
//! [`Receiver`] gets the records from the node, and the loss of the node. The link owns the receiver, and the
//! receiver never keeps the link: each of its methods is given the link that it needs. A link lives as long
//! as a client, a handle, or a thread that reads for them.

use crate::credit::CallCredit;
use crate::error::{Error, Result};
use crate::pump::{self, Condition, Inbound, Reader};
use crate::task::TaskState;
use crate::uses::{Use, Uses};
use parking_lot::{Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tharsis_object_store::channel::Channel;
use tharsis_object_store::deferred::Deferred;
use tharsis_object_store::{ArenaMap, BellBoard, PendingLarge, Producer, PushError};
use tharsis_protos::records::{FromClient, ToClient};
use tharsis_types::{ClientId, Failure, FailureKind, JobId, NodeId};

/// Pause of a sender that found the ring full: the node has thousands of records to process.
const FULL_RING_REST: Duration = Duration::from_micros(100);

/// The parts from which a link is made.
pub(crate) struct LinkParts {
    pub(crate) client: ClientId,
    pub(crate) node: NodeId,
    pub(crate) job: JobId,
    pub(crate) is_worker: bool,
    pub(crate) channel: Channel,
    pub(crate) board: BellBoard,
    pub(crate) board_index: u32,
    pub(crate) arena: Arc<ArenaMap>,
}

/// A client's link to its node.
pub(crate) struct Link {
    pub(crate) client: ClientId,
    pub(crate) node: NodeId,
    pub(crate) job: JobId,
    pub(crate) is_worker: bool,
    /// Distinguishes clients of one process; never reused.
    pub(crate) serial: u32,
    outbox: Mutex<Producer>,
    deferred: Deferred<PendingLarge>,
    credit: CallCredit,
    board: BellBoard,
    board_index: usize,
    pub(crate) arena: Arc<ArenaMap>,
    pub(crate) inbound: Inbound,
    receiver: Box<dyn Receiver>,
    lost: OnceLock<Arc<Failure>>,
    is_lost: AtomicBool,
    /// Actions to run once when the link is lost.
    on_loss: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    pub(crate) uses: Arc<Uses>,
    /// The use of the connection itself.
    own_use: Mutex<Option<Use>>,
}

/// The part of a client that handles records from the node.
pub(crate) trait Receiver: Send + Sync {
    /// Acts on a record, inside a dispatch: it never waits. An error ends the connection.
    fn receive(&self, link: &Link, record: ToClient<'_>) -> Result<(), Failure>;

    /// Notes that the connection has ended, and its reason.
    fn lost(&self, failure: &Arc<Failure>);

    /// Whether the worker loop ends the loss with [`Link::end_loss`], when it has dropped the actor that
    /// lives in this process.
    fn ends_loss(&self) -> bool;

    /// The task that this thread belongs to: it lends its slot while it waits, and waits no longer once it is
    /// cancelled.
    fn task(&self, link: &Link) -> Option<Arc<TaskState>>;

    /// Lends the slot of the running task to others, because one of its threads begins to wait.
    fn lend_slot(&self, link: &Link) -> Result<LentSlot>;

    /// Ends the wait of a thread: the last one waits until the running task may continue.
    fn reclaim_slot(&self, link: &Link, lent: LentSlot) -> Result<()>;
}

/// The slot of a task that a thread of the task lends while it waits.
#[derive(Clone, Copy)]
pub(crate) struct LentSlot {
    /// Number of tasks that had ended before. The loan is void once its task has ended, even if the thread
    /// lives on.
    pub(crate) tasks_ended: u64,
}

thread_local! {
    /// The record being built; taken while it is in use.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The link whose records this thread dispatches.
    static DISPATCHING: Cell<*const Link> = const { Cell::new(std::ptr::null()) };
}

static SERIAL: AtomicU32 = AtomicU32::new(1);

/// Creation and end.
impl Link {
    /// Makes a link from its parts and starts its background reader.
    ///
    /// # Errors
    /// `Internal` if no thread can be started.
    pub(crate) fn start(parts: LinkParts, receiver: Box<dyn Receiver>) -> Result<Arc<Self>> {
        let (uses, own_use) = Uses::new();
        let link = Arc::new(Self {
            client: parts.client,
            node: parts.node,
            job: parts.job,
            is_worker: parts.is_worker,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            outbox: Mutex::new(parts.channel.producer),
            deferred: Deferred::default(),
            credit: CallCredit::new(),
            board: parts.board,
            board_index: parts.board_index as usize,
            arena: parts.arena,
            inbound: Inbound::new(parts.channel.consumer, parts.channel.bell),
            receiver,
            lost: OnceLock::new(),
            is_lost: AtomicBool::new(false),
            on_loss: Mutex::default(),
            uses,
            own_use: Mutex::new(Some(own_use)),
        });
        pump::start(&link).map_err(|cause| Error::internal(format!("cannot start a thread: {cause}")))?;
        Ok(link)
    }

    /// Runs `action` once when the connection ends; at once if it has ended already.
    pub(crate) fn on_loss(&self, action: impl FnOnce() + Send + 'static) {
        self.on_loss.lock().push(Box::new(action));
        if self.is_lost() {
            self.run_loss_actions();
        }
    }

    /// The reason of the end of the connection, if it has ended.
    pub(crate) fn reason(&self) -> Option<Error> {
        self.lost.get().map(|failure| Error::shared(Arc::clone(failure)))
    }

    /// The error of a link that is lost.
    pub(crate) fn loss(&self) -> Error {
        self.reason().unwrap_or_else(|| Error::internal("the connection was taken for lost and is not"))
    }

    /// As [`Reader::lose`], after the last records of the node were read, which may contain the reason.
    pub(crate) fn lose_after_reading(&self, failure: Failure) {
        self.drain();
        self.lose(failure);
    }

    /// Runs the actions that follow the end of the connection, and returns the memory of this client.
    pub(crate) fn end_loss(&self) {
        self.run_loss_actions();
        drop(self.own_use.lock().take());
    }

    fn run_loss_actions(&self) {
        let actions = std::mem::take(&mut *self.on_loss.lock());
        actions.into_iter().for_each(|action| action());
    }
}

/// Waiting.
impl Link {
    /// Waits for a condition, as leader or as follower. False if the deadline passed or the connection was
    /// lost first.
    pub(crate) fn wait(&self, condition: &mut Condition<'_>, deadline: Option<Instant>) -> bool {
        pump::wait(self, condition, deadline)
    }

    /// Reads available records, unless another thread reads.
    pub(crate) fn drain(&self) {
        pump::drain(self);
    }

    /// The task that this thread belongs to. A driver runs none.
    pub(crate) fn task(&self) -> Option<Arc<TaskState>> {
        if self.is_worker { self.receiver.task(self) } else { None }
    }

    /// Lends the slot of the running task to others, because one of its threads begins to wait.
    pub(crate) fn lend_slot(&self) -> Result<LentSlot> {
        self.receiver.lend_slot(self)
    }

    /// Ends the wait of a thread: the task takes its slot back.
    pub(crate) fn reclaim_slot(&self, lent: LentSlot) -> Result<()> {
        self.receiver.reclaim_slot(self, lent)
    }
}

/// The state of the background reader.
impl Reader for Link {
    fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    fn dispatch(&self, record: &[u8]) -> Result<(), Failure> {
        let decoded = ToClient::decode(record)
            .map_err(|bad| Failure::new(FailureKind::DataCorrupt, format!("from the node: {bad}")))?;
        self.dispatching(|| self.receiver.receive(self, decoded))
    }

    fn lose(&self, failure: Failure) {
        let failure = Arc::new(failure);
        if self.lost.set(Arc::clone(&failure)).is_err() {
            return;
        }
        self.is_lost.store(true, Ordering::SeqCst);
        self.receiver.lost(&failure);
        self.inbound.wake_all();
        if !self.receiver.ends_loss() {
            self.end_loss();
        }
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Wakes the node, which has records to read, or room to write.
    fn ring_node(&self) {
        self.board.mark_and_ring(self.board_index);
    }

    fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Sends deferred records, as far as there is room and no other thread is sending.
    fn send_deferred(&self) {
        if !self.has_deferred() || self.is_dispatching() {
            return;
        }
        fence(Ordering::SeqCst);
        let Some(mut outbox) = self.outbox.try_lock() else { return };
        if self.deferred.take_while(usize::MAX, |record| try_push(&mut outbox, record)) > 0 {
            outbox.publish();
            drop(outbox);
            self.ring_node();
        }
    }
}

/// Calls of a driver, of which its job may have so many at a time. Threads wait here, before they send, so
/// that other threads go on: what they send may be what the job waits for, or its cancellation. Calls of
/// tasks do not wait, nor those in a dispatch.
impl Link {
    /// Waits until this many calls may be sent, and counts them.
    ///
    /// # Errors
    /// The loss of the connection.
    #[inline]
    pub(crate) fn count_calls(&self, count: u64) -> Result<()> {
        if self.is_worker {
            return Ok(());
        }
        if self.credit.claim(count) {
            return Ok(());
        }
        if self.is_dispatching() {
            self.credit.overdraw(count);
            return Ok(());
        }
        self.await_grant(count)
    }

    #[cold]
    fn await_grant(&self, count: u64) -> Result<()> {
        self.flush();
        let has_claimed = Cell::new(false);
        let claim = || {
            // The condition is looked at again after it was met.
            if !has_claimed.get() {
                has_claimed.set(self.credit.claim(count));
            }
            has_claimed.get()
        };
        let mut condition = Condition {
            is_met: &mut || claim(),
            subscribe: &mut || {
                self.inbound.stand_by();
                claim()
            },
        };
        if self.wait(&mut condition, None) { Ok(()) } else { Err(self.loss()) }
    }

    /// Calls that were counted are not sent.
    pub(crate) fn uncount_calls(&self, count: u64) {
        if !self.is_worker {
            self.credit.give_back(count);
            self.inbound.wake_bystanders();
        }
    }

    /// Takes the number of calls that may be sent, all together.
    pub(crate) fn grant_calls(&self, calls: u64) {
        self.credit.grant(calls);
        self.inbound.wake_bystanders();
    }
}

/// Sending.
impl Link {
    /// Sends a record.
    pub(crate) fn send(&self, record: &FromClient<'_>) -> Result<()> {
        if let Some(outbox) = encoded(record, |bytes| self.push(bytes))? {
            self.publish(outbox);
        }
        Ok(())
    }

    /// Sends a record that the node need not see before the next one.
    pub(crate) fn send_later(&self, record: &FromClient<'_>) -> Result<()> {
        encoded(record, |bytes| self.push(bytes)).map(|_unpublished| ())
    }

    /// Puts a record into the ring, where the node does not see it yet; `None` if it was deferred.
    #[inline]
    fn push(&self, bytes: &[u8]) -> Result<Option<MutexGuard<'_, Producer>>> {
        if self.is_lost() {
            return Err(self.loss());
        }
        if self.is_dispatching() {
            self.deferred.add(PendingLarge::new(bytes.to_vec()));
            return Ok(None);
        }
        let mut outbox = self.outbox.lock();
        if !self.deferred.is_empty() {
            self.push_deferred(&mut outbox)?;
        }
        loop {
            match outbox.try_push(&[bytes]) {
                Ok(()) => break,
                Err(PushError::Full) => self.make_room(&mut outbox)?,
                Err(PushError::TooLarge { .. }) => {
                    self.push_large(&mut outbox, bytes)?;
                    break;
                }
                Err(error) => return Err(self.broken(&error)),
            }
        }
        Ok(Some(outbox))
    }

    #[inline]
    fn publish(&self, mut outbox: MutexGuard<'_, Producer>) {
        outbox.publish();
        drop(outbox);
        self.ring_node();
        self.send_deferred();
    }

    /// Pushes the records deferred so far, which nothing may overtake.
    #[cold]
    fn push_deferred(&self, outbox: &mut MutexGuard<'_, Producer>) -> Result<()> {
        // A record that is deferred while this thread makes room comes after the one that it is about to
        // push.
        let mut left = self.deferred.len();
        while left > 0 {
            let pushed = self.deferred.take_while(left, |record| try_push(outbox, record));
            left -= pushed;
            if left > 0 {
                self.make_room(outbox)?;
            }
        }
        Ok(())
    }

    fn push_large(&self, outbox: &mut MutexGuard<'_, Producer>, bytes: &[u8]) -> Result<()> {
        let mut message = PendingLarge::new(bytes.to_vec());
        loop {
            match outbox.try_push_large(&mut message) {
                Ok(true) => return Ok(()),
                Ok(false) => self.make_room(outbox)?,
                Err(PushError::TooLarge { len, limit_bytes }) => {
                    return Err(Error::argument(format!(
                        "a message of {len} bytes is above the limit of {limit_bytes}; use put for large values"
                    )));
                }
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    /// Pauses while the ring is full, and reads records from the node.
    fn make_room(&self, outbox: &mut MutexGuard<'_, Producer>) -> Result<()> {
        outbox.publish();
        self.ring_node();
        self.drain();
        if self.is_lost() {
            return Err(self.loss());
        }
        std::thread::sleep(FULL_RING_REST);
        Ok(())
    }

    fn broken(&self, error: &PushError) -> Error {
        self.lose(Failure::new(
            FailureKind::Disconnected,
            format!("the ring to the node is broken: {error}"),
        ));
        self.loss()
    }

    /// Defers a record to the next thread that can send it: this one must not wait for room.
    pub(crate) fn defer(&self, record: &FromClient<'_>) {
        if !self.is_lost() {
            encoded(record, |bytes| self.deferred.add(PendingLarge::new(bytes.to_vec())));
        }
    }

    /// Publishes the records of [`Link::send_later`].
    pub(crate) fn flush(&self) {
        // Inside a dispatch they were deferred, and this thread may hold the outbox.
        if !self.is_dispatching() {
            self.publish(self.outbox.lock());
        }
    }

    /// Sends a record and ignores errors: the connection is gone then, which shows elsewhere.
    pub(crate) fn send_or_lose(&self, record: &FromClient<'_>) {
        let _ = self.send(record);
    }

    /// Whether this thread is inside a dispatch.
    pub(crate) fn is_dispatching(&self) -> bool {
        DISPATCHING.get() == std::ptr::from_ref(self)
    }

    /// Runs `dispatch` so that nothing in it waits for room.
    pub(crate) fn dispatching<R>(&self, dispatch: impl FnOnce() -> R) -> R {
        let outer = DISPATCHING.replace(std::ptr::from_ref(self));
        let result = dispatch();
        DISPATCHING.set(outer);
        result
    }
}

/// Puts as much of a record into the ring as fits; returns whether all of it is there.
fn try_push(outbox: &mut Producer, record: &mut PendingLarge) -> bool {
    // A broken ring, or a record above all limits, is an error of the next push; it must not block the others
    // here.
    outbox.try_push_large(record).unwrap_or(true)
}

/// Calls `push` with the encoded bytes of a record.
#[inline]
fn encoded<R>(record: &FromClient<'_>, push: impl FnOnce(&[u8]) -> R) -> R {
    const KEPT_BYTES: usize = 64 << 10;
    let mut bytes = RECORD.take();
    bytes.clear();
    record.encode(&mut bytes);
    let result = push(&bytes);
    if bytes.capacity() <= KEPT_BYTES {
        RECORD.with_borrow_mut(|kept| *kept = bytes);
    }
    result
}

impl Drop for Link {
    fn drop(&mut self) {
        // The background reader holds no strong reference while it sleeps; it wakes up, sees that the link is
        // gone, and ends.
        self.is_lost.store(true, Ordering::SeqCst);
        self.inbound.wake_all();
    }
}
