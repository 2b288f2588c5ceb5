//! Arrow record batches.

use super::Blob;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use serde::de::{self, Deserializer};
use serde::ser;
use serde::{Deserialize, Serialize, Serializer};
use std::ops::Deref;

/// An Arrow record batch whose columns are mapped, not copied, when it is read from the store.
///
/// It is encoded in Arrow's IPC format and dereferences to the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch(RecordBatch);

impl Batch {
    /// The Arrow batch itself; its buffers stay in the store.
    #[must_use]
    pub fn into_inner(self) -> RecordBatch {
        self.0
    }
}

impl From<RecordBatch> for Batch {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

impl From<Batch> for RecordBatch {
    fn from(batch: Batch) -> Self {
        batch.0
    }
}

impl Deref for Batch {
    type Target = RecordBatch;

    fn deref(&self) -> &RecordBatch {
        &self.0
    }
}

impl Serialize for Batch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = write(&self.0).map_err(ser::Error::custom)?;
        Blob::from(bytes).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Blob::deserialize(deserializer)?.into_bytes();
        read(&mut Buffer::from(bytes)).map_err(de::Error::custom)
    }
}

fn write(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Reads a stream of one batch; the columns are slices of `bytes`.
fn read(bytes: &mut Buffer) -> Result<Batch, ArrowError> {
    let mut decoder = StreamDecoder::new();
    let batch = decoder.decode(bytes)?;
    match batch {
        Some(batch) => Ok(Batch(batch)),
        None => Err(ArrowError::IpcError("a stream without a batch".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};
    use std::sync::Arc;

    fn sample() -> RecordBatch {
        let numbers = Arc::new(Int64Array::from_iter_values(0..1000));
        let names = Arc::new(StringArray::from_iter_values((0..1000).map(|n| n.to_string())));
        RecordBatch::try_from_iter([("n", numbers as _), ("name", names as _)]).unwrap()
    }

    #[test]
    fn a_batch_is_read_where_it_lies() {
        let bytes = bytes::Bytes::from(write(&sample()).unwrap());
        let range = bytes.as_ptr().addr()..bytes.as_ptr().addr() + bytes.len();
        let batch = read(&mut Buffer::from(bytes)).unwrap();
        assert_eq!(*batch, sample());
        let column = batch.column(0).to_data().buffers()[0].as_ptr().addr();
        assert!(range.contains(&column), "the column was copied");
    }

    #[test]
    fn cut_bytes_are_refused() {
        let bytes = write(&sample()).unwrap();
        for end in (0..bytes.len() - 16).step_by(97) {
            assert!(read(&mut Buffer::from(bytes[..end].to_vec())).is_err(), "{end}");
        }
    }
}
