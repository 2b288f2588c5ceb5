//! Every call, at heads and at members, by every role with every certificate: who is let in.

use super::identity::{Cluster, HOUR, PER_MACHINE_MAX, SilentNode, connect, credentials, node};
use crate::protocol::Protocol;
use futures::StreamExt;
use std::collections::BTreeMap;
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

/// Calls whose message names a node that need not be that of the caller: the one that is called, or one that
/// seems to be dead.
const OF_OTHERS: [&str; 7] = ["Drain", "JobOutput", "Logs", "Runs", "StopJob", "SubmitJob", "SuspectNode"];

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
    /// That of its node, whose time is over.
    ExpiredNode,
    /// That of its machine, whose time is over.
    ExpiredMachine,
    /// One of another authority.
    ForeignAuthority,
}

const ALL: [Shown; 8] = [
    Shown::Machine,
    Shown::Node,
    Shown::ForeignNode,
    Shown::RevokedMachine,
    Shown::RevokedNode,
    Shown::ExpiredNode,
    Shown::ExpiredMachine,
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
    node: SilentNode,
}

/// A caller with a certificate.
struct Visitor {
    identity: Identity,
    own: Credentials,
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
        let member = Member::listen(cluster).await;
        let looking = cluster.authority.own(Role::Observer, None, false, HOUR).unwrap();
        let looking = credentials(Tls::new(&looking).unwrap(), None);
        let client = connect(&cluster.address(), &looking).await.unwrap();
        member.gate.revoked().hear(client.cluster_info().await.unwrap().revoked);
        let revoked = member.gate.revoked().clone();
        tokio::spawn(async move {
            let mut changes = client.membership().with_revoked(revoked);
            while changes.next().await.is_ok() {}
        });
        member
    }

    async fn listen(cluster: &Cluster) -> Member {
        // Callers expect the name of a control store; what makes a head is its signer.
        let own = cluster.authority.own(Role::Node, Some(CALLED), true, HOUR).unwrap();
        let gate = Gate::new(Trust::Identity(Tls::new(&own).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (calls, mut accepted) = mpsc::channel(16);
        tokio::spawn(port::accept(listener, gate.clone(), Arc::new(Handler(calls))));
        let node = SilentNode::default();
        let routes = peer::routes(Routes::default(), Arc::new(node.clone()));
        let server = tonic::transport::Server::builder().add_routes(routes);
        tokio::spawn(
            server.serve_with_incoming(futures::stream::poll_fn(move |context| accepted.poll_recv(context))),
        );
        Member { address, gate, node }
    }
}

/// A caller with a certificate. Its machine is revoked by whoever asks for one that is to be.
async fn caller(
    cluster: &Cluster,
    elsewhere: &Cluster,
    place: Place<'_>,
    role: Role,
    shown: Shown,
) -> Visitor {
    let at = if shown == Shown::ForeignAuthority { elsewhere } else { cluster };
    let machine = at.machine(role).await;
    let subject = Tls::new(&machine).unwrap().subject().unwrap();
    let (identity, node) = if is_node(role, shown) {
        // Each caller has a machine and a node of its own.
        let node = subject.machine.0 | OWN;
        let lifetime = if shown == Shown::ExpiredNode { Duration::ZERO } else { HOUR };
        (signed(at, &machine, node, lifetime), Some(NodeId(node)))
    } else if is_expired(shown) {
        (at.authority.own(role, None, false, Duration::ZERO).unwrap(), None)
    } else {
        (machine, None)
    };
    if matches!(shown, Shown::RevokedMachine | Shown::RevokedNode) {
        at.authority.revoke_machine(subject.machine).unwrap();
        if let Place::Member(member) = place {
            until(|| member.gate.revoked().check(subject.machine) == Err(Reason::Revoked)).await;
        }
    }
    let own = credentials(Tls::new(&identity).unwrap(), node);
    Visitor { identity, own }
}

/// Whether a caller shows the certificate of a node.
fn is_node(role: Role, shown: Shown) -> bool {
    let is_machine = matches!(shown, Shown::Machine | Shown::RevokedMachine | Shown::ExpiredMachine);
    role.has_nodes() && !is_machine
}

fn is_expired(shown: Shown) -> bool {
    matches!(shown, Shown::ExpiredNode | Shown::ExpiredMachine)
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
        "RegisterJob" => {
            let major = tharsis_protos::control::PROTOCOL.major as u8;
            [fixed(4, node), bytes(6, &[8, major]), bytes(7, &[7; 16])].concat()
        }
        "Link" => [fixed(1, node), fixed(2, CALLED)].concat(),
        _ => Vec::new(),
    }
}

