//! Tasks whose outputs are far beyond their memory and the store: their rows go through it in blocks.

#[path = "../../../common/processes.rs"]
mod processes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tharsis::frame::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use tharsis::frame::arrow::datatypes::Int64Type;
use tharsis::frame::{Aggregate, DataFrame, RemoteExecutor, ToTensor, sql};
use tharsis::spill_dirs::default_choice;
use tharsis::{LocalCluster, LocalNode, Resources, Runtime, init};

const STORE_BYTES: u64 = 64 << 20;
/// Rows of the table that each task has as a whole, and of the one whose parts are theirs.
const LEFT_ROWS: i64 = 8_000;
const RIGHT_ROWS: i64 = 400;
/// Columns of the rows that tasks make of these.
const COLUMNS: i64 = 12;

pub const TESTS: [(&str, fn()); 6] = [
    ("rows_far_beyond_the_store_are_streamed", rows_far_beyond_the_store_are_streamed),
    ("rows_far_beyond_the_store_pass_an_exchange", rows_far_beyond_the_store_pass_an_exchange),
    ("a_small_output_is_one_object", a_small_output_is_one_object),
    ("columns_in_blocks_are_tensors", columns_in_blocks_are_tensors),
    ("blocks_of_a_dead_node_are_made_again", blocks_of_a_dead_node_are_made_again),
    ("a_stream_of_blocks_goes_on_when_a_node_dies", a_stream_of_blocks_goes_on_when_a_node_dies),
];

/// Two workers with a small store that spills.
struct Workers {
    runtime: Runtime,
    folder: PathBuf,
}

