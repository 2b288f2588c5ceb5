//! In place of `journal.rs` where the feature `file` is off: tables are kept in no file.

use crate::error::StoreError;
use crate::keyspace::EmbeddedLimits;
use crate::keyspace::{Commit, KeySpace};
use std::path::Path;

/// None can be opened.
#[derive(Debug)]
pub(crate) enum Journal {}

impl Journal {
    /// Refuses.
    pub(crate) fn open(path: &Path, _: EmbeddedLimits) -> Result<(Self, KeySpace), StoreError> {
        let cause = "this program was built without the feature `file`".to_owned();
        Err(StoreError::Io { path: path.to_owned(), cause })
    }

    /// Commits to no file; never called, as none can be opened.
    pub(crate) fn commit(&self, _: &Commit) -> Result<(), StoreError> {
        match *self {}
    }
}
