//! The tables: their keys and values, and the transactions that change them.
//!
//! | key | value |
//! |---|---|
//! | `meta/cluster` | the cluster's id, 16 bytes |
//! | `meta/owner` | whose it is ([`Owner`]): the name of an authority, 16 bytes, or `user ` and that of a user |
//! | `meta/format` | [`FORMAT`] of the release that wrote last, as text |
//! | `meta/incarnations/<number>` | the id of an incarnation ([`Lineage`]), and whether the tables were restored |
//! | `meta/next-job` | the next job id, as text |
//! | `nodes/<node>` | [`NodeRecord`]; until the node leaves or is declared dead |
//! | `alive/<node>` | the node's lease as text, under that lease |
//! | `stores/<address>` | nothing, under the lease of the control store at that address |
//! | `jobs/<job>` | [`JobRecord`] |
//! | `machines/<row>` | a note of the authority: a token, a machine, a node, the end of one of them (`service/machines.rs`) |
//! | `driven/<node>/<job>` | nothing; until the job of a driver on that node ends |
//! | `job-requests/<request>` | the job that this request made, as text; until the job ends |
//! | `code/<unit>/<node>` | length of the code unit in bytes as text; counts while that node is a member |
//! | `programs/<job>` | the code unit that the job runs, 32 bytes; until the job ends |
//! | `kv/<namespace>/<key>` | a value of the user |
//!
//! A release reads the tables of all former ones, and refuses those of a later [`FORMAT`]: it would set aside
//! what it cannot read. A field of a record that is new has a default, and one that is not known is passed
//! over (`tables_tests.rs` has records as former releases wrote them).
//!
//! Ids are hexadecimal with leading zeros, so that keys sort as ids do. Records are JSON: there are few of
//! them, fields can be added, and an operator can read them with the tools of the store.
//!
//! A member's record does not end with its lease, because a lease also expires while the store itself does
//! not answer. `service/judge.rs` decides when a node without a lease is dead.
//!
//! Functions here build transactions and read their results; they do no I/O and know no back end.

mod lineage;
mod meta;
mod read;

pub use lineage::{Lineage, lineage, read_lineage};
pub use meta::{
    FORMAT, Owner, claim, claim_for, claimed, note_format, owner, owner_text, raise_format, read_format,
};
pub use read::{found, get, parse, ranged, readable};

use crate::backend::{
    Compare, KeyValue, Op, RANGE_ENTRIES_MAX, Range, StoreLease, TXN_PARTS_MAX, Txn, TxnResult,
};
use crate::error::StoreError;
use read::{corrupt, json, number};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;
use tharsis_protos::control::{ACTORS_NAMESPACE, GROUPS_NAMESPACE, JobInfo, NodeInfo, STORES_MAX};
use tharsis_protos::rows::Row;
use tharsis_types::{CodeUnitId, JobId, NodeId};

/// Ended jobs are kept until this many younger ones were registered.
pub const JOBS_KEPT_MAX: u32 = 10_000;

/// Prefix of the records of all nodes.
pub const NODES: &str = "nodes/";
const ALIVE: &str = "alive/";
/// Prefix of the addresses of all control stores.
pub const STORES: &str = "stores/";
/// Prefix of the notes of the authority.
pub const MACHINES: &str = "machines/";
/// Prefix of the values of users.
pub const VALUES: &str = "kv/";
const DRIVEN: &str = "driven/";
const CODE: &str = "code/";
const PROGRAMS: &str = "programs/";
const NEXT_JOB: &str = "meta/next-job";

/// A member, or one that is about to leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Information that the node gave about itself.
    pub info: NodeInfo,
    /// Reason of its leave. Written just before the record is deleted, so that watchers see it.
    #[serde(default)]
    pub departure: Option<String>,
    /// The machine that made it a member; none without certificates.
    #[serde(default)]
    pub machine: Option<String>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Public information about the job.
    pub info: JobInfo,
    /// The request that made it.
    pub request: [u8; 16],
}

