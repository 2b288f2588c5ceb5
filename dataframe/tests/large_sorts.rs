//! Sorts of so many rows that they are parted by ranges of their keys.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod executors;

use executors::{by_default, each_executor};
use std::cmp::Reverse;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, LocalExecutor, Sort};

const ROWS: i64 = 700_000;

/// Few values, so that most rows have equals; each seventh is missing.
fn group(row: i64) -> Option<i64> {
    (row % 7 != 0).then_some((row * 7_919) % 50)
}

fn text(row: i64) -> String {
    format!("t{}", (row * 104_729) % 1_000)
}

fn table() -> DataFrame {
    DataFrame::from_columns([
        ("group", (0..ROWS).map(group).collect::<Vec<_>>().into()),
        ("text", (0..ROWS).map(text).collect::<Vec<_>>().into()),
        ("row", (0..ROWS).collect::<Vec<_>>().into()),
    ])
}

#[test]
fn equal_rows_keep_their_order_and_missing_keys_are_last() {
    let mut expected: Vec<i64> = (0..ROWS).collect();
    expected.sort_by_key(|&row| (group(row).is_none(), Reverse(group(row)), text(row)));
    let sorted = table().sort_values(["group", "text"], Sort::each([false, true])).select(["row"]);
    for rows in each_executor(|executor| sorted.collect_on(executor)?.column::<i64>("row")) {
        assert!(rows.into_iter().flatten().eq(expected.iter().copied()));
    }
}

#[test]
fn a_sort_is_parted_by_ranges_and_positions_follow_it() {
    let executor = Arc::new(LocalExecutor::sized(4, 1 << 30));
    let sorted = table().sort_values(["text"], Sort::ascending()).reset_index(true);
    let stages = by_default(executor.clone(), || sorted.explain().expect("a plan"));
    assert!(stages.contains("outputs each, by range"), "{stages}");
    let late = sorted.slice(500_000, 500_003);
    let mut expected: Vec<i64> = (0..ROWS).collect();
    expected.sort_by_key(|&row| text(row));
    let rows = late.collect_on(&*executor).and_then(|rows| rows.column::<i64>("row")).expect("rows");
    assert_eq!(rows, expected[500_000..500_003].iter().copied().map(Some).collect::<Vec<_>>());
}
