//! Functions along an axis that is short enough for a task to have all of it.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::plan::{Along, AxisMap, Kernel, StageOutput, TensorSpec};
use crate::shape::agree;
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::lines::Lines;
use tharsis_kernels::order::Direction;

/// The most elements along an axis that one task has whole.
pub const LINE_ELEMENTS_MAX: usize = 1 << 20;

/// The elements of each line along an axis in order, or their positions.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SortLines {
    pub axis: usize,
    pub direction: Direction,
    pub positions: bool,
}

impl Operator for SortLines {
    fn name(&self) -> &'static str {
        if self.positions { "argsort" } else { "sort" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let dtype = if self.positions { DType::I64 } else { inputs[0].dtype };
        Ok(Meta { shape: inputs[0].shape.clone(), dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let SortLines { axis, direction, .. } = *self;
        let x = lowering.whole_along(inputs[0], axis);
        let grid = lowering.tile(&[x], true);
        let lines =
            if self.positions { Lines::Order { axis, direction } } else { Lines::Sort { axis, direction } };
        let operands = vec![lowering.operand(x)?];
        let tensor =
            lowering.add_stage_tensor(Kernel::Whole(ChunkFunction::Lines(lines)), grid, operands, out.dtype);
        Ok(lowering.load(tensor))
    }
}

/// The parts of the first tensor along an axis at the positions in the second, which is of int64: (.., n, ..)
/// and (i, j) to (.., i, j, ..).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Take {
    pub axis: usize,
}

impl Operator for Take {
    fn name(&self) -> &'static str {
        "take"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let (x, positions) = (&inputs[0].shape, &inputs[1].shape);
        if positions.is_empty() || inputs[1].dtype != DType::I64 {
            return Err(Error::Internal("positions are int64, of at least one axis".to_owned()));
        }
        let shape = [&x[..self.axis], positions, &x[self.axis + 1..]].concat();
        Ok(Meta { shape, dtype: inputs[0].dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let axis = self.axis;
        let rank = lowering.expr(inputs[1]).shape.len();
        let x = lowering.whole_along(inputs[0], axis);
        let cut = lowering.tile(&[x], true);
        let positions_cut = lowering.tile(&[inputs[1]], true);
        let mut grid = cut.clone();
        grid.axes.splice(axis..axis + 1, positions_cut.axes);
        // Each task reads all of the axis. What is read several times is made once.
        let parts: usize = grid.axes[axis..axis + rank].iter().map(AxisTiling::count).product();
        let x = if parts == 1 { x } else { lowering.stored(x)? };
        let kernel = Kernel::Whole(ChunkFunction::Lines(Lines::Take { axis, rank }));
        let operands =
            vec![lowering.taken_from(x, axis, &grid, rank)?, lowering.operand_on(inputs[1], axis, &grid)?];
        let tensor = lowering.add_stage_tensor(kernel, grid, operands, out.dtype);
        Ok(lowering.load(tensor))
    }
}

/// For each position in the second tensor, of int64, the element there on the same line of the first: (.., n,
/// ..) and (.., k, ..) to (.., k, ..).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TakeAlong {
    pub axis: usize,
}

impl Operator for TakeAlong {
    fn name(&self) -> &'static str {
        "take_along_axis"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        check_alike(self.name(), inputs, self.axis)?;
        Ok(Meta { shape: inputs[1].shape.clone(), dtype: inputs[0].dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let axis = self.axis;
        let x = lowering.whole_along(inputs[0], axis);
        let len = lowering.expr(x).shape[axis];
        let mut grid = lowering.tile(&[x], true);
        grid.axes[axis] = lowering.tile(&[inputs[1]], true).axes[axis].clone();
        let x = if grid.axes[axis].count() == 1 { x } else { lowering.stored(x)? };
        let operands =
            vec![lowering.operand_along(x, vec![(axis, Along::Whole(len))])?, lowering.operand(inputs[1])?];
        let kernel = Kernel::Whole(ChunkFunction::Lines(Lines::TakeAlong { axis }));
        let tensor = lowering.add_stage_tensor(kernel, grid, operands, out.dtype);
        Ok(lowering.load(tensor))
    }
}

/// The first tensor with the parts of the third put along an axis at the positions in the second: of equal
/// positions the last one counts.
#[derive(Clone, Copy, Debug)]
pub struct AlongLine {
    /// The axis.
    pub axis: usize,
    /// Whether each line has positions of its own: (.., n, ..), (.., k, ..), (.., k, ..). Else all have the
    /// same: (.., n, ..), (k,), (.., k, ..).
    pub own: bool,
}

impl Operator for AlongLine {
    fn name(&self) -> &'static str {
        if self.own { "put_along_axis" } else { "setitem" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        check_alike(self.name(), &[inputs[0], inputs[2]], self.axis)?;
        if self.own {
            check_alike(self.name(), &[inputs[0], inputs[1]], self.axis)?;
        }
        if inputs[0].dtype != inputs[2].dtype || inputs[1].dtype != DType::I64 {
            return Err(Error::Internal("values are put in another dtype".to_owned()));
        }
        Ok(inputs[0].clone())
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let axis = self.axis;
        let x = lowering.whole_along(inputs[0], axis);
        let grid = lowering.tile(&[x], true);
        let count = lowering.expr(inputs[2]).shape[axis];
        let whole = vec![(axis, Along::Whole(count))];
        let positions = if self.own {
            lowering.operand_along(inputs[1], whole.clone())?
        } else {
            lowering.positions_whole(inputs[1], axis, &grid)?
        };
        let operands = vec![lowering.operand(x)?, positions, lowering.operand_along(inputs[2], whole)?];
        let lines = if self.own { Lines::PutAlong { axis } } else { Lines::Put { axis } };
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: grid.clone() });
        let offset = vec![0; grid.axes.len()];
        let kernel = Kernel::Whole(ChunkFunction::Lines(lines));
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        Ok(lowering.load(tensor))
    }
}

