//! Encoding and decoding of values: serde and postcard in band, large parts and references beside it.
//!
//! While a value is encoded for the store or for a task, a *context* is active on the thread. Zero-copy kinds
//! ([`crate::Blob`], [`crate::Array`], `Batch`) hand their bytes to it and leave an index in band;
//! [`crate::ObjectRef`] registers its id with it, so that the node can count the reference. While a value is
//! decoded, the context gives the buffers back (slices of the mapped object, without a copy) and makes live
//! references of the ids. Contexts nest: a `Serialize` implementation may itself put or get.
//!
//! Outside a context the zero-copy kinds are plain bytes, and a reference cannot be encoded: the node could
//! not count it, and could free its object.

use crate::error::{Error, Result};
use crate::handles::{self, Connection, Handle};
use crate::memory::Mapped;
use crate::reason;
use bytes::Bytes;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tharsis_types::RefId;
use tharsis_types::payload::{Frame, FrameLayout, PayloadKind};

/// Smaller buffers are encoded in band: a copy is cheaper than a table entry and 64-byte alignment.
pub(crate) const BUFFER_BYTES_MIN: usize = 1 << 10;

/// Error text of a reference that cannot be encoded.
pub(crate) const REFUSED_REFERENCE: &str =
    "references can only travel in task arguments, results and put values";

/// An encoded value: in-band bytes, and the buffers and references beside them.
#[derive(Default)]
pub(crate) struct Encoded {
    pub(crate) in_band: Vec<u8>,
    pub(crate) buffers: Vec<Bytes>,
    pub(crate) nested: Vec<RefId>,
    /// Keeps the nested references alive until the record that names them is sent.
    pub(crate) keep: Vec<Arc<Handle>>,
    /// Things that belong to whoever decodes it, once it is sent.
    pub(crate) given: Vec<Gift>,
}

/// The place of something that has one owner at a time.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts(Arc<AtomicU8>);

impl Whereabouts {
    const HERE: u8 = 0;
    /// It is encoded, and whether it goes is not yet known.
    const LEAVING: u8 = 1;
    const GONE: u8 = 2;

    /// Whether it belongs to this process: it was not encoded.
    pub(crate) fn is_here(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::HERE
    }

    /// Whether it belongs to somebody else for good: what it was encoded in was sent.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::GONE
    }

    /// Gives it away with the active encoding, once that is sent. False if it is given away already.
    pub(crate) fn leave(&self) -> bool {
        if self.0.compare_exchange(Self::HERE, Self::LEAVING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        let gift = Gift(Arc::clone(&self.0));
        // Without an encoding it goes nowhere.
        SINK.with_borrow_mut(|sink| sink.as_mut().map(|sink| sink.given.push(gift)));
        true
    }
}

/// Something in an encoded value that has one owner at a time. It stays where it is unless it is sent.
pub(crate) struct Gift(Arc<AtomicU8>);

impl Gift {
    /// Notes that these are sent.
    pub(crate) fn send_all(gifts: &mut Vec<Self>) {
        gifts.drain(..).for_each(|gift| gift.0.store(Whereabouts::GONE, Ordering::Relaxed));
    }
}

