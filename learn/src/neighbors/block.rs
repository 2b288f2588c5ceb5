//! Functions of pairs of blocks: the nearest rows of each row, and sums over the rows around it.

use super::metric::{Distance, Weights, weight_at};
use super::wire::{Parts, name_of};
use crate::passes::{PairPass, merged_bytes, others_of_block};
use std::cmp::Ordering;
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Place};

/// The nearest rows of each row. A state has a column of reduced distances, one of numbers of rows, and those
/// of what goes with these, of `count` elements each; nearest first, and of equal distances the row that is
/// first. Places that are not taken have an infinite number.
#[derive(Clone, Debug)]
pub(crate) struct Nearest {
    pub(crate) distance: Distance,
    pub(crate) count: usize,
    /// The largest distance, if there is one.
    pub(crate) radius: Option<f64>,
    /// Whether both tensors are the same, so that a row is no neighbour of itself.
    pub(crate) is_own: bool,
    /// Columns that go with each row.
    pub(crate) carried: usize,
    /// Columns of samples.
    pub(crate) columns: usize,
}

/// The states of [`Nearest`], merged.
#[derive(Clone, Debug)]
pub(crate) struct MergeNearest {
    count: usize,
    carried: usize,
}

impl Nearest {
    /// The pass of this function.
    pub(crate) fn pass(self) -> PairPass {
        let (count, carried) = (self.count, self.carried);
        let merging = Arc::new(MergeNearest { count, carried });
        PairPass { function: Arc::new(self), merging, width: count * (2 + carried) }
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<Nearest> {
        let (distance, count) = (Distance::of_word(parts.word()?)?, parts.size()?);
        let radius = parts.float()?;
        Some(Nearest {
            distance,
            count,
            radius: (!radius.is_nan()).then_some(radius),
            is_own: parts.flag()?,
            carried: parts.size()?,
            columns: parts.size()?,
        })
    }
}

impl MergeNearest {
    pub(super) fn read(parts: &mut Parts<'_>) -> Option<MergeNearest> {
        Some(MergeNearest { count: parts.size()?, carried: parts.size()? })
    }
}

/// Two blocks of rows, as functions of pairs get them.
pub(super) struct Blocks {
    /// (rows, columns).
    pub(super) rows: Vec<f64>,
    /// The number of others, and their features one behind the other.
    pub(super) count: usize,
    pub(super) others: Vec<f64>,
    pub(super) columns: usize,
}

impl Blocks {
    /// The blocks of the arguments of a task.
    ///
    /// # Errors
    /// `Internal` for other shapes.
    pub(super) fn of(args: &[Chunk], distance: Distance) -> Result<Blocks, Error> {
        let [rows, others, ..] = args else { return Err(Error::Internal("pairs of one block".to_owned())) };
        let (&[_, _, columns], &[_, count, own]) = (rows.shape(), others.shape()) else {
            return Err(Error::Internal("blocks of pairs have three axes".to_owned()));
        };
        if columns != own {
            return Err(Error::Internal("blocks of different columns".to_owned()));
        }
        let (mut rows, mut straight) = (rows.to_vec::<f64>()?, others.to_vec::<f64>()?);
        if 0 < columns {
            distance.prepare(&mut rows, columns);
            distance.prepare(&mut straight, columns);
        }
        let mut others = vec![0.0; straight.len()];
        for (at, row) in straight.chunks_exact(columns.max(1)).enumerate() {
            row.iter().enumerate().for_each(|(column, &element)| others[column * count + at] = element);
        }
        Ok(Blocks { rows, count, others, columns })
    }
}

/// Bytes that two blocks and their distances take.
pub(super) fn block_bytes(columns: usize) -> u64 {
    let others = others_of_block(columns) as u64;
    // Both blocks, copies of them, and one that is turned; distances; and those that are chosen.
    (5 * columns as u64 + 4) * others * size_of::<f64>() as u64
}

fn nearer(a: &(f64, usize), b: &(f64, usize)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// The nearest ones of those that are offered in the order of their numbers.
struct Chosen {
    count: usize,
    limit: f64,
    found: Vec<(f64, usize)>,
    /// The distance of the farthest one that is kept, when there are enough.
    farthest: Option<f64>,
}

impl Chosen {
    fn new(count: usize, limit: f64) -> Chosen {
        Chosen { count, limit, found: Vec::new(), farthest: None }
    }

    fn offer(&mut self, distance: f64, number: usize) {
        let is_near = match self.farthest {
            Some(farthest) => distance < farthest,
            None => distance <= self.limit,
        };
        if !is_near {
            return;
        }
        self.found.push((distance, number));
        if 2 * self.count <= self.found.len() {
            self.shorten();
        }
    }

    /// Keeps the nearest ones.
    fn shorten(&mut self) {
        if self.count < self.found.len() {
            self.found.select_nth_unstable_by(self.count - 1, nearer);
            self.found.truncate(self.count);
        }
        if self.found.len() == self.count {
            self.farthest = self.found.iter().map(|found| found.0).max_by(f64::total_cmp);
        }
    }

    fn sorted(&mut self) -> &[(f64, usize)] {
        self.shorten();
        self.found.sort_unstable_by(nearer);
        &self.found
    }
}

/// Sets the distance of a row of the first block from itself, if it is among those of the second one, to 0.
fn at_itself(place: Place<'_>, row: usize, found: &mut [f64]) {
    let own = (place.origin[0] + row).checked_sub(place.origin[1]);
    if let Some(distance) = own.and_then(|own| found.get_mut(own)) {
        *distance = 0.0;
    }
}

/// A state without any neighbours.
fn no_neighbors(state: &mut [f64], count: usize) {
    state.fill(0.0);
    state[..2 * count].fill(f64::INFINITY);
}

impl Foreign for Nearest {
    fn name(&self) -> Option<ForeignName> {
        let radius = self.radius.unwrap_or(f64::NAN);
        let sizes = [self.count.to_string(), radius.to_string(), self.is_own.to_string()];
        let parts = [self.distance.word()].into_iter().chain(sizes);
        let last = [self.carried, self.columns].map(|size| size.to_string());
        Some(name_of("nearest", &parts.chain(last).collect::<Vec<_>>()))
    }

    fn describe(&self) -> String {
        "nearest rows".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        block_bytes(self.columns) + 32 * self.count as u64
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let blocks = Blocks::of(args, self.distance)?;
        let carried = args[2..].iter().map(|chunk| chunk.to_vec::<f64>()).collect::<Result<Vec<_>, _>>()?;
        let (count, width) = (self.count, self.count * (2 + self.carried));
        let rows = args[0].shape()[0];
        let mut states = vec![0.0; rows * width];
        let mut found = vec![0.0; blocks.count];
        let limit = self.radius.map_or(f64::INFINITY, |radius| self.distance.reduced(radius));
        for (at, (row, state)) in
            blocks.rows.chunks_exact(blocks.columns).zip(states.chunks_exact_mut(width.max(1))).enumerate()
        {
            self.distance.reduced_to_all(row, &blocks.others, &mut found);
            let own = (place.origin[0] + at).checked_sub(place.origin[1]).filter(|_| self.is_own);
            let mut chosen = Chosen::new(count, limit);
            for (number, &distance) in found.iter().enumerate() {
                if own != Some(number) {
                    chosen.offer(distance, number);
                }
            }
            no_neighbors(state, count);
            for (place_of, &(distance, number)) in chosen.sorted().iter().enumerate() {
                state[place_of] = distance;
                state[count + place_of] = (place.origin[1] + number) as f64;
                let columns = carried.iter().flat_map(|rows| {
                    let width = rows.len() / blocks.count;
                    &rows[number * width..(number + 1) * width]
                });
                columns
                    .enumerate()
                    .for_each(|(column, &value)| state[(2 + column) * count + place_of] = value);
            }
        }
        Ok(Chunk::from_elements(&[rows, 1, width], &states)?)
    }
}

impl Foreign for MergeNearest {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of("merge-nearest", &[self.count.to_string(), self.carried.to_string()]))
    }

