//! Models that measure others, and classes by centres and by categories, against recorded answers of
//! scikit-learn, each for several ways to cut the samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, ArrayD, Axis};
use tharsis_learn::FitOptions;
use tharsis_learn::dummy::{ClassStrategy, DummyClassifier, DummyRegressor, TargetStrategy};
use tharsis_learn::naive_bayes::{CategoricalNB, ComplementNB};
use tharsis_learn::neighbors::{CentroidMetric, CentroidPriors, NearestCentroid};
use tharsis_numeric::{Tensor, arange, array, ones, zeros};

/// Tolerance where an answer is a formula of sums.
const EXACT: f64 = 1e-9;

fn numbers(classes: &[i64]) -> ArrayD<f64> {
    classes.iter().map(|&class| class as f64).collect::<Array1<f64>>().into_dyn()
}

#[test]
fn dummy_classifier() {
    each("DummyClassifier", |case, x| {
        let estimator = match case.text("strategy") {
            Some("most_frequent") => DummyClassifier::new().strategy(ClassStrategy::MostFrequent),
            Some("constant") => DummyClassifier::new().strategy(ClassStrategy::Constant).constant(3),
            _ => DummyClassifier::new(),
        };
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        case.attribute("class_prior", model.class_prior.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        let logs = model.predict_log_proba(x);
        if case.text("strategy").is_none() {
            case.method("predict_log_proba", &logs, EXACT);
        } else {
            // The logarithm of zero is recorded as such, and JSON has no infinity.
            assert!(logs.to_vec::<f64>().unwrap().iter().all(|log| [0.0, f64::NEG_INFINITY].contains(log)));
        }
        case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
    });
}

#[test]
fn classes_are_drawn_by_their_shares_or_alike() {
    let (rows, x) = (20_000, zeros(&[20_000, 1]));
    // A quarter, none and three quarters of the weight.
    let y = arange(rows) % 4;
    let weights = array([1.0, 0.0, 3.0, 0.0]).take_at(&y, 0);
    let options = FitOptions::new().sample_weight(&weights);
    let strategies =
        [(ClassStrategy::Stratified, [0.25, 0.0, 0.75, 0.0]), (ClassStrategy::Uniform, [0.25; 4])];
    for (strategy, shares) in strategies {
        let estimator = DummyClassifier::new().strategy(strategy);
        let model = estimator.clone().random_state(3).fit(&x, &y, &options).unwrap();
        let drawn = model.predict(&x).to_vec::<i64>().unwrap();
        for (class, share) in shares.iter().enumerate() {
            let count = drawn.iter().filter(|found| **found == class as i64).count() as f64;
            let deviation = (rows as f64 * share * (1.0 - share)).sqrt();
            assert!(
                (count - rows as f64 * share).abs() <= 5.0 * deviation,
                "{strategy:?}: {count} of {class}"
            );
        }
        // The same seed draws the same, also for fewer rows; another one does not.
        assert_eq!(model.predict(&zeros(&[50, 3])).to_vec::<i64>().unwrap(), drawn[..50]);
        let other = estimator.random_state(4).fit(&x, &y, &options).unwrap();
        assert_ne!(other.predict(&x).to_vec::<i64>().unwrap(), drawn);
        let chances = model.predict_proba(&x);
        if strategy == ClassStrategy::Stratified {
            // The class that is drawn has the chance 1.
            assert_eq!(chances.argmax(1).to_vec::<i64>().unwrap(), drawn);
            assert_eq!(chances.max(1).min(..).item().unwrap().to_f64(), 1.0);
        } else {
            assert!(chances.to_vec::<f64>().unwrap().iter().all(|chance| *chance == 0.25));
        }
    }
}

#[test]
fn dummy_regressor() {
    each("DummyRegressor", |case, x| {
        let estimator = match case.text("strategy") {
            Some("median") => DummyRegressor::new().strategy(TargetStrategy::Median),
            Some("quantile") => DummyRegressor::new()
                .strategy(TargetStrategy::Quantile)
                .quantile(case.number("quantile").unwrap()),
            Some("constant") => {
                let constant = case.numbers("constant").unwrap();
                DummyRegressor::new().strategy(TargetStrategy::Constant).constant(&constant[..])
            }
            _ => DummyRegressor::new(),
        };
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        case.attribute("constant", model.constant.clone().insert_axis(Axis(0)).into_dyn(), EXACT);
        case.method("predict", &model.predict(x), EXACT);
        case.score(model.score(x, &case.y(), case.options()).unwrap(), EXACT);
    });
}

/// Of weights that are cut between two samples scikit-learn takes the lower one.
#[test]
fn quantiles_of_weights_are_those_of_scikit_learn() {
    let x = zeros(&[4, 1]);
    let cases: [([f64; 4], f64, f64); 7] = [
        ([1.0, 1.0, 1.0, 1.0], 0.5, 2.0),
        ([1.0, 1.0, 1.0, 1.0], 0.25, 1.0),
        ([0.0, 1.0, 1.0, 0.0], 0.0, 2.0),
        ([0.0, 1.0, 1.0, 0.0], 1.0, 3.0),
        ([0.0, 1.0, 0.0, 1.0], 0.5, 2.0),
        ([0.1, 0.1, 0.1, 0.1], 0.5, 2.0),
        ([0.1, 0.2, 0.3, 0.6], 0.5, 3.0),
    ];
    for (weights, quantile, expected) in cases {
        let options = FitOptions::new().sample_weight(&array(weights));
        let estimator = DummyRegressor::new().strategy(TargetStrategy::Quantile).quantile(quantile);
        let model = estimator.fit(&x, &array([1.0, 2.0, 3.0, 4.0]), options).unwrap();
        assert_eq!(model.constant[0], expected, "{weights:?}, {quantile}");
    }
}

fn centroid(case: &Case<'_>) -> NearestCentroid {
    let mut estimator = NearestCentroid::new();
    if case.text("metric").is_some() {
        estimator = estimator.metric(CentroidMetric::Manhattan);
    }
    if let Some(threshold) = case.number("shrink_threshold") {
        estimator = estimator.shrink_threshold(threshold);
    }
    match case.numbers("priors") {
        Some(given) => estimator.priors(&given[..]),
        None if case.text("priors").is_some() => estimator.priors(CentroidPriors::Empirical),
        None => estimator,
    }
}

#[test]
fn nearest_centroid() {
    each("NearestCentroid", |case, x| {
        let model = centroid(case).fit(x, &case.labels(), ..).unwrap();
        case.attribute("centroids", model.centroids.clone().into_dyn(), EXACT);
        case.attribute("class_prior", model.class_prior.clone().into_dyn(), EXACT);
        case.attribute("classes", numbers(&model.classes), 0.0);
        case.attribute("within_class_std_dev", model.within_class_std_dev.clone().into_dyn(), EXACT);
        case.attribute("deviations", model.deviations.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        if case.text("metric").is_none() {
            case.method("decision_function", &model.decision_function(x), EXACT);
            case.method("predict_proba", &model.predict_proba(x), EXACT);
            case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
        } else {
            assert_eq!(model.decision_function(x).check().unwrap_err().class(), "ValueError");
        }
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
}

#[test]
fn complement_nb() {
    each("ComplementNB", |case, x| {
        let mut estimator = ComplementNB::new().norm(case.is("norm").unwrap_or(false));
        estimator = estimator.alpha(case.number("alpha").unwrap_or(1.0));
        if let Some(priors) = case.numbers("class_prior") {
            estimator = estimator.class_prior(&priors);
        }
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        case.attribute("class_count", model.class_count.clone().into_dyn(), EXACT);
        case.attribute("feature_count", model.feature_count.clone().into_dyn(), EXACT);
        case.attribute("feature_all", model.feature_all.clone().into_dyn(), EXACT);
        case.attribute("class_log_prior", model.class_log_prior.clone().into_dyn(), EXACT);
        case.attribute("feature_log_prob", model.feature_log_prob.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
        case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
    });
}

#[test]
fn categorical_nb() {
    each("CategoricalNB", |case, x| {
        let mut estimator = CategoricalNB::new().alpha(case.number("alpha").unwrap_or(1.0));
        estimator = estimator.fit_prior(case.is("fit_prior").unwrap_or(true));
        if let Some(least) = case.number("min_categories") {
            estimator = estimator.min_categories(least as usize);
        } else if let Some(least) = case.numbers("min_categories") {
            let least: Vec<usize> = least.into_iter().map(|least| least as usize).collect();
            estimator = estimator.min_categories(&least[..]);
        }
        // The whole part of a sample is its category.
        for part in [0.0, 0.75] {
            let samples = x + part;
            let model = estimator.clone().fit(&samples, &case.labels(), case.options()).unwrap();
            let sizes: Array1<f64> = model.n_categories().into_iter().map(|size| size as f64).collect();
            case.attribute("n_categories", sizes.into_dyn(), 0.0);
            case.attribute("class_count", model.class_count.clone().into_dyn(), EXACT);
            case.attribute("class_log_prior", model.class_log_prior.clone().into_dyn(), EXACT);
            case.method("predict", &model.predict(&samples), 0.0);
            case.method("predict_proba", &model.predict_proba(&samples), EXACT);
            case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
            case.score(model.score(&samples, &case.labels(), case.options()).unwrap(), EXACT);
        }
    });
}

#[test]
fn categories_that_the_fit_has_not_seen_are_refused() {
    let (x, y) = (array([0i64, 1, 2, 0, 1, 1]).reshape(&[3, 2]), array([0i64, 1, 0]));
    let model = CategoricalNB::new().fit(&x, &y, ..).unwrap();
    assert_eq!(model.category_count[0].row(0).to_vec(), [1.0, 1.0, 0.0]);
    for (wrong, text) in [(3.0, "that is none of the 3 categories"), (-1.0, "none of the"), (f64::NAN, "NaN")]
    {
        let error = model.predict(&array([wrong, 0.0]).reshape(&[1, 2])).execute().map(drop).unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().contains(text), "{error}");
    }
    let error = CategoricalNB::new().fit(&(&x - 1), &y, ..).map(drop).unwrap_err();
    assert!(
        error.to_string().starts_with("Negative values in data passed to CategoricalNB (input X)."),
        "{error}"
    );
    let error = CategoricalNB::new().min_categories(&[3][..]).min_categories(&[1, 2, 3][..]).fit(&x, &y, ..);
    assert!(error.map(drop).unwrap_err().to_string().starts_with("'min_categories' should have shape (2,)"));
    let error = CategoricalNB::new().fit(&(&x * 1e15), &y, ..).map(drop).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
    let error = ComplementNB::new().fit(&(&x - 1), &y, ..).map(drop).unwrap_err();
    assert!(
        error.to_string().starts_with("Negative values in data passed to ComplementNB (input X)."),
        "{error}"
    );
}

#[test]
fn mistakes_of_baselines_are_refused_as_by_scikit_learn() {
    let (x, y) = (arange(8).reshape(&[4, 2]), array([0i64, 0, 1, 1]));
    let class = |made: tharsis_learn::Result<()>| {
        let error = made.unwrap_err();
        (error.class(), error.to_string())
    };
    let constant = || DummyClassifier::new().strategy(ClassStrategy::Constant);
    let regressor = |strategy| DummyRegressor::new().strategy(strategy);
    let refusals: [(tharsis_learn::Result<()>, &str, &str); 14] = [
        (constant().fit(&x, &y, ..).map(drop), "ValueError", "Constant target value has to be specified"),
        (
            constant().constant(7).fit(&x, &y, ..).map(drop),
            "ValueError",
            "The constant target value must be present in the training data. You provided constant=7. Possible \
             values are: [0, 1].",
        ),
        (DummyClassifier::new().fit(&x, &(&y * 0.5), ..).map(drop), "ValueError", "Unknown label type"),
        (
            regressor(TargetStrategy::Quantile).fit(&x, &y, ..).map(drop),
            "ValueError",
            "When using `strategy=",
        ),
        (
            DummyRegressor::new().quantile(1.5).fit(&x, &y, ..).map(drop),
            "ValueError",
            "The 'quantile' parameter of DummyRegressor must be a float in the range [0.0, 1.0] or None.",
        ),
        (
            regressor(TargetStrategy::Constant).fit(&x, &y, ..).map(drop),
            "TypeError",
            "Constant target value has",
        ),
        (
            regressor(TargetStrategy::Constant).constant(&[1.0, 2.0][..]).fit(&x, &y, ..).map(drop),
            "ValueError",
            "Constant target value should have shape (1, 1).",
        ),
        (
            regressor(TargetStrategy::Constant).constant(f64::NAN).fit(&x, &y, ..).map(drop),
            "ValueError",
            "Input contains NaN",
        ),
        (
            DummyRegressor::new().fit(&x, &array([0.0, f64::NAN, 1.0, 2.0]), ..).map(drop),
            "ValueError",
            "Input y contains NaN.",
        ),
        (
            NearestCentroid::new().shrink_threshold(0.0).fit(&x, &y, ..).map(drop),
            "ValueError",
            "The 'shrink_threshold' parameter of NearestCentroid must be a float in the range (0.0, inf)",
        ),
        (
            NearestCentroid::new().priors(&[1.5, -0.5][..]).fit(&x, &y, ..).map(drop),
            "ValueError",
            "priors must be non-negative",
        ),
        (
            NearestCentroid::new().fit(&x, &ones(&[4]), ..).map(drop),
            "ValueError",
            "The number of classes has to be greater than one; got 1 class",
        ),
        (
            NearestCentroid::new().fit(&ones(&[4, 2]), &y, ..).map(drop),
            "ValueError",
            "All features have zero variance. Division by zero.",
        ),
        (
            NearestCentroid::new().fit(&x, &y, FitOptions::new().sample_weight(&ones(&[4]))).map(drop),
            "TypeError",
            "NearestCentroid.fit() got an unexpected keyword argument 'sample_weight'",
        ),
    ];
    for (at, (made, wanted, text)) in refusals.into_iter().enumerate() {
        let (found, message) = class(made);
        assert_eq!(found, wanted, "{at}: {message}");
        assert!(message.starts_with(text), "{at}: {message}");
    }
}

#[test]
fn samples_that_are_not_finite_are_nothing_to_dummies() {
    let (x, y) = (Tensor::from_elements(&[3, 1], &[f64::NAN, f64::INFINITY, 0.0]), array([0i64, 1, 1]));
    let model = DummyClassifier::new().fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [1, 1, 1]);
    let model = DummyRegressor::new().fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<f64>().unwrap(), [2.0 / 3.0; 3]);
}

/// Priors that do not add up to 1 are shares; numbers of scikit-learn 1.9.1.
#[test]
fn centres_of_features_that_vary_in_no_class() {
    let x = array([1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]).reshape(&[4, 2]);
    let y = array([0i64, 0, 1, 1]);
    let model = NearestCentroid::new().priors(&[2.0, 2.0][..]).fit(&x, &y, ..).unwrap();
    assert_eq!(
        (model.class_prior.to_vec(), model.within_class_std_dev.to_vec()),
        (vec![0.5; 2], vec![0.0; 2])
    );
    let chances = model.predict_proba(&x).to_vec::<f64>().unwrap();
    assert!((chances[0] - 0.99966465).abs() < 1e-8, "{chances:?}");
    let shrunk = NearestCentroid::new().shrink_threshold(0.1).fit(&x, &y, ..).unwrap();
    assert_eq!(shrunk.centroids, model.centroids);
    // Columns of a constant that is no binary fraction have no deviation.
    let wide = tharsis_numeric::concatenate(&[&x, &(ones(&[4, 1]) * 0.1)], 1);
    assert_eq!(NearestCentroid::new().fit(&wide, &y, ..).unwrap().within_class_std_dev[2], 0.0);
}
