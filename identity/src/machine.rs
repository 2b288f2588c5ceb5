//! Keys and certificates of this machine.
//!
//! ```text
//! <folder>/<authority>/ca.der        the authority's certificate
//! <folder>/<authority>/former.der    that of the authority that it replaces, if there is one
//! <folder>/<authority>/cross.der     the one that the former made for its successor
//! <folder>/<authority>/machine.der   the machine's own
//! <folder>/<authority>/machine.key   its key, PKCS #8
//! <folder>/<authority>/token         the number of the token with which it joined
//! <folder>/<authority>/heads         addresses at which the cluster was joined, one a line
//! ```
//! A folder without heads is not used: they are written last.

use crate::private::{make_folder, names, read, remove, write};
use crate::subject::number;
use crate::{Anchors, AuthorityHash, Former, IdentityError, Token};
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of the number of the token.
const TOKEN: &str = "token";

/// A certificate with its key, and the authorities that are believed in.
#[derive(Clone)]
pub struct Identity {
    pub(crate) anchors: Anchors,
    pub(crate) certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

/// A key without a certificate yet. It never leaves the process that made it, but for the machine's folder.
pub struct NewKey(KeyPair);

/// The identities of this machine, one for each cluster that it joined.
#[derive(Clone, Debug)]
pub struct MachineFolder(PathBuf);

impl NewKey {
    /// A new one, ECDSA P-256.
    ///
    /// # Errors
    /// `Certificate` if the system has no random numbers.
    pub fn generate() -> Result<NewKey, IdentityError> {
        KeyPair::generate().map(NewKey).map_err(IdentityError::certificate)
    }

    /// The public key, as the authority wants it: an uncompressed point of P-256, 65 bytes.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        self.0.der_bytes().to_vec()
    }

    /// The key with the certificate that the authority made for it.
    #[must_use]
    pub fn with(self, certificate: Vec<u8>, anchors: Anchors) -> Identity {
        Identity { anchors, certificate: certificate.into(), key: self.0.serialize_der() }
    }
}

impl Identity {
    /// The hash of the authority's certificate.
    #[must_use]
    pub fn authority(&self) -> AuthorityHash {
        self.anchors.hash()
    }

    /// The public key, as the authority wants it.
    ///
    /// # Errors
    /// `Certificate` if the key is none.
    pub fn public(&self) -> Result<Vec<u8>, IdentityError> {
        let key = KeyPair::try_from(self.key.as_slice()).map_err(IdentityError::certificate)?;
        Ok(key.der_bytes().to_vec())
    }

    /// The same key with a new certificate.
    #[must_use]
    pub fn renewed(&self, certificate: Vec<u8>, anchors: Anchors) -> Identity {
        Identity { anchors, certificate: certificate.into(), key: self.key.clone() }
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity(authority {}, key not shown)", self.authority().short())
    }
}

