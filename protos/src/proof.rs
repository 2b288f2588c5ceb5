//! Proof that both ends of a connection know the cluster's secret: the first frames of every connection to
//! the one port of a node, whatever it is for.
//!
//! ```text
//! caller                                   listener
//! hello {purpose, node, nonce}      ->
//!                                   <-     challenge {status, nonce}
//! answer {mac}                      ->
//!                                   <-     verdict {status, mac}
//! what the connection is for        <->
//! ```
//! A MAC is keyed blake3 over who proves and both frames before it. Its key comes from the secret and the
//! address that was called ([`Secret::at`]). So the secret never travels, an answer is good for one
//! connection, and a process that took over a port cannot pass the caller's answer on to another port. The
//! caller sends nothing else before the listener has proved itself as well.
//!
//! Without certificates whoever knows the secret is trusted, and the node that a caller names is its own
//! word. Under TLS the key is the connection's, whose certificates say who is there ([`crate::connection`]).
//!
//! | frame | bytes (numbers are little-endian) |
//! |---|---|
//! | hello | magic\[8\] version:u32 purpose:u32 node:u64 nonce\[32\] |
//! | challenge | magic\[8\] version:u32 status:u32 zero:u64 nonce\[32\] |
//! | answer | mac\[32\] |
//! | verdict | status:u32 zero:u32 mac\[32\] |

use crate::within::{Over, within};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use tharsis_identity::{IdentityError, words_about_clocks};
use tharsis_types::NodeId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::rustls;

/// First bytes of a hello and of a challenge.
pub const MAGIC: [u8; 8] = *b"THARSIS\x02";
/// First bytes of a connection that only asks whether its port answers. They begin neither TLS nor a proof,
/// so every port answers them with words of its own.
pub const KNOCK: [u8; 8] = *b"THARSIS?";
/// Version of the proof.
pub const VERSION: u32 = 2;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// Bytes of a hello and of a challenge.
pub const HELLO_BYTES: usize = 56;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 32;
/// Bytes of a verdict.
pub const VERDICT_BYTES: usize = 40;
/// The time for which a port waits for a caller that has proved nothing.
pub(crate) const PROOF_WAIT: Duration = Duration::from_secs(5);
/// The time for which a caller waits for a listener, whose machine may be so busy that it has no CPU for
/// seconds. After a longer one the network may have lost the words, and others get there sooner.
pub(crate) const CALLER_WAIT: Duration = Duration::from_secs(15);
/// First bytes of an HTTP/2 client, which has nothing proved.
pub(crate) const HTTP2: [u8; 8] = *b"PRI * HT";
/// First bytes of the requests of HTTP/1.1 that are answered ([`crate::scrape`]).
const HTTP1: [&[u8]; 2] = [b"GET /", b"HEAD /"];
/// Answer to a client of HTTP/2: SETTINGS, then GOAWAY with INADEQUATE_SECURITY.
const GO_AWAY: [u8; 26] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12];
/// Limits on time and bytes of the rest that is read of a refused caller, so that it can read the reason.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);
const LAST_WORDS_BYTES_MAX: usize = 64 << 10;
/// Offset of the nonce in a hello or a challenge.
const NONCE_AT: usize = 24;

/// Secret that the members of a cluster know and nobody else does. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(blake3::Hash);

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// gRPC: the control store, links between nodes.
    Calls = 1,
    /// Bytes of objects and programs.
    Transfers = 2,
    /// A certificate is asked for ([`crate::join`]).
    Join = 3,
}

/// The words of a caller about itself, in its hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Purpose.
    pub purpose: Purpose,
    /// The node that it says it is; none for the command line.
    pub node: Option<NodeId>,
}

/// Why a connection is not one of the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// This side's identity cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The other side broke off, or the system refused.
    #[error("the connection ended before it was proved: {0}")]
    Io(#[source] io::Error),
    /// The caller wanted to know whether somebody listens: it knocked, or it left without a word.
    #[error("the connection asked for nothing")]
    Look,
    /// The listener is not one of ours.
    #[error("what listens there does not speak the protocol of this release")]
    NotOurs,
    /// The listener refused.
    #[error("{0}")]
    Refused(Reason),
    /// The caller proves nothing: it begins like a request of HTTP/1.1, with these bytes.
    #[error("the connection began with a request of HTTP/1.1")]
    Scrape([u8; MAGIC.len()]),
    /// One side does not believe the other's certificate.
    #[error("TLS: {}", words_of(.0))]
    Tls(io::Error),
    /// The other side said too little for this time.
    #[error("the connection was not proved within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The listener is of a release with another version of the proof.
    #[error(
        "what listens there speaks version {theirs} of the protocol between processes of a cluster, this release \
         speaks version {VERSION}: use releases that may meet"
    )]
    Version {
        /// Its version.
        theirs: u32,
    },
    /// The listener does not know the secret.
    #[error("what listens there did not prove that it knows the cluster's secret")]
    Unproved,
}

