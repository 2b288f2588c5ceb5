//! Matrices that lie in many tiles: residuals relative to LAPACK's bounds, dtypes, pivots, errors.

use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, execute, eye};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn random(shape: &[usize], dtype: DType, seed: u64) -> Tensor {
    let part = |seed| default_rng(seed).standard_normal(shape).astype(dtype);
    let made = if dtype.is_complex() {
        part(seed).add(part(seed + 1).multiply(tharsis_kernels::Complex::new(0.0, 1.0)))
    } else {
        part(seed)
    };
    made.execute().unwrap()
}

fn adjoint(x: &Tensor) -> Tensor {
    x.matrix_transpose().conj()
}

fn largest(x: &Tensor) -> f64 {
    if x.size().unwrap() == 0 {
        return 0.0;
    }
    let executor = LocalExecutor::new(2, 1 << 30).unwrap();
    let (found, metrics) = execute(&[&x.abs().max(..)], &executor).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes, "{metrics:?}");
    found[0].item().unwrap().to_f64()
}

/// The distance of two tensors is at most 30 roundings of `n` products of the size of `scale`.
#[track_caller]
fn check_close(found: &Tensor, expected: &Tensor, n: usize, scale: f64) {
    assert_eq!(found.dtype().unwrap(), expected.dtype().unwrap());
    assert_eq!(found.shape().unwrap(), expected.shape().unwrap());
    let single = found.dtype().unwrap().real_part() == DType::F32;
    let epsilon = if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let distance = largest(&found.subtract(expected));
    assert!(distance <= 30.0 * n as f64 * epsilon * scale, "{distance} with {n} and {scale}");
}

fn positive(n: usize, dtype: DType) -> Tensor {
    let x = random(&[n, n], dtype, 7);
    x.matmul(&adjoint(&x)).add(eye(n, n, 0).astype(dtype).multiply(n as f64).astype(dtype)).execute().unwrap()
}

#[test]
fn a_cholesky_factor_by_tiles_multiplies_back_and_is_a_triangle() {
    for dtype in DTYPES {
        for (n, chunk) in [(50, 7), (64, 32), (65, 64), (1030, 2000)] {
            let x = positive(n, dtype).rechunk(Chunks::Each(chunk));
            // Only the triangle that is asked for is read.
            let lower = x.tril(0).rechunk(Chunks::Each(chunk)).cholesky();
            check_close(&lower.matmul(&adjoint(&lower)), &x, n, largest(&x));
            assert_eq!(largest(&lower.triu(1)), 0.0);
            if n < 100 {
                let upper = x.triu(0).rechunk(Chunks::Each(chunk)).cholesky_upper();
                check_close(&adjoint(&upper).matmul(&upper), &x, n, largest(&x));
                assert_eq!(largest(&upper.tril(-1)), 0.0);
            }
        }
    }
}

#[test]
fn lu_factors_by_blocks_of_columns_multiply_back_with_the_pivots_of_all_rows() {
    for dtype in DTYPES {
        for (m, n) in [(40, 40), (53, 30), (30, 53), (5, 20), (20, 5)] {
            for chunk in [7, 16, 100] {
                let x = random(&[m, n], dtype, 3).rechunk(Chunks::Each(chunk));
                let (order, l, u) = x.lu();
                let k = m.min(n);
                assert_eq!((l.shape().unwrap(), u.shape().unwrap()), (&[m, k][..], &[k, n][..]));
                check_close(&l.matmul(&u), &x.take_at(&order, 0), k, largest(&x) * k as f64);
                assert_eq!(largest(&l.triu(1)), 0.0);
                assert_eq!(largest(&u.tril(-1)), 0.0);
                // Each pivot is the largest of its column, by the sum of the parts of complex numbers.
                assert!(largest(&l) <= if dtype.is_complex() { 1.5 } else { 1.0 }, "{}", largest(&l));
                let whole = x.rechunk(Chunks::Each(m.max(n))).lu().0;
                assert_eq!(order.to_vec::<i64>().unwrap(), whole.to_vec::<i64>().unwrap());
            }
        }
    }
}

