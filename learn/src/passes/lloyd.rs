//! Sums of the samples that are nearest to each centre, by one plan.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::passes::chunks::{in_fixed_chunks, piece_rows};
use crate::passes::functions::{Of, RowFunction};
use crate::passes::rows::RowPass;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis, Slice};
use std::sync::Arc;
use tharsis_numeric::{DType, Result, Tensor, arange};

/// The square of the distance of two centres that products tell apart, in units of their rounding. Nearer
/// ones would share samples that lie within a millionth of the way between them.
const APART: f64 = 1e6;
/// Numbers of centres up to which their sums are states of a function of rows.
const SMALL_CENTERS: usize = 1 << 16;
/// Centres whose distances to all others are computed at once.
const BLOCK_ROWS: usize = 256;

/// The samples of a clustering. The nearest centre is found by |x|² - 2 x c + |c|² where that has digits
/// enough, so the samples are taken around a point that makes them lie around zero; centres are given around
/// it too. Distances are made of differences.
pub(crate) struct Lloyd<'a> {
    training: &'a Training,
    /// (d,).
    point: &'a Array1<f64>,
    /// The samples around the point; (n, d).
    x: Tensor,
}

/// The clusters around some centres.
pub(crate) struct Clusters {
    /// The weighted sums of the samples of each cluster; (k, d).
    pub(crate) sums: Array2<f64>,
    /// The sums of their weights; (k,).
    pub(crate) weights: Array1<f64>,
}

