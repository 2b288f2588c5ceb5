//! Sums of the samples that are nearest to each centre, by one plan.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::passes::chunks::in_fixed_chunks;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis, Slice};
use tharsis_numeric::{DType, Result, Tensor, arange};

/// The square of the distance of two centres that products tell apart, in units of their rounding. Nearer
/// ones would share samples that lie within a millionth of the way between them.
const APART: f64 = 1e6;
/// Centres whose distances to all others are computed at once.
const BLOCK_ROWS: usize = 256;

/// The samples of a clustering. The nearest centre is found by |x|² - 2 x c + |c|² where that has digits
/// enough, so the samples are to lie around zero. Distances are made of differences.
pub(crate) struct Lloyd<'a> {
    training: &'a Training,
    /// (n, d), around zero.
    x: &'a Tensor,
}

/// The clusters around some centres.
pub(crate) struct Clusters {
    /// The weighted sums of the samples of each cluster; (k, d).
    pub(crate) sums: Array2<f64>,
    /// The sums of their weights; (k,).
    pub(crate) weights: Array1<f64>,
}

impl<'a> Lloyd<'a> {
    pub(crate) fn new(training: &'a Training, x: &'a Tensor) -> Lloyd<'a> {
        Lloyd { training, x }
    }

    /// The clusters around these centres (k, d). One pass.
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; `OverflowError` for sums beyond float64; errors of the pass.
    #[track_caller]
    pub(crate) fn around(&self, centers: &Array2<f64>) -> Result<Clusters> {
        let member = member(&relative_distances(self.x, centers), centers.nrows());
        let member = match &self.training.weight {
            None => member,
            Some(weight) => member * weight.expand_dims(1),
        };
        let sums = member.t().matmul(self.x);
        let states = self.training.engine.run(&[&sums, &member.sum(0)])?;
        if !all_finite(&states) {
            return Err(self.training.not_finite(Nan::Refused));
        }
        let [sums, weights] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        Ok(Clusters { sums: matrix(sums)?, weights: vector(weights)? })
    }

    /// The weighted sum of squared distances to the nearest of these centres. One pass.
    ///
    /// # Errors
    /// As [`Lloyd::around`].
    #[track_caller]
    pub(crate) fn inertia(&self, centers: &Array2<f64>) -> Result<f64> {
        let distances = relative_distances(self.x, centers);
        let inertia = self.weighted(self.to_nearest(&distances, centers)).sum(..);
        let states = self.training.engine.run(&[&inertia])?;
        if !all_finite(&states) {
            return Err(self.training.not_finite(Nan::Refused));
        }
        Ok(states.iter().map(|inertia| inertia.sum()).sum())
    }

    /// The squared distance of each sample to the nearest of these centres, times its weight, as an
    /// expression; (n,). Of centres that products cannot tell apart any one is the nearest.
    #[track_caller]
    pub(crate) fn potential(&self, centers: &Array2<f64>) -> Tensor {
        self.weighted(self.to_nearest(&by_products(self.x, centers), centers))
    }

    /// The samples that are farthest from their centres, farthest first, with the numbers of their clusters
    /// and their weights: new centres for clusters without samples.
    ///
    /// # Errors
    /// `ValueError` if there are fewer samples; errors of the pass.
    #[track_caller]
    pub(crate) fn farthest(&self, centers: &Array2<f64>, count: usize) -> Result<Vec<Far>> {
        let distances = relative_distances(self.x, centers);
        let least = self.to_nearest(&distances, centers);
        let chosen = least.argsort_descending(0).get(&[(..count as i64).into()]);
        let (rows, cluster) = (self.x.take_at(&chosen, 0), distances.argmin(1).take_at(&chosen, 0));
        let mut wanted = vec![rows, cluster, least.take_at(&chosen, 0)];
        wanted.extend(self.training.weight.as_ref().map(|weight| weight.take_at(&chosen, 0)));
        let mut states = self.training.engine.run(&wanted.iter().collect::<Vec<_>>())?.into_iter();
        let rows = matrix(states.next().ok_or_else(lost)?)?;
        let clusters = vector(states.next().ok_or_else(lost)?)?;
        let distances = vector(states.next().ok_or_else(lost)?)?;
        let weights = states.next().map_or_else(|| Ok(Array1::ones(rows.nrows())), vector)?;
        if rows.nrows() < count {
            return Err(refused("there are fewer samples than clusters"));
        }
        let far = rows.axis_iter(Axis(0)).zip(&clusters).zip(&distances).zip(&weights);
        Ok(far
            .map(|(((row, &cluster), &distance), &weight)| Far {
                row: row.to_owned(),
                cluster: cluster as usize,
                distance,
                weight,
            })
            .collect())
    }

    /// The squared distance of each sample to the centre with the least of these distances; (n,).
    #[track_caller]
    fn to_nearest(&self, distances: &Tensor, centers: &Array2<f64>) -> Tensor {
        let (count, columns) = centers.dim();
        // A product with one 1 in each row: the centre itself.
        let nearest = member(distances, count).matmul(&tensor(centers));
        (self.x - in_fixed_chunks(&nearest, columns)).square().sum(1)
    }

    #[track_caller]
    fn weighted(&self, distances: Tensor) -> Tensor {
        match &self.training.weight {
            None => distances,
            Some(weight) => distances * weight,
        }
    }
}