    fn describe(&self) -> String {
        "nearest rows, merged".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        merged_bytes(self.count * (2 + self.carried))
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let (count, width) = (self.count, self.count * (2 + self.carried));
        let &[rows, merged, _] = args[0].shape() else {
            return Err(Error::Internal("states of pairs have three axes".to_owned()));
        };
        let all = args[0].elements::<f64>()?;
        let mut states = vec![0.0; rows * width];
        for (parts, state) in all.chunks_exact(merged * width).zip(states.chunks_exact_mut(width)) {
            // States are in the order of their rows, so of equal distances the first one is of the first row.
            let place = |part: usize, at: usize| &parts[part * width + at];
            let mut next = vec![0; merged];
            no_neighbors(state, count);
            for at in 0..count {
                let left = (0..merged)
                    .filter(|&part| next[part] < count && place(part, count + next[part]).is_finite());
                let nearest =
                    left.min_by(|&a, &b| place(a, next[a]).total_cmp(place(b, next[b])).then(a.cmp(&b)));
                let Some(part) = nearest else { break };
                (0..2 + self.carried).for_each(|column| {
                    state[column * count + at] = *place(part, column * count + next[part])
                });
                next[part] += 1;
            }
        }
        Ok(Chunk::from_elements(&[rows, 1, width], &states)?)
    }
}

