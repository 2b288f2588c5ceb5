//! Fourier and cosine transforms along an axis.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Kernel, StageOutput, TensorSpec};
use crate::shape::require_known;
use crate::tiling::AxisTiling;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::cosine::Cosine;
use tharsis_kernels::fourier::{Fourier, Transform};

/// A transform of each line along an axis, which a task has whole; other axes are cut. The argument is of
/// complex64 or complex128, of float32 or float64 where it is real.
#[derive(Clone, Copy, Debug)]
pub struct FourierAlong(pub Fourier);

impl Operator for FourierAlong {
    fn name(&self) -> &'static str {
        match self.0.transform {
            Transform::Forward => "fft",
            Transform::Inverse => "ifft",
            Transform::RealForward => "rfft",
            Transform::RealInverse => "irfft",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Fourier { transform, axis, len, .. } = self.0;
        require_known(self.name(), &inputs[0].shape)?;
        if len == 0 {
            return Err(Error::Value("Invalid number of FFT data points (0) specified.".to_owned()));
        }
        let mut shape = inputs[0].shape.clone();
        shape[axis] = transform.extent(len);
        Ok(Meta { shape, dtype: transform.dtype(inputs[0].dtype.real_part()) })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let function = ChunkFunction::Fourier(self.0);
        lower_along(lowering, out, inputs[0], self.0.axis, function)
    }
}

/// A cosine transform of each line along an axis, which a task has whole; other axes are cut. The argument is
/// of float32 or float64.
#[derive(Clone, Copy, Debug)]
pub struct CosineAlong(pub Cosine);

impl Operator for CosineAlong {
    fn name(&self) -> &'static str {
        if self.0.sine { "dst" } else { "dct" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        require_known(self.name(), &inputs[0].shape)?;
        let mut shape = inputs[0].shape.clone();
        shape[self.0.axis] = self.0.len;
        Ok(Meta { shape, dtype: inputs[0].dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        lower_along(lowering, out, inputs[0], self.0.axis, ChunkFunction::Cosine(self.0))
    }
}

/// A stage whose tasks have their lines whole along the axis.
fn lower_along(
    lowering: &mut Lowering<'_>,
    out: &Meta,
    x: ExprId,
    axis: usize,
    function: ChunkFunction,
) -> Result<ExprId, Error> {
    let x = lowering.whole_along(x, axis);
    let grid = lowering.tile(&[x], true);
    let mut tiling = grid.clone();
    tiling.axes[axis] = AxisTiling::whole(out.shape[axis]);
    let operands = vec![lowering.operand(x)?];
    let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
    let output = StageOutput { tensor, offset: vec![0; out.shape.len()] };
    lowering.add_kernel(Kernel::Whole(function), grid, operands, vec![output]);
    Ok(lowering.load(tensor))
}
