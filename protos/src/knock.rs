//! Knocks: whether an address leads to a node.
//!
//! A node says itself at which address it is reached. Its word is not enough for those who draw conclusions
//! from what happens at that port: it may be another's, and whoever asks for the conclusions would look at
//! the ports of others with our eyes. With certificates the port must show that of the node. Without them
//! all who are admitted are one user, and any answer will do.

use crate::connection::{Called, Gate, Trust};
use crate::message::is_of_machine;
use crate::names::{self, Whose};
use crate::proof::KNOCK;
use crate::within::within;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tharsis_identity::Tls;
use tharsis_types::NodeId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time for one address to answer.
const KNOCK_WAIT: Duration = Duration::from_secs(5);
/// Addresses of one name that are tried.
const TRIED_MAX: usize = 4;

/// Knocks at the ports of nodes.
#[derive(Clone, Debug)]
pub struct Knocker(Option<Tls>);

impl Gate {
    /// One that knocks with the identity of the process of this port.
    #[must_use]
    pub fn knocker(&self) -> Knocker {
        Knocker(match &self.trust {
            Trust::Identity(tls) => Some(tls.clone()),
            Trust::Secret(_) => None,
        })
    }
}

impl Knocker {
    /// The first address of `host:port` at which the node answers; none if it answers at none.
    pub async fn find(&self, node: NodeId, address: &str) -> Option<SocketAddr> {
        let found = names::addresses(address, Whose::Member).await.ok()?;
        for at in found.into_iter().filter(|at| is_of_machine(at.ip())).take(TRIED_MAX) {
            if matches!(within(KNOCK_WAIT, self.meet(node, at)).await, Ok(Ok(()))) {
                return Some(at);
            }
        }
        None
    }

    async fn meet(&self, node: NodeId, at: SocketAddr) -> io::Result<()> {
        let mut stream = TcpStream::connect(at).await?;
        let Some(tls) = &self.0 else {
            knock(&mut stream).await;
            return Ok(());
        };
        let name = Called::Node(node.0).server_name().map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(tls.client()).connect(name, stream).await?;
        // The certificate was the answer. A port counts callers that leave without a word.
        knock(&mut stream).await;
        Ok(())
    }
}

/// Knocks, and waits for an answer or for the end of the connection, which is somebody's doing as well.
async fn knock<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    let said = async {
        stream.write_all(&KNOCK).await?;
        stream.flush().await?;
        stream.read(&mut [0; 1]).await
    };
    let _answered = said.await;
}
