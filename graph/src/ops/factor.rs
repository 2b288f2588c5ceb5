//! Factorizations of matrices that one task can hold.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Kernel, StageOutput, TensorSpec};
use crate::shape::require_known;
use crate::tiling::Tiling;
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::factor::Factor;

/// One result of a factorization of a whole matrix, float64.
#[derive(Clone, Copy, Debug)]
pub struct Factorize(pub Factor);

impl Operator for Factorize {
    fn name(&self) -> &'static str {
        match self.0 {
            Factor::Cholesky | Factor::GramUpper { .. } => "cholesky",
            Factor::InverseUpper => "inverse",
            Factor::QrQ | Factor::QrR => "qr",
            Factor::SvdS | Factor::SvdU | Factor::SvdVt => "svd",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let &[m, n] = inputs[0].shape.as_slice() else {
            let shapes = vec![inputs[0].shape.clone()];
            let reason = "a matrix of two axes is needed".to_owned();
            return Err(Error::Shape { function: self.name(), shapes, reason });
        };
        require_known(self.name(), &inputs[0].shape)?;
        if inputs[0].dtype.is_complex() {
            return Err(Error::NotImplemented(format!("{} of complex matrices", self.name())));
        }
        if m != n && matches!(self.0, Factor::Cholesky | Factor::GramUpper { .. } | Factor::InverseUpper) {
            let message = "Last 2 dimensions of the array must be square".to_owned();
            return Err(tharsis_kernels::KernelError::Singular(message).into());
        }
        Ok(Meta { shape: self.0.shape(m, n), dtype: DType::F64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let arg = lowering.cast(inputs[0], DType::F64);
        let grid = Tiling::whole(&lowering.expr(arg).shape);
        let operand = lowering.operand(arg)?;
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::F64, tiling: Tiling::whole(&out.shape) });
        let kernel = Kernel::Whole(ChunkFunction::Factor(self.0));
        lowering.add_kernel(kernel, grid, vec![operand], vec![StageOutput { tensor, offset: vec![0, 0] }]);
        Ok(lowering.load(tensor))
    }
}
