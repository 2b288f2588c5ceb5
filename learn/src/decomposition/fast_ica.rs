//! Independent sources of samples.

use super::projection::{coordinates, samples_at};
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check_count, check_not_negative};
use crate::checks::{Training, refused};
use crate::dense::{eigh, spectrum, svd, tensor};
use crate::params::{parameters, words};
use crate::passes::{Around, Moments, in_fixed_chunks};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis, Slice};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "FastICA";

/// scikit-learn's `FastICA`: directions along which samples are far from normal, and so independent, by
/// parallel fixed points (Hyvärinen, 1999). One pass makes the covariance, and each step is another one.
///
/// ```
/// use tharsis_learn::decomposition::FastICA;
/// use tharsis_numeric::random::default_rng;
/// use tharsis_numeric::array;
/// let sources = default_rng(3).random(&[2000, 2]);
/// let x = sources.matmul(&array([1.0, 0.5, 0.25, 1.0]).reshape(&[2, 2]));
/// let model = FastICA::new().fit(&x, ..)?;
/// assert!(model.converged);
/// assert!((model.transform(&x).std(0).to_vec::<f64>()?[0] - 1.0).abs() < 1e-9);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct FastICA {
    n_components: Option<usize>,
    whiten: Whiten,
    fun: Contrast,
    max_iter: usize,
    tol: f64,
    w_init: Option<Tensor>,
    random_state: u64,
}

/// scikit-learn's `whiten`: the size of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whiten {
    /// Sources have variance 1.
    #[default]
    UnitVariance,
    /// Sources have squares that sum to 1.
    ArbitraryVariance,
}

words!(
    Whiten,
    ["unit-variance" => Whiten::UnitVariance, "arbitrary-variance" => Whiten::ArbitraryVariance]
);

/// scikit-learn's `fun`: the function that tells how far from normal sources are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contrast {
    /// The logarithm of the hyperbolic cosine.
    #[default]
    Logcosh,
    /// Less the exponential of half the negative square.
    Exp,
    /// The fourth power.
    Cube,
}

words!(Contrast, ["logcosh" => Contrast::Logcosh, "exp" => Contrast::Exp, "cube" => Contrast::Cube]);

impl Contrast {
    /// The slope of the function, and that of the slope, at each element.
    fn slopes(self, x: &Tensor) -> (Tensor, Tensor) {
        match self {
            Contrast::Logcosh => {
                let slope = x.tanh();
                let second = 1.0 - slope.square();
                (slope, second)
            }
            Contrast::Exp => {
                let square = x.square();
                let bell = (&square * -0.5).exp();
                (x * &bell, (1.0 - square) * bell)
            }
            Contrast::Cube => (x.square() * x, x.square() * 3.0),
        }
    }
}

/// A fitted [`FastICA`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedFastICA {
    /// scikit-learn's `components_`: makes sources of samples around their mean; (k, d).
    pub components: Array2<f64>,
    /// scikit-learn's `mixing_`: makes samples of sources; (d, k).
    pub mixing: Array2<f64>,
    /// scikit-learn's `mean_`; (d,).
    pub mean: Array1<f64>,
    /// scikit-learn's `whitening_`: makes uncorrelated coordinates of samples around their mean; (k, d).
    pub whitening: Array2<f64>,
    /// scikit-learn's `n_iter_`.
    pub n_iter: usize,
    /// Whether directions turned by less than `tol` in the last step.
    pub converged: bool,
}

parameters!(
    FastICA,
    NAME,
    [
        "n_components" => n_components >= 1, "whiten" => whiten, "fun" => fun, "max_iter" => max_iter >= 1,
        "tol" => tol, "w_init" => w_init, "random_state" => random_state
    ]
);

impl Default for FastICA {
    fn default() -> FastICA {
        FastICA {
            n_components: None,
            whiten: Whiten::UnitVariance,
            fun: Contrast::Logcosh,
            max_iter: 200,
            tol: 1e-4,
            w_init: None,
            random_state: 0,
        }
    }
}

impl FastICA {
    /// An estimator with scikit-learn's defaults: as many sources as there can be, of variance 1, `tol` 1e-4,
    /// at most 200 steps; but `random_state` is 0.
    pub fn new() -> FastICA {
        FastICA::default()
    }

