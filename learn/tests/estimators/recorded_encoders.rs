//! Categories, bins and kernels against recorded answers of scikit-learn, each for several ways to cut the
//! samples.

use crate::oracle::{Case, assert_refused, each};
use ndarray::{Array1, ArrayD};
use tharsis_learn::base::Transform;
use tharsis_learn::kernel_approximation::{AdditiveChi2Sampler, Kernel, Nystroem};
use tharsis_learn::preprocessing::{
    BinEncoding, BinStrategy, Categories, DropCategories, FittedKBinsDiscretizer, FittedOrdinalEncoder,
    HandleUnknown, HandleUnknownCode, KBinsDiscretizer, KernelCenterer, OneHotEncoder, OrdinalEncoder,
    TargetEncoder,
};
use tharsis_learn::{FitOptions, Result, Save};
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{DType, Tensor, arange, array, ones, zeros};

/// Tolerance where an answer is a formula of sums.
const EXACT: f64 = 1e-10;

/// Arrays one behind the other.
fn joined<'a>(parts: impl IntoIterator<Item = &'a Array1<f64>>) -> ArrayD<f64> {
    parts.into_iter().flatten().copied().collect::<Array1<f64>>().into_dyn()
}

/// Whether numbers are the same, NaN among them.
fn assert_same(found: &Tensor, expected: &ArrayD<f64>) {
    let found = found.fetch::<f64>().unwrap();
    assert_eq!(found.shape(), expected.shape());
    for (found, expected) in found.iter().zip(expected) {
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{found}, not {expected}");
    }
}

/// The categories of a model, those that are rare, and what it maps samples to and back.
fn same_categories(
    case: &Case<'_>,
    x: &Tensor,
    (categories, rare): (&[Categories], Vec<Categories>),
    model: &(impl Transform + ?Sized),
    back: impl Fn(&Tensor) -> Tensor,
) {
    let reals = |parts: &[Categories]| joined(&parts.iter().map(Categories::to_reals).collect::<Vec<_>>());
    case.attribute("categories", reals(categories), 0.0);
    let made = model.transform(x);
    case.method("transform", &made, 0.0);
    if case.number("min_frequency").is_some() || case.number("max_categories").is_some() {
        case.attribute("infrequent_categories", reals(&rare), 0.0);
    }
    if rare.iter().all(Categories::is_empty) {
        assert_same(&back(&made), &case.x());
    } else {
        assert_eq!(back(&made).check().unwrap_err().class(), "NotImplemented");
    }
}

#[test]
fn encoders_of_categories() {
    each("OneHotEncoder", |case, x| {
        let model = case.configured(OneHotEncoder::new()).fit(x, ..).unwrap();
        let found = (&model.categories[..], model.infrequent_categories());
        same_categories(case, x, found, &model, |made| model.inverse_transform(made));
    });
    each("OrdinalEncoder", |case, x| {
        let model = case.configured(OrdinalEncoder::new()).fit(x, ..).unwrap();
        let found = (&model.categories[..], model.infrequent_categories());
        same_categories(case, x, found, &model, |made| model.inverse_transform(made));
    });
}

