//! Names of features, and the texts of scikit-learn where they differ from those of the fit.

use tharsis_learn::linear_model::LinearRegression;
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::preprocessing::StandardScaler;
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
