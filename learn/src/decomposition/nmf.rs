//! Samples that are not negative as sums of parts that are not negative.

use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::dense::{eigh, tensor};
use crate::params::{Auto, Parameter, estimator, words};
use crate::passes::{NonNegative, in_fixed_chunks, non_negative_step};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix, vector};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Index, Result, Tensor, where_};

const NAME: &str = "NMF";
/// Parts of first vectors below which they are zero.
const ALMOST_ZERO: f64 = 1e-6;
/// Random numbers in the place of zeros, in parts of the mean.
const SMALL: f64 = 0.01;

/// The start of an [`NMF`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NMFInit {
    /// Random numbers.
    Random,
    /// Singular vectors, the larger of their positive and negative parts.
    Nndsvd,
    /// As `Nndsvd`, with the mean of the samples in the place of zeros.
    Nndsvda,
    /// As `Nndsvd`, with small random numbers in the place of zeros.
    Nndsvdar,
}

words!(
    NMFInit,
    [
        "random" => NMFInit::Random, "nndsvd" => NMFInit::Nndsvd, "nndsvda" => NMFInit::Nndsvda,
        "nndsvdar" => NMFInit::Nndsvdar
    ]
);

/// A penalty that may be that of the other factor.
#[derive(Clone, Copy, Debug)]
pub struct PenaltyOfParts(Option<f64>);

impl From<f64> for PenaltyOfParts {
    fn from(penalty: f64) -> PenaltyOfParts {
        PenaltyOfParts(Some(penalty))
    }
}

impl Parameter for PenaltyOfParts {
    fn words(least: usize) -> String {
        format!("{} or a str among {{'same'}}", f64::words(least))
    }

    fn of(value: &Setting) -> Option<PenaltyOfParts> {
        match value {
            Setting::Text(text) if text == "same" => Some(PenaltyOfParts(None)),
            number => f64::of(number).map(|penalty| PenaltyOfParts(Some(penalty))),
        }
    }

    fn setting(&self) -> Setting {
        self.0.map_or_else(|| "same".into(), Into::into)
    }
}

estimator! {
    /// scikit-learn's `NMF` by coordinate descent: samples as weighted sums of parts, none of which is
    /// negative.
    ///
    /// The weights of all samples are stored, before and behind a step: 16 bytes for each part of each. If
    /// those are more than can be stored, each step makes the ones before it again. A step reads the samples
    /// twice: for the weights, and for the sums that the parts are made of.
    ///
    /// ```
    /// use tharsis_learn::decomposition::NMF;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 2.0, 4.0, 3.0, 6.0]).reshape(&[3, 2]);
    /// let model = NMF::new().n_components(1).fit(&x, ..)?;
    /// assert!(model.reconstruction_err < 1e-6);
    /// assert!((model.components[[0, 1]] / model.components[[0, 0]] - 2.0).abs() < 1e-6);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    NMF {
        /// scikit-learn's `n_components`: the number of parts; as many as features by default.
        n_components "n_components" >= 1: Auto<usize>, usize = Auto(None);
        /// scikit-learn's `init`: the start; `None` is `Nndsvda` where there are samples and features enough.
        init "init": Option<NMFInit>, impl Into<Option<NMFInit>> = None;
        /// scikit-learn's `tol`: the part of the first step's slopes at which steps end.
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `max_iter`: the most steps; not zero.
        max_iter "max_iter" >= 1: usize, usize = 200;
        /// scikit-learn's `random_state`: the seed of random numbers; they are not scikit-learn's.
        random_state "random_state": u64, u64 = 0;
        /// scikit-learn's `alpha_W`: the penalty on weights.
        alpha_w "alpha_W": f64, f64 = 0.0;
        /// scikit-learn's `alpha_H`: the penalty on parts; that on weights by default.
        alpha_h "alpha_H": PenaltyOfParts, impl Into<PenaltyOfParts> = PenaltyOfParts(None);
        /// scikit-learn's `l1_ratio`: the share of sums in penalties; the rest is on squares.
        l1_ratio "l1_ratio": f64, f64 = 0.0;
    }
}

