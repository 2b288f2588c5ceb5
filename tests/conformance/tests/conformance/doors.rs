//! Every call, at heads and at members, by every role with every certificate: who is let in.

use super::identity::{Cluster, HOUR, PER_MACHINE_MAX, SilentNode, connect, credentials, node};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tharsis_conformance::raw;
use tharsis_identity::{Identity, NewKey, Role, Tls, pinned, proof_key};
use tharsis_protos::caller::Caller;
use tharsis_protos::connection::{Called, Credentials, Gate, Stream, Trust};
use tharsis_protos::join;
use tharsis_protos::peer;
use tharsis_protos::port::{self, PortHandler, UNPROVED_MAX};
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

/// The row of scrapes in the table of rights.
const SCRAPE: &str = "GET /metrics";

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

/// Outcome of a call.
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
    /// One that hears of machines that are revoked, as members do.
    async fn start(cluster: &Cluster) -> Member {
        let (address, gate) = Member::listen(cluster).await;
        let looking = cluster.authority.own(Role::Observer, None, false, HOUR).unwrap();
        let looking = credentials(Tls::new(&looking).unwrap(), None);
        let client = connect(&cluster.address(), &looking).await.unwrap();
        gate.revoked().hear(client.cluster_info().await.unwrap().revoked);
        let revoked = gate.revoked().clone();
        tokio::spawn(async move {
            let mut changes = client.membership().with_revoked(revoked);
            while changes.next().await.is_ok() {}
        });
        Member { address, gate }
    }

    async fn listen(cluster: &Cluster) -> (String, Gate) {
        // Callers expect the name of a control store; what makes a head is its signer.
        let own = cluster.authority.own(Role::Node, Some(CALLED), true, HOUR).unwrap();
        let gate = Gate::new(Trust::Identity(Tls::new(&own).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (calls, mut accepted) = mpsc::channel(16);
        tokio::spawn(port::accept(listener, gate.clone(), Arc::new(Handler(calls))));
        let routes = peer::routes(Routes::default(), Arc::new(SilentNode));
        let server = tonic::transport::Server::builder().add_routes(routes);
        tokio::spawn(
            server.serve_with_incoming(futures::stream::poll_fn(move |context| accepted.poll_recv(context))),
        );
        (address, gate)
    }
}

/// A caller with a certificate. Its machine is revoked by whoever asks for one that is to be.
async fn caller(
    cluster: &Cluster,
    elsewhere: &Cluster,
    place: Place<'_>,
    role: Role,
    shown: Shown,
) -> Credentials {
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
        if let Place::Member(member) = place {
            until(|| member.gate.revoked().check(subject.machine) == Err(Reason::Revoked)).await;
        }
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
    if call == SCRAPE {
        return scraped(address, own).await;
    }
    // A connection first: a call would say of its refusal that nobody answers.
    if own.connect(address, Called::Control, Purpose::Calls).await.is_err() {
        return Outcome::NoConnection;
    }
    let service = if is_of_peer(call) { "tharsis.peer.v1.Peer" } else { "tharsis.control.v1.Control" };
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

/// The port that is called.
#[derive(Clone, Copy)]
enum Place<'a> {
    Head,
    Member(&'a Member),
}

/// Waits for what another task does.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not come to pass within 20 s");
}

async fn check_doors(cluster: &Cluster, elsewhere: &Cluster, port: Place<'_>) {
    let (address, is_head) = match port {
        Place::Head => (cluster.address(), true),
        Place::Member(member) => (member.address.clone(), false),
    };
    let address = address.as_str();
    for role in Role::ALL {
        for shown in ALL {
            let own = caller(cluster, elsewhere, port, role, shown).await;
            if shown == Shown::Expired {
                // Certificates count in seconds.
                tokio::time::sleep(Duration::from_millis(1100)).await;
            }
            let place =
                format!("{shown:?} by {} at a {}", role.name(), if is_head { "head" } else { "member" });
            for (call, roles) in RIGHTS {
                if !is_head && !is_of_peer(call) && call != SCRAPE {
                    // Members serve no control store.
                    continue;
                }
                let found = outcome(address, &own, call, shown).await;
                let mut wanted = expected(call, roles, role, shown);
                if call == SCRAPE && is_revoked(shown) {
                    wanted = Outcome::Denied;
                }
                assert_eq!(found, wanted, "{call}: {place}");
            }
            check_connections(address, &own, role, shown, is_head, &place).await;
        }
    }
    check_nobody(cluster, address).await;
}

fn is_of_peer(call: &str) -> bool {
    ["Drain", "JobOutput", "Link", "Logs", "StopJob", "SubmitJob"].contains(&call)
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
        let refused = stranger(cluster, address, purpose).await.map(drop);
        assert!(matches!(refused, Err(ProofError::Refused(Reason::NoCertificate))), "{refused:?}");
    }
}

