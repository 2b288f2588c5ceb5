//! Calls to the control store that outlast its short absences, and a view of the membership that converges.
//!
//! A call is tried again while the server cannot be reached or does not answer in time, until the patience of
//! its caller ends: a control store that restarts, or whose etcd has lost its quorum, is waited for, and what
//! needs nothing of it goes on. All calls are safe to send twice, with one exception: a `kv_put` that must
//! not overwrite is sent once, because after a lost answer nobody could say whose value it is.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::time::Duration;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::{
    ClusterInfo, CodeUnit, JobPage, JobRequest, KeyPage, LeftReason, Members, NodeChange, NodeEvents,
    NodeInfo, NodeLoad, PROTOCOL, Registered, Stub,
};
use tharsis_protos::{CallError, Refusal, RefusalCode};
use tharsis_types::{CodeUnitId, JobId, NodeId};
use tokio::time::Instant;

/// Between the first attempts.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Between later attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Time limits of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// For one answer.
    pub call_deadline: Duration,
    /// For a server that cannot be reached, all attempts of a call together. Zero: one attempt.
    pub patience: Duration,
}

/// Calls to one control store. Cheap to clone; all clones share one connection.
#[derive(Clone, Debug)]
pub struct ControlClient {
    stub: Stub,
    patience: Duration,
}

/// The membership as it changes. Streams that break are opened again; what changed meanwhile is shown then.
#[derive(Debug)]
pub struct Membership {
    client: ControlClient,
    events: Option<NodeEvents>,
    nodes: BTreeMap<NodeId, NodeInfo>,
    queue: VecDeque<NodeChange>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { call_deadline: Duration::from_secs(5), patience: Duration::from_secs(30) }
    }
}

impl ControlClient {
    /// Calls the control store at `address` (`host:port`) and checks that it speaks our protocol.
    ///
    /// # Errors
    /// [`CallError`] if nobody answers there in time, or somebody else does.
    pub async fn connect(
        address: &str,
        own: &Credentials,
        options: ClientOptions,
    ) -> Result<(Self, ClusterInfo), CallError> {
        let stub = Stub::new(address, own, options.call_deadline)?;
        let client = Self::over(stub, options.patience);
        let info = client.cluster_info().await?;
        if PROTOCOL.speaks_with(&info.protocol) {
            return Ok((client, info));
        }
        let reason = format!("it speaks protocol {}, this release {PROTOCOL}", info.protocol);
        let refusal = Refusal::new(RefusalCode::FailedPrecondition, reason);
        Err(CallError::Refused { call: "connect", address: address.to_owned(), refusal })
    }

    /// Calls over a stub that someone else made. Checks nothing.
    #[must_use]
    pub fn over(stub: Stub, patience: Duration) -> Self {
        Self { stub, patience }
    }

