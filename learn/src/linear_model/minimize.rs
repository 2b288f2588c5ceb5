//! Least value of a smooth function whose slope is known: L-BFGS.
//!
//! The two-loop recursion of Nocedal, "Updating Quasi-Newton Matrices with Limited Storage" (1980). A step is
//! halved and doubled until the function falls enough and its slope along the step has flattened (Lewis and
//! Overton, "Nonsmooth optimization via quasi-Newton methods", 2013), so that pairs of changes have positive
//! products. Each value costs a pass over the samples; the first step tried is nearly always taken.

use ndarray::Array1;
use std::collections::VecDeque;
use tharsis_numeric::Result;

/// Pairs of changes that are kept.
const PAIRS_MAX: usize = 10;
/// Values that are tried along one direction.
const TRIES_MAX: usize = 50;
/// The part of the expected fall that a step must reach.
const FALL: f64 = 1e-4;
/// The part of the slope that may be left behind a step.
const FLATTENED: f64 = 0.9;
/// The part of a step in which the function seems to be lowest, below which the step is far too long.
const FAR_TOO_LONG: f64 = 0.1;
/// Relative fall of a step below which the function is flat: as scikit-learn has it.
const FLAT: f64 = 64.0 * f64::EPSILON;

/// The measure of slopes and falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Values near 1, of losses that have no unit: slopes are what they are, and falls are parts of 1 where
    /// the function is less. scikit-learn's logistic regression and generalized models.
    One,
    /// The function itself: slopes are parts of the one at the start, falls are parts of the value. For
    /// losses in the unit of the targets or of the samples.
    Own,
}

/// A function at a place.
#[derive(Clone)]
pub(crate) struct Point {
    pub(crate) at: Array1<f64>,
    pub(crate) value: f64,
    pub(crate) slope: Array1<f64>,
}

/// The lowest point that was found.
pub(crate) struct Minimum {
    pub(crate) point: Point,
    pub(crate) rounds: usize,
    /// Whether the slope is within the tolerance, or the function flat.
    pub(crate) converged: bool,
}

/// Walks down from `start` until no part of the slope is larger than `tol` in its measure, for at most
/// `max_iter` rounds.
///
/// # Errors
/// Those of `evaluate`.
pub(crate) fn minimize(
    start: Array1<f64>,
    (tol, measure): (f64, Measure),
    max_iter: usize,
    evaluate: impl Fn(&Array1<f64>) -> Result<(f64, Array1<f64>)>,
) -> Result<Minimum> {
    let point = |at: Array1<f64>| -> Result<Point> {
        let (value, slope) = evaluate(&at)?;
        Ok(Point { at, value, slope })
    };
    let mut here = point(start)?;
    let (tol, floor) = match measure {
        Measure::One => (tol, 1.0),
        Measure::Own => (tol * largest(&here.slope), 0.0),
    };
    let mut pairs: VecDeque<(Array1<f64>, Array1<f64>)> = VecDeque::new();
    let mut rounds = 0;
    while rounds < max_iter && tol < largest(&here.slope) {
        let mut direction = downhill(&here.slope, &pairs);
        if 0.0 <= direction.dot(&here.slope) {
            // Rounding has spoiled the pairs.
            pairs.clear();
            direction = -&here.slope;
        }
        let first = if pairs.is_empty() { first_length(&here, measure) } else { 1.0 };
        let Some(next) = step(&here, &direction, first, &point)? else {
            // Flat as well, if the fall that the slope promises is less than rounding leaves of the value.
            let promised = -here.slope.dot(&direction);
            let converged = promised <= FLAT * here.value.abs().max(floor);
            return Ok(Minimum { point: here, rounds, converged });
        };
        rounds += 1;
        let fall = here.value - next.value;
        let is_flat = fall <= FLAT * here.value.abs().max(next.value.abs()).max(floor);
        let (moved, turned) = (&next.at - &here.at, &next.slope - &here.slope);
        if 0.0 < moved.dot(&turned) {
            pairs.push_back((moved, turned));
        }
        if PAIRS_MAX < pairs.len() {
            pairs.pop_front();
        }
        here = next;
        if is_flat {
            return Ok(Minimum { point: here, rounds, converged: true });
        }
    }
    let converged = largest(&here.slope) <= tol;
    Ok(Minimum { point: here, rounds, converged })
}

/// A point along a direction that is low and flat enough; `None` if rounding hides all of them.
fn step(
    here: &Point,
    direction: &Array1<f64>,
    first: f64,
    point: &impl Fn(Array1<f64>) -> Result<Point>,
) -> Result<Option<Point>> {
    let slope = here.slope.dot(direction);
    let (mut low, mut high, mut length) = (0.0, f64::INFINITY, first);
    let mut lowest: Option<Point> = None;
    for _ in 0..TRIES_MAX {
        let at = &here.at + &(direction * length);
        if at == here.at {
            // Too short for float64: no place but this one is left.
            break;
        }
        let tried = point(at)?;
        // The lowest place of a parabola through both: not halved many times where a step is far too long.
        let parabola = -0.5 * slope * length * (length / (tried.value - here.value - slope * length));
        let falls = tried.value <= here.value + FALL * length * slope;
        if !falls {
            high = length;
        } else if tried.slope.dot(direction) < FLATTENED * slope {
            low = length;
            lowest = Some(tried);
        } else {
            return Ok(Some(tried));
        }
        length = match high {
            _ if low == 0.0 && 0.0 < parabola && parabola < FAR_TOO_LONG * length => parabola,
            f64::INFINITY => 2.0 * low,
            _ => 0.5 * (low + high),
        };
    }
    Ok(lowest)
}

