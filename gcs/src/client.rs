//! Calls to the control stores that outlast their absences, and a view of the membership that converges.
//!
//! A call goes to the control store that answered last. If that one cannot be reached, or cannot serve now,
//! the next one is called at once; if it is silent for `SILENCE_MAX`, the next one is called as well, and
//! the first answer counts. When all have been tried the call pauses and begins again, until the patience of
//! its caller ends: a control store that restarts, or whose etcd has lost its quorum, is waited for, and what
//! needs nothing of it goes on. All calls are safe to send twice, with one exception: a `kv_put` that must
//! not overwrite is sent once, because after a lost answer nobody could say whose value it is.

use crate::addresses::KnownStores;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::{
    ClusterInfo, CodeUnit, JobPage, JobProgram, JobRequest, KeyPage, LeftReason, Members, NodeChange,
    NodeEvents, NodeInfo, PROTOCOL, PutIf, Registered, Stub, TablesState,
};
use tharsis_protos::revoked::Revoked;
use tharsis_protos::{CallError, Refusal, RefusalCode};
use tharsis_types::{CodeUnitId, JobId, NodeId};
use tokio::time::{Instant, sleep, sleep_until};

/// Between the first attempts.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Between later attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A control store that is silent for this long is not waited for alone.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// Time limits of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// For one answer.
    pub call_deadline: Duration,
    /// For servers that cannot be reached, all attempts of a call together. Zero: one attempt at each.
    pub patience: Duration,
}

/// Calls to the control stores of one cluster. Cheap to clone; all clones share one connection to each.
#[derive(Clone, Debug)]
pub struct ControlClient {
    stores: KnownStores,
    own: Credentials,
    options: ClientOptions,
    stubs: Arc<Mutex<HashMap<String, Stub>>>,
    /// The latest state of the tables that the answer to a renewal told.
    seen: Arc<Mutex<Option<TablesState>>>,
    is_restored: Arc<AtomicBool>,
}

/// The membership as it changes. Streams that break are opened again; what changed meanwhile is shown then.
#[derive(Debug)]
pub struct Membership {
    client: ControlClient,
    /// The open stream and the address of its server.
    events: Option<(String, NodeEvents)>,
    nodes: BTreeMap<NodeId, NodeInfo>,
    queue: VecDeque<NodeChange>,
    /// Takes the lists of machines that were shut out.
    revoked: Revoked,
    /// The highest revision of a list or a change since the tables went back.
    seen_at: u64,
    is_restored: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { call_deadline: Duration::from_secs(5), patience: Duration::from_secs(30) }
    }
}

impl ControlClient {
    /// Calls the control stores at `addresses` (`host:port`, several with commas between them) and checks
    /// that the one that answers speaks our protocol.
    ///
    /// # Errors
    /// [`CallError`] if nobody answers there in time, or somebody else does.
    pub async fn connect(
        addresses: &str,
        own: &Credentials,
        options: ClientOptions,
    ) -> Result<(Self, ClusterInfo), CallError> {
        let client = Self::new(KnownStores::parse(addresses), own, options)?;
        let info = client.cluster_info().await?;
        if PROTOCOL.speaks_with(&info.protocol) {
            return Ok((client, info));
        }
        let reason = format!("it speaks protocol {}, this release {PROTOCOL}", info.protocol);
        let refusal = Refusal::new(RefusalCode::FailedPrecondition, reason);
        Err(CallError::Refused { call: "connect", address: client.address(), refusal })
    }

    /// Calls control stores whose addresses others may know and change too. Checks nothing but the addresses.
    ///
    /// # Errors
    /// [`CallError::Unreachable`] if one of the addresses is none.
    pub fn new(stores: KnownStores, own: &Credentials, options: ClientOptions) -> Result<Self, CallError> {
        let (stubs, seen, is_restored) = Default::default();
        let client = Self { stores, own: own.clone(), options, stubs, seen, is_restored };
        client.stores.in_turn().iter().try_for_each(|address| client.stub(address).map(drop))?;
        Ok(client)
    }

