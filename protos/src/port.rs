//! Accepting connections at a port: each proves that it is of the cluster ([`crate::connection`]), then its
//! handler gets it.
//!
//! Connections that have not proved anything cost a socket and a few hundred bytes each. There are at most
//! [`UNPROVED_MAX`] of them: one more ends the oldest, so that silent ones keep nobody out.

use crate::connection::{Admission, Gate, Stream};
use crate::caller::Caller;
use crate::proof::{ProofError, Purpose};
use crate::{join, scrape};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Connections that have not proved themselves yet.
pub const UNPROVED_MAX: usize = 256;
/// After an accept that failed for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

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
    let gate = Arc::new(gate);
    let mut unproved: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        make_room(&mut unproved);
        let (gate, handler) = (Arc::clone(&gate), Arc::clone(&handler));
        let proving = tokio::spawn(async move {
            match gate.admit(stream).await {
                Ok(Admission::Caller(caller, stream)) => {
                    // A task of its own: what was proved is no longer in the way.
                    tokio::spawn(async move {
                        match gate.signer().filter(|_| caller.purpose == Purpose::Join) {
                            Some(signer) => join::serve(signer, caller, stream).await,
                            None => handler.take(caller, stream).await,
                        }
                    });
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
        unproved.push_back(proving.abort_handle());
    }
}

/// Forgets connections that were proved or refused, and ends the oldest others above the limit.
fn make_room(unproved: &mut VecDeque<AbortHandle>) {
    if unproved.len() < UNPROVED_MAX {
        return;
    }
    unproved.retain(|proving| !proving.is_finished());
    while UNPROVED_MAX <= unproved.len() {
        unproved.pop_front().inspect(AbortHandle::abort);
    }
}
