//! Signs of singular vectors, which the decomposition leaves open.

use ndarray::Array2;

/// Turns each component so that its number of the largest absolute value, the first of equals, is positive:
/// as scikit-learn's `svd_flip` by the right vectors.
pub(crate) fn flip(components: &mut Array2<f64>) {
    for mut component in components.outer_iter_mut() {
        let mut largest = 0.0f64;
        for &part in &component {
            if largest.abs() < part.abs() {
                largest = part;
            }
        }
        if largest < 0.0 {
            component.mapv_inplace(|part| -part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::flip;

    #[test]
    fn the_largest_part_becomes_positive() {
        let mut components = ndarray::arr2(&[[0.1, -2.0], [3.0, -1.0], [-1.0, 1.0]]);
        flip(&mut components);
        assert_eq!(components, ndarray::arr2(&[[-0.1, 2.0], [3.0, -1.0], [1.0, -1.0]]));
    }
}
