//! Files as frames: what pandas' users expect of CSV, files that are cut between partitions, patterns, and
//! folders whose names are values.

use crate::executors::{SentExecutor, each_executor, three_parts};
use arrow::datatypes::DataType;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tharsis_dataframe::{
    CsvOptions, DataFrame, Error, Executor, Limits, LocalExecutor, Outcome, Stages, Table, WriteOptions,
    read_arrow, read_avro, read_csv, read_json, read_parquet, sql,
};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

/// A frame of a text in a file.
#[track_caller]
fn csv(text: impl AsRef<[u8]>, options: CsvOptions) -> (TempDir, DataFrame) {
    let folder = folder();
    fs::write(path(&folder, "t.csv"), text).unwrap();
    let frame = read_csv(&path(&folder, "t.csv"), options);
    (folder, frame)
}

#[test]
fn a_column_without_a_value_goes_below_texts_with_a_type() {
    let full = "k,t\n1,a\n";
    let empty = "k,t\n2,\n3,NA\n";
    let (_first, texts) = csv(full, CsvOptions::default());
    let (_second, plain) = csv(empty, CsvOptions::default());
    assert_eq!(plain.col("t").dtype().unwrap(), DataType::Float64);
    let error = DataFrame::concat([&texts, &plain], true).check().unwrap_err();
    assert_eq!(error.class(), "TypeError");
    assert!(error.to_string().contains("CsvOptions::dtype"), "{error}");
    let (_third, typed) = csv(empty, CsvOptions::default().dtype("t", DataType::Utf8));
    let both = DataFrame::concat([&texts, &typed], true);
    for found in each_executor(|executor| both.collect_on(executor)?.column::<String>("t")) {
        assert_eq!(found, [Some("a".to_owned()), None, None]);
    }
}

/// Labels, types and values of a text, all as one text.
#[track_caller]
fn shown(text: impl AsRef<[u8]>, options: CsvOptions) -> String {
    let (_folder, frame) = csv(text, options);
    let tables = each_executor(|executor| frame.collect_on(executor));
    assert!(tables.iter().all(|table| *table == tables[0]), "executors differ");
    lines(&tables[0])
}

fn lines(table: &Table) -> String {
    let mut shown = String::new();
    for label in table.columns() {
        let array = table.array(&label).unwrap();
        let values = (0..table.len()).map(|row| match table.value(row, &label).unwrap() {
            value if value.is_missing() => "-".to_owned(),
            value => value.to_string(),
        });
        let values = values.collect::<Vec<_>>().join("|");
        let _ = writeln!(shown, "{label} {}: {values}", array.data_type());
    }
    shown
}

#[track_caller]
fn error(text: impl AsRef<[u8]>, options: CsvOptions) -> Error {
    let (_folder, frame) = csv(text, options);
    frame.collect_on(&LocalExecutor::sized(2, 1 << 30)).unwrap_err()
}

#[track_caller]
fn assert_error(error: &Error, class: &str, parts: &[&str]) {
    assert_eq!(error.class(), class, "{error}");
    parts.iter().for_each(|part| assert!(error.to_string().contains(part), "{part:?} is not in {error}"));
}

#[test]
fn types_are_those_that_pandas_finds() {
    let text =
        "i,f,b,t,day,empty,big\n1,1.5,True,x,2024-01-01,,18446744073709551615\n,inf,False,,2024-01-02,,1\n";
    let expected = "i Int64: 1|-\nf Float64: 1.5|inf\nb Boolean: true|false\nt Utf8: x|-\n\
        day Utf8: 2024-01-01|2024-01-02\nempty Float64: -|-\nbig UInt64: 18446744073709551615|1\n";
    assert_eq!(shown(text, CsvOptions::new()), expected);
}

#[test]
fn a_header_alone_is_no_rows_of_texts() {
    assert_eq!(shown("a,b\n", CsvOptions::new()), "a Utf8: \nb Utf8: \n");
    assert_eq!(shown("a,b", CsvOptions::new()), "a Utf8: \nb Utf8: \n");
}

