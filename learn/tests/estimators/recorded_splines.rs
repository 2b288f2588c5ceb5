//! Labels, splines and targets of categories against recorded answers of scikit-learn, the latter for several
//! ways to cut the samples.

use crate::oracle::{Case, assert_refused, each};
use ndarray::Array2;
use tharsis_learn::base::{Predict, Transform};
use tharsis_learn::dummy::{ClassStrategy, DummyClassifier};
use tharsis_learn::kernel_approximation::{AdditiveChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler};
use tharsis_learn::linear_model::Ridge;
use tharsis_learn::naive_bayes::{CategoricalNB, ComplementNB};
use tharsis_learn::neighbors::NearestCentroid;
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{
    Extrapolation, KBinsDiscretizer, LabelBinarizer, LabelEncoder, OneHotEncoder, OrdinalEncoder,
    SplineTransformer, TargetEncoder, TargetType,
};
use tharsis_learn::random_projection::GaussianRandomProjection;
use tharsis_learn::{FitOptions, Result};
use tharsis_numeric::{Chunks, DType, Tensor, arange, array, ones, zeros};

/// A third of 0.9, three times, is less than 0.9.
#[test]
fn the_largest_number_is_the_last_knot() {
    let x = array([0.0, 0.9]).reshape(&[2, 1]);
    for n_knots in 2..12 {
        let splines = SplineTransformer::new().n_knots(n_knots).extrapolation(Extrapolation::Error);
        let model = splines.fit(&x, ..).unwrap();
        // Behind three knots before the first one.
        assert_eq!(model.knots[[0, n_knots + 2]], 0.9, "{n_knots}");
        assert!(model.transform(&x).execute().is_ok(), "{n_knots}");
    }
}

