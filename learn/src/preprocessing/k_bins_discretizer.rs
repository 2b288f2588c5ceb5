//! Numbers as bins.

use super::categories::{column, indicators};
use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check;
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::cluster::KMeans;
use crate::dense::tensor;
use crate::metrics::regression::{Neighbours, weighted_quantiles};
use crate::params::{Parameter, parameters, words};
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use crate::score::check_some_weight;
use crate::show;
use crate::states::{all_finite, lost};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{DType, Result, Tensor, concatenate, stack, where_};

/// Distance of edges that make a bin.
const WIDTH_MIN: f64 = 1e-8;

/// Most bins of a feature. They are kept in memory.
const BINS_MAX: usize = 1 << 20;

/// The numbers that are made of bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BinEncoding {
    /// A column for each bin, 1 where a sample is in it. As [`OnehotDense`](BinEncoding::OnehotDense).
    #[default]
    Onehot,
    /// A column for each bin, 1 where a sample is in it.
    OnehotDense,
    /// The number of the bin.
    Ordinal,
}

words!(
    BinEncoding,
    [
        "onehot" => BinEncoding::Onehot, "onehot-dense" => BinEncoding::OnehotDense,
        "ordinal" => BinEncoding::Ordinal
    ]
);

/// The choice of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BinStrategy {
    /// The middles between the centres of clusters.
    KMeans,
    /// As many samples in each bin.
    #[default]
    Quantile,
    /// Bins of the same width.
    Uniform,
}

words!(
    BinStrategy,
    [
        "uniform" => BinStrategy::Uniform, "quantile" => BinStrategy::Quantile, "kmeans" => BinStrategy::KMeans
    ]
);

words!(
    Method,
    [
        "averaged_inverted_cdf" => Method::AveragedInvertedCdf,
        "closest_observation" => Method::ClosestObservation, "hazen" => Method::Hazen,
        "interpolated_inverted_cdf" => Method::InterpolatedInvertedCdf, "inverted_cdf" => Method::InvertedCdf,
        "linear" => Method::Linear, "median_unbiased" => Method::MedianUnbiased,
        "normal_unbiased" => Method::NormalUnbiased, "weibull" => Method::Weibull
    ]
);

/// The number of bins of all features, or of each.
#[derive(Clone, Debug, PartialEq)]
pub struct BinCounts(Vec<f64>);

impl From<usize> for BinCounts {
    fn from(count: usize) -> BinCounts {
        BinCounts(vec![count as f64])
    }
}

impl From<&[usize]> for BinCounts {
    fn from(counts: &[usize]) -> BinCounts {
        BinCounts(counts.iter().map(|&count| count as f64).collect())
    }
}

impl Parameter for BinCounts {
    fn words(_: usize) -> String {
        "an int in the range [2, inf) or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<BinCounts> {
        usize::of(value).map(BinCounts::from).or_else(|| Vec::of(value).map(BinCounts))
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<BinCounts>> {
        match usize::of(value) {
            Some(count) => Ok(Some(BinCounts::from(count))),
            None => Ok(Vec::read(value)?.map(BinCounts)),
        }
    }

    fn setting(&self) -> Setting {
        match self.0[..] {
            [count] => Setting::Integer(count as i64),
            _ => Setting::Numbers(self.0.clone()),
        }
    }
}

/// scikit-learn's `KBinsDiscretizer`: the bin of each number.
///
/// All samples tell the edges, where scikit-learn draws 200 000 of them.
///
/// ```
/// use tharsis_learn::preprocessing::{BinEncoding, KBinsDiscretizer};
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 10.0]).reshape(&[4, 1]);
/// let model = KBinsDiscretizer::new().n_bins(2).encode(BinEncoding::Ordinal).fit(&x, ..)?;
/// assert_eq!(model.bin_edges[0].to_vec(), [0.0, 1.5, 10.0]);
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct KBinsDiscretizer {
    n_bins: BinCounts,
    encode: BinEncoding,
    strategy: BinStrategy,
    quantile_method: Method,
}

/// A fitted [`KBinsDiscretizer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKBinsDiscretizer {
    /// scikit-learn's `bin_edges_`: the edges of the bins of each feature. A constant feature has a single
    /// bin, without ends.
    pub bin_edges: Vec<Array1<f64>>,
    encode: BinEncoding,
}

