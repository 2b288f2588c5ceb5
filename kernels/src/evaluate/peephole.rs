//! Rewrites a program before it runs: comparisons of square roots, chains of cheap steps, steps that nothing
//! uses.
//!
//! Every rewrite keeps results to the bit.

use super::chain::IndexSource;
use crate::dtype::DType;
use crate::fold::Fold;
use crate::program::{ChainMap, IndexMap, Output, Program, StepOp, ValueId};
use crate::scalar::Scalar;
use crate::ufunc::{BinaryOp, UnaryOp};

/// The rewritten program, which is the one that runs.
pub(super) fn rewrite(mut program: Program) -> Program {
    for value in 0..program.steps.len() {
        compare_squares(&mut program, value);
    }
    make_chains(&mut program);
    drop_unused(program)
}

fn constant(program: &Program, value: ValueId) -> Option<f64> {
    match program.steps[value].op {
        StepOp::Const(scalar @ (Scalar::Float(_) | Scalar::Int(_) | Scalar::Unsigned(_))) => {
            Some(scalar.to_f64())
        }
        _ => None,
    }
}

/// `sqrt(s) < c` becomes `s < t`, with t the least number whose root is not below c. It is there for one job:
/// counting random points in a circle.
fn compare_squares(program: &mut Program, value: ValueId) {
    let StepOp::Binary(op, root, limit) = program.steps[value].op else { return };
    let StepOp::Unary(UnaryOp::Sqrt, square) = program.steps[root].op else { return };
    let Some(c) = constant(program, limit) else { return };
    if program.steps[square].dtype != DType::F64 || !(1e-100..1e100).contains(&c) {
        return;
    }
    let (op, limit) = match op {
        // The root of a negative number raises a flag, which a comparison does not.
        BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual
            if !is_never_negative(program, square, PROOF_DEPTH_MAX) =>
        {
            return;
        }
        BinaryOp::Less => (BinaryOp::Less, least_with_root(c)),
        BinaryOp::LessEqual => (BinaryOp::Less, least_with_root(c.next_up())),
        BinaryOp::Greater => (BinaryOp::GreaterEqual, least_with_root(c.next_up())),
        BinaryOp::GreaterEqual => (BinaryOp::GreaterEqual, least_with_root(c)),
        _ => return,
    };
    // The constant replaces the root, so nothing else may use the root.
    if uses(program)[root] != 1 {
        return;
    }
    program.steps[root].op = StepOp::Const(Scalar::Float(limit));
    program.steps[value].op = StepOp::Binary(op, square, root);
}

/// The least float whose square root is at least `c`.
fn least_with_root(c: f64) -> f64 {
    let mut square = c * c;
    while square.sqrt() < c {
        square = square.next_up();
    }
    while c <= square.next_down().sqrt() {
        square = square.next_down();
    }
    square
}

fn is_never_negative(program: &Program, value: ValueId, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let never = |value: ValueId| is_never_negative(program, value, depth);
    match &program.steps[value].op {
        StepOp::Const(scalar) => 0.0 <= scalar.to_f64(),
        StepOp::Index { map, .. } => matches!(map, IndexMap::Uniform(_) | IndexMap::OpenUnit(_)),
        StepOp::Unary(UnaryOp::Square | UnaryOp::Absolute, _) => true,
        StepOp::Binary(BinaryOp::Multiply, a, b) if a == b => true,
        StepOp::Binary(BinaryOp::Add | BinaryOp::Multiply, a, b) => never(*a) && never(*b),
        StepOp::RowFold(Fold::Sum | Fold::Prod | Fold::Max | Fold::Min, a) => never(*a),
        _ => false,
    }
}

/// Depth limit of a proof of sign: the proof may branch in two at each level.
const PROOF_DEPTH_MAX: usize = 8;

/// Number of steps and outputs that use each value; a step that uses a value twice counts once.
pub(super) fn uses(program: &Program) -> Vec<usize> {
    let mut uses = vec![0; program.steps.len()];
    for step in &program.steps {
        let mut args = step.args();
        args.sort_unstable();
        args.dedup();
        args.into_iter().for_each(|arg| uses[arg] += 1);
    }
    program.outputs.iter().flat_map(Output::args).for_each(|&arg| uses[arg] += 1);
    uses
}

