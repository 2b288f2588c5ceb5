//! `tharsis logs`: what workers wrote, on any node of the cluster.
//!
//! A reader that follows all nodes watches the membership, and asks nodes that join.

use super::targets::{CALL_WAIT, Target, Targets, targets};
use crate::args::LogsArgs;
use crate::output;
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::Result;
use futures::StreamExt;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tharsis::observe;
use tharsis_gcs::ControlClient;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeChange;
use tharsis_protos::logs::{LogLine, LogQuery, TAIL_LINES_MAX};
use tharsis_protos::peer;
use tharsis_types::{JobId, NodeId};
use tokio::sync::mpsc;

/// Batches of lines that wait to be printed.
const BATCHES_MAX: usize = 16;
/// Pause between attempts to watch the membership while the control store is away.
const WATCH_PAUSE: Duration = Duration::from_millis(500);

/// Sender of the news of nodes, each with the node's id.
type News = mpsc::Sender<(u64, Heard)>;

/// News of a node.
enum Heard {
    /// It has joined, and is asked from now on.
    Joined,
    /// Lines of its workers.
    Lines(Vec<LogLine>),
    /// There are no more.
    End(End),
}

/// Why there are no more lines of a node.
enum End {
    /// All that was asked for was told.
    Told,
    /// It cannot be asked any more.
    Broken(String),
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
        let Targets { nodes, cluster } = targets(asked.node, asked.address.as_deref(), &settings).await?;
        let (news, told) = mpsc::channel(BATCHES_MAX);
        let asked_first: BTreeSet<u64> = nodes.iter().map(Target::node).collect();
        let own = cluster.as_ref().map(|(_, own)| own.clone());
        for target in nodes {
            ask(target, query, own.clone(), news.clone());
        }
        let count = asked_first.len();
        if let Some((control, own)) = cluster.filter(|_| asked.follow && asked.node.is_none()) {
            tokio::spawn(follow_joins(control, own, query, asked_first, news));
        } else {
            drop(news);
        }
        show(asked, count, told).await
    });
    // A thread may still wait for the node of this machine.
    runtime.shutdown_background();
    shown
}

/// Asks nodes that join for their lines, until nobody reads them.
async fn follow_joins(
    control: ControlClient,
    own: Credentials,
    query: LogQuery,
    mut known: BTreeSet<u64>,
    news: News,
) {
    // All that its workers wrote: the reader was there before them.
    let query = LogQuery { tail: TAIL_LINES_MAX, ..query };
    let mut membership = control.membership();
    loop {
        let change = tokio::select! {
            () = news.closed() => return,
            change = membership.next() => change,
        };
        match change {
            Ok(NodeChange::Joined(node)) if known.insert(node.id.0) => {
                if news.send((node.id.0, Heard::Joined)).await.is_err() {
                    return;
                }
                ask(Target::Other(node.id.0, node.listen), query, Some(own.clone()), news.clone());
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(WATCH_PAUSE).await,
        }
    }
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
            let _told = news.send((node, Heard::End(end))).await;
        })),
    }
}

fn ask_own(node: u64, socket: &Path, query: LogQuery, news: &News) {
    let told = observe::logs(socket, query, |lines| news.blocking_send((node, Heard::Lines(lines))).is_ok());
    let end = told.map_or_else(|error| End::Broken(error.failure().message.to_string()), |()| End::Told);
    // Nobody reads the end if the command ends.
    let _told = news.blocking_send((node, Heard::End(end)));
}

async fn ask_other(node: u64, address: String, query: LogQuery, own: &Credentials, news: &News) -> End {
    let mut batches = match peer::logs(address, NodeId(node), own, query, CALL_WAIT).await {
        Ok(batches) => batches,
        Err(error) => return End::Broken(error.to_string()),
    };
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(lines) => {
                if news.send((node, Heard::Lines(lines))).await.is_err() {
                    return End::Told;
                }
            }
            Err(error) => return End::Broken(error.to_string()),
        }
    }
    End::Told
}

/// Prints lines of `count` nodes and those that join: as they come if they are followed, by their time
/// otherwise.
async fn show(asked: &LogsArgs, count: usize, mut told: mpsc::Receiver<(u64, Heard)>) -> Result<()> {
    let mut found: Vec<(u64, LogLine)> = Vec::new();
    let mut asked_count = count;
    let mut left_count = count;
    let mut broken = Vec::new();
    while 0 < left_count {
        let Some((node, heard)) = told.recv().await else { break };
        match heard {
            Heard::Joined => {
                asked_count += 1;
                left_count += 1;
            }
            Heard::Lines(lines) if asked.follow => {
                lines.iter().try_for_each(|line| output::line(&text(node, line, asked.json)))?;
            }
            Heard::Lines(lines) => found.extend(lines.into_iter().map(|line| (node, line))),
            // The node that ran the task says that it is over.
            Heard::End(End::Told) if asked.follow && asked.task.is_some() => return Ok(()),
            Heard::End(End::Told) => left_count -= 1,
            Heard::End(End::Broken(cause)) => {
                left_count -= 1;
                output::warn(&format!("node {node:016x}: {cause}"));
                broken.push(cause);
            }
        }
    }
    found.sort_by_key(|(_, line)| line.unix_ms);
    let first = found.len().saturating_sub(usize::try_from(asked.tail).unwrap_or(usize::MAX));
    found[first..].iter().try_for_each(|(node, line)| output::line(&text(*node, line, asked.json)))?;
    match broken.first() {
        Some(cause) if broken.len() == asked_count => Err(Refusal::NoNode { cause: cause.clone() }.into()),
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
    let text = output::plain(text);
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
