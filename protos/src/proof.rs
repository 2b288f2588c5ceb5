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
//! A MAC is keyed blake3 with the secret over who proves, both frames before it and the address that was
//! called. So the secret never travels, an answer is good for one connection, and a process that took over a
//! port cannot pass the caller's answer on to another port. The caller sends nothing else before the listener
//! has proved itself as well.
//!
//! This is the one place that decides whether a connection is of the cluster; certificates will be checked
//! here. Until then whoever knows the secret is trusted, and the node that a caller names is its own word.
//!
//! | frame | bytes (numbers are little-endian) |
//! |---|---|
//! | hello | magic\[8\] version:u32 purpose:u32 node:u64 nonce\[32\] |
//! | challenge | magic\[8\] version:u32 status:u32 zero:u64 nonce\[32\] |
//! | answer | mac\[32\] |
//! | verdict | status:u32 zero:u32 mac\[32\] |

use hyper_util::rt::TokioIo;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tharsis_types::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

/// First bytes of a hello and of a challenge.
pub const MAGIC: [u8; 8] = *b"THARSIS\x02";
/// Version of the proof.
pub const VERSION: u32 = 1;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// Bytes of a hello and of a challenge.
pub const HELLO_BYTES: usize = 56;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 32;
/// Bytes of a verdict.
pub const VERDICT_BYTES: usize = 40;

/// The time for which one side waits for the other.
const PROOF_WAIT: Duration = Duration::from_secs(5);
/// First bytes of an HTTP/2 client, which has nothing proved.
const HTTP2: [u8; 8] = *b"PRI * HT";
/// Answer to such a client: SETTINGS, then GOAWAY with INADEQUATE_SECURITY.
const GO_AWAY: [u8; 26] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12];
/// Limits on time and bytes of the rest that is read of a refused caller, so that it can read why it was
/// refused.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);
const LAST_WORDS_BYTES_MAX: usize = 64 << 10;
/// Offset of the nonce in a hello or a challenge.
const NONCE_AT: usize = 24;

/// Secret that the members of a cluster know and nobody else does. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(blake3::Hash);

/// Credentials that a process shows when it calls others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The cluster's secret.
    pub secret: Secret,
    /// The node that this process is, if it is one.
    pub node: Option<NodeId>,
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// gRPC: the control store, links between nodes.
    Calls = 1,
    /// Bytes of objects and programs.
    Transfers = 2,
}

/// A connection that has been proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Purpose.
    pub purpose: Purpose,
    /// The node that calls, as it says; none for the command line.
    pub node: Option<NodeId>,
}

