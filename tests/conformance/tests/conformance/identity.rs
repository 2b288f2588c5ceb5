//! A control store that admits by certificates: what each role may call, and who is refused.

use crate::protocol::Protocol;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tharsis_conformance::raw;
use tharsis_gcs::{
    Backend, ClientOptions, Control, ControlClient, ControlOptions, Embedded, EmbeddedLimits, Server, serve,
};
use tharsis_identity::{Authority, Identity, NewKey, Role, Tls, Token};
use tharsis_protos::connection::{Called, Credentials, Gate, Signer, Trust};
use tharsis_protos::control::{JobRequest, NodeInfo};
use tharsis_protos::join::{self, JoinError};
use tharsis_protos::logs::{LogLine, LogQuery};
use tharsis_protos::peer;
use tharsis_protos::proof::{ProofError, Purpose, Reason, Secret};
use tharsis_protos::report::DrainRow;
use tharsis_protos::rights::RIGHTS;
use tharsis_protos::runs::{RunBatch, RunQuery};
use tharsis_protos::submission::{NewSubmission, OutputQuery};
use tharsis_protos::{CallError, Refusal, RefusalCode};
use tharsis_types::{NodeId, Resources};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tonic::service::Routes;

pub const HOUR: Duration = Duration::from_secs(3600);
/// Connections that one machine may have open.
pub const PER_MACHINE_MAX: usize = 24;
/// A certificate that is over: clocks may differ by five minutes, so it ended before that.
const OVER: Duration = Duration::ZERO;

pub struct Cluster {
    pub authority: Arc<Authority>,
    /// The node of the head.
    pub node: SilentNode,
    server: Server,
    store: Arc<Embedded>,
    folder: TempDir,
}

impl Cluster {
    pub async fn start() -> Cluster {
        Cluster::start_with(SilentNode::default()).await
    }

    /// One whose node keeps streams of answers open.
    pub async fn holding() -> Cluster {
        Cluster::start_with(SilentNode { holds: true, ..SilentNode::default() }).await
    }

    async fn start_with(node: SilentNode) -> Cluster {
        let store = Arc::new(Embedded::memory(EmbeddedLimits::default()));
        Cluster::start_in(tempfile::tempdir().unwrap(), store, node).await
    }

    /// Another head over the same tables, with a copy of the authority's key.
    pub async fn beside(&self) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("keys");
        std::fs::copy(self.folder.path().join("keys"), key).unwrap();
        Cluster::start_in(folder, Arc::clone(&self.store), SilentNode::default()).await
    }

    async fn start_in(folder: TempDir, store: Arc<Embedded>, node: SilentNode) -> Cluster {
        let authority = Arc::new(Authority::load_or_make(folder.path()).unwrap());
        let own = Tls::new(&authority.own(Role::Node, None, true, HOUR).unwrap()).unwrap();
        let signer = Signer { authority: Arc::clone(&authority), lifetime: HOUR, owners: None };
        let gate = Gate::new(Trust::Identity(own)).signing(signer).per_machine(PER_MACHINE_MAX);
        let options = ControlOptions { lease_ttl: Duration::from_secs(10), cluster: None, owner: None };
        let control = Control::start(Arc::clone(&store) as Arc<dyn Backend>, options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let routes = peer::routes(Routes::default(), Arc::new(node.clone()));
        let server = serve(control, listener, gate, routes).unwrap();
        Cluster { authority, node, server, store, folder }
    }

    pub fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// A machine that joined with a token.
    pub async fn machine(&self, role: Role) -> Identity {
        let token = self.authority.make_token(role, HOUR).unwrap();
        join::with_token(&self.address(), &token, "host").await.unwrap()
    }

    /// Credentials of a caller of this role, which is node 1 if its role has nodes. One machine has that
    /// node.
    async fn caller(&self, role: Role) -> Credentials {
        let machine = self.machine(role).await;
        if !role.has_nodes() {
            return credentials(Tls::new(&machine).unwrap(), None);
        }
        credentials(Tls::new(&self.node_of(&machine).await).unwrap(), Some(NodeId(1)))
    }

    /// The identity of node 1 of a machine.
    async fn node_of(&self, machine: &Identity) -> Identity {
        join::as_node(&self.address(), machine, NodeId(1)).await.unwrap().node
    }
}

pub fn credentials(tls: Tls, node: Option<NodeId>) -> Credentials {
    Credentials { trust: Trust::Identity(tls), node }
}

