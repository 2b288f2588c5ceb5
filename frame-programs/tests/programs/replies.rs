//! Programs as data: replies, mistakes, and what they share with pandas.

use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_dataframe::{Error, Executor, Limits, LocalExecutor, Outcome, Stages, offer_executor};
use tharsis_frame_programs::{Failure, Here, PlaceRequest, Places, list, run};

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
fn texts_times_and_steps_have_pandas_names() {
    let prog = json!([
        ["k", "getitem", [{"$": "t"}, "k"]],
        ["v", "getitem", [{"$": "t"}, "v"]],
        ["upper", "pd.Series.str.upper", [{"$": "k"}]],
        ["padded", "pd.Series.str.rjust", [{"$": "upper"}, 3], {"fillchar": "-"}],
        ["sums", "pd.Series.cumsum", [{"$": "v"}]],
        ["before", "pd.Series.shift", [{"$": "sums"}], {"periods": 2}],
        ["days", "pd.date_range", ["2024-02-28"], {"periods": 4}],
        ["ranks", "pd.Series.rank", [{"$": "k"}], {"method": "min", "ascending": false}],
        ["r", "pd.DataFrame.assign", [{"$": "t"}], {"padded": {"$": "padded"}, "before": {"$": "before"},
            "ranks": {"$": "ranks"}}],
        ["d", "pd.Series.dt.day", [{"$": "days"}]],
        ["all", "pd.DataFrame.assign", [{"$": "r"}], {"day": {"$": "d"}}]
    ]);
    let found = reply(prog, "all");
    let table = &found["out"]["all"]["tbl"];
    assert_eq!(table["columns"], json!(["k", "v", "before", "padded", "ranks", "day"]), "{found}");
    assert_eq!(table["lit"][2], json!([{"na": 1}, {"na": 1}, 1, 3]));
    assert_eq!(table["lit"][3], json!(["--A", "--B", "--A", "--C"]));
    assert_eq!(table["lit"][4], json!([3.0, 2.0, 3.0, 1.0]));
    assert_eq!(table["lit"][5], json!([28, 29, 1, 2]));
    let wrong =
        reply(json!([["v", "getitem", [{"$": "t"}, "v"]], ["r", "pd.Series.str.upper", [{"$": "v"}]]]), "r");
    assert_eq!(wrong["err"]["class"], "TypeError", "{wrong}");
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

/// The columns of a table that a program over `t` and `u` ends with.
fn columns(inputs: Json, prog: Json) -> Json {
    let out = prog.as_array().unwrap().last().unwrap()[0].clone();
    let reply =
        run(&json!({"ctx": {"chunks": 2}, "in": inputs, "prog": prog, "out": [out]}), ".".as_ref(), &Here);
    let out = reply["out"].as_object().unwrap_or_else(|| panic!("{reply}"));
    out.values().next().unwrap()["tbl"]["lit"].clone()
}

#[test]
fn a_sort_does_not_reach_below_the_numbers_of_rows() {
    let t = json!({"t": {"lit": {"a": [1.5, 0.5, 3.5, 2.5]}}});
    let sorts = json!([
        ["x", "pd.DataFrame.sort_values", [{"$": "t"}, "a"], {"ignore_index": true}],
        ["y", "pd.DataFrame.sort_values", [{"$": "x"}, "a"], {"ascending": false}]
    ]);
    assert_eq!(columns(t, sorts), json!([[3, 2, 1, 0], [3.5, 2.5, 1.5, 0.5]]));
    let t = json!({"t": {"lit": {"a": ["B", "B", "z"]}}});
    let joined = json!([
        ["x", "pd.merge", [{"$": "t"}, {"$": "t"}], {"how": "right", "on": "a"}],
        ["y", "pd.DataFrame.drop_duplicates", [{"$": "x"}]],
        ["z", "pd.DataFrame.tail", [{"$": "y"}, 2]]
    ]);
    assert_eq!(columns(t, joined), json!([[0, 4], ["B", "z"]]));
}

#[test]
fn a_filter_does_not_reach_below_the_choice_of_first_rows() {
    let t = json!({"t": {"lit": {"a": ["z", "b", "a", "a", "a"], "b": [false, false, true, false, true]}}});
    let prog = json!([
        ["x", "pd.DataFrame.drop_duplicates", [{"$": "t"}, "a"]],
        ["a", "getitem", [{"$": "x"}, "a"]],
        ["m", "pd.Series.lt", [{"$": "a"}, "c"]],
        ["r", "getitem", [{"$": "x"}, {"$": "m"}]]
    ]);
    assert_eq!(columns(t, prog), json!([[1, 2], ["b", "a"], [false, true]]));
}

#[test]
fn rows_of_another_frame_with_the_same_columns_are_matched_by_label() {
    let prog = json!([
        ["s", "getitem", [{"$": "u"}, "n"]],
        ["r", "pd.DataFrame.assign", [{"$": "t"}], {"m": {"$": "s"}}]
    ]);
    let inputs = json!({"t": {"lit": {"n": [1, 2, 3]}}, "u": {"lit": {"n": [7, 8]}}});
    assert_eq!(columns(inputs, prog), json!([[1, 2, 3], [7, 8, {"na": 1}]]));
}

#[test]
fn the_first_rows_of_frames_below_each_other_are_those_of_the_first_frame() {
    let inputs = json!({"t": {"lit": {"n": [1, 2, 3]}}, "u": {"lit": {"n": [7, 8]}}});
    let prog = json!([
        ["c", "pd.concat", [[{"$": "t"}, {"$": "u"}]]],
        ["r", "pd.DataFrame.head", [{"$": "c"}, 4]]
    ]);
    for _ in 0..8 {
        assert_eq!(columns(inputs.clone(), prog.clone()), json!([[0, 1, 2, 0], [1, 2, 3, 7]]));
    }
}

#[test]
fn floats_are_rounded_and_divided_as_in_numpy() {
    let series = |step: Json| {
        let prog =
            json!([["s", "getitem", [{"$": "t"}, "x"]], step, ["f", "pd.Series.to_frame", [{"$": "r"}]]]);
        columns(json!({"t": {"lit": {"x": [0.5, 2.5, -3.0, 3.0]}}}), prog)
    };
    assert_eq!(series(json!(["r", "pd.Series.round", [{"$": "s"}]])), json!([[0.0, 2.0, -3.0, 3.0]]));
    let quotients = series(json!(["r", "pd.Series.floordiv", [{"$": "s"}, 0.1]]));
    assert_eq!(quotients, json!([[4.0, 24.0, -30.0, 29.0]]));
    let prog = json!([
        ["s", "getitem", [{"$": "t"}, "x"]],
        ["i", "pd.Series.div", [{"$": "s"}, 0]],
        ["r", "pd.Series.mul", [{"$": "i"}, 0]],
        ["z", "pd.Series.isna", [{"$": "r"}]],
        ["f", "pd.Series.to_frame", [{"$": "z"}]]
    ]);
    assert_eq!(columns(json!({"t": {"lit": {"x": [1.0, -1.0]}}}), prog), json!([[true, true]]));
    let prog = json!([
        ["s", "getitem", [{"$": "t"}, "x"]],
        ["m", "pd.Series.mul", [{"$": "s"}, -1]],
        ["r", "pd.Series.isin", [{"$": "m"}, [0.0]]],
        ["f", "pd.Series.to_frame", [{"$": "r"}]]
    ]);
    assert_eq!(columns(json!({"t": {"lit": {"x": [0.0, -1.0]}}}), prog), json!([[true, false]]));
}

#[test]
fn an_outer_join_comes_by_the_keys_of_both_sides() {
    let inputs = json!({"t": {"lit": {"a": [3, 1]}}, "u": {"lit": {"b": [2, 3]}}});
    let prog = json!([["r", "pd.merge", [{"$": "t"}, {"$": "u"}], {"how": "outer", "left_on": "a", "right_on": "b"}]]);
    let na = json!({"na": 1});
    assert_eq!(columns(inputs, prog), json!([[1, na, 3], [na, 2, 3]]));
}

#[test]
fn truth_values_are_texts_as_in_python() {
    let t = json!({"t": {"lit": {"b": [true, false, null]}}});
    let prog = json!([["r", "pd.DataFrame.astype", [{"$": "t"}, "str"]]]);
    assert_eq!(columns(t, prog), json!([["True", "False", {"na": 1}]]));
}

#[test]
fn a_session_of_sql_keeps_its_tables() {
    let mut session = tharsis_dataframe::SqlSession::default();
    let mut line = |sql: &str| tharsis_dataframe::sql_line(&mut session, &json!({"sql": sql}));
    assert_eq!(line("CREATE TABLE t(a INTEGER, b VARCHAR, c DOUBLE)"), json!({"result": []}));
    assert_eq!(line("INSERT INTO t VALUES (1, 'x', 0.5), (2, NULL, 2)"), json!({"result": []}));
    assert_eq!(line("INSERT INTO t(c, a) VALUES (1.25, 3)"), json!({"result": []}));
    let rows = json!({"result": [["1", "x", "0.5"], ["2", "NULL", "2"], ["3", "NULL", "1.25"]]});
    assert_eq!(line("SELECT * FROM t ORDER BY a"), rows);
    assert_eq!(line("CREATE VIEW v AS SELECT sum(a) AS s FROM t"), json!({"result": []}));
    assert_eq!(line("SELECT s, '' FROM v"), json!({"result": [["6", "(empty)"]]}));
    assert_eq!(line("DROP TABLE t"), json!({"result": []}));
    assert!(line("SELECT * FROM t")["err"].is_string());
    assert!(line("DROP TABLE t")["err"].is_string());
    assert!(line("UPDATE v SET s = 1")["err"].is_string());
    assert!(line("SELEC")["err"].is_string());
}

#[test]
fn keys_of_the_index_stay_apart_from_new_columns_of_their_names() {
    let t = json!({"t": {"lit": {"r0": [1, 2], "r1": [3, 4], "v": [5, 6]}}});
    let prog = json!([
        ["s", "pd.DataFrame.sort_values", [{"$": "t"}, ["r0", "r1"]], {"ascending": false}],
        ["r", "pd.DataFrame.isna", [{"$": "s"}]]
    ]);
    assert_eq!(columns(t, prog), json!([[1, 0], [false, false], [false, false], [false, false]]));
}

#[test]
fn the_first_of_equal_truth_values_is_found_below_an_aggregate() {
    let t = json!({"t": {"lit": {"k": ["a", "b", "a"], "b": [true, false, false]}}});
    let prog = json!([
        ["g", "pd.DataFrame.groupby", [{"$": "t"}, "k"], {"sort": false}],
        ["a", "pd.GroupBy.any", [{"$": "g"}]],
        ["d", "pd.DataFrame.drop_duplicates", [{"$": "a"}, "b"]],
        ["c", "pd.concat", [[{"$": "d"}, {"$": "d"}]], {"ignore_index": true}],
        ["r", "pd.DataFrame.drop_duplicates", [{"$": "c"}, "b"]]
    ]);
    assert_eq!(columns(t, prog), json!([[0, 1], [true, false]]));
}

#[test]
fn the_time_of_a_request_ends_a_task_that_runs() {
    // Some seconds: what does not come back when it is cancelled runs on beside all other tests.
    let rows = if cfg!(debug_assertions) { 8_000 } else { 60_000 };
    let query = format!(
        "select count(*) as n from generate_series(1, {rows}) a, generate_series(1, {rows}) b \
         where a.value + b.value = 7"
    );
    for mode in ["lazy", "eager"] {
        let request = json!({
            "ctx": {"mode": mode, "timeout_s": 0.25}, "prog": [["r", "sql", [query]]], "out": ["r"]
        });
        let reply = run(&request, ".".as_ref(), &Here);
        assert_eq!(reply["err"]["class"], "Timeout", "{reply}");
    }
}

#[test]
fn keys_and_options_that_nobody_knows_are_refused_with_the_nearest() {
    let t = json!({"lit": {"k": [1, 2]}});
    let answer = |request: &Json| {
        let reply = run(request, ".".as_ref(), &Here);
        assert_eq!(reply["ok"], false, "{reply}");
        format!("{}: {}", reply["err"]["class"].as_str().unwrap(), reply["err"]["msg"].as_str().unwrap())
    };
    let otu = answer(&json!({"in": {"t": t}, "prog": [], "otu": ["t"]}));
    assert!(
        otu.starts_with("ValueError: a request has no key \"otu\"") && otu.ends_with("mean \"out\"?"),
        "{otu}"
    );
    let program = answer(&json!({"in": {"t": t}, "program": [], "out": ["t"]}));
    assert!(program.ends_with("did you mean \"prog\"?"), "{program}");
    let chunk = answer(&json!({"ctx": {"chunk": 2}, "in": {"t": t}, "out": ["t"]}));
    assert!(
        chunk.starts_with("ValueError: ctx has no key \"chunk\"") && chunk.ends_with("\"chunks\"?"),
        "{chunk}"
    );
    let step = |options: Json| json!({"in": {"t": t}, "prog": [["r", "pd.DataFrame.sort_values", [{"$": "t"}, "k"], options]]});
    let sorted = answer(&step(json!({"ascendign": false})));
    assert!(
        sorted.starts_with(
            "TypeError: pd.DataFrame.sort_values() got an unexpected keyword argument 'ascendign'"
        )
    );
    assert!(sorted.contains("did you mean 'ascending'?"), "{sorted}");
    let kind = answer(&step(json!({"inplace": true})));
    assert!(kind.starts_with("NotImplemented: the option inplace is not implemented"), "{kind}");
    let csv = answer(&json!({"in": {"t": {"csv": "t.csv", "opt": {"sepp": ";"}}}, "out": ["t"]}));
    assert!(csv.starts_with("TypeError: pd.read_csv() got") && csv.contains("did you mean 'sep'?"), "{csv}");
    let other =
        answer(&json!({"in": {"t": {"lti": [1]}}, "prog": [["r", "pd.DataFrame.head", [{"$": "t"}]]]}));
    assert!(other.contains("the input \"t\" has no key \"lti\"") && other.ends_with("\"lit\"?"), "{other}");
    let tensor =
        answer(&json!({"in": {"t": {"lit": [1, 2]}}, "prog": [["r", "pd.DataFrame.head", [{"$": "t"}]]]}));
    assert!(tensor.contains("a tensor is no input"), "{tensor}");
}

/// Runs plans as another executor does, and counts them; without one it refuses them.
struct Counting {
    executor: Option<LocalExecutor>,
    plans: AtomicUsize,
}

impl Counting {
    fn new(executor: Option<LocalExecutor>) -> Arc<Counting> {
        Arc::new(Counting { executor, plans: AtomicUsize::new(0) })
    }
}

impl Executor for Counting {
    fn limits(&self) -> Limits {
        Limits { threads: 2, memory_bytes: 1 << 30 }
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        self.plans.fetch_add(1, Ordering::Relaxed);
        let refused = || Error::Value("a plan runs elsewhere".to_owned());
        self.executor.as_ref().ok_or_else(refused)?.execute(stages)
    }
}

/// A program whose frames run on this executor if they name none. It is offered as the task engine offers
/// its own; a request binds the one of its place, which goes before it.
fn by_default<T>(executor: Arc<dyn Executor>, program: impl FnOnce() -> T) -> T {
    thread_local! {
        static CHOSEN: RefCell<Option<Arc<dyn Executor>>> = const { RefCell::new(None) };
    }
    offer_executor(|| CHOSEN.with_borrow(Clone::clone));
    CHOSEN.set(Some(executor));
    let made = program();
    CHOSEN.set(None);
    made
}

/// Worker processes that are this executor.
struct Given(Arc<Counting>);

impl Places for Given {
    fn executor(&self, _: &PlaceRequest) -> Result<Arc<dyn Executor>, Failure> {
        Ok(Arc::clone(&self.0) as _)
    }
}

#[test]
fn steps_that_need_rows_at_once_run_where_the_request_says() {
    let t = json!({"lit": {"a": ["x", "y", "x"], "b": ["p", "q", "q"], "n": [1, 2, 3]}});
    for (step, args, options) in [
        ("pd.DataFrame.pivot_table", json!([]), json!({"index": "a", "columns": "b", "values": "n"})),
        ("pd.get_dummies", json!([]), json!({})),
        ("pd.DataFrame.loc", json!([[0, 2]]), json!({})),
        ("pd.DataFrame.reindex", json!([[2, 7]]), json!({})),
    ] {
        let given = Counting::new(Some(LocalExecutor::sized(2, 1 << 30)));
        let refusing = Counting::new(None);
        let args: Vec<Json> =
            std::iter::once(json!({"$": "t"})).chain(args.as_array().cloned().unwrap()).collect();
        let request = json!({
            "ctx": {"mode": "workers"}, "in": {"t": t}, "prog": [["r", step, args, options]], "out": ["r"]
        });
        let elsewhere = Arc::clone(&refusing) as Arc<dyn Executor>;
        let reply = by_default(elsewhere, || run(&request, ".".as_ref(), &Given(Arc::clone(&given))));
        assert_eq!(reply["ok"], true, "{step}: {reply}");
        let plans = (given.plans.load(Ordering::Relaxed), refusing.plans.load(Ordering::Relaxed));
        assert!(0 < plans.0 && plans.1 == 0, "{step}: {plans:?}");
    }
}
