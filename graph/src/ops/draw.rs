//! Random numbers of distributions that take several random numbers for each.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Kernel, StageOutput, TensorSpec};
use crate::tiling::AxisTiling;
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::draw::Draw;

/// A draw for each element of random bits, of uint64: any shape to the same, with one more axis if rows are
/// drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The distribution.
    pub draw: Draw,
}

impl Operator for Drawn {
    fn name(&self) -> &'static str {
        "draw"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        if inputs[0].dtype != DType::U64 {
            return Err(Error::Internal("random bits are uint64".to_owned()));
        }
        let mut shape = inputs[0].shape.clone();
        shape.extend(self.draw.row());
        Ok(Meta { shape, dtype: self.draw.dtype() })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let grid = lowering.tile(&[inputs[0]], true);
        let mut tiling = grid.clone();
        tiling.axes.extend(self.draw.row().map(AxisTiling::whole));
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
        let operands = vec![lowering.operand(inputs[0])?];
        let kernel = Kernel::Whole(ChunkFunction::Draw(self.draw.clone()));
        let offset = vec![0; grid.axes.len()];
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        Ok(lowering.load(tensor))
    }
}