/// A fitted [`NMF`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedNMF {
    /// scikit-learn's `components_`: the parts; (k, d).
    pub components: Array2<f64>,
    /// scikit-learn's `reconstruction_err_`: the root of the sum of squares that are left.
    pub reconstruction_err: f64,
    /// scikit-learn's `n_iter_`: steps.
    pub n_iter: usize,
    /// Whether slopes became small enough.
    pub converged: bool,
    /// Penalties on weights: on their sums, and on their squares.
    penalties: [f64; 2],
    tol: f64,
    max_iter: usize,
}

/// Weights of samples and parts while they change.
struct Factors {
    /// (n, k), kept in the store.
    weights: Tensor,
    /// (k, d).
    parts: Array2<f64>,
}

impl NMF {
    /// Fits the parts to samples (n, d) that are not negative, of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, negative samples, samples of other than two axes,
    /// without rows or features, complex, NaN or infinite; `OverflowError` for sums beyond float64;
    /// `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedNMF> {
        self.fit_any(x, None, &options.into())
    }

    /// As [`fit`](NMF::fit), from these weights (n, k) and parts (k, d): scikit-learn's `init="custom"`. Also
    /// the weights of the last step, (n, k).
    ///
    /// # Errors
    /// As there; `ValueError` for negative numbers, and for shapes that do not fit.
    #[track_caller]
    pub fn fit_from(
        &self,
        x: &Tensor,
        (weights, parts): (&Tensor, &Tensor),
        options: impl Into<FitOptions>,
    ) -> Result<(FittedNMF, Tensor)> {
        let training = self.training(x, &options.into())?;
        let known = training.engine.with_sizes(&[weights, parts])?;
        let [weights, parts] = &known[..] else { return Err(lost()) };
        let count = self.n_components.0.unwrap_or(parts.shape()?.first().copied().unwrap_or(0));
        for (name, array, wanted) in
            [("H", parts, [count, training.columns]), ("W", weights, [training.rows, count])]
        {
            if *array.shape()? != wanted {
                let [rows, columns] = wanted;
                return Err(refused(format!(
                    "Array with wrong shape passed to NMF (input {name}). Expected ({rows}, {columns}), but got {:?} ",
                    array.shape()?
                )));
            }
            let least = training.engine.run(&[&array.min(..)])?.pop().ok_or_else(lost)?.sum();
            let is_sound = 0.0 <= least;
            if !is_sound {
                return Err(refused(format!("Negative values in data passed to NMF (input {name})")));
            }
        }
        let parts = matrix(training.engine.run(&[parts])?.pop().ok_or_else(lost)?)?;
        let weights = weights.astype(tharsis_numeric::DType::F64);
        self.steps(&training, Factors { weights, parts })
    }

    /// Checks parameters and samples.
    #[track_caller]
    fn training(&self, x: &Tensor, options: &FitOptions) -> Result<Training> {
        check_count(NAME, "n_components", self.n_components.0.unwrap_or(1), 1)?;
        check_count(NAME, "max_iter", self.max_iter, 1)?;
        check_not_negative(NAME, "tol", self.tol)?;
        check_not_negative(NAME, "alpha_W", self.alpha_w)?;
        check_not_negative(NAME, "alpha_H", self.alpha_h.0.unwrap_or(0.0))?;
        let is_share = (0.0..=1.0).contains(&self.l1_ratio);
        check(NAME, "l1_ratio", is_share, "a float in the range [0.0, 1.0]", self.l1_ratio)?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        training.check_finite(Nan::Refused)?;
        let least = training.engine.run(&[&training.x.min(..)])?.pop().ok_or_else(lost)?.sum();
        if least < 0.0 {
            return Err(refused("Negative values in data passed to NMF (input X)"));
        }
        Ok(training)
    }

    /// The first weights and parts.
    #[track_caller]
    fn start(&self, training: &Training) -> Result<Factors> {
        let (rows, columns) = (training.rows, training.columns);
        let count = self.n_components.0.unwrap_or(columns);
        let is_small = count <= rows.min(columns);
        let init = self.init.unwrap_or(if is_small { NMFInit::Nndsvda } else { NMFInit::Random });
        training.check_held(columns.max(count), columns)?;
        let generator = default_rng(self.random_state);
        let mean = training.engine.run(&[&training.x.mean(..)])?.pop().ok_or_else(lost)?.sum();
        if !mean.is_finite() {
            return Err(training.beyond_float64());
        }
        if init == NMFInit::Random {
            let scale = (mean / count as f64).sqrt();
            let parts = generator.standard_normal(&[count, columns]).abs() * scale;
            let parts = matrix(training.engine.run(&[&parts])?.pop().ok_or_else(lost)?)?;
            let weights = generator.standard_normal(&[rows, count]).abs() * scale;
            return Ok(Factors { weights: training.engine.kept(&weights)?, parts });
        }
        if !is_small {
            let init = Parameter::setting(&init);
            return Err(refused(format!(
                "init = {init} can only be used when n_components <= min(n_samples, n_features)"
            )));
        }
        let Factors { weights, parts } = singular(training, count)?;
        let filled = |of: &Tensor, shape: &[usize]| match init {
            NMFInit::Nndsvd | NMFInit::Random => of.clone(),
            NMFInit::Nndsvda => where_(&of.equal(0.0), mean, of),
            NMFInit::Nndsvdar => {
                where_(&of.equal(0.0), (generator.standard_normal(shape) * (mean * SMALL)).abs(), of)
            }
        };
        let weights = training.engine.kept(&filled(&weights, &[rows, count]))?;
        let parts = filled(&tensor(&parts), &[count, columns]);
        Ok(Factors { weights, parts: matrix(training.engine.run(&[&parts])?.pop().ok_or_else(lost)?)? })
    }

    /// Steps until slopes are small.
    #[track_caller]
    fn steps(&self, training: &Training, first: Factors) -> Result<(FittedNMF, Tensor)> {
        let (rows, columns) = (training.rows as f64, training.columns as f64);
        let penalties =
            |alpha: f64, times: f64| [self.l1_ratio, 1.0 - self.l1_ratio].map(|part| times * alpha * part);
        let of_weights = penalties(self.alpha_w, columns);
        let of_parts = penalties(self.alpha_h.0.unwrap_or(self.alpha_w), rows);
        let Factors { mut weights, mut parts } = first;
        let count = parts.nrows();
        let (mut n_iter, mut converged, mut begin) = (0, false, 0.0);
        while n_iter < self.max_iter && !converged {
            n_iter += 1;
            let pass = NonNegative::new((training.rows, training.columns), count);
            let made = pass.step(
                &products(&training.x, &parts, of_weights[0]),
                &weights,
                &gram(&parts, of_weights[1]),
            );
            // The weights before it and these, with a slope for each sample.
            let numbers = (training.rows as u64).saturating_mul(2 * (count as u64 + 1));
            let round_bytes = numbers.saturating_mul(size_of::<f64>() as u64);
            let made = in_fixed_chunks(&training.engine.held(&made, round_bytes)?, count + 1);
            weights = made.get(&[Index::from(..), Index::from(..count as i64)]);
            let slopes = made.get(&[Index::from(..), Index::from(count as i64)]).sum(..);
            let own = in_fixed_chunks(&weights, count);
            let states =
                training.engine.run(&[&slopes, &own.t().matmul(&own), &own.t().matmul(&training.x)])?;
            let [slopes, squares, sums] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
            let (mut squares, sums) = (matrix(squares)?, matrix(sums)? - of_parts[0]);
            squares.diag_mut().mapv_inplace(|square| square + of_parts[1]);
            let mut violation = slopes.sum();
            let gram: Vec<f64> = squares.iter().copied().collect();
            for (mut part, sums) in parts.axis_iter_mut(Axis(1)).zip(sums.axis_iter(Axis(1))) {
                let mut numbers = part.to_vec();
                violation += non_negative_step(&mut numbers, &sums.to_vec(), &gram);
                part.assign(&Array1::from_vec(numbers));
            }
            if !violation.is_finite() {
                return Err(training.beyond_float64());
            }
            if n_iter == 1 {
                begin = violation;
            }
            converged = begin == 0.0 || violation / begin <= self.tol;
        }
        let left =
            (&training.x - in_fixed_chunks(&weights.matmul(&tensor(&parts)), training.columns)).square();
        let left = training.engine.run(&[&left.sum(..)])?.pop().ok_or_else(lost)?.sum();
        if !left.is_finite() {
            return Err(training.beyond_float64());
        }
        let model = FittedNMF {
            components: parts,
            reconstruction_err: left.sqrt(),
            n_iter,
            converged,
            penalties: of_weights,
            tol: self.tol,
            max_iter: self.max_iter,
        };
        Ok((model, weights))
    }
}