/// Classes, codes and refusals of scikit-learn 1.9.1.
#[test]
fn label_encoder() {
    let y = array([5i64, 3, 5, 9]);
    let model = LabelEncoder::new().fit(&y, ..).unwrap();
    assert_eq!(model.classes, [3, 5, 9]);
    assert_eq!(model.transform(&array([3.0, 9.0])).to_vec::<i64>().unwrap(), [0, 2]);
    assert_eq!(model.inverse_transform(&model.transform(&y)).to_vec::<i64>().unwrap(), [5, 3, 5, 9]);
    for wrong in [model.transform(&array([4i64, 3])), model.inverse_transform(&array([0i64, 5]))] {
        assert_refused(wrong.execute(), "ValueError", "y contains previously unseen labels");
    }
    for cut in [vec![1; 4], vec![3, 1]] {
        let y = y.rechunk(Chunks::Lengths(vec![cut])).execute().unwrap();
        assert_eq!(LabelEncoder::new().fit(&y, ..).unwrap().classes, model.classes);
        assert_eq!(model.transform(&y).to_vec::<i64>().unwrap(), [1, 0, 1, 2]);
    }
    assert_eq!(LabelEncoder::new().fit(&array([true, false]), ..).unwrap().classes, [0, 1]);
    // The bits of the largest uint64 are those of -1.
    let model = LabelEncoder::new().fit(&array([-1i64, 3, 9]), ..).unwrap();
    assert_eq!(model.transform(&array([9u64, 3])).to_vec::<i64>().unwrap(), [2, 1]);
    let wrong = model.transform(&array([u64::MAX, 3]));
    assert_refused(wrong.execute(), "ValueError", "y contains previously unseen labels");
    let refusals = [
        (LabelEncoder::new().fit(&ones(&[2, 2]), ..).map(drop), "y should be a 1d array"),
        (LabelEncoder::new().fit(&array([0.5, 1.0]), ..).map(drop), "Unknown label type"),
        (LabelEncoder::new().fit(&array([f64::NAN, 1.0]), ..).map(drop), "Input y contains NaN"),
    ];
    for (made, text) in refusals {
        let error = made.unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Columns of scikit-learn 1.9.1 for three labels, two, and one.
#[test]
fn label_binarizer() {
    let marked = || LabelBinarizer::new().neg_label(-1).pos_label(2);
    let cases: [(&[i64], &[i64], &[i64]); 3] = [
        (&[5, 3, 5, 9], &[-1, 2, -1, 2, -1, -1, -1, 2, -1, -1, -1, 2], &[2, -1, -1, -1, -1, -1]),
        (&[5, 3, 5], &[2, -1, 2], &[-1, -1]),
        (&[5, 5], &[-1, -1], &[-1, -1]),
    ];
    for (labels, expected, of_new) in cases {
        let y = Tensor::from_elements(&[labels.len()], labels);
        let model = marked().fit(&y, ..).unwrap();
        let made = model.transform(&y);
        assert_eq!(made.ndim().unwrap(), 2);
        assert_eq!(made.to_vec::<i64>().unwrap(), expected);
        assert_eq!(model.inverse_transform(&made).to_vec::<i64>().unwrap(), labels);
        assert_eq!(model.transform(&array([3i64, 77])).to_vec::<i64>().unwrap(), of_new);
    }
    let three = marked().fit(&array([5i64, 3, 9]), ..).unwrap();
    let scores = array([0.1, 0.9, 0.95, 0.5, 0.2, 0.3]).reshape(&[2, 3]);
    assert_eq!(three.inverse_transform(&scores).to_vec::<i64>().unwrap(), [9, 3]);
    let signed = marked().fit(&array([-1i64, 3, 9]), ..).unwrap();
    let made = signed.transform(&array([u64::MAX, 3]));
    assert_eq!(made.to_vec::<i64>().unwrap(), [-1, -1, -1, -1, 2, -1]);
    let two = marked().fit(&array([5i64, 3]), ..).unwrap();
    assert_eq!(two.inverse_transform(&array([0.4, 0.6])).to_vec::<i64>().unwrap(), [3, 5]);
    let refusals = [
        (two.inverse_transform(&scores), "output_type='binary', but y.shape = "),
        (
            three.inverse_transform(&ones(&[2, 2])),
            "The number of class is not equal to the number of dimension",
        ),
        (two.transform(&ones(&[2, 2])), "y should be a 1d array"),
    ];
    for (made, text) in refusals {
        assert_refused(made.check(), "ValueError", text);
    }
    let error = LabelBinarizer::new().neg_label(1).fit(&array([1i64, 2]), ..).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("neg_label=1 must be strictly less than pos_label=1."), "{error}");
}

fn splines(case: &Case<'_>) -> SplineTransformer {
    let estimator = case.configured(SplineTransformer::new());
    match case.array("given") {
        Some(given) => estimator.knots(&given.into_dimensionality().unwrap()),
        None => estimator,
    }
}

#[test]
fn spline_transformer() {
    each("SplineTransformer", |case, x| {
        let model = splines(case).fit(x, case.options()).unwrap();
        let made = model.transform(x);
        case.method("transform", &made, 1e-9);
        assert_eq!(made.shape().unwrap()[1], model.n_features_out());
    });
}

/// Beyond the knots; numbers of scikit-learn 1.9.1.
#[test]
fn splines_beyond_the_knots() {
    let x = array([0.0, 1.0, 2.0, 4.0]).reshape(&[4, 1]);
    let far = array([-1.5, 0.0, 1.3, 4.0, 6.0]).reshape(&[5, 1]);
    let cases: [(Extrapolation, usize, &[f64]); 8] = [
        (
            Extrapolation::Constant,
            1,
            &[
                1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.025, 0.975, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0,
                0.0, 1.0,
            ],
        ),
        (
            Extrapolation::Constant,
            3,
            &[
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.0,
                0.0,
                0.0,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.0,
                0.0,
                0.0,
                2.604167e-06,
                0.179471354167,
                0.666049479167,
                0.1544765625,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.0,
                0.0,
                0.0,
                0.166666666667,
                0.666666666667,
                0.166666666667,
            ],
        ),
        (
            Extrapolation::Linear,
            0,
            &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        ),
        (
            Extrapolation::Linear,
            2,
            &[
                1.625, -0.625, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0003125, 0.524375, 0.4753125, 0.0,
                0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, -1.0, 2.0,
            ],
        ),
        (
            Extrapolation::Continue,
            1,
            &[
                2.125, -1.125, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.025, 0.975, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0,
                0.0, -1.5, 2.5,
            ],
        ),
        (
            Extrapolation::Continue,
            3,
            &[
                1.599283854167,
                -1.310872395833,
                0.948893229167,
                -0.2373046875,
                0.0,
                0.0,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.0,
                0.0,
                0.0,
                2.604167e-06,
                0.179471354167,
                0.666049479167,
                0.1544765625,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.0,
                0.0,
                -0.5625,
                2.229166666667,
                -3.270833333333,
                2.604166666667,
            ],
        ),
        (
            Extrapolation::Periodic,
            0,
            &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        ),
        (
            Extrapolation::Periodic,
            3,
            &[
                0.652018229167,
                0.111979166667,
                0.236002604167,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.154479166667,
                0.179471354167,
                0.666049479167,
                0.166666666667,
                0.666666666667,
                0.166666666667,
                0.479166666667,
                0.041666666667,
                0.479166666667,
            ],
        ),
    ];
    for (extrapolation, degree, expected) in cases {
        let estimator = SplineTransformer::new().n_knots(4).degree(degree).extrapolation(extrapolation);
        let found = estimator.fit(&x, ..).unwrap().transform(&far).to_vec::<f64>().unwrap();
        assert_eq!(found.len(), expected.len(), "{extrapolation:?}, {degree}");
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (found - expected).abs() < 1e-9,
                "{extrapolation:?}, {degree}: [{at}] {found}, not {expected}"
            );
        }
    }
    let model = SplineTransformer::new().extrapolation(Extrapolation::Error).fit(&x, ..).unwrap();
    assert!(model.transform(&x).execute().is_ok());
    let error = model.transform(&far).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("`X` contains values beyond the limits of the knots."), "{error}");
    // A bias alone, which is left out.
    let model = SplineTransformer::new().n_knots(2).degree(0).include_bias(false).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&far).fetch::<f64>().unwrap().shape(), [5, 0]);
    // Splines of a constant have no width.
    let model = SplineTransformer::new().fit(&ones(&[4, 1]), ..).unwrap();
    assert!(model.transform(&ones(&[2, 1])).to_vec::<f64>().unwrap().iter().all(|spline| *spline == 0.0));
}

