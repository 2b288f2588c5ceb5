//! Transformers of any type, as parts of estimators that hold several.

use crate::base::{Estimator, FitOptions, Transform};
use crate::params::Params;
use tharsis_numeric::{Result, Tensor};

/// A model that maps samples.
pub(crate) type Map = Box<dyn Transform + Send + Sync>;

/// A fitted transformer of any type. Its place in files is where all types are known.
pub(crate) struct FittedStep(pub(crate) Map);

/// The model of a step, and its samples for the next one.
pub(crate) type MadeStep = (Map, Tensor);

/// A transformer whose model can be any.
pub(crate) trait Step: Send + Sync {
    /// The model of samples and their targets, and those samples as it maps them.
    ///
    /// # Errors
    /// Those of the fit.
    fn fit_step(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<MadeStep>;

    fn params(&self) -> &dyn Params;

    fn params_mut(&mut self) -> &mut dyn Params;

    fn boxed(&self) -> Box<dyn Step>;
}

impl<E> Step for E
where
    E: Estimator + Params + Clone + Send + Sync + 'static,
    E::Fitted: Transform + Send + Sync + 'static,
{
    #[track_caller]
    fn fit_step(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<MadeStep> {
        if let Some(made) = self.fit_transform_any(x, y, options) {
            let (model, samples) = made?;
            return Ok((Box::new(model), samples));
        }
        let model = self.fit_any(x, y, options)?;
        let samples = model.transform(x);
        Ok((Box::new(model), samples))
    }

    fn params(&self) -> &dyn Params {
        self
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self
    }

    fn boxed(&self) -> Box<dyn Step> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Step> {
    fn clone(&self) -> Box<dyn Step> {
        (**self).boxed()
    }
}
