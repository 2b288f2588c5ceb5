//! A column for each category.

use super::categories::{
    Frequent, Groups, MinFrequency, category_at, check_given, check_seen, column, found, given, indicators,
    known, looked_up, rare, samples,
};
use super::category_values::{Categories, codes};
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, refused};
use crate::params::{parameters, words};
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Require;
use tharsis_numeric::{DType, Error, Result, Tensor, concatenate, stack, where_};

/// The columns that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropCategories {
    /// None.
    #[default]
    None,
    /// The first one of each feature.
    First,
    /// The first one of each feature with two.
    IfBinary,
}

impl crate::params::Parameter for DropCategories {
    fn words(_: usize) -> String {
        "a str among {'first', 'if_binary'} or None".to_owned()
    }

    fn of(value: &crate::Setting) -> Option<DropCategories> {
        match value {
            crate::Setting::None => Some(DropCategories::None),
            crate::Setting::Text(text) if text == "first" => Some(DropCategories::First),
            crate::Setting::Text(text) if text == "if_binary" => Some(DropCategories::IfBinary),
            _ => None,
        }
    }

    fn setting(&self) -> crate::Setting {
        match self {
            DropCategories::None => crate::Setting::None,
            DropCategories::First => "first".into(),
            DropCategories::IfBinary => "if_binary".into(),
        }
    }
}

/// The handling of a number that is no category of the fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandleUnknown {
    /// An error.
    #[default]
    Error,
    /// Zeros.
    Ignore,
    /// The column of rare categories, or zeros where there is none.
    InfrequentIfExist,
}

words!(
    HandleUnknown,
    [
        "error" => HandleUnknown::Error, "ignore" => HandleUnknown::Ignore,
        "infrequent_if_exist" => HandleUnknown::InfrequentIfExist,
        "warn" => HandleUnknown::InfrequentIfExist
    ]
);

/// scikit-learn's `OneHotEncoder`: a column for each category of each feature, 1 where a sample has it.
///
/// Categories are numbers in the type of the samples; NaN is one of them. The result is dense.
///
/// ```
/// use tharsis_learn::preprocessing::OneHotEncoder;
/// use tharsis_numeric::array;
/// let x = array([3i64, 7, 3]).reshape(&[3, 1]);
/// let model = OneHotEncoder::new().fit(&x, ..)?;
/// assert_eq!(model.categories[0].to_reals().to_vec(), [3.0, 7.0]);
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct OneHotEncoder {
    categories: Option<Vec<Array1<f64>>>,
    drop: DropCategories,
    handle_unknown: HandleUnknown,
    frequent: Frequent,
}

/// A fitted [`OneHotEncoder`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOneHotEncoder {
    /// scikit-learn's `categories_`: those of each feature, ascending, NaN last.
    pub categories: Vec<Categories>,
    /// Whether each category of each feature is too rare to have a column of its own.
    rare: Vec<Vec<bool>>,
    /// The place among the columns of each feature that is left out.
    dropped: Vec<Option<usize>>,
    handle_unknown: HandleUnknown,
}

parameters!(
    OneHotEncoder,
    "OneHotEncoder",
    [
        "drop" => drop, "handle_unknown" => handle_unknown, "min_frequency" => frequent.min_frequency,
        "max_categories" => frequent.max_categories >= 1
    ]
);

impl OneHotEncoder {
    /// An estimator with scikit-learn's defaults: all columns, unknown categories are an error.
    pub fn new() -> OneHotEncoder {
        OneHotEncoder::default()
    }

    /// scikit-learn's `categories`: those of each feature, ascending, instead of those of the samples.
    pub fn categories(self, categories: &[&[f64]]) -> OneHotEncoder {
        let categories = categories.iter().map(|values| Array1::from(values.to_vec())).collect();
        OneHotEncoder { categories: Some(categories), ..self }
    }

    /// scikit-learn's `drop`: the columns that are left out.
    pub fn drop(self, drop: DropCategories) -> OneHotEncoder {
        OneHotEncoder { drop, ..self }
    }

    /// scikit-learn's `handle_unknown`: what becomes of a number that is no category of the fit.
    pub fn handle_unknown(self, handle_unknown: HandleUnknown) -> OneHotEncoder {
        OneHotEncoder { handle_unknown, ..self }
    }

    /// scikit-learn's `min_frequency`: the samples that a category needs for a column of its own, as a number
    /// or as a part of all.
    pub fn min_frequency(mut self, min_frequency: impl Into<MinFrequency>) -> OneHotEncoder {
        self.frequent.min_frequency = Some(min_frequency.into());
        self
    }

