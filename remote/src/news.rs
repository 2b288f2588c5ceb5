//! News of handles that have become ready, for whoever watches many of them.

use parking_lot::Mutex;
use std::thread::{self, Thread};

/// Places of handles that have become ready.
#[derive(Default)]
pub(crate) struct News(Mutex<Told>);

#[derive(Default)]
struct Told {
    places: Vec<usize>,
    /// The thread that sleeps until so many places are here.
    sleeper: Option<(usize, Thread)>,
}

impl News {
    /// Notes a handle that has become ready.
    pub(crate) fn tell(&self, place: usize) {
        let mut told = self.0.lock();
        told.places.push(place);
        let count = told.places.len();
        let woken = told.sleeper.take_if(|(wanted, _)| *wanted <= count);
        drop(told);
        if let Some((_, thread)) = woken {
            thread.unpark();
        }
    }

    /// Whether so many places are here; if not, the current thread is woken when they are.
    pub(crate) fn is_here_or_wakes(&self, wanted: usize) -> bool {
        let mut told = self.0.lock();
        told.sleeper = Some((wanted, thread::current()));
        told.places.len() >= wanted
    }

    /// Number of places that were not taken.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().places.len()
    }

    /// Takes the places that are here.
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().places)
    }
}
