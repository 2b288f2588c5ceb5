//! Files that `COPY` writes.

use std::fs;
use tempfile::TempDir;
use tharsis_dataframe::SqlSession;

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
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
