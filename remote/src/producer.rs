//! The worker's side of a stream: the iterator of a remote function, and the items that are asked for.
//!
//! A producer decides nothing but what an item at a position is. Its consumer asks for each position once,
//! a few ahead of what it has taken, and says with each request how many it has taken. So a producer that is
//! started again after a loss passes over what was taken and makes the rest anew, and requests of a consumer
//! that was given to another task may overtake each other: what they pass over is kept until it is asked for.

use std::collections::BTreeMap;
use tharsis_types::{Failure, FailureKind};

/// The items of a stream; lives in a worker.
pub struct Producer<T> {
    /// `None` when it is over, or has panicked.
    items: Option<Box<dyn Iterator<Item = T>>>,
    /// Whether an item is the last one: an error.
    is_last: fn(&T) -> bool,
    /// Position of the next item that the iterator makes.
    next: u64,
    /// Items that were made for later requests; not more than the consumer asks for ahead.
    kept: BTreeMap<u64, T>,
    /// Number of items, once that is known.
    count: Option<u64>,
    /// Number of items that had been taken, if the iterator made fewer of them when it was started again.
    taken_before: Option<u64>,
}

impl<T> Producer<T> {
    /// The producer of an iterator's items.
    pub fn new(items: impl Iterator<Item = T> + 'static, is_last: fn(&T) -> bool) -> Self {
        Self {
            items: Some(Box::new(items)),
            is_last,
            next: 0,
            kept: BTreeMap::new(),
            count: None,
            taken_before: None,
        }
    }

    /// The item at a position; `None` behind the last one. The consumer has taken `taken` items.
    ///
    /// # Errors
    /// `ObjectLost` for an item that was made before, and if the iterator ends before what was taken;
    /// `Panicked` if it has panicked.
    pub fn take(&mut self, position: u64, taken: u64) -> Result<Option<T>, Failure> {
        self.check_count()?;
        self.kept = self.kept.split_off(&taken);
        if let Some(item) = self.kept.remove(&position) {
            return Ok(Some(item));
        }
        if self.count.is_some_and(|count| count <= position) {
            return Ok(None);
        }
        if position < self.next {
            let text = format!("item {position} of the stream was made before, and is not made again");
            return Err(Failure::new(FailureKind::ObjectLost, text));
        }
        while self.count.is_none() {
            let at = self.next;
            match self.advance()? {
                Some(item) if at == position => return Ok(Some(item)),
                Some(item) if taken <= at => drop(self.kept.insert(at, item)),
                _ => {}
            }
        }
        self.check_end(taken)?;
        Ok(None)
    }

    /// Refuses to end before items that were taken: an iterator that was started again has made others.
    fn check_end(&mut self, taken: u64) -> Result<(), Failure> {
        let count = self.count.filter(|count| *count < taken);
        self.taken_before = count.map(|_| taken);
        self.check_count()
    }

    fn check_count(&self) -> Result<(), Failure> {
        let (Some(count), Some(taken)) = (self.count, self.taken_before) else { return Ok(()) };
        let text = format!(
            "the function was started again and made {count} items, of which {taken} had been taken before"
        );
        Err(Failure::new(FailureKind::ObjectLost, text))
    }

    /// The next item of the iterator, which is put away while it runs: one that panics is gone.
    fn advance(&mut self) -> Result<Option<T>, Failure> {
        let Some(mut items) = self.items.take() else {
            let text = format!("the iterator panicked when it made item {}", self.next);
            return Err(Failure::new(FailureKind::Panicked, text));
        };
        let item = items.next();
        self.next += u64::from(item.is_some());
        match &item {
            Some(item) if !(self.is_last)(item) => self.items = Some(items),
            _ => self.count = Some(self.next),
        }
        Ok(item)
    }
}

impl<T> std::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Producer({} items made)", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn numbers(count: u64) -> Producer<u64> {
        Producer::new(0..count, |_| false)
    }

    #[test]
    fn items_come_by_position_and_end() {
        let mut numbers = numbers(3);
        let taken: Vec<_> = (0..5).map(|position| numbers.take(position, position).unwrap()).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), None, None]);
    }

    #[test]
    fn a_producer_that_starts_again_passes_over_what_was_taken() {
        let mut again = numbers(100);
        assert_eq!(again.take(50, 48), Ok(Some(50)));
        assert_eq!(again.kept.len(), 2, "what was not taken may still be asked for");
        assert_eq!(again.take(48, 48), Ok(Some(48)));
        assert_eq!(again.take(49, 49), Ok(Some(49)));
        assert_eq!(again.take(100, 51), Ok(None));
        assert_eq!(again.kept.len(), 49, "items 51 to 99 were not taken");
        assert_eq!(again.take(101, 100), Ok(None));
        assert!(again.kept.is_empty());
    }

    #[test]
    fn a_producer_that_starts_again_and_makes_less_is_no_end() {
        let mut again = numbers(20);
        for position in [40, 41] {
            let failure = again.take(position, 40).unwrap_err();
            assert_eq!(failure.kind, FailureKind::ObjectLost);
            assert!(failure.message.contains("20 items, of which 40"), "{failure}");
        }
        assert_eq!(numbers(40).take(40, 40), Ok(None));
    }

    #[test]
    fn nothing_is_made_twice() {
        let mut numbers = numbers(10);
        assert_eq!(numbers.take(4, 4), Ok(Some(4)));
        for position in 0..5 {
            assert_eq!(numbers.take(position, 4).unwrap_err().kind, FailureKind::ObjectLost);
        }
        assert_eq!(numbers.take(5, 4), Ok(Some(5)));
    }

    #[test]
    fn an_error_is_the_last_item() {
        let items = [Ok(1), Err("no"), Ok(2)].into_iter();
        let mut items = Producer::new(items, Result::is_err);
        assert_eq!(items.take(2, 0), Ok(None), "asked for first, it is behind the error all the same");
        assert_eq!((items.take(0, 0), items.take(1, 1)), (Ok(Some(Ok(1))), Ok(Some(Err("no")))));
        assert_eq!(items.take(2, 2), Ok(None));
    }

    #[test]
    fn behind_a_panic_there_is_no_end() {
        let items = (0..4).inspect(|n| assert!(*n < 2, "two is too much"));
        let mut items = Producer::new(items, |_| false);
        assert_eq!(items.take(1, 0), Ok(Some(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| items.take(2, 0))).is_err());
        assert_eq!(items.take(0, 0), Ok(Some(0)), "what it made before is there");
        for position in [2, 3] {
            assert_eq!(items.take(position, 1).unwrap_err().kind, FailureKind::Panicked);
        }
    }
}
