//! Files and databases in programs as data: what is written is read again, under pandas' names.

use serde_json::{Value as Json, json};
use std::fs;
use tempfile::TempDir;
use tharsis_frame_programs::{Here, run};

/// The reply to a program over one table, whose rows are cut in parts of three, with files in a folder.
fn reply(folder: &TempDir, prog: Json, out: Json) -> Json {
    let table = json!({"lit": {"k": ["a", "b", "a", "c"], "v": [1, 2, 4, 8]}});
    let request = json!({"ctx": {"chunks": 3}, "in": {"t": table}, "prog": prog, "out": out});
    run(&request, folder.path(), &Here)
}

fn values(reply: &Json, name: &str) -> Json {
    assert_eq!(reply["ok"], true, "{reply}");
    reply["out"][name]["tbl"]["lit"].clone()
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let prog = json!([
        ["_", "pd.DataFrame.to_csv", [{"$": "t"}, "t.csv"], {"index": false}],
        ["csv", "pd.read_csv", ["t.csv"]],
        ["_", "pd.DataFrame.to_parquet", [{"$": "t"}, "p/"], {"partition_cols": ["k"], "compression": "snappy"}],
        ["parquet", "pd.read_parquet", ["p"], {"columns": ["v", "k"]}],
        ["_", "pd.DataFrame.to_feather", [{"$": "t"}, "t.feather"]],
        ["feather", "pd.read_feather", ["t.feather"]],
        ["_", "pd.DataFrame.to_json", [{"$": "t"}, "t.json.gz"], {"orient": "records", "lines": true}],
        ["json", "pd.read_json", ["t.json.gz"], {"lines": true}]
    ]);
    let reply = reply(&folder, prog, json!(["csv", "parquet", "feather", "json"]));
    let whole = json!([["a", "b", "a", "c"], [1, 2, 4, 8]]);
    assert_eq!(values(&reply, "csv"), whole);
    assert_eq!(values(&reply, "feather"), whole);
    assert_eq!(values(&reply, "json"), whole);
    assert_eq!(values(&reply, "parquet"), json!([[1, 4, 2, 8], ["a", "a", "b", "c"]]));
}

#[test]
fn without_a_path_the_text_is_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let prog = json!([
        ["csv", "pd.DataFrame.to_csv", [{"$": "t"}]],
        ["k", "pd.DataFrame.set_index", [{"$": "t"}, "k"]],
        ["named", "pd.DataFrame.to_csv", [{"$": "k"}], {"sep": ";", "header": false}],
        ["json", "pd.DataFrame.to_json", [{"$": "k"}], {"orient": "records", "lines": true}]
    ]);
    let reply = reply(&folder, prog, json!(["csv", "named", "json"]));
    assert_eq!(reply["out"]["csv"], ",k,v\n0,a,1\n1,b,2\n2,a,4\n3,c,8\n", "{reply}");
    assert_eq!(reply["out"]["named"], "a;1\nb;2\na;4\nc;8\n");
    assert_eq!(reply["out"]["json"], "{\"v\":1}\n{\"v\":2}\n{\"v\":4}\n{\"v\":8}\n");
}

#[test]
fn readers_of_csv_have_the_options_of_pandas() {
    let folder = tempfile::tempdir().unwrap();
    let text = "junk\nid;day;x;y\n007;2024-02-29;1,5;-\n008;2024-03-01;2;3\n#;;\n009;;;4\n";
    fs::write(folder.path().join("t.csv"), text).unwrap();
    let options = json!({
        "sep": ";", "header": 1, "index_col": "id", "dtype": {"o": {"id": "str"}}, "parse_dates": ["day"],
        "na_values": ["-"], "comment": "#", "nrows": 3, "encoding": "utf-8", "encoding_errors": "strict"
    });
    let read = json!([["r", "pd.read_csv", ["t.csv"], options]]);
    let found = reply(&folder, read, json!(["r"]));
    let table = &found["out"]["r"]["tbl"];
    assert_eq!(table["index"], json!(["id"]), "{found}");
    assert_eq!(table["columns"], json!(["id", "day", "x", "y"]));
    assert_eq!(table["dtypes"], json!(["str", "datetime64[us]", "str", "int64"]));
    assert_eq!(table["lit"][0], json!(["007", "008", "009"]));
    assert_eq!(table["lit"][2], json!(["1,5", "2", {"na": 1}]));
    assert_eq!(table["lit"][3], json!([{"na": 1}, 3, 4]));
    let input = json!({"in": {"t": {"csv": "t.csv", "opt": {"sep": ";", "header": 1, "usecols": [0, 3],
        "dtype": "str", "comment": "#"}}}, "out": ["t"]});
    let found = run(&input, folder.path(), &Here);
    assert_eq!(values(&found, "t"), json!([["007", "008", "009"], ["-", "3", "4"]]));
}

#[test]
fn failures_with_files_have_the_classes_of_python() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.csv"), "a,b\n1,2\n3,4,5\n").unwrap();
    fs::write(folder.path().join("bad.parquet"), "PAR1").unwrap();
    let class = |prog: Json| reply(&folder, json!([prog]), json!(["r"]))["err"]["class"].clone();
    assert_eq!(class(json!(["r", "pd.read_csv", ["none.csv"]])), "FileNotFoundError");
    // An input may be a URL, which is no name in the folder.
    let input = json!({"in": {"t": {"csv": "ftp://host/t.csv"}}, "out": ["t"]});
    let found = run(&input, folder.path(), &Here);
    assert_eq!(found["err"]["class"], "NotImplemented", "{found}");
    assert_eq!(class(json!(["r", "pd.read_csv", ["bad.csv"]])), "ParserError");
    assert_eq!(class(json!(["r", "pd.read_parquet", ["bad.parquet"]])), "ValueError");
    assert_eq!(class(json!(["r", "pd.read_csv", ["bad.csv"], {"escapechar": "\\"}])), "NotImplemented");
    assert_eq!(class(json!(["r", "pd.read_csv", ["bad.csv"], {"encoding": "utf-7"}])), "NotImplemented");
    assert_eq!(class(json!(["r", "pd.read_csv", ["bad.csv"], {"index_col": true}])), "ValueError");
    assert_eq!(
        class(json!(["r", "pd.DataFrame.to_csv", [{"$": "t"}, "no/such/folder.csv"]])),
        "FileNotFoundError"
    );
    assert_eq!(
        class(json!(["r", "pd.DataFrame.to_parquet", [{"$": "t"}, "ftp://b/t.parquet"]])),
        "NotImplemented"
    );
}

#[test]
fn databases_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let prog = json!([
        ["rows", "pd.DataFrame.to_sql", [{"$": "t"}, "sales", "sqlite:///trade.db"], {"index": false}],
        ["_", "pd.DataFrame.to_sql", [{"$": "t"}, "sales", "sqlite:///trade.db"],
            {"index": false, "if_exists": "append"}],
        ["r", "pd.read_sql", ["select k, sum(v) as v from sales group by k", "sqlite:///trade.db"],
            {"index_col": "k"}],
        ["all", "pd.read_sql_table", ["sales", "sqlite:///trade.db"]]
    ]);
    let reply = reply(&folder, prog, json!(["rows", "r", "all"]));
    assert_eq!(reply["out"]["rows"], 4, "{reply}");
    assert_eq!(values(&reply, "r"), json!([["a", "b", "c"], [10, 4, 16]]));
    assert_eq!(reply["out"]["all"]["tbl"]["lit"][1], json!([1, 2, 4, 8, 1, 2, 4, 8]));
    assert!(folder.path().join("trade.db").exists());
}
