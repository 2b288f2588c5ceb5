//! The executors that every program runs on.

use arrow::array::{Int64Array, RecordBatch};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tharsis_dataframe::{
    Cancel, DataFrame, Error, Executor, Fragment, KeptPart, Limits, LocalExecutor, LocalPart, Metrics,
    Outcome, Piece, PieceSource, Resident, SqlSession, Stages, TaskInputs, offer_executor, tasks_left_behind,
};

/// The result of a program on each executor.
#[track_caller]
pub fn each_executor<T>(program: impl Fn(&dyn Executor) -> Result<T, Error>) -> Vec<T> {
    // Programs share them: a thread for each of thousands of programs takes longer than the programs.
    static ONE: LazyLock<LocalExecutor> = LazyLock::new(|| LocalExecutor::sized(1, 1 << 30));
    static FOUR: LazyLock<LocalExecutor> = LazyLock::new(|| LocalExecutor::sized(4, 1 << 30));
    let executors: [&dyn Executor; 3] = [&*ONE, &*FOUR, &SentExecutor { attempts: 1 }];
    executors.into_iter().map(|executor| program(executor).unwrap()).collect()
}

/// Ten rows in three parts: `n` counts them, `k` is `n` modulo three.
pub fn three_parts() -> DataFrame {
    let part = |from: i64, to: i64| {
        let n = Arc::new(Int64Array::from_iter_values(from..to));
        let k = Arc::new(Int64Array::from_iter_values((from..to).map(|n| n % 3)));
        RecordBatch::try_from_iter_with_nullable([("n", n as _, true), ("k", k as _, true)]).unwrap()
    };
    let parts = vec![part(0, 4), part(4, 5), part(5, 10)];
    DataFrame::from_batches(parts[0].schema(), parts)
}

/// A program whose frames run on this executor if they name none. It is offered as the task engine offers
/// its own: a process has one source, which asks the thread here.
pub fn by_default<T>(executor: Arc<dyn Executor>, program: impl FnOnce() -> T) -> T {
    thread_local! {
        static CHOSEN: RefCell<Option<Arc<dyn Executor>>> = const { RefCell::new(None) };
    }
    offer_executor(|| CHOSEN.with_borrow(Clone::clone));
    CHOSEN.set(Some(executor));
    let made = program();
    CHOSEN.set(None);
    made
}

/// Sends each stage as bytes and runs its tasks one by one, as a worker of a cluster does.
pub struct SentExecutor {
    /// Times that each task runs; the last one counts.
    pub attempts: usize,
}

impl Executor for SentExecutor {
    fn limits(&self) -> Limits {
        Limits { threads: 3, memory_bytes: 1 << 30 }
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        let mut pieces: HashMap<Piece, Vec<RecordBatch>> = HashMap::new();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for stage in 0..stages.count() {
            let bytes = stages.encode(stage)?;
            rows.push(Vec::new());
            for task in 0..stages.tasks_of(stage) {
                let needs = stages.needs_of(stage, task);
                let inputs = || {
                    let mut inputs = TaskInputs::default();
                    for piece in &needs.pieces {
                        let batches = match piece.source {
                            PieceSource::Given(table) => stages.tables()[table].parts[piece.task].fetch()?,
                            PieceSource::Stage(_) => pieces[piece].clone(),
                        };
                        inputs.insert(*piece, batches);
                    }
                    for &(counted, tasks) in &needs.counts {
                        inputs.insert_rows(counted, rows[counted][..tasks].to_vec());
                    }
                    Ok::<_, Error>(inputs)
                };
                for _ in 1..self.attempts {
                    Fragment::decode(&bytes)?.run(task, inputs()?, None)?;
                }
                let outputs = Fragment::decode(&bytes)?.run(task, inputs()?, None)?.outputs;
                rows[stage].push(outputs.iter().flatten().map(RecordBatch::num_rows).sum());
                for (output, batches) in outputs.into_iter().enumerate() {
                    pieces.insert(Piece { source: PieceSource::Stage(stage), task, output }, batches);
                }
            }
        }
        let source = PieceSource::Stage(stages.count() - 1);
        let parts = (0..stages.tasks_of(stages.count() - 1)).map(|task| {
            let part = LocalPart(pieces[&Piece { source, task, output: 0 }].clone());
            Arc::new(part) as Arc<dyn KeptPart>
        });
        Ok(Outcome { parts: parts.collect(), metrics: Metrics::default() })
    }
}

