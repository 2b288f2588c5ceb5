//! TLS 1.3 with certificates on both sides.
//!
//! There is no resumption: each connection shows certificates that hold now, and connections are few and
//! long.

use crate::subject::{CONTROL_NAME, node_name};
use crate::{Anchors, AuthorityHash, Identity, IdentityError, Subject};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ConnectionCommon, DigitallySignedStruct, DistinguishedName,
    RootCertStore, ServerConfig, SignatureScheme,
};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The label under which a proof's key is derived from a connection (RFC 5705).
const PROOF_LABEL: &[u8] = b"EXPERIMENTAL tharsis proof";

/// An identity in use. Clones share it: one that is replaced is replaced for all of them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Live>>);

/// Whom a caller expects to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Called {
    /// A control store.
    Control,
    /// This node.
    Node(u64),
}

/// The configuration of connections from now on.
#[derive(Debug)]
struct Live {
    anchors: Anchors,
    shown: CertificateDer<'static>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// TLS with this identity.
    ///
    /// # Errors
    /// `Certificate` if it does not fit its key or its authority.
    pub fn new(identity: &Identity) -> Result<Tls, IdentityError> {
        Ok(Tls(Arc::new(RwLock::new(Live::new(identity)?))))
    }

    /// Uses another certificate of the same authority, or of its successor, in new connections; those that
    /// are open go on.
    ///
    /// # Errors
    /// `Certificate` if it does not fit its key, or is another authority's.
    pub fn replace(&self, identity: &Identity) -> Result<(), IdentityError> {
        let next = Live::new(identity)?;
        let mut live = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !next.anchors.include(live.anchors.hash()) && !live.anchors.include(next.anchors.hash()) {
            return Err(IdentityError::certificate("it is another authority's"));
        }
        *live = next;
        Ok(())
    }

    /// The configuration of connections that this process opens.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.live().client)
    }

    /// The configuration of connections that it accepts.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.live().server)
    }

    /// The subject of the certificate that is shown now.
    #[must_use]
    pub fn subject(&self) -> Option<Subject> {
        subject_of(Some(std::slice::from_ref(&self.live().shown)))
    }

    /// The authorities that are believed in now.
    #[must_use]
    pub fn anchors(&self) -> Anchors {
        self.live().anchors.clone()
    }

    fn live(&self) -> RwLockReadGuard<'_, Live> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn new(identity: &Identity) -> Result<Live, IdentityError> {
        let anchors = identity.anchors.clone();
        let shown = identity.certificate.clone();
        let chain = std::iter::once(shown.clone()).chain(anchors.chain()).collect();
        let key = CertifiedKey::from_der(chain, identity.key(), &provider());
        let own = Arc::new(SingleCertAndKey::from(key.map_err(IdentityError::certificate)?));
        let roots = Arc::new(anchors.roots()?);
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(IdentityError::certificate)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_cert_resolver(Arc::clone(&own) as Arc<dyn ResolvesClientCert>);
        client.resumption = Resumption::disabled();
        // Whoever joins has no certificate yet; the proof that follows lets it ask for one and nothing else.
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .allow_unauthenticated()
            .build()
            .map_err(IdentityError::certificate)?;
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(IdentityError::certificate)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(own);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Live { anchors, shown, client: Arc::new(client), server: Arc::new(server) })
    }
}

impl Called {
    /// The name that the answering certificate must have.
    ///
    /// # Errors
    /// None in fact: these names are DNS names.
    pub fn server_name(self) -> Result<ServerName<'static>, IdentityError> {
        let name = match self {
            Called::Control => CONTROL_NAME.to_owned(),
            Called::Node(node) => node_name(node),
        };
        ServerName::try_from(name).map_err(IdentityError::certificate)
    }
}

/// The configuration of one who joins: it has no certificate, and believes only the authority of this hash.
///
/// # Errors
/// `Certificate`.
pub fn pinned(authority: AuthorityHash) -> Result<Arc<ClientConfig>, IdentityError> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(IdentityError::certificate)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { authority, provider: provider() }))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The subject of the first of these certificates, which were verified; none without any.
#[must_use]
pub fn subject_of(certificates: Option<&[CertificateDer<'_>]>) -> Option<Subject> {
    let certificate = webpki::EndEntityCert::try_from(certificates?.first()?).ok()?;
    Subject::from_names(certificate.valid_dns_names())
}

/// A key that both ends of a connection have and nobody else: a proof with it holds for this connection only.
///
/// # Errors
/// `Certificate` before the handshake is over.
pub fn proof_key<D>(connection: &ConnectionCommon<D>) -> Result<[u8; 32], IdentityError> {
    connection.export_keying_material([0; 32], PROOF_LABEL, None).map_err(IdentityError::certificate)
}

/// Believes a control store that shows the certificate of a known hash and follows from it.
#[derive(Debug)]
struct Pinned {
    authority: AuthorityHash,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority =
            others.iter().find(|other| AuthorityHash::of(other) == self.authority).ok_or(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(certificate, others, server_name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
