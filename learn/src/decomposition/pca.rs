//! Directions of the largest variance.

use super::projection::deviations;
use super::signs::flip;
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::dense::{eigh, has_unlike_units, spectrum, tensor};
use crate::params::{Parameter, Setting, parameters};
use crate::passes::{Around, Centred, ColumnSums, Moments, in_fixed_chunks};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::KernelError;
use tharsis_numeric::{Error, Result, Tensor};

/// scikit-learn's `PCA`: the directions in which samples vary most, by eigenvectors of their covariance (the
/// solver `covariance_eigh`), in one pass; of fewer samples than features by their singular vectors.
///
/// Of features in unlike units, whose variances differ by more than 10⁶, the eigenvectors are the singular
/// vectors of a factor of the covariance: small variances have the digits that they have in scikit-learn's
/// solver `full`, where eigenvalues of the covariance are rounding of the largest one.
///
/// ```
/// use tharsis_learn::decomposition::PCA;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.0, 3.0, 4.0, 6.0, 8.0]).reshape(&[3, 2]);
/// let model = PCA::new().n_components(1).fit(&x, ..)?;
/// assert!((model.components[[0, 0]] - 0.6).abs() < 1e-12);
/// assert!((model.explained_variance_ratio[0] - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct PCA {
    n_components: Components,
    whiten: bool,
}

/// Number of components that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Components {
    /// As many as there are: the smaller one of the numbers of samples and of features.
    #[default]
    All,
    /// This number.
    Count(usize),
    /// As many as explain more than this part of the variance; between 0 and 1.
    Share(f64),
}

impl From<usize> for Components {
    fn from(count: usize) -> Components {
        Components::Count(count)
    }
}

impl From<f64> for Components {
    fn from(share: f64) -> Components {
        Components::Share(share)
    }
}

/// A fitted [`PCA`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedPCA {
    /// scikit-learn's `components_`: a direction a row, those of the largest variance first; (k, d). The
    /// number of the largest absolute value in each is positive.
    pub components: Array2<f64>,
    /// scikit-learn's `explained_variance_`: the variance along each component, with divisor n - 1; (k,).
    pub explained_variance: Array1<f64>,
    /// scikit-learn's `explained_variance_ratio_`: the same in parts of all variance; (k,).
    pub explained_variance_ratio: Array1<f64>,
    /// scikit-learn's `singular_values_` of the samples around their means; (k,).
    pub singular_values: Array1<f64>,
    /// scikit-learn's `mean_`; (d,).
    pub mean: Array1<f64>,
    /// scikit-learn's `noise_variance_`: the mean of the variances that are left out.
    pub noise_variance: f64,
    /// scikit-learn's `n_samples_`.
    pub n_samples: usize,
    whiten: bool,
}

impl Parameter for Components {
    fn words(_: usize) -> String {
        "an int in the range [0, inf), a float in the range (0.0, 1.0) or None".to_owned()
    }

    fn of(value: &Setting) -> Option<Components> {
        match value {
            Setting::None => Some(Components::All),
            Setting::Real(share) => Some(Components::Share(*share)),
            other => usize::of(other).map(Components::Count),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Components::All => Setting::None,
            Components::Count(count) => count.setting(),
            Components::Share(share) => Setting::Real(*share),
        }
    }
}

parameters!(PCA, "PCA", ["n_components" => n_components, "whiten" => whiten]);

