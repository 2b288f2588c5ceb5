//! A fused program: the computation of a task for every element of its chunk, as data.
//!
//! Step `i` defines value `i`; steps refer to earlier values only. The program says nothing of sizes: the
//! chunk's place and extents come with each task, so that one program serves every chunk of a tensor.
//!
//! A value is *narrow* (one element per element of the task's domain) or *wide* (a row of `width` contiguous
//! elements per element of the domain). [`StepOp::RowFold`] turns a wide value into a narrow one: so a
//! reduction over short trailing axes happens in registers, with element-wise steps on both sides.

use crate::dtype::DType;
use crate::error::KernelError;
use crate::fold::Fold;
use crate::random::Key;
use crate::scalar::Scalar;
use crate::ufunc::{BinaryOp, UnaryOp};
use serde::{Deserialize, Serialize};

/// The index of the step that defines a value.
pub type ValueId = usize;

/// A fused program. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The computation in single-assignment form.
    pub steps: Vec<Step>,
    /// Outputs of the task.
    pub outputs: Vec<Output>,
}

/// One operation on blocks of elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The operation.
    pub op: StepOp,
    /// Element type of the value: never a half-precision type except as source or result of a cast.
    pub dtype: DType,
    /// Extents of the trailing axes that a wide value has beyond the domain; empty for a narrow one.
    pub trailing: Vec<usize>,
}

/// The operations of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum StepOp {
    /// The task's input of this number, shaped as the domain and the trailing axes.
    Load {
        input: usize,
    },
    /// A function of the element's global position.
    Index {
        index: IndexForm,
        map: IndexMap,
    },
    /// The same number everywhere.
    Const(Scalar),
    /// The argument in another dtype, by NumPy's `astype`.
    Cast(ValueId),
    /// As `Cast`, for the result of a reduction: warnings of the cast are those of the reduction.
    Narrow(ValueId),
    Unary(UnaryOp, ValueId),
    Binary(BinaryOp, ValueId, ValueId),
    /// The second argument where the first is true, else the third.
    Where(ValueId, ValueId, ValueId),
    /// One element from each row of a wide value.
    RowFold(Fold, ValueId),
    /// Several steps in one loop, over a function of the index or a block of float64; `pairs` adds up rows of
    /// two. The compiler of programs makes it from other steps.
    Chain {
        source: ValueId,
        map: ChainMap,
        pairs: bool,
    },
}

/// Operations of a chain on each element: each operation rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ChainMap {
    /// The element itself.
    Identity,
    /// `x + addend`.
    Add { addend: f64 },
    /// `x * factor`.
    Mul { factor: f64 },
    /// `(x + addend) * factor`.
    AddMul { addend: f64, factor: f64 },
    /// `x * factor + addend`.
    MulAdd { factor: f64, addend: f64 },
    /// `x * x`.
    Square,
}

impl StepOp {
    /// Replaces each argument by `place[argument]`.
    pub(crate) fn rename(&mut self, place: &[ValueId]) {
        match self {
            StepOp::Load { .. } | StepOp::Index { .. } | StepOp::Const(_) => {}
            StepOp::Cast(a)
            | StepOp::Narrow(a)
            | StepOp::Unary(_, a)
            | StepOp::RowFold(_, a)
            | StepOp::Chain { source: a, .. } => *a = place[*a],
            StepOp::Binary(_, a, b) => (*a, *b) = (place[*a], place[*b]),
            StepOp::Where(a, b, c) => (*a, *b, *c) = (place[*a], place[*b], place[*c]),
        }
    }
}

/// A whole number that is an affine function of global coordinates: `offset + sum(strides[d] * index[d])`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct IndexForm {
    pub offset: i64,
    /// One per axis of the domain, then one per trailing axis.
    pub strides: Vec<i64>,
}

/// Function that a step applies to an [`IndexForm`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum IndexMap {
    /// The number itself, int64.
    Position,
    /// `start + step * number`, float64.
    Ramp { start: f64, step: f64 },
    /// A random float64 in [0, 1).
    Uniform(Key),
    /// A random float64 in (0, 1).
    OpenUnit(Key),
    /// A random uint64 below `span`; `span` 0 stands for 2^64.
    Below { key: Key, span: u64 },
}

impl IndexMap {
    /// The dtype of the result.
    pub fn dtype(self) -> DType {
        match self {
            IndexMap::Position => DType::I64,
            IndexMap::Ramp { .. } | IndexMap::Uniform(_) | IndexMap::OpenUnit(_) => DType::F64,
            IndexMap::Below { .. } => DType::U64,
        }
    }
}

/// Output of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Output {
    /// A narrow value, as a chunk of the domain's extents.
    Store(ValueId),
    /// Narrow values folded over `axes` of the domain: one chunk per component of the fold, `axes` having
    /// extent 1.
    Fold { fold: Fold, args: Vec<ValueId>, axes: Vec<usize> },
}

impl Step {
    /// Elements per element of the domain.
    pub fn width(&self) -> usize {
        self.trailing.iter().product()
    }

