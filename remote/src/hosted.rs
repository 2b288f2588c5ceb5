//! The actor of a worker: its state, which never leaves the worker.
//!
//! An actor that runs one call at a time never leaves the thread of the worker, so it need not be `Send`. One
//! that runs several at the same time is shared by the threads of its calls, behind a lock.

use crate::panics::drop_payload;
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::any::Any;
use std::cell::{RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tharsis_types::{Failure, FailureKind};

/// The actor of a worker. Clones are the same actor.
#[derive(Clone, Default)]
pub struct Hosted {
    own: Rc<RefCell<Option<Box<dyn Any>>>>,
    shared: Shared,
}

/// An actor that several threads call, and the number of calls that may have changed the actor.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<RwLock<Option<Box<dyn Any + Send + Sync>>>>, Arc<AtomicU32>);

impl Hosted {
    /// Keeps the actor that a constructor made.
    ///
    /// # Errors
    /// `Internal` if the worker has one.
    pub(crate) fn keep<A: Any>(&self, actor: A) -> Result<(), Failure> {
        let mut place = self.own.borrow_mut();
        if place.is_some() {
            return Err(has_one());
        }
        *place = Some(Box::new(actor));
        Ok(())
    }

    /// Keeps the actor that a constructor made, for calls on several threads.
    ///
    /// # Errors
    /// `Internal` if the worker has one.
    pub(crate) fn keep_shared<A: Any + Send + Sync>(&self, actor: A) -> Result<(), Failure> {
        let mut place = self.shared.0.write();
        if place.is_some() {
            return Err(has_one());
        }
        *place = Some(Box::new(actor));
        Ok(())
    }

    /// The actor as other threads get it.
    pub(crate) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// The actor, for the time of a call beside which others run.
    ///
    /// # Errors
    /// `Internal` if the worker has no actor of this type.
    pub fn read<A: Any>(&self) -> Result<MappedRwLockReadGuard<'_, A>, Failure> {
        let guard = self.shared.0.read();
        RwLockReadGuard::try_map(guard, |place| place.as_ref()?.downcast_ref::<A>())
            .map_err(|_| has_none::<A>())
    }

    /// The actor, for the time of a call beside which no other runs.
    ///
    /// # Errors
    /// `Internal` if the worker has no actor of this type.
    pub fn write<A: Any>(&self) -> Result<MappedRwLockWriteGuard<'_, A>, Failure> {
        let guard = self.shared.0.write();
        RwLockWriteGuard::try_map(guard, |place| place.as_mut()?.downcast_mut::<A>())
            .map_err(|_| has_none::<A>())
    }

    /// The actor, for the time of a call.
    ///
    /// # Errors
    /// `Internal` if the worker has no actor of this type.
    pub fn borrow<A: Any>(&self) -> Result<RefMut<'_, A>, Failure> {
        let actor = self.own.try_borrow_mut().ok();
        let typed =
            actor.and_then(|actor| RefMut::filter_map(actor, |a| a.as_mut()?.downcast_mut::<A>()).ok());
        typed.ok_or_else(has_none::<A>)
    }

    /// Counts a call that may have changed the actor, and returns its number; the first is 1.
    pub(crate) fn count_change(&self) -> u32 {
        self.shared.1.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Drops the actor: its worker ends. A panic meanwhile has nobody to be reported to.
    pub(crate) fn end(&self) {
        let actors = (self.own.borrow_mut().take(), self.shared.0.write().take());
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(actors))) {
            drop_payload(panic);
        }
    }
}

impl From<Shared> for Hosted {
    fn from(shared: Shared) -> Self {
        Self { own: Rc::default(), shared }
    }
}

fn has_one() -> Failure {
    Failure::new(FailureKind::Internal, "the worker has an actor already")
}

fn has_none<A>() -> Failure {
    let text = format!("the worker has no actor of type {}", std::any::type_name::<A>());
    Failure::new(FailureKind::Internal, text)
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hosted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_keeps_one_actor_and_gives_it_to_its_own_methods_only() {
        let hosted = Hosted::default();
        assert_eq!(hosted.borrow::<u32>().map(|_| ()).unwrap_err().kind, FailureKind::Internal);
        hosted.keep(7_u32).unwrap();
        *hosted.borrow::<u32>().unwrap() += 1;
        assert!(hosted.keep(1_u32).is_err(), "one actor");
        assert!(hosted.borrow::<String>().is_err(), "of its type");
        assert_eq!(*hosted.borrow::<u32>().unwrap(), 8);
        hosted.end();
        assert!(hosted.borrow::<u32>().is_err());
    }

    #[test]
    fn a_shared_actor_is_read_by_several_at_once() {
        let hosted = Hosted::default();
        hosted.keep_shared(7_u32).unwrap();
        assert!(hosted.keep_shared(1_u32).is_err(), "one actor");
        let other = Hosted::from(hosted.shared());
        let (one, two) = (hosted.read::<u32>().unwrap(), other.read::<u32>().unwrap());
        assert_eq!((*one, *two), (7, 7));
        drop((one, two));
        *other.write::<u32>().unwrap() += 1;
        assert_eq!(*hosted.read::<u32>().unwrap(), 8);
        assert!(hosted.read::<String>().is_err() && hosted.write::<String>().is_err(), "of its type");
        hosted.end();
        assert!(other.read::<u32>().is_err());
    }
}
