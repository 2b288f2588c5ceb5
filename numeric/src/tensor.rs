//! The tensor: a lazy, dynamically typed n-dimensional array.

use crate::error::{Blame, Result};
use std::fmt;
use tharsis_graph::{Node, NodeRef, Operator};
use tharsis_kernels::DType;

/// An n-dimensional array that is computed when it is asked for.
///
/// Shape and dtype are known at once; errors in them are raised where the expression is built. Cloning is cheap and
/// shares the expression.
#[derive(Clone)]
pub struct Tensor {
    node: NodeRef,
}

impl Tensor {
    /// The result of an operator of the graph on tensors.
    ///
    /// # Errors
    /// What the operator's inference refuses.
    #[track_caller]
    pub fn apply(op: impl Operator + 'static, inputs: &[&Tensor]) -> Result<Tensor> {
        let inputs = inputs.iter().map(|input| input.node.clone()).collect();
        Ok(Tensor { node: Node::new(op, inputs).blame()? })
    }

    /// Extent of each axis.
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

    /// How many elements there are.
    pub fn size(&self) -> u64 {
        tharsis_graph::shape::element_count(self.shape())
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> u64 {
        self.size() * self.dtype().size_bytes() as u64
    }

    /// The node of the logical graph that this tensor stands for.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = tharsis_graph::error::shape_text(self.shape());
        write!(
            f,
            "Tensor({}, shape={shape}, dtype={}, {} bytes)",
            self.node.op().name(),
            self.dtype(),
            self.nbytes()
        )
    }
}