fn check_alike(function: &'static str, inputs: &[&Meta], axis: usize) -> Result<(), Error> {
    let [a, b] = [&inputs[0].shape, &inputs[1].shape];
    let alike = a.len() == b.len() && (0..a.len()).all(|at| at == axis || agree(a[at], b[at]));
    if alike {
        Ok(())
    } else {
        let reason = format!("all but axis {axis} must match");
        Err(Error::Shape { function, shapes: vec![a.clone(), b.clone()], reason })
    }
}

impl Lowering<'_> {
    /// The expression, with an axis that is not to be cut.
    pub(super) fn whole_along(&mut self, expr: ExprId, axis: usize) -> ExprId {
        let (shape, dtype) = (self.expr(expr).shape.clone(), self.expr(expr).dtype);
        let mut preferences = vec![None; shape.len()];
        preferences[axis] = Some(AxisTiling::whole(shape[axis]));
        self.add(&shape, dtype, ExprKind::Tiled(expr, preferences))
    }

    /// An operand that yields all of an axis, which the grid has `rank` axes in place of; of these the first
    /// one is the axis, and the others have extent 1.
    fn taken_from(
        &mut self,
        x: ExprId,
        axis: usize,
        grid: &Tiling,
        rank: usize,
    ) -> Result<crate::plan::Operand, Error> {
        let from = self.expr(x).shape.clone();
        let mut shape = from.clone();
        let inserted: Vec<usize> = grid.axes[axis + 1..axis + rank].iter().map(AxisTiling::count).collect();
        shape.splice(axis + 1..axis + 1, inserted);
        let place = |at: usize| if at <= axis { at } else { at + rank - 1 };
        let axes = (0..from.len()).map(|at| AxisMap::identity(place(at))).collect();
        let wide = self.view(x, &View { shape, axes });
        let mut along = vec![(axis, Along::Whole(from[axis]))];
        along.extend((axis + 1..axis + rank).map(|other| (other, Along::Chunk)));
        self.operand_along(wide, along)
    }

    /// An operand over the axes of a grid that begin at `axis`: it has extent 1 along the others.
    fn operand_on(
        &mut self,
        expr: ExprId,
        axis: usize,
        grid: &Tiling,
    ) -> Result<crate::plan::Operand, Error> {
        let own = self.expr(expr).shape.clone();
        let mut shape: Vec<usize> = grid.axes.iter().map(AxisTiling::count).collect();
        shape.splice(axis..axis + own.len(), own.iter().copied());
        let axes = (0..own.len()).map(|at| AxisMap::identity(axis + at)).collect();
        let wide = self.view(expr, &View { shape, axes });
        let others = (0..grid.axes.len()).filter(|at| !(axis..axis + own.len()).contains(at));
        self.operand_along(wide, others.map(|at| (at, Along::Chunk)).collect())
    }

    /// An operand that yields all positions along `axis`, with extent 1 along the other axes of a grid.
    fn positions_whole(
        &mut self,
        positions: ExprId,
        axis: usize,
        grid: &Tiling,
    ) -> Result<crate::plan::Operand, Error> {
        let count = self.expr(positions).shape[0];
        let mut shape: Vec<usize> = grid.axes.iter().map(AxisTiling::count).collect();
        shape[axis] = count;
        let wide = self.view(positions, &View { shape, axes: vec![AxisMap::identity(axis)] });
        let along = (0..grid.axes.len())
            .map(|at| if at == axis { (at, Along::Whole(count)) } else { (at, Along::Chunk) });
        self.operand_along(wide, along.collect())
    }
}
