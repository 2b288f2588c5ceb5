//! Sums and products of columns: number of samples, means, Gram matrix, products with targets.
//!
//! Products of columns far from zero lose digits when the means are taken off afterwards. So the columns are
//! shifted by the mean of the first rows that count before they are multiplied. First rows may be far from
//! all others, so the sums themselves tell whether digits were lost: then a second pass shifts by the means
//! that the first one has found, which leaves nothing to take off.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::passes::chunks::piece_rows;
use crate::passes::functions::{Of, RowFunction};
use crate::passes::rows::RowPass;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD, ArrayView1, Axis, Zip};
use std::sync::Arc;
use tharsis_numeric::{Index, Result, Tensor, where_};

/// Rows whose mean shifts the columns of a first pass.
const SHIFT_ROWS: i64 = 256;
/// A feature is far from zero if its middle is so many times as large as its spread. Nearer ones cost a
/// solver few steps, and no digits.
const FAR: f64 = 64.0;
/// Rows by which this is told.
const LOOKED_ROWS: usize = 256;
/// Numbers of these rows at most.
const LOOKED_ELEMENTS: usize = 1 << 20;
/// The square of the distance between mean and shift, in parts of the variance, above which a second pass is
/// made: four of the 53 bits are lost there.
const LOST: f64 = 16.0;
/// Columns of samples and targets up to which all their products are the state of a function of rows.
const NARROW_COLUMNS: usize = 256;
/// Columns that matrices of kernels may have more.
const PADDING: usize = 32;
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
        shifts: (Tensor, Option<Tensor>),
    ) -> Result<Moments> {
        let others = targets.map_or(Ok(0), |targets| targets.shape().map(|shape| shape[1]))?;
        let states = if training.columns + others <= NARROW_COLUMNS {
            narrow_states(training, targets.map(|targets| (targets, others)), around, shifts)?
        } else {
            wide_states(training, targets, around, shifts)?
        };
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

    /// The products of columns, none of those that are constant up to rounding; (d, d).
    pub(crate) fn varying(&self) -> Array2<f64> {
        let mut gram = self.gram.clone();
        for column in (0..gram.nrows()).filter(|&column| self.is_constant(column)) {
            gram.row_mut(column).fill(0.0);
            gram.column_mut(column).fill(0.0);
        }
        gram
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

/// The states of a pass: weight, Gram matrix, sums, shifts; with targets their products with the columns,
/// sums, shifts and sums of squares. By products of matrices.
#[track_caller]
fn wide_states(
    training: &Training,
    targets: Option<&Tensor>,
    around: Around,
    (shift, target_shift): (Tensor, Option<Tensor>),
) -> Result<Vec<ArrayD<f64>>> {
    let x = Side::new(training, &training.x, around, shift);
    let y = targets.zip(target_shift).map(|(targets, shift)| Side::new(training, targets, around, shift));
    let gram = x.rooted.t().matmul(&x.rooted);
    let mut wanted = vec![weight_of(training), gram, x.sum.clone(), x.shift.clone()];
    if let Some(y) = &y {
        let squares = y.rooted.square().sum(0);
        wanted.extend([x.rooted.t().matmul(&y.rooted), y.sum.clone(), y.shift.clone(), squares]);
    }
    training.engine.run(&wanted.iter().collect::<Vec<_>>())
}

/// As [`wide_states`], by a function of rows whose state is all of them; targets with their number.
#[track_caller]
fn narrow_states(
    training: &Training,
    targets: Option<(&Tensor, usize)>,
    around: Around,
    (shift, target_shift): (Tensor, Option<Tensor>),
) -> Result<Vec<ArrayD<f64>>> {
    let (columns, others) = (training.columns, targets.map_or(0, |(_, others)| others));
    let weight = training.weight.as_ref();
    let or_zeros = |shift: Tensor, columns: usize| match around {
        Around::Mean => shift,
        Around::Zero => tensor(&Array1::zeros(columns)),
    };
    let shift = or_zeros(shift, columns);
    let target_shift = target_shift.map(|shift| or_zeros(shift, others));
    let (row, target_row) = (shift.expand_dims(0), target_shift.as_ref().map(|shift| shift.expand_dims(0)));
    let half = columns * (columns + 1) / 2;
    let lengths = [half, columns, others * columns, others, others];
    let state: usize = lengths.iter().sum();
    let rows = piece_rows((training.rows, columns + others), state);
    let function = RowFunction {
        of: Of::Products { others: targets.is_some(), weighted: weight.is_some() },
        held: rows * (columns + others + 1) + 8 * (columns + others + PADDING).pow(2),
    };
    let mut inputs = vec![&training.x];
    inputs.extend(targets.map(|(targets, _)| targets).into_iter().chain(weight));
    inputs.extend(std::iter::once(&row).chain(&target_row));
    let whole = 1 + usize::from(target_row.is_some());
    let pass = RowPass { function: Arc::new(function), rows, whole };
    let sums = pass.state(&inputs, state, Arc::new(RowFunction::ADD));
    let weight = weight_of(training);
    let wanted: Vec<&Tensor> = [&sums, &weight, &shift].into_iter().chain(&target_shift).collect();
    let mut states = training.engine.run(&wanted)?.into_iter();
    let mut next = || states.next().ok_or_else(lost);
    let (sums, weight, shift) = (vector(next()?)?.to_vec(), next()?, next()?);
    let mut rest = &sums[..];
    let [gram, sum, cross, target_sum, squares] = lengths.map(|length| {
        let (part, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        part
    });
    // Products around zero have no means taken off.
    let or_none = |sum: &[f64]| match around {
        Around::Mean => Array1::from(sum.to_vec()).into_dyn(),
        Around::Zero => Array1::zeros(sum.len()).into_dyn(),
    };
    let mut made = vec![weight, from_half(gram, columns).into_dyn(), or_none(sum), shift];
    if let Ok(target_shift) = next() {
        let cross = Array2::from_shape_fn((columns, others), |(at, other)| cross[other * columns + at]);
        let squares = Array1::from(squares.to_vec()).into_dyn();
        made.extend([cross.into_dyn(), or_none(target_sum), target_shift, squares]);
    }
    Ok(made)
}

/// The sum of the weights; without weights the number of samples.
#[track_caller]
fn weight_of(training: &Training) -> Tensor {
    match &training.weight {
        Some(weight) => weight.sum(..),
        None => Tensor::number(training.rows as f64),
    }
}

/// A symmetric matrix of its rows from the diagonal on.
fn from_half(half: &[f64], columns: usize) -> Array2<f64> {
    let mut whole = Array2::zeros((columns, columns));
    let places = (0..columns).flat_map(|row| (row..columns).map(move |column| (row, column)));
    for ((row, column), &product) in places.zip(half) {
        whole[[row, column]] = product;
        whole[[column, row]] = product;
    }
    whole
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

/// The middle of each feature that is far from zero, 0 of others; none if no feature is far. Looks at some
/// rows that are spread evenly over all of them.
///
/// The middle is the median, and a feature is far if that is more than [`FAR`] times as large as the median
/// distance of its numbers from it: a few numbers of another kind, or an order of the rows, do not change it.
///
/// # Errors
/// Errors of the pass.
#[track_caller]
pub(crate) fn far_middles(training: &Training) -> Result<Option<Array1<f64>>> {
    let rows = (LOOKED_ELEMENTS / training.columns).clamp(1, LOOKED_ROWS);
    let step = training.rows.div_ceil(rows) as i64;
    let some = |x: &Tensor| x.get(&[Index::from(..).step(step)]);
    let looked: Vec<Tensor> = std::iter::once(&training.x).chain(&training.weight).map(some).collect();
    let mut states = training.engine.run(&looked.iter().collect::<Vec<_>>())?.into_iter();
    let x = matrix(states.next().ok_or_else(lost)?)?;
    let weight = states.next().map(vector).transpose()?;
    let counts = |row: usize| weight.as_ref().is_none_or(|weight| 0.0 < weight[row]);
    let middle = |column: ArrayView1<'_, f64>| {
        let counted = column.iter().enumerate().filter(|(row, number)| counts(*row) && number.is_finite());
        far_middle(counted.map(|(_, &number)| number).collect())
    };
    let middles: Array1<f64> = x.columns().into_iter().map(middle).collect();
    Ok(middles.iter().any(|middle| *middle != 0.0).then_some(middles))
}

/// The median of some numbers that are far from zero, else 0.
fn far_middle(mut numbers: Vec<f64>) -> f64 {
    let middle = median(&mut numbers);
    let mut apart: Vec<f64> = numbers.iter().map(|number| (number - middle).abs()).collect();
    let spread = match median(&mut apart) {
        // Most numbers are equal.
        0.0 => apart.iter().sum::<f64>() / apart.len().max(1) as f64,
        spread => spread,
    };
    let is_far = !is_constant(spread * spread, middle) && FAR * spread < middle.abs();
    if is_far { middle } else { 0.0 }
}

/// The number in the middle of some; 0 of none.
fn median(numbers: &mut [f64]) -> f64 {
    let at = numbers.len() / 2;
    if numbers.is_empty() { 0.0 } else { *numbers.select_nth_unstable_by(at, f64::total_cmp).1 }
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
    use super::{
        Around, far_middle, far_middles, first_rows_mean, from_half, is_constant, narrow_states, wide_states,
    };
    use crate::FitOptions;
    use crate::checks::Training;
    use crate::passes::chunks::piece_rows;
    use ndarray::arr2;
    use std::sync::Arc;
    use tharsis_numeric::random::default_rng;
    use tharsis_numeric::{DType, LocalExecutor, arange, stack, where_};

    #[test]
    fn states_of_rows_are_those_of_products_of_matrices_on_any_number_of_threads() {
        let piece = piece_rows((1 << 20, 131), 131 * 66);
        assert!(piece < 2_000, "the test would take long: {piece}");
        let shapes = [(1, 3, 1), (2, 1, 0), (700, 1, 2), (900, 17, 1), (piece, 130, 1)];
        let shapes = shapes.into_iter().chain([(piece - 1, 130, 1), (2 * piece + 1, 130, 1)]);
        for (rows, columns, others) in shapes {
            let generator = default_rng(rows as u64);
            let x = generator.normal(3.0, 1.0, &[rows, columns]).execute().unwrap();
            let y = generator.normal(-1.0, 2.0, &[rows, others.max(1)]).execute().unwrap();
            let weight = generator.random(&[rows]).execute().unwrap();
            for (dtype, is_weighted, around) in [
                (DType::F64, false, Around::Mean),
                (DType::F64, true, Around::Mean),
                (DType::F32, false, Around::Zero),
                (DType::F64, true, Around::Zero),
            ] {
                let states = |threads: usize, narrow: bool| {
                    let options =
                        FitOptions::new().executor(Arc::new(LocalExecutor::sized(threads, 1 << 28)));
                    let options = if is_weighted { options.sample_weight(&weight) } else { options };
                    let training = Training::unsupervised("Test", &x.astype(dtype), &options).unwrap();
                    let targets = (0 < others).then_some(&y);
                    let shifts = (
                        first_rows_mean(&training.x, training.weight.as_ref()),
                        targets.map(|y| first_rows_mean(y, training.weight.as_ref())),
                    );
                    let made = if narrow {
                        narrow_states(&training, targets.map(|y| (y, others)), around, shifts)
                    } else {
                        wide_states(&training, targets, around, shifts)
                    };
                    made.unwrap()
                };
                let (one, several, wide) = (states(1, true), states(3, true), states(2, false));
                assert_eq!((one.len(), &one), (wide.len(), &several));
                for (narrow, wide) in one.iter().zip(&wide) {
                    assert_eq!(narrow.shape(), wide.shape());
                    let far = (narrow - wide).iter().fold(0.0f64, |far, rest| far.max(rest.abs()));
                    assert!(far <= 1e-11 * (1 + rows) as f64, "{rows} by {columns}, {others}: {far}");
                }
            }
        }
    }

    #[test]
    fn a_symmetric_matrix_is_made_of_its_half() {
        let whole = arr2(&[[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]);
        assert_eq!(from_half(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3), whole);
    }

    #[test]
    fn features_are_far_by_most_of_their_numbers() {
        let noise = [0.25, -1.0, 0.5, 2.0, -0.5, 1.5, 0.0];
        let far = |numbers: &[f64]| far_middle(numbers.to_vec());
        let shifted: Vec<f64> = noise.iter().map(|noise| 1e9 + noise).collect();
        assert_eq!(far(&shifted), 1e9 + 0.25);
        // Numbers of another kind, and most of one.
        assert_eq!(far(&[&shifted[..], &[0.0, -1e12]].concat()), 1e9);
        assert_eq!(far(&[1e9, 1e9, 1e9, 1e9, 1e9 + 2.0]), 1e9);
        // Near ones, constants, and none.
        assert_eq!([far(&noise), far(&[7.0, 9.0, 8.0]), far(&[1e9; 5]), far(&[])], [0.0; 4]);
    }

    #[test]
    fn a_far_feature_moves_no_other_one() {
        let rows = 2_000;
        let at = arange(rows);
        // A time stamp, and amounts that fall from a million.
        let amounts = where_(&at.less(300), 1e6 - &at, &at % 10);
        let x = stack(&[&(&at % 17 + 1e9), &amounts], 1);
        let weight = at.less(1_990).astype(DType::F64);
        for options in [FitOptions::new(), FitOptions::new().sample_weight(&weight)] {
            let middles = far_middles(&Training::unsupervised("Test", &x, &options).unwrap()).unwrap();
            let middles = middles.unwrap();
            assert!((middles[0] - 1e9).abs() < 17.0 && middles[1] == 0.0, "{middles}");
        }
        let near = Training::unsupervised("Test", &x.get(&[(..).into(), (1..2i64).into()]), &(..).into());
        assert!(far_middles(&near.unwrap()).unwrap().is_none());
    }

    #[test]
    fn roundings_alone_are_constant() {
        assert!(is_constant(0.0, 0.0) && is_constant(0.0, 1e8) && is_constant(1e-16, 1e8));
        assert!(!is_constant(1e-30, 0.0) && !is_constant(1e-10, 1e8));
    }
}
