//! Medians and percentiles.

/// The quantile `q` in `0.0..=1.0` of sorted samples; 0 if there are none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * q).round() as usize).copied().unwrap_or(0.0)
}

/// Sorts samples in place and returns their median.
pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    quantile(samples, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_samples() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 1.0), 4.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
