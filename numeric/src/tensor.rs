//! The tensor: a lazy, dynamically typed n-dimensional array.

use crate::error::{Blame, Result};
use tharsis_graph::{Node, NodeRef, Operator};
use tharsis_kernels::DType;

/// An n-dimensional array that is computed when it is asked for.
///
/// Shape and dtype are known at once; errors in them are raised where the expression is built. Cloning is
/// cheap and shares the expression.
#[derive(Clone)]
pub struct Tensor {
    node: NodeRef,
}

impl Tensor {
    /// The result of an operator of the graph on tensors; in eager mode it is computed at once.
    ///
    /// # Errors
    /// What the operator's inference refuses; in eager mode what its tasks refuse.
    #[track_caller]
    pub fn apply(op: impl Operator + 'static, inputs: &[&Tensor]) -> Result<Tensor> {
        crate::eager::as_mode_has_it(Tensor::lazily(op, inputs)?)
    }

    /// As [`Tensor::apply`], in whatever mode.
    #[track_caller]
    pub(crate) fn lazily(op: impl Operator + 'static, inputs: &[&Tensor]) -> Result<Tensor> {
        let inputs = inputs.iter().map(|input| input.node.clone()).collect();
        Ok(Tensor { node: Node::new(op, inputs).blame()? })
    }

    /// An expression that is a graph's already.
    pub(crate) fn from_node(node: NodeRef) -> Tensor {
        Tensor { node }
    }

    /// Extent of each axis; [`UNKNOWN`](crate::select::UNKNOWN) where only running tells.
    pub fn shape(&self) -> &[usize] {
        &self.node.meta().shape
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.node.meta().dtype
    }

    /// How many axes there are.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// How many elements there are; the largest number if that is not known.
    pub fn size(&self) -> u64 {
        tharsis_graph::shape::element_count(self.shape())
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> u64 {
        self.size().saturating_mul(self.dtype().size_bytes() as u64)
    }

    /// The tensor of a node.
    pub(crate) fn of_node(node: NodeRef) -> Tensor {
        Tensor { node }
    }

    /// The node of the logical graph that this tensor stands for.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }
}
