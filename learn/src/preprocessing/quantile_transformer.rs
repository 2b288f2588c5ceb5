//! Features as their ranks: uniform or normal.

use super::robust_scaler::normal_quantile;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check_count;
use crate::checks::{Nan, Training, checked_for, in_dtype_of};
use crate::dense::tensor;
use crate::params::{parameters, words};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::{Array1, Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::statistics::Beyond;
use tharsis_numeric::{Result, Tensor, special, stack, where_};

/// Distance from 0 and 1 within which a share counts as one of them, for normal features.
const BOUNDS_THRESHOLD: f64 = 1e-7;

/// The distribution that features get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputDistribution {
    /// From 0 to 1, all equally likely.
    #[default]
    Uniform,
    /// Around 0, with variance 1.
    Normal,
}

/// scikit-learn's `QuantileTransformer`: the share of the samples below a number, for each feature.
///
/// Quantiles are of all samples, where scikit-learn draws 10 000 of them. NaN counts as missing.
///
/// ```
/// use tharsis_learn::preprocessing::QuantileTransformer;
/// use tharsis_numeric::array;
/// let x = array([1.0, 10.0, 1000.0]).reshape(&[3, 1]);
/// let model = QuantileTransformer::new().n_quantiles(3).fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct QuantileTransformer {
    n_quantiles: usize,
    output_distribution: OutputDistribution,
}

/// A fitted [`QuantileTransformer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedQuantileTransformer {
    /// scikit-learn's `quantiles_`; (`n_quantiles_`, d).
    pub quantiles: Array2<f64>,
    /// scikit-learn's `references_`: the shares of the quantiles; (`n_quantiles_`,).
    pub references: Array1<f64>,
    output_distribution: OutputDistribution,
}

words!(
    OutputDistribution,
    ["uniform" => OutputDistribution::Uniform, "normal" => OutputDistribution::Normal]
);
parameters!(
    QuantileTransformer,
    "QuantileTransformer",
    ["n_quantiles" => n_quantiles >= 1, "output_distribution" => output_distribution]
);

impl Default for QuantileTransformer {
    fn default() -> QuantileTransformer {
        QuantileTransformer { n_quantiles: 1000, output_distribution: OutputDistribution::Uniform }
    }
}

impl QuantileTransformer {
    /// An estimator with scikit-learn's defaults: 1000 quantiles, uniform features.
    pub fn new() -> QuantileTransformer {
        QuantileTransformer::default()
    }

    /// scikit-learn's `n_quantiles`: quantiles that are kept; at most the number of samples.
    pub fn n_quantiles(self, n_quantiles: usize) -> QuantileTransformer {
        QuantileTransformer { n_quantiles, ..self }
    }

    /// scikit-learn's `output_distribution`: the distribution that features get.
    pub fn output_distribution(self, output_distribution: OutputDistribution) -> QuantileTransformer {
        QuantileTransformer { output_distribution, ..self }
    }

    /// Fits the transformer on samples (n, d), of any real dtype. One sort of each column, by chunks.
    ///
    /// # Errors
    /// `ValueError` for no quantiles, samples of other than two axes, without rows or features, complex or
    /// infinite; `TypeError` for weights; `MemoryError` for more quantiles than the memory holds; errors of
    /// the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedQuantileTransformer> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for QuantileTransformer {
    type Fitted = FittedQuantileTransformer;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedQuantileTransformer> {
        check_count("QuantileTransformer", "n_quantiles", self.n_quantiles, 1)?;
        let training = Training::unsupervised("QuantileTransformer", x, options)?.without_weights()?;
        let count = self.n_quantiles.min(training.rows);
        training.check_held(count, training.columns)?;
        let mut references: Array1<f64> = Array1::linspace(0.0, 1.0, count);
        // As in NumPy, the last one is the end itself, and no product with rounding.
        if 1 < count {
            references[count - 1] = 1.0;
        }
        let shares: Vec<f64> = references.to_vec();
        let quantiles = training.x.nanquantile(&shares[..], 0, Method::Linear);
        let states = training.engine.run(&[&quantiles, &training.x.isinf().any(..)])?;
        let [quantiles, infinite] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        if infinite.sum() != 0.0 {
            training.explain_not_finite(Nan::Missing)?;
        }
        let (quantiles, output_distribution) = (matrix(quantiles)?, self.output_distribution);
        Ok(FittedQuantileTransformer { quantiles, references, output_distribution })
    }
}

