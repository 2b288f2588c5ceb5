//! Another member: the packets that wait for it, and the stream that takes them.

use super::waiting::Waiting;
use crate::inbox::Room;
use crate::registry::lock;
use futures::StreamExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_protos::control::NodeInfo;
use tharsis_protos::peer::Outgoing;
use tharsis_protos::peer::wire::Packet as WirePacket;
use tharsis_types::NodeId;
use tokio::sync::Notify;

/// A stream that need not stay is closed after this time without packets.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(30);

/// Another member.
pub struct Peer {
    /// Its own description of itself.
    pub info: NodeInfo,
    /// For packets that came from it.
    pub(super) room: Room,
    outbox: Mutex<Outbox>,
    news: Notify,
}

/// Another member, and what is heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The member.
    pub node: NodeId,
    /// Its address (`host:port`).
    pub address: String,
    /// Whether a stream with it is up.
    pub is_up: bool,
    /// When a packet last came from it.
    pub came: Option<Instant>,
    /// When it last refused this node as no member, if no stream has been up since.
    pub denied: Option<Instant>,
}

impl Contact {
    /// Whether a packet has come since then over a stream that is up.
    #[must_use]
    pub fn has_answered(&self, since: Instant) -> bool {
        self.is_up && self.came.is_some_and(|came| since <= came)
    }
}

#[derive(Default)]
struct Outbox {
    packets: Waiting,
    /// The stream that takes them; an older one ends.
    stream: u64,
    /// Whether there is one that takes them, or this node is opening one.
    is_open: bool,
    /// Whether this node opened it.
    is_own: bool,
    /// Whether the other node has taken it up, or called itself.
    is_up: bool,
    /// Whether it stays open without packets.
    stays: bool,
    /// When a packet last went or came; none before the first.
    used: Option<Instant>,
    /// When a packet last came.
    came: Option<Instant>,
    /// When it last refused this node as no member, if no stream has been up since.
    denied: Option<Instant>,
    /// Whether the one packet that waits is a question of [`Peer::put_alone`].
    is_alone: bool,
    closed: bool,
}

/// Whether a stream is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// There is one, or none is needed.
    Nothing,
    /// It is to stay open, and there is nothing to send yet.
    SomeTime,
    /// Packets wait for it.
    Soon,
}

/// The reason for which a stream is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A node with a higher id called.
    CalledByHigher,
    /// A node with a lower id called.
    CalledByLower,
    /// This node calls.
    Own,
}

impl Peer {
    /// A member without a stream.
    pub(super) fn new(info: NodeInfo, room_bytes: usize) -> Self {
        let room = Room::new(room_bytes);
        Self { info, room, outbox: Mutex::default(), news: Notify::new() }
    }

    /// Queues a packet, unless too many wait.
    pub(super) fn put(&self, packet: WirePacket) {
        let mut outbox = lock(&self.outbox);
        if outbox.packets.push(packet) {
            outbox.used = Some(Instant::now());
            outbox.is_alone = false;
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    /// Queues a packet if no other waits. It is good for one call: whoever cannot be reached is not called
    /// again for it.
    pub(super) fn put_alone(&self, packet: WirePacket) {
        let mut outbox = lock(&self.outbox);
        if outbox.packets.is_empty() && outbox.packets.push(packet) {
            outbox.used = Some(Instant::now());
            outbox.is_alone = true;
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    /// This node could not open a stream, unless a newer one has taken over.
    pub(super) fn not_reached(&self, stream: u64) {
        {
            let mut outbox = lock(&self.outbox);
            if outbox.stream == stream && outbox.is_alone {
                outbox.packets.pop();
                outbox.is_alone = false;
            }
        }
        self.end_stream(stream);
    }

    /// It refuses this node as no member.
    pub(super) fn note_denial(&self) {
        lock(&self.outbox).denied = Some(Instant::now());
    }

    /// It has left: its stream ends.
    pub(super) fn close(&self) {
        lock(&self.outbox).closed = true;
        self.news.notify_waiters();
    }

    /// Whether it has left.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.outbox).closed
    }

    /// The other node has taken a stream up.
    pub(super) fn taken_up(&self, stream: u64) {
        let mut outbox = lock(&self.outbox);
        outbox.used = Some(Instant::now());
        if outbox.stream == stream {
            (outbox.is_up, outbox.denied) = (true, None);
        }
    }

    /// Ends a stream, unless a newer one has taken over.
    pub(super) fn end_stream(&self, stream: u64) {
        let mut outbox = lock(&self.outbox);
        if outbox.stream == stream {
            outbox.stream += 1;
            (outbox.is_open, outbox.is_up) = (false, false);
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    /// Says whether a stream stays open without packets.
    pub(super) fn let_stay(&self, stays: bool) {
        let mut outbox = lock(&self.outbox);
        if outbox.stays != stays {
            outbox.stays = stays;
            drop(outbox);
            self.news.notify_waiters();
        }
    }

    /// Waits until a stream is needed and there is none. False if the peer is no member any more.
    pub(super) async fn await_need(&self) -> bool {
        loop {
            let news = self.news.notified();
            if self.is_closed() {
                return false;
            }
            if self.need() != Need::Nothing {
                return true;
            }
            news.await;
        }
    }

    /// Whether a stream is missing.
    pub(super) fn need(&self) -> Need {
        let outbox = lock(&self.outbox);
        match (outbox.is_open, outbox.packets.is_empty(), outbox.stays) {
            (false, false, _) => Need::Soon,
            (false, true, true) => Need::SomeTime,
            _ => Need::Nothing,
        }
    }

    /// A packet came.
    pub(super) fn note_use(&self) {
        let (mut outbox, now) = (lock(&self.outbox), Some(Instant::now()));
        (outbox.used, outbox.came) = (now, now);
    }

    /// It, and what is heard of it.
    pub(super) fn contact(&self) -> Contact {
        let (node, address, outbox) = (self.info.id, self.info.listen.clone(), lock(&self.outbox));
        Contact { node, address, is_up: outbox.is_up, came: outbox.came, denied: outbox.denied }
    }

    /// Time after which a stream can be closed if no packet goes or comes until then; zero if it can be now,
    /// and none if it stays.
    pub(super) fn closes_in(&self) -> Option<Duration> {
        let outbox = lock(&self.outbox);
        if outbox.stays || !outbox.packets.is_empty() {
            return None;
        }
        let unused = outbox.used.map_or(Duration::ZERO, |used| used.elapsed());
        Some(IDLE_MAX.saturating_sub(unused))
    }

    /// A new stream that takes the queue over, and its number; none if the other node called (not this one),
    /// and this one has opened a stream that counts more.
    pub(super) fn open_stream(self: &Arc<Self>, opening: Opening) -> Option<(u64, Outgoing)> {
        let stream = {
            let mut outbox = lock(&self.outbox);
            if opening == Opening::CalledByHigher && outbox.is_open && outbox.is_own {
                return None;
            }
            outbox.stream += 1;
            outbox.is_open = true;
            outbox.is_own = opening == Opening::Own;
            outbox.is_up = !outbox.is_own;
            if outbox.is_up {
                outbox.denied = None;
            }
            outbox.used = Some(Instant::now());
            outbox.stream
        };
        self.news.notify_waiters();
        let packets = futures::stream::unfold(Arc::clone(self), move |peer| async move {
            let packet = peer.next(stream).await?;
            Some((packet, peer))
        });
        Some((stream, packets.boxed()))
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
                if let Some(packet) = outbox.packets.pop() {
                    return Some(packet);
                }
            }
            news.await;
        }
    }
}
