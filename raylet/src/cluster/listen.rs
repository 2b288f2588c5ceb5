//! The one port of a node: who has proved that it is of the cluster goes to the gRPC services, or gets a
//! thread that sends objects.

use super::code::Code;
use super::links::Peers;
use super::places::{Entry, Places};
use super::proved::Proved;
use super::reads;
use crate::inbox::{Inbox, Input};
use crate::metrics::Scraped;
use crate::registry::lock;
use crate::spill::Spill;
use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_core::node::Place;
use tharsis_identity::MachineId;
use tharsis_object_store::transfer::{self, ObjectKey, ReadAt, Source, SourceRange};
use tharsis_object_store::{AnnexReader, Arena, ArenaSlice};
use tharsis_protos::caller::{Caller, Who};
use tharsis_protos::connection::{Gate, Stream};
use tharsis_protos::port::{self, PortHandler};
use tharsis_protos::proof::{ProofError, Purpose};
use tharsis_protos::revoked::Revoked;
use tharsis_types::ObjectId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::service::Routes;

/// The longest time that a caller that is told to ask again may take to hang up.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// Interval at which a thread that waits for the loop looks whether it is to stop.
const STOP_POLL: Duration = Duration::from_millis(100);
/// Stack of a thread that serves transfers; its buffers are elsewhere.
const THREAD_STACK_BYTES: usize = 256 << 10;
/// Connections to the gRPC services that wait to be taken up.
const HTTP_WAITING_MAX: usize = 64;
/// A silent connection is probed this often, and cut off when it does not answer for as long.
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
/// Calls and streams that one connection may have open.
const STREAMS_PER_CONNECTION_MAX: u32 = 1024;

/// Starts to accept connections for the gRPC services and for transfers.
pub(super) fn serve(
    listener: std::net::TcpListener,
    gate: Gate,
    routes: Routes,
    callers: impl FnOnce(mpsc::Sender<io::Result<Stream>>) -> Callers,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (calls, mut accepted) = mpsc::channel(HTTP_WAITING_MAX);
    tokio::spawn(port::accept(listener, gate, Arc::new(callers(calls))));
    let server = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .http2_keepalive_interval(Some(PROBE_INTERVAL))
        .http2_keepalive_timeout(Some(PROBE_INTERVAL))
        .add_routes(routes)
        .serve_with_incoming(futures::stream::poll_fn(move |context| accepted.poll_recv(context)));
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the services of this node have ended");
        }
    });
    Ok(())
}

/// Channels for connections that have proved that they are of the cluster.
pub struct Callers {
    /// To the gRPC services.
    pub calls: mpsc::Sender<io::Result<Stream>>,
    /// Reads objects and programs for them.
    pub senders: Arc<Senders>,
    /// The members.
    pub peers: Arc<Peers>,
    /// The counts of the node, for monitors.
    pub scraped: Scraped,
}

impl PortHandler for Callers {
    async fn take(&self, caller: Caller, stream: Stream) {
        match caller.purpose {
            Purpose::Calls => {
                // The services have ended if nobody takes it.
                let _ended = self.calls.send(Ok(stream)).await;
            }
            Purpose::Transfers if self.may_read(&caller).await => {
                self.senders.serve(caller.who, stream).await;
            }
            Purpose::Transfers => tracing::info!(?caller, "objects are read by members only"),
            // The gate answers it before anybody here is asked.
            Purpose::Join => {}
        }
    }

    fn refused(&self, error: &ProofError) {
        tracing::info!(%error, "a connection is refused");
    }

    async fn metrics(&self) -> Option<String> {
        self.scraped.text().await
    }
}

impl Callers {
    /// Whether the caller is a member, if certificates say who it is. The certificate of a node that was
    /// removed may still be good for a while.
    async fn may_read(&self, caller: &Caller) -> bool {
        match (caller.who, caller.who.node()) {
            (Who::Trusted { .. }, _) => true,
            (Who::Certified(_), Some(node)) => self.peers.await_member(node).await.is_some(),
            (Who::Certified(_), None) | (Who::Stranger, _) => false,
        }
    }
}

