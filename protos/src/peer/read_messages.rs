//! Messages about reads of large objects, to and from their form on the wire.

use super::names::{bytes_of, object};
use super::wire::{self, message::Kind, read_reply};
use crate::message::{BadMessage, node_id, required};
use tharsis_types::peer::{Message, Turn};
use tharsis_types::{NodeId, ObjectId};

pub(super) fn wire_request(object: &ObjectId, sent: bool, failed_at: Option<NodeId>) -> Kind {
    let failed_at = failed_at.map_or(0, |node| node.0);
    Kind::ReadRequest(wire::ReadRequest { object: bytes_of(object), sent, failed_at })
}

pub(super) fn request(m: &wire::ReadRequest) -> Result<Message, BadMessage> {
    let object = object("read_request.object", &m.object)?;
    let failed_at = (m.failed_at != 0).then_some(NodeId(m.failed_at));
    Ok(Message::ReadRequest { object, sent: m.sent, failed_at })
}

pub(super) fn wire_reply(object: &ObjectId, turn: Turn) -> Kind {
    let turn = match turn {
        Turn::Now => read_reply::Turn::Now(wire::ReadNow {}),
        Turn::At(node) => read_reply::Turn::At(node.0),
        Turn::Never => read_reply::Turn::Never(wire::ReadNever {}),
    };
    Kind::ReadReply(wire::ReadReply { object: bytes_of(object), turn: Some(turn) })
}

pub(super) fn reply(m: &wire::ReadReply) -> Result<Message, BadMessage> {
    let object = object("read_reply.object", &m.object)?;
    let turn = match required("read_reply.turn", m.turn)? {
        read_reply::Turn::Now(_) => Turn::Now,
        read_reply::Turn::At(node) => Turn::At(node_id("read_reply.at", node)?),
        read_reply::Turn::Never(_) => Turn::Never,
    };
    Ok(Message::ReadReply { object, turn })
}
