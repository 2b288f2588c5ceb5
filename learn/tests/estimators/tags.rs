//! Tags of estimators, beside those in the source of scikit-learn 1.9.1.

use tharsis_learn::base::Estimator;
use tharsis_learn::ensemble::{
    AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor, ExtraTreesClassifier,
    ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest,
    RandomForestClassifier, RandomForestRegressor,
};
use tharsis_learn::feature_selection::{
    RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector, VarianceThreshold,
};
use tharsis_learn::impute::{KNNImputer, MissingIndicator, SimpleImputer};
use tharsis_learn::linear_model::Ridge;
use tharsis_learn::neighbors::{KNeighborsRegressor, NearestCentroid};
use tharsis_learn::preprocessing::{
    Binarizer, HandleMissing, KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder,
    OrdinalEncoder, PolynomialFeatures, PowerTransformer, QuantileTransformer, RobustScaler,
    SplineTransformer, StandardScaler, TargetEncoder,
};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};

/// Estimators, and whether they take NaN.
macro_rules! tags {
    ($($estimator:expr),+ $(,)?) => { [$((stringify!($estimator), $estimator.takes_nan())),+] };
}

/// The tag `allow_nan`, as each `__sklearn_tags__` of 1.9.1 has it.
#[test]
fn nan_is_taken_by_those_whose_tag_says_so() {
    let taken = tags![
        BaggingClassifier::new(),
        BaggingRegressor::new(),
        DecisionTreeClassifier::new(),
        DecisionTreeRegressor::new(),
        ExtraTreesClassifier::new(),
        ExtraTreesRegressor::new(),
        HistGradientBoostingClassifier::new(),
        HistGradientBoostingRegressor::new(),
        IsolationForest::new(),
        KNNImputer::new(),
        MaxAbsScaler::new(),
        MinMaxScaler::new(),
        MissingIndicator::new(),
        OneHotEncoder::new(),
        OrdinalEncoder::new(),
        PowerTransformer::new(),
        QuantileTransformer::new(),
        RFE::new(DecisionTreeRegressor::new()),
        RandomForestClassifier::new(),
        RandomForestRegressor::new(),
        RobustScaler::new(),
        SelectFromModel::new(DecisionTreeRegressor::new()),
        SequentialFeatureSelector::new(DecisionTreeRegressor::new()),
        SimpleImputer::new(),
        SplineTransformer::new().handle_missing(HandleMissing::Zeros),
        StandardScaler::new(),
        TargetEncoder::new(),
        VarianceThreshold::new(),
    ];
    let refused = tags![
        AdaBoostClassifier::new(),
        AdaBoostRegressor::new(),
        BaggingRegressor::new().estimator(Ridge::new()),
        Binarizer::new(),
        KBinsDiscretizer::new(),
        KNNImputer::new().missing_values(-1.0),
        KNeighborsRegressor::new(),
        MissingIndicator::new().missing_values(-1.0),
        NearestCentroid::new(),
        Normalizer::new(),
        PolynomialFeatures::new(),
        RFE::new(Ridge::new()),
        Ridge::new(),
        SelectFromModel::new(Ridge::new()),
        SelectKBest::new(),
        SequentialFeatureSelector::new(Ridge::new()),
        SimpleImputer::new().missing_values(-1.0),
        SplineTransformer::new(),
    ];
    let wrong = |tags: &[(&str, bool)], expected: bool| -> Vec<String> {
        tags.iter().filter(|(_, takes)| *takes != expected).map(|(name, _)| (*name).to_owned()).collect()
    };
    assert_eq!([wrong(&taken, true), wrong(&refused, false)].concat(), Vec::<String>::new());
}
