//! Names of features, and the texts of scikit-learn where they differ from those of the fit.

use tharsis_learn::base::Transform;
use tharsis_learn::cluster::KMeans;
use tharsis_learn::compose::{ColumnTransformer, Remainder};
use tharsis_learn::decomposition::PCA;
use tharsis_learn::feature_selection::VarianceThreshold;
use tharsis_learn::impute::SimpleImputer;
use tharsis_learn::kernel_approximation::AdditiveChi2Sampler;
use tharsis_learn::linear_model::LinearRegression;
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::pipeline::{FeatureUnion, Pipeline};
use tharsis_learn::preprocessing::{
    KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler,
};
use tharsis_learn::{Named, Table};
use tharsis_numeric::{Tensor, arange, array};

fn samples(columns: usize) -> Tensor {
    let x = arange(6 * columns).reshape(&[6, columns as i64]);
    (&x * &x) % 11
}

#[test]
fn other_names_have_the_texts_of_scikit_learn() {
    let y = array([1.0, 3.0, 2.0, 0.0, 5.0, 4.0]);
    let table = |names: &[&str]| Table::new(names.iter().copied(), &samples(names.len())).unwrap();
    let model = Named::new(LinearRegression::new()).fit(&table(&["a", "b", "c"]), &y, ..).unwrap();
    assert_eq!(model.feature_names_in, ["a", "b", "c"]);
    let start = "The feature names should match those that were passed during fit.\n";
    let cases: [(&[&str], &str); 4] = [
        (&["b", "a", "c"], "Feature names must be in the same order as they were in fit.\n"),
        (
            &["a", "b", "z"],
            "Feature names unseen at fit time:\n- z\nFeature names seen at fit time, yet now missing:\n- c\n",
        ),
        (&["a", "b"], "Feature names seen at fit time, yet now missing:\n- c\n"),
        (
            &["a", "b", "c", "k", "j", "i", "h", "g", "f"],
            "Feature names unseen at fit time:\n- f\n- g\n- h\n- i\n- j\n- ...\n",
        ),
    ];
    for (names, rest) in cases {
        let error = model.predict(&table(names)).check().unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().starts_with(&format!("{start}{rest}")), "{error}");
        let error = model.score(&table(names), &y, ..).unwrap_err();
        assert!(error.to_string().starts_with(start), "{error}");
    }
}

#[test]
fn models_with_names_are_those_without() {
    let table = Table::new(["a", "b"], &samples(2)).unwrap();
    let labels = array([0i64, 1, 1, 0, 1, 0]);
    let (plain, named) = (
        GaussianNB::new().fit(table.x(), &labels, ..).unwrap(),
        Named::new(GaussianNB::new()).fit(&table, &labels, ..).unwrap(),
    );
    let bits = |chances: Tensor| -> Vec<u64> {
        chances.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
    };
    assert_eq!(bits(plain.predict_proba(table.x())), bits(named.predict_proba(&table)));
    assert_eq!(plain.score(table.x(), &labels, ..).unwrap(), named.score(&table, &labels, ..).unwrap());
    let scaler = Named::new(StandardScaler::new()).fit_unsupervised(&table, ..).unwrap();
    assert_eq!(bits(scaler.transform(&table)), bits(scaler.model.transform(table.x())));
    assert!(scaler.to_string().ends_with("features: a, b"));
}

#[test]
fn tables_have_a_name_for_each_feature() {
    let text = |names: &[&str]| Table::new(names.iter().copied(), &samples(2)).unwrap_err().to_string();
    assert!(text(&["a"]).starts_with("1 names for 2 features"));
    assert!(text(&["a", "a"]).starts_with("the name 'a' stands for two features"));
    assert!(Table::new(["a"], &arange(3)).is_err());
}

/// A name for each column of the result, as scikit-learn has it.
fn check_names(model: &dyn Transform, x: &Tensor, expected: &str) {
    let expected: Vec<&str> = expected.split(", ").collect();
    let names = ["a".to_owned(), "b".to_owned()];
    assert_eq!(model.feature_names_out(&names).unwrap(), expected);
    assert_eq!(model.transform(x).execute().unwrap().shape().unwrap()[1], expected.len());
    // Another number of names is that of other samples.
    let fewer = model.feature_names_out(&names[..1]);
    assert!(fewer.is_none() || fewer.unwrap() == expected, "{expected:?}");
}

#[test]
fn features_of_results_have_the_names_of_scikit_learn() {
    let x = array([0.5, 1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 7.0, 0.5, 7.0, 2.0, 1.0]).reshape(&[6, 2]);
    let gaps = array([f64::NAN, 1.0, 2.0, 4.0]).reshape(&[2, 2]);
    let constant = array([3.0, 1.0, 3.0, 2.0]).reshape(&[2, 2]);
    check_names(&StandardScaler::new().fit(&x, ..).unwrap(), &x, "a, b");
    check_names(&PCA::new().fit(&x, ..).unwrap(), &x, "pca0, pca1");
    check_names(&KMeans::new().n_clusters(3).fit(&x, ..).unwrap(), &x, "kmeans0, kmeans1, kmeans2");
    check_names(&VarianceThreshold::new().fit(&constant, ..).unwrap(), &constant, "b");
    check_names(
        &SimpleImputer::new().add_indicator(true).fit(&gaps, ..).unwrap(),
        &gaps,
        "a, b, missingindicator_a",
    );
    check_names(
        &PolynomialFeatures::new().degree(3).include_bias(false).fit(&x, ..).unwrap(),
        &x,
        "a, b, a^2, a b, b^2, a^3, a^2 b, a b^2, b^3",
    );
    check_names(
        &SplineTransformer::new().n_knots(2).degree(1).fit(&x, ..).unwrap(),
        &x,
        "a_sp_0, a_sp_1, b_sp_0, b_sp_1",
    );
    check_names(&KBinsDiscretizer::new().n_bins(2).fit(&x, ..).unwrap(), &x, "a_0.0, a_1.0, b_0.0, b_1.0");
    check_names(
        &AdditiveChi2Sampler::new().sample_steps(2).fit(&x, ..).unwrap(),
        &x,
        "additivechi2sampler_a_sqrt, additivechi2sampler_b_sqrt, additivechi2sampler_a_cos1, \
         additivechi2sampler_b_cos1, additivechi2sampler_a_sin1, additivechi2sampler_b_sin1",
    );
    let code = OneHotEncoder::new();
    check_names(
        &code.clone().max_categories(2).fit(&x, ..).unwrap(),
        &x,
        "a_2.0, a_infrequent_sklearn, b_1.0, b_infrequent_sklearn",
    );
    let columns = ColumnTransformer::new().part("code", code, [0]).remainder(Remainder::passthrough());
    check_names(&columns.fit(&x, ..).unwrap(), &x, "code__a_0.5, code__a_2.0, code__a_4.0, remainder__b");
    let union = FeatureUnion::new().part("scale", StandardScaler::new()).passthrough("as");
    check_names(&union.fit(&x, ..).unwrap(), &x, "scale__a, scale__b, as__a, as__b");
    let pipeline =
        Pipeline::new().step("powers", PolynomialFeatures::new()).last("scale", StandardScaler::new());
    check_names(&pipeline.fit_unsupervised(&x, ..).unwrap(), &x, "1, a, b, a^2, a b, b^2");
}
