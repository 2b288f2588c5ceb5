//! The best question for a node, from the sums of its bins.

use super::bins::{Bins, FeatureBins};
use super::histogram::Column;
use tharsis_kernels::Key;

/// The measure of a split. A bin has its number of samples first; see [`Sums`](super::histogram::Sums).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Criterion {
    /// Gini impurity of the weights of classes.
    Gini,
    /// Entropy of the weights of classes, in bits.
    Entropy,
    /// The squared distance to the mean.
    SquaredError,
    /// The loss that a Newton step leaves, with a penalty on the squares of leaves.
    Newton {
        /// The weight of the penalty.
        l2_regularization: f64,
    },
}

/// Added to the second derivatives, so that a leaf without any has a value.
const HESSIAN_MIN: f64 = 1e-15;
/// The least sum of second derivatives of a child, as in scikit-learn.
const CHILD_HESSIAN_MIN: f64 = 1e-3;

impl Criterion {
    /// The weight of a node.
    pub(crate) fn weight(self, sums: &[f64]) -> f64 {
        match self {
            Criterion::Gini | Criterion::Entropy => sums[1..].iter().sum(),
            Criterion::SquaredError => sums[1],
            Criterion::Newton { .. } => sums[2],
        }
    }

    /// The impurity of a node times its weight. A Newton step has the loss that it leaves.
    pub(crate) fn impurity(self, sums: &[f64]) -> f64 {
        let weight = self.weight(sums);
        match self {
            _ if weight <= 0.0 => 0.0,
            Criterion::Gini => weight - sums[1..].iter().map(|class| class * class).sum::<f64>() / weight,
            Criterion::Entropy => {
                let part = |&class: &f64| if class <= 0.0 { 0.0 } else { class * (class / weight).log2() };
                -sums[1..].iter().map(part).sum::<f64>()
            }
            Criterion::SquaredError => (sums[3] - sums[2] * sums[2] / weight).max(0.0),
            Criterion::Newton { .. } => sums[1] * self.newton(sums),
        }
    }

    /// Whether the impurity of a node is no more than rounding. The squares of equal targets differ from the
    /// square of their sum by a third of a last place for each sample, measured.
    pub(crate) fn is_pure(self, sums: &[f64]) -> bool {
        let weight = self.weight(sums);
        let size = match self {
            Criterion::Newton { .. } => return false,
            Criterion::SquaredError => weight.max(0.5 * sums[0] * sums[3]),
            Criterion::Gini | Criterion::Entropy => weight,
        };
        self.impurity(sums) <= f64::EPSILON * size
    }

    /// The value of a leaf by a Newton step.
    pub(crate) fn newton(self, sums: &[f64]) -> f64 {
        let penalty =
            if let Criterion::Newton { l2_regularization } = self { l2_regularization } else { 0.0 };
        -sums[1] / (sums[2] + penalty + HESSIAN_MIN)
    }

    /// The gain of two children over their parent, whose impurity is known.
    #[inline]
    fn gain(self, parent: f64, left: &[f64], right: &[f64]) -> f64 {
        match self {
            // The squares of targets are the same on both sides, and cost digits.
            Criterion::SquaredError => left[2] * left[2] / left[1] + right[2] * right[2] / right[1] - parent,
            _ => parent - self.impurity(left) - self.impurity(right),
        }
    }

    /// The number of the parent from which [`Criterion::gain`] is taken.
    fn parent(self, sums: &[f64], is_root: bool) -> f64 {
        match self {
            Criterion::SquaredError => sums[2] * sums[2] / sums[1],
            // Before the first split no step is taken.
            Criterion::Newton { .. } if is_root => 0.0,
            _ => self.impurity(sums),
        }
    }

    /// Whether a child may be a leaf.
    #[inline]
    fn allows(self, child: &[f64], samples_min: f64) -> bool {
        let enough = match self {
            Criterion::Newton { .. } => CHILD_HESSIAN_MIN <= child[2],
            Criterion::SquaredError => 0.0 < child[1],
            Criterion::Gini | Criterion::Entropy => true,
        };
        enough && samples_min <= child[0]
    }

