//! Files of Parquet.

use crate::arrow_files::{batch, patched};
use crate::{Bad, CORRUPT, Expected, UNSUPPORTED, check, collected};
use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::statistics::Statistics;
use prost::bytes::Bytes;
use std::fs;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, read_parquet, sql};

const ROWS: i64 = 1000;

const FILES: &[Bad] = &[
    Bad { name: "0 bytes", file: "t.parquet", make: Vec::new, expected: CORRUPT },
    Bad { name: "1 byte", file: "t.parquet", make: || base()[..1].to_vec(), expected: CORRUPT },
    Bad { name: "7 bytes", file: "t.parquet", make: || base()[..7].to_vec(), expected: CORRUPT },
    Bad { name: "8 bytes", file: "t.parquet", make: || b"PAR1PAR1".to_vec(), expected: CORRUPT },
    Bad { name: "11 bytes", file: "t.parquet", make: || b"PAR1\0\0\0PAR1".to_vec(), expected: CORRUPT },
    Bad { name: "12 bytes", file: "t.parquet", make: || b"PAR1\0\0\0\0PAR1".to_vec(), expected: CORRUPT },
    Bad {
        name: "magic at start only",
        file: "t.parquet",
        make: || {
            let bytes = base();
            bytes[..bytes.len() / 2].to_vec()
        },
        expected: CORRUPT,
    },
    Bad {
        name: "footer length > file size",
        file: "t.parquet",
        make: || footer_length(u32::MAX),
        expected: CORRUPT,
    },
    Bad { name: "footer length 2^30", file: "t.parquet", make: || footer_length(1 << 30), expected: CORRUPT },
    Bad {
        name: "encrypted footer",
        file: "t.parquet",
        make: || {
            let mut bytes = base();
            let end = bytes.len();
            bytes[..4].copy_from_slice(b"PARE");
            bytes[end - 4..].copy_from_slice(b"PARE");
            bytes
        },
        expected: UNSUPPORTED,
    },
    Bad {
        name: "thrift list length 2^31",
        file: "t.parquet",
        // The version, then a list of structures.
        make: || with_thrift(&[0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]),
        expected: CORRUPT,
    },
    Bad {
        name: "thrift nesting 10 000",
        file: "t.parquet",
        // A structure that nobody knows, in itself.
        make: || with_thrift(&[&[0x15, 0x02][..], &[0xfc].repeat(10_000)].concat()),
        expected: CORRUPT,
    },
    Bad {
        name: "row group num_rows differs from columns",
        file: "t.parquet",
        make: || with_group(|group| group.into_builder().set_num_rows(ROWS * 2).build().unwrap()),
        expected: CORRUPT,
    },
    Bad {
        name: "negative num_rows",
        file: "t.parquet",
        make: || with_group(|group| group.into_builder().set_num_rows(-5).build().unwrap()),
        expected: CORRUPT,
    },
    Bad {
        name: "dictionary index out of bounds",
        file: "t.parquet",
        make: || patched(words(), &packed(&[0, 1, 2, 0]).repeat(2), &packed(&[3, 3, 3, 3]).repeat(2)),
        expected: CORRUPT,
    },
    Bad { name: "repetition level > max", file: "t.parquet", make: repeated_too_often, expected: CORRUPT },
    Bad {
        name: "column chunk offset into another chunk",
        file: "t.parquet",
        make: || {
            with_columns(|columns| {
                let (page, dictionary) = (columns[1].data_page_offset(), columns[1].dictionary_page_offset());
                let moved = columns[0].clone().into_builder();
                let moved = moved.set_data_page_offset(page).set_dictionary_page_offset(dictionary);
                columns[0] = moved.build().unwrap();
            })
        },
        expected: CORRUPT,
    },
    Bad {
        name: "column chunk beyond the file",
        file: "t.parquet",
        make: || {
            with_columns(|columns| {
                let moved = columns[0].clone().into_builder();
                let moved = moved.set_data_page_offset(1 << 40).set_dictionary_page_offset(None);
                columns[0] = moved.build().unwrap();
            })
        },
        expected: CORRUPT,
    },
    Bad {
        name: "column chunk of 2^40 bytes",
        file: "t.parquet",
        make: || {
            with_columns(|columns| {
                let long = columns[0].clone().into_builder().set_total_compressed_size(1 << 40);
                columns[0] = long.build().unwrap();
            })
        },
        expected: CORRUPT,
    },
    Bad {
        name: "unsupported codec LZO",
        file: "t.parquet",
        make: || {
            with_columns(|columns| {
                let other = columns[0].clone().into_builder().set_compression(Compression::LZO);
                columns[0] = other.build().unwrap();
            })
        },
        expected: UNSUPPORTED,
    },
    Bad { name: "schema with duplicate column names", file: "t.parquet", make: twice, expected: UNSUPPORTED },
    Bad {
        name: "zero row groups",
        file: "t.parquet",
        make: || written(&[batch(columns()).slice(0, 0)], WriterProperties::default()),
        expected: Expected::Rows(|table| {
            assert_eq!((table.len(), table.columns()), (0, vec!["n".to_owned(), "t".to_owned()]));
        }),
    },
    Bad {
        name: "a sound file",
        file: "t.parquet",
        make: base,
        expected: Expected::Rows(|table| assert_eq!(table.len(), ROWS as usize)),
    },
];