impl FittedQuantileTransformer {
    /// Samples (n, d) as shares, or as normal features; floats keep their dtype. The expression has a part
    /// for each feature. Carries a `ValueError` for another number of features; when run for infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.by_columns(x, |samples, quantiles| self.shares(samples, quantiles))
    }

    /// The samples that [`transform`](FittedQuantileTransformer::transform) maps to these.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.by_columns(x, |shares, quantiles| self.samples(shares, quantiles))
    }

    #[track_caller]
    fn by_columns(&self, x: &Tensor, map: impl Fn(&Tensor, ArrayView1<'_, f64>) -> Tensor) -> Tensor {
        let samples = match checked_for("QuantileTransformer", x, self.quantiles.ncols(), Nan::Missing) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let columns: Vec<Tensor> = self
            .quantiles
            .columns()
            .into_iter()
            .enumerate()
            .map(|(at, quantiles)| map(&samples.get(&[(..).into(), (at as i64).into()]), quantiles))
            .collect();
        in_dtype_of(x, stack(&columns.iter().collect::<Vec<_>>(), 1))
    }

    /// The shares of the numbers of a feature; (n,).
    #[track_caller]
    fn shares(&self, numbers: &Tensor, quantiles: ArrayView1<'_, f64>) -> Tensor {
        let is_normal = self.output_distribution == OutputDistribution::Normal;
        let (least, most) = (quantiles[0], quantiles[quantiles.len() - 1]);
        let references = tensor(&self.references);
        let backwards =
            |array: ArrayView1<'_, f64>| tensor(&array.iter().rev().map(|x| -x).collect::<Array1<f64>>());
        // Equal quantiles have several shares: the mean of the first and the last one.
        let up = numbers.interp(&tensor(&quantiles.to_owned()), &references, Beyond::default());
        let down = numbers.negative().interp(
            &backwards(quantiles),
            &backwards(self.references.view()),
            Beyond::default(),
        );
        let shares = (up - down) * 0.5;
        let (is_least, is_most) = if is_normal {
            let threshold = BOUNDS_THRESHOLD;
            ((numbers - threshold).less(least), (numbers + threshold).greater(most))
        } else {
            (numbers.equal(least), numbers.equal(most))
        };
        let shares = where_(&is_least, 0.0, where_(&is_most, 1.0, shares));
        if !is_normal {
            return shares;
        }
        // NaN is no share that is less or more than a bound.
        let low = BOUNDS_THRESHOLD - f64::EPSILON;
        normal_quantile(&shares.clip(low, 1.0 - low))
    }

    /// The numbers of a feature that have these shares; (n,).
    #[track_caller]
    fn samples(&self, shares: &Tensor, quantiles: ArrayView1<'_, f64>) -> Tensor {
        let (least, most) = (quantiles[0], quantiles[quantiles.len() - 1]);
        let (shares, is_least, is_most) = match self.output_distribution {
            OutputDistribution::Uniform => (shares.clone(), shares.equal(0.0), shares.equal(1.0)),
            OutputDistribution::Normal => {
                let shares = special::erfc(&(shares * -FRAC_1_SQRT_2)) * 0.5;
                let (low, high) =
                    ((&shares - BOUNDS_THRESHOLD).less(0.0), (&shares + BOUNDS_THRESHOLD).greater(1.0));
                (shares, low, high)
            }
        };
        let numbers =
            shares.interp(&tensor(&self.references), &tensor(&quantiles.to_owned()), Beyond::default());
        where_(&is_least, least, where_(&is_most, most, numbers))
    }
}

saved!(FittedQuantileTransformer, "QuantileTransformer", |model| {
    !model.quantiles.is_empty() && model.quantiles.nrows() == model.references.len()
});

impl Transform for FittedQuantileTransformer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedQuantileTransformer::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.quantiles.ncols())
    }
}

impl fmt::Display for FittedQuantileTransformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, columns) = self.quantiles.dim();
        write!(f, "QuantileTransformer of {columns} features, {count} quantiles")?;
        show::line(f, "least", self.quantiles.row(0))?;
        show::line(f, "most", self.quantiles.row(count - 1))
    }
}