impl PCA {
    /// An estimator with scikit-learn's defaults: all components, not whitened.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::arange;
    /// let model = PCA::new().fit(&arange(6).reshape(&[3, 2]), ..)?;
    /// assert_eq!(model.components.dim(), (2, 2));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> PCA {
        PCA::default()
    }

    /// scikit-learn's `n_components`: a number, or a part of the variance between 0 and 1.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::arange;
    /// let model = PCA::new().n_components(0.9).fit(&arange(6).reshape(&[3, 2]), ..)?;
    /// assert_eq!(model.components.dim(), (1, 2));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn n_components(self, n_components: impl Into<Components>) -> PCA {
        PCA { n_components: n_components.into(), ..self }
    }

    /// scikit-learn's `whiten`: whether what is transformed has variance 1 along each component.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 4.0]).reshape(&[2, 1]);
    /// let made = PCA::new().whiten(true).fit(&x, ..)?.transform(&x);
    /// assert!((made.var_ddof(.., 1.0).item()?.to_f64() - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn whiten(self, whiten: bool) -> PCA {
        PCA { whiten, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::arange;
    /// let refused = PCA::new().n_components(3).fit(&arange(6).reshape(&[3, 2]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("n_components=3 must be between"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a number of components that is out of range, samples of other than two axes, without
    /// rows or features, complex, NaN or infinite; `TypeError` for weights; `OverflowError` for
    /// sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedPCA> {
        self.check()?;
        let training = Training::unsupervised("PCA", x, &options.into())?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        let most = rows.min(columns);
        if let Components::Count(count) = self.n_components
            && most < count
        {
            return Err(out_of_range(count, &most.to_string()));
        }
        let Axes { values, directions, mean } = match rows {
            1 => Axes::of_one(&training)?,
            _ if rows < columns => Axes::of_few(&training)?,
            _ => Axes::of(&training)?,
        };
        let divisor = (rows - 1) as f64;
        let ratios = &values / values.sum();
        let kept = self.kept(&ratios, most);
        let left_out = values.iter().take(most).skip(kept);
        let noise_variance = if kept < most { left_out.sum::<f64>() / (most - kept) as f64 } else { 0.0 };
        let first = |values: &Array1<f64>| -> Array1<f64> { values.iter().take(kept).copied().collect() };
        let mut components =
            Array2::from_shape_fn((kept, columns), |(component, column)| directions[[component, column]]);
        flip(&mut components);
        let explained_variance = first(&values);
        Ok(FittedPCA {
            components,
            singular_values: explained_variance.mapv(|variance| (variance * divisor).sqrt()),
            explained_variance,
            explained_variance_ratio: first(&ratios),
            mean,
            noise_variance,
            n_samples: rows,
            whiten: self.whiten,
        })
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self) -> Result<()> {
        match self.n_components {
            Components::Count(0) => Err(out_of_range(0, "")),
            Components::Share(share) => {
                let is_share = 0.0 < share && share < 1.0;
                if is_share {
                    return Ok(());
                }
                Err(refused(format!(
                    "The 'n_components' parameter of PCA must be a float in the range (0.0, 1.0). Got {share} \
                     instead."
                )))
            }
            Components::All | Components::Count(_) => Ok(()),
        }
    }

    /// The number of components that are kept.
    fn kept(&self, ratios: &Array1<f64>, most: usize) -> usize {
        match self.n_components {
            Components::All => most,
            Components::Count(count) => count,
            Components::Share(share) => {
                let mut sum = 0.0;
                let within = ratios.iter().take_while(|&&ratio| {
                    sum += ratio;
                    sum <= share
                });
                (within.count() + 1).min(most)
            }
        }
    }
}

#[track_caller]
fn out_of_range(count: usize, most: &str) -> Error {
    let equal = if most.is_empty() { "" } else { "=" };
    refused(format!(
        "n_components={count} must be between 1 and min(n_samples, n_features){equal}{most} with \
         svd_solver='covariance_eigh'"
    ))
}

/// Directions of samples around their means.
struct Axes {
    /// The variances along them, descending; at least as many as the smaller one of the numbers of samples
    /// and of features.
    values: Array1<f64>,
    /// One a row.
    directions: Array2<f64>,
    /// The means; (d,).
    mean: Array1<f64>,
}

