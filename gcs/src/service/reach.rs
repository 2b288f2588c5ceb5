//! Members that this control store has met at the addresses that they advertise.
//!
//! A connection attempt shows something about a node (`suspects.rs`, `silence.rs`) only if the address leads
//! to that node from here. It may not: a name that means loopback on this machine (Debian's `127.0.1.1`), an
//! address behind a translation without a way back, a service address that rejects. Or a member says that it
//! is reached at a port of somebody else, and asks whether it is dead to learn what listens there. So each
//! member is knocked at once, when this control store first sees it; with certificates the port must show
//! that of the node. Members that were met are judged by the very address at which they were, whatever their
//! names mean later. The others have their leases, and a line in the log says that they are not reached.

use super::Shared;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tharsis_protos::knock::Knocker;
use tharsis_types::NodeId;
use tokio::time::Instant;

/// Before a member that was not reached is knocked at again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Knocks that begin in one round.
const KNOCKS_MAX: usize = 64;

/// The outcome of the knocks at each member.
#[derive(Debug, Default)]
pub(super) struct Reach(HashMap<NodeId, Knock>);

#[derive(Clone, Copy, Debug)]
enum Knock {
    /// It answered there.
    Met(SocketAddr),
    /// One is under way.
    Begun,
    /// Nobody answered, and the next one is due then.
    Unanswered { again_at: Instant },
}

impl Reach {
    /// The address at which connections from here have led to the member.
    pub(super) fn met_at(&self, node: NodeId) -> Option<SocketAddr> {
        match self.0.get(&node) {
            Some(Knock::Met(at)) => Some(*at),
            Some(Knock::Begun | Knock::Unanswered { .. }) | None => None,
        }
    }

    /// Whether a member is to be knocked at now; notes that it is.
    fn begins(&mut self, node: NodeId, now: Instant) -> bool {
        let is_due = match self.0.get(&node) {
            None => true,
            Some(Knock::Unanswered { again_at }) => *again_at <= now,
            Some(Knock::Met(_) | Knock::Begun) => false,
        };
        if is_due {
            self.0.insert(node, Knock::Begun);
        }
        is_due
    }

    fn note(&mut self, node: NodeId, met: Option<SocketAddr>, now: Instant) {
        let unanswered = Knock::Unanswered { again_at: now + AGAIN_AFTER };
        self.0.insert(node, met.map_or(unanswered, Knock::Met));
    }

    /// Forgets those that are no members any more.
    fn keep(&mut self, members: &[NodeId]) {
        self.0.retain(|node, _| members.contains(node));
    }
}

impl Shared {
    /// Knocks at members that this control store has not reached yet.
    pub(super) fn knock_at_new(self: &Arc<Self>, members: &[NodeId]) {
        let Some(knocker) = self.knocker.get() else { return };
        let now = Instant::now();
        let mut reach = self.reach.lock();
        if reach.0.len() != members.len() {
            reach.keep(members);
        }
        for node in members.iter().copied().filter(|node| reach.begins(*node, now)).take(KNOCKS_MAX) {
            let (shared, knocker) = (Arc::clone(self), knocker.clone());
            tokio::spawn(async move {
                match shared.node(node).await {
                    Ok(Some(known)) => {
                        knock(&knocker, &shared.reach, node, &known.record.info.listen).await;
                    }
                    _ => drop(shared.reach.lock().0.remove(&node)),
                }
            });
        }
    }

    /// Knocks at a member that has just registered, unless that was done before. Does not wait.
    pub(super) fn knock_at(&self, node: NodeId, listen: &str) {
        let Some(knocker) = self.knocker.get().cloned() else { return };
        if self.reach.lock().begins(node, Instant::now()) {
            let (reach, listen) = (Arc::clone(&self.reach), listen.to_owned());
            tokio::spawn(async move { knock(&knocker, &reach, node, &listen).await });
        }
    }
}

async fn knock(knocker: &Knocker, reach: &Mutex<Reach>, node: NodeId, listen: &str) {
    let met = knocker.find(node, listen).await;
    if met.is_none() {
        tracing::warn!(
            %node, listen,
            "the control store does not reach the node at the address that it advertises, and other nodes may \
             not either: look at its --host, and at what the name means on this machine"
        );
    }
    reach.lock().note(node, met, Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_knocked_at_until_it_answers() {
        let (mut reach, start, node) = (Reach::default(), Instant::now(), NodeId(1));
        let at: SocketAddr = "10.0.0.1:7".parse().unwrap();
        assert!(reach.begins(node, start));
        assert!(!reach.begins(node, start), "one at a time");
        reach.note(node, None, start);
        assert!(reach.met_at(node).is_none() && !reach.begins(node, start));
        assert!(reach.begins(node, start + AGAIN_AFTER));
        reach.note(node, Some(at), start + AGAIN_AFTER);
        assert!(reach.met_at(node) == Some(at) && !reach.begins(node, start + AGAIN_AFTER * 9));
        reach.keep(&[NodeId(2)]);
        assert_eq!(reach.met_at(node), None);
    }
}