/// A sample far from its centre.
pub(crate) struct Far {
    pub(crate) row: Array1<f64>,
    pub(crate) cluster: usize,
    /// The square of its distance.
    pub(crate) distance: f64,
    pub(crate) weight: f64,
}

/// Whether each sample is nearest to each centre by these distances; (n, k), zeros and ones.
#[track_caller]
fn member(distances: &Tensor, centers: usize) -> Tensor {
    distances.argmin(1).expand_dims(1).equal(arange(centers)).astype(DType::F64)
}

/// The squared distances to each centre, up to a summand of each sample; (n, d) to (n, k).
#[track_caller]
pub(crate) fn relative_distances(x: &Tensor, centers: &Array2<f64>) -> Tensor {
    if are_apart(centers) {
        return by_products(x, centers);
    }
    let between = x.expand_dims(1) - tensor(centers);
    in_fixed_chunks(&between.square().sum(2), centers.nrows())
}

/// The squared distances to each centre less the squared length of the sample.
#[track_caller]
fn by_products(x: &Tensor, centers: &Array2<f64>) -> Tensor {
    let squares = centers.map_axis(Axis(1), |center| center.dot(&center));
    let distances = x.matmul(&tensor(&centers.mapv(|part| -2.0 * part)).t()) + tensor(&squares);
    in_fixed_chunks(&distances, centers.nrows())
}

/// Whether centres are so far from each other, for their distance from zero, that products tell which one is
/// nearest.
fn are_apart(centers: &Array2<f64>) -> bool {
    let (count, columns) = centers.dim();
    let squares = centers.map_axis(Axis(1), |center| center.dot(&center));
    let largest = squares.iter().fold(0.0f64, |largest, square| largest.max(*square));
    if !largest.is_finite() {
        return false;
    }
    // The rounding of these products is far below the bound too.
    let bound = APART * f64::EPSILON * columns as f64 * largest;
    for start in (0..count).step_by(BLOCK_ROWS) {
        let block = centers.slice_axis(Axis(0), Slice::from(start..count.min(start + BLOCK_ROWS)));
        let products = block.dot(&centers.t());
        for (row, products) in products.outer_iter().enumerate() {
            let at = start + row;
            let mut others = products.iter().zip(&squares).enumerate().filter(|(other, _)| *other != at);
            if others.any(|(_, (product, square))| squares[at] + square - 2.0 * product <= bound) {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::are_apart;
    use ndarray::arr2;

    #[test]
    fn near_centers_far_from_zero_are_not_told_apart_by_products() {
        assert!(are_apart(&arr2(&[[0.0, 0.0]])));
        assert!(are_apart(&arr2(&[[0.0, 1.0], [0.0, -1.0], [3.0, 0.0]])));
        assert!(are_apart(&arr2(&[[1e8, 1.0], [-1e8, -1.0]])));
        assert!(!are_apart(&arr2(&[[1e8, 1.0], [1e8, -1.0], [-1e8, 0.0]])));
        assert!(!are_apart(&arr2(&[[1.0, 1.0], [1.0, 1.0]])));
        assert!(!are_apart(&arr2(&[[1e200, 1.0], [1.0, 1.0]])));
    }
}
