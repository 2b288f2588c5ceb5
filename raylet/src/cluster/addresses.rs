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

/// The address at which others reach a node that listens on `local`: at this host, which may have a port of
/// its own.
#[must_use]
pub fn advertised_address(host: Option<&str>, local: SocketAddr) -> String {
    let Some(host) = host else { return local.to_string() };
    if let Ok(address) = host.parse::<IpAddr>() {
        return SocketAddr::new(address, local.port()).to_string();
    }
    // Names have no colons.
    if host.contains(':') { host.to_owned() } else { format!("{host}:{}", local.port()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_the_port_that_listens_unless_another_one_leads_to_it() {
        let local = "10.0.0.1:7".parse().unwrap();
        let of = |host| advertised_address(host, local);
        assert_eq!(of(None), "10.0.0.1:7");
        for (host, told) in [
            ("10.0.0.2", "10.0.0.2:7"),
            ("10.0.0.2:9", "10.0.0.2:9"),
            ("head", "head:7"),
            ("head:9", "head:9"),
            ("::1", "[::1]:7"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(of(Some(host)), told);
        }
    }
}
