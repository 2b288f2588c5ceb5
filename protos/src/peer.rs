//! The one stream between each two nodes: packets of messages in both directions.
//!
//! Here is the transport: how a stream is opened, taken up, probed and bounded. It carries the generated
//! types as they are ([`wire`]); [`convert`] makes them of the messages of [`tharsis_types::peer`], and
//! checks what arrives.

mod classes;
pub mod convert;
mod drain;
mod drain_messages;
mod jobs;
mod logs;
mod names;
mod quota_messages;
mod read_messages;
mod runs;
mod streams;
mod unreadable;

pub use drain::{DrainStream, drain};
pub use jobs::{OutputStream, job_output, stop_job, submit_job};
pub use logs::{LogStream, logs};
pub use runs::{RunStream, runs};

use crate::call::{CallError, Refusal, chain};
use crate::connection::{Called, Credentials};
use crate::generated::peer::peer_client::PeerClient;
use crate::generated::peer::peer_server::{Peer, PeerServer};
use crate::logs::{LogLine, LogQuery};
use crate::message::{BadMessage, node_id};
use crate::mount::mount;
use crate::report::DrainRow;
use crate::rights;
use crate::runs::{RunBatch, RunQuery};
use crate::submission::{NewSubmission, OutputQuery};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use prost::bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use streams::{Call, Streams};
use tharsis_types::NodeId;
use tharsis_types::limits::{LARGE_RECORD_BYTES_MAX, MIB};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status, Streaming};

pub use crate::generated::peer as wire;

/// Bytes of one packet. Senders split long before; only one task with very many arguments comes near.
pub const PACKET_BYTES_MAX: usize = 256 * MIB;
const _: () = assert!(
    3 * LARGE_RECORD_BYTES_MAX <= PACKET_BYTES_MAX,
    "what fits into a ring fits into a packet, where a reference takes more bytes, behind what was packed before it"
);
/// Bytes of a request that is no packet: a submission carries the environment of its caller.
pub const REQUEST_BYTES_MAX: usize = MIB;
/// Messages of one packet.
pub const PACKET_MESSAGES_MAX: usize = 4096;
/// The name of the call in errors.
const CALL: &str = "link";
/// A silent stream is probed this often.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// A probe that is not answered for this long ends the stream.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that a stream may take to say whose it is.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Packets that arrive; ends when the other side is done, or with the reason why it broke.
pub type Incoming = BoxStream<'static, Result<wire::Packet, CallError>>;
/// Packets to send.
pub type Outgoing = BoxStream<'static, wire::Packet>;

/// A node that others connect to.
pub trait Service: Send + Sync + 'static {
    /// Takes up a stream that the node `from` opened, as its certificate says, to the node `to`: the packets
    /// that it sends for those that it gets.
    fn link(
        &self,
        from: NodeId,
        to: NodeId,
        incoming: Incoming,
    ) -> impl Future<Output = Result<Outgoing, Refusal>> + Send;

    /// Begins to drain the node, which must be `node`: its progress until it leaves.
    fn drain(
        &self,
        node: NodeId,
        within: Duration,
    ) -> impl Future<Output = Result<BoxStream<'static, DrainRow>, Refusal>> + Send;

    /// Output of the workers of the node, which must be `node`.
    fn logs(
        &self,
        node: NodeId,
        query: LogQuery,
    ) -> impl Future<Output = Result<BoxStream<'static, Vec<LogLine>>, Refusal>> + Send;

    /// Runs of tasks that the node remembers, which must be `node`.
    fn runs(
        &self,
        node: NodeId,
        query: RunQuery,
    ) -> impl Future<Output = Result<BoxStream<'static, RunBatch>, Refusal>> + Send;

    /// Runs a program under supervision of the node, which must be `node`: the id of its process.
    fn submit_job(
        &self,
        node: NodeId,
        new: NewSubmission,
    ) -> impl Future<Output = Result<u32, Refusal>> + Send;

    /// Tells a submitted program to end, and kills it after `grace`; whether it still ran.
    fn stop_job(
        &self,
        node: NodeId,
        name: String,
        grace: Duration,
    ) -> impl Future<Output = Result<bool, Refusal>> + Send;

    /// Output of a submitted program.
    fn job_output(
        &self,
        node: NodeId,
        query: OutputQuery,
    ) -> impl Future<Output = Result<BoxStream<'static, Bytes>, Refusal>> + Send;
}

