//! Samples in thinner places than their neighbours.

use super::metric::{Distance, Metric};
use super::reference::{Reference, finds, saves, whole};
use super::setters::setters;
use crate::base::{Estimator, FitOptions, predicts};
use crate::bounds::{check, check_count};
use crate::checks::{Training, refused};
use crate::dense::tensor;
use crate::params::{Auto, parameters};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::{Array1, Array2, stack};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor, where_};

const NAME: &str = "LocalOutlierFactor";
/// Added to the mean distance that a density is the reciprocal of: samples may lie on each other.
const LEAST_DISTANCE: f64 = 1e-10;
/// The offset of `auto`.
const OFFSET: f64 = -1.5;

/// scikit-learn's `LocalOutlierFactor`: outliers are samples in thinner places than their neighbours (Breunig
/// and others, 2000).
///
/// The fit holds the neighbours of all samples: 16 bytes for each of `n_neighbors`.
///
/// ```
/// use tharsis_learn::neighbors::LocalOutlierFactor;
/// use tharsis_numeric::array;
/// let x = array([-1.1, 0.2, 101.1, 0.3]).reshape(&[4, 1]);
/// let estimator = LocalOutlierFactor::new().n_neighbors(2);
/// assert_eq!(estimator.fit_predict(&x, ..)?.to_vec::<i64>()?, [1, 1, -1, 1]);
/// let model = estimator.novelty(true).fit(&x, ..)?;
/// assert_eq!(model.predict(&array([0.1, 50.0]).reshape(&[2, 1])).to_vec::<i64>()?, [1, -1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct LocalOutlierFactor {
    n_neighbors: usize,
    metric: Metric,
    p: f64,
    contamination: Auto<f64>,
    novelty: bool,
}

/// A fitted [`LocalOutlierFactor`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLocalOutlierFactor {
    /// scikit-learn's `negative_outlier_factor_`: about -1 for a sample like its neighbours, less for
    /// outliers; (n,).
    pub negative_outlier_factor: Array1<f64>,
    /// scikit-learn's `offset_`: the factor below which a sample is an outlier.
    pub offset: f64,
    /// scikit-learn's `n_neighbors_`: as many as asked for, at most as many as there are other samples.
    pub n_neighbors: usize,
    novelty: bool,
    reference: Reference,
}

parameters!(
    LocalOutlierFactor,
    NAME,
    [
        "n_neighbors" => n_neighbors >= 1, "metric" => metric, "p" => p, "contamination" => contamination,
        "novelty" => novelty
    ]
);

impl Default for LocalOutlierFactor {
    fn default() -> LocalOutlierFactor {
        LocalOutlierFactor {
            n_neighbors: 20,
            metric: Metric::default(),
            p: 2.0,
            contamination: Auto(None),
            novelty: false,
        }
    }
}

setters!(LocalOutlierFactor: n_neighbors, metric);

impl LocalOutlierFactor {
    /// An estimator with scikit-learn's defaults: 20 neighbours, Euclidean distances, outliers below -1.5.
    pub fn new() -> LocalOutlierFactor {
        LocalOutlierFactor::default()
    }

    /// scikit-learn's `contamination`: the share of outliers among the samples, above 0 and at most 0.5.
    /// `None` is `"auto"`: samples are outliers whose factor is below -1.5.
    pub fn contamination(self, contamination: impl Into<Option<f64>>) -> LocalOutlierFactor {
        LocalOutlierFactor { contamination: Auto(contamination.into()), ..self }
    }

    /// scikit-learn's `novelty`: whether the model is for other samples than those of the fit.
    pub fn novelty(self, novelty: bool) -> LocalOutlierFactor {
        LocalOutlierFactor { novelty, ..self }
    }

    /// Fits the model to samples (n, d), of any real dtype. A pass checks them, another one finds the
    /// neighbours.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, a single one, without
    /// features, complex, NaN or infinite; `MemoryError` if the neighbours take more than the memory;
    /// `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedLocalOutlierFactor> {
        self.fit_any(x, None, &options.into())
    }

    /// scikit-learn's `fit_predict`: 1 for each sample of a fit that is no outlier, and -1 for others; (n,),
    /// int64.
    ///
    /// # Errors
    /// As [`fit`](LocalOutlierFactor::fit); `ValueError` with `novelty`, as scikit-learn has no such method
    /// then.
    #[track_caller]
    pub fn fit_predict(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<Tensor> {
        if self.novelty {
            return Err(refused(
                "fit_predict is not available when novelty=True. Use novelty=False if you want to predict on the \
                 training set.",
            ));
        }
        Ok(self.fit(x, options)?.labels())
    }
}

