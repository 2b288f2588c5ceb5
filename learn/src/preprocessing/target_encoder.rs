//! Categories by the targets of their samples.

use super::categories::{column, found, samples};
use super::category_values::{Categories, codes};
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::labels::{Classes, is_not_whole};
use crate::model_selection::{KFold, Split, StratifiedKFold};
use crate::params::{Auto, parameters, words};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, concatenate};

/// The kind of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetType {
    /// Classes if all targets are whole numbers, else numbers.
    #[default]
    Auto,
    /// Two classes.
    Binary,
    /// Numbers.
    Continuous,
    /// Any number of classes, with a column for each.
    Multiclass,
}

words!(
    TargetType,
    [
        "auto" => TargetType::Auto, "binary" => TargetType::Binary, "continuous" => TargetType::Continuous,
        "multiclass" => TargetType::Multiclass
    ]
);

/// scikit-learn's `TargetEncoder`: the mean of the targets of each category, drawn to the mean of all.
///
/// Categories are numbers, compared as float64; NaN is one of them. A category that the fit has not seen gets
/// the mean of all targets. Samples of a fit are not to be mapped by targets of their own:
/// [`fit_transform`](TargetEncoder::fit_transform), and a pipeline for its next step, leave them out by
/// folds.
///
/// ```
/// use tharsis_learn::preprocessing::TargetEncoder;
/// use tharsis_numeric::array;
/// let (x, y) = (array([3i64, 3, 7, 7]).reshape(&[4, 1]), array([1.5, 2.5, 0.0, 4.0]));
/// let model = TargetEncoder::new().smooth(2.0).fit(&x, &y, ..)?;
/// assert_eq!(model.encodings[0].column(0).to_vec(), [2.0, 2.0]);
/// assert_eq!(model.transform(&array([9i64]).reshape(&[1, 1])).to_vec::<f64>()?, [2.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct TargetEncoder {
    target_type: TargetType,
    smooth: Auto<f64>,
    cv: usize,
}

/// A fitted [`TargetEncoder`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedTargetEncoder {
    /// scikit-learn's `categories_`: those of each feature, ascending, NaN last.
    pub categories: Vec<Categories>,
    /// scikit-learn's `encodings_`: for each feature the number of each category, for each class of several;
    /// (categories, columns) each.
    pub encodings: Vec<Array2<f64>>,
    /// scikit-learn's `target_mean_`; (columns,).
    pub target_mean: Array1<f64>,
    /// scikit-learn's `classes_`, ascending; none of targets that are numbers.
    pub classes: Option<Vec<i64>>,
    /// scikit-learn's `target_type_`.
    pub target_type: TargetType,
}

parameters!(
    TargetEncoder,
    "TargetEncoder",
    ["target_type" => target_type, "smooth" => smooth, "cv" => cv >= 2]
);

impl Default for TargetEncoder {
    fn default() -> TargetEncoder {
        TargetEncoder { target_type: TargetType::Auto, smooth: Auto(None), cv: 5 }
    }
}

impl TargetEncoder {
    /// An estimator with scikit-learn's defaults: smoothed by the variances of targets, five folds.
    pub fn new() -> TargetEncoder {
        TargetEncoder::default()
    }

    /// scikit-learn's `target_type`: the kind of targets.
    pub fn target_type(self, target_type: TargetType) -> TargetEncoder {
        TargetEncoder { target_type, ..self }
    }

    /// scikit-learn's `smooth`: the samples with the mean of all targets that are added to each category; by
    /// the variances of targets if none is given.
    pub fn smooth(self, smooth: f64) -> TargetEncoder {
        TargetEncoder { smooth: Auto(Some(smooth)), ..self }
    }

    /// scikit-learn's `cv`: the folds of [`fit_transform`](TargetEncoder::fit_transform). They are
    /// consecutive, of classes with equal shares, as scikit-learn's `KFold` and `StratifiedKFold` are.
    pub fn cv(self, cv: usize) -> TargetEncoder {
        TargetEncoder { cv, ..self }
    }

