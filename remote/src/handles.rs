//! Handles: the state of each reference of this client.
//!
//! A handle has a *token*: the number of its slot and the slot's generation, so that a record about a dropped
//! handle is not taken for one about the next handle in the same slot. Its state moves forward:
//!
//! ```text
//! Held -> Pending -> Ready -> Fetching -> Inline | Local | Failed
//!            \__________________________/
//! ```
//! `Held` was found inside a value; the node is asked about it only when this client needs it. About values
//! that this client made itself, the node reports unasked. `Pending` and `Fetching` wait for the node,
//! `Ready` waits for a request of the bytes, the other states are final. `Local` bytes stay where they are
//! until the handle is released or the node wants them back. Every reader of them holds a [`View`]; when the
//! node wants the bytes of a handle without views back, the handle becomes `Ready` again.
//!
//! A handle holds its [`Connection`], so the link, its reader and the table of handles live as long as any
//! handle. Nothing below a handle holds the connection.
//!
//! Any thread may use a handle. A state changes under the lock of its handle. Waiters are woken after that
//! lock was released. They may run on the dispatching thread, so they must not wait. Under the lock nothing
//! is sent, only deferred.
//!
//! Dropping the last clone of a handle frees the slot and sends one Release. A pending handle takes its
//! allocation and its slot, about 120 bytes; a test checks that bound.

use crate::answers::Answers;
use crate::error::{Error, Result, decode_failure};
use crate::link::Link;
use crate::news::News;
use crate::pump::Reader;
use crate::regions::Regions;
use crate::uses::Use;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread::Thread;
use tharsis_protos::records::{FromClient, Token, ValueView};
use tharsis_types::{Extent, Failure, FailureKind, NodeId, RefId};

/// A link to a node, with the handles and the regions that belong to it.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) table: Arc<Table>,
    pub(crate) regions: Arc<Regions>,
}

/// The handles of a connection, and requests about them.
#[derive(Default)]
pub(crate) struct Table {
    slab: Mutex<Slab>,
    pub(crate) locations: Answers<Vec<NodeId>>,
    /// Snapshots that are on their way to the owner of the actor, and the reasons if it refuses them.
    pub(crate) checkpoints: Answers<Option<Failure>>,
    /// Held from the moment at which a snapshot is taken until it is sent: methods that run at the same time
    /// send their snapshots in the order in which they took them, which is the order that counts.
    pub(crate) snapshots: Mutex<()>,
}

/// One reference of this client.
pub(crate) struct Handle {
    /// `None` for a handle that failed before it reached a node.
    connection: Option<Arc<Connection>>,
    reference: RefId,
    token: Token,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    /// Woken at every change of the state.
    #[allow(clippy::box_collection, reason = "a word instead of three in every handle")]
    waiters: Option<Box<Vec<Waiter>>>,
}

/// The state of the value.
#[derive(Clone)]
pub(crate) enum State {
    /// Unknown: the node was not asked yet.
    Held,
    /// There is no value yet.
    Pending,
    /// The value exists.
    Ready,
    /// The value exists, and its bytes were requested.
    Fetching,
    /// The encoded value.
    Inline(Box<[u8]>),
    /// In the arena, pinned for this handle.
    Local {
        extent: Extent,
        /// Number of readers of the bytes.
        views: u32,
        /// Whether the node wants them back.
        is_wanted: bool,
    },
    /// There is no value.
    Failed(Arc<Failure>),
}

/// A reader's pin on bytes: they stay where they are while this lives.
pub(crate) struct View {
    handle: Arc<Handle>,
    _use: Use,
}

impl Drop for View {
    fn drop(&mut self) {
        self.handle.end_view();
    }
}

impl State {
    pub(crate) fn local(extent: Extent) -> Self {
        Self::Local { extent, views: 0, is_wanted: false }
    }

    /// Whether the task has ended, the condition of `wait`.
    pub(crate) fn is_ready(&self) -> bool {
        !matches!(self, Self::Held | Self::Pending)
    }

    /// Whether `get` can answer without the node.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Inline(_) | Self::Local { .. } | Self::Failed(_))
    }

    /// Whether the waiter can act: read the value, or request its bytes.
    pub(crate) fn has_moved(&self) -> bool {
        self.is_final() || matches!(self, Self::Ready)
    }

    fn from_view(value: ValueView<'_>) -> Self {
        match value {
            ValueView::Inline(bytes) => Self::Inline(bytes.into()),
            ValueView::Local(extent) => Self::local(extent),
            ValueView::Ready { .. } => Self::Ready,
            ValueView::Failed(failure) => Self::Failed(Arc::new(decode_failure(failure))),
        }
    }
}

