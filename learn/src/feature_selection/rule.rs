//! Rules that choose features by their scores or p-values.

use ndarray::Array1;

/// A rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// p-values below a bound on the expected share of wrong choices (Benjamini and Hochberg, 1995).
    Discoveries(f64),
    /// p-values below a bound.
    Each(f64),
    /// p-values below a bound on the chance of any wrong choice.
    Family(f64),
    /// The largest scores, so many.
    Largest(usize),
    /// The largest scores, so many in a hundred.
    Percentile(f64),
}

impl Rule {
    /// Whether each feature is chosen.
    pub(crate) fn choose(self, scores: &Array1<f64>, pvalues: &Array1<f64>) -> Vec<bool> {
        let count = scores.len();
        match self {
            Rule::Each(bound) => pvalues.iter().map(|&p| p < bound).collect(),
            Rule::Family(bound) => pvalues.iter().map(|&p| p < bound / count as f64).collect(),
            Rule::Discoveries(bound) => {
                let mut sorted = pvalues.to_vec();
                sorted.sort_by(f64::total_cmp);
                let fits = |at: usize, p: f64| p <= bound / count as f64 * (at + 1) as f64;
                let last = sorted.iter().enumerate().rev().find(|(at, p)| fits(*at, **p));
                let most = last.map_or(-1.0, |(_, &p)| p);
                pvalues.iter().map(|&p| p <= most).collect()
            }
            Rule::Largest(wanted) => {
                let mut order: Vec<usize> = (0..count).collect();
                // Of equal scores the last ones, as scikit-learn has it.
                order.sort_by(|&a, &b| known(scores[b]).total_cmp(&known(scores[a])).then(b.cmp(&a)));
                let mut mask = vec![false; count];
                order.iter().take(wanted).for_each(|&at| mask[at] = true);
                mask
            }
            Rule::Percentile(percentile) => by_percentile(scores, percentile),
        }
    }
}

/// A score; the least number for NaN.
fn known(score: f64) -> f64 {
    if score.is_nan() { f64::MIN } else { score }
}

/// The scores above a percentile, and the first ones that are equal to it.
fn by_percentile(scores: &Array1<f64>, percentile: f64) -> Vec<bool> {
    let count = scores.len();
    if percentile == 0.0 || percentile == 100.0 {
        return vec![percentile == 100.0; count];
    }
    let scores = scores.mapv(known);
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (100.0 - percentile) / 100.0 * (count - 1) as f64;
    let (low, share) = (place.floor() as usize, place.fract());
    let high = sorted[(low + 1).min(count - 1)];
    // NumPy's rounding: a score may be the threshold itself.
    let distance = high - sorted[low];
    let threshold =
        if share < 0.5 { sorted[low] + distance * share } else { high - distance * (1.0 - share) };
    let mut mask: Vec<bool> = scores.iter().map(|&score| threshold < score).collect();
    let wanted = (count as f64 * percentile / 100.0) as usize;
    let more = wanted.saturating_sub(mask.iter().filter(|chosen| **chosen).count());
    let equal: Vec<usize> = (0..count).filter(|&at| scores[at] == threshold).take(more).collect();
    equal.into_iter().for_each(|at| mask[at] = true);
    mask
}
