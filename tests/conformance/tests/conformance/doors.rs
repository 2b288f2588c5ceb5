//! Every call, at heads and at members, by every role with every certificate: who is let in.

use super::identity::{Cluster, HOUR, SilentNode, credentials};
use std::sync::Arc;
use std::time::Duration;
use tharsis_conformance::raw;
use tharsis_identity::{Identity, NewKey, Role, Tls, pinned, proof_key};
use tharsis_protos::connection::{Called, Credentials, Gate, Stream, Trust};
use tharsis_protos::caller::Caller;
use tharsis_protos::peer;
use tharsis_protos::port::{self, PortHandler};
use tharsis_protos::proof::{self, ProofError, Purpose, Reason, Secret};
use tharsis_protos::rights::RIGHTS;
use tharsis_types::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tonic::service::Routes;

/// The node of the head or member that is called.
const CALLED: u64 = 0xca11ed;
/// The node of the caller, and one that is another machine's.
const OWN: u64 = 1;
const OTHER: u64 = 2;

/// A call that has no answer by then goes on.
const WATCHED: Duration = Duration::from_millis(500);

/// The certificate that a caller shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// That of its machine.
    Machine,
    /// That of its node, of which it speaks.
    Node,
    /// That of its node, and it speaks of another one.
    ForeignNode,
    /// That of its machine, which was revoked.
    RevokedMachine,
    /// That of its node, whose machine was revoked.
    RevokedNode,
    /// One whose time is over.
    Expired,
    /// One of another authority.
    ForeignAuthority,
}

const ALL: [Shown; 7] = [
    Shown::Machine,
    Shown::Node,
    Shown::ForeignNode,
    Shown::RevokedMachine,
    Shown::RevokedNode,
    Shown::Expired,
    Shown::ForeignAuthority,
];

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The connection was refused.
    NoConnection,
    /// The call was refused for who called.
    Denied,
    /// The call was looked at.
    Served,
}

/// A node that does not serve the control store.
struct Member {
    address: String,
    gate: Gate,
}

/// Passes calls on, and notes that transfers came so far.
struct Handler(mpsc::Sender<std::io::Result<Stream>>);

impl PortHandler for Handler {
    async fn take(&self, caller: Caller, stream: Stream) {
        if caller.purpose == Purpose::Calls {
            let _ended = self.0.send(Ok(stream)).await;
        }
    }

    fn refused(&self, _: &ProofError) {}

    async fn metrics(&self) -> Option<String> {
        Some("up 1\n".to_owned())
    }
}

impl Member {
    async fn start(cluster: &Cluster) -> Member {
        // Callers expect the name of a control store; what makes a head is its signer.
        let own = cluster.authority.own(Role::Node, Some(CALLED), true, HOUR).unwrap();
        let gate = Gate::new(Trust::Identity(Tls::new(&own).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (calls, mut accepted) = mpsc::channel(16);
        tokio::spawn(port::accept(listener, gate.clone(), Arc::new(Handler(calls))));
        let routes = peer::routes(Routes::default(), Arc::new(SilentNode));
        let server = tonic::transport::Server::builder().add_routes(routes);
        tokio::spawn(server.serve_with_incoming(futures::stream::poll_fn(move |context| {
            accepted.poll_recv(context)
        })));
        Member { address, gate }
    }
}

/// A caller with a certificate. Its machine is revoked by whoever asks for one that is to be.
async fn caller(cluster: &Cluster, elsewhere: &Cluster, role: Role, shown: Shown) -> Credentials {
    let at = if shown == Shown::ForeignAuthority { elsewhere } else { cluster };
    let machine = at.machine(role).await;
    let subject = Tls::new(&machine).unwrap().subject().unwrap();
    let is_node = !matches!(shown, Shown::Machine | Shown::RevokedMachine);
    let (identity, node) = if is_node && role.has_nodes() {
        // Each caller has a machine and a node of its own.
        let node = subject.machine.0 | OWN;
        let lifetime = if shown == Shown::Expired { Duration::ZERO } else { HOUR };
        (signed(at, &machine, node, lifetime), Some(NodeId(node)))
    } else {
        (machine, None)
    };
    if matches!(shown, Shown::RevokedMachine | Shown::RevokedNode) {
        at.authority.revoke_machine(subject.machine).unwrap();
    }
    credentials(Tls::new(&identity).unwrap(), node)
}

fn signed(cluster: &Cluster, machine: &Identity, node: u64, lifetime: Duration) -> Identity {
    let subject = Tls::new(machine).unwrap().subject().unwrap();
    let key = NewKey::generate().unwrap();
    let certificate = cluster.authority.renew(subject, node, &key.public(), lifetime).unwrap();
    key.with(certificate, cluster.authority.anchors().unwrap())
}

/// The field of a message that holds a number of eight bytes.
fn fixed(field: u8, number: u64) -> Vec<u8> {
    [&[field << 3 | 1][..], &number.to_le_bytes()].concat()
}

fn bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, bytes.len() as u8][..], bytes].concat()
}

/// A message that speaks of a node, for calls that do so; empty for others.
fn message(call: &str, node: u64) -> Vec<u8> {
    match call {
        "RegisterNode" => {
            let about = [fixed(1, node), bytes(2, b"127.0.0.1:7"), bytes(3, b"host"), bytes(5, b"")].concat();
            // Version 1 of the protocol, or whichever is spoken.
            let major = tharsis_protos::control::PROTOCOL.major as u8;
            [bytes(1, &about), bytes(2, &[8, major])].concat()
        }
        "KeepAlive" | "UnregisterNode" => fixed(1, node),
        "PutCodeUnit" => [bytes(1, &[7; 32]), fixed(3, node)].concat(),
        "PutProgram" => [vec![13, 1, 0, 0, 0], bytes(2, &[7; 32]), fixed(3, node)].concat(),
        "Link" => [fixed(1, node), fixed(2, CALLED)].concat(),
        _ => Vec::new(),
    }
}

