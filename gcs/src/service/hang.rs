//! Looks at members that are silent, and removes those whose processes hang (`silence.rs` decides).
//!
//! A look needs no credentials: every port of a node answers a knock with words of its own, under TLS and
//! without, and does not count it as a refused connection. A member that never answered one is left to its
//! lease: its address may lead elsewhere from here (`reach.rs`). Two looks overlap, so that a hang is known
//! soon; a last connection shows that the network still works.

use super::Shared;
use super::silence::{Look, Verdict, verdict};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tharsis_protos::proof::KNOCK;
use tharsis_types::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time for a connection to be accepted, and again for an answer on it.
const LOOK_WAIT: Duration = Duration::from_secs(1);
/// Time between the beginnings of two looks.
const LOOKS_APART: Duration = Duration::from_millis(600);
/// Time by which the clock of this process may be late before it counts as a standstill.
pub(super) const LATE_MAX: Duration = Duration::from_millis(400);

/// Watches for silent members until the control store stops or is dropped.
pub(super) async fn watch_silences(shared: Weak<Shared>) {
    loop {
        let Some(planned) = shared.upgrade().map(|shared| shared.silences.lock().next_due(Instant::now()))
        else {
            return;
        };
        sleep_until(planned).await;
        let Some(shared) = shared.upgrade().filter(|shared| !*shared.stopping.borrow()) else { return };
        let now = Instant::now();
        if planned + LATE_MAX < now {
            tracing::info!(late = ?now - planned, "this control store stood still: nobody else is blamed");
            shared.silences.lock().restart(now);
            continue;
        }
        let due = shared.silences.lock().due(now);
        for node in due {
            tokio::spawn(examine(Arc::clone(&shared), node));
        }
    }
}

/// Looks at nodes that control stores are part of, unless they renew their leases here: a control store that
/// hangs with its node does not miss the node's renewals.
pub(super) fn look_at_heads(shared: &Arc<Shared>, heads: &[NodeId]) {
    let now = Instant::now();
    for head in heads {
        if shared.silences.lock().begins_look(*head, now) {
            tokio::spawn(examine(Arc::clone(shared), *head));
        }
    }
}

/// Looks at one member, and removes it if it hangs.
async fn examine(shared: Arc<Shared>, node: NodeId) {
    let (listen, verdict) = match shared.node(node).await {
        Ok(Some(known)) => {
            let verdict = match shared.judged_port(node) {
                Some(port) => look_twice(port).await,
                None => Verdict::Leave,
            };
            (known.record.info.listen, verdict)
        }
        Ok(None) => return shared.silences.lock().forget(node),
        // Without the store nobody can be removed, and its silence has another reason perhaps.
        Err(_) => (String::new(), Verdict::Unknown),
    };
    tracing::debug!(%node, ?verdict, "a silent member was looked at");
    if !shared.silences.lock().examined(node, verdict, Instant::now()) {
        return;
    }
    tracing::warn!(%node, listen, "the node accepts connections and does not answer: it is declared dead");
    let reason = format!("its process hangs: connections to {listen} are accepted and not answered");
    match shared.unregister(node, reason).await {
        Ok(_) => shared.silences.lock().forget(node),
        Err(error) => {
            tracing::info!(%error, %node, "the node is not removed: its lease decides");
            shared.silences.lock().forget(node);
        }
    }
}

async fn look_twice(address: SocketAddr) -> Verdict {
    let begin = Instant::now();
    let second = async {
        sleep(LOOKS_APART).await;
        look(address).await
    };
    let looks: [Look; 2] = tokio::join!(look(address), second).into();
    let found = verdict(&looks, begin.elapsed(), LOOKS_APART + LOOK_WAIT + LATE_MAX);
    if found != Verdict::Hangs || is_accepted(address).await { found } else { Verdict::Leave }
}

/// One look at a port.
async fn look(address: SocketAddr) -> Look {
    let Ok(Ok(mut stream)) = timeout(LOOK_WAIT, TcpStream::connect(address)).await else {
        return Look::NotAccepted;
    };
    let answer = async {
        stream.write_all(&KNOCK).await?;
        stream.read(&mut [0; 1]).await
    };
    // The end of the connection, however it comes, was somebody's doing as well.
    if timeout(LOOK_WAIT, answer).await.is_ok() { Look::Answered } else { Look::Silent }
}

async fn is_accepted(address: SocketAddr) -> bool {
    matches!(timeout(LOOK_WAIT, TcpStream::connect(address)).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket};

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn a_process_that_accepts_nothing_hangs() {
        // The system accepts for the listener.
        let (_listener, address) = listener().await;
        let begin = Instant::now();
        assert_eq!(look_twice(address).await, Verdict::Hangs);
        assert!(Duration::from_millis(1500) < begin.elapsed(), "one look is not enough");
    }

    #[tokio::test]
    async fn a_process_that_answers_late_or_hangs_up_lives() {
        let (listener, address) = listener().await;
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                sleep(LOOK_WAIT * 3 / 4).await;
                let _written = stream.write_all(b"x").await;
            }
        };
        let found = tokio::select! { found = look_twice(address) => found, () = serve => unreachable!() };
        assert_eq!(found, Verdict::Leave);
        let (listener, address) = self::listener().await;
        let hang_up = async {
            loop {
                drop(listener.accept().await);
            }
        };
        let found = tokio::select! { found = look_twice(address) => found, () = hang_up => unreachable!() };
        assert_eq!(found, Verdict::Leave);
    }

    #[tokio::test]
    async fn a_machine_that_accepts_nothing_is_cut_off() {
        let (listener, address) = listener().await;
        drop(listener);
        assert_eq!(look_twice(address).await, Verdict::Leave, "refused: its streams tell");
        // A full queue of connections drops further ones, as a cut network does.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut full = Vec::new();
        while let Ok(Ok(stream)) = timeout(LOOK_WAIT / 4, TcpStream::connect(address)).await {
            full.push(stream);
        }
        assert_eq!(look_twice(address).await, Verdict::Leave);
    }
}
