//! K: fits whose workers are killed. A worker dies in each pass of each kind of fit, and the model is that of
//! threads, to the bit.
//!
//! The program is its own worker, so these tests bring their own `main`; a name on the command line filters
//! as usual.

// Helpers of tests panic on failure, like tests.
#![allow(clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tharsis::learn::FitOptions;
use tharsis::learn::cluster::KMeans;
use tharsis::learn::ensemble::{HistGradientBoostingClassifier, RandomForestRegressor};
use tharsis::learn::linear_model::LogisticRegression;
use tharsis::tensor::random::default_rng;
use tharsis::tensor::{Executor, GraphError, LocalExecutor, RemoteExecutor, Tensor};
use tharsis_graph::{Job, Limits, Outcome};
use tharsis_scenarios::{Mode, Scenario, Session, processes, scenarios};

const ALL: &[Scenario] = scenarios![
    Processes:
        k1_k_means,
        k1_logistic_regression,
        k1_forest,
        k1_boosting,
];

/// Bytes that a fit may take.
const MEMORY_BYTES: u64 = 32 << 20;

#[tharsis::main]
fn main() -> ExitCode {
    tharsis_scenarios::run(&[ALL])
}

/// Workers of a session, one of which is killed while each plan runs, sooner or later.
struct Killing {
    remote: RemoteExecutor,
    node: u32,
    plans: AtomicU64,
    retries: AtomicU64,
}

impl Executor for Killing {
    fn limits(&self) -> Limits {
        self.remote.limits()
    }

    fn bound_bytes(&self, job: &Job) -> Result<u64, GraphError> {
        self.remote.bound_bytes(job)
    }

    fn execute(&self, job: Job) -> Result<Outcome, GraphError> {
        let pause = Duration::from_millis(self.plans.fetch_add(1, Ordering::Relaxed) % 7 * 2);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(pause);
                if let Some(worker) = processes::children(self.node).first() {
                    processes::signal(*worker, rustix::process::Signal::KILL);
                }
            });
            self.remote.execute(job)
        })?;
        self.retries.fetch_add(outcome.metrics.retries, Ordering::Relaxed);
        Ok(outcome)
    }

    fn leaves_tasks(&self, error: &GraphError) -> bool {
        self.remote.leaves_tasks(error)
    }
}

/// Samples with classes, as expressions.
fn samples(rows: usize) -> [Tensor; 2] {
    let generator = default_rng(5);
    let y = generator.integers(0, 3, &[rows]);
    [generator.normal(0.0, 1.0, &[rows, 20]) + y.expand_dims(1), y]
}

/// Fits until a batch has run twice, and compares the numbers of the models with those of threads.
fn same_model(mode: Mode, fit: impl Fn(&FitOptions) -> Vec<f64>) {
    let session: Session = mode.start(2);
    let options = tharsis::Options::default().max_retries(20);
    let remote = RemoteExecutor::new(session.runtime()).memory_bytes(MEMORY_BYTES).options(options);
    let local = LocalExecutor::within(remote.limits());
    let bits = |executor: Arc<dyn Executor>| -> Vec<u64> {
        fit(&FitOptions::new().executor(executor)).into_iter().map(f64::to_bits).collect()
    };
    let expected = bits(Arc::new(local));
    let node = session.report().pid;
    let killing = Arc::new(Killing { remote, node, plans: AtomicU64::new(0), retries: AtomicU64::new(0) });
    let until = Instant::now() + Duration::from_secs(30);
    let mut fits = 0;
    while killing.retries.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        assert!(expected == bits(killing.clone()), "another model, in fit {fits}");
        fits += 1;
    }
    assert!(0 < killing.retries.load(Ordering::Relaxed), "no batch of {fits} fits ran twice");
    drop(killing);
    session.await_quiet();
}

/// The first numbers of an expression.
fn first(expression: &Tensor) -> Vec<f64> {
    let local = LocalExecutor::sized(1, 1 << 28);
    let numbers = expression.to_chunk(&local).unwrap().to_vec::<f64>().unwrap();
    numbers.into_iter().take(1000).collect()
}

fn k1_k_means(mode: Mode) {
    let [x, _] = samples(4_000);
    same_model(mode, |options| {
        let model = KMeans::new().n_clusters(3).max_iter(3).fit(&x, options).unwrap();
        model.cluster_centers.into_iter().chain([model.inertia]).collect()
    });
}

fn k1_logistic_regression(mode: Mode) {
    let [x, y] = samples(4_000);
    same_model(mode, |options| {
        let model = LogisticRegression::new().max_iter(4).fit(&x, &y, options).unwrap();
        first(&model.decision_function(&x))
    });
}

fn k1_forest(mode: Mode) {
    let [x, y] = samples(4_000);
    same_model(mode, |options| {
        let forest = RandomForestRegressor::new().n_estimators(2).max_depth(4);
        first(&forest.fit(&x, &y, options).unwrap().predict(&x))
    });
}

fn k1_boosting(mode: Mode) {
    let [x, y] = samples(4_000);
    same_model(mode, |options| {
        let boosted =
            HistGradientBoostingClassifier::new().max_iter(2).max_leaf_nodes(6).early_stopping(true);
        first(&boosted.fit(&x, &y, options).unwrap().decision_function(&x))
    });
}
