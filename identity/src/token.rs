//! Tokens: `th1.<number>.<secret>.<hash of the authority's certificate>`, all in hexadecimal.

use crate::IdentityError;
use crate::private::random;
use crate::subject::number;
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "th1";
const SECRET_BYTES: usize = 16;

/// The blake3 hash of an authority's certificate. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthorityHash(blake3::Hash);

/// Admits a machine to a cluster, until it expires or is revoked. Its text is a secret; `Debug` does not show
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(crate) number: u64,
    pub(crate) secret: [u8; SECRET_BYTES],
    pub(crate) authority: AuthorityHash,
}

impl AuthorityHash {
    /// The hash of a certificate.
    #[must_use]
    pub fn of(certificate: &[u8]) -> AuthorityHash {
        AuthorityHash(blake3::hash(certificate))
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        *self.0.as_bytes()
    }

    /// A short name of the authority, for folders.
    pub(crate) fn short(self) -> String {
        self.0.to_hex()[..16].to_owned()
    }
}

impl Token {
    pub(crate) fn random(authority: AuthorityHash) -> Result<Token, IdentityError> {
        Ok(Token { number: u64::from_le_bytes(random()?), secret: random()?, authority })
    }

    /// The hash of the certificate that the head must show.
    #[must_use]
    pub fn authority(&self) -> AuthorityHash {
        self.authority
    }

    /// Hash of the secret, which the authority keeps.
    pub(crate) fn secret_hash(&self) -> blake3::Hash {
        blake3::derive_key("tharsis 2026 join token", &self.secret).into()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}.{:016x}.", self.number)?;
        self.secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ".{}", self.authority.0.to_hex())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:016x}, secret not shown)", self.number)
    }
}

impl FromStr for Token {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Token, IdentityError> {
        use IdentityError::MalformedToken;
        if text.chars().any(char::is_whitespace) {
            return Err(MalformedToken("it has spaces or line breaks in it"));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let &[prefix, name, secret, authority] = parts.as_slice() else {
            return Err(MalformedToken("it does not have four parts"));
        };
        if prefix != PREFIX {
            return Err(MalformedToken("it does not begin with th1"));
        }
        let halves = secret.split_at_checked(SECRET_BYTES).ok_or(MalformedToken("it is cut off"))?;
        let both = (number(halves.0), number(halves.1));
        let (Some(number), (Some(first), Some(second))) = (number(name), both) else {
            return Err(MalformedToken("it is cut off, or has other characters than hexadecimal digits"));
        };
        let hash = blake3::Hash::from_hex(authority)
            .map_err(|_| MalformedToken("it is cut off, or has other characters than hexadecimal digits"))?;
        let mut secret = [0; SECRET_BYTES];
        secret[..8].copy_from_slice(&first.to_be_bytes());
        secret[8..].copy_from_slice(&second.to_be_bytes());
        Ok(Token { number, secret, authority: AuthorityHash(hash) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text_and_debug_does_not_show_it() {
        let token = Token::random(AuthorityHash::of(b"certificate")).unwrap();
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        let secret = token.to_string().split('.').nth(2).unwrap().to_owned();
        assert!(!format!("{token:?}").contains(&secret));
    }

    #[test]
    fn a_damaged_token_is_malformed_wherever_it_is_cut() {
        let text = Token::random(AuthorityHash::of(b"certificate")).unwrap().to_string();
        let cut = (0..text.len()).map(|len| text[..len].to_owned());
        let wrong =
            [format!(" {text}"), format!("{text}\n"), format!("th2{}", &text[3..]), text.replace('.', "-")];
        for bad in cut.chain(wrong) {
            assert!(matches!(bad.parse::<Token>(), Err(IdentityError::MalformedToken(_))), "{bad}");
        }
    }
}
