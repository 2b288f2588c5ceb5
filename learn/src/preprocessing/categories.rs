//! Categories of features: those that samples have, and those that are too rare to stand alone.

use super::category_values::{Categories, codes, finite};
use crate::Setting;
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, check_samples, refused};
use crate::dense::positions;
use crate::params::Parameter;
use ndarray::Array1;
use tharsis_graph::ops::Require;
use tharsis_kernels::Element;
use tharsis_numeric::{DType, Result, Tensor, arange};

/// Most categories of a feature. They are kept in memory.
const CATEGORIES_MAX: u64 = 1 << 20;

/// The samples that a category needs to stand alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinFrequency {
    /// So many samples.
    Count(usize),
    /// This part of all samples.
    Share(f64),
}

impl From<usize> for MinFrequency {
    fn from(count: usize) -> MinFrequency {
        MinFrequency::Count(count)
    }
}

impl From<f64> for MinFrequency {
    fn from(share: f64) -> MinFrequency {
        MinFrequency::Share(share)
    }
}

impl Parameter for MinFrequency {
    fn words(_: usize) -> String {
        "an int in the range [1, inf), a float in the range (0.0, 1.0)".to_owned()
    }

    fn of(value: &Setting) -> Option<MinFrequency> {
        match value {
            Setting::Real(share) => Some(MinFrequency::Share(*share)),
            other => usize::of(other).map(MinFrequency::Count),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            MinFrequency::Count(count) => count.setting(),
            MinFrequency::Share(share) => Setting::Real(*share),
        }
    }
}

/// Bounds of the categories that stand alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frequent {
    pub(super) min_frequency: Option<MinFrequency>,
    pub(super) max_categories: Option<usize>,
}

impl Frequent {
    /// Whether no category is too rare.
    pub(super) fn is_all(&self) -> bool {
        self.min_frequency.is_none() && self.max_categories.is_none()
    }

    /// # Errors
    /// `ValueError` for bounds out of their ranges.
    #[track_caller]
    pub(super) fn check(&self, estimator: &str) -> Result<()> {
        if let Some(most) = self.max_categories {
            check_count(estimator, "max_categories", most, 1)?;
        }
        let wanted = format!("{} or None", MinFrequency::words(0));
        match self.min_frequency {
            Some(MinFrequency::Count(least)) => check(estimator, "min_frequency", 1 <= least, &wanted, least),
            Some(MinFrequency::Share(share)) => {
                let is_sound = 0.0 < share && share < 1.0;
                check(estimator, "min_frequency", is_sound, &wanted, share)
            }
            None => Ok(()),
        }
    }

    /// Whether each of the categories with these numbers of samples is too rare.
    fn rare(&self, counts: &[f64], rows: usize) -> Vec<bool> {
        let least = match self.min_frequency {
            None => 0.0,
            Some(MinFrequency::Count(least)) => least as f64,
            Some(MinFrequency::Share(share)) => share * rows as f64,
        };
        let mut rare: Vec<bool> = counts.iter().map(|count| *count < least).collect();
        let frequent = rare.iter().filter(|rare| !**rare).count();
        // As in scikit-learn, one place is for rare categories, also where there is none.
        let Some(kept) = self.max_categories.filter(|most| *most < frequent + 1).map(|most| most - 1) else {
            return rare;
        };
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by(|&a, &b| counts[a].total_cmp(&counts[b]));
        for &category in &order[..counts.len().saturating_sub(kept)] {
            rare[category] = true;
        }
        rare
    }
}

/// The categories of each feature of these samples in their own dtype, the training data or a part of them.
/// One pass.
///
/// # Errors
/// `ValueError` for infinity, and for too many categories; errors of the pass.
#[track_caller]
pub(super) fn found(training: &Training, own: &Tensor) -> Result<Vec<Categories>> {
    let dtype = own.dtype()?;
    if dtype == DType::U64 {
        let values = distinct::<u64>(training, own, dtype)?;
        return Ok(values.into_iter().map(|values| Categories::Unsigned(values.into())).collect());
    }
    if dtype.is_integer() {
        let values = distinct::<i64>(training, own, DType::I64)?;
        return Ok(values.into_iter().map(|values| Categories::Integers(values.into())).collect());
    }
    let values = distinct::<f64>(training, own, DType::F64)?;
    if values.iter().flatten().any(|value| value.is_infinite()) {
        return Err(training.not_finite(Nan::Missing));
    }
    let sorted = |values: Vec<f64>| {
        let missing = values.iter().any(|value| value.is_nan()).then_some(f64::NAN);
        Categories::Reals(values.into_iter().filter(|value| !value.is_nan()).chain(missing).collect())
    };
    Ok(values.into_iter().map(sorted).collect())
}

