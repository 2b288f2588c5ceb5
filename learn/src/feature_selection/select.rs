//! Features chosen by their scores, each for itself.

use super::rule::Rule;
use super::scores::{Scores, of_classes, of_counts, of_targets};
use super::support::Support;
use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check;
use crate::checks::Training;
use crate::params::{Parameter, parameters, words};
use crate::saved::{Save, saved};
use crate::show;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// The score of a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreFunction {
    /// [`chi2`](super::chi2): for counts and labels.
    Chi2,
    /// [`f_classif`](super::f_classif): for labels.
    #[default]
    FClassif,
    /// [`f_regression`](super::f_regression): for targets.
    FRegression,
}

words!(
    ScoreFunction,
    [
        "f_classif" => ScoreFunction::FClassif, "f_regression" => ScoreFunction::FRegression,
        "chi2" => ScoreFunction::Chi2
    ]
);

/// The number of features that [`SelectKBest`] chooses: the largest one for all of them.
#[derive(Clone, Copy, Debug)]
struct Best(usize);

impl From<usize> for Best {
    fn from(k: usize) -> Best {
        Best(k)
    }
}

impl From<Best> for usize {
    fn from(k: Best) -> usize {
        k.0
    }
}

impl Parameter for Best {
    fn words(least: usize) -> String {
        format!("{} or a str among {{'all'}}", usize::words(least))
    }

    fn of(value: &Setting) -> Option<Best> {
        match value {
            Setting::Text(text) if text == "all" => Some(Best(usize::MAX)),
            _ => usize::of(value).map(Best),
        }
    }

    fn setting(&self) -> Setting {
        if self.0 == usize::MAX { "all".into() } else { self.0.setting() }
    }
}

/// A fitted selector of features.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedSelect {
    /// scikit-learn's `scores_`; (d,).
    pub scores: Array1<f64>,
    /// scikit-learn's `pvalues_`; (d,).
    pub pvalues: Array1<f64>,
    support: Support,
}

