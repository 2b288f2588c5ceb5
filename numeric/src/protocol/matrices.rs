//! Linear algebra of programs: products, factorizations, norms, of matrices and of stacks of them.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor, tuple};
use super::sets::fields;
use super::value::Value;
use crate::linalg::{MatrixNorm, VectorNorm, matrix_norm_of, vector_norm_of};
use crate::reduction::Axes;
use crate::tensor::Tensor;
use tharsis_kernels::Scalar;
use tharsis_kernels::linear::{Linear, QrMode};

/// All operations on matrices and vectors.
pub(super) const MATRICES: &[Row] = &[
    ("np.cross", "(a, b, axis=-1)", "vector products", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        if a.ndim()? == 0 || b.ndim()? == 0 {
            return Err(Failure::value("At least one array has zero dimension"));
        }
        tensor(a.cross(&b, args.integer_or(usize::MAX, "axis", -1)?))
    }),
    ("np.diagonal", "(a, offset=0, axis1=0, axis2=1)", "a diagonal of two axes", |_, args| {
        let x = args.tensor(0, "a")?;
        let offset = args.integer_or(1, "offset", 0)?;
        tensor(planes(&x, args)?.diagonal(offset))
    }),
    ("np.inner", "(a, b)", "sums of products over the last axes", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(if a.ndim()? == 0 || b.ndim()? == 0 { a.multiply(&b) } else { a.tensordot(&b, &[-1], &[-1]) })
    }),
    ("np.kron", "(a, b)", "each element of one times all of the other", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.kron(&b))
    }),
    ("np.linalg.cholesky", "(a, upper=False)", "the lower Cholesky factor, or the upper one", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(if args.flag(usize::MAX, "upper", false)? { x.cholesky_upper() } else { x.cholesky() })
    }),
    ("np.linalg.cond", "(x)", "the largest singular value by the smallest", |_, args| {
        tensor(args.tensor(0, "x")?.cond())
    }),
    ("np.linalg.cross", "(x1, x2, axis=-1)", "vector products", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        tensor(a.cross(&b, args.integer_or(usize::MAX, "axis", -1)?))
    }),
    ("np.linalg.det", "(a)", "determinants", |_, args| tensor(args.tensor(0, "a")?.det())),
    ("np.linalg.diagonal", "(x, offset=0)", "the diagonals of matrices", |_, args| {
        let x = args.tensor(0, "x")?;
        tensor(x.diagonal(args.integer_or(usize::MAX, "offset", 0)?))
    }),
    ("np.linalg.eig", "(a)", "eigenvalues and right eigenvectors, complex", |_, args| {
        let (values, vectors) = args.tensor(0, "a")?.eig();
        fields(&["eigenvalues", "eigenvectors"], [values, vectors])
    }),
    ("np.linalg.eigh", "(a, UPLO='L')", "eigenvalues and eigenvectors of a Hermitian matrix", |_, args| {
        let x = args.tensor(0, "a")?;
        let (values, vectors) = x.eigh(upper(args)?);
        fields(&["eigenvalues", "eigenvectors"], [values, vectors])
    }),
    ("np.linalg.eigvals", "(a)", "eigenvalues, complex", |_, args| tensor(args.tensor(0, "a")?.eig().0)),
    ("np.linalg.eigvalsh", "(a, UPLO='L')", "eigenvalues of a Hermitian matrix", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.eigvalsh(upper(args)?))
    }),
    ("np.linalg.inv", "(a)", "inverses", |_, args| tensor(args.tensor(0, "a")?.inv())),
    ("np.linalg.lstsq", "(a, b, rcond=None)", "x of least length with a x nearest b", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        let found = a.lstsq(&b, number(args, 2, "rcond")?);
        // NumPy counts in the integers of LAPACK.
        let rank = found.rank.astype(tharsis_kernels::DType::I32);
        tuple([found.solution, found.residuals, rank, found.singular_values])
    }),
    ("np.linalg.matmul", "(x1, x2)", "matrix products", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        tensor(a.matmul(&b))
    }),
    ("np.linalg.matrix_norm", "(x, ord='fro', keepdims=False)", "norms of matrices", |_, args| {
        let x = args.tensor(0, "x")?;
        for axis in [-2, -1] {
            tharsis_graph::shape::normalize_axis(axis, x.ndim()?)?;
        }
        let norm = match args.take(usize::MAX, "ord") {
            None | Some(Value::None) => MatrixNorm::Frobenius,
            Some(order) => matrix_norm(&order)?,
        };
        tensor(x.matrix_norm(norm, args.flag(usize::MAX, "keepdims", false)?))
    }),
    ("np.linalg.matrix_power", "(a, n)", "products of a matrix with itself", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.matrix_power(args.need(1, "n")?.integer()?))
    }),
    ("np.linalg.matrix_rank", "(A, tol=None, rtol=None)", "ranks of matrices", |_, args| {
        let x = args.tensor(0, "A")?;
        if x.ndim()? < 2 {
            return tensor(x.not_equal(0).any(..).astype(tharsis_kernels::DType::I64));
        }
        let (tolerance, rtol) = (number(args, 1, "tol")?, number(args, usize::MAX, "rtol")?);
        if tolerance.is_some() && rtol.is_some() {
            return Err(Failure::value("`tol` and `rtol` can't be both set."));
        }
        tensor(x.matrix_rank(tolerance, rtol))
    }),
    ("np.linalg.matrix_transpose", "(x)", "the last two axes exchanged", |_, args| {
        tensor(args.tensor(0, "x")?.matrix_transpose())
    }),
    (
        "np.linalg.norm",
        "(x, ord=None, axis=None, keepdims=False)",
        "norms of vectors or matrices",
        |_, args| norm(args),
    ),
    ("np.linalg.outer", "(x1, x2)", "products of all pairs", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        if a.ndim()? != 1 || b.ndim()? != 1 {
            return Err(Failure::value("Input arrays must be one-dimensional, but they are not"));
        }
        tensor(a.outer(&b))
    }),
    ("np.linalg.pinv", "(a, rcond=None, rtol=None)", "pseudo-inverses", |_, args| {
        let x = args.tensor(0, "a")?;
        if x.ndim()? < 2 {
            return Err(Failure::value(format!(
                "not enough values to unpack (expected 2, got {})",
                x.ndim()?
            )));
        }
        // NumPy's default is not that of the standard, which an `rtol` of None asks for.
        let (rcond, rtol) = (number(args, 1, "rcond")?, args.take(usize::MAX, "rtol"));
        let share = match (rcond, rtol) {
            (None, None) => Some(1e-15),
            (None, Some(Value::None)) => None,
            (None, Some(rtol)) => Some(rtol.real()?),
            (Some(rcond), None) => Some(rcond),
            (Some(_), Some(_)) => return Err(Failure::value("`rtol` and `rcond` can't be both set.")),
        };
        tensor(x.pinv(share))
    }),
    (
        "np.linalg.qr",
        "(a, mode='reduced')",
        "Q with orthonormal columns, and upper triangular R",
        |_, args| {
            let x = args.tensor(0, "a")?;
            let mode = args.text_or(1, "mode", "reduced")?;
            let (q, r) = match mode.as_str() {
                "reduced" => x.qr(),
                "complete" => x.qr_complete(),
                "r" => return tensor(x.qr_upper()),
                "raw" => {
                    let part = |part| x.linear(Linear::Qr(QrMode::Raw), part, None);
                    return tuple([part(0), part(1)]);
                }
                other => return Err(Failure::value(format!("Unrecognized mode '{other}'"))),
            };
            fields(&["Q", "R"], [q, r])
        },
    ),
    ("np.linalg.slogdet", "(a)", "signs of determinants, logarithms of their absolute values", |_, args| {
        let (sign, log) = args.tensor(0, "a")?.slogdet();
        fields(&["sign", "logabsdet"], [sign, log])
    }),
    ("np.linalg.solve", "(a, b)", "x with a x = b", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.solve(&b))
    }),
    (
        "np.linalg.svd",
        "(a, full_matrices=True, compute_uv=True)",
        "singular vectors and values",
        |_, args| {
            let x = args.tensor(0, "a")?;
            let full = args.flag(1, "full_matrices", true)?;
            if !args.flag(2, "compute_uv", true)? {
                return tensor(x.singular_values());
            }
            let is_square = matches!(x.shape()?, [.., m, n] if m == n);
            let (u, s, vt) = if full && !is_square { x.svd_full() } else { x.svd() };
            fields(&["U", "S", "Vh"], [u, s, vt])
        },
    ),
    ("np.linalg.svdvals", "(x)", "singular values in descending order", |_, args| {
        tensor(args.tensor(0, "x")?.singular_values())
    }),
    ("np.linalg.tensordot", "(x1, x2, axes=2)", "sums of products over axes", |_, args| {
        tensordot(args, usize::MAX)
    }),
    ("np.linalg.tensorinv", "(a, ind=2)", "the inverse over the first axes", |_, args| {
        let x = args.tensor(0, "a")?;
        let lead = args.integer_or(1, "ind", 2)?;
        tensor(x.tensorinv(usize::try_from(lead).map_err(|_| Failure::value("Invalid ind argument."))?))
    }),
    ("np.linalg.tensorsolve", "(a, b, axes=None)", "x with a x = b over all axes of x", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.tensorsolve(&b, &args.integers(2, "axes")?.unwrap_or_default()))
    }),
    ("np.linalg.trace", "(x, offset=0, dtype=None)", "sums of the diagonals of matrices", |_, args| {
        let x = args.tensor(0, "x")?;
        let offset = args.integer_or(usize::MAX, "offset", 0)?;
        traced(&x, offset, args)
    }),
    ("np.linalg.vecdot", "(x1, x2, axis=-1)", "sums of products along an axis", |_, args| vecdot(args)),
    ("np.linalg.vector_norm", "(x, axis=None, keepdims=False, ord=2)", "norms of vectors", |_, args| {
        let x = args.tensor(0, "x")?;
        let axes = match args.take(usize::MAX, "axis") {
            None | Some(Value::None) => Axes::default(),
            Some(axes) => Axes::from(axes.integers()?),
        };
        let axes = if args.flag(usize::MAX, "keepdims", false)? { axes.keepdims() } else { axes };
        let norm = match args.take(usize::MAX, "ord") {
            None => VectorNorm::Power(2.0),
            Some(order) => vector_norm(&order)?,
        };
        tensor(x.vector_norm(norm, axes))
    }),
    ("np.matvec", "(x1, x2)", "products of matrices with vectors", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        tensor(a.matvec(&b))
    }),
    ("np.outer", "(a, b)", "products of all pairs", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.outer(&b))
    }),
    ("np.tensordot", "(a, b, axes=2)", "sums of products over axes", |_, args| tensordot(args, 2)),
    (
        "np.trace",
        "(a, offset=0, axis1=0, axis2=1, dtype=None)",
        "the sum of a diagonal of two axes",
        |_, args| {
            let x = args.tensor(0, "a")?;
            let offset = args.integer_or(1, "offset", 0)?;
            let x = planes(&x, args)?;
            traced(&x, offset, args)
        },
    ),
    ("np.vdot", "(a, b)", "the sum of products, as if flattened", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.ravel().vecdot(&b.ravel(), -1))
    }),
    ("np.vecdot", "(x1, x2, axis=-1)", "sums of products along an axis", |_, args| vecdot(args)),
    ("np.vecmat", "(x1, x2)", "products of vectors with matrices", |_, args| {
        let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
        tensor(a.vecmat(&b))
    }),
];

