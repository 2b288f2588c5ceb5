//! Other nodes: one port, one stream of messages per pair, transfers, membership, programs.
//!
//! ```text
//!            loop (engine, effects)             other threads                     the runtime's thread
//! send       Cluster::send ------------------------------------------------------> links: queue, stream
//! receive    inbox <-------------------------------------------------------------- links
//! pull       Cluster::pull -------------------> pulls (at most 8) <--- transfer port of the other node
//! serve      inbox: pin, unpin <--------------- senders (one per connection) <---- listen: first byte
//! members    inbox: joined, left <------------------------------------------------ members: lease, watch
//! programs   workers: find_program -----------> code: hash, publish, fetch ------> control store
//! ```
//!
//! | read | for |
//! |---|---|
//! | [`members`] | who is in the cluster, and when this node must end itself |
//! | [`isolation`] | whether it reaches anybody, and so may start work of others |
//! | [`links`], [`tharsis_protos::peer::wire`] | messages of the machines |
//! | [`listen`], [`places`], [`pulls`], [`reads`] | object bytes |
//! | [`code`] | the programs of jobs |
//! | [`identity`], [`secret`] | how members know each other |
//!
//! # Invariants
//! 1. The loop never waits for anything here, and no lock here is held across a wait.
//! 2. A packet is passed on only if it comes from the member that the stream belongs to.
//! 3. Nobody is declared dead but by the control store, and not by its absence. No job is ended here by a
//!    node that is not that of its driver.
//! 4. Nothing is read from a connection, and nothing sent on one, before both ends have proved that they are
//!    of the cluster (`tharsis_protos::connection`). Beyond loopback that takes certificates ([`identity`]).

mod addresses;
pub mod code;
mod ends;
pub mod identity;
mod incoming;
pub mod isolation;
mod joining;
pub mod links;
pub mod listen;
pub mod members;
mod names;
mod neighbours;
mod noted;
mod outbox;
mod own_folder;
mod own_program;
pub mod places;
mod proved;
pub mod pulls;
pub mod reads;
pub mod runtime;
pub mod secret;
mod waiting;

use crate::drain::Drain;
use crate::executable::Executable;
use crate::inbox::Inbox;
use crate::local::NewJob;
use crate::logs::Logs;
use crate::metrics::Scraped;
use crate::registry::{Registry, lock};
use crate::spill::Spill;
use crate::submissions::{Place, Submissions};
use addresses::{listen_on, own_address};
use code::Code;
pub(crate) use ends::Ends;
use identity::Entry;
use isolation::Isolation;
use joining::{begin_if_head, client_of, heard_revoked, known_stores, register};
use links::{Links, Peers};
use listen::{Callers, Senders, serve};
use members::Membership;
use names::{ClaimedNames, Namespaces};
use own_folder::OwnFolder;
use pulls::Pulls;
use reads::Job;
use runtime::Tasks;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_core::event::Member;
use tharsis_gcs::{Control, ControlClient};
use tharsis_object_store::Arena;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::{JobRequest, NodeInfo};
use tharsis_protos::{CallError, RefusalCode, peer};
use tharsis_types::{Failure, FailureKind, JobId, NodeId, peer::Packet};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tonic::service::Routes;

pub use addresses::advertised_address;
pub use identity::{Security, TOKEN_TIME_MAX};
pub use joining::{JOIN_TIME_MAX, kind_of_beginning};
pub use tharsis_gcs::{BackendChoice, EtcdAccess};