/// The distinct numbers of each feature, in this dtype.
#[track_caller]
fn distinct<T: Element>(training: &Training, own: &Tensor, dtype: DType) -> Result<Vec<Vec<T>>> {
    let columns: Vec<Tensor> =
        (0..training.columns).map(|at| column(own, at).astype(dtype).unique()).collect();
    let found = training.engine.elements::<T>(&columns.iter().collect::<Vec<_>>(), CATEGORIES_MAX)?;
    found.map_err(|count| {
        refused(format!(
            "a feature has {count} categories, {} takes at most {CATEGORIES_MAX}",
            training.estimator
        ))
    })
}

/// The categories that are given, for samples of this dtype.
pub(super) fn given(categories: &[Array1<f64>], dtype: DType) -> Vec<Categories> {
    categories.iter().map(|values| Categories::given(values, dtype)).collect()
}

/// Samples of a model with categories of so many features, in their own dtype. When run they carry a
/// `ValueError` for infinity.
///
/// # Errors
/// `ValueError` for other than two axes, complex numbers, or another number of features.
#[track_caller]
pub(super) fn samples(model: &str, x: &Tensor, columns: usize) -> Result<Tensor> {
    check_samples(model, x, columns)?;
    Ok(crate::checks::finite(x, Nan::Missing))
}

/// The numbers of samples of each category, for each feature. One pass.
///
/// # Errors
/// Errors of the pass.
#[track_caller]
pub(super) fn counts(training: &Training, categories: &[Categories]) -> Result<Vec<Vec<f64>>> {
    let counts = categories
        .iter()
        .enumerate()
        .map(|(at, values)| codes(&column(&training.own, at), values).bincount(None, values.len()));
    let counts: Vec<Tensor> = counts.collect();
    let states = training.engine.run(&counts.iter().collect::<Vec<_>>())?;
    Ok(states.into_iter().map(|state| state.into_iter().collect()).collect())
}

/// Whether each category of each feature is too rare. A pass if that needs counts; NaN may be left out of it.
///
/// # Errors
/// Errors of the pass.
#[track_caller]
pub(super) fn rare(
    training: &Training,
    categories: &[Categories],
    frequent: Frequent,
    nan: Nan,
) -> Result<Vec<Vec<bool>>> {
    if frequent.is_all() {
        return Ok(categories.iter().map(|values| vec![false; values.len()]).collect());
    }
    let counts = counts(training, categories)?;
    let of_feature = |(values, counts): (&Categories, &Vec<f64>)| {
        let counted = if nan == Nan::Missing { values.known() } else { values.len() };
        let mut rare = frequent.rare(&counts[..counted], training.rows);
        rare.resize(values.len(), false);
        rare
    };
    Ok(categories.iter().zip(&counts).map(of_feature).collect())
}

/// A feature of samples; (n,).
#[track_caller]
pub(super) fn column(x: &Tensor, at: usize) -> Tensor {
    x.get(&[(..).into(), (at as i64).into()])
}

/// Codes of a column, all of which are categories. Carries a `ValueError` when run otherwise.
#[track_caller]
pub(super) fn known(codes: &Tensor, categories: &Categories, at: usize) -> Tensor {
    let message = format!("Found unknown categories in column {at} during transform");
    Tensor::apply(Require { message }, &[codes, &codes.less(categories.len() as i64)])
}

/// The places of a table at these positions; (n,), int64.
#[track_caller]
pub(super) fn looked_up(table: &[usize], codes: &Tensor) -> Tensor {
    positions(table).take_at(codes, 0)
}

/// The categories at these positions; (n,).
#[track_caller]
pub(super) fn category_at(categories: &Categories, codes: &Tensor) -> Tensor {
    categories.to_tensor().take_at(codes, 0)
}

