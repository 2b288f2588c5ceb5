//! The other end of a connection: who it is, as far as the connection proves it.
//!
//! | caller | proves | is |
//! |---|---|---|
//! | [`Who::Certified`] | that it has the key of a certificate of the cluster's authority | that machine, in that role; a node of it only if the certificate names the node |
//! | [`Who::Trusted`] | that it knows the cluster's secret | whoever it says |
//! | [`Who::Stranger`] | nothing | one that may ask for a certificate, and do nothing else |
//!
//! No certificate and a certificate without a node are different callers: what one may say of a node is
//! decided in one place, [`Who::check_speaks_for`].

use crate::proof::Purpose;
use tharsis_identity::{MachineId, Role, Subject};
use tharsis_types::NodeId;

/// A connection that has been proved, as far as its purpose asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Purpose.
    pub purpose: Purpose,
    /// The one that calls.
    pub who: Who,
}

/// One that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// It shows a certificate: of a node, or of a machine without one.
    Certified(Subject),
    /// It shows none where certificates are asked for.
    Stranger,
    /// It knows the cluster's secret.
    Trusted {
        /// The node that it says it is; none for a command. Its own word, which is believed.
        says: Option<NodeId>,
    },
}

impl Who {
    /// Refuses one that says something in the name of a node that it is not.
    ///
    /// # Errors
    /// The reason.
    pub fn check_speaks_for(&self, node: NodeId) -> Result<(), String> {
        match self {
            Who::Trusted { .. } => Ok(()),
            Who::Certified(subject) if subject.role.has_nodes() && subject.node == Some(node.0) => Ok(()),
            Who::Certified(_) | Who::Stranger => {
                Err(format!("the certificate of the caller is not that of node {node}"))
            }
        }
    }

    /// The node that it is: by its certificate, or by its word where no certificates are asked for. None for
    /// callers that are no nodes.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Who::Certified(subject) => subject.node.map(NodeId),
            Who::Stranger => None,
            Who::Trusted { says } => *says,
        }
    }

    /// Whether it shows the certificate of a driver.
    #[must_use]
    pub fn is_driver(&self) -> bool {
        matches!(self, Who::Certified(subject) if subject.role == Role::Driver)
    }

    /// Whether it shows the certificate of an operator.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        matches!(self, Who::Certified(subject) if subject.role == Role::Operator)
    }

    /// The machine of its certificate; none without one.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        match self {
            Who::Certified(subject) => Some(subject.machine),
            Who::Stranger | Who::Trusted { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_certificate_of_a_node_speaks_for_it() {
        let certified =
            |role, node| Who::Certified(Subject { machine: MachineId(1), role, node, is_control: false });
        let speaks = |who: Who| who.check_speaks_for(NodeId(7)).is_ok();
        for role in Role::ALL {
            assert_eq!(speaks(certified(role, Some(7))), role.has_nodes());
            assert!(!speaks(certified(role, Some(8))) && !speaks(certified(role, None)), "{}", role.name());
        }
        assert!(!speaks(Who::Stranger));
        assert!([None, Some(NodeId(8))].into_iter().all(|says| speaks(Who::Trusted { says })));
    }
}
