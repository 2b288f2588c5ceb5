//! The pass that grows trees: sums of samples by open node, feature and bin.

use super::loss::{LOSSES, Loss};
use super::nodes::{Node, leaf_of_bins};
use super::wire::{ADD_TREES, HISTOGRAMS, Reader, SUM_LOSSES, Writer, name_of};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Key, Place};

/// The sums of a bin. The first is always the number of samples.
#[derive(Clone, Debug)]
pub(crate) enum Sums {
    /// The weight of each of so many classes. Targets are the numbers of classes.
    Classes(usize),
    /// The weights, and with them the targets and their squares.
    Squares,
    /// The slopes of a loss: the first and the second one. There is a tree for each score of a sample.
    Slopes(Loss),
}

impl Sums {
    /// Numbers of a bin.
    pub(crate) fn width(&self) -> usize {
        match self {
            Sums::Classes(classes) => 1 + classes,
            Sums::Squares => 4,
            Sums::Slopes(_) => 3,
        }
    }
}

/// Draws of samples: how often a tree has each, as often as draws with replacement would give it.
#[derive(Clone, Debug)]
pub(crate) struct Bootstrap {
    /// The chances to have a sample at most 0, 1, 2 .. times.
    at_most: Vec<f64>,
}

impl Bootstrap {
    /// Draws of a share of so many rows, of which `positive` have a weight: at least one row, and on average
    /// one that has a weight.
    pub(crate) fn of_share(share: f64, rows: usize, positive: f64) -> Bootstrap {
        let mean = (share * rows as f64).round().max(1.0) / rows as f64;
        Bootstrap::of(mean.max(1.0 / positive.max(1.0)).min(1.0))
    }

    /// Draws with which trees have each sample so often, on average.
    pub(crate) fn of(mean: f64) -> Bootstrap {
        let (mut chance, mut sum) = ((-mean).exp(), 0.0);
        let mut at_most = Vec::new();
        for times in 1..=BOOTSTRAP_MAX {
            sum += chance;
            at_most.push(sum);
            chance *= mean / times as f64;
        }
        Bootstrap { at_most }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.floats(&self.at_most);
    }

    /// The draws that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<Bootstrap> {
        Some(Bootstrap { at_most: reader.floats()? })
    }

    /// Times that the tree with this key has a row.
    #[inline]
    pub(crate) fn times(&self, key: Key, row: usize) -> f64 {
        let drawn = key.uniform(row as u64);
        let times = self.at_most.iter().position(|&chance| drawn < chance).unwrap_or(self.at_most.len());
        times as f64
    }
}

/// Times beyond which a row is not drawn: the chance is below 1e-20.
const BOOTSTRAP_MAX: usize = 24;

/// A tree as far as it leads to the nodes of it that a pass looks at.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    /// The number of the tree among those of one fit.
    pub(crate) tree: usize,
    /// The seed and the stream of its draws.
    pub(crate) draws: [u64; 2],
    pub(crate) nodes: Vec<Node>,
    /// The part of the state that belongs to each node; [`NOT_OPEN`] for none.
    pub(crate) parts: Vec<u32>,
}

impl Growing {
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.size(self.tree);
        self.draws.iter().for_each(|&word| writer.number(word));
        writer.nodes(&self.nodes);
        self.parts.iter().for_each(|&part| writer.number(u64::from(part.wrapping_add(1))));
    }

    /// The tree that a name tells, of samples with so many features.
    pub(crate) fn read(reader: &mut Reader, columns: usize) -> Option<Growing> {
        let (tree, draws) = (reader.size()?, [reader.number()?, reader.number()?]);
        let nodes = reader.nodes(columns)?;
        let part = |reader: &mut Reader| Some((reader.number()? as u32).wrapping_sub(1));
        let parts = nodes.iter().map(|_| part(reader)).collect::<Option<Vec<u32>>>()?;
        Some(Growing { tree, draws, nodes, parts })
    }

    /// The part of a row of bins; [`NOT_OPEN`] for none.
    #[inline]
    pub(crate) fn part(&self, codes: &[u8]) -> u32 {
        self.parts[leaf_of_bins(&self.nodes, codes)]
    }
}

/// The key of the draws of a tree.
pub(crate) fn key_of([seed, stream]: [u64; 2]) -> Key {
    Key::for_purpose(seed, stream, "tree")
}

/// The part of a node that a pass does not look at.
pub(crate) const NOT_OPEN: u32 = u32::MAX;

