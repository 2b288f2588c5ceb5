//! Programs with sizes that are known only after a run: boolean masks, distinct elements.
//!
//! Such an operator has an [`UNKNOWN`](crate::shape::UNKNOWN) extent, and so have its consumers; shapes are
//! checked as far as they are known. A program runs in *phases*. The first phase counts the selected rows of
//! each piece, for all operators whose inputs do not await others. Then those operators know their sizes,
//! everything above them is inferred again, and the rest is planned as if the sizes had been known from the
//! start: with exact chunks, an exact memory bound, no task that makes more or less than was planned, and no
//! executor that knows of any of this. An operator that awaits one that awaited another takes one more phase.
//!
//! A phase also computes the results that await nothing. It keeps tensors that both the counting and later
//! phases need, if recomputing one takes more than element-wise steps and it fits the memory. The rest is
//! computed again, chunk by chunk, so `x[x > 0.999]` needs memory for the selected elements only. The refused
//! alternative, chunks as long as they turn out to be, needs memory for the largest possible selection.

use crate::error::Error;
use crate::execute::{Executor, Metrics, Outcome, plan};
use crate::lower::Limits;
use crate::node::{Node, NodeRef, distinct_nodes};
use crate::ops::Resident;
use std::sync::Arc;

/// Parts of a program that must run before the sizes of the rest are known.
#[derive(Debug)]
pub struct Phase {
    nodes: Vec<NodeRef>,
    inputs: Vec<Vec<usize>>,
    roots: Vec<usize>,
    awaits: Vec<bool>,
    /// The operators whose results are counted.
    counted: Vec<usize>,
    /// Other tensors that this phase computes: results, and inputs of later phases.
    kept: Vec<usize>,
}

impl Phase {
    /// The next phase of a program; `None` if all sizes are known.
    pub fn next(roots: &[NodeRef], limits: Limits) -> Option<Phase> {
        let (nodes, inputs, roots) = distinct_nodes(roots);
        let mut awaits: Vec<bool> = Vec::with_capacity(nodes.len());
        for (node, inputs) in nodes.iter().zip(&inputs) {
            awaits.push(node.op().measure().is_some() || inputs.iter().any(|&input| awaits[input]));
        }
        if !awaits.contains(&true) {
            return None;
        }
        let counted = (0..nodes.len()).filter(|&node| {
            nodes[node].op().measure().is_some() && !inputs[node].iter().any(|&input| awaits[input])
        });
        let counted: Vec<usize> = counted.collect();
        assert!(!counted.is_empty(), "something awaits a size and nothing can be counted");
        let mut phase = Phase { nodes, inputs, roots, awaits, counted, kept: Vec::new() };
        phase.choose_kept(limits.memory_bytes / KEPT_SHARE);
        Some(phase)
    }

    /// Tensors that this phase computes.
    ///
    /// # Errors
    /// `Internal` for defects.
    pub fn roots(&self) -> Result<Vec<NodeRef>, Error> {
        let counts = self.counted.iter().map(|&node| {
            let node = &self.nodes[node];
            let measure =
                node.op().measure().ok_or_else(|| Error::Internal("nothing to count".to_owned()))?;
            Node::shared(measure, node.inputs().to_vec())
        });
        let kept = self.kept.iter().map(|&node| Ok(self.nodes[node].clone()));
        counts.chain(kept).collect()
    }

