//! The one port of a node: who calls is told by the first byte.
//!
//! A transfer begins with the magic of its protocol and gets a thread; HTTP/2 begins with its preface and goes to the gRPC
//! services. Anything else, and whoever says nothing for a while, is cut off.

use super::code::Code;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_core::event::Extent;
use tharsis_object_store::transfer::{self, FileRange, MAGIC, ObjectKey, Source, SourceRange};
use tharsis_object_store::{Arena, ArenaSlice};
use tharsis_types::ObjectId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

/// Transfers that are served at a time; more wait.
const SERVED_MAX: usize = 256;
/// Connections that have not said what they are.
const UNKNOWN_MAX: usize = 256;
/// How long a connection may take to say what it is.
const FIRST_BYTE_WAIT: Duration = Duration::from_secs(5);
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
            let mut first = [0];
            let peeked = timeout(FIRST_BYTE_WAIT, stream.peek(&mut first)).await;
            drop(permit);
            match (peeked, first) {
                (Ok(Ok(1)), [byte]) if byte == MAGIC[0] => senders.serve(stream).await,
                (Ok(Ok(1)), [b'P']) => {
                    let _nodelay = stream.set_nodelay(true);
                    let _ended = http.send(Ok(stream)).await;
                }
                _ => {}
            }
        });
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
    pub fn new(arena: &Arc<Arena>, inbox: Arc<Inbox>, code: Arc<Code>) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let file = Arc::new(arena.fd().try_clone_to_owned()?);
        let source =
            NodeSource { arena: Arc::clone(arena), file, inbox, code, stopping: Arc::clone(&stopping) };
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

    /// Breaks everything off and waits for the threads.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _joined = thread.join();
        }
    }
}

/// Objects of the arena, pinned while they are sent, and programs.
struct NodeSource {
    arena: Arc<Arena>,
    file: Arc<OwnedFd>,
    inbox: Arc<Inbox>,
    code: Arc<Code>,
    stopping: Arc<AtomicBool>,
}

/// Bytes that stay where they are until this is dropped.
struct Pinned {
    slice: ArenaSlice,
    object: ObjectId,
    inbox: Arc<Inbox>,
}

impl Source for NodeSource {
    fn open(&self, key: &ObjectKey) -> Option<SourceRange> {
        if let Some(bytes) = self.code.open(key) {
            return Some(SourceRange { bytes: Box::new(bytes), file: None });
        }
        let object = ObjectId::from_bytes(*key);
        let extent = self.pin(object)?;
        let Ok(slice) = self.arena.map().slice(extent.offset, extent.len) else {
            self.inbox.put(Input::CloseTransfer { object });
            return None;
        };
        let bytes = Box::new(Pinned { slice, object, inbox: Arc::clone(&self.inbox) });
        let file = Some(FileRange { fd: Arc::clone(&self.file), offset: extent.offset });
        Some(SourceRange { bytes, file })
    }
}

impl NodeSource {
    fn pin(&self, object: ObjectId) -> Option<Extent> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(Input::OpenForTransfer { object, reply });
        loop {
            match answer.recv_timeout(STOP_POLL) {
                Ok(extent) => return extent,
                Err(RecvTimeoutError::Timeout) if !self.stopping.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.slice
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.inbox.put(Input::CloseTransfer { object: self.object });
    }
}
