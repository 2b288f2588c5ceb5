//! Labels and distances of samples by centres of clusters.

use crate::base::FitOptions;
use crate::checks::{Training, in_dtype_of, samples_for};
use crate::dense::tensor;
use crate::passes::{Lloyd, relative_distances};
use ndarray::{Array1, Array2, Axis};
use tharsis_numeric::{Result, Tensor};

/// The nearest centre of each sample; (n, d) to (n,), int64. Carries a `ValueError` for another number of
/// features, and when run for NaN and infinity.
#[track_caller]
pub(super) fn nearest(model: &str, x: &Tensor, centers: &Array2<f64>) -> Tensor {
    match distances(model, x, centers) {
        Ok(distances) => distances.argmin(1),
        Err(error) => Tensor::from(error),
    }
}

/// The distance of each sample to each centre; (n, d) to (n, k). Carries a `ValueError` for another number of
/// features, and when run for NaN and infinity.
#[track_caller]
pub(super) fn between(model: &str, x: &Tensor, centers: &Array2<f64>) -> Tensor {
    match samples_for(model, x, centers.ncols()) {
        Ok(samples) => {
            let between = samples.expand_dims(1) - tensor(centers);
            in_dtype_of(x, between.square().sum(2).sqrt())
        }
        Err(error) => Tensor::from(error),
    }
}

/// The weighted sum of squared distances to the nearest centres.
///
/// # Errors
/// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
#[track_caller]
pub(super) fn inertia(
    model: &'static str,
    x: &Tensor,
    options: &FitOptions,
    centers: &Array2<f64>,
) -> Result<f64> {
    let training = Training::unsupervised(model, x, options)?;
    let shift = middle(centers);
    // Refuses another number of features.
    samples_for(model, &training.x, centers.ncols()).map(drop)?;
    Lloyd::new(&training, &shift).inertia(&(centers - &shift))
}

/// The squared distances to each centre, up to a summand of each sample; (n, d) to (n, k).
///
/// # Errors
/// `ValueError` for another number of features.
#[track_caller]
pub(super) fn distances(model: &str, x: &Tensor, centers: &Array2<f64>) -> Result<Tensor> {
    let shift = middle(centers);
    let around = samples_for(model, x, centers.ncols())? - tensor(&shift);
    Ok(relative_distances(&around, &(centers - &shift)))
}

/// The mean of the centres, around which products lose fewest digits.
fn middle(centers: &Array2<f64>) -> Array1<f64> {
    centers.sum_axis(Axis(0)) / centers.nrows() as f64
}

/// `Predict` and `Transform` of a model of clusters that has the methods itself.
macro_rules! clusters {
    ($fitted:ty, $name:expr) => {
        impl Transform for $fitted {
            #[track_caller]
            fn transform(&self, x: &Tensor) -> Tensor {
                <$fitted>::transform(self, x)
            }

            fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
                Some(self.kind_and_body())
            }

            fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
                Some($crate::feature_names::numbered($name, self.cluster_centers.nrows()))
            }
        }

        impl Predict for $fitted {
            const TASK: Task = Task::Unsupervised;

            fn name(&self) -> &'static str {
                $name
            }

            #[track_caller]
            fn predict(&self, x: &Tensor) -> Tensor {
                <$fitted>::predict(self, x)
            }

            /// The negative inertia; the target is not read.
            #[track_caller]
            fn score_any(&self, x: &Tensor, _: &Tensor, options: &FitOptions) -> Result<f64> {
                self.score(x, options)
            }
        }
    };
}
pub(super) use clusters;
