//! Linear algebra on stacks of matrices, each of which one task holds.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Along, Kernel, StageOutput, TensorSpec};
use crate::shape::require_known;
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::KernelError;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::linear::Linear;

/// One result of a function of matrices (.., m, n), and of right sides (.., n, k) if it takes any: the stack
/// is cut, a matrix is not.
///
/// The memory bound of the plan has the bytes of the matrices and of all that is needed beside them: a matrix
/// that does not fit is refused before anything runs.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct LinearPart {
    pub function: Linear,
    pub part: usize,
}

impl LinearPart {
    fn columns(inputs: &[&Meta]) -> usize {
        inputs.get(1).and_then(|right| right.shape.last().copied()).unwrap_or(0)
    }
}

impl Operator for LinearPart {
    fn name(&self) -> &'static str {
        match self.function {
            Linear::Cholesky => "cholesky",
            Linear::Determinant => "det",
            Linear::Eigen => "eig",
            Linear::Hermitian { .. } => "eigh",
            Linear::Inverse => "inv",
            Linear::Lu => "lu",
            Linear::Qr(_) => "qr",
            Linear::Solve => "solve",
            Linear::SolveTriangular { .. } => "solve_triangular",
            Linear::Svd { .. } => "svd",
            Linear::SingularValues => "svdvals",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        require_known(self.name(), &inputs[0].shape)?;
        let &[ref lead @ .., m, n] = inputs[0].shape.as_slice() else {
            let rank = inputs[0].shape.len();
            let text = format!("{rank}-dimensional array given. Array must be at least two-dimensional");
            return Err(KernelError::Singular(text).into());
        };
        if m != n && self.function.is_square() {
            let text = "Last 2 dimensions of the array must be square".to_owned();
            return Err(KernelError::Singular(text).into());
        }
        if let Some(right) = inputs.get(1) {
            require_known(self.name(), &right.shape)?;
            let fits = right.shape.len() == inputs[0].shape.len()
                && right.shape.starts_with(lead)
                && right.shape[lead.len()] == n
                && right.dtype == inputs[0].dtype;
            if !fits {
                let shapes = vec![inputs[0].shape.clone(), right.shape.clone()];
                let reason = "a right side has as many rows as the matrix".to_owned();
                return Err(Error::Shape { function: self.name(), shapes, reason });
            }
        }
        let results = self.function.results([m, n], LinearPart::columns(inputs), inputs[0].dtype);
        let Some((shape, dtype)) = results.get(self.part) else {
            return Err(Error::Internal(format!("{:?} has no result {}", self.function, self.part)));
        };
        Ok(Meta { shape: [lead, shape].concat(), dtype: *dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let shape = lowering.expr(inputs[0]).shape.clone();
        let lead = shape.len() - 2;
        let (x, dtype) = (inputs[0], lowering.expr(inputs[0]).dtype);
        let mut preferences = vec![None; shape.len()];
        preferences[lead] = Some(AxisTiling::whole(shape[lead]));
        preferences[lead + 1] = Some(AxisTiling::whole(shape[lead + 1]));
        let x = lowering.add(&shape, dtype, ExprKind::Tiled(x, preferences));
        let mut grid = lowering.tile(&[x], true);
        if shape.contains(&0) || out.shape.contains(&0) {
            grid = Tiling::whole(&shape);
        }
        let mut operands = vec![lowering.operand(x)?];
        if let Some(&right) = inputs.get(1) {
            let columns = lowering.expr(right).shape[lead + 1];
            operands.push(lowering.operand_along(right, vec![(lead + 1, Along::Whole(columns))])?);
        }
        let mut axes = grid.axes[..lead].to_vec();
        axes.extend(out.shape[lead..].iter().map(|&extent| AxisTiling::whole(extent)));
        let offset = vec![0; grid.axes.len()];
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: Tiling { axes } });
        let function = ChunkFunction::Linear { function: self.function, part: self.part };
        let output = StageOutput { tensor, offset };
        lowering.add_kernel(Kernel::Whole(function), grid, operands, vec![output]);
        Ok(lowering.load(tensor))
    }
}
