//! Reductions over axes.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use tharsis_kernels::program::{IndexForm, IndexMap};
use tharsis_kernels::{BinaryOp, DType, Fold, Scalar, UnaryOp};

/// A fold over axes, which are dropped from the shape, or kept with extent 1.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Reduce {
    pub fold: Fold,
    /// Ascending, counted from the front.
    pub axes: Vec<usize>,
    pub keepdims: bool,
}

impl Operator for Reduce {
    fn name(&self) -> &'static str {
        self.fold.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Meta { shape, dtype } = inputs[0];
        let is_empty = self.axes.iter().any(|&axis| shape[axis] == 0);
        let out = reduced_shape(shape, &self.axes, self.keepdims);
        if matches!(self.fold, Fold::Max | Fold::Min) && is_empty {
            let operation = if self.fold == Fold::Max { "maximum" } else { "minimum" };
            return Err(Error::Value(format!(
                "zero-size array to reduction operation {operation} which has no identity"
            )));
        }
        let dtype = match self.fold {
            Fold::All | Fold::Any => DType::Bool,
            Fold::CountTrue => DType::I64,
            Fold::Sum | Fold::Prod => dtype.accumulator(),
            _ => *dtype,
        };
        Ok(Meta { shape: out, dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let compute = match self.fold {
            Fold::All | Fold::Any | Fold::CountTrue => DType::Bool,
            // Sums are made in the widest type of their family and rounded once.
            Fold::Sum | Fold::Prod => match lowering.expr(inputs[0]).dtype.accumulator() {
                DType::F16 | DType::BF16 | DType::F32 => DType::F64,
                DType::C64 => DType::C128,
                other => other,
            },
            _ => lowering.expr(inputs[0]).dtype.compute(),
        };
        let arg = lowering.cast(inputs[0], compute);
        let value = fold_axes(lowering, self.fold, arg, &self.axes)?;
        let value = reshape_reduced(lowering, value, &self.axes, self.keepdims);
        match self.fold {
            Fold::Sum | Fold::Prod => Ok(lowering.narrow(value, out.dtype)),
            _ => Ok(lowering.cast(value, out.dtype)),
        }
    }
}

/// The shape without `axes`, or with 1 in their place.
pub(super) fn reduced_shape(shape: &[usize], axes: &[usize], keepdims: bool) -> Vec<usize> {
    let kept = shape.iter().enumerate().filter(|(axis, _)| keepdims || !axes.contains(axis));
    kept.map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent }).collect()
}

/// Folds over `axes`. A row fold drops them from the shape; a fold in stages leaves them with extent 1.
fn fold_axes(lowering: &mut Lowering<'_>, fold: Fold, arg: ExprId, axes: &[usize]) -> Result<ExprId, Error> {
    let shape = lowering.expr(arg).shape.clone();
    if axes.is_empty() && fold != Fold::CountTrue {
        return Ok(arg);
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let width: u64 = axes.iter().map(|&axis| shape[axis] as u64).product();
    let rows: u64 = kept.iter().map(|&axis| shape[axis] as u64).product();
    let trailing = kept.iter().all(|axis| axes.iter().all(|reduced| axis < reduced));
    if trailing && (1..=ROW_WIDTH_MAX).contains(&width) && width <= rows {
        let out: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
        let dtype = fold.components(lowering.expr(arg).dtype)[0];
        return Ok(lowering.add(&out, dtype, ExprKind::RowFold(fold, arg)));
    }
    let tensors = lowering.fold(fold, &[arg], axes)?;
    Ok(lowering.load(tensors[0]))
}

/// Brings the result of [`fold_axes`] to the requested shape.
fn reshape_reduced(lowering: &mut Lowering<'_>, value: ExprId, axes: &[usize], keepdims: bool) -> ExprId {
    let shape = lowering.expr(value).shape.clone();
    // A row fold has dropped its axes already; a fold in stages has not.
    let dropped = matches!(lowering.expr(value).kind, ExprKind::RowFold(..));
    match (dropped, keepdims) {
        (true, false) | (false, true) => value,
        (false, false) => lowering.view(value, &View::squeeze(&shape, axes)),
        (true, true) => lowering.view(value, &View::insert(&shape, axes)),
    }
}

/// `var` or `std`: moments merged over chunks.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Moment {
    pub axes: Vec<usize>,
    pub keepdims: bool,
    /// Subtracted from the count in the divisor.
    pub ddof: f64,
    /// Whether the square root is taken.
    pub root: bool,
}