#[test]
fn large_systems_are_solved_by_blocks() {
    let n = 1100;
    let x = random(&[n, n], DType::F64, 4);
    let (order, l, u) = x.lu();
    check_close(&l.matmul(&u), &x.take_at(&order, 0), n, largest(&x));
    let b = random(&[n, 3], DType::F64, 5);
    let solution = x.solve(&b);
    check_close(&x.matmul(&solution), &b, n, largest(&x) * largest(&solution));
    let (sign, log) = x.slogdet();
    let (whole_sign, whole_log) = x.rechunk(Chunks::Each(n)).slogdet();
    assert_eq!(sign.item().unwrap().to_f64(), whole_sign.item().unwrap().to_f64());
    check_close(&log, &whole_log, n, whole_log.item().unwrap().to_f64());
}

#[test]
fn systems_inverses_and_determinants_by_tiles_are_those_of_the_whole_matrix() {
    for dtype in DTYPES {
        for (n, chunk) in [(40, 7), (33, 16), (9, 1)] {
            let whole = random(&[n, n], dtype, 9).add(eye(n, n, 0).astype(dtype).multiply(6.0).astype(dtype));
            let whole = whole.execute().unwrap();
            let x = whole.rechunk(Chunks::Each(chunk));
            let right = random(&[n, 5], dtype, 2);
            let inverse = x.inv();
            check_close(&x.matmul(&inverse), &eye(n, n, 0).astype(dtype), n, 20.0 * largest(&inverse) * 6.0);
            let solution = x.solve(&right.rechunk(Chunks::Each(3)));
            check_close(&x.matmul(&solution), &right, n, 20.0 * (1.0 + largest(&solution)));
            let vector = x.solve(&right.sum(1));
            check_close(&vector, &whole.solve(&right.sum(1)), n, 20.0 * (1.0 + largest(&vector)));
            for (lower, unit) in [(true, false), (true, true), (false, false), (false, true)] {
                // Small elements beside the diagonal: triangles are badly conditioned otherwise.
                let ones = eye(n, n, 0).astype(dtype);
                let near = whole.multiply(0.1).astype(dtype).add(&ones).execute().unwrap();
                let solution = near.rechunk(Chunks::Each(chunk)).solve_triangular(&right, lower, unit);
                let side = if lower { near.tril(-1) } else { near.triu(1) };
                let middle = if unit { ones } else { near.multiply(&ones) };
                let scale = 10.0 * (1.0 + largest(&solution));
                check_close(&side.add(&middle).matmul(&solution), &right, n, scale);
            }
            let (det, same) = (x.det(), whole.det());
            check_close(&det.divide(&same).astype(dtype), &same.ones_like(), n, 10.0);
            check_close(&x.slogdet().0, &whole.slogdet().0, n, 10.0);
        }
    }
}

