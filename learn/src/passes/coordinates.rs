//! Steps of coordinate descent to weights that are not negative, row by row.

/// A step of all weights of one sample: the sum of the slopes before it, of those that can still fall.
pub(crate) fn step(weights: &mut [f64], products: &[f64], gram: &[f64]) -> f64 {
    let count = weights.len();
    let mut violation = 0.0;
    for at in 0..count {
        let row = &gram[at * count..(at + 1) * count];
        let slope = row.iter().zip(&*weights).map(|(gram, weight)| gram * weight).sum::<f64>() - products[at];
        violation += if weights[at] == 0.0 { slope.min(0.0).abs() } else { slope.abs() };
        if row[at] != 0.0 {
            weights[at] = (weights[at] - slope / row[at]).max(0.0);
        }
    }
    violation
}

/// Rows of weights after a step, with their slopes.
pub(crate) fn steps_of_rows(products: &[f64], weights: &[f64], gram: &[f64], count: usize) -> Vec<f64> {
    let mut made = Vec::with_capacity(weights.len() + weights.len() / count.max(1));
    for (products, weights) in products.chunks_exact(count).zip(weights.chunks_exact(count)) {
        let start = made.len();
        made.extend_from_slice(weights);
        let violation = step(&mut made[start..], products, gram);
        made.push(violation);
    }
    made
}

/// Rows of weights at rest.
pub(crate) fn solved_rows(products: &[f64], gram: &[f64], bounds: &[f64], count: usize) -> Vec<f64> {
    let (tol, steps) = (bounds.first().copied().unwrap_or(0.0), bounds.get(1).copied().unwrap_or(0.0));
    let mut made = vec![0.0; products.len()];
    for (products, weights) in products.chunks_exact(count).zip(made.chunks_exact_mut(count)) {
        let begin = step(weights, products, gram);
        let mut done = 1.0;
        let mut violation = begin;
        while tol * begin < violation && done < steps {
            violation = step(weights, products, gram);
            done += 1.0;
        }
    }
    made
}
