//! Whether the others count this node as alive.
//!
//! A member whose renewals are not answered may be cut off from those who judge, or the control store may be
//! away. Both look alike from here. So once renewals fail, the node looks at the control stores and at some
//! members. It counts as alive, for as long as it finds
//!
//! - another control store that accepts a connection, or
//! - a member with which a stream is up, while more members accept connections than are silent.
//!
//! A member that hears that this node was declared dead ends its stream and takes up no other, so a node that
//! is cut off from the control store alone notices as well. The majority is for those that are cut off
//! together. A closed port is nobody: the member is gone, or something between refuses in its place.
//!
//! In a cluster of more than 65 nodes a look is a poll: it goes to 64 members. They are drawn by chance, so
//! that those that were cut off together have no larger part in it than among all. They are others for each
//! node, so that nobody is asked by all. The outcome of a poll has to be clear, three to one: of half of a
//! thousand nodes that were cut off together, each one finds that by chance in one of 100 000 cuts.
//!
//! A look needs no name server, which may be away together with the control store: it goes to the addresses
//! that a name had last. Those of members that this node does not call are asked for now and then.
//!
//! If it finds none of this for half the time of a lease, the node is isolated: soon after, the others will
//! declare it dead and start its tasks again, so it starts none of them from then on. If its lease may have
//! run out by then, a port that accepts connections does not end it: whoever is there may have declared it
//! dead. Two things do: an answered renewal, and most of the members that accept connections, if they answer
//! it as one. They are asked over streams; a member that knows that this node is dead has ended its stream
//! and takes up no other. Nodes that were cut off together may still count each other, so few are not enough.
//! Answers that a member had sent before may still come, so they must come twice, a look apart. With the
//! control store away nobody is declared dead, so the members go on together after a moment in which they did
//! not reach each other.
//!
//! If a node stays isolated for the time of a lease, and more of the members that it asks have refused it as
//! none than answered, the node ends itself: what it runs is run again elsewhere. One alone may be wrong, or
//! lie, so two more have to refuse it than answer if there are two.

mod poll;

pub use poll::{Around, Found};

use super::links::Peers;
use poll::{Look, Poll, others, some_of};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tharsis_gcs::ControlClient;
use tharsis_protos::names::{self, Whose};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Looks within the time of one lease.
pub const LOOKS_PER_LEASE: u32 = 8;
/// When somebody was last heard of, and what follows.
#[derive(Debug)]
pub struct Isolation {
    lease_ttl: Duration,
    heard: Instant,
    /// When its lease was renewed last.
    renewed: Instant,
    is_isolated: bool,
    /// Since when members have answered at each look.
    answered: Option<Instant>,
    /// Since when more members have refused this node as none than answered it, at each look.
    denied: Option<Instant>,
}

impl Isolation {
    /// A node that has just joined, so it has been answered.
    #[must_use]
    pub fn new(lease_ttl: Duration, now: Instant) -> Isolation {
        Isolation { lease_ttl, heard: now, renewed: now, is_isolated: false, answered: None, denied: None }
    }

    /// Notes that its lease was renewed, as it was asked at `asked`. The answer may have been on its way for
    /// longer than a lease, and the node be dead by now.
    pub fn renewed(&mut self, asked: Instant) {
        self.renewed = self.renewed.max(asked);
        self.heard = self.heard.max(asked);
    }

    /// Notes what a look has found.
    pub fn looked(&mut self, now: Instant, around: Around) {
        let Around { found, is_denied } = around;
        self.denied = is_denied.then(|| self.denied.unwrap_or(now));
        if found != Found::Members {
            self.answered = None;
        }
        let counts = match found {
            Found::Nobody => false,
            Found::Ports => !self.may_be_dead(now),
            Found::Members => !self.may_be_dead(now) || self.is_answered(now),
        };
        if counts {
            self.heard = self.heard.max(now);
        }
    }

    /// Whether it may have been declared dead since it was isolated.
    fn may_be_dead(&self, now: Instant) -> bool {
        self.is_isolated && self.lease_ttl <= now.saturating_duration_since(self.renewed)
    }

    /// Whether members have answered twice, a look apart.
    fn is_answered(&mut self, now: Instant) -> bool {
        let since = *self.answered.get_or_insert(now);
        self.lease_ttl / LOOKS_PER_LEASE <= now.saturating_duration_since(since)
    }

    /// Whether members are to be asked, since a look at their ports is not enough.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.is_isolated
    }

    /// Whether the node has been isolated for the time of a lease, and is no member as others see it. One
    /// look does not say so: those that answer may be slower than one that refuses.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        let is_since = |at: Instant, time: Duration| time <= now.saturating_duration_since(at);
        let is_denied = self.denied.is_some_and(|since| is_since(since, self.lease_ttl / 2));
        self.is_isolated && is_denied && is_since(self.heard, 3 * self.lease_ttl / 2)
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
        if has_changed {
            (self.answered, self.denied) = (None, None);
        }
        has_changed.then_some(is_isolated)
    }
}

