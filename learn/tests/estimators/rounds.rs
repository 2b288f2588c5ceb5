//! Rounds of fits that hold a number for each sample: what a round costs, by the tasks that it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::{Error, Executor, Job, Limits, LocalExecutor, Outcome};
use tharsis_learn::FitOptions;
use tharsis_learn::decomposition::NMF;
use tharsis_learn::ensemble::AdaBoostClassifier;
use tharsis_numeric::DType;
use tharsis_numeric::random::default_rng;

/// An executor that can store so many bytes, and counts its tasks.
struct Counting {
    inner: LocalExecutor,
    stored_bytes: u64,
    tasks: AtomicU64,
}

impl Counting {
    fn storing(stored_bytes: u64) -> Arc<Counting> {
        let inner = LocalExecutor::sized(2, 1 << 26);
        Arc::new(Counting { inner, stored_bytes, tasks: AtomicU64::new(0) })
    }
}

impl Executor for Counting {
    fn limits(&self) -> Limits {
        Limits { stored_bytes: self.stored_bytes, ..self.inner.limits() }
    }

    fn execute(&self, job: Job) -> Result<Outcome, Error> {
        let outcome = self.inner.execute(job)?;
        self.tasks.fetch_add(outcome.metrics.tasks, Ordering::Relaxed);
        Ok(outcome)
    }
}

/// Tasks of fits of four, eight and twelve rounds.
fn tasks(stored_bytes: u64, fit: impl Fn(usize, FitOptions)) -> [u64; 3] {
    [4, 8, 12].map(|rounds| {
        let executor = Counting::storing(stored_bytes);
        fit(rounds, FitOptions::new().executor(executor.clone()));
        executor.tasks.load(Ordering::Relaxed)
    })
}

/// Whether each round takes as many tasks as those before it.
fn are_alike([few, some, many]: [u64; 3]) -> bool {
    many - some == some - few
}

#[test]
fn a_round_of_boosting_costs_what_the_first_one_does() {
    const ROWS: usize = 100_000;
    let generator = default_rng(4);
    let x = generator.normal(0.0, 1.0, &[ROWS, 1]).execute().unwrap();
    // Half of the labels are of no sample, so that no round is without mistakes.
    let noise = generator.random(&[ROWS]).less(0.25);
    let y = x.squeeze(Some(&[1])).greater(0.0).not_equal(noise).astype(DType::I64).execute().unwrap();
    let fit = |rounds: usize, options: FitOptions| {
        let model =
            AdaBoostClassifier::new().n_estimators(rounds).learning_rate(0.1).fit(&x, &y, options).unwrap();
        assert_eq!(model.estimators.len(), rounds);
    };
    // The weights of one round are more than a third of it, and what a round holds is less than all of it.
    let enough = tasks(20 * ROWS as u64, fit);
    assert!(are_alike(enough), "{enough:?}");
    let scarce = tasks(12 * ROWS as u64, fit);
    assert!(!are_alike(scarce), "the test sees no lineage: {scarce:?}");
}

#[test]
fn a_step_of_parts_costs_what_the_first_one_does() {
    const ROWS: usize = 40_000;
    let x = default_rng(6).random(&[ROWS, 4]).execute().unwrap();
    let fit = |rounds: usize, options: FitOptions| {
        let model = NMF::new().n_components(3).tol(0.0).max_iter(rounds).fit(&x, options).unwrap();
        assert_eq!(model.n_iter, rounds);
    };
    // A step holds four numbers for each sample, before and behind it.
    let enough = tasks(80 * ROWS as u64, fit);
    assert!(are_alike(enough), "{enough:?}");
    let scarce = tasks(50 * ROWS as u64, fit);
    assert!(!are_alike(scarce), "the test sees no lineage: {scarce:?}");
}
