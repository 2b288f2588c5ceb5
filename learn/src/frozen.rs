//! scikit-learn's `frozen`: models that stay as they are.

use crate::Result;
use crate::base::{Estimator, FitOptions};
use crate::params::{Params, Setting};
use tharsis_numeric::Tensor;

/// scikit-learn's `FrozenEstimator`: a fit of it is the model that it was made of. So what holds an estimator
/// takes one that is fitted: the prefitted ones of selectors, stacks and calibrations.
///
/// ```
/// use tharsis_learn::calibration::CalibratedClassifierCV;
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::frozen::FrozenEstimator;
/// use tharsis_learn::naive_bayes::GaussianNB;
/// let iris = load_iris()?;
/// let bayes = GaussianNB::new().fit(&iris.data, &iris.target, ..)?;
/// let calibrated = CalibratedClassifierCV::new().estimator(FrozenEstimator::new(bayes));
/// // One curve for each class, of the only model.
/// assert_eq!(calibrated.fit(&iris.data, &iris.target, ..)?.estimators().count(), 1);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct FrozenEstimator<M> {
    model: M,
}

impl<M> FrozenEstimator<M> {
    /// An estimator that is this model.
    pub fn new(model: M) -> FrozenEstimator<M> {
        FrozenEstimator { model }
    }
}

impl<M: Clone> Estimator for FrozenEstimator<M> {
    type Fitted = M;

    fn is_frozen(&self) -> bool {
        true
    }

    /// The model; nothing is read.
    fn fit_any(&self, _: &Tensor, _: Option<&Tensor>, _: &FitOptions) -> Result<M> {
        Ok(self.model.clone())
    }
}

/// No parameters: those of the fit of the model have had their effect.
impl<M> Params for FrozenEstimator<M> {
    fn estimator(&self) -> &'static str {
        "FrozenEstimator"
    }

    fn params(&self) -> Vec<(String, Setting)> {
        Vec::new()
    }

    #[track_caller]
    fn set(&mut self, name: &str, _: &Setting) -> Result<()> {
        Err(crate::held::unknown("FrozenEstimator", &["estimator"], name))
    }
}
