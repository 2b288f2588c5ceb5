//! Reading objects from other nodes, straight into the arena.
//!
//! The machine says what to read, from where, and how much at a time; a few threads read it over connections
//! that are kept for a while. A connection that breaks is made again and the transfer goes on where it was; a
//! node that left the cluster cuts off at once what is read from it.

use super::links::Peers;
use super::proved::Proved;
use super::reads::{Broken, Job, Unread};
use super::runtime::Tasks;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_core::pull::Interrupted;
use tharsis_object_store::Arena;
use tharsis_object_store::transfer::{ObjectKey, Receiver, TransferError};
use tharsis_protos::connection::{Called, Credentials};
use tharsis_protos::message::is_of_machine;
use tharsis_protos::names::{self, Whose};
use tharsis_protos::proof::{ProofError, Purpose};
use tharsis_types::NodeId;
use tokio::time::timeout;

/// Threads, and so transfers at a time; the machine asks for no more.
const THREADS_MAX: usize = 8;
/// Threads and connections without work end after this long.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// The longest time that the name of a node, and then a connection, may take.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Before a sender that is busy is asked again, at first and later.
const BUSY_PAUSE_MIN: Duration = Duration::from_millis(20);
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(1);
/// A sender that is busy for so long is left for the next holder, and counts as not reached: it says nothing
/// of what it has. Readers that do not read make way within seconds, so it has a defect, or means it.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// A transfer that breaks off is taken up again this often.
const ATTEMPTS_MAX: usize = 3;
/// Time for one step, at a rate that no link in use is slower than.
const STEP_WAIT: Duration = Duration::from_secs(60);

/// Transfers to this node.
pub struct Pulls {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    connections: Connections,
    queue: Mutex<Queue>,
    work: Condvar,
    received_bytes: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    thread_count: usize,
    idle_count: usize,
}

/// Connections to senders: those in use, so that they can be cut, and those kept for the next transfer.
pub struct Connections {
    peers: Arc<Peers>,
    own: Credentials,
    /// The runtime on which names are asked for.
    tasks: Tasks,
    state: Mutex<Known>,
    stopping: AtomicBool,
}

/// Why there is no connection.
enum NotConnected {
    /// The sender serves as many as it can.
    Busy,
    Failed(Unread),
}

#[derive(Default)]
struct Known {
    next: u64,
    busy: HashMap<u64, (NodeId, TcpStream)>,
    kept: Vec<(NodeId, Instant, TcpStream, Receiver)>,
}

/// A connection in use.
pub struct Connection {
    number: u64,
    node: NodeId,
    receiver: Receiver,
}

impl Pulls {
    /// A puller without connections; bytes that arrive are written to `arena`. Names are asked for on the
    /// runtime that runs this.
    #[must_use]
    pub fn new(arena: Arc<Arena>, inbox: Arc<Inbox>, peers: Arc<Peers>, own: Credentials) -> Self {
        let (tasks, state, stopping) = (Tasks::current(), Mutex::default(), AtomicBool::new(false));
        let connections = Connections { peers, own, tasks, state, stopping };
        let (queue, work, received_bytes) = (Mutex::default(), Condvar::new(), AtomicU64::new(0));
        let shared = Shared { arena, inbox, connections, queue, work, received_bytes };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// Reads what is not there of an object into its range of the arena; how it went comes through the
    /// inbox.
    pub fn start(&self, job: Job) {
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push_back(job);
        let needs_thread = queue.idle_count < queue.jobs.len() && queue.thread_count < THREADS_MAX;
        queue.thread_count += usize::from(needs_thread);
        drop(queue);
        self.shared.work.notify_one();
        if needs_thread {
            self.start_thread();
        }
    }

    /// A node left the cluster.
    pub fn node_left(&self, node: NodeId) {
        self.shared.connections.cut(|n| n == node);
    }

    /// Connections, for other things than objects.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.shared.connections
    }