/// The longest time that the control store may take for one answer.
const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// The time for which a node that starts waits for a control store that is not there.
const JOIN_PATIENCE: Duration = Duration::from_secs(5);
/// The time for which drivers and workers wait for one.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between attempts to note the end of a job in a control store whose back end is full.
const FULL_PAUSE: Duration = Duration::from_secs(2);
/// Threads on which names are resolved: a name server that does not answer holds one for each lookup for
/// seconds. All else that takes long has threads of its own, or few of these.
const BLOCKING_THREADS_MAX: usize = 32;
/// The longest time that work that cannot be broken off may delay the end.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// A node's part in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The socket for drivers and workers on this machine.
    pub socket: PathBuf,
    /// The address on which it listens; port 0 for a free one. Without certificates it is a loopback address.
    pub listen: SocketAddr,
    /// The host at which other nodes reach it, a name or an address, if it is not that of `listen`; with the
    /// port, if that is another one too. A name is resolved at each connection.
    pub advertised: Option<String>,
    /// Threads for connections, at least one.
    pub network_threads: usize,
    /// The folder of its socket, which other nodes may share. Fetched programs go to a folder of the node's
    /// own in it.
    pub folder: PathBuf,
    /// Means by which the members know each other.
    pub security: Security,
    /// Whether it begins or joins.
    pub role: Role,
}

/// Whether a node begins a cluster or joins one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It serves the control store on its port.
    Head {
        /// Folder or address of the control store's tables.
        store: BackendChoice,
        /// A node that is not heard of for this long is declared dead, in ms.
        lease_ttl_ms: u64,
    },
    /// It joins the cluster whose control stores are at these addresses.
    Member {
        /// Addresses of heads or control stores, `host:port`; at least one.
        heads: Vec<String>,
    },
}

/// The connections to the other nodes.
pub struct Cluster {
    me: NodeId,
    address: String,
    is_head: bool,
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    senders: Arc<Senders>,
    code: Arc<Code>,
    ends: Arc<Ends>,
    control: ControlClient,
    submissions: Arc<Submissions>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Facts about its cluster that the rest of a node needs: jobs, programs, its own standing.
#[derive(Clone)]
pub struct ClusterHandle {
    me: NodeId,
    control: ControlClient,
    tasks: Tasks,
    code: Arc<Code>,
    names: Arc<ClaimedNames>,
    fenced: Arc<Mutex<Option<String>>>,
    namespaces: Arc<Namespaces>,
}

/// A node before it is part of its cluster.
pub(crate) struct JoiningNode {
    pub(crate) member: Member,
    pub(crate) arena: Arc<Arena>,
    pub(crate) inbox: Arc<Inbox>,
    /// The spill directories of it.
    pub(crate) spill: Option<Arc<Spill>>,
    /// Maximum number of nodes of a cluster in which all connections stay open.
    pub(crate) small_cluster_max: usize,
    /// Its drain.
    pub(crate) drain: Arc<Drain>,
    /// Output of its workers.
    pub(crate) logs: Logs,
}

/// Ways of packets, objects and programs between this node and the others.
struct Transport {
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    code: Arc<Code>,
    senders: Arc<Senders>,
}

struct Started {
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    senders: Arc<Senders>,
    submissions: Arc<Submissions>,
    ends: Arc<Ends>,
    cluster_handle: ClusterHandle,
}

impl Cluster {
    /// Listens, begins or finds the control store, and makes the node a member.
    ///
    /// # Errors
    /// `InvalidArgument` for an address that cannot be listened on, `Disconnected` if there is no control
    /// store, `VersionMismatch` if it speaks another protocol.
    pub(crate) fn start(
        joining: JoiningNode,
        options: ClusterOptions,
    ) -> Result<(Self, ClusterHandle), Failure> {
        let listener = listen_on(options.listen, &options.security)?;
        let local = listener.local_addr().map_err(|e| internal(&e.to_string()))?;
        let address = advertised_address(options.advertised.as_deref(), local);
        let me = joining.member.node;
        let (stop, stopped) = oneshot::channel();
        let is_head = matches!(options.role, Role::Head { .. });
        let (reply, answer) = sync_channel(1);
        let own_address = address.clone();
        let thread = std::thread::Builder::new().name("cluster".into()).spawn(move || {
            run(joining, &options, listener, own_address, &reply, stopped);
        });
        let thread = thread.map_err(|e| internal(&e.to_string()))?;
        let ended = || internal("the thread of the cluster has ended");
        match answer.recv().map_err(|_| ended()).and_then(|started| started) {
            Ok(Started { peers, pulls, senders, submissions, ends, cluster_handle }) => {
                let code = Arc::clone(&cluster_handle.code);
                let control = cluster_handle.control.clone();
                let cluster = Self {
                    me,
                    address,
                    is_head,
                    peers,
                    pulls,
                    senders,
                    code,
                    ends,
                    control,
                    submissions,
                    stop,
                    thread,
                };
                Ok((cluster, cluster_handle))
            }
            Err(failure) => {
                let _joined = thread.join();
                Err(failure)
            }
        }
    }

