//! Operations of programs on sparse matrices, under the names that they have in `scipy.sparse` and as methods
//! of its arrays. An array of two axes will do in place of a matrix: elements of it that are not zero are
//! stored.

use super::Failure;
use super::args::Args;
use super::row::{Row, bare, tensor, tuple};
use super::value::Value;
use crate::create::zeros;
use crate::elementwise::unary;
use crate::index::Index;
use crate::sparse::Sparse;
use crate::tensor::Tensor;
use tharsis_graph::Chunks;
use tharsis_kernels::{DType, Scalar, UnaryOp};

/// Sparse matrices: made, changed, added up, multiplied and converted.
pub(super) const SPARSE: &[Row] = &[
    ("scipy.sparse.abs", "(a)", "absolute values", map_elements),
    ("scipy.sparse.add", "(a, b)", "the sum of two matrices", combined),
    ("scipy.sparse.arcsin", "(a)", "inverse sine of each element", map_elements),
    ("scipy.sparse.arcsinh", "(a)", "inverse hyperbolic sine of each element", map_elements),
    ("scipy.sparse.arctan", "(a)", "inverse tangent of each element", map_elements),
    ("scipy.sparse.arctanh", "(a)", "inverse hyperbolic tangent of each element", map_elements),
    ("scipy.sparse.astype", "(a, dtype)", "in another dtype", |_, args| {
        let a = matrix(args, 0, "a")?;
        let dtype = args.dtype(1, "dtype")?.ok_or_else(|| Failure::kind("missing a dtype"))?;
        made(a.astype(dtype)?)
    }),
    ("scipy.sparse.ceil", "(a)", "rounded up", map_elements),
    ("scipy.sparse.conjugate", "(a)", "complex conjugate of each element", map_elements),
    ("scipy.sparse.coo_array", "(arg1, shape=None)", MADE_OF, |_, args| created(args, Order::Rows)),
    ("scipy.sparse.count_nonzero", "(a)", "the number of elements that are not zero", |_, args| {
        tensor(matrix(args, 0, "a")?.values().count_nonzero(..))
    }),
    ("scipy.sparse.csc_array", "(arg1, shape=None)", MADE_OF, |_, args| created(args, Order::Columns)),
    ("scipy.sparse.csr_array", "(arg1, shape=None)", MADE_OF, |_, args| created(args, Order::Rows)),
    ("scipy.sparse.deg2rad", "(a)", "degrees to radians", map_elements),
    (
        "scipy.sparse.diags_array",
        "(diagonals, offsets=0, shape=None)",
        "a matrix with these diagonals",
        |_, args| diagonals(args),
    ),
    ("scipy.sparse.dot", "(a, b)", "another name of scipy.sparse.matmul", |_, args| product(args)),
    ("scipy.sparse.eliminate_zeros", "(a)", "without stored elements that are zero", |_, args| {
        made(matrix(args, 0, "a")?.prune())
    }),
    ("scipy.sparse.expm1", "(a)", "exp(x) - 1 of each element", map_elements),
    ("scipy.sparse.eye_array", "(m, n=None, k=0)", "ones on a diagonal, float64", |_, args| {
        let rows = extent(&args.need(0, "m")?)?;
        let columns = args.take(1, "n").filter(|n| !matches!(n, Value::None));
        let columns = columns.map_or(Ok(rows), |n| extent(&n))?;
        made(Sparse::eye(rows, columns, args.integer_or(2, "k", 0)?, args.tiles())?)
    }),
    ("scipy.sparse.floor", "(a)", "rounded down", map_elements),
    ("scipy.sparse.getitem", "(a, rows)", "a slice of the rows", |_, args| rows(args)),
    ("scipy.sparse.log1p", "(a)", "log(1 + x) of each element", map_elements),
    ("scipy.sparse.matmul", "(a, b)", "the product; dense if one of both is, and else sparse", |_, args| {
        product(args)
    }),
    ("scipy.sparse.max", "(a)", "the largest element, those that are not stored included", |_, args| {
        tensor(matrix(args, 0, "a")?.max()?)
    }),
    ("scipy.sparse.maximum", "(a, b)", "the larger of each two elements", combined),
    ("scipy.sparse.mean", "(a, axis=None)", "the mean of all elements, or along an axis", |_, args| {
        let a = matrix(args, 0, "a")?;
        tensor(a.mean(axis(args)?))
    }),
    ("scipy.sparse.min", "(a)", "the smallest element, those that are not stored included", |_, args| {
        tensor(matrix(args, 0, "a")?.min()?)
    }),
    ("scipy.sparse.minimum", "(a, b)", "the smaller of each two elements", combined),
    ("scipy.sparse.multiply", "(a, b)", "element by element with a matrix, or all with a number", combined),
    ("scipy.sparse.negative", "(a)", "the negative of each element", map_elements),
    ("scipy.sparse.nnz", "(a)", "the number of stored elements", |_, args| {
        Ok(Value::Number(Scalar::Int(matrix(args, 0, "a")?.nnz()? as i64)))
    }),
    ("scipy.sparse.power", "(a, n)", "powers with a number above zero", |_, args| {
        let (a, n) = (matrix(args, 0, "a")?, args.need(1, "n")?.operand()?);
        made(a.map(|x| x.power(n.clone()))?)
    }),
    ("scipy.sparse.rad2deg", "(a)", "radians to degrees", map_elements),
    (
        "scipy.sparse.random_array",
        "(shape, density=0.01, rng=0)",
        "random places with numbers from 0 to 1, for the seed `rng`; the numbers are not SciPy's",
        |_, args| {
            let shape = pair(&args.need(0, "shape")?)?;
            let density = args.number_or(1, "density", 0.01)?;
            let seed = u64::try_from(args.integer_or(2, "rng", 0)?);
            let seed = seed.map_err(|_| Failure::value("expected non-negative integer"))?;
            made(Sparse::random(shape, density, seed, args.tiles())?)
        },
    ),
    ("scipy.sparse.rint", "(a)", "rounded to the nearest", map_elements),
    ("scipy.sparse.shape", "(a)", "rows and columns", |_, args| {
        let shape = matrix(args, 0, "a")?.shape();
        Ok(Value::Tuple(shape.map(|extent| Value::Number(Scalar::Int(extent as i64))).to_vec()))
    }),
    ("scipy.sparse.sign", "(a)", "the sign of each element", map_elements),
    ("scipy.sparse.sin", "(a)", "sine of each element", map_elements),
    ("scipy.sparse.sinh", "(a)", "hyperbolic sine of each element", map_elements),
    ("scipy.sparse.sqrt", "(a)", "square root of each element", map_elements),
    ("scipy.sparse.subtract", "(a, b)", "the difference of two matrices", combined),
    ("scipy.sparse.sum", "(a, axis=None)", "the sum of all elements, or along an axis", |_, args| {
        let a = matrix(args, 0, "a")?;
        tensor(a.sum(axis(args)?))
    }),
    ("scipy.sparse.tan", "(a)", "tangent of each element", map_elements),
    ("scipy.sparse.tanh", "(a)", "hyperbolic tangent of each element", map_elements),
    ("scipy.sparse.toarray", "(a)", "as an array", |_, args| tensor(matrix(args, 0, "a")?.to_dense())),
    ("scipy.sparse.tocoo", "(a)", "rows, columns and values of stored elements, in order", |_, args| {
        fields(&["row", "col", "data"], matrix(args, 0, "a")?.ordered_triplets())
    }),
    ("scipy.sparse.tocsc", "(a)", "ends of columns, rows and values of stored elements", |_, args| {
        fields(&["indptr", "indices", "data"], matrix(args, 0, "a")?.to_csc()?)
    }),
    ("scipy.sparse.tocsr", "(a)", "ends of rows, columns and values of stored elements", |_, args| {
        fields(&["indptr", "indices", "data"], matrix(args, 0, "a")?.to_csr()?)
    }),
    ("scipy.sparse.transpose", "(a)", "rows and columns exchanged", |_, args| {
        made(matrix(args, 0, "a")?.transpose())
    }),
    ("scipy.sparse.trunc", "(a)", "rounded towards zero", map_elements),
];

