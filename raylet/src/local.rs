//! The node's Unix socket: it admits clients, hands them their rings and the arena, and notices their ends.

use crate::drain::Drain;
use crate::executable::Executable;
use crate::hello::{self, Unread};
use crate::inbox::{Inbox, Input};
use crate::lists;
use crate::logs::Logs;
use crate::names::Names;
use crate::own_files::{close_to_group, is_to_be_closed, mark};
use crate::port::{Facts, Port, function_table};
use crate::registry::{Job, Registry};
use crate::timeline;
use crate::workers::{Arrivals, Departure};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_core::Event;
use tharsis_core::event::Remains;
use tharsis_core::journal::About;
use tharsis_core::lease::ProcessNumber;
use tharsis_object_store::local_socket::{self, SocketError, bind, check_peer, recv_frame, send_frame};
use tharsis_object_store::{Arena, Channel, Segment};
use tharsis_protos::handshake::{
    Answer, HELLO_BYTES_MAX, Hello, PROTOCOL_VERSION, Question, Role, Subject, Welcome,
};
use tharsis_protos::inventory::Inventory;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::report::{PastRow, Report, STORY_LINE_BYTES_MAX, Story};
use tharsis_types::limits::JOB_WEIGHT_MAX;
use tharsis_types::{BadQuota, ClientId, Failure, FailureKind, JobId, JobTerms, NodeId};

/// The longest time that a client may take for its part of the handshake.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// The longest time that the keeper of a worker that has ended may take to report it: the keeper waits for
/// the last output.
const KEEPER_WAIT: Duration = Duration::from_secs(1);
/// Between two reports of the progress of a drain.
const PROGRESS_PAUSE: Duration = Duration::from_millis(5);
/// The longest time that the loop may take to answer an observer.
const REPORT_WAIT: Duration = Duration::from_secs(5);

/// Assigns ids to jobs; in a cluster, the control store does.
pub type RegisterJob = Arc<dyn Fn(&NewJob) -> Result<JobId, Failure> + Send + Sync>;

/// Called when the driver of a job is gone.
pub type FinishJob = Arc<dyn Fn(JobId) + Send + Sync>;

/// A job that a driver wants to start.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its name; may be empty.
    pub name: String,
    /// Namespace of names.
    pub namespace: String,
    /// Its program.
    pub executable: Executable,
    /// Its share and its bounds.
    pub terms: JobTerms,
}

/// State that the socket's threads share.
pub struct ClientAcceptor {
    /// The node.
    pub node: NodeId,
    /// Its arena.
    pub arena: Arc<Arena>,
    /// The queue into the loop.
    pub inbox: Arc<Inbox>,
    /// Places on the board, client ids, jobs.
    pub registry: Arc<Registry>,
    /// Name of the segment with the board.
    pub board_segment: String,
    /// Assigns ids to jobs.
    pub register_job: RegisterJob,
    /// Called when a driver is gone.
    pub finish_job: FinishJob,
    /// Matches workers with their starts; none if the node starts no processes.
    pub arrivals: Option<Arrivals>,
    /// Begins to drain the node, and knows whether that has begun.
    pub drain: Arc<Drain>,
    /// Output of the workers.
    pub logs: Logs,
    /// Answers questions about names of actors.
    pub names: Names,
}

