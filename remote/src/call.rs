//! Support for the code that `#[remote]` generates: arguments and results.

use crate::awaiting;
use crate::codec::{Decoder, Encoded, Gift, Payload};
use crate::error::{Error, Result};
use crate::handles::{self, Connection, Handle, check_session};
use crate::hosted::Hosted;
use crate::placement::PlacementGroup;
use crate::planned::{Planned, PlannedArgument};
use crate::reference::ObjectRef;
use crate::regions::Written;
use crate::settle;
use crate::work::Argument;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;
use tharsis_protos::records::{ValueView, pack};
use tharsis_types::failure::UserError;
use tharsis_types::limits::INLINE_BYTES_MAX;
use tharsis_types::{Dependency, Failure, FailureKind, TaskClass};

/// The arguments of a call that is being made.
#[derive(Default)]
pub struct Arguments {
    pub(crate) encoded: Encoded,
    pub(crate) dependencies: Vec<Dependency>,
    /// Results of tasks of a graph that is not submitted yet.
    pub(crate) planned: Vec<PlannedArgument>,
    pub(crate) keep: Vec<Arc<Handle>>,
}

impl Arguments {
    pub(crate) fn clear(&mut self) {
        self.encoded.clear();
        self.dependencies.clear();
        self.planned.clear();
        handles::drop_all(&mut self.keep);
    }

    /// Adds the argument of one parameter.
    ///
    /// # Errors
    /// `InvalidArgument` if it cannot be encoded, `DependencyFailed` for a reference that was never
    /// submitted.
    pub fn push<T, A: IntoArg<T>>(&mut self, parameter: u16, argument: A) -> Result<()> {
        argument.into_arg(parameter, self)
    }

    /// Adds the actor whose method is called.
    pub(crate) fn push_actor(&mut self, handle: &Arc<Handle>) {
        self.dependencies.push(Dependency { reference: handle.reference(), parameter: Dependency::ACTOR });
        self.keep.push(Arc::clone(handle));
    }

    /// Adds the placement group inside which the task runs.
    ///
    /// # Errors
    /// The failure of a group that was never asked for.
    pub(crate) fn push_group(&mut self, group: &PlacementGroup) -> Result<()> {
        self.push_reference(Dependency::GROUP, Arc::clone(group.object().handle()))
    }

    fn push_reference(&mut self, parameter: u16, handle: Arc<Handle>) -> Result<()> {
        if let Some(error) = settle::early_failure(&handle) {
            return Err(error);
        }
        self.dependencies.push(Dependency { reference: handle.reference(), parameter });
        self.keep.push(handle);
        Ok(())
    }
}

/// Arguments that can be given for a parameter of type `T`: a `T`, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a parameter of type `{T}`",
    label = "expected `{T}`, `ObjectRef<{T}>` or `&ObjectRef<{T}>`",
    note = "the type must be encodable (`serde::Serialize`), or a reference to the value of another task"
)]
pub trait IntoArg<T> {
    /// Adds it to the arguments of a call.
    ///
    /// # Errors
    /// As [`Arguments::push`].
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()>;
}

impl<T: Serialize> IntoArg<T> for T {
    fn into_arg(self, _: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.encoded.push(&self)
    }
}

impl<T> IntoArg<T> for ObjectRef<T> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.push_reference(parameter, Arc::clone(self.handle()))
    }
}

impl<T> IntoArg<T> for &ObjectRef<T> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.push_reference(parameter, Arc::clone(self.handle()))
    }
}

impl<T> IntoArg<ObjectRef<T>> for &ObjectRef<T> {
    fn into_arg(self, _: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.encoded.push(self)
    }
}

impl IntoArg<String> for &str {
    fn into_arg(self, _: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.encoded.push(self)
    }
}

/// A parameter that takes the values of many references: `f(values: Values<T>)` is called with
/// `&[ObjectRef<T>]` or `Vec<ObjectRef<T>>`, and runs when all of them have values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values<T>(pub Vec<T>);

impl<T> std::ops::Deref for Values<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> IntoIterator for Values<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> IntoArg<Values<T>> for &[ObjectRef<T>] {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        self.iter()
            .try_for_each(|reference| arguments.push_reference(parameter, Arc::clone(reference.handle())))
    }
}

