//! Eigenvalues and eigenvectors of symmetric matrices of many kinds, by residual and orthogonality.

use super::Linear;
use super::hermitian::{by_faer, symmetric};
use crate::chunk::Chunk;
use crate::element::Element;
use faer::{Mat, MatRef, Scale};

/// Numbers between -0.5 and 0.5 that depend on a seed.
pub(super) fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..count + 20).map(|_| next()).skip(20).collect()
}

/// ||A V - V diag(w)|| / (||A|| n e) and ||V^T V - I|| / (n e) for e of float64, in the Frobenius norm.
pub(super) fn errors(a: MatRef<'_, f64>, values: &[f64], vectors: MatRef<'_, f64>) -> [f64; 2] {
    let n = a.nrows();
    let unit = n as f64 * f64::EPSILON;
    // Norms of huge and tiny elements do not fit.
    let largest = a.norm_max();
    let factor = if largest == 0.0 { 1.0 } else { 1.0 / largest };
    let a = a * Scale(factor);
    let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * (values[j] * factor));
    let residual = (&a * vectors - scaled).norm_l2() / (a.norm_l2().max(f64::MIN_POSITIVE) * unit);
    let orthogonality = (vectors.transpose() * vectors - Mat::<f64>::identity(n, n)).norm_l2() / unit;
    [residual, orthogonality]
}

/// Symmetric matrices (n, n) of many kinds.
fn matrices(n: usize) -> Vec<(&'static str, Mat<f64>)> {
    let random = numbers(n as u64, n * n);
    let symmetric = |f: &dyn Fn(usize, usize) -> f64| Mat::from_fn(n, n, |i, j| f(i.max(j), i.min(j)));
    let at = |i: usize, j: usize| random[i * n + j];
    let is = |is: bool| if is { 1.0 } else { 0.0 };
    vec![
        ("random", symmetric(&at)),
        ("the identity", symmetric(&|i, j| is(i == j))),
        ("zeros", symmetric(&|_, _| 0.0)),
        ("ones", symmetric(&|_, _| 1.0)),
        ("in blocks", symmetric(&|i, j| at(i, j) * is(i / 7 == j / 7))),
        ("two equal blocks", symmetric(&|i, j| at(i % n.div_ceil(2), j % n.div_ceil(2)))),
        ("graded", symmetric(&|i, j| at(i, j) * 0.7f64.powi((i + j) as i32))),
        ("graded upwards", symmetric(&|i, j| at(i, j) * 0.7f64.powi((2 * n - i - j) as i32))),
        ("tridiagonal", symmetric(&|i, j| at(i, j) * is(i - j < 2))),
        ("of low rank", symmetric(&|i, j| (0..3).map(|k| at(k % n, i) * at(k % n, j)).sum())),
        ("an arrow", symmetric(&|i, j| at(i, j) * is(i == j || i + 1 == n))),
        ("near the identity", symmetric(&|i, j| is(i == j) + 1e-13 * at(i, j))),
        ("huge", symmetric(&|i, j| at(i, j) * 1e307)),
        ("tiny", symmetric(&|i, j| at(i, j) * 1e-306)),
    ]
}

/// Eigenvalues and eigenvectors by the public function, on this many threads.
fn run<T: Element>(matrix: &[T], n: usize, upper: bool, threads: usize) -> (Vec<T>, Vec<T>) {
    let chunk = Chunk::from_elements(&[n, n], matrix).unwrap();
    let made = Linear::Hermitian { upper }.run(&[chunk], threads).unwrap();
    (made[0].to_vec().unwrap(), made[1].to_vec().unwrap())
}

/// All elements row by row, with `other` in place of those on one side of the diagonal.
fn rows(a: &Mat<f64>, upper: bool, other: f64) -> Vec<f64> {
    let n = a.nrows();
    let read = |i: usize, j: usize| if upper { i <= j } else { j <= i };
    (0..n * n).map(|at| (at / n, at % n)).map(|(i, j)| if read(i, j) { a[(i, j)] } else { other }).collect()
}

