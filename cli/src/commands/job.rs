//! `tharsis job`: programs that nodes run and supervise.
//!
//! The control store has a record of each ([`Submission`]). What is done to a program, and what it wrote, are
//! calls on the port of the node that runs it.

use super::list;
use crate::args::{ClusterArgs, JobCommand, SubmitArgs};
use crate::output;
use crate::reach;
use crate::refusal::{EXHAUSTED, Refusal, TAKEN, WRONG_INPUT};
use crate::settings::Settings;
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tharsis::process;
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::handshake::Question;
use tharsis_protos::listing::{Cell, Table};
use tharsis_protos::peer::{self, OutputStream};
use tharsis_protos::submission::{NAMESPACE, NewSubmission, OutputQuery, State, Submission};
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::{NodeId, Resources};

/// The longest time that a call may take until it is answered.
const CALL_WAIT: Duration = Duration::from_secs(10);
/// The longest time from the end of a program, or of its last grace, until the control store knows.
const END_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks at a program.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Records that are read at a time.
const READS_MAX: usize = 16;
/// Characters of a program's own name in the name that is made for it.
const NAME_CHARS_MAX: usize = 40;
/// Difference between a signal and the status that a shell gives to a process that ended by it.
const SIGNAL_STATUS: i32 = 128;
const COLUMNS: &[&str] = &["name", "state", "age_s", "ran_s", "status", "node", "program"];

/// Runs a command about programs.
///
/// # Errors
/// `UnknownProgram`, `NotSubmitted`, `NodeGone`, `ProgramFailed`, or why the cluster does not answer.
pub fn run(command: JobCommand) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            JobCommand::List { json, cluster } => list_all(&Cluster::reach(&cluster).await?, json).await,
            JobCommand::Logs { name, follow, tail, cluster } => {
                Cluster::reach(&cluster).await?.show_output(&name, tail, follow).await
            }
            JobCommand::Status { name, json, cluster } => {
                show(&Cluster::reach(&cluster).await?.find(&name).await?, json)
            }
            JobCommand::Stop { name, grace, cluster } => {
                stop(&Cluster::reach(&cluster).await?, &name, grace).await
            }
            JobCommand::Submit(asked) => submit(&Cluster::reach(&asked.cluster).await?, asked).await,
        }
    })
}

/// A cluster that answers.
struct Cluster {
    address: String,
    store: ControlClient,
    /// For calls that look, and that end programs.
    operator: Credentials,
    settings: Settings,
    /// The node of this machine, if it was asked.
    own: Option<NodeId>,
}