    /// The address at which other nodes reach this one.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address of another member.
    #[must_use]
    pub fn address_of(&self, node: NodeId) -> Option<String> {
        self.peers.get(node).map(|peer| peer.info.listen.clone())
    }

    /// The address of the control store that this node uses.
    #[must_use]
    pub fn control_address(&self) -> String {
        self.control.address()
    }

    /// Whether the control store is served on the node's port.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// Bytes of objects that other nodes were sent so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.senders.sent_bytes()
    }

    /// Bytes of objects that were read from other nodes so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.pulls.received_bytes()
    }

    /// Reads an object from another node.
    pub fn pull(&self, job: Job) {
        self.pulls.start(job);
    }

    /// Sends a packet to another node.
    pub fn send(&self, to: NodeId, packet: &Packet) {
        self.peers.send(to, packet);
    }

    /// Has the control store asked whether a node is a member. Only an answer that it is none comes back.
    pub fn find_member(&self, node: NodeId) {
        self.peers.look_for(node);
    }

    /// Questions about jobs of other nodes' drivers.
    pub(crate) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// A job has ended, wherever its driver was.
    pub fn forget_job(&self, job: JobId) {
        self.code.job_ended(job);
    }

    /// Ends the submitted programs, takes leave and ends all connections.
    pub fn stop(self) {
        tracing::debug!(node = %self.me, "leaving the cluster");
        self.submissions.stop_all();
        // The thread has ended already if nobody takes this.
        let _ended = self.stop.send(());
        self.pulls.stop();
        let _joined = self.thread.join();
        self.senders.stop();
    }
}

impl ClusterHandle {
    /// Makes a job of a driver, with an id that is its own in the whole cluster. Blocks.
    ///
    /// # Errors
    /// `Disconnected` if the control store is away for long, `InvalidArgument` if it refuses.
    pub fn register_job(&self, new: &NewJob) -> Result<JobId, Failure> {
        let (mut request, source) = ([0; 16], std::fs::File::open("/dev/urandom"));
        let random = source.and_then(|mut f| std::io::Read::read_exact(&mut f, &mut request));
        random.map_err(|e| internal(&format!("/dev/urandom: {e}")))?;
        let job = JobRequest {
            name: new.name.clone(),
            namespace: new.namespace.clone(),
            code_unit: None,
            driver_node: self.me,
            entrypoint: new.executable.to_string(),
            request,
            terms: Some(new.terms.clone()),
        };
        let control = self.control.clone();
        let job = self.tasks.ask(async move { control.register_job(&job).await })?;
        let job = job.map_err(|e| refused("the job is not registered", &e))?;
        self.code.job_began(job, new.executable.clone());
        Ok(job)
    }

    /// A driver is gone. Does not wait.
    pub fn finish_job(&self, job: JobId) {
        self.code.job_ended(job);
        let control = self.control.clone();
        self.tasks.start(async move {
            while let Err(error) = control.finish_job(job, true, "").await {
                tracing::info!(%error, job = %job, "the end of a job is not noted");
                // A full store is made room in; all else ends the job with this node.
                if error.refusal_code() != Some(RefusalCode::ResourceExhausted) {
                    return;
                }
                sleep(FULL_PAUSE).await;
            }
        });
    }

    /// The program of a job: where its driver said, or fetched from another node. Blocks.
    ///
    /// # Errors
    /// As [`Code::find`].
    pub fn find_program(&self, registry: &Registry, job: JobId) -> Result<Executable, Failure> {
        match registry.job(job) {
            Some(job) => Ok(job.executable),
            None => self.code.find(job),
        }
    }

    /// Why this node had to end itself, if the cluster declared it dead.
    #[must_use]
    pub fn fenced(&self) -> Option<String> {
        lock(&self.fenced).clone()
    }
}

