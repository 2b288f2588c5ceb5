//! Products of a matrix with itself, which are computed in a way of their own.

use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, LocalExecutor, Scalar, execute};

#[test]
fn a_product_with_the_own_transpose_is_that_with_a_copy_of_it() {
    for n in [1, 7, 255, 256, 300, 1025] {
        let x = default_rng(5).random(&[n, n]);
        let transposed = x.t();
        let copy = transposed.execute().unwrap();
        for (product, by_copy) in
            [(x.matmul(&transposed), x.matmul(&copy)), (transposed.matmul(&x), copy.matmul(&x))]
        {
            let difference = product - by_copy;
            let worst = difference.abs().max(..).item().unwrap().to_f64();
            assert!(worst <= 1e-12 * n as f64, "n = {n}: {worst}");
        }
    }
}

#[test]
fn tiles_above_the_diagonal_of_such_a_product_are_those_below_it() {
    let local = LocalExecutor::sized(2, 40 << 20);
    for dtype in [DType::F64, DType::C128, DType::I64] {
        let draw = |seed| default_rng(seed).integers(-9, 9, &[700, 130]).astype(dtype);
        let imaginary = if dtype.is_complex() { draw(7) * Scalar::Complex(0.0, 1.0) } else { draw(7) };
        let (x, _) = execute(&[&(draw(6) + imaginary)], &local).unwrap();
        let x = &x[0];
        let (copy, _) = execute(&[&x.t()], &local).unwrap();
        let (made, metrics) = execute(&[&x.matmul(&x.t()), &x.matmul(&copy[0])], &local).unwrap();
        for expected in [&made[1], &made[0].t()] {
            let wrong = made[0].not_equal(expected).count_nonzero(..).item().unwrap();
            assert_eq!(wrong.to_f64(), 0.0, "{dtype}: of whole numbers");
        }
        assert!(metrics.peak_bytes <= metrics.bound_bytes);
    }
}
