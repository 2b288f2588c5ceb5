//! `ObjectRef`: a typed reference to a present or future value.

use crate::awaiting;
use crate::codec::{self, REFUSED_REFERENCE};
use crate::error::{Error, Result};
use crate::handles::{Connection, Handle, State};
use crate::settle::{self, Timeout};
use crate::task::Sleep;
use serde::de::{self, DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize, Serializer, ser};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tharsis_types::RefId;

/// A reference to a value of type `T` in the store: the result of a task, or a put value.
///
/// Clones refer to the same value; the value lives until the last of them, on any machine, is dropped. A
/// reference may be part of task arguments, results and put values, and is counted there too. Read it with
/// [`ObjectRef::get`], or `.await` it.
pub struct ObjectRef<T> {
    handle: Arc<Handle>,
    value: PhantomData<fn() -> T>,
}

impl<T> ObjectRef<T> {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, value: PhantomData }
    }

    /// A reference without a value.
    pub(crate) fn failed(error: Error) -> Self {
        Self::new(Handle::failed(error))
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// The value's id and its owner.
    #[must_use]
    pub fn id(&self) -> RefId {
        self.handle.reference()
    }

    /// The same reference, for code that does not know the type of the value, or that knows it again. Reading
    /// a value as another type fails with `DataCorrupt` or gives what its bytes mean there.
    #[must_use]
    pub fn cast<U>(self) -> ObjectRef<U> {
        ObjectRef::new(self.handle)
    }

    /// Whether the task has ended, with a value or a failure, as far as is known here.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        if let Some(connection) = self.handle.connection() {
            self.handle.ask_if_held();
            connection.link.drain();
        }
        self.handle.look(State::is_ready)
    }
}

impl<T: DeserializeOwned> ObjectRef<T> {
    /// Waits for the value and reads it.
    ///
    /// # Errors
    /// The failure of the task, see [`Error::kind`].
    pub fn get(&self) -> Result<T> {
        settle::one(&self.handle, None)
    }

    /// Waits for the value for at most `timeout` (seconds, or a `Duration`); 0 does not wait.
    ///
    /// # Errors
    /// `GetTimeout` if it is not here in time (a later `get` may succeed), `InvalidArgument` for a timeout
    /// that is negative or not a number, else as [`ObjectRef::get`].
    pub fn get_timeout(&self, timeout: impl Into<Timeout>) -> Result<T> {
        settle::one(&self.handle, Some(timeout.into()))
    }
}

impl<T> Clone for ObjectRef<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.handle))
    }
}

impl<T> fmt::Debug for ObjectRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectRef<{}>({})", std::any::type_name::<T>(), self.id().object)
    }
}

impl<T> Serialize for ObjectRef<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(error) = settle::early_failure(&self.handle) {
            return Err(ser::Error::custom(error));
        }
        if codec::offer_reference(&self.handle) {
            self.id().serialize(serializer)
        } else {
            Err(ser::Error::custom(REFUSED_REFERENCE))
        }
    }
}

impl<'de, T> Deserialize<'de> for ObjectRef<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reference = RefId::deserialize(deserializer)?;
        codec::adopt_reference(reference).map(Self::new).ok_or_else(|| de::Error::custom(REFUSED_REFERENCE))
    }
}

/// Waits for a value; made by `.await` on an [`ObjectRef`].
///
/// # Cancel safety
/// Dropping it loses nothing: the task continues, and another `await` or `get` finds the value.
pub struct RefFuture<T> {
    handle: Arc<Handle>,
    /// The connection at which this future is registered as waiting.
    entered: Option<Arc<Connection>>,
    /// Its wait in a task, whose cancellation ends it.
    sleep: Option<Sleep>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for RefFuture<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if self.entered.is_none()
            && !self.handle.look(State::is_final)
            && let Some(connection) = self.handle.connection().cloned()
        {
            connection.link.inbound.enter_async();
            awaiting::enter_await();
            self.entered = Some(connection);
        }
        while settle::poll_final(&self.handle, context) {
            // The node may have taken the bytes back meanwhile; then they are requested again.
            if let Some(decoded) = settle::decode_final(&self.handle) {
                self.leave();
                return Poll::Ready(decoded);
            }
        }
        let future = &mut *self;
        if settle::is_cancelled_or_wakes(&future.handle, &mut future.sleep, context) {
            self.leave();
            return Poll::Ready(Err(settle::cancelled()));
        }
        Poll::Pending
    }
}

impl<T> RefFuture<T> {
    fn leave(&mut self) {
        self.sleep = None;
        if let Some(connection) = self.entered.take() {
            connection.link.inbound.leave_async();
            awaiting::leave_await(&connection.link);
        }
    }
}

impl<T> Drop for RefFuture<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for RefFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RefFuture({})", self.handle.reference().object)
    }
}

impl<T: DeserializeOwned> IntoFuture for ObjectRef<T> {
    type Output = Result<T>;
    type IntoFuture = RefFuture<T>;

    fn into_future(self) -> RefFuture<T> {
        RefFuture { handle: self.handle, entered: None, sleep: None, value: PhantomData }
    }
}

impl<T: DeserializeOwned> IntoFuture for &ObjectRef<T> {
    type Output = Result<T>;
    type IntoFuture = RefFuture<T>;

    fn into_future(self) -> RefFuture<T> {
        RefFuture { handle: Arc::clone(&self.handle), entered: None, sleep: None, value: PhantomData }
    }
}
