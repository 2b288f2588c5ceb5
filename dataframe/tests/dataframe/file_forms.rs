//! Forms of files that other programs write: old times of Parquet, encodings and numbers of CSV, large
//! numbers of JSON.

use crate::executors::each_executor;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tharsis_dataframe::{CsvOptions, DataFrame, SqlSession, Value, read_csv, read_json, read_parquet, sql};

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

/// A frame of a text in a file.
fn csv(folder: &TempDir, text: impl AsRef<[u8]>, options: CsvOptions) -> DataFrame {
    fs::write(path(folder, "t.csv"), text).unwrap();
    read_csv(&path(folder, "t.csv"), options)
}

/// Writes a file with a column of times of 96 bits, at noon of some days since 1970.
fn with_old_times(path: &str, days: &[i32]) {
    const NOON: u64 = 43_200_000_000_000;
    const DAY_OF_1970: i32 = 2_440_588;
    let schema = Arc::new(parse_message_type("message m { required int96 t; }").unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let times: Vec<Int96> = days
        .iter()
        .map(|day| {
            let mut time = Int96::new();
            time.set_data(NOON as u32, (NOON >> 32) as u32, (DAY_OF_1970 + day) as u32);
            time
        })
        .collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn old_times_of_parquet_have_all_years() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.parquet");
    with_old_times(&name, &[-719_162, -171_664, 0, 2_932_896]);
    let frame = read_parquet(&name);
    assert_eq!(frame.col("t").dtype().unwrap(), DataType::Timestamp(TimeUnit::Microsecond, None));
    let texts = |frame: &DataFrame| {
        let shown = frame.col("t").dt().strftime("%Y-%m-%d %H:%M").to_frame();
        each_executor(|executor| shown.collect_on(executor)?.column::<String>("t"))
    };
    let all = ["0001-01-01 12:00", "1500-01-01 12:00", "1970-01-01 12:00", "9999-12-31 12:00"];
    for found in texts(&frame) {
        assert_eq!(found, all.map(|text| Some(text.to_owned())));
    }
    let late = frame.filter(&frame.col("t").gt(Value::time("2100-01-01").unwrap()));
    for found in texts(&late) {
        assert_eq!(found, [Some(all[3].to_owned())]);
    }
    let mut session = SqlSession::default();
    session.run(&format!("create external table old stored as parquet location '{name}'")).unwrap();
    let years = session.run("select cast(extract(year from t) as bigint) from old order by t").unwrap();
    assert_eq!(years, [["1"], ["1500"], ["1970"], ["9999"]]);
}

#[test]
fn old_times_of_parquet_without_room_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.parquet");
    for day in [110_000_000, -110_000_000] {
        with_old_times(&name, &[0, day]);
        let frame = read_parquet(&name);
        let classes = each_executor(|executor| Ok(frame.collect_on(executor).unwrap_err()));
        for error in classes {
            assert_eq!(error.class(), "ValueError", "{error}");
            assert!(error.to_string().contains("\"t\"") && error.to_string().contains(&name), "{error}");
        }
        let mut session = SqlSession::default();
        session.run(&format!("create external table old stored as parquet location '{name}'")).unwrap();
        assert_eq!(session.run("select t from old").unwrap_err().class(), "ValueError");
    }
    with_old_times(&name, &[0, 106_000_000]);
    assert_eq!(read_parquet(&name).len().unwrap(), 2);
    assert!(read_parquet(&name).collect().is_ok());
}

