//! Factorizations of matrices that lie in many tiles, as stages over the tiles.
//!
//! - A Cholesky factor is made block column by block column, each from all those to its left (left-looking):
//!   a tile is written once, however many there are.
//! - An LU factorization goes by blocks of columns, each of which one task holds as a whole (right-looking):
//!   so pivots are chosen among all rows, as LAPACK does. Right sides are blocks of columns too.
//! - Triangles are solved block row by block row, each from all that are solved.
//!
//! The tasks of each of these start in the order of the stages: block columns one after the other, so that
//! the tasks of a block column, which do not wait for each other, run beside each other.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::plan::{Along, AxisMap, Kernel, Operand, Product, StageOutput, TensorId, TensorSpec};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::linear::Linear;
use tharsis_kernels::linear::tile::{Tile, determinant_dtypes};
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{BinaryOp, DType, Scalar, UnaryOp};

/// The tensors that an LU factorization leaves.
struct Factored {
    /// Factors of each block of columns, packed.
    packed: Vec<TensorId>,
    /// Exchanges of rows (k, 1).
    swaps: TensorId,
    /// The upper factor (k, n).
    upper: TensorId,
    /// The diagonal of the upper factor (k, 1).
    pivots: TensorId,
    /// The right sides (k, w) after their changes so far.
    right: Option<TensorId>,
}

/// The results of a function of a matrix (m, n) and its right side, by tiles; `None` if it is not one that
/// goes by tiles, or if the matrix is no larger than a tile.
pub(super) fn lower_by_tiles(
    lowering: &mut Lowering<'_>,
    function: Linear,
    inputs: &[ExprId],
) -> Result<Option<Vec<TensorId>>, Error> {
    let &[m, n] = lowering.expr(inputs[0]).shape.as_slice() else { return Ok(None) };
    let goes = matches!(
        function,
        Linear::Cholesky
            | Linear::Determinant
            | Linear::Inverse
            | Linear::Lu
            | Linear::Solve
            | Linear::SolveTriangular { .. }
    );
    let is_empty = inputs.iter().any(|&input| lowering.expr(input).shape.contains(&0));
    if !goes || is_empty {
        return Ok(None);
    }
    let Some(side) = side_of_tiles(lowering, inputs[0], m.max(n)) else { return Ok(None) };
    let x = inputs[0];
    let first = lowering.stage_count();
    let made = match function {
        Linear::Cholesky => vec![cholesky(lowering, x, n, side)?],
        Linear::Inverse => {
            let identity = identity(lowering, n, lowering.expr(x).dtype);
            vec![solve(lowering, x, identity, side)?]
        }
        Linear::Solve => vec![solve(lowering, x, inputs[1], side)?],
        Linear::SolveTriangular { lower, unit } => {
            let cut = AxisTiling::balanced(n, side);
            vec![substitute(lowering, x, inputs[1], &cut, Triangle { lower, unit })?]
        }
        Linear::Determinant => determinant(lowering, x, n, side)?,
        _ => lu(lowering, x, [m, n], side)?,
    };
    lowering.run_in_order(first);
    Ok(Some(made))
}

/// Rows and columns of a tile; `None` if one task does the whole matrix.
fn side_of_tiles(lowering: &Lowering<'_>, x: ExprId, extent: usize) -> Option<usize> {
    let asked = lowering.preferred(x).into_iter().flatten().map(|axis| axis.longest()).max();
    let asked = asked.filter(|&asked| asked < extent);
    if asked.is_none() && extent < EXTENT_MIN {
        return None;
    }
    let threads = lowering.limits.threads as u64;
    let share = lowering.limits.memory_bytes / (MEMORY_SHARES * threads) / lowering.limits.shrink;
    let elements = share / lowering.expr(x).dtype.size_bytes() as u64;
    let by_memory = ((elements as f64).sqrt() as usize).max(SIDE_MIN);
    let side = match asked {
        Some(asked) => asked,
        None => (extent / (TILES_PER_THREAD * threads as usize)).clamp(SIDE_MIN, SIDE_MAX).min(by_memory),
    };
    Some(side.max(extent.div_ceil(TILES_MAX)))
}

fn spec(dtype: DType, rows: &AxisTiling, columns: &AxisTiling) -> TensorSpec {
    TensorSpec { dtype, tiling: grid(rows, columns) }
}

fn grid(rows: &AxisTiling, columns: &AxisTiling) -> Tiling {
    Tiling { axes: vec![rows.clone(), columns.clone()] }
}

