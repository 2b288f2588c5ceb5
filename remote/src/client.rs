//! A client: one driver or worker connected to its node.
//!
//! Sending. Records of all threads go through one producer under a short lock, so their order is the order of
//! the pushes: a reference is released after whatever was sent with it, a class is defined before it is used.
//! A full ring is back-pressure: the sender gives the node time, and reads the inbound ring meanwhile, so
//! that two full rings never wait for each other.
//!
//! Code that must not wait for room defers what it sends ([`Deferred`]): whatever runs inside a dispatch (a
//! waker, the drop of a handle) or holds the lock of a handle. Deferred records keep their place: nothing is
//! pushed before them that was not pushed when they were deferred.
//!
//! Loss. When the node is gone, or says that this client must go, every handle without a value fails,
//! everybody is woken, and every later call fails with the same error. What looks at values then goes on to
//! do so: the memory is given back when nothing does (`uses.rs`).

use crate::answers::Answers;
use crate::current::TaskState;
use crate::error::{Error, Result};
use crate::handles::{Handle, Slab, State, View};
use crate::pump::{self, Reception};
use crate::regions::Regions;
use crate::submit::Classes;
use crate::uses::{Use, Uses};
use crate::worker::Desk;
use parking_lot::{Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tharsis_object_store::channel::Channel;
use tharsis_object_store::deferred::Deferred;
use tharsis_object_store::{ArenaMap, BellBoard, PendingLarge, Producer, PushError};
use tharsis_protos::records::{FromClient, Token};
use tharsis_types::{ClientId, Extent, Failure, FailureKind, JobId, NodeId, RefId, TaskId};

/// Rest of a sender that found the ring full: the node has thousands of records to work off.
const FULL_RING_REST: Duration = Duration::from_micros(100);

/// A connection to a node. Cloning is cheap; the connection ends with [`Client::close`] or when the node
/// goes.
#[derive(Clone)]
pub struct Client(Arc<Core>);

/// What a client is made of; see [`crate::connect`] for the usual way.
pub struct ClientParts {
    /// Number of the client in its node.
    pub client: ClientId,
    /// The node.
    pub node: NodeId,
    /// The job it works for.
    pub job: JobId,
    /// Whether it runs tasks.
    pub is_worker: bool,
    /// The client's side of the rings, and its bell.
    pub channel: Channel,
    /// The node's board.
    pub board: BellBoard,
    /// The client's place on it.
    pub board_index: u32,
    /// The node's arena.
    pub arena: Arc<ArenaMap>,
    /// Takes the output of workers; `None` prints it to this process's own output with a prefix.
    pub log_sink: Option<LogSink>,
}

/// Takes complete lines of a worker: its process, whether they came from stderr, the text.
pub type LogSink = Box<dyn Fn(u32, bool, &str) + Send + Sync>;

pub(crate) struct Core {
    pub(crate) client: ClientId,
    pub(crate) node: NodeId,
    pub(crate) job: JobId,
    pub(crate) is_worker: bool,
    /// Tells clients of one process apart; never used again.
    pub(crate) serial: u32,
    outbox: Mutex<Producer>,
    deferred: Deferred<PendingLarge>,
    board: BellBoard,
    board_index: usize,
    pub(crate) arena: Arc<ArenaMap>,
    pub(crate) reception: Reception,
    pub(crate) slab: Mutex<Slab>,
    pub(crate) classes: Classes,
    pub(crate) regions: Regions,
    pub(crate) locations: Answers<Vec<NodeId>>,
    /// Work of a worker.
    pub(crate) desk: Desk,
    pub(crate) log_sink: Option<LogSink>,
    /// What a thread without a task works for.
    pub(crate) root: Arc<TaskState>,
    lost: OnceLock<Arc<Failure>>,
    is_lost: AtomicBool,
    /// Run when the client is lost, once.
    on_loss: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    pub(crate) uses: Arc<Uses>,
    /// That of the connection.
    own_use: Mutex<Option<Use>>,
}

thread_local! {
    /// The record being built; taken while it is in use.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The client whose records this thread dispatches.
    static DISPATCHING: Cell<*const Core> = const { Cell::new(std::ptr::null()) };
}

static SERIAL: AtomicU32 = AtomicU32::new(1);

impl Client {
    /// Makes a client of its parts and starts its background reader.
    ///
    /// # Errors
    /// `Internal` if no thread can be started.
    pub fn from_parts(parts: ClientParts) -> Result<Self> {
        let root_task = if parts.is_worker { background_task(&parts) } else { TaskId::root(parts.job) };
        let (uses, own_use) = Uses::new();
        let client = Self(Arc::new(Core {
            client: parts.client,
            node: parts.node,
            job: parts.job,
            is_worker: parts.is_worker,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            outbox: Mutex::new(parts.channel.producer),
            deferred: Deferred::default(),
            board: parts.board,
            board_index: parts.board_index as usize,
            arena: parts.arena,
            reception: Reception::new(parts.channel.consumer, parts.channel.bell),
            slab: Mutex::default(),
            classes: Classes::default(),
            regions: Regions::default(),
            locations: Answers::default(),
            desk: Desk::default(),
            log_sink: parts.log_sink,
            root: Arc::new(TaskState::root(root_task)),
            lost: OnceLock::new(),
            is_lost: AtomicBool::new(false),
            on_loss: Mutex::default(),
            uses,
            own_use: Mutex::new(Some(own_use)),
        }));
        pump::start(&client).map_err(|cause| Error::internal(format!("cannot start a thread: {cause}")))?;
        Ok(client)
    }

    /// Number of this client in its node.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.0.client
    }

    /// The node that this client is connected to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The job it works for.
    #[must_use]
    pub fn job(&self) -> JobId {
        self.0.job
    }

    /// Ends the connection: everything that waits fails with `Shutdown`. What is looked at stays where it is,
    /// nothing else does.
    pub fn close(&self) {
        let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the runtime was shut down"));
        // As in a dispatch: a node that stands still must not keep this program.
        self.0.dispatching(|| {
            self.0.retire_unused();
            let handles = self.0.slab.lock().all();
            handles.iter().for_each(|handle| handle.leave(&failure));
        });
        self.0.send_deferred();
        self.lose((*failure).clone());
    }

    /// Ends the connection for a reason; the first reason counts.
    pub fn lose(&self, failure: Failure) {
        self.0.lose(failure);
    }

    /// Why the connection ended, if it has.
    #[must_use]
    pub fn loss(&self) -> Option<Error> {
        self.0.lost.get().map(|failure| Error::shared(Arc::clone(failure)))
    }

    /// Runs `action` once when the connection ends; at once if it has ended already.
    pub fn on_loss(&self, action: impl FnOnce() + Send + 'static) {
        self.0.on_loss.lock().push(Box::new(action));
        if self.0.is_lost() {
            self.0.run_loss_actions();
        }
    }

    /// Runs `action` once when the connection has ended and nothing looks at or writes to the node's memory
    /// through this client any more; at once if that is so.
    pub fn on_disuse(&self, action: impl FnOnce() + Send + 'static) {
        self.0.uses.at_end(Box::new(action));
    }

    /// Keeps the memory that the client has from the node for as long as the answer lives; `None` if it was
    /// given back.
    #[must_use]
    pub fn use_memory(&self) -> Option<Use> {
        self.0.uses.begin()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0
    }

    pub(crate) fn downgrade(&self) -> Weak<Core> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a record.
    pub(crate) fn send(&self, record: &FromClient<'_>) -> Result<()> {
        self.0.send(record)
    }

    /// Sends a record whose loss shows elsewhere: the connection is gone then.
    pub(crate) fn send_or_lose(&self, record: &FromClient<'_>) {
        let _ = self.0.send(record);
    }

    /// Makes a handle in this state.
    pub(crate) fn handle(&self, reference: RefId, state: State) -> Arc<Handle> {
        self.0.slab.lock().insert(self, reference, state)
    }

    /// Makes a handle for a reference that was found inside a value. The node hears of it with the next
    /// record, or when [`Client::flush`] says that there are no more of them: a value may hold thousands.
    pub(crate) fn hold(&self, reference: RefId) -> Arc<Handle> {
        let handle = self.handle(reference, State::Held);
        match self.0.send_later(&FromClient::Hold { token: handle.token(), reference }) {
            Ok(()) => handle,
            Err(error) => Handle::failed(error),
        }
    }

    /// Keeps an argument of the running task mapped when that has ended; until then the task has it pinned.
    pub(crate) fn keep(&self, reference: RefId, extent: Extent) -> Option<View> {
        let handle = self.handle(reference, State::local(extent));
        let (_, view) = handle.view()?;
        self.send_or_lose(&FromClient::Keep { token: handle.token(), reference });
        Some(view)
    }

    /// Forgets a dropped handle and tells the node.
    pub(crate) fn release(&self, token: Token, reference: RefId) {
        self.0.slab.lock().remove(token);
        self.send_or_lose(&FromClient::Release { token, reference });
    }

    /// The same for one of many, before [`Client::flush`].
    pub(crate) fn release_later(&self, token: Token, reference: RefId) {
        self.0.slab.lock().remove(token);
        // Its loss shows elsewhere: the connection is gone then.
        let _ = self.0.send_later(&FromClient::Release { token, reference });
    }

    /// Shows the node what was to be sent later.
    pub(crate) fn flush(&self) {
        // Inside a dispatch it was put off, and this thread may have the outbox.
        if !self.0.is_dispatching() {
            self.0.publish(self.0.outbox.lock());
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({} of node {})", self.0.client.0, self.0.node)
    }
}

/// What threads of a worker that run no task work for: an id of its own, so that they never name another's
/// objects.
fn background_task(parts: &ClientParts) -> TaskId {
    TaskId::root(parts.job).child(parts.node.0).child(u64::from(parts.client.0))
}

impl Core {
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// The error of a client that is gone.
    pub(crate) fn loss(&self) -> Error {
        match self.lost.get() {
            Some(failure) => Error::shared(Arc::clone(failure)),
            None => Error::internal("the connection was taken for lost and is not"),
        }
    }

    pub(crate) fn lose(&self, failure: Failure) {
        if self.lost.set(Arc::new(failure)).is_err() {
            return;
        }
        self.is_lost.store(true, Ordering::SeqCst);
        let handles = self.slab.lock().all();
        if let Some(failure) = self.lost.get() {
            handles.iter().for_each(|handle| handle.fail(failure));
        }
        self.reception.wake_all();
        self.regions.leave_current();
        self.run_loss_actions();
        drop(self.own_use.lock().take());
    }

    /// As [`Core::lose`], after what the node still wrote was read: it may say why.
    pub(crate) fn lose_after_reading(&self, failure: Failure) {
        self.drain();
        self.lose(failure);
    }

    fn run_loss_actions(&self) {
        let actions = std::mem::take(&mut *self.on_loss.lock());
        actions.into_iter().for_each(|action| action());
    }

    pub(crate) fn send(&self, record: &FromClient<'_>) -> Result<()> {
        if let Some(outbox) = encoded(record, |bytes| self.push(bytes))? {
            self.publish(outbox);
        }
        Ok(())
    }

    /// Sends a record that the node need not see before the next one.
    fn send_later(&self, record: &FromClient<'_>) -> Result<()> {
        encoded(record, |bytes| self.push(bytes)).map(|_unpublished| ())
    }

    /// Puts a record into the ring, where the node does not see it yet; none if it was put off.
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

    /// Pushes what was deferred before now: nothing may overtake it.
    #[cold]
    fn push_deferred(&self, outbox: &mut MutexGuard<'_, Producer>) -> Result<()> {
        // What is deferred while this thread makes room comes after the record that it is about to push.
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

    /// Lets the node work while the ring is full, and reads what it has to say.
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

    /// Tells the node that there is something to read, or room to write.
    pub(crate) fn ring_node(&self) {
        self.board.mark_and_ring(self.board_index);
    }

    /// Has a record sent by the next thread that can: this one must not wait for room.
    pub(crate) fn defer(&self, record: &FromClient<'_>) {
        if !self.is_lost() {
            encoded(record, |bytes| self.deferred.add(PendingLarge::new(bytes.to_vec())));
        }
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Sends what was deferred, as far as there is room and nobody else is sending.
    pub(crate) fn send_deferred(&self) {
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

    /// Whether this thread is inside a dispatch.
    fn is_dispatching(&self) -> bool {
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

/// Puts a record into the ring, whole or as much of it as there is room for; whether nothing of it is left.
fn try_push(outbox: &mut Producer, record: &mut PendingLarge) -> bool {
    // A ring that is broken, or a record above all limits, shows at the next push: it must not stand in the
    // way here.
    outbox.try_push_large(record).unwrap_or(true)
}

/// Has `push` take the bytes of a record.
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

impl Drop for Core {
    fn drop(&mut self) {
        // The pump holds no strong reference while it sleeps; it looks, sees that we are gone, and ends.
        self.is_lost.store(true, Ordering::SeqCst);
        self.reception.wake_all();
    }
}
