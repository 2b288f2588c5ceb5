//! News for the manager of services: that a process serves, and that it ends.
//!
//! A manager that started the process and waits for it (`Type=notify` of systemd) names a socket in the
//! environment, to which one datagram is sent. Without the variable nothing happens.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Environment variable with the socket of the manager. It is for the process that it started alone.
pub const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Says that the process serves.
pub fn ready() {
    say("READY=1");
}

/// Says that the process ends by itself, or as it was told.
pub fn stopping() {
    say("STOPPING=1");
}

/// Whether a manager of services started this process and waits for it.
#[must_use]
pub fn is_awaited() -> bool {
    std::env::var_os(SOCKET_VARIABLE).is_some()
}

fn say(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE) else { return };
    if let Err(cause) = send(&socket, state) {
        tracing::warn!(%cause, ?socket, state, "the manager of services is not told");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        // An abstract name.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let len = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    #[test]
    fn a_manager_hears_it_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(heard(&manager), "READY=1");
        let name = format!("tharsis-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(format!("@{name}").as_ref(), "STOPPING=1").unwrap();
        assert_eq!(heard(&manager), "STOPPING=1");
        assert!(send("/nowhere/at/all".as_ref(), "READY=1").is_err());
    }
}
