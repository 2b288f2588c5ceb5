//! Members that this control store has reached at the addresses that they advertise.
//!
//! A connection attempt shows something about a node (`suspects.rs`, `silence.rs`) only if the address leads
//! to that node from here. It may not: a name that means loopback on this machine (Debian's `127.0.1.1`), an
//! address behind a translation without a way back, a service address that rejects. So each member is knocked
//! at once, when this control store first sees it, and only members that answered are judged by their ports.
//! The others have their leases, and a line in the log says that they are not reached.

use super::Shared;
use super::hang::{Look, look};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
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
    /// It answered.
    Answered,
    /// One is under way.
    Begun,
    /// Nobody answered, and the next one is due then.
    Unanswered { again_at: Instant },
}

impl Reach {
    /// Whether connections from here have led to the member.
    pub(super) fn has_answered(&self, node: NodeId) -> bool {
        matches!(self.0.get(&node), Some(Knock::Answered))
    }

    /// Whether a member is to be knocked at now; notes that it is.
    fn begins(&mut self, node: NodeId, now: Instant) -> bool {
        let is_due = match self.0.get(&node) {
            None => true,
            Some(Knock::Unanswered { again_at }) => *again_at <= now,
            Some(Knock::Answered | Knock::Begun) => false,
        };
        if is_due {
            self.0.insert(node, Knock::Begun);
        }
        is_due
    }

    fn note(&mut self, node: NodeId, has_answered: bool, now: Instant) {
        let again_at = now + AGAIN_AFTER;
        self.0.insert(node, if has_answered { Knock::Answered } else { Knock::Unanswered { again_at } });
    }

    /// Forgets those that are no members any more.
    fn keep(&mut self, members: &[NodeId]) {
        self.0.retain(|node, _| members.contains(node));
    }
}

/// Knocks at members that this control store has not reached yet.
pub(super) fn knock_at_new(shared: &Arc<Shared>, members: &[NodeId]) {
    let now = Instant::now();
    let mut reach = shared.reach.lock();
    if reach.0.len() != members.len() {
        reach.keep(members);
    }
    for node in members.iter().copied().filter(|node| reach.begins(*node, now)).take(KNOCKS_MAX) {
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            match shared.node(node).await {
                Ok(Some(known)) => knock(&shared.reach, node, &known.record.info.listen).await,
                _ => drop(shared.reach.lock().0.remove(&node)),
            }
        });
    }
}

/// Knocks at a member that has just registered, unless that was done before. Does not wait.
pub(super) fn knock_at(reach: &Arc<Mutex<Reach>>, node: NodeId, listen: &str) {
    if reach.lock().begins(node, Instant::now()) {
        let (reach, listen) = (Arc::clone(reach), listen.to_owned());
        tokio::spawn(async move { knock(&reach, node, &listen).await });
    }
}

async fn knock(reach: &Mutex<Reach>, node: NodeId, listen: &str) {
    let has_answered = look(listen).await == Look::Answered;
    if !has_answered {
        tracing::warn!(
            %node, listen,
            "the control store does not reach the node at the address that it advertises, and other nodes may \
             not either: look at its --host, and at what the name means on this machine"
        );
    }
    reach.lock().note(node, has_answered, Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_knocked_at_until_it_answers() {
        let (mut reach, start, node) = (Reach::default(), Instant::now(), NodeId(1));
        assert!(reach.begins(node, start));
        assert!(!reach.begins(node, start), "one at a time");
        reach.note(node, false, start);
        assert!(!reach.has_answered(node) && !reach.begins(node, start));
        assert!(reach.begins(node, start + AGAIN_AFTER));
        reach.note(node, true, start + AGAIN_AFTER);
        assert!(reach.has_answered(node) && !reach.begins(node, start + AGAIN_AFTER * 9));
        reach.keep(&[NodeId(2)]);
        assert!(!reach.has_answered(node));
    }
}
