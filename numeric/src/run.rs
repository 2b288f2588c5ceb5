//! Execution of expressions, and access to their values.

use crate::error::{Blame, Error, Result};
use crate::errstate;
use crate::native::Native;
use crate::tensor::{Tensor, carry};
use ndarray::{ArrayD, IxDyn};
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use tharsis_graph::phases::Phase;
use tharsis_graph::tiling::Tiling;
use tharsis_graph::{
    Error as GraphError, Executor, Explanation, LocalExecutor, Metrics, NodeRef, Resident, ResidentChunk, run,
};
use tharsis_kernels::layout::c_strides;
use tharsis_kernels::{Chunk, Element, Scalar};

/// The executor of programs that name none: that of the task engine if it runs, else one with all cores of
/// this machine and half of its memory.
///
/// ```
/// assert!(0 < tharsis_numeric::default_executor().limits().memory_bytes);
/// ```
pub fn default_executor() -> Arc<dyn Executor> {
    static LOCAL: OnceLock<Arc<LocalExecutor>> = OnceLock::new();
    let chosen = CHOSEN.with_borrow(Clone::clone);
    let offered = chosen.or_else(|| OFFER.get().and_then(|offer| offer()));
    offered.unwrap_or_else(|| {
        let local = LOCAL.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
            Arc::new(LocalExecutor::sized(threads, memory_bytes() / 2))
        });
        local.clone()
    })
}

thread_local! {
    /// The executor that comes before all others on this thread.
    static CHOSEN: RefCell<Option<Arc<dyn Executor>>> = const { RefCell::new(None) };
}

/// Runs a function during which [`default_executor`] is this one, on this thread.
///
/// ```
/// use std::sync::Arc;
/// use tharsis_numeric::run::with_default;
/// use tharsis_numeric::{LocalExecutor, default_executor};
/// let executor = Arc::new(LocalExecutor::sized(1, 1 << 20));
/// assert_eq!(with_default(executor, || default_executor().limits().memory_bytes), 1 << 20);
/// ```
pub fn with_default<T>(executor: Arc<dyn Executor>, run: impl FnOnce() -> T) -> T {
    /// Puts back what was chosen before, also if the function panics.
    struct Back(Option<Arc<dyn Executor>>);
    impl Drop for Back {
        fn drop(&mut self) {
            CHOSEN.set(self.0.take());
        }
    }
    let _back = Back(CHOSEN.replace(Some(executor)));
    run()
}

/// Source of an executor for the current thread.
pub type Offer = fn() -> Option<Arc<dyn Executor>>;

static OFFER: OnceLock<Offer> = OnceLock::new();

/// Sets the source that [`default_executor`] asks first. The task engine does so once; later calls are
/// ignored.
///
/// ```
/// use std::sync::Arc;
/// use tharsis_numeric::LocalExecutor;
/// tharsis_numeric::offer_executor(|| Some(Arc::new(LocalExecutor::sized(1, 1 << 20))));
/// assert_eq!(tharsis_numeric::default_executor().limits().memory_bytes, 1 << 20);
/// ```
pub fn offer_executor(offer: Offer) {
    let _first_wins = OFFER.set(offer);
}

/// Bytes of memory of this machine; 4 GiB if that is unknown.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(4 << 30, |kib| kib << 10)
}

/// Computes several tensors at once, sharing work. The values of the returned tensors are computed.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, execute};
/// let local = LocalExecutor::sized(2, 1 << 20);
/// let x = arange(10);
/// let (made, metrics) = execute(&[&x.sum(..), &x.max(..)], &local)?;
/// assert_eq!((made[0].item()?.to_f64(), made[1].item()?.to_f64()), (45.0, 9.0));
/// assert!(metrics.peak_bytes <= metrics.bound_bytes);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `MemoryError` before running if no plan fits; errors of tasks.
#[track_caller]
pub fn execute(tensors: &[&Tensor], executor: &dyn Executor) -> Result<(Vec<Tensor>, Metrics)> {
    let nodes = nodes_of(tensors)?;
    let outcome = run(&nodes, executor).blame()?;
    errstate::tell(&outcome.metrics.warnings)?;
    Ok((at_hand(outcome.results), outcome.metrics))
}

/// The nodes of several tensors, or the first error that one of them carries.
pub(crate) fn nodes_of(tensors: &[&Tensor]) -> Result<Vec<NodeRef>> {
    tensors.iter().map(|tensor| tensor.node().cloned()).collect()
}

