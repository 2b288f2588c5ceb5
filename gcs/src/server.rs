//! One port with the control store on it, alone or beside other services of the same process.

use crate::service::Control;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tharsis_protos::caller::Caller;
use tharsis_protos::connection::{Gate, Stream};
use tharsis_protos::port;
use tharsis_protos::proof::{ProofError, Purpose};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::service::Routes;

/// Calls and streams that one connection may have open; others wait.
const STREAMS_PER_CONNECTION_MAX: u32 = 1024;
/// Proved connections that wait to be taken up.
const CALLS_WAITING_MAX: usize = 64;
/// Streams that a client opened and reset at once; a connection with more is cut off.
const PENDING_RESETS_MAX: usize = 64;
/// A silent connection is probed this often.
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
/// A connection that does not answer a probe for this long is cut off.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Calls in progress have this long to end when the server stops.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// A server that runs. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    control: Control,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// Why a server could not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port has no address.
    #[error("the port cannot be used: {0}")]
    Address(#[source] std::io::Error),
    /// It was still at work after the deadline and was cut off.
    #[error("the server was still at work {} ms after it was told to stop", .0.as_millis())]
    StopDeadline(Duration),
    /// The task failed.
    #[error("the server's task failed: {0}")]
    Task(#[source] tokio::task::JoinError),
    /// The transport failed.
    #[error("the server failed: {0}")]
    Transport(#[source] tonic::transport::Error),
}

/// Serves a control store, and whatever else is in `others`, on a port, to callers that the gate lets in.
///
/// # Errors
/// [`ServeError::Address`].
pub fn serve(
    control: Control,
    listener: TcpListener,
    gate: Gate,
    others: Routes,
) -> Result<Server, ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let (gate, routes) = (control.guard(gate), control.mount(others));
    let (calls, mut accepted) = mpsc::channel(CALLS_WAITING_MAX);
    let accepting = tokio::spawn(port::accept(listener, gate, Arc::new(Calls(calls))));
    let server = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .http2_keepalive_interval(Some(PROBE_INTERVAL))
        .http2_keepalive_timeout(Some(PROBE_TIMEOUT))
        .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS_MAX))
        .add_routes(routes)
        .serve_with_incoming_shutdown(
            futures::stream::poll_fn(move |context| accepted.poll_recv(context)),
            async move {
                // An error means that the handle was dropped: stop as well.
                let _ = stopped.await;
                accepting.abort();
            },
        );
    Ok(Server { address, control, stop: Some(stop), task: tokio::spawn(server) })
}

/// Passes proved connections on to the gRPC server.
struct Calls(mpsc::Sender<io::Result<Stream>>);

impl port::PortHandler for Calls {
    async fn take(&self, caller: Caller, stream: Stream) {
        if caller.purpose == Purpose::Calls {
            // The server has ended if nobody takes it.
            let _ended = self.0.send(Ok(stream)).await;
        }
    }

    fn refused(&self, error: &ProofError) {
        tracing::info!(%error, "a connection is refused");
    }
}

impl Server {
    /// The address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The control store it serves.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Ends the watches, lets calls end, stops, and closes the back end.
    ///
    /// # Errors
    /// [`ServeError`]; the back end is closed in any case.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        self.control.end_watches();
        // Nobody listens if the server has ended already; its result says why.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let ended = match tokio::time::timeout(STOP_DEADLINE, &mut self.task).await {
            Ok(Ok(result)) => result.map_err(ServeError::Transport),
            Ok(Err(error)) => Err(ServeError::Task(error)),
            Err(_) => {
                self.task.abort();
                Err(ServeError::StopDeadline(STOP_DEADLINE))
            }
        };
        self.control.stop().await;
        ended
    }
}
