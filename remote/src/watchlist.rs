//! A watch over many handles: those that are ready are found without a look at the others.
//!
//! A handle that becomes ready says so itself, once, with the place that it was given. So a caller that takes
//! many references one by one does work in proportion to their number, not to its square.

use crate::error::Result;
use crate::handles::{Handle, State, Waiter};
use crate::link::Link;
use crate::news::News;
use crate::pump::{Condition, Reader};
use crate::settle::{Timeout, Waiting};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Handles that are watched, each under a place, and those of them that are ready and were not taken yet.
#[derive(Default)]
pub(crate) struct Watchlist {
    news: Arc<News>,
    ready: BTreeSet<usize>,
}

impl Watchlist {
    /// Begins to watch a handle; the node is asked about it, if it was not yet.
    pub(crate) fn add(&mut self, place: usize, handle: &Handle) {
        handle.ask_if_held();
        if handle.watch(State::is_ready, || Waiter::News(Arc::clone(&self.news), place)) {
            self.ready.insert(place);
        }
    }

    /// Ends the watch over a handle.
    pub(crate) fn remove(&self, handle: &Handle) {
        handle.unwatch(&self.news);
    }

    /// Waits until so many handles are ready, or the timeout is over.
    pub(crate) fn wait(&mut self, link: &Link, count: usize, timeout: Option<Timeout>) -> Result<()> {
        let deadline = timeout.map(Timeout::deadline).transpose()?.flatten();
        link.drain();
        self.hear();
        let missing = count.saturating_sub(self.ready.len());
        if missing == 0 || timeout.is_some_and(Timeout::is_zero) {
            return Ok(());
        }
        let news = &self.news;
        let mut waiting = Waiting::new(link);
        let mut condition = Condition {
            is_met: &mut || news.count() >= missing,
            subscribe: &mut || news.is_here_or_wakes(missing),
        };
        let outcome = waiting.wait(link, &mut condition, deadline);
        waiting.end()?;
        self.hear();
        match outcome {
            Ok(false) if link.is_lost() => Err(link.loss()),
            other => other.map(|_| ()),
        }
    }

    /// Number of handles that are known to be ready.
    pub(crate) fn ready_count(&mut self) -> usize {
        self.hear();
        self.ready.len()
    }

    /// Takes the ready handle with the lowest place.
    pub(crate) fn take_first(&mut self) -> Option<usize> {
        self.ready.pop_first()
    }

    fn hear(&mut self) {
        self.ready.extend(self.news.take());
    }
}
