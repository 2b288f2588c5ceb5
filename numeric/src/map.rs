//! A user's function applied to each chunk.

use crate::tensor::{Tensor, carry};
use ndarray::{ArrayD, IxDyn};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tharsis_graph::ops::MapChunk;
use tharsis_graph::{Error as GraphError, Foreign, ForeignName};
use tharsis_kernels::{Chunk, DType, Element, Place};

/// Return types of a function of chunks: an array, or a `Result` with one.
pub trait Mapped {
    /// The type of its elements.
    type Element: Element;

    /// The array, or the error text of the function.
    ///
    /// # Errors
    /// The error text of the function.
    fn into_array(self) -> std::result::Result<ArrayD<Self::Element>, String>;
}

impl<T: Element> Mapped for ArrayD<T> {
    type Element = T;

    fn into_array(self) -> std::result::Result<ArrayD<T>, String> {
        Ok(self)
    }
}

impl<T: Element, E: fmt::Display> Mapped for std::result::Result<ArrayD<T>, E> {
    type Element = T;

    fn into_array(self) -> std::result::Result<ArrayD<T>, String> {
        self.map_err(|error| error.to_string())
    }
}

impl Tensor {
    /// Applies a function of the program to each chunk. The function returns an array of the chunk's shape;
    /// the result has the dtype of its elements.
    ///
    /// The function must return the same array for the same chunk: it may be called more than once. It runs
    /// on threads of this process; on a runtime's workers, only remote functions can run.
    ///
    /// ```
    /// use ndarray::ArrayD;
    /// use tharsis_numeric::arange;
    ///
    /// let x = arange(6).map_chunk(|chunk: ArrayD<i64>| chunk.mapv(|i| (i * i) as f32));
    /// assert_eq!(x.dtype()?, tharsis_numeric::DType::F32);
    /// assert_eq!(x.fetch::<f32>()?[[5]], 25.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` if the function takes another dtype. When it runs: `ValueError` if it returns another
    /// shape, `RuntimeError` if it fails or panics.
    #[track_caller]
    pub fn map_chunk<T: Element, R: Mapped + 'static>(
        &self,
        function: impl Fn(ArrayD<T>) -> R + Send + Sync + 'static,
    ) -> Tensor {
        self.map_chunk_to(&vec![None; carry!(self.ndim())], function)
    }

    /// As [`Tensor::map_chunk`], for a function that changes extents: `extents` has for each axis the extent
    /// of the returned array, `None` for that of the chunk. An axis with a number is not cut, so each chunk
    /// has all of it.
    ///
    /// ```
    /// use ndarray::{ArrayD, Axis};
    /// use tharsis_numeric::ones;
    ///
    /// let rows = |chunk: ArrayD<f64>| chunk.sum_axis(Axis(1)).insert_axis(Axis(1)).into_dyn();
    /// let sums = ones(&[1000, 3]).map_chunk_to(&[None, Some(1)], rows);
    /// assert_eq!(sums.shape()?, [1000, 1]);
    /// assert_eq!(sums.sum(..).item()?.to_f64(), 3000.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::map_chunk`]; `ValueError` if there are not as many extents as axes.
    #[track_caller]
    pub fn map_chunk_to<T: Element, R: Mapped + 'static>(
        &self,
        extents: &[Option<usize>],
        function: impl Fn(ArrayD<T>) -> R + Send + Sync + 'static,
    ) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype != T::DTYPE {
            let text = format!("map_chunk: the function takes {}, the array has {dtype}", T::DTYPE);
            return Tensor::refused(GraphError::Type(text), &[self]);
        }
        let function = Arc::new(Closure { function, types: PhantomData });
        self.map_foreign(extents, function, R::Element::DTYPE)
    }

    /// As [`Tensor::map_chunk_to`], for a [`Foreign`] function, which may have a name that other processes
    /// know; it returns elements of `dtype`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tharsis_graph::{Error, Foreign, ForeignName};
    /// use tharsis_kernels::{Chunk, Place};
    /// use tharsis_numeric::{DType, arange};
    ///
    /// #[derive(Debug)]
    /// struct Same;
    ///
    /// impl Foreign for Same {
    ///     fn name(&self) -> Option<ForeignName> {
    ///         None
    ///     }
    ///
    ///     fn describe(&self) -> String {
    ///         "same".to_owned()
    ///     }
    ///
    ///     fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
    ///         Ok(args[0].clone())
    ///     }
    /// }
    ///
    /// let x = arange(3).map_foreign(&[None], Arc::new(Same), DType::I64);
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there are not as many extents as axes.
    #[track_caller]
    pub fn map_foreign(&self, extents: &[Option<usize>], function: Arc<dyn Foreign>, dtype: DType) -> Tensor {
        Tensor::apply(MapChunk { function, dtype, extents: extents.to_vec() }, &[self])
    }
}

/// A function of this process.
struct Closure<F, T, R> {
    function: F,
    types: PhantomData<fn(T) -> R>,
}