impl Drop for Gift {
    fn drop(&mut self) {
        let (leaving, here) = (Whereabouts::LEAVING, Whereabouts::HERE);
        // It has gone if this fails.
        let _ = self.0.compare_exchange(leaving, here, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Encoded {
    /// Clears it, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.given.clear();
        self.in_band.clear();
        self.buffers.clear();
        self.nested.clear();
        handles::drop_all(&mut self.keep);
    }

    /// Layout of the frame of this value.
    pub(crate) fn layout(&self) -> Result<FrameLayout> {
        FrameLayout::new(PayloadKind::Serde, 0, self.in_band.len(), self.buffers.iter().map(Bytes::len))
            .map_err(|bad| Error::argument(bad.to_string()))
    }

    /// Appends one value.
    pub(crate) fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let own = Sink {
            buffers: std::mem::take(&mut self.buffers),
            nested: std::mem::take(&mut self.nested),
            keep: std::mem::take(&mut self.keep),
            given: std::mem::take(&mut self.given),
        };
        let given = own.given.len();
        let outer = SINK.with(|sink| sink.borrow_mut().replace(own));
        let start = self.in_band.len();
        let result = value.serialize(&mut postcard::Serializer { output: Tail(&mut self.in_band) });
        // The reason is found while the context is active, so that references can still be encoded.
        let take_back =
            || SINK.with_borrow_mut(|sink| sink.as_mut().map(|sink| sink.given.split_off(given)).map(drop));
        let result = result.map_err(|error| {
            take_back();
            let reason = reason::of(value).unwrap_or_else(|| error.to_string());
            take_back();
            reason
        });
        if let Some(own) = SINK.with(|sink| std::mem::replace(&mut *sink.borrow_mut(), outer)) {
            (self.buffers, self.nested, self.keep) = (own.buffers, own.nested, own.keep);
            self.given = own.given;
        }
        result.map_err(|error| {
            self.in_band.truncate(start);
            Error::argument(format!("a {} cannot be encoded: {error}", name_of::<T>()))
        })
    }
}

/// Buffers and references of the value that is being encoded.
struct Sink {
    buffers: Vec<Bytes>,
    nested: Vec<RefId>,
    keep: Vec<Arc<Handle>>,
    given: Vec<Gift>,
}

/// Decodes consecutive values from a frame.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    in_band: Range<usize>,
    source: Source,
}

/// The bytes of a value that is to be decoded.
#[derive(Clone)]
pub(crate) enum Payload {
    /// It was in a record.
    Inline(Box<[u8]>),
    /// It lies in the arena.
    Mapped(Mapped),
}

impl Payload {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Mapped(mapped) => mapped.as_ref(),
        }
    }
}

/// Context of decoding, used by the zero-copy kinds and references.
#[derive(Default)]
struct Source {
    whole: Bytes,
    buffers: Vec<Range<usize>>,
    connection: Option<Arc<Connection>>,
    /// Whether the node has yet to be told of decoded references.
    holds: bool,
}

thread_local! {
    static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Appends to a vector, faster than an iterator of bytes.
struct Tail<'a>(&'a mut Vec<u8>);

impl Flavor for Tail<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl<'a> Decoder<'a> {
    /// Checks the frame and prepares to decode from it.
    pub(crate) fn new(connection: Option<Arc<Connection>>, payload: &'a Payload) -> Result<Self> {
        let bytes = payload.bytes();
        let frame = Frame::parse(bytes).map_err(|bad| Error::corrupt(bad.to_string()))?;
        if frame.kind() != PayloadKind::Serde {
            return Err(Error::corrupt(format!("expected an encoded value, found {:?}", frame.kind())));
        }
        frame.verify().map_err(|bad| Error::corrupt(bad.to_string()))?;
        let buffers: Vec<_> = (0..frame.buffer_count()).filter_map(|i| frame.buffer_range(i)).collect();
        let start = frame.in_band().as_ptr().addr() - bytes.as_ptr().addr();
        let in_band = start..start + frame.in_band().len();
        // Only buffers are ever taken from it.
        let whole = match payload {
            _ if buffers.is_empty() => Bytes::new(),
            Payload::Mapped(mapped) => Bytes::from_owner(mapped.clone()),
            Payload::Inline(bytes) => Bytes::copy_from_slice(bytes),
        };
        Ok(Self { bytes, in_band, source: Source { whole, buffers, connection, holds: false } })
    }

    /// Decodes the next value.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let in_band = self.bytes.get(self.in_band.clone()).unwrap_or_default();
        let (result, left) = self.source.lend(|| decode_prefix(in_band));
        self.in_band.start = self.in_band.end - left;
        result
    }

    /// Bytes that were not decoded yet.
    pub(crate) fn left(&self) -> usize {
        self.in_band.len()
    }
}

impl Source {
    /// Runs `decode` with this source active on the thread.
    fn lend<R>(&mut self, decode: impl FnOnce() -> R) -> R {
        let own = std::mem::take(self);
        let outer = SOURCE.with(|source| source.borrow_mut().replace(own));
        let result = decode();
        if let Some(own) = SOURCE.with(|source| std::mem::replace(&mut *source.borrow_mut(), outer)) {
            *self = own;
        }
        if let Some(connection) = self.connection.as_ref().filter(|_| std::mem::take(&mut self.holds)) {
            connection.link.flush();
        }
        result
    }
}