fn speaks_for_a_node(call: &str) -> bool {
    !message(call, OWN).is_empty()
}

/// The outcome that a call must have.
fn expected(call: &str, roles: &[Role], role: Role, shown: Shown) -> Outcome {
    match shown {
        Shown::Expired if role.has_nodes() => return Outcome::NoConnection,
        Shown::ForeignAuthority | Shown::RevokedMachine | Shown::RevokedNode => {
            return Outcome::NoConnection;
        }
        _ => {}
    }
    if !roles.contains(&role) {
        return Outcome::Denied;
    }
    // Operators end any node.
    let is_own = shown == Shown::Node && role.has_nodes() || role == Role::Operator;
    if speaks_for_a_node(call) && !is_own { Outcome::Denied } else { Outcome::Served }
}

async fn outcome(address: &str, own: &Credentials, call: &str, shown: Shown) -> Outcome {
    if call == "GET /metrics" {
        return scraped(address, own).await;
    }
    // A connection first: a call would say of its refusal that nobody answers.
    if own.connect(address, Called::Control, Purpose::Calls).await.is_err() {
        return Outcome::NoConnection;
    }
    let is_of_peer = ["Drain", "JobOutput", "Link", "Logs", "StopJob", "SubmitJob"].contains(&call);
    let service = if is_of_peer { "tharsis.peer.v1.Peer" } else { "tharsis.control.v1.Control" };
    let node = match (shown, own.node) {
        (Shown::ForeignNode, _) | (_, None) => OTHER,
        (_, Some(node)) => node.0,
    };
    let path = format!("/{service}/{call}");
    let answer = raw::call(address, own, &path, message(call, node));
    // A watch goes on.
    match tokio::time::timeout(WATCHED, answer).await.unwrap_or(Ok(())) {
        Err(status) if status.code() == tonic::Code::PermissionDenied => Outcome::Denied,
        _ => Outcome::Served,
    }
}

async fn scraped(address: &str, own: &Credentials) -> Outcome {
    let Trust::Identity(tls) = &own.trust else { panic!("it has an identity") };
    let Ok(stream) = TcpStream::connect(address).await else { return Outcome::NoConnection };
    let name = Called::Control.server_name().unwrap();
    let Ok(mut stream) = TlsConnector::from(tls.client()).connect(name, stream).await else {
        return Outcome::NoConnection;
    };
    let mut heard = String::new();
    // A certificate that is not believed is refused with the first read; the end may come without a goodbye.
    let _sent = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: tharsis\r\n\r\n").await;
    let _ended = stream.read_to_string(&mut heard).await;
    match heard.get(9..12) {
        None => Outcome::NoConnection,
        Some("401" | "403") => Outcome::Denied,
        Some(_) => Outcome::Served,
    }
}

async fn check_doors(cluster: &Cluster, elsewhere: &Cluster, address: &str, is_head: bool) {
    for role in Role::ALL {
        for shown in ALL {
            let own = caller(cluster, elsewhere, role, shown).await;
            if shown == Shown::Expired {
                // Certificates count in seconds.
                tokio::time::sleep(Duration::from_millis(1100)).await;
            }
            let place = format!("{shown:?} by {} at a {}", role.name(), if is_head { "head" } else { "member" });
            for (call, roles) in RIGHTS {
                let found = outcome(address, &own, call, shown).await;
                let mut wanted = expected(call, roles, role, shown);
                if call == "GET /metrics" && is_revoked(shown) {
                    wanted = Outcome::Denied;
                }
                assert_eq!(found, wanted, "{call}: {place}");
            }
            check_connections(address, &own, role, shown, is_head, &place).await;
        }
    }
    check_nobody(cluster, address).await;
}

fn is_revoked(shown: Shown) -> bool {
    matches!(shown, Shown::RevokedMachine | Shown::RevokedNode)
}

/// Connections that are for no calls.
async fn check_connections(
    address: &str,
    own: &Credentials,
    role: Role,
    shown: Shown,
    is_head: bool,
    place: &str,
) {
    let is_node = role.has_nodes() && matches!(shown, Shown::Node | Shown::ForeignNode);
    let refused = own.connect(address, Called::Control, Purpose::Transfers).await.map(drop);
    assert_eq!(refused.is_ok(), is_node, "transfers: {place}: {refused:?}");
    let is_good = !is_revoked(shown)
        && shown != Shown::ForeignAuthority
        && !(shown == Shown::Expired && role.has_nodes());
    let refused = own.connect(address, Called::Control, Purpose::Join).await.map(drop);
    assert_eq!(refused.is_ok(), is_good && is_head, "joins: {place}: {refused:?}");
}

/// A caller that shows no certificate.
async fn check_nobody(cluster: &Cluster, address: &str) {
    for purpose in [Purpose::Calls, Purpose::Transfers] {
        let config = pinned(cluster.authority.anchors().unwrap().hash()).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = Called::Control.server_name().unwrap();
        let mut stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
        let key = Secret::from_bytes(proof_key(stream.get_ref().1).unwrap());
        let refused = proof::prove(&mut stream, &key, None, purpose).await;
        assert!(matches!(refused, Err(ProofError::Refused(Reason::NoCertificate))), "{refused:?}");
    }
}

#[tokio::test]
async fn every_call_by_every_role_with_every_certificate_at_a_head() {
    let (cluster, elsewhere) = (Cluster::start().await, Cluster::start().await);
    check_doors(&cluster, &elsewhere, &cluster.address(), true).await;
}
