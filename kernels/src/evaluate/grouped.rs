//! Runs the groups of a program for one task, and falls back to their steps if a flag was raised.

use super::group::BoundGroup;
use super::tiles::{Input, TileKind, TileRun};
use super::{Bound, Compiled, Scratch, Sink, operand};
use crate::cpu;
use crate::error::KernelError;
use crate::fold::add_lanes;
use crate::program::ValueId;
use crate::raised::{Function, note_raised};
use crate::ufunc::Operand;
use std::ops::Range;

/// A task of fewer rows would take less time than binding its groups. Debug builds group them all the same:
/// most tests have small arrays.
const ROWS_MIN: usize = if cfg!(debug_assertions) { 1 } else { 512 };
/// Number of blocks with flags after which a task runs step by step.
const RAISED_MAX: usize = 4;
/// Values that a group reads from blocks.
const INPUTS_MAX: usize = 12;

/// The groups of one task.
pub(super) struct Grouped {
    groups: Vec<BoundGroup>,
    /// The group whose tiles compute each step; [`NONE`] for others.
    group_of: Vec<u32>,
    /// For each output, whether a group has folded the values of this block into it.
    fed: Vec<bool>,
    raised: usize,
}

const NONE: u32 = u32::MAX;

impl Grouped {
    pub(super) fn new(compiled: &Compiled, bound: &Bound, sinks: &[Sink], rows: usize) -> Grouped {
        let mut grouped = Grouped { groups: Vec::new(), group_of: Vec::new(), fed: Vec::new(), raised: 0 };
        if rows < ROWS_MIN || compiled.groups.is_empty() {
            return grouped;
        }
        grouped.group_of = vec![NONE; compiled.program.steps.len()];
        grouped.fed = vec![false; compiled.program.outputs.len()];
        for (i, group) in compiled.groups.iter().enumerate() {
            let fold = group.fold.filter(|&output| is_total(&sinks[output]));
            let made = BoundGroup::new(group, fold, compiled, bound);
            made.inside.iter().for_each(|&member| grouped.group_of[member] = i as u32);
            grouped.groups.push(made);
        }
        grouped
    }

    /// Begins a block. After too many blocks with flags, groups are given up and all steps run one by one.
    pub(super) fn begin_block(&mut self) {
        if RAISED_MAX < self.raised {
            self.group_of.clear();
            self.fed.clear();
        }
    }

    /// Whether a group has folded the values of this block into an output.
    pub(super) fn has_fed(&self, output: usize) -> bool {
        self.fed.get(output).copied().unwrap_or(false)
    }

    /// Handles a step that belongs to a group: runs the group if it is the root. False for other steps.
    ///
    /// # Errors
    /// As the steps of the group.
    pub(super) fn run(
        &mut self,
        compiled: &Compiled,
        step: ValueId,
        bound: &Bound,
        rows: Range<usize>,
        sinks: &mut [Sink],
        scratch: &mut Scratch,
    ) -> Result<bool, KernelError> {
        let Some(&group) = self.group_of.get(step) else { return Ok(false) };
        if group == NONE {
            return Ok(false);
        }
        let group = &self.groups[group as usize];
        if group.root != step {
            return Ok(true);
        }
        let fed = group.fold;
        let is_done =
            compute(group, compiled, bound, rows.clone(), fed.map(|output| &mut sinks[output]), scratch);
        if let Some(output) = fed {
            self.fed[output] = is_done;
        }
        if !is_done {
            self.raised += 1;
            for &member in &group.inside {
                compiled.run_step(member, bound, rows.start, rows.end, scratch)?;
            }
        }
        Ok(true)
    }
}

fn is_total(sink: &Sink) -> bool {
    matches!(sink, Sink::Fold { folder, .. } if folder.is_total())
}

/// Computes a block of the root, or folds it. False if a flag was raised; the block is then discarded.
fn compute(
    group: &BoundGroup,
    compiled: &Compiled,
    bound: &Bound,
    rows: Range<usize>,
    sink: Option<&mut Sink>,
    scratch: &mut Scratch,
) -> bool {
    let width = compiled.program.steps[group.root].width();
    let elements = rows.start * width..rows.end * width;
    let register = compiled.allocation.register[group.root];
    let mut out = scratch.take(register);
    let mut tiles = scratch.tiles.take().unwrap_or_default();
    tiles.fill(&group.constants, &group.short_constants);
    let mut inputs = [Input::Wide(&[]); INPUTS_MAX];
    for (input, &value) in inputs.iter_mut().zip(&group.inputs) {
        let block = operand(bound, scratch, value, rows.start);
        *input = Input::of(block, compiled.program.steps[value].dtype, elements.len());
    }
    let begin = match group.sink {
        TileKind::Max | TileKind::MaxShort => f64::NEG_INFINITY,
        TileKind::Min | TileKind::MinShort => f64::INFINITY,
        _ => 0.0,
    };
    match group.sink {
        TileKind::MaxShort | TileKind::MinShort => tiles.lanes_short.begin(begin as f32),
        TileKind::Store | TileKind::StoreShort => {}
        _ => tiles.lanes.begin(begin),
    }
    let mut run = TileRun {
        ops: &group.ops,
        sources: &group.sources,
        inputs: &inputs[..group.inputs.len()],
        tiles: &mut tiles,
        elements: elements.clone(),
        out: &mut [],
        out_short: &mut [],
    };
    match group.sink {
        TileKind::Store => run.out = &mut out.elements_mut()[..elements.len()],
        TileKind::StoreShort => run.out_short = &mut out.elements_mut()[..elements.len()],
        _ => {}
    }
    cpu::clear_raised();
    cpu::dispatch(run);
    let total = if group.sink == TileKind::Sum { add_lanes(tiles.lanes.values()) } else { 0.0 };
    let is_plain = !cpu::raised().any();
    if is_plain && let Some(Sink::Fold { folder, .. }) = sink {
        let len = elements.len();
        let count = match group.sink {
            TileKind::Sum => {
                folder.add_total(total);
                let met = folder.met(cpu::raised(), Operand::One(total.into()), 1);
                note_raised(met, Function::Reduce, &mut scratch.warnings);
                0
            }
            TileKind::MaxShort | TileKind::MinShort => tiles.lanes_short.write(out.elements_mut(), len),
            _ => tiles.lanes.write(out.elements_mut(), len),
        };
        if 0 < count {
            folder.feed_total(Operand::Block(&out, 0), count);
        }
    }
    scratch.tiles = Some(tiles);
    scratch.put_back(register, out);
    is_plain
}

#[cfg(test)]
#[path = "grouped_tests.rs"]
#[allow(clippy::expect_used)]
mod tests;