#[test]
fn what_pandas_takes_for_missing_is_missing() {
    let text = "n,t\n1,NA\nNaN,\"\"\nnull,NULL\n 4 ,nan.\n";
    assert_eq!(shown(text, CsvOptions::new()), "n Int64: 1|-|-|4\nt Utf8: -|-|-|nan.\n");
    let text = "n,t\n1,NA\n-9,none\n3,\n";
    let options = || CsvOptions::new().na_values(["-9", "none"]);
    assert_eq!(shown(text, options()), "n Int64: 1|-|3\nt Float64: -|-|-\n");
    assert_eq!(shown(text, options().keep_default_na(false)), "n Int64: 1|-|3\nt Utf8: NA|-|-\n");
}

#[test]
fn labels_come_from_the_header_or_are_given_or_counted() {
    assert_eq!(shown("a,a,b,a,\n1,2,3,4,5\n", CsvOptions::new()).lines().count(), 5);
    let (_folder, frame) = csv("a,a,b,a,a.1,\n1,2,3,4,5,6\n", CsvOptions::new());
    assert_eq!(frame.columns().unwrap(), ["a", "a.2", "b", "a.3", "a.1", "Unnamed: 5"]);
    let text = "1,2\n3,4\n";
    assert_eq!(shown(text, CsvOptions::new().header(false)), "0 Int64: 1|3\n1 Int64: 2|4\n");
    assert_eq!(shown(text, CsvOptions::new().names(["x", "y"])), "x Int64: 1|3\ny Int64: 2|4\n");
    assert_eq!(shown(text, CsvOptions::new().names(["x", "y"]).header(true)), "x Int64: 3\ny Int64: 4\n");
    assert_eq!(
        shown(text, CsvOptions::new().names(["x", "y", "z"])),
        "x Int64: 1|3\ny Int64: 2|4\nz Float64: -|-\n"
    );
    assert_error(&error(text, CsvOptions::new().names(["x"])), "ValueError", &["1 names for 2 columns"]);
}

#[test]
fn rows_and_columns_are_chosen() {
    let text = "by hand, 3\"\"\n\na,b,c\n1,2,3\n4,5,6\n7,8,9\n";
    let options = CsvOptions::new().skiprows(2).usecols(["c", "a"]).nrows(2);
    assert_eq!(shown(text, options), "a Int64: 1|4\nc Int64: 3|6\n");
    let text = "# it's\na;b\n1;'x;\n#y'\n# no row\n2;z\n";
    let options = CsvOptions::new().sep(b';').quotechar(b'\'').comment(Some(b'#'));
    assert_eq!(shown(text, options), "a Int64: 1|2\nb Utf8: x;\n#y|z\n");
}

#[test]
fn types_that_are_asked_for_are_made() {
    let text = "a,b,c,d\n1,2,2024-02-29,x\n3,NA,2024-03-01 12:30,y\n";
    let options = CsvOptions::new()
        .dtype("a", DataType::Float32)
        .dtype("b", DataType::Utf8)
        .dtype("d", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)))
        .parse_dates(["c"]);
    let (_folder, frame) = csv(text, options);
    let dtypes: Vec<String> =
        frame.dtypes().unwrap().into_iter().map(|(_, dtype)| dtype.to_string()).collect();
    assert_eq!(dtypes, ["Float32", "Utf8", "Timestamp(µs)", "Dictionary(Int32, Utf8)"]);
    assert_eq!(frame.col("c").dt().hour().values::<i64>().unwrap(), [Some(0), Some(12)]);
    assert_eq!(frame.col("b").values::<String>().unwrap(), [Some("2".to_owned()), None]);
    let unknown = error(text, CsvOptions::new().usecols(["a", "bb"]));
    assert_error(&unknown, "KeyError", &["\"bb\"", "\"b\""]);
}

