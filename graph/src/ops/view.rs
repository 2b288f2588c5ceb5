//! Views of the same elements, and other chunks for them.

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::shape::{UNKNOWN, is_known};
use crate::tiling::Chunks;
use std::sync::Arc;

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

    /// Views take axes of unknown extent whole, so their extents are those of the input.
    fn resolved(&self, inputs: &[&Meta]) -> Option<Arc<dyn Operator>> {
        let mut view = self.view.clone();
        for (map, &extent) in view.axes.iter().zip(&inputs[0].shape) {
            if let Some(axis) = map.axis
                && view.shape[axis] == UNKNOWN
            {
                view.shape[axis] = extent;
            }
        }
        Some(Arc::new(Viewed { name: self.name, view }))
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
        // An axis of unknown extent is checked once its extent is known.
        if is_known(&inputs[0].shape) {
            self.0.tiling(&inputs[0].shape)?;
        }
        Ok(inputs[0].clone())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let Some(tiling) = self.0.tiling(&out.shape)? else { return Ok(inputs[0]) };
        let preferences = tiling.axes.into_iter().map(Some).collect();
        Ok(lowering.add(&out.shape, out.dtype, ExprKind::Tiled(inputs[0], preferences)))
    }
}