/// Looks who of those that can be reached within `wait` counts this node as alive. Its own addresses are
/// nobody. Members were asked at `asked`, if they were.
pub async fn look_around(
    control: &ControlClient,
    own: &[String],
    peers: &Arc<Peers>,
    wait: Duration,
    asked: Option<Instant>,
) -> Around {
    let mut stores = control.addresses();
    let poll = Poll::of(peers.me(), others(peers.contacts(), &stores));
    // A refusal takes longer than a look: it counts for half the time of a lease.
    let said = poll.said(asked, Instant::now(), wait * LOOKS_PER_LEASE / 2);
    let members: Vec<_> = poll.some.iter().map(|member| member.address.clone()).collect();
    stores.retain(|address| !own.contains(address));
    let (stores, members) =
        tokio::join!(look_at_all(stores, Whose::Store, wait), look_at_all(members, Whose::Member, wait));
    poll.finds(&stores, &members, said)
}

/// Asks the members at which the next look goes whether they are there.
pub fn ask_around(control: &ControlClient, peers: &Peers) {
    let some = some_of(peers.me(), others(peers.contacts(), &control.addresses()));
    peers.ask(some.into_iter().map(|member| member.node));
}

/// Asks for the addresses of names at which a look would go, where they are not known or old, one after the
/// other.
pub async fn learn_names(control: &ControlClient, peers: &Peers, wait: Duration) {
    let stores = control.addresses();
    let some = some_of(peers.me(), others(peers.contacts(), &stores));
    let members = some.into_iter().map(|member| member.address).collect();
    let of = |addresses: Vec<String>, whose| addresses.into_iter().map(move |address| (address, whose));
    for (address, whose) in of(stores, Whose::Store).chain(of(members, Whose::Member)) {
        if !names::is_fresh(&address) {
            let _unknown = timeout(wait, names::addresses(&address, whose)).await;
        }
    }
}

async fn look_at_all(addresses: impl IntoIterator<Item = String>, whose: Whose, wait: Duration) -> Vec<Look> {
    let looks: JoinSet<Look> = addresses.into_iter().map(|address| look(address, whose, wait)).collect();
    looks.join_all().await
}

