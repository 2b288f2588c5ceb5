//! The loss of logistic regression and its slope.

use super::{TILE_ROWS, check_beside, check_whole};
use crate::cpu::{Kernel, dispatch};
use crate::error::KernelError;
use crate::ufunc::{vector_exp, vector_log};

/// The loss of a linear model of two classes over rows x with targets y and weights w: the sum of
/// w (ln(1 + eˢ) - s y) for the scores s of the rows. Its slopes are sums of w (1 / (1 + e⁻ˢ) - y).
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The sum.
    pub sum: f64,
    /// Its slope by the intercept.
    pub intercept: f64,
    /// Its slope by the coefficients; (d,).
    pub coef: Vec<f64>,
}

/// A linear model, and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// (n, d).
    pub rows: &'a [f64],
    /// (n,), from 0 to 1.
    pub targets: &'a [f64],
    /// (n,). A row without weight has no loss, even where it were infinite.
    pub weights: Option<&'a [f64]>,
    /// (d,), at least one.
    pub coef: &'a [f64],
    /// Added to the product of a row and the coefficients.
    pub intercept: f64,
}

/// The loss of a model. What is not a number reaches it; exponentials are of negative numbers alone.
///
/// ```
/// use tharsis_kernels::rows::{Scored, logistic_loss};
/// let (rows, targets) = (&[1.0, -1.0][..], &[1.0, 0.0][..]);
/// let loss = logistic_loss(Scored { rows, targets, weights: None, coef: &[0.0], intercept: 0.0 })?;
/// assert!((loss.sum - 2.0 * 2f64.ln()).abs() < 1e-15);
/// assert_eq!((loss.intercept, loss.coef), (0.0, vec![-1.0]));
/// # Ok::<(), tharsis_kernels::KernelError>(())
/// ```
///
/// # Errors
/// [`KernelError::Value`] if there are not as many rows, targets and weights, or no coefficients.
pub fn logistic_loss(of: Scored<'_>) -> Result<Loss, KernelError> {
    let columns = of.coef.len();
    if columns == 0 {
        return Err(KernelError::Value("no coefficients".to_owned()));
    }
    check_whole(of.rows, columns)?;
    let count = of.rows.len() / columns;
    check_beside("targets", of.targets.len(), count)?;
    check_beside("weights", of.weights.map_or(count, <[f64]>::len), count)?;
    let mut loss = Loss { sum: 0.0, intercept: 0.0, coef: vec![0.0; columns] };
    for first in (0..count).step_by(TILE_ROWS) {
        let last = count.min(first + TILE_ROWS);
        let tile = Scored {
            rows: &of.rows[first * columns..last * columns],
            targets: &of.targets[first..last],
            weights: of.weights.map(|weights| &weights[first..last]),
            ..of
        };
        let (mut scores, mut slopes) = ([0.0; TILE_ROWS], [0.0; TILE_ROWS]);
        let (scores, slopes) = (&mut scores[..last - first], &mut slopes[..last - first]);
        dispatch(Score { of: tile, scores: &mut *scores });
        dispatch(Compare { of: tile, scores: &mut *scores, slopes: &mut *slopes });
        loss.sum += scores.iter().sum::<f64>();
        loss.intercept += slopes.iter().sum::<f64>();
        dispatch(AddSlopes { rows: tile.rows, slopes, coef: &mut loss.coef });
    }
    Ok(loss)
}

/// Numbers of a row that are multiplied at once.
const LANES: usize = 8;

/// The scores of rows.
struct Score<'a> {
    of: Scored<'a>,
    scores: &'a mut [f64],
}

impl Kernel for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Scored { rows, coef, intercept, .. } = self.of;
        let (factors, last_factors) = coef.as_chunks::<LANES>();
        for (row, score) in rows.chunks_exact(coef.len()).zip(self.scores) {
            let (parts, last) = row.as_chunks::<LANES>();
            let mut sums = [0.0f64; LANES];
            for (part, factors) in parts.iter().zip(factors) {
                for lane in 0..LANES {
                    sums[lane] += part[lane] * factors[lane];
                }
            }
            let last = last.iter().zip(last_factors).map(|(x, factor)| x * factor);
            *score = last.fold(sums.iter().sum::<f64>(), |sum, product| sum + product) + intercept;
        }
    }
}

/// Makes losses of scores, and their slopes.
struct Compare<'a> {
    of: Scored<'a>,
    scores: &'a mut [f64],
    slopes: &'a mut [f64],
}

