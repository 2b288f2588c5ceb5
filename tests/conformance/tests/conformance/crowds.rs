//! Crowds at a head: machines that ask for certificates without end, and strangers that make it shake hands.

use super::identity::Cluster;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tharsis_identity::{Role, pinned};
use tharsis_protos::connection::Called;
use tharsis_protos::join::{
    self, CERTIFICATE_EVERY, CERTIFICATES_AT_ONCE, JoinError, MEMBER_EVERY, MEMBERS_AT_ONCE, STRANGER_EVERY,
    STRANGERS_AT_ONCE,
};
use tharsis_protos::port::UNPROVED_MAX;
use tharsis_protos::proof::ProofError;
use tharsis_types::NodeId;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// The most that may be signed for one caller since `begun`.
fn most(at_once: u32, every: Duration, begun: Instant) -> u32 {
    at_once + u32::try_from(begun.elapsed().as_nanos() / every.as_nanos()).unwrap() + 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_asks_without_end_is_put_off_and_others_are_not() {
    let cluster = Cluster::start().await;
    let address = cluster.address();
    let greedy = Arc::new(cluster.machine(Role::Node).await);
    let (signed, is_over) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let begun = Instant::now();
    let ask = || {
        let (address, greedy, signed) = (address.clone(), Arc::clone(&greedy), Arc::clone(&signed));
        let is_over = Arc::clone(&is_over);
        tokio::spawn(async move {
            let mut put_off = 0;
            while !is_over.load(Ordering::Relaxed) {
                match join::as_node(&address, &greedy, NodeId(7)).await {
                    Ok(_) => signed.fetch_add(1, Ordering::Relaxed),
                    Err(JoinError::Busy(_)) => {
                        put_off += 1;
                        0
                    }
                    // It has too many connections open.
                    Err(JoinError::Proof(ProofError::Refused(_))) => 0,
                    Err(error) => panic!("{error}"),
                };
            }
            put_off
        })
    };
    let asking: Vec<_> = (0..8).map(|_| ask()).collect();
    while signed.load(Ordering::Relaxed) < CERTIFICATES_AT_ONCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for id in 8..12 {
        let machine = cluster.machine(Role::Node).await;
        join::as_node(&address, &machine, NodeId(id)).await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut put_off = 0;
    for asked in asking {
        put_off += asked.await.unwrap();
    }
    let signed = signed.load(Ordering::Relaxed);
    assert!(signed <= most(CERTIFICATES_AT_ONCE, CERTIFICATE_EVERY, begun), "{signed} were signed");
    let is_slow = CERTIFICATE_EVERY * signed < begun.elapsed();
    assert!(0 < put_off || is_slow, "nobody was put off");
}

/// A connection from an address of its own.
async fn open(from: &str, address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(address.parse().unwrap()).await.unwrap()
}

/// Has a stranger at an address shake hands without end while machines join from 127.0.0.1.
async fn shake_without_end(from: &'static str) {
    let cluster = Cluster::start().await;
    let address = cluster.address();
    let config = pinned(cluster.authority.anchors().unwrap().hash()).unwrap();
    let begun = Instant::now();
    let shaken = Arc::new(AtomicU32::new(0));
    let shake = || {
        let (config, shaken, address) = (Arc::clone(&config), Arc::clone(&shaken), address.clone());
        async move {
            let name = Called::Control.server_name().unwrap();
            let stream = open(from, &address).await;
            let shake = TlsConnector::from(config).connect(name, stream);
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(2), shake).await {
                shaken.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let many = 3 * STRANGERS_AT_ONCE;
    let hostile = futures::stream::iter((0..many).map(|_| shake())).buffer_unordered(64);
    let others = async {
        for id in 8..12 {
            let machine = cluster.machine(Role::Node).await;
            join::as_node(&address, &machine, NodeId(id)).await.unwrap();
        }
    };
    tokio::join!(hostile.for_each(|()| std::future::ready(())), others);
    let shaken = shaken.load(Ordering::Relaxed);
    let mut allowed = most(STRANGERS_AT_ONCE, STRANGER_EVERY, begun);
    if from == "127.0.0.1" {
        allowed += most(MEMBERS_AT_ONCE, MEMBER_EVERY, begun);
    }
    assert!(shaken <= allowed, "{shaken} handshakes from {from}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_has_few_handshakes_and_keeps_nobody_out() {
    shake_without_end("127.0.0.2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_behind_the_address_of_members_does_not_keep_them_out() {
    shake_without_end("127.0.0.1").await;
}

#[tokio::test]
async fn silent_connections_of_one_address_end_none_of_another() {
    let cluster = Cluster::start().await;
    let address = cluster.address();
    let mut first = open("127.0.0.1", &address).await;
    // Those that say nothing for too long are ended as well, so all of this is over before.
    let mut silent = Vec::new();
    for _ in 0..UNPROVED_MAX + 20 {
        silent.push(open("127.0.0.2", &address).await);
    }
    let mut byte = [0];
    let mut ended = 0;
    for stream in &mut silent {
        let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await;
        ended += usize::from(read.is_ok_and(|read| !matches!(read, Ok(1..))));
    }
    assert!(20 < ended, "{ended} of the address that has most are ended");
    let read = tokio::time::timeout(Duration::from_millis(20), first.read(&mut byte)).await;
    assert!(read.is_err(), "the oldest of all is another's");
}
