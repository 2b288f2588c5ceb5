//! Correlations of a long line with a short one.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::{Along, Kernel};
use crate::tiling::{AxisTiling, Tiling};
use tharsis_kernels::chunkwise::ChunkFunction;

/// For each place where the second tensor fits into the first, the sum of the products of its elements with
/// those beneath it: (n + k - 1,) and (k,), of one dtype, to (n,). The result is cut as the third tensor is,
/// which the first one is made of.
///
/// A task makes a part of the result: it reads the elements beneath it, k - 1 more, and all of the second
/// tensor.
#[derive(Clone, Copy, Debug)]
pub struct Correlate;

impl Operator for Correlate {
    fn name(&self) -> &'static str {
        "correlate"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        match (&inputs[0].shape[..], &inputs[1].shape[..]) {
            (&[long], &[short]) if 0 < short && short <= long && inputs[0].dtype == inputs[1].dtype => {
                Ok(Meta { shape: vec![long - short + 1], dtype: inputs[0].dtype })
            }
            _ => Err(Error::Internal("correlate: a line does not fit into the other".to_owned())),
        }
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let short = lowering.expr(inputs[1]).shape[0];
        // Neighbours read elements twice, which are made once.
        let long = lowering.stored(inputs[0])?;
        let own = lowering.tile(&[inputs[2]], true).axes[0].clone();
        let mut lengths = Vec::with_capacity(own.count());
        for (start, len) in (0..own.count()).map(|piece| own.piece(piece)) {
            lengths.push((start + len).min(out.shape[0]).saturating_sub(start));
        }
        // The rest of the result is made with the last part of that tensor.
        let rest = out.shape[0] - lengths.iter().sum::<usize>();
        if let Some(last) = lengths.last_mut() {
            *last += rest;
        }
        lengths.retain(|&length| length != 0);
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&lengths)] };
        let whole = (0, Along::Halo { before: 0, after: short - 1, len: out.shape[0] + short - 1 });
        let operands = vec![
            lowering.operand_along(long, vec![whole])?,
            lowering.operand_along(inputs[1], vec![(0, Along::Whole(short))])?,
        ];
        let kernel = Kernel::Whole(ChunkFunction::Correlate);
        let tensor = lowering.add_stage_tensor(kernel, grid, operands, out.dtype);
        Ok(lowering.load(tensor))
    }
}