/// The direction down, bent by what the changes of the slope tell about the curvature.
fn downhill(slope: &Array1<f64>, pairs: &VecDeque<(Array1<f64>, Array1<f64>)>) -> Array1<f64> {
    let mut direction = -slope;
    let mut shares = Vec::with_capacity(pairs.len());
    for (moved, turned) in pairs.iter().rev() {
        let share = moved.dot(&direction) / moved.dot(turned);
        direction.scaled_add(-share, turned);
        shares.push(share);
    }
    if let Some((moved, turned)) = pairs.back() {
        direction *= moved.dot(turned) / turned.dot(turned);
    }
    for ((moved, turned), share) in pairs.iter().zip(shares.into_iter().rev()) {
        let back = turned.dot(&direction) / moved.dot(turned);
        direction.scaled_add(share - back, moved);
    }
    direction
}

/// The largest part of a slope; NaN, which is less than no bound, if a part is NaN.
fn largest(slope: &Array1<f64>) -> f64 {
    if slope.iter().any(|part| part.is_nan()) {
        return f64::NAN;
    }
    slope.iter().fold(0.0, |largest: f64, part| largest.max(part.abs()))
}

/// The length of the first step along the slope.
fn first_length(here: &Point, measure: Measure) -> f64 {
    let square = here.slope.dot(&here.slope);
    // Polyak's step to a value of zero: no unit changes the place to which it leads.
    let to_zero = here.value / square;
    if measure == Measure::Own && 0.0 < to_zero && to_zero.is_finite() {
        return to_zero;
    }
    (1.0 / square.sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The curved valley of Rosenbrock.
    fn valley(at: &Array1<f64>) -> (f64, Array1<f64>) {
        let (x, y) = (at[0], at[1]);
        let value = (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2);
        let slope = vec![-2.0 * (1.0 - x) - 400.0 * x * (y - x * x), 200.0 * (y - x * x)];
        (value, Array1::from(slope))
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let values = Cell::new(0);
        let evaluate = |at: &Array1<f64>| {
            values.set(values.get() + 1);
            Ok(valley(at))
        };
        let found = minimize(Array1::from(vec![-1.2, 1.0]), (1e-8, Measure::One), 200, evaluate).unwrap();
        assert!(found.converged && found.rounds < 60, "{} rounds", found.rounds);
        assert!(values.get() < 2 * found.rounds, "{} values, {} rounds", values.get(), found.rounds);
        assert!(found.point.at.iter().all(|x| (x - 1.0).abs() < 1e-6), "{}", found.point.at);
    }

    #[test]
    fn too_few_rounds_are_told() {
        let start = Array1::from(vec![-1.2, 1.0]);
        let found = minimize(start, (1e-8, Measure::One), 3, |at| Ok(valley(at))).unwrap();
        assert_eq!((found.rounds, found.converged), (3, false));
    }

    #[test]
    fn a_fall_that_rounding_hides_is_the_end_of_the_way() {
        let start = Array1::from(vec![0.0]);
        for (slope, is_end) in [(1e-9, true), (1e-3, false)] {
            // All other places are higher, by one rounding.
            let evaluate = |at: &Array1<f64>| {
                let value = if *at == start { 1.0 } else { 1.0 + f64::EPSILON };
                Ok((value, Array1::from(vec![slope])))
            };
            let found = minimize(start.clone(), (1e-12, Measure::One), 9, evaluate).unwrap();
            assert_eq!((found.rounds, found.converged), (0, is_end), "{slope}");
        }
    }

    #[test]
    fn the_lowest_point_is_left_at_once() {
        for measure in [Measure::One, Measure::Own] {
            let found =
                minimize(Array1::from(vec![1.0, 1.0]), (1e-8, measure), 3, |at| Ok(valley(at))).unwrap();
            assert_eq!((found.rounds, found.converged), (0, true));
        }
    }

    #[test]
    fn units_of_the_function_are_no_matter_to_its_own_measure() {
        for unit in [1e-30, 1e-9, 1.0, 1e9, 1e30] {
            let evaluate = |at: &Array1<f64>| {
                let (value, slope) = valley(at);
                Ok((value * unit, slope * unit))
            };
            let found =
                minimize(Array1::from(vec![-1.2, 1.0]), (1e-10, Measure::Own), 200, evaluate).unwrap();
            assert!(found.converged && found.rounds < 80, "{} rounds in units of {unit}", found.rounds);
            assert!(found.point.at.iter().all(|x| (x - 1.0).abs() < 1e-5), "{} {unit}", found.point.at);
        }
    }
}