/// A part that cannot be read while somebody holds a lock; tells whether somebody has tried.
#[derive(Debug)]
struct Held(Arc<Mutex<()>>, Arc<AtomicBool>, RecordBatch);

impl KeptPart for Held {
    fn fetch(&self) -> Result<Vec<RecordBatch>, Error> {
        self.1.store(true, Ordering::Relaxed);
        let _held = self.0.lock().unwrap();
        Ok(vec![self.2.clone()])
    }

    fn rows(&self) -> usize {
        self.2.num_rows()
    }

    fn bytes(&self) -> usize {
        self.2.get_array_memory_size()
    }
}

/// Five rows of a part that is held, with the lock, and whether a task has come to the part.
fn held_rows() -> (DataFrame, Arc<Mutex<()>>, Arc<AtomicBool>) {
    let numbers = Arc::new(Int64Array::from_iter_values(0..8));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers as _, true)]).unwrap();
    let (gate, entered) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
    let schema = batch.schema();
    let parts: Vec<Arc<dyn KeptPart>> = vec![Arc::new(Held(gate.clone(), entered.clone(), batch))];
    let frame = DataFrame::from_parts(Resident { schema, parts });
    (frame.filter(&frame.col("n").gt(2)), gate, entered)
}

#[test]
fn a_cancelled_run_ends_and_the_next_one_has_threads() {
    let (frame, gate, entered) = held_rows();
    let executor = LocalExecutor::sized(1, 64 << 20);
    // Cancelled once a task runs.
    let cancel = Cancel::when(move || entered.load(Ordering::Relaxed));
    let held = gate.lock().unwrap();
    let error = cancel.run(|| frame.collect_on(&executor)).unwrap_err();
    assert!(matches!(error.root(), Error::Cancelled), "{error}");
    assert_eq!(error.class(), "Cancelled");
    // The only thread still waits; it is another one's.
    let other = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    assert_eq!(other.filter(&other.col("n").gt(1)).collect_on(&executor).unwrap().len(), 2);
    let late = other.filter(&other.col("n").gt(1));
    let error = cancel.run(|| late.collect_on(&executor)).unwrap_err();
    assert_eq!(error.class(), "Cancelled", "what begins later does not begin");
    drop(held);
    assert_eq!(frame.collect_on(&executor).unwrap().len(), 5);
}

#[test]
fn rows_and_statements_end_when_they_are_cancelled() {
    let looks = Arc::new(AtomicUsize::new(0));
    let later = |looks: &Arc<AtomicUsize>| {
        let looks = looks.clone();
        Cancel::when(move || 10 < looks.fetch_add(1, Ordering::Relaxed))
    };
    let endless = "select max(value % 7) as most from generate_series(1, 1000000000000)";
    let error = later(&looks).run(|| SqlSession::default().execute(endless)).unwrap_err();
    assert_eq!(error.class(), "Cancelled", "{error}");
    looks.store(0, Ordering::Relaxed);
    let rows = later(&looks).run(|| {
        let rows = DataFrame::from_columns([("n", (0..100_000).collect::<Vec<i64>>().into())]);
        let rows = rows.filter(&rows.col("n").gt(-1));
        let all = std::iter::repeat_with(|| rows.iter_batches()?.collect::<Result<Vec<_>, Error>>());
        all.take(1000).collect::<Result<Vec<_>, Error>>()
    });
    assert_eq!(rows.unwrap_err().class(), "Cancelled");
}

#[test]
fn a_task_that_takes_longer_than_the_time_is_left_behind_and_counted() {
    let (frame, gate, entered) = held_rows();
    let held = gate.lock().unwrap();
    for seconds in [1, 4, 16, 64] {
        let executor = LocalExecutor::sized(2, 64 << 20).until(Instant::now() + Duration::from_secs(seconds));
        let error = frame.collect_on(&executor).unwrap_err();
        assert_eq!(error.class(), "Timeout", "while the task still waits: {error}");
        // A machine with other work may not have come to the part.
        if entered.load(Ordering::Relaxed) {
            break;
        }
    }
    assert!(0 < tasks_left_behind(), "it is counted");
    drop(held);
    let end = Instant::now() + Duration::from_secs(10);
    // Other tests of this process may leave tasks for a moment.
    while 0 < tasks_left_behind() {
        assert!(Instant::now() < end, "it has ended");
        std::thread::yield_now();
    }
    assert_eq!(frame.collect_on(&LocalExecutor::sized(2, 64 << 20)).unwrap().len(), 5);
}
