//! Features without which a model does as well, left out step by step.

use super::importance::{Magnitude, magnitudes};
use super::support::Support;
use crate::base::{ByClass, Estimator, FitOptions, Predict, Task, Transform};
use crate::bounds::check;
use crate::checks::Training;
use crate::dense::positions;
use crate::held::{inner, unknown};
use crate::model_selection::Share;
use crate::params::{Parameter, Params, Setting, field};
use crate::saved::{Save, decoded, encoded};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "RFE";

/// scikit-learn's `RFE`: fits a model, leaves out the features that count least, and fits again until few
/// features are left. Models are to have `coef` or `feature_importances`.
///
/// ```
/// use tharsis_learn::feature_selection::RFE;
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_numeric::array;
/// let x = array([1.0, 5.0, 2.0, 3.0, 3.0, 7.0, 4.0, 1.0]).reshape(&[4, 2]);
/// let model = RFE::new(LinearRegression::new()).fit(&x, &array([2.0, 4.0, 6.0, 8.0]), ..)?;
/// assert_eq!((model.support(), &model.ranking[..]), (&[true, false][..], &[1, 2][..]));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RFE<E> {
    estimator: E,
    n_features_to_select: Option<Share>,
    step: Share,
}

/// A fitted [`RFE`]. It predicts as the model of the features that are left.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FittedRFE<M> {
    /// scikit-learn's `ranking_`: 1 for features that are left, larger for those that went earlier; (d,).
    pub ranking: Vec<usize>,
    /// scikit-learn's `estimator_`: the model of the features that are left.
    pub model: M,
    support: Support,
}

impl<E> RFE<E> {
    /// Leaves out one feature after the other, until half of them are left.
    pub fn new(estimator: E) -> RFE<E> {
        RFE { estimator, n_features_to_select: None, step: Share::Count(1) }
    }

    /// scikit-learn's `n_features_to_select`: features that are left, as a number or a part; `None` is half.
    pub fn n_features_to_select(self, count: impl Into<Option<Share>>) -> RFE<E> {
        RFE { n_features_to_select: count.into(), ..self }
    }

    /// scikit-learn's `step`: features of a step, as a number or a part of all.
    pub fn step(self, step: Share) -> RFE<E> {
        RFE { step, ..self }
    }

    /// Features that are left of so many, and those of a step.
    #[track_caller]
    fn counts(&self, columns: usize) -> Result<(usize, usize)> {
        let of = |share: Share| match share {
            Share::Count(count) => count,
            Share::Fraction(part) => (part * columns as f64) as usize,
        };
        let shown = |share: Share| match share {
            Share::Count(count) => count.to_string(),
            Share::Fraction(part) => format!("{part:?}"),
        };
        let is_sound = |share: Share, most: bool| match share {
            Share::Count(count) => 0 < count,
            Share::Fraction(part) => 0.0 < part && (part < 1.0 || most && part == 1.0),
        };
        if let Some(count) = self.n_features_to_select {
            let wanted = "None, a float in the range (0.0, 1.0] or an int in the range [0, inf)";
            check(NAME, "n_features_to_select", is_sound(count, true), wanted, shown(count))?;
        }
        let wanted = "an int in the range [1, inf) or a float in the range (0.0, 1.0)";
        check(NAME, "step", is_sound(self.step, false), wanted, shown(self.step))?;
        Ok((self.n_features_to_select.map_or(columns / 2, of).max(1), of(self.step).max(1)))
    }
}

impl<E> RFE<E>
where
    E: Estimator,
    E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    /// Fits the models on samples (n, d) and their targets.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, and for models without coefficients or importances;
    /// errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedRFE<E::Fitted>> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl<E> Estimator for RFE<E>