/// A packet with a frame of each kind, without what is in it.
fn packet(protocol: &Protocol, node: u64) -> Vec<u8> {
    let mut packet = message("Link", node);
    for number in protocol.frames() {
        let key = number << 3 | 2;
        // Numbers of seven bits, the lowest first; the length of what is in it is 0.
        let frame =
            if key < 128 { vec![key as u8, 0] } else { vec![(key & 127 | 128) as u8, (key >> 7) as u8, 0] };
        packet.extend(bytes(6, &frame));
    }
    packet
}

fn speaks_for_a_node(call: &str) -> bool {
    !message(call, OWN).is_empty()
}

/// The outcome that a call must have.
fn expected(call: &str, roles: &[Role], role: Role, shown: Shown) -> Outcome {
    match shown {
        Shown::ForeignAuthority
        | Shown::ExpiredNode
        | Shown::ExpiredMachine
        | Shown::RevokedMachine
        | Shown::RevokedNode => return Outcome::NoConnection,
        Shown::Machine | Shown::Node | Shown::ForeignNode => {}
    }
    if !roles.contains(&role) {
        return Outcome::Denied;
    }
    // Operators end any node.
    let is_own = shown == Shown::Node && role.has_nodes() || role == Role::Operator;
    if speaks_for_a_node(call) && !is_own { Outcome::Denied } else { Outcome::Served }
}

async fn outcome(protocol: &Protocol, address: &str, own: &Credentials, call: &str, shown: Shown) -> Outcome {
    if call == SCRAPE {
        return scraped(address, own).await;
    }
    // A connection first: a call would say of its refusal that nobody answers.
    if own.connect(address, Called::Control, Purpose::Calls).await.is_err() {
        return Outcome::NoConnection;
    }
    let node = match (shown, own.node) {
        (Shown::ForeignNode, _) | (_, None) => OTHER,
        (_, Some(node)) => node.0,
    };
    let path = format!("/{}/{call}", protocol.rpc(call).service);
    let answer = async {
        if call == "Link" {
            let packets = vec![message(call, node), packet(protocol, node)];
            return raw::stream(address, own, &path, packets).await;
        }
        // A watch goes on.
        let answer = raw::call(address, own, &path, message(call, node));
        tokio::time::timeout(WATCHED, answer).await.unwrap_or(Ok(()))
    };
    match answer.await {
        Err(status) if status.code() == tonic::Code::PermissionDenied => Outcome::Denied,
        _ => Outcome::Served,
    }
}

async fn scraped(address: &str, own: &Credentials) -> Outcome {
    let Trust::Identity(tls) = &own.trust else { panic!("it has an identity") };
    let Ok(stream) = TcpStream::connect(address).await else { return Outcome::NoConnection };
    let name = Called::Control.server_name().unwrap();
    match TlsConnector::from(tls.client()).connect(name, stream).await {
        Ok(mut stream) => ask(&mut stream).await,
        Err(_) => Outcome::NoConnection,
    }
}

/// The outcome of a scrape over a connection.
async fn ask(stream: &mut Opened) -> Outcome {
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
    let (address, is_head, node) = match port {
        Place::Head => (cluster.address(), true, &cluster.node),
        Place::Member(member) => (member.address.clone(), false, &member.node),
    };
    let (address, protocol) = (address.as_str(), Protocol::read());
    // The frames that get in.
    let mut frames = BTreeMap::new();
    let mut visitors = Vec::new();
    for (role, shown) in Role::ALL.into_iter().flat_map(|role| ALL.map(|shown| (role, shown))) {
        visitors.push((role, shown, caller(cluster, elsewhere, port, role, shown).await));
    }
    // Certificates count in seconds: those that are to be over are.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for (role, shown, Visitor { identity, own }) in visitors {
        let place = format!("{shown:?} by {} at a {}", role.name(), if is_head { "head" } else { "member" });
        for (call, roles) in RIGHTS {
            if !is_head && call != SCRAPE && protocol.rpc(call).service.ends_with(".Control") {
                // Members serve no control store.
                continue;
            }
            let found = outcome(&protocol, address, &own, call, shown).await;
            let mut wanted = expected(call, roles, role, shown);
            if call == "Link" && wanted == Outcome::Served {
                frames.insert(own.node.unwrap(), protocol.frames().len());
            }
            if call == SCRAPE && is_revoked(shown) {
                wanted = Outcome::Denied;
            }
            assert_eq!(found, wanted, "{call}: {place}");
        }
        check_connections(address, &own, role, shown, is_head, &place).await;
        check_certificates(address, &identity, role, shown, is_head, &place).await;
    }
    assert_eq!(node.frames(), frames, "frames of links");
    check_nobody(cluster, address, is_head).await;
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
    let is_good = !is_revoked(shown) && shown != Shown::ForeignAuthority && !is_expired(shown);
    let refused = own.connect(address, Called::Control, Purpose::Join).await.map(drop);
    assert_eq!(refused.is_ok(), is_good && is_head, "joins: {place}: {refused:?}");
}

