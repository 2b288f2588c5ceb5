//! Addresses of a node: where it listens, where others reach it, where it reaches itself.

use super::{Security, internal};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tharsis_types::{Failure, FailureKind};

/// Listens where a node is to be reached.
///
/// # Errors
/// `InUse`, or `InvalidArgument` for an address that cannot be listened on.
pub(super) fn listen_on(address: SocketAddr, security: &Security) -> Result<std::net::TcpListener, Failure> {
    let refuse = |kind, cause: String| Failure::new(kind, format!("listen: {address}: {cause}"));
    if matches!(security, Security::Secret(_)) && !address.ip().is_loopback() {
        let cause = "without certificates nodes listen on loopback addresses only; use --host".to_owned();
        return Err(refuse(FailureKind::InvalidArgument, cause));
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => refuse(FailureKind::InUse, error.to_string()),
        _ => refuse(FailureKind::InvalidArgument, error.to_string()),
    };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The address at which others reach a node that listens on `local`.
#[must_use]
pub fn advertised_address(host: Option<&str>, local: SocketAddr) -> String {
    match host {
        None => local.to_string(),
        Some(host) => match host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, local.port()).to_string(),
            Err(_) => format!("{host}:{}", local.port()),
        },
    }
}

/// The address at which a process reaches its own port. The advertised name may lead elsewhere on its own
/// machine, or nowhere until the node is known to run.
pub(super) fn own_address(listener: &std::net::TcpListener) -> Result<SocketAddr, Failure> {
    let local = listener.local_addr().map_err(|e| internal(&e.to_string()))?;
    let loopback: IpAddr = match local.ip() {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    Ok(if local.ip().is_unspecified() { SocketAddr::new(loopback, local.port()) } else { local })
}
