//! T: tensors on the task engine. What they compute is what threads of one process compute, to the bit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::{Array, remote};
use tharsis::tensor::random::default_rng;
use tharsis::tensor::sparse::Sparse;
use tharsis::tensor::{
    Chunks, DType, Executor, GraphError, LocalExecutor, MapRemote, Metrics, RemoteExecutor, Tensor, arange,
    concatenate, execute, npy, zarr,
};
use tharsis::{Cancel, FailureKind};
use tharsis_scenarios::{Mode, Scenario, Session, processes, scenarios};

// The programs and the evaluator that the tensors' own tests use.
#[path = "../../../../numeric/tests/numeric/programs/compare.rs"]
mod compare;
#[path = "../../../../numeric/tests/numeric/programs/generate.rs"]
mod generate;
#[path = "../../../../numeric/tests/numeric/programs/plain.rs"]
mod plain;
#[path = "../../../../numeric/tests/numeric/programs/program.rs"]
mod program;

pub const ALL: &[Scenario] = scenarios![
    Both:
        t1_results_are_those_of_threads_to_the_bit,
        t1_batches_do_not_change_results,
        t1_random_programs_give_what_the_plain_evaluator_gives,
        t1_warnings_are_those_of_threads,
        t2_results_are_inputs_again,
        t2_results_stay_in_the_store_for_the_next_job,
        t2_results_end_with_their_runtime,
        t2_results_are_made_where_they_are_stored,
        t2_tensors_find_the_runtime_of_their_thread,
        t3_the_store_stays_below_the_bound,
        t3_exchanges_of_more_than_the_store_holds_go_by_the_disk,
        t3_a_program_too_large_is_refused_with_the_number_needed,
        t4_errors_of_kernels_keep_their_type,
        t4_no_task_starts_after_the_deadline,
        t4_a_cancelled_job_ends_and_the_next_one_runs,
        t6_remote_functions_map_chunks,
        t6_functions_that_fail_or_break_their_word_are_typed_errors,
        t6_a_job_that_fails_says_whether_tasks_go_on,
        t7_files_are_read_and_written_by_tasks,
        t7_zarr_arrays_are_read_and_written_by_tasks,
        t8_sparse_matrices_are_multiplied_added_and_summed_as_on_threads;
    Processes:
        t5_killed_workers_change_nothing;
];

/// Programs over a matrix, each with another shape of plan.
const PROGRAMS: &[fn(&Tensor) -> Tensor] = &[
    |x| (x * 3.0).exp().sum(0),
    |x| (x - &x.mean(1).expand_dims(1)).std(..),
    |x| x.matmul(&x.t()),
    |x| x.cumsum(0).max(1),
    |x| concatenate(&[x, &(x + 1.0), x], 1).sum(1),
    |x| x.t().reshape(&[-1]).cumsum(0),
    |x| x.t().matmul(x) * 2.0,
];

fn bits(results: &[Tensor]) -> Vec<Vec<u64>> {
    let local = LocalExecutor::sized(1, 1 << 30);
    let of = |tensor: &Tensor| tensor.to_chunk(&local).unwrap().to_vec::<f64>().unwrap();
    results.iter().map(|tensor| of(tensor).into_iter().map(f64::to_bits).collect()).collect()
}

fn run(tensors: &[Tensor], executor: &dyn Executor) -> (Vec<Vec<u64>>, Metrics) {
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let (results, metrics) = execute(&tensors, executor).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes, "{metrics:?}");
    (bits(&results), metrics)
}

fn matrix(rows: usize, columns: usize, chunk: [usize; 2]) -> Tensor {
    let x = default_rng(11).random(&[rows, columns]);
    x.rechunk(Chunks::PerAxis(chunk.to_vec()))
}

fn all_programs(x: &Tensor) -> Vec<Tensor> {
    PROGRAMS.iter().map(|program| program(x)).collect()
}

