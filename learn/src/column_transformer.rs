//! Transformers beside each other, whose results are columns of one matrix.
//!
//! A part reads its columns of the samples as an expression, so the passes of its fit read no others, and the
//! results are joined as an expression: nothing of the size of the samples is kept.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{check_matrix, check_samples, refused};
use crate::dense::positions;
use crate::feature_names;
use crate::params::{Params, Setting};
use crate::saved::{Save, decoded, encoded};
use crate::step::FittedStep;
use crate::step_parts::{Columns, Part, Parts, Remainder, Use, check_names, params_of, set_use};
use std::fmt;
use std::ops::Range;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{Error, Result, Tensor, concatenate, zeros};

const NAME: &str = "ColumnTransformer";
const UNION: &str = "FeatureUnion";
const REMAINDER: &str = "remainder";

/// scikit-learn's `ColumnTransformer`: transformers of some columns each, whose results stand beside each
/// other.
///
/// ```
/// use tharsis_learn::compose::{ColumnTransformer, Remainder};
/// use tharsis_learn::preprocessing::{MinMaxScaler, OneHotEncoder};
/// use tharsis_numeric::array;
/// let x = array([2.0, 7.0, 5.0, 4.0, 8.0, 6.0]).reshape(&[2, 3]);
/// let transformer = ColumnTransformer::new()
///     .part("scale", MinMaxScaler::new(), [0])
///     .part("code", OneHotEncoder::new(), [1])
///     .remainder(Remainder::passthrough());
/// let model = transformer.fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 1.0, 0.0, 5.0, 1.0, 0.0, 1.0, 6.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// Parts know columns by names if it is told those of all features:
///
/// ```
/// use tharsis_learn::compose::ColumnTransformer;
/// use tharsis_learn::preprocessing::StandardScaler;
/// use tharsis_learn::{Named, Table};
/// use tharsis_numeric::array;
/// let table = Table::new(["height", "width"], &array([1.0, 5.0, 3.0, 9.0]).reshape(&[2, 2]))?;
/// let transformer = ColumnTransformer::new().feature_names(table.names());
/// let scaled = transformer.part("scale", StandardScaler::new(), ["width"]);
/// let model = Named::new(scaled).fit_unsupervised(&table, ..)?;
/// assert_eq!(model.transform(&table).to_vec::<f64>()?, [-1.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct ColumnTransformer {
    parts: Parts,
    remainder: Use,
    feature_names: Vec<String>,
}

/// scikit-learn's `FeatureUnion`: the results of several transformers of the same samples, beside each other.
///
/// ```
/// use tharsis_learn::pipeline::FeatureUnion;
/// use tharsis_learn::preprocessing::{MaxAbsScaler, MinMaxScaler};
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0, 4.0]).reshape(&[3, 1]);
/// let union = FeatureUnion::new().part("low", MaxAbsScaler::new()).part("range", MinMaxScaler::new());
/// let made = union.weight("range", 3.0).fit(&x, ..)?.transform(&x);
/// assert_eq!(made.to_vec::<f64>()?, [0.25, 0.0, 0.5, 1.0, 1.0, 3.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Default)]
pub struct FeatureUnion {
    parts: Parts,
}

/// A fitted [`ColumnTransformer`] or [`FeatureUnion`].
#[non_exhaustive]
pub struct FittedColumnTransformer {
    /// scikit-learn's `n_features_in_`.
    pub n_features_in: usize,
    parts: Vec<FittedPart>,
    is_union: bool,
}

/// A part with its model.
struct FittedPart {
    name: String,
    /// None of columns that stay as they are.
    model: Option<FittedStep>,
    columns: Vec<usize>,
    weight: f64,
    /// Columns of its result.
    width: usize,
}

/// The number of columns of samples.
#[track_caller]
fn columns_of(x: &Tensor) -> Result<usize> {
    check_matrix(x)?;
    match x.shape()? {
        &[_, columns] if columns != UNKNOWN => Ok(columns),
        _ => Err(refused("the number of features is known only after a run")),
    }
}

/// The columns at these places of so many.
#[track_caller]
fn taken(x: &Tensor, places: &[usize], columns: usize) -> Tensor {
    if places.iter().copied().eq(0..columns) {
        return x.clone();
    }
    x.take_at(&positions(places), 1)
}

