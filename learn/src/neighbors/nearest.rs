//! The nearest samples of a fit.

use super::block::Summed;
use super::metric::{Distance, Metric, Weights};
use super::reference::{Reference, finds, saves};
use super::setters::setters;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check_count, check_not_negative};
use crate::checks::Training;
use crate::options::FitOptions as Options;
use crate::params::parameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

const NAME: &str = "NearestNeighbors";

/// scikit-learn's `NearestNeighbors`: of samples, those of the fit that are nearest, by all distances (the
/// algorithm `brute`).
///
/// ```
/// use tharsis_learn::neighbors::NearestNeighbors;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 3.0, 7.0]).reshape(&[4, 1]);
/// let model = NearestNeighbors::new().n_neighbors(2).fit(&x, ..)?;
/// let found = model.kneighbors(Some(&array([2.5]).reshape(&[1, 1])), None)?;
/// assert_eq!(found.indices.to_vec::<i64>()?, [2, 1]);
/// assert_eq!(found.distances.to_vec::<f64>()?, [0.5, 1.5]);
/// // Of the samples of the fit themselves, none is its own neighbour.
/// assert_eq!(model.kneighbors(None, 1)?.indices.to_vec::<i64>()?, [1, 0, 1, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct NearestNeighbors {
    n_neighbors: usize,
    radius: f64,
    metric: Metric,
    p: f64,
}

/// A fitted [`NearestNeighbors`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedNearestNeighbors {
    /// scikit-learn's `n_samples_fit_`.
    pub n_samples_fit: usize,
    n_neighbors: usize,
    radius: f64,
    reference: Reference,
}

/// Neighbours within a radius: of sample `i` those from `starts[i]` to `starts[i + 1]`, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighborsWithin {
    /// The starts of those of each sample, and the number of all; (m + 1,).
    pub starts: Vec<usize>,
    /// The numbers of their samples in the fit.
    pub indices: Vec<usize>,
    /// Their distances.
    pub distances: Vec<f64>,
}

parameters!(
    NearestNeighbors,
    NAME,
    ["n_neighbors" => n_neighbors >= 1, "radius" => radius, "metric" => metric, "p" => p]
);

impl Default for NearestNeighbors {
    fn default() -> NearestNeighbors {
        NearestNeighbors { n_neighbors: 5, radius: 1.0, metric: Metric::default(), p: 2.0 }
    }
}

setters!(NearestNeighbors: n_neighbors, radius, metric);
finds!(FittedNearestNeighbors);

impl NearestNeighbors {
    /// An estimator with scikit-learn's defaults: 5 neighbours, radius 1, Euclidean distances.
    pub fn new() -> NearestNeighbors {
        NearestNeighbors::default()
    }

    /// Fits the model to samples (n, d), of any real dtype: checks them by one pass.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedNearestNeighbors> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for NearestNeighbors {
    type Fitted = FittedNearestNeighbors;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedNearestNeighbors> {
        check_count(NAME, "n_neighbors", self.n_neighbors, 1)?;
        check_not_negative(NAME, "radius", self.radius)?;
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let reference = Reference::of(&training, None, distance)?;
        let (n_neighbors, radius) = (self.n_neighbors, self.radius);
        Ok(FittedNearestNeighbors { n_samples_fit: training.rows, n_neighbors, radius, reference })
    }
}

/// Elements of what a pass makes for rows with neighbours within a radius.
const WITHIN_ELEMENTS: usize = 1 << 20;

impl FittedNearestNeighbors {
    /// The samples of the fit within a radius of each of these samples (m, d), or without any of each sample
    /// of the fit, which is then no neighbour of itself; the radius is the one given, or `radius`.
    ///
    /// A first pass counts them, and others find those of some rows at a time. What is found is held here.
    ///
    /// ```
    /// use tharsis_learn::neighbors::NearestNeighbors;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 3.0, 7.0]).reshape(&[4, 1]);
    /// let found = NearestNeighbors::new().fit(&x, ..)?.radius_neighbors(None, 2.0)?;
    /// assert_eq!((found.starts, found.indices), (vec![0, 1, 3, 4, 4], vec![1, 0, 2, 1]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other shapes, a negative radius, and samples that are not finite; `MemoryError` if
    /// the neighbours take more than the memory of the default executor; errors of the passes.
    #[track_caller]
    pub fn radius_neighbors(
        &self,
        x: Option<&Tensor>,
        radius: impl Into<Option<f64>>,
    ) -> Result<NeighborsWithin> {
        let radius = radius.into().unwrap_or(self.radius);
        check_not_negative(NAME, "radius", radius)?;
        let executor = Options::new().chosen_executor();
        let around = (radius, Weights::Uniform, Summed::Columns(0));
        let counts = self.reference.around(NAME, x, around)?.fetch_on::<f64>(&*executor)?;
        let counts: Vec<usize> = counts.iter().map(|&count| count as usize).collect();
        let (all, limit_bytes) = (counts.iter().sum::<usize>(), executor.limits().memory_bytes);
        // A number and a distance.
        let needed_bytes = 2 * size_of::<f64>() as u64 * all as u64;
        if limit_bytes < needed_bytes {
            return Err(Error::here(GraphError::Memory { needed_bytes, limit_bytes }));
        }
        let (rows, distance) = (x.unwrap_or(self.reference.x()), self.reference.distance());
        let mut found = NeighborsWithin { starts: vec![0], indices: Vec::new(), distances: Vec::new() };
        let mut start = 0;
        while start < counts.len() {
            let (end, count) = batch(&counts, start);
            let part = rows.get(&[(start as i64..end as i64).into()]);
            let states = self.reference.nearest(NAME, Some(&part), (count.max(1), Some(radius)))?;
            let states = states.fetch_on::<f64>(&*executor)?;
            for (row, state) in (start..end).zip(states.outer_iter()) {
                for at in 0..counts[row] {
                    let number = state[count + at] as usize;
                    if x.is_some() || number != row {
                        found.indices.push(number);
                        found.distances.push(distance.whole(state[at]));
                    }
                }
                found.starts.push(found.indices.len());
            }
            start = end;
        }
        Ok(found)
    }
}

/// The end of some rows from `start` on, and the most neighbours that one of them has.
fn batch(counts: &[usize], start: usize) -> (usize, usize) {
    let (mut end, mut most) = (start + 1, counts[start]);
    while end < counts.len() {
        let more = most.max(counts[end]);
        if WITHIN_ELEMENTS < 2 * more * (end + 1 - start) {
            break;
        }
        (end, most) = (end + 1, more);
    }
    (end, most)
}

saves!(FittedNearestNeighbors, NAME, |read| 0 < read.n_neighbors
    && read.n_samples_fit == read.reference.rows());

impl fmt::Display for FittedNearestNeighbors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NearestNeighbors of {} features, {} samples", self.reference.columns(), self.n_samples_fit)
    }
}
