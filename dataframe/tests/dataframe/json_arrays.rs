//! Files of JSON that are one array of objects, and the length of what errors show of files.

use crate::executors::each_executor;
use std::fs;
use tharsis_dataframe::{CsvOptions, DataFrame, Error, LocalExecutor, SqlSession, read_csv, read_json};

fn collected(frame: &DataFrame) -> Vec<Option<i64>> {
    let found = each_executor(|executor| frame.collect_on(executor)?.column::<i64>("a"));
    assert!(found.iter().all(|values| *values == found[0]), "executors differ");
    found[0].clone()
}

#[test]
fn an_array_of_objects_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("t.json").display().to_string();
    for (text, wanted) in [
        ("[{\"a\":1,\"b\":\"x\"},{\"b\":\"[,\",\"a\":2}]", vec![Some(1), Some(2)]),
        ("[{\"a\":1,\"b\":\"x\"}\n,{\"b\":\"y\"}\n]\n", vec![Some(1), None]),
        ("\u{FEFF}\n[\n  {\n    \"a\": 7,\n    \"b\": \"]\\\"\"\n  }\n]", vec![Some(7)]),
    ] {
        fs::write(&name, text).unwrap();
        assert_eq!(collected(&read_json(&name)), wanted, "{text}");
        let mut session = SqlSession::default();
        session.run(&format!("create external table t stored as json location '{name}'")).unwrap();
        let counted = session.run("select count(*) from t").unwrap();
        assert_eq!(counted, [[wanted.len().to_string()]], "{text}");
    }
    fs::write(&name, "[{\"a\":1},\n{\"a\":2}, 3]").unwrap();
    let error = read_json(&name).collect().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    let told = error.to_string();
    assert!(told.contains("t.json: value 3 of the array is no object; rows are read from objects"), "{told}");
}

/// An array of objects on lines of their own.
fn array(rows: usize) -> String {
    let filler = "x".repeat(200);
    let objects: Vec<String> = (0..rows).map(|n| format!("{{\"a\":{n},\n \"b\":\"{filler}\"}}")).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

#[test]
fn large_arrays_are_read_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("b.json").display().to_string();
    let sum = |frame: &DataFrame| {
        let table = frame.collect_on(&LocalExecutor::sized(4, 1 << 30)).unwrap();
        table.column::<i64>("a").unwrap().into_iter().flatten().sum::<i64>()
    };
    let rows = 20_000;
    let text = array(rows);
    assert!(4 << 20 < text.len(), "files of more than 1 MiB are cut");
    fs::write(&name, &text).unwrap();
    let wanted = (rows * (rows - 1) / 2) as i64;
    assert_eq!(sum(&read_json(&name)), wanted);
    // A statement that declares the columns looks at no file before its tasks do.
    let mut session = SqlSession::default();
    let table = format!("create external table t (a bigint) stored as json location '{name}'");
    session.run(&table).unwrap();
    assert_eq!(session.run("select sum(a) from t").unwrap(), [[wanted.to_string()]]);
    // Columns are found in the first file alone, which is one of lines.
    let filler = "x".repeat(200);
    let lines: String = (0..50_000).map(|n| format!("{{\"a\":{n},\"b\":\"{filler}\"}}\n")).collect();
    assert!(8 << 20 < lines.len());
    fs::write(folder.path().join("a.json"), &lines).unwrap();
    let both = read_json(&folder.path().display().to_string());
    assert_eq!(sum(&both), wanted + 50_000 * 49_999 / 2);
    // An object that does not fit has its number, and an array that does not end is told.
    fs::write(&name, text.replace("{\"a\":19999,", "{\"a\":\"text\",")).unwrap();
    fs::remove_file(folder.path().join("a.json")).unwrap();
    let error = session.run("select sum(a) from t").unwrap_err();
    assert!(error.to_string().contains("object 20000: "), "{error}");
    fs::write(&name, &text[..text.len() - 3]).unwrap();
    let error = session.run("select sum(a) from t").unwrap_err();
    assert!(error.to_string().contains("the array does not end; it has 20000 objects"), "{error}");
    // Blocks of blank lines before an array are no objects.
    let blank = "\n".repeat((1 << 20) + 1);
    fs::write(&name, format!("{blank}[{{\"a\":1}},\n{{\"a\":\"text\"}}]")).unwrap();
    let error = session.run("select sum(a) from t").unwrap_err();
    assert!(error.to_string().contains("object 2: "), "{error}");
}

#[test]
fn errors_show_little_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let long = "y".repeat(300_000);
    let mut told: Vec<(&str, Error)> = Vec::new();
    fs::write(path("text.json"), format!("\"{long}\"\n")).unwrap();
    told.push(("a text of JSON", read_json(&path("text.json")).collect().unwrap_err()));
    fs::write(path("line.json"), format!("[[\"{long}\"]]\n")).unwrap();
    told.push(("an array of arrays", read_json(&path("line.json")).collect().unwrap_err()));
    fs::write(path("label.json"), format!("{{\"{long}\":1}}\n{{\"{long}\":{{\"b\":2}}}}\n")).unwrap();
    told.push(("a label of JSON", read_json(&path("label.json")).collect().unwrap_err()));
    fs::write(path("label.csv"), format!("{long},b\n1,2\n")).unwrap();
    let frame = read_csv(&path("label.csv"), CsvOptions::new());
    told.push(("a label of CSV", frame.col("nothing").values::<i64>().unwrap_err()));
    fs::write(path("field.csv"), format!("a\n{long}\n")).unwrap();
    let typed = CsvOptions::new().dtype("a", arrow::datatypes::DataType::Int64);
    told.push(("a field of CSV", read_csv(&path("field.csv"), typed).collect().unwrap_err()));
    let mut session = SqlSession::default();
    session.register("t", &read_csv(&path("field.csv"), CsvOptions::new())).unwrap();
    for query in [
        "select cast(a as int) from t",
        "select cast(a as timestamp) from t",
        "select cast(a as date) from t",
    ] {
        told.push((query, session.run(query).unwrap_err()));
    }
    for (what, error) in told {
        let text = error.to_string();
        assert!(text.len() < 600, "{what}: {} bytes", text.len());
    }
}
