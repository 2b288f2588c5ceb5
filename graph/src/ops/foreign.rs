//! Functions of chunks that the graph does not know: a user's, and reading and writing of files.

use crate::error::{Error, shape_text};
use crate::foreign::Foreign;
use crate::lower::{ExprId, ExprKind, Lowering, View};
use crate::node::{Meta, Operator};
use crate::plan::{Along, Kernel, StageOutput, TensorSpec};
use crate::shape::{agree, require_known};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::{DType, Fold, Scalar};

/// A user's function applied to each chunk; of several tensors, which have one shape, to chunks that lie in
/// the same place.
#[derive(Clone, Debug)]
pub struct MapChunk {
    /// The function.
    pub function: Arc<dyn Foreign>,
    /// The dtype of its results.
    pub dtype: DType,
    /// For each axis, the number of elements of its results; `None` for as many as the chunk has. An axis
    /// with a number is not cut.
    pub extents: Vec<Option<usize>>,
}

impl Operator for MapChunk {
    fn name(&self) -> &'static str {
        "map_chunk"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let from = &inputs[0].shape;
        if self.extents.len() != from.len() {
            let given = self.extents.len();
            let text = format!(
                "map_chunk: extents for {given} axes, the array of shape {} has {}",
                shape_text(from),
                from.len()
            );
            return Err(Error::Value(text));
        }
        if inputs.iter().any(|other| {
            other.shape.len() != from.len() || other.shape.iter().zip(from).any(|(&a, &b)| !agree(a, b))
        }) {
            let shapes = inputs.iter().map(|input| input.shape.clone()).collect();
            let reason = "chunks in the same place have one shape".to_owned();
            return Err(Error::Shape { function: self.name(), shapes, reason });
        }
        let shape = from.iter().zip(&self.extents).map(|(&from, extent)| extent.unwrap_or(from)).collect();
        Ok(Meta { shape, dtype: self.dtype })
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let mut arg = inputs[0];
        let shape = lowering.expr(arg).shape.clone();
        if self.extents.iter().any(Option::is_some) {
            let whole = |(&len, extent): (&usize, &Option<usize>)| extent.map(|_| AxisTiling::whole(len));
            let preferences = shape.iter().zip(&self.extents).map(whole).collect();
            let dtype = lowering.expr(arg).dtype;
            arg = lowering.add(&shape, dtype, ExprKind::Tiled(arg, preferences));
        }
        let args = [&[arg], &inputs[1..]].concat();
        let grid = lowering.tile(&args, true);
        let mut tiling = grid.clone();
        for (axis, extent) in self.extents.iter().enumerate() {
            if let Some(extent) = extent {
                tiling.axes[axis] = AxisTiling::whole(*extent);
            }
        }
        let operands = args.iter().map(|&arg| lowering.operand(arg)).collect::<Result<Vec<_>, Error>>()?;
        let tensor = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling });
        let kernel = lowering.foreign(&self.function);
        let offset = vec![0; shape.len()];
        lowering.add_kernel(kernel, grid, operands, vec![StageOutput { tensor, offset }]);
        Ok(lowering.load(tensor))
    }
}

/// A user's function applied to each chunk with its neighbouring elements; it gives the chunk alone.
///
/// The inputs are the tensor that is cut, and the one whose elements are read: the same, which has no
/// neighbours beyond its ends, or the same with borders of the depth around it.
#[derive(Clone, Debug)]
pub struct MapOverlap {
    /// The function.
    pub function: Arc<dyn Foreign>,
    /// The dtype of its results.
    pub dtype: DType,
    /// For each axis, the number of neighbours before a chunk and behind it.
    pub depth: Vec<[usize; 2]>,
    /// Whether the second input has borders.
    pub has_borders: bool,
}