parameters!(
    KBinsDiscretizer,
    "KBinsDiscretizer",
    [
        "n_bins" => n_bins >= 2, "encode" => encode, "strategy" => strategy,
        "quantile_method" => quantile_method
    ]
);

impl Default for KBinsDiscretizer {
    fn default() -> KBinsDiscretizer {
        KBinsDiscretizer {
            n_bins: BinCounts::from(5),
            encode: BinEncoding::Onehot,
            strategy: BinStrategy::Quantile,
            quantile_method: Method::AveragedInvertedCdf,
        }
    }
}

impl KBinsDiscretizer {
    /// An estimator with scikit-learn's defaults: five bins of as many samples, a column for each.
    pub fn new() -> KBinsDiscretizer {
        KBinsDiscretizer::default()
    }

    /// scikit-learn's `n_bins`: the number of bins of all features, or of each.
    pub fn n_bins(self, n_bins: impl Into<BinCounts>) -> KBinsDiscretizer {
        KBinsDiscretizer { n_bins: n_bins.into(), ..self }
    }

    /// scikit-learn's `encode`: the numbers that are made of bins.
    pub fn encode(self, encode: BinEncoding) -> KBinsDiscretizer {
        KBinsDiscretizer { encode, ..self }
    }

    /// scikit-learn's `strategy`: the choice of edges.
    pub fn strategy(self, strategy: BinStrategy) -> KBinsDiscretizer {
        KBinsDiscretizer { strategy, ..self }
    }

    /// scikit-learn's `quantile_method`: the place of quantiles between samples. Weights need
    /// `averaged_inverted_cdf` or `inverted_cdf`.
    pub fn quantile_method(self, quantile_method: Method) -> KBinsDiscretizer {
        KBinsDiscretizer { quantile_method, ..self }
    }

    /// Fits the bins of samples (n, d), of any real dtype. A pass, and for quantiles a sort of each column,
    /// for clusters the passes of a [`KMeans`] of each.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite, weights that are negative or all zero, and columns of bins of a
    /// feature that has none; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedKBinsDiscretizer> {
        self.fit_any(x, None, &options.into())
    }

    /// The number of bins of each feature.
    #[track_caller]
    fn counts(&self, columns: usize) -> Result<Vec<usize>> {
        let is_sound = |count: &f64| 2.0 <= *count && count.fract() == 0.0 && *count <= BINS_MAX as f64;
        let counts = match self.n_bins.0[..] {
            [count] => {
                let wanted = BinCounts::words(0);
                check("KBinsDiscretizer", "n_bins", is_sound(&count), &wanted, count)?;
                vec![count; columns]
            }
            _ if self.n_bins.0.len() == columns => self.n_bins.0.clone(),
            _ => return Err(refused("n_bins must be a scalar or array of shape (n_features,).")),
        };
        let wrong: Vec<String> =
            (0..columns).filter(|at| !is_sound(&counts[*at])).map(|at| at.to_string()).collect();
        if wrong.is_empty() {
            return Ok(counts.into_iter().map(|count| count as usize).collect());
        }
        Err(refused(format!(
            "KBinsDiscretizer received an invalid number of bins at indices {}. Number of bins must be at least \
             2, and must be an int.",
            wrong.join(", ")
        )))
    }

    /// The ends of each feature, of samples with weight. One pass.
    #[track_caller]
    fn ends(training: &Training) -> Result<Vec<(f64, f64)>> {
        let (least, most) = match &training.weight {
            None => (training.x.clone(), training.x.clone()),
            Some(weight) => {
                let counts = weight.equal(0.0).logical_not().expand_dims(1);
                let or = |other: f64| where_(&counts, &training.x, other);
                (or(f64::INFINITY), or(f64::NEG_INFINITY))
            }
        };
        let all = training.weight.as_ref().map_or_else(|| Tensor::number(1.0), |weight| weight.sum(..));
        let is_finite = training.x.isfinite().all(..);
        let states = training.engine.run(&[&least.min(0), &most.max(0), &all, &is_finite])?;
        let [least, most, all, is_finite] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
        if is_finite.sum() == 0.0 || !all_finite([&all]) {
            return Err(training.not_finite(Nan::Refused));
        }
        check_some_weight(all.sum())?;
        Ok(least.into_iter().zip(most).collect())
    }

    /// The quantiles of each feature at so many even places. One plan.
    #[track_caller]
    fn quantiles(&self, training: &Training, counts: &[usize]) -> Result<Vec<Array1<f64>>> {
        let mut wanted = Vec::new();
        for (at, &count) in counts.iter().enumerate() {
            // In percent first, as in scikit-learn: shares that differ by a rounding are other samples.
            let step = 100.0 / count as f64;
            let mut shares: Vec<f64> = (0..=count).map(|place| place as f64 * step / 100.0).collect();
            shares[count] = 1.0;
            let numbers = column(&training.x, at);
            let Some(weight) = &training.weight else {
                wanted.push(numbers.quantile(&shares[..], 0, self.quantile_method));
                continue;
            };
            let neighbours = match self.quantile_method {
                Method::InvertedCdf => Neighbours::Lower,
                Method::AveragedInvertedCdf => Neighbours::Mean,
                other => {
                    let method = other.setting();
                    return Err(refused(format!(
                        "When fitting with strategy='quantile' and sample weights, quantile_method should either be \
                         set to 'averaged_inverted_cdf' or 'inverted_cdf', got quantile_method={method} instead."
                    )));
                }
            };
            let found = weighted_quantiles(&numbers.expand_dims(1), weight, &shares, neighbours)?;
            wanted.push(concatenate(&found.iter().collect::<Vec<_>>(), 0));
        }
        let states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        Ok(states.into_iter().map(|state| state.into_iter().collect()).collect())
    }
}

