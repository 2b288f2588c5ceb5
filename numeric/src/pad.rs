//! Tensors with borders around them: NumPy's `pad`.

use crate::create::linspace_between;
use crate::index::{Index, slice};
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::shape::UNKNOWN;
use tharsis_kernels::{DType, Kind, Scalar};

/// Elements of the border: NumPy's `mode`. Pairs are for each axis: the border before it and the one behind.
#[derive(Clone, Debug, PartialEq)]
pub enum Padding {
    /// These numbers.
    Constant(Vec<[Scalar; 2]>),
    /// The elements on the edge.
    Edge,
    /// Numbers at equal distances, from these on the outside to the elements on the edge.
    LinearRamp(Vec<[Scalar; 2]>),
    /// The largest of as many elements from the edge on, or of all.
    Maximum(Option<Vec<[usize; 2]>>),
    /// Their mean.
    Mean(Option<Vec<[usize; 2]>>),
    /// Their median.
    Median(Option<Vec<[usize; 2]>>),
    /// The smallest of them.
    Minimum(Option<Vec<[usize; 2]>>),
    /// The elements behind the edge, mirrored; if `odd`, what they are away from the edge with the other
    /// sign.
    Reflect {
        /// Whether it is a point reflection.
        odd: bool,
    },
    /// As `Reflect`, with the elements on the edge again.
    Symmetric {
        /// Whether it is a point reflection.
        odd: bool,
    },
    /// The elements from the other end on.
    Wrap,
}

impl Tensor {
    /// NumPy's `pad`: with borders of these widths before and behind each axis; any dtype, which stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, pad::Padding};
    /// let x = arange(3);
    /// assert_eq!(x.pad(&[[1, 2]], &Padding::Edge).to_vec::<i64>()?, [0, 0, 1, 2, 2, 2]);
    /// assert_eq!(x.pad(&[[2, 0]], &Padding::Reflect { odd: false }).to_vec::<i64>()?, [2, 1, 0, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless there is a pair for each axis, and if an axis without elements is to be extended
    /// by anything but numbers.
    ///
    /// # Distributed
    /// Borders are views of the parts that they repeat; only statistics of a whole axis read all of it.
    #[track_caller]
    pub fn pad(&self, widths: &[[usize; 2]], with: &Padding) -> Tensor {
        let meta = carry!(self.meta());
        let rank = meta.shape.len();
        let given = match with {
            Padding::Constant(pairs) | Padding::LinearRamp(pairs) => pairs.len(),
            Padding::Maximum(Some(pairs))
            | Padding::Mean(Some(pairs))
            | Padding::Median(Some(pairs))
            | Padding::Minimum(Some(pairs)) => pairs.len(),
            _ => rank,
        };
        if widths.len() != rank || given != rank {
            let text = format!("pad: {} pairs for an array of {rank} axes", widths.len().min(given));
            return Tensor::refused(GraphError::Value(text), &[self]);
        }
        let wide = |(&extent, width): (&usize, &[usize; 2])| match extent {
            UNKNOWN => UNKNOWN,
            extent => extent.saturating_add(width[0]).saturating_add(width[1]),
        };
        let shape: Vec<usize> = meta.shape.iter().zip(widths).map(wide).collect();
        carry!(tharsis_graph::shape::check_shape(&shape), self);
        if !all_known(&[self]) {
            let (meta, sides, kept) = (carry!(self.meta_with(shape)), widths.to_vec(), with.clone());
            return late("pad", (widths, with), meta, &[self], move |x| x[0].pad(&sides, &kept));
        }
        let is_filled = matches!(with, Padding::Constant(_));
        let mut made = self.clone();
        for (axis, &width) in widths.iter().enumerate().filter(|(_, width)| **width != [0, 0]) {
            if meta.shape[axis] == 0 && !is_filled {
                let text =
                    format!("can't extend empty axis {axis} using modes other than 'constant' or 'empty'");
                return Tensor::refused(GraphError::Value(text), &[self]);
            }
            made = made.padded(axis, width, with);
        }
        made
    }

