//! Links: one stream of packets per pair of nodes, opened by the one with the lower id.
//!
//! A stream may break at any time; the machine's links repeat what was lost. So nothing here waits for
//! anybody: a packet that finds its queue full is dropped, a stream that ends is opened again, and the queue
//! outlives its streams.
//!
//! Every packet says who sent it to whom, and both must be what the stream's first packet said. A caller that
//! is not a member (yet) is refused and calls again.

use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use futures::StreamExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::Event;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::peer::convert;
use tharsis_protos::peer::wire::Packet as WirePacket;
use tharsis_protos::peer::{self, Incoming, Outgoing};
use tharsis_protos::{Refusal, RefusalCode};
use tharsis_types::NodeId;
use tharsis_types::peer::Packet;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Packets that wait for one stream; above, they are dropped and sent again later.
const OUTBOX_PACKETS_MAX: usize = 1024;
/// The longest time that a stream may take to open and to say who it is.
const OPEN_DEADLINE: Duration = Duration::from_secs(5);
/// The time for which a caller that is no member yet is kept waiting for the news that it is.
const MEMBER_WAIT: Duration = Duration::from_secs(2);
/// Between the first attempts to open a stream.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Between later attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The other members, and how to reach them.
pub struct Peers {
    me: NodeId,
    table: Mutex<HashMap<NodeId, Arc<Peer>>>,
    joined: Notify,
    /// Members whose streams broke, for the control store to look for.
    broken: Mutex<Vec<NodeId>>,
    broke: Notify,
}

/// Another member.
pub struct Peer {
    /// Its own description of itself.
    pub info: NodeInfo,
    outbox: Mutex<Outbox>,
    news: Notify,
}

#[derive(Default)]
struct Outbox {
    packets: VecDeque<WirePacket>,
    /// The stream that takes them; an older one ends.
    stream: u64,
    closed: bool,
}

impl Peers {
    /// A table without links to other nodes yet.
    #[must_use]
    pub fn new(me: NodeId) -> Self {
        let (broken, broke) = (Mutex::default(), Notify::new());
        Self { me, table: Mutex::default(), joined: Notify::new(), broken, broke }
    }

    /// A member joined; none if it is known already.
    pub fn add(&self, info: NodeInfo) -> Option<Arc<Peer>> {
        let mut table = lock(&self.table);
        if info.id == self.me || table.contains_key(&info.id) {
            return None;
        }
        let peer = Arc::new(Peer { info, outbox: Mutex::default(), news: Notify::new() });
        table.insert(peer.info.id, Arc::clone(&peer));
        drop(table);
        self.joined.notify_waiters();
        Some(peer)
    }

    /// A member left: its streams end. False if it was none.
    pub fn remove(&self, node: NodeId) -> bool {
        let removed = lock(&self.table).remove(&node);
        removed.inspect(|peer| peer.close()).is_some()
    }

    /// A member, if it is one.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<Arc<Peer>> {
        lock(&self.table).get(&node).cloned()
    }

    /// Addresses of some members, at most `limit`.
    #[must_use]
    pub fn some_addresses(&self, limit: usize) -> Vec<String> {
        lock(&self.table).values().take(limit).map(|peer| peer.info.listen.clone()).collect()
    }

    /// Whether this node is alone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        lock(&self.table).is_empty()
    }

    /// Queues a packet for a member.
    pub fn send(&self, to: NodeId, packet: &Packet) {
        if let Some(peer) = self.get(to) {
            convert::encode(self.me, to, packet).into_iter().for_each(|part| peer.put(part));
        }
    }

    /// Waits for members whose streams broke while they were members.
    pub async fn next_broken(&self) -> Vec<NodeId> {
        loop {
            let broken = std::mem::take(&mut *lock(&self.broken));
            if !broken.is_empty() {
                return broken;
            }
            self.broke.notified().await;
        }
    }

    /// A stream to a member broke, or cannot be opened again.
    fn stream_broke(&self, node: NodeId) {
        if self.get(node).is_none() {
            return;
        }
        let mut broken = lock(&self.broken);
        if !broken.contains(&node) {
            broken.push(node);
        }
        drop(broken);
        self.broke.notify_one();
    }

    /// A member, or the one that joins within a while.
    pub(super) async fn await_member(&self, node: NodeId) -> Option<Arc<Peer>> {
        let found = timeout(MEMBER_WAIT, async {
            loop {
                let joined = self.joined.notified();
                if let Some(peer) = self.get(node) {
                    return peer;
                }
                joined.await;
            }
        });
        found.await.ok()
    }
}

