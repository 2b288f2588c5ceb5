//! Sums and products of columns: number of samples, means, Gram matrix, products with targets.
//!
//! Products of columns far from zero lose digits when the means are taken off afterwards. So the columns are
//! shifted by the mean of the first rows that count before they are multiplied. First rows may be far from
//! all others, so the sums themselves tell whether digits were lost: then a second pass shifts by the means
//! that the first one has found, which leaves nothing to take off.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD, Axis, Zip};
use tharsis_numeric::{Result, Tensor, where_};

/// Rows whose mean shifts the columns of a first pass.
const SHIFT_ROWS: i64 = 256;
/// The square of the distance between mean and shift, in parts of the variance, above which a second pass is
/// made: four of the 53 bits are lost there.
const LOST: f64 = 16.0;
/// Distances that are no more than rounding of a mean, in units of the last place.
const ROUNDINGS: f64 = 16.0;

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
    /// The means less the shifts of the pass; (d,).
    offset: Array1<f64>,
    /// As `offset`, of the targets; (k,).
    target_offset: Array1<f64>,
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
    /// One pass over samples and their targets, (rows, k), if there are any; a second one if the first has
    /// lost digits.
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, negative weights, weights that are all zero, and more features than a
    /// matrix of all pairs has memory for; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub(crate) fn of(training: &Training, targets: Option<&Tensor>, around: Around) -> Result<Moments> {
        match Moments::within_float64(training, targets, around)? {
            Some(moments) => Ok(moments),
            None => Err(training.beyond_float64()),
        }
    }

    /// As [`Moments::of`]; `None` for sums beyond float64.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub(crate) fn within_float64(
        training: &Training,
        targets: Option<&Tensor>,
        around: Around,
    ) -> Result<Option<Moments>> {
        training.check_square(training.columns)?;
        let guess = |columns: &Tensor| first_rows_mean(columns, training.weight.as_ref());
        let shifts = (guess(&training.x), targets.map(guess));
        let mut moments = Moments::around(training, targets, around, shifts)?;
        if around == Around::Mean && moments.has_lost_digits() {
            let shifts = (tensor(&moments.mean), targets.map(|_| tensor(&moments.target_mean)));
            moments = Moments::around(training, targets, around, shifts)?;
        }
        Ok(moments.is_finite().then_some(moments))
    }

    /// One pass, with these shifts of columns and targets.
    #[track_caller]
    fn around(
        training: &Training,
        targets: Option<&Tensor>,
        around: Around,
        (shift, target_shift): (Tensor, Option<Tensor>),
    ) -> Result<Moments> {
        let x = Side::new(training, &training.x, around, shift);
        let y = targets.zip(target_shift).map(|(targets, shift)| Side::new(training, targets, around, shift));
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
        let offset = &sum / weight;
        let mean = &shift + &offset;
        let Ok(products) = next() else {
            let (cross, none) = (Array2::zeros((sum.len(), 0)), Array1::zeros(0));
            let [target_mean, target_squares, target_offset] = [none.clone(), none.clone(), none];
            return Ok(Moments {
                weight,
                mean,
                gram,
                target_mean,
                cross,
                target_squares,
                offset,
                target_offset,
            });
        };
        let mut cross = matrix(products)?;
        let (target_sum, target_shift) = (vector(next()?)?, vector(next()?)?);
        take_off(&mut cross, &sum, &target_sum, weight);
        let target_offset = &target_sum / weight;
        let target_mean = &target_shift + &target_offset;
        let target_squares = vector(next()?)? - target_sum.mapv(|sum| sum * (sum / weight));
        Ok(Moments { weight, mean, gram, target_mean, cross, target_squares, offset, target_offset })
    }

    /// Whether the variance of a column or of a target has lost digits to the distance of its mean from the
    /// shift.
    fn has_lost_digits(&self) -> bool {
        let variances = self.gram.diag().mapv(|squares| squares / self.weight);
        let target_variances = self.target_squares.mapv(|squares| squares / self.weight);
        any_lost(&self.offset, &variances, &self.mean)
            || any_lost(&self.target_offset, &target_variances, &self.target_mean)
    }

    /// Whether all sums are within the range of float64.
    fn is_finite(&self) -> bool {
        let vectors = [&self.mean, &self.target_mean, &self.target_squares];
        self.weight.is_finite()
            && vectors.into_iter().flatten().all(|number| number.is_finite())
            && self.gram.iter().chain(&self.cross).all(|product| product.is_finite())
    }

    /// Whether the numbers of a column are equal up to rounding.
    pub(crate) fn is_constant(&self, column: usize) -> bool {
        is_constant(self.gram[[column, column]] / self.weight, self.mean[column])
    }
}

