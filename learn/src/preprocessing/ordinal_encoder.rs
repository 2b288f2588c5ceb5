//! Categories as whole numbers.

use super::categories::{
    Frequent, Groups, MinFrequency, category_at, check_given, check_seen, column, found, given, known, rare,
    samples,
};
use super::category_values::{Categories, codes};
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, checked_for, refused};
use crate::dense::tensor;
use crate::params::{parameters, words};
use crate::saved::{Save, saved};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{DType, Error, Result, Tensor, stack, where_};

/// The handling of a number that is no category of the fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandleUnknownCode {
    /// An error.
    #[default]
    Error,
    /// The parameter `unknown_value`.
    UseEncodedValue,
}

words!(
    HandleUnknownCode,
    ["use_encoded_value" => HandleUnknownCode::UseEncodedValue, "error" => HandleUnknownCode::Error]
);

/// scikit-learn's `OrdinalEncoder`: the position of each number among the categories of its feature.
///
/// Categories are numbers in the type of the samples; NaN is the last of them.
///
/// ```
/// use tharsis_learn::preprocessing::OrdinalEncoder;
/// use tharsis_numeric::array;
/// let x = array([30i64, 70, 30, 50]).reshape(&[4, 1]);
/// let model = OrdinalEncoder::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 2.0, 0.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct OrdinalEncoder {
    categories: Option<Vec<Array1<f64>>>,
    handle_unknown: HandleUnknownCode,
    unknown_value: Option<f64>,
    encoded_missing_value: f64,
    frequent: Frequent,
}

/// A fitted [`OrdinalEncoder`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOrdinalEncoder {
    /// scikit-learn's `categories_`: those of each feature, ascending, NaN last.
    pub categories: Vec<Categories>,
    /// Whether each category of each feature is too rare to have a number of its own.
    rare: Vec<Vec<bool>>,
    unknown_value: Option<f64>,
    encoded_missing_value: f64,
}

parameters!(
    OrdinalEncoder,
    "OrdinalEncoder",
    [
        "handle_unknown" => handle_unknown, "unknown_value" => unknown_value,
        "encoded_missing_value" => encoded_missing_value, "min_frequency" => frequent.min_frequency,
        "max_categories" => frequent.max_categories >= 1
    ]
);

impl Default for OrdinalEncoder {
    fn default() -> OrdinalEncoder {
        OrdinalEncoder {
            categories: None,
            handle_unknown: HandleUnknownCode::Error,
            unknown_value: None,
            encoded_missing_value: f64::NAN,
            frequent: Frequent::default(),
        }
    }
}

impl OrdinalEncoder {
    /// An estimator with scikit-learn's defaults: unknown categories are an error, NaN stays.
    pub fn new() -> OrdinalEncoder {
        OrdinalEncoder::default()
    }

    /// scikit-learn's `categories`: those of each feature, ascending, instead of those of the samples.
    pub fn categories(self, categories: &[&[f64]]) -> OrdinalEncoder {
        let categories = categories.iter().map(|values| Array1::from(values.to_vec())).collect();
        OrdinalEncoder { categories: Some(categories), ..self }
    }

    /// scikit-learn's `handle_unknown`: what becomes of a number that is no category of the fit.
    pub fn handle_unknown(self, handle_unknown: HandleUnknownCode) -> OrdinalEncoder {
        OrdinalEncoder { handle_unknown, ..self }
    }

    /// scikit-learn's `unknown_value`: the number of unknown categories; whole, or NaN.
    pub fn unknown_value(self, unknown_value: f64) -> OrdinalEncoder {
        OrdinalEncoder { unknown_value: Some(unknown_value), ..self }
    }

    /// scikit-learn's `encoded_missing_value`: the number of NaN.
    pub fn encoded_missing_value(self, encoded_missing_value: f64) -> OrdinalEncoder {
        OrdinalEncoder { encoded_missing_value, ..self }
    }

