//! The certificates of a cluster's authority: by them its members believe each other.
//!
//! While an authority replaces another one, members that have not heard of the new one believe in the former
//! one only. So whoever shows a certificate of the new one also shows the one that the former made for it.

use crate::{AuthorityHash, IdentityError};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// The authorities that a member believes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchors {
    /// The certificate of the one that signs, in DER.
    pub current: Vec<u8>,
    /// The one that it replaces, as long as both are believed in.
    pub former: Option<Former>,
}

/// An authority that is being replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Its certificate, in DER.
    pub certificate: Vec<u8>,
    /// The certificate that it made for the key of its successor, in DER.
    pub cross: Vec<u8>,
}

impl Anchors {
    /// The hash of the certificate of the one that signs.
    #[must_use]
    pub fn hash(&self) -> AuthorityHash {
        AuthorityHash::of(&self.current)
    }

    /// The hash of the certificate of the former one.
    #[must_use]
    pub fn former_hash(&self) -> Option<AuthorityHash> {
        self.former.as_ref().map(|former| AuthorityHash::of(&former.certificate))
    }

    /// Whether the one of this hash is believed in.
    #[must_use]
    pub fn include(&self, authority: AuthorityHash) -> bool {
        self.hash() == authority || self.former_hash() == Some(authority)
    }

    /// All that is shown beside a certificate, so that whoever believes in either can follow.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let former = self.former.iter().flat_map(|former| [&former.cross, &former.certificate]);
        std::iter::once(&self.current).chain(former).map(|der| der.clone().into()).collect()
    }

    pub(crate) fn roots(&self) -> Result<RootCertStore, IdentityError> {
        let mut roots = RootCertStore::empty();
        let former = self.former.iter().map(|former| &former.certificate);
        for der in std::iter::once(&self.current).chain(former) {
            roots.add(der.clone().into()).map_err(IdentityError::certificate)?;
        }
        Ok(roots)
    }
}
