//! Programs as data: replies, mistakes, and what they share with pandas.

use serde_json::{Value as Json, json};
use tharsis_dataframe::protocol::{Here, list, run};

/// The reply to a program over one table, whose rows are cut in parts of three.
fn reply(prog: Json, out: &str) -> Json {
    let table = json!({"lit": {"k": ["a", "b", "a", "c"], "v": [1, 2, 4, 8]}});
    let request = json!({
        "id": "c1", "ctx": {"chunks": 3}, "in": {"t": table}, "prog": prog, "out": [out]
    });
    run(&request, ".".as_ref(), &Here)
}

#[test]
fn a_program_gets_a_table_with_its_index() {
    let prog = json!([
        ["g", "pd.DataFrame.groupby", [{"$": "t"}, "k"], {"sort": false}],
        ["r", "pd.GroupBy.agg", [{"$": "g"}, {"o": {"v": ["sum", "count"]}}], {}]
    ]);
    let reply = reply(prog, "r");
    let table = &reply["out"]["r"]["tbl"];
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(table["index"], json!(["k"]));
    assert_eq!(table["columns"], json!(["k", "v_sum", "v_count"]));
    assert_eq!(table["dtypes"], json!(["str", "int64", "int64"]));
    assert_eq!(table["lit"], json!([["a", "b", "c"], [5, 2, 8], [2, 1, 1]]));
}

#[test]
fn a_condition_keeps_labels_and_a_series_has_a_name() {
    let prog = json!([
        ["v", "getitem", [{"$": "t"}, "v"]],
        ["big", "pd.Series.gt", [{"$": "v"}, 1]],
        ["r", "getitem", [{"$": "v"}, {"$": "big"}]]
    ]);
    let reply = reply(prog, "r");
    let table = &reply["out"]["r"]["tbl"];
    assert_eq!(table["name"], "v", "{reply}");
    assert_eq!(table["names"], json!([null]));
    assert_eq!(table["lit"], json!([[1, 2, 3], [2, 4, 8]]));
}

#[test]
fn mistakes_have_the_class_and_the_step() {
    let missing = reply(json!([["r", "getitem", [{"$": "t"}, "w"]]]), "r");
    assert_eq!(missing["err"]["class"], "KeyError");
    assert_eq!(missing["err"]["step"], 0);
    let unknown = reply(json!([["r", "pd.DataFrame.hed", [{"$": "t"}]]]), "r");
    assert_eq!(unknown["err"]["class"], "NotImplemented");
    let message = unknown["err"]["msg"].as_str().unwrap();
    assert!(message.ends_with("did you mean pd.DataFrame.head?"), "{message}");
    let option = reply(json!([["r", "pd.DataFrame.head", [{"$": "t"}], {"m": 3}]]), "r");
    assert_eq!(option["err"]["class"], "NotImplemented");
    let tensors = reply(json!([["r", "np.linalg.svd", [{"$": "t"}]]]), "r");
    assert_eq!(tensors["err"]["class"], "NotImplemented");
    assert_eq!(run(&json!(3), ".".as_ref(), &Here)["err"]["class"], "ValueError");
}

#[test]
fn a_list_has_one_line_for_each_operation() {
    let mut lines = Vec::new();
    list(&mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let mut names: Vec<Json> =
        lines.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["name"].clone()).collect();
    let count = names.len();
    names.sort_by_key(Json::to_string);
    names.dedup();
    assert_eq!(names.len(), count, "each name once");
}

#[test]
fn large_tables_are_files_and_files_are_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<i64> = (0..1500).collect();
    let request = json!({
        "in": {"t": {"lit": {"n": rows}}}, "dir": "out",
        "prog": [["r", "pd.DataFrame.set_index", [{"$": "t"}, "n"]]], "out": ["t"]
    });
    let reply = run(&request, folder.path(), &Here);
    assert_eq!(reply["out"]["t"]["tbl"], json!({"index": [], "arrow": "t.arrow"}), "{reply}");
    let again = json!({
        "in": {"t": {"arrow": "out/t.arrow", "index": []}},
        "prog": [["n", "getitem", [{"$": "t"}, "n"]], ["s", "pd.Series.sum", [{"$": "n"}]]], "out": ["s"]
    });
    assert_eq!(run(&again, folder.path(), &Here)["out"]["s"], 1_124_250);
}

#[test]
fn sql_runs_over_named_tables() {
    let tables = json!({"o": {"t": {"$": "t"}}});
    let query = "select k, sum(v) as s from t group by k order by s desc";
    let reply = reply(json!([["r", "sql", [query], {"tables": tables}]]), "r");
    assert_eq!(reply["out"]["r"]["tbl"]["lit"], json!([["c", "a", "b"], [8, 5, 2]]), "{reply}");
}
