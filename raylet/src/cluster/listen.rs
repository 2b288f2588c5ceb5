//! The one port of a node: who calls is told by the first byte.
//!
//! A transfer begins with the magic of its protocol and gets a thread; HTTP/2 begins with its preface and goes to the gRPC
//! services, once all of it is there: those would wait for the rest for ever. Anything else, and whoever says nothing for
//! a while, is cut off.

use super::code::Code;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use crate::spill::Spill;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_core::node::Place;
use tharsis_object_store::transfer::{self, FileRange, MAGIC, ObjectKey, ReadAt, Source, SourceRange};
use tharsis_object_store::{AnnexReader, Arena, ArenaSlice};
use tharsis_types::ObjectId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

/// Transfers that are served at a time; more wait.
const SERVED_MAX: usize = 256;
/// Connections that have not said what they are.
const UNKNOWN_MAX: usize = 256;
/// How long a connection may take to say what it is.
const FIRST_WORDS_WAIT: Duration = Duration::from_secs(5);
/// Between looks at a preface that has come in part.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);
/// What an HTTP/2 client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// After an accept that failed for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How often a thread that waits for the loop looks whether it is to stop.
const STOP_POLL: Duration = Duration::from_millis(100);
/// Stack of a thread that serves transfers; its buffers are elsewhere.
const THREAD_STACK_BYTES: usize = 256 << 10;

/// Accepts connections for ever and hands them to whom they belong.
pub async fn accept(listener: TcpListener, http: mpsc::Sender<io::Result<TcpStream>>, senders: Arc<Senders>) {
    let unknown = Arc::new(Semaphore::new(UNKNOWN_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&unknown).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (http, senders) = (http.clone(), Arc::clone(&senders));
        tokio::spawn(async move {
            let caller = timeout(FIRST_WORDS_WAIT, introduce(&stream)).await;
            drop(permit);
            match caller {
                Ok(Ok(Caller::Transfer)) => senders.serve(stream).await,
                Ok(Ok(Caller::Http)) => {
                    let _nodelay = stream.set_nodelay(true);
                    let _ended = http.send(Ok(stream)).await;
                }
                Ok(Ok(Caller::Stranger) | Err(_)) | Err(_) => {}
            }
        });
    }
}

/// Who a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Http,
    Stranger,
    Transfer,
}

/// Waits until a connection has said what it is. Takes nothing from it.
async fn introduce(stream: &TcpStream) -> io::Result<Caller> {
    let mut words = [0; PREFACE.len()];
    loop {
        let len = stream.peek(&mut words).await?;
        if let Some(caller) = caller(&words[..len]) {
            return Ok(caller);
        }
        // What was looked at is still there, so the stream is readable at once.
        sleep(PREFACE_PAUSE).await;
    }
}

/// Who says this first; none as long as it can be somebody yet.
fn caller(words: &[u8]) -> Option<Caller> {
    match words {
        [] => Some(Caller::Stranger),
        [first, ..] if *first == MAGIC[0] => Some(Caller::Transfer),
        _ if words == PREFACE => Some(Caller::Http),
        _ if PREFACE.starts_with(words) => None,
        _ => Some(Caller::Stranger),
    }
}

/// Threads that send objects and programs to other nodes.
pub struct Senders {
    source: Arc<NodeSource>,
    stopping: Arc<AtomicBool>,
    places: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
        let file = Arc::new(arena.fd().try_clone_to_owned()?);
        let source = NodeSource {
            arena: Arc::clone(arena),
            file,
            inbox,
            code,
            spill,
            stopping: Arc::clone(&stopping),
            sent_bytes: AtomicU64::new(0),
        };
        let places = Arc::new(Semaphore::new(SERVED_MAX));
        Ok(Self { source: Arc::new(source), stopping, places, threads: Mutex::default() })
    }

    async fn serve(&self, stream: TcpStream) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
        let Ok(stream) = stream.into_std() else { return };
        let (source, stopping) = (Arc::clone(&self.source), Arc::clone(&self.stopping));
        let thread = std::thread::Builder::new().name("send".into()).stack_size(THREAD_STACK_BYTES);
        let spawned = thread.spawn(move || {
            if let Err(error) = transfer::serve(stream, source.as_ref(), &stopping) {
                tracing::info!(%error, "a transfer to another node ended");
            }
            drop(place);
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

/// Objects of the arena, pinned while they are sent, those on disk, and programs.
struct NodeSource {
    arena: Arc<Arena>,
    file: Arc<OwnedFd>,
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
        let object = ObjectId::from_bytes(*key);
        let extent = match self.pin(object)? {
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
        let bytes = Box::new(Pinned { bytes, object, inbox });
        let file = Some(FileRange { fd: Arc::clone(&self.file), offset: extent.offset });
        Some(SourceRange::Memory { bytes, file })
    }

    fn sent(&self, key: &ObjectKey, bytes: u64) {
        if !self.code.has(key) {
            self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl NodeSource {
    fn pin(&self, object: ObjectId) -> Option<Place> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(Input::OpenForTransfer { object, reply });
        loop {
            match answer.recv_timeout(STOP_POLL) {
                Ok(place) => return place,
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
        self.bytes.read_at(offset, target)
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        self.inbox.put(Input::CloseTransfer { object: self.object });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_told_by_their_first_words() {
        assert_eq!(caller(PREFACE), Some(Caller::Http));
        assert_eq!(caller(&PREFACE[..5]), None);
        assert_eq!(caller(&MAGIC), Some(Caller::Transfer));
        for stranger in [&b""[..], b"GET / HTTP/1.1\r\n", b"PUT", b"\x16\x03\x01", b"PRI * HTTP/1"] {
            assert_eq!(caller(stranger), Some(Caller::Stranger));
        }
    }
}
