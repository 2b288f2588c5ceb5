//! Groups: steps of plain arithmetic that go through tiles together (`super::tiles`).
//!
//! A group has one *root*, whose values leave it, and *members* that only the group uses. It runs at the
//! position of the root, so values that its members read live until then (`super::registers`). Members keep
//! their registers: if a flag of the CPU was raised, the block is computed again step by step, and the steps
//! note the warnings that NumPy would give.

use super::chain::IndexSource;
use super::tiles::{Arithmetic, Draw, Map, Number, TILES_MAX, Then, TileId, TileKind, TileOp, TileSource};
use super::{Bound, Compiled, Leaf};
use crate::dtype::DType;
use crate::element::Element;
use crate::fold::Fold;
use crate::layout::Run;
use crate::program::{ChainMap, Output, Program, Step, StepOp, ValueId};
use crate::random::Key;
use crate::ufunc::{BinaryOp, UnaryOp};

/// Upper bound on the members of a group. Each reads at most two values, so the tiles are few enough.
const MEMBERS_MAX: usize = 11;
const _: () = assert!(2 * MEMBERS_MAX < TILES_MAX);

/// Facts about a group when a program is compiled.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) root: ValueId,
    /// In order of evaluation; the root is the last.
    pub(super) members: Vec<ValueId>,
    /// The fold that is the only reader of the root, by its number among the outputs.
    pub(super) fold: Option<usize>,
}

/// The groups of a program, in order of their roots.
pub(super) fn find(program: &Program) -> Vec<Group> {
    let users = users(program);
    let mut is_taken = vec![false; program.steps.len()];
    let mut groups = Vec::new();
    for root in (0..program.steps.len()).rev() {
        if is_taken[root] || !is_arithmetic(program, &program.steps[root]) {
            continue;
        }
        let width = program.steps[root].width();
        let mut members = vec![root];
        for value in (0..root).rev() {
            let step = &program.steps[value];
            let joins = members.len() < MEMBERS_MAX
                && !is_taken[value]
                && step.width() == width
                && (is_arithmetic(program, step) || is_leaf(step))
                && users[value].iter().all(|user| matches!(user, User::Step(user) if members.contains(user)));
            if joins {
                members.push(value);
            }
        }
        let fold = match users[root].as_slice() {
            [User::Output(output)] if is_fold(&program.outputs[*output]) => Some(*output),
            _ => None,
        };
        if members.len() + usize::from(fold.is_some()) < 2 {
            continue;
        }
        members.reverse();
        members.iter().for_each(|&member| is_taken[member] = true);
        groups.push(Group { root, members, fold });
    }
    groups.reverse();
    groups
}

#[derive(Clone, Copy)]
enum User {
    Step(ValueId),
    Output(usize),
}

fn users(program: &Program) -> Vec<Vec<User>> {
    let mut users = vec![Vec::new(); program.steps.len()];
    for (i, step) in program.steps.iter().enumerate() {
        step.args().into_iter().for_each(|arg| users[arg].push(User::Step(i)));
    }
    for (i, output) in program.outputs.iter().enumerate() {
        output.args().iter().for_each(|&arg| users[arg].push(User::Output(i)));
    }
    users
}

