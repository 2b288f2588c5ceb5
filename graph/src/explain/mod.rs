//! Description of a plan before and after it ran: as a text tree, as data, and as a picture.

mod picture;
mod text;

use crate::error::Error;
use crate::execute::{Executor, Job, Metrics};
use crate::node::{NodeRef, distinct_nodes};
use crate::plan::{Kernel, Stage};
use serde::Serialize;
pub use text::bytes_text;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::program::{Output, Program, StepOp};

/// A plan in words and numbers; `Display` is the text tree, `serde` the data, [`Explanation::to_svg`] the
/// picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The logical graph after equal expressions were merged, inputs first.
    pub operators: Vec<OperatorLine>,
    /// The stages in the order of the plan.
    pub stages: Vec<StageLine>,
    /// Text about the order in which tasks start, the limits that delay them, and their homes.
    pub order: String,
    /// Operators whose sizes this phase finds out; they are planned after it.
    pub waiting: Vec<&'static str>,
    /// Tasks of all stages.
    pub tasks: u64,
    /// Floating-point operations, estimated.
    pub flops: f64,
    /// Upper bound on the bytes of chunks and registers.
    pub bound_bytes: u64,
    /// Estimated seconds, from the estimated costs of tasks.
    pub estimated_seconds: f64,
    /// Attempts beyond the first; after running.
    pub retries: Option<u64>,
    /// Peak bytes of chunks and registers; after running.
    pub peak_bytes: Option<u64>,
    /// Seconds from plan to results; after running.
    pub elapsed_seconds: Option<f64>,
}

/// One operator of the logical graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct OperatorLine {
    pub name: &'static str,
    /// Positions of the inputs in the list.
    pub inputs: Vec<usize>,
    pub shape: Vec<usize>,
    pub dtype: &'static str,
}

/// One stage of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StageLine {
    pub label: String,
    /// Steps of a task.
    pub work: String,
    pub grid: Vec<usize>,
    pub tasks: u64,
    /// Elements of the largest task.
    pub task_elements: u64,
    /// Bytes of all chunks that the stage makes.
    pub output_bytes: u64,
    pub flops: f64,
    /// Seconds that threads spent on it, and the slowest task; after running.
    pub busy_seconds: Option<f64>,
    pub slowest_seconds: Option<f64>,
    /// Time of the slowest task divided by the average time of one; after running.
    pub skew: Option<f64>,
    /// Attempts beyond the first, of its tasks or of batches with some of them; after running.
    pub retries: Option<u64>,
}

impl Explanation {
    /// Explains a job before it runs, with the bound of the executor that it is for.
    ///
    /// # Errors
    /// As [`Executor::bound_bytes`].
    pub fn new(roots: &[NodeRef], job: &Job, executor: &dyn Executor) -> Result<Explanation, Error> {
        let bound_bytes = executor.bound_bytes(job)?;
        let (nodes, inputs, _) = distinct_nodes(roots);
        let operator = |(node, inputs): (&NodeRef, &Vec<usize>)| OperatorLine {
            name: node.op().name(),
            inputs: inputs.clone(),
            shape: node.meta().shape.clone(),
            dtype: node.meta().dtype.name(),
        };
        let plan = job.runnable.plan();
        let stage = |stage: &Stage| {
            let bytes = stage.outputs.iter().map(|output| plan.tensors[output.tensor].bytes()).sum();
            StageLine {
                label: stage.label.clone(),
                work: work_of(stage),
                grid: stage.grid.grid(),
                tasks: stage.grid.count() as u64,
                task_elements: stage.grid.largest(),
                output_bytes: bytes,
                flops: flops_of(stage),
                busy_seconds: None,
                slowest_seconds: None,
                skew: None,
                retries: None,
            }
        };
        let stages: Vec<StageLine> = plan.stages.iter().map(stage).collect();
        Ok(Explanation {
            operators: nodes.iter().zip(&inputs).map(operator).collect(),
            tasks: job.schedule.order.len() as u64,
            flops: stages.iter().map(|stage| stage.flops).sum(),
            stages,
            order: executor.order(job)?,
            waiting: Vec::new(),
            bound_bytes,
            estimated_seconds: estimated_seconds(job, executor.limits().threads),
            retries: None,
            peak_bytes: None,
            elapsed_seconds: None,
        })
    }

