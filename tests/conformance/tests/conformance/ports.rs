//! Ports of members in a cluster with certificates: what a control store concludes from them, and what
//! whoever asks for that learns.

use super::identity::{Cluster, HOUR, connect, credentials, node};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tharsis_identity::{Identity, Role, Tls};
use tharsis_protos::control::{LeftReason, NodeChange, NodeInfo};
use tharsis_types::NodeId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A port that answers whoever comes, and counts them.
struct Port {
    listen: String,
    callers: Arc<AtomicUsize>,
    answering: JoinHandle<()>,
}

impl Port {
    /// One that answers in the clear, or under TLS with a certificate.
    async fn open(shown: Option<&Identity>) -> Port {
        let tls = shown.map(|shown| TlsAcceptor::from(Tls::new(shown).unwrap().server()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = listener.local_addr().unwrap().to_string();
        let callers = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&callers);
        let answering = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => answer(stream).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream).await;
                        }
                    }
                }
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Port { listen, callers, answering }
    }

    fn callers(&self) -> usize {
        self.callers.load(Ordering::Relaxed)
    }

    /// Waits until somebody came, who may need a moment to see the answer.
    async fn await_caller(&self) {
        for left in (0..1000).rev() {
            if 0 < self.callers() {
                break;
            }
            assert_ne!(left, 0, "nobody comes");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    async fn close(self) {
        self.answering.abort();
        let _aborted = self.answering.await;
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _said = stream.read(&mut [0; 8]).await;
    let _written = stream.write_all(b"x").await;
    let _flushed = stream.flush().await;
}

/// `SuspectNode` looks at a port for its caller. If a member chose the port, it would learn what listens in
/// the network of the head, and on the head itself.
#[tokio::test]
async fn a_member_learns_nothing_of_a_port_that_is_not_its_own() {
    let cluster = Cluster::start().await;
    let identity = |id| cluster.authority.own(Role::Node, Some(id), false, HOUR).unwrap();
    let other = identity(99);
    for (id, shown) in [(1, None), (2, Some(&other))] {
        let port = Port::open(shown).await;
        let own = credentials(Tls::new(&identity(id)).unwrap(), Some(NodeId(id)));
        let client = connect(&cluster.address(), &own).await.unwrap();
        client.register_node(&NodeInfo { listen: port.listen.clone(), ..node(id) }, 0).await.unwrap();
        port.await_caller().await;
        assert!(!client.suspect_node(NodeId(id)).await.unwrap());
        assert_eq!(port.callers(), 1, "node {id}: the port is looked at for whoever asks");
        port.close().await;
        assert!(
            !client.suspect_node(NodeId(id)).await.unwrap(),
            "node {id}: it is told that the port is closed"
        );
        assert!(client.keep_alive(NodeId(id)).await.unwrap());
    }
}

#[tokio::test]
async fn a_member_that_showed_its_certificate_is_dead_when_its_port_is_closed() {
    let cluster = Cluster::start().await;
    let identity = cluster.authority.own(Role::Node, Some(1), false, HOUR).unwrap();
    let port = Port::open(Some(&identity)).await;
    let own = credentials(Tls::new(&identity).unwrap(), Some(NodeId(1)));
    let client = connect(&cluster.address(), &own).await.unwrap();
    let listen = port.listen.clone();
    client.register_node(&NodeInfo { listen: listen.clone(), ..node(1) }, 0).await.unwrap();
    let mut membership = client.membership();
    while !matches!(membership.next().await.unwrap(), NodeChange::Joined(_)) {}
    port.await_caller().await;
    port.close().await;
    while !client.suspect_node(NodeId(1)).await.unwrap() {
        // If the control store has not noted the answer yet, the lease ends this with another reason.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = loop {
        if let NodeChange::Left { node: NodeId(1), reason } = membership.next().await.unwrap() {
            break reason;
        }
    };
    let wanted = format!("its process has ended: nobody listens at {listen}");
    assert_eq!(left, LeftReason::Unregistered(wanted));
}