/// The results of parts beside each other; (n, 0) of none.
#[track_caller]
fn joined(x: &Tensor, results: &[Tensor]) -> Tensor {
    match results {
        [] => match x.shape() {
            Ok(&[rows, ..]) if rows != UNKNOWN => zeros(&[rows, 0]),
            _ => x.get(&[(..).into(), (..0i64).into()]),
        },
        [only] => only.clone(),
        several => concatenate(&several.iter().collect::<Vec<_>>(), 1),
    }
}

fn weighed(made: Tensor, weight: f64) -> Tensor {
    if weight == 1.0 { made } else { made * weight }
}

/// Fits parts to samples; the model, and the samples as they are mapped.
#[track_caller]
fn fitted(
    (name, is_union): (&'static str, bool),
    parts: &[(Part, Vec<usize>)],
    (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
) -> Result<(FittedColumnTransformer, Tensor)> {
    if options.weights().is_some() {
        let text = format!("{name}.fit() got an unexpected keyword argument 'sample_weight'");
        return Err(Error::here(GraphError::Type(text)));
    }
    let n_features_in = x.shape()?.last().copied().unwrap_or(0);
    let (mut models, mut results) = (Vec::new(), Vec::new());
    for (part, columns) in parts {
        // As in scikit-learn, a part of no columns is not fitted. Parts of a union have those of the samples.
        if columns.is_empty() && !is_union {
            continue;
        }
        let samples = taken(x, columns, n_features_in);
        let (model, made) = match &part.of {
            Use::Drop => continue,
            Use::Passthrough => (None, samples),
            Use::Map(step) => {
                let (model, made) = step.fit_step(&samples, y, options)?;
                (Some(FittedStep(model)), made)
            }
        };
        let &[_, width] = made.shape()? else {
            return Err(refused(format!(
                "The output of the '{}' transformer should be 2D (numpy array, scipy sparse array, dataframe).",
                part.name
            )));
        };
        results.push(weighed(made, part.weight));
        let (name, weight) = (part.name.clone(), part.weight);
        models.push(FittedPart { name, model, columns: columns.clone(), weight, width });
    }
    let samples = joined(x, &results);
    Ok((FittedColumnTransformer { n_features_in, parts: models, is_union }, samples))
}

impl Default for ColumnTransformer {
    fn default() -> ColumnTransformer {
        ColumnTransformer { parts: Parts::default(), remainder: Use::Drop, feature_names: Vec::new() }
    }
}

impl ColumnTransformer {
    /// A transformer without parts, which leaves out all columns.
    pub fn new() -> ColumnTransformer {
        ColumnTransformer::default()
    }

    /// Adds a transformer of some columns.
    pub fn part<E>(mut self, name: &str, estimator: E, columns: impl Into<Columns>) -> ColumnTransformer
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Transform + Send + Sync + 'static,
    {
        self.parts.add(name, Use::of(estimator), columns.into());
        self
    }

    /// Adds columns that stay as they are: scikit-learn's `"passthrough"`.
    pub fn passthrough(mut self, name: &str, columns: impl Into<Columns>) -> ColumnTransformer {
        self.parts.add(name, Use::Passthrough, columns.into());
        self
    }

    /// Adds columns that are left out, also of the remainder: scikit-learn's `"drop"`.
    pub fn dropped(mut self, name: &str, columns: impl Into<Columns>) -> ColumnTransformer {
        self.parts.add(name, Use::Drop, columns.into());
        self
    }

    /// scikit-learn's `remainder`: the use of columns that no part names; by default they are left out.
    pub fn remainder(self, remainder: Remainder) -> ColumnTransformer {
        ColumnTransformer { remainder: remainder.0, ..self }
    }

    /// scikit-learn's `transformer_weights`: a factor of the results of a part. A name that no part has is
    /// ignored.
    pub fn weight(mut self, name: &str, weight: f64) -> ColumnTransformer {
        self.parts.weigh(name, weight);
        self
    }

    /// The names of all features of the samples, by which parts may choose.
    pub fn feature_names<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> ColumnTransformer {
        ColumnTransformer { feature_names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Fits all parts on samples (n, d), where none needs targets.
    ///
    /// # Errors
    /// `ValueError` for names that are empty, given twice or with two underlines, and for columns that are
    /// not there; `TypeError` for weights of samples; the errors of the parts.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedColumnTransformer> {
        self.fit_any(x, None, &options.into())
    }

    /// The parts with their columns, the remainder last.
    #[track_caller]
    fn chosen(&self, x: &Tensor) -> Result<Vec<(Part, Vec<usize>)>> {
        check_names(&self.parts.names())?;
        let columns = columns_of(x)?;
        if !self.feature_names.is_empty() && self.feature_names.len() != columns {
            return Err(refused(format!("{} names for {columns} features", self.feature_names.len())));
        }
        let mut left = vec![true; columns];
        let mut chosen = Vec::with_capacity(self.parts.all.len() + 1);
        for part in &self.parts.all {
            let places = part.columns.places(columns, &self.feature_names)?;
            places.iter().for_each(|&place| left[place] = false);
            chosen.push((part.clone(), places));
        }
        let of = self.remainder.clone();
        let part = Part { name: REMAINDER.to_owned(), of, columns: Columns::All, weight: 1.0 };
        chosen.push((part, (0..columns).filter(|&column| left[column]).collect()));
        Ok(chosen)
    }
}

impl FeatureUnion {
    /// A union without parts, whose results have no columns.
    pub fn new() -> FeatureUnion {
        FeatureUnion::default()
    }

    /// Adds a transformer behind those that are there.
    pub fn part<E>(mut self, name: &str, estimator: E) -> FeatureUnion
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Transform + Send + Sync + 'static,
    {
        self.parts.add(name, Use::of(estimator), Columns::All);
        self
    }

    /// Adds the samples as they are: scikit-learn's `"passthrough"`.
    pub fn passthrough(mut self, name: &str) -> FeatureUnion {
        self.parts.add(name, Use::Passthrough, Columns::All);
        self
    }

    /// Adds a part without results: scikit-learn's `"drop"`.
    pub fn dropped(mut self, name: &str) -> FeatureUnion {
        self.parts.add(name, Use::Drop, Columns::All);
        self
    }

    /// scikit-learn's `transformer_weights`: a factor of the results of a part.
    pub fn weight(mut self, name: &str, weight: f64) -> FeatureUnion {
        self.parts.weigh(name, weight);
        self
    }

    /// Fits all parts on samples (n, d), where none needs targets.
    ///
    /// # Errors
    /// `ValueError` for names that are empty, given twice or with two underlines, and for a factor of a part
    /// that is not there; `TypeError` for weights of samples; the errors of the parts.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedColumnTransformer> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn chosen(&self, x: &Tensor) -> Result<Vec<(Part, Vec<usize>)>> {
        check_names(&self.parts.names())?;
        if let Some(name) = self.parts.unknown_weight() {
            return Err(refused(format!(
                "Attempting to weight transformer \"{name}\", but it is not present in transformer_list."
            )));
        }
        let columns: Vec<usize> = (0..columns_of(x)?).collect();
        Ok(self.parts.all.iter().map(|part| (part.clone(), columns.clone())).collect())
    }
}

macro_rules! estimates {
    ($estimator:ident, $name:expr, $is_union:literal) => {
        impl Estimator for $estimator {
            type Fitted = FittedColumnTransformer;

            fn takes_weights(&self) -> bool {
                false
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &Tensor,
                y: Option<&Tensor>,
                options: &FitOptions,
            ) -> Result<FittedColumnTransformer> {
                Ok(fitted(($name, $is_union), &self.chosen(x)?, (x, y, options))?.0)
            }

            #[track_caller]
            fn fit_transform_any(
                &self,
                x: &Tensor,
                y: Option<&Tensor>,
                options: &FitOptions,
            ) -> Option<Result<(FittedColumnTransformer, Tensor)>> {
                Some(match self.chosen(x) {
                    Ok(parts) => fitted(($name, $is_union), &parts, (x, y, options)),
                    Err(error) => Err(error),
                })
            }
        }

        impl fmt::Debug for $estimator {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", $name, self.parts.names().join(", "))
            }
        }
    };
}
estimates!(ColumnTransformer, NAME, false);
estimates!(FeatureUnion, UNION, true);

/// The error of a parameter that is none.
#[track_caller]
fn unknown<T>(estimator: &impl fmt::Debug, mut known: Vec<&str>, name: &str) -> Result<T> {
    known.sort_unstable();
    let prefix = name.split_once("__").map_or(name, |(prefix, _)| prefix);
    Err(refused(format!(
        "Invalid parameter '{prefix}' for estimator {estimator:?}. Valid parameters are: {known:?}."
    )))
}

/// Parameters of the parts, behind their names; a part may be set to `"drop"` or `"passthrough"`.
impl Params for ColumnTransformer {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let mut all = self.parts.params();
        all.extend(params_of(REMAINDER, &self.remainder));
        all
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        let is_remainder = name.split_once("__").map_or(name, |(own, _)| own) == REMAINDER;
        let is_there = if is_remainder {
            set_use(&mut self.remainder, name, value)?
        } else {
            self.parts.set(name, value)?
        };
        if is_there {
            return Ok(());
        }
        let known = self.parts.names().into_iter().chain([REMAINDER]).collect();
        unknown(self, known, name)
    }
}

