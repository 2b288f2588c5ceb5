//! Assembly and end of a node.

use crate::annex::Blocks;
use crate::cluster::{Cluster, ClusterHandle, ClusterOptions, JoiningNode};
use crate::drain::Drain;
use crate::effects::Effects;
use crate::embedded::{Embedded, Shared, connect_embedded};
use crate::engine::Engine;
use crate::gpus::GpuNames;
use crate::inbox::{Inbox, Input};
use crate::lists;
use crate::local::{ClientAcceptor, FinishJob, LocalSocket, NewJob};
use crate::logbook::LogBook;
use crate::logs::Logs;
use crate::names::{Names, OwnNames, own_names};
use crate::observe::{Collector, Observation};
use crate::port::EmbeddedPart;
use crate::pressure::{MemoryLimits, MemoryWatch, Roster, Watched, protect_node};
use crate::registry::Registry;
use crate::spill::{Spill, SpillChoice};
use crate::workers::{Processes, Starting, Workforce};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_core::event::Member;
use tharsis_core::node::Config;
use tharsis_core::{Node, Now};
use tharsis_object_store::bell::BELL_BOARD_BYTES;
use tharsis_object_store::{Arena, BellBoard, Segment, SpillSet, StoreError, segment};
use tharsis_protos::handshake::FunctionEntry;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::report::Report;
use tharsis_types::{Failure, FailureKind, JobId, NodeId, Resources};

/// The time for which a client waits for room in a full store.
const CREATE_TIMEOUT: Now = 10_000 * tharsis_core::MS;

/// Objects of this size and above are read from other nodes in a tree: below it, asking takes about as long
/// as reading.
const RELAY_BYTES_MIN: u64 = 1 << 20;

/// The options of a node, wherever it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeOptions {
    /// Its resources.
    pub resources: Resources,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Bytes of its arena.
    pub store_bytes: u64,
    /// Its spill directories and thresholds.
    pub spill: SpillChoice,
    /// Bytes that the node and its workers may use, the arena included; 0 for the memory of the machine. A
    /// worker is killed when they are used up. Without effect in an embedded node, whose workers are threads.
    pub memory_limit_bytes: u64,
    /// Bytes from which nothing new is started, of those that the limit counts; 0 for none.
    pub memory_soft_limit_bytes: u64,
    /// Bytes of the machine's memory that are left to others: as if the machine had so much less.
    pub min_free_bytes: u64,
    /// Bytes for the calls of finished tasks, which are kept so that lost values can be computed again; 0 for
    /// none.
    pub lineage_bytes: usize,
    /// Unfinished tasks that one job may have here before the calls of its driver wait.
    pub queued_tasks_max: usize,
    /// Maximum number of nodes of a cluster in which every node deals with every other one; nearly always
    /// [`SMALL_CLUSTER_MAX`](tharsis_types::limits::SMALL_CLUSTER_MAX).
    pub small_cluster_max: usize,
    /// The longest time that a worker process may take until it says hello; then it is killed.
    pub worker_start_timeout: Duration,
}

/// Functions that the program of a node provides.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Makes a collector of traces when a node starts; `None` where nothing is collected.
    pub collector: fn() -> Option<Box<dyn Collector>>,
    /// Makes the allocator return freed memory to the system.
    pub give_back_memory: fn(),
}

impl Default for Program {
    /// Nothing is collected, and the allocator keeps its own policy.
    fn default() -> Self {
        Self { collector: || None, give_back_memory: || {} }
    }
}

/// A running node.
pub struct NodeHandle {
    id: NodeId,
    inbox: Arc<Inbox>,
    board: BellBoard,
    board_segment: Arc<Segment>,
    arena: Arc<Arena>,
    registry: Arc<Registry>,
    names: Names,
    drain: Arc<Drain>,
    log: Option<Arc<LogBook>>,
    socket: Option<LocalSocket>,
    cluster_handle: Option<ClusterHandle>,
    engine: Mutex<Option<JoinHandle<()>>>,
}