    /// scikit-learn's `min_frequency`: the samples that a category needs for a number of its own, as a number
    /// or as a part of all.
    pub fn min_frequency(mut self, min_frequency: impl Into<MinFrequency>) -> OrdinalEncoder {
        self.frequent.min_frequency = Some(min_frequency.into());
        self
    }

    /// scikit-learn's `max_categories`: the most numbers of a feature, with the one of rare categories and
    /// without that of NaN.
    pub fn max_categories(mut self, max_categories: usize) -> OrdinalEncoder {
        self.frequent.max_categories = Some(max_categories);
        self
    }

    /// Fits the encoder on samples (n, d), of any real dtype: finds the distinct numbers of each feature. One
    /// pass, a second one if rare categories are counted.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, numbers for unknown and missing ones that a category
    /// has, given categories that do not ascend or lack those of the samples, more than 2^20 categories of a
    /// feature, samples of other than two axes, without rows or features, complex or infinite; `TypeError`
    /// for an `unknown_value` that does not fit `handle_unknown`, and for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedOrdinalEncoder> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        self.frequent.check("OrdinalEncoder")?;
        let refused = |text: String| Err(Error::here(GraphError::Type(text)));
        let shown = || self.unknown_value.map_or_else(|| "None".to_owned(), |value| format!("{value:?}"));
        let is_sound = self.unknown_value.is_some_and(|value| value.is_nan() || value.fract() == 0.0);
        match self.handle_unknown {
            HandleUnknownCode::UseEncodedValue if !is_sound => refused(format!(
                "unknown_value should be an integer or np.nan when handle_unknown is 'use_encoded_value', got {}.",
                shown()
            )),
            HandleUnknownCode::Error if self.unknown_value.is_some() => refused(format!(
                "unknown_value should only be set when handle_unknown is 'use_encoded_value', got {}.",
                shown()
            )),
            _ => Ok(()),
        }
    }
}

/// The categories of a feature that have a number of their own; as in scikit-learn that of rare ones is free
/// for unknown and missing ones.
fn numbered(categories: &Categories, rare: &[bool]) -> usize {
    categories.known() - rare.iter().filter(|rare| **rare).count()
}

impl Estimator for OrdinalEncoder {
    type Fitted = FittedOrdinalEncoder;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedOrdinalEncoder> {
        self.check()?;
        let training = Training::unsupervised("OrdinalEncoder", x, options)?.without_weights()?;
        let categories = match &self.categories {
            None => found(&training, &training.own)?,
            Some(values) => {
                check_given(values, training.columns)?;
                let categories = given(values, training.own.dtype()?);
                if self.handle_unknown == HandleUnknownCode::Error {
                    check_seen(&training, &categories)?;
                } else {
                    training.check_finite(Nan::Missing)?;
                }
                categories
            }
        };
        let rare = rare(&training, &categories, self.frequent, Nan::Missing)?;
        let numbers = categories.iter().zip(&rare).map(|(values, rare)| numbered(values, rare) as f64);
        let taken = |number: f64, numbers: f64| 0.0 <= number && number < numbers;
        let numbers: Vec<f64> = numbers.collect();
        if let Some(unknown) =
            self.unknown_value.filter(|value| numbers.iter().any(|all| taken(*value, *all)))
        {
            return Err(refused(format!(
                "The used value for unknown_value {unknown} is one of the values already used for encoding the \
                 seen categories."
            )));
        }
        let missing = self.encoded_missing_value;
        let has_nan = |at: &usize| categories[*at].known() < categories[*at].len();
        let wrong: Vec<usize> =
            (0..categories.len()).filter(|at| has_nan(at) && taken(missing, numbers[*at])).collect();
        if !wrong.is_empty() {
            return Err(refused(format!(
                "encoded_missing_value ({missing}) is already used to encode a known category in features: \
                 {wrong:?}"
            )));
        }
        Ok(FittedOrdinalEncoder {
            categories,
            rare,
            unknown_value: self.unknown_value,
            encoded_missing_value: missing,
        })
    }
}

