//! Nearest samples that have a number which another sample lacks.

use super::block::block_bytes;
use super::means::weights_of;
use super::metric::{Distance, Weights};
use super::wire::{Parts, name_of};
use crate::passes::{PairPass, RowPass, merged_bytes};
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, DType, Place};
use tharsis_numeric::Tensor;

/// Rows of samples in a task that fills them.
const ROWS: usize = 1024;

/// For each number that a row lacks, the numbers of the nearest rows that have it. NaN is missing. A state
/// has for each column the squared distances of donors, nearest first, and then their numbers; the distance
/// of a place that is not taken is infinite, and its number is NaN.
#[derive(Clone, Debug)]
pub(crate) struct Donors {
    /// Donors of a number.
    pub(crate) count: usize,
    pub(crate) columns: usize,
}

/// The states of [`Donors`], merged.
#[derive(Clone, Debug)]
pub(crate) struct MergeDonors {
    count: usize,
    columns: usize,
}

/// Rows with their missing numbers filled from their states; what no donor tells stays NaN.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    pub(crate) count: usize,
    pub(crate) weights: Weights,
    pub(crate) columns: usize,
}

impl Donors {
    /// The pass of this function.
    pub(crate) fn pass(self) -> PairPass {
        let Donors { count, columns } = self;
        let merging = Arc::new(MergeDonors { count, columns });
        PairPass { function: Arc::new(self), merging, width: 2 * count * columns }
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<Donors> {
        Some(Donors { count: parts.size()?, columns: parts.size()? })
    }
}

impl MergeDonors {
    pub(super) fn read(parts: &mut Parts<'_>) -> Option<MergeDonors> {
        Some(MergeDonors { count: parts.size()?, columns: parts.size()? })
    }
}

impl Filled {
    /// The rows (m, d) of states, as an expression.
    #[track_caller]
    pub(crate) fn of(self, x: &Tensor, states: &Tensor) -> Tensor {
        let columns = self.columns;
        RowPass { function: Arc::new(self), rows: ROWS, whole: 0 }.map(&[x, states], columns, DType::F64)
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<Filled> {
        let (count, weights) = (parts.size()?, Weights::of_word(parts.word()?)?);
        Some(Filled { count, weights, columns: parts.size()? })
    }
}

/// The distance of rows by the numbers that both have, as many times as there are columns for each of these;
/// NaN if there is none. Squared.
fn distance_of(row: &[f64], other: &[f64]) -> f64 {
    let (mut sum, mut both) = (0.0, 0usize);
    for (a, b) in row.iter().zip(other) {
        let difference = a - b;
        if !difference.is_nan() {
            sum += difference * difference;
            both += 1;
        }
    }
    if both == 0 { f64::NAN } else { sum * (row.len() as f64 / both as f64) }
}

/// Puts a donor among others, of which there are at most as many as places, behind those that are as near.
fn insert(distances: &mut [f64], numbers: &mut [f64], (distance, number): (f64, f64)) {
    let is_free = |at: &usize| numbers[*at].is_nan();
    let place = (0..distances.len()).find(|at| is_free(at) || distance < distances[*at]);
    let Some(place) = place else { return };
    let last = distances.len() - 1;
    distances.copy_within(place..last, place + 1);
    numbers.copy_within(place..last, place + 1);
    (distances[place], numbers[place]) = (distance, number);
}

/// The distances and numbers of the donors of a column.
fn of_column(state: &mut [f64], column: usize, count: usize) -> (&mut [f64], &mut [f64]) {
    state[2 * count * column..2 * count * (column + 1)].split_at_mut(count)
}

/// States without donors.
fn no_donors(rows: usize, columns: usize, count: usize) -> Vec<f64> {
    let places = |number: f64| std::iter::repeat_n(number, count);
    let column: Vec<f64> = places(f64::INFINITY).chain(places(f64::NAN)).collect();
    column.repeat(rows * columns)
}

impl Foreign for Donors {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of("donors", &[self.count, self.columns].map(|size| size.to_string())))
    }

    fn describe(&self) -> String {
        "donors".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        block_bytes(self.columns)
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let (rows, others) = (args[0].elements::<f64>()?, args[1].elements::<f64>()?);
        let (count, columns) = (self.count, self.columns);
        let width = 2 * count * columns;
        let number = args[0].shape()[0];
        let mut states = no_donors(number, columns, count);
        for (row, state) in rows.chunks_exact(columns).zip(states.chunks_exact_mut(width)) {
            let missing: Vec<usize> = (0..columns).filter(|&column| row[column].is_nan()).collect();
            if missing.is_empty() {
                continue;
            }
            for other in others.chunks_exact(columns) {
                let distance = distance_of(row, other);
                if distance.is_nan() {
                    continue;
                }
                for &column in missing.iter().filter(|&&column| !other[column].is_nan()) {
                    let (distances, numbers) = of_column(state, column, count);
                    insert(distances, numbers, (distance, other[column]));
                }
            }
        }
        Ok(Chunk::from_elements(&[number, 1, width], &states)?)
    }
}

impl Foreign for MergeDonors {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of("merge-donors", &[self.count, self.columns].map(|size| size.to_string())))
    }

    fn describe(&self) -> String {
        "donors, merged".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        merged_bytes(2 * self.count * self.columns)
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let all = args[0].elements::<f64>()?;
        let &[rows, merged, width] = args[0].shape() else {
            return Err(Error::Internal("states of pairs have three axes".to_owned()));
        };
        let count = self.count;
        let mut states = no_donors(rows, self.columns, count);
        for (parts, state) in all.chunks_exact((merged * width).max(1)).zip(states.chunks_exact_mut(width)) {
            for part in parts.chunks_exact(width) {
                for column in 0..self.columns {
                    let (distances, numbers) = of_column(state, column, count);
                    let own = &part[2 * count * column..2 * count * (column + 1)];
                    let donors =
                        own[..count].iter().zip(&own[count..]).filter(|(_, number)| !number.is_nan());
                    donors.for_each(|(&distance, &number)| insert(distances, numbers, (distance, number)));
                }
            }
        }
        Ok(Chunk::from_elements(&[rows, 1, width], &states)?)
    }
}

impl Foreign for Filled {
    fn name(&self) -> Option<ForeignName> {
        let parts = [self.count.to_string(), self.weights.word().to_owned(), self.columns.to_string()];
        Some(name_of("filled", &parts))
    }

    fn describe(&self) -> String {
        "numbers of donors".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let mut rows = args[0].to_vec::<f64>()?;
        let states = args[1].elements::<f64>()?;
        let (count, columns) = (self.count, self.columns);
        let each = rows.chunks_exact_mut(columns).zip(states.chunks_exact(2 * count * columns));
        for (row, state) in each {
            for (column, element) in row.iter_mut().enumerate().filter(|(_, element)| element.is_nan()) {
                let own = &state[2 * count * column..2 * count * (column + 1)];
                let found = own[count..].iter().take_while(|number| !number.is_nan()).count();
                let weights = weights_of(self.weights, Distance::Euclidean, &own[..found]);
                let sum: f64 =
                    weights.iter().zip(&own[count..]).map(|(weight, number)| weight * number).sum();
                // Without donors this is NaN.
                *element = sum / weights.iter().sum::<f64>();
            }
        }
        Ok(Chunk::from_elements(args[0].shape(), &rows)?)
    }
}