/// Edges of bins of the same width, as NumPy's `linspace` has them.
fn even((least, most): (f64, f64), count: usize) -> Array1<f64> {
    let step = (most - least) / count as f64;
    let mut edges: Array1<f64> = (0..=count).map(|place| least + place as f64 * step).collect();
    edges[count] = most;
    edges
}

/// The middles between neighbours.
fn middles(edges: &[f64]) -> Vec<f64> {
    edges.windows(2).map(|pair| (pair[0] + pair[1]) * 0.5).collect()
}

/// Edges by the clusters of a feature.
#[track_caller]
fn by_clusters(
    numbers: &Tensor,
    ends: (f64, f64),
    count: usize,
    options: &FitOptions,
) -> Result<Array1<f64>> {
    let init = middles(&even(ends, count).to_vec());
    let init = Tensor::from_elements(&[count, 1], &init);
    let clusters =
        KMeans::new().n_clusters(count).init(&init).n_init(1).fit(&numbers.expand_dims(1), options)?;
    let mut centers: Vec<f64> = clusters.cluster_centers.into_iter().collect();
    centers.sort_by(f64::total_cmp);
    Ok([ends.0].into_iter().chain(middles(&centers)).chain([ends.1]).collect())
}

/// The edges that are farther than rounding from those before.
fn apart(edges: &Array1<f64>) -> Array1<f64> {
    let mut kept = Vec::with_capacity(edges.len());
    let mut last = f64::NEG_INFINITY;
    for &edge in edges {
        if WIDTH_MIN < edge - last {
            kept.push(edge);
        }
        last = edge;
    }
    kept.into()
}

impl Estimator for KBinsDiscretizer {
    type Fitted = FittedKBinsDiscretizer;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedKBinsDiscretizer> {
        if self.quantile_method.setting().to_string() == "None" {
            let wanted = format!("a str among {}", "{'averaged_inverted_cdf', .., 'weibull'}");
            check(
                "KBinsDiscretizer",
                "quantile_method",
                false,
                &wanted,
                format!("{:?}", self.quantile_method),
            )?;
        }
        let training = Training::unsupervised("KBinsDiscretizer", x, options)?;
        let counts = self.counts(training.columns)?;
        let ends = KBinsDiscretizer::ends(&training)?;
        let mut found = match self.strategy {
            BinStrategy::Quantile => self.quantiles(&training, &counts)?,
            BinStrategy::KMeans | BinStrategy::Uniform => Vec::new(),
        };
        let mut bin_edges = Vec::with_capacity(counts.len());
        for (at, (&count, &ends)) in counts.iter().zip(&ends).enumerate() {
            if ends.0 == ends.1 {
                bin_edges.push(Array1::from(vec![f64::NEG_INFINITY, f64::INFINITY]));
                continue;
            }
            bin_edges.push(match self.strategy {
                BinStrategy::Uniform => even(ends, count),
                BinStrategy::Quantile => apart(&std::mem::take(&mut found[at])),
                BinStrategy::KMeans => apart(&by_clusters(&column(&training.x, at), ends, count, options)?),
            });
        }
        // Columns of no bins are no feature: scikit-learn cannot fit them either.
        let without = bin_edges.iter().position(|edges| edges.len() < 2);
        if let (Some(at), false) = (without, self.encode == BinEncoding::Ordinal) {
            return Err(refused(format!("feature {at} has no bin: its numbers are within {WIDTH_MIN:?}")));
        }
        Ok(FittedKBinsDiscretizer { bin_edges, encode: self.encode })
    }
}

