//! Sizes that are known only after a run: operations before they are known, the number of phases, and the
//! memory.

use proptest::prelude::*;
use std::sync::Mutex;
use tharsis_graph::phases::Phase;
use tharsis_graph::{Error as GraphError, Executor, Job, Limits, Outcome};
use tharsis_numeric::histogram::Histogram;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{Chunks, LocalExecutor, Tensor, arange, concatenate, execute, explain, index};

fn on(threads: usize) -> LocalExecutor {
    LocalExecutor::sized(threads, 1 << 28)
}

fn bits(tensor: &Tensor, executor: &dyn Executor) -> Vec<u64> {
    let chunk = tensor.to_chunk(executor).unwrap();
    chunk.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

/// An executor that notes the stages of each job.
struct Noting(LocalExecutor, Mutex<Vec<Vec<String>>>);

impl Noting {
    fn new() -> Noting {
        Noting(on(2), Mutex::default())
    }

    fn jobs(self) -> Vec<Vec<String>> {
        self.1.into_inner().unwrap()
    }
}

impl Executor for Noting {
    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn execute(&self, job: Job) -> Result<Outcome, GraphError> {
        let labels = job.runnable.plan().stages.iter().map(|stage| stage.label.clone());
        self.1.lock().unwrap().push(labels.collect());
        self.0.execute(job)
    }
}

#[test]
fn shapes_are_known_as_far_as_they_can_be() {
    let x = default_rng(1).random(&[20, 30]);
    let rows = x.filter(&x.sum(1).greater(15.0));
    assert_eq!(rows.shape().unwrap(), [UNKNOWN, 30]);
    assert_eq!((&rows + &x.get(&index![0..1])).shape().unwrap(), [UNKNOWN, 30]);
    assert_eq!(rows.t().shape().unwrap(), [30, UNKNOWN]);
    assert_eq!(rows.sum(0).shape().unwrap(), [30]);
    assert_eq!(rows.matmul(&x.t()).shape().unwrap(), [UNKNOWN, 20]);
    assert_eq!(concatenate(&[&rows, &rows], 1).shape().unwrap(), [UNKNOWN, 60]);
    assert_eq!(rows.get(&index![.., 3]).shape().unwrap(), [UNKNOWN]);
    // A column for each row of another tensor: the extent has to be that of the other.
    assert_eq!((&rows.sum(1) + &arange(7)).shape().unwrap(), [7]);
}

#[test]
fn what_needs_a_size_awaits_it() {
    let x = arange(10);
    let some = x.filter(&x.greater(5));
    let values = |tensor: Tensor| tensor.fetch::<i64>().unwrap().into_raw_vec_and_offset().0;
    assert_eq!(some.get(&index![1]).ndim().unwrap(), 0);
    assert_eq!(values(some.get(&index![1])), [7]);
    assert_eq!(values(some.get(&index![-2..])), [8, 9]);
    assert_eq!(values(some.flip(None)), [9, 8, 7, 6]);
    assert_eq!(some.reshape(&[2, -1]).shape().unwrap(), [2, UNKNOWN]);
    assert_eq!(values(some.reshape(&[2, -1]).sum(0)), [14, 16]);
    assert_eq!(values(some.ones_like().cumsum(0)), [1, 2, 3, 4]);
    assert_eq!(values(some.tensordot(&some, &[0], &[0])), [36 + 49 + 64 + 81]);
    assert_eq!(values(some.subtract(6).flatnonzero()), [1, 2, 3]);
    assert_eq!(values(some.remainder(2).unique()), [0, 1]);
    // A size that awaits another one.
    let fewer = some.flip(None);
    let fewer = fewer.filter(&fewer.less(9));
    assert_eq!(values(fewer.get(&index![0])), [8]);
}

#[test]
fn what_does_not_fit_its_size_is_an_error_of_the_operation() {
    let x = arange(3);
    let two = x.filter(&x.greater(0));
    let class = |tensor: Tensor| tensor.fetch::<i64>().unwrap_err().class();
    assert_eq!(class(two.broadcast_to(&[5])), "ValueError");
    assert_eq!(class(two.get(&index![2])), "IndexError");
    assert_eq!(class(two.reshape(&[3])), "ValueError");
    assert_eq!(class(two.squeeze(Some(&[0]))), "ValueError");
    // Factors have no shape before their matrix has.
    let error = two.expand_dims(1).qr().0.check().unwrap_err();
    assert!(error.to_string().contains("compute_chunk_sizes()"), "{error}");
    let known = two.compute_chunk_sizes().unwrap();
    assert_eq!(known.reshape(&[-1, 1]).shape().unwrap(), [2, 1]);
}

#[test]
fn shapes_that_turn_out_not_to_fit_are_errors_of_the_operation() {
    let x = arange(10);
    let (few, many) = (x.filter(&x.greater(7)), x.filter(&x.greater(2)));
    let error = (&few + &many).fetch::<i64>().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("(2,) (7,)"), "{error}");
    let none = x.filter(&x.greater(99));
    assert_eq!(none.max(..).fetch::<i64>().unwrap_err().class(), "ValueError");
    assert_eq!(none.sum(..).item().unwrap().to_f64(), 0.0);
    let short = arange(9).greater(2);
    assert_eq!(x.filter(&short).check().unwrap_err().class(), "IndexError");
}

