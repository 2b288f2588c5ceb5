//! Bytes of a value or of arguments, kept in place if they are few.
//!
//! Most tasks take and give a few scalars. A heap block for each of them would cost a node more than all that
//! it decides about the task.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that need no heap block; with them the type has the size of a `Vec`.
const IN_PLACE_MAX: usize = 22;

/// Immutable bytes; cloning never copies more than a few words.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    InPlace { len: u8, bytes: [u8; IN_PLACE_MAX] },
    Shared(Arc<[u8]>),
}

impl From<&[u8]> for SmallBytes {
    fn from(from: &[u8]) -> Self {
        let mut bytes = [0; IN_PLACE_MAX];
        match bytes.get_mut(..from.len()) {
            Some(place) => {
                place.copy_from_slice(from);
                Self(Repr::InPlace { len: from.len() as u8, bytes })
            }
            None => Self(Repr::Shared(from.into())),
        }
    }
}

impl<const N: usize> From<[u8; N]> for SmallBytes {
    fn from(from: [u8; N]) -> Self {
        Self::from(from.as_slice())
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(from: Vec<u8>) -> Self {
        Self::from(from.as_slice())
    }
}

impl Default for SmallBytes {
    fn default() -> Self {
        Self::from([])
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::InPlace { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for SmallBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SmallBytes {}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_length_come_back() {
        for len in 0..100u8 {
            let bytes: Vec<u8> = (0..len).collect();
            let small = SmallBytes::from(bytes.as_slice());
            assert_eq!(*small, *bytes);
            assert_eq!(small, small.clone());
            assert_ne!(small, SmallBytes::from([&bytes[..], &[1]].concat()));
        }
        assert!(SmallBytes::default().is_empty());
    }

    #[test]
    fn it_is_no_larger_than_a_vec() {
        assert_eq!(size_of::<SmallBytes>(), size_of::<Vec<u8>>());
        assert_eq!(size_of::<Option<SmallBytes>>(), size_of::<Vec<u8>>());
    }
}
