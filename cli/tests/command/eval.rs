//! Programs as data, through the real command: requests on its standard input or in files, replies on its
//! output.

use crate::home::{self, Ended, Home};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Replies to lines of requests, with `folder` as the working directory.
fn replies_in(home: &Home, folder: &Path, lines: &str) -> Vec<Value> {
    let mut command = home.command(["eval"]);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = home::end_of(child);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    parsed(&ended)
}

fn parsed(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn replies(requests: &[Value]) -> Vec<Value> {
    let home = Home::new();
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    replies_in(&home, &home.path(""), &lines)
}

fn reply(request: Value) -> Value {
    replies(&[request]).pop().unwrap()
}

/// The reply to one step over the inputs, whose result is `r`.
fn result(inputs: Value, operation: &str, positional: Value, keywords: Value) -> Value {
    reply(
        json!({"v": 1, "id": 0, "in": inputs, "prog": [["r", operation, positional, keywords]], "out": ["r"]}),
    )
}

fn elements(reply: &Value) -> &Value {
    assert_eq!(reply["ok"], true, "{reply}");
    &reply["out"]["r"]["arr"]["lit"]
}

fn class(reply: &Value) -> &str {
    assert_eq!(reply["ok"], false, "{reply}");
    reply["err"]["class"].as_str().unwrap()
}

#[test]
fn arithmetic_follows_promotion_and_broadcasting() {
    let inputs =
        json!({"x": {"lit": [[1], [2]], "dtype": "int8"}, "y": {"lit": [10, 20, 30], "dtype": "uint8"}});
    let found = result(inputs, "np.add", json!([{"$": "x"}, {"$": "y"}]), json!({}));
    assert_eq!(elements(&found), &json!([[11, 21, 31], [12, 22, 32]]));
    assert_eq!(found["out"]["r"]["arr"]["dtype"], "<i2");
    assert_eq!(found["out"]["r"]["arr"]["shape"], json!([2, 3]));
}

#[test]
fn reductions_take_axes_under_any_chunking() {
    for chunks in [json!("auto"), json!(1), json!(2), json!([3, 1])] {
        let found = reply(json!({
            "ctx": {"chunks": chunks},
            "in": {"x": {"lit": [[1, 2, 3], [4, 5, 6], [7, 8, 10]]}},
            "prog": [["r", "np.sum", [{"$": "x"}], {"axis": -1, "keepdims": true}]],
            "out": ["r"],
        }));
        assert_eq!(elements(&found), &json!([[6], [15], [25]]));
    }
}

#[test]
fn steps_read_steps_and_slices_are_tuples() {
    let found = reply(json!({
        "in": {"x": {"lit": [[1, 2], [3, 4]]}},
        "prog": [
            ["y", "getitem", [{"$": "x"}, {"t": [{"s": [null, null, -1]}, {"e": 1}, {"n": 1}]}], {}],
            ["r", "np.multiply", [{"$": "y"}, {"f": "0x1.8p+1"}], {}],
        ],
        "out": ["r"],
    }));
    assert_eq!(elements(&found), &json!([[[9.0], [12.0]], [[3.0], [6.0]]]));
}

#[test]
fn random_numbers_come_from_the_seed_whatever_the_chunks() {
    let drawn = |seed: u64, chunks: Value| {
        let found = reply(json!({
            "ctx": {"seed": seed, "chunks": chunks, "inline": "raw"},
            "prog": [["r", "rng.random", [[5, 7]], {}]],
            "out": ["r"],
        }));
        assert_eq!(found["ok"], true, "{found}");
        found["out"]["r"]["arr"]["raw"].clone()
    };
    assert_eq!(drawn(3, json!("auto")), drawn(3, json!(2)));
    assert_ne!(drawn(3, json!("auto")), drawn(4, json!("auto")));
}

#[test]
fn a_generator_of_the_program_gives_other_numbers_each_time() {
    let found = reply(json!({
        "prog": [
            ["g", "np.random.default_rng", [42], {}],
            ["a", "rng.normal", [{"$": "g"}], {"loc": 5.0, "size": 4}],
            ["b", "rng.normal", [{"$": "g"}], {"loc": 5.0, "size": 4}],
            ["r", "np.equal", [{"$": "a"}, {"$": "b"}], {}],
        ],
        "out": ["r"],
    }));
    assert_eq!(elements(&found), &json!([false, false, false, false]));
}

#[test]
fn factors_are_named_and_multiply_back() {
    let found = reply(json!({
        "v": 1, "id": "c17",
        "ctx": {"mode": "eager", "nodes": 1, "workers": 2, "memory": "2GiB", "chunks": "auto", "seed": 0, "timeout_s": 60},
        "in": {"x": {"lit": [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]}},
        "prog": [
            ["a", "np.linalg.svd", [{"$": "x"}], {"full_matrices": false}],
            ["u", "getitem", [{"$": "a"}, 0], {}],
            ["s", "getitem", [{"$": "a"}, 1], {}],
            ["v", "getitem", [{"$": "a"}, -1], {}],
            ["us", "np.multiply", [{"$": "u"}, {"$": "s"}], {}],
            ["back", "np.matmul", [{"$": "us"}, {"$": "v"}], {}],
            ["d", "np.subtract", [{"$": "back"}, {"$": "x"}], {}],
            ["e", "np.abs", [{"$": "d"}], {}],
            ["r", "np.less", [{"$": "e"}, 1e-12], {}],
        ],
        "out": ["a", "r"],
        "want": ["values", "plan", "metrics"],
    }));
    assert_eq!(found["id"], "c17");
    assert_eq!(elements(&found), &json!([[true, true], [true, true], [true, true]]));
    assert_eq!(found["out"]["a"]["names"], json!(["U", "S", "Vh"]));
    assert_eq!(found["out"]["a"]["t"][1]["arr"]["lit"], json!([3.0, 2.0]));
    assert!(found["plan"]["peak_bytes_bound"].as_u64().is_some(), "{found}");
    assert!(found["metrics"]["peak_bytes"].as_u64() <= found["plan"]["peak_bytes_bound"].as_u64(), "{found}");
}

#[test]
fn every_bit_is_kept_in_base64() {
    let found = reply(json!({
        "ctx": {"inline": "raw"},
        "in": {"b": {"raw": "AAAAAAAA8D8=", "dtype": "<f8", "shape": [1]}},
        "prog": [["r", "np.negative", [{"$": "b"}], {}]],
        "out": ["r"],
    }));
    assert_eq!(found["out"]["r"]["arr"], json!({"dtype": "<f8", "shape": [1], "raw": "AAAAAAAA8L8="}));
}

#[test]
fn what_does_not_exist_is_said_and_never_guessed() {
    let x = || json!({"x": {"lit": [1.0, 2.0]}});
    let unknown = result(x(), "np.einsum_path", json!(["i->", {"$": "x"}]), json!({}));
    assert_eq!(class(&unknown), "NotImplemented");
    assert_eq!((&unknown["err"]["step"], &unknown["err"]["op"]), (&json!(0), &json!("np.einsum_path")));
    let option = result(x(), "np.nansum", json!([{"$": "x"}]), json!({"casting": "no"}));
    assert_eq!(class(&option), "NotImplemented");
    let table = reply(json!({"in": {"t": {"csv": "t.csv"}}, "out": ["t"]}));
    assert_eq!(class(&table), "FileNotFoundError");
    let nodes = reply(json!({"ctx": {"mode": "lazy", "nodes": 2}, "in": x(), "out": ["x"]}));
    assert_eq!(class(&nodes), "ValueError");
}

#[test]
fn frames_are_computed_wherever_the_program_says() {
    let places = [
        json!({"mode": "lazy"}),
        json!({"mode": "workers", "workers": 2}),
        json!({"mode": "cluster", "nodes": 2}),
    ];
    for place in places {
        let found = reply(json!({
            "ctx": place,
            "in": {"t": {"lit": {"k": ["a", "b", "a"], "v": [1, 2, 4]}}},
            "prog": [
                ["g", "pd.DataFrame.groupby", [{"$": "t"}, "k"], {}],
                ["r", "pd.GroupBy.sum", [{"$": "g"}], {}],
                ["q", "sql", ["select k, max(v) as m from t group by k order by k"], {"tables": {"t": {"$": "t"}}}],
            ],
            "out": ["r", "q"],
        }));
        assert_eq!(found["out"]["r"]["tbl"]["lit"], json!([["a", "b"], [5, 2]]), "{found}");
        assert_eq!(found["out"]["q"]["tbl"]["lit"], json!([["a", "b"], [4, 2]]), "{found}");
    }
}

#[test]
fn a_shape_error_names_the_shapes_and_the_step() {
    let found = reply(json!({
        "id": "c18",
        "in": {"x": {"lit": [[1, 2, 3], [4, 5, 6]]}, "y": {"lit": [1, 2]}},
        "prog": [["z", "np.negative", [{"$": "x"}], {}], ["r", "np.add", [{"$": "z"}, {"$": "y"}], {}]],
        "out": ["r"],
    }));
    assert_eq!(class(&found), "ValueError");
    assert_eq!(
        (&found["id"], &found["err"]["step"], &found["err"]["op"]),
        (&json!("c18"), &json!(1), &json!("np.add"))
    );
    let message = found["err"]["msg"].as_str().unwrap();
    assert!(message.contains("(2,3)") && message.contains("(2,)"), "{message}");
}

#[test]
fn errors_have_the_names_that_numpy_users_know() {
    let x = || json!({"x": {"lit": [[1.0, 2.0], [2.0, 1.0]]}});
    let of =
        |operation: &str, positional: Value| class(&result(x(), operation, positional, json!({}))).to_owned();
    assert_eq!(of("getitem", json!([{"$": "x"}, 5])), "IndexError");
    assert_eq!(of("np.sum", json!([{"$": "nothing"}])), "KeyError");
    assert_eq!(of("np.sum", json!([{"$": "x"}, 2])), "AxisError");
    assert_eq!(of("np.negative", json!([])), "TypeError");
    assert_eq!(of("np.linalg.cholesky", json!([{"$": "x"}])), "LinAlgError");
    assert_eq!(of("np.ones", json!([[1_000_000, 1_000_000]])), "MemoryError");
    assert_eq!(of("np.ones", json!([[-1]])), "ValueError");
    assert_eq!(of("getitem", json!([{"$": "x"}, {"s": [0, 1.5, 1]}])), "TypeError");
}

#[test]
fn malformed_requests_are_answered_and_the_next_is_read() {
    let home = Home::new();
    let lines = concat!(
        "{\"id\": 1, \n",
        "\n",
        "[1, 2]\n",
        "{\"id\": 2, \"prog\": \"np.add\"}\n",
        "{\"id\": 3, \"prog\": [[\"r\", \"np.add\", 7]]}\n",
        "{\"id\": 4, \"v\": 2}\n",
        "{\"id\": 5, \"in\": {\"r\": {\"lit\": [7]}}, \"out\": [\"r\"]}",
    );
    let found = replies_in(&home, &home.path(""), lines);
    let ids: Vec<&Value> = found.iter().map(|reply| &reply["id"]).collect();
    assert_eq!(ids, [&Value::Null, &Value::Null, &json!(2), &json!(3), &json!(4), &json!(5)]);
    assert!(found[..5].iter().all(|reply| class(reply) == "ValueError"), "{found:?}");
    assert_eq!(elements(&found[5]), &json!([7]));
}

#[test]
fn statements_of_sql_are_answered_as_their_runner_sends_them() {
    let home = Home::new();
    let mut command = home.command(["eval", "--sql"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut sent = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |text: &str| -> Value {
        // No line end follows: the runner waits for the reply.
        sent.write_all(text.as_bytes()).unwrap();
        serde_json::from_str(&replies.next().unwrap().unwrap()).unwrap()
    };
    let done = json!({"result": []});
    assert_eq!(ask("{\"sql\":\"create table t (column1 bigint, column2 varchar)\"}"), done);
    assert_eq!(ask("{\"sql\":\"insert into t values (1, 'a'), (2, ''), (3, null)\"}"), done);
    assert!(ask("{\"sql\":\"selec 1\"}")["err"].as_str().unwrap().contains("selec"));
    assert!(ask("{\"sql\":\"select 1 / column1 from t where column1 / 0 = 1\"}")["err"].is_string());
    assert!(ask("{\"statement\":1}")["err"].is_string());
    assert!(ask("no statement\n")["err"].is_string());
    assert_eq!(ask("{\"sql\":\"create view v as select * from t where column1 > 1\"}\n"), done);
    let rows = json!({"result": [["2", "(empty)"], ["3", "NULL"]]});
    assert_eq!(ask("{\"sql\":\"select * from v order by 1\"}"), rows);
    drop(sent);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    let found = reply(json!({
        "ctx": {"timeout_s": 0.2},
        "prog": [["x", "rng.random", [[1_000_000, 1_000_000]], {}], ["r", "np.sum", [{"$": "x"}], {}]],
        "out": ["r"],
    }));
    assert_eq!(class(&found), "Timeout");
}

#[test]
fn large_results_go_to_files_that_can_be_read_again() {
    let home = Home::new();
    let wrote = json!({
        "prog": [["../r", "np.arange", [20_000], {}]],
        "out": ["../r"],
        "dir": "out/c17",
    });
    let found = replies_in(&home, &home.path(""), &format!("{wrote}\n"));
    let array = &found[0]["out"]["../r"]["arr"];
    assert_eq!((&array["shape"], &array["dtype"]), (&json!([20_000]), &json!("<i8")), "{found:?}");
    let file = array["npy"].as_str().unwrap();
    let read = json!({
        "in": {"x": {"npy": file}},
        "prog": [["r", "np.sum", [{"$": "x"}], {}]],
        "out": ["r"],
    });
    let found = replies_in(&home, &home.path("out/c17"), &format!("{read}\n"));
    assert_eq!(elements(&found[0]), &json!(199_990_000));
}

#[test]
fn files_of_a_folder_are_answered_by_name() {
    let home = Home::new();
    std::fs::create_dir(home.path("programs")).unwrap();
    let program = |id: &str| json!({"id": id, "in": {"r": {"lit": [1]}}, "out": ["r"]});
    let file = |name: &str, text: String| std::fs::write(home.path("programs").join(name), text).unwrap();
    file("b.json", serde_json::to_string_pretty(&program("b")).unwrap());
    file("a.jsonl", format!("{}\n{}\n", program("a1"), program("a2")));
    file("notes.txt", "not a program".to_owned());
    let ended = home.run(["eval", &home.text("programs")]);
    let ids: Vec<Value> = parsed(&ended).iter().map(|reply| reply["id"].clone()).collect();
    assert_eq!((ended.status, ids), (0, vec![json!("a1"), json!("a2"), json!("b")]));
    home.run(["eval", &home.text("nowhere")]).assert_refused(2, &["nowhere", "No such file"]);
}

#[test]
fn the_list_has_a_line_for_each_operation() {
    let home = Home::new();
    let listed = parsed(&home.run(["eval", "--list"]));
    for name in
        ["np.add", "np.sum", "getitem", "rng.random", "np.linalg.svd", "sk.linear_model.Ridge", "sk.fit"]
    {
        let row = listed.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        assert!(row["signature"].as_str().unwrap().starts_with('(') && row["doc"].is_string(), "{row}");
    }
}

#[test]
fn estimators_are_objects_of_programs() {
    let found = reply(json!({
        "in": {"x": {"lit": [[0.0], [1.0], [2.0]]}, "y": {"lit": [1.0, 3.0, 5.0]}},
        "prog": [
            ["m", "sk.linear_model.LinearRegression", []],
            ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
            ["r", "sk.predict", [{"$": "m"}, [[4.0]]]],
        ],
        "out": ["r"],
    }));
    let predicted = elements(&found)[0].as_f64().unwrap();
    assert!((predicted - 9.0).abs() < 1e-9, "{found}");
    let unfitted = json!([["m", "sk.linear_model.Ridge", []], ["r", "sk.predict", [{"$": "m"}, [[4.0]]]]]);
    assert_eq!(class(&reply(json!({"prog": unfitted, "out": ["r"]}))), "NotFittedError");
}

#[test]
fn workers_and_nodes_give_what_threads_give() {
    let program = |ctx: Value| {
        json!({
            "ctx": ctx,
            "prog": [
                ["x", "rng.random", [[60, 20]], {}],
                ["m", "np.greater", [{"$": "x"}, 0.25], {}],
                ["y", "getitem", [{"$": "x"}, {"$": "m"}], {}],
                ["s", "np.sum", [{"$": "y"}], {}],
                ["t", "np.transpose", [{"$": "x"}], {}],
                ["r", "np.matmul", [{"$": "t"}, {"$": "x"}], {}],
            ],
            "out": ["s", "r"],
        })
    };
    let found = replies(&[
        program(json!({"mode": "lazy", "chunks": 20, "inline": "raw", "memory": "64MiB"})),
        program(json!({"mode": "workers", "workers": 2, "chunks": 20, "inline": "raw", "memory": "64MiB"})),
        program(
            json!({"mode": "cluster", "nodes": 2, "workers": 1, "chunks": 20, "inline": "raw", "memory": "64MiB"}),
        ),
    ]);
    for reply in &found {
        assert_eq!(reply["ok"], true, "{reply}");
        assert_eq!(reply["out"], found[0]["out"]);
    }
}

/// A program over 64 MB on two workers, where `/dev/shm` has the given size. None, and a line on the
/// terminal, where this user may not mount.
fn reply_with_shm(home: &Home, bytes: u64) -> Option<Value> {
    let request = json!({
        "ctx": {"mode": "workers", "workers": 2, "chunks": 2_000_000, "memory": "512MiB"},
        "prog": [
            ["x", "np.ones", [[8_000_000]], {}],
            ["y", "np.cumsum", [{"$": "x"}], {}],
            ["r", "np.max", [{"$": "y"}], {}],
        ],
        "out": ["r"],
    });
    let eval = home.command(["eval"]);
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=$0 none /dev/shm || exit 99; exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, &bytes.to_string()]);
    command.arg(eval.get_program()).args(eval.get_args());
    for (name, value) in eval.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // If the command may not mount, no process reads its input.
    let _written = writeln!(child.stdin.take().unwrap(), "{request}");
    let ended = home::end_of(child);
    if ended.status == 99 || ended.err.contains("unshare failed") {
        tharsis_trials::not_run(format_args!("no file system could be mounted: {}", ended.err.trim()));
        return None;
    }
    assert_eq!(ended.status, 0, "{}", ended.err);
    parsed(&ended).pop()
}

/// Objects are not in `/dev/shm`, but the rings of clients are; if it is too small, the error names the
/// needed size.
#[test]
fn d15_a_small_dev_shm_is_enough_or_named() {
    let home = Home::new();
    let Some(found) = reply_with_shm(&home, 16 << 20) else { return };
    assert_eq!(elements(&found), &json!(8e6));
    let refused = reply_with_shm(&home, 1 << 20).unwrap();
    assert_eq!(class(&refused), "RuntimeError");
    let message = refused["err"]["msg"].as_str().unwrap();
    assert!(message.contains("/dev/shm") && message.contains("available"), "{message}");
}

/// The blocks of a page with this word behind the fence.
fn blocks(page: &str, word: &str) -> Vec<Value> {
    let begin = format!("```{word}\n");
    let parts = page.split(&begin).skip(1).map(|rest| rest.split_once("```").unwrap().0);
    parts.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect()
}

/// Whether a reply says all that the page does.
fn says(reply: &Value, page: &Value) -> bool {
    match (reply, page) {
        (Value::Object(reply), Value::Object(page)) => {
            page.iter().all(|(key, value)| reply.get(key).is_some_and(|found| says(found, value)))
        }
        (reply, page) => reply == page,
    }
}

#[test]
fn the_requests_of_the_page_have_the_replies_of_the_page() {
    let page = std::fs::read_to_string(home::root().join("docs/programs.md")).unwrap();
    let (requests, replies) = (blocks(&page, "json"), blocks(&page, "reply"));
    assert_eq!(requests.len(), replies.len());
    for (request, wanted) in requests.into_iter().zip(replies) {
        let found = reply(request);
        assert!(says(&found, &wanted), "{found}\nis not what the page says: {wanted}");
    }
    // The keys that the page has are those that there are.
    for key in
        ["v", "id", "in", "prog", "out", "ctx", "dir", "want", "mode", "workers", "nodes", "memory", "chunks"]
    {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
    for key in ["seed", "timeout_s", "inline", "errstate"] {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}