impl<F, T, R> fmt::Debug for Closure<F, T, R> {
    /// The address is the identity of a closure: it lives as long as the nodes that compare it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Closure({:p})", std::ptr::from_ref(self))
    }
}

impl<F, T, R> Foreign for Closure<F, T, R>
where
    F: Fn(ArrayD<T>) -> R + Send + Sync,
    T: Element,
    R: Mapped,
{
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "map_chunk".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> std::result::Result<Chunk, GraphError> {
        let chunk = array_of::<T>(&args[0])?;
        let failed =
            |reason| GraphError::Function { function: "the function of map_chunk".to_owned(), reason };
        let made = catch_unwind(AssertUnwindSafe(|| (self.function)(chunk).into_array()));
        let made = made.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
        chunk_of(&made.map_err(failed)?)
    }
}

/// The elements of a chunk.
pub(crate) fn array_of<T: Element>(chunk: &Chunk) -> std::result::Result<ArrayD<T>, GraphError> {
    ArrayD::from_shape_vec(IxDyn(chunk.shape()), chunk.to_vec::<T>()?)
        .map_err(|error| GraphError::Internal(error.to_string()))
}

/// An array as a chunk.
pub(crate) fn chunk_of<T: Element>(array: &ArrayD<T>) -> std::result::Result<Chunk, GraphError> {
    Ok(match array.as_slice() {
        Some(elements) => Chunk::from_elements(array.shape(), elements)?,
        None => Chunk::from_elements(array.shape(), &array.iter().copied().collect::<Vec<T>>())?,
    })
}

/// Message of a panic.
///
/// ```
/// let panic = std::panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
/// assert_eq!(tharsis_numeric::map::panic_text(&*panic), "on purpose");
/// ```
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::default_rng;
    use crate::{Chunks, LocalExecutor, arange, zeros};

    fn on(threads: usize) -> LocalExecutor {
        LocalExecutor::sized(threads, 1 << 28)
    }

    #[test]
    fn each_chunk_is_given_once_and_the_results_are_put_in_place() {
        let x = default_rng(1).random(&[40, 30]);
        let cut = x.rechunk(Chunks::PerAxis(vec![7, 11]));
        let doubled = cut.map_chunk(|chunk: ArrayD<f64>| chunk * 2.0);
        for threads in [1, 3] {
            let found = doubled.fetch_on::<f64>(&on(threads)).unwrap();
            assert_eq!(found, (&x * 2.0).fetch::<f64>().unwrap());
        }
        // Operations before and after it run on the same chunks.
        let sum = (&cut + 1.0).map_chunk(|chunk: ArrayD<f64>| chunk.mapv(f64::sqrt));
        let expected = (&x + 1.0).sqrt().sum(..).item().unwrap().to_f64();
        assert!((sum.sum(..).item().unwrap().to_f64() - expected).abs() < 1e-9);
    }

    #[test]
    fn an_axis_with_a_new_extent_is_whole_in_each_chunk() {
        let x = arange(24).reshape(&[6, 4]).rechunk(Chunks::Each(2));
        let ends = |chunk: ArrayD<i64>| {
            assert_eq!(chunk.shape()[1], 4);
            chunk.select(ndarray::Axis(1), &[0, 3])
        };
        let found = x.map_chunk_to(&[None, Some(2)], ends);
        assert_eq!(found.shape().unwrap(), [6, 2]);
        assert_eq!(
            found.fetch::<i64>().unwrap().into_raw_vec_and_offset().0,
            [0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23]
        );
    }

    #[test]
    fn what_is_not_as_declared_is_a_typed_error() {
        let x = zeros(&[5]);
        let wrong = x.map_chunk(|chunk: ArrayD<f32>| chunk).check().unwrap_err();
        assert_eq!(wrong.class(), "TypeError");
        let shorter = x.map_chunk(|_: ArrayD<f64>| ArrayD::<f64>::zeros(IxDyn(&[2])));
        let error = shorter.fetch::<f64>().unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(
            matches!(error.cause(), GraphError::Declared { declared, found, .. } if declared == &[5] && found == &[2])
        );
        assert_eq!(
            x.map_chunk_to(&[], |chunk: ArrayD<f64>| chunk).check().unwrap_err().class(),
            "ValueError"
        );
    }

    #[test]
    fn a_function_that_fails_or_panics_fails_the_program_and_nothing_else() {
        let x = zeros(&[5]);
        let failing = x.map_chunk(|_: ArrayD<f64>| Err::<ArrayD<f64>, _>("no luck"));
        let error = failing.fetch::<f64>().unwrap_err();
        assert_eq!(error.class(), "RuntimeError");
        assert!(error.to_string().contains("no luck"), "{error}");
        #[allow(unreachable_code)]
        let panicking = x.map_chunk(|_: ArrayD<f64>| -> ArrayD<f64> { panic!("on purpose") });
        let error = panicking.fetch::<f64>().unwrap_err();
        assert!(error.to_string().contains("it panicked: on purpose"), "{error}");
        assert!(x.fetch::<f64>().is_ok());
    }
}
