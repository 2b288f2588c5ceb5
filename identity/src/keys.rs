//! The key of an authority and its certificates, in one file, so that each change of them is seen whole.
//!
//! ```text
//! keys    the key (PKCS #8) and its certificate; while another authority is being replaced, the certificate
//!         of that one, and one that it made for the new key; before each of them its length
//! ```

use crate::{Anchors, Former, IdentityError};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use std::time::Duration;
use time::OffsetDateTime;

/// A certificate is good from so much before it was made: clocks of machines differ.
const CLOCK_SKEW: Duration = Duration::from_secs(300);
/// Lifetime of the certificate of an authority.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The key with which an authority signs, and the certificates by which it is believed.
pub(crate) struct Keys {
    /// In PKCS #8.
    key: Vec<u8>,
    pub(crate) anchors: Anchors,
}

impl Keys {
    /// A new key with its certificate.
    pub(crate) fn generate() -> Result<Keys, IdentityError> {
        let key = KeyPair::generate().map_err(IdentityError::certificate)?;
        let certificate = params(&key)?.self_signed(&key).map_err(IdentityError::certificate)?;
        let anchors = Anchors { current: certificate.der().to_vec(), former: None };
        Ok(Keys { key: key.serialize_der(), anchors })
    }

    /// A new key that whoever believes in this one believes in as well. The key of this one is not needed any
    /// more.
    pub(crate) fn successor(&self) -> Result<Keys, IdentityError> {
        let mut next = Keys::generate()?;
        let key = next.pair()?;
        let cross = params(&key)?.signed_by(&key, &self.issuer()?).map_err(IdentityError::certificate)?;
        let certificate = self.anchors.current.clone();
        next.anchors.former = Some(Former { certificate, cross: cross.der().to_vec() });
        Ok(next)
    }

    /// The same key, without the authority that it replaced.
    pub(crate) fn alone(mut self) -> Keys {
        self.anchors.former = None;
        self
    }

    /// The key, ready to sign.
    pub(crate) fn issuer(&self) -> Result<Issuer<'static, KeyPair>, IdentityError> {
        let key = self.pair()?;
        // The certificate was made of these parameters and this key, so the issuer is the one that it names.
        Ok(Issuer::new(params(&key)?, key))
    }

    fn pair(&self) -> Result<KeyPair, IdentityError> {
        KeyPair::try_from(self.key.as_slice()).map_err(IdentityError::certificate)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let former = self.anchors.former.iter().flat_map(|former| [&former.certificate, &former.cross]);
        let mut bytes = Vec::new();
        for part in [&self.key, &self.anchors.current].into_iter().chain(former) {
            // A key or certificate of P-256 has some hundred bytes.
            bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Result<Keys, IdentityError> {
        let mut parts = Vec::new();
        while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
            let (part, rest) =
                rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
            parts.push(part.to_vec());
            bytes = rest;
        }
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next(), bytes) {
            (Some(key), Some(current), None, None, None, []) => {
                Ok(Keys { key, anchors: Anchors { current, former: None } })
            }
            (Some(key), Some(current), Some(certificate), Some(cross), None, []) => {
                let former = Some(Former { certificate, cross });
                Ok(Keys { key, anchors: Anchors { current, former } })
            }
            _ => Err(damaged()),
        }
    }
}

/// The lifetime of a certificate that is made now: no longer than that of an authority, whose signature is
/// good for no longer.
pub(crate) fn valid_for(params: &mut CertificateParams, lifetime: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + lifetime.min(AUTHORITY_LIFETIME);
}

/// The certificate of an authority with this key. Its name is the key's: verifiers look authorities up by
/// their names, and there are two while one replaces the other.
fn params(key: &KeyPair) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(IdentityError::certificate)?;
    let name = format!("tharsis cluster {}", &blake3::hash(key.der_bytes()).to_hex()[..16]);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    valid_for(&mut params, AUTHORITY_LIFETIME);
    Ok(params)
}

fn damaged() -> IdentityError {
    IdentityError::certificate("the authority's file of keys is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_certificate_outlives_the_calendar() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        valid_for(&mut params, Duration::MAX);
        assert!(params.not_after <= OffsetDateTime::now_utc() + AUTHORITY_LIFETIME);
    }

    #[test]
    fn keys_survive_their_file_and_no_part_of_it_is_taken_for_the_whole() {
        let first = Keys::generate().unwrap();
        let second = first.successor().unwrap();
        assert_eq!(second.anchors.former.as_ref().unwrap().certificate, first.anchors.current);
        for keys in [first, second] {
            let bytes = keys.to_bytes();
            let read = Keys::from_bytes(&bytes).unwrap();
            assert_eq!((&read.key, &read.anchors), (&keys.key, &keys.anchors));
            let without_former = keys.alone().to_bytes().len();
            for len in (0..bytes.len()).filter(|len| *len != without_former) {
                assert!(Keys::from_bytes(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
            }
        }
    }
}
