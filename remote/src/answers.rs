//! Questions to the node that a thread waits for the answer of.

use crate::error::Result;
use crate::link::Link;
use crate::pump::Condition;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Questions of one kind that are under way, by number.
pub(crate) struct Answers<T> {
    next: AtomicU32,
    waiting: Mutex<HashMap<u32, Question<T>>>,
}

enum Question<T> {
    /// Nobody waits for the answer any more.
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
    /// A number for a question about to be sent.
    pub(crate) fn expect(&self) -> u32 {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(request, Question::Open);
        request
    }

    /// Takes in an answer; one that nobody expects is dropped, one that nobody waits for any more comes back.
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

    /// Nobody waits for an answer any more; it comes back if it is here.
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
