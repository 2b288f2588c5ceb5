//! Distributions of rows whose numbers depend on each other.

use super::counts::{binomial, hypergeometric};
use super::{Source, beta, gamma};

/// Shares of gamma numbers; of small parameters, whose gamma numbers may all be zero, the parts that a stick
/// is broken into.
pub(super) fn dirichlet(source: &mut Source, alpha: &[f64], row: &mut Vec<f64>) {
    let largest = alpha.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        row.extend(alpha);
        return;
    }
    if largest < BROKEN_BELOW {
        let mut rest: f64 = alpha.iter().sum();
        let mut stick = 1.0;
        for (place, &a) in alpha.iter().enumerate() {
            rest -= a;
            let later = alpha[place + 1..].iter().any(|&a| 0.0 < a);
            let share = if a == 0.0 {
                0.0
            } else if later {
                beta(source, a, rest.max(f64::MIN_POSITIVE))
            } else {
                1.0
            };
            row.push(stick * share);
            stick *= 1.0 - share;
        }
        return;
    }
    let start = row.len();
    row.extend(alpha.iter().map(|&a| gamma(source, a)));
    let sum: f64 = row[start..].iter().sum();
    row[start..].iter_mut().for_each(|share| *share /= sum);
}

/// Each count is binomial, given those before it.
pub(super) fn multinomial(source: &mut Source, count: i64, p: &[f64], row: &mut Vec<i64>) {
    let (mut left, mut chance) = (count, 1.0);
    let Some((_, others)) = p.split_last() else { return };
    for &p in others {
        // Rounding may leave less of the chances than the next one has, or nothing.
        let drawn = if left == 0 { 0 } else { binomial(source, left, (p / chance).clamp(0.0, 1.0)) };
        row.push(drawn);
        left -= drawn;
        chance = (chance - p).max(f64::MIN_POSITIVE);
    }
    row.push(left);
}

/// Each count is hypergeometric, given those before it.
pub(super) fn multivariate_hypergeometric(
    source: &mut Source,
    colors: &[i64],
    sample: i64,
    row: &mut Vec<i64>,
) {
    let (mut left, mut total) = (sample, colors.iter().sum::<i64>());
    for &color in colors {
        total -= color;
        let drawn = hypergeometric(source, color, total, left);
        row.push(drawn);
        left -= drawn;
    }
}

/// If all parameters are smaller, sums of gamma numbers lose their digits.
const BROKEN_BELOW: f64 = 0.1;
