//! Files that `COPY` writes.

use std::fs;
use tempfile::TempDir;
use tharsis_dataframe::{SqlSession, read_parquet};

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

#[test]
fn copies_take_options_in_parentheses() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = SqlSession::default();
    session.run("create table t as values (1, 'x'), (2, null)").unwrap();
    let name = path(&folder, "t.csv");
    session.run(&format!("copy t to '{name}' (header false, delimiter ';', null '-')")).unwrap();
    assert_eq!(fs::read_to_string(&name).unwrap(), "1;x\n2;-\n");
    session.run(&format!("copy (select column1 as a from t) to '{name}' (header)")).unwrap();
    assert_eq!(fs::read_to_string(&name).unwrap(), "a\n1\n2\n");
    let binary = path(&folder, "t.data");
    session.run(&format!("copy t to '{binary}' with (format parquet, compression gzip)")).unwrap();
    assert_eq!(read_parquet(&binary).col("column1").values::<i64>().unwrap(), [Some(1), Some(2)]);
    let parts = path(&folder, "parts/");
    session.run(&format!("copy t to '{parts}' (format parquet, partition_by (column1))")).unwrap();
    assert!(fs::exists(path(&folder, "parts/column1=2")).unwrap());
}

#[test]
fn copies_to_csv_have_the_times_of_frames_and_no_lists() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.csv");
    let mut session = SqlSession::default();
    session.run(&format!("copy (select timestamp '2024-03-30 01:02:03' as t) to '{name}'")).unwrap();
    assert_eq!(fs::read_to_string(&name).unwrap(), "t\n2024-03-30 01:02:03\n");
    let error = session.run(&format!("copy (select 1 as n, [1, 2] as l) to '{name}'")).unwrap_err();
    assert!(error.class() == "NotImplemented" && error.to_string().contains("column \"l\""), "{error}");
    assert_eq!(fs::read_to_string(&name).unwrap(), "t\n2024-03-30 01:02:03\n", "it stays");
}

#[test]
fn a_form_of_times_is_one_of_moments_too() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.csv");
    let mut session = SqlSession::default();
    let times = "timestamp '2024-03-30 01:02:03' as t, timestamptz '2024-03-30 01:02:03Z' as m, 'x' as s";
    let options = r"(timestampformat '%d/%m/%Y', delimiter E'\t')";
    session.run(&format!("copy (select {times}) to '{name}' {options}")).unwrap();
    assert_eq!(fs::read_to_string(&name).unwrap(), "t\tm\ts\n30/03/2024\t30/03/2024\tx\n");
    session.run(&format!("copy (select 1 = 1 as b) to '{name}'")).unwrap();
    assert_eq!(fs::read_to_string(&name).unwrap(), "b\ntrue\n");
}

#[test]
fn folders_of_missing_values_are_those_of_hive() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = SqlSession::default();
    session
        .run(
            "create table t (id int, n int, x double, d date, s text, b boolean, m timestamp) as values \
             (1, 0, 0.5, date '1970-01-01', '', false, timestamp '1970-01-01 00:00:00'), \
             (2, null, null, null, null, null, null)",
        )
        .unwrap();
    for (key, of_first) in
        [("n", "n=0"), ("x", "x=0.5"), ("d", "d=1970-01-01"), ("s", "s="), ("b", "b=false"), ("m", "")]
    {
        let parts = path(&folder, &format!("{key}/"));
        session
            .run(&format!(
                "copy (select id, {key} from t) to '{parts}' (format parquet, partition_by ({key}))"
            ))
            .unwrap();
        assert!(fs::exists(format!("{parts}{of_first}")).unwrap(), "{key}");
        assert!(fs::exists(format!("{parts}{key}=__HIVE_DEFAULT_PARTITION__")).unwrap(), "{key}");
        let missing = session.run(&format!("select id from read_parquet('{parts}') where {key} is null"));
        assert_eq!(missing.unwrap(), [["2"]], "{key}");
    }
    let two = path(&folder, "two/");
    session.run(&format!("copy t to '{two}' (format json, partition_by (s, n))")).unwrap();
    assert!(fs::exists(format!("{two}s=__HIVE_DEFAULT_PARTITION__/n=__HIVE_DEFAULT_PARTITION__")).unwrap());
    let none =
        format!("copy (select n from t) to '{}' (format parquet, partition_by (n))", path(&folder, "none/"));
    assert_eq!(session.run(&none).unwrap_err().class(), "ValueError");
    assert!(!fs::exists(path(&folder, "none")).unwrap());
}

