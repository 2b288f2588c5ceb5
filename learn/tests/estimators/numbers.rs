//! Digits: columns far from zero in any order of rows, clusters far from zero, sums beyond float64, systems
//! close to singular.

use std::f64::consts::PI;
use tharsis_learn::FitOptions;
use tharsis_learn::cluster::KMeans;
use tharsis_learn::decomposition::PCA;
use tharsis_learn::linear_model::{
    ElasticNet, HuberRegressor, Lasso, LinearRegression, LogisticRegression, Ridge,
};
use tharsis_learn::metrics::euclidean_distances;
use tharsis_learn::naive_bayes::{BernoulliNB, ComplementNB, GaussianNB, MultinomialNB};
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor, arange, array, concatenate, ones, stack, where_, zeros};

/// Rows before the others, more than are looked at for a first guess of means.
const FIRST: usize = 300;
const OTHERS: usize = 400;
/// Distance of the others from zero.
const FAR: f64 = 1e8;

/// The numbers -1 and 1 in turn; their variance is 1.
fn signs(count: usize) -> Tensor {
    (arange(count) % 2) * 2.0 - 1.0
}

/// Samples of one feature: first rows around `first`, the others around `FAR`. Weights of the first are 0.
fn unweighted_first() -> (Tensor, Tensor, FitOptions) {
    let x = concatenate(&[&signs(FIRST), &(signs(OTHERS) + FAR)], 0).expand_dims(1).execute().unwrap();
    let y = (&x - FAR).squeeze(Some(&[1])) * 3.0;
    let weights = concatenate(&[&zeros(&[FIRST]), &ones(&[OTHERS])], 0);
    (x, y, FitOptions::new().sample_weight(&weights))
}

#[test]
fn first_rows_without_weight_take_no_digits() {
    let (x, y, options) = unweighted_first();
    let scaler = StandardScaler::new().fit(&x, &options).unwrap();
    assert_eq!((scaler.mean[0], scaler.var[0]), (FAR, 1.0));
    let alpha = 1e-9;
    for (name, coef) in [
        ("Ridge", Ridge::new().alpha(alpha).fit(&x, &y, &options).unwrap().coef),
        ("LinearRegression", LinearRegression::new().fit(&x, &y, &options).unwrap().coef),
        ("Lasso", Lasso::new().alpha(alpha).fit(&x, &y, &options).unwrap().coef),
        ("ElasticNet", ElasticNet::new().alpha(alpha).fit(&x, &y, &options).unwrap().coef),
    ] {
        assert!((coef[[0]] - 3.0).abs() < 1e-7, "{name}: {coef}");
    }
}

#[test]
fn first_rows_that_are_missing_or_elsewhere_take_no_digits() {
    let missing = concatenate(&[&(zeros(&[FIRST]) * f64::NAN), &(signs(OTHERS) + FAR)], 0).expand_dims(1);
    let scaler = StandardScaler::new().fit(&missing, ..).unwrap();
    assert_eq!((scaler.mean[0], scaler.var[0], scaler.n_samples_seen[0]), (FAR, 1.0, OTHERS as f64));
    // Rows of the guess lie at zero; that they count is lost in the width of the others.
    let order = concatenate(&[&zeros(&[FIRST]), &(zeros(&[OTHERS]) + FAR)], 0).expand_dims(1);
    let var = StandardScaler::new().fit(&order, ..).unwrap().var[0];
    let (a, b) = (FIRST as f64, OTHERS as f64);
    let expected = FAR * FAR * a * b / (a + b).powi(2);
    assert!((var / expected - 1.0).abs() < 1e-14, "{var}, not {expected}");
    // A single row in front, which 10^6 others outvote.
    let many = concatenate(&[&zeros(&[256]), &(signs(1_000_000) * 1e-3 + 1e3)], 0).expand_dims(1);
    let var = StandardScaler::new().fit(&many, ..).unwrap().var[0];
    let part = 256.0 / 1_000_256.0;
    let expected = 1e-6 * (1.0 - part) + 1e6 * part * (1.0 - part);
    assert!((var / expected - 1.0).abs() < 1e-12, "{var}, not {expected}");
}

