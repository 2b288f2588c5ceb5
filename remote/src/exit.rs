//! The method that every actor has: it ends the actor, in line with its calls.

use crate::actor::Actor;
use crate::call::{Arguments, TaskCall, into_failure};
use crate::current;
use crate::options::Options;
use crate::reference::ObjectRef;
use crate::registry::{Definition, Registered};
use crate::submit::Call;
use crate::work::Leaving;
use std::panic::Location;
use tharsis_types::task::Role;

/// Ends an actor after the calls that this caller has made before, and those of others that have reached it
/// by then. It is not started again. Calls behind it fail with `ActorDied` and `executed: no`, and so do
/// earlier ones that wait for their arguments and keep no order with it: those of an actor with
/// `allow_out_of_order`, and of other groups than the first.
///
/// The reference is ready when the actor has run these calls. It fails with `ActorDied` if there is no actor.
#[track_caller]
pub fn exit(actor: &impl Actor) -> ObjectRef<()> {
    let site = Location::caller();
    let handle = actor.handle();
    let arguments = &mut |arguments: &mut Arguments| handle.begin(arguments);
    Call { definition: &EXIT, options: None, site, arguments }.one()
}

/// The method that ends an actor.
static EXIT: Definition = Definition {
    module: "tharsis",
    name: "exit",
    signature: "",
    file: file!(),
    line: line!(),
    column: column!(),
    returns: 1,
    options: Options::default,
    run: |call: &mut TaskCall<'_>| {
        current::current().map_err(into_failure)?.leave(Leaving::AtOnce);
        call.give(&())
    },
    role: Role::Method,
    group: 0,
    groups: &[],
    plain: &(),
};

inventory::submit! { Registered(&EXIT) }