    /// Whether a split must be better than none.
    fn needs_gain(self) -> bool {
        matches!(self, Criterion::Newton { .. })
    }
}

/// A question for a node.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) feature: u32,
    pub(crate) bin: u8,
    pub(crate) threshold: f64,
    pub(crate) missing_left: bool,
    /// The gain of the children over the node.
    pub(crate) gain: f64,
    pub(crate) left: Vec<f64>,
    pub(crate) right: Vec<f64>,
}

/// Rules of the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) criterion: Criterion,
    /// Samples of a leaf, at least.
    pub(crate) samples_min: f64,
    /// Whether one threshold is drawn for each feature, instead of the best one.
    pub(crate) is_random: bool,
    /// Whether the threshold lies amid the values of the node that it parts, and missing values are looked
    /// for in the node. Otherwise it is the bound of a bin, and they are looked for in all samples.
    pub(crate) is_within_node: bool,
}

/// A node of which a split is searched.
pub(crate) struct Searched<'a> {
    pub(crate) columns: &'a [Column],
    pub(crate) state: &'a [f64],
    /// The sums of the node.
    pub(crate) sums: &'a [f64],
    pub(crate) is_root: bool,
    /// The key of the draws of the node.
    pub(crate) key: Key,
}

impl Rules {
    /// The best split by these features; of equal ones the first. `None` if there is none.
    pub(crate) fn best(&self, bins: &Bins, node: &Searched<'_>) -> Option<Split> {
        let width = node.sums.len();
        let parent = self.criterion.parent(node.sums, node.is_root);
        let least = if self.criterion.needs_gain() { 0.0 } else { f64::NEG_INFINITY };
        let mut best: Option<Split> = None;
        for column in node.columns {
            let len = (column.bins as usize + 1) * width;
            let search = Search {
                rules: self,
                bins: &bins.features[column.feature as usize],
                sums: node.sums,
                parent,
                state: &node.state[column.start..column.start + len],
            };
            let mut found = Found { gain: best.as_ref().map_or(least, |best| best.gain), cut: None };
            if self.is_random {
                search.drawn(node.key.uniform(u64::from(column.feature)), &mut found);
            } else {
                search.best(&mut found);
            }
            if let Some(cut) = found.cut {
                best = Some(search.split(column.feature, found.gain, cut));
            }
        }
        best
    }
}

/// The best cut as yet.
struct Found {
    gain: f64,
    cut: Option<Cut>,
}

/// Bins up to one on the left.
#[derive(Clone, Copy)]
struct Cut {
    bin: usize,
    missing_left: bool,
    /// The threshold if it is drawn and not that of a bin.
    threshold: Option<f64>,
}

/// The search in one feature.
struct Search<'a> {
    rules: &'a Rules,
    bins: &'a FeatureBins,
    sums: &'a [f64],
    parent: f64,
    state: &'a [f64],
}