/// Whether a variance has lost digits: it was made of squares around a shift at these distances from the
/// means.
pub(crate) fn any_lost(offset: &Array1<f64>, variance: &Array1<f64>, mean: &Array1<f64>) -> bool {
    let mut is_lost = false;
    Zip::from(offset).and(variance).and(mean).for_each(|&offset, &variance, &mean| {
        let is_rounding = offset.abs() <= ROUNDINGS * f64::EPSILON * mean.abs();
        let is_far = LOST * variance < offset * offset || !variance.is_finite();
        is_lost |= is_far && !is_rounding && mean.is_finite();
    });
    is_lost
}

/// Whether numbers with this mean and variance are equal up to rounding. scikit-learn's bound grows with the
/// number of samples, as its sums do lose digits with it; these do not.
pub(crate) fn is_constant(variance: f64, mean: f64) -> bool {
    let rounding = ROUNDINGS * f64::EPSILON * mean;
    variance <= rounding * rounding
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
    fn new(training: &Training, columns: &Tensor, around: Around, shift: Tensor) -> Side {
        if around == Around::Zero {
            let rooted = match &training.weight {
                None => columns.clone(),
                Some(weight) => columns * weight.expand_dims(1).sqrt(),
            };
            let none = columns.get(&[(..0i64).into()]).sum(0);
            return Side { sum: none.clone(), rooted, shift: none };
        }
        let shifted = columns - &shift;
        match &training.weight {
            None => Side { sum: shifted.sum(0), rooted: shifted, shift },
            Some(weight) => {
                let weight = weight.expand_dims(1);
                Side { sum: (&shifted * &weight).sum(0), rooted: shifted * weight.sqrt(), shift }
            }
        }
    }
}

/// The mean of those of the first rows that are finite and have weight, 0 if there is none; (d,).
#[track_caller]
pub(crate) fn first_rows_mean(columns: &Tensor, weight: Option<&Tensor>) -> Tensor {
    let first = |x: &Tensor| x.get(&[(..SHIFT_ROWS).into()]);
    let rows = first(columns);
    let counts = match weight {
        None => rows.isfinite(),
        Some(weight) => rows.isfinite().logical_and(first(weight).greater(0.0).expand_dims(1)),
    };
    let mean = where_(&counts, &rows, 0.0).sum(0) / counts.count_nonzero(0);
    where_(&mean.isfinite(), &mean, 0.0)
}

/// Takes the products of means off sums of products.
fn take_off(products: &mut Array2<f64>, left: &Array1<f64>, right: &Array1<f64>, weight: f64) {
    for (mut row, &left) in products.axis_iter_mut(Axis(0)).zip(left) {
        for (product, &right) in row.iter_mut().zip(right) {
            *product -= left * (right / weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_constant;

    #[test]
    fn roundings_alone_are_constant() {
        assert!(is_constant(0.0, 0.0) && is_constant(0.0, 1e8) && is_constant(1e-16, 1e8));
        assert!(!is_constant(1e-30, 0.0) && !is_constant(1e-10, 1e8));
    }
}
