//! Linear algebra by its definition: residuals, orthogonality and order, for matrices and stacks, real and
//! complex, in any chunks.

use tharsis_numeric::linalg::{MatrixNorm, VectorNorm};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Axes, Chunks, DType, Tensor, eye, ones};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];
const SHAPES: [&[usize]; 8] =
    [&[1, 1], &[3, 3], &[5, 2], &[2, 5], &[7, 7], &[2, 4, 3], &[3, 2, 3, 3], &[0, 2, 2]];

fn tolerance(dtype: DType) -> f64 {
    if dtype.real_part() == DType::F32 { 2e-4 } else { 1e-11 }
}

/// Random matrices.
fn matrices(shape: &[usize], dtype: DType) -> Tensor {
    let rng = default_rng(5);
    let real = rng.standard_normal(shape).astype(dtype);
    let made = if dtype.is_complex() {
        real.add(rng.standard_normal(shape).astype(dtype).multiply(tharsis_kernels::Complex::new(0.0, 1.0)))
    } else {
        real
    };
    // Computed, so that one matrix is the same for all that is made of it.
    made.execute().unwrap()
}

fn adjoint(x: &Tensor) -> Tensor {
    if x.dtype().unwrap().is_complex() { x.matrix_transpose().conj() } else { x.matrix_transpose() }
}

/// The largest distance between elements of two tensors.
#[track_caller]
fn check_close(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(found.shape().unwrap(), expected.shape().unwrap(), "{what}");
    if found.size().unwrap() == 0 {
        return;
    }
    let dtype = found.dtype().unwrap();
    let distance = found.subtract(expected).abs().max(..).item().unwrap().to_f64();
    assert!(distance <= tolerance(dtype) * 20.0, "{what} {dtype} {:?}: {distance}", found.shape());
}

fn each(check: impl Fn(&Tensor, &str)) {
    for dtype in DTYPES {
        for shape in SHAPES {
            let x = matrices(shape, dtype);
            check(&x, "whole");
            check(&x.rechunk(Chunks::Each(2)), "in chunks");
        }
    }
}

fn identity(n: usize, like: &Tensor) -> Tensor {
    let shape = like.shape().unwrap();
    let wide = [&shape[..shape.len() - 2], &[n, n]].concat();
    eye(n, n, 0).astype(like.dtype().unwrap()).broadcast_to(&wide)
}

