//! Passes over all pairs of rows of two tensors, block by block: a state for each row of the first one.
//!
//! A task gets a block of rows of each tensor and makes the states of the first ones. The states of a row are
//! merged in an order that the plan fixes, so results are the same to the bit wherever the pass runs, and at
//! no time is there anything of the size of all pairs.

use std::sync::Arc;
use tharsis_graph::lower::{ExprId, Lowering, View};
use tharsis_graph::plan::{Along, Kernel, Operand, StageOutput, TensorSpec};
use tharsis_graph::shape::agree;
use tharsis_graph::tiling::{AxisTiling, Tiling};
use tharsis_graph::{Error, Foreign, Meta, Operator};
use tharsis_kernels::DType;
use tharsis_numeric::Tensor;

/// States of a row that are merged by one task.
const MERGED_TOGETHER: usize = 8;
/// Rows of the first tensor in a block. Blocks are small: the bound of the memory of a plan counts the pairs
/// of a task.
const ROWS_MAX: usize = 128;
/// Elements of the states of a block; of wide states a block has fewer rows.
const STATE_ELEMENTS: usize = 1 << 15;
/// Rows of the second tensor in a block.
const OTHERS_MAX: usize = 1024;
/// And of wide rows at most so many elements.
const OTHERS_ELEMENTS: usize = 1 << 17;

/// A function of the pairs of two blocks.
#[derive(Clone, Debug)]
pub(crate) struct PairPass {
    /// The states of the rows of the first block; (rows, width). Its arguments are the blocks, and the rows
    /// that go with those of the second one. The first origin of its place is the number of the first row,
    /// the second one that of the first row of the second block.
    pub(crate) function: Arc<dyn Foreign>,
    /// The states of rows, merged: (rows, states, width) to (rows, width).
    pub(crate) merging: Arc<dyn Foreign>,
    /// Elements of a state.
    pub(crate) width: usize,
}

impl PairPass {
    /// The states of `rows` (m, d), merged over all `others` (n, d), with what goes with these, (n, w) each;
    /// (m, width), float64.
    #[track_caller]
    pub(crate) fn states(self, rows: &Tensor, others: &Tensor, carried: &[&Tensor]) -> Tensor {
        let inputs: Vec<&Tensor> = [rows, others].into_iter().chain(carried.iter().copied()).collect();
        Tensor::apply(self, &inputs)
    }
}

/// Rows of the first tensor in a block, for states of so many elements and rows of so many columns.
fn rows_of_block(width: usize, columns: usize) -> usize {
    let most = (STATE_ELEMENTS / width.max(1)).min(OTHERS_ELEMENTS / columns.max(1));
    most.clamp(1, ROWS_MAX)
}

/// Bytes that a task which merges states of so many elements holds of them.
pub(crate) fn merged_bytes(width: usize) -> u64 {
    // The states, and a copy of them.
    2 * (MERGED_TOGETHER * rows_of_block(width, 1) * width * size_of::<f64>()) as u64
}

/// Rows of the second tensor in a block, if it has so many columns.
pub(crate) fn others_of_block(columns: usize) -> usize {
    (OTHERS_ELEMENTS / columns.max(1)).clamp(1, OTHERS_MAX)
}

impl Operator for PairPass {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape.clone()).collect();
        if let [rows, others, carried @ ..] = &shapes[..]
            && let ([count, columns], [other, own]) = (&rows[..], &others[..])
            && agree(*columns, *own)
            && carried.iter().all(|shape| shape.len() == 2 && agree(shape[0], *other))
        {
            return Ok(Meta { shape: vec![*count, self.width], dtype: DType::F64 });
        }
        Err(Error::Shape { function: "pairs", shapes, reason: "pairs need rows of one length".to_owned() })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let extent =
            |lowering: &Lowering<'_>, input: usize, axis: usize| lowering.expr(inputs[input]).shape[axis];
        let (count, columns) = (extent(lowering, 0, 0), extent(lowering, 0, 1));
        let others = extent(lowering, 1, 0);
        let rows =
            AxisTiling::Even { len: count, chunk: rows_of_block(self.width, columns).min(count.max(1)) };
        let chunk = others_of_block(columns).min(others.max(1));
        let others = AxisTiling::Even { len: others, chunk };
        let mut operands = Vec::with_capacity(inputs.len());
        for (at, &input) in inputs.iter().enumerate() {
            let shape = lowering.expr(input).shape.clone();
            // The axis of the other tensor is one element.
            let (axis, width) = (if at == 0 { 1 } else { 0 }, shape[1]);
            let wide = lowering.view(input, &View::insert(&shape, &[axis]));
            operands
                .push(lowering.operand_along(wide, vec![(axis, Along::Whole(1)), (2, Along::Whole(width))])?);
        }
        let blocks = others.count();
        let grid = Tiling { axes: vec![rows.clone(), others, AxisTiling::whole(1)] };
        let mut states = self.stage(lowering, &self.function, grid, operands, &rows, blocks);
        let mut left = blocks;
        while 1 < left {
            let merged = AxisTiling::Even { len: left, chunk: MERGED_TOGETHER };
            left = merged.count();
            let operand = lowering.operand_along(states, vec![(2, Along::Whole(self.width))])?;
            let grid = Tiling { axes: vec![rows.clone(), merged, AxisTiling::whole(1)] };
            states = self.stage(lowering, &self.merging, grid, vec![operand], &rows, left);
        }
        let shape = lowering.expr(states).shape.clone();
        Ok(lowering.view(states, &View::squeeze(&shape, &[1])))
    }
}

impl PairPass {
    /// Adds a stage whose tasks make a state of each of some rows; (rows, states, width).
    fn stage(
        &self,
        lowering: &mut Lowering<'_>,
        function: &Arc<dyn Foreign>,
        grid: Tiling,
        operands: Vec<Operand>,
        rows: &AxisTiling,
        states: usize,
    ) -> ExprId {
        let each = AxisTiling::Even { len: states, chunk: 1 };
        let tiling = Tiling { axes: vec![rows.clone(), each, AxisTiling::whole(self.width)] };
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::F64, tiling });
        let kernel = Kernel::Foreign {
            function: lowering.add_foreign(function),
            what: function.describe(),
            scratch_bytes: function.scratch_bytes(),
        };
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset: vec![0, 0, 0] }]);
        lowering.load(tensor)
    }
}