#[test]
fn mistakes_of_splines_are_refused_as_by_scikit_learn() {
    let x = array([0.0, 1.0, 2.0, 4.0]).reshape(&[2, 2]);
    let given = |rows: usize, knots: &[f64]| {
        let knots = Array2::from_shape_vec((rows, knots.len() / rows), knots.to_vec()).unwrap();
        SplineTransformer::new().knots(&knots).fit(&x, ..).map(drop)
    };
    let refusals: [(Result<()>, &str); 8] = [
        (
            SplineTransformer::new().n_knots(1).fit(&x, ..).map(drop),
            "The 'n_knots' parameter of SplineTransformer must be an int in the range [2, inf). Got 1 instead.",
        ),
        (
            SplineTransformer::new().n_knots(3).extrapolation(Extrapolation::Periodic).fit(&x, ..).map(drop),
            "Periodic splines require degree < n_knots. Got n_knots=3 and degree=3.",
        ),
        (given(1, &[0.0, 0.0]), "Number of knots, knots.shape[0], must be >= 2."),
        (given(2, &[0.0, 0.0, 0.0, 1.0]), "knots must be sorted without duplicates."),
        (given(2, &[0.0, 1.0]), "knots.shape[1] == n_features is violated."),
        (SplineTransformer::new().fit(&(&x * f64::NAN), ..).map(drop), "Input X contains NaN"),
        (
            SplineTransformer::new().fit(&x, FitOptions::new().sample_weight(&zeros(&[2]))).map(drop),
            "Sample weights must contain at least one non-zero number.",
        ),
        (
            SplineTransformer::new().degree(1 << 20).fit(&x, ..).map(drop),
            "The 'degree' parameter of SplineTransformer must be an int of at most 2^8.",
        ),
    ];
    for (made, text) in refusals {
        assert_refused(made, "ValueError", text);
    }
}

