//! Lists inside records, packed one item after the other; a view reads its items where they lie.

use super::bytes::{Reader, read_ref};
use super::{BadRecord, DEPENDENCY_BYTES, NODE_BYTES, REF_BYTES, TOKEN_BYTES, Token, ValueView};
use tharsis_types::task::Dependency;
use tharsis_types::{NodeId, RefId};

/// A packed list of references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefsView<'a>(pub(super) &'a [u8]);

/// A packed list of dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependenciesView<'a>(pub(super) &'a [u8]);

/// A packed list of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokensView<'a>(pub(super) &'a [u8]);

/// A packed list of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodesView<'a>(pub(super) &'a [u8]);

/// A packed list of run slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsView<'a>(pub(super) &'a [u8]);

/// The outputs of a finished task: a sequence of (value, nested references).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputsView<'a> {
    pub(super) count: u32,
    pub(super) bytes: &'a [u8],
}

/// The values of a task's by-reference parameters: a sequence of (parameter, reference, value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentsView<'a> {
    pub(super) count: u32,
    pub(super) bytes: &'a [u8],
}

impl<'a> RefsView<'a> {
    /// A view of packed references.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one reference.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, REF_BYTES).map(Self)
    }

    /// Iterates over the references, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RefId> + use<'a> {
        self.0.chunks_exact(REF_BYTES).map(read_ref)
    }

    /// Number of items in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / REF_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> DependenciesView<'a> {
    /// A view of packed dependencies.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one dependency.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, DEPENDENCY_BYTES).map(Self)
    }

    /// Iterates over the dependencies, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dependency> + use<'a> {
        self.0.chunks_exact(DEPENDENCY_BYTES).map(|bytes| Dependency {
            reference: read_ref(&bytes[..REF_BYTES]),
            parameter: u16::from_le_bytes([bytes[REF_BYTES], bytes[REF_BYTES + 1]]),
        })
    }

    /// Number of items in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / DEPENDENCY_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> NodesView<'a> {
    /// A view of packed nodes.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one id.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, NODE_BYTES).map(Self)
    }

    /// Iterates over the nodes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + use<'a> {
        self.0.as_chunks::<NODE_BYTES>().0.iter().map(|bytes| NodeId(u64::from_le_bytes(*bytes)))
    }
}

impl<'a> TokensView<'a> {
    /// A view of packed little-endian tokens.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one token.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, TOKEN_BYTES).map(Self)
    }

    /// Iterates over the tokens, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Token> + use<'a> {
        self.0
            .chunks_exact(TOKEN_BYTES)
            .map(|b| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
    }

    /// Number of items in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / TOKEN_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> SlotsView<'a> {
    /// A view of packed little-endian slots.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one slot.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, 4).map(Self)
    }

    /// Iterates over the slots, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.0.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
}

impl<'a> OutputsView<'a> {
    /// A view of `count` outputs packed by [`pack::output`](super::pack::output).
    #[must_use]
    pub fn new(count: u32, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// Number of items in the list.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The outputs; ends early with an error at the first one that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = Result<(ValueView<'a>, RefsView<'a>), BadRecord>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut left = self.count;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let item = reader.value().and_then(|value| Ok((value, RefsView::new(reader.bytes()?)?)));
            if item.is_err() {
                left = 0;
            }
            Some(item)
        })
    }
}

impl<'a> ArgumentsView<'a> {
    /// A view of `count` arguments packed by [`pack::argument`](super::pack::argument).
    #[must_use]
    pub fn new(count: u32, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// Number of items in the list.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The arguments; ends early with an error at the first one that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u16, RefId, ValueView<'a>), BadRecord>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut left = self.count;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let item = reader.argument();
            if item.is_err() {
                left = 0;
            }
            Some(item)
        })
    }
}

pub(super) fn packed(bytes: &[u8], each: usize) -> Result<&[u8], BadRecord> {
    if bytes.len().is_multiple_of(each) {
        Ok(bytes)
    } else {
        Err(BadRecord { kind: 0, len: bytes.len(), problem: "a packed list is cut" })
    }
}