where
    E: Estimator,
    E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    type Fitted = FittedRFE<E::Fitted>;

    fn takes_weights(&self) -> bool {
        self.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.estimator.takes_nan()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedRFE<E::Fitted>> {
        let training = Training::supervised(NAME, x, y, options)?;
        training.check_least(1, 2)?;
        let columns = training.columns;
        let (wanted, step) = self.counts(columns)?;
        let options = training.weighted_options();
        let (mut left, mut ranking): (Vec<usize>, _) = ((0..columns).collect(), vec![1; columns]);
        let fitted = |left: &[usize]| {
            let samples = if left.len() == columns {
                training.x.clone()
            } else {
                training.x.take_at(&positions(left), 1)
            };
            self.estimator.fit_any(&samples, Some(training.target()?), &options)
        };
        let mut model = fitted(&left)?;
        while wanted < left.len() {
            let scores = magnitudes(&model, left.len(), Magnitude::Squares)?;
            let mut order: Vec<usize> = (0..left.len()).collect();
            order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            let gone = &order[..step.min(left.len() - wanted)];
            left = (0..left.len()).filter(|at| !gone.contains(at)).map(|at| left[at]).collect();
            for (column, rank) in ranking.iter_mut().enumerate() {
                *rank += usize::from(!left.contains(&column));
            }
            model = fitted(&left)?;
        }
        let mask = (0..columns).map(|column| left.contains(&column)).collect();
        Ok(FittedRFE {
            ranking,
            model,
            support: Support { model: NAME, mask, takes_nan: self.estimator.takes_nan() },
        })
    }
}

impl<E: Params> Params for RFE<E> {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [
            ("n_features_to_select".to_owned(), self.n_features_to_select.setting()),
            ("step".to_owned(), self.step.setting()),
        ];
        own.into_iter().chain(inner("estimator", &self.estimator)).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if let Some(inner) = name.strip_prefix("estimator__") {
            return self.estimator.set(inner, value);
        }
        match name {
            "n_features_to_select" => self.n_features_to_select = field(NAME, name, value, 0)?,
            "step" => self.step = field(NAME, name, value, 1)?,
            _ => return Err(unknown(NAME, &["estimator", "n_features_to_select", "step", "verbose"], name)),
        }
        Ok(())
    }
}

impl<M> FittedRFE<M> {
    /// scikit-learn's `support_`: whether each feature is left; (d,).
    #[must_use]
    pub fn support(&self) -> &[bool] {
        &self.support.mask
    }

    /// scikit-learn's `n_features_`: the number of features that are left.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.support.chosen().len()
    }

    /// The features of samples that are left, as an expression: (n, d) to (n, k). Carries a `ValueError` for
    /// another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.support.transform(x)
    }

    /// Samples with zeros in the place of features that were left out: (n, k) to (n, d).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.support.inverse_transform(x)
    }
}

impl<M: Predict> FittedRFE<M> {
    /// The predictions of the model for samples (n, d), as an expression.
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.model.predict(&self.transform(x))
    }

    /// The probabilities of classes by the model, as an expression; none if it tells none.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Option<Tensor> {
        self.model.probabilities(&self.transform(x)).map(|(_, chances)| chances)
    }

    /// The decisions of the model, as an expression; none if it tells none.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Option<Tensor> {
        self.model.decisions(&self.transform(x)).map(|(_, decisions)| decisions)
    }

    /// The score of the model on samples (n, d) and their targets.
    ///
    /// # Errors
    /// Those of the model's score.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl<M: Predict> Predict for FittedRFE<M> {
    const TASK: Task = M::TASK;

    fn name(&self) -> &'static str {
        NAME
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedRFE::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        self.model.class_labels()
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.model.probabilities(&self.transform(x))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.model.decisions(&self.transform(x))
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.model.score_any(&self.transform(x), y, options)
    }
}

impl<M> Transform for FittedRFE<M> {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedRFE::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    /// A step of a pipeline needs its choice of features, and no model.
    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.support.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.support.names(names)
    }
}

impl<M: Save> Save for FittedRFE<M> {
    const KIND: &'static str = NAME;

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let (kind, body) = self.model.kind_and_body()?;
        encoded(&(&self.ranking, &self.support, kind, body))
    }

    fn of_body(body: &[u8]) -> Option<FittedRFE<M>> {
        let (ranking, support, kind, body): (Vec<usize>, Support, String, Vec<u8>) = decoded(body)?;
        let is_sound = ranking.len() == support.mask.len() && support.is_sound(&[]);
        let model = M::of_kind(&kind, &body)?;
        is_sound.then_some(FittedRFE { ranking, model, support })
    }
}

impl<M> fmt::Display for FittedRFE<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}: {} of {} features", self.n_features(), self.ranking.len())?;
        write!(f, "\n  ranking: {:?}", self.ranking)
    }
}
