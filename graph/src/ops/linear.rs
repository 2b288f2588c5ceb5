//! Linear algebra on stacks of matrices, each of which one task holds, and on large matrices by tiles.

use super::tiles::lower_by_tiles;
use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, Shared};
use crate::node::{Meta, Operator};
use crate::plan::{Along, Kernel, StageOutput, TensorId, TensorSpec};
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

    /// A stage that does a part of the stack in each task, and makes no result yet.
    fn whole_matrices(&self, lowering: &mut Lowering<'_>, inputs: &[ExprId]) -> Result<Shared, Error> {
        let shape = lowering.expr(inputs[0]).shape.clone();
        let lead = shape.len() - 2;
        let (x, dtype) = (inputs[0], lowering.expr(inputs[0]).dtype);
        let mut preferences = vec![None; shape.len()];
        preferences[lead] = Some(AxisTiling::whole(shape[lead]));
        preferences[lead + 1] = Some(AxisTiling::whole(shape[lead + 1]));
        let x = lowering.add(&shape, dtype, ExprKind::Tiled(x, preferences));
        let is_empty =
            shape.contains(&0) || inputs.iter().any(|&input| lowering.expr(input).shape.contains(&0));
        let grid = if is_empty { Tiling::whole(&shape) } else { lowering.tile(&[x], true) };
        let mut operands = vec![lowering.operand(x)?];
        if let Some(&right) = inputs.get(1) {
            let columns = lowering.expr(right).shape[lead + 1];
            operands.push(lowering.operand_along(right, vec![(lead + 1, Along::Whole(columns))])?);
        }
        Ok(Shared::Stage { grid, operands, stage: None, parts: Vec::new() })
    }

    /// The tensor of this result.
    fn of_shared(&self, lowering: &mut Lowering<'_>, shared: &mut Shared, out: &Meta) -> Option<TensorId> {
        let (grid, operands, stage, parts) = match shared {
            Shared::Tensors(tensors) => return tensors.get(self.part).copied(),
            Shared::Stage { grid, operands, stage, parts } => (grid, operands, stage, parts),
        };
        if let Some(&(_, known)) = parts.iter().find(|(part, _)| *part == self.part) {
            return Some(known);
        }
        let lead = grid.axes.len() - 2;
        let mut axes = grid.axes[..lead].to_vec();
        axes.extend(out.shape[lead..].iter().map(|&extent| AxisTiling::whole(extent)));
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: Tiling { axes } });
        let output = StageOutput { tensor, offset: vec![0; grid.axes.len()] };
        parts.push((self.part, tensor));
        let numbers = parts.iter().map(|(part, _)| *part).collect();
        let kernel = Kernel::Whole(ChunkFunction::Linear { function: self.function, parts: numbers });
        match stage {
            None => {
                *stage = Some(lowering.stage_count());
                lowering.add_kernel(kernel, grid.clone(), std::mem::take(operands), vec![output]);
            }
            Some(stage) => lowering.add_output(*stage, kernel, output),
        }
        Some(tensor)
    }
}

impl Operator for LinearPart {
    fn name(&self) -> &'static str {
        match self.function {
            Linear::Cholesky => "cholesky",
            Linear::Determinant => "det",
            Linear::Eigen => "eig",
            Linear::Hermitian { .. } | Linear::HermitianValues { .. } => "eigh",
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
        let key = format!("{:?} {inputs:?}", self.function);
        let mut shared = match lowering.take_shared(&key) {
            Some(shared) => shared,
            None => match lower_by_tiles(lowering, self.function, inputs)? {
                Some(tensors) => Shared::Tensors(tensors),
                None => self.whole_matrices(lowering, inputs)?,
            },
        };
        let tensor = self.of_shared(lowering, &mut shared, out);
        lowering.share(key, shared);
        match tensor {
            Some(tensor) => Ok(lowering.load(tensor)),
            None => Err(Error::Internal(format!("{:?} has no result {}", self.function, self.part))),
        }
    }
}