/// The socket's thread.
pub struct LocalSocket {
    path: PathBuf,
    listener: UnixListener,
    stopping: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LocalSocket {
    /// Binds the socket and starts to listen.
    ///
    /// # Errors
    /// The failure if it cannot be bound.
    pub fn start(path: &Path, acceptor: ClientAcceptor) -> Result<Self, Failure> {
        let refuse = |kind, cause: String| Failure::new(kind, format!("socket {}: {cause}", path.display()));
        let cannot = |cause: String| refuse(FailureKind::InvalidArgument, cause);
        let folder = folder_of(path);
        close_folder(folder).map_err(|cause| cannot(format!("its folder: {cause}")))?;
        let listener = bind(path).map_err(|cause| match cause {
            SocketError::InUse => refuse(FailureKind::InUse, cause.to_string()),
            _ => cannot(cause.to_string()),
        })?;
        mark(folder);
        let own = listener.try_clone().map_err(|cause| cannot(cause.to_string()))?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = std::thread::Builder::new()
            .name("local-socket".into())
            .spawn(move || accept(&listener, &Arc::new(acceptor), &stop))
            .map_err(|cause| cannot(cause.to_string()))?;
        Ok(Self { path: path.to_owned(), listener: own, stopping, thread: Mutex::new(Some(thread)) })
    }

    /// Stops listening and removes the socket.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        // Wakes the thread from its accept, even if the socket's file is gone already.
        let _woken = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = crate::registry::lock(&self.thread).take() {
            let _joined = thread.join();
        }
        let _removed = std::fs::remove_file(&self.path);
    }
}

/// Refuses a path at which no node could listen, as far as that shows without making anything. It does not
/// look who listens there.
///
/// # Errors
/// The reason.
pub fn check_place(path: &Path) -> Result<(), SocketError> {
    match local_socket::check_place(path) {
        Err(SocketError::OpenDirectory { .. }) if is_to_be_closed(folder_of(path)) => Ok(()),
        checked => checked,
    }
}

fn folder_of(socket: &Path) -> &Path {
    socket.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Closes the folder of a socket if a volume has opened it.
fn close_folder(folder: &Path) -> std::io::Result<()> {
    match File::open(folder) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(()),
        opened => close_to_group(&opened?, folder),
    }
}

fn accept(listener: &UnixListener, acceptor: &Arc<ClientAcceptor>, stop: &AtomicBool) {
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors: connected clients go on, new ones wait.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let acceptor = Arc::clone(acceptor);
        let name = "client".to_owned();
        // The thread ends with the client's socket.
        let _detached = std::thread::Builder::new().name(name).stack_size(256 << 10).spawn(move || {
            match acceptor.receive(&stream) {
                Ok(()) => {}
                // It came while the node ended: that is nobody's mistake.
                Err(problem) if acceptor.inbox.is_closed() => {
                    tracing::debug!(%problem, "a client came too late");
                }
                Err(problem) => tracing::warn!(%problem, "a client was refused"),
            }
        });
    }
}

