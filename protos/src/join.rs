//! Asking the authority for a certificate, at the port of the head.
//!
//! A machine that has a token asks for its own, and later with that for a new one; a node asks, with the
//! machine's, for one that names the node, and for a new one of its machine. All go over TLS, after the proof
//! with [`Purpose::Join`]: one frame each way, a little-endian length of four bytes and a protobuf message.

use crate::caller::{Caller, Who};
use crate::connection::{Called, Credentials, Gate, Signer, Stream, Trust};
use crate::owners::Claimed;
use crate::proof::{self, CALLER_WAIT, PROOF_WAIT, ProofError, Purpose, Secret};
use crate::within::within;
use prost::Message;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tharsis_identity::{
    Anchors, Authority, Former, Identity, IdentityError, NewKey, Subject, Tls, Token, pinned, proof_key,
};
use tharsis_types::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

pub use crate::crowds::{
    CERTIFICATE_EVERY, CERTIFICATES_AT_ONCE, MEMBER_EVERY, MEMBERS_AT_ONCE, STRANGER_EVERY, STRANGERS_AT_ONCE,
};

const FRAME_BYTES_MAX: u32 = 16 << 10;
const TOO_OFTEN: &str = "this machine asks for certificates too often: ask again";
/// The time for which a caller waits for its certificate. The authority notes whose it is on its disk, which
/// may be busy.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Requests of machines and nodes for which the authority works at a time: each has a thread, which may wait
/// for the disk.
static FOR_MACHINES: Semaphore = Semaphore::const_new(4);
/// The same for strangers, whose tokens are read: they do not hold up the certificates of members.
static FOR_STRANGERS: Semaphore = Semaphore::const_new(2);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The machine asks for certificates more often than the authority signs for one.
    #[error("{0}")]
    Busy(String),
    /// The key or the answer is of no use.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The authority did not answer in time. It may have signed.
    #[error("there was no certificate within {} s: the disk of the head may be busy", ANSWER_WAIT.as_secs())]
    Late,
    /// Nobody answers there.
    #[error("nobody answers at {address}: {cause}")]
    Unreachable {
        /// The address.
        address: String,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// The other side is not the head of that cluster, or does not talk to us.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The authority refused.
    #[error("{0}")]
    Refused(String),
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    /// The token's text; empty if the certificate of the connection speaks for the caller.
    #[prost(string, tag = "1")]
    token: String,
    /// The public key of who joins; empty if only a machine's certificate is to be renewed.
    #[prost(bytes = "vec", tag = "2")]
    public_key: Vec<u8>,
    #[prost(string, tag = "3")]
    host: String,
    #[prost(fixed64, tag = "4")]
    node: u64,
    /// The public key of the machine, for a new certificate of it.
    #[prost(bytes = "vec", tag = "5")]
    machine_key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    certificate: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    authority: Vec<u8>,
    /// Why there is none.
    #[prost(string, tag = "3")]
    refused: String,
    #[prost(uint64, tag = "4")]
    lifetime_ms: u64,
    /// The authority that is being replaced, and what it made for its successor; both empty if there is none.
    #[prost(bytes = "vec", tag = "5")]
    former: Vec<u8>,
    #[prost(bytes = "vec", tag = "6")]
    cross: Vec<u8>,
    /// The machine's new certificate.
    #[prost(bytes = "vec", tag = "7")]
    machine: Vec<u8>,
    /// The same request may have a certificate later.
    #[prost(bool, tag = "8")]
    again: bool,
}

/// The certificates that a node was given.
#[derive(Debug)]
pub struct Signed {
    /// Its own identity.
    pub node: Identity,
    /// Lifetime of that identity.
    pub lifetime: Duration,
    /// That of its machine, renewed.
    pub machine: Identity,
}

