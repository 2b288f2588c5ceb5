//! `tharsis timeline`: the runs of tasks in their workers, as programs for traces show them.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | the command, and its file |
//! | `gather.rs` | what nodes and the control store tell |
//! | `lanes.rs` | rows of workers |
//! | `trace.rs` | the form of the file |

mod gather;
mod lanes;
mod trace;

use super::targets::{Targets, targets};
use crate::args::TimelineArgs;
use crate::output;
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::{Context, Result};
use gather::{Missing, NodeRuns, runs_of};
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{SystemTime, UNIX_EPOCH};
use tharsis_gcs::ControlClient;
use tharsis_protos::control::JobInfo;
use tharsis_protos::runs::RunQuery;
use tharsis_types::JobId;
use tokio::task::JoinSet;
use trace::JobBar;

/// Runs that are taken from all nodes together: about 500 MB.
const RUNS_MAX: usize = 4_000_000;
/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// Writes the runs that are asked for.
///
/// # Errors
/// `UnknownNode`, `ResourceExhausted` for too many runs, why no node is reached, or why the file cannot be
/// written.
pub fn run(asked: &TimelineArgs) -> Result<()> {
    let settings = Settings::read(&asked.settings)?;
    let since_unix_ns = asked.since.map_or(0, |since| {
        let begin = SystemTime::now().checked_sub(since).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        begin.map_or(0, |begin| u64::try_from(begin.as_nanos()).unwrap_or(u64::MAX))
    });
    let query = RunQuery { job: asked.job.map(JobId), task: asked.task, since_unix_ns };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let gathered = runtime.block_on(gather_all(asked, &settings, query));
    // A thread may still wait for the node of this machine.
    runtime.shutdown_background();
    let (mut nodes, jobs) = gathered?;
    nodes.sort_by_key(|node| node.node);
    nodes.iter_mut().for_each(|node| lanes::arrange(&mut node.runs));
    if nodes.iter().all(|node| node.runs.is_empty()) {
        output::warn("no node remembers a run that was asked for, so the timeline has none");
    }
    let path = asked.output.as_deref().filter(|path| *path != Path::new("-"));
    match path {
        None => write_out(&nodes, &jobs),
        Some(path) => write_file(path, &nodes, &jobs).with_context(|| path.display().to_string()),
    }
}

/// Asks the nodes and the control store. A node that does not answer is warned about.
async fn gather_all(
    asked: &TimelineArgs,
    settings: &Settings,
    query: RunQuery,
) -> Result<(Vec<NodeRuns>, Vec<JobBar>)> {
    let Targets { nodes, cluster } = targets(asked.node, asked.address.as_deref(), settings).await?;
    let (count, room) = (nodes.len(), Arc::new(AtomicUsize::new(RUNS_MAX)));
    let mut asking = JoinSet::new();
    for target in nodes {
        let own = cluster.as_ref().map(|(_, own)| own.clone());
        let (node, room) = (target.node(), Arc::clone(&room));
        asking.spawn(async move { (node, runs_of(target, query, own, room).await) });
    }
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    while let Some(told) = asking.join_next().await {
        match told? {
            (_, Ok(runs)) => found.push(runs),
            (_, Err(Missing::TooMany)) => {
                let cause = format!("more than {RUNS_MAX} runs; ask for fewer with --since, --job or --node");
                return Err(Refusal::ResourceExhausted { cause }.into());
            }
            (node, Err(Missing::Broken(cause))) => {
                output::warn(&format!("node {node:016x}: {cause}"));
                broken.push(cause);
            }
        }
    }
    if let Some(cause) = broken.first().filter(|_| broken.len() == count) {
        return Err(Refusal::NoNode { cause: cause.clone() }.into());
    }
    let jobs = match &cluster {
        Some((control, _)) => bars(control, &found, query.since_unix_ns).await,
        None => Vec::new(),
    };
    Ok((found, jobs))
}

/// The jobs of runs.
async fn bars(control: &ControlClient, nodes: &[NodeRuns], since_unix_ns: u64) -> Vec<JobBar> {
    let runs = nodes.iter().flat_map(|node| &node.runs);
    let wanted: BTreeSet<JobId> = runs.map(|run| run.task.job()).collect();
    match gather::jobs(control, &wanted).await {
        Ok(jobs) => jobs.into_iter().map(|job| bar(job, since_unix_ns)).collect(),
        Err(error) => {
            output::warn(&format!("jobs are not shown: {error}"));
            Vec::new()
        }
    }
}

fn bar(job: JobInfo, since_unix_ns: u64) -> JobBar {
    let outcome = match &job.end {
        None => "running",
        Some(end) if end.succeeded => "succeeded",
        Some(_) => "failed",
    };
    JobBar {
        job: job.id,
        name: if job.name.is_empty() { job.entrypoint } else { job.name },
        begin: job.started_unix_ms.saturating_mul(MS).max(since_unix_ns),
        end: job.end.map(|end| end.ended_unix_ms.saturating_mul(MS)),
        outcome,
    }
}

/// Writes to standard output. A reader that goes away ends the command quietly.
fn write_out(nodes: &[NodeRuns], jobs: &[JobBar]) -> Result<()> {
    let mut to = BufWriter::new(std::io::stdout().lock());
    match trace::write(&mut to, nodes, jobs).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => Ok(outcome?),
    }
}

/// Writes a file, which is whole as soon as it is there. What is no file, such as a pipe, is written to.
fn write_file(path: &Path, nodes: &[NodeRuns], jobs: &[JobBar]) -> Result<()> {
    // Not the link is replaced but the file behind it.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        let mut to = BufWriter::new(File::create(&path)?);
        trace::write(&mut to, nodes, jobs)?;
        return Ok(to.flush()?);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Those of the file that it replaces, or of other files, by the umask.
    let replaced = std::fs::metadata(&path).map(|found| found.permissions());
    let permissions = replaced.unwrap_or_else(|_| Permissions::from_mode(0o666));
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
    let mut to = BufWriter::new(&mut file);
    trace::write(&mut to, nodes, jobs)?;
    to.flush()?;
    drop(to);
    file.persist(&path).map_err(|refused| refused.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_whole_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("trace.json"), folder.path().join("link"));
        std::fs::write(&path, "before").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_file(&link, &[], &[]).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("traceEvents"));
        assert!(link.is_symlink());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        write_file(&folder.path().join("new.json"), &[], &[]).unwrap();
        assert!(write_file(folder.path(), &[], &[]).is_err(), "it is a folder");
        assert!(write_file(&folder.path().join("none/trace.json"), &[], &[]).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn the_bar_of_a_job_begins_where_the_timeline_does() {
        let job = JobInfo {
            id: JobId(3),
            name: String::new(),
            namespace: String::new(),
            code_unit: None,
            driver_node: tharsis_types::NodeId(1),
            entrypoint: "./train".to_owned(),
            started_unix_ms: 5,
            end: None,
            terms: None,
        };
        let whole = bar(job.clone(), 0);
        assert_eq!(
            (whole.name.as_str(), whole.begin, whole.end, whole.outcome),
            ("./train", 5 * MS, None, "running")
        );
        assert_eq!(bar(job, 7 * MS).begin, 7 * MS);
    }
}
