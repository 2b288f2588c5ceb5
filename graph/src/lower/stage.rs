//! Fusion of expressions into stages.

use super::{ExprId, ExprKind, Lowering};
use crate::error::Error;
use crate::plan::{Along, AxisMap, Input, Kernel, Operand, Stage, StageOutput, TensorId, TensorSpec};
use crate::tiling::{AxisTiling, Tiling};
use std::collections::HashMap;
use tharsis_kernels::program::{Output, Program, Step, StepOp};
use tharsis_kernels::{DType, Fold};

/// A program over a domain, and its inputs.
pub(super) struct Fused {
    pub(super) program: Program,
    pub(super) inputs: Vec<Input>,
    values: HashMap<ExprId, usize>,
}

impl Lowering<'_> {
    /// The tensor that holds the values of `expr`. Adds a stage that fills it, unless the values are stored
    /// already.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn store(&mut self, expr: ExprId) -> Result<TensorId, Error> {
        if let Some(tensor) = self.stored_as_is(expr) {
            return Ok(tensor);
        }
        let tiling = self.tile(&[expr], true);
        assert_eq!(tiling.shape(), self.exprs[expr].shape, "chunks of another shape than their values");
        let tensor = self.add_tensor(TensorSpec { dtype: self.exprs[expr].dtype, tiling: tiling.clone() });
        self.fill_tensor(expr, tiling, tensor, vec![])?;
        self.stored.insert(expr, tensor);
        Ok(tensor)
    }

    /// As [`Lowering::store`], of an expression with one axis, cut like this.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn store_cut(&mut self, expr: ExprId, cut: &AxisTiling) -> Result<TensorId, Error> {
        let same = |lowering: &Self, tensor: TensorId| {
            let axis = &lowering.plan.tensors[tensor].tiling.axes[0];
            axis.count() == cut.count() && (0..cut.count()).all(|at| axis.piece(at) == cut.piece(at))
        };
        if let Some(tensor) = self.stored_as_is(expr).filter(|&tensor| same(self, tensor)) {
            return Ok(tensor);
        }
        let key = (expr, cut.clone());
        if let Some(&tensor) = self.stored_cut.get(&key) {
            return Ok(tensor);
        }
        let tiling = Tiling { axes: vec![cut.clone()] };
        let tensor = self.add_tensor(TensorSpec { dtype: self.exprs[expr].dtype, tiling: tiling.clone() });
        self.fill_tensor(expr, tiling, tensor, vec![])?;
        self.stored_cut.insert(key, tensor);
        Ok(tensor)
    }

    /// Adds a stage that computes `expr` into the part of `tensor` whose grid begins at `offset`.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn fill_tensor(
        &mut self,
        expr: ExprId,
        grid: Tiling,
        tensor: TensorId,
        offset: Vec<usize>,
    ) -> Result<(), Error> {
        let mut fused = self.fuse(&[expr])?;
        fused.program.outputs.push(Output::Store(fused.values[&expr]));
        let offset = if offset.is_empty() { vec![0; grid.axes.len()] } else { offset };
        assert_eq!(self.exprs[expr].dtype, self.plan.tensors[tensor].dtype, "values of another dtype");
        self.add_fused(fused, grid, vec![StageOutput { tensor, offset }]);
        Ok(())
    }

    pub(crate) fn stored_as_is(&self, expr: ExprId) -> Option<TensorId> {
        if let Some(&tensor) = self.stored.get(&expr) {
            return Some(tensor);
        }
        let ExprKind::Load { tensor, axes } = &self.exprs[expr].kind else { return None };
        let identity = axes.iter().enumerate().all(|(axis, map)| *map == AxisMap::identity(axis));
        let whole = self.plan.tensors[*tensor].tiling.shape() == self.exprs[expr].shape;
        (identity && whole).then_some(*tensor)
    }

    /// Folds expressions of one shape over `axes`, whose extents become 1: a partial result per chunk, merged
    /// as a tree. Returns one tensor per component of the fold.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn fold(&mut self, fold: Fold, args: &[ExprId], axes: &[usize]) -> Result<Vec<TensorId>, Error> {
        let key = format!("{fold:?} {args:?} {axes:?}");
        if let Some(known) = self.folded.get(&key) {
            return Ok(known.clone());
        }
        let grid = self.tile(args, false);
        let mut partial = self.fold_stage(fold, args, axes, grid)?;
        loop {
            let tiling = self.plan.tensors[partial[0]].tiling.clone();
            if axes.iter().all(|&axis| tiling.axes[axis].count() == 1) {
                break;
            }
            let grid = self.merge_grid(&tiling, axes, partial.len());
            assert!(grid.count() < tiling.count(), "a step of merging leaves as many partial results");
            let args: Vec<ExprId> = partial.iter().map(|&tensor| self.load(tensor)).collect();
            partial = self.fold_stage(fold.merge(), &args, axes, grid)?;
        }
        self.folded.insert(key, partial.clone());
        Ok(partial)
    }

    /// Folds each chunk of a grid over `axes`, whose extents become the number of chunks. Returns one tensor
    /// per component of the fold.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn fold_stage(
        &mut self,
        fold: Fold,
        args: &[ExprId],
        axes: &[usize],
        grid: Tiling,
    ) -> Result<Vec<TensorId>, Error> {
        let shape = &self.exprs[args[0]].shape;
        assert_eq!(grid.axes.len(), shape.len(), "a grid of another rank than what is folded");
        assert!(axes.iter().all(|&axis| axis < shape.len()), "a fold over an axis that is not there");
        let mut fused = self.fuse(args)?;
        let values: Vec<usize> = args.iter().map(|arg| fused.values[arg]).collect();
        fused.program.outputs.push(Output::Fold { fold, args: values, axes: axes.to_vec() });
        let mut tiling = grid.clone();
        for &axis in axes {
            tiling.axes[axis] = AxisTiling::Even { len: grid.axes[axis].count(), chunk: 1 };
        }
        let offset = vec![0; grid.axes.len()];
        let dtypes: Vec<DType> = fold.components(self.exprs[args[0]].dtype);
        let tensors: Vec<TensorId> = dtypes
            .into_iter()
            .map(|dtype| self.add_tensor(TensorSpec { dtype, tiling: tiling.clone() }))
            .collect();
        let outputs = tensors.iter().map(|&tensor| StageOutput { tensor, offset: offset.clone() }).collect();
        self.add_fused(fused, grid, outputs);
        Ok(tensors)
    }

    /// The grid over partial results: a task merges as many as keep it small, at least four.
    fn merge_grid(&self, tiling: &Tiling, axes: &[usize], components: usize) -> Tiling {
        let bytes = (tiling.largest() as usize * components * 16).max(1);
        let mut fan_in = (MERGE_BYTES / bytes).clamp(MERGE_FAN_IN_MIN, MERGE_FAN_IN_MAX);
        let mut grid = tiling.clone();
        for &axis in axes.iter().rev() {
            let len = tiling.axes[axis].len();
            let chunk = fan_in.min(len).max(1);
            grid.axes[axis] = AxisTiling::Even { len, chunk };
            fan_in = (fan_in / chunk).max(1);
        }
        grid
    }

    fn add_fused(&mut self, fused: Fused, grid: Tiling, outputs: Vec<StageOutput>) {
        let operand = Operand { program: fused.program, inputs: fused.inputs, along: Vec::new() };
        self.add_kernel(Kernel::Fused, grid, vec![operand], outputs);
    }

    /// Adds a stage, labelled with the operator being lowered.
    pub fn add_kernel(
        &mut self,
        kernel: Kernel,
        grid: Tiling,
        operands: Vec<Operand>,
        outputs: Vec<StageOutput>,
    ) {
        let label = self.label.to_owned();
        self.add_stage(Stage { label, kernel, grid, operands, outputs });
    }

    /// A program that yields the values of `expr`, for stages that read chunks of it.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn operand(&self, expr: ExprId) -> Result<Operand, Error> {
        let mut fused = self.fuse(&[expr])?;
        fused.program.outputs.push(Output::Store(fused.values[&expr]));
        Ok(Operand { program: fused.program, inputs: fused.inputs, along: Vec::new() })
    }

    /// A program that yields the values of `expr`, which has one element per chunk of the grid along `axis`.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn operand_per_chunk(&self, expr: ExprId, axis: usize) -> Result<Operand, Error> {
        self.operand_along(expr, vec![(axis, Along::Chunk)])
    }

    /// A program that yields the values of `expr`, whose domain along some axes is not the task's part of the
    /// grid.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn operand_along(&self, expr: ExprId, along: Vec<(usize, Along)>) -> Result<Operand, Error> {
        Ok(Operand { along, ..self.operand(expr)? })
    }

    /// A new tensor of this grid, filled by one stage.
    pub fn add_stage_tensor(
        &mut self,
        kernel: Kernel,
        grid: Tiling,
        operands: Vec<Operand>,
        dtype: DType,
    ) -> TensorId {
        let tensor = self.add_tensor(TensorSpec { dtype, tiling: grid.clone() });
        let offset = vec![0; grid.axes.len()];
        self.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        tensor
    }

    /// One program that computes all of `roots`, which have one shape.
    pub(super) fn fuse(&self, roots: &[ExprId]) -> Result<Fused, Error> {
        let rank = self.exprs[roots[0]].shape.len();
        let same = |root: &ExprId| self.exprs[*root].shape == self.exprs[roots[0]].shape;
        assert!(roots.iter().all(same), "a program over domains of several shapes");
        let mut fused = Fused { program: Program::default(), inputs: Vec::new(), values: HashMap::new() };
        for id in self.reachable(roots) {
            let expr = &self.exprs[id];
            let value = |arg: &ExprId| fused.values[arg];
            let trailing = expr.shape[rank..].to_vec();
            let op = match &expr.kind {
                ExprKind::Const(scalar) => StepOp::Const(*scalar),
                ExprKind::Index { form, map } => StepOp::Index { index: form.clone(), map: *map },
                ExprKind::Load { tensor, axes } => {
                    fused.inputs.push(Input {
                        tensor: *tensor,
                        axes: axes.clone(),
                        trailing: trailing.clone(),
                    });
                    StepOp::Load { input: fused.inputs.len() - 1 }
                }
                ExprKind::Cast(a) => StepOp::Cast(value(a)),
                ExprKind::Narrow(a) => StepOp::Narrow(value(a)),
                ExprKind::Unary(op, a) => StepOp::Unary(*op, value(a)),
                ExprKind::Binary(op, a, b) => StepOp::Binary(*op, value(a), value(b)),
                ExprKind::Where(a, b, c) => StepOp::Where(value(a), value(b), value(c)),
                ExprKind::RowFold(fold, a) => StepOp::RowFold(*fold, value(a)),
                ExprKind::Tiled(a, _) => {
                    let same = value(a);
                    fused.values.insert(id, same);
                    continue;
                }
            };
            fused.program.steps.push(Step { op, dtype: expr.dtype, trailing });
            let before = fused.values.insert(id, fused.program.steps.len() - 1);
            assert!(before.is_none(), "an expression is computed twice in one program");
        }
        Ok(fused)
    }
}

const MERGE_BYTES: usize = 4 << 20;
const MERGE_FAN_IN_MIN: usize = 4;
const MERGE_FAN_IN_MAX: usize = 64;
