//! Other ways to look at the same elements.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::tiling::Chunks;

/// Slices, transposes, broadcasts, new and dropped axes: all that is affine in the index.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Viewed {
    pub name: &'static str,
    pub view: View,
}

impl Operator for Viewed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        if self.view.axes.len() != inputs[0].shape.len() {
            return Err(Error::Internal("a view of another rank".to_owned()));
        }
        Ok(Meta { shape: self.view.shape.clone(), dtype: inputs[0].dtype })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        Ok(lowering.view(inputs[0], &self.view))
    }
}

/// The same tensor in other chunks.
#[derive(Clone, Debug)]
pub struct Rechunk(pub Chunks);

impl Operator for Rechunk {
    fn name(&self) -> &'static str {
        "rechunk"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        self.0.tiling(&inputs[0].shape)?;
        Ok(inputs[0].clone())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let Some(tiling) = self.0.tiling(&out.shape)? else { return Ok(inputs[0]) };
        let wishes = tiling.axes.into_iter().map(Some).collect();
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Tiled(inputs[0], wishes)))
    }
}