fn tensordot(args: &mut Args, place: usize) -> Result<Value, Failure> {
    let (a, b) = (args.need_either(0, "a", "x1")?.tensor()?, args.need_either(1, "b", "x2")?.tensor()?);
    let (left, right) = match args.take(place, "axes").unwrap_or(Value::Number(Scalar::Int(2))) {
        Value::Tuple(pair) | Value::List(pair) if pair.len() == 2 => {
            (pair[0].integers()?, pair[1].integers()?)
        }
        count => {
            let count = count.integer()?;
            ((-count..0).collect(), (0..count).collect())
        }
    };
    tensor(a.tensordot(&b, &left, &right))
}

fn vecdot(args: &mut Args) -> Result<Value, Failure> {
    let (a, b) = (args.tensor(0, "x1")?, args.tensor(1, "x2")?);
    tensor(a.vecdot(&b, args.integer_or(usize::MAX, "axis", -1)?))
}

fn upper(args: &mut Args) -> Result<bool, Failure> {
    match args.text_or(1, "UPLO", "L")?.to_uppercase().as_str() {
        "L" => Ok(false),
        "U" => Ok(true),
        _ => Err(Failure::value("UPLO argument must be 'L' or 'U'")),
    }
}

fn number(args: &mut Args, position: usize, name: &str) -> Result<Option<f64>, Failure> {
    match args.take(position, name) {
        None | Some(Value::None) => Ok(None),
        Some(number) => number.real().map(Some),
    }
}

