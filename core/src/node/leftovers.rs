//! Sizes of all tables that must be empty when nothing is under way and there are no references.
//!
//! Nothing else finds a table that only grows: it breaks no invariant and fails no task.

use super::Node;

impl Node {
    /// Tables that are not empty, and their sizes; none once there are no references. For tests and the
    /// simulator.
    #[must_use]
    pub fn leftovers(&self) -> Vec<(&'static str, usize)> {
        let usage = self.store.usage();
        let others = [
            ("leases given", self.leases.lease_count()),
            ("objects or bundles that are fetched", self.pulls.len().max(self.pulls.object_count())),
            ("bytes in the store", usage.used_bytes as usize),
            ("bytes in the annex", usage.annex_used_bytes as usize),
        ];
        let mut tables: Vec<_> = others.into_iter().chain(self.owner.leftovers()).collect();
        tables.extend(self.leases.host_leftovers());
        tables.extend(self.store.leftovers());
        tables.extend(self.budgets.leftovers());
        tables.extend(self.peers.leftovers());
        tables.extend(self.transfers.leftovers());
        tables.extend(self.copy_owners.leftovers());
        tables.extend(self.moves.leftovers());
        tables.extend(self.checkpoints.leftovers());
        tables.extend(self.room.leftovers());
        tables.extend(self.mappings.leftovers());
        tables.extend(self.clients.leftovers());
        tables.extend(self.runs.leftovers());
        tables.extend(self.kills.leftovers());
        tables.retain(|(_, count)| *count > 0);
        tables
    }
}
