//! `tharsis logs`: what workers wrote, on any node of the cluster.
//!
//! The node of this machine is asked by its socket, the others by calls on their ports, whose addresses the
//! control store knows.

use crate::args::LogsArgs;
use crate::output;
use crate::reach::{self, operator};
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::Result;
use futures::StreamExt;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tharsis::observe;
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::connection::Credentials;
use tharsis_protos::handshake::Question;
use tharsis_protos::logs::{LogLine, LogQuery};
use tharsis_protos::peer;
use tharsis_types::{JobId, NodeId};
use tokio::sync::mpsc;

/// The longest time that a call may take until it is answered.
const CALL_WAIT: Duration = Duration::from_secs(5);
/// Batches of lines that wait to be printed.
const BATCHES_MAX: usize = 16;

/// Batches of lines, and the ends of nodes.
type News = mpsc::Sender<(u64, Result<Vec<LogLine>, End>)>;

/// Why there are no more lines of a node.
enum End {
    /// All that was asked for was told.
    Told,
    /// It cannot be asked any more.
    Broken(String),
}

/// A node to ask, and how.
enum Target {
    /// By its socket.
    Own(u64, PathBuf),
    /// By its port.
    Other(u64, String),
}

/// Shows the lines that are asked for.
///
/// # Errors
/// `UnknownNode`, or why no node is reached.
pub fn run(asked: &LogsArgs) -> Result<()> {
    let settings = Settings::read(&asked.settings)?;
    let query =
        LogQuery { job: asked.job.map(JobId), task: asked.task, tail: asked.tail, follow: asked.follow };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let shown = runtime.block_on(async {
        let (targets, own) = targets(asked, &settings).await?;
        let (news, told) = mpsc::channel(BATCHES_MAX);
        let count = targets.len();
        for target in targets {
            ask(target, query, own.clone(), news.clone());
        }
        drop(news);
        show(asked, count, told).await
    });
    // A thread may still wait for the node of this machine.
    runtime.shutdown_background();
    shown
}

/// The nodes to ask, and the credentials for those that are asked by their ports.
async fn targets(asked: &LogsArgs, settings: &Settings) -> Result<(Vec<Target>, Option<Credentials>)> {
    let own = match asked.address {
        None => Some(super::ask(&settings.socket(), Question::Status)?),
        Some(_) => None,
    };
    let is_wanted = |node: u64| asked.node.is_none_or(|wanted| wanted == node);
    let unknown = || Refusal::UnknownNode { node: asked.node.unwrap_or_default() };
    let here = own.as_ref().map(|own| Target::Own(own.node, settings.socket()));
    let control = asked.address.clone().or_else(|| own.as_ref().map(|own| own.control.clone()));
    let own_node = own.map(|own| own.node);
    let is_own = asked.node.is_some() && asked.node == own_node;
    let Some(control) = control.filter(|control| !control.is_empty() && !is_own) else {
        let here: Vec<_> = here.into_iter().filter(|_| own_node.is_some_and(is_wanted)).collect();
        return if here.is_empty() { Err(unknown().into()) } else { Ok((here, None)) };
    };
    let credentials = operator(&control, settings)?;
    let options = ClientOptions { call_deadline: CALL_WAIT, patience: Duration::ZERO };
    let store = ControlClient::connect(&control, &credentials, options).await;
    let (store, _) = store.map_err(|error| reach::refused(&control, &error))?;
    let members = store.list_nodes().await?.nodes.into_iter();
    let mut targets: Vec<_> = members
        .filter(|member| is_wanted(member.id.0))
        .map(|member| match own_node == Some(member.id.0) {
            true => Target::Own(member.id.0, settings.socket()),
            false => Target::Other(member.id.0, member.listen),
        })
        .collect();
    targets.sort_by_key(|target| matches!(target, Target::Other(..)));
    if targets.is_empty() { Err(unknown().into()) } else { Ok((targets, Some(credentials))) }
}

