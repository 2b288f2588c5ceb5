//! Rows that are taken while others are computed, wherever tasks run: on threads, embedded, on worker
//! processes, on two nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tharsis::frame::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use tharsis::frame::arrow::datatypes::Int64Type;
use tharsis::frame::{
    Aggregate, Computation, CsvOptions, DataFrame, Done, Error, FunctionFault, JoinKind, Merge, StageLine,
    Table, function, read_csv,
};

pub const TESTS: [(&str, fn()); 7] = [
    ("batches_come_in_order_while_later_ones_are_made", batches_come_in_order_while_later_ones_are_made),
    ("what_is_left_does_not_run_when_batches_are_dropped", what_is_left_does_not_run),
    ("an_error_comes_after_the_rows_before_it", an_error_comes_after_the_rows_before_it),
    ("rows_come_once_when_a_worker_is_lost", rows_come_once_when_a_worker_is_lost),
    ("a_head_reads_what_it_must", a_head_reads_what_it_must),
    ("a_run_is_watched_and_explained", a_run_is_watched_and_explained),
    ("several_calls_do_a_task_with_most_rows", several_calls_do_a_task_with_most_rows),
];

const PARTS: i64 = 24;
const PART_ROWS: i64 = 100;

/// Many parts, each of which a task has.
fn numbers() -> DataFrame {
    let part = |part: i64| {
        let n = Int64Array::from_iter_values(part * PART_ROWS..(part + 1) * PART_ROWS);
        RecordBatch::try_from_iter_with_nullable([("n", Arc::new(n) as ArrayRef, true)]).unwrap()
    };
    let parts: Vec<RecordBatch> = (0..PARTS).map(part).collect();
    DataFrame::from_batches(parts[0].schema(), parts)
}

/// Calls of `slow` in this process.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The rows, after a while.
#[function]
fn slow(rows: Table, milliseconds: u64, fails_at: i64) -> Result<Table, Error> {
    if rows.is_empty() {
        return Ok(rows);
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(milliseconds));
    if rows.column::<i64>("n")?.contains(&Some(fails_at)) {
        Err(Error::Value(format!("{fails_at} is too much")))
    } else {
        Ok(rows)
    }
}

fn batches_come_in_order_while_later_ones_are_made() {
    // The first plan of a process takes long to begin.
    assert_eq!(numbers().map_chunk(slow::with(0, -1)).len().unwrap() as i64, PARTS * PART_ROWS);
    let started = Instant::now();
    let mut batches = numbers().map_chunk(slow::with(40, -1)).iter_batches().unwrap();
    let first = batches.next().unwrap().unwrap();
    let waited = started.elapsed();
    assert_eq!(first.column(0).as_primitive::<Int64Type>().value(0), 0);
    let rest =
        batches.flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec());
    let found: Vec<i64> = rest.collect();
    assert_eq!(found, (first.num_rows() as i64..PARTS * PART_ROWS).collect::<Vec<_>>());
    // A task takes 40 ms and at most four run at a time.
    assert!(waited < started.elapsed() * 3 / 4, "{waited:?} of {:?}", started.elapsed());
}

fn what_is_left_does_not_run() {
    CALLS.store(0, Ordering::Relaxed);
    let mut batches = numbers().map_chunk(slow::with(30, -1)).iter_batches().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().num_rows() as i64, PART_ROWS);
    drop(batches);
    // Calls that ran when they were dropped may end; workers and nodes count calls of their own.
    std::thread::sleep(Duration::from_millis(200));
    let calls = CALLS.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(CALLS.load(Ordering::Relaxed), calls, "tasks run on");
    assert!(calls < PARTS as usize, "{calls} calls");
    // The place is free for others.
    assert_eq!(numbers().col("n").max().unwrap().as_i64(), Some(PARTS * PART_ROWS - 1));
}

fn an_error_comes_after_the_rows_before_it() {
    let fails_at = 5 * PART_ROWS + 7;
    let batches = numbers().map_chunk(slow::with(1, fails_at)).iter_batches().unwrap();
    let mut rows = 0;
    let mut errors = Vec::new();
    for batch in batches {
        match batch {
            Ok(batch) => rows += batch.num_rows() as i64,
            Err(error) => errors.push(error),
        }
    }
    assert_eq!(rows, 5 * PART_ROWS);
    let [error] = &errors[..] else { panic!("{errors:?}") };
    let Error::Function { fault: FunctionFault::Failed(text), .. } = error.root() else {
        panic!("{error:?}")
    };
    assert_eq!(*text, format!("{fails_at} is too much"));
}

/// The rows; the first time that it meets a row, the process ends unless it is the driver's.
#[function]
fn fatal_once(rows: Table, at: i64, driver: u32, marker: String) -> Result<Table, Error> {
    let is_there = rows.column::<i64>("n")?.contains(&Some(at));
    let mut first = std::fs::OpenOptions::new();
    if is_there && std::process::id() != driver && first.write(true).create_new(true).open(marker).is_ok() {
        std::process::abort();
    }
    Ok(rows)
}

