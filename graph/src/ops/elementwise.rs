//! Element-wise functions. Their names, dtypes and loops are in `tharsis_kernels::ufunc`.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::shape::broadcast;
use tharsis_kernels::{BinaryOp, DType, UnaryOp, promote};

/// A function of one argument.
#[derive(Clone, Copy, Debug)]
pub struct Unary(pub UnaryOp);

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let signature = self.0.signature(inputs[0].dtype)?;
        Ok(Meta { shape: inputs[0].shape.clone(), dtype: signature.out })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let signature = self.0.signature(lowering.expr(inputs[0]).dtype)?;
        let arg = lowering.cast(inputs[0], signature.args.compute());
        let value = lowering.add(
            &out.shape,
            signature.computed(),
            ExprKind::Unary(self.0.computing(signature.args), arg),
        );
        Ok(lowering.cast(value, out.dtype))
    }
}

/// A function of two arguments, which are broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Binary(pub BinaryOp);

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let signature = self.0.signature(inputs[0].dtype, inputs[1].dtype)?;
        let shape = broadcast(self.name(), &[&inputs[0].shape, &inputs[1].shape])?;
        Ok(Meta { shape, dtype: signature.out })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let signature = self.0.signature(lowering.expr(inputs[0]).dtype, lowering.expr(inputs[1]).dtype)?;
        let args = signature.args.compute();
        let [a, b] = [inputs[0], inputs[1]].map(|input| {
            // Rounding to the common dtype comes first: NumPy casts half-precision arguments before it widens
            // them.
            let common = lowering.cast(input, signature.args);
            let wide = lowering.cast(common, args);
            broadcast_to(lowering, wide, &out.shape)
        });
        let value = lowering.add(
            &out.shape,
            signature.computed(),
            ExprKind::Binary(self.0.computing(signature.args), a, b),
        );
        Ok(lowering.cast(value, out.dtype))
    }
}

/// Another dtype, by NumPy's `astype`.
#[derive(Clone, Copy, Debug)]
pub struct Cast(pub DType);

impl Operator for Cast {
    fn name(&self) -> &'static str {
        "astype"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: inputs[0].shape.clone(), dtype: self.0 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        Ok(lowering.cast(inputs[0], self.0))
    }
}

/// Elements of the second argument where the first is true, else of the third.
#[derive(Clone, Copy, Debug)]
pub struct Where;

impl Operator for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let shape = broadcast(self.name(), &[&inputs[0].shape, &inputs[1].shape, &inputs[2].shape])?;
        Ok(Meta { shape, dtype: promote(inputs[1].dtype, inputs[2].dtype) })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let dtypes = [DType::Bool, out.dtype, out.dtype];
        let mut args = [0; 3];
        for (i, dtype) in dtypes.into_iter().enumerate() {
            let arg = lowering.cast(inputs[i], dtype);
            args[i] = broadcast_to(lowering, arg, &out.shape);
        }
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Where(args[0], args[1], args[2])))
    }
}

fn broadcast_to(lowering: &mut Lowering<'_>, arg: ExprId, shape: &[usize]) -> ExprId {
    let view = View::broadcast(&lowering.expr(arg).shape, shape);
    lowering.view(arg, &view)
}