/// A map of samples.
type Map = Box<dyn Fn(&Tensor) -> Tensor>;

/// Rows of which only a run tells the number.
#[test]
fn maps_take_samples_of_unknown_number() {
    let x = (arange(120).reshape(&[40, 3]) * 7 % 11).astype(DType::F64).execute().unwrap();
    let few = x.filter(&x.get(&[(..).into(), 0.into()]).greater(3.0));
    let known = few.compute_chunk_sizes().unwrap();
    let y = arange(40) % 3;
    let maps: Vec<(&str, Map)> = vec![
        ("OneHotEncoder", map(OneHotEncoder::new().fit(&x, ..))),
        ("OrdinalEncoder", map(OrdinalEncoder::new().fit(&x, ..))),
        ("KBinsDiscretizer", map(KBinsDiscretizer::new().fit(&x, ..))),
        ("SplineTransformer", map(SplineTransformer::new().fit(&x, ..))),
        ("GaussianRandomProjection", map(GaussianRandomProjection::new().n_components(2).fit(&x, ..))),
        ("RBFSampler", map(RBFSampler::new().n_components(4).fit(&x, ..))),
        ("AdditiveChi2Sampler", map(AdditiveChi2Sampler::new().fit(&x, ..))),
        ("PolynomialCountSketch", map(PolynomialCountSketch::new().n_components(4).fit(&x, ..))),
        ("Nystroem", map(Nystroem::new().n_components(4).fit(&x, ..))),
        ("DummyClassifier", label(DummyClassifier::new().strategy(ClassStrategy::Uniform).fit(&x, &y, ..))),
        ("NearestCentroid", label(NearestCentroid::new().fit(&x, &y, ..))),
        ("CategoricalNB", label(CategoricalNB::new().fit(&x, &y, ..))),
        ("ComplementNB", label(ComplementNB::new().fit(&x, &y, ..))),
    ];
    for (name, of) in maps {
        let [unknown, known] =
            [&few, &known].map(|x| of(x).astype(DType::F64).ravel().to_vec::<f64>().unwrap());
        assert_eq!(unknown.len(), known.len(), "{name}");
        let apart = unknown.iter().zip(&known).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-9, "{name}: {apart}");
    }
}

/// The map of a model.
fn map<M: Transform + 'static>(model: Result<M>) -> Map {
    let model = model.unwrap();
    Box::new(move |x| model.transform(x))
}

/// The labels of a model.
fn label<M: Predict + 'static>(model: Result<M>) -> Map {
    let model = model.unwrap();
    Box::new(move |x| model.predict(x))
}

fn target_encoder_of(case: &Case<'_>) -> (TargetEncoder, Tensor) {
    let mut estimator = TargetEncoder::new();
    if let Some(smooth) = case.number("smooth") {
        estimator = estimator.smooth(smooth);
    }
    let y = case.y();
    match case.text("of") {
        // Classes of a target that is a number.
        Some("binary") => (estimator, y.greater(2.0).astype(DType::I64)),
        Some(_) => (estimator, y.greater(1.0).astype(DType::I64) * 3 + y.greater(2.5).astype(DType::I64)),
        None => (estimator, y),
    }
}