    /// Breaks everything off and waits for the threads.
    pub fn stop(&self) {
        self.shared.connections.stopping.store(true, Ordering::Release);
        self.shared.connections.cut(|_| true);
        self.shared.work.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _joined = thread.join();
        }
    }

    /// Bytes that were read so far, those of transfers that broke off included.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.shared.received_bytes.load(Ordering::Relaxed)
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new().name("pull".into()).spawn(move || shared.run());
        match spawned {
            Ok(thread) => {
                let mut threads = lock(&self.threads);
                threads.retain(|t| !t.is_finished());
                threads.push(thread);
            }
            Err(cause) => self.shared.thread_refused(&cause),
        }
    }
}

impl Shared {
    fn run(&self) {
        while let Some(mut job) = self.next_job() {
            let outcome = self.read(&mut job);
            let Job { object, from, done_bytes, copy, received_bytes, .. } = job;
            self.received_bytes.fetch_add(received_bytes, Ordering::Relaxed);
            let event = match outcome {
                Ok(()) => Event::PullDone { object },
                Err(Broken::NoMemory(cause)) => {
                    tracing::warn!(%object, cause, "no memory to receive an object into");
                    Event::PullRefused { object, cause }
                }
                Err(Broken::Transfer(Unread { cause, is_interrupted, .. })) => {
                    tracing::info!(%object, %from, cause, "transfer broke off");
                    if is_interrupted {
                        Event::PullInterrupted(Interrupted { object, from, done_bytes, copy, cause })
                    } else {
                        Event::PullFailed { object, from, done_bytes, cause }
                    }
                }
            };
            self.inbox.put(Input::Event(event));
        }
    }

    /// The next job; none after a while without any.
    fn next_job(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        let until = Instant::now() + IDLE_MAX;
        loop {
            if self.connections.is_stopping() {
                break;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            queue.idle_count += 1;
            queue = self.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            queue.idle_count -= 1;
        }
        queue.thread_count -= 1;
        drop(queue);
        self.connections.forget_idle();
        None
    }

    /// There is no thread: unless others are there to do the work, it has failed.
    fn thread_refused(&self, cause: &std::io::Error) {
        let mut queue = lock(&self.queue);
        queue.thread_count -= 1;
        if queue.thread_count == 0 {
            for Job { object, from, done_bytes, copy, .. } in queue.jobs.drain(..) {
                let cause = format!("no thread for a transfer: {cause}");
                let ended = Interrupted { object, from, done_bytes, copy, cause };
                self.inbox.put(Input::Event(Event::PullInterrupted(ended)));
            }
        }
    }

    fn read(&self, job: &mut Job) -> Result<(), Broken> {
        let from = job.from;
        job.read(&self.arena, &|key: &ObjectKey, offset: u64, target: &mut [u8]| {
            self.connections.fetch(from, key, offset, target, STEP_WAIT)
        })
    }
}

impl Connections {
    /// Reads bytes that another node sends under a key, however often the connection breaks in between.
    /// Returns the number of connections over which they came.
    ///
    /// # Errors
    /// Why they did not come.
    pub fn fetch(
        &self,
        from: NodeId,
        key: &ObjectKey,
        offset: u64,
        target: &mut [u8],
        deadline: Duration,
    ) -> Result<usize, Unread> {
        let mut done = 0;
        for attempt in 1.. {
            let mut connection = self.take_patiently(from).map_err(|unread| unread.after(done))?;
            let fetched = connection.receiver.fetch(key, offset + done as u64, &mut target[done..], deadline);
            self.release(connection, fetched.is_ok());
            let Err(error) = fetched else { return Ok(attempt) };
            done += error.done_bytes as usize;
            let is_final = matches!(error.cause, TransferError::NotFound | TransferError::OutOfRange { .. });
            if is_final || attempt == ATTEMPTS_MAX || self.peers.get(from).is_none() {
                return Err(Unread::of(&error.cause).after(done));
            }
        }
        Err(Unread::interrupted("no attempt was made"))
    }

