//! Covariances of the components of a mixture, in their four forms.

use crate::dense::{cholesky, tensor};
use crate::params::words;
use crate::passes::in_fixed_chunks;
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use tharsis_numeric::{Axes, Result, Tensor};

/// scikit-learn's `covariance_type`: how components may spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CovarianceType {
    /// A covariance for each component; (k, d, d).
    #[default]
    Full,
    /// One for all; (d, d).
    Tied,
    /// A variance of each feature for each component; (k, d).
    Diag,
    /// One variance for each component; (k,).
    Spherical,
}

words!(
    CovarianceType,
    [
        "full" => CovarianceType::Full, "tied" => CovarianceType::Tied, "diag" => CovarianceType::Diag,
        "spherical" => CovarianceType::Spherical
    ]
);

impl CovarianceType {
    /// The shape of the covariances of k components and d features.
    pub(super) fn shape(self, components: usize, features: usize) -> Vec<usize> {
        match self {
            CovarianceType::Full => vec![components, features, features],
            CovarianceType::Tied => vec![features, features],
            CovarianceType::Diag => vec![components, features],
            CovarianceType::Spherical => vec![components],
        }
    }

    /// Whether features vary together.
    pub(super) fn is_square(self) -> bool {
        matches!(self, CovarianceType::Full | CovarianceType::Tied)
    }

    /// Free parameters of the covariances.
    pub(super) fn parameters(self, components: usize, features: usize) -> usize {
        let square = features * (features + 1) / 2;
        match self {
            CovarianceType::Full => components * square,
            CovarianceType::Tied => square,
            CovarianceType::Diag => components * features,
            CovarianceType::Spherical => components,
        }
    }

    /// The sums of a pass for a component: products or squares of features around a mean, (d, d) or (1, d),
    /// of samples around it (n, d) with their shares (n, 1).
    #[track_caller]
    pub(super) fn scatter(self, around: &Tensor, share: &Tensor) -> Tensor {
        if self.is_square() {
            let rooted = around * share.sqrt();
            return rooted.t().matmul(&rooted);
        }
        (around.square() * share).sum(Axes::from(0).keepdims())
    }

    /// The covariances of components, from these sums around their means, the sums of their shares, and what
    /// is added to variances.
    pub(super) fn covariances(
        self,
        scatters: &[Array2<f64>],
        counts: &Array1<f64>,
        reg_covar: f64,
    ) -> ArrayD<f64> {
        let of_each = scatters.iter().zip(counts).map(|(scatter, &count)| scatter / count);
        let regular = |mut covariance: Array2<f64>| {
            covariance.diag_mut().mapv_inplace(|variance| variance + reg_covar);
            covariance
        };
        match self {
            CovarianceType::Full => {
                let all: Vec<Array2<f64>> = of_each.map(regular).collect();
                stacked(&all).into_dyn()
            }
            CovarianceType::Tied => {
                let mut all = Array2::zeros(scatters.first().map_or((0, 0), Array2::dim));
                scatters.iter().for_each(|scatter| all += scatter);
                regular(all / counts.sum()).into_dyn()
            }
            CovarianceType::Diag => {
                let all: Vec<Array1<f64>> = of_each.map(|row| row.row(0).mapv(|v| v + reg_covar)).collect();
                Array2::from_shape_fn((all.len(), all.first().map_or(0, Array1::len)), |(k, j)| all[k][j])
                    .into_dyn()
            }
            CovarianceType::Spherical => {
                let mean = |row: Array2<f64>| row.sum() / row.len() as f64 + reg_covar;
                of_each.map(mean).collect::<Array1<f64>>().into_dyn()
            }
        }
    }

    /// The roots of the inverses of covariances, or of the reciprocals of variances; `None` if one is not
    /// positive.
    #[track_caller]
    pub(super) fn roots(self, covariances: &ArrayD<f64>) -> Result<Option<Roots>> {
        let parts: Vec<Array2<f64>> = match self {
            CovarianceType::Full => covariances.outer_iter().map(|part| square(&part.to_owned())).collect(),
            CovarianceType::Tied => vec![square(covariances)],
            CovarianceType::Diag | CovarianceType::Spherical => {
                if covariances.iter().any(|&variance| variance.is_nan() || variance <= 0.0) {
                    return Ok(None);
                }
                let roots = covariances.mapv(|variance| 1.0 / variance.sqrt());
                return Ok(Some(Roots {
                    form: self,
                    of_precisions: roots,
                    of_covariances: covariances.mapv(f64::sqrt),
                }));
            }
        };
        let (mut inverse, mut lower) = (Vec::new(), Vec::new());
        for part in &parts {
            let Some((root, of_inverse)) = cholesky(part)? else { return Ok(None) };
            inverse.push(of_inverse.reversed_axes().as_standard_layout().into_owned());
            lower.push(root);
        }
        let shaped = |all: &[Array2<f64>]| match (self, all) {
            (CovarianceType::Tied, [only]) => only.clone().into_dyn(),
            _ => stacked(all).into_dyn(),
        };
        Ok(Some(Roots { form: self, of_precisions: shaped(&inverse), of_covariances: shaped(&lower) }))
    }
}

