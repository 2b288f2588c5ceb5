//! The cluster that the key space belongs to, and the version of the tables.

use super::read::{corrupt, found, number};
use crate::backend::{Compare, Op, Txn, TxnResult};
use crate::error::StoreError;
use tharsis_protos::control::ClusterId;

/// Version of the tables. It changes when former releases cannot go on with them.
pub const FORMAT: u64 = 1;

const CLUSTER: &str = "meta/cluster";
const META_FORMAT: &str = "meta/format";
const OWNER: &str = "meta/owner";

/// Claims the key space for a cluster, or reads its owner.
#[must_use]
pub fn claim(cluster: ClusterId) -> Txn {
    Txn::always(vec![Op::put(CLUSTER, cluster.0)])
        .when(Compare::Absent(CLUSTER.into()))
        .otherwise(Op::Get(CLUSTER.into()))
}

/// Claims the key space for what the members of a cluster trust, or reads whose it is.
#[must_use]
pub fn claim_for(owner: ClusterId) -> Txn {
    Txn::always(vec![Op::put(OWNER, owner.0)])
        .when(Compare::Absent(OWNER.into()))
        .otherwise(Op::Get(OWNER.into()))
}

/// Notes the version of the tables, or reads the one that is noted.
#[must_use]
pub fn note_format() -> Txn {
    Txn::always(vec![Op::put(META_FORMAT, FORMAT.to_string())])
        .when(Compare::Absent(META_FORMAT.into()))
        .otherwise(Op::Get(META_FORMAT.into()))
}

/// Raises the noted version to that of this release, if it is still `found`.
#[must_use]
pub fn raise_format(found: u64) -> Txn {
    let unchanged = Compare::Value(META_FORMAT.into(), found.to_string().into_bytes());
    Txn::always(vec![Op::put(META_FORMAT, FORMAT.to_string())]).when(unchanged)
}

/// The version that [`note_format`] found; that of this release if there was none.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_format(result: &TxnResult) -> Result<u64, StoreError> {
    found(result, 0).map_or(Ok(FORMAT), number)
}

/// The holder of the key space after [`claim`] or [`claim_for`]; `None` if the claim was taken.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn owner(result: &TxnResult) -> Result<Option<ClusterId>, StoreError> {
    let Some(entry) = found(result, 0) else { return Ok(None) };
    let id = entry.value.as_slice().try_into().map_err(|_| corrupt(entry, "is not a cluster id"))?;
    Ok(Some(ClusterId(id)))
}
