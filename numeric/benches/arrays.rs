//! Times operations on large arrays: `cargo bench -p tharsis-numeric --bench arrays -- NAME..`.
//!
//! Prints for each the median of several runs in seconds, on all cores. Arguments that are numbers divide the
//! sizes: `-- sort 10` sorts a tenth of the elements. Inputs are made before the clock starts, and lie in
//! memory as chunks.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;
use tharsis_numeric::fft::Norm;
use tharsis_numeric::histogram::Histogram;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::sparse::Sparse;
use tharsis_numeric::{Chunks, Tensor, eye};

/// A job by its name: from a divisor of its sizes to the inputs and what is done with them.
type Job = (&'static str, fn(usize) -> (Vec<Tensor>, Work));
type Work = fn(&[Tensor]) -> Vec<Tensor>;

const JOBS: &[Job] = &[
    ("take", |part| {
        (vec![numbers(HUNDRED_MILLION / part), positions(HUNDRED_MILLION / part)], |x| {
            vec![x[0].take_at(&x[1], 0)]
        })
    }),
    ("take-rows", |part| {
        let rows = 2_500_000 / part;
        (vec![matrix(rows, 32), positions(rows)], |x| vec![x[0].take_at(&x[1], 0)])
    }),
    ("sort", |part| (vec![numbers(HUNDRED_MILLION / part)], |x| vec![x[0].sort(0)])),
    ("argsort", |part| (vec![numbers(HUNDRED_MILLION / part)], |x| vec![x[0].argsort(0)])),
    ("unique", |part| (vec![numbers(HUNDRED_MILLION / part)], |x| vec![x[0].unique()])),
    ("unique-few", |part| (vec![few(HUNDRED_MILLION / part)], |x| vec![x[0].unique()])),
    ("histogram", |part| {
        (vec![numbers(HUNDRED_MILLION / part)], |x| vec![x[0].histogram(100, &Histogram::default()).0])
    }),
    ("quantile", |part| {
        (vec![numbers(HUNDRED_MILLION / part)], |x| {
            vec![x[0].quantile([0.25, 0.5, 0.75], .., Method::Linear)]
        })
    }),
    ("eigh", |part| {
        (vec![symmetric(4096 / part)], |x| {
            let (values, vectors) = x[0].eigh(false);
            vec![values, vectors]
        })
    }),
    ("fft2", |part| {
        let x = matrix(8192 / part, 8192 / part);
        (vec![x.astype(tharsis_numeric::DType::C128).execute().unwrap()], |x| {
            vec![x[0].fftn(None, None, Norm::Backward)]
        })
    }),
    ("rfft2", |part| {
        (vec![matrix(8192 / part, 8192 / part)], |x| vec![x[0].rfftn(None, None, Norm::Backward)])
    }),
    ("gemm", |part| {
        (vec![matrix(8192 / part, 8192 / part), matrix(8192 / part, 8192 / part)], |x| {
            vec![x[0].matmul(&x[1])]
        })
    }),
    ("syrk", |part| (vec![matrix(8192 / part, 8192 / part)], |x| vec![x[0].matmul(&x[0].t())])),
    ("syrk-t", |part| (vec![matrix(8192 / part, 8192 / part)], |x| vec![x[0].t().matmul(&x[0])])),
    ("cholesky", |part| (vec![definite(8192 / part)], |x| vec![x[0].cholesky()])),
    ("lu", |part| {
        (vec![matrix(8192 / part, 8192 / part)], |x| {
            let (p, l, u) = x[0].lu();
            vec![p, l, u]
        })
    }),
    ("solve", |part| {
        (vec![matrix(8192 / part, 8192 / part), numbers(8192 / part)], |x| vec![x[0].solve(&x[1])])
    }),
];

/// Jobs on sparse matrices of some ten million elements.
const SPARSE: &[SparseJob] = &[
    ("sparse-vector", |part| {
        let (a, x) = (sparse(part), numbers(TEN_MILLION / part / ROW));
        Box::new(move || vec![a.dot(&x)])
    }),
    ("sparse-matrix", |part| {
        let (a, x) = (sparse(part), matrix(TEN_MILLION / part / ROW, 16));
        Box::new(move || vec![a.dot(&x)])
    }),
    ("sparse-sparse", |part| {
        let a = sparse(part);
        Box::new(move || vec![a.matmul(&a).unwrap().values().clone()])
    }),
    ("sparse-add", |part| {
        let a = sparse(part);
        let b = a.transpose().rechunk(Chunks::Auto).unwrap().persist().unwrap();
        Box::new(move || vec![a.add(&b).unwrap().values().clone()])
    }),
];

type SparseJob = (&'static str, fn(usize) -> SparseWork);
type SparseWork = Box<dyn Fn() -> Vec<Tensor>>;
const TEN_MILLION: usize = 10_000_000;
/// Elements of a row of a sparse matrix.
const ROW: usize = 10;

/// A square matrix with some ten elements in each row.
fn sparse(part: usize) -> Sparse {
    let size = TEN_MILLION / part / ROW;
    let density = ROW as f64 / size as f64;
    Sparse::random([size, size], density, 5, Chunks::Auto).unwrap().persist().unwrap()
}

const HUNDRED_MILLION: usize = 100_000_000;
const RUNS: usize = 3;

fn numbers(count: usize) -> Tensor {
    default_rng(1).random(&[count]).execute().unwrap()
}

fn matrix(rows: usize, columns: usize) -> Tensor {
    default_rng(2).random(&[rows, columns]).execute().unwrap()
}

fn positions(count: usize) -> Tensor {
    default_rng(3).integers(0, count as i64, &[count]).execute().unwrap()
}

fn few(count: usize) -> Tensor {
    default_rng(4).integers(0, 1000, &[count]).execute().unwrap()
}

fn symmetric(size: usize) -> Tensor {
    let x = matrix(size, size);
    x.add(x.t()).execute().unwrap()
}

fn definite(size: usize) -> Tensor {
    let x = matrix(size, size);
    (x.add(x.t()).add(eye(size, size, 0) * (2 * size) as f64)).execute().unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let part = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1);
    let names: Vec<&String> =
        arguments.iter().filter(|argument| argument.parse::<usize>().is_err()).collect();
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    for (name, job) in JOBS.iter().filter(|(name, _)| is_wanted(name)) {
        let (inputs, work) = job(part);
        run(name, || work(&inputs));
    }
    for (name, job) in SPARSE.iter().filter(|(name, _)| is_wanted(name)) {
        run(name, job(part));
    }
}

/// Prints the time of a job.
fn run(name: &str, work: impl Fn() -> Vec<Tensor>) {
    let mut seconds: Vec<f64> = (0..RUNS).map(|_| timed(&work)).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    println!("{name} {:.3} s of {seconds:.3?}", seconds[RUNS / 2]);
}

fn timed(work: impl Fn() -> Vec<Tensor>) -> f64 {
    let started = Instant::now();
    let asked = work();
    let asked: Vec<&Tensor> = asked.iter().collect();
    let (made, _) = tharsis_numeric::execute(&asked, &*tharsis_numeric::default_executor()).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    drop(made);
    seconds
}