#[test]
fn rows_with_fewer_fields_lack_values_and_more_are_an_error() {
    assert_eq!(shown("a,b,c\n1\n4,5\n", CsvOptions::new()), "a Int64: 1|4\nb Int64: -|5\nc Float64: -|-\n");
    let options = || CsvOptions::new().infer_bytes(1);
    let mut text = "a,b\n1,2\n\"3\n4\",5\n".to_owned();
    assert_error(
        &error(text.clone() + "6,7,8\n", options()),
        "ParserError",
        &["Expected 2 fields in line 5, saw 3", "t.csv"],
    );
    for (text, sep) in [("Datum;Betrag\n31.12.2023;1,5\n", "sep = ';'"), ("a\tb\n1\t2,5\n", "sep = '\\t'")] {
        assert_error(&error(text, options()), "ParserError", &["Expected 1 fields in line 2, saw 2", sep]);
    }
    // So many rows that the types are found without them.
    text.extend(std::iter::repeat_n("8,9\n", 300_000));
    assert_error(&error(text + "6,7,8\n", options()), "ParserError", &["Expected 2 fields", "saw 3"]);
}

#[test]
fn line_breaks_of_all_systems_are_the_same() {
    let expected = "a Int64: 1|3\nb Utf8: x\ny|z\n";
    for text in [
        "a,b\n1,\"x\ny\"\n3,z\n",
        "a,b\r\n1,\"x\ny\"\r\n3,z\r\n",
        "a,b\r1,\"x\ny\"\r3,z",
        "\u{FEFF}a,b\n\n1,\"x\ny\"\r\n3,z",
    ] {
        assert_eq!(shown(text, CsvOptions::new()), expected, "{text:?}");
    }
}

#[test]
fn lines_of_blanks_are_no_rows() {
    let text = "  \na,b\nx,1\n   \n  y,2\n\t\n z,3\n \t ";
    assert_eq!(shown(text, CsvOptions::new()), "a Utf8: x|  y| z\nb Int64: 1|2|3\n");
    let text = "a,b\r\n1,\"x\n  \ny\"\r\n  \r\n2,z\r\n";
    assert_eq!(shown(text, CsvOptions::new()), "a Int64: 1|2\nb Utf8: x\n  \ny|z\n");
    // A tab that separates fields is no blank.
    let text = "a\tb\n1\t2\n\t\n  \n3\t4\n";
    assert_eq!(shown(text, CsvOptions::new().sep(b'\t')), "a Int64: 1|-|3\nb Int64: 2|-|4\n");
    assert_error(&error("a,b\n1,2\n  \n1,2,3\n", CsvOptions::new()), "ParserError", &["line 4"]);
}

#[test]
fn open_quotes_are_told_with_their_line() {
    assert_error(
        &error("a,b\r\n1,\"x\r\ny\"\r\n2,\"z\n3,4\n", CsvOptions::new()),
        "ParserError",
        &["t.csv", "EOF inside a string that starts in line 4"],
    );
}