/// Decodes the only value of a frame.
pub(crate) fn decode<T: DeserializeOwned>(
    connection: Option<&Arc<Connection>>,
    payload: &Payload,
) -> Result<T> {
    let mut decoder = Decoder::new(connection.cloned(), payload)?;
    let value = decoder.next()?;
    match decoder.left() {
        0 => Ok(value),
        left => Err(Error::corrupt(format!("{left} bytes are left over after a {}", name_of::<T>()))),
    }
}

fn decode_prefix<T: DeserializeOwned>(in_band: &[u8]) -> (Result<T>, usize) {
    let mut deserializer = postcard::Deserializer::from_bytes(in_band);
    match T::deserialize(&mut deserializer) {
        Ok(value) => {
            let left = deserializer.finalize().map_or(0, <[u8]>::len);
            (Ok(value), left)
        }
        Err(error) => (
            Err(Error::corrupt(format!("bytes do not decode to {}: {error}", name_of::<T>()))),
            in_band.len(),
        ),
    }
}

fn name_of<T: ?Sized>() -> &'static str {
    std::any::type_name::<T>()
}

/// Hands a buffer to the active encoding; `None` if there is none or the buffer is too small.
pub(crate) fn offer_buffer(bytes: &Bytes) -> Option<u32> {
    if bytes.len() < BUFFER_BYTES_MIN {
        return None;
    }
    SINK.with(|sink| {
        let mut sink = sink.borrow_mut();
        let sink = sink.as_mut()?;
        let index = u32::try_from(sink.buffers.len()).ok()?;
        sink.buffers.push(bytes.clone());
        Some(index)
    })
}

/// A buffer of the value that is being decoded, without a copy.
pub(crate) fn take_buffer(index: u32) -> Option<Bytes> {
    SOURCE.with(|source| {
        let source = source.borrow();
        let source = source.as_ref()?;
        let range = source.buffers.get(index as usize)?.clone();
        Some(source.whole.slice(range))
    })
}

/// Registers a reference with the active encoding; false if there is none.
pub(crate) fn offer_reference(handle: &Arc<Handle>) -> bool {
    SINK.with(|sink| match sink.borrow_mut().as_mut() {
        Some(sink) => {
            sink.nested.push(handle.reference());
            sink.keep.push(Arc::clone(handle));
            true
        }
        None => false,
    })
}

/// Makes a live reference from a decoded id; `None` outside a context.
pub(crate) fn adopt_reference(reference: RefId) -> Option<Arc<Handle>> {
    let connection = SOURCE.with_borrow_mut(|source| {
        let source = source.as_mut()?;
        source.holds = true;
        source.connection.clone()
    })?;
    Some(connection.hold(reference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Serializer, ser};

    struct Owned(Whereabouts);

    impl Serialize for Owned {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if self.0.leave() { serializer.serialize_unit() } else { Err(ser::Error::custom("it is gone")) }
        }
    }

    struct Bad;

    impl Serialize for Bad {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(ser::Error::custom("it is bad"))
        }
    }

    #[test]
    fn what_has_one_owner_goes_when_it_is_sent_and_not_before() {
        let owned = Owned(Whereabouts::default());
        let mut encoded = Encoded::default();
        let error = encoded.push(&(&owned, Bad)).unwrap_err().to_string();
        assert!(error.contains("it is bad"), "{error}");
        assert!(owned.0.is_here());
        let error = encoded.push(&(&owned, &owned)).unwrap_err().to_string();
        assert!(error.contains("it is gone") && owned.0.is_here(), "twice in a value: {error}");
        encoded.push(&owned).unwrap();
        assert!(!owned.0.is_here());
        assert!(encoded.push(&(1, Bad)).is_err(), "another argument of the call");
        encoded.clear();
        assert!(owned.0.is_here(), "the call was not made");
        encoded.push(&owned).unwrap();
        Gift::send_all(&mut encoded.given);
        encoded.clear();
        assert!(!owned.0.is_here() && encoded.push(&owned).is_err());
    }
}