impl Estimator for LocalOutlierFactor {
    type Fitted = FittedLocalOutlierFactor;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedLocalOutlierFactor> {
        check_count(NAME, "n_neighbors", self.n_neighbors, 1)?;
        if let Some(share) = self.contamination.0 {
            let is_share = 0.0 < share && share <= 0.5;
            let range = "a str among {'auto'} or a float in the range (0.0, 0.5]";
            check(NAME, "contamination", is_share, range, share)?;
        }
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let rows = training.rows;
        let count = self.n_neighbors.min(rows - 1).max(1);
        training.check_held(rows, count)?;
        let reference = Reference::of(&training, None, distance)?;
        let states = reference.nearest(NAME, None, (count, None))?;
        let states = matrix(training.engine.run(&[&states])?.pop().ok_or_else(lost)?)?;
        let densities = Densities::of(&states, count, distance);
        let factor = densities.factors(&states, count).mapv(|factor| -factor);
        if factor.iter().any(|factor| !factor.is_finite()) {
            return Err(training.beyond_float64());
        }
        let offset = match self.contamination.0 {
            None => OFFSET,
            Some(share) => quantile(&factor, share),
        };
        let carried = stack![ndarray::Axis(1), densities.farthest, densities.density];
        Ok(FittedLocalOutlierFactor {
            negative_outlier_factor: factor,
            offset,
            n_neighbors: count,
            novelty: self.novelty,
            reference: reference.with(&tensor(&carried), 2),
        })
    }
}

/// Densities around all samples of a fit, by their neighbours.
struct Densities {
    /// The distance of the farthest neighbour; (n,).
    farthest: Array1<f64>,
    /// The local reachability density; (n,).
    density: Array1<f64>,
}

impl Densities {
    /// The densities of states of neighbours; (n, 2 * count).
    fn of(states: &Array2<f64>, count: usize, distance: Distance) -> Densities {
        let farthest = states.column(count - 1).mapv(|reduced| distance.whole(reduced));
        let density = states.outer_iter().map(|state| {
            let reach = (0..count).map(|at| {
                let neighbor = state[count + at] as usize;
                distance.whole(state[at]).max(farthest[neighbor])
            });
            1.0 / (reach.sum::<f64>() / count as f64 + LEAST_DISTANCE)
        });
        Densities { density: density.collect(), farthest }
    }

    /// The mean densities of the neighbours of each sample in units of its own; (n,).
    fn factors(&self, states: &Array2<f64>, count: usize) -> Array1<f64> {
        let each = states.outer_iter().zip(&self.density).map(|(state, own)| {
            let all: f64 = (0..count).map(|at| self.density[state[count + at] as usize] / own).sum();
            all / count as f64
        });
        each.collect()
    }
}

/// NumPy's quantile of numbers, of which there is one at least.
fn quantile(numbers: &Array1<f64>, share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

impl FittedLocalOutlierFactor {
    /// Whether the model is for other samples than those of the fit.
    pub(crate) fn is_for_novelty(&self) -> bool {
        self.novelty
    }

    /// 1 for each sample of the fit that is no outlier, and -1 for others; (n,), int64.
    pub(crate) fn labels(&self) -> Tensor {
        let label = |&factor: &f64| if factor < self.offset { -1i64 } else { 1 };
        let labels: Vec<i64> = self.negative_outlier_factor.iter().map(label).collect();
        Tensor::from_elements(&[labels.len()], &labels)
    }

    /// The negative outlier factor of each of these samples (m, d) among those of the fit, as an expression;
    /// (m,), float64.
    ///
    /// # Errors
    /// `ValueError` without `novelty`, as scikit-learn has no such method then, and for another number of
    /// features; when run for NaN and infinity.
    #[track_caller]
    pub fn score_samples(&self, x: &Tensor) -> Tensor {
        if !self.novelty {
            return Tensor::from(refused(
                "score_samples is not available when novelty=False. The scores of the training samples are always \
                 available through the negative_outlier_factor_ attribute. Use novelty=True if you want to use LOF \
                 for novelty detection and compute score_samples for new unseen data.",
            ));
        }
        let count = self.n_neighbors;
        let states = match self.reference.nearest(NAME, Some(x), (count, None)) {
            Ok(states) => states,
            Err(error) => return Tensor::from(error),
        };
        let part =
            |at: usize| states.get(&[(..).into(), ((at * count) as i64..((at + 1) * count) as i64).into()]);
        let reach = whole(&part(0), self.reference.distance()).maximum(part(2));
        let own = 1.0 / (reach.mean(1) + LEAST_DISTANCE);
        -(part(3) / own.expand_dims(1)).mean(1)
    }

    /// [`score_samples`](FittedLocalOutlierFactor::score_samples) less the offset: negative for outliers.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        self.score_samples(x) - self.offset
    }

    /// 1 for each of these samples (m, d) that is no outlier among those of the fit, and -1 for others, as an
    /// expression; (m,), int64.
    ///
    /// # Errors
    /// As [`score_samples`](FittedLocalOutlierFactor::score_samples).
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        where_(&self.decision_function(x).less(0.0), -1i64, 1i64)
    }
}

predicts!(FittedLocalOutlierFactor, Unsupervised, NAME);

finds!(FittedLocalOutlierFactor);
saves!(FittedLocalOutlierFactor, NAME, |read| {
    read.reference.carried() == 2
        && (1..=read.reference.rows()).contains(&read.n_neighbors)
        && read.negative_outlier_factor.len() == read.reference.rows()
});

impl fmt::Display for FittedLocalOutlierFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = (self.reference.columns(), self.reference.rows());
        write!(f, "{NAME} of {columns} features, {rows} samples, {} neighbours", self.n_neighbors)?;
        show::line(f, "offset", [&self.offset])?;
        show::line(f, "negative_outlier_factor", &self.negative_outlier_factor)
    }
}