/// Sums over the rows around a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summed {
    /// The number of rows, and the columns that go with them.
    Columns(usize),
    /// The rows of each of so many classes, whose numbers go with them.
    Classes(usize),
}

impl Summed {
    /// Numbers of a sum.
    fn width(self) -> usize {
        match self {
            Summed::Columns(columns) => 1 + columns,
            Summed::Classes(classes) => classes,
        }
    }
}

/// Sums over the rows within a radius of each row. A state is a sum; with weights by distance that of rows at
/// distance 0, and then that of others.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) distance: Distance,
    pub(crate) radius: f64,
    pub(crate) weights: Weights,
    pub(crate) summed: Summed,
    /// Whether both tensors are the same, and a row is at distance 0 from itself, whatever the metric says.
    pub(crate) is_own: bool,
    /// Columns of samples.
    pub(crate) columns: usize,
}

/// States that are added.
#[derive(Clone, Debug)]
pub(crate) struct AddStates {
    pub(super) width: usize,
}

impl AddStates {
    pub(super) fn read(parts: &mut Parts<'_>) -> Option<AddStates> {
        Some(AddStates { width: parts.size()? })
    }
}

impl Around {
    /// The pass of this function.
    pub(crate) fn pass(self) -> PairPass {
        let width = self.width();
        PairPass { function: Arc::new(self), merging: Arc::new(AddStates { width }), width }
    }

    fn width(&self) -> usize {
        match self.weights {
            Weights::Uniform => self.summed.width(),
            Weights::Distance => 2 * self.summed.width(),
        }
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<Around> {
        let (distance, radius) = (Distance::of_word(parts.word()?)?, parts.float()?);
        let weights = Weights::of_word(parts.word()?)?;
        let summed = match parts.word()? {
            "columns" => Summed::Columns(parts.size()?),
            "classes" => Summed::Classes(parts.size()?),
            _ => return None,
        };
        Some(Around { distance, radius, weights, summed, is_own: parts.flag()?, columns: parts.size()? })
    }

    /// Adds a row, and what goes with it, to a state.
    fn add(&self, state: &mut [f64], reduced: f64, carried: &[f64]) {
        let width = self.summed.width();
        let (weight, start) = match self.weights {
            Weights::Uniform => (1.0, 0),
            // So near that a weight has no number: as at distance 0.
            Weights::Distance if weight_at(self.distance, reduced).is_infinite() => (1.0, 0),
            Weights::Distance => (weight_at(self.distance, reduced), width),
        };
        let sum = &mut state[start..start + width];
        match self.summed {
            Summed::Columns(_) => {
                sum[0] += weight;
                sum[1..].iter_mut().zip(carried).for_each(|(sum, value)| *sum += weight * value);
            }
            Summed::Classes(_) => {
                if let Some(sum) = carried.first().and_then(|&class| sum.get_mut(class as usize)) {
                    *sum += weight;
                }
            }
        }
    }
}

impl Foreign for Around {
    fn name(&self) -> Option<ForeignName> {
        let (kind, size) = match self.summed {
            Summed::Columns(columns) => ("columns", columns),
            Summed::Classes(classes) => ("classes", classes),
        };
        let parts = [
            self.distance.word(),
            self.radius.to_string(),
            self.weights.word().to_owned(),
            kind.to_owned(),
            size.to_string(),
            self.is_own.to_string(),
            self.columns.to_string(),
        ];
        Some(name_of("around", &parts))
    }

