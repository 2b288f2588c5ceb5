//! The tensor: a lazy, dynamically typed n-dimensional array.

use crate::error::{Error, Refusal, Result};
use std::panic::Location;
use tharsis_graph::{Meta, Node, NodeRef, Operator};
use tharsis_kernels::DType;

/// NumPy's `ndarray`, computed on demand.
///
/// Shape and dtype are known at once. An expression that cannot be built is a tensor too: it carries the
/// error, with the line of the program and the operands, and so does every expression built on it.
/// [`check`](Tensor::check) and all methods that inspect or compute a tensor return that error. Of several
/// errors the first one counts: operands before the operation on them, the left one before the right one.
/// Such a tensor has no shape and no dtype. Cloning is cheap and shares the expression.
///
/// ```
/// use tharsis_numeric::{arange, ones};
///
/// let x = ones(&[2, 3]);
/// let y = (&x * &x).sum(1).sqrt();
/// assert_eq!(y.shape()?, [2]);
/// assert_eq!(y.fetch::<f64>()?[[0]], 3f64.sqrt());
///
/// let wrong = (&x + arange(4)).sum(..);
/// assert!(wrong.item().unwrap_err().to_string().starts_with(
///     "add: operands could not be broadcast together with shapes (2,3) (4,)",
/// ));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[must_use = "it is lazy: nothing is computed until values are asked for"]
#[derive(Clone)]
pub struct Tensor {
    node: Result<NodeRef>,
}

/// A tensor that carries an error.
impl From<Error> for Tensor {
    fn from(error: Error) -> Tensor {
        Tensor { node: Err(error) }
    }
}

impl Tensor {
    /// As [`Tensor::apply`], but lazy in every mode.
    #[track_caller]
    pub(crate) fn lazily(op: impl Operator + 'static, inputs: &[&Tensor]) -> Tensor {
        let location = Location::caller();
        let nodes: Result<Vec<NodeRef>> = inputs.iter().map(|input| input.node().cloned()).collect();
        let node = nodes.and_then(|nodes| {
            Node::new(op, nodes).map_err(|refusal| refusal.blamed(location, known(inputs)))
        });
        Tensor { node }
    }

    /// A tensor that carries the reason for which an operation on `operands` cannot be built.
    #[track_caller]
    pub(crate) fn refused(refusal: impl Refusal, operands: &[&Tensor]) -> Tensor {
        Tensor::from(refusal.blamed(Location::caller(), known(operands)))
    }

    /// A tensor that carries the `ValueError` of an operation on `operands`.
    #[track_caller]
    pub(crate) fn bad_value(text: impl Into<String>, operands: &[&Tensor]) -> Tensor {
        Tensor::refused(tharsis_graph::Error::Value(text.into()), operands)
    }

    /// A tensor for an existing node of the graph.
    pub(crate) fn from_node(node: NodeRef) -> Tensor {
        Tensor { node: Ok(node) }
    }

    /// This tensor, unless it carries an error. Nothing is computed.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert!(ones(&[2, 3]).sum(1).check().is_ok());
    /// assert_eq!(ones(&[2, 3]).sum(2).sqrt().check().unwrap_err().class(), "AxisError");
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn check(&self) -> Result<&Tensor> {
        self.node().map(|_| self)
    }

    /// Shape and dtype.
    pub(crate) fn meta(&self) -> Result<&Meta> {
        self.node().map(|node| node.meta())
    }

    /// NumPy's `shape`: the extent of each axis; [`UNKNOWN`](crate::select::UNKNOWN) if it is known only
    /// after a run.
    ///
    /// ```
    /// assert_eq!(tharsis_numeric::ones(&[2, 3]).t().shape()?, [3, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn shape(&self) -> Result<&[usize]> {
        self.meta().map(|meta| &meta.shape[..])
    }

    /// NumPy's `dtype`: the type of the elements.
    ///
    /// ```
    /// use tharsis_numeric::{DType, arange};
    /// assert_eq!((arange(3) / 2).dtype()?, DType::F64);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn dtype(&self) -> Result<DType> {
        self.meta().map(|meta| meta.dtype)
    }

    /// NumPy's `ndim`: the number of axes.
    ///
    /// ```
    /// assert_eq!(tharsis_numeric::ones(&[2, 3]).ndim()?, 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn ndim(&self) -> Result<usize> {
        self.shape().map(<[usize]>::len)
    }

    /// NumPy's `size`: the number of elements; the largest number if that is not known.
    ///
    /// ```
    /// assert_eq!(tharsis_numeric::ones(&[2, 3]).size()?, 6);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn size(&self) -> Result<u64> {
        self.shape().map(tharsis_graph::shape::element_count)
    }

    /// NumPy's `nbytes`: bytes of all elements.
    ///
    /// ```
    /// assert_eq!(tharsis_numeric::ones(&[2, 3]).nbytes()?, 48);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn nbytes(&self) -> Result<u64> {
        Ok(self.size()?.saturating_mul(self.dtype()?.size_bytes() as u64))
    }

    /// The node of the logical graph behind this tensor.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2]).sqrt().node()?.op().name(), "sqrt");
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn node(&self) -> Result<&NodeRef> {
        self.node.as_ref().map_err(Error::clone)
    }
}

/// Facts about those operands that carry no error.
fn known(operands: &[&Tensor]) -> Vec<Meta> {
    operands.iter().filter_map(|operand| operand.meta().ok().cloned()).collect()
}

/// The value of a result. On an error it returns from the function with a tensor that carries the error,
/// blamed on the function's caller if it has no place yet. The operands, if given, are named in the error.
macro_rules! carry {
    ($result:expr $(, $operand:expr)*) => {
        match $result {
            Ok(value) => value,
            Err(error) => return $crate::tensor::Tensor::refused(error, &[$($operand),*]),
        }
    };
}
pub(crate) use carry;
