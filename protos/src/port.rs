//! Accepting connections at a port: each proves that it is of the cluster ([`crate::connection`]), then its
//! handler gets it.
//!
//! Connections that have not proved anything cost a socket and a few hundred bytes each. There are at most
//! [`UNPROVED_MAX`] of them: for one more another one ends (`unproved.rs`), so that silent ones keep nobody
//! out, and those of one machine none of others. Callers without a certificate that ask for one are among
//! them until they have their answer, and so are scrapes. A part of the process's descriptors is not for
//! connections at all (`descriptors.rs`).

use crate::caller::{Caller, Who};
use crate::connection::{Admission, Gate, Stream};
use crate::crowds::network;
use crate::descriptors::Descriptors;
use crate::proof::{ProofError, Purpose};
use crate::unproved::Unproved;
use crate::{join, scrape};
use std::future::Future;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Connections that have not proved themselves yet.
pub const UNPROVED_MAX: usize = 256;
/// After an accept that failed for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Between two lines about descriptors that are short.
const SHORT_EVERY: Duration = Duration::from_secs(60);

/// Takes connections up.
pub trait PortHandler: Send + Sync + 'static {
    /// Takes up a connection that has been proved.
    fn take(&self, caller: Caller, stream: Stream) -> impl Future<Output = ()> + Send;

    /// A connection was not proved; for the log.
    fn refused(&self, error: &ProofError);

    /// The metrics of this port in Prometheus' text format; none if there are none now.
    fn metrics(&self) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }
}

/// Accepts connections for ever.
pub async fn accept<R: PortHandler>(listener: TcpListener, gate: Gate, handler: Arc<R>) {
    let (gate, descriptors) = (Arc::new(gate), Descriptors::of_process());
    let (mut unproved, mut said) = (Unproved::<AbortHandle>::default(), None);
    loop {
        let accepted = listener.accept().await;
        let is_short = accepted.as_ref().map_or(true, |(stream, _)| descriptors.is_short(stream.as_raw_fd()));
        if is_short {
            say_short(&mut said, accepted.as_ref().err());
            unproved.forget(AbortHandle::is_finished);
            let has_ended = end_one(&mut unproved);
            if !has_ended || accepted.is_err() {
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        }
        let Ok((stream, source)) = accepted else { continue };
        let (gate, handler) = (Arc::clone(&gate), Arc::clone(&handler));
        let proving = tokio::spawn(async move {
            match gate.admit(stream).await {
                Ok(Admission::Caller(caller, stream)) => {
                    let signer = gate.signer().filter(|_| caller.purpose == Purpose::Join).cloned();
                    match signer {
                        // Not a task of its own: without a certificate the proof proves nothing.
                        Some(signer) if caller.who == Who::Stranger => {
                            join::serve(&gate, &signer, caller, stream).await;
                        }
                        // A task of its own: what was proved is no longer in the way.
                        Some(signer) => {
                            tokio::spawn(async move { join::serve(&gate, &signer, caller, stream).await });
                        }
                        None => {
                            tokio::spawn(async move { handler.take(caller, stream).await });
                        }
                    }
                }
                // Not a task of its own: scrapes count among connections that have proved nothing.
                Ok(Admission::Scrape(mut stream, begun, pass)) => {
                    let answered = scrape::serve(&mut stream, &begun, &pass, || handler.metrics()).await;
                    if !matches!(answered, Ok(true)) {
                        gate.counts().connections_refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(ProofError::Look) => {}
                Err(error) => {
                    gate.counts().connections_refused.fetch_add(1, Ordering::Relaxed);
                    handler.refused(&error);
                }
            }
        });
        // It may be the one that ends.
        unproved.add(network(source.ip()), Instant::now(), proving.abort_handle());
        if UNPROVED_MAX < unproved.len() {
            unproved.forget(AbortHandle::is_finished);
        }
        if UNPROVED_MAX < unproved.len() {
            end_one(&mut unproved);
        }
    }
}

/// Ends a connection that has not proved anything; whether there was one.
fn end_one(unproved: &mut Unproved<AbortHandle>) -> bool {
    unproved.take_one(Instant::now()).inspect(AbortHandle::abort).is_some()
}

/// Says, not too often, that connections are refused for want of descriptors.
fn say_short(said: &mut Option<Instant>, cause: Option<&std::io::Error>) {
    if said.is_none_or(|said| SHORT_EVERY <= said.elapsed()) {
        *said = Some(Instant::now());
        let cause =
            cause.map_or_else(|| "the rest is kept for workers and files".to_owned(), |e| e.to_string());
        tracing::error!(cause, "connections are refused: this process may not have more open files");
    }
}
