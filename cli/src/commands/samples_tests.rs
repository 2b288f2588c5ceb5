//! The samples of output on the page of commands: lines of fixed answers.

use super::{list, status, top, why};
use std::path::Path;
use tharsis_protos::listing::{Cell, JobColumn, Table};
use tharsis_protos::report::{NodeRow, PastRow, PendingRow, Report, StoreRow, Story};

const NODE: u64 = 0x4aad_bee0_2f8b_43ee;
const TASK: &str = "00000000000000010000000000000002";

#[test]
fn the_commands_page_shows_what_the_main_ones_print() {
    let page = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../docs/commands.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let why_line = format!("tharsis why {TASK}");
    let samples = [
        ("tharsis status", status::describe(&report())),
        ("tharsis top --once", top::sample_lines()),
        ("tharsis jobs", list::as_text(&jobs())),
        (why_line.as_str(), why::describe(&story())),
    ];
    for (line, shown) in samples {
        let sample = format!("```text\n$ {line}\n{}\n```\n", shown.join("\n"));
        assert!(text.contains(&sample), "the page has no\n{sample}");
    }
}

fn report() -> Report {
    let node =
        NodeRow { node: NODE, total: "2 CPU".to_owned(), free: "1 CPU".to_owned(), ..NodeRow::default() };
    let waiting = PendingRow {
        name: "load".to_owned(),
        resources: "1 CPU".to_owned(),
        count: 3,
        reason: "all workers are busy".to_owned(),
        task: TASK.to_owned(),
    };
    let store = StoreRow {
        used_bytes: 12 << 20,
        capacity_bytes: 64 << 20,
        object_count: 3,
        pinned_count: 1,
        ..StoreRow::default()
    };
    Report {
        node: NODE,
        pid: 4711,
        nodes: vec![node],
        store,
        driver_count: 1,
        worker_count: 2,
        running_count: 1,
        task_count: 5,
        object_count: 8,
        pending: vec![waiting],
        ..Report::default()
    }
}

fn jobs() -> Table {
    let mut table = Table::new(NODE, JobColumn::NAMES);
    table.rows = vec![vec![
        Cell::Number(3),
        Cell::text("nightly"),
        Cell::text("default"),
        Cell::Number(4800),
        Cell::text("/opt/bin/train"),
        Cell::Number(2),
        Cell::Number(5),
        Cell::Number(1),
    ]];
    table
}

fn story() -> Story {
    let past = |ago_ns, what: &str| PastRow { ago_ns, what: what.to_owned() };
    Story {
        node: NODE,
        present: vec!["queued: all workers are busy".to_owned()],
        past: vec![past(2_500_000_000, "submitted"), past(12_300_000, "queued")],
        ..Story::default()
    }
}
