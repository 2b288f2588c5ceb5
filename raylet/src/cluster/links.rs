//! Links: at most one stream of packets per pair of nodes, opened when there is something to send.
//!
//! A stream may break at any time; the machine's links repeat what was lost. So nothing here waits for
//! anybody: a packet that finds its queue full is dropped, a stream that ends is opened again when it is
//! needed, and the queue outlives its streams. A member that sends faster than the loop takes its packets
//! waits: no more is read of its stream (`incoming.rs`).
//!
//! | a stream | is opened | is closed |
//! |---|---|---|
//! | in a small cluster, or between neighbours (`Peers::arrange`) | at once, by the node with the lower id if it lives | never |
//! | between other nodes | by a node that has a packet for the other one | after `IDLE_MAX` without packets |
//!
//! If both nodes call at the same time, the call of the node with the lower id counts: it refuses the other
//! one, which takes over the queue for the stream that comes in.
//!
//! Every packet says who sent it to whom, and both must be what the stream's first packet said. A caller that
//! is not a member (yet) is refused and calls again.

use super::incoming::receive;
use super::neighbours::{after, before, is_neighbour};
use super::noted::Noted;
use super::outbox::{Contact, IDLE_MAX, Need, Opening, Peer};
use crate::drain::{Drain, rows};
use crate::inbox::Inbox;
use crate::logs::Logs;
use crate::registry::lock;
use crate::submissions::Submissions;
use crate::timeline;
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::logs::{LogLine, LogQuery};
use tharsis_protos::peer::convert;
use tharsis_protos::peer::{self, Incoming, Outgoing};
use tharsis_protos::report::DrainRow;
use tharsis_protos::runs::{RunBatch, RunQuery};
use tharsis_protos::submission::{NewSubmission, OutputQuery};
use tharsis_protos::{Refusal, RefusalCode};
use tharsis_types::NodeId;
use tharsis_types::peer::Packet;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// A stream that is to stay is opened by the node with the higher id if the other one has not done so by now:
/// it may have died.
const SECOND_AFTER: Duration = Duration::from_millis(500);
/// The longest time that a stream may take to end once it is to be closed.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// The longest time that a stream may take to open.
const OPEN_DEADLINE: Duration = Duration::from_secs(5);
/// The time for which a caller that is no member yet is kept waiting for the news that it is.
const MEMBER_WAIT: Duration = Duration::from_secs(2);
/// The refusal of a caller that is no member. Former releases said `Unavailable`, as for all that passes.
const NO_MEMBER: RefusalCode = RefusalCode::NotFound;
/// Bytes of packets of one member that the loop has not dealt with, about. More stay in the connection.
const ROOM_BYTES: usize = 64 << 20;
/// Between the first attempts to open a stream.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Between later attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The other members, and how to reach them.
pub struct Peers {
    me: NodeId,
    /// Maximum number of nodes of a cluster in which all streams stay open.
    small_max: usize,
    table: Mutex<BTreeMap<NodeId, Arc<Peer>>>,
    joined: Notify,
    /// Members whose streams broke, for the control store to look for.
    broken: Noted<NodeId>,
    /// Nodes of which this one was told and has not heard that they joined.
    unheard: Noted<NodeId>,
}

impl Peers {
    /// A table without links to other nodes yet.
    #[must_use]
    pub fn new(me: NodeId, small_max: usize) -> Self {
        Self {
            me,
            small_max,
            table: Mutex::default(),
            joined: Notify::new(),
            broken: Noted::default(),
            unheard: Noted::default(),
        }
    }

    /// A member joined; none if it is known already.
    pub fn add(&self, info: NodeInfo) -> Option<Arc<Peer>> {
        let mut table = lock(&self.table);
        if info.id == self.me || table.contains_key(&info.id) {
            return None;
        }
        let peer = Arc::new(Peer::new(info, ROOM_BYTES));
        table.insert(peer.info.id, Arc::clone(&peer));
        self.arrange(&table, peer.info.id);
        drop(table);
        self.joined.notify_waiters();
        Some(peer)
    }

    /// A member left: its streams end. False if it was none.
    pub fn remove(&self, node: NodeId) -> bool {
        let mut table = lock(&self.table);
        let removed = table.remove(&node);
        self.arrange(&table, node);
        drop(table);
        removed.inspect(|peer| peer.close()).is_some()
    }

