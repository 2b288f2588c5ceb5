//! The owners of node ids, who alone get certificates that name them.

use futures::future::BoxFuture;
use std::fmt::Debug;
use std::time::Duration;
use tharsis_identity::MachineId;
use tharsis_types::NodeId;

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The node is another machine's.
    ByAnother,
    /// The machine has the node.
    Given,
    /// The machine, or all together, have as many nodes as this, the limit.
    TooMany(usize),
}

/// The machines of nodes, as the control stores of a cluster know them together.
pub trait Owners: Debug + Send + Sync {
    /// Gives a node to a machine for a certificate of this lifetime, if it is not another one's. The error
    /// says why this cannot be known now.
    fn claim(
        &self,
        node: NodeId,
        machine: MachineId,
        lifetime: Duration,
    ) -> BoxFuture<'_, Result<Claimed, String>>;
}
