//! Keys and certificates of this machine.
//!
//! ```text
//! <folder>/<authority>/ca.der        the authority's certificate
//! <folder>/<authority>/machine.der   the machine's own
//! <folder>/<authority>/machine.key   its key, PKCS #8
//! <folder>/<authority>/heads         addresses at which the cluster was joined, one a line
//! ```

use crate::private::{make_folder, names, read, write};
use crate::{AuthorityHash, IdentityError};
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::{Path, PathBuf};

/// A certificate with its key, and the certificate of the authority behind it.
#[derive(Clone)]
pub struct Identity {
    pub(crate) authority: CertificateDer<'static>,
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
    pub fn with(self, certificate: Vec<u8>, authority: Vec<u8>) -> Identity {
        Identity { authority: authority.into(), certificate: certificate.into(), key: self.0.serialize_der() }
    }
}

impl Identity {
    /// The hash of the authority's certificate.
    #[must_use]
    pub fn authority(&self) -> AuthorityHash {
        AuthorityHash::of(&self.authority)
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
    /// same cluster is replaced.
    ///
    /// # Errors
    /// `Folder`.
    pub fn keep(&self, identity: &Identity, head: &str) -> Result<(), IdentityError> {
        let folder = self.0.join(identity.authority().short());
        make_folder(&folder)?;
        write(&folder.join("ca.der"), &identity.authority)?;
        write(&folder.join("machine.key"), &identity.key)?;
        write(&folder.join("machine.der"), &identity.certificate)?;
        let mut heads = heads(&folder)?;
        heads.retain(|known| known != head);
        heads.push(head.to_owned());
        write(&folder.join("heads"), heads.join("\n").as_bytes())
    }

    /// The identity for the cluster that was joined at `head`; none if this machine has not joined there.
    ///
    /// # Errors
    /// `Folder`: a file that others may read counts as one that cannot be read.
    pub fn find(&self, head: &str) -> Result<Option<Identity>, IdentityError> {
        for name in names(&self.0) {
            let folder = self.0.join(name);
            if heads(&folder)?.iter().any(|known| known == head) {
                return load(&folder);
            }
        }
        Ok(None)
    }
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
    Ok(Some(Identity { authority: authority.into(), certificate: certificate.into(), key }))
}
