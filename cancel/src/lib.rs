//! Ending computations that are under way.
//!
//! A computation runs in a call that blocks, perhaps many calls below the one of the user, so a handle is not
//! an argument: [`Cancel::run`] binds it to the thread, and executors look for it when a run begins. So it
//! reaches all that a program computes, whoever calls the executor.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the handles of a run that waits.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Ends computations that are under way, from any thread. Clones are the same handle.
///
/// Runs of tensors, frames, SQL and estimators that begin within [`Cancel::run`] end soon after
/// [`Cancel::cancel`], with an error of the class `Cancelled`. Tasks that have not begun do not begin. On
/// workers, those that run are told, as by `tharsis::cancel`; on threads, they are left behind until they
/// end. What they make is dropped. Later runs need another handle, since one that was cancelled stays so.
///
/// ```
/// use tharsis_cancel::Cancel;
/// let cancel = Cancel::new();
/// let other = cancel.clone();
/// assert_eq!(cancel.run(|| 6 * 7), 42);
/// std::thread::spawn(move || other.cancel()).join().expect("it ends");
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Default)]
struct State {
    is_cancelled: AtomicBool,
    /// Another source of the same news.
    asked: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl Cancel {
    /// A handle that is not cancelled.
    #[must_use]
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// A handle that counts as cancelled once this function says so, too. Runs call it often, while they wait
    /// and before each task, also with locks in their hands: it must be quick, and wait for nothing.
    ///
    /// ```
    /// use tharsis_cancel::Cancel;
    /// let end = std::time::Instant::now();
    /// assert!(Cancel::when(move || end <= std::time::Instant::now()).is_cancelled());
    /// ```
    #[must_use]
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        Cancel(Arc::new(State { is_cancelled: AtomicBool::new(false), asked: Some(Box::new(asked)) }))
    }

    /// Ends the runs that began under this handle. It does not wait for them.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether the handle was cancelled. A long loop between two computations checks it now and then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire) || self.0.asked.as_ref().is_some_and(|asked| asked())
    }

    /// Runs a program whose computations this handle ends. It holds for this thread, not for those that the
    /// program starts. Within another handle's program, either ends them.
    pub fn run<T>(&self, program: impl FnOnce() -> T) -> T {
        under(std::slice::from_ref(self), program)
    }
}

/// Runs a program under these handles and those that the thread has.
fn under<T>(cancels: &[Cancel], program: impl FnOnce() -> T) -> T {
    /// Takes the handles away, also if the program panics.
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| current.truncate(self.0));
        }
    }
    let _back = CURRENT.with_borrow_mut(|current| {
        let back = Back(current.len());
        current.extend_from_slice(cancels);
        back
    });
    program()
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

thread_local! {
    static CURRENT: RefCell<Vec<Cancel>> = const { RefCell::new(Vec::new()) };
}

/// The moments at which a run is given up: when a handle of its thread is cancelled, and at a deadline.
#[derive(Clone, Debug, Default)]
pub struct RunEnds {
    deadline: Option<Instant>,
    cancels: Vec<Cancel>,
}

/// The reason for which a run was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A handle was cancelled.
    Cancelled,
    /// The deadline has passed.
    TimedOut,
}

impl RunEnds {
    /// The ends of a run that begins now, on this thread.
    #[must_use]
    pub fn of(deadline: Option<Instant>) -> RunEnds {
        RunEnds { deadline, cancels: CURRENT.with_borrow(Clone::clone) }
    }

    /// Whether there is an end to look for.
    #[must_use]
    pub fn may_come(&self) -> bool {
        self.deadline.is_some() || !self.cancels.is_empty()
    }

    /// Looks whether the run is given up.
    ///
    /// # Errors
    /// The reason, if it is.
    pub fn check(&self) -> Result<(), Ended> {
        if self.cancels.iter().any(Cancel::is_cancelled) {
            return Err(Ended::Cancelled);
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(Ended::TimedOut),
            _ => Ok(()),
        }
    }

    /// Does a part of the run on another thread, whose computations have the same handles then.
    pub fn carry<T>(&self, part: impl FnOnce() -> T) -> T {
        under(&self.cancels, part)
    }

    /// The time at which the run ends at the latest; none if it may take any time.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The time until the deadline, if there is one.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// The time to wait until the next [`check`](RunEnds::check); none if it may be any.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        match self.left() {
            left if self.cancels.is_empty() => left,
            left => Some(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_run_ends_with_any_handle_of_its_thread() {
        let (outer, inner) = (Cancel::new(), Cancel::new());
        let ends = outer.run(|| inner.run(|| RunEnds::of(None)));
        assert_eq!((ends.check(), ends.may_come()), (Ok(()), true));
        assert!(ends.pause().is_some_and(|pause| pause < Duration::from_secs(1)));
        outer.cancel();
        assert_eq!(ends.check(), Err(Ended::Cancelled));
        assert!(!inner.is_cancelled());
    }

    #[test]
    fn a_handle_holds_for_its_program_and_its_thread() {
        let cancel = Cancel::new();
        cancel.cancel();
        let elsewhere = cancel.run(|| std::thread::spawn(|| RunEnds::of(None).may_come()).join().unwrap());
        assert!(!elsewhere && !RunEnds::of(None).may_come());
        let ends = cancel.run(|| RunEnds::of(None));
        let carried = std::thread::spawn(move || ends.carry(|| RunEnds::of(None).check())).join().unwrap();
        assert_eq!(carried, Err(Ended::Cancelled));
        let program = AssertUnwindSafe(|| cancel.run(|| panic!("on purpose")));
        let panicked: std::thread::Result<()> = catch_unwind(program);
        assert!(panicked.is_err() && !RunEnds::of(None).may_come());
    }

    #[test]
    fn a_deadline_ends_a_run_too() {
        let ends = RunEnds::of(Some(Instant::now()));
        assert_eq!((ends.check(), ends.left()), (Err(Ended::TimedOut), Some(Duration::ZERO)));
        let later = RunEnds::of(Some(Instant::now() + Duration::from_secs(3600)));
        assert_eq!(later.check(), Ok(()));
        assert!(later.pause() > Some(Duration::from_secs(1000)), "nothing else is to look for");
        assert_eq!(RunEnds::of(None).pause(), None);
    }

    #[test]
    fn a_function_cancels_too() {
        let told = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&told);
        let cancel = Cancel::when(move || asked.load(Ordering::Relaxed));
        assert!(!cancel.is_cancelled());
        told.store(true, Ordering::Relaxed);
        assert!(cancel.is_cancelled());
    }
}
