//! `tharsis start`: a node in the background.

use super::node::{self, Prepared};
use super::token;
use crate::args::Part;
use crate::log::{LogChoice, fresh};
use crate::output;
use crate::refusal::Refusal;
use crate::settings::Flags;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command as Program, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tharsis::join::TOKEN_VARIABLE;
use tharsis::process::{BackendChoice, ClusterRole, FAILED, NODE_START_WAIT, NODE_VARIABLE, NodeSpec};
use tharsis::{machine, observe};
use tharsis_protos::handshake::Question;
use tharsis_protos::report::Report;
use tharsis_raylet::cluster::JOIN_TIME_MAX;

/// Time after which a start says what its node waits for.
const SAID_AFTER: Duration = Duration::from_secs(2);
/// Lines of the log of a node that did not start which are shown.
const LAST_WORDS_LINES: usize = 20;

/// Starts a node and says what to type next.
///
/// # Errors
/// Why it did not start.
pub fn run(part: &Part, flags: &Flags) -> Result<()> {
    let Prepared { spec, settings, claim: _claim, begun } = node::prepare(part, flags)?;
    let log = spec.socket.with_file_name("node.log");
    let choice = LogChoice::of(&settings);
    choice.check()?;
    let mut child = spawn(&spec, &choice, &log)?;
    let report = await_report(&mut child, &spec, &log, begun)?;
    let control = part.entry.address.as_deref().unwrap_or(&report.address);
    let token = if part.entry.head { token::flag(&settings)? } else { String::new() };
    for line in next_steps(&report, control, &token, &spec.socket) {
        output::line(&line)?;
    }
    Ok(())
}

fn spawn(spec: &NodeSpec, choice: &LogChoice, log: &Path) -> Result<Child> {
    let folder = spec.socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.context("the socket has no folder")?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))?;
    let log_file = fresh(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut program = Program::new(std::env::current_exe()?);
    program.env(NODE_VARIABLE, serde_json::to_string(spec)?).envs(choice.variables());
    // The node has no use for the token, and its environment can be read for as long as it runs.
    program.env_remove(TOKEN_VARIABLE);
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log_file);
    // A process group of its own: Ctrl-C at this terminal is not for the node.
    Ok(program.process_group(0).spawn()?)
}

fn await_report(child: &mut Child, spec: &NodeSpec, log: &Path, begun: Instant) -> Result<Report> {
    let spawned = Instant::now();
    let mut is_said = false;
    loop {
        let ended = child.try_wait()?;
        // Somebody else's start may have been faster: ours is the node with this process.
        match observe::ask(&spec.socket, Question::Status) {
            Ok(report) if report.pid == child.id() => return Ok(report),
            Ok(other) if ended.is_some() => {
                return Err(Refusal::AlreadyRunning { pid: other.pid, socket: spec.socket.clone() }.into());
            }
            _ => {}
        }
        if let Some(status) = ended {
            return Err(last_words(status, log).into());
        }
        // The node ends before by itself, with its reason.
        if NODE_START_WAIT < begun.elapsed() {
            child.kill()?;
            child.wait()?;
            let seconds = NODE_START_WAIT.as_secs();
            bail!("the node did not answer within {seconds} s; its log is {}", log.display());
        }
        if !is_said && SAID_AFTER < spawned.elapsed() {
            is_said = true;
            output::complain(&format!("tharsis: the node {}; its log is {}", waits_for(spec), log.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The wait of a node that does not answer yet, in words.
fn waits_for(spec: &NodeSpec) -> String {
    let limit = JOIN_TIME_MAX.as_secs();
    match spec.cluster.as_ref().map(|cluster| &cluster.role) {
        Some(ClusterRole::Member { heads }) => {
            format!("waits for the head at {}, for at most {limit} s", heads.join(", "))
        }
        Some(ClusterRole::Head { store, .. }) if *store != BackendChoice::Memory => {
            format!("waits for the tables of the cluster, {store}, for at most {limit} s")
        }
        _ => "is about to start".to_owned(),
    }
}

fn last_words(status: ExitStatus, log: &Path) -> Refusal {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..];
    let cause = if last.is_empty() { format!("it ended with {status}") } else { last.join("\n") };
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    Refusal::NodeEnded { cause, status: code.unwrap_or(FAILED) }
}

/// The next commands for the user, ready to paste; `control` is the address at which the cluster is joined.
fn next_steps(report: &Report, control: &str, token: &str, socket: &Path) -> Vec<String> {
    let is_default = socket == machine::default_socket();
    let (address, flag) = if is_default {
        ("auto".to_owned(), String::new())
    } else {
        (socket.display().to_string(), format!(" --socket {}", socket.display()))
    };
    // On this machine another node needs another socket.
    let next = socket.with_file_name(format!("{:016x}", report.node)).join("node.sock");
    let join = match token {
        "" => {
            format!("Join with another node:   tharsis start --address {control} --socket {}", next.display())
        }
        token => format!("Join another machine:     tharsis start --address {control}{token}"),
    };
    vec![
        format!("Node {:016x} runs, process {}.", report.node, report.pid),
        format!("Use it from a program:    tharsis::init().address({address:?}).start()"),
        join,
        format!("See how it is:            tharsis status{flag}"),
        format!("Stop it:                  tharsis stop{flag}"),
    ]
}
