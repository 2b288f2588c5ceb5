//! Clusters of points, and classes made of them.

use super::shapes::{Samples, places};
use crate::Result;
use crate::metrics::inputs::{shape_text, value_error};
use crate::metrics::options::defaults;
use tharsis_kernels::DType;
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Tensor, arange, concatenate, where_};

/// Centres of clusters.
#[derive(Clone, Debug)]
pub enum Centers {
    /// This many random ones.
    Count(usize),
    /// These; (clusters, features).
    Points(Tensor),
}

/// Options of [`make_blobs`].
#[derive(Clone, Debug)]
pub struct BlobsOptions {
    /// The number of features of random centres.
    pub n_features: usize,
    /// The centres of clusters.
    pub centers: Centers,
    /// The standard deviation of all clusters, or one for each.
    pub cluster_std: Vec<f64>,
    /// The range of coordinates of random centres.
    pub center_box: [f64; 2],
    /// Whether samples are in a random order; else they are so cluster by cluster.
    pub shuffle: bool,
    /// The seed.
    pub random_state: u64,
}

impl Default for BlobsOptions {
    fn default() -> BlobsOptions {
        BlobsOptions {
            n_features: 2,
            centers: Centers::Count(3),
            cluster_std: vec![1.0],
            center_box: [-10.0, 10.0],
            shuffle: true,
            random_state: 0,
        }
    }
}

/// Options of [`make_classification`].
#[derive(Clone, Debug)]
pub struct Classification {
    /// The number of features; those that are not informative, redundant or repeated are noise.
    pub n_features: usize,
    /// The number of features that tell classes apart.
    pub n_informative: usize,
    /// The number of features that are random combinations of informative ones.
    pub n_redundant: usize,
    /// The number of features that repeat informative and redundant ones.
    pub n_repeated: usize,
    /// The number of classes.
    pub n_classes: usize,
    /// The number of clusters of each class.
    pub n_clusters_per_class: usize,
    /// The share of each class, or of all but the last; equal ones if none are given.
    pub weights: Option<Vec<f64>>,
    /// The fraction of samples whose class is drawn at random.
    pub flip_y: f64,
    /// Factor of the distance of clusters.
    pub class_sep: f64,
    /// Whether clusters are on corners of a cube, and not of a random polytope.
    pub hypercube: bool,
    /// Added to each feature.
    pub shift: f64,
    /// Factor of each feature, after the shift.
    pub scale: f64,
    /// Whether samples and features are in a random order.
    pub shuffle: bool,
    /// The seed.
    pub random_state: u64,
}

impl Default for Classification {
    fn default() -> Classification {
        Classification {
            n_features: 20,
            n_informative: 2,
            n_redundant: 2,
            n_repeated: 0,
            n_classes: 2,
            n_clusters_per_class: 2,
            weights: None,
            flip_y: 0.01,
            class_sep: 1.0,
            hypercube: true,
            shift: 0.0,
            scale: 1.0,
            shuffle: true,
            random_state: 0,
        }
    }
}

defaults!(BlobsOptions, Classification);

/// Samples of normal clusters.
#[derive(Clone, Debug)]
pub struct Blobs {
    /// The samples; (n, features), float64.
    pub data: Tensor,
    /// The cluster of each; (n,), int64.
    pub target: Tensor,
    /// The centres of clusters; (clusters, features).
    pub centers: Tensor,
}

