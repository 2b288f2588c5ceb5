//! The caller's side: one function per call, each with the deadline of the stub and checked answers.

use super::wire::{hash, machines, nodes, stores};
use super::*;
use crate::call::{CallError, chain};
use crate::connection::{Called, Credentials};
use crate::generated::control as wire;
use crate::generated::control::control_client::ControlClient;
use crate::message::{self, BadMessage};
use std::future::Future;
use std::sync::Arc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// The stream of a watch sends a probe this often when it is silent, so that a dead server is noticed.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// A probe that is not answered for this long ends the connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls to one control store. Cheap to clone; all clones share one connection, which is made when it is
/// first needed and made again when it breaks. Each call is one attempt.
#[derive(Clone, Debug)]
pub struct Stub {
    client: ControlClient<Channel>,
    address: Arc<str>,
    deadline: Duration,
}

/// Changes of the membership as they arrive.
#[derive(Debug)]
pub struct NodeEvents {
    events: tonic::Streaming<wire::NodeEvent>,
    address: Arc<str>,
}

impl Stub {
    /// Calls to the control store at `address` (`host:port`), each of at most `deadline`.
    ///
    /// # Errors
    /// [`CallError::Unreachable`] if that is not an address. Whether someone answers there shows with the
    /// first call.
    pub fn new(address: &str, own: &Credentials, deadline: Duration) -> Result<Self, CallError> {
        let unreachable =
            |cause: String| CallError::Unreachable { call: "connect", address: address.to_owned(), cause };
        message::address("address", address.to_owned()).map_err(|bad| unreachable(bad.to_string()))?;
        let endpoint =
            Endpoint::from_shared(format!("http://{address}")).map_err(|error| unreachable(chain(&error)))?;
        let endpoint = endpoint
            .connect_timeout(deadline)
            .http2_keep_alive_interval(PROBE_INTERVAL)
            .keep_alive_timeout(PROBE_TIMEOUT);
        Ok(Self::over(own.channel(&endpoint, address, Called::Control), address, deadline))
    }

    /// Calls over a connection that someone else made (with certificates, over a socket); `address` is for
    /// errors.
    #[must_use]
    pub fn over(channel: Channel, address: &str, deadline: Duration) -> Self {
        let client = ControlClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Self { client, address: address.into(), deadline }
    }

