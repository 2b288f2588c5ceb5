//! Directions of the largest variance, of a batch of samples after the other.

use super::projection::{coordinates, deviations, samples_at};
use super::signs::flip;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check_count;
use crate::checks::{Nan, Training, in_dtype_of, refused};
use crate::dense::{svd, tensor};
use crate::params::parameters;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::{Array1, Array2, Axis, concatenate};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "IncrementalPCA";
/// Samples of a batch for each feature, if no number is given.
const ROWS_PER_FEATURE: usize = 5;

/// scikit-learn's `IncrementalPCA`: the directions in which samples vary most, by singular vectors of a batch
/// of samples and of the directions before it (Ross and others, 2008). Memory is that of a batch.
///
/// ```
/// use tharsis_learn::decomposition::IncrementalPCA;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.0, 3.0, 4.0, 6.0, 8.0]).reshape(&[3, 2]);
/// let mut model = IncrementalPCA::new().n_components(1).fit(&x, ..)?;
/// assert!((model.components[[0, 0]] - 0.6).abs() < 1e-12);
/// model.partial_fit(&(&x + 1.0), ..)?;
/// assert_eq!(model.n_samples_seen, 6);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct IncrementalPCA {
    n_components: Option<usize>,
    whiten: bool,
    batch_size: Option<usize>,
}

/// A fitted [`IncrementalPCA`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedIncrementalPCA {
    /// scikit-learn's `components_`: a direction a row, those of the largest variance first; (k, d). The
    /// number of the largest absolute value in each is positive.
    pub components: Array2<f64>,
    /// scikit-learn's `explained_variance_`: the variance along each component, with divisor n - 1; (k,).
    pub explained_variance: Array1<f64>,
    /// scikit-learn's `explained_variance_ratio_`: the same in parts of all variance; (k,).
    pub explained_variance_ratio: Array1<f64>,
    /// scikit-learn's `singular_values_`; (k,).
    pub singular_values: Array1<f64>,
    /// scikit-learn's `mean_`; (d,).
    pub mean: Array1<f64>,
    /// scikit-learn's `var_`: the variance of each feature; (d,).
    pub var: Array1<f64>,
    /// scikit-learn's `noise_variance_`: the mean of the variances that are left out.
    pub noise_variance: f64,
    /// scikit-learn's `n_samples_seen_`.
    pub n_samples_seen: usize,
    whiten: bool,
}

parameters!(
    IncrementalPCA,
    NAME,
    ["n_components" => n_components >= 1, "whiten" => whiten, "batch_size" => batch_size >= 1]
);

impl IncrementalPCA {
    /// An estimator with scikit-learn's defaults: as many components as there are, not whitened, batches of
    /// five samples for each feature.
    pub fn new() -> IncrementalPCA {
        IncrementalPCA::default()
    }

    /// scikit-learn's `n_components`: the number of components, not zero; `None` for as many as a batch has.
    pub fn n_components(self, n_components: impl Into<Option<usize>>) -> IncrementalPCA {
        IncrementalPCA { n_components: n_components.into(), ..self }
    }

    /// scikit-learn's `whiten`: whether what is transformed has variance 1 along each component.
    pub fn whiten(self, whiten: bool) -> IncrementalPCA {
        IncrementalPCA { whiten, ..self }
    }

