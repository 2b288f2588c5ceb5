//! Remote functions applied to chunks.
//!
//! A plan names the function by its id, as a task class does; a worker has it, since it is the same program.
//! It is called inside the task that has the chunk, once per task. So a chunk is not copied into the store to
//! be an argument, and failures are handled as in every task of a tensor.

use crate::tensor::{GraphError, Tensor};
use bytes::Bytes;
use ndarray::IxDyn;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tharsis_graph::{Foreign, ForeignName};
use tharsis_kernels::{Buffer, Chunk, DType, Place};
use tharsis_numeric::Error;
use tharsis_numeric::map::panic_text;
use tharsis_remote::generated::{Definition, Remote};
use tharsis_remote::{Array, Element, Failure};
use tharsis_types::FunctionId;

/// Remote functions applied to the chunks of a tensor.
pub trait MapRemote: Sized {
    /// Applies a remote function to each chunk: a function of one [`Array`] to an array of the same shape, or
    /// to a `Result` with one. Its parameter has the dtype of the tensor; its return type gives the dtype of
    /// the result.
    ///
    /// Each call is part of a separate task, with the options of the executor. It must return the same array
    /// for the same chunk, since a task may run again.
    ///
    /// ```
    /// use tharsis::prelude::*;
    /// use tharsis::tensor::{self, MapRemote};
    ///
    /// #[remote]
    /// fn root(chunk: Array<f64>) -> Array<f64> {
    ///     chunk.into_owned().mapv(f64::sqrt).into()
    /// }
    ///
    /// # fn main() -> Result<(), Error> {
    /// let _runtime = tharsis::init().start()?;
    /// let roots = tensor::full(&[1000], 9.0, tensor::DType::F64).map_remote::<root>();
    /// assert_eq!(roots.sum(..).item()?.to_f64(), 3000.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TypeError` if the function has other types. When it runs: `ValueError` if it returns another shape,
    /// `RuntimeError` if it fails or panics.
    #[track_caller]
    fn map_remote<F: Remote>(&self) -> Self;

    /// As [`MapRemote::map_remote`], for a function that changes extents: see
    /// [`Tensor::map_chunk_to`](crate::tensor::Tensor::map_chunk_to).
    ///
    /// # Errors
    /// As [`MapRemote::map_remote`]; `ValueError` if there are not as many extents as axes.
    #[track_caller]
    fn map_remote_to<F: Remote>(&self, extents: &[Option<usize>]) -> Self;
}

impl MapRemote for Tensor {
    #[track_caller]
    fn map_remote<F: Remote>(&self) -> Tensor {
        match self.ndim() {
            Ok(rank) => self.map_remote_to::<F>(&vec![None; rank]),
            Err(error) => Tensor::from(error),
        }
    }

    #[track_caller]
    fn map_remote_to<F: Remote>(&self, extents: &[Option<usize>]) -> Tensor {
        let definition = F::DEFINITION;
        let from = match self.dtype() {
            Ok(dtype) => dtype,
            Err(error) => return Tensor::from(error),
        };
        let Some((dtype, function)) = typed(definition, from) else {
            let (path, signature) = (definition.path(), definition.signature);
            let text = format!(
                "map_remote: {path} is {signature}, an array of {from} wants a function of one Array of that type to an Array"
            );
            return Tensor::from(Error::here(GraphError::Type(text)));
        };
        self.map_foreign(extents, function, dtype)
    }
}

/// The function that a plan names, if this program has it.
pub(super) fn find(name: &str) -> Option<Arc<dyn Foreign>> {
    let (id, dtype) = name.split_once(' ')?;
    let definition = Definition::find(FunctionId(id.parse().ok()?))?;
    typed(definition, dtype.parse().ok()?).map(|(_, function)| function)
}

/// Name of functions of this file in plans.
pub(super) const KIND: &str = "remote";

/// A remote function from `Array<T>` to `Array<U>`.
struct Mapping<T, U> {
    definition: &'static Definition,
    dtype: DType,
    function: Plain<T, U>,
}

type Plain<T, U> = fn(Array<T>) -> std::result::Result<Array<U>, Failure>;

impl<T, U> fmt::Debug for Mapping<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} {:?})", self.definition.path(), self.definition.id())
    }
}

impl<T: Element, U: Element + tharsis_kernels::Element> Foreign for Mapping<T, U> {
    fn name(&self) -> Option<ForeignName> {
        let name = format!("{} {}", self.definition.id().0, self.dtype);
        Some(ForeignName { kind: KIND.to_owned(), name })
    }

    fn describe(&self) -> String {
        self.definition.path()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> std::result::Result<Chunk, GraphError> {
        let chunk = args[0].to_contiguous()?;
        let start = chunk.offset() * chunk.dtype().size_bytes();
        let bytes = Bytes::from_owner(Lent(chunk.buffer().clone())).slice(start..start + chunk.len_bytes());
        let failed = |reason: String| GraphError::Function { function: self.definition.path(), reason };
        let array =
            Array::from_bytes(bytes, IxDyn(chunk.shape())).map_err(|error| failed(error.to_string()))?;
        let made = catch_unwind(AssertUnwindSafe(|| (self.function)(array)));
        let made = made.map_err(|panic| failed(format!("it panicked: {}", panic_text(&*panic))))?;
        let made = made.map_err(|failure| failed(failure.message))?;
        let shape = made.shape().to_vec();
        Ok(Chunk::contiguous(
            <U as tharsis_kernels::Element>::DTYPE,
            &shape,
            Buffer::shared(Arc::new(made.into_bytes())),
        )?)
    }
}

/// The memory of a chunk, shared with an array.
struct Lent(Arc<Buffer>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

macro_rules! with_number {
    ($value:expr, $alias:ident => $body:expr, else $other:expr) => {
        with_number!(@each $value, $alias, $body, $other;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64)
    };
    (@each $value:expr, $alias:ident, $body:expr, $other:expr; $($dtype:ident $number:ty),*) => {
        match $value {
            $(DType::$dtype => {
                type $alias = $number;
                $body
            })*
            _ => $other,
        }
    };
}

/// A remote function as a function of chunks of `dtype`, and the dtype of its results.
fn typed(definition: &'static Definition, dtype: DType) -> Option<(DType, Arc<dyn Foreign>)> {
    with_number!(dtype, T => DType::ALL.into_iter().find_map(|made| giving::<T>(definition, dtype, made)), else None)
}

/// As `typed`, if the function returns elements of `made`.
fn giving<T: Element>(
    definition: &'static Definition,
    dtype: DType,
    made: DType,
) -> Option<(DType, Arc<dyn Foreign>)> {
    with_number!(made, U => {
        let function = *definition.plain.downcast_ref::<Plain<T, U>>()?;
        Some((made, Arc::new(Mapping { definition, dtype, function })))
    }, else None)
}
