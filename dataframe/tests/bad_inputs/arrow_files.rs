//! Files of Arrow's IPC.

use crate::{Bad, CORRUPT, Expected, TOO_LARGE, UNSUPPORTED, check};
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, DictionaryArray, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, UnionArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, UnionFields};
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow::ipc::{
    Block, BodyCompression, CompressionType, Decimal, Footer, MetadataVersion, RecordBatch as BatchHeader,
    root_as_footer, root_as_message,
};
use std::fs;
use std::io::Cursor;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, Table, read_arrow};

const ROWS: usize = 4951;

const FILES: &[Bad] = &[
    Bad { name: "empty file", file: "t.arrow", make: Vec::new, expected: CORRUPT },
    Bad { name: "a text", file: "t.arrow", make: || b"n\n1\n2\n".repeat(9), expected: CORRUPT },
    Bad { name: "magic alone", file: "t.arrow", make: || b"ARROW1".to_vec(), expected: CORRUPT },
    Bad { name: "footer length negative", file: "t.arrow", make: || footer_length(-1), expected: CORRUPT },
    Bad {
        name: "footer length beyond file",
        file: "t.arrow",
        make: || footer_length(i32::MAX),
        expected: CORRUPT,
    },
    Bad {
        name: "footer length beyond begin",
        file: "t.arrow",
        make: || footer_length(1 << 20),
        expected: CORRUPT,
    },
    Bad {
        name: "flatbuffer with offset out of range",
        file: "t.arrow",
        make: || {
            let mut bytes = base();
            let begin = footer_begin(&bytes);
            bytes[begin..begin + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            bytes
        },
        expected: CORRUPT,
    },
    Bad { name: "schema with 100 001 fields", file: "t.arrow", make: wide, expected: TOO_LARGE },
    Bad {
        name: "type nested 100 levels",
        file: "t.arrow",
        make: || nested(100),
        // The verifier of flatbuffers has the same limit.
        expected: Expected::Error(&["ValueError", "MemoryError"]),
    },
    Bad { name: "buffer offset overflows", file: "t.arrow", make: || buffer(0, i64::MAX), expected: CORRUPT },
    Bad { name: "buffer length overflows", file: "t.arrow", make: || buffer(8, i64::MAX), expected: CORRUPT },
    Bad { name: "buffer offset negative", file: "t.arrow", make: || buffer(0, -8), expected: CORRUPT },
    Bad { name: "buffer shorter than rows need", file: "t.arrow", make: || buffer(8, 8), expected: CORRUPT },
    Bad { name: "negative row count", file: "t.arrow", make: || rows(-1), expected: CORRUPT },
    Bad { name: "huge row count", file: "t.arrow", make: || rows(i64::MAX), expected: CORRUPT },
    Bad { name: "negative length of a node", file: "t.arrow", make: || node(0, -1), expected: CORRUPT },
    Bad { name: "negative count of nulls", file: "t.arrow", make: || node(8, -1), expected: CORRUPT },
    Bad { name: "block length negative", file: "t.arrow", make: || block(16, -1), expected: CORRUPT },
    Bad { name: "block length huge", file: "t.arrow", make: || block(16, i64::MAX), expected: CORRUPT },
    Bad { name: "block offset beyond file", file: "t.arrow", make: || block(0, 1 << 40), expected: CORRUPT },
    Bad {
        name: "offsets not monotonic",
        file: "t.arrow",
        make: || patched(base(), &words(&[5, 10, 15]), &words(&[5, 3, 15])),
        expected: CORRUPT,
    },
    Bad {
        name: "offsets negative",
        file: "t.arrow",
        make: || patched(base(), &words(&[5, 10, 15]), &words(&[5, -10, 15])),
        expected: CORRUPT,
    },
    Bad {
        name: "invalid UTF-8",
        file: "t.arrow",
        make: || patched(base(), b"hellohello", b"hel\xffohello"),
        expected: CORRUPT,
    },
    Bad {
        name: "dictionary index out of range",
        file: "t.arrow",
        make: || patched(base(), &words(&[0, 1, 2, 0, 1, 2]), &words(&[0, 1, 99, 0, 1, 2])),
        expected: CORRUPT,
    },
    Bad {
        name: "dictionary batch missing",
        file: "t.arrow",
        make: || {
            let mut bytes = base();
            let at = with_footer(&bytes, |footer| place(&bytes, footer.dictionaries().unwrap().bytes()));
            bytes[at - 4..at].copy_from_slice(&0_u32.to_le_bytes());
            bytes
        },
        expected: CORRUPT,
    },
    Bad {
        name: "union type id not in children",
        file: "t.arrow",
        make: || patched(union(), &[0, 1, 0, 1, 0, 1, 0, 1], &[0, 1, 0, 9, 0, 1, 0, 1]),
        expected: CORRUPT,
    },
    Bad {
        name: "compressed body of a lying length",
        file: "t.arrow",
        make: || lying(CompressionType::LZ4_FRAME, 1 << 50),
        expected: CORRUPT,
    },
    Bad {
        name: "compressed body of a negative length",
        file: "t.arrow",
        make: || lying(CompressionType::ZSTD, -7),
        expected: CORRUPT,
    },
    Bad {
        name: "compressed body shorter than it says",
        file: "t.arrow",
        make: || lying(CompressionType::ZSTD, 80_000),
        expected: CORRUPT,
    },
    Bad {
        name: "LZ4 frame truncated",
        file: "t.arrow",
        make: || cut_frame(CompressionType::LZ4_FRAME),
        expected: CORRUPT,
    },
    Bad {
        name: "ZSTD frame truncated",
        file: "t.arrow",
        make: || cut_frame(CompressionType::ZSTD),
        expected: CORRUPT,
    },
    Bad { name: "unknown compression codec", file: "t.arrow", make: unknown_codec, expected: UNSUPPORTED },
    Bad {
        name: "stream cut in the middle of a batch",
        file: "t.arrow",
        make: || {
            let stream = stream();
            stream[..stream.len() * 2 / 3].to_vec()
        },
        expected: CORRUPT,
    },
    Bad {
        name: "a whole stream",
        file: "t.arrow",
        make: stream,
        expected: Expected::Rows(|table| assert_n(table, 3)),
    },
    Bad {
        name: "extension type with hostile metadata",
        file: "t.arrow",
        make: hostile,
        expected: Expected::Rows(|table| assert_n(table, 1)),
    },
    Bad { name: "decimal precision 0", file: "t.arrow", make: || decimal(0), expected: CORRUPT },
    Bad { name: "decimal precision 200", file: "t.arrow", make: || decimal(200), expected: CORRUPT },
    Bad {
        name: "decimal precision 2000",
        file: "t.arrow",
        make: || decimal(2000),
        // The library takes it for a number of one byte.
        expected: Expected::Caught(&["ValueError"]),
    },
    Bad {
        name: "time zone ../../etc/passwd",
        file: "t.arrow",
        make: || {
            let times = TimestampMicrosecondArray::from(vec![1]).with_timezone("../../etc/passwd");
            written(&[batch(vec![("n", Arc::new(times))])], None)
        },
        expected: CORRUPT,
    },
    Bad {
        name: "a sound file",
        file: "t.arrow",
        make: base,
        expected: Expected::Rows(|table| assert_n(table, 1)),
    },
];

#[test]
fn each_arrow_file_has_its_outcome() {
    check(FILES, read_arrow);
}

#[test]
fn slots_of_missing_values_are_empty_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.arrow").display().to_string();
    // A secret number that a step has left under a missing value.
    let secret = Int64Array::new(vec![0x5EC2E7, 7].into(), Some(vec![false, true].into()));
    let texts = StringArray::from(vec!["secret", "x"]);
    let texts =
        StringArray::new(texts.offsets().clone(), texts.values().clone(), Some(vec![false, true].into()));
    let rows = batch(vec![("n", Arc::new(secret)), ("t", Arc::new(texts))]);
    DataFrame::from_batches(rows.schema(), vec![rows]).to_arrow(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(
        !bytes.windows(3).any(|part| part == &0x5EC2E7_i64.to_le_bytes()[..3]),
        "the number is in the file"
    );
    assert!(!bytes.windows(6).any(|part| part == b"secret"), "the text is in the file");
    let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
    let read: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
    assert_eq!(read[0].column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [None, Some(7)]);
}

/// The numbers from 0 in a batch, so many times.
fn assert_n(table: &Table, batches: i64) {
    let expected: Vec<Option<i64>> = (0..batches).flat_map(|_| (0..ROWS as i64).map(Some)).collect();
    assert_eq!(table.column::<i64>("n").unwrap(), expected);
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn base_batch() -> RecordBatch {
    let keys = Int32Array::from_iter_values((0..ROWS as i32).map(|row| row % 3));
    let values: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    batch(vec![
        ("n", Arc::new(Int64Array::from_iter_values(0..ROWS as i64))),
        ("t", Arc::new(StringArray::from(vec!["hello"; ROWS]))),
        ("d", Arc::new(DictionaryArray::<Int32Type>::new(keys, values))),
    ])
}

pub fn written(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

/// A file of numbers, texts and words of a dictionary.
pub fn base() -> Vec<u8> {
    written(&[base_batch()], None)
}

/// A stream of three batches.
pub fn stream() -> Vec<u8> {
    let batch = base_batch();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    (0..3).for_each(|_| writer.write(&batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn footer_begin(bytes: &[u8]) -> usize {
    let end = bytes.len() - 10;
    end - i32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize
}

fn with_footer<T>(bytes: &[u8], step: impl FnOnce(Footer<'_>) -> T) -> T {
    step(root_as_footer(&bytes[footer_begin(bytes)..bytes.len() - 10]).unwrap())
}

/// The first block of a file, and the position of its description in the footer.
fn first_block(bytes: &[u8]) -> (Block, usize) {
    with_footer(bytes, |footer| {
        let blocks = footer.recordBatches().unwrap();
        (*blocks.get(0), place(bytes, blocks.bytes()))
    })
}

/// The position of a part of some bytes.
fn place(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

fn with_batch<T>(bytes: &[u8], step: impl FnOnce(BatchHeader<'_>) -> T) -> T {
    let (block, _) = first_block(bytes);
    let begin = block.offset() as usize + 8;
    let end = block.offset() as usize + block.metaDataLength() as usize;
    step(root_as_message(&bytes[begin..end]).unwrap().header_as_record_batch().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: i64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn footer_length(length: i32) -> Vec<u8> {
    let mut bytes = base();
    let at = bytes.len() - 10;
    bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// The values of the first column, whose buffer has another description.
fn buffer(offset: usize, value: i64) -> Vec<u8> {
    let mut bytes = base();
    // Before it is the buffer of missing values.
    let at = with_batch(&bytes, |batch| place(&bytes, batch.buffers().unwrap().bytes())) + 16 + offset;
    put(&mut bytes, at, value);
    bytes
}

fn node(offset: usize, value: i64) -> Vec<u8> {
    let mut bytes = base();
    let at = with_batch(&bytes, |batch| place(&bytes, batch.nodes().unwrap().bytes())) + offset;
    put(&mut bytes, at, value);
    bytes
}

fn rows(value: i64) -> Vec<u8> {
    let mut bytes = base();
    let at = with_batch(&bytes, |batch| {
        let field = batch._tab.vtable().get(BatchHeader::VT_LENGTH) as usize;
        place(&bytes, batch._tab.buf()) + batch._tab.loc() + field
    });
    put(&mut bytes, at, value);
    bytes
}

fn block(offset: usize, value: i64) -> Vec<u8> {
    let mut bytes = base();
    let (_, at) = first_block(&bytes);
    put(&mut bytes, at + offset, value);
    bytes
}

/// A file with the first place that has some bytes changed.
pub fn patched(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from).expect("the bytes are there");
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

fn words(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn wide() -> Vec<u8> {
    let fields: Vec<Field> = (0..100_001).map(|n| Field::new(n.to_string(), DataType::Int8, true)).collect();
    let mut writer = FileWriter::try_new(Vec::new(), &Schema::new(fields)).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn nested(levels: usize) -> Vec<u8> {
    let mut array: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    for _ in 0..levels {
        let field = Arc::new(Field::new("item", array.data_type().clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([1]);
        array = Arc::new(ListArray::new(field, offsets, array, None));
    }
    written(&[batch(vec![("n", array)])], None)
}

fn union() -> Vec<u8> {
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1; 64])), Arc::new(StringArray::from(vec!["x"; 64]))];
    let fields = [(0, Field::new("i", DataType::Int64, true)), (1, Field::new("t", DataType::Utf8, true))];
    let fields: UnionFields = fields.into_iter().map(|(id, field)| (id, Arc::new(field))).collect();
    let ids = (0..64).map(|row| row % 2).collect::<Vec<i8>>();
    let array = UnionArray::try_new(fields, ids.into(), None, children).unwrap();
    let schema = Schema::new(vec![Field::new("u", array.data_type().clone(), false)]);
    written(&[RecordBatch::try_new(Arc::new(schema), vec![Arc::new(array)]).unwrap()], None)
}

fn repeated() -> RecordBatch {
    batch(vec![("n", Arc::new(Int64Array::from(vec![7; ROWS])))])
}

/// A compressed file whose first buffer says that it has another length.
fn lying(compression: CompressionType, length: i64) -> Vec<u8> {
    let real = (ROWS * 8) as i64;
    patched(written(&[repeated()], Some(compression)), &real.to_le_bytes(), &length.to_le_bytes())
}

/// A compressed file with nothing after the begin of a frame.
fn cut_frame(compression: CompressionType) -> Vec<u8> {
    let mut bytes = written(&[base_batch()], Some(compression));
    let (block, _) = first_block(&bytes);
    let body = (block.offset() + i64::from(block.metaDataLength())) as usize;
    bytes[body + 24..body + block.bodyLength() as usize].fill(0);
    bytes
}

fn unknown_codec() -> Vec<u8> {
    let mut bytes = written(&[repeated()], Some(CompressionType::ZSTD));
    let at = with_batch(&bytes, |batch| {
        let table = batch.compression().unwrap()._tab;
        place(&bytes, table.buf()) + table.loc() + table.vtable().get(BodyCompression::VT_CODEC) as usize
    });
    assert_eq!(bytes[at], 1);
    bytes[at] = 77;
    bytes
}

fn hostile() -> Vec<u8> {
    let rows = base_batch();
    let about = [
        ("ARROW:extension:name".to_owned(), "arrow.py_extension_type".to_owned()),
        ("ARROW:extension:metadata".to_owned(), "cos\nsystem\n(S'touch /tmp/owned'\ntR.".to_owned()),
    ];
    let fields: Vec<Field> = rows
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_metadata(about.iter().cloned().collect()))
        .collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), rows.columns().to_vec()).unwrap();
    written(&[rows], None)
}

/// A file of decimal numbers with another precision in its schema.
fn decimal(precision: i32) -> Vec<u8> {
    let array = Decimal128Array::from(vec![1]).with_precision_and_scale(11, 2).unwrap();
    let mut bytes = written(&[batch(vec![("n", Arc::new(array))])], None);
    let at = with_footer(&bytes, |footer| {
        assert_eq!(footer.version(), MetadataVersion::V5);
        let field = footer.schema().unwrap().fields().unwrap().get(0);
        let table = field.type_as_decimal().unwrap()._tab;
        place(&bytes, table.buf()) + table.loc() + table.vtable().get(Decimal::VT_PRECISION) as usize
    });
    assert_eq!(bytes[at], 11);
    bytes[at..at + 4].copy_from_slice(&precision.to_le_bytes());
    bytes
}