impl ProofError {
    /// Whether it says nothing of the other side, as that was not reached or is not ready: another try may
    /// go well.
    ///
    /// ```
    /// use tharsis_protos::proof::{ProofError, Reason};
    ///
    /// assert!(ProofError::Io(std::io::ErrorKind::ConnectionReset.into()).may_pass());
    /// assert!(ProofError::Refused(Reason::NotYet).may_pass());
    /// assert!(ProofError::Refused(Reason::TooMany).may_pass());
    /// assert!(!ProofError::Version { theirs: 7 }.may_pass());
    /// ```
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Identity(_) | Self::Io(_) | Self::Timeout(_) => true,
            Self::Refused(reason) => matches!(reason, Reason::NotYet | Reason::TooMany),
            // Certificates are renewed, and clocks are set.
            Self::Tls(error) => tls_of(error).is_none_or(|tls| words_about_clocks(tls).is_some()),
            Self::Look | Self::NotOurs | Self::Scrape(_) | Self::Unproved | Self::Version { .. } => false,
        }
    }
}

/// The error of TLS behind an error of the system, if it is one.
fn tls_of(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn words_of(error: &io::Error) -> String {
    tls_of(error).and_then(words_about_clocks).unwrap_or_else(|| error.to_string())
}

impl From<Over> for ProofError {
    fn from(Over(limit): Over) -> ProofError {
        ProofError::Timeout(limit)
    }
}

impl From<io::Error> for ProofError {
    /// An alert of TLS comes as an error of the first read: a caller's handshake is over before the listener
    /// has looked at its certificate.
    fn from(error: io::Error) -> ProofError {
        if tls_of(&error).is_some() {
            return ProofError::Tls(error);
        }
        ProofError::Io(error)
    }
}

/// Why a listener refuses a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// It did not begin with a hello.
    #[error("the connection did not begin with a proof that it belongs to the cluster")]
    NoProof = 1,
    /// Another version of the proof.
    #[error("the connection was proved in another version of the protocol: use one release")]
    Version = 2,
    /// It does not know the secret.
    #[error("the caller did not prove that it knows the cluster's secret")]
    WrongProof = 3,
    /// The listener has an identity, the caller speaks in the clear.
    #[error("TLS required: this cluster admits by certificates; join it with --token")]
    TlsRequired = 4,
    /// It shows no certificate, and does not want to join.
    #[error("the caller shows no certificate of this cluster")]
    NoCertificate = 5,
    /// Its certificate is not for the node that it names.
    #[error("the caller's certificate is not that of the node it claims to be")]
    OtherNode = 6,
    /// Its certificate does not allow this purpose.
    #[error("the caller's role does not allow this connection")]
    WrongRole = 7,
    /// The listener signs no certificates.
    #[error("this node admits nobody to the cluster: name the address of the head")]
    NoAuthority = 8,
    /// The machine of its certificate was shut out.
    #[error("the machine of the caller was revoked")]
    Revoked = 9,
    /// The listener does not know yet which machines were shut out.
    #[error("this node has not heard yet which machines were revoked: ask again")]
    NotYet = 10,
    /// The machine of its certificate has many connections open.
    #[error("the machine of the caller has as many connections open here as one may")]
    TooMany = 11,
}

impl Reason {
    const ALL: [Reason; 11] = [
        Reason::NoProof,
        Reason::Version,
        Reason::WrongProof,
        Reason::TlsRequired,
        Reason::NoCertificate,
        Reason::OtherNode,
        Reason::WrongRole,
        Reason::NoAuthority,
        Reason::Revoked,
        Reason::NotYet,
        Reason::TooMany,
    ];
}

type Hello = [u8; HELLO_BYTES];

