//! Parts of a process of this program: the driver, a worker, or a node.
//!
//! A node starts the program again and says so in the environment. `#[tharsis::main]` asks here before it
//! runs the user's `main`.

use crate::machine;
use crate::part::{self, Part, Restartable};
use crate::shared_process;
use rustix::thread::disable_transparent_huge_pages;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio, Termination};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tharsis_object_store::{local_socket, segment};
use tharsis_protos::handshake::Role;
use tharsis_raylet::cluster::{ClusterOptions, JOIN_TIME_MAX};
use tharsis_raylet::descriptors::{self, LIMIT_VARIABLE};
use tharsis_raylet::submissions::{self, PROGRAM_VARIABLE};
use tharsis_raylet::{FOLDER_MARK, NodeHandle, Program, SHARED_PROCESS, readiness};
use tharsis_remote::{Error, FailureKind, Result, connect, current, run_worker};
use tokio::signal::unix::{SignalKind, signal};

pub use crate::part::{NODE_VARIABLE, WORKER_SCRATCH_VARIABLE, WORKER_SOCKET_VARIABLE};
pub use tharsis_raylet::NodeOptions;
pub use tharsis_raylet::cluster::identity::{
    authority_folder, join_with_token, machine_folder, renew_machine,
};
pub use tharsis_raylet::cluster::{BackendChoice, EtcdAccess, Role as ClusterRole, Security};

/// Set for a worker: the number of its start; for a process that several share, its own number.
pub const WORKER_START_VARIABLE: &str = "THARSIS_WORKER_START";
/// The status of a process that failed for no reason with a status of its own.
pub const FAILED: u8 = 1;
/// The status of a program that cannot be started, as a shell reports it.
const NO_PROGRAM: u8 = 126;
/// The longest time that the start of a node may take until its socket answers: that in which it becomes a
/// member, after which it ends by itself, and some for the checks of the command that starts it, its memory
/// and its files.
pub const NODE_START_WAIT: Duration = JOIN_TIME_MAX.saturating_add(Duration::from_secs(30));
/// The longest time for one attempt to connect to it: after that it is looked whether it has ended.
const NODE_LOOK_WAIT: Duration = Duration::from_secs(1);
/// The status of a node that was told to stop twice, as a shell reports Ctrl-C.
const STOPPED_TWICE: i32 = 130;
/// The longest time that a node process may take to end by itself.
const NODE_STOP_WAIT: Duration = Duration::from_secs(3);

/// Settings of a node process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeSpec {
    /// The socket on which it listens for clients.
    pub socket: PathBuf,
    /// The options of the node in it.
    pub options: NodeOptions,
    /// Whether it ends when its standard input does, which is when the process that started it ends.
    pub ends_with_stdin: bool,
    /// Its part in a cluster; none for a node alone.
    pub cluster: Option<ClusterSpec>,
    /// The longest time that it drains when SIGTERM tells it to end.
    pub drain_within: Duration,
}

/// A node's part in a cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// Address on which it listens; port 0 for a free one. With a secret it is a loopback address.
    pub listen: SocketAddr,
    /// Host at which other nodes reach it, if it is not that of `listen`.
    pub advertised: Option<String>,
    /// Threads for connections with other nodes.
    pub network_threads: usize,
    /// Means by which the members know each other.
    pub security: Security,
    /// Whether it begins the cluster or joins it.
    pub role: ClusterRole,
}

/// Runs this process as what it was started for; `user_main` if it is the driver.
///
/// `#[tharsis::main]` calls it. A program with a `main` of its own calls it there, before it does anything
/// else: without it a child of the program would be one more driver.
pub fn enter<T: Termination>(user_main: fn() -> T) -> ExitCode {
    enter_with(user_main, Program::default())
}

/// As [`enter`], with what the program brings along for the case that this process is a node.
pub fn enter_with<T: Termination>(user_main: fn() -> T, program: Program) -> ExitCode {
    if let Some((node, path)) = submissions::told_program() {
        descriptors::restore();
        return become_program(node, &path);
    }
    if let Some((socket, number)) = shared_arguments() {
        part::enter(Part::Worker);
        // The limit stays as its node has it: each of the workers has several files open.
        name_process();
        return exit_code(shared_process::run(Path::new(&socket), number, report));
    }
    if let Some((socket, start)) = worker_arguments() {
        part::enter(Part::Worker);
        descriptors::restore();
        return exit_code(work(Path::new(&socket), start));
    }
    match std::env::var(NODE_VARIABLE) {
        Ok(spec) => {
            part::enter(Part::Node);
            exit_code(run_node_from(&spec, program))
        }
        Err(_) => {
            part::enter(Part::Driver);
            user_main().report()
        }
    }
}