/// Pieces of a cut from piece `first` on.
fn behind(cut: &AxisTiling, first: usize) -> AxisTiling {
    let lengths: Vec<usize> = (first..cut.count()).map(|piece| cut.piece(piece).1).collect();
    AxisTiling::from_lengths(&lengths)
}

/// The part of a matrix from these rows and columns on.
fn part(lowering: &mut Lowering<'_>, x: ExprId, [row, column]: [usize; 2], shape: [usize; 2]) -> ExprId {
    let map = |start, axis| AxisMap { start, step: 1, axis: Some(axis) };
    let view = View { shape: shape.to_vec(), axes: vec![map(row, 0), map(column, 1)] };
    lowering.view(x, &view)
}

fn transposed(lowering: &mut Lowering<'_>, x: ExprId) -> ExprId {
    let view = View::permute(&lowering.expr(x).shape.clone(), &[1, 0]);
    lowering.view(x, &view)
}

fn outputs(made: impl IntoIterator<Item = (TensorId, [usize; 2])>) -> Vec<StageOutput> {
    made.into_iter().map(|(tensor, offset)| StageOutput { tensor, offset: offset.to_vec() }).collect()
}

fn tile(
    lowering: &mut Lowering<'_>,
    tile: Tile,
    over: Tiling,
    operands: Vec<Operand>,
    made: Vec<StageOutput>,
) {
    lowering.add_kernel(Kernel::Whole(ChunkFunction::Tile(tile)), over, operands, made);
}

/// The whole of an expression, whatever part of the grid a task does.
fn whole(lowering: &Lowering<'_>, x: ExprId) -> Result<Operand, Error> {
    let along = lowering.expr(x).shape.iter().enumerate();
    lowering.operand_along(x, along.map(|(axis, &extent)| (axis, Along::Whole(extent))).collect())
}

/// Fills a part of a tensor with zeros.
fn fill_zeros(
    lowering: &mut Lowering<'_>,
    tensor: TensorId,
    over: Tiling,
    offset: [usize; 2],
) -> Result<(), Error> {
    let dtype = lowering.tensor(tensor).dtype;
    let zero = lowering.add(&over.shape(), dtype, ExprKind::Const(Scalar::Int(0)));
    lowering.fill_tensor(zero, over, tensor, offset.to_vec())
}

/// `x` less the product of two matrices of stored tiles, `depth` being the cut of the axis that is summed
/// over.
fn less_product(
    lowering: &mut Lowering<'_>,
    x: ExprId,
    [left, right]: [ExprId; 2],
    over: &Tiling,
    depth: AxisTiling,
) -> Result<ExprId, Error> {
    let Some(dtype) = (!depth.is_empty()).then(|| lowering.expr(x).dtype) else { return Ok(x) };
    let operands = vec![lowering.operand(left)?, lowering.operand(right)?];
    let product = Product { depth, split: false, gram: false, dtype };
    let tensor = lowering.add_stage_tensor(Kernel::Product(product), over.clone(), operands, dtype);
    let product = lowering.load(tensor);
    Ok(lowering.add(&over.shape(), dtype, ExprKind::Binary(BinaryOp::Subtract, x, product)))
}

fn cholesky(lowering: &mut Lowering<'_>, x: ExprId, n: usize, side: usize) -> Result<TensorId, Error> {
    let dtype = lowering.expr(x).dtype;
    let cut = AxisTiling::balanced(n, side);
    let factor = lowering.add_tensor(spec(dtype, &cut, &cut));
    let stored = lowering.load(factor);
    for block in 0..cut.count() {
        let (start, width) = cut.piece(block);
        let column = AxisTiling::whole(width);
        let rows = behind(&cut, block);
        let own = part(lowering, x, [start, start], [n - start, width]);
        let left = part(lowering, stored, [start, 0], [n - start, start]);
        let above = part(lowering, stored, [start, 0], [width, start]);
        let mut right = transposed(lowering, above);
        if dtype.is_complex() {
            let shape = lowering.expr(right).shape.clone();
            right = lowering.add(&shape, dtype, ExprKind::Unary(UnaryOp::Conjugate, right));
        }
        let depth = AxisTiling::from_lengths(&lengths_before(&cut, block));
        let left_over = less_product(lowering, own, [left, right], &grid(&rows, &column), depth)?;
        let corner = part(lowering, left_over, [0, 0], [width, width]);
        let function = ChunkFunction::Linear { function: Linear::Cholesky, parts: vec![0] };
        let operands = vec![lowering.operand(corner)?];
        let made = outputs([(factor, [block, block])]);
        lowering.add_kernel(Kernel::Whole(function), grid(&column, &column), operands, made);
        if block + 1 < cut.count() {
            let below = part(lowering, left_over, [width, 0], [n - start - width, width]);
            let triangle = part(lowering, stored, [start, start], [width, width]);
            let operands = vec![lowering.operand(below)?, whole(lowering, triangle)?];
            let over = grid(&behind(&cut, block + 1), &column);
            tile(lowering, Tile::SolveRight, over, operands, outputs([(factor, [block + 1, block])]));
        }
        if 0 < block {
            let over = grid(&AxisTiling::from_lengths(&lengths_before(&cut, block)), &column);
            fill_zeros(lowering, factor, over, [0, block])?;
        }
    }
    Ok(factor)
}

