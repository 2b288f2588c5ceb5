//! What a process of this program is: the driver, a worker, or a node.
//!
//! A node starts the program again and says so in the environment. `#[tharsis::main]` asks here before it runs the
//! user's `main`.

use std::path::Path;
use std::process::{ExitCode, Termination};
use tharsis_protos::handshake::Role;
use tharsis_remote::{Result, connect, current, run_worker};

/// Set for a worker: the path of its node's socket.
pub const WORKER_SOCKET_VARIABLE: &str = "THARSIS_WORKER_SOCKET";
/// Set for a worker: the number of its start.
pub const WORKER_START_VARIABLE: &str = "THARSIS_WORKER_START";

/// Runs this process as what it was started for; `user_main` if it is the driver.
pub fn enter<T: Termination>(user_main: fn() -> T) -> ExitCode {
    match worker_arguments() {
        Some((socket, start)) => exit_code(work(Path::new(&socket), start)),
        None => user_main().report(),
    }
}

/// Runs tasks for the node at `socket` until it ends the connection.
///
/// # Errors
/// Why the connection could not be made, or ended out of order.
pub fn work(socket: &Path, start: u64) -> Result<()> {
    let client = connect(socket, Role::Worker { start }, None)?;
    // Threads that tasks start find the worker's client as well.
    current::set_global(Some(client.clone()));
    let outcome = run_worker(&client);
    client.close();
    outcome
}

/// Runs a future on a runtime of its own; for `async fn main`.
#[doc(hidden)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(cause) => {
            report(&format!("cannot start an async runtime: {cause}"));
            std::process::exit(1)
        }
    }
}

fn worker_arguments() -> Option<(String, u64)> {
    let socket = std::env::var(WORKER_SOCKET_VARIABLE).ok()?;
    let start = std::env::var(WORKER_START_VARIABLE).ok()?.parse().ok()?;
    Some((socket, start))
}

fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Standard error is where a process that cannot go on says why.
fn report(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