/// A runtime for connections. One thread is that of the caller.
///
/// # Errors
/// If its threads cannot be started.
pub fn network_runtime(threads: usize) -> std::io::Result<Runtime> {
    let (mut builder, workers) = match threads {
        0 | 1 => (Builder::new_current_thread(), 0),
        _ => (Builder::new_multi_thread(), threads),
    };
    // The workers begin first; later threads are for work that waits.
    let begun = AtomicUsize::new(0);
    let name = move || if begun.fetch_add(1, Relaxed) < workers { "network" } else { "network-waits" };
    builder.worker_threads(threads.max(1)).thread_name_fn(move || name().to_owned()).enable_all();
    builder.max_blocking_threads(BLOCKING_THREADS_MAX).build()
}

/// The life of the cluster's thread.
fn run(
    joining: JoiningNode,
    options: &ClusterOptions,
    listener: std::net::TcpListener,
    address: String,
    reply: &SyncSender<Result<Started, Failure>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match network_runtime(options.network_threads) {
        Ok(runtime) => runtime,
        Err(cause) => {
            let _gone = reply.send(Err(internal(&format!("no runtime: {cause}"))));
            return;
        }
    };
    let programs = match OwnFolder::for_programs(&options.folder, joining.member.node) {
        Ok(programs) => programs,
        Err(failure) => {
            let _gone = reply.send(Err(failure));
            return;
        }
    };
    runtime.block_on(async {
        let joined = timeout(JOIN_TIME_MAX, join(joining, options, programs.path(), listener, address)).await;
        match joined.unwrap_or_else(|_| Err(not_in_time(&options.role))) {
            Ok((started, membership, control)) => {
                let _gone = reply.send(Ok(started));
                tokio::select! {
                    // An error means that the handle is gone: stop as well.
                    _told = stopped => {}
                    () = membership.stay() => {}
                }
                membership.leave().await;
                if let Some(control) = control {
                    control.stop().await;
                }
            }
            Err(failure) => {
                let _gone = reply.send(Err(failure));
            }
        }
    });
    // Ends all tasks, and with them their connections.
    runtime.shutdown_timeout(STOP_WAIT);
}

async fn join(
    joining: JoiningNode,
    options: &ClusterOptions,
    programs: &Path,
    listener: std::net::TcpListener,
    address: String,
) -> Result<(Started, Membership, Option<Control>), Failure> {
    let me = joining.member.node;
    let stores = known_stores(&options.role, &listener)?;
    let own_addresses = vec![address.clone(), own_address(&listener)?.to_string()];
    let Entry { credentials: own, gate, renewal } =
        options.security.enter(me, &options.role, &stores).await?;
    let control = begin_if_head(me, options, &address).await?;
    let gate = control.as_ref().map_or(gate.clone(), |control| control.guard(gate));
    let client = client_of(stores, &own)?;
    let tasks = Tasks::current();
    let Transport { peers, pulls, code, senders } = transport(&joining, &own, programs, &client, &tasks)?;
    let JoiningNode { member, inbox, drain, logs, .. } = joining;
    let submissions = Arc::new(submissions(me, options, &client, &tasks, &inbox));
    let links = Links {
        peers: Arc::clone(&peers),
        inbox: Arc::clone(&inbox),
        drain: Arc::clone(&drain),
        is_head: control.is_some(),
        takes_work: member.serves_others(),
        logs,
        submissions: Arc::clone(&submissions),
    };
    let routes = peer::routes(Routes::default(), Arc::new(links));
    let routes = control.as_ref().map_or(routes.clone(), |control| control.mount(routes));
    let scraped = Scraped::new(me, Arc::clone(&inbox), Arc::clone(gate.counts()), control.clone());
    let callers =
        |calls| Callers { calls, senders: Arc::clone(&senders), peers: Arc::clone(&peers), scraped };
    let revoked =
        if control.is_some() { gate.revoked().clone() } else { heard_revoked(&client, &gate).await? };
    tokio::spawn(Arc::clone(&senders).cut_revoked(revoked.clone()));
    serve(listener, gate, routes, callers).map_err(|e| internal(&e.to_string()))?;
    let _detached = renewal.map(|renewal| tokio::spawn(renewal.run()));
    let info = info(member, address, &options.socket);
    let registered = register(&client, &info).await?;
    let (fenced, names) = (Arc::new(Mutex::new(None)), Arc::<ClaimedNames>::default());
    let ends = Arc::new(Ends::new(Arc::clone(&code), Arc::clone(&inbox)));
    let membership = Membership {
        me: info,
        own,
        control: client.clone(),
        inbox,
        peers: Arc::clone(&peers),
        pulls: Arc::clone(&pulls),
        code: Arc::clone(&code),
        ends: Arc::clone(&ends),
        lease_ttl: registered.lease_ttl,
        isolation: Arc::new(Mutex::new(Isolation::new(registered.lease_ttl, Instant::now()))),
        own_addresses,
        drain,
        revoked,
        names: Arc::clone(&names),
        fenced: Arc::clone(&fenced),
    };
    let namespaces = Arc::default();
    let cluster_handle = ClusterHandle { me, control: client, tasks, code, names, fenced, namespaces };
    Ok((Started { peers, pulls, senders, submissions, ends, cluster_handle }, membership, control))
}