const MADE_OF: &str = "a matrix from (data, (row, col)), (data, indices, indptr), a shape, or an array";

/// The order of compressed elements.
#[derive(Clone, Copy)]
enum Order {
    Rows,
    Columns,
}

fn made(matrix: Sparse) -> Result<Value, Failure> {
    matrix.values().check()?;
    Ok(Value::Sparse(Box::new(matrix)))
}

fn fields(names: &'static [&'static str], parts: [Tensor; 3]) -> Result<Value, Failure> {
    match tuple(parts)? {
        Value::Tuple(parts) => Ok(Value::Fields(names, parts)),
        other => Ok(other),
    }
}

fn matrix(args: &mut Args, position: usize, name: &str) -> Result<Sparse, Failure> {
    let value = args.need(position, name)?;
    sparse(value, args.tiles())
}

fn sparse(value: Value, tiles: Chunks) -> Result<Sparse, Failure> {
    match value {
        Value::Sparse(matrix) => Ok(*matrix),
        other => Ok(other.tensor()?.to_sparse(tiles)?),
    }
}

fn axis(args: &mut Args) -> Result<Option<i64>, Failure> {
    match args.take(1, "axis") {
        None | Some(Value::None) => Ok(None),
        Some(axis) => axis.integer().map(Some),
    }
}