    /// With borders along one axis.
    #[track_caller]
    fn padded(&self, axis: usize, width: [usize; 2], with: &Padding) -> Tensor {
        match with {
            Padding::Reflect { odd } => self.mirrored(axis, width, *odd, 1),
            Padding::Symmetric { odd } => self.mirrored(axis, width, *odd, 0),
            Padding::Wrap => self.wrapped(axis, width),
            _ => {
                let [before, behind] = [0, 1].map(|side| self.border(axis, side, width[side], with));
                let parts = [&before, self, &behind];
                let dtype = carry!(self.dtype());
                let parts: Vec<Tensor> = parts.iter().map(|part| cast(part, dtype)).collect();
                concatenate(&parts.iter().collect::<Vec<_>>(), axis as i64)
            }
        }
    }

    /// The border of one side.
    #[track_caller]
    fn border(&self, axis: usize, side: usize, width: usize, with: &Padding) -> Tensor {
        let meta = carry!(self.meta());
        let mut shape = meta.shape.clone();
        shape[axis] = width;
        let extent = meta.shape[axis];
        if width == 0 {
            return crate::create::full(&shape, 0i64, meta.dtype);
        }
        let from_edge = |count: usize| {
            let count = count.min(extent);
            part(self, axis, if side == 0 { 0..count } else { extent - count..extent })
        };
        let whole = |pairs: &Option<Vec<[usize; 2]>>| {
            from_edge(pairs.as_ref().map_or(extent, |pairs| pairs[axis][side]))
        };
        let along = || Axes::from(axis as i64).keepdims();
        let nearest = |x: Tensor| if meta.dtype.kind() < Kind::Float { x.rint() } else { x };
        let made = match with {
            Padding::Constant(pairs) => {
                cast(&Tensor::number(pairs[axis][side]), meta.dtype).broadcast_to(&shape)
            }
            Padding::Maximum(pairs) => whole(pairs).max(along()),
            Padding::Mean(pairs) => nearest(whole(pairs).mean(along())),
            Padding::Median(pairs) => nearest(whole(pairs).median(along())),
            Padding::Minimum(pairs) => whole(pairs).min(along()),
            Padding::LinearRamp(pairs) => {
                let edge = from_edge(1).squeeze(Some(&[axis as i64]));
                let outside = Tensor::number(pairs[axis][side]);
                let outside = cast(&outside, if meta.dtype.is_complex() { meta.dtype } else { DType::F64 });
                let ramp = linspace_between(&outside, &edge, width, false).moveaxis(0, axis as i64);
                let ramp = if meta.dtype.kind() < Kind::Float { ramp.floor() } else { ramp };
                if side == 0 { ramp } else { ramp.flip(Some(&[axis as i64])) }
            }
            _ => from_edge(1),
        };
        cast(&made, meta.dtype).broadcast_to(&shape)
    }

    /// With mirrored borders; the edge itself is left out if `skip` is 1.
    #[track_caller]
    fn mirrored(&self, axis: usize, mut width: [usize; 2], odd: bool, skip: usize) -> Tensor {
        let extent = carry!(self.shape())[axis];
        if extent == 1 && skip == 1 {
            return self.padded(axis, width, &Padding::Edge);
        }
        let mut made = self.clone();
        while width != [0, 0] {
            let held = carry!(made.shape())[axis];
            // Only whole periods are mirrored at once, so that the new edge is one where it mirrors again.
            let period = extent - skip;
            let reach = (held - skip) / period * period;
            let counts = width.map(|width| width.min(reach));
            let side = |range: std::ops::Range<usize>, edge: usize| {
                let copy = part(&made, axis, range).flip(Some(&[axis as i64]));
                if odd { part(&made, axis, edge..edge + 1).multiply(2).subtract(copy) } else { copy }
            };
            let before = side(skip..skip + counts[0], 0);
            let behind = side(held - skip - counts[1]..held - skip, held - 1);
            made = concatenate(&[&before, &made, &behind], axis as i64);
            width = [width[0] - counts[0], width[1] - counts[1]];
        }
        made
    }

    #[track_caller]
    fn wrapped(&self, axis: usize, width: [usize; 2]) -> Tensor {
        let extent = carry!(self.shape())[axis];
        let first = (extent - width[0] % extent) % extent;
        let count = width[0] + extent + width[1];
        let mut times = vec![1; carry!(self.ndim())];
        times[axis] = (first + count).div_ceil(extent);
        part(&self.tile(&times), axis, first..first + count)
    }
}

/// Part of a tensor along an axis.
#[track_caller]
fn part(x: &Tensor, axis: usize, range: std::ops::Range<usize>) -> Tensor {
    let mut index = vec![Index::from(..); axis];
    index.push(slice(range.start as i64, range.end as i64, 1));
    x.get(&index)
}
