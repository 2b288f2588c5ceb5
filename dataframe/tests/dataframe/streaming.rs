//! Rows that are taken while others are computed, and plans that need not run whole.

use crate::executors::{SentExecutor, each_executor, three_parts};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_dataframe::{
    Aggregate, CsvOptions, DataFrame, Error, Executor, Limits, LocalExecutor, Outcome, Parts, Sort, Stages,
    read_csv,
};

const FILES: usize = 8;
const FILE_ROWS: usize = 500;

fn path(folder: &Path, file: usize) -> PathBuf {
    folder.join(format!("part-{file}.csv"))
}

/// Files with `n`, which counts the rows of all, and `k`, which is `n` modulo 3.
fn files(folder: &Path) -> DataFrame {
    for file in 0..FILES {
        let rows = (file * FILE_ROWS..(file + 1) * FILE_ROWS).map(|n| format!("{n},{}\n", n % 3));
        std::fs::write(path(folder, file), format!("n,k\n{}", rows.collect::<String>())).unwrap();
    }
    read_csv(&folder.to_string_lossy(), CsvOptions::default())
}

/// Leaves nothing of the later files that could be read as numbers.
fn spoil(folder: &Path, from: usize) {
    for file in from..FILES {
        std::fs::write(path(folder, file), "n,k\nnone,none\n".repeat(FILE_ROWS)).unwrap();
    }
}

fn numbers(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn the_first_rows_need_the_first_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let frame = files(folder.path());
    let executor = LocalExecutor::sized(4, 1 << 30);
    let all = frame.len_on(&executor).unwrap();
    assert_eq!(all, FILES * FILE_ROWS);
    // After steps with labels that count the rows before, one task of four reads its files.
    spoil(folder.path(), 2);
    let odd = frame.filter(&(&frame.col("n") % 2).eq(1));
    let odd = odd.assign("twice", &odd.col("n") * 2);
    let (first, metrics) = odd.head(3).collect_with_metrics(&executor).unwrap();
    assert_eq!(first.column::<i64>("twice").unwrap(), [Some(2), Some(6), Some(10)]);
    assert_eq!(metrics.stages[0].tasks, 1);
    // Without, the first file is enough.
    spoil(folder.path(), 1);
    assert!(frame.collect_on(&executor).is_err());
    let (first, metrics) = frame.head(20).collect_with_metrics(&executor).unwrap();
    let n = first.column::<i64>("n").unwrap();
    assert_eq!((n.len(), n[19]), (20, Some(19)));
    // One task read files, of several that could have.
    assert_eq!(metrics.stages[0].tasks, 1);
    assert!(1 < frame.parts_on_count(&executor));
}

/// Number of tasks that read the files of a frame when all rows are wanted.
trait Tasks {
    fn parts_on_count(&self, executor: &LocalExecutor) -> usize;
}

impl Tasks for DataFrame {
    fn parts_on_count(&self, executor: &LocalExecutor) -> usize {
        let text = self.explain_on(executor).unwrap().to_string();
        let tasks = text.split("stage 0: ").nth(1).unwrap().split(' ').next().unwrap();
        tasks.parse().unwrap()
    }
}

#[test]
fn a_head_goes_on_until_it_has_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let frame = files(folder.path());
    for rows in [0, 1, FILE_ROWS, FILE_ROWS * 3 + 1, FILE_ROWS * FILES, FILE_ROWS * FILES + 9] {
        let last = frame.filter(&frame.col("k").eq(2)).head(rows);
        for table in each_executor(|executor| last.collect_on(executor)) {
            let expected: Vec<Option<i64>> =
                (0..(FILES * FILE_ROWS) as i64).filter(|n| n % 3 == 2).take(rows).map(Some).collect();
            assert_eq!(table.column::<i64>("n").unwrap(), expected, "{rows}");
        }
    }
    // Of a frame whose parts have no rows, of groups, and of a sort.
    let none = frame.filter(&frame.col("n").lt(0)).head(3);
    assert!(each_executor(|executor| none.len_on(executor)).iter().all(|rows| *rows == 0));
    let groups = frame.groupby(["k"]).agg([("n", Aggregate::Max)]).head(2);
    for table in each_executor(|executor| groups.collect_on(executor)) {
        assert_eq!(table.column::<i64>("n").unwrap(), [Some(3999), Some(3997)]);
    }
    let sorted = frame.sort_values(["n"], Sort::descending()).head(2);
    assert_eq!(sorted.col("n").values::<i64>().unwrap(), [Some(3999), Some(3998)]);
}