fn extent(value: &Value) -> Result<usize, Failure> {
    usize::try_from(value.integer()?).map_err(|_| Failure::value("'shape' elements cannot be negative"))
}

fn pair(value: &Value) -> Result<[usize; 2], Failure> {
    match value {
        Value::Tuple(parts) | Value::List(parts) if parts.len() == 2 => {
            Ok([extent(&parts[0])?, extent(&parts[1])?])
        }
        other => Err(Failure::kind(format!("expected rows and columns, found {other:?}"))),
    }
}

/// SciPy's methods have older names of some functions.
fn map_elements(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let function = match bare(name) {
        "abs" => "absolute",
        "deg2rad" => "radians",
        "rad2deg" => "degrees",
        other => other,
    };
    let op = UnaryOp::from_name(function).ok_or_else(|| Failure::missing(name))?;
    made(matrix(args, 0, "a")?.map(|x| unary(op, x))?)
}

fn combined(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let a = matrix(args, 0, "a")?;
    let b = match (args.need(1, "b")?, bare(name)) {
        (factor @ (Value::Number(_) | Value::Large(_)), "multiply") => {
            return made(a.scale(factor.operand()?)?);
        }
        (other, _) => sparse(other, args.tiles())?,
    };
    made(match bare(name) {
        "add" => a.add(&b)?,
        "maximum" => a.maximum(&b)?,
        "minimum" => a.minimum(&b)?,
        "multiply" => a.multiply(&b)?,
        "subtract" => a.subtract(&b)?,
        _ => return Err(Failure::missing(name)),
    })
}

fn product(args: &mut Args) -> Result<Value, Failure> {
    let (a, b) = (args.need(0, "a")?, args.need(1, "b")?);
    match (a, b) {
        (Value::Sparse(a), Value::Sparse(b)) => made(a.matmul(&b)?),
        (a, Value::Sparse(b)) => tensor(b.dot_left(&a.tensor()?)),
        (a, b) => tensor(sparse(a, args.tiles())?.dot(&b.tensor()?)),
    }
}

/// The rows of a slice without a step.
fn rows(args: &mut Args) -> Result<Value, Failure> {
    let a = matrix(args, 0, "a")?;
    let extent = a.shape()[0] as i64;
    let place = |bound: Option<i64>, none: i64| {
        let bound = bound.unwrap_or(none);
        (if bound < 0 { bound.saturating_add(extent) } else { bound }).clamp(0, extent) as usize
    };
    match args.need(1, "rows")? {
        Value::Index(Index::Slice { start, stop, step: 1 }) => {
            made(a.rows(place(start, 0)..place(stop, extent)))
        }
        other => Err(Failure::missing(format!("rows by {other:?}; a slice of neighbours is there"))),
    }
}

/// A matrix from what SciPy's constructors take.
fn created(args: &mut Args, order: Order) -> Result<Value, Failure> {
    let given = args.need(0, "arg1")?;
    let shape = match args.take(1, "shape") {
        None | Some(Value::None) => None,
        Some(shape) => Some(pair(&shape)?),
    };
    let tiles = args.tiles();
    let parts = match given {
        Value::Tuple(parts) | Value::Fields(_, parts) => parts,
        dense => return fitting(sparse(dense, tiles)?, shape),
    };
    match <[Value; 3]>::try_from(parts) {
        Ok(parts) => compressed(parts, shape, order, tiles),
        Err(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([data, Value::Tuple(places) | Value::Fields(_, places)]) => {
                coordinates(data, places, shape, tiles)
            }
            Ok(extents) => {
                let shape = pair(&Value::Tuple(extents.to_vec()))?;
                let (places, none) = (zeros(&[0]).astype(DType::I64), zeros(&[0]));
                made(Sparse::from_coo(shape, &places, &places, &none, tiles)?)
            }
            Err(_) => Err(Failure::value("unrecognized form of a sparse matrix")),
        },
    }
}