/// Runs this process as a node until it is told to stop.
///
/// # Errors
/// Why it cannot start.
pub fn run_node(spec: NodeSpec, program: Program) -> Result<()> {
    allow_huge_pages();
    descriptors::raise();
    let node = Arc::new(start_node(spec.options, program, &spec.socket, spec.cluster)?);
    // The child of a service is not the service.
    let is_service = !spec.ends_with_stdin;
    stop_at_signals(&node, spec.drain_within, is_service)?;
    if is_service {
        readiness::ready();
    }
    if spec.ends_with_stdin {
        let watched = Arc::clone(&node);
        // Ends with the process.
        let _detached = std::thread::Builder::new().name("stdin".into()).spawn(move || {
            let mut byte = [0];
            while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
            watched.stop();
        });
    }
    node.join();
    if spec.ends_with_stdin
        && let Some(folder) = spec.socket.parent()
    {
        // The process that made it may have been killed. One that holds more than the socket stays.
        let _unmarked = std::fs::remove_file(folder.join(FOLDER_MARK));
        let _removed = std::fs::remove_dir(folder);
    }
    match node.fenced() {
        Some(reason) => Err(Error::new(FailureKind::NodeDied, reason)),
        None => Ok(()),
    }
}

/// The status that a failure of a kind ends a process with: 2 for what was typed, 4 where nothing of ours
/// answers, 5 for what somebody else has, 6 for what there is too little of.
#[must_use]
pub fn status_of(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::InvalidArgument => 2,
        FailureKind::Disconnected | FailureKind::VersionMismatch => 4,
        FailureKind::InUse => 5,
        FailureKind::ResourceExhausted => 6,
        _ => FAILED,
    }
}

/// SIGTERM drains a node: it leaves without loss, within a time. Ctrl-C, or a signal while it drains, ends it
/// in good order, so that no process or file stays behind. The next signal ends it at once.
fn stop_at_signals(node: &Arc<NodeHandle>, drain_within: Duration, is_service: bool) -> Result<()> {
    let failed = |cause: std::io::Error| Error::new(FailureKind::Internal, format!("signals: {cause}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(entered);
    let node = Arc::clone(node);
    let watch = move || {
        let mut is_interrupted = || {
            runtime.block_on(async {
                tokio::select! {
                    _told = interrupt.recv() => true,
                    _told = terminate.recv() => false,
                }
            })
        };
        let is_at_once = is_interrupted();
        if is_service {
            readiness::stopping();
        }
        // A node that drains already is told for the second time.
        if !is_at_once && node.drain(drain_within).is_ok() {
            is_interrupted();
        }
        // Ends with the process.
        let _detached = std::thread::Builder::new().name("stop".into()).spawn(move || node.stop());
        is_interrupted();
        std::process::exit(STOPPED_TWICE);
    };
    // Ends with the process.
    std::thread::Builder::new().name("signals".into()).spawn(watch).map(drop).map_err(failed)
}

fn start_node(
    options: NodeOptions,
    program: Program,
    socket: &Path,
    cluster: Option<ClusterSpec>,
) -> Result<NodeHandle> {
    let Some(ClusterSpec { listen, advertised, network_threads, security, role }) = cluster else {
        return Ok(NodeHandle::alone(options, program, socket.to_owned())?);
    };
    let folder = socket.parent().unwrap_or(Path::new(".")).to_owned();
    let socket = socket.to_owned();
    let cluster = ClusterOptions { socket, listen, advertised, network_threads, folder, security, role };
    Ok(NodeHandle::clustered(options, program, cluster)?)
}

/// A node process that this process started and that ends with it.
pub(crate) struct NodeProcess {
    child: Child,
    socket: PathBuf,
}

impl NodeProcess {
    /// Starts this program again, as a node.
    pub(crate) fn start(
        options: &NodeOptions,
        scratch: Option<&Path>,
        restartable: Restartable,
    ) -> Result<Self> {
        let spec = NodeSpec {
            socket: fresh_folder(scratch).join("node.sock"),
            options: options.clone(),
            ends_with_stdin: true,
            cluster: None,
            drain_within: machine::DRAIN_WITHIN,
        };
        Self::start_as(&spec, restartable)
    }

    /// Starts this program again, as the node that `spec` describes.
    pub(crate) fn start_as(spec: &NodeSpec, _: Restartable) -> Result<Self> {
        let failed = |text: String| Error::new(FailureKind::Internal, text);
        let socket = spec.socket.clone();
        let spec = serde_json::to_string(spec).map_err(|cause| failed(cause.to_string()))?;
        let program =
            std::env::current_exe().map_err(|cause| failed(format!("this program's own path: {cause}")))?;
        let child = Command::new(&program)
            .env(NODE_VARIABLE, spec)
            .envs(small_heap_pages())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C at a terminal goes to a whole group: the driver ends by it, and the node in good order
            // by the end of its input.
            .process_group(0)
            .spawn();
        let child = child
            .map_err(|cause| failed(format!("cannot start {} as a node: {cause}", program.display())))?;
        let mut node = Self { child, socket };
        node.await_socket()?;
        Ok(node)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, at most for a time; none if it has not ended.
    pub(crate) fn end_within(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        // Gone already is fine.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }

    /// Stops the process without ending it.
    pub(crate) fn pause(&self) -> Result<()> {
        let gone = || Error::new(FailureKind::Disconnected, "the node process has ended".to_owned());
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(gone)?;
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).map_err(|_| gone())
    }

    /// Tells it to end, and does not wait.
    pub(crate) fn tell_to_stop(&mut self) {
        // The end of its input says so.
        drop(self.child.stdin.take());
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    fn await_socket(&mut self) -> Result<()> {
        let until = Instant::now() + NODE_START_WAIT;
        while local_socket::connect(&self.socket, NODE_LOOK_WAIT).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                let text = format!("the node process ended with {status}; its reason is above");
                return Err(Error::new(FailureKind::WorkerStartFailed, text));
            }
            if Instant::now() > until {
                let text = format!("the node process did not answer within {} s", NODE_START_WAIT.as_secs());
                return Err(Error::new(FailureKind::Disconnected, text));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.tell_to_stop();
        let until = Instant::now() + NODE_STOP_WAIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(500));
        }
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        if !has_ended {
            // A node that is killed leaves its shared memory; no other node may start to remove it.
            let _swept = segment::sweep();
        }
        if let Some(folder) = self.socket.parent() {
            let _removed = std::fs::remove_dir_all(folder);
        }
    }
}

/// A folder name that no other node of this user has.
pub(crate) fn fresh_folder(scratch: Option<&Path>) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    scratch.map_or_else(machine::scratch, Path::to_owned).join(format!("{}-{count}", std::process::id()))
}

/// Becomes a submitted program, which the kernel kills when the node ends that started this process.
fn become_program(node: u32, path: &Path) -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    if let Err(cause) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        report(&format!("{} would outlive its node: {cause}", path.display()));
        return ExitCode::from(FAILED);
    }
    // The kernel says nothing of a node that has ended before.
    if node != std::os::unix::process::parent_id() {
        return ExitCode::from(FAILED);
    }
    let mut program = Command::new(path);
    program.arg0(name).args(words).env_remove(PROGRAM_VARIABLE).env_remove(LIMIT_VARIABLE);
    let cause = program.exec();
    report(&format!("{} does not start: {cause}", path.display()));
    ExitCode::from(NO_PROGRAM)
}