/// A node's record as it is stored, and its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredNode {
    /// The record.
    pub record: NodeRecord,
    /// Version of the record, for comparisons.
    pub version: u64,
    /// The lease that keeps the node alive; `None` if it expired.
    pub lease: Option<StoreLease>,
}

/// State that must be known before a job can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCounter {
    /// The job that was already made for the same request.
    pub made: Option<JobId>,
    /// The id of the next job.
    pub next: u32,
    version: Option<u64>,
}

/// The key of a node.
#[must_use]
pub fn node_key(node: NodeId) -> Vec<u8> {
    format!("{NODES}{node}").into_bytes()
}

/// The node in a key.
#[must_use]
pub fn node_of_key(key: &[u8]) -> Option<NodeId> {
    let text = std::str::from_utf8(key).ok()?;
    u64::from_str_radix(text.rsplit('/').next()?, 16).ok().map(NodeId)
}

fn alive_key(node: NodeId) -> Vec<u8> {
    format!("{ALIVE}{node}").into_bytes()
}

fn alive(node: NodeId, lease: StoreLease) -> Op {
    Op::Put { key: alive_key(node), value: lease_text(lease), lease: Some(lease) }
}

/// Makes a node a member, if there is no member with its id.
///
/// # Errors
/// [`StoreError::Corrupt`] if it cannot be encoded.
pub fn join(record: &NodeRecord, lease: StoreLease) -> Result<Txn, StoreError> {
    let node = record.info.id;
    let key = node_key(node);
    let put = Op::put(key.clone(), json(&key, record)?);
    Ok(Txn::always(vec![put, alive(node, lease)]).when(Compare::Absent(key)))
}

fn lease_text(lease: StoreLease) -> Vec<u8> {
    lease.0.to_string().into_bytes()
}

/// Gives a member a new lease, if neither its record nor its lease has changed since they were read.
///
/// If two renewals find the old lease expired at the same time, only one gives a new lease. If both did, the
/// node would renew one of them, while its key is under the other.
#[must_use]
pub fn revive(known: &StoredNode, lease: StoreLease) -> Txn {
    let node = known.record.info.id;
    let unchanged = match known.lease {
        None => Compare::Absent(alive_key(node)),
        Some(ended) => Compare::Value(alive_key(node), lease_text(ended)),
    };
    let is_member = Compare::Version(node_key(node), known.version);
    Txn::always(vec![alive(node, lease)]).when(is_member).when(unchanged)
}

/// Stores the reason of a node's leave, if its record has not changed since it was read.
///
/// # Errors
/// [`StoreError::Corrupt`] if it cannot be encoded.
pub fn depart(record: &NodeRecord, version: u64) -> Result<Txn, StoreError> {
    let key = node_key(record.info.id);
    let put = Op::put(key.clone(), json(&key, record)?);
    Ok(Txn::always(vec![put]).when(Compare::Version(key, version)))
}

/// Removes a node, if its record has not changed since it was read.
#[must_use]
pub fn remove(node: NodeId, version: u64) -> Txn {
    let ops = vec![Op::Delete(node_key(node)), Op::Delete(alive_key(node))];
    Txn::always(ops).when(Compare::Version(node_key(node), version))
}

/// Removes a node without a lease, if it still has none and its record has not changed since it was read.
#[must_use]
pub fn remove_dead(node: NodeId, version: u64) -> Txn {
    remove(node, version).when(Compare::Absent(alive_key(node)))
}

/// Reads the record and the lease of a node.
#[must_use]
pub fn node_and_lease(node: NodeId) -> Txn {
    Txn::always(vec![Op::Get(node_key(node)), Op::Get(alive_key(node))])
}

/// The node that [`node_and_lease`] found.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_node(result: &TxnResult) -> Result<Option<StoredNode>, StoreError> {
    let Some(entry) = found(result, 0) else { return Ok(None) };
    let lease = found(result, 1).and_then(|alive| alive.lease);
    Ok(Some(StoredNode { record: parse(entry)?, version: entry.version, lease }))
}

