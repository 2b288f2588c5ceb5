//! Histograms: elements counted by bins, or their weights summed.

use crate::error::Error;
use crate::lower::{ExprId, Lowering, View};
use crate::node::{Meta, Operator};
use crate::plan::{Along, AxisMap, Kernel, Operand, StageOutput, TensorSpec};
use crate::shape::{element_count, require_known};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::tally::Tally;
use tharsis_kernels::{DType, Fold};

/// The number of elements in each bin, or the sum of their weights: (bins,). The inputs are the arguments of
/// [`Tally::run`]: elements and weights have one shape, edges and numbers of bins one axis.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Rule by which elements belong to bins.
    pub tally: Tally,
}

/// Positions of the arguments.
struct Roles {
    elements: Vec<usize>,
    bins: Vec<usize>,
}

impl Histogram {
    fn roles(&self) -> Roles {
        match &self.tally {
            Tally::Between { even, .. } => {
                let axes = even.len();
                Roles { elements: (0..axes).collect(), bins: (axes..2 * axes).collect() }
            }
            Tally::Numbers { .. } => Roles { elements: vec![1], bins: vec![0] },
        }
    }

    /// The cut of the bins. Numbered bins are cut, so that a partial result stays small: each piece of them
    /// reads all elements.
    fn cut(&self, bins: usize) -> AxisTiling {
        match self.tally {
            Tally::Between { .. } => AxisTiling::whole(bins),
            Tally::Numbers { .. } => AxisTiling::balanced(bins, BINS_PER_TASK),
        }
    }
}

impl Operator for Histogram {
    fn name(&self) -> &'static str {
        match self.tally {
            Tally::Between { .. } => "histogram",
            Tally::Numbers { .. } => "bincount",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Roles { elements, bins } = self.roles();
        inputs.iter().try_for_each(|input| require_known(self.name(), &input.shape))?;
        let shape = &inputs[elements[0]].shape;
        let weights = self.tally.is_weighted().then(|| inputs[inputs.len() - 1]);
        let alike = elements.iter().map(|&at| inputs[at]).chain(weights).all(|meta| meta.shape == *shape);
        if !alike || bins.iter().any(|&at| inputs[at].shape.len() != 1) {
            return Err(Error::Internal("elements and weights of several shapes".to_owned()));
        }
        let count = |at: &usize| match self.tally {
            Tally::Between { .. } => inputs[*at].shape[0].saturating_sub(1),
            Tally::Numbers { .. } => inputs[*at].shape[0],
        };
        let shape = vec![bins.iter().map(count).fold(1, usize::saturating_mul)];
        Ok(Meta { shape, dtype: weights.map_or(DType::I64, |weights| weights.dtype) })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    /// Each task tallies a chunk of the elements, and the results are summed as a tree.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let Roles { elements, bins } = self.roles();
        let spread: Vec<ExprId> =
            inputs.iter().enumerate().filter(|(at, _)| !bins.contains(at)).map(|(_, &x)| x).collect();
        let mut grid = lowering.tile(&spread, true);
        let (cut, rank) = (self.cut(out.shape[0]), grid.axes.len());
        grid.axes.insert(0, cut);
        if lowering.expr(inputs[elements[0]]).shape.contains(&0) || element_count(&out.shape) == 0 {
            let zero = crate::lower::ExprKind::Const(tharsis_kernels::Scalar::Int(0));
            return Ok(lowering.add(&out.shape, out.dtype, zero));
        }
        let operands = (0..inputs.len()).map(|at| {
            if bins.contains(&at) {
                self.operand_of_bins(lowering, inputs[at], &grid)
            } else {
                operand_of_elements(lowering, inputs[at], &grid)
            }
        });
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let mut tiling = grid.clone();
        for axis in &mut tiling.axes[1..] {
            *axis = AxisTiling::Even { len: axis.count(), chunk: 1 };
        }
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
        let kernel = Kernel::Whole(ChunkFunction::Tally(self.tally.clone()));
        let offset = vec![0; grid.axes.len()];
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        let partial = lowering.load(tensor);
        let others: Vec<usize> = (1..=rank).collect();
        let sums = lowering.fold(Fold::Sum, &[partial], &others)?;
        let sum = lowering.load(sums[0]);
        let shape = lowering.expr(sum).shape.clone();
        Ok(lowering.view(sum, &View::squeeze(&shape, &others)))
    }
}

impl Histogram {
    /// Edges, of which a task has all, or numbers, of which it has its own.
    fn operand_of_bins(
        &self,
        lowering: &mut Lowering<'_>,
        expr: ExprId,
        grid: &Tiling,
    ) -> Result<Operand, Error> {
        let count = lowering.expr(expr).shape[0];
        let mut shape: Vec<usize> = grid.axes.iter().map(AxisTiling::count).collect();
        shape[0] = count;
        let wide = lowering.view(expr, &View { shape, axes: vec![AxisMap::identity(0)] });
        let mut along: Vec<(usize, Along)> = (1..grid.axes.len()).map(|axis| (axis, Along::Chunk)).collect();
        if matches!(self.tally, Tally::Between { .. }) {
            along.insert(0, (0, Along::Whole(count)));
        }
        lowering.operand_along(wide, along)
    }
}

/// The elements or weights of a task, with an axis of extent 1 in front.
fn operand_of_elements(lowering: &mut Lowering<'_>, expr: ExprId, grid: &Tiling) -> Result<Operand, Error> {
    let own = lowering.expr(expr).shape.clone();
    let shape = [&[grid.axes[0].count()], &own[..]].concat();
    let axes = (1..=own.len()).map(AxisMap::identity).collect();
    let wide = lowering.view(expr, &View { shape, axes });
    lowering.operand_along(wide, vec![(0, Along::Chunk)])
}

/// Numbered bins of one task.
const BINS_PER_TASK: usize = 1 << 20;