#[test]
fn texts_are_read_in_the_encodings_of_python() {
    let folder = tempfile::tempdir().unwrap();
    let text = "a,\u{e9}\n1,\u{20ac}\n2,\u{161}\n";
    let utf16 = |units: &[u8; 2], order: fn(u16) -> [u8; 2]| {
        [units.to_vec(), text.encode_utf16().flat_map(order).collect()].concat()
    };
    let cp1252: Vec<u8> = text
        .chars()
        .map(|sign| match sign {
            '\u{20ac}' => 0x80,
            '\u{161}' => 0x9a,
            other => other as u8,
        })
        .collect();
    let files: [(&str, Vec<u8>); 7] = [
        ("utf-8-sig", [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        ("UTF_8", text.as_bytes().to_vec()),
        ("utf-16", utf16(b"\xff\xfe", u16::to_le_bytes)),
        ("utf-16", utf16(b"\xfe\xff", u16::to_be_bytes)),
        ("utf-16-le", text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("cp1252", cp1252.clone()),
        ("Windows-1252", cp1252),
    ];
    for (encoding, bytes) in files {
        let frame = csv(&folder, bytes, CsvOptions::new().encoding(encoding));
        for found in each_executor(|executor| frame.collect_on(executor)?.column::<String>("\u{e9}")) {
            assert_eq!(found, ["\u{20ac}", "\u{161}"].map(|text| Some(text.to_owned())), "{encoding}");
        }
        assert_eq!(frame.col("a").values::<i64>().unwrap(), [Some(1), Some(2)], "{encoding}");
    }
    let class = |bytes: &[u8], encoding: &str| {
        let error = csv(&folder, bytes, CsvOptions::new().encoding(encoding)).collect().unwrap_err();
        (error.class(), error.to_string())
    };
    let (name, reason) = class(b"a\n1\n\x81\n", "cp1252");
    assert_eq!(name, "UnicodeDecodeError");
    assert!(reason.contains("byte 0x81 in position 4"), "{reason}");
    assert_eq!(class(b"a\n\xe9\n", "ascii").0, "UnicodeDecodeError");
    assert_eq!(class(b"\xff\xfea\0\n", "utf-16").0, "UnicodeDecodeError");
    let (name, reason) = class(b"a\n1\n", "utf-7");
    assert_eq!(name, "NotImplemented");
    assert!(reason.contains("utf-7"), "{reason}");
}

#[test]
fn numbers_have_the_signs_of_their_country() {
    let folder = tempfile::tempdir().unwrap();
    let german = CsvOptions::new().sep(b';').decimal(b',').thousands(Some(b'.'));
    let frame = csv(&folder, "i;f;t\n1.234;-1.234,5;1.5x\n12;,;7\n-3;2e3;8\n", german.clone());
    let types = [("i", DataType::Int64), ("f", DataType::Utf8), ("t", DataType::Utf8)];
    assert_eq!(
        types.clone().map(|(label, _)| frame.col(label).dtype().unwrap()),
        types.map(|(_, dtype)| dtype)
    );
    assert_eq!(frame.col("i").values::<i64>().unwrap(), [Some(1234), Some(12), Some(-3)]);
    let frame = csv(&folder, "f\n-1.234,5\nNA\n ,25 \n2e3\n", german.na_values(["-9"]));
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<f64>("f")) {
        assert_eq!(found, [Some(-1234.5), None, Some(0.25), Some(2000.0)]);
    }
    // A point is no decimal sign then.
    let frame = csv(&folder, "f;g\n1.5;1,5\n", CsvOptions::new().sep(b';').decimal(b','));
    assert_eq!(frame.col("f").dtype().unwrap(), DataType::Utf8);
    assert_eq!(frame.col("g").values::<f64>().unwrap(), [Some(1.5)]);
    let frame = csv(&folder, "n\n\"1,234,567\"\n", CsvOptions::new().thousands(Some(b',')));
    assert_eq!(frame.col("n").values::<i64>().unwrap(), [Some(1_234_567)]);
    for options in [
        CsvOptions::new().decimal(b'1'),
        CsvOptions::new().thousands(Some(b'.')),
        CsvOptions::new().thousands(Some(b'\n')),
    ] {
        assert_eq!(csv(&folder, "n\n1\n", options).check().unwrap_err().class(), "ValueError");
    }
}

#[test]
fn a_skipped_line_goes_on_within_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |text: &str, skip| {
        let frame = csv(&folder, text, CsvOptions::new().skiprows(skip));
        let labels = frame.columns().unwrap();
        (labels, frame.col("b").values::<i64>().unwrap())
    };
    let expected = (vec!["a".to_owned(), "b".to_owned()], vec![Some(2), Some(4)]);
    assert_eq!(rows("made \"by\r\nhand\" today\na,b\n1,2\n3,4\n", 1), expected);
    assert_eq!(rows("\"one\n\"\"\ntwo\n\"\r\nthree\ra,b\n1,2\n3,4\n", 2), expected);
    assert_eq!(rows("one\n\na,b\n1,2\n3,4\n", 2), expected);
    // Longer than a block.
    let long = format!("\"{}\"\na,b\n1,2\n3,4\n", "x\n".repeat(1 << 20));
    assert_eq!(rows(&long, 1), expected);
    let frame = csv(&folder, "\"x\n\"\na,b\n1,2\n3,4,5\n", CsvOptions::new().skiprows(1));
    let error = frame.collect().unwrap_err().to_string();
    assert!(error.contains("line 5"), "{error}");
}

#[test]
fn whole_numbers_of_json_keep_their_digits() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.json");
    fs::write(&name, "{\"b\":18446744073709551615,\"a\":1}\n{\"b\":null,\"a\":2.5}\n{\"b\":7}\n").unwrap();
    let frame = read_json(&name);
    assert_eq!(frame.columns().unwrap(), ["b", "a"]);
    assert_eq!(frame.col("b").dtype().unwrap(), DataType::UInt64);
    let texts = frame.col("b").astype(DataType::Utf8).to_frame();
    for found in each_executor(|executor| texts.collect_on(executor)?.column::<String>("b")) {
        assert_eq!(found, [Some(u64::MAX.to_string()), None, Some("7".to_owned())]);
    }
    fs::write(&name, "{\"f\":1.5}\n{\"f\":9223372036854775808}\n").unwrap();
    assert_eq!(read_json(&name).col("f").values::<f64>().unwrap(), [Some(1.5), Some((1_u64 << 63) as f64)]);
    for (text, reason) in [
        ("{\"n\":18446744073709551616}\n", "64 bits"),
        ("{\"n\":1}\n{\"n\":-9223372036854775809}\n", "64 bits"),
        ("{\"n\":[{\"k\":18446744073709551616}]}\n", "64 bits"),
        ("{\"n\":-1}\n{\"n\":9223372036854775808}\n", "without a sign"),
    ] {
        fs::write(&name, text).unwrap();
        let error = read_json(&name).check().unwrap_err();
        assert_eq!(error.class(), "ValueError", "{text}");
        assert!(error.to_string().contains(reason) && error.to_string().contains("\"n\""), "{error}");
    }
}