fn rows_come_once_when_a_worker_is_lost() {
    let marker = std::env::temp_dir().join(format!("tharsis-lost-{}", std::process::id()));
    let at = 9 * PART_ROWS + 1;
    let fatal = fatal_once::with(at, std::process::id(), marker.to_string_lossy().into_owned());
    let frame = numbers().map_chunk(fatal);
    let mut found = Vec::new();
    for batch in frame.assign("n", frame.col("n") * 3).iter_batches().unwrap() {
        found.extend_from_slice(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
    }
    let _not_made_on_threads = std::fs::remove_file(&marker);
    assert_eq!(found, (0..PARTS * PART_ROWS).map(|n| 3 * n).collect::<Vec<_>>());
}

fn a_head_reads_what_it_must() {
    let folder = std::env::temp_dir().join(format!("tharsis-streams-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |number: i64| folder.join(format!("part-{number}.csv"));
    for number in 0..6 {
        let rows = (number * 100..number * 100 + 100).map(|n| format!("{n}\n"));
        std::fs::write(file(number), format!("n\n{}", rows.collect::<String>())).unwrap();
    }
    let frame = read_csv(&folder.to_string_lossy(), CsvOptions::default());
    let all = frame.len().unwrap();
    // Nothing of the later files could be read as numbers.
    (1..6).for_each(|number| std::fs::write(file(number), "n\nnone\nnone\n".repeat(20)).unwrap());
    let first = frame.head(7).col("n").values::<i64>();
    let whole = frame.col("n").sum();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((all, first.unwrap().len()), (600, 7));
    assert!(whole.is_err());
    // Of tasks that make rows, those run that are needed.
    let doubled = numbers().map_chunk(slow::with(1, 12 * PART_ROWS));
    let expected: Vec<Option<i64>> = (0..2 * PART_ROWS + 1).map(Some).collect();
    assert_eq!(doubled.head(expected.len()).col("n").values::<i64>().unwrap(), expected);
    assert!(doubled.head((12 * PART_ROWS + 1) as usize).collect().is_err());
    // Later stages read what the first rows have become.
    let first = doubled.head(250);
    let joined = first.merge(&numbers(), Merge::on(["n"])).col("n").values::<i64>();
    assert_eq!(joined.unwrap(), (0..250).map(Some).collect::<Vec<_>>());
}

fn a_run_is_watched_and_explained() {
    let numbers = numbers();
    let mapped = numbers.map_chunk(slow::with(10, -1));
    let frame = mapped.assign("k", &mapped.col("n") % 7);
    let sums = frame.groupby(["k"]).agg([("n", Aggregate::Sum)]);
    let mut seen: Vec<Done> = Vec::new();
    let computed = Computation::of(&sums).watched(|done| seen.push(done)).bar("sums").run().unwrap();
    let last = seen.last().unwrap();
    assert!(last.tasks == last.all && 0 < last.rows && 0 < last.bytes, "{last:?}");
    assert!(seen.iter().any(|done| done.tasks < done.all), "{seen:?}");
    assert!(seen.is_sorted_by_key(|done| done.tasks));
    let explanation = &computed.explanation;
    assert_eq!(explanation.tasks as u64, last.all);
    let run = explanation.run.as_ref().unwrap();
    assert_eq!((run.rows, run.tasks), (7, explanation.tasks));
    assert!(explanation.stages.iter().all(|stage| stage.run.is_some()));
    let text = explanation.to_string();
    assert!(
        text.contains("slow of each chunk") && text.contains(" s of thread time, slowest task"),
        "{text}"
    );
    assert_eq!(computed.metrics.stages.len(), explanation.stages.len());
    assert_eq!(computed.frame.len().unwrap(), 7);
    // Before a run it is the plan alone.
    let planned = sums.explain().unwrap();
    assert!(planned.run.is_none() && planned.to_string().ends_with(&format!("{} tasks", planned.tasks)));
}

/// A join of rows of which four of five have one key.
fn several_calls_do_a_task_with_most_rows() {
    const ROWS: i64 = 1_000_000;
    const KEYS: i64 = 250_000;
    let key = |n: i64| if n % 5 == 0 { n % KEYS } else { 0 };
    let part = |part: i64| {
        let n = || part * ROWS / 8..(part + 1) * ROWS / 8;
        let columns = [("k", n().map(key).collect()), ("n", n().collect()), ("m", n().rev().collect())];
        let column =
            |(name, values): (_, Vec<i64>)| (name, Arc::new(Int64Array::from(values)) as ArrayRef, true);
        RecordBatch::try_from_iter_with_nullable(columns.map(column)).unwrap()
    };
    let parts: Vec<RecordBatch> = (0..8).map(part).collect();
    let many = DataFrame::from_batches(parts[0].schema(), parts);
    let names = DataFrame::from_columns([
        ("k", (0..KEYS).collect::<Vec<_>>().into()),
        ("twice", (0..KEYS).map(|k| 2 * k).collect::<Vec<_>>().into()),
    ]);
    let joined = many.merge(&names, Merge::on(["k"]).how(JoinKind::Left));
    let computed = Computation::of(&joined).run().unwrap();
    let is_join = |stage: &&StageLine| stage.operators.iter().any(|line| line.contains("HashJoinExec"));
    let join = computed.explanation.stages.iter().find(is_join).unwrap();
    let run = join.run.as_ref().unwrap();
    assert!(join.tasks < run.tasks, "{}", computed.explanation);
    assert!(run.largest_bytes * 3 < run.bytes * 2, "{}", computed.explanation);
    let table = computed.frame.collect().unwrap();
    assert!(table.column::<i64>("n").unwrap().into_iter().flatten().eq(0..ROWS));
    assert!(table.column::<i64>("twice").unwrap().into_iter().flatten().eq((0..ROWS).map(|n| 2 * key(n))));
}
