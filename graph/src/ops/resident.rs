//! The operator of a tensor whose chunks exist: they are handed over, not computed.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::resident::Resident;

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