    /// Says which streams stay open, after `changed` joined or left.
    ///
    /// In a large cluster only the streams to neighbours stay. Each node has one neighbour on either side in
    /// the order of ids, so that at least two nodes notice at once that a node has died, even if nobody has
    /// anything to do with it.
    fn arrange(&self, table: &BTreeMap<NodeId, Arc<Peer>>, changed: NodeId) {
        let is_small = |others: usize| others < self.small_max;
        if is_small(table.len()) || is_small(table.len().saturating_sub(1)) {
            // Small, or no longer so by this change.
            let all_stay = is_small(table.len());
            let stays = |node| all_stay || is_neighbour(table, self.me, node);
            return table.iter().for_each(|(node, peer)| peer.let_stay(stays(*node)));
        }
        // Only those on both sides of a node that comes or goes, as seen from here, may begin or cease to be
        // neighbours.
        let around = [before(table, changed), after(table, changed), Some(changed)];
        for peer in around.into_iter().flatten().filter_map(|node| table.get(&node)) {
            peer.let_stay(is_neighbour(table, self.me, peer.info.id));
        }
    }

    /// A member, if it is one.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<Arc<Peer>> {
        lock(&self.table).get(&node).cloned()
    }

    /// The members, and what is heard of them.
    #[must_use]
    pub fn contacts(&self) -> Vec<Contact> {
        let members: Vec<Arc<Peer>> = lock(&self.table).values().cloned().collect();
        members.iter().map(|peer| peer.contact()).collect()
    }

    /// Asks members whether they are there: a question that each answers to those whom it counts as members,
    /// and that changes nothing. A stream is opened for it where there is none.
    pub fn ask(&self, members: impl Iterator<Item = NodeId>) {
        let question = Packet { asks: true, ..Packet::new(0, 0, Vec::new()) };
        for peer in members.filter_map(|member| self.get(member)) {
            let parts = convert::encode(self.me, peer.info.id, &question);
            parts.into_iter().for_each(|part| peer.put_alone(part));
        }
    }

    /// The node whose peers these are.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.me
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
        self.broken.take().await
    }

    /// Has the control store asked whether a node is a member.
    pub fn look_for(&self, node: NodeId) {
        self.unheard.add(node);
    }

    /// Waits for nodes of which it is to be known whether they are members.
    pub async fn next_unheard(&self) -> Vec<NodeId> {
        self.unheard.take().await
    }

    /// A stream to a member broke, or cannot be opened again.
    fn stream_broke(&self, node: NodeId) {
        if self.get(node).is_none() {
            return;
        }
        self.broken.add(node);
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

/// Takes up streams that others open.
pub struct Links {
    /// The members.
    pub peers: Arc<Peers>,
    /// Into the loop.
    pub inbox: Arc<Inbox>,
    /// The drain of this node.
    pub drain: Arc<Drain>,
    /// Whether the control store is served here.
    pub is_head: bool,
    /// Whether it offers resources, and so runs programs of others.
    pub takes_work: bool,
    /// Output of the workers.
    pub logs: Logs,
    /// Submitted programs.
    pub submissions: Arc<Submissions>,
}

impl Links {
    /// Refuses a call that is meant for another node.
    fn check_node(&self, node: NodeId) -> Result<(), Refusal> {
        let me = self.peers.me;
        if node == me {
            return Ok(());
        }
        Err(Refusal::new(RefusalCode::NotFound, format!("node {node} is not here: this is node {me}")))
    }
}

impl peer::Service for Links {
    async fn drain(&self, node: NodeId, within: Duration) -> Result<BoxStream<'static, DrainRow>, Refusal> {
        let me = self.peers.me;
        self.check_node(node)?;
        if self.is_head {
            let reason = format!(
                "IsHead: node {me} serves the control store, without which no node joins; stop it with \
                 `tharsis stop`, or drain it on its machine with `tharsis stop --drain`"
            );
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        let begun = self.drain.begin(within);
        let progress =
            begun.map_err(|failure| Refusal::new(RefusalCode::AlreadyExists, failure.message.to_string()))?;
        Ok(rows(progress).boxed())
    }

    async fn logs(&self, node: NodeId, query: LogQuery) -> Result<BoxStream<'static, Vec<LogLine>>, Refusal> {
        self.check_node(node)?;
        Ok(self.logs.lines(query))
    }

    async fn runs(&self, node: NodeId, query: RunQuery) -> Result<BoxStream<'static, RunBatch>, Refusal> {
        self.check_node(node)?;
        Ok(timeline::batches(Arc::clone(&self.inbox), query))
    }

    async fn submit_job(&self, node: NodeId, new: NewSubmission) -> Result<u32, Refusal> {
        self.check_node(node)?;
        if !self.takes_work {
            let reason = format!(
                "NoResources: node {node} offers nothing, it runs no programs: submit to another node, or start \
                 it with `--num-cpus`"
            );
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        if self.drain.has_begun() {
            let reason = format!("node {node} drains, it takes no new work");
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        self.submissions.submit(new).await
    }

    async fn stop_job(&self, node: NodeId, name: String, grace: Duration) -> Result<bool, Refusal> {
        self.check_node(node)?;
        self.submissions.stop(&name, grace)
    }

    async fn job_output(
        &self,
        node: NodeId,
        query: OutputQuery,
    ) -> Result<BoxStream<'static, Bytes>, Refusal> {
        self.check_node(node)?;
        self.submissions.output(&query)
    }

    async fn link(&self, from: NodeId, to: NodeId, mut incoming: Incoming) -> Result<Outgoing, Refusal> {
        let me = self.peers.me;
        if to != me || me == from {
            let reason = format!("node {from} calls node {to}, and this is node {me}");
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        let Some(peer) = self.peers.await_member(from).await else {
            let reason = format!("node {from} is no member of the cluster that node {me} sees");
            return Err(Refusal::new(NO_MEMBER, reason));
        };
        let opening = if me < from { Opening::CalledByHigher } else { Opening::CalledByLower };
        let Some((stream, outgoing)) = peer.open_stream(opening) else {
            let reason = format!("node {me} has called node {from} itself");
            return Err(Refusal::new(RefusalCode::Unavailable, reason));
        };
        let (peers, inbox) = (Arc::clone(&self.peers), Arc::clone(&self.inbox));
        tokio::spawn(async move {
            let is_closed = receive(me, &peer, &inbox, &mut incoming).await;
            let is_idle = peer.closes_in().is_some_and(|left| left < IDLE_MAX / 2);
            peer.end_stream(stream);
            // The node that opened a stream closes it when nobody has used it for long.
            if !(is_closed && is_idle) {
                peers.stream_broke(peer.info.id);
            }
        });
        Ok(outgoing)
    }
}

/// Opens streams to a member when they are needed, for as long as it is one.
pub async fn dial(peers: Arc<Peers>, own: Credentials, peer: Arc<Peer>, inbox: Arc<Inbox>) {
    let is_first = peers.me < peer.info.id;
    let mut pause = PAUSE_MIN;
    while peer.await_need().await {
        if !is_first && peer.need() == Need::SomeTime {
            sleep(SECOND_AFTER).await;
            if peer.need() == Need::Nothing {
                continue;
            }
        }
        // Most members are never called: what a call needs is kept only for as long as it lasts.
        if Box::pin(call(&peers, &own, &peer, &inbox)).await {
            pause = PAUSE_MIN;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Opens a stream to a member and serves it until it ends; false if it cannot be opened.
async fn call(peers: &Peers, own: &Credentials, peer: &Arc<Peer>, inbox: &Inbox) -> bool {
    let (me, node) = (peers.me, peer.info.id);
    let Some((stream, packets)) = peer.open_stream(Opening::Own) else { return false };
    let hello = convert::hello(me, node);
    let outgoing = futures::stream::once(async move { hello }).chain(packets).boxed();
    let opened = peer::connect(peer.info.listen.clone(), node, own.clone(), outgoing, OPEN_DEADLINE).await;
    let mut incoming = match opened {
        Ok(incoming) => incoming,
        Err(error) => {
            tracing::debug!(%node, %error, "no stream yet");
            peer.not_reached(stream);
            // One that refuses lives.
            match error.refusal_code() {
                None => peers.stream_broke(node),
                Some(NO_MEMBER) => peer.note_denial(),
                Some(_) => {}
            }
            return false;
        }
    };
    peer.taken_up(stream);
    let is_closed = tokio::select! {
        _ = receive(me, peer, inbox, &mut incoming) => false,
        () = idle(peer) => true,
    };
    peer.end_stream(stream);
    if is_closed {
        tracing::debug!(%node, "a stream that was not used is closed");
        // Packets that are on their way still come in; if it does not end by itself, it is cut off.
        let _ended = timeout(CLOSE_WAIT, receive(me, peer, inbox, &mut incoming)).await;
    } else {
        peers.stream_broke(node);
    }
    true
}

/// Waits until a stream can be closed because nobody uses it.
async fn idle(peer: &Peer) {
    loop {
        match peer.closes_in() {
            Some(Duration::ZERO) => return,
            Some(left) => sleep(left).await,
            None => sleep(IDLE_MAX).await,
        }
    }
}