#[test]
fn products_of_columns_keep_their_digits_too() {
    let generator = default_rng(5);
    let near = generator.normal(0.0, 1.0, &[OTHERS, 3]);
    // Whole numbers of 2^-20, which stay what they are far from zero.
    let near = ((near * 1_048_576.0).round(0) / 1_048_576.0).execute().unwrap();
    let y = near.matmul(&array([1.0, -2.0, 0.5]));
    let far = concatenate(&[&zeros(&[FIRST, 3]), &(&near + FAR)], 0);
    let far_y = concatenate(&[&zeros(&[FIRST]), &(&y + FAR)], 0);
    let weights = concatenate(&[&zeros(&[FIRST]), &ones(&[OTHERS])], 0);
    let options = FitOptions::new().sample_weight(&weights);
    let (a, b) = (Ridge::new().fit(&near, &y, ..).unwrap(), Ridge::new().fit(&far, &far_y, options).unwrap());
    let distance = (&a.coef - &b.coef).mapv(f64::abs).sum();
    assert!(distance < 1e-7, "{distance}");
}

#[test]
fn a_constant_is_told_by_its_numbers_not_by_how_many_there_are() {
    let x = (signs(200_000) * 1e-3 + 1e8).expand_dims(1);
    let scale = StandardScaler::new().fit(&x, ..).unwrap().scale[0];
    assert!((scale - 1e-3).abs() < 1e-5, "{scale}");
    let x = (zeros(&[200_000]) + 0.1).expand_dims(1);
    assert_eq!(StandardScaler::new().fit(&x, ..).unwrap().scale[0], 1.0);
}

