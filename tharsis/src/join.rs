//! Joining a cluster at an address: the identity that this machine shows there, and the node with which a
//! program joins.

use crate::init::Init;
use crate::part::Restartable;
use crate::process::{ClusterRole, ClusterSpec, NodeProcess, NodeSpec, Security, fresh_folder};
use crate::{machine, observe};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use tharsis_identity::{IdentityError, Token};
use tharsis_protos::handshake::Question;
use tharsis_raylet::NodeOptions;
use tharsis_raylet::cluster::identity::{join_with_token, machine_folder};
use tharsis_remote::{Error, FailureKind, Result};
use tharsis_types::Resources;

/// The variable with the token of a program that joins for the first time.
pub const TOKEN_VARIABLE: &str = "THARSIS_TOKEN";

/// The security with which this machine joins the cluster at `head` (`host:port`): the identity that it has
/// for that cluster, or the user's secret if the head is on this machine.
///
/// # Errors
/// `NoIdentity` if the head is elsewhere and this machine has never joined there, `Folder`.
pub fn security_towards(
    head: &str,
    identity_dir: &Path,
    secret_file: PathBuf,
) -> std::result::Result<Security, IdentityError> {
    if machine_folder(identity_dir).find(head)?.is_some() {
        // A member signs nothing, so the lifetime of what it would sign does not matter.
        return Ok(Security::Identity { folder: identity_dir.to_owned(), lifetime_ms: 0 });
    }
    let is_here =
        head.to_socket_addrs().is_ok_and(|mut found| found.all(|address| address.ip().is_loopback()));
    if is_here {
        return Ok(Security::Secret(secret_file));
    }
    Err(IdentityError::NoIdentity(head.to_owned()))
}

/// The address of this machine from which it reaches `head` (`host:port`).
///
/// # Errors
/// If there is no way there.
pub fn address_towards(head: &str) -> io::Result<IpAddr> {
    // Nothing is sent: connecting a datagram socket only looks up the route.
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .and_then(|socket| local_address(&socket, head))
        .or_else(|_| local_address(&UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, head))
}

fn local_address(socket: &UdpSocket, head: &str) -> io::Result<IpAddr> {
    socket.connect(head)?;
    Ok(socket.local_addr()?.ip().to_canonical())
}

/// Whether the node of this user on this machine is reached at `address`.
pub(crate) fn is_own_node(address: &str) -> bool {
    observe::ask(&machine::default_socket(), Question::Status).is_ok_and(|report| report.address == address)
}

/// Starts a node of this program that joins the cluster at `head` and ends with this process. It has no
/// resources: tasks run on other nodes.
///
/// # Errors
/// `InvalidArgument` for a token or an identity that is of no use, `Disconnected` if nobody answers there.
pub(crate) fn start_node(
    init: &Init,
    options: NodeOptions,
    head: &str,
    restartable: Restartable,
) -> Result<NodeProcess> {
    let identities = init.identity_dir.clone().unwrap_or_else(machine::default_identity_folder);
    let refused = |error: IdentityError| Error::new(FailureKind::InvalidArgument, error.to_string());
    let is_known = machine_folder(&identities).find(head).map_err(refused)?.is_some();
    if let Some(token) = token(init).filter(|_| !is_known) {
        let token: Token = token.parse().map_err(refused)?;
        let text = |error: &dyn std::fmt::Display| format!("cannot join the cluster at {head}: {error}");
        join_with_token(&identities, head, &token)
            .map_err(|error| Error::new(FailureKind::Disconnected, text(&error)))?;
    }
    let security = security_towards(head, &identities, machine::default_secret_file()).map_err(refused)?;
    let host = match &security {
        Security::Secret(_) => Ipv4Addr::LOCALHOST.into(),
        Security::Identity { .. } => address_towards(head).map_err(|cause| {
            Error::new(FailureKind::Disconnected, format!("there is no way to {head}: {cause}"))
        })?,
    };
    let spec = NodeSpec {
        socket: fresh_folder(init.scratch.as_deref()).join("node.sock"),
        options: NodeOptions { resources: Resources::default(), ..options },
        ends_with_stdin: true,
        cluster: Some(ClusterSpec {
            listen: SocketAddr::from((host, 0)),
            security,
            role: ClusterRole::Member { head: head.to_owned() },
        }),
    };
    NodeProcess::start_as(&spec, restartable)
}

fn token(init: &Init) -> Option<String> {
    init.token.clone().or_else(|| std::env::var(TOKEN_VARIABLE).ok())
}
