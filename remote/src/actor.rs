//! Actors: the handle of a caller.
//!
//! A handle is a reference to the object that the constructor makes. A call takes that reference as its first
//! argument, so the node orders it behind the constructor, and the actor lives as long as a reference does.
//! The state itself never leaves the worker that constructed it (`hosted.rs`).

use crate::call::Arguments;
use crate::error::Result;
use crate::get::cancel;
use crate::options::Options;
use crate::reference::ObjectRef;
use crate::settle;
use serde::{Deserialize, Serialize};
use tharsis_protos::records::FromClient;
use tharsis_types::{Failure, FailureKind, RetryOn};

/// A handle of an actor of any type; `#[actor]` wraps it in a type with the actor's methods.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActorHandle {
    object: ObjectRef<()>,
    max_task_retries: i32,
    max_pending_calls: u32,
    out_of_order: bool,
    retry_on: RetryOn,
}

/// Handles of actors, made by `#[actor]`.
pub trait Actor {
    /// The handle behind the methods.
    #[doc(hidden)]
    fn handle(&self) -> &ActorHandle;
}

impl ActorHandle {
    /// A handle whose calls have these options of the actor.
    pub(crate) fn new(object: ObjectRef<()>, options: &Options) -> Self {
        let Options { max_task_retries, max_pending_calls, out_of_order, ref retry_on, .. } = *options;
        Self { object, max_task_retries, max_pending_calls, out_of_order, retry_on: retry_on.clone() }
    }

    /// Begins the arguments of a call of a method: the actor is the first.
    ///
    /// # Errors
    /// `ActorDied` if the constructor could not be submitted.
    pub fn begin(&self, arguments: &mut Arguments) -> Result<()> {
        if let Some(error) = settle::early_failure(self.object.handle()) {
            let cause = error.failure().root().clone();
            return Err(Failure::new(FailureKind::ActorDied, "there is no actor").because(cause).into());
        }
        arguments.push_actor(self.object.handle());
        Ok(())
    }

    /// The options of a call of a method.
    #[must_use]
    pub fn method_options(&self) -> Option<Options> {
        let Self { max_task_retries, max_pending_calls, out_of_order, ref retry_on, .. } = *self;
        let is_usual = (max_task_retries, max_pending_calls, out_of_order) == (0, 0, false);
        let options = || {
            let retried = Options::default().max_retries(max_task_retries);
            let options = retried.max_pending_calls(max_pending_calls).allow_out_of_order(out_of_order);
            Options { retry_on: retry_on.clone(), ..options }
        };
        (!is_usual).then(options)
    }
}

/// Ends an actor at once, whatever it does; it is not started again.
///
/// A call that runs fails with `ActorDied` and `executed: unknown`, calls that wait with `executed: no`. It
/// is no error if the actor has ended.
///
/// # Errors
/// The loss of the connection.
pub fn kill(actor: &impl Actor) -> Result<()> {
    cancel(&actor.handle().object, true, false)
}

/// Kills the worker of an actor as a crash would, whatever it does: the actor is started again if it has a
/// restart left (`max_restarts`), and ends otherwise.
///
/// A call that runs fails with `ActorUnavailable` and `executed: unknown`, or is repeated if
/// `max_task_retries` allows it; calls that wait run when the actor is there again, which goes on from its
/// last checkpoint. It is no error if the actor has ended. One that is being constructed is left alone.
///
/// # Errors
/// The loss of the connection.
pub fn restart(actor: &impl Actor) -> Result<()> {
    let object = &actor.handle().object;
    match object.handle().connection() {
        Some(connection) => connection.link.send(&FromClient::Restart { reference: object.id() }),
        None => Ok(()),
    }
}