impl Workers {
    fn start() -> Workers {
        let folder = std::env::temp_dir().join(format!("tharsis-blocks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let init = init().num_cpus(2.0).workers(2).store_bytes(STORE_BYTES).spill_dir(&folder);
        Workers { runtime: init.start().unwrap(), folder }
    }

    fn executor(&self) -> RemoteExecutor {
        RemoteExecutor::new(&self.runtime).partitions(2)
    }

    fn object_count(&self) -> usize {
        self.runtime.report().unwrap().store.object_count
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// Numbers from 0, in parts.
fn table(label: &str, rows: i64, parts: i64) -> DataFrame {
    let part = |part: i64| {
        let numbers = Int64Array::from_iter_values(part * rows / parts..(part + 1) * rows / parts);
        RecordBatch::try_from_iter([(label, Arc::new(numbers) as ArrayRef)]).unwrap()
    };
    let parts: Vec<RecordBatch> = (0..parts).map(part).collect();
    DataFrame::from_batches(parts[0].schema(), parts)
}

/// Each row of one table with each of the other: 300 MB, of which each task makes a part.
fn expanded(right_rows: i64, parts: i64) -> DataFrame {
    let columns = (0..COLUMNS).map(|at| format!("l.n * {RIGHT_ROWS} + r.m + {at} as c{at}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let (left, right) = (table("n", LEFT_ROWS, 1), table("m", right_rows, parts));
    sql(&format!("select {columns} from l cross join r"), &[("l", &left), ("r", &right)])
}

/// The sum of a column of the expanded rows.
fn expected(right_rows: i64, column: i64) -> i64 {
    let of_left = |n: i64| (0..right_rows).map(|m| n * RIGHT_ROWS + m + column).sum::<i64>();
    (0..LEFT_ROWS).map(of_left).sum()
}

/// Runs a program; checks that no process takes much more memory meanwhile.
fn within<T>(most_bytes: u64, program: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    let (made, peaks) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peaks: HashMap<u32, u64> = HashMap::new();
            while !is_done.load(Ordering::Relaxed) {
                for pid in processes::family() {
                    let peak = peaks.entry(pid).or_default();
                    // Without what it shares with others.
                    let own = processes::bytes_of(pid, "status", "RssAnon");
                    *peak = own.unwrap_or_default().max(*peak);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            peaks
        });
        let made = program();
        is_done.store(true, Ordering::Relaxed);
        (made, sampler.join().unwrap())
    });
    assert!(peaks.values().all(|peak| *peak < most_bytes), "more than {most_bytes} bytes: {peaks:?}");
    made
}

/// Memory of a process: a quarter of what all tasks make.
const PROCESS_BYTES: u64 = 150 << 20;

/// Rows that a stream gives, and the sum of one column of them.
fn streamed(frame: &DataFrame, executor: RemoteExecutor, column: usize) -> (i64, i64) {
    let (mut rows, mut sum) = (0, 0);
    for batch in frame.iter_batches_on(Arc::new(executor)).unwrap() {
        let batch = batch.unwrap();
        rows += batch.num_rows() as i64;
        sum += batch.column(column).as_primitive::<Int64Type>().values().iter().sum::<i64>();
    }
    (rows, sum)
}

fn rows_far_beyond_the_store_are_streamed() {
    let workers = Workers::start();
    let found = within(PROCESS_BYTES, || streamed(&expanded(RIGHT_ROWS, 2), workers.executor(), 7));
    assert_eq!(found, (LEFT_ROWS * RIGHT_ROWS, expected(RIGHT_ROWS, 7)));
    assert!(workers.object_count() < 8, "blocks are left");
}

/// Keys of the table that the rows are joined with: too many to send all of them to each task.
const KEYS: i64 = 200_000;

fn rows_far_beyond_the_store_pass_an_exchange() {
    let workers = Workers::start();
    let partners = table("k", KEYS, 1);
    let rows = expanded(RIGHT_ROWS, 2);
    let all = (0..COLUMNS).map(|at| format!("c{at}")).collect::<Vec<_>>().join(" + ");
    let query = format!(
        "select count(*) as count, sum({all} + k) as total from rows join partners on rows.c0 % {KEYS} = partners.k"
    );
    let query = sql(&query, &[("rows", &rows), ("partners", &partners)]);
    let (found, metrics) = within(PROCESS_BYTES, || query.collect_with_metrics(&workers.executor()).unwrap());
    let of_row = |value: i64| (0..COLUMNS).map(|at| value + at).sum::<i64>() + value % KEYS;
    let total = (0..LEFT_ROWS * RIGHT_ROWS).map(of_row).sum();
    assert_eq!(found.column::<i64>("count").unwrap(), [Some(LEFT_ROWS * RIGHT_ROWS)]);
    assert_eq!(found.column::<i64>("total").unwrap(), [Some(total)]);
    let largest = metrics.stages.iter().map(|stage| stage.bytes).max().unwrap();
    assert!(4 * STORE_BYTES < largest as u64, "{largest} bytes passed");
    assert!(workers.object_count() < 8, "blocks are left");
}

fn a_small_output_is_one_object() {
    let workers = Workers::start();
    let before = workers.object_count();
    let kept = table("n", 60_000, 6).execute_on(&workers.executor()).unwrap();
    let twice = kept.assign("twice", kept.col("n") * 2).execute_on(&workers.executor()).unwrap();
    // The parts that were put, those that were computed of them, and those that were computed of these.
    assert_eq!(workers.object_count() - before, 3 * 6);
    assert_eq!(twice.col("twice").sum().unwrap().as_i64(), Some(60_000 * 59_999));
}

fn columns_in_blocks_are_tensors() {
    let workers = Workers::start();
    let before = workers.object_count();
    let kept = expanded(40, 2).execute_on(&workers.executor()).unwrap();
    assert!(before + 4 < workers.object_count(), "no blocks");
    let sum = kept.col("c3").to_tensor().unwrap().sum(0).item().unwrap().to_f64();
    assert_eq!(sum, expected(40, 3) as f64);
}

fn blocks_of_a_dead_node_are_made_again() {
    let mut cluster = LocalCluster::start(3, 1.0, STORE_BYTES).unwrap();
    let socket = cluster.socket(0).unwrap().display().to_string();
    let runtime = init().address(socket).start().unwrap();
    let executor = RemoteExecutor::new(&runtime).partitions(3);
    let kept = expanded(60, 3).execute_on(&executor).unwrap();
    let total = || kept.col("c5").agg_on(Aggregate::Sum, &executor).unwrap().as_i64();
    assert_eq!(total(), Some(expected(60, 5)));
    cluster.kill(2);
    assert_eq!(total(), Some(expected(60, 5)));
    // The driver reads the same rows by itself.
    let rows = kept.collect_on(&executor).unwrap().column::<i64>("c5").unwrap();
    assert_eq!(rows.into_iter().flatten().sum::<i64>(), expected(60, 5));
}

fn a_stream_of_blocks_goes_on_when_a_node_dies() {
    // The driver's node runs no tasks, so one of the others has the blocks that are read when it dies.
    for dying in [1, 2] {
        let node = |cpus| LocalNode {
            resources: Resources::cpus(cpus).unwrap(),
            labels: Vec::new(),
            store_bytes: STORE_BYTES,
            spill: default_choice(),
        };
        let mut cluster = LocalCluster::start_nodes(vec![node(0.0), node(1.0), node(1.0)]).unwrap();
        let socket = cluster.socket(0).unwrap().display().to_string();
        let runtime = init().address(socket).start().unwrap();
        let executor = RemoteExecutor::new(&runtime).partitions(3);
        let mut batches = expanded(90, 3).iter_batches_on(Arc::new(executor)).unwrap();
        let (mut count, mut sum) = (0, 0);
        let mut add = |batch: &RecordBatch| {
            count += batch.num_rows() as i64;
            sum += batch.column(4).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        };
        add(&batches.next().unwrap().unwrap());
        cluster.kill(dying);
        batches.for_each(|batch| add(&batch.unwrap()));
        assert_eq!((count, sum), (LEFT_ROWS * 90, expected(90, 4)));
    }
}
