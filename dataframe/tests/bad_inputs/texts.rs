//! CSV and JSON.

use crate::{Bad, CORRUPT, Expected, check, collected};
use std::fs;
use std::io::Write as _;
use tharsis_dataframe::{CsvOptions, DataFrame, Table, read_csv, read_json};

const SYNTAX: Expected = Expected::Error(&["ParserError"]);

const CSV: &[Bad] = &[
    Bad { name: "no bytes", file: "t.csv", make: Vec::new, expected: CORRUPT },
    Bad {
        name: "header only",
        file: "t.csv",
        make: || b"a,b\n".to_vec(),
        expected: Expected::Rows(|table| assert_eq!((table.len(), table.columns().len()), (0, 2))),
    },
    Bad {
        name: "row with too few fields",
        file: "t.csv",
        make: || b"a,b\n1\n2,3\n".to_vec(),
        expected: Expected::Rows(|table| assert_eq!(ints(table, "b"), [None, Some(3)])),
    },
    Bad {
        name: "row with too many fields",
        file: "t.csv",
        make: || b"a,b\n1,2,3\n".to_vec(),
        expected: SYNTAX,
    },
    Bad {
        name: "unterminated quote",
        file: "t.csv",
        make: || b"a,b\n1,\"2\n3,4\n".to_vec(),
        expected: SYNTAX,
    },
    Bad {
        name: "mixed line breaks",
        file: "t.csv",
        make: || b"a,b\r1,2\r\n3,4\n5,6".to_vec(),
        expected: Expected::Rows(|table| assert_eq!(ints(table, "a"), [Some(1), Some(3), Some(5)])),
    },
    Bad {
        name: "mark of the byte order",
        file: "t.csv",
        make: || b"\xef\xbb\xbfa,b\n1,2\n".to_vec(),
        expected: Expected::Rows(|table| assert_eq!(ints(table, "a"), [Some(1)])),
    },
    Bad {
        name: "invalid UTF-8",
        file: "t.csv",
        make: || b"a,b\n1,\xff\n".to_vec(),
        expected: Expected::Error(&["UnicodeDecodeError"]),
    },
    Bad {
        name: "UTF-16",
        file: "t.csv",
        make: || "a,b\n1,2\n".encode_utf16().flat_map(u16::to_be_bytes).chain([0xff, 0xfe]).collect(),
        expected: Expected::Error(&["UnicodeDecodeError"]),
    },
    Bad {
        name: "1e400",
        file: "t.csv",
        make: || b"a\n1e400\n".to_vec(),
        expected: Expected::Rows(|table| {
            assert_eq!(table.column::<f64>("a").unwrap(), [Some(f64::INFINITY)]);
        }),
    },
    Bad {
        name: "duplicate header names",
        file: "t.csv",
        make: || b"a,a,a.1,a\n1,2,3,4\n".to_vec(),
        expected: Expected::Rows(|table| assert_eq!(table.columns(), ["a", "a.2", "a.1", "a.3"])),
    },
    Bad {
        name: "gz file that is none",
        file: "t.csv.gz",
        make: || b"a,b\n1,2\n".to_vec(),
        expected: CORRUPT,
    },
    Bad { name: "gz file truncated", file: "t.csv.gz", make: || gzipped(0.5), expected: CORRUPT },
    Bad { name: "gz file without its end", file: "t.csv.gz", make: || gzipped(0.999), expected: CORRUPT },
    Bad { name: "nothing but zeros", file: "t.csv", make: || vec![0; 100_000], expected: rows_of_zeros() },
];

const JSON: &[Bad] = &[
    Bad { name: "no object", file: "t.json", make: || b"[1, 2]\n".to_vec(), expected: CORRUPT },
    Bad {
        name: "array that does not end",
        file: "t.json",
        make: || b"[{\"a\":1},".to_vec(),
        expected: CORRUPT,
    },
    Bad { name: "two arrays", file: "t.json", make: || b"[{\"a\":1}] []".to_vec(), expected: CORRUPT },
    Bad { name: "array without commas", file: "t.json", make: || b"[{} {}]".to_vec(), expected: CORRUPT },
    Bad { name: "cut object", file: "t.json", make: || b"{\"a\":1}\n{\"a\":".to_vec(), expected: CORRUPT },
    Bad { name: "garbage", file: "t.json", make: || b"\x00\x01\x02".to_vec(), expected: CORRUPT },
    Bad {
        name: "invalid UTF-8",
        file: "t.json",
        make: || b"{\"a\":\"\xff\"}\n".to_vec(),
        expected: Expected::Error(&["UnicodeDecodeError"]),
    },
    Bad {
        name: "nested 10 000 levels",
        file: "t.json",
        make: || [b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat(),
        expected: Expected::Error(&["ValueError", "MemoryError"]),
    },
    Bad {
        name: "types that do not fit",
        file: "t.json",
        make: || b"{\"a\":1}\n{\"a\":{\"b\":2}}\n".to_vec(),
        expected: CORRUPT,
    },
];

const fn rows_of_zeros() -> Expected {
    Expected::Rows(|table| assert_eq!((table.len(), table.columns().len()), (0, 1)))
}

#[test]
fn each_text_has_its_outcome() {
    check(CSV, |path| read_csv(path, CsvOptions::new()));
    check(JSON, read_json);
}

#[test]
fn a_line_of_four_gib_is_refused_without_the_memory_for_it() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    for (name, read) in [
        ("t.csv", (|path| read_csv(path, CsvOptions::new())) as fn(&str) -> DataFrame),
        ("t.json", read_json),
    ] {
        let path = folder.path().join(name).display().to_string();
        // A file without blocks on the disk: all its bytes are zero.
        fs::File::create(&path).unwrap().set_len(4 << 30).unwrap();
        let (found, peak_bytes) = crate::with_peak(|| collected(&read(&path)));
        let error = found.unwrap_err();
        assert_eq!(error.class(), "ParserError", "{error}");
        assert!(error.to_string().contains("max_line"), "{error}");
        assert!(peak_bytes < crate::PEAK_BYTES, "{peak_bytes} bytes");
    }
}

#[test]
fn an_array_is_read_object_by_object() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json").display().to_string();
    let (rows, filler) = (96_000, "x".repeat(1_000));
    {
        let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        for n in 0..rows {
            let before = if n == 0 { '[' } else { ',' };
            write!(file, "{before}{{\"a\":{n},\"b\":\"{filler}\"}}").unwrap();
        }
        file.write_all(b"]").unwrap();
        file.flush().unwrap();
    }
    let (found, peak_bytes) = crate::with_peak(|| collected(&read_json(&path).select(["a"])));
    assert_eq!(found.unwrap().len(), rows);
    // All of the file is on one line.
    let bytes = fs::metadata(&path).unwrap().len() as usize;
    assert!(90 << 20 < bytes && peak_bytes < bytes * 2 / 3, "{peak_bytes} bytes for a file of {bytes}");
}

fn ints(table: &Table, label: &str) -> Vec<Option<i64>> {
    table.column::<i64>(label).unwrap()
}

/// A part of a compressed text.
fn gzipped(part: f64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv.gz").display().to_string();
    let numbers: Vec<i64> = (0..50_000).collect();
    DataFrame::from_columns([("n", numbers.into())]).to_csv(&path).unwrap();
    let bytes = fs::read(path).unwrap();
    bytes[..(bytes.len() as f64 * part) as usize].to_vec()
}
