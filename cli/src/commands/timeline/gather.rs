//! Runs of tasks, asked of nodes.

use crate::commands::targets::{CALL_WAIT, Target};
use futures::StreamExt;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis::observe;
use tharsis_gcs::ControlClient;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::JobInfo;
use tharsis_protos::peer;
use tharsis_protos::runs::{RunBatch, RunOutcome, RunQuery};
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::{Attempt, ClientId, JobId, NodeId, TaskId};

/// A run of a task in a worker.
#[derive(Clone, Debug)]
pub struct Run {
    /// The task.
    pub task: TaskId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The node that owns the task.
    pub owner: NodeId,
    /// The name of the call.
    pub name: Arc<str>,
    /// `file:line` of the call.
    pub call_site: Arc<str>,
    /// The worker.
    pub worker: ClientId,
    /// Its process.
    pub pid: u32,
    /// Whether the worker runs others at the same time.
    pub is_concurrent: bool,
    /// When it began, in ns since 1970.
    pub begin: u64,
    /// When it ended, or was asked about.
    pub end: u64,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// Its row among those of the worker.
    pub lane: u32,
}

/// The runs of a node.
#[derive(Clone, Debug, Default)]
pub struct NodeRuns {
    /// The node.
    pub node: u64,
    /// Its address or socket.
    pub place: String,
    /// The runs, in the order in which the node told them.
    pub runs: Vec<Run>,
    /// Runs that it has forgotten.
    pub forgotten: u64,
    /// It remembers all that ended since then, in ns since 1970.
    pub remembers_since: u64,
    /// Texts of the runs, each once.
    texts: BTreeSet<Arc<str>>,
}

/// Why the runs of a node are missing.
#[derive(Debug)]
pub enum Missing {
    /// It did not answer, or broke off.
    Broken(String),
    /// There are more than this process takes.
    TooMany,
}

impl NodeRuns {
    /// No runs of a node yet.
    pub fn new(node: u64, place: String) -> Self {
        Self { node, place, ..Self::default() }
    }

    /// Takes runs, for which there must be room.
    fn add(&mut self, batch: RunBatch, room: &AtomicUsize) -> Result<(), Missing> {
        let RunBatch { spans, forgotten, remembers_since_unix_ns, is_last: _ } = batch;
        let taken = spans.len().max(1);
        let left = |room: usize| room.checked_sub(taken);
        if room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return Err(Missing::TooMany);
        }
        // The last batch knows most.
        (self.forgotten, self.remembers_since) = (forgotten, remembers_since_unix_ns);
        for span in spans {
            self.runs.push(Run {
                task: span.task,
                attempt: span.attempt,
                owner: span.owner,
                name: kept(&mut self.texts, span.name),
                call_site: kept(&mut self.texts, span.call_site),
                worker: span.worker,
                pid: span.pid,
                is_concurrent: span.is_concurrent,
                begin: span.begin_unix_ns,
                end: span.end_unix_ns.max(span.begin_unix_ns),
                outcome: span.outcome,
                lane: 0,
            });
        }
        Ok(())
    }
}

/// One copy of a text.
fn kept(texts: &mut BTreeSet<Arc<str>>, text: String) -> Arc<str> {
    if let Some(known) = texts.get(&*text) {
        return Arc::clone(known);
    }
    let made: Arc<str> = text.into();
    texts.insert(Arc::clone(&made));
    made
}

/// The runs of a node, by its socket or its port. `room` is the number of runs that all nodes may tell.
pub async fn runs_of(
    target: Target,
    query: RunQuery,
    own: Option<Credentials>,
    room: Arc<AtomicUsize>,
) -> Result<NodeRuns, Missing> {
    match target {
        Target::Own(node, socket) => {
            let asked = tokio::task::spawn_blocking(move || ask_own(node, &socket, query, &room));
            asked.await.unwrap_or_else(|error| Err(Missing::Broken(error.to_string())))
        }
        Target::Other(node, address) => match own {
            Some(own) => ask_other(node, address, query, &own, &room).await,
            None => Err(Missing::Broken("there are no credentials for it".to_owned())),
        },
    }
}