/// A waiter for a change of the state.
pub(crate) enum Waiter {
    News(Arc<News>, usize),
    Task(Waker),
    Thread(Thread),
}

impl Waiter {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(a), Self::Task(b)) => a.will_wake(b),
            (Self::Thread(a), Self::Thread(b)) => a.id() == b.id(),
            _ => false,
        }
    }

    pub(crate) fn wake(self) {
        match self {
            Self::News(news, place) => news.tell(place),
            Self::Task(waker) => waker.wake(),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}

impl Handle {
    /// A handle that never reached a node.
    pub(crate) fn failed(error: Error) -> Arc<Self> {
        let reference = RefId { object: nowhere(), owner: tharsis_types::NodeId(0) };
        let inner = Inner { state: State::Failed(error.into_shared()), waiters: None };
        Arc::new(Self { connection: None, reference, token: 0, inner: Mutex::new(inner) })
    }

    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.connection.as_ref()
    }

    pub(crate) fn reference(&self) -> RefId {
        self.reference
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn state(&self) -> State {
        self.lock().state.clone()
    }

    /// Applies a function to the state without cloning it.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.lock().state)
    }

    /// The bytes in the arena and the pin on them, if the value is there and its memory was not returned to
    /// the node.
    pub(crate) fn view(self: &Arc<Self>) -> Option<(Extent, View)> {
        match &mut self.lock().state {
            State::Local { extent, views, .. } => {
                let in_use = self.connection.as_ref()?.link.uses.begin()?;
                *views += 1;
                Some((*extent, View { handle: Arc::clone(self), _use: in_use }))
            }
            _ => None,
        }
    }

    fn end_view(&self) {
        let mut inner = self.lock();
        if let State::Local { views, .. } = &mut inner.state {
            *views -= 1;
        }
        self.unmap_if_wanted(inner);
    }

    /// Notes that the node wants the bytes back.
    pub(crate) fn want_unmapped(&self) {
        let mut inner = self.lock();
        if let State::Local { is_wanted, .. } = &mut inner.state {
            *is_wanted = true;
        }
        self.unmap_if_wanted(inner);
    }

    /// Ends the handle with the connection: bytes without readers are returned.
    pub(crate) fn leave(&self, failure: &Arc<Failure>) {
        let mut inner = self.lock();
        if matches!(inner.state, State::Local { views: 0, .. }) {
            inner.state = State::Failed(Arc::clone(failure));
            drop(inner);
            if let Some(connection) = &self.connection {
                connection
                    .link
                    .send_or_lose(&FromClient::Unmapped { token: self.token, reference: self.reference });
            }
        }
    }

    fn unmap_if_wanted(&self, mut inner: MutexGuard<'_, Inner>) {
        if !matches!(inner.state, State::Local { views: 0, is_wanted: true, .. }) {
            return;
        }
        inner.state = State::Ready;
        if let Some(connection) = &self.connection {
            // Deferred under the lock: a later request for the bytes must not overtake it, and nothing waits
            // for room here.
            connection.link.defer(&FromClient::Unmapped { token: self.token, reference: self.reference });
            drop(inner);
            connection.link.send_deferred();
        }
    }

    /// Applies a report of the node. A final state stays, unless the node refuses a put value: then no other
    /// copy exists.
    pub(crate) fn deliver(&self, value: ValueView<'_>) {
        let state = State::from_view(value);
        let is_refusal = matches!(state, State::Failed(_));
        self.advance_if(state, |now| is_refusal || !now.is_final());
    }

    /// Fails the handle unless its value is here already.
    pub(crate) fn fail(&self, failure: &Arc<Failure>) {
        self.advance_if(State::Failed(Arc::clone(failure)), |now| !now.is_final());
    }

    fn advance_if(&self, to: State, may_advance: impl FnOnce(&State) -> bool) {
        let mut inner = self.lock();
        if !may_advance(&inner.state) {
            return;
        }
        inner.state = to;
        let waiters = inner.waiters.take();
        drop(inner);
        if let Some(waiters) = waiters {
            waiters.into_iter().for_each(Waiter::wake);
        }
    }

    /// Requests the bytes if they exist or may exist, unless they were requested already. True if it did.
    pub(crate) fn fetch_if_ready(&self) -> bool {
        self.fetch_from(true)
    }

    /// Asks the node about a reference that was found inside a value, unless it was asked already.
    pub(crate) fn ask_if_held(&self) {
        self.fetch_from(false);
    }

    fn fetch_from(&self, also_ready: bool) -> bool {
        let mut inner = self.lock();
        inner.state = match inner.state {
            State::Held => State::Pending,
            State::Ready if also_ready => State::Fetching,
            _ => return false,
        };
        drop(inner);
        if let Some(connection) = &self.connection {
            connection.link.send_or_lose(&FromClient::Fetch { token: self.token, reference: self.reference });
        }
        true
    }

    /// Registers `waiter` for the next change, unless `done` holds already; returns whether it does.
    pub(crate) fn watch(&self, done: impl FnOnce(&State) -> bool, waiter: impl FnOnce() -> Waiter) -> bool {
        let mut inner = self.lock();
        if done(&inner.state) {
            return true;
        }
        let waiters = inner.waiters.get_or_insert_default();
        let waiter = waiter();
        if !waiters.iter().any(|known| known.is_same(&waiter)) {
            waiters.push(waiter);
        }
        false
    }

    /// Removes a watchlist from the waiters.
    pub(crate) fn unwatch(&self, list: &Arc<News>) {
        if let Some(waiters) = &mut self.lock().waiters {
            waiters.retain(|known| !matches!(known, Waiter::News(news, _) if Arc::ptr_eq(news, list)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        #[cfg(test)]
        testing::count_look();
        self.inner.lock()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.release(self.token, self.reference);
        }
    }
}

/// Drops handles; the node gets the releases of all last clones in one batch.
#[inline]
pub(crate) fn drop_all(handles: &mut Vec<Arc<Handle>>) {
    if !handles.is_empty() {
        drop_some(handles);
    }
}

fn drop_some(handles: &mut Vec<Arc<Handle>>) {
    let mut told: Option<Arc<Connection>> = None;
    for mut last in handles.drain(..).filter_map(Arc::into_inner) {
        let Some(connection) = last.connection.take() else { continue };
        connection.release_later(last.token, last.reference);
        if let Some(other) = told.replace(connection)
            && told.as_ref().is_some_and(|connection| !Arc::ptr_eq(connection, &other))
        {
            other.link.flush();
        }
    }
    if let Some(connection) = told {
        connection.link.flush();
    }
}

/// Refuses references of another session before they are sent to the node of `connection`, which does not
/// know them.
///
/// # Errors
/// `InvalidReference` for the first of them.
pub(crate) fn check_session(connection: &Arc<Connection>, handles: &[Arc<Handle>]) -> Result<()> {
    let node = connection.link.node;
    let is_ours = |of: &Arc<Connection>| Arc::ptr_eq(of, connection) || of.link.node == node;
    match handles.iter().find(|handle| !handle.connection.as_ref().is_none_or(is_ours)) {
        None => Ok(()),
        Some(foreign) => {
            let object = foreign.reference().object;
            let theirs = foreign.connection.as_ref().map_or(foreign.reference().owner, |of| of.link.node);
            let text =
                format!("{object} is of another session, on node {theirs}; this one is on node {node}");
            Err(Error::new(FailureKind::InvalidReference, text))
        }
    }
}

impl Connection {
    /// Makes a handle in this state.
    pub(crate) fn handle(self: &Arc<Self>, reference: RefId, state: State) -> Arc<Handle> {
        self.table.slab.lock().insert(self, reference, state)
    }

    /// Makes handles for future values.
    pub(crate) fn pending<H: FromIterator<Arc<Handle>>>(
        self: &Arc<Self>,
        references: impl Iterator<Item = RefId>,
    ) -> H {
        let mut slab = self.table.slab.lock();
        references.map(|reference| slab.insert(self, reference, State::Pending)).collect()
    }

    /// Makes a handle for a reference that was found inside a value. The node is told with the next record,
    /// or at [`Link::flush`] after the last of them, since a value may contain thousands.
    pub(crate) fn hold(self: &Arc<Self>, reference: RefId) -> Arc<Handle> {
        let handle = self.handle(reference, State::Held);
        match self.link.send_later(&FromClient::Hold { token: handle.token(), reference }) {
            Ok(()) => handle,
            Err(error) => Handle::failed(error),
        }
    }

    /// Keeps an argument of the running task mapped after the task has ended; until then the task pins it.
    pub(crate) fn keep(self: &Arc<Self>, reference: RefId, extent: Extent) -> Option<View> {
        let handle = self.handle(reference, State::local(extent));
        let (_, view) = handle.view()?;
        self.link.send_or_lose(&FromClient::Keep { token: handle.token(), reference });
        Some(view)
    }

    /// Removes a dropped handle and tells the node.
    fn release(&self, token: Token, reference: RefId) {
        self.table.slab.lock().remove(token);
        self.link.send_or_lose(&FromClient::Release { token, reference });
    }

    /// As `release`, for one of many, before [`Link::flush`].
    fn release_later(&self, token: Token, reference: RefId) {
        self.table.slab.lock().remove(token);
        // An error means that the connection is gone, which shows elsewhere.
        let _ = self.link.send_later(&FromClient::Release { token, reference });
    }
}

impl Table {
    /// The handle with this token, if it still lives. The table is unlocked on return: delivery to the handle
    /// may drop its last clone, which locks the table.
    pub(crate) fn get(&self, token: Token) -> Option<Arc<Handle>> {
        self.slab.lock().get(token)
    }

    /// All handles that live.
    pub(crate) fn all(&self) -> Vec<Arc<Handle>> {
        self.slab.lock().all()
    }
}

fn nowhere() -> tharsis_types::ObjectId {
    tharsis_types::ObjectId::output(tharsis_types::TaskId::from_bytes([0; 16]), 0)
}

/// Handles by token.
#[derive(Default)]
struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Generation of new slots: above all generations of dropped slots.
    generation: u32,
}

struct Slot {
    generation: u32,
    handle: Weak<Handle>,
}

impl Slab {
    /// Makes a handle and gives it a token.
    fn insert(&mut self, connection: &Arc<Connection>, reference: RefId, state: State) -> Arc<Handle> {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: self.generation, handle: Weak::new() });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[number as usize];
        let token = Token::from(slot.generation) << 32 | Token::from(number);
        let inner = Mutex::new(Inner { state, waiters: None });
        let connection = Some(Arc::clone(connection));
        let handle = Arc::new(Handle { connection, reference, token, inner });
        slot.handle = Arc::downgrade(&handle);
        handle
    }

    /// The handle with this token, if it still lives.
    fn get(&self, token: Token) -> Option<Arc<Handle>> {
        let slot = self.slots.get(token as u32 as usize)?;
        if Token::from(slot.generation) == token >> 32 { slot.handle.upgrade() } else { None }
    }

    /// Frees the slot of a dropped handle.
    fn remove(&mut self, token: Token) {
        let number = token as u32;
        let Some(slot) = self.slots.get_mut(number as usize) else { return };
        if Token::from(slot.generation) == token >> 32 {
            slot.generation = slot.generation.wrapping_add(1);
            slot.handle = Weak::new();
            self.free.push(number);
            self.shrink();
        }
    }

    /// All handles that live.
    fn all(&self) -> Vec<Arc<Handle>> {
        self.slots.iter().filter_map(|slot| slot.handle.upgrade()).collect()
    }

    /// Frees the memory once every handle is gone; generations continue from the highest one.
    fn shrink(&mut self) {
        const KEPT_SLOTS: usize = 1 << 16;
        if self.free.len() == self.slots.len() && KEPT_SLOTS < self.slots.len() {
            self.generation = self.slots.iter().map(|slot| slot.generation).max().unwrap_or(0);
            self.slots.truncate(KEPT_SLOTS);
            self.slots.shrink_to_fit();
            self.free = (0..KEPT_SLOTS as u32).rev().collect();
        }
    }
}

/// Handles without a node, and the number of looks at handles, for tests of other files.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::cell::Cell;
    use tharsis_types::{ObjectId, TaskId};

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count_look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// Number of looks of this thread at handles.
    pub(crate) fn looks() -> usize {
        LOOKS.get()
    }

    /// A handle that waits for a value; the number tells it from others.
    pub(crate) fn pending(number: usize) -> Arc<Handle> {
        let task = TaskId::from_bytes([0; 16]).child(number as u64);
        let reference = RefId { object: ObjectId::output(task, 0), owner: NodeId(0) };
        let inner = Inner { state: State::Pending, waiters: None };
        Arc::new(Handle { connection: None, reference, token: 0, inner: Mutex::new(inner) })
    }

    /// Number of waiters for the next change of a handle.
    pub(crate) fn waiters(handle: &Handle) -> usize {
        handle.inner.lock().waiters.as_ref().map_or(0, |waiters| waiters.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_handle_is_small() {
        let counts = 2 * size_of::<usize>();
        let bytes = counts + size_of::<Handle>() + size_of::<Slot>();
        assert!(bytes <= 128, "{bytes} bytes per handle");
    }
}