impl<T> IntoArg<Values<T>> for &Vec<ObjectRef<T>> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        IntoArg::<Values<T>>::into_arg(self.as_slice(), parameter, arguments)
    }
}

impl<T> IntoArg<Values<T>> for Vec<ObjectRef<T>> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        IntoArg::<Values<T>>::into_arg(self.as_slice(), parameter, arguments)
    }
}

impl<T> IntoArg<T> for Planned<T> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        arguments.planned.push(PlannedArgument { result: self.result, parameter });
        Ok(())
    }
}

impl<T> IntoArg<T> for &Planned<T> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        (*self).into_arg(parameter, arguments)
    }
}

impl<T> IntoArg<Values<T>> for &[Planned<T>] {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        let all = self.iter().map(|planned| PlannedArgument { result: planned.result, parameter });
        arguments.planned.extend(all);
        Ok(())
    }
}

impl<T> IntoArg<Values<T>> for &Vec<Planned<T>> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        IntoArg::<Values<T>>::into_arg(self.as_slice(), parameter, arguments)
    }
}

impl<T> IntoArg<Values<T>> for Vec<Planned<T>> {
    fn into_arg(self, parameter: u16, arguments: &mut Arguments) -> Result<()> {
        IntoArg::<Values<T>>::into_arg(self.as_slice(), parameter, arguments)
    }
}

/// Return type of a remote function that returns as many objects as the caller asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returns<T>(pub Vec<T>);

impl<T> FromIterator<T> for Returns<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Types that can be a parameter of a remote function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a remote function",
    label = "must be decodable (`serde::de::DeserializeOwned`)"
)]
pub trait Parameter: Sized {
    /// Takes the argument of a starting task.
    ///
    /// # Errors
    /// `InvalidArgument` or `DataCorrupt` if it does not decode.
    fn take(call: &mut TaskCall<'_>, parameter: u16) -> Result<Self, Failure>;
}

impl<T: DeserializeOwned> Parameter for T {
    fn take(call: &mut TaskCall<'_>, parameter: u16) -> Result<Self, Failure> {
        match call.arguments.iter().position(|argument| argument.parameter == parameter) {
            Some(at) => call.by_reference(at),
            None => call.by_value(parameter),
        }
    }
}

impl<T: DeserializeOwned> Parameter for Values<T> {
    fn take(call: &mut TaskCall<'_>, parameter: u16) -> Result<Self, Failure> {
        let all = 0..call.arguments.len();
        let ours = all.filter(|at| call.arguments[*at].parameter == parameter).collect::<Vec<_>>();
        ours.into_iter().map(|at| call.by_reference(at)).collect::<Result<Vec<T>, _>>().map(Self)
    }
}

/// A task that is about to run: its arguments, and the buffer for its results.
pub struct TaskCall<'a> {
    connection: &'a Arc<Connection>,
    class: &'a TaskClass,
    by_value: Decoder<'a>,
    arguments: &'a [Argument],
    hosted: &'a Hosted,
    pub(crate) outputs: Outputs,
}

/// The results of a task, packed for its report.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) count: u32,
    pub(crate) bytes: Vec<u8>,
    /// Must be kept until the report was sent.
    written: Vec<Written>,
    keep: Vec<Arc<Handle>>,
    given: Vec<Gift>,
    encoded: Encoded,
    frame: Vec<u8>,
}

thread_local! {
    /// Buffers for results, reused from task to task.
    static OUTPUTS: RefCell<Outputs> = RefCell::default();
}

impl<'a> TaskCall<'a> {
    pub(crate) fn new(
        connection: &'a Arc<Connection>,
        class: &'a TaskClass,
        payload: &'a Payload,
        arguments: &'a [Argument],
        hosted: &'a Hosted,
    ) -> Result<Self, Failure> {
        let by_value = Decoder::new(Some(Arc::clone(connection)), payload).map_err(into_failure)?;
        let mut outputs = OUTPUTS.take();
        outputs.clear();
        Ok(Self { connection, class, by_value, arguments, hosted, outputs })
    }

    /// Takes the argument of one parameter; to be called in the order of the parameters.
    ///
    /// # Errors
    /// As [`Parameter::take`].
    pub fn argument<T: Parameter>(&mut self, parameter: u16) -> Result<T, Failure> {
        T::take(self, parameter)
    }