    /// scikit-learn's `max_categories`: the most columns of a feature, with the one of rare categories.
    pub fn max_categories(mut self, max_categories: usize) -> OneHotEncoder {
        self.frequent.max_categories = Some(max_categories);
        self
    }

    /// Fits the encoder on samples (n, d), of any real dtype: finds the distinct numbers of each feature. One
    /// pass, a second one if rare categories are counted.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, given categories that do not ascend or lack those of
    /// the samples, more than 2^20 categories of a feature, samples of other than two axes, without rows or
    /// features, complex or infinite; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedOneHotEncoder> {
        self.fit_any(x, None, &options.into())
    }

    /// The place that is left out of a feature with so many.
    fn dropped(&self, width: usize) -> Option<usize> {
        match self.drop {
            DropCategories::First => Some(0),
            DropCategories::IfBinary if width == 2 => Some(0),
            _ => None,
        }
    }
}

impl Estimator for OneHotEncoder {
    type Fitted = FittedOneHotEncoder;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedOneHotEncoder> {
        self.frequent.check("OneHotEncoder")?;
        let training = Training::unsupervised("OneHotEncoder", x, options)?.without_weights()?;
        let categories = match &self.categories {
            None => found(&training, &training.own)?,
            Some(values) => {
                check_given(values, training.columns)?;
                let categories = given(values, training.own.dtype()?);
                if self.handle_unknown == HandleUnknown::Error {
                    check_seen(&training, &categories)?;
                } else {
                    training.check_finite(Nan::Missing)?;
                }
                categories
            }
        };
        let rare = rare(&training, &categories, self.frequent, Nan::Refused)?;
        let dropped = rare.iter().map(|rare| self.dropped(Groups::of(rare).width)).collect();
        Ok(FittedOneHotEncoder { categories, rare, dropped, handle_unknown: self.handle_unknown })
    }
}

impl FittedOneHotEncoder {
    /// scikit-learn's `infrequent_categories_`: the rare categories of each feature.
    #[must_use]
    pub fn infrequent_categories(&self) -> Vec<Categories> {
        self.categories.iter().zip(&self.rare).map(|(values, rare)| values.chosen(|at| rare[at])).collect()
    }

    /// scikit-learn's `drop_idx_`: for each feature the position of the category whose column is left out.
    #[must_use]
    pub fn drop_idx(&self) -> Vec<Option<usize>> {
        let category = |(rare, dropped): (&Vec<bool>, &Option<usize>)| {
            let places = Groups::of(rare).places;
            dropped.and_then(|dropped| places.iter().position(|place| *place == dropped))
        };
        self.rare.iter().zip(&self.dropped).map(category).collect()
    }

    /// For each feature the column of each category, with a last place for unknown ones, and their number.
    /// A category without a column has that number as its place.
    fn tables(&self) -> Vec<(Vec<usize>, usize)> {
        let table = |(rare, dropped): (&Vec<bool>, &Option<usize>)| {
            let groups = Groups::of(rare);
            let width = groups.width - usize::from(dropped.is_some());
            let column = |place: usize| match *dropped {
                Some(dropped) if place == dropped => width,
                Some(dropped) if dropped < place => place - 1,
                _ => place,
            };
            let unknown = match self.handle_unknown {
                HandleUnknown::InfrequentIfExist => groups.rare.map_or(width, column),
                HandleUnknown::Error | HandleUnknown::Ignore => width,
            };
            (groups.places.iter().map(|place| column(*place)).chain([unknown]).collect(), width)
        };
        self.rare.iter().zip(&self.dropped).map(table).collect()
    }