/// The axes of a diagonal moved to the end.
fn planes(x: &Tensor, args: &mut Args) -> Result<Tensor, Failure> {
    let axes = [args.integer_or(2, "axis1", 0)?, args.integer_or(3, "axis2", 1)?];
    let rank = x.ndim()?;
    if rank < 2 {
        return Err(Failure::value("diag requires an array of at least two dimensions"));
    }
    let at = [0, 1].map(|i| tharsis_graph::shape::normalize_axis(axes[i], rank));
    let [first, second] = at;
    if first? == second? {
        return Err(Failure::value("axis1 and axis2 cannot be the same"));
    }
    Ok(x.moveaxes(&axes, &[-2, -1]))
}

fn traced(x: &Tensor, offset: i64, args: &mut Args) -> Result<Value, Failure> {
    let dtype = args.dtype(usize::MAX, "dtype")?;
    match dtype {
        None => tensor(x.trace(offset)),
        Some(dtype) => tensor(x.astype(dtype).trace(offset).astype(dtype)),
    }
}

fn matrix_norm(order: &Value) -> Result<MatrixNorm, Failure> {
    match order {
        Value::Text(name) if name == "fro" => Ok(MatrixNorm::Frobenius),
        Value::Text(name) if name == "nuc" => Ok(MatrixNorm::Nuclear),
        Value::Text(_) => Err(Failure::value("Invalid norm order for matrices.")),
        number => Ok(matrix_norm_of(number.real()?)?),
    }
}

