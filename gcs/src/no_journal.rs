//! Replacement of `journal.rs` without the feature `file`: no store in a file can be opened.

use crate::error::StoreError;
use crate::keyspace::EmbeddedLimits;
use crate::keyspace::{Commit, KeySpace};
use std::path::Path;

/// A type without values.
#[derive(Debug)]
pub(crate) enum Journal {}

impl Journal {
    /// Always an error.
    pub(crate) fn open(path: &Path, _: EmbeddedLimits) -> Result<(Self, KeySpace), StoreError> {
        let cause = "this program was built without the feature `file`".to_owned();
        Err(StoreError::Io { path: path.to_owned(), is_full: false, cause })
    }

    /// Never called, since no journal can be opened.
    pub(crate) fn commit(&self, _: &Commit) -> Result<(), StoreError> {
        match *self {}
    }
}
