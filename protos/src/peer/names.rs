//! Names of objects and tasks on the wire, and references with their owners.

use super::wire;
use crate::message::{BadMessage, fixed, node_id, required};
use prost::bytes::Bytes;
use tharsis_types::{ObjectId, RefId, TaskId};

pub(super) fn bytes_of(object: &ObjectId) -> Bytes {
    Bytes::copy_from_slice(&object.to_bytes())
}

pub(super) fn object(field: &str, bytes: &[u8]) -> Result<ObjectId, BadMessage> {
    let id: [u8; ObjectId::LEN] = fixed(field, bytes)?;
    if id == [0; ObjectId::LEN] {
        // No job has the number 0, so this is no object's.
        return Err(BadMessage::missing(field));
    }
    Ok(ObjectId::from_bytes(id))
}

pub(super) fn reference(field: &str, reference: Option<wire::Ref>) -> Result<RefId, BadMessage> {
    let reference = required(field, reference)?;
    let within = |bad: BadMessage| bad.within(field);
    let object = object("object", &reference.object).map_err(within)?;
    Ok(RefId { object, owner: node_id("owner", reference.owner).map_err(within)? })
}

pub(super) fn wire_ref(reference: &RefId) -> wire::Ref {
    wire::Ref { object: bytes_of(&reference.object), owner: reference.owner.0 }
}

pub(super) fn task(field: &str, bytes: &[u8]) -> Result<TaskId, BadMessage> {
    fixed(field, bytes).map(TaskId::from_bytes)
}

pub(super) fn task_bytes(task: &TaskId) -> Bytes {
    Bytes::copy_from_slice(&task.to_bytes())
}