/// As those of a [`ColumnTransformer`].
impl Params for FeatureUnion {
    fn estimator(&self) -> &'static str {
        UNION
    }

    fn params(&self) -> Vec<(String, Setting)> {
        self.parts.params()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if self.parts.set(name, value)? { Ok(()) } else { unknown(self, self.parts.names(), name) }
    }
}

impl FittedColumnTransformer {
    fn name(&self) -> &'static str {
        if self.is_union { UNION } else { NAME }
    }

    /// The results of all parts for samples (n, d), as an expression. Carries a `ValueError` for another
    /// number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        if let Err(error) = check_samples(self.name(), x, self.n_features_in) {
            return Tensor::from(error);
        }
        let result = |part: &FittedPart| {
            let samples = taken(x, &part.columns, self.n_features_in);
            let made = part.model.as_ref().map_or(samples.clone(), |model| model.0.transform(&samples));
            weighed(made, part.weight)
        };
        joined(x, &self.parts.iter().map(result).collect::<Vec<_>>())
    }

    /// scikit-learn's `output_indices_`: the names of the parts, and the columns of their results.
    pub fn output_indices(&self) -> Vec<(&str, Range<usize>)> {
        let mut end = 0usize;
        let place = |part: &FittedPart| {
            let start = end;
            end = start.saturating_add(part.width);
            start..end
        };
        let places: Vec<Range<usize>> = self.parts.iter().map(place).collect();
        self.parts.iter().map(|part| part.name.as_str()).zip(places).collect()
    }
}