pub fn node(id: u64) -> NodeInfo {
    NodeInfo {
        id: NodeId(id),
        listen: "10.0.0.1:7000".to_owned(),
        host: "host".to_owned(),
        local_socket: String::new(),
        resources: Resources::cpus(1.0).unwrap(),
        labels: BTreeMap::new(),
    }
}

pub async fn connect(address: &str, own: &Credentials) -> Result<ControlClient, CallError> {
    let options = ClientOptions { call_deadline: Duration::from_secs(5), patience: Duration::ZERO };
    ControlClient::connect(address, own, options).await.map(|(client, _)| client)
}

fn code(error: &CallError) -> RefusalCode {
    error.refusal_code().unwrap_or_else(|| panic!("not refused: {error}"))
}

/// A node that does nothing of what it is asked for, but notes frames: the count that came from each node.
#[derive(Clone, Debug, Default)]
pub struct SilentNode {
    frames: Arc<Mutex<BTreeMap<NodeId, usize>>>,
    /// Streams of answers stay open.
    holds: bool,
}

impl SilentNode {
    /// The frames that came so far.
    pub fn frames(&self) -> BTreeMap<NodeId, usize> {
        self.frames.lock().unwrap().clone()
    }

    fn answer<T: Send + 'static>(&self) -> Result<BoxStream<'static, T>, Refusal> {
        let silent = Refusal::new(RefusalCode::Unavailable, "silent");
        if self.holds { Ok(futures::stream::pending().boxed()) } else { Err(silent) }
    }
}

impl peer::Service for SilentNode {
    async fn link(
        &self,
        from: NodeId,
        _: NodeId,
        mut frames: peer::Incoming,
    ) -> Result<peer::Outgoing, Refusal> {
        while let Some(Ok(packet)) = frames.next().await {
            let known = packet.messages.iter().filter(|message| message.kind.is_some()).count();
            *self.frames.lock().unwrap().entry(from).or_default() += known;
        }
        Err(Refusal::new(RefusalCode::Unavailable, "silent"))
    }

    async fn drain(&self, _: NodeId, _: Duration) -> Result<BoxStream<'static, DrainRow>, Refusal> {
        self.answer()
    }

    async fn submit_job(&self, _: NodeId, _: NewSubmission) -> Result<u32, Refusal> {
        Err(Refusal::new(RefusalCode::Unavailable, "silent"))
    }

    async fn stop_job(&self, _: NodeId, _: String, _: Duration) -> Result<bool, Refusal> {
        Err(Refusal::new(RefusalCode::Unavailable, "silent"))
    }

    async fn job_output(&self, _: NodeId, _: OutputQuery) -> Result<BoxStream<'static, Bytes>, Refusal> {
        self.answer()
    }

    async fn logs(&self, _: NodeId, _: LogQuery) -> Result<BoxStream<'static, Vec<LogLine>>, Refusal> {
        self.answer()
    }

    async fn runs(&self, _: NodeId, _: RunQuery) -> Result<BoxStream<'static, RunBatch>, Refusal> {
        self.answer()
    }
}

/// Whether a call with an empty message is not for the caller.
async fn is_denied(address: &str, own: &Credentials, path: &str) -> bool {
    let path = format!("/{path}");
    let answer = raw::call(address, own, &path, Vec::new());
    // A watch goes on.
    let answer = tokio::time::timeout(Duration::from_secs(1), answer).await.unwrap_or(Ok(()));
    answer.is_err_and(|status| status.code() == tonic::Code::PermissionDenied)
}

/// The answer to a scrape under TLS.
async fn scrape(address: &str, own: &Credentials) -> String {
    let Trust::Identity(tls) = &own.trust else { panic!("it has an identity") };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = Called::Control.server_name().unwrap();
    let mut stream = TlsConnector::from(tls.client()).connect(name, stream).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: tharsis\r\n\r\n").await.unwrap();
    let mut heard = String::new();
    // The end may come without the goodbye of TLS.
    let _ended = stream.read_to_string(&mut heard).await;
    heard
}

#[tokio::test]
async fn each_role_makes_its_own_calls_and_no_others() {
    let protocol = Protocol::read();
    for role in Role::ALL {
        let cluster = Cluster::start().await;
        let address = cluster.address();
        let own = cluster.caller(role).await;
        for (call, roles) in RIGHTS {
            let is_denied = match call {
                "GET /metrics" => scrape(&address, &own).await.starts_with("HTTP/1.1 403 "),
                _ => is_denied(&address, &own, &format!("{}/{call}", protocol.rpc(call).service)).await,
            };
            assert_eq!(is_denied, !roles.contains(&role), "{call} by {}", role.name());
        }
        cluster.server.stop().await.unwrap();
    }
}