impl Peer {
    fn put(&self, packet: WirePacket) {
        let mut outbox = lock(&self.outbox);
        if outbox.packets.len() < OUTBOX_PACKETS_MAX {
            outbox.packets.push_back(packet);
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    fn close(&self) {
        lock(&self.outbox).closed = true;
        self.news.notify_waiters();
    }

    fn is_closed(&self) -> bool {
        lock(&self.outbox).closed
    }

    /// Ends a stream, unless a newer one has taken over.
    fn end_stream(&self, stream: u64) {
        let mut outbox = lock(&self.outbox);
        if outbox.stream == stream {
            outbox.stream += 1;
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    /// A new stream that takes the queue over, and its number.
    fn open_stream(self: &Arc<Self>) -> (u64, Outgoing) {
        let stream = {
            let mut outbox = lock(&self.outbox);
            outbox.stream += 1;
            outbox.stream
        };
        self.news.notify_waiters();
        let packets = futures::stream::unfold(Arc::clone(self), move |peer| async move {
            let packet = peer.next(stream).await?;
            Some((packet, peer))
        });
        (stream, packets.boxed())
    }

    /// The next packet for a stream; none when the stream is to end.
    async fn next(&self, stream: u64) -> Option<WirePacket> {
        loop {
            let news = self.news.notified();
            {
                let mut outbox = lock(&self.outbox);
                if outbox.closed || outbox.stream != stream {
                    return None;
                }
                if let Some(packet) = outbox.packets.pop_front() {
                    return Some(packet);
                }
            }
            news.await;
        }
    }
}

/// Takes up streams that others open.
pub struct Links {
    /// The members.
    pub peers: Arc<Peers>,
    /// Into the loop.
    pub inbox: Arc<Inbox>,
}

impl peer::Service for Links {
    async fn link(&self, certified: Option<NodeId>, mut incoming: Incoming) -> Result<Outgoing, Refusal> {
        let me = self.peers.me;
        let first = timeout(OPEN_DEADLINE, incoming.next()).await;
        let Ok(Some(Ok(first))) = first else {
            return Err(Refusal::new(RefusalCode::InvalidArgument, "the stream does not say whose it is"));
        };
        let hello = convert::decode(first)
            .map_err(|bad| Refusal::new(RefusalCode::InvalidArgument, bad.to_string()))?;
        if hello.to != me || me <= hello.from {
            let reason = format!("node {} calls node {}, and this is node {me}", hello.from, hello.to);
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        if certified.is_some_and(|node| node != hello.from) {
            let reason = format!("the certificate of the caller is not that of node {}", hello.from);
            return Err(Refusal::new(RefusalCode::PermissionDenied, reason));
        }
        let Some(peer) = self.peers.await_member(hello.from).await else {
            let reason = format!("node {} is no member of the cluster that node {me} sees", hello.from);
            return Err(Refusal::new(RefusalCode::Unavailable, reason));
        };
        let (stream, outgoing) = peer.open_stream();
        let (peers, inbox) = (Arc::clone(&self.peers), Arc::clone(&self.inbox));
        tokio::spawn(async move {
            receive(me, Arc::clone(&peer), Arc::clone(&inbox), incoming).await;
            peer.end_stream(stream);
            peers.stream_broke(peer.info.id);
        });
        Ok(outgoing)
    }
}

/// Keeps a stream to a member open for as long as it is one.
pub async fn dial(peers: Arc<Peers>, own: Credentials, peer: Arc<Peer>, inbox: Arc<Inbox>) {
    let me = peers.me;
    let mut pause = PAUSE_MIN;
    while !peer.is_closed() {
        let (stream, packets) = peer.open_stream();
        let hello = convert::hello(me, peer.info.id);
        let outgoing = futures::stream::once(async move { hello }).chain(packets).boxed();
        match peer::connect(peer.info.listen.clone(), peer.info.id, own.clone(), outgoing, OPEN_DEADLINE)
            .await
        {
            Ok(incoming) => {
                pause = PAUSE_MIN;
                receive(me, Arc::clone(&peer), Arc::clone(&inbox), incoming).await;
                peers.stream_broke(peer.info.id);
            }
            Err(error) => tracing::debug!(node = %peer.info.id, %error, "no stream yet"),
        }
        peer.end_stream(stream);
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Passes packets on until the stream ends.
async fn receive(me: NodeId, peer: Arc<Peer>, inbox: Arc<Inbox>, mut incoming: Incoming) {
    let from = peer.info.id;
    while let Some(packet) = incoming.next().await {
        let decoded =
            packet.map_err(|e| e.to_string()).and_then(|p| convert::decode(p).map_err(|bad| bad.to_string()));
        match decoded {
            Ok(received) if received.from == from && received.to == me => {
                if peer.is_closed() {
                    return;
                }
                inbox.put(Input::Event(Event::PacketReceived { from, packet: received.packet }));
            }
            Ok(received) => {
                tracing::warn!(%from, claimed = %received.from, "packet of another node: stream is cut off");
                return;
            }
            Err(problem) => {
                tracing::info!(%from, problem, "stream has ended");
                return;
            }
        }
    }
}
