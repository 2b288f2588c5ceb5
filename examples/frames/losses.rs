//! Rows of a node that died are made again: the frame that was computed there goes on to be used.
//!
//! The program is its own node and worker, so it brings its own `main`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use tharsis::frame::{Aggregate, DataFrame, RemoteExecutor, Sort, read_parquet};
use tharsis::{LocalCluster, init};

const STORE_BYTES: u64 = 64 << 20;
const PARTS: i64 = 6;
const PART_ROWS: i64 = 20_000;
const GROUPS: i64 = 1_000;

#[tharsis::main]
fn main() -> ExitCode {
    let trial = Trial::test("rows_of_a_dead_node_are_made_again", || {
        rows_of_a_dead_node_are_made_again();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
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