impl Cluster {
    async fn reach(asked: &ClusterArgs) -> Result<Self> {
        let settings = Settings::read(&asked.settings)?;
        let (address, own) = match &asked.address {
            Some(address) => (address.clone(), None),
            None => {
                let report = super::ask(&settings.socket(), Question::Status)?;
                (report.control, Some(NodeId(report.node)))
            }
        };
        if address.is_empty() {
            let socket = settings.socket().display().to_string();
            return Err(Refusal::NoCluster { socket }.into());
        }
        let operator = reach::operator(&address, &settings)?;
        let options = ClientOptions { call_deadline: CALL_WAIT, patience: Duration::ZERO };
        let store = ControlClient::connect(&address, &operator, options).await;
        let (store, _) = store.map_err(|error| reach::refused(&address, &error))?;
        Ok(Self { address, store, operator, settings, own })
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>> {
        let members = self.store.list_nodes().await;
        Ok(members.map_err(|error| reach::refused(&self.address, &error))?.nodes)
    }

    /// The record of a program; what runs on a node that is gone is lost.
    async fn find(&self, name: &str) -> Result<Submission> {
        let unknown = || Refusal::UnknownProgram { name: name.to_owned() };
        // A key that cannot be is not there.
        if tharsis_protos::submission::check_name(name).is_err() {
            return Err(unknown().into());
        }
        let found = self.read(name.as_bytes().to_vec()).await?;
        let mut found = found.ok_or_else(unknown)?;
        found.state = state(&found, &self.nodes().await?);
        Ok(found)
    }

    async fn read(&self, key: Vec<u8>) -> Result<Option<Submission>> {
        let name = String::from_utf8_lossy(&key).into_owned();
        let found = self.store.kv_get(NAMESPACE, key.into()).await;
        let found = found.map_err(|error| reach::refused(&self.address, &error))?;
        let read = found.map(|value| serde_json::from_slice(&value)).transpose();
        read.with_context(|| format!("the record of {name:?} is damaged"))
    }

    async fn all(&self) -> Result<Vec<Submission>> {
        let mut keys = Vec::new();
        loop {
            let after = keys.last().cloned().unwrap_or_default();
            let page = self.store.kv_list(NAMESPACE, Vec::new().into(), after, 0).await;
            let page = page.map_err(|error| reach::refused(&self.address, &error))?;
            keys.extend(page.keys);
            if !page.more {
                break;
            }
        }
        let reads = futures::stream::iter(keys).map(|key| self.read(key.to_vec()));
        let found: Vec<_> = reads.buffered(READS_MAX).try_collect().await?;
        let nodes = self.nodes().await?;
        let found = found.into_iter().flatten();
        Ok(found.map(|record| Submission { state: state(&record, &nodes), ..record }).collect())
    }

    /// The node that runs a program, and those at its place, of which one may have its output: a node that
    /// was killed may be listed for a while beside the next one.
    async fn nodes_of(&self, record: &Submission) -> Result<Vec<NodeInfo>> {
        let is_same = |node: &NodeInfo| node.id.to_string() == record.node;
        let is_there = |node: &NodeInfo| node.host == record.host && node.local_socket == record.socket;
        let mut nodes = self.nodes().await?;
        nodes.retain(|node| is_same(node) || is_there(node));
        nodes.sort_by_key(|node| !is_same(node));
        if nodes.is_empty() {
            let (name, node) = (record.name.clone(), record.node.clone());
            return Err(Refusal::NodeGone { name, node }.into());
        }
        Ok(nodes)
    }

    async fn show_output(&self, name: &str, tail: u32, follow: bool) -> Result<()> {
        let record = self.find(name).await?;
        let mut failed = None;
        for node in self.nodes_of(&record).await? {
            let query = OutputQuery { name: name.to_owned(), tail, follow };
            match peer::job_output(&node.listen, node.id, &self.operator, query, CALL_WAIT).await {
                Ok(parts) => return print(parts, &node.listen).await,
                Err(error) => failed = Some(refused(&node.listen, &error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits until the control store knows how a program ended.
    async fn await_end(&self, name: &str, time: Duration) -> Result<Submission> {
        let until = Instant::now() + time;
        loop {
            let record = self.find(name).await?;
            if !record.state.is_live() || until < Instant::now() {
                return Ok(record);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

async fn print(mut parts: OutputStream, address: &str) -> Result<()> {
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| refused(address, &error))?;
        output::bytes(&part)?;
    }
    Ok(())
}

fn state(record: &Submission, nodes: &[NodeInfo]) -> State {
    let is_there = nodes.iter().any(|node| node.id.to_string() == record.node);
    if record.state.is_live() && !is_there { State::Lost } else { record.state }
}

async fn submit(cluster: &Cluster, asked: SubmitArgs) -> Result<()> {
    let node = chosen(&cluster.nodes().await?, asked.node, cluster.own)?;
    let name = match asked.name {
        Some(name) => name,
        None => made_name(&asked.words[0])?,
    };
    let here = std::env::current_dir().context("the present folder")?;
    let folder = here.join(asked.dir.unwrap_or_default());
    let new = NewSubmission {
        name: name.clone(),
        words: asked.words,
        folder: folder.display().to_string(),
        variables: asked.variables.into_iter().collect(),
        quota: asked.quota,
    };
    let wrong = |bad: tharsis_protos::BadMessage| Refusal::NotSubmitted {
        cause: format!("InvalidArgument: {bad}"),
        status: WRONG_INPUT,
    };
    new.check().map_err(wrong)?;
    let own = reach::driver(&cluster.address, &cluster.settings)?;
    let submitted = peer::submit_job(&node.listen, node.id, &own, new, CALL_WAIT).await;
    submitted.map_err(|error| not_submitted(&node.listen, &error))?;
    output::line(&name)?;
    if !asked.follow {
        return Ok(());
    }
    cluster.show_output(&name, u32::MAX, true).await?;
    let record = cluster.await_end(&name, END_WAIT).await?;
    if record.state == State::Succeeded {
        return Ok(());
    }
    let status = record.status.or(record.signal.map(|signal| SIGNAL_STATUS + signal));
    let status = status.and_then(|status| u8::try_from(status).ok()).filter(|status| 0 < *status);
    let how = describe(&record);
    Err(Refusal::ProgramFailed { name, how, status: status.unwrap_or(process::FAILED) }.into())
}

/// The node that was named, the one of this machine if it takes work, or the one with most CPUs.
fn chosen(nodes: &[NodeInfo], named: Option<u64>, own: Option<NodeId>) -> Result<NodeInfo> {
    let takes_work =
        |id: &NodeId| nodes.iter().any(|node| node.id == *id && node.resources != Resources::default());
    let wanted = named.map(NodeId).or(own.filter(takes_work));
    let found = match wanted {
        Some(wanted) => nodes.iter().find(|node| node.id == wanted),
        None => nodes.iter().rev().max_by_key(|node| node.resources.cpu),
    };
    let unknown = || Refusal::UnknownNode { node: wanted.map_or(0, |node| node.0) };
    Ok(found.cloned().ok_or_else(unknown)?)
}

/// A name for a program that was given none.
fn made_name(program: &str) -> Result<String> {
    let base = Path::new(program).file_name().map_or_else(String::new, |name| name.display().to_string());
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let base: String = base.trim_start_matches(['.', '-']).chars().take(NAME_CHARS_MAX).map(plain).collect();
    let mut bytes = [0; 4];
    let random = std::fs::File::open("/dev/urandom");
    random.and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes)).context("/dev/urandom")?;
    let base = if base.is_empty() { "program" } else { &base };
    Ok(format!("{base}-{:08x}", u32::from_le_bytes(bytes)))
}

async fn stop(cluster: &Cluster, name: &str, grace: Duration) -> Result<()> {
    let record = cluster.find(name).await?;
    if !record.state.is_live() {
        return output::line(&format!("{name} {}", describe(&record)));
    }
    let node = chosen(&cluster.nodes().await?, u64::from_str_radix(&record.node, 16).ok(), None)?;
    let stopped = peer::stop_job(&node.listen, node.id, &cluster.operator, name, grace, CALL_WAIT).await;
    stopped.map_err(|error| refused(&node.listen, &error))?;
    let record = cluster.await_end(name, grace + END_WAIT).await?;
    output::line(&format!("{name} {}", describe(&record)))
}

fn not_submitted(address: &str, error: &CallError) -> anyhow::Error {
    let status = match error.refusal_code() {
        Some(RefusalCode::AlreadyExists) => TAKEN,
        Some(RefusalCode::ResourceExhausted) => EXHAUSTED,
        Some(RefusalCode::NotFound | RefusalCode::InvalidArgument) => WRONG_INPUT,
        Some(RefusalCode::FailedPrecondition) => process::FAILED,
        _ => return reach::refused(address, error),
    };
    Refusal::NotSubmitted { cause: error.to_string(), status }.into()
}

fn refused(address: &str, error: &CallError) -> anyhow::Error {
    match error.refusal_code() {
        Some(RefusalCode::NotFound) => {
            Refusal::NotSubmitted { cause: error.to_string(), status: WRONG_INPUT }.into()
        }
        _ => reach::refused(address, error),
    }
}

async fn list_all(cluster: &Cluster, json: bool) -> Result<()> {
    let mut all = cluster.all().await?;
    all.sort_by_key(|record| std::cmp::Reverse(record.submitted_unix_ms));
    let now_ms = unix_ms();
    let mut table = Table::new(cluster.own.map_or(0, |node| node.0), COLUMNS);
    table.rows = all.iter().map(|record| row(record, now_ms)).collect();
    if json {
        return output::line(&list::as_json(&table).to_string());
    }
    output::plain_lines(&list::as_text(&table))
}

fn row(record: &Submission, now_ms: u64) -> Vec<Cell> {
    let since_s = |from_ms: u64, to_ms: u64| Cell::Number(to_ms.saturating_sub(from_ms) / 1000);
    let begun_ms = record.submitted_unix_ms;
    let ended_ms = match record.state {
        State::Lost => None,
        _ => Some(record.ended_unix_ms.unwrap_or(now_ms)),
    };
    let status = record.status.map(|status| status.to_string());
    vec![
        Cell::text(&record.name),
        Cell::text(record.state.name()),
        since_s(begun_ms, now_ms),
        ended_ms.map_or(Cell::Nothing, |ended_ms| since_s(begun_ms, ended_ms)),
        status.map_or(Cell::Nothing, |status| Cell::text(&status)),
        Cell::text(&record.node),
        Cell::text(&record.words.join(" ")),
    ]
}

fn show(record: &Submission, json: bool) -> Result<()> {
    if json {
        return output::line(&serde_json::to_string(record)?);
    }
    output::line(&format!("{} {}", record.name, describe(record)))?;
    output::line(&output::plain(&format!("  program  {}", record.words.join(" "))))?;
    output::line(&output::plain(&format!("  folder   {}", record.folder)))?;
    let process = record.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    output::line(&format!("  node     {}{process}", record.node))?;
    let ended_ms = record.ended_unix_ms.unwrap_or_else(unix_ms);
    let ran_ms = ended_ms.saturating_sub(record.submitted_unix_ms);
    output::line(&format!("  time     {:.1} s", ran_ms as f64 / 1e3))
}

/// The state of a program, in words.
fn describe(record: &Submission) -> String {
    let end = match (record.status, record.signal) {
        (Some(status), _) => format!(" (status {status})"),
        (None, Some(signal)) => format!(" (signal {signal})"),
        (None, None) => String::new(),
    };
    match record.state {
        State::Failed => format!("failed{end}"),
        State::Lost => format!("is lost: node {}, which ran it, is gone", record.node),
        State::Running => "runs".to_owned(),
        State::Starting => "is about to start".to_owned(),
        State::Stopped => format!("was stopped{end}"),
        State::Succeeded => "succeeded".to_owned(),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_from_that_of_the_program() {
        for (program, base) in [("./pi", "pi-"), ("/opt/my tool", "my_tool-"), ("..", "program-")] {
            let name = made_name(program).unwrap();
            tharsis_protos::submission::check_name(&name).unwrap();
            assert!(name.starts_with(base), "{name}");
        }
        assert!(made_name(&"x".repeat(500)).unwrap().len() < 64);
        assert_ne!(made_name("pi").unwrap(), made_name("pi").unwrap());
    }
}