/// Looks at an address.
async fn look(address: String, whose: Whose, wait: Duration) -> Look {
    let connected = async {
        // The rest of the time is for the connection.
        let found = names::known_or_asked(&address, whose, wait / 2).await?;
        TcpStream::connect(&found[..]).await
    };
    match timeout(wait, connected).await {
        Ok(Ok(_)) => Look::Accepts,
        Ok(Err(cause)) if cause.kind() == ErrorKind::ConnectionRefused => Look::Refuses,
        Ok(Err(_)) | Err(_) => Look::Silent,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cluster::outbox::{Need, Opening};
    use futures::StreamExt;
    use std::collections::BTreeMap;
    use tharsis_gcs::{ClientOptions, KnownStores};
    use tharsis_protos::connection::Credentials;
    use tharsis_protos::control::NodeInfo;
    use tharsis_protos::proof::{SECRET_BYTES, Secret};
    use tharsis_types::peer::Packet;
    use tharsis_types::{NodeId, Resources};
    use tokio::net::TcpListener;

    const TTL: Duration = Duration::from_secs(8);

    /// A look in which nobody refuses this node.
    fn just(found: Found) -> Around {
        Around { found, is_denied: false }
    }

    #[test]
    fn a_node_is_isolated_after_half_a_lease_without_any_answer() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        assert!(!isolation.is_unsure(at(1)) && isolation.is_unsure(at(2)));
        assert_eq!(isolation.change(at(3)), None);
        assert_eq!((isolation.change(at(4)), isolation.change(at(5))), (Some(true), None), "told once");
        isolation.looked(at(6), just(Found::Ports));
        assert_eq!((isolation.change(at(6)), isolation.change(at(7))), (Some(false), None));
        isolation.looked(at(5), just(Found::Ports));
        assert_eq!((isolation.change(at(9)), isolation.change(at(10))), (None, Some(true)), "since 6");
    }

    /// The cable is out for longer than a lease: a port that accepts connections says nothing any more.
    #[test]
    fn no_port_ends_an_isolation_in_which_the_lease_may_have_run_out() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        assert_eq!(isolation.change(at(4)), Some(true));
        isolation.looked(at(8), just(Found::Ports));
        assert_eq!(isolation.change(at(8)), None);
        isolation.renewed(at(9));
        assert_eq!(isolation.change(at(9)), Some(false));
        // The control store goes away, and members are there all the time.
        for second in (11..31).step_by(2) {
            isolation.looked(at(second), just(Found::Ports));
            assert_eq!(isolation.change(at(second)), None);
        }
    }

    /// The cable goes when the answer is on its way, and comes back after the lease has run out.
    #[test]
    fn an_answer_counts_from_its_question_on() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        assert_eq!(isolation.change(at(4)), Some(true));
        isolation.renewed(at(1));
        assert_eq!(isolation.change(at(9)), None);
        isolation.looked(at(9), just(Found::Ports));
        assert_eq!(isolation.change(at(9)), None, "it may be dead since 9");
        isolation.renewed(at(8));
        assert_eq!(isolation.change(at(9)), Some(false));
    }

    /// The control store is away for an hour, and the members do not reach each other for a moment.
    #[test]
    fn members_that_answer_end_an_isolation_without_the_control_store() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        let mut look = |second, found| {
            isolation.looked(at(second), just(found));
            isolation.change(at(second))
        };
        assert!((1..=20).all(|second| look(second, Found::Ports).is_none()));
        assert!((21..24).all(|second| look(second, Found::Nobody).is_none()));
        assert_eq!(look(24, Found::Nobody), Some(true));
        assert_eq!(
            (look(25, Found::Ports), look(26, Found::Members)),
            (None, None),
            "it may have been sent before"
        );
        assert_eq!((look(27, Found::Ports), look(28, Found::Members)), (None, None), "it was");
        assert_eq!(look(29, Found::Members), Some(false));
        // From then on it is as before.
        assert!((30..40).all(|second| look(second, Found::Ports).is_none()));
    }

    /// A member that lies, or that has taken this node for another one, is one of many.
    #[test]
    fn members_that_answer_outweigh_one_that_denies() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut isolation = Isolation::new(TTL, start);
        assert_eq!(isolation.change(at(4)), Some(true));
        let denied = Around { found: Found::Ports, is_denied: true };
        (8..=12).for_each(|second| isolation.looked(at(second), denied));
        assert!(isolation.is_over(at(12)));
        isolation.looked(at(12), just(Found::Ports));
        assert!(!isolation.is_over(at(12)), "of those that were asked, more answer");
        isolation.looked(at(13), denied);
        assert!(!isolation.is_over(at(13)), "the others may be about to answer");
        isolation.looked(at(14), just(Found::Members));
        isolation.looked(at(15), just(Found::Members));
        assert_eq!(isolation.change(at(15)), Some(false));
    }

    #[test]
    fn a_node_that_stays_isolated_and_is_no_member_for_others_is_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let denied = Around { found: Found::Nobody, is_denied: true };
        let mut isolation = Isolation::new(TTL, start);
        isolation.looked(at(3), denied);
        assert!(!isolation.is_over(at(13)), "it was not isolated");
        assert_eq!(isolation.change(at(4)), Some(true));
        isolation.looked(at(5), denied);
        assert!(!isolation.is_over(at(11)) && isolation.is_over(at(12)));
        isolation.looked(at(16), just(Found::Nobody));
        assert!(!isolation.is_over(at(16)), "nobody says so any more");
        isolation.looked(at(17), denied);
        isolation.renewed(at(19));
        assert_eq!(isolation.change(at(20)), Some(false));
        assert!(!isolation.is_over(at(40)));
    }

    pub(in crate::cluster) fn control_at(stores: Vec<String>) -> ControlClient {
        let secret = Credentials::with_secret(Secret::from_bytes([1; SECRET_BYTES]), None);
        ControlClient::new(KnownStores::new(stores), &secret, ClientOptions::default()).unwrap()
    }

    pub(in crate::cluster) fn member_at(node: u64, listen: String) -> NodeInfo {
        NodeInfo {
            id: NodeId(node),
            listen,
            host: String::new(),
            local_socket: String::new(),
            resources: Resources::default(),
            labels: BTreeMap::new(),
        }
    }

    /// As one of a rack that was cut off: one of its members answers, the others only accept connections.
    #[tokio::test]
    async fn most_members_are_to_answer_over_their_streams() {
        let peers = Arc::new(Peers::new(NodeId(1), 16));
        let (mut listeners, mut linked) = (Vec::new(), Vec::new());
        for node in 2..5 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let peer = peers.add(member_at(node, listener.local_addr().unwrap().to_string())).unwrap();
            let (stream, packets) = peer.open_stream(Opening::CalledByLower).unwrap();
            listeners.push(listener);
            linked.push((peer, stream, packets));
        }
        // No other control store.
        let own = vec!["store:1".to_owned()];
        let control = control_at(own.clone());
        let asked = Instant::now();
        let look = || look_around(&control, &own, &peers, Duration::from_secs(5), Some(asked));
        ask_around(&control, &peers);
        ask_around(&control, &peers);
        for (peer, _, packets) in &mut linked {
            let question = packets.next().await.unwrap();
            assert!(question.asks && question.messages.is_empty());
            assert!(futures::poll!(packets.next()).is_pending(), "one question waits for {}", peer.info.id);
        }
        assert_eq!(look().await, just(Found::Ports), "nobody has answered");
        linked[0].0.note_use();
        assert_eq!(look().await, just(Found::Ports), "one of three has");
        linked[1].0.note_use();
        assert_eq!(look().await, just(Found::Members));
        let refuses = |number: usize| {
            let (peer, stream, _) = &linked[number];
            peer.end_stream(*stream);
            peer.note_denial();
        };
        refuses(2);
        assert_eq!(look().await, just(Found::Members), "one of three has refused");
        refuses(1);
        assert_eq!(look().await, just(Found::Ports), "two have, and one has answered");
        refuses(0);
        assert_eq!(look().await, Around { found: Found::Nobody, is_denied: true });
        for (peer, ..) in &linked {
            assert!(peer.open_stream(Opening::CalledByLower).is_some());
        }
        assert_eq!(look().await, just(Found::Members), "whoever calls counts this node as a member");
    }

    #[test]
    fn a_member_that_takes_a_stream_up_denies_this_node_no_longer() {
        let peers = Peers::new(NodeId(1), 16);
        let peer = peers.add(member_at(2, "other:1".to_owned())).unwrap();
        let (stream, _packets) = peer.open_stream(Opening::Own).unwrap();
        peer.note_denial();
        peer.taken_up(stream - 1);
        assert!(peer.contact().denied.is_some(), "that one is older");
        peer.taken_up(stream);
        assert!(peer.contact().denied.is_none());
    }

    /// One to which no stream is up is called, once for each question.
    #[tokio::test]
    async fn a_member_without_a_stream_is_asked_as_well() {
        let peers = Arc::new(Peers::new(NodeId(1), 16));
        let peer = peers.add(member_at(2, "other:1".to_owned())).unwrap();
        peer.let_stay(false);
        assert_eq!(peer.need(), Need::Nothing);
        let control = control_at(vec!["store:1".to_owned()]);
        let call_in_vain = || {
            let (stream, _packets) = peer.open_stream(Opening::Own).unwrap();
            peer.not_reached(stream);
        };
        for _ in 0..2 {
            ask_around(&control, &peers);
            assert_eq!(peer.need(), Need::Soon);
            call_in_vain();
            assert_eq!(peer.need(), Need::Nothing, "it is not called until it is asked again");
        }
        ask_around(&control, &peers);
        peers.send(NodeId(2), &Packet::new(0, 0, Vec::new()));
        call_in_vain();
        assert_eq!(peer.need(), Need::Soon, "for what else there is, it is");
    }

    /// A head that is cut off from everybody reaches its own port.
    #[tokio::test]
    async fn the_own_address_is_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = vec![listener.local_addr().unwrap().to_string()];
        let control = control_at(own.clone());
        let peers = Arc::new(Peers::new(NodeId(1), 16));
        let wait = Duration::from_secs(5);
        assert_eq!(look_around(&control, &own, &peers, wait, None).await, just(Found::Nobody));
        let around = look_around(&control, &[], &peers, wait, None).await;
        assert_eq!(around, just(Found::Ports), "that of another one is somebody");
    }

    #[tokio::test]
    async fn what_is_found_at_an_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let wait = Duration::from_secs(5);
        let found = async |address: &str| look(address.to_owned(), Whose::Member, wait).await;
        assert_eq!(found(&address).await, Look::Accepts);
        let name = address.replace("127.0.0.1", "localhost");
        assert_eq!(found(&name).await, Look::Accepts);
        assert!(names::is_fresh(&name), "it needs no name server from now on");
        drop(listener);
        assert_eq!(found(&address).await, Look::Refuses);
        assert_eq!(found("no such host:1").await, Look::Silent);
    }

    #[tokio::test]
    async fn names_are_learned_before_they_are_needed() {
        let listeners = [
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        ];
        let [store, member] =
            listeners.map(|listener| format!("localhost:{}", listener.local_addr().unwrap().port()));
        let peers = Peers::new(NodeId(1), 16);
        peers.add(member_at(2, member.clone())).unwrap();
        learn_names(&control_at(vec![store.clone()]), &peers, Duration::from_secs(5)).await;
        assert!(names::is_fresh(&store) && names::is_fresh(&member));
    }
}