/// A random id for a node, different for every start.
///
/// # Errors
/// If the system gives no randomness.
pub fn new_node_id() -> Result<NodeId, Failure> {
    let mut bytes = [0; 8];
    let read =
        std::fs::File::open("/dev/urandom").and_then(|mut f| std::io::Read::read_exact(&mut f, &mut bytes));
    read.map_err(|cause| Failure::new(FailureKind::Internal, format!("/dev/urandom: {cause}")))?;
    Ok(NodeId(u64::from_le_bytes(bytes).max(1)))
}

/// An arena, with an annex in a spill directory where that is possible: without one, large values are
/// refused.
fn make_arena(bytes: u64, spill: Option<&SpillSet>) -> Result<Arena, StoreError> {
    let no_annex = |error: StoreError| tracing::warn!(%error, "values larger than the store are refused");
    let annex = spill.and_then(|set| set.annex().map_err(no_annex).ok()?);
    if annex.is_some() {
        match Arena::with_annex(bytes, annex) {
            Ok(arena) => return Ok(arena),
            Err(error) => no_annex(error),
        }
    }
    Arena::create(bytes)
}

/// The parts of a node before its loop runs.
pub(crate) struct Parts {
    id: NodeId,
    node: Node,
    arena: Arc<Arena>,
    board: BellBoard,
    board_segment: Arc<Segment>,
    inbox: Arc<Inbox>,
    registry: Arc<Registry>,
    own_names: Arc<OwnNames>,
    drain: Arc<Drain>,
    log: Option<Arc<LogBook>>,
    spill: Option<Arc<Spill>>,
    program: Program,
    memory_limits: MemoryLimits,
    memory_watch: Option<MemoryWatch>,
}

impl Parts {
    /// Memory and machine of a node; `shared` makes the board visible to other processes.
    pub(crate) fn new(
        id: NodeId,
        options: NodeOptions,
        program: Program,
        shared: bool,
    ) -> Result<Self, Failure> {
        let no_memory = |cause: String| Failure::new(FailureKind::ResourceExhausted, cause);
        if shared {
            // Remove the segments of nodes that were killed. A failure here does not prevent the start.
            let _swept = segment::sweep();
        }
        let spill = Spill::open(&options.spill)?;
        let arena = make_arena(options.store_bytes, spill.as_ref());
        let arena =
            Arc::new(arena.map_err(|e| no_memory(format!("store of {} bytes: {e}", options.store_bytes)))?);
        let made = if shared {
            Segment::create("board", BELL_BOARD_BYTES)
        } else {
            Segment::anonymous(BELL_BOARD_BYTES)
        };
        let board_segment = Arc::new(made.map_err(|e| no_memory(e.to_string()))?);
        let board = BellBoard::at(&board_segment, 0).map_err(|e| no_memory(e.to_string()))?;
        let inbox = Arc::new(Inbox::new(board.clone()));
        let member = Member { node: id, resources: options.resources, labels: options.labels };
        let spill = spill.map(|set| Arc::new(Spill::new(set, id, &arena, &inbox)));
        let percent = |percent: u8| arena.len() / 100 * u64::from(percent);
        let config = Config {
            member,
            store_bytes: arena.len(),
            annex_bytes: arena.annex_len(),
            create_timeout: CREATE_TIMEOUT,
            can_spill: spill.is_some(),
            high_water_bytes: percent(options.spill.high_water_percent),
            low_water_bytes: percent(options.spill.low_water_percent),
            relay_bytes_min: RELAY_BYTES_MIN,
            lineage_bytes_max: options.lineage_bytes,
            queued_tasks_max: options.queued_tasks_max,
            small_cluster_max: options.small_cluster_max,
        };
        let registry = Arc::new(Registry::new());
        Ok(Self {
            id,
            node: Node::new(config),
            arena,
            board,
            board_segment,
            drain: Arc::new(Drain::new(id, Arc::clone(&inbox))),
            inbox,
            log: None,
            registry,
            own_names: Arc::default(),
            spill,
            program,
            memory_limits: MemoryLimits {
                limit_bytes: options.memory_limit_bytes,
                soft_limit_bytes: options.memory_soft_limit_bytes,
                min_free_bytes: options.min_free_bytes,
            },
            memory_watch: None,
        })
    }