#[tokio::test]
async fn every_call_by_every_role_with_every_certificate_at_a_head() {
    let (cluster, elsewhere) = (Cluster::start().await, Cluster::start().await);
    check_doors(&cluster, &elsewhere, Place::Head).await;
}

#[tokio::test]
async fn every_call_by_every_role_with_every_certificate_at_a_member() {
    let (cluster, elsewhere) = (Cluster::start().await, Cluster::start().await);
    let member = Member::start(&cluster).await;
    check_doors(&cluster, &elsewhere, Place::Member(&member)).await;
}

#[tokio::test]
async fn a_member_lets_no_machine_in_before_it_has_heard_which_ones_were_revoked() {
    let cluster = Cluster::start().await;
    let own = credentials(Tls::new(&cluster.machine(Role::Driver).await).unwrap(), None);
    let (address, gate) = Member::listen(&cluster).await;
    for purpose in [Purpose::Calls, Purpose::Transfers, Purpose::Join] {
        let refused = own.connect(&address, Called::Control, purpose).await.map(drop);
        assert!(matches!(refused, Err(ProofError::Refused(Reason::NotYet))), "{purpose:?}: {refused:?}");
    }
    assert_eq!(scraped(&address, &own).await, Outcome::Served, "it is told to ask again");
    gate.revoked().hear([]);
    own.connect(&address, Called::Control, Purpose::Calls).await.unwrap();
}

#[tokio::test]
async fn open_connections_of_a_revoked_machine_are_cut_at_heads_and_members() {
    let cluster = Cluster::start().await;
    let member = Member::start(&cluster).await;
    let machine = cluster.machine(Role::Operator).await;
    let own = credentials(Tls::new(&machine).unwrap(), None);
    let client = connect(&cluster.address(), &own).await.unwrap();
    let mut watch = client.with_patience(Duration::ZERO).membership();
    let listening = tokio::spawn(async move {
        // The list of those that were revoked comes first.
        while watch.next().await.is_ok() {}
    });
    let mut open = Vec::new();
    for address in [&cluster.address(), &member.address] {
        open.push(own.connect(address, Called::Control, Purpose::Calls).await.unwrap());
    }
    let id = Tls::new(&machine).unwrap().subject().unwrap().machine;
    assert!(cluster.authority.revoke_machine(id).unwrap());
    let wait = Duration::from_secs(20);
    for mut stream in open {
        // Settings of HTTP/2 come first.
        let ended = tokio::time::timeout(wait, stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "the connection stays open");
    }
    tokio::time::timeout(wait, listening).await.expect("the watch goes on").unwrap();
}