/// Joins with a token: an identity for this machine.
///
/// # Errors
/// [`JoinError`].
pub async fn with_token(address: &str, token: &Token, host: &str) -> Result<Identity, JoinError> {
    let unreachable = |cause| JoinError::Unreachable { address: address.to_owned(), cause };
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    let connector = TlsConnector::from(pinned(token.authority())?);
    let shake = connector.connect(Called::Control.server_name()?, stream);
    let shaken = within(CALLER_WAIT, shake).await.map_err(ProofError::from)?;
    let mut stream = shaken.map_err(ProofError::Tls)?;
    let key = Secret::from_bytes(proof_key(stream.get_ref().1)?);
    proof::prove(&mut stream, &key, None, Purpose::Join).await?;
    let (token, host) = (token.to_string(), host.to_owned());
    let key = NewKey::generate()?;
    let request = Request { token, host, public_key: key.public(), ..Request::default() };
    let answer = ask(Stream::over_tls(stream), request).await?;
    let anchors = answer.anchors();
    Ok(key.with(answer.certificate, anchors))
}

/// Asks, with the identity of a machine, for one of the node.
///
/// # Errors
/// [`JoinError`].
pub async fn as_node(address: &str, machine: &Identity, node: NodeId) -> Result<Signed, JoinError> {
    let stream = connect(address, machine).await?;
    let key = NewKey::generate()?;
    let (public_key, machine_key) = (key.public(), machine.public()?);
    let answer = ask(stream, Request { node: node.0, public_key, machine_key, ..Request::default() }).await?;
    let anchors = answer.anchors();
    Ok(Signed {
        node: key.with(answer.certificate, anchors.clone()),
        lifetime: Duration::from_millis(answer.lifetime_ms),
        machine: machine.renewed(answer.machine, anchors),
    })
}

/// Asks, with the identity of a machine, for a new certificate of it.
///
/// # Errors
/// [`JoinError`].
pub async fn as_machine(address: &str, machine: &Identity) -> Result<Identity, JoinError> {
    let stream = connect(address, machine).await?;
    let answer = ask(stream, Request { machine_key: machine.public()?, ..Request::default() }).await?;
    let anchors = answer.anchors();
    Ok(machine.renewed(answer.machine, anchors))
}

async fn connect(address: &str, machine: &Identity) -> Result<Stream, JoinError> {
    let tls = Tls::new(machine)?;
    let shown = tls.subject().and_then(|subject| subject.node).map(NodeId);
    let own = Credentials { trust: Trust::Identity(tls), node: shown };
    Ok(own.connect(address, Called::Control, Purpose::Join).await?)
}

impl Answer {
    fn anchors(&self) -> Anchors {
        let former = Former { certificate: self.former.clone(), cross: self.cross.clone() };
        Anchors { current: self.authority.clone(), former: (!self.former.is_empty()).then_some(former) }
    }
}

async fn ask(mut stream: Stream, request: Request) -> Result<Answer, JoinError> {
    let exchange = async {
        write(&mut stream, &request).await?;
        read::<Answer>(&mut stream).await
    };
    let answer = within(ANSWER_WAIT, exchange).await.map_err(|_| JoinError::Late)?;
    let answer = answer.map_err(ProofError::Io)?;
    match (answer.refused.is_empty(), answer.again) {
        (true, _) => Ok(answer),
        (false, true) => Err(JoinError::Busy(answer.refused)),
        (false, false) => Err(JoinError::Refused(answer.refused)),
    }
}

/// Answers one request.
pub(crate) async fn serve(gate: &Gate, signer: &Signer, caller: Caller, mut stream: Stream) {
    // A caller that breaks off or stalls gets nothing, and may ask again.
    let Ok(Ok(request)) = within(PROOF_WAIT, read::<Request>(&mut stream)).await else { return };
    let asking = match caller.who.machine() {
        Some(machine) => tokio::select! {
            seat = gate.crowds.ask(machine) => Some(seat),
            // It says nothing more before it has its answer: it has broken off.
            _ended = stream.read_u8() => return,
        },
        None => None,
    };
    let signed = match &asking {
        Some(None) => Err(JoinError::Busy(TOO_OFTEN.to_owned())),
        Some(Some(_)) | None => sign(signer, caller, request).await,
    };
    let answer = signed.unwrap_or_else(|error| {
        tracing::info!(%error, "a certificate is refused");
        let again = matches!(error, JoinError::Busy(_));
        Answer { refused: error.to_string(), again, ..Answer::default() }
    });
    drop(asking);
    let answering = async {
        write(&mut stream, &answer).await?;
        stream.shutdown().await
    };
    let _answered = within(PROOF_WAIT, answering).await;
}

