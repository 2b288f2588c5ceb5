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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalExecutor;
    use crate::ops::{Binary, Full, Indexed, Reduce, Select, Selection, Unary};
    use std::time::Duration;
    use tharsis_kernels::program::IndexMap;
    use tharsis_kernels::{BinaryOp, DType, Fold, Scalar, UnaryOp};

    fn limits() -> Limits {
        Limits::new(2, 64 << 20)
    }

    fn apply(op: impl crate::Operator + 'static, inputs: &[&NodeRef]) -> NodeRef {
        Node::new(op, inputs.iter().map(|&input| input.clone()).collect()).unwrap()
    }

    fn full(shape: &[usize], value: f64) -> NodeRef {
        apply(Full { shape: shape.to_vec(), value: Scalar::Float(value), dtype: DType::F64 }, &[])
    }

    /// The numbers from 0 on.
    fn ramp(shape: &[usize]) -> NodeRef {
        apply(Indexed { shape: shape.to_vec(), map: IndexMap::Ramp { start: 0.0, step: 1.0 } }, &[])
    }

    fn above(x: &NodeRef, bound: f64) -> NodeRef {
        let mask = apply(Binary(BinaryOp::Greater), &[x, &full(&[], bound)]);
        apply(Select::new(Selection::Compress), &[x, &mask])
    }

    fn sum(x: &NodeRef, axis: usize) -> NodeRef {
        apply(Reduce { fold: Fold::Sum, axes: vec![axis], keepdims: false }, &[x])
    }

    #[test]
    fn a_program_whose_sizes_are_known_has_no_phase() {
        assert!(Phase::next(&[sum(&ramp(&[10]), 0), ramp(&[3])], limits()).is_none());
    }

    #[test]
    fn a_phase_counts_what_awaits_nothing_and_names_all_that_waits() {
        let once = above(&ramp(&[10]), 2.0);
        let twice = above(&apply(Unary(UnaryOp::Negative), &[&once]), -8.0);
        let phase = Phase::next(&[twice], limits()).unwrap();
        assert_eq!(phase.waiting(), ["compress", "negative", "greater", "compress"]);
        let roots = phase.roots().unwrap();
        assert_eq!(roots.iter().map(|root| root.op().name()).collect::<Vec<_>>(), ["count of compress"]);
        let counted = LocalExecutor::within(limits()).execute(plan(&roots, limits()).unwrap()).unwrap();
        let settled = phase.settle(counted.results).unwrap();
        let next = Phase::next(&settled, limits()).unwrap();
        assert_eq!(next.waiting(), ["compress"], "the first choice has its size by now");
    }

    #[test]
    fn results_that_await_nothing_are_computed_in_the_first_phase() {
        let (known, awaiting) = (sum(&ramp(&[10]), 0), above(&ramp(&[10]), 2.0));
        let phase = Phase::next(&[known.clone(), awaiting], limits()).unwrap();
        let roots = phase.roots().unwrap();
        assert_eq!(roots.len(), 2);
        assert!(Arc::ptr_eq(&roots[1], &known));
        let counted = LocalExecutor::within(limits()).execute(plan(&roots, limits()).unwrap()).unwrap();
        let settled = phase.settle(counted.results).unwrap();
        assert!(settled[0].op().resident().is_some(), "computed a second time");
        assert_eq!(settled[1].meta().shape, [7]);
    }

    #[test]
    fn a_reduction_is_kept_between_phases_while_it_fits_an_eighth_of_the_memory() {
        // The sums take 800 bytes.
        let chosen = above(&sum(&ramp(&[1000, 100]), 0), 1.0);
        let kept = |memory_bytes: u64| {
            let less = Limits { memory_bytes, ..limits() };
            Phase::next(std::slice::from_ref(&chosen), less).unwrap().roots().unwrap().len() - 1
        };
        assert_eq!((kept(8 * 800), kept(8 * 800 - 1)), (1, 0));
    }

    #[test]
    fn shapes_that_clash_once_they_are_known_are_refused_with_both() {
        let executor = LocalExecutor::within(limits());
        let chosen = above(&ramp(&[10]), 4.0);
        let fits = apply(Binary(BinaryOp::Add), &[&chosen, &full(&[5], 1.0)]);
        assert_eq!(run(&[fits], &executor).unwrap().results[0].tiling.shape(), [5]);
        let clashes = apply(Binary(BinaryOp::Add), &[&chosen, &full(&[4], 1.0)]);
        let refused = run(&[clashes], &executor).unwrap_err();
        assert_eq!(refused, Error::Broadcast { function: "add", shapes: vec![vec![5], vec![4]], axis: 1 });
    }

    #[test]
    fn metrics_of_phases_are_summed_and_their_peaks_are_not() {
        let metrics = |tasks, bound_bytes, peak_bytes, seconds| Metrics {
            tasks,
            bound_bytes,
            peak_bytes,
            elapsed: Duration::from_secs(seconds),
            retries: tasks / 2,
            ..Metrics::default()
        };
        let both = metrics(3, 100, 20, 5).after(&metrics(4, 90, 70, 6));
        assert_eq!(both, Metrics { retries: 3, ..metrics(7, 100, 70, 11) });
        let spent = run(&[above(&ramp(&[10]), 4.0)], &LocalExecutor::within(limits())).unwrap().metrics;
        assert_eq!(spent.tasks, 2, "one that counts and one that chooses");
    }
}
