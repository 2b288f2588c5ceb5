//! From the logical graph to a chunk plan.
//!
//! Each node becomes an [`Expr`]: an element-wise expression over the index space of its result, whose leaves
//! are functions of the index and parts of stored tensors. Views (slices, transposes, broadcasts) rewrite the
//! leaves and cost nothing. An expression becomes a stage only when an operator asks for it
//! ([`Lowering::store`], [`Lowering::fold`]): everything up to the last stored tensors is then one fused
//! program. An expression that two stages use is computed in both, unless that costs more than storing it.

mod expr;
mod stage;
mod tile;

pub(crate) use expr::round_scalar;
pub use expr::{Expr, ExprId, ExprKind, View};
pub use tile::Limits;

use crate::error::Error;
use crate::foreign::Foreign;
use crate::node::{NodeRef, distinct_nodes};
use crate::ops::{Resident, ResidentChunk};
use crate::plan::{Plan, TensorId, TensorSpec};
use crate::shape::element_count;
use crate::tiling::TASKS_MAX;
use std::collections::HashMap;
use std::sync::Arc;

/// The state of making one plan.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// What the plan may use.
    pub limits: &'a Limits,
    plan: Plan,
    exprs: Vec<Expr>,
    known: HashMap<String, ExprId>,
    stored: HashMap<ExprId, TensorId>,
    folded: HashMap<String, Vec<TensorId>>,
    resident: Vec<Resident>,
    foreign: Vec<Arc<dyn Foreign>>,
    label: &'static str,
}

/// A plan and the chunks that go with it.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The chunks of each resident tensor, in the order of `plan.resident`.
    pub resident: Vec<Arc<Vec<ResidentChunk>>>,
    /// The functions, in the order of `plan.foreign`.
    pub foreign: Vec<Arc<dyn Foreign>>,
}

/// Makes the chunk plan that computes `roots`.
///
/// # Errors
/// `TooManyTasks`, or what operators refuse. Memory is checked by [`crate::schedule`].
pub fn lower(roots: &[NodeRef], limits: &Limits) -> Result<Lowered, Error> {
    let (nodes, inputs, roots) = distinct_nodes(roots);
    let mut lowering = Lowering::new(limits);
    let uses = uses(&inputs, &roots);
    let is_large = |node: usize| limits.memory_bytes / LARGE_SHARE < nodes[node].meta().bytes();
    let mut exprs: Vec<Option<ExprId>> = vec![None; nodes.len()];
    for wanted in 0..nodes.len() {
        if is_large(wanted) && !roots.contains(&wanted) {
            continue;
        }
        // What is too large to keep is computed again for each of its users that is not.
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
    lowering.finish()
}

/// The large nodes that `wanted` depends on through large nodes alone, inputs before what uses them.
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

/// How many inputs refer to each node, roots included.
fn uses(inputs: &[Vec<usize>], roots: &[usize]) -> Vec<usize> {
    let mut uses = vec![0; inputs.len()];
    for &used in inputs.iter().flatten().chain(roots) {
        uses[used] += 1;
    }
    uses
}

impl<'a> Lowering<'a> {
    fn new(limits: &'a Limits) -> Lowering<'a> {
        Lowering {
            limits,
            plan: Plan::default(),
            exprs: Vec::new(),
            known: HashMap::new(),
            stored: HashMap::new(),
            folded: HashMap::new(),
            resident: Vec::new(),
            foreign: Vec::new(),
            label: "",
        }
    }

    fn finish(self) -> Result<Lowered, Error> {
        let tasks = self.plan.task_count();
        if TASKS_MAX < tasks {
            return Err(Error::TooManyTasks { tasks, limit: TASKS_MAX });
        }
        let resident = self.resident.into_iter().map(|resident| resident.chunks).collect();
        Ok(Lowered { plan: Arc::new(self.plan), resident, foreign: self.foreign })
    }

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
        node.op().lower(self, node.meta(), &args)
    }

    fn load_resident(&mut self, resident: &Resident) -> ExprId {
        let known = self.resident.iter().position(|known| Arc::ptr_eq(&known.chunks, &resident.chunks));
        if let Some(known) = known {
            return self.load(self.plan.resident[known]);
        }
        let tensor = self.add_tensor(TensorSpec { dtype: resident.dtype, tiling: resident.tiling.clone() });
        self.plan.resident.push(tensor);
        self.resident.push(resident.clone());
        self.load(tensor)
    }

    /// Adds a function that stages call; gives its number in the plan.
    pub fn add_foreign(&mut self, function: &Arc<dyn Foreign>) -> usize {
        self.plan.foreign.push(function.name());
        self.foreign.push(function.clone());
        self.foreign.len() - 1
    }

    /// Adds a tensor that some stage will fill.
    pub fn add_tensor(&mut self, spec: TensorSpec) -> TensorId {
        self.plan.tensors.push(spec);
        self.plan.tensors.len() - 1
    }

    /// Adds a stage, labelled with the operator being lowered.
    pub fn add_stage(&mut self, stage: crate::plan::Stage) {
        self.plan.stages.push(stage);
    }

    /// What is known of a tensor of the plan.
    pub fn tensor(&self, tensor: TensorId) -> &TensorSpec {
        &self.plan.tensors[tensor]
    }

    /// The operator being lowered.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// The same values, read from a stored tensor.
    ///
    /// # Errors
    /// As [`Lowering::store`].
    pub fn stored(&mut self, expr: ExprId) -> Result<ExprId, Error> {
        let tensor = self.store(expr)?;
        Ok(self.load(tensor))
    }

    /// Whether an expression with several users costs more to compute again than to write and read back.
    fn is_worth_storing(&self, expr: ExprId) -> bool {
        let bytes = element_count(&self.exprs[expr].shape) * self.exprs[expr].dtype.size_bytes() as u64;
        RECOMPUTE_COST_MAX < self.cost(expr) && bytes <= self.limits.memory_bytes / LARGE_SHARE
    }
}

/// What takes more than this part of the memory is not kept for later but computed again.
const LARGE_SHARE: u64 = 4;
/// What an element may cost to be computed twice rather than stored, in the unit of `Step::cost`: about what
/// a store and a load from memory take.
const RECOMPUTE_COST_MAX: f64 = 30.0;
