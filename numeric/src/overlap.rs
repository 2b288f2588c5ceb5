//! A user's functions applied to lines, to chunks of several tensors, and to chunks with their neighbours.
//!
//! As in [`crate::map`], the functions run on threads of this process, and must give the same for the same
//! arguments.

use crate::joined::{all_known, broadcast_arrays};
use crate::late::late;
use crate::map::{Mapped, array_of, chunk_of, panic_text};
use crate::pad::Padding;
use crate::tensor::{Tensor, carry};
use ndarray::{ArrayD, Axis, IxDyn, Slice};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tharsis_graph::ops::{MapChunk, MapOverlap};
use tharsis_graph::shape::normalize_axis;
use tharsis_graph::{Error as GraphError, Foreign, ForeignName, Meta};
use tharsis_kernels::{Chunk, Element, Place, Scalar};

impl Tensor {
    /// NumPy's `apply_along_axis`: a function of a line applied to each line along an axis; it gives a line
    /// of `extent` elements, which stands in the place of the other.
    ///
    /// ```
    /// use ndarray::ArrayD;
    /// use tharsis_numeric::arange;
    /// let ends = |line: ArrayD<i64>| ndarray::arr1(&[line[0], line[line.len() - 1]]).into_dyn();
    /// let x = arange(6).reshape(&[2, 3]).apply_along_axis(1, 2, ends);
    /// assert_eq!(x.to_vec::<i64>()?, [0, 2, 3, 5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; as [`Tensor::map_chunk`], and `ValueError` when it runs for lines of another extent.
    ///
    /// # Distributed
    /// The axis is not cut: a task has whole lines.
    #[track_caller]
    pub fn apply_along_axis<T: Element, R: Mapped + 'static>(
        &self,
        axis: i64,
        extent: usize,
        function: impl Fn(ArrayD<T>) -> R + Send + Sync + 'static,
    ) -> Tensor {
        let rank = carry!(self.ndim());
        let at = carry!(normalize_axis(axis, rank), self);
        let mut extents = vec![None; rank];
        extents[at] = Some(extent);
        self.map_chunk_to(&extents, move |chunk: ArrayD<T>| lines(&chunk, at, extent, &function))
    }

    /// A function of the program applied to each chunk with its neighbours: `depth` has for each axis their
    /// number before the chunk and behind it. The function gives an array of the shape that it gets; the
    /// neighbours are cut off.
    ///
    /// `boundary` says what stands beyond the ends of the tensor: borders as [`Tensor::pad`] makes them, such
    /// as `Constant`, `Edge`, `Wrap` for periodic and `Reflect` or `Symmetric` for mirrored ones. Without it
    /// chunks on an end have fewer neighbours.
    ///
    /// ```
    /// use ndarray::ArrayD;
    /// use tharsis_numeric::{arange, pad::Padding};
    /// let smooth = |x: ArrayD<i64>| {
    ///     let at = |i: usize| x[i.min(x.len() - 1)];
    ///     ArrayD::from_shape_fn(x.raw_dim(), |i| at(i[0].saturating_sub(1)) + at(i[0]) + at(i[0] + 1))
    /// };
    /// let x = arange(4).map_overlap(&[[1, 1]], Some(&Padding::Edge), smooth);
    /// assert_eq!(x.to_vec::<i64>()?, [1, 3, 6, 8]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::map_chunk`] and [`Tensor::pad`]; `ValueError` unless there is a pair for each axis.
    ///
    /// # Distributed
    /// A task reads its chunk and the parts of others within the depth; borders are made once.
    #[track_caller]
    pub fn map_overlap<T: Element, R: Mapped + 'static>(
        &self,
        depth: &[[usize; 2]],
        boundary: Option<&Padding>,
        function: impl Fn(ArrayD<T>) -> R + Send + Sync + 'static,
    ) -> Tensor {
        let meta = carry!(self.meta());
        if depth.len() != meta.shape.len() {
            let text = format!("map_overlap: {} pairs for {} axes", depth.len(), meta.shape.len());
            return Tensor::bad_value(text, &[self]);
        }
        if meta.dtype != T::DTYPE {
            let text = format!("map_overlap: the function takes {}, the array has {}", T::DTYPE, meta.dtype);
            return Tensor::refused(GraphError::Type(text), &[self]);
        }
        let (depth, has_borders) = (depth.to_vec(), boundary.is_some());
        let trimmed = {
            let depth = depth.clone();
            move |place: Place<'_>, args: &[Chunk]| {
                let made = function(array_of::<T>(&args[0])?).into_array().map_err(failed)?;
                let declared = args[0].shape();
                if made.shape() != declared {
                    let (found, declared) = (made.shape().to_vec(), declared.to_vec());
                    let (function, dtype) = ("map_overlap".to_owned(), R::Element::DTYPE);
                    return Err(GraphError::Declared {
                        function,
                        declared,
                        dtype,
                        found,
                        found_dtype: dtype,
                    });
                }
                let part = |axis: usize| {
                    let before = depth[axis][0];
                    let start = if has_borders { before } else { before.min(place.origin[axis]) };
                    Slice::from(start..start + place.extents[axis])
                };
                chunk_of(&made.slice_each_axis(|axis| part(axis.axis.index())).to_owned())
            }
        };
        let function: Arc<dyn Foreign> = Arc::new(Closure { function: trimmed, what: "map_overlap" });
        overlapped(self, depth, boundary.cloned(), &function, R::Element::DTYPE)
    }

    /// As [`Tensor::map_chunk`], for a function of chunks of this tensor and of another one, which may have
    /// elements of other types; the tensors are broadcast to one shape.
    ///
    /// ```
    /// use ndarray::ArrayD;
    /// use tharsis_numeric::{arange, array};
    /// let scaled = |x: ArrayD<i64>, y: ArrayD<f64>| x.mapv(|x| x as f64) * y;
    /// let x = arange(3).map_chunk_with(&array([0.5]), scaled);
    /// assert_eq!(x.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::map_chunk`]; `ValueError` if the shapes do not broadcast.
    #[track_caller]
    pub fn map_chunk_with<T: Element, U: Element, R: Mapped + 'static>(
        &self,
        other: &Tensor,
        function: impl Fn(ArrayD<T>, ArrayD<U>) -> R + Send + Sync + 'static,
    ) -> Tensor {
        for (tensor, dtype) in [(self, T::DTYPE), (other, U::DTYPE)] {
            let found = carry!(tensor.dtype());
            if found != dtype {
                let text = format!("map_chunk_with: the function takes {dtype}, the array has {found}");
                return Tensor::refused(GraphError::Type(text), &[self, other]);
            }
        }
        let of_both = move |_: Place<'_>, args: &[Chunk]| {
            let made = function(array_of::<T>(&args[0])?, array_of::<U>(&args[1])?);
            chunk_of(&made.into_array().map_err(failed)?)
        };
        let function: Arc<dyn Foreign> = Arc::new(Closure { function: of_both, what: "map_chunk_with" });
        mapped(&[self, other], &function, R::Element::DTYPE)
    }
}

