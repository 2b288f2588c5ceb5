//! Errors of identities.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no identity, or no certificate for one.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A certificate or key cannot be made or read.
    #[error("certificate: {0}")]
    Certificate(String),
    /// The token's time is over.
    #[error("ExpiredToken: the token expired; make another one with `tharsis token create` on the head")]
    ExpiredToken,
    /// A file or folder cannot be read or written, or is open to others.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// The text is not a token.
    #[error("MalformedToken: {0}; copy the whole line that the head printed")]
    MalformedToken(&'static str),
    /// This machine has no authority.
    #[error(
        "{} holds no authority: run this on a head that was started with --host, as its user; one without --host admits \
         nodes of its user on its machine, and no tokens",
        .0.display()
    )]
    NoAuthority(PathBuf),
    /// This machine has not joined the cluster.
    #[error(
        "this machine has no identity for the cluster at {0}; join with --token, from `tharsis token create` on the head"
    )]
    NoIdentity(String),
    /// A machine's certificate is not renewed for a node.
    #[error("the certificate of a node does not renew that of its machine")]
    NotAMachine,
    /// Only a machine with the role of a node or a driver has nodes.
    #[error("a machine with the role {0} cannot run a node")]
    NotANode(&'static str),
    /// The node is another machine's.
    #[error("node {0} is another machine's: its certificates are for that one only")]
    NotItsNode(String),
    /// No key of the authority is being replaced.
    #[error("the key of the authority is not being replaced")]
    NotReplacing,
    /// The machine is that of the authority itself.
    #[error("the machine of the authority cannot be revoked: stop its node with `tharsis stop`")]
    OwnMachine,
    /// Members may not have heard of the new key yet.
    #[error("members may rely on the former key for another {} s; those that do are shut out then", left.as_secs())]
    Overlap {
        /// The rest of the time in which both keys are good.
        left: Duration,
    },
    /// Two keys of an authority are good at a time, no more.
    #[error("the key of the authority is being replaced already; retire the former one first")]
    Replacing,
    /// The machine was shut out.
    #[error("Revoked: machine {0} was revoked")]
    Revoked(String),
    /// The authority has admitted as many machines as it may.
    #[error(
        "TooManyMachines: the authority knows {limit} machines, the limit. Those that are gone for good are files in {}: \
         shut them out (tharsis node revoke), stop all heads, and remove the files. Heads over etcd bring them back from \
         there: remove the keys of the same names below /tharsis/NAME/machines/machines/ as well. A file of --state keeps \
         them: begin a new one",
        folder.display()
    )]
    TooManyMachines {
        /// The limit.
        limit: usize,
        /// The folder with a file for each.
        folder: PathBuf,
    },
    /// A token has admitted as many machines as it may.
    #[error(
        "TooManyOfToken: {limit} machines joined with token {token:016x}, the limit of one token: make another one \
         with `tharsis token create`, and revoke this one if they are not all yours"
    )]
    TooManyOfToken {
        /// The number of the token.
        token: u64,
        /// The limit.
        limit: usize,
    },
    /// A machine has certificates for as many nodes as it may.
    #[error(
        "TooManyNodes: {limit} nodes of this machine have certificates that may be good, the limit: start fewer \
         drivers, or connect them to one node of this machine"
    )]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
    /// No token of that number and secret.
    #[error("UnknownToken: the head knows no such token; it was revoked, or is another cluster's")]
    UnknownToken,
}

impl IdentityError {
    pub(crate) fn certificate(cause: impl std::fmt::Display) -> IdentityError {
        IdentityError::Certificate(cause.to_string())
    }
}
