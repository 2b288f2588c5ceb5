//! Positions: on several axes in one, up to a number that only running tells, of the first elements in order;
//! and requirements that only running can check.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::ops::Resident;
use crate::plan::{Kernel, StageOutput, TensorId, TensorSpec};
use crate::shape::{UNKNOWN, broadcast};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::order::Direction;
use tharsis_kernels::program::{IndexForm, IndexMap};

/// Positions on several axes of a tensor as positions in the flattened tensor, all of int64 and one shape;
/// negative ones count from the end.
#[derive(Clone, Debug)]
pub struct FlatPositions {
    /// Extents of the axes.
    pub extents: Vec<usize>,
}

impl Operator for FlatPositions {
    fn name(&self) -> &'static str {
        "ravel_multi_index"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let alike = inputs.iter().all(|meta| meta.dtype == DType::I64 && meta.shape == inputs[0].shape);
        if alike && inputs.len() == self.extents.len() {
            Ok(inputs[0].clone())
        } else {
            Err(Error::Internal("positions are int64, for each axis".to_owned()))
        }
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let function = ChunkFunction::FlatPositions(self.extents.clone());
        chunkwise(lowering, function, out.dtype, inputs)
    }
}

/// The first tensor, as long as all elements of the second one, of bool, are true. Shapes are broadcast to
/// that of the first.
#[derive(Clone, Debug)]
pub struct Require {
    /// The error otherwise, a `ValueError`.
    pub message: String,
}

/// As [`Require`], for divisors: the error is a `ZeroDivisionError`.
#[derive(Clone, Debug)]
pub struct RequireDivisor {
    /// The error.
    pub message: String,
}

impl Operator for Require {
    fn name(&self) -> &'static str {
        "require"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        broadcast(self.name(), &[&inputs[0].shape, &inputs[1].shape])?;
        Ok(inputs[0].clone())
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        required(lowering, out, inputs, &self.message, false)
    }
}

impl Operator for RequireDivisor {
    fn name(&self) -> &'static str {
        "require"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        broadcast(self.name(), &[&inputs[0].shape, &inputs[1].shape])?;
        Ok(inputs[0].clone())
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        required(lowering, out, inputs, &self.message, true)
    }
}

fn required(
    lowering: &mut Lowering<'_>,
    out: &Meta,
    inputs: &[ExprId],
    message: &str,
    divides: bool,
) -> Result<ExprId, Error> {
    let from = lowering.expr(inputs[1]).shape.clone();
    let to = lowering.expr(inputs[0]).shape.clone();
    let condition = lowering.view(inputs[1], &crate::lower::View::broadcast(&from, &to));
    let function = ChunkFunction::Require { message: message.to_owned(), divides };
    chunkwise(lowering, function, out.dtype, &[inputs[0], condition])
}

/// A function of corresponding chunks of tensors of one shape.
fn chunkwise(
    lowering: &mut Lowering<'_>,
    function: ChunkFunction,
    dtype: DType,
    inputs: &[ExprId],
) -> Result<ExprId, Error> {
    let grid = lowering.tile(inputs, true);
    let operands = inputs.iter().map(|&input| lowering.operand(input)).collect::<Result<_, _>>()?;
    let tensor = lowering.add_stage_tensor(Kernel::Whole(function), grid, operands, dtype);
    Ok(lowering.load(tensor))
}

/// The numbers from 0 to before the one in the input, which has no axes and is not negative: (?,), int64.
#[derive(Clone, Debug, Default)]
pub struct Count {
    known: Option<usize>,
}

impl Operator for Count {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![self.known.unwrap_or(UNKNOWN)], dtype: DType::I64 })
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        self.known.is_none().then(|| Arc::new(Itself) as Arc<dyn Operator>)
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        let Some(chunk) = measures.chunks.first() else {
            return Err(Error::Internal("a count that was not made".to_owned()));
        };
        let count = chunk.fetch()?.to_vec::<i64>()?.first().copied().unwrap_or(0);
        let count = usize::try_from(count).map_err(|_| Error::Value(format!("a count of {count}")))?;
        Ok(Arc::new(Count { known: Some(count) }))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, _: &[ExprId]) -> Result<ExprId, Error> {
        Ok(lowering.index(&out.shape, IndexMap::Position))
    }
}

