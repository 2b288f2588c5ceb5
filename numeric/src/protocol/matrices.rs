//! Factorizations of programs.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::tensor::Tensor;

/// All factorizations of matrices.
pub(super) const MATRICES: &[Row] = &[
    ("np.linalg.cholesky", "(a)", "the lower Cholesky factor", |_, args| {
        tensor(matrix(args, "a")?.cholesky())
    }),
    ("np.linalg.matmul", "(x1, x2)", "matrix products", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        tensor(a.matmul(&b))
    }),
    (
        "np.linalg.qr",
        "(a, mode='reduced')",
        "Q with orthonormal columns, and upper triangular R",
        |_, args| {
            let x = matrix(args, "a")?;
            match args.take(1, "mode") {
                None => {}
                Some(Value::Text(mode)) if mode == "reduced" => {}
                Some(mode) => return Err(Failure::missing(format!("the mode {mode:?} is not implemented"))),
            }
            let (q, r) = x.qr();
            fields(&["Q", "R"], [q, r])
        },
    ),
    ("np.linalg.svd", "(a, full_matrices=True)", "singular vectors and values", |_, args| {
        let x = matrix(args, "a")?;
        reduced_or_square(&x, args)?;
        let (u, s, vt) = x.svd();
        fields(&["U", "S", "Vh"], [u, s, vt])
    }),
    ("np.linalg.svdvals", "(x)", "singular values in descending order", |_, args| {
        tensor(matrix(args, "x")?.svd().1)
    }),
];

fn matrix(args: &mut Args, name: &str) -> Result<Tensor, Failure> {
    let x = args.tensor(0, name)?;
    match x.ndim()? {
        2 => Ok(x),
        rank @ 0..2 => {
            let message = format!("{rank}-dimensional array given. Array must be at least two-dimensional");
            Err(Failure::new("LinAlgError", message))
        }
        _ => Err(Failure::missing("factoring a stack of matrices is not implemented")),
    }
}

fn fields<const N: usize>(names: &'static [&'static str; N], parts: [Tensor; N]) -> Result<Value, Failure> {
    Ok(Value::Fields(names, parts.into_iter().map(tensor).collect::<Result<_, _>>()?))
}

/// Refuses full factors of a matrix that is not square: only for square ones they are the reduced factors.
fn reduced_or_square(x: &Tensor, args: &mut Args) -> Result<(), Failure> {
    let full = args.flag(1, "full_matrices", true)?;
    match x.shape()? {
        [m, n] if full && m != n => Err(Failure::missing("full_matrices=True is not implemented")),
        _ => Ok(()),
    }
}