#[test]
fn bytes_that_are_no_text_are_an_error_or_not() {
    let text = b"a,b\n1,caf\xe9 x\n2,\xff\n";
    assert_error(&error(text, CsvOptions::new()), "UnicodeDecodeError", &["0xe9", "position 9"]);
    let read = |options: CsvOptions| {
        let (_folder, frame) = csv(text, options);
        frame.col("b").values::<String>().unwrap().into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(read(CsvOptions::new().encoding_errors("replace")), ["caf\u{FFFD} x", "\u{FFFD}"]);
    assert_eq!(read(CsvOptions::new().encoding_errors("ignore")), ["caf x"]);
    assert_eq!(read(CsvOptions::new().encoding("latin-1")), ["café x", "ÿ"]);
    assert_error(&error(text, CsvOptions::new().encoding("utf-7")), "NotImplemented", &["utf-7"]);
    assert_error(&error(text, CsvOptions::new().encoding_errors("hide")), "ValueError", &["hide"]);
}

#[test]
fn a_line_that_is_too_long_is_an_error_and_not_read() {
    let long = format!("a,b\n1,{}\n", "x".repeat(5_000));
    let options = || CsvOptions::new().max_line(4_096);
    assert_error(&error(&long, options()), "ParserError", &["max_line", "4096", "line 2"]);
    let open = format!("a,b\n1,\"{}\n", "x\n".repeat(5_000));
    assert_error(&error(&open, options()), "ParserError", &["max_line"]);
    let comments = format!("a,b\n#{}\n1,2\n", "x".repeat(5_000));
    assert_eq!(shown(&comments, CsvOptions::new().comment(Some(b'#'))), "a Int64: 1\nb Int64: 2\n");
}

#[test]
fn numbers_that_are_too_large_are_infinite() {
    assert_eq!(shown("a\n1e400\n-1e400\n1e-400\n", CsvOptions::new()), "a Float64: inf|-inf|0\n");
}

#[test]
fn a_value_of_another_type_after_the_first_rows_is_told_with_its_line() {
    let mut text = "a\n".to_owned();
    text.extend((0..150_000).map(|n| format!("{:012}\n", n)));
    text.push_str("none at all\n");
    let wrong = error(&text, CsvOptions::new().infer_bytes(1_000));
    assert_error(&wrong, "ValueError", &["\"a\"", "line 150002", "none at all", "Int64", "dtype"]);
    let asked = CsvOptions::new().infer_bytes(1_000).dtype("a", DataType::Utf8);
    let (_folder, frame) = csv(&text, asked);
    assert_eq!(frame.len().unwrap(), 150_001);
}

#[test]
fn empty_files_are_an_error() {
    assert_error(&error("", CsvOptions::new()), "ValueError", &["No columns to parse from file"]);
    assert_error(&error("\n\n", CsvOptions::new()), "ValueError", &["No columns to parse from file"]);
}

#[test]
fn line_breaks_in_quotes_are_the_same_wherever_a_file_is_cut() {
    let numbers = 0..30_000_i64;
    let mut text = "n,t\n".to_owned();
    for n in numbers.clone() {
        let _ = match n % 3 {
            0 => writeln!(text, "{n},\"line of {n}\n{n},\"\"quoted\"\"\n, more, and more, and more\""),
            1 => writeln!(text, "{n},plain text that is as long as the others {n} times or so"),
            _ => writeln!(text, "{n},\"it is, in quotes, {n}, and without a line break, with all it says\""),
        };
    }
    let folder = folder();
    fs::write(path(&folder, "t.csv"), &text).unwrap();
    let frame = read_csv(&path(&folder, "t.csv"), CsvOptions::new());
    let expected: Vec<Option<i64>> = numbers.map(Some).collect();
    let whole = frame.collect_on(&LocalExecutor::sized(1, 1 << 30)).unwrap();
    assert_eq!(whole.column::<i64>("n").unwrap(), expected);
    for threads in [2, 3, 7, 16] {
        let (cut, metrics) = frame.collect_with_metrics(&LocalExecutor::sized(threads, 1 << 30)).unwrap();
        assert_eq!(metrics.stages[0].tasks, threads, "the file is cut");
        assert_eq!(cut.len(), whole.len());
        assert!(cut.column::<i64>("n").unwrap() == expected, "{threads} partitions");
        assert!(cut.column::<String>("t").unwrap() == whole.column::<String>("t").unwrap());
    }
}

#[test]
fn a_text_that_looks_like_rows_is_still_a_text_when_the_file_is_cut() {
    let rows: String = (0..80_000).map(|n| format!("{n},{n}\n")).collect();
    let text = format!("a,b\n1,\"{rows}\"\n2,\"{rows}\"\n");
    let (_folder, frame) = csv(&text, CsvOptions::new());
    let table = frame.collect_on(&LocalExecutor::sized(5, 1 << 30)).unwrap();
    assert_eq!(table.column::<i64>("a").unwrap(), [Some(1), Some(2)]);
    assert_eq!(table.column::<String>("b").unwrap()[1].as_deref(), Some(rows.as_str()));
}

#[test]
fn compressed_texts_are_read() {
    let folder = folder();
    let frame = three_parts();
    for end in ["gz", "zst"] {
        frame.to_csv(&path(&folder, &format!("t.csv.{end}"))).unwrap();
        frame.to_json(&path(&folder, &format!("t.json.{end}"))).unwrap();
        let all: Vec<Option<i64>> = (0..10).map(Some).collect();
        let csv = read_csv(&path(&folder, &format!("t.csv.{end}")), CsvOptions::new());
        let json = read_json(&path(&folder, &format!("t.json.{end}")));
        for frame in [csv, json] {
            each_executor(|executor| frame.collect_on(executor)?.column::<i64>("n"))
                .iter()
                .for_each(|found| assert_eq!(*found, all));
        }
    }
    // These are the files that `bzip2` and `xz` make of a text.
    let bz2: &[u8] = &[
        0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xbf, 0x87, 0x40, 0x7f, 0x00, 0x00, 0x03,
        0x59, 0x00, 0x00, 0x10, 0x00, 0x04, 0x30, 0x00, 0x30, 0x00, 0x20, 0x00, 0x30, 0xc0, 0x08, 0x69, 0xb2,
        0x88, 0x23, 0x27, 0x8b, 0xb9, 0x22, 0x9c, 0x28, 0x48, 0x5f, 0xc3, 0xa0, 0x3f, 0x80,
    ];
    let xz: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16,
        0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x07, 0x61, 0x2c, 0x62, 0x0a, 0x31, 0x2c, 0x32,
        0x0a, 0x00, 0xbe, 0x9c, 0xbd, 0x49, 0xb5, 0x12, 0x2a, 0xfe, 0x00, 0x01, 0x20, 0x08, 0xbb, 0x19, 0xd9,
        0xbb, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];
    for (end, bytes) in [("bz2", bz2), ("xz", xz)] {
        let name = path(&folder, &format!("t.csv.{end}"));
        fs::write(&name, bytes).unwrap();
        assert_eq!(lines(&read_csv(&name, CsvOptions::new()).collect().unwrap()), "a Int64: 1\nb Int64: 2\n");
    }
}

