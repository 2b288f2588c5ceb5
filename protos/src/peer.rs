//! The one stream between each two nodes: numbered packets of messages in both directions.
//!
//! This module moves packets and checks them. What a break of the stream means, what is sent again and what is
//! dropped is decided by whoever numbers them.

use crate::call::{CallError, Refusal, chain};
use crate::generated::peer as wire;
use crate::generated::peer::peer_client::PeerClient;
use crate::generated::peer::peer_server::{Peer, PeerServer};
use crate::message::{self, BadMessage};
use crate::mount::mount;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tharsis_types::limits::MESSAGE_BYTES_MAX;
use tharsis_types::{NodeId, Resources};
use tonic::service::Routes;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status, Streaming};

pub use crate::control::NodeLoad;

/// Messages of one packet.
pub const PACKET_MESSAGES_MAX: usize = 4096;
/// A silent stream is probed this often.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// A probe that is not answered for this long ends the stream.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Some messages on their way to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub from: NodeId,
    /// The incarnation of the receiver that the sender talks to.
    pub session: u64,
    /// Counts packets with messages from 1; 0 for one that only acknowledges.
    pub sequence: u64,
    /// All packets up to and with this one have arrived.
    pub acknowledged: u64,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// What one node tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// How busy the sender is.
    LoadReport(NodeLoad),
}

/// Packets that arrive; ends when the other side is done, or with the reason why it broke.
pub type Incoming = BoxStream<'static, Result<Packet, CallError>>;
/// Packets to send.
pub type Outgoing = BoxStream<'static, Packet>;

/// A node that others connect to.
pub trait Service: Send + Sync + 'static {
    /// Takes up a stream that another node opened: what it sends, for what it is to be sent.
    fn link(&self, incoming: Incoming) -> impl Future<Output = Result<Outgoing, Refusal>> + Send;
}

/// Adds a node to the services of one port.
pub fn routes<S: Service>(routes: Routes, service: Arc<S>) -> Routes {
    let server = PeerServer::new(Door(service))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    mount(routes, server)
}

/// Opens a stream to the node at `address` (`host:port`).
///
/// # Errors
/// [`CallError`] if it is not open within `deadline`.
pub async fn connect(address: &str, outgoing: Outgoing, deadline: Duration) -> Result<Incoming, CallError> {
    let call = "link";
    let unreachable = |cause: String| CallError::Unreachable { call, address: address.to_owned(), cause };
    let open = async {
        let endpoint =
            Endpoint::from_shared(format!("http://{address}")).map_err(|e| unreachable(chain(&e)))?;
        let endpoint = endpoint
            .connect_timeout(deadline)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PROBE_INTERVAL)
            .keep_alive_timeout(PROBE_TIMEOUT);
        let channel = endpoint.connect().await.map_err(|e| unreachable(chain(&e)))?;
        let mut client = PeerClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let answer = client.link(outgoing.map(wire::Packet::from)).await;
        answer.map_err(|status| CallError::from_status(call, address, &status))
    };
    match tokio::time::timeout(deadline, open).await {
        Ok(answer) => Ok(incoming(answer?.into_inner(), address.to_owned())),
        Err(_) => Err(CallError::Deadline { call, address: address.to_owned(), deadline }),
    }
}

struct Door<S>(Arc<S>);

#[tonic::async_trait]
impl<S: Service> Peer for Door<S> {
    type LinkStream = BoxStream<'static, Result<wire::Packet, Status>>;

    async fn link(
        &self,
        request: Request<Streaming<wire::Packet>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let address =
            request.remote_addr().map_or_else(|| "a peer".to_owned(), |address| address.to_string());
        let outgoing = self.0.link(incoming(request.into_inner(), address)).await?;
        Ok(Response::new(outgoing.map(|packet| Ok(packet.into())).boxed()))
    }
}