/// Threads that send objects and programs to other nodes.
pub struct Senders {
    source: Arc<NodeSource>,
    stopping: Arc<AtomicBool>,
    seats: Arc<Mutex<Seats>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Nodes that are served, and over which connection.
#[derive(Default)]
struct Seats {
    places: Places,
    streams: HashMap<u64, Seated>,
}

/// One connection, to cut it.
struct Seated {
    stream: std::net::TcpStream,
    machine: Option<MachineId>,
}

/// The place of one connection; it is given back when this is dropped.
struct Seat {
    seats: Arc<Mutex<Seats>>,
    place: u64,
}

/// Objects that one connection may read; notes when it reads.
struct Reading {
    source: Arc<NodeSource>,
    seat: Seat,
}

impl Senders {
    /// None yet.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn new(
        arena: &Arc<Arena>,
        inbox: Arc<Inbox>,
        code: Arc<Code>,
        spill: Option<Arc<Spill>>,
    ) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let source = NodeSource {
            arena: Arc::clone(arena),
            inbox,
            code,
            spill,
            stopping: Arc::clone(&stopping),
            sent_bytes: AtomicU64::new(0),
        };
        Ok(Self { source: Arc::new(source), stopping, seats: Arc::default(), threads: Mutex::default() })
    }

    /// Cuts connections whose machine is shut out, for ever.
    pub async fn cut_revoked(self: Arc<Self>, revoked: Revoked) {
        let mut changes = revoked.changes();
        while changes.changed().await.is_ok() {
            for seated in lock(&self.seats).streams.values() {
                if seated.machine.is_some_and(|machine| revoked.check(machine).is_err()) {
                    // Its thread sees the end; one that has ended already is no matter.
                    let _cut = seated.stream.shutdown(Shutdown::Both);
                }
            }
        }
    }

    async fn serve(&self, who: Who, stream: Stream) {
        let Some(seat) = self.seat(who, &stream) else { return turn_away(stream).await };
        // Shut out after the gate let it in, and before its place could be cut.
        if !stream.is_good() {
            return;
        }
        let Ok(stream) = stream.into_blocking() else { return };
        let (source, stopping) = (Arc::clone(&self.source), Arc::clone(&self.stopping));
        let seated = Reading { source, seat };
        let thread = std::thread::Builder::new().name("send".into()).stack_size(THREAD_STACK_BYTES);
        let spawned = thread.spawn(move || {
            if let Err(error) = transfer::serve(Proved(stream), &seated, &stopping) {
                tracing::info!(%error, "a transfer to another node ended");
            }
        });
        match spawned {
            Ok(thread) => {
                let mut threads = lock(&self.threads);
                threads.retain(|t| !t.is_finished());
                threads.push(thread);
            }
            Err(error) => tracing::warn!(%error, "no thread to send an object"),
        }
    }

    /// A place for a connection, if there is one now.
    fn seat(&self, who: Who, stream: &Stream) -> Option<Seat> {
        let handle = stream.handle().ok()?;
        let mut seats = lock(&self.seats);
        let Entry::Seated { place, instead_of } = seats.places.enter(who.node(), Instant::now()) else {
            return None;
        };
        if let Some(idle) = instead_of.and_then(|place| seats.streams.remove(&place)) {
            // Its thread sees the end; one that has ended already is no matter.
            let _cut = idle.stream.shutdown(Shutdown::Both);
        }
        seats.streams.insert(place, Seated { stream: handle, machine: who.machine() });
        drop(seats);
        Some(Seat { seats: Arc::clone(&self.seats), place })
    }

    /// Bytes of objects that other nodes were sent so far, again if they asked again.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.source.sent_bytes.load(Ordering::Relaxed)
    }

    /// Breaks everything off and waits for the threads.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _joined = thread.join();
        }
    }
}

