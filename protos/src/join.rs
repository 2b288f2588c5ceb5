//! Asking the authority for a certificate, at the port of the head.
//!
//! A machine that has a token asks for its own; a node asks, with the machine's or with the one it has, for
//! one that names the node. Both go over TLS, after the proof with [`Purpose::Join`]: one frame each way, a
//! little-endian length of four bytes and a protobuf message.

use crate::connection::{Called, Credentials, Signer, Stream, Trust};
use crate::proof::{self, Caller, PROOF_WAIT, ProofError, Purpose, Secret};
use prost::Message;
use std::io;
use std::time::Duration;
use tharsis_identity::{Identity, IdentityError, NewKey, Tls, Token, pinned, proof_key};
use tharsis_types::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const FRAME_BYTES_MAX: u32 = 16 << 10;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The key or the answer is of no use.
    #[error(transparent)]
    Identity(#[from] IdentityError),
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
    #[prost(bytes = "vec", tag = "2")]
    public_key: Vec<u8>,
    #[prost(string, tag = "3")]
    host: String,
    #[prost(fixed64, tag = "4")]
    node: u64,
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
    let stream = timeout(PROOF_WAIT, shake).await.map_err(|_| ProofError::Timeout)?;
    let mut stream = stream.map_err(ProofError::Tls)?;
    let key = Secret::from_bytes(proof_key(stream.get_ref().1)?);
    proof::prove(&mut stream, &key, None, Purpose::Join).await?;
    let (token, host) = (token.to_string(), host.to_owned());
    ask(Stream::over_tls(stream), Request { token, host, ..Request::default() })
        .await
        .map(|(identity, _)| identity)
}

/// Asks, with the identity of a machine or of the node, for one of the node, and says how long it lasts.
///
/// # Errors
/// [`JoinError`].
pub async fn as_node(address: &str, own: &Tls, node: NodeId) -> Result<(Identity, Duration), JoinError> {
    let shown = own.subject().and_then(|subject| subject.node).map(NodeId);
    let own = Credentials { trust: Trust::Identity(own.clone()), node: shown };
    let stream = own.connect(address, Called::Control, Purpose::Join).await?;
    ask(stream, Request { node: node.0, ..Request::default() }).await
}

async fn ask(mut stream: Stream, request: Request) -> Result<(Identity, Duration), JoinError> {
    let key = NewKey::generate()?;
    let request = Request { public_key: key.public(), ..request };
    let exchange = async {
        write(&mut stream, &request).await?;
        read::<Answer>(&mut stream).await
    };
    let answer = timeout(PROOF_WAIT, exchange).await.map_err(|_| ProofError::Timeout)?;
    let answer = answer.map_err(ProofError::Io)?;
    if !answer.refused.is_empty() {
        return Err(JoinError::Refused(answer.refused));
    }
    Ok((key.with(answer.certificate, answer.authority), Duration::from_millis(answer.lifetime_ms)))
}

/// Answers one request.
pub(crate) async fn serve(signer: &Signer, caller: Caller, mut stream: Stream) {
    let exchange = async {
        let request = read::<Request>(&mut stream).await?;
        let answer = sign(signer, caller, &request).unwrap_or_else(|error| {
            tracing::info!(%error, "a certificate is refused");
            Answer { refused: error.to_string(), ..Answer::default() }
        });
        write(&mut stream, &answer).await?;
        stream.shutdown().await
    };
    // A caller that breaks off or stalls gets nothing, and may ask again.
    let _answered = timeout(PROOF_WAIT, exchange).await;
}

fn sign(signer: &Signer, caller: Caller, request: &Request) -> Result<Answer, IdentityError> {
    let Signer { authority, lifetime } = signer;
    let certificate = if request.token.is_empty() {
        let machine = caller.subject.ok_or(IdentityError::UnknownToken)?;
        authority.renew(machine, request.node, &request.public_key, *lifetime)?
    } else {
        authority.admit(&request.token.parse()?, &request.public_key, &request.host)?
    };
    let lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    let authority = authority.certificate().to_vec();
    Ok(Answer { certificate, authority, refused: String::new(), lifetime_ms })
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