/// Adds a node to the services of one port.
pub fn routes<S: Service>(routes: Routes, service: Arc<S>) -> Routes {
    let door = Arc::new(Door { service, streams: Streams::default() });
    let server = |request_bytes_max| {
        PeerServer::from_arc(Arc::clone(&door))
            .max_decoding_message_size(request_bytes_max)
            .max_encoding_message_size(PACKET_BYTES_MAX)
    };
    // Room for the length that a request announces is made before the request is here: packets alone are
    // long, and members alone send them.
    mount(routes, PerCall { link: server(PACKET_BYTES_MAX), others: server(REQUEST_BYTES_MAX) })
}

/// Two servers of one service, which differ in their limits.
#[derive(Clone, Debug)]
struct PerCall<S> {
    link: S,
    others: S,
}

impl<S: NamedService> NamedService for PerCall<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: tower::Service<http::Request<Body>>> tower::Service<http::Request<Body>> for PerCall<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        match self.link.poll_ready(context) {
            Poll::Ready(Ok(())) => self.others.poll_ready(context),
            other => other,
        }
    }

    fn call(&mut self, request: http::Request<Body>) -> S::Future {
        if request.uri().path().ends_with("/Link") {
            self.link.call(request)
        } else {
            self.others.call(request)
        }
    }
}

/// Opens a stream to a node at `address` (`host:port`).
///
/// # Errors
/// [`CallError`] if it is not open within `deadline`.
pub fn connect(
    address: String,
    node: NodeId,
    own: Credentials,
    outgoing: Outgoing,
    deadline: Duration,
) -> BoxFuture<'static, Result<Incoming, CallError>> {
    Box::pin(async move {
        match tokio::time::timeout(deadline, open(address.clone(), node, &own, outgoing, deadline)).await {
            Ok(opened) => opened,
            Err(_) => Err(CallError::Deadline { call: CALL, address, deadline }),
        }
    })
}

async fn open(
    address: String,
    node: NodeId,
    own: &Credentials,
    outgoing: Outgoing,
    deadline: Duration,
) -> Result<Incoming, CallError> {
    let endpoint = match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.connect_timeout(deadline),
        Err(error) => return Err(CallError::Unreachable { call: CALL, address, cause: chain(&error) }),
    };
    let endpoint = endpoint.http2_keep_alive_interval(PROBE_INTERVAL).keep_alive_timeout(PROBE_TIMEOUT);
    let mut client = PeerClient::new(own.channel(&endpoint, &address, Called::Node(node.0)))
        .max_decoding_message_size(PACKET_BYTES_MAX)
        .max_encoding_message_size(PACKET_BYTES_MAX);
    match client.link(Named(outgoing)).await {
        Ok(answer) => Ok(incoming(answer.into_inner(), address)),
        Err(status) => Err(CallError::from_status(CALL, &address, &status)),
    }
}

/// A stream with a name: the compiler cannot prove that a future which holds the bare trait object may change
/// threads.
struct Named(Outgoing);

impl Stream for Named {
    type Item = wire::Packet;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<wire::Packet>> {
        self.0.poll_next_unpin(context)
    }
}

struct Door<S> {
    service: Arc<S>,
    streams: Streams,
}

#[tonic::async_trait]
impl<S: Service> Peer for Door<S> {
    type DrainStream = BoxStream<'static, Result<wire::DrainProgress, Status>>;
    type JobOutputStream = BoxStream<'static, Result<wire::JobOutputPart, Status>>;
    type LogsStream = BoxStream<'static, Result<wire::LogLines, Status>>;
    type RunsStream = BoxStream<'static, Result<wire::RunSpans, Status>>;