impl FittedOrdinalEncoder {
    /// scikit-learn's `infrequent_categories_`: the rare categories of each feature.
    #[must_use]
    pub fn infrequent_categories(&self) -> Vec<Categories> {
        self.categories.iter().zip(&self.rare).map(|(values, rare)| values.chosen(|at| rare[at])).collect()
    }

    /// The numbers of the categories of samples (n, d), as an expression; (n, d), float64. Carries a
    /// `ValueError` for another number of features; when run for infinity, and for categories that are not
    /// known.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples("OrdinalEncoder", x, self.categories.len()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let parts = self.categories.iter().zip(&self.rare).enumerate().map(|(at, (values, rare))| {
            let mut codes = codes(&column(&samples, at), values);
            if self.unknown_value.is_none() {
                codes = known(&codes, values, at);
            }
            let counted = values.known();
            let places = Groups::of(&rare[..counted]).places;
            let missing = (counted < values.len()).then_some(self.encoded_missing_value);
            let unknown = self.unknown_value.unwrap_or(f64::NAN);
            let numbers = places.into_iter().map(|place| place as f64).chain(missing).chain([unknown]);
            tensor(&numbers.collect::<Array1<f64>>()).take_at(&codes, 0)
        });
        stack(&parts.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 1)
    }

    /// The samples that [`transform`](FittedOrdinalEncoder::transform) maps to these numbers (n, d), as an
    /// expression, in the type of the categories or, where NaN may be among them, in float64: unknown ones
    /// are NaN. Carries a `ValueError` for another number of features; an `IndexError` when run for a number
    /// of no category; `NotImplemented` with rare categories, which have no number.
    #[track_caller]
    pub fn inverse_transform(&self, made: &Tensor) -> Tensor {
        let made = match checked_for("OrdinalEncoder", made, self.categories.len(), Nan::Missing) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if self.rare.iter().flatten().any(|rare| *rare) {
            let text = "inverse_transform of an encoder with rare categories".to_owned();
            return Tensor::from(Error::here(GraphError::NotImplemented(text)));
        }
        let is = |numbers: &Tensor, value: f64| {
            if value.is_nan() { numbers.isnan() } else { numbers.equal(value) }
        };
        let parts = self.categories.iter().enumerate().map(|(at, values)| {
            let numbers = column(&made, at);
            if self.unknown_value.is_none() && values.known() == values.len() {
                return category_at(values, &numbers.trunc().astype(DType::I64));
            }
            let mut is_nan = numbers.isnan().logical_and(false);
            if values.known() < values.len() {
                is_nan = is_nan.logical_or(is(&numbers, self.encoded_missing_value));
            }
            if let Some(unknown) = self.unknown_value {
                is_nan = is_nan.logical_or(is(&numbers, unknown));
            }
            if values.known() == 0 {
                return where_(&is_nan, f64::NAN, f64::NAN);
            }
            let code = where_(&is_nan, 0.0, &numbers).trunc().astype(DType::I64);
            where_(&is_nan, f64::NAN, category_at(values, &code))
        });
        stack(&parts.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 1)
    }
}

saved!(FittedOrdinalEncoder, "OrdinalEncoder", |model| {
    !model.categories.is_empty()
        && model.categories.len() == model.rare.len()
        && model
            .categories
            .iter()
            .zip(&model.rare)
            .all(|(values, rare)| !values.is_empty() && values.len() == rare.len())
});

impl Transform for FittedOrdinalEncoder {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedOrdinalEncoder::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.categories.len())
    }
}

impl fmt::Display for FittedOrdinalEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrdinalEncoder of {} features", self.categories.len())?;
        for (at, values) in self.categories.iter().enumerate() {
            write!(f, "\n  categories[{at}]:{values}")?;
        }
        Ok(())
    }
}
