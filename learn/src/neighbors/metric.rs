//! Distances of rows.

use crate::bounds::check;
use crate::params::words;
use serde::{Deserialize, Serialize};
use tharsis_numeric::Result;

/// scikit-learn's `metric`: the distance of two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metric {
    /// 1 less the cosine of their angle.
    Cosine,
    /// The largest absolute difference.
    Chebyshev,
    /// The root of the sum of squared differences.
    Euclidean,
    /// The sum of absolute differences.
    Manhattan,
    /// The root of order `p` of the sum of absolute differences to the power `p`.
    #[default]
    Minkowski,
}

words!(
    Metric,
    [
        "minkowski" => Metric::Minkowski, "euclidean" => Metric::Euclidean, "l2" => Metric::Euclidean,
        "manhattan" => Metric::Manhattan, "cityblock" => Metric::Manhattan, "l1" => Metric::Manhattan,
        "chebyshev" => Metric::Chebyshev, "cosine" => Metric::Cosine
    ]
);

/// scikit-learn's `weights`: how much each neighbour counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weights {
    /// All alike.
    #[default]
    Uniform,
    /// By the reciprocal of its distance; neighbours at distance 0 leave no weight to others.
    Distance,
}

words!(Weights, ["uniform" => Weights::Uniform, "distance" => Weights::Distance]);

impl Weights {
    /// The word in names of functions.
    pub(super) fn word(self) -> &'static str {
        match self {
            Weights::Uniform => "uniform",
            Weights::Distance => "distance",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Weights> {
        [Weights::Uniform, Weights::Distance].into_iter().find(|weights| weights.word() == word)
    }
}

/// The weight of a neighbour by its distance: infinite at 0, and so near that the reciprocal has no number.
pub(super) fn weight_at(distance: Distance, reduced: f64) -> f64 {
    1.0 / distance.whole(reduced)
}

/// A metric with its parameter. It is compared in a reduced form, which has no root.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Distance {
    Cosine,
    Chebyshev,
    Euclidean,
    Manhattan,
    Power(f64),
}

impl Distance {
    /// The distance of a metric and its `p`.
    ///
    /// # Errors
    /// `ValueError` for a `p` that is not positive.
    #[track_caller]
    pub(crate) fn of(estimator: &str, metric: Metric, p: f64) -> Result<Distance> {
        check(estimator, "p", 0.0 < p, "a float in the range (0.0, inf] or None", p)?;
        Ok(match metric {
            Metric::Cosine => Distance::Cosine,
            Metric::Chebyshev => Distance::Chebyshev,
            Metric::Euclidean => Distance::Euclidean,
            Metric::Manhattan => Distance::Manhattan,
            Metric::Minkowski if p == 1.0 => Distance::Manhattan,
            Metric::Minkowski if p == 2.0 => Distance::Euclidean,
            Metric::Minkowski if p == f64::INFINITY => Distance::Chebyshev,
            Metric::Minkowski => Distance::Power(p),
        })
    }

    /// The number of a distance in its reduced form.
    pub(crate) fn reduced(self, distance: f64) -> f64 {
        match self {
            Distance::Euclidean => distance * distance,
            Distance::Power(p) => distance.powf(p),
            _ => distance,
        }
    }

    /// The distance of its reduced form.
    pub(crate) fn whole(self, reduced: f64) -> f64 {
        match self {
            Distance::Euclidean => reduced.sqrt(),
            Distance::Power(p) => reduced.powf(1.0 / p),
            _ => reduced,
        }
    }

    /// The words in names of functions.
    pub(super) fn word(self) -> String {
        match self {
            Distance::Cosine => "cosine".to_owned(),
            Distance::Chebyshev => "chebyshev".to_owned(),
            Distance::Euclidean => "euclidean".to_owned(),
            Distance::Manhattan => "manhattan".to_owned(),
            Distance::Power(p) => p.to_string(),
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Distance> {
        match word {
            "cosine" => Some(Distance::Cosine),
            "chebyshev" => Some(Distance::Chebyshev),
            "euclidean" => Some(Distance::Euclidean),
            "manhattan" => Some(Distance::Manhattan),
            power => power.parse().ok().filter(|p| 0.0 < *p).map(Distance::Power),
        }
    }

    /// Writes the reduced distances of a row to others, whose features are one behind the other: feature `j`
    /// of other `i` is at `j * count + i`.
    pub(crate) fn reduced_to_all(self, row: &[f64], others: &[f64], found: &mut [f64]) {
        found.fill(0.0);
        match self {
            Distance::Cosine => {
                sum_up(row, others, found, |sum, a, b| sum + a * b);
                found.iter_mut().for_each(|cosine| *cosine = (1.0 - *cosine).clamp(0.0, 2.0));
            }
            Distance::Chebyshev => sum_up(row, others, found, |most, a, b| f64::max(most, (a - b).abs())),
            Distance::Euclidean => sum_up(row, others, found, |sum, a, b| sum + (a - b) * (a - b)),
            Distance::Manhattan => sum_up(row, others, found, |sum, a, b| sum + (a - b).abs()),
            Distance::Power(p) => sum_up(row, others, found, |sum, a, b| sum + (a - b).abs().powf(p)),
        }
    }

    /// Rows as distances read them: those of cosines have length 1.
    pub(crate) fn prepare(self, rows: &mut [f64], columns: usize) {
        if self == Distance::Cosine {
            rows.chunks_exact_mut(columns).for_each(unit);
        }
    }
}

/// Sums over features, a feature of all others after the other.
fn sum_up(row: &[f64], others: &[f64], found: &mut [f64], step: impl Fn(f64, f64, f64) -> f64) {
    for (&own, other) in row.iter().zip(others.chunks_exact(found.len().max(1))) {
        found.iter_mut().zip(other).for_each(|(sum, &other)| *sum = step(*sum, own, other));
    }
}

/// Divides a row by its length; zeros stay. The largest element is divided out first: squares of it neither
/// overflow nor vanish.
fn unit(row: &mut [f64]) {
    let largest = row.iter().fold(0.0f64, |largest, element| largest.max(element.abs()));
    if largest == 0.0 {
        return;
    }
    row.iter_mut().for_each(|element| *element /= largest);
    let length = row.iter().map(|element| element * element).sum::<f64>().sqrt();
    row.iter_mut().for_each(|element| *element /= length);
}