fn lengths_before(cut: &AxisTiling, block: usize) -> Vec<usize> {
    (0..block).map(|piece| cut.piece(piece).1).collect()
}

/// An LU factorization under way.
struct Factoring {
    dtype: DType,
    rows: usize,
    /// The cut of the columns in front, each of which gets pivots.
    panels: AxisTiling,
    columns: AxisTiling,
    done: Factored,
}

/// A right side on its way through a factorization: what is left of it, what is solved, and the cut of its
/// columns.
struct RightSide {
    left: ExprId,
    solved: TensorId,
    cut: AxisTiling,
}

/// The factors of a matrix (m, n), k = min(m, n); a right side (m, w) becomes the solution of the lower
/// triangle.
fn factor(
    lowering: &mut Lowering<'_>,
    x: ExprId,
    right: Option<ExprId>,
    side: usize,
) -> Result<Factored, Error> {
    let dtype = lowering.expr(x).dtype;
    let (m, n) = (lowering.expr(x).shape[0], lowering.expr(x).shape[1]);
    let (panels, wide) = (AxisTiling::balanced(m.min(n), side), AxisTiling::balanced(n - m.min(n), side));
    // Columns behind the last panel are blocks too.
    let lengths = [lengths(&panels), lengths(&wide)].concat();
    let columns = AxisTiling::from_lengths(&lengths);
    let one = AxisTiling::whole(1);
    let mut right = right.map(|left| {
        let cut = AxisTiling::balanced(lowering.expr(left).shape[1], side);
        RightSide { left, solved: lowering.add_tensor(spec(dtype, &panels, &cut)), cut }
    });
    let done = Factored {
        packed: Vec::with_capacity(panels.count()),
        swaps: lowering.add_tensor(spec(DType::I64, &panels, &one)),
        upper: lowering.add_tensor(spec(dtype, &panels, &columns)),
        pivots: lowering.add_tensor(spec(dtype, &panels, &one)),
        right: right.as_ref().map(|right| right.solved),
    };
    let mut factoring = Factoring { dtype, rows: m, panels, columns, done };
    factoring.panel(lowering, x, 0)?;
    let mut left = Some(x);
    for block in 0..factoring.panels.count() {
        left = match left {
            Some(left) => factoring.columns_beside(lowering, left, block)?,
            None => None,
        };
        if let Some(right) = &mut right {
            factoring.right_side(lowering, right, block)?;
        }
        if block + 1 < factoring.panels.count() {
            let (below, column) = (behind(&factoring.panels, block + 1), factoring.panels.piece(block).1);
            let over = grid(&below, &AxisTiling::whole(column));
            fill_zeros(lowering, factoring.done.upper, over, [block + 1, block])?;
        }
    }
    Ok(factoring.done)
}

fn lengths(cut: &AxisTiling) -> Vec<usize> {
    (0..cut.count()).map(|piece| cut.piece(piece).1).filter(|&length| 0 < length).collect()
}

impl Factoring {
    /// Factors the first columns of what is left.
    fn panel(&mut self, lowering: &mut Lowering<'_>, left: ExprId, block: usize) -> Result<(), Error> {
        let (start, width) = self.panels.piece(block);
        let (rows, column) = (AxisTiling::whole(self.rows - start), AxisTiling::whole(width));
        let packed = lowering.add_tensor(spec(self.dtype, &rows, &column));
        let own = part(lowering, left, [0, 0], [self.rows - start, width]);
        let Factored { swaps, upper, pivots, .. } = self.done;
        let at = [block, 0];
        let made = outputs([(packed, [0, 0]), (swaps, at), (upper, [block, block]), (pivots, at)]);
        let operands = vec![lowering.operand(own)?];
        tile(lowering, Tile::Panel { start }, grid(&rows, &column), operands, made);
        self.done.packed.push(packed);
        Ok(())
    }