fn extents(x: &Tensor) -> (usize, usize) {
    let shape = x.shape().unwrap();
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

#[test]
fn q_is_orthonormal_and_times_r_the_matrix() {
    each(|x, what| {
        let (m, n) = extents(x);
        for (complete, (q, r)) in [(false, x.qr()), (true, x.qr_complete())] {
            let k = if complete { m } else { m.min(n) };
            assert_eq!((extents(&q), extents(&r)), ((m, k), (k, n)), "{what}");
            assert_eq!((q.dtype().unwrap(), r.dtype().unwrap()), (x.dtype().unwrap(), x.dtype().unwrap()));
            check_close(&q.matmul(&r), x, what);
            check_close(&adjoint(&q).matmul(&q), &identity(k, x), what);
            check_close(&r.tril(-1), &r.zeros_like(), what);
        }
    });
}

#[test]
fn singular_vectors_and_values_make_the_matrix() {
    each(|x, what| {
        let (m, n) = extents(x);
        for (full, (u, s, vt)) in [(false, x.svd()), (true, x.svd_full())] {
            let k = m.min(n);
            let (rows, columns) = if full { (m, n) } else { (k, k) };
            assert_eq!((extents(&u), extents(&vt)), ((m, rows), (columns, n)), "{what}");
            assert_eq!(s.dtype().unwrap(), x.dtype().unwrap().real_part());
            let cut = |t: &Tensor, axis: i64| {
                let mut index = vec![tharsis_numeric::Index::Ellipsis];
                index.push((0..k as i64).into());
                if axis == -2 {
                    index.push((..).into());
                }
                t.get(&index)
            };
            let scaled = cut(&u, -1).multiply(s.expand_dims(-2).astype(x.dtype().unwrap()));
            check_close(&scaled.matmul(&cut(&vt, -2)), x, what);
            check_close(&adjoint(&u).matmul(&u), &identity(rows, x), what);
            check_close(&vt.matmul(&adjoint(&vt)), &identity(columns, x), what);
            assert!(s.diff(1, -1).less_equal(0).all(..).item().unwrap().is_true(), "{what}: not descending");
        }
        check_close(&x.singular_values(), &x.svd().1, what);
    });
}

#[test]
fn inverses_solutions_and_determinants_belong_together() {
    each(|x, what| {
        let (m, n) = extents(x);
        if m != n {
            assert_eq!(x.inv().check().unwrap_err().class(), "LinAlgError");
            assert_eq!(x.det().check().unwrap_err().class(), "LinAlgError");
            return;
        }
        // Away from singular matrices.
        let x = x.add(identity(n, x).multiply(4.0));
        let dtype = x.dtype().unwrap();
        let inverse = x.inv();
        assert_eq!(inverse.dtype().unwrap(), dtype);
        check_close(&x.matmul(&inverse), &identity(n, &x), what);
        check_close(&x.solve(&x), &identity(n, &x), what);
        let one = ones(&[n]).astype(dtype);
        check_close(
            &x.matmul(&x.solve(&one).expand_dims(-1)).squeeze(Some(&[-1])),
            &x.sum(-1).ones_like(),
            what,
        );
        let (sign, log) = x.slogdet();
        let product = sign.multiply(log.exp().astype(dtype));
        check_close(&product.divide(x.det()), &x.det().ones_like(), what);
        check_close(&x.matrix_power(-2).matmul(&x.matrix_power(2)), &identity(n, &x), what);
    });
}

#[test]
fn hermitian_matrices_have_real_eigenvalues_and_cholesky_factors() {
    each(|x, what| {
        let (_, n) = extents(x);
        let gram = adjoint(x).matmul(x).add(identity(n, &adjoint(x).matmul(x))).execute().unwrap();
        let lower = gram.cholesky();
        check_close(&lower.matmul(&adjoint(&lower)), &gram, what);
        for upper in [false, true] {
            // The other triangle is not read.
            let half = if upper { gram.triu(0) } else { gram.tril(0) };
            let (values, vectors) = half.eigh(upper);
            assert_eq!(values.dtype().unwrap(), gram.dtype().unwrap().real_part());
            let scaled = vectors.multiply(values.expand_dims(-2).astype(gram.dtype().unwrap()));
            check_close(&scaled.matmul(&adjoint(&vectors)), &gram, what);
            check_close(&half.eigvalsh(upper), &values, what);
        }
        let (values, vectors) = gram.eig();
        let left = gram.astype(vectors.dtype().unwrap()).matmul(&vectors);
        check_close(&left, &vectors.multiply(values.expand_dims(-2)), what);
    });
}

#[test]
fn eigenvectors_have_the_same_bits_on_any_number_of_threads() {
    let x = default_rng(5).random(&[600, 600]);
    let bits = |threads: usize| {
        let executor = tharsis_numeric::LocalExecutor::new(threads, 1 << 30).unwrap();
        let (_, vectors) = x.add(x.t()).eigh(false);
        let vectors = vectors.to_chunk(&executor).unwrap().to_vec::<f64>().unwrap();
        vectors.into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    let of_one = bits(1);
    assert!([2, 3].iter().all(|&threads| bits(threads) == of_one));
}

#[test]
fn pseudo_inverses_and_ranks_are_those_of_the_singular_values() {
    each(|x, what| {
        let inverse = x.pinv(None);
        check_close(&x.matmul(&inverse).matmul(x), x, what);
        let (m, n) = extents(x);
        let ranks = x.matrix_rank(None, None);
        assert!(ranks.equal(m.min(n) as i64).all(..).item().unwrap().is_true(), "{what}");
    });
    assert_eq!(ones(&[4, 3]).matrix_rank(None, None).item().unwrap().to_f64(), 1.0);
    assert_eq!(eye(3, 3, 0).matrix_rank(Some(2.0), None).item().unwrap().to_f64(), 0.0);
}

#[test]
fn norms_are_as_defined() {
    let x = Tensor::from_elements(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 0.0, -6.0]);
    let norm = |norm| x.matrix_norm(norm, false).item().unwrap().to_f64();
    assert_eq!(norm(MatrixNorm::Columns), 9.0);
    assert_eq!(norm(MatrixNorm::LeastColumns), 2.0);
    assert_eq!(norm(MatrixNorm::Rows), 10.0);
    assert_eq!(norm(MatrixNorm::LeastRows), 6.0);
    assert!((norm(MatrixNorm::Frobenius) - 66f64.sqrt()).abs() < 1e-12);
    let s = x.singular_values().to_vec::<f64>().unwrap();
    assert!((norm(MatrixNorm::Nuclear) - s.iter().sum::<f64>()).abs() < 1e-12);
    assert_eq!((norm(MatrixNorm::Largest), norm(MatrixNorm::Smallest)), (s[0], s[1]));
    let vector = |norm, axes: Axes| x.vector_norm(norm, axes).to_vec::<f64>().unwrap();
    assert_eq!(vector(VectorNorm::Largest, Axes::from(0)), [4.0, 2.0, 6.0]);
    assert_eq!(vector(VectorNorm::Smallest, Axes::from(1)), [1.0, 0.0]);
    assert_eq!(vector(VectorNorm::Count, Axes::default()), [5.0]);
    assert_eq!(vector(VectorNorm::Power(1.0), Axes::from(1)), [6.0, 10.0]);
    assert!((vector(VectorNorm::Power(3.0), Axes::from(1))[0] - 36f64.cbrt()).abs() < 1e-12);
}

#[test]
fn what_has_no_result_is_refused_with_the_error_of_numpy() {
    let class = |x: &Tensor| x.to_vec::<f64>().unwrap_err().class();
    let singular = ones(&[3, 3]);
    assert_eq!(class(&singular.inv()), "LinAlgError");
    assert_eq!(class(&singular.solve(&ones(&[3]))), "LinAlgError");
    assert_eq!(class(&singular.negative().cholesky()), "LinAlgError");
    assert_eq!(class(&ones(&[3]).inv()), "LinAlgError");
    assert_eq!(class(&ones(&[3, 3]).solve(&ones(&[2]))), "ValueError");
    assert_eq!(class(&ones(&[2, 2]).astype(DType::F16).inv()), "TypeError");
    assert_eq!(class(&ones(&[2, 2]).multiply(f64::NAN).singular_values()), "LinAlgError");
}

#[test]
fn a_matrix_that_does_not_fit_is_refused_with_the_bytes_before_anything_runs() {
    let executor = tharsis_numeric::LocalExecutor::new(2, 1 << 20).unwrap();
    let refused = ones(&[2000, 2000]).inv().to_chunk(&executor).unwrap_err();
    assert_eq!(refused.class(), "MemoryError");
    assert!(refused.to_string().contains("bytes"), "{refused}");
}