/// Products of samples with parts, less a penalty; (n, k).
#[track_caller]
fn products(x: &Tensor, parts: &Array2<f64>, penalty: f64) -> Tensor {
    let products = in_fixed_chunks(&x.matmul(&tensor(&parts.t().to_owned())), parts.nrows());
    if penalty == 0.0 { products } else { products - penalty }
}

/// Products of parts with each other, with a penalty on squares; (k, k).
fn gram(parts: &Array2<f64>, penalty: f64) -> Array2<f64> {
    let mut gram = parts.dot(&parts.t());
    gram.diag_mut().mapv_inplace(|square| square + penalty);
    gram
}

/// The positive or negative parts of singular vectors, whichever are larger; NNDSVD (Boutsidis and
/// Gallopoulos, 2008).
#[track_caller]
fn singular(training: &Training, count: usize) -> Result<Factors> {
    let x = &training.x;
    let products = training.engine.run(&[&x.t().matmul(x)])?.pop().ok_or_else(lost)?;
    let products = matrix(products)?;
    if products.iter().any(|product| !product.is_finite()) {
        return Err(training.beyond_float64());
    }
    let (values, vectors) = eigh(&products)?;
    let columns = training.columns;
    let right = Array2::from_shape_fn((columns, count), |(row, at)| vectors[[row, columns - 1 - at]]);
    let lengths: Array1<f64> = (0..count).map(|at| values[columns - 1 - at].max(0.0).sqrt()).collect();
    let largest = lengths.iter().fold(0.0f64, |most, &length| most.max(length));
    // Vectors of no length are of rounding.
    let scale = lengths.mapv(|length| if f64::EPSILON * largest < length { 1.0 / length } else { 0.0 });
    let left = in_fixed_chunks(&x.matmul(&tensor(&(&right * &scale))), count);
    let squares = [left.maximum(0.0).square().sum(0), left.minimum(0.0).square().sum(0)];
    let squares = training.engine.run(&[&squares[0], &squares[1]])?;
    let [above, below] = <[_; 2]>::try_from(squares).map_err(|_| lost())?;
    let (above, below) = (vector(above)?.mapv(f64::sqrt), vector(below)?.mapv(f64::sqrt));
    let mut parts = Array2::zeros((count, columns));
    let (mut of_above, mut of_below) = (Array1::<f64>::zeros(count), Array1::<f64>::zeros(count));
    for at in 0..count {
        let own = right.column(at);
        let part = |sign: f64| own.mapv(|number| (sign * number).max(0.0));
        let norm = |part: &Array1<f64>| part.dot(part).sqrt();
        if at == 0 {
            // All numbers of the first vectors have one sign, up to rounding.
            let root = lengths[0].sqrt();
            parts.row_mut(0).assign(&own.mapv(|number| number.abs() * root));
            (of_above[0], of_below[0]) = (root, root);
            continue;
        }
        let (positive, negative) = (part(1.0), part(-1.0));
        let (along, against) = (above[at] * norm(&positive), below[at] * norm(&negative));
        let (chosen, left_norm, size, to) = if against < along {
            (positive, above[at], along, &mut of_above)
        } else {
            (negative, below[at], against, &mut of_below)
        };
        let factor = (lengths[at] * size).sqrt();
        let right_norm = norm(&chosen);
        if 0.0 < left_norm && 0.0 < right_norm {
            parts.row_mut(at).assign(&(chosen * (factor / right_norm)));
            to[at] = factor / left_norm;
        }
    }
    parts.mapv_inplace(|number: f64| if number < ALMOST_ZERO { 0.0 } else { number });
    let weights = left.maximum(0.0) * tensor(&of_above) - left.minimum(0.0) * tensor(&of_below);
    let weights = where_(&weights.less(ALMOST_ZERO), 0.0, &weights);
    Ok(Factors { weights, parts })
}