/// Reads the nodes with a record, the nodes with a lease, the control stores, and the jobs that run.
#[must_use]
pub fn roll_call() -> Txn {
    let stores = Range { prefix: STORES.into(), after: None, limit: RANGE_ENTRIES_MAX, keys_only: false };
    Txn::always(vec![keys(NODES.into()), keys(ALIVE.into()), Op::Range(stores), keys(DRIVEN.into())])
}

/// The jobs whose driver's node has no record any more, in what [`roll_call`] found.
///
/// If more jobs run than one page holds, those of the nodes with the largest ids wait until others end.
#[must_use]
pub fn without_driver(result: &TxnResult) -> Vec<(JobId, NodeId)> {
    let members: BTreeSet<NodeId> = ranged(result, 0).0.iter().filter_map(|e| node_of_key(&e.key)).collect();
    let driven = ranged(result, 3).0.iter().filter_map(|e| job_and_driver(&e.key));
    driven.filter(|(_, node)| !members.contains(node)).collect()
}

/// Reads the jobs of one driver's node that run.
#[must_use]
pub fn jobs_driven_by(node: NodeId) -> Txn {
    Txn::always(vec![keys(format!("{DRIVEN}{node}/").into_bytes())])
}

fn driven_key(node: NodeId, job: JobId) -> Vec<u8> {
    format!("{DRIVEN}{node}/{job}").into_bytes()
}

fn job_and_driver(key: &[u8]) -> Option<(JobId, NodeId)> {
    let (node, job) = std::str::from_utf8(key).ok()?.strip_prefix(DRIVEN)?.split_once('/')?;
    let node = u64::from_str_radix(node, 16).ok().map(NodeId)?;
    Some((u32::from_str_radix(job, 16).ok().map(JobId)?, node))
}

/// Lists a control store at an address for as long as its lease lasts, with the node that it is part of.
#[must_use]
pub fn list_store(address: &str, head: Option<NodeId>, lease: StoreLease) -> Txn {
    let key = format!("{STORES}{address}").into_bytes();
    let value = head.map(|head| head.to_string().into_bytes()).unwrap_or_default();
    Txn::always(vec![Op::Put { key, value, lease: Some(lease) }])
}

/// Addresses of the control stores that [`roll_call`] found; the first ones if there are too many.
#[must_use]
pub fn stores(result: &TxnResult) -> Vec<String> {
    let keys = ranged(result, 2).0.iter().filter_map(|entry| std::str::from_utf8(&entry.key).ok());
    keys.filter_map(|key| key.strip_prefix(STORES)).take(STORES_MAX).map(str::to_owned).collect()
}

/// Nodes that control stores are part of, as [`roll_call`] found them.
#[must_use]
pub fn heads(result: &TxnResult) -> Vec<NodeId> {
    let values = ranged(result, 2).0.iter().filter_map(|entry| std::str::from_utf8(&entry.value).ok());
    values.filter_map(|value| u64::from_str_radix(value, 16).ok().map(NodeId)).take(STORES_MAX).collect()
}

/// The nodes with a record that [`roll_call`] found.
#[must_use]
pub fn called(result: &TxnResult) -> Vec<NodeId> {
    ranged(result, 0).0.iter().filter_map(|entry| node_of_key(&entry.key)).collect()
}

/// The nodes without a lease that [`roll_call`] found, each with the version of its record.
#[must_use]
pub fn without_lease(result: &TxnResult) -> Vec<(NodeId, u64)> {
    let alive: BTreeSet<NodeId> = ranged(result, 1).0.iter().filter_map(|e| node_of_key(&e.key)).collect();
    let nodes = ranged(result, 0).0.iter().filter_map(|e| Some((node_of_key(&e.key)?, e.version)));
    nodes.filter(|(node, _)| !alive.contains(node)).collect()
}

fn keys(prefix: Vec<u8>) -> Op {
    Op::Range(Range { prefix, after: None, limit: RANGE_ENTRIES_MAX, keys_only: true })
}