/// Has the lines of a node sent, until nobody reads them.
fn ask(target: Target, query: LogQuery, own: Option<Credentials>, news: News) {
    match target {
        // It ends when the lines are not taken any more, which is noticed with the next ones.
        Target::Own(node, socket) => drop(std::thread::spawn(move || ask_own(node, &socket, query, &news))),
        Target::Other(node, address) => drop(tokio::spawn(async move {
            let end = match own {
                Some(own) => ask_other(node, address, query, &own, &news).await,
                None => End::Broken("there are no credentials for it".to_owned()),
            };
            // Nobody reads the end if the command ends.
            let _told = news.send((node, Err(end))).await;
        })),
    }
}

fn ask_own(node: u64, socket: &Path, query: LogQuery, news: &News) {
    let told = observe::logs(socket, query, |lines| news.blocking_send((node, Ok(lines))).is_ok());
    let end = told.map_or_else(|error| End::Broken(error.failure().message.to_string()), |()| End::Told);
    // Nobody reads the end if the command ends.
    let _told = news.blocking_send((node, Err(end)));
}

async fn ask_other(node: u64, address: String, query: LogQuery, own: &Credentials, news: &News) -> End {
    let mut batches = match peer::logs(address, NodeId(node), own, query, CALL_WAIT).await {
        Ok(batches) => batches,
        Err(error) => return End::Broken(error.to_string()),
    };
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(lines) => {
                if news.send((node, Ok(lines))).await.is_err() {
                    return End::Told;
                }
            }
            Err(error) => return End::Broken(error.to_string()),
        }
    }
    End::Told
}

/// Prints lines: as they come if they are followed, by their time otherwise.
async fn show(
    asked: &LogsArgs,
    count: usize,
    mut told: mpsc::Receiver<(u64, Result<Vec<LogLine>, End>)>,
) -> Result<()> {
    let mut found: Vec<(u64, LogLine)> = Vec::new();
    let mut broken = VecDeque::new();
    while let Some((node, batch)) = told.recv().await {
        match batch {
            Ok(lines) if asked.follow => {
                lines.iter().try_for_each(|line| output::line(&text(node, line, asked.json)))?;
            }
            Ok(lines) => found.extend(lines.into_iter().map(|line| (node, line))),
            // The node that ran the task says that it is over.
            Err(End::Told) if asked.follow && asked.task.is_some() => return Ok(()),
            Err(End::Told) => {}
            Err(End::Broken(cause)) => {
                output::warn(&format!("node {node:016x}: {cause}"));
                broken.push_back(cause);
            }
        }
    }
    found.sort_by_key(|(_, line)| line.unix_ms);
    let first = found.len().saturating_sub(usize::try_from(asked.tail).unwrap_or(usize::MAX));
    found[first..].iter().try_for_each(|(node, line)| output::line(&text(*node, line, asked.json)))?;
    match broken.pop_front() {
        Some(cause) if broken.len() + 1 == count => Err(Refusal::NoNode { cause }.into()),
        _ => Ok(()),
    }
}

fn text(node: u64, line: &LogLine, json: bool) -> String {
    let LogLine { unix_ms, job, pid, is_stderr, text } = line;
    if json {
        let node = format!("{node:016x}");
        let stream = if *is_stderr { "stderr" } else { "stdout" };
        return serde_json::json!({
            "unix_ms": unix_ms, "node": node, "worker": pid, "job": job.0, "stream": stream, "text": text,
        })
        .to_string();
    }
    let stream = if *is_stderr { " err" } else { "" };
    format!("{} node {node:016x} worker {pid} job {}{stream} | {text}", time_of_day(*unix_ms), job.0)
}

/// The time of day (UTC).
fn time_of_day(unix_ms: u64) -> String {
    let (s, ms) = (unix_ms / 1000 % 86_400, unix_ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_and_who_wrote_it() {
        let line = LogLine {
            unix_ms: 1_764_032_463_007,
            job: JobId(3),
            pid: 42,
            is_stderr: true,
            text: "so it goes".to_owned(),
        };
        assert_eq!(
            text(255, &line, false),
            "01:01:03.007 node 00000000000000ff worker 42 job 3 err | so it goes"
        );
        let json: serde_json::Value = serde_json::from_str(&text(255, &line, true)).unwrap();
        assert_eq!((&json["stream"], &json["text"]), (&"stderr".into(), &"so it goes".into()));
    }
}
