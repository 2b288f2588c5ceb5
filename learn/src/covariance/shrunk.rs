//! Covariances with a part of the identity: a given part, or the one that makes the error least.

use super::fitted::{Empirical, FittedCovariance};
use crate::base::{Estimator, FitOptions};
use crate::bounds::check;
use crate::checks::Training;
use crate::dense::tensor;
use crate::params::parameters;
use crate::states::lost;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `ShrunkCovariance`: the covariance with a given part of the identity.
///
/// ```
/// use tharsis_learn::covariance::ShrunkCovariance;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.0, 2.0, 4.0]).reshape(&[2, 2]);
/// let model = ShrunkCovariance::new().shrinkage(0.5).fit(&x, ..)?;
/// assert_eq!((model.covariance[[0, 0]], model.covariance[[0, 1]]), (1.75, 1.0));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct ShrunkCovariance {
    assume_centered: bool,
    shrinkage: f64,
}

parameters!(
    ShrunkCovariance,
    "ShrunkCovariance",
    ["assume_centered" => assume_centered, "shrinkage" => shrinkage]
);

impl Default for ShrunkCovariance {
    fn default() -> ShrunkCovariance {
        ShrunkCovariance { assume_centered: false, shrinkage: 0.1 }
    }
}

impl ShrunkCovariance {
    /// An estimator with scikit-learn's defaults: a tenth of the identity.
    pub fn new() -> ShrunkCovariance {
        ShrunkCovariance::default()
    }

    /// scikit-learn's `assume_centered`: whether products are taken around zero.
    pub fn assume_centered(self, assume_centered: bool) -> ShrunkCovariance {
        ShrunkCovariance { assume_centered, ..self }
    }

    /// scikit-learn's `shrinkage`: the part of the identity, from 0 to 1.
    pub fn shrinkage(self, shrinkage: f64) -> ShrunkCovariance {
        ShrunkCovariance { shrinkage, ..self }
    }

    /// Fits the covariance of samples (n, d), of any real dtype. One pass, rarely two.
    ///
    /// # Errors
    /// `ValueError` for a shrinkage that is not from 0 to 1, and as
    /// [`EmpiricalCovariance`](super::EmpiricalCovariance); errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedCovariance> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for ShrunkCovariance {
    type Fitted = FittedCovariance;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedCovariance> {
        let is_sound = (0.0..=1.0).contains(&self.shrinkage);
        check("ShrunkCovariance", "shrinkage", is_sound, "a float in the range [0.0, 1.0]", self.shrinkage)?;
        let training = Training::unsupervised("ShrunkCovariance", x, options)?.without_weights()?;
        Empirical::of(&training, self.assume_centered)?.shrunk("ShrunkCovariance", self.shrinkage)
    }
}

/// scikit-learn's `LedoitWolf`: the covariance with the part of the identity that makes its expected squared
/// error least (Ledoit and Wolf, 2004).
///
/// ```
/// use tharsis_learn::covariance::LedoitWolf;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 7.5]).reshape(&[4, 2]);
/// let model = LedoitWolf::new().fit(&x, ..)?;
/// assert!(0.0 < model.shrinkage && model.shrinkage < 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct LedoitWolf {
    assume_centered: bool,
}

parameters!(LedoitWolf, "LedoitWolf", ["assume_centered" => assume_centered]);

impl LedoitWolf {
    /// An estimator with scikit-learn's defaults: around the means.
    pub fn new() -> LedoitWolf {
        LedoitWolf::default()
    }

    /// scikit-learn's `assume_centered`: whether products are taken around zero.
    pub fn assume_centered(self, assume_centered: bool) -> LedoitWolf {
        LedoitWolf { assume_centered }
    }

    /// Fits the covariance of samples (n, d), of any real dtype. Two passes, rarely three.
    ///
    /// # Errors
    /// As [`EmpiricalCovariance`](super::EmpiricalCovariance).
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedCovariance> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for LedoitWolf {
    type Fitted = FittedCovariance;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedCovariance> {
        let training = Training::unsupervised("LedoitWolf", x, options)?.without_weights()?;
        let empirical = Empirical::of(&training, self.assume_centered)?;
        if training.columns == 1 {
            return empirical.shrunk("LedoitWolf", 0.0);
        }
        // The sum of the products of all pairs of squares of a sample is the square of its squared length.
        let lengths = (&training.x - tensor(&empirical.location)).square().sum(1);
        let states = training.engine.run(&[&lengths.square().sum(..)])?;
        let fourth = states.first().ok_or_else(lost)?.sum();
        let (rows, columns) = (training.rows as f64, training.columns as f64);
        let squares = empirical.covariance.iter().map(|part| part * part).sum::<f64>();
        let trace = empirical.covariance.diag().sum();
        let (mean, noise) = (trace / columns, (fourth / rows - squares) / (columns * rows));
        let spread = (squares - 2.0 * mean * trace + columns * mean * mean) / columns;
        if !(spread.is_finite() && noise.is_finite()) {
            return Err(training.beyond_float64());
        }
        let noise = noise.min(spread);
        empirical.shrunk("LedoitWolf", if noise == 0.0 { 0.0 } else { noise / spread })
    }
}

/// scikit-learn's `OAS`: the covariance with the part of the identity that suits normal samples (Chen and
/// others, "Shrinkage Algorithms for MMSE Covariance Estimation", 2010).
///
/// ```
/// use tharsis_learn::covariance::OAS;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 7.5]).reshape(&[4, 2]);
/// let model = OAS::new().fit(&x, ..)?;
/// assert!(0.0 < model.shrinkage && model.shrinkage < 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct OAS {
    assume_centered: bool,
}

parameters!(OAS, "OAS", ["assume_centered" => assume_centered]);

impl OAS {
    /// An estimator with scikit-learn's defaults: around the means.
    pub fn new() -> OAS {
        OAS::default()
    }

    /// scikit-learn's `assume_centered`: whether products are taken around zero.
    pub fn assume_centered(self, assume_centered: bool) -> OAS {
        OAS { assume_centered }
    }

    /// Fits the covariance of samples (n, d), of any real dtype. One pass, rarely two.
    ///
    /// # Errors
    /// As [`EmpiricalCovariance`](super::EmpiricalCovariance).
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedCovariance> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for OAS {
    type Fitted = FittedCovariance;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedCovariance> {
        let training = Training::unsupervised("OAS", x, options)?.without_weights()?;
        let empirical = Empirical::of(&training, self.assume_centered)?;
        if training.columns == 1 {
            return empirical.shrunk("OAS", 0.0);
        }
        let (rows, columns) = (training.rows as f64, training.columns as f64);
        let squares = empirical.covariance.iter().map(|part| part * part).sum::<f64>() / (columns * columns);
        let mean = empirical.covariance.diag().sum() / columns;
        let (above, below) = (squares + mean * mean, (rows + 1.0) * (squares - mean * mean / columns));
        if !(above.is_finite() && below.is_finite()) {
            return Err(training.beyond_float64());
        }
        empirical.shrunk("OAS", if below == 0.0 { 1.0 } else { (above / below).min(1.0) })
    }
}
