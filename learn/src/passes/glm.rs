//! The loss of a linear model, and its slope, by one plan.

use crate::checks::{Nan, Training};
use crate::dense::tensor;
use crate::labels::log_sum_exp;
use crate::passes::chunks::{in_fixed_chunks, piece_rows};
use crate::passes::functions::{Of, RowFunction};
use crate::passes::moments::far_middles;
use crate::passes::rows::RowPass;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis, arr1};
use std::sync::Arc;
use tharsis_numeric::{Axes, Error, Result, Tensor, where_};

/// The function that makes probabilities or means of scores, with the loss that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Link {
    /// The score is the logarithm of a mean. Half the deviance of the distribution whose variance is
    /// proportional to this power of its mean, up to what scores do not change.
    Log(f64),
    /// One score for two classes.
    Logistic,
    /// A score for each class.
    Softmax,
    /// The square of what is missing to a score of 1 on the side of each target, -1 or 1.
    SquaredHinge,
    /// The square of the distance from the target beyond this one.
    SquaredTube(f64),
}

/// The pass of a fit: everything but the parameters.
pub(crate) struct LinearPass<'a> {
    training: &'a Training,
    /// The samples; (n, d).
    x: Tensor,
    /// Whether each sample is of the class of each score, or its target; (n, k).
    targets: Tensor,
    link: Link,
}

/// The loss at some parameters.
pub(crate) struct Loss {
    /// The weighted sum of the losses of samples.
    pub(crate) sum: f64,
    /// Its slope by the coefficients; (k, d).
    pub(crate) coef: Array2<f64>,
    /// Its slope by the intercepts; (k,).
    pub(crate) intercept: Array1<f64>,
}

impl<'a> LinearPass<'a> {
    pub(crate) fn new(training: &'a Training, targets: Tensor, link: Link) -> LinearPass<'a> {
        LinearPass { training, x: training.x.clone(), targets, link }
    }

    /// The middles of the features that are far from zero beside their spread; see [`far_middles`].
    ///
    /// # Errors
    /// Errors of the pass.
    #[track_caller]
    pub(crate) fn far_middles(&self) -> Result<Option<Array1<f64>>> {
        far_middles(self.training)
    }

    /// The same pass over the samples around this place (d,).
    #[track_caller]
    pub(crate) fn around(&self, middle: &Array1<f64>) -> LinearPass<'a> {
        let x = &self.training.x - tensor(middle);
        LinearPass { training: self.training, x, targets: self.targets.clone(), link: self.link }
    }

    /// The error of a loss or a slope that is not finite, of samples that are.
    #[track_caller]
    pub(crate) fn beyond_float64(&self) -> Error {
        self.training.beyond_float64()
    }

    /// The loss at these coefficients (k, d) and intercepts (k,); not finite beyond float64.
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; errors of the pass.
    #[track_caller]
    pub(crate) fn at(&self, coef: &Array2<f64>, intercept: &Array1<f64>) -> Result<Loss> {
        let states = match self.link {
            Link::Logistic => vec![self.logistic(coef, intercept)],
            Link::Log(power) => self.by_products(coef, intercept, |scores| self.deviance(scores, power)),
            Link::Softmax => self.by_products(coef, intercept, |scores| self.softmax(scores)),
            Link::SquaredHinge => self.by_products(coef, intercept, |scores| self.squared_hinge(scores)),
            Link::SquaredTube(epsilon) => {
                self.by_products(coef, intercept, |scores| self.squared_tube(scores, epsilon))
            }
        };
        let states = self.training.engine.run(&states.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            self.training.explain_not_finite(Nan::Refused)?;
        }
        if let [state] = &states[..] {
            let state = vector(state.clone())?;
            let (first, by_coef) = state.view().split_at(Axis(0), 2);
            let coef = by_coef.insert_axis(Axis(0)).to_owned();
            return Ok(Loss { sum: first[0], coef, intercept: arr1(&[first[1]]) });
        }
        let [sum, by_coef, by_intercept] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        Ok(Loss { sum: sum.sum(), coef: matrix(by_coef)?, intercept: vector(by_intercept)? })
    }