/// Features of a node: the place of each in the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) feature: u32,
    /// Bins but for that of missing values, which comes last.
    pub(crate) bins: u32,
    pub(crate) start: usize,
}

/// The sums of some nodes of some trees.
pub(crate) struct Histograms {
    pub(crate) sums: Sums,
    pub(crate) bootstrap: Option<Bootstrap>,
    /// Whether there are weights behind the targets and scores.
    pub(crate) is_weighted: bool,
    pub(crate) trees: Vec<Growing>,
    /// The features of each part.
    pub(crate) parts: Vec<Vec<Column>>,
    /// Numbers of the state.
    pub(crate) elements: usize,
    /// Features of a row.
    pub(crate) columns: usize,
    /// Rows of a call.
    pub(crate) rows: usize,
    /// Scores of a row.
    pub(crate) scores: usize,
    /// Tells functions apart.
    pub(crate) number: u64,
}

/// A number that no other function of this process has.
pub(crate) fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl fmt::Debug for Histograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "histograms {}", self.number)
    }
}

impl Foreign for Histograms {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(HISTOGRAMS, |writer| self.write(writer)))
    }

    fn describe(&self) -> String {
        "histograms".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        let row = 2 * self.columns + self.scores * size_of::<[f64; 2]>();
        (self.rows * row + self.elements * size_of::<f64>()) as u64
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let inputs = Inputs {
            codes: args[0].elements::<u8>()?,
            targets: args[1].elements::<f64>()?,
            weights: if self.is_weighted { Some(args[args.len() - 1].elements::<f64>()?) } else { None },
            first: place.origin[0],
        };
        let mut state = vec![0.0; self.elements];
        match &self.sums {
            Sums::Classes(classes) => {
                let last = classes.saturating_sub(1);
                let class = |row: usize| (inputs.targets[row] as usize).min(last);
                self.add_all(
                    &inputs,
                    &mut state,
                    |row, _, weight| (class(row), weight),
                    |bin, &(class, weight)| {
                        bin[0] += 1.0;
                        bin[1 + class] += weight;
                    },
                );
            }
            Sums::Squares => {
                let of = |row: usize, _: usize, weight: f64| {
                    let y = inputs.targets[row];
                    [1.0, weight, weight * y, weight * y * y]
                };
                self.add_all(&inputs, &mut state, of, add_each);
            }
            Sums::Slopes(loss) => {
                let scores = args[2].elements::<f64>()?;
                let rounded = |[first, second]: [f64; 2], weight: f64| {
                    [1.0, rounded(first * weight), rounded(second * weight)]
                };
                if self.scores == 1 {
                    // Most rows of a pass are in no open node.
                    let of = |row: usize, _: usize, weight: f64| {
                        let mut slopes = [[0.0; 2]];
                        loss.slopes(inputs.targets[row], &scores[row..=row], &mut slopes);
                        rounded(slopes[0], weight)
                    };
                    self.add_all(&inputs, &mut state, of, add_each);
                } else {
                    let slopes = loss.all_slopes(&inputs.targets, &scores, self.scores);
                    let of = |row: usize, tree: usize, weight: f64| {
                        rounded(slopes[row * self.scores + tree], weight)
                    };
                    self.add_all(&inputs, &mut state, of, add_each);
                }
            }
        }
        Ok(Chunk::from_elements(&[1, self.elements], &state)?)
    }
}

impl Histograms {
    fn write(&self, writer: &mut Writer) {
        let (kind, of_kind) = match &self.sums {
            Sums::Classes(classes) => (0, *classes),
            Sums::Squares => (1, 0),
            Sums::Slopes(loss) => (2, number_of(*loss)),
        };
        [kind, of_kind, self.elements, self.columns, self.rows, self.scores]
            .into_iter()
            .for_each(|size| writer.size(size));
        writer.floats(self.bootstrap.as_ref().map_or(&[], |bootstrap| &bootstrap.at_most));
        writer.flag(self.is_weighted);
        writer.size(self.trees.len());
        self.trees.iter().for_each(|growing| growing.write(writer));
        writer.size(self.parts.len());
        for columns in &self.parts {
            writer.size(columns.len());
            for column in columns {
                [column.feature as usize, column.bins as usize, column.start]
                    .into_iter()
                    .for_each(|size| writer.size(size));
            }
        }
    }