/// The same chunks on threads, on one worker and on several: the same bits.
fn t1_results_are_those_of_threads_to_the_bit(mode: Mode) {
    for workers in [1, 3] {
        let session = mode.start(workers);
        let remote = RemoteExecutor::new(session.runtime()).memory_bytes(32 << 20);
        for chunk in [[90, 70], [17, 70], [30, 11]] {
            let programs = all_programs(&matrix(90, 70, chunk));
            let (expected, _) = run(&programs, &LocalExecutor::within(remote.limits()));
            let (found, metrics) = run(&programs, &remote);
            assert!(expected == found, "{workers} workers, chunks {chunk:?}");
            assert_eq!(metrics.retries, 0);
        }
        session.await_quiet();
    }
}

fn t1_batches_do_not_change_results(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(32 << 20);
    // Chunks on both sides of what travels alone.
    for chunk in [[20, 33], [90, 700]] {
        let programs = all_programs(&matrix(180, 700, chunk));
        let (expected, _) = run(&programs, &LocalExecutor::within(remote.limits()));
        for tasks in [1, 7, 256] {
            let (found, _) = run(&programs, &remote.clone().batch_tasks(tasks));
            assert!(expected == found, "{tasks} tasks a batch, chunks {chunk:?}");
        }
    }
    session.await_quiet();
}

fn t1_random_programs_give_what_the_plain_evaluator_gives(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(32 << 20);
    let local = LocalExecutor::sized(1, 1 << 30);
    for seed in 0..120 {
        let (steps, values) = generate::program(7_000_000 + seed, seed % 3 == 0);
        let mut tensors: Vec<Tensor> = Vec::new();
        for step in &steps {
            tensors.push(step.tensor(&tensors));
        }
        let (results, _) = execute(&[&tensors[steps.len() - 1]], &remote).unwrap();
        let found = compare::plain_of(&results[0].to_chunk(&local).unwrap());
        let expected = &values[steps.len() - 1];
        assert!(compare::is_equal(&found, expected), "seed {seed}: {found:?} for {expected:?}\n{steps:#?}");
    }
    session.await_quiet();
}

/// Warnings come back from wherever the tasks ran, each once, and an `errstate` decides on them.
fn t1_warnings_are_those_of_threads(mode: Mode) {
    use tharsis::tensor::errstate::{ErrState, Reaction, errstate};
    let session = mode.start(2);
    let executor = RemoteExecutor::new(session.runtime());
    let huge = Tensor::from_elements(&[4], &[1e308, 1e308, 0.0, -1.0]);
    let huge = huge.rechunk(Chunks::PerAxis(vec![2]));
    let programs = [huge.sqrt(), (&huge * 10.0), huge.sum(..)];
    let programs: Vec<&Tensor> = programs.iter().collect();
    let local = execute(&programs, &LocalExecutor::within(executor.limits())).unwrap().1;
    let remote = execute(&programs, &executor).unwrap().1;
    let texts: Vec<String> = remote.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "invalid value encountered in sqrt",
            "overflow encountered in multiply",
            "overflow encountered in reduce"
        ]
    );
    assert_eq!(local.warnings, remote.warnings);
    let guard = errstate(ErrState { over: Reaction::Raise, ..ErrState::default() });
    assert_eq!(huge.sum(..).fetch_on::<f64>(&executor).unwrap_err().class(), "FloatingPointError");
    huge.sqrt().fetch_on::<f64>(&executor).unwrap();
    assert_eq!(guard.take(), ["invalid value encountered in sqrt"]);
    session.await_quiet();
}