    /// Begins the log of the workers, beside the node's socket.
    fn keep_log(&mut self, socket: &Path) -> Result<Arc<LogBook>, Failure> {
        let folder = socket.parent().unwrap_or(Path::new(".")).join("logs").join(self.id.to_string());
        let failed = |cause| {
            let text = format!("folder {} for the output of workers: {cause}", folder.display());
            Failure::new(FailureKind::InvalidArgument, text)
        };
        let log = Arc::new(LogBook::open(folder.clone()).map_err(failed)?);
        self.log = Some(Arc::clone(&log));
        Ok(log)
    }

    /// Starts to read the memory of worker processes, and protects the node's own process.
    fn watch_memory(&mut self, roster: Roster) -> Result<(), Failure> {
        protect_node();
        let (arena, inbox) = (Arc::clone(&self.arena), Arc::clone(&self.inbox));
        let watch = MemoryWatch::start(Watched { limits: self.memory_limits, arena, roster, inbox });
        let no_thread = |cause| Failure::new(FailureKind::Internal, format!("no thread: {cause}"));
        self.memory_watch = Some(watch.map_err(no_thread)?);
        Ok(())
    }

    fn shared(&self) -> Shared {
        Shared {
            id: self.id,
            inbox: Arc::clone(&self.inbox),
            board: self.board.clone(),
            arena: Arc::clone(&self.arena),
            registry: Arc::clone(&self.registry),
            names: self.own_names(),
        }
    }

    /// Answers questions about names for a node without a control store.
    fn own_names(&self) -> Names {
        own_names(&self.own_names, &self.registry, &self.inbox)
    }

    fn run(
        self,
        workforce: Box<dyn Workforce>,
        socket: Option<LocalSocket>,
        cluster: Option<(Cluster, ClusterHandle)>,
    ) -> Result<NodeHandle, Failure> {
        let names = self.own_names();
        let (cluster, cluster_handle) = cluster.unzip();
        let finish_job = cluster_handle
            .clone()
            .map(|handle: ClusterHandle| -> FinishJob { Arc::new(move |job| handle.finish_job(job)) });
        let no_thread = |cause| Failure::new(FailureKind::Internal, format!("no thread: {cause}"));
        let blocks = Blocks::start(&self.arena, &self.inbox).map_err(no_thread)?;
        let effects = Effects::new(
            Arc::clone(&self.arena),
            Arc::clone(&self.inbox),
            Arc::clone(&self.registry),
            workforce,
            cluster,
            self.spill,
            self.program.give_back_memory,
        )
        .with_blocks(blocks)
        .watching(self.memory_watch)
        .finishing(finish_job);
        let observation = (self.program.collector)().map(Observation::new);
        let engine = Engine::new(
            self.node,
            self.board.clone(),
            Arc::clone(&self.inbox),
            effects,
            observation,
            Arc::clone(&self.drain),
        );
        let thread = std::thread::Builder::new().name("node".into()).spawn(move || engine.run());
        let thread = thread.map_err(no_thread)?;
        Ok(NodeHandle {
            id: self.id,
            inbox: self.inbox,
            board: self.board,
            board_segment: self.board_segment,
            arena: self.arena,
            registry: self.registry,
            names,
            drain: self.drain,
            log: self.log,
            socket,
            cluster_handle,
            engine: Mutex::new(Some(thread)),
        })
    }
}

impl NodeHandle {
    /// A node inside this process, with the workers of `make_workforce`.
    ///
    /// # Errors
    /// If there is no memory for its store.
    pub fn embedded(
        options: NodeOptions,
        make_workforce: impl FnOnce(Shared) -> Box<dyn Workforce>,
    ) -> Result<Self, Failure> {
        let parts = Parts::new(new_node_id()?, options, Program::default(), false)?;
        let workforce = make_workforce(parts.shared());
        parts.run(workforce, None, None)
    }