/// A transaction that reads the entries of all nodes.
#[must_use]
pub fn all_nodes() -> Txn {
    Txn::always(vec![Op::range(NODES)])
}

/// A transaction that counts the nodes with a record.
#[must_use]
pub fn count_nodes() -> Txn {
    Txn::always(vec![keys(NODES.into())])
}

/// The number of nodes that [`count_nodes`] found.
#[must_use]
pub fn node_count(result: &TxnResult) -> usize {
    ranged(result, 0).0.len()
}

/// The members in the result of [`all_nodes`], by id.
#[must_use]
pub fn members(result: &TxnResult) -> Vec<NodeInfo> {
    let records = readable::<NodeRecord>(ranged(result, 0).0);
    records.filter(|record| record.departure.is_none()).map(|record| record.info).collect()
}

/// Reads a page of the notes of the authority, after the last key of the page before.
#[must_use]
pub fn machine_rows(after: Option<Vec<u8>>) -> Txn {
    let prefix = MACHINES.into();
    Txn::always(vec![Op::Range(Range { prefix, after, limit: RANGE_ENTRIES_MAX, keys_only: false })])
}

/// A note of the authority; none if the entry is not one.
#[must_use]
pub fn machine_row(entry: &KeyValue) -> Option<Row> {
    Row::new(machine_row_name(&entry.key)?, std::str::from_utf8(&entry.value).ok()?)
}

/// The name of the note in a key.
#[must_use]
pub fn machine_row_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key).ok()?.strip_prefix(MACHINES)
}

fn machine_key(row: &Row) -> Vec<u8> {
    format!("{MACHINES}{}", row.name).into_bytes()
}

/// Adds a note of the authority, if there is none of its name.
#[must_use]
pub fn add_machine_row(row: &Row) -> Txn {
    let key = machine_key(row);
    Txn::always(vec![Op::put(key.clone(), row.text.as_bytes())]).when(Compare::Absent(key))
}

/// Gives a node to a machine, or reads whose it is.
#[must_use]
pub fn claim_node(row: &Row) -> Txn {
    add_machine_row(row).otherwise(Op::Get(machine_key(row)))
}

/// Notes that a machine asked again for its node, if nothing changed since `value` was read.
#[must_use]
pub fn claim_again(row: &Row, value: &[u8]) -> Txn {
    let key = machine_key(row);
    let is_unchanged = Compare::Value(key.clone(), value.to_vec());
    Txn::always(vec![Op::put(key, row.text.as_bytes())]).when(is_unchanged)
}

/// Removes a note of the authority, if it is unchanged.
#[must_use]
pub fn drop_machine_row(row: &Row) -> Txn {
    let key = machine_key(row);
    let is_unchanged = Compare::Value(key.clone(), row.text.as_bytes().to_vec());
    Txn::always(vec![Op::Delete(key)]).when(is_unchanged)
}

/// Reads the state that is needed to make a job.
#[must_use]
pub fn job_counter(request: &[u8; 16]) -> Txn {
    Txn::always(vec![Op::Get(NEXT_JOB.into()), Op::Get(request_key(request))])
}

/// The result of [`job_counter`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_job_counter(result: &TxnResult) -> Result<JobCounter, StoreError> {
    let made = found(result, 1).map(number::<u32>).transpose()?.map(JobId);
    let counter = found(result, 0);
    let next = counter.map(number::<u32>).transpose()?.unwrap_or(1);
    Ok(JobCounter { made, next, version: counter.map(|entry| entry.version) })
}

