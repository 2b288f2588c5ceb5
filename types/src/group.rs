//! Placement groups: resources on one or more nodes that are reserved together.

use crate::limits::BUNDLES_MAX;
use crate::payload::COMPACT;
use crate::{BadResource, NodeId, Resources, SmallBytes};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way in which the bundles of a group are spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Strategy {
    /// On as few nodes as possible.
    #[default]
    Pack,
    /// On as many nodes as possible.
    Spread,
    /// On one node, or not at all.
    StrictPack,
    /// Each on a node of its own, or not at all.
    StrictSpread,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pack => "pack",
            Self::Spread => "spread",
            Self::StrictPack => "strict pack",
            Self::StrictSpread => "strict spread",
        })
    }
}

/// A placement group as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupSpec {
    /// The bundles: each is reserved on one node.
    pub bundles: Vec<Resources>,
    /// The way in which they are spread over nodes.
    pub strategy: Strategy,
    /// A group that no node of the cluster can hold fails after this many milliseconds.
    pub patience_ms: u64,
}

/// Why a placement group cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGroup {
    /// No bundle, or too many.
    #[error("a placement group of {0} bundles: it has 1 to {BUNDLES_MAX}")]
    Count(usize),
    /// A bundle that reserves nothing.
    #[error("bundle {0} of a placement group is empty: it reserves nothing")]
    Empty(usize),
    /// An amount or a name that is outside the limits.
    #[error("bundle {index}: {why}")]
    Resources {
        /// The bundle.
        index: usize,
        /// The fault of the resource.
        why: BadResource,
    },
}

impl GroupSpec {
    /// Checks a group that came from outside.
    ///
    /// # Errors
    /// [`BadGroup`] if it has no bundle, too many, an empty one, or one with bad amounts or names.
    pub fn check(&self) -> Result<(), BadGroup> {
        let count = self.bundles.len();
        if count == 0 || BUNDLES_MAX < count {
            return Err(BadGroup::Count(count));
        }
        for (index, bundle) in self.bundles.iter().enumerate() {
            if bundle.is_nothing() {
                return Err(BadGroup::Empty(index));
            }
            bundle.check().map_err(|why| BadGroup::Resources { index, why })?;
        }
        Ok(())
    }

    /// All that the bundles reserve together.
    #[must_use]
    pub fn total(&self) -> Resources {
        let mut total = Resources::default();
        self.bundles.iter().for_each(|bundle| total.give(bundle));
        total
    }
}

/// The node of each bundle of a group: the value of the group's object. A bundle whose node is gone has none
/// until it is placed again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleNodes(pub Vec<Option<NodeId>>);

impl BundleNodes {
    /// The value as it lies in a ledger and in records: a compact frame.
    #[must_use]
    pub fn to_bytes(&self) -> SmallBytes {
        // A list of numbers; encoding it to memory cannot fail.
        let encoded = postcard::to_extend(self, vec![COMPACT]).unwrap_or_default();
        SmallBytes::from(&encoded[..])
    }

    /// `None` if the bytes are not those of such a value: the object is no placement group.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, encoded) = bytes.split_first()?;
        let nodes: Self = postcard::from_bytes(encoded).ok().filter(|_| *kind == COMPACT)?;
        (nodes.0.len() <= BUNDLES_MAX).then_some(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_survive_their_bytes_and_other_bytes_are_none() {
        let nodes = BundleNodes(vec![Some(NodeId(u64::MAX - 1)), None, Some(NodeId(3))]);
        assert_eq!(BundleNodes::from_bytes(&nodes.to_bytes()), Some(nodes.clone()));
        let mut bytes = nodes.to_bytes().to_vec();
        bytes[0] = 7;
        assert_eq!(BundleNodes::from_bytes(&bytes), None);
        assert_eq!(BundleNodes::from_bytes(&[]), None);
        assert_eq!(BundleNodes::from_bytes(&[COMPACT, 2, 1]), None, "it is cut off");
    }

    #[test]
    fn groups_that_reserve_nothing_are_refused() {
        let spec = |bundles| GroupSpec { bundles, strategy: Strategy::Pack, patience_ms: 1 };
        let cpu = || Resources::cpus(1.0).unwrap();
        assert_eq!(spec(vec![cpu()]).check(), Ok(()));
        assert_eq!(spec(Vec::new()).check(), Err(BadGroup::Count(0)));
        assert_eq!(spec(vec![cpu(); BUNDLES_MAX + 1]).check(), Err(BadGroup::Count(BUNDLES_MAX + 1)));
        let mut nothing = Resources::default();
        nothing.custom.insert("tpu".to_owned(), 0);
        assert_eq!(spec(vec![cpu(), nothing]).check(), Err(BadGroup::Empty(1)));
        let mut bad = cpu();
        bad.custom.insert("CPU".to_owned(), 1);
        let much = Resources { gpu: u64::MAX, ..Resources::default() };
        assert!(matches!(spec(vec![much]).check(), Err(BadGroup::Resources { index: 0, .. })));
        assert!(matches!(spec(vec![bad]).check(), Err(BadGroup::Resources { index: 0, .. })));
        assert_eq!(spec(vec![cpu(), cpu()]).total(), Resources::cpus(2.0).unwrap());
    }
}