/// Whether values may be folded as they are computed, if all go into one slot.
fn is_fold(output: &Output) -> bool {
    matches!(output, Output::Fold { fold: Fold::Sum | Fold::Max | Fold::Min, .. })
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

/// Whether a step is a source that fills tiles.
fn is_leaf(step: &Step) -> bool {
    match step.op {
        StepOp::Index { map, .. } => map.dtype() == DType::F64 && IndexSource::of(map).is_some(),
        StepOp::Chain { pairs, .. } => !pairs,
        _ => false,
    }
}

/// Whether tiles can compute a step, and the flags of the CPU tell all that NumPy would warn of.
fn is_arithmetic(program: &Program, step: &Step) -> bool {
    let dtype = |value: ValueId| program.steps[value].dtype;
    match step.op {
        StepOp::Cast(a) => is_float(step.dtype) && is_float(dtype(a)),
        StepOp::Unary(op, a) => is_float(step.dtype) && dtype(a) == step.dtype && unary(op).is_some(),
        StepOp::Binary(op, a, _) => is_float(step.dtype) && dtype(a) == step.dtype && binary(op).is_some(),
        _ => false,
    }
}

fn unary(op: UnaryOp) -> Option<Arithmetic> {
    Some(match op {
        UnaryOp::Absolute | UnaryOp::Fabs => Arithmetic::Absolute,
        UnaryOp::Exp => Arithmetic::Exp,
        UnaryOp::Negative => Arithmetic::Negative,
        UnaryOp::Reciprocal => Arithmetic::Reciprocal,
        UnaryOp::Sqrt => Arithmetic::Sqrt,
        UnaryOp::Square => Arithmetic::Square,
        _ => return None,
    })
}

/// Function that can be applied in the loop that computes its argument.
fn then(op: UnaryOp) -> Option<Then> {
    Some(match op {
        UnaryOp::Absolute | UnaryOp::Fabs => Then::Absolute,
        UnaryOp::Negative => Then::Negative,
        UnaryOp::Sqrt => Then::Sqrt,
        UnaryOp::Square => Then::Square,
        _ => return None,
    })
}

fn binary(op: BinaryOp) -> Option<Arithmetic> {
    Some(match op {
        BinaryOp::Add => Arithmetic::Add,
        BinaryOp::Divide => Arithmetic::Divide,
        BinaryOp::Maximum => Arithmetic::Maximum,
        BinaryOp::Minimum => Arithmetic::Minimum,
        BinaryOp::Multiply => Arithmetic::Multiply,
        BinaryOp::Subtract => Arithmetic::Subtract,
        _ => return None,
    })
}

/// Operation whose second argument, or else first, is random numbers.
fn draw(op: BinaryOp, is_second: bool) -> Option<Draw> {
    Some(match op {
        BinaryOp::Add => Draw::Add,
        BinaryOp::Multiply => Draw::Multiply,
        BinaryOp::Subtract if is_second => Draw::Subtract,
        BinaryOp::Subtract => Draw::SubtractFrom,
        _ => return None,
    })
}

/// A group bound to the values of one task.
#[derive(Debug)]
pub(super) struct BoundGroup {
    pub(super) root: ValueId,
    pub(super) fold: Option<usize>,
    pub(super) ops: Vec<TileOp>,
    pub(super) sources: Vec<TileSource>,
    /// Values that are read from blocks.
    pub(super) inputs: Vec<ValueId>,
    pub(super) constants: Vec<(TileId, f64)>,
    pub(super) short_constants: Vec<(TileId, f32)>,
    /// The outcome for the root's values.
    pub(super) sink: TileKind,
    /// Members that the tiles compute. The others are sources in several runs, which fill their registers
    /// before.
    pub(super) inside: Vec<ValueId>,
    tiles: Vec<(ValueId, TileId)>,
    /// Random numbers that no tile holds yet, and their source.
    undrawn: Vec<(ValueId, u8)>,
    wide: TileId,
    short: TileId,
}

impl BoundGroup {
    /// The group with its root folded into this output, or stored.
    pub(super) fn new(group: &Group, fold: Option<usize>, compiled: &Compiled, bound: &Bound) -> BoundGroup {
        let sink = sink(
            fold.map(|output| &compiled.program.outputs[output]),
            compiled.program.steps[group.root].dtype,
        );
        let mut made = BoundGroup {
            root: group.root,
            fold,
            ops: Vec::new(),
            sources: Vec::new(),
            inputs: Vec::new(),
            constants: Vec::new(),
            short_constants: Vec::new(),
            sink,
            inside: Vec::new(),
            tiles: Vec::new(),
            undrawn: Vec::new(),
            wide: 0,
            short: 0,
        };
        for &member in &group.members {
            match compiled.program.steps[member].op {
                StepOp::Index { .. } => {
                    made.add_source(member, member, ChainMap::Identity, &compiled.program, bound);
                }
                StepOp::Chain { source, map, .. } => {
                    made.add_source(member, source, map, &compiled.program, bound);
                }
                StepOp::Cast(a) => made.add_cast(member, a, compiled),
                StepOp::Unary(op, a) => made.add_unary(member, op, a, compiled),
                StepOp::Binary(op, a, b) => made.add_binary(member, op, [a, b], compiled),
                _ => {}
            }
        }
        let last = made.tile(group.root, &compiled.program);
        made.push(sink, [last, last], 0, [0.0; 2]);
        made
    }

    fn next(&mut self, value: ValueId, dtype: DType) -> TileId {
        let next = if dtype == DType::F32 { &mut self.short } else { &mut self.wide };
        let tile = *next;
        *next += 1;
        self.tiles.push((value, tile));
        tile
    }

    fn push(&mut self, kind: TileKind, [a, b]: [u8; 2], to: TileId, numbers: [f64; 2]) {
        self.ops.push(TileOp { kind, a, b, to, numbers });
    }

    /// The tile of a value. Values from outside the group are loaded; constants are filled in once.
    fn tile(&mut self, value: ValueId, program: &Program) -> TileId {
        if let Some(&(_, tile)) = self.tiles.iter().find(|(known, _)| *known == value) {
            return tile;
        }
        let step = &program.steps[value];
        let to = self.next(value, step.dtype);
        let is_short = step.dtype == DType::F32;
        if let Some(at) = self.undrawn.iter().position(|(known, _)| *known == value) {
            let (_, source) = self.undrawn.swap_remove(at);
            let kind = if is_short { TileKind::UniformShort } else { TileKind::Number(Number::Uniform) };
            self.push(kind, [source, 0], to, [0.0; 2]);
            return to;
        }
        match step.op {
            StepOp::Const(scalar) if is_short => self.short_constants.push((to, f32::from_scalar(scalar))),
            StepOp::Const(scalar) => self.constants.push((to, f64::from_scalar(scalar))),
            _ => {
                let input = self.input(value);
                self.push(TileKind::Load, [input, 0], to, [0.0; 2]);
            }
        }
        to
    }

    fn input(&mut self, value: ValueId) -> u8 {
        self.inputs.push(value);
        self.inputs.len() as u8 - 1
    }

    /// Adds a function of the index, or another value, with a map. A function whose index is not one run
    /// stays a separate step. The other value may be a member itself, which only tiles hold.
    fn add_source(
        &mut self,
        member: ValueId,
        source: ValueId,
        map: ChainMap,
        program: &Program,
        bound: &Bound,
    ) {
        let number = match &bound.leaves[source] {
            Leaf::Index { map, layout } => IndexSource::of(*map).map(|number| (number, layout.single_run())),
            _ => None,
        };
        match number {
            Some((_, None)) => return,
            Some((IndexSource::Uniform(key), Some(run))) => {
                let source = self.source(Some(key), run);
                if map == ChainMap::Identity {
                    self.undrawn.push((member, source));
                } else {
                    let to = self.next(member, DType::F64);
                    self.push(uniform(map), [source, 0], to, numbers(map));
                }
            }
            Some((number, Some(run))) => {
                let source = self.source(None, run);
                let to = self.wide;
                self.wide += 1;
                match number {
                    IndexSource::Ramp { start, step } => {
                        self.push(TileKind::Number(Number::Ramp), [source, 0], to, [start, step]);
                    }
                    _ => self.push(TileKind::Number(Number::Position), [source, 0], to, [0.0; 2]),
                }
                self.add_map(member, map, to);
            }
            None => {
                let from = self.tile(source, program);
                self.add_map(member, map, from);
            }
        }
        self.inside.push(member);
    }

    fn source(&mut self, key: Option<Key>, run: Run) -> u8 {
        self.sources.push(TileSource::new(key, run));
        self.sources.len() as u8 - 1
    }

    /// Applies a map to a tile; the result is the member's tile.
    fn add_map(&mut self, member: ValueId, map: ChainMap, from: TileId) {
        let kind = match (map, tile_map(map)) {
            (ChainMap::Identity, _) => return self.tiles.push((member, from)),
            (_, Some(map)) => TileKind::Map(map),
            (_, None) => TileKind::Wide(Arithmetic::Square),
        };
        let to = self.next(member, DType::F64);
        self.push(kind, [from, from], to, numbers(map));
    }

    fn add_cast(&mut self, member: ValueId, a: ValueId, compiled: &Compiled) {
        let program = &compiled.program;
        let (from, to_dtype) = (program.steps[a].dtype, program.steps[member].dtype);
        let undrawn = self.undrawn.iter_mut().find(|(known, _)| *known == a && compiled.use_count[a] == 1);
        if from == to_dtype {
            let same = self.tile(a, program);
            self.tiles.push((member, same));
        } else if let Some((value, _)) = undrawn {
            // Random numbers are float64, so this cast narrows them.
            *value = member;
        } else {
            let a = self.tile(a, program);
            let to = self.next(member, to_dtype);
            let kind = if to_dtype == DType::F32 { TileKind::Narrow } else { TileKind::Widen };
            self.push(kind, [a, a], to, [0.0; 2]);
        }
        self.inside.push(member);
    }

    fn add_unary(&mut self, member: ValueId, op: UnaryOp, a: ValueId, compiled: &Compiled) {
        let dtype = compiled.program.steps[member].dtype;
        let from = self.tile(a, &compiled.program);
        if compiled.use_count[a] == 1 && self.applies_then(op, from, dtype) {
            self.tiles.push((member, from));
        } else if let Some(op) = unary(op) {
            let to = self.next(member, dtype);
            self.push(arithmetic(op, dtype), [from, from], to, [0.0; 2]);
        }
        self.inside.push(member);
    }

    /// Applies a function in the loop that filled the tile, if that is the last operation and supports it.
    fn applies_then(&mut self, op: UnaryOp, tile: TileId, dtype: DType) -> bool {
        let (Some(then), Some(last)) = (then(op), self.ops.last_mut()) else { return false };
        let is_short = dtype == DType::F32;
        match &mut last.kind {
            TileKind::Drawn(_, known @ Then::Nothing) if last.to == tile && !is_short => *known = then,
            TileKind::DrawnShort(_, known @ Then::Nothing) if last.to == tile && is_short => *known = then,
            _ => return false,
        }
        true
    }

    fn add_binary(&mut self, member: ValueId, op: BinaryOp, args: [ValueId; 2], compiled: &Compiled) {
        let dtype = compiled.program.steps[member].dtype;
        let is_short = dtype == DType::F32;
        let [a, b] = args;
        let is_undrawn = |value: ValueId| {
            let found = self.undrawn.iter().position(|(known, _)| *known == value);
            found.filter(|_| a != b && compiled.use_count[value] == 1)
        };
        let drawn = match (is_undrawn(b), is_undrawn(a)) {
            (Some(at), _) => Some((at, a, draw(op, true))),
            (None, Some(at)) => Some((at, b, draw(op, false))),
            (None, None) => None,
        };
        if let Some((at, other, Some(draw))) = drawn {
            let (_, source) = self.undrawn.swap_remove(at);
            let other = self.tile(other, &compiled.program);
            let to = self.next(member, dtype);
            let kind = if is_short {
                TileKind::DrawnShort(draw, Then::Nothing)
            } else {
                TileKind::Drawn(draw, Then::Nothing)
            };
            self.push(kind, [other, source], to, [0.0; 2]);
        } else if let Some(op) = binary(op) {
            let args = args.map(|arg| self.tile(arg, &compiled.program));
            let to = self.next(member, dtype);
            self.push(arithmetic(op, dtype), args, to, [0.0; 2]);
        }
        self.inside.push(member);
    }
}

/// Operation for the values of a root: a fold if `output` is one, else a store.
fn sink(output: Option<&Output>, dtype: DType) -> TileKind {
    let is_short = dtype == DType::F32;
    match output {
        Some(Output::Fold { fold: Fold::Max, .. }) if is_short => TileKind::MaxShort,
        Some(Output::Fold { fold: Fold::Max, .. }) => TileKind::Max,
        Some(Output::Fold { fold: Fold::Min, .. }) if is_short => TileKind::MinShort,
        Some(Output::Fold { fold: Fold::Min, .. }) => TileKind::Min,
        Some(_) => TileKind::Sum,
        None if is_short => TileKind::StoreShort,
        None => TileKind::Store,
    }
}

fn arithmetic(op: Arithmetic, dtype: DType) -> TileKind {
    if dtype == DType::F32 { TileKind::Short(op) } else { TileKind::Wide(op) }
}

/// Random numbers with a map.
fn uniform(map: ChainMap) -> TileKind {
    TileKind::Number(match (map, tile_map(map)) {
        (_, Some(map)) => Number::Mapped(map),
        (ChainMap::Square, None) => Number::UniformSquare,
        (_, None) => Number::Uniform,
    })
}

/// The map of tiles for a map with constants.
fn tile_map(map: ChainMap) -> Option<Map> {
    match map {
        ChainMap::Identity | ChainMap::Square => None,
        ChainMap::Add { .. } => Some(Map::Add),
        ChainMap::Mul { .. } => Some(Map::Mul),
        ChainMap::AddMul { .. } => Some(Map::AddMul),
        ChainMap::MulAdd { .. } => Some(Map::MulAdd),
    }
}

fn numbers(map: ChainMap) -> [f64; 2] {
    match map {
        ChainMap::Identity | ChainMap::Square => [0.0; 2],
        ChainMap::Add { addend } => [addend, 0.0],
        ChainMap::Mul { factor } => [factor, 0.0],
        ChainMap::AddMul { addend, factor } => [addend, factor],
        ChainMap::MulAdd { factor, addend } => [factor, addend],
    }
}
