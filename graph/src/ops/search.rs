//! Searching in a sorted tensor.

use crate::error::Error;
use crate::lower::{ExprId, Lowering, View};
use crate::node::{Meta, Operator};
use crate::plan::{Along, AxisMap, Kernel, StageOutput, TensorSpec};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::lines::Lines;
use tharsis_kernels::{DType, Fold};

/// For each element of the second tensor (k,), the number of elements of the first one (n,), which is sorted,
/// that come before it: (k,), int64. Both have one dtype.
#[derive(Clone, Copy, Debug)]
pub struct SearchSorted {
    /// Whether elements equal to the one that is searched come before it.
    pub right: bool,
}

impl Operator for SearchSorted {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        if inputs.iter().any(|meta| meta.shape.len() != 1) || inputs[0].dtype != inputs[1].dtype {
            return Err(Error::Internal("searchsorted of other than two lines of one dtype".to_owned()));
        }
        Ok(Meta { shape: inputs[1].shape.clone(), dtype: DType::I64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    /// Each chunk of the sorted tensor tells how many of its elements come before, and these are summed.
    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let sorted = lowering.stored(inputs[0])?;
        let cuts = [sorted, inputs[1]].map(|expr| lowering.tile(&[expr], true).axes[0].clone());
        let grid = Tiling { axes: cuts.to_vec() };
        let mut operands = Vec::with_capacity(2);
        for (axis, expr) in [sorted, inputs[1]].into_iter().enumerate() {
            let mut shape = vec![lowering.expr(expr).shape[0]; 2];
            shape[1 - axis] = grid.axes[1 - axis].count();
            let wide = lowering.view(expr, &View { shape, axes: vec![AxisMap::identity(axis)] });
            operands.push(lowering.operand_along(wide, vec![(1 - axis, Along::Chunk)])?);
        }
        let mut tiling = grid.clone();
        tiling.axes[0] = AxisTiling::Even { len: grid.axes[0].count(), chunk: 1 };
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling });
        let kernel = Kernel::Whole(ChunkFunction::Lines(Lines::Search { right: self.right }));
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset: vec![0, 0] }]);
        let counts = lowering.load(tensor);
        let sums = lowering.fold(Fold::Sum, &[counts], &[0])?;
        let sum = lowering.load(sums[0]);
        let shape = lowering.expr(sum).shape.clone();
        Ok(lowering.view(sum, &View::squeeze(&shape, &[0])))
    }
}
