//! Threads of this process that share items among them.

use std::sync::{Mutex, PoisonError};
use tharsis_cancel::RunEnds;
use tharsis_numeric::Result;

/// Makes something of each item, in their order. Each thread takes one item after the other, and may have
/// other threads beside it: their number is the second argument.
pub(super) fn on_threads<T: Send, R: Send>(
    items: Vec<T>,
    threads: usize,
    make: impl Fn(T, usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let together = threads.min(items.len()).max(1);
    let of_each = threads / together;
    let mut done = Vec::with_capacity(items.len());
    let (left, made) = (Mutex::new(items.into_iter().enumerate()), Mutex::new(&mut done));
    let ends = RunEnds::of(None);
    let work = || {
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((at, item)) = next() {
            let result = ends.carry(|| make(item, of_each));
            let is_lost = result.is_err();
            made.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
            if is_lost {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        (1..together).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::check_cancelled;
    use tharsis_cancel::Cancel;

    #[test]
    fn threads_have_the_handles_of_the_one_that_starts_them() {
        let cancel = Cancel::new();
        let looked = || cancel.run(|| on_threads(vec![1, 2, 3], 3, |_, _| check_cancelled()));
        assert!(looked().is_ok());
        cancel.cancel();
        assert_eq!(looked().unwrap_err().class(), "Cancelled");
    }
}
