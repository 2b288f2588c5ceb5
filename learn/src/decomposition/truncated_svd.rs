//! Directions of the largest sums of squares.

use super::signs::flip;
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Training, in_dtype_of, refused, samples_for};
use crate::dense::tensor;
use crate::params::parameters;
use crate::passes::{ColumnSums, in_fixed_chunks};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, vector};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `TruncatedSVD`: the first singular vectors of samples, which are not shifted to their
/// means.
///
/// They are exact, by orthogonal factors of the samples (TSQR), where scikit-learn's default approximates
/// them at random: its results are those of `algorithm="arpack"`.
///
/// ```
/// use tharsis_learn::decomposition::TruncatedSVD;
/// use tharsis_numeric::array;
/// let x = array([3.0, 4.0, 6.0, 8.0]).reshape(&[2, 2]);
/// let model = TruncatedSVD::new().n_components(1).fit(&x, ..)?;
/// assert!((model.components[[0, 0]] - 0.6).abs() < 1e-12);
/// assert!((model.singular_values[0] - 125f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct TruncatedSVD {
    n_components: usize,
}

/// A fitted [`TruncatedSVD`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedTruncatedSVD {
    /// scikit-learn's `components_`: a direction a row; (k, d). The number of the largest absolute value in
    /// each is positive.
    pub components: Array2<f64>,
    /// scikit-learn's `explained_variance_`: the variances of the coordinates, with divisor n; (k,).
    pub explained_variance: Array1<f64>,
    /// scikit-learn's `explained_variance_ratio_`: the same in parts of all variance; (k,).
    pub explained_variance_ratio: Array1<f64>,
    /// scikit-learn's `singular_values_`, largest first; (k,).
    pub singular_values: Array1<f64>,
}

parameters!(TruncatedSVD, "TruncatedSVD", ["n_components" => n_components >= 1]);

impl Default for TruncatedSVD {
    fn default() -> TruncatedSVD {
        TruncatedSVD { n_components: 2 }
    }
}

impl TruncatedSVD {
    /// An estimator with scikit-learn's defaults: two components.
    ///
    /// ```
    /// use tharsis_learn::decomposition::TruncatedSVD;
    /// use tharsis_numeric::arange;
    /// let model = TruncatedSVD::new().fit(&arange(9).reshape(&[3, 3]), ..)?;
    /// assert_eq!(model.components.dim(), (2, 3));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> TruncatedSVD {
        TruncatedSVD::default()
    }

    /// scikit-learn's `n_components`: the number of components, at least one.
    ///
    /// ```
    /// use tharsis_learn::decomposition::TruncatedSVD;
    /// use tharsis_numeric::arange;
    /// let refused = TruncatedSVD::new().n_components(4).fit(&arange(9).reshape(&[3, 3]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("n_components(4) must be <= n_features(3)."));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn n_components(self, n_components: usize) -> TruncatedSVD {
        TruncatedSVD { n_components }
    }

    /// Fits the model on samples (n, d), of any real dtype. One pass makes the factors, one the variances.
    ///
    /// ```
    /// use tharsis_learn::decomposition::TruncatedSVD;
    /// use tharsis_numeric::eye;
    /// let model = TruncatedSVD::new().fit(&(eye(3, 3, 0) * 2.0), ..)?;
    /// assert!((model.singular_values[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a number of components that is out of range, samples of other than two axes, without
    /// rows or features, complex, NaN or infinite; `TypeError` for weights; errors of the passes.
    ///
    /// # Memory
    /// As [`Tensor::qr`]: samples many times more than features are never in memory as a whole.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedTruncatedSVD> {
        let kept = self.n_components;
        if kept == 0 {
            return Err(refused(
                "The 'n_components' parameter of TruncatedSVD must be an int in the range [1, inf). Got 0 \
                 instead.",
            ));
        }
        let training = Training::unsupervised("TruncatedSVD", x, &options.into())?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        for (limit, name) in [(columns, "n_features"), (rows, "n_samples")] {
            if limit < kept {
                return Err(refused(format!("n_components({kept}) must be <= {name}({limit}).")));
            }
        }
        let x = &training.x;
        let sums = ColumnSums::of_all(&training)?;
        let whole = sums.variance().sum();
        let (_, singular, directions) = x.qr_upper().svd();
        let states = training.engine.run(&[&singular, &directions])?;
        let [singular, directions] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let mut components = Array2::from_shape_fn((kept, columns), |(i, j)| directions[[i, j]]);
        flip(&mut components);
        let along = in_fixed_chunks(&x.matmul(&tensor(&components).t()), kept).var(0);
        let explained_variance = vector(training.engine.run(&[&along])?.pop().ok_or_else(lost)?)?;
        let singular_values = singular.iter().take(kept).copied().collect();
        let explained_variance_ratio = &explained_variance / whole;
        Ok(FittedTruncatedSVD { components, explained_variance, explained_variance_ratio, singular_values })
    }
}

impl FittedTruncatedSVD {
    /// The coordinates of samples (n, d) along the components, as an expression; (n, k), floats keep their
    /// dtype.
    ///
    /// ```
    /// use tharsis_learn::decomposition::TruncatedSVD;
    /// use tharsis_numeric::array;
    /// let x = array([3.0, 4.0, 6.0, 8.0]).reshape(&[2, 2]);
    /// let made = TruncatedSVD::new().n_components(1).fit(&x, ..)?.transform(&x);
    /// assert!(made.isclose(array([5.0, 10.0]).reshape(&[2, 1]), 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match samples_for("TruncatedSVD", x, self.components.ncols()) {
            Ok(samples) => {
                let made = samples.matmul(&tensor(&self.components).t());
                in_dtype_of(x, in_fixed_chunks(&made, self.components.nrows()))
            }
            Err(error) => Tensor::from(error),
        }
    }

    /// The samples (n, d) at these coordinates (n, k), as an expression: what the components left out stays
    /// lost.
    ///
    /// ```
    /// use tharsis_learn::decomposition::TruncatedSVD;
    /// use tharsis_numeric::array;
    /// let x = array([3.0, 4.0, 6.0, 8.0]).reshape(&[2, 2]);
    /// let model = TruncatedSVD::new().n_components(1).fit(&x, ..)?;
    /// let back = model.inverse_transform(&model.transform(&x));
    /// assert!(back.isclose(&x, 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of coordinates.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        match samples_for("TruncatedSVD", x, self.components.nrows()) {
            Ok(made) => in_dtype_of(x, made.matmul(&tensor(&self.components))),
            Err(error) => Tensor::from(error),
        }
    }
}

impl Estimator for TruncatedSVD {
    type Fitted = FittedTruncatedSVD;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedTruncatedSVD> {
        self.fit(x, options)
    }
}

saved!(FittedTruncatedSVD, "TruncatedSVD", |model| {
    let (count, features) = model.components.dim();
    let lengths = [&model.explained_variance, &model.explained_variance_ratio, &model.singular_values];
    0 < features && lengths.map(|array| array.len()).iter().all(|&length| length == count)
});

impl Transform for FittedTruncatedSVD {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedTruncatedSVD::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("TruncatedSVD", self.components.nrows()))
    }
}

impl fmt::Display for FittedTruncatedSVD {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, features) = self.components.dim();
        write!(f, "TruncatedSVD of {features} features, {components} components")?;
        show::line(f, "explained_variance_ratio", &self.explained_variance_ratio)?;
        show::line(f, "singular_values", &self.singular_values)
    }
}