#[test]
fn numbers_of_json_have_one_type_over_files_and_within_others() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.json");
    // JavaScript writes whole floats with all their digits.
    fs::write(&name, "{\"f\":1.5}\n{\"f\":100000000000000000000}\n").unwrap();
    assert_eq!(read_json(&name).col("f").values::<f64>().unwrap(), [Some(1.5), Some(1e20)]);
    let nested = "{\"id\":18446744073709551615,\"f\":0.5},\"l\":[[1],[18446744073709551615]]";
    fs::write(&name, format!("{{\"o\":{nested}}}\n{{\"o\":null}}\n")).unwrap();
    let frame = read_json(&name);
    let query = "select cast(o['id'] as varchar) as id, o['f'] as f, cast(l[2][1] as varchar) as l from t";
    for found in each_executor(|executor| sql(query, &[("t", &frame)]).collect_on(executor)) {
        assert_eq!(found.column::<String>("id").unwrap(), [Some(u64::MAX.to_string()), None]);
        assert_eq!(found.column::<f64>("f").unwrap(), [Some(0.5), None]);
        assert_eq!(found.column::<String>("l").unwrap(), [Some(u64::MAX.to_string()), None]);
    }
    let several = folder.path().join("several");
    fs::create_dir(&several).unwrap();
    for (first, second, expected) in [
        ("1.5", "9223372036854775808", DataType::Float64),
        ("7", "9223372036854775808", DataType::UInt64),
        ("null", "7", DataType::Int64),
        ("7", "2.5", DataType::Float64),
    ] {
        fs::write(several.join("a.json"), format!("{{\"x\":{first}}}")).unwrap();
        fs::write(several.join("b.json"), format!("{{\"x\":{second}}}\n")).unwrap();
        let frame = read_json(&several.to_string_lossy());
        assert_eq!(frame.col("x").dtype().unwrap(), expected, "{first} {second}");
        assert_eq!(frame.len().unwrap(), 2);
    }
    fs::write(several.join("b.json"), "{\"x\":1}\n{\"x\":}\n").unwrap();
    let error = read_json(&several.to_string_lossy()).check().unwrap_err();
    assert!(error.class() == "ValueError" && error.to_string().contains("b.json"), "{error}");
}

/// Lines of whole numbers, more than types are found in, then another line; and the number of that line.
fn many_whole_numbers(last: &str) -> (String, usize) {
    let filler = "x".repeat(20_000);
    let of = |n: usize| format!("{{\"a\":{n},\"f\":0.5,\"b\":\"{filler}\"}}\n");
    let text: String = (0..500).map(of).collect();
    // The blocks of a file are whole ones.
    assert!(9 << 20 < text.len());
    (format!("{text}{last}\n"), 501)
}

