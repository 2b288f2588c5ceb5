//! The end of all leases when the node drains.

use super::{Effect, Leases, State};
use tharsis_types::NodeId;

impl Leases {
    /// The node `me` drains: requests that wait or have no worker yet are denied, leases are asked back, and
    /// workers stop as soon as they are idle. From now on only `me` itself gets leases, for tasks that no
    /// other node can run.
    pub fn drain(&mut self, me: NodeId, out: &mut Vec<Effect>) {
        self.only_owner = Some(me);
        let mut keys: Vec<_> = self.leases.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            // The end of another one may have given it a worker.
            let Some(lease) = self.leases.get(&key) else { continue };
            match lease.state {
                State::Active(_) if lease.recalled => {}
                State::Active(_) => self.ask_back(key, out),
                State::Bundle => {}
                State::Waiting(_) | State::Placed => {
                    self.end(key, out);
                    out.push(Effect::Denied(key));
                }
            }
        }
        self.vacate_bundles(out);
        for client in self.resting() {
            self.rest(client, out);
        }
    }
}