    /// The address of the server, as `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The longest that a call takes.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Identity of the cluster and release of its control store.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, CallError> {
        let call = "cluster info";
        let mut client = self.client.clone();
        let answer = self.within(call, client.cluster_info(wire::ClusterInfoRequest {})).await?;
        self.checked(call, move || {
            Ok(ClusterInfo {
                cluster: ClusterId(message::fixed("cluster_id", &answer.cluster_id)?),
                protocol: message::required("protocol", answer.protocol)?.into(),
                version: message::text("version", answer.version, TEXT_BYTES_MAX)?,
                stores: stores(answer.stores)?,
                revoked: machines("revoked", answer.revoked)?,
            })
        })
    }

    /// Makes a node a member.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_node(&self, node: NodeInfo, clock_unix_ms: u64) -> Result<Registered, CallError> {
        let call = "register node";
        let request = wire::RegisterNodeRequest {
            node: Some(node.into()),
            protocol: Some(PROTOCOL.into()),
            clock_unix_ms,
        };
        let mut client = self.client.clone();
        let answer = self.within(call, client.register_node(request)).await?;
        self.checked(call, move || {
            Ok(Registered {
                lease_ttl: Duration::from_millis(answer.lease_ttl_ms),
                clock_skew_ms: answer.clock_skew_ms,
                stores: stores(answer.stores)?,
            })
        })
    }

    /// Renews the lease of a node, which has seen a state of the tables.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn keep_alive(&self, node: NodeId, seen: Option<TablesState>) -> Result<Renewed, CallError> {
        let call = "keep alive";
        let request = wire::KeepAliveRequest { node_id: node.0, seen: seen.map(Into::into) };
        let mut client = self.client.clone();
        let answer = self.within(call, client.keep_alive(request)).await?;
        self.checked(call, move || {
            Ok(Renewed {
                known: answer.known,
                stores: stores(answer.stores)?,
                tables: answer.tables.map(Into::into),
                is_restored: answer.restored,
            })
        })
    }

    /// Ends a membership; false if there was none.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn unregister_node(&self, node: NodeId, reason: &str) -> Result<bool, CallError> {
        let request = wire::UnregisterNodeRequest { node_id: node.0, reason: reason.to_owned() };
        let mut client = self.client.clone();
        Ok(self.within("unregister node", client.unregister_node(request)).await?.known)
    }

    /// Has the control store look for a member whose streams broke; whether it is no member (any more).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn suspect_node(&self, node: NodeId) -> Result<bool, CallError> {
        let request = wire::SuspectNodeRequest { node_id: node.0 };
        let mut client = self.client.clone();
        Ok(self.within("suspect node", client.suspect_node(request)).await?.gone)
    }

    /// All members.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_nodes(&self) -> Result<Members, CallError> {
        let call = "list nodes";
        let mut client = self.client.clone();
        let answer = self.within(call, client.list_nodes(wire::ListNodesRequest {})).await?;
        self.checked(call, move || Ok(Members { nodes: nodes(answer.members)?, revision: answer.revision }))
    }

    /// Changes of the membership from a revision on; 0 for a list first. The deadline is for the start only.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn watch_nodes(&self, from_revision: u64) -> Result<NodeEvents, CallError> {
        let mut client = self.client.clone();
        // No deadline in the request itself: it would be one for the whole stream.
        let call = client.watch_nodes(wire::WatchNodesRequest { from_revision });
        let events = self.within("watch nodes", call).await?;
        Ok(NodeEvents { events, address: self.address.clone() })
    }

    /// Makes a job, or finds the one that the same request made.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn register_job(&self, job: JobRequest) -> Result<JobId, CallError> {
        let call = "register job";
        let mut client = self.client.clone();
        let answer = self.within(call, client.register_job(wire::RegisterJobRequest::from(job))).await?;
        self.checked(call, || message::job_id("job_id", answer.job_id))
    }

    /// Ends a job; false if there is none of that id.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn finish_job(&self, job: JobId, succeeded: bool, message: &str) -> Result<bool, CallError> {
        let request = wire::FinishJobRequest { job_id: job.0, succeeded, message: message.to_owned() };
        let mut client = self.client.clone();
        Ok(self.within("finish job", client.finish_job(request)).await?.known)
    }

    /// Jobs with a larger id than `after` (0 to begin), at most `limit` (0 for a whole page).
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn list_jobs(&self, after: JobId, limit: u32) -> Result<JobPage, CallError> {
        let call = "list jobs";
        let mut client = self.client.clone();
        let request = wire::ListJobsRequest { after_job: after.0, limit };
        let answer = self.within(call, client.list_jobs(request)).await?;
        self.checked(call, move || {
            let jobs: Result<_, BadMessage> = answer.jobs.into_iter().map(JobInfo::try_from).collect();
            Ok(JobPage { jobs: jobs.map_err(|bad| bad.within("jobs"))?, more: answer.more })
        })
    }

    /// Says that a node holds a code unit.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn put_code_unit(
        &self,
        unit: CodeUnitId,
        size_bytes: u64,
        holder: NodeId,
    ) -> Result<(), CallError> {
        let request = wire::PutCodeUnitRequest { hash: hash(Some(unit)), size_bytes, holder: holder.0 };
        let mut client = self.client.clone();
        self.within("put code unit", client.put_code_unit(request)).await.map(drop)
    }

    /// Places where a code unit can be fetched.
    ///
    /// # Errors
    /// [`CallError`], as for all calls; refused as not found if no member holds it.
    pub async fn get_code_unit(&self, unit: CodeUnitId) -> Result<CodeUnit, CallError> {
        let call = "get code unit";
        let mut client = self.client.clone();
        let request = wire::GetCodeUnitRequest { hash: hash(Some(unit)) };
        let answer = self.within(call, client.get_code_unit(request)).await?;
        self.checked(call, || {
            let holders = answer.holders.iter().map(|id| message::node_id("holders", *id));
            Ok(CodeUnit { size_bytes: answer.size_bytes, holders: holders.collect::<Result<_, _>>()? })
        })
    }

    /// Says which program a job runs.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn put_program(&self, job: JobId, unit: CodeUnitId, node: NodeId) -> Result<(), CallError> {
        let request = wire::PutProgramRequest { job_id: job.0, hash: hash(Some(unit)), node_id: node.0 };
        let mut client = self.client.clone();
        self.within("put program", client.put_program(request)).await.map(drop)
    }

    /// The program of a job that runs, and the node of its driver.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn get_program(&self, job: JobId) -> Result<JobProgram, CallError> {
        let call = "get program";
        let mut client = self.client.clone();
        let answer = self.within(call, client.get_program(wire::GetProgramRequest { job_id: job.0 })).await?;
        self.checked(call, || {
            let unit = answer.hash.map(|hash| message::fixed("hash", &hash).map(CodeUnitId)).transpose()?;
            Ok(JobProgram { unit, driver_node: message::node_id("driver_node", answer.driver_node)? })
        })
    }

    /// Sets a value; false if it was to be set only if absent and was not.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_put(
        &self,
        namespace: &str,
        key: Bytes,
        value: Bytes,
        condition: PutIf,
    ) -> Result<bool, CallError> {
        let (if_absent, replaces) = match condition {
            PutIf::Always => (false, None),
            PutIf::Absent => (true, None),
            PutIf::Value(old) => (false, Some(old)),
        };
        let namespace = namespace.to_owned();
        let request = wire::KvPutRequest { namespace, key, value, if_absent, replaces };
        let mut client = self.client.clone();
        Ok(self.within("kv put", client.kv_put(request)).await?.written)
    }

    /// A value, if there is one.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_get(&self, namespace: &str, key: Bytes) -> Result<Option<Bytes>, CallError> {
        let mut client = self.client.clone();
        let request = wire::KvGetRequest { namespace: namespace.to_owned(), key };
        Ok(self.within("kv get", client.kv_get(request)).await?.value)
    }

    /// Removes a value, if `value` names one only that; false if it was not there.
    ///
    /// # Errors
    /// [`CallError`], as for all calls.
    pub async fn kv_delete(
        &self,
        namespace: &str,
        key: Bytes,
        value: Option<Bytes>,
    ) -> Result<bool, CallError> {
        let mut client = self.client.clone();
        let request = wire::KvDeleteRequest { namespace: namespace.to_owned(), key, value };
        Ok(self.within("kv delete", client.kv_delete(request)).await?.existed)
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
        let mut client = self.client.clone();
        let request = wire::KvListRequest { namespace: namespace.to_owned(), prefix, after, limit };
        let answer = self.within("kv list", client.kv_list(request)).await?;
        Ok(KeyPage { keys: answer.keys, more: answer.more })
    }

    async fn within<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        match tokio::time::timeout(self.deadline, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(CallError::from_status(call, &self.address, &status)),
            Err(_) => {
                Err(CallError::Deadline { call, address: self.address.to_string(), deadline: self.deadline })
            }
        }
    }

    fn checked<T>(
        &self,
        call: &'static str,
        read: impl FnOnce() -> Result<T, BadMessage>,
    ) -> Result<T, CallError> {
        read().map_err(|cause| CallError::BadAnswer { call, address: self.address.to_string(), cause })
    }
}

impl NodeEvents {
    /// The next change; none when the server has stopped. Waits as long as nothing changes; a dead server is
    /// noticed by probes within twenty seconds.
    ///
    /// # Errors
    /// [`CallError`] when the stream broke: watch again from the revision after the last one seen.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Option<NodeEvent>, CallError> {
        let call = "watch nodes";
        let event = self.events.message().await;
        match event.map_err(|status| CallError::from_status(call, &self.address, &status))? {
            None => Ok(None),
            Some(event) => event.try_into().map(Some).map_err(|cause| CallError::BadAnswer {
                call,
                address: self.address.to_string(),
                cause,
            }),
        }
    }
}
