//! Linear problems, and matrices whose singular values fall.

use crate::Result;
use crate::metrics::inputs::value_error;
use crate::metrics::options::defaults;
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Tensor, arange, concatenate, zeros};

/// Options of [`make_regression`].
#[derive(Clone, Debug)]
pub struct Regression {
    /// The number of features.
    pub n_features: usize,
    /// The number of features on which targets depend.
    pub n_informative: usize,
    /// The number of targets.
    pub n_targets: usize,
    /// Added to each target.
    pub bias: f64,
    /// The number of singular values of the samples that are not small; samples are independent normal
    /// numbers if none is given.
    pub effective_rank: Option<usize>,
    /// As in [`LowRank`].
    pub tail_strength: f64,
    /// The standard deviation of what is added to each target.
    pub noise: f64,
    /// Whether informative features are at random places; else they come first.
    pub shuffle: bool,
    /// The seed.
    pub random_state: u64,
}

impl Default for Regression {
    fn default() -> Regression {
        Regression {
            n_features: 100,
            n_informative: 10,
            n_targets: 1,
            bias: 0.0,
            effective_rank: None,
            tail_strength: 0.5,
            noise: 0.0,
            shuffle: true,
            random_state: 0,
        }
    }
}

/// Options of [`make_low_rank_matrix`].
#[derive(Clone, Debug)]
pub struct LowRank {
    /// The number of singular values that are not small.
    pub effective_rank: usize,
    /// The share of the long tail of singular values, from 0 to 1.
    pub tail_strength: f64,
    /// The seed.
    pub random_state: u64,
}

impl Default for LowRank {
    fn default() -> LowRank {
        LowRank { effective_rank: 10, tail_strength: 0.5, random_state: 0 }
    }
}

defaults!(LowRank, Regression);

/// Samples of a linear problem.
#[derive(Clone, Debug)]
pub struct Linear {
    /// The samples; (n, features), float64.
    pub data: Tensor,
    /// Their targets; (n,), or (n, targets) for several.
    pub target: Tensor,
    /// The coefficients that give the targets; (features,) or (features, targets).
    pub coef: Tensor,
}

/// scikit-learn's `make_regression`: normal samples (n, features) with targets that are linear in some
/// features, with coefficients from 0 to 100.
///
/// ```
/// use tharsis_learn::datasets::make_regression;
/// let made = make_regression(50, ..)?;
/// assert_eq!(made.coef.count_nonzero(..).item()?.to_f64(), 10.0);
/// let expected = made.data.matmul(&made.coef);
/// assert!(made.target.allclose(expected, 1e-12, 1e-12, false).item()?.is_true());
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for no targets, negative noise, and as [`make_low_rank_matrix`].
#[track_caller]
pub fn make_regression(n_samples: usize, options: impl Into<Regression>) -> Result<Linear> {
    let options = options.into();
    let Regression { n_features, n_targets, noise, .. } = options;
    if n_targets == 0 {
        return Err(value_error(
            "The 'n_targets' parameter must be an int in the range [1, inf). Got 0 instead.",
        ));
    }
    if noise.is_nan() || noise < 0.0 {
        let text =
            format!("The 'noise' parameter must be a float in the range [0, inf). Got {noise} instead.");
        return Err(value_error(text));
    }
    let generator = default_rng(options.random_state);
    let data = match options.effective_rank {
        None => generator.standard_normal(&[n_samples, n_features]),
        Some(rank) => low_rank(n_samples, n_features, rank, options.tail_strength, &generator)?,
    };
    let informative = options.n_informative.min(n_features);
    let drawn = generator.uniform(0.0, 100.0, &[informative, n_targets]);
    let mut coef = concatenate(&[&drawn, &zeros(&[n_features - informative, n_targets])], 0);
    if options.shuffle {
        coef = coef.take_at(&generator.permutation(n_features), 0);
    }
    if n_targets == 1 {
        coef = coef.reshape(&[n_features as i64]);
    }
    let mut target = data.matmul(&coef).add(options.bias);
    if noise != 0.0 {
        let shape = target.shape()?.to_vec();
        target = target.add(generator.normal(0.0, noise, &shape));
    }
    Ok(Linear { data, target, coef })
}

/// scikit-learn's `make_low_rank_matrix`: a matrix (n, features) with random singular vectors. Of its
/// singular values, from 1 down, a bell of `effective_rank` has the share that the long tail leaves.
///
/// ```
/// use tharsis_learn::datasets::make_low_rank_matrix;
/// let matrix = make_low_rank_matrix(50, 25, ..)?;
/// let values = matrix.singular_values().to_vec::<f64>()?;
/// assert!((values[0] - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for an effective rank of 0 and a tail beyond 0 and 1.
///
/// # Distributed
/// As [`Tensor::qr`] of (n, min(n, features)).
#[track_caller]
pub fn make_low_rank_matrix(
    n_samples: usize,
    n_features: usize,
    options: impl Into<LowRank>,
) -> Result<Tensor> {
    let LowRank { effective_rank, tail_strength, random_state } = options.into();
    low_rank(n_samples, n_features, effective_rank, tail_strength, &default_rng(random_state))
}

#[track_caller]
fn low_rank(
    n_samples: usize,
    n_features: usize,
    effective_rank: usize,
    tail_strength: f64,
    generator: &Generator,
) -> Result<Tensor> {
    if effective_rank == 0 {
        let text = "The 'effective_rank' parameter must be an int in the range [1, inf). Got 0 instead.";
        return Err(value_error(text));
    }
    if !(0.0..=1.0).contains(&tail_strength) {
        let text = format!(
            "The 'tail_strength' parameter must be a float in the range [0.0, 1.0]. Got {tail_strength} instead."
        );
        return Err(value_error(text));
    }
    let count = n_samples.min(n_features);
    let vectors = |rows: usize| generator.standard_normal(&[rows, count]).qr().0;
    let (left, right) = (vectors(n_samples), vectors(n_features));
    let place = arange(count).divide(effective_rank as f64);
    let bell = place.square().negative().exp().multiply(1.0 - tail_strength);
    let tail = place.multiply(-0.1).exp().multiply(tail_strength);
    Ok(left.multiply(bell.add(tail)).matmul(&right.t()))
}