/// A job's result is read by the next where it lies, and freed when nobody has it.
fn t2_results_are_inputs_again(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime());
    let x = matrix(300, 300, [100, 300]);
    let (stored, _) = execute(&[&x], &remote).unwrap();
    let (found, _) = run(&all_programs(&stored[0]), &remote);
    let local = LocalExecutor::within(remote.limits());
    let (made, _) = execute(&[&x], &local).unwrap();
    let (expected, _) = run(&all_programs(&made[0]), &local);
    assert!(expected == found);
    let elements = tharsis::tensor::create::arange(1000);
    assert_eq!(bits(&execute(&[&elements, &stored[0]], &remote).unwrap().0[1..]), bits(&stored));
    drop((stored, x));
    session.await_quiet();
}

/// A job that reads what another made puts nothing there again.
fn t2_results_stay_in_the_store_for_the_next_job(mode: Mode) {
    const KEPT_BYTES: u64 = 32 << 20;
    let session = mode.start_with(2, |init| init.store_bytes(256 << 20));
    let remote = RemoteExecutor::new(session.runtime());
    // Chunks so large that a second copy of one is more than all else there is.
    let x = matrix(2, 1 << 21, [1, 1 << 21]);
    let (kept, _) = execute(&[&x], &remote).unwrap();
    let scaled = [((&kept[0] + 1.0) * &kept[0]).sum(1)];
    let ((found, _), most) = most_stored(&session, || run(&scaled, &remote));
    // Memory that clients hold for small values, and ahead.
    assert!((KEPT_BYTES..KEPT_BYTES + (8 << 20)).contains(&most), "{most} bytes");
    let made = [((&x + 1.0) * &x).sum(1)];
    assert_eq!(found, run(&made, &LocalExecutor::within(remote.limits())).0);
    drop((kept, scaled));
    session.await_quiet();
}

/// A reader of a result whose store is gone is told so.
fn t2_results_end_with_their_runtime(mode: Mode) {
    let session = mode.start(1);
    let x = matrix(2, 1 << 17, [1, 1 << 17]);
    let (kept, _) = execute(&[&x], &RemoteExecutor::new(session.runtime())).unwrap();
    drop(session);
    let error = kept[0].to_chunk(&LocalExecutor::sized(1, 1 << 30)).unwrap_err();
    assert!(matches!(error.cause(), GraphError::Engine(_)), "{error}");
}

/// Chunks on both sides of what is made in place and of what is stored around the cache, among small ones in
/// the same batch.
fn t2_results_are_made_where_they_are_stored(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(256 << 20));
    let remote = RemoteExecutor::new(session.runtime());
    for rows in [1_000, 9_000, 70_000] {
        let x = matrix(2 * rows + 7, 8, [rows, 8]);
        let y = &x + 1.0;
        let made = [y.matmul(&y.t().matmul(&y)), y.sum(0), y];
        let (expected, _) = run(&made, &LocalExecutor::within(remote.limits()));
        for tasks in [1, 256] {
            let (found, _) = run(&made, &remote.clone().batch_tasks(tasks));
            assert!(expected == found, "{rows} rows, {tasks} tasks a batch");
        }
    }
    session.await_quiet();
}

fn t2_tensors_find_the_runtime_of_their_thread(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let x = matrix(200, 200, [50, 200]);
    let before = session.report().nodes[0].total.clone();
    let kept = x.execute().unwrap();
    assert!(0 < session.store().object_count, "its chunks lie in the store of {before}");
    assert_eq!(kept.fetch::<f64>().unwrap(), x.fetch_on::<f64>(&LocalExecutor::sized(1, 1 << 30)).unwrap());
    drop(kept);
    session.await_quiet();
}

/// The most bytes that the session's store had while `f` ran.
fn most_stored<T: Send>(session: &Session, f: impl FnOnce() -> T + Send) -> (T, u64) {
    std::thread::scope(|scope| {
        let running = scope.spawn(f);
        let mut most = 0;
        while !running.is_finished() {
            most = session.store().used_bytes.max(most);
            std::thread::sleep(Duration::from_micros(200));
        }
        (running.join().unwrap(), most)
    })
}

