//! Tensors out of nothing, and tensors that exist.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering};
use crate::node::{Meta, Operator};
use crate::tiling::Tiling;
use std::fmt;
use std::sync::Arc;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{Chunk, DType, Scalar};

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
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Const(self.value)))
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

/// A tensor whose chunks are at hand. Two are the same only if they are the same chunks.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Resident {
    pub dtype: DType,
    pub tiling: Tiling,
    pub chunks: Arc<Vec<Arc<Chunk>>>,
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resident({:p})", Arc::as_ptr(&self.chunks))
    }
}

impl Operator for Resident {
    fn name(&self) -> &'static str {
        "array"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        if self.chunks.len() != self.tiling.count() {
            return Err(Error::Internal("resident chunks do not match their tiling".to_owned()));
        }
        Ok(Meta { shape: self.tiling.shape(), dtype: self.dtype })
    }

    fn lower(&self, _: &mut Lowering<'_>, _: &Meta, _: &[ExprId]) -> Result<ExprId, Error> {
        Err(Error::Internal("resident tensors are not computed".to_owned()))
    }

    fn resident(&self) -> Option<&Resident> {
        Some(self)
    }
}
