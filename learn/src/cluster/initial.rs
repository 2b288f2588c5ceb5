//! First centres of k-means.
//!
//! Candidates are drawn in a few passes, each with a chance by its squared distance to those before (Bahmani
//! and others, "Scalable K-Means++", 2012). Of these, weighted by the samples around them, k-means++ chooses
//! (Arthur and Vassilvitskii, 2007), with several trials for each centre.

use crate::checks::{Training, refused};
use crate::params::{Parameter, Setting};
use crate::passes::Lloyd;
use crate::states::{lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayView1, Axis, concatenate};
use tharsis_numeric::random::Generator;
use tharsis_numeric::{Result, Tensor};

/// First centres of [`KMeans`](super::KMeans).
#[derive(Clone, Debug, Default)]
pub enum Init {
    /// Samples far from each other, by `k-means||`: k-means++ in a few passes.
    #[default]
    Parallel,
    /// Samples at random, all equally likely, or by their weights.
    Random,
    /// These centres; (k, d).
    Centers(Tensor),
}

impl From<&Tensor> for Init {
    fn from(centers: &Tensor) -> Init {
        Init::Centers(centers.clone())
    }
}

impl Parameter for Init {
    fn words(_: usize) -> String {
        "a str among {'k-means++', 'random'} or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Init> {
        match value {
            Setting::Text(text) if text == "k-means++" => Some(Init::Parallel),
            Setting::Text(text) if text == "random" => Some(Init::Random),
            Setting::Array(centers) => Some(Init::Centers(centers.clone())),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Init::Parallel => "k-means++".into(),
            Init::Random => "random".into(),
            Init::Centers(centers) => Setting::Array(centers.clone()),
        }
    }
}

/// Rounds in which candidates are drawn.
const ROUNDS: usize = 5;
/// Candidates of a round, for each centre.
const CANDIDATES_PER_CENTER: usize = 2;

/// Draws centres from samples.
pub(crate) struct Draw<'a> {
    pub(crate) training: &'a Training,
    pub(crate) lloyd: &'a Lloyd<'a>,
    pub(crate) clusters: usize,
}

impl Draw<'_> {
    /// Different samples, with chances by their weights; (k, d).
    ///
    /// # Errors
    /// Errors of the pass.
    #[track_caller]
    pub(crate) fn random(&self, generator: &Generator) -> Result<Array2<f64>> {
        self.samples(generator, self.clusters)
    }

    /// Centres by `k-means||`; (k, d).
    ///
    /// # Errors
    /// Errors of the passes.
    #[track_caller]
    pub(crate) fn parallel(&self, generator: &Generator) -> Result<Array2<f64>> {
        let wanted = CANDIDATES_PER_CENTER * self.clusters;
        // So few samples are all candidates.
        let most = ROUNDS * wanted + 1;
        let mut candidates = self.samples(generator, if self.training.rows <= most { most } else { 1 })?;
        if most < self.training.rows {
            for _ in 0..ROUNDS {
                let potential = self.lloyd.potential(&candidates);
                let chance = &potential * wanted as f64;
                let draw = generator.random(&[self.training.rows]) * potential.sum(..);
                let chosen = self.lloyd.samples().filter(&draw.less(&chance));
                let rows = self.training.engine.run(&[&chosen])?.pop().ok_or_else(lost)?;
                candidates = stacked(&candidates, &matrix(rows)?)?;
            }
        }
        if candidates.nrows() < self.clusters {
            // There are fewer different samples than clusters: some will share a place.
            let more = self.samples(generator, self.clusters - candidates.nrows())?;
            return stacked(&candidates, &more);
        }
        let weights = self.lloyd.around(&candidates)?.weights;
        let draws = generator.random(&[self.clusters * trials(self.clusters)]);
        let draws = vector(self.training.engine.run(&[&draws])?.pop().ok_or_else(lost)?)?;
        Ok(plus_plus(&candidates, &weights, self.clusters, &draws))
    }

    /// So many different samples, or all, with chances by their weights.
    #[track_caller]
    fn samples(&self, generator: &Generator, count: usize) -> Result<Array2<f64>> {
        // The first of independent exponential times, with these rates, are a sample without replacement.
        let times = generator.standard_exponential(&[self.training.rows]);
        let times = match &self.training.weight {
            None => times,
            Some(weight) => times / weight,
        };
        let chosen = match count.min(self.training.rows) as i64 {
            1 => times.argmin(0).expand_dims(0),
            count => times.argsort(0).get(&[(..count).into()]),
        };
        matrix(
            self.training.engine.run(&[&self.lloyd.samples().take_at(&chosen, 0)])?.pop().ok_or_else(lost)?,
        )
    }
}

#[track_caller]
fn stacked(above: &Array2<f64>, below: &Array2<f64>) -> Result<Array2<f64>> {
    concatenate(Axis(0), &[above.view(), below.view()]).map_err(|error| refused(error.to_string()))
}

/// Centres among weighted candidates: each is the best of several trials, drawn by weight and squared
/// distance to those before.
pub(super) fn plus_plus(
    candidates: &Array2<f64>,
    weights: &Array1<f64>,
    clusters: usize,
    draws: &Array1<f64>,
) -> Array2<f64> {
    let trials = trials(clusters);
    let mut nearest = Array1::from_elem(candidates.nrows(), f64::INFINITY);
    let mut chosen = Vec::with_capacity(clusters);
    for center in 0..clusters {
        let chances: Array1<f64> = if center == 0 { weights.clone() } else { &nearest * weights };
        let mut best: Option<(f64, usize, Array1<f64>)> = None;
        for trial in 0..trials {
            let tried = at_share(chances.view(), draws[center * trials + trial]);
            let closer = Array1::from_shape_fn(candidates.nrows(), |i| {
                squared(candidates.row(i), candidates.row(tried)).min(nearest[i])
            });
            let potential = closer.dot(weights);
            if best.as_ref().is_none_or(|(least, ..)| potential < *least) {
                best = Some((potential, tried, closer));
            }
        }
        if let Some((_, tried, closer)) = best {
            chosen.push(tried);
            nearest = closer;
        }
    }
    candidates.select(Axis(0), &chosen)
}

/// Trials for each centre, as scikit-learn has them.
pub(super) fn trials(clusters: usize) -> usize {
    2 + (clusters as f64).ln() as usize
}

/// The index at which this part of the sum of the chances is passed.
fn at_share(chances: ArrayView1<'_, f64>, share: f64) -> usize {
    let mut left = share * chances.sum();
    let passed = chances.iter().position(|&chance| {
        left -= chance;
        left < 0.0
    });
    passed.unwrap_or(chances.len() - 1)
}

fn squared(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
