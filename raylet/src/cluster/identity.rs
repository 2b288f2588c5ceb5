//! Entry of a node into its cluster: by the user's secret on one machine, by certificates on several.
//!
//! ```text
//! <folder>/authority/    on the head: the cluster's authority
//! <folder>/clusters/     on the others: the identities of this machine
//! ```
//! A head signs its own certificate. A member shows the machine's identity, which it got for a token, and
//! asks the head for one that names the node; so a certificate of one node is of no use to another. Both are
//! replaced at half the lifetime of the node's, while connections go on. So another key of the authority
//! reaches all members within that time; a head looks for one more often.

use super::{JOIN_PATIENCE, Role, secret};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tharsis_gcs::{KnownStores, Owner};
use tharsis_identity::{self as identity, Authority, Identity, IdentityError, MachineFolder, Tls, Token};
use tharsis_protos::connection::{Credentials, Gate, Signer, Trust};
use tharsis_protos::control::ClusterId;
use tharsis_protos::join::{self, JoinError};
use tharsis_protos::proof::ProofError;
use tharsis_types::{Failure, FailureKind, NodeId};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// A certificate that could not be replaced is tried again after this part of its lifetime.
const RETRIES_PER_LIFETIME: u32 = 20;
/// Time limit for the certificate of one head while there are others to ask.
const HEAD_WAIT: Duration = Duration::from_secs(1);
/// Age at which a command renews the certificate of a machine that has no node.
const MACHINE_RENEWAL: Duration = Duration::from_secs(24 * 3600);
/// Between two looks at the time of day, and of a head at the key of the authority, which a command may
/// replace.
const LOOKS: Duration = Duration::from_secs(2);
/// Longer than any lifetime.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Between two attempts to reach a head that is not there yet.
const JOIN_PAUSE: Duration = Duration::from_millis(100);
/// The time for which a head is asked that is there and proves nothing: its machine may be busy.
const SLOW_PATIENCE: Duration = Duration::from_secs(30);
/// The time in which a machine joins with a token, before it waits for anything else.
pub const TOKEN_TIME_MAX: Duration = Duration::from_secs(105);

/// Means by which the members of a cluster know each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Security {
    /// By certificates.
    Identity {
        /// The folder of identities; made if it is not there.
        folder: PathBuf,
        /// Lifetime of the certificates of nodes that a head signs, in ms.
        lifetime_ms: u64,
    },
    /// By the secret in this file, which is made if it is not there. Only on loopback addresses.
    Secret(PathBuf),
}

/// A node's credentials, and who is let in at its port.
pub(crate) struct Entry {
    pub(crate) credentials: Credentials,
    pub(crate) gate: Gate,
    /// Keeps the certificate fresh; none without one.
    pub(crate) renewal: Option<Renewal>,
}

/// Replaces a certificate at half its lifetime, for ever.
pub struct Renewal {
    tls: Tls,
    source: Source,
    lifetime: Duration,
}

/// The signer of a certificate.
enum Source {
    /// The authority on this machine, for this process.
    Own { authority: Arc<Authority>, node: Option<NodeId> },
    /// One of the heads, for this node, to whoever shows the machine's identity.
    Head { stores: KnownStores, machine: Machine, node: NodeId },
}

/// The identity of this machine, and where it is kept.
struct Machine {
    identity: Identity,
    folder: MachineFolder,
}

/// The folder of the cluster's authority.
#[must_use]
pub fn authority_folder(folder: &Path) -> PathBuf {
    folder.join("authority")
}

/// The identities of this machine.
#[must_use]
pub fn machine_folder(folder: &Path) -> MachineFolder {
    MachineFolder::new(folder.join("clusters"))
}

/// A name of a user on the machine with this id, which tells neither; none if the machine has none, or none
/// yet.
fn user_on(machine: &str, user: u32) -> Option<[u8; 16]> {
    if machine.is_empty() || machine == "uninitialized" {
        return None;
    }
    let name = blake3::hash(format!("tharsis user {user} of machine {machine}").as_bytes());
    name.as_bytes().first_chunk().copied()
}

/// Joins the cluster at `address` with a token and keeps the identity in `folder`. Blocks.
///
/// # Errors
/// [`JoinError`].
pub fn join_with_token(folder: &Path, address: &str, token: &Token) -> Result<(), JoinError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let unreachable = |cause| JoinError::Unreachable { address: address.to_owned(), cause };
    let runtime = runtime.map_err(unreachable)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let begun = Instant::now();
    let asking = async {
        loop {
            match join::with_token(address, token, &host).await {
                Err(error) if is_slow(&error) && begun.elapsed() < SLOW_PATIENCE => sleep(JOIN_PAUSE).await,
                asked => break asked,
            }
        }
    };
    let asked = runtime.block_on(async { timeout(TOKEN_TIME_MAX, asking).await });
    let identity = asked.unwrap_or(Err(JoinError::Late))?;
    let kept = machine_folder(folder);
    kept.keep(&identity, address)?;
    Ok(kept.note_token(address, token)?)
}