impl Search<'_> {
    fn bin(&self, bin: usize) -> &[f64] {
        let width = self.sums.len();
        &self.state[bin * width..(bin + 1) * width]
    }

    fn missing(&self) -> &[f64] {
        self.bin(self.bins.count())
    }

    /// Whether missing values take part.
    fn has_missing(&self) -> bool {
        if self.rules.is_within_node { self.missing()[0] != 0.0 } else { self.bins.has_missing }
    }

    /// Missing values on the right, and on the left if there are any.
    fn best(&self, found: &mut Found) {
        let (count, has_missing) = (self.bins.count(), self.has_missing());
        let (mut left, mut right) = (vec![0.0; self.sums.len()], vec![0.0; self.sums.len()]);
        for bin in 0..count - 1 + usize::from(has_missing) {
            if self.bin(bin)[0] == 0.0 {
                continue;
            }
            add(&mut left, self.bin(bin));
            rest(&mut right, self.sums, &left);
            if right[0] < self.rules.samples_min.max(1.0) {
                break;
            }
            let cut = Cut { bin, missing_left: false, threshold: None };
            self.consider(&left, &right, cut, found);
        }
        if !has_missing {
            return;
        }
        right.fill(0.0);
        for bin in (0..count - 1).rev() {
            if self.bin(bin + 1)[0] == 0.0 {
                continue;
            }
            add(&mut right, self.bin(bin + 1));
            rest(&mut left, self.sums, &right);
            if left[0] < self.rules.samples_min.max(1.0) {
                break;
            }
            self.consider(&left, &right, Cut { bin, missing_left: true, threshold: None }, found);
        }
    }

    fn consider(&self, left: &[f64], right: &[f64], cut: Cut, found: &mut Found) {
        let criterion = self.rules.criterion;
        let samples_min = self.rules.samples_min.max(1.0);
        if !(criterion.allows(left, samples_min) && criterion.allows(right, samples_min)) {
            return;
        }
        let gain = criterion.gain(self.parent, left, right);
        if found.gain < gain {
            *found = Found { gain, cut: Some(cut) };
        }
    }

    /// One threshold, drawn between the values of the node.
    fn drawn(&self, share: f64, found: &mut Found) {
        let count = self.bins.count();
        let mut seen = (0..count).filter(|&bin| self.bin(bin)[0] != 0.0);
        let Some(first) = seen.next() else { return };
        let last = seen.next_back().unwrap_or(first);
        let has_missing = self.has_missing();
        if first == last && !has_missing {
            return;
        }
        // The bits that the threshold does not need tell where missing values go.
        let missing_left = has_missing && first != last && (share * 4096.0).fract() < 0.5;
        let (low, high) = (self.bins.centers[first], self.bins.centers[last]);
        let drawn = low + share * (high - low);
        let after = self.bins.centers[first..=last].partition_point(|&center| center <= drawn);
        let bin = if first == last { last } else { (first + after.max(1) - 1).min(last - 1) };
        let is_between = self.bins.is_exact && first != last && drawn.is_finite() && drawn < high;
        let mut left = vec![0.0; self.sums.len()];
        (first..=bin).for_each(|bin| add(&mut left, self.bin(bin)));
        if missing_left {
            add(&mut left, self.missing());
        }
        let mut right = vec![0.0; self.sums.len()];
        rest(&mut right, self.sums, &left);
        self.consider(
            &left,
            &right,
            Cut { bin, missing_left, threshold: is_between.then_some(drawn) },
            found,
        );
    }

    fn split(&self, feature: u32, gain: f64, cut: Cut) -> Split {
        let mut left = vec![0.0; self.sums.len()];
        (0..=cut.bin).for_each(|bin| add(&mut left, self.bin(bin)));
        if cut.missing_left {
            add(&mut left, self.missing());
        }
        // Summed anew: the rest of the node's sums would have roundings in the place of absent classes.
        let mut right = vec![0.0; self.sums.len()];
        (cut.bin + 1..self.bins.count()).for_each(|bin| add(&mut right, self.bin(bin)));
        if !cut.missing_left {
            add(&mut right, self.missing());
        }
        // Without missing values, those that come later go with most.
        let missing_left = if self.has_missing() { cut.missing_left } else { right[0] < left[0] };
        let threshold = cut.threshold.unwrap_or_else(|| self.threshold(cut.bin));
        Split { feature, bin: cut.bin as u8, threshold, missing_left, gain, left, right }
    }

    /// The bound of a bin, or the middle of the values of the node on both sides of it.
    fn threshold(&self, bin: usize) -> f64 {
        let bound = self.bins.threshold(bin);
        if !self.rules.is_within_node {
            return bound;
        }
        let is_seen = |bin: &usize| self.bin(*bin)[0] != 0.0;
        let below = (0..=bin).rev().find(is_seen);
        let above = (bin + 1..self.bins.count()).find(is_seen);
        match (below, above) {
            (Some(below), Some(above)) if above - below != 1 && self.bins.is_exact => {
                let (low, high) = (self.bins.centers[below], self.bins.centers[above]);
                low / 2.0 + high / 2.0
            }
            // All values are on the left, and those that are missing on the right.
            (_, None) => f64::INFINITY,
            _ => bound,
        }
    }
}