#[test]
fn each_parquet_file_has_its_outcome() {
    check(FILES, read_parquet);
}

#[test]
fn statistics_whose_minimum_is_above_their_maximum_are_ignored() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet").display().to_string();
    let bytes = with_columns(|columns| {
        let swapped = Statistics::int64(Some(ROWS), Some(-1), None, Some(0), false);
        columns[0] = columns[0].clone().into_builder().set_statistics(swapped).build().unwrap();
    });
    fs::write(&path, bytes).unwrap();
    let found = sql("select n from t where n = 7", &[("t", &read_parquet(&path))]);
    assert_eq!(collected(&found).unwrap().column::<i64>("n").unwrap(), [Some(7)]);
}

#[test]
fn a_half_written_file_among_others_is_named() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let bytes = base();
    fs::write(path("1.parquet"), &bytes).unwrap();
    fs::write(path("2.parquet"), &bytes[..bytes.len() - 9]).unwrap();
    let error = read_parquet(&folder.path().display().to_string()).collect().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("2.parquet"), "{error}");
    // A file that its writer has not finished is not visible.
    fs::remove_file(path("2.parquet")).unwrap();
    fs::create_dir_all(path(".x.unfinished/attempts")).unwrap();
    fs::write(path(".x.unfinished/attempts/2.parquet"), &bytes[..20]).unwrap();
    assert_eq!(read_parquet(&folder.path().display().to_string()).len().unwrap(), ROWS as usize);
}

#[test]
fn files_with_other_columns_are_named_with_the_column() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, column: (&str, tharsis_dataframe::Column)| {
        let path = folder.path().join(name).display().to_string();
        DataFrame::from_columns([column]).to_parquet(&path).unwrap();
    };
    write("1.parquet", ("n", vec![1].into()));
    write("2.parquet", ("n", vec!["one"].into()));
    let error = read_parquet(&folder.path().display().to_string()).check().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("2.parquet") && error.to_string().contains("\"n\""), "{error}");
}

fn columns() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("n", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("t", Arc::new(StringArray::from_iter_values((0..ROWS).map(|n| format!("text {}", n % 7))))),
    ]
}

pub fn written(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// A file of numbers and texts.
pub fn base() -> Vec<u8> {
    written(&[batch(columns())], WriterProperties::default())
}

/// Words of a dictionary of three, without missing values: their indices are packed, two bits each.
fn words() -> Vec<u8> {
    let values = (0..ROWS).map(|n| ["one", "two", "three"][n as usize % 3]);
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(values));
    let schema = Schema::new(vec![Field::new("t", DataType::Utf8, false)]);
    let rows = RecordBatch::try_new(Arc::new(schema), vec![array]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    written(&[rows], properties)
}

/// Numbers of two bits in bytes: the pattern repeats after three bytes, this is its first.
fn packed(values: &[u8; 4]) -> Vec<u8> {
    let rest = |shift: u8| {
        let values: Vec<u8> = (0..4).map(|at| values[(at + usize::from(shift)) % 3]).collect();
        values.iter().rev().fold(0, |byte, value| (byte << 2) | value)
    };
    match values {
        [3, ..] => vec![0xff; 3],
        _ => vec![rest(0), rest(1), rest(2)],
    }
}

fn repeated_too_often() -> Vec<u8> {
    let lists = (0..ROWS).map(|n| Some(vec![Some(n)]));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .build();
    let bytes = written(&[batch(vec![("n", Arc::new(lists))])], properties);
    // The levels of a page: the length of their bytes, the length of a run, and the level of all.
    let run = (ROWS as u32) << 1;
    let run = [(run & 0x7f) as u8 | 0x80, (run >> 7) as u8];
    let levels = [&3_u32.to_le_bytes()[..], &run, &[0]].concat();
    let other = [&3_u32.to_le_bytes()[..], &run, &[7]].concat();
    patched(bytes, &levels, &other)
}

fn twice() -> Vec<u8> {
    let fields = vec![Field::new("n", DataType::Int64, true), Field::new("n", DataType::Int64, true)];
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::clone(&column), column]);
    written(&[rows.unwrap()], WriterProperties::default())
}

fn footer_length(length: u32) -> Vec<u8> {
    let mut bytes = base();
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// A file with these bytes as its footer.
fn with_thrift(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// The file with another description of its only row group.
fn with_group(change: impl FnOnce(RowGroupMetaData) -> RowGroupMetaData) -> Vec<u8> {
    let mut bytes = base();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).unwrap();
    let group = change(metadata.row_group(0).clone());
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), vec![group]);
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap());
    bytes.truncate(end - length as usize);
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata).finish().unwrap();
    bytes.extend(footer);
    bytes
}

/// The file with other descriptions of its columns.
fn with_columns(change: impl FnOnce(&mut Vec<ColumnChunkMetaData>)) -> Vec<u8> {
    with_group(|group| {
        // Without the places of pages, which would be believed before these.
        let plain = group.columns().iter().map(|column| {
            let plain =
                column.clone().into_builder().set_offset_index_offset(None).set_offset_index_length(None);
            plain.set_column_index_offset(None).set_column_index_length(None).build().unwrap()
        });
        let mut columns: Vec<ColumnChunkMetaData> = plain.collect();
        change(&mut columns);
        group.into_builder().set_column_metadata(columns).build().unwrap()
    })
}