impl Secret {
    /// A secret from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// A new one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> io::Result<Self> {
        random().map(Self::from_bytes)
    }

    /// The secret in the form that a file has.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// The secret that a file's text stands for; none if it is none.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text.trim_end()).ok().map(Self)
    }

    /// The key of connections to the address `called`: an answer to one port is of no use at another.
    #[must_use]
    pub fn at(&self, called: SocketAddr) -> Secret {
        let called = SocketAddr::new(called.ip().to_canonical(), called.port());
        Secret(blake3::keyed_hash(self.0.as_bytes(), format!("tharsis port {called}").as_bytes()))
    }

    /// A secret that follows from this one, and does not tell it.
    #[must_use]
    pub(crate) fn derived(&self, purpose: &[u8]) -> Secret {
        Secret(blake3::keyed_hash(self.0.as_bytes(), purpose))
    }

    fn mac(&self, who: &[u8], hello: &Hello, challenge: &Hello) -> blake3::Hash {
        blake3::keyed_hash(self.0.as_bytes(), &[who, hello, challenge].concat())
    }

    fn caller_mac(&self, hello: &Hello, challenge: &Hello) -> blake3::Hash {
        self.mac(b"tharsis caller   ", hello, challenge)
    }

    fn listener_mac(&self, hello: &Hello, challenge: &Hello) -> blake3::Hash {
        self.mac(b"tharsis listener ", hello, challenge)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

/// Proves a connection that this side opened, before anything else is sent on it.
///
/// # Errors
/// [`ProofError`]; the connection is of no use then.
pub async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    key: &Secret,
    node: Option<NodeId>,
    purpose: Purpose,
) -> Result<(), ProofError> {
    let proof = Proof::new(key, node, purpose)?;
    let exchange = async {
        stream.write_all(&proof.hello).await?;
        stream.flush().await?;
        let mut challenge = [0; HELLO_BYTES];
        stream.read_exact(&mut challenge).await?;
        stream.write_all(&proof.answer(&challenge)?).await?;
        stream.flush().await?;
        let mut verdict = [0; VERDICT_BYTES];
        stream.read_exact(&mut verdict).await?;
        proof.check(&challenge, &verdict)
    };
    within(CALLER_WAIT, exchange).await?
}

/// As [`prove`], for a thread that may wait; the stream has its own timeouts.
///
/// # Errors
/// [`ProofError`]; the connection is of no use then.
pub fn prove_blocking<S: Read + Write>(
    stream: &mut S,
    key: &Secret,
    node: Option<NodeId>,
    purpose: Purpose,
) -> Result<(), ProofError> {
    let proof = Proof::new(key, node, purpose)?;
    stream.write_all(&proof.hello)?;
    let mut challenge = [0; HELLO_BYTES];
    stream.read_exact(&mut challenge)?;
    stream.write_all(&proof.answer(&challenge)?)?;
    let mut verdict = [0; VERDICT_BYTES];
    stream.read_exact(&mut verdict)?;
    proof.check(&challenge, &verdict)
}

/// Has a connection that was accepted prove itself, and refuses it otherwise. `allow` says whether a caller
/// with this purpose and this node is wanted at all.
///
/// # Errors
/// [`ProofError`]; the caller has been told and the connection is to be dropped.
pub async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    key: &Secret,
    allow: impl Fn(&Claim) -> Result<(), Reason>,
) -> Result<Claim, ProofError> {
    let exchange = async {
        let hello = read_hello(stream).await?;
        let claim = claim_of(&hello).and_then(|claim| allow(&claim).map(|()| claim));
        let nonce = random()?;
        let challenge = challenge(claim.err(), &nonce);
        stream.write_all(&challenge).await?;
        stream.flush().await?;
        let claim = claim.map_err(ProofError::Refused)?;
        let mut answer = [0; ANSWER_BYTES];
        stream.read_exact(&mut answer).await?;
        // Equality of these hashes takes the same time wherever they differ.
        let is_proved = key.caller_mac(&hello, &challenge) == blake3::Hash::from_bytes(answer);
        if !is_proved {
            stream.write_all(&verdict(Err(Reason::WrongProof))).await?;
            return Err(ProofError::Refused(Reason::WrongProof));
        }
        let own = key.listener_mac(&hello, &challenge);
        stream.write_all(&verdict(Ok(own))).await?;
        stream.flush().await?;
        Ok(claim)
    };
    let admitted = within(PROOF_WAIT, exchange).await.unwrap_or_else(|over| Err(over.into()));
    if let Err(ProofError::Refused(_) | ProofError::Look) = admitted {
        hear_out(stream).await;
    }
    admitted
}

/// Refuses a connection that begins in the clear where TLS is spoken, in the caller's own words.
pub(crate) async fn refuse_clear<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, is_http: bool) {
    let words = challenge(Some(Reason::TlsRequired), &[0; 32]);
    let words: &[u8] = if is_http { &GO_AWAY } else { &words };
    // If the caller is gone already, nobody reads the reason.
    let _told = stream.write_all(words).await;
    hear_out(stream).await;
}