    /// Adds the metrics of the finished run.
    pub fn with_metrics(mut self, metrics: &Metrics) -> Explanation {
        for (line, stage) in self.stages.iter_mut().zip(&metrics.stages) {
            line.busy_seconds = Some(stage.busy.as_secs_f64());
            line.slowest_seconds = Some(stage.slowest.as_secs_f64());
            let mean = stage.busy.as_secs_f64() / stage.tasks.max(1) as f64;
            line.skew = Some(if 0.0 < mean { stage.slowest.as_secs_f64() / mean } else { 1.0 });
            line.retries = Some(stage.retries);
        }
        self.retries = Some(metrics.retries);
        self.peak_bytes = Some(metrics.peak_bytes);
        self.elapsed_seconds = Some(metrics.elapsed.as_secs_f64());
        self
    }
}

/// Estimated cost of all tasks on a number of threads.
fn estimated_seconds(job: &Job, threads: usize) -> f64 {
    let tasks = job.schedule.order.iter();
    let cost: f64 = tasks.map(|task| job.runnable.task_cost(task.stage as usize)).sum();
    cost * COST_SECONDS / threads.max(1) as f64
}

/// Time of a unit of cost: see [`Runnable::task_cost`](crate::Runnable::task_cost).
const COST_SECONDS: f64 = 0.2e-9;

fn work_of(stage: &Stage) -> String {
    let operands: Vec<String> = stage.operands.iter().map(|operand| program_text(&operand.program)).collect();
    match &stage.kernel {
        Kernel::Fused => operands.join("; "),
        Kernel::Reshape { tensor } => format!("reshape t{tensor}"),
        Kernel::Product(product) if product.gram => {
            format!("product of [{}] with its transpose", operands.join("; "))
        }
        Kernel::Product(_) => format!("product of [{}]", operands.join("] and [")),
        Kernel::Exchange { function, reads, .. } => {
            let name = format!("{function:?}");
            let name = name.split(['(', ' ']).next().unwrap_or("").to_lowercase();
            let tables: Vec<String> =
                reads.iter().map(|read| format!("pieces of t{}", read.tensor)).collect();
            format!("{name} of [{}]", [operands, tables].concat().join("; "))
        }
        Kernel::Foreign { what, .. } if operands.is_empty() => what.clone(),
        Kernel::Foreign { what, .. } => format!("{what} of [{}]", operands.join("; ")),
        Kernel::Whole(ChunkFunction::Measure(measure)) => {
            let name = format!("{measure:?}");
            let name = name.split(['(', ' ']).next().unwrap_or("").to_lowercase();
            format!("{name} of [{}]", operands.join("; "))
        }
        Kernel::Whole(function) => format!("{function:?} of [{}]", operands.join("; ")),
    }
}

/// The steps of a program, constants left out.
fn program_text(program: &Program) -> String {
    let step = |op: &StepOp| match op {
        StepOp::Load { input } => Some(format!("load {input}")),
        StepOp::Index { map, .. } => {
            Some(format!("{map:?}").split(['(', ' ']).next().unwrap_or("").to_lowercase())
        }
        StepOp::Const(_) => None,
        StepOp::Cast(_) => Some("cast".to_owned()),
        StepOp::Narrow(_) => Some("narrow".to_owned()),
        StepOp::Unary(op, _) => Some(op.name().to_owned()),
        StepOp::Binary(op, ..) => Some(op.name().to_owned()),
        StepOp::Where(..) => Some("where".to_owned()),
        StepOp::RowFold(fold, _) => Some(format!("{} of rows", fold.name())),
        StepOp::Chain { .. } => Some("chain".to_owned()),
    };
    let output = |output: &Output| match output {
        Output::Store(_) => "store".to_owned(),
        Output::Fold { fold, .. } => format!("fold {}", fold.name()),
    };
    let steps = program.steps.iter().filter_map(|s| step(&s.op));
    steps.chain(program.outputs.iter().map(output)).collect::<Vec<_>>().join(" > ")
}

fn flops_of(stage: &Stage) -> f64 {
    let elements = stage.grid.axes.iter().map(|axis| axis.len() as f64).product::<f64>();
    if let Kernel::Product(product) = &stage.kernel {
        let elements =
            if product.split { elements / stage.grid.axes[0].len().max(1) as f64 } else { elements };
        return 2.0 * elements * product.depth.len() as f64;
    }
    let counted = |op: &StepOp| {
        !matches!(op, StepOp::Load { .. } | StepOp::Const(_) | StepOp::Cast(_) | StepOp::Narrow(_))
    };
    let of_program = |program: &Program| {
        let steps = program.steps.iter().filter(|step| counted(&step.op)).map(|step| step.width() as f64);
        steps.sum::<f64>()
            + program.outputs.iter().filter(|output| matches!(output, Output::Fold { .. })).count() as f64
    };
    elements * stage.operands.iter().map(|operand| of_program(&operand.program)).sum::<f64>()
}
