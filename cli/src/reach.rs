//! Checks before a node starts: its own socket and port, and the control store that it will join.
//!
//! The node itself would notice too, but later and with a worse error: it waits for a head that is only away
//! for a while, and cannot distinguish that from a foreign server.

use crate::output;
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::Result;
use procfs::net::TcpState;
use procfs::process::FDTarget;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;
use tharsis::process::Security;
use tharsis::{FailureKind, join, observe, process};
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_identity::{Authority, Role, Tls, Token};
use tharsis_object_store::local_socket::{self, check_peer};
use tharsis_protos::connection::{Called, Credentials, Trust};
use tharsis_protos::handshake::Question;
use tharsis_protos::proof::Purpose;
use tharsis_protos::{CallError, RefusalCode};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Time that a control store may take to listen: it may have been started a moment ago.
const LISTEN_WAIT: Duration = Duration::from_secs(2);
/// Pause between attempts to reach it.
const LISTEN_PAUSE: Duration = Duration::from_millis(100);
/// Time for which a node that ends itself is waited for, and between two looks.
const LEAVE_WAIT: Duration = Duration::from_secs(10);
const LEAVE_PAUSE: Duration = Duration::from_millis(20);
/// Time for which a socket is waited for at which others wait already.
const FULL_WAIT: Duration = Duration::from_millis(100);
/// Lifetime of the certificate with which the head's machine makes calls of an operator or a driver.
const OWN_LIFETIME: Duration = Duration::from_secs(3600);
/// Time that a listening server may take to answer.
pub const ANSWER_WAIT: Duration = Duration::from_millis(2500);

/// Refuses a socket at which a node runs. One that ends itself answers nobody any more, and has its socket
/// for a moment: its end is waited for, and a node that hangs is taken for one that runs then.
///
/// # Errors
/// `AlreadyRunning`.
pub fn check_none_runs(socket: &Path) -> Result<(), Refusal> {
    let refused = |pid| Err(Refusal::AlreadyRunning { pid, socket: socket.to_owned() });
    let until = Instant::now() + LEAVE_WAIT;
    loop {
        let says_nothing = match observe::ask(socket, Question::Status) {
            Ok(report) => return refused(report.pid),
            Err(error) => error.kind() == FailureKind::Disconnected,
        };
        let Some(pid) = listener(socket) else { return Ok(()) };
        if !says_nothing || until < Instant::now() {
            return refused(pid);
        }
        std::thread::sleep(LEAVE_PAUSE);
    }
}

/// The process of this user that listens at a socket, whether it answers or not.
pub fn listener(socket: &Path) -> Option<u32> {
    match local_socket::connect(socket, FULL_WAIT) {
        Ok(stream) => Some(check_peer(&stream).ok()?.process_id),
        // It hangs, and has for so long that no more can wait there: the kernel does not say who it is.
        Err(cause) if cause.kind() == ErrorKind::WouldBlock => Some(owner(socket).unwrap_or(0)),
        Err(_) => None,
    }
}

/// The process of this user that has a socket bound to this path.
fn owner(socket: &Path) -> Option<u32> {
    let bound = procfs::net::unix().ok()?.into_iter().filter(|entry| entry.path.as_deref() == Some(socket));
    holder_of(&bound.map(|entry| entry.inode).filter(|inode| *inode != 0).collect::<Vec<_>>())
}

/// Refuses a port on which another process listens.
///
/// # Errors
/// `AddressInUse`, or the error of the bind.
pub fn check_free(listen: SocketAddr) -> Result<()> {
    match TcpListener::bind(listen) {
        Ok(_closed_at_once) => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::AddrInUse => {
            Err(Refusal::AddressInUse { port: listen.port(), holder: holder(listen.port()) }.into())
        }
        Err(cause) => Err(anyhow::Error::new(cause).context(format!("cannot listen at {listen}"))),
    }
}

/// The process of this user that listens on a port.
pub fn holder(port: u16) -> Option<u32> {
    let sockets = procfs::net::tcp().into_iter().chain(procfs::net::tcp6()).flatten();
    let listening = sockets.filter(|s| s.state == TcpState::Listen && s.local_address.port() == port);
    holder_of(&listening.map(|socket| socket.inode).collect::<Vec<_>>())
}