#[test]
fn later_values_of_json_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.json");
    for (last, is_read) in [
        ("{\"a\":2.5}", false),
        ("{\"a\":9007199254740993.0}", false),
        ("{\"a\":\"7\"}", false),
        ("{\"f\":\"0.5\"}", false),
        ("{\"a\":7.0,\"f\":7}", true),
    ] {
        let (text, line) = many_whole_numbers(last);
        fs::write(&name, text).unwrap();
        let read = read_json(&name).select(["a", "f"]);
        let found = each_executor(|executor| match read.collect_on(executor) {
            Ok(table) => Ok(table.column::<i64>("a")?.pop().flatten()),
            Err(error) => {
                assert_eq!(error.class(), "ValueError", "{error}");
                assert!(error.to_string().contains(&format!("line {line}: ")), "{error}");
                Ok(None)
            }
        });
        let expected = is_read.then_some(7);
        assert!(found.iter().all(|found| *found == expected), "{last}: {found:?}");
    }
}

#[test]
fn json_of_statements_is_that_of_frames() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.json");
    let table = |table: &str| format!("create external table {table} stored as json location '{name}'");
    fs::write(&name, "{\"b\":18446744073709551615,\"a\":1}\n{\"b\":1,\"a\":2}\n").unwrap();
    let mut session = SqlSession::default();
    session.run(&table("t")).unwrap();
    let found = session.run("select * from t order by a").unwrap();
    assert_eq!(found, [[u64::MAX.to_string().as_str(), "1"], ["1", "2"]]);
    // Declared columns are those that are wanted, and a text may be a number.
    session.run(&table("d (a int, c double)")).unwrap();
    fs::write(&name, "{\"b\":1,\"a\":\"7\",\"c\":\"0.5\"}\n").unwrap();
    assert_eq!(session.run("select * from d").unwrap(), [["7", "0.5"]]);
    fs::write(&name, "{\"a\":1}\n{\"a\":2.5}\n").unwrap();
    for query in ["select * from d", "select sum(a) from t"] {
        let error = session.run(query).unwrap_err();
        assert!(error.class() == "ValueError" && error.to_string().contains("line 2: "), "{error}");
    }
    let (text, line) = many_whole_numbers("{\"a\":2.5}");
    fs::write(&name, text).unwrap();
    session.run(&table("late")).unwrap();
    let error = session.run("select max(a) from late").unwrap_err();
    assert!(error.to_string().contains(&format!("line {line}: ")), "{error}");
    let option = "options (format.newline_delimited false)";
    let copied = path(&folder, "copied.json");
    for statement in [
        format!("{} {option}", table("o")),
        format!("copy (select 1 as a) to '{copied}' stored as json {option}"),
    ] {
        let error = session.run(&statement).unwrap_err();
        assert!(error.class() == "NotImplemented" && error.to_string().contains("one array"), "{error}");
    }
    assert!(!fs::exists(&copied).unwrap());
}

#[test]
fn statements_write_the_compression_that_names_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = SqlSession::default();
    for (format, ending, magic) in [
        ("json", "gz", &[0x1f, 0x8b][..]),
        ("csv", "gz", &[0x1f, 0x8b]),
        ("csv", "bz2", b"BZh"),
        ("json", "xz", b"\xfd7zXZ"),
        ("csv", "zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("CSV", "GZ", &[0x1f, 0x8b]),
        ("Json", "Zst", &[0x28, 0xb5, 0x2f, 0xfd]),
    ] {
        let name = path(&folder, &format!("t.{format}.{ending}"));
        let lower = format.to_lowercase();
        let options = if lower == "csv" { "(header, delimiter ',')" } else { "(format json)" };
        for clause in ["", options, &format!("stored as {format}"), &format!("(format {format})")] {
            session.run(&format!("copy (select 3 as a) to '{name}' {clause}")).unwrap();
            assert!(fs::read(&name).unwrap().starts_with(magic), "{name} {clause}");
            let found = session.run(&format!("select a from read_{lower}('{name}')")).unwrap();
            assert_eq!(found, [["3"]], "{name} {clause}");
        }
    }
    for name in ["t.gz", "t.parquet.gz"] {
        let error = session.run(&format!("copy (select 3 as a) to '{}'", path(&folder, name))).unwrap_err();
        assert!(error.to_string().contains("the ending .gz says no format"), "{name}: {error}");
    }
}

