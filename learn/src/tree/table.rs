//! In-memory tables of samples, for trees or parts of trees of so few that a pass for each level would cost
//! more than what it computes: each node has the list of its rows.
//!
//! Rows are added in the order of passes: those of a piece one by one, the sums of eight pieces one by one,
//! the sums of eight such groups, and so on. So a table makes the trees of passes to the bit, and the choice
//! between them is one of speed.

use super::histogram::{Bootstrap, Column, Sums, key_of, rounded};
use super::nodes::{Node, goes_left};
use crate::passes::STATES_TOGETHER;

/// Rows of a piece from which its sums of all bins are looked at, and not those of bins with rows alone.
const RUN_ROWS_MIN: usize = if cfg!(debug_assertions) { 20 } else { 256 };

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
    /// The number of each row among all samples, ascending, if the table has a part of them.
    pub(crate) numbers: Option<Vec<u64>>,
    /// Rows of a piece of a pass.
    pub(crate) pass_rows: usize,
}

impl Table<'_> {
    /// The number of a row among all samples.
    #[inline]
    fn number(&self, row: usize) -> usize {
        self.numbers.as_ref().map_or(row, |numbers| numbers[row] as usize)
    }

    /// The bins of a row.
    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[u8] {
        let first = row as usize * self.columns;
        &self.codes[first..first + self.columns]
    }

    /// The piece of a pass to which a row belongs.
    #[inline]
    fn piece(&self, row: u32) -> u32 {
        (self.number(row as usize) / self.pass_rows) as u32
    }

    /// The rows of a tree with these draws, ascending, and the weight of each row of the table.
    pub(crate) fn drawn(&self, draws: [u64; 2]) -> (Vec<u32>, Vec<f64>) {
        let key = key_of(draws);
        let weight = |row: usize| {
            let weight = self.weights.map_or(1.0, |weights| weights[row]);
            match &self.bootstrap {
                Some(bootstrap) if 0.0 < weight => weight * bootstrap.times(key, self.number(row)),
                _ => weight,
            }
        };
        let weights: Vec<f64> = (0..self.targets.len()).map(weight).collect();
        // A weight that is NaN is in all sums.
        let has_part = |&(_, &weight): &(usize, &f64)| weight.is_nan() || 0.0 < weight;
        let rows = weights.iter().enumerate().filter(has_part).map(|(row, _)| row as u32).collect();
        (rows, weights)
    }

    /// Adds rows to the bins of some columns, whose state is zero.
    pub(crate) fn add(
        &self,
        (tree, weights): (usize, &[f64]),
        rows: &[u32],
        columns: &[Column],
        (state, pieces): (&mut [f64], &mut Pieces),
    ) {
        let state = (state, pieces);
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

    /// Adds what `of` a row and its weight says to the bins of the row, by `add`.
    #[inline(always)]
    fn each<R>(
        &self,
        (rows, weights): (&[u32], &[f64]),
        columns: &[Column],
        (state, pieces): (&mut [f64], &mut Pieces),
        of: impl Fn(usize, f64) -> R,
        add: impl Fn(&mut [f64], &R),
    ) {
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return };
        let width = self.sums.width();
        let of = |row: u32| of(row as usize, weights[row as usize]);
        let last = self.piece(last);
        if self.piece(first) == last {
            self.each_bin(rows, columns, of, |bin, made| {
                add(&mut state[bin * width..(bin + 1) * width], made);
            });
            return;
        }
        let bins = state.len() / width;
        pieces.begin(bins, width, last);
        for run in rows.chunk_by(|&a, &b| self.piece(a) == self.piece(b)) {
            let piece = self.piece(run[0]);
            if run.len() < RUN_ROWS_MIN {
                self.each_bin(run, columns, of, |bin, made| add(pieces.sums(piece, bin), made));
            } else {
                let sums = pieces.all_sums(piece, bins);
                self.each_bin(run, columns, of, |bin, made| {
                    add(&mut sums[bin * width..(bin + 1) * width], made);
                });
            }
        }
        pieces.end(state);
    }

    /// Calls a function with the bin of each value of some columns and the numbers of its row.
    #[inline(always)]
    fn each_bin<R>(
        &self,
        rows: &[u32],
        columns: &[Column],
        of: impl Fn(u32) -> R,
        mut add: impl FnMut(usize, &R),
    ) {
        let width = self.sums.width();
        let firsts: Vec<usize> = columns.iter().map(|column| column.start / width).collect();
        for &row in rows {
            let made = of(row);
            let codes = self.row(row);
            for (column, first) in columns.iter().zip(&firsts) {
                let bin = u32::from(codes[column.feature as usize]).min(column.bins) as usize;
                add(first + bin, &made);
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

/// Sums of bins while rows of several pieces are added: for each bin those of its last piece, of the group of
/// pieces that it belongs to, of the group of groups, and so on. Only bins with rows cost anything.
#[derive(Default)]
pub(crate) struct Pieces {
    width: usize,
    /// The last piece of each bin with rows; [`NONE`] for others.
    last: Vec<u32>,
    /// The bins with rows.
    seen: Vec<usize>,
    /// Sums of all bins, by level. All are zero between two uses.
    levels: Vec<Vec<f64>>,
}

/// A bin without rows has no piece.
const NONE: u32 = u32::MAX;

impl Pieces {
    /// Begins with so many bins, for pieces up to the last one.
    fn begin(&mut self, bins: usize, width: usize, last: u32) {
        let mut levels = 1;
        let mut groups = last as usize + 1;
        while 1 < groups {
            groups = groups.div_ceil(STATES_TOGETHER);
            levels += 1;
        }
        self.width = width;
        self.levels.resize_with(levels, Vec::new);
        for sums in &mut self.levels {
            sums.resize(sums.len().max(bins * width), 0.0);
        }
        self.last.resize(self.last.len().max(bins), NONE);
    }

    /// The sums of the rows of a piece in a bin.
    #[inline(always)]
    fn sums(&mut self, piece: u32, bin: usize) -> &mut [f64] {
        self.enter(piece, bin);
        &mut self.levels[0][bin * self.width..(bin + 1) * self.width]
    }

    /// The sums of the rows of a piece in all of so many bins.
    fn all_sums(&mut self, piece: u32, bins: usize) -> &mut [f64] {
        (0..bins).for_each(|bin| self.enter(piece, bin));
        &mut self.levels[0]
    }

    /// Begins with a piece in a bin, unless it has begun.
    #[inline(always)]
    fn enter(&mut self, piece: u32, bin: usize) {
        let last = self.last[bin];
        if last == piece {
            return;
        }
        self.last[bin] = piece;
        if last == NONE {
            self.seen.push(bin);
        } else {
            self.close(bin, last, piece);
        }
    }

    /// Adds the sums of a piece to those of its group, and so on up to the group that has the next piece too.
    fn close(&mut self, bin: usize, last: u32, next: u32) {
        let (mut last, mut next) = (last, next);
        for level in 1..self.levels.len() {
            (last, next) = (last / STATES_TOGETHER as u32, next / STATES_TOGETHER as u32);
            let (below, above) = self.levels.split_at_mut(level);
            merge(bin * self.width, &mut below[level - 1], &mut above[0], self.width);
            if last == next {
                return;
            }
        }
    }

    /// Adds the sums of all levels to a state, and clears them.
    fn end(&mut self, state: &mut [f64]) {
        for bin in self.seen.drain(..) {
            let at = bin * self.width;
            for level in 1..self.levels.len() {
                let (below, above) = self.levels.split_at_mut(level);
                merge(at, &mut below[level - 1], &mut above[0], self.width);
            }
            if let Some(sums) = self.levels.last_mut() {
                merge(at, sums, state, self.width);
            }
            self.last[bin] = NONE;
        }
    }
}

/// Adds the sums of a bin to those of the next level, and clears them.
fn merge(at: usize, below: &mut [f64], above: &mut [f64], width: usize) {
    for (below, above) in below[at..at + width].iter_mut().zip(&mut above[at..at + width]) {
        *above += *below;
        *below = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States of pieces, added in groups of eight, until there is one.
    fn of_passes(mut states: Vec<f64>) -> f64 {
        while 1 < states.len() {
            states =
                states.chunks(STATES_TOGETHER).map(|group| group.iter().fold(0.0, |a, b| a + b)).collect();
        }
        states[0]
    }

    #[test]
    fn pieces_are_added_as_passes_add_them() {
        let key = key_of([5, 5]);
        let mut pieces = Pieces::default();
        for count in [1u32, 2, 8, 9, 64, 65, 600] {
            let mut states = [vec![0.0; count as usize], vec![0.0; count as usize]];
            pieces.begin(3, 1, count - 1);
            for row in 0..u64::from(count) * 5 {
                let (piece, bin) = ((row / 5) as u32, key.bits(row) as usize % 3);
                // The third bin has no rows, and many pieces have none of the others.
                if bin < 2 && !key.bits(row / 5).is_multiple_of(3) {
                    let number = key.uniform(row + 7) - 0.3;
                    if piece.is_multiple_of(3) {
                        pieces.all_sums(piece, 3)[bin] += number;
                    } else {
                        pieces.sums(piece, bin)[0] += number;
                    }
                    states[bin][piece as usize] += number;
                }
            }
            let mut state = [0.0; 3];
            pieces.end(&mut state);
            let [first, second] = states.map(of_passes);
            assert_eq!(state, [first, second, 0.0], "{count} pieces");
        }
    }
}