    /// The address of the server, as `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        self.stub.address()
    }

    /// The cluster and the release of the server.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, CallError> {
        self.patiently(|| self.stub.cluster_info()).await
    }

    /// Makes a node a member. Sent again it answers the same.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_node(&self, node: &NodeInfo, clock_unix_ms: u64) -> Result<Registered, CallError> {
        self.patiently(|| self.stub.register_node(node.clone(), clock_unix_ms)).await
    }

    /// Renews the lease of a node. False: the others have been told that it is gone, and it must not act on
    /// what it held.
    ///
    /// # Errors
    /// [`CallError`]. One attempt: the next keep-alive is the next attempt.
    pub async fn keep_alive(&self, node: NodeId, load: NodeLoad) -> Result<bool, CallError> {
        self.stub.keep_alive(node, load).await
    }

    /// Ends a membership; false if there was none.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn unregister_node(&self, node: NodeId, reason: &str) -> Result<bool, CallError> {
        self.patiently(|| self.stub.unregister_node(node, reason)).await
    }

    /// Has the control store look for a member whose streams broke; whether it is no member (any more). It is
    /// asked once: if it cannot be reached, nobody is declared dead.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn suspect_node(&self, node: NodeId) -> Result<bool, CallError> {
        self.stub.suspect_node(node).await
    }

    /// All members.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_nodes(&self) -> Result<Members, CallError> {
        self.patiently(|| self.stub.list_nodes()).await
    }

    /// The membership, from the members of now on.
    #[must_use]
    pub fn membership(&self) -> Membership {
        Membership { client: self.clone(), events: None, nodes: BTreeMap::new(), queue: VecDeque::new() }
    }

    /// Makes a job. `job.request` must be new for each job and the same for the same job.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_job(&self, job: &JobRequest) -> Result<JobId, CallError> {
        self.patiently(|| self.stub.register_job(job.clone())).await
    }

    /// Ends a job; false if there is none of that id.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn finish_job(&self, job: JobId, succeeded: bool, message: &str) -> Result<bool, CallError> {
        self.patiently(|| self.stub.finish_job(job, succeeded, message)).await
    }

    /// Jobs with a larger id than `after` (0 to begin), at most `limit` (0 for a whole page).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_jobs(&self, after: JobId, limit: u32) -> Result<JobPage, CallError> {
        self.patiently(|| self.stub.list_jobs(after, limit)).await
    }

    /// Says that a node holds a code unit, for as long as it is a member.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn put_code_unit(
        &self,
        unit: CodeUnitId,
        size_bytes: u64,
        holder: NodeId,
    ) -> Result<(), CallError> {
        self.patiently(|| self.stub.put_code_unit(unit, size_bytes, holder)).await
    }

    /// Address from which a code unit can be fetched; `None` if no member holds it.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn get_code_unit(&self, unit: CodeUnitId) -> Result<Option<CodeUnit>, CallError> {
        match self.patiently(|| self.stub.get_code_unit(unit)).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.refusal_code() == Some(RefusalCode::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says which program a job runs. The node must be the job's own and hold the code unit.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn put_program(&self, job: JobId, unit: CodeUnitId, node: NodeId) -> Result<(), CallError> {
        self.patiently(|| self.stub.put_program(job, unit, node)).await
    }

    /// The program of a job; none if its node has not said yet.
    ///
    /// # Errors
    /// [`CallError`], as for all calls; `NotFound` if the job has ended.
    pub async fn get_program(&self, job: JobId) -> Result<Option<CodeUnitId>, CallError> {
        self.patiently(|| self.stub.get_program(job)).await
    }

    /// Sets a value.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_put(&self, namespace: &str, key: Bytes, value: Bytes) -> Result<(), CallError> {
        self.patiently(|| self.stub.kv_put(namespace, key.clone(), value.clone(), false)).await.map(drop)
    }

    /// Sets a value if there is none; false if there is one.
    ///
    /// # Errors
    /// [`CallError`]. One attempt: after a lost answer the value that is there may be ours or not.
    pub async fn kv_put_if_absent(
        &self,
        namespace: &str,
        key: Bytes,
        value: Bytes,
    ) -> Result<bool, CallError> {
        self.stub.kv_put(namespace, key, value, true).await
    }

    /// A value, if there is one.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_get(&self, namespace: &str, key: Bytes) -> Result<Option<Bytes>, CallError> {
        self.patiently(|| self.stub.kv_get(namespace, key.clone())).await
    }

    /// Removes a value; false if there was none (or an earlier attempt of this call removed it).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_delete(&self, namespace: &str, key: Bytes) -> Result<bool, CallError> {
        self.patiently(|| self.stub.kv_delete(namespace, key.clone())).await
    }

    /// Keys that begin with `prefix` and come after `after` (empty to begin), at most `limit` (0 for a whole
    /// page).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_list(
        &self,
        namespace: &str,
        prefix: Bytes,
        after: Bytes,
        limit: u32,
    ) -> Result<KeyPage, CallError> {
        self.patiently(|| self.stub.kv_list(namespace, prefix.clone(), after.clone(), limit)).await
    }

    async fn patiently<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let end = Instant::now() + self.patience;
        let mut pause = PAUSE_MIN;
        loop {
            match call().await {
                Err(error) if may_pass(&error) && Instant::now() + pause < end => {
                    tracing::debug!(%error, "trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                other => return other,
            }
        }
    }
}

/// Whether the same call may succeed later. A call that was carried out after all does no harm when it comes
/// again.
fn may_pass(error: &CallError) -> bool {
    let is_late = matches!(error, CallError::Deadline { .. })
        || error.refusal_code() == Some(RefusalCode::DeadlineExceeded);
    is_late || error.is_transient()
}

impl Membership {
    /// The members as of the last change shown.
    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<NodeId, NodeInfo> {
        &self.nodes
    }

    /// The next change: a join, a leave or a load, never a list. Begins with a join per member. Each node is
    /// shown to join once and to leave once, whatever happens to the connection in between.
    ///
    /// # Errors
    /// [`CallError`] if the server refuses, or stays away longer than the client's patience; asking again
    /// goes on.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Result<NodeChange, CallError> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                self.note(&change);
                return Ok(change);
            }
            let Some(events) = &mut self.events else {
                // Always a list first: a revision means nothing to a server whose store was lost.
                let client = &self.client;
                self.events = Some(client.patiently(|| client.stub.watch_nodes(0)).await?);
                continue;
            };
            match events.next().await {
                Ok(Some(event)) => self.take(event.change),
                Ok(None) => self.again().await,
                Err(error) if error.is_transient() => self.again().await,
                Err(error) => {
                    self.events = None;
                    return Err(error);
                }
            }
        }
    }

    async fn again(&mut self) {
        self.events = None;
        tokio::time::sleep(PAUSE_MIN).await;
    }

    /// Queues what is new in an event.
    fn take(&mut self, change: NodeChange) {
        match change {
            NodeChange::Listed(nodes) => {
                let listed: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
                let gone = self.nodes.keys().filter(|node| !listed.contains(node));
                let left = gone.map(|node| NodeChange::Left { node: *node, reason: LeftReason::Expired });
                self.queue.extend(left);
                let known = &self.nodes;
                self.queue.extend(
                    nodes.into_iter().filter(|node| !known.contains_key(&node.id)).map(NodeChange::Joined),
                );
            }
            NodeChange::Joined(node) if self.nodes.contains_key(&node.id) => {}
            NodeChange::Left { node, .. } | NodeChange::Load { node, .. }
                if !self.nodes.contains_key(&node) => {}
            change => self.queue.push_back(change),
        }
    }

    fn note(&mut self, change: &NodeChange) {
        match change {
            NodeChange::Joined(node) => {
                self.nodes.insert(node.id, node.clone());
            }
            NodeChange::Left { node, .. } => {
                self.nodes.remove(node);
            }
            NodeChange::Listed(_) | NodeChange::Load { .. } => {}
        }
    }
}