/// scikit-learn's `make_blobs`: normal clusters of (nearly) equal size; (n, features).
///
/// ```
/// use tharsis_learn::datasets::make_blobs;
/// let blobs = make_blobs(100, ..)?;
/// assert_eq!(blobs.data.shape()?, [100, 2]);
/// assert_eq!(blobs.target.bincount(None, 3).to_vec::<i64>()?, [34, 33, 33]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for no clusters, centres without two axes, negative deviations, and unless there is one
/// deviation or one for each cluster.
///
/// # Distributed
/// Nothing moves but the random order of clusters, which is made as by [`Tensor::argsort`].
#[track_caller]
pub fn make_blobs(n_samples: usize, options: impl Into<BlobsOptions>) -> Result<Blobs> {
    let BlobsOptions { n_features, centers, cluster_std, center_box, shuffle, random_state } = options.into();
    let generator = default_rng(random_state);
    let centers = match centers {
        Centers::Count(count) => generator.uniform(center_box[0], center_box[1], &[count, n_features]),
        Centers::Points(points) => points.astype(DType::F64),
    };
    let &[count, n_features] = centers.shape()? else {
        let shape = shape_text(centers.shape()?);
        return Err(value_error(format!(
            "Expected 2D array of centers, got an array of shape {shape} instead"
        )));
    };
    if count == 0 {
        return Err(value_error("There must be at least one center"));
    }
    if cluster_std.len() != 1 && cluster_std.len() != count {
        let text = format!(
            "Length of `clusters_std` not consistent with number of centers. Got centers of shape ({count}, {n_features}) and cluster_std = {cluster_std:?}"
        );
        return Err(value_error(text));
    }
    if cluster_std.iter().any(|&deviation| deviation.is_nan() || deviation < 0.0) {
        return Err(value_error(format!("cluster_std must not be negative, got {cluster_std:?}")));
    }
    let sizes: Vec<usize> =
        (0..count).map(|cluster| n_samples / count + usize::from(cluster < n_samples % count)).collect();
    let target = clusters(&sizes, &places(n_samples, shuffle, &generator));
    let deviations = Tensor::from_elements(&[cluster_std.len()], &cluster_std);
    let deviation = match cluster_std.len() {
        1 => deviations,
        _ => deviations.take_at(&target, 0).expand_dims(1),
    };
    let noise = generator.standard_normal(&[n_samples, n_features]).multiply(deviation);
    Ok(Blobs { data: centers.take_at(&target, 0).add(noise), target, centers })
}

/// The cluster of each place, where those of a cluster stand together.
fn clusters(sizes: &[usize], places: &Tensor) -> Tensor {
    let mut end = 0;
    let ends: Vec<i64> = sizes
        .iter()
        .map(|&size| {
            end += size as i64;
            end
        })
        .collect();
    Tensor::from_elements(&[ends.len()], &ends).searchsorted_right(places)
}

/// scikit-learn's `make_classification`: classes of normal clusters around corners of a cube, with features
/// that depend on one another and noise; (n, features). The design is that of I. Guyon for the NIPS 2003
/// challenge.
///
/// ```
/// use tharsis_learn::datasets::{Classification, make_classification};
/// let made = make_classification(100, Classification { flip_y: 0.0, ..Classification::default() })?;
/// assert_eq!(made.data.shape()?, [100, 20]);
/// assert_eq!(made.target.bincount(None, 2).to_vec::<i64>()?, [50, 50]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for more informative, redundant and repeated features than features, more clusters than
/// corners, and weights that do not fit.
///
/// # Distributed
/// As [`make_blobs`].
#[track_caller]
pub fn make_classification(n_samples: usize, options: impl Into<Classification>) -> Result<Samples> {
    let options = options.into();
    check(&options)?;
    let generator = default_rng(options.random_state);
    let sizes = options.sizes(n_samples)?;
    let cluster = clusters(&sizes, &places(n_samples, options.shuffle, &generator));
    let informative = options.informative(n_samples, &cluster, sizes.len(), &generator);
    let useful_count = options.n_informative + options.n_redundant;
    let rest = options.n_features - useful_count - options.n_repeated;
    let mut parts = vec![informative];
    if 0 < options.n_redundant {
        let mix = generator.uniform(-1.0, 1.0, &[options.n_informative, options.n_redundant]);
        parts.push(parts[0].matmul(&mix));
    }
    if 0 < options.n_repeated {
        let useful = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        parts.push(useful.take_at(&generator.integers(0, useful_count as i64, &[options.n_repeated]), 1));
    }
    if 0 < rest {
        parts.push(generator.standard_normal(&[n_samples, rest]));
    }
    let data = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
    let mut data = data.add(options.shift).multiply(options.scale);
    if options.shuffle {
        data = data.take_at(&generator.permutation(options.n_features), 1);
    }
    let classes = options.n_classes as i64;
    let is_flipped = generator.random(&[n_samples]).less(options.flip_y);
    let drawn = generator.integers(0, classes, &[n_samples]);
    let target = where_(&is_flipped, drawn, cluster.remainder(classes));
    Ok(Samples { data, target })
}

