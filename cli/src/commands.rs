//! What the commands do.

use crate::args::{Args, Command, NodeArgs};
use crate::{bench, output};
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command as Program, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tharsis::process::{BackendChoice, ClusterRole, ClusterSpec, NodeSpec, run_node};
use tharsis::{Error, FailureKind, machine, observe};
use tharsis_protos::handshake::{Question, Report};
use tharsis_types::Resources;

/// What `bench idle` adds to the command line of its node.
pub const IDLE_NODE_ARGUMENTS: &[&str] = &[];

/// A node that is not heard of for this long is declared dead.
const LEASE_TTL_MS: u64 = 10_000;
/// How long a node may take to start or to end.
const NODE_WAIT: Duration = Duration::from_secs(10);

/// What ends the command with a status of its own.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("AlreadyRunning: a node of this user runs already, process {pid}, socket {}", socket.display())]
    AlreadyRunning { pid: u32, socket: PathBuf },
    #[error("--num-gpus {asked}: this machine has {found} GPUs; use --allow-fake-resources to offer more")]
    FakeGpus { asked: f64, found: usize },
}

/// Runs a command.
///
/// # Errors
/// Whatever went wrong; see [`exit_code`].
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Bench { name, json, embedded, quick } => {
            bench::run(&name, bench::Options { embedded, quick }, json)
        }
        Command::BenchFirst { mode } => bench::first_result(&mode),
        Command::BenchPeer { kind, argument } => bench::serve_floor(&kind, &argument),
        Command::Node(node) => Ok(run_node(spec(&node)?, crate::collector)?),
        Command::Start { head, address, node } => start(head, address.as_deref(), &node),
        Command::Status { json, socket } => status(&socket.unwrap_or_else(machine::default_socket), json),
        Command::Stop { socket } => stop(&socket.unwrap_or_else(machine::default_socket)),
        Command::Version { json } => version(json),
    }
}

/// The status that an error ends the command with: 2 for what was typed, 4 where nothing answers, 5 for what is taken,
/// 1 otherwise.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return ExitCode::from(match refusal {
            Refusal::AlreadyRunning { .. } => 5,
            Refusal::FakeGpus { .. } => 2,
        });
    }
    match error.downcast_ref::<Error>().map(Error::kind) {
        Some(FailureKind::InvalidArgument) => ExitCode::from(2),
        Some(FailureKind::Disconnected) => ExitCode::from(4),
        _ => ExitCode::FAILURE,
    }
}

fn spec(node: &NodeArgs) -> Result<NodeSpec> {
    let memory = machine::memory_bytes();
    let mut resources = Resources::cpus(node.num_cpus.unwrap_or(machine::cpu_count() as f64))?;
    resources.memory = memory;
    if let Some(gpus) = node.num_gpus {
        let found = gpu_count();
        if gpus > found as f64 && !node.allow_fake_resources {
            return Err(Refusal::FakeGpus { asked: gpus, found }.into());
        }
        resources.gpu = tharsis_types::resources::units("GPU", gpus)?;
    }
    for (name, amount) in node.resources.iter().flat_map(|r| &r.0) {
        resources.set_custom(name, *amount)?;
    }
    let store_bytes = node.store.unwrap_or_else(|| machine::default_store_bytes(memory));
    machine::check_store_bytes(store_bytes, memory)?;
    let socket = node.socket.clone().unwrap_or_else(machine::default_socket);
    Ok(NodeSpec {
        socket,
        resources,
        labels: node.labels.clone(),
        store_bytes,
        ends_with_stdin: false,
        cluster: None,
    })
}

/// A node's part in a cluster: it joins the one at `address`, or begins one.
fn cluster(address: Option<&str>) -> ClusterSpec {
    let role = match address {
        Some(head) => ClusterRole::Member { head: head.to_owned() },
        None => ClusterRole::Head { store: BackendChoice::Memory, lease_ttl_ms: LEASE_TTL_MS },
    };
    ClusterSpec { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), role }
}