/// Tells a caller to ask again.
async fn turn_away(mut stream: Stream) {
    let told = async {
        stream.write_all(&transfer::busy()).await?;
        stream.shutdown().await?;
        // Bytes that are not read would reset the connection before the caller reads this.
        stream.read(&mut [0; 64]).await
    };
    // A caller that does not hang up is cut off.
    let _told = timeout(BUSY_WAIT, told).await;
}

impl Seat {
    fn working(&self, is_working: bool) {
        lock(&self.seats).places.working(self.place, is_working, Instant::now());
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = lock(&self.seats);
        seats.places.leave(self.place);
        seats.streams.remove(&self.place);
    }
}

impl Source for Reading {
    fn open(&self, key: &ObjectKey) -> Option<SourceRange> {
        self.seat.working(true);
        self.source.open(key)
    }

    fn rests(&self) {
        self.seat.working(false);
    }

    fn sent(&self, key: &ObjectKey, bytes: u64) {
        self.source.sent(key, bytes);
    }
}

/// Objects of the arena, pinned while they are sent, those on disk, numbers of their copies, and programs.
struct NodeSource {
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    code: Arc<Code>,
    spill: Option<Arc<Spill>>,
    stopping: Arc<AtomicBool>,
    sent_bytes: AtomicU64,
}

/// Bytes that stay where they are until this is dropped.
struct Pinned<T> {
    bytes: T,
    object: ObjectId,
    inbox: Arc<Inbox>,
}

impl Source for NodeSource {
    fn open(&self, key: &ObjectKey) -> Option<SourceRange> {
        if let Some(program) = self.code.open(key) {
            return Some(SourceRange::Stored(program));
        }
        if let Some(object) = reads::object_of_number(key) {
            let number = self.ask(|reply| Input::CopyNumber { object, reply })?;
            return Some(SourceRange::Memory(Box::new(number.to_le_bytes())));
        }
        let object = ObjectId::from_bytes(*key);
        let extent = match self.ask(|reply| Input::OpenForTransfer { object, reply })? {
            Place::Arena(extent) => extent,
            Place::Disk { len } => {
                return Some(SourceRange::Stored(self.spill.as_ref()?.reader(object, len)));
            }
        };
        let inbox = Arc::clone(&self.inbox);
        if let Some(bytes) = self.arena.disk_reader(extent.offset, extent.len) {
            return Some(SourceRange::Stored(Box::new(Pinned { bytes, object, inbox })));
        }
        let Ok(bytes) = self.arena.map().slice(extent.offset, extent.len) else {
            self.inbox.put(Input::CloseTransfer { object });
            return None;
        };
        Some(SourceRange::Memory(Box::new(Pinned { bytes, object, inbox })))
    }

    fn sent(&self, key: &ObjectKey, bytes: u64) {
        if !self.code.has(key) && reads::object_of_number(key).is_none() {
            self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl NodeSource {
    /// The answer of the loop to a question, if there is one.
    fn ask<T>(&self, question: impl FnOnce(SyncSender<Option<T>>) -> Input) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(question(reply));
        loop {
            match answer.recv_timeout(STOP_POLL) {
                Ok(told) => return told,
                Err(RecvTimeoutError::Timeout) if !self.stopping.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
    }
}

impl AsRef<[u8]> for Pinned<ArenaSlice> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ReadAt for Pinned<AnnexReader> {
    fn total_bytes(&self) -> u64 {
        self.bytes.total_bytes()
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        let read = self.bytes.read_at(offset, target);
        // Its owner must hear of it: it would name this copy again and again.
        read.inspect_err(|cause| {
            tracing::warn!(object = %self.object, %cause, "an object on disk cannot be read for another node");
            self.inbox.put(Input::Event(Event::CopyLost { object: self.object }));
        })
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        self.inbox.put(Input::CloseTransfer { object: self.object });
    }
}
