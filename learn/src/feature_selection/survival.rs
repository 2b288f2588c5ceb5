//! Chances that a number of a distribution is larger: p-values.
//!
//! Continued fractions of the incomplete beta and gamma functions by Lentz's method, as in Press and others,
//! "Numerical Recipes" (2007), chapter 6.

use std::f64::consts::TAU;

/// Relative change at which a fraction or a sum ends.
const END: f64 = 1e-16;
/// Stands for zero in denominators.
const TINY: f64 = 1e-300;
/// Most terms. A fraction takes some roots of its largest parameter.
const TERMS_MAX: usize = 100_000;

/// The chance that a number of the F distribution with these degrees of freedom is above `f`.
pub(crate) fn f_survival(above: f64, below: f64, f: f64) -> f64 {
    if f.is_nan() || above <= 0.0 || below <= 0.0 {
        return f64::NAN;
    }
    if f <= 0.0 {
        return 1.0;
    }
    let ratio = above * f / below;
    if ratio.is_infinite() {
        return 0.0;
    }
    // Both shares, each without a difference that cancels.
    incomplete_beta(0.5 * below, 0.5 * above, 1.0 / (1.0 + ratio), ratio / (1.0 + ratio))
}

/// The chance that a number of the chi-squared distribution with these degrees of freedom is above `x`.
pub(crate) fn chi2_survival(freedom: f64, x: f64) -> f64 {
    if x.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    let (a, x) = (0.5 * freedom, 0.5 * x);
    let main = a * ln_quotient(x - a, a, x) - (x - a);
    let front = (main + 0.5 * (a / TAU).ln() - beyond_stirling(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for at in 1..TERMS_MAX {
            term *= x / (a + at as f64);
            sum += term;
            if term < END * sum {
                break;
            }
        }
        return 1.0 - front * sum;
    }
    front
        / fraction(x + 1.0 - a, |at| {
            let at = at as f64;
            (-at * (at - a), x + 1.0 - a + 2.0 * at)
        })
}

/// The regularized incomplete beta function of `x`, with `y = 1 - x`.
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    // Close to the bound both sides may ask for the other one, so that only this one decides.
    if (a + 1.0) / (a + b + 2.0) < x { 1.0 - lower_tail(b, a, y, x) } else { lower_tail(a, b, x, y) }
}

/// As [`incomplete_beta`], by a fraction that is short for `x` up to about the mean.
fn lower_tail(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let all = a + b;
    let main = a * ln_quotient(x * b - y * a, a, x * all) + b * ln_quotient(y * a - x * b, b, y * all);
    let front = main + 0.5 * (a / TAU * (b / all)).ln() + beyond_stirling(all)
        - beyond_stirling(a)
        - beyond_stirling(b);
    let front = front.exp();
    let term = |at: usize| {
        let half = (at / 2) as f64;
        let numerator = if at.is_multiple_of(2) {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        };
        (numerator, 1.0)
    };
    front / (a * fraction(1.0, term))
}

/// A continued fraction: `first + n1 / (d1 + n2 / (d2 + ..))`.
fn fraction(first: f64, term: impl Fn(usize) -> (f64, f64)) -> f64 {
    let safe = |x: f64| if x.abs() < TINY { TINY } else { x };
    let mut value = safe(first);
    let (mut c, mut d) = (value, 0.0);
    for at in 1..TERMS_MAX {
        let (numerator, denominator) = term(at);
        d = 1.0 / safe(denominator + numerator * d);
        c = safe(denominator + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < END.max(f64::EPSILON) {
            break;
        }
    }
    value
}

/// The logarithm of `part / whole`, of which the difference is known as well: close to 1 it keeps all digits.
fn ln_quotient(difference: f64, whole: f64, part: f64) -> f64 {
    let change = difference / whole;
    if change.abs() < 0.5 { change.ln_1p() } else { (part / whole).ln() }
}

/// The logarithm of the gamma function of a positive number less `(x - 1/2) ln x - x + ln(2 pi) / 2`. Of
/// large numbers those terms cancel each other, and are left out by hand.
fn beyond_stirling(x: f64) -> f64 {
    let (start, mut x, mut product) = (x, x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square;
    let shift = (x - 0.5) * x.ln() - x - ((start - 0.5) * start.ln() - start);
    series / x + if x == start { 0.0 } else { shift - product.ln() }
}

#[cfg(test)]
mod tests {
    use super::{chi2_survival, f_survival};

    /// Numbers of SciPy 1.17.1: `stats.f.sf`, `special.chdtrc`.
    #[test]
    fn chances_are_those_of_scipy() {
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() <= 1e-11 * wanted, "{found}, not {wanted}");
        };
        for &(above, below, x, wanted) in F_CASES {
            near(f_survival(above, below, x), wanted);
        }
        for &(freedom, x, wanted) in CHI2_CASES {
            near(chi2_survival(freedom, x), wanted);
        }
        assert_eq!((f_survival(2.0, 9.0, 0.0), f_survival(2.0, 9.0, f64::INFINITY)), (1.0, 0.0));
        assert!(f_survival(0.0, 9.0, 1.0).is_nan() && chi2_survival(2.0, f64::NAN).is_nan());
    }

    /// Logarithms of gamma functions are 1e9 here, and their difference is 1.
    #[test]
    fn many_degrees_of_freedom_take_few_digits() {
        let found = f_survival(1.0, 1e8, 25.0);
        assert!((found / 5.733041101267264e-07 - 1.0).abs() < 1e-9, "{found}");
        let found = chi2_survival(1e7, 1e7 + 5e3);
        assert!((found / 0.13178418663816366 - 1.0).abs() < 1e-9, "{found}");
    }

    /// Close to the mean of the distribution, where rounding decides which tail is the shorter one.
    #[test]
    fn close_to_the_mean_a_tail_is_chosen_once() {
        let found = f_survival(1.0, 18.0, 2.7);
        assert!((found - 0.11770150905630436).abs() < 1e-13, "{found}");
        for above in 1..8 {
            for below in 1..300 {
                let (above, below) = (f64::from(above), f64::from(below));
                // Here the share is (a + 1) / (a + b + 2).
                let f = below / above * (0.5 * above + 1.0) / (0.5 * below + 1.0);
                for f in [f.next_down(), f, f.next_up()] {
                    let found = f_survival(above, below, f);
                    assert!(0.0 < found && found < 1.0, "{above} {below} {f}: {found}");
                }
            }
        }
    }

    const F_CASES: &[(f64, f64, f64, f64)] = &[
        (2.0, 58.0, 0.3, 0.741960779476711),
        (2.0, 58.0, 3.7, 0.03073669105664921),
        (1.0, 59.0, 140.0, 3.2512694150355987e-17),
        (1.0, 10.0, 0.001, 0.975395135839122),
        (9.0, 1000.0, 2.5, 0.007894821594490092),
        (3.0, 7.0, 1000.0, 1.415808970538129e-09),
        (1.0, 100000.0, 25.0, 5.742701678641679e-07),
        (40.0, 13.0, 1.0, 0.5307529741848752),
    ];
    const CHI2_CASES: &[(f64, f64, f64)] = &[
        (2.0, 0.1, 0.951229424500714),
        (2.0, 30.0, 3.0590232050182594e-07),
        (1.0, 3.84, 0.05004352124870519),
        (9.0, 4.0, 0.9114125268316792),
        (50.0, 80.0, 0.00448265656557319),
        (3.0, 0.001, 0.9999915920809419),
    ];
}
