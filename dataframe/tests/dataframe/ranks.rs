//! Filters by the rank of a row in its group, whose windows need few rows of each group.

use crate::executors::each_executor;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use tharsis_dataframe::{Aggregate, DataFrame, LocalExecutor, read_parquet, sql};

/// A row: two keys of its group, a number that others have too, and its own.
#[derive(Clone)]
struct Row {
    g: Option<i64>,
    h: String,
    x: Option<f64>,
    n: i64,
}

/// Rows of some groups in a mixed order, with missing keys and numbers, infinities and zeros of both signs.
fn rows(count: i64, groups: u64) -> Vec<Row> {
    let mixed = |n: i64| {
        let z = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
    };
    let row = |n: i64| {
        let (key, value) = (mixed(n) % groups, mixed(n + count) % 40);
        let x = match value {
            0 => None,
            1 => Some(f64::INFINITY),
            2 => Some(-0.0),
            3 => Some(f64::NAN),
            value => Some(value as f64 / 2.0 - 7.0),
        };
        Row { g: (key % 7 != 3).then_some(key as i64), h: format!("h{}", key % 3), x, n }
    };
    (0..count).map(row).collect()
}

fn frame(rows: &[Row]) -> DataFrame {
    let part = |rows: &[Row]| {
        DataFrame::from_columns([
            ("g", rows.iter().map(|row| row.g).collect::<Vec<_>>().into()),
            ("h", rows.iter().map(|row| row.h.clone()).collect::<Vec<_>>().into()),
            ("x", rows.iter().map(|row| row.x).collect::<Vec<_>>().into()),
            ("n", rows.iter().map(|row| row.n).collect::<Vec<_>>().into()),
        ])
    };
    DataFrame::concat(&rows.chunks(rows.len() / 5 + 1).map(part).collect::<Vec<_>>(), true)
}

/// The order of two numbers of a frame, which has one zero and no other missing number than null.
fn compare(one: Option<f64>, other: Option<f64>, is_descending: bool, nulls_first: bool) -> Ordering {
    let plain = |x: Option<f64>| x.filter(|x| !x.is_nan()).map(|x| x + 0.0);
    let missing = if nulls_first { Ordering::Less } else { Ordering::Greater };
    match (plain(one), plain(other)) {
        (None, None) => Ordering::Equal,
        (None, _) => missing,
        (_, None) => missing.reverse(),
        (Some(one), Some(other)) if is_descending => other.total_cmp(&one),
        (Some(one), Some(other)) => one.total_cmp(&other),
    }
}

/// The rows with one of the first ranks of their group: equal numbers have one rank if they share it, else
/// the number of the row decides.
fn first(rows: &[Row], count: usize, shared: bool, is_descending: bool, nulls_first: bool) -> Vec<i64> {
    let mut groups: BTreeMap<(Option<i64>, String), Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| groups.entry((row.g, row.h.clone())).or_default().push(row));
    let mut found = Vec::new();
    for group in groups.values_mut() {
        let order = |a: &&Row, b: &&Row| compare(a.x, b.x, is_descending, nulls_first);
        group.sort_by(|a, b| order(a, b).then(a.n.cmp(&b.n)));
        let place = |at: usize| {
            let before = group[..at].iter().position(|row| order(row, &group[at]) == Ordering::Equal);
            before.filter(|_| shared).unwrap_or(at)
        };
        found.extend((0..group.len()).filter(|&at| place(at) < count).map(|at| group[at].n));
    }
    found.sort_unstable();
    found
}

#[track_caller]
fn assert_filtered(frame: &DataFrame, query: &str, is_filtered: bool) {
    let plan = sql(query, &[("t", frame)]).explain_on(&LocalExecutor::sized(4, 1 << 30)).unwrap().to_string();
    assert_eq!(plan.contains("RankFilterExec"), is_filtered, "{query}\n{plan}");
}