    /// Fits the encoder on samples (n, d), of any real dtype, and targets (n,). Four passes, of classes up to
    /// six.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, other classes than two for the type `binary`, more
    /// than 2^20 categories of a feature, shapes that do not fit, no samples, no features, complex numbers,
    /// infinite samples, and targets with NaN or infinity; `TypeError` for weights; `OverflowError` for sums
    /// beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedTargetEncoder> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The fitted encoder, and the samples of the fit, each mapped by the targets of the folds that it is not
    /// in, as an expression; (n, columns). Passes for each fold.
    ///
    /// # Errors
    /// As [`fit`](TargetEncoder::fit); `ValueError` for more folds than samples, or than samples of each
    /// class.
    #[track_caller]
    pub fn fit_transform(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<(FittedTargetEncoder, Tensor)> {
        self.crossed(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        check_count("TargetEncoder", "cv", self.cv, 2)?;
        match self.smooth {
            Auto(Some(smooth)) => check_not_negative("TargetEncoder", "smooth", smooth),
            Auto(None) => Ok(()),
        }
    }

    #[track_caller]
    fn crossed(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<(FittedTargetEncoder, Tensor)> {
        self.check()?;
        let training = Training::supervised("TargetEncoder", x, y, options)?.without_weights()?;
        let target = self.target(&training)?;
        let model = self.encoded(&training, &training.own, &target.columns, &target)?;
        let (mut parts, mut rows) = (Vec::new(), Vec::new());
        for split in self.splits(&training, &target)? {
            let (x, columns) = (split.train.of(&training.own), split.train.of(&target.columns));
            let fold = self.encoded(&training, &x, &columns, &target)?;
            parts.push(fold.transform(&split.test.of(&training.own)));
            rows.push(split.test.indices());
        }
        // The rows of the folds, one behind the other, in the order of the samples.
        let made = concatenate(&parts.iter().collect::<Vec<_>>(), 0);
        let order = concatenate(&rows.iter().collect::<Vec<_>>(), 0).argsort(0);
        Ok((model, made.take_at(&order, 0)))
    }

    /// The folds.
    #[track_caller]
    fn splits(&self, training: &Training, target: &Target) -> Result<Vec<Split>> {
        training.engine.within(|| match &target.places {
            None => Ok(KFold { n_splits: self.cv, ..KFold::default() }.split(&training.x)?.collect()),
            Some(places) => Ok(StratifiedKFold { n_splits: self.cv, ..StratifiedKFold::default() }
                .split(places)?
                .collect()),
        })
    }

    /// The targets as columns of numbers.
    #[track_caller]
    fn target(&self, training: &Training) -> Result<Target> {
        let y = training.target()?;
        let is_whole = match is_not_whole(y)? {
            None => true,
            Some(is_wrong) => {
                training.engine.run(&[&is_wrong.any(..)])?.iter().all(|found| found.sum() == 0.0)
            }
        };
        let is_continuous = match self.target_type {
            TargetType::Auto => !is_whole,
            given => given == TargetType::Continuous,
        };
        if is_continuous {
            let columns = training.target_columns()?;
            if columns.shape()?.get(1) != Some(&1) {
                return Err(refused("y should be a 1d array of targets"));
            }
            return Ok(Target { columns, places: None, classes: None, kind: TargetType::Continuous });
        }
        let classes = Classes::of(training)?;
        let is_binary = match self.target_type {
            TargetType::Auto => classes.values.len() <= 2,
            given => given == TargetType::Binary,
        };
        let count = classes.values.len();
        check("TargetEncoder", "target_type", !is_binary || count <= 2, "one that fits y", "'binary'")?;
        let places = classes.positions();
        let (columns, kind) = if is_binary {
            (places.expand_dims(1).astype(DType::F64), TargetType::Binary)
        } else {
            (classes.indicators(), TargetType::Multiclass)
        };
        Ok(Target { columns, places: Some(places), classes: Some(classes.values), kind })
    }

    /// The model of samples (n, d) and columns of targets (n, k), of these training data or a part of them.
    #[track_caller]
    fn encoded(
        &self,
        training: &Training,
        x: &Tensor,
        columns: &Tensor,
        target: &Target,
    ) -> Result<FittedTargetEncoder> {
        let categories = found(training, x)?;
        let width = columns.shape()?.get(1).copied().unwrap_or(1);
        let all: usize = categories.iter().map(|values| values.len()).sum();
        training.check_held(all, width)?;
        let codes: Vec<Tensor> =
            categories.iter().enumerate().map(|(at, values)| codes(&column(x, at), values)).collect();
        let summed = |of: &dyn Fn(usize, usize) -> Tensor| -> Vec<Tensor> {
            let sums = codes.iter().zip(&categories).enumerate().flat_map(|(at, (codes, values))| {
                (0..width).map(move |to| (at, to, codes.clone(), values.len()))
            });
            sums.map(|(at, to, codes, len)| codes.bincount(Some(&of(at, to)), len)).collect()
        };
        let mut wanted = vec![columns.mean(0), columns.var(0), columns.isfinite().all(..)];
        wanted
            .extend(codes.iter().zip(&categories).map(|(codes, values)| codes.bincount(None, values.len())));
        wanted.extend(summed(&|_, to| column(columns, to)));
        let mut states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?.into_iter();
        let mut next = || states.next().ok_or_else(lost);
        let (mean, variance, is_finite) = (next()?, next()?, next()?);
        if is_finite.sum() == 0.0 || !all_finite([&mean, &variance]) {
            return Err(training.not_finite(Nan::Missing));
        }
        let (mean, variance) = (vector(mean)?, vector(variance)?);
        let counts = categories.iter().map(|_| vector(next()?)).collect::<Result<Vec<_>>>()?;
        let sums = tables(&mut next, &categories, width)?;
        let encodings = match self.smooth {
            Auto(Some(smooth)) => {
                sums.iter().zip(&counts).map(|(sums, counts)| drawn(sums, counts, &mean, smooth)).collect()
            }
            Auto(None) => {
                let counted = sums.iter().zip(&counts);
                let means: Vec<Array2<f64>> =
                    counted.map(|(sums, counts)| sums / &counts.clone().insert_axis(Axis(1))).collect();
                let rest = summed(&|at, to| {
                    let own = tensor(&means[at].column(to).to_owned()).take_at(&codes[at], 0);
                    (column(columns, to) - own).square()
                });
                let mut states = training.engine.run(&rest.iter().collect::<Vec<_>>())?.into_iter();
                let squares = tables(&mut || states.next().ok_or_else(lost), &categories, width)?;
                let parts = means.iter().zip(&squares).zip(&counts);
                parts
                    .map(|((means, squares), counts)| weighed(means, squares, counts, (&mean, &variance)))
                    .collect()
            }
        };
        Ok(FittedTargetEncoder {
            categories,
            encodings,
            target_mean: mean,
            classes: target.classes.clone(),
            target_type: target.kind,
        })
    }
}

/// Targets as numbers.
struct Target {
    /// (n, k).
    columns: Tensor,
    /// The position of each class; (n,).
    places: Option<Tensor>,
    classes: Option<Vec<i64>>,
    kind: TargetType,
}

/// States of each category, a feature and a column of targets behind the other, as tables (categories, k).
#[track_caller]
fn tables(
    next: &mut impl FnMut() -> Result<ArrayD<f64>>,
    categories: &[Categories],
    width: usize,
) -> Result<Vec<Array2<f64>>> {
    let mut made = Vec::with_capacity(categories.len());
    for values in categories {
        let mut table = Array2::zeros((values.len(), width));
        for mut column in table.columns_mut() {
            column.assign(&vector(next()?)?);
        }
        made.push(table);
    }
    Ok(made)
}

/// The means of categories with so many samples of the mean of all.
fn drawn(sums: &Array2<f64>, counts: &Array1<f64>, mean: &Array1<f64>, smooth: f64) -> Array2<f64> {
    let mut made = sums + &(mean * smooth);
    for (mut row, count) in made.outer_iter_mut().zip(counts) {
        row /= count + smooth;
    }
    made
}

/// The means of categories weighed against that of all targets by the variances of both.
fn weighed(
    means: &Array2<f64>,
    squares: &Array2<f64>,
    counts: &Array1<f64>,
    (mean, variance): (&Array1<f64>, &Array1<f64>),
) -> Array2<f64> {
    Array2::from_shape_fn(means.dim(), |(category, to)| {
        let (count, all) = (counts[category], variance[to] * counts[category]);
        let weight = all / (all + squares[[category, to]] / count);
        // Without any variance the means are the same.
        if weight.is_nan() { mean[to] } else { weight * means[[category, to]] + (1.0 - weight) * mean[to] }
    })
}

impl Estimator for TargetEncoder {
    type Fitted = FittedTargetEncoder;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedTargetEncoder> {
        self.check()?;
        let training = Training::supervised("TargetEncoder", x, y, options)?.without_weights()?;
        let target = self.target(&training)?;
        self.encoded(&training, &training.own, &target.columns, &target)
    }

    #[track_caller]
    fn fit_transform_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Option<Result<(FittedTargetEncoder, Tensor)>> {
        Some(self.crossed(x, y, options))
    }
}

impl FittedTargetEncoder {
    /// The numbers of the categories of samples (n, d), as an expression; (n, d), for k > 2 classes (n, d k),
    /// float64. Carries a `ValueError` for another number of features; when run for infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples("TargetEncoder", x, self.categories.len()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let mean = tensor(&self.target_mean).expand_dims(0);
        let parts =
            self.categories.iter().zip(&self.encodings).enumerate().map(|(at, (values, encodings))| {
                let table = concatenate(&[&tensor(encodings), &mean], 0);
                table.take_at(&codes(&column(&samples, at), values), 0)
            });
        concatenate(&parts.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 1)
    }
}

saved!(FittedTargetEncoder, "TargetEncoder", |model| {
    let columns = model.target_mean.len();
    0 < columns
        && !model.categories.is_empty()
        && model.categories.len() == model.encodings.len()
        && model
            .categories
            .iter()
            .zip(&model.encodings)
            .all(|(values, encodings)| !values.is_empty() && encodings.dim() == (values.len(), columns))
});

impl Transform for FittedTargetEncoder {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedTargetEncoder::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let own = crate::feature_names::same(names, self.categories.len())?;
        match &self.classes {
            Some(classes) if 1 < self.target_mean.len() => {
                let of = |name| classes.iter().map(move |class| format!("{name}_{class}"));
                Some(own.iter().flat_map(of).collect())
            }
            _ => Some(own),
        }
    }
}

impl fmt::Display for FittedTargetEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetEncoder of {} features, {:?}", self.categories.len(), self.target_type)?;
        show::line(f, "target_mean", &self.target_mean)
    }
}