/// As [`Tensor::map_chunk`], for a function of chunks of several tensors of one dtype, which are broadcast to
/// one shape.
///
/// ```
/// use ndarray::ArrayD;
/// use tharsis_numeric::{arange, overlap::map_chunks};
/// let sum = |parts: &[ArrayD<i64>]| parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum + part);
/// let x = map_chunks(&[&arange(3), &arange(3), &arange(1)], sum);
/// assert_eq!(x.to_vec::<i64>()?, [0, 2, 4]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`Tensor::map_chunk`]; `ValueError` for no tensors, and if the shapes do not broadcast.
#[track_caller]
pub fn map_chunks<T: Element, R: Mapped + 'static>(
    tensors: &[&Tensor],
    function: impl Fn(&[ArrayD<T>]) -> R + Send + Sync + 'static,
) -> Tensor {
    if tensors.is_empty() {
        return Tensor::bad_value("map_chunks: no tensors are given", &[]);
    }
    for tensor in tensors {
        let found = carry!(tensor.dtype());
        if found != T::DTYPE {
            let text = format!("map_chunks: the function takes {}, the array has {found}", T::DTYPE);
            return Tensor::refused(GraphError::Type(text), tensors);
        }
    }
    let of_all = move |_: Place<'_>, args: &[Chunk]| {
        let chunks = args.iter().map(array_of::<T>).collect::<Result<Vec<_>, GraphError>>()?;
        chunk_of(&function(&chunks).into_array().map_err(failed)?)
    };
    let function: Arc<dyn Foreign> = Arc::new(Closure { function: of_all, what: "map_chunks" });
    mapped(tensors, &function, R::Element::DTYPE)
}