/// The first frame. Whoever speaks HTTP/2 instead is told in its words.
async fn read_hello<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<Hello, ProofError> {
    let mut hello = [0; HELLO_BYTES];
    let (magic, rest) = hello.split_at_mut(MAGIC.len());
    let begun = stream.read(magic).await?;
    if begun == 0 {
        return Err(ProofError::Look);
    }
    stream.read_exact(&mut magic[begun..]).await?;
    if magic == HTTP2 {
        stream.write_all(&GO_AWAY).await?;
        return Err(ProofError::Refused(Reason::NoProof));
    }
    if let Some(magic) =
        magic.first_chunk().filter(|magic| HTTP1.iter().any(|first| magic.starts_with(first)))
    {
        return Err(ProofError::Scrape(*magic));
    }
    if magic != MAGIC {
        stream.write_all(&challenge(Some(Reason::NoProof), &[0; 32])).await?;
        return Err(if magic == KNOCK { ProofError::Look } else { ProofError::Refused(Reason::NoProof) });
    }
    stream.read_exact(rest).await?;
    Ok(hello)
}

/// Ends a refused connection in an order in which the caller can read why: bytes that nobody read would reset
/// it.
async fn hear_out<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    // If the caller is gone already, nobody reads the reason.
    let _ended = stream.shutdown().await;
    let mut piece = [0; 4096];
    let rest = async {
        let mut heard = 0;
        while heard < LAST_WORDS_BYTES_MAX {
            match stream.read(&mut piece).await {
                Ok(len @ 1..) => heard += len,
                _ => return,
            }
        }
    };
    let _in_time = timeout(LAST_WORDS_WAIT, rest).await;
}

/// The caller's side of one proof.
struct Proof<'a> {
    key: &'a Secret,
    hello: Hello,
}

impl<'a> Proof<'a> {
    fn new(key: &'a Secret, node: Option<NodeId>, purpose: Purpose) -> io::Result<Self> {
        let node = node.map_or(0, |node| node.0);
        Ok(Self { key, hello: frame(purpose as u32, node, &random()?) })
    }

    fn answer(&self, challenge: &Hello) -> Result<[u8; ANSWER_BYTES], ProofError> {
        if challenge[..MAGIC.len()] != MAGIC {
            return Err(ProofError::NotOurs);
        }
        let theirs = number(challenge, 8);
        match reason(number(challenge, 12)) {
            None | Some(Reason::Version) if theirs != VERSION => Err(ProofError::Version { theirs }),
            Some(refused) => Err(ProofError::Refused(refused)),
            None => Ok(*self.key.caller_mac(&self.hello, challenge).as_bytes()),
        }
    }

    fn check(&self, challenge: &Hello, verdict: &[u8; VERDICT_BYTES]) -> Result<(), ProofError> {
        if let Some(refused) = reason(number(verdict, 0)) {
            return Err(ProofError::Refused(refused));
        }
        let theirs = verdict.last_chunk().copied().map(blake3::Hash::from_bytes);
        if theirs == Some(self.key.listener_mac(&self.hello, challenge)) {
            Ok(())
        } else {
            Err(ProofError::Unproved)
        }
    }
}

/// A hello or a challenge.
fn frame(what: u32, node: u64, nonce: &[u8; 32]) -> Hello {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&what.to_le_bytes());
    bytes[16..NONCE_AT].copy_from_slice(&node.to_le_bytes());
    bytes[NONCE_AT..].copy_from_slice(nonce);
    bytes
}

fn challenge(refused: Option<Reason>, nonce: &[u8; 32]) -> Hello {
    frame(refused.map_or(0, |reason| reason as u32), 0, nonce)
}

fn verdict(proof: Result<blake3::Hash, Reason>) -> [u8; VERDICT_BYTES] {
    let mut bytes = [0; VERDICT_BYTES];
    match proof {
        Ok(mac) => bytes[8..].copy_from_slice(mac.as_bytes()),
        Err(reason) => bytes[..4].copy_from_slice(&(reason as u32).to_le_bytes()),
    }
    bytes
}

/// Reads a hello. The magic has been looked at.
fn claim_of(hello: &Hello) -> Result<Claim, Reason> {
    if number(hello, 8) != VERSION {
        return Err(Reason::Version);
    }
    let purpose = match number(hello, 12) {
        1 => Purpose::Calls,
        2 => Purpose::Transfers,
        3 => Purpose::Join,
        _ => return Err(Reason::Version),
    };
    let node = u64::from(number(hello, 16)) | u64::from(number(hello, 20)) << 32;
    Ok(Claim { purpose, node: (node != 0).then_some(NodeId(node)) })
}

/// The reason that a status stands for; none for "go on". What a later release may say is a matter of
/// versions.
fn reason(status: u32) -> Option<Reason> {
    let known = Reason::ALL.into_iter().find(|reason| *reason as u32 == status);
    (status != 0).then(|| known.unwrap_or(Reason::Version))
}

fn number(frame: &[u8], at: usize) -> u32 {
    frame.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
