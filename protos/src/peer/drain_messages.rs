//! Messages about nodes that drain, to and from their form on the wire.

use super::names::{bytes_of, object, reference, wire_ref};
use super::wire::{self, drain::Kind};
use crate::message::{BadMessage, node_id, required};
use tharsis_types::limits::MOVE_TARGETS_MAX;
use tharsis_types::peer::DrainMessage;

pub(super) fn to_wire(message: &DrainMessage) -> wire::Drain {
    let kind = match message {
        DrainMessage::Begun => Kind::Begun(wire::DrainBegun {}),
        DrainMessage::CopyKept { object } => Kind::CopyKept(wire::CopyKept { object: bytes_of(object) }),
        DrainMessage::CopyLeaving { object } => {
            Kind::CopyLeaving(wire::CopyLeaving { object: bytes_of(object) })
        }
        DrainMessage::CopyMove { reference, len, from, others } => Kind::CopyMove(wire::CopyMove {
            reference: Some(wire_ref(reference)),
            len_bytes: *len,
            from: from.0,
            others: others.iter().map(|node| node.0).collect(),
        }),
    };
    wire::Drain { kind: Some(kind) }
}

pub(super) fn from_wire(message: wire::Drain) -> Result<DrainMessage, BadMessage> {
    Ok(match required("kind", message.kind)? {
        Kind::Begun(_) => DrainMessage::Begun,
        Kind::CopyKept(m) => DrainMessage::CopyKept { object: object("copy_kept.object", &m.object)? },
        Kind::CopyLeaving(m) => {
            DrainMessage::CopyLeaving { object: object("copy_leaving.object", &m.object)? }
        }
        Kind::CopyMove(m) => copy_move(m).map_err(|bad| bad.within("copy_move"))?,
    })
}

fn copy_move(m: wire::CopyMove) -> Result<DrainMessage, BadMessage> {
    if MOVE_TARGETS_MAX < m.others.len() {
        return Err(BadMessage::too_many("others", m.others.len(), MOVE_TARGETS_MAX, "nodes"));
    }
    let others = m.others.into_iter().map(|node| node_id("others", node));
    Ok(DrainMessage::CopyMove {
        reference: reference("reference", m.reference)?,
        len: m.len_bytes,
        from: node_id("from", m.from)?,
        others: others.collect::<Result<_, _>>()?,
    })
}
