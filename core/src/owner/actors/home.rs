//! The value of an actor's object: where the actor lives.
//!
//! An actor is the object that its constructor makes. The owner writes this value when the constructor has
//! returned, so whoever depends on the object waits for the actor, and learns its node.

use tharsis_types::{Attempt, NodeId, SmallBytes};

/// The place of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owner) struct Home {
    /// The node of its worker.
    pub(in crate::owner) node: NodeId,
    /// The attempt of its constructor: how often it was started before.
    pub(in crate::owner) attempt: Attempt,
    /// Whether it is started again if its worker is lost.
    pub(in crate::owner) may_restart: bool,
}

impl Home {
    const LEN: usize = size_of::<u64>() + size_of::<Attempt>() + 1;

    pub(in crate::owner) fn to_bytes(self) -> SmallBytes {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.node.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[12] = u8::from(self.may_restart);
        SmallBytes::from(&bytes[..])
    }

    /// `None` if the bytes are not those of a home: the object is no actor.
    pub(in crate::owner) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; Self::LEN] = bytes.try_into().ok()?;
        let (node, rest) = bytes.split_first_chunk::<8>()?;
        let (attempt, flag) = rest.split_first_chunk::<4>()?;
        let may_restart = match flag {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Self {
            node: NodeId(u64::from_le_bytes(*node)),
            attempt: Attempt::from_le_bytes(*attempt),
            may_restart,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_survives_its_bytes_and_other_bytes_are_none() {
        for may_restart in [false, true] {
            let home = Home { node: NodeId(u64::MAX - 1), attempt: 7, may_restart };
            assert_eq!(Home::from_bytes(&home.to_bytes()), Some(home));
        }
        let mut bytes = Home { node: NodeId(1), attempt: 0, may_restart: false }.to_bytes().to_vec();
        bytes[12] = 2;
        assert_eq!(Home::from_bytes(&bytes), None);
        assert_eq!(Home::from_bytes(&bytes[1..]), None);
    }
}
