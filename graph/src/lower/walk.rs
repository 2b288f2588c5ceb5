//! The walk over the nodes of a graph, each of which becomes an expression.

use super::{ExprId, LARGE_SHARE, Limits, Lowered, Lowering};
use crate::error::Error;
use crate::extent::agree;
use crate::node::{NodeRef, distinct_nodes};
use std::collections::HashMap;

/// Makes the chunk plan that computes `roots`.
///
/// # Errors
/// `TooManyTasks`, or errors of operators. Memory is checked by [`crate::schedule`].
pub fn lower(roots: &[NodeRef], limits: &Limits) -> Result<Lowered, Error> {
    let (nodes, inputs, roots) = distinct_nodes(roots);
    let mut lowering = Lowering::new(limits);
    let (uses, root_count) = (uses(&inputs, &roots), roots.len());
    let is_large = |node: usize| limits.memory_bytes / LARGE_SHARE < nodes[node].meta().bytes();
    let mut exprs: Vec<Option<ExprId>> = vec![None; nodes.len()];
    for wanted in 0..nodes.len() {
        if is_large(wanted) && !roots.contains(&wanted) {
            continue;
        }
        // A tensor that is too large to store is computed again for each user that is not too large itself.
        let mut again: HashMap<usize, ExprId> = HashMap::new();
        for node in large_inputs(wanted, &inputs, is_large) {
            let expr = lowering.lower_node(&nodes[node], &inputs[node], |input| {
                again.get(&input).copied().or(exprs[input])
            })?;
            again.insert(node, expr);
        }
        let known = |input: usize| again.get(&input).copied().or(exprs[input]);
        let mut expr = lowering.lower_node(&nodes[wanted], &inputs[wanted], known)?;
        if 1 < uses[wanted] && lowering.is_worth_storing(expr) {
            expr = lowering.stored(expr)?;
        }
        exprs[wanted] = Some(expr);
    }
    for root in roots {
        lowering.label = nodes[root].op().name();
        let expr = exprs[root].ok_or_else(|| Error::Internal("a root was not lowered".to_owned()))?;
        let tensor = lowering.store(expr)?;
        lowering.plan.results.push(tensor);
    }
    assert_eq!(lowering.plan.results.len(), root_count, "a result for each root");
    lowering.finish()
}

/// The large nodes that `wanted` depends on through large nodes alone, inputs before their users.
fn large_inputs(wanted: usize, inputs: &[Vec<usize>], is_large: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut found = std::collections::BTreeSet::new();
    let mut stack = inputs[wanted].clone();
    while let Some(node) = stack.pop() {
        if is_large(node) && found.insert(node) {
            stack.extend(&inputs[node]);
        }
    }
    found.into_iter().collect()
}

/// Number of inputs that refer to each node, roots included.
fn uses(inputs: &[Vec<usize>], roots: &[usize]) -> Vec<usize> {
    let mut uses = vec![0; inputs.len()];
    for &used in inputs.iter().flatten().chain(roots) {
        uses[used] += 1;
    }
    uses
}

impl Lowering<'_> {
    /// The expression of a node whose inputs are known.
    fn lower_node(
        &mut self,
        node: &NodeRef,
        inputs: &[usize],
        known: impl Fn(usize) -> Option<ExprId>,
    ) -> Result<ExprId, Error> {
        self.label = node.op().name();
        if let Some(resident) = node.op().resident() {
            return Ok(self.load_resident(resident));
        }
        let args: Option<Vec<ExprId>> = inputs.iter().map(|&input| known(input)).collect();
        let args = args.ok_or_else(|| Error::Internal("an input was not lowered".to_owned()))?;
        let expr = node.op().lower(self, node.meta(), &args)?;
        let (made, declared) = (&self.exprs[expr], node.meta());
        // An extent that was unknown when the node was made may be known by now.
        let agree = made.shape.len() == declared.shape.len()
            && made.shape.iter().zip(&declared.shape).all(|(&a, &b)| agree(a, b));
        assert!(agree, "{} of {:?} is lowered to {:?}", self.label, declared.shape, made.shape);
        assert_eq!(made.dtype, declared.dtype, "{} is lowered to another dtype", self.label);
        Ok(expr)
    }
}
