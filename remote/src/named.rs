//! Actors with names: created, found, and created unless they are there.
//!
//! A name stands in the control store beside the reference of its actor, under the namespace of the job. It
//! is claimed before the constructor is submitted, when the id of the actor is known already, so of several
//! who create an actor of one name at the same time one does. Nobody removes the name of an actor that has
//! ended: whoever finds one looks whether the actor lives, and the name of one that does not can be taken
//! over. Calls go to the actor itself and never ask for its name.
//!
//! Between the claim and the submission the owner does not know the actor yet. So one that its owner does not
//! know counts as ended only after a while, and whoever has submitted one looks whether the name is still its
//! own: a name that was taken over meanwhile is given up, with the actor.

use crate::actor::ActorHandle;
use crate::client::Client;
use crate::current;
use crate::error::{Error, Result};
use crate::get::cancel;
use crate::handles::{Handle, State};
use crate::options::Options;
use crate::reference::ObjectRef;
use crate::registry::{self, Definition};
use crate::settle::{self, Timeout};
use crate::submit::Call;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_protos::handshake::{NameAct, NameQuestion, Named};
use tharsis_types::limits::NAME_BYTES_MAX;
use tharsis_types::{FailureKind, FunctionId, RefId};

/// The longest time in which the owner of an actor says whether it has ended. One that is being constructed
/// is silent for longer, and lives.
const LIVES_WAIT: Duration = Duration::from_secs(2);
/// The time for which an actor may be unknown to its owner after its name was claimed.
const SUBMIT_WAIT: Duration = Duration::from_secs(1);
/// Interval of looks at an actor that is not known yet.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The record under a name.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    reference: RefId,
    constructor: FunctionId,
    type_path: String,
    max_task_retries: i32,
    max_pending_calls: u32,
    out_of_order: bool,
}

/// Whether an actor that has the name already is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfThere {
    /// It is.
    Refuse,
    /// Its handle is returned.
    Get,
}

impl Call<'_> {
    /// Calls the constructor of an actor with a name.
    ///
    /// # Errors
    /// `NameTaken` if an actor that lives has the name, unless that one is wanted; `InvalidArgument` for a
    /// name that cannot be one, or if the actor of that name has another type; the errors of the control
    /// store.
    pub fn named(self, name: &str, if_there: IfThere) -> Result<ActorHandle> {
        check(name)?;
        let client = current::current()?;
        let definition = self.definition;
        let over = match look(&client, name)? {
            Named::Is(record) => match living(&client, definition, name, &record, SUBMIT_WAIT)? {
                Some(handle) => return there(handle, name, if_there),
                None => Some(record),
            },
            Named::Claimed | Named::Missing { .. } => None,
        };
        let options = self.options.clone().unwrap_or_else(|| (definition.options)());
        let (mut own, mut other) = (Vec::new(), None);
        let mut claim = |reference: RefId| {
            let record = postcard::to_allocvec(&Record::new(definition, reference, &options))
                .map_err(|bad| Error::internal(bad.to_string()))?;
            own.clone_from(&record);
            match ask(&client, name, NameAct::Claim { record, over: over.clone() })? {
                Named::Claimed => Ok(()),
                Named::Is(record) => {
                    other = Some(record);
                    Err(taken(name))
                }
                Named::Missing { .. } => Err(taken(name)),
            }
        };
        let error = match self.one_claimed(&mut claim) {
            Ok(object) => {
                let Named::Is(record) = look(&client, name)? else { return Err(taken(name)) };
                if record == own {
                    return Ok(ActorHandle::new(object, &options));
                }
                cancel(&object, true, false)?;
                other = Some(record);
                taken(name)
            }
            Err(error) => error,
        };
        let Some(record) = other else { return Err(error) };
        match living(&client, definition, name, &record, SUBMIT_WAIT)? {
            Some(handle) => there(handle, name, if_there),
            None => Err(error),
        }
    }
}