    fn describe(&self) -> String {
        "sums of rows around".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        block_bytes(self.columns)
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let blocks = Blocks::of(args, self.distance)?;
        let carried = args.get(2).map(|chunk| chunk.to_vec::<f64>()).transpose()?.unwrap_or_default();
        let each = carried.len() / blocks.count.max(1);
        let (rows, width) = (args[0].shape()[0], self.width());
        let mut states = vec![0.0; rows * width];
        let mut found = vec![0.0; blocks.count];
        let limit = self.distance.reduced(self.radius);
        let each_row = blocks.rows.chunks_exact(blocks.columns).zip(states.chunks_exact_mut(width));
        for (number, (row, state)) in each_row.enumerate() {
            self.distance.reduced_to_all(row, &blocks.others, &mut found);
            if self.is_own {
                at_itself(place, number, &mut found);
            }
            for (at, &reduced) in found.iter().enumerate().filter(|(_, reduced)| **reduced <= limit) {
                self.add(state, reduced, &carried[at * each..(at + 1) * each]);
            }
        }
        Ok(Chunk::from_elements(&[rows, 1, width], &states)?)
    }
}

impl Foreign for AddStates {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of("add-states", &[self.width.to_string()]))
    }

    fn describe(&self) -> String {
        "states, added".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        merged_bytes(self.width)
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        merged(&args[0], |sum, state| sum + state)
    }
}

/// The least label of the rows within a radius of each row, of itself too; infinite if none has one. Both
/// tensors are the same.
#[derive(Clone, Debug)]
pub(crate) struct LeastLabel {
    pub(crate) distance: Distance,
    pub(crate) radius: f64,
    /// Columns of samples.
    pub(crate) columns: usize,
}

/// States of which the least is kept.
#[derive(Clone, Debug)]
pub(crate) struct LeastState;

impl LeastLabel {
    /// The pass of this function. Labels go with the rows; one that is infinite is none.
    pub(crate) fn pass(self) -> PairPass {
        PairPass { function: Arc::new(self), merging: Arc::new(LeastState), width: 1 }
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<LeastLabel> {
        let (distance, radius) = (Distance::of_word(parts.word()?)?, parts.float()?);
        Some(LeastLabel { distance, radius, columns: parts.size()? })
    }
}

impl Foreign for LeastLabel {
    fn name(&self) -> Option<ForeignName> {
        let parts = [self.distance.word(), self.radius.to_string(), self.columns.to_string()];
        Some(name_of("least-label", &parts))
    }

    fn describe(&self) -> String {
        "least labels around".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        block_bytes(self.columns)
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let blocks = Blocks::of(args, self.distance)?;
        let Some(labels) = args.get(2) else {
            return Err(Error::Internal("a pass over labels without any".to_owned()));
        };
        let labels = labels.elements::<f64>()?;
        let mut found = vec![0.0; blocks.count];
        let limit = self.distance.reduced(self.radius);
        let rows = args[0].shape()[0];
        let mut least = vec![f64::INFINITY; rows];
        for (number, (row, least)) in blocks.rows.chunks_exact(blocks.columns).zip(&mut least).enumerate() {
            self.distance.reduced_to_all(row, &blocks.others, &mut found);
            at_itself(place, number, &mut found);
            for (&reduced, &label) in found.iter().zip(labels.iter()) {
                if reduced <= limit && label < *least {
                    *least = label;
                }
            }
        }
        Ok(Chunk::from_elements(&[rows, 1, 1], &least)?)
    }
}

impl Foreign for LeastState {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of("least-state", &[]))
    }

    fn describe(&self) -> String {
        "least states".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        merged(&args[0], f64::min)
    }
}

/// States of a row merged element by element, in their order.
fn merged(states: &Chunk, merge: impl Fn(f64, f64) -> f64) -> Result<Chunk, Error> {
    let &[rows, count, width] = states.shape() else {
        return Err(Error::Internal("states of pairs have three axes".to_owned()));
    };
    let all = states.elements::<f64>()?;
    let mut made = Vec::with_capacity(rows * width);
    for parts in all.chunks_exact((count * width).max(1)) {
        let start = made.len();
        made.extend_from_slice(&parts[..width]);
        for part in parts[width..].chunks_exact(width) {
            made[start..].iter_mut().zip(part).for_each(|(sum, &state)| *sum = merge(*sum, state));
        }
    }
    Ok(Chunk::from_elements(&[rows, 1, width], &made)?)
}