/// A process of this user that has one of these sockets open.
fn holder_of(inodes: &[u64]) -> Option<u32> {
    let holds = |process: &procfs::process::Process| {
        let descriptors = process.fd().into_iter().flatten().flatten();
        let mut targets = descriptors.map(|descriptor| descriptor.target);
        targets.any(|target| matches!(target, FDTarget::Socket(inode) if inodes.contains(&inode)))
    };
    let mut processes = procfs::process::all_processes().ok()?.flatten();
    processes.find(holds).and_then(|process| u32::try_from(process.pid).ok())
}

/// Refuses an address where no control store of this release answers, within five seconds.
///
/// # Errors
/// `NothingAnswers`, `NotAdmitted` or `ProtocolMismatch`.
pub fn check_head(address: &str, own: &Credentials) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        await_listener(address).await?;
        ask(address, own).await
    })?)
}

/// Refuses addresses at none of which anybody listens, within a few seconds.
///
/// # Errors
/// `NothingAnswers`.
pub fn check_listens(addresses: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(await_listener(addresses))?;
    Ok(())
}

/// Joins the cluster at one of several addresses with a token, and keeps the identity in a folder for all of
/// them.
///
/// # Errors
/// `NothingAnswers` or `NotJoined`.
pub fn join(folder: &Path, addresses: &str, token: &Token) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let address = runtime.block_on(await_listener(addresses))?;
    let joined = process::join_with_token(folder, &address, token);
    Ok(joined.map_err(|cause| Refusal::NotJoined { address, cause })?)
}

/// The first of several addresses at which somebody listens.
async fn await_listener(addresses: &str) -> Result<String, Refusal> {
    let until = Instant::now() + LISTEN_WAIT;
    let nothing = |cause: String| Refusal::NothingAnswers { address: addresses.to_owned(), cause };
    loop {
        // All at once: one that is cut off delays nobody.
        let mut attempts: JoinSet<_> =
            addresses.split(',').map(|address| connect(address.to_owned())).collect();
        let mut failed = String::new();
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(address)) => return Ok(address),
                Ok(Err(cause)) => failed = cause,
                Err(error) => failed = error.to_string(),
            }
        }
        if until < Instant::now() {
            return Err(nothing(failed));
        }
        // It may be starting.
        sleep(LISTEN_PAUSE).await;
    }
}

async fn connect(address: String) -> Result<String, String> {
    match timeout(LISTEN_WAIT, TcpStream::connect(&address)).await {
        Ok(Ok(_reachable)) => Ok(address),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => Err(format!("no connection within {} s", LISTEN_WAIT.as_secs())),
    }
}

async fn ask(address: &str, own: &Credentials) -> Result<(), Refusal> {
    let options = ClientOptions { call_deadline: ANSWER_WAIT, patience: Duration::ZERO };
    let mismatch = |cause: String| Refusal::ProtocolMismatch { address: address.to_owned(), cause };
    match timeout(ANSWER_WAIT, ControlClient::connect(address, own, options)).await {
        Ok(Ok(_ours)) => Ok(()),
        // It is a control store of ours that cannot serve now.
        Ok(Err(error @ CallError::Refused { .. })) if error.is_transient() => {
            Err(Refusal::NothingAnswers { address: address.to_owned(), cause: error.to_string() })
        }
        Ok(Err(error)) if is_shut_out(&error) => {
            Err(Refusal::NotAdmitted { address: address.to_owned(), cause: error.to_string() })
        }
        Ok(Err(error)) => Err(mismatch(error.to_string())),
        Err(_) => Err(mismatch(format!("it says nothing within {} ms", ANSWER_WAIT.as_millis()))),
    }
}

/// Credentials for calls of an operator to the cluster whose control stores are at `addresses`: those of this
/// machine, renewed if they are old, or on the head's machine those that the cluster's authority signs for
/// itself.
///
/// # Errors
/// `NoIdentity`: this machine never joined there.
pub fn operator(addresses: &str, settings: &Settings) -> Result<Credentials> {
    with_role(Role::Operator, addresses, settings)
}

