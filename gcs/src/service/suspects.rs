//! Probes a member whose streams to others broke.
//!
//! A process that has ended leaves a closed port, and the system of its machine refuses connections to it at
//! once. A busy machine, a paused process or a cut network does not: there, a connection attempt waits. But
//! what refuses may be something else on the way: another machine that the name means here, a firewall that
//! rejects. So three witnesses together declare a node dead before its lease has expired:
//!
//! - the member whose stream broke,
//! - this control store, whose connections to the node are refused where the node answered before
//!   (`reach.rs`),
//! - the silence of the node: its next renewal does not come.
//!
//! In all other cases the lease decides (`judge.rs`). A control store never declares its own process dead.

use super::hang::LATE_MAX;
use super::{Shared, refusal, renewal_pace};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::Duration;
use tharsis_protos::Refusal;
use tharsis_types::NodeId;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Number of connection attempts: a process that is ending closes its streams and its port one after the
/// other.
const LOOKS_MAX: u32 = 5;
/// Pause between two attempts.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Time limit of one attempt.
const LOOK_WAIT: Duration = Duration::from_millis(500);
/// Refusals in a row that show that no process listens: a single one may come from a network device in
/// between.
const REFUSALS: u32 = 2;

impl Shared {
    /// Whether connection attempts from here show anything about a member.
    pub(super) fn may_judge_port(&self, node: NodeId) -> bool {
        self.own_node.get() != Some(&node) && self.reach.lock().has_answered(node)
    }

    /// Removes a member whose port is closed and that renews its lease no more; returns whether the node is
    /// no member (any more).
    pub(super) async fn suspect(&self, node: NodeId) -> Result<bool, Refusal> {
        let Some(known) = self.node(node).await.map_err(refusal)? else { return Ok(true) };
        let Some(_probe) = Probe::begin(&self.suspects, node) else {
            // A probe for another member is in progress; all members will see its result.
            return Ok(false);
        };
        let listen = known.record.info.listen;
        let is_dead = self.may_judge_port(node)
            && is_closed(&listen).await
            && self.stays_silent(node).await
            && is_closed(&listen).await;
        if !is_dead {
            return Ok(false);
        }
        tracing::warn!(%node, listen, "the node's port is closed and it is silent: it is declared dead");
        self.unregister(node, format!("its process has ended: nobody listens at {listen}")).await?;
        Ok(true)
    }

    /// Whether the next renewal of a member does not come. One that renews its lease at another control store
    /// is never heard of here.
    async fn stays_silent(&self, node: NodeId) -> bool {
        let asked = Instant::now();
        let heard = || self.silences.lock().heard_at(node);
        let until = heard().unwrap_or(asked) + renewal_pace(self.lease_ttl) * 3 / 2;
        sleep_until(until).await;
        // If this process stood still, renewals wait to be read.
        let is_in_time = Instant::now() < until.max(asked) + LATE_MAX;
        is_in_time && heard().is_none_or(|at| at <= asked)
    }
}

/// A probe in progress. It also ends when the member that asked for it ends, and with it the call: the next
/// one that asks begins anew.
struct Probe<'a> {
    suspects: &'a Mutex<HashSet<NodeId>>,
    node: NodeId,
}

impl<'a> Probe<'a> {
    /// None if the node is being probed.
    fn begin(suspects: &'a Mutex<HashSet<NodeId>>, node: NodeId) -> Option<Self> {
        let is_first = suspects.lock().insert(node);
        is_first.then(|| Self { suspects, node })
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.suspects.lock().remove(&self.node);
    }
}

/// Whether connections to an address are refused.
async fn is_closed(address: &str) -> bool {
    let mut refusals = 0;
    for _ in 0..LOOKS_MAX {
        match timeout(LOOK_WAIT, TcpStream::connect(address)).await {
            Ok(Err(cause)) if cause.kind() == ErrorKind::ConnectionRefused => refusals += 1,
            Ok(Ok(_)) => refusals = 0,
            Ok(Err(_)) | Err(_) => return false,
        }
        if refusals == REFUSALS {
            return true;
        }
        sleep(LOOK_PAUSE).await;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn a_probe_that_is_broken_off_does_not_prevent_the_next_one() {
        let suspects = Mutex::default();
        let first = Probe::begin(&suspects, NodeId(1));
        assert!(first.is_some() && Probe::begin(&suspects, NodeId(1)).is_none());
        drop(first);
        assert!(Probe::begin(&suspects, NodeId(1)).is_some());
    }

    #[tokio::test]
    async fn a_port_is_closed_when_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(!is_closed(&address).await, "somebody listens, though nobody accepts");
        drop(listener);
        assert!(is_closed(&address).await);
    }

    #[tokio::test]
    async fn a_port_that_closes_while_it_is_looked_at_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let closing = async {
            sleep(LOOK_PAUSE * 3 / 2).await;
            drop(listener);
        };
        let (closed, ()) = tokio::join!(is_closed(&address), closing);
        assert!(closed);
    }

    #[tokio::test]
    async fn an_address_that_is_none_says_nothing() {
        assert!(!is_closed("no such host:1").await);
    }
}
