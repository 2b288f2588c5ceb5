//! Features around their medians, in units of the distance of two quantiles.

use super::affine::Affine;
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, refused};
use crate::params::parameters;
use crate::preprocessing::without_zeros;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::f64::consts::SQRT_2;
use std::fmt;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{Result, Tensor, special};

/// scikit-learn's `RobustScaler`: takes the median off each feature, and divides it by the distance of two
/// quantiles. Outliers have no part in either.
///
/// NaN counts as missing: it is left out of quantiles, and stays in what is transformed.
///
/// ```
/// use tharsis_learn::preprocessing::RobustScaler;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 3.0, 1e9]).reshape(&[5, 1]);
/// let model = RobustScaler::new().fit(&x, ..)?;
/// assert_eq!((model.center[0], model.scale[0]), (2.0, 2.0));
/// assert_eq!(model.transform(&x).to_vec::<f64>()?[..3], [-1.0, -0.5, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RobustScaler {
    with_centering: bool,
    with_scaling: bool,
    quantile_range: [f64; 2],
    unit_variance: bool,
}

/// A fitted [`RobustScaler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRobustScaler {
    /// scikit-learn's `center_`: the medians; (d,).
    pub center: Array1<f64>,
    /// scikit-learn's `scale_`: the distances of the quantiles, 1 where that is zero; (d,).
    pub scale: Array1<f64>,
    with_centering: bool,
    with_scaling: bool,
}

parameters!(
    RobustScaler,
    "RobustScaler",
    [
        "with_centering" => with_centering, "with_scaling" => with_scaling, "quantile_range" => quantile_range,
        "unit_variance" => unit_variance
    ]
);

impl Default for RobustScaler {
    fn default() -> RobustScaler {
        let quantile_range = [25.0, 75.0];
        RobustScaler { with_centering: true, with_scaling: true, quantile_range, unit_variance: false }
    }
}

impl RobustScaler {
    /// An estimator with scikit-learn's defaults: the quantiles are the quartiles.
    pub fn new() -> RobustScaler {
        RobustScaler::default()
    }

    /// scikit-learn's `with_centering`: whether the median is taken off.
    pub fn with_centering(self, with_centering: bool) -> RobustScaler {
        RobustScaler { with_centering, ..self }
    }

    /// scikit-learn's `with_scaling`: whether features are divided by the distance of the quantiles.
    pub fn with_scaling(self, with_scaling: bool) -> RobustScaler {
        RobustScaler { with_scaling, ..self }
    }

    /// scikit-learn's `quantile_range`: the two quantiles, in percent.
    pub fn quantile_range(self, low: f64, high: f64) -> RobustScaler {
        RobustScaler { quantile_range: [low, high], ..self }
    }

    /// scikit-learn's `unit_variance`: whether the distance is measured in that of a normal distribution of
    /// variance 1, so that normal features get that variance.
    pub fn unit_variance(self, unit_variance: bool) -> RobustScaler {
        RobustScaler { unit_variance, ..self }
    }

    /// Fits the scaler on samples (n, d), of any real dtype. One sort of each column, by chunks.
    ///
    /// # Errors
    /// `ValueError` for quantiles that do not ascend from 0 to 100, samples of other than two axes, without
    /// rows or features, complex or infinite; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedRobustScaler> {
        self.fit_any(x, None, &options.into())
    }
}

/// The quantile of the normal distribution of variance 1.
#[track_caller]
pub(crate) fn normal_quantile(share: &Tensor) -> Tensor {
    special::erfcinv(&(share * 2.0)) * -SQRT_2
}

impl Estimator for RobustScaler {
    type Fitted = FittedRobustScaler;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedRobustScaler> {
        let [low, high] = self.quantile_range;
        let is_sound = 0.0 <= low && low <= high && high <= 100.0;
        if !is_sound {
            return Err(refused(format!("Invalid quantile range: ({low:?}, {high:?})")));
        }
        let training = Training::unsupervised("RobustScaler", x, options)?.without_weights()?;
        let shares = [low / 100.0, 0.5, high / 100.0];
        let quantiles = training.x.nanquantile(shares, 0, Method::Linear);
        let normal = normal_quantile(&Tensor::from_elements(&[2], &[shares[0], shares[2]]));
        let states = training.engine.run(&[&quantiles, &training.x.isinf().any(..), &normal])?;
        let [quantiles, infinite, normal] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        if infinite.sum() != 0.0 {
            training.explain_not_finite(Nan::Missing)?;
        }
        let quantiles = matrix(quantiles)?;
        let mut scale = (&quantiles.row(2) - &quantiles.row(0)).mapv(without_zeros);
        if scale.iter().any(|scale| scale.is_infinite()) {
            return Err(training.beyond_float64());
        }
        if self.unit_variance {
            // Of one quantile the distance is 0, and as in scikit-learn all samples become 0.
            scale /= normal[[1]] - normal[[0]];
        }
        let (with_centering, with_scaling) = (self.with_centering, self.with_scaling);
        let center = quantiles.row(1).to_owned();
        Ok(FittedRobustScaler { center, scale, with_centering, with_scaling })
    }
}

impl FittedRobustScaler {
    fn map(&self) -> Affine<'_> {
        Affine {
            model: "RobustScaler",
            columns: self.center.len(),
            offset: self.with_centering.then_some(&self.center),
            scale: self.with_scaling.then_some(&self.scale),
        }
    }

    /// Samples (n, d) around the medians in units of the scale; floats keep their dtype. Carries a
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.map().forward(x)
    }

    /// The samples that [`transform`](FittedRobustScaler::transform) maps to these.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.map().back(x)
    }
}

saved!(FittedRobustScaler, "RobustScaler", |model| {
    !model.center.is_empty() && model.center.len() == model.scale.len()
});

impl Transform for FittedRobustScaler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedRobustScaler::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.center.len())
    }
}

impl fmt::Display for FittedRobustScaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RobustScaler of {} features", self.center.len())?;
        show::line(f, "center", &self.center)?;
        show::line(f, "scale", &self.scale)
    }
}