#[test]
fn batches_come_in_the_order_of_rows_on_every_executor() {
    let folder = tempfile::tempdir().unwrap();
    let frame = files(folder.path());
    let doubled = frame.assign("n", &frame.col("n") * 2);
    for threads in [1, 4] {
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(threads, 1 << 30));
        let batches = doubled.iter_batches_on(executor).unwrap();
        assert_eq!(batches.schema().field(0).name(), "n");
        let found: Vec<i64> = batches.flat_map(|batch| numbers(&batch.unwrap())).collect();
        assert_eq!(found, (0..FILES * FILE_ROWS).map(|n| 2 * n as i64).collect::<Vec<_>>());
    }
    // Rows of groups come with their keys; an executor that cannot stream gives them all the same.
    let sums = three_parts().groupby(["k"]).sum();
    let mut batches = sums.iter_batches_on(Arc::new(SentExecutor { attempts: 1 })).unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert_eq!(batch.schema().fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["k", "n"]);
    assert_eq!(batch.num_rows() + batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3);
}

#[test]
fn an_error_comes_in_the_place_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let frame = files(folder.path());
    spoil(folder.path(), FILES - 1);
    let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(FILES, 1 << 30));
    let mut batches = frame.iter_batches_on(executor).unwrap();
    let first = batches.next().unwrap().unwrap();
    assert_eq!(numbers(&first)[0], 0);
    let rest: Vec<Result<RecordBatch, Error>> = batches.by_ref().collect();
    assert!(rest.last().unwrap().is_err());
    assert_eq!(rest.iter().filter(|batch| batch.is_err()).count(), 1);
    assert!(batches.next().is_none());
}

/// Counts how often plans start. The first time, memory is said to be short after some parts.
struct Interrupted {
    inner: LocalExecutor,
    starts: AtomicUsize,
    parts: usize,
    /// Whether later starts give the parts the other way round.
    turned: bool,
}

impl Interrupted {
    fn after(parts: usize, turned: bool) -> Arc<Interrupted> {
        let inner = LocalExecutor::sized(5, 1 << 30);
        Arc::new(Interrupted { inner, starts: AtomicUsize::new(0), parts, turned })
    }
}

impl Executor for Interrupted {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        self.inner.execute(stages)
    }

    fn start(&self, stages: &Stages) -> Result<Parts, Error> {
        let is_first = self.starts.fetch_add(1, Ordering::Relaxed) == 0;
        let parts = self.inner.start(stages)?;
        match (is_first, self.turned) {
            (true, _) if self.parts < usize::MAX => {
                let short = Err(Error::Memory("no more".to_owned()));
                Ok(Box::new(parts.take(self.parts).chain([short])))
            }
            (false, true) => Ok(Box::new(parts.collect::<Vec<_>>().into_iter().rev())),
            _ => Ok(parts),
        }
    }
}