#[test]
fn clusters_far_from_zero_have_their_inertia_and_labels() {
    // Around 10^8 all of them.
    let x = array([FAR, FAR + 1.0, FAR + 10.0, FAR + 11.0]).expand_dims(1);
    let model = KMeans::new().n_clusters(2).fit(&x, ..).unwrap();
    assert_eq!((model.inertia, model.score(&x, ..).unwrap()), (1.0, -1.0));
    // Around 10^8 and -10^8, where no shift helps.
    let x = array([FAR, FAR + 1.0, FAR + 4.0, FAR + 5.0, -FAR, -FAR - 1.0]).expand_dims(1);
    let init = array([FAR + 1.0, FAR + 4.0, -FAR]).expand_dims(1);
    let model = KMeans::new().n_clusters(3).init(&init).fit(&x, ..).unwrap();
    assert!((model.inertia - 1.5).abs() < 1e-6, "{}", model.inertia);
    assert!((model.score(&x, ..).unwrap() + 1.5).abs() < 1e-6);
    assert_eq!(model.labels.to_vec::<i64>().unwrap(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [0, 0, 1, 1, 2, 2]);
    let drawn = KMeans::new().n_clusters(3).n_init(5).fit(&x, ..).unwrap();
    assert!((drawn.inertia - 1.5).abs() < 1e-6, "{}", drawn.inertia);
}

#[test]
fn clusters_without_samples_take_far_ones_where_products_have_no_digits() {
    let x = array([FAR, FAR, FAR + 3.0, -FAR, -FAR, -FAR]).expand_dims(1);
    let init = array([FAR, -FAR, -3.0 * FAR]).expand_dims(1);
    let model = KMeans::new().n_clusters(3).init(&init).fit(&x, ..).unwrap();
    assert_eq!(model.inertia, 0.0);
}

#[test]
fn distances_keep_their_digits_beside_a_far_row() {
    // The far row is the first, in the middle, the last; and all rows are far from zero.
    for (rows, pair) in [
        ([1e9, 0.1, 0.2], (1, 2)),
        ([0.1, 1e9, 0.2], (0, 2)),
        ([0.1, 0.2, 1e9], (0, 1)),
        ([1e9 + 0.5, 1e9, 1e9 + 0.6], (1, 2)),
    ] {
        let x = array(rows).expand_dims(1);
        let found = euclidean_distances(&x, ..).to_vec::<f64>().unwrap()[pair.0 * 3 + pair.1];
        let expected = f64::abs(rows[pair.0] - rows[pair.1]);
        assert!((found - expected).abs() < 1e-6, "{rows:?}: {found}, not {expected}");
    }
}

#[test]
fn a_center_of_which_all_samples_were_taken_stays() {
    // Three clusters without samples take all samples of the first one, whose weights leave a rounding.
    let x = array([-97.8, -42.1, 14.2, 500.0, 500.0]).expand_dims(1);
    let init = array([4.5, 500.0, 1000.0, 2000.0, 3000.0]).expand_dims(1);
    let options = FitOptions::new().sample_weight(&array([0.8, 0.5, 0.3, 1.0, 1.0]));
    let model = KMeans::new().n_clusters(5).init(&init).max_iter(1).fit(&x, options).unwrap();
    let mut centers = model.cluster_centers.column(0).to_vec();
    centers.sort_by(f64::total_cmp);
    for (found, expected) in centers.iter().zip([-97.8, -42.1, 4.5, 14.2, 500.0]) {
        assert!((found - expected).abs() < 1e-9, "{centers:?}");
    }
}

#[test]
fn slopes_of_dependent_columns_are_shared() {
    let column = signs(40);
    let x = concatenate(&[&column, &column], 0).reshape(&[2, 40]).t() + 5.0;
    let y = &column * 4.0 + 1.0;
    for (name, coef) in [
        ("Lasso", Lasso::new().alpha(0.0).fit(&x, &y, ..).unwrap().coef),
        ("ElasticNet", ElasticNet::new().alpha(1e-13).l1_ratio(0.0).fit(&x, &y, ..).unwrap().coef),
        ("Ridge", Ridge::new().alpha(1e-13).fit(&x, &y, ..).unwrap().coef),
        ("Ridge without a penalty", Ridge::new().alpha(0.0).fit(&x, &y, ..).unwrap().coef),
    ] {
        let is_shared = coef.iter().all(|coef| (coef - 2.0).abs() < 1e-6);
        assert!(is_shared, "{name}: {coef}");
    }
    // A constant beside a column of another size.
    let x = concatenate(&[&(column.expand_dims(1) * 1e-6), &(zeros(&[40, 1]) + 0.1)], 1);
    let coef = Lasso::new().alpha(0.0).fit(&x, &y, ..).unwrap().coef;
    assert!((coef[[0]] - 4e6).abs() < 1.0 && coef[[1]].abs() < 1e-3, "{coef}");
}

/// Samples and targets of fewer rows than columns.
fn wide() -> (Tensor, Tensor, FitOptions) {
    let generator = default_rng(2);
    let x = (generator.normal(0.0, 1.0, &[6, 40]) + 3.0).execute().unwrap();
    let y = generator.normal(0.0, 1.0, &[6]).execute().unwrap();
    (x, y, FitOptions::new().sample_weight(&array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])))
}

/// The slope of half the weighted squares by each coefficient.
fn slopes(x: &Tensor, y: &Tensor, weights: &Tensor, predicted: &Tensor) -> Vec<f64> {
    ((predicted - y) * weights).matmul(x).to_vec().unwrap()
}

#[test]
fn ridge_of_few_samples_is_at_its_minimum() {
    let (x, y, weighted) = wide();
    let weights = array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0]);
    for alpha in [1e-12, 0.5, 1e6] {
        let model = Ridge::new().alpha(alpha).fit(&x, &y, &weighted).unwrap();
        let slopes = slopes(&x, &y, &weights, &model.predict(&x));
        for (slope, coef) in slopes.iter().zip(&model.coef) {
            assert!((slope + alpha * coef).abs() < 1e-9, "alpha {alpha}: {slope}, {coef}");
        }
    }
}