    /// A node with worker processes, alone in its cluster, listening on a Unix socket.
    ///
    /// # Errors
    /// If there is no memory for its store or the socket cannot be bound.
    pub fn alone(options: NodeOptions, program: Program, socket: PathBuf) -> Result<Self, Failure> {
        let (timeout, scratch) = (options.worker_start_timeout, options.spill.paths());
        let gpus = GpuNames::of_node(&options.resources)?;
        let mut parts = Parts::new(new_node_id()?, options, program, true)?;
        let registry = Arc::clone(&parts.registry);
        let find_registry = Arc::clone(&registry);
        let find_program = Arc::new(move |job| {
            let job = find_registry.job(job);
            job.map(|j| j.executable)
                .ok_or_else(|| Failure::new(FailureKind::WorkerStartFailed, "the job's program is not here"))
        });
        let log = parts.keep_log(&socket)?;
        let (socket_path, kept) = (socket.clone(), Arc::clone(&log));
        let starting = Starting { socket: socket_path, find_program, timeout, log: kept, scratch, gpus };
        let workforce = Processes::new(Arc::clone(&parts.inbox), starting);
        let register_job = {
            let registry = Arc::clone(&registry);
            Arc::new(move |_new: &NewJob| Ok(registry.new_job()))
        };
        let acceptor = ClientAcceptor {
            node: parts.id,
            arena: Arc::clone(&parts.arena),
            inbox: Arc::clone(&parts.inbox),
            registry,
            board_segment: parts.board_segment.name().to_owned(),
            register_job,
            finish_job: Arc::new(|_job| {}),
            arrivals: Some(workforce.arrivals()),
            drain: Arc::clone(&parts.drain),
            logs: Logs::new(log, Arc::clone(&parts.inbox)),
            names: parts.own_names(),
        };
        parts.watch_memory(workforce.roster())?;
        let listening = LocalSocket::start(&socket, acceptor)?;
        parts.run(Box::new(workforce), Some(listening), None)
    }

    /// A node with worker processes that is part of a cluster, listening on a Unix socket and a port.
    ///
    /// # Errors
    /// As [`NodeHandle::alone`] and `Cluster::start`.
    pub fn clustered(
        options: NodeOptions,
        program: Program,
        cluster: ClusterOptions,
    ) -> Result<Self, Failure> {
        let member = Member {
            node: new_node_id()?,
            resources: options.resources.clone(),
            labels: options.labels.clone(),
        };
        let (timeout, small_cluster_max) = (options.worker_start_timeout, options.small_cluster_max);
        let (scratch, gpus) = (options.spill.paths(), GpuNames::of_node(&options.resources)?);
        let mut parts = Parts::new(member.node, options, program, true)?;
        let socket = cluster.socket.clone();
        let log = parts.keep_log(&socket)?;
        let joining = JoiningNode {
            member,
            arena: Arc::clone(&parts.arena),
            inbox: Arc::clone(&parts.inbox),
            spill: parts.spill.clone(),
            small_cluster_max,
            drain: Arc::clone(&parts.drain),
            logs: Logs::new(Arc::clone(&log), Arc::clone(&parts.inbox)),
        };
        let (cluster, cluster_handle) = Cluster::start(joining, cluster)?;
        let find_program = {
            let (registry, cluster_handle) = (Arc::clone(&parts.registry), cluster_handle.clone());
            Arc::new(move |job| cluster_handle.find_program(&registry, job))
        };
        let (socket_path, kept) = (socket.clone(), Arc::clone(&log));
        let starting = Starting { socket: socket_path, find_program, timeout, log: kept, scratch, gpus };
        let workforce = Processes::new(Arc::clone(&parts.inbox), starting);
        let (registering, finishing) = (cluster_handle.clone(), cluster_handle.clone());
        let naming = cluster_handle.clone();
        let acceptor = ClientAcceptor {
            node: parts.id,
            arena: Arc::clone(&parts.arena),
            inbox: Arc::clone(&parts.inbox),
            registry: Arc::clone(&parts.registry),
            board_segment: parts.board_segment.name().to_owned(),
            register_job: Arc::new(move |new: &NewJob| registering.register_job(new)),
            finish_job: Arc::new(move |job| finishing.finish_job(job)),
            arrivals: Some(workforce.arrivals()),
            drain: Arc::clone(&parts.drain),
            logs: Logs::new(log, Arc::clone(&parts.inbox)),
            names: Arc::new(move |question| naming.name(question)),
        };
        if let Err(failure) = parts.watch_memory(workforce.roster()) {
            cluster.stop();
            return Err(failure);
        }
        match LocalSocket::start(&socket, acceptor) {
            Ok(listening) => parts.run(Box::new(workforce), Some(listening), Some((cluster, cluster_handle))),
            Err(failure) => {
                cluster.stop();
                Err(failure)
            }
        }
    }