    /// The function that a name tells. All that it has are within its rows and its state.
    pub(crate) fn read(reader: &mut Reader) -> Option<Histograms> {
        let (kind, of_kind, elements) = (reader.size()?, reader.size()?, reader.size()?);
        let sums = match kind {
            0 if of_kind < elements => Sums::Classes(of_kind),
            0 => return None,
            1 => Sums::Squares,
            _ => Sums::Slopes(*LOSSES.get(of_kind)?),
        };
        let (columns, rows, scores) = (reader.size()?, reader.size()?, reader.size()?);
        let at_most = reader.floats()?;
        let bootstrap = (!at_most.is_empty()).then_some(Bootstrap { at_most });
        let is_weighted = reader.flag()?;
        let mut trees = Vec::new();
        for _ in 0..reader.count()? {
            trees.push(Growing::read(reader, columns)?);
        }
        let mut parts = Vec::new();
        for _ in 0..reader.count()? {
            let mut part = Vec::new();
            for _ in 0..reader.count()? {
                let (feature, bins, start) = (reader.size()?, reader.size()?, reader.size()?);
                let end = bins.checked_add(1)?.checked_mul(sums.width())?.checked_add(start)?;
                if columns <= feature || elements < end || usize::from(u8::MAX) < bins {
                    return None;
                }
                part.push(Column { feature: feature as u32, bins: bins as u32, start });
            }
            parts.push(part);
        }
        let is_part = |&part: &u32| part == NOT_OPEN || (part as usize) < parts.len();
        let is_score = |growing: &Growing| !matches!(sums, Sums::Slopes(_)) || growing.tree < scores;
        let is_sound = trees.iter().all(|growing| growing.parts.iter().all(is_part) && is_score(growing));
        let number = new_number();
        let made = Histograms {
            sums,
            bootstrap,
            is_weighted,
            trees,
            parts,
            elements,
            columns,
            rows,
            scores,
            number,
        };
        (is_sound && 0 < columns && 0 < scores).then_some(made)
    }
}

/// The rows of a call.
struct Inputs<'a> {
    codes: Cow<'a, [u8]>,
    targets: Cow<'a, [f64]>,
    /// A row whose weight is not positive has no part.
    weights: Option<Cow<'a, [f64]>>,
    first: usize,
}

/// A number with the 24 digits of float32 that scikit-learn's slopes have: the sum of a million of them loses
/// none, so splits that are equally good are equal to the bit.
#[inline(always)]
pub(crate) fn rounded(number: f64) -> f64 {
    let high = number * SPLITTER;
    let rounded = high - (high - number);
    if rounded.is_finite() { rounded } else { number }
}

/// Cuts the last 29 of 53 binary digits (Veltkamp).
const SPLITTER: f64 = ((1u64 << 29) + 1) as f64;

#[inline(always)]
fn add_each<const N: usize>(bin: &mut [f64], row: &[f64; N]) {
    bin.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
}

impl Histograms {
    /// Adds what `of` a row, tree and weight says to the bins of its node, by `add`.
    #[inline(always)]
    fn add_all<R>(
        &self,
        inputs: &Inputs<'_>,
        state: &mut [f64],
        of: impl Fn(usize, usize, f64) -> R,
        add: impl Fn(&mut [f64], &R),
    ) {
        let width = self.sums.width();
        for growing in &self.trees {
            let key = key_of(growing.draws);
            for (row, codes) in inputs.codes.chunks_exact(self.columns).enumerate() {
                let weight = inputs.weights.as_ref().map_or(1.0, |weights| weights[row]);
                if weight <= 0.0 {
                    continue;
                }
                let part = growing.part(codes);
                if part == NOT_OPEN {
                    continue;
                }
                let weight = match &self.bootstrap {
                    None => weight,
                    Some(bootstrap) => weight * bootstrap.times(key, inputs.first + row),
                };
                if weight == 0.0 {
                    continue;
                }
                let made = of(row, growing.tree, weight);
                for column in &self.parts[part as usize] {
                    let bin = u32::from(codes[column.feature as usize]).min(column.bins) as usize;
                    let start = column.start + bin * width;
                    add(&mut state[start..start + width], &made);
                }
            }
        }
    }
}

/// The function of rows that adds the values of the leaves of trees to the scores of a row.
pub(crate) struct AddTrees {
    /// The nodes of each tree, by score, and their values.
    pub(crate) trees: Vec<(Vec<Node>, Vec<f64>)>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) number: u64,
}

impl fmt::Debug for AddTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scores {}", self.number)
    }
}

