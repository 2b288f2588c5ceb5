//! Distributions of counts.

use super::{Source, log_chance};
use libm::lgamma;

/// Small means by products of uniform numbers, larger ones by transformed rejection (Hörmann, 1993, PTRS). A
/// whole number, or the mean if it is infinite.
pub(super) fn poisson(source: &mut Source, mean: f64) -> f64 {
    if mean == 0.0 || !mean.is_finite() {
        return mean;
    }
    if mean < REJECTED_FROM {
        let least = (-mean).exp();
        let (mut product, mut count) = (source.unit(), 0.0);
        while least < product {
            product *= source.unit();
            count += 1.0;
        }
        return count;
    }
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.02483 * b;
    let scale = 1.1239 + 1.1328 / (b - 3.4);
    let inside = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (u, v) = (source.unit() - 0.5, source.unit());
        let near = 0.5 - u.abs();
        let count = ((2.0 * a / near + b) * u + mean + 0.43).floor();
        if 0.07 <= near && v <= inside {
            return count;
        }
        if count < 0.0 || (near < 0.013 && near < v) {
            continue;
        }
        let height = (v * scale / (a / (near * near) + b)).ln();
        if height <= log_chance::poisson(count, mean) {
            return count;
        }
    }
}

/// Few successes by inversion from zero on, more by transformed rejection (Hörmann, 1993, BTRS).
pub(super) fn binomial(source: &mut Source, count: i64, p: f64) -> i64 {
    if 0.5 < p {
        return count - binomial(source, count, 1.0 - p);
    }
    let n = count as f64;
    if count == 0 || p == 0.0 {
        return 0;
    }
    if n * p < REJECTED_FROM {
        return binomial_by_inversion(source, n, p);
    }
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let inside = 0.92 - 4.2 / b;
    let scale = (2.83 + 5.1 / b) * deviation;
    let mode = ((n + 1.0) * p).floor();
    let at_mode = log_chance::binomial(mode, n, p);
    loop {
        let (u, v) = (source.unit() - 0.5, source.unit());
        let near = 0.5 - u.abs();
        let k = ((2.0 * a / near + b) * u + n * p + 0.5).floor();
        if 0.07 <= near && v <= inside {
            return k as i64;
        }
        if k < 0.0 || n < k {
            continue;
        }
        let height = (v * scale / (a / (near * near) + b)).ln();
        if height <= log_chance::binomial(k, n, p) - at_mode {
            return k as i64;
        }
    }
}

fn binomial_by_inversion(source: &mut Source, n: f64, p: f64) -> i64 {
    let odds = p / (1.0 - p);
    let none = (n * (-p).ln_1p()).exp();
    // Farther than that from the mean nothing is ever drawn: the chances have become zero there, and no
    // longer use up what rounding has left over.
    let end = n.min(n * p + 10.0 * (n * p * (1.0 - p) + 1.0).sqrt());
    loop {
        let (mut left, mut chance, mut k) = (source.unit(), none, 0.0);
        while chance < left && k < end {
            left -= chance;
            k += 1.0;
            chance *= odds * (n + 1.0 - k) / k;
        }
        // If rounding has left something over behind the last success, the number is drawn again.
        if left <= chance {
            return k as i64;
        }
    }
}

/// Small samples one by one, larger ones by ratios of uniform numbers (Stadlober, 1989, HRUE).
pub(super) fn hypergeometric(source: &mut Source, good: i64, bad: i64, sample: i64) -> i64 {
    let total = good + bad;
    // The rest of the sample has what the sample has not.
    let drawn = sample.min(total - sample);
    let few = good.min(bad);
    let found = if drawn < SMALL_SAMPLE {
        one_by_one(source, few, total, drawn)
    } else {
        by_ratios(source, few as f64, total as f64, drawn as f64)
    };
    let of_good = if good <= bad { found } else { drawn - found };
    if drawn == sample { of_good } else { good - of_good }
}

/// The number of those drawn that are of the `few` among `total`.
fn one_by_one(source: &mut Source, few: i64, total: i64, drawn: i64) -> i64 {
    let (mut left, mut among) = (few, total);
    for _ in 0..drawn {
        if source.unit() * (among as f64) < left as f64 {
            left -= 1;
        }
        among -= 1;
    }
    few - left
}

fn by_ratios(source: &mut Source, few: f64, total: f64, drawn: f64) -> i64 {
    let share = few / total;
    let mean = drawn * share + 0.5;
    let deviation = ((total - drawn) * drawn * share * (1.0 - share) / (total - 1.0) + 0.5).sqrt();
    let width =
        2.0 * (2.0 / std::f64::consts::E).sqrt() * deviation + 3.0 - 2.0 * (3.0 / std::f64::consts::E).sqrt();
    let mode = ((drawn + 1.0) * (few + 1.0) / (total + 2.0)).floor();
    let weight = |k: f64| {
        lgamma(k + 1.0)
            + lgamma(few - k + 1.0)
            + lgamma(drawn - k + 1.0)
            + lgamma(total - few - drawn + k + 1.0)
    };
    let at_mode = weight(mode);
    // Farther than 16 deviations from the mean nothing is ever drawn.
    let end = (drawn.min(few) + 1.0).min((mean + 16.0 * deviation).floor());
    loop {
        let (u, v) = (source.unit(), source.unit());
        let place = mean + width * (v - 0.5) / u;
        if !(0.0..end).contains(&place) {
            continue;
        }
        let k = place.floor();
        if 2.0 * u.ln() <= at_mode - weight(k) {
            return k as i64;
        }
    }
}

/// The logarithmic distribution: Kemp, 1981.
pub(super) fn log_series(source: &mut Source, p: f64) -> i64 {
    let log_rest = (-p).ln_1p();
    loop {
        let v = source.unit();
        if p <= v {
            return 1;
        }
        let q = -(log_rest * source.unit()).exp_m1();
        if v <= q * q {
            let count = (1.0 + v.ln() / q.ln()).floor();
            if 1.0 <= count {
                return count as i64;
            }
            continue;
        }
        return if q <= v { 1 } else { 2 };
    }
}

/// Zipf's distribution: Devroye, 1986, by rejection from a Pareto distribution.
pub(super) fn zipf(source: &mut Source, a: f64) -> i64 {
    if LIGHT_TAIL < a {
        // The chance of anything but 1 is below the distance of two floats.
        return 1;
    }
    // The powers are near to 1 for small exponents: what they have beyond is kept apart.
    let exponent = a - 1.0;
    let beyond_one = (exponent * std::f64::consts::LN_2).exp_m1();
    // Only numbers below the end are proposed: for small exponents nearly all others lie beyond it.
    let range = -(-exponent * COUNT_END.ln()).exp_m1();
    loop {
        let (u, v) = (source.unit(), source.unit());
        let count = (-(-u * range).ln_1p() / exponent).exp().floor();
        if COUNT_END <= count {
            continue;
        }
        let t = (exponent * (1.0 / count).ln_1p()).exp_m1();
        if v * count * t / beyond_one <= (1.0 + t) / (1.0 + beyond_one) {
            return count as i64;
        }
    }
}

/// From this mean on counts are drawn by rejection.
const REJECTED_FROM: f64 = 10.0;
/// Up to this size the elements of a sample are drawn one by one.
const SMALL_SAMPLE: i64 = 10;
/// Beyond the largest count.
const COUNT_END: f64 = 9_223_372_036_854_775_808.0;
/// From this exponent on all numbers of Zipf's distribution are 1.
const LIGHT_TAIL: f64 = 1025.0;
