//! Functions that plans know by their names.

use std::hash::{Hash, Hasher};

/// The part of a function that cannot be compared, such as a pointer to code, with the function's name: it
/// equals another one of this name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<T> {
    pub(super) name: &'static str,
    pub(super) part: T,
}

impl<T> PartialEq for Named<T> {
    fn eq(&self, other: &Named<T>) -> bool {
        self.name == other.name
    }
}

impl<T> Eq for Named<T> {}

impl<T> Hash for Named<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