    /// scikit-learn's `n_components`: the number of sources, not zero; `None` for as many as there can be.
    pub fn n_components(self, n_components: impl Into<Option<usize>>) -> FastICA {
        FastICA { n_components: n_components.into(), ..self }
    }

    /// scikit-learn's `whiten`: the size of sources.
    pub fn whiten(self, whiten: Whiten) -> FastICA {
        FastICA { whiten, ..self }
    }

    /// scikit-learn's `fun`: the function that tells how far from normal sources are.
    pub fn fun(self, fun: Contrast) -> FastICA {
        FastICA { fun, ..self }
    }

    /// scikit-learn's `max_iter`: the most steps; not zero.
    pub fn max_iter(self, max_iter: usize) -> FastICA {
        FastICA { max_iter, ..self }
    }

    /// scikit-learn's `tol`: the change of directions at which steps end.
    pub fn tol(self, tol: f64) -> FastICA {
        FastICA { tol, ..self }
    }

    /// scikit-learn's `w_init`: the first directions among whitened coordinates; (k, k).
    pub fn w_init(self, directions: &Tensor) -> FastICA {
        FastICA { w_init: Some(directions.clone()), ..self }
    }

    /// scikit-learn's `random_state`: the seed of the first directions; the numbers are not scikit-learn's.
    pub fn random_state(self, random_state: u64) -> FastICA {
        FastICA { random_state, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, first directions of another shape, samples of other
    /// than two axes, fewer than two, without features, complex, NaN or infinite, and samples that vary in
    /// fewer directions than there are to be sources; `MemoryError` if the covariance takes more than the
    /// memory; `OverflowError` for sums beyond float64; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedFastICA> {
        self.fit_any(x, None, &options.into())
    }

    /// The first directions; (k, k).
    #[track_caller]
    fn first(&self, training: &Training, count: usize) -> Result<Array2<f64>> {
        let given = match &self.w_init {
            None => default_rng(self.random_state).standard_normal(&[count, count]),
            Some(given) => training.engine.with_sizes(&[given])?.pop().ok_or_else(lost)?,
        };
        if given.shape()? != [count, count] {
            return Err(refused(format!("w_init has invalid shape -- should be ({count}, {count})")));
        }
        let given = matrix(training.engine.run(&[&given])?.pop().ok_or_else(lost)?)?;
        if given.iter().any(|number| !number.is_finite()) {
            return Err(refused("Input w_init contains NaN or infinity."));
        }
        Ok(given)
    }

    /// Turns directions (k, k) among whitened coordinates (n, k) until they rest; with the number of steps.
    #[track_caller]
    fn turned(
        &self,
        training: &Training,
        white: &Tensor,
        first: Array2<f64>,
    ) -> Result<(Array2<f64>, usize, bool)> {
        let (rows, count) = (training.rows as f64, first.nrows());
        let mut directions = uncorrelated(&first)?;
        for step in 1..=self.max_iter {
            let sources = in_fixed_chunks(&white.matmul(&tensor(&directions).t()), count);
            let (slope, second) = self.fun.slopes(&sources);
            let states = training.engine.run(&[&slope.t().matmul(white), &second.sum(0)])?;
            if !all_finite(&states) {
                return Err(training.beyond_float64());
            }
            let [products, second] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
            let scaled = &directions * &(vector(second)? / rows).insert_axis(Axis(1));
            let next = uncorrelated(&(matrix(products)? / rows - scaled))?;
            let turned = (&next * &directions).sum_axis(Axis(1)).mapv(|cosine| (cosine.abs() - 1.0).abs());
            directions = next;
            let converged = turned.iter().copied().fold(0.0, f64::max) < self.tol;
            if converged || step == self.max_iter {
                return Ok((directions, step, converged));
            }
        }
        Err(lost())
    }
}

/// The orthogonal matrix nearest to this one: its rows, no longer correlated.
#[track_caller]
fn uncorrelated(directions: &Array2<f64>) -> Result<Array2<f64>> {
    let (values, vectors) = eigh(&directions.dot(&directions.t()))?;
    let roots = values.mapv(|value| 1.0 / value.max(f64::MIN_POSITIVE).sqrt());
    Ok((&vectors * &roots).dot(&vectors.t()).dot(directions))
}

impl Estimator for FastICA {
    type Fitted = FittedFastICA;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedFastICA> {
        if let Some(count) = self.n_components {
            check_count(NAME, "n_components", count, 1)?;
        }
        check_count(NAME, "max_iter", self.max_iter, 1)?;
        check_not_negative(NAME, "tol", self.tol)?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        training.check_least(2, 1)?;
        let moments = Moments::of(&training, None, Around::Mean)?;
        let count = self.n_components.unwrap_or(columns).min(rows).min(columns);
        let whitening = whitening(&moments.varying(), rows, count)?;
        let white = (&training.x - tensor(&moments.mean)).matmul(&tensor(&whitening).t());
        let white = in_fixed_chunks(&white, count) * (rows as f64).sqrt();
        let (mut directions, n_iter, converged) =
            self.turned(&training, &white, self.first(&training, count)?)?;
        if self.whiten == Whiten::UnitVariance {
            // Whitened coordinates are uncorrelated, and their squares sum to 1.
            for mut row in directions.outer_iter_mut() {
                let deviation = (row.dot(&row) / rows as f64).sqrt();
                row /= deviation;
            }
        }
        let components = directions.dot(&whitening);
        if components.iter().any(|part| !part.is_finite()) {
            return Err(refused(
                "the first directions depend on each other: set w_init, or another random_state",
            ));
        }
        let mixing = inverse(&components)?;
        Ok(FittedFastICA { components, mixing, mean: moments.mean, whitening, n_iter, converged })
    }
}

/// Makes uncorrelated coordinates, whose squares sum to 1, of samples with these sums of products; (k, d).
#[track_caller]
fn whitening(gram: &Array2<f64>, rows: usize, count: usize) -> Result<Array2<f64>> {
    let (values, vectors) = spectrum(gram, rows - 1)?;
    let found = values.iter().filter(|&&value| 0.0 < value).count();
    if found < count {
        return Err(refused(format!(
            "the samples vary in {found} directions, which are fewer than {count} sources: set n_components"
        )));
    }
    let first = vectors.slice_axis(Axis(1), Slice::from(..count));
    let mut whitening = first.t().as_standard_layout().into_owned();
    for (mut row, value) in whitening.outer_iter_mut().zip(&values) {
        // scikit-learn's sign.
        let sign = if row[0] < 0.0 { -1.0 } else { 1.0 };
        row *= sign / value.sqrt();
    }
    Ok(whitening)
}

/// The inverse of a matrix of full rank, or what comes next to it; (k, d) to (d, k).
#[track_caller]
fn inverse(x: &Array2<f64>) -> Result<Array2<f64>> {
    let (left, values, right) = svd(x)?;
    let scaled = &left / &values;
    Ok(right.t().dot(&scaled.t()))
}

impl FittedFastICA {
    /// The sources of samples (n, d), as an expression; (n, k). Floats keep their dtype.
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        coordinates(NAME, x, &self.mean, &self.components).unwrap_or_else(Tensor::from)
    }

    /// The samples (n, d) of these sources (n, k), as an expression.
    ///
    /// # Errors
    /// `ValueError` for another number of sources.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        let directions = self.mixing.t().as_standard_layout().into_owned();
        samples_at(NAME, x, &self.mean, &directions).unwrap_or_else(Tensor::from)
    }
}

saved!(FittedFastICA, NAME, |model| {
    let (sources, features) = model.components.dim();
    0 < features
        && model.mean.len() == features
        && model.mixing.dim() == (features, sources)
        && model.whitening.dim() == (sources, features)
});

impl Transform for FittedFastICA {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedFastICA::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered(NAME, self.components.nrows()))
    }
}

impl fmt::Display for FittedFastICA {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sources, features) = self.components.dim();
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "{NAME} of {features} features, {sources} sources, {state} after {} steps", self.n_iter)?;
        show::rows(f, "components", &self.components.clone().into_dyn())
    }
}
