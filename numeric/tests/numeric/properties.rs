//! Properties of results: independent of threads to the bit, of chunks where promised, and within the memory
//! bound.

use proptest::prelude::*;
use tharsis_graph::Executor;
use tharsis_kernels::Complex;
use tharsis_numeric::index::slice;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, LocalExecutor, Tensor, concatenate, execute, index, stack, where_};

fn on(threads: usize) -> LocalExecutor {
    LocalExecutor::new(threads, 1 << 30).unwrap()
}

/// Float64 results as bits, computed on a number of threads.
fn bits(tensor: &Tensor, threads: usize) -> Vec<u64> {
    let (results, metrics) = execute(&[tensor], &on(threads)).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes, "{metrics:?}");
    let chunk = results[0].to_chunk(&on(1)).unwrap();
    chunk.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

/// A program over a matrix, chosen by number.
fn program(x: &Tensor, number: usize) -> Tensor {
    match number {
        0 => (x * 3.0).exp().sum(0),
        1 => (x - &x.mean(1).expand_dims(1)).std(..),
        2 => x.t().get(&index![slice(None, None, -2), 1..]),
        3 => x.matmul(&x.t()),
        4 => x.cumsum(0).max(1),
        5 => x.reshape(&[-1]).cumsum(0),
        6 => concatenate(&[x, &(x + 1.0), x], 1).sum(1),
        7 => where_(&x.greater(0.5), x, 0.0).var(0),
        8 => stack(&[x, &x.sqrt()], 0).mean(-1),
        9 => x.t().reshape(&[-1]).get(&index![slice(None, None, 3)]),
        10 => x.t().matmul(x),
        _ => x.flip(None).diagonal(1).prod(..),
    }
}

const PROGRAMS: usize = 12;

proptest! {
    #![proptest_config(crate::seeds::properties(50, 150))]

    #[test]
    fn results_are_the_same_to_the_bit_on_any_number_of_threads(
        rows in 1usize..40, columns in 2usize..40, a in 1usize..9, b in 1usize..9, number in 0..PROGRAMS,
    ) {
        let x = default_rng(7).random(&[rows, columns]).rechunk(Chunks::PerAxis(vec![a, b]));
        let result = program(&x, number);
        let one = bits(&result, 1);
        prop_assert_eq!(&one, &bits(&result, 2));
        prop_assert_eq!(&one, &bits(&result, 5));
    }

    #[test]
    fn results_do_not_depend_on_chunks_but_for_rounding(
        rows in 1usize..40, columns in 2usize..40, a in 1usize..9, b in 1usize..9, number in 0..PROGRAMS,
    ) {
        let whole = default_rng(7).random(&[rows, columns]);
        let cut = whole.rechunk(Chunks::PerAxis(vec![a, b]));
        // Stored in these chunks, so that later operations read them.
        let stored = execute(&[&cut], &on(2)).unwrap().0.remove(0);
        let expected = bits(&program(&whole, number), 1);
        for x in [cut, stored] {
            for (e, f) in expected.iter().zip(bits(&program(&x, number), 2)) {
                let (e, f) = (f64::from_bits(*e), f64::from_bits(f));
                prop_assert!((e - f).abs() <= 1e-12 * e.abs().max(1.0), "{} {}", e, f);
            }
        }
    }

    #[test]
    fn random_numbers_do_not_depend_on_chunks_or_slices(
        rows in 1usize..60, columns in 1usize..60, a in 1usize..20, b in 1usize..20, start in 0usize..30, step in 1i64..5,
    ) {
        let generators = [default_rng(3), default_rng(3)];
        let whole = generators[0].standard_normal(&[rows, columns]);
        let cut = generators[1].standard_normal(&[rows, columns]).rechunk(Chunks::PerAxis(vec![a, b]));
        prop_assert_eq!(bits(&whole, 1), bits(&cut, 2));
        let part = index![slice(start as i64, None, step), slice(None, None, -1)];
        let stored = execute(&[&whole], &on(1)).unwrap().0.remove(0);
        prop_assert_eq!(bits(&whole.get(&part), 1), bits(&stored.get(&part), 1));
    }
}

#[test]
fn a_plan_that_does_not_fit_is_refused_with_the_number_that_would() {
    let x = default_rng(1).random(&[1000, 1000]);
    let small = LocalExecutor::new(2, 1 << 20).unwrap();
    let error = execute(&[&x], &small).unwrap_err();
    assert_eq!(error.class(), "MemoryError");
    let tharsis_graph::Error::Memory { needed_bytes, .. } = *error.cause() else { panic!("{error}") };
    let enough = LocalExecutor::new(2, needed_bytes).unwrap();
    let (_, metrics) = execute(&[&x], &enough).unwrap();
    assert!(metrics.peak_bytes <= needed_bytes);
}

#[test]
fn inputs_larger_than_memory_are_computed_again_instead_of_kept() {
    // 80 MB of random numbers used twice within 4 MiB.
    let x = default_rng(1).random(&[10_000_000]);
    let centred = &x - &x.mean(..);
    let (results, metrics) =
        execute(&[&centred.square().mean(..)], &LocalExecutor::new(2, 4 << 20).unwrap()).unwrap();
    assert!(metrics.peak_bytes <= 4 << 20);
    assert!((results[0].item().unwrap().to_f64() - 1.0 / 12.0).abs() < 1e-4);
}

