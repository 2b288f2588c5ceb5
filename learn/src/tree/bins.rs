//! Bins of features: at most 255 ranges of values, and one bin for those that are missing.

use super::nodes::MISSING;
use super::wire::{CODER, Reader, name_of};
use std::fmt;
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Place};

/// Thresholds are at most this, as in scikit-learn: infinity lies behind the last one.
const THRESHOLD_MAX: f64 = 1e300;

/// The bins of all features.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    pub(crate) features: Vec<FeatureBins>,
}

/// The bins of a feature.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeatureBins {
    /// Upper bounds of all bins but the last one, ascending; a value that is equal belongs to the bin.
    pub(crate) thresholds: Vec<f64>,
    /// A value of each bin.
    pub(crate) centers: Vec<f64>,
    /// Whether each bin has one value.
    pub(crate) is_exact: bool,
    /// Whether there are missing values.
    pub(crate) has_missing: bool,
}

impl FeatureBins {
    /// The bins of values, which may be NaN, with their weights: one for each distinct value, or else with
    /// about as much weight in each.
    pub(crate) fn of(values: &[f64], weights: Option<&[f64]>, bins_max: usize) -> FeatureBins {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        let mut known: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(at, &value)| (value, weight(at))).collect();
        known.retain(|&(value, weight)| !value.is_nan() && 0.0 < weight);
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut distinct: Vec<f64> = known.iter().map(|&(value, _)| value).collect();
        distinct.dedup();
        let is_exact = distinct.len() <= bins_max;
        if is_exact {
            let thresholds = distinct.windows(2).map(|pair| between(pair[0], pair[1])).collect();
            return FeatureBins { thresholds, centers: distinct, is_exact, has_missing: false };
        }
        let mut thresholds = quantiles(&known, bins_max);
        thresholds.iter_mut().for_each(|threshold| *threshold = threshold.min(THRESHOLD_MAX));
        thresholds.dedup();
        // Values above the last quantile may be none: then its bin is the last one.
        let (least, most) = (distinct[0], distinct[distinct.len() - 1]);
        thresholds.retain(|&threshold| threshold < most);
        let ends: Vec<f64> =
            std::iter::once(least).chain(thresholds.iter().copied()).chain(std::iter::once(most)).collect();
        let centers = ends.windows(2).map(|pair| between(pair[0], pair[1])).collect();
        FeatureBins { thresholds, centers, is_exact, has_missing: false }
    }

    /// Number of bins, without that of missing values.
    pub(crate) fn count(&self) -> usize {
        self.thresholds.len() + 1
    }

    /// The bin of a value.
    #[inline]
    fn bin(&self, value: f64) -> u8 {
        if value.is_nan() {
            return MISSING;
        }
        // There are at most 254 thresholds.
        self.thresholds.partition_point(|&threshold| threshold < value) as u8
    }

    /// The bound of a bin: infinity for the last one.
    pub(crate) fn threshold(&self, bin: usize) -> f64 {
        self.thresholds.get(bin).copied().unwrap_or(f64::INFINITY)
    }
}

/// A number from the first of two on, and below the second.
fn between(low: f64, high: f64) -> f64 {
    let middle = (low + high) / 2.0;
    let middle = if middle.is_infinite() && low.is_finite() { low / 2.0 + high / 2.0 } else { middle };
    let middle = if middle.is_nan() { 0.0 } else { middle };
    let middle = if middle == f64::INFINITY { THRESHOLD_MAX.max(low) } else { middle };
    if middle < high { middle } else { low }
}

/// The values, ascending with their weights, at even shares of the weight: the mean of two where a share ends
/// between them.
fn quantiles(known: &[(f64, f64)], parts: usize) -> Vec<f64> {
    let all: f64 = known.iter().map(|&(_, weight)| weight).sum();
    let mut quantiles = Vec::with_capacity(parts - 1);
    let (mut at, mut passed) = (0, known[0].1);
    for part in 1..parts {
        // In the order of operations of NumPy: whether a share ends between two values is a matter of
        // rounding.
        let wanted = all * (part as f64 * (100.0 / parts as f64) / 100.0);
        while passed < wanted && at + 1 < known.len() {
            at += 1;
            passed += known[at].1;
        }
        let next = known.get(at + 1).filter(|_| passed == wanted).map_or(known[at].0, |next| next.0);
        let low = known[at].0;
        let middle = (low + next) / 2.0;
        quantiles.push(if middle.is_finite() || !low.is_finite() { middle } else { low });
    }
    quantiles
}