fn run_node_from(spec: &str, program: Program) -> Result<()> {
    let spec = serde_json::from_str(spec)
        .map_err(|cause| Error::new(FailureKind::InvalidArgument, format!("{NODE_VARIABLE}: {cause}")))?;
    run_node(spec, program)
}

/// Runs tasks for the node at `socket` until it ends the connection.
///
/// # Errors
/// Why the connection could not be made, or ended out of order.
pub fn work(socket: &Path, start: u64) -> Result<()> {
    name_process();
    allow_huge_pages();
    let client = connect(socket, Role::Worker { start }, None)?;
    // User code may run for ever; without its node, nobody waits for it.
    client.on_loss(|| std::process::exit(0));
    // Threads that tasks start find the worker's client as well.
    current::set_global(Some(client.clone()));
    let outcome = run_worker(&client);
    client.close();
    outcome
}

/// The setting by which an allocator asks for no huge pages, unless the user has set it: for a node, and the
/// workers that have its environment. Each thread of a node and of a worker touches a piece of heap of its
/// own, and to clear a huge page for each took half of the time in which actors with a process each start.
fn small_heap_pages() -> Option<(&'static str, &'static str)> {
    const MIMALLOC: &str = "MIMALLOC_ALLOW_THP";
    std::env::var_os(MIMALLOC).is_none().then_some((MIMALLOC, "0"))
}

/// Allows huge pages where they are asked for, as for chunks and the arena: the allocator has refused them
/// for the whole process. Where the kernel does not know the wish, that is the cost.
fn allow_huge_pages() {
    let _wished = disable_transparent_huge_pages(false);
}

/// Gives this process the name of its program: it was started by descriptor, which is all that the system
/// knows.
fn name_process() {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name =
        program.as_deref().and_then(Path::file_name).and_then(|name| CString::new(name.as_bytes()).ok());
    if let Some(name) = name {
        // It is only shown to people.
        let _named = rustix::thread::set_name(&name);
    }
}

/// Runs a future on a runtime of its own; for `async fn main`.
#[doc(hidden)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(cause) => {
            report(&format!("cannot start an async runtime: {cause}"));
            std::process::exit(1)
        }
    }
}

fn worker_arguments() -> Option<(String, u64)> {
    let socket = std::env::var(WORKER_SOCKET_VARIABLE).ok()?;
    let start = std::env::var(WORKER_START_VARIABLE).ok()?.parse().ok()?;
    Some((socket, start))
}

/// Socket and number of a process that several workers share.
fn shared_arguments() -> Option<(String, u64)> {
    let socket = std::env::var(WORKER_SOCKET_VARIABLE).ok()?;
    let start = std::env::var(WORKER_START_VARIABLE).ok()?;
    Some((socket, start.strip_prefix(SHARED_PROCESS)?.parse().ok()?))
}

fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error.to_string());
            ExitCode::from(status_of(error.kind()))
        }
    }
}

/// Standard error is where a process that cannot go on says why.
fn report(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
