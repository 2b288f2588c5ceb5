//! Rows of a node that died are made again: the frame that was computed there goes on to be used, and a
//! stream of rows goes on.

use std::sync::Arc;
use tharsis::frame::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use tharsis::frame::arrow::datatypes::Int64Type;
use tharsis::frame::{Aggregate, DataFrame, RemoteExecutor, Sort, read_parquet};
use tharsis::{LocalCluster, init};

const STORE_BYTES: u64 = 64 << 20;
const PARTS: i64 = 6;
const PART_ROWS: i64 = 20_000;
const GROUPS: i64 = 1_000;

pub const TESTS: [(&str, fn()); 2] = [
    ("rows_of_a_dead_node_are_made_again", rows_of_a_dead_node_are_made_again),
    ("a_stream_goes_on_when_a_node_dies", a_stream_goes_on_when_a_node_dies),
];

fn a_stream_goes_on_when_a_node_dies() {
    let mut cluster = LocalCluster::start(3, 1.0, STORE_BYTES).unwrap();
    let socket = cluster.socket(0).unwrap().display().to_string();
    let runtime = init().address(socket).start().unwrap();
    let executor = RemoteExecutor::new(&runtime).partitions(3);

    let parts: Vec<RecordBatch> = (0..8 * PARTS)
        .map(|part| {
            let n = || (part * PART_ROWS..(part + 1) * PART_ROWS).map(Some);
            let column = |values: Int64Array| Arc::new(values) as ArrayRef;
            let columns = [("n", column(n().collect())), ("k", column(n().collect()))];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
                .unwrap()
        })
        .collect();
    let frame = DataFrame::from_batches(parts[0].schema(), parts);
    let sums = frame.groupby(["n"]).as_index(false).agg_as([("total", "k", Aggregate::Sum)]);
    for rows in [frame.assign("n", frame.col("n") * 2), sums.assign("n", sums.col("n") * 2)] {
        let mut batches = rows.iter_batches_on(Arc::new(executor.clone())).unwrap();
        let mut found = numbers(&batches.next().unwrap().unwrap());
        // The second time, it is dead already.
        cluster.kill(2);
        found.extend(batches.flat_map(|batch| numbers(&batch.unwrap())));
        assert!(found.iter().copied().eq((0..8 * PARTS * PART_ROWS).map(|n| 2 * n)), "{} rows", found.len());
    }
}

fn numbers(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn rows_of_a_dead_node_are_made_again() {
    let mut cluster = LocalCluster::start(3, 1.0, STORE_BYTES).unwrap();
    let socket = cluster.socket(0).unwrap().display().to_string();
    let runtime = init().address(socket).start().unwrap();
    let executor = RemoteExecutor::new(&runtime).partitions(6);

    let parts: Vec<DataFrame> = (0..PARTS)
        .map(|part| {
            let n: Vec<i64> = (part * PART_ROWS..(part + 1) * PART_ROWS).collect();
            let k: Vec<i64> = n.iter().map(|n| n % GROUPS).collect();
            DataFrame::from_columns([("n", n.into()), ("k", k.into())])
        })
        .collect();
    let frame = DataFrame::concat(&parts, true);
    let doubled = frame.assign("twice", frame.col("n") * 2);
    let sums = doubled
        .groupby(["k"])
        .as_index(false)
        .agg_as([("rows", "n", Aggregate::Count), ("total", "twice", Aggregate::Sum)]);
    let kept = doubled.execute_on(&executor).unwrap();
    let before = sums.sort_values(["k"], Sort::ascending()).collect_on(&executor).unwrap();

    cluster.kill(2);
    let again = kept
        .groupby(["k"])
        .as_index(false)
        .agg_as([("rows", "n", Aggregate::Count), ("total", "twice", Aggregate::Sum)]);
    let after = again.sort_values(["k"], Sort::ascending()).collect_on(&executor).unwrap();
    for label in ["k", "rows", "total"] {
        assert_eq!(after.column::<i64>(label).unwrap(), before.column::<i64>(label).unwrap());
    }
    let folder = std::env::temp_dir().join(format!("tharsis-losses-{}", std::process::id()));
    kept.to_parquet(&format!("{}/", folder.display())).unwrap();
    let read = read_parquet(&folder.to_string_lossy());
    assert_eq!(read.col("n").values::<i64>().unwrap(), kept.col("n").values::<i64>().unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    let total: i64 = after.column::<i64>("total").unwrap().into_iter().flatten().sum();
    let rows = PARTS * PART_ROWS;
    assert_eq!(total, rows * (rows - 1));
}
