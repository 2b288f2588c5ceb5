//! Copies that their owners give up.
//!
//! An owner that gives up the copies of an object has them freed, wherever they are. So it may give up those
//! alone that were looked for and not there. A node that is not reached says nothing of its copy. An absence
//! is remembered with the object and the node, and excuses nothing else.

use crate::Sabotage;
use crate::cluster::Cluster;
use tharsis_types::peer::{Message, Turn};
use tharsis_types::{NodeId, ObjectId};

/// The rule.
const NO_LOSS: &str = "no copy is given up that can be read";

impl Cluster {
    /// A node says that it has nothing of an object.
    pub(crate) fn note_denial(&mut self, host: usize, message: &Message) {
        if let Message::ReadReply { object, turn: Turn::Never } = message {
            self.oracle.absent.insert((*object, self.hosts[host].id));
        }
    }

    /// Whether a copy that is there is denied to the owner of its object: a planted fault.
    pub(crate) fn is_denied(&self, host: usize, object: ObjectId) -> bool {
        let at = &self.hosts[host];
        let mut references = at.node.references();
        self.sabotage == Sabotage::DenyCopies
            && references.any(|reference| reference.object == object && reference.owner == at.id)
    }

    /// No copy on a node that lives was given up in the last step of a node, unless somebody looked for it
    /// there once in vain.
    pub(crate) fn check_given_up(&mut self, host: usize) {
        let at = &self.hosts[host];
        let (count, latest) = at.node.copies_given_up();
        let is_there = |(object, node): &(ObjectId, NodeId)| {
            let holder = self.hosts.iter().find(|other| other.id == *node && other.alive);
            let has_it = holder.is_some_and(|holder| holder.node.copy_number(*object).is_some());
            has_it && !self.oracle.absent.contains(&(*object, *node))
        };
        let living = latest.take((count - at.given_up) as usize).find(is_there);
        let owner = at.id;
        self.hosts[host].given_up = count;
        if let Some((object, node)) = living {
            self.fail(NO_LOSS, format!("node {owner} gives up the copy of {object} on node {node}"));
        }
    }
}
