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
/// Begins the value of an owner that is a user. The name of an authority is shorter than this and a name.
const USER: &[u8] = b"user ";

/// Owner of a key space: all who trust one authority, or else one user of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// All who trust an authority.
    Authority {
        /// A name of the authority, which does not change.
        name: ClusterId,
        /// The user here: what was this user's alone becomes the authority's.
        user: Option<[u8; 16]>,
    },
    /// A user of a machine. What its members trust is a secret of this user, which may be made anew.
    User([u8; 16]),
}

impl Owner {
    /// The claim in the tables.
    #[must_use]
    pub fn value(&self) -> Vec<u8> {
        match self {
            Owner::Authority { name, .. } => name.0.to_vec(),
            Owner::User(name) => [USER, name].concat(),
        }
    }

    /// Whether this owner takes the place of the one with the claim `before`.
    #[must_use]
    pub fn follows(&self, before: &[u8]) -> bool {
        matches!(self, Owner::Authority { user: Some(user), .. } if Owner::User(*user).value() == before)
    }
}

/// A claim, for people.
#[must_use]
pub fn owner_text(claim: &[u8]) -> String {
    let (kind, name) = claim.strip_prefix(USER).map_or(("authority", claim), |name| ("user", name));
    let name = name.try_into().map_or_else(|_| format!("{name:?}"), |name| ClusterId(name).to_string());
    format!("{kind} {name}")
}

/// Claims the key space for a cluster, or reads its owner.
#[must_use]
pub fn claim(cluster: ClusterId) -> Txn {
    Txn::always(vec![Op::put(CLUSTER, cluster.0)])
        .when(Compare::Absent(CLUSTER.into()))
        .otherwise(Op::Get(CLUSTER.into()))
}

/// Claims the key space for an owner in the place of the one with the claim `before`, or where there is none;
/// or reads whose it is.
#[must_use]
pub fn claim_for(owner: Owner, before: Option<Vec<u8>>) -> Txn {
    let key = || OWNER.as_bytes().to_vec();
    let unchanged = before.map_or_else(|| Compare::Absent(key()), |before| Compare::Value(key(), before));
    Txn::always(vec![Op::put(OWNER, owner.value())]).when(unchanged).otherwise(Op::Get(key()))
}

/// The claim that [`claim_for`] found; `None` if its own was taken.
#[must_use]
pub fn claimed(result: &TxnResult) -> Option<Vec<u8>> {
    found(result, 0).map(|entry| entry.value.clone())
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

/// The cluster of the key space after [`claim`]; `None` if the claim was taken.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn owner(result: &TxnResult) -> Result<Option<ClusterId>, StoreError> {
    let Some(entry) = found(result, 0) else { return Ok(None) };
    let id = entry.value.as_slice().try_into().map_err(|_| corrupt(entry, "is not a cluster id"))?;
    Ok(Some(ClusterId(id)))
}