    /// A connection, as soon as the other node has a place for us: busy is not unreadable, and whoever has a
    /// place either reads or makes way. One that is busy for ever must not hold all threads for ever.
    fn take_patiently(&self, node: NodeId) -> Result<Connection, Unread> {
        patiently(|| self.take(node), || self.is_stopping(), BUSY_MAX)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn take(&self, node: NodeId) -> Result<Connection, NotConnected> {
        let no_member = |what| NotConnected::Failed(Unread::interrupted(format!("node {node} {what}")));
        let peer = self.peers.get(node).ok_or_else(|| no_member("is not part of the cluster"))?;
        let mut state = lock(&self.state);
        if let Some(at) = state.kept.iter().rposition(|(n, ..)| *n == node) {
            let (_, _, stream, receiver) = state.kept.swap_remove(at);
            return Ok(state.note(node, stream, receiver));
        }
        drop(state);
        let listen = &peer.info.listen;
        let refused = |cause: io::Error| {
            NotConnected::Failed(Unread::interrupted(format!("cannot connect to {listen}: {cause}")))
        };
        let stream = open(&self.tasks, listen).map_err(refused)?;
        let handle = stream.try_clone().map_err(refused)?;
        let called = Called::Node(node.0);
        let stream = self.own.meet_blocking(stream, called, Purpose::Transfers);
        let stream = stream.map_err(|cause| NotConnected::proving(listen, &cause))?;
        let receiver =
            Receiver::new(Proved(stream)).map_err(|cause| NotConnected::greeting(listen, &cause))?;
        let connection = lock(&self.state).note(node, handle, receiver);
        // It may have left while we called.
        if self.peers.get(node).is_none() {
            self.release(connection, false);
            return Err(no_member("has left the cluster"));
        }
        Ok(connection)
    }

    fn release(&self, connection: Connection, is_good: bool) {
        let Connection { number, node, receiver } = connection;
        let mut state = lock(&self.state);
        if let Some((_, stream)) = state.busy.remove(&number)
            && is_good
        {
            state.kept.push((node, Instant::now(), stream, receiver));
        }
    }

    fn cut(&self, which: impl Fn(NodeId) -> bool) {
        let mut state = lock(&self.state);
        for (_, stream) in state.busy.values().filter(|(node, _)| which(*node)) {
            let _cut = stream.shutdown(Shutdown::Both);
        }
        state.kept.retain(|(node, ..)| !which(*node));
    }

    fn forget_idle(&self) {
        lock(&self.state).kept.retain(|(_, since, ..)| since.elapsed() < IDLE_MAX);
    }
}

impl NotConnected {
    /// The connection to an address was not made or not proved.
    fn proving(listen: &str, error: &ProofError) -> Self {
        let cause = format!("cannot connect to {listen}: {error}");
        Self::Failed(Unread { cause, is_interrupted: error.may_pass(), done_bytes: 0 })
    }