impl Kernel for Compare<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Compare { of, scores, slopes } = self;
        for ((score, slope), y) in scores.iter_mut().zip(slopes.iter_mut()).zip(of.targets) {
            let s = *score;
            let small = vector_exp(-s.abs());
            let (more, positive) = (1.0 + small, if s >= 0.0 { s } else { 0.0 });
            // The second summand is what the first sum has rounded away.
            let logarithm = vector_log(more) + (small - (more - 1.0)) / more;
            *slope = (if s >= 0.0 { 1.0 } else { small }) / more - y;
            *score = positive + logarithm - s * y;
        }
        if let Some(weights) = of.weights {
            for ((loss, slope), &weight) in scores.iter_mut().zip(slopes).zip(weights) {
                *loss = if weight == 0.0 { 0.0 } else { *loss * weight };
                *slope = if weight == 0.0 { 0.0 } else { *slope * weight };
            }
        }
    }
}

/// Adds rows times their slopes.
struct AddSlopes<'a> {
    rows: &'a [f64],
    slopes: &'a [f64],
    coef: &'a mut [f64],
}

impl Kernel for AddSlopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddSlopes { rows, slopes, coef } = self;
        let columns = coef.len();
        let (fours, last) = slopes.as_chunks::<4>();
        let (rows, last_rows) = rows.split_at(4 * columns * fours.len());
        for (rows, factors) in rows.chunks_exact(4 * columns).zip(fours) {
            let (first, rows) = rows.split_at(columns);
            let (second, rows) = rows.split_at(columns);
            let (third, fourth) = rows.split_at(columns);
            for ((((sum, a), b), c), d) in coef.iter_mut().zip(first).zip(second).zip(third).zip(fourth) {
                *sum += (a * factors[0] + b * factors[1]) + (c * factors[2] + d * factors[3]);
            }
        }
        for (row, factor) in last_rows.chunks_exact(columns).zip(last) {
            coef.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    #[test]
    fn losses_and_slopes_are_those_of_the_formula() {
        let key = Key::new(9, 0);
        let numbers = |from: u64, count: usize| -> Vec<f64> {
            (0..count).map(|at| 4.0 * key.uniform(from + at as u64) - 2.0).collect()
        };
        for count in [0, 1, 3, 4, 5, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS + 7] {
            for columns in [1, 2, 7, 8, 9, 33] {
                let (rows, coef) = (numbers(0, count * columns), numbers(1 << 20, columns));
                let targets: Vec<f64> = (0..count).map(|at| (key.bits(at as u64) & 1) as f64).collect();
                let weights: Vec<f64> = (0..count).map(|at| (key.bits(at as u64) % 5) as f64).collect();
                for weights in [None, Some(&weights[..])] {
                    let of = Scored { rows: &rows, targets: &targets, weights, coef: &coef, intercept: 0.5 };
                    let made = logistic_loss(of).unwrap();
                    let mut expected = Loss { sum: 0.0, intercept: 0.0, coef: vec![0.0; columns] };
                    for at in 0..count {
                        let row = &rows[at * columns..(at + 1) * columns];
                        let score = row.iter().zip(&coef).map(|(x, factor)| x * factor).sum::<f64>() + 0.5;
                        let weight = weights.map_or(1.0, |weights| weights[at]);
                        let chance = 1.0 / (1.0 + (-score).exp());
                        let slope = weight * (chance - targets[at]);
                        expected.sum += weight * (score.exp().ln_1p() - score * targets[at]);
                        expected.intercept += slope;
                        expected.coef.iter_mut().zip(row).for_each(|(sum, x)| *sum += slope * x);
                    }
                    let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * (1.0 + b.abs());
                    assert!(near(made.sum, expected.sum), "{count} by {columns}");
                    assert!(near(made.intercept, expected.intercept), "{count} by {columns}");
                    assert!(made.coef.iter().zip(&expected.coef).all(|(a, b)| near(*a, *b)));
                }
            }
        }
    }

    #[test]
    fn large_scores_have_finite_losses_and_infinite_rows_do_not() {
        let of = |rows: &[f64], targets: &[f64], weights: Option<&[f64]>| {
            logistic_loss(Scored { rows, targets, weights, coef: &[1.0], intercept: 0.0 }).unwrap()
        };
        let made = of(&[1000.0, -1000.0], &[0.0, 1.0], None);
        assert_eq!((made.sum, made.coef[0]), (2000.0, 2000.0));
        assert_eq!(of(&[1000.0, -1000.0], &[1.0, 0.0], None).sum, 0.0);
        let tiny = of(&[-40.0], &[0.0], None);
        assert!((tiny.sum / (-40f64).exp() - 1.0).abs() < 1e-14, "{tiny:?}");
        for row in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for target in [0.0, 1.0] {
                let made = of(&[row], &[target], None);
                assert!(!(made.sum.is_finite() && made.coef[0].is_finite()), "{row} {target} {made:?}");
                assert!(!of(&[row], &[target], Some(&[0.0])).coef[0].is_finite());
            }
        }
        assert_eq!(of(&[1e300], &[0.0], Some(&[0.0])), Loss { sum: 0.0, intercept: 0.0, coef: vec![0.0] });
    }
}
