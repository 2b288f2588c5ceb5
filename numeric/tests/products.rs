//! Products of a matrix with itself, which are computed in a way of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use tharsis_numeric::random::default_rng;

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
