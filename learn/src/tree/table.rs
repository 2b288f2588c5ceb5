//! Samples in the memory of this process, for trees of so few that a pass for each level would cost more than
//! what it computes: each node has the list of its rows.

use super::histogram::{Bootstrap, Column, Sums, key_of, rounded};
use super::nodes::{Node, goes_left};

/// Samples in bins, with their targets.
pub(crate) struct Table<'a> {
    /// (rows, columns).
    pub(crate) codes: &'a [u8],
    pub(crate) columns: usize,
    pub(crate) targets: &'a [f64],
    /// The weights, or none. A row whose weight is not positive has no part.
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) sums: Sums,
    /// The slopes by each score, if these are summed.
    pub(crate) slopes: Vec<[f64; 2]>,
    pub(crate) scores: usize,
    pub(crate) bootstrap: Option<Bootstrap>,
}

impl Table<'_> {
    /// The rows of a tree with these draws, ascending, and the weight of each row of the table.
    pub(crate) fn drawn(&self, draws: [u64; 2]) -> (Vec<u32>, Vec<f64>) {
        let key = key_of(draws);
        let weight = |row: usize| {
            let weight = self.weights.map_or(1.0, |weights| weights[row]);
            match &self.bootstrap {
                Some(bootstrap) if 0.0 < weight => weight * bootstrap.times(key, row),
                _ => weight,
            }
        };
        let weights: Vec<f64> = (0..self.targets.len()).map(weight).collect();
        // A weight that is NaN is in all sums.
        let has_part = |&(_, &weight): &(usize, &f64)| weight.is_nan() || 0.0 < weight;
        let rows = weights.iter().enumerate().filter(has_part).map(|(row, _)| row as u32).collect();
        (rows, weights)
    }

    /// Adds rows to the bins of some columns.
    pub(crate) fn add(
        &self,
        (tree, weights): (usize, &[f64]),
        rows: &[u32],
        columns: &[Column],
        state: &mut [f64],
    ) {
        match &self.sums {
            Sums::Classes(classes) => {
                let last = classes.saturating_sub(1);
                let of = |row: usize, weight: f64| ((self.targets[row] as usize).min(last), weight);
                self.each((rows, weights), columns, state, of, |bin, &(class, weight)| {
                    bin[0] += 1.0;
                    bin[1 + class] += weight;
                });
            }
            Sums::Squares => {
                let of = |row: usize, weight: f64| {
                    let y = self.targets[row];
                    [1.0, weight, weight * y, weight * y * y]
                };
                self.each((rows, weights), columns, state, of, add_all);
            }
            Sums::Slopes(_) => {
                let of = |row: usize, weight: f64| {
                    let [first, second] = self.slopes[row * self.scores + tree];
                    [1.0, rounded(first * weight), rounded(second * weight)]
                };
                self.each((rows, weights), columns, state, of, add_all);
            }
        }
    }

    #[inline(always)]
    fn each<R>(
        &self,
        (rows, weights): (&[u32], &[f64]),
        columns: &[Column],
        state: &mut [f64],
        of: impl Fn(usize, f64) -> R,
        add: impl Fn(&mut [f64], &R),
    ) {
        let width = self.sums.width();
        for &row in rows {
            let row = row as usize;
            let made = of(row, weights[row]);
            let codes = &self.codes[row * self.columns..(row + 1) * self.columns];
            for column in columns {
                let bin = u32::from(codes[column.feature as usize]).min(column.bins) as usize;
                let start = column.start + bin * width;
                add(&mut state[start..start + width], &made);
            }
        }
    }

    /// The rows of both children of a node.
    pub(crate) fn part(&self, node: &Node, rows: Vec<u32>) -> [Vec<u32>; 2] {
        let code = |row: u32| self.codes[row as usize * self.columns + node.feature as usize];
        let (left, right) = rows.into_iter().partition(|&row| goes_left(node, code(row)));
        [left, right]
    }
}

#[inline(always)]
fn add_all<const N: usize>(bin: &mut [f64], row: &[f64; N]) {
    bin.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
}