fn check(what: &str, a: &Mat<f64>, upper: bool) {
    let n = a.nrows();
    let (values, vectors) = run(&rows(a, upper, 7.0), n, upper, 2);
    let vectors = MatRef::from_row_major_slice(&vectors, n, n);
    let [residual, orthogonality] = errors(a.as_ref(), &values, vectors);
    assert!(residual < 8.0 && orthogonality < 8.0, "{what} {n}: {residual} {orthogonality}");
    assert!(values.is_sorted(), "{what} {n}: not ascending");
}

#[test]
fn matrices_of_many_kinds_have_small_residuals_and_orthogonal_vectors() {
    for n in [1, 2, 3, 127, 128, 129, 150, 191] {
        for (what, a) in matrices(n) {
            check(what, &a, n.is_multiple_of(2));
        }
    }
    for size in numbers(3, 20) {
        let n = 1 + (200.0 * (size + 0.5)) as usize;
        check("random", &matrices(n)[0].1, n.is_multiple_of(2));
    }
    check("random", &matrices(700)[0].1, false);
}

/// Sizes of matrices that faer does are reduced here too.
#[test]
fn small_matrices_can_be_reduced() {
    for n in 2..70 {
        for (what, a) in matrices(n).into_iter().take(12) {
            let (mut lower, mut vectors) = (a.clone(), vec![f64::NAN; n * n]);
            let values = symmetric(lower.as_mut(), Some(&mut vectors), 1).unwrap();
            let vectors = MatRef::from_row_major_slice(&vectors, n, n);
            let [residual, orthogonality] = errors(a.as_ref(), &values, vectors);
            assert!(residual < 8.0 && orthogonality < 8.0, "{what} {n}: {residual} {orthogonality}");
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    for n in [130, 555, 1100] {
        let a = rows(&matrices(n)[0].1, false, 0.0);
        let of_one = run(&a, n, false, 1);
        for threads in [2, 3] {
            assert!(run(&a, n, false, threads) == of_one, "{n} on {threads} threads");
        }
    }
}

#[test]
fn eigenvalues_are_those_of_faer() {
    for n in [130, 700] {
        for (what, a) in matrices(n).into_iter().take(12) {
            let theirs = by_faer(a.as_ref(), Some(&mut vec![0.0; n * n])).unwrap();
            let (ours, _) = run(&rows(&a, false, 0.0), n, false, 2);
            let chunk = Chunk::from_elements(&[n, n], &rows(&a, false, 0.0)).unwrap();
            let alone = Linear::HermitianValues { upper: false }.run(&[chunk], 2).unwrap();
            let unit = f64::EPSILON * theirs.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            for ((ours, theirs), alone) in ours.iter().zip(&theirs).zip(alone[0].to_vec::<f64>().unwrap()) {
                assert!((ours - theirs).abs() <= 50.0 * unit, "{what} {n}: {ours} is not {theirs}");
                // Without vectors faer's iteration on the tridiagonal matrix loses more.
                let bound = n as f64 * unit;
                assert!((alone - theirs).abs() <= bound, "{what} {n}: {alone} is not {theirs}");
            }
        }
    }
}

#[test]
fn single_precision_is_reduced_too() {
    for (what, a) in matrices(600).into_iter().take(12) {
        let n = a.nrows();
        let single: Vec<f32> = rows(&a, false, 0.0).iter().map(|&x| x as f32).collect();
        let (values, vectors) = run(&single, n, false, 2);
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let (values, vectors) = (wide(&values), wide(&vectors));
        let found = errors(a.as_ref(), &values, MatRef::from_row_major_slice(&vectors, n, n));
        let [residual, orthogonality] = found.map(|error| error * f64::EPSILON / f64::from(f32::EPSILON));
        assert!(residual < 8.0 && orthogonality < 8.0, "{what}: {residual} {orthogonality}");
    }
}

#[test]
fn what_is_not_finite_is_refused() {
    for n in [2, 200] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = rows(&matrices(n)[0].1, false, 0.0);
            a[n * n - 1] = bad;
            let chunk = Chunk::from_elements(&[n, n], &a).unwrap();
            let error = Linear::Hermitian { upper: false }.run(&[chunk], 2).unwrap_err();
            assert!(error.to_string().contains("Eigenvalues did not converge"), "{error}");
        }
    }
}