/// Integers that are one number in float64.
#[test]
fn integers_keep_all_digits() {
    let large = 1i64 << 53;
    let signed = array([large + 1, large, large + 1, -large - 1]).reshape(&[4, 1]);
    let unsigned = array([u64::MAX, u64::MAX - 1, u64::MAX, 3]).reshape(&[4, 1]);
    for (x, categories) in [
        (&signed, Categories::Integers(ndarray::arr1(&[-large - 1, large, large + 1]))),
        (&unsigned, Categories::Unsigned(ndarray::arr1(&[3, u64::MAX - 1, u64::MAX]))),
    ] {
        let model = OrdinalEncoder::new().fit(x, ..).unwrap();
        assert_eq!(model.categories[0], categories);
        let model = FittedOrdinalEncoder::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let codes = model.transform(x);
        assert_eq!(codes.to_vec::<f64>().unwrap(), [2.0, 1.0, 2.0, 0.0]);
        let is_back = |back: Tensor| {
            assert_eq!(back.dtype().unwrap(), x.dtype().unwrap());
            assert!(back.equal(x).all(..).item().unwrap().is_true());
        };
        is_back(model.inverse_transform(&codes));
        for drop in [DropCategories::None, DropCategories::First] {
            let model = OneHotEncoder::new().drop(drop).fit(x, ..).unwrap();
            assert_eq!(model.categories[0], categories);
            is_back(model.inverse_transform(&model.transform(x)));
        }
        let y = array([1.0, 2.0, 3.0, 5.5]);
        let (model, crossed) = TargetEncoder::new().smooth(0.0).cv(2).fit_transform(x, &y, ..).unwrap();
        assert_eq!(model.transform(x).to_vec::<f64>().unwrap(), [2.0, 2.0, 2.0, 5.5]);
        // The means of the other fold, and of all its targets where it has no such category.
        assert_eq!(crossed.to_vec::<f64>().unwrap(), [3.0, 4.25, 1.0, 1.5]);
        let error = model.transform(&(x.astype(DType::F64) + f64::INFINITY)).execute().map(drop).unwrap_err();
        assert!(error.to_string().starts_with("Input X contains"), "{error}");
    }
    // Rare ones are told in their own type, and new ones are unknown.
    let model = OneHotEncoder::new().min_frequency(2usize).fit(&signed, ..).unwrap();
    assert_eq!(model.infrequent_categories(), [Categories::Integers(ndarray::arr1(&[-large - 1, large]))]);
    let coded = OrdinalEncoder::new().handle_unknown(HandleUnknownCode::UseEncodedValue).unknown_value(-1.0);
    let model = coded.fit(&signed, ..).unwrap();
    let new = array([large + 2, large + 1]).reshape(&[2, 1]);
    assert_eq!(model.transform(&new).to_vec::<f64>().unwrap(), [-1.0, 2.0]);
}

