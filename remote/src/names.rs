//! Names of actors and of placement groups: claimed, found, and claimed unless they are in use.
//!
//! A name stands in the control store beside the reference of its owner's object, under the namespace of the
//! job. It is claimed before the call that makes the object is submitted, when the id of the object is known
//! already, so of several who create one name at the same time one does. The name of one that has ended is
//! removed some time later: whoever finds it looks whether it lives, and the name of one that does not can be
//! taken over.
//! Calls go to the object itself and never ask for its name.
//!
//! Between the claim and the submission the owner does not know the object yet. So one that its owner does
//! not know counts as ended only after a while. Whoever took about as long to submit one claims the name once
//! more: a name that was removed meanwhile is its own again, and one that was taken over is given up, with
//! what has it.

use crate::client::Client;
use crate::current;
use crate::error::{Error, Result};
use crate::get::cancel;
use crate::handles::{Handle, State};
use crate::settle::{self, Timeout};
use crate::submit::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tharsis_protos::handshake::{NameAct, NameKey, NameKind, NameQuestion, Named};
use tharsis_types::limits::{NAME_BYTES_MAX, UNKNOWN_NODE_WAIT_MS};
use tharsis_types::{FailureKind, RefId};

/// The longest time in which it is known whether an object has ended: its owner says so, or the node gives
/// that up. One that is being made is silent for longer, and lives.
const LIVES_WAIT: Duration = Duration::from_millis(UNKNOWN_NODE_WAIT_MS + 1_000);
/// The time for which an object may be unknown to its owner after its name was claimed.
const SUBMIT_WAIT: Duration = Duration::from_secs(1);
/// Interval of looks at an object that is not known yet.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether it is an error if something that lives has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfThere {
    /// It is.
    Refuse,
    /// Its handle is returned.
    Get,
}

/// One kind of what has names.
pub(crate) trait Naming {
    /// The value under a name.
    type Record: Serialize + DeserializeOwned;
    /// The type that users hold.
    type Handle;

    const KIND: NameKind;
    /// The word for it in messages.
    const NOUN: &'static str;
    const NOT_FOUND: FailureKind;

    /// The object that a record names.
    fn reference(record: &Self::Record) -> RefId;

    /// The handle of an object that lives.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not of the kind that is asked for.
    fn handle(&self, name: &str, record: Self::Record, object: Arc<Handle>) -> Result<Self::Handle>;
}

/// Makes the object of a call under a name.
///
/// # Errors
/// `NameTaken` if one that lives has the name, unless that one is wanted; `InvalidArgument` for a name that
/// cannot be one; those of [`Naming::handle`] and of the control store.
pub(crate) fn create<N: Naming>(
    naming: &N,
    call: Call<'_>,
    name: &str,
    if_there: IfThere,
    record: impl Fn(RefId) -> N::Record,
) -> Result<N::Handle> {
    check(name)?;
    let client = current::current()?;
    let mut over = None;
    // Nobody is asked before something new is made. A thing that is wanted if it is there often is.
    if if_there == IfThere::Get
        && let Named::Is(record) = look::<N>(&client, name)?
    {
        match living(naming, &client, name, &record, SUBMIT_WAIT)? {
            Some(handle) => return there::<N>(handle, name, if_there),
            None => over = Some(record),
        }
    }
    let (mut own, mut other, mut claimed) = (Vec::new(), None, Moment::now());
    let mut claim = |reference: RefId| {
        own = postcard::to_allocvec(&record(reference)).map_err(|bad| Error::internal(bad.to_string()))?;
        loop {
            claimed = Moment::now();
            let act = NameAct::Claim { record: own.clone(), object: reference.object, over: over.clone() };
            match ask::<N>(&client, name, act)? {
                Named::Claimed => return Ok(()),
                Named::Is(record) if over.is_none() && if_there == IfThere::Refuse => {
                    if living(naming, &client, name, &record, SUBMIT_WAIT)?.is_some() {
                        return Err(taken::<N>(name));
                    }
                    over = Some(record);
                }
                Named::Is(record) => {
                    other = Some(record);
                    return Err(taken::<N>(name));
                }
                Named::Missing { .. } | Named::Page { .. } => return Err(taken::<N>(name)),
            }
        }
    };
    let error = match call.one_claimed(&mut claim) {
        Ok(object) => {
            match still_claimed::<N>(&client, name, own, object.id(), claimed)? {
                Named::Claimed => {
                    let handle = Arc::clone(object.handle());
                    let record = record(handle.reference());
                    return naming.handle(name, record, handle);
                }
                Named::Is(found) => other = Some(found),
                Named::Missing { .. } | Named::Page { .. } => {}
            }
            cancel(&object, true, false)?;
            taken::<N>(name)
        }
        Err(error) => error,
    };
    let Some(record) = other else { return Err(error) };
    match living(naming, &client, name, &record, SUBMIT_WAIT)? {
        Some(handle) => there::<N>(handle, name, if_there),
        None => Err(error),
    }
}

/// Whether a name that was claimed at a moment is still that of an object which is submitted now. Within a
/// part of the time nobody has waited long enough to take it over. After more it is claimed anew: it may have
/// been removed too, as the name of what is not there.
fn still_claimed<N: Naming>(
    client: &Client,
    name: &str,
    record: Vec<u8>,
    reference: RefId,
    claimed: Moment,
) -> Result<Named> {
    if claimed.is_less_ago_than(SUBMIT_WAIT / 2) {
        return Ok(Named::Claimed);
    }
    ask::<N>(client, name, NameAct::Claim { record, object: reference.object, over: None })
}