#[test]
fn a_plan_that_begins_anew_gives_no_row_twice() {
    let frame = DataFrame::from_columns([
        ("n", (0..5_000).collect::<Vec<i64>>().into()),
        ("t", (0..5_000).map(|n| format!("row {n}")).collect::<Vec<_>>().into()),
    ]);
    let halves = DataFrame::concat(&[frame.clone(), frame], true).sort_values(["n"], Sort::ascending());
    let groups = halves.groupby(["n"]).as_index(false).agg_as([("rows", "t", Aggregate::Count)]);
    for parts in [0, 1, 3] {
        let executor = Interrupted::after(parts, false);
        let batches = groups.iter_batches_on(Arc::<Interrupted>::clone(&executor)).unwrap();
        let found: Vec<i64> = batches.flat_map(|batch| numbers(&batch.unwrap())).collect();
        assert_eq!(found, (0..5_000).collect::<Vec<_>>(), "after {parts} parts");
        assert_eq!(executor.starts.load(Ordering::Relaxed), 2);
    }
}

#[test]
fn other_rows_in_the_place_of_those_that_were_given_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let frame = files(folder.path());
    let mut batches = frame.iter_batches_on(Interrupted::after(2, true)).unwrap();
    let mut rows = 0;
    let error = loop {
        match batches.next().unwrap() {
            Ok(batch) => {
                assert_eq!(numbers(&batch)[0], rows as i64);
                rows += batch.num_rows();
            }
            Err(error) => break error,
        }
    };
    assert!(0 < rows && batches.next().is_none());
    assert!(matches!(&error, Error::Stream { rows: given, .. } if *given == rows), "{error:?}");
    assert_eq!(error.class(), "MemoryError");
}

#[test]
fn a_file_that_cannot_be_cut_is_read_as_a_whole_after_its_first_rows() {
    // Rows of a text look like records, from the second half of the file on.
    let plain = 0..150_000_i64;
    let text: String = (0..80_000).map(|n| format!("{n},{n}\n")).collect();
    let records = plain.clone().map(|n| format!("{n},x\n")).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path(), 0);
    std::fs::write(&path, format!("n,t\n{records}150000,\"{text}\"\n150001,\"{text}\"\n")).unwrap();
    let frame = read_csv(&path.to_string_lossy(), CsvOptions::default());
    let executor = Interrupted::after(usize::MAX, false);
    let mut batches = frame.iter_batches_on(Arc::<Interrupted>::clone(&executor)).unwrap();
    let mut found = numbers(&batches.next().unwrap().unwrap());
    assert_eq!(executor.starts.load(Ordering::Relaxed), 1, "the first rows come from the cut file");
    found.extend(batches.flat_map(|batch| numbers(&batch.unwrap())));
    assert_eq!(executor.starts.load(Ordering::Relaxed), 2);
    assert!(found.iter().copied().eq(0..plain.end + 2), "{} rows", found.len());
}

#[test]
fn an_executor_may_be_gone_before_its_batches_are_taken() {
    let frame = three_parts();
    let batches = {
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(1, 1 << 30));
        frame.iter_batches_on(executor).unwrap()
    };
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 10);
}

#[test]
fn a_stream_of_the_c_interface_goes_out_and_comes_in() {
    let frame = three_parts();
    let named = frame.assign("word", frame.col("n").astype(DataType::Utf8)).set_index(["n"]);
    let stream = named.to_arrow_stream().unwrap();
    let again = DataFrame::from_arrow_stream(stream).unwrap();
    assert_eq!(again.columns().unwrap(), ["n", "k", "word"]);
    assert_eq!(again.col("word").values::<String>().unwrap()[9].as_deref(), Some("9"));
    // A float that is no number is missing, as in every frame.
    let floats = DataFrame::from_columns([("x", vec![Some(1.5), None].into())]);
    let again = DataFrame::from_arrow_stream(floats.to_arrow_stream().unwrap()).unwrap();
    assert_eq!(again.col("x").count().unwrap().as_i64(), Some(1));
    // An error of the run is one of the stream.
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    spoil(folder.path(), 0);
    let error = DataFrame::from_arrow_stream(files.to_arrow_stream().unwrap()).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
    assert!(frame.select(["none"]).to_arrow_stream().is_err());
}
