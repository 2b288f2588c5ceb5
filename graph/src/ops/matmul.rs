//! Matrix products.

use crate::error::Error;
use crate::lower::{ExprId, Lowering, View};
use crate::node::{Meta, Operator};
use crate::plan::{AxisMap, Kernel, Product, StageOutput, TensorSpec};
use crate::shape::{agree, broadcast, element_count};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::{DType, Fold, promote};

/// (.., m, k) x (.., k, n) to (.., m, n); leading axes are broadcast.
#[derive(Clone, Copy, Debug)]
pub struct MatMul;

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let (a, b) = (&inputs[0].shape, &inputs[1].shape);
        let refuse = |reason: &str| {
            let shapes = vec![a.clone(), b.clone()];
            Err(Error::Shape { function: "matmul", shapes, reason: reason.to_owned() })
        };
        let ([a_batch @ .., m, a_depth], [b_batch @ .., b_depth, n]) = (a.as_slice(), b.as_slice()) else {
            return refuse("both need two axes");
        };
        if !agree(*a_depth, *b_depth) {
            return refuse(&format!("the inner extents {a_depth} and {b_depth} differ"));
        }
        let mut shape = broadcast("matmul", &[a_batch, b_batch])?;
        shape.extend([*m, *n]);
        Ok(Meta { shape, dtype: promote(inputs[0].dtype, inputs[1].dtype) })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let dtype = out.dtype.compute();
        let rank = out.shape.len();
        let depth = lowering.expr(inputs[0]).shape.last().copied().unwrap_or(1);
        let mut factors = [0; 2];
        for (side, factor) in factors.iter_mut().enumerate() {
            let wide = lowering.cast(inputs[side], dtype);
            let mut shape = out.shape.clone();
            shape[rank - 1 - side] = depth;
            let view = View::broadcast(&lowering.expr(wide).shape, &shape);
            *factor = lowering.view(wide, &view);
        }
        let [left, right] = factors;
        let shape = &out.shape;
        if depth == 0 {
            let zero = tharsis_kernels::Scalar::Int(0);
            return Ok(lowering.add(shape, out.dtype, crate::lower::ExprKind::Const(zero)));
        }
        let value = product(lowering, left, right, shape, depth, dtype)?;
        Ok(lowering.cast(value, out.dtype))
    }
}

fn product(
    lowering: &mut Lowering<'_>,
    left: ExprId,
    right: ExprId,
    shape: &[usize],
    depth: usize,
    dtype: DType,
) -> Result<ExprId, Error> {
    let rank = shape.len();
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    let transposed = View::permute(&lowering.expr(right).shape.clone(), &order);
    let cut = Cut::choose(lowering, shape, depth, dtype);
    // A task multiplies one operand with its own transpose, so it must make the whole result.
    let whole = cut.grid.axes[rank - 2..].iter().all(|axis| axis.count() <= 1);
    let is_gram = lowering.view(right, &transposed) == left;
    if is_gram && rank == 2 && !whole && !cut.split {
        return gram_by_tiles(lowering, [left, right], &cut, dtype);
    }
    let gram = whole && is_gram && shape[rank - 1] <= GRAM_COLUMNS_MAX;
    let operands = if gram {
        vec![lowering.operand(right)?]
    } else {
        vec![lowering.operand(left)?, lowering.operand(right)?]
    };
    let kernel = |split: bool| Kernel::Product(Product { depth: cut.depth.clone(), split, gram, dtype });
    if !cut.split {
        let tensor = lowering.add_stage_tensor(kernel(false), cut.grid, operands, dtype);
        return Ok(lowering.load(tensor));
    }
    let mut grid = cut.grid;
    grid.axes.insert(0, AxisTiling::Even { len: cut.depth.count(), chunk: 1 });
    let parts = lowering.add_stage_tensor(kernel(true), grid, operands, dtype);
    let parts = lowering.load(parts);
    let accumulated = match dtype {
        DType::F32 => DType::F64,
        DType::C64 => DType::C128,
        other => other,
    };
    let wide = lowering.cast(parts, accumulated);
    let sum = lowering.fold(Fold::Sum, &[wide], &[0])?;
    let sum = lowering.load(sum[0]);
    let squeezed = View::squeeze(&lowering.expr(sum).shape.clone(), &[0]);
    let value = lowering.view(sum, &squeezed);
    Ok(lowering.cast(value, dtype))
}