    /// The same calls over the same connections, with another patience.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { options: ClientOptions { patience, ..self.options }, ..self.clone() }
    }

    /// The addresses of all control stores, as `host:port`, the one that answered last first.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.stores.in_turn()
    }

    /// The address of the server that answered last, as `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.stores.current()
    }

    /// The cluster and the release of the server.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, CallError> {
        let info = self.patiently(|stub| async move { stub.cluster_info().await }).await?;
        self.stores.learn(&info.stores);
        Ok(info)
    }

    /// Makes a node a member. Sent again it answers the same.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_node(&self, node: &NodeInfo, clock_unix_ms: u64) -> Result<Registered, CallError> {
        let register = |stub: Stub| {
            let node = node.clone();
            async move { stub.register_node(node, clock_unix_ms).await }
        };
        let registered = self.patiently(register).await?;
        self.stores.learn(&registered.stores);
        Ok(registered)
    }

    /// Renews the lease of a node. False: the others have been told that it is gone, and it must not act on
    /// what it held.
    ///
    /// # Errors
    /// [`CallError`]. One attempt at each control store: the next keep-alive is the next attempt.
    pub async fn keep_alive(&self, node: NodeId) -> Result<bool, CallError> {
        let before = *self.seen.lock();
        let renewed = self.once(&|stub: Stub| async move { stub.keep_alive(node, before).await }).await?;
        self.stores.learn(&renewed.stores);
        self.is_restored.fetch_or(renewed.is_restored, Ordering::Relaxed);
        let mut seen = self.seen.lock();
        let age = |state: &TablesState| (state.incarnation.0, state.revision);
        *seen = (*seen).into_iter().chain(renewed.tables).max_by_key(age);
        Ok(renewed.known)
    }

    /// Whether a renewal was told that the tables went back to an earlier state than one that an earlier
    /// renewal was told: their file or their etcd was restored, or was lost. Ids of jobs that were given out
    /// since then are given out again.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.is_restored.load(Ordering::Relaxed)
    }

    /// Ends a membership; false if there was none.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn unregister_node(&self, node: NodeId, reason: &str) -> Result<bool, CallError> {
        self.patiently(|stub| async move { stub.unregister_node(node, reason).await }).await
    }

    /// Has the control store look for a member whose streams broke; whether it is no member (any more). Each
    /// store is asked once: if none can be reached, nobody is declared dead.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn suspect_node(&self, node: NodeId) -> Result<bool, CallError> {
        self.once(&|stub: Stub| async move { stub.suspect_node(node).await }).await
    }

    /// All members.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_nodes(&self) -> Result<Members, CallError> {
        self.patiently(|stub| async move { stub.list_nodes().await }).await
    }

    /// The membership, from the members of now on.
    #[must_use]
    pub fn membership(&self) -> Membership {
        let (nodes, queue, revoked) = (BTreeMap::new(), VecDeque::new(), Revoked::unheard());
        let (seen_at, is_restored) = (0, false);
        Membership { client: self.clone(), events: None, nodes, queue, revoked, seen_at, is_restored }
    }

    /// Makes a job. `job.request` must be new for each job and the same for the same job.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_job(&self, job: &JobRequest) -> Result<JobId, CallError> {
        let register = |stub: Stub| {
            let job = job.clone();
            async move { stub.register_job(job).await }
        };
        self.patiently(register).await
    }

    /// Ends a job; false if there is none of that id.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn finish_job(&self, job: JobId, succeeded: bool, message: &str) -> Result<bool, CallError> {
        self.patiently(|stub| async move { stub.finish_job(job, succeeded, message).await }).await
    }

    /// Jobs with a larger id than `after` (0 to begin), at most `limit` (0 for a whole page).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_jobs(&self, after: JobId, limit: u32) -> Result<JobPage, CallError> {
        self.patiently(|stub| async move { stub.list_jobs(after, limit).await }).await
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
        self.patiently(|stub| async move { stub.put_code_unit(unit, size_bytes, holder).await }).await
    }

    /// Address from which a code unit can be fetched; `None` if no member holds it.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn get_code_unit(&self, unit: CodeUnitId) -> Result<Option<CodeUnit>, CallError> {
        match self.patiently(|stub| async move { stub.get_code_unit(unit).await }).await {
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
        self.patiently(|stub| async move { stub.put_program(job, unit, node).await }).await
    }

    /// The program of a job; none if its node has not said yet.
    ///
    /// # Errors
    /// [`CallError`], as for all calls; `NotFound` if the job has ended.
    pub async fn get_program(&self, job: JobId) -> Result<JobProgram, CallError> {
        self.patiently(|stub| async move { stub.get_program(job).await }).await
    }

    /// Sets a value.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_put(&self, namespace: &str, key: Bytes, value: Bytes) -> Result<(), CallError> {
        let put = |stub: Stub| {
            let (key, value) = (key.clone(), value.clone());
            async move { stub.kv_put(namespace, key, value, PutIf::Always).await }
        };
        self.patiently(put).await.map(drop)
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
        self.stub(&self.address())?.kv_put(namespace, key, value, PutIf::Absent).await
    }

    /// Replaces a value by another one; false if the key has a value that is not `old`, or none.
    ///
    /// # Errors
    /// [`CallError`]. One attempt: after a lost answer the value may be replaced or not.
    pub async fn kv_replace(
        &self,
        namespace: &str,
        key: Bytes,
        old: Bytes,
        value: Bytes,
    ) -> Result<bool, CallError> {
        self.stub(&self.address())?.kv_put(namespace, key, value, PutIf::Value(old)).await
    }

    /// A value, if there is one.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_get(&self, namespace: &str, key: Bytes) -> Result<Option<Bytes>, CallError> {
        let get = |stub: Stub| {
            let key = key.clone();
            async move { stub.kv_get(namespace, key).await }
        };
        self.patiently(get).await
    }

    /// Removes a value; false if there was none (or an earlier attempt of this call removed it).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_delete(&self, namespace: &str, key: Bytes) -> Result<bool, CallError> {
        let delete = |stub: Stub| {
            let key = key.clone();
            async move { stub.kv_delete(namespace, key, None).await }
        };
        self.patiently(delete).await
    }

    /// Removes a value if it is this one; false if it is not there (or an earlier attempt of this call
    /// removed it). A control store before 2.1 does not look at the value.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_remove(&self, namespace: &str, key: Bytes, value: Bytes) -> Result<bool, CallError> {
        let remove = |stub: Stub| {
            let (key, value) = (key.clone(), Some(value.clone()));
            async move { stub.kv_delete(namespace, key, value).await }
        };
        self.patiently(remove).await
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
        let list = |stub: Stub| {
            let (prefix, after) = (prefix.clone(), after.clone());
            async move { stub.kv_list(namespace, prefix, after, limit).await }
        };
        self.patiently(list).await
    }

    async fn patiently<T, F>(&self, call: impl Fn(Stub) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let end = Instant::now() + self.options.patience;
        let mut pause = PAUSE_MIN;
        loop {
            match self.once(&call).await {
                Err(error) if may_pass(&error) && Instant::now() + pause < end => {
                    tracing::debug!(%error, "trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                other => return other,
            }
        }
    }

    /// One attempt at each control store, until one answers. Dropping the future drops the attempts.
    async fn once<T, F>(&self, call: &impl Fn(Stub) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let attempt = |address: String| async move {
            let answer = match self.stub(&address) {
                Ok(stub) => call(stub).await,
                Err(error) => Err(error),
            };
            (address, answer)
        };
        let mut others = self.stores.in_turn().into_iter();
        let mut attempts: FuturesUnordered<_> = others.next().map(attempt).into_iter().collect();
        let mut others = others.peekable();
        let mut impatient_at = Instant::now() + SILENCE_MAX;
        let mut failed = None;
        loop {
            let silent = tokio::select! {
                biased;
                answered = attempts.next() => match answered {
                    Some((_, Err(error))) if may_differ(&error) => {
                        failed = failed.filter(may_pass).or(Some(error));
                        false
                    }
                    Some((address, answer)) => {
                        self.stores.answered(&address);
                        return answer;
                    }
                    None => return Err(failed.unwrap_or_else(nobody)),
                },
                () = sleep_until(impatient_at), if others.peek().is_some() => true,
            };
            if let Some(address) = others.next() {
                tracing::debug!(address, silent, "calling another control store");
                attempts.push(attempt(address));
                impatient_at = Instant::now() + SILENCE_MAX;
            }
        }
    }

    /// Calls to one control store.
    fn stub(&self, address: &str) -> Result<Stub, CallError> {
        let mut stubs = self.stubs.lock();
        if let Some(stub) = stubs.get(address) {
            return Ok(stub.clone());
        }
        let stub = Stub::new(address, &self.own, self.options.call_deadline)?;
        stubs.insert(address.to_owned(), stub.clone());
        Ok(stub)
    }
}

/// The error of a call for which no address is known.
fn nobody() -> CallError {
    let cause = "no address of a control store is known".to_owned();
    CallError::Unreachable { call: "connect", address: String::new(), cause }
}

/// Whether another control store may answer differently: this one may also be a stranger that took over the
/// port of one that is gone.
fn may_differ(error: &CallError) -> bool {
    may_pass(error) || error.refusal_code() == Some(RefusalCode::Unauthenticated)
}

/// Whether the same call may succeed later. A call that was carried out after all does no harm when it comes
/// again.
fn may_pass(error: &CallError) -> bool {
    let is_late = matches!(error, CallError::Deadline { .. })
        || error.refusal_code() == Some(RefusalCode::DeadlineExceeded);
    is_late || error.is_transient()
}

impl Membership {
    /// The same, with a place for the machines that were shut out: what is heard of them goes there.
    #[must_use]
    pub fn with_revoked(self, revoked: Revoked) -> Self {
        Self { revoked, ..self }
    }

    /// Whether the tables went back to a revision before one that was shown here: their file or their etcd
    /// was restored, or was lost. Ids of jobs that were given out since then are given out again.
    ///
    /// Lists show revisions, and changes of the members and of the lists. If only jobs and values changed
    /// since the copy was taken that was restored, nothing shows it here; renewals of leases show it
    /// ([`ControlClient::is_restored`]).
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// The members as of the last change shown.
    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<NodeId, NodeInfo> {
        &self.nodes
    }

    /// The next change: a join or a leave, never a list. Lists of control stores go to the client, those of
    /// machines that were shut out to the place that was given for them. Begins
    /// with a join per member. Each node is
    /// shown to join once and to leave once, whatever happens to the connection in between.
    ///
    /// # Errors
    /// [`CallError`] if the server refuses, or stays away longer than the client's patience, and once when
    /// the tables went back to an earlier state ([`Membership::is_restored`]); asking again goes on.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Result<NodeChange, CallError> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                self.note(&change);
                return Ok(change);
            }
            let Some((address, events)) = &mut self.events else {
                // Always a list first: a revision means nothing to a server whose store was lost.
                let watch = |stub: Stub| async move {
                    let events = stub.watch_nodes(0).await?;
                    Ok((stub.address().to_owned(), events))
                };
                self.events = Some(self.client.patiently(watch).await?);
                continue;
            };
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                // The server of this stream may hang: others are called instead.
                () = self.client.stores.moved_from(address) => {
                    self.events = None;
                    continue;
                }
            };
            match event {
                Ok(Some(event)) => {
                    let (revision, is_list) = (event.revision, matches!(event.change, NodeChange::Listed(_)));
                    self.take(event.change);
                    let before = self.seen_at;
                    self.seen_at = if is_list { revision } else { before.max(revision) };
                    if self.seen_at < before {
                        self.is_restored = true;
                        return Err(self.went_back());
                    }
                }
                Ok(None) => self.again().await,
                Err(error) if error.is_transient() => self.again().await,
                Err(error) => {
                    self.events = None;
                    return Err(error);
                }
            }
        }
    }

    fn went_back(&self) -> CallError {
        let reason = "the tables of the cluster went back to an earlier state";
        CallError::Refused {
            call: "watch nodes",
            address: self.client.address(),
            refusal: Refusal::new(RefusalCode::FailedPrecondition, reason),
        }
    }

    async fn again(&mut self) {
        self.events = None;
        sleep(PAUSE_MIN).await;
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
            NodeChange::Left { node, .. } if !self.nodes.contains_key(&node) => {}
            NodeChange::Revoked(machines) => self.revoked.hear(machines),
            NodeChange::Stores(addresses) => self.client.stores.learn(&addresses),
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
            NodeChange::Listed(_) | NodeChange::Revoked(_) | NodeChange::Stores(_) => {}
        }
    }
}