#[test]
fn a_compressed_text_that_ends_early_is_an_error() {
    let folder = folder();
    let frame = DataFrame::from_columns([("n", (0..100_000).collect::<Vec<i64>>().into())]);
    for end in ["gz", "zst"] {
        let name = path(&folder, &format!("t.csv.{end}"));
        frame.to_csv(&name).unwrap();
        let bytes = fs::read(&name).unwrap();
        fs::write(&name, &bytes[..bytes.len() / 2]).unwrap();
        let error = read_csv(&name, CsvOptions::new()).collect().unwrap_err();
        assert_error(&error, "ValueError", &[&name]);
    }
}

#[test]
fn a_column_that_the_first_file_lacks_is_told_with_its_file() {
    let folder = folder();
    let (first, second) = (path(&folder, "1.csv"), path(&folder, "2.csv"));
    fs::write(first, "a,b\n1,2\n").unwrap();
    fs::write(&second, "a,b,z\n1,2,3\n").unwrap();
    let error = read_csv(&path(&folder, "*.csv"), CsvOptions::new()).collect().unwrap_err();
    assert_error(&error, "ValueError", &[&second, "column \"z\" is not in the first file"]);
    fs::write(&second, "a,b\n1,2,3\n").unwrap();
    let error = read_csv(&path(&folder, "*.csv"), CsvOptions::new()).collect().unwrap_err();
    assert_error(&error, "ParserError", &[&second, "saw 3"]);
}

#[test]
fn whole_numbers_of_many_digits_stay_what_they_are() {
    let (_folder, frame) = csv("a\n12345678901234567890123\n12345678901234567890124\n", CsvOptions::new());
    assert_eq!(frame.col("a").values::<String>().unwrap()[1].as_deref(), Some("12345678901234567890124"));
    assert_eq!(frame.nunique().col("0").values::<i64>().unwrap(), [Some(2)]);
}

