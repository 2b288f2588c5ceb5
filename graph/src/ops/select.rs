//! Rows and elements selected by their values. Their number is known only when part of the graph has run: see
//! [`crate::phases`].

use crate::error::Error;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::ops::Resident;
use crate::plan::{AxisMap, Kernel, StageOutput, TensorSpec};
use crate::shape::{UNKNOWN, agree};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::select::Select as Function;
use tharsis_kernels::{DType, Scalar};

/// Kind of selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The rows where a mask is true: (n, ..) and (n) of bool to (?, ..).
    Compress,
    /// The distinct elements of each chunk, ascending: (n) to (?).
    DistinctOfChunks,
    /// The distinct elements, ascending: (n) to (?). The whole is one chunk.
    Distinct,
}

/// Chooses rows or elements.
#[derive(Clone, Debug)]
pub struct Select {
    what: Selection,
    counts: Option<Arc<Counts>>,
}

/// Cut of the rows, and the number of selected ones in each piece.
#[derive(Clone, Debug)]
struct Counts {
    rows: Vec<usize>,
    chosen: Vec<usize>,
}

impl Select {
    /// A selection whose size is not known yet.
    pub fn new(what: Selection) -> Select {
        Select { what, counts: None }
    }
}

impl Selection {
    fn name(self) -> &'static str {
        match self {
            Selection::Compress => "compress",
            Selection::DistinctOfChunks | Selection::Distinct => "unique",
        }
    }

    fn function(self) -> Function {
        match self {
            Selection::Compress => Function::Compress,
            Selection::DistinctOfChunks | Selection::Distinct => Function::Distinct,
        }
    }

    /// Cut of the rows of the first input.
    fn rows(self, lowering: &Lowering<'_>, x: ExprId) -> AxisTiling {
        match self {
            Selection::Distinct => AxisTiling::whole(lowering.expr(x).shape[0]),
            Selection::Compress | Selection::DistinctOfChunks => lowering.tile(&[x], true).axes[0].clone(),
        }
    }
}

impl Operator for Select {
    fn name(&self) -> &'static str {
        self.what.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let mut meta = inputs[0].clone();
        if let [_, mask] = inputs
            && (mask.shape.len() != 1 || !agree(mask.shape[0], meta.shape[0]))
        {
            return Err(Error::Mask { shape: meta.shape, mask: mask.shape.clone() });
        }
        meta.shape[0] = self.counts.as_ref().map_or(UNKNOWN, |counts| counts.chosen.iter().sum());
        Ok(meta)
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        let measure = Measure { what: self.what };
        self.counts.is_none().then(|| Arc::new(measure) as Arc<dyn Operator>)
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        let mut counts = Counts { rows: Vec::new(), chosen: Vec::new() };
        for chunk in measures.chunks.iter() {
            for pair in chunk.fetch()?.to_vec::<i64>()?.chunks_exact(2) {
                counts.rows.push(pair[0] as usize);
                counts.chosen.push(pair[1] as usize);
            }
        }
        Ok(Arc::new(Select { what: self.what, counts: Some(Arc::new(counts)) }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    /// The rows are cut as they were when they were counted.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let Some(counts) = &self.counts else {
            return Err(Error::Internal("the size of a choice is not known".to_owned()));
        };
        if out.shape[1..].contains(&0) {
            // Rows without elements: no values are selected, only the number of rows matters.
            return Ok(lowering.add(&out.shape, out.dtype, ExprKind::Const(Scalar::Int(0))));
        }
        let x = lowering.cast(inputs[0], self.what.dtype(out.dtype));
        let mut grid = lowering.tile(&[x], true);
        grid.axes[0] = AxisTiling::from_lengths(&counts.rows);
        let mut operands = vec![lowering.operand(x)?];
        if let [_, mask] = *inputs {
            let mask = lowering.cast(mask, DType::Bool);
            let shape = lowering.expr(x).shape.clone();
            let mask = lowering.view(mask, &View { shape, axes: vec![AxisMap::identity(0)] });
            operands.push(lowering.operand(mask)?);
        }
        let mut tiling = grid.clone();
        tiling.axes[0] = AxisTiling::from_lengths(&counts.chosen);
        let dtype = lowering.expr(x).dtype;
        let tensor = lowering.add_tensor(TensorSpec { dtype, tiling });
        let kernel = Kernel::Whole(ChunkFunction::Select(self.what.function()));
        let offset = vec![0; grid.axes.len()];
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        let mut chosen = lowering.load(tensor);
        let better = AxisTiling::put_together(&counts.chosen);
        if better.count() < counts.chosen.len() {
            // Readers need no task of their own for each piece with few selected rows.
            let mut preferences = vec![None; out.shape.len()];
            preferences[0] = Some(better);
            chosen = lowering.add(&out.shape, dtype, ExprKind::Tiled(chosen, preferences));
        }
        Ok(lowering.cast(chosen, out.dtype))
    }
}

impl Selection {
    /// The dtype in which elements are compared.
    fn dtype(self, dtype: DType) -> DType {
        match self {
            Selection::Compress => dtype,
            Selection::DistinctOfChunks | Selection::Distinct => dtype.compute(),
        }
    }
}

/// For each piece of the rows, the number of rows and of selected ones: (pieces, 2).
#[derive(Clone, Copy, Debug)]
struct Measure {
    what: Selection,
}

impl Operator for Measure {
    fn name(&self) -> &'static str {
        match self.what {
            Selection::Compress => "count of compress",
            Selection::DistinctOfChunks | Selection::Distinct => "count of unique",
        }
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![UNKNOWN, 2], dtype: DType::I64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let rows = self.what.rows(lowering, inputs[0]);
        let arg = match *inputs {
            [_, mask] => lowering.cast(mask, DType::Bool),
            _ => {
                let dtype = self.what.dtype(lowering.expr(inputs[0]).dtype);
                lowering.cast(inputs[0], dtype)
            }
        };
        let pairs = AxisTiling::Even { len: rows.count(), chunk: 1 };
        let tiling = Tiling { axes: vec![pairs, AxisTiling::whole(2)] };
        let operand = lowering.operand(arg)?;
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling });
        let kernel = Kernel::Whole(ChunkFunction::CountSelected(self.what.function()));
        let grid = Tiling { axes: vec![rows] };
        lowering.add_kernel(kernel, grid, vec![operand], vec![StageOutput { tensor, offset: vec![0] }]);
        Ok(lowering.load(tensor))
    }
}
