//! Features that are categories.

use super::counts::Counts;
use super::discrete::Smoothing;
use super::family::{likely_classes, smoothing_parameters};
use crate::Setting;
use crate::base::{Estimator, FitOptions};
use crate::bounds::check;
use crate::checks::{Nan, Training, refused, samples_for};
use crate::dense::tensor;
use crate::labels::{Classes, class_tensor};
use crate::params::{Parameter, parameters};
use crate::passes::in_fixed_chunks;
use crate::saved::saved;
use crate::score::check_some_weight;
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::{DType, Result, Tensor, ones};

/// The fewest categories of features, beyond those of the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct MinCategories(Vec<usize>);

impl From<usize> for MinCategories {
    fn from(least: usize) -> MinCategories {
        MinCategories(vec![least])
    }
}

impl From<&[usize]> for MinCategories {
    fn from(least: &[usize]) -> MinCategories {
        MinCategories(least.to_vec())
    }
}

impl Parameter for MinCategories {
    fn words(_: usize) -> String {
        "an array-like or an int in the range [1, inf)".to_owned()
    }

    fn of(value: &Setting) -> Option<MinCategories> {
        if let Some(least) = usize::of(value) {
            return Some(MinCategories(vec![least]));
        }
        whole(Vec::of(value)?)
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<MinCategories>> {
        match usize::of(value) {
            Some(least) => Ok(Some(MinCategories(vec![least]))),
            None => Ok(Vec::read(value)?.and_then(whole)),
        }
    }

    fn setting(&self) -> Setting {
        match self.0[..] {
            [least] => least.setting(),
            _ => Setting::Numbers(self.0.iter().map(|&least| least as f64).collect()),
        }
    }
}

/// A list of whole numbers.
fn whole(numbers: Vec<f64>) -> Option<MinCategories> {
    let is_whole = numbers.iter().all(|least| 0.0 <= *least && least.fract() == 0.0);
    is_whole.then(|| MinCategories(numbers.into_iter().map(|least| least as usize).collect()))
}

/// scikit-learn's `CategoricalNB`: features are numbers of categories, from 0 on.
///
/// Labels are whole numbers of any dtype; of samples the whole part counts. An `alpha` of 0 counts as the
/// smallest normal float, so that what a class never had is very unlikely instead of NaN.
///
/// ```
/// use tharsis_learn::naive_bayes::CategoricalNB;
/// use tharsis_numeric::array;
/// let x = array([0i64, 0, 2, 2]).reshape(&[4, 1]);
/// let model = CategoricalNB::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
/// assert_eq!(model.category_count[0].row(1).to_vec(), [0.0, 0.0, 2.0]);
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [7, 7, 9, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct CategoricalNB {
    smoothing: Smoothing,
    min_categories: Option<MinCategories>,
}

/// A fitted [`CategoricalNB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedCategoricalNB {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_count_`: the samples of each class, or their weights; (k,).
    pub class_count: Array1<f64>,
    /// scikit-learn's `class_log_prior_`: the logarithm of the probability of each class; (k,).
    pub class_log_prior: Array1<f64>,
    /// scikit-learn's `category_count_`: the samples of each class with each category, for each feature;
    /// (k, categories) each.
    pub category_count: Vec<Array2<f64>>,
    /// scikit-learn's `feature_log_prob_`: the logarithms of the smoothed probabilities of categories, for
    /// each feature; (k, categories) each.
    pub feature_log_prob: Vec<Array2<f64>>,
}

parameters!(
    CategoricalNB,
    "CategoricalNB",
    [
        "alpha" => smoothing.alpha, "fit_prior" => smoothing.fit_prior,
        "class_prior" => smoothing.class_prior, "min_categories" => min_categories
    ]
);

smoothing_parameters!(CategoricalNB);

impl CategoricalNB {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, categories are those up to the largest one.
    pub fn new() -> CategoricalNB {
        CategoricalNB::default()
    }

