//! Results of transactions: entries, records, numbers.

use crate::backend::{KeyValue, Op, Response, Txn, TxnResult};
use crate::error::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A transaction that reads one key.
#[must_use]
pub fn get(key: Vec<u8>) -> Txn {
    Txn::always(vec![Op::Get(key)])
}

/// The entry found by the [`get`] at this position of a transaction, if any.
#[must_use]
pub fn found(result: &TxnResult, index: usize) -> Option<&KeyValue> {
    match result.responses.get(index) {
        Some(Response::Found(entry)) => entry.as_ref(),
        _ => None,
    }
}

/// The entries of the range at this position of a transaction, and whether there are more.
#[must_use]
pub fn ranged(result: &TxnResult, index: usize) -> (&[KeyValue], bool) {
    match result.responses.get(index) {
        Some(Response::Range { entries, more }) => (entries, *more),
        _ => (&[], false),
    }
}

/// Reads a record.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn parse<T: DeserializeOwned>(entry: &KeyValue) -> Result<T, StoreError> {
    serde_json::from_slice(&entry.value).map_err(|error| corrupt(entry, &error.to_string()))
}

/// The records among entries. A damaged one is skipped and named in the log, so that the others are served.
pub fn readable<T: DeserializeOwned>(entries: &[KeyValue]) -> impl Iterator<Item = T> + '_ {
    entries.iter().filter_map(|entry| match parse(entry) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::warn!(%error, "a record is set aside");
            None
        }
    })
}

pub(super) fn json(key: &[u8], record: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(record).map_err(|error| StoreError::Corrupt {
        what: format!("key {:?}", String::from_utf8_lossy(key)),
        problem: error.to_string(),
    })
}

pub(super) fn number<T: std::str::FromStr>(entry: &KeyValue) -> Result<T, StoreError> {
    let text = std::str::from_utf8(&entry.value).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| corrupt(entry, "is not a number"))
}

pub(super) fn corrupt(entry: &KeyValue, problem: &str) -> StoreError {
    StoreError::Corrupt {
        what: format!("key {:?}", String::from_utf8_lossy(&entry.key)),
        problem: problem.to_owned(),
    }
}
