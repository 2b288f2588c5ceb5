//! Operators that move elements: concatenation and reshape.

use crate::error::Error;
use crate::lower::{Expr, ExprId, ExprKind, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Kernel, TensorSpec};
use crate::shape::{UNKNOWN, agree, element_count, require_known};
use crate::tiling::{AxisTiling, Tiling};
use std::collections::HashMap;
use tharsis_kernels::layout::c_strides;
use tharsis_kernels::program::IndexForm;

/// Tensors of one dtype, concatenated along an axis.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Concatenate {
    pub axis: usize,
}

impl Operator for Concatenate {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let mut shape = inputs[0].shape.clone();
        let fits = |meta: &&&Meta| {
            let others = meta.shape.iter().zip(&shape).enumerate();
            meta.shape.len() == shape.len()
                && others.into_iter().all(|(axis, (&a, &b))| axis == self.axis || agree(a, b))
        };
        if inputs.iter().filter(fits).count() != inputs.len() {
            let shapes = inputs.iter().map(|meta| meta.shape.clone()).collect();
            let reason = format!("all but axis {} must match", self.axis);
            return Err(Error::Shape { function: "concatenate", shapes, reason });
        }
        for (axis, extent) in shape.iter_mut().enumerate() {
            let mut extents = inputs.iter().map(|meta| meta.shape[axis]);
            *extent = if axis == self.axis {
                extents.try_fold(0usize, |sum, extent| sum.checked_add(extent)).unwrap_or(UNKNOWN)
            } else {
                extents.find(|&extent| extent != UNKNOWN).unwrap_or(UNKNOWN)
            };
        }
        Ok(Meta { shape, dtype: inputs[0].dtype })
    }

    /// Each input fills its own part of the grid, fused with the expression that computes it.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let parts: Vec<ExprId> =
            inputs.iter().copied().filter(|&part| lowering.expr(part).shape[self.axis] != 0).collect();
        let Some(&largest) = parts.iter().max_by_key(|&&part| element_count(&lowering.expr(part).shape))
        else {
            return Ok(inputs[0]);
        };
        if let [only] = parts[..] {
            return Ok(only);
        }
        let common = lowering.tile(&[largest], true);
        let cuts: Vec<AxisTiling> =
            parts.iter().map(|&part| lowering.tile(&[part], true).axes[self.axis].clone()).collect();
        let lengths: Vec<usize> =
            cuts.iter().flat_map(|cut| (0..cut.count()).map(|piece| cut.piece(piece).1)).collect();
        let mut tiling = common;
        tiling.axes[self.axis] = AxisTiling::from_lengths(&lengths);
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: tiling.clone() });
        let mut offset = vec![0; out.shape.len()];
        for (part, cut) in parts.into_iter().zip(cuts) {
            let pieces = cut.count();
            let mut grid = tiling.clone();
            grid.axes[self.axis] = cut;
            lowering.fill_tensor(part, grid, tensor, offset.clone())?;
            offset[self.axis] += pieces;
        }
        Ok(lowering.load(tensor))
    }
}

/// The same elements in C order in another shape.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Reshape {
    pub shape: Vec<usize>,
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        require_known("reshape", &inputs[0].shape)?;
        if element_count(&self.shape) != element_count(&inputs[0].shape) {
            let message =
                format!("cannot reshape array of shape {:?} into shape {:?}", inputs[0].shape, self.shape);
            return Err(Error::Value(message));
        }
        Ok(Meta { shape: self.shape.clone(), dtype: inputs[0].dtype })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        if lowering.expr(inputs[0]).shape == out.shape {
            return Ok(inputs[0]);
        }
        if let Some(expr) = lowering.reshaped(inputs[0], &out.shape) {
            return Ok(expr);
        }
        let tensor = lowering.store(inputs[0])?;
        let from = lowering.tensor(tensor).tiling.clone();
        let grid = reshaped_grid(&from, &out.shape);
        let made = lowering.add_stage_tensor(Kernel::Reshape { tensor }, grid, vec![], out.dtype);
        Ok(lowering.load(made))
    }
}

/// Chunks of about the size of those of the source, contiguous in C order.
fn reshaped_grid(from: &Tiling, shape: &[usize]) -> Tiling {
    Tiling::rows(shape, from.largest())
}

impl Lowering<'_> {
    /// `expr` in another shape where that needs no copy: its leaves are constants, or functions of the
    /// position in C order.
    fn reshaped(&mut self, expr: ExprId, shape: &[usize]) -> Option<ExprId> {
        let mut made: HashMap<ExprId, ExprId> = HashMap::new();
        for id in self.reachable(&[expr]) {
            let Expr { shape: from, dtype, kind } = self.expr(id).clone();
            let kind = match kind {
                ExprKind::Const(scalar) => ExprKind::Const(scalar),
                ExprKind::Index { form, map } => {
                    ExprKind::Index { form: reshaped_form(&form, &from, shape)?, map }
                }
                ExprKind::Cast(a) => ExprKind::Cast(made[&a]),
                ExprKind::Narrow(a) => ExprKind::Narrow(made[&a]),
                ExprKind::Unary(op, a) => ExprKind::Unary(op, made[&a]),
                ExprKind::Binary(op, a, b) => ExprKind::Binary(op, made[&a], made[&b]),
                ExprKind::Where(a, b, c) => ExprKind::Where(made[&a], made[&b], made[&c]),
                ExprKind::Load { .. } | ExprKind::RowFold(..) | ExprKind::Tiled(..) => return None,
            };
            made.insert(id, self.add(shape, dtype, kind));
        }
        made.get(&expr).copied()
    }
}

/// The same function of the position in C order, if it is one.
fn reshaped_form(form: &IndexForm, from: &[usize], to: &[usize]) -> Option<IndexForm> {
    let step = *form.strides.last()?;
    let scaled =
        |shape: &[usize]| -> Vec<i64> { c_strides(shape).iter().map(|stride| stride * step).collect() };
    (form.strides == scaled(from)).then(|| IndexForm { offset: form.offset, strides: scaled(to) })
}
