//! The consumer's side of a stream.
//!
//! A stream is an actor that holds an iterator (`producer.rs`) and a *window*: the items that were asked for
//! and not taken. Each item is the result of one call, so it is an object like any other, on whatever node.
//! The window is what bounds the producer, which makes nothing that was not asked for: taking an item asks
//! for one more. Positions stand in the calls, so a call that is repeated after a loss asks for the same
//! item.
//!
//! A stream has one consumer. A stream that is sent elsewhere takes its window along.

use crate::actor::ActorHandle;
use crate::awaiting;
use crate::codec::Whereabouts;
use crate::error::{Error, Result};
use crate::get::cancel;
use crate::handles::{Connection, Handle, State, Waiter};
use crate::options::Options;
use crate::reference::ObjectRef;
use crate::registry::Definition;
use crate::settle::{self, Timeout};
use crate::submit::Call;
use crate::task::Sleep;
use futures_core::Stream;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tharsis_types::failure::UserError;
use tharsis_types::{Failure, FailureKind, FunctionId};

/// Items that may exist and not be taken, unless the options say otherwise.
const UNCONSUMED_MAX_DEFAULT: u32 = 16;
/// Type of the error that stands behind the last item.
const END: &str = "tharsis::stream::End";
/// Text of the error of a stream that belongs to another consumer.
const GIVEN_AWAY: &str = "the stream was given away: it has one consumer";

/// References to the items of a remote function that returns an iterator, in their order.
///
/// It is an iterator, which waits for each item until it is made, and a futures `Stream`. Each item is a
/// reference like any other: it can be read, kept, and given to tasks. If the function fails, the last item
/// is a reference to that failure.
///
/// At most `unconsumed_max` items (16 by default) exist that were not taken; taking one makes the function go
/// on. Dropping the stream ends the function, as does the end of the process that consumes it.
///
/// A stream can be given to a task or put inside a value: it goes on there with the next item. It has one
/// consumer: whoever asks for an item here gets an error then. If the call or the put that was to take it
/// fails, it stays here. A graph has it from the call that adds it until the graph is submitted, which gives
/// it away, or dropped, which gives it back.
pub struct ObjectRefStream<T> {
    /// `None` when the last item was taken.
    source: Option<Source>,
    unconsumed_max: u32,
    /// Number of items that were taken.
    taken: u64,
    /// Items that were asked for and not taken.
    window: VecDeque<ObjectRef<T>>,
    /// If it was sent elsewhere, the window and the rest belong to others.
    place: Whereabouts,
    /// Whether whoever asked here, where it is no more, has been told so.
    is_told: bool,
    /// The connection at which a future is registered as waiting for the next item.
    entered: Option<Arc<Connection>>,
    /// Its wait in a task, whose cancellation ends it.
    sleep: Option<Sleep>,
}

/// The producer, and how it is asked for items.
#[derive(Clone)]
struct Source {
    actor: ActorHandle,
    item: &'static Definition,
    site: &'static Location<'static>,
    max_retries: Option<i32>,
}

impl Call<'_> {
    /// Calls a function that returns an iterator; `item` is what is called for an item.
    #[must_use]
    pub fn stream<T>(self, item: &'static Definition) -> ObjectRefStream<T> {
        let of_function = (self.definition.options)();
        let own = self.options.as_ref();
        let retries = own.map_or(of_function.max_retries, |own| own.max_retries);
        let unconsumed_max = own.map_or(of_function.unconsumed_max, |own| own.unconsumed_max);
        // The options that the items have by themselves cost no look-up.
        let max_retries = retries.filter(|_| retries != (item.options)().max_retries);
        let site = self.site;
        let source = Source { actor: self.actor(), item, site, max_retries };
        let mut stream = ObjectRefStream {
            source: Some(source),
            // With a bound of 0, which is refused, the first item says so.
            unconsumed_max: unconsumed_max.unwrap_or(UNCONSUMED_MAX_DEFAULT).max(1),
            taken: 0,
            window: VecDeque::new(),
            place: Whereabouts::default(),
            is_told: false,
            entered: None,
            sleep: None,
        };
        stream.ask();
        stream
    }
}

impl Source {
    /// Asks for the item at a position.
    fn ask<T>(&self, position: u64, taken: u64) -> ObjectRef<T> {
        let call = Call {
            definition: self.item,
            options: self.max_retries.map(|count| Options::default().max_retries(count)),
            site: self.site,
            arguments: &mut |arguments| {
                self.actor.begin(arguments)?;
                arguments.push::<u64, _>(0, position)?;
                arguments.push::<u64, _>(1, taken)
            },
        };
        call.one()
    }
}

impl<T> ObjectRefStream<T> {
    /// The next item, for which it waits for at most `timeout` (seconds, or a `Duration`); `None` at the end.
    ///
    /// # Errors
    /// `GetTimeout` if it is not there in time (a later call may succeed), `InvalidArgument` for a timeout
    /// that is negative or not a number, `Cancelled` in a task that is cancelled.
    pub fn next_timeout(&mut self, timeout: impl Into<Timeout>) -> Result<Option<ObjectRef<T>>> {
        self.next_within(Some(timeout.into()))
    }

    fn next_within(&mut self, timeout: Option<Timeout>) -> Result<Option<ObjectRef<T>>> {
        if !self.place.is_here() {
            return Ok(self.misplaced());
        }
        self.is_told = false;
        match self.window.front() {
            Some(first) => settle::until_ready(first.handle(), timeout)?,
            None => return Ok(None),
        }
        Ok(self.take_first())
    }