#[test]
fn lines_of_json_are_rows() {
    let folder = folder();
    let name = path(&folder, "t.json");
    fs::write(&name, "\u{FEFF}{\"a\":1,\"b\":\"x\"}\r\n\n{\"b\":\"y\",\"c\":2.5}\n{\"a\":null}").unwrap();
    let frame = read_json(&name);
    let found = each_executor(|executor| frame.collect_on(executor));
    assert_eq!(lines(&found[2]), "a Int64: 1|-|-\nb Utf8: x|y|-\nc Float64: -|2.5|-\n");
    // Columns come as objects name them.
    fs::write(&name, "{\"z\":1,\"b\":\"x\"}\n{\"c\":2,\"a\":3,\"z\":4}\n").unwrap();
    assert_eq!(read_json(&name).columns().unwrap(), ["z", "b", "c", "a"]);
    fs::write(&name, "{\"a\":1}\n{\"a\":}\n").unwrap();
    assert_error(&read_json(&name).collect().unwrap_err(), "ValueError", &[&name]);
    let filler = "x".repeat(200);
    let mut text: String = (0..50_000).map(|n| format!("{{\"a\":{n},\"b\":\"{filler}\"}}\n")).collect();
    assert!(8 << 20 < text.len());
    text.push_str("{\"a\":\"text\"}\n");
    fs::write(&name, &text).unwrap();
    let error = read_json(&name).collect_on(&LocalExecutor::sized(1, 1 << 30)).unwrap_err();
    assert_error(&error, "ValueError", &[&name, "line 50001"]);
    let half = &text[..text.len() - 13];
    // A column that comes late is not lost in silence.
    fs::write(&name, format!("{half}{{\"late\":1}}\n")).unwrap();
    let error = read_json(&name).collect_on(&LocalExecutor::sized(1, 1 << 30)).unwrap_err();
    assert_error(&error, "ValueError", &[&name, "line 50001", "late"]);
    assert!(read_json(&name).select(["a"]).collect().is_err());
    fs::write(&name, half).unwrap();
    let (table, metrics) = read_json(&name).collect_with_metrics(&LocalExecutor::sized(4, 1 << 30)).unwrap();
    assert_eq!((table.len(), metrics.stages[0].tasks), (50_000, 4));
}

#[test]
fn folders_whose_names_are_values_give_columns() {
    let folder = folder();
    let frame = DataFrame::from_columns([
        ("n", vec![0, 1, 2, 3, 4].into()),
        ("k", vec![Some("a/b"), None, Some("c d"), Some("a/b"), Some("c d")].into()),
        ("year", vec![2024, 2024, 2025, 2025, 2025].into()),
    ]);
    let options = || WriteOptions::new().partition_cols(["year", "k"]);
    frame.to_parquet_with(&path(&folder, "p/"), options()).unwrap();
    frame.to_csv_with(&path(&folder, "c/"), options()).unwrap();
    for read in [read_parquet(&path(&folder, "p")), read_csv(&path(&folder, "c/"), CsvOptions::new())] {
        let expected =
            "n Int64: 1|0|3|2|4\nyear Int64: 2024|2024|2025|2025|2025\nk Utf8: -|a/b|a/b|c d|c d\n";
        let tables = each_executor(|executor| read.collect_on(executor));
        tables.iter().for_each(|table| assert_eq!(lines(table), expected));
        let chosen = sql("select n from t where year = 2025 and k = 'c d'", &[("t", &read)]);
        assert!(
            chosen.explain().unwrap().to_string().contains("year=2025/k=c"),
            "{}",
            chosen.explain().unwrap().to_string()
        );
        assert!(
            !chosen.explain().unwrap().to_string().contains("year=2024"),
            "{}",
            chosen.explain().unwrap().to_string()
        );
        assert_eq!(chosen.col("n").values::<i64>().unwrap(), [Some(2), Some(4)]);
        let missing = sql("select n from t where k is null", &[("t", &read)]);
        assert_eq!(missing.col("n").values::<i64>().unwrap(), [Some(1)]);
    }
}