impl Axes {
    /// The eigenvectors of the covariance, (d, d).
    #[track_caller]
    fn of(training: &Training) -> Result<Axes> {
        let moments = Moments::of(training, None, Around::Mean)?;
        let divisor = (training.rows - 1) as f64;
        let varying = moments.varying() / divisor;
        if has_unlike_units(&varying) {
            let (values, vectors) = spectrum(&varying, training.rows - 1)?;
            return Ok(Axes { values, directions: vectors.reversed_axes(), mean: moments.mean });
        }
        let (mut values, vectors) = eigh(&(&moments.gram / divisor))?;
        // Ascending; rounding may leave negative ones.
        values.invert_axis(Axis(0));
        values.mapv_inplace(|value| if value < 0.0 { 0.0 } else { value });
        let mut directions = vectors.reversed_axes();
        directions.invert_axis(Axis(0));
        Ok(Axes { values, directions, mean: moments.mean })
    }

    /// The first axis of a single sample, along which nothing tells a variance: NaN, as in scikit-learn.
    #[track_caller]
    fn of_one(training: &Training) -> Result<Axes> {
        let mean = ColumnSums::of_all(training)?.mean();
        let directions = Array2::from_shape_fn((1, training.columns), |(_, column)| f64::from(column == 0));
        Ok(Axes { values: Array1::from_elem(1, f64::NAN), directions, mean })
    }

    /// The right singular vectors of fewer samples than features: no matrix is larger than the samples.
    #[track_caller]
    fn of_few(training: &Training) -> Result<Axes> {
        training.check_held(training.rows, training.columns)?;
        let none = training.x.get(&[(..).into(), (..0i64).into()]);
        let centred = Centred::of(training, &none, Around::Mean)?;
        let (_, singular, directions) = centred.x.svd();
        let states = training.engine.run(&[&singular, &directions])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [singular, directions] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let values = vector(singular)?.mapv(|value| value * (value / (training.rows - 1) as f64));
        Ok(Axes { values, directions: matrix(directions)?, mean: centred.mean })
    }
}