/// Requests for certificates: machines alone make them, of heads.
async fn check_certificates(
    address: &str,
    identity: &Identity,
    role: Role,
    shown: Shown,
    is_head: bool,
    place: &str,
) {
    let shows_machine = matches!(shown, Shown::Machine)
        || !role.has_nodes() && matches!(shown, Shown::Node | Shown::ForeignNode);
    let signed = join::as_machine(address, identity).await.map(drop);
    assert_eq!(signed.is_ok(), is_head && shows_machine, "that of a machine: {place}: {signed:?}");
    let wanted = Tls::new(identity).unwrap().subject().unwrap().machine.0 | OWN;
    let signed = join::as_node(address, identity, NodeId(wanted)).await.map(drop);
    let is_signed = is_head && shows_machine && role.has_nodes();
    assert_eq!(signed.is_ok(), is_signed, "that of a node: {place}: {signed:?}");
}

/// A caller that shows no certificate.
async fn check_nobody(cluster: &Cluster, address: &str, is_head: bool) {
    for purpose in [Purpose::Calls, Purpose::Transfers] {
        let refused = stranger(cluster, address, purpose).await.map(drop);
        assert!(matches!(refused, Err(ProofError::Refused(Reason::NoCertificate))), "{refused:?}");
    }
    // At a head it may show a token.
    let refused = stranger(cluster, address, Purpose::Join).await.map(drop);
    let is_no_head = matches!(refused, Err(ProofError::Refused(Reason::NoAuthority)));
    assert!(if is_head { refused.is_ok() } else { is_no_head }, "{refused:?}");
    let token = cluster.authority.make_token(Role::Node, HOUR).unwrap();
    let joined = join::with_token(address, &token, "host").await.map(drop);
    assert_eq!(joined.is_ok(), is_head, "{joined:?}");
    let mut scrape = handshake(cluster, address).await.unwrap();
    assert_eq!(ask(&mut scrape).await, Outcome::Denied);
}

/// A call that is new has no outcome here until somebody has said which it should have.
#[test]
fn every_call_is_among_these_tests() {
    let protocol = Protocol::read();
    let mut calls: Vec<&str> = protocol.rpcs.iter().map(|rpc| rpc.name.as_str()).chain([SCRAPE]).collect();
    calls.sort_unstable();
    assert_eq!(calls, RIGHTS.map(|(call, _)| call));
    for rpc in &protocol.rpcs {
        let call = rpc.name.as_str();
        let is_told = speaks_for_a_node(call) || OF_OTHERS.contains(&call);
        assert_eq!(is_told, protocol.names_a_node(&rpc.request), "{call}: whose is the node that it names?");
        assert!(!(speaks_for_a_node(call) && OF_OTHERS.contains(&call)), "{call}");
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
    let Member { address, gate, .. } = Member::listen(&cluster).await;
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
    let mut stream = handshake(cluster, address).await?;
    let key = Secret::from_bytes(proof_key(stream.get_ref().1).unwrap());
    proof::prove(&mut stream, &key, None, purpose).await.map(|()| stream)
}

type Opened = tokio_rustls::client::TlsStream<TcpStream>;

/// A connection without a certificate.
async fn handshake(cluster: &Cluster, address: &str) -> Result<Opened, ProofError> {
    let config = pinned(cluster.authority.anchors().unwrap().hash()).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = Called::Control.server_name().unwrap();
    TlsConnector::from(config).connect(name, stream).await.map_err(ProofError::Tls)
}

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