/// Why a connection is not one of the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The other side broke off, or the system refused.
    #[error("the connection ended before it was proved: {0}")]
    Io(#[from] io::Error),
    /// The listener is not one of ours.
    #[error("what listens there does not speak the protocol of this release")]
    NotOurs,
    /// The listener refused.
    #[error("{0}")]
    Refused(Reason),
    /// The other side said too little for too long.
    #[error("the connection was not proved within {} s", PROOF_WAIT.as_secs())]
    Timeout,
    /// The listener does not know the secret.
    #[error("what listens there did not prove that it knows the cluster's secret")]
    Unproved,
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

    fn mac(&self, who: &[u8], hello: &Hello, challenge: &Hello, called: SocketAddr) -> blake3::Hash {
        let called = SocketAddr::new(called.ip().to_canonical(), called.port()).to_string();
        let all = [who, hello, challenge, called.as_bytes()].concat();
        blake3::keyed_hash(self.0.as_bytes(), &all)
    }

    fn caller_mac(&self, hello: &Hello, challenge: &Hello, called: SocketAddr) -> blake3::Hash {
        self.mac(b"tharsis caller   ", hello, challenge, called)
    }

    fn listener_mac(&self, hello: &Hello, challenge: &Hello, called: SocketAddr) -> blake3::Hash {
        self.mac(b"tharsis listener ", hello, challenge, called)
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
pub async fn prove(stream: &mut TcpStream, own: &Credentials, purpose: Purpose) -> Result<(), ProofError> {
    let proof = Proof::new(own, purpose, stream.peer_addr()?)?;
    let exchange = async {
        stream.write_all(&proof.hello).await?;
        let mut challenge = [0; HELLO_BYTES];
        stream.read_exact(&mut challenge).await?;
        stream.write_all(&proof.answer(&challenge)?).await?;
        let mut verdict = [0; VERDICT_BYTES];
        stream.read_exact(&mut verdict).await?;
        proof.check(&challenge, &verdict)
    };
    timeout(PROOF_WAIT, exchange).await.unwrap_or(Err(ProofError::Timeout))
}

/// A connection for gRPC to `address` (`host:port`) that is made and proved when it is first needed, and
/// again when it breaks.
#[must_use]
pub fn channel(endpoint: &Endpoint, address: &str, own: &Credentials) -> Channel {
    let (address, own) = (Arc::<str>::from(address), own.clone());
    endpoint.connect_with_connector_lazy(tower::service_fn(move |_: http::Uri| {
        let (address, own) = (Arc::clone(&address), own.clone());
        async move {
            let mut stream = TcpStream::connect(&*address).await?;
            stream.set_nodelay(true)?;
            prove(&mut stream, &own, Purpose::Calls).await?;
            Ok::<_, ProofError>(TokioIo::new(stream))
        }
    }))
}

/// As [`prove`], for a thread that may wait.
///
/// # Errors
/// [`ProofError`]; the connection is of no use then.
pub fn prove_blocking(
    mut stream: &std::net::TcpStream,
    own: &Credentials,
    purpose: Purpose,
) -> Result<(), ProofError> {
    let proof = Proof::new(own, purpose, stream.peer_addr()?)?;
    stream.set_read_timeout(Some(PROOF_WAIT))?;
    stream.set_write_timeout(Some(PROOF_WAIT))?;
    stream.write_all(&proof.hello)?;
    let mut challenge = [0; HELLO_BYTES];
    stream.read_exact(&mut challenge)?;
    stream.write_all(&proof.answer(&challenge)?)?;
    let mut verdict = [0; VERDICT_BYTES];
    stream.read_exact(&mut verdict)?;
    proof.check(&challenge, &verdict)
}

/// Has a connection that was accepted prove itself, and refuses it otherwise.
///
/// # Errors
/// [`ProofError`]; the caller has been told and the connection is to be dropped.
pub async fn admit(stream: &mut TcpStream, secret: &Secret) -> Result<Caller, ProofError> {
    let called = stream.local_addr()?;
    let exchange = async {
        let hello = read_hello(stream).await?;
        let caller = caller_of(&hello);
        let nonce = random()?;
        let challenge = challenge(caller.err(), &nonce);
        stream.write_all(&challenge).await?;
        let caller = caller.map_err(ProofError::Refused)?;
        let mut answer = [0; ANSWER_BYTES];
        stream.read_exact(&mut answer).await?;
        // Equality of these hashes takes the same time wherever they differ.
        let is_proved = secret.caller_mac(&hello, &challenge, called) == blake3::Hash::from_bytes(answer);
        if !is_proved {
            stream.write_all(&verdict(Err(Reason::WrongProof))).await?;
            return Err(ProofError::Refused(Reason::WrongProof));
        }
        let own = secret.listener_mac(&hello, &challenge, called);
        stream.write_all(&verdict(Ok(own))).await?;
        Ok(caller)
    };
    let admitted = timeout(PROOF_WAIT, exchange).await.unwrap_or(Err(ProofError::Timeout));
    if let Err(ProofError::Refused(_)) = admitted {
        hear_out(stream).await;
    }
    admitted
}

/// The first frame. Whoever speaks HTTP/2 instead is told in its words.
async fn read_hello(stream: &mut TcpStream) -> Result<Hello, ProofError> {
    let mut hello = [0; HELLO_BYTES];
    let (magic, rest) = hello.split_at_mut(MAGIC.len());
    stream.read_exact(magic).await?;
    if magic == HTTP2 {
        stream.write_all(&GO_AWAY).await?;
        return Err(ProofError::Refused(Reason::NoProof));
    }
    if magic != MAGIC {
        stream.write_all(&challenge(Some(Reason::NoProof), &[0; 32])).await?;
        return Err(ProofError::Refused(Reason::NoProof));
    }
    stream.read_exact(rest).await?;
    Ok(hello)
}

/// Ends a refused connection in an order in which the caller can read why: bytes that nobody read would reset
/// it.
async fn hear_out(stream: &mut TcpStream) {
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
    secret: &'a Secret,
    hello: Hello,
    called: SocketAddr,
}

impl<'a> Proof<'a> {
    fn new(own: &'a Credentials, purpose: Purpose, called: SocketAddr) -> io::Result<Self> {
        let node = own.node.map_or(0, |node| node.0);
        Ok(Self { secret: &own.secret, hello: frame(purpose as u32, node, &random()?), called })
    }

    fn answer(&self, challenge: &Hello) -> Result<[u8; ANSWER_BYTES], ProofError> {
        if challenge[..MAGIC.len()] != MAGIC {
            return Err(ProofError::NotOurs);
        }
        match reason(number(challenge, 12)) {
            Some(refused) => Err(ProofError::Refused(refused)),
            None if number(challenge, 8) != VERSION => Err(ProofError::Refused(Reason::Version)),
            None => Ok(*self.secret.caller_mac(&self.hello, challenge, self.called).as_bytes()),
        }
    }

    fn check(&self, challenge: &Hello, verdict: &[u8; VERDICT_BYTES]) -> Result<(), ProofError> {
        if let Some(refused) = reason(number(verdict, 0)) {
            return Err(ProofError::Refused(refused));
        }
        let theirs = verdict.last_chunk().copied().map(blake3::Hash::from_bytes);
        if theirs == Some(self.secret.listener_mac(&self.hello, challenge, self.called)) {
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

/// Reads the caller of a hello. The magic has been looked at.
fn caller_of(hello: &Hello) -> Result<Caller, Reason> {
    if number(hello, 8) != VERSION {
        return Err(Reason::Version);
    }
    let purpose = match number(hello, 12) {
        1 => Purpose::Calls,
        2 => Purpose::Transfers,
        _ => return Err(Reason::Version),
    };
    let node = u64::from(number(hello, 16)) | u64::from(number(hello, 20)) << 32;
    Ok(Caller { purpose, node: (node != 0).then_some(NodeId(node)) })
}

/// The reason that a status stands for; none for "go on". What a later release may say is a matter of
/// versions.
fn reason(status: u32) -> Option<Reason> {
    match status {
        0 => None,
        1 => Some(Reason::NoProof),
        3 => Some(Reason::WrongProof),
        _ => Some(Reason::Version),
    }
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
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const CALLER: Caller = Caller { purpose: Purpose::Transfers, node: Some(NodeId(7)) };

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; SECRET_BYTES])
    }

    fn own(byte: u8) -> Credentials {
        Credentials { secret: secret(byte), node: CALLER.node }
    }

    /// Transcript: the facts about a connection that both sides sign.
    async fn meet(
        callers: Credentials,
        listeners: Secret,
    ) -> (Result<(), ProofError>, Result<Caller, ProofError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let called = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            prove(&mut stream, &callers, CALLER.purpose).await
        };
        let accepted = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            admit(&mut stream, &listeners).await
        };
        tokio::join!(called, accepted)
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn whoever_knows_the_secret_is_admitted_and_nobody_else() {
        runtime().block_on(async {
            let (called, accepted) = meet(own(1), secret(1)).await;
            called.unwrap();
            assert_eq!(accepted.unwrap(), CALLER);
            let (called, accepted) = meet(own(2), secret(1)).await;
            for refused in [called.unwrap_err(), accepted.unwrap_err()] {
                assert!(matches!(refused, ProofError::Refused(Reason::WrongProof)), "{refused}");
            }
        });
    }

    #[test]
    fn a_listener_that_says_yes_to_everything_is_found_out() {
        let called = "127.0.0.1:1".parse().unwrap();
        let (ours, us, nonce) = (secret(1), own(1), [5; 32]);
        let proof = Proof::new(&us, CALLER.purpose, called).unwrap();
        let challenge = challenge(None, &nonce);
        let echo = proof.answer(&challenge).unwrap();
        let known = ours.listener_mac(&proof.hello, &challenge, called);
        assert!(proof.check(&challenge, &verdict(Ok(known))).is_ok());
        // Its own guess, and the caller's answer sent back.
        for mac in [[0; 32], echo].map(blake3::Hash::from_bytes) {
            assert!(matches!(proof.check(&challenge, &verdict(Ok(mac))), Err(ProofError::Unproved)));
        }
    }

    #[test]
    fn an_answer_is_good_for_one_connection_to_one_address() {
        let (here, there) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        let (ours, us) = (secret(1), own(1));
        let proof = Proof::new(&us, CALLER.purpose, here).unwrap();
        let (first, second) = (challenge(None, &[5; 32]), challenge(None, &[6; 32]));
        let answer = proof.answer(&first).unwrap();
        assert_eq!(ours.caller_mac(&proof.hello, &first, here).as_bytes(), &answer);
        assert_ne!(ours.caller_mac(&proof.hello, &second, here).as_bytes(), &answer);
        assert_ne!(ours.caller_mac(&proof.hello, &first, there).as_bytes(), &answer);
        let mapped = "[::ffff:127.0.0.1]:1".parse().unwrap();
        assert_eq!(ours.caller_mac(&proof.hello, &first, mapped).as_bytes(), &answer);
    }

    #[test]
    fn a_secret_is_not_shown_and_survives_its_file() {
        let new = Secret::random().unwrap();
        assert!(!format!("{new:?}").contains(&new.to_hex()));
        assert_eq!(Secret::from_hex(&format!("{}\n", new.to_hex())), Some(new));
        assert_eq!(Secret::from_hex("short"), None);
    }

    #[test]
    fn whoever_does_not_prove_is_told_in_its_own_words() {
        runtime().block_on(async {
            for (words, told) in [
                (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], GO_AWAY.to_vec()),
                (b"THARSIS\x01\x01\0\0\0\0\0\0\0", challenge(Some(Reason::NoProof), &[0; 32]).to_vec()),
            ] {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                stream.write_all(words).await.unwrap();
                let (mut accepted, _) = listener.accept().await.unwrap();
                let ours = secret(1);
                let mut heard = Vec::new();
                let (refused, _) = tokio::join!(admit(&mut accepted, &ours), stream.read_to_end(&mut heard));
                assert!(matches!(refused, Err(ProofError::Refused(Reason::NoProof))));
                assert_eq!(heard, told);
            }
        });
    }
}