/// Results as tensors.
#[track_caller]
pub(crate) fn at_hand(results: Vec<Resident>) -> Vec<Tensor> {
    results.into_iter().map(|resident| Tensor::lazily(resident, &[])).collect()
}

/// The same tensors with all sizes known: runs the parts that the sizes depend on. Also returns the metrics,
/// if anything had to run.
///
/// ```
/// use tharsis_numeric::run::settle;
/// use tharsis_numeric::{LocalExecutor, arange};
/// let local = LocalExecutor::sized(2, 1 << 20);
/// let x = arange(10);
/// let (settled, _) = settle(&[&x.filter(&x.less(3))], &local)?;
/// assert_eq!(settled[0].shape()?, [3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`execute`].
#[track_caller]
pub fn settle(tensors: &[&Tensor], executor: &dyn Executor) -> Result<(Vec<Tensor>, Option<Metrics>)> {
    let (nodes, spent) = tharsis_graph::phases::settle(&nodes_of(tensors)?, executor).blame()?;
    if let Some(spent) = &spent {
        errstate::tell(&spent.warnings)?;
    }
    Ok((nodes.into_iter().map(Tensor::from_node).collect(), spent))
}

/// Plan for computing tensors on an executor: operators, stages, tasks, bytes and the memory bound. Nothing
/// runs; if sizes are known only after a run, the first phase is explained.
///
/// ```
/// use tharsis_numeric::{LocalExecutor, arange, explain};
/// let local = LocalExecutor::sized(2, 1 << 20);
/// let text = explain(&[&arange(10).sum(..)], &local)?.to_string();
/// assert!(text.contains("fold sum"), "{text}");
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `MemoryError` if no plan fits.
#[track_caller]
pub fn explain(tensors: &[&Tensor], executor: &dyn Executor) -> Result<Explanation> {
    let nodes = nodes_of(tensors)?;
    let phase = Phase::next(&nodes, executor.limits());
    let nodes = phase.as_ref().map_or(Ok(nodes), Phase::roots).blame()?;
    let job = tharsis_graph::plan(&nodes, executor.limits()).blame()?;
    let explanation = Explanation::new(&nodes, &job, executor).blame()?;
    Ok(Explanation { waiting: phase.map_or(Vec::new(), |phase| phase.waiting()), ..explanation })
}

impl Tensor {
    /// NumPy's `array`: a tensor over a copy of an array's elements, in the same shape and dtype.
    ///
    /// ```
    /// use tharsis_numeric::Tensor;
    /// let x = Tensor::from_array(&ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]).into_dyn());
    /// assert_eq!(x.sum(0).to_vec::<f64>()?, [4.0, 6.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big.
    #[track_caller]
    pub fn from_array<T: Element>(array: &ArrayD<T>) -> Tensor {
        let elements: Vec<T> = array.iter().copied().collect();
        Tensor::from_elements(array.shape(), &elements)
    }

    /// NumPy's `array(..).reshape(shape)`: a tensor over a copy of elements in C order.
    ///
    /// ```
    /// use tharsis_numeric::Tensor;
    /// let x = Tensor::from_elements(&[2, 2], &[1i64, 2, 3, 4]);
    /// assert_eq!(x.sum(1).to_vec::<i64>()?, [3, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the number of elements is not that of the shape.
    #[track_caller]
    pub fn from_elements<T: Element>(shape: &[usize], elements: &[T]) -> Tensor {
        if tharsis_graph::shape::element_count(shape) != elements.len() as u64 {
            let message = format!("cannot reshape array of size {} into shape {shape:?}", elements.len());
            return Tensor::refused(GraphError::Value(message), &[]);
        }
        Tensor::from_chunk(carry!(Chunk::from_elements(shape, elements)))
    }

    /// NumPy's `asarray`: a tensor over a chunk, without a copy.
    ///
    /// ```
    /// use tharsis_kernels::Chunk;
    /// use tharsis_numeric::Tensor;
    /// let chunk = Chunk::from_elements(&[2], &[1.0, 2.0]).expect("two elements");
    /// assert_eq!(Tensor::from_chunk(chunk).to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big.
    #[track_caller]
    pub fn from_chunk(chunk: Chunk) -> Tensor {
        let (tiling, dtype) = (Tiling::whole(chunk.shape()), chunk.dtype());
        let chunk = ResidentChunk::Here(Arc::new(chunk));
        Tensor::apply(Resident { dtype, tiling, chunks: Arc::new(vec![chunk]) }, &[])
    }

