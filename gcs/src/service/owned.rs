//! The nodes of each machine, counted: certificates and rows of one machine are bounded.
//!
//! A driver is a node of its own each time it starts, and its row stays for as long as its certificate may be
//! good, so a machine has many more rows than nodes that live. The counts are those of the table, as this
//! control store has heard of it: of several control stores each may let a few more in.

use std::collections::HashMap;
use tharsis_protos::control::MachineId;
use tharsis_protos::rows::Row;

/// Nodes that one machine may have certificates for: a driver a minute, for days.
pub(super) const NODES_OF_MACHINE_MAX: usize = 8192;
/// Nodes that all machines may have certificates for.
pub(super) const NODES_OF_ALL_MAX: usize = 1 << 17;

/// The machines of nodes, by the names of their rows.
#[derive(Debug, Default)]
pub(super) struct Owned {
    nodes: HashMap<String, MachineId>,
    counts: HashMap<MachineId, usize>,
}

impl Owned {
    /// Takes the whole table.
    pub(super) fn replace(&mut self, rows: &[Row]) {
        *self = Owned::default();
        rows.iter().for_each(|row| self.note(row));
    }

    /// Takes a row, if it is that of a node.
    pub(super) fn note(&mut self, row: &Row) {
        let Some(machine) = row.machine() else { return };
        self.forget(&row.name);
        self.nodes.insert(row.name.clone(), machine);
        *self.counts.entry(machine).or_default() += 1;
    }

    /// A row is gone.
    pub(super) fn forget(&mut self, name: &str) {
        let Some(machine) = self.nodes.remove(name) else { return };
        if let Some(count) = self.counts.get_mut(&machine) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&machine);
            }
        }
    }

    /// The limit that a row for a node would pass; none if the node has one, or there is room.
    pub(super) fn limit(&self, row: &Row) -> Option<usize> {
        let machine = row.machine()?;
        if self.nodes.contains_key(&row.name) {
            return None;
        }
        if NODES_OF_MACHINE_MAX <= self.counts.get(&machine).copied().unwrap_or_default() {
            return Some(NODES_OF_MACHINE_MAX);
        }
        (NODES_OF_ALL_MAX <= self.nodes.len()).then_some(NODES_OF_ALL_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_machine_has_no_more_nodes_than_its_limit_and_others_have_theirs() {
        let mut owned = Owned::default();
        let row = |node, machine| Row::owner(node, MachineId(machine), HOUR);
        for node in 0..NODES_OF_MACHINE_MAX as u64 {
            assert_eq!(owned.limit(&row(node, 1)), None);
            owned.note(&row(node, 1));
            owned.note(&row(node, 1));
        }
        assert_eq!(owned.limit(&row(1 << 40, 1)), Some(NODES_OF_MACHINE_MAX));
        assert_eq!(owned.limit(&row(0, 1)), None, "one that it has");
        assert_eq!(owned.limit(&row(1 << 40, 2)), None);
        owned.forget(&row(0, 1).name);
        owned.forget(&row(0, 1).name);
        assert_eq!(owned.limit(&row(1 << 40, 1)), None);
        owned.replace(&[row(5, 2)]);
        assert_eq!((owned.nodes.len(), owned.counts.len()), (1, 1));
    }
}
