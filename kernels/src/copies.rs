//! Seconds of the copies of a loop, side by side: what the copy for 512 bits buys over the one for 256. A
//! loop whose third copy buys nothing names a lower `Kernel::LEVEL`.
//!
//! `cargo test --release --package tharsis-kernels --lib copies -- --ignored --nocapture --test-threads=1`

use crate::chunk::{Buffer, Chunk};
use crate::cpu::{Level, level};
use crate::dtype::DType;
use crate::element::Bool;
use crate::evaluate::{Compiled, Place, Scratch};
use crate::fold::Fold;
use crate::program::{Output, Program, Step, StepOp};
use crate::raised::{Warnings, look_unary};
use crate::random::Key;
use crate::rows::{Around, Centers, Scored, column_ends, column_sums, logistic_loss, products};
use crate::ufunc::{Operand, UnaryOp, run_unary};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

thread_local! {
    /// The best level that loops of a thread use.
    pub(crate) static LIMIT: Cell<Level> = const { Cell::new(Level::Avx512) };
}

/// Seconds of one copy in a round.
const ROUND_SECONDS: f64 = 0.02;
/// Rounds, in each of which every copy has its turn.
const ROUNDS: usize = 15;
/// Elements of a block; a few of them fit the second cache.
pub(crate) const COUNT: usize = 1 << 14;

/// Prints the time of work in the third copies of its loops as a part of the time in the second ones: the
/// median of the rounds, and all but the two ends.
pub(crate) fn compare(name: &str, mut work: impl FnMut()) {
    if level() < Level::Avx512 {
        println!("{name}: this CPU runs no third copy");
        return;
    }
    let mut seconds = |level: Level, count: u32| {
        LIMIT.set(level);
        let started = Instant::now();
        (0..count).for_each(|_| work());
        let each = started.elapsed().as_secs_f64() / f64::from(count);
        LIMIT.set(Level::Avx512);
        each
    };
    let count = (ROUND_SECONDS / seconds(Level::Avx512, 10)).clamp(1.0, 1e6) as u32;
    let rounds: Vec<[f64; 3]> = (0..ROUNDS)
        .map(|_| [Level::Portable, Level::Avx2, Level::Avx512].map(|level| seconds(level, count)))
        .collect();
    let ratios = |of: fn(&[f64; 3]) -> f64| {
        let mut ratios: Vec<f64> = rounds.iter().map(of).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        [1, ROUNDS / 2, ROUNDS - 2].map(|at| ratios[at])
    };
    let [low, third, high] = ratios(|[_, second, third]| third / second);
    let [_, second, _] = ratios(|[first, second, _]| second / first);
    println!("{name:<36} third/second {third:.2} ({low:.2} to {high:.2}), second/first {second:.2}");
}

/// As [`compare`], for a program over blocks that raises no warning.
pub(crate) fn compare_program(name: &str, extents: &[usize], inputs: &[Chunk], compiled: &Compiled) {
    let (origin, mut scratch) = (vec![0; extents.len()], Scratch::new());
    compare(name, || {
        let place = Place { origin: &origin, extents };
        black_box(compiled.run(place, inputs, &mut scratch).expect("it runs"));
    });
    assert!(scratch.take_warnings().is_empty(), "{name}: blocks with warnings are computed in another way");
}

/// Random numbers from 0 to 1.
fn numbers(from: u64, count: usize) -> Vec<f64> {
    (0..count).map(|at| Key::new(1, 0).uniform(from + at as u64)).collect()
}