impl Transform for FittedColumnTransformer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedColumnTransformer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for FittedPart { name, model, columns, width, .. } in &self.parts {
            let own = feature_names::at(names, columns, self.n_features_in)?;
            let made = match model {
                Some(model) => model.0.feature_names_out(&own)?,
                None => own,
            };
            if made.len() != *width {
                return None;
            }
            all.extend(made.into_iter().map(|made| format!("{name}__{made}")));
        }
        Some(all)
    }
}

/// A part in a file: its name, the name of the type of its model and its numbers, its columns, its factor,
/// and the columns of its result.
type SavedPart = (String, Option<(String, Vec<u8>)>, Vec<usize>, f64, usize);

impl Save for FittedColumnTransformer {
    const KIND: &'static str = NAME;

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let mut parts: Vec<SavedPart> = Vec::with_capacity(self.parts.len());
        for FittedPart { name, model, columns, weight, width } in &self.parts {
            let saved = model.as_ref().map(Save::kind_and_body).transpose()?;
            let saved = saved.map(|(kind, body)| (kind.to_owned(), body));
            parts.push((name.clone(), saved, columns.clone(), *weight, *width));
        }
        encoded(&(self.n_features_in, self.is_union, parts))
    }

    fn of_body(body: &[u8]) -> Option<FittedColumnTransformer> {
        let (n_features_in, is_union, parts): (usize, bool, Vec<SavedPart>) = decoded(body)?;
        let read = |(name, saved, columns, weight, width): SavedPart| {
            let is_sound = columns.iter().all(|&column| column < n_features_in);
            let model = match saved {
                Some((kind, body)) => Some(FittedStep::of_kind(&kind, &body)?),
                None => None,
            };
            is_sound.then_some(FittedPart { name, model, columns, weight, width })
        };
        let parts = parts.into_iter().map(read).collect::<Option<_>>()?;
        Some(FittedColumnTransformer { n_features_in, parts, is_union })
    }
}

impl fmt::Debug for FittedColumnTransformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        write!(f, "Fitted{}({})", self.name(), names.join(", "))
    }
}

impl fmt::Display for FittedColumnTransformer {
    /// The names of the parts with their columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} features", self.name(), self.n_features_in)?;
        for part in &self.parts {
            write!(f, "\n{}: columns {:?}", part.name, part.columns)?;
        }
        Ok(())
    }
}