impl Estimator for NMF {
    type Fitted = FittedNMF;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedNMF> {
        let training = self.training(x, options)?;
        let first = self.start(&training)?;
        Ok(self.steps(&training, first)?.0)
    }

    #[track_caller]
    fn fit_transform_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Option<Result<(FittedNMF, Tensor)>> {
        let training = self.training(x, options);
        Some(training.and_then(|training| {
            let first = self.start(&training)?;
            self.steps(&training, first)
        }))
    }
}

impl FittedNMF {
    /// The weights of samples (n, d), as an expression; (n, k). Each sample has steps of its own, where
    /// scikit-learn's end for all at once. Floats keep their dtype.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for negative samples, NaN and infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.transformed(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn transformed(&self, x: &Tensor) -> Result<Tensor> {
        let (count, columns) = self.components.dim();
        let samples = samples_for(NAME, x, columns)?;
        let is_sound = samples.greater_equal(0.0);
        let message = "Negative values in data passed to NMF (input X)".to_owned();
        let samples = Tensor::apply(tharsis_graph::ops::Require { message }, &[&samples, &is_sound]);
        let products = products(&samples, &self.components, self.penalties[0]);
        let gram = gram(&self.components, self.penalties[1]);
        let rows = x.shape()?.first().copied().unwrap_or(0);
        if rows == tharsis_numeric::select::UNKNOWN {
            return Err(refused(
                "transform of NMF needs samples of a known number: compute_chunk_sizes tells it",
            ));
        }
        let pass = NonNegative::new((rows, columns), count);
        Ok(in_dtype_of(x, pass.solved(&products, &gram, (self.tol, self.max_iter))))
    }

    /// Samples from their weights (n, k), as an expression; (n, d).
    ///
    /// # Errors
    /// `ValueError` for another number of weights.
    #[track_caller]
    pub fn inverse_transform(&self, weights: &Tensor) -> Tensor {
        let count = self.components.nrows();
        match samples_for(NAME, weights, count) {
            Ok(own) => in_dtype_of(weights, own.matmul(&tensor(&self.components))),
            Err(error) => Tensor::from(error),
        }
    }
}

saved!(FittedNMF, NAME, |model| {
    let is_sound = |number: &f64| 0.0 <= *number && number.is_finite();
    let (count, columns) = model.components.dim();
    0 < count && 0 < columns && model.components.iter().chain(&model.penalties).all(is_sound)
});

impl Transform for FittedNMF {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedNMF::transform(self, x)
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

impl fmt::Display for FittedNMF {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, columns) = self.components.dim();
        write!(f, "{NAME} of {columns} features, {count} parts")?;
        show::rows(f, "components", &self.components.clone().into_dyn())?;
        write!(f, "\n  reconstruction_err: {}, {} steps", self.reconstruction_err, self.n_iter)
    }
}