#[test]
fn lasso_of_few_samples_is_at_its_minimum() {
    let (x, y, weighted) = wide();
    let weights = array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0]);
    let alpha = 0.05;
    let model = Lasso::new().alpha(alpha).tol(1e-14).max_iter(100_000).fit(&x, &y, &weighted).unwrap();
    let bound = alpha * 8.5;
    let mut used = 0;
    for (slope, coef) in slopes(&x, &y, &weights, &model.predict(&x)).iter().zip(&model.coef) {
        assert!(slope.abs() <= bound + 1e-5, "{slope}");
        if *coef != 0.0 {
            used += 1;
            assert!((slope + bound * coef.signum()).abs() < 1e-5, "{slope}, {coef}");
        }
    }
    assert!((1..=6).contains(&used) && model.converged, "{used}");
}

#[test]
fn components_of_few_samples_are_those_of_the_covariance() {
    let (x, ..) = wide();
    let model = PCA::new().n_components(3).fit(&x, ..).unwrap();
    let (values, vectors) = x.cov(None, &columns()).eigh(false);
    let (values, vectors) = (values.to_vec::<f64>().unwrap(), vectors.fetch::<f64>().unwrap());
    for component in 0..3 {
        let at = 39 - component;
        assert!((model.explained_variance[component] / values[at] - 1.0).abs() < 1e-10);
        let along: f64 = (0..40).map(|i| vectors[[i, at]] * model.components[[component, i]]).sum();
        assert!((along.abs() - 1.0).abs() < 1e-9, "{along}");
    }
    let whole: f64 = values.iter().sum();
    assert!((model.explained_variance_ratio[0] - values[39] / whole).abs() < 1e-12);
}

/// Numbers of mean 0 and variance 1 in eight rows, which do not go together.
fn patterns() -> [Tensor; 3] {
    [
        array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]),
        array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]),
        array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]),
    ]
}

#[test]
fn components_of_features_in_unlike_units_have_digits() {
    let [u, v, w] = patterns();
    let x = stack(&[&((&u + &v * 2.0 + &w * 3.0) * 1e-6), &(&u * 1e6), &(&u + &v)], 1);
    let model = PCA::new().fit(&x, ..).unwrap();
    // The expected variance of a feature is that beside larger ones, up to squares of the units.
    for (found, expected) in model.explained_variance.iter().zip([1e12, 1.0, 9e-12]) {
        assert!((found * 7.0 / 8.0 / expected - 1.0).abs() < 1e-9, "{}", model.explained_variance);
    }
    let third = model.transform(&x).get(&[(..).into(), 2i64.into()]).to_vec::<f64>().unwrap();
    for (found, sign) in third.iter().zip(w.to_vec::<f64>().unwrap()) {
        assert!((found / (3e-6 * sign) - 1.0).abs() < 1e-6, "{third:?}");
    }
}

#[test]
fn singular_values_of_features_in_unlike_units_have_digits() {
    let [u, v, w] = patterns();
    let x = stack(&[&(&u + &v), &(&u * 3e5), &(&w * 10.0)], 1);
    let model = LinearRegression::new().fit(&x, &arange(8), ..).unwrap();
    // The roots of both eigenvalues of the products of the first two.
    let (trace, determinant) = (8.0 * (9e10 + 2.0), 64.0 * 9e10);
    let largest = (trace + f64::sqrt(trace * trace - 4.0 * determinant)) / 2.0;
    for (found, expected) in model.singular.iter().zip([largest, 800.0, determinant / largest]) {
        assert!((found / expected.sqrt() - 1.0).abs() < 1e-9, "{}", model.singular);
    }
    assert_eq!(model.rank, 3);
}

