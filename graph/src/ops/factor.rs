//! Factorizations of matrices that one task can hold, and of blocks of rows of those that none can.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Along, Kernel, StageOutput, TensorSpec};
use crate::shape::require_known;
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::factor::Factor;

/// One result of a factorization of a whole matrix, float64.
#[derive(Clone, Copy, Debug)]
pub struct Factorize(pub Factor);

impl Operator for Factorize {
    fn name(&self) -> &'static str {
        match self.0 {
            Factor::Cholesky => "cholesky",
            Factor::QrQ | Factor::QrR | Factor::ReflectionSigns => "qr",
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
        if m != n && matches!(self.0, Factor::Cholesky | Factor::ReflectionSigns) {
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

/// The upper factors of blocks of rows below each other: (m, n) to (blocks n, n), float64. Each block has at
/// least n rows.
#[derive(Clone, Copy, Debug)]
pub struct UpperOfBlocks {
    /// The number of blocks.
    pub blocks: usize,
}

/// The orthonormal factors of the blocks of rows of [`UpperOfBlocks`], each times a matrix: (m, n) and
/// (blocks, n n) to (m, n), float64.
#[derive(Clone, Copy, Debug)]
pub struct BasisOfBlocks {
    /// The number of blocks.
    pub blocks: usize,
}

impl Operator for UpperOfBlocks {
    fn name(&self) -> &'static str {
        "qr"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let [_, n] = rows_of_blocks(inputs[0], self.blocks)?;
        Ok(Meta { shape: vec![self.blocks * n, n], dtype: DType::F64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let (arg, grid) = blocks_of(lowering, inputs[0], self.blocks);
        let operand = lowering.operand(arg)?;
        let n = out.shape[1];
        let tiling =
            Tiling { axes: vec![AxisTiling::Even { len: out.shape[0], chunk: n }, AxisTiling::whole(n)] };
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::F64, tiling });
        let kernel = Kernel::Whole(ChunkFunction::Factor(Factor::QrR));
        lowering.add_kernel(kernel, grid, vec![operand], vec![StageOutput { tensor, offset: vec![0, 0] }]);
        Ok(lowering.load(tensor))
    }
}

impl Operator for BasisOfBlocks {
    fn name(&self) -> &'static str {
        "qr"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let [m, n] = rows_of_blocks(inputs[0], self.blocks)?;
        if inputs[1].shape != [self.blocks, n * n] {
            let text = format!("{:?} beside {} blocks of {n} columns", inputs[1].shape, self.blocks);
            return Err(Error::Internal(text));
        }
        Ok(Meta { shape: vec![m, n], dtype: DType::F64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let (arg, grid) = blocks_of(lowering, inputs[0], self.blocks);
        let small = lowering.cast(inputs[1], DType::F64);
        let of_block = vec![(0, Along::Chunk), (1, Along::Whole(out.shape[1] * out.shape[1]))];
        let operands = vec![lowering.operand(arg)?, lowering.operand_along(small, of_block)?];
        let kernel = Kernel::Whole(ChunkFunction::BasisRows);
        let tensor = lowering.add_stage_tensor(kernel, grid, operands, DType::F64);
        Ok(lowering.load(tensor))
    }
}

/// The extents of a real matrix that can be cut into so many blocks of rows.
fn rows_of_blocks(x: &Meta, blocks: usize) -> Result<[usize; 2], Error> {
    match x.shape[..] {
        [m, n] if 0 < n && 0 < blocks && n <= m / blocks && !x.dtype.is_complex() => Ok([m, n]),
        _ => Err(Error::Internal(format!("{:?} of {} in {blocks} blocks of rows", x.shape, x.dtype))),
    }
}

/// A matrix in float64, and its cut into blocks of rows of nearly one size.
fn blocks_of(lowering: &mut Lowering<'_>, x: ExprId, blocks: usize) -> (ExprId, Tiling) {
    let x = lowering.cast(x, DType::F64);
    let shape = &lowering.expr(x).shape;
    let bound = |block: usize| (block as u128 * shape[0] as u128 / blocks as u128) as usize;
    let rows = AxisTiling::Bounds((0..=blocks).map(bound).collect());
    (x, Tiling { axes: vec![rows, AxisTiling::whole(shape[1])] })
}