/// Refuses numbers that do not fit.
#[track_caller]
fn check(options: &Classification) -> Result<()> {
    let Classification { n_features, n_informative, n_redundant, n_repeated, .. } = *options;
    let used = n_informative.saturating_add(n_redundant).saturating_add(n_repeated);
    if n_features < used {
        let text = "Number of informative, redundant and repeated features must sum to less than the number of total features";
        return Err(value_error(text));
    }
    if n_informative == 0 || options.n_classes == 0 || options.n_clusters_per_class == 0 {
        let text = "n_informative, n_classes and n_clusters_per_class must be at least 1";
        return Err(value_error(text));
    }
    let clusters = options.n_classes.saturating_mul(options.n_clusters_per_class);
    if CORNER_BITS_MAX < n_informative && 1 << CORNER_BITS_MAX < clusters {
        return Err(value_error(format!("there may be {} clusters, not {clusters}", 1 << CORNER_BITS_MAX)));
    }
    if n_informative <= CORNER_BITS_MAX && 1 << n_informative < clusters {
        let text = format!(
            "n_classes({}) * n_clusters_per_class({}) must be smaller or equal 2**n_informative({n_informative})={}",
            options.n_classes,
            options.n_clusters_per_class,
            1 << n_informative
        );
        return Err(value_error(text));
    }
    if !(0.0..=1.0).contains(&options.flip_y) {
        let flip_y = options.flip_y;
        let text =
            format!("The 'flip_y' parameter must be a float in the range [0.0, 1.0]. Got {flip_y} instead.");
        return Err(value_error(text));
    }
    Ok(())
}

/// Features by which the corners of clusters are told apart; at the other ones they are where they are.
const CORNER_BITS_MAX: usize = 20;

impl Classification {
    /// The number of samples of each cluster; cluster i is of class i modulo the number of classes.
    #[track_caller]
    fn sizes(&self, n_samples: usize) -> Result<Vec<usize>> {
        let classes = self.n_classes;
        let mut shares = self.weights.clone().unwrap_or_else(|| vec![1.0 / classes as f64; classes]);
        if shares.len() + 1 == classes {
            shares.push(1.0 - shares.iter().sum::<f64>());
        }
        if shares.len() != classes {
            let text = "Weights specified but incompatible with number of classes.";
            return Err(value_error(text));
        }
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|&share| share.is_nan() || share < 0.0) || 1.0 + 1e-9 < sum {
            return Err(value_error(format!(
                "weights must not be negative or sum to more than 1, got {shares:?}"
            )));
        }
        let clusters = classes * self.n_clusters_per_class;
        let size = |cluster: usize| {
            (n_samples as f64 * shares[cluster % classes] / self.n_clusters_per_class as f64) as usize
        };
        let mut sizes: Vec<usize> = (0..clusters).map(size).collect();
        let rest = n_samples.saturating_sub(sizes.iter().sum());
        for (cluster, size) in sizes.iter_mut().enumerate() {
            *size += rest / clusters + usize::from(cluster < rest % clusters);
        }
        Ok(sizes)
    }

    /// The informative features: those of each cluster are normal numbers, combined by a matrix of its own,
    /// around its corner.
    fn informative(&self, n_samples: usize, cluster: &Tensor, count: usize, generator: &Generator) -> Tensor {
        let width = self.n_informative;
        let corners = self.corners(count, generator);
        let normal = generator.standard_normal(&[n_samples, width]);
        let of = cluster.expand_dims(1);
        let mut data = corners.take_at(cluster, 0);
        for at in 0..count as i64 {
            let combined = normal.matmul(&generator.uniform(-1.0, 1.0, &[width, width]));
            data = data.add(where_(&of.equal(at), combined, 0.0));
        }
        data
    }

    /// A corner for each cluster; (clusters, informative).
    fn corners(&self, count: usize, generator: &Generator) -> Tensor {
        let bits = self.n_informative.min(CORNER_BITS_MAX);
        let chosen = generator.choice(1 << bits, &[count], false).expand_dims(1);
        let first = chosen.right_shift(arange(bits)).bitwise_and(1i64);
        let chosen = match self.n_informative - bits {
            0 => first,
            more => concatenate(&[&first, &generator.integers(0, 2, &[count, more])], 1),
        };
        let corners = chosen.multiply(2i64).subtract(1i64).multiply(self.class_sep);
        if self.hypercube {
            return corners;
        }
        let of_cluster = generator.random(&[count, 1]);
        corners.multiply(of_cluster).multiply(generator.random(&[1, self.n_informative]))
    }
}