/// The identity of this machine for the cluster that was joined at one of `heads`.
///
/// # Errors
/// `NoIdentity` if it was never joined there, and why it cannot be read.
pub fn machine_identity(folder: &Path, heads: &[String]) -> Result<Identity, IdentityError> {
    for head in heads {
        if let Some(identity) = machine_folder(folder).find(head)? {
            return Ok(identity);
        }
    }
    Err(IdentityError::NoIdentity(heads.join(",")))
}

/// Renews the certificate of this machine for the cluster at one of `heads`, unless it was kept less than a
/// day ago. Says whether it did. A machine with a node needs none of this: its node does it.
///
/// # Errors
/// [`JoinError`]: none of the heads signed in time. The certificate that is there is good as before.
pub async fn renew_machine(folder: &Path, heads: &[String]) -> Result<bool, JoinError> {
    let kept = machine_folder(folder);
    for head in heads {
        let Some(identity) = kept.find(head)? else { continue };
        if kept.age(head)?.is_some_and(|age| age < MACHINE_RENEWAL) {
            return Ok(false);
        }
        let renewing = timeout(HEAD_WAIT, join::as_machine(head, &identity));
        match renewing.await.unwrap_or(Err(ProofError::Timeout(HEAD_WAIT).into())) {
            Ok(renewed) => {
                kept.keep(&renewed, head)?;
                return Ok(true);
            }
            Err(error) if is_away(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

impl Security {
    /// Credentials of a process of this machine at one of `heads`, before it is a node.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no identity, or the secret cannot be read.
    pub fn credentials(&self, heads: &[String]) -> Result<Credentials, Failure> {
        match self {
            Security::Secret(file) => Ok(Credentials::with_secret(secret::load_or_make(file)?, None)),
            Security::Identity { folder, .. } => {
                let tls =
                    machine_identity(folder, heads).and_then(|found| Tls::new(&found)).map_err(refused)?;
                Ok(Credentials { trust: Trust::Identity(tls), node: None })
            }
        }
    }

    /// The gate of a control store without a node, and what keeps its certificate fresh.
    ///
    /// # Errors
    /// `InvalidArgument` if there can be no identity.
    pub fn control_gate(&self) -> Result<(Gate, Option<Renewal>), Failure> {
        match self {
            Security::Secret(file) => Ok((Gate::new(Trust::Secret(secret::load_or_make(file)?)), None)),
            Security::Identity { folder, lifetime_ms } => {
                let (_, gate, renewal) =
                    own(folder, None, Duration::from_millis(*lifetime_ms)).map_err(refused)?;
                Ok((gate, Some(renewal)))
            }
        }
    }

    /// The owner that the key space of an etcd is to have: the authority, or without one the user on this
    /// machine. A secret is no name: it may lie in a folder that is gone after a reboot. None if the machine
    /// has no id.
    ///
    /// # Errors
    /// `InvalidArgument` if there can be no identity.
    pub fn owner(&self) -> Result<Option<Owner>, Failure> {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let user = user_on(machine.trim(), rustix::process::geteuid().as_raw());
        match self {
            Security::Secret(_) => Ok(user.map(Owner::User)),
            Security::Identity { folder, .. } => {
                let authority = Authority::load_or_make(&authority_folder(folder)).map_err(refused)?;
                let name = authority.name().map(ClusterId).map_err(refused)?;
                Ok(Some(Owner::Authority { name, user }))
            }
        }
    }

    /// Credentials and gate of a node.
    pub(crate) async fn enter(
        &self,
        me: NodeId,
        role: &Role,
        stores: &KnownStores,
    ) -> Result<Entry, Failure> {
        match (self, role) {
            (Security::Secret(file), _) => {
                let secret = secret::load_or_make(file)?;
                if let Err(error) = secret::write_scrape_token(file, &secret) {
                    tracing::warn!(%error, "nobody can scrape the metrics of this node");
                }
                let gate = Gate::new(Trust::Secret(secret.clone()));
                Ok(Entry { credentials: Credentials::with_secret(secret, Some(me)), gate, renewal: None })
            }
            (Security::Identity { folder, lifetime_ms }, Role::Head { .. }) => {
                let lifetime = Duration::from_millis(*lifetime_ms);
                let (tls, gate, renewal) = own(folder, Some(me), lifetime).map_err(refused)?;
                let credentials = Credentials { trust: Trust::Identity(tls), node: Some(me) };
                Ok(Entry { credentials, gate, renewal: Some(renewal) })
            }
            (Security::Identity { folder, .. }, Role::Member { heads }) => {
                let identity = machine_identity(folder, heads).map_err(refused)?;
                member(stores, Machine { identity, folder: machine_folder(folder) }, me).await
            }
        }
    }
}

fn own(
    folder: &Path,
    node: Option<NodeId>,
    lifetime: Duration,
) -> Result<(Tls, Gate, Renewal), IdentityError> {
    let authority = Arc::new(Authority::load_or_make(&authority_folder(folder))?);
    let own = authority.own(identity::Role::Node, node.map(|node| node.0), true, lifetime)?;
    let tls = Tls::new(&own)?;
    let signer = Signer { authority: Arc::clone(&authority), lifetime, owners: None };
    let gate = Gate::new(Trust::Identity(tls.clone())).signing(signer);
    let renewal = Renewal { tls: tls.clone(), source: Source::Own { authority, node }, lifetime };
    Ok((tls, gate, renewal))
}

/// A node of a machine that has joined. The head may have been started a moment ago.
async fn member(stores: &KnownStores, mut machine: Machine, me: NodeId) -> Result<Entry, Failure> {
    let begun = Instant::now();
    let (own, lifetime) = loop {
        match ask_one(stores, &mut machine, me).await {
            Err((_, error)) if begun.elapsed() < patience(&error) => sleep(JOIN_PAUSE).await,
            asked => break asked.map_err(|(head, error)| not_joined(&head, &error))?,
        }
    };
    let tls = Tls::new(&own).map_err(refused)?;
    let credentials = Credentials { trust: Trust::Identity(tls.clone()), node: Some(me) };
    let gate = Gate::new(Trust::Identity(tls.clone()));
    let source = Source::Head { stores: stores.clone(), machine, node: me };
    Ok(Entry { credentials, gate, renewal: Some(Renewal { tls, source, lifetime }) })
}

/// Asks the heads one after the other, until one signs for the node and its machine. The error is of the
/// first head that refused, or of the last one if none answered.
async fn ask_one(
    stores: &KnownStores,
    machine: &mut Machine,
    node: NodeId,
) -> Result<(Identity, Duration), (String, JoinError)> {
    let mut heads = stores.in_turn().into_iter().peekable();
    let mut failed = None;
    while let Some(head) = heads.next() {
        let asked = join::as_node(&head, &machine.identity, node);
        // The last one may take as long as a connection may.
        let answer = match heads.peek() {
            Some(_) => timeout(HEAD_WAIT, asked).await.unwrap_or(Err(ProofError::Timeout(HEAD_WAIT).into())),
            None => asked.await,
        };
        match answer {
            Ok(signed) => {
                machine.renew(signed.machine, &head);
                return Ok((signed.node, signed.lifetime));
            }
            Err(error) => failed = failed.filter(|(_, earlier)| !is_away(earlier)).or(Some((head, error))),
        }
    }
    Err(failed.unwrap_or_else(|| (String::new(), IdentityError::NoIdentity(String::new()).into())))
}

impl Machine {
    fn renew(&mut self, identity: Identity, head: &str) {
        // The former one is good for months, or until the former authority ends, and this is tried again.
        if let Err(error) = self.folder.keep(&identity, head) {
            tracing::warn!(%error, "the renewed identity of this machine is not kept");
        }
        self.identity = identity;
    }
}

impl Renewal {
    /// Runs for ever.
    pub async fn run(mut self) {
        let mut wait = self.lifetime / 2;
        loop {
            self.wait(wait).await;
            wait = match self.replace().await {
                Ok(()) => self.lifetime / 2,
                Err(error) => {
                    tracing::warn!(%error, "the certificate of this node is not renewed");
                    self.lifetime / RETRIES_PER_LIFETIME
                }
            };
        }
    }

    /// Until the certificate is to be replaced, after `wait` at the latest.
    async fn wait(&self, wait: Duration) {
        let (due, used) = (Due::after(wait), self.tls.anchors());
        // A key that cannot be read is not another one.
        let has_another_key = || match &self.source {
            Source::Own { authority, .. } => authority.anchors().is_ok_and(|anchors| anchors != used),
            Source::Head { .. } => false,
        };
        while !due.has_come(Instant::now(), SystemTime::now()) && !has_another_key() {
            sleep_until(due.at.min(Instant::now() + LOOKS)).await;
        }
    }

    async fn replace(&mut self) -> Result<(), JoinError> {
        let own = match &mut self.source {
            Source::Own { authority, node } => {
                authority.own(identity::Role::Node, node.map(|node| node.0), true, self.lifetime)?
            }
            Source::Head { stores, machine, node } => {
                let (own, lifetime) = ask_one(stores, machine, *node).await.map_err(|(_, error)| error)?;
                self.lifetime = lifetime;
                own
            }
        };
        Ok(self.tls.replace(&own)?)
    }
}

/// A time by two clocks, whichever comes first. Certificates end by the time of day, which goes on while the
/// machine sleeps and may be set; the other clock does neither.
struct Due {
    at: Instant,
    date: SystemTime,
}

impl Due {
    fn after(wait: Duration) -> Due {
        let (at, date) = (Instant::now(), SystemTime::now());
        Due {
            at: at.checked_add(wait).unwrap_or(at + FAR),
            date: date.checked_add(wait).unwrap_or(date + FAR),
        }
    }

    fn has_come(&self, now: Instant, date: SystemTime) -> bool {
        self.at <= now || self.date <= date
    }
}

/// The time since the first attempt for which a node that joins tries again after this error.
fn patience(error: &JoinError) -> Duration {
    match error {
        error if is_slow(error) => SLOW_PATIENCE,
        error if is_away(error) => JOIN_PATIENCE,
        _ => Duration::ZERO,
    }
}

/// Whether nobody answered, which may change.
fn is_away(error: &JoinError) -> bool {
    let is_unproved = matches!(error, JoinError::Proof(ProofError::Io(_) | ProofError::Timeout(_)));
    is_unproved || is_slow(error) || matches!(error, JoinError::Unreachable { .. } | JoinError::Late)
}

/// Whether somebody took the connection and proved nothing, or put us off: this machine or the other one may
/// be busy.
fn is_slow(error: &JoinError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error {
        JoinError::Busy(_) | JoinError::Proof(ProofError::Timeout(_)) => true,
        JoinError::Proof(ProofError::Io(cause) | ProofError::Tls(cause)) => {
            matches!(cause.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        }
        _ => false,
    }
}

fn not_joined(head: &str, error: &JoinError) -> Failure {
    let kind = if is_away(error) { FailureKind::Disconnected } else { FailureKind::InvalidArgument };
    Failure::new(kind, format!("cannot join the cluster at {head}: {error}"))
}

fn refused(error: IdentityError) -> Failure {
    Failure::new(FailureKind::InvalidArgument, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_space_is_a_users_whatever_secret_there_is_and_nobodys_without_a_machine_id() {
        let folder = tempfile::tempdir().unwrap();
        let owner = |name: &str| Security::Secret(folder.path().join(name)).owner().unwrap();
        assert_eq!(owner("before the reboot"), owner("after it"));
        assert_eq!((user_on("", 0), user_on("uninitialized", 0)), (None, None));
        let [first, user, machine] = [user_on("a", 0), user_on("a", 1), user_on("b", 0)];
        assert!(first.is_some() && first != user && first != machine);
        assert_eq!(first, user_on("a", 0));
    }

    #[test]
    fn a_head_that_is_slow_is_asked_for_longer_than_one_that_is_away() {
        let io = |kind: std::io::ErrorKind| ProofError::Io(kind.into());
        let tls = |kind: std::io::ErrorKind| ProofError::Tls(kind.into());
        let cases = [
            (ProofError::Timeout(HEAD_WAIT), SLOW_PATIENCE),
            // A port has ended the connection: this process was slow itself.
            (io(std::io::ErrorKind::UnexpectedEof), SLOW_PATIENCE),
            (tls(std::io::ErrorKind::UnexpectedEof), SLOW_PATIENCE),
            (io(std::io::ErrorKind::ConnectionReset), SLOW_PATIENCE),
            (io(std::io::ErrorKind::ConnectionRefused), JOIN_PATIENCE),
            (io(std::io::ErrorKind::HostUnreachable), JOIN_PATIENCE),
            (tls(std::io::ErrorKind::InvalidData), Duration::ZERO),
            (ProofError::NotOurs, Duration::ZERO),
        ];
        for (error, expected) in cases {
            let error = JoinError::Proof(error);
            assert_eq!(patience(&error), expected, "{error}");
            assert_eq!(is_away(&error), !expected.is_zero(), "{error}");
        }
        assert!(JOIN_PATIENCE < SLOW_PATIENCE);
        assert_eq!(patience(&JoinError::Busy("later".to_owned())), SLOW_PATIENCE);
        assert_eq!(patience(&JoinError::Refused("no".to_owned())), Duration::ZERO);
    }

    #[test]
    fn a_certificate_is_due_by_the_time_of_day_also_after_a_sleep() {
        let hour = Duration::from_secs(3600);
        let (now, date) = (Instant::now(), SystemTime::now());
        let due = Due::after(hour);
        assert!(!due.has_come(now, date));
        // The machine slept for a day, while its clock of intervals stood still.
        assert!(due.has_come(now, date + 24 * hour));
        // The time of day was set back.
        assert!(!due.has_come(now + hour / 2, date - 24 * hour));
        assert!(due.has_come(now + 2 * hour, date - 24 * hour));
        assert!(!Due::after(Duration::MAX).has_come(now, date));
    }
}