    /// Checks that no argument is left; to be called after the last one.
    ///
    /// # Errors
    /// `InvalidArgument` if there are more arguments.
    pub fn finish_arguments(&mut self) -> Result<(), Failure> {
        if self.by_value.left() == 0 {
            return Ok(());
        }
        let name = &self.class.function_name;
        Err(Failure::new(
            FailureKind::InvalidArgument,
            format!("{name} was called with more arguments than it has"),
        ))
    }

    /// Keeps the actor that a constructor made in this worker.
    ///
    /// # Errors
    /// `Internal` if the worker has an actor.
    pub fn construct<A: Any>(&mut self, actor: A) -> Result<(), Failure> {
        self.hosted.keep(actor)?;
        self.give(&())
    }

    /// Keeps an actor that runs several calls at the same time.
    ///
    /// # Errors
    /// `Internal` if the worker has an actor.
    pub fn construct_shared<A: Any + Send + Sync>(&mut self, actor: A) -> Result<(), Failure> {
        self.hosted.keep_shared(actor)?;
        self.give(&())
    }

    /// The actor of this worker.
    #[must_use]
    pub fn hosted(&self) -> Hosted {
        self.hosted.clone()
    }

    /// The snapshot from which the actor continues, if this constructs it again.
    pub(crate) fn snapshot(&self) -> Result<Option<Decoder<'_>>, Failure> {
        let given = self.arguments.iter().find(|argument| argument.parameter == Dependency::SNAPSHOT);
        let decoder = |given: &'a Argument| {
            let payload = given.payload(self.connection)?;
            Decoder::new(Some(Arc::clone(self.connection)), payload)
        };
        given.map(decoder).transpose().map_err(into_failure)
    }

    /// Adds a result.
    ///
    /// # Errors
    /// `InvalidArgument` if it cannot be encoded, `StoreFull` or `ObjectTooLarge` if the store has no room
    /// for it.
    pub fn give<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        self.outputs.push(self.connection, value).map_err(into_failure)
    }

    /// Adds the results of a function that returns `Returns`.
    ///
    /// # Errors
    /// `ReturnsMismatch` if there are more or fewer, else as [`TaskCall::give`].
    pub fn give_all<T: Serialize>(&mut self, values: Returns<T>) -> Result<(), Failure> {
        let (wanted, found) = (self.class.returns as usize, values.0.len());
        if wanted != found {
            let text = format!("num_returns is {wanted}, the function returned {found} values");
            return Err(Failure::new(FailureKind::ReturnsMismatch, text));
        }
        values.0.iter().try_for_each(|value| self.give(value))
    }

    /// Runs the future of an async function.
    ///
    /// # Errors
    /// `Internal` if no runtime can be made.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Failure> {
        awaiting::block_on(&self.connection.link, future).map_err(into_failure)
    }

    fn by_value<T: DeserializeOwned>(&mut self, parameter: u16) -> Result<T, Failure> {
        self.by_value.next().map_err(|error| self.bad_argument(parameter, &error))
    }

    fn by_reference<T: DeserializeOwned>(&self, at: usize) -> Result<T, Failure> {
        let argument = &self.arguments[at];
        let value = argument
            .payload(self.connection)
            .and_then(|payload| crate::codec::decode(Some(self.connection), payload));
        value.map_err(|error| self.bad_argument(argument.parameter, &error))
    }

    fn bad_argument(&self, parameter: u16, error: &Error) -> Failure {
        let name = &self.class.function_name;
        let text = format!("argument {parameter} of {name}: {}", error.failure().message);
        let kind = match error.kind() {
            FailureKind::DataCorrupt => FailureKind::InvalidArgument,
            other => other,
        };
        Failure::new(kind, text)
    }
}

impl Outputs {
    /// Returns the buffers for the next task; to be called after the report was sent.
    pub(crate) fn recycle(mut self) {
        const KEPT_BYTES: usize = 64 << 10;
        self.clear();
        if self.bytes.capacity() <= KEPT_BYTES && self.encoded.in_band.capacity() <= KEPT_BYTES {
            OUTPUTS.set(self);
        }
    }

