//! Sums and products of columns: number of samples, means, Gram matrix, products with targets.
//!
//! Products of columns far from zero lose digits when the means are taken off afterwards. So the columns are
//! shifted by the mean of the first rows before they are multiplied. What is left to take off is at most the
//! part of the variance that the first rows cannot know: a few digits of sixteen for a billion rows.

use crate::checks::{Nan, Training, refused};
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD, Axis};
use tharsis_numeric::{Result, Tensor};

/// Rows whose mean shifts the columns.
const SHIFT_ROWS: i64 = 256;

/// First and second moments of samples and targets. All products are around the means.
pub(crate) struct Moments {
    /// The sum of the weights; without weights the number of samples.
    pub(crate) weight: f64,
    /// The means of the columns, or zeros; (d,).
    pub(crate) mean: Array1<f64>,
    /// The weighted sums of products of columns; (d, d).
    pub(crate) gram: Array2<f64>,
    /// The means of the targets, or zeros; (k,).
    pub(crate) target_mean: Array1<f64>,
    /// The weighted sums of products of columns and targets; (d, k).
    pub(crate) cross: Array2<f64>,
    /// The weighted sums of squares of the targets; (k,).
    pub(crate) target_squares: Array1<f64>,
}

/// The point around which products are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// The means.
    Mean,
    /// Zero.
    Zero,
}

impl Moments {
    /// One pass over samples and their targets, (rows, k), if there are any.
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, negative weights, or weights that are all zero; errors of the pass.
    #[track_caller]
    pub(crate) fn of(training: &Training, targets: Option<&Tensor>, around: Around) -> Result<Moments> {
        let x = Side::new(training, &training.x, around);
        let y = targets.map(|targets| Side::new(training, targets, around));
        let weight = match &training.weight {
            Some(weight) => weight.sum(..),
            None => Tensor::number(training.rows as f64),
        };
        let gram = x.rooted.t().matmul(&x.rooted);
        let mut wanted = vec![weight, gram, x.sum.clone(), x.shift.clone()];
        if let Some(y) = &y {
            let squares = y.rooted.square().sum(0);
            wanted.extend([x.rooted.t().matmul(&y.rooted), y.sum.clone(), y.shift.clone(), squares]);
        }
        let states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            training.explain_not_finite(Nan::Refused)?;
        }
        Moments::centred(states)
    }

    /// The moments from the states of a pass.
    #[track_caller]
    fn centred(states: Vec<ArrayD<f64>>) -> Result<Moments> {
        let mut states = states.into_iter();
        let mut next = || states.next().ok_or_else(lost);
        let weight = next()?.sum();
        if weight == 0.0 {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        let mut gram = matrix(next()?)?;
        let (sum, shift) = (vector(next()?)?, vector(next()?)?);
        take_off(&mut gram, &sum, &sum, weight);
        let mean = &shift + &(&sum / weight);
        let Ok(products) = next() else {
            let (cross, none) = (Array2::zeros((sum.len(), 0)), Array1::zeros(0));
            let (target_mean, target_squares) = (none.clone(), none);
            return Ok(Moments { weight, mean, gram, target_mean, cross, target_squares });
        };
        let mut cross = matrix(products)?;
        let (target_sum, target_shift) = (vector(next()?)?, vector(next()?)?);
        take_off(&mut cross, &sum, &target_sum, weight);
        let target_mean = &target_shift + &(&target_sum / weight);
        let target_squares = vector(next()?)? - target_sum.mapv(|sum| sum * sum / weight);
        Ok(Moments { weight, mean, gram, target_mean, cross, target_squares })
    }

    /// Whether the numbers of a column are equal up to rounding, in the sense of scikit-learn: their variance
    /// is no more than rounding of the mean makes.
    pub(crate) fn is_constant(&self, column: usize) -> bool {
        is_constant(self.gram[[column, column]] / self.weight, self.mean[column], self.weight)
    }
}

/// Whether a column of `count` numbers is constant up to rounding.
pub(crate) fn is_constant(variance: f64, mean: f64, count: f64) -> bool {
    let bound = count * f64::EPSILON * variance + (count * mean * f64::EPSILON).powi(2);
    variance <= bound
}

/// The samples, or the targets, of a pass.
struct Side {
    /// Shifted, times the roots of the weights.
    rooted: Tensor,
    /// The weighted sums of shifted columns.
    sum: Tensor,
    shift: Tensor,
}

impl Side {
    #[track_caller]
    fn new(training: &Training, columns: &Tensor, around: Around) -> Side {
        let (shift, shifted) = match around {
            Around::Mean => {
                let shift = columns.get(&[(..SHIFT_ROWS).into()]).mean(0);
                let shifted = columns - &shift;
                (shift, shifted)
            }
            Around::Zero => (columns.get(&[(..0i64).into()]).sum(0), columns.clone()),
        };
        match (&training.weight, around) {
            (None, Around::Mean) => Side { sum: shifted.sum(0), rooted: shifted, shift },
            (None, Around::Zero) => Side { sum: shift.clone(), rooted: shifted, shift },
            (Some(weight), Around::Mean) => {
                let weight = weight.expand_dims(1);
                Side { sum: (&shifted * &weight).sum(0), rooted: shifted * weight.sqrt(), shift }
            }
            (Some(weight), Around::Zero) => {
                let rooted = shifted * weight.expand_dims(1).sqrt();
                Side { sum: shift.clone(), rooted, shift }
            }
        }
    }
}

/// The mean of the first rows, of numbers that are not NaN; (d,).
#[track_caller]
pub(crate) fn first_rows_nanmean(columns: &Tensor) -> Tensor {
    columns.get(&[(..SHIFT_ROWS).into()]).nanmean(0)
}

/// Takes the products of means off sums of products.
fn take_off(products: &mut Array2<f64>, left: &Array1<f64>, right: &Array1<f64>, weight: f64) {
    for (mut row, &left) in products.axis_iter_mut(Axis(0)).zip(left) {
        for (product, &right) in row.iter_mut().zip(right) {
            *product -= left * right / weight;
        }
    }
}