    /// Applies a panel to all columns behind it, and factors the next one; what is left of them, if there is
    /// something.
    fn columns_beside(
        &mut self,
        lowering: &mut Lowering<'_>,
        left: ExprId,
        block: usize,
    ) -> Result<Option<ExprId>, Error> {
        let (start, width) = self.panels.piece(block);
        let (below, count) = (self.rows - start - width, self.columns.count());
        if block + 1 == count {
            return Ok(None);
        }
        let cut = behind(&self.columns, block + 1);
        let rest = (0 < below).then(|| {
            let tensor = lowering.add_tensor(spec(self.dtype, &AxisTiling::whole(below), &cut));
            (tensor, lowering.load(tensor))
        });
        // The next block first: its panel is factored while the others are updated.
        let next = AxisTiling::whole(cut.piece(0).1);
        let made = |first: usize| {
            let upper = Some((self.done.upper, [block, block + 1 + first]));
            let rest = rest.map(|(tensor, _)| (tensor, [0, first]));
            upper.into_iter().chain(rest).collect::<Vec<_>>()
        };
        let own = part(lowering, left, [0, width], [self.rows - start, next.len()]);
        self.update(lowering, own, &next, block, made(0))?;
        let others = (block + 2 < count).then(|| (behind(&cut, 1), made(1)));
        if let Some((_, rest)) = rest
            && block + 1 < self.panels.count()
        {
            self.panel(lowering, rest, block + 1)?;
        }
        if let Some((others, made)) = others {
            let own = part(lowering, left, [0, width + next.len()], [self.rows - start, others.len()]);
            self.update(lowering, own, &others, block, made)?;
        }
        Ok(rest.map(|(_, rest)| rest))
    }

    fn right_side(
        &self,
        lowering: &mut Lowering<'_>,
        right: &mut RightSide,
        block: usize,
    ) -> Result<(), Error> {
        let (start, width) = self.panels.piece(block);
        let mut made = vec![(right.solved, [block, 0])];
        let below = self.rows - start - width;
        let own = right.left;
        if 0 < below {
            let rest = lowering.add_tensor(spec(self.dtype, &AxisTiling::whole(below), &right.cut));
            made.push((rest, [0, 0]));
            right.left = lowering.load(rest);
        }
        self.update(lowering, own, &right.cut.clone(), block, made)
    }

    /// Applies a panel to blocks of columns.
    fn update(
        &self,
        lowering: &mut Lowering<'_>,
        own: ExprId,
        columns: &AxisTiling,
        block: usize,
        made: Vec<(TensorId, [usize; 2])>,
    ) -> Result<(), Error> {
        let (start, width) = self.panels.piece(block);
        let factored = lowering.load(self.done.packed[block]);
        let swaps = lowering.load(self.done.swaps);
        let swaps = part(lowering, swaps, [start, 0], [width, 1]);
        let operands = vec![lowering.operand(own)?, whole(lowering, factored)?, whole(lowering, swaps)?];
        let over = grid(&AxisTiling::whole(self.rows - start), columns);
        tile(lowering, Tile::Update { start }, over, operands, outputs(made));
        Ok(())
    }
}

/// The order of rows, and the factors of the rows in this order.
fn lu(
    lowering: &mut Lowering<'_>,
    x: ExprId,
    [m, n]: [usize; 2],
    side: usize,
) -> Result<Vec<TensorId>, Error> {
    let dtype = lowering.expr(x).dtype;
    let factored = factor(lowering, x, None, side)?;
    let (k, one) = (m.min(n), AxisTiling::whole(1));
    let panels = AxisTiling::balanced(k, side);
    let swaps = lowering.load(factored.swaps);
    let order = lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling: Tiling::whole(&[m]) });
    let operands = vec![lowering.operand(swaps)?];
    let over = grid(&AxisTiling::whole(k), &one);
    tile(lowering, Tile::Order { rows: m }, over, operands, outputs([(order, [0, 0])]));
    let lower = lowering.add_tensor(spec(dtype, &AxisTiling::whole(m), &panels));
    for (block, &packed) in factored.packed.iter().enumerate() {
        let (start, width) = panels.piece(block);
        let packed = lowering.load(packed);
        let mut operands = vec![lowering.operand(packed)?];
        let behind = k - start - width;
        if 0 < behind {
            let later = part(lowering, swaps, [start + width, 0], [behind, 1]);
            operands.push(whole(lowering, later)?);
        }
        let over = grid(&AxisTiling::whole(m - start), &AxisTiling::whole(width));
        tile(lowering, Tile::Lower { rows: m }, over, operands, outputs([(lower, [0, block])]));
    }
    Ok(vec![order, lower, factored.upper])
}