#[test]
fn unknown_categories_are_those_of_scikit_learn() {
    let x = array([3.0, 3.0, 5.0, 7.0, 7.0, 7.0, 9.0]).reshape(&[7, 1]);
    let new = array([4.0, 9.0]).reshape(&[2, 1]);
    let made = |estimator: OneHotEncoder| estimator.fit(&x, ..).unwrap().transform(&new).to_vec::<f64>();
    let error = made(OneHotEncoder::new()).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(
        error.to_string().starts_with("Found unknown categories in column 0 during transform"),
        "{error}"
    );
    let ignore = || OneHotEncoder::new().handle_unknown(HandleUnknown::Ignore);
    assert_eq!(made(ignore()).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(made(ignore().min_frequency(2usize)).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let rare = || OneHotEncoder::new().handle_unknown(HandleUnknown::InfrequentIfExist);
    assert_eq!(made(rare()).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(made(rare().min_frequency(2usize)).unwrap(), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    // Zeros are unknown, or of the category that was left out.
    let model = ignore().fit(&x, ..).unwrap();
    assert!(model.inverse_transform(&zeros(&[1, 4])).to_vec::<f64>().unwrap()[0].is_nan());
    let model = ignore().drop(DropCategories::First).fit(&x, ..).unwrap();
    assert_eq!(model.inverse_transform(&zeros(&[1, 3])).to_vec::<f64>().unwrap(), [3.0]);
    assert_eq!(model.drop_idx(), [Some(0)]);
    let model = OneHotEncoder::new().fit(&x, ..).unwrap();
    let error = model.inverse_transform(&zeros(&[1, 4])).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Samples can not be inverted when drop=None and"), "{error}");
    let error = model.inverse_transform(&zeros(&[1, 3])).check().unwrap_err();
    let text = "Shape of the passed X data is not correct. Expected 4 columns, got 3.";
    assert!(error.to_string().starts_with(text), "{error}");
    let error = model.transform(&array([f64::INFINITY]).reshape(&[1, 1])).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Input X contains"), "{error}");
}

#[test]
fn given_categories_are_taken() {
    let x = array([3.0, 5.0, 3.0]).reshape(&[3, 1]);
    let model = OneHotEncoder::new().categories(&[&[1.0, 3.0, 5.0]]).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&x).to_vec::<f64>().unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    let model = OrdinalEncoder::new().categories(&[&[1.0, 3.0, 5.0]]).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&x).to_vec::<f64>().unwrap(), [1.0, 2.0, 1.0]);
    let refusals: [(&[&[f64]], &str); 4] = [
        (&[&[3.0]], "Found unknown categories in column 0 during fit"),
        (&[&[5.0, 3.0]], "Unsorted categories are not supported for numerical categories"),
        (&[&[f64::NAN, 3.0, 5.0]], "Nan should be the last element in user provided categories"),
        (&[&[3.0, 5.0], &[1.0]], "Shape mismatch: if categories is an array, it has to be of shape"),
    ];
    for (categories, text) in refusals {
        for made in [
            OneHotEncoder::new().categories(categories).fit(&x, ..).map(drop),
            OrdinalEncoder::new().categories(categories).fit(&x, ..).map(drop),
        ] {
            assert_refused(made, "ValueError", text);
        }
    }
}

#[test]
fn codes_of_unknown_and_missing_categories() {
    let nan = f64::NAN;
    let x = array([3.0, 1.0, 3.0, 2.0, 5.0, nan]).reshape(&[3, 2]);
    let coded = || OrdinalEncoder::new().handle_unknown(HandleUnknownCode::UseEncodedValue);
    let model = coded().unknown_value(-1.0).encoded_missing_value(-2.0).fit(&x, ..).unwrap();
    let new = array([4.0, nan, nan, 3.0]).reshape(&[2, 2]);
    assert_eq!(model.transform(&new).to_vec::<f64>().unwrap(), [-1.0, -2.0, -1.0, -1.0]);
    let back =
        model.inverse_transform(&array([-1.0, -2.0, 0.0, 1.0]).reshape(&[2, 2])).to_vec::<f64>().unwrap();
    assert!(back[0].is_nan() && back[1].is_nan());
    assert_eq!(back[2..], [3.0, 2.0]);
    let model = coded().unknown_value(nan).fit(&x, ..).unwrap();
    assert!(model.transform(&new).to_vec::<f64>().unwrap().iter().all(|code| code.is_nan()));
    let model = OrdinalEncoder::new().fit(&x, ..).unwrap();
    let error = model.inverse_transform(&array([9.0, 0.0]).reshape(&[1, 2])).execute().map(drop).unwrap_err();
    assert_eq!(error.class(), "IndexError", "{error}");
    let error = model.transform(&new).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Found unknown categories in column "), "{error}");
    let refusals: [(OrdinalEncoder, &str, &str); 6] = [
        (
            OrdinalEncoder::new().unknown_value(3.0),
            "TypeError",
            "unknown_value should only be set when handle_unknown is 'use_encoded_value', got 3",
        ),
        (
            coded(),
            "TypeError",
            "unknown_value should be an integer or np.nan when handle_unknown is 'use_encoded_value', got None.",
        ),
        (
            coded().unknown_value(1.5),
            "TypeError",
            "unknown_value should be an integer or np.nan when handle_unknown is 'use_encoded_value', got 1.5.",
        ),
        (
            coded().unknown_value(1.0),
            "ValueError",
            "The used value for unknown_value 1 is one of the values already used for encoding the seen categories.",
        ),
        (
            OrdinalEncoder::new().encoded_missing_value(1.0),
            "ValueError",
            "encoded_missing_value (1) is already used to encode a known category in features: [1]",
        ),
        (
            OrdinalEncoder::new().min_frequency(1.0),
            "ValueError",
            "The 'min_frequency' parameter of OrdinalEncoder must be an int in the range [1, inf), a float in the \
             range (0.0, 1.0) or None. Got 1 instead.",
        ),
    ];
    for (estimator, class, text) in refusals {
        assert_refused(estimator.fit(&x, ..), class, text);
    }
}

#[test]
fn k_bins_discretizer() {
    each("KBinsDiscretizer", |case, x| {
        let model = case.configured(KBinsDiscretizer::new()).fit(x, case.options()).unwrap();
        let counts: Array1<f64> = model.n_bins().into_iter().map(|count| count as f64).collect();
        case.attribute("n_bins", counts.into_dyn(), 0.0);
        case.attribute("bin_edges", joined(&model.bin_edges), 1e-9);
        let made = model.transform(x);
        case.method("transform", &made, 0.0);
        // The middles of the bins are in them.
        let back = model.inverse_transform(&made);
        assert_same(&model.transform(&back), &made.fetch::<f64>().unwrap());
    });
}

#[test]
fn constant_features_have_one_bin() {
    let x = tharsis_numeric::concatenate(&[&ones(&[6, 1]), &arange(6).reshape(&[6, 1])], 1);
    let encode = BinEncoding::Ordinal;
    for strategy in [BinStrategy::Uniform, BinStrategy::Quantile, BinStrategy::KMeans] {
        let model = KBinsDiscretizer::new().n_bins(3).strategy(strategy).encode(encode).fit(&x, ..).unwrap();
        assert_eq!(model.n_bins(), [1, 3]);
        assert_eq!(model.bin_edges[0].to_vec(), [f64::NEG_INFINITY, f64::INFINITY]);
        let made = model.transform(&x);
        assert_eq!(made.to_vec::<f64>().unwrap()[8..], [0.0, 2.0, 0.0, 2.0]);
        assert!(model.inverse_transform(&made).to_vec::<f64>().unwrap()[0].is_nan());
        let error =
            model.inverse_transform(&array([0.0, 9.0]).reshape(&[1, 2])).execute().map(drop).unwrap_err();
        assert_eq!(error.class(), "IndexError", "{error}");
    }
    let weights = FitOptions::new().sample_weight(&ones(&[6]));
    let refusals: [(Result<()>, &str); 6] = [
        (
            KBinsDiscretizer::new().n_bins(1).fit(&x, ..).map(drop),
            "The 'n_bins' parameter of KBinsDiscretizer must be an int in the range [2, inf) or an array-like. Got \
             1 instead.",
        ),
        (
            KBinsDiscretizer::new().n_bins(&[2, 3, 4][..]).fit(&x, ..).map(drop),
            "n_bins must be a scalar or array of shape (n_features,).",
        ),
        (
            KBinsDiscretizer::new().n_bins(&[1, 0][..]).fit(&x, ..).map(drop),
            "KBinsDiscretizer received an invalid number of bins at indices 0, 1. Number of bins must be at least 2, \
             and must be an int.",
        ),
        (
            KBinsDiscretizer::new().quantile_method(Method::Linear).fit(&x, weights).map(drop),
            "When fitting with strategy='quantile' and sample weights, quantile_method should either be set to \
             'averaged_inverted_cdf' or 'inverted_cdf', got quantile_method='linear' instead.",
        ),
        (
            KBinsDiscretizer::new().quantile_method(Method::Lower).fit(&x, ..).map(drop),
            "The 'quantile_method' parameter of KBinsDiscretizer must be a str among",
        ),
        (
            KBinsDiscretizer::new().fit(&x, FitOptions::new().sample_weight(&zeros(&[6]))).map(drop),
            "Sample weights must contain at least one non-zero number.",
        ),
    ];
    for (made, text) in refusals {
        assert_refused(made, "ValueError", text);
    }
}

/// As in scikit-learn, a feature whose edges are within 1e-8 has no bin.
#[test]
fn features_without_bins_come_back_from_files() {
    let x = (arange(6) * 1e-9).reshape(&[6, 1]);
    let model = KBinsDiscretizer::new().encode(BinEncoding::Ordinal).fit(&x, ..).unwrap();
    assert_eq!((model.n_bins(), model.bin_edges[0].len()), (vec![0], 1));
    let read = FittedKBinsDiscretizer::from_bytes(&model.to_bytes().unwrap()).unwrap();
    for model in [&model, &read] {
        assert_eq!(model.transform(&x).to_vec::<f64>().unwrap(), [0.0; 6]);
    }
    let columns = KBinsDiscretizer::new().fit(&x, ..).map(drop);
    assert_refused(columns, "ValueError", "feature 0 has no bin: its numbers are within 1e-8");
}

#[test]
fn kernel_centerer() {
    each("KernelCenterer", |case, x| {
        let model = KernelCenterer::new().fit(x, ..).unwrap();
        case.attribute("K_fit_rows", model.k_fit_rows.clone().into_dyn(), EXACT);
        case.attribute("K_fit_all", ndarray::arr0(model.k_fit_all).into_dyn(), EXACT);
        case.method("transform", &model.transform(x), EXACT);
    });
    let error = KernelCenterer::new().fit(&ones(&[2, 3]), ..).map(drop).unwrap_err();
    assert!(
        error.to_string().starts_with("Kernel matrix must be a square matrix. Input is a 2x3 matrix."),
        "{error}"
    );
}

#[test]
fn additive_chi2_sampler() {
    each("AdditiveChi2Sampler", |case, x| {
        let mut estimator = AdditiveChi2Sampler::new();
        if let Some(steps) = case.number("sample_steps") {
            estimator = estimator.sample_steps(steps as usize);
        }
        if let Some(interval) = case.number("sample_interval") {
            estimator = estimator.sample_interval(interval);
        }
        case.method("transform", &estimator.fit(x, ..).unwrap().transform(x), EXACT);
    });
    let x = array([1.0, 0.0]).reshape(&[2, 1]);
    let model = AdditiveChi2Sampler::new().fit(&x, ..).unwrap();
    let text = "Negative values in data passed to X in AdditiveChi2Sampler.";
    let error = model.transform(&-&x).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with(text), "{error}");
    let error = AdditiveChi2Sampler::new().fit(&-&x, ..).map(drop).unwrap_err();
    assert!(error.to_string().starts_with(text), "{error}");
    let error = AdditiveChi2Sampler::new().sample_steps(4).fit(&x, ..).map(drop).unwrap_err();
    let text = "If sample_steps is not in [1, 2, 3], you need to provide sample_interval";
    assert!(error.to_string().starts_with(text), "{error}");
}

/// Of all samples the choice does not matter: the products of features are the kernel, or nearly so where it
/// has no inverse.
#[test]
fn nystroem_of_all_samples() {
    each("Nystroem", |case, x| {
        let kernel = match case.text("kernel") {
            Some("laplacian") => Kernel::Laplacian,
            Some("poly") => Kernel::Poly,
            Some("sigmoid") => Kernel::Sigmoid,
            Some("cosine") => Kernel::Cosine,
            Some("linear") => Kernel::Linear,
            _ => Kernel::Rbf,
        };
        let mut estimator = Nystroem::new().kernel(kernel).random_state(5);
        if let Some(gamma) = case.number("gamma") {
            estimator = estimator.gamma(gamma);
        }
        if let Some(degree) = case.number("degree") {
            estimator = estimator.degree(degree);
        }
        if let Some(coef0) = case.number("coef0") {
            estimator = estimator.coef0(coef0);
        }
        let made = estimator.fit(x, ..).unwrap().transform(x).get(&[(..9i64).into()]);
        let expected = Tensor::from_array(&case.result("transform"));
        let [found, expected] = [&made, &expected].map(|t| t.matmul(&t.t()).to_vec::<f64>().unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{kernel:?}: {found}, not {expected}"
            );
        }
    });
}
