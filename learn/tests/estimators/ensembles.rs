//! Estimators that hold others, and clusters by batches, where draws leave nothing to compare with
//! scikit-learn.

use std::sync::Arc;
use tharsis_learn::calibration::{CalibratedClassifierCV, CalibrationMethod};
use tharsis_learn::cluster::{BisectingKMeans, BisectingStrategy, Init, KMeans, MiniBatchKMeans};
use tharsis_learn::datasets::{load_breast_cancer, load_diabetes, load_iris};
use tharsis_learn::decomposition::{NMF, NMFInit};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::dummy::{ClassStrategy, DummyClassifier};
use tharsis_learn::ensemble::{
    AdaBoostLoss, AdaBoostRegressor, BaggingClassifier, BaggingRegressor, StackingClassifier, Voting,
    VotingClassifier,
};
use tharsis_learn::feature_selection::{
    RFE, SelectFromModel, SelectionDirection, SelectionThreshold, SequentialFeatureSelector,
};
use tharsis_learn::frozen::FrozenEstimator;
use tharsis_learn::isotonic::{IsotonicRegression, OutOfBounds};
use tharsis_learn::linear_model::{
    LinearRegression, LogisticRegression, LogisticRegressionCV, PoissonRegressor, Ridge, RidgeClassifier,
};
use tharsis_learn::model_selection::{GridSearchCV, ParamGrid, Share};
use tharsis_learn::multiclass::OneVsRestClassifier;
use tharsis_learn::naive_bayes::{BernoulliNB, ComplementNB, GaussianNB, MultinomialNB};
use tharsis_learn::neighbors::{CentroidMetric, KNeighborsClassifier, NearestCentroid};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_learn::tree::DecisionTreeRegressor;
use tharsis_learn::{AnyRegressor, FitOptions, Params};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, array, concatenate, zeros};
use tharsis_trials::cases;

/// Samples of so many features around four far centres, and the number of the centre of each.
fn groups(rows: usize, columns: usize) -> (Tensor, Tensor) {
    let generator = default_rng(3);
    let group = generator.integers(0, 4, &[rows]);
    let centers = array([0.0, 0.0, 30.0, 0.0, 0.0, 30.0, 60.0, 60.0]).reshape(&[4, 2]);
    let x = centers.take_at(&group, 0) + generator.normal(0.0, 1.0, &[rows, 2]);
    let x = concatenate(&[&x, &zeros(&[rows, columns - 2])], 1);
    (x.execute().unwrap(), group.execute().unwrap())
}

/// Whether labels part the samples as groups do.
fn are_groups(labels: &Tensor, group: &Tensor) -> bool {
    let pairs = (labels * 4 + group).unique().to_vec::<i64>().unwrap();
    pairs.len() == 4
}

#[test]
fn bags_draw_samples_and_features() {
    let data = load_breast_cancer().unwrap();
    let (x, y) = (&data.data, &data.target);
    let bagging = BaggingClassifier::new().max_features(Share::Count(7)).oob_score(true);
    let model = bagging.clone().fit(x, y, ..).unwrap();
    assert_eq!(model.estimators().len(), 10);
    let mut drawn: Vec<&Vec<usize>> = model.estimators().iter().map(|(features, _)| features).collect();
    assert!(drawn.iter().all(|features| features.len() == 7));
    drawn.dedup();
    assert_eq!(drawn.len(), 10, "draws of features are independent");
    assert!(0.9 < model.oob_score().unwrap(), "{:?}", model.oob_score());
    assert!(0.95 < model.score(x, y, ..).unwrap());
    // The same draws for any chunks and threads.
    let cut = x.rechunk(Chunks::PerAxis(vec![37, 30])).execute().unwrap();
    let options = FitOptions::new().executor(Arc::new(LocalExecutor::sized(3, 1 << 28)));
    let other = bagging.fit(&cut, y, options).unwrap();
    let chances = [&model, &other].map(|model| model.predict_proba(x).to_vec::<f64>().unwrap());
    assert_eq!(chances[0], chances[1]);
    // Neighbours take no weights: their samples are copied.
    let near =
        BaggingClassifier::new().estimator(KNeighborsClassifier::new()).max_samples(Share::Fraction(0.5));
    assert!(0.9 < near.fit(x, y, ..).unwrap().score(x, y, ..).unwrap());
    let weighted = FitOptions::new().sample_weight(&(y.astype(DType::F64) + 1.0));
    assert_eq!(near.fit(x, y, weighted).unwrap_err().class(), "NotImplemented");
}

