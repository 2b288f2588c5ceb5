//! The files that one plan reads.

use object_store::ObjectMeta;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The files that were found in the places of one plan. Each scan of a table lists its files by itself; where
/// a plan reads a table twice, both must have the same ones.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<String, Vec<ObjectMeta>>>);

impl Listings {
    /// The files of a place that an earlier scan has found.
    pub(crate) fn known(&self, place: &str) -> Option<Vec<ObjectMeta>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// Takes the files of a place; gives those of the first scan that has found some.
    pub(crate) fn add(&self, place: &str, files: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(place.to_owned()).or_insert(files).clone()
    }
}
