//! Rounds of fits that hold a number for each sample: the same model from stores of all sizes in which a fit
//! has room, and what a round costs, by the tasks that it runs and by the stages of their plans.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tharsis_graph::{Error, Executor, Job, Limits, LocalExecutor, Outcome};
use tharsis_learn::FitOptions;
use tharsis_learn::decomposition::NMF;
use tharsis_learn::ensemble::{AdaBoostClassifier, AdaBoostRegressor};
use tharsis_learn::linear_model::{Ridge, RidgeClassifier};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor};
use tharsis_trials::cases;

/// Bytes of the memory of tasks.
const MEMORY_BYTES: u64 = 1 << 26;

/// An executor that counts its tasks.
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

/// An executor with room for all, which notes the stages of its jobs.
struct Noting {
    inner: LocalExecutor,
    jobs: Mutex<Vec<Vec<String>>>,
}

impl Executor for Noting {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn execute(&self, job: Job) -> Result<Outcome, Error> {
        let stages = job.runnable.plan().stages.iter().map(|stage| stage.label.clone()).collect();
        self.jobs.lock().unwrap().push(stages);
        self.inner.execute(job)
    }
}

/// The stages of the jobs of a fit.
fn noted(fit: impl FnOnce(FitOptions)) -> Vec<Vec<String>> {
    let inner = LocalExecutor::within(Limits::new(1, MEMORY_BYTES));
    let executor = Arc::new(Noting { inner, jobs: Mutex::default() });
    fit(FitOptions::new().executor(executor.clone()));
    std::mem::take(&mut *executor.jobs.lock().unwrap())
}

/// A fit of so many rounds, which gives the numbers of its model.
type Fit<'a> = &'a dyn Fn(usize, FitOptions) -> tharsis_learn::Result<Vec<f64>>;

/// The model of a fit, and the tasks of it.
type Made = (Vec<f64>, u64);

/// Rounds of the fits that are compared. The second one reads what the first one has stored, and a third one
/// tells whether rounds cost the same.
fn rounds_of_fits() -> [usize; 3] {
    cases([1, 2, 3], [2, 4, 6])
}

/// Fits of some numbers of rounds; none if a store of so many bytes has no room for them.
fn made(stored_bytes: u64, fit: Fit<'_>) -> Option<Vec<Made>> {
    let of = |rounds: usize| {
        let limits = Limits { stored_bytes, ..Limits::new(1, MEMORY_BYTES) };
        let executor = Arc::new(Counting { inner: LocalExecutor::within(limits), tasks: AtomicU64::new(0) });
        match fit(rounds, FitOptions::new().executor(executor.clone())) {
            Ok(model) => Some((model, executor.tasks.load(Ordering::Relaxed))),
            Err(error) => {
                assert_eq!(error.class(), "MemoryError", "{error}");
                None
            }
        }
    };
    rounds_of_fits().map(of).into_iter().collect()
}

/// Fits with stores of so many bytes for each sample, to the same models as with a store of any size. Tells
/// for each size that has room whether each round costs as many tasks as the first one.
fn check(rows: usize, sizes: &[u64], tolerance: f64, fit: Fit<'_>) -> Vec<(u64, bool)> {
    let any = made(1 << 40, fit).expect("it has room");
    let mut found = Vec::new();
    for &size in sizes {
        let Some(made) = made(size * rows as u64, fit) else { continue };
        for ((any, _), (other, _)) in any.iter().zip(&made) {
            assert_eq!(any.len(), other.len());
            for (a, b) in any.iter().zip(other) {
                assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{size}: {b}, not {a}");
            }
        }
        found.push((size, made[2].1 - made[1].1 == made[1].1 - made[0].1));
    }
    found
}

/// Samples of one feature.
fn samples(rows: usize) -> Tensor {
    default_rng(4).normal(0.0, 1.0, &[rows, 1]).execute().unwrap()
}