    /// Samples (n, d) as zeros and ones, as an expression; (n, columns), float64. Carries a `ValueError` for
    /// another number of features; when run for infinity, and for categories that are not known.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples("OneHotEncoder", x, self.categories.len()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let tables = self.tables();
        let blocks = self.categories.iter().zip(&tables).enumerate().map(|(at, (values, (table, width)))| {
            let mut codes = codes(&column(&samples, at), values);
            if self.handle_unknown == HandleUnknown::Error {
                codes = known(&codes, values, at);
            }
            indicators(&looked_up(table, &codes), *width)
        });
        let blocks: Vec<Tensor> = blocks.collect();
        let made = concatenate(&blocks.iter().collect::<Vec<_>>(), 1);
        in_fixed_chunks(&made, tables.iter().map(|(_, width)| width).sum())
    }

    /// The samples that [`transform`](FittedOneHotEncoder::transform) maps to these, as an expression; (n,
    /// columns) to (n, d), in the type of the categories or, where NaN may be among them, in float64. A
    /// sample without any category of a feature is of the one whose column was left out, or NaN where unknown
    /// categories are taken. Carries a `ValueError` for another number of columns; when run for a sample
    /// without a category, where none can be; `NotImplemented` with rare categories, which have no number.
    #[track_caller]
    pub fn inverse_transform(&self, made: &Tensor) -> Tensor {
        let parts = self.back(made);
        match parts {
            Ok(parts) => stack(&parts.iter().collect::<Vec<_>>(), 1),
            Err(error) => Tensor::from(error),
        }
    }

    #[track_caller]
    fn back(&self, made: &Tensor) -> Result<Vec<Tensor>> {
        if self.rare.iter().flatten().any(|rare| *rare) {
            let text = "inverse_transform of an encoder with rare categories".to_owned();
            return Err(Error::here(GraphError::NotImplemented(text)));
        }
        let widths: Vec<usize> = self.tables().into_iter().map(|(_, width)| width).collect();
        let all: usize = widths.iter().sum();
        let found = made.shape()?.get(1).copied().unwrap_or(0);
        if made.ndim()? != 2 || found != all && found != tharsis_numeric::select::UNKNOWN {
            return Err(refused(format!(
                "Shape of the passed X data is not correct. Expected {all} columns, got {found}."
            )));
        }
        let mut first = 0;
        let mut parts = Vec::with_capacity(widths.len());
        for ((values, dropped), width) in self.categories.iter().zip(&self.dropped).zip(&widths) {
            let block = made.get(&[(..).into(), (first..first + *width as i64).into()]).astype(DType::F64);
            first += *width as i64;
            let is_none = block.equal(0.0).all(1);
            let kept = values.chosen(|at| Some(at) != *dropped);
            let of_none = dropped.map(|dropped| values.chosen(|at| at == dropped).to_tensor());
            if kept.is_empty() {
                // Without a column samples have the one category.
                let of_none = of_none.unwrap_or_else(|| Tensor::number(f64::NAN));
                parts.push(where_(&is_none, of_none, f64::NAN));
                continue;
            }
            let category = category_at(&kept, &block.argmax(1));
            if let Some(of_none) = of_none {
                parts.push(where_(&is_none, of_none, category));
                continue;
            }
            if self.handle_unknown != HandleUnknown::Error {
                parts.push(where_(&is_none, f64::NAN, category));
                continue;
            }
            let message =
                "Samples can not be inverted when drop=None and handle_unknown='error' because they \
                           contain all zeros"
                    .to_owned();
            parts.push(Tensor::apply(Require { message }, &[&category, &is_none.logical_not()]));
        }
        Ok(parts)
    }
}

saved!(FittedOneHotEncoder, "OneHotEncoder", |model| {
    !model.categories.is_empty()
        && model.categories.len() == model.rare.len()
        && model.categories.len() == model.dropped.len()
        && model.categories.iter().zip(&model.rare).zip(&model.dropped).all(|((values, rare), dropped)| {
            let is_dropped = dropped.is_none_or(|dropped| dropped < Groups::of(rare).width);
            !values.is_empty() && values.len() == rare.len() && is_dropped
        })
});

impl Transform for FittedOneHotEncoder {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedOneHotEncoder::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let own = crate::feature_names::same(names, self.categories.len())?;
        let of = |(at, name): (usize, &String)| {
            let (texts, rare) = (self.categories[at].texts(), &self.rare[at]);
            let alone = texts.into_iter().zip(rare).filter(|(_, rare)| !**rare).map(|(text, _)| text);
            let together = rare.contains(&true).then(|| "infrequent_sklearn".to_owned());
            let columns = alone.chain(together).enumerate();
            let kept = columns.filter(|(place, _)| Some(*place) != self.dropped[at]);
            kept.map(|(_, text)| format!("{name}_{text}")).collect::<Vec<String>>()
        };
        Some(own.iter().enumerate().flat_map(of).collect())
    }
}

impl fmt::Display for FittedOneHotEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OneHotEncoder of {} features", self.categories.len())?;
        for (at, values) in self.categories.iter().enumerate() {
            write!(f, "\n  categories[{at}]:{values}")?;
        }
        Ok(())
    }
}