#[test]
fn declared_columns_of_json_have_its_values_or_refuse_them() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.json");
    let mut session = SqlSession::default();
    for (dtype, value, expected) in [
        ("decimal(5,2)", "1.23", Some("1.23")),
        ("decimal(5,2)", "\"1.2300\"", Some("1.23")),
        ("decimal(5,2)", "12e-1", Some("1.2")),
        ("decimal(5,2)", "1.239", None),
        ("decimal(5,2)", "\"2.555\"", None),
        ("decimal(5,2)", "1000", None),
        ("real", "1.5", Some("1.5")),
        ("real", "1e300", None),
        ("double", "1.7976931348623157e308", Some("'1.7976931348623157e308'")),
        ("double", "1E400", None),
        ("double", "\"1e400\"", None),
        ("double", "\"0.5\"", Some("0.5")),
        ("bigint", "9223372036854775807", Some("9223372036854775807")),
        ("bigint", "2e3", Some("2000")),
        ("bigint", "-9223372036854775809", None),
        ("bigint", "4503599627370497.5", None),
        ("bigint", "9223372036854775808", None),
        ("tinyint", "127", Some("127")),
        ("tinyint", "128", None),
        ("bigint unsigned", "18446744073709551615", Some("18446744073709551615")),
        ("bigint unsigned", "-1", None),
        ("timestamp(3)", "\"2024-01-01T00:00:00.123\"", Some("'2024-01-01T00:00:00.123'")),
        ("timestamp(3)", "\"2024-01-01T00:00:00.1234\"", None),
        ("date", "\"2024-01-01\"", Some("'2024-01-01'")),
        ("date", "1.5", None),
    ] {
        fs::write(&name, format!("{{\"v\":{value}}}\n")).unwrap();
        session
            .run(&format!("create external table t (v {dtype}) stored as json location '{name}'"))
            .unwrap();
        let found = session.run("select v from t");
        match expected {
            Some(expected) => {
                let expected = session.run(&format!("select cast({expected} as {dtype})")).unwrap();
                assert_eq!(found.unwrap(), expected, "{value} as {dtype}");
            }
            None => {
                let error = found.expect_err(value);
                assert_eq!(error.class(), "ValueError", "{value} as {dtype}: {error}");
                assert!(error.to_string().contains("line 1: "), "{value} as {dtype}: {error}");
            }
        }
        session.run("drop table t").unwrap();
    }
    // Types that are found have room for numbers, too.
    fs::write(&name, "{\"v\":0.5}\n{\"v\":1E400}\n").unwrap();
    assert_eq!(read_json(&name).check().unwrap_err().class(), "ValueError");
}

#[test]
fn decimals_of_csv_are_rounded_as_casts_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.csv");
    fs::write(&name, "v\n1.239\n-2.555\n\n3\n").unwrap();
    let prices = read_csv(&name, CsvOptions::new().dtype("v", DataType::Decimal128(5, 2)));
    let mut session = SqlSession::default();
    session.register("prices", &prices).unwrap();
    assert_eq!(session.run("select v from prices").unwrap(), [["1.24"], ["-2.56"], ["3.00"]]);
}

#[test]
fn json_of_statements_has_the_compression_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let (written, packed) = (path(&folder, "t.json.gz"), path(&folder, "packed"));
    let options = "options (format.compression gzip)";
    let mut session = SqlSession::default();
    session.run(&format!("copy (select 3 as a) to '{written}' stored as json {options}")).unwrap();
    fs::rename(&written, &packed).unwrap();
    session.run(&format!("create external table p stored as json location '{packed}' {options}")).unwrap();
    assert_eq!(session.run("select a from p").unwrap(), [["3"]]);
}

#[test]
fn pipes_are_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = path(&folder, "t.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for name in ["t.csv", "*.csv", ""] {
        let error = read_csv(&path(&folder, name), CsvOptions::new()).check().unwrap_err();
        assert!(error.class() == "NotImplemented" && error.to_string().contains("pipe"), "{name}: {error}");
        assert!(error.to_string().contains("t.csv"), "{name}: {error}");
    }
    let error = SqlSession::default().run(&format!("select * from read_csv('{pipe}')")).unwrap_err();
    assert!(error.sql_place().is_some() && error.to_string().contains("pipe"), "{error}");
}
