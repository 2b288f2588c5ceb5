//! Probes a member whose streams to others broke.
//!
//! A process that has ended leaves a closed port, and the system of its machine refuses connections to it at
//! once. A busy machine, a paused process or a cut network does not: there, a connection attempt waits. But
//! what refuses may be something else on the way: another machine that the name means here, a firewall that
//! rejects. So three witnesses together declare a node dead before its lease has expired:
//!
//! - the member whose stream broke,
//! - this control store, whose connections to the node are refused where the node showed before that it is
//!   there (`reach.rs`),
//! - the silence of the node: its next renewal does not come.
//!
//! In all other cases the lease decides (`judge.rs`). A control store never declares its own process dead.

use super::hang::LATE_MAX;
use super::{Shared, refusal, renewal_pace};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
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
    /// The address at which connection attempts from here show something about a member; none if they show
    /// nothing.
    pub(super) fn judged_port(&self, node: NodeId) -> Option<SocketAddr> {
        let is_own = self.own_node.get() == Some(&node);
        if is_own { None } else { self.reach.lock().met_at(node) }
    }

    /// Removes a member whose port is closed and that renews its lease no more; returns whether the node is
    /// no member (any more).
    pub(super) async fn suspect(&self, node: NodeId) -> Result<bool, Refusal> {
        let Some(known) = self.node(node).await.map_err(refusal)? else { return Ok(true) };
        let Some(_probe) = Probe::begin(&self.suspects, node) else {
            // A probe for another member is in progress; all members will see its result.
            return Ok(false);
        };
        // No other port than the node's own is looked at: the answer tells the caller of it.
        let Some(port) = self.judged_port(node) else { return Ok(false) };
        let is_dead = is_closed(port).await && self.stays_silent(node).await && is_closed(port).await;
        if !is_dead {
            return Ok(false);
        }
        let listen = known.record.info.listen;
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
async fn is_closed(address: SocketAddr) -> bool {
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
        let address = listener.local_addr().unwrap();
        assert!(!is_closed(address).await, "somebody listens, though nobody accepts");
        drop(listener);
        assert!(is_closed(address).await);
    }

    #[tokio::test]
    async fn a_port_that_closes_while_it_is_looked_at_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let closing = async {
            sleep(LOOK_PAUSE * 3 / 2).await;
            drop(listener);
        };
        let (closed, ()) = tokio::join!(is_closed(address), closing);
        assert!(closed);
    }
}
