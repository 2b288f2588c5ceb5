//! The product of the factors is the original matrix.

use tharsis_numeric::random::default_rng;
use tharsis_numeric::{LocalExecutor, Tensor, execute, eye};

fn largest(tensors: &[&Tensor]) -> Vec<f64> {
    let worst: Vec<Tensor> = tensors.iter().map(|x| x.abs().max(..)).collect();
    let executor = LocalExecutor::new(2, 256 << 20).unwrap();
    let (results, metrics) = execute(&worst.iter().collect::<Vec<_>>(), &executor).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes);
    results.iter().map(|x| x.item().unwrap().to_f64()).collect()
}

fn check_svd(x: &Tensor, tolerance: f64) {
    let n = x.shape().unwrap()[1];
    let (u, s, vt) = x.svd();
    let back = (&u * &s).matmul(&vt) - x;
    let k = s.shape().unwrap()[0];
    let orthonormal = u.t().matmul(&u) - eye(k, k, 0);
    let errors = largest(&[&back, &orthonormal, &s]);
    assert!(errors[0] <= tolerance * errors[2], "back {errors:?}");
    assert!(errors[1] <= tolerance, "orthonormal {errors:?}");
    let values = s.fetch::<f64>().unwrap();
    assert!(values.iter().zip(values.iter().skip(1)).all(|(a, b)| a >= b), "{values}");
    assert_eq!(values.len(), x.shape().unwrap()[0].min(n));
}

#[test]
fn singular_values_of_any_shape_multiply_back() {
    for shape in [[5, 3], [3, 5], [40, 40], [1, 4], [30_000, 8], [4096, 16]] {
        check_svd(&default_rng(1).standard_normal(&shape), 1e-12);
    }
}

#[test]
fn ill_conditioned_tall_matrices_lose_no_digits() {
    // Columns of a random matrix mixed so that the condition number is about 1e12.
    let n = 16;
    let scales: Vec<f64> = (0..n).map(|i| 10f64.powf(-12.0 * i as f64 / (n - 1) as f64)).collect();
    let scales = Tensor::from_elements(&[n], &scales);
    let (rotation, _) = default_rng(5).standard_normal(&[n, n]).qr();
    let x = (default_rng(6).standard_normal(&[20_000, n]) * &scales).matmul(&rotation);
    check_svd(&x, 1e-12);
}

#[test]
fn qr_has_an_upper_triangle_and_multiplies_back() {
    for shape in [[6, 4], [4, 6], [20_000, 7]] {
        let x = default_rng(2).random(&shape);
        let (q, r) = x.qr();
        let k = shape[0].min(shape[1]);
        let back = q.matmul(&r) - &x;
        let orthonormal = q.t().matmul(&q) - eye(k, k, 0);
        assert!(largest(&[&back, &orthonormal]).iter().all(|&error| error < 1e-12));
        let triangle = r.fetch::<f64>().unwrap();
        assert!(triangle.indexed_iter().all(|(at, &x)| at[0] <= at[1] || x.abs() < 1e-12));
    }
}

#[test]
fn what_has_no_factor_is_a_linear_algebra_error() {
    let minus = eye(3, 3, 0) * -1.0;
    assert_eq!(minus.cholesky().execute().unwrap_err().class(), "LinAlgError");
    let nan = Tensor::from_elements(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0]);
    assert_eq!(nan.svd().1.execute().unwrap_err().class(), "LinAlgError");
    assert_eq!(eye(2, 3, 0).cholesky().check().unwrap_err().class(), "LinAlgError");
}