impl Operator for Moment {
    fn name(&self) -> &'static str {
        if self.root { "std" } else { "var" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Meta { shape, dtype } = inputs[0];
        let dtype = match dtype {
            DType::F16 | DType::BF16 | DType::F32 => *dtype,
            DType::C64 => DType::F32,
            _ => DType::F64,
        };
        Ok(Meta { shape: reduced_shape(shape, &self.axes, self.keepdims), dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let shape = lowering.expr(inputs[0]).shape.clone();
        let complex = lowering.expr(inputs[0]).dtype.is_complex();
        let parts = if complex { vec![UnaryOp::Real, UnaryOp::Imag] } else { vec![UnaryOp::Positive] };
        let mut squares = None;
        for part in parts {
            let arg = match part {
                UnaryOp::Positive => inputs[0],
                part => {
                    let real = lowering.expr(inputs[0]).dtype.real_part();
                    lowering.add(&shape, real, ExprKind::Unary(part, inputs[0]))
                }
            };
            let arg = lowering.cast(arg, DType::F64);
            let moments = lowering.fold(Fold::Moments, &[arg], &self.axes)?;
            let value = lowering.load(moments[2]);
            let kept = lowering.expr(value).shape.clone();
            squares = Some(match squares {
                None => value,
                Some(sum) => lowering.add(&kept, DType::F64, ExprKind::Binary(BinaryOp::Add, sum, value)),
            });
        }
        let squares = squares.ok_or_else(|| Error::Internal("a variance without parts".to_owned()))?;
        let kept = lowering.expr(squares).shape.clone();
        let count: f64 = self.axes.iter().map(|&axis| shape[axis] as f64).product();
        let divisor = Scalar::Float((count - self.ddof).max(0.0));
        let divisor = lowering.add(&kept, DType::F64, ExprKind::Const(divisor));
        let mut value = lowering.add(&kept, DType::F64, ExprKind::Binary(BinaryOp::Divide, squares, divisor));
        if self.root {
            value = lowering.add(&kept, DType::F64, ExprKind::Unary(UnaryOp::Sqrt, value));
        }
        if !self.keepdims {
            value = lowering.view(value, &View::squeeze(&kept, &self.axes));
        }
        Ok(lowering.cast(value, out.dtype))
    }
}

/// Number of elements behind each result of a reduction, float64: for shapes that are not known yet.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct CountReduced {
    pub axes: Vec<usize>,
    pub keepdims: bool,
}

impl Operator for CountReduced {
    fn name(&self) -> &'static str {
        "count"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: reduced_shape(&inputs[0].shape, &self.axes, self.keepdims), dtype: DType::F64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let shape = &lowering.expr(inputs[0]).shape;
        let count: f64 = self.axes.iter().map(|&axis| shape[axis] as f64).product();
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Const(Scalar::Float(count))))
    }
}

/// `argmin` and `argmax`: over one axis, or over the flattened array.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct ArgExtreme {
    pub fold: Fold,
    pub axis: Option<usize>,
    pub keepdims: bool,
}

impl ArgExtreme {
    fn axes(&self, rank: usize) -> Vec<usize> {
        self.axis.map_or_else(|| (0..rank).collect(), |axis| vec![axis])
    }
}

impl Operator for ArgExtreme {
    fn name(&self) -> &'static str {
        self.fold.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let shape = &inputs[0].shape;
        let axes = self.axes(shape.len());
        let out = reduced_shape(shape, &axes, self.keepdims);
        if axes.iter().any(|&axis| shape[axis] == 0) {
            return Err(Error::Value(format!("attempt to get {} of an empty sequence", self.fold.name())));
        }
        Ok(Meta { shape: out, dtype: DType::I64 })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let shape = lowering.expr(inputs[0]).shape.clone();
        let axes = self.axes(shape.len());
        let mut strides = vec![0; shape.len()];
        match self.axis {
            Some(axis) => strides[axis] = 1,
            None => strides = tharsis_kernels::layout::c_strides(&shape),
        }
        let form = IndexForm { offset: 0, strides };
        let position = lowering.add(&shape, DType::I64, ExprKind::Index { form, map: IndexMap::Position });
        let dtype = lowering.expr(inputs[0]).dtype.compute();
        let arg = lowering.cast(inputs[0], dtype);
        let tensors = lowering.fold(self.fold, &[arg, position], &axes)?;
        let value = lowering.load(tensors[1]);
        if self.keepdims {
            return Ok(value);
        }
        let kept = lowering.expr(value).shape.clone();
        Ok(lowering.view(value, &View::squeeze(&kept, &axes)))
    }
}

/// Rows up to this width are folded in registers, with element-wise steps on both sides in the same task.
const ROW_WIDTH_MAX: u64 = 512;
