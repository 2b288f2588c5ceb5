//! Tables of SQLite databases as frames, and frames as tables.

use crate::executors::three_parts;
use arrow::datatypes::DataType;
use rusqlite::Connection;
use std::fs;
use tempfile::TempDir;
use tharsis_dataframe::{DataFrame, IfExists, read_sql};

fn database() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/t.db", folder.path().display());
    let url = format!("sqlite:{path}");
    (folder, path, url)
}

fn n(frame: &DataFrame) -> Vec<i64> {
    frame.col("n").values::<i64>().unwrap().into_iter().flatten().collect()
}

#[test]
fn a_frame_comes_back_as_it_was_written() {
    let (_folder, path, url) = database();
    let texts = DataFrame::from_columns([("t", vec![Some("2024-02-29 10:00:00.5"), None].into())]);
    let frame = DataFrame::from_columns([
        ("n", vec![Some(1), None].into()),
        ("f", vec![Some(0.5), None].into()),
        ("b", vec![Some(true), None].into()),
        ("say \"x\"", vec![Some("it's"), None].into()),
    ]);
    let frame = frame.assign("at", tharsis_dataframe::to_datetime(&texts.col("t")));
    frame.to_sql("a table", &url, IfExists::Fail).unwrap();
    let read = read_sql("a table", &url);
    assert!(read.check().is_err(), "a name with a space is no name alone");
    let read = read_sql("select * from \"a table\"", &url.replace("sqlite:", "sqlite:///"));
    let table = read.collect().unwrap();
    assert_eq!(table.columns(), ["n", "f", "b", "say \"x\"", "at"]);
    assert_eq!(table.column::<i64>("n").unwrap(), [Some(1), None]);
    assert_eq!(table.column::<f64>("f").unwrap(), [Some(0.5), None]);
    assert_eq!(table.column::<i64>("b").unwrap(), [Some(1), None]);
    assert_eq!(table.column::<String>("say \"x\"").unwrap(), [Some("it's".to_owned()), None]);
    assert_eq!(table.column::<String>("at").unwrap(), [Some("2024-02-29 10:00:00.500".to_owned()), None]);
    let types = "select group_concat(type, ' ') from pragma_table_info('a table')";
    let types: String = Connection::open(path).unwrap().query_row(types, [], |row| row.get(0)).unwrap();
    assert_eq!(types, "INTEGER REAL INTEGER TEXT TIMESTAMP");
}

#[test]
fn a_table_that_exists_stays_or_grows_or_goes() {
    let (_folder, _, url) = database();
    three_parts().to_sql("t", &url, IfExists::Fail).unwrap();
    assert_eq!(n(&read_sql("t", &url)), (0..10).collect::<Vec<_>>());
    let error = three_parts().to_sql("t", &url, IfExists::Fail).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    three_parts().head(2).to_sql("t", &url, IfExists::Append).unwrap();
    assert_eq!(n(&read_sql("t", &url)).len(), 12);
    three_parts().tail(1).to_sql("t", &url, IfExists::Replace).unwrap();
    assert_eq!(n(&read_sql("select n from t", &url)), [9]);
}

#[test]
fn a_failed_write_changes_nothing() {
    let (folder, path, url) = database();
    three_parts().to_sql("t", &url, IfExists::Fail).unwrap();
    // A column that the table lacks, and a row that it may not have, after one that it may.
    let other = DataFrame::from_columns([("n", vec![1].into()), ("more", vec![2].into())]);
    let error = other.to_sql("t", &url, IfExists::Append).unwrap_err();
    assert!(error.to_string().contains("more"), "{error}");
    Connection::open(&path).unwrap().execute("create unique index one on t (n)", []).unwrap();
    let twice = DataFrame::concat(&[DataFrame::from_columns([("n", vec![77].into())]), three_parts()], true);
    twice.select(["n"]).to_sql("t", &url, IfExists::Append).unwrap_err();
    assert_eq!(n(&read_sql("t", &url)), (0..10).collect::<Vec<_>>());
    // Too large for a database, which is new.
    let large = DataFrame::from_columns([("n", vec![1].into())]);
    let large = large.assign("n", large.col("n").astype(DataType::UInt64) * u64::MAX);
    let new = format!("sqlite:{}/new.db", folder.path().display());
    large.to_sql("t", &new, IfExists::Fail).unwrap_err();
    assert!(!fs::exists(format!("{}/new.db", folder.path().display())).unwrap());
    // One that another program has made meanwhile has no tables yet, and stays.
    fs::write(folder.path().join("new.db"), "").unwrap();
    large.to_sql("t", &new, IfExists::Fail).unwrap_err();
    assert!(fs::exists(folder.path().join("new.db")).unwrap());
}

#[test]
fn columns_have_the_type_of_their_values() {
    let (_folder, path, url) = database();
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "create table t (i integer, f, void, bytes blob, mixed);
             insert into t values (1, 1, null, x'00ff', 1), (2, 2.5, null, null, 'x');
             create table none (i integer, t text);",
        )
        .unwrap();
    let read = read_sql("select i, f, void, bytes, i || '' as text from t", &url);
    let dtypes: Vec<DataType> = read.dtypes().unwrap().into_iter().map(|(_, dtype)| dtype).collect();
    let expected = [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Binary, DataType::Utf8];
    assert_eq!(dtypes, expected);
    assert_eq!(read.col("f").values::<f64>().unwrap(), [Some(1.0), Some(2.5)]);
    let error = read_sql("t", &url).check().unwrap_err();
    assert_eq!(error.class(), "TypeError", "{error}");
    assert!(error.to_string().contains("mixed"), "{error}");
    let none = read_sql("none", &url).collect().unwrap();
    assert_eq!((none.len(), none.columns()), (0, vec!["i".to_owned(), "t".to_owned()]));
}

#[test]
fn mistakes_are_told() {
    let (folder, path, url) = database();
    let class = |query: &str, url: &str| read_sql(query, url).check().unwrap_err().class();
    assert_eq!(class("select 1", &url), "FileNotFoundError");
    assert!(!fs::exists(&path).unwrap(), "a query makes no database");
    three_parts().to_sql("t", &url, IfExists::Fail).unwrap();
    assert_eq!(class("selec 1", &url), "ValueError");
    assert_eq!(class("select x from t", &url), "ValueError");
    assert_eq!(class("drop table t", &url), "ValueError");
    assert_eq!(class("select 1; drop table t", &url), "ValueError");
    assert_eq!(class("select 1", "postgresql://host/t"), "NotImplemented");
    assert_eq!(n(&read_sql("t", &url)).len(), 10);
    let text = folder.path().join("text.db");
    fs::write(&text, "this is no database, but a text that is long enough for its head".repeat(20)).unwrap();
    let url = format!("sqlite:{}", text.display());
    assert_eq!(class("select * from t", &url), "ValueError");
    let error = three_parts().to_sql("t", &url, IfExists::Fail).unwrap_err();
    assert!(error.to_string().contains("text.db"), "{error}");
    assert!(fs::exists(text).unwrap());
}
