//! Eager mode: expressions are computed when they are built, and keep their chunks.

use crate::run::{default_executor, execute};
use crate::tensor::{Tensor, carry};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use tharsis_graph::Operator;

/// Whether every thread is eager.
static EVERYWHERE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Number of guards of this thread.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread computes an expression at this moment.
    static COMPUTES: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread eager until it is dropped.
#[derive(Debug)]
#[must_use = "eager mode ends when this is dropped"]
pub struct Eager {
    // The mode is the thread's, and so is the guard.
    thread: PhantomData<*const ()>,
}

/// Makes this thread eager until the guard is dropped: each expression is computed where it is built, on the
/// default executor, and errors of its values are reported there. Values are the same as in lazy mode.
///
/// ```
/// use tharsis_numeric::{arange, eager};
///
/// let _eager = eager::eager();
/// let x = arange(4) * 2;
/// assert!(format!("{x:?}").contains("at hand"));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn eager() -> Eager {
    GUARDS.set(GUARDS.get() + 1);
    Eager { thread: PhantomData }
}

/// Makes all threads eager, or lazy again except those with a guard.
///
/// ```
/// use tharsis_numeric::{is_eager, set_eager};
/// set_eager(true);
/// assert!(std::thread::spawn(is_eager).join().expect("it ends"));
/// set_eager(false);
/// ```
pub fn set_eager(is_eager: bool) {
    EVERYWHERE.store(is_eager, Ordering::Relaxed);
}

/// Whether expressions of this thread are computed when they are built.
///
/// ```
/// let guard = tharsis_numeric::eager();
/// assert!(tharsis_numeric::is_eager());
/// drop(guard);
/// ```
pub fn is_eager() -> bool {
    0 < GUARDS.get() || EVERYWHERE.load(Ordering::Relaxed)
}

impl Drop for Eager {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get() - 1);
    }
}

impl Tensor {
    /// The result of an operator of the graph on tensors; in eager mode it is computed at once. Carries the
    /// error if the operator's inference fails; in eager mode also if its tasks fail.
    ///
    /// ```
    /// use tharsis_numeric::{DType, Tensor};
    /// let seven = tharsis_graph::ops::Full { shape: vec![2], value: 7.into(), dtype: DType::I64 };
    /// assert_eq!(Tensor::apply(seven, &[]).to_vec::<i64>()?, [7, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn apply(op: impl Operator + 'static, inputs: &[&Tensor]) -> Tensor {
        as_mode_has_it(Tensor::lazily(op, inputs))
    }
}

/// A tensor in the mode of this thread: unchanged in lazy mode, computed in eager mode.
#[track_caller]
fn as_mode_has_it(tensor: Tensor) -> Tensor {
    if !is_eager() || COMPUTES.get() || carry!(tensor.node()).op().resident().is_some() {
        return tensor;
    }
    // Execution makes tensors of its results, which must not be computed in turn.
    COMPUTES.set(true);
    let made = execute(&[&tensor], &*default_executor());
    COMPUTES.set(false);
    carry!(made).0.pop().unwrap_or(tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::default_rng;
    use crate::{Chunks, arange, zeros};

    fn program() -> Vec<Tensor> {
        let x = default_rng(5).random(&[60, 40]).rechunk(Chunks::PerAxis(vec![20, 40]));
        let centred = &x - &x.mean(1).expand_dims(1);
        let chosen = x.filter(&x.greater(0.5));
        vec![
            (&x * 3.0).exp().sum(1),
            centred.matmul(&centred.t()),
            x.cumsum(0).max(1),
            chosen.sum(..).expand_dims(0),
            x.reshape(&[-1]).get(&[crate::index::slice(None, None, -3)]),
        ]
    }

    #[test]
    fn results_are_those_of_lazy_mode() {
        let lazy = program();
        let made = {
            let _eager = eager();
            program()
        };
        for (lazy, eager) in lazy.iter().zip(&made) {
            assert!(
                eager.node().unwrap().op().resident().is_some()
                    && lazy.node().unwrap().op().resident().is_none()
            );
            assert_eq!(lazy.fetch::<f64>().unwrap(), eager.fetch::<f64>().unwrap());
        }
    }

    #[test]
    fn what_fails_does_so_where_it_is_built() {
        let _eager = eager();
        let indefinite = zeros(&[3, 3]) - 1.0;
        let error = indefinite.cholesky().check().unwrap_err();
        assert_eq!((error.class(), error.location().file()), ("LinAlgError", file!()));
        // The mode outlives a failure.
        assert!(arange(3).node().unwrap().op().resident().is_some());
    }

    #[test]
    fn the_mode_is_that_of_its_thread_and_ends_with_its_guard() {
        let outer = eager();
        let inner = eager();
        assert!(!std::thread::spawn(is_eager).join().unwrap());
        drop(outer);
        assert!(is_eager());
        drop(inner);
        assert!(!is_eager());
    }
}
