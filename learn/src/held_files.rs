//! Files of models of any type: all types that tell classes or numbers, by their names.

use crate::base::{Predict, Task};
use crate::calibration::FittedCalibratedClassifierCV;
use crate::compose::FittedTransformedTargetRegressor;
use crate::discriminant_analysis::{FittedLinearDiscriminantAnalysis, FittedQuadraticDiscriminantAnalysis};
use crate::dummy::{FittedDummyClassifier, FittedDummyRegressor};
use crate::ensemble::{
    FittedAdaBoostClassifier, FittedAdaBoostRegressor, FittedBaggingClassifier, FittedBaggingRegressor,
    FittedExtraTreesClassifier, FittedExtraTreesRegressor, FittedHistGradientBoostingClassifier,
    FittedHistGradientBoostingRegressor, FittedRandomForestClassifier, FittedRandomForestRegressor,
    FittedStackingClassifier, FittedStackingRegressor, FittedVotingClassifier, FittedVotingRegressor,
};
use crate::feature_selection::FittedRFE;
use crate::held::{Classifies, FittedAny, HeldModel, Regresses, Tells};
use crate::isotonic::FittedIsotonicRegression;
use crate::linear_model::{
    FittedARDRegression, FittedBayesianRidge, FittedElasticNet, FittedElasticNetCV, FittedGeneralized,
    FittedHuberRegressor, FittedLars, FittedLassoLarsCV, FittedLassoLarsIC, FittedLinearRegression,
    FittedLogisticRegression, FittedLogisticRegressionCV, FittedOrthogonalMatchingPursuit,
    FittedOrthogonalMatchingPursuitCV, FittedRidge, FittedRidgeCV, FittedRidgeClassifier,
    FittedRidgeClassifierCV, FittedStochasticClassifier, FittedStochasticRegressor,
};
use crate::model_selection::{FittedHalving, FittedSearch};
use crate::multiclass::{FittedOneVsOneClassifier, FittedOneVsRestClassifier};
use crate::multioutput::{FittedMultiOutputClassifier, FittedMultiOutputRegressor};
use crate::naive_bayes::{
    FittedBernoulliNB, FittedCategoricalNB, FittedComplementNB, FittedGaussianNB, FittedMultinomialNB,
};
use crate::neighbors::{
    FittedKNeighborsClassifier, FittedKNeighborsRegressor, FittedNearestCentroid,
    FittedRadiusNeighborsClassifier, FittedRadiusNeighborsRegressor,
};
use crate::pipeline::FittedPipeline;
use crate::saved::{DEPTH_MAX, Deeper, Save, decoded, encoded, in_part};
use crate::svm::{FittedLinearSVC, FittedLinearSVR};
use crate::tree::{FittedDecisionTreeClassifier, FittedDecisionTreeRegressor};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result};

