//! The logical graph: operators applied to tensors that do not exist yet.

use crate::error::Error;
use crate::lower::{ExprId, Lowering};
use crate::resident::Resident;
use crate::shape::{check_known, check_shape, element_count, is_known};
use std::fmt;
use std::sync::Arc;
use tharsis_kernels::DType;

/// Facts about a tensor before it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Meta {
    pub shape: Vec<usize>,
    pub dtype: DType,
}

impl Meta {
    /// Bytes of all elements; 0 if the size is not known.
    pub fn bytes(&self) -> u64 {
        if !is_known(&self.shape) {
            return 0;
        }
        element_count(&self.shape).saturating_mul(self.dtype.size_bytes() as u64)
    }
}

/// One kind of operation on whole tensors. The implementation of this trait has everything about it.
///
/// Two operators of equal `Debug` text on the same inputs are the same expression and are computed once. So
/// the text must contain all fields that affect the result; a derived `Debug` does.
pub trait Operator: fmt::Debug + Send + Sync {
    /// The name in plans and errors.
    fn name(&self) -> &'static str;

    /// Shape and dtype of the result.
    ///
    /// # Errors
    /// Any reason for which the operation is impossible on such inputs. None may be left for the run.
    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error>;

    /// Expresses the result in terms of chunks: as an element-wise expression over the inputs, or by adding
    /// stages to the plan.
    ///
    /// # Errors
    /// `Internal` for defects; `Value` if no tiling is possible.
    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error>;

    /// Chunks handed over instead of computed. Only literals have them.
    fn resident(&self) -> Option<&Resident> {
        None
    }

    /// Operator on the same inputs that computes the size of the result; `None` if the size is known.
    fn measure(&self) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The same operator with its size known, from the result of [`Operator::measure`].
    ///
    /// # Errors
    /// `Internal` for operators that measure nothing.
    fn measured(&self, _measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        Err(Error::Internal(format!("{} measures nothing", self.name())))
    }

    /// The same operator on inputs whose sizes have become known; `None` if it stays as it is.
    fn resolved(&self, _inputs: &[&Meta]) -> Option<Arc<dyn Operator>> {
        None
    }

    /// Replacement of the operation now that the sizes of its inputs may have become known; `None` if it
    /// stays as it is. Only operations that cannot be expressed without these sizes implement it.
    fn rebuilt(&self, _inputs: &[NodeRef]) -> Option<Result<NodeRef, Error>> {
        None
    }

    /// Whether more than element-wise steps are needed to recompute the result.
    fn is_heavy(&self) -> bool {
        false
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
    /// Errors of [`Operator::infer`].
    pub fn new(op: impl Operator + 'static, inputs: Vec<NodeRef>) -> Result<NodeRef, Error> {
        Node::shared(Arc::new(op), inputs)
    }

    /// As [`Node::new`], with an operator that is shared.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn shared(op: Arc<dyn Operator>, inputs: Vec<NodeRef>) -> Result<NodeRef, Error> {
        let metas: Vec<&Meta> = inputs.iter().map(|input| &input.meta).collect();
        let meta = op.infer(&metas)?;
        if inputs.is_empty() {
            check_shape(&meta.shape)?
        } else {
            check_known(&meta.shape)?
        }
        Ok(Arc::new(Node { op, inputs, meta }))
    }

    /// The same operator on other inputs, whose sizes have become known.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn with_inputs(&self, inputs: Vec<NodeRef>) -> Result<NodeRef, Error> {
        if let Some(rebuilt) = self.op.rebuilt(&inputs) {
            return rebuilt;
        }
        let metas: Vec<&Meta> = inputs.iter().map(|input| &input.meta).collect();
        let op = self.op.resolved(&metas).unwrap_or_else(|| self.op.clone());
        Node::shared(op, inputs)
    }

    /// The operator that computes the tensor of this node.
    pub fn op(&self) -> &dyn Operator {
        self.op.as_ref()
    }

    /// Inputs of the operator.
    pub fn inputs(&self) -> &[NodeRef] {
        &self.inputs
    }

    /// Shape and dtype of the result.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Drop for Node {
    /// Drops long chains without recursion.
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.inputs);
        while let Some(node) = pending.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                pending.append(&mut last.inputs);
            }
        }
    }
}

