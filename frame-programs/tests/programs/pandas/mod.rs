//! Programs whose results pandas has given: each line of the files in `tests/pandas` has a program and what
//! pandas 3.1.1 makes of it. `record.py` writes the results anew; the tests need no Python.

mod answer;

use answer::{normal, same};
use serde_json::{Map, Value as Json, json};
use tharsis_frame_programs::{Here, run};
use tharsis_trials::is_long;

/// Rows of a part of each table; the last one leaves every table whole.
const PARTS: [usize; 2] = [2, 100];

/// The sizes of parts for a program, each with whether it is computed step by step. In a usual run all
/// programs are tried over parts of two rows, where most that can go wrong does, and a quarter of them over
/// whole tables: lines beside each other are kin, and two of each eight are tried, one in each way.
fn parts(number: usize) -> impl Iterator<Item = (usize, bool)> {
    let is_tried = move |at: usize| at == 0 || is_long() || number % 8 < 2;
    let parts = PARTS.into_iter().enumerate().filter(move |(at, _)| is_tried(*at));
    parts.map(move |(at, rows)| (rows, (number + at).is_multiple_of(2)))
}

fn text(file: &str) -> String {
    let folder = crate::folder().join("tests/pandas");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// The tables that a program names.
fn tables(names: &Json, all: &Json) -> Json {
    let names = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    Json::Object(names.map(|name| (name.to_owned(), all[name].clone())).collect::<Map<_, _>>())
}

/// Runs the programs of a file over tables in parts of different sizes, computed step by step or as a whole.
fn check(file: &str) {
    check_part(file, [0, 1]);
}

/// As [`check`], for one of several tests that share the file: one test keeps one core only.
fn check_part(file: &str, [part, parts_of_file]: [usize; 2]) {
    let all: Json = serde_json::from_str(&text("tables.json")).unwrap();
    let mut wrong = Vec::new();
    let programs = text(file);
    // Programs of a part are not all of the same parity, which chooses between step by step and as a whole.
    let is_of_part = |number: usize| number / 8 % parts_of_file == part;
    for (number, line) in programs.lines().enumerate().filter(|(number, _)| is_of_part(*number)) {
        let case: Json = serde_json::from_str(line).unwrap();
        let last = case["prog"].as_array().unwrap().last().unwrap()[0].clone();
        for (rows, is_eager) in parts(number) {
            let mode = if is_eager { "eager" } else { "lazy" };
            let request = json!({"ctx": {"chunks": rows, "mode": mode}, "in": tables(&case["in"], &all),
                "prog": case["prog"], "out": [last]});
            let reply = run(&request, ".".as_ref(), &Here);
            let found = if reply["ok"] == true {
                json!({"ok": normal(&reply["out"][last.as_str().unwrap()])})
            } else {
                json!({"err": reply["err"]["class"]})
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
fn durations_are_computed_with() {
    check("lengths.jsonl");
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

mod windows_have_their_aggregates {
    use super::check_part;

    #[test]
    fn first_half() {
        check_part("windows.jsonl", [0, 2]);
    }

    #[test]
    fn second_half() {
        check_part("windows.jsonl", [1, 2]);
    }
}

mod rows_are_put_into_spans_of_time_and_at_their_labels {
    use super::check_part;

    #[test]
    fn first_half() {
        check_part("spans.jsonl", [0, 2]);
    }

    #[test]
    fn second_half() {
        check_part("spans.jsonl", [1, 2]);
    }
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