impl ClientAcceptor {
    fn receive(&self, stream: &UnixStream) -> Result<(), String> {
        let peer = check_peer(stream).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(HANDSHAKE_WAIT)).map_err(|e| e.to_string())?;
        stream.set_write_timeout(Some(HANDSHAKE_WAIT)).map_err(|e| e.to_string())?;
        let (frame, program) = match recv_frame(stream, HELLO_BYTES_MAX) {
            Ok(received) => received,
            // It only looked whether somebody listens here.
            Err(SocketError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let hello = match hello::read(&frame) {
            Ok(hello) => hello,
            // Not one of our clients: it gets no answer.
            Err(Unread::NoHello(cause)) => return Err(format!("the first frame is not a hello: {cause}")),
            Err(Unread::OtherVersion(version)) => {
                let text =
                    format!("the client speaks protocol {version}, this node speaks {PROTOCOL_VERSION}");
                return refuse(stream, Failure::new(FailureKind::VersionMismatch, text));
            }
        };
        match hello.role {
            Role::Observer(question) => self.answer(stream, question),
            Role::SharedProcess { number } => {
                let functions = function_table(&hello.functions);
                let process = ProcessNumber(number);
                let begun = self.arrivals().and_then(|a| a.begin(process, peer.process_id, functions));
                match begun {
                    Ok(starts) => {
                        starts.iter().try_for_each(|start| send(stream, &Answer::Begin(start), None))
                    }
                    Err(failure) => refuse(stream, failure),
                }
            }
            Role::Driver { .. } | Role::Worker { .. } => {
                match self.admit(stream, hello, program, peer.process_id) {
                    Ok(admitted) => {
                        self.watch(stream, &admitted);
                        Ok(())
                    }
                    Err(failure) => refuse(stream, failure),
                }
            }
        }
    }

    /// The part that knows the starts of workers.
    fn arrivals(&self) -> Result<&Arrivals, Failure> {
        let no_workers =
            || Failure::new(FailureKind::InvalidArgument, "this node starts no worker processes");
        self.arrivals.as_ref().ok_or_else(no_workers)
    }

    fn answer(&self, stream: &UnixStream, question: Question) -> Result<(), String> {
        let report = match question {
            Question::Memory => return self.answer_inventory(stream),
            Question::Status => self.report()?,
            Question::Why(subject) => return self.answer_why(stream, subject),
            Question::Drain { within_ms } => return self.answer_drain(stream, within_ms),
            Question::Logs(query) => {
                self.logs.each(query, |lines| send(stream, &Answer::Lines(lines), None).is_ok());
                return send(stream, &Answer::LinesEnd, None);
            }
            Question::Runs(query) => {
                timeline::each(&self.inbox, query, |batch| send(stream, &Answer::Runs(batch), None).is_ok());
                return Ok(());
            }
            Question::List(listing) => return self.answer_list(stream, listing),
            Question::Name(question) => {
                return match (self.names)(question) {
                    Ok(named) => send(stream, &Answer::Named(named), None),
                    Err(failure) => refuse(stream, failure),
                };
            }
            Question::Stop => {
                let report = self.report()?;
                self.inbox.put(Input::Stop);
                report
            }
        };
        send(stream, &Answer::Report(Box::new(report)), None)
    }

    /// Begins to drain the node, and tells how far that is until the node ends.
    fn answer_drain(&self, stream: &UnixStream, within_ms: u64) -> Result<(), String> {
        let mut progress = match self.drain.begin(Duration::from_millis(within_ms)) {
            Ok(progress) => progress,
            Err(failure) => return refuse(stream, failure),
        };
        loop {
            let row = progress.borrow_and_update().unwrap_or_default();
            send(stream, &Answer::Draining(Box::new(row)), None)?;
            if row.is_over {
                return Ok(());
            }
            std::thread::sleep(PROGRESS_PAUSE);
        }
    }

    fn answer_inventory(&self, stream: &UnixStream) -> Result<(), String> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(Input::Inventory { reply });
        let mut inventory = await_answer(&answer)?;
        let encode = |inventory: &Inventory| {
            postcard::to_stdvec(&Answer::Inventory(Box::new(inventory.clone()))).unwrap_or_default()
        };
        let frame = inventory.fit(HELLO_BYTES_MAX, encode);
        send_frame(stream, &frame, HELLO_BYTES_MAX, None).map_err(|e| e.to_string())
    }

    fn answer_list(&self, stream: &UnixStream, listing: Listing) -> Result<(), String> {
        if let Err(failure) = lists::check(&listing) {
            return refuse(stream, failure);
        }
        let (reply, answer) = sync_channel(1);
        self.inbox.put(Input::List { listing, reply });
        let mut table = await_answer(&answer)?;
        let encode =
            |table: &Table| postcard::to_stdvec(&Answer::Table(Box::new(table.clone()))).unwrap_or_default();
        let frame = table.fit(HELLO_BYTES_MAX, encode);
        send_frame(stream, &frame, HELLO_BYTES_MAX, None).map_err(|e| e.to_string())
    }

    fn answer_why(&self, stream: &UnixStream, subject: Subject) -> Result<(), String> {
        let (reply, answer) = sync_channel(1);
        let about = match subject {
            Subject::Object(object) => About::Object(object),
            Subject::Task(task) => About::Task(task),
        };
        self.inbox.put(Input::Story { about, reply });
        let told = await_answer(&answer)?.unwrap_or_default();
        let cut = |line: &String| line[..line.floor_char_boundary(STORY_LINE_BYTES_MAX)].to_owned();
        let past = told.past.iter().map(|past| PastRow { ago_ns: past.ago, what: cut(&past.what) });
        let story = Story {
            node: self.node.0,
            pid: std::process::id(),
            present: told.present.iter().map(cut).collect(),
            past: past.collect(),
        };
        send(stream, &Answer::Story(Box::new(story)), None)
    }