/// The product of a matrix (n, k) and its own transpose, half of which is that of the other half: tiles below
/// the diagonal are multiplied, those above it are their transposes.
fn gram_by_tiles(
    lowering: &mut Lowering<'_>,
    [left, right]: [ExprId; 2],
    cut: &Cut,
    dtype: DType,
) -> Result<ExprId, Error> {
    let [n, depth] = lowering.expr(left).shape[..] else {
        return Err(Error::Internal("a product of other than matrices".to_owned()));
    };
    let tiles = AxisTiling::balanced(n, cut.grid.axes.iter().map(AxisTiling::longest).min().unwrap_or(n));
    let grid = |rows: &AxisTiling, columns: &AxisTiling| Tiling { axes: vec![rows.clone(), columns.clone()] };
    let made = lowering.add_tensor(TensorSpec { dtype, tiling: grid(&tiles, &tiles) });
    let stored = lowering.load(made);
    let kernel = |gram| Kernel::Product(Product { depth: cut.depth.clone(), split: false, gram, dtype });
    for block in 0..tiles.count() {
        let (start, width) = tiles.piece(block);
        let (behind, column) = (start + width, AxisTiling::whole(width));
        let beside = part(lowering, right, [0, start], [depth, width]);
        let operands = vec![lowering.operand(beside)?];
        let output = |at: [usize; 2]| vec![StageOutput { tensor: made, offset: at.to_vec() }];
        lowering.add_kernel(kernel(true), grid(&column, &column), operands, output([block, block]));
        if behind == n {
            break;
        }
        let lengths: Vec<usize> = (block + 1..tiles.count()).map(|piece| tiles.piece(piece).1).collect();
        let rest = AxisTiling::from_lengths(&lengths);
        let below = part(lowering, left, [behind, 0], [n - behind, depth]);
        let operands = vec![lowering.operand(below)?, lowering.operand(beside)?];
        lowering.add_kernel(kernel(false), grid(&rest, &column), operands, output([block + 1, block]));
        let below = part(lowering, stored, [behind, start], [n - behind, width]);
        let above = lowering.view(below, &View::permute(&[n - behind, width], &[1, 0]));
        lowering.fill_tensor(above, grid(&column, &rest), made, vec![block, block + 1])?;
    }
    Ok(stored)
}

/// The part of a matrix from this row and column on.
fn part(lowering: &mut Lowering<'_>, x: ExprId, [row, column]: [usize; 2], shape: [usize; 2]) -> ExprId {
    let map = |start, axis| AxisMap { start, step: 1, axis: Some(axis) };
    let view = View { shape: shape.to_vec(), axes: vec![map(row, 0), map(column, 1)] };
    lowering.view(x, &view)
}

/// Cut of a product into tasks.
struct Cut {
    grid: Tiling,
    depth: AxisTiling,
    split: bool,
}

impl Cut {
    /// Square tiles, three of which fit a thread's share of the memory; the depth is split over tasks if the
    /// tiles of the result alone would not keep all threads busy.
    fn choose(lowering: &Lowering<'_>, shape: &[usize], depth: usize, dtype: DType) -> Cut {
        let rank = shape.len();
        let threads = lowering.limits.threads as u64;
        let share = lowering.limits.memory_bytes / (MEMORY_SHARES * threads) / lowering.limits.shrink;
        let tile_elements = (share / dtype.size_bytes() as u64).clamp(TILE_ELEMENTS_MIN, TILE_ELEMENTS_MAX);
        let (m, n) = (shape[rank - 2].max(1), shape[rank - 1].max(1));
        let square = (tile_elements as f64).sqrt() as usize;
        let (mut rows, columns) = (m.min(square), n.min(square));
        let mut deep = depth.min(square);
        // Thin matrices: the long axis is cut so that a tile fits a cache.
        let thin_elements = (tile_elements as usize).min(THIN_ELEMENTS);
        if n * depth <= THIN_ELEMENTS {
            rows = m.min((thin_elements / n.max(depth)).max(1));
        }
        if m * n <= THIN_ELEMENTS {
            deep = depth.min((thin_elements / m.max(n)).max(1));
        }
        let batch: Vec<AxisTiling> =
            shape[..rank - 2].iter().map(|&len| AxisTiling::Even { len, chunk: 1 }).collect();
        let tasks = element_count(&shape[..rank - 2]) * (m.div_ceil(rows) * n.div_ceil(columns)) as u64;
        let pieces = depth.div_ceil(deep) as u64;
        // The sum of a small result is cut in the same way on any number of threads, and has the same bits.
        let is_small = m * n <= THIN_ELEMENTS && tasks == 1;
        let split = if is_small { 1 < pieces } else { tasks < 2 * threads && 2 * threads <= pieces };
        if tasks < 4 * threads && !split && rows == m && 256 <= m {
            rows = m.div_ceil(4 * threads as usize).max(64).min(m);
        }
        let mut axes = batch;
        axes.extend([
            AxisTiling::balanced(shape[rank - 2], rows),
            AxisTiling::balanced(shape[rank - 1], columns),
        ]);
        Cut { grid: Tiling { axes }, depth: AxisTiling::balanced(depth, deep), split }
    }
}

const MEMORY_SHARES: u64 = 12;
const TILE_ELEMENTS_MIN: u64 = 128 * 128;
const TILE_ELEMENTS_MAX: u64 = 2048 * 2048;
/// Elements of a tile of a thin matrix: as many as a second-level cache holds.
const THIN_ELEMENTS: usize = 1 << 17;
const GRAM_COLUMNS_MAX: usize = 1024;
