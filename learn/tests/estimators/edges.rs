//! Data at the edges of what maps and scores of features take, with numbers of scikit-learn 1.9.1.

use tharsis_learn::feature_selection::{SelectKBest, f_classif};
use tharsis_learn::impute::{MissingIndicator, SimpleImputer};
use tharsis_learn::preprocessing::{PolynomialFeatures, PowerTransformer};
use tharsis_numeric::{DType, Tensor, arange, array, ones, stack};

/// Samples of one feature.
fn column(numbers: &[f64]) -> Tensor {
    Tensor::from_elements(&[numbers.len(), 1], numbers)
}

/// 21 numbers from exp(-2) to exp(2), evenly on a scale of logarithms.
fn logarithmic() -> Vec<f64> {
    (0..21).map(|at| (-2.0 + 0.2 * f64::from(at)).exp()).collect()
}

/// scikit-learn's scores of 0.1 are what rounding makes of them: 8.67 for 1000 samples, -3.5 for 10.
#[test]
fn a_constant_that_is_no_binary_fraction_is_not_chosen() {
    for rows in [10, 1000, 100_000] {
        let x = stack(&[&(ones(&[rows]) * 0.1), &(arange(rows) % 7).astype(DType::F64)], 1);
        let y = arange(rows) % 3;
        let found = f_classif(&x, &y, ..).unwrap();
        assert!(found.scores[0].is_nan() && found.pvalues[0].is_nan(), "{found:?}");
        if rows == 1000 {
            assert!((found.scores[1] - 5.24611632e-3).abs() < 1e-10, "{found:?}");
        }
        let model = SelectKBest::new().k(1).fit(&x, &y, ..).unwrap();
        assert_eq!(model.support(), [false, true]);
    }
}

#[test]
fn numbers_for_missing_ones_are_of_the_dtype_of_samples() {
    let x = array([1e20f32, 1.0, 2.0, 0.1, 4.0, 3.0]).reshape(&[3, 2]);
    let model = SimpleImputer::new().missing_values(1e20).add_indicator(true).fit(&x, ..).unwrap();
    assert_eq!(model.statistics[0], 3.0);
    assert_eq!(model.transform(&x).to_vec::<f32>().unwrap()[..3], [3.0, 1.0, 1.0]);
    let model = SimpleImputer::new().missing_values(0.1).fit(&x, ..).unwrap();
    assert_eq!(model.statistics[1], 2.0);
    assert_eq!(model.transform(&x).to_vec::<f32>().unwrap()[3], 2.0);
    let model = MissingIndicator::new().missing_values(0.1).fit(&x, ..).unwrap();
    assert_eq!(model.features, [1]);
    assert_eq!(model.transform(&x).to_vec::<bool>().unwrap(), [false, true, false]);
    assert_eq!(model.transform(&x.astype(DType::F64)).to_vec::<bool>().unwrap(), [false; 3]);
}

#[test]
fn missing_numbers_are_new_to_a_fit_without_any() {
    let complete = ones(&[3, 2]);
    let model = MissingIndicator::new().fit(&complete, ..).unwrap();
    assert_eq!(*model.transform(&complete).execute().unwrap().shape().unwrap(), [3, 0]);
    let error = model.transform(&(&complete * f64::NAN)).execute().map(drop).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("have missing values in transform"), "{error}");
}

#[test]
fn exponents_of_small_numbers_are_far_away() {
    for (scale, exponent) in [(1e-3, -406.90044668), (1e-5, -40629.21154752)] {
        let x: Vec<f64> = logarithmic().iter().map(|number| number * scale).collect();
        let model = PowerTransformer::new().fit(&column(&x), ..).unwrap();
        assert!(model.converged && (model.lambdas[0] / exponent - 1.0).abs() < 1e-5, "{}", model.lambdas);
    }
}

#[test]
fn exponents_of_products_are_an_expression() {
    let powers = |columns: usize, degree: usize| {
        PolynomialFeatures::new().degree(degree).fit(&ones(&[1, columns]), ..).unwrap().powers()
    };
    let small = powers(2, 2);
    assert_eq!(small.dtype().unwrap(), DType::I64);
    assert_eq!(small.to_vec::<i64>().unwrap(), [0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 0, 2]);
    // 8 TB.
    let error = powers(1_000_000, 1).execute().map(drop).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
}