/// The number that is awaited.
#[derive(Clone, Copy, Debug)]
struct Itself;

impl Operator for Itself {
    fn name(&self) -> &'static str {
        "count"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        Ok(inputs[0])
    }
}

/// The first elements of each line along an axis in order, or their positions, int64: (.., n, ..) to (.., k,
/// ..). Of equal elements those at smaller positions come first.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Top {
    pub axis: usize,
    pub count: usize,
    pub direction: Direction,
    pub positions: bool,
}

impl Operator for Top {
    fn name(&self) -> &'static str {
        "topk"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Meta { shape, dtype } = inputs[0];
        if shape[self.axis] < self.count {
            let text = format!("topk: {} of {} elements are asked for", self.count, shape[self.axis]);
            return Err(Error::Value(text));
        }
        let mut shape = shape.clone();
        shape[self.axis] = self.count;
        Ok(Meta { shape, dtype: if self.positions { DType::I64 } else { *dtype } })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    /// Each chunk gives its first elements, and these are merged as a tree.
    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let shape = lowering.expr(inputs[0]).shape.clone();
        let mut strides = vec![0; shape.len()];
        strides[self.axis] = 1;
        let form = IndexForm { offset: 0, strides };
        let kind = crate::lower::ExprKind::Index { form, map: IndexMap::Position };
        let positions = lowering.add(&shape, DType::I64, kind);
        let mut grid = lowering.tile(&[inputs[0]], false);
        let mut args = [inputs[0], positions];
        loop {
            let made = self.stage(lowering, args, grid.clone())?;
            args = made.map(|tensor| lowering.load(tensor));
            if grid.axes[self.axis].count() == 1 {
                return Ok(args[usize::from(self.positions)]);
            }
            grid = self.merged(&lowering.tensor(made[0]).tiling);
        }
    }
}

impl Top {
    fn stage(
        &self,
        lowering: &mut Lowering<'_>,
        args: [ExprId; 2],
        grid: Tiling,
    ) -> Result<[TensorId; 2], Error> {
        let dtype = lowering.expr(args[0]).dtype;
        let cut = &grid.axes[self.axis];
        let lengths: Vec<usize> = (0..cut.count()).map(|piece| cut.piece(piece).1.min(self.count)).collect();
        let mut tiling = grid.clone();
        tiling.axes[self.axis] = AxisTiling::from_lengths(&lengths);
        let operands = vec![lowering.operand(args[0])?, lowering.operand(args[1])?];
        let made = [dtype, DType::I64]
            .map(|dtype| lowering.add_tensor(TensorSpec { dtype, tiling: tiling.clone() }));
        let offset = vec![0; grid.axes.len()];
        let outputs = made.map(|tensor| StageOutput { tensor, offset: offset.clone() }).to_vec();
        let Top { axis, count, direction, .. } = *self;
        lowering.add_kernel(
            Kernel::Whole(ChunkFunction::Top { axis, count, direction }),
            grid,
            operands,
            outputs,
        );
        Ok(made)
    }

    /// The cut for the next step: several chunks together.
    fn merged(&self, from: &Tiling) -> Tiling {
        let cut = &from.axes[self.axis];
        let lengths: Vec<usize> = (0..cut.count()).map(|piece| cut.piece(piece).1).collect();
        let together: Vec<usize> = lengths.chunks(FAN_IN).map(|lengths| lengths.iter().sum()).collect();
        let mut grid = from.clone();
        grid.axes[self.axis] = AxisTiling::from_lengths(&together);
        grid
    }
}

/// Chunks whose first elements are merged in one task.
const FAN_IN: usize = 8;
