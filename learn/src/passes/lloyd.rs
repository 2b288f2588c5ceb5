//! Sums of the samples that are nearest to each centre, by one plan.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::passes::chunks::in_fixed_chunks;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis};
use tharsis_numeric::{Axes, DType, Result, Tensor, arange};

/// The samples of a clustering. Distances are by |x|² - 2 x c + |c|², so the samples are to lie around zero.
pub(crate) struct Lloyd<'a> {
    training: &'a Training,
    /// (n, d), around zero.
    x: &'a Tensor,
    /// The squares of the lengths of the samples; (n, 1).
    squares: Tensor,
}

/// The clusters around some centres.
pub(crate) struct Clusters {
    /// The weighted sums of the samples of each cluster; (k, d).
    pub(crate) sums: Array2<f64>,
    /// The sums of their weights; (k,).
    pub(crate) weights: Array1<f64>,
    /// The weighted sum of squared distances to the nearest centre.
    pub(crate) inertia: f64,
}

impl<'a> Lloyd<'a> {
    pub(crate) fn new(training: &'a Training, x: &'a Tensor) -> Lloyd<'a> {
        let squares = x.square().sum(Axes::from(1).keepdims());
        Lloyd { training, x, squares }
    }

    /// The clusters around these centres (k, d). One pass.
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; errors of the pass.
    #[track_caller]
    pub(crate) fn around(&self, centers: &Array2<f64>) -> Result<Clusters> {
        let distances = relative_distances(self.x, centers);
        let nearest = distances.argmin(1);
        let clusters = arange(centers.nrows());
        let member = nearest.expand_dims(1).equal(&clusters).astype(DType::F64);
        let least = (distances.min(1) + self.squares.squeeze(Some(&[1]))).maximum(0.0);
        let (member, least) = match &self.training.weight {
            None => (member, least),
            Some(weight) => (member * weight.expand_dims(1), least * weight),
        };
        let sums = member.t().matmul(self.x);
        let states = self.training.engine.run(&[&sums, &member.sum(0), &least.sum(..)])?;
        if !all_finite(&states) {
            self.training.explain_not_finite(Nan::Refused)?;
        }
        let [sums, weights, inertia] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        Ok(Clusters { sums: matrix(sums)?, weights: vector(weights)?, inertia: inertia.sum() })
    }

    /// The squared distance of each sample to the nearest of these centres, times its weight, as an
    /// expression; (n,).
    #[track_caller]
    pub(crate) fn potential(&self, centers: &Array2<f64>) -> Tensor {
        let least = relative_distances(self.x, centers).min(1) + self.squares.squeeze(Some(&[1]));
        match &self.training.weight {
            None => least.maximum(0.0),
            Some(weight) => least.maximum(0.0) * weight,
        }
    }

    /// The samples that are farthest from their centres, farthest first, with the numbers of their clusters
    /// and their weights: new centres for clusters without samples.
    ///
    /// # Errors
    /// `ValueError` if there are fewer samples; errors of the pass.
    #[track_caller]
    pub(crate) fn farthest(&self, centers: &Array2<f64>, count: usize) -> Result<Vec<Far>> {
        let distances = relative_distances(self.x, centers);
        let least = (distances.min(1) + self.squares.squeeze(Some(&[1]))).maximum(0.0);
        let chosen = least.argsort_descending(0).get(&[(..count as i64).into()]);
        let (rows, cluster) = (self.x.take_at(&chosen, 0), distances.argmin(1).take_at(&chosen, 0));
        let mut wanted = vec![rows, cluster];
        wanted.extend(self.training.weight.as_ref().map(|weight| weight.take_at(&chosen, 0)));
        let mut states = self.training.engine.run(&wanted.iter().collect::<Vec<_>>())?.into_iter();
        let rows = matrix(states.next().ok_or_else(lost)?)?;
        let clusters = vector(states.next().ok_or_else(lost)?)?;
        let weights = states.next().map_or_else(|| Ok(Array1::ones(rows.nrows())), vector)?;
        if rows.nrows() < count {
            return Err(refused("there are fewer samples than clusters"));
        }
        let far = rows.axis_iter(Axis(0)).zip(&clusters).zip(&weights);
        Ok(far
            .map(|((row, &cluster), &weight)| Far { row: row.to_owned(), cluster: cluster as usize, weight })
            .collect())
    }
}

/// A sample far from its centre.
pub(crate) struct Far {
    pub(crate) row: Array1<f64>,
    pub(crate) cluster: usize,
    pub(crate) weight: f64,
}

/// The squared distances to each centre, less the squared length of the sample; (n, d) to (n, k).
#[track_caller]
pub(crate) fn relative_distances(x: &Tensor, centers: &Array2<f64>) -> Tensor {
    let squares = centers.map_axis(Axis(1), |center| center.dot(&center));
    let distances = x.matmul(&tensor(&centers.mapv(|part| -2.0 * part)).t()) + tensor(&squares);
    in_fixed_chunks(&distances, centers.nrows())
}
