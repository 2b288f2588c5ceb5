//! Running sums and products.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::plan::Kernel;
use crate::tiling::AxisTiling;
use tharsis_kernels::chunkwise::{ChunkFunction, Scan};
use tharsis_kernels::{DType, Fold};

/// `cumsum` or `cumprod` along an axis.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Cumulative {
    pub scan: Scan,
    pub axis: usize,
}

impl Operator for Cumulative {
    fn name(&self) -> &'static str {
        match self.scan {
            Scan::Sum => "cumsum",
            Scan::Prod => "cumprod",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: inputs[0].shape.clone(), dtype: inputs[0].dtype.accumulator() })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    /// Each chunk is scanned on its own, starting from the total of the chunks before it.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let dtype = match out.dtype {
            DType::F16 | DType::BF16 | DType::F32 => DType::F64,
            DType::C64 => DType::C128,
            other => other,
        };
        let arg = lowering.cast(inputs[0], dtype);
        let grid = lowering.tile(&[arg], true);
        let scan =
            |exclusive| Kernel::Whole(ChunkFunction::Scan { scan: self.scan, axis: self.axis, exclusive });
        let mut operands = vec![lowering.operand(arg)?];
        if grid.axes[self.axis].count() != 1 {
            let fold = match self.scan {
                Scan::Sum => Fold::Sum,
                Scan::Prod => Fold::Prod,
            };
            let totals = lowering.fold_stage(fold, &[arg], &[self.axis], grid.clone())?;
            let mut whole = lowering.tensor(totals[0]).tiling.clone();
            whole.axes[self.axis] = AxisTiling::whole(whole.axes[self.axis].len());
            let totals = lowering.load(totals[0]);
            let totals = lowering.operand(totals)?;
            let before = lowering.add_stage_tensor(scan(true), whole, vec![totals], dtype);
            let before = lowering.load(before);
            operands.push(lowering.operand_per_chunk(before, self.axis)?);
        }
        let made = lowering.add_stage_tensor(scan(false), grid, operands, dtype);
        let value = lowering.load(made);
        Ok(lowering.cast(value, out.dtype))
    }
}