/// Makes a job with the id of the counter, if no other job was made since the counter was read. `outdated` is
/// a job to drop.
///
/// # Errors
/// [`StoreError::TooMany`] when all ids were used, [`StoreError::Corrupt`] if it cannot be encoded.
pub fn make_job(
    record: &JobRecord,
    counter: &JobCounter,
    outdated: Option<JobId>,
) -> Result<Txn, StoreError> {
    let limit = usize::try_from(u32::MAX - 1).unwrap_or(usize::MAX);
    let next =
        counter.next.checked_add(1).ok_or(StoreError::TooMany { what: "jobs", count: limit, limit })?;
    let key = job_key(record.info.id);
    let mut ops = vec![
        Op::put(NEXT_JOB, next.to_string()),
        Op::put(request_key(&record.request), record.info.id.0.to_string()),
        Op::put(key.clone(), json(&key, record)?),
        Op::put(driven_key(record.info.driver_node, record.info.id), Vec::new()),
    ];
    ops.extend(outdated.map(|job| Op::Delete(job_key(job))));
    let unchanged = match counter.version {
        Some(version) => Compare::Version(NEXT_JOB.into(), version),
        None => Compare::Absent(NEXT_JOB.into()),
    };
    Ok(Txn::always(ops).when(unchanged))
}

/// Stores the end of a job, if its record has not changed since it was read.
///
/// # Errors
/// [`StoreError::Corrupt`] if it cannot be encoded.
pub fn end_job(record: &JobRecord, version: u64) -> Result<Txn, StoreError> {
    let key = job_key(record.info.id);
    let put = Op::put(key.clone(), json(&key, record)?);
    let forget = Op::Delete(request_key(&record.request));
    let program = Op::Delete(program_key(record.info.id));
    let driven = Op::Delete(driven_key(record.info.driver_node, record.info.id));
    Ok(Txn::always(vec![put, forget, program, driven]).when(Compare::Version(key, version)))
}

/// The key of a job.
#[must_use]
pub fn job_key(job: JobId) -> Vec<u8> {
    format!("jobs/{job}").into_bytes()
}

/// Reads jobs after one.
#[must_use]
pub fn jobs_after(job: JobId, limit: usize) -> Txn {
    let range = Range { prefix: b"jobs/".to_vec(), after: Some(job_key(job)), limit, keys_only: false };
    Txn::always(vec![Op::Range(range)])
}

/// Reads the holders of a code unit.
#[must_use]
pub fn code_holders(unit: CodeUnitId) -> Txn {
    Txn::always(vec![Op::range(code_prefix(unit)), keys(NODES.into())])
}

/// The length of a code unit and the members that hold it, from the result of [`code_holders`]; `None` if no
/// member has it.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_code_holders(result: &TxnResult) -> Result<Option<(u64, Vec<NodeId>)>, StoreError> {
    let members: BTreeSet<NodeId> = ranged(result, 1).0.iter().filter_map(|e| node_of_key(&e.key)).collect();
    let mut holders = Vec::new();
    let mut size_bytes = None;
    for entry in ranged(result, 0).0 {
        let node = node_of_key(&entry.key).ok_or_else(|| corrupt(entry, "names no node"))?;
        if members.contains(&node) {
            size_bytes.get_or_insert(number(entry)?);
            holders.push(node);
        }
    }
    Ok(size_bytes.map(|size_bytes| (size_bytes, holders)))
}

/// Stores that a member holds a code unit, if its record has not changed since it was read.
#[must_use]
pub fn hold_code(unit: CodeUnitId, size_bytes: u64, node: NodeId, node_version: u64) -> Txn {
    let put = Op::put(code_key(unit, node), size_bytes.to_string());
    Txn::always(vec![put]).when(Compare::Version(node_key(node), node_version))
}

/// Reads a page of the holders of code units, after the last key of the page before.
#[must_use]
pub fn code_keys(after: Option<Vec<u8>>) -> Txn {
    let prefix = CODE.into();
    Txn::always(vec![Op::Range(Range { prefix, after, limit: RANGE_ENTRIES_MAX, keys_only: true })])
}

/// Removes the entries of one node in a page of [`code_keys`]. Empty if there are none.
#[must_use]
pub fn forget_code_of(node: NodeId, entries: &[KeyValue]) -> Vec<Txn> {
    let of_node = entries.iter().filter(|entry| node_of_key(&entry.key) == Some(node));
    let deletes: Vec<Op> = of_node.map(|entry| Op::Delete(entry.key.clone())).collect();
    deletes.chunks(TXN_PARTS_MAX).map(|ops| Txn::always(ops.to_vec())).collect()
}

