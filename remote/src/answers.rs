//! Requests to the node, and the threads that wait for their answers.

use crate::error::Result;
use crate::link::Link;
use crate::pump::Condition;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Open requests of one kind, by number.
pub(crate) struct Answers<T> {
    next: AtomicU32,
    waiting: Mutex<HashMap<u32, Question<T>>>,
}

enum Question<T> {
    /// No thread waits for the answer any more.
    Abandoned,
    Answered(T),
    Open,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { next: AtomicU32::new(0), waiting: Mutex::default() }
    }
}

impl<T> Answers<T> {
    /// Registers a request that is about to be sent, and returns its number.
    pub(crate) fn expect(&self) -> u32 {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(request, Question::Open);
        request
    }

    /// Stores an answer. An unexpected one is dropped; the answer of an abandoned request is returned.
    pub(crate) fn give(&self, request: u32, answer: T) -> Option<T> {
        let mut waiting = self.waiting.lock();
        match waiting.get_mut(&request)? {
            Question::Abandoned => {
                waiting.remove(&request);
                Some(answer)
            }
            question => {
                *question = Question::Answered(answer);
                None
            }
        }
    }

    /// Abandons a request; returns the answer if it has arrived.
    pub(crate) fn abandon(&self, request: u32) -> Option<T> {
        let mut waiting = self.waiting.lock();
        match waiting.insert(request, Question::Abandoned) {
            Some(Question::Answered(answer)) => {
                waiting.remove(&request);
                Some(answer)
            }
            _ => None,
        }
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// The loss of the connection.
    pub(crate) fn take(&self, link: &Link, request: u32) -> Result<T> {
        let is_here = || {
            self.waiting
                .lock()
                .get(&request)
                .is_some_and(|question| matches!(question, Question::Answered(_)))
        };
        let mut condition = Condition {
            is_met: &mut || is_here(),
            subscribe: &mut || {
                link.inbound.stand_by();
                is_here()
            },
        };
        link.wait(&mut condition, None);
        match self.waiting.lock().remove(&request) {
            Some(Question::Answered(answer)) => Ok(answer),
            _ => Err(link.loss()),
        }
    }
}