/// The labels of a line go through a stage that asks for its scores: in one job of each round, as mistakes
/// are stored. The weights are stored too, so a plan of a late round has no more stages than one of an early
/// round; without that it has those of all lines before it.
#[test]
fn rounds_of_boosted_lines_store_mistakes_and_weights() {
    const ROWS: usize = 500;
    const FEW_AND_MANY: [usize; 2] = [3, 8];
    let x = samples(ROWS);
    let flat = x.squeeze(Some(&[1]));
    let noise = default_rng(5).random(&[ROWS]).less(0.25);
    let labels = flat.greater(0.0).not_equal(noise).astype(DType::I64).execute().unwrap();
    let numbers = (&flat + &default_rng(6).normal(0.0, 1.0, &[ROWS])).execute().unwrap();
    let most = |jobs: &[Vec<String>]| jobs.iter().map(Vec::len).max();
    let [few, many] = FEW_AND_MANY.map(|rounds| {
        let jobs = noted(|options| {
            let estimator = AdaBoostClassifier::new().estimator(RidgeClassifier::new());
            let estimator = estimator.n_estimators(rounds).learning_rate(0.1);
            assert_eq!(estimator.fit(&x, &labels, options).unwrap().estimators.len(), rounds);
        });
        let asking = jobs.iter().filter(|stages| stages.iter().any(|stage| stage == "require"));
        assert_eq!(asking.count(), rounds);
        most(&jobs)
    });
    assert_eq!(few, many);
    let [few, many] = FEW_AND_MANY.map(|rounds| {
        let jobs = noted(|options| {
            let estimator = AdaBoostRegressor::new().estimator(Ridge::new());
            let estimator = estimator.n_estimators(rounds).learning_rate(0.1);
            assert_eq!(estimator.fit(&x, &numbers, options).unwrap().estimators.len(), rounds);
        });
        most(&jobs)
    });
    assert_eq!(few, many);
}

/// A fit of trees needs a store for more than three times the weights of a round, so that each of these has
/// room for what a round holds.
#[test]
fn boosted_classifiers_are_the_same_from_stores_of_all_sizes() {
    const ROWS: usize = 100_000;
    let x = samples(ROWS);
    // A quarter of the labels says nothing, so that no round is without mistakes.
    let noise = default_rng(5).random(&[ROWS]).less(0.25);
    let y = x.squeeze(Some(&[1])).greater(0.0).not_equal(noise).astype(DType::I64).execute().unwrap();
    let found = check(ROWS, &[20, 80, 400, 4_000], 1e-9, &|rounds, options| {
        let estimator = AdaBoostClassifier::new().n_estimators(rounds).learning_rate(0.1);
        let model = estimator.fit(&x, &y, options)?;
        assert_eq!(model.estimators.len(), rounds);
        Ok([model.estimator_weights, model.estimator_errors].concat())
    });
    assert!(found.contains(&(4_000, true)), "{found:?}");
}

#[test]
fn boosted_regressors_are_the_same_from_stores_of_all_sizes() {
    const ROWS: usize = 50_000;
    let x = samples(ROWS);
    let y = x.squeeze(Some(&[1])).square().execute().unwrap();
    // A draw that rounding changes is another sample, of so many.
    let found = check(ROWS, &[100, 400, 4_000], 1e-2, &|rounds, options| {
        let estimator = AdaBoostRegressor::new().n_estimators(rounds).learning_rate(0.1);
        let model = estimator.fit(&x, &y, options)?;
        assert_eq!(model.estimators.len(), rounds);
        Ok([model.estimator_weights, model.estimator_errors].concat())
    });
    assert!(found.iter().any(|(size, _)| *size == 4_000), "{found:?}");
}

/// A step holds four numbers for each sample, before and behind it: 64 bytes. Those of one step are more than
/// a third of a store of less than 96.
#[test]
fn a_step_of_parts_costs_what_the_first_one_does_in_a_store_for_one() {
    const ROWS: usize = 200_000;
    let x = default_rng(6).random(&[ROWS, 4]).execute().unwrap();
    let found = check(ROWS, &[60, 84, 94, 400], 1e-9, &|rounds, options| {
        let model = NMF::new().n_components(3).tol(0.0).max_iter(rounds).fit(&x, options)?;
        assert_eq!(model.n_iter, rounds);
        Ok(model.components.iter().copied().chain([model.reconstruction_err]).collect())
    });
    assert!(found.iter().all(|&(size, is_even)| is_even == (64 <= size)), "{found:?}");
    assert!(found.iter().any(|(size, _)| (64..96).contains(size)), "no such store has room: {found:?}");
}