impl Operator for MapOverlap {
    fn name(&self) -> &'static str {
        "map_overlap"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let [own, read] = [&inputs[0].shape, &inputs[1].shape];
        require_known(self.name(), own)?;
        let wide = |(&extent, depth): (&usize, &[usize; 2])| {
            if self.has_borders { extent + depth[0] + depth[1] } else { extent }
        };
        let expected: Vec<usize> = own.iter().zip(&self.depth).map(wide).collect();
        if self.depth.len() == own.len() && expected == *read {
            Ok(Meta { shape: own.clone(), dtype: self.dtype })
        } else {
            Err(Error::Internal("map_overlap: borders of another depth".to_owned()))
        }
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let grid = lowering.tile(&inputs[..1], true);
        // Elements near the ends of chunks are read by several tasks, and made once.
        let read = lowering.stored(inputs[1])?;
        let halo = |(axis, &[before, behind]): (usize, &[usize; 2])| {
            let len = lowering.expr(read).shape[axis];
            // With borders the elements that a chunk has stand behind those before it.
            let (before, after) = if self.has_borders { (0, before + behind) } else { (before, behind) };
            (axis, Along::Halo { before, after, len })
        };
        let along = self.depth.iter().enumerate().map(halo).collect();
        let operand = lowering.operand_along(read, along)?;
        let kernel = lowering.foreign(&self.function);
        let tensor = lowering.add_stage_tensor(kernel, grid, vec![operand], out.dtype);
        Ok(lowering.load(tensor))
    }
}

/// A tensor whose chunks a function makes from their place alone.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Source {
    pub function: Arc<dyn Foreign>,
    pub shape: Vec<usize>,
    pub dtype: DType,
    /// Extents of a chunk, if the function works best on these.
    pub cut: Option<Vec<usize>>,
}

impl Operator for Source {
    fn name(&self) -> &'static str {
        "source"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: self.shape.clone(), dtype: self.dtype })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, _: &[ExprId]) -> Result<ExprId, Error> {
        let alike = lowering.add(&out.shape, out.dtype, ExprKind::Const(Scalar::Int(0)));
        let grid = match &self.cut {
            None => lowering.tile(&[alike], true),
            Some(cut) => {
                let axes = out.shape.iter().zip(cut);
                let even = |(&len, &chunk): (&usize, &usize)| AxisTiling::Even {
                    len,
                    chunk: chunk.clamp(1, len.max(1)),
                };
                Tiling { axes: axes.map(even).collect() }
            }
        };
        let kernel = lowering.foreign(&self.function);
        let tensor = lowering.add_stage_tensor(kernel, grid, vec![], out.dtype);
        Ok(lowering.load(tensor))
    }
}

/// A function that consumes every chunk and returns a number for each; the result is their sum.
#[derive(Clone, Debug)]
pub struct Sink {
    /// Returns one int64 for each chunk, of extent 1 along every axis.
    pub function: Arc<dyn Foreign>,
}

impl Operator for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: Vec::new(), dtype: DType::I64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let grid = lowering.tile(inputs, true);
        let one_each = |axis: &AxisTiling| AxisTiling::Even { len: axis.count(), chunk: 1 };
        let tiling = Tiling { axes: grid.axes.iter().map(one_each).collect() };
        let operand = lowering.operand(inputs[0])?;
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::I64, tiling });
        let kernel = lowering.foreign(&self.function);
        let axes: Vec<usize> = (0..grid.axes.len()).collect();
        let offset = vec![0; axes.len()];
        lowering.add_kernel(kernel, grid, vec![operand], vec![StageOutput { tensor, offset }]);
        let numbers = lowering.load(tensor);
        if axes.is_empty() {
            return Ok(numbers);
        }
        let sums = lowering.fold(Fold::Sum, &[numbers], &axes)?;
        let sum = lowering.load(sums[0]);
        let ones = lowering.expr(sum).shape.clone();
        Ok(lowering.view(sum, &View::squeeze(&ones, &axes)))
    }
}

impl Lowering<'_> {
    /// The kernel that calls a function; adds the function to the plan.
    fn foreign(&mut self, function: &Arc<dyn Foreign>) -> Kernel {
        Kernel::Foreign {
            function: self.add_foreign(function),
            what: function.describe(),
            scratch_bytes: function.scratch_bytes(),
        }
    }
}
