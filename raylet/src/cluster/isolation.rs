//! Whether this node reaches anybody.
//!
//! A member whose renewals are not answered may be cut off from the others, or the control store may be away.
//! Both look alike from here, except for one thing: a machine that is there answers a connection, if only by
//! refusing it. So once renewals fail, the node connects to the control stores and to some members. If
//! nobody answers for half the time of a lease, it is isolated: soon after, the others will declare it dead
//! and start its tasks again, so it starts none of them from then on.

use super::links::Peers;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tharsis_gcs::ControlClient;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Looks within the time of one lease.
pub const LOOKS_PER_LEASE: u32 = 8;
/// Maximum number of members that are looked for besides the control stores.
const MEMBERS_MAX: usize = 8;

/// When somebody was last heard of, and what follows.
#[derive(Debug)]
pub struct Isolation {
    lease_ttl: Duration,
    heard: Instant,
    is_isolated: bool,
}

impl Isolation {
    /// A node that has just joined, so it has been answered.
    #[must_use]
    pub fn new(lease_ttl: Duration, now: Instant) -> Isolation {
        Isolation { lease_ttl, heard: now, is_isolated: false }
    }

    /// Notes that somebody has answered.
    pub fn heard(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
    }

    /// Whether it is time to look who is there.
    #[must_use]
    pub fn is_unsure(&self, now: Instant) -> bool {
        self.lease_ttl / 4 <= now.saturating_duration_since(self.heard)
    }

    /// Whether the node is isolated now, if that has changed.
    pub fn change(&mut self, now: Instant) -> Option<bool> {
        let is_isolated = self.lease_ttl / 2 <= now.saturating_duration_since(self.heard);
        let has_changed = is_isolated != self.is_isolated;
        self.is_isolated = is_isolated;
        has_changed.then_some(is_isolated)
    }
}

/// Whether a control store or a member answers a connection within `wait`.
pub async fn reaches_somebody(control: &ControlClient, peers: &Arc<Peers>, wait: Duration) -> bool {
    let mut looks: JoinSet<bool> = control.addresses().into_iter().map(|to| answers(to, wait)).collect();
    for member in peers.some_addresses(MEMBERS_MAX) {
        looks.spawn(answers(member, wait));
    }
    while let Some(look) = looks.join_next().await {
        if look.unwrap_or(false) {
            return true;
        }
    }
    false
}

/// Whether a machine answers at an address: it accepts a connection, or refuses it.
async fn answers(address: String, wait: Duration) -> bool {
    match timeout(wait, TcpStream::connect(address)).await {
        Ok(Ok(_)) => true,
        Ok(Err(cause)) => cause.kind() == ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const TTL: Duration = Duration::from_secs(8);

    #[test]
    fn a_node_is_isolated_after_half_a_lease_without_any_answer() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        assert!(!isolation.is_unsure(at(1)) && isolation.is_unsure(at(2)));
        assert_eq!(isolation.change(at(3)), None);
        assert_eq!((isolation.change(at(4)), isolation.change(at(5))), (Some(true), None), "told once");
        isolation.heard(at(6));
        assert_eq!((isolation.change(at(6)), isolation.change(at(7))), (Some(false), None));
        isolation.heard(at(5));
        assert_eq!((isolation.change(at(9)), isolation.change(at(10))), (None, Some(true)), "since 6");
    }

    #[tokio::test]
    async fn who_refuses_answers_and_who_is_nowhere_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let wait = Duration::from_secs(5);
        assert!(answers(address.clone(), wait).await);
        drop(listener);
        assert!(answers(address, wait).await, "its port is closed, so its machine is there");
        assert!(!answers("no such host:1".to_owned(), wait).await);
    }
}