/// The handle of what has a name.
///
/// # Errors
/// [`Naming::NOT_FOUND`] if there is none that lives, with the most similar name that is in use; those of
/// [`Naming::handle`] and of the control store.
pub(crate) fn find<N: Naming>(naming: &N, name: &str) -> Result<N::Handle> {
    check(name)?;
    let client = current::current()?;
    let (noun, not_found) = (N::NOUN, |text: String| Error::new(N::NOT_FOUND, text));
    match look::<N>(&client, name)? {
        Named::Is(record) => living(naming, &client, name, &record, Duration::ZERO)?
            .ok_or_else(|| not_found(format!("the {noun} {name} has ended"))),
        Named::Claimed | Named::Page { .. } | Named::Missing { nearest: None } => {
            Err(not_found(format!("there is no {noun} {name}")))
        }
        Named::Missing { nearest: Some(nearest) } => {
            Err(not_found(format!("there is no {noun} {name}; there is {nearest}")))
        }
    }
}

/// The names of what lives, in the namespace of the job or in all, in order.
///
/// # Errors
/// Those of the control store, and the loss of the connection.
pub(crate) fn list<N: Naming>(is_of_all: bool) -> Result<Vec<NameKey>> {
    let client = current::current()?;
    let (mut living, mut after) = (Vec::new(), None);
    loop {
        let act = NameAct::List { is_of_all, after: after.take() };
        let Named::Page { names, more } = ask::<N>(&client, "", act)? else {
            return Err(Error::internal("the node answered something else than was asked"));
        };
        after = names.last().map(|(key, _)| key.clone());
        // Each record begins with its reference, whatever follows in other releases.
        let held = names.into_iter().filter_map(|(key, record)| {
            let (reference, _) = postcard::take_from_bytes::<RefId>(&record).ok()?;
            Some((key, client.connection().hold(reference)))
        });
        let (keys, handles): (Vec<_>, Vec<_>) = held.unzip();
        // One that is being made is silent for longer, and lives.
        match settle::settle(&handles, Some(Timeout::from(LIVES_WAIT))) {
            Err(error) if error.kind() != FailureKind::GetTimeout => return Err(error),
            Err(_) | Ok(()) => {}
        }
        let named = keys.into_iter().zip(&handles);
        living.extend(
            named.filter(|(_, handle)| !matches!(handle.state(), State::Failed(_))).map(|(key, _)| key),
        );
        if !more || after.is_none() {
            return Ok(living);
        }
    }
}

/// The handle of what a record names, if it lives. One that is unknown may be submitted within `patience`.
fn living<N: Naming>(
    naming: &N,
    client: &Client,
    name: &str,
    record: &[u8],
    patience: Duration,
) -> Result<Option<N::Handle>> {
    let record: N::Record = postcard::from_bytes(record).map_err(|bad| {
        Error::new(FailureKind::DataCorrupt, format!("the record of the name {name} does not decode: {bad}"))
    })?;
    let began = Instant::now();
    let handle = loop {
        let handle = client.connection().hold(N::reference(&record));
        match lives(&handle)? {
            Life::Lives => break handle,
            Life::Unknown if began.elapsed() < patience => std::thread::sleep(LOOK_EVERY),
            Life::Unknown | Life::Ended => return Ok(None),
        }
    };
    naming.handle(name, record, handle).map(Some)
}

/// A moment, by the clock of this process and by that of the machine, which goes on while the machine sleeps.
#[derive(Clone, Copy)]
struct Moment(Instant, SystemTime);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    /// Whether so much time has not passed by any of the clocks. One that was set back says nothing.
    fn is_less_ago_than(self, time: Duration) -> bool {
        self.0.elapsed() < time && self.1.elapsed().is_ok_and(|elapsed| elapsed < time)
    }
}

/// State of an object, as its owner tells it.
enum Life {
    Lives,
    Ended,
    /// It was freed, or is not submitted yet.
    Unknown,
}

fn lives(handle: &Arc<Handle>) -> Result<Life> {
    let has_ended =
        |kind| matches!(kind, FailureKind::ActorDied | FailureKind::GroupRemoved | FailureKind::Infeasible);
    match settle::settle(std::slice::from_ref(handle), Some(Timeout::from(LIVES_WAIT))) {
        Ok(()) => Ok(match handle.state() {
            State::Failed(failure) if has_ended(failure.kind) => Life::Ended,
            State::Failed(_) => Life::Unknown,
            _ => Life::Lives,
        }),
        Err(error) if error.kind() == FailureKind::GetTimeout => Ok(Life::Lives),
        Err(error) => Err(error),
    }
}

fn look<N: Naming>(client: &Client, name: &str) -> Result<Named> {
    ask::<N>(client, name, NameAct::Find)
}

fn ask<N: Naming>(client: &Client, name: &str, act: NameAct) -> Result<Named> {
    client.names()(NameQuestion { job: client.job(), kind: N::KIND, name: name.to_owned(), act })
}

fn there<N: Naming>(handle: N::Handle, name: &str, if_there: IfThere) -> Result<N::Handle> {
    match if_there {
        IfThere::Get => Ok(handle),
        IfThere::Refuse => Err(taken::<N>(name)),
    }
}

fn check(name: &str) -> Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::argument(format!("a name has 1 to {NAME_BYTES_MAX} bytes, this one {}", name.len())))
}

fn taken<N: Naming>(name: &str) -> Error {
    let article = if N::NOUN.starts_with('a') { "an" } else { "a" };
    Error::new(FailureKind::NameTaken, format!("there is {article} {} {name}", N::NOUN))
}
