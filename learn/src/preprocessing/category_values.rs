//! The distinct values of a feature, in the type of its samples: integers beyond 2^53 are other categories
//! than their neighbours.

use crate::feature_names::python;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_kernels::{Element, Kind};
use tharsis_numeric::{DType, Result, Tensor, where_};

/// The categories of a feature, ascending, in the type of the samples of the fit.
///
/// ```
/// use tharsis_learn::preprocessing::{Categories, OneHotEncoder};
/// use tharsis_numeric::array;
/// let x = array([(1i64 << 53) + 1, 1 << 53]).reshape(&[2, 1]);
/// let model = OneHotEncoder::new().fit(&x, ..)?;
/// assert_eq!(model.categories[0], Categories::Integers(ndarray::arr1(&[1 << 53, (1 << 53) + 1])));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Categories {
    /// Of samples of integers, but uint64.
    Integers(Array1<i64>),
    /// Of samples of floats or booleans; NaN last.
    Reals(Array1<f64>),
    /// Of samples of uint64.
    Unsigned(Array1<u64>),
}

/// Whole numbers up to which float64 has all of them.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

impl Categories {
    /// Number of the categories, with NaN if it is one.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Categories::Integers(values) => values.len(),
            Categories::Reals(values) => values.len(),
            Categories::Unsigned(values) => values.len(),
        }
    }

    /// Whether there are none, which no fit finds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The categories as float64, (k,): integers beyond 2^53 are rounded.
    #[must_use]
    pub fn to_reals(&self) -> Array1<f64> {
        match self {
            Categories::Integers(values) => values.mapv(|value| value as f64),
            Categories::Reals(values) => values.clone(),
            Categories::Unsigned(values) => values.mapv(|value| value as f64),
        }
    }

    /// The categories as a tensor, (k,): int64, float64 or uint64.
    #[track_caller]
    pub fn to_tensor(&self) -> Tensor {
        match self {
            Categories::Integers(values) => of_values(values),
            Categories::Reals(values) => of_values(values),
            Categories::Unsigned(values) => of_values(values),
        }
    }

    /// Each category as Python writes it.
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Categories::Integers(values) => values.iter().map(ToString::to_string).collect(),
            Categories::Reals(values) => values.iter().map(|value| python(*value)).collect(),
            Categories::Unsigned(values) => values.iter().map(ToString::to_string).collect(),
        }
    }

    /// Those at the positions for which `is_chosen` holds.
    pub(super) fn chosen(&self, is_chosen: impl Fn(usize) -> bool) -> Categories {
        match self {
            Categories::Integers(values) => Categories::Integers(chosen(values, is_chosen)),
            Categories::Reals(values) => Categories::Reals(chosen(values, is_chosen)),
            Categories::Unsigned(values) => Categories::Unsigned(chosen(values, is_chosen)),
        }
    }

    /// Number of categories but NaN.
    pub(super) fn known(&self) -> usize {
        match self {
            Categories::Reals(values) => finite(values).len(),
            _ => self.len(),
        }
    }

    /// Categories that were given as floats, for samples of this dtype: integers if they are whole numbers.
    pub(super) fn given(values: &Array1<f64>, dtype: DType) -> Categories {
        let is_whole = values.iter().all(|value| value.fract() == 0.0 && value.abs() <= WHOLE_MAX);
        match dtype {
            DType::U64 if is_whole && values.iter().all(|value| 0.0 <= *value) => {
                Categories::Unsigned(values.mapv(|value| value as u64))
            }
            _ if is_whole && dtype.is_integer() => Categories::Integers(values.mapv(|value| value as i64)),
            _ => Categories::Reals(values.clone()),
        }
    }
}

impl fmt::Display for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Categories::Integers(values) => crate::show::texts(f, values),
            Categories::Reals(values) => crate::show::numbers(f, values),
            Categories::Unsigned(values) => crate::show::texts(f, values),
        }
    }
}

fn of_values<T: Element>(values: &Array1<T>) -> Tensor {
    Tensor::from_elements(&[values.len()], &values.to_vec())
}

fn chosen<T: Copy>(values: &Array1<T>, is_chosen: impl Fn(usize) -> bool) -> Array1<T> {
    values.iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, value)| *value).collect()
}

/// Numbers but NaN, which is the last one.
pub(super) fn finite(values: &Array1<f64>) -> &[f64] {
    let values = values.as_slice().unwrap_or(&[]);
    match values.split_last() {
        Some((last, rest)) if last.is_nan() => rest,
        _ => values,
    }
}

/// The position of the category of each number (n,), and the number of categories where it is none; int64.
/// Numbers of another type are categories if they are equal, as numbers.
#[track_caller]
pub(super) fn codes(numbers: &Tensor, categories: &Categories) -> Tensor {
    let dtype = match categories {
        Categories::Integers(_) => DType::I64,
        Categories::Reals(values) => return codes_of_reals(&numbers.astype(DType::F64), values),
        Categories::Unsigned(_) => DType::U64,
    };
    let unknown = categories.len() as i64;
    match exact(numbers, dtype) {
        Err(error) => Tensor::from(error),
        Ok((keys, is_exact)) => {
            let codes = among(&categories.to_tensor(), &keys, categories.len(), unknown);
            match is_exact {
                None => codes,
                Some(is_exact) => where_(&is_exact, codes, unknown),
            }
        }
    }
}