    /// The id of the node in its cluster.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The reason why it ended itself, if its cluster declared it dead.
    #[must_use]
    pub fn fenced(&self) -> Option<String> {
        self.cluster_handle.as_ref().and_then(ClusterHandle::fenced)
    }

    /// The arena that holds the objects of the node.
    #[must_use]
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// A number for a job, for drivers in this process.
    #[must_use]
    pub fn new_job(&self) -> JobId {
        self.registry.new_job()
    }

    /// Connects a client that lives in this process.
    ///
    /// # Errors
    /// If there is no memory for its rings, or no place for it.
    pub fn connect(
        &self,
        job: JobId,
        part: EmbeddedPart,
        functions: &[FunctionEntry],
    ) -> Result<Embedded, Failure> {
        connect_embedded(&self.shared(), job, part, functions)
    }

    /// Settings that worker threads need to connect.
    #[must_use]
    pub fn shared(&self) -> Shared {
        Shared {
            id: self.id,
            inbox: Arc::clone(&self.inbox),
            board: self.board.clone(),
            arena: Arc::clone(&self.arena),
            registry: Arc::clone(&self.registry),
            names: Arc::clone(&self.names),
        }
    }

    /// State of the node.
    ///
    /// # Errors
    /// If the loop does not answer in time.
    pub fn report(&self) -> Result<Report, Failure> {
        self.ask(|reply| Input::Report { reply })
    }

    /// A list of what the node has.
    ///
    /// # Errors
    /// `InvalidArgument` for a filter of a column that does not exist; if the loop does not answer in time.
    pub fn list(&self, listing: Listing) -> Result<Table, Failure> {
        lists::check(&listing)?;
        self.ask(|reply| Input::List { listing, reply })
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Input) -> Result<T, Failure> {
        let (reply, answer) = sync_channel(1);
        self.inbox.put(question(reply));
        let silent = |_| Failure::new(FailureKind::Disconnected, "the node does not answer");
        answer.recv_timeout(Duration::from_secs(5)).map_err(silent)
    }

    /// Waits until the loop has ended.
    pub fn join(&self) {
        if let Some(thread) = crate::registry::lock(&self.engine).take() {
            let _joined = thread.join();
        }
        if let Some(socket) = &self.socket {
            socket.stop();
        }
        if let Some(log) = &self.log {
            log.remove();
        }
        // The name of the segment must not stay, even if a thread still holds this node when the process
        // ends.
        let _gone = self.board_segment.unlink();
    }

    /// Begins to drain: the node takes no new work, and ends when nothing is left here, or after `within`.
    /// Does not wait.
    ///
    /// # Errors
    /// `InUse` if it drains already.
    pub fn drain(&self, within: Duration) -> Result<(), Failure> {
        self.drain.begin(within).map(drop)
    }

    /// Ends the loop, the workers and the socket.
    pub fn stop(&self) {
        self.inbox.put(Input::Stop);
        self.join();
    }
}
