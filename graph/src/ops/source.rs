//! Tensors without inputs.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, round_scalar};
use crate::node::{Meta, Operator};
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{DType, Scalar};

/// The same number everywhere.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Full {
    pub shape: Vec<usize>,
    pub value: Scalar,
    pub dtype: DType,
}

impl Operator for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: self.shape.clone(), dtype: self.dtype })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, _: &[ExprId]) -> Result<ExprId, Error> {
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Const(round_scalar(self.value, out.dtype))))
    }
}

/// A function of the position in C order: ramps and random numbers.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Indexed {
    pub shape: Vec<usize>,
    pub map: IndexMap,
}

impl Operator for Indexed {
    fn name(&self) -> &'static str {
        match self.map {
            IndexMap::Position | IndexMap::Ramp { .. } => "arange",
            IndexMap::Uniform(_) | IndexMap::OpenUnit(_) | IndexMap::Below { .. } => "random",
        }
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: self.shape.clone(), dtype: self.map.dtype() })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, _: &[ExprId]) -> Result<ExprId, Error> {
        Ok(lowering.index(&out.shape, self.map))
    }
}