#[track_caller]
fn codes_of_reals(numbers: &Tensor, categories: &Array1<f64>) -> Tensor {
    let (values, unknown) = (finite(categories), categories.len() as i64);
    let codes = if values.is_empty() {
        numbers.isnan().logical_and(false).astype(DType::I64) + unknown
    } else {
        among(&Tensor::from_elements(&[values.len()], values), numbers, values.len(), unknown)
    };
    if values.len() == categories.len() {
        return codes;
    }
    where_(&numbers.isnan(), unknown - 1, codes)
}

/// The position of each key among so many values, which ascend.
#[track_caller]
fn among(values: &Tensor, keys: &Tensor, count: usize, unknown: i64) -> Tensor {
    let place = values.searchsorted(keys).minimum(count as i64 - 1);
    where_(&values.take_at(&place, 0).equal(keys), &place, unknown)
}

/// Numbers as int64 or uint64, and whether each of them is the same number there; none if all are.
#[track_caller]
fn exact(numbers: &Tensor, to: DType) -> Result<(Tensor, Option<Tensor>)> {
    let from = numbers.dtype()?;
    let is_exact = match (from.kind(), to) {
        (Kind::Float, _) => {
            let (least, end) = if to == DType::U64 {
                (0.0, 18_446_744_073_709_551_616.0)
            } else {
                (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0)
            };
            let wide = numbers.astype(DType::F64);
            let is_inside = wide.greater_equal(least).logical_and(wide.less(end));
            is_inside.logical_and(wide.trunc().equal(&wide))
        }
        (Kind::Signed, DType::U64) => numbers.greater_equal(0i64),
        (Kind::Unsigned, DType::I64) if from == DType::U64 => numbers.less_equal(i64::MAX),
        _ => return Ok((numbers.astype(to), None)),
    };
    Ok((where_(&is_exact, numbers, 0i64).astype(to), Some(is_exact)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::arr1;
    use tharsis_numeric::array;

    /// A number beyond those that float64 tells apart.
    const LARGE: i64 = (1 << 53) + 1;

    #[test]
    fn numbers_of_any_type_are_the_categories_that_they_are_equal_to() {
        let integers = Categories::Integers(arr1(&[i64::MIN, -1, 3, LARGE - 1, LARGE]));
        let unsigned = Categories::Unsigned(arr1(&[0, 3, LARGE as u64, u64::MAX - 1, u64::MAX]));
        let reals = Categories::Reals(arr1(&[-1.0, 3.0, 3.5, f64::NAN]));
        let of =
            |numbers: Tensor, categories: &Categories| codes(&numbers, categories).to_vec::<i64>().unwrap();
        assert_eq!(of(array([LARGE, LARGE - 1, LARGE + 1, 3, i64::MIN]), &integers), [4, 3, 5, 2, 0]);
        assert_eq!(of(array([3i8, -1, 4]), &integers), [2, 1, 5]);
        assert_eq!(of(array([LARGE as u64, 3, u64::MAX, 1 << 63]), &integers), [4, 2, 5, 5]);
        let floats = array([3.0, 3.5, f64::NAN, f64::INFINITY, -9_223_372_036_854_775_808.0, 1e300, -1.0]);
        assert_eq!(of(floats, &integers), [2, 5, 5, 5, 0, 5, 1]);
        assert_eq!(of(array([u64::MAX, u64::MAX - 1, LARGE as u64, 7]), &unsigned), [4, 3, 2, 5]);
        assert_eq!(of(array([-1i64, 0, LARGE, LARGE - 1]), &unsigned), [5, 0, 2, 5]);
        assert_eq!(
            of(array([3.0, -0.0, -3.0, f64::NAN, 18_446_744_073_709_551_616.0]), &unsigned),
            [1, 0, 5, 5, 5]
        );
        assert_eq!(of(array([3i64, -1, 4]), &reals), [1, 0, 4]);
        assert_eq!(of(array([3.5, f64::NAN, 0.0]), &reals), [2, 3, 4]);
    }

    #[test]
    fn given_numbers_are_of_the_type_of_the_samples_if_they_can_be() {
        let whole = arr1(&[0.0, 3.0]);
        assert_eq!(Categories::given(&whole, DType::I32), Categories::Integers(arr1(&[0, 3])));
        assert_eq!(Categories::given(&whole, DType::U64), Categories::Unsigned(arr1(&[0, 3])));
        assert_eq!(Categories::given(&whole, DType::F32), Categories::Reals(whole.clone()));
        for other in [arr1(&[0.5]), arr1(&[f64::NAN]), arr1(&[1e300])] {
            assert!(matches!(Categories::given(&other, DType::I64), Categories::Reals(_)), "{other}");
        }
        let below = arr1(&[-1.0]);
        assert_eq!(Categories::given(&below, DType::U64), Categories::Integers(arr1(&[-1])));
    }
}