fn add(sums: &mut [f64], more: &[f64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// All but a part.
fn rest(rest: &mut [f64], all: &[f64], part: &[f64]) {
    rest.iter_mut().zip(all).zip(part).for_each(|((rest, all), part)| *rest = all - part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(values: &[f64], has_missing: bool) -> Bins {
        Bins { features: vec![FeatureBins { has_missing, ..FeatureBins::of(values, None, 255) }] }
    }

    fn best(rules: Rules, bins: &Bins, state: &[f64], width: usize) -> Option<Split> {
        let mut sums = vec![0.0; width];
        state.chunks_exact(width).for_each(|bin| add(&mut sums, bin));
        let columns = [Column { feature: 0, bins: bins.features[0].count() as u32, start: 0 }];
        let node = Searched { columns: &columns, state, sums: &sums, is_root: true, key: Key::new(0, 0) };
        rules.best(bins, &node)
    }

    fn rules(criterion: Criterion) -> Rules {
        Rules { criterion, samples_min: 1.0, is_random: false, is_within_node: true }
    }

    #[test]
    fn the_purest_children_are_chosen() {
        // Classes by value: 0 at 1 and 2, 1 at 4; nothing is missing.
        let state = [3.0, 3.0, 0.0, 2.0, 2.0, 0.0, 4.0, 0.0, 4.0, 0.0, 0.0, 0.0];
        for criterion in [Criterion::Gini, Criterion::Entropy] {
            let split = best(rules(criterion), &bins(&[1.0, 2.0, 4.0], false), &state, 3).unwrap();
            assert_eq!((split.bin, split.threshold, split.missing_left), (1, 3.0, true));
            assert_eq!((split.left, split.right), (vec![5.0, 5.0, 0.0], vec![4.0, 0.0, 4.0]));
            assert!((split.gain - criterion.impurity(&[9.0, 5.0, 4.0])).abs() < 1e-12);
        }
        let strict = Rules { samples_min: 5.0, ..rules(Criterion::Gini) };
        assert!(best(strict, &bins(&[1.0, 2.0, 4.0], false), &state, 3).is_none());
    }

    #[test]
    fn missing_values_go_to_the_better_side() {
        // Slopes: those of missing values are like those of the first bin.
        let state = [2.0, -4.0, 2.0, 2.0, 4.0, 2.0, 3.0, -6.0, 3.0];
        let newton = Criterion::Newton { l2_regularization: 0.0 };
        for within in [false, true] {
            let rules = Rules { is_within_node: within, ..rules(newton) };
            let split = best(rules, &bins(&[0.0, 1.0], true), &state, 3).unwrap();
            assert_eq!((split.bin, split.missing_left, &split.left), (0, true, &vec![5.0, -10.0, 5.0]));
        }
        // Missing values that alone differ are alone on the right.
        let state = [2.0, -4.0, 2.0, 2.0, -4.0, 2.0, 3.0, 6.0, 3.0];
        let split = best(rules(newton), &bins(&[0.0, 1.0], true), &state, 3).unwrap();
        assert_eq!((split.bin, split.threshold, split.missing_left), (1, f64::INFINITY, false));
    }

    #[test]
    fn a_newton_step_that_gains_nothing_is_none() {
        let state = [2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0];
        let rules = |criterion| Rules { is_within_node: false, ..rules(criterion) };
        let newton = Criterion::Newton { l2_regularization: 0.0 };
        // Of the root any split is better than no step.
        assert!(best(rules(newton), &bins(&[0.0, 1.0], false), &state, 3).is_some());
        let few = [2.0, 1.0, 1e-4, 2.0, -1.0, 2.0, 0.0, 0.0, 0.0];
        assert!(best(rules(newton), &bins(&[0.0, 1.0], false), &few, 3).is_none());
    }

    #[test]
    fn drawn_thresholds_part_the_node() {
        let state = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0];
        let bins = bins(&[1.0, 2.0, 4.0], false);
        for seed in 0..50 {
            let rules = Rules { is_random: true, ..rules(Criterion::Gini) };
            let columns = [Column { feature: 0, bins: 3, start: 0 }];
            let key = Key::new(seed, 0);
            let sums = [3.0, 1.0, 2.0];
            let node = Searched { columns: &columns, state: &state, sums: &sums, is_root: true, key };
            let split = rules.best(&bins, &node).unwrap();
            assert!((1.0..4.0).contains(&split.threshold) && split.left[0] == 1.0, "{split:?}");
        }
    }
}
