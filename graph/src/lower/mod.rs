//! From the logical graph to a chunk plan.
//!
//! Each node becomes an [`Expr`]: an element-wise expression over the index space of its result, whose leaves
//! are functions of the index and parts of stored tensors. Views (slices, transposes, broadcasts) rewrite the
//! leaves and cost nothing. An expression becomes a stage only when an operator asks for it
//! ([`Lowering::store`], [`Lowering::fold`]): everything up to the last stored tensors is then one fused
//! program. An expression that two stages use is computed in both, unless that costs more than storing it.

mod exchange;
mod expr;
mod stage;
mod tile;
mod walk;

pub use exchange::ExchangeStage;
pub(crate) use expr::round_scalar;
pub use expr::{Expr, ExprId, ExprKind, View};
pub use tile::Limits;
pub use walk::lower;

use crate::error::Error;
use crate::foreign::Foreign;
use crate::plan::{Kernel, Operand, Plan, StageOutput, TensorId, TensorSpec};
use crate::resident::{Resident, ResidentChunk};
use crate::shape::element_count;
use crate::tiling::{AxisTiling, TASKS_MAX, Tiling};
use std::collections::HashMap;
use std::sync::Arc;

/// The tensors of the results of one function of one matrix, made once for all of them.
#[derive(Debug)]
pub(crate) enum Shared {
    /// A tensor for each result.
    Tensors(Vec<TensorId>),
    /// A stage with the results that were asked for, and their numbers. It is added with the first of them.
    Stage { grid: Tiling, operands: Vec<Operand>, stage: Option<usize>, parts: Vec<(usize, TensorId)> },
}

/// State of lowering, for one plan.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// Limits of the plan.
    pub limits: &'a Limits,
    plan: Plan,
    exprs: Vec<Expr>,
    known: HashMap<String, ExprId>,
    stored: HashMap<ExprId, TensorId>,
    /// Those of one axis that were stored in chunks of another cut than they would have been.
    stored_cut: HashMap<(ExprId, AxisTiling), TensorId>,
    folded: HashMap<String, Vec<TensorId>>,
    /// Parts that several results of one factorization share, by the function and its arguments.
    shared: HashMap<String, Shared>,
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

impl<'a> Lowering<'a> {
    fn new(limits: &'a Limits) -> Lowering<'a> {
        Lowering {
            limits,
            plan: Plan::default(),
            exprs: Vec::new(),
            known: HashMap::new(),
            stored: HashMap::new(),
            stored_cut: HashMap::new(),
            folded: HashMap::new(),
            shared: HashMap::new(),
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
        let (named, given) = (self.plan.foreign.len(), self.foreign.len());
        assert_eq!(named, given, "functions by name and functions differ");
        assert_eq!(self.plan.resident.len(), self.resident.len(), "a resident tensor without its chunks");
        let resident = self.resident.into_iter().map(|resident| resident.chunks).collect();
        Ok(Lowered { plan: Arc::new(self.plan), resident, foreign: self.foreign })
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

    /// Adds a function that stages call, and returns its number in the plan.
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
        let exists = |tensor: TensorId| tensor < self.plan.tensors.len();
        assert!(!stage.outputs.is_empty(), "{} makes nothing", stage.label);
        for output in &stage.outputs {
            assert!(exists(output.tensor), "{} makes a tensor that does not exist", stage.label);
            let ranks = (output.offset.len(), stage.grid.axes.len());
            assert_eq!(ranks.0, ranks.1, "an output of {} has another rank than its grid", stage.label);
        }
        let mut inputs = stage.operands.iter().flat_map(|operand| &operand.inputs);
        assert!(inputs.all(|input| exists(input.tensor)), "{} reads what does not exist", stage.label);
        self.plan.stages.push(stage);
    }

    /// Number of stages so far.
    pub(crate) fn stage_count(&self) -> usize {
        self.plan.stages.len()
    }

    /// Has the tasks of all stages from `first` on start in the order of these stages.
    pub(crate) fn run_in_order(&mut self, first: usize) {
        assert!(first <= self.plan.stages.len(), "stages in order that do not exist");
        self.plan.in_order.push((first, self.plan.stages.len()));
    }

    /// Has the tasks of a stage make one more tensor, by another kernel.
    pub(crate) fn add_output(&mut self, stage: usize, kernel: Kernel, output: StageOutput) {
        assert!(output.tensor < self.plan.tensors.len(), "an output that does not exist");
        let stage = &mut self.plan.stages[stage];
        stage.kernel = kernel;
        stage.outputs.push(output);
    }

    /// The parts that were shared under this key, for the one who shares them again.
    pub(crate) fn take_shared(&mut self, key: &str) -> Option<Shared> {
        self.shared.remove(key)
    }

    /// Keeps what other results of a factorization need.
    pub(crate) fn share(&mut self, key: String, shared: Shared) {
        self.shared.insert(key, shared);
    }

    /// Whether the chunks of a tensor exist before the plan runs.
    pub(crate) fn is_resident(&self, tensor: TensorId) -> bool {
        self.plan.resident.contains(&tensor)
    }

    /// Facts about a tensor of the plan.
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

/// A tensor that takes more than this part of the memory is not kept for later but computed again.
const LARGE_SHARE: u64 = 4;
/// Up to this cost per element, an expression is computed twice rather than stored, in the unit of
/// `Step::cost`: about the cost of a store to memory and a load.
const RECOMPUTE_COST_MAX: f64 = 30.0;
