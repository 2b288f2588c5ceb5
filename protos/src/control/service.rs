//! The server's side: each handler checks what came in, calls the service with plain values, packs the
//! answer.

use super::wire::{bounded, key, namespace, to_wire};
use super::*;
use crate::call::{Refusal, RefusalCode};
use crate::caller::Who;
use crate::generated::control as wire;
use crate::generated::control::control_server::{Control, ControlServer};
use crate::message::{self, BadMessage};
use crate::mount::mount;
use crate::rights;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::future::Future;
use std::sync::Arc;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// Changes of the membership, one after the other; ends with a refusal or when the server stops.
pub type EventStream = BoxStream<'static, Result<NodeEvent, Refusal>>;

/// A control store. What reaches these functions has been checked.
pub trait Service: Send + Sync + 'static {
    /// Identity of the cluster and release of the control store.
    fn cluster_info(&self) -> impl Future<Output = Result<ClusterInfo, Refusal>> + Send;
    /// Makes a node a member; `who` is that node.
    fn register_node(
        &self,
        who: Who,
        node: NodeInfo,
        clock_unix_ms: u64,
    ) -> impl Future<Output = Result<Registered, Refusal>> + Send;
    /// Renews the lease of a node, which has seen a state of the tables.
    fn keep_alive(
        &self,
        node: NodeId,
        seen: Option<TablesState>,
    ) -> impl Future<Output = Result<Renewed, Refusal>> + Send;
    /// Ends a membership; false if there was none.
    fn unregister_node(
        &self,
        node: NodeId,
        reason: String,
    ) -> impl Future<Output = Result<bool, Refusal>> + Send;
    /// Looks for a member whose streams broke; whether it is no member (any more).
    fn suspect_node(&self, node: NodeId) -> impl Future<Output = Result<bool, Refusal>> + Send;
    /// All members.
    fn list_nodes(&self) -> impl Future<Output = Result<Members, Refusal>> + Send;
    /// Changes from a revision on, or a list and then changes.
    fn watch_nodes(
        &self,
        who: Who,
        from_revision: u64,
    ) -> impl Future<Output = Result<EventStream, Refusal>> + Send;
    /// Makes a job, or finds the one that the same request made.
    fn register_job(&self, job: JobRequest) -> impl Future<Output = Result<JobId, Refusal>> + Send;
    /// Ends a job; false if there is none of that id. A node ends those of its own drivers.
    fn finish_job(
        &self,
        who: Who,
        job: JobId,
        succeeded: bool,
        message: String,
    ) -> impl Future<Output = Result<bool, Refusal>> + Send;
    /// Jobs after one, at most `limit`.
    fn list_jobs(&self, after: JobId, limit: usize) -> impl Future<Output = Result<JobPage, Refusal>> + Send;
    /// Says that a node holds a code unit.
    fn put_code_unit(
        &self,
        unit: CodeUnitId,
        size_bytes: u64,
        holder: NodeId,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;
    /// Places where a code unit can be fetched.
    fn get_code_unit(&self, unit: CodeUnitId) -> impl Future<Output = Result<CodeUnit, Refusal>> + Send;
    /// Says which program a job runs.
    fn put_program(
        &self,
        job: JobId,
        unit: CodeUnitId,
        node: NodeId,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;
    /// The program of a job that runs, and the node of its driver.
    fn get_program(&self, job: JobId) -> impl Future<Output = Result<JobProgram, Refusal>> + Send;
    /// Sets a value for its caller; false if it was to be set only if absent and was not.
    fn kv_put(
        &self,
        who: Who,
        namespace: String,
        key: Bytes,
        value: Bytes,
        condition: PutIf,
    ) -> impl Future<Output = Result<bool, Refusal>> + Send;
    /// A value, if there is one.
    fn kv_get(
        &self,
        namespace: String,
        key: Bytes,
    ) -> impl Future<Output = Result<Option<Bytes>, Refusal>> + Send;
    /// Removes a value, if `value` names one only that; false if it was not there.
    fn kv_delete(
        &self,
        namespace: String,
        key: Bytes,
        value: Option<Bytes>,
    ) -> impl Future<Output = Result<bool, Refusal>> + Send;
    /// Keys with a prefix after one, at most `limit`.
    fn kv_list(
        &self,
        namespace: String,
        prefix: Bytes,
        after: Bytes,
        limit: usize,
    ) -> impl Future<Output = Result<KeyPage, Refusal>> + Send;
}

/// Adds a control store to the services of one port.
pub fn routes<S: Service>(routes: Routes, service: Arc<S>) -> Routes {
    let server = ControlServer::new(Door(service))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    mount(routes, server)
}

struct Door<S>(Arc<S>);

type Answer<T> = Result<Response<T>, Status>;

fn bad(bad: BadMessage) -> Status {
    Refusal::from(bad).into()
}

fn speaks(protocol: Option<wire::ProtocolVersion>) -> Result<(), Status> {
    let theirs: ProtocolVersion = message::required("protocol", protocol).map_err(bad)?.into();
    if PROTOCOL.speaks_with(&theirs) {
        return Ok(());
    }
    let reason =
        format!("protocol {theirs} was asked for, this control store speaks {PROTOCOL}: use one release");
    Err(Refusal::new(RefusalCode::FailedPrecondition, reason).into())
}

fn page(limit: u32) -> usize {
    let limit = usize::try_from(limit).unwrap_or(PAGE_ENTRIES_MAX);
    if limit == 0 { PAGE_ENTRIES_MAX } else { limit.min(PAGE_ENTRIES_MAX) }
}

fn unit(field: &str, hash: &Bytes) -> Result<CodeUnitId, Status> {
    message::fixed(field, hash).map(CodeUnitId).map_err(bad)
}

#[tonic::async_trait]
impl<S: Service> Control for Door<S> {
    type WatchNodesStream = BoxStream<'static, Result<wire::NodeEvent, Status>>;

    async fn cluster_info(&self, _: Request<wire::ClusterInfoRequest>) -> Answer<wire::ClusterInfoAnswer> {
        let info = self.0.cluster_info().await?;
        Ok(Response::new(wire::ClusterInfoAnswer {
            cluster_id: Bytes::copy_from_slice(&info.cluster.0),
            protocol: Some(info.protocol.into()),
            version: info.version,
            stores: info.stores,
            revoked: info.revoked.iter().map(|machine| machine.0).collect(),
        }))
    }

    async fn register_node(
        &self,
        request: Request<wire::RegisterNodeRequest>,
    ) -> Answer<wire::RegisterNodeAnswer> {
        let (_, extensions, request) = request.into_parts();
        speaks(request.protocol)?;
        let node = message::required("node", request.node).map_err(bad)?;
        let node = NodeInfo::try_from(node).map_err(|problem| bad(problem.within("node")))?;
        rights::check_node(&extensions, node.id)?;
        rights::check_address(&extensions, &node.listen)?;
        rights::check_resources(&extensions, &node.resources)?;
        let who = rights::who(&extensions)?;
        let done = self.0.register_node(who, node, request.clock_unix_ms).await?;
        Ok(Response::new(wire::RegisterNodeAnswer {
            lease_ttl_ms: u64::try_from(done.lease_ttl.as_millis()).unwrap_or(u64::MAX),
            clock_skew_ms: done.clock_skew_ms,
            stores: done.stores,
        }))
    }

    async fn keep_alive(&self, request: Request<wire::KeepAliveRequest>) -> Answer<wire::KeepAliveAnswer> {
        let (_, extensions, request) = request.into_parts();
        let node = message::node_id("node_id", request.node_id).map_err(bad)?;
        rights::check_node(&extensions, node)?;
        let seen = request.seen.map(Into::into);
        let Renewed { known, stores, tables, is_restored } = self.0.keep_alive(node, seen).await?;
        let tables = tables.map(Into::into);
        Ok(Response::new(wire::KeepAliveAnswer { known, stores, tables, restored: is_restored }))
    }

    async fn unregister_node(
        &self,
        request: Request<wire::UnregisterNodeRequest>,
    ) -> Answer<wire::UnregisterNodeAnswer> {
        let (_, extensions, request) = request.into_parts();
        let node = message::node_id("node_id", request.node_id).map_err(bad)?;
        rights::check_removal(&extensions, node)?;
        let reason = message::text("reason", request.reason, TEXT_BYTES_MAX).map_err(bad)?;
        let known = self.0.unregister_node(node, reason).await?;
        Ok(Response::new(wire::UnregisterNodeAnswer { known }))
    }

    async fn suspect_node(
        &self,
        request: Request<wire::SuspectNodeRequest>,
    ) -> Answer<wire::SuspectNodeAnswer> {
        let node = message::node_id("node_id", request.into_inner().node_id).map_err(bad)?;
        Ok(Response::new(wire::SuspectNodeAnswer { gone: self.0.suspect_node(node).await? }))
    }

    async fn list_nodes(&self, _: Request<wire::ListNodesRequest>) -> Answer<wire::ListNodesAnswer> {
        let members = self.0.list_nodes().await?;
        Ok(Response::new(wire::ListNodesAnswer {
            members: to_wire(members.nodes),
            revision: members.revision,
        }))
    }

    async fn watch_nodes(&self, request: Request<wire::WatchNodesRequest>) -> Answer<Self::WatchNodesStream> {
        let (_, extensions, request) = request.into_parts();
        let events = self.0.watch_nodes(rights::who(&extensions)?, request.from_revision).await?;
        let events = events.map(|event| event.map(wire::NodeEvent::from).map_err(Status::from));
        Ok(Response::new(events.boxed()))
    }

    async fn register_job(
        &self,
        request: Request<wire::RegisterJobRequest>,
    ) -> Answer<wire::RegisterJobAnswer> {
        let (_, extensions, request) = request.into_parts();
        speaks(request.protocol)?;
        let job = JobRequest::try_from(request).map_err(bad)?;
        rights::check_node(&extensions, job.driver_node)?;
        let job = self.0.register_job(job).await?;
        Ok(Response::new(wire::RegisterJobAnswer { job_id: job.0 }))
    }

    async fn finish_job(&self, request: Request<wire::FinishJobRequest>) -> Answer<wire::FinishJobAnswer> {
        let (_, extensions, request) = request.into_parts();
        let who = rights::who(&extensions)?;
        let job = message::job_id("job_id", request.job_id).map_err(bad)?;
        let last_words = message::text("message", request.message, TEXT_BYTES_MAX).map_err(bad)?;
        let known = self.0.finish_job(who, job, request.succeeded, last_words).await?;
        Ok(Response::new(wire::FinishJobAnswer { known }))
    }

    async fn list_jobs(&self, request: Request<wire::ListJobsRequest>) -> Answer<wire::ListJobsAnswer> {
        let request = request.into_inner();
        let found = self.0.list_jobs(JobId(request.after_job), page(request.limit)).await?;
        Ok(Response::new(wire::ListJobsAnswer { jobs: to_wire(found.jobs), more: found.more }))
    }

    async fn put_code_unit(
        &self,
        request: Request<wire::PutCodeUnitRequest>,
    ) -> Answer<wire::PutCodeUnitAnswer> {
        let (_, extensions, request) = request.into_parts();
        let holder = message::node_id("holder", request.holder).map_err(bad)?;
        rights::check_node(&extensions, holder)?;
        self.0.put_code_unit(unit("hash", &request.hash)?, request.size_bytes, holder).await?;
        Ok(Response::new(wire::PutCodeUnitAnswer {}))
    }

    async fn get_code_unit(
        &self,
        request: Request<wire::GetCodeUnitRequest>,
    ) -> Answer<wire::GetCodeUnitAnswer> {
        let found = self.0.get_code_unit(unit("hash", &request.into_inner().hash)?).await?;
        let holders = found.holders.into_iter().map(|node| node.0).collect();
        Ok(Response::new(wire::GetCodeUnitAnswer { size_bytes: found.size_bytes, holders }))
    }

    async fn put_program(&self, request: Request<wire::PutProgramRequest>) -> Answer<wire::PutProgramAnswer> {
        let (_, extensions, request) = request.into_parts();
        let job = message::job_id("job_id", request.job_id).map_err(bad)?;
        let node = message::node_id("node_id", request.node_id).map_err(bad)?;
        rights::check_node(&extensions, node)?;
        self.0.put_program(job, unit("hash", &request.hash)?, node).await?;
        Ok(Response::new(wire::PutProgramAnswer {}))
    }

    async fn get_program(&self, request: Request<wire::GetProgramRequest>) -> Answer<wire::GetProgramAnswer> {
        let job = message::job_id("job_id", request.into_inner().job_id).map_err(bad)?;
        let found = self.0.get_program(job).await?;
        let hash = found.unit.map(|unit| Bytes::copy_from_slice(&unit.0));
        Ok(Response::new(wire::GetProgramAnswer { hash, driver_node: found.driver_node.0 }))
    }

    async fn kv_put(&self, request: Request<wire::KvPutRequest>) -> Answer<wire::KvPutAnswer> {
        let (_, extensions, request) = request.into_parts();
        let who = rights::who(&extensions)?;
        let (namespace, key) = key(request.namespace, request.key).map_err(bad)?;
        let value = bounded("value", request.value, VALUE_BYTES_MAX).map_err(bad)?;
        let condition = match (request.if_absent, request.replaces) {
            (true, _) => PutIf::Absent,
            (false, None) => PutIf::Always,
            (false, Some(old)) => PutIf::Value(bounded("replaces", old, VALUE_BYTES_MAX).map_err(bad)?),
        };
        let written = self.0.kv_put(who, namespace, key, value, condition).await?;
        Ok(Response::new(wire::KvPutAnswer { written }))
    }

    async fn kv_get(&self, request: Request<wire::KvGetRequest>) -> Answer<wire::KvGetAnswer> {
        let request = request.into_inner();
        let (namespace, key) = key(request.namespace, request.key).map_err(bad)?;
        Ok(Response::new(wire::KvGetAnswer { value: self.0.kv_get(namespace, key).await? }))
    }

    async fn kv_delete(&self, request: Request<wire::KvDeleteRequest>) -> Answer<wire::KvDeleteAnswer> {
        let request = request.into_inner();
        let (namespace, key) = key(request.namespace, request.key).map_err(bad)?;
        let value = request.value.map(|value| bounded("value", value, VALUE_BYTES_MAX)).transpose();
        let existed = self.0.kv_delete(namespace, key, value.map_err(bad)?).await?;
        Ok(Response::new(wire::KvDeleteAnswer { existed }))
    }

    async fn kv_list(&self, request: Request<wire::KvListRequest>) -> Answer<wire::KvListAnswer> {
        let request = request.into_inner();
        let namespace = namespace(request.namespace).map_err(bad)?;
        let prefix = bounded("prefix", request.prefix, KEY_BYTES_MAX).map_err(bad)?;
        let after = bounded("after", request.after, KEY_BYTES_MAX).map_err(bad)?;
        let found = self.0.kv_list(namespace, prefix, after, page(request.limit)).await?;
        Ok(Response::new(wire::KvListAnswer { keys: found.keys, more: found.more }))
    }
}