/// Refuses a matrix of another shape than is asked for.
fn fitting(a: Sparse, shape: Option<[usize; 2]>) -> Result<Value, Failure> {
    match shape {
        Some(shape) if shape != a.shape() => {
            Err(Failure::value(format!("inconsistent shapes: {:?} != {shape:?}", a.shape())))
        }
        _ => made(a),
    }
}

fn coordinates(
    data: Value,
    places: Vec<Value>,
    shape: Option<[usize; 2]>,
    tiles: Chunks,
) -> Result<Value, Failure> {
    let Ok([rows, columns]) = <[Value; 2]>::try_from(places) else {
        return Err(Failure::value("coordinates are rows and columns"));
    };
    let (data, rows, columns) = (data.tensor()?, whole(rows.tensor()?)?, whole(columns.tensor()?)?);
    let shape = match shape {
        Some(shape) => shape,
        None => [behind_last(&rows)?, behind_last(&columns)?],
    };
    made(Sparse::from_coo(shape, &rows, &columns, &data, tiles)?)
}

fn compressed(
    [data, places, ends]: [Value; 3],
    shape: Option<[usize; 2]>,
    order: Order,
    tiles: Chunks,
) -> Result<Value, Failure> {
    let (data, places, ends) = (data.tensor()?, whole(places.tensor()?)?, whole(ends.tensor()?)?);
    let shape = match shape {
        Some(shape) => shape,
        None => {
            let lines = (ends.size()? as usize).saturating_sub(1);
            match order {
                Order::Rows => [lines, behind_last(&places)?],
                Order::Columns => [behind_last(&places)?, lines],
            }
        }
    };
    made(match order {
        Order::Rows => Sparse::from_csr(shape, &ends, &places, &data, tiles)?,
        Order::Columns => Sparse::from_csc(shape, &ends, &places, &data, tiles)?,
    })
}

/// Places, of which an empty list has no dtype of its own.
fn whole(places: Tensor) -> Result<Tensor, Failure> {
    Ok(if places.shape()? == [0] { places.astype(DType::I64) } else { places })
}

/// The extent of an axis that has these places.
fn behind_last(places: &Tensor) -> Result<usize, Failure> {
    if places.shape()?.contains(&0) {
        return Ok(0);
    }
    let last = places.max(..).item()?;
    match last {
        Scalar::Int(last) if 0 <= last => Ok(last as usize + 1),
        Scalar::Unsigned(last) => Ok(last as usize + 1),
        Scalar::Int(_) => Ok(0),
        _ => Err(Failure::kind("places must be integers")),
    }
}

fn diagonals(args: &mut Args) -> Result<Value, Failure> {
    let given = args.need(0, "diagonals")?;
    let (offsets, diagonals) = match args.take(1, "offsets") {
        None => (vec![0], vec![given.tensor()?]),
        Some(offset @ Value::Number(_)) => (vec![offset.integer()?], vec![given.tensor()?]),
        Some(offsets) => (offsets.integers()?, Args::parts(given)?),
    };
    if offsets.len() != diagonals.len() {
        let text = format!("{} diagonals and {} offsets", diagonals.len(), offsets.len());
        return Err(Failure::value(text));
    }
    let shape = match args.take(2, "shape") {
        None | Some(Value::None) => {
            let beside = offsets.first().map_or(0, |offset| offset.unsigned_abs() as usize);
            let size = diagonals.first().map_or(Ok(0), Tensor::size)? as usize + beside;
            [size, size]
        }
        Some(shape) => pair(&shape)?,
    };
    let pairs: Vec<(i64, &Tensor)> = offsets.into_iter().zip(&diagonals).collect();
    made(Sparse::diags(&pairs, shape, args.tiles())?)
}