/// A node says of jobs what it says of itself: that those of its own drivers begin and end.
#[tokio::test]
async fn jobs_are_those_of_the_node_of_their_driver() {
    let cluster = Cluster::start().await;
    let address = cluster.address();
    let node_client = async |id: u64| {
        let machine = cluster.machine(Role::Driver).await;
        let signed = join::as_node(&address, &machine, NodeId(id)).await.unwrap();
        connect(&address, &credentials(Tls::new(&signed.node).unwrap(), Some(NodeId(id)))).await.unwrap()
    };
    let (own, other) = (node_client(21).await, node_client(22).await);
    let request = |driver_node| JobRequest {
        name: String::new(),
        namespace: String::new(),
        code_unit: None,
        driver_node: NodeId(driver_node),
        entrypoint: String::new(),
        request: [driver_node as u8; 16],
        terms: None,
    };
    let refused = other.register_job(&request(21)).await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    let job = own.register_job(&request(21)).await.unwrap();
    let refused = other.finish_job(job, true, "not its own").await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    assert!(own.finish_job(job, true, "").await.unwrap());
    let job = other.register_job(&request(22)).await.unwrap();
    let operator = credentials(Tls::new(&cluster.machine(Role::Operator).await).unwrap(), None);
    let operator = connect(&address, &operator).await.unwrap();
    assert!(operator.finish_job(job, false, "by an operator").await.unwrap());
    cluster.server.stop().await.unwrap();
}