#[test]
fn bags_without_replacement_have_each_sample_once() {
    let x = arange(40).reshape(&[40, 1]).astype(DType::F64);
    let y = x.squeeze(None);
    let bagging = BaggingRegressor::new().estimator(DecisionTreeRegressor::new()).bootstrap(false);
    let model = bagging.max_samples(Share::Count(10)).n_estimators(1).fit(&x, &y, ..).unwrap();
    // A tree of ten samples has ten numbers.
    assert_eq!(model.predict(&x).unique().to_vec::<f64>().unwrap().len(), 10);
}

#[test]
fn boosted_regressors_follow_their_targets() {
    let data = load_diabetes().unwrap();
    for loss in [AdaBoostLoss::Linear, AdaBoostLoss::Square, AdaBoostLoss::Exponential] {
        let estimator = AdaBoostRegressor::new().n_estimators(15).loss(loss);
        let model = estimator.fit(&data.data, &data.target, ..).unwrap();
        // scikit-learn has 0.55 to 0.6.
        let score = model.score(&data.data, &data.target, ..).unwrap();
        assert!(0.5 < score, "{loss:?}: {score}");
        assert!(model.feature_importances().unwrap().iter().all(|part| (0.0..=1.0).contains(part)));
    }
}

#[test]
fn parameters_of_members_have_their_names() {
    let mut voting = VotingClassifier::new().estimator("near", KNeighborsClassifier::new());
    voting.set("near__n_neighbors", &3i64.into()).unwrap();
    assert!(
        voting.params().iter().any(|(name, value)| name == "near__n_neighbors" && value.to_string() == "3")
    );
    let error = voting.set("far__n_neighbors", &3i64.into()).unwrap_err().to_string();
    assert!(error.starts_with("Invalid parameter 'far' for estimator VotingClassifier()."), "{error}");
    let mut bagging = BaggingRegressor::new().estimator(Ridge::new());
    bagging.set("estimator__alpha", &0.5.into()).unwrap();
    bagging.set("n_estimators", &3i64.into()).unwrap();
    let error = bagging.set("estimator__alhpa", &0.5.into()).unwrap_err().to_string();
    assert!(error.starts_with("Invalid parameter 'alhpa' for estimator Ridge(alpha=0.5)."), "{error}");
    let error = bagging.set("n_estimators", &"many".into()).unwrap_err().to_string();
    assert!(error.starts_with("The 'n_estimators' parameter of BaggingRegressor must be an int"), "{error}");
}

#[test]
fn pipelines_are_members() {
    let iris = load_iris().unwrap();
    let line = Pipeline::new().step("scale", StandardScaler::new()).last("bayes", GaussianNB::new());
    let model = OneVsRestClassifier::new(line).fit(&iris.data, &iris.target, ..).unwrap();
    assert!(0.9 < model.score(&iris.data, &iris.target, ..).unwrap());
}

#[test]
fn a_label_that_all_samples_have_is_told_of_all() {
    let x = arange(6).reshape(&[6, 1]).astype(DType::F64);
    let y = concatenate(&[&zeros(&[6, 1]), &(zeros(&[6, 1]) + 1.0), &x.greater(2.0).astype(DType::F64)], 1);
    let model = OneVsRestClassifier::new(GaussianNB::new()).fit(&x, &y, ..).unwrap();
    let told = model.predict(&x).to_vec::<i64>().unwrap();
    assert_eq!(told, [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1]);
    assert_eq!(model.score(&x, &y, ..).unwrap(), 1.0);
}