fn incoming(packets: Streaming<wire::Packet>, address: String) -> Incoming {
    let call = "link";
    let checked = move |packet: Result<wire::Packet, Status>| {
        let packet = packet.map_err(|status| CallError::from_status(call, &address, &status))?;
        Packet::try_from(packet).map_err(|cause| CallError::BadAnswer {
            call,
            address: address.clone(),
            cause,
        })
    };
    packets.map(checked).boxed()
}

impl From<Packet> for wire::Packet {
    fn from(packet: Packet) -> Self {
        Self {
            from_node: packet.from.0,
            session: packet.session,
            sequence: packet.sequence,
            acknowledged: packet.acknowledged,
            messages: packet.messages.into_iter().map(wire::Message::from).collect(),
        }
    }
}

impl TryFrom<wire::Packet> for Packet {
    type Error = BadMessage;

    fn try_from(packet: wire::Packet) -> Result<Self, BadMessage> {
        if packet.messages.len() > PACKET_MESSAGES_MAX {
            return Err(BadMessage::too_many(
                "messages",
                packet.messages.len(),
                PACKET_MESSAGES_MAX,
                "messages",
            ));
        }
        let messages: Result<_, BadMessage> = packet.messages.into_iter().map(Message::try_from).collect();
        Ok(Self {
            from: message::node_id("from_node", packet.from_node)?,
            session: packet.session,
            sequence: packet.sequence,
            acknowledged: packet.acknowledged,
            messages: messages.map_err(|bad| bad.within("messages"))?,
        })
    }
}

impl From<Message> for wire::Message {
    fn from(message: Message) -> Self {
        let kind = match message {
            Message::LoadReport(load) => wire::message::Kind::LoadReport(load.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<wire::Message> for Message {
    type Error = BadMessage;

    fn try_from(message: wire::Message) -> Result<Self, BadMessage> {
        match message::required("kind", message.kind)? {
            wire::message::Kind::LoadReport(load) => Ok(Self::LoadReport(load_report(load)?)),
        }
    }
}

impl From<NodeLoad> for wire::LoadReport {
    fn from(load: NodeLoad) -> Self {
        Self {
            free: Some(load.free.into()),
            total: Some(load.total.into()),
            queued_tasks: load.queued_tasks,
            store_used_bytes: load.store_used_bytes,
            store_total_bytes: load.store_total_bytes,
        }
    }
}

impl From<Resources> for wire::Resources {
    fn from(set: Resources) -> Self {
        Self { cpu_units: set.cpu, gpu_units: set.gpu, memory_bytes: set.memory, custom_units: set.custom }
    }
}

fn load_report(load: wire::LoadReport) -> Result<NodeLoad, BadMessage> {
    Ok(NodeLoad {
        free: resources("load_report.free", load.free)?,
        total: resources("load_report.total", load.total)?,
        queued_tasks: load.queued_tasks,
        store_used_bytes: load.store_used_bytes,
        store_total_bytes: load.store_total_bytes,
    })
}

fn resources(field: &str, set: Option<wire::Resources>) -> Result<Resources, BadMessage> {
    let set = message::required(field, set)?;
    message::amounts(field, set.cpu_units, set.gpu_units, set.memory_bytes, set.custom_units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_the_wire_and_bad_ones_are_named() {
        let load = NodeLoad { queued_tasks: 7, free: Resources::cpus(1.5).unwrap(), ..NodeLoad::default() };
        let packet = Packet {
            from: NodeId(3),
            session: 9,
            sequence: 1,
            acknowledged: 4,
            messages: vec![Message::LoadReport(load)],
        };
        let bytes = prost::Message::encode_to_vec(&wire::Packet::from(packet.clone()));
        let decoded: wire::Packet = prost::Message::decode(bytes.as_slice()).unwrap();
        assert_eq!(Packet::try_from(decoded.clone()), Ok(packet));

        let nameless = wire::Packet { from_node: 0, ..decoded.clone() };
        assert_eq!(Packet::try_from(nameless), Err(BadMessage::missing("from_node")));
        let empty = wire::Packet { messages: vec![wire::Message { kind: None }], ..decoded };
        assert_eq!(Packet::try_from(empty), Err(BadMessage::missing("messages.kind")));
    }
}