/// The determinant, its sign and the logarithm of its absolute value.
fn determinant(
    lowering: &mut Lowering<'_>,
    x: ExprId,
    n: usize,
    side: usize,
) -> Result<Vec<TensorId>, Error> {
    let dtypes = determinant_dtypes(lowering.expr(x).dtype);
    let factored = factor(lowering, x, None, side)?;
    let (pivots, swaps) = (lowering.load(factored.pivots), lowering.load(factored.swaps));
    let operands = vec![lowering.operand(pivots)?, lowering.operand(swaps)?];
    let made = dtypes.map(|dtype| lowering.add_tensor(TensorSpec { dtype, tiling: Tiling::whole(&[]) }));
    let over = grid(&AxisTiling::whole(n), &AxisTiling::whole(1));
    tile(lowering, Tile::Determinant, over, operands, outputs(made.map(|tensor| (tensor, [0, 0]))));
    Ok(made.to_vec())
}

fn solve(lowering: &mut Lowering<'_>, x: ExprId, right: ExprId, side: usize) -> Result<TensorId, Error> {
    let n = lowering.expr(x).shape[0];
    let factored = factor(lowering, x, Some(right), side)?;
    let Some(solved) = factored.right else {
        return Err(Error::Internal("a right side was lost".to_owned()));
    };
    let (upper, solved) = (lowering.load(factored.upper), lowering.load(solved));
    let cut = AxisTiling::balanced(n, side);
    substitute(lowering, upper, solved, &cut, Triangle { lower: false, unit: false })
}

/// A triangle of a matrix.
#[derive(Clone, Copy)]
struct Triangle {
    lower: bool,
    /// Whether its diagonal is taken to be of ones.
    unit: bool,
}

/// The solution y of a triangle a y = right, block row by block row.
fn substitute(
    lowering: &mut Lowering<'_>,
    a: ExprId,
    right: ExprId,
    cut: &AxisTiling,
    Triangle { lower, unit }: Triangle,
) -> Result<TensorId, Error> {
    let (dtype, width) = (lowering.expr(right).dtype, lowering.expr(right).shape[1]);
    let columns = AxisTiling::balanced(width, cut.longest().max(RIGHT_COLUMNS_MIN));
    let solution = lowering.add_tensor(spec(dtype, cut, &columns));
    let stored = lowering.load(solution);
    for step in 0..cut.count() {
        let block = if lower { step } else { cut.count() - 1 - step };
        let (start, rows) = cut.piece(block);
        let (first, known) = if lower { (0, start) } else { (start + rows, cut.len() - start - rows) };
        let pieces = if lower { 0..block } else { block + 1..cut.count() };
        let depth = AxisTiling::from_lengths(&pieces.map(|piece| cut.piece(piece).1).collect::<Vec<_>>());
        let over = grid(&AxisTiling::whole(rows), &columns);
        let own = part(lowering, right, [start, 0], [rows, width]);
        let beside = part(lowering, a, [start, first], [rows, known]);
        let solved = part(lowering, stored, [first, 0], [known, width]);
        let left = less_product(lowering, own, [beside, solved], &over, depth)?;
        let corner = part(lowering, a, [start, start], [rows, rows]);
        let operands = vec![whole(lowering, corner)?, lowering.operand(left)?];
        let function = Linear::SolveTriangular { lower, unit };
        let function = ChunkFunction::Linear { function, parts: vec![0] };
        lowering.add_kernel(Kernel::Whole(function), over, operands, outputs([(solution, [block, 0])]));
    }
    Ok(solution)
}

/// Ones on the diagonal, zeros elsewhere.
fn identity(lowering: &mut Lowering<'_>, n: usize, dtype: DType) -> ExprId {
    let along = |lowering: &mut Lowering<'_>, axis| {
        let line = lowering.index(&[n], IndexMap::Position);
        let view = View { shape: vec![n, n], axes: vec![AxisMap::identity(axis)] };
        lowering.view(line, &view)
    };
    let (row, column) = (along(lowering, 0), along(lowering, 1));
    let equal = lowering.add(&[n, n], DType::Bool, ExprKind::Binary(BinaryOp::Equal, row, column));
    lowering.cast(equal, dtype)
}

/// A smaller matrix is factored in one task, unless its chunks are smaller.
const EXTENT_MIN: usize = 1024;
/// Tiles along an axis for each thread.
const TILES_PER_THREAD: usize = 8;
const SIDE_MIN: usize = 128;
const SIDE_MAX: usize = 1024;
/// Tiles along an axis at most: the plan grows with it.
const TILES_MAX: usize = 128;
/// A task does at least so many columns of right sides.
const RIGHT_COLUMNS_MIN: usize = 64;
const MEMORY_SHARES: u64 = 24;