    /// The names of the operators that wait for it.
    pub fn waiting(&self) -> Vec<&'static str> {
        let waiting = self.nodes.iter().zip(&self.awaits).filter(|(_, awaits)| **awaits);
        waiting.map(|(node, _)| node.op().name()).collect()
    }

    /// The program with the sizes and tensors that the phase has computed.
    ///
    /// # Errors
    /// Errors of operators now that shapes are known.
    pub fn settle(&self, results: Vec<Resident>) -> Result<Vec<NodeRef>, Error> {
        let wanted = self.counted.len() + self.kept.len();
        assert_eq!(results.len(), wanted, "a phase was given other results than it asked for");
        let (counts, kept) = results.split_at(self.counted.len());
        let mut made: Vec<NodeRef> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let inputs: Vec<NodeRef> = self.inputs[index].iter().map(|&input| made[input].clone()).collect();
            assert_eq!(made.len(), index, "a node is made before its inputs");
            let find = |among: &[usize]| among.iter().position(|&other| other == index);
            let new = if let Some(at) = find(&self.kept) {
                Node::new(kept[at].clone(), Vec::new())?
            } else if let Some(at) = find(&self.counted) {
                Node::shared(node.op().measured(&counts[at])?, inputs)?
            } else if node.inputs().iter().zip(&inputs).all(|(old, new)| Arc::ptr_eq(old, new)) {
                node.clone()
            } else {
                node.with_inputs(inputs)?
            };
            made.push(new);
        }
        Ok(self.roots.iter().map(|&root| made[root].clone()).collect())
    }

    /// Keeps the results that await nothing and, below each node that awaits a size, the nearest heavy nodes
    /// that fit.
    fn choose_kept(&mut self, mut room_bytes: u64) {
        let is_free = |node: &usize| !self.awaits[*node] && self.nodes[*node].op().resident().is_none();
        let mut kept: Vec<usize> = self.roots.iter().copied().filter(is_free).collect();
        let awaiting = (0..self.nodes.len()).filter(|&node| self.awaits[node]);
        let mut stack: Vec<usize> = awaiting.flat_map(|node| self.inputs[node].clone()).collect();
        let mut seen = vec![false; self.nodes.len()];
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node], true) || !is_free(&node) || kept.contains(&node) {
                continue;
            }
            let bytes = self.nodes[node].meta().bytes();
            if self.nodes[node].op().is_heavy() && bytes <= room_bytes {
                room_bytes -= bytes;
                kept.push(node);
            } else {
                stack.extend(&self.inputs[node]);
            }
        }
        kept.sort_unstable();
        kept.dedup();
        assert!(kept.iter().all(|&node| !self.awaits[node]), "what is kept awaits a size");
        self.kept = kept;
    }
}

/// Plans and runs expressions.
///
/// # Errors
/// `Memory` if no plan fits the executor's limits; errors of tasks.
pub fn run(roots: &[NodeRef], executor: &dyn Executor) -> Result<Outcome, Error> {
    let (roots, spent) = settle(roots, executor)?;
    let mut outcome = executor.execute(plan(&roots, executor.limits())?)?;
    if let Some(spent) = spent {
        outcome.metrics = outcome.metrics.after(&spent);
    }
    Ok(outcome)
}

/// Runs phases until all sizes are known. Returns the program with these sizes, and the metrics of the
/// phases.
///
/// # Errors
/// As [`run`]; errors of operators once shapes are known.
pub fn settle(roots: &[NodeRef], executor: &dyn Executor) -> Result<(Vec<NodeRef>, Option<Metrics>), Error> {
    let mut roots = roots.to_vec();
    let mut spent: Option<Metrics> = None;
    while let Some(phase) = Phase::next(&roots, executor.limits()) {
        let Outcome { results, metrics } = executor.execute(plan(&phase.roots()?, executor.limits())?)?;
        spent = Some(spent.map_or(metrics.clone(), |spent| metrics.after(&spent)));
        roots = phase.settle(results)?;
    }
    Ok((roots, spent))
}

impl Metrics {
    /// These metrics with those of the phases before; stages are those of the last plan.
    #[must_use]
    pub fn after(mut self, before: &Metrics) -> Metrics {
        self.tasks += before.tasks;
        self.retries += before.retries;
        self.elapsed += before.elapsed;
        self.bound_bytes = self.bound_bytes.max(before.bound_bytes);
        self.peak_bytes = self.peak_bytes.max(before.peak_bytes);
        self.warnings.extend(&before.warnings);
        self
    }
}

/// Tensors kept between phases take at most this part of the memory.
const KEPT_SHARE: u64 = 8;