#[test]
fn the_first_rows_of_groups_are_those_of_a_plain_loop() {
    let rows = rows(3_000, 60);
    let frame = frame(&rows);
    for (shared, is_descending, nulls_first, condition, count) in [
        (true, true, false, "place <= 2", 2),
        (true, false, true, "3 > place", 2),
        (false, true, true, "place < 4 and n >= 0", 3),
        (false, false, false, "place = 1", 1),
    ] {
        let rank = if shared { "rank()" } else { "row_number()" };
        let (way, nulls) =
            (if is_descending { "desc" } else { "asc" }, if nulls_first { "first" } else { "last" });
        // Sixteen bytes are too few for a number and the number of the row.
        let ties = if shared { "" } else { ", cast(n as int)" };
        let query = format!(
            "select n from (select n, {rank} over (partition by g, h order by x {way} nulls {nulls}{ties}) \
             as place from t) where {condition}"
        );
        assert_filtered(&frame, &query, true);
        let expected = first(&rows, count, shared, is_descending, nulls_first);
        assert!(!expected.is_empty() && expected.len() < rows.len());
        let found = sql(&query, &[("t", &frame)]);
        for numbers in each_executor(|executor| found.collect_on(executor)?.column::<i64>("n")) {
            let mut numbers: Vec<i64> = numbers.into_iter().flatten().collect();
            numbers.sort_unstable();
            assert_eq!(numbers, expected, "{query}");
        }
    }
}

#[test]
fn rows_that_others_need_stay() {
    let frame = frame(&rows(600, 20));
    let over = "over (partition by h order by n)";
    for (columns, condition) in [
        // Many rows may have one of the first dense ranks.
        (format!("dense_rank() {over} as place"), "place <= 2"),
        // All rows of a group count.
        (format!("row_number() {over} as place, ntile(3) {over} as third"), "place <= 2"),
        (format!("row_number() {over} as place"), "place >= 2"),
        (format!("row_number() {over} as place"), "place <= 2 or n = 7"),
        // Equal floats may differ in their bits, and texts have no short form.
        ("row_number() over (partition by x order by n) as place".to_owned(), "place <= 2"),
        ("row_number() over (partition by g order by h) as place".to_owned(), "place <= 2"),
    ] {
        assert_filtered(
            &frame,
            &format!("select * from (select n, {columns} from t) where {condition}"),
            false,
        );
    }
    // The value of a subquery is a part of a column that is computed before the exchange.
    let query = "select n from (select n, row_number() over (partition by h order by n + (select min(n) from t)) \
                 as place from t) where place <= 2";
    assert_filtered(&frame, query, true);
    let found = sql(query, &[("t", &frame)]);
    for numbers in each_executor(|executor| found.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(numbers.len(), 6);
    }
    let both = format!("rank() {over} as place, dense_rank() {over} as dense");
    assert_filtered(
        &frame,
        &format!("select n, dense from (select n, {both} from t) where place <= 2"),
        true,
    );
}

#[test]
fn files_for_an_aggregate_are_read_by_few_tasks() {
    const FILES: i64 = 24;
    const ROWS: i64 = 40_000;
    let folder = tempfile::tempdir().unwrap();
    for file in 0..FILES {
        let rows: Vec<i64> = (file * ROWS..(file + 1) * ROWS).collect();
        let keys: Vec<i64> = rows.iter().map(|row| row % 100).collect();
        let path = folder.path().join(format!("{file:02}.parquet"));
        let rows = DataFrame::from_columns([("k", keys.into()), ("x", rows.into())]);
        rows.to_parquet(path.to_str().unwrap()).unwrap();
    }
    let files = read_parquet(&format!("{}/*.parquet", folder.path().display()));
    // So little memory that an exchange of all rows has many partitions.
    let executor = LocalExecutor::sized(2, 16 << 20);
    let tasks = |frame: &DataFrame| {
        let stages = frame.explain_on(&executor).unwrap().stages;
        stages.iter().map(|stage| stage.tasks).collect::<Vec<_>>()
    };
    let sums = files.groupby(["k"]).agg_as([("x", "x", Aggregate::Sum)]);
    let asked = tasks(&sums);
    assert!(asked[0] == 4 && 4 < asked[1], "{asked:?}");
    let shared = tasks(&files.filter(&files.col("x").gt(5)));
    assert!(4 < shared[0], "{shared:?}");
    let found = sums.collect_on(&executor).unwrap().column::<i64>("x").unwrap();
    let last = FILES * ROWS;
    let expected = (0..100).map(|key| Some((key..last).step_by(100).sum()));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn columns_may_have_any_labels() {
    let frame = DataFrame::from_columns([("size", vec![1, 1, 2].into()), ("rows", vec![5, 7, 7].into())]);
    let first = |frame: &DataFrame, label: &str| frame.col(label).values::<i64>().unwrap();
    assert_eq!(frame.col("size").mode().values::<i64>().unwrap(), [Some(1)]);
    assert_eq!(first(&frame.mode(), "rows"), [Some(7)]);
    assert_eq!(first(&frame.nlargest(2, ["rows", "size"]), "size"), [Some(2), Some(1)]);
}