fn start(_head: bool, address: Option<&str>, node: &NodeArgs) -> Result<()> {
    let spec = NodeSpec { cluster: Some(cluster(address)), ..spec(node)? };
    if let Ok(report) = observe::ask(&spec.socket, Question::Status) {
        return Err(Refusal::AlreadyRunning { pid: report.pid, socket: spec.socket }.into());
    }
    let log = spec.socket.with_file_name("node.log");
    let folder = spec.socket.parent().context("the socket has no folder")?;
    make_private_folder(folder)?;
    let log_file = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut program = Program::new(std::env::current_exe()?);
    program.env(tharsis::process::NODE_VARIABLE, serde_json::to_string(&spec)?);
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log_file);
    let mut child = std::os::unix::process::CommandExt::process_group(&mut program, 0).spawn()?;
    let until = Instant::now() + NODE_WAIT;
    let report = loop {
        if let Ok(report) = observe::ask(&spec.socket, Question::Status) {
            break report;
        }
        if let Some(status) = child.try_wait()? {
            let cause = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("the node ended with {status}:\n{}", cause.trim_end());
        }
        if Instant::now() > until {
            child.kill()?;
            bail!("the node did not answer within {} s; its log is {}", NODE_WAIT.as_secs(), log.display());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    output::line(&format!("Node {:016x} runs, process {}.", report.node, report.pid))?;
    output::line("Use it from a program:    tharsis::init().address(\"auto\").start()")?;
    if !report.address.is_empty() {
        output::line(&format!("Join from another shell:  tharsis start --address {}", report.address))?;
    }
    output::line("See how it is:            tharsis status")?;
    output::line("Stop it:                  tharsis stop")
}

fn status(socket: &std::path::Path, json: bool) -> Result<()> {
    let report = observe::ask(socket, Question::Status)?;
    if json {
        return output::line(&serde_json::to_string(&report)?);
    }
    for line in describe(&report) {
        output::line(&line)?;
    }
    Ok(())
}

fn describe(report: &Report) -> Vec<String> {
    let mib = |bytes: u64| bytes >> 20;
    let mut lines = vec![format!("node {:016x}, process {}", report.node, report.pid)];
    for node in &report.nodes {
        let labels: Vec<_> = node.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("  [{}]", labels.join(", ")) };
        lines.push(format!("  {:016x}  free {}  of {}{labels}", node.node, node.free, node.total));
    }
    let store = report.store;
    lines.push(format!(
        "store     {} of {} MiB in use, {} objects, {} mapped",
        mib(store.used_bytes),
        mib(store.capacity_bytes),
        store.object_count,
        store.pinned_count
    ));
    lines.push(format!(
        "work      {} drivers, {} workers, {} tasks running, {} unfinished, {} objects referred to",
        report.driver_count,
        report.worker_count,
        report.running_count,
        report.task_count,
        report.object_count
    ));
    for row in &report.pending {
        lines.push(format!("waiting   {} x {} ({}): {}", row.count, row.name, row.resources, row.reason));
    }
    lines
}

fn stop(socket: &std::path::Path) -> Result<()> {
    let report = observe::ask(socket, Question::Stop)?;
    let until = Instant::now() + NODE_WAIT;
    while std::path::Path::new(&format!("/proc/{}", report.pid)).exists() && socket.exists() {
        if Instant::now() > until {
            bail!("process {} did not end within {} s", report.pid, NODE_WAIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    output::line(&format!("Node {:016x} has stopped.", report.node))
}

fn version(json: bool) -> Result<()> {
    let (version, protocol) = (env!("CARGO_PKG_VERSION"), tharsis_protos::handshake::PROTOCOL_VERSION);
    if json {
        return output::line(&serde_json::json!({"version": version, "protocol": protocol}).to_string());
    }
    output::line(&format!("tharsis {version}, protocol {protocol}"))
}

fn make_private_folder(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))
}

/// GPUs whose device files are there.
fn gpu_count() -> usize {
    let files = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    files
        .filter(|f| {
            f.file_name()
                .to_str()
                .and_then(|n| n.strip_prefix("nvidia"))
                .is_some_and(|n| n.parse::<u32>().is_ok())
        })
        .count()
}