impl FittedKBinsDiscretizer {
    /// scikit-learn's `n_bins_`: the number of bins of each feature; (d,).
    #[must_use]
    pub fn n_bins(&self) -> Vec<usize> {
        self.bin_edges.iter().map(|edges| edges.len() - 1).collect()
    }

    /// The bins of samples (n, d), as an expression: zeros and ones (n, bins), or numbers of bins (n, d).
    /// Floats keep their dtype. Carries a `ValueError` for another number of features; when run for infinity
    /// and NaN.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("KBinsDiscretizer", x, self.bin_edges.len()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let bins = self.bin_edges.iter().enumerate().map(|(at, edges)| {
            let numbers = column(&samples, at);
            match edges.as_slice().unwrap_or(&[]) {
                [_, inner @ .., _] if !inner.is_empty() => {
                    Tensor::from_elements(&[inner.len()], inner).searchsorted_right(&numbers)
                }
                _ => numbers.isnan().logical_and(false).astype(DType::I64),
            }
        });
        let bins: Vec<Tensor> = bins.collect();
        if self.encode == BinEncoding::Ordinal {
            let made = stack(&bins.iter().collect::<Vec<_>>(), 1).astype(DType::F64);
            return in_dtype_of(x, made);
        }
        let widths = self.n_bins();
        let blocks: Vec<Tensor> =
            bins.iter().zip(&widths).map(|(bins, width)| indicators(bins, *width)).collect();
        let made = concatenate(&blocks.iter().collect::<Vec<_>>(), 1);
        in_dtype_of(x, in_fixed_chunks(&made, widths.iter().sum()))
    }

    /// The middles of the bins that [`transform`](FittedKBinsDiscretizer::transform) has made, as an
    /// expression; (n, d), NaN for a constant feature. Carries a `ValueError` for another number of columns;
    /// an `IndexError` when run for a number of no bin.
    #[track_caller]
    pub fn inverse_transform(&self, made: &Tensor) -> Tensor {
        let widths = self.n_bins();
        let is_ordinal = self.encode == BinEncoding::Ordinal;
        let columns = if is_ordinal { widths.len() } else { widths.iter().sum() };
        let made = match samples_for("KBinsDiscretizer", made, columns) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        let mut first = 0;
        let parts = self.bin_edges.iter().zip(&widths).enumerate().map(|(at, (edges, width))| {
            let bins = if is_ordinal {
                column(&made, at).trunc().astype(DType::I64)
            } else {
                let block = made.get(&[(..).into(), (first..first + *width as i64).into()]);
                first += *width as i64;
                block.argmax(1)
            };
            let middles: Array1<f64> = middles(&edges.to_vec()).into();
            tensor(&middles).take_at(&bins, 0)
        });
        stack(&parts.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 1)
    }
}

saved!(FittedKBinsDiscretizer, "KBinsDiscretizer", |model| {
    !model.bin_edges.is_empty() && model.bin_edges.iter().all(|edges| !edges.is_empty())
});

impl Transform for FittedKBinsDiscretizer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedKBinsDiscretizer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let own = crate::feature_names::same(names, self.bin_edges.len())?;
        if self.encode == BinEncoding::Ordinal {
            return Some(own);
        }
        let of = |(name, bins)| (0..bins).map(move |bin: usize| format!("{name}_{bin}.0"));
        Some(own.iter().zip(self.n_bins()).flat_map(of).collect())
    }
}

impl fmt::Display for FittedKBinsDiscretizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KBinsDiscretizer of {} features", self.bin_edges.len())?;
        for (at, edges) in self.bin_edges.iter().enumerate() {
            show::line(f, &format!("bin_edges[{at}]"), edges)?;
        }
        Ok(())
    }
}