impl FittedPCA {
    /// The coordinates of samples (n, d) along the components, as an expression; (n, k), floats keep their
    /// dtype.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 0.0, 3.0, 4.0, 6.0, 8.0]).reshape(&[3, 2]);
    /// let made = PCA::new().n_components(1).fit(&x, ..)?.transform(&x);
    /// assert!(made.isclose(array([-5.0, 0.0, 5.0]).reshape(&[3, 1]), 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("PCA", x, self.mean.len()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let made = (samples - tensor(&self.mean)).matmul(&tensor(&self.components).t());
        let made = in_fixed_chunks(&made, self.components.nrows());
        in_dtype_of(x, if self.whiten { made / tensor(&self.deviations()) } else { made })
    }

    /// The samples (n, d) at these coordinates (n, k), as an expression: what the components left out stays
    /// lost.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 0.0, 3.0, 4.0, 6.0, 8.0]).reshape(&[3, 2]);
    /// let model = PCA::new().n_components(1).fit(&x, ..)?;
    /// let back = model.inverse_transform(&model.transform(&x));
    /// assert!(back.isclose(&x, 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of coordinates.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        let made = match samples_for("PCA", x, self.components.nrows()) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        let made = if self.whiten { made * tensor(&self.deviations()) } else { made };
        in_dtype_of(x, made.matmul(&tensor(&self.components)) + tensor(&self.mean))
    }

    /// scikit-learn's `get_covariance` of the probabilistic model; (d, d). It is that of the samples whether
    /// or not they are whitened; scikit-learn's differs for `whiten`.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let model = PCA::new().fit(&array([0.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// assert!((model.get_covariance()[[0, 0]] - 8.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    #[must_use]
    pub fn get_covariance(&self) -> Array2<f64> {
        let above = self.explained_variance.mapv(|variance| (variance - self.noise_variance).max(0.0));
        let scaled = &self.components * &above.insert_axis(Axis(1));
        let mut covariance = self.components.t().dot(&scaled);
        covariance.diag_mut().mapv_inplace(|variance| variance + self.noise_variance);
        covariance
    }

    /// scikit-learn's `get_precision`: the inverse of [`get_covariance`](FittedPCA::get_covariance); (d, d).
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let model = PCA::new().fit(&array([0.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// assert!((model.get_precision()?[[0, 0]] - 0.125).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` for a covariance that is singular up to rounding.
    #[track_caller]
    pub fn get_precision(&self) -> Result<Array2<f64>> {
        let variances = self.variances()?;
        let (components, features) = self.components.dim();
        let beside = if components < features { 1.0 / self.noise_variance } else { 0.0 };
        let above = variances.mapv(|variance| 1.0 / variance - beside);
        let mut precision = self.components.t().dot(&(&self.components * &above.insert_axis(Axis(1))));
        precision.diag_mut().mapv_inplace(|part| part + beside);
        Ok(precision)
    }

    /// The variances along the components in the probabilistic model; (k,).
    ///
    /// # Errors
    /// `LinAlgError` for a covariance that is singular up to rounding.
    #[track_caller]
    fn variances(&self) -> Result<Array1<f64>> {
        let (components, features) = self.components.dim();
        let noise = self.noise_variance;
        let variances = self.explained_variance.mapv(|variance| variance.max(noise));
        let largest = variances.iter().fold(0.0f64, |largest, variance| largest.max(*variance));
        let bound = largest * f64::EPSILON * features as f64;
        let mut all = variances.iter().copied().chain((components < features).then_some(noise));
        match all.find(|variance| *variance <= bound) {
            None => Ok(variances),
            Some(variance) => Err(Error::here(GraphError::Kernel(KernelError::Singular(format!(
                "Singular matrix: the covariance has variance {variance} in one direction and {largest} in \
                 another"
            ))))),
        }
    }

    /// scikit-learn's `score_samples`: the logarithm of the likelihood of each sample (n, d) under the
    /// probabilistic model, as an expression; (n,).
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 4.0]).reshape(&[2, 1]);
    /// let likely = PCA::new().fit(&x, ..)?.score_samples(&x)?.to_vec::<f64>()?;
    /// assert!((likely[0] - likely[1]).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` for a covariance that is singular up to rounding: samples have no density then.
    #[track_caller]
    pub fn score_samples(&self, x: &Tensor) -> Result<Tensor> {
        let around = samples_for("PCA", x, self.mean.len())? - tensor(&self.mean);
        let (components, features) = self.components.dim();
        let (noise, variances) = (self.noise_variance, self.variances()?);
        let left_out = (features - components) as f64;
        let along = in_fixed_chunks(&around.matmul(&tensor(&self.components).t()), components);
        let mut distance = (along.square() / tensor(&variances)).sum(1);
        let mut log_determinant: f64 = variances.iter().map(|variance| variance.ln()).sum();
        if 0.0 < left_out {
            // In all directions that are left out the variance is that of the noise.
            let rest = around - along.matmul(&tensor(&self.components));
            distance += rest.square().sum(1) / noise;
            log_determinant += left_out * noise.ln();
        }
        let constant = features as f64 * (2.0 * PI).ln() + log_determinant;
        Ok((distance + constant) * -0.5)
    }

    fn deviations(&self) -> Array1<f64> {
        deviations(&self.explained_variance)
    }
}

impl Estimator for PCA {
    type Fitted = FittedPCA;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedPCA> {
        self.fit(x, options)
    }
}

saved!(FittedPCA, "PCA", |model| {
    let (count, features) = model.components.dim();
    let lengths = [&model.explained_variance, &model.explained_variance_ratio, &model.singular_values];
    0 < features
        && model.mean.len() == features
        && lengths.map(|array| array.len()).iter().all(|&length| length == count)
});

impl Transform for FittedPCA {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedPCA::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("PCA", self.components.nrows()))
    }
}

impl fmt::Display for FittedPCA {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, features) = self.components.dim();
        write!(f, "PCA of {features} features, {components} components")?;
        show::line(f, "explained_variance_ratio", &self.explained_variance_ratio)?;
        show::line(f, "singular_values", &self.singular_values)
    }
}
