//! A node that reaches nobody: it goes on with the jobs of its own drivers and starts no work of others.
//!
//! The other nodes declare it dead when its lease runs out, and start its tasks again. It cannot hear of it,
//! so it stops before: leases of other nodes' jobs are asked back, their unstarted runs are given back, and
//! no new ones are placed. Tasks that run go on, and so do the calls that were sent to an actor, which no
//! other worker can run: who made them is told that they may have run. The jobs of its own drivers end with
//! it for all other nodes, so nobody starts their tasks again.

use super::Node;
use crate::event::Action;

impl Node {
    /// The node has reached nobody for a while, or reaches somebody again.
    pub(super) fn isolation_changed(&mut self, is_isolated: bool, out: &mut Vec<Action>) {
        if !is_isolated {
            return self.lease_change(out, |leases, effects| leases.serve_all(effects));
        }
        let own = self.clients.driven_jobs();
        let mut left = Vec::new();
        self.lease_change(out, |leases, effects| left = leases.serve_only(own, effects));
        for key in left {
            if let Some(client) = self.leases.worker(key) {
                self.unstarted_given_back(client, out);
            }
        }
    }
}