fn columns() -> tharsis_numeric::statistics::Covariance {
    tharsis_numeric::statistics::Covariance { rowvar: false, ..Default::default() }
}

#[test]
fn a_density_needs_variance_in_all_directions() {
    let line = signs(10).expand_dims(1);
    let flat = concatenate(&[&line, &line], 1);
    let error = PCA::new().fit(&flat, ..).unwrap().score_samples(&flat).unwrap_err();
    assert_eq!(error.class(), "LinAlgError", "{error}");
    let (few, ..) = wide();
    let error = PCA::new().fit(&few, ..).unwrap().score_samples(&few).unwrap_err();
    assert_eq!(error.class(), "LinAlgError", "{error}");
    // Two components leave out 38 directions, which are noise.
    let model = PCA::new().n_components(2).fit(&few, ..).unwrap();
    let found = model.score_samples(&few).unwrap().to_vec::<f64>().unwrap();
    let covariance = model.get_covariance();
    let product = model.get_precision().unwrap().dot(&covariance);
    let is_one = |((row, column), found): ((usize, usize), &f64)| {
        (found - f64::from(u8::from(row == column))).abs() < 1e-9
    };
    assert!(product.indexed_iter().all(is_one), "{product}");
    assert_eq!(PCA::new().fit(&few, ..).unwrap().get_precision().unwrap_err().class(), "LinAlgError");
    let (values, vectors) = Tensor::from_array(&covariance.into_dyn()).eigh(false);
    let along = (&few - few.mean(0)).matmul(&vectors);
    let constant = 40.0 * (2.0 * PI).ln() + values.log().sum(..).item().unwrap().to_f64();
    let expected = ((along.square() / &values).sum(1) + constant) * -0.5;
    for (found, expected) in found.iter().zip(expected.to_vec::<f64>().unwrap()) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    }
}

#[test]
fn a_class_without_variance_is_refused() {
    let x = array([1.0, 5.0, 1.0, 6.0, 2.0, 7.0, 3.0, 8.0]).reshape(&[4, 2]);
    let y = array([4i64, 4, 5, 5]);
    let error = GaussianNB::new().var_smoothing(0.0).fit(&x, &y, ..).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().starts_with("Feature 0 has variance 0 in class 4"), "{error}");
    assert!(GaussianNB::new().fit(&ones(&[4, 2]), &y, ..).is_err());
    let model = GaussianNB::new().fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [4, 4, 5, 5]);
}

#[test]
fn little_smoothing_leaves_probabilities() {
    let x = array([1i64, 0, 1, 1, 0, 1, 0, 1]).reshape(&[4, 2]);
    let y = array([0i64, 0, 1, 1]);
    for alpha in [0.0, 1e-300, 1e-20, 1e-10] {
        let model = BernoulliNB::new().alpha(alpha).fit(&x, &y, ..).unwrap();
        let both = array([1i64, 0, 0, 1, 0, 0]).reshape(&[3, 2]);
        let chances = model.predict_proba(&both).to_vec::<f64>().unwrap();
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "alpha {alpha}: {chances:?}");
        assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [0, 0, 1, 1], "alpha {alpha}");
        let counts = MultinomialNB::new().alpha(alpha).fit(&x, &y, ..).unwrap();
        let chances = counts.predict_proba(&both).to_vec::<f64>().unwrap();
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "alpha {alpha}: {chances:?}");
    }
    // As much smoothing as was asked for.
    let model = BernoulliNB::new().alpha(1e-20).fit(&x, &y, ..).unwrap();
    assert!((model.feature_log_prob[[1, 0]] - (1e-20f64 / 2.0).ln()).abs() < 1e-12);
}

