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

/// The addresses (`host:port`) in a text, which are separated by commas.
#[must_use]
pub fn heads(addresses: &str) -> Vec<String> {
    addresses.split(',').map(|address| address.trim().to_owned()).collect()
}

/// The security with which this machine joins the cluster at `heads` (`host:port`): the identity that it has
/// for that cluster, or the user's secret if all heads are on this machine.
///
/// # Errors
/// `NoIdentity` if a head is elsewhere and this machine has never joined there, `Folder`.
pub fn security_towards(
    heads: &[String],
    identity_dir: &Path,
    secret_file: PathBuf,
) -> std::result::Result<Security, IdentityError> {
    if is_known(heads, identity_dir)? {
        // A member signs nothing, so the lifetime of what it would sign does not matter.
        return Ok(Security::Identity { folder: identity_dir.to_owned(), lifetime_ms: 0 });
    }
    let is_here = |head: &String| {
        head.to_socket_addrs().is_ok_and(|mut found| found.all(|address| address.ip().is_loopback()))
    };
    if heads.iter().all(is_here) {
        return Ok(Security::Secret(secret_file));
    }
    Err(IdentityError::NoIdentity(heads.join(",")))
}

/// Whether this machine has an identity for the cluster at one of `heads`.
///
/// # Errors
/// `Folder` if the folder of identities cannot be read.
pub fn is_known(heads: &[String], identity_dir: &Path) -> std::result::Result<bool, IdentityError> {
    let folder = machine_folder(identity_dir);
    for head in heads {
        if folder.find(head)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this machine is to join the cluster at `heads` with a token: it has no identity for it, or got one
/// for another token. A token that was replaced, after the machine was shut out or the head was lost, is of
/// use so; one that is old, as in the settings of a service, is not used again.
///
/// # Errors
/// `Folder` if the folder of identities cannot be read.
pub fn is_new_token(
    heads: &[String],
    identity_dir: &Path,
    token: &Token,
) -> std::result::Result<bool, IdentityError> {
    let folder = machine_folder(identity_dir);
    for head in heads {
        if folder.find(head)?.is_some() {
            return folder.is_new_token(head, token);
        }
    }
    Ok(true)
}

/// The address of this machine from which it reaches the first of `heads` (`host:port`) to which there is a
/// way.
///
/// # Errors
/// If there is no way to any of them.
pub fn address_towards(heads: &[String]) -> io::Result<IpAddr> {
    let mut nowhere = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for head in heads {
        // Nothing is sent: connecting a datagram socket only looks up the route.
        let found = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
            .and_then(|socket| local_address(&socket, head))
            .or_else(|_| local_address(&UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, head));
        match found {
            Ok(address) => return Ok(address),
            Err(cause) => nowhere = cause,
        }
    }
    Err(nowhere)
}

fn local_address(socket: &UdpSocket, head: &str) -> io::Result<IpAddr> {
    socket.connect(head)?;
    Ok(socket.local_addr()?.ip().to_canonical())
}

/// Whether the node of this user on this machine is reached at `address`.
pub(crate) fn is_own_node(address: &str) -> bool {
    observe::ask(&machine::default_socket(), Question::Status).is_ok_and(|report| report.address == address)
}

/// Starts a node of this program that joins the cluster at `addresses` and ends with this process. It has no
/// resources: tasks run on other nodes.
///
/// # Errors
/// `InvalidArgument` for a token or an identity that is of no use, `Disconnected` if nobody answers there.
pub(crate) fn start_node(
    init: &Init,
    options: NodeOptions,
    addresses: &str,
    restartable: Restartable,
) -> Result<NodeProcess> {
    let heads = heads(addresses);
    let identities = init.identity_dir.clone().unwrap_or_else(machine::default_identity_folder);
    let refused = |error: IdentityError| Error::new(FailureKind::InvalidArgument, error.to_string());
    if let Some(token) = token(init) {
        let token: Token = token.parse().map_err(refused)?;
        if is_new_token(&heads, &identities, &token).map_err(refused)? {
            let joined = join_once(&identities, &heads, &token);
            // An identity that is there may be good, and the token over.
            if !is_known(&heads, &identities).map_err(refused)? {
                joined?;
            }
        }
    }
    let security = security_towards(&heads, &identities, machine::default_secret_file()).map_err(refused)?;
    let host = match &security {
        Security::Secret(_) => Ipv4Addr::LOCALHOST.into(),
        Security::Identity { .. } => address_towards(&heads).map_err(|cause| {
            Error::new(FailureKind::Disconnected, format!("there is no way to {addresses}: {cause}"))
        })?,
    };
    let spec = NodeSpec {
        socket: fresh_folder(init.scratch.as_deref()).join("node.sock"),
        options: NodeOptions { resources: Resources::default(), ..options },
        ends_with_stdin: true,
        cluster: Some(ClusterSpec {
            listen: SocketAddr::from((host, 0)),
            advertised: None,
            network_threads: 1,
            security,
            role: ClusterRole::Member { heads },
        }),
        drain_within: machine::DRAIN_WITHIN,
    };
    NodeProcess::start_as(&spec, restartable).map_err(|error| {
        let text = format!("the program's node did not join the cluster at {addresses}: {error}");
        Error::new(FailureKind::Disconnected, text)
    })
}

/// Joins at the first head that admits this machine.
fn join_once(identities: &Path, heads: &[String], token: &Token) -> Result<()> {
    let mut failed = None;
    for head in heads {
        match join_with_token(identities, head, token) {
            Ok(()) => return Ok(()),
            Err(error) => failed = Some(format!("cannot join the cluster at {head}: {error}")),
        }
    }
    Err(Error::new(FailureKind::Disconnected, failed.unwrap_or_default()))
}

fn token(init: &Init) -> Option<String> {
    init.token.clone().or_else(|| std::env::var(TOKEN_VARIABLE).ok())
}