/// A function applied to chunks of tensors that are broadcast to one shape.
#[track_caller]
fn mapped(tensors: &[&Tensor], function: &Arc<dyn Foreign>, dtype: tharsis_kernels::DType) -> Tensor {
    if !all_known(tensors) {
        let shapes = tensors.iter().map(|tensor| tensor.shape()).collect::<crate::Result<Vec<_>>>();
        let shape = carry!(tharsis_graph::shape::broadcast("map_chunks", &carry!(shapes)));
        let function = function.clone();
        let text = format!("{function:?}");
        return late("map_chunks", text, Meta { shape, dtype }, tensors, move |x| {
            mapped(&x.iter().collect::<Vec<_>>(), &function, dtype)
        });
    }
    let wide = carry!(broadcast_arrays(tensors));
    let extents = vec![None; carry!(wide[0].ndim())];
    let function = function.clone();
    Tensor::apply(MapChunk { function, dtype, extents }, &wide.iter().collect::<Vec<_>>())
}

/// A function applied to chunks with their neighbours.
#[track_caller]
fn overlapped(
    x: &Tensor,
    depth: Vec<[usize; 2]>,
    boundary: Option<Padding>,
    function: &Arc<dyn Foreign>,
    dtype: tharsis_kernels::DType,
) -> Tensor {
    if !all_known(&[x]) {
        let meta = Meta { shape: carry!(x.shape()).to_vec(), dtype };
        let function = function.clone();
        let text = format!("{function:?} {depth:?} {boundary:?}");
        return late("map_overlap", text, meta, &[x], move |x| {
            overlapped(&x[0], depth.clone(), boundary.clone(), &function, dtype)
        });
    }
    let read = boundary.as_ref().map_or_else(|| x.clone(), |boundary| x.pad(&depth, boundary));
    let (function, has_borders) = (function.clone(), boundary.is_some());
    Tensor::apply(MapOverlap { function, dtype, depth, has_borders }, &[x, &read])
}

/// A function of lines applied to the lines of a chunk.
fn lines<T: Element, R: Mapped>(
    chunk: &ArrayD<T>,
    axis: usize,
    extent: usize,
    function: &impl Fn(ArrayD<T>) -> R,
) -> Result<ArrayD<R::Element>, String> {
    let mut shape = chunk.shape().to_vec();
    shape[axis] = extent;
    let mut made = ArrayD::from_elem(IxDyn(&shape), R::Element::from_scalar(Scalar::Int(0)));
    for (line, mut lane) in chunk.lanes(Axis(axis)).into_iter().zip(made.lanes_mut(Axis(axis))) {
        let line = function(line.to_owned().into_dyn()).into_array()?;
        if line.len() != extent {
            return Err(format!("it gave a line of {} elements, not {extent}", line.len()));
        }
        lane.iter_mut().zip(&line).for_each(|(to, from)| *to = *from);
    }
    Ok(made)
}

fn failed(reason: String) -> GraphError {
    GraphError::Function { function: "a function of chunks".to_owned(), reason }
}

/// A function of this process.
struct Closure<F> {
    function: F,
    what: &'static str,
}

impl<F> fmt::Debug for Closure<F> {
    /// The address is the identity of a closure: it lives as long as the nodes that compare it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:p})", self.what, std::ptr::from_ref(self))
    }
}

impl<F> Foreign for Closure<F>
where
    F: Fn(Place<'_>, &[Chunk]) -> Result<Chunk, GraphError> + Send + Sync,
{
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        self.what.to_owned()
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, GraphError> {
        let made = catch_unwind(AssertUnwindSafe(|| (self.function)(place, args)));
        made.unwrap_or_else(|panic| Err(failed(format!("it panicked: {}", panic_text(&*panic)))))
    }
}