/// Many times the data that is allowed at a time. Its chunks are so large that each gets a region of the
/// store that is as large as it is, so that the store tells what there is.
fn t3_the_store_stays_below_the_bound(mode: Mode) {
    const MEMORY_BYTES: u64 = 128 << 20;
    let session = mode.start_with(2, |init| init.store_bytes(256 << 20));
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(MEMORY_BYTES);
    let x = default_rng(1).random(&[40, 1 << 20]);
    let x = x.rechunk(Chunks::PerAxis(vec![1, 1 << 20]));
    let y = [(x.cumsum(1) + x.flip(Some(&[1]))).max(1)];
    let ((found, metrics), most) = most_stored(&session, || run(&y, &remote));
    // Memory that clients hold for small values: the first regions, and those asked for ahead.
    let regions = 3 * (2 << 20);
    assert!(most <= metrics.bound_bytes + regions, "{most} bytes, {metrics:?}");
    assert!(metrics.bound_bytes <= MEMORY_BYTES);
    assert_eq!(found, run(&y, &LocalExecutor::within(remote.limits())).0);
    session.await_quiet();
}

/// Exchanges of more than the store holds: a sort of twice as much, and others whose pieces are.
fn t3_exchanges_of_more_than_the_store_holds_go_by_the_disk(mode: Mode) {
    const STORE_BYTES: u64 = 32 << 20;
    let session = mode.start_with(2, |init| init.store_bytes(STORE_BYTES));
    let remote = RemoteExecutor::new(session.runtime());
    let limits = remote.limits();
    assert_eq!(limits.memory_bytes, STORE_BYTES / 2);
    assert!(STORE_BYTES < limits.stored_bytes, "{limits:?}");
    // Small integers, so that sums are exact whatever the chunks.
    let numbers = |count| default_rng(1).integers(0, 100, &[count]);
    let weigh = |x: Tensor, count| (x * arange(count)).sum(..).astype(DType::F64);
    let (many, some) = (STORE_BYTES as usize / 4, STORE_BYTES as usize / 12);
    let places = default_rng(2).integers(0, some as i64, &[some]);
    let programs = [
        weigh(numbers(many).sort(0), many),
        weigh(numbers(some).argsort(0), some),
        weigh(numbers(some).take_at(&places, 0), some),
    ];
    for program in programs {
        let (found, metrics) = run(std::slice::from_ref(&program), &remote);
        assert!(STORE_BYTES < metrics.peak_bytes, "it never had more than the store holds: {metrics:?}");
        assert_eq!(found, run(&[program], &LocalExecutor::sized(2, 1 << 30)).0);
    }
    session.await_quiet();
}

fn t3_a_program_too_large_is_refused_with_the_number_needed(mode: Mode) {
    let session = mode.start(1);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(1 << 20);
    let x = default_rng(1).random(&[1000, 1000]);
    let error = execute(&[&x], &remote).unwrap_err();
    assert_eq!(error.class(), "MemoryError");
    let text = error.to_string();
    let needed: u64 =
        text.split("allow at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(execute(&[&x], &remote.memory_bytes(2 * needed)).is_ok(), "{text}");
    session.await_quiet();
}

fn t4_errors_of_kernels_keep_their_type(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime());
    let indefinite = tharsis::tensor::zeros(&[4, 4]) - 1.0;
    let factor = indefinite.cholesky();
    let here = execute(&[&factor], &LocalExecutor::sized(1, 1 << 20)).unwrap_err();
    let there = execute(&[&factor], &remote).unwrap_err();
    assert_eq!((there.class(), there.cause()), ("LinAlgError", here.cause()));
    let options = tharsis::Options::default().num_cpus(-1.0);
    let refused = execute(&[&matrix(4, 4, [2, 2])], &remote.options(options)).unwrap_err();
    assert_eq!(refused.class(), "ValueError");
    let tharsis::tensor::GraphError::Engine(failure) = refused.cause() else { panic!("{refused}") };
    let cause = failure.cause().downcast_ref::<tharsis::Failure>().unwrap();
    assert_eq!(cause.kind, FailureKind::InvalidArgument);
    // One error for tasks and tensors: the engine's is what it was, others keep their class in words.
    assert_eq!(tharsis::Error::from(refused.clone()).failure(), cause);
    let error = tharsis::Error::from(here);
    assert_eq!(error.kind(), FailureKind::InvalidArgument);
    assert!(error.to_string().contains("LinAlgError: "), "{error}");
    session.await_quiet();
}

