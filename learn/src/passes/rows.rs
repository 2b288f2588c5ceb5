//! Passes by functions of rows: a row of the result for each row of the inputs, or one state of all rows.
//!
//! The rows are cut as the pass says, not as the executor likes: the states of the pieces are added in an
//! order that the plan fixes, so a state is the same to the bit wherever the pass runs.

use std::sync::Arc;
use tharsis_graph::lower::{ExprId, Lowering, View};
use tharsis_graph::plan::{Along, Kernel, StageOutput, TensorSpec};
use tharsis_graph::tiling::{AxisTiling, Tiling};
use tharsis_graph::{Error, Foreign, Meta, Operator};
use tharsis_kernels::DType;
use tharsis_numeric::Tensor;

/// States that are added one to the other; their sums are added in the same way. It is a number and not what
/// fits a task, so that the size of a state does not tell the order of a sum.
pub(crate) const STATES_TOGETHER: usize = 8;

/// A function of some rows of several tensors, (n, ..) each, of one or two axes.
#[derive(Clone, Debug)]
pub(crate) struct RowPass {
    /// The function. The first origin of its place is the number of its first row.
    pub(crate) function: Arc<dyn Foreign>,
    /// Rows for one call.
    pub(crate) rows: usize,
    /// The last inputs, so many, are not cut: each call has all of them, whatever their rows.
    pub(crate) whole: usize,
}

impl RowPass {
    /// A row of so many elements for each row, (n, columns), as an expression.
    #[track_caller]
    pub(crate) fn map(self, inputs: &[&Tensor], columns: usize, dtype: DType) -> Tensor {
        Tensor::apply(RowMap { pass: self, columns, dtype }, inputs)
    }

    /// The sums of float64 states of so many elements, one for each piece; (elements,), as an expression.
    /// `adding` is a function of rows that are states, which gives their sum.
    #[track_caller]
    pub(crate) fn state(self, inputs: &[&Tensor], elements: usize, adding: Arc<dyn Foreign>) -> Tensor {
        Tensor::apply(RowState { pass: self, adding, elements }, inputs)
    }

    fn check(&self, inputs: &[&Meta]) -> Result<usize, Error> {
        let rows = inputs.first().and_then(|input| input.shape.first()).copied();
        let rows = rows.ok_or_else(|| Error::Internal("a pass over no rows".to_owned()))?;
        let cut = inputs.len().saturating_sub(self.whole);
        let fits = |(at, input): (usize, &&Meta)| {
            (1..=2).contains(&input.shape.len())
                && (cut <= at || input.shape[0] == rows)
                && input.shape.iter().all(|&extent| extent != tharsis_graph::shape::UNKNOWN)
        };
        if inputs.iter().enumerate().all(fits) {
            return Ok(rows);
        }
        let shapes = inputs.iter().map(|input| input.shape.clone()).collect();
        Err(Error::Shape { function: "rows", shapes, reason: "a pass needs as many rows of each".to_owned() })
    }

    /// Adds the stage: one task for each piece of the rows. Its output has pieces of `columns` elements by
    /// `each` rows, or by one for each piece.
    fn stage(
        &self,
        lowering: &mut Lowering<'_>,
        inputs: &[ExprId],
        (columns, dtype): (usize, DType),
        one_each: bool,
    ) -> Result<ExprId, Error> {
        let len = lowering.expr(inputs[0]).shape[0];
        let rows = AxisTiling::Even { len, chunk: self.rows.clamp(1, len.max(1)) };
        let mut operands = Vec::with_capacity(inputs.len());
        for (at, &input) in inputs.iter().enumerate() {
            let shape = lowering.expr(input).shape.clone();
            let (wide, width) = match shape[..] {
                [_, width] => (input, width),
                _ => (lowering.view(input, &View::insert(&shape, &[1])), 1),
            };
            let mut along = vec![(1, Along::Whole(width))];
            if inputs.len() - self.whole <= at {
                along.push((0, Along::Whole(shape[0])));
            }
            operands.push(lowering.operand_along(wide, along)?);
        }
        let made = if one_each { AxisTiling::Even { len: rows.count(), chunk: 1 } } else { rows.clone() };
        let tiling = Tiling { axes: vec![made, AxisTiling::whole(columns)] };
        let tensor = lowering.add_tensor(TensorSpec { dtype, tiling });
        let kernel = Kernel::Foreign {
            function: lowering.add_foreign(&self.function),
            what: self.function.describe(),
            scratch_bytes: self.function.scratch_bytes(),
        };
        let grid = Tiling { axes: vec![rows, AxisTiling::whole(1)] };
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset: vec![0, 0] }]);
        Ok(lowering.load(tensor))
    }
}

#[derive(Clone, Debug)]
struct RowMap {
    pass: RowPass,
    columns: usize,
    dtype: DType,
}

impl Operator for RowMap {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![self.pass.check(inputs)?, self.columns], dtype: self.dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        self.pass.stage(lowering, inputs, (self.columns, self.dtype), false)
    }
}

#[derive(Clone, Debug)]
struct RowState {
    pass: RowPass,
    adding: Arc<dyn Foreign>,
    elements: usize,
}

impl Operator for RowState {
    fn name(&self) -> &'static str {
        "state of rows"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        self.pass.check(inputs)?;
        Ok(Meta { shape: vec![self.elements], dtype: DType::F64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let mut sums = self.pass.stage(lowering, inputs, (self.elements, DType::F64), true)?;
        loop {
            let shape = lowering.expr(sums).shape.clone();
            if shape[0] == 1 {
                return Ok(lowering.view(sums, &View::squeeze(&shape, &[0])));
            }
            let adding = RowPass { function: self.adding.clone(), rows: STATES_TOGETHER, whole: 0 };
            sums = adding.stage(lowering, &[sums], (self.elements, DType::F64), true)?;
        }
    }
}
