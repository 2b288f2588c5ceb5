//! Shares of the watches of one control store: each node has its own, whatever others do.
//!
//! | who watches | may have |
//! |---|---|
//! | a node | [`PER_NODE_MAX`]; one more ends its oldest, whose connection broke unnoticed |
//! | the nodes of one machine | [`NODES_PER_MACHINE_MAX`] nodes |
//! | others | [`PER_MACHINE_MAX`] for each machine, [`OTHERS_MAX`] in all |

use std::collections::{BTreeMap, BTreeSet};
use tharsis_protos::caller::Who;
use tharsis_protos::control::{MachineId, NODES_PER_MACHINE_MAX};
use tharsis_types::NodeId;
use tokio::sync::watch;

/// Watches of one node.
pub(super) const PER_NODE_MAX: usize = 2;
/// Watches of one machine beside those of its nodes.
pub(super) const PER_MACHINE_MAX: usize = 8;
/// Watches of all that are no nodes.
pub(super) const OTHERS_MAX: usize = 256;

/// The watches that are open.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    next: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    node: Option<NodeId>,
    machine: Option<MachineId>,
    end: watch::Sender<bool>,
}

impl Watchers {
    /// Takes a watch in: its number, and what becomes true when it is to end.
    ///
    /// # Errors
    /// The limit that it would pass.
    pub(super) fn enter(&mut self, who: &Who) -> Result<(u64, watch::Receiver<bool>), String> {
        let (node, machine) = (who.node(), who.machine());
        match node {
            Some(node) => self.make_room(node, machine)?,
            None => self.check_others(machine)?,
        }
        let (end, ended) = watch::channel(false);
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Open { node, machine, end });
        Ok((number, ended))
    }

    /// A watch has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Ends the oldest watches of a node above its share.
    fn make_room(&mut self, node: NodeId, machine: Option<MachineId>) -> Result<(), String> {
        let own: Vec<u64> =
            self.open.iter().filter(|(_, open)| open.node == Some(node)).map(|(number, _)| *number).collect();
        if own.is_empty()
            && let Some(machine) = machine
        {
            let of_machine = self.open.values().filter(|open| open.machine == Some(machine));
            let nodes: BTreeSet<NodeId> = of_machine.filter_map(|open| open.node).collect();
            if NODES_PER_MACHINE_MAX <= nodes.len() {
                return Err(format!("{NODES_PER_MACHINE_MAX} nodes of machine {machine} watch, the limit"));
            }
        }
        for number in own.iter().take((own.len() + 1).saturating_sub(PER_NODE_MAX)) {
            if let Some(oldest) = self.open.remove(number) {
                oldest.end.send_replace(true);
            }
        }
        Ok(())
    }

    fn check_others(&self, machine: Option<MachineId>) -> Result<(), String> {
        let others = || self.open.values().filter(|open| open.node.is_none());
        if OTHERS_MAX <= others().count() {
            return Err(format!("{OTHERS_MAX} watchers that are no nodes are being served, the limit"));
        }
        match machine {
            Some(machine)
                if PER_MACHINE_MAX <= others().filter(|open| open.machine == Some(machine)).count() =>
            {
                Err(format!("{PER_MACHINE_MAX} watchers of machine {machine} are being served, the limit"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted(node: Option<u64>) -> Who {
        Who::Trusted { says: node.map(NodeId) }
    }

    #[test]
    fn nodes_watch_whatever_others_do() {
        let mut watchers = Watchers::default();
        let seats: Vec<_> = (0..OTHERS_MAX).map(|_| watchers.enter(&trusted(None)).unwrap()).collect();
        assert!(watchers.enter(&trusted(None)).unwrap_err().contains("256"));
        let nodes: Vec<_> = (1..=2000).map(|node| watchers.enter(&trusted(Some(node))).unwrap()).collect();
        assert!(nodes.iter().all(|(_, end)| !*end.borrow()));
        watchers.leave(seats[0].0);
        watchers.enter(&trusted(None)).unwrap();
    }

    #[test]
    fn a_node_that_watches_again_ends_its_oldest_watch() {
        let mut watchers = Watchers::default();
        let ends: Vec<_> = (0..4).map(|_| watchers.enter(&trusted(Some(1))).unwrap().1).collect();
        let ended: Vec<bool> = ends.iter().map(|end| *end.borrow()).collect();
        assert_eq!(ended, [true, true, false, false]);
    }
}
