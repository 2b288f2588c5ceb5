//! Logarithms of chances of counts: Loader, 2000, "Fast and accurate computation of binomial probabilities".
//! No large terms cancel, as logarithms of factorials do from about 10^14 on.

use libm::lgamma;
use std::f64::consts::TAU;

/// The logarithm of the chance of `count` for this mean.
pub(super) fn poisson(count: f64, mean: f64) -> f64 {
    if count == 0.0 {
        return -mean;
    }
    -beyond_stirling(count) - deviance(count, mean) - 0.5 * (TAU * count).ln()
}

/// The logarithm of the chance of `count` successes in `n` trials of chance `p`, which is between 0 and 1.
pub(super) fn binomial(count: f64, n: f64, p: f64) -> f64 {
    let rest = n - count;
    if count == 0.0 {
        return n * (-p).ln_1p();
    }
    if rest == 0.0 {
        return n * p.ln();
    }
    let errors = beyond_stirling(n) - beyond_stirling(count) - beyond_stirling(rest);
    let deviances = deviance(count, n * p) + deviance(rest, n * (1.0 - p));
    errors - deviances - 0.5 * (TAU * count * (rest / n)).ln()
}

/// The logarithm of n! beyond Stirling's formula, for n of 1 or more.
fn beyond_stirling(n: f64) -> f64 {
    if n < 16.0 {
        return lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / n
}

/// `x ln(x / mean) + mean - x`, which is small beside its terms near the mean.
fn deviance(x: f64, mean: f64) -> f64 {
    let (difference, sum) = (x - mean, x + mean);
    if 0.1 * sum <= difference.abs() {
        return x * (x / mean).ln() - difference;
    }
    let v = difference / sum;
    let mut total = difference * v;
    let mut term = 2.0 * x * v;
    for j in 1..100 {
        term *= v * v;
        let more = total + term / f64::from(2 * j + 1);
        if more == total {
            break;
        }
        total = more;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_of_few_are_those_of_the_definition() {
        for (n, p) in [(1u32, 0.5), (7, 0.2), (40, 0.01), (60, 0.5), (170, 0.3)] {
            let mut chance = (1.0f64 - p).powi(n as i32);
            for k in 0..=n {
                let found = binomial(f64::from(k), f64::from(n), p);
                assert!((found - chance.ln()).abs() < 1e-11, "{k} of {n}: {found} {}", chance.ln());
                chance *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
            }
        }
        let mut chance = (-12.5f64).exp();
        for k in 0..80 {
            let found = poisson(f64::from(k), 12.5);
            assert!((found - chance.ln()).abs() < 1e-11, "{k}: {found} {}", chance.ln());
            chance *= 12.5 / f64::from(k + 1);
        }
    }

    #[test]
    fn chances_of_many_fall_as_those_of_a_normal_distribution() {
        for n in [2f64.powi(50), 2f64.powi(56), 2f64.powi(62)] {
            let deviation = n.sqrt() / 2.0;
            for k in [-3.0, -1.0, 0.5, 2.0, 4.0] {
                // To the distance of floats of this size.
                let place = (n / 2.0 + k * deviation).round();
                let away = (place - n / 2.0) / deviation;
                let fall = binomial(place, n, 0.5) - binomial(n / 2.0, n, 0.5);
                assert!((fall + away * away / 2.0).abs() < 1e-6, "{n} {k}: {fall}");
                let (place, mean) = ((n + k * n.sqrt()).round(), n);
                let away = (place - mean) / n.sqrt();
                let fall = poisson(place, mean) - poisson(mean, mean);
                assert!((fall + away * away / 2.0).abs() < 1e-5, "{n} {k}: {fall}");
            }
        }
    }
}
