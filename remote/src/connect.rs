//! Connects to a node's socket and makes a client.
//!
//! The client sends a hello over the node's Unix socket and gets the names of its segment and of the board,
//! and the descriptor of the arena. Afterwards the socket is silent. A thread sleeps on it, because each side
//! learns from its end that the other is gone. A closed client shuts down its half of the socket; the other
//! half ends when the process has no users of the node's memory left.

use crate::client::{Client, ClientParts, Names};
use crate::dispatch::LogSink;
use crate::error::{Error, Result};
use crate::registry::function_table;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use tharsis_object_store::channel::Channel;
use tharsis_object_store::{ArenaMap, BellBoard, Segment, local_socket};
use tharsis_protos::handshake::{
    Answer, FunctionEntry, HELLO_BYTES_MAX, HELLO_MAGIC, Hello, PROTOCOL_VERSION, Question, Role, Welcome,
};
use tharsis_types::{Failure, FailureKind};

/// The longest time that a node may take to answer a hello: it may have to fetch the job's program first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time that a node may take to answer about a name: the control store may be away.
const NAME_TIMEOUT: Duration = Duration::from_secs(90);

/// Connects to the node that listens at `socket`.
///
/// # Errors
/// `Disconnected` if no node answers there, the refusal of the node, `ResourceExhausted` if its memory cannot
/// be mapped.
pub fn connect(socket: &Path, role: Role, log_sink: Option<LogSink>) -> Result<Client> {
    let is_worker = matches!(role, Role::Worker { .. });
    let stream = open(socket)?;
    let (welcome, arena, annex) =
        greet(&stream, role, function_table()).map_err(|refused| refused.told(socket))?;
    let arena = map_arena(&welcome, arena, annex)?;
    let client = enter(socket, &stream, &welcome, arena, is_worker, log_sink)?;
    watch(&client, stream)?;
    Ok(client)
}

/// The process that several workers share, at its node: tells which of them to begin.
pub struct SharedProcess {
    socket: PathBuf,
    stream: UnixStream,
    /// All of them use the same arena.
    arena: Arc<OnceLock<Arc<ArenaMap>>>,
}

impl SharedProcess {
    /// Connects the process that the node at `socket` has started with this number.
    ///
    /// # Errors
    /// As [`connect`].
    pub fn connect(socket: &Path, number: u64) -> Result<Self> {
        let stream = open(socket)?;
        send_hello(&stream, Role::SharedProcess { number }, function_table())
            .map_err(|refused| refused.told(socket))?;
        Ok(Self { socket: socket.to_owned(), stream, arena: Arc::default() })
    }

    /// The next worker to begin; `None` at the end of the process.
    ///
    /// # Errors
    /// The refusal of the node.
    pub fn next_worker(&self) -> Result<Option<SharedWorker>> {
        let Ok((frame, _)) = local_socket::recv_frame(&self.stream, HELLO_BYTES_MAX) else { return Ok(None) };
        match postcard::from_bytes(&frame) {
            Ok(Answer::Begin(start)) => {
                let (socket, arena) = (self.socket.clone(), Arc::clone(&self.arena));
                Ok(Some(SharedWorker { socket, start, arena }))
            }
            Ok(Answer::Refused(failure)) => Err(failure.into()),
            _ => Err(Error::internal("the node answered a question that was not asked")),
        }
    }
}

/// A worker that is to begin in this process.
pub struct SharedWorker {
    socket: PathBuf,
    start: u64,
    arena: Arc<OnceLock<Arc<ArenaMap>>>,
}

impl SharedWorker {
    /// Number of its start.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Connects it. The node takes it for alive until [`Leave::leave`].
    ///
    /// # Errors
    /// As [`connect`].
    pub fn connect(self) -> Result<(Client, Leave)> {
        let Self { socket, start, arena } = self;
        let stream = open(&socket)?;
        // The node knows the functions of the process.
        let (welcome, fd, annex) =
            greet(&stream, Role::Worker { start }, Vec::new()).map_err(|refused| refused.told(&socket))?;
        let arena = match arena.get() {
            Some(arena) => Arc::clone(arena),
            None => {
                let mapped = map_arena(&welcome, fd, annex)?;
                Arc::clone(arena.get_or_init(|| mapped))
            }
        };
        let client = enter(&socket, &stream, &welcome, arena, true, None)?;
        let failed = |cause: std::io::Error| Error::internal(format!("cannot watch the node: {cause}"));
        let ours = stream.try_clone().map_err(failed)?;
        client.on_disuse(move || {
            let _ = ours.shutdown(Shutdown::Both);
        });
        Ok((client, Leave(stream)))
    }
}