/// A node that was killed and starts again has another id, and others need not wait for the lease of the
/// first.
#[tokio::test]
async fn a_node_that_starts_again_at_its_address_ends_the_former_one() {
    let cluster = Cluster::start().await;
    let (machine, other) = (cluster.machine(Role::Node).await, cluster.machine(Role::Node).await);
    let address = cluster.address();
    let register = async |machine: &Identity, info: NodeInfo| {
        let signed = join::as_node(&address, machine, info.id).await.unwrap();
        let own = credentials(Tls::new(&signed.node).unwrap(), Some(info.id));
        let client = connect(&address, &own).await.unwrap();
        client.register_node(&info, 0).await.unwrap();
        client.list_nodes().await.unwrap().nodes.iter().map(|node| node.id.0).collect::<Vec<_>>()
    };
    let at = |id, listen: &str| NodeInfo { listen: listen.to_owned(), ..node(id) };
    assert_eq!(register(&machine, at(11, "10.0.0.1:7000")).await, [11]);
    assert_eq!(register(&machine, at(12, "10.0.0.1:7001")).await, [11, 12]);
    // Another machine says that it has the address: it ends nobody.
    assert_eq!(register(&other, at(13, "10.0.0.1:7000")).await, [11, 12, 13]);
    assert_eq!(register(&machine, at(14, "10.0.0.1:7000")).await, [12, 13, 14]);
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_certificate_is_of_no_use_for_another_node() {
    let cluster = Cluster::start().await;
    let identity = cluster.node_of(&cluster.machine(Role::Node).await).await;
    let own = credentials(Tls::new(&identity).unwrap(), Some(NodeId(1)));
    let client = connect(&cluster.address(), &own).await.unwrap();
    client.register_node(&node(1), 0).await.unwrap();
    let refused = client.register_node(&node(2), 0).await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    let refused = client.unregister_node(NodeId(2), "another").await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    // A connection in the name of another node is not opened at all.
    let other = Credentials { node: Some(NodeId(2)), ..own.clone() };
    let refused = other.connect(&cluster.address(), Called::Control, Purpose::Calls).await.map(drop);
    assert!(matches!(refused, Err(ProofError::Refused(Reason::OtherNode))), "{refused:?}");
    // A node's certificate does not ask for one of another node either.
    let refused = join::as_node(&cluster.address(), &identity, NodeId(2)).await.map(drop);
    assert!(matches!(refused, Err(JoinError::Refused(_))), "{refused:?}");
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn machines_that_only_look_get_no_certificates_of_nodes() {
    let cluster = Cluster::start().await;
    for role in [Role::Observer, Role::Operator] {
        let machine = cluster.machine(role).await;
        let refused = join::as_node(&cluster.address(), &machine, NodeId(1)).await.map(drop);
        assert!(matches!(&refused, Err(JoinError::Refused(why)) if why.contains(role.name())), "{refused:?}");
        let own = credentials(Tls::new(&machine).unwrap(), None);
        let refused = own.connect(&cluster.address(), Called::Control, Purpose::Transfers).await.map(drop);
        assert!(matches!(refused, Err(ProofError::Refused(Reason::WrongRole))), "{refused:?}");
    }
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_drivers_node_has_no_resources() {
    let cluster = Cluster::start().await;
    let own = cluster.caller(Role::Driver).await;
    let client = connect(&cluster.address(), &own).await.unwrap();
    let refused = client.register_node(&node(1), 0).await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    let without = NodeInfo { resources: Resources::default(), ..node(1) };
    client.register_node(&without, 0).await.unwrap();
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn callers_of_another_cluster_and_of_the_past_are_refused() {
    let cluster = Cluster::start().await;
    let elsewhere = Cluster::start().await;
    // Neither side believes the other's authority.
    let foreign = elsewhere.caller(Role::Node).await;
    let refused = foreign.connect(&cluster.address(), Called::Control, Purpose::Calls).await.map(drop);
    assert!(matches!(refused, Err(ProofError::Tls(_))), "{refused:?}");
    // One whose time is over.
    let key = NewKey::generate().unwrap();
    let machine = Tls::new(&cluster.machine(Role::Node).await).unwrap().subject().unwrap();
    let over = cluster.authority.renew(machine, 1, &key.public(), OVER).unwrap();
    let over = key.with(over, cluster.authority.anchors().unwrap());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let own = credentials(Tls::new(&over).unwrap(), Some(NodeId(1)));
    let refused = own.connect(&cluster.address(), Called::Control, Purpose::Calls).await.map(drop);
    assert!(matches!(refused, Err(ProofError::Tls(_))), "{refused:?}");
    // One without any.
    let secret = Credentials::with_secret(Secret::from_bytes([7; 32]), Some(NodeId(1)));
    let refused = secret.connect(&cluster.address(), Called::Control, Purpose::Calls).await.map(drop);
    assert!(matches!(refused, Err(ProofError::Refused(Reason::TlsRequired))), "{refused:?}");
    cluster.server.stop().await.unwrap();
    elsewhere.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_token_of_another_cluster_shows_nothing_to_this_one() {
    let cluster = Cluster::start().await;
    let elsewhere = Cluster::start().await;
    let token = elsewhere.authority.make_token(Role::Node, HOUR).unwrap();
    // The caller sees that the authority is not that of its token before it sends the token.
    let refused = join::with_token(&cluster.address(), &token, "host").await.map(drop);
    assert!(matches!(refused, Err(JoinError::Proof(ProofError::Tls(_)))), "{refused:?}");
    let expired = cluster.authority.make_token(Role::Node, Duration::ZERO).unwrap();
    let refused = join::with_token(&cluster.address(), &expired, "host").await.map(drop);
    assert!(matches!(&refused, Err(JoinError::Refused(why)) if why.contains("ExpiredToken")), "{refused:?}");
    let good = cluster.authority.make_token(Role::Node, HOUR).unwrap().to_string();
    let mut parts: Vec<&str> = good.split('.').collect();
    parts[2] = "00000000000000000000000000000000";
    let guessed: Token = parts.join(".").parse().unwrap();
    let refused = join::with_token(&cluster.address(), &guessed, "host").await.map(drop);
    assert!(matches!(&refused, Err(JoinError::Refused(why)) if why.contains("UnknownToken")), "{refused:?}");
    cluster.server.stop().await.unwrap();
    elsewhere.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_revoked_machine_is_shut_out_of_calls_that_it_has_begun_to_make() {
    let cluster = Cluster::start().await;
    let joined = cluster.machine(Role::Node).await;
    let own = credentials(Tls::new(&cluster.node_of(&joined).await).unwrap(), Some(NodeId(1)));
    let client = connect(&cluster.address(), &own).await.unwrap();
    client.register_node(&node(1), 0).await.unwrap();
    let machine = cluster.authority.machine_of(1).unwrap().unwrap();
    assert!(cluster.authority.revoke_machine(machine).unwrap());
    let refused = client.keep_alive(NodeId(1)).await.unwrap_err();
    assert_eq!(code(&refused), RefusalCode::PermissionDenied);
    let refused = join::as_node(&cluster.address(), &joined, NodeId(1)).await.map(drop);
    let is_revoked = matches!(refused, Err(JoinError::Proof(ProofError::Refused(Reason::Revoked))));
    assert!(is_revoked, "{refused:?}");
    cluster.server.stop().await.unwrap();
}