#[test]
fn errors_name_shapes_and_the_place_in_the_program() {
    let (a, b) = (default_rng(1).random(&[3, 2]), default_rng(1).random(&[3]));
    let error = (&a + &b).check().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(
        error.to_string().contains("(3,2) (3,)") && error.to_string().contains("properties.rs"),
        "{error}"
    );
    assert_eq!(a.matmul(&a).check().unwrap_err().class(), "ValueError");
    assert_eq!(a.sum(2).check().unwrap_err().class(), "AxisError");
    assert_eq!(a.get(&index![5]).check().unwrap_err().class(), "IndexError");
    assert_eq!(a.invert().check().unwrap_err().class(), "TypeError");
    assert_eq!(tharsis_numeric::zeros(&[usize::MAX, 2]).check().unwrap_err().class(), "ValueError");
}

#[test]
fn equal_expressions_are_computed_once_and_chains_run_in_one_stage() {
    let x = default_rng(1).random(&[1000]);
    let y = ((&x + 1.0) * (&x + 1.0)).sum(..);
    let text = tharsis_numeric::explain(&[&y], &on(2)).unwrap().to_string();
    assert!(text.contains("uniform > add > multiply > fold sum"), "{text}");
    assert_eq!(text.matches("uniform").count(), 1, "{text}");
}

#[test]
fn plans_travel_as_bytes() {
    let x = default_rng(1).random(&[50, 50]).rechunk(Chunks::Each(7));
    let job =
        tharsis_graph::plan(&[x.matmul(&x.t()).cumsum(1).node().unwrap().clone()], on(1).limits()).unwrap();
    let bytes = serde_json::to_vec(&**job.runnable.plan()).unwrap();
    let back: tharsis_graph::Plan = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(back, **job.runnable.plan());
}

#[test]
fn a_plan_of_many_chunks_is_small() {
    let plan = |chunks: usize| {
        let x = default_rng(1).random(&[chunks]).rechunk(Chunks::Each(1));
        let job = tharsis_graph::plan(&[(x + 1.0).sum(..).node().unwrap().clone()], on(2).limits()).unwrap();
        (serde_json::to_vec(&**job.runnable.plan()).unwrap().len(), job.schedule.order.len())
    };
    let ((few, _), (many, tasks)) = (plan(1000), plan(100_000));
    assert!(100_000 < tasks && many < 2 * few, "{few} {many} {tasks}");
}

#[test]
fn absurd_programs_are_refused_before_any_work() {
    let huge = tharsis_numeric::zeros(&[1 << 40]);
    assert_eq!(execute(&[&huge], &on(2)).unwrap_err().class(), "MemoryError");
    assert_eq!(huge.rechunk(Chunks::Each(1)).check().unwrap_err().class(), "ValueError");
    assert_eq!(huge.rechunk(Chunks::Each(0)).check().unwrap_err().class(), "ValueError");
    assert!(LocalExecutor::new(0, 1).is_err() && LocalExecutor::new(1, 0).is_err());
}

#[test]
fn deep_and_shared_expressions_neither_recurse_nor_explode() {
    let mut x = tharsis_numeric::ones(&[4, 3]);
    for _ in 0..60 {
        x = &x + &x;
    }
    let sum = x.reshape(&[12]).sum(..);
    assert_eq!(sum.item().unwrap().to_f64(), 12.0 * 2f64.powi(60));
    let mut y = tharsis_numeric::arange(3);
    for _ in 0..20_000 {
        y += 1i64;
    }
    assert_eq!(y.t().max(..).item().unwrap().to_f64(), 20_002.0);
}

/// As in NumPy, whether the rows are folded one by one or a row is folded as a whole.
#[test]
fn the_variance_of_what_is_infinite_is_nan() {
    let x = Tensor::from_elements(&[2, 3], &[0.0, 1.0, f64::INFINITY, f64::INFINITY, 3.0, 5.0]);
    let down = x.var(0).fetch::<f64>().unwrap();
    assert!(down[[0]].is_nan() && down[[1]] == 1.0 && down[[2]].is_nan(), "{down}");
    let across = x.t().var(1).fetch::<f64>().unwrap();
    assert!(across[[0]].is_nan() && across[[1]] == 1.0 && across[[2]].is_nan(), "{across}");
}

/// NumPy starts with the first element, without a multiplication. One times an infinite complex number is
/// (nan, inf).
#[test]
fn running_products_of_complex_numbers_begin_with_the_first_one_in_any_chunks() {
    let elements = [Complex::new(f64::INFINITY, 0.5), Complex::new(2.0, 0.0), Complex::new(0.5, 3.0)];
    for chunk in 1..=3 {
        let x = Tensor::from_elements(&[3], &elements).rechunk(Chunks::Each(chunk));
        let products = x.cumprod(0).fetch::<Complex<f64>>().unwrap();
        assert_eq!(products[0], elements[0], "in chunks of {chunk}");
    }
}
