//! Times fits on data of a folder: `cargo bench -p tharsis-learn --bench fits -- FOLDER NAME..`.
//!
//! `benches/compare_learn.py` makes the folder, `x.npy` and what else a job reads, and runs its peers on the
//! same data. Prints a line of JSON for each job: the median of several runs in seconds, the median of their
//! processor seconds, and a figure for the quality of the model. The data lie in memory as chunks before the
//! clock starts.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use procfs::process::Process;
use std::path::Path;
use std::time::Instant;
use tharsis_learn::cluster::{KMeans, MiniBatchKMeans};
use tharsis_learn::decomposition::{PCA, TruncatedSVD};
use tharsis_learn::ensemble::{HistGradientBoostingClassifier, RandomForestClassifier};
use tharsis_learn::linear_model::{Lasso, LinearRegression, LogisticRegression, Ridge};
use tharsis_learn::metrics::{accuracy_score, mean_squared_error, roc_auc_score};
use tharsis_learn::model_selection::{TrainTestSplit, train_test_split};
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::preprocessing::{MinMaxScaler, StandardScaler};
use tharsis_numeric::{Tensor, npy};

/// A job by its name: from the data to a figure for the quality of the model.
type Job = (&'static str, fn(&Data) -> Figure);
/// The quality, computed after the clock has stopped.
type Figure = Box<dyn FnOnce(&Data) -> f64>;

const JOBS: &[Job] = &[
    ("kmeans-init", |data| {
        let centers = data.read("centers");
        let model =
            KMeans::new().n_clusters(8).init(&centers).n_init(1).max_iter(20).tol(0.0).fit(&data.x, ..);
        let inertia = model.unwrap().inertia;
        Box::new(move |_| inertia)
    }),
    ("kmeans", |data| {
        let inertia = KMeans::new().n_clusters(8).fit(&data.x, ..).unwrap().inertia;
        Box::new(move |_| inertia)
    }),
    ("mini-batch", |data| {
        let inertia = MiniBatchKMeans::new().n_clusters(8).fit(&data.x, ..).unwrap().inertia;
        Box::new(move |_| inertia)
    }),
    ("pca", |data| {
        let model = PCA::new().n_components(10).fit(&data.x, ..).unwrap();
        Box::new(move |_| model.explained_variance_ratio.sum())
    }),
    ("truncated-svd", |data| {
        let model = TruncatedSVD::new().n_components(10).fit(&data.x, ..).unwrap();
        Box::new(move |_| model.explained_variance_ratio.sum())
    }),
    ("linear", |data| {
        let model = LinearRegression::new().fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("ridge", |data| {
        let model = Ridge::new().fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("lasso", |data| {
        let model = Lasso::new().alpha(0.1).fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("logistic", |data| {
        let model = LogisticRegression::new().fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("gaussian-nb", |data| {
        let model = GaussianNB::new().fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("forest", |data| {
        let model = RandomForestClassifier::new().n_estimators(20).fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("boosting", |data| {
        let model =
            HistGradientBoostingClassifier::new().early_stopping(false).fit(&data.x, data.y(), ..).unwrap();
        Box::new(move |data| model.score(&data.x, data.y(), ..).unwrap())
    }),
    ("scaler-fit", |data| {
        let model = StandardScaler::new().fit(&data.x, ..).unwrap();
        Box::new(move |_| model.scale.sum())
    }),
    ("scaler-transform", |data| {
        let model = StandardScaler::new().fit(&data.x, ..).unwrap();
        let scaled = model.transform(&data.x).persist().unwrap();
        Box::new(move |_| scaled.square().sum(..).to_vec::<f64>().unwrap()[0])
    }),
    ("min-max-fit", |data| {
        let model = MinMaxScaler::new().fit(&data.x, ..).unwrap();
        Box::new(move |_| model.scale.sum())
    }),
    ("split", |data| {
        let [split] = train_test_split([&data.x], TrainTestSplit::default()).unwrap();
        let made = (split.train.persist().unwrap(), split.test.persist().unwrap());
        Box::new(move |_| made.1.shape().unwrap()[0] as f64 / made.0.shape().unwrap()[0] as f64)
    }),
    ("accuracy", |data| {
        let found = accuracy_score(data.y(), &data.x, ..).unwrap();
        Box::new(move |_| found)
    }),
    ("mse", |data| {
        let found = mean_squared_error(data.y(), &data.x, ..).unwrap().value();
        Box::new(move |_| found)
    }),
    ("roc-auc", |data| {
        let found = roc_auc_score(data.y(), &data.x, ..).unwrap().value();
        Box::new(move |_| found)
    }),
];

const RUNS: usize = 3;

/// The data of a folder.
struct Data {
    folder: String,
    x: Tensor,
    y: Option<Tensor>,
}

impl Data {
    fn open(folder: &str) -> Data {
        let mut data = Data { folder: folder.to_owned(), x: Tensor::from_elements(&[0], &[0.0; 0]), y: None };
        data.x = data.read("x");
        data.y = Path::new(folder).join("y.npy").exists().then(|| data.read("y"));
        data
    }

    /// The tensor of a file, in memory.
    fn read(&self, name: &str) -> Tensor {
        npy::load(Path::new(&self.folder).join(format!("{name}.npy"))).persist().unwrap()
    }

    fn y(&self) -> &Tensor {
        self.y.as_ref().unwrap()
    }
}

/// Processor seconds of this process so far.
fn cpu_seconds() -> f64 {
    let stat = Process::myself().unwrap().stat().unwrap();
    (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // Cargo adds a flag of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let data = Data::open(&arguments.next().unwrap());
    for name in arguments {
        let (_, job) = JOBS.iter().find(|(known, _)| *known == name).unwrap();
        let (mut wall, mut cpu, mut quality) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..RUNS {
            let (started, spent) = (Instant::now(), cpu_seconds());
            let figure = job(&data);
            wall.push(started.elapsed().as_secs_f64());
            cpu.push(cpu_seconds() - spent);
            quality = figure(&data);
        }
        let (seconds, cpu) = (median(wall), median(cpu));
        println!("{{\"job\":\"{name}\",\"seconds\":{seconds},\"cpu\":{cpu},\"quality\":{quality}}}");
    }
}
