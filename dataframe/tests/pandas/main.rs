//! Programs whose results pandas has given: each line of the files beside this one has a program and what
//! pandas 3.1.1 makes of it. `record.py` writes the results anew; the tests need no Python.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answer;

use answer::{normal, same};
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use tharsis_dataframe::protocol::{Here, run};

/// Rows of a part of each table; the last one leaves every table whole.
const PARTS: [usize; 2] = [2, 100];

fn text(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pandas");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// The tables that a program names.
fn tables(names: &Json, all: &Json) -> Json {
    let names = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    Json::Object(names.map(|name| (name.to_owned(), all[name].clone())).collect::<Map<_, _>>())
}

/// Runs the programs of a file over tables in parts of different sizes, computed step by step or as a whole.
fn check(file: &str) {
    let all: Json = serde_json::from_str(&text("tables.json")).unwrap();
    let mut wrong = Vec::new();
    let programs = text(file);
    for (number, line) in programs.lines().enumerate() {
        let case: Json = serde_json::from_str(line).unwrap();
        let last = case["prog"].as_array().unwrap().last().unwrap()[0].clone();
        for (at, rows) in PARTS.into_iter().enumerate() {
            let mode = if (number + at) % 2 == 0 { "eager" } else { "lazy" };
            let request = json!({"ctx": {"chunks": rows, "mode": mode}, "in": tables(&case["in"], &all),
                "prog": case["prog"], "out": [last]});
            let reply = run(&request, ".".as_ref(), &Here);
            let found = match reply["ok"] == true {
                true => json!({"ok": normal(&reply["out"][last.as_str().unwrap()])}),
                false => json!({"err": reply["err"]["class"]}),
            };
            if !same(&case["want"], &found) {
                let (prog, want) = (&case["prog"], &case["want"]);
                wrong.push(format!(
                    "{file}:{} in parts of {rows}: {prog}\n  pandas {want}\n  here   {found} {}",
                    number + 1,
                    reply["err"]["msg"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rows_are_found_by_labels_and_positions() {
    check("labels.jsonl");
}

#[test]
fn indices_are_sets_of_labels() {
    check("index.jsonl");
}

#[test]
fn expressions_in_texts_choose_and_compute() {
    check("query.jsonl");
}

#[test]
fn columns_are_summed_up_and_turned() {
    check("matrix.jsonl");
}

#[test]
fn groups_have_their_own_steps() {
    check("groups.jsonl");
}

#[test]
fn windows_have_their_aggregates() {
    check("windows.jsonl");
}

#[test]
fn rows_are_put_into_spans_of_time_and_at_their_labels() {
    check("spans.jsonl");
}

#[test]
fn frames_are_compared_and_squeezed() {
    check("whole.jsonl");
}

#[test]
fn labels_that_are_times_have_zones_and_last_rows_before_them() {
    check("zones.jsonl");
}

#[test]
fn indices_are_taken_by_position_and_matched() {
    check("index_steps.jsonl");
}

#[test]
fn groups_and_windows_have_correlations_and_ranks() {
    check("group_pairs.jsonl");
}

#[test]
fn texts_and_times_have_their_parts() {
    check("access.jsonl");
}

#[test]
fn columns_become_rows_intervals_and_truth_values() {
    check("reshaping.jsonl");
}

#[test]
fn options_of_texts_labels_and_spans_are_kept() {
    check("options.jsonl");
}

#[test]
fn columns_and_rows_are_summed_up_with_options() {
    check("summaries.jsonl");
}

#[test]
fn rows_that_are_equal_missing_or_extreme_are_chosen() {
    check("rows.jsonl");
}

#[test]
fn fills_ranks_and_windows_have_their_options() {
    check("fills.jsonl");
}
