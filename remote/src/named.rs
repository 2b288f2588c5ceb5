//! Actors with names: created, found, and created unless they are there. How a name is claimed and found is
//! the same for all that has names (`names.rs`).

use crate::actor::ActorHandle;
use crate::error::{Error, Result};
use crate::handles::Handle;
use crate::names::{self, IfThere, Naming};
use crate::options::Options;
use crate::reference::ObjectRef;
use crate::registry::{self, Definition};
use crate::submit::Call;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;
use tharsis_protos::handshake::{NameKey, NameKind};
use tharsis_types::check::check_name;
use tharsis_types::{FailureKind, FunctionId, RefId, RetryOn};

/// The record under the name of an actor.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    reference: RefId,
    constructor: FunctionId,
    type_path: String,
    max_task_retries: i32,
    max_pending_calls: u32,
    out_of_order: bool,
    /// A record of a former release ends before it.
    #[serde(deserialize_with = "if_there")]
    retry_on: RetryOn,
}

/// Actors with this constructor.
struct Actors(&'static Definition);

impl Naming for Actors {
    type Handle = ActorHandle;
    type Record = Record;

    const KIND: NameKind = NameKind::Actor;
    const NOUN: &'static str = "actor";
    const NOT_FOUND: FailureKind = FailureKind::ActorNotFound;

    fn reference(record: &Record) -> RefId {
        record.reference
    }

    fn handle(&self, name: &str, record: Record, object: Arc<Handle>) -> Result<ActorHandle> {
        if record.constructor != registry::of(self.0).id {
            let (there, asked) = (record.type_path.as_str(), self.0.path());
            return Err(Error::argument(format!("the actor {name} was made by {there}, not by {asked}")));
        }
        Ok(ActorHandle::new(ObjectRef::new(object), &record.options()))
    }
}

impl Call<'_> {
    /// Calls the constructor of an actor with a name.
    ///
    /// # Errors
    /// `NameTaken` if an actor that lives has the name, unless that one is wanted; `InvalidArgument` for a
    /// name that cannot be one, or if the actor of that name has another type; the errors of the control
    /// store.
    pub fn named(self, name: &str, if_there: IfThere) -> Result<ActorHandle> {
        let definition = self.definition;
        let mut options = self.options.unwrap_or_else(|| (definition.options)());
        // Lists and failures show it too, if it can be shown.
        if options.name.is_none() && check_name(name).is_ok() {
            options.name = Some(name.to_owned());
        }
        let call = Call { options: Some(options.clone()), ..self };
        let record = |reference| Record::new(definition, reference, &options);
        names::create(&Actors(definition), call, name, if_there, record)
    }
}

/// The actor of a name, whose constructor is `definition`.
///
/// # Errors
/// `ActorNotFound` if there is none that lives, with the most similar name that is in use; `InvalidArgument`
/// if it has another type; the errors of the control store.
pub fn find(definition: &'static Definition, name: &str) -> Result<ActorHandle> {
    names::find(&Actors(definition), name)
}

/// Namespaces whose names are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// That of the job.
    #[default]
    Own,
    /// All of the cluster.
    All,
}

/// The name of an actor, and its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorName {
    /// The namespace in which it is found.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Names of the actors that live or are being constructed, in order.
///
/// Actors that have ended have no names, although the control store keeps their records: each is asked about.
///
/// ```no_run
/// # use tharsis_remote as tharsis;
/// use tharsis::{Namespaces, list_named_actors};
///
/// for actor in list_named_actors(Namespaces::All)? {
///     println!("{} in the namespace {:?}", actor.name, actor.namespace);
/// }
/// # Ok::<(), tharsis::Error>(())
/// ```
///
/// # Errors
/// `Shutdown` without a runtime, the loss of the connection, and the errors of the control store.
pub fn list_named_actors(namespaces: Namespaces) -> Result<Vec<ActorName>> {
    let living = names::list::<Actors>(namespaces == Namespaces::All)?;
    Ok(living.into_iter().map(|NameKey { namespace, name }| ActorName { namespace, name }).collect())
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
            retry_on: options.retry_on.clone(),
        }
    }

    fn options(&self) -> Options {
        Options {
            max_task_retries: self.max_task_retries,
            max_pending_calls: self.max_pending_calls,
            out_of_order: self.out_of_order,
            retry_on: self.retry_on.clone(),
            ..Options::default()
        }
    }
}

/// The last field of a record, nothing if the record ends before it.
fn if_there<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<RetryOn, D::Error> {
    Ok(RetryOn::deserialize(deserializer).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, NodeId, ObjectId, TaskId};

    #[test]
    fn a_record_of_a_former_release_retries_no_errors() {
        let reference = RefId { object: ObjectId::output(TaskId::root(JobId(1)), 0), owner: NodeId(1) };
        let record = Record {
            reference,
            constructor: FunctionId(7),
            type_path: "a::B".to_owned(),
            max_task_retries: 3,
            max_pending_calls: 2,
            out_of_order: true,
            retry_on: RetryOn::Types(vec!["a::Flaky".to_owned()]),
        };
        let bytes = postcard::to_allocvec(&record).unwrap();
        assert_eq!(postcard::from_bytes::<Record>(&bytes).unwrap(), record);
        let added = postcard::to_allocvec(&record.retry_on).unwrap().len();
        let former: Record = postcard::from_bytes(&bytes[..bytes.len() - added]).unwrap();
        assert_eq!(former, Record { retry_on: RetryOn::Nothing, ..record });
        assert!(postcard::from_bytes::<Record>(&bytes[..bytes.len() - added - 1]).is_err());
    }
}
