//! The product of the factors is the original matrix.

use tharsis_numeric::random::default_rng;
use tharsis_numeric::{
    DType, LocalExecutor, Tensor, arange, concatenate, execute, eye, index, linspace, where_,
};

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
    for shape in [[5, 3], [3, 5], [40, 40], [1, 4], [100_000, 8], [40_000, 16]] {
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
    let x = (default_rng(6).standard_normal(&[40_000, n]) * &scales).matmul(&rotation);
    check_svd(&x, 1e-12);
}

#[test]
fn qr_has_an_upper_triangle_and_multiplies_back() {
    for shape in [[6, 4], [4, 6], [100_000, 7], [1_000_000, 2], [2_000, 400]] {
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

/// The columns of powers of even places in [0, 1].
fn powers(rows: usize, columns: usize) -> Tensor {
    let at = linspace(0.0, 1.0, rows).expand_dims(1);
    at.power(arange(columns).expand_dims(0))
}

#[test]
fn a_polynomial_through_many_points_is_found_again() {
    // The condition number is about 4e9.
    let (rows, columns) = (50_000, 14);
    let x = powers(rows, columns);
    let wanted = arange(columns) + 1;
    let found = x.lstsq(&x.matmul(&wanted.astype(DType::F64)), None).solution;
    let error = largest(&[&(found - &wanted)])[0];
    assert!(error < 1e-4, "{error}");
    let (q, r) = x.qr();
    let errors = largest(&[&(q.matmul(&r) - &x), &(q.t().matmul(&q) - eye(columns, columns, 0))]);
    // Reflections are exact up to a part of the lengths of columns.
    let length = (rows as f64).sqrt();
    assert!(errors[0] < 1e-14 * length && errors[1] < 1e-14, "{errors:?}");
}

#[test]
fn factors_of_tall_matrices_are_orthonormal_whatever_the_columns() {
    let (rows, n) = (80_000, 8);
    let x = default_rng(3).standard_normal(&[rows, n]);
    let of_column = |size: f64| {
        let sizes: Vec<f64> = (0..n).map(|j| if j == 3 { size } else { 1.0 }).collect();
        &x * &Tensor::from_elements(&[n], &sizes)
    };
    let cases = [of_column(0.0), of_column(1e-35), of_column(1e160), &x * 0.0, &x * 1e160, &x * 1e-200];
    for (case, x) in cases.iter().enumerate() {
        let (q, r) = x.qr();
        let (u, s, vt) = x.svd();
        let identity = eye(n, n, 0);
        let back = [&(q.matmul(&r) - x), &((&u * &s).matmul(&vt) - x), x].map(Clone::clone);
        let errors = largest(&[&(q.t().matmul(&q) - &identity), &(u.t().matmul(&u) - &identity)]);
        assert!(errors.iter().all(|&error| error < 1e-13), "{case}: {errors:?}");
        let errors = largest(&[&back[0], &back[1], &back[2]]);
        assert!(errors[..2].iter().all(|&error| error <= 1e-13 * errors[2]), "{case}: {errors:?}");
    }
}

#[test]
fn the_signs_of_a_tall_factor_are_those_of_reflections() {
    // The first rows with the Gram matrix of the rest below them, as its upper factor: reflections of the
    // small matrix make the same decisions.
    let (rows, n) = (80_000, 8);
    let x = default_rng(8).standard_normal(&[rows, n]);
    let (top, rest) = (x.get(&index![..n as i64]), x.get(&index![n as i64..]));
    let small = concatenate(&[&top, &rest.qr_upper()], 0);
    let error = largest(&[&(x.qr_upper() - small.qr_upper())])[0];
    assert!(error < 1e-10, "{error}");
    assert_eq!(largest(&[&(x.qr().1 - x.qr_upper())])[0], 0.0);
}

#[test]
fn nan_in_a_tall_matrix_is_what_it_is_in_a_small_one() {
    let tall = where_(&arange(800_000).equal(7), f64::NAN, 1.0).reshape(&[100_000, 8]);
    for x in [&tall, &tall.get(&index![..20])] {
        assert!(x.qr().1.isnan().any(..).item().unwrap().is_true());
        assert_eq!(x.svd().1.execute().unwrap_err().class(), "LinAlgError");
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