/// Whether each sample is told at each of so many places; (n,) to (n, width), float64 zeros and ones.
#[track_caller]
pub(super) fn indicators(places: &Tensor, width: usize) -> Tensor {
    places.expand_dims(1).equal(arange(width)).astype(DType::F64)
}

/// Checks categories that are given.
///
/// # Errors
/// `ValueError` for another number of features, none of a feature, infinite ones, and those that do not
/// ascend.
#[track_caller]
pub(super) fn check_given(categories: &[Array1<f64>], columns: usize) -> Result<()> {
    if categories.len() != columns {
        return Err(refused(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,).",
        ));
    }
    for values in categories {
        let known = finite(values);
        if values.is_empty() || known.iter().any(|value| !value.is_finite()) {
            return Err(refused("Nan should be the last element in user provided categories, others finite"));
        }
        if known.windows(2).any(|pair| pair[1] <= pair[0]) {
            return Err(refused("Unsorted categories are not supported for numerical categories"));
        }
    }
    Ok(())
}

/// Checks that all samples of a fit are of the categories that are given. One pass.
///
/// # Errors
/// `ValueError` that names the first column with others; errors of the pass.
#[track_caller]
pub(super) fn check_seen(training: &Training, categories: &[Categories]) -> Result<()> {
    let unknown = categories
        .iter()
        .enumerate()
        .map(|(at, values)| codes(&column(&training.own, at), values).equal(values.len() as i64).any(..));
    let unknown: Vec<Tensor> = unknown.collect();
    let states = training.engine.run(&unknown.iter().collect::<Vec<_>>())?;
    match states.iter().position(|state| state.sum() != 0.0) {
        None => Ok(()),
        Some(at) => {
            training.explain_not_finite(Nan::Missing)?;
            Err(refused(format!("Found unknown categories in column {at} during fit")))
        }
    }
}

/// Places of the categories of a feature: those that stand alone first, then one for all others.
pub(super) struct Groups {
    /// The place of each category.
    pub(super) places: Vec<usize>,
    /// The number of places.
    pub(super) width: usize,
    /// The place of rare categories, if there are any.
    pub(super) rare: Option<usize>,
}

impl Groups {
    pub(super) fn of(rare: &[bool]) -> Groups {
        let frequent = rare.iter().filter(|rare| !**rare).count();
        let mut next = 0;
        let places = rare.iter().map(|&rare| {
            if rare {
                return frequent;
            }
            next += 1;
            next - 1
        });
        let places = places.collect();
        let has_rare = frequent < rare.len();
        Groups { places, width: frequent + usize::from(has_rare), rare: has_rare.then_some(frequent) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frequent, Groups, MinFrequency};

    /// Numbers of scikit-learn 1.9.1.
    #[test]
    fn rare_categories_are_those_of_scikit_learn() {
        let counts = [1.0, 2.0, 2.0, 2.0, 2.0];
        let rare = |min_frequency, max_categories| {
            Frequent { min_frequency, max_categories }.rare(&counts, 9).iter().filter(|rare| **rare).count()
        };
        for (most, expected) in [(1, 5), (2, 4), (3, 3), (4, 2), (5, 1), (6, 0)] {
            assert_eq!(rare(None, Some(most)), expected, "{most}");
        }
        assert_eq!(rare(Some(MinFrequency::Count(2)), Some(3)), 3);
        assert_eq!(rare(Some(MinFrequency::Share(0.2)), None), 1);
        assert_eq!(rare(Some(MinFrequency::Count(100)), None), 5);
        // Of equal counts the later ones stand alone.
        let frequent = Frequent { min_frequency: None, max_categories: Some(2) };
        assert_eq!(frequent.rare(&counts, 9), [true, true, true, true, false]);
    }

    #[test]
    fn places_of_groups() {
        let groups = Groups::of(&[true, false, true, false]);
        assert_eq!((groups.places, groups.width, groups.rare), (vec![2, 0, 2, 1], 3, Some(2)));
        let groups = Groups::of(&[false, false]);
        assert_eq!((groups.places, groups.width, groups.rare), (vec![0, 1], 2, None));
    }
}
