//! Parts of records: numbers, strings of bytes, references and values, written and read.

use super::{BadRecord, REF_BYTES, Token, ValueView};
use tharsis_types::{Extent, ObjectId, RefId, TaskId};

const VALUE_INLINE: u8 = 0;
const VALUE_LOCAL: u8 = 1;
const VALUE_READY: u8 = 2;
const VALUE_FAILED: u8 = 3;

/// Appends a reference in its packed form.
pub fn reference(out: &mut Vec<u8>, reference: &RefId) {
    out.extend_from_slice(&reference.to_bytes());
}

pub(super) fn put_u32(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_le_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

/// Lengths fit 32 bits: the largest record is far below 4 GiB, and the ring refuses larger ones.
pub(super) fn put_len(out: &mut Vec<u8>, len: usize) {
    put_u32(out, u32::try_from(len).unwrap_or(u32::MAX));
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(super) fn put_extent(out: &mut Vec<u8>, extent: &Extent) {
    put_u64(out, extent.offset);
    put_u64(out, extent.len);
}

pub(super) fn put_token_ref(out: &mut Vec<u8>, kind: u8, token: Token, reference: &RefId) {
    out.push(kind);
    put_u64(out, token);
    self::reference(out, reference);
}

pub(super) fn put_value(out: &mut Vec<u8>, value: &ValueView<'_>) {
    match value {
        ValueView::Inline(bytes) => {
            out.push(VALUE_INLINE);
            put_bytes(out, bytes);
        }
        ValueView::Local(extent) => {
            out.push(VALUE_LOCAL);
            put_extent(out, extent);
        }
        ValueView::Ready { len } => {
            out.push(VALUE_READY);
            put_u64(out, *len);
        }
        ValueView::Failed(failure) => {
            out.push(VALUE_FAILED);
            put_bytes(out, failure);
        }
    }
}

/// Reads a packed reference from a chunk that `chunks_exact` or [`Reader::take`] has sized.
pub(super) fn read_ref(bytes: &[u8]) -> RefId {
    let mut whole = [0; REF_BYTES];
    whole.copy_from_slice(&bytes[..REF_BYTES]);
    RefId::from_bytes(whole)
}

/// Reads a record from its front, never beyond its end.
pub(super) struct Reader<'a> {
    record: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(record: &'a [u8]) -> Self {
        Self { record, at: 0 }
    }

    pub(super) fn bad(&self, problem: &'static str) -> BadRecord {
        BadRecord { kind: self.record.first().copied().unwrap_or(0), len: self.record.len(), problem }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], BadRecord> {
        let end = self.at.checked_add(len).ok_or_else(|| self.bad("a length overflows"))?;
        let bytes = self.record.get(self.at..end).ok_or_else(|| self.bad("the record is cut"))?;
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self) -> Result<u8, BadRecord> {
        self.array::<1>().map(|[b]| b)
    }

    pub(super) fn u32(&mut self) -> Result<u32, BadRecord> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, BadRecord> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], BadRecord> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, BadRecord> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("text is not UTF-8"))
    }

    pub(super) fn task(&mut self) -> Result<TaskId, BadRecord> {
        self.array().map(TaskId::from_bytes)
    }

    pub(super) fn object(&mut self) -> Result<ObjectId, BadRecord> {
        self.array().map(ObjectId::from_bytes)
    }

    pub(super) fn reference(&mut self) -> Result<RefId, BadRecord> {
        self.array().map(RefId::from_bytes)
    }

    pub(super) fn extent(&mut self) -> Result<Extent, BadRecord> {
        Ok(Extent { offset: self.u64()?, len: self.u64()? })
    }

    pub(super) fn value(&mut self) -> Result<ValueView<'a>, BadRecord> {
        match self.u8()? {
            VALUE_INLINE => self.bytes().map(ValueView::Inline),
            VALUE_LOCAL => self.extent().map(ValueView::Local),
            VALUE_READY => self.u64().map(|len| ValueView::Ready { len }),
            VALUE_FAILED => self.bytes().map(ValueView::Failed),
            _ => Err(self.bad("unknown kind of value")),
        }
    }

    pub(super) fn argument(&mut self) -> Result<(u16, RefId, ValueView<'a>), BadRecord> {
        Ok((self.array().map(u16::from_le_bytes)?, self.reference()?, self.value()?))
    }

    pub(super) fn finish<T>(&self, decoded: T) -> Result<T, BadRecord> {
        if self.at == self.record.len() { Ok(decoded) } else { Err(self.bad("bytes are left over")) }
    }
}
