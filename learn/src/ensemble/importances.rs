//! Importances of features of models of trees.

use super::forest::{
    FittedExtraTreesClassifier, FittedExtraTreesRegressor, FittedRandomForestClassifier,
    FittedRandomForestRegressor,
};
use crate::tree::{FittedDecisionTreeClassifier, FittedDecisionTreeRegressor};
use ndarray::Array1;
use std::any::Any;

/// The importances of a model of trees; none of others. (d,).
pub(crate) fn tree_importances(model: &dyn Any) -> Option<Array1<f64>> {
    macro_rules! first {
        ($($type:ty),* $(,)?) => {
            $(if let Some(model) = model.downcast_ref::<$type>() {
                return Some(model.feature_importances.clone());
            })*
        };
    }
    first!(
        FittedDecisionTreeClassifier,
        FittedDecisionTreeRegressor,
        FittedExtraTreesClassifier,
        FittedExtraTreesRegressor,
        FittedRandomForestClassifier,
        FittedRandomForestRegressor,
    );
    None
}