/// Has the authority work on a thread that may wait for its disk: those of connections serve others.
async fn on_disk<T: Send + 'static>(
    authority: &Arc<Authority>,
    working: &'static Semaphore,
    work: impl FnOnce(&Authority) -> Result<T, IdentityError> + Send + 'static,
) -> Result<T, JoinError> {
    let failed =
        |cause: &dyn std::fmt::Display| JoinError::Refused(format!("nothing is signed now: {cause}"));
    let working = working.acquire().await.map_err(|cause| failed(&cause))?;
    let authority = Arc::clone(authority);
    let done = tokio::task::spawn_blocking(move || {
        let _working = working;
        work(&authority)
    });
    Ok(done.await.map_err(|cause| failed(&cause))??)
}

async fn sign(signer: &Signer, caller: Caller, request: Request) -> Result<Answer, JoinError> {
    let (authority, lifetime) = (&signer.authority, signer.lifetime);
    let working = if request.token.is_empty() { &FOR_MACHINES } else { &FOR_STRANGERS };
    let Request { token, public_key, host, node, machine_key } = request;
    let (certificate, machine) = if token.is_empty() {
        let Who::Certified(machine) = caller.who else { return Err(IdentityError::UnknownToken.into()) };
        let renew_machine = move |authority: &Authority| authority.renew_machine(machine, &machine_key);
        let renewed = on_disk(authority, &FOR_MACHINES, renew_machine).await?;
        let certificate = if public_key.is_empty() {
            Vec::new()
        } else {
            check_owner(signer, machine, node).await?;
            let renew = move |authority: &Authority| authority.renew(machine, node, &public_key, lifetime);
            on_disk(authority, &FOR_MACHINES, renew).await?
        };
        (certificate, renewed)
    } else {
        let token: Token = token.parse()?;
        let admit = move |authority: &Authority| authority.admit(&token, &public_key, &host);
        (on_disk(authority, &FOR_STRANGERS, admit).await?, Vec::new())
    };
    let lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    // Read after the signatures: if the key was replaced in between, its successor's members believe in both.
    let anchors = on_disk(authority, working, Authority::anchors).await?;
    let former = anchors.former.map(|former| (former.certificate, former.cross));
    let (former, cross) = former.unwrap_or_default();
    let authority = anchors.current;
    Ok(Answer { certificate, authority, lifetime_ms, former, cross, machine, ..Answer::default() })
}

/// Refuses a node that another control store gave to another machine.
async fn check_owner(signer: &Signer, machine: Subject, node: u64) -> Result<(), JoinError> {
    // Callers that may not have this node are refused without a claim.
    let may_have = machine.role.has_nodes() && machine.node.is_none_or(|own| own == node);
    let Some(owners) = signer.owners.as_ref().filter(|_| may_have) else { return Ok(()) };
    // The word of this authority comes first: a claim that it would refuse must leave nothing in the table.
    let owner = move |authority: &Authority| authority.machine_of(node);
    let known = on_disk(&signer.authority, &FOR_MACHINES, owner).await?;
    if known.is_some_and(|owner| owner != machine.machine) {
        return Err(IdentityError::NotItsNode(format!("{node:016x}")).into());
    }
    match owners.claim(NodeId(node), machine.machine, signer.lifetime).await {
        Ok(Claimed::Given) => Ok(()),
        Ok(Claimed::ByAnother) => Err(IdentityError::NotItsNode(format!("{node:016x}")).into()),
        Ok(Claimed::TooMany(limit)) => Err(IdentityError::TooManyNodes { limit }.into()),
        Err(cause) => Err(JoinError::Refused(format!("the machine of the node is not known now: {cause}"))),
    }
}

async fn write<M: Message>(stream: &mut Stream, message: &M) -> io::Result<()> {
    let body = message.encode_to_vec();
    let len = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_le_bytes()[..], &body].concat()).await?;
    stream.flush().await
}

async fn read<M: Message + Default>(stream: &mut Stream) -> io::Result<M> {
    let len = stream.read_u32_le().await?;
    if FRAME_BYTES_MAX < len {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that is too long"));
    }
    let mut body = vec![0; len as usize];
    stream.read_exact(&mut body).await?;
    M::decode(body.as_slice()).map_err(io::Error::other)
}
