//! Decompositions against recorded answers of scikit-learn, each for several ways to cut the samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, arr0};
use tharsis_learn::Error;
use tharsis_learn::decomposition::{Contrast, FactorAnalysis, FastICA, IncrementalPCA, Whiten};
use tharsis_numeric::{Tensor, array, ones, zeros};

fn count(case: &Case<'_>, name: &str) -> Option<usize> {
    case.number(name).map(|count| count as usize)
}

#[test]
fn factor_analysis() {
    each("FactorAnalysis", |case, x| {
        let mut estimator = FactorAnalysis::new().n_components(count(case, "n_components"));
        estimator = estimator.max_iter(count(case, "max_iter").unwrap_or(1000));
        estimator = estimator.tol(case.number("tol").unwrap_or(1e-2));
        if let Some(noise) = case.numbers("noise_variance_init") {
            estimator = estimator.noise_variance_init(&noise);
        }
        let model = estimator.fit(x, ..).unwrap();
        case.attribute("n_iter", arr0(model.n_iter as f64).into_dyn(), 0.0);
        case.attribute("noise_variance", model.noise_variance.clone().into_dyn(), 1e-8);
        case.attribute("mean", model.mean.clone().into_dyn(), 1e-10);
        case.attribute("loglike", Array1::from_vec(model.loglike.clone()).into_dyn(), 1e-9);
        case.method("get_covariance", &Tensor::from_array(&model.get_covariance().into_dyn()), 1e-8);
        // Factors have no sign.
        case.lengths("transform", &model.transform(x), 1e-5);
        case.method("score_samples", &model.score_samples(x).unwrap(), 1e-6);
        case.score(model.score(x, ..).unwrap(), 1e-6);
    });
}

#[test]
fn incremental_pca() {
    each("IncrementalPCA", |case, x| {
        let estimator = IncrementalPCA::new().n_components(count(case, "n_components"));
        let estimator = estimator.batch_size(count(case, "batch_size"));
        let model = estimator.whiten(case.is("whiten").unwrap_or(false)).fit(x, ..).unwrap();
        case.attribute("components", model.components.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance", model.explained_variance.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance_ratio", model.explained_variance_ratio.clone().into_dyn(), 1e-8);
        case.attribute("singular_values", model.singular_values.clone().into_dyn(), 1e-8);
        case.attribute("mean", model.mean.clone().into_dyn(), 1e-10);
        case.attribute("var", model.var.clone().into_dyn(), 1e-10);
        case.attribute("noise_variance", arr0(model.noise_variance).into_dyn(), 1e-8);
        case.attribute("n_samples_seen", arr0(model.n_samples_seen as f64).into_dyn(), 0.0);
        case.method("transform", &model.transform(x), 1e-7);
        let back = model.transform(&model.inverse_transform(&model.transform(x)));
        case.method("transform", &back, 1e-7);
    });
}

/// Batches by hand are those of a fit.
#[test]
fn batches_may_come_one_after_the_other() {
    each("IncrementalPCA", |case, x| {
        if case.number("batch_size") != Some(20.0) {
            return;
        }
        let estimator = IncrementalPCA::new().n_components(2).batch_size(20).whiten(true);
        let whole = estimator.fit(x, ..).unwrap();
        let part = |start: i64, end: i64| x.get(&[(start..end).into()]);
        let mut model = estimator.batch_size(100).fit(&part(0, 20), ..).unwrap();
        // A batch that is refused changes nothing.
        let before = model.mean.clone();
        assert!(model.partial_fit(&(part(20, 40) * f64::NAN), ..).is_err());
        assert!(model.partial_fit(&ones(&[5, 2]), ..).is_err());
        assert_eq!(model.mean, before);
        model.partial_fit(&part(20, 40), ..).unwrap();
        model.partial_fit(&part(40, 61), ..).unwrap();
        assert!((&model.components - &whole.components).mapv(f64::abs).sum() < 1e-9);
        assert_eq!(model.n_samples_seen, 61);
    });
}

#[test]
fn fast_ica() {
    each("FastICA", |case, x| {
        let fun = match case.text("fun").unwrap() {
            "exp" => Contrast::Exp,
            "cube" => Contrast::Cube,
            _ => Contrast::Logcosh,
        };
        let mut estimator = FastICA::new().fun(fun).n_components(count(case, "n_components"));
        if case.text("whiten").is_some() {
            estimator = estimator.whiten(Whiten::ArbitraryVariance);
        }
        estimator = estimator.max_iter(count(case, "max_iter").unwrap());
        estimator = estimator.w_init(&Tensor::from_array(&case.array("w_init").unwrap()));
        let model = estimator.fit(x, ..).unwrap();
        case.attribute("n_iter", arr0(model.n_iter as f64).into_dyn(), 0.0);
        case.attribute("whitening", model.whitening.clone().into_dyn(), 1e-9);
        case.attribute("components", model.components.clone().into_dyn(), 1e-6);
        case.attribute("mixing", model.mixing.clone().into_dyn(), 1e-6);
        case.attribute("mean", model.mean.clone().into_dyn(), 1e-10);
        case.method("transform", &model.transform(x), 1e-6);
        if model.components.nrows() == 3 {
            let back = model.inverse_transform(&model.transform(x)) - x;
            assert!(back.abs().max(..).item().unwrap().to_f64() < 1e-9);
        }
    });
}

#[test]
fn mistakes() {
    let x = array([0.0, 1.0, 2.0, 5.0, 3.0, 1.0]).reshape(&[3, 2]);
    let texts: Vec<(Result<(), Error>, &str)> = vec![
        (
            FactorAnalysis::new().n_components(0).fit(&x, ..).map(drop),
            "The 'n_components' parameter of FactorAnalysis must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            FactorAnalysis::new().noise_variance_init(&[1.0]).fit(&x, ..).map(drop),
            "noise_variance_init dimension does not with number of features : 1 != 2",
        ),
        (
            IncrementalPCA::new().n_components(3).fit(&x, ..).map(drop),
            "n_components=3 invalid for n_features=2, need more rows than columns for IncrementalPCA processing",
        ),
        (
            IncrementalPCA::new().n_components(2).batch_size(1).fit(&x, ..).map(drop),
            "n_components=2 must be less or equal to the batch number of samples 1 for the first partial_fit call.",
        ),
        (
            FastICA::new().w_init(&zeros(&[3, 3])).fit(&x, ..).map(drop),
            "w_init has invalid shape -- should be (2, 2)",
        ),
        (FastICA::new().fit(&ones(&[5, 2]), ..).map(drop), "the samples vary in 0 directions"),
        (
            FastICA::new().fit(&ones(&[1, 2]), ..).map(drop),
            "Found array with 1 sample(s) (shape=(1, 2)) while a minimum of 2 is required by FastICA.",
        ),
    ];
    for (at, (made, text)) in texts.into_iter().enumerate() {
        let error = made.err().unwrap_or_else(|| panic!("mistake {at} is not refused"));
        assert_eq!(error.class(), "ValueError", "{at}: {error}");
        assert!(error.to_string().starts_with(text), "{at}: {error}");
    }
}