/// A part of covariances as a matrix.
fn square(part: &ArrayD<f64>) -> Array2<f64> {
    let extent = part.shape().first().copied().unwrap_or(0);
    Array2::from_shape_fn((extent, extent), |(row, column)| part[[row, column]])
}

/// Matrices of one shape one behind the other; (k, d, d).
fn stacked(all: &[Array2<f64>]) -> ndarray::Array3<f64> {
    let (rows, columns) = all.first().map_or((0, 0), Array2::dim);
    ndarray::Array3::from_shape_fn((all.len(), rows, columns), |(k, row, column)| all[k][[row, column]])
}

/// Roots of covariances and of their inverses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Roots {
    pub(super) form: CovarianceType,
    /// scikit-learn's `precisions_cholesky_`: U with the inverse U Uᵀ, or the reciprocal of the deviation.
    pub(super) of_precisions: ArrayD<f64>,
    /// L with the covariance L Lᵀ, or the deviation.
    of_covariances: ArrayD<f64>,
}

impl Roots {
    /// Those of precisions that were given; `None` if one is not positive.
    #[track_caller]
    pub(super) fn of_precisions(form: CovarianceType, precisions: &ArrayD<f64>) -> Result<Option<Roots>> {
        // The covariances are the inverses, as the inverses of those are the precisions.
        let Some(roots) = form.roots(precisions)? else { return Ok(None) };
        let covariances = roots.precisions();
        form.roots(&covariances)
    }

    /// Whether the shapes are those of k components and d features.
    pub(super) fn is_sound(&self, components: usize, features: usize) -> bool {
        let shape = self.form.shape(components, features);
        self.of_precisions.shape() == shape && self.of_covariances.shape() == shape
    }

    fn part(&self, roots: &ArrayD<f64>, component: usize) -> ArrayD<f64> {
        match self.form {
            CovarianceType::Tied => roots.clone(),
            _ => roots.index_axis(Axis(0), component).to_owned(),
        }
    }

    /// The inverses of the covariances, in the same form.
    pub(super) fn precisions(&self) -> ArrayD<f64> {
        let of = |root: ArrayD<f64>| {
            let root = square(&root);
            root.dot(&root.t())
        };
        match self.form {
            CovarianceType::Full => {
                let all: Vec<Array2<f64>> =
                    self.of_precisions.outer_iter().map(|root| of(root.to_owned())).collect();
                stacked(&all).into_dyn()
            }
            CovarianceType::Tied => of(self.of_precisions.clone()).into_dyn(),
            _ => self.of_precisions.mapv(|root| root * root),
        }
    }

    /// A sample of a component, from numbers of the normal distribution; (d,).
    pub(super) fn drawn(&self, component: usize, normal: &Array1<f64>) -> Array1<f64> {
        let root = self.part(&self.of_covariances, component);
        match self.form {
            CovarianceType::Full | CovarianceType::Tied => square(&root).dot(normal),
            _ => (root * normal).into_dimensionality().unwrap_or_else(|_| normal.clone()),
        }
    }

    /// The logarithms of the densities of samples (n, d) in components with these means, as an expression;
    /// (n, k).
    #[track_caller]
    pub(super) fn log_densities(&self, x: &Tensor, means: &Array2<f64>) -> Tensor {
        let (components, features) = means.dim();
        let columns: Vec<Tensor> = (0..components)
            .map(|component| {
                let around = x - tensor(&means.row(component).to_owned());
                let root = self.part(&self.of_precisions, component);
                let scaled = if self.form.is_square() {
                    in_fixed_chunks(&around.matmul(&tensor(&root)), features)
                } else {
                    around * tensor(&root)
                };
                scaled.square().sum(Axes::from(1).keepdims())
            })
            .collect();
        let distances = tharsis_numeric::concatenate(&columns.iter().collect::<Vec<_>>(), 1);
        let constants: Array1<f64> = (0..components)
            .map(|component| self.log_root(component, features) - 0.5 * features as f64 * (2.0 * PI).ln())
            .collect();
        in_fixed_chunks(&distances, components) * -0.5 + tensor(&constants)
    }

    /// The logarithm of the determinant of the root of the inverse.
    fn log_root(&self, component: usize, features: usize) -> f64 {
        let root = self.part(&self.of_precisions, component);
        match self.form {
            CovarianceType::Spherical => features as f64 * root.sum().ln(),
            CovarianceType::Diag => root.iter().map(|root| root.ln()).sum(),
            _ => square(&root).diag().iter().map(|root| root.ln()).sum(),
        }
    }
}
