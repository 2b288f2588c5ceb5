//! Programs on more rows than the memory of their executor: rows between stages wait in files, operators
//! spill, and plans get more partitions.

use tharsis_dataframe::{Aggregate, DataFrame, LocalExecutor, Merge, Sort};

/// Bytes of the columns of the largest table here; executors have less.
const ROWS: i64 = 1_500_000;
const MEMORY_BYTES: u64 = 48 << 20;

fn executor() -> LocalExecutor {
    LocalExecutor::sized(2, MEMORY_BYTES)
}

/// Keys that are spread over `0..keys`, a number, and a text.
fn table(keys: i64) -> DataFrame {
    let key = |row: i64| (row * 7_919) % keys;
    DataFrame::from_columns([
        ("key", (0..ROWS).map(key).collect::<Vec<_>>().into()),
        ("number", (0..ROWS).collect::<Vec<_>>().into()),
        ("text", (0..ROWS).map(|row| format!("row {row}")).collect::<Vec<_>>().into()),
    ])
}

#[test]
fn a_group_for_each_row_fits_by_partitions() {
    let groups = table(ROWS)
        .groupby(["key"])
        .agg_as([("numbers", "number", Aggregate::Sum), ("last", "text", Aggregate::Max)]);
    let total = groups.col("numbers").agg_on(Aggregate::Sum, &executor()).expect("the sum of groups");
    assert_eq!(total.as_i64(), Some(ROWS * (ROWS - 1) / 2));
}

#[test]
fn a_join_of_two_large_sides_fits_by_partitions() {
    let (left, right) = (table(ROWS), table(ROWS).select(["key", "number"]));
    let joined = left.merge(&right, Merge::on(["key"]));
    let (rows, _) = joined.select(["number_x", "number_y"]).collect_with_metrics(&executor()).expect("rows");
    assert_eq!(rows.len() as i64, ROWS);
}

#[test]
fn a_sort_gives_all_rows_in_order() {
    let sorted = table(1_000).sort_values(["key", "number"], Sort::ascending()).select(["key", "number"]);
    let rows = sorted.collect_on(&executor()).expect("rows");
    let column = |label| rows.column::<i64>(label).expect("numbers");
    let pairs: Vec<_> = column("key").into_iter().zip(column("number")).collect();
    assert_eq!(pairs.len() as i64, ROWS);
    assert!(pairs.is_sorted());
}