/// A type of models that a saved one may hold.
type ReadModel = (&'static str, Task, Reader);

/// Makes a model of its numbers; none if they do not fit each other.
type Reader = fn(&[u8]) -> Option<Arc<dyn HeldModel>>;

/// Reads of types by their names in files.
macro_rules! known_models {
    ($($model:ty),* $(,)?) => {
        &[$((<$model as Save>::KIND, <$model as Predict>::TASK, |body| {
            Some(Arc::new(<$model as Save>::of_body(body)?))
        })),*]
    };
}

/// All of them.
const MODELS: &[&[ReadModel]] = &[LINEAR, OTHERS, HOLDING];

/// Lines, planes, and what is made by steps along them.
const LINEAR: &[ReadModel] = known_models![
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
    FittedLogisticRegressionCV,
    FittedOrthogonalMatchingPursuit,
    FittedOrthogonalMatchingPursuitCV,
    FittedRidge,
    FittedRidgeCV,
    FittedRidgeClassifier,
    FittedRidgeClassifierCV,
    FittedStochasticClassifier,
    FittedStochasticRegressor,
];

/// Distributions, neighbours and trees.
const OTHERS: &[ReadModel] = known_models![
    FittedBernoulliNB,
    FittedCategoricalNB,
    FittedComplementNB,
    FittedDecisionTreeClassifier,
    FittedDecisionTreeRegressor,
    FittedDummyClassifier,
    FittedDummyRegressor,
    FittedExtraTreesClassifier,
    FittedExtraTreesRegressor,
    FittedGaussianNB,
    FittedHistGradientBoostingClassifier,
    FittedHistGradientBoostingRegressor,
    FittedIsotonicRegression,
    FittedKNeighborsClassifier,
    FittedKNeighborsRegressor,
    FittedLinearDiscriminantAnalysis,
    FittedMultinomialNB,
    FittedNearestCentroid,
    FittedQuadraticDiscriminantAnalysis,
    FittedRadiusNeighborsClassifier,
    FittedRadiusNeighborsRegressor,
    FittedRandomForestClassifier,
    FittedRandomForestRegressor,
];

/// Models that hold others.
const HOLDING: &[ReadModel] = known_models![
    FittedAdaBoostClassifier,
    FittedAdaBoostRegressor,
    FittedBaggingClassifier,
    FittedBaggingRegressor,
    FittedCalibratedClassifierCV,
    FittedHalving<FittedAny<Classifies>>,
    FittedHalving<FittedAny<Regresses>>,
    FittedMultiOutputClassifier,
    FittedMultiOutputRegressor,
    FittedOneVsOneClassifier,
    FittedOneVsRestClassifier,
    FittedPipeline<FittedAny<Classifies>>,
    FittedPipeline<FittedAny<Regresses>>,
    FittedRFE<FittedAny<Classifies>>,
    FittedRFE<FittedAny<Regresses>>,
    FittedSearch<FittedAny<Classifies>>,
    FittedSearch<FittedAny<Regresses>>,
    FittedStackingClassifier,
    FittedStackingRegressor,
    FittedTransformedTargetRegressor,
    FittedVotingClassifier,
    FittedVotingRegressor,
];

/// The reader of a type of models.
fn reader<T: Tells>(kind: &str) -> Option<Reader> {
    let mut known = MODELS.iter().copied().flatten();
    known.find(|(known, task, _)| *known == kind && *task == T::TASK).map(|&(_, _, read)| read)
}

/// The name of the type of a model in another one, and its numbers.
///
/// # Errors
/// `NotImplemented` for what would not be read again: a type that is not known here, such as one of another
/// crate, and a model in too many others; errors of the model.
#[track_caller]
fn kind_and_body<T: Tells>(model: &FittedAny<T>) -> Result<(&'static str, Vec<u8>)> {
    let missing = |what: String| Error::here(GraphError::NotImplemented(what));
    let Some(_deeper) = Deeper::one() else {
        return Err(missing(format!("a file of a model in more than {DEPTH_MAX} others")));
    };
    let (kind, body) = model.held().saved()?;
    if reader::<T>(kind).is_none() {
        return Err(missing(format!("a file of a model of the type {kind} in another one")));
    }
    Ok((kind, body))
}

impl<T: Tells> Save for FittedAny<T> {
    const KIND: &'static str = "Any";

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        encoded(&kind_and_body(self)?)
    }

    fn of_body(body: &[u8]) -> Option<FittedAny<T>> {
        let (kind, body): (String, Vec<u8>) = decoded(body)?;
        FittedAny::of_kind(&kind, &body)
    }

    #[track_caller]
    fn kind_and_body(&self) -> Result<(&'static str, Vec<u8>)> {
        kind_and_body(self)
    }

    fn of_kind(kind: &str, body: &[u8]) -> Option<FittedAny<T>> {
        let _deeper = Deeper::one()?;
        Some(FittedAny::of(reader::<T>(kind)?(body)?))
    }
}

impl<T: Tells> Serialize for FittedAny<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        kind_and_body(self).map_err(in_part::<S::Error>)?.serialize(serializer)
    }
}

impl<'de, T: Tells> Deserialize<'de> for FittedAny<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<FittedAny<T>, D::Error> {
        let (kind, body) = <(String, Vec<u8>)>::deserialize(deserializer)?;
        FittedAny::of_kind(&kind, &body).ok_or_else(|| D::Error::custom("no such model"))
    }
}