#[test]
fn classes_without_a_chance_are_not_told() {
    let x = array([0.0, 1.0, 2.5, 7.0, 8.0, 9.5, 14.0, 15.0, 16.5]).reshape(&[9, 1]);
    for (priors, told) in [
        (&[1.0, 0.0][..], [0, 0, 0, 0, 0, 0]),
        (&[0.0, 1.0], [1, 1, 1, 1, 1, 1]),
        (&[0.5, 0.5], [0, 0, 0, 1, 1, 1]),
    ] {
        let (x, y) = (x.get(&[(0..6).into()]), array([0i64, 0, 0, 1, 1, 1]));
        let linear = LinearDiscriminantAnalysis::new().priors(priors).fit(&x, &y, ..).unwrap();
        let quadratic = QuadraticDiscriminantAnalysis::new().priors(priors).fit(&x, &y, ..).unwrap();
        let bayes = GaussianNB::new().priors(priors).fit(&x, &y, ..).unwrap();
        for predicted in [linear.predict(&x), quadratic.predict(&x), bayes.predict(&x)] {
            assert_eq!(predicted.to_vec::<i64>().unwrap(), told, "{priors:?}");
        }
    }
    let y = array([0i64, 0, 0, 1, 1, 1, 2, 2, 2]);
    let priors = [0.5, 0.0, 0.5];
    let linear = LinearDiscriminantAnalysis::new().priors(&priors).fit(&x, &y, ..).unwrap();
    let told = linear.predict(&x).to_vec::<i64>().unwrap();
    assert_eq!(told, linear.predict_proba(&x).argmax(1).to_vec::<i64>().unwrap());
    assert!(!told.contains(&1) && told.contains(&0) && told.contains(&2), "{told:?}");
    // No class has a chance against the rest: as in scikit-learn, the last one of equal scores is told.
    let line = LinearDiscriminantAnalysis::new().priors(&[1.0, 0.0]);
    let model = OneVsRestClassifier::new(line).fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [2; 9]);
}

#[test]
fn the_last_class_of_equal_scores_is_told_of_one_against_the_rest() {
    let x = array([0.0, 1.0, 5.0, 6.0]).reshape(&[4, 1]);
    let model = OneVsRestClassifier::new(DummyClassifier::new().strategy(ClassStrategy::Uniform));
    let model = model.fit(&x, &array([3i64, 3, 5, 7]), ..).unwrap();
    // Each class is there with a half.
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [7, 7, 7, 7]);
}

#[test]
fn labels_of_samples_that_are_not_finite_are_refused() {
    let x = array([1.0, 2.0, 3.0, 1.0, 2.0, 5.0, 4.0, 7.0]).reshape(&[4, 2]);
    let line = array([1.0, 3.0, 2.0, 5.0]).reshape(&[4, 1]);
    let y = array([0i64, 1, 0, 1]);
    macro_rules! refuses {
        ($estimator:expr, $x:expr) => {
            let model = $estimator.fit($x, &y, ..).unwrap();
            let columns = $x.shape().unwrap()[1] as i64;
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let samples = array([bad, 1.0]).get(&[(0..columns).into()]).reshape(&[1, columns]);
                let told = model.predict(&samples).to_vec::<i64>();
                assert!(told.is_err(), "{}: {bad}: {told:?}", stringify!($estimator));
            }
        };
    }
    refuses!(VotingClassifier::new().estimator("bayes", GaussianNB::new()).voting(Voting::Soft), &x);
    refuses!(BaggingClassifier::new().estimator(LogisticRegression::new()).bootstrap(false), &x);
    refuses!(GaussianNB::new(), &x);
    refuses!(MultinomialNB::new(), &x);
    refuses!(BernoulliNB::new(), &x);
    refuses!(ComplementNB::new(), &x);
    refuses!(QuadraticDiscriminantAnalysis::new(), &line);
    refuses!(NearestCentroid::new().metric(CentroidMetric::Manhattan), &x);
}