/// Replaces each longest run of chainable steps by one step.
fn make_chains(program: &mut Program) {
    let uses = uses(program);
    for value in (0..program.steps.len()).rev() {
        let step = &program.steps[value];
        if step.dtype != DType::F64 || matches!(step.op, StepOp::Chain { .. }) {
            continue;
        }
        let is_pair_sum = |a: ValueId| {
            program.steps[a].trailing.ends_with(&[2]) && program.steps[a].width() == 2 * step.width()
        };
        let (pairs, end) = match step.op {
            StepOp::RowFold(Fold::Sum, a) if is_pair_sum(a) && step.width() == 1 && uses[a] == 1 => (true, a),
            _ => (false, value),
        };
        let (map, source) = collect_map(program, &uses, end);
        let source_op = &program.steps[source].op;
        let single = |source: ValueId| uses[source] == 1;
        let source_step = match source_op {
            StepOp::Index { map, .. } if source != value && single(source) => IndexSource::of(*map).is_some(),
            StepOp::Cast(a) if source != value && single(source) => {
                matches!(program.steps[*a].op, StepOp::Index { map: IndexMap::Position, .. }) && uses[*a] == 1
            }
            _ => false,
        };
        let steps_saved = usize::from(pairs) + map_len(map) + usize::from(source_step);
        // A chain of one map over a stored block saves nothing over the step itself.
        if steps_saved < 2 || matches!(source_op, StepOp::Const(_)) {
            continue;
        }
        let source = match source_op {
            StepOp::Cast(a) if source_step => *a,
            _ => source,
        };
        program.steps[value].op = StepOp::Chain { source, map, pairs };
    }
}

/// Number of operations of a map.
fn map_len(map: ChainMap) -> usize {
    match map {
        ChainMap::Identity => 0,
        ChainMap::Add { .. } | ChainMap::Mul { .. } | ChainMap::Square => 1,
        ChainMap::AddMul { .. } | ChainMap::MulAdd { .. } => 2,
    }
}

/// Follows maps back from `end`, through values with no other user.
fn collect_map(program: &Program, uses: &[usize], end: ValueId) -> (ChainMap, ValueId) {
    if let Some(source) = squared(program, end) {
        return (ChainMap::Square, source);
    }
    let Some((last, middle)) = scalar_map(program, end) else { return (ChainMap::Identity, end) };
    let before = scalar_map(program, middle).filter(|_| uses[middle] == 1);
    match (before, last) {
        (Some((ChainMap::Add { addend }, source)), ChainMap::Mul { factor }) => {
            (ChainMap::AddMul { addend, factor }, source)
        }
        (Some((ChainMap::Mul { factor }, source)), ChainMap::Add { addend }) => {
            (ChainMap::MulAdd { factor, addend }, source)
        }
        _ => (last, middle),
    }
}

fn squared(program: &Program, value: ValueId) -> Option<ValueId> {
    match program.steps[value].op {
        StepOp::Unary(UnaryOp::Square, a) => Some(a),
        StepOp::Binary(BinaryOp::Multiply, a, b) if a == b => Some(a),
        _ => None,
    }
}

/// `value` as a function of one other value and a constant.
fn scalar_map(program: &Program, value: ValueId) -> Option<(ChainMap, ValueId)> {
    let StepOp::Binary(op, a, b) = program.steps[value].op else { return None };
    if program.steps[value].dtype != DType::F64 {
        return None;
    }
    match (op, constant(program, a), constant(program, b)) {
        (BinaryOp::Add, None, Some(addend)) => Some((ChainMap::Add { addend }, a)),
        (BinaryOp::Add, Some(addend), None) => Some((ChainMap::Add { addend }, b)),
        (BinaryOp::Subtract, None, Some(c)) => Some((ChainMap::Add { addend: -c }, a)),
        // c - x equals -1 * x + c to the bit.
        (BinaryOp::Subtract, Some(addend), None) => Some((ChainMap::MulAdd { factor: -1.0, addend }, b)),
        (BinaryOp::Multiply, None, Some(factor)) => Some((ChainMap::Mul { factor }, a)),
        (BinaryOp::Multiply, Some(factor), None) => Some((ChainMap::Mul { factor }, b)),
        _ => None,
    }
}

/// Removes steps whose values nothing uses.
fn drop_unused(program: Program) -> Program {
    let count = program.steps.len();
    let mut used = vec![false; count];
    program.outputs.iter().flat_map(Output::args).for_each(|&arg| used[arg] = true);
    for value in (0..count).rev() {
        if used[value] {
            program.steps[value].args().into_iter().for_each(|arg| used[arg] = true);
        }
    }
    let mut place = vec![0; count];
    let mut kept = Program::default();
    for (value, mut step) in program.steps.into_iter().enumerate() {
        if used[value] {
            step.op.rename(&place);
            place[value] = kept.steps.len();
            kept.steps.push(step);
        }
    }
    kept.outputs = program.outputs;
    kept.outputs.iter_mut().for_each(|output| output.rename(&place));
    kept
}