    /// Computes this tensor on the default executor.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = (arange(3) + 1).execute()?;
    /// assert!(format!("{x:?}").contains("at hand"));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub fn execute(&self) -> Result<Tensor> {
        let (mut tensors, _) = execute(&[self], &*default_executor())?;
        tensors.pop().ok_or_else(|| Error::here(GraphError::Internal("no result".to_owned())))
    }

    /// The values as one chunk in C order.
    ///
    /// ```
    /// use tharsis_numeric::{LocalExecutor, arange};
    /// let local = LocalExecutor::sized(2, 1 << 20);
    /// assert_eq!(arange(3).to_chunk(&local)?.shape(), [3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub fn to_chunk(&self, executor: &dyn Executor) -> Result<Chunk> {
        let node = self.node()?;
        let known = match node.op().resident() {
            Some(resident) => resident.clone(),
            None => {
                let outcome = run(std::slice::from_ref(node), executor).blame()?;
                errstate::tell(&outcome.metrics.warnings)?;
                let first = outcome.results.into_iter().next();
                first.ok_or_else(|| Error::here(GraphError::Internal("no result".to_owned())))?
            }
        };
        gather(&known).blame()
    }

    /// Computes this tensor on the default executor and copies its elements out.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).fetch::<i64>()?[[1, 0]], 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`]; `TypeError` if `T` is not the type of the elements.
    #[track_caller]
    pub fn fetch<T: Element>(&self) -> Result<ArrayD<T>> {
        self.fetch_on(&*default_executor())
    }

    /// NumPy's `ravel().tolist()`: computes this tensor on the default executor; its elements in C order.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fetch`].
    #[track_caller]
    pub fn to_vec<T: Native>(&self) -> Result<Vec<T>> {
        let elements = self.to_chunk(&*default_executor())?.to_vec::<T::Element>().blame()?;
        Ok(elements.into_iter().map(T::from_element).collect())
    }

    /// As [`Tensor::fetch`], on an executor of your choice.
    ///
    /// ```
    /// use tharsis_numeric::{LocalExecutor, arange};
    /// let local = LocalExecutor::sized(2, 1 << 20);
    /// assert_eq!(arange(3).fetch_on::<i64>(&local)?[[2]], 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fetch`].
    #[track_caller]
    pub fn fetch_on<T: Element>(&self, executor: &dyn Executor) -> Result<ArrayD<T>> {
        let chunk = self.to_chunk(executor)?;
        let elements = chunk.to_vec::<T>().blame()?;
        ArrayD::from_shape_vec(IxDyn(chunk.shape()), elements)
            .map_err(|error| Error::here(GraphError::Internal(error.to_string())))
    }

    /// NumPy's `item()`: computes a tensor of one element.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).sum(..).item()?.to_f64(), 6.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`]; `ValueError` if there is not exactly one element.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        let refuse = || {
            let message = "only tensors with one element can be converted to a number";
            Error::here(GraphError::Value(message.to_owned()))
        };
        if self.is_known()? && self.size()? != 1 {
            return Err(refuse());
        }
        self.to_chunk(&*default_executor())?.scalar().ok_or_else(refuse)
    }
}

/// All chunks of a tensor as one in C order.
fn gather(tensor: &Resident) -> std::result::Result<Chunk, GraphError> {
    if let [chunk] = tensor.chunks.as_slice() {
        return Ok(chunk.fetch()?.to_contiguous()?);
    }
    tharsis_kernels::with_element!(tensor.dtype, T => gather_elements::<T>(tensor))
}

fn gather_elements<T: Element>(tensor: &Resident) -> std::result::Result<Chunk, GraphError> {
    let shape = tensor.tiling.shape();
    let strides = c_strides(&shape);
    let mut out =
        tharsis_kernels::Buffer::for_overwrite(shape.iter().product::<usize>() * std::mem::size_of::<T>());
    let to = out.elements_mut::<T>();
    let (mut origin, mut extents) = (Vec::new(), Vec::new());
    for (index, chunk) in tensor.chunks.iter().enumerate() {
        tensor.tiling.chunk(index, &mut origin, &mut extents);
        let base = origin.iter().zip(&strides).map(|(&at, &stride)| at as i64 * stride).sum();
        let elements = chunk.fetch()?.to_vec::<T>()?;
        let mut at = 0;
        tharsis_kernels::layout::Layout::new(&extents, &strides, base).for_each_run(
            0,
            elements.len(),
            |run| {
                for (i, &x) in elements[at..at + run.len].iter().enumerate() {
                    to[(run.offset + i as i64 * run.stride) as usize] = x;
                }
                at += run.len;
            },
        );
    }
    Ok(Chunk::contiguous(tensor.dtype, &shape, out)?)
}