impl AddTrees {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<AddTrees> {
        let (columns, rows, count) = (reader.size()?, reader.size()?, reader.count()?);
        let mut trees = Vec::with_capacity(count);
        for _ in 0..count {
            let (nodes, values) = (reader.nodes(columns)?, reader.floats()?);
            if nodes.len() != values.len() {
                return None;
            }
            trees.push((nodes, values));
        }
        (0 < count).then(|| AddTrees { trees, columns, rows, number: new_number() })
    }
}

impl Foreign for AddTrees {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(ADD_TREES, |writer| {
            [self.columns, self.rows, self.trees.len()].into_iter().for_each(|size| writer.size(size));
            for (nodes, values) in &self.trees {
                writer.nodes(nodes);
                writer.floats(values);
            }
        }))
    }

    fn describe(&self) -> String {
        "scores".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        (self.rows * (2 * self.columns + self.trees.len() * size_of::<f64>())) as u64
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let codes = args[0].elements::<u8>()?;
        let mut scores = args[1].to_vec::<f64>()?;
        let rows = codes.chunks_exact(self.columns).zip(scores.chunks_exact_mut(self.trees.len()));
        for (codes, scores) in rows {
            for (score, (nodes, values)) in scores.iter_mut().zip(&self.trees) {
                *score += values[leaf_of_bins(nodes, codes)];
            }
        }
        Ok(Chunk::from_elements(args[1].shape(), &scores)?)
    }
}

/// The function of rows that sums losses: those of samples with a positive weight and of samples with a
/// negative one, each behind the sum of their weights.
#[derive(Debug)]
pub(crate) struct SumLosses {
    pub(crate) loss: Loss,
    pub(crate) scores: usize,
    /// Whether there are weights behind the targets and scores.
    pub(crate) is_weighted: bool,
    pub(crate) rows: usize,
}

/// Numbers of the state of [`SumLosses`].
pub(crate) const LOSS_SUMS: usize = 4;

impl SumLosses {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<SumLosses> {
        let loss = *LOSSES.get(reader.size()?)?;
        let scores = reader.size().filter(|&scores| 0 < scores)?;
        Some(SumLosses { loss, scores, rows: reader.size()?, is_weighted: reader.flag()? })
    }
}

/// The number of a loss in names.
fn number_of(loss: Loss) -> usize {
    LOSSES.iter().position(|&other| other == loss).unwrap_or(LOSSES.len())
}

impl Foreign for SumLosses {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(SUM_LOSSES, |writer| {
            [number_of(self.loss), self.scores, self.rows].into_iter().for_each(|size| writer.size(size));
            writer.flag(self.is_weighted);
        }))
    }

    fn describe(&self) -> String {
        "losses".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        (self.rows * (2 + self.scores) * size_of::<f64>()) as u64
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let (targets, scores) = (args[1].elements::<f64>()?, args[2].elements::<f64>()?);
        let weights = if self.is_weighted { Some(args[3].elements::<f64>()?) } else { None };
        let mut state = [0.0; LOSS_SUMS];
        for (row, (&y, scores)) in targets.iter().zip(scores.chunks_exact(self.scores)).enumerate() {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[row]);
            if weight == 0.0 {
                continue;
            }
            let at = if weight < 0.0 { 2 } else { 0 };
            state[at] += weight.abs();
            state[at + 1] += weight.abs() * self.loss.value(y, scores);
        }
        Ok(Chunk::from_elements(&[1, LOSS_SUMS], &state)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_have_the_digits_of_float32() {
        for number in [0.0, 1.0, -0.3, 1.0 / 3.0, 12345.678, -1e-30] {
            assert_eq!(rounded(number), f64::from(number as f32), "{number}");
        }
        // Beyond the range of float32 they have as many.
        assert!((rounded(1e200) / 1e200 - 1.0).abs() < 1e-7);
        assert_eq!(rounded(1.7e308), 1.7e308);
        assert!(rounded(f64::NAN).is_nan() && rounded(f64::INFINITY).is_infinite());
    }

    #[test]
    fn draws_of_rows_have_the_mean_and_the_share_of_a_bootstrap() {
        let (bootstrap, key) = (Bootstrap::of(1.0), Key::new(1, 2));
        let times: Vec<f64> = (0..100_000).map(|row| bootstrap.times(key, row)).collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let left_out = times.iter().filter(|&&times| times == 0.0).count() as f64 / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((left_out - (-1f64).exp()).abs() < 0.01, "{left_out}");
        assert_eq!(Bootstrap::of(0.0).times(key, 7), 0.0);
    }
}