    async fn submit_job(
        &self,
        request: Request<wire::SubmitJobRequest>,
    ) -> Result<Response<wire::SubmitJobReply>, Status> {
        let (node, new) = jobs::submission(request.into_inner()).map_err(Refusal::from)?;
        let pid = self.service.submit_job(node, new).await?;
        Ok(Response::new(wire::SubmitJobReply { pid }))
    }

    async fn stop_job(
        &self,
        request: Request<wire::StopJobRequest>,
    ) -> Result<Response<wire::StopJobReply>, Status> {
        let wire::StopJobRequest { node, name, grace_ms } = request.into_inner();
        let node = node_id("node", node).map_err(Refusal::from)?;
        let was_running = self.service.stop_job(node, name, Duration::from_millis(grace_ms)).await?;
        Ok(Response::new(wire::StopJobReply { was_running }))
    }

    async fn job_output(
        &self,
        request: Request<wire::JobOutputRequest>,
    ) -> Result<Response<Self::JobOutputStream>, Status> {
        let seat = self.streams.enter(Call::JobOutput, rights::who(request.extensions())?)?;
        let wire::JobOutputRequest { node, name, tail, follow } = request.into_inner();
        let node = node_id("node", node).map_err(Refusal::from)?;
        let parts = seat.of(self.service.job_output(node, OutputQuery { name, tail, follow }).await?);
        Ok(Response::new(parts.map(|bytes| Ok(wire::JobOutputPart { bytes })).boxed()))
    }

    async fn logs(&self, request: Request<wire::LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        let seat = self.streams.enter(Call::Logs, rights::who(request.extensions())?)?;
        let request = request.into_inner();
        let invalid = |bad: BadMessage| Status::invalid_argument(bad.to_string());
        let node = node_id("node", request.node).map_err(invalid)?;
        let query = logs::query(&request).map_err(invalid)?;
        let batches = seat.of(self.service.logs(node, query).await?);
        Ok(Response::new(batches.map(|lines| Ok(logs::to_wire(lines))).boxed()))
    }

    async fn runs(&self, request: Request<wire::RunsRequest>) -> Result<Response<Self::RunsStream>, Status> {
        let seat = self.streams.enter(Call::Runs, rights::who(request.extensions())?)?;
        let request = request.into_inner();
        let node = node_id("node", request.node).map_err(Refusal::from)?;
        let query = runs::query(&request).map_err(Refusal::from)?;
        let batches = seat.of(self.service.runs(node, query).await?);
        Ok(Response::new(batches.map(|batch| Ok(runs::to_wire(batch))).boxed()))
    }

    type LinkStream = BoxStream<'static, Result<wire::Packet, Status>>;

    async fn drain(
        &self,
        request: Request<wire::DrainRequest>,
    ) -> Result<Response<Self::DrainStream>, Status> {
        let seat = self.streams.enter(Call::Drain, rights::who(request.extensions())?)?;
        let wire::DrainRequest { node, within_ms } = request.into_inner();
        let node = node_id("node", node).map_err(|bad| Status::invalid_argument(bad.to_string()))?;
        let rows = seat.of(self.service.drain(node, Duration::from_millis(within_ms)).await?);
        Ok(Response::new(rows.map(|row| Ok(row.into())).boxed()))
    }

    async fn link(
        &self,
        request: Request<Streaming<wire::Packet>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (_, extensions, mut packets) = request.into_parts();
        let Ok(Ok(Some(first))) = tokio::time::timeout(HELLO_WAIT, packets.message()).await else {
            return Err(Status::invalid_argument("the stream does not say whose it is"));
        };
        let from = node_id("from_node", first.from_node).map_err(Refusal::from)?;
        rights::check_node(&extensions, from)?;
        let to = node_id("to_node", first.to_node).map_err(Refusal::from)?;
        let outgoing = self.service.link(from, to, incoming(packets, "a peer".to_owned())).await?;
        Ok(Response::new(outgoing.map(Ok).boxed()))
    }
}

fn incoming(packets: Streaming<wire::Packet>, address: String) -> Incoming {
    let named = move |status: Status| CallError::from_status(CALL, &address, &status);
    packets.map(move |packet| packet.map_err(&named)).boxed()
}
