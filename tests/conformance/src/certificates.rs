//! An authority that lives as long as a test, and certificates of it as PEM text.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};

/// Signs certificates for processes of this machine.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub certificate: String,
}

impl TestAuthority {
    /// A new one.
    ///
    /// # Panics
    /// If the system has no random numbers.
    #[must_use]
    pub fn make() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = params("the authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = pem("CERTIFICATE", params.self_signed(&key).expect("a certificate").der());
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// A certificate and its key for who has this name, as a server at a loopback address and as a client.
    ///
    /// # Panics
    /// As [`TestAuthority::make`].
    #[must_use]
    pub fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn pem(what: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {what}-----");
    // A line has 64 digits, which stand for 48 bytes.
    for line in bytes.chunks(48) {
        text.push('\n');
        for part in line.chunks(3) {
            let number = (0..3).fold(0, |number, at| number << 8 | u32::from(*part.get(at).unwrap_or(&0)));
            for digit in 0..4 {
                let at = number >> (18 - 6 * digit) & 63;
                text.push(if digit <= part.len() { char::from(DIGITS[at as usize]) } else { '=' });
            }
        }
    }
    text + &format!("\n-----END {what}-----\n")
}