    /// The item of a stream that was given away: an error, so that nobody takes that for the end, and then
    /// nothing.
    fn misplaced(&mut self) -> Option<ObjectRef<T>> {
        if self.place.is_gone() {
            self.window.clear();
            self.source = None;
        }
        let is_told = std::mem::replace(&mut self.is_told, true);
        (!is_told).then(|| ObjectRef::failed(Error::new(FailureKind::InvalidReference, GIVEN_AWAY)))
    }

    /// Takes the first item of the window, which is ready.
    fn take_first(&mut self) -> Option<ObjectRef<T>> {
        let item = self.window.pop_front()?;
        self.taken += 1;
        match item.handle().look(Item::of) {
            Item::Value => self.ask(),
            Item::Failure => self.close(),
            Item::End => {
                self.close();
                return None;
            }
        }
        Some(item)
    }

    /// Asks for items until the window is full.
    fn ask(&mut self) {
        let Some(source) = &self.source else { return };
        while self.window.len() < self.unconsumed_max as usize {
            let position = self.taken + self.window.len() as u64;
            self.window.push_back(source.ask(position, self.taken));
        }
    }

    /// Nothing more is taken: the calls that have not begun are taken back, and the producer ends.
    fn close(&mut self) {
        // The last ones first, so that none of them begins meanwhile.
        while let Some(item) = self.window.pop_back() {
            if !item.handle().look(State::is_ready) {
                // An error means that the connection is gone, and the producer with it.
                let _ = cancel(&item, false, false);
            }
        }
        self.source = None;
    }

    /// The last item of the stream of a task that is cancelled.
    fn cancelled(&mut self, error: Error) -> ObjectRef<T> {
        self.close();
        ObjectRef::failed(error)
    }

    fn leave(&mut self) {
        self.sleep = None;
        if let Some(connection) = self.entered.take() {
            connection.link.inbound.leave_async();
            awaiting::leave_await(&connection.link);
        }
    }

    fn enter(&mut self, handle: &Handle) {
        if self.entered.is_none()
            && let Some(connection) = handle.connection()
        {
            connection.link.inbound.enter_async();
            awaiting::enter_await();
            self.entered = Some(Arc::clone(connection));
        }
    }
}

/// An item that is ready.
enum Item {
    End,
    Failure,
    Value,
}

impl Item {
    fn of(state: &State) -> Self {
        match state {
            State::Failed(failure) => match &failure.user {
                Some(user) if user.type_name == END => Self::End,
                _ => Self::Failure,
            },
            _ => Self::Value,
        }
    }
}

/// The failure of a call for an item behind the last one.
#[must_use]
pub fn end_of_stream() -> Failure {
    let mut failure = Failure::new(FailureKind::UserError, "the stream has ended");
    failure.user = Some(UserError { type_name: END.to_owned(), payload: Vec::new() });
    failure
}

impl<T> Drop for ObjectRefStream<T> {
    fn drop(&mut self) {
        self.leave();
        if self.place.is_here() {
            self.close();
        }
    }
}

impl<T> Iterator for ObjectRefStream<T> {
    type Item = ObjectRef<T>;

    fn next(&mut self) -> Option<ObjectRef<T>> {
        match self.next_within(None) {
            Ok(item) => item,
            Err(error) if error.kind() == FailureKind::Cancelled => Some(self.cancelled(error)),
            // The connection is lost, and the item has failed with it.
            Err(_) => self.take_first(),
        }
    }
}

/// Dropping it loses nothing but what was not taken.
impl<T> Stream for ObjectRefStream<T> {
    type Item = ObjectRef<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ObjectRef<T>>> {
        let stream = self.get_mut();
        if !stream.place.is_here() {
            stream.leave();
            return Poll::Ready(stream.misplaced());
        }
        stream.is_told = false;
        let Some(handle) = stream.window.front().map(|first| Arc::clone(first.handle())) else {
            return Poll::Ready(None);
        };
        handle.ask_if_held();
        if !handle.look(State::is_ready) {
            stream.enter(&handle);
        }
        if !handle.watch(State::is_ready, || Waiter::Task(context.waker().clone())) {
            if !settle::is_cancelled_or_wakes(&handle, &mut stream.sleep, context) {
                return Poll::Pending;
            }
            stream.leave();
            return Poll::Ready(Some(stream.cancelled(settle::cancelled())));
        }
        stream.leave();
        Poll::Ready(stream.take_first())
    }
}

impl<T> fmt::Debug for ObjectRefStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectRefStream<{}>({} items taken)", std::any::type_name::<T>(), self.taken)
    }
}

/// A stream on its way to another task.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Sent<T> {
    source: Option<(ActorHandle, FunctionId, Option<i32>)>,
    unconsumed_max: u32,
    taken: u64,
    window: Vec<ObjectRef<T>>,
}

impl<T> Serialize for ObjectRefStream<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.place.leave() {
            return Err(serde::ser::Error::custom(GIVEN_AWAY));
        }
        let source = self.source.as_ref();
        let sent = Sent {
            source: source.map(|source| (source.actor.clone(), source.item.id(), source.max_retries)),
            unconsumed_max: self.unconsumed_max,
            taken: self.taken,
            window: self.window.iter().cloned().collect(),
        };
        sent.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for ObjectRefStream<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = Sent::deserialize(deserializer)?;
        let source = match sent.source {
            None => None,
            Some((actor, function, max_retries)) => {
                let item = Definition::find(function).ok_or_else(|| {
                    de::Error::custom(format!("this program has no stream with the function {function}"))
                })?;
                Some(Source { actor, item, site: Location::caller(), max_retries })
            }
        };
        Ok(Self {
            source,
            unconsumed_max: sent.unconsumed_max,
            taken: sent.taken,
            window: sent.window.into(),
            place: Whereabouts::default(),
            is_told: false,
            entered: None,
            sleep: None,
        })
    }
}