    /// Notes that the report with these was sent.
    pub(crate) fn sent(&mut self) {
        Gift::send_all(&mut self.given);
    }

    fn clear(&mut self) {
        self.given.clear();
        self.count = 0;
        self.bytes.clear();
        self.written.clear();
        handles::drop_all(&mut self.keep);
        self.encoded.clear();
    }

    fn push<T: Serialize>(&mut self, connection: &Arc<Connection>, value: &T) -> Result<()> {
        let Self { encoded, frame, .. } = self;
        encoded.clear();
        encoded.push(value)?;
        check_session(connection, &encoded.keep)?;
        let layout = encoded.layout()?;
        if layout.total_len() <= INLINE_BYTES_MAX {
            frame.clear();
            layout.push_frame(&encoded.in_band, &encoded.buffers, frame);
            pack::output(&mut self.bytes, &ValueView::Inline(frame), &encoded.nested);
        } else {
            let written = {
                let Connection { link, regions, .. } = &**connection;
                regions.write_frame(link, &encoded.in_band, &encoded.buffers, &layout)?
            };
            pack::output(&mut self.bytes, &ValueView::Local(written.extent), &encoded.nested);
            self.written.push(written);
        }
        // A buffer may be a place in the arena, which cannot be read while it may still be written.
        encoded.buffers.clear();
        self.keep.append(&mut encoded.keep);
        self.given.append(&mut encoded.given);
        self.count += 1;
        Ok(())
    }
}

pub(crate) fn into_failure(error: Error) -> Failure {
    Arc::unwrap_or_clone(error.into_shared())
}

/// Converts an error value of a user's function to a failure. Generated code calls
/// `(&Probe(&error)).to_failure()` with both traits in scope: method lookup takes [`TypedError`] where it
/// applies and [`PlainError`] elsewhere.
pub struct Probe<'a, E>(pub &'a E);

/// Conversion of errors that can be encoded; they keep their type.
pub trait TypedError {
    /// The failure that carries the error.
    fn to_failure(&self) -> Failure;
}

/// Conversion of other errors; they keep their text.
pub trait PlainError {
    /// The failure that carries the error's text.
    fn to_failure(&self) -> Failure;
}

impl<E: Display + Serialize + DeserializeOwned + 'static> TypedError for Probe<'_, E> {
    fn to_failure(&self) -> Failure {
        // A failure of another task that the function passed on is the cause, and keeps its own type.
        if let Some(error) = (self.0 as &dyn Any).downcast_ref::<Error>() {
            let text = "the function passed on an error of another task";
            return user_failure::<E>(text.to_owned(), Vec::new()).because(error.failure().clone());
        }
        user_failure::<E>(format!("{:#}", self.0), postcard::to_allocvec(self.0).unwrap_or_default())
    }
}

impl<E: Display> PlainError for &Probe<'_, E> {
    fn to_failure(&self) -> Failure {
        user_failure::<E>(format!("{:#}", self.0), Vec::new())
    }
}

fn user_failure<E>(text: String, payload: Vec<u8>) -> Failure {
    let mut failure = Failure::new(FailureKind::UserError, text);
    failure.user = Some(UserError { type_name: std::any::type_name::<E>().to_owned(), payload });
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
    #[error("shard {0} is lost")]
    struct Lost(u32);

    #[derive(Debug, thiserror::Error)]
    #[error("plain")]
    struct Plain;

    #[test]
    #[allow(clippy::needless_borrow, reason = "as the generated code has it")]
    fn errors_keep_their_type_where_they_can() {
        let typed = Error::from((&Probe(&Lost(3))).to_failure());
        assert_eq!(typed.downcast::<Lost>(), Some(Lost(3)));
        assert_eq!(typed.failure().message, "shard 3 is lost");
        let plain = (&Probe(&Plain)).to_failure();
        assert_eq!((plain.message.as_str(), plain.user.unwrap().payload.len()), ("plain", 0));
        let passed_on = Error::from((&Probe(&typed)).to_failure());
        assert_eq!(passed_on.kind(), FailureKind::UserError);
        assert_eq!(passed_on.downcast::<Lost>(), Some(Lost(3)), "the cause behind it keeps its type");
    }
}