fn vector_norm(order: &Value) -> Result<VectorNorm, Failure> {
    match order {
        Value::None => Ok(VectorNorm::Power(2.0)),
        Value::Text(name) => Err(Failure::value(format!("Invalid norm order '{name}' for vectors"))),
        number => Ok(vector_norm_of(number.real()?)),
    }
}

/// NumPy's `norm`: of vectors along an axis, of matrices on two, of all elements without an order.
fn norm(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "x")?;
    let order = args.take(1, "ord").filter(|order| !matches!(order, Value::None));
    let axes = args.integers(2, "axis")?;
    let keepdims = args.flag(3, "keepdims", false)?;
    let kept = |axes: Axes| if keepdims { axes.keepdims() } else { axes };
    let axes = match (axes, &order, x.ndim()?) {
        (Some(axes), ..) => axes,
        (None, None, _) => return tensor(x.vector_norm(VectorNorm::Power(2.0), kept(Axes::default()))),
        (None, Some(_), 1) => vec![0],
        (None, Some(_), 2) => vec![0, 1],
        _ => return Err(Failure::value("Improper number of dimensions to norm.")),
    };
    match (axes.as_slice(), order) {
        (&[axis], order) => {
            let norm = order.map_or(Ok(VectorNorm::Power(2.0)), |order| vector_norm(&order))?;
            tensor(x.vector_norm(norm, kept(Axes::from([axis]))))
        }
        (&[first, second], order) => {
            let norm = order.map_or(Ok(MatrixNorm::Frobenius), |order| matrix_norm(&order))?;
            let moved = x.moveaxes(&[first, second], &[-2, -1]);
            moved.check().map_err(|_| Failure::value("Duplicate axes given."))?;
            let made = moved.matrix_norm(norm, keepdims);
            tensor(if keepdims { made.moveaxes(&[-2, -1], &[first, second]) } else { made })
        }
        _ => Err(Failure::value("Improper number of dimensions to norm.")),
    }
}