    /// scikit-learn's `min_categories`: the fewest categories of all features, or of each.
    pub fn min_categories(self, min_categories: impl Into<MinCategories>) -> CategoricalNB {
        CategoricalNB { min_categories: Some(min_categories.into()), ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Two passes over
    /// the samples, behind one that finds the classes.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, negative samples, and negative weights;
    /// `MemoryError` for more categories than the memory holds; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedCategoricalNB> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The number of categories of each feature.
    #[track_caller]
    fn sizes(&self, training: &Training, most: &Array1<f64>) -> Result<Vec<usize>> {
        let found = most.iter().map(|most| (most.trunc() as usize).saturating_add(1));
        let given = self.min_categories.as_ref().map_or(&[][..], |least| &least.0);
        let sizes: Vec<usize> = match *given {
            [] => found.collect(),
            [least] => found.map(|found| found.max(least)).collect(),
            _ if given.len() == training.columns => {
                found.zip(given).map(|(found, least)| found.max(*least)).collect()
            }
            _ => {
                let (features, given) = (training.columns, given.len());
                return Err(refused(format!(
                    "'min_categories' should have shape ({features},) when an array-like is provided. Got \
                     ({given},) instead."
                )));
            }
        };
        Ok(sizes)
    }
}

/// The sums of the weights of classes and categories, one feature behind the other. One pass.
#[track_caller]
fn count(training: &Training, classes: &Classes, sizes: &[usize]) -> Result<(Array1<f64>, Vec<Array2<f64>>)> {
    let all: usize = sizes.iter().sum();
    let (columns, members) = (training.columns, classes.values.len());
    let mut first = 0i64;
    let firsts: Vec<i64> = sizes
        .iter()
        .map(|size| {
            first += *size as i64;
            first - *size as i64
        })
        .collect();
    let codes = in_fixed_chunks(&training.x, columns).trunc().astype(DType::I64) + class_tensor(&firsts);
    let codes = codes + (classes.positions() * all as i64).expand_dims(1);
    let weights =
        training.weight.as_ref().map(|weight| (weight.expand_dims(1) * ones(&[1, columns])).ravel());
    let counts = codes.ravel().bincount(weights.as_ref(), members * all);
    let states = training.engine.run(&[&counts])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let counts = vector(states.into_iter().next().ok_or_else(lost)?)?;
    let counts = counts.into_shape_with_order((members, all)).map_err(|_| lost())?;
    let parts = firsts.iter().zip(sizes).map(|(&first, &size)| {
        counts.slice_axis(Axis(1), ndarray::Slice::from(first as usize..first as usize + size)).to_owned()
    });
    let parts: Vec<Array2<f64>> = parts.collect();
    let class = parts.first().ok_or_else(lost)?.sum_axis(Axis(1));
    Ok((class, parts))
}

impl Estimator for CategoricalNB {
    type Fitted = FittedCategoricalNB;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedCategoricalNB> {
        let alpha = self.smoothing.checked_alpha("CategoricalNB")?;
        if let Some(MinCategories(least)) = &self.min_categories {
            let is_sound = least.iter().all(|least| 1 <= *least);
            check("CategoricalNB", "min_categories", is_sound, "an int in the range [1, inf) or None", 0)?;
        }
        let training = Training::supervised("CategoricalNB", x, y, options)?;
        let classes = Classes::of(&training)?;
        let states = training.engine.run(&[&training.x.max(0), &training.x.min(..)])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [most, least] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        if least.sum() < 0.0 {
            return Err(refused("Negative values in data passed to CategoricalNB (input X)."));
        }
        let sizes = self.sizes(&training, &vector(most)?)?;
        let all = sizes.iter().fold(0usize, |all, size| all.saturating_add(*size));
        training.check_held(classes.values.len(), all)?;
        let (class_count, category_count) = count(&training, &classes, &sizes)?;
        check_some_weight(class_count.sum())?;
        let counts = Counts { class: class_count, feature: Array2::zeros((0, 0)) };
        let class_log_prior = self.smoothing.log_priors(&counts)?;
        let logs = |counts: &Array2<f64>| {
            let smoothed = counts + alpha;
            let all = smoothed.sum_axis(Axis(1)).mapv(f64::ln).insert_axis(Axis(1));
            smoothed.mapv(f64::ln) - all
        };
        Ok(FittedCategoricalNB {
            classes: classes.values,
            class_count: counts.class,
            class_log_prior,
            feature_log_prob: category_count.iter().map(logs).collect(),
            category_count,
        })
    }
}

impl FittedCategoricalNB {
    /// scikit-learn's `n_categories_`: the number of categories of each feature; (d,).
    #[must_use]
    pub fn n_categories(&self) -> Vec<usize> {
        self.category_count.iter().map(Array2::ncols).collect()
    }

    /// The joint log likelihood of samples and classes; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let columns = self.feature_log_prob.len();
        let samples = samples_for("CategoricalNB", x, columns)?;
        let mut joint = tensor(&self.class_log_prior);
        for (at, logs) in self.feature_log_prob.iter().enumerate() {
            let numbers = samples.get(&[(..).into(), (at as i64).into()]);
            let size = logs.ncols();
            let is_known = numbers.greater_equal(0.0).logical_and(numbers.less(size as f64));
            let message = format!(
                "Input X of CategoricalNB has a number in column {at} that is none of the {size} categories of \
                 the fit."
            );
            let code = Tensor::apply(Require { message }, &[&numbers.trunc().astype(DType::I64), &is_known]);
            joint += tensor(logs).t().take_at(&code, 0);
        }
        Ok(joint)
    }
}

saved!(FittedCategoricalNB, "CategoricalNB", |model| {
    let classes = model.classes.len();
    let is_sound =
        |counts: &Array2<f64>, logs: &Array2<f64>| counts.dim() == logs.dim() && logs.nrows() == classes;
    0 < classes
        && model.class_log_prior.len() == classes
        && model.class_count.len() == classes
        && !model.category_count.is_empty()
        && model.category_count.len() == model.feature_log_prob.len()
        && model
            .category_count
            .iter()
            .zip(&model.feature_log_prob)
            .all(|(counts, logs)| 0 < counts.ncols() && is_sound(counts, logs))
});

likely_classes!(
    FittedCategoricalNB,
    "CategoricalNB",
    "NaN, negative numbers, and categories beyond those of the fit, which are an `IndexError` in scikit-learn"
);

impl fmt::Display for FittedCategoricalNB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.category_count.len(), &self.classes);
        write!(f, "CategoricalNB of {features} features, classes {classes:?}")?;
        show::line(f, "class_log_prior", &self.class_log_prior)
    }
}