fn transport(
    joining: &JoiningNode,
    own: &Credentials,
    programs: &Path,
    client: &ControlClient,
    tasks: &Tasks,
) -> Result<Transport, Failure> {
    let JoiningNode { member, arena, inbox, spill, small_cluster_max, .. } = joining;
    let peers = Arc::new(Peers::new(member.node, *small_cluster_max));
    let pulls = Pulls::new(Arc::clone(arena), Arc::clone(inbox), Arc::clone(&peers), own.clone());
    let pulls = Arc::new(pulls);
    let code = {
        let (peers, pulls) = (Arc::clone(&peers), Arc::clone(&pulls));
        Arc::new(Code::new(member.node, programs.to_owned(), client.clone(), tasks.clone(), peers, pulls))
    };
    let senders = Senders::new(arena, Arc::clone(inbox), Arc::clone(&code), spill.clone());
    let senders = Arc::new(senders.map_err(|e| internal(&e.to_string()))?);
    Ok(Transport { peers, pulls, code, senders })
}

fn not_in_time(role: &Role) -> Failure {
    let what = match role {
        Role::Head { store, .. } => format!("the control store was not begun ({store})"),
        Role::Member { heads } => format!("cannot join the cluster at {}: no member", heads.join(",")),
    };
    Failure::new(FailureKind::Disconnected, format!("{what} within {} s", JOIN_TIME_MAX.as_secs()))
}

/// The node as the other members see it.
fn info(member: Member, address: String, socket: &Path) -> NodeInfo {
    NodeInfo {
        id: member.node,
        listen: address,
        host: host(),
        local_socket: socket.display().to_string(),
        resources: member.resources,
        labels: member.labels.into_iter().collect(),
    }
}

fn submissions(
    me: NodeId,
    options: &ClusterOptions,
    client: &ControlClient,
    tasks: &Tasks,
    inbox: &Arc<Inbox>,
) -> Submissions {
    let place = Place { node: me, host: host(), socket: options.socket.clone() };
    Submissions::new(place, options.folder.clone(), client.clone(), tasks.clone(), Arc::clone(inbox))
}

/// State shared by the nodes of one machine.
fn host() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}

fn refused(what: &str, error: &CallError) -> Failure {
    let kind = match error.refusal_code() {
        Some(RefusalCode::InvalidArgument | RefusalCode::Unauthenticated) => FailureKind::InvalidArgument,
        Some(RefusalCode::FailedPrecondition) => FailureKind::VersionMismatch,
        Some(RefusalCode::ResourceExhausted) => FailureKind::ResourceExhausted,
        _ => FailureKind::Disconnected,
    };
    Failure::new(kind, format!("{what}: {error}"))
}

fn internal(text: &str) -> Failure {
    Failure::new(FailureKind::Internal, text)
}
