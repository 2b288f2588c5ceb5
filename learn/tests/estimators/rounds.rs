//! Rounds of fits that hold a number for each sample: the same model from stores with and without room for
//! a round, and what a round costs, by the tasks that it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::{Error, Executor, Job, Limits, LocalExecutor, Outcome};
use tharsis_learn::FitOptions;
use tharsis_learn::decomposition::NMF;
use tharsis_learn::ensemble::{AdaBoostClassifier, AdaBoostRegressor};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor};

/// Rounds of the fits that are compared.
const ROUNDS: [usize; 3] = [2, 4, 6];
/// Bytes of the memory of tasks.
const MEMORY_BYTES: u64 = 1 << 26;

/// An executor that can store so many bytes, and counts its tasks.
struct Counting {
    inner: LocalExecutor,
    tasks: AtomicU64,
}

impl Executor for Counting {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn execute(&self, job: Job) -> Result<Outcome, Error> {
        let outcome = self.inner.execute(job)?;
        self.tasks.fetch_add(outcome.metrics.tasks, Ordering::Relaxed);
        Ok(outcome)
    }
}

/// A fit of so many rounds, which gives the numbers of its model.
type Fit<'a> = &'a dyn Fn(usize, FitOptions) -> Vec<f64>;

/// The models of fits of some numbers of rounds, and their tasks.
fn made(stored_bytes: u64, fit: Fit<'_>) -> [(Vec<f64>, u64); 3] {
    ROUNDS.map(|rounds| {
        let limits = Limits { stored_bytes, ..Limits::new(1, MEMORY_BYTES) };
        let executor = Arc::new(Counting { inner: LocalExecutor::within(limits), tasks: AtomicU64::new(0) });
        let model = fit(rounds, FitOptions::new().executor(executor.clone()));
        (model, executor.tasks.load(Ordering::Relaxed))
    })
}

/// Stores of a fit, in bytes for each sample, and how far models may be apart.
struct Stores {
    /// It has room for a round.
    enough: u64,
    /// It has not.
    scarce: Option<u64>,
    tolerance: f64,
}

/// Fits with a store of any size, one that has room for a round, and one that has not, to the same models.
/// Each round of the second costs as much as the first one; those of the third make others again.
fn check(rows: usize, stores: &Stores, fit: Fit<'_>) {
    let bytes = |each: u64| each * rows as u64;
    let tasks = |of: &[(Vec<f64>, u64); 3]| [of[0].1, of[1].1, of[2].1];
    let is_even = |[few, some, many]: [u64; 3]| many - some == some - few;
    let any = made(1 << 40, fit);
    let same = |other: &[(Vec<f64>, u64); 3]| {
        for ((any, _), (other, _)) in any.iter().zip(other) {
            assert_eq!(any.len(), other.len());
            for (a, b) in any.iter().zip(other) {
                assert!((a - b).abs() <= stores.tolerance * (1.0 + a.abs()), "{b}, not {a}");
            }
        }
    };
    let held = made(bytes(stores.enough), fit);
    same(&held);
    assert!(is_even(tasks(&held)), "{:?}", tasks(&held));
    if let Some(scarce) = stores.scarce {
        let lineage = made(bytes(scarce), fit);
        same(&lineage);
        // Else the other store may have room for more than a round.
        assert!(!is_even(tasks(&lineage)), "{:?}", tasks(&lineage));
    }
}

/// Samples of one feature.
fn samples(rows: usize) -> Tensor {
    default_rng(4).normal(0.0, 1.0, &[rows, 1]).execute().unwrap()
}

#[test]
fn a_round_of_boosted_classifiers_costs_what_the_first_one_does() {
    const ROWS: usize = 400_000;
    let x = samples(ROWS);
    // A quarter of the labels says nothing, so that no round is without mistakes.
    let noise = default_rng(5).random(&[ROWS]).less(0.25);
    let y = x.squeeze(Some(&[1])).greater(0.0).not_equal(noise).astype(DType::I64).execute().unwrap();
    // A round holds 17 bytes for each sample, and the weights of one round are more than a third of the
    // store.
    check(ROWS, &Stores { enough: 20, scarce: Some(12), tolerance: 1e-9 }, &|rounds, options| {
        let estimator = AdaBoostClassifier::new().n_estimators(rounds).learning_rate(0.1);
        let model = estimator.fit(&x, &y, options).unwrap();
        assert_eq!(model.estimators.len(), rounds);
        [model.estimator_weights, model.estimator_errors].concat()
    });
}

#[test]
fn a_round_of_boosted_regressors_costs_what_the_first_one_does() {
    const ROWS: usize = 400_000;
    let x = samples(ROWS);
    let y = x.squeeze(Some(&[1])).square().execute().unwrap();
    // Draws sort a number for each sample. One that rounding changes is another sample, of so many.
    check(ROWS, &Stores { enough: 64, scarce: None, tolerance: 1e-4 }, &|rounds, options| {
        let estimator = AdaBoostRegressor::new().n_estimators(rounds).learning_rate(0.1);
        let model = estimator.fit(&x, &y, options).unwrap();
        assert_eq!(model.estimators.len(), rounds);
        [model.estimator_weights, model.estimator_errors].concat()
    });
}

#[test]
fn a_step_of_parts_costs_what_the_first_one_does() {
    const ROWS: usize = 200_000;
    let x = default_rng(6).random(&[ROWS, 4]).execute().unwrap();
    // A step holds four numbers for each sample, before and behind it.
    check(ROWS, &Stores { enough: 80, scarce: Some(50), tolerance: 1e-9 }, &|rounds, options| {
        let model = NMF::new().n_components(3).tol(0.0).max_iter(rounds).fit(&x, options).unwrap();
        assert_eq!(model.n_iter, rounds);
        model.components.iter().copied().chain([model.reconstruction_err]).collect()
    });
}