/// The key of the program of a job.
#[must_use]
pub fn program_key(job: JobId) -> Vec<u8> {
    format!("{PROGRAMS}{job}").into_bytes()
}

/// Stores the program of a job, if the job's record has not changed since it was read.
#[must_use]
pub fn set_program(job: JobId, unit: CodeUnitId, job_version: u64) -> Txn {
    let put = Op::put(program_key(job), unit.0);
    Txn::always(vec![put]).when(Compare::Version(job_key(job), job_version))
}

/// Reads a page of the programs of jobs, after the last key of the page before.
#[must_use]
pub fn programs(after: Option<Vec<u8>>) -> Txn {
    let prefix = PROGRAMS.into();
    Txn::always(vec![Op::Range(Range { prefix, after, limit: RANGE_ENTRIES_MAX, keys_only: false })])
}

/// The keys under which a node says that it holds the programs of a page of [`programs`].
pub fn holding_keys(node: NodeId, programs: &[KeyValue]) -> impl Iterator<Item = Vec<u8>> {
    let unit = |program: &KeyValue| Some(CodeUnitId(program.value.as_slice().try_into().ok()?));
    programs.iter().filter_map(unit).map(move |unit| code_key(unit, node))
}

/// Reads a job and its program.
#[must_use]
pub fn job_and_program(job: JobId) -> Txn {
    Txn::always(vec![Op::Get(job_key(job)), Op::Get(program_key(job))])
}

/// The program that [`job_and_program`] found.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_program(result: &TxnResult) -> Result<Option<CodeUnitId>, StoreError> {
    let Some(entry) = found(result, 1) else { return Ok(None) };
    let unit = entry.value.as_slice().try_into().map_err(|_| corrupt(entry, "is not a code unit"))?;
    Ok(Some(CodeUnitId(unit)))
}

/// The store key of a user's key. Namespaces have no slash, so no two pairs share one.
#[must_use]
pub fn kv_key(namespace: &str, key: &[u8]) -> Vec<u8> {
    [VALUES.as_bytes(), namespace.as_bytes(), b"/", key].concat()
}

/// Whether a key is that of a name of an actor or a placement group.
#[must_use]
pub fn is_name(key: &[u8]) -> bool {
    let of_value = key.strip_prefix(VALUES.as_bytes()).unwrap_or_default();
    [ACTORS_NAMESPACE, GROUPS_NAMESPACE].iter().any(|namespace| {
        of_value.strip_prefix(namespace.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
    })
}

/// Reads a page of the keys of all values, after the last key of the page before.
#[must_use]
pub fn value_keys(after: Option<Vec<u8>>) -> Txn {
    let prefix = VALUES.into();
    Txn::always(vec![Op::Range(Range { prefix, after, limit: RANGE_ENTRIES_MAX, keys_only: true })])
}

/// Reads the user's keys that begin with `prefix` and come after `after`.
#[must_use]
pub fn kv_keys(namespace: &str, prefix: &[u8], after: &[u8], limit: usize) -> Txn {
    let after = (!after.is_empty()).then(|| kv_key(namespace, after));
    let range = Range { prefix: kv_key(namespace, prefix), after, limit, keys_only: true };
    Txn::always(vec![Op::Range(range)])
}

fn code_prefix(unit: CodeUnitId) -> Vec<u8> {
    format!("{CODE}{unit}/").into_bytes()
}

fn code_key(unit: CodeUnitId, node: NodeId) -> Vec<u8> {
    format!("{CODE}{unit}/{node}").into_bytes()
}

fn request_key(request: &[u8; 16]) -> Vec<u8> {
    let mut key = String::from("job-requests/");
    for byte in request {
        // Writing to a string does not fail.
        let _ = write!(key, "{byte:02x}");
    }
    key.into_bytes()
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