#[test]
fn patterns_name_files() {
    let folder = folder();
    let write = |name: &str, n: i64| {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(path(&folder, name), format!("n\n{n}\n")).unwrap();
    };
    for (n, name) in
        ["a1.csv", "a2.csv", "b1.csv", "x/a3.csv", "x/y/a4.csv", ".a5.csv", "_a6.csv", "x/.h/a7.csv"]
            .into_iter()
            .enumerate()
    {
        write(name, n as i64);
    }
    let read = |pattern: &str| {
        let frame = read_csv(&path(&folder, pattern), CsvOptions::new());
        frame.col("n").values::<i64>().unwrap().into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(read("a*.csv"), [0, 1]);
    assert_eq!(read("[ab]1.csv"), [0, 2]);
    assert_eq!(read("a?.csv"), [0, 1]);
    assert_eq!(read("*/a3.csv"), [3]);
    assert_eq!(read("**/a*.csv"), [0, 1, 3, 4]);
    assert_eq!(read("x"), [3, 4]);
    assert_eq!(read("x/*"), [3, 4]);
    assert_eq!(read("x/../a?.csv"), [0, 1]);
    let none = read_csv(&path(&folder, "c*.csv"), CsvOptions::new()).check().unwrap_err();
    assert_error(&none, "FileNotFoundError", &["c*.csv", "pattern"]);
    write("we[i]rd %20 ü #1.csv", 8);
    assert_eq!(read("we[i]rd %20 ü #1.csv"), [8]);
}

#[test]
fn files_of_one_frame_have_the_same_columns() {
    let folder = folder();
    fs::create_dir(path(&folder, "p")).unwrap();
    let write = |name: &str, frame: DataFrame| frame.to_parquet(&path(&folder, name)).unwrap();
    write("p/1.parquet", DataFrame::from_columns([("a", vec![1].into()), ("b", vec!["x"].into())]));
    let check = |second: DataFrame, part: &str| {
        write("p/2.parquet", second);
        let error = read_parquet(&path(&folder, "p")).check().unwrap_err();
        assert_error(&error, "ValueError", &["p/2.parquet", part]);
    };
    check(DataFrame::from_columns([("a", vec![1.5].into()), ("b", vec!["x"].into())]), "\"a\" is Float64");
    check(DataFrame::from_columns([("a", vec![1].into())]), "no column \"b\"");
    let more = [("a", vec![1].into()), ("b", vec!["x"].into()), ("c", vec![1].into())];
    check(DataFrame::from_columns(more), "\"c\" is not in the first file");
    fs::create_dir(path(&folder, "c")).unwrap();
    fs::write(path(&folder, "c/1.csv"), "a,b\n1,2\n").unwrap();
    fs::write(path(&folder, "c/2.csv"), "a,c\n1,2\n").unwrap();
    let error = read_csv(&path(&folder, "c"), CsvOptions::new()).collect().unwrap_err();
    assert_error(&error, "ValueError", &["c/2.csv", "no column \"b\""]);
}

#[test]
fn a_limit_reads_only_what_it_must() {
    let folder = folder();
    for part in 0..20 {
        let n: Vec<i64> = (part * 100..part * 100 + 100).collect();
        let frame = DataFrame::from_columns([("n", n.into())]);
        frame.to_parquet(&path(&folder, &format!("{part:02}.parquet"))).unwrap();
    }
    fs::write(path(&folder, "19.parquet.csv"), "").unwrap();
    fs::remove_file(path(&folder, "19.parquet.csv")).unwrap();
    let head = read_parquet(&path(&folder, "*.parquet")).head(150);
    assert!(
        !head.explain().unwrap().to_string().contains("02.parquet"),
        "{}",
        head.explain().unwrap().to_string()
    );
    let expected: Vec<Option<i64>> = (0..150).map(Some).collect();
    each_executor(|executor| head.collect_on(executor)?.column::<i64>("n"))
        .iter()
        .for_each(|found| assert_eq!(*found, expected));
}

#[test]
fn files_that_change_are_read_as_they_are() {
    let folder = folder();
    let name = path(&folder, "t.csv");
    fs::write(&name, "n\n1\n2\n").unwrap();
    let frame = read_csv(&name, CsvOptions::new());
    assert_eq!(frame.len().unwrap(), 2);
    fs::write(&name, "n\n1\n2\n3\n").unwrap();
    assert_eq!(frame.len().unwrap(), 3);
    fs::remove_file(&name).unwrap();
    assert_error(&frame.collect().unwrap_err(), "FileNotFoundError", &["t.csv"]);
}

/// Changes a file between planning and the first task, in so many first runs.
struct Meddler {
    path: String,
    runs: AtomicU64,
    until: u64,
}

impl Meddler {
    fn new(path: &str, until: u64) -> Meddler {
        Meddler { path: path.to_owned(), runs: AtomicU64::new(0), until }
    }
}

impl Executor for Meddler {
    fn limits(&self) -> Limits {
        Limits { threads: 3, memory_bytes: 1 << 30 }
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        if run < self.until {
            // Of the same size: only its time tells.
            rewritten(&self.path, run + 1);
        }
        SentExecutor { attempts: 1 }.execute(stages)
    }
}

/// Writes the file of a version anew, each a second later than that before: the clocks of some file systems
/// are slow.
fn rewritten(path: &str, version: u64) {
    fs::write(path, format!("n\n{}", format!("{}\n", 10 + version).repeat(1000))).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + version)).unwrap();
}