/// A selector: its name, its parameter, and the rule that this makes.
macro_rules! selector {
    (
        $(#[$doc:meta])* $name:ident, $parameter:ident $word:literal: $kind:ty as $kept:ty = $default:expr,
        $told:literal, $rule:expr, $is_sound:expr, $range:literal
    ) => {
        $(#[$doc])*
        #[must_use]
        #[derive(Clone, Debug)]
        pub struct $name {
            score_func: ScoreFunction,
            $parameter: $kept,
        }

        parameters!(
            $name,
            stringify!($name),
            ["score_func" => score_func, $word => $parameter]
        );

        impl Default for $name {
            fn default() -> $name {
                $name { score_func: ScoreFunction::FClassif, $parameter: <$kept>::from($default) }
            }
        }

        impl $name {
            /// An estimator with scikit-learn's defaults: features are scored by `f_classif`.
            pub fn new() -> $name {
                $name::default()
            }

            /// scikit-learn's `score_func`: the score of a feature.
            pub fn score_func(self, score_func: ScoreFunction) -> $name {
                $name { score_func, ..self }
            }

            #[doc = $told]
            pub fn $parameter(self, $parameter: $kind) -> $name {
                $name { $parameter: <$kept>::from($parameter), ..self }
            }

            /// Fits the selector on samples (n, d) and their targets (n,): labels, or numbers for
            /// `f_regression`. One plan, and one or two passes over labels.
            ///
            /// # Errors
            /// `ValueError` for a parameter out of its range, and as the score function; `TypeError` for
            /// weights; errors of the passes.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedSelect> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl Estimator for $name {
            type Fitted = FittedSelect;

            fn takes_weights(&self) -> bool {
                false
            }

            #[track_caller]
            fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedSelect> {
                let is_sound: fn($kind) -> bool = $is_sound;
                let value = <$kind>::from(self.$parameter);
                check(stringify!($name), stringify!($parameter), is_sound(value), $range, value)?;
                selected(stringify!($name), self.score_func, $rule(value), (x, y, options))
            }
        }
    };
}

selector! {
    /// scikit-learn's `SelectKBest`: the features with the largest scores.
    ///
    /// ```
    /// use tharsis_learn::feature_selection::SelectKBest;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
    /// let model = SelectKBest::new().k(1).fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 1.0, 8.0, 9.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SelectKBest, k "k": usize as Best = 10,
    "scikit-learn's `k`: features that are chosen, or all if there are fewer.",
    Rule::Largest, |_| true, "an int in the range [0, inf)"
}

selector! {
    /// scikit-learn's `SelectPercentile`: a share of the features, those with the largest scores.
    ///
    /// ```
    /// use tharsis_learn::feature_selection::SelectPercentile;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
    /// let model = SelectPercentile::new().percentile(50.0).fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.support(), [true, false]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SelectPercentile, percentile "percentile": f64 as f64 = 10.0,
    "scikit-learn's `percentile`: features in a hundred that are chosen.",
    Rule::Percentile, |percentile| (0.0..=100.0).contains(&percentile), "a float in the range [0.0, 100.0]"
}

selector! {
    /// scikit-learn's `SelectFpr`: features whose p-values are below a bound.
    ///
    /// ```
    /// use tharsis_learn::feature_selection::SelectFpr;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
    /// let model = SelectFpr::new().alpha(0.01).fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.support(), [true, false]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SelectFpr, alpha "alpha": f64 as f64 = 0.05,
    "scikit-learn's `alpha`: the p-value from which on features are left out.",
    Rule::Each, |alpha| (0.0..=1.0).contains(&alpha), "a float in the range [0.0, 1.0]"
}

selector! {
    /// scikit-learn's `SelectFdr`: bounds the expected share of features that are chosen wrongly.
    ///
    /// ```
    /// use tharsis_learn::feature_selection::SelectFdr;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
    /// let model = SelectFdr::new().alpha(0.1).fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.support(), [true, false]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SelectFdr, alpha "alpha": f64 as f64 = 0.05,
    "scikit-learn's `alpha`: the largest expected share of wrong choices.",
    Rule::Discoveries, |alpha| (0.0..=1.0).contains(&alpha), "a float in the range [0.0, 1.0]"
}

selector! {
    /// scikit-learn's `SelectFwe`: bounds the chance that any feature is chosen wrongly.
    ///
    /// ```
    /// use tharsis_learn::feature_selection::SelectFwe;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
    /// let model = SelectFwe::new().alpha(0.05).fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.support(), [true, false]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SelectFwe, alpha "alpha": f64 as f64 = 0.05,
    "scikit-learn's `alpha`: the largest chance of a wrong choice.",
    Rule::Family, |alpha| (0.0..=1.0).contains(&alpha), "a float in the range [0.0, 1.0]"
}

/// The model of a selector on samples, targets and options.
#[track_caller]
fn selected(
    name: &'static str,
    score_func: ScoreFunction,
    rule: Rule,
    (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
) -> Result<FittedSelect> {
    let training = Training::supervised(name, x, y, options)?.without_weights()?;
    let Scores { scores, pvalues } = match score_func {
        ScoreFunction::Chi2 => of_counts(&training)?,
        ScoreFunction::FClassif => of_classes(&training)?,
        ScoreFunction::FRegression => of_targets(&training)?,
    };
    let mask = rule.choose(&scores, &pvalues);
    Ok(FittedSelect { scores, pvalues, support: Support { model: name, mask, takes_nan: false } })
}

impl FittedSelect {
    /// scikit-learn's `get_support`: whether each feature is chosen; (d,).
    #[must_use]
    pub fn support(&self) -> &[bool] {
        &self.support.mask
    }

    /// The chosen features of samples, as an expression: (n, d) to (n, k). Carries a `ValueError` for another
    /// number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.support.transform(x)
    }

    /// Samples with zeros in the place of features that were left out: (n, k) to (n, d).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.support.inverse_transform(x)
    }
}

saved!(FittedSelect, "Select", |model| model.support.is_sound(&[&model.scores, &model.pvalues]));

impl Transform for FittedSelect {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSelect::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.support.names(names)
    }
}

impl fmt::Display for FittedSelect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, chosen) = (self.support.model, self.support.chosen().len());
        write!(f, "{name}: {chosen} of {} features", self.scores.len())?;
        show::line(f, "scores", &self.scores)?;
        show::line(f, "pvalues", &self.pvalues)
    }
}