fn ask_own(node: u64, socket: &Path, query: RunQuery, room: &AtomicUsize) -> Result<NodeRuns, Missing> {
    let mut found = NodeRuns::new(node, socket.display().to_string());
    let mut added = Ok(());
    let told = observe::runs(socket, query, |batch| {
        added = found.add(batch, room);
        added.is_ok()
    });
    added?;
    told.map_err(|error| Missing::Broken(error.failure().message.to_string()))?;
    Ok(found)
}

async fn ask_other(
    node: u64,
    address: String,
    query: RunQuery,
    own: &Credentials,
    room: &AtomicUsize,
) -> Result<NodeRuns, Missing> {
    let mut found = NodeRuns::new(node, address.clone());
    let asked = peer::runs(address, NodeId(node), own, query, CALL_WAIT).await;
    let mut batches = asked.map_err(|error| Missing::Broken(cause(&error)))?;
    loop {
        let late = |_| Missing::Broken(format!("it was silent for {} ms", CALL_WAIT.as_millis()));
        match tokio::time::timeout(CALL_WAIT, batches.next()).await.map_err(late)? {
            Some(Ok(batch)) => {
                let is_last = batch.is_last;
                found.add(batch, room)?;
                if is_last {
                    return Ok(found);
                }
            }
            Some(Err(error)) => return Err(Missing::Broken(cause(&error))),
            None => return Err(Missing::Broken("the node ended".to_owned())),
        }
    }
}

fn cause(error: &CallError) -> String {
    if error.refusal_code() == Some(RefusalCode::Unimplemented) {
        return "it is of a release that tells no runs".to_owned();
    }
    error.to_string()
}

/// The records of these jobs.
///
/// # Errors
/// If the control store does not tell them.
pub async fn jobs(control: &ControlClient, wanted: &BTreeSet<JobId>) -> Result<Vec<JobInfo>, CallError> {
    let mut found = Vec::new();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(found) };
    let mut after = JobId(first.0.saturating_sub(1));
    while after < *last {
        let page = control.list_jobs(after, 0).await?;
        let Some(end) = page.jobs.last().map(|job| job.id).filter(|end| after < *end) else { break };
        found.extend(page.jobs.into_iter().filter(|job| wanted.contains(&job.id)));
        after = end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::runs::RunSpan;

    fn batch(count: usize) -> RunBatch {
        let span = RunSpan {
            task: TaskId::root(JobId(1)),
            attempt: 0,
            owner: NodeId(1),
            name: "f".to_owned(),
            call_site: "f.rs:3".to_owned(),
            worker: ClientId(2),
            pid: 3,
            is_concurrent: false,
            begin_unix_ns: 9,
            end_unix_ns: 4,
            outcome: RunOutcome::Returned,
        };
        RunBatch { spans: vec![span; count], forgotten: 5, remembers_since_unix_ns: 6, is_last: false }
    }

    #[test]
    fn runs_of_all_nodes_have_room_together_and_their_texts_are_kept_once() {
        let room = AtomicUsize::new(5);
        let mut nodes = [NodeRuns::new(1, "a:1".to_owned()), NodeRuns::new(2, "b:1".to_owned())];
        nodes[0].add(batch(2), &room).unwrap();
        nodes[1].add(batch(2), &room).unwrap();
        assert!(Arc::ptr_eq(&nodes[0].runs[0].name, &nodes[0].runs[1].name));
        assert_eq!((nodes[0].runs[0].begin, nodes[0].runs[0].end), (9, 9), "a clock was set back");
        assert_eq!((nodes[0].forgotten, nodes[0].remembers_since), (5, 6));
        assert!(matches!(nodes[1].add(batch(2), &room), Err(Missing::TooMany)));
        assert_eq!(nodes[1].runs.len(), 2);
        // A node that tells nothing for ever comes to an end too.
        nodes[1].add(batch(0), &room).unwrap();
        assert!(nodes[1].add(batch(0), &room).is_err());
    }
}
