//! Plain bytes.

use crate::codec;
use bytes::Bytes;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

/// Immutable bytes that are mapped, not copied, when they are read from the store.
///
/// Cloning is cheap; all clones share the same memory.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Blob(Bytes);

/// Encoded form of bytes: the bytes themselves, or the number of their buffer.
#[derive(Serialize)]
#[serde(rename = "Blob")]
enum Written<'a> {
    Inline(Plain<'a>),
    Buffer(u32),
}

#[derive(Deserialize)]
#[serde(rename = "Blob")]
enum Read {
    Inline(PlainRead),
    Buffer(u32),
}

struct Plain<'a>(&'a [u8]);

struct PlainRead(Bytes);

impl Blob {
    /// The bytes, sharing memory.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Bytes>> From<T> for Blob {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match codec::offer_buffer(&self.0) {
            Some(index) => Written::Buffer(index),
            None => Written::Inline(Plain(&self.0)),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Read::deserialize(deserializer)? {
            Read::Inline(PlainRead(bytes)) => Ok(Self(bytes)),
            Read::Buffer(index) => codec::take_buffer(index).map(Self).ok_or_else(|| {
                de::Error::custom(format_args!("there is no buffer {index} beside this value"))
            }),
        }
    }
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for PlainRead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = PlainRead;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<PlainRead, E> {
        Ok(PlainRead(Bytes::copy_from_slice(bytes)))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<PlainRead, E> {
        Ok(PlainRead(bytes.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<PlainRead, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(PlainRead(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_the_store_it_is_plain_data() {
        let blob = Blob::from(vec![7; 5000]);
        let text = serde_json::to_string(&blob).unwrap();
        assert_eq!(serde_json::from_str::<Blob>(&text).unwrap(), blob);
        let bytes = postcard::to_allocvec(&blob).unwrap();
        assert_eq!(postcard::from_bytes::<Blob>(&bytes).unwrap(), blob);
        assert!(postcard::from_bytes::<Blob>(&[1, 0]).is_err(), "a buffer index without buffers");
    }
}
