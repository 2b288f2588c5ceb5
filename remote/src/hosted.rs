//! The actor of a worker: its state, which never leaves the worker's thread.

use std::any::Any;
use std::cell::{RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tharsis_types::{Failure, FailureKind};

/// The actor of a worker. Clones are the same actor.
#[derive(Clone, Default)]
pub struct Hosted(Rc<RefCell<Option<Box<dyn Any>>>>);

impl Hosted {
    /// Keeps the actor that a constructor made.
    ///
    /// # Errors
    /// `Internal` if the worker has one.
    pub(crate) fn keep<A: Any>(&self, actor: A) -> Result<(), Failure> {
        let mut place = self.0.borrow_mut();
        if place.is_some() {
            return Err(Failure::new(FailureKind::Internal, "the worker has an actor already"));
        }
        *place = Some(Box::new(actor));
        Ok(())
    }

    /// The actor, for the time of a call.
    ///
    /// # Errors
    /// `Internal` if the worker has no actor of this type.
    pub fn borrow<A: Any>(&self) -> Result<RefMut<'_, A>, Failure> {
        let actor = self.0.try_borrow_mut().ok();
        let typed =
            actor.and_then(|actor| RefMut::filter_map(actor, |a| a.as_mut()?.downcast_mut::<A>()).ok());
        typed.ok_or_else(|| {
            let text = format!("the worker has no actor of type {}", std::any::type_name::<A>());
            Failure::new(FailureKind::Internal, text)
        })
    }

    /// Drops the actor: its worker ends. A panic meanwhile has nobody to be reported to.
    pub(crate) fn end(&self) {
        let actor = self.0.borrow_mut().take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(actor)));
    }
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
}