fn t4_no_task_starts_after_the_deadline(mode: Mode) {
    let session = mode.start(1);
    let remote = RemoteExecutor::new(session.runtime());
    let x = default_rng(1).standard_normal(&[1_000_000_000]).sum(..);
    let started = Instant::now();
    let error = execute(&[&x], &remote.until(started + Duration::from_millis(50))).unwrap_err();
    assert_eq!(error.class(), "Timeout");
    assert!(started.elapsed() < Duration::from_secs(5));
    session.await_quiet();
}

/// Workers that are killed at any time: their tasks run again, and the bits are the same.
fn t5_killed_workers_change_nothing(mode: Mode) {
    const MEMORY_BYTES: u64 = 32 << 20;
    let session = mode.start(2);
    let options = tharsis::Options::default().max_retries(20);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(MEMORY_BYTES).options(options);
    let x = matrix(600, 600, [60, 600]);
    let sines = x.matmul(&x.t()).sin();
    let program = [sines.map_remote::<halve>().matmul(&x)];
    let (expected, _) = run(&program, &LocalExecutor::within(remote.limits()));
    let node = session.report().pid;
    let is_done = AtomicBool::new(false);
    let runs = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_workers(node, &is_done));
        let until = Instant::now() + Duration::from_secs(20);
        let mut runs: Vec<_> = Vec::new();
        while runs.iter().all(|(_, metrics): &(_, Metrics)| metrics.retries == 0) && Instant::now() < until {
            match execute(&[&program[0]], &remote) {
                Ok((results, metrics)) => runs.push((bits(&results), metrics)),
                Err(error) => {
                    is_done.store(true, Ordering::Relaxed);
                    panic!("{error}");
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
        killer.join().unwrap();
        runs
    });
    assert!(runs.iter().all(|(found, _)| *found == expected));
    let of_stages = |metrics: &Metrics| metrics.stages.iter().map(|stage| stage.retries).sum::<u64>();
    assert!(runs.iter().all(|(_, metrics)| metrics.retries <= of_stages(metrics)), "each is of some stage");
    assert!(runs.iter().any(|(_, metrics)| 0 < metrics.retries), "no batch ran twice: {}", runs.len());
    session.await_quiet();
}

#[remote]
fn halve(chunk: Array<f64>) -> Array<f64> {
    (chunk.into_owned() / 2.0).into()
}

#[remote]
fn rounded(chunk: Array<f64>) -> Result<Array<i32>, String> {
    let largest = chunk.as_slice().iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if 1e9 < largest {
        return Err(format!("{largest} is too large"));
    }
    Ok(chunk.view().mapv(|x| (x * 1000.0).round() as i32).into())
}

#[remote]
fn first_row(chunk: Array<f64>) -> Array<f64> {
    chunk.view().slice_axis(ndarray::Axis(0), (..1).into()).to_owned().into()
}

#[remote]
fn slowly(x: Array<f64>) -> Array<f64> {
    std::thread::sleep(Duration::from_secs(1));
    x
}

#[remote]
fn panicking(_: Array<f64>) -> Array<f64> {
    panic!("on purpose")
}