/// All nodes that `roots` depend on, inputs before their users, equal expressions once.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Binary, Full, Unary, Viewed};
    use crate::{lower::View, shape::UNKNOWN};
    use tharsis_kernels::{BinaryOp, Scalar, UnaryOp};

    fn full(shape: &[usize], value: i64) -> NodeRef {
        let op = Full { shape: shape.to_vec(), value: Scalar::Int(value), dtype: DType::F64 };
        Node::new(op, vec![]).unwrap()
    }

    fn less(a: &NodeRef, b: &NodeRef) -> NodeRef {
        Node::new(Binary(BinaryOp::Subtract), vec![a.clone(), b.clone()]).unwrap()
    }

    #[test]
    fn equal_expressions_are_one_node_and_swapped_operands_are_not_equal() {
        let roots = [
            less(&full(&[3], 1), &full(&[3], 2)),
            less(&full(&[3], 1), &full(&[3], 2)),
            less(&full(&[3], 2), &full(&[3], 1)),
            less(&full(&[1], 1), &full(&[3], 2)),
        ];
        let (nodes, inputs, roots) = distinct_nodes(&roots);
        let names: Vec<&str> = nodes.iter().map(|node| node.op().name()).collect();
        assert_eq!(names, ["full", "full", "subtract", "subtract", "full", "subtract"]);
        assert_eq!(inputs, [vec![], vec![], vec![0, 1], vec![1, 0], vec![], vec![4, 1]]);
        assert_eq!(roots, [2, 2, 3, 5]);
    }

    #[test]
    fn a_ladder_has_a_node_for_each_rung_however_many_ways_lead_down() {
        // 2^60 ways lead from the top to the bottom.
        let mut top = full(&[2], 1);
        for _ in 0..60 {
            top = less(&top, &top);
        }
        let (nodes, inputs, roots) = distinct_nodes(&[top]);
        assert_eq!((nodes.len(), roots), (61, vec![60]));
        assert!((1..61).all(|rung| inputs[rung] == [rung - 1, rung - 1]));
    }

    #[test]
    fn long_chains_are_walked_and_dropped_without_recursion() {
        const LEN: usize = 20_000;
        let mut last = full(&[2], 1);
        for _ in 0..LEN {
            last = Node::new(Unary(UnaryOp::Negative), vec![last]).unwrap();
        }
        // A recursion so deep would need more stack than a thread has.
        let (nodes, inputs, roots) = distinct_nodes(std::slice::from_ref(&last));
        assert_eq!((nodes.len(), inputs[LEN].as_slice(), roots[0]), (LEN + 1, &[LEN - 1][..], LEN));
        drop((nodes, last));
    }

    #[test]
    fn only_what_is_made_of_others_may_have_an_unknown_size() {
        let source = Full { shape: vec![UNKNOWN], value: Scalar::Int(1), dtype: DType::F64 };
        assert!(matches!(Node::new(source, vec![]), Err(Error::Value(_))));
        let awaiting = Viewed { name: "view", view: View::broadcast(&[1], &[UNKNOWN]) };
        let node = Node::new(awaiting, vec![full(&[1], 1)]).unwrap();
        assert_eq!((node.meta().shape.as_slice(), node.meta().bytes()), (&[UNKNOWN][..], 0));
        // The extents that are known count all the same.
        let huge = Viewed { name: "view", view: View::broadcast(&[1, 1, 1], &[UNKNOWN, 1 << 40, 1 << 40]) };
        assert!(matches!(Node::new(huge, vec![full(&[1, 1, 1], 1)]), Err(Error::Value(_))));
    }

    #[test]
    fn bytes_of_more_elements_than_memory_has_do_not_wrap() {
        let meta = |shape: &[usize]| Meta { shape: shape.to_vec(), dtype: DType::C128 };
        assert_eq!(meta(&[]).bytes(), 16);
        assert_eq!(meta(&[3, 0, 1 << 62]).bytes(), 0);
        assert_eq!(meta(&[1 << 61]).bytes(), u64::MAX);
    }
}