/// The function of rows of values that gives their bins.
pub(crate) struct Coder {
    pub(crate) bins: Arc<Bins>,
    /// Rows for one call.
    pub(crate) rows: usize,
}

impl fmt::Debug for Coder {
    /// The bins live as long as the nodes that compare functions, so their address tells them apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bins {:p}", Arc::as_ptr(&self.bins))
    }
}

impl Coder {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<Coder> {
        let rows = reader.size()?;
        let count = reader.count().filter(|&count| 0 < count)?;
        let mut features = Vec::with_capacity(count);
        for _ in 0..count {
            let thresholds = reader.floats().filter(|thresholds| thresholds.len() < usize::from(u8::MAX))?;
            features.push(FeatureBins { thresholds, ..FeatureBins::default() });
        }
        Some(Coder { bins: Arc::new(Bins { features }), rows })
    }
}

impl Foreign for Coder {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(CODER, |writer| {
            writer.size(self.rows);
            writer.size(self.bins.features.len());
            self.bins.features.iter().for_each(|feature| writer.floats(&feature.thresholds));
        }))
    }

    fn describe(&self) -> String {
        "bins".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        let row = self.bins.features.len() * (2 * size_of::<f64>() + 2 * size_of::<u8>());
        (self.rows * row) as u64
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let values = args[0].elements::<f64>()?;
        let columns = self.bins.features.len();
        let mut codes = vec![0u8; values.len()];
        for (row, codes) in values.chunks_exact(columns).zip(codes.chunks_exact_mut(columns)) {
            for ((feature, &value), code) in self.bins.features.iter().zip(row).zip(codes) {
                *code = feature.bin(value);
            }
        }
        Ok(Chunk::from_elements(args[0].shape(), &codes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bins: &FeatureBins, values: &[f64]) -> Vec<u8> {
        values.iter().map(|&value| bins.bin(value)).collect()
    }

    #[test]
    fn few_values_have_a_bin_each() {
        let bins = FeatureBins::of(&[3.0, f64::NAN, 1.0, -0.0, 0.0, 3.0], None, 255);
        assert!(bins.is_exact);
        assert_eq!(bins.thresholds, [0.5, 2.0]);
        assert_eq!(codes(&bins, &[0.5, 0.6, 9.0, f64::NAN]), [0, 1, 2, MISSING]);
        // Samples without weight have no values.
        assert_eq!(FeatureBins::of(&[1.0, 2.0, 5.0], Some(&[1.0, 0.0, 2.0]), 255).thresholds, [3.0]);
    }

    #[test]
    fn many_values_share_bins() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let bins = FeatureBins::of(&values, None, 4);
        assert_eq!(bins.thresholds, [249.5, 499.5, 749.5]);
        assert_eq!(codes(&bins, &[249.0, 250.0, 999.0, 1e9]), [0, 1, 3, 3]);
        // A weight of two is a sample that is there twice.
        let weights: Vec<f64> = (0..1000).map(|i| f64::from(1 + i % 2)).collect();
        let twice: Vec<f64> = (0..1000).flat_map(|i| vec![f64::from(i); 1 + i as usize % 2]).collect();
        let weighted = FeatureBins::of(&values, Some(&weights), 7);
        assert_eq!(weighted.thresholds, FeatureBins::of(&twice, None, 7).thresholds);
        // All but the first are equal.
        let skewed: Vec<f64> = (0..100).map(|i| f64::from(i.min(5))).collect();
        let bins = FeatureBins::of(&skewed, None, 3);
        assert_eq!(bins.centers.len(), bins.count());
        assert!(bins.thresholds.iter().all(|&threshold| threshold < 5.0));
    }

    #[test]
    fn extreme_values_keep_their_order() {
        let inf = f64::INFINITY;
        for pair in
            [[-inf, inf], [1.0, inf], [-inf, 1.0], [1e308, f64::MAX], [1.0, 1.0 + f64::EPSILON], [-inf, 0.0]]
        {
            let bins = FeatureBins::of(&pair, None, 255);
            assert_eq!(codes(&bins, &pair), [0, 1], "{pair:?}");
        }
        for constant in [&[1.0, 1.0][..], &[f64::NAN][..], &[][..]] {
            assert_eq!(FeatureBins::of(constant, None, 255).count(), 1);
        }
    }
}
