//! TLS 1.3 with certificates on both sides.
//!
//! There is no resumption: each connection shows certificates that hold now, and connections are few and
//! long.

use crate::subject::{CONTROL_NAME, node_name};
use crate::{AuthorityHash, Identity, IdentityError, Subject};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ConnectionCommon, DigitallySignedStruct, DistinguishedName,
    RootCertStore, ServerConfig, SignatureScheme,
};
use std::sync::{Arc, PoisonError, RwLock};

/// The label under which a proof's key is derived from a connection (RFC 5705).
const PROOF_LABEL: &[u8] = b"EXPERIMENTAL tharsis proof";

/// An identity in use. Clones share it: one that is replaced is replaced for all of them.
#[derive(Clone, Debug)]
pub struct Tls {
    live: Arc<Live>,
    authority: AuthorityHash,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// Whom a caller expects to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Called {
    /// A control store.
    Control,
    /// This node.
    Node(u64),
}

/// The certificate that is shown from now on.
#[derive(Debug)]
struct Live(RwLock<Arc<CertifiedKey>>);

impl Tls {
    /// TLS with this identity.
    ///
    /// # Errors
    /// `Certificate` if it does not fit its key or its authority.
    pub fn new(identity: &Identity) -> Result<Tls, IdentityError> {
        let live = Arc::new(Live(RwLock::new(certified(identity)?)));
        let mut roots = RootCertStore::empty();
        roots.add(identity.authority.clone()).map_err(IdentityError::certificate)?;
        let roots = Arc::new(roots);
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(IdentityError::certificate)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_cert_resolver(Arc::clone(&live) as Arc<dyn ResolvesClientCert>);
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
            .with_cert_resolver(Arc::clone(&live) as Arc<dyn ResolvesServerCert>);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let authority = identity.authority();
        Ok(Tls { live, authority, client: Arc::new(client), server: Arc::new(server) })
    }

    /// Shows another certificate of the same authority in new connections; those that are open go on.
    ///
    /// # Errors
    /// `Certificate` if it does not fit its key, or is another authority's.
    pub fn replace(&self, identity: &Identity) -> Result<(), IdentityError> {
        if identity.authority() != self.authority {
            return Err(IdentityError::certificate("it is another authority's"));
        }
        let certified = certified(identity)?;
        *self.live.0.write().unwrap_or_else(PoisonError::into_inner) = certified;
        Ok(())
    }

    /// The configuration of connections that this process opens.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The configuration of connections that it accepts.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// The subject of the certificate that is shown now.
    #[must_use]
    pub fn subject(&self) -> Option<Subject> {
        subject_of(Some(&self.live.now().cert))
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

impl Live {
    fn now(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesClientCert for Live {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Live {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

/// Believes a control store whose chain ends with the certificate of a known hash.
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
        verifier.verify_server_cert(certificate, &[], server_name, ocsp, now)
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

fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, IdentityError> {
    let chain = vec![identity.certificate.clone(), identity.authority.clone()];
    let key = CertifiedKey::from_der(chain, identity.key(), &provider());
    key.map(Arc::new).map_err(IdentityError::certificate)
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