#[test]
fn target_encoder() {
    each("TargetEncoder", |case, x| {
        let (estimator, y) = target_encoder_of(case);
        let (model, crossed) = estimator.fit_transform(x, &y, ..).unwrap();
        let joined: Vec<f64> =
            model.encodings.iter().flat_map(|of| of.t().iter().copied().collect::<Vec<_>>()).collect();
        case.attribute("encodings", ndarray::Array1::from(joined).into_dyn(), 1e-10);
        let mean: Vec<f64> = model.target_mean.to_vec();
        let recorded = if mean.len() == 1 {
            ndarray::arr0(mean[0]).into_dyn()
        } else {
            ndarray::Array1::from(mean).into_dyn()
        };
        case.attribute("target_mean", recorded, 1e-12);
        case.method("transform", &model.transform(x), 1e-10);
        // By folds, as scikit-learn's KFold and StratifiedKFold make them.
        case.method("fit_transform", &crossed, 1e-10);
        let alone = estimator.fit(x, &y, ..).unwrap();
        assert_eq!(alone.transform(x).to_vec::<f64>().unwrap(), model.transform(x).to_vec::<f64>().unwrap());
    });
}

#[test]
fn pipelines_map_no_sample_by_its_own_target() {
    let x = (arange(30) % 3).reshape(&[30, 1]);
    let y = (arange(30) * 7 % 11).astype(DType::F64) + 0.5;
    let model = Pipeline::new()
        .step("encode", TargetEncoder::new())
        .last("ridge", Ridge::new())
        .fit(&x, &y, ..)
        .unwrap();
    let (encoder, crossed) = TargetEncoder::new().fit_transform(&x, &y, ..).unwrap();
    let expected = Ridge::new().fit(&crossed, &y, ..).unwrap();
    assert_eq!(model.last().coef, expected.coef);
    assert_ne!(Ridge::new().fit(&encoder.transform(&x), &y, ..).unwrap().coef, expected.coef);
    // New samples are mapped by all targets.
    let [found, wanted] =
        [model.predict(&x), expected.predict(&encoder.transform(&x))].map(|t| t.to_vec::<f64>().unwrap());
    assert_eq!(found, wanted);
}

#[test]
fn targets_of_one_kind_and_mistakes() {
    let x = array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0]).reshape(&[6, 1]);
    let y = array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0]);
    let model = TargetEncoder::new().fit(&x, &(ones(&[6]) * 2.5), ..).unwrap();
    assert_eq!(model.encodings[0].column(0).to_vec(), [2.5; 3]);
    let model = TargetEncoder::new().fit(&x, &(arange(6) % 3), ..).unwrap();
    assert_eq!((model.target_type, model.classes.clone()), (TargetType::Multiclass, Some(vec![0, 1, 2])));
    assert_eq!(
        model.transform(&array([9.0]).reshape(&[1, 1])).to_vec::<f64>().unwrap(),
        model.target_mean.to_vec()
    );
    let continuous =
        TargetEncoder::new().target_type(TargetType::Continuous).fit(&x, &arange(6), ..).unwrap();
    assert_eq!((continuous.target_type, continuous.classes), (TargetType::Continuous, None));
    let refusals: [(Result<()>, &str, &str); 6] = [
        (
            TargetEncoder::new().smooth(-1.0).fit(&x, &y, ..).map(drop),
            "ValueError",
            "The 'smooth' parameter of TargetEncoder must be a float in the range [0.0, inf). Got -1 instead.",
        ),
        (
            TargetEncoder::new().cv(1).fit(&x, &y, ..).map(drop),
            "ValueError",
            "The 'cv' parameter of TargetEncoder must be an int in the range [2, inf). Got 1 instead.",
        ),
        (
            TargetEncoder::new().cv(9).fit_transform(&x, &y, ..).map(drop),
            "ValueError",
            "Cannot have number of splits",
        ),
        (
            TargetEncoder::new().target_type(TargetType::Binary).fit(&x, &arange(6), ..).map(drop),
            "ValueError",
            "The 'target_type' parameter of TargetEncoder must be one that fits y.",
        ),
        (TargetEncoder::new().fit(&x, &(&y * f64::NAN), ..).map(drop), "ValueError", "Input y contains NaN"),
        (
            TargetEncoder::new().fit(&x, &y, FitOptions::new().sample_weight(&ones(&[6]))).map(drop),
            "TypeError",
            "TargetEncoder.fit() got an unexpected keyword argument 'sample_weight'",
        ),
    ];
    for (made, class, text) in refusals {
        assert_refused(made, class, text);
    }
}