impl MachineFolder {
    /// The identities below `folder`, which need not be there yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> MachineFolder {
        MachineFolder(folder)
    }

    /// Keeps an identity for the cluster that is joined at `head` (`host:port`). One that was kept for the
    /// same cluster is replaced, also if its authority was replaced since.
    ///
    /// # Errors
    /// `Folder`.
    pub fn keep(&self, identity: &Identity, head: &str) -> Result<(), IdentityError> {
        let anchors = &identity.anchors;
        let folder = self.0.join(anchors.hash().short());
        make_folder(&folder)?;
        write(&folder.join("ca.der"), &anchors.current)?;
        match &anchors.former {
            Some(former) => {
                write(&folder.join("cross.der"), &former.cross)?;
                write(&folder.join("former.der"), &former.certificate)?;
            }
            None => remove(&folder.join("former.der"))?,
        }
        write(&folder.join("machine.key"), &identity.key)?;
        write(&folder.join("machine.der"), &identity.certificate)?;
        let mut known = heads(&folder)?;
        if let Some(former) = anchors.former_hash().map(|former| self.0.join(former.short())) {
            known.extend(heads(&former)?);
            if let (None, Some(token)) = (read(&folder.join(TOKEN))?, read(&former.join(TOKEN))?) {
                write(&folder.join(TOKEN), &token)?;
            }
        }
        known.push(head.to_owned());
        known.sort_unstable();
        known.dedup();
        write(&folder.join("heads"), known.join("\n").as_bytes())?;
        self.forget_elsewhere(&folder, &known)
    }

    /// Notes the token with which the cluster at `head` was joined.
    ///
    /// # Errors
    /// `Folder`, `NoIdentity` if none is kept for it.
    pub fn note_token(&self, head: &str, token: &Token) -> Result<(), IdentityError> {
        let folder = self.folder(head)?.ok_or_else(|| IdentityError::NoIdentity(head.to_owned()))?;
        write(&folder.join(TOKEN), format!("{:016x}", token.number).as_bytes())
    }

    /// Whether a token is for joining anew: this machine has no identity for the cluster at `head`, or got it
    /// for another token. Where no token was noted, by an earlier release, one of the same authority is old.
    ///
    /// # Errors
    /// `Folder`, as [`MachineFolder::find`].
    pub fn is_new_token(&self, head: &str, token: &Token) -> Result<bool, IdentityError> {
        let Some(folder) = self.folder(head)? else { return Ok(true) };
        match read(&folder.join(TOKEN))? {
            Some(noted) => Ok(number(&String::from_utf8_lossy(&noted)) != Some(token.number)),
            None => Ok(!load(&folder)?.is_some_and(|kept| kept.anchors.include(token.authority))),
        }
    }

    /// Of several identities that were kept for one head, the last one is good.
    fn forget_elsewhere(&self, folder: &Path, moved: &[String]) -> Result<(), IdentityError> {
        for other in names(&self.0).into_iter().map(|name| self.0.join(name)).filter(|other| other != folder)
        {
            let (gone, left): (Vec<_>, Vec<_>) =
                heads(&other)?.into_iter().partition(|head| moved.contains(head));
            if !gone.is_empty() {
                write(&other.join("heads"), left.join("\n").as_bytes())?;
            }
        }
        Ok(())
    }

    /// The identity for the cluster that was joined at `head`; none if this machine has not joined there.
    ///
    /// # Errors
    /// `Folder`: a file that others may read counts as one that cannot be read.
    pub fn find(&self, head: &str) -> Result<Option<Identity>, IdentityError> {
        self.folder(head)?.map_or(Ok(None), |folder| load(&folder))
    }

    /// Time since the certificate for the cluster at `head` was kept; none if this machine has not joined
    /// there.
    ///
    /// # Errors
    /// `Folder`, as [`MachineFolder::find`].
    pub fn age(&self, head: &str) -> Result<Option<Duration>, IdentityError> {
        Ok(self.folder(head)?.and_then(|folder| age(&folder)))
    }

    fn folder(&self, head: &str) -> Result<Option<PathBuf>, IdentityError> {
        for name in names(&self.0) {
            let folder = self.0.join(name);
            if heads(&folder)?.iter().any(|known| known == head) {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }
}

/// Time since the certificate in a folder was written; none if there is none. A clock that was set back
/// counts as no time.
fn age(folder: &Path) -> Option<Duration> {
    let written = folder.join("machine.der").metadata().and_then(|file| file.modified()).ok()?;
    Some(written.elapsed().unwrap_or_default())
}

fn heads(folder: &Path) -> Result<Vec<String>, IdentityError> {
    let bytes = read(&folder.join("heads"))?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

fn load(folder: &Path) -> Result<Option<Identity>, IdentityError> {
    let file = |name: &str| read(&folder.join(name));
    let (Some(authority), Some(certificate), Some(key)) =
        (file("ca.der")?, file("machine.der")?, file("machine.key")?)
    else {
        return Ok(None);
    };
    let former = match (file("former.der")?, file("cross.der")?) {
        (Some(certificate), Some(cross)) => Some(Former { certificate, cross }),
        _ => None,
    };
    let anchors = Anchors { current: authority, former };
    Ok(Some(Identity { anchors, certificate: certificate.into(), key }))
}
