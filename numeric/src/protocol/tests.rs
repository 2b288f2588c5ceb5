//! Tests of requests and their replies.

use super::*;

fn replies(requests: &str) -> Vec<Json> {
    let mut out = Vec::new();
    eval(requests.as_bytes(), &mut out, Path::new("."), &super::Here).unwrap();
    out.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn requests_are_answered_in_order_and_failures_do_not_end_the_stream() {
    let found = replies(concat!(
        r#"{"v":1,"id":"a","in":{"x":{"lit":[[1,2],[3,4]]}},"prog":[["y","np.add",[{"$":"x"},1],{}]],"out":["y"]}"#,
        "\n not json\n\n",
        r#"{"id":"b","prog":[["y","np.einsum_path",["i,i",[1],[1]],{}]],"out":["y"]}"#,
        "\n",
        r#"{"id":"c","in":{"x":{"lit":[1.5,{"f":"nan"}]}},"prog":[["y","nd.sum",[{"$":"x"}],{"casting":"no"}]],"out":["y"]}"#,
        "\n",
        r#"{"id":"d","in":{"x":{"lit":[1,2,3]}},"prog":[["y","np.matmul",[{"$":"x"},[1,2]],{}]],"out":["y"]}"#,
        "\n",
    ));
    assert_eq!(found[0]["out"]["y"]["arr"]["lit"], json!([[2, 3], [4, 5]]));
    assert_eq!(found[0]["out"]["y"]["arr"]["dtype"], "<i8");
    assert_eq!(found[1]["ok"], false);
    assert_eq!(found[2]["err"]["class"], "NotImplemented");
    assert_eq!(found[3]["err"]["class"], "NotImplemented");
    assert_eq!((&found[4]["err"]["class"], &found[4]["err"]["step"]), (&json!("ValueError"), &json!(0)));
}

#[test]
fn keys_that_nobody_knows_are_refused_with_the_nearest() {
    for (request, said) in [
        (r#"{"in":{"x":{"lit":[1]}},"prog":[],"otu":["x"]}"#, r#"a request has no key "otu""#),
        (r#"{"ctx":{"chunk":2},"in":{"x":{"lit":[1]}},"out":["x"]}"#, r#"did you mean "chunks"?"#),
        (r#"{"in":{"x":{"lit":[1],"dtpye":"int8"}},"out":["x"]}"#, r#"the input "x" has no key "dtpye""#),
        (r#"{"in":{"x":{"lit":[1],"shape":[1]}},"out":["x"]}"#, r#"the input "x" has no key "shape""#),
        (r#"{"in":{"x":{"npy":"x.npy","dtype":"int8"}},"out":["x"]}"#, r#"the input "x" has no key "dtype""#),
        (r#"{"in":{"x":{"lit":[1],"note":"mine"}},"out":["x"]}"#, "it has lit, dtype"),
    ] {
        let reply = &replies(request)[0];
        assert_eq!(reply["err"]["class"], "ValueError", "{reply}");
        assert!(reply["err"]["msg"].as_str().unwrap().contains(said), "{reply}");
    }
}

#[test]
fn a_request_of_several_lines_is_told_that_it_is() {
    let found = replies("{\"out\":\n []}\n{\"id\": 1}\n");
    assert!(found[0]["err"]["msg"].as_str().unwrap().contains("a request is one line"), "{found:?}");
    assert_eq!(found[2]["id"], 1);
}

#[test]
fn chunks_of_zero_and_impossible_memory_are_refused() {
    let with = |ctx: &str| {
        let request = format!(r#"{{"ctx":{ctx},"in":{{"x":{{"lit":[1,2]}}}},"prog":[],"out":["x"]}}"#);
        replies(&request)[0]["err"]["class"].clone()
    };
    assert_eq!(with(r#"{"chunks":0}"#), "ValueError");
    assert_eq!(with(r#"{"chunks":-3}"#), "ValueError");
    assert_eq!(with(r#"{"memory":0}"#), "ValueError");
    assert_eq!(with(r#"{"memory":"much"}"#), "ValueError");
    assert_eq!(with("{}"), Json::Null);
}

#[test]
fn every_operation_is_listed_once() {
    let mut out = Vec::new();
    list(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let names: Vec<Json> =
        text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["name"].clone()).collect();
    assert!(120 < names.len());
    let mut unique: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn concatenation_without_an_axis_takes_arrays_of_any_shape_flat() {
    let request = concat!(
        r#"{"in":{"x":{"lit":[[1,2],[3,4]]},"s":{"lit":7}},"#,
        r#""prog":[["y","np.concatenate",[[{"$":"x"},{"$":"s"},{"$":"x"}]],{"axis":null}]],"out":["y"]}"#,
    );
    assert_eq!(replies(request)[0]["out"]["y"]["arr"]["lit"], json!([1, 2, 3, 4, 7, 1, 2, 3, 4]));
}

#[test]
fn a_list_as_index_chooses_rows_and_a_tuple_an_element() {
    let with = |index: &str| {
        let request = format!(
            r#"{{"in":{{"x":{{"lit":[[1,2],[3,4]]}}}},"prog":[["y","getitem",[{{"$":"x"}},{index}],{{}}]],"out":["y"]}}"#
        );
        let reply = &replies(&request)[0];
        if reply["ok"] == json!(true) {
            reply["out"]["y"]["arr"]["lit"].clone()
        } else {
            reply["err"]["class"].clone()
        }
    };
    assert_eq!(with("[1, 0]"), json!([[3, 4], [1, 2]]));
    assert_eq!(with("[-1, 0, 0, 1]"), json!([[3, 4], [1, 2], [1, 2], [3, 4]]));
    assert_eq!(with("[]"), json!([]));
    assert_eq!(with("[false, true]"), json!([[3, 4]]));
    assert_eq!(with("[2]"), "IndexError");
    assert_eq!(with("[[0], [1]]"), json!([[[1, 2]], [[3, 4]]]));
    assert_eq!(with(r#"{"t":[1, 0]}"#), json!(3));
    assert_eq!(with(r#"{"t":[[1, 0], 0]}"#), json!([3, 1]));
}

#[test]
fn numbers_that_a_dtype_cannot_hold_are_refused_as_by_numpy() {
    let with = |operation: &str, arguments: &str, dtype: &str| {
        let request = format!(
            r#"{{"in":{{}},"prog":[["y","np.{operation}",{arguments},{{"dtype":{{"dt":"{dtype}"}}}}]],"out":["y"]}}"#
        );
        let reply = &replies(&request)[0];
        if reply["ok"] == json!(true) {
            reply["out"]["y"]["arr"]["lit"].clone()
        } else {
            reply["err"]["class"].clone()
        }
    };
    assert_eq!(with("array", "[[1, 2, 300]]", "int8"), "OverflowError");
    assert_eq!(with("array", "[[1, 2, -1]]", "uint64"), "OverflowError");
    assert_eq!(with("array", r#"[[{"f":"nan"}]]"#, "int8"), "ValueError");
    assert_eq!(with("array", r#"[[{"f":"inf"}]]"#, "int8"), "OverflowError");
    assert_eq!(with("array", "[[1.7, -1.7, 127.9]]", "int8"), json!([1, -1, 127]));
    assert_eq!(with("array", "[[128.0]]", "int8"), "OverflowError");
    assert_eq!(with("array", r#"[[{"c":[0.0, 1.0]}]]"#, "int8"), "TypeError");
    assert_eq!(with("array", r#"[[{"c":[0.0, 1.0]}]]"#, "float64"), "TypeError");
    assert_eq!(with("full", r#"[{"t":[1]}, 300]"#, "int8"), "OverflowError");
    assert_eq!(with("full", r#"[{"t":[1]}, 300.0]"#, "int8"), json!([44]));
    assert_eq!(with("arange", "[-1, 2]", "uint8"), "OverflowError");
    assert_eq!(with("arange", "[0, 500, 100]", "int8"), json!([0, 100, -56, 44, -112]));
    assert_eq!(with("arange", r#"[{"f":"nan"}]"#, "float64"), "ValueError");
    assert_eq!(with("arange", "[10, -2, -2.5]", "int64"), json!([10, 7, 4, 1, -2]));
    assert_eq!(with("arange", "[0, 2, 0.5]", "int64"), json!([0, 0, 0, 0]));
    assert_eq!(with("linspace", "[1, -2, 5]", "int64"), json!([1, 0, -1, -2, -2]));
    // Beyond 2^53, where neighbouring whole numbers are the same float.
    let beyond: i64 = (1 << 53) + 1;
    assert_eq!(
        with("arange", &format!("[{beyond}, {}]", beyond + 3), "int64"),
        json!([beyond, beyond + 1, beyond + 2])
    );
    assert_eq!(
        with("arange", &format!("[{}, {}]", i64::MAX - 2, i64::MAX), "int64"),
        json!([i64::MAX - 2, i64::MAX - 1])
    );
    let literal = r#"{"in":{"x":{"lit":[1,300],"dtype":"int8"}},"prog":[],"out":["x"]}"#;
    assert_eq!(replies(literal)[0]["err"]["class"], "OverflowError");
}
