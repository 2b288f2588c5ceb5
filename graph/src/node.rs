//! The logical graph: operators applied to tensors that do not exist yet.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use std::fmt;
use std::sync::Arc;
use tharsis_kernels::DType;

/// What is known of a tensor before it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Meta {
    pub shape: Vec<usize>,
    pub dtype: DType,
}

/// One kind of operation on whole tensors: everything about it is in its implementation of this trait.
///
/// Two operators of equal `Debug` text on the same inputs are the same expression and computed once, so the text must hold
/// all that matters; a derived `Debug` does.
pub trait Operator: fmt::Debug + Send + Sync {
    /// The name in plans and errors.
    fn name(&self) -> &'static str;

    /// Shape and dtype of the result.
    ///
    /// # Errors
    /// Whatever makes the operation impossible for such inputs; nothing may be left to be found while running.
    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error>;

    /// Expresses the result in terms of chunks: as an element-wise expression over the inputs, or by adding stages to the plan.
    ///
    /// # Errors
    /// `Internal` for defects; `Value` where no tiling will do.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error>;

    /// Chunks handed over instead of computed. Only literals have them.
    fn resident(&self) -> Option<&crate::ops::Resident> {
        None
    }
}

/// An operator with its inputs, and what is known of the result.
#[derive(Debug)]
pub struct Node {
    op: Arc<dyn Operator>,
    inputs: Vec<NodeRef>,
    meta: Meta,
}

/// A shared node. Expressions are directed acyclic graphs of these.
pub type NodeRef = Arc<Node>;

impl Node {
    /// Applies an operator.
    ///
    /// # Errors
    /// What [`Operator::infer`] refuses.
    pub fn new(op: impl Operator + 'static, inputs: Vec<NodeRef>) -> Result<NodeRef, Error> {
        let metas: Vec<&Meta> = inputs.iter().map(|input| &input.meta).collect();
        let meta = op.infer(&metas)?;
        crate::shape::check_shape(&meta.shape)?;
        Ok(Arc::new(Node { op: Arc::new(op), inputs, meta }))
    }

    /// The operator.
    pub fn op(&self) -> &dyn Operator {
        self.op.as_ref()
    }

    /// What the operator is applied to.
    pub fn inputs(&self) -> &[NodeRef] {
        &self.inputs
    }

    /// Shape and dtype.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Drop for Node {
    /// Takes long chains apart without recursion.
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.inputs);
        while let Some(node) = pending.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                pending.append(&mut last.inputs);
            }
        }
    }
}

/// All nodes that `roots` depend on, inputs before what uses them, equal expressions once.
///
/// Returns the nodes, for each node the positions of its inputs, and the positions of the roots.
pub fn distinct_nodes(roots: &[NodeRef]) -> (Vec<NodeRef>, Vec<Vec<usize>>, Vec<usize>) {
    use std::collections::HashMap;
    let mut position_of: HashMap<*const Node, usize> = HashMap::new();
    let mut known: HashMap<(String, Vec<usize>), usize> = HashMap::new();
    let (mut nodes, mut inputs): (Vec<NodeRef>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut stack: Vec<(NodeRef, bool)> = roots.iter().rev().map(|root| (root.clone(), false)).collect();
    while let Some((node, ready)) = stack.pop() {
        if position_of.contains_key(&Arc::as_ptr(&node)) {
            continue;
        }
        if !ready {
            stack.push((node.clone(), true));
            stack.extend(node.inputs.iter().rev().map(|input| (input.clone(), false)));
            continue;
        }
        let args: Vec<usize> = node.inputs.iter().map(|input| position_of[&Arc::as_ptr(input)]).collect();
        let key = (format!("{:?}", node.op), args.clone());
        let position = *known.entry(key).or_insert_with(|| {
            nodes.push(node.clone());
            inputs.push(args);
            nodes.len() - 1
        });
        position_of.insert(Arc::as_ptr(&node), position);
    }
    let roots = roots.iter().map(|root| position_of[&Arc::as_ptr(root)]).collect();
    (nodes, inputs, roots)
}