/// The end of a worker that is a thread: until then the node takes it for alive.
pub struct Leave(UnixStream);

impl Leave {
    /// Tells the node that the worker runs nothing any more. Values that it has read may still be in use.
    pub fn leave(self) {
        // If the node is gone, it need not be told.
        let _ = (&self.0).write_all(&[0]);
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

fn open(socket: &Path) -> Result<UnixStream> {
    // One that hangs takes nobody up.
    let stream =
        local_socket::connect(socket, ANSWER_TIMEOUT).map_err(|cause| unreachable(socket, &cause))?;
    local_socket::check_peer(&stream).map_err(|cause| unreachable(socket, &cause))?;
    Ok(stream)
}

fn unreachable(socket: &Path, cause: &dyn std::fmt::Display) -> Error {
    let text = format!("no node answers at {}: {cause}", socket.display());
    Error::new(FailureKind::Disconnected, text)
}

/// Makes a client of what the node welcomed it with.
fn enter(
    socket: &Path,
    stream: &UnixStream,
    welcome: &Welcome,
    arena: Arc<ArenaMap>,
    is_worker: bool,
    log_sink: Option<LogSink>,
) -> Result<Client> {
    let parts = map(welcome, arena, is_worker, log_sink, names(socket))
        .map_err(|cause| unmapped(welcome.arena_bytes + welcome.annex_bytes, &cause))?;
    // Tells the node that it can remove the names of the segments: this process has mapped everything.
    local_socket::send_frame(stream, &[], 0, None).map_err(|cause| unreachable(socket, &cause))?;
    Client::from_parts(parts)
}

/// The error if the store of a node cannot be mapped: almost always, addresses are short.
fn unmapped(store_bytes: u64, cause: &tharsis_object_store::StoreError) -> Error {
    let text = format!(
        "the node's store of {store_bytes} bytes (with its place for larger values on disk) cannot be mapped, which takes \
         twice as many bytes of addresses: {cause}; raise the limit on this process (`ulimit -v`), or start the node with \
         a smaller store"
    );
    Error::new(FailureKind::ResourceExhausted, text)
}

enum Greeting {
    Broken(String),
    Refused(Failure),
}

impl Greeting {
    /// The error for the user, of the node at a socket.
    fn told(self, socket: &Path) -> Error {
        match self {
            Self::Broken(cause) => unreachable(socket, &cause),
            Self::Refused(failure) => failure.into(),
        }
    }
}

/// Answer of the node, with the descriptors of its arena and of the annex, if it has one.
fn greet(
    stream: &UnixStream,
    role: Role,
    functions: Vec<FunctionEntry>,
) -> std::result::Result<(Welcome, OwnedFd, Option<OwnedFd>), Greeting> {
    let broken = |cause: &dyn std::fmt::Display| Greeting::Broken(cause.to_string());
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(|cause| broken(&cause))?;
    send_hello(stream, role, functions)?;
    let (answer, arena) =
        local_socket::recv_frame(stream, HELLO_BYTES_MAX).map_err(|cause| broken(&cause))?;
    let answer = postcard::from_bytes(&answer).map_err(|cause| broken(&cause))?;
    let annex = match &answer {
        Answer::Welcome(Welcome { annex_bytes: 1.., .. }) => {
            local_socket::recv_frame(stream, 0).map_err(|cause| broken(&cause))?.1
        }
        _ => None,
    };
    stream.set_read_timeout(None).map_err(|cause| broken(&cause))?;
    match answer {
        Answer::Refused(failure) => Err(Greeting::Refused(failure)),
        Answer::Begin(_)
        | Answer::Draining(_)
        | Answer::Inventory(_)
        | Answer::Lines(_)
        | Answer::LinesEnd
        | Answer::Named(_)
        | Answer::Report(_)
        | Answer::Runs(_)
        | Answer::Story(_)
        | Answer::Table(_) => {
            Err(Greeting::Broken("the node answered a question that was not asked".to_owned()))
        }
        Answer::Welcome(welcome) => match arena {
            Some(_) if annex.is_none() != (welcome.annex_bytes == 0) => {
                Err(Greeting::Broken("the welcome brought no annex".to_owned()))
            }
            Some(arena) => Ok((welcome, arena, annex)),
            None => Err(Greeting::Broken("the welcome brought no arena".to_owned())),
        },
    }
}

/// Says hello to a node; a driver with the descriptor of its program.
fn send_hello(
    stream: &UnixStream,
    role: Role,
    functions: Vec<FunctionEntry>,
) -> std::result::Result<(), Greeting> {
    let broken = |cause: &dyn std::fmt::Display| Greeting::Broken(cause.to_string());
    // The program that this process runs, even if its path has another one by now.
    let program = match role {
        Role::Driver { .. } => Some(File::open("/proc/self/exe").map_err(|cause| broken(&cause))?),
        Role::Observer(_) | Role::SharedProcess { .. } | Role::Worker { .. } => None,
    };
    let hello =
        Hello { magic: HELLO_MAGIC, version: PROTOCOL_VERSION, pid: std::process::id(), role, functions };
    let hello = postcard::to_allocvec(&hello).map_err(|cause| broken(&cause))?;
    local_socket::send_frame(stream, &hello, HELLO_BYTES_MAX, program.as_ref().map(AsFd::as_fd))
        .map_err(|cause| broken(&cause))
}

fn map_arena(welcome: &Welcome, arena: OwnedFd, annex: Option<OwnedFd>) -> Result<Arc<ArenaMap>> {
    let annex = annex.as_ref().map(|fd| (fd.as_fd(), welcome.annex_bytes));
    let map = ArenaMap::from_fds(arena, welcome.arena_bytes, annex);
    map.map(Arc::new).map_err(|cause| unmapped(welcome.arena_bytes + welcome.annex_bytes, &cause))
}

fn map(
    welcome: &Welcome,
    arena: Arc<ArenaMap>,
    is_worker: bool,
    log_sink: Option<LogSink>,
    names: Names,
) -> std::result::Result<ClientParts, tharsis_object_store::StoreError> {
    let rings = Arc::new(Segment::open(&welcome.ring_segment)?);
    let board = Arc::new(Segment::open(&welcome.board_segment)?);
    Ok(ClientParts {
        client: welcome.client,
        node: welcome.node,
        job: welcome.job,
        is_worker,
        channel: Channel::client_side(&rings)?,
        board: BellBoard::at(&board, 0)?,
        board_index: welcome.board_index,
        arena,
        log_sink,
        names,
        gpus: welcome.gpus.clone(),
    })
}

/// Asks the node that listens at `socket` about names, each time over a connection of its own.
fn names(socket: &Path) -> Names {
    let socket = socket.to_owned();
    Box::new(move |question| {
        let unreachable = |cause: &dyn std::fmt::Display| unreachable(&socket, cause);
        let stream = open(&socket)?;
        stream.set_read_timeout(Some(NAME_TIMEOUT)).map_err(|cause| unreachable(&cause))?;
        let hello = Hello {
            magic: HELLO_MAGIC,
            version: PROTOCOL_VERSION,
            pid: std::process::id(),
            role: Role::Observer(Question::Name(question)),
            functions: Vec::new(),
        };
        let hello = postcard::to_allocvec(&hello).map_err(|cause| unreachable(&cause))?;
        local_socket::send_frame(&stream, &hello, HELLO_BYTES_MAX, None)
            .map_err(|cause| unreachable(&cause))?;
        let (answer, _) =
            local_socket::recv_frame(&stream, HELLO_BYTES_MAX).map_err(|cause| unreachable(&cause))?;
        match postcard::from_bytes(&answer).map_err(|cause| unreachable(&cause))? {
            Answer::Named(named) => Ok(named),
            Answer::Refused(failure) => Err(failure.into()),
            _ => Err(Error::internal("the node answered something else than was asked")),
        }
    })
}

/// Sleeps on the socket until the node closes it, or this client, once it uses none of the node's memory.
fn watch(client: &Client, stream: UnixStream) -> Result<()> {
    let failed = |cause: std::io::Error| Error::internal(format!("cannot watch the node: {cause}"));
    let ours = stream.try_clone().map_err(failed)?;
    let half = stream.try_clone().map_err(failed)?;
    client.on_loss(move || {
        let _ = half.shutdown(Shutdown::Write);
    });
    client.on_disuse(move || {
        let _ = ours.shutdown(Shutdown::Both);
    });
    let link = Arc::downgrade(client.link());
    let watcher = thread::Builder::new().name("tharsis-watch".to_owned()).stack_size(128 << 10);
    watcher
        .spawn(move || {
            // Nothing is ever sent: a read returns when the connection ends.
            while matches!((&stream).read(&mut [0; 64]), Ok(count) if count > 0) {}
            if let Some(link) = link.upgrade() {
                link.lose_after_reading(Failure::new(FailureKind::Disconnected, "the node has gone"));
            }
        })
        .map_err(failed)?;
    Ok(())
}