#[test]
fn weights_of_any_sum_leave_probabilities() {
    let x = ones(&[1_000, 1]);
    let y = arange(1_000) % 2;
    let weights = where_(&y.equal(0), 0.1, 1e7);
    let options = FitOptions::new().sample_weight(&weights);
    let model = BernoulliNB::new().alpha(1e-10).fit(&x, &y, options).unwrap();
    let chances = model.predict_proba(&array([0i64, 1]).reshape(&[2, 1])).to_vec::<f64>().unwrap();
    // Neither class had a sample without the feature: the smoothing is a larger part of the lighter one.
    assert!(chances.iter().all(|chance| chance.is_finite()), "{chances:?}");
    assert!((chances[0] - 0.5).abs() < 1e-6, "{chances:?}");
}

#[test]
fn sums_beyond_float64_have_a_class_of_their_own() {
    let generator = default_rng(9);
    let x = generator.normal(0.0, 1.0, &[50, 2]) * 1e200;
    let y = (arange(50) % 2).astype(DType::I64);
    for (name, made) in [
        ("StandardScaler", StandardScaler::new().fit(&x, ..).map(drop)),
        ("Ridge", Ridge::new().fit(&x, &y, ..).map(drop)),
        ("Lasso", Lasso::new().fit(&x, &y, ..).map(drop)),
        ("LogisticRegression", LogisticRegression::new().fit(&x, &y, ..).map(drop)),
        ("PCA", PCA::new().fit(&x, ..).map(drop)),
        ("KMeans", KMeans::new().n_clusters(2).fit(&x, ..).map(drop)),
        ("GaussianNB", GaussianNB::new().fit(&x, &y, ..).map(drop)),
        ("MultinomialNB", MultinomialNB::new().fit(&(x.abs() * 3e107), &y, ..).map(drop)),
    ] {
        let error = made.err().unwrap_or_else(|| panic!("{name}: it is not refused"));
        assert_eq!(error.class(), "OverflowError", "{name}: {error}");
        assert!(error.to_string().starts_with(name), "{error}");
        assert_eq!(error.location().file(), file!(), "{name}");
    }
    // Factors take no squares.
    let line = LinearRegression::new().fit(&x, &x.get(&[(..).into(), 0.into()]), ..).unwrap();
    assert!((line.coef[[0]] - 1.0).abs() < 1e-10, "{line:?}");
}

#[test]
fn weights_of_a_single_feature_are_no_nan() {
    let x = array([1.0, 2.0, 0.0, 3.0]).reshape(&[4, 1]);
    let model = ComplementNB::new().norm(true).fit(&x, &array([4i64, 9, 4, 9]), ..).unwrap();
    assert!(model.feature_log_prob.iter().all(|&weight| weight == 0.0), "{}", model.feature_log_prob);
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [4; 4]);
}

#[test]
fn scores_and_labels_beyond_their_types_are_told() {
    let x = array([1.0, -1.0, 2.0, -2.0, -1.0, 1.0, -2.0, 2.0]).reshape(&[4, 2]);
    let y = array([1i64, 1, 0, 0]);
    let model = LogisticRegression::new().c(1e9).fit(&x, &y, ..).unwrap();
    let error = model.predict(&(&x * 0.0 + 1e308)).to_vec::<i64>().unwrap_err();
    assert!(error.to_string().contains("scores of the model are beyond float64"), "{error}");
    let labels = array([0u64, u64::MAX, 0, u64::MAX]);
    let error = LogisticRegression::new().fit(&x, &labels, ..).unwrap_err();
    assert!(error.to_string().starts_with("Unknown label type: uint64 beyond int64."), "{error}");
}

/// The squares of samples as small as that are below float64.
#[test]
fn huber_regression_of_the_smallest_samples() {
    let x = array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape(&[7, 1]) * 1e-160;
    let y = array([0.1, 1.9, 4.1, 5.9, 8.1, 9.9, 90.0]);
    let model = HuberRegressor::new().fit(&x, &y, ..).unwrap();
    assert!(model.coef[[0]].abs() < 1e-100 && model.intercept.iter().all(|middle| middle.is_finite()));
}