    /// The loss of one score for two classes with its slopes, by a function of rows: the sum, the slope by
    /// the intercept, those by the coefficients.
    #[track_caller]
    fn logistic(&self, coef: &Array2<f64>, intercept: &Array1<f64>) -> Tensor {
        let (columns, weight) = (coef.ncols(), self.training.weight.as_ref());
        let rows = piece_rows((self.training.rows, columns), columns);
        let held = rows * (columns + 2);
        let function = RowFunction { of: Of::Logistic { weighted: weight.is_some() }, held };
        let (coef, intercept) = (tensor(coef), tensor(intercept).expand_dims(0));
        let inputs = [&self.x, &self.targets].into_iter().chain(weight).chain([&coef, &intercept]);
        let pass = RowPass { function: Arc::new(function), rows, whole: 2 };
        pass.state(&inputs.collect::<Vec<_>>(), 2 + columns, Arc::new(RowFunction::ADD))
    }

    /// The sum of losses and their slopes by the coefficients and by the intercepts: of what a function makes
    /// of scores (n, k), losses (n, 1) or (n, k) and their slopes by the scores (n, k).
    #[track_caller]
    fn by_products(
        &self,
        coef: &Array2<f64>,
        intercept: &Array1<f64>,
        compare: impl FnOnce(&Tensor) -> (Tensor, Tensor),
    ) -> Vec<Tensor> {
        let x = &self.x;
        let scores = in_fixed_chunks(&(x.matmul(&tensor(coef).t()) + tensor(intercept)), coef.nrows());
        let (losses, slopes) = compare(&scores);
        let (losses, slopes) = match &self.training.weight {
            None => (losses, slopes),
            Some(weight) => {
                // Samples without weight may lie where a loss is infinite.
                let (weight, is_none) = (weight.expand_dims(1), weight.expand_dims(1).equal(0.0));
                let weighted = |parts: Tensor| where_(&is_none, 0.0, parts * &weight);
                (weighted(losses), weighted(slopes))
            }
        };
        vec![losses.sum(..), slopes.t().matmul(x), slopes.sum(0)]
    }

    /// The losses and their slopes by the logarithm of the mean; (n, 1) each.
    fn deviance(&self, scores: &Tensor, power: f64) -> (Tensor, Tensor) {
        let y = &self.targets;
        // The mean to a power that is zero has its logarithm as antiderivative.
        let to = |power: f64| if power == 0.0 { None } else { Some((scores * power).exp()) };
        let (own, other) = (to(2.0 - power), to(1.0 - power));
        let of_mean = own.as_ref().map_or_else(|| scores.clone(), |own| own / (2.0 - power));
        let of_target = other.as_ref().map_or_else(|| scores * y, |other| y * other / (1.0 - power));
        let slope =
            own.unwrap_or_else(|| Tensor::number(1.0)) - other.map_or_else(|| y.clone(), |other| y * other);
        (of_mean - of_target, slope)
    }

    /// The losses of scores on the sides of their targets and their slopes by the scores; (n, k) each.
    fn squared_hinge(&self, scores: &Tensor) -> (Tensor, Tensor) {
        let missing = (1.0 - scores * &self.targets).maximum(0.0);
        (missing.square(), missing * &self.targets * -2.0)
    }

    /// The losses of distances beyond `epsilon` and their slopes by the scores; (n, k) each.
    fn squared_tube(&self, scores: &Tensor, epsilon: f64) -> (Tensor, Tensor) {
        let apart = scores - &self.targets;
        let beyond = (apart.abs() - epsilon).maximum(0.0);
        (beyond.square(), beyond * apart.sign() * 2.0)
    }

    /// The losses (n, 1) and their slopes by the scores (n, k).
    fn softmax(&self, scores: &Tensor) -> (Tensor, Tensor) {
        let normal = log_sum_exp(scores);
        let own = (scores * &self.targets).sum(Axes::from(1).keepdims());
        let chances = (scores - &normal).exp();
        (normal - own, chances - &self.targets)
    }
}