#[tokio::test]
async fn what_one_head_notes_holds_for_the_others() {
    let here = Cluster::start().await;
    let there = here.beside().await;
    // A token of one head is good at the other one.
    let token = here.authority.make_token(Role::Node, HOUR).unwrap();
    until(|| there.authority.tokens().unwrap().len() == 1).await;
    let [own, other] = [
        join::with_token(&there.address(), &token, "own").await.unwrap(),
        join::with_token(&here.address(), &token, "other").await.unwrap(),
    ];
    let subject = Tls::new(&own).unwrap().subject().unwrap();
    // A node is one machine's, whichever head is asked.
    let identity = join::as_node(&there.address(), &own, NodeId(OWN)).await.unwrap().node;
    let refused = join::as_node(&here.address(), &other, NodeId(OWN)).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("another machine"), "{refused}");
    let shown = credentials(Tls::new(&identity).unwrap(), Some(NodeId(OWN)));
    let client = connect(&there.address(), &shown).await.unwrap();
    client.register_node(&node(OWN), 0).await.unwrap();
    // A machine that is revoked at one is refused by the other, its node is removed, and its token is good no
    // more.
    until(|| here.authority.machine_of(OWN).unwrap() == Some(subject.machine)).await;
    until(|| here.authority.token_of(subject.machine).unwrap().is_some()).await;
    assert!(here.authority.revoke_machine(subject.machine).unwrap());
    assert!(here.authority.revoke_token(here.authority.token_of(subject.machine).unwrap().unwrap()).unwrap());
    until(|| there.authority.is_revoked(subject.machine)).await;
    let refused = own_call(&there.address(), &own).await.unwrap_err();
    assert!(matches!(refused, ProofError::Refused(Reason::Revoked)), "{refused}");
    let looking = credentials(
        Tls::new(&there.authority.own(Role::Operator, None, false, HOUR).unwrap()).unwrap(),
        None,
    );
    let client = connect(&there.address(), &looking).await.unwrap();
    for left in (0..1000).rev() {
        if client.list_nodes().await.unwrap().nodes.is_empty() {
            break;
        }
        assert_ne!(left, 0, "the node of the machine stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(|| there.authority.tokens().unwrap().is_empty()).await;
    let refused = join::with_token(&there.address(), &token, "again").await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("UnknownToken"), "{refused}");
    // A head that starts later knows all of it.
    let later = here.beside().await;
    until(|| later.authority.is_revoked(subject.machine)).await;
    let refused = join::with_token(&later.address(), &token, "again").await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("UnknownToken"), "{refused}");
}

/// A connection without a certificate that was proved, for as much as that is.
async fn stranger(cluster: &Cluster, address: &str, purpose: Purpose) -> Result<Opened, ProofError> {
    let config = pinned(cluster.authority.anchors().unwrap().hash()).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = Called::Control.server_name().unwrap();
    let mut stream = TlsConnector::from(config).connect(name, stream).await.map_err(ProofError::Tls)?;
    let key = Secret::from_bytes(proof_key(stream.get_ref().1).unwrap());
    proof::prove(&mut stream, &key, None, purpose).await.map(|()| stream)
}

type Opened = tokio_rustls::client::TlsStream<TcpStream>;

#[tokio::test]
async fn strangers_that_ask_for_a_certificate_and_say_no_more_are_few() {
    const MORE: usize = 40;
    let cluster = Cluster::start().await;
    let address = cluster.address();
    let silent = (0..UNPROVED_MAX + MORE).map(|_| stranger(&cluster, &address, Purpose::Join));
    let silent: Vec<_> = futures::stream::iter(silent).buffered(16).collect().await;
    let mut open = 0;
    for stream in silent {
        let Ok(mut stream) = stream else { continue };
        let ended = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut [0])).await;
        open += usize::from(ended.is_err());
    }
    assert!(open <= UNPROVED_MAX, "{open} are open");
    // A machine with a token is not kept out meanwhile.
    cluster.machine(Role::Node).await;
}

#[tokio::test]
async fn one_machine_does_not_take_all_connections_of_a_port() {
    let cluster = Cluster::start().await;
    let greedy = credentials(Tls::new(&cluster.machine(Role::Observer).await).unwrap(), None);
    let address = cluster.address();
    let mut open = Vec::new();
    let refused = loop {
        match greedy.connect(&address, Called::Control, Purpose::Calls).await {
            Ok(stream) if open.len() < PER_MACHINE_MAX => open.push(stream),
            Ok(_) => panic!("{} connections of one machine", open.len()),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, ProofError::Refused(Reason::TooMany)), "{refused}");
    let other = credentials(Tls::new(&cluster.machine(Role::Observer).await).unwrap(), None);
    other.connect(&address, Called::Control, Purpose::Calls).await.unwrap();
    // Those that end make room.
    open.clear();
    for left in (0..1000).rev() {
        if greedy.connect(&address, Called::Control, Purpose::Calls).await.is_ok() {
            break;
        }
        assert_ne!(left, 0);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn own_call(address: &str, machine: &Identity) -> Result<(), ProofError> {
    let own = credentials(Tls::new(machine).unwrap(), None);
    own.connect(address, Called::Control, Purpose::Calls).await.map(drop)
}