#[test]
fn a_file_that_changes_after_planning_is_read_as_one_version() {
    let folder = folder();
    let name = path(&folder, "t.csv");
    rewritten(&name, 0);
    let frame = read_csv(&name, CsvOptions::new());
    let table = frame.collect_on(&Meddler::new(&name, 1)).unwrap();
    assert_eq!(table.column::<i64>("n").unwrap(), vec![Some(11); 1000]);
    rewritten(&name, 100);
    let error = frame.collect_on(&Meddler::new(&name, u64::MAX)).unwrap_err();
    assert_error(&error, "OSError", &["t.csv", "changed"]);
}

#[test]
fn arrow_files_are_read_by_any_number_of_tasks() {
    let folder = folder();
    three_parts().to_arrow(&path(&folder, "a/")).unwrap();
    let frame = read_arrow(&path(&folder, "a/*.arrow"));
    let expected: Vec<Option<i64>> = (0..10).map(Some).collect();
    each_executor(|executor| frame.collect_on(executor)?.column::<i64>("n"))
        .iter()
        .for_each(|found| assert_eq!(*found, expected));
    let one: &dyn Executor = &LocalExecutor::sized(1, 1 << 30);
    assert_eq!(frame.filter(&frame.col("n").gt(7)).collect_on(one).unwrap().len(), 2);
}

#[test]
fn avro_files_are_read() {
    let folder = folder();
    let schema = arrow::datatypes::Schema::new(vec![
        arrow::datatypes::Field::new("n", DataType::Int64, false),
        arrow::datatypes::Field::new("t", DataType::Utf8, true),
    ]);
    let file = fs::File::create(path(&folder, "t.avro")).unwrap();
    let mut writer = datafusion::arrow_avro::writer::AvroWriter::new(file, schema.clone()).unwrap();
    let n = arrow::array::Int64Array::from(vec![1, 2, 3]);
    let t = arrow::array::StringArray::from(vec![Some("x"), None, Some("z")]);
    let batch = arrow::array::RecordBatch::try_new(schema.into(), vec![Arc::new(n), Arc::new(t)]);
    writer.write(&batch.unwrap()).unwrap();
    writer.finish().unwrap();
    let frame = read_avro(&path(&folder, "t.avro"));
    let tables = each_executor(|executor| frame.collect_on(executor));
    tables.iter().for_each(|table| assert_eq!(lines(table), "n Int64: 1|2|3\nt Utf8: x|-|z\n"));
}
