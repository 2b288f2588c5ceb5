//! Weights of features in a model, as selectors compare them.

use crate::base::Predict;
use crate::checks::refused;
use crate::ensemble::{FittedAdaBoostClassifier, FittedAdaBoostRegressor, tree_importances};
use crate::held::{Classifies, FittedAny, HeldModel, Importances, Regresses};
use crate::linear_model::{
    FittedARDRegression, FittedBayesianRidge, FittedElasticNet, FittedElasticNetCV, FittedGeneralized,
    FittedHuberRegressor, FittedLars, FittedLassoLarsCV, FittedLassoLarsIC, FittedLinearRegression,
    FittedLogisticRegression, FittedOrthogonalMatchingPursuit, FittedOrthogonalMatchingPursuitCV,
    FittedRidge, FittedRidgeCV, FittedRidgeClassifier, FittedRidgeClassifierCV, FittedStochasticClassifier,
    FittedStochasticRegressor,
};
use crate::saved::Save;
use crate::svm::{FittedLinearSVC, FittedLinearSVR};
use ndarray::{ArrayD, Axis};
use std::any::Any;
use std::fmt;
use tharsis_numeric::Result;

/// One number of those that a model has of a feature.
#[derive(Clone, Copy, Debug)]
pub(super) enum Magnitude {
    /// The sum of their squares.
    Squares,
    /// The norm of this order.
    Norm(f64),
}

impl Magnitude {
    fn of(self, numbers: impl Iterator<Item = f64>) -> f64 {
        match self {
            Magnitude::Squares => numbers.map(|number| number * number).sum(),
            Magnitude::Norm(order) if order == f64::INFINITY => {
                numbers.fold(0.0, |most, number| most.max(number.abs()))
            }
            Magnitude::Norm(order) if order == f64::NEG_INFINITY => {
                numbers.fold(f64::INFINITY, |least, number| least.min(number.abs()))
            }
            Magnitude::Norm(1.0) => numbers.map(f64::abs).sum(),
            Magnitude::Norm(order) => {
                numbers.map(|number| number.abs().powf(order)).sum::<f64>().powf(1.0 / order)
            }
        }
    }
}

/// The coefficients of the first type that the model has.
macro_rules! coefficients {
    ($model:expr, [$($type:ty),* $(,)?]) => {
        $(if let Some(model) = $model.downcast_ref::<$type>() {
            return Some(Importances::Coefficients(model.coef.clone().into_dyn()));
        })*
    };
}

/// Those of a model; none if its type has none.
fn known(model: &dyn Any) -> Option<Importances> {
    if let Some(held) = model.downcast_ref::<FittedAny<Classifies>>() {
        return importances(held.held());
    }
    if let Some(held) = model.downcast_ref::<FittedAny<Regresses>>() {
        return importances(held.held());
    }
    coefficients!(
        model,
        [
            FittedARDRegression,
            FittedBayesianRidge,
            FittedElasticNet,
            FittedElasticNetCV,
            FittedGeneralized,
            FittedHuberRegressor,
            FittedLars,
            FittedLassoLarsCV,
            FittedLassoLarsIC,
            FittedLinearRegression,
            FittedLinearSVC,
            FittedLinearSVR,
            FittedLogisticRegression,
            FittedOrthogonalMatchingPursuit,
            FittedOrthogonalMatchingPursuitCV,
            FittedRidge,
            FittedRidgeCV,
            FittedRidgeClassifier,
            FittedRidgeClassifierCV,
            FittedStochasticClassifier,
            FittedStochasticRegressor,
        ]
    );
    if let Some(importances) = tree_importances(model) {
        return Some(Importances::Trees(importances.into_dyn()));
    }
    let boosted = model.downcast_ref().map(FittedAdaBoostClassifier::feature_importances);
    let boosted = boosted.or_else(|| model.downcast_ref().map(FittedAdaBoostRegressor::feature_importances));
    Some(Importances::Trees(boosted??.into_dyn()))
}

/// Those that a model tells itself, or that its type has.
fn importances(model: &dyn HeldModel) -> Option<Importances> {
    model.importances().or_else(|| known(model.as_any()))
}

/// The magnitudes of a model's features, so many.
///
/// # Errors
/// `ValueError` in scikit-learn's words if the model has no coefficients and no importances.
#[track_caller]
pub(super) fn magnitudes<M>(model: &M, features: usize, magnitude: Magnitude) -> Result<Vec<f64>>
where
    M: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    let name = HeldModel::name(model);
    let Some(found) = importances(model) else {
        return Err(refused(format!(
            "when `importance_getter=='auto'`, the underlying estimator {name} should have `coef_` or \
             `feature_importances_` attribute. Either pass a fitted estimator to feature selector or call fit \
             before calling transform."
        )));
    };
    let numbers: ArrayD<f64> = match found {
        Importances::Coefficients(numbers) | Importances::Trees(numbers) => numbers,
    };
    if numbers.shape().last() != Some(&features) {
        return Err(refused(format!("{name} has numbers of other features than those of its fit")));
    }
    if numbers.ndim() == 1 {
        let one = |number: &f64| match magnitude {
            Magnitude::Squares => number * number,
            Magnitude::Norm(_) => number.abs(),
        };
        return Ok(numbers.iter().map(one).collect());
    }
    let last = Axis(numbers.ndim() - 1);
    Ok(numbers.axis_iter(last).map(|of| magnitude.of(of.iter().copied())).collect())
}