/// Some tasks run and others wait when the handle is cancelled; the functions that run end by themselves.
fn t4_a_cancelled_job_ends_and_the_next_one_runs(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).batch_tasks(1);
    let x = matrix(80, 10, [5, 10]);
    let soon = Instant::now() + Duration::from_millis(300);
    let cancel = Cancel::when(move || soon <= Instant::now());
    let error = cancel.run(|| execute(&[&x.map_remote::<slowly>()], &remote)).unwrap_err();
    assert_eq!(error.class(), "Cancelled");
    assert!(matches!(error.cause(), GraphError::Cancelled));
    assert_eq!(tharsis::Error::from(error).kind(), FailureKind::Cancelled);
    let error = cancel.run(|| execute(&[&x.sum(..)], &remote)).unwrap_err();
    assert_eq!(error.class(), "Cancelled", "what begins later does not begin");
    let sums = [x.sum(0)];
    let (found, _) = Cancel::new().run(|| run(&sums, &remote));
    assert_eq!(found, run(&sums, &LocalExecutor::within(remote.limits())).0);
    session.await_quiet();
}

/// A user's functions in tasks: what they give does not depend on where they run.
fn t6_remote_functions_map_chunks(mode: Mode) {
    for workers in [1, 3] {
        let session = mode.start(workers);
        let remote = RemoteExecutor::new(session.runtime()).memory_bytes(32 << 20);
        let local = LocalExecutor::within(remote.limits());
        let x = matrix(90, 70, [17, 30]) * 7.0;
        let halves = [x.map_remote::<halve>().sum(0), (&x / 2.0)];
        let (found, metrics) = run(&halves, &remote);
        assert_eq!((metrics.retries, found), (0, run(&halves, &local).0));
        let whole = x.map_remote::<rounded>();
        assert_eq!(whole.dtype().unwrap(), DType::I32);
        assert_eq!(whole.fetch_on::<i32>(&remote).unwrap(), whole.fetch_on::<i32>(&local).unwrap());
        let first = x.map_remote_to::<first_row>(&[Some(1), None]);
        let expected = x.get(&tharsis::tensor::index![0..1]);
        assert_eq!(bits(&execute(&[&first], &remote).unwrap().0), bits(&[expected]));
        session.await_quiet();
    }
}

fn t6_functions_that_fail_or_break_their_word_are_typed_errors(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime());
    let x = matrix(20, 10, [5, 10]);
    let error = |tensor: &Tensor| execute(&[tensor], &remote).unwrap_err();
    let shorter = error(&x.map_remote::<first_row>());
    assert_eq!(shorter.class(), "ValueError");
    assert!(
        matches!(shorter.cause(), GraphError::Declared { declared, found, .. } if declared == &[5, 10] && found == &[1, 10])
    );
    let failing = error(&(&x * 1e12).map_remote::<rounded>());
    assert_eq!(failing.class(), "RuntimeError");
    assert!(failing.to_string().contains("is too large"), "{failing}");
    let panicked = error(&x.map_remote::<panicking>());
    assert!(panicked.to_string().contains("it panicked: on purpose"), "{panicked}");
    let mistyped = x.astype(DType::F32).map_remote::<halve>().check().unwrap_err();
    assert_eq!(mistyped.class(), "TypeError");
    assert!(mistyped.to_string().contains("Array < f64 >") && mistyped.to_string().contains("float32"));
    // A closure cannot travel.
    let closure = |chunk: ndarray::ArrayD<f64>| chunk;
    assert_eq!(error(&x.map_chunk(closure)).class(), "TypeError");
    session.await_quiet();
}

fn t6_a_job_that_fails_says_whether_tasks_go_on(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).batch_tasks(1);
    let x = matrix(80, 10, [5, 10]) * 1e12;
    let failing = execute(&[&x.map_remote::<rounded>()], &remote).unwrap_err();
    assert_eq!(failing.class(), "RuntimeError");
    assert!(!remote.leaves_tasks(failing.cause()), "the others have ended");
    let soon = remote.clone().until(Instant::now() + Duration::from_millis(200));
    let late = execute(&[&x.map_remote::<slowly>()], &soon).unwrap_err();
    assert_eq!(late.class(), "Timeout");
    assert!(soon.leaves_tasks(late.cause()) && remote.leaves_tasks(late.cause()), "some may run");
    session.await_quiet();
}

