//! A program that was built without the feature `dense`: functions that need it are refused when they run,
//! and everything else is there. `./test --long` builds this form.

use tharsis_numeric::cosine::CosineType;
use tharsis_numeric::fft::Norm;
use tharsis_numeric::{Chunks, Tensor, eye};

/// The class and the text of a refusal.
#[track_caller]
fn refusal(x: &Tensor) -> (&'static str, String) {
    let error = x.execute().expect_err("it is not there");
    (error.class(), error.to_string())
}

#[test]
fn functions_of_dense_matrices_and_lines_are_not_implemented() {
    let whole = eye(8, 8, 0);
    // In tiles, a factorization has other tasks than of a matrix that one task holds.
    for x in [whole.clone(), whole.rechunk(Chunks::Each(3))] {
        let matrices = [
            ("matmul", x.matmul(&x)),
            ("cholesky", x.cholesky()),
            ("qr", x.qr().1),
            ("svd", x.svd().1),
            ("inv", x.inv()),
            ("det", x.det()),
            ("solve", x.solve(&x)),
            ("eigvalsh", x.eigvalsh(false)),
        ];
        let lines = [
            ("fft", x.fft(None, -1, Norm::default())),
            ("rfft", x.rfft(None, 0, Norm::default())),
            ("dct", x.dct(CosineType::Two, None, -1, Norm::default())),
        ];
        for (name, result) in matrices.iter().chain(&lines) {
            let (class, text) = refusal(result);
            assert_eq!(class, "NotImplemented", "{name}: {text}");
            assert!(text.contains("the feature `tensor` of tharsis"), "{name}: {text}");
        }
    }
}

#[test]
fn products_of_whole_numbers_and_sums_need_no_dense_algebra() {
    let x = Tensor::from_elements(&[2, 2], &[1_i64, 2, 3, 4]);
    assert_eq!(x.matmul(&x).to_vec::<i64>().unwrap(), [7, 10, 15, 22]);
    assert_eq!(eye(3, 3, 0).sum(..).item().unwrap().to_f64(), 3.0);
}