/// The actor of a name, whose constructor is `definition`.
///
/// # Errors
/// `ActorNotFound` if there is none that lives, with the most similar name that is in use; `InvalidArgument`
/// if it has another type; the errors of the control store.
pub fn find(definition: &'static Definition, name: &str) -> Result<ActorHandle> {
    check(name)?;
    let client = current::current()?;
    match look(&client, name)? {
        Named::Is(record) => living(&client, definition, name, &record, Duration::ZERO)?
            .ok_or_else(|| not_found(format!("the actor {name} has ended"))),
        Named::Claimed | Named::Missing { nearest: None } => {
            Err(not_found(format!("there is no actor {name}")))
        }
        Named::Missing { nearest: Some(nearest) } => {
            Err(not_found(format!("there is no actor {name}; there is {nearest}")))
        }
    }
}

impl Record {
    fn new(definition: &'static Definition, reference: RefId, options: &Options) -> Self {
        Self {
            reference,
            constructor: registry::of(definition).id,
            type_path: definition.path(),
            max_task_retries: options.max_task_retries,
            max_pending_calls: options.max_pending_calls,
            out_of_order: options.out_of_order,
        }
    }

    fn options(&self) -> Options {
        Options {
            max_task_retries: self.max_task_retries,
            max_pending_calls: self.max_pending_calls,
            out_of_order: self.out_of_order,
            ..Options::default()
        }
    }
}

/// The handle of the actor in a record, if it lives. One that is unknown may be submitted within `patience`.
fn living(
    client: &Client,
    definition: &'static Definition,
    name: &str,
    record: &[u8],
    patience: Duration,
) -> Result<Option<ActorHandle>> {
    let record: Record = postcard::from_bytes(record).map_err(|bad| {
        Error::new(FailureKind::DataCorrupt, format!("the record of the name {name} does not decode: {bad}"))
    })?;
    let began = Instant::now();
    let handle = loop {
        let handle = client.connection().hold(record.reference);
        match lives(&handle)? {
            Life::Lives => break handle,
            Life::Unknown if began.elapsed() < patience => std::thread::sleep(LOOK_EVERY),
            Life::Unknown | Life::Ended => return Ok(None),
        }
    };
    if record.constructor != registry::of(definition).id {
        let (there, asked) = (record.type_path.as_str(), definition.path());
        return Err(Error::argument(format!("the actor {name} was made by {there}, not by {asked}")));
    }
    Ok(Some(ActorHandle::new(ObjectRef::new(handle), &record.options())))
}

/// State of an actor, as its owner tells it.
enum Life {
    Lives,
    Ended,
    /// It was freed, or is not submitted yet.
    Unknown,
}

fn lives(handle: &Arc<Handle>) -> Result<Life> {
    match settle::settle(std::slice::from_ref(handle), Some(Timeout::from(LIVES_WAIT))) {
        Ok(()) => Ok(match handle.state() {
            State::Failed(failure) if failure.kind == FailureKind::ActorDied => Life::Ended,
            State::Failed(_) => Life::Unknown,
            _ => Life::Lives,
        }),
        Err(error) if error.kind() == FailureKind::GetTimeout => Ok(Life::Lives),
        Err(error) => Err(error),
    }
}

fn look(client: &Client, name: &str) -> Result<Named> {
    ask(client, name, NameAct::Find)
}

fn ask(client: &Client, name: &str, act: NameAct) -> Result<Named> {
    client.names()(NameQuestion { job: client.job(), name: name.to_owned(), act })
}

fn there(handle: ActorHandle, name: &str, if_there: IfThere) -> Result<ActorHandle> {
    match if_there {
        IfThere::Get => Ok(handle),
        IfThere::Refuse => Err(taken(name)),
    }
}

fn check(name: &str) -> Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::argument(format!("a name has 1 to {NAME_BYTES_MAX} bytes, this one {}", name.len())))
}

fn taken(name: &str) -> Error {
    Error::new(FailureKind::NameTaken, format!("there is an actor {name}"))
}

fn not_found(text: String) -> Error {
    Error::new(FailureKind::ActorNotFound, text)
}