#[test]
fn columns_of_folders_that_files_keep_have_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = SqlSession::default();
    let parts = path(&folder, "parts/");
    session.run("set datafusion.execution.keep_partition_by_columns = true").unwrap();
    let copy = format!("copy (select 1 as id, 7 as n) to '{parts}' (format parquet, partition_by (n))");
    session.run(&copy).unwrap();
    let file = fs::read_dir(format!("{parts}n=7")).unwrap().next().unwrap().unwrap().path();
    let query = format!("select id, n + 1 from read_parquet('{}')", file.display());
    assert_eq!(session.run(&query).unwrap(), [["1", "8"]]);
}

#[test]
fn a_folder_with_files_is_replaced_or_added_to_as_its_copy_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = SqlSession::default();
    let parts = path(&folder, "parts/");
    let copy = |row: &str, options: &str| {
        format!("copy (select {row} as k) to '{parts}' (format parquet, partition_by (k){options})")
    };
    let rows = format!("select n from read_parquet('{parts}') order by n");
    session.run(&copy("1 as n, 'x'", "")).unwrap();
    for options in ["", ", overwrite false"] {
        let error = session.run(&copy("2 as n, 'y'", options)).unwrap_err();
        assert_eq!(error.class(), "FileExistsError");
        assert!(error.to_string().contains("(overwrite)"), "{error}");
    }
    assert_eq!(session.run(&rows).unwrap(), [["1"]]);
    session.run(&copy("2 as n, 'x'", ", append")).unwrap();
    assert_eq!(session.run(&rows).unwrap(), [["1"], ["2"]]);
    session.run(&copy("1 / 0 as n, 'x'", ", overwrite")).unwrap_err();
    assert_eq!(session.run(&rows).unwrap(), [["1"], ["2"]]);
    session.run(&copy("3 as n, 'y'", ", overwrite")).unwrap();
    assert_eq!(session.run(&rows).unwrap(), [["3"]]);
    assert!(!fs::exists(format!("{parts}k=x")).unwrap());
    fs::write(format!("{parts}notes.txt"), "no rows").unwrap();
    let error = session.run(&copy("4 as n, 'y'", ", overwrite")).unwrap_err();
    assert!(error.to_string().contains("notes.txt"), "{error}");
    assert_eq!(fs::read_to_string(format!("{parts}notes.txt")).unwrap(), "no rows");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let appended = format!("copy (select 1) to '{}' (append)", path(&folder, "a.csv"));
    let error = session.run(&appended).unwrap_err();
    assert_eq!(error.class(), "ValueError");
}

#[test]
fn tables_of_folders_take_no_missing_values_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = path(&folder, "e/");
    fs::create_dir(&place).unwrap();
    let mut session = SqlSession::default();
    let made = format!(
        "create external table e (id int, k int) stored as parquet partitioned by (k) location '{place}'"
    );
    session.run(&made).unwrap();
    session.run("insert into e values (1, 0), (null, 7)").unwrap();
    let error = session.run("insert into e values (2, 5), (3, null)").unwrap_err();
    assert!(error.class() == "ValueError" && error.to_string().contains("value 2 of a row"), "{error}");
    assert_eq!(session.run("select count(*), count(id), max(k) from e").unwrap(), [["2", "1", "7"]]);
}