    fn report(&self) -> Result<Report, String> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(Input::Report { reply });
        await_answer(&answer)
    }

    fn admit(
        &self,
        stream: &UnixStream,
        hello: Hello,
        program: Option<OwnedFd>,
        pid: u32,
    ) -> Result<Admitted, Failure> {
        let client = self.registry.new_client();
        let (facts, event, kind) = self.introduce(client, hello, program, pid)?;
        let (job, is_driver) = (facts.job, kind == Kind::Driver);
        let connected = self.connect(client, kind, facts, stream);
        let (index, port, segment) = connected.inspect_err(|failure| {
            if is_driver {
                self.end_job(job);
            } else if let Some(arrivals) = &self.arrivals {
                arrivals.refused(client, failure);
            }
        })?;
        self.inbox.put(Input::Connected { index, port: Box::new(port), event });
        Ok(Admitted { client, is_driver, segment })
    }

    /// Ends a job whose driver is gone, or could not be connected.
    fn end_job(&self, job: JobId) {
        self.registry.remove_job(job);
        (self.finish_job)(job);
    }

    /// Finds out the role and the job of a client.
    fn introduce(
        &self,
        client: ClientId,
        hello: Hello,
        program: Option<OwnedFd>,
        pid: u32,
    ) -> Result<(Facts, Event, Kind), Failure> {
        match hello.role {
            Role::Driver { .. } if self.drain.has_begun() => {
                let text = format!("node {} drains: it takes no new jobs", self.node);
                Err(Failure::new(FailureKind::Shutdown, text))
            }
            Role::Driver { job_name, namespace, executable, weight, quota } => {
                if let Some(arrivals) = &self.arrivals {
                    arrivals.check_driver(pid)?;
                }
                let bad = |bad: BadQuota| Failure::new(FailureKind::InvalidArgument, bad.to_string());
                quota.as_ref().map_or(Ok(()), |quota| quota.check().map_err(bad))?;
                let program = program.ok_or_else(|| {
                    let text = "the hello of a driver came without the descriptor of its program";
                    Failure::new(FailureKind::InvalidArgument, text)
                })?;
                let executable = Executable::new(program.into(), PathBuf::from(executable));
                let terms = JobTerms { weight: weight.clamp(1, JOB_WEIGHT_MAX), quota };
                let new = NewJob { name: job_name, namespace, executable, terms };
                let job = (self.register_job)(&new)?;
                let functions = function_table(&hello.functions);
                let NewJob { name, namespace, executable, terms: JobTerms { weight, quota } } = new;
                self.registry.add_job(job, Job { executable, name, namespace, functions: hello.functions });
                let joined = Event::DriverJoined { client, job, weight, quota };
                Ok((Facts { job, functions, pid }, joined, Kind::Driver))
            }
            Role::Worker { start } => {
                let arrivals = self.arrivals()?;
                let job = arrivals.arrived(start, pid, client)?;
                let (functions, kind) = match arrivals.functions_of(start) {
                    Some(of_process) => (of_process, Kind::Thread),
                    None => (function_table(&hello.functions), Kind::Process),
                };
                Ok((Facts { job, functions, pid }, Event::WorkerReady { start, client }, kind))
            }
            Role::Observer(_) | Role::SharedProcess { .. } => {
                Err(Failure::new(FailureKind::Internal, "it takes no part in the work"))
            }
        }
    }

    fn connect(
        &self,
        client: ClientId,
        kind: Kind,
        facts: Facts,
        stream: &UnixStream,
    ) -> Result<(usize, Port, Arc<Segment>), Failure> {
        let cannot =
            |what: &str, cause: String| Failure::new(FailureKind::StoreFull, format!("{what}: {cause}"));
        let bytes = if kind == Kind::Thread { Channel::SMALL_BYTES } else { Channel::BYTES };
        let segment =
            Segment::create("ring", bytes).map_err(|e| cannot("rings for a client", e.to_string()))?;
        let segment = Arc::new(segment);
        let channel =
            Channel::node_side(&segment).map_err(|e| cannot("rings for a client", e.to_string()))?;
        let full = || Failure::new(FailureKind::InvalidArgument, "the node has as many clients as it can");
        let index = self.registry.take_index().ok_or_else(full)?;
        let welcome = Welcome {
            client,
            node: self.node,
            job: facts.job,
            ring_segment: segment.name().to_owned(),
            board_segment: self.board_segment.clone(),
            board_index: index as u32,
            arena_bytes: self.arena.len(),
            annex_bytes: self.arena.annex_len(),
            gpus: self.arrivals.as_ref().map(|arrivals| arrivals.gpus_of(client)).unwrap_or_default(),
        };
        let sent = send(stream, &Answer::Welcome(welcome), Some(&self.arena));
        // A frame carries one descriptor, so that of the annex comes with an empty frame.
        let sent = sent.and_then(|()| match self.arena.annex_fd() {
            Some(annex) => send_frame(stream, &[], 0, Some(annex)).map_err(|e| e.to_string()),
            None => Ok(()),
        });
        // The client confirms with an empty frame that it has mapped everything; then the name is removed.
        let mapped = sent.and_then(|()| recv_frame(stream, 0).map_err(|e| e.to_string()));
        let _gone = segment.unlink();
        if let Err(cause) = mapped {
            self.registry.release_index(index);
            return Err(cannot("the client did not map its rings", cause));
        }
        let is_driver = kind == Kind::Driver;
        Ok((index, Port::new(client, is_driver, facts, channel, Arc::clone(&segment)), segment))
    }

    /// Sleeps until the client's socket ends.
    fn watch(&self, mut stream: &UnixStream, admitted: &Admitted) {
        let _set = stream.set_read_timeout(None);
        let mut byte = [0];
        // A thread that was a worker says with a byte that it has ended; a process that dies says nothing.
        let mut is_orderly = false;
        while matches!(stream.read(&mut byte), Ok(1)) {
            is_orderly = true;
        }
        let _keeps_mapping = &admitted.segment;
        if let Some(arrivals) = self.arrivals.as_ref().filter(|_| !admitted.is_driver) {
            match arrivals.left(admitted.client, is_orderly) {
                Departure::Killed => return,
                // Its keeper has the reason and reports it first, unless it did so before the loop knew the
                // client.
                Departure::Reported => std::thread::sleep(KEEPER_WAIT),
                Departure::Thread => {}
            }
        }
        let gone = |remains| {
            let failure = Arc::new(Failure::new(FailureKind::Disconnected, "the client closed its socket"));
            self.inbox.put(Input::Event(Event::ClientGone { client: admitted.client, remains, failure }));
        };
        if !local_socket::is_hung_up(stream) {
            // The client closed its half: something in its process still reads values.
            gone(Remains::Memory);
            local_socket::await_hang_up(stream);
        }
        gone(Remains::Nothing);
    }
}

/// A client as its rings depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Driver,
    /// A worker with a process of its own.
    Process,
    /// A worker that shares its process.
    Thread,
}

struct Admitted {
    client: ClientId,
    is_driver: bool,
    segment: Arc<Segment>,
}

/// Waits for the loop's answer to an observer.
fn await_answer<T>(answer: &Receiver<T>) -> Result<T, String> {
    let words = |silent| match silent {
        RecvTimeoutError::Timeout => "the node is too busy to answer",
        RecvTimeoutError::Disconnected => "the node has ended",
    };
    answer.recv_timeout(REPORT_WAIT).map_err(|silent| words(silent).to_owned())
}

fn refuse(stream: &UnixStream, failure: Failure) -> Result<(), String> {
    let problem = failure.to_string();
    send(stream, &Answer::Refused(failure), None)?;
    Err(problem)
}

fn send(stream: &UnixStream, answer: &Answer, arena: Option<&Arena>) -> Result<(), String> {
    let frame = postcard::to_stdvec(answer).map_err(|e| e.to_string())?;
    send_frame(stream, &frame, HELLO_BYTES_MAX, arena.map(Arena::fd)).map_err(|e| e.to_string())
}