fn t7_files_are_read_and_written_by_tasks(mode: Mode) {
    const MEMORY_BYTES: u64 = 4 << 20;
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(MEMORY_BYTES);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let x = matrix(2000, 700, [50, 700]);
    npy::save(&path, &x, &remote).unwrap();
    let programs = [npy::load(&path).sin().max(1)];
    let (found, _) = run(&programs, &remote);
    assert_eq!(found, run(&programs, &LocalExecutor::within(remote.limits())).0);
    assert_eq!(npy::load(&path).fetch::<f64>().unwrap(), x.fetch::<f64>().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    session.await_quiet();
}

fn t7_zarr_arrays_are_read_and_written_by_tasks(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(48 << 20);
    let folder = tempfile::tempdir().unwrap();
    let x = matrix(900, 700, [50, 700]);
    let expected = x.fetch::<f64>().unwrap();
    for (name, compression, shards) in [
        ("plain", zarr::Compression::None, None),
        ("zstd", zarr::Compression::Zstd { level: 1 }, None),
        ("sharded", zarr::Compression::Zstd { level: 1 }, Some(vec![384, 300])),
    ] {
        let path = folder.path().join(format!("{name}.zarr"));
        // Chunks of files that are no chunks of the tensor, and some beyond its end.
        let options = zarr::Options { chunks: Some(vec![128, 300]), shards, compression, checksum: true };
        zarr::save(&path, &x, &options, &remote).unwrap();
        let programs = [zarr::load(&path).sin().max(1)];
        let (found, _) = run(&programs, &remote);
        assert_eq!(found, run(&programs, &LocalExecutor::within(remote.limits())).0);
        assert_eq!(zarr::load(&path).fetch::<f64>().unwrap(), expected);
    }
    session.await_quiet();
}

/// Sizes of tiles are counted by tasks, products and sums run where tiles are.
fn t8_sparse_matrices_are_multiplied_added_and_summed_as_on_threads(mode: Mode) {
    let session = mode.start(2);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(32 << 20);
    let local = LocalExecutor::within(remote.limits());
    let x = default_rng(3).random(&[300, 4]);
    for chunks in [Chunks::Each(70), Chunks::PerAxis(vec![300, 41])] {
        let a = Sparse::random([300, 300], 0.03, 7, chunks).unwrap();
        let b = a.matmul(&a.transpose()).unwrap();
        let both = b.map(|x| x.sqrt()).unwrap().add(&a).unwrap();
        let stored = [&a, &b, &both].map(|matrix| matrix.values().clone());
        let programs = [b.dot(&x), both.to_dense(), both.sum(Some(0)), both.values().clone()];
        let (expected, _) = run(&programs, &local);
        let (found, metrics) = run(&programs, &remote);
        assert!(expected == found, "in {:?} tiles", a.grid());
        assert_eq!(metrics.retries, 0);
        // Tiles that one job has made are read by the next.
        let kept = execute(&stored.each_ref(), &remote).unwrap().0;
        assert_eq!(run(&kept, &remote).0, run(&stored, &local).0);
    }
    session.await_quiet();
}

/// Kills a worker again and again. The pauses grow until a worker, which takes long to start on a busy
/// machine, ends a task between two of them.
fn kill_workers(node: u32, is_done: &AtomicBool) {
    let mut pause = Duration::from_millis(40);
    while !is_done.load(Ordering::Relaxed) {
        std::thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_secs(2));
        if let Some(worker) = processes::children(node).first() {
            processes::signal(*worker, rustix::process::Signal::KILL);
        }
    }
}
