//! Sorts of so many rows that they are parted by ranges of their keys.

use crate::executors::{by_default, each_executor};
use std::cmp::Reverse;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, LocalExecutor, Sort};

const ROWS: i64 = 100_000;
/// A position behind those of the first ranges.
const LATE: i64 = 70_000;

/// Few values, so that most rows have equals; each seventh is missing.
fn group(row: i64) -> Option<i64> {
    (row % 7 != 0).then_some((row * 7_919) % 50)
}

fn text(row: i64) -> String {
    format!("t{}", (row * 104_729) % 1_000)
}

/// The rows in two parts: those of one part are sorted by one task.
fn table() -> DataFrame {
    let part = |rows: std::ops::Range<i64>| {
        DataFrame::from_columns([
            ("group", rows.clone().map(group).collect::<Vec<_>>().into()),
            ("text", rows.clone().map(text).collect::<Vec<_>>().into()),
            ("row", rows.collect::<Vec<_>>().into()),
        ])
    };
    DataFrame::concat([&part(0..ROWS / 2), &part(ROWS / 2..ROWS)], false)
}

#[test]
fn equal_rows_keep_their_order_and_missing_keys_are_last() {
    let mut expected: Vec<i64> = (0..ROWS).collect();
    expected.sort_by_cached_key(|&row| (group(row).is_none(), Reverse(group(row)), text(row)));
    let sorted = table().sort_values(["group", "text"], Sort::each([false, true])).select(["row"]);
    let stages = by_default(Arc::new(LocalExecutor::sized(4, 1 << 30)), || {
        sorted.explain().expect("a plan").to_string()
    });
    assert!(stages.contains("outputs each, by range"), "{stages}");
    for rows in each_executor(|executor| sorted.collect_on(executor)?.column::<i64>("row")) {
        assert!(rows.into_iter().flatten().eq(expected.iter().copied()));
    }
}

#[test]
fn positions_after_a_sort_count_the_ranges_before() {
    let sorted = table().sort_values(["text"], Sort::ascending()).reset_index(true);
    let late = sorted.loc_between(Some(LATE.into()), Some((LATE + 2).into()));
    let mut expected: Vec<i64> = (0..ROWS).collect();
    expected.sort_by_cached_key(|&row| text(row));
    for rows in each_executor(|executor| late.collect_on(executor)?.column::<i64>("row")) {
        assert!(rows.into_iter().flatten().eq(expected[LATE as usize..][..3].iter().copied()));
    }
}