#[test]
fn each_label_has_a_bound_of_its_own() {
    // The last label is never there; naive Bayes tells probabilities alone, and no class has quite none.
    let x = array([0.0, 0.2, 0.4, 5.0, 5.2, 5.4]).reshape(&[6, 1]);
    let y = concatenate(&[&x.greater(2.0).astype(DType::F64), &zeros(&[6, 1])], 1);
    let model = OneVsRestClassifier::new(GaussianNB::new()).fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn a_model_of_any_type_has_its_own_score() {
    let data = load_diabetes().unwrap();
    let (x, y) = (&data.data, &data.target);
    let (alone, any) = (PoissonRegressor::new(), AnyRegressor::new(PoissonRegressor::new()));
    // Of the deviance, while R² is the default of a model that tells numbers.
    let grid = || ParamGrid::new().values("alpha", [0.5, 2.0]);
    let best = GridSearchCV::new(alone, grid()).fit(x, y, ..).unwrap();
    let same = GridSearchCV::new(any, grid()).fit(x, y, ..).unwrap();
    assert_eq!(best.best_score, same.best_score);
}

#[test]
fn medians_and_halves_of_odd_and_even_numbers_are_those_of_numpy() {
    for (columns, median, half) in [(1, 1.0, 1), (2, 1.5, 1), (3, 2.0, 1), (4, 2.5, 2), (5, 3.0, 2)] {
        let x = default_rng(8).normal(0.0, 1.0, &[40, columns]).execute().unwrap();
        let y = x.matmul(&(arange(columns) + 1).astype(DType::F64)).execute().unwrap();
        let selector =
            SelectFromModel::new(LinearRegression::new()).threshold(SelectionThreshold::Median(1.0));
        let model = selector.fit(&x, &y, ..).unwrap();
        assert!((model.threshold - median).abs() < 1e-9, "{columns}: {}", model.threshold);
        // Those that count as much as the median, which may be one of them.
        let kept = model.support().iter().filter(|kept| **kept).count();
        assert_eq!(kept, columns.div_ceil(2), "{columns}");
        // Half of the features, rounded down, and at least one; it takes two or more.
        if columns == 1 {
            continue;
        }
        let left = RFE::new(LinearRegression::new()).fit(&x, &y, ..).unwrap();
        assert_eq!(left.n_features(), half, "{columns}");
        assert!(left.support()[columns - half..].iter().all(|kept| *kept), "{columns}");
    }
}

#[test]
fn a_selector_leaves_out_half_of_an_odd_number_of_features() {
    let data = load_diabetes().unwrap();
    let x = data.data.take(&[0, 1, 2, 3, 4], 1);
    for (direction, kept) in [(SelectionDirection::Forward, 2), (SelectionDirection::Backward, 3)] {
        let selector = SequentialFeatureSelector::new(Ridge::new()).direction(direction);
        let model = selector.fit(&x, &data.target, ..).unwrap();
        assert_eq!(model.support().iter().filter(|kept| **kept).count(), kept, "{direction:?}");
    }
}

#[test]
fn batches_find_the_groups() {
    // The second one has more samples than a block has rows of this width.
    for (rows, columns) in [(2_000, 2), (10_000, 256)] {
        let (x, group) = groups(rows, columns);
        let weights = (group.astype(DType::F64) + 1.0).execute().unwrap();
        let [found, _] = [FitOptions::new(), FitOptions::new().sample_weight(&weights)].map(|options| {
            let model = MiniBatchKMeans::new().n_clusters(4).fit(&x, options).unwrap();
            assert!(are_groups(&model.labels, &group), "{rows}");
            assert_eq!(model.counts.len(), 4);
            assert!(model.n_steps < 5_000);
            model
        });
        // Its clusters are the groups, whose means are the best centers.
        let near = Tensor::from_array(&found.cluster_centers.clone().into_dyn());
        let exact = KMeans::new().n_clusters(4).init(&near).fit(&x, ..).unwrap().inertia;
        assert!(found.inertia < 1.05 * exact, "{} beside {exact}", found.inertia);
    }
}

#[test]
fn batches_from_random_centers_leave_no_cluster_empty() {
    let (x, _) = groups(5_000, 2);
    let estimator = MiniBatchKMeans::new().n_clusters(12).init(Init::Random).batch_size(200).random_state(7);
    let model = estimator.fit(&x, ..).unwrap();
    let sizes = model.labels.bincount(None, 12).to_vec::<i64>().unwrap();
    assert!(sizes.iter().all(|&size| 0 < size), "{sizes:?}");
}

#[test]
fn bisections_find_the_groups() {
    let (x, group) = groups(3_000, 2);
    for strategy in [BisectingStrategy::BiggestInertia, BisectingStrategy::LargestCluster] {
        let estimator = BisectingKMeans::new().n_clusters(4).n_init(3).bisecting_strategy(strategy);
        let model = estimator.fit(&x, ..).unwrap();
        assert!(are_groups(&model.labels, &group), "{strategy:?}");
        assert!(model.predict(&x).equal(&model.labels).all(..).item().unwrap().is_true());
        let score = model.score(&x, ..).unwrap();
        assert!((model.inertia + score).abs() < 1e-6 * model.inertia, "{} {score}", model.inertia);
    }
    // Equal samples share a place.
    let same = BisectingKMeans::new().n_clusters(3).fit(&zeros(&[5, 2]), ..).unwrap();
    assert_eq!(same.inertia, 0.0);
}

#[test]
fn lines_clip_or_refuse_places_outside() {
    let (x, y) = (array([1.0, 2.0, 3.0]), array([1.0, 2.0, 4.0]));
    let wide = array([0.0, 2.5, 9.0]);
    let of = |bounds| IsotonicRegression::new().out_of_bounds(bounds).fit(&x, &y, ..).unwrap();
    let found = of(OutOfBounds::Nan).predict(&wide).to_vec::<f64>().unwrap();
    assert!(found[0].is_nan() && found[1] == 3.0 && found[2].is_nan());
    assert_eq!(of(OutOfBounds::Clip).predict(&wide).to_vec::<f64>().unwrap(), [1.0, 3.0, 4.0]);
    let error = of(OutOfBounds::Raise).predict(&wide).execute().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    // Many places that fall are one level, and its process holds no more.
    let rows = 300_000;
    let falling = IsotonicRegression::new().fit(&arange(rows), &(arange(rows) * -1), ..).unwrap();
    assert_eq!(falling.x_thresholds.len(), 2);
    assert_eq!(falling.y_thresholds[0], -(rows as f64 - 1.0) / 2.0);
}

/// Two parts would leave 8 % of such samples. A long run goes on to where the steps end.
#[test]
fn parts_add_up_to_the_samples() {
    let (steps, most) = cases((400, 3e-2), (3_000, 1e-2));
    let generator = default_rng(9);
    let (weights, parts) = (generator.random(&[200, 3]), generator.random(&[3, 6]));
    let x = weights.matmul(&parts).execute().unwrap();
    for init in [NMFInit::Random, NMFInit::Nndsvd, NMFInit::Nndsvda, NMFInit::Nndsvdar] {
        let model = NMF::new().n_components(3).init(init).tol(1e-7).max_iter(steps).fit(&x, ..).unwrap();
        assert!(model.components.iter().all(|part| 0.0 <= *part));
        let size = x.square().sum(..).sqrt().item().unwrap().to_f64();
        assert!(model.reconstruction_err < most * size, "{init:?}: {}", model.reconstruction_err);
        let back = model.inverse_transform(&model.transform(&x));
        let left = (back - &x).square().sum(..).sqrt().item().unwrap().to_f64();
        assert!(left <= model.reconstruction_err * 1.1 + 1e-6 * size, "{init:?}: {left}");
    }
    let error = NMF::new().fit(&(&x - 1.0), ..).unwrap_err().to_string();
    assert!(error.starts_with("Negative values in data passed to NMF (input X)"), "{error}");
}

#[test]
fn calibrated_chances_are_those_of_the_samples() {
    // A class with chance 1 / (1 + exp(-x)), and a classifier that is far too sure.
    let generator = default_rng(5);
    let x = generator.normal(0.0, 2.0, &[20_000, 1]).execute().unwrap();
    let chance = 1.0 / ((-&x).exp() + 1.0);
    let y = generator.random(&[20_000]).less(chance.squeeze(None)).astype(DType::I64).execute().unwrap();
    let twice = concatenate(&[&x, &x, &x, &x], 1);
    let model = CalibratedClassifierCV::new().estimator(GaussianNB::new()).fit(&twice, &y, ..).unwrap();
    let at = |place: f64| {
        let x = zeros(&[1, 4]) + place;
        model.predict_proba(&x).to_vec::<f64>().unwrap()[1]
    };
    for place in [-1.0, 0.0, 1.0] {
        let wanted = 1.0 / (1.0 + f64::exp(-place));
        assert!((at(place) - wanted).abs() < 0.1, "{place}: {}", at(place));
    }
}

#[test]
fn hard_votes_of_negative_weights_are_counted_as_bincount_does() {
    let (x, y) = (zeros(&[3, 1]), array([0i64, 1, 2]));
    let voted = |classes: &[i64], weights: &[f64]| {
        let constant = |class: i64| DummyClassifier::new().strategy(ClassStrategy::Constant).constant(class);
        let voting = VotingClassifier::new().weights(weights.to_vec());
        let voting = classes
            .iter()
            .enumerate()
            .fold(voting, |voting, (at, &class)| voting.estimator(&format!("member{at}"), constant(class)));
        voting.fit(&x, &y, ..).unwrap().predict(&x).to_vec::<i64>().unwrap()
    };
    // numpy.bincount has sums of 1 and -2.5.
    assert_eq!(voted(&[0, 1, 1], &[1.0, -2.0, -0.5]), [0; 3]);
    // It counts the classes below the one that is voted for, as 0.
    assert_eq!(voted(&[1, 1], &[-1.0, -1.0]), [0; 3]);
    // And none above.
    assert_eq!(voted(&[0, 1], &[-1.0, -2.0]), [0; 3]);
    assert_eq!(voted(&[0, 1], &[-2.0, -1.0]), [1; 3]);
    // Sums need no sum of weights to be divided by.
    assert_eq!(voted(&[1, 2], &[1.0, -1.0]), [1; 3]);
    let soft = VotingClassifier::new().estimator("a", DummyClassifier::new()).weights([0.0]);
    assert!(soft.voting(Voting::Soft).fit(&x, &y, ..).is_err());
}

#[test]
fn estimators_that_are_left_out_do_not_count() {
    let iris = load_iris().unwrap();
    let (x, y) = (&iris.data, &iris.target);
    let voting = || VotingClassifier::new().estimator("bayes", GaussianNB::new());
    let alone = voting().weights([2.0]).voting(Voting::Soft).fit(x, y, ..).unwrap();
    let near = KNeighborsClassifier::new;
    let given = voting().dropped("near").weights([2.0, -2.0]).voting(Voting::Soft);
    let mut set = voting().estimator("near", near()).weights([2.0, -2.0]).voting(Voting::Soft);
    set.set("near", &"drop".into()).unwrap();
    for dropped in [given, set] {
        assert!(dropped.params().iter().any(|(name, value)| name == "near" && value.to_string() == "'drop'"));
        let model = dropped.fit(x, y, ..).unwrap();
        assert_eq!(model.named_estimators.len(), 1);
        let [own, other] =
            [&model, &alone].map(|model| model.predict_proba(x).unwrap().to_vec::<f64>().unwrap());
        assert_eq!(own, other);
        assert_eq!(model.transform(x).shape().unwrap(), [150, 3]);
    }
    let stack = StackingClassifier::new().estimator("bayes", GaussianNB::new()).dropped("near").cv(2);
    assert_eq!(stack.fit(x, y, ..).unwrap().transform(x).shape().unwrap(), [150, 3]);
    let none = VotingClassifier::new().dropped("near").fit(x, y, ..).unwrap_err().to_string();
    assert!(
        none.starts_with("All estimators are dropped. At least one is required to be an estimator."),
        "{none}"
    );
    let other = voting().set("near", &"drop".into()).unwrap_err().to_string();
    assert!(other.starts_with("Invalid parameter 'near' for estimator VotingClassifier()."), "{other}");
    assert!(voting().set("bayes", &"left".into()).is_err());
}

#[test]
fn frozen_models_are_not_fitted_again() {
    let iris = load_iris().unwrap();
    let (x, y) = (&iris.data, &iris.target);
    // Of other samples, so that a fit would be seen.
    let far = GaussianNB::new().fit(&(x * 2.0), y, ..).unwrap();
    let frozen = || FrozenEstimator::new(far.clone());
    let own = far.predict_proba(x).to_vec::<f64>().unwrap();
    let weighted = FitOptions::new().sample_weight(&(y.astype(DType::F64) + 1.0));
    let voting = VotingClassifier::new().estimator("far", frozen()).voting(Voting::Soft);
    assert_eq!(voting.fit(x, y, weighted).unwrap().predict_proba(x).unwrap().to_vec::<f64>().unwrap(), own);
    let stack = StackingClassifier::new().estimator("far", frozen()).fit(x, y, ..).unwrap();
    assert_eq!(stack.transform(x).to_vec::<f64>().unwrap(), own);
    let calibrated = || CalibratedClassifierCV::new().estimator(frozen());
    let one = calibrated().fit(x, y, ..).unwrap();
    assert_eq!(one.estimators().count(), 1);
    let same = calibrated().ensemble(false).fit(x, y, ..).unwrap();
    let chances = [&one, &same].map(|model| model.predict_proba(x).to_vec::<f64>().unwrap());
    assert_eq!(chances[0], chances[1]);
    assert_eq!(calibrated().ensemble(true).fit(x, y, ..).unwrap().estimators().count(), 5);
    // The features that a model has chosen are those that it counts, whatever it is shown.
    let line = LogisticRegression::new().fit(x, y, ..).unwrap();
    let chosen = SelectFromModel::new(LogisticRegression::new()).fit(x, y, ..).unwrap();
    let kept = SelectFromModel::new(FrozenEstimator::new(line)).fit(&(x * 0.0), y, ..).unwrap();
    assert_eq!(kept.support(), chosen.support());
    let error = frozen().set("var_smoothing", &1.0.into()).unwrap_err().to_string();
    assert!(
        error.starts_with("Invalid parameter 'var_smoothing' for estimator FrozenEstimator()."),
        "{error}"
    );
}

/// Two classes of iris, and one sample of the third one.
fn rare() -> (Tensor, Tensor) {
    let iris = load_iris().unwrap();
    let part = |of: &Tensor| of.get(&[(..101i64).into()]).execute().unwrap();
    (part(&iris.data), part(&iris.target))
}

#[test]
fn a_class_that_training_sets_lack_has_chances() {
    let (x, y) = rare();
    let methods = [CalibrationMethod::Sigmoid, CalibrationMethod::Isotonic, CalibrationMethod::Temperature];
    for (method, has_decisions) in methods.into_iter().flat_map(|method| [(method, true), (method, false)]) {
        let calibrated = CalibratedClassifierCV::new().method(method);
        let calibrated = if has_decisions { calibrated } else { calibrated.estimator(GaussianNB::new()) };
        let model = calibrated.fit(&x, &y, ..).unwrap();
        let chances = model.predict_proba(&x).execute().unwrap();
        assert_eq!(chances.shape().unwrap(), [101, 3], "{method:?}");
        let is_one = chances.sum(1).isclose(1.0, 0.0, 1e-9).all(..).item().unwrap();
        assert!(is_one.is_true(), "{method:?}");
        let told = model.predict(&x).to_vec::<i64>().unwrap();
        let right = (0..100).filter(|&at| told[at] == i64::from(49 < at)).count();
        assert!(95 <= right, "{method:?}: {right}");
    }
    // A training set of one class knows that one alone.
    let (x, y) = (arange(9).reshape(&[9, 1]), arange(9).greater(7.0).astype(DType::I64));
    for method in methods {
        let calibrated = CalibratedClassifierCV::new().method(method).estimator(GaussianNB::new());
        let model = calibrated.fit(&x, &y, ..).unwrap();
        let chances = model.predict_proba(&x).to_vec::<f64>().unwrap();
        assert!(
            chances.chunks(2).all(|pair| (pair[0] + pair[1] - 1.0).abs() < 1e-9),
            "{method:?}: {chances:?}"
        );
        assert!(chances[0] > 0.5, "{method:?}: {chances:?}");
    }
}

#[test]
fn a_column_of_labels_is_calibrated_as_labels() {
    let iris = load_iris().unwrap();
    let (x, y) = (&iris.data, &iris.target);
    let methods = [CalibrationMethod::Sigmoid, CalibrationMethod::Isotonic, CalibrationMethod::Temperature];
    let ways = methods.into_iter().flat_map(|method| [(method, true), (method, false)]);
    for (at, (method, ensemble)) in ways.enumerate() {
        // The default searches for a minimum in each fit; ridge regression has decisions, too.
        let calibrated = || {
            let calibrated = CalibratedClassifierCV::new().method(method).ensemble(ensemble).cv(3);
            if at == 0 { calibrated } else { calibrated.estimator(RidgeClassifier::new()) }
        };
        let [flat, column] = [y, &y.expand_dims(1)].map(|y| {
            let model = calibrated().fit(x, y, ..).unwrap();
            model.predict_proba(x).to_vec::<f64>().unwrap()
        });
        assert_eq!(flat, column, "{method:?} {ensemble}");
    }
}

#[test]
fn samples_without_scores_have_no_label() {
    let iris = load_iris().unwrap();
    let x = &iris.data;
    let several =
        concatenate(&[&iris.target.equal(0).expand_dims(1), &iris.target.equal(1).expand_dims(1)], 1);
    let several = several.astype(DType::I64);
    let two = iris.target.minimum(1);
    for (at, y) in [&iris.target, &two, &several].into_iter().enumerate() {
        let rest = OneVsRestClassifier::new(LogisticRegression::new()).fit(x, y, ..).unwrap();
        for number in [f64::NAN, f64::INFINITY] {
            let new = Tensor::from_elements(&[1, 4], &[5.0, number, 1.0, 1.0]);
            let error = rest.predict(&new).to_vec::<i64>().unwrap_err().to_string();
            let text = if number.is_nan() { "Input X contains NaN." } else { "Input X contains infinity" };
            assert!(error.starts_with(text), "{at} {number}: {error}");
        }
    }
    let calibrated = CalibratedClassifierCV::new().fit(x, &iris.target, ..).unwrap();
    let new = Tensor::from_elements(&[1, 4], &[5.0, f64::NAN, 1.0, 1.0]);
    assert!(calibrated.predict(&new).to_vec::<i64>().is_err());
}

#[test]
fn a_selector_refuses_numbers_of_which_no_score_is_made() {
    let data = load_diabetes().unwrap();
    let x = data.data.get(&[(..).into(), (..3i64).into()]);
    for number in [f64::NAN, f64::INFINITY] {
        let row = Tensor::from_elements(&[1, 3], &[0.0, number, 0.0]);
        let (wrong, y) = (concatenate(&[&x, &row], 0), concatenate(&[&data.target, &zeros(&[1])], 0));
        let error = SequentialFeatureSelector::new(Ridge::new()).fit(&wrong, &y, ..).unwrap_err();
        assert_eq!(error.class(), "ValueError", "{error}");
    }
}

#[test]
fn penalties_are_chosen_where_folds_lack_a_class() {
    let (x, y) = rare();
    for refit in [true, false] {
        let estimator = LogisticRegressionCV::new().cs([0.1, 1.0]).refit(refit);
        let model = estimator.fit(&x, &y, ..).unwrap();
        assert_eq!((&model.model.classes[..], model.model.coef.dim()), (&[0, 1, 2][..], (3, 4)));
        assert!(model.coefs_paths.iter().all(|coef| coef.is_finite()), "{refit}");
        assert!(0.95 < model.score(&x, &y, ..).unwrap(), "{refit}");
    }
    // One class alone, as one of two.
    let (x, y) = (arange(9).reshape(&[9, 1]), arange(9).greater(7.0).astype(DType::I64));
    let model = LogisticRegressionCV::new().cs([1.0]).refit(false).fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap()[..5], [0; 5]);
}