#[test]
fn masks_cost_no_more_memory_than_what_they_find() {
    const MEMORY_BYTES: u64 = 4 << 20;
    // 80 MB of random numbers.
    let x = default_rng(1).random(&[10_000_000]);
    let few = x.filter(&x.greater(0.999));
    let (found, metrics) = execute(&[&few], &LocalExecutor::sized(2, MEMORY_BYTES)).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes && metrics.bound_bytes <= MEMORY_BYTES, "{metrics:?}");
    let count = found[0].shape().unwrap()[0];
    assert!((9_500..10_500).contains(&count), "{count}");
    let mean = few.mean(..);
    let (found, metrics) = execute(&[&mean], &LocalExecutor::sized(2, MEMORY_BYTES)).unwrap();
    assert!(metrics.bound_bytes <= MEMORY_BYTES);
    assert!((found[0].item().unwrap().to_f64() - 0.9995).abs() < 1e-5);
}

#[test]
fn a_phase_for_each_size_that_awaits_another_and_none_for_the_rest() {
    let x = default_rng(1).random(&[50, 50]);
    let product = x.matmul(&x.t());
    let big = product.filter(&product.greater(12.0));
    let bigger = big.filter(&big.greater(big.mean(..)));
    let free = x.std(..);
    let noting = Noting::new();
    execute(&[&bigger, &free], &noting).unwrap();
    let jobs = noting.jobs();
    assert_eq!(jobs.len(), 3, "{jobs:?}");
    let of = |label: &str| -> Vec<usize> {
        jobs.iter().map(|stages| stages.iter().filter(|stage| *stage == label).count()).collect()
    };
    // A heavy tensor is computed once, one that awaits nothing in the first phase, and each size is counted
    // in the phase before it is needed.
    assert_eq!(of("matmul").iter().sum::<usize>(), of("matmul")[0], "{jobs:?}");
    assert!(0 < of("std")[0] && of("std")[1..] == [0, 0], "{jobs:?}");
    assert_eq!(of("count of compress"), [1, 1, 0], "{jobs:?}");
}

#[test]
fn explain_tells_what_waits() {
    let x = arange(100);
    let odd = x.filter(&x.remainder(2).equal(1)).sum(..);
    let text = explain(&[&odd], &on(2)).unwrap().to_string();
    assert!(text.contains("count of compress"), "{text}");
    assert!(text.contains("then, with the sizes that this tells: compress, sum"), "{text}");
    assert!(Phase::next(&[x.node().unwrap().clone()], on(2).limits()).is_none());
}

#[test]
fn histograms_of_what_a_mask_selects_are_those_of_a_loop() {
    let x = default_rng(4).random(&[1_000]).rechunk(Chunks::Each(90));
    let some = x.filter(&x.less(0.5));
    let kept: Vec<f64> = x.to_vec::<f64>().unwrap().into_iter().filter(|&x| x < 0.5).collect();
    let options = Histogram { weights: Some(some.clone()), ..Histogram::default() };
    let (sums, edges) = some.histogram(7, &options);
    assert_eq!((sums.shape().unwrap(), edges.shape().unwrap()), (&[7][..], &[8][..]));
    let edges = edges.to_vec::<f64>().unwrap();
    let mut expected = [0.0; 7];
    for x in &kept {
        expected[edges.partition_point(|edge| edge <= x).min(7) - 1] += x;
    }
    let found = sums.to_vec::<f64>().unwrap();
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
    let numbers = some.multiply(20).floor().astype(tharsis_numeric::DType::I64);
    let mut expected = [0; 10];
    kept.iter().for_each(|x| expected[(x * 20.0) as usize] += 1);
    let counts = numbers.bincount(None, 0);
    assert_eq!(counts.shape().unwrap(), [UNKNOWN]);
    assert_eq!(counts.to_vec::<i64>().unwrap(), expected);
}

#[test]
fn numbers_beyond_a_task_are_counted_in_pieces() {
    let x = arange(1 << 12).multiply(1 << 10).rechunk(Chunks::Each(1000));
    let counts = x.bincount(None, 0);
    assert_eq!(counts.sum(..).item().unwrap().to_f64(), 4096.0);
    let places = counts.flatnonzero().to_vec::<i64>().unwrap();
    assert_eq!(places, (0..1 << 12).map(|i| i << 10).collect::<Vec<i64>>());
}

#[test]
fn a_function_that_gives_something_else_each_time_is_found_out() {
    use ndarray::ArrayD;
    use std::sync::atomic::{AtomicI64, Ordering};
    let calls = AtomicI64::new(0);
    let changing = move |chunk: ArrayD<i64>| chunk + 10 * calls.fetch_add(1, Ordering::Relaxed);
    // So large that it is computed again instead of kept.
    let x = arange(1 << 22).map_chunk(changing);
    let some = x.filter(&x.less(1 << 21)).sum(..);
    let error = execute(&[&some], &LocalExecutor::sized(1, 96 << 20)).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("compress was declared to give"), "{error}");
}

proptest! {
    #![proptest_config(crate::seeds::properties(30, 60))]

    #[test]
    fn masks_and_distinct_elements_are_those_of_a_loop(
        rows in 1usize..40, columns in 1usize..20, a in 1usize..9, b in 1usize..9, limit in 0.0f64..1.2,
    ) {
        let x = default_rng(9).random(&[rows, columns]);
        let all = x.fetch::<f64>().unwrap();
        let cut = x.rechunk(Chunks::PerAxis(vec![a, b]));
        let expected: Vec<u64> = all.iter().filter(|&&x| x < limit).map(|x| x.to_bits()).collect();
        let some = cut.filter(&cut.less(limit));
        for threads in [1, 3] {
            prop_assert_eq!(&bits(&some, &on(threads)), &expected);
        }
        let rounded = (cut * 8.0).floor();
        let mut distinct: Vec<u64> = all.iter().map(|x| (x * 8.0).floor().to_bits()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(bits(&rounded.unique(), &on(2)), distinct);
    }
}