    /// The sender at an address did not greet as it should.
    fn greeting(listen: &str, error: &TransferError) -> Self {
        if matches!(error, TransferError::Busy) {
            return Self::Busy;
        }
        let unread = Unread::of(error);
        Self::Failed(Unread { cause: format!("cannot connect to {listen}: {}", unread.cause), ..unread })
    }
}

impl Known {
    fn note(&mut self, node: NodeId, stream: TcpStream, receiver: Receiver) -> Connection {
        let number = self.next;
        self.next += 1;
        self.busy.insert(number, (node, stream));
        Connection { number, node, receiver }
    }
}

/// Opens a connection to the first address of a node that accepts one. Names have the addresses that they had
/// while nobody answers for them, and a member whose name server is slow holds up no others.
fn open(tasks: &Tasks, listen: &str) -> io::Result<TcpStream> {
    let name = listen.to_owned();
    let asked = async move { timeout(CONNECT_WAIT, names::addresses(&name, Whose::Member)).await };
    let found = tasks.ask(asked).map_err(|ended| io::Error::other(ended.message))?;
    let found = found.unwrap_or_else(|_late| Err(io::Error::other("nobody answers for its name")))?;
    let mut failed = io::Error::other("it resolves to no address of a machine");
    for address in found.into_iter().filter(|address| is_of_machine(address.ip())) {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(stream) => return Ok(stream),
            Err(cause) => failed = cause,
        }
    }
    Err(failed)
}

/// Asks a sender again while it is busy, at most for a time.
fn patiently<T>(
    mut ask: impl FnMut() -> Result<T, NotConnected>,
    is_stopping: impl Fn() -> bool,
    busy_max: Duration,
) -> Result<T, Unread> {
    let (until, mut pause) = (Instant::now() + busy_max, BUSY_PAUSE_MIN);
    loop {
        match ask() {
            Ok(connection) => return Ok(connection),
            Err(NotConnected::Failed(unread)) => return Err(unread),
            Err(NotConnected::Busy) if is_stopping() => return Err(Unread::interrupted("this node stops")),
            Err(NotConnected::Busy) if until <= Instant::now() => {
                let cause = format!("it has said for {} s that it is busy", busy_max.as_secs());
                return Err(Unread::interrupted(cause));
            }
            Err(NotConnected::Busy) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(BUSY_PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::network_runtime;
    use std::net::TcpListener;
    use tharsis_protos::proof::Reason;

    #[test]
    fn the_name_of_a_sender_is_asked_for_where_answers_are_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = format!("localhost:{}", listener.local_addr().unwrap().port());
        let runtime = network_runtime(2).unwrap();
        let tasks = runtime.block_on(async { Tasks::current() });
        assert!(!names::is_fresh(&listen));
        open(&tasks, &listen).unwrap();
        assert!(names::is_fresh(&listen));
    }

    #[test]
    fn a_sender_that_is_busy_is_asked_again_and_left_in_the_end() {
        let mut asked = 0;
        let busy_twice = || {
            asked += 1;
            if asked < 3 { Err(NotConnected::Busy) } else { Ok(asked) }
        };
        assert_eq!(patiently(busy_twice, || false, BUSY_MAX).unwrap(), 3);
        let busy = || Err::<(), _>(NotConnected::Busy);
        let left = patiently(busy, || false, 3 * BUSY_PAUSE_MIN).unwrap_err();
        assert!(left.cause.contains("busy") && left.is_interrupted, "{left:?}: a crowd is no loss");
        assert_eq!(patiently(busy, || true, BUSY_MAX).unwrap_err(), Unread::interrupted("this node stops"));
        let failed = || Err::<(), _>(NotConnected::Failed(Unread::interrupted("nobody listens")));
        assert_eq!(patiently(failed, || false, BUSY_MAX).unwrap_err(), Unread::interrupted("nobody listens"));
    }

    #[test]
    fn only_what_a_sender_says_is_said_of_its_copy() {
        let says = |error: TransferError| !Unread::of(&error).is_interrupted;
        assert!(says(TransferError::NotFound));
        assert!(says(TransferError::OutOfRange { offset: 0, len: 2, total_bytes: 1 }));
        assert!(!says(TransferError::Closed) && !says(TransferError::Timeout { action: "read" }));
        assert!(!says(TransferError::Io { action: "read", cause: io::Error::other("reset") }));
    }

    #[test]
    fn what_never_passes_is_no_interruption_before_the_greeting_either() {
        let waits =
            |not: NotConnected| matches!(not, NotConnected::Failed(Unread { is_interrupted: true, .. }));
        let proving = |error: ProofError| NotConnected::proving("a:1", &error);
        assert!(waits(proving(io::Error::other("nobody listens").into())));
        assert!(waits(proving(ProofError::Timeout(CONNECT_WAIT))));
        assert!(waits(proving(ProofError::Refused(Reason::TooMany))), "a crowd is no loss");
        assert!(!waits(proving(ProofError::Refused(Reason::WrongRole))));
        assert!(!waits(proving(ProofError::Version { theirs: 7 })) && !waits(proving(ProofError::NotOurs)));
        let greeting = |error: TransferError| NotConnected::greeting("a:1", &error);
        assert!(waits(greeting(TransferError::Closed)));
        assert!(!waits(greeting(TransferError::Version { ours: 1, theirs: 2 })));
        assert!(!waits(greeting(TransferError::BadPeer { what: "no greeting" })));
        assert!(matches!(greeting(TransferError::Busy), NotConnected::Busy));
    }
}