impl<'a> Lloyd<'a> {
    #[track_caller]
    pub(crate) fn new(training: &'a Training, point: &'a Array1<f64>) -> Lloyd<'a> {
        Lloyd { training, point, x: &training.x - tensor(point) }
    }

    /// The samples around the point; (n, d), as an expression.
    pub(crate) fn samples(&self) -> &Tensor {
        &self.x
    }

    /// The clusters around these centres (k, d). One pass.
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; `OverflowError` for sums beyond float64; errors of the pass.
    #[track_caller]
    pub(crate) fn around(&self, centers: &Array2<f64>) -> Result<Clusters> {
        let (sums, weights) = if self.is_small(centers) {
            self.clusters(centers)?
        } else {
            self.clusters_by_products(centers)?
        };
        if !sums.iter().chain(&weights).all(|sum| sum.is_finite()) {
            return Err(self.training.not_finite(Nan::Refused));
        }
        Ok(Clusters { sums, weights })
    }

    /// The weighted sum of squared distances to the nearest of these centres. One pass.
    ///
    /// # Errors
    /// As [`Lloyd::around`].
    #[track_caller]
    pub(crate) fn inertia(&self, centers: &Array2<f64>) -> Result<f64> {
        let inertia = if self.is_small(centers) {
            let by_products = are_apart(centers);
            self.near(
                centers,
                |weighted| Of::Inertia { weighted, by_products },
                |pass, inputs| pass.state(inputs, 1, Arc::new(RowFunction::ADD)),
            )
        } else {
            let distances = relative_distances(&self.x, centers);
            self.weighted(self.to_nearest(&distances, centers)).sum(..)
        };
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
        if !self.is_small(centers) {
            return self.weighted(self.to_nearest(&by_products(&self.x, centers), centers));
        }
        let distances = |weighted| Of::Distances { weighted, by_products: true };
        self.near(centers, distances, |pass, inputs| pass.map(inputs, 1, DType::F64)).squeeze(Some(&[1]))
    }

    /// Whether the sums of all clusters are small beside the rows that one call of a function reads.
    fn is_small(&self, centers: &Array2<f64>) -> bool {
        centers.len() <= SMALL_CENTERS
    }

    /// The sums of the clusters and of their weights, by a function of rows.
    #[track_caller]
    fn clusters(&self, centers: &Array2<f64>) -> Result<(Array2<f64>, Array1<f64>)> {
        let (count, columns) = centers.dim();
        let by_products = are_apart(centers);
        let state = self.near(
            centers,
            |weighted| Of::Clusters { weighted, by_products },
            |pass, inputs| pass.state(inputs, count * (columns + 1), Arc::new(RowFunction::ADD)),
        );
        let state = vector(self.training.engine.run(&[&state])?.pop().ok_or_else(lost)?)?;
        let (sums, weights) = state.view().split_at(Axis(0), count * columns);
        let sums = sums.to_owned().into_shape_with_order((count, columns)).map_err(|_| lost())?;
        Ok((sums, weights.to_owned()))
    }

    /// The result of a pass over these centres by a function that may be weighted.
    #[track_caller]
    fn near(
        &self,
        centers: &Array2<f64>,
        of: impl FnOnce(bool) -> Of,
        make: impl FnOnce(RowPass, &[&Tensor]) -> Tensor,
    ) -> Tensor {
        let (columns, weight) = (centers.ncols(), self.training.weight.as_ref());
        let rows = piece_rows((self.training.rows, columns), centers.len());
        let held = rows * (columns + 2) + 2 * centers.len();
        let function = Arc::new(RowFunction { of: of(weight.is_some()), held });
        let (point, centers) = (tensor(self.point).expand_dims(0), tensor(centers));
        let inputs = std::iter::once(&self.training.x).chain(weight).chain([&point, &centers]);
        make(RowPass { function, rows, whole: 2 }, &inputs.collect::<Vec<_>>())
    }

    /// As [`Lloyd::clusters`], by products of matrices.
    #[track_caller]
    fn clusters_by_products(&self, centers: &Array2<f64>) -> Result<(Array2<f64>, Array1<f64>)> {
        let member = member(&relative_distances(&self.x, centers), centers.nrows());
        let member = match &self.training.weight {
            None => member,
            Some(weight) => member * weight.expand_dims(1),
        };
        let sums = member.t().matmul(&self.x);
        let states = self.training.engine.run(&[&sums, &member.sum(0)])?;
        let [sums, weights] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        Ok((matrix(sums)?, vector(weights)?))
    }

    /// The samples that are farthest from their centres, farthest first, with the numbers of their clusters
    /// and their weights: new centres for clusters without samples.
    ///
    /// # Errors
    /// `ValueError` if there are fewer samples; errors of the pass.
    #[track_caller]
    pub(crate) fn farthest(&self, centers: &Array2<f64>, count: usize) -> Result<Vec<Far>> {
        let distances = relative_distances(&self.x, centers);
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
        (&self.x - in_fixed_chunks(&nearest, columns)).square().sum(1)
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
    use super::{Lloyd, are_apart};
    use crate::FitOptions;
    use crate::checks::Training;
    use crate::dense::tensor;
    use ndarray::{Array2, arr1, arr2};
    use tharsis_numeric::random::default_rng;

    #[test]
    fn clusters_of_rows_are_those_of_products_of_matrices() {
        for (rows, columns, count) in [(1, 1, 1), (700, 3, 8), (900, 5, 9), (9_000, 17, 20)] {
            let x = default_rng(rows as u64).normal(1.0, 1.0, &[rows, columns]).execute().unwrap();
            let weight = default_rng(1).random(&[rows]).execute().unwrap();
            for options in [FitOptions::new(), FitOptions::new().sample_weight(&weight)] {
                let training = Training::unsupervised("Test", &x, &options).unwrap();
                let point = arr1(&vec![1.0; columns]);
                let lloyd = Lloyd::new(&training, &point);
                let centers = Array2::from_shape_fn((count, columns), |(i, j)| {
                    ((i * 7 + j * 3) % 11) as f64 * 0.2 - 1.0
                });
                let (found, other) =
                    (lloyd.clusters(&centers).unwrap(), lloyd.clusters_by_products(&centers));
                let (sums, weights) = other.unwrap();
                let far = |a: f64, b: &f64| 1e-9 < (a - b).abs();
                assert!(!found.0.iter().zip(&sums).any(|(a, b)| far(*a, b)), "{rows} by {columns}");
                assert!(!found.1.iter().zip(&weights).any(|(a, b)| far(*a, b)), "{rows} by {columns}");
                // Distances to the nearest, by the plain formula.
                let between = (x.expand_dims(1) - (tensor(&centers) + 1.0)).square().sum(2).min(1);
                let between =
                    training.weight.as_ref().map_or_else(|| between.clone(), |weight| &between * weight);
                let distances = [&lloyd.potential(&centers), &between].map(|of| of.to_vec::<f64>().unwrap());
                assert!(!distances[0].iter().zip(&distances[1]).any(|(a, b)| far(*a, b)), "{rows}");
                let inertia = lloyd.inertia(&centers).unwrap();
                assert!((inertia / distances[1].iter().sum::<f64>() - 1.0).abs() < 1e-12, "{inertia}");
            }
        }
    }

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