    /// scikit-learn's `batch_size`: the samples of a batch, not zero; `None` is five for each feature.
    pub fn batch_size(self, batch_size: impl Into<Option<usize>>) -> IncrementalPCA {
        IncrementalPCA { batch_size: batch_size.into(), ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype; each batch is read by one pass.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, more components than features or than samples of the
    /// first batch, samples of other than two axes, without rows or features, complex, NaN or infinite;
    /// `MemoryError` if a batch takes more than the memory; `OverflowError` for sums beyond float64;
    /// `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedIncrementalPCA> {
        self.fit_any(x, None, &options.into())
    }

    /// The ends of batches: no last one has fewer samples than components, if more than one has them.
    fn batches(&self, rows: usize, columns: usize) -> Vec<(usize, usize)> {
        let size = self.batch_size.unwrap_or(ROWS_PER_FEATURE * columns);
        let least = self.n_components.unwrap_or(0);
        let (mut batches, mut start) = (Vec::new(), 0);
        for _ in 0..rows / size {
            if start + size + least <= rows {
                batches.push((start, start + size));
                start += size;
            }
        }
        if start < rows {
            batches.push((start, rows));
        }
        batches
    }
}

impl Estimator for IncrementalPCA {
    type Fitted = FittedIncrementalPCA;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedIncrementalPCA> {
        if let Some(count) = self.n_components {
            check_count(NAME, "n_components", count, 1)?;
        }
        if let Some(count) = self.batch_size {
            check_count(NAME, "batch_size", count, 1)?;
        }
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let mut model: Option<FittedIncrementalPCA> = None;
        for (start, end) in self.batches(training.rows, training.columns) {
            let batch = batch_of(&training, start, end)?;
            model = Some(match model {
                Some(model) => model.with_batch(&training, batch)?,
                None => {
                    let count = self.first_count(batch.nrows(), training.columns)?;
                    FittedIncrementalPCA::empty(count, training.columns, self.whiten)
                        .with_batch(&training, batch)?
                }
            });
        }
        model.ok_or_else(lost)
    }
}

impl IncrementalPCA {
    /// The number of components, from the first batch.
    #[track_caller]
    fn first_count(&self, rows: usize, columns: usize) -> Result<usize> {
        match self.n_components {
            None => Ok(rows.min(columns)),
            Some(count) if columns < count => Err(refused(format!(
                "n_components={count} invalid for n_features={columns}, need more rows than columns for \
                 IncrementalPCA processing"
            ))),
            Some(count) if rows < count => Err(refused(format!(
                "n_components={count} must be less or equal to the batch number of samples {rows} for the first \
                 partial_fit call."
            ))),
            Some(count) => Ok(count),
        }
    }
}

/// Some of the samples, in this process.
#[track_caller]
fn batch_of(training: &Training, start: usize, end: usize) -> Result<Array2<f64>> {
    training.check_held(end - start, training.columns)?;
    let rows = training.x.get(&[(start as i64..end as i64).into()]);
    let batch = matrix(training.engine.run(&[&rows])?.pop().ok_or_else(lost)?)?;
    if batch.iter().any(|number| !number.is_finite()) {
        return Err(training.not_finite(Nan::Refused));
    }
    Ok(batch)
}

/// Rows below each other.
#[track_caller]
fn below(parts: &[ndarray::ArrayView2<'_, f64>]) -> Result<Array2<f64>> {
    concatenate(Axis(0), parts).map_err(|error| refused(error.to_string()))
}

impl FittedIncrementalPCA {
    /// A model that has seen nothing, with so many components.
    fn empty(components: usize, columns: usize, whiten: bool) -> FittedIncrementalPCA {
        let (none, zeros) = (Array1::zeros(components), Array1::zeros(columns));
        FittedIncrementalPCA {
            components: Array2::zeros((components, columns)),
            explained_variance: none.clone(),
            explained_variance_ratio: none.clone(),
            singular_values: none,
            mean: zeros.clone(),
            var: zeros,
            noise_variance: 0.0,
            n_samples_seen: 0,
            whiten,
        }
    }

    /// scikit-learn's `partial_fit`: the model of the samples before and of these (n, d), which are one
    /// batch.
    ///
    /// # Errors
    /// `ValueError` for another number of features, NaN and infinity; `MemoryError` if the batch takes more
    /// than the memory; `OverflowError` for sums beyond float64; `TypeError` for weights; errors of the pass.
    /// The model stays as it was then.
    #[track_caller]
    pub fn partial_fit(&mut self, x: &Tensor, options: impl Into<FitOptions>) -> Result<()> {
        let training = Training::unsupervised(NAME, x, &options.into())?.without_weights()?;
        let _ = crate::checks::samples_for(NAME, &training.x, self.mean.len())?;
        let batch = batch_of(&training, 0, training.rows)?;
        *self = self.clone().with_batch(&training, batch)?;
        Ok(())
    }

    /// The model with another batch.
    #[track_caller]
    fn with_batch(self, training: &Training, batch: Array2<f64>) -> Result<FittedIncrementalPCA> {
        let (rows, columns) = batch.dim();
        let (seen, own) = (self.n_samples_seen as f64, rows as f64);
        let total = seen + own;
        let batch_mean = batch.sum_axis(Axis(0)) / own;
        let around = &batch - &batch_mean;
        let apart = &batch_mean - &self.mean;
        let mean = &self.mean + &(&apart * (own / total));
        let squares = around.mapv(|part| part * part).sum_axis(Axis(0));
        let var =
            (&self.var * seen + squares + apart.mapv(|part| part * part) * (seen * own / total)) / total;
        let stacked = if self.n_samples_seen == 0 {
            around
        } else {
            let scaled = &self.components * &self.singular_values.view().insert_axis(Axis(1));
            let correction = apart.mapv(|part| -part * (seen / total * own).sqrt()).insert_axis(Axis(0));
            below(&[scaled.view(), around.view(), correction.view()])?
        };
        if stacked.iter().chain(&var).any(|number| !number.is_finite()) {
            return Err(training.beyond_float64());
        }
        let (_, singular, mut directions) = svd(&stacked)?;
        flip(&mut directions);
        let count = self.components.nrows();
        let variance = singular.mapv(|value| value * value / (total - 1.0));
        let all = var.sum() * total;
        let ratio = singular.mapv(|value| value * value / all);
        let first = |values: &Array1<f64>| -> Array1<f64> { values.iter().take(count).copied().collect() };
        let left: Vec<f64> = variance.iter().skip(count).copied().collect();
        let is_whole = count == rows || count == columns || left.is_empty();
        Ok(FittedIncrementalPCA {
            components: directions.select(Axis(0), &(0..count.min(directions.nrows())).collect::<Vec<_>>()),
            explained_variance: first(&variance),
            explained_variance_ratio: first(&ratio),
            singular_values: first(&singular),
            mean,
            var,
            noise_variance: if is_whole { 0.0 } else { left.iter().sum::<f64>() / left.len() as f64 },
            n_samples_seen: self.n_samples_seen + rows,
            whiten: self.whiten,
        })
    }

    /// The coordinates of samples (n, d) along the components, as an expression; (n, k). Floats keep their
    /// dtype.
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match coordinates(NAME, x, &self.mean, &self.components) {
            Ok(made) if self.whiten => in_dtype_of(x, made / tensor(&deviations(&self.explained_variance))),
            Ok(made) => made,
            Err(error) => Tensor::from(error),
        }
    }

    /// The samples (n, d) at these coordinates (n, k), as an expression: what the components left out stays
    /// lost.
    ///
    /// # Errors
    /// `ValueError` for another number of coordinates.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        let directions = if self.whiten {
            &self.components * &deviations(&self.explained_variance).insert_axis(Axis(1))
        } else {
            self.components.clone()
        };
        samples_at(NAME, x, &self.mean, &directions).unwrap_or_else(Tensor::from)
    }
}

saved!(FittedIncrementalPCA, NAME, |model| {
    let (components, features) = model.components.dim();
    0 < features
        && model.mean.len() == features
        && model.var.len() == features
        && model.explained_variance.len() == components
        && model.singular_values.len() == components
});

impl Transform for FittedIncrementalPCA {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedIncrementalPCA::transform(self, x)
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

impl fmt::Display for FittedIncrementalPCA {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, features) = self.components.dim();
        write!(f, "{NAME} of {features} features, {components} components, {} samples", self.n_samples_seen)?;
        show::line(f, "explained_variance_ratio", &self.explained_variance_ratio)?;
        show::rows(f, "components", &self.components.clone().into_dyn())
    }
}