#[test]
fn what_has_no_result_by_tiles_is_refused_as_for_whole_matrices() {
    let class = |x: &Tensor| x.to_vec::<f64>().unwrap_err().class();
    let in_tiles = |x: Tensor| x.rechunk(Chunks::Each(4));
    let singular = in_tiles(tharsis_numeric::ones(&[9, 9]));
    assert_eq!(class(&singular.inv()), "LinAlgError");
    assert_eq!(class(&singular.solve(&tharsis_numeric::ones(&[9]))), "LinAlgError");
    assert_eq!(singular.det().item().unwrap().to_f64(), 0.0);
    let (sign, log) = singular.slogdet();
    assert_eq!((sign.item().unwrap().to_f64(), log.item().unwrap().to_f64()), (0.0, f64::NEG_INFINITY));
    assert_eq!(class(&singular.negative().cholesky()), "LinAlgError");
    let late = in_tiles(eye(9, 9, 0) - eye(9, 9, 0).multiply(tharsis_numeric::arange(9).equal(8)) * 2.0);
    assert_eq!(class(&late.cholesky()), "LinAlgError");
    assert_eq!(class(&in_tiles(eye(9, 9, 0).multiply(f64::NAN)).cholesky()), "LinAlgError");
    let zero = in_tiles(eye(9, 9, 0) - eye(9, 9, 0).multiply(tharsis_numeric::arange(9).equal(7)));
    assert_eq!(class(&zero.solve_triangular(&tharsis_numeric::ones(&[9]), true, false)), "LinAlgError");
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let x = random(&[60, 60], DType::F64, 1).rechunk(Chunks::Each(9));
    let (order, l, u) = x.lu();
    let made = [order, l, u, x.inv(), positive(60, DType::F64).rechunk(Chunks::Each(9)).cholesky()];
    let on = |threads| {
        let executor = LocalExecutor::new(threads, 64 << 20).unwrap();
        let (found, _) = execute(&made.iter().collect::<Vec<_>>(), &executor).unwrap();
        let all = found[1..].iter().flat_map(|x| x.to_vec::<f64>().unwrap());
        all.map(f64::to_bits).collect::<Vec<u64>>()
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn all_results_of_a_function_come_from_one_factorization() {
    let x = random(&[30, 20], DType::F64, 1);
    let gram = positive(20, DType::F64);
    let (q, r) = x.qr();
    let (u, s, vt) = x.svd();
    let (values, vectors) = gram.eigh(false);
    let executor = LocalExecutor::new(2, 64 << 20).unwrap();
    let (_, metrics) = execute(&[&q, &r, &u, &s, &vt, &values, &vectors], &executor).unwrap();
    assert_eq!(metrics.tasks, 3, "{metrics:?}");
}

#[test]
fn least_squares_have_the_residuals_rank_and_length_of_numpy() {
    for dtype in DTYPES {
        for shape in [[30, 4], [4, 30], [12, 12], [70_000, 3]] {
            let (m, n) = (shape[0], shape[1]);
            let (a, b) = (random(&shape, dtype, 2), random(&[m, 2], dtype, 5));
            let found = a.lstsq(&b, None);
            assert_eq!(found.rank.item().unwrap().to_f64(), m.min(n) as f64);
            // The residual is orthogonal to the columns.
            let left = b.subtract(a.matmul(&found.solution));
            let none = adjoint(&a).matmul(&left);
            check_close(&none, &none.zeros_like(), m, 40.0);
            let told = found.residuals.execute().unwrap();
            assert_eq!(told.shape().unwrap(), if n < m { &[2][..] } else { &[0] });
            if n < m {
                check_close(&told, &left.abs().square().sum(0), m, largest(&told));
            }
            let one = a.lstsq(&b.sum(1), None).solution;
            check_close(&one, &found.solution.sum(1), m, 10.0 * (1.0 + largest(&one)));
        }
    }
    let flat = tharsis_numeric::ones(&[6, 2]).lstsq(&tharsis_numeric::arange(6), None);
    assert_eq!(flat.rank.item().unwrap().to_f64(), 1.0);
    assert_eq!(flat.residuals.execute().unwrap().shape().unwrap(), [0]);
    assert!(
        flat.solution
            .isclose(Tensor::from_elements(&[2], &[1.25; 2]), 0.0, 1e-12)
            .all(..)
            .item()
            .unwrap()
            .is_true()
    );
    let refused = |a: &[usize], b: &[usize]| {
        tharsis_numeric::ones(a).lstsq(&tharsis_numeric::ones(b), None).solution.check().unwrap_err().class()
    };
    assert_eq!(refused(&[3], &[3]), "LinAlgError");
    assert_eq!(refused(&[3, 2], &[2]), "LinAlgError");
    assert_eq!(refused(&[3, 2], &[3, 1, 1]), "LinAlgError");
}
