//! Snapshots of actors: taken in a method, kept by the owner of the actor, and given to the constructor of an
//! actor that is started again.
//!
//! The worker writes the snapshot like a result, sends it, and waits until the owner keeps it. References
//! inside are kept until then. A restarted actor gets it as one more argument of its constructor, after which
//! [`Checkpoint::restore`] is called.

use crate::call::{TaskCall, into_failure};
use crate::client::Client;
use crate::codec::{Encoded, Gift};
use crate::context::context;
use crate::error::{Error, Result};
use crate::handles::{Connection, check_session};
use crate::hosted::Hosted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::marker::PhantomData;
use tharsis_protos::records::{FromClient, RefsView, ValueView, pack};
use tharsis_types::limits::INLINE_BYTES_MAX;
use tharsis_types::task::Role;
use tharsis_types::{Failure, FailureKind};

/// An actor that continues from its last checkpoint when it is started again.
///
/// When its worker is lost and `max_restarts` allows it, the actor is constructed anew from the same
/// arguments, and then `restore` gets the last snapshot that was kept. Without one, it begins anew.
/// Checkpoints are taken by [`checkpoint`], or with `#[actor(checkpoint_every = N)]` by every N-th call of a
/// method that takes `&mut self`.
pub trait Checkpoint {
    /// The kept part of the actor: a value like a result. It may contain references and handles of actors.
    type Snapshot: Serialize + DeserializeOwned;

    /// The snapshot of the actor as it is now.
    fn snapshot(&self) -> Self::Snapshot;

    /// Brings an actor that was just constructed into the state of a snapshot. If it panics, the constructor
    /// has failed, and the actor has ended.
    fn restore(&mut self, snapshot: Self::Snapshot);
}

/// Keeps a snapshot of an actor, from which it continues if it is started again; called in its methods, as
/// `checkpoint(self)`.
///
/// When this returns, the snapshot is kept, and the one before is freed. It survives the loss of the actor's
/// worker and of its node; it goes with the actor. This takes a round trip to the node on which the actor was
/// created, and the time to copy the snapshot there. For this time there are two snapshots. Methods that run
/// at the same time take their snapshots one after the other, so `snapshot` must not wait for another method.
///
/// # Errors
/// `InvalidArgument` outside of methods of actors, or if the snapshot cannot be encoded; `StoreFull` or
/// `ObjectTooLarge` if there is no room for it, here or there; `ActorDied` if the actor has ended or was
/// started again elsewhere; the loss of the connection. The snapshot before is kept then.
pub fn checkpoint<A: Checkpoint>(actor: &A) -> Result<()> {
    let context = context()?;
    if context.role() != Some(Role::Method) {
        return Err(Error::argument("checkpoint: this is no method of an actor"));
    }
    let Connection { link, table, .. } = &**context.client().connection();
    let mut encoded = Encoded::default();
    let in_order = table.snapshots.lock();
    encoded.push(type_name::<A>())?;
    encoded.push(&actor.snapshot())?;
    let request = send(context.client(), &encoded)?;
    drop(in_order);
    if let Some(refusal) = table.checkpoints.take(link, request)? {
        return Err(refusal.into());
    }
    Gift::send_all(&mut encoded.given);
    Ok(())
}

/// Sends a snapshot; returns the number of the request for it.
fn send(client: &Client, encoded: &Encoded) -> Result<u32> {
    let Connection { link, regions, table } = &**client.connection();
    check_session(client.connection(), &encoded.keep)?;
    let layout = encoded.layout()?;
    let nested = pack::references(&encoded.nested);
    let nested = RefsView::new(&nested).map_err(|bad| Error::internal(bad.to_string()))?;
    let request = table.checkpoints.expect();
    if layout.total_len() <= INLINE_BYTES_MAX {
        let mut frame = Vec::with_capacity(layout.total_len());
        layout.push_frame(&encoded.in_band, &encoded.buffers, &mut frame);
        link.send(&FromClient::Checkpoint { request, value: ValueView::Inline(&frame), nested })?;
    } else {
        let written = regions.write_frame(link, &encoded.in_band, &encoded.buffers, &layout)?;
        link.send(&FromClient::Checkpoint { request, value: ValueView::Local(written.extent), nested })?;
    }
    Ok(request)
}

/// For generated code: how an actor of this type continues from a snapshot.
pub struct Continuing<A>(PhantomData<A>);

impl<A> Default for Continuing<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// Actors that continue from snapshots. Method lookup on `&Continuing<A>` takes this trait where it applies,
/// and [`BeginsAnew`] elsewhere.
pub trait Continues<A> {
    /// Brings a new actor into the state of the snapshot that its constructor was given, if it was.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another type, or one that does not decode.
    fn restore(&self, call: &TaskCall<'_>, actor: &mut A) -> Result<(), Failure>;
}

/// Actors that have no snapshots.
pub trait BeginsAnew<A> {
    /// Does nothing.
    ///
    /// # Errors
    /// `InvalidArgument` if there is a snapshot.
    fn restore(&self, call: &TaskCall<'_>, actor: &mut A) -> Result<(), Failure>;
}

impl<A: Checkpoint> Continues<A> for Continuing<A> {
    fn restore(&self, call: &TaskCall<'_>, actor: &mut A) -> Result<(), Failure> {
        let Some(mut snapshot) = call.snapshot()? else { return Ok(()) };
        let of: String = snapshot.next().map_err(into_failure)?;
        if of != type_name::<A>() {
            return Err(snapshot_of_another::<A>(&of));
        }
        actor.restore(snapshot.next().map_err(into_failure)?);
        Ok(())
    }
}

impl<A> BeginsAnew<A> for &Continuing<A> {
    fn restore(&self, call: &TaskCall<'_>, _: &mut A) -> Result<(), Failure> {
        let Some(mut snapshot) = call.snapshot()? else { return Ok(()) };
        let of: String = snapshot.next().map_err(into_failure)?;
        Err(snapshot_of_another::<A>(&of))
    }
}

fn snapshot_of_another<A>(of: &str) -> Failure {
    let text = format!(
        "the last checkpoint of the actor was one of {of}, and it is a {}: implement `Checkpoint` for it, and \
         call `checkpoint(self)`",
        type_name::<A>()
    );
    Failure::new(FailureKind::InvalidArgument, text)
}

impl TaskCall<'_> {
    /// For generated code: a method that may change the actor has run; every N-th time a checkpoint is taken.
    ///
    /// # Errors
    /// As [`checkpoint`].
    pub fn checkpoint_if_due<A: Checkpoint>(
        &self,
        hosted: &Hosted,
        actor: &A,
        every: u32,
    ) -> Result<(), Failure> {
        if hosted.count_change().is_multiple_of(every) {
            checkpoint(actor).map_err(into_failure)
        } else {
            Ok(())
        }
    }
}