/// A block of floats between these two numbers.
pub(crate) fn block(dtype: DType, low: f64, high: f64) -> Chunk {
    let elements: Vec<f64> = numbers(0, COUNT).iter().map(|x| low + (high - low) * x).collect();
    match dtype {
        DType::F32 => Chunk::from_elements(&[COUNT], &elements.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        _ => Chunk::from_elements(&[COUNT], &elements),
    }
    .expect("a block")
}

/// The program of a fold over the first axis: of blocks of a dtype, in rows of this many, or of what a step
/// makes of them.
fn folded(dtype: DType, trailing: Vec<usize>, step: Option<(DType, StepOp)>, fold: Fold) -> Compiled {
    let mut steps = vec![Step { op: StepOp::Load { input: 0 }, dtype, trailing }];
    steps.extend(step.map(|(dtype, op)| Step { op, dtype, trailing: vec![] }));
    let outputs = vec![Output::Fold { fold, args: vec![steps.len() - 1], axes: vec![0] }];
    Compiled::new(Program { steps, outputs }).expect("a sound program")
}

#[test]
fn a_thread_uses_a_lower_level_than_others() {
    let best = level();
    LIMIT.set(Level::Portable);
    let (own, other) = (level(), std::thread::spawn(level).join().expect("a level"));
    LIMIT.set(Level::Avx512);
    assert_eq!([own, other, level()], [Level::Portable, best, best]);
}

#[test]
#[ignore = "a measurement; say --ignored"]
fn copies_of_folds_and_casts() {
    let floats = block(DType::F64, 1.0, 2.0);
    let whole = Chunk::from_elements(&[COUNT], &(0..COUNT as i64).collect::<Vec<_>>()).expect("a block");
    let answers: Vec<Bool> = numbers(0, COUNT).iter().map(|x| Bool(u8::from(*x < 0.5))).collect();
    let answers = Chunk::from_elements(&[COUNT], &answers).expect("a block");
    let threes = Chunk::from_elements(&[COUNT, 3], &numbers(0, 3 * COUNT)).expect("rows of three");
    let plain = |dtype, fold| folded(dtype, vec![], None, fold);
    let cast = |from, to| folded(from, vec![], Some((to, StepOp::Cast(0))), Fold::Max);
    let sums = Some((DType::F64, StepOp::RowFold(Fold::Sum, 0)));
    let jobs = [
        ("sum of int64, which has two copies", &whole, plain(DType::I64, Fold::Sum)),
        ("count of true", &answers, plain(DType::Bool, Fold::CountTrue)),
        ("largest of float64", &floats, plain(DType::F64, Fold::Max)),
        ("moments", &floats, plain(DType::F64, Fold::Moments)),
        ("float64 to int64, with its check", &floats, cast(DType::F64, DType::I64)),
        ("int64 to float64", &whole, cast(DType::I64, DType::F64)),
        ("sums of three", &threes, folded(DType::F64, vec![3], sums, Fold::Max)),
    ];
    for (name, input, compiled) in &jobs {
        compare_program(name, &[COUNT], std::slice::from_ref(*input), compiled);
    }
    let rows = Chunk::from_elements(&[128, COUNT / 128], &numbers(0, COUNT)).expect("rows");
    compare_program("sum of rows", &[128, COUNT / 128], &[rows], &plain(DType::F64, Fold::Sum));
}

#[test]
#[ignore = "a measurement; say --ignored"]
fn copies_of_checks() {
    let (x, mut out) = (block(DType::F64, 1.0, 2.0), Buffer::zeroed(8 * COUNT));
    let mut warnings = Warnings::new();
    compare("finite results", || {
        let block = Operand::Block(x.buffer(), 0);
        look_unary(UnaryOp::Sqrt, DType::F64, block, black_box(x.buffer()), COUNT, &mut warnings);
    });
    assert!(warnings.is_empty());
    compare("finite samples", || {
        let block = Operand::Block(x.buffer(), 0);
        run_unary(UnaryOp::RequireFinite, DType::F64, block, &mut out, COUNT).expect("finite");
    });
}

#[test]
#[ignore = "a measurement; say --ignored"]
fn copies_of_sums_over_rows() {
    let (count, columns) = (COUNT / 16, 16);
    let (x, point, weights) = (numbers(0, COUNT), numbers(1 << 20, columns), numbers(1 << 21, count));
    let rows = Around::new(&x, &point).expect("rows");
    compare("rows: sums of columns", || drop(black_box(column_sums(rows, None))));
    compare("rows: sums, with weights", || drop(black_box(column_sums(rows, Some(&weights)))));
    compare("rows: ends of columns", || drop(black_box(column_ends(&x, columns))));
    let none = Around::new(&[], &[]).expect("no columns");
    compare("rows: products", || drop(black_box(products(rows, none, None))));
    let scored = Scored { rows: &x, targets: &weights, weights: None, coef: &point, intercept: 0.5 };
    compare("rows: logistic loss", || drop(black_box(logistic_loss(scored))));
    for k in [8, 32] {
        let elements = numbers(1 << 22, k * columns);
        for by_products in [true, false] {
            let centers = Centers::new(&elements, columns, by_products).expect("centers");
            let name = format!("rows: {k} clusters, by {}", if by_products { "products" } else { "squares" });
            compare(&name, || drop(black_box(centers.clusters(rows, None))));
        }
        let centers = Centers::new(&elements, columns, true).expect("centers");
        let name = format!("rows: distances to {k} centers");
        compare(&name, || drop(black_box(centers.distances(rows, None))));
    }
}