    /// The values that this step reads.
    pub fn args(&self) -> Vec<ValueId> {
        match self.op {
            StepOp::Load { .. } | StepOp::Index { .. } | StepOp::Const(_) => Vec::new(),
            StepOp::Cast(a)
            | StepOp::Narrow(a)
            | StepOp::Unary(_, a)
            | StepOp::RowFold(_, a)
            | StepOp::Chain { source: a, .. } => vec![a],
            StepOp::Binary(_, a, b) => vec![a, b],
            StepOp::Where(a, b, c) => vec![a, b, c],
        }
    }

    /// Estimated cost of one element, in units of about a fifth of a nanosecond.
    pub fn cost(&self) -> f64 {
        match &self.op {
            StepOp::Const(_) => 0.0,
            StepOp::Load { .. } => 2.0,
            StepOp::Index { map, .. } => match map {
                IndexMap::Position | IndexMap::Ramp { .. } => 1.0,
                _ => 2.0,
            },
            StepOp::Unary(op, _) => op.cost(),
            StepOp::Binary(op, ..) => op.cost(),
            StepOp::Cast(_)
            | StepOp::Narrow(_)
            | StepOp::Where(..)
            | StepOp::RowFold(..)
            | StepOp::Chain { .. } => 1.5,
        }
    }
}

impl Output {
    /// Replaces each argument by `place[argument]`.
    pub(crate) fn rename(&mut self, place: &[ValueId]) {
        match self {
            Output::Store(value) => *value = place[*value],
            Output::Fold { args, .. } => args.iter_mut().for_each(|arg| *arg = place[*arg]),
        }
    }

    /// The values that the output reads.
    pub fn args(&self) -> &[ValueId] {
        match self {
            Output::Store(value) => std::slice::from_ref(value),
            Output::Fold { args, .. } => args,
        }
    }
}

impl Program {
    /// Number of inputs of the program.
    pub fn input_count(&self) -> usize {
        let inputs = self.steps.iter().filter_map(|step| match step.op {
            StepOp::Load { input } => Some(input + 1),
            _ => None,
        });
        inputs.max().unwrap_or(0)
    }

    /// Estimated cost of one element of the domain, in the unit of [`Step::cost`].
    pub fn cost(&self) -> f64 {
        self.steps.iter().map(|step| step.cost() * step.width() as f64).sum()
    }

    /// Checks that values are defined before use, and that the arguments of a step agree in width and dtype.
    ///
    /// # Errors
    /// `Malformed`, naming the step.
    pub fn check(&self) -> Result<(), KernelError> {
        let malformed = |i: usize, what: &str| KernelError::Malformed(format!("step {i}: {what}"));
        for (i, step) in self.steps.iter().enumerate() {
            let args = step.args();
            if args.iter().any(|&a| i <= a) {
                return Err(malformed(i, "value used before it is defined"));
            }
            let is_const = |a: ValueId| matches!(self.steps[a].op, StepOp::Const(_));
            let row_fold = matches!(step.op, StepOp::RowFold(..) | StepOp::Chain { pairs: true, .. });
            if !row_fold && args.iter().any(|&a| !is_const(a) && self.steps[a].width() != step.width()) {
                return Err(malformed(i, "arguments of different width"));
            }
            if let StepOp::RowFold(_, a) = step.op
                && !(self.steps[a].trailing.starts_with(&step.trailing) && 0 < self.steps[a].width())
            {
                return Err(malformed(i, "rows that are not the last axes of the argument, or empty ones"));
            }
            if let StepOp::Binary(_, a, b) | StepOp::Where(_, a, b) = step.op
                && self.steps[a].dtype != self.steps[b].dtype
            {
                return Err(malformed(i, "arguments of different dtype"));
            }
        }
        let narrow = |&v: &ValueId| self.steps.get(v).is_some_and(|step| step.width() == 1);
        if !self.outputs.iter().all(|output| output.args().iter().all(narrow)) {
            return Err(KernelError::Malformed("an output is undefined or wide".to_owned()));
        }
        Ok(())
    }
}

impl UnaryOp {
    /// Estimated cost of one element, in the unit of [`Step::cost`].
    pub fn cost(self) -> f64 {
        use UnaryOp::*;
        match self {
            Sqrt | Reciprocal => 4.0,
            Arccos | Arccosh | Arcsin | Arcsinh | Arctan | Arctanh | Cbrt | Cos | Cosh | Exp | Exp2
            | Expm1 | I0 | Log | Log10 | Log1p | Log2 | NormalQuantile | Sin | Sinh | Tan | Tanh => 40.0,
            Entr | Erf | Erfc | Erfcinv | Erfinv | Expit | Logit => 60.0,
            Gamma | Gammaln | Rgamma => 100.0,
            _ => 1.0,
        }
    }
}

impl BinaryOp {
    /// Estimated cost of one element, in the unit of [`Step::cost`].
    pub fn cost(self) -> f64 {
        use BinaryOp::*;
        match self {
            Divide => 4.0,
            Arctan2 | Hypot | Logaddexp | Logaddexp2 | Power | Fmod | Remainder | FloorDivide | Gcd | Lcm => {
                60.0
            }
            KlDiv | RelEntr | Xlog1py | Xlogy => 60.0,
            _ => 1.0,
        }
    }
}
