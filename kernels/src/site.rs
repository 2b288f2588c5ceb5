//! The result of a task, as far as it is known before it is made.

use crate::evaluate::Place;

/// The part of the result that a task makes, and what it is to store of it.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// First index along each axis, and the extents.
    pub place: Place<'a>,
    /// Elements that a sparse result stores.
    pub stored: usize,
}

impl Site<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.place.extents[0]
    }

    pub(crate) fn columns(&self) -> usize {
        self.place.extents[1]
    }
}