/// Credentials as those of [`operator`], for calls that begin work.
///
/// # Errors
/// `NoIdentity`: this machine never joined there.
pub fn driver(addresses: &str, settings: &Settings) -> Result<Credentials> {
    with_role(Role::Driver, addresses, settings)
}

/// Whether one of the control stores admits whom the authority on this machine signs for.
pub fn admits_by_authority(addresses: &str, settings: &Settings) -> bool {
    by_authority(Role::Operator, settings).is_ok_and(|own| is_admitted(&own, &join::heads(addresses)))
}

fn by_authority(role: Role, settings: &Settings) -> Result<Credentials> {
    let authority = Authority::load(&process::authority_folder(&settings.identity_dir()))?;
    let own = authority.own(role, None, false, OWN_LIFETIME)?;
    Ok(Credentials { trust: Trust::Identity(Tls::new(&own)?), node: None })
}

fn with_role(role: Role, addresses: &str, settings: &Settings) -> Result<Credentials> {
    let heads = join::heads(addresses);
    renew(&settings.identity_dir(), &heads);
    match join::security_towards(&heads, &settings.identity_dir(), settings.secret_file()) {
        Ok(security @ Security::Secret(_)) => match by_authority(role, settings) {
            // The head is at a loopback address and may admit by certificates all the same.
            Ok(own) if is_admitted(&own, &heads) => Ok(own),
            _ => Ok(security.credentials(&heads).map_err(tharsis::Error::from)?),
        },
        Ok(security) => Ok(security.credentials(&heads).map_err(tharsis::Error::from)?),
        Err(unknown) => by_authority(role, settings).map_err(|_| unknown.into()),
    }
}

/// Whether one of the heads admits a caller with these credentials.
fn is_admitted(own: &Credentials, heads: &[String]) -> bool {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok::<_, std::io::Error>(runtime.block_on(async {
            for head in heads {
                let asked = own.connect(head, Called::Control, Purpose::Calls);
                if timeout(ANSWER_WAIT, asked).await.is_ok_and(|admitted| admitted.is_ok()) {
                    return true;
                }
            }
            false
        }))
    };
    // On a thread of its own: the caller may be on a runtime.
    std::thread::scope(|scope| scope.spawn(ask).join())
        .is_ok_and(|asked| asked.is_ok_and(|admitted| admitted))
}

/// Renews the certificate of this machine if it is old. If that fails, the present one is good for a while.
fn renew(folder: &Path, heads: &[String]) {
    let renewal = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok::<_, anyhow::Error>(runtime.block_on(process::renew_machine(folder, heads))?)
    };
    // On a thread of its own: the caller may be on a runtime.
    let renewed = std::thread::scope(|scope| scope.spawn(renewal).join());
    if let Ok(Err(error)) = renewed {
        output::warn(&format!("the certificate of this machine is not renewed: {error:#}"));
    }
}

/// The error of a call that was refused or did not get through.
pub fn refused(address: &str, error: &CallError) -> anyhow::Error {
    let (address, cause) = (address.to_owned(), error.to_string());
    if is_shut_out(error) {
        Refusal::NotAdmitted { address, cause }.into()
    } else {
        Refusal::NothingAnswers { address, cause }.into()
    }
}

fn is_shut_out(error: &CallError) -> bool {
    matches!(error.refusal_code(), Some(RefusalCode::Unauthenticated | RefusalCode::PermissionDenied))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that was stopped, at which as many wait as it lets wait: nobody is told whose socket it is.
    #[test]
    fn a_process_that_hangs_is_found_by_the_path_of_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("private").join("node.sock");
        let listening = local_socket::bind(&socket).unwrap();
        rustix::net::listen(&listening, 1).unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = local_socket::connect(&socket, Duration::from_millis(20)) {
            waiting.push(stream);
            assert!(waiting.len() < 10, "it lets few wait");
        }
        let me = std::process::id();
        assert_eq!((listener(&socket), owner(&socket)), (Some(me), Some(me)));
        drop((listening, waiting));
        assert_eq!((listener(&socket), owner(&socket)), (None, None));
    }
}
